"""What records show of themselves, and that nothing in a graph or a reply can break out of it."""

import html
import re
import time
from dataclasses import dataclass

import pytest
from rdflib import Literal, URIRef

import kgwb
from kgwb import render
from kgwb.errors import CONTROLS
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
from kgwb.render.records import step_record
from kgwb.render.sparql import laid_out, sparql
from kgwb.run import Run
from kgwb.workbench import Workbench

EX = "http://example.org/"
ARRIVAL = Candidate(URIRef(EX + "Arrival"), "Arrival", 1.0, ("Film",), "film of 2016")
DIRECTOR = RankedPredicate(URIRef(EX + "director"), "director", "out", 0.87)
FACT = Fact("Arrival", "directed by", "?x")
QUERY = CandidateQuery("SELECT DISTINCT ?x WHERE { ... }", (), ("director",), 0.87)
SUPPORT = (URIRef(EX + "Arrival"), URIRef(EX + "director"), URIRef(EX + "Villeneuve"))
ANSWER = Answer("list", (Value(URIRef(EX + "Villeneuve"), "Denis Villeneuve", (SUPPORT,)),))
MEGA = 1_000_000
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
        Rephrased(HOSTILE, "x"),
        Selection((CandidateQuery("x", ((HOSTILE, f"<{HOSTILE}>", HOSTILE),), (HOSTILE,), 0.5),), ()),
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


# --- the forms in which a person reads a result


def test_the_words_that_decided_are_marked_in_the_question() -> None:
    made = Classified("dependent", "nothing before 'he' says what it stands for")
    asked = Step("c", "c", "", "", {"question": "Where did he meet the other?"}, Classified, made, done=True)
    assert "Where did <mark>he</mark> meet the other?" in step_record(asked, {})
    assert "<mark" not in step_record(step("c", Classified("self-contained", "a name stands in it")), {})


def test_what_a_rephrasing_changed_is_marked() -> None:
    shown = render.record_html(Rephrased("When was Denis Villeneuve born?", "When was he born?"))
    assert "When was <del>he</del> born?" in shown
    assert "When was <ins>Denis Villeneuve</ins> born?" in shown
    assert "nothing was changed" in render.record_html(Rephrased("Who?", "Who?"))


def test_the_context_of_a_rephrasing_is_shown() -> None:
    context = Context((Turn("Who directed Arrival?", ("Denis Villeneuve",)),))
    made = Step("r", "r", "", "", {"context": context}, Rephrased, Rephrased("B?", "A?"), done=True)
    assert "Who directed Arrival?" in step_record(made, {})


def test_a_qir_is_a_table_and_a_picture_that_tell_entities_from_unknowns() -> None:
    shown = render.record_html(QIR((FACT, Fact("?x", "born in", "?place")), "?place"))
    assert shown.count("<ellipse") == 2
    assert shown.count("<rect") == 2  # the ground, and one entity
    assert shown.count("<polygon") == 2
    assert shown.count("asked for</text>") == 1
    assert "unknown, asked for" in shown


@pytest.mark.parametrize(
    "facts",
    [
        (Fact("A", "like", "A"),),
        (Fact("", "", ""),),
        (Fact("A", "r", "?x"), Fact("A", "s", "?x"), Fact("?x", "t", "A")),
        (Fact("A", "r", "?x"), Fact("B", "r", "?y")),
        tuple(Fact(f"?{n}", "r" * 90, f"?{n + 1}") for n in range(40)),
    ],
)
def test_any_qir_can_be_drawn(facts: tuple[Fact, ...]) -> None:
    shown = render.record_html(QIR(facts))
    assert "<svg" in shown
    assert "nan" not in shown
    assert max(map(float, re.findall(r' (?:cx|x|x1|x2)="([\d.]+)"', shown))) <= float(
        re.findall(r'viewBox="0 0 (\d+)', shown)[0]
    )


def test_degrees_stand_in_the_table_of_candidates_once_they_are_known() -> None:
    found = step("r", Retrieved("Arrival", (ARRIVAL,), query='"arrival"'))
    assert "degree" not in step_record(found, {})
    assert "<td>1,000+</td>" in step_record(found, {}, {ARRIVAL.iri: 1000})
    assert "search as sent: </span>&quot;arrival&quot;" in step_record(found, {})


def test_predicates_read_as_sentences_in_both_directions() -> None:
    incoming = RankedPredicate(URIRef(EX + "made"), "made", "in", 0.5)
    shown = render.record_html(LinkedRelation(FACT, (DIRECTOR, incoming)))
    assert "Arrival — <b>director</b> → ?x" in shown
    assert "?x — <b>made</b> → Arrival" in shown


