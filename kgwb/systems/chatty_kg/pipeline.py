"""Chatty-KG as a table of contents: its agents in flow order (Figure 2; Algorithms 1, 2 and 3)."""

from __future__ import annotations

from collections.abc import Mapping

from rdflib import URIRef

from kgwb.flow import Answer, Context, Dialogue, Link, Question, Turn
from kgwb.run import AgentSpec, Run, agent, spec_of
from kgwb.systems.chatty_kg import chat
from kgwb.systems.chatty_kg import rules as _rules  # noqa: F401  # the model rules answers its agents by them
from kgwb.systems.chatty_kg import views as _views  # noqa: F401  # its records show themselves by them
from kgwb.systems.chatty_kg.classifier import classify
from kgwb.systems.chatty_kg.execution import execute
from kgwb.systems.chatty_kg.matching import match
from kgwb.systems.chatty_kg.predicate_selection import select_queries
from kgwb.systems.chatty_kg.qir import extract
from kgwb.systems.chatty_kg.query_generator import generate
from kgwb.systems.chatty_kg.records import QIR, Classified
from kgwb.systems.chatty_kg.relation_linking import link_relation
from kgwb.systems.chatty_kg.rephraser import rephrase
from kgwb.systems.retriever import retrieve
from kgwb.systems.vertex_selection import link_entity, select

REPHRASINGS = 3
"""As published, a rewritten question is classified again, at most this often (reference code)."""


def answer(question: Question, dialogue: Dialogue, run: Run) -> Answer:
    """Answer one turn of a dialogue; the dialogue itself is kept by whoever asks."""
    english = chat.translate(question, run)
    context = chat.build_context(dialogue, run)
    standalone = understand(english.text, context, run)
    qir = extract(standalone, run)
    found = plan(qir, standalone, context, run)
    if chat.asks_for_others(english.text, context, run):
        found = chat.leave_out(found, context, run)
    return chat.reword(found, standalone, run) if chat.rewordable(found, run) else found


@agent("understanding")
def understand(question: str, context: Context, run: Run) -> str:
    """The question made self-contained where it is not (Algorithm 1, lines 1 to 6)."""
    if not run.settings.multi_turn:
        return question
    classified = classify(question, context, run)
    for _ in range(1 if run.settings.fast else REPHRASINGS):
        if not _needs_rephrasing(classified, context):
            break
        question = rephrase(question, context, run).question
        if not run.settings.fast:
            classified = classify(question, context, run)
    return question


def _needs_rephrasing(classified: Classified, context: Context) -> bool:
    return classified.label == "dependent" and bool(context.turns)


@agent("query_planning")
def plan(qir: QIR, question: str, context: Context, run: Run) -> Answer:
    """Link, generate, select and execute (Algorithm 3)."""
    linked = match(qir, question, context, run)
    generated = generate(qir, linked, run)
    selection = select_queries(generated, question, linked, run)
    return execute(selection, qir, linked, run)


def turn(run: Run) -> Turn:
    """What the dialogue remembers: question and answers, what was linked, what the answers stood on."""
    answered = run.answer or Answer("list")
    steps = run.by_key
    links: tuple[Link, ...] = ()
    if "matching" in steps and steps["matching"].done:
        links = steps["matching"].output.links
    linked = {link.entity: link.vertex.iri for link in links if link.vertex}
    standalone = steps["understanding"].output if "understanding" in steps else None
    stood_on = [term for triple in answered.support for term in triple[::2]]
    vertices = [term for term in (*stood_on, *(v.term for v in answered.values)) if isinstance(term, URIRef)]
    return Turn(
        run.question,
        answered.labels,
        standalone if standalone and standalone != run.question else "",
        tuple(linked),
        tuple(linked.values()),
        tuple(dict.fromkeys(vertices)),
    )


class ChattyKG:
    """The system as the run sees it."""

    name = "chatty_kg"
    agents: tuple[AgentSpec, ...] = tuple(
        spec_of(function)
        for function in (
            chat.translate,
            chat.build_context,
            understand,
            classify,
            rephrase,
            extract,
            plan,
            match,
            link_entity,
            retrieve,
            select,
            link_relation,
            generate,
            select_queries,
            execute,
            chat.leave_out,
            chat.reword,
        )
    )
    stages = (
        ("Understand", ("translator", "context", "classifier", "rephraser", "qir")),
        ("Link", ("entity_retriever", "vertex_selection", "relation_linking")),
        ("Query", ("query_generator", "predicate_selection", "execution")),
        ("Answer", ("what_else", "answer_writer")),
    )
    supervisors: Mapping[str, tuple[str, ...]] = {
        "understanding": ("classifier", "rephraser"),
        "query_planning": ("matching", "query_generator", "predicate_selection", "execution"),
        "matching": ("entity_linking", "relation_linking"),
        "entity_linking": ("entity_retriever", "vertex_selection"),
    }
    answer = staticmethod(answer)
    turn = staticmethod(turn)


SYSTEM = ChattyKG()
