"""An asynchronous pipeline with two branches: one asks for directors, one for actors."""

import asyncio
import os

import rdflib
from openai import AsyncOpenAI

from kgwb import build  # added

client = AsyncOpenAI(api_key="no-key-needed", base_url=os.environ["CHAT_URL"], max_retries=0)
client = build.wrap_openai(client)  # added
graph = rdflib.Graph().parse(os.environ["FILMS"])
graph.bind("", "http://example.org/")
graph = build.wrap_rdflib(graph)  # added
PEOPLE = (
    "SELECT ?person WHERE { ?film rdfs:label ?title . ?film ?relation ?person } ORDER BY ?person"
)


@build.agent  # added
async def read(question):
    """The title in the question."""
    reply = await client.chat.completions.create(
        model="tiny", messages=[{"role": "user", "content": f"Title in: {question}"}]
    )
    return reply.choices[0].message.content


def people(title, relation):
    bindings = {"title": rdflib.Literal(title), "relation": relation}
    return [row.person for row in graph.query(PEOPLE, initBindings=bindings)]


@build.agent  # added
async def choose(role, found):
    """Those of the people whom the model wants."""
    listed = ", ".join(found)
    reply = await client.chat.completions.create(
        model="tiny", messages=[{"role": "user", "content": f"Choose {role}: {listed}"}]
    )
    return [rdflib.URIRef(iri) for iri in reply.choices[0].message.content.split()]


@build.agent  # added
async def directors(title):
    """Who directed it."""
    found = people(title, rdflib.URIRef("http://example.org/director"))
    return await choose("directors", found)


@build.agent  # added
async def actors(title):
    """Who plays in it."""
    found = people(title, rdflib.URIRef("http://example.org/starring"))
    return await choose("actors", found)


async def answer(question):
    title = await read(question)
    directed, played = await asyncio.gather(directors(title), actors(title))
    return directed + played


SYSTEM = build.system_from_function("branches", answer)  # added
