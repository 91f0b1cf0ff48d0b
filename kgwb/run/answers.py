"""What a person asks, and what comes back: a question, its dialogue, and its answer with what supports it.

Also the vertices that the mentions of a question may refer to, and those chosen for them. Values are
read as a person reads them: lists as their members, each value once.

``docs/run_format.md`` has their JSON form.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from rdflib import RDF, RDFS, BNode, Literal, URIRef

from kgwb.kg.base import MAX_SUPPORTED_ROWS, AnswerKind, Graph
from kgwb.records import (
    MAX_LINE_CHARS,
    MAX_SUMMARY_PARTS,
    NO_NAMES,
    Explanation,
    Hidden,
    QueryPart,
    Record,
    Role,
    Score,
    Sparql,
    frozen,
    one_line,
    summarize_fields,
)
from kgwb.terms import (
    DisplayNames,
    Iri,
    Term,
    Triple,
    describe_term,
    format_triple,
    is_number,
    local_part,
    name_from_iri,
    unit_datatype,
    value_of_term,
)
from kgwb.text import (
    first_items,
    list_first,
    list_within,
    pluralize,
    shorten,
    single_line,
    tell_apart,
)

if TYPE_CHECKING:
    from kgwb.kg.nodes import Nodes

NOT_IN_GRAPH = "not in this graph"
"""The reason of an answer begins with this if the graph was asked and holds no answer."""
CANNOT_EXPRESS = "cannot express"
"""The reason begins with this if the graph was not asked, as the question cannot be expressed."""
NOT_UNDERSTOOD = "rules did not understand this"
"""What the model ``rules`` says of a question, or of a part of it, that it cannot read."""
UNGROUNDED_NOTE = "not grounded: from the model's own knowledge, not from the graph"
"""Shown with every ungrounded answer."""
NO_SUPPORT = "no supporting triple found"
"""Shown beside a value without support."""
NOT_LOOKED_FOR = f"support was looked for of the first {MAX_SUPPORTED_ROWS} values only"
"""Shown beside a value without support beyond these."""
MAX_SUMMARY_VALUES = 5
"""How many values of an answer its summary shows, unless all are asked for."""


def was_graph_asked(reason: str) -> bool:
    """Return whether an answer without values means that the graph holds none, by its reason.

    A reason that does not begin with NOT_IN_GRAPH is another one, such as a query that could not be
    run. An empty reason says nothing else, so that the graph counts as asked.
    """
    return not reason or reason.startswith(NOT_IN_GRAPH)


@frozen
class Turn(Record):
    """One earlier question of a dialogue with its answer (Chatty-KG, Definition 3.1)."""

    question: str
    answers: tuple[str, ...] = ()
    """Labels of the answer's values, or their lexical forms. In a Context at most L of them."""
    standalone: str = ""
    """The self-contained question that was answered; empty if it was the question itself."""
    entities: tuple[str, ...] = ()
    """The mentions that were linked in that turn, as written."""
    linked: tuple[Iri, ...] = ()
    """The vertex of each of these mentions, in their order. Later turns link the mention to it."""
    vertices: tuple[Iri, ...] = ()
    """The vertices of the answer and its support. The word "else" in a later turn excludes them."""
    text: str = ""
    """The answer in sentences, where the system shows its models these."""

    def __str__(self) -> str:
        question = self.standalone or self.question
        answers = list_first(self.answers)
        return f"{question} {answers}"


@frozen
class Dialogue(Record):
    """The earlier turns, oldest first."""

    turns: tuple[Turn, ...] = ()

    def __str__(self) -> str:
        return pluralize(len(self.turns), "earlier turn")


@frozen
class Question(Record):
    """A question, in the words of the person and in the words that the agents work on."""

    text: str
    original: str = ""
    """The words before translation; empty if nothing was translated."""

    def __str__(self) -> str:
        if self.original:
            return f"{self.text}, translated from: {self.original}"
        return self.text


