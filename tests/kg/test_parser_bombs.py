"""RDF that is made to break its parser gives an error or a graph, and never a crash.

It comes from files, packed files and endpoints. Run as a program, this file opens all of it in one
process, and prints a line of JSON after each.
"""

from __future__ import annotations

import gzip
import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyoxigraph import RdfFormat

sys.path.insert(
    0, str(Path(__file__).parents[1])
)  # as a program it does not know where the tests are
from hostile.servers import Said, Seen, serving

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
    "objects.jsonld": nested("", '{"http://e/p":', '"x"', "}"),
    "lists.jsonld": nested('{"http://e/p":', '{"@list":[', '"x"', "]}", "}"),
    "graphs.jsonld": nested("", '{"@graph":[', '{"http://e/p": "x"}', "]}"),
    "reverse.jsonld": nested(
        "", '{"@id":"http://e/s","@reverse":{"http://e/p":', '{"@id": "http://e/o"}', "}}"
    ),
    "included.jsonld": nested("", '{"@included":', '{"http://e/p": "x"}', "}"),
    "arrays.jsonld": nested('{"http://e/p":', "[", '"x"', "]", "}", 200_000),
    "open.jsonld": "[" * 1_000_000,
    "json.jsonld": nested(
        '{"http://e/p": {"@type": "@json", "@value": ', "[", "", "]", "}}", 200_000
    ),
    "contexts.jsonld": nested(
        '{"@context":', '{"a":{"@id":"http://e/a","@context":', "{}", "}}", "}"
    ),
    "wide_contexts.jsonld": f'{{"@context": {{{WIDE}}}, "http://e/p": '
    + nested("", INNER, "1", "}", "}", 200),
    "remote_context.jsonld": '{"@context": "http://127.0.0.1:9/context", "p": "x"}',
    "elements.rdf": xml(nested("", ELEMENT, "", END_ELEMENT)),
    "resources.rdf": xml(nested("", '<e:p rdf:parseType="Resource">', "", "</e:p>")),
    "literal.rdf": xml(nested('<e:p rdf:parseType="Literal">', "<e:a>", "", "</e:a>", "</e:p>")),
    "laughs.rdf": laughs(10),
    "quadratic.owl": xml(
        "<e:p>" + "&a;" * 100_000 + "</e:p>", '<!ENTITY a "' + "a" * 100_000 + '">'
    ),
    "recursive.rdf": xml("<e:p>&a;</e:p>", '<!ENTITY a "&b;"><!ENTITY b "&a;">'),
    "external.rdf": xml("<e:p>&a;</e:p>", '<!ENTITY a SYSTEM "file:///etc/passwd">'),
    "parameter.rdf": xml("<e:p>&b;</e:p>", "<!ENTITY % a \"<!ENTITY b 'x'>\">%a;"),
    "defaults.rdf": xml("<e:p>x</e:p>", '<!ATTLIST e:p e:q CDATA "' + "a" * 100_000 + '">'),
    "namespace.rdf": xml("<e:p>x</e:p>" * 5_000, prologue=PROLOGUE.replace("http://e/", LONG)),
    "attributes.rdf": xml("<e:p " + " ".join(f"e:a{n}='x'" for n in range(5_000)) + "/>"),
    "blanks.ttl": nested(S_P, f"[ {P}", "1", "]", ".", depth=20_000),
    "collections.ttl": nested(S_P, "(", "", ")", ".", depth=20_000),
    "triple_terms.ttl": nested(S_P, f"<<( {S_P}", "1", " )>>", ".", depth=20_000),
    "reifiers.ttl": nested(S_P, f"<< {S_P}", "1", " >>", ".", depth=20_000),
    "annotations.ttl": nested(f"{S_P} 1", f"{{| {P} 1 ", "", "|}", ".", depth=20_000),
    "base.ttl": f"@base <{LONG}> . " + "".join(f"<{n}> <p> <o> ." for n in range(20_000)),
    "prefix.trig": f"@prefix a: <{LONG}> . " + "".join(f"a:{n} a:p a:o ." for n in range(20_000)),
    "braces.trig": nested("", "{", "", "}", depth=20_000),
    "formulas.n3": nested(S_P, "{", "", "}", ".", depth=20_000),
    "path.n3": S_P + "<http://e/o>" + "!<http://e/p>" * 100_000 + ".",
    "triple_terms.nt": nested(S_P, f"<<( {S_P}", "<http://e/o>", " )>>", " .\n", depth=20_000),
    "triple_terms.nq": nested(S_P, f"<<( {S_P}", "<http://e/o>", " )>>", " .\n", 200_000),
}
SLOW = {"slow.rdf": xml(nested("", ELEMENT, "", END_ELEMENT, depth=100_000))}
"""Elements that each cost time for every element around them."""
DOORS = ("file", "gz", "endpoint")