def test_the_cuts_of_queries_are_counted() -> None:
    generated = Generated((QUERY, QUERY), 120)
    assert "120 combinations, 2 kept (query_num)" in render.record_html(generated)
    inputs = {"generated": generated}
    chosen = Step("s", "s", "", "", inputs, Selection, Selection((QUERY,), ("director",)), done=True)
    assert "120 combinations, 2 kept (query_num), 1 selected" in step_record(chosen, {})


def test_sparql_is_highlighted_and_laid_out() -> None:
    shown = sparql(
        'SELECT ?x WHERE { ?x <http://e/p> "a . b" . FILTER(?x != 1.5) }', {"http://e/p": "made by"}
    )
    assert '<span class="kgwb-keyword">SELECT</span> <span class="kgwb-variable">?x</span>' in shown
    assert 'title="made by"' in shown
    told = html.unescape(re.sub("<[^>]*>", "", shown.replace("<pre", "<").replace("&lt;", "‹")))
    assert told.count("\n") == 3
    assert "a . b" in told
    assert laid_out("ASK {\n ?a ?b ?c}") == "ASK {\n ?a ?b ?c}"


@pytest.mark.parametrize("text", ["", "}}}} {", '"unended', HOSTILE, "SELECT 文 § <a", "ASK{?a?b?c.}"])
def test_any_text_can_be_highlighted(text: str) -> None:
    shown = html.unescape(re.sub(r"</?(?:span|pre)\b[^>]*>", "", sparql(text)))
    assert "".join(shown.split()) == "".join(text.split())


def test_vertices_of_one_name_are_told_apart() -> None:
    films = [URIRef(EX + "Dune_1984"), URIRef(EX + "Dune_2021")]
    answer = Answer("list", tuple(Value(film, "Dune") for film in films))
    assert "Dune (Dune_1984)" in render.answer_html(answer)
    elsewhere = Answer("list", (Value(films[0], "Dune"), Value(URIRef("http://b/Dune_1984"), "Dune")))
    assert "Dune (http://b/Dune_1984)" in render.answer_html(elsewhere)
    assert "Villeneuve (" not in render.answer_html(ANSWER)


def test_huge_literals_are_cut_and_their_length_is_said() -> None:
    text = Literal("x" * 12_345)
    answer = Answer("list", (Value(text, str(text), ((SUPPORT[0], SUPPORT[1], text),)),), text="many x")
    shown = render.record_html(answer)
    assert "x" * 301 not in shown
    assert shown.count("(12,345 letters)") == 3


def many(number: int) -> Answer:
    """Values that share a name, each with its triple."""
    people = [URIRef(f"{EX}p{n}") for n in range(number)]
    return Answer("list", tuple(Value(one, "Person", ((SUPPORT[0], SUPPORT[1], one),)) for one in people))


def test_ten_thousand_values_cost_no_more_than_those_that_are_shown() -> None:
    answer = many(10_000)
    begun = time.perf_counter()
    shown, said = render.answer_html(answer), render.words.lines(answer, {})
    assert time.perf_counter() - begun < 0.3
    assert "and 9,940 more" in shown
    assert "Person (p59)" in shown
    assert "Person (p60)" not in shown
    assert said[0] == "Person, Person, Person, Person, Person, and 9,995 more"


def test_names_are_asked_for_what_is_shown_only(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[URIRef] = []
    monkeypatch.setattr(run, "answer", many(10_000))
    monkeypatch.setattr(run.graph, "names", lambda iris: asked.extend(iris) or {}, raising=False)
    run._repr_html_()
    assert len(asked) == 62


def test_a_label_of_a_megabyte_is_cut_wherever_it_is_shown() -> None:
    vertex, text = URIRef(EX + "x" * MEGA), "x" * MEGA
    candidate = Candidate(vertex, text, 1.0, (text,), text, (text,))
    values: list[object] = [
        Answer("list", (Value(vertex, text, ((vertex, vertex, Literal(text)),)),), names=((vertex, text),)),
        Answer("list", (Value(vertex, text),), text=text),
        Link("x", candidate, (candidate,)),
        Retrieved("x", (candidate,)),
        LinkedRelation(FACT, (RankedPredicate(vertex, text, "out", 0.5),)),
        Selection((CandidateQuery("x", (("?x", f"<{vertex}>", "?y"),), (text,), 0.5),), ()),
        Context((Turn("Who?", (text,)),)),
    ]
    for value in values:
        shown = render.record_html(value, {str(vertex): text}) + "\n".join(render.words.lines(value, {}))
        assert len(shown) < 20_000
        assert re.search(r"\(1,000,0\d\d letters\)", shown)


def test_no_markup_carries_what_acts_unseen() -> None:
    text = "a\x00b\x1b[31m\u202ec\u2066d\r\ne\tf"
    failed = step("qir", Classified("dependent", text), notes=[text], error=text)
    failed.attempts = [Attempt("", text, (CheckResult(text, text),))]
    shown = render.step_html(failed)
    assert CONTROLS.search(shown) is None
    assert "a�b�[31m�c�d\ne\tf" in shown


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
