"""The records of RoboData: decisions, observations, the position of the machine, and its answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any, Literal, Self, get_args

import rdflib
from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from kgwb.build import (
    Answer,
    AnswerKind,
    Explanation,
    Hidden,
    Iri,
    Prefixes,
    Record,
    Term,
    TermIds,
    Triple,
    Value,
    list_first,
    pluralize,
)

MAX_NAMED_PARTS = 6
"""Unconnected parts of the local graph that a prompt names."""


@dataclass(frozen=True)
class LocalGraph(Answer):
    """The nodes and triples that a run has fetched. The paper keeps them in a Neo4j database.

    Its values are the nodes, which may be literals. The support of a node are the triples with it
    as subject. Because it is an Answer, the subgraph of a run shows it, and ``run.exports`` writes
    it, like an answer's support. Unlike other records it has no slots, so that it keeps its ids.
    """

    kind: AnswerKind = "list"
    prefixes: Hidden[Prefixes] = ()
    """The prefixes of ids, besides the well-known ones."""

    def __str__(self) -> str:
        nodes = pluralize(len(self.values), "node")
        edges = pluralize(len(self.support), "edge")
        return f"{nodes}, {edges}"

    @cached_property
    def id_mapping(self) -> TermIds:
        """The ids under which a model is shown terms, and by which it names them.

        They tell all nodes and predicates of the graph apart.
        """
        predicates = [predicate for _, predicate, _ in self.support]
        return TermIds(self.prefixes, self.names).with_terms([*self.nodes, *predicates])

    @property
    def nodes(self) -> tuple[Term, ...]:
        """The terms of the nodes."""
        return tuple(value.term for value in self.values)

    def with_names(self, names: Iterable[tuple[Iri, str]]) -> Self:
        """Return the graph with more display names, and with prefixes for the ids of their IRIs.

        The IRIs need not be nodes. A prefix that was given before does not change.
        """
        ids = self.id_mapping.with_names(names)
        return replace(self, names=ids.names, prefixes=ids.prefixes)

    def with_triples(self, nodes: Iterable[Term], triples: Iterable[Triple]) -> Self:
        """Return a copy of the graph with more nodes and triples. The ends of the triples become nodes.

        Nodes keep their order; new ones come last. Each triple stands once.
        """
        outgoing: dict[Term, list[Triple]] = {}
        for node in (*self.nodes, *nodes):
            outgoing[node] = []
        all_triples = dict.fromkeys(self.support)
        all_triples.update(dict.fromkeys(triples))
        for triple in all_triples:
            subject, _, object_ = triple
            outgoing.setdefault(subject, []).append(triple)
            outgoing.setdefault(object_, [])
        names: dict[Term, str] = dict(self.names)
        values = []
        for node, support in outgoing.items():
            label = names.get(node, str(node))
            values.append(Value(node, label, tuple(support)))
        return replace(self, values=tuple(values))

    def without(self, nodes: Collection[Term], triples: Collection[Triple]) -> Self:
        """Return a copy of the graph without some triples, and without some nodes and all triples at them.

        The ends of a removed triple stay as nodes.
        """
        kept_nodes = [node for node in self.nodes if node not in nodes]
        kept_triples = []
        for triple in self.support:
            subject, _, object_ = triple
            has_node = subject in nodes or object_ in nodes
            if not has_node and triple not in triples:
                kept_triples.append(triple)
        return replace(self, values=()).with_triples(kept_nodes, kept_triples)

    def find_parts(self) -> list[list[Term]]:
        """Return the nodes of each connected part of the graph, the largest part first.

        Directions of triples do not count. Parts of one size, and the nodes of a part, are in the
        order of the graph.
        """
        import networkx as nx  # which takes long

        graph: nx.Graph[Term] = nx.Graph()
        graph.add_nodes_from(self.nodes)
        graph.add_edges_from(triple[::2] for triple in self.support)
        order = {node: place for place, node in enumerate(self.nodes)}
        parts = []
        for part in nx.connected_components(graph):
            in_order = sorted(part, key=order.__getitem__)
            parts.append(in_order)
        parts.sort(key=lambda part: (-len(part), order[part[0]]))
        return parts

    def describe_parts(self) -> str:
        """Return how many parts of the graph are not connected, and name them; "" if there are not at least two.

        A part is named by its first node, with its ID and size. At most MAX_NAMED_PARTS are named.
        """
        parts = self.find_parts()
        if len(parts) < 2:
            return ""
        named = []
        for part in parts[:MAX_NAMED_PARTS]:
            size = pluralize(len(part), "node")
            if len(part) == 1:
                size = "alone"
            named.append(f"{self.id_mapping.format_named_id(part[0])} ({size})")
        if len(parts) > MAX_NAMED_PARTS:
            named.append(f"{len(parts) - MAX_NAMED_PARTS} more")
        return f"{len(parts)} parts are not connected: {', '.join(named)}"

    def find_elements(self, ids: Sequence[str]) -> tuple[tuple[Term, ...], ...]:
        """Return the nodes or triples of the graph that a model names by IDs, as tuples of one or three terms.

        One ID names a node, three name a triple. Empty if the graph has no such element, or for
        another number of IDs. Several elements are returned if an ID is the text of several
        literals.
        """
        elements: Sequence[tuple[Term, ...]] = self.support
        if len(ids) != 3:
            elements = [(node,) for node in self.nodes]
        if len(ids) not in (1, 3):
            return ()
        meant = [set(self.id_mapping.find(id_)) for id_ in ids]
        found = []
        for element in elements:
            pairs = zip(element, meant, strict=True)
            if all(term in terms for term, terms in pairs):
                found.append(element)
        return tuple(found)

    def format_for_prompt(self, max_chars: int) -> str:
        """Return the graph as text for a prompt: entities, relations, and triples, by their IDs.

        It is cut between lines before ``max_chars`` characters are reached, with the number of
        lines left out. "empty" if there are no nodes. Literals are only in the triples.
        """
        if not self.values:
            return "empty"
        return fit_lines(self.format_lines(), max_chars)

    def format_lines(self) -> list[str]:
        """Return the whole graph as lines of text, under the headings Entities, Relations and Triples.

        A node or predicate is shown by its ID and name, a triple by three IDs. Literals are only in
        the triples.
        """
        ids = self.id_mapping
        entities = [node for node in self.nodes if not isinstance(node, rdflib.Literal)]
        relations = dict.fromkeys(triple[1] for triple in self.support)
        lines = ["Entities", *map(ids.format_named_id, entities)]
        lines += ["Relations", *map(ids.format_named_id, relations), "Triples"]
        for triple in self.support:
            lines.append(" | ".join(map(ids.format_id, triple)))
        return lines


def fit_lines(lines: Sequence[str], max_chars: int) -> str:
    """Join the first lines that have fewer than ``max_chars`` characters together, and say how many are left out.

    Line ends are not counted. A line is never cut. Nothing is added if all lines fit.
    """
    chars = 0
    for position, line in enumerate(lines):
        chars += len(line)
        if chars >= max_chars:
            omitted = pluralize(len(lines) - position, "more line")
            return "\n".join([*lines[:position], f"({omitted}, not shown)"])
    return "\n".join(lines)


State = Literal["EVAL_LOCAL", "LOCAL", "REMOTE", "EVAL_REMOTE", "UPDATE", "PRODUCE"]
STATES: tuple[State, ...] = get_args(State)
ProducedKind = Literal["things", "count", "yes", "no", "nothing"]
TRANSITIONS: dict[State, tuple[State, ...]] = {
    "EVAL_LOCAL": ("PRODUCE", "REMOTE", "LOCAL"),
    "LOCAL": ("LOCAL", "EVAL_LOCAL"),
    "REMOTE": ("REMOTE", "EVAL_REMOTE"),
    "EVAL_REMOTE": ("UPDATE", "REMOTE", "EVAL_LOCAL"),
    "UPDATE": ("EVAL_LOCAL",),
}
"""The states that may follow each state (paper, "Stateful Orchestrator"). PRODUCE is the last."""
EMPTY_GRAPH = LocalGraph()
MAX_SHOWN_ELEMENT_CHARS = 120


TRIPLE_COLUMNS = ("subject", "predicate", "object")


@dataclass(frozen=True, slots=True)
class Observed(Record):
    """The result of one use of a tool: rows, or an error."""

    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Term | None, ...], ...] = ()
    """The rows that are shown. If they change the local graph, they are nodes or triples."""
    found: int = 0
    """The number of rows that were found. Only the first of them may be in ``rows``."""
    whole: bool = True
    """Whether ``found`` counts all rows there are. If not, there may be more."""
    effect: Literal["shown", "added", "removed"] = "shown"
    """What happens to the rows: "added" and "removed" change the local graph."""
    error: str = ""
    use: str = ""
    """The name of the tool with its arguments, as the model gave them."""
    names: Hidden[tuple[tuple[Iri, str], ...]] = ()
    """The display names of the IRIs in the rows."""

    def __str__(self) -> str:
        """Return the use with the error or the number of rows: "get_node("wd:Q1"): 2 rows of 5"."""
        if self.error:
            return f"{self.use}: error: {self.error}"
        row_count = pluralize(len(self.rows), "row")
        text = f"{self.use}: {row_count}"
        if self.found > len(self.rows) or not self.whole:
            number = f"{self.found:,}" if self.whole else f"at least {self.found:,}"
            text += f" of {number}"
        if self.effect != "shown":
            text += f" {self.effect}"
        return text

    @property
    def changes_graph(self) -> bool:
        """Whether the result changes the local graph."""
        return self.effect != "shown" and bool(self.rows)

    def format_lines(self, ids: TermIds) -> list[str]:
        """Return the result as lines for a prompt: one with the use and the columns, and one for each row.

        Terms are shown by their IDs, with their names in quotes. A result without rows is one line.
        """
        if not self.rows:
            return [str(self)]
        ids = ids.with_names(self.names)
        lines = [f"{self}: {' | '.join(self.columns)}"]
        for row in self.rows:
            lines.append("  " + " | ".join(map(ids.format_named_id, row)))
        return lines


@dataclass(frozen=True, slots=True)
class Visit(Record):
    """One turn of the machine, as memory keeps it."""

    state: State
    thought: Explanation
    next: State
    results: tuple[Observed, ...] = ()

    def __str__(self) -> str:
        transition = f"{self.state} → {self.next}"
        return "; ".join([transition, *map(str, self.results)])

    def format_rows(self, ids: TermIds, max_chars: int) -> list[str]:
        """Return the rows of each result as a text for a prompt, all of about ``max_chars`` characters.

        What a result does not need of its share, the next ones have.
        """
        texts: list[str] = []
        for position, result in enumerate(self.results):
            share = max_chars // (len(self.results) - position)
            text = fit_lines(result.format_lines(ids), share)
            max_chars = max(0, max_chars - len(text))
            texts.append(text)
        return texts


@dataclass(frozen=True, slots=True)
class Observation(Record):
    """A metacognitive observation: the strategy, how it is judged, and what to do differently."""

    strategy: str = ""
    judgement: Explanation = ""
    advice: str = ""
    """What to do differently; empty if the strategy is good."""

    def __str__(self) -> str:
        return self.advice or self.judgement

    def format_for_prompt(self, number: int) -> str:
        """Return the observation as a model is shown it: numbered, with its three parts."""
        advice = self.advice or "none"
        return f"{number}. strategy: {self.strategy}\n   judgement: {self.judgement}\n   advice: {advice}"

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return the schema that also reads the text of an advice, as runs had it before."""

        def read_text(data: Any) -> Any:
            if isinstance(data, str):
                return {"advice": data}
            return data

        return core_schema.no_info_before_validator_function(read_text, handler(source))


