"""A hop: relations of a head, the one that the question means, its triples, the answers in them (DoG)."""

from __future__ import annotations

import typing
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, zip_longest

from rdflib import BNode, Literal, URIRef

from kgwb.flow import Answer, Direction, Value
from kgwb.kg.queries import (
    MAX_TRIPLES_PER_VALUE,
    describe_vertices,
    find_predicates,
    with_display_names,
)
from kgwb.kg.sparql import values_clause
from kgwb.run import Run, agent
from kgwb.run.ask import Check, Reply, ask, find_problems, schema_config
from kgwb.systems.dog.records import (
    BRACKETED_NAME,
    INVERSE_PREFIX,
    FilledTriples,
    FilteredRelation,
    Head,
    Relation,
    Relations,
    TriedAnswer,
    normalize_name,
)
from kgwb.systems.dog.settings import DogSettings
from kgwb.terms import Iri, Term, Triple, local_part

MAX_LABEL_LOOKUPS, MAX_NAMED_VERTICES = 100, 10
"""Tails whose labels are looked for; vertices without a triple that are named, the others are counted."""


@agent("relations", subject="head", kind="sparql")
def get_relations(head: Head, run: Run) -> Relations:
    """The relations of all vertices of a head but for noise, "~" before those that lead to it.

    No model is asked. Predicates of one name and direction are one relation.
    """
    terms = [value.term for value in head.values if isinstance(value.term, URIRef | Literal)]
    if not terms:
        return Relations(head.name, ())
    pairs = find_predicates(run.kg, *terms)
    names = run.kg.names(sorted({iri for iri, _ in pairs}))
    iris: dict[tuple[str, Direction], list[Iri]] = {}
    for iri, direction in pairs:
        iris.setdefault((names[iri], direction), []).append(iri)
    in_order = sorted(iris.items(), key=lambda item: (item[0][0], item[0][1] == "in"))
    return Relations(
        head.name, tuple(Relation(name, way, tuple(group)) for (name, way), group in in_order)
    )


class FilteringReply(Reply):
    """The first-hop sub-question ("" if one hop is left), then its relation; "" if none fits."""

    model_config = schema_config(
        "FilteringReply",
        'The first-hop sub-question ("" if one hop is left), then its relation; "" if none fits.',
    )

    subquestion: str
    relation: str
    reason: str


def find_relation_problems(
    filtered: FilteredRelation, relations: Relations, question: str
) -> Iterator[str]:
    """What is wrong with a choice put in by hand: head and relation must be those that were offered."""
    if filtered.head != relations.head:
        yield f"the relation is for {filtered.head!r}, the step for {relations.head!r}"
    if filtered.relation is not None and filtered.relation not in relations.found:
        yield f"{filtered.relation} is none of {', '.join(map(str, relations.found)) or 'the relations'}"


@agent("relation_filtering", subject="relations", check=find_relation_problems, kind="model")
def filter_relation(relations: Relations, question: str, run: Run) -> FilteredRelation:
    """The relation of the question's first hop from a head ("only the best unique relation").

    No model is asked where there is one relation, unless "none" is a choice that says something: that another
    head comes first, or, without focusing, that the walk ends.
    """
    if not relations.found:
        return FilteredRelation(relations.head, "", None, "the graph tells nothing about it")
    alone = (
        len({*BRACKETED_NAME.findall(question)}) <= 1
        and DogSettings.of_run(run).ablation != "no_focusing"
    )
    if len(relations.found) == 1 and alone:
        return FilteredRelation(relations.head, "", relations.found[0], "the only relation")
    names = [str(relation) for relation in relations.found]
    variables = {"question": question, "entity": relations.head, "relations": names}

    def listed(reply: FilteringReply) -> str:
        known = not reply.relation.strip() or relations.find_relation(reply.relation)
        return "" if known else f"{reply.relation!r} is not in the list"

    checks = (Check("a relation from the list", listed),)
    reply = ask("dog/relation_filtering", variables, FilteringReply, run, checks=checks)
    chosen = relations.find_relation(reply.relation) if reply.relation.strip() else None
    return FilteredRelation(
        relations.head, " ".join(reply.subquestion.split()), chosen, reply.reason
    )


@dataclass(frozen=True, slots=True)
class _PathToTail:
    """One way from a vertex of the head to a tail."""

    head: Term
    tail: Term
    triples: tuple[Triple, ...]
    second_hop: tuple[URIRef, bool] | None = None
    """After a node without a name: the second predicate, and whether it is gone against its direction."""


