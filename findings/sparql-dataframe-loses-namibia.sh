#!/usr/bin/env bash
# sparql-dataframe, pandas: codes of countries and of cities change on the way into a data frame.
#
# Expected. SPARQL 1.1 Query Results CSV and TSV Formats, 3: in CSV a literal is its lexical form,
# and a variable that is not bound an empty cell. sparql-dataframe says of itself: "return results
# as a Pandas dataframe". So a text of the graph is that text in the data frame.
#
# Seen (sparql-dataframe 0.4 with pandas 3.1.1 and SPARQLWrapper 2.0.0). The cells go through
# pandas.read_csv as it stands, and there is no option for it. Namibia's code "NA" is no value, nor
# is the name "None": value_counts leaves the row out, and "is not bound" is true of it. "007" is 7,
# "1e3" is 1000, and where another row has no value 39 is 39.0. All are plain strings in the graph.
# No error is reported.
#
#   sent      data frame
#   NA        no value, not counted
#   007       7
#   1e3       1000.0
#   39        39.0, where another row has none
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -qq --disable-pip-version-check \
    sparql-dataframe==0.4 SPARQLWrapper==2.0.0 pandas==3.1.1 pyoxigraph==0.5.13

venv/bin/python - <<'PY'
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version

import pyoxigraph as ox
import sparql_dataframe

for package in ("sparql-dataframe", "SPARQLWrapper", "pandas", "pyoxigraph"):
    print(package, version(package))
store = ox.Store()
store.load(
    b"""@prefix : <http://example.org/> .
    :a :name "Namibia" ; :code "NA" ; :dial "007" ; :districts "39" .
    :b :name "Italy" ; :code "IT" ; :dial "039" .
    :c :name "None" ; :code "NO" ; :dial "047" ; :districts "19" .""",
    format=ox.RdfFormat.TURTLE,
)
QUERY = """PREFIX : <http://example.org/> SELECT ?name ?code ?dial ?version ?districts {
  ?x :name ?name ; :code ?code ; :dial ?dial OPTIONAL { ?x :districts ?districts }
  BIND("1e3" AS ?version) } ORDER BY ?x"""
sent = []


class Endpoint(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_GET(self):
        body = store.query(QUERY).serialize(format=ox.QueryResultsFormat.CSV)
        sent.append(body.decode())
        self.send_response(200)
        self.send_header("Content-Type", "text/csv")
        self.end_headers()
        self.wfile.write(body)


server = ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
threading.Thread(target=server.serve_forever, daemon=True).start()
frame = sparql_dataframe.get(f"http://127.0.0.1:{server.server_port}/sparql", QUERY)
print(*sent, frame, sep="\n")
missing = {name: int(frame[name].isna().sum()) for name in frame}
counted = frame["code"].value_counts().to_dict()
first = [str(frame[name][0]) for name in ("dial", "version", "districts")]
print("no value:", missing, "counted:", counted, "first row:", first)
if (missing, counted, first) != (
    {"name": 1, "code": 1, "dial": 0, "version": 0, "districts": 1},
    {"IT": 1, "NO": 1},
    ["7", "1000.0", "39.0"],
):
    raise SystemExit("the behaviour has changed")
PY