@frozen
class Context(Record):
    """The dialogue as the rephraser sees it (Chatty-KG, section 4.1, C_q)."""

    turns: tuple[Turn, ...] = ()
    """With at most L answers each."""
    cut: int = 0
    """The number of answers that were left out, over all turns."""

    def __str__(self) -> str:
        if not self.turns:
            return "no earlier turn"
        turns = pluralize(len(self.turns), "earlier turn")
        if not self.cut:
            return turns
        return f"{turns}, {pluralize(self.cut, 'answer')} left out"


@frozen
class CitedText(Record):
    """A text beside the graph that supports a value. It is no triple of the graph."""

    file: str
    """The path of the file in its folder."""
    place: str
    """Where in the file the text begins: "line 12"."""
    text: str

    def __str__(self) -> str:
        """Return the file and the place: "reviews/arrival.md, line 12"."""
        return f"{self.file}, {self.place}"


@frozen
class Value(Record):
    """One value of an answer with the triples that support it."""

    has_nested_records: ClassVar[bool] = False

    term: Term
    label: str
    support: tuple[Triple, ...] = ()
    row: tuple[Term | None, ...] = ()
    """For an answer that is a table, the cells of one row; the first of them is ``term``."""
    texts: Hidden[tuple[CitedText, ...]] = ()
    """The texts beside the graph that support it."""
    measure: Term | None = None
    """What decided that it is the largest or the first. It is not part of the answer."""

    def __str__(self) -> str:
        return self.label

    @property
    def term_label(self) -> str:
        """The label of ``term`` alone; "" for a row of a table, whose label names all its cells."""
        return "" if self.row else self.label

    @property
    def language(self) -> str:
        """The language of ``term``; "" if it has none."""
        return getattr(self.term, "language", None) or ""

    @property
    def terms(self) -> tuple[Term, ...]:
        """The terms of the row without empty cells, or the one term if there is no row."""
        cells = tuple(cell for cell in self.row if cell is not None)
        return cells or (self.term,)


@frozen
class Reading(Record):
    """Another way to read a question, which would give another answer."""

    taken: str
    """How the question was read."""
    other: str
    """How else it may be read."""
    sparql: Hidden[Sparql] = ""
    """The query for the other reading, if it is known without asking a model; else empty."""
    rows: tuple[str, ...] = ()
    """The first rows of this query, as a person reads them."""

    def __str__(self) -> str:
        text = f"{self.other} (taken: {self.taken})"
        if not self.rows:
            return text
        return f"{text}: {'; '.join(self.rows)}"


MIN_CONTENT_WORD_CHARS = 4
"""Letters of the shortest word that can distinguish two candidates."""


def content_words(text: str) -> set[str]:
    """Return the words of a text, in lower case, that have MIN_CONTENT_WORD_CHARS letters or more."""
    words = re.findall(r"\w+", text.casefold())
    return {word for word in words if len(word) >= MIN_CONTENT_WORD_CHARS}


@frozen
class Candidate(Record):
    """A vertex that a mention may refer to."""

    iri: Iri
    label: str
    score: Score = 0.0
    """How well the label fits the mention; 1 if they are equal but for letter case."""
    types: tuple[str, ...] = ()
    """Names of its classes."""
    description: str = ""
    relations: tuple[str, ...] = ()
    """Names of its predicates, where several vertices share a label.

    A system may add where they lead: "member of: Marketing".
    """

    def __str__(self) -> str:
        return f"{self.label_with_types} <{self.iri}>"

    @property
    def name(self) -> str:
        return self.label

    @property
    def label_with_types(self) -> str:
        """The label, with the names of the classes in parentheses if there are any."""
        if not self.types:
            return self.label
        return f"{self.label} ({', '.join(self.types)})"

    @property
    def describing_words(self) -> set[str]:
        """The content words of its types, its description, and the neighbours in its relations.

        Relations are written "member of: Marketing"; the words before the colon do not count, nor
        do relations without one.
        """
        texts = [*self.types, self.description]
        for relation in self.relations:
            _, _, neighbours = relation.partition(": ")
            texts.append(neighbours)
        return content_words(" ".join(texts))


