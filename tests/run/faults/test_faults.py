"""Faults of a graph and of a model in the middle of a run: told clearly, nothing lost, and gone on from."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import faulty
import pytest
import rdflib
from faulty import Server, by_form, graph_server, model_server, serving
from rdflib import URIRef
from small import DIRECTED, EX, GuessReply, prompt

from kgwb.cli import main
from kgwb.errors import (
    GraphError,
    GraphTimeoutError,
    GraphUnreachableError,
    ModelTimeoutError,
    ModelUnreachableError,
)
from kgwb.kg import Graph, QueryLimits
from kgwb.kg.embeddings import Embeddings
from kgwb.kg.endpoint import Endpoint
from kgwb.llm import model as open_model
from kgwb.run import Run, System, agent
from kgwb.run.answers import Answer, Dialogue, Question, Value
from kgwb.run.ask import ask
from kgwb.run.prompts import Prompts
from kgwb.workbench import Workbench

# --- a system that asks everything once


DENIS = f"<{EX}denis>"
LABEL = "<http://www.w3.org/2000/01/rdf-schema#label>"
ASKS: dict[str, Callable[[Graph], object]] = {
    "select": lambda kg: (
        kg.select(f"SELECT ?film ?name {{ ?film <{EX}director> {DENIS} ; {LABEL} ?name }}").rows
    ),
    "ask": lambda kg: kg.ask(f"ASK {{ ?film <{EX}director> {DENIS} }}"),
    "construct": lambda kg: sorted(
        kg.construct(f"CONSTRUCT WHERE {{ ?film <{EX}director> {DENIS} }}")
    ),
    "search": lambda kg: kg.search("Dune", 5).hits,
    "exact": lambda kg: kg.exact(["Arrival"]),
    "names": lambda kg: kg.names([URIRef(EX + "denis")]),
}
GRAPH_PLACES = tuple(ASKS)
MODEL_PLACES = ("openai", "ollama")


def _asking(place: str) -> Callable[[str, Run], str]:
    @agent(place)
    def asks(before: str, run: Run) -> str:
        """What the graph, or the model, says to one question."""
        if place in ASKS:
            return str(ASKS[place](run.kg))
        return ask(f"tour/{place}", {"before": str(len(before))}, GuessReply, run).guess

    return asks


STEPS = {place: _asking(place) for place in ("openai", *GRAPH_PLACES, "ollama")}


def take_tour(question: Question, dialogue: Dialogue, run: Run) -> Answer:
    said = ""
    for step in STEPS.values():
        said += step(said, run)
    return Answer("list", (Value(rdflib.Literal(said), said),))


TOUR = System("tour", take_tour, STEPS.values())
"""A model, every kind of query, and another model."""


def _echo(body: dict[str, Any]) -> str:
    said = next(message["content"] for message in body["messages"] if message["role"] == "user")
    return json.dumps({"guess": said, "sure": True})


class Town:
    """A graph and two models, each behind a server."""

    def __init__(self) -> None:
        models = {protocol: model_server(protocol, _echo) for protocol in MODEL_PLACES}
        self.servers = {"graph": graph_server(), **models}

    def of(self, place: str) -> Server:
        return self.servers.get(place, self.servers["graph"])

    def begin(self, path: Path | None = None) -> Run:
        """A run of the tour, with a graph and models that have seen nothing yet."""
        models = {place: open_model(f"{place}:tiny@{self.of(place).url}") for place in MODEL_PLACES}
        texts = {f"tour/{place}": prompt("before", "after {{before}}") for place in MODEL_PLACES}
        kg = Endpoint(self.of("graph").url, dialect="generic")
        given: dict[str, Any] = {
            "prompts": Prompts(texts=texts),
            "embeddings": Embeddings("lexical"),
        }
        return Run(TOUR, "What is it?", kg=kg, models=models, path=path, **given)

    def asked(self) -> list[tuple[str, str]]:
        return [
            (place, seen.query or json.dumps(seen.data))
            for place, server in self.servers.items()
            for seen in server.seen
        ]


@pytest.fixture(scope="module")
def undisturbed() -> Iterator[tuple[Answer | None, list[tuple[str, str]]]]:
    """What the tour answers, and everything it asks on the way."""
    found = Town()
    with serving(*found.servers.values()):
        yield found.begin().go().answer, found.asked()


@pytest.fixture
def town(monkeypatch: pytest.MonkeyPatch) -> Iterator[Town]:
    monkeypatch.setattr("kgwb.llm.remote.CONNECT_TIMEOUT_S", 0.2)
    found = Town()
    with serving(*found.servers.values()):
        yield found


# --- every fault in every place

UNREACHABLE, LATE, WRONG = "unreachable", "late", "wrong"
ERRORS = {
    (UNREACHABLE, "graph"): GraphUnreachableError,
    (LATE, "graph"): GraphTimeoutError,
    (WRONG, "graph"): GraphError,
    (UNREACHABLE, "model"): ModelUnreachableError,
    (LATE, "model"): ModelTimeoutError,
    (WRONG, "model"): ModelUnreachableError,
}
CUT, SAME, REPLACED = "a stated part", "the whole answer", "broken characters shown"
FAULTS: dict[str, tuple[faulty.Fault | None, str, dict[str, str]]] = {
    "refused": (None, UNREACHABLE, {}),
    "reset": (faulty.reset, UNREACHABLE, {}),
    "slow": (faulty.slow, LATE, {}),
    "trickling head": (faulty.trickling_head, LATE, {}),
    "trickling body": (faulty.trickling_body, LATE, {}),
    "trickling error": (faulty.trickling_error, LATE, {}),
    "cut": (faulty.cut, UNREACHABLE, {}),
    "broken chunk": (faulty.broken_chunk, UNREACHABLE, {}),
    "html": (faulty.html, WRONG, {}),
    "error inside": (faulty.error_inside, WRONG, {}),
    "error in words": (faulty.error_in_words, WRONG, {}),
    "error later": (faulty.error_later, WRONG, {}),
    "partial": (
        faulty.partial,
        LATE,
        {"select": CUT, "ask": SAME, **dict.fromkeys(MODEL_PLACES, SAME)},
    ),
    "big": (faulty.big, WRONG, {**dict.fromkeys(GRAPH_PLACES, SAME), "select": CUT}),
    "endless": (faulty.endless, WRONG, {}),
    "broken IRI": (faulty.broken_iri, WRONG, {"ask": SAME, **dict.fromkeys(MODEL_PLACES, SAME)}),
    "broken text": (
        faulty.broken_text,
        WRONG,
        {**dict.fromkeys(("select", "names"), REPLACED), "ask": SAME, "construct": SAME},
    ),
}


@pytest.mark.parametrize("place", [*GRAPH_PLACES, *MODEL_PLACES])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_told_and_the_run_goes_on_from_it(
    town: Town,
    undisturbed: tuple[Answer | None, list[tuple[str, str]]],
    tmp_path: Path,
    fault: str,
    place: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    answer, in_all = undisturbed
    misbehave, usual, others = FAULTS[fault]
    expected = others.get(place, usual)
    run = town.begin(tmp_path / "run.jsonl").go(before=place)
    before = town.asked()
    with _misbehaving(town.of(place), misbehave, run, expected):
        if expected in (CUT, SAME, REPLACED):
            caplog.clear()
            with caplog.at_level(logging.WARNING, "kgwb"):
                run.go(until=place)
            _as_stated(run, place, expected, caplog.text)
        else:
            error = ERRORS[expected, "model" if place in MODEL_PLACES else "graph"]
            with pytest.raises(error) as caught:
                run.go()
            assert caught.value.hint
            assert "Traceback" not in str(caught.value) and len(str(caught.value)) < 1500
            assert run.status == "failed" and run[place].error
    earlier = list(STEPS)[: list(STEPS).index(place)]
    kept = Run.load(tmp_path / "run.jsonl", TOUR)
    kept.go(until=len(earlier))
    assert [step.key for step in kept.steps if step.done] == earlier
    if expected in (CUT, REPLACED):
        run.refresh(place)
    known = town.asked()
    assert run.go().status == "done"
    assert run.answer == answer
    assert Run.load(tmp_path / "run.jsonl", TOUR).go().answer == answer
    again = _new(town.asked(), known)
    assert not set(again) & set(before)
    assert len(again) <= len(_new(in_all, before))


def _new(now: list[tuple[str, str]], known: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """What is asked now beyond what was known."""
    left = list(now)
    for one in known:
        left.remove(one)
    return left


def _as_stated(run: Run, place: str, expected: str, logged: str) -> None:
    notes, output = run[place].notes, run.output(place)
    assert (
        (expected == REPLACED)
        == ("\ufffd" in output)
        == ("not UTF-8" in logged and expected == REPLACED)
    )
    if expected == CUT and place == "select":
        assert any("was cut" in note for note in notes)


class _misbehaving:
    """The server misbehaves, and nobody waits long for it."""

    def __init__(self, server: Server, fault: faulty.Fault | None, run: Run, expected: str) -> None:
        self.server, self.fault, self.run, self.expected = server, fault, run, expected

    def __enter__(self) -> None:
        self.settings, kg = self.run.settings, self.run.unrecorded_graph
        assert isinstance(kg, Endpoint)
        self.limits = kg.limits
        if self.expected == LATE:
            kg.limits = replace(kg.limits, query_timeout_s=0.5)
            self.run.settings = self.settings.with_changes(model_timeout_s=0.5)
        if self.fault is None:
            self.server.stop()
        self.server.fault = self.fault

    def __exit__(self, *_: object) -> None:
        self.server.fault = None
        if self.fault is None:
            self.server.start()
        self.run.settings, self.run.unrecorded_graph.limits = self.settings, self.limits  # type: ignore[union-attr]


# --- what of a partial result is sound

PART = f"?film <{EX}director> {DENIS}"
PARTIAL = {
    "SELECT * { PART }": True,
    "SELECT DISTINCT ?film { PART } ORDER BY ?film": True,
    "SELECT * { PART } LIMIT 1": True,
    "SELECT * { { PART } UNION { ?film ?p ?o FILTER(?o > 100) } }": True,
    "SELECT (COUNT(*) AS ?n) { PART }": False,
    "SELECT (MAX(?film) AS ?last) { PART }": False,
    "SELECT ?film { PART . ?film ?p ?o } GROUP BY ?film HAVING (COUNT(?o) > 1)": False,
    "SELECT * { { SELECT (COUNT(?film) AS ?n) { PART } } }": False,
    "SELECT * { PART } ORDER BY ?film LIMIT 1": False,
    "SELECT * { { SELECT ?film { PART } ORDER BY ?film LIMIT 1 } }": False,
    "SELECT * { PART OPTIONAL { ?film ?p ?o } }": False,
    "SELECT * { PART MINUS { ?film ?p 116 } }": False,
    "SELECT * { PART FILTER NOT EXISTS { ?film ?p 116 } }": False,
    "SELECT * { PART FILTER(?film = <urn:none>) }": False,
    "ASK { PART }": True,
    "ASK { PART FILTER(?film = <urn:none>) }": False,
    "ASK { PART FILTER NOT EXISTS { ?film ?p 116 } }": False,
    "CONSTRUCT WHERE { PART }": False,
}


@pytest.mark.parametrize("state", [False, True])
@pytest.mark.parametrize("query", PARTIAL)
def test_a_part_is_an_answer_only_where_it_cannot_be_wrong(
    town: Town, query: str, state: bool
) -> None:
    town.of("graph").fault = faulty.partial_state if state else faulty.partial
    kg, text = Endpoint(town.of("graph").url, dialect="generic"), query.replace("PART", PART)
    asks = {"SELECT": lambda: kg.select(text).cut, "ASK": lambda: kg.ask(text)}
    ask_it = asks.get(query.split(maxsplit=1)[0], lambda: bool(kg.construct(text)))
    if PARTIAL[query]:
        assert ask_it()
    else:
        with pytest.raises(GraphTimeoutError, match="only a part of the result") as caught:
            ask_it()
        assert caught.value.hint


def test_more_than_the_byte_limit_is_refused(town: Town) -> None:
    kg = Endpoint(town.of("graph").url, limits=QueryLimits(byte_limit=100))
    with pytest.raises(GraphError, match="more than 100 bytes") as caught:
        kg.select("SELECT * { ?s ?p ?o }")
    assert caught.value.hint
    assert kg.ask("ASK { ?s ?p ?o }")


# --- Chatty-KG, disturbed at every request

QUESTION = "Who directed Arrival?"


@pytest.fixture
def chatty() -> Iterator[tuple[Server, Server]]:
    """A graph and a model for Chatty-KG."""
    graph, model = graph_server(), model_server("openai", by_form(DIRECTED))
    with serving(graph, model):
        yield graph, model


def _workbench(graph: Server, model: Server) -> Workbench:
    kg = Endpoint(graph.url, dialect="generic")
    return Workbench(kg, f"openai:tiny@{model.url}", embeddings=Embeddings("lexical"))


MISBEHAVIOURS = (faulty.html, faulty.cut, faulty.error_inside, faulty.reset, faulty.broken_chunk)


def _disturb(server: Server, number: int, fault: faulty.Fault) -> None:
    """A fault befalls the server at that request, and at all after it."""
    server.fault, server.hit = fault, lambda _: len(server.seen) >= number


# --- what the person sees


@pytest.mark.parametrize("misbehave", MISBEHAVIOURS)
@pytest.mark.parametrize("place", ["graph", "model"])
def test_the_terminal_tells_a_fault_in_words_and_goes_on_from_it(
    chatty: tuple[Server, Server],
    tmp_path: Path,
    misbehave: faulty.Fault,
    place: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    graph, model = chatty
    server = graph if place == "graph" else model
    command = ["ask", "--kg", graph.url, "--model", f"openai:tiny@{model.url}"]
    command += ["--save", str(tmp_path / "run.jsonl"), QUESTION]
    _disturb(server, 2, misbehave)
    assert main(command) == 2
    said = capsys.readouterr().err
    assert said.startswith("kgwb: ") and "What to do: " in said
    assert "Traceback" not in said and len(said.splitlines()) == 2
    server.fault = None
    before = len(model.seen)
    assert main(command) == 0
    assert "Denis Villeneuve" in capsys.readouterr().out
    assert len(model.seen) - before == (1 if place == "model" else 2 - (before > 0) - (before > 1))
