"""The triples of a hop: the tails that a relation leads to, and distinct names for them (DoG)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, zip_longest

from rdflib import BNode, Literal, URIRef

from kgwb.build import Direction, Run, Term, Triple, Value, agent
from kgwb.build.graph import (
    MAX_TRIPLES_PER_VALUE,
    Description,
    Row,
    describe_vertices,
    label_terms,
    values_clause,
    with_display_names,
)
from kgwb.build.text import local_part
from kgwb.systems.dog.records import (
    FilledTriples,
    FilteredRelation,
    Head,
    Relation,
    collect_values,
    normalize_name,
    relabel_values,
)
from kgwb.systems.dog.settings import DogSettings

TRIPLE_PATTERNS: Mapping[Direction, str] = {"out": "?head ?p ?tail", "in": "?tail ?p ?head"}
HEAD_TYPES = {"out": (URIRef,), "in": (URIRef, Literal)}
"""The types of a term with triples in a direction. A query cannot name a blank node."""
MAX_LABEL_LOOKUPS = 100
"""Tails whose labels are looked up to decide whether tails have names."""
MAX_NAMED_VERTICES = 10
"""Vertices without a triple that are named. The number of all others follows."""


@dataclass(frozen=True, slots=True)
class _Path:
    """A way from a vertex of a head to a tail: one triple, or two with an unnamed node between."""

    head: Term
    tail: Term
    triples: tuple[Triple, ...]
    second_hop: tuple[URIRef, Direction] | None = None
    """The predicate of the second triple, and its direction as seen from the unnamed node."""


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
    terms = [value.term for value in head.values if isinstance(value.term, head_types)]
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
    unnamed_nodes = _find_unnamed_nodes([path.tail for path in paths], head, run)
    if unnamed_nodes:
        queries.append(longer_query)
        longer_paths = _read_longer_paths(
            longer_query, relation.direction, head, unnamed_nodes, run
        )
        paths = _replace_paths(paths, longer_paths)
        if longer_paths:
            run.note("where a node has no name, the path was followed one hop further")
    return _make_filled_triples(head, relation, paths, queries, unconnected, run)


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
    looked_up += [term for term in head.start if isinstance(term, URIRef)]
    vertices = values_clause("?v", looked_up)
    predicates = values_clause("?l", run.kg.vocabulary.labels)
    result = run.kg.select(f"SELECT DISTINCT ?v WHERE {{ {vertices} {predicates} ?v ?l ?name }}")
    labelled = {vertex for (vertex,) in result.rows if vertex is not None}
    if labelled and labelled.isdisjoint(iris):
        return blank_nodes | iris
    return blank_nodes


def _read_longer_paths(
    query: str, direction: Direction, head: Head, unnamed_nodes: set[Term], run: Run
) -> list[_Path]:
    """Run the query for a further hop, and return the paths of two triples through unnamed nodes.

    ``direction`` is that of the first hop. The second hop follows every predicate of the unnamed
    node in both directions, but for labels, descriptions and noise. Paths are left out that end at
    a blank node or at a vertex that the walk began at.
    """
    has_blank_nodes = any(isinstance(node, BNode) for node in unnamed_nodes)
    ignored_predicates = run.kg.vocabulary.excluded_predicates
    paths = []
    for start, predicate, node, second, tail, mark in run.kg.select(query).rows:
        # A blank node has another label in each result, so it cannot be found by its label.
        is_unnamed = node in unnamed_nodes or (has_blank_nodes and isinstance(node, BNode))
        if not is_unnamed or tail in head.start or second in ignored_predicates:
            continue
        if not isinstance(predicate, URIRef) or not isinstance(second, URIRef):
            continue
        if start is None or node is None or tail is None or isinstance(tail, BNode):
            continue
        second_direction: Direction = "in" if str(mark) == "back" else "out"
        near = _make_triple(start, predicate, node, direction)
        far = _make_triple(node, second, tail, second_direction)
        paths.append(_Path(start, tail, (near, far), (second, second_direction)))
    return paths


def _replace_paths(paths: Sequence[_Path], longer_paths: Sequence[_Path]) -> list[_Path]:
    """Return the paths, but for those that a longer one continues, followed by the longer ones.

    Paths that end at a blank node are left out, too.
    """
    continued = {path.triples[0] for path in longer_paths}
    kept = []
    for path in paths:
        if path.triples[0] not in continued and not isinstance(path.tail, BNode):
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
    """Return the tails of paths sorted by name, and the triples in words, at most ``fan_out`` of each.

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

    tails = sorted(paths_by_tail, key=lambda tail: (labels[tail], str(tail)))
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

    def rank_then_triples(path: _Path) -> tuple[int, str]:
        return ranks[path.head], str(path.triples)

    own_paths = [path for path in paths if path.head in ranks]
    by_tail: dict[Term, list[_Path]] = defaultdict(list)
    for path in sorted(own_paths, key=rank_then_triples):
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
    names: dict[Term, str] = dict(head_names)
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
    word to all; local parts of the IRIs. The first kind is taken of which every vertex has a text,
    and all are different. If there is none, the texts are the IRIs.
    """
    for qualifiers in _list_qualifiers(iris, descriptions):
        if all(qualifiers) and len(set(qualifiers)) == len(iris):
            return qualifiers
    return list(map(str, iris))


def _list_qualifiers(
    iris: Sequence[URIRef], descriptions: Mapping[URIRef, Description]
) -> Iterator[list[str]]:
    """Yield texts for the vertices of one name, kind by kind; see ``_find_qualifiers``.

    Each kind is a list with a text for each vertex. A text is "" if a vertex has none of the kind.
    """
    described = [descriptions[iri] for iri in iris]
    yield [", ".join(description.types) for description in described]
    words_of_all = [description.description.split() for description in described]
    longest = max(map(len, words_of_all))
    for length in range(1, longest + 1):
        yield [" ".join(words[:length]) for words in words_of_all]
    yield list(map(local_part, iris))


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
        new_words = (*others, names.get(tail, tail_name))
        triples.append(new_words)
    values = relabel_values(result.values, names)
    return replace(result, values=values, triples=tuple(triples))