@frozen
class NameReading(Record):
    """A name of a question, and the thing or text of another name, or of the same, that it was read as."""

    name: str
    """As the question writes it; empty if it has no name that is like the other one."""
    read_as: str
    """The label of the thing, or the text."""
    difference: str = ""
    """What differs, such as "a number"; empty if it is the same name, which several things have."""
    iri: Iri | None = None
    """The thing; None for a text."""
    others: Hidden[tuple[Candidate, ...]] = ()
    """What else the name may mean: the other candidates, or the other things of the name."""

    def __str__(self) -> str:
        if not self.difference:
            others = list_first([f"<{other.iri}>" for other in self.others])
            number = len(self.others) + 1
            return f"{number} things are named {self.read_as}: this is about <{self.iri}>, not {others}"
        if not self.name:
            return f"“{self.read_as}” was looked up, which the question does not name"
        return f"“{self.name}” was read as “{self.read_as}”, which differs in {self.difference}"


@frozen
class Answer(Record):
    """What a system answers. An answer without values has a reason instead."""

    kind: AnswerKind
    values: tuple[Value, ...] = ()
    queries: tuple[Sparql, ...] = ()
    """The SPARQL queries that the values came from, in order of execution."""
    text: str = ""
    """The answer as a sentence, if one was asked for."""
    reason: Explanation = ""
    """Why there is no value.

    It begins with NOT_IN_GRAPH if the graph was asked and holds none, and with CANNOT_EXPRESS if the
    question cannot be expressed. Any other reason is that of an agent that gave up: it found no
    vertex of a name, or a query failed.
    """
    names: Hidden[tuple[tuple[Iri, str], ...]] = ()
    """Display names of the IRIs in the support, so that a replay shows them too."""
    columns: tuple[str, ...] = ()
    """For an answer that is a table, what each column holds."""
    ungrounded: bool = False
    """Whether the model answered from its own knowledge, without a triple of the graph."""
    doubt: str = ""
    """What in the answer is not proved by the triples that it cites, or may be missing; else empty."""
    evidence: Hidden[tuple[Triple, ...]] = ()
    """Of an answer in words without values, such as "none of them": the triples that it stands on."""
    readings: tuple[Reading, ...] = ()
    """How else the question may be read. Each can be chosen by its number, from 1: ``Run.read_as``."""
    measure: str = ""
    """What the ``measure`` of each value is, as the query names it; empty if there is none."""
    remarks: tuple[str, ...] = ()
    """What to know beside the values, such as how many more are level with the last one."""
    read_names: Hidden[tuple[NameReading, ...]] = ()
    """The names of the question that were read as others, or that several things have."""

    def with_doubts(self, doubts: Iterable[str]) -> Answer:
        """Return this answer with further doubts behind its own."""
        doubt = "; ".join(filter(None, (self.doubt, *doubts)))
        if doubt == self.doubt:
            return self
        return replace(self, doubt=doubt)

    def is_given_by(self, output: object) -> bool:
        """Return whether a step's output is this answer, without what was found out about it later.

        At the end of a run, doubts, remarks and units are added to the answer of its last step.
        """
        if not isinstance(output, Answer):
            return False
        if (output.kind, output.queries, output.text) != (self.kind, self.queries, self.text):
            return False
        own_terms = [value.terms for value in self.values]
        other_terms = [value.terms for value in output.values]
        return own_terms == other_terms

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the values."""
        return tuple(value.label for value in self.values)

    @property
    def support(self) -> tuple[Triple, ...]:
        """The triples that support any of the values, or the text without values, each once.

        They are in the order of the values.
        """
        triples: list[Triple] = []
        for value in self.values:
            triples += value.support
        triples += self.evidence
        return tuple(dict.fromkeys(triples))

    @property
    def texts(self) -> tuple[CitedText, ...]:
        """The texts beside the graph that support any of the values, each once."""
        texts = chain.from_iterable(value.texts for value in self.values)
        return tuple(dict.fromkeys(texts))

    @property
    def vertices(self) -> tuple[URIRef, ...]:
        """The IRIs among the subjects and objects of the support, then those among the values.

        Each stands once. Predicates are left out.
        """
        terms: list[Term] = []
        for subject, _, object_ in self.support:
            terms += [subject, object_]
        terms += [value.term for value in self.values]
        iris = [term for term in terms if isinstance(term, URIRef)]
        return tuple(dict.fromkeys(iris))

    def __bool__(self) -> bool:
        return bool(self.values)

    def __str__(self) -> str:
        values = list_first(self._distinct_labels())
        text = self.text or values or self.reason or "no answer, and no reason given"
        return self._with_note(text)

    @property
    def languages(self) -> set[str]:
        """The languages of the values."""
        return {value.language for value in self.values} - {""}

    def _distinct_labels(self) -> list[str]:
        """Return the labels of the values, with terms in brackets where labels look the same.

        Texts of several languages have their language in brackets.
        """

        has_languages = len(self.languages) > 1

        def label(position: int) -> str:
            """Return the label of the value at a position."""
            value = self.values[position]
            if has_languages and value.language:
                return f"{value.label} ({value.language})"
            return value.label

        def label_with_term(position: int) -> str:
            """Return the label of the value at a position, with its terms in brackets."""
            terms = map(describe_term, self.values[position].terms)
            return f"{label(position)} ({' · '.join(terms)})"

        positions = range(len(self.values))
        labels = tell_apart(positions, (label, label_with_term))
        return list(labels.values())

    def _with_note(self, text: str) -> str:
        """Return the text of the answer, followed by UNGROUNDED_NOTE if it is ungrounded."""
        if not self.ungrounded:
            return text
        return f"{text} ({UNGROUNDED_NOTE})"

    def summary(
        self, names: DisplayNames = NO_NAMES, *, limit: int | None = MAX_SUMMARY_PARTS
    ) -> str:
        """Return the answer on one line, its remarks, then a line for each value with its supporting triples.

        The measure of a value is in brackets behind it.

        ``limit`` is the number of triples of a value, with which MAX_SUMMARY_VALUES values are
        shown; None shows all. ``names`` are display names by IRI, which win over those of the
        answer. A first line that would be longer than MAX_LINE_CHARS has the first values and how
        many there are in all.
        """
        value_limit = MAX_SUMMARY_VALUES
        if limit is None:
            value_limit = len(self.values)
            limit = len(self.support) + len(self.texts)
        known_names = {str(iri): name for iri, name in self.names}
        known_names.update(names)

        def format_value(position: int) -> str:
            """Return the line of the value at a position."""
            no_support = NO_SUPPORT
            if position >= MAX_SUPPORTED_ROWS:
                no_support = NOT_LOOKED_FOR
            return _value_with_support(self.values[position], known_names, limit, no_support)

        line = one_line(self)
        if len(str(self)) > MAX_LINE_CHARS and self.labels and not self.text:
            values = list_within(self._distinct_labels(), MAX_LINE_CHARS)
            line = single_line(self._with_note(values))
        positions = range(len(self.values))
        format_evidence = partial(format_triple, names=known_names)
        lines = [line]
        lines += map(single_line, self.remarks)
        lines += first_items(positions, value_limit, format_value)
        lines += first_items(self.evidence, limit, format_evidence)
        return "\n".join(lines)


def _value_with_support(value: Value, names: DisplayNames, limit: int, no_support: str) -> str:
    """Return one line with the label of a value, its first triples, and its first texts.

    ``no_support`` stands in their place if there are none.

    "Villeneuve: Arrival — director → Villeneuve; and 2 more; text arrival.md, line 12: “...”"
    """
    parts = first_items(value.support, limit, partial(format_triple, names=names))
    parts += first_items(value.texts, limit, _format_cited_text)
    support = "; ".join(parts) or no_support
    label = shorten(value.label)
    if value.measure is not None:
        label += f" (measure: {shorten(str(value.measure))})"
    return single_line(f"{label}: {support}")


def _format_cited_text(cited: CitedText) -> str:
    """Return the place of a text, marked as a text, and how the text begins."""
    return f"text {cited}: “{shorten(cited.text)}”"


AnswerType = TypeVar("AnswerType", bound=Answer)


def with_display_names(
    kg: Graph, answer: AnswerType, known: Mapping[Any, str] | None = None
) -> AnswerType:
    """Return a copy of an answer with new ``names``: one for each IRI of its values and support.

    The graph is asked for them, unless ``known`` has all of them. They are pairs of IRI and name,
    sorted by IRI, and replace the earlier ones.
    """
    terms = set(chain.from_iterable(answer.support))
    for value in answer.values:
        terms.update(value.terms)
    iris = [term for term in terms if isinstance(term, URIRef)]
    iris.sort(key=str)  # comparing texts is far faster than comparing URIRefs
    if known is None or not all(iri in known for iri in iris):
        known = kg.names(iris)
    names = tuple((iri, known[iri]) for iri in iris)
    return replace(answer, names=names)


def add_units(answer: Answer) -> Answer:
    """Return an answer in which a number whose datatype is a unit has the unit's name behind it."""
    if not any(unit_datatype(value.term) for value in answer.values):
        return answer
    values = tuple(map(_add_unit, answer.values))
    return replace(answer, values=values)


