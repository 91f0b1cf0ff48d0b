"""The tools that an agent chooses among: SQL and passages, or in place of both SPARQL (section 2.3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeVar

from kgwb.errors import GraphError, GraphUnreachableError
from kgwb.flow import Dialogue
from kgwb.kg.queries import find_support_by_row
from kgwb.kg.sparql import validate_query
from kgwb.records import to_data
from kgwb.run import Run, agent
from kgwb.run.ask import schema_config
from kgwb.run.tools import Tool, act, tool
from kgwb.systems.queries import get_names_in_rows
from kgwb.systems.ragonite.database import Database, open_database
from kgwb.systems.ragonite.records import Schema, Source
from kgwb.systems.ragonite.settings import RagoniteSettings

T = TypeVar("T")
MAX_EARLIER_TURNS, MAX_ANSWERS_PER_TURN = 6, 10
"""Earlier turns, and answers of each, that a question may point back to."""


def call_database(
    kind: str, request: dict[str, Any], read: Callable[[Database], T], result_type: Any, run: Run
) -> T:
    """What is read from the graph's database, on the record by what it was made from."""
    graph, settings = run.unrecorded_graph, RagoniteSettings.of_run(run)
    made_by = {
        "part": settings.part,
        "reverse_facts": settings.reverse_facts,
        "max": settings.max_triples,
    }
    asked = {
        "graph": run.kg.identity,
        "vocabulary": to_data(run.kg.vocabulary),
        **made_by,
        **request,
    }
    asked |= {"muted": to_data(run.kg.muted)} if run.kg.muted else {}
    if graph is None:
        return run.call(f"ragonite.{kind}", asked, None, result_type)

    def ask() -> T:
        return read(open_database(graph, settings, run.embeddings))

    return run.call(f"ragonite.{kind}", asked, ask, result_type)


@tool("sql", kind="sparql")
class Sql(Tool):
    """One SELECT over the tables."""

    model_config = schema_config("Sql", "One SELECT over the tables.")

    tool: Literal["sql"]
    query: str

    def use(self, run: Run) -> Source:
        """The rows of a query, with the triples that they stand on."""
        settings = RagoniteSettings.of_run(run)
        request = {"query": self.query, "rows": settings.rows, "timeout_s": settings.sql_timeout_s}
        return call_database(
            "sql", request, lambda known: known.execute_sql(self.query, settings), Source, run
        )


@tool("passages", kind="search")
class Passages(Tool):
    """A search of the passages with one sentence."""

    model_config = schema_config("Passages", "A search of the passages with one sentence.")

    tool: Literal["passages"]
    question: str

    def use(self, run: Run) -> tuple[Source, ...]:
        """The passages nearest to a sentence, by meaning and by words."""
        most = RagoniteSettings.of_run(run).passages
        request = {"question": self.question, "passages": most, "embeddings": run.embeddings.name}
        search = lambda known: known.search_passages(self.question, run.embeddings, most)  # noqa: E731
        return call_database("passages", request, search, tuple[Source, ...], run)


@tool("sparql", kind="sparql")
class Sparql(Tool):
    """One SELECT or ASK over the graph itself."""

    model_config = schema_config("Sparql", "One SELECT or ASK over the graph itself.")

    tool: Literal["sparql"]
    query: str

    def use(self, run: Run) -> Source:
        """The rows of a query, with the triples that they stand on."""
        most = RagoniteSettings.of_run(run).rows
        try:
            if validate_query(self.query).form == "ask":
                truth = str(run.kg.ask(self.query)).lower()
                return Source("sparql", self.query, "", ("answer",), ((truth,),))
            result = run.kg.select(self.query)
            rows = result.rows[:most]
            standing = find_support_by_row(run.kg, self.query, result.variables, rows)
        except GraphUnreachableError:
            raise
        except GraphError as error:
            return Source("sparql", self.query, error=error.message)
        terms = [
            (text, iri)
            for iri, name in get_names_in_rows(rows, run).items()
            for text in (str(iri), name)
        ]
        triples = tuple(dict.fromkeys(t for some in standing.values() for t in some))
        texts = tuple(tuple("" if cell is None else str(cell) for cell in row) for row in rows)
        cut = result.cut or len(result.rows) > most
        return Source(
            "sparql",
            self.query,
            "",
            result.variables,
            texts,
            cut,
            triples=triples,
            terms=tuple(terms),
        )


@tool("finish", ends=True)
class Finish(Tool):
    """Nothing more has to be looked up."""

    model_config = schema_config("Finish", "Nothing more has to be looked up.")

    tool: Literal["finish"]

    def use(self, run: Run) -> str:
        """The end of the search."""
        return "finished"


TOOLS_BY_ABLATION: dict[str, tuple[type[Tool], ...]] = {
    "none": (Sql, Passages),
    "sql_only": (Sql,),
    "passages_only": (Passages,),
    "sparql_only": (Sparql,),
}
"""By ablation."""


@agent("tool_selector", kind="model")
def gather_sources(
    question: str, dialogue: Dialogue, schema: Schema, run: Run
) -> tuple[Source, ...]:
    """The sources that the tools gave, in at most so many rounds, each tool at least once."""
    settings = RagoniteSettings.of_run(run)
    offered = TOOLS_BY_ABLATION[settings.ablation]
    tools: tuple[type[Tool], ...] = (*offered, Finish)
    sparql = offered == (Sparql,)
    variables = {
        "question": question,
        "earlier": list_earlier_turns(dialogue),
        "schema": schema.format_tables(settings.schema_tokens, for_sparql=sparql),
        "tools": [each.spec.name for each in tools],
    }
    prompt = "ragonite/tool_selector_sparql" if sparql else "ragonite/tool_selector"
    uses = act(prompt, variables, tools, run, limit=settings.rounds)
    for (
        left
    ) in offered:  # it is offered again alone, without what was found, as in the paper's trace
        if not any(isinstance(use.tool, left) for use in uses):
            uses += act(prompt, {**variables, "tools": [left.spec.name]}, (left,), run, limit=1)
    results = [use.result for use in uses if not isinstance(use.tool, Finish)]
    sources = [
        s for result in results for s in (result if isinstance(result, tuple) else (result,))
    ]
    return tuple(dict.fromkeys(sources))


def list_earlier_turns(dialogue: Dialogue) -> list[dict[str, Any]]:
    """The turns that a question may point back to."""
    return [
        {"question": t.question, "answers": list(t.answers[:MAX_ANSWERS_PER_TURN])}
        for t in dialogue.turns[-MAX_EARLIER_TURNS:]
    ]
