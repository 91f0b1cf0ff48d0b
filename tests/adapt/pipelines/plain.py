"""A pipeline as people write them: mentions, links, a query; with openai and SPARQLWrapper."""

import json
import os
import sys

from openai import OpenAI
from SPARQLWrapper import JSON, SPARQLWrapper

from kgwb import build  # added

MODEL = "tiny"
client = OpenAI(api_key="no-key-needed", base_url=os.environ["CHAT_URL"], max_retries=0)
client = build.wrap_openai(client)  # added
sparql = SPARQLWrapper(os.environ["SPARQL_URL"])
sparql.setReturnFormat(JSON)
sparql = build.wrap_sparqlwrapper(sparql)  # added

MENTIONS = 'List the names in the question as JSON: {"mentions": [...]}.'
DRAFT = "Write one SPARQL query that answers the question. Use the IRIs that are given."
LABEL_QUERY = """
PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
SELECT DISTINCT ?thing WHERE { ?thing rdfs:label "%s" } ORDER BY ?thing
"""


def chat(system, user):
    reply = client.chat.completions.create(
        model=MODEL,
        temperature=0,
        messages=[
            {"role": "system", "content": system},
            {"role": "user", "content": user},
        ],
    )
    return reply.choices[0].message.content


def select(query):
    sparql.setQuery(query)
    return sparql.query().convert()["results"]["bindings"]


@build.agent  # added
def mentions(question):
    """The names in the question."""
    return json.loads(chat(MENTIONS, question))["mentions"]


@build.agent  # added
def link(mention):
    """The IRIs that have the mention as a label."""
    rows = select(LABEL_QUERY % mention)
    return [row["thing"]["value"] for row in rows]


@build.agent  # added
def draft(question, linked):
    """A query for the question."""
    known = "\n".join(f"{name}: {', '.join(iris)}" for name, iris in linked.items())
    return chat(DRAFT, f"{question}\n{known}")


def answer(question):
    linked = {}
    for mention in mentions(question):
        linked[mention] = link(mention)
    query = draft(question, linked)
    values = []
    for row in select(query):
        for cell in row.values():
            values.append(cell["value"])
    return {"values": values, "query": query}


to_answer = lambda found: build.make_answer(found["values"], [found["query"]])  # noqa: E731  # added
SYSTEM = build.system_from_function("plain", answer, to_answer=to_answer)  # added


if __name__ == "__main__":
    sys.stdout.write("\n".join(answer(sys.argv[1])["values"]))