def _add_unit(value: Value) -> Value:
    """Return a value with its unit in the label, if its datatype says one: "12.5 square kilometre"."""
    datatype = unit_datatype(value.term)
    if not datatype or value.label != str(value.term) or not is_number(value.term):
        return value
    return replace(value, label=f"{value.label} {name_from_iri(datatype)}")


def doubt_counted_text(answer: Answer, counted: Collection[Term]) -> Answer:
    """Return a count with a doubt if all that was counted is one text with a digit.

    "about 300" may be the answer to "How many rooms ...?", or one thing of that name.
    """
    for term in counted:
        has_digit = any(map(str.isdigit, str(term)))
        if len(counted) == 1 and isinstance(term, Literal) and has_digit:
            return replace(answer, doubt=f'the only value is "{shorten(term)}", counted as one')
    return answer


CLASS_TYPES = ("class",)
"""The types of a candidate that is a class, and not a thing."""
MAX_NEAREST_CANDIDATES = 5
"""How many candidates are named if a mention has no vertex."""


@frozen
class RetrievedCandidates(Record):
    """The candidates that the label search found for a mention, best first."""

    entity: str
    """The mention, as the question writes it."""
    candidates: tuple[Candidate, ...]
    how: Explanation = ""
    """The stage of the label search that found them."""
    query: Hidden[str] = ""
    """The search as it was sent."""
    found: Hidden[int] = 0
    """The number of vertices found within v_limit. Only the best of them become candidates."""
    may_be_several: Hidden[bool] = False
    """Whether several candidates may be meant together: the mention names what they have in common."""

    @property
    def left_out(self) -> str:
        """What was found and a model is not shown for lack of room; empty if nothing."""
        count = self.found - len(self.candidates)
        if count <= 0:
            return ""
        return f"{count:,} of {self.found:,} candidates for {self.entity!r}"

    def __str__(self) -> str:
        candidates = pluralize(len(self.candidates), "candidate")
        if self.found > len(self.candidates):
            return f"{candidates} of {self.found:,} found"
        return candidates


