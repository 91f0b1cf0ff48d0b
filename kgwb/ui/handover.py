"""In one click, a question is asked of a system that can express it, or read in another way."""

from __future__ import annotations

from collections import Counter

from kgwb.errors import SettingError
from kgwb.flow import CANNOT_EXPRESS
from kgwb.run import Run, Setup
from kgwb.systems import resolve_system


def find_able_system(run: Run) -> str:
    """Return the name of the system that can answer what a run could not express; "" for none.

    "" unless the answer has no values and says CANNOT_EXPRESS, if the run's system names no other
    one, if a model is ``rules``, which other systems cannot use, or if it is a replay, which has no
    graph to ask.
    """
    answer = run.answer
    if answer is None or run.unrecorded_graph is None:
        return ""
    if any(model.name == "rules" for model in run.models.values()):
        return ""
    is_refused = not answer.values and answer.reason.startswith(CANNOT_EXPRESS)
    return run.system.handover if is_refused else ""


def offered_readings(run: Run) -> tuple[tuple[int, str, str], ...]:
    """Return the other readings of a question that can be asked now: number, text, what was taken.

    Where several are worded alike, the text has what was taken, too. There are none while the run
    has no answer or is executed, and in a replay, which has no graph.
    """
    if run.unrecorded_graph is None or run.status != "done":
        return ()
    wordings = Counter(reading.other for reading in run.readings)
    offered = []
    for number, reading in enumerate(run.readings, 1):
        text = reading.other
        if wordings[text] > 1:
            text = str(reading)
        offered.append((number, text, reading.taken))
    return tuple(offered)


def hand_over(run: Run) -> Run:
    """Return a run of the same question in the system of ``find_able_system``, not executed yet.

    It has the graph, the models, and those of the settings and prompts that the other system knows.
    Raises SettingError if there is no such system, or no graph.
    """
    name = find_able_system(run)
    graph = run.unrecorded_graph
    if graph is None:
        raise SettingError(
            "this run has no graph, so no other system can be asked",
            hint="open the run with its graph: kgwb.load_run(path, kg=...)",
        )
    if not name:
        raise SettingError(
            "no other system is offered: the present one did not say that it cannot express the question",
            hint="ask another one yourself: kgwb.Workbench(kg, model, system='surveyor')",
        )
    setup = Setup(graph, run.system, run.models, run.settings, run.prompts, run.embeddings)
    able = setup.of_system(resolve_system(name))
    return able.begin(run.question, run.dialogue)
