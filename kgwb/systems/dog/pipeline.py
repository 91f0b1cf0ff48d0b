"""DoG as a table of contents: a loop of hops with a debate in it (Figure 2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kgwb.flow import NOT_IN_GRAPH, Answer, Dialogue, Question
from kgwb.kg.queries import with_display_names
from kgwb.run import Run, System, agent
from kgwb.systems.dog.hop import (
    answer_from_own_knowledge,
    disambiguate_names,
    fill_triples,
    filter_relation,
    find_answer_values,
    get_relations,
    try_answer,
)
from kgwb.systems.dog.question import (
    ROLE_AGENTS_BY_ABLATION,
    begin,
    find_topic_entities,
    simplify_question,
)
from kgwb.systems.dog.records import (
    FilledTriples,
    Head,
    Hop,
    HopInput,
    SolvedHop,
    TopicEntities,
    combine_names,
)
from kgwb.systems.dog.rules import RULES
from kgwb.systems.dog.settings import DogSettings
from kgwb.systems.dog.views import VIEWS
from kgwb.systems.linking import link_entity, retrieve_candidates, select_vertex
from kgwb.systems.rules import RULES as LINKING_RULES
from kgwb.terms import Term


def answer_question(question: Question, dialogue: Dialogue, run: Run) -> Answer:
    """Answer one question; DoG has no dialogue, each question is read alone."""
    walked = walk_graph(find_topic_entities(question.text, run), run)
    if walked or not run.settings.own_knowledge:
        return walked
    return answer_from_own_knowledge(question.text, walked.reason, run)


@agent("walk")
def walk_graph(topics: TopicEntities, run: Run) -> Answer:
    """Hop from the topic entities until an answer is found, at most ``iteration_limit`` times."""
    focus, links = begin(topics, run)
    if lost := [link.entity for link in links if link.vertex is None]:
        run.note(f"no vertex for {', '.join(lost)}")
    if not focus.heads:
        return Answer("list", reason=f"{NOT_IN_GRAPH}: no vertex for {', '.join(lost)}")
    hops: list[Hop] = []
    heads = list(focus.heads)
    for number in range(1, DogSettings.of_run(run).iteration_limit + 1):
        hops.append(hop := take_hop(f"hop {number}", focus, run))
        if hop.left is None:
            break
        focus = hop.left
        heads += focus.heads
    if DogSettings.of_run(run).ablation == "no_focusing":
        evidence = tuple(filled for hop in hops for filled in hop.filled if filled.values)
        tried = try_answer(topics.question, evidence, run) if evidence else None
        hops.append(Hop(topics.question, evidence, tried))
    last = hops[-1]
    queries = tuple(
        dict.fromkeys(query for hop in hops for result in hop.filled for query in result.queries)
    )
    values = find_answer_values(last.tried, last.filled, heads) if last.tried else ()
    if not values:
        empty = [f"[{result.head}]: {result.reason}" for result in last.filled if not result.values]
        if last.tried is None:
            why = "; ".join(empty) or "the walk found no triple"
        elif DogSettings.of_run(run).ablation == "no_focusing":
            why = last.tried.reason
        else:
            left = last.left.question if last.left else last.question
            why = f"no answer at the iteration limit of {len(hops)}; still open: {left}"
        return Answer("list", queries=queries, reason=f"{NOT_IN_GRAPH}: {why}")
    answered = with_display_names(run.kg, Answer("list", values, queries))
    plainly = dict[Term, str](answered.names)  # without what distinguishes homonyms
    values = tuple(replace(value, label=plainly.get(value.term, value.label)) for value in values)
    return replace(answered, values=values)


@agent("iteration", subject="place")
def take_hop(place: str, focus: HopInput, run: Run) -> Hop:
    """One hop: relations, the right one of them, its triples; then an answer, or a shorter question."""
    relations = run.map(get_relations, focus.heads)
    filtered = run.map(filter_relation, relations, focus.question)
    walks = [
        fill_triples(choice, head, run) for choice, head in zip(filtered, focus.heads, strict=True)
    ]
    filled = disambiguate_names(walks, focus.heads, run)
    reached = tuple(result for result in filled if result.values)
    if not reached:
        return Hop(focus.question, filled, before=focus.before)
    if DogSettings.of_run(run).ablation == "no_focusing":
        return Hop(
            focus.question,
            filled,
            left=HopInput(focus.question, _make_next_heads(focus.heads, filled)),
        )
    tried = try_answer(focus.question, filled, run)
    if tried.sufficient == "yes":
        return Hop(focus.question, filled, tried, before=focus.before)
    heads = _make_next_heads(focus.heads, filled)
    pairs = zip(filled, heads, strict=True)
    solved = tuple(SolvedHop(r.head, str(r.relation), head.name) for r, head in pairs if r.values)
    shorter = simplify_question(focus.question, solved, reached, run)
    before = (*focus.before, focus.question)
    return Hop(
        focus.question, filled, tried, HopInput(shorter.question, heads, before), focus.before
    )


def _make_next_heads(heads: Sequence[Head], filled: Sequence[FilledTriples]) -> tuple[Head, ...]:
    """The tails as the next heads; a head whose turn has not come stays."""
    pairs = zip(filled, heads, strict=True)
    return tuple(
        Head(combine_names(r.values), r.values, h.start) if r.values else h for r, h in pairs
    )


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
        "Each hop ↻": (take_hop, get_relations, filter_relation, fill_triples, try_answer),
        "Shorten the question": (
            simplify_question,
            *ROLE_AGENTS_BY_ABLATION["none"],
            *ROLE_AGENTS_BY_ABLATION["fused_agent"],
        ),
        "Else": (answer_from_own_knowledge,),
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
    views=VIEWS,
    rules={**LINKING_RULES, **RULES},
)
