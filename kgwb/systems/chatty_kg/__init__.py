"""Chatty-KG (Omar et al., arXiv 2511.20940): LLM agents that answer questions of a dialogue by SPARQL.

System chatty_kg

| agent | kind | function | prompt | view | gold | test |
| --- | --- | --- | --- | --- | --- | --- |
| translator | model | chat.translate_question | translator |  | understanding | test_translator.py |
| context | code | chat.build_context |  |  | understanding | test_context.py |
| understanding | group | understand_question |  |  | understanding | test_understanding.py |
| classifier | model | chat.classify_question | classifier* | render_classification | understanding | test_classifier.py |
| rephraser | model | chat.rephrase_question | rephraser* | render_rephrased_question | understanding | test_rephraser.py |
| qir | model | qir.extract_qir | qir* | render_qir | understanding | test_qir.py |
| query_planning | group | plan_queries |  |  |  | test_query_planning.py |
| matching | group | matching.match_qir |  |  | linking | test_matching.py |
| entity_linking | group | matching.link_entity |  |  | linking | test_entity_linking.py |
| entity_retriever | search | matching.retrieve_candidates |  |  | linking | test_entity_retriever.py |
| vertex_selection | model | kgwb.run.linking.select_vertex | ../linking/vertex_selection* |  | linking | ../linking/test_vertex_selection.py |
| relation_linking | sparql | relation_linking.link_relation |  | render_linked_relation | linking | test_relation_linking.py |
| query_generator | code | query_planning.generate_queries |  | render_generated_queries | execution and selection | test_query_generator.py |
| predicate_selection | model | predicate_selection.select_predicates | predicate_selection* | render_query_selection | execution and selection | test_predicate_selection.py |
| execution | sparql | query_planning.execute_queries |  |  | execution and selection | test_execution.py |
| what_else | code | chat.answer_what_else |  |  | execution and selection | test_what_else.py |
| answer_writer | model | chat.write_answer | answer_writer |  | execution and selection | test_answer_writer.py |
| model_alone | model | chat.ask_model_alone | model_alone |  | execution and selection | test_model_alone.py |
"""

from __future__ import annotations

from dataclasses import replace

from kgwb.build import (
    CANNOT_EXPRESS,
    LINKING_RULES,
    NOT_IN_GRAPH,
    NOT_UNDERSTOOD,
    Answer,
    Context,
    Dialogue,
    Question,
    Run,
    System,
    Turn,
    agent,
    remember_turn,
    select_vertex,
)
from kgwb.systems.chatty_kg.chat import (
    answer_what_else,
    ask_model_alone,
    asks_for_others,
    build_context,
    can_be_reworded,
    classify_question,
    rephrase_question,
    translate_question,
    write_answer,
)
from kgwb.systems.chatty_kg.gold import GOLD
from kgwb.systems.chatty_kg.matching import link_entity, match_qir, retrieve_candidates
from kgwb.systems.chatty_kg.predicate_selection import MIN_SIMILARITY, select_predicates
from kgwb.systems.chatty_kg.qir import extract_qir
from kgwb.systems.chatty_kg.query_planning import (
    execute_queries,
    generate_queries,
)
from kgwb.systems.chatty_kg.records import QIR, LinkingResult, QuerySelection
from kgwb.systems.chatty_kg.relation_linking import link_relation
from kgwb.systems.chatty_kg.rules import RULES
from kgwb.systems.chatty_kg.settings import ChattySettings

ABLE_SYSTEM = "surveyor"
"""The system that can express more than triples can."""
OTHER_MODEL_HINT = "reword the question, or choose another model"
"""What a person is told whose question the model ``rules`` did not understand."""
HANDOVER_HINT = f"the system {ABLE_SYSTEM} can express such questions (--system {ABLE_SYSTEM})"
"""What a person is told who asked for more than triples can say."""


def answer_question(question: Question, dialogue: Dialogue, run: Run) -> Answer:
    """Answer one turn of a dialogue: translate, make standalone, extract the QIR, answer it.

    With ``model_alone`` the model answers without the graph. The caller keeps the dialogue. Values
    of earlier answers are left out of the answer to a question for others ("What else ..."), and
    the answer is put into words where the settings say so.
    """
    english = translate_question(question, run)
    context = build_context(dialogue, run)
    if ChattySettings.of_run(run).model_alone:
        return ask_model_alone(english.text, context, run)
    standalone = understand_question(english.text, context, run)
    qir = extract_qir(standalone, run)
    answer = plan_queries(qir, standalone, context, run)
    if asks_for_others(english.text, context, run):
        answer = answer_what_else(answer, context, run)
    if can_be_reworded(answer, run):
        answer = write_answer(answer, question.text, run)
    return answer


