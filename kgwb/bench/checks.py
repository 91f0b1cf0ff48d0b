"""Results for other programs, such as a build server: conditions on figures, JUnit XML, and JSON."""

from __future__ import annotations

import json
import operator
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

from kgwb import disk
from kgwb.bench.changes import FAILED, OUTCOME_STATES, find_outcomes
from kgwb.bench.figures import LoadedResults
from kgwb.bench.metrics import MEASURES, QuestionGroup
from kgwb.bench.results import BenchRow, list_labels
from kgwb.bench.verdicts import get_verdict
from kgwb.errors import InputError
from kgwb.show.run_state import ERROR, RIGHT, UNANSWERED, WRONG
from kgwb.text import list_within, remove_controls, single_line

PASSED = "passed"
FAILURE = "failure"
ERROR_CASE = "error"
SKIPPED = "skipped"
RESULT_FIGURES = ("questions", RIGHT, "lost", WRONG, UNANSWERED, "errors", *MEASURES)
"""The figures of a benchmark on which a condition can be put."""
CHANGE_FIGURES = ("questions", *(name.replace(" ", "_") for name in OUTCOME_STATES))
"""The figures of a retry on which a condition can be put: the number of questions by outcome."""
MAX_CASE_CHARS = 300
_COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "!=": operator.ne,
    "==": operator.eq,
    "<": operator.lt,
    ">": operator.gt,
    "=": operator.eq,
}
_CONDITION = re.compile(r"\s*(\w+)\s*(<=|>=|!=|==|<|>|=)\s*(\d+(?:\.\d+)?)\s*")


class Condition(NamedTuple):
    """A condition on a figure, such as "f1<0.8"."""

    figure: str
    comparison: str
    limit: float

    @classmethod
    def parse(cls, text: str, figures: Sequence[str]) -> Condition:
        """Parse a text such as "f1<0.8" as a condition on one of these figures.

        Raises InputError for another form, and for a figure that is not among them.
        """
        match = _CONDITION.fullmatch(text)
        if match is None:
            raise InputError(
                f"the condition {text!r} cannot be read",
                hint="write a figure, a comparison and a number, such as --fail-if 'f1<0.8'",
            )
        figure, comparison, limit = match.groups()
        if figure not in figures:
            raise InputError(
                f"the condition {text!r} names an unknown figure, {figure!r}",
                hint=f"use one of these figures: {', '.join(figures)}",
            )
        return cls(figure, comparison, float(limit))

    def is_met(self, figures: Mapping[str, float]) -> bool:
        """Return whether the figure compares with the limit as the condition says.

        A figure that is missing meets every condition: so a set without gold does not pass a check
        of F1.
        """
        if self.figure not in figures:
            return True
        compare = _COMPARISONS[self.comparison]
        return compare(figures[self.figure], self.limit)

    def __str__(self) -> str:
        return f"{self.figure}{self.comparison}{self.limit:g}"


class Case(NamedTuple):
    """What became of one question."""

    id: str
    question: str
    state: str
    """PASSED, FAILURE, ERROR_CASE or SKIPPED."""
    outcome: str
    """The verdict on the answer, or the outcome of a change."""
    text: str
    """The answer and the gold, or the error."""
    seconds: float


@dataclass(frozen=True, slots=True)
class Suite:
    """The questions and the figures of a results folder."""

    name: str
    figures: Mapping[str, float]
    cases: Sequence[Case]


def make_results_suite(name: str, rows: Sequence[BenchRow]) -> Suite:
    """Return the questions of a benchmark as cases, with RESULT_FIGURES.

    A right answer is passed, a lost one is a failure, and a question without gold is skipped unless
    it ended in an error. Without any gold there are no measures among the figures.
    """
    counts: Counter[str] = Counter()
    cases = []
    for row in rows:
        verdict = get_verdict(row)
        has_gold = row["gold"] is not None
        if has_gold or verdict == ERROR:
            counts[verdict] += 1
        state = SKIPPED
        if verdict == ERROR:
            state = ERROR_CASE
        elif has_gold:
            state = PASSED if verdict == RIGHT else FAILURE
        cases.append(_make_case(row, state, verdict))
    figures: dict[str, float] = {"questions": len(rows)}
    for verdict in (RIGHT, WRONG, UNANSWERED):
        figures[verdict] = counts[verdict]
    figures["errors"] = counts[ERROR]
    figures["lost"] = counts[WRONG] + counts[UNANSWERED] + counts[ERROR]
    group = QuestionGroup(name, rows)
    if group.without_gold < len(rows):
        for measure in MEASURES:
            figures[measure] = float(getattr(group.mean_scores, measure))
    return Suite(name, figures, cases)


def make_change_suite(before: LoadedResults, after: LoadedResults) -> Suite:
    """Return the questions of a retry as cases, with CHANGE_FIGURES: the number of questions by outcome.

    A broken question is a failure, and one that ended in an error is an error. One that is fixed or
    still right is passed. Any other is skipped, since the change is not to blame for it.
    """
    outcomes = find_outcomes(before, after)
    figures: dict[str, float] = dict.fromkeys(CHANGE_FIGURES, 0)
    figures["questions"] = len(outcomes)
    cases = []
    for id_, outcome in outcomes.items():
        figures[outcome.replace(" ", "_")] += 1
        state = PASSED
        if outcome == FAILED:
            state = ERROR_CASE
        elif outcome == "broken":
            state = FAILURE
        elif outcome not in ("fixed", "still right"):
            state = SKIPPED
        cases.append(_make_case(after.rows[id_], state, outcome))
    return Suite(after.name, figures, cases)


