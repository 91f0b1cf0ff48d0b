"""RAGonite on the graph of two dozen triples: replies of a scripted model, and runs with them."""

from __future__ import annotations

from typing import Any

from nasty_graphs import twins
from small import answer_of, films, run_of

from kgwb.kg import Graph
from kgwb.kg.embeddings import Embeddings
from kgwb.llm import Scripted
from kgwb.run import Run
from kgwb.run.systems import load_system
from kgwb.systems.ragonite.database import Database
from kgwb.systems.ragonite.database_file import open_database
from kgwb.systems.ragonite.records import Source
from kgwb.systems.ragonite.settings import RagoniteSettings
from kgwb.terms import Term

RAGONITE = load_system("ragonite")
SETTINGS = RagoniteSettings()
PREFIXES = (
    "@prefix : <http://e/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> ."
    " @prefix xsd: <http://www.w3.org/2001/XMLSchema#> . @prefix owl: <http://www.w3.org/2002/07/owl#> .\n"
)
QUESTION = "Which films did Denis Villeneuve direct?"
DIRECTED = (
    "SELECT f.id, f.name FROM film f JOIN thing p ON p.id = f.director"
    " WHERE p.name LIKE 'denis%' ORDER BY f.id"
)


def use(tool: str, **arguments: str) -> dict[str, Any]:
    """A reply that uses a tool."""
    return {"thought": "so", "action": {"tool": tool, **arguments}}


def sql(query: str = DIRECTED) -> dict[str, Any]:
    return use("sql", query=query)


def passages(question: str = QUESTION) -> dict[str, Any]:
    return use("passages", question=question)


SELECTORS = (
    "ragonite/tool_selector",
    "ragonite/tool_selector_published",
    "ragonite/tool_selector_sql",
    "ragonite/tool_selector_sql_published",
    "ragonite/tool_selector_passages",
)
"""The prompts of the agent that chooses tools, but for SPARQL."""
ANSWERERS = ("ragonite/answerer", "ragonite/answerer_queries", "ragonite/answerer_passages")
"""The prompts of the agent that writes the answer."""
FINISH = use("finish")


def cited(*values: tuple[str, int], text: str = "These [1].", kind: str = "list") -> dict[str, Any]:
    """A reply with the answer; each value is given with the number of its source."""
    return {
        "reason": "the sources say so",
        "kind": kind,
        "answer": text,
        "values": [{"value": value, "sources": [source]} for value, source in values],
    }


ARRIVAL = cited(("arrival", 1), ("dune", 1), ("sicario", 1))


def ragonite(model: Any, question: str = QUESTION, **options: Any) -> Run:
    """A run of RAGonite, not executed yet."""
    return run_of(RAGONITE, question, model, **options)


def script(*uses: dict[str, Any], answer: Any = ARRIVAL) -> dict[str, Any]:
    """The replies of a run, whatever tools it has: uses of tools in order, then the answer."""
    selected = list(uses or (sql(), passages(), FINISH))
    return {
        **dict.fromkeys(SELECTORS, selected),
        **dict.fromkeys(ANSWERERS, answer),
    }


def answered(*uses: dict[str, Any], answer: Any = ARRIVAL, **options: Any) -> tuple[Run, Scripted]:
    """A finished run, and the model that it asked."""
    model = Scripted(script(*uses, answer=answer))
    return ragonite(model, **options).go(), model


def induce(kg: Graph, **settings: Any) -> Database:
    """The database of a graph."""
    return open_database(kg, RagoniteSettings(**settings), Embeddings("lexical"))


def induce_turtle(turtle: str, **settings: Any) -> Database:
    """The database of a few triples."""
    return induce(films(PREFIXES + turtle), **settings)


def execute(database: Database, query: str) -> Source:
    return database.execute_sql(query, SETTINGS)


def rows_of(database: Database, query: str) -> tuple[tuple[str, ...], ...]:
    return execute(database, query).rows


def ask_twins(query: str, *texts: str, **options: Any) -> Run:
    """A finished run whose answer cites texts of a query's rows."""
    values = [(text, 1) for text in texts]
    run, _ = answered(
        sql(query), passages("xyz"), FINISH, answer=cited(*values), kg=twins(), **options
    )
    assert not run.output("sql[turn 1]").error
    return run


def terms_of(run: Run) -> list[Term]:
    return [value.term for value in answer_of(run).values]


MESS = """
:b1 :p "x" . :u1 :likes :nowhere, "text" ; :order 7 .
:s a :Ship, :Boat ; rdfs:label "Sea \\"Star\\""@en, "Seestern"@de ; :select "a", "b" ; :code "007" ;
    :size "4 m" ; :n "nan"^^xsd:double ; :range "95-130" ; :built 1990 ; :owner :f ;
    :length [ :value 3 ; :unit [ :name "m" ] ] ; :big "99999999999999999999"^^xsd:integer .
:t a :Ship ; rdfs:label "T" ; :code "12" ; :size "12 m" ; :range "80" ; :built 2001 ; :owner :p ;
    :n 1.5e0 ; :next :s .
:f a :Firm ; rdfs:label "F" . :p a :Person . :k a :Key . _:x :loop _:x . :self a :self .
:Ship rdfs:subClassOf :Vessel . :Vessel rdfs:subClassOf :Ship . :q a owl:Thing ; :group :q ; :Group :s .
"""
"""Things of several classes, texts in languages, numbers with units, ranges, nodes, and things without a class."""
