"""The records of RAGonite, in flow order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from kgwb.deprecated import renamed_names
from kgwb.flow import NOT_IN_GRAPH, AnswerKind
from kgwb.kg.sparql import is_valid_iri, n3
from kgwb.kg.term_text import quote_text
from kgwb.records import Explanation, Hidden, Record, Score
from kgwb.terms import Iri, Term, Triple
from kgwb.text import pluralize

MAX_SHOWN_PASSAGE_CHARS, MAX_CELL_CHARS = 1_200, 300
"""Letters of a passage, and of a cell, that a model sees."""


@dataclass(frozen=True, slots=True)
class Column(Record):
    """A column of an induced table."""

    name: str
    type: str
    references: str = ""
    """The table whose ids it holds."""
    comment: str = ""
    """Unit, range and examples of its values, these in quotes."""
    predicate: Iri | None = None

    def __str__(self) -> str:
        return f"{self.name} {self.type}" + (
            f" REFERENCES {self.references}(id)" if self.references else ""
        )


@dataclass(frozen=True, slots=True)
class Table(Record):
    """An induced table: the instances of a class, or the values of a predicate that has several."""

    name: str
    rows: int
    columns: tuple[Column, ...]
    of: Iri | None = None
    """The class."""

    def __str__(self) -> str:
        comments = (f"  -- {column.comment}" if column.comment else "" for column in self.columns)
        ends = ("," * (column is not self.columns[-1]) for column in self.columns)
        lines = map("  {}{}{}".format, self.columns, ends, comments)
        return "\n".join(
            [f"CREATE TABLE {self.name} (  -- {pluralize(self.rows, 'row')}", *lines, ");"]
        )

    @property
    def sparql_description(self) -> str:
        """The class with its predicates, for who writes SPARQL in place of SQL."""
        known = [
            column for column in self.columns if column.predicate and is_valid_iri(column.predicate)
        ]
        uses = (
            f"\n  {n3(c.predicate)} {c.references or c.type}  # {c.comment}"
            for c in known
            if c.predicate
        )
        return (
            self.name
            + (f" {n3(self.of)}" if self.of and is_valid_iri(self.of) else "")
            + "".join(uses)
        )


@dataclass(frozen=True, slots=True)
class Schema(Record):
    """The database induced from a graph, and how much of the graph is in it."""

    tables: tuple[Table, ...]
    """The largest first."""
    triples: int
    passages: int
    only_passages: tuple[tuple[str, int], ...] = ()
    """Why triples are in no table, and how many; they are in passages."""

    def __str__(self) -> str:
        parts = pluralize(len(self.tables), "table"), pluralize(self.passages, "passage")
        return f"{' and '.join(parts)} of {self.triples:,} triples"

    def format_tables(self, max_tokens: int, *, for_sparql: bool = False) -> str:
        """The tables as a model reads them, the largest first, as far as there is room."""
        texts = [table.sparql_description if for_sparql else str(table) for table in self.tables]
        sizes = [len("".join(texts[: place + 1])) for place in range(len(texts))]
        shown = [
            text for text, size in zip(texts, sizes, strict=True) if size <= 4 * max_tokens
        ] or texts[:1]
        left = [table.name for table in self.tables[len(shown) :]]
        return "\n".join(shown) + (f"\n-- and the tables {', '.join(left)}" if left else "")


@dataclass(frozen=True, slots=True)
class Source(Record):
    """What a tool gave: the result of a query, or a passage."""

    tool: Literal["sql", "passages", "sparql"]
    title: str
    """The query, or what the passage is about."""
    text: str = ""
    """The passage."""
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    cut: Hidden[bool] = False
    """Whether there are more rows."""
    error: str = ""
    score: Score = 0.0
    """Of a passage: 1 if it is the best by embeddings and by words."""
    triples: Hidden[tuple[Triple, ...]] = ()
    """What it stands on."""
    terms: Hidden[tuple[tuple[str, Term], ...]] = ()
    """Ids and names in it, with what they stand for."""

    def __str__(self) -> str:
        if self.error:
            return f"failed: {self.error}"
        if self.tool == "passages":
            return self.title
        return pluralize(len(self.rows), "row")

    @property
    def prompt_text(self) -> str:
        """The source as a model sees it."""
        if self.error:
            return f"! it could not be run: {quote_text(self.error, MAX_SHOWN_PASSAGE_CHARS)}"
        if self.tool == "passages":
            return f"{quote_text(self.title, MAX_CELL_CHARS)}: {quote_text(self.text, MAX_SHOWN_PASSAGE_CHARS)}"
        more = f", and more: only the first {len(self.rows)} are here" if self.cut else ""
        lines = [pluralize(len(self.rows), "row") + more]
        for row in (self.columns, *self.rows):
            lines.append(" | ".join(quote_text(cell, MAX_CELL_CHARS) for cell in row))
        return "\n".join(lines)

    @property
    def text_with_query(self) -> str:
        """The source as a model sees it, with the query on a line before it."""
        query = f": {' '.join(self.title.split())}" if self.tool != "passages" else ""
        return f"{self.tool}{query}\n{self.prompt_text}"


@dataclass(frozen=True, slots=True)
class CitedValue(Record):
    """A value of an answer with the numbers of the sources that it is in."""

    value: str
    sources: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.value} {list(self.sources)}"


@dataclass(frozen=True, slots=True)
class CitedAnswer(Record):
    """The answer as a model wrote it from the sources, which are numbered from 1."""

    text: str
    kind: AnswerKind
    values: tuple[CitedValue, ...]
    sources: Hidden[tuple[Source, ...]]
    reason: Explanation = ""

    def __str__(self) -> str:
        return self.text or f"{NOT_IN_GRAPH}: {self.reason}"

    @property
    def cited_numbers(self) -> frozenset[int]:
        """The numbers of the sources that it cites."""
        return frozenset(number for value in self.values for number in value.sources)


if not TYPE_CHECKING:  # a type checker would take every name for known
    __getattr__ = renamed_names(__name__)