def _make_case(row: BenchRow, state: str, outcome: str) -> Case:
    """Return a row as a case, with its error, or its answers and the gold by their labels, as the text.

    Each list is cut at MAX_CASE_CHARS characters.
    """
    text = row["error"]
    if text is None:
        text = f"answered {_list_values(row, 'answers')}"
        if row["gold"] is not None:
            text += f"; right: {_list_values(row, 'gold')}"
    return Case(
        id=row["id"],
        question=row["question"],
        state=state,
        outcome=outcome,
        text=single_line(text),
        seconds=row["seconds"],
    )


def _list_values(row: BenchRow, name: str) -> str:
    """Return the labels of the "answers" or the "gold" of a row in one line."""
    return list_within(list_labels(row, name), MAX_CASE_CHARS) or "nothing"


def find_met_conditions(suites: Sequence[Suite], conditions: Sequence[Condition]) -> list[str]:
    """Return a sentence for each condition that a suite's figures meet: "results: f1<0.8 (it is 0.75)".

    They are in the order of the suites, then of the conditions.
    """
    sentences = []
    for suite in suites:
        for condition in conditions:
            if condition.is_met(suite.figures):
                description = _describe(condition, suite)
                sentences.append(f"{suite.name}: {description}")
    return sentences


def _describe(condition: Condition, suite: Suite) -> str:
    value = suite.figures.get(condition.figure)
    if value is None:
        return f"{condition} (it is not known)"
    return f"{condition} (it is {value:.4g})"


def write_junit(path: Path, suites: Sequence[Suite], conditions: Sequence[Condition] = ()) -> None:
    """Write the suites to a file as JUnit XML, which is replaced.

    Each condition is a case of its own in each suite, which fails if it is met. Raises InputError
    if the file cannot be written.
    """
    root = ElementTree.Element("testsuites", name="kgwb")
    for suite in suites:
        cases = [*suite.cases, *_cases_of_conditions(suite, conditions)]
        counts = Counter(case.state for case in cases)
        element = ElementTree.SubElement(
            root,
            "testsuite",
            name=_clean(suite.name),
            tests=str(len(cases)),
            failures=str(counts[FAILURE]),
            errors=str(counts[ERROR_CASE]),
            skipped=str(counts[SKIPPED]),
        )
        for case in cases:
            _add_case(element, suite, case)
    ElementTree.indent(root)
    text = ElementTree.tostring(root, encoding="unicode", xml_declaration=False)
    _write(path, f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n')


def _cases_of_conditions(suite: Suite, conditions: Sequence[Condition]) -> Iterator[Case]:
    """Yield a case for each condition, which fails if the suite meets it."""
    for condition in conditions:
        is_met = condition.is_met(suite.figures)
        state = FAILURE if is_met else PASSED
        text = _describe(condition, suite)
        yield Case(str(condition), "--fail-if", state, "met", text, 0)


def _add_case(parent: ElementTree.Element, suite: Suite, case: Case) -> None:
    """Add a "testcase" element of a case to a suite's element.

    A case that did not pass has an element inside that is named by its state and has outcome and
    text.
    """
    element = ElementTree.SubElement(
        parent,
        "testcase",
        classname=_clean(suite.name),
        name=_clean(f"{case.id}: {case.question}"),
        time=f"{case.seconds:.3f}",
    )
    if case.state != PASSED:
        message = _clean(f"{case.outcome}: {case.text}")
        ElementTree.SubElement(element, case.state, message=message)


def _clean(text: str) -> str:
    """Return a text that XML can hold: without control characters and lone surrogates."""
    without_controls = remove_controls(text)
    return without_controls.encode("utf-8", "replace").decode("utf-8")


def write_json(path: Path, suites: Sequence[Suite], conditions: Sequence[Condition] = ()) -> None:
    """Write the suites to a file as JSON, which is replaced.

    For each suite it has the figures, whether each condition is met, and what became of each
    question. Raises InputError if the file cannot be written.
    """
    suites_data = []
    for suite in suites:
        met = {}
        for condition in conditions:
            met[str(condition)] = condition.is_met(suite.figures)
        entry: dict[str, Any] = {
            "name": suite.name,
            "figures": suite.figures,
            "fail_if": met,
            "questions": list(map(Case._asdict, suite.cases)),
        }
        suites_data.append(entry)
    data = {"results": suites_data}
    text = json.dumps(data, ensure_ascii=False, indent=2)
    _write(path, text + "\n")


def _write(path: Path, text: str) -> None:
    """Write a file. Raises InputError if it cannot be written."""
    with disk.os_errors_as_input_error(f"cannot write to {path}", "name another file"):
        disk.write_atomically(path, [text], disk.JSON_ENCODING_ERRORS)
