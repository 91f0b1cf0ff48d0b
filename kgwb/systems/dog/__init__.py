"""Debating over Graphs (DoG): a question is answered hop by hop, and debated shorter on the way.

System dog

| agent | kind | function | prompt | view | gold | test |
| --- | --- | --- | --- | --- | --- | --- |
| topic_entity | model | question.find_topic_entities | topic_entity | render_bracketed_question | topic entity | test_topic_entity.py |
| walk | group | walk_graph |  |  |  | test_walk.py |
| entity_linking | group | kgwb.run.linking.link_entity |  |  | topic entity | ../linking/test_entity_linking.py |
| entity_retriever | search | kgwb.run.linking.retrieve_candidates |  |  | topic entity | ../linking/test_entity_retriever.py |
| vertex_selection | model | kgwb.run.linking.select_vertex | ../linking/vertex_selection* |  | topic entity | ../linking/test_vertex_selection.py |
| iteration | group | iterate_hop |  | render_hop |  | test_iteration.py |
| relations | sparql | hop.get_relations |  | render_relations | relation filtering | test_relations.py |
| relation_filtering | model | hop.filter_relation | relation_filtering | render_filtered_relation | relation filtering | test_relation_filtering.py |
| triple_filling | sparql | hop.fill_triples |  | render_filled_triples | relation filtering | test_triple_filling.py |
| answer_trying | model | hop.try_answer | answer_trying* | render_tried_answer | answer generation | test_answer_trying.py |
| simplifying | group | question.simplify_question |  | render_simplified_question | question simplifying | test_simplifying.py |
| simplifying_expert | model | question.simplify_as_expert | simplifying_expert | render_remark | question simplifying | test_simplifying_expert.py |
| critic | model | question.simplify_as_critic | critic | render_remark | question simplifying | test_critic.py |
| linguist | model | question.simplify_as_linguist | linguist | render_remark | question simplifying | test_linguist.py |
| fused_agent | model | question.simplify_as_fused_agent | fused_agent | render_remark | question simplifying | test_fused_agent.py |
| own_knowledge | model | hop.answer_from_own_knowledge | own_knowledge |  | other | test_own_knowledge.py |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

from kgwb.build import (
    CANNOT_EXPRESS,
    LINKING_RULES,
    NOT_IN_GRAPH,
    NOT_UNDERSTOOD,
    Answer,
    Dialogue,
    InvalidReplyError,
    Question,
    Run,
    System,
    Term,
    agent,
    has_form,
    link_entity,
    read_values,
    retrieve_candidates,
    select_vertex,
)
from kgwb.systems.dog.gold import GOLD
from kgwb.systems.dog.hop import (
    answer_from_own_knowledge,
    disambiguate_names,
    fill_triples,
    filter_relation,
    find_answer_values,
    get_relations,
    try_answer,
    unite_values,
)
from kgwb.systems.dog.question import (
    ROLE_AGENTS_BY_ABLATION,
    find_topic_entities,
    give_topic,
    link_topic_entities,
    simplify_question,
)
from kgwb.systems.dog.records import (
    FilledTriples,
    Head,
    Hop,
    HopInput,
    SolvedHop,
    TopicEntities,
    collect_values,
    combine_names,
    relabel_values,
)
from kgwb.systems.dog.rules import RULES
from kgwb.systems.dog.settings import DogSettings

LIMIT_REACHED = "no answer within the iteration limit"
"""How the reason begins if the triples of the last hop that is allowed did not suffice."""


def answer_question(question: Question, dialogue: Dialogue, run: Run) -> Answer:
    """Answer one question by a walk over the graph.

    DoG has no dialogue: each question is read alone. If the walk finds no answer and the setting
    ``own_knowledge`` is on, the model answers without the graph, with ``own_knowledge_at`` "limit"
    only if the iteration limit was reached (DoG, "Answer Trying"). Otherwise the answer has no
    values and a reason. The gold answer plays no part in that; in the published code it does.
    """
    try:
        topics = find_topic_entities(question.text, run)
        answer = walk_graph(topics, run)
    except InvalidReplyError as error:
        if not has_form(error):
            raise
        answer = Answer("list", reason=f"{CANNOT_EXPRESS}: {error.message}")
    settings = DogSettings.of_run(run)
    if answer or not settings.own_knowledge:
        return answer
    if settings.own_knowledge_at == "limit" and not answer.reason.startswith(LIMIT_REACHED):
        return answer
    return answer_from_own_knowledge(question.text, answer.reason, run)


@agent("walk")
def walk_graph(topics: TopicEntities, run: Run) -> Answer:
    """Hop from the topic entities until an answer is found, at most ``iteration_limit`` times.

    The walk also ends when a hop finds no triple. With the ablation "no_focusing" the hops only
    collect triples, and the model tries to answer once, at the end. With ``answers`` "tails" the
    tails of the last hop are the answers. An answer without values has a reason, which is also
    given if no topic entity has a vertex. Topic entities without a vertex are left out, with a
    note.
    """
    hop_input, links = link_topic_entities(topics, run)
    unlinked = [link.entity for link in links if link.vertex is None]
    problem = f"no vertex for {', '.join(unlinked)}"
    if unlinked:
        run.note(problem)
    if not hop_input.heads:
        return Answer("list", reason=problem)

    settings = DogSettings.of_run(run)
    hops: list[Hop] = []
    heads = list(hop_input.heads)
    for number in range(1, settings.iteration_limit + 1):
        is_last = number == settings.iteration_limit
        hop = iterate_hop(f"hop {number}", hop_input, is_last, run)
        hops.append(hop)
        if hop.left is None:
            break
        hop_input = hop.left
        heads += hop_input.heads
    if settings.ablation == "no_focusing":
        hops.append(_try_all_triples(topics.question, hops, run))
    return _make_answer(hops, heads, run)


def _try_all_triples(question: str, hops: Sequence[Hop], run: Run) -> Hop:
    """Ask the model to answer with the triples of all hops at once (DoG, Table 2, row 1).

    Returns a hop with these triples and the model's decision, which is None if there are no
    triples: the model is not asked then.
    """
    results = [result for result in _results_of(hops) if result.values]
    tried = try_answer(question, tuple(results), run) if results else None
    return Hop(question, tuple(results), tried)


def _results_of(hops: Sequence[Hop]) -> list[FilledTriples]:
    """Return the results of all heads in all hops, in the order of the hops, then of the heads."""
    return list(chain.from_iterable(hop.filled for hop in hops))


def _make_answer(hops: Sequence[Hop], heads: Sequence[Head], run: Run) -> Answer:
    """Return the answer that the last hop found, with the queries of all hops and display names.

    If the model tried to answer, its values are what its answers name among the results of the last
    hop and all ``heads``; with the setting ``answers`` "tails" they are the tails of the last hop.
    If one of them is a truth value, the answer is boolean. If nothing is found, the answer has no
    values and a reason. The reason says that the graph has no answer only if the first hop found
    nothing: a later hop may have begun at the wrong things.
    """
    queries: dict[str, None] = {}
    for result in _results_of(hops):
        queries |= dict.fromkeys(result.queries)
    answer = Answer("list", queries=tuple(queries))
    last = hops[-1]
    if last.tried:
        values = find_answer_values(last.tried, last.filled, heads)
        answer = replace(answer, values=values)
        if any(isinstance(value.term.toPython(), bool) for value in values):
            answer = replace(answer, kind="boolean")
    elif DogSettings.of_run(run).answers == "tails":
        # What the relations of the last hop lead to: MetaQA is measured so (figure 4, caption).
        tails = unite_values(collect_values(last.filled))
        answer = replace(answer, values=tuple(tails))
    if not answer:
        reason = _explain_no_answer(hops, run)
        if len(hops) > 1 and last.tried is None:
            reason = f"gave up in hop {len(hops)}: {reason}"
        elif last.tried is None and NOT_UNDERSTOOD not in reason:
            reason = f"{NOT_IN_GRAPH}: {reason}"
        return replace(answer, reason=reason)

    answer = read_values(run.kg, answer, merges_forms=DogSettings.of_run(run).merges_forms)
    # In the walk, terms of one name have different labels. In the answer they have their names.
    names = dict[Term, str](answer.names)
    return replace(answer, values=relabel_values(answer.values, names))


def _explain_no_answer(hops: Sequence[Hop], run: Run) -> str:
    """Return why a walk ended without an answer, as a text for people.

    If the last hop did not try to answer, it is the reason of each head that found no triple. If it
    tried, it is the iteration limit, with the question that was left; with the ablation
    "no_focusing" it is what the model said, with the iteration limit before it if that was reached.
    """
    last = hops[-1]
    if last.tried is None:
        reasons = []
        for result in last.filled:
            if not result.values:
                reasons.append(f"[{result.head}]: {result.reason}")
        return "; ".join(reasons) or "the walk found no triple"
    settings = DogSettings.of_run(run)
    limit = f"{LIMIT_REACHED} of {settings.iteration_limit}"
    if settings.ablation != "no_focusing":
        return f"{limit}; the question left is: {last.question}"
    return last.tried.reason if hops[-2].left is None else f"{limit}: {last.tried.reason}"


@agent("iteration", subject="place")
def iterate_hop(place: str, focus: HopInput, is_last: bool, run: Run) -> Hop:
    """Follow one relation from each head, then answer the question or make it shorter (Figure 2).

    The steps are: the relations of each head, the choice of one of them, its triples, trying to
    answer, and simplifying the question. ``place`` has the number of the hop, and ``focus`` is its
    input. The result has no input for a next hop if no triple was found, if the triples answer the
    question, or after the last hop: then the question is not simplified, as there is no hop to do
    it for (reference code). With the ablation "no_focusing" the last two steps are left out, and
    with ``answers`` "tails" trying to answer is.
    """
    settings = DogSettings.of_run(run)
    relations = run.map(get_relations, focus.heads)
    filtered = run.map(filter_relation, relations, focus.question)
    results = []
    for choice, head in zip(filtered, focus.heads, strict=True):
        results.append(fill_triples(choice, head, run))
    filled = disambiguate_names(results, focus.heads, run)
    reached = tuple(result for result in filled if result.values)
    if not reached:
        return Hop(focus.question, filled, before=focus.before)

    heads = _make_next_heads(focus.heads, filled)
    if settings.ablation == "no_focusing":
        left = HopInput(focus.question, heads)
        return Hop(focus.question, filled, left=left)
    tried = None
    if settings.answers == "model":
        if is_last and settings.says_last_hop:
            filled = _note_last_hop(filled, settings)
        tried = try_answer(focus.question, filled, run)
    if is_last or (tried is not None and tried.sufficient == "yes"):
        return Hop(focus.question, filled, tried, before=focus.before)

    shorter = simplify_question(focus.question, _describe_solved(filled, heads), reached, run)
    questions = (*focus.before, focus.question)
    left = HopInput(shorter.question, heads, questions)
    return Hop(focus.question, filled, tried, left, focus.before)


def _note_last_hop(
    filled: Sequence[FilledTriples], settings: DogSettings
) -> tuple[FilledTriples, ...]:
    """Return copies of the results of a hop whose notes, which a model sees, say that no hop follows."""
    ending = f"the walk ends here, after hop {settings.iteration_limit}"
    noted = []
    for result in filled:
        notes = filter(None, (result.note, ending))
        noted.append(replace(result, note="; ".join(notes)))
    return tuple(noted)


def _describe_solved(
    filled: Sequence[FilledTriples], next_heads: Sequence[Head]
) -> tuple[SolvedHop, ...]:
    """Return the hops of the heads that found something, in words: head, relation, and name of the tails.

    ``next_heads`` has, for each result, the head that the next hop starts from.
    """
    solved = []
    for result, head in zip(filled, next_heads, strict=True):
        if result.values:
            solved.append(SolvedHop(result.head, str(result.relation), head.name))
    return tuple(solved)


def _make_next_heads(heads: Sequence[Head], filled: Sequence[FilledTriples]) -> tuple[Head, ...]:
    """Return the heads of the next hop: for each head its tails under one name, or itself if it has none.

    A head has no tails if no relation was chosen for it, because another head comes first, or if
    its relation led to nothing.
    """
    next_heads = list(heads)
    for position, result in enumerate(filled):
        if result.values:
            name = combine_names(result.values)
            next_heads[position] = Head(name, result.values, heads[position].start)
    return tuple(next_heads)


SYSTEM = System(
    "dog",
    answer_question,
    {
        "Find the start": (
            find_topic_entities,
            walk_graph,
            link_entity,
            retrieve_candidates,
            select_vertex,
        ),
        "Each hop ↻": (iterate_hop, get_relations, filter_relation, fill_triples, try_answer),
        "Shorten the question": (
            simplify_question,
            *ROLE_AGENTS_BY_ABLATION["none"],
            *ROLE_AGENTS_BY_ABLATION["fused_agent"],
        ),
        "Without the graph": (answer_from_own_knowledge,),
    },
    supervisors={
        "walk": ("entity_linking", "iteration"),
        "entity_linking": ("entity_retriever", "vertex_selection"),
        "iteration": (
            "relations",
            "relation_filtering",
            "triple_filling",
            "answer_trying",
            "simplifying",
        ),
        "simplifying": ("simplifying_expert", "critic", "linguist", "fused_agent"),
    },
    settings=DogSettings,
    views="kgwb.systems.dog.views",
    rules={**LINKING_RULES, **RULES},
    gold=GOLD,
    give_topic=give_topic,
)
