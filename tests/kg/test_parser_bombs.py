"""RDF that is made to break its parser gives an error or a graph, and never a crash.

It comes from files, packed files and endpoints.
"""

from __future__ import annotations

import gzip
import multiprocessing
import resource
import sys
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from itertools import product
from pathlib import Path

import pytest
from hostile.servers import Said, serving
from pyoxigraph import RdfFormat

from kgwb.errors import GraphError, GraphTimeoutError
from kgwb.kg import open_kg
from kgwb.kg.parser_process import EXPANSION_MESSAGE

MOST_BYTES = 1_000_000_000
S_P, P = "<http://e/s> <http://e/p> ", "<http://e/p> "
PROLOGUE = '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/">'


def nested(
    start: str, opening: str, middle: str, closing: str, end: str = "", depth: int = 5_000
) -> str:
    return start + opening * depth + middle + closing * depth + end


def xml(body: str, declarations: str = "", prologue: str = PROLOGUE) -> str:
    doctype = f"<!DOCTYPE rdf:RDF [{declarations}]>" if declarations else ""
    return f"{doctype}{prologue}<rdf:Description>{body}</rdf:Description></rdf:RDF>"


def laughs(levels: int) -> str:
    inner = "".join(f'<!ENTITY a{n} "' + f"&a{n - 1};" * 10 + '">' for n in range(1, levels))
    return xml(f"<e:p>&a{levels - 1};</e:p>", f'<!ENTITY a0 "aaaaaaaaaa">{inner}')


ELEMENT, END_ELEMENT = "<e:p><rdf:Description>", "</rdf:Description></e:p>"
LONG = "http://e/" + "a/" * 20_000
WIDE = ",".join(f'"t{n}": "http://e/{n}"' for n in range(10_000))
INNER = '{"@context": {"x": "http://e/x"}, "http://e/p": '
BOMBS: dict[str, str] = {
    "lists.jsonld": nested('{"http://e/p":', '{"@list":[', '"x"', "]}", "}"),
    "wide_contexts.jsonld": f'{{"@context": {{{WIDE}}}, "http://e/p": '
    + nested("", INNER, "1", "}", "}", 200),
    "remote_context.jsonld": '{"@context": "http://127.0.0.1:9/context", "p": "x"}',
    "elements.rdf": xml(nested("", ELEMENT, "", END_ELEMENT)),
    "laughs.rdf": laughs(10),
    "external.rdf": xml("<e:p>&a;</e:p>", '<!ENTITY a SYSTEM "file:///etc/passwd">'),
    "defaults.rdf": xml("<e:p>x</e:p>", '<!ATTLIST e:p e:q CDATA "' + "a" * 100_000 + '">'),
    "namespace.rdf": xml("<e:p>x</e:p>" * 5_000, prologue=PROLOGUE.replace("http://e/", LONG)),
    "blanks.ttl": nested(S_P, f"[ {P}", "1", "]", ".", depth=20_000),
    "base.ttl": f"@base <{LONG}> . " + "".join(f"<{n}> <p> <o> ." for n in range(20_000)),
    "formulas.n3": nested(S_P, "{", "", "}", ".", depth=20_000),
    "path.n3": S_P + "<http://e/o>" + "!<http://e/p>" * 100_000 + ".",
    "triple_terms.nq": nested(S_P, f"<<( {S_P}", "<http://e/o>", " )>>", " .\n", 200_000),
}
SLOW = xml(nested("", ELEMENT, "", END_ELEMENT, depth=100_000))
"""Elements that each cost time for every element around them."""
TOLD = {
    "remote_context.jsonld": "contexts",
    "blanks.ttl": "",
    "elements.rdf": "",
    **dict.fromkeys(
        ("lists.jsonld", "laughs.rdf", "triple_terms.nq", "base.ttl"), EXPANSION_MESSAGE
    ),
}
"""What the error of some of them says, "" where they are read."""


def open_bomb(name: str, door: str, folder: Path) -> tuple[str, int]:
    """Open a bomb, and return the error, "" without one, and the most bytes that a child of this process took."""
    error = ""
    with serving(lambda _: bomb(name, BOMBS[name])) as server:
        try:
            if door == "endpoint":
                kg = open_kg(server.url, dialect="generic", query_timeout_s=200)
                kg.construct("CONSTRUCT WHERE { ?s ?p ?o }")
            else:
                file = folder / (f"{name}.gz" if door == "gz" else name)
                data = BOMBS[name].encode()
                file.write_bytes(gzip.compress(data, 1) if door == "gz" else data)
                open_kg(file, cache=False)
        except GraphError as caught:
            error = caught.message
    unit = 1 if sys.platform == "darwin" else 1024
    return error, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * unit


@pytest.fixture(scope="module")
def opener() -> Iterator[Executor]:
    """A process that has no children but the parsers of these bombs."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        yield pool


@pytest.mark.parametrize(
    ("name", "door"), [*product(BOMBS, ["file"]), *product(TOLD, ["gz", "endpoint"])]
)
def test_no_parser_bomb_crashes_or_exhausts_the_memory(
    name: str, door: str, opener: Executor, tmp_path: Path
) -> None:
    error, most_bytes = opener.submit(open_bomb, name, door, tmp_path).result()
    if name in TOLD:
        assert TOLD[name] in error and bool(error) == bool(TOLD[name])
    assert 0 < most_bytes < MOST_BYTES


def test_parsing_of_a_reply_ends_at_the_timeout() -> None:
    with serving(lambda _: bomb("slow.rdf", SLOW)) as server:
        kg = open_kg(server.url, dialect="generic", query_timeout_s=2)
        with pytest.raises(GraphTimeoutError, match="parsing"):
            kg.construct("CONSTRUCT WHERE { ?s ?p ?o }")


def bomb(name: str, text: str) -> Said:
    """The reply of an endpoint with that file."""
    rdf_format = RdfFormat.from_extension(Path(name).suffix[1:])
    assert rdf_format is not None
    return 200, {"Content-Type": rdf_format.media_type}, text
