"""A pipeline that is a class with methods; two branches run in a pool of threads."""

import os
from concurrent.futures import ThreadPoolExecutor

import rdflib
from openai import OpenAI

from kgwb import build  # added

FILMS = rdflib.Namespace("http://example.org/")
PEOPLE = "SELECT ?person WHERE { ?film ?role ?person } ORDER BY ?person"


class Expert:
    """Finds the film of a question, then its directors and its cast."""

    def __init__(self):
        self.graph = rdflib.Graph().parse(os.environ["FILMS"])
        self.graph = build.wrap_rdflib(self.graph)  # added
        self.client = OpenAI(base_url=os.environ["CHAT_URL"], api_key="none", max_retries=0)
        self.client = build.wrap_openai(self.client)  # added

    def ask(self, text):
        reply = self.client.chat.completions.create(
            model="tiny", messages=[{"role": "user", "content": text}]
        )
        return reply.choices[0].message.content

    @build.agent  # added
    def find_film(self, question):
        title = self.ask(f"Title in: {question}")
        return self.graph.value(None, rdflib.RDFS.label, rdflib.Literal(title))

    @build.agent  # added
    def people(self, film, role):
        bindings = {"film": film, "role": FILMS[role]}
        rows = self.graph.query(PEOPLE, initBindings=bindings)
        found = [row.person for row in rows]
        return self.ask(f"Choose {role}: {', '.join(found)}").split()

    def answer(self, question):
        film = self.find_film(question)
        pool = ThreadPoolExecutor()
        pool = build.wrap_executor(pool)  # added
        with pool:
            branches = [pool.submit(self.people, film, role) for role in ("director", "starring")]
        return [rdflib.URIRef(person) for branch in branches for person in branch.result()]


SYSTEM = build.system_from_function("expert", Expert().answer)  # added
