"""Blank nodes of files have the same names each time a file is opened."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from rdflib import BNode

from kgwb.kg import cache_dir, files
from kgwb.kg.local import LocalGraph

PREFIX = "@prefix : <http://e/> .\n"
TURTLE = f"""{PREFIX}
:a :p [ :q ( 1 [ :r _:x ] ) ] , _:x , "no _:x either" , <http://e/_:x> .
_:x :says "a \\"_:x\\" in quotes" ; :says <<( _:x :p [] )>> .
<< :a :p :b >> :k _:x .
"""
RDF_XML = """<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/">
<rdf:Description rdf:about="http://e/a">
<e:p rdf:parseType="Resource"><e:q rdf:nodeID="x"/></e:p>
<e:p><rdf:Description><e:r>1</e:r></rdf:Description></e:p>
</rdf:Description>
<rdf:Description rdf:nodeID="x"><e:r>2</e:r></rdf:Description></rdf:RDF>"""
SOURCES = {
    "a.ttl": TURTLE,
    "a.trig": f"{PREFIX} _:g {{ :a :p [ :q _:g ] }} [] {{ :a :p _:x }}",
    "a.nt": '_:x <http://e/p> _:y .\n_:y <http://e/p> "_:x" .\n',
    "a.nq": '_:x <http://e/p> "x _:x" _:g .\n<http://e/a> <http://e/p> _:y <http://e/_:g> .\n',
    "a.n3": f"{PREFIX} :a :p [ :q [ :r _:x ] ] .",
    "a.rdf": RDF_XML,
    "a.jsonld": '{"@id": "http://e/a", "http://e/p": [{"http://e/q": {"@id": "_:x"}}, '
    '{"http://e/r": {"@list": [1, {"http://e/r": 2}]}}]}',
}


def _quads(graph: LocalGraph) -> list[str]:
    return sorted(map(str, graph.store))


@pytest.mark.parametrize(("name", "text"), SOURCES.items())
def test_a_file_has_the_same_blank_nodes_each_time(
    name: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MIN_CACHED_BYTES", 0)
    path = tmp_path / name
    path.write_text(text)
    first = _quads(LocalGraph.open(path))
    assert any("_:f1n1 " in quad for quad in first)
    shutil.rmtree(cache_dir() / "graphs")
    assert _quads(LocalGraph.open(path)) == first
    assert _quads(LocalGraph.open(path, cache=False)) == first


@pytest.mark.parametrize("min_cached_bytes", [0, sys.maxsize])
def test_blank_nodes_of_two_files_stay_apart(
    min_cached_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MIN_CACHED_BYTES", min_cached_bytes)
    for number in (1, 2):
        file = tmp_path / f"{number}.ttl"
        file.write_text(f"{PREFIX} _:a :p {number} . [] :p {number} .")
    graph = LocalGraph.open(tmp_path)
    rows = graph.select("SELECT ?node ?value { ?node <http://e/p> ?value }").rows
    names = {(str(node), int(str(value))) for node, value in rows}
    assert names == {("f1n1", 1), ("f1n2", 1), ("f2n1", 2), ("f2n2", 2)}
    assert all(isinstance(node, BNode) for node, _ in rows)


def test_only_blank_nodes_are_renamed(tmp_path: Path) -> None:
    path = tmp_path / "a.nq"
    lines = [
        '_:x <http://e/_:x> "a _:x , \\" _:x \\\\" <http://e/_:y> .',
        '<http://e/a> <http://e/p> "_:x"@en .',
        '<http://e/a> <http://e/p> "_:x"^^<http://e/_:x> _:y .',
        "<http://e/a> <http://e/p> <<( _:x <http://e/_:x> _:y )>> .",
        "_:y <http://e/p> <http://e/_> _:x .",
    ]
    path.write_text("".join(f"{line}\n" for line in lines))
    graph = LocalGraph.open(path)
    assert _quads(graph) == sorted(
        [
            '_:f1n1 <http://e/_:x> "a _:x , \\" _:x \\\\" <http://e/_:y>',
            '<http://e/a> <http://e/p> "_:x"@en',
            '<http://e/a> <http://e/p> "_:x"^^<http://e/_:x> _:f1n2',
            "<http://e/a> <http://e/p> <<( _:f1n1 <http://e/_:x> _:f1n2 )>>",
            "_:f1n2 <http://e/p> <http://e/_> _:f1n1",
        ]
    )


def test_many_blank_nodes_are_numbered_across_the_pieces_that_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MIN_CACHED_BYTES", 0)
    count = 9_000
    path = tmp_path / "a.ttl"
    path.write_text(PREFIX + "".join(f":a :p [ :number {number} ] .\n" for number in range(count)))
    graph = LocalGraph.open(path)
    rows = graph.select(f"SELECT ?node ?n {{ ?node <http://e/number> ?n }} LIMIT {count}").rows
    numbers = {str(node): int(str(number)) for node, number in rows}
    assert numbers == {f"f1n{number + 1}": number for number in range(count)}
    assert len(graph.store) == 2 * count
