"""kgwb works where the system lacks what Windows lacks, in every process that it starts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from windows_like import environment

from kgwb.kg.parser_process import TOO_SLOW_MESSAGE

ROOT = Path(__file__).parent.parent
XML = '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/">'
ELEMENT, END_ELEMENT = "<e:p><rdf:Description>", "</rdf:Description></e:p>"
VILLENEUVE = "https://kgwb.example/films/Denis_Villeneuve"
QUESTION = {"id": "C:/films?", "question": "Who directed Arrival?", "answers": [VILLENEUVE]}


def python(here: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python as on such a system, on this checkout."""
    variables = environment(here)
    variables["PYTHONPATH"] += f"{os.pathsep}{ROOT}"
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=here,
        env=variables,
        capture_output=True,
        encoding="cp1252",
        check=False,
    )


def result_of(here: Path, code: str) -> object:
    """What the last line of a program prints, as JSON."""
    done = python(here, "-c", code)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_the_system_lacks_what_windows_lacks(here: Path) -> None:
    code = """
import os
try:
    import fcntl, resource
except ImportError:
    print("true" if not hasattr(os, "fork") else "false")
"""
    assert result_of(here, code) is True


def test_a_question_is_answered_and_its_run_is_saved_and_opened(here: Path) -> None:
    code = """
import json, kgwb
workbench = kgwb.Workbench(kgwb.open_kg("films"), kgwb.model("rules"))
run = workbench.ask("Who directed Am\\u00e9lie?")
run.save("run.jsonl")
again = kgwb.load_run("run.jsonl")
print(json.dumps([str(workbench.ask("Who directed Arrival?").answer), again.question]))
"""
    assert result_of(here, code) == ["Denis Villeneuve", "Who directed Amélie?"]
    assert b"\r" not in (here / "run.jsonl").read_bytes()


def test_files_of_every_format_are_opened_from_a_folder(here: Path) -> None:
    graph = here / "graph" / "more"
    graph.mkdir(parents=True)
    triple = "<http://e/s> <http://e/p> <o{}> .\n"
    (graph / "a.ttl").write_text(triple.format(1))
    (graph / "b.nt").write_text(triple.format(2).replace("<o", "<http://e/o"))
    (graph / "c.rdf").write_text(
        f'{XML}<rdf:Description rdf:about="s"><e:p>1</e:p></rdf:Description></rdf:RDF>'
    )
    code = """
import json, kgwb
kg = kgwb.open_kg("graph")
rows = kg.select("SELECT ?o { ?s ?p ?o }")
print(json.dumps(sorted(str(row[0]) for row in rows.rows)))
"""
    assert result_of(here, code) == ["1", "file:///graph/more/o1", "http://e/o2"]


def test_a_graph_that_overflows_the_stack_ends_only_its_own_process(here: Path) -> None:
    opened = "<<( <http://e/s> <http://e/p> " * 200_000
    (here / "deep.nq").write_text(f"<http://e/s> <http://e/p> {opened}<o>" + " )>>" * 200_000)
    assert "does not parse" in error_of_opening(here, "deep.nq")


def test_a_graph_that_takes_too_long_to_parse_is_given_up(here: Path) -> None:
    depth = 40_000
    body = ELEMENT * depth + END_ELEMENT * depth
    (here / "slow.rdf").write_text(f"{XML}<rdf:Description>{body}</rdf:Description></rdf:RDF>")
    assert TOO_SLOW_MESSAGE in error_of_opening(here, "slow.rdf", processor_s=0.3)


def error_of_opening(here: Path, name: str, processor_s: float = 20.0) -> str:
    """The error with which a process that goes on refuses a file."""
    code = f"""
import json, kgwb
from kgwb.errors import KgwbError
from kgwb.kg import files
files.PROCESSOR_S, files.PROCESSOR_S_PER_MB = {processor_s}, 0
try:
    kgwb.open_kg({name!r})
except KgwbError as error:
    print(json.dumps(str(error)))
"""
    return str(result_of(here, code))


@pytest.mark.long
def test_a_benchmark_is_run_resumed_and_locked_against_another(here: Path) -> None:
    (here / "q.jsonl").write_text(json.dumps(QUESTION), encoding="utf-8")
    bench = ("-m", "kgwb", "bench", "--kg", "films", "--questions", "q.jsonl", "--out", "out")
    done = python(here, *bench, "--save-runs")
    assert done.returncode == 0, done.stderr
    [row] = (here / "out" / "results.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(row)["f1"] == 1
    assert ":" not in json.loads(row)["run"]
    assert (here / "out" / json.loads(row)["run"]).is_file()
    code = f"""
import json, subprocess, sys, warnings
warnings.simplefilter("ignore")
from pathlib import Path
from kgwb.bench.results import lock_folder
with lock_folder(Path("out")):
    locked = subprocess.run([sys.executable, *{bench!r}], capture_output=True)
free = subprocess.run([sys.executable, *{bench!r}], capture_output=True)
print(json.dumps([locked.returncode, free.returncode]))
"""
    assert result_of(here, code) == [2, 0]


@pytest.mark.long
def test_doctor_says_that_memory_is_not_limited(here: Path) -> None:
    done = python(here, "-m", "kgwb", "doctor")
    assert done.returncode == 0, done.stderr
    [line] = [line for line in done.stdout.splitlines() if "memory limit" in line]
    assert line.startswith("absent")


@pytest.mark.long
def test_lab_waits_for_jupyterlab_and_takes_its_exit_code(here: Path) -> None:
    done = python(here, "-m", "kgwb", "lab", "--version")
    assert (done.returncode, done.stdout.strip()[:2]) == (0, "4."), done.stderr
    assert python(here, "-m", "kgwb", "lab", "--port=no").returncode == 1


@pytest.mark.long
def test_what_a_console_cannot_show_is_replaced(here: Path) -> None:
    done = python(here, "-m", "kgwb", "demo")
    assert done.returncode == 0, done.stderr
    assert "Daniel Radcliffe" in done.stdout
