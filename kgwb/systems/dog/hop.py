"""A hop of DoG: the relation that it follows, the triples, and whether these answer the question."""

from __future__ import annotations

import typing
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, zip_longest
from typing import NamedTuple

from rdflib import RDF, RDFS, BNode, Literal, URIRef

from kgwb.build import (
    MAX_TRIPLES_PER_VALUE,
    Answer,
    Check,
    Description,
    Direction,
    Iri,
    Reply,
    Row,
    Run,
    Term,
    Triple,
    Triples,
    Value,
    agent,
    ask_model,
    describe_vertices,
    find_predicates,
    find_problems,
    label_terms,
    read_nodes,
    values_clause,
    with_display_names,
)
from kgwb.systems.dog.records import (
    BRACKETED_NAME,
    FilledTriples,
    FilteredRelation,
    Head,
    Relation,
    Relations,
    TriedAnswer,
    collapse_spaces,
    collect_values,
    make_relation_name,
    normalize_name,
    relabel_values,
)
from kgwb.systems.dog.settings import DogSettings

# Relation filtering


@agent("relations", subject="head", kind="sparql")
def get_relations(head: Head, run: Run) -> Relations:
    """Return the relations of all vertices of a head (DoG, "Knowledge Graph Invoking").

    No model is asked. Predicates that have one name and one direction are one relation, or without
    ``follows_namesakes`` the first of them is. Relations come by name, "out" before "in". Labels,
    descriptions, types and noise are left out unless ``whole_graph`` is on, and with the setting
    ``relation_directions`` also the relations that lead to the head. A blank node has no relations
    here, since a query cannot name it. Two queries are sent at most, and one request for names.
    """
    terms = []
    for value in head.values:
        if isinstance(value.term, URIRef | Literal):
            terms.append(value.term)
    if not terms:
        return Relations(head.name, ())
    settings = DogSettings.of_run(run)
    predicates = find_predicates(run.kg, *terms, keeps_all=settings.whole_graph)
    names = run.kg.names([iri for iri, _ in predicates])
    groups: dict[tuple[str, Direction], list[Iri]] = defaultdict(list)
    for iri, direction in predicates:
        if direction == "out" or settings.follows_incoming_relations:
            groups[make_relation_name(names[iri], iri), direction].append(iri)

    relations = []
    for (name, direction), iris in groups.items():
        followed = iris if settings.follows_namesakes else iris[:1]
        relations.append(Relation(name, direction, tuple(followed)))
    relations.sort(key=lambda relation: (relation.name, relation.direction == "in"))
    return Relations(head.name, tuple(relations))


class FilteringReply(Reply):
    """The first-hop sub-question ("" if one hop is left), then its relation; "" if none fits."""

    subquestion: str
    """The first hop as a question; "" if the question has only one hop."""
    relation: str
    """A relation of the list; "" if none fits."""
    reason: str


def find_relation_problems(
    filtered: FilteredRelation, relations: Relations, question: str
) -> Iterator[str]:
    """Yield what is wrong with a choice of a relation that a person put in.

    Its head must be the head of the step, and its relation one of those that the step chooses from.
    No relation is a valid choice. ``question`` is not used.
    """
    relation = filtered.relation
    if filtered.head != relations.head:
        yield f"the relation is for {filtered.head!r}, but the step is for {relations.head!r}"
    if relation is not None and relation not in relations.found:
        names = ", ".join(map(str, relations.found)) or "it is empty"
        yield f"{relation} is not in the list of relations: {names}"


