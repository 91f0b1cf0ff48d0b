"""The subgraph of a run: linked vertices, what unknowns were bound to, answers, and their support.

It is read from the records of the run, so that a replay shows it too. Only ``expand_node`` asks the
graph. A record class adds to it with its methods ``roles`` and ``relation_phrases``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice, zip_longest
from typing import NamedTuple

from rdflib import BNode, URIRef
from rdflib import Literal as RdfLiteral

from kgwb.errors import SettingError
from kgwb.kg.algebra import TriplePattern, instantiate_patterns, term_from_text, variables_of
from kgwb.kg.base import Graph
from kgwb.kg.nodes import read_nodes
from kgwb.kg.queries import CandidateQuery
from kgwb.kg.sparql import n3
from kgwb.records import ROLE_TEXTS, Record, Role, frozen
from kgwb.run import Run
from kgwb.run.answers import Answer, Link, Value
from kgwb.show.explain import names_of_terms, records_in
from kgwb.show.terms import texts_by_iri
from kgwb.terms import DisplayNames, Term, Triple, describe_term, format_term, last_part
from kgwb.text import fit_width, pluralize, shorten, single_line, tell_apart

MAX_NODES = 60
"""Nodes of the subgraph of a run; how many were left out is noted."""
MAX_BINDINGS = 500
"""Bindings of one query that are looked for in the support of one value."""
MAX_TRIPLES_PER_DIRECTION = 500
"""Triples of a vertex that are asked for in each direction: a vertex may have millions."""
SHAPES = ("answer", "linked", "unknown", "literal", "support")
"""How nodes are drawn. The first that applies is the shape of a node."""
MAX_NODE_LABEL_CHARS = 34
"""Characters of a node's label that fit its box in a picture, see ``fit_width``."""

TermOrTriple = Term | Triple
RoleAssignment = tuple[TermOrTriple, Role]
RolesByPart = Mapping[TermOrTriple, tuple[Role, ...]]
"""The roles of terms and triples. What has none may be missing."""


@frozen
class Node:
    """A vertex, a literal or a blank node."""

    term: Term
    label: str
    roles: tuple[Role, ...] = ()
    expansion_note: str = ""
    """What expanding the node showed: "20 of at least 812 more triples shown"."""
    distinction: str = ""
    """What tells it apart from nodes whose label looks the same in a picture; empty without any."""

    @property
    def name(self) -> str:
        """The label, with what tells the node apart in brackets: "Dune (Dune_2021)"."""
        if self.distinction:
            return f"{self.label} ({self.distinction})"
        return self.label

    @property
    def shape(self) -> str:
        """The first of SHAPES that is a role of the node or its kind of term, else "neighbour".

        A vertex that was reached is drawn like one that an unknown is bound to.
        """
        kinds: set[str] = {role.kind for role in self.roles}
        if "reached" in kinds:
            kinds.add("unknown")
        if isinstance(self.term, RdfLiteral):
            kinds.add("literal")
        for shape in SHAPES:
            if shape in kinds:
                return shape
        return "neighbour"


@frozen
class Edge:
    """A triple of the graph."""

    triple: Triple
    label: str
    """The display name of the predicate."""
    roles: tuple[Role, ...] = ()


@frozen
class Subgraph:
    """A part of a graph, and the values of an answer that it supports."""

    nodes: tuple[Node, ...] = ()
    edges: tuple[Edge, ...] = ()
    answers: tuple[Value, ...] = ()
    """Values with that part of their support that is shown."""
    omission_note: str = ""
    """What was left out, with numbers; empty if nothing was."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What was left out, and what expanding the nodes showed.

        The omission comes first, then the nodes in order. Empty if there is neither.
        """
        notes = []
        if self.omission_note:
            notes.append(self.omission_note)
        for node in self.nodes:
            if node.expansion_note:
                notes.append(f"{node.name}: {node.expansion_note}")
        return tuple(notes)


# From a run to its subgraph


