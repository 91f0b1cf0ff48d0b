"""A real Virtuoso: started here, loaded, and asked for the same as a file."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from rdflib import URIRef

from kgwb.errors import GraphTimeoutError
from kgwb.kg import Limits, queries
from kgwb.kg.dialects import Virtuoso
from kgwb.kg.endpoint import Endpoint
from kgwb.kg.local import LocalGraph

EX = "http://example.org/"
ADA, LONDON, CHARLES = URIRef(EX + "ada"), URIRef(EX + "london"), URIRef(EX + "charles")
INI = """
[Database]
DatabaseFile = virtuoso.db
ErrorLogFile = virtuoso.log
LockFile = virtuoso.lck
TransactionFile = virtuoso.trx
xa_persistent_file = virtuoso.pxa
[TempDatabase]
DatabaseFile = temp.db
TransactionFile = temp.trx
[Parameters]
ServerPort = 127.0.0.1:{sql}
DirsAllowed = {folder}
NumberOfBuffers = 2000
MaxDirtyBuffers = 1000
[HTTPServer]
ServerPort = 127.0.0.1:{http}
ServerRoot = .
ServerThreads = 4
[SPARQL]
ResultSetMaxRows = 50
"""
LOAD = """
ld_dir('{folder}', 'people.ttl', 'http://example.org/graph');
rdf_loader_run();
DB.DBA.RDF_OBJ_FT_RULE_ADD(null, null, 'All');
DB.DBA.VT_INC_INDEX_DB_DBA_RDF_OBJ();
"""
SEARCHED = [
    "Ada Lovelace",
    "lovelace ADA",
    "ada",
    "babb char",
    "Countess Lovelace",
    "LONDON",
    "Londres",
    "O'Brien",
    "Łukasz",
    "zzz",
    "",
    '"near" and or not * ? ( , ;',
    "ada } ; DROP ALL #",
    "a\\' OR 1",
]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _tool(*names: str) -> str:
    found = next((path for name in names if (path := shutil.which(name))), None)
    if found is None:
        reason = f"no {names[0]}: install Debian's virtuoso-opensource-7"
        if os.environ.get("KGWB_REQUIRE_ALL") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    return found


@pytest.fixture(scope="session")
def endpoint_url(tmp_path_factory: pytest.TempPathFactory, people_text: str) -> Iterator[str]:
    server, client = _tool("virtuoso-t"), _tool("isql-vt", "isql-v")
    folder, sql, http = tmp_path_factory.mktemp("virtuoso"), _free_port(), _free_port()
    (folder / "people.ttl").write_text(people_text, encoding="utf-8")
    (folder / "virtuoso.ini").write_text(INI.format(sql=sql, http=http, folder=folder))
    (folder / "load.sql").write_text(LOAD.format(folder=folder))
    process = subprocess.Popen(
        [server, "-f", "-c", "virtuoso.ini"], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        _wait(http, process, folder)
        loaded = subprocess.run(
            [client, f"127.0.0.1:{sql}", "dba", "dba", "load.sql"],
            cwd=folder,
            capture_output=True,
            check=False,
        )
        assert loaded.returncode == 0, loaded
        yield f"http://127.0.0.1:{http}/sparql?default-graph-uri=http://example.org/graph"
    finally:
        process.terminate()
        process.wait(30)


def _wait(port: int, process: subprocess.Popen[bytes], folder: Path) -> None:
    for _ in range(300):
        if process.poll() is not None:
            pytest.fail((folder / "virtuoso.log").read_text())
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    pytest.fail("Virtuoso did not start within 30 s")


@pytest.fixture
def kg(endpoint_url: str) -> Endpoint:
    return Endpoint(endpoint_url)


def test_the_engine_is_recognised(kg: Endpoint) -> None:
    assert isinstance(kg.dialect, Virtuoso)
    assert "bif:contains" in kg.search("ada", 5).query


@pytest.mark.parametrize("text", SEARCHED)
def test_labels_are_found_as_in_the_file(kg: Endpoint, people: LocalGraph, text: str) -> None:
    there, here = kg.search(text, 5), people.search(text, 5)
    assert (there.hits, there.how) == (here.hits, here.how)


def test_exact_labels_and_names_are_those_of_the_file(kg: Endpoint, people: LocalGraph) -> None:
    labels = ["Ada Lovelace", "london", "zoë łukasz-o'brien", "nobody"]
    assert kg.exact(labels) == people.exact(labels)
    iris = [ADA, LONDON, URIRef(EX + "bornIn"), URIRef(EX + "analyticalEngine")]
    assert kg.names(iris) == people.names(iris)


def test_shared_questions_have_the_same_answers(kg: Endpoint, people: LocalGraph) -> None:
    iris = [ADA, LONDON, CHARLES]
    assert queries.describe(kg, iris) == queries.describe(people, iris)
    assert queries.degrees(kg, iris, 3) == queries.degrees(people, iris, 3)
    for iri in iris:
        assert queries.predicates(kg, iri) == queries.predicates(people, iri)


def test_queries_have_the_same_answers(kg: Endpoint, people: LocalGraph) -> None:
    query = "SELECT ?s ?p ?o { ?s ?p ?o }"
    there, here = kg.select(query), people.select(query)
    assert set(there.rows) == set(here.rows)
    assert not there.cut
    assert kg.ask(f"ASK {{ <{ADA}> ?p ?o }}")
    assert not kg.ask(f"ASK {{ <{EX}nobody> ?p ?o }}")
    construct = f"CONSTRUCT WHERE {{ <{ADA}> ?p ?o }}"
    assert set(kg.construct(construct)) == set(people.construct(construct))


def test_the_sites_own_row_limit_is_told(endpoint_url: str) -> None:
    everything = Endpoint(endpoint_url.partition("?")[0])
    rows = everything.select("SELECT ?s { ?s ?p ?o }")
    assert (len(rows.rows), rows.cut) == (50, True)


def test_running_out_of_time_is_an_error(endpoint_url: str) -> None:
    everything = Endpoint(
        endpoint_url.partition("?")[0], dialect="virtuoso", limits=Limits(query_timeout_s=4)
    )
    assert everything.dialect
    # Virtuoso counts with every core: three patterns over its own 2,500 triples take it 20 s on two of them.
    patterns = " . ".join(f"?s{n} ?p{n} ?o{n}" for n in range(5))
    with pytest.raises(GraphTimeoutError):
        everything.select(f"SELECT (COUNT(*) AS ?n) {{ {patterns} }}")
