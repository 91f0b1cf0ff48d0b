#!/usr/bin/env bash
# rdflib: a codepoint escape before letters such as "cade" takes eight digits in place of four.
#
# Expected. SPARQL 1.1, 19.2: "\u" is followed by four hexadecimal digits, "\U" by eight. So
# "d\u00e9cade" is the French "décade", and "\u0001F600" is a control character and the text "F600".
#
# Seen (rdflib 7.6.0). Any escape takes up to eight hexadecimal digits, and of more than four, eight.
# Where these are no character, the query is refused; where they are, the text is another one, without
# a word: "\u0001F600" is one emoji. Programs that write queries in ASCII (json.dumps, and many
# models) escape just so. pyoxigraph 0.5.13 reads four.
#
#   query                     rdflib         Oxigraph
#   STRLEN("d\u00e9cade")     ValueError     6
#   STRLEN("\u0001F600")      1              5
#   STRLEN("caf\u00e9 de")    7              7
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -qq --disable-pip-version-check \
    rdflib==7.6.0 pyoxigraph==0.5.13

venv/bin/python - <<'PY'
from importlib.metadata import version

import pyoxigraph
from rdflib import Graph

print("rdflib", version("rdflib"), "pyoxigraph", version("pyoxigraph"))
seen = {}
for text in (r"d\u00e9cade", r"\u0001F600", r"caf\u00e9 de"):
    query = f'SELECT (STRLEN("{text}") AS ?n) {{}}'
    try:
        [[by_rdflib]] = Graph().query(query)
    except Exception as error:
        by_rdflib = type(error).__name__
    [[by_oxigraph]] = pyoxigraph.Store().query(query)
    seen[text] = (str(by_rdflib), by_oxigraph.value)
    print(f"{text:14} rdflib {by_rdflib}, Oxigraph {by_oxigraph.value}")
if seen != {
    r"d\u00e9cade": ("ValueError", "6"),
    r"\u0001F600": ("1", "5"),
    r"caf\u00e9 de": ("7", "7"),
}:
    raise SystemExit("the behaviour has changed")
PY
