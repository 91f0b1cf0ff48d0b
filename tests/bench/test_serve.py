"""TEXT2SPARQL's interface, and the challenge's own client that scores what it says."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlencode, urlsplit

import pyoxigraph
import pytest
import yaml
from engines import leave_out
from hostile.servers import Said, Seen
from hostile.servers import serving as answering
from rdflib import BNode, Literal
from small import DIRECTED, EX, films, iri, qir, workbench
from small import FILMS as FILMS_TURTLE
from tables import read_table

import kgwb
from kgwb.bench import load_questions, serve
from kgwb.bench.metrics import score_answers
from kgwb.bench.questions import term_to_string
from kgwb.bench.runner import BenchSetup
from kgwb.bench.serve import ANY_DATASET, EMPTY_QUERY, Text2SparqlServer, make_answer_query
from kgwb.errors import (
    GraphUnreachableError,
    InvalidReplyError,
    KgwbError,
    ModelTimeoutError,
)
from kgwb.kg import Graph, sample_path
from kgwb.kg.base import AnswerKind
from kgwb.llm import ChatRequest, Scripted
from kgwb.run import Run, System, agent
from kgwb.run.answers import Answer, Dialogue, Value
from kgwb.terms import Term

FILMS = "https://example.org/text2sparql/films/"
HERE = Path(__file__).parent
CLIENT = Path(sys.prefix) / "text2sparql"


def values(sparql: str, kg: Graph) -> set[str]:
    if sparql.startswith("ASK"):
        return {str(kg.ask(sparql)).lower()}
    rows = kg.select(sparql)
    assert len(rows.variables) == 1
    return {term_to_string(row[0]) for row in rows.rows if row[0] is not None}


def answered(run: Run) -> set[str]:
    assert run.answer is not None
    return {term_to_string(value.term) for value in run.answer.values}


# --- one query for an answer


@pytest.mark.parametrize(
    ("system", "sample", "profile", "most"),
    [
        ("chatty_kg", "films", "fast", 999),
        ("chatty_kg", "wikidata_slice", "paper", 30),
        ("dog", "scholars", "fast", 20),
    ],
)
def test_one_query_has_the_values_of_the_answer(
    system: str, sample: str, profile: str, most: int
) -> None:
    kg, right = kgwb.open_kg(sample), 0
    setup = BenchSetup.from_workbench(
        kgwb.Workbench(kg, system=system, settings=kgwb.profile(profile))
    )
    kinds = set()
    for one in load_questions(sample_path(sample).with_suffix(".questions.jsonl"))[:most]:
        run = setup.begin(one.standalone or one.question, Dialogue())
        try:
            run.go()
        except KgwbError:  # rules does not read it
            continue
        sparql = make_answer_query(run)
        assert values(sparql, kg) == answered(run), one.question
        kinds |= {word for word in ("ASK", "COUNT", "UNION", "FILTER(false)") if word in sparql}
        right += bool(run.answer)
    assert right > 5 and (system == "dog" or {"ASK", "FILTER(false)"} <= kinds)


DIRECTORS = f"SELECT ?film ?by WHERE {{ ?film <{EX}director> ?by }}"
ACTORS = f"SELECT ?who WHERE {{ <{EX}dune> <{EX}starring> ?who }}"
WRITERS = f"SELECT ?who WHERE {{ <{EX}story> <{EX}author> ?who }}"
PARTS = f"SELECT ?of ?part WHERE {{ ?of <{EX}part> ?part }}"
PARTED = f"<{EX}wheel> <{EX}part> [] , <{EX}hub> ."


QUERIES = {"directors": DIRECTORS, "actors": ACTORS, "writers": WRITERS, "parts": PARTS}


@pytest.mark.parametrize("row", read_table(HERE / "answer_queries.jsonl"), ids=str)
def test_one_query_takes_the_columns_that_have_the_values(row: dict[str, Any]) -> None:
    kg = films(FILMS_TURTLE + PARTED)
    terms = [Literal(int(word)) if word.isdigit() else iri(word) for word in row["wanted"]]
    queries = [QUERIES[name] for name in row["queries"]]
    sparql = make_answer_query(asked(kg, queries, row["kind"], terms))
    assert row["words"] in sparql
    assert values(sparql, kg) == {term_to_string(term) for term in terms}


def test_values_that_no_query_gives_have_the_empty_query() -> None:
    kg = films(FILMS_TURTLE + PARTED)
    blank = next(row[1] for row in kg.select(PARTS).rows if isinstance(row[1], BNode))
    for queries, term in (([], Literal("by heart")), ([DIRECTORS], iri("amy")), ([PARTS], blank)):
        assert make_answer_query(asked(kg, queries, "list", [term])) == EMPTY_QUERY
    assert make_answer_query(asked(kg, [DIRECTORS], "count", [Literal(3)])) == EMPTY_QUERY


def asked(kg: Graph, queries: list[str], kind: AnswerKind, terms: Sequence[Term]) -> Any:
    """As much of a run as its one query is made of."""
    calls = {
        number: SimpleNamespace(kind="select", request={"query": query}, result=kg.select(query))
        for number, query in enumerate(queries)
    }
    reply_data = Answer(kind, tuple(Value(term, str(term)) for term in terms), tuple(queries))
    return SimpleNamespace(answer=reply_data, calls=calls)


# --- over HTTP


@contextmanager
def serving(
    model: Any = None, *, at: str = ANY_DATASET, workers: int = 4, **options: Any
) -> Iterator[Text2SparqlServer]:
    bench = workbench(Scripted(model or DIRECTED), **options)
    with Text2SparqlServer(
        ("127.0.0.1", 0), {at: BenchSetup.from_workbench(bench)}, workers=workers
    ) as service:
        thread = threading.Thread(target=service.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield service
        finally:
            service.shutdown()
            thread.join()


def get(url: str, target: str = "", method: str = "GET", **fields: str) -> tuple[int, Any]:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
    connection.request(method, target or f"/?{urlencode(fields, errors='surrogatepass')}")
    reply = connection.getresponse()
    reply_data = reply.read()
    connection.close()
    assert reply.headers["Content-Type"] == "application/json; charset=utf-8"
    return reply.status, json.loads(reply_data)


def test_a_question_is_answered_with_sparql() -> None:
    with serving(at=FILMS) as service:
        status, reply_data = get(service.url, dataset=FILMS, question="Who directed Arrival?")
    assert status == 200
    query = f"SELECT DISTINCT ?person WHERE {{ <{EX}arrival> <{EX}director> ?person . }}"
    assert reply_data == {"dataset": FILMS, "question": "Who directed Arrival?", "query": query}


def test_without_an_answer_the_query_has_no_solutions_and_there_is_a_reason() -> None:
    with serving({"chatty_kg/qir": qir("Xyzzy | directed by | ?person")}) as service:
        status, reply_data = get(service.url, dataset=FILMS, question="Who directed Xyzzy?")
    assert (status, reply_data["query"]) == (200, EMPTY_QUERY)
    assert "Xyzzy" in reply_data["reason"]
    assert values(EMPTY_QUERY, films()) == set()


def test_values_that_came_from_no_query_are_not_explained_by_what_was_assumed() -> None:
    by_heart = Answer("list", (Value(Literal(7), "7"),), reason="weeks were meant")
    system = System("by_heart", lambda question, dialogue, run: by_heart, {"Answer": (recall,)})
    with serving(system=system) as service:
        _, reply = get(service.url, dataset=FILMS, question="How many days?")
    assert reply["query"] == EMPTY_QUERY
    assert reply["reason"] not in ("", by_heart.reason)


@agent("recall")
def recall(run: Run) -> str:
    """An agent that nobody asks."""
    return ""


@pytest.mark.parametrize(
    "row",
    read_table(HERE / "bad_requests.jsonl"),
    ids=lambda row: row["message"],
)
def test_a_request_that_cannot_be_answered(row: dict[str, Any]) -> None:
    target = row["target"].format(words="why+" * 1_001, long="x" * 70_000)
    with serving(at=FILMS) as service:
        status, reply_data = get(service.url, target, row["method"])
    assert (status, set(reply_data)) == (row["status"], {"error", "hint"})
    assert row["message"] in reply_data["error"]
    assert reply_data["hint"]


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ModelTimeoutError("slow", hint="wait"), 504),
        (GraphUnreachableError("gone", hint="start it"), 502),
        (InvalidReplyError("nonsense", (), hint="edit the prompt"), 502),
    ],
)
def test_a_failure_has_a_status_and_no_query(error: KgwbError, status: int) -> None:
    def fail(request: ChatRequest) -> Any:
        raise error

    with serving(fail) as service:
        reply_data = get(service.url, dataset=FILMS, question="Who directed Arrival?")
    assert reply_data == (status, {"error": error.message, "hint": error.hint})


def test_at_most_workers_runs_are_executed_at_a_time() -> None:
    asking, released = threading.Semaphore(0), threading.Event()

    def reply(request: ChatRequest) -> Any:
        asking.release()
        assert released.wait(60)
        return DIRECTED[request.task]

    with serving(reply, workers=2) as service, ThreadPoolExecutor(6) as pool:
        how = {"question": "Who directed Arrival?"}
        asked = [pool.submit(get, service.url, dataset=str(n), **how) for n in range(6)]
        assert asking.acquire(timeout=60) and asking.acquire(timeout=60)
        a_third = asking.acquire(timeout=1)
        released.set()
        assert [one.result()[0] for one in asked] == [200] * 6
    assert not a_third


def test_clients_that_disconnect_do_no_harm(capfd: pytest.CaptureFixture[str]) -> None:
    with serving() as service:
        whole = b"GET /?dataset=d&question=q HTTP/1.0\r\n\r\n"
        for sent in (b"", b"GET", b"GET / HTTP/1.1\r\n", b"\x00\xff\r\n\r\n", whole):
            with socket.create_connection(service.server_address[:2], timeout=30) as one:  # type: ignore[arg-type]
                one.sendall(sent)
        assert get(service.url, dataset="d", question="Who directed Arrival?")[0] == 200
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.long
def test_unfinished_requests_hold_few_threads_for_a_limited_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(serve, "REQUEST_TIMEOUT_S", 1.0)
    monkeypatch.setattr(serve, "MAX_WAITING_REQUESTS", 4)
    before = threading.active_count()
    with serving(workers=1) as service, ExitStack() as opened, ThreadPoolExecutor(1) as pool:
        address: Any = service.server_address[:2]
        held = [
            opened.enter_context(socket.create_connection(address, timeout=60)) for _ in range(30)
        ]
        for one in held[1:]:
            one.sendall(b"GET / HT")
        asked = pool.submit(get, service.url, dataset="d", question="Who directed Arrival?")
        most = 0
        with suppress(ConnectionError):
            while not asked.done():  # a byte now and then does not help
                held[0].sendall(b"G")
                most = max(most, threading.active_count() - before)
                time.sleep(0.1)
        assert asked.result(timeout=60)[0] == 200
    assert most <= 1 + 1 + 5  # who serves, who asks, and a worker with four who wait


# --- the challenge's own client


@contextmanager
def command(*arguments: str) -> Iterator[str]:
    """``kgwb serve`` in a process of its own; its address."""
    env = {**os.environ, "KGWB_EMBEDDINGS": "lexical"}
    line = [sys.executable, "-m", "kgwb", "serve", "--port", "0", *arguments]
    with subprocess.Popen(line, env=env, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().split()[0]
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 130


def client(name: str, *arguments: str | Path) -> None:
    """Run a command of the client itself."""
    code = (
        f"from text2sparql_client.commands.{name} import {name}_command as command\n"
        "from text2sparql_client.context import ApplicationContext\n"
        "command(obj=ApplicationContext(debug=False))"
    )
    env = {**os.environ, "PYTHONPATH": str(CLIENT), "no_proxy": "127.0.0.1"}
    subprocess.run([sys.executable, "-c", code, *arguments], env=env, check=True, timeout=100)


@contextmanager
def endpoint(sample: str) -> Iterator[str]:
    """A SPARQL endpoint over a sample: the client cannot ask an address that has parameters."""
    store = pyoxigraph.Store()
    store.load(path=str(sample_path(sample)))

    def answer(seen: Seen) -> Said:
        results: Any = store.query(seen.fields["query"][0])
        reply_data = results.serialize(format=pyoxigraph.QueryResultsFormat.JSON)
        return 200, {"Content-Type": "application/sparql-results+json"}, reply_data

    with answering(answer) as server:
        yield server.url


@pytest.mark.long
def test_the_challenges_client_scores_kgwb(tmp_path: Path) -> None:
    if not (CLIENT / "text2sparql_client").is_dir():
        leave_out(f"no {CLIENT}: make test installs the client of the challenge there")
    asked = load_questions(sample_path("films").with_suffix(".questions.jsonl"))
    # The client gives no credit for a right "no" or for a right silence: to it nothing is relevant there.
    asked = [one for one in asked if one.dialogue is None and one.answers not in ((), ("false",))]
    file = tmp_path / "questions.yml"
    entries = [
        {"id": number, "question": {"en": one.question}, "query": {"sparql": one.sparql}}
        for number, one in enumerate(asked, 1)
    ]
    file.write_text(
        yaml.safe_dump({"dataset": {"id": FILMS, "prefix": "films"}, "questions": entries})
    )
    message, right, found, scores = (
        tmp_path / f"{name}.json" for name in ("message", "right", "found", "scores")
    )
    with command(
        "--dataset", f"{FILMS}=films", "--dataset", "http://example.org/cars/=cars"
    ) as url:
        log = ("--answers-db", tmp_path / "db", "--retries", "0", "--retries-log", tmp_path / "log")
        client("ask", file, url, *log, "-o", message)
    with endpoint("films") as graph:
        client("query", file, "-e", graph, "-o", right)
        client("query", file, "-e", graph, "-a", message, "-o", found)
    client("evaluate", "kgwb", right, found, "-o", scores)

    kg = kgwb.open_kg("films")
    setup = BenchSetup.from_workbench(kgwb.Workbench(kg))
    ours = {}
    for number, one in enumerate(asked, 1):
        run = setup.begin(one.question, Dialogue()).go()
        ours[f"films:{number}-en"] = score_answers(sorted(answered(run)), one.answers or ()).f1
    theirs = json.loads(scores.read_text())
    assert {key: theirs[key]["set_F"] for key in ours} == pytest.approx(ours)
    assert theirs["average"]["set_F"] > 0.6
