"""The recorded questions: what each system answered, how right that is, what it cost, and which runs lost answers.

Where a run lost its answer is known from repairs that experts would make, which are in
``tests/lost_repairs.py``. A repair makes everything right that was wrong in a run. The first step at
which the run and its repaired copy decide differently is the first wrong step. A run that can be
repaired in several ways has several.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache, partial
from typing import Any

from kgwb import disk
from kgwb.labs.answers import find_first_agent
from kgwb.labs.tasks import Choice, Lab, open_sample
from kgwb.records import frozen
from kgwb.run import Run
from kgwb.run.steps import Totals
from kgwb.workbench import list_recordings, recording

DATA = disk.read_table("labs/right_answers.toml")
"""What the checks know."""
LOST_FOLDER = "lost"
"""The folder of the runs for lab 1."""
UNMEASURED_FOLDERS = (LOST_FOLDER, "paper")
"""The folders of runs that are no sample, so nothing is measured on them.

The lost ones were chosen because they fail, and those in profile ``paper`` because they show what a
paper is named for.
"""


@frozen
class RecordedAnswer:
    """A recorded question with its answer, the gold answer, and its cost."""

    name: str
    """The name of the recording, such as "films/dog/3"."""
    question: str
    labels: frozenset[str]
    gold_labels: frozenset[str]
    totals: Totals
    f1: float
    """F1 of the values, 0 to 1. It is 1 if there are no values and no gold values.

    Two things of one label are two values.
    """

    @property
    def run(self) -> Run:
        """The run, replayed anew. To edit it does not change the other fields."""
        return recording(self.name)


def recorded_systems() -> tuple[str, ...]:
    """Return the names of the systems with recordings outside UNMEASURED_FOLDERS, in alphabetical order."""
    return tuple(sorted({system for _, system, _ in _list_measured()}))


def _list_measured() -> list[tuple[str, str, str]]:
    """Return graph, system and number of each recording outside UNMEASURED_FOLDERS."""
    measured = []
    for name in list_recordings():
        graph, system, number = name.split("/")
        if graph not in UNMEASURED_FOLDERS:
            measured.append((graph, system, number))
    return measured


@cache
def load_questions(graph: str) -> tuple[Mapping[str, Any], ...]:
    """Return the recorded questions over a sample graph with their gold, in the order of their numbers.

    Each is the JSON object of a line in GRAPH.questions.jsonl, with "question", "answers" and
    "answer_labels" among its keys. Raises FileNotFoundError for a graph without such a file.
    """
    file = disk.shipped_folder("recordings") / f"{graph}.questions.jsonl"
    return tuple(question for _, question in disk.read_json_lines(file))


@cache
def answers_of_system(system: str) -> tuple[RecordedAnswer, ...]:
    """Replay the recordings of a system, and return the answer to each with gold, F1 and cost.

    Those in UNMEASURED_FOLDERS are left out. Empty for an unknown system. Replaying takes about a
    second for a system; the result is kept for later calls.
    """
    # Lab 1 needs no benchmarks, whose import takes a quarter of a second.
    from kgwb.bench.metrics import score_answers
    from kgwb.bench.questions import answer_to_strings

    answers = []
    for graph, recorded_system, number in _list_measured():
        if recorded_system != system:
            continue
        name = f"{graph}/{system}/{number}"
        run = recording(name)
        row = load_questions(graph)[int(number) - 1]
        answer = RecordedAnswer(
            name,
            question=row["question"],
            labels=frozenset(answer_labels(run)),
            gold_labels=frozenset(row["answer_labels"]),
            totals=run.totals,
            f1=score_answers(answer_to_strings(run.answer), row["answers"]).f1,
        )
        answers.append(answer)
    return tuple(answers)


def answer_labels(run: Run) -> set[str]:
    """Return the labels of a run's answer; empty without an answer."""
    return set(run.answer.labels) if run.answer else set()


def lost_runs() -> list[Run]:
    """Return the recorded runs that lost their answer, which were made for lab 1, by number."""
    numbers = range(1, len(LOST_RUNS) + 1)
    return [recording(f"{LOST_FOLDER}/chatty_kg/{number}") for number in numbers]


def add_choice(lab: Lab, answer_type: Any, **fields: Any) -> None:
    """Add a task in which one chooses to a lab; ``right_answers.toml`` has what is right. ``fields`` are of Task."""
    row = dict(DATA["choices"][f"{lab.number}.{len(lab.tasks) + 1}"])
    fields["beside"] = row.pop("beside")
    lab.choice(answer_type, **fields)(partial(Choice, **row))


LOST_RUNS: list[dict[str, Any]] = DATA["lost_runs"]
"""What is known of each run in recordings/lost/chatty_kg."""


def open_lost_run(number: int) -> Run:
    """Replay one of the recorded runs that lost their answer, and return it ready to be edited.

    ``number`` is 1 to 5. After an edit, new calls go to the sample graph and to the model
    ``rules``.
    """
    graph = open_sample(LOST_RUNS[number - 1]["sample"])
    return recording(f"{LOST_FOLDER}/chatty_kg/{number}", kg=graph, model="rules")


def set_triples(run: Run, triples: Iterable[tuple[str, str, str]], target: str = "?answer") -> None:
    """Override the output of the QIR agent with these triples, and the unknown that is asked for."""
    facts = []
    for subject, relation, object_ in triples:
        fact = {"subject": subject, "relation": relation, "object": object_}
        facts.append(fact)
    run.override("qir", {"facts": facts, "target": target})


def find_first_edited_steps(run: Run, lost: Run) -> list[str]:
    """Return the agent that a repaired run changed first, followed by the agents that it supervises.

    A value that was put in but equals that of the recording does not count. First is the earliest
    step in the lost run; if none of its steps was changed, the first agent in the order of the
    system. Empty if nothing was changed. ``lost`` is the run before its repair.
    """
    changed = set()
    for key, value in run.overrides.items():
        step = lost.steps_by_key.get(key)
        if step is None or step.output != value:
            changed.add(key)
    for step in lost.steps:
        if step.key in changed or step.agent in changed:
            parts = [other.agent for other in lost.steps if other.parent == step.key]
            return [step.agent, *parts]
    first = find_first_agent(run, changed)
    return [first] if first else []
