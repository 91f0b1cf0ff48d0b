#!/usr/bin/env bash
# rdfpandas: of a graph that goes through a data frame, facts have other subjects and other languages.
#
# Expected. rdfpandas makes a data frame of a graph (to_dataframe) and a graph of a data frame (to_graph);
# its columns carry the kind of each value, its datatype and its language, so that the graph comes back.
#
# Seen (rdfpandas 1.1.7, pandas 3.1.1, rdflib 7.6.0). The data frame is right: its columns are named
# "rdfs:label{Literal}@pt-BR", its rows by CURIEs and by labels of blank nodes. Reading takes the language
# as far as the first hyphen, so that the word of Brazil and that of Portugal are both "@pt". A row has no
# kind: one for a blank node becomes a graph with a text as its subject, which RDF has not, and the blank
# node that others lead to has nothing said of it. A path of two steps finds nothing, without an error.
#
#   e:bus rdfs:label "ônibus"@pt-BR, "autocarro"@pt-PT ; e:length [ e:metres 12 ]
#                                                        before            after
#   languages of the labels                              pt-BR, pt-PT      pt, pt
#   SELECT ?m { e:bus e:length/e:metres ?m }             12                none
#   subjects that are literals                           0                 1
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -qq --disable-pip-version-check rdfpandas==1.1.7 pandas==3.1.1 rdflib==7.6.0

venv/bin/python -W ignore - <<'PY'
from importlib.metadata import version

from rdflib import RDFS, Graph, Literal
from rdfpandas.graph import to_dataframe, to_graph

print(*(f"{name} {version(name)}" for name in ("rdfpandas", "pandas", "rdflib")))
DATA = """@prefix e: <http://example.org/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
e:bus rdfs:label "ônibus"@pt-BR, "autocarro"@pt-PT ; e:length [ e:metres 12 ] ."""
QUERY = "PREFIX e: <http://example.org/> SELECT ?m { e:bus e:length/e:metres ?m }"


def told(graph: Graph) -> tuple[list[str], list[str], int]:
    languages = sorted(label.language for label in graph.objects(predicate=RDFS.label))
    metres = [str(row.m) for row in graph.query(QUERY)]
    return languages, metres, sum(isinstance(subject, Literal) for subject in graph.subjects())


graph = Graph().parse(data=DATA, format="turtle")
frame = to_dataframe(graph)
print("columns:", *frame.columns)
before, after = told(graph), told(to_graph(frame, namespace_manager=graph.namespace_manager))
print("languages, metres, subjects that are literals")
print("  before", *before)
print("  after ", *after)
if (before, after) != ((["pt-BR", "pt-PT"], ["12"], 0), (["pt", "pt"], [], 1)):
    raise SystemExit("the behaviour has changed")
PY
