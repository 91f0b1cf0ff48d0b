"""Results of RoboData's tools, and how a function becomes a tool."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial, wraps
from itertools import chain, groupby, zip_longest
from typing import Literal

import rdflib

from kgwb.build import (
    AgentKind,
    Graph,
    GraphError,
    GraphUnreachableError,
    Hidden,
    Iri,
    JsonObject,
    NotRecordedError,
    Record,
    Run,
    Term,
    TermIds,
    Tool,
    Triple,
    add_missing_prefixes,
    execute_sparql,
    get_names_in_rows,
    pluralize,
    quote_text,
    to_data,
    tool_from_function,
)
from kgwb.systems.robodata.local_graph import LocalGraph

MAX_QUERY_ROWS = 50
"""Rows of a query that are shown (reference code)."""
MAX_ARGUMENT_CHARS = 120
"""Characters of an argument in the text of a tool use."""
MAX_ERROR_CHARS = 300
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
        if self.found > len(self.rows):
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


def graph_tool(kind: AgentKind = "sparql") -> Callable[[Callable[..., Observed]], type[Tool]]:
    """Return a decorator that makes a tool of a function that returns an Observed.

    The tool adds the text of the use and the names of IRIs to the result. An error of the graph,
    such as that of an invalid query, becomes a result with the error's text, so that the model can
    react to it. Only GraphUnreachableError ends the run.
    """

    def decorate(function: Callable[..., Observed]) -> type[Tool]:
        """Return the tool with the name, the arguments and the docstring of the function."""

        @wraps(function)
        def use(*, local: LocalGraph, run: Run, **arguments: str | list[str]) -> Observed:
            """Call the function, and return its result or error with the text of the use and the names of IRIs."""
            texts = []
            for argument in arguments.values():
                text = ", ".join(argument) if isinstance(argument, list) else str(argument)
                texts.append(quote_text(text, MAX_ARGUMENT_CHARS))
            use_text = f"{function.__name__}({', '.join(texts)})"
            try:
                observed = function(**arguments, local=local, run=run)
            except GraphUnreachableError:
                raise
            except (GraphError, NotRecordedError) as error:
                message = _record_error(error, use_text, arguments, local, run)
                return Observed(error=message, use=use_text)
            names = get_names_in_rows(observed.rows, run)
            return replace(observed, use=use_text, names=tuple(names.items()))

        return tool_from_function(use, kind=kind)

    return decorate


def _record_error(
    error: GraphError | NotRecordedError,
    use_text: str,
    arguments: Mapping[str, str | list[str]],
    local: LocalGraph,
    run: Run,
) -> str:
    """Record the text of an error as a call "robodata.error", and return the text.

    A failed call of the graph is not recorded, so a replay gets NotRecordedError in its place; the
    text is then taken from the record. Raises NotRecordedError if it is not there either.
    """
    local_data = to_data(local)
    del local_data["doubt"]  # which recorded requests do not have
    request: JsonObject = {"graph": run.kg.identity, "use": use_text, "local": local_data}
    if isinstance(error, GraphError):
        make = partial(quote_text, error.message, MAX_ERROR_CHARS)
        return run.call("robodata.error", _with_all_arguments(request, arguments), make, str)
    try:
        return run.call("robodata.error", _with_all_arguments(request, arguments), None, str)
    except NotRecordedError:
        # Runs that were saved before have only the text of the use, in which arguments are cut.
        return run.call("robodata.error", request, None, str)


def _with_all_arguments(
    request: JsonObject, arguments: Mapping[str, str | list[str]]
) -> JsonObject:
    """Return the request of an error, with the whole arguments added if the text of the use cuts any.

    Otherwise two long queries that begin alike would be one call. A use is cut if it has "…".
    """
    if "…" not in request["use"]:
        return request
    return {**request, "arguments": dict(arguments)}


def query_graph(kg: Graph, sparql: str, local: LocalGraph) -> Observed:
    """Execute a SELECT or an ASK, and return the first MAX_QUERY_ROWS rows, or the truth value as a row.

    Prefixes of the local graph's IDs need not be declared. The result also has the number of all
    rows, and whether these are complete. Raises GraphError, also for a query of another form.
    """
    query = add_missing_prefixes(sparql, local.id_mapping.namespaces)
    result = execute_sparql(kg, query)
    if isinstance(result, bool):
        truth = rdflib.Literal(result)
        return Observed(("truth",), ((truth,),), 1)
    return Observed(
        result.variables,
        result.rows[:MAX_QUERY_ROWS],
        len(result.rows),
        not result.cut,
    )


def group_by_predicate(triples: Iterable[Triple]) -> list[list[Triple]]:
    """Return the distinct triples in a list for each predicate, in the order of the predicates."""
    ordered = sorted(dict.fromkeys(triples), key=lambda triple: triple[1])
    return [list(group) for _, group in groupby(ordered, lambda triple: triple[1])]


def sample_triples(triples: Iterable[Triple], limit: int, is_complete: bool = True) -> Observed:
    """Return at most ``limit`` of the triples, with as many predicates as possible, sorted by predicate.

    The predicates take turns in giving a triple until there are ``limit``, which is at least 1. The
    result has the number of all. ``is_complete`` says whether the triples are all that the graph
    has.
    """
    by_predicate = group_by_predicate(triples)
    turns = chain.from_iterable(zip_longest(*by_predicate))
    in_turn = list(filter(None, turns))
    sample = sorted(in_turn[:limit], key=lambda triple: (triple[1], str(triple)))
    return Observed(
        TRIPLE_COLUMNS,
        tuple(sample),
        len(in_turn),
        is_complete,
    )