@frozen
class Link(Record):
    """The vertex chosen for a mention, or the vertices that are meant together."""

    entity: str
    """The mention, as the question writes it."""
    vertex: Candidate | None
    """None if no candidate is meant."""
    candidates: Hidden[tuple[Candidate, ...]] = ()
    """The vertices it was chosen from."""
    reason: Explanation = ""
    value: Term | None = None
    """A literal that is the mention, if no vertex is meant: a town that is only part of an address."""
    others: Hidden[tuple[Candidate, ...]] = ()
    """Further vertices that are meant together with the first: "coal" may be two kinds of coal."""

    @property
    def vertices(self) -> tuple[Candidate, ...]:
        """All vertices that are meant; empty if none is."""
        if self.vertex is None:
            return ()
        return (self.vertex, *self.others)

    @property
    def is_linked(self) -> bool:
        """Whether the mention has a vertex, or a literal in place of one."""
        return self.vertex is not None or self.value is not None

    def __str__(self) -> str:
        if self.value is not None:
            return f"{self.entity} → the text “{self.value}”"
        if self.vertex is None:
            return f"{self.entity} → no vertex"
        labels = list_first([vertex.label_with_types for vertex in self.vertices])
        return f"{self.entity} → {labels}"

    def with_derived_fields(self) -> Link:
        """Return the link with its vertex alone: in a form, a person chooses one."""
        return replace(self, others=())

    def summary(
        self, names: DisplayNames = NO_NAMES, *, limit: int | None = MAX_SUMMARY_PARTS
    ) -> str:
        """Return the mention and its vertices with IRIs on one line, then the other fields.

        ``names`` and ``limit`` are as for ``Record.summary``.
        """
        fields = summarize_fields(self, names, limit=limit)
        lines = fields.splitlines()
        vertices = ", ".join(map(str, self.vertices)) or "no vertex"
        lines[0] = one_line(f"{self.entity} → {vertices}")
        return "\n".join(lines)

    def roles(self) -> Iterable[tuple[Term | Triple, Role]]:
        """Return the vertices with the role "linked" to their mention; nothing without a vertex."""
        role = Role("linked", self.entity)
        return [(vertex.iri, role) for vertex in self.vertices]

    def query_parts(self) -> Iterable[QueryPart]:
        """Return the IRIs of the vertices, or the literal; nothing if there is neither."""
        if self.value is not None:
            return [QueryPart("vertex", self.value.n3())]
        return [QueryPart("vertex", f"<{vertex.iri}>") for vertex in self.vertices]

    def missing_from_graph(self) -> str:
        """Return that the mention has no vertex, with at most MAX_NEAREST_CANDIDATES candidates.

        "" if there is a vertex, or a literal in its place.
        """
        if self.is_linked:
            return ""
        nearest = []
        for candidate in self.candidates[:MAX_NEAREST_CANDIDATES]:
            nearest.append(f"{candidate.label} ({candidate.score:.2f})")
        found = "the graph has no label like it"
        if nearest:
            found = f"nearest are {', '.join(nearest)}"
        return f"no vertex for “{self.entity}”: {found}"


