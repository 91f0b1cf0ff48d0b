"""The records of RAGonite, in flow order."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from kgwb.build import (
    NOT_IN_GRAPH,
    AnswerKind,
    Explanation,
    Hidden,
    Iri,
    Record,
    Score,
    Term,
    Triple,
    is_valid_iri,
    n3,
    pluralize,
    quote_text,
)

MAX_SHOWN_PASSAGE_CHARS = 12_000
"""Characters of a passage that a model is shown."""
MAX_ERROR_CHARS = 1_200
"""Characters of an error message that a model is shown."""
MAX_CELL_CHARS = 300
"""Characters of a cell that are kept and shown to a model."""
MAX_VALUE_CHARS = 10_000_000
"""Characters of a value that a query computes, and of one that is shown whole; SQLite's own limit is 1 GB."""
NUMBER = re.compile(r"\d{1,6}")
BRACKETS = re.compile(r"\[(\d{1,6}(?:\s*[,–-]\s*\d{1,6})*)\]")
"""Numbers of sources in a text, in brackets."""
MAX_RANGE = 100
CHARS_PER_TOKEN = 4
"""An estimate of the length of a model's token."""


@dataclass(frozen=True, slots=True)
class Column(Record):
    """A column of an induced table."""

    name: str
    type: str
    """The SQL type, with PRIMARY KEY or NOT NULL."""
    references: str = ""
    """The table whose ids the column holds; empty for other values."""
    comment: str = ""
    """The unit, the range or examples of the values. Text from the graph is in quotes."""
    predicate: Iri | None = None
    """The predicate whose values the column holds; None for ``id``, ``name`` and keys."""
    induced_name: Hidden[str] = ""
    """The name that induction gave it, if a person gave it another one."""
    remark: Hidden[str] = ""
    """What a person said of it. It is a part of the comment."""
    referenced_key: Hidden[str] = "id"
    """The name of the key of the table that it references."""

    @property
    def name_by_induction(self) -> str:
        """The name that induction gave it."""
        return self.induced_name or self.name

    @property
    def is_primary_key(self) -> bool:
        """Whether it has the id of the thing in each row."""
        return self.type.endswith("PRIMARY KEY")

    def __str__(self) -> str:
        """Return the definition of the column as in CREATE TABLE."""
        definition = f"{self.name} {self.type}"
        if self.references:
            definition += f" REFERENCES {self.references}({self.referenced_key})"
        return definition


@dataclass(frozen=True, slots=True)
class Table(Record):
    """An induced table.

    It holds the instances of a class, or the values of a predicate with several values per subject.
    """

    name: str
    rows: int
    """The number of rows."""
    columns: tuple[Column, ...]
    of: Iri | None = None
    """The class, if the table has one."""
    comment: Hidden[str] = ""
    """What tells the table apart, if the name of another one differs by a number only."""
    induced_name: Hidden[str] = ""
    """The name that induction gave it, if a person gave it another one."""

    @property
    def name_by_induction(self) -> str:
        """The name that induction gave it."""
        return self.induced_name or self.name

    def __str__(self) -> str:
        """Return the CREATE TABLE statement, with the row count, and the comments of table and columns."""
        head = "; ".join(filter(None, [pluralize(self.rows, "row"), self.comment]))
        lines = [f"CREATE TABLE {self.name} (  -- {head}"]
        for position, column in enumerate(self.columns, 1):
            line = f"  {column}"
            if position < len(self.columns):
                line += ","
            if column.comment:
                line += f"  -- {column.comment}"
            lines.append(line)
        lines.append(");")
        return "\n".join(lines)

    @property
    def sparql_description(self) -> str:
        """The table's name and class, then a line for each predicate with what its values are.

        It stands in for CREATE TABLE where a model writes SPARQL. Invalid IRIs are left out.
        """
        lines = [self.name]
        if self.of and is_valid_iri(self.of):
            lines = [f"{self.name} {n3(self.of)}"]
        for column in self.columns:
            if column.predicate and is_valid_iri(column.predicate):
                values = column.references or column.type
                lines.append(f"  {n3(column.predicate)} {values}  # {column.comment}")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Schema(Record):
    """The schema of the database induced from a graph, and how much of the graph is in it."""

    tables: tuple[Table, ...]
    """The largest first."""
    triples: int
    passages: int
    only_passages: tuple[tuple[str, int], ...] = ()
    """For triples that are in passages but in no table: the reason and the number of triples."""
    document_passages: int = 0
    """The passages of documents beside the graph, which come on top of ``passages``."""

    annotations: Hidden[int] = 0
    """The tables and columns that a person changed."""

    def __str__(self) -> str:
        """Return the numbers in one line: "4 tables and 13 passages of 31 triples"."""
        tables = pluralize(len(self.tables), "table")
        passages = pluralize(self.passages, "passage")
        text = f"{tables} and {passages} of {self.triples:,} triples"
        if self.document_passages:
            text += f", and {pluralize(self.document_passages, 'passage')} of documents"
        return text

    def format_tables(self, max_tokens: int, *, for_sparql: bool = False) -> str:
        """Return the tables as text for a prompt, the largest first.

        A table is shown by its CREATE TABLE statement, or by its class and predicates with
        ``for_sparql``. The first table is always shown, the others as long as ``max_tokens``
        suffice (CHARS_PER_TOKEN characters each). Tables without room are only named, in the last
        line.
        """
        shown: list[str] = []
        chars = 0
        for table in self.tables:
            text = table.sparql_description if for_sparql else str(table)
            chars += len(text)
            if shown and chars > max_tokens * CHARS_PER_TOKEN:
                break
            shown.append(text)
        omitted = [table.name for table in self.tables[len(shown) :]]
        if omitted:
            shown.append(f"-- and the tables {', '.join(omitted)}")
        return "\n".join(shown)