def test_no_parser_bomb_ends_the_process_or_exhausts_its_memory() -> None:
    assert len(BOMBS) * len(DOORS) == 102
    done = subprocess.run([sys.executable, __file__], capture_output=True, text=True, check=False)
    outcomes = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(outcomes) == 102, (
        f"ended with {done.returncode} after {outcomes[-1:]}: {done.stderr[-500:]}"
    )
    assert not [outcome for outcome in outcomes if outcome["bytes"] > MOST_BYTES]
    ended = {(outcome["door"], outcome["name"]): outcome["error"] for outcome in outcomes}
    for door in DOORS:
        for name in ("lists.jsonld", "laughs.rdf", "triple_terms.nq", "base.ttl"):
            assert EXPANSION_MESSAGE in ended[door, name]
        assert "contexts" in ended[door, "remote_context.jsonld"]
        assert ended[door, "blanks.ttl"] == ended[door, "elements.rdf"] == ""


def test_parsing_of_a_reply_ends_at_the_timeout() -> None:
    with serving(_bomb) as server:
        kg = open_kg(f"{server.url}/slow.rdf", dialect="generic", query_timeout_s=2)
        with pytest.raises(GraphTimeoutError, match="parsing"):
            kg.construct("CONSTRUCT WHERE { ?s ?p ?o }")


def outcomes() -> Iterator[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder, serving(_bomb) as server:
        for name, text in BOMBS.items():
            plain, packed = Path(folder, name), Path(folder, f"{name}.gz")
            plain.write_text(text)
            packed.write_bytes(gzip.compress(text.encode(), 1))
            kg = open_kg(f"{server.url}/{name}", dialect="generic", query_timeout_s=200)
            file, gz = partial(open_kg, plain, cache=False), partial(open_kg, packed, cache=False)
            ways = (file, gz, partial(kg.construct, "CONSTRUCT WHERE { ?s ?p ?o }"))
            for door, way in zip(DOORS, ways, strict=True):
                yield {"name": name, "door": door, "error": _error(way), "bytes": _peak_bytes()}


def _bomb(seen: Seen) -> Said:
    """Answer every query with the file that its path names."""
    name = seen.path[1:].partition("?")[0]
    rdf_format = RdfFormat.from_extension(Path(name).suffix[1:])
    assert rdf_format is not None
    return 200, {"Content-Type": rdf_format.media_type}, (BOMBS | SLOW)[name]


def _error(way: Callable[[], object]) -> str:
    try:
        way()
    except GraphError as error:
        return error.message
    return ""


def _peak_bytes() -> int:
    unit = 1 if sys.platform == "darwin" else 1024
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * unit
    if sys.platform == "darwin":
        return max(children, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    # ru_maxrss counts what the process was before its exec, too
    status = Path("/proc/self/status").read_text()
    return max(children, int(status.partition("VmHWM:")[2].split()[0]) * 1024)


if __name__ == "__main__":
    for outcome in outcomes():
        sys.stdout.write(f"{json.dumps(outcome)}\n")
        sys.stdout.flush()
