"""What records show of themselves, and that nothing in a graph or a reply can break out of it."""

import html
import re
from dataclasses import dataclass

import pytest
from rdflib import Literal, URIRef

import kgwb
from kgwb import render
from kgwb.flow import (
    QIR,
    Answer,
    Candidate,
    CandidateQuery,
    Classified,
    Context,
    Fact,
    Generated,
    Link,
    Linked,
    LinkedRelation,
    RankedPredicate,
    Rephrased,
    Retrieved,
    Selection,
    Turn,
    Value,
)
from kgwb.record import Attempt, CheckResult, Step
from kgwb.run import Run
from kgwb.workbench import Workbench

EX = "http://example.org/"
ARRIVAL = Candidate(URIRef(EX + "Arrival"), "Arrival", 1.0, ("Film",), "film of 2016")
DIRECTOR = RankedPredicate(URIRef(EX + "director"), "director", "out", 0.87)
FACT = Fact("Arrival", "directed by", "?x")
QUERY = CandidateQuery("SELECT DISTINCT ?x WHERE { ... }", (), ("director",), 0.87)
SUPPORT = (URIRef(EX + "Arrival"), URIRef(EX + "director"), URIRef(EX + "Villeneuve"))
ANSWER = Answer("list", (Value(URIRef(EX + "Villeneuve"), "Denis Villeneuve", (SUPPORT,)),))
HOSTILE = "<script>alert(\"1\")</script>' onclick='x"


