"""The languages of the labs: whole catalogues, feedback and notebooks in them, and a third without Python."""

import ast
import io
import json
import re
import tokenize
from pathlib import Path

import pytest
from babel.messages.pofile import read_po

import kgwb
from kgwb.cli import main
from kgwb.errors import InputError
from kgwb.labs import texts as texts_module
from kgwb.labs.changed_graphs import DATA
from kgwb.labs.tasks import LAB_MODULES, LESSON_PARTS, load_lab
from kgwb.labs.texts import (
    FOLDER,
    PLACEHOLDER,
    list_lab_notebooks,
    list_languages,
    load_texts,
    translate_notebook,
)
from kgwb.labs.two import RECORDED_REPLIES

OTHERS = [language for language in list_languages() if language != "en"]
PARTS_OF_TASKS = re.compile(
    r"\d\.\d+\.(title|example|hint\.[123]|rubric\.[123]|found|lesson|question)"
)
CHOICE = re.compile(r"(\d\.\d+|choice)\.(unknown|wrong|missing|number)")
"""What a task says of a choice, by the name of the task."""
KEY = re.compile(r"(?:\d(?:\.\d+)?|[a-z][a-z-]*)\.[a-z][a-z-]*(?:\.[a-z]+)?")
FORMS = ("forms", "forms_of_more", "forms_of_others")
HEADS = set(
    "again answer badge example feedback form hand-in lab lost reply result state stored".split()
)
"""What the keys begin with that belong to no single task."""
THIRD_LANGUAGE = """msgid ""
msgstr "Content-Type: text/plain; charset=utf-8\\n"

msgid "1.1.wrong"
msgstr "la question {choice} se comprend seule"

msgid "lab1-05"
msgstr "## Reformuler (5 minutes)"
"""


def read_catalogue(language: str) -> dict[str, str]:
    """Return the texts of a language by their keys, as they are in its file."""
    catalogue = read_po(io.BytesIO((FOLDER / f"{language}.po").read_bytes()))
    return {str(entry.id): str(entry.string) for entry in catalogue if entry.id}


ENGLISH = read_catalogue("en")


def read_code(source: str) -> list[tuple[int, str]]:
    """Return the tokens of code without comments; texts are replaced by their placeholders."""
    tokens = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        text = token.string
        if token.type in {tokenize.COMMENT, tokenize.NL}:
            continue
        if token.type == tokenize.STRING and " " in text:
            text = ""
        tokens.append((token.type, text))
    return tokens


@pytest.mark.parametrize("language", OTHERS)
def test_each_language_has_every_key_and_the_same_placeholders(language: str) -> None:
    other = read_catalogue(language)
    assert list(other) == list(ENGLISH)
    assert not [key for key, text in other.items() if not text]
    for key, text in ENGLISH.items():
        if not key.startswith("lab") or "-" not in key:
            assert sorted(PLACEHOLDER.findall(other[key])) == sorted(PLACEHOLDER.findall(text)), key


@pytest.mark.parametrize("language", OTHERS)
def test_only_comments_and_texts_of_code_are_translated(language: str) -> None:
    other = read_catalogue(language)
    for path in list_lab_notebooks():
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            if cell["cell_type"] == "code" and cell["id"] in other:
                english, translated = ENGLISH[cell["id"]], other[cell["id"]]
                if cell["id"] not in {"lab2-03", "lab2-15", "lab3-03"}:  # a word in a text
                    assert read_code(translated) == read_code(english), cell["id"]
                dumped = ast.dump(ast.parse(translated)), ast.dump(ast.parse(english))
                assert len(dumped[0].split("(")) == len(dumped[1].split("("))


@pytest.mark.parametrize("path", list_lab_notebooks(), ids=lambda path: path.stem)
def test_the_english_notebooks_have_the_texts_of_the_catalogue(path: Path) -> None:
    hint = "write them anew: kgwb labs export --students --language en notebooks/labs"
    assert translate_notebook(path, load_texts("en")) == path.read_text(encoding="utf-8"), hint
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        assert cell["cell_type"] == "code" or cell["id"] in ENGLISH


