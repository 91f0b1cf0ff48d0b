"""Bad input: each a clear error that says what to do next."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import rdflib
from small import DIRECTED, chatty, films, predicates, qir, workbench

import kgwb
from kgwb.errors import (
    GraphFileError,
    KgwbError,
    ModelUnreachableError,
    NotRecordedError,
    PromptError,
    QuestionError,
    RunFileError,
    SettingError,
    UnknownModelError,
)
from kgwb.llm import Scripted
from kgwb.run.prompts import Prompts


def opening(file: str, content: str, kg: str = "", **options: Any) -> Callable[[], Any]:
    """Opening this graph, or else the file, where the working folder has a file of this content."""

    def give() -> Any:
        Path(file).write_text(content)
        return kgwb.open_kg(kg or file, **options)

    return give


def empty_recording() -> Any:
    Path("a.jsonl").write_text("\n")
    return kgwb.model("replay:a.jsonl")


def run_of_another_graph() -> Any:
    kgwb.Workbench("films", "rules").ask(GOOD).save("run.jsonl")
    return kgwb.load_run("run.jsonl", kg=kgwb.open_kg("cars"))


GOOD = "Who directed Arrival?"
UNUSED = {"qri": Scripted({})}
NONE: Any = None


def bench(**options: Any) -> kgwb.Workbench:
    return workbench(Scripted(DIRECTED), **options)


def ask(question: str) -> Any:
    return bench().ask(question)


BAD: dict[str, tuple[Callable[[], Any], type[KgwbError], str, str]] = {
    "no such file": (
        lambda: kgwb.open_kg("none.ttl"),
        GraphFileError,
        "no file or folder none.ttl",
        "films",
    ),
    "no name": (
        lambda: kgwb.open_kg(""),
        GraphFileError,
        "no file or folder of the name ''",
        "check",
    ),
    "no such user": (
        lambda: kgwb.open_kg("~nobody_at_all/x.ttl"),
        GraphFileError,
        "~nobody_at_all",
        "check",
    ),
    "long path": (lambda: kgwb.open_kg("a/" * 5_000), GraphFileError, "cannot be opened", "check"),
    "name of bytes": (
        opening("\udcff.ttl", "<a:s> <a:p> 1 ."),
        GraphFileError,
        "not valid UTF-8",
        "rename",
    ),
    "no IRI": (
        opening("v.json", '{"labels": ["http://e/\\ue000"]}', "films", vocabulary="v.json"),
        *(SettingError, "in labels.0", "choose"),
    ),
    "empty graph": (opening("a.ttl", "# nothing"), GraphFileError, "contains no triples", "check"),
    "empty rdflib graph": (
        lambda: kgwb.open_kg(rdflib.Graph()),
        GraphFileError,
        "no triple",
        "parse",
    ),
    "no graph": (
        lambda: kgwb.Workbench(NONE),
        GraphFileError,
        "None cannot be opened as a graph",
        "a sample's name",
    ),
    "no scheme": (
        lambda: kgwb.open_kg("localhost:3030/ds"),
        GraphFileError,
        "localhost:3030/ds",
        "http://",
    ),
    "no model": (
        lambda: kgwb.model(NONE),
        UnknownModelError,
        "None cannot be used as a model",
        "rules",
    ),
    "empty recording": (empty_recording, RunFileError, "a.jsonl is empty", "Run.save"),
    "unknown model": (
        lambda: kgwb.model("gtp-4o"),
        UnknownModelError,
        "named 'gtp-4o'",
        "openai:MODEL",
    ),
    "model without name": (
        lambda: kgwb.model("openai:"),
        UnknownModelError,
        "no model named",
        "ollama:",
    ),
    "missing key": (
        lambda: kgwb.model("openai:gpt-4o"),
        UnknownModelError,
        "API_KEY",
        "OPENAI_API_KEY",
    ),
    "no such recording": (lambda: kgwb.model("replay:none.jsonl"), RunFileError, "none.jsonl", ""),
    "another graph": (run_of_another_graph, NotRecordedError, "another graph", "model"),
    "no server": (
        lambda: kgwb.Workbench("films", "openai:tiny@http://127.0.0.1:9/v1").ask(GOOD),
        ModelUnreachableError,
        "cannot be reached",
        "address",
    ),
    "blank question": (
        lambda: ask(" \n\t "),
        QuestionError,
        "the question is empty",
        "Who directed",
    ),
    "no question": (lambda: ask(NONE), QuestionError, "the question is empty", "Who directed"),
    "10,000 words": (
        lambda: ask("why " * 10_000),
        QuestionError,
        "10,000 words; at most",
        "shorten it",
    ),
    "unknown setting": (
        lambda: kgwb.profile("fast", teta=1),
        SettingError,
        "no setting named teta",
        "theta",
    ),
    "unknown profile": (
        lambda: kgwb.profile("slow"),
        SettingError,
        "no profile named 'slow'",
        "fast, paper",
    ),
    "unknown system": (lambda: bench(system="chatty"), SettingError, "'chatty'", "chatty_kg"),
    "model for no agent": (lambda: bench(models=UNUSED), SettingError, "no agent 'qri'", "qir"),
    "no prompt folder": (lambda: bench(prompts="none"), PromptError, "no folder none", "leave"),
    "no such run": (
        lambda: kgwb.load_run("none.jsonl"),
        RunFileError,
        "cannot read the run file",
        "path",
    ),
}


@pytest.mark.parametrize(("give", "error", "message", "hint"), BAD.values(), ids=BAD.keys())
@pytest.mark.usefixtures("here")
def test_bad_input_is_refused_clearly(give: Any, error: Any, message: str, hint: str) -> None:
    with pytest.raises(error) as caught:
        give()
    assert message in caught.value.message
    assert caught.value.hint and hint in caught.value.hint
    assert "What to do: " in str(caught.value)


def test_a_question_of_the_longest_kind_is_still_taken() -> None:
    assert chatty("why " * 1_000, Scripted(DIRECTED)).question.count("why") == 1_000


def test_a_graph_without_labels_works_by_the_names_in_its_iris() -> None:
    kg = films("@prefix : <http://example.org/film/> . :Blade_Runner :directedBy :RidleyScott .")
    script = {
        "chatty_kg/qir": qir("Blade Runner | director | ?who"),
        "chatty_kg/predicate_selection": predicates(["directed by"]),
    }
    run = chatty("Who directed Blade Runner?", Scripted(script), kg).go()
    assert str(run.answer) == "Ridley Scott"


def test_a_prompt_file_with_a_problem_stops_its_agent_and_loses_nothing(tmp_path: Path) -> None:
    text = Prompts().text("chatty_kg/qir")
    path = tmp_path / "chatty_kg" / "qir.md"
    path.parent.mkdir()
    path.write_text(text.replace("{{question}}", "{{qestion}}"))
    mine = bench(prompts=tmp_path)
    with pytest.raises(PromptError, match="qestion") as caught:
        mine.ask(GOOD)
    assert "prompts/chatty_kg/qir.md" in caught.value.hint
    run = mine.runs[-1]
    assert (run.status, run["qir"].error) == ("failed", caught.value.message)
    path.write_text(text)
    assert str(run.go().answer) == "Denis Villeneuve"