@agent("relation_filtering", subject="relations", check=find_relation_problems, kind="model")
def filter_relation(relations: Relations, question: str, run: Run) -> FilteredRelation:
    """Choose the relation of a head that the first hop of the question follows.

    The model names the first hop as a question, and then one relation of the list or none: only
    "the best unique relation" is used (DoG, "Relation Filtering"). It is not asked if there is no
    relation. The setting ``only_relation`` says whether it is asked about a single one; it is if
    choosing none has a meaning, see ``_can_choose_none``. Raises InvalidReplyError if no reply
    names a relation of the list or none.
    """
    settings = DogSettings.of_run(run)
    if not relations.found:
        return FilteredRelation(relations.head, "", None, "the graph tells nothing about it")
    is_taken = settings.only_relation == "taken" and not _can_choose_none(question, run)
    if len(relations.found) == 1 and is_taken:
        return FilteredRelation(relations.head, "", relations.found[0], "the only relation")

    def find_unlisted(reply: FilteringReply) -> str:
        """Return "" if a reply names a relation of the list or none, else what is wrong."""
        if not reply.relation.strip() or relations.find_relation(reply.relation):
            return ""
        return f"{reply.relation!r} is not in the list"

    names = [str(relation) for relation in relations.found]
    variables = {"question": question, "entity": relations.head, "relations": names}
    check = Check("a relation from the list", find_unlisted)
    reply = ask_model(
        "dog/relation_filtering",
        variables,
        FilteringReply,
        run,
        checks=(check,),
        max_examples=settings.filtering_example_count,
    )
    relation = relations.find_relation(reply.relation)
    subquestion = collapse_spaces(reply.subquestion)
    return FilteredRelation(relations.head, subquestion, relation, reply.reason)


def _can_choose_none(question: str, run: Run) -> bool:
    """Return whether choosing no relation for a head has a meaning, so that a model is asked.

    If the question has several names in brackets, it means that another head comes first. With the
    ablation "no_focusing" it ends the walk, which otherwise goes on to the iteration limit.
    """
    if DogSettings.of_run(run).ablation == "no_focusing":
        return True
    return len(set(BRACKETED_NAME.findall(question))) > 1


# Answer trying


class TryingReply(Reply):
    """Yes or no first and alone, then why, then the answers, copied from the triples."""

    sufficient: typing.Literal["yes", "no"]
    reason: str
    answers: list[str]
    """Names of heads or tails, as the triples have them."""


def find_answer_problems(
    tried: TriedAnswer, question: str, filled: Sequence[FilledTriples]
) -> Iterator[str]:
    """Yield what is wrong with a decision that a person put in: each check that it fails.

    The checks are those of a model's reply; see ``make_answer_checks``. ``question`` is not used.
    """
    reply = TryingReply(
        sufficient=tried.sufficient, reason=tried.reason, answers=list(tried.answers)
    )
    yield from find_problems(reply, make_answer_checks(filled))


@agent("answer_trying", check=find_answer_problems, kind="model")
def try_answer(question: str, filled: tuple[FilledTriples, ...], run: Run) -> TriedAnswer:
    """Ask the model whether the triples answer the question, and with which names.

    The model sees the triples of each head in words, and whether these are all (DoG, "Answer
    Trying"). With ``answer_words`` "copied" every answer is a name in the triples. Each is returned
    once, in the model's order. Raises InvalidReplyError without a valid reply.
    """
    settings = DogSettings.of_run(run)
    prompt = "dog/answer_trying"
    checks = make_answer_checks(filled)
    if settings.answer_words == "own":
        prompt = "dog/answer_trying_published"
        checks = checks[:1]
    found = []
    for result in filled:
        notes = filter(None, (result.note, result.reason))
        result_data = {
            "entity": result.head,
            "triples": list(map(list, result.triples)),
            "note": "; ".join(notes),
        }
        found.append(result_data)
    reply = ask_model(
        prompt,
        {"question": question, "found": found},
        TryingReply,
        run,
        checks=checks,
        max_examples=settings.trying_example_count,
    )
    answers = tuple(dict.fromkeys(reply.answers))
    return TriedAnswer(reply.sufficient, reply.reason, answers)