MeaningKind = Literal["id", "name", "value"]
"""What a text is to its term: its id, its display name, or the text of a literal."""


@dataclass(frozen=True, slots=True)
class Meaning(Record):
    """What a text in a source stands for, by the column and the row in which it stands."""

    text: str
    """The text as a model is shown it, on one line."""
    term: Term
    kind: MeaningKind
    is_certain: bool = True
    """Whether it is this term; if not, it is this or another one with the same text."""

    def __str__(self) -> str:
        return f"{self.text}: {self.kind} of {self.term}"


@dataclass(frozen=True, slots=True)
class Source(Record):
    """A result of a tool: the rows of a query, or one passage."""

    tool: Literal["sql", "passages", "sparql"]
    title: str
    """The query, or the subject of the passage."""
    text: str = ""
    """The text of the passage."""
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    cut: Hidden[bool] = False
    """Whether the query has more rows than these."""
    error: str = ""
    """Why the query could not be run."""
    whole: Hidden[bool] = False
    """Whether cells and passages are shown at any length."""
    score: Score = 0.0
    """The score of a passage.

    It is 1 if the passage is the best both by embeddings and by words; with embeddings alone, it is
    the cosine.
    """
    triples: Hidden[tuple[Triple, ...]] = ()
    """The support of the rows or of the passage."""
    terms: Hidden[tuple[tuple[str, Term], ...]] = ()
    """The ids and names of terms in the source, each with its term."""
    meanings: Hidden[tuple[Meaning, ...]] = ()
    """What the texts in the cells stand for. Runs that were saved before have none."""
    tables: Hidden[tuple[Table, ...]] = ()
    """The tables that the SQL read. Runs that were saved before have none."""
    file: str = ""
    """For a passage of a document, its path in the folder; empty for anything of the graph."""
    place: str = ""
    """Where in the file the passage begins: "line 12"."""

    def __str__(self) -> str:
        """Return the result in one line: the error, the passage's title, or the number of rows."""
        if self.error:
            return f"failed: {self.error}"
        if self.tool == "passages":
            return self.title
        return pluralize(len(self.rows), "row")

    @property
    def prompt_text(self) -> str:
        """The result as text for a prompt, without the query.

        It is the error, the passage with its title, or the number of rows with a line for the
        column names and one for each row. Values are in quotes. Unless they are shown whole,
        passages are cut at MAX_SHOWN_PASSAGE_CHARS, cells at MAX_CELL_CHARS characters; errors at
        MAX_ERROR_CHARS. It is said if there are more rows.
        """
        passage_chars = MAX_SHOWN_PASSAGE_CHARS
        cell_chars = MAX_CELL_CHARS
        if self.whole:
            passage_chars = cell_chars = MAX_VALUE_CHARS
        if self.error:
            return f"! it could not be run: {quote_text(self.error, MAX_ERROR_CHARS)}"
        if self.tool == "passages":
            title = quote_text(self.title, cell_chars)
            return f"{title}: {quote_text(self.text, passage_chars)}"
        head = pluralize(len(self.rows), "row")
        if self.cut:
            head += f", and more: only the first {len(self.rows)} are here"
        lines = [head]
        for row in (self.columns, *self.rows):
            lines.append(" | ".join(quote_text(cell, cell_chars) for cell in row))
        return "\n".join(lines)

    @property
    def text_with_query(self) -> str:
        """The name of the tool, for a query its text on the same line, then ``prompt_text``.

        Of a document it is said that it is a text beside the graph.
        """
        head: str = self.tool
        if self.file:
            head += ", a text beside the graph"
        elif self.tool != "passages":
            head += f": {' '.join(self.title.split())}"
        return f"{head}\n{self.prompt_text}"


@dataclass(frozen=True, slots=True)
class CitedValue(Record):
    """A value of an answer with the numbers of the sources that contain it."""

    value: str
    sources: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.value} {list(self.sources)}"


@dataclass(frozen=True, slots=True)
class CitedAnswer(Record):
    """The answer that a model wrote from the sources. Sources are numbered from 1."""

    text: str
    kind: AnswerKind
    values: tuple[CitedValue, ...]
    sources: Hidden[tuple[Source, ...]]
    reason: Explanation = ""

    def __str__(self) -> str:
        return self.text or f"{NOT_IN_GRAPH}: {self.reason}"

    @property
    def cited_numbers(self) -> frozenset[int]:
        """The numbers of the sources that the text or any value cites, which count from 1."""
        numbers = set(numbers_in_brackets(self.text))
        for value in self.values:
            numbers.update(value.sources)
        return frozenset(numbers)


def numbers_in_brackets(text: str) -> list[int]:
    """Return the numbers of sources in a text, in order: "[1]", "[1, 3]" and "[3-5]" cite some.

    Of a range it is both ends and all between them, but for one of more than MAX_RANGE numbers or
    one that runs backwards: of that it is both ends.
    """
    numbers: list[int] = []
    for inside in BRACKETS.findall(text):
        for part in inside.split(","):
            ends = []
            for number in NUMBER.findall(part):
                ends.append(int(number))
            first, last = ends[0], ends[-1]
            if first <= last <= first + MAX_RANGE:
                numbers += range(first, last + 1)
            else:
                numbers += ends
    return numbers