@pytest.fixture(scope="module")
def run() -> Run:
    """A question about a film, answered by rules with trigrams for embeddings."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("KGWB_EMBEDDINGS", "lexical")
        return Workbench(kgwb.open_kg("films")).ask("Who directed Arrival?")


def step(key: str, output: object, *, parent: str = "", **more: object) -> Step:
    return Step(key, key.partition("[")[0], "", parent, {}, type(output), output, done=True, **more)  # type: ignore[arg-type]


# --- records in a line


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (Classified("dependent", "'he' needs a name"), "dependent: 'he' needs a name"),
        (Rephrased("When was Harry Potter written?", "When?"), "When was Harry Potter written?"),
        (Context(), "no earlier turn"),
        (Context((Turn("Who?", ("A", "B")),), cut=1), "1 earlier turn, 1 answer left out"),
        (QIR((FACT,), "?x"), "⟨Arrival, directed by, ?x⟩ asks for ?x"),
        (QIR((FACT,), kind="boolean"), "⟨Arrival, directed by, ?x⟩ asks for whether it is so"),
        (Retrieved("Arrival", (ARRIVAL,), "all words", found=9), "1 candidate of 9 found (all words)"),
        (Link("Arrival", ARRIVAL), f"Arrival → Arrival (Film) <{EX}Arrival>"),
        (Link("Arrival", None), "Arrival → no vertex"),
        (LinkedRelation(FACT, (DIRECTOR,)), "1 predicate, best: director"),
        (Linked((Link("Arrival", ARRIVAL),), ()), "1 of 1 entity and 0 of 0 relations linked"),
        (Generated((QUERY,), 40), "1 candidate query of 40"),
        (Selection((QUERY,), ("director",)), "1 query kept, relevant: director"),
        (ANSWER, "Denis Villeneuve"),
        (Answer("list", reason="not in this graph"), "not in this graph"),
    ],
)
def test_a_record_in_a_line(value: object, said: str) -> None:
    assert render.summary(value) == said


def test_a_record_of_another_system_is_told_by_its_fields() -> None:
    @dataclass
    class Vote:
        agent: str

    assert "agent: critic" in render.record_html(Vote("critic"))


def test_a_line_can_do_nothing_to_a_terminal() -> None:
    assert render.summary("red \x1b[31m\nand \u202ereversed") == "red �[31m and �reversed"


# --- tree


def test_the_tree_shows_agents_under_their_supervisors_and_the_triples_of_the_answer(run: Run) -> None:
    told = render.tree(run.steps, run.calls)
    assert "├─ qir: ⟨Arrival, " in told
    assert re.search(r"├─ understanding: .*\n│  └─ classifier: self-contained", told)
    assert "Denis Villeneuve: Arrival — director → Denis Villeneuve" in told
    assert re.search(r"→ director <https://kgwb.example/films/director>", told)


def test_the_tree_says_where_an_output_came_from_and_what_it_cost(run: Run) -> None:
    assert re.search(r"qir: .* \(live, 1 model call, \d\.\d\d s\)", render.tree(run.steps, run.calls))
    again = run.fork().go()
    again.replace("qir", run.output("qir")).go()
    told = render.tree(again.steps, again.calls)
    assert re.search(r"qir: .* \(by hand, ", told)
    assert re.search(r"execution: .* \(from the record, 1 query, ", told)


def test_the_tree_shows_failed_attempts_notes_and_errors() -> None:
    attempt = Attempt("", "well...", (CheckResult("well-formed JSON", "no JSON"),))
    failed = Step("qir", "qir", "", "", {}, QIR, attempts=[attempt], notes=["cut"], error="no valid reply")
    told = render.tree([failed])
    assert "qir: failed: no valid reply" in told
    assert "attempt 1 failed: well-formed JSON: no JSON" in told
    assert "note: cut" in told


def test_colours_come_only_when_asked_for(run: Run) -> None:
    assert "\x1b[" not in render.tree(run.steps, run.calls)
    assert "\x1b[1mqir\x1b[0m" in render.tree(run.steps, run.calls, color=True)


# --- HTML


def test_a_run_shows_question_answer_support_totals_prompt_reply_and_checks(run: Run) -> None:
    page = html.unescape(run._repr_html_())
    for part in (
        "Who directed Arrival?",
        "Denis Villeneuve",
        " — ",
        "model call",
        "prompt as sent",
        "[system]"[1:-1],
    ):
        assert part in page
    assert run["qir"].attempts[0].reply in page
    assert "✓ passed: well-formed JSON" in page
    assert "rules is a baseline" in page


def test_a_run_nests_each_step_once(run: Run) -> None:
    page = render.run_html(run)
    for made in run.steps:
        assert page.count(f"<b>{html.escape(made.key)}</b>") == 1
    assert page.count("<details") == page.count("</details>")


def test_candidates_stand_in_a_table_with_the_chosen_one_marked() -> None:
    shown = render.record_html(Link("Arrival", ARRIVAL, (ARRIVAL,), "the only one"))
    for cell in ("chosen", "Film", "film of 2016", "1.00", "the only one"):
        assert f"{cell}<" in shown


def test_similarities_are_bars_with_their_number() -> None:
    shown = render.record_html(LinkedRelation(FACT, (DIRECTOR,)))
    assert 'style="width: 5.22em"' in shown
    assert "0.870" in shown
    assert "→ out" in shown


def test_long_tables_say_how_much_they_leave_out() -> None:
    candidates = tuple(Candidate(URIRef(f"{EX}{number}"), "x") for number in range(100))
    assert "and 40 more" in render.record_html(Retrieved("x", candidates))


def test_colours_follow_the_theme_and_nothing_is_fetched_or_run(run: Run) -> None:
    page = render.run_html(run)
    assert "var(--jp-" in page
    assert not re.search(r"<script|<link|<img|<iframe|@import|url\(|\son\w+=", page)


@pytest.mark.parametrize(
    "value",
    [
        HOSTILE,
        Classified("dependent", HOSTILE),
        QIR((Fact(HOSTILE, HOSTILE, HOSTILE),), HOSTILE),
        Retrieved(
            HOSTILE, (Candidate(URIRef(EX + HOSTILE), HOSTILE, 1, (HOSTILE,), HOSTILE),), HOSTILE, HOSTILE
        ),
        Link(HOSTILE, Candidate(URIRef(EX), HOSTILE), (), HOSTILE),
        LinkedRelation(FACT, (RankedPredicate(URIRef(EX + HOSTILE), HOSTILE, "in", 0.5),)),
        Generated((CandidateQuery(HOSTILE, (), (HOSTILE,), 0.5),), 1),
        Answer("list", (Value(Literal(HOSTILE, lang="en"), HOSTILE),), (HOSTILE,), HOSTILE),
        Answer("list", (), (), "", HOSTILE),
    ],
)
def test_hostile_text_is_shown_as_text(value: object) -> None:
    hostile = step("qir", value, notes=[HOSTILE], error=HOSTILE, attempts=[Attempt("", HOSTILE, ())])
    for shown in (render.record_html(value), render.step_html(hostile)):
        assert "<script" not in shown
        assert "' onclick" not in shown
        assert html.escape("<script>") in shown


def test_only_web_addresses_become_links() -> None:
    shown = render.record_html(Link("x", Candidate(URIRef("javascript:alert(1)"), "x"), ()))
    assert "href" not in shown
    assert f'href="{EX}Arrival"' in render.record_html(Retrieved("x", (ARRIVAL,)))


def test_an_answer_without_values_gives_its_reason() -> None:
    shown = render.answer_html(Answer("list", reason="not in this graph: no vertex for Atlantis"))
    assert "No answer" in shown
    assert "no vertex for Atlantis" in shown


# --- differences


def test_differences_show_both_outputs_of_steps_that_differ(run: Run) -> None:
    other = run.fork(question="Who directed Dune: Part Two?").go()
    told = render.difference_text(run.diff(other))
    assert re.match(r"\d+ of \d+ steps differ", told)
    assert re.search(
        r"qir: changed in inputs, output.*\n  first:  ⟨Arrival, .*\n  second: ⟨Dune: Part Two, ", told
    )
    assert "entity_linking[Arrival]: only in first" in told
    page = render.difference_html(run.diff(other))
    assert "<b>qir</b>: changed in inputs, output" in page


def test_equal_runs_do_not_differ(run: Run) -> None:
    assert render.difference_text(run.diff(run.fork().go())) == "no step differs"


def test_an_answer_knows_what_its_support_is_called() -> None:
    names = ((URIRef("http://e/Philosophers_Stone"), "Philosopher's Stone"),)
    triple = (URIRef("http://e/Philosophers_Stone"), URIRef("http://e/year"), Literal("2001"))
    answer = Answer("list", (Value(Literal("2001"), "2001", (triple,)),), names=names)
    assert "2001: Philosopher's Stone — year → 2001" in render.words.lines(answer, {})
    assert "Philosopher&#x27;s Stone" in render.answer_html(answer)