def make_answer_checks(filled: Sequence[FilledTriples]) -> tuple[Check[TryingReply], ...]:
    """Return the two checks that a reply of the model about the triples of a hop must pass.

    The first is that "yes" has at least one answer and "no" has none. The second is that each
    answer is the name of a head or a tail in the triples; letter case and white space are ignored.
    """
    known: set[str] = set()
    for result in filled:
        for triple in result.triples:
            known.update(map(normalize_name, triple[::2]))  # without the relations between

    def find_contradiction(reply: TryingReply) -> str:
        """Return what is wrong with "yes" without answers, or "no" with some; else ""."""
        if reply.sufficient == "yes" and not reply.answers:
            return "the reply is yes, but gives no answer"
        if reply.sufficient == "no" and reply.answers:
            return "the reply is no, with answers"
        return ""

    def find_unknown_names(reply: TryingReply) -> str:
        """Return a problem that names the first five answers that are not in the triples; "" if all are.

        Letter case and white space do not count.
        """
        unknown = []
        for name in reply.answers:
            if normalize_name(name) not in known:
                unknown.append(repr(name))
        if unknown:
            return f"{', '.join(unknown[:5])} is not in the triples"
        return ""

    return (
        Check("answers if and only if yes", find_contradiction),
        Check("answers among the triples", find_unknown_names),
    )


def find_answer_values(
    tried: TriedAnswer, filled: Sequence[FilledTriples], heads: Sequence[Head]
) -> tuple[Value, ...]:
    """Return the terms that the answers name, each with the triples that support it.

    ``filled`` are the results of the last hop, and ``heads`` the heads of all hops. An answer names
    a tail of the results or a value of the heads; letter case and white space are ignored. Of
    several terms of one name, those are returned that are a tail of the most results: the terms
    that the most topic entities lead to. The support is the triples that lead to the term, and for
    a value of a head also the triples of the last hop that have it as subject or object. Values
    come in the order of the answers, and terms of one name by label. What names no term is a value
    of its own (``_read_own_words``), with all triples of the last hop. Returns nothing if the model
    found no answer.
    """
    tails = collect_values(filled)
    last_triples = _merge_support(tails)
    candidates = list(tails)
    for value in collect_values(heads):
        triples = [triple for triple in last_triples if value.term in triple[::2]]
        support = (*value.support, *triples)
        candidates.append(replace(value, support=support))

    by_name: dict[str, list[Value]] = defaultdict(list)
    for value in candidates:
        by_name[normalize_name(value.label)].append(value)
    tail_counts = Counter(value.term for value in tails)
    values: list[Value] = []
    answer_by_name = {normalize_name(answer): answer for answer in tried.answers}
    for name, answer in answer_by_name.items():
        named = by_name[name]
        if not named:
            values.append(Value(_read_own_words(answer), answer, last_triples))
            continue
        highest_count = max(tail_counts[value.term] for value in named)
        likeliest = [value for value in named if tail_counts[value.term] == highest_count]
        values += unite_values(likeliest)
    return tuple(values)


def _read_own_words(answer: str) -> Literal:
    """Return what an answer means that is no name in the graph: a truth value, a number, or the text itself."""
    words = normalize_name(answer)
    if words in TRUTH_VALUES:
        return Literal(TRUTH_VALUES[words])
    return Literal(int(words)) if words.isdecimal() else Literal(answer)


def unite_values(values: Iterable[Value]) -> list[Value]:
    """Return one value for each term, with the support of all that have it, sorted by label, then by term."""
    groups: dict[Term, list[Value]] = defaultdict(list)
    for value in values:
        groups[value.term].append(value)
    united = []
    for term, same in groups.items():
        support = _merge_support(same)
        united.append(Value(term, same[0].label, support))
    return sorted(united, key=lambda value: (value.label, str(value.term)))


def _merge_support(values: Sequence[Value]) -> Triples:
    """Return the triples that support any of the values, each once, in the order of the values."""
    return Answer("list", tuple(values)).support


# Answers without the graph


class KnowledgeReply(Reply):
    """The answers from memory, none if it does not know."""

    answers: list[str]
    """Empty if it does not know."""