@agent("triple_filling", subject="filtered", kind="sparql")
def fill_triples(filtered: FilteredRelation, head: Head, run: Run) -> FilledTriples:
    """The tails with the triples on the way to each, at most ``fan_out``; no model is asked.

    Behind a node without a name the walk goes one hop further, and its ends are the tails.
    """
    relation = filtered.relation
    if relation is None:
        return FilledTriples(
            "list", head=head.name, reason=filtered.reason or "no relation was chosen"
        )
    back = relation.direction == "in"
    sayable = (URIRef, Literal) if back else URIRef
    heads = [value.term for value in head.values if isinstance(value.term, sayable)]
    values = f"{values_clause('?head', heads)} {values_clause('?p', relation.iris)}"
    steps, queries, whole, led = list[_PathToTail](), list[str](), True, set[Term]()
    if heads:
        pattern = "?tail ?p ?head" if back else "?head ?p ?tail"
        queries.append(f"SELECT DISTINCT ?head ?p ?tail WHERE {{ {values} {pattern} }}")
        result = run.kg.select(queries[0])
        whole = not result.cut
        if result.cut:
            run.note(
                f"the result was cut at {len(result.rows):,} rows: raise the graph's row_limit"
            )
        for h, p, t in result.rows:
            if h is not None and isinstance(p, URIRef) and t is not None:
                led.add(h)
                if t not in head.start:
                    steps.append(_PathToTail(h, t, ((t, p, h) if back else (h, p, t),)))
    if nameless := _find_unnamed_nodes([step.tail for step in steps], head, run):
        query, further = _extend_paths(values, back, head, nameless, run)
        queries.append(query)
        passed = {step.triples[0] for step in further}
        kept = [
            step
            for step in steps
            if step.triples[0] not in passed and not isinstance(step.tail, BNode)
        ]
        if further:
            run.note("behind nodes without a name: one hop further")
        steps = [*kept, *further]
    silent = [v.label for v in head.values if v.term not in led and not isinstance(v.term, BNode)]
    return _make_filled_triples(head, relation, steps, queries, run, silent if whole else None)


def _find_unnamed_nodes(tails: Sequence[Term], head: Head, run: Run) -> set[Term]:
    """The tails that are only nodes between: blank ones, and IRIs without a label if no tail has one.

    In a graph that labels nothing, an IRI's own name is its name.
    """
    blank: set[Term] = {tail for tail in tails if isinstance(tail, BNode)}
    iris = {tail for tail in tails if isinstance(tail, URIRef)}
    if not iris or len(blank) + len(iris) < len({*tails}):
        return blank
    starts = [term for term in head.start if isinstance(term, URIRef)]
    looked_at = values_clause("?v", [*sorted(iris)[:MAX_LABEL_LOOKUPS], *starts])
    labels = values_clause("?l", run.kg.vocabulary.labels)
    rows = run.kg.select(f"SELECT DISTINCT ?v WHERE {{ {looked_at} {labels} ?v ?l ?name }}")
    labelled = {row[0] for row in rows.rows if row[0] is not None}
    return blank | iris if labelled and not labelled & iris else blank


def _extend_paths(
    values_clause: str, is_inverse: bool, head: Head, unnamed_nodes: set[Term], run: Run
) -> tuple[str, list[_PathToTail]]:
    """One hop further: every relation of the nodes between, in both directions, noise left out."""
    query = (
        f"SELECT DISTINCT ?head ?p ?node ?q ?tail ?back WHERE {{ {values_clause}"
        f" {'?node ?p ?head' if is_inverse else '?head ?p ?node'} ."
        f' {{ ?node ?q ?tail BIND("" AS ?back) }} UNION {{ ?tail ?q ?node BIND("back" AS ?back) }}'
        " FILTER(!sameTerm(?tail, ?head)) }"
    )
    steps = []
    hidden = run.kg.vocabulary.excluded_predicates
    blank = any(isinstance(node, BNode) for node in unnamed_nodes)
    for h, p, node, q, tail, way in run.kg.select(query).rows:
        between = node in unnamed_nodes or (
            blank and isinstance(node, BNode)
        )  # another result, other labels
        if not isinstance(q, URIRef) or q in hidden or not between or tail in head.start:
            continue
        if (
            h is None
            or node is None
            or tail is None
            or isinstance(tail, BNode)
            or not isinstance(p, URIRef)
        ):
            continue
        against = str(way) == "back"
        near: Triple = (node, p, h) if is_inverse else (h, p, node)
        far: Triple = (tail, q, node) if against else (node, q, tail)
        steps.append(_PathToTail(h, tail, (near, far), (q, against)))
    return query, steps


