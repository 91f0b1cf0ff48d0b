"""A system of one's own whose code raises: wherever it is asked, its agent and its line are named."""

import json
from pathlib import Path

import pytest
from small import films

import kgwb
from kgwb.adapt.clients import check_system
from kgwb.cli import main
from kgwb.errors import AgentFailedError
from kgwb.llm import Scripted
from kgwb.run import Run
from kgwb.run.systems import resolve_system
from kgwb.ui.session import session_of

SYSTEM = '''
import json

from kgwb.build import Answer, System, agent


@agent
def look(text, run):
    """Read a text as JSON, which fails in the code of a library."""
    return json.loads(text)


@agent
def guess(text, run):
    """Fail, which the pipeline takes for no answer."""
    raise LookupError(text)


def answer(question, dialogue, run):
    try:
        guess(question.text, run)
    except LookupError:
        return Answer("list", reason=look(question.text, run))


SYSTEM = System("failing", answer, [look, guess])
'''
LINE = 10
"""The line of the system's file that fails."""
MESSAGE = "JSONDecodeError: Expecting value: line 1 column 1 (char 0) (in the agent look)"
ASK = ["--kg", "films", "--model", "scripted:script.py"]
FAILING = ["--system", "./failing.py"]
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def file(here: Path) -> Path:
    """Return the file of the system in the current folder, beside a script without replies."""
    Path("script.py").write_text("SCRIPT = {}\n")
    line = json.dumps({"id": "1", "question": "Who?", "answers": []})
    Path("q.jsonl").write_text(f"{line}\n")
    file = Path("failing.py").resolve()
    file.write_text(SYSTEM)
    return file


def is_explained(text: str, file: Path) -> bool:
    """Return whether a text has the agent, the message and the place, and is no traceback."""
    place = f"{file}, line {LINE}"
    return MESSAGE in text and place in text and "Traceback" not in text


def begin(file: Path) -> Run:
    """Return a run of the system, not executed yet."""
    return Run(resolve_system(file), "Who?", kg=films(), models=Scripted({}))


def test_the_error_of_a_run_names_the_agent_and_the_line_of_the_file(file: Path) -> None:
    run = begin(file)
    with pytest.raises(json.JSONDecodeError):
        run.go()
    assert isinstance(run.error, AgentFailedError)
    assert run.error.message == MESSAGE
    assert run.error.place == f"{file}, line {LINE}"
    with pytest.raises(AgentFailedError) as raised:
        run.go_explained()
    assert raised.value is run.error


@pytest.mark.parametrize("arguments", [(), ("--json",), ("--save", "run.jsonl")])
def test_ask_names_the_agent_and_the_line(
    arguments: tuple[str, ...], file: Path, capsys: Capture
) -> None:
    assert main(["ask", *ASK, *FAILING, *arguments, "Who?"]) == 2
    assert is_explained(capsys.readouterr().err, file)


def test_what_a_function_beside_the_agents_raises_is_said_with_its_line(
    file: Path, capsys: Capture
) -> None:
    answered = """
from kgwb.build import Answer, Reading, System, agent


@agent
def look(text, run):
    return text


def answer(question, dialogue, run):
    return Answer("list", reason=look(question.text, run), readings=(Reading("this", "that"),))


def read_as(run, reading):
    return run[reading.unknown]


SYSTEM = System("failing", answer, [look], read_as=read_as)
"""
    file.write_text(answered)
    assert main(["ask", *ASK, *FAILING, "--reading", "1", "Who?"]) == 2
    error = capsys.readouterr().err
    assert "AttributeError" in error
    assert f"{file}, line 15" in error


def test_a_row_of_a_benchmark_has_the_line_and_so_has_one_that_is_asked_again(
    file: Path, capsys: Capture
) -> None:
    bench = ["bench", *ASK, *FAILING, "--questions", "q.jsonl", "--out", "out"]
    assert main(bench) == 2
    assert is_explained(capsys.readouterr().err, file)
    [line] = Path("out/results.jsonl").read_text().splitlines()
    assert is_explained(json.loads(line)["error"], file)
    retry = ["retry", "out", *FAILING, "--model", "scripted:script.py", "--set", "theta=2"]
    assert main(retry) in (0, 2)
    assert "Traceback" not in capsys.readouterr().err
    [again] = Path("out/retries").glob("*/results.jsonl")
    assert is_explained(json.loads(again.read_text())["error"], file)


def test_a_saved_run_that_failed_is_opened_as_far_as_it_went(file: Path, capsys: Capture) -> None:
    assert main(["ask", *ASK, *FAILING, "--save", "run.jsonl", "Who?"]) == 2
    loaded = kgwb.load_run("run.jsonl", system=file)
    assert (loaded.status, [step.agent for step in loaded.steps]) == ("failed", ["guess", "look"])
    assert is_explained(str(loaded.error), file)
    with pytest.raises(AgentFailedError):
        kgwb.load_run("run.jsonl", system=file, kg=films())


def test_a_widget_shows_the_line_and_does_not_ask_to_report_an_error_of_kgwb(file: Path) -> None:
    session = session_of(begin(file))
    session.go().result()
    assert is_explained(str(session.failure), file)


def test_a_check_names_what_fails_the_second_time(file: Path) -> None:
    once = SYSTEM.replace("def answer(", "CALLS = []\n\n\ndef answer(").replace(
        "    try:", "    CALLS.append(question)\n    if CALLS[1:]:\n        CALLS[5]\n    try:"
    )
    file.write_text(once.replace("json.loads(text)", "text"))
    checked = check_system(resolve_system(file), "Who?", model=Scripted({}))
    [problem, *_] = checked.problems
    assert "IndexError" in problem
