"""Every question set is told apart by its content, and every question of it read."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from tables import read_table

from kgwb.bench import load_questions, save_questions
from kgwb.bench.questions import BenchQuestion
from kgwb.errors import InputError

DATA = Path(os.environ.get("KGWB_DATA") or Path(__file__).parents[2] / "../shared/data").resolve()
HERE = Path(__file__).parent
DIRECTOR = "SELECT ?d WHERE { <http://e.org/f> <http://e.org/director> ?d }"


def qald(**changes: Any) -> dict[str, Any]:
    texts = [("de", " Wer? "), ("de", "Wer nur?"), ("en", "Who?"), ("pt_BR", "Quem?")]
    wordings = [{"language": language, "string": text} for language, text in texts]
    cell = {"d": {"type": "uri", "value": "http://e.org/v"}}
    answers = [{"head": {"vars": ["d"]}, "results": {"bindings": [cell]}}]
    question = {"id": 7, "question": [*wordings, {"language": "ru"}], "query": {"sparql": DIRECTOR}}
    return {
        "dataset": {"id": "made-up"},
        "questions": [{**question, "answers": answers, **changes}],
    }


def read(folder: Path, content: Any, language: str | None = None) -> list[BenchQuestion]:
    """The questions of a file whose name says nothing."""
    path = folder / "file"
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return load_questions(path, language)


# --- what is read


@pytest.mark.parametrize(
    "row", read_table(HERE / "question_files.jsonl"), ids=lambda row: row["case"]
)
def test_a_file_is_read_as_its_set_means_it_and_saved(tmp_path: Path, row: Any) -> None:
    folder = tmp_path / row.get("folder", "x")
    folder.mkdir()
    questions = read(folder, row["file"], row.get("language"))
    dumped = [each.model_dump(mode="json", exclude_defaults=True) for each in questions]
    assert dumped == row["questions"]
    save_questions(questions, tmp_path / "saved")
    assert load_questions(tmp_path / "saved") == questions


def test_questions_with_one_wording_are_selected_by_language(
    tmp_path: Path,
) -> None:
    rows = [{"id": language, "question": "Who?", "language": language} for language in ("en", "de")]
    lines = "\n".join(map(json.dumps, rows))
    assert [question.id for question in read(tmp_path, lines, "de")] == ["de"]
    assert len(read(tmp_path, lines)) == 2
    with pytest.raises(InputError, match=r"\bfr\b") as caught:
        read(tmp_path, lines, "fr")
    assert caught.value.hint.endswith(" de, en")


@pytest.mark.parametrize("row", read_table(HERE / "qald_gold.jsonl"), ids=json.dumps)
def test_the_gold_of_qald_and_the_type_of_its_query(tmp_path: Path, row: Any) -> None:
    changes = {"answers": row["answers"]} if "answers" in row else {}
    if "sparql" in row:
        changes["query"] = {"sparql": row["sparql"]}
    [question] = read(tmp_path, qald(**changes))
    if "gold" in row:
        assert question.answers == (None if row["gold"] is None else tuple(row["gold"]))
    else:
        assert question.type == row["type"]


# --- what is not


@pytest.mark.parametrize(
    "row", read_table(HERE / "invalid_questions.jsonl"), ids=lambda row: row["problem"]
)
def test_an_invalid_file_is_named_with_its_entry(tmp_path: Path, row: Any) -> None:
    with pytest.raises(InputError) as caught:
        read(tmp_path, row["file"])
    assert caught.value.message.startswith((f"{tmp_path / 'file'}, ", f"{tmp_path / 'file'} "))
    assert re.search(row["problem"], caught.value.message, re.DOTALL)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("ids", "unique_ids"), read_table(Path(__file__).with_name("repeated_ids.jsonl"))
)
def test_repeated_ids_get_numbers(tmp_path: Path, ids: list[Any], unique_ids: list[str]) -> None:
    content = {"questions": [one for id_ in ids for one in qald(id=id_)["questions"]]}
    assert [question.id for question in read(tmp_path, content)] == unique_ids


@pytest.mark.parametrize(
    "make", [lambda path: None, lambda path: path.mkdir(), lambda path: path.write_bytes(b"\xff")]
)
def test_a_file_that_cannot_be_read(tmp_path: Path, make: Any) -> None:
    make(tmp_path / "file")
    with pytest.raises(InputError, match="cannot read"):
        load_questions(tmp_path / "file")


# --- the real files


COUNTED = {
    "formats/qald-9-train-multilingual.json": (408, r'"answertype" :'),
    "formats/dblp100-qald.json": (100, r'"sparql":'),
    "formats/lcquad-1-test-first200.json": (200, r'"sparql_template_id":'),
    "formats/dialogues-example.json": (2, r'"SELECT '),
    "formats/text2sparql-example.yml": (1, r"^  - id:"),
    "metaqa/metaqa_dev.jsonl": (1500, r"^.*\S.*$"),
}
"""How many questions there are, and what each of them has in the file once."""


@pytest.mark.parametrize("name", COUNTED)
def test_every_question_of_the_published_files_is_read(tmp_path: Path, name: str) -> None:
    text = published(name).read_text(encoding="utf-8")
    count, mark = COUNTED[name]
    questions = load_questions(DATA / name)
    assert len(questions) == len(re.findall(mark, text, re.MULTILINE)) == count
    assert len({one.id for one in questions}) == count
    assert all(one.question for one in questions)
    save_questions(questions, tmp_path / "saved")
    assert load_questions(tmp_path / "saved") == questions


def published(name: str) -> Path:
    if not (path := DATA / name).exists():
        pytest.skip(f"no {path}: KGWB_DATA names the folder that holds formats/ and metaqa/")
    return path
