"""DoG as a table of contents: a loop of hops with a debate in it (Figure 2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kgwb.flow import NOT_HERE, Answer, Dialogue, Question
from kgwb.kg.queries import named
from kgwb.run import Run, System, agent
from kgwb.systems.dog.hop import (
    fill,
    filter_relation,
    get_relations,
    remember,
    tell_apart,
    try_answer,
    values_of,
)
from kgwb.systems.dog.question import ROLES, begin, find_topics, simplify
from kgwb.systems.dog.records import Filled, Focus, Head, Hop, Solved, Topics, name_of
from kgwb.systems.dog.rules import RULES
from kgwb.systems.dog.settings import DogSettings
from kgwb.systems.dog.views import VIEWS
from kgwb.systems.linking import link_entity, retrieve, select
from kgwb.systems.rules import RULES as LINKING_RULES
from kgwb.terms import Term


def answer(question: Question, dialogue: Dialogue, run: Run) -> Answer:
    """Answer one question; DoG has no dialogue, each question is read alone."""
    walked = walk(find_topics(question.text, run), run)
    if walked or not run.settings.own_knowledge:
        return walked
    return remember(question.text, walked.reason, run)


@agent("walk")
def walk(topics: Topics, run: Run) -> Answer:
    """Hop from the topic entities until an answer is found, at most ``iteration_limit`` times."""
    focus, links = begin(topics, run)
    if lost := [link.entity for link in links if link.vertex is None]:
        run.note(f"no vertex for {', '.join(lost)}")
    if not focus.heads:
        return Answer("list", reason=f"{NOT_HERE}: no vertex for {', '.join(lost)}")
    hops: list[Hop] = []
    heads = list(focus.heads)
    for number in range(1, DogSettings.of_run(run).iteration_limit + 1):
        hops.append(hop := iterate(f"hop {number}", focus, run))
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
    values = values_of(last.tried, last.filled, heads) if last.tried else ()
    if not values:
        empty = [f"[{result.head}]: {result.reason}" for result in last.filled if not result.values]
        if last.tried is None:
            why = "; ".join(empty) or "the walk found no triple"
        elif DogSettings.of_run(run).ablation == "no_focusing":
            why = last.tried.reason
        else:
            left = last.left.question if last.left else last.question
            why = f"no answer at the iteration limit of {len(hops)}; still open: {left}"
        return Answer("list", queries=queries, reason=f"{NOT_HERE}: {why}")
    answered = named(run.kg, Answer("list", values, queries))
    plainly = dict[Term, str](answered.names)  # without what distinguishes homonyms
    values = tuple(replace(value, label=plainly.get(value.term, value.label)) for value in values)
    return replace(answered, values=values)


@agent("iteration", subject="place")
def iterate(place: str, focus: Focus, run: Run) -> Hop:
    """One hop: relations, the right one of them, its triples; then an answer, or a shorter question."""
    relations = run.map(get_relations, focus.heads)
    filtered = run.map(filter_relation, relations, focus.question)
    walks = [fill(choice, head, run) for choice, head in zip(filtered, focus.heads, strict=True)]
    filled = tell_apart(walks, focus.heads, run)
    reached = tuple(result for result in filled if result.values)
    if not reached:
        return Hop(focus.question, filled, before=focus.before)
    if DogSettings.of_run(run).ablation == "no_focusing":
        return Hop(focus.question, filled, left=Focus(focus.question, _next(focus.heads, filled)))
    tried = try_answer(focus.question, filled, run)
    if tried.sufficient == "yes":
        return Hop(focus.question, filled, tried, before=focus.before)
    heads = _next(focus.heads, filled)
    pairs = zip(filled, heads, strict=True)
    solved = tuple(Solved(r.head, str(r.relation), head.name) for r, head in pairs if r.values)
    shorter = simplify(focus.question, solved, reached, run)
    before = (*focus.before, focus.question)
    return Hop(focus.question, filled, tried, Focus(shorter.question, heads, before), focus.before)


def _next(heads: Sequence[Head], filled: Sequence[Filled]) -> tuple[Head, ...]:
    """The tails as the next heads; a head whose turn has not come stays."""
    pairs = zip(filled, heads, strict=True)
    return tuple(Head(name_of(r.values), r.values, h.start) if r.values else h for r, h in pairs)


SYSTEM = System(
    "dog",
    answer,
    {
        "Find the start": (find_topics, walk, link_entity, retrieve, select),
        "Each hop ↻": (iterate, get_relations, filter_relation, fill, try_answer),
        "Shorten the question": (simplify, *ROLES["none"], *ROLES["fused_agent"]),
        "Else": (remember,),
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
