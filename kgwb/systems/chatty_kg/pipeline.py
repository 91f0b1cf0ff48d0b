"""Chatty-KG as a table of contents: its agents in flow order (Figure 2; Algorithms 1, 2 and 3)."""

from __future__ import annotations

from kgwb.flow import CANNOT_EXPRESS, Answer, Context, Dialogue, Question, Turn
from kgwb.run import Run, System, agent, remember_turn
from kgwb.systems.chatty_kg import chat
from kgwb.systems.chatty_kg.chat import classify, rephrase
from kgwb.systems.chatty_kg.gold import GOLD
from kgwb.systems.chatty_kg.matching import link_entity, link_relation, match, retrieve
from kgwb.systems.chatty_kg.qir import extract
from kgwb.systems.chatty_kg.queries import execute, generate, select_queries
from kgwb.systems.chatty_kg.records import QIR, Linked
from kgwb.systems.chatty_kg.rules import RULES
from kgwb.systems.chatty_kg.settings import ChattySettings
from kgwb.systems.chatty_kg.views import VIEWS
from kgwb.systems.linking import select
from kgwb.systems.rules import RULES as LINKING_RULES

REPHRASINGS = 3
"""As published, a rewritten question is classified again, at most this often (reference code)."""


def answer(question: Question, dialogue: Dialogue, run: Run) -> Answer:
    """Answer one turn of a dialogue; the dialogue itself is kept by whoever asks."""
    english = chat.translate(question, run)
    context = chat.build_context(dialogue, run)
    standalone = understand(english.text, context, run)
    qir = extract(standalone, run)
    result = plan(qir, standalone, context, run)
    if chat.asks_for_others(english.text, context, run):
        result = chat.leave_out(result, context, run)
    return chat.reword(result, standalone, run) if chat.rewordable(result, run) else result


@agent("understanding")
def understand(question: str, context: Context, run: Run) -> str:
    """The question made self-contained where it is not (Algorithm 1, lines 1 to 6)."""
    if not ChattySettings.of_run(run).multi_turn:
        return question
    classified = classify(question, context, run)
    for _ in range(1 if run.settings.fast else REPHRASINGS):
        if classified.label == "self-contained" or not context.turns:
            break
        question = rephrase(question, context, run).question
        if not run.settings.fast:
            classified = classify(question, context, run)
    return question


@agent("query_planning")
def plan(qir: QIR, question: str, context: Context, run: Run) -> Answer:
    """Link, generate, select and execute (Algorithm 3); what the triples cannot say is not answered."""
    if qir.beyond:
        return Answer(qir.kind, reason=f"{CANNOT_EXPRESS}: {'; '.join(qir.beyond)}")
    linked = match(qir, question, context, run)
    generated = generate(qir, linked, run)
    selection = select_queries(generated, question, linked, run)
    return execute(selection, qir, linked, run)


def remember(run: Run) -> Turn:
    """What the dialogue remembers: question and answers, what was linked, what the answers stood on."""
    outputs = {step.key: step.output for step in run.steps if step.done}
    matched: Linked | None = outputs.get("matching")
    standalone = outputs.get("understanding", "")
    return remember_turn(
        run, matched.links if matched else (), standalone if standalone != run.question else ""
    )


SYSTEM = System(
    "chatty_kg",
    answer,
    {
        "Understand": (
            chat.translate,
            chat.build_context,
            understand,
            chat.classify,
            chat.rephrase,
            extract,
        ),
        "Link": (plan, match, link_entity, retrieve, select, link_relation),
        "Query": (generate, select_queries, execute),
        "Answer": (chat.leave_out, chat.reword),
    },
    supervisors={
        "understanding": ("classifier", "rephraser"),
        "query_planning": ("matching", "query_generator", "predicate_selection", "execution"),
        "matching": ("entity_linking", "relation_linking"),
        "entity_linking": ("entity_retriever", "vertex_selection"),
    },
    remember=remember,
    settings=ChattySettings,
    views=VIEWS,
    rules={**LINKING_RULES, **RULES},
    gold=GOLD,
)