@dataclass(frozen=True, slots=True)
class Position(Record):
    """The position of the machine after a turn: all that the next turn needs."""

    question: str
    state: State = "EVAL_LOCAL"
    """The state of the next turn."""
    local: LocalGraph = EMPTY_GRAPH
    visits: tuple[Visit, ...] = ()
    """The turns so far, in order."""
    advice: str = ""
    """The advice of metacognition that is in force."""
    observations: tuple[Observation, ...] = ()
    """The metacognitive observations so far, in order."""

    def __str__(self) -> str:
        return f"→ {self.state}; {self.statistics}"

    @property
    def statistics(self) -> str:
        """Return the size as the paper's tables have it: "3 turns, 5 tool calls, 4 nodes, 3 edges"."""
        turns = pluralize(len(self.visits), "turn")
        use_count = sum(len(visit.results) for visit in self.visits)
        uses = pluralize(use_count, "tool call")
        return f"{turns}, {uses}, {self.local}"

    @property
    def usage_counts(self) -> str:
        """How often each transition was made and each tool used, as text: "LOCAL → LOCAL 1; get_node 2".

        They are in the order of their first use, transitions before tools. "" before the first
        turn.
        """
        transitions: Counter[str] = Counter()
        tools: Counter[str] = Counter()
        for visit in self.visits:
            transitions[f"{visit.state} → {visit.next}"] += 1
            for result in visit.results:
                tool, _, _ = result.use.partition("(")
                tools[tool] += 1
        counts = chain(transitions.items(), tools.items())
        return "; ".join(f"{name} {count}" for name, count in counts)

    def with_observation(self, observation: Observation, *, keeps_advice: bool) -> Position:
        """Return a copy of the position with one more observation, whose advice replaces the earlier advice.

        If it has no advice, the earlier one stays in force with ``keeps_advice``, else there is
        none.
        """
        advice = observation.advice
        if not advice and keeps_advice:
            advice = self.advice
        return replace(self, advice=advice, observations=(*self.observations, observation))

    @property
    def was_looked_into(self) -> bool:
        """Whether a visit of LOCAL came after the last visit that changed the local graph."""
        for visit in reversed(self.visits):
            if visit.state == "LOCAL":
                return True
            if any(result.changes_graph for result in visit.results):
                return False
        return False

    @property
    def outcome(self) -> str:
        """A text for a model: size and parts of the local graph, visits by state, and failed or empty tool calls."""
        states = Counter(visit.state for visit in self.visits)
        results = list(chain.from_iterable(visit.results for visit in self.visits))
        errors = sum(bool(result.error) for result in results)
        without_rows = sum(not result.rows and not result.error for result in results)
        lines = [
            f"the local graph has {self.local}",
            self.local.describe_parts(),
            f"{states['LOCAL']} visits of LOCAL, {states['REMOTE']} of REMOTE, "
            f"{states['UPDATE']} of UPDATE",
            f"of {pluralize(len(results), 'tool call')}, {errors} failed and {without_rows} found nothing",
        ]
        return "; ".join(filter(None, lines))

    def format_results(self, max_chars: int, states: Collection[State] = STATES) -> str:
        """Return the tool results as text for a prompt, the latest first; "none" if there are none.

        Only the tools of some states count, if ``states`` are given. The results are those of the
        latest UPDATE and of the turns after it, or of all turns if there was no UPDATE. Their IDs
        tell all terms in them and in the local graph apart. The text is cut between lines before
        ``max_chars`` characters.
        """
        results: list[Observed] = []
        for visit in self.visits:
            if visit.state == "UPDATE":
                results.clear()
            if visit.state in states:
                results += visit.results
        ids = self._ids_of(results)
        lines: list[str] = []
        for result in reversed(results):
            lines += result.format_lines(ids)
        return fit_lines(lines, max_chars) or "none"

    def _ids_of(self, results: Iterable[Observed]) -> TermIds:
        """Return IDs that tell all terms in some results and in the local graph apart."""
        rows = chain.from_iterable(result.rows for result in results)
        cells = chain.from_iterable(rows)
        return self.local.id_mapping.with_terms(cell for cell in cells if cell is not None)

    def format_memory(self, max_chars: int, *, with_thoughts: bool, with_rows: bool) -> str:
        """Return the turns as text for a prompt, oldest first; "nothing yet" if there are none.

        A turn is a line. The latest turns have their tool results and thoughts, as long as
        ``max_chars`` allow. The others have only their states and the number of tool uses, and may
        exceed ``max_chars``. No turn has its thought unless ``with_thoughts``.

        ``with_rows``, no line is shortened. Below it stand the rows of its results: of all turns
        about ``max_chars`` characters, the latest first. It is said where rows are left out.
        """
        lines = []
        ids = self.local.id_mapping
        if with_rows:
            ids = self._ids_of(chain.from_iterable(visit.results for visit in self.visits))
        for number, visit in reversed([*enumerate(self.visits, 1)]):
            line = f"{number}. {visit}"
            if with_thoughts:
                line += f"; thought: {visit.thought}"
            if with_rows:
                rows = visit.format_rows(ids, max_chars)
                max_chars -= sum(map(len, rows))
                lines.append("\n".join([line, *rows]))
                continue
            if len(line) > max_chars:
                uses = pluralize(len(visit.results), "tool call")
                line = f"{number}. {visit.state} → {visit.next}, {uses}"
            max_chars -= len(line)
            lines.append(line)
        return "\n".join(reversed(lines)) or "nothing yet"


