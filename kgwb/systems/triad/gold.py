"""What a gold query means to Triad's agents: phases, the rungs of the oracle ladder, links."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from rdflib import URIRef

from kgwb.build import (
    Alignment,
    Candidate,
    CandidateQuery,
    Direction,
    GoldDecisions,
    GoldQuery,
    LinkedIris,
    RetrievedCandidates,
    Run,
    Rung,
    Step,
    TriplePattern,
    align_facts,
    analyze_query,
    collect_iris,
    find_candidate,
    get_output,
    reword_fact,
)
from kgwb.systems.triad.records import (
    ANSWER_TYPE_BY_KIND,
    Attempt,
    Choice,
    Relation,
    Triplet,
    Triplets,
)
from kgwb.systems.triad.settings import TriadSettings

LINKING_AGENTS = ("entity_retriever", "entity_choice", "relations", "relation_choice")
FIRST_ATTEMPT = "try 1/parsing"
"""The attempt that gold is put into. If it is right, there is no other."""


# What was linked


def collect_linked_iris(run: Run) -> LinkedIris:
    """Return the IRIs that a run linked, and those that it chose from, as far as it was executed (section 4.5).

    They are those of the last attempt that linked anything. Linked are the vertices and relations
    that the decision-maker chose, up to K for each mention and each triplet. Candidates are the
    vertices that the label search found, and the relations one hop around.
    """
    outputs: defaultdict[str, list[Any]] = defaultdict(list)
    for step in _linking_steps(run):
        outputs[step.agent].append(step.output)
    return LinkedIris(
        collect_iris(outputs["entity_choice"], lambda choice: choice.chosen),
        collect_iris(outputs["relation_choice"], lambda choice: choice.chosen),
        collect_iris(outputs["entity_retriever"], lambda retrieved: retrieved.candidates),
        collect_iris(outputs["relations"], lambda relations: relations),
    )


def _linking_steps(run: Run) -> list[Step]:
    """Return the finished steps of the linking phase, of the last attempt that has any; empty if none has."""
    by_attempt: dict[str, list[Step]] = {}
    for step in run.steps:
        if step.done and step.agent in LINKING_AGENTS:
            by_attempt.setdefault(step.parent, []).append(step)
    *_, last = by_attempt.values() or [[]]
    return last


# What the first attempt decided


def _step_key(agent: str, subject: str = "") -> str:
    """Return the key of an agent's step in the first attempt, for a subject if one is given."""
    place = FIRST_ATTEMPT
    if subject:
        place = f"{FIRST_ATTEMPT}/{subject}"
    return f"{agent}[{place}]"


def _get_output(run: Run, agent: str, subject: str = "") -> Any:
    """Return the output of a step of the first attempt; None if it is not done."""
    return get_output(run, _step_key(agent, subject))


def _align_triplets(run: Run, gold: GoldQuery) -> Alignment[Triplet] | None:
    """Return the alignment of the first attempt's triplets with the gold query, if there is one."""
    triplets = _get_output(run, "triplets")
    return align_facts(triplets, "", gold) if triplets else None


# The rungs


def make_triplets_rung(run: Run, gold: GoldQuery) -> Rung | None:
    """Return the triplets that the gold query stands for, to put in at the agent "triplets".

    If the run's triplets can be aligned with the gold query, their words are kept where the
    question has them. Otherwise the display names of the graph are used, and the value of a literal
    becomes an unknown, as triplets have no values. With the setting ``as_written`` a triplet has
    the direction of the gold query. Returns None if the run has the same triplets.
    """
    triplets = _get_output(run, "triplets")
    alignment = _align_triplets(run, gold)
    corrected: Triplets
    if alignment:
        corrected = tuple(_reword_triplets(alignment, gold, run))
    else:
        corrected = tuple(_name_patterns(gold))
    if corrected == triplets:
        return None
    return Rung("triplets", {_step_key("triplets"): corrected})


