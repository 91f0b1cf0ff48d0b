"""Files are read by what they are, whatever their names say."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from rdflib import Literal

from kgwb.errors import GraphFileError
from kgwb.kg import open_kg
from kgwb.kg.files import FORMAT_BY_EXTENSION, KINDS, identify_kind
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
    "turtle.owl": TURTLE,
    "turtle.nt": TURTLE,
    "turtle.nq": TURTLE,
    "turtle.rdf": TURTLE,
    "turtle.json": TURTLE,
    "base.nt": "BASE <http://e/>\n<s> <p> 'o' .",
    "turtle.n3": TURTLE,
    "triples.rdf": TRIPLES,
    "triples.xml": "# made by a tool\n" + TRIPLES,
    "triples.nq": TRIPLES,
    "triples.json": TRIPLES,
    "quads.nt": QUADS,
    "quads.ttl": QUADS,
    "trig.nq": TRIG,
    "xml.ttl": XML,
    "xml.nt": XML,
    "xml.n3": XML,
    "xml.json": XML,
    "node.xml": XML_NODE,
    "json.ttl": JSON,
    "json.rdf": JSON,
    "blank.ttl": "[] <http://e/q> <http://e/s> . <http://e/s> <http://e/p> 'o' .",
    "without_extension": TURTLE,
    "turtle.txt": TURTLE,
    "xml.data": XML,
}


@pytest.mark.parametrize("packing", ["plain", "gzip", "named .gz"])
@pytest.mark.parametrize("name", READABLE)
def test_a_file_is_read_by_what_it_is(name: str, packing: str, tmp_path: Path) -> None:
    data = READABLE[name].encode()
    file = tmp_path / (f"{name}.gz" if packing == "named .gz" else name)
    file.write_bytes(gzip.compress(data) if packing == "gzip" else data)
    kg = open_kg(file)
    rows = kg.select("SELECT ?o { <http://e/s> <http://e/p> ?o }").rows
    assert rows == ((Literal("o"),),)


OWL_XML = (
    '<?xml version="1.0"?>\n<Ontology xmlns="http://www.w3.org/2002/07/owl#"><Prefix/></Ontology>'
)
CATALOG = (
    '<?xml version="1.0" encoding="UTF-8" standalone="no"?>\n<catalog prefer="public"'
    ' xmlns="urn:oasis:names:tc:entity:xmlns:xml:catalog"><uri name="http://e/" uri="a.owl"/></catalog>'
)
UNREADABLE = {
    "a.owl": ("OWL/XML", OWL_XML),
    "b.owl": ("OWL's functional syntax", "Prefix(:=<http://e/>)\nOntology(<http://e/o>)"),
    "c.owl": ("Manchester syntax", "Prefix: : <http://e/>\nOntology: <http://e/o>\nClass: :A"),
    "a.omn": ("Manchester syntax", "# saved\nOntology: <http://e/o>"),
    "a.ofn": ("OWL's functional syntax", "Ontology (<http://e/o>)"),
    "a.owx": ("OWL/XML", OWL_XML),
    "a.obo": ("OBO's own format", "format-version: 1.2\nontology: tst\n"),
    "catalog-v001.xml": ("Protégé's catalog of ontology files", CATALOG),
    "a.xml": ("TriX", '<TriX xmlns="http://www.w3.org/2004/03/trix/trix-1/"/>'),
    "b.xml": ("XML that is no RDF/XML", '<project xmlns="http://maven"><id>1</id></project>'),
    "a.ttl": ("a web page", "<!DOCTYPE html>\n<html><body>404</body></html>"),
    "b.ttl": ("a web page", "<HTML><head>"),
    "c.ttl": ("a zip archive", "PK\x03\x04rest"),
    "d.ttl": ("a pointer of Git LFS, not the file", "version https://git-lfs.github.com/spec/v1\n"),
    "a.json": ("a result of a query in JSON", '{ "head": {"vars": []}, "results": {}}'),
    "b.json": ("Wikibase's dump in JSON", '[\n{"type":"item","id":"Q1"}]'),
    "c.xml": ("a result of a query in XML", '<sparql xmlns="http://www.w3.org/2005/x"/>'),
    "a.hdt": ("an HDT file", "$HDT\x01"),
    "a.jelly": ("a Jelly file", "n\n\x10\n\x0e\x10\x01H\x1fP\x16\x01X p\x01x\x01"),
    "b.jelly": ("a Jelly file", "n\n\x14\n\x12\n\x02ab\x10\x02H\x1fP\x16\x01X p\x01x\x01"),
    "a.brf": ("binary RDF of RDF4J", "BRDF\x00\x00\x00\x01"),
    "a.tar": ("a tar archive", f"a.ttl{' ' * 252}ustar  "),
    "a.db": ("an SQLite database", "SQLite format 3\x00"),
    "d.xml": (
        "GraphML",
        '<?xml version="1.0"?>\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns">',
    ),
    "a.csv": ("no RDF that kgwb knows", "id,name\n1,a\n"),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_is_not_read_is_named_with_a_remedy(name: str, tmp_path: Path) -> None:
    kind, text = UNREADABLE[name]
    file = tmp_path / name
    file.write_text(text)
    assert identify_kind(file).name == kind
    with pytest.raises(GraphFileError) as caught:
        open_kg(file)
    assert kind in caught.value.message
    assert caught.value.hint == identify_kind(file).remedy != ""


def test_each_kind_is_tried() -> None:
    expected = {kind for kind, _ in UNREADABLE.values()}
    unread = {kind.name for kind in KINDS if kind.rdf_format is None}
    packed = {"a bzip2 file", "an xz file", "a zstd file", "a 7-Zip archive"}
    assert unread - packed <= expected


def test_a_folder_opens_without_what_is_no_rdf(tmp_path: Path) -> None:
    (tmp_path / "a.ttl").write_text(TURTLE)
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "catalog-v001.xml").write_text(CATALOG)
    (inner / "pom.xml").write_text(UNREADABLE["b.xml"][1])
    kg = open_file(tmp_path)
    assert [note.partition(" ")[0] for note in kg.notes] == [
        "inner/catalog-v001.xml",
        "inner/pom.xml",
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


@pytest.mark.parametrize("cached", [False, True])
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
    name: str, tag: str, read_as: str, cached: bool, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    if cached:
        monkeypatch.setattr("kgwb.kg.files.MIN_CACHED_BYTES", 0)
    statement, other = TAGS[name]
    (tmp_path / name).write_text(other + statement.format("o", tag))
    is_valid = tag.lower() == read_as
    for _ in range(1 + cached):
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


@pytest.mark.parametrize("text", ['"o"@ar--rtl', '"o"@ar--ltr', '"a\\"b"@ar--rtl'])
def test_a_base_direction_is_left_out_and_counted(text: str, tmp_path: Path) -> None:
    statement = "<http://e/s> <http://e/p>"
    (tmp_path / "a.nt").write_text(f'{statement} {text} .\n{statement} "@ar--rtl " .\n')
    kg = open_file(tmp_path / "a.nt")
    terms = [term for (term,) in kg.select("SELECT ?o { ?s ?p ?o }").rows]
    assert Literal("@ar--rtl ") in terms
    assert sorted(term.language or "" for term in terms if isinstance(term, Literal)) == ["", "ar"]
    assert len(kg.notes) == 1


@pytest.mark.parametrize(
    "text",
    [
        "<urn:a> <urn:says> { <urn:s> <urn:p> <urn:o> } .",
        "{ ?x <urn:p> ?y } => { ?y <urn:q> ?x } .",
    ],
)
def test_a_formula_of_n3_is_an_error_and_no_fact(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.n3").write_text(f"<urn:s> <urn:p> <urn:o2> .\n{text}")
    with pytest.raises(GraphFileError) as caught:
        open_kg(tmp_path / "a.n3")
    assert "formula" in caught.value.hint


def test_each_extension_has_a_kind(tmp_path: Path) -> None:
    for extension in FORMAT_BY_EXTENSION:
        file = tmp_path / f"empty{extension}"
        file.write_text("")
        assert identify_kind(file).format == FORMAT_BY_EXTENSION[extension]


@pytest.mark.parametrize(
    ("name", "content", "hint"),
    [
        ("a.nt", b'<http://e/s> <http://e/p> "caf\xe9" .\n', "UTF-8"),
        ("a.ttl", b'<http://e/s> <http://e/p> "caf\xe9" .\n', "UTF-8"),
        ("a.rdf", XML.encode().replace(b"<e:p>o", b"<e:p>\xe9"), "UTF-8"),
        ("a.rdf", XML.encode().replace(b"&e;s", b"http://e/a b"), "%20"),
        ("a.ttl", b"<http://e/a b> <http://e/p> 1 .", "%20"),
        ("a.json", b'{"name": "kgwb", "version": 1}', "@context"),
        ("a.jsonld", b'{"@context": {"name": "http://schema.org/name"}}', "@context"),
        ("a.ttl", b"<http://e/g> { <http://e/s> <http://e/p> 1 }", ".trig"),
    ],
)
def test_an_error_of_published_files_says_what_to_do(
    name: str, content: bytes, hint: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(GraphFileError) as caught:
        open_kg(tmp_path / name)
    assert hint in caught.value.hint


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "text", [" ", "\n", "#\n", "!\n", "<?", "<!--", "<!DOCTYPE a [", "_:a ", "[ "]
)
def test_no_beginning_takes_long_to_recognize(text: str, tmp_path: Path) -> None:
    for extension in FORMAT_BY_EXTENSION:
        file = tmp_path / f"a{extension}"
        file.write_text(text * 70_000)
        identify_kind(file)
