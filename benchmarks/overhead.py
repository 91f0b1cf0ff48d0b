"""What kgwb adds to a question, beside LangGraph's wiring of the same agents, and what recording costs.

    python benchmarks/overhead.py [questions]

The agents are Chatty-KG's, the model answers from memory what ``rules`` said, embeddings are warm. The base
is the same agent functions called in a row, with nothing between them and graph or model; overhead is what a
run takes beyond that. Every question goes through every variant in turn; figures are medians over questions.
"""

from __future__ import annotations

import gc
import importlib
import inspect
import statistics
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, TypedDict

from pipeline import Recorded, recorded
from table import Row, show

from kgwb.llm.base import ChatReply, ChatRequest
from kgwb.run import Run
from kgwb.run.agents import AgentSpec
from kgwb.run.answers import Answer, Context, Dialogue, Link, Question, RetrievedCandidates
from kgwb.run.steps import Call
from kgwb.systems.chatty_kg.records import (
    QIR,
    Classification,
    GeneratedQueries,
    LinkedRelation,
    LinkingResult,
    QuerySelection,
)
from kgwb.workbench import Workbench

ROUNDS = 5
"""Times that every question goes through every variant; the least counts."""
SYSTEM = "kgwb.systems.chatty_kg"
NO_CALL = Call("", "model", "", {}, 0, None, "", 0.0)
Ask = Callable[[str], Answer | None]
Node = Callable[["State"], "State"]


class Bare:
    """What agents see of a run, without one: no steps, no record, and prompts read once."""

    question = ""
    """What is asked now, as a person typed it; it is set anew for each question."""

    def __init__(self, bench: Workbench) -> None:
        self.system = bench.system
        self.kg, self.settings = bench.kg, bench.setup.settings
        self._model, self._embeddings, self._prompts = (
            bench.models[""],
            bench.setup.embeddings,
            bench.setup.prompts,
        )
        self._texts: dict[str, str] = {}
        self._never = threading.Event()

    def chat(self, request: ChatRequest) -> tuple[Call, ChatReply]:
        return NO_CALL, self._model.complete(request, self.kg, self._never)

    def similarity(self, phrase: str, names: Sequence[str]) -> tuple[float, ...]:
        return self._embeddings.similarity(phrase, names, self.settings.spelling)

    def map(
        self, function: Callable[..., Any], items: Sequence[Any], *rest: Any
    ) -> tuple[Any, ...]:
        return tuple(function(item, *rest, self) for item in items)

    def prompt_text(self, name: str) -> str:
        if name not in self._texts:
            self._texts[name] = self._prompts.text(name)
        return self._texts[name]

    def note(self, text: str) -> None:
        """Nobody reads it."""

    def add_attempt(self, attempt: object) -> None:
        """Nobody looks at it."""


