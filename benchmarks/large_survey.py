"""Surveys a generated graph of many triples, and says how long it takes and whether the right part is shown.

    python benchmarks/large_survey.py [TRIPLES] [ENGINE ...]

TRIPLES is 1,000,000 by default. ENGINE is "file" (Oxigraph on disk, in this process), "oxigraph"
(its own server) or "virtuoso"; by default only "file". The graph has 60 classes of skewed sizes, ten
of which have five levels of subclasses; labels in three languages; and classes of one name in two
namespaces. 100 questions are generated with it. Half of them need a predicate of a class, half a
predicate that leads to another class, and a predicate there. The part of the survey for a question
is right if it shows each of these classes with its predicate. The model is scripted: it chooses all
classes that have a name of the question, and asks once for classes whose predicate it does not see.
"""

from __future__ import annotations

import os
import random
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any
from unittest import mock

from rdflib.namespace import RDF, RDFS, XSD

import kgwb
from kgwb.errors import InvalidReplyError
from kgwb.kg import Graph
from kgwb.kg.survey import survey_graph
from kgwb.llm import ChatRequest, Scripted
from kgwb.systems.surveyor.drafter import CHARS_PER_TOKEN
from kgwb.systems.surveyor.settings import SurveyorSettings

sys.path.append(str(Path(__file__).parent.parent / "tests"))
import engines

CLASSES = 60
DEEP_CLASSES = 10
LEVELS = 5
PREDICATES = 8
"""Predicates of a class, besides its type and labels."""
LINK = 4
"""A predicate that leads to another class."""
VALUE_PREDICATES = (2, 3, 5, 6)
"""Predicates that only one class has, and whose values are dates, numbers and texts."""
VIRTUOSO_BUFFERS = 170_000
"""Pages of 8 KB, as Virtuoso's own configuration recommends for 2 GB."""
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


def title_of(number: int) -> str:
    """Return the English name of a class; the class before it may have the same."""
    return word(number - (number % 10 == 9)).title()


Needed = Sequence[tuple[int, str]]
"""The classes that a question needs, by their numbers, each with the IRI of a predicate."""


def make_question(chance: random.Random, is_chain: bool) -> tuple[str, Needed]:
    """Return a question, and what its query needs: a predicate of a class, or two in a chain."""
    number = chance.randrange(CLASSES)
    if not is_chain:
        predicate = predicate_iri(number, chance.choice(VALUE_PREDICATES))
        asked = local_name(predicate)
        return f"What is the {asked} of each {title_of(number)}?", [(number, predicate)]
    link = predicate_iri(number, LINK)
    target = (number + LINK + 1) % CLASSES
    predicate = predicate_iri(target, chance.choice(VALUE_PREDICATES))
    question = (
        f"What is the {local_name(predicate)} of the {title_of(target)} that"
        f" each {title_of(number)} has as its {local_name(link)}?"
    )
    return question, [(number, link), (target, predicate)]


def local_name(iri: str) -> str:
    """Return the part of an IRI after "#"."""
    return iri.partition("#")[2]


def is_shown(number: int, predicate: str, text: str) -> bool:
    """Return whether the part of a survey has a class and its predicate, which no other class has."""
    words = set(re.findall(r":(\w+)", text))
    return {local_name(class_iri(number)), local_name(predicate)} <= words


def reader(needed: Needed) -> Scripted:
    """Return a model that chooses the classes by name, and asks for those whose predicate is not shown."""
    titles = tuple(title_of(number) for number, _ in needed)

    def reply(request: ChatRequest) -> dict[str, Any]:
        """Reply to the mention finder and to the drafter."""
        variables = request.variables
        if request.task == "surveyor/mention_finder":
            classes = [each for each in variables["classes"] if each.startswith(titles)]
            return {"reason": "", "question": "", "names": [], "classes": classes}
        more = []
        for number, predicate in needed:
            if not is_shown(number, predicate, variables["survey"]):
                more += [title_of(number), f"{title_of(number)} en"]
        return {**NO_QUERY, "missing": "" if more else "it", "reason": "so", "more": more}

    return Scripted(reply)


def measure(kg: Graph, name: str, cpu_seconds: Callable[[], float] = time.process_time) -> None:
    """Survey a graph, and print the seconds, the size of the text, and for how many questions it is right."""
    started = time.perf_counter()
    cpu_before = cpu_seconds()
    survey = survey_graph(kg)
    seconds = time.perf_counter() - started
    cpu = cpu_seconds() - cpu_before
    described = sum(bool(kind.properties) for kind in survey.classes if kind.size)
    with_instances = sum(bool(kind.size) for kind in survey.classes)
    sampled = ", sampled" if survey.sampled else ""
    print(
        f"{name}: {seconds:.1f} s ({cpu:.1f} s of the engine's processor time),"
        f" {survey.queries} queries{sampled}, {described} of {with_instances} classes described;"
        f" not surveyed: {', '.join(survey.lack_texts()) or 'nothing'}",
        flush=True,
    )
    chance = random.Random(8)
    right = 0
    asked_for_more = 0
    lengths = []
    for position in range(QUESTIONS):
        question, needed = make_question(chance, is_chain=position % 2 == 1)
        workbench = kgwb.Workbench(kg, reader(needed), system="surveyor")
        with suppress(InvalidReplyError):
            workbench.ask(question)
        [run] = workbench.runs
        texts = [step.inputs["part"].text for step in run.steps if step.agent == "drafter"]
        right += all(is_shown(number, predicate, texts[-1]) for number, predicate in needed)
        asked_for_more += len(texts) > 1
        lengths += [len(text) // CHARS_PER_TOKEN for text in texts]
    budget = SurveyorSettings().survey_tokens
    print(
        f"{name}: right for {right} of {QUESTIONS} questions, {asked_for_more} after asking for classes;"
        f" {max(lengths)} tokens at most of {budget}, {statistics.median(lengths):.0f} in the median",
        flush=True,
    )


@contextmanager
def start(name: str, folder: Path, file: Path) -> Iterator[engines.Engine]:
    """Start an engine in a folder of its own; Oxigraph's server with the file already loaded."""
    own_folder = folder / name
    own_folder.mkdir()
    if name == "virtuoso":
        with engines.virtuoso(own_folder, VIRTUOSO_BUFFERS) as server:
            yield server
        return
    engines.load_into_oxigraph(own_folder, file)
    with engines.oxigraph(own_folder) as server:
        yield server


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
                if name == "file":
                    kg = kgwb.open_kg(file)
                    print(f"{name}: opened in {time.perf_counter() - started:.0f} s", flush=True)
                    measure(kg, name)
                    continue
                with start(name, Path(folder), file) as server:
                    url = server.load(file)
                    print(f"{name}: loaded in {time.perf_counter() - started:.0f} s", flush=True)
                    measure(kgwb.open_kg(url), name, server.cpu_seconds)


if __name__ == "__main__":
    main()