@agent("own_knowledge", kind="model")
def answer_from_own_knowledge(question: str, reason: str, run: Run) -> Answer:
    """Ask the model to answer without the graph, and mark its answers as not grounded.

    ``reason`` says why the graph gave no answer. It is kept in the answer, which has no values if
    the model does not know any. Each name that it gives, once and without spaces around it, is a
    value. The model is asked when a walk has ended without an answer, at the iteration limit or
    anywhere (``own_knowledge_at``; DoG, "Answer Trying"). The reference code asks it when the
    answer of the graph differs from the gold answer. Raises InvalidReplyError without a valid
    reply.
    """
    reply = ask_model("dog/own_knowledge", {"question": question}, KnowledgeReply, run)
    names = dict.fromkeys(map(str.strip, reply.answers))
    values = []
    for name in filter(None, names):
        values.append(Value(Literal(name), name))
    return Answer("list", tuple(values), reason=reason, ungrounded=bool(values))


TRUTH_VALUES = {"yes": True, "true": True, "no": False, "false": False}
"""Answers to a question for yes or no, in lower case."""
TRIPLE_PATTERNS: Mapping[Direction, str] = {"out": "?head ?p ?tail", "in": "?tail ?p ?head"}
HEAD_TYPES = {"out": (URIRef,), "in": (URIRef, Literal)}
"""The types of a term with triples in a direction. A query cannot name a blank node."""
MAX_LABEL_LOOKUPS = 100
"""Tails whose labels are looked up to decide whether tails have names."""
MAX_NAMED_VERTICES = 10
"""Vertices without a triple that are named. The number of all others follows."""


class _Path(NamedTuple):
    """A way from a vertex of a head to a tail: one triple, or two with an unnamed node between."""

    head: Term
    tail: Term
    triples: tuple[Triple, ...]
    second_hop: tuple[URIRef, Direction] | None = None
    """The predicate of the second triple, and its direction as seen from the unnamed node."""
    name: str = ""
    """The name of a tail that is a blank node or an empty list; "" if it has none."""
    place: int = 0
    """The place of the tail in a list, from 1."""


_WrittenTriple = tuple[tuple[str, ...], tuple[Term, Term]]
"""A triple in words, and its head and tail as terms; see ``FilledTriples``."""


@agent("triple_filling", subject="filtered", kind="sparql")
def fill_triples(filtered: FilteredRelation, head: Head, run: Run) -> FilledTriples:
    """Return the tails of a head along the chosen relation (DoG, "Knowledge Graph Invoking").

    No model is asked. Vertices that the walk began at are not returned as tails. A path that leads
    to a node without a name is followed one hop further, and the ends of that hop are the tails. At
    most ``fan_out`` tails are kept, the first by name. If no relation was chosen or nothing was
    found, the result has no values but a reason. One query is sent, one more if a path has to be
    followed further, and those for labels.
    """
    relation = filtered.relation
    if relation is None:
        reason = filtered.reason or "no relation was chosen"
        return FilledTriples("list", head=head.name, reason=reason)
    head_types = HEAD_TYPES[relation.direction]
    terms = []
    for value in head.values:
        if isinstance(value.term, head_types):
            terms.append(value.term)
    if not terms:
        return _make_filled_triples(head, relation, [], [], _list_unconnected(head, []), run)

    query, longer_query = _write_queries(terms, relation)
    queries = [query]
    result = run.kg.select(query)
    paths = _read_paths(result.rows, relation.direction)
    unconnected: list[str] | None = _list_unconnected(head, paths)
    if result.cut:
        unconnected = None
        run.note(f"the result was cut at {len(result.rows):,} rows: raise the graph's row_limit")

    paths = [path for path in paths if path.tail not in head.start]
    paths = _read_nodes(paths, run)
    tails = [path.tail for path in paths if not path.name]
    unnamed_nodes = _find_unnamed_nodes(tails, head, run)
    if unnamed_nodes:
        queries.append(longer_query)
        longer_paths = _read_longer_paths(
            longer_query, relation.direction, head, unnamed_nodes, run
        )
        paths = _replace_paths(paths, longer_paths)
        if longer_paths:
            run.note("where a node has no name, the path was followed one hop further")
    return _make_filled_triples(head, relation, paths, queries, unconnected, run)