def build_subgraph(run: Run, *, max_nodes: int = MAX_NODES) -> Subgraph:
    """Return the subgraph of a run, as far as the run went, with about ``max_nodes`` nodes at most.

    Its nodes are the linked vertices, and the subjects and objects of the triples that support the
    answer. The vertices come first; the first value is always there, and each other one only if all
    its triples have room. Before the run has an answer, the latest answer of a step is taken. Roles
    come from the records, from matching the queries of the answer against the support, and from the
    answer itself. No graph is queried.
    """
    # A run that is executing adds steps meanwhile.
    steps = tuple(run.steps)
    records = list(records_in(steps))
    answer = _answer_so_far(run, records)
    vertices = _linked_vertices(records)
    part = _limit_nodes(vertices, answer, max_nodes)

    assignments: list[RoleAssignment] = []
    for record in records:
        if isinstance(record, Record):
            assignments += record.roles()
    assignments += _match_queries(records, part.answer)
    assignments += _answer_roles(part.answer)

    names = texts_by_iri(answer.names)
    names |= run.display_names()
    for value in part.answer.values:
        if value.term_label and isinstance(value.term, URIRef):
            names[str(value.term)] = value.term_label
    return part.to_subgraph(names, _group_roles(assignments))


def subgraph_of_answer(answer: Answer) -> Subgraph:
    """Return the values of one answer with their support, as a subgraph of at most MAX_NODES nodes.

    Every node and edge has the role "support". Literals among the values are nodes, too. The names
    are those of the answer; no graph is asked.
    """
    names = texts_by_iri(answer.names)
    part = _limit_nodes([], answer, MAX_NODES)
    roles = _same_roles(Role("support"), part.terms, part.answer.support)
    return part.to_subgraph(names, roles)


def _answer_so_far(run: Run, records: Sequence[object]) -> Answer:
    """Return the run's answer, else the latest answer among the records, else an empty one.

    An answer from a model's own knowledge does not count, since it has no support. Of records of a
    subclass, which answer a part of the question, only those with values count.
    """
    if run.answer and not run.answer.ungrounded:
        return run.answer
    for record in reversed(records):
        if isinstance(record, Answer) and not record.ungrounded:
            is_partial = type(record) is not Answer
            if record.values or not is_partial:
                return record
    return Answer("list")


def _answer_roles(answer: Answer) -> Iterator[RoleAssignment]:
    """Yield the roles of an answer's values, and of the triples that support them and their ends.

    The values of a partial answer, which is of a subclass, are not answers of the run.
    """
    for value in answer.values:
        if type(answer) is Answer:
            yield value.term, Role("answer")
        for triple in value.support:
            subject, _, object_ = triple
            for part in (triple, subject, object_):
                yield part, Role("support")


def _linked_vertices(records: Iterable[object]) -> list[URIRef]:
    """Return the vertices that mentions were linked to, each once.

    They are in the order of the records. Mentions that were not linked are left out.
    """
    vertices = []
    for record in records:
        if isinstance(record, Link):
            vertices += [vertex.iri for vertex in record.vertices]
    return list(dict.fromkeys(vertices))


def _group_roles(assignments: Iterable[RoleAssignment]) -> RolesByPart:
    """Return the roles of each term and triple, each role once.

    Roles are in the order of ROLE_TEXTS, then by their details. What has no role has no entry.
    """
    kinds = list(ROLE_TEXTS)

    def rank(role: Role) -> tuple[int, str]:
        """Return the sort key of a role: the order of ROLE_TEXTS, then its detail."""
        return kinds.index(role.kind), role.detail

    roles: dict[TermOrTriple, tuple[Role, ...]] = {}
    for part, role in assignments:
        known = roles.get(part, ())
        if role in known:
            continue
        in_order = sorted([*known, role], key=rank)
        roles[part] = tuple(in_order)
    return roles


class SubgraphPart(NamedTuple):
    """The part of a subgraph that fits the limit of nodes."""

    terms: list[Term]
    answer: Answer
    """The answer with the values that are shown, and that part of their support that is shown."""
    omission_note: str

    def to_subgraph(self, names: DisplayNames, roles: RolesByPart) -> Subgraph:
        """Return the terms as nodes, and the support of the answer as edges."""
        subgraph = _make_subgraph(self.terms, self.answer.support, names, roles)
        return replace(subgraph, answers=self.answer.values, omission_note=self.omission_note)


