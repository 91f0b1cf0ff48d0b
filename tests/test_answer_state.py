"""The state of an answer is one, wherever it is shown; only what gold says is right is green."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
import rdflib
from page import Page, settle
from page import press as press_button
from rdflib import XSD, Graph, Literal
from small import EX, FILMS, films, iri
from surveying import answered, draft

import kgwb
from kgwb.bench import Benchmark, BenchSetup, Report, Results
from kgwb.bench.questions import BenchQuestion
from kgwb.bench.results import get_verdict, known_right_answer
from kgwb.build import Dialogue, Question, System, agent
from kgwb.cli import main
from kgwb.errors import KgwbError
from kgwb.run import Run
from kgwb.run.answers import CANNOT_EXPRESS, NO_SUPPORT, NOT_IN_GRAPH, NOT_LOOKED_FOR, Answer, Value
from kgwb.show.run import render_run
from kgwb.show.run_state import ANSWER_STATE_ICONS, RunState, answer_view, judge_answer
from kgwb.show.static_form import load_style
from kgwb.terms import Term
from kgwb.ui.cell import AgentCell
from kgwb.ui.chat import Chat
from kgwb.ui.debugger import Debugger
from kgwb.ui.session import session_of

BORN = """
@prefix : <http://example.org/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:ella rdfs:label "Ella" ; :birthDate :chester .
:chester rdfs:label "Chester" .
"""
WHEN = "When was Ella born?"
WHO = "Who directed Arrival?"
DENIS = Answer("list", (Value(iri("denis"), "Denis Villeneuve"),))
NOTHING = Answer("list", reason=f"{NOT_IN_GRAPH}: no vertex")
FAILED = Answer("list", reason="no query could be run: it does not parse")
BEYOND = Answer("list", reason=f"{CANNOT_EXPRESS}: a superlative")


DIRECTED_BY = "SELECT ?film WHERE { ?film <http://example.org/director> ?person }"


@agent
def count_films(run: Run) -> int:
    """How many films the query finds."""
    return len(run.kg.select(DIRECTED_BY).rows)


def answer_number(question: Question, dialogue: Dialogue, run: Run) -> Answer:
    number = count_films(run)
    return Answer("count", (Value(Literal(number), str(number)),), (DIRECTED_BY,))


COUNTING = System("counting", answer_number, [count_films])


@pytest.mark.parametrize(("row_limit", "state"), [(10, "given"), (1, "in doubt")])
def test_a_number_of_rows_that_were_cut_is_in_doubt_also_without_muted_triples(
    tmp_path: Path, row_limit: int, state: str
) -> None:
    kg = kgwb.open_kg(Graph().parse(data=FILMS), row_limit=row_limit)
    muted = kg.without((iri("arrival"), iri("director"), iri("denis")))
    run = Run(COUNTING, "How many films?", kg=muted, models=None).go()
    assert run.answer is not None
    assert judge_answer(run.question, run.answer).name == state
    loaded = kgwb.load_run(run.save(tmp_path / "run.jsonl"), system=COUNTING)
    assert loaded.answer == run.answer


def alone(value: Literal) -> Answer:
    return Answer("list", (Value(value, str(value)),))


@pytest.mark.parametrize(
    ("question", "answer", "gold", "name", "label"),
    [
        (WHO, DENIS, None, "given", "Answered"),
        (WHO, DENIS, [str(iri("denis"))], "right", "Right"),
        (WHO, DENIS, [str(iri("lynch"))], "wrong", "Wrong"),
        (WHEN, DENIS, None, "in doubt", "In doubt"),
        (WHEN, DENIS, [str(iri("denis"))], "right", "Right"),
        (WHEN, DENIS, [], "wrong", "Wrong"),
        (WHO, NOTHING, None, "unanswered", "Not in this graph"),
        (WHO, NOTHING, [str(iri("denis"))], "unanswered", "Not in this graph"),
        (WHO, NOTHING, [], "right", "Right"),
        (WHO, BEYOND, None, "gave up", "Not answered"),
        (WHO, FAILED, None, "gave up", "Not answered"),
        ("Where was he born?", alone(Literal("1834-01-01")), None, "in doubt", "In doubt"),
    ],
)
def test_the_state_of_an_answer(
    question: str, answer: Answer, gold: list[str] | None, name: str, label: str
) -> None:
    judged = judge_answer(question, answer, known_right_answer(gold, gold or ()))
    assert (judged.name, judged.label) == (name, label)
    assert bool(judged.doubt) == (name == "in doubt")


@pytest.mark.parametrize(
    ("question", "term", "doubted"),
    [
        ("How many inhabitants has it?", Literal(1834), False),
        ("How many inhabitants has it?", Literal("1834"), False),
        ("How many inhabitants has it?", Literal("1.2E6"), False),
        ("How many inhabitants has it?", Literal("1 200"), False),
        ("For how many years?", Literal("P5Y", datatype=XSD.duration), False),
        ("How many?", Literal("1834", datatype=XSD.gYear), True),
        ("When does it leave?", Literal("10:00:00", datatype=XSD.time), False),
        ("Who was it?", Literal("10:00:00", datatype=XSD.time), True),
        ("Where is it?", Literal("48.2, 16.3"), False),
        ("What is the birth date of the man who directed it?", Literal("1967-10-03"), False),
        ("In which year was the city where he was born founded?", Literal("0850-01-01"), False),
        ("How long is the film where he stars?", Literal(116), False),
        ("Count the films that the man who made it made.", Literal(4), False),
        ("When he was king, who was bishop?", iri("bishop"), False),
        ("When he was king, who was bishop?", Literal(True), True),
        ("When he was king, what did he say?", Literal(True), False),
        ("In the film, who plays him?", Literal(7), True),
        ("Please tell me where he was born", Literal(7), True),
    ],
)
def test_a_doubt_about_the_type_of_a_value_is_only_raised_where_it_is_asked_for(
    question: str, term: Term, doubted: bool
) -> None:
    answer = Answer("list", (Value(term, str(term)),))
    assert (judge_answer(question, answer).name == "in doubt") == doubted


def test_an_answer_from_own_knowledge_is_marked_unless_gold_is_known() -> None:
    answer = Answer("list", DENIS.values, ungrounded=True)
    assert judge_answer(WHO, answer).name == "own knowledge"
    right = known_right_answer([str(iri("denis"))], ["Denis Villeneuve"])
    assert judge_answer(WHO, answer, right).name == "right"


def test_the_right_answer_differs_from_an_answer_of_the_same_name() -> None:
    dune, other = iri("dune"), iri("lynchs_dune")
    right = known_right_answer([str(dune)], ["Dune"])
    assert right is not None
    answer = Answer("list", (Value(dune, "Dune"),))
    assert right.text_beside(None) == right.text_beside(answer) == "Dune"
    wrong = Answer("list", (Value(other, "Dune"),))
    assert right.text_beside(wrong) == f"Dune ({dune})"
    both = known_right_answer([str(dune), str(other)], ["Dune", "Dune"])
    assert both is not None
    assert both.text_beside(None) == f"Dune ({dune}), Dune ({other})"


def test_only_what_is_right_is_green_and_what_is_given_has_no_colour() -> None:
    green = [name for name, icon in ANSWER_STATE_ICONS.items() if icon == "ok"]
    assert green == ["right"]
    colours = dict(re.findall(r"\.kg \.(\w+)\{--c:var\(--(\w+)\)\}", load_style()))
    assert colours["given"] == "ink"
    assert [name for name, colour in colours.items() if colour == "ok"] == ["ok"]


def born() -> Run:
    return kgwb.Workbench(films(BORN), "rules").ask(WHEN)


def states_in(html: str) -> set[str]:
    """Return the states of answers that a page shows, as its CSS classes name them."""
    states = set()
    for element in Page(html).elements:
        classes = element.attributes.get("class", "").split()
        if {"answer", "a"} & set(classes):
            states.update(set(classes) & {"ok", "bad", "none", "doubt", "given"})
    return states


def test_a_doubt_is_the_same_in_chat_debugger_cell_page_and_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    doubt = "Chester is a thing where a time was asked"
    run = born()
    bench = kgwb.Workbench(films(BORN), "rules")
    chat = Chat(bench)
    press_button(chat, "Ask", question=WHEN)
    settle(chat.conversation)
    pages = [chat.view(), Debugger(session_of(run)).view(), render_run(run)]
    for html in pages:
        assert states_in(html) == {"doubt"}
        assert "In doubt" in Page(html).text
        assert Page(html).text.count(doubt) == 1
    answering = [step.key for step in run.steps if step.output == run.answer]
    cell = AgentCell(session_of(run), answering[-1]).view()
    assert "In doubt" in Page(cell).text
    file = tmp_path / "born.ttl"
    file.write_text(BORN)
    assert main(["ask", "--kg", str(file), WHEN]) == 0
    assert f"In doubt: {doubt}\n" in capsys.readouterr().out
    assert main(["ask", "--kg", str(file), "--json", WHEN]) == 0
    data = json.loads(capsys.readouterr().out)["answer"]
    assert (data["state"], data["doubt"]) == ("in doubt", doubt)


@pytest.mark.parametrize(
    ("message", "headline"),
    [
        ("the graph is empty", "The graph is empty"),
        ("can't read films.ttl", "Can't read films.ttl"),
        ("no, that is no graph", "No, that is no graph"),
        ("http://e/ cannot be reached", "http://e/ cannot be reached"),
        ("films.ttl is empty", "films.ttl is empty"),
        ("small/qir: no valid reply", "qir: no valid reply"),
    ],
)
def test_a_failure_is_a_headline_in_which_names_are_as_they_are(
    message: str, headline: str
) -> None:
    def fail(question: Question, dialogue: Dialogue, run: Run) -> Answer:
        raise KgwbError(message)

    run = Run(System("small", fail, [count_films]), "Who?", kg=films(), models={})
    with pytest.raises(KgwbError):
        run.go()
    assert answer_view(RunState.of(run)).headline == headline


@pytest.mark.parametrize(
    ("ungrounded", "gold"),
    [(False, None), (False, ["denis"]), (False, ["lynch"]), (True, None)],
)
def test_a_doubt_is_said_once_on_a_page(ungrounded: bool, gold: list[str] | None) -> None:
    def answer(question: Question, dialogue: Dialogue, run: Run) -> Answer:
        return replace(DENIS, doubt="two of this name", ungrounded=ungrounded)

    run = Run(System("small", answer, [count_films]), WHO, kg=films(), models={}).go()
    if gold is not None:
        run.right_answer = known_right_answer([str(iri(name)) for name in gold], [])
    debugger = Debugger(session_of(run))
    debugger.selected_view = "answer"
    for html in (render_run(run), debugger.view()):
        assert Page(html).text.count("two of this name") == 1


def measure(folder: Path, **gold: str) -> Report:
    """Measure two questions with the model rules, and save all runs. Return the report."""
    questions = []
    for name, answer in gold.items():
        question = {"lost": "Who directed Arrival?", "won": "Who directed Sicario?"}[name]
        questions.append(BenchQuestion(id=name, question=question, answers=(str(iri(answer)),)))
    bench = kgwb.Workbench(films(), "rules")
    setup = BenchSetup.from_workbench(bench)
    results = Results(folder, setup.to_config(questions))
    Benchmark(setup, results, save_runs=True).run(questions)
    return Report(folder)


def test_gold_reaches_the_debugger_the_page_and_a_fork_of_a_benchmark(tmp_path: Path) -> None:
    report = measure(tmp_path / "out", lost="lynch", won="denis")
    expected = {"lost": ("bad", "Wrong", "wrong"), "won": ("ok", "Right", "right")}
    report.save(tmp_path / "report.html")
    for id_, (icon, label, verdict) in expected.items():
        row = report.results[0].rows[id_]
        assert get_verdict(row) == verdict
        opened = kgwb.debug(report, id_, kg=films(), model="rules")
        page = (tmp_path / "out" / "runs" / f"{id_}.html").read_text()
        fork = Debugger(session_of(opened.run.fork().go()))
        for html in (opened.view(), page, fork.view()):
            assert states_in(html) == {icon}
            assert label in Page(html).text
    opened = kgwb.debug(report, "lost", kg=films(), model="rules")
    assert '<b class="right">' in opened.view()
    run = opened.run
    answering = [step.key for step in run.steps if step.output == run.answer]
    mended = run.fork()
    mended.override(answering[-1], Answer("list", (Value(iri("lynch"), "David Lynch"),)))
    assert states_in(render_run(mended.go())) == {"ok"}
    assert run.fork(question="Who directed Dune?").right_answer is None


def test_a_recording_knows_what_is_right() -> None:
    run = kgwb.recording("films/chatty_kg/1")
    assert run.right_answer is not None
    assert run.answer is not None
    assert judge_answer(run.question, run.answer, run.right_answer).name in ("right", "wrong")


MANY = FILMS + "".join(f":more{n} a :Film ; :director :denis .\n" for n in range(70))
DIRECTED_BY_HIM = f"SELECT ?f {{ ?f <{EX}director> <{EX}denis> }}"
NUMBER_BY_HIM = f"SELECT (COUNT(?f) AS ?n) {{ ?f <{EX}director> <{EX}denis> }}"


@pytest.mark.parametrize(
    ("sparql", "kind", "row_limit", "is_cut", "support"),
    [
        (DIRECTED_BY_HIM, "list", 20, True, "at least 20 triples"),
        (DIRECTED_BY_HIM, "list", 10_000, False, "at least 60 triples"),
        (NUMBER_BY_HIM, "count", 10_000, False, "at least 60 triples"),
        (f"SELECT ?f {{ ?f <{EX}director> <{EX}lynch> }}", "list", 20, False, "on 1 triple"),
    ],
)
def test_an_answer_says_what_was_cut_and_that_its_support_may_be_more(
    sparql: str, kind: str, row_limit: int, is_cut: bool, support: str
) -> None:
    kg = kgwb.open_kg(rdflib.Graph().parse(data=MANY), row_limit=row_limit)
    run, _ = answered(draft(sparql, kind), kg=kg)
    details = answer_view(RunState.of(run)).details
    assert ("more may be missing" in details) == is_cut
    assert support in details


def test_of_values_beyond_those_that_are_looked_at_no_support_is_denied() -> None:
    kg = kgwb.open_kg(rdflib.Graph().parse(data=MANY))
    run, _ = answered(draft(DIRECTED_BY_HIM), kg=kg)
    assert run.answer is not None
    lines = run.answer.summary(limit=None).splitlines()
    assert [line for line in lines if NO_SUPPORT in line] == []
    assert len([line for line in lines if NOT_LOOKED_FOR in line]) == 13


def test_a_query_that_could_not_be_run_says_nothing_of_the_graph() -> None:
    run, _ = answered(draft("SELECT ?f {"))
    assert run.answer is not None and run.answer.reason
    view = answer_view(RunState.of(run))
    assert "graph" not in view.headline + view.label
    assert "The graph holds no answer" not in render_run(run)
    empty, _ = answered(draft(f"SELECT ?f {{ ?f <{EX}director> <{EX}ted> }}"))
    assert "graph" in answer_view(RunState.of(empty)).headline
    assert "The graph holds no answer" in render_run(empty)


def test_a_long_reason_leaves_the_cost_of_the_run_whole() -> None:
    question = f"Who directed Arrival {'x' * 4_000}?"
    workbench = kgwb.Workbench(kgwb.open_kg("films"), "rules")
    run = workbench.ask(question)
    cost = answer_view(RunState.of(run)).cost
    assert "queries" in cost
    for shown in (render_run(run), workbench.chat().view()):
        assert f"letters) · {cost}" in shown