def _read_nodes(paths: Sequence[_Path], run: Run) -> list[_Path]:
    """Return the paths, those to a container continued to its members, and blank nodes with their names.

    An empty list stays a tail. The graph is asked if there are such tails.
    """
    to_nodes = [path for path in paths if isinstance(path.tail, BNode) or path.tail == RDF.nil]
    if not to_nodes:
        return list(paths)
    nodes = read_nodes(run.kg, list(chain.from_iterable(path.triples for path in to_nodes)), {})
    read = []
    for path in paths:
        members = nodes.members(path.tail)
        if not members:
            read.append(path._replace(name=nodes.name(path.tail)))
            continue
        for place, member in enumerate(members, 1):
            triples = (*path.triples, (path.tail, RDFS.member, member))
            name = ""
            if isinstance(member, BNode):
                name = nodes.describe(member)
            read.append(path._replace(tail=member, triples=triples, name=name, place=place))
    return read


def _write_queries(heads: Sequence[Term], relation: Relation) -> tuple[str, str]:
    """Return the query for the tails of a relation, and the one for a further hop from the tails.

    The rows of the first have head, predicate and tail. Those of the second have head, predicate,
    node, second predicate, tail, and "back" if the tail is the subject of the second triple, else
    "". The second never returns to the head.
    """
    values = f"{values_clause('?head', heads)} {values_clause('?p', relation.iris)}"
    pattern = TRIPLE_PATTERNS[relation.direction]
    first_hop = pattern.replace("?tail", "?node")
    second_hop = (
        '{ ?node ?q ?tail BIND("" AS ?back) } UNION { ?tail ?q ?node BIND("back" AS ?back) }'
    )
    return (
        f"SELECT DISTINCT ?head ?p ?tail WHERE {{ {values} {pattern} }}",
        f"SELECT DISTINCT ?head ?p ?node ?q ?tail ?back WHERE {{ {values} {first_hop} ."
        f" {second_hop} FILTER(!sameTerm(?tail, ?head)) }}",
    )


def _make_triple(head: Term, predicate: URIRef, tail: Term, direction: Direction) -> Triple:
    """Return the triple of two terms and a predicate, where ``direction`` is as seen from the head.

    With "in" the tail is the subject.
    """
    if direction == "in":
        return tail, predicate, head
    return head, predicate, tail


def _read_paths(rows: Sequence[Row], direction: Direction) -> list[_Path]:
    """Return the path of each row of head, predicate and tail.

    Rows in which a term is missing, or in which the predicate is not an IRI, are skipped.
    """
    paths = []
    for head, predicate, tail in rows:
        if head is not None and isinstance(predicate, URIRef) and tail is not None:
            triple = _make_triple(head, predicate, tail, direction)
            paths.append(_Path(head, tail, (triple,)))
    return paths


def _list_unconnected(head: Head, paths: Sequence[_Path]) -> list[str]:
    """Return the labels of the vertices of a head from which no path was found; blank nodes are left out."""
    heads = {path.head for path in paths}
    labels = []
    for value in head.values:
        if value.term not in heads and not isinstance(value.term, BNode):
            labels.append(value.label)
    return labels


