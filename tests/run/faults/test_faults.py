"""Faults of a graph and of a model in the middle of a run: told clearly, nothing lost, and gone on from."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import faulty
import pytest
import rdflib
from faulty import Server, graph_server, model_server, serving
from small import EX, GuessReply, prompt

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

    def asked(self) -> set[str]:
        """What was asked since the last time."""
        found = set()
        for server in self.servers.values():
            found |= {seen.query or json.dumps(seen.data) for seen in server.seen}
            server.seen.clear()
        return found


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
FAULTS: dict[str, tuple[faulty.Fault | None, str]] = {
    "refused": (None, UNREACHABLE),
    "reset": (faulty.reset, UNREACHABLE),
    "slow": (faulty.slow, LATE),
    "trickling head": (faulty.trickling_head, LATE),
    "trickling body": (faulty.trickling_body, LATE),
    "cut": (faulty.cut, UNREACHABLE),
    "html": (faulty.html, WRONG),
    "error inside": (faulty.error_inside, WRONG),
    "error later": (faulty.error_later, WRONG),
    "endless": (faulty.endless, WRONG),
}


@pytest.mark.parametrize("place", [*GRAPH_PLACES, *MODEL_PLACES])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_told_and_the_run_goes_on_from_it(
    town: Town, tmp_path: Path, fault: str, place: str
) -> None:
    answer = town.begin().go().answer
    town.asked()
    misbehave, expected = FAULTS[fault]
    run = town.begin(tmp_path / "run.jsonl").go(before=place)
    before = town.asked()
    error = ERRORS[expected, "model" if place in MODEL_PLACES else "graph"]
    with (
        misbehaving(town.of(place), misbehave, run, expected),
        pytest.raises(error) as caught,
    ):
        run.go()
    assert caught.value.hint
    assert "Traceback" not in str(caught.value) and len(str(caught.value)) < 1500
    assert run.status == "failed" and run[place].error
    earlier = list(STEPS)[: list(STEPS).index(place)]
    kept = Run.load(tmp_path / "run.jsonl", TOUR)
    kept.go(until=len(earlier))
    assert [step.key for step in kept.steps if step.done] == earlier
    town.asked()
    assert (run.go().status, run.answer) == ("done", answer)
    assert Run.load(tmp_path / "run.jsonl", TOUR).go().answer == answer
    assert not town.asked() & before


@contextmanager
def misbehaving(
    server: Server, fault: faulty.Fault | None, run: Run, expected: str
) -> Iterator[None]:
    """The server misbehaves, and nobody waits long for it."""
    settings, kg = run.settings, run.unrecorded_graph
    assert isinstance(kg, Endpoint)
    limits = kg.limits
    if expected == LATE:
        kg.limits = replace(limits, query_timeout_s=0.5)
        run.settings = settings.with_changes(model_timeout_s=0.5)
    server.fault = fault
    if fault is None:
        server.stop()
    yield
    server.fault = None
    if fault is None:
        server.start()
    run.settings, kg.limits = settings, limits


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


@pytest.mark.parametrize("fault", [faulty.partial, faulty.partial_state])
@pytest.mark.parametrize("query", PARTIAL)
def test_a_part_is_an_answer_only_where_it_cannot_be_wrong(
    town: Town, query: str, fault: faulty.Fault
) -> None:
    town.of("graph").fault = fault
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
