"""What a gold query means to DoG's agents: the classes of errors of figure 5, and the oracle ladder.

A gold query is read as a walk: from each of its vertices, the predicates that lead to what is asked
for. The rungs follow the walk hop by hop. The stages are the classes of figure 5. Its class "answer
aliasing" does not occur here: an answer is a term and not a text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from functools import partial
from itertools import chain, pairwise
from typing import Any, NamedTuple

from rdflib import URIRef

from kgwb.build import (
    Direction,
    GoldDecisions,
    GoldQuery,
    LinkedIris,
    Run,
    Rung,
    Term,
    collect_iris,
    collect_vertices,
    get_output,
    list_outputs,
    make_link_rung,
)
from kgwb.systems.dog.question import bracket_names, goes_on, make_question_checks
from kgwb.systems.dog.records import (
    INVERSE_PREFIX,
    FilledTriples,
    FilteredRelation,
    Head,
    Hop,
    HopInput,
    Relation,
    Relations,
    SimplifiedQuestion,
    SolvedHop,
    TopicEntities,
    TriedAnswer,
    make_relation_name,
    remove_brackets,
)

ITERATION_STOPPING = "iteration stopping"
ANSWER_GENERATION = "answer generation"
STAGES = {
    "topic entity": "topic_entity entity_linking entity_retriever vertex_selection",
    "relation filtering": "relations relation_filtering triple_filling",
    ANSWER_GENERATION: "answer_trying",
    "question simplifying": "simplifying simplifying_expert critic linguist fused_agent",
    "other": "own_knowledge",
}
"""The class of errors of each agent (DoG, figure 5; the topic entity is given in the paper)."""
MAX_LADDER_HOPS = 4
"""Hops that have rungs. The ladder does not mend what is lost later."""
REASON = "gold"


class GoldStep(NamedTuple):
    """A hop of a gold query: a predicate, and how it is followed."""

    predicate: URIRef
    direction: Direction


GoldPaths = Mapping[URIRef, tuple[GoldStep, ...]]
"""For each vertex of a gold query the hops from it to what is asked for."""


def find_gold_paths(gold: GoldQuery) -> GoldPaths:
    """Return the shortest path of hops from each vertex of a gold query to its target.

    Triples are followed in both directions; of equally short paths that of the earlier patterns is
    returned. A vertex from which no path leads there is left out, and so are all of a boolean
    question, which has no target. Vertices are in alphabetical order.
    """
    import networkx as nx  # which takes long

    graph: nx.DiGraph[str] = nx.DiGraph()
    for subject, predicate, object_ in gold.patterns:
        iri = URIRef(predicate[1:-1])
        steps = {(subject, object_): GoldStep(iri, "out"), (object_, subject): GoldStep(iri, "in")}
        for ends, step in steps.items():
            if ends not in graph.edges:
                graph.add_edge(*ends, step=step)
    paths: dict[URIRef, tuple[GoldStep, ...]] = {}
    for vertex in sorted(gold.vertices):
        places = nx.single_source_shortest_path(graph, f"<{vertex}>").get(gold.target, [])
        path = tuple(graph.edges[ends]["step"] for ends in pairwise(places))
        if path:
            paths[URIRef(vertex)] = path
    return paths


def collect_linked_iris(run: Run) -> LinkedIris:
    """Return the IRIs that a run linked, and those that it chose from, as far as it was executed.

    Linked are the vertices of the topic entities and the predicates of the chosen relations.
    Candidates are the vertices found for all topic entities, and the predicates of the relations of
    all heads.
    """
    vertices, vertex_candidates = collect_vertices(run)
    chosen = [filtered.relation for filtered in list_outputs(run, "relation_filtering")]
    offered = chain.from_iterable(relations.found for relations in list_outputs(run, "relations"))
    return LinkedIris(
        vertices,
        collect_iris(filter(None, chosen), lambda relation: relation.iris),
        vertex_candidates,
        collect_iris(offered, lambda relation: relation.iris),
    )


# The topic entities


def make_topic_rung(run: Run, gold: GoldQuery) -> Rung | None:
    """Return the names of the gold vertices in the question, to put in as the topic entities.

    A name that the run linked to a gold vertex is kept. Another gold vertex is named by its label,
    if the question has it. Names are put into brackets in the question. Returns None if this names
    nothing, or if the run has the same names.
    """
    topics: TopicEntities | None = get_output(run, "topic_entity")
    names = []
    links = _read_links(run)
    for vertex in find_gold_paths(gold):
        linked_names = [name for name, iri in links.items() if iri == vertex]
        names += linked_names[:1] or [gold.names.get(f"<{vertex}>", "")]
    plain_question = remove_brackets(run.question)
    corrected = bracket_names(plain_question, [name for name in names if name])
    if not corrected.entities:
        return None
    if topics and set(topics.entities) == set(corrected.entities):
        return None
    return Rung("topic_entity", {"topic_entity": corrected})


def _read_links(run: Run) -> dict[str, URIRef | None]:
    """Return the vertex that the run linked each topic entity to; None if it linked it to none."""
    topics: TopicEntities | None = get_output(run, "topic_entity")
    links: dict[str, URIRef | None] = {}
    if topics is None:
        return links
    for name in topics.entities:
        link = get_output(run, f"entity_linking[{name}]")
        links[name] = None
        if link and link.vertex:
            links[name] = link.vertex.iri
    return links


def make_vertex_rung(run: Run, gold: GoldQuery) -> Rung | None:
    """Return a gold vertex for each topic entity that was linked to none, to put in as its link.

    It is the gold vertex with the most similar name that no topic entity has yet.
    ``make_link_rung`` says which agent is blamed. Returns None if no gold vertex or no such topic
    entity is left.
    """
    missing = set(find_gold_paths(gold))
    unlinked = []
    for name, iri in _read_links(run).items():
        if iri in missing:
            missing.remove(iri)
        else:
            unlinked.append(name)

    vertices = {}
    for name in unlinked:
        if not missing:
            break
        similarity = partial(_name_similarity, name=name, gold=gold)
        vertices[name] = max(sorted(missing), key=similarity)
        missing.remove(vertices[name])
    return make_link_rung(vertices, run, gold)


def _name_similarity(vertex: URIRef, name: str, gold: GoldQuery) -> float:
    """Return the ratio of matching characters, 0 to 1, of a name and the name of a gold vertex.

    Letter case does not count. A vertex without a name is compared by its IRI.
    """
    label = _name_of(vertex, gold)
    return SequenceMatcher(None, name.casefold(), label.casefold()).ratio()


# The hops


class GoldHead(NamedTuple):
    """A head of a hop, and the gold hops that are left from it."""

    head: Head
    left: tuple[GoldStep, ...]


def _read_heads(number: int, run: Run, gold: GoldQuery) -> tuple[GoldHead, ...]:
    """Return the heads of a hop, each with the gold hops that are left from it; empty if the run has no such hop.

    ``number`` counts hops from 1. The gold hops that earlier hops took are removed from the
    beginning; a hop through a node without a name took two.
    """
    step = run.steps_by_key.get(f"iteration[hop {number}]")
    focus = None
    if step:
        focus = step.inputs.get("focus")
    if not isinstance(focus, HopInput):
        return ()
    paths = find_gold_paths(gold)
    heads = []
    for position, head in enumerate(focus.heads):
        starts = []
        for term in head.start:
            if isinstance(term, URIRef):
                starts.append(term)
        path: tuple[GoldStep, ...] = ()
        if starts:
            path = paths.get(starts[0], ())
        taken = 0
        for earlier in range(1, number):
            hop: Hop | None = get_output(run, f"iteration[hop {earlier}]")
            if hop and position < len(hop.filled):
                taken += _count_steps(hop.filled[position])
        heads.append(GoldHead(head, path[taken:]))
    return tuple(heads)


def _count_steps(result: FilledTriples) -> int:
    """Return how many gold hops the result of a hop stands for: 0 without tails, else 1 or 2."""
    if not result.values:
        return 0
    if any(len(triple) > 3 for triple in result.triples):
        return 2
    return 1


def make_relation_rung(number: int, run: Run, gold: GoldQuery) -> Rung | None:
    """Return the gold relation of each head of a hop for which another was chosen, to put in as the choice.

    Heads from which fewer gold hops are left than from others wait: their gold is no relation. The
    agent "relations" is blamed if it did not offer the gold relation, which is then added; else the
    relation filtering. Returns None if the run chose all of them.
    """
    heads = _read_heads(number, run, gold)
    most_left = max((len(each.left) for each in heads), default=0)
    values: dict[str, Any] = {}
    blamed = "relation_filtering"
    for each in heads:
        name = each.head.name
        relations_key = f"relations[hop {number}/{name}]"
        filtering_key = f"relation_filtering[hop {number}/{name}]"
        offered: Relations | None = get_output(run, relations_key)
        filtered: FilteredRelation | None = get_output(run, filtering_key)
        if not offered or not most_left:
            continue
        relation = None
        if len(each.left) == most_left:
            gold_step = each.left[0]
            relation = _find_relation(gold_step, offered.found)
            if relation is None:
                blamed = "relations"
                relation = _make_relation(gold_step, gold)
                values[relations_key] = Relations(offered.head, (*offered.found, relation))
        if filtered is None or filtered.relation != relation:
            values[filtering_key] = FilteredRelation(name, "", relation, REASON)
    if values:
        return Rung(blamed, values)
    return None


def _find_relation(gold_step: GoldStep, relations: Iterable[Relation]) -> Relation | None:
    """Return the relation that has the gold predicate in the gold direction; None if none has."""
    for relation in relations:
        if relation.direction == gold_step.direction and gold_step.predicate in relation.iris:
            return relation
    return None


def _make_relation(gold_step: GoldStep, gold: GoldQuery) -> Relation:
    """Return a relation with the gold predicate alone."""
    name = make_relation_name(_name_of(gold_step.predicate, gold), gold_step.predicate)
    return Relation(name, gold_step.direction, (gold_step.predicate,))


def _name_of(iri: URIRef, gold: GoldQuery) -> str:
    """Return the display name of an IRI of a gold query; the IRI if it has none."""
    return gold.names.get(f"<{iri}>", str(iri))


def make_trying_rung(stage: str, number: int, run: Run, gold: GoldQuery) -> Rung | None:
    """Return the gold decision of a hop, to put in at "answer_trying", if the run decided otherwise.

    Gold stops after the last gold hop, with the gold tails as answers: what the last relations lead
    to. Of the stage ITERATION_STOPPING is a run that went on there, or that stopped earlier; of
    ANSWER_GENERATION one that stopped with other answers. Returns None for the other stage, if the
    run has no such hop, or if there are no gold tails.
    """
    key = f"answer_trying[hop {number}]"
    tried: TriedAnswer | None = get_output(run, key)
    decision = _decide(number, run, gold)
    if not tried or not decision or set(tried.answers) == set(decision.answers):
        return None
    differs_in_stop = tried.sufficient != decision.sufficient
    if differs_in_stop != (stage == ITERATION_STOPPING):
        return None
    return Rung("answer_trying", {key: decision}, stage)


def _decide(number: int, run: Run, gold: GoldQuery) -> TriedAnswer | None:
    """Return the gold decision after a hop: to stop, with answers, if no gold hop is left for any head.

    The answers are the names of what the last gold hops of all heads lead to in common; heads
    without a gold hop left do not count. ``number`` counts from 1. None if the run has no such hop,
    if no head has a gold hop before it, or if there is no answer to stop with.
    """
    hop: Hop | None = get_output(run, f"iteration[hop {number}]")
    heads = _read_heads(number, run, gold)
    if hop is None or not any(each.left for each in heads):
        return None
    common: dict[Term, str] | None = None
    for each, result in zip(heads, hop.filled, strict=False):
        if len(each.left) > _count_steps(result):
            return TriedAnswer("no", REASON)
        if each.left:
            tails = _gold_tails(each.left[-1], result, gold)
            if common is not None:
                tails = {term: name for term, name in tails.items() if term in common}
            common = tails
    if common:
        return TriedAnswer("yes", REASON, tuple(common.values()))
    return None


def _gold_tails(last_step: GoldStep, result: FilledTriples, gold: GoldQuery) -> dict[Term, str]:
    """Return what a head's result leads to (its tails) as a mapping from term to name.

    Of a triple that leads through a node without a name, the tail counts only if its last relation
    is that of the last gold hop.
    """
    name = _make_relation(last_step, gold).name
    tails = {}
    for triple, (_, tail) in zip(result.triples, result.ends, strict=False):
        is_longer = len(triple) > 3
        if not is_longer or triple[-2].removeprefix(INVERSE_PREFIX) == name:
            tails[tail] = triple[-1]
    return tails


def make_question_rung(number: int, run: Run, gold: GoldQuery) -> Rung | None:
    """Return a question for what is left after a hop, to put in for the debate's question.

    It names the predicates that are left, the last one first, and the heads: how a question is
    worded has no gold. Returns None if the debate's question passes ``make_question_checks``, if
    the run has no such step, or if nothing is left after the hop.
    """
    key = f"simplifying[hop {number}]"
    simplified: SimplifiedQuestion | None = get_output(run, key)
    if simplified is None:
        return None
    solved: Sequence[SolvedHop] = run[key].inputs.get("solved", ())
    checks = make_question_checks(simplified.original, solved)
    if goes_on(simplified.question, checks):
        return None
    hop: Hop | None = get_output(run, f"iteration[hop {number}]")
    if hop is None or hop.left is None:
        return None
    gold_heads = _read_heads(number, run, gold)
    parts = []
    for gold_head, head, result in zip(gold_heads, hop.left.heads, hop.filled, strict=False):
        names = [f"[{head.name}]"]
        for gold_step in gold_head.left[_count_steps(result) :]:
            names.insert(0, _name_of(gold_step.predicate, gold))
        parts.append(" of ".join(names))
    question = f"What is the {' and the '.join(parts)}?"
    corrected = SimplifiedQuestion(question, simplified.original)
    return Rung("simplifying", {key: corrected})


RungMaker = Callable[[Run, GoldQuery], Rung | None]


def _make_ladder() -> Mapping[str, RungMaker]:
    """Return the functions that make the rungs, by name: two for entities, then four for each hop.

    There are rungs for hops 1 to MAX_LADDER_HOPS.
    """
    ladder: dict[str, RungMaker] = {
        "topic entities": make_topic_rung,
        "vertices": make_vertex_rung,
    }
    for number in range(1, MAX_LADDER_HOPS + 1):
        ladder[f"relations of hop {number}"] = partial(make_relation_rung, number)
        ladder[f"stopping at hop {number}"] = partial(make_trying_rung, ITERATION_STOPPING, number)
        ladder[f"answers of hop {number}"] = partial(make_trying_rung, ANSWER_GENERATION, number)
        ladder[f"question after hop {number}"] = partial(make_question_rung, number)
    return ladder


GOLD = GoldDecisions(_make_ladder(), collect_linked_iris, STAGES)