def _find_unnamed_nodes(tails: Sequence[Term], head: Head, run: Run) -> set[Term]:
    """Return the tails (what a relation leads to) that have no name: nodes that only connect others.

    A blank node has no name. IRIs have none if all these hold: no tail is a literal, none of the
    first MAX_LABEL_LOOKUPS of the IRIs has a label, and a vertex that the walk began at has one.
    (Otherwise the graph labels nothing, and the name of an IRI is its local part.) One query is
    sent if there are IRIs and no literals.
    """
    blank_nodes: set[Term] = set()
    iris = set()
    has_literals = False
    for tail in tails:
        if isinstance(tail, BNode):
            blank_nodes.add(tail)
        elif isinstance(tail, URIRef):
            iris.add(tail)
        else:
            has_literals = True
    if not iris or has_literals:
        return blank_nodes
    looked_up = sorted(iris)[:MAX_LABEL_LOOKUPS]
    for term in head.start:
        if isinstance(term, URIRef):
            looked_up.append(term)
    vertices = values_clause("?v", looked_up)
    predicates = values_clause("?l", run.kg.vocabulary.labels)
    result = run.kg.select(f"SELECT DISTINCT ?v WHERE {{ {vertices} {predicates} ?v ?l ?name }}")
    labelled = {vertex for (vertex,) in result.rows}
    if labelled and labelled.isdisjoint(iris):
        return blank_nodes | iris
    return blank_nodes


def _read_longer_paths(
    query: str, direction: Direction, head: Head, unnamed_nodes: set[Term], run: Run
) -> list[_Path]:
    """Run the query for a further hop, and return the paths of two triples through unnamed nodes.

    ``direction`` is that of the first hop. The second hop follows every predicate of the unnamed
    node in both directions, but for labels, descriptions and noise unless ``whole_graph`` is on.
    Paths are left out that end at a blank node or at a vertex that the walk began at.
    """
    has_blank_nodes = any(isinstance(node, BNode) for node in unnamed_nodes)
    ignored: Container[Term | None] = run.kg.vocabulary.excluded_predicates
    if DogSettings.of_run(run).whole_graph:
        ignored = ()
    paths = []
    for start, predicate, node, second, tail, mark in run.kg.select(query).rows:
        if start is None or node is None or tail is None or isinstance(tail, BNode):
            continue
        if not isinstance(predicate, URIRef) or not isinstance(second, URIRef):
            continue
        # A blank node has another label in each result, so it cannot be found by its label.
        is_unnamed = node in unnamed_nodes or (has_blank_nodes and isinstance(node, BNode))
        if is_unnamed and tail not in head.start and second not in ignored:
            second_direction: Direction = "out"
            if str(mark) == "back":
                second_direction = "in"
            near = _make_triple(start, predicate, node, direction)
            far = _make_triple(node, second, tail, second_direction)
            paths.append(_Path(start, tail, (near, far), (second, second_direction)))
    return paths


def _replace_paths(paths: Sequence[_Path], longer_paths: Sequence[_Path]) -> list[_Path]:
    """Return the paths, but for those that a longer one continues, followed by the longer ones.

    Paths that end at a blank node without a name are left out, too.
    """
    continued = {path.triples[0] for path in longer_paths}
    kept = []
    for path in paths:
        is_unnamed = isinstance(path.tail, BNode) and not path.name
        if path.triples[0] not in continued and not is_unnamed:
            kept.append(path)
    return [*kept, *longer_paths]


