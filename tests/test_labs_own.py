"""A lab of one's own: the example and its test, handed in, collected, checked again, with a broken check."""

import subprocess
import sys
from pathlib import Path

import pytest

import kgwb
from kgwb.cli import main
from kgwb.errors import InputError, SettingError

BARE_LAB = """from kgwb.labs.answers import NamedNumber
from kgwb.labs.tasks import Choice, Lab

LAB = Lab("bare", "A lab without hints")


@LAB.task("How many?", lesson=None, rubric=None, try_live=lambda answer, model: [f"{model} says {answer}"])
def check(number: int) -> str:
    return "" if number == 2 else "not two"


NUMBERS = {"Lost": (2, 3)}
LAB.choice(NamedNumber, "Which, and how many?")(lambda: Choice(["Lost"], ["Lost", "Agent"], NUMBERS))
"""


def write_example(folder: Path) -> Path:
    """Write the example of a lab to a folder, and return its file."""
    assert main(["labs", "new", str(folder)]) == 0
    return folder / "my_lab.py"


def test_the_example_passes_its_own_test(tmp_path: Path) -> None:
    write_example(tmp_path)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    result = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert result.returncode == 0, result.stdout
    assert main(["labs", "new", str(tmp_path)]) == 2  # nothing is overwritten


def test_an_own_lab_is_done_handed_in_and_checked_again(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write_example(here)
    lab = kgwb.lab(file)
    lab.check("my_lab.2", "thriller")
    assert "my_lab.json" in [path.name for path in here.iterdir()]
    open_run = lab.lab.tasks["my_lab.3"].open_run
    assert open_run is not None
    assert lab.check("my_lab.3", open_run()).state == "wrong"
    assert lab.submission.progress("my_lab.3").data is None  # executed again, it would be right
    assert lab.check("my_lab.3", open_run().go()).state == "right"
    assert lab.text("example.whole-number") in lab.check("my_lab.1", "many").text
    lab.check("my_lab.1", 0)
    assert lab.text("example.names") in lab.check("my_lab.2", 3).text
    handed_in = lab.hand_in("Ada", here / "hand_ins")
    assert handed_in.name.startswith("my_lab-Ada-")
    handed_in.write_text(handed_in.read_text().replace('"tried"', '"solved"'))
    kgwb.lab(1, None).hand_in("Bob", here / "hand_ins")
    arguments = ["labs", "collect", str(here / "hand_ins"), "--lab", str(file), "--check"]
    assert main(arguments[:3]) == 0
    assert "'my_lab'; one of your own is named by its file: --lab" in capsys.readouterr().out
    assert main([*arguments, "--csv", "points.csv", "--language=de"]) == 0
    output = capsys.readouterr().out
    assert "Mein Lab" in (here / "labs.html").read_text()
    assert "Das ist nicht die Zahl der Filme" in output and "my_lab.3 is" not in output
    assert "my_lab.2" in (here / "points.csv").read_text()


@pytest.mark.parametrize(
    ("line", "error"),
    [("1 / 0", "ZeroDivisionError"), ("return True", "TypeError: a check returns")],
)
def test_a_check_that_fails_in_itself_shows_the_lecturer_its_traceback(
    here: Path, line: str, error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write_example(here)
    lab = kgwb.lab(file)
    lab.check("my_lab.2", "thriller")
    lab.hand_in("Ada", here / "hand_ins")
    text = file.read_text().replace("texts = {", line + "\n    texts = {")
    file.write_text(text)
    broken = kgwb.lab(file, None)
    feedback = broken.check("my_lab.2", "thriller")
    assert feedback.state == "wrong" and "Traceback" not in feedback.text
    assert error.partition(":")[0] in feedback.text
    assert broken.submission.progress("my_lab.2").tries == 0
    arguments = ["labs", "collect", str(here / "hand_ins"), "--lab", str(file), "--check"]
    assert main(arguments) == 0
    output = capsys.readouterr().out
    assert "Traceback" in output and "my_lab." in output and error in output


ODD_TASK = """from kgwb.labs.tasks import Lab
@Lab('x', 'X').task('Q', {})
def check(number: int): ...
"""


@pytest.mark.parametrize(
    ("text", "error", "part"),
    [
        ("", InputError, "LAB"),
        ("LAB = 1", InputError, "LAB"),
        ("1 / 0", SettingError, "ZeroDivisionError"),
        (ODD_TASK.format("'a hint', ['another']"), SettingError, "hints.1"),
        (ODD_TASK.format("rubric=['says it']"), SettingError, "rubric"),
        (ODD_TASK.format("rubrik={'says it': 1}"), SettingError, "rubrik"),
    ],
)
def test_a_file_without_a_lab_is_an_error(
    tmp_path: Path, text: str, error: type[Exception], part: str
) -> None:
    file = tmp_path / "broken_lab.py"
    file.write_text(text)
    with pytest.raises(error, match=r"broken_lab\.py") as caught:
        kgwb.lab(file)
    assert part in str(caught.value)
    with pytest.raises(SettingError, match=r"missing\.py"):
        kgwb.lab(tmp_path / "missing.py")


def test_a_task_without_hints_says_so_and_one_is_tried_as_it_says(tmp_path: Path) -> None:
    file = tmp_path / "bare_lab.py"
    file.write_text(BARE_LAB)
    work = kgwb.lab(file, None)
    shown = [work.hint("bare.1"), work.hint("bare.1")]
    assert [feedback.text for feedback in shown] == ["this task has no hints"] * 2
    assert work.submission.progress("bare.1").hints == 0
    assert work.try_live("bare.1", 2, "rules") == ["rules says 2"]


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (("lost", 2), "right"),
        ("Lost: 3", "right"),
        ("lost: >3", "this cannot be read here: 'lost: >3'; write a name and a number"),
        ("lost: at least 3", "this is none of the options: lost: at least; they are Lost, Agent"),
        (("Lost", 4), "4 is not the number of Lost"),
        (("agent", 2), "Agent is not right"),
        (("the agent", 2), "Agent is not right"),
        (("one agent", 2), "this is none of the options: one agent; they are Lost, Agent"),
    ],
)
def test_a_choice_with_a_number_is_a_row_of_data(tmp_path: Path, answer: object, text: str) -> None:
    file = tmp_path / "bare_lab.py"
    file.write_text(BARE_LAB)
    assert kgwb.lab(file, None).check("bare.2", answer).text.startswith(text)


def test_a_language_that_kgwb_lacks_is_said_to_be_english_around_the_tasks(tmp_path: Path) -> None:
    file = tmp_path / "bare_lab.py"
    file.write_text(BARE_LAB)
    head = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=utf-8"\n\n'
    catalogue = tmp_path / "bare_lab.fr.po"
    with pytest.raises(InputError, match=r"bare_lab\.fr\.po or fr\.po"):
        kgwb.lab(file, None, language="fr")
    catalogue.write_text(head + 'msgid "How many?"\nmsgstr "Combien ?"\n')
    with pytest.warns(UserWarning, match=r"bare_lab\.fr\.po"):
        assert "Combien" in kgwb.lab(file, None, language="fr").lab.tasks["bare.1"].title
    whole = head + 'msgid "badge.wrong"\nmsgstr "pas encore"\n'
    (tmp_path / "whole.po").write_text(whole)
    lab = kgwb.lab(file, None, language=str(tmp_path / "whole.po"))  # a warning would be an error
    assert "pas encore" in lab.check("bare.1", 1)._repr_html_()
