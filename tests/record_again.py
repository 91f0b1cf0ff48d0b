"""Record shipped runs of a system anew where it asks its graph otherwise than before; no model is asked.

    python tests/record_again.py chatty_kg
    python tests/record_again.py ragonite --prompts    runs of profile paper, with today's prompts

The model's replies and their times stay those of the recording. The sample graph is asked for what the
recording does not have, and calls that the run no longer uses are left out. Fails, and changes nothing of
that recording, if an answer or a model call would be another one. With ``--prompts`` a run of profile
``paper`` is asked again with today's settings and prompts: its replies come in their order, and only the
answer and the sources that it cites must be the same. Do so only if the replies still fit what the prompts
now say.
"""

import gzip
import json
import sys
import tempfile
from pathlib import Path

from kgwb import open_kg
from kgwb.kg import Graph
from kgwb.llm import Scripted
from kgwb.records import from_data
from kgwb.run import Run
from kgwb.run.run import read_only_run
from kgwb.run.systems import load_system
from kgwb.systems.ragonite.records import CitedAnswer
from kgwb.workbench import list_recordings


def _model_calls(run: Run) -> list[str]:
    """The keys of the model calls that the latest execution used."""
    used = [run.calls[key] for step in run.steps for key in step.calls]
    return [call.key for call in used if call.kind == "model"]


def _leave_out_unused_calls(run: Run) -> None:
    used = {*run.own_calls}
    for step in run.steps:
        used.update(step.calls)
    for key in list(run.calls):
        if key not in used:
            del run.calls[key]


def record_again(path: Path, system: str, kg: Graph) -> int:
    """Replace a recording by the same run with today's calls, and return how many calls it has."""
    old = read_only_run(path, "it is read only to compare with it")
    run = Run.load(path, load_system(system), kg=kg).go()
    assert run.answer == old.answer, f"{path}: another answer"
    assert _model_calls(run) == _model_calls(old), f"{path}: other model calls"
    _leave_out_unused_calls(run)
    with tempfile.TemporaryDirectory() as folder:
        saved = run.save(Path(folder) / "run.jsonl")
        path.write_bytes(gzip.compress(saved.read_bytes(), mtime=0))
    return len(run.calls)


def _values(run: Run) -> tuple[str, list[str]]:
    """The text of an answer, and its values."""
    assert run.answer is not None
    return run.answer.text, sorted(value.label for value in run.answer.values)


def _cited(run: Run) -> dict[int, str]:
    """The numbers of the sources that an answer cites, each with the title of its source; none in most systems."""
    titles: dict[int, str] = {}
    for step in run.steps:
        cited = step.inputs.get("cited")
        if isinstance(cited, dict):
            cited = from_data(cited, CitedAnswer)
        if cited:
            titles |= {number: cited.sources[number - 1].title for number in cited.cited_numbers}
    return titles


KEPT_SETTINGS = ("documents", "annotations", "metacognition", "model_timeout_s")
"""What a run of profile ``paper`` was asked with, besides its profile."""


def ask_again(path: Path, system: str, kg: Graph) -> int:
    """Replace a recording by a run with today's prompts and the same replies; return how many calls it has."""
    old = read_only_run(path, "it is read only to take its replies")
    replies = iter([old.calls[key].result.text for key in _model_calls(old)])
    loaded = load_system(system)
    with gzip.open(path, "rt", encoding="utf-8") as file:
        settings = json.loads(file.readline())["settings"]
    kept = {name: settings[name] for name in KEPT_SETTINGS if name in settings}
    run = Run(
        loaded,
        old.question,
        dialogue=old.dialogue,
        kg=kg,
        models=Scripted(
            lambda request: next(replies), name=old.calls[_model_calls(old)[0]].request["model"]
        ),
        settings=loaded.settings.of_profile("paper", **kept),
    )
    run.go()
    assert not list(replies), f"{path}: replies are left"
    for seen in (_values, _cited):
        assert seen(run) == seen(old), f"{path}: {seen(run)}, not {seen(old)}"
    with tempfile.TemporaryDirectory() as folder:
        saved = run.save(Path(folder) / "run.jsonl")
        path.write_bytes(gzip.compress(saved.read_bytes(), mtime=0))
    return len(run.calls)


def main() -> None:
    system = sys.argv[1]
    for name, path in list_recordings().items():
        if name.split("/")[1] != system:
            continue
        if "--prompts" in sys.argv and not name.startswith("paper/"):
            continue
        with gzip.open(path, "rt", encoding="utf-8") as file:
            header = file.readline()
        kg = open_kg("films" if '"source":"films"' in header else "scholars")
        before = path.read_bytes()
        record = ask_again if "--prompts" in sys.argv else record_again
        number = record(path, system, kg)
        sys.stdout.write(f"{name}: {number} calls, {len(before)} to {path.stat().st_size} bytes\n")


if __name__ == "__main__":
    main()