def _make_filled_triples(
    head: Head,
    relation: Relation,
    paths: Sequence[_Path],
    queries: Sequence[str],
    unconnected: Sequence[str] | None,
    run: Run,
) -> FilledTriples:
    """Return the tails of paths, and the triples in words, at most ``fan_out`` of each.

    Tails are sorted by name, the members of a list by their places.
    ``unconnected`` are the labels of the vertices of the head without a triple; None if the graph
    did not return all triples, so that they are not known. What is cut is noted on the step.
    Without tails the result has a reason. Names are asked of the graph.
    """
    limit = DogSettings.of_run(run).fan_out
    head_values = {value.term: value for value in head.values}
    paths_by_tail = _group_by_tail(paths, head_values)
    terms: set[Term] = set()
    for path in paths:
        for triple in path.triples:
            terms.update(triple)
    labels = label_terms(terms, run)
    for path in paths:
        labels[path.tail] = path.name or labels[path.tail]

    def order(tail: Term) -> tuple[int, str, str]:
        """Return what a tail is sorted by: its place in a list, then its label."""
        return paths_by_tail[tail][0].place, labels[tail], str(tail)

    tails = sorted(paths_by_tail, key=order)
    values = []
    for tail in tails[:limit]:
        support = _collect_support(paths_by_tail[tail], head_values)
        values.append(Value(tail, labels[tail], support))
    if len(values) < len(tails):
        run.note(f"{len(tails):,} tails were found, the first {limit} by name are kept (fan_out)")

    kept_paths = [paths_by_tail[value.term] for value in values]
    triples = _write_triples(kept_paths, head_values, relation, labels)
    shown = triples[:limit]
    if len(shown) < len(triples):
        run.note(f"a model sees {limit} of {len(triples):,} triples (fan_out)")
    found = set()
    for path in chain(*paths_by_tail.values()):
        found.add((path.head, path.tail, path.second_hop))
    filled = FilledTriples(
        "list",
        tuple(values),
        tuple(queries),
        reason="" if values else f"nothing further is there by {relation}",
        head=head.name,
        relation=relation,
        triples=tuple(words for words, _ in shown),
        ends=tuple(ends for _, ends in shown),
        note=_describe_completeness(len(shown), len(found), unconnected),
        found=len(tails),
    )
    return with_display_names(run.kg, filled)


def _group_by_tail(
    paths: Sequence[_Path], head_values: Mapping[Term, Value]
) -> dict[Term, list[_Path]]:
    """Return the paths to each tail, sorted by the order of the head's vertices, then by their triples.

    So the order does not depend on the engine. Paths from other vertices are left out, since an
    engine may return an IRI spelled in another way than in the query.
    """
    ranks = {term: rank for rank, term in enumerate(head_values)}

    own_paths = [path for path in paths if path.head in ranks]
    own_paths.sort(key=lambda path: (ranks[path.head], str(path.triples)))
    by_tail: dict[Term, list[_Path]] = defaultdict(list)
    for path in own_paths:
        by_tail[path.tail].append(path)
    return by_tail


def _collect_support(
    paths: Sequence[_Path], head_values: Mapping[Term, Value]
) -> tuple[Triple, ...]:
    """Return the triples that lead from the topic entity to a tail, over one or several paths, each once.

    The triples of a path are added together with those that lead to its head. After the first path,
    this ends before a path that would make them more than MAX_TRIPLES_PER_VALUE.
    """
    triples: dict[Triple, None] = {}
    for path in paths:
        support = head_values[path.head].support
        with_path = triples | dict.fromkeys((*support, *path.triples))
        if triples and len(with_path) > MAX_TRIPLES_PER_VALUE:
            break
        triples = with_path
    return tuple(triples)


def _write_triples(
    paths_by_tail: Sequence[Sequence[_Path]],
    head_values: Mapping[Term, Value],
    relation: Relation,
    labels: Mapping[Term, str],
) -> list[_WrittenTriple]:
    """Return each path in words, with its head and tail as terms; equal ones are returned once.

    The first path to each tail comes first, then the second path to each, and so on: a limit on the
    triples then leaves out as few tails as possible. A path of two triples has "…" between them.
    """
    triples: dict[_WrittenTriple, None] = {}
    for paths in zip_longest(*paths_by_tail):
        for path in filter(None, paths):
            words = [head_values[path.head].label, str(relation)]
            if path.second_hop is not None:
                predicate, direction = path.second_hop
                second_relation = Relation(labels[predicate], direction, (predicate,))
                words += ["…", str(second_relation)]
            words.append(labels[path.tail])
            triples[tuple(words), (path.head, path.tail)] = None
    return list(triples)