def _make_filled_triples(
    head: Head,
    relation: Relation,
    paths: Sequence[_PathToTail],
    queries: Sequence[str],
    run: Run,
    labels_without_triples: Sequence[str] | None,
) -> FilledTriples:
    """``lost``: the vertices without a triple; None if rows are missing, so that nobody knows."""
    tails: dict[Term, list[_PathToTail]] = {}
    most, before = DogSettings.of_run(run).fan_out, {value.term: value for value in head.values}
    rank = {term: place for place, term in enumerate(before)}
    asked = (step for step in paths if step.head in rank)  # an engine may spell an IRI its own way
    for step in sorted(
        asked, key=lambda step: (rank[step.head], str(step.triples))
    ):  # engines differ
        tails.setdefault(step.tail, []).append(step)
    terms = {term for step in paths for triple in step.triples for term in triple}
    names = run.kg.names([term for term in terms if isinstance(term, URIRef)])
    labels = {term: names[term] if isinstance(term, URIRef) else str(term) for term in tails}
    order = sorted(tails, key=lambda term: (labels[term], str(term)))
    kept = order[:most]
    if len(kept) < len(order):
        run.note(f"{len(order):,} tails found, the first {len(kept)} by name kept (fan_out)")

    def in_words(step: _PathToTail) -> tuple[str, ...]:
        between: tuple[str, ...] = ()
        if step.second_hop is not None:
            iri, against = step.second_hop
            between = ("…", f"{INVERSE_PREFIX * against}{names[iri]}")
        return before[step.head].label, str(relation), *between, labels[step.tail]

    in_turn = chain.from_iterable(
        zip_longest(*(tails[tail] for tail in kept))
    )  # one of every tail first
    triples = {(in_words(step), (step.head, step.tail)): None for step in in_turn if step}
    shown = [*triples][:most]
    if len(shown) < len(triples):
        run.note(f"a model sees {len(shown)} of {len(triples):,} triples (fan_out)")
    ways = {(step.head, step.tail, step.second_hop) for some in tails.values() for step in some}
    notes = []
    if ways:
        total = f"{'more than ' if labels_without_triples is None else ''}{len(ways):,} triples"
        cut = labels_without_triples is None or len(shown) < len(ways)
        notes.append(f"cut: {len(shown):,} of {total}" if cut else "all triples")
    if labels_without_triples:
        rest = (
            f" and {len(labels_without_triples) - MAX_NAMED_VERTICES:,} others"
            if len(labels_without_triples) > MAX_NAMED_VERTICES
            else ""
        )
        notes.append(
            f"no triple for {', '.join(labels_without_triples[:MAX_NAMED_VERTICES])}{rest}"
        )
    filled = FilledTriples(
        "list",
        tuple(Value(term, labels[term], _collect_support(tails[term], before)) for term in kept),
        tuple(queries),
        reason="" if kept else f"nothing further is there by {relation}",
        head=head.name,
        relation=relation,
        triples=tuple(words for words, _ in shown),
        ends=tuple(ends for _, ends in shown),
        note="; ".join(notes),
        found=len(order),
    )
    return with_display_names(run.kg, filled)


def _collect_support(
    steps: Sequence[_PathToTail], head_values: dict[Term, Value]
) -> tuple[Triple, ...]:
    """The triples from the topic entity to a tail, whole ways as long as they fit."""
    triples: dict[Triple, None] = {}
    for step in steps:
        way = dict.fromkeys((*head_values[step.head].support, *step.triples))
        if triples and len(triples.keys() | way.keys()) > MAX_TRIPLES_PER_VALUE:
            break
        triples.update(way)
    return tuple(triples)


def disambiguate_names(
    filled: Sequence[FilledTriples], heads: Sequence[Head], run: Run
) -> tuple[FilledTriples, ...]:
    """A hop's results, where tails that share a name have what they are behind it: "Dune (film)".

    Heads keep the names that they have in the question.
    """
    named = {value.term: value.label for result in filled for value in result.values}
    known = {value.term: value.label for head in heads for value in head.values}
    groups: dict[str, list[URIRef]] = {}
    for term, label in (named | known).items():
        if isinstance(term, URIRef):
            groups.setdefault(normalize_name(label), []).append(term)
    homonyms = [same for same in groups.values() if len(same) > 1]
    if not homonyms:
        return tuple(filled)
    described = describe_vertices(run.kg, sorted(term for same in homonyms for term in same))
    names: dict[Term, str] = dict(known)
    for same in homonyms:  # by what distinguishes all of them: types, first words, else IRIs
        texts = [described[term].description.split() for term in same]
        ways = [[", ".join(described[term].types) for term in same]]
        for length in range(1, max(map(len, texts)) + 1):
            ways.append([" ".join(words[:length]) for words in texts])
        ways.append([*map(local_part, same)])
        apart = (kinds for kinds in ways if all(kinds) and len({*kinds}) == len(same))
        pairs = zip(same, next(apart, [*map(str, same)]), strict=True)
        names |= {term: f"{named[term]} ({kind})" for term, kind in pairs if term not in known}
    renamed = []
    for result in filled:
        values = tuple(
            replace(value, label=names.get(value.term, value.label)) for value in result.values
        )
        in_words = zip(result.triples, result.ends, strict=False)
        triples = tuple((*words[:-1], names.get(tail, words[-1])) for words, (_, tail) in in_words)
        by_hand = len(result.ends) < len(result.triples)
        renamed.append(result if by_hand else replace(result, values=values, triples=triples))
    return tuple(renamed)