def _reword_triplets(alignment: Alignment[Triplet], gold: GoldQuery, run: Run) -> Iterator[Triplet]:
    """Yield the aligned triplets in words of the question, see ``reword_fact``.

    With the setting ``as_written``, subject and object are swapped where the gold pattern has them
    so.
    """
    as_written = TriadSettings.of_run(run).as_written
    for triplet, (_, direction) in alignment.facts.items():
        subject, relation, object_ = reword_fact(triplet, alignment, run.question, gold.names)
        if as_written and direction == "in":
            subject, object_ = object_, subject
        yield Triplet(subject, relation, object_)


def _name_patterns(gold: GoldQuery) -> Iterator[Triplet]:
    """Yield the patterns of a gold query as triplets of display names.

    A term without a name stays as it is written. A literal as the object becomes an unknown,
    "?value1" in the first pattern.
    """
    for number, pattern in enumerate(gold.patterns, 1):
        subject, relation, object_ = (gold.names.get(term, term) for term in pattern)
        if object_[0] == '"':
            object_ = f"?value{number}"
        yield Triplet(subject, relation, object_)


def make_vertex_rung(run: Run, gold: GoldQuery) -> Rung | None:
    """Return the gold vertex of each mention for which another was chosen, to put in as the choice.

    The entity retriever is blamed if a gold vertex is not among the candidates, to which it is then
    added; else the choice. Returns None if all were chosen, and for triplets that cannot be aligned
    with gold.
    """
    alignment = _align_triplets(run, gold)
    ends = alignment.ends if alignment else {}
    values: dict[str, Any] = {}
    blamed = "entity_choice"
    for mention, term in ends.items():
        iri = URIRef(term[1:-1])
        choice = _get_output(run, "entity_choice", mention)
        chosen = []
        if choice:
            chosen = [option.iri for option in choice.chosen]
        if term.startswith("?") or iri in chosen:
            continue
        retrieved = _get_output(run, "entity_retriever", mention)
        candidates = retrieved.candidates if retrieved else ()
        vertex = find_candidate(iri, candidates)
        if vertex is None:
            blamed = "entity_retriever"
            vertex = Candidate(iri, gold.names.get(term, term))
            found = RetrievedCandidates(mention, (vertex, *candidates), "gold")
            values[_step_key("entity_retriever", mention)] = found
        values[_step_key("entity_choice", mention)] = Choice(mention, (vertex,), "gold")
    if values:
        return Rung(blamed, values)
    return None


def make_relation_rung(run: Run, gold: GoldQuery) -> Rung | None:
    """Return the gold relation of each triplet for which another was chosen, to put in as the choice.

    The agent "relations" is blamed if it was executed and did not find the gold relation, which is
    then added; else the choice. Returns None if all were chosen, and for triplets that cannot be
    aligned with gold.
    """
    alignment = _align_triplets(run, gold)
    facts = alignment.facts if alignment else {}
    as_written = TriadSettings.of_run(run).as_written
    values: dict[str, Any] = {}
    blamed = "relation_choice"
    for triplet, (pattern, gold_direction) in facts.items():
        direction: Direction = "out" if as_written else gold_direction
        iri = URIRef(pattern[1][1:-1])
        subject = str(triplet)
        choice = _get_output(run, "relation_choice", subject)
        if choice and _find_relation(iri, direction, choice.chosen):
            continue
        found = _get_output(run, "relations", subject)
        relation = _find_relation(iri, direction, found or ())
        if relation is None:
            if found is not None:
                blamed = "relations"
            relation = Relation(iri, gold.names.get(pattern[1], str(iri)), direction)
            values[_step_key("relations", subject)] = (relation, *(found or ()))
        values[_step_key("relation_choice", subject)] = Choice(subject, (relation,), "gold")
    if values:
        return Rung(blamed, values)
    return None


