"""The tools of RAGonite: SQL and passages, or SPARQL in place of both (section 2.3)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, Literal, TypeVar

import rdflib

from kgwb.build import (
    KNOWN_PREFIXES,
    Dialogue,
    GoldQuery,
    Graph,
    GraphError,
    GraphUnreachableError,
    Run,
    Rung,
    Term,
    Tool,
    Turn,
    act,
    agent,
    find_support_by_row,
    format_exactly,
    format_typed_literal,
    get_names_in_rows,
    get_output,
    pluralize,
    remember_turn,
    tell_apart,
    to_data,
    tool,
    validate_query,
)
from kgwb.systems.ragonite.annotations import open_annotations
from kgwb.systems.ragonite.database import Database, meanings_of_rows
from kgwb.systems.ragonite.database_file import Extension, open_database, resolve_extension
from kgwb.systems.ragonite.documents import open_documents
from kgwb.systems.ragonite.records import BRACKETS, CHARS_PER_TOKEN, MAX_CELL_CHARS, Schema, Source
from kgwb.systems.ragonite.settings import RagoniteSettings

T = TypeVar("T")


def call_database(
    kind: str, request: dict[str, Any], read: Callable[[Database], T], result_type: Any, run: Run
) -> T:
    """Return what ``read`` reads from the graph's database, as a recorded call "ragonite.<kind>".

    The database is opened, and made if necessary, only if the call is not recorded. The call is
    identified by what the database was made from, and by ``request``. ``result_type`` is the type
    of the result in the record. Raises what ``open_database`` raises, and NotRecordedError in a
    replay that lacks the call.
    """
    graph = run.unrecorded_graph
    settings = RagoniteSettings.of_run(run)
    content = {
        "graph": run.kg.identity,
        "vocabulary": to_data(run.kg.vocabulary),
        **settings.database_options,
        "max": settings.max_triples,
        **request,
    }
    if run.kg.muted:
        content["muted"] = to_data(run.kg.muted)
    extensions = find_extensions(run)
    for extension in extensions:
        content[extension.kind] = extension.identity
    if graph is None:
        return run.call(f"ragonite.{kind}", content, None, result_type)

    def make() -> T:
        return read(open_database(graph, settings, run.embeddings, extensions))

    return run.call(f"ragonite.{kind}", content, make, result_type)


def find_extensions(run: Run) -> tuple[Extension, ...]:
    """Return what the settings of a run add to the database of its graph.

    Raises SettingError if a folder or a file of them cannot be read.
    """
    settings = RagoniteSettings.of_run(run)
    extensions = []
    if settings.annotations:
        source = settings.annotations
        extensions.append(resolve_extension("annotations", source, open_annotations, run))
    if settings.documents:
        extensions.append(resolve_extension("documents", settings.documents, open_documents, run))
    return tuple(extensions)


@tool("sql", kind="sql")
class Sql(Tool):
    """One SELECT over the tables."""

    tool: Literal["sql"]
    query: str

    def use(self, run: Run) -> Source:
        """Run the SQL query on the induced tables, and return its rows or its error.

        At most ``settings.rows`` rows are returned, and it may take ``settings.sql_timeout_s``.
        Raises what ``call_database`` raises.
        """
        settings = RagoniteSettings.of_run(run)
        request = {"query": self.query, "rows": settings.rows, "timeout_s": settings.sql_timeout_s}
        if settings.whole_values:  # calls that were recorded before do not say it
            request["whole"] = True
        return call_database(
            "sql", request, lambda database: database.execute_sql(self.query, settings), Source, run
        )


@tool("passages", kind="search")
class Passages(Tool):
    """A search of the passages with one sentence."""

    tool: Literal["passages"]
    question: str

    def use(self, run: Run) -> tuple[Source, ...]:
        """Return the passages nearest to the sentence, the best first.

        ``settings.passage_ranking`` says what is near. At most ``settings.passages`` are returned,
        each as a source of its own.
        """
        settings = RagoniteSettings.of_run(run)
        request: dict[str, Any] = {
            "question": self.question,
            "passages": settings.passages,
            "embeddings": run.embeddings.name,
        }
        # Calls that were recorded before do not say these.
        if settings.passage_ranking != "fused":
            request["ranking"] = settings.passage_ranking
        if settings.whole_values:
            request["whole"] = True
        return call_database(
            "passages",
            request,
            lambda database: database.search_passages(self.question, run.embeddings, settings),
            tuple[Source, ...],
            run,
        )


@tool("sparql", kind="sparql")
class Sparql(Tool):
    """One SELECT or ASK over the graph itself."""

    tool: Literal["sparql"]
    query: str

    def use(self, run: Run) -> Source:
        """Run the SPARQL query on the graph, and return its rows with their support, or its error.

        Of a SELECT at most ``settings.rows`` rows are returned. Raises GraphUnreachableError.
        """
        try:
            settings = RagoniteSettings.of_run(run)
            source = query_graph(run.kg, self.query, settings.rows)
            return replace(source, whole=settings.whole_values)
        except GraphUnreachableError:
            raise
        except GraphError as error:
            return Source("sparql", self.query, error=error.message)


def query_graph(kg: Graph, sparql: str, limit: int | None = None) -> Source:
    """Execute a SELECT or an ASK, and return its first rows with their support as a source.

    An ASK has one row, "true" or "false", without support. Raises GraphError.
    """
    if validate_query(sparql).form == "ask":
        truth = str(kg.ask(sparql)).lower()
        return Source("sparql", sparql, columns=("answer",), rows=((truth,),))
    result = kg.select(sparql)
    rows = result.rows[:limit]
    support_by_row = find_support_by_row(kg, sparql, result.variables, rows)
    text_of = _format_cells(rows)
    texts = []
    for row in rows:
        texts.append(tuple("" if cell is None else text_of[cell] for cell in row))
    names = get_names_in_rows(rows, kg)
    terms: list[tuple[str, Term]] = []
    for iri, name in names.items():
        terms += [(str(iri), iri), (name, iri)]
    return Source(
        "sparql",
        sparql,
        columns=result.variables,
        rows=tuple(texts),
        cut=result.cut or len(result.rows) > len(rows),
        triples=tuple(dict.fromkeys(chain.from_iterable(support_by_row.values()))),
        terms=tuple(terms),
        meanings=meanings_of_rows(rows, names, text_of),
    )


def _format_cells(rows: Iterable[Sequence[Term | None]]) -> dict[Term, str]:
    """Return a text for each term in the rows: the IRI, or the text of a literal.

    Terms that would read the same are told apart: literals by their language or datatype, at last
    all by their full form.
    """

    def format_fully(term: Term) -> str:
        if isinstance(term, rdflib.Literal):
            return format_typed_literal(term, KNOWN_PREFIXES, MAX_CELL_CHARS)
        return str(term)

    terms = [cell for cell in chain.from_iterable(rows) if cell is not None]
    return tell_apart(terms, (str, format_fully, format_exactly))


@tool("finish", ends=True)
class Finish(Tool):
    """Nothing more has to be looked up."""

    tool: Literal["finish"]

    def use(self, run: Run) -> str:
        """End the search."""
        return "finished"


TOOLS_BY_ABLATION: dict[str, tuple[type[Tool], ...]] = {
    "none": (Sql, Passages),
    "sql_only": (Sql,),
    "passages_only": (Passages,),
    "sparql_only": (Sparql,),
}
"""The tools that are offered besides Finish, by the setting ``ablation``."""
PROMPTS_BY_ABLATION = {
    "none": "ragonite/tool_selector",
    "sql_only": "ragonite/tool_selector_sql",
    "passages_only": "ragonite/tool_selector_passages",
    "sparql_only": "ragonite/tool_selector_sparql",
}
"""The prompt by the setting ``ablation``. It describes the tools that are offered, and no other."""


@agent("tool_selector", kind="model")
def select_tools(question: str, dialogue: Dialogue, schema: Schema, run: Run) -> tuple[Source, ...]:
    """Let a model use the tools in turns, and return what they found, each source once.

    There are ``settings.rounds`` turns at most; the model may finish earlier. After them, each tool
    that was not used is offered alone in one more turn, so that every tool is used at least once.
    With ``settings.last_sees_results`` the model then decides again whether it goes on, as long as
    turns are left: it may have finished before.
    """
    settings = RagoniteSettings.of_run(run)
    offered = TOOLS_BY_ABLATION[settings.ablation]
    tools: tuple[type[Tool], ...] = (*offered, Finish)
    variables: dict[str, Any] = {
        "question": question,
        "earlier": list_earlier_turns(dialogue, settings),
        "tools": [tool_class.spec.name for tool_class in tools],
    }
    if offered != (Passages,):
        writes_sparql = Sparql in offered
        variables["schema"] = schema.format_tables(settings.schema_tokens, for_sparql=writes_sparql)
    prompt = PROMPTS_BY_ABLATION[settings.ablation]
    if Sql in offered and settings.tables == "type_combination" and not settings.writes_comments:
        prompt += "_published"
    uses = chosen = act(prompt, variables, tools, run, limit=settings.rounds)
    for tool_class in offered:
        if any(isinstance(use.tool, tool_class) for use in uses):
            continue
        before = uses if settings.last_sees_results else ()
        alone = {**variables, "tools": [tool_class.spec.name]}
        uses += act(prompt, alone, (tool_class,), run, limit=1, before=before)
    if settings.last_sees_results and uses != chosen:
        retrievals = [use for use in uses if not isinstance(use.tool, Finish)]
        left = settings.rounds - len(retrievals)
        uses += act(prompt, variables, tools, run, limit=left, before=uses)

    sources: dict[tuple[str, str, str], Source] = {}
    for use in uses:
        results = use.result
        if not isinstance(results, tuple):
            results = (results,)
        for source in results:
            if isinstance(source, Source):
                # A passage is found by several sentences, with another score each time.
                sources.setdefault((source.tool, source.title, source.text), source)
    return tuple(sources.values())


CITATION = re.compile(rf"\s*{BRACKETS.pattern}")
"""Numbers of sources in the text of an answer, with the blanks before them."""


def remember_with_text(run: Run) -> Turn:
    """Return what a dialogue remembers of a run: also the text of the answer, with or without values.

    The numbers of its sources are left out, since a later turn has other sources.
    """
    text = ""
    if run.answer is not None:
        text = run.answer.text
    return replace(remember_turn(run), text=CITATION.sub("", text).strip())


def list_earlier_turns(dialogue: Dialogue, settings: RagoniteSettings) -> list[dict[str, Any]]:
    """Return the turns of a dialogue as JSON data, the oldest first: question, answers, text.

    They have room for ``settings.dialogue_tokens``. If they need more, the oldest turns are left
    out, and the first entry says how many. The latest turn is always there; of its answers as many
    as there is room for, and it says how many are left out. The text is left out where a turn has
    none.
    """
    room = settings.dialogue_tokens * CHARS_PER_TOKEN
    shown: list[dict[str, Any]] = []
    for turn in reversed(dialogue.turns):
        data: dict[str, Any] = {"question": turn.question, "answers": list(turn.answers)}
        if turn.text:
            data["text"] = turn.text
        if not shown:
            data = _cut_answers(data, room)
        room -= _size(data)
        if shown and room < 0:
            break
        shown.insert(0, data)
    omitted = len(dialogue.turns) - len(shown)
    if omitted:
        shown.insert(0, {"left out": pluralize(omitted, "earlier turn")})
    return shown


def _cut_answers(data: dict[str, Any], room: int) -> dict[str, Any]:
    """Return a turn with as many of its answers as there is room for, and the number of the others.

    The text comes first: it is cut only if it has no room alone.
    """
    if _size(data) <= room:
        return data
    cut = {**data, "answers": []}
    if "text" in cut:
        cut["text"] = cut["text"][: max(0, room)]
    left = room - _size(cut)
    for answer in data["answers"]:
        left -= _size(answer)
        if left < 0:
            break
        cut["answers"].append(answer)
    omitted = len(data["answers"]) - len(cut["answers"])
    if omitted:
        cut["left out"] = pluralize(omitted, "answer")
    return cut


def _size(data: Any) -> int:
    """Return how many characters data takes in a prompt."""
    return len(json.dumps(data, ensure_ascii=False))


def find_gold_source(run: Run, gold: GoldQuery) -> Source | None:
    """Execute the gold query, and return its rows and support as a source.

    None if it cannot be executed, or without a graph that can be asked outside of the record.
    """
    kg = run.unrecorded_graph
    if kg is None:
        return None
    try:
        return query_graph(kg, gold.sparql)
    except GraphError:
        return None


def _has_values_of(sources: Iterable[Source], gold_source: Source) -> bool:
    """Return whether sources have every cell of the gold source, as a term or as the text of a cell."""
    known: set[str] = set()
    terms: set[Term] = set()
    for source in sources:
        known.update(str(term) for _, term in source.terms)
        known.update(chain.from_iterable(source.rows))
        terms.update(meaning.term for meaning in source.meanings)
    known.update(map(str, terms))
    # The gold source writes literals that look alike with their language or datatype.
    for meaning in gold_source.meanings:
        if meaning.term in terms:
            known.add(meaning.text)
    return known.issuperset(chain.from_iterable(gold_source.rows))


def make_source_rung(run: Run, gold: GoldQuery) -> Rung | None:
    """Return the sources with the result of the gold query before them, to put in at "tool_selector".

    Returns None if the sources have all its values, if no tools were used yet, or if the query
    cannot be executed.
    """
    sources: tuple[Source, ...] | None = get_output(run, "tool_selector")
    gold_source = find_gold_source(run, gold)
    if sources is None or gold_source is None or _has_values_of(sources, gold_source):
        return None
    return Rung("tool_selector", {"tool_selector": (gold_source, *sources)})
