"""Files are read by what they are, whatever their names say."""

from __future__ import annotations

import gzip
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest
from rdflib import Literal
from tables import read_table

from kgwb.errors import GraphFileError
from kgwb.kg import open_kg
from kgwb.kg.files import identify_kind
from kgwb.kg.local import LocalGraph


def open_file(path: Path) -> LocalGraph:
    kg = open_kg(path)
    assert isinstance(kg, LocalGraph)
    return kg


RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
TRIPLES = '<http://e/s> <http://e/p> "o" .\n'
TURTLE = "# a comment\n@prefix : <http://e/> .\n:s :p 'o' .\n"
XML = f"""<?xml version="1.0"?>
<!-- a comment --><!DOCTYPE r:RDF [ <!ENTITY e "http://e/"> ]>
<r:RDF xmlns:r="{RDF}" xmlns:e="http://e/"><r:Description r:about="&e;s"><e:p>o</e:p></r:Description></r:RDF>"""
XML_NODE = f'<r:Description r:about="http://e/s" xmlns:r="{RDF}" xmlns:e="http://e/" e:p="o"/>'
JSON = '\n[ {"@id": "http://e/s", "http://e/p": "o"} ]'
QUADS = '<http://e/s> <http://e/p> "o" <http://e/g> .\n'
TRIG = "prefix : <http://e/>\n:g { :s :p 'o' }"

READABLE = {
    **{
        f"turtle{end}": TURTLE for end in ("", ".owl", ".nt", ".nq", ".rdf", ".json", ".n3", ".txt")
    },
    **{f"triples{end}": TRIPLES for end in (".rdf", ".nq", ".json")},
    **{f"quads{end}": QUADS for end in (".nt", ".ttl")},
    **{f"xml{end}": XML for end in (".ttl", ".nt", ".n3", ".json", ".data")},
    **{f"json{end}": JSON for end in (".ttl", ".rdf")},
    "base.nt": "BASE <http://e/>\n<s> <p> 'o' .",
    "made.xml": "# made by a tool\n" + TRIPLES,
    "trig.nq": TRIG,
    "node.xml": XML_NODE,
    "blank.ttl": "[] <http://e/q> <http://e/s> . <http://e/s> <http://e/p> 'o' .",
}
MARKED = {".ttl": TURTLE, ".nt": TRIPLES, ".nq": QUADS, ".trig": TRIG, ".rdf": XML, ".json": JSON}
READABLE |= {f"marked{end}": f"\ufeff{text}" for end, text in MARKED.items()}
"""Programs of Windows put a mark before UTF-8."""


@pytest.mark.parametrize("packing", ["plain", "gzip"])
@pytest.mark.parametrize("name", READABLE)
def test_a_file_is_read_by_what_it_is(name: str, packing: str, tmp_path: Path) -> None:
    data = READABLE[name].encode()
    file = tmp_path / name
    file.write_bytes(gzip.compress(data) if packing == "gzip" else data)
    kg = open_kg(file)
    rows = kg.select("SELECT ?o { <http://e/s> <http://e/p> ?o }").rows
    assert rows == ((Literal("o"),),)


FILES = Path(__file__).with_name("unreadable_files.toml")
UNREADABLE = {row["name"]: row for row in read_table(FILES)}


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_is_not_read_is_named_with_a_remedy(name: str, tmp_path: Path) -> None:
    kind = UNREADABLE[name]["kind"]
    file = tmp_path / name
    file.write_text(UNREADABLE[name]["text"])
    assert identify_kind(file).name == kind
    with pytest.raises(GraphFileError) as caught:
        open_kg(file)
    assert kind in caught.value.message
    assert caught.value.hint == identify_kind(file).remedy != ""


def test_a_folder_opens_without_what_is_no_rdf(tmp_path: Path) -> None:
    (tmp_path / "a.ttl").write_text(TURTLE)
    inner = tmp_path / "inner"
    inner.mkdir()
    for name in ("catalog-v001.xml", "b.xml"):
        (inner / name).write_text(UNREADABLE[name]["text"])
    kg = open_file(tmp_path)
    assert [note.partition(" ")[0] for note in kg.notes] == [
        "inner/b.xml",
        "inner/catalog-v001.xml",
    ]
    assert kg.select("SELECT * { ?s ?p ?o }").rows
    (tmp_path / "a.ttl").unlink()
    with pytest.raises(GraphFileError, match=r"catalog-v001\.xml"):
        open_kg(tmp_path)


