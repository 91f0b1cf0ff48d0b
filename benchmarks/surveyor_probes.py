"""Asks a model what questions with one gold do not show: whether reviews and readings are worth it.

    python benchmarks/surveyor_probes.py drafts GRAPH FILE MODEL [--workers N] [--timeout SECONDS]
    python benchmarks/surveyor_probes.py ambiguous GRAPH FILE MODEL [--workers N] [--timeout SECONDS]

    python benchmarks/surveyor_probes.py drafts DATA/harbour benchmarks/harbour/drafts.jsonl \
        openai:reader@http://127.0.0.1:9000/v1 --workers 50 --timeout 7200

``drafts`` sends right and wrong queries to Surveyor's reviewer alone: one model call for each line of
the file, which has ``id``, ``question``, ``sparql``, ``right``, ``fault`` and, to tell repairs,
``answers``. A wrong draft is found if the reviewer does not call it fine, and repaired if what
follows has the gold values. A right one is spoilt if what follows has other values than it had.

``ambiguous`` asks questions that have two golds each, and every reading that the answer offers. A
gold is offered if the answer, or that of a reading, has its values; names are offered if they are
shown beside the things of the answer. Each line has ``id``, ``question``, and ``readings`` with
``reading`` and ``answers``.

Dialogues need no command of their own: ``kgwb bench --retention`` asks them with and without the
turns before.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rdflib import OWL, RDF, RDFS, XSD, URIRef

import kgwb
from kgwb.bench.metrics import score_answers
from kgwb.bench.questions import answer_to_strings
from kgwb.disk import read_json_lines
from kgwb.errors import KgwbError
from kgwb.kg.survey import survey_graph
from kgwb.kg.survey_text import SurveyWriter
from kgwb.run import Run
from kgwb.run.answers import Answer
from kgwb.systems.surveyor.drafter import add_prefixes, is_open
from kgwb.systems.surveyor.records import Draft, Mention, Mentions

PREFIX_LINE = re.compile(r"\s*PREFIX\s+([\w-]*):\s*<([^<>\s]*)>\s*", re.IGNORECASE)
TERM = re.compile(
    r"\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'"
    r"|<(?P<iri>[^<>\s]*)>|[?$]\w+|(?P<prefix>[\w-]*):(?P<local>[\w-]+)"
)
"""A text, an IRI, a variable or a CURIE in a query. What is inside a text is no term."""
NO_THINGS = tuple(map(str, (RDF, RDFS, OWL, XSD)))
"""The namespaces of what a query is written with: the hierarchy of classes, and datatypes."""
Row = dict[str, Any]


@dataclass(frozen=True)
class Probe:
    """What came of one line of the file."""

    row: Row
    found: bool = False
    """Whether the reviewer did not call the draft fine, or each gold was offered."""
    right: bool = False
    """Whether the values that follow are the gold's, or those that a right draft had."""
    is_open: bool = False
    """Whether a draft would be reviewed without being asked for, see ``is_open``."""
    told: str = ""
    """What is printed beside the id."""
    error: str = ""


def values_of(answer: Answer | None) -> list[str]:
    """Return the values of an answer as texts; [] without an answer."""
    return list(answer_to_strings(answer)) if answer else []


def names_of(answer: Answer | None) -> list[str]:
    """Return the names that are shown beside the things of an answer of one column; else []."""
    if answer is None:
        return []
    return [value.label for value in answer.values if not value.row]


def has_values(answers: Sequence[str], gold: Iterable[Sequence[str | None]]) -> bool:
    """Return whether answers are exactly the values of gold rows, whatever the columns."""
    cells = [cell for row in gold for cell in row if cell is not None]
    return bool(score_answers(answers, cells).exact)


def with_prefixes_of(writer: SurveyWriter, sparql: str) -> str:
    """Return a query without its PREFIX lines, with the prefixes by which the survey is shown."""
    namespaces = dict(PREFIX_LINE.findall(sparql))

    def rename(match: re.Match[str]) -> str:
        """Return a CURIE with the survey's prefix; anything else as it is."""
        local = match["local"]
        namespace = namespaces.get(match["prefix"]) if local else None
        if namespace is None:
            return match[0]
        prefix = writer.prefixes.get(namespace)
        return f"<{namespace}{local}>" if prefix is None else f"{prefix}:{local}"

    return TERM.sub(rename, PREFIX_LINE.sub("", sparql)).strip()


def names_in(sparql: str, writer: SurveyWriter, workbench: kgwb.Workbench) -> list[str]:
    """Return the names of the things that a query has.

    These are neither classes nor predicates, nor of the namespaces in NO_THINGS.
    """
    namespaces = {prefix: namespace for namespace, prefix in writer.prefixes.items()}
    schema: set[str] = {str(surveyed.iri) for surveyed in writer.survey.classes}
    for group in writer.groups:
        for prop in group.properties:
            schema.add(str(prop.predicate))
            schema.update(str(inner.predicate) for inner in prop.inner)
    things = []
    for match in TERM.finditer(sparql):
        iri = match["iri"]
        if match["prefix"] in namespaces:
            iri = namespaces[match["prefix"]] + match["local"]
        if iri and iri not in schema and not iri.startswith(NO_THINGS):
            things.append(URIRef(iri))
    names = workbench.kg.names(list(dict.fromkeys(things)))
    return [name for name in names.values() if name]