@dataclass(frozen=True, slots=True)
class Sentence(Record):
    """A sentence of the answer with its support set, each element of which has been looked up."""

    text: str
    support: tuple[Triple, ...] = ()
    nodes: tuple[Term, ...] = ()
    """Elements of the support set that are single nodes."""
    failed: tuple[str, ...] = ()
    """Elements that are not in the graph, as the model wrote them."""

    def __str__(self) -> str:
        if not self.problem:
            return self.text
        return f"{self.text} [{self.problem}]"

    @property
    def problem(self) -> str:
        """What is wrong with the support set; "" if nothing is.

        Wrong are elements that are not in the graph, of which the first 3 are named, or a set
        without any element.
        """
        if self.failed:
            elements = [element[:MAX_SHOWN_ELEMENT_CHARS] for element in self.failed]
            return f"not in the graph: {list_first(elements, 3)}"
        return "" if self.support or self.nodes else "without support"


@dataclass(frozen=True, slots=True)
class Produced(Record):
    """The answer in sentences, and as nodes of the local graph."""

    sentences: tuple[Sentence, ...]
    kind: ProducedKind
    answers: tuple[Term, ...] = ()
    """The nodes that answer the question, or that are counted."""
    missing: Explanation = ""
    """What the local graph lacks for an answer, or for a complete one."""

    def __str__(self) -> str:
        text = " ".join(map(str, self.sentences))
        return text or f"nothing: {self.missing}"
