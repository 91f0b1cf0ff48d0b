#!/usr/bin/env bash
# kglab: a graph that is written to Parquet and read again has its blank nodes in pieces.
#
# Expected. save_parquet and load_parquet are "the preferred method" of kglab for serializing and for
# deserializing an RDF graph. RDF 1.1 Concepts, 3.6: a graph that is read again may have other labels
# of its blank nodes, mapped one to one; what is said of one node is still said of one node.
#
# Seen (kglab 1.0.1, rdflib 7.6.0). The file is right. Reading gives each row to the Turtle parser on
# its own, and a label holds for one document only, so a blank node is another one in each row. The
# number of triples is the same and nothing is reported. Addresses, values with a unit, lists, OWL
# restrictions and SHACL shapes have lost their parts: a query over two steps finds nothing.
#
#   :Ann :address [ :city :Rome ; :street "Via Appia" ]     before    after
#   triples                                                 3         3
#   blank nodes                                             1         3
#   SELECT ?c { :Ann :address/:city ?c }                    Rome      none
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
# kglab asks for JupyterLab and much more; this is what importing it takes.
venv/bin/pip install -qq --disable-pip-version-check \
    rdflib==7.6.0 pyarrow==26.0.1 networkx==3.6.1 pandas scipy owlrl pyshacl \
    pyvis csvwlib chocolate apeye icecream tqdm cryptography nvidia-ml-py python-dateutil requests
venv/bin/pip install -qq --disable-pip-version-check --no-deps kglab==1.0.1

venv/bin/python - <<'PY'
from importlib.metadata import version

import kglab
import rdflib

print(*(f"{name} {version(name)}" for name in ("kglab", "rdflib", "pyarrow")))
DATA = """@prefix : <http://example.org/> .
:Ann :address [ :city :Rome ; :street "Via Appia" ] ."""
QUERY = "PREFIX : <http://example.org/> SELECT ?c { :Ann :address/:city ?c }"


def told(graph: rdflib.Graph) -> tuple[int, int, list[str]]:
    terms = graph.all_nodes()
    blank = sum(isinstance(term, rdflib.BNode) for term in terms)
    return len(graph), blank, [str(row.c).rpartition("/")[2] for row in graph.query(QUERY)]


written = kglab.KnowledgeGraph().load_rdf_text(DATA)
written.save_parquet("graph.parquet")
read = kglab.KnowledgeGraph().load_parquet("graph.parquet")
before, after = told(written.rdf_graph()), told(read.rdf_graph())
print("triples, blank nodes, cities of the address")
print("  before", *before)
print("  after ", *after)
if (before, after) != ((3, 1, ["Rome"]), (3, 3, [])):
    raise SystemExit("the behaviour has changed")
PY
