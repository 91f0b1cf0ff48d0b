"""A pipeline of openai and SPARQLWrapper: mentions, their IRIs, a query."""

import json

from openai import OpenAI
from SPARQLWrapper import JSON, SPARQLWrapper

from kgwb import build  # added

client = OpenAI(base_url="http://localhost:11434/v1", api_key="none")
client = build.wrap_openai(client)  # added
sparql = SPARQLWrapper("http://localhost:3030/films/sparql")
sparql.setReturnFormat(JSON)
sparql = build.wrap_sparqlwrapper(sparql)  # added

MENTIONS = 'List the names in the question as JSON: {"mentions": ["..."]}.'
DRAFT = """Write one SPARQL query that answers the question, and nothing else. Use the IRIs that are given.
The prefix fl: is <https://kgwb.example/films/>. Predicates: fl:director, fl:composer, fl:starring, fl:author."""
LABELLED = """
PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
SELECT DISTINCT ?thing WHERE { ?thing rdfs:label "%s"@en } ORDER BY ?thing
"""


def chat(system, user):
    messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
    reply = client.chat.completions.create(model="scripted", temperature=0, messages=messages)
    return reply.choices[0].message.content


def select(query):
    sparql.setQuery(query)
    return sparql.query().convert()["results"]["bindings"]


@build.agent  # added
def find_mentions(question):
    """The names in the question."""
    return json.loads(chat(MENTIONS, question))["mentions"]


@build.agent  # added
def link(mention):
    """The IRIs that have the mention as a label."""
    return [row["thing"]["value"] for row in select(LABELLED % mention)]


@build.agent  # added
def draft(question, linked):
    """A query for the question."""
    known = "\n".join(f"{name}: {', '.join(iris)}" for name, iris in linked.items())
    return chat(DRAFT, f"{question}\n{known}")


def answer(question):
    linked = {mention: link(mention) for mention in find_mentions(question)}
    query = draft(question, linked)
    values = [cell["value"] for row in select(query) for cell in row.values()]
    return {"values": values, "query": query}


def to_answer(found):  # added
    return build.make_answer(found["values"], [found["query"]])  # added


SYSTEM = build.system_from_function("plain", answer, to_answer=to_answer)  # added