def _make_subgraph(
    terms: Iterable[Term], triples: Iterable[Triple], names: DisplayNames, roles: RolesByPart
) -> Subgraph:
    """Return terms as nodes, and triples as edges, in order, with their labels and roles.

    ``names`` are display names by IRI. A part that ``roles`` lacks has none.
    """
    nodes = []
    for term in terms:
        label = _label(term, names)
        nodes.append(Node(term, label, roles.get(term, ())))
    edges = []
    for triple in triples:
        _, predicate, _ = triple
        label = _label(predicate, names)
        edges.append(Edge(triple, label, roles.get(triple, ())))
    return Subgraph(_tell_nodes_apart(nodes), tuple(edges))


def _tell_nodes_apart(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """Return nodes with their ``distinction``: the end of the IRI, or else what describes the term.

    Blank nodes have none, since their ids mean nothing to a person.
    """
    labels: dict[Term, str] = {
        node.term: node.label for node in nodes if not isinstance(node.term, BNode)
    }

    def drawn_label(term: Term) -> str:
        """Return the label of a node as a picture shows it."""
        return fit_width(labels[term], MAX_NODE_LABEL_CHARS)

    def label_and_ending(term: Term) -> str:
        """Return the label, and on a second line the last part of the IRI."""
        return f"{drawn_label(term)}\n{last_part(term)}"

    def label_and_term(term: Term) -> str:
        """Return the label, and on a second line the IRI, or the type of a literal."""
        return f"{drawn_label(term)}\n{describe_term(term)}"

    texts = tell_apart(labels, (drawn_label, label_and_ending, label_and_term))
    told_apart = []
    for node in nodes:
        _, _, distinction = texts.get(node.term, "").partition("\n")
        told_apart.append(replace(node, distinction=distinction))
    return tuple(told_apart)


def _same_roles(role: Role, terms: Iterable[Term], triples: Iterable[Triple]) -> RolesByPart:
    """Return one and the same role for each of some terms and triples."""
    roles = (role,)
    return dict.fromkeys([*terms, *triples], roles)


def _label(term: Term, names: DisplayNames) -> str:
    """Return the label of a node or an edge: the text of its term in one line.

    An empty literal is called "empty text".
    """
    text = single_line(format_term(term, names))
    if not text:
        text = single_line(shorten(term))
    return text or "empty text"


def end_terms(triples: Iterable[Triple]) -> dict[Term, None]:
    """Return the subjects and objects of triples, each once, in the order of the triples."""
    terms: dict[Term, None] = {}
    for subject, _, object_ in triples:
        terms[subject] = None
        terms[object_] = None
    return terms


def _limit_nodes(vertices: Sequence[URIRef], answer: Answer, max_nodes: int) -> SubgraphPart:
    """Return which linked vertices and values of an answer are shown.

    First come the vertices, at most ``max_nodes``. The first value is always added, but only with
    so many of its triples that their ends and the value are ``max_nodes`` at most. Each other value
    is added with all its support, if then at most ``max_nodes`` nodes are shown.
    """
    shown: dict[Term, None] = dict.fromkeys(vertices[:max_nodes])
    all_terms: dict[Term, None] = dict.fromkeys(vertices)
    kept: list[Value] = []
    for value in answer.values:
        triples = value.support
        if not kept:
            triples = triples[: (max_nodes - 1) // 2]
        terms = end_terms(triples)
        all_terms |= end_terms(value.support)
        if answer.kind == "list":
            # A count or a truth value is a node only if the graph holds it.
            terms[value.term] = None
            all_terms[value.term] = None
        extended = shown | terms
        if kept and len(extended) > max_nodes:
            continue
        shown = extended
        label = single_line(shorten(value.label))
        kept.append(replace(value, label=label, support=triples))
    part = replace(answer, values=tuple(kept))
    note = _omission_note(len(shown), len(all_terms), part, answer)
    return SubgraphPart(list(shown), part, note)


def _omission_note(shown_nodes: int, all_nodes: int, part: Answer, answer: Answer) -> str:
    """Return how many nodes, answers and triples are shown or left out; "" if all are shown.

    ``part`` is the answer with the values and the support that are shown. Triples are counted of
    the first value only, as only its support is cut. For example: "40 of 95 nodes shown, with 3 of
    9 answers".
    """
    shown_values = len(part.values)
    all_values = len(answer.values)
    counts = []
    if all_nodes > shown_nodes:
        counts.append(f"{shown_nodes:,} of {all_nodes:,} nodes shown")
    if all_values > shown_values:
        counts.append(f"with {shown_values:,} of {all_values:,} answers")
    notes = []
    if counts:
        notes.append(", ".join(counts))
    if part.values:
        shown = part.values[0]
        whole = answer.values[0]
        left_out = len(whole.support) - len(shown.support)
        if left_out:
            number = pluralize(left_out, "triple")
            notes.append(f"{number} of {shown.label} left out")
    return "; ".join(notes)


# What the queries of an answer matched


def _match_queries(records: Sequence[object], answer: Answer) -> Iterator[RoleAssignment]:
    """Yield the roles that the queries of an answer give to the terms and triples of its support.

    A query counts if a candidate query among the records has its text, the last such. Triples get
    the words of the question as their role if there are as many phrases as patterns.
    """
    all_phrases = _latest_relation_phrases(records)
    known = {record.sparql: record for record in records if isinstance(record, CandidateQuery)}
    for sparql in answer.queries:
        if sparql not in known:
            continue
        query = known[sparql]
        phrases: Sequence[str] = ()
        if len(all_phrases) == len(query.patterns):
            phrases = all_phrases
        for value in answer.values:
            yield from _match_query(query, phrases, value.support)


def _latest_relation_phrases(records: Sequence[object]) -> tuple[str, ...]:
    """Return the words of the question behind each triple pattern.

    They are those of the latest record with any; empty if no record has any.
    """
    for record in reversed(records):
        if isinstance(record, Record):
            phrases = record.relation_phrases()
            if phrases:
                return phrases
    return ()


def _match_query(
    query: CandidateQuery, phrases: Sequence[str], triples: Sequence[Triple]
) -> Iterator[RoleAssignment]:
    """Match the patterns of a query against some triples, and yield the roles that follow.

    A term has the role of the unknown that it is bound to. A triple has the role of the phrase, the
    words of the question, that belongs to its pattern; ``phrases`` are empty if these are not
    known. At most MAX_BINDINGS bindings are used.
    """
    patterns = query.patterns
    unknowns = variables_of(patterns)
    texts = set(chain.from_iterable(patterns)).difference(unknowns)
    constants = {text: term_from_text(text) for text in texts}
    bindings = _find_bindings(patterns, triples, constants)
    for binding in islice(bindings, MAX_BINDINGS):
        for unknown in unknowns:
            yield binding[unknown], Role("unknown", unknown)
        matched = instantiate_patterns(patterns, binding)
        for triple, phrase in zip(matched, phrases, strict=False):
            yield triple, Role("relation", phrase)


def _find_bindings(
    patterns: Sequence[TriplePattern], triples: Sequence[Triple], binding: dict[str, Term]
) -> Iterator[dict[str, Term]]:
    """Yield each binding under which all patterns are among the triples, by backtracking.

    A binding maps the texts of variables and of constants to terms; ``binding`` has the constants
    first. The pattern with the fewest unbound variables is matched first. Without patterns
    ``binding`` itself is yielded.
    """
    if not patterns:
        yield binding
        return

    def count_unbound(pattern: TriplePattern) -> int:
        """Return how many variables of a pattern the binding does not have."""
        return sum(text not in binding for text in pattern)

    pattern = min(patterns, key=count_unbound)
    others = [other for other in patterns if other is not pattern]
    for triple in triples:
        extended = dict(binding)
        for text, term in zip(pattern, triple, strict=True):
            if extended.setdefault(text, term) != term:
                break
        else:
            yield from _find_bindings(others, triples, extended)


# Expanding


def expand_node(kg: Graph, subgraph: Subgraph, node: Term, max_triples: int = 20) -> Subgraph:
    """Return the subgraph with at most ``max_triples`` more triples of a vertex.

    They are in both directions. Predicates take turns, so that each is shown; those that the
    graph's vocabulary excludes are left out. The node's note says how many triples were found and
    shown. Blank nodes of a file are described by what they have. One query is sent, another one if there
    are such, and one request for names.

    Raises SettingError for a literal or a blank node, and the GraphError of a query.
    """
    if not isinstance(node, URIRef):
        kind = "literal"
        if isinstance(node, BNode):
            kind = "blank node"
        hint = "choose a vertex that has an IRI"
        shown = shorten(str(node))
        raise SettingError(
            f"the {kind} {shown!r} has no neighbours to add to the picture", hint=hint
        )
    triples, has_all = _triples_around(kg, node)
    drawn = {edge.triple for edge in subgraph.edges}
    undrawn = [triple for triple in triples if triple not in drawn]
    chosen = undrawn[:max_triples]
    note = _expansion_note(len(chosen), len(undrawn), has_all)

    nodes = {other.term: other for other in subgraph.nodes}
    if node in nodes:
        nodes[node] = replace(nodes[node], expansion_note=note)
    new_terms = [term for term in end_terms(chosen) if term not in nodes]
    names = texts_by_iri(names_of_terms(kg, chosen))
    if not kg.remote:  # an endpoint may name other blank nodes so in its next result
        names = texts_by_iri(read_nodes(kg, chosen, names).display_names().items())
    roles = _same_roles(Role("neighbour"), new_terms, chosen)
    added = _make_subgraph(new_terms, chosen, names, roles)
    return replace(
        subgraph,
        nodes=_tell_nodes_apart([*nodes.values(), *added.nodes]),
        edges=(*subgraph.edges, *added.edges),
    )


def _expansion_note(shown: int, found: int, has_all: bool) -> str:
    """Return how many new triples expanding a node showed, of how many that were found.

    ``has_all`` is whether the search found all triples of the node. If not, the total is given as
    "at least".
    """
    if not has_all:
        least = max(found, shown + 1)
        return f"{shown:,} of at least {least:,} more triples shown"
    if not found:
        return "no more triples"
    if shown == found:
        number = pluralize(shown, "more triple")
        return f"all {number} shown"
    return f"{shown:,} of {found:,} more triples shown"


def _triples_around(kg: Graph, vertex: URIRef) -> tuple[list[Triple], bool]:
    """Return the triples of a vertex in both directions, and whether these are all.

    At most MAX_TRIPLES_PER_DIRECTION are asked for in each direction, and triples with excluded
    predicates are left out. Predicates take turns: first comes one triple of each predicate and
    direction, then a second one of each, and so on. Raises a GraphError.
    """
    iri = n3(vertex)
    limit = f"LIMIT {MAX_TRIPLES_PER_DIRECTION}"
    outgoing_query = f"SELECT ?p ?o WHERE {{ {iri} ?p ?o }} {limit}"
    incoming_query = f"SELECT ?s ?p WHERE {{ ?s ?p {iri} }} {limit}"
    where = f"{{ {outgoing_query} }} UNION {{ {incoming_query} }}"
    result = kg.select(f"SELECT ?s ?p ?o WHERE {{ {where} }}")
    groups: defaultdict[tuple[str, bool], set[Triple]] = defaultdict(set)
    outgoing = 0
    for subject, predicate, object_ in result.rows:
        if subject is None:
            outgoing += 1
        if not isinstance(predicate, URIRef):
            continue
        if predicate in kg.vocabulary.excluded_predicates:
            continue
        triple = (subject or vertex, predicate, object_ or vertex)
        is_incoming = triple[0] != vertex
        groups[str(predicate), is_incoming].add(triple)

    in_order = [sorted(groups[key], key=str) for key in sorted(groups)]
    in_turns: list[Triple] = []
    for turn in zip_longest(*in_order):
        in_turns += [triple for triple in turn if triple is not None]
    incoming = len(result.rows) - outgoing
    is_limited = max(outgoing, incoming) >= MAX_TRIPLES_PER_DIRECTION
    has_all = not result.cut and not is_limited
    return in_turns, has_all
