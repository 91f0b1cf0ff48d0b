"""RAGonite: SQL over a database induced from the graph, and a search of passages about it.

System ragonite

| agent | kind | function | prompt | view | gold | test |
| --- | --- | --- | --- | --- | --- | --- |
| ragonite | code | induce_ragonite_schema |  | render_schema | induce | test_ragonite.py |
| tool_selector | model | tool_selector.select_tools | tool_selector* |  | gather | test_tool_selector.py |
| sql | sql | tool_selector.Sql.use |  | render_source | gather | test_tools.py |
| passages | search | tool_selector.Passages.use |  |  | gather | test_tools.py |
| sparql | sparql | tool_selector.Sparql.use |  | render_source | gather | test_tools.py |
| finish | code | tool_selector.Finish.use |  |  | gather | test_tools.py |
| answerer | model | answerer.write_answer | answerer* | render_cited_answer | answer | test_answerer.py |
| answer | sparql | answerer.build_answer |  |  | answer | test_answer.py |
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from rdflib import URIRef

from kgwb.build import (
    Answer,
    Dialogue,
    GoldDecisions,
    LinkedIris,
    Question,
    Run,
    System,
    agent,
    get_output,
)
from kgwb.systems.ragonite.answerer import build_answer, make_answer_rung, write_answer
from kgwb.systems.ragonite.database_file import record_extension
from kgwb.systems.ragonite.records import CitedAnswer, Schema, Source
from kgwb.systems.ragonite.settings import RagoniteSettings
from kgwb.systems.ragonite.tool_selector import (
    Finish,
    Passages,
    Sparql,
    Sql,
    call_database,
    find_extensions,
    make_source_rung,
    remember_with_text,
    select_tools,
)


def answer_question(question: Question, dialogue: Dialogue, run: Run) -> Answer:
    """Induce the schema, gather sources with the tools, and write one answer from all sources.

    The earlier turns of the dialogue are shown to the models. Raises InvalidReplyError if a model
    gives no valid reply.
    """
    schema = induce_ragonite_schema(run)
    sources = select_tools(question.text, dialogue, schema, run)
    cited_answer = write_answer(question.text, dialogue, sources, run)
    return build_answer(question.text, cited_answer, run)


@agent("ragonite")
def induce_ragonite_schema(run: Run) -> Schema:
    """Return the schema of the database that is induced from the graph.

    The database is made for the first question, and kept with the graph. Raises GraphError for a
    graph without triples or with too many, and SettingError if a folder or file of the settings
    cannot be read.
    """
    for extension in find_extensions(run):
        record_extension(extension, run)
    schema: Schema = call_database("schema", {}, lambda database: database.schema, Schema, run)
    return schema


def collect_linked_iris(run: Run) -> LinkedIris:
    """Return the IRIs in the triples of the sources that values cite, and as candidates those of all sources."""
    sources: tuple[Source, ...] = get_output(run, "tool_selector") or ()
    cited_answer: CitedAnswer | None = get_output(run, "answerer")
    cited = []
    for number, source in enumerate(sources, 1):
        if cited_answer and number in cited_answer.cited_numbers:
            cited.append(source)
    vertices, predicates = _list_iris(cited)
    vertex_candidates, predicate_candidates = _list_iris(sources)
    return LinkedIris(vertices, predicates, vertex_candidates, predicate_candidates)


def _list_iris(sources: Iterable[Source]) -> tuple[frozenset[str], frozenset[str]]:
    """Return the IRIs of the vertices and of the predicates in the triples of sources."""
    vertices = set()
    predicates = set()
    for subject, predicate, object_ in chain.from_iterable(source.triples for source in sources):
        predicates.add(str(predicate))
        for end in (subject, object_):
            if isinstance(end, URIRef):
                vertices.add(str(end))
    return frozenset(vertices), frozenset(predicates)


GOLD = GoldDecisions({"sources": make_source_rung, "answer": make_answer_rung}, collect_linked_iris)
"""SQL, passages and SPARQL have no gold of their own: each of them may find what answers a question.

So the agent which chooses tools is to blame where none did.
"""

SYSTEM = System(
    "ragonite",
    answer_question,
    {
        "Induce": (induce_ragonite_schema,),
        "Gather ↻": (select_tools, Sql, Passages, Sparql, Finish),
        "Answer": (write_answer, build_answer),
    },
    settings=RagoniteSettings,
    remember=remember_with_text,
    views="kgwb.systems.ragonite.views",
    gold=GOLD,
    commands="kgwb.systems.ragonite.views",
)