EMPTY_LIST = RDF.nil
"""rdflib makes its names anew each time that they are looked up."""


def read_values(
    kg: Graph,
    answer: Answer,
    known: Mapping[Any, str] | None = None,
    *,
    reads_numbers: bool = False,
    shows_units: bool = False,
    merges_forms: bool = True,
) -> Answer:
    """Return a copy of an answer with its values as a person reads them, and with display names.

    A container is replaced by its members, in their order; a remark counts the empty ones. A blank
    node is labelled by its name, or by what it has. With ``reads_numbers``, a node that stands for
    a number is replaced by it. With ``shows_units``, a number that a blank node has is labelled
    with its units. With ``merges_forms``, values that differ in language, datatype or spelling only
    are one value. So is a member that stands in a list several times. Remarks say so. If nothing but empty containers
    was found, the answer is a text that says so. The graph is asked about blank nodes, if there are
    any, and for names unless ``known`` has all of them.
    """
    answer = with_display_names(kg, answer, known)
    terms = set(chain(*answer.support, *(value.terms for value in answer.values)))
    if EMPTY_LIST not in terms and BNode not in map(type, terms):
        return _merge_equal_values(answer, merges_forms)
    from kgwb.kg.nodes import read_nodes

    names_by_iri = {str(iri): name for iri, name in answer.names}
    nodes = read_nodes(kg, answer.support, names_by_iri)
    values: list[Value] = []
    empty_containers = 0
    remarks = list(answer.remarks)
    for value in answer.values:
        members = None if value.row else nodes.members(value.term)
        if members is None:
            values.append(_read_value(value, nodes, reads_numbers))
            continue
        if not members:
            empty_containers += 1
        for member, times in Counter(members).items():
            label = nodes.describe(member)
            triple = (value.term, RDFS.member, member)
            support = (*value.support, triple)
            values.append(replace(value, term=member, label=label, support=support))
            if times > 1:
                container = nodes.describe(value.term)
                remarks.append(f"{label} stands {times} times in {container}")
    if shows_units:
        values = [_with_unit(value, nodes, answer.labels) for value in values]
    if values and empty_containers:
        remarks.append(f"left out: {pluralize(empty_containers, 'empty list')}")
    names = sorted(nodes.display_names().items())
    read = replace(
        answer,
        values=tuple(values),
        remarks=tuple(remarks),
        names=tuple(names),
    )
    if answer and not values:
        return replace(read, text="none: the list is empty", evidence=answer.support)
    return _merge_equal_values(read, merges_forms)