def _find_relation(
    iri: URIRef, direction: Direction, relations: Sequence[Relation]
) -> Relation | None:
    """Return the relation with an IRI and a direction; None if there is none."""
    for relation in relations:
        if relation.iri == iri and relation.direction == direction:
            return relation
    return None


def make_template_rung(run: Run, gold: GoldQuery) -> Rung | None:
    """Return a template of all aligned triplets, for the target of the gold query, to put in at "template".

    It is an ASK, a count, or a SELECT as the gold query's kind is. Returns None if the run has the
    same template, if its triplets cannot be aligned, or if the gold query has more than triple
    patterns: then its template is not known.
    """
    alignment = _align_triplets(run, gold)
    query = analyze_query(gold.sparql)
    is_conjunctive = query.kind == "count" or not query.unsupported_feature
    if alignment is None or query.filters or not is_conjunctive:
        return None
    targets = [end for end, term in alignment.ends.items() if term == gold.target]
    target = ""
    if targets:
        target = targets[0]
    head = {
        "boolean": "ASK",
        "count": f"SELECT (COUNT(DISTINCT {target}) AS ?count) WHERE",
        "list": f"SELECT DISTINCT {target} WHERE",
    }[gold.kind]
    triples = " ".join(map(_to_template_triple, alignment.facts))
    template = f"{head} {{ {triples} }}"
    if template == _get_output(run, "template"):
        return None
    return Rung("template", {_step_key("template"): template})


def _to_template_triple(triplet: Triplet) -> str:
    """Return a triplet as a triple of a template."""
    subject, object_ = (end if end.startswith("?") else f"<{end}>" for end in triplet.ends)
    return f"{subject} <{triplet.relation}> {object_} ."


def make_choice_rung(run: Run, gold: GoldQuery) -> Rung | None:
    """Return the run's query with exactly the IRIs of the gold query, to put in as the chosen query.

    An IRI must occur as often as in gold. Returns None if no query with a result has these, or if
    it was chosen.
    """
    queries = _get_output(run, "queries")
    choice = _get_output(run, "query_choice")
    if queries is None:
        return None
    for filled in queries.kept:
        if _list_iris(filled.query.patterns) == _list_iris(gold.patterns):
            if choice and filled in choice.chosen:
                return None
            chosen = Choice("query", (filled,), "gold")
            return Rung("query_choice", {_step_key("query_choice"): chosen})
    return None


def _list_iris(patterns: Sequence[TriplePattern]) -> list[str]:
    """Return the IRIs of triple patterns, as often as they occur, in alphabetical order."""
    terms: list[str] = []
    for pattern in patterns:
        terms += pattern
    return sorted(term for term in terms if term.startswith("<"))


def make_type_rung(run: Run, gold: GoldQuery) -> Rung | None:
    """Return the gold query's type of answer, "count", "select" or "yes or no", to put in at "answer_type".

    Returns None if the run asked no model for the type, or if the model said the same.
    """
    asked = get_output(run, "answer_type")
    gold_type = ANSWER_TYPE_BY_KIND[gold.kind]
    if asked is None or asked == gold_type:
        return None
    return Rung("answer_type", {"answer_type": gold_type})


def make_query_rung(run: Run, gold: GoldQuery) -> Rung | None:
    """Return the gold query itself, to put in as the result of the first attempt.

    The template is blamed: it could not say what the gold query says. There is always one.
    """
    triplets = _get_output(run, "triplets") or ()
    query = CandidateQuery(gold.sparql, gold.patterns, (), 1.0)
    attempt = Attempt(triplets, (), query=query)
    return Rung("template", {_step_key("attempt"): attempt})


LADDER = {
    "triplets": make_triplets_rung,
    "vertices": make_vertex_rung,
    "relations": make_relation_rung,
    "template": make_template_rung,
    "choice": make_choice_rung,
    "answer type": make_type_rung,
    "query": make_query_rung,
}
GOLD = GoldDecisions(LADDER, collect_linked_iris)
