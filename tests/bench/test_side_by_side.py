"""One question asked of several systems, side by side."""

from pathlib import Path
from urllib.parse import unquote

import pytest
from commands import DENIS, FILM, bench, rows, write_questions
from rdflib import URIRef
from small import films

import kgwb
from kgwb.bench import compare_runs
from kgwb.bench.questions import BenchQuestion
from kgwb.cli import ask
from kgwb.errors import SettingError
from kgwb.run import Run, System, agent, systems
from kgwb.run.answers import Answer, Value

OWN_SYSTEM = """
from rdflib import Literal
from kgwb.run.answers import (Answer, Dialogue, Question, Value)
from kgwb.run import Run, System, agent

@agent("say")
def say(text: str, run: Run) -> Answer:
    "Say the title."
    return Answer("list", (Value(Literal("{title}"), "{title}"),))

SYSTEM = System("own", lambda question, dialogue, run: say(question.text, run), (say,))
"""
ASKED = BenchQuestion(id="1", question="Who directed Arrival?", answers=(DENIS,))


def test_every_system_has_a_column_with_its_answer_or_error() -> None:
    workbench = kgwb.Workbench(kgwb.open_kg("films"), models={"qir": "rules"})
    shown = workbench.ask_all(ASKED)
    by_system = {each.system: each for each in shown.answers}
    assert tuple(by_system) == systems.list_systems() and not workbench.runs
    answered = [each for each in shown.answers if not each.error]
    assert len(answered) >= 2 and {each.f1 for each in answered} == {1.0}
    assert "surveyor" in by_system["surveyor"].error and by_system["surveyor"].f1 == 0
    assert len(shown.shared_support) == 1 and shown["dog"].totals.model_calls == 3
    text, page = repr(shown), str(shown._repr_html_())
    assert all(name in text and name in page for name in systems.list_systems())
    assert "Denis Villeneuve" in text and "failed: " in text


def test_finished_runs_are_laid_side_by_side_and_scored() -> None:
    workbench = kgwb.Workbench(kgwb.open_kg("films"))
    run = workbench.ask("Who directed Arrival?")
    begun = workbench.begin("Who directed Arrival?")
    scored = compare_runs(ASKED, [run, begun])
    assert [each.system for each in scored.answers] == ["chatty_kg", "chatty_kg#2"]
    assert [each.f1 for each in scored.answers] == [1.0, 0]  # without an answer it scores nothing
    assert scored["chatty_kg#2"] is begun
    unscored = compare_runs("Who directed Arrival?", [run, begun])
    assert [each.f1 for each in unscored.answers] == [None, None]


@agent("say")
def say(name: str, run: Run) -> Answer:
    """Answer with a thing that is called Dune, whatever its IRI is."""
    thing = URIRef(f"http://e/{name}")
    triple = (thing, URIRef("http://e/next"), URIRef("http://e/x"))
    return Answer("list", (Value(thing, "Dune", (triple,)),), names=((thing, "Dune"),))


def run_that_says(name: str) -> Run:
    system = System(name, lambda question, dialogue, run: say(name, run), (say,))
    return Run(system, "Which?", kg=films(), models="rules").go()


def test_answers_and_triples_of_one_name_are_told_apart() -> None:
    compared = compare_runs("Which?", [run_that_says("a"), run_that_says("b")])
    [_, *names] = compared._make_answer_table(300).rows[0]
    assert names == ["<http://e/a>", "<http://e/b>"]
    triples = [row[0] for row in compared._make_support_table().rows]
    assert len(set(triples)) == 2
    same = compare_runs("Which?", [run_that_says("a"), run_that_says("a")])
    [_, *names] = same._make_answer_table(300).rows[0]
    assert names == ["Dune", "Dune"]


def test_two_systems_of_one_name_are_told_apart(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder, title in (("a", "Arrival"), ("b", "Dune: Part Two")):
        Path(folder).mkdir()
        Path(folder, "own.py").write_text(OWN_SYSTEM.format(title=title))
    sources = ["./a/own.py", "./b/own.py"]
    shown = kgwb.Workbench(kgwb.open_kg("films")).ask_all("Who directed Arrival?", sources)
    assert [answer.system for answer in shown.answers] == ["own", "own#2"]
    assert [str(shown[name].answer) for name in ("own", "own#2")] == ["Arrival", "Dune: Part Two"]
    write_questions({"answers": ["Arrival"]})
    assert bench("--systems", ",".join(sources)) == 0
    folders = sorted(path for path in Path("r").iterdir() if path.is_dir())
    assert [rows(folder)[0]["f1"] for folder in folders] == [1.0, 0.0]
    assert unquote(folders[0].name) in capsys.readouterr().out


def test_a_wrong_answer_names_where_it_was_lost() -> None:
    query = f"SELECT ?x {{ <{FILM}Arrival> <{FILM}screenwriter> ?x }}"
    changes = {"answers": (f"{FILM}Eric_Heisserer",), "sparql": query}
    question = ASKED.model_copy(update=changes)
    [asked] = kgwb.Workbench(kgwb.open_kg("films")).ask_all(question, ["chatty_kg"]).answers
    assert asked.f1 == 0 and asked.lost_at in {
        spec.name for spec in systems.load_system("chatty_kg").agents
    }


def test_the_terminal_measures_several(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_questions()
    prices = 'currency = "EUR"\n[[price]]\nmodel = "*"\ninput = 1\noutput = 1\n'
    Path("prices.toml").write_text(prices)
    assert bench("--systems", "chatty_kg,surveyor", "--prices", "prices.toml") == 0
    shown = capsys.readouterr().out.partition("side by side:")[2]
    assert "all, chatty_kg" in shown and "all, surveyor" in shown and "\nEUR " in shown
    folders = {path.name for path in Path("r").iterdir() if path.is_dir()}
    assert folders == {"chatty_kg", "surveyor"}
    with pytest.raises(SettingError, match="cat"):
        ask.parse_system_names("dog,cat")