class TryingReply(Reply):
    """Yes or no first and alone, then why, then the answers, copied from the triples."""

    model_config = schema_config(
        "TryingReply",
        "Yes or no first and alone, then why, then the answers, copied from the triples.",
    )

    sufficient: typing.Literal["yes", "no"]
    reason: str
    answers: list[str]


def find_answer_problems(
    tried: TriedAnswer, question: str, filled: Sequence[FilledTriples]
) -> Iterator[str]:
    """What is wrong with a decision put in by hand: what is wrong with a model's."""
    reply = TryingReply(
        sufficient=tried.sufficient, reason=tried.reason, answers=list(tried.answers)
    )
    yield from find_problems(reply, make_answer_checks(filled))


@agent("answer_trying", check=find_answer_problems, kind="model")
def try_answer(question: str, filled: tuple[FilledTriples, ...], run: Run) -> TriedAnswer:
    """Whether the triples answer the question, and with which names; every answer is among the triples."""
    shown = []
    for result in filled:
        note = "; ".join(filter(None, (result.note, result.reason)))
        shown.append(
            {"entity": result.head, "triples": list(map(list, result.triples)), "note": note}
        )
    variables = {"question": question, "found": shown}
    reply = ask("dog/answer_trying", variables, TryingReply, run, checks=make_answer_checks(filled))
    return TriedAnswer(reply.sufficient, reply.reason, tuple(dict.fromkeys(reply.answers)))


def make_answer_checks(filled: Sequence[FilledTriples]) -> tuple[Check[TryingReply], ...]:
    """A yes has answers and a no has none, and each answer is a name in the triples."""
    known = {
        normalize_name(end) for result in filled for triple in result.triples for end in triple[::2]
    }

    def whole(reply: TryingReply) -> str:
        if (reply.sufficient == "yes") == bool(reply.answers):
            return ""
        return (
            "the reply is no, with answers"
            if reply.answers
            else "the reply is yes, but gives no answer"
        )

    def among(reply: TryingReply) -> str:
        strange = [name for name in reply.answers if normalize_name(name) not in known]
        return f"{', '.join(map(repr, strange[:5]))} is not in the triples" if strange else ""

    return Check("answers if and only if yes", whole), Check("answers among the triples", among)


def find_answer_values(
    tried: TriedAnswer, filled: Sequence[FilledTriples], heads: Sequence[Head]
) -> tuple[Value, ...]:
    """The answers as values with their triples: tails, or vertices that were gone on from.

    Of several vertices with one label those count that most of the topic entities lead to.
    """
    by_name: dict[str, dict[Term, list[Value]]] = {
        normalize_name(name): {} for name in tried.answers
    }
    tails = [value for result in filled for value in result.values]
    triples = [triple for value in tails for triple in value.support]
    passed = [value for head in heads for value in head.values]
    extended = (
        replace(
            value,
            support=(*value.support, *(triple for triple in triples if value.term in triple[::2])),
        )
        for value in passed
    )
    for value in (*tails, *extended):
        if normalize_name(value.label) in by_name:
            by_name[normalize_name(value.label)].setdefault(value.term, []).append(value)
    reached = Counter(value.term for value in tails)
    values = []
    for same in by_name.values():
        most = max((reached[term] for term in same), default=0)
        for term, ways in same.items():
            if reached[term] == most:
                support = dict.fromkeys(triple for value in ways for triple in value.support)
                values.append(Value(term, ways[0].label, tuple(support)))
    return tuple(sorted(values, key=lambda value: (value.label, str(value.term))))


class KnowledgeReply(Reply):
    """The answers from memory, none if it does not know."""

    model_config = schema_config(
        "KnowledgeReply",
        "The answers from memory, none if it does not know.",
    )

    answers: list[str]


@agent("own_knowledge", kind="model")
def answer_from_own_knowledge(question: str, reason: str, run: Run) -> Answer:
    """An answer without the graph, marked as such; ``reason`` is why the graph gave none.

    Asked only by a setting, and whenever the walk ended without an answer: nobody looks at a gold answer.
    """
    reply = ask("dog/own_knowledge", {"question": question}, KnowledgeReply, run)
    names = dict.fromkeys(name.strip() for name in reply.answers if name.strip())
    values = tuple(Value(Literal(name), name) for name in names)
    return Answer("list", values, reason=reason, ungrounded=bool(values))
