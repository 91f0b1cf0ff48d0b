"""Surveys a generated graph of many triples, and says how long it takes and whether the right part is shown.

    python benchmarks/large_survey.py [TRIPLES] [ENGINE ...]

TRIPLES is 1,000,000 by default. ENGINE is "file" (Oxigraph on disk, in this process), "oxigraph"
(its own server) or "virtuoso"; by default only "file". The graph has 60 classes of skewed sizes, ten
of which have five levels of subclasses; labels in three languages; and classes and predicates of
one name in two namespaces. 100 questions are generated with it, each about a predicate of a class:
the part of the survey for it is right if it shows the class with this predicate.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any
from unittest import mock

from rdflib.namespace import RDF, RDFS, XSD

import kgwb
from kgwb.errors import InvalidReplyError
from kgwb.kg import Graph, QueryLimits
from kgwb.kg.survey import survey_graph
from kgwb.llm import ChatRequest, Scripted
from kgwb.systems.surveyor.excerpts import CHARS_PER_TOKEN

sys.path.append(str(Path(__file__).parent.parent / "tests"))
import engines

CLASSES = 60
DEEP_CLASSES = 10
LEVELS = 5
PREDICATES = 8
"""Predicates of a class, besides its type and labels."""
QUESTIONS = 100
NAMESPACES = ("http://large.example/a#", "http://large.example/b#")
LANGUAGES = ("en", "de", "fr")
SYLLABLES = "ba co du fe gi ho ja ke li mo nu pa qi ro se ti vu wa xo zy".split()
NO_QUERY = {"reason": "so", "sparql": "", "asked": "list", "columns": [], "assumptions": []}
THING = "http://large.example/thing/"


def word(number: int, offset: int = 0) -> str:
    """Return an invented word of three syllables, another one for each number below 8,000."""
    number += offset
    first, rest = divmod(number * 7919 % 8000, 400)
    second, third = divmod(rest, 20)
    return SYLLABLES[first] + SYLLABLES[second] + SYLLABLES[third]


def class_iri(number: int) -> str:
    """Return the IRI of a class. Each tenth has the name of the one before it, in another namespace."""
    is_twin = number % 10 == 9
    return f"{NAMESPACES[is_twin]}{word(number - is_twin).title()}"


def predicate_iri(class_number: int, number: int) -> str:
    """Return the IRI of a predicate of a class; the first two are those of all classes."""
    if number < 2:
        return f"{NAMESPACES[0]}{word(number, 4000)}"
    return f"{NAMESPACES[0]}{word(class_number * PREDICATES + number, 5000)}"


def triples(total: int) -> Iterator[str]:
    """Yield the lines of a graph of about ``total`` triples, as N-Triples; the same each time."""
    chance = random.Random(7)
    for number in range(CLASSES):
        for language in LANGUAGES:
            label = f"{word(number - (number % 10 == 9)).title()} {language}"
            yield f'<{class_iri(number)}> <{RDFS.label}> "{label}"@{language} .'
    for number in range(DEEP_CLASSES):
        above = class_iri(number)
        for level in range(LEVELS):
            below = f"{class_iri(number)}Level{level}"
            yield f"<{below}> <{RDFS.subClassOf}> <{above}> ."
            above = below
    weights = [1 / (number + 1) for number in range(CLASSES)]
    per_thing = 1 + len(LANGUAGES) + PREDICATES - 1
    things = total // per_thing
    sizes = [max(3, round(things * weight / sum(weights))) for weight in weights]
    for number, size in enumerate(sizes):
        for position in range(size):
            yield from thing(number, position, sizes, chance)


def thing(number: int, position: int, sizes: list[int], chance: random.Random) -> Iterator[str]:
    """Yield the triples of an instance of a class: type, labels, numbers, dates, texts and links."""
    iri = f"<{THING}{number}/{position}>"
    kind = class_iri(number)
    if number < DEEP_CLASSES:
        kind += f"Level{position % LEVELS}"
    yield f"{iri} <{RDF.type}> <{kind}> ."
    for language in LANGUAGES:
        yield f'{iri} <{RDFS.label}> "{word(position % 8000)} {position} {language}"@{language} .'
    for predicate in range(PREDICATES - 1):
        written = f"<{predicate_iri(number, predicate)}>"
        if predicate in (0, 4):
            target = (number + predicate + 1) % CLASSES
            value = f"<{THING}{target}/{chance.randrange(sizes[target])}>"
        elif predicate in (1, 5):
            value = f'"{chance.randrange(1000)}"^^<{XSD.integer}>'
        elif predicate == 2:
            value = f'"20{chance.randrange(10, 25)}-0{chance.randrange(1, 10)}-01"^^<{XSD.date}>'
        else:
            value = f'"{word(chance.randrange(40))}"'
        yield f"{iri} {written} {value} ."


def write_graph(file: Path, total: int) -> int:
    """Write the graph to a file, and return the number of its triples."""
    number = 0
    lines = triples(total)
    with file.open("w", encoding="utf-8") as stream:
        while block := list(islice(lines, 100_000)):
            stream.write("\n".join(block) + "\n")
            number += len(block)
    return number


def reader(title: str, local_name: str) -> Scripted:
    """Return a model that chooses the classes of a name, and asks for them if a predicate is not shown."""

    def reply(request: ChatRequest) -> dict[str, Any]:
        """Reply to the mention finder and to the drafter."""
        variables = request.variables
        if request.task == "surveyor/mention_finder":
            classes = [each for each in variables["classes"] if each.startswith(title)]
            return {"reason": "", "question": "", "names": [], "classes": classes}
        more = [] if local_name in variables["survey"] else [title, f"{title} en"]
        return {**NO_QUERY, "missing": "" if more else "it", "reason": "so", "more": more}

    return Scripted(reply)


def measure(kg: Graph, name: str) -> None:
    """Survey a graph, and print the seconds, the size of the text, and for how many questions it is right."""
    started = time.perf_counter()
    survey = survey_graph(kg)
    seconds = time.perf_counter() - started
    chance = random.Random(8)
    right = 0
    longest = 0
    for _ in range(QUESTIONS):
        number = chance.randrange(CLASSES)
        predicate = predicate_iri(number, chance.randrange(2, PREDICATES - 1))
        local_name = predicate.partition("#")[2]
        title = word(number - (number % 10 == 9)).title()
        question = f"What is the {local_name} of each {title}?"
        workbench = kgwb.Workbench(kg, reader(title, local_name), system="surveyor")
        with suppress(InvalidReplyError):
            workbench.ask(question)
        [run] = workbench.runs
        texts = [step.inputs["part"].text for step in run.steps if step.agent == "drafter"]
        right += f":{local_name}" in texts[-1]
        longest = max(longest, *(len(text) // CHARS_PER_TOKEN for text in texts))
    sampled = ", sampled" if survey.sampled else ""
    print(
        f"{name}: {seconds:.1f} s, {survey.queries} queries{sampled}, {len(survey.classes)} classes;",
        end=" ",
    )
    print(f"right for {right} of {QUESTIONS} questions, {longest} tokens at most", flush=True)


def main() -> None:
    """Make the graph, and survey it in each engine that is named."""
    total = int(sys.argv[1].replace(",", "")) if len(sys.argv) > 1 else 1_000_000
    names = sys.argv[2:] or ["file"]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "large.nt"
        started = time.perf_counter()
        number = write_graph(file, total)
        print(f"{number:,} triples written in {time.perf_counter() - started:.0f} s", flush=True)
        with mock.patch.dict(os.environ, KGWB_CACHE=str(Path(folder) / "cache")):
            for name in names:
                started = time.perf_counter()
                limits = QueryLimits(query_timeout_s=120)
                if name == "file":
                    kg = kgwb.open_kg(file, query_timeout_s=120)
                    print(f"{name}: opened in {time.perf_counter() - started:.0f} s", flush=True)
                    measure(kg, name)
                    continue
                start = engines.virtuoso if name == "virtuoso" else engines.oxigraph
                with start(Path(folder)) as server:
                    url = server.load(file)
                    print(f"{name}: loaded in {time.perf_counter() - started:.0f} s", flush=True)
                    measure(kgwb.open_kg(url, query_timeout_s=limits.query_timeout_s), name)


if __name__ == "__main__":
    main()