def _describe_completeness(shown: int, found: int, unconnected: Sequence[str] | None) -> str:
    """Return a text for a model: whether the shown triples are all, and which vertices have none.

    ``shown`` and ``found`` are numbers of triples. ``unconnected`` are labels, of which at most
    MAX_NAMED_VERTICES are written; None means that the graph did not return all triples. If no
    triple was found, the text is only about the vertices, and it may be "".
    """
    notes = []
    if found and unconnected is None:
        notes.append(f"cut: {shown:,} of more than {found:,} triples")
    elif shown < found:
        notes.append(f"cut: {shown:,} of {found:,} triples")
    elif found:
        notes.append("all triples")
    if unconnected:
        names = ", ".join(unconnected[:MAX_NAMED_VERTICES])
        others = len(unconnected) - MAX_NAMED_VERTICES
        if others > 0:
            names += f" and {others:,} others"
        notes.append(f"no triple for {names}")
    return "; ".join(notes)


def disambiguate_names(
    filled: Sequence[FilledTriples], heads: Sequence[Head], run: Run
) -> tuple[FilledTriples, ...]:
    """Return the results of a hop with distinct names for tails that have one name: "Dune (film)".

    Tails are what a relation leads to. Names are compared without letter case and white space. What
    is in the brackets is found by ``_find_qualifiers``. Vertices of the heads, from which the hop
    started, keep the names that they have in the question. If there are such names, descriptions
    are asked of the graph.
    """
    tail_names = {value.term: value.label for value in collect_values(filled)}
    head_names = {value.term: value.label for value in collect_values(heads)}
    homonyms = _find_homonyms(tail_names | head_names)
    if not homonyms:
        return tuple(filled)

    descriptions = describe_vertices(run.kg, sorted(chain.from_iterable(homonyms)))
    names = dict(head_names)
    for iris in homonyms:
        qualifiers = _find_qualifiers(iris, descriptions)
        for iri, qualifier in zip(iris, qualifiers, strict=True):
            if iri not in head_names:
                names[iri] = f"{tail_names[iri]} ({qualifier})"
    return tuple(_rename_tails(result, names) for result in filled)


def _find_homonyms(names: Mapping[Term, str]) -> list[list[URIRef]]:
    """Return the vertices of each name that several vertices have."""
    iris_by_name: dict[str, list[URIRef]] = defaultdict(list)
    for term, name in names.items():
        if isinstance(term, URIRef):
            iris_by_name[normalize_name(name)].append(term)
    return [iris for iris in iris_by_name.values() if len(iris) > 1]


def _find_qualifiers(
    iris: Sequence[URIRef], descriptions: Mapping[URIRef, Description]
) -> list[str]:
    """Return a text for each vertex that distinguishes it from the others of its name.

    Kinds of texts are tried in this order: types; the first words of the descriptions, from one
    word to all; numbers from 1, since a model sees no identifiers (DoG, "Knowledge Graph Invoking").
    The first kind is taken of which every vertex has a text, and all are different.
    """
    types_of_all = []
    words_of_all = []
    for iri in iris:
        description = descriptions[iri]
        types_of_all.append(", ".join(description.types))
        words_of_all.append(description.description.split())
    kinds = [types_of_all]
    for length in range(1, max(map(len, words_of_all)) + 1):
        kinds.append([" ".join(words[:length]) for words in words_of_all])
    for qualifiers in kinds:
        if all(qualifiers) and len(set(qualifiers)) == len(iris):
            return qualifiers
    return [str(number) for number, _ in enumerate(iris, 1)]


def _rename_tails(result: FilledTriples, names: Mapping[Term, str]) -> FilledTriples:
    """Return a copy of a result with new names for some tails (what its relation leads to).

    ``names`` has the new names by term; they are used in its values and in its triples. A result
    with triples that a person put in is returned as it is, since the vertices in these triples are
    not known.
    """
    if len(result.ends) < len(result.triples):
        return result
    triples = []
    for words, (_, tail) in zip(result.triples, result.ends, strict=False):
        *others, tail_name = words
        triples.append((*others, names.get(tail, tail_name)))
    values = relabel_values(result.values, names)
    return replace(result, values=values, triples=tuple(triples))
