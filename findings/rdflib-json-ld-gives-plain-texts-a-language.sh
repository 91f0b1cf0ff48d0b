#!/usr/bin/env bash
# rdflib: JSON-LD written with a context gives a language to plain texts, or takes it from others.
#
# Expected. JSON-LD 1.1, 4.2.4, and JSON-LD 1.1 API, 5.3 and 6.3: a term's "@language" holds for each
# bare string that is read under it. So a text in another language, or in none, is written as a value
# object ({"@value": "Rom"}) or under the full name of the property. What is read again is the graph.
#
# Seen (rdflib 7.6.0; PyLD 3.3.0 reads what it writes). serialize(format="json-ld", context=...)
# writes a plain text bare under a term with a language, if the context has a "@vocab", and it comes
# back in that language. With "@language": null in the term, under a language for the whole document,
# a text in the document's language is written bare and comes back without it. No error is reported. A
# query by lang(), and an answer that is compared with a gold answer as a term, differ before and
# after. PyLD's own compaction keeps the three texts.
#
#   texts "Rome"@en, "Rom"@de, "Roma" in     "name" with language "en"     "name" with null, all in "en"
#   read again, by rdflib and PyLD           Rome@en Rom@de Roma@en        Rome Rom@de Roma
#   compacted by PyLD                        the same three                the same three
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -qq --disable-pip-version-check \
    rdflib==7.6.0 PyLD==3.3.0

venv/bin/python - <<'PY'
import json
from importlib.metadata import version

from pyld import jsonld
from rdflib import Graph

print("rdflib", version("rdflib"), "PyLD", version("PyLD"))
VOCABULARY = "http://example.org/"
NAME = VOCABULARY + "name"
DATA = f'<http://example.org/Rome> <{NAME}> "Rome"@en, "Rom"@de, "Roma" .'
CONTEXTS = {
    "language en": {"@vocab": VOCABULARY, "name": {"@id": NAME, "@language": "en"}},
    "language null": {"@language": "en", "name": {"@id": NAME, "@language": None}},
}
graph = Graph().parse(data=DATA, format="turtle")


def texts(triples: str) -> str:
    values = Graph().parse(data=triples, format="nt").objects()
    return " ".join(sorted(value.n3().replace('"', "") for value in values))


def read_by_pyld(document: object) -> str:
    return texts(jsonld.to_rdf(document, {"format": "application/n-quads"}))


seen = {}
for name, context in CONTEXTS.items():
    written = graph.serialize(format="json-ld", context=context)
    again = Graph().parse(data=written, format="json-ld")
    expanded = json.loads(graph.serialize(format="json-ld"))
    seen[name] = (
        texts(again.serialize(format="nt")),
        read_by_pyld(json.loads(written)),
        read_by_pyld(jsonld.compact(expanded, context)),
    )
    print(name.ljust(14), *seen[name], sep=" | ")
if seen != {
    "language en": ("Rom@de Roma@en Rome@en",) * 2 + ("Rom@de Roma Rome@en",),
    "language null": ("Rom@de Roma Rome",) * 2 + ("Rom@de Roma Rome@en",),
}:
    raise SystemExit("the behaviour has changed")
PY
