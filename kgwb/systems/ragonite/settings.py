"""The settings of RAGonite. Each difference between its profiles is a setting of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from kgwb.build import STRICT_CONFIG, UNLIMITED, Count, Settings

DATABASE_SETTINGS = (
    "tables",
    "verbalization",
    "reverse_literals",
    "reads_units",
    "writes_comments",
    "lowercases",
)
"""Settings on which the content of a database depends, and which came later than its first version."""


@dataclass(frozen=True, kw_only=True, config=STRICT_CONFIG)
class RagoniteSettings(Settings):
    """The settings that RAGonite has besides those of every system."""

    PAPER: ClassVar = {
        "tables": "type_combination",
        "passage_ranking": "vectors",
        "verbalization": "facts",
        "reverse_literals": True,
        "reads_units": False,
        "writes_comments": False,
        "schema_tokens": UNLIMITED,
        "dialogue_tokens": UNLIMITED,
        "whole_values": True,
        "last_sees_results": True,
    }
    REFERENCE: ClassVar = {
        **PAPER,
        "passage_ranking": "fused",
        "verbalization": "facts_is_a",
        "reverse_facts": False,
        "reverse_literals": False,
        "last_sees_results": False,
    }
    """The published code has the induction and the verbalization; the rest is as in the paper."""

    rounds: Count = 3
    """How often a model may use a tool (section 2.3).

    A tool that was not used by then is offered once more.
    """
    last_sees_results: bool = False
    """Whether a tool that is offered once more is shown what was found before (section 2.3).

    As long as rounds are left, the model then decides again whether more has to be looked up. In the
    published screenshots the tool is shown nothing, and the answer is written after it.
    """
    passages: Count = 5
    """How many passages a search returns."""
    passage_ranking: Literal["fused", "vectors"] = "fused"
    """How passages are ranked for a sentence.

    - "fused": by embeddings and by words (BM25), combined by reciprocal rank fusion. The published
      screenshots show a search by words beside that by embeddings.
    - "vectors": by embeddings alone (section 2.2, "dense retriever").
    """
    tables: Literal["root_class", "type_combination"] = "root_class"
    """Which things are in one table.

    - "root_class": those of the same highest class; the subclass is in a column.
    - "type_combination": those that have exactly the same types (section 2.1, figure 2). A link
      then has a column or a table of its own for each table that it leads to, and the display name
      is in a column ``label`` where a predicate is called "name".
    """
    reads_units: bool = True
    """Whether texts such as "4953 mm" and "95-130" become numbers without a person's annotation.

    In figure 2 they stay texts until a person removes the unit.
    """
    writes_comments: bool = True
    """Whether columns have comments that are made of their values.

    In figure 2 a person writes them.
    """
    rows: Count = 50
    """How many rows of a query's result are kept. The model is shown all of them."""
    whole_values: bool = False
    """Whether cells and passages of any length are shown whole (section 2.4).

    Else a model is shown 300 characters of a cell, and 12,000 of a passage.
    """
    sql_timeout_s: Annotated[float, Field(gt=0, le=3600)] = 5.0
    schema_tokens: Count = 6_000
    """The room for the schema in a prompt, in tokens of 4 characters.

    Tables that do not fit are only named. The paper shows all (section 2.1).
    """
    dialogue_tokens: Count = 4_000
    """The room for the earlier turns in a prompt, in tokens of 4 characters.

    The paper shows all previous questions and answers (section 2.1). The newest are kept.
    """
    max_triples: Count = 200_000
    """A graph with more triples, or a part of it with more, is not turned into a database."""
    part: str = ""
    """IRIs of classes, separated by blanks. The database then has only their instances."""
    verbalization: Literal["grouped", "facts", "facts_is_a"] = "grouped"
    """How the facts of the graph are written as passages.

    - "grouped": facts with the same predicate are one sentence, and only the first sentence has the
      name of the subject. A long passage is divided. The reverse of a link is in the passage of its
      object, also of one that is no subject.
    - "facts": each subject has one passage, and each fact is a sentence with the subject's name,
      followed by its reverse (section 2.2).
    - "facts_is_a": the same, but with "is a" before types in place of "is" (reference code).
    """
    annotations: str = ""
    """A file in which a person renames, drops and comments tables and columns (section 2.1).

    RAGonite's cell writes it.
    """
    documents: str = ""
    """A folder of texts that are searched beside the graph: text, Markdown, HTML, JSON lines, PDF.

    Its paragraphs become passages, which are cited by file and line (section 2.6).
    """
    reverse_facts: bool = True
    """Whether facts are also written in reverse: "Denis Villeneuve is director of Dune"
    (section 2.2)."""
    reverse_literals: bool = False
    """Whether literals are among these facts: "125 kW is engine performance of BMW 120 Sport"
    (section 2.2, its example)."""
    lowercases: bool = False
    """Whether passages are in lower case.

    The paper contradicts itself: section 3 says so, and the example of section 2.2 is not.
    """
    ablation: Literal["none", "sql_only", "passages_only", "sparql_only"] = "none"
    """The one tool that is offered in place of SQL and passages (section 4)."""

    @property
    def database_options(self) -> Mapping[str, Any]:
        """The settings on which the content of a database depends, by name.

        A setting that came later is left out while it has its default, so that recorded calls and
        files of databases that were made before are found.
        """
        options: dict[str, Any] = {"part": self.part, "reverse_facts": self.reverse_facts}
        defaults = RagoniteSettings()
        for name in DATABASE_SETTINGS:
            value = getattr(self, name)
            if value != getattr(defaults, name):
                options[name] = value
        return options