@agent("understanding")
def understand_question(question: str, context: Context, run: Run) -> str:
    """Rephrase a question that depends on the dialogue (Chatty-KG, Algorithm 1, lines 1 to 6).

    It is classified first, and rephrased only if it is dependent, at most ``rephrasings`` times;
    with more than one, the new question is classified again after each (reference code). With
    ``multi_turn`` off, the question is returned as it is.
    """
    settings = ChattySettings.of_run(run)
    if not settings.multi_turn:
        return question
    classification = classify_question(question, context, run)
    for _ in range(settings.rephrasings):
        if classification.label == "self-contained":
            break
        question = rephrase_question(question, context, run).question
        if settings.rephrasings > 1:
            classification = classify_question(question, context, run)
    return question


@agent("query_planning")
def plan_queries(qir: QIR, question: str, context: Context, run: Run) -> Answer:
    """Link, generate, select and execute (Chatty-KG, Algorithm 3).

    A question that triples cannot express is not answered; the reason says which parts of it, and
    which system can. Nor is a question without valid triples. Both give an answer without values.
    What the triples leave out is a doubt of an answer with values; without values, nobody looked up
    what was asked, and the answer does not say that it is not in the graph.
    If no query was selected, with ``predicate_choice`` "by_fact" the best one is executed all the
    same, where its predicates are as similar as certain ones: the reason says what it would have
    given.
    """
    if not qir.facts and not qir.beyond:
        return Answer(qir.kind, reason=f"{CANNOT_EXPRESS}: no valid triples within the attempts")
    if qir.beyond:
        hint = HANDOVER_HINT
        if qir.beyond[0].startswith(NOT_UNDERSTOOD):
            hint = OTHER_MODEL_HINT
        reason = f"{CANNOT_EXPRESS}: {'; '.join(qir.beyond)}; {hint}"
        return Answer(qir.kind, reason=reason)
    settings = ChattySettings.of_run(run)
    linked = match_qir(qir, question, context, run)
    generated = generate_queries(qir, linked, run)
    selection = select_predicates(generated, question, linked, run)
    answer = execute_queries(selection, qir, linked, run)
    likely = []
    is_final = bool(selection.queries) or settings.predicate_choice == "pooled"
    if not is_final:
        for query in generated.queries:
            if query.score >= MIN_SIMILARITY and len(query.patterns) == len(qir.facts):
                likely.append(query)
    for dropped in likely[:1]:
        selection = QuerySelection((dropped,), dropped.predicates)
        given = execute_queries(selection, qir, linked, run)
        if given:
            names = ", ".join(dropped.predicates)
            reason = f"predicate_selection dropped “{names}”, which would give: {given}"
            return replace(answer, reason=reason)
    if answer.values:
        return answer.with_doubts(qir.doubts)
    if qir.doubts:
        found = answer.reason.removeprefix(f"{NOT_IN_GRAPH}: ")
        reason = f"{CANNOT_EXPRESS}: {'; '.join(qir.doubts)}; so read, {found}; {OTHER_MODEL_HINT}"
        return replace(answer, reason=reason, doubt="")
    return replace(answer, doubt="")


def make_turn(run: Run) -> Turn:
    """Return the turn that the dialogue remembers of a finished run.

    It has the question, the standalone question if it differs, the answers with the vertices of
    their support, and the links; no links if the run did not get so far.
    """
    outputs = {step.key: step.output for step in run.steps if step.done}
    matched: LinkingResult | None = outputs.get("matching")
    links = matched.links if matched else ()
    standalone = outputs.get("understanding", "")
    if standalone == run.question:
        standalone = ""
    return remember_turn(run, links, standalone)


SYSTEM = System(
    "chatty_kg",
    answer_question,
    {
        # The agents of Figure 2 that coordinate the others. The chat agent comes first and last.
        "Chat agent": (translate_question, build_context),
        "QIR agent": (
            understand_question,
            classify_question,
            rephrase_question,
            extract_qir,
        ),
        "Matching agent": (
            plan_queries,
            match_qir,
            link_entity,
            retrieve_candidates,
            select_vertex,
            link_relation,
        ),
        "Query planning agent": (generate_queries, select_predicates, execute_queries),
        "Chat agent: answer": (
            answer_what_else,
            write_answer,
            ask_model_alone,
        ),
    },
    supervisors={
        "understanding": ("classifier", "rephraser"),
        "query_planning": ("matching", "query_generator", "predicate_selection", "execution"),
        "matching": ("entity_linking", "relation_linking"),
        "entity_linking": ("entity_retriever", "vertex_selection"),
    },
    roles={
        # Figure 2: who does what, where the paper's agents have several tasks or tools
        "chat_agent": ("translator", "context", "what_else", "answer_writer"),
        "qir_agent": ("understanding", "qir"),
        "matching_agent": ("matching", "entity_retriever", "vertex_selection", "relation_linking"),
        "query_planning_agent": (
            "query_planning",
            "query_generator",
            "predicate_selection",
            "execution",
        ),
    },
    remember=make_turn,
    settings=ChattySettings,
    views="kgwb.systems.chatty_kg.views",
    rules={**LINKING_RULES, **RULES},
    gold=GOLD,
    handover=ABLE_SYSTEM,
)