TAGS = {
    "a.nt": (
        '<http://e/s> <http://e/p> "{0}"@{1} .\n',
        '<http://e/s> <http://e/p> "\\"@en_GB" .\n',
    ),
    "a.ttl": ("<http://e/s> <http://e/p> '{0}'@{1} .\n", "<http://e/s> <http://e/p> [] .\n"),
    "a.rdf": (
        f'<r:Description r:about="http://e/s" xmlns:r="{RDF}" xmlns:e="http://e/">'
        '<e:p xml:lang="{1}">{0}</e:p></r:Description>',
        "",
    ),
    "a.jsonld": (
        '{{"@id": "http://e/s", "http://e/p": {{"@value": "{0}", "@language": "{1}"}}}}',
        "",
    ),
}


@pytest.mark.parametrize(
    ("tag", "read_as"),
    [
        ("zh-classical", "zh"),
        ("en_US", "en-us"),
        ("be-x-old", "be-x-old"),
        ("zh-min-nan", "zh-min-nan"),
        ("sr-Latn_RS", "sr-latn-rs"),
        ("toolongatag", "und"),
        ("1", "und"),
    ],
)
@pytest.mark.parametrize("name", TAGS)
def test_a_language_tag_of_the_wild_keeps_no_file_from_opening(
    name: str, tag: str, read_as: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kgwb.kg.files.MIN_CACHED_BYTES", 0)
    statement, other = TAGS[name]
    (tmp_path / name).write_text(other + statement.format("o", tag))
    is_valid = tag.lower() == read_as
    for _ in range(2):
        kg = open_file(tmp_path / name)
        terms = [term for (term,) in kg.select("SELECT ?o { <http://e/s> <http://e/p> ?o }").rows]
        [read] = [term for term in terms if str(term) == "o"]
        assert isinstance(read, Literal)
        assert (read.language or "").lower() == read_as
        assert any(f"@{tag}" in note and "(1)" in note for note in kg.notes) == (not is_valid)


def test_tags_are_found_at_every_place_of_a_large_file(tmp_path: Path) -> None:
    lines = [f'<http://e/s{n}> <http://e/p> "{"x" * (n % 97)}"@en_US .\n' for n in range(9_999)]
    (tmp_path / "a.nt").write_text("".join(lines))
    one_line = [
        f'{{"@id":"http://e/{n}","http://e/p":{{"@value":"v","@language":"en_US"}}}}'
        for n in range(9_999)
    ]
    (tmp_path / "b.json").write_text(f"[{','.join(one_line)}]")
    for name in ("a.nt", "b.json"):
        kg = open_file(tmp_path / name)
        [[number]] = kg.select(
            'SELECT (COUNT(*) AS ?n) { ?s ?p ?o FILTER(LANG(?o) = "en-us") }'
        ).rows
        assert str(number) == "9999"
        assert "(9,999)" in kg.notes[0]


def test_an_empty_language_of_xml_is_none(tmp_path: Path) -> None:
    statement, _ = TAGS["a.rdf"]
    (tmp_path / "a.rdf").write_text(statement.format("o", ""))
    kg = open_file(tmp_path / "a.rdf")
    assert kg.select("SELECT ?o { ?s ?p ?o }").rows == ((Literal("o"),),)
    assert not kg.notes


@pytest.mark.parametrize("text", ['"o"@ar--ltr', '"a\\"b"@ar--rtl'])
def test_a_base_direction_is_left_out_and_counted(text: str, tmp_path: Path) -> None:
    statement = "<http://e/s> <http://e/p>"
    (tmp_path / "a.nt").write_text(f'{statement} {text} .\n{statement} "@ar--rtl " .\n')
    kg = open_file(tmp_path / "a.nt")
    terms = [term for (term,) in kg.select("SELECT ?o { ?s ?p ?o }").rows]
    assert Literal("@ar--rtl ") in terms
    assert sorted(term.language or "" for term in terms if isinstance(term, Literal)) == ["", "ar"]
    assert len(kg.notes) == 1


@pytest.mark.parametrize("row", read_table(FILES, "broken"), ids=itemgetter("text"))
def test_an_error_of_published_files_says_what_to_do(row: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / row["name"]
    file.write_bytes(row["text"].encode("latin-1"))
    with pytest.raises(GraphFileError, match=row.get("says", ".")) as caught:
        open_kg(file)
    assert row["hint"] in caught.value.hint != ""
    assert "place" not in row or row["place"] == [caught.value.line, caught.value.column]
