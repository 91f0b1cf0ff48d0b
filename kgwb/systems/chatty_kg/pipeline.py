"""Chatty-KG as a table of contents: its agents in flow order (Figure 2; Algorithms 1, 2 and 3)."""

from __future__ import annotations

from kgwb.flow import CANNOT_EXPRESS, Answer, Context, Dialogue, Question, Turn
from kgwb.run import Run, System, agent, remember_turn
from kgwb.systems.chatty_kg import chat
from kgwb.systems.chatty_kg.chat import classify_question, rephrase_question
from kgwb.systems.chatty_kg.gold import GOLD
from kgwb.systems.chatty_kg.matching import (
    link_entity,
    link_relation,
    match_qir,
    retrieve_candidates,
)
from kgwb.systems.chatty_kg.qir import extract_qir
from kgwb.systems.chatty_kg.queries import execute_queries, generate_queries, select_queries
from kgwb.systems.chatty_kg.records import QIR, LinkingResult
from kgwb.systems.chatty_kg.rules import RULES
from kgwb.systems.chatty_kg.settings import ChattySettings
from kgwb.systems.chatty_kg.views import VIEWS
from kgwb.systems.linking import select_vertex
from kgwb.systems.rules import RULES as LINKING_RULES

MAX_REPHRASINGS = 3
"""As published, a rewritten question is classified again, at most this often (reference code)."""


def answer_question(question: Question, dialogue: Dialogue, run: Run) -> Answer:
    """Answer one turn of a dialogue; the dialogue itself is kept by whoever asks."""
    english = chat.translate_question(question, run)
    context = chat.build_context(dialogue, run)
    standalone = make_standalone(english.text, context, run)
    qir = extract_qir(standalone, run)
    result = answer_qir(qir, standalone, context, run)
    if chat.asks_for_others(english.text, context, run):
        result = chat.leave_out_mentioned(result, context, run)
    return (
        chat.reword_answer(result, standalone, run) if chat.can_be_reworded(result, run) else result
    )


@agent("understanding")
def make_standalone(question: str, context: Context, run: Run) -> str:
    """The question made self-contained where it is not (Algorithm 1, lines 1 to 6)."""
    if not ChattySettings.of_run(run).multi_turn:
        return question
    classified = classify_question(question, context, run)
    for _ in range(1 if run.settings.is_fast else MAX_REPHRASINGS):
        if classified.label == "self-contained" or not context.turns:
            break
        question = rephrase_question(question, context, run).question
        if not run.settings.is_fast:
            classified = classify_question(question, context, run)
    return question


@agent("query_planning")
def answer_qir(qir: QIR, question: str, context: Context, run: Run) -> Answer:
    """Link, generate, select and execute (Algorithm 3); what the triples cannot say is not answered."""
    if qir.beyond:
        return Answer(qir.kind, reason=f"{CANNOT_EXPRESS}: {'; '.join(qir.beyond)}")
    linked = match_qir(qir, question, context, run)
    generated = generate_queries(qir, linked, run)
    selection = select_queries(generated, question, linked, run)
    return execute_queries(selection, qir, linked, run)


def make_turn(run: Run) -> Turn:
    """What the dialogue remembers: question and answers, what was linked, what the answers stood on."""
    outputs = {step.key: step.output for step in run.steps if step.done}
    matched: LinkingResult | None = outputs.get("matching")
    standalone = outputs.get("understanding", "")
    return remember_turn(
        run, matched.links if matched else (), standalone if standalone != run.question else ""
    )


SYSTEM = System(
    "chatty_kg",
    answer_question,
    {
        "Understand": (
            chat.translate_question,
            chat.build_context,
            make_standalone,
            chat.classify_question,
            chat.rephrase_question,
            extract_qir,
        ),
        "Link": (
            answer_qir,
            match_qir,
            link_entity,
            retrieve_candidates,
            select_vertex,
            link_relation,
        ),
        "Query": (generate_queries, select_queries, execute_queries),
        "Answer": (chat.leave_out_mentioned, chat.reword_answer),
    },
    supervisors={
        "understanding": ("classifier", "rephraser"),
        "query_planning": ("matching", "query_generator", "predicate_selection", "execution"),
        "matching": ("entity_linking", "relation_linking"),
        "entity_linking": ("entity_retriever", "vertex_selection"),
    },
    remember=make_turn,
    settings=ChattySettings,
    views=VIEWS,
    rules={**LINKING_RULES, **RULES},
    gold=GOLD,
)