def review(row: Row, workbench: kgwb.Workbench, writer: SurveyWriter) -> Probe:
    """Send a draft to the reviewer alone, with the names of the things in it."""
    sparql = with_prefixes_of(writer, row["sparql"])
    names = names_in(sparql, writer, workbench)
    prefixes = tuple((prefix, namespace) for namespace, prefix in writer.prefixes.items())
    run = workbench.setup.begin(row["question"])
    run.override("mention_finder", Mentions(row["question"], tuple(map(Mention, names))))
    run.override("drafter", Draft(add_prefixes(sparql, prefixes)))
    run.go()
    verdict = run["reviewer[draft]"].output
    after = values_of(run.answer)
    if row["right"]:
        before = [
            str(cell)
            for cells in run["executor[draft]"].output.rows
            for cell in cells
            if cell is not None
        ]
        truth = run["executor[draft]"].output.truth
        if truth is not None:
            before = [str(truth).lower()]
        is_right = bool(score_answers(after, before).exact)
    else:
        is_right = has_values(after, row.get("answers", []))
    mentions = Mentions(row["question"], tuple(_mentions_of(run)))
    opened = is_open(mentions, run["drafter"].output, run["executor[draft]"].output)
    told = f"{verdict.verdict}: {verdict.reason}"
    return Probe(row, verdict.verdict != "fine", is_right, opened, told)


def _mentions_of(run: Run) -> Iterator[Mention]:
    """Yield what was found for each name of a run's question."""
    for step in run.steps:
        if step.agent == "value_finder":
            yield step.output


def offer(row: Row, workbench: kgwb.Workbench, writer: SurveyWriter) -> Probe:
    """Ask a question and each reading that its answer offers, and look for the golds among the answers."""
    run = workbench.setup.begin(row["question"]).go()
    answers = [values_of(run.answer), names_of(run.answer)]
    for number, _ in enumerate(run.readings, 1):
        fork: Run = run.read_as(number)
        answers.append(values_of(fork.go().answer))
    offered = []
    for gold in row["readings"]:
        offered.append(any(has_values(values, gold["answers"]) for values in answers))
    told = f"{sum(offered)} of {len(offered)} golds; readings: "
    told += " | ".join(reading.other for reading in run.readings)
    return Probe(row, all(offered), bool(offered and offered[0]), told=told)


def probe_all(
    rows: Sequence[Row],
    ask: Callable[[Row, kgwb.Workbench, SurveyWriter], Probe],
    workbench: kgwb.Workbench,
    workers: int,
) -> list[Probe]:
    """Ask for each row, several at a time; an error of kgwb is kept with its row."""
    writer = SurveyWriter(survey_graph(workbench.kg), workbench.kg.vocabulary.labels)

    def ask_one(row: Row) -> Probe:
        """Return what came of a row."""
        try:
            return ask(row, workbench, writer)
        except KgwbError as error:
            return Probe(row, error=error.message)

    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(ask_one, rows))


def summarize_reviews(probes: Sequence[Probe]) -> list[str]:
    """Return lines: how many wrong drafts were found and repaired, by fault, and right ones spoilt."""
    wrong = [probe for probe in probes if not probe.row["right"] and not probe.error]
    right = [probe for probe in probes if probe.row["right"] and not probe.error]
    found = sum(probe.found for probe in wrong)
    repaired = sum(probe.right for probe in wrong)
    spoilt = [probe for probe in right if not probe.right]
    lines = [
        f"wrong drafts: {found} of {len(wrong)} found, {repaired} repaired",
        f"right drafts: {len(spoilt)} of {len(right)} spoilt, {sum(p.found for p in right)} not called fine",
    ]
    opened = sum(probe.is_open for probe in wrong), sum(probe.is_open for probe in right)
    lines.append(
        f"by itself, Surveyor reviews {opened[0]} of the wrong and {opened[1]} of the right ones"
    )
    by_fault: Mapping[str, Counter[str]] = defaultdict(Counter)
    for probe in wrong:
        by_fault[probe.row["fault"]].update(
            {"drafts": 1, "found": int(probe.found), "repaired": int(probe.right)}
        )
    for fault, counts in sorted(by_fault.items()):
        lines.append(
            f"  {fault}: {counts['found']} of {counts['drafts']}, {counts['repaired']} repaired"
        )
    return lines


def summarize_offers(probes: Sequence[Probe]) -> list[str]:
    """Return a line: of how many questions each gold was offered."""
    asked = [probe for probe in probes if not probe.error]
    both = sum(probe.found for probe in asked)
    return [f"each gold was offered: {both} of {len(asked)} questions"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Ask for each line of the file, and print what came of it and the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("probe", choices=("drafts", "ambiguous"))
    parser.add_argument("graph")
    parser.add_argument("file", type=Path)
    parser.add_argument("model")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--timeout", type=float, default=60.0)
    given = parser.parse_args(arguments)
    settings: dict[str, Any] = {"model_timeout_s": given.timeout}
    ask = offer
    if given.probe == "drafts":
        settings |= {"always_reviews": True, "reviews": 1}
        ask = review
    workbench = kgwb.Workbench(given.graph, given.model, system="surveyor", settings=settings)
    rows = [row for _, row in read_json_lines(given.file)]
    probes = probe_all(rows, ask, workbench, given.workers)
    for probe in probes:
        told = f"error: {probe.error}" if probe.error else probe.told
        marks = f"{'found' if probe.found else '-':6}{'right' if probe.right else '-':6}"
        print(f"{probe.row['id']:8}{marks}{probe.row.get('fault') or '':28}{told}")
    for line in (summarize_reviews if given.probe == "drafts" else summarize_offers)(probes):
        print(line)
    errors = sum(bool(probe.error) for probe in probes)
    if errors:
        print(f"{errors} of {len(probes)} ended in an error and count nowhere")


if __name__ == "__main__":
    main()