def test_every_key_in_the_code_is_in_the_catalogue_and_every_text_is_used() -> None:
    used = {f"lab.{name}" for name in ("task", "state", "tries", "hints", "points")}
    used |= {f"state.{name}" for name in ("solved", "tried", "open")}
    used |= {f"badge.{name}" for name in ("right", "wrong", "hint")}
    used |= {key for key in ENGLISH if key.startswith("claims.")}
    first_movie = DATA["first_movie"]
    for rows in (DATA["running_times"], DATA["mean_f1"], *(first_movie[key] for key in FORMS)):
        used |= {row["feedback"] for row in rows} - {""}
    used |= {reply["lack"] for reply in RECORDED_REPLIES if "lack" in reply}
    used |= {key for key in ENGLISH if CHOICE.fullmatch(key)}
    for path in FOLDER.parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                head = node.value.partition(".")[0]
                if KEY.fullmatch(node.value) and (head in HEADS or head.isdigit()):
                    used.add(node.value)
    cells = set()
    for notebook in list_lab_notebooks():
        cells |= {cell["id"] for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]}
    in_catalogue = {key for key in ENGLISH if not PARTS_OF_TASKS.fullmatch(key)} - cells
    titles = {f"lab{number}.title" for number in range(1, len(LAB_MODULES) + 1)}
    assert in_catalogue - titles == used


@pytest.mark.parametrize("language", list_languages())
@pytest.mark.parametrize("number", range(1, len(LAB_MODULES) + 1))
def test_all_that_a_task_shows_is_in_the_language(number: int, language: str) -> None:
    texts = read_catalogue(language)
    lab = load_lab(number, language)
    assert lab.title == texts[f"lab{number}.title"]
    for name, task in lab.tasks.items():
        assert task.title == texts[f"{name}.title"]
        assert list(task.hints) == [texts[f"{name}.hint.{n}"] for n in (1, 2, 3)]
        assert dict(task.lesson) == {part: texts[f"{name}.{part}"] for part in LESSON_PARTS}
        assert list(task.rubric) == [
            texts[key] for key in texts if key.startswith(f"{name}.rubric")
        ]


@pytest.mark.usefixtures("here")
def test_feedback_hints_and_the_page_of_a_student_are_in_the_language() -> None:
    texts = read_catalogue("de")
    work = kgwb.lab(1, language="de")
    wrong = work.check("1.1", [3, 1, 2])
    assert wrong.text == texts["1.1.wrong"].replace("{choice}", "1")
    assert texts["badge.wrong"] in wrong._repr_html_()
    right = work.check("1.1", "2, 4 und 5")
    first, found, lesson, question = right.text.splitlines()
    assert (first, found) == (texts["feedback.right"], texts["1.1.found"])
    assert lesson == texts["1.1.lesson"] and question.endswith(texts["1.1.question"])
    assert texts["1.1.hint.1"] in work.hint("1.1").text
    assert texts["state.solved"] in work._repr_html_() and "solved" not in work._repr_html_()
    assert texts["lab1.title"] in repr(work)
    with pytest.raises(InputError) as caught:
        work.hand_in("")
    assert caught.value.message == texts["hand-in.no-name"]
    # the work of a student is the same in each language
    assert kgwb.lab(1, language="en").submission.progress("1.1").state == "solved"


def test_names_are_read_with_the_word_for_and_of_the_language() -> None:
    assert kgwb.lab(3, None, language="de").check("3.6", "C, E und F").state == "right"
    assert kgwb.lab(3, None, language="en").check("3.6", "C, E and F").state == "right"


def test_the_environment_names_the_language(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(texts_module.LANGUAGE_VARIABLE, "de")
    assert kgwb.lab(2, None).lab.title == read_catalogue("de")["lab2.title"]
    assert kgwb.lab(2, None, language="en").lab.title == ENGLISH["lab2.title"]


@pytest.mark.parametrize("language", ["xx", "../en", "missing.po"])
def test_an_unknown_language_is_an_error_that_lists_the_others(language: str) -> None:
    with pytest.raises(InputError) as caught:
        kgwb.lab(1, None, language=language)
    assert all(known in caught.value.hint for known in list_languages())


def test_a_file_that_is_no_catalogue_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "fr.po"
    file.write_text("this is no catalogue\n")
    with pytest.raises(InputError, match=r"fr\.po"):
        kgwb.lab(1, None, language=str(file))


def test_a_third_language_needs_no_python(here: Path) -> None:
    Path("fr.po").write_text(THIRD_LANGUAGE, encoding="utf-8")
    assert main(["labs", "export", "--students", "--language", "fr.po", "class"]) == 0
    assert {path.name for path in Path("class").glob("*.po")} == {"fr.po"}
    notebook = (here / "class" / "1_from_question_to_sparql.ipynb").read_text(encoding="utf-8")
    sources = ["".join(cell["source"]) for cell in json.loads(notebook)["cells"]]
    assert "## Reformuler (5 minutes)" in sources
    assert any('kgwb.lab(1, language="fr.po")' in source for source in sources)
    work = kgwb.lab(1, None, language="fr.po")
    assert work.check("1.1", [1]).text == "la question 1 se comprend seule"
    assert work.check("1.1", [2]).text == ENGLISH["1.1.missing"]  # what it lacks is in English