def _read_value(value: Value, nodes: Nodes, reads_numbers: bool) -> Value:
    """Return a value with a label for its blank nodes, or the numbers that they stand for.

    What the graph says of them supports it, too.
    """
    if not any(isinstance(term, BNode) for term in value.terms):
        return value
    cells: list[Term | None] = []
    support = dict.fromkeys(value.support)
    for cell in value.row or (value.term,):
        number = None
        if isinstance(cell, BNode):
            for fact in nodes.facts(cell):
                support[(cell, *fact)] = None
            if reads_numbers:
                number = nodes.number(cell)
        cells.append(cell if number is None else number)

    bound = [cell for cell in cells if cell is not None]
    row = tuple(cells) if value.row else ()
    label = " · ".join(map(nodes.describe, bound))
    return replace(
        value,
        term=bound[0],
        label=label,
        row=row,
        support=tuple(support),
    )


def _with_unit(value: Value, nodes: Nodes, labels: Collection[str]) -> Value:
    """Return a number with the units that its blank nodes have in its label, but for those of ``labels``."""
    if value.row or not is_number(value.term):
        return value
    units = set()
    for subject, _, object_ in value.support:
        if object_ == value.term and isinstance(subject, BNode):
            units.add(nodes.unit(subject))
    shown = " / ".join(sorted(units.difference(labels, [""])))
    return replace(value, label=f"{value.label} {shown}".strip())


def _merge_equal_values(answer: Answer, merges_forms: bool) -> Answer:
    """Return an answer in which each value stands once, with the triples of all its forms.

    Forms of one value differ in language, datatype or spelling (``value_of_term``). With
    ``merges_forms``, the shortest is taken, and a remark names the others. Without it, each form is
    a value. Rows of a table stay as they are.
    """
    groups: dict[Hashable, list[Value]] = {}
    for value in answer.values:
        form = value_of_term(value.term) if merges_forms else value.term
        groups.setdefault(value.row or form, []).append(value)
    if len(groups) == len(answer.values):
        return answer
    values = []
    remarks = list(answer.remarks)
    for same in groups.values():
        plainest = min(same, key=lambda value: len(value.label))
        support = dict.fromkeys(chain.from_iterable(value.support for value in same))
        values.append(replace(plainest, support=tuple(support)))
        forms = dict.fromkeys(value.term for value in same)
        if len(forms) > 1:
            described = []
            for form in forms:
                datatype = local_part(describe_term(form))
                described.append(f"{form} ({datatype})")
            listed = list_first(described)
            remarks.append(f"{plainest.label} is one value in {len(forms)} forms: {listed}")
    return replace(answer, values=tuple(values), remarks=tuple(remarks))


def count_in_graph(answer: Answer, query: str, graph: Graph) -> Answer:
    """Return a count whose number is that which a query counts in the graph.

    So a number is right if the result that was counted is cut. Raises QueryError if the query's
    result is not a number.
    """
    from kgwb.kg.queries import parse_count

    rows = graph.select(query).rows
    counted = rows[0][0] if rows else None
    number = parse_count(counted)
    [value] = answer.values
    value = replace(value, term=Literal(number), label=str(number))
    return replace(answer, values=(value,), queries=(*answer.queries, query))


def count_values(answer: Answer) -> Answer:
    """Return the number of values of an answer as an answer, which stands on their triples."""
    number = len(answer.values)
    value = Value(Literal(number), str(number), answer.support)
    return replace(answer, kind="count", values=(value,), columns=(), text="", evidence=())