class Unrecorded(Run):
    """A run with its steps whose calls are neither keyed nor kept; what is asked twice is made twice."""

    kg: Any = None
    """The graph itself, in place of one that records."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self.kg = more["kg"]

    @property
    def unrecorded_graph(self) -> Any:
        return self.kg

    def chat(self, request: ChatRequest) -> tuple[Call, ChatReply]:
        return NO_CALL, self.models[""].complete(request, self.kg, self.execution.cancelled)

    def similarity(self, phrase: str, names: Sequence[str]) -> tuple[float, ...]:
        return self.embeddings.similarity(phrase, names, self.settings.spelling)


class State(TypedDict, total=False):
    """What the nodes of the LangGraph graph hand on."""

    question: Question
    dialogue: Dialogue
    english: Question
    context: Context
    standalone: str
    classified: Classification
    qir: QIR
    retrieved: tuple[RetrievedCandidates, ...]
    links: tuple[Link, ...]
    linked: LinkingResult
    generated: GeneratedQueries
    selection: QuerySelection
    answer: Answer


def overhead(given: Recorded) -> list[Row]:
    """Milliseconds that each wiring adds to the bare agents, a question."""
    plain = plain_agents()
    variants = {
        "bare": bare(given.bench, plain),
        "kgwb": workbench(given.bench),
        "LangGraph": lang_graph(given.bench, plain),
        "LangGraph, InMemorySaver": lang_graph(given.bench, plain, saver=True),
    }
    taken = interleaved(variants, given.questions)
    _same_answers(variants, given)
    added = {name: _median_difference(taken[name], taken["bare"]) for name in list(variants)[1:]}
    what = f"overhead a question ({len(given.runs)}, {given.name})"
    kgwb_ms = 1000 * added["kgwb"]
    return [
        Row(f"{what}: the agents alone", 1000 * statistics.median(taken["bare"]), "ms"),
        Row(f"{what}: LangGraph", 1000 * added["LangGraph"], "ms"),
        Row(f"{what}: LangGraph, InMemorySaver", 1000 * added["LangGraph, InMemorySaver"], "ms"),
        Row(f"{what}: kgwb", kgwb_ms, "ms", added["kgwb"] / added["LangGraph, InMemorySaver"],
            "LangGraph with InMemorySaver", most=1),
        Row(f"{what}: kgwb", kgwb_ms, "ms", added["kgwb"] / added["LangGraph"], "LangGraph without"),
    ]  # fmt: skip


def recording_cost(given: Recorded) -> list[Row]:
    """How much longer a question takes because it is recorded: in memory, and in a file too."""
    with tempfile.TemporaryDirectory() as folder:
        variants = {
            "off": running(Unrecorded, given.bench),
            "on": running(Run, given.bench),
            "in a file": running(Run, given.bench, Path(folder)),
        }
        taken = interleaved(variants, given.questions)
    off = taken["off"]
    what = f"record ({len(given.runs)}, {given.name})"
    rows = [Row(f"{what}: off", 1000 * statistics.median(off), "ms")]
    for name, most in (("on", 1.1), ("in a file", None)):
        ratios = [one / other for one, other in zip(taken[name], off, strict=True)]
        rows.append(
            Row(f"{what}: {name}", 1000 * statistics.median(taken[name]), "ms",
                statistics.median(ratios), "off, median of pairs", most)
        )  # fmt: skip
        rows.append(
            Row(f"{what}: {name}, all questions", 1000 * statistics.fmean(taken[name]), "ms",
                sum(taken[name]) / sum(off), "off, of sums", most)
        )  # fmt: skip
    return rows


# --- the variants


def plain_agents() -> dict[str, Any]:
    """The system's modules by name, loaded once more with agents that are plain functions and no steps.

    The module of the settings stays: those of another class would be converted at each read.
    """
    staying = f"{SYSTEM}.settings"

    def taken() -> dict[str, Any]:
        names = [name for name in sys.modules if name.startswith(SYSTEM) and name != staying]
        return {name: sys.modules.pop(name) for name in names}

    kept, parent = taken(), importlib.import_module("kgwb.systems")
    try:
        importlib.import_module(SYSTEM)
        loaded = taken()
    finally:
        sys.modules.update(kept)
        for name, module in kept.items():
            if name.count(".") == 2:
                setattr(parent, name.rpartition(".")[2], module)
    for module in loaded.values():
        for name, value in list(vars(module).items()):
            spec = getattr(value, "spec", None) if inspect.isfunction(value) else None
            if isinstance(spec, AgentSpec):
                setattr(module, name, spec.function)
    return {name.rpartition(".")[2]: module for name, module in loaded.items()}


def bare(bench: Workbench, plain: Mapping[str, Any]) -> Ask:
    """The agents in a row."""
    run, answer = Bare(bench), plain["chatty_kg"].answer_question

    def ask(question: str) -> Answer | None:
        run.question = question
        return answer(Question(question), Dialogue(), run)  # type: ignore[no-any-return]

    return ask


def workbench(bench: Workbench) -> Ask:
    """kgwb as a person uses it."""

    def ask(question: str) -> Answer | None:
        bench.new_dialogue()
        return bench.ask(question).answer

    return ask


def running(kind: type[Run], bench: Workbench, folder: Path | None = None) -> Ask:
    """One run of that class a question; with a folder, it is kept in a file call by call."""

    def ask(question: str) -> Answer | None:
        run = kind(
            bench.system,
            question,
            kg=bench.kg,
            models=bench.models,
            settings=bench.setup.settings,
            prompts=bench.setup.prompts,
            embeddings=bench.setup.embeddings,
            path=folder / uuid.uuid4().hex if folder else None,
        )
        return run.go().answer

    return ask


def lang_graph(bench: Workbench, plain: Mapping[str, Any], *, saver: bool = False) -> Ask:
    """The agents as nodes of a compiled StateGraph, each a step; entities and relations within theirs."""
    from langgraph.checkpoint.memory import InMemorySaver

    checkpointer = InMemorySaver() if saver else None
    run = Bare(bench)
    graph = _wired(plain, run).compile(checkpointer=checkpointer)

    def ask(question: str) -> Answer | None:
        run.question = question
        thread = uuid.uuid4().hex
        config: Any = {"configurable": {"thread_id": thread}} if saver else None
        made = graph.invoke({"question": Question(question), "dialogue": Dialogue()}, config)
        if checkpointer:
            checkpointer.delete_thread(thread)
        return made["answer"]  # type: ignore[no-any-return]

    return ask


def nodes_of(plain: Mapping[str, Any], run: Any) -> dict[str, Node]:
    """The agents in flow order, each a function of the state; entities and relations within theirs."""
    chat, matching, planning = plain["chat"], plain["matching"], plain["query_planning"]

    def linked(state: State) -> State:
        linked_relations: tuple[LinkedRelation, ...] = plain["relation_linking"].link_relations(
            state["qir"], state["links"], run
        )
        return {"linked": LinkingResult(state["links"], linked_relations)}

    def rephrased(state: State) -> State:
        return {
            "standalone": chat.rephrase_question(
                state["english"].text, state["context"], run
            ).question
        }

    def retrieved(state: State) -> State:
        qir, question = state["qir"], state["standalone"]
        candidates = (
            matching.retrieve_candidates(entity, question, qir.type_mentions, run)
            for entity in qir.entities
        )
        return {"retrieved": tuple(candidates)}

    def selected(state: State) -> State:
        question, context = state["standalone"], state["context"]
        links = (
            plain["matching"].select_vertex(each, question, context, run)
            for each in state["retrieved"]
        )
        return {"links": tuple(links)}

    return {
        "translator": lambda s: {"english": chat.translate_question(s["question"], run)},
        "context": lambda s: {"context": chat.build_context(s["dialogue"], run)},
        "classifier": lambda s: {
            "classified": chat.classify_question(s["english"].text, s["context"], run),
            "standalone": s["english"].text,
        },
        "rephraser": rephrased,
        "qir": lambda s: {"qir": plain["qir"].extract_qir(s["standalone"], run)},
        "entity_retriever": retrieved,
        "vertex_selection": selected,
        "relation_linking": linked,
        "query_generator": lambda s: {
            "generated": planning.generate_queries(s["qir"], s["linked"], run)
        },
        "predicate_selection": lambda s: {
            "selection": plain["predicate_selection"].select_predicates(
                s["generated"], s["standalone"], s["linked"], run
            )
        },
        "execution": lambda s: {
            "answer": planning.execute_queries(s["selection"], s["qir"], s["linked"], run)
        },
        "what_else": lambda s: {"answer": chat.answer_what_else(s["answer"], s["context"], run)},
        "answer_writer": lambda s: {"answer": chat.write_answer(s["answer"], s["standalone"], run)},
    }


def next_node(chat: Any, run: Any) -> dict[str, Callable[[State], str]]:
    """Where the flow branches: what follows a node, by the state; "" is the end."""

    def written(state: State) -> str:
        return "answer_writer" if chat.can_be_reworded(state["answer"], run) else ""

    def finished(state: State) -> str:
        asks_for_others = chat.asks_for_others(state["english"].text, state["context"], run)
        return "what_else" if asks_for_others else written(state)

    def understood(state: State) -> str:
        return (
            "rephraser"
            if state["classified"].label == "dependent" and state["context"].turns
            else "qir"
        )

    return {"classifier": understood, "execution": finished, "what_else": written}


BRANCHES = {
    "classifier": ("rephraser", "qir"),
    "execution": ("what_else", "answer_writer", ""),
    "what_else": ("answer_writer", ""),
    "answer_writer": ("",),
}
"""What may follow a node, where that is not the next one of ``nodes_of``."""


def _wired(plain: Mapping[str, Any], run: Any) -> Any:
    from langgraph.graph import END, START, StateGraph

    nodes, choices = nodes_of(plain, run), next_node(plain["chat"], run)
    graph = StateGraph(State)
    for name, node in nodes.items():
        graph.add_node(name, node)
    graph.add_edge(START, next(iter(nodes)))
    for name, following in pairwise(nodes):
        if name not in BRANCHES:
            graph.add_edge(name, following)
    for name, ends in BRANCHES.items():
        if name in choices:
            graph.add_conditional_edges(name, choices[name], {end: end or END for end in ends})
        else:
            graph.add_edge(name, END)
    return graph


# --- timing


def interleaved(variants: Mapping[str, Ask], questions: Sequence[str]) -> dict[str, list[float]]:
    """Seconds of each question under each variant, the least of all rounds; the order turns every time."""
    taken = {name: [float("inf")] * len(questions) for name in variants}
    names = list(variants)
    with _no_collection():
        for turn in range(ROUNDS):
            for place, question in enumerate(questions):
                start = (place + turn) % len(names)
                for name in names[start:] + names[:start]:
                    began = time.perf_counter()
                    variants[name](question)
                    taken[name][place] = min(taken[name][place], time.perf_counter() - began)
                if place % 10 == 0:
                    gc.collect()
    return taken


@contextmanager
def _no_collection() -> Iterator[None]:
    """What one variant leaves must not be collected in another one's time."""
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.unfreeze()


def _median_difference(one: Sequence[float], other: Sequence[float]) -> float:
    return statistics.median(first - second for first, second in zip(one, other, strict=True))


def _same_answers(variants: Mapping[str, Ask], given: Recorded) -> None:
    """Raises AssertionError unless every variant gives the answers of the recorded runs."""
    for run in given.runs[:20]:
        for name, ask in variants.items():
            assert ask(run.question) == run.answer, f"{name}: another answer to {run.question}"


def main() -> None:
    """Prints the table."""
    given = recorded(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
    show([*overhead(given), *recording_cost(given)])


if __name__ == "__main__":
    main()
