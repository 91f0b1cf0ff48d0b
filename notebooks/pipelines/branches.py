"""An asynchronous pipeline with two branches: one asks for directors, one for composers."""

import asyncio
import os

import rdflib
from openai import AsyncOpenAI

from kgwb import build  # added

client = AsyncOpenAI(base_url="http://localhost:11434/v1", api_key="none")
client = build.wrap_openai(client)  # added
graph = rdflib.Graph().parse(os.environ["FILMS"])
graph = build.wrap_rdflib(graph)  # added
FILMS = rdflib.Namespace("https://kgwb.example/films/")
PEOPLE = """
SELECT ?person WHERE { ?film rdfs:label ?title . ?film ?relation ?person } ORDER BY ?person
"""


async def ask(text):
    messages = [{"role": "user", "content": text}]
    reply = await client.chat.completions.create(model="scripted", messages=messages)
    return reply.choices[0].message.content


@build.agent  # added
async def read(question):
    """The title in the question."""
    return await ask(f"Which film is this question about? {question}")


def people(title, relation):
    bindings = {"title": rdflib.Literal(title, lang="en"), "relation": relation}
    return [row.person for row in graph.query(PEOPLE, initBindings=bindings)]


@build.agent  # added
async def choose(question, found):
    """Those of the people whom the question asks for."""
    listed = "\n".join(found)
    reply = await ask(f"{question} Copy the lines that answer it, or write none.\n{listed}")
    return [person for person in found if str(person) in reply.split()]


@build.agent  # added
async def directors(question, title):
    """Who directed it."""
    return await choose(question, people(title, FILMS.director))


@build.agent  # added
async def composers(question, title):
    """Who composed its music."""
    return await choose(question, people(title, FILMS.composer))


async def answer(question):
    title = await read(question)
    branches = directors(question, title), composers(question, title)
    directed, composed = await asyncio.gather(*branches)
    return directed + composed


SYSTEM = build.system_from_function("branches", answer)  # added
