"""Records, steps, runs and surveys as text and as HTML, in which hostile text stays text."""

import base64
import html
import re
import time
from dataclasses import dataclass, replace
from xml.etree import ElementTree

import pytest
import rdflib
from hostile.runs import EACH, hostile_run
from page import record_html
from rdflib import Literal, URIRef
from rdflib.plugins.sparql import prepareQuery
from small import DIRECTED, HOMONYMS, chatty, qir, vertex

import kgwb
from kgwb.kg.queries import CandidateQuery
from kgwb.kg.survey import survey_graph
from kgwb.llm import Scripted
from kgwb.records import (
    MAX_LINE_CHARS,
    MAX_REPR_CHARS,
    Explanation,
    Record,
    decision_of,
    frozen,
    one_line,
    summarize,
)
from kgwb.run import Run
from kgwb.run.answers import (
    NO_SUPPORT,
    NOT_IN_GRAPH,
    Answer,
    Candidate,
    Context,
    Link,
    RetrievedCandidates,
    Turn,
    Value,
)
from kgwb.run.steps import Attempt, CheckResult, Step, format_tree, step_costs
from kgwb.run.systems import load_system
from kgwb.show.comparison import to_html
from kgwb.show.html import SELECTOR_COMMA
from kgwb.show.records import render
from kgwb.show.run import render_inputs, render_run_page, render_step_page
from kgwb.show.run_state import RunState, answer_view, describe_type_mismatch
from kgwb.show.static_form import load_style
from kgwb.show.terms import RenderContext, curie_text, lay_out, readable_query, render_query
from kgwb.show.timeline import render_timeline, render_waterfall
from kgwb.systems.chatty_kg.records import (
    QIR,
    Classification,
    Fact,
    GeneratedQueries,
    LinkedRelation,
    LinkingResult,
    QuerySelection,
    RankedPredicate,
    RephrasedQuestion,
)
from kgwb.terms import Triple
from kgwb.text import CONTROL_CHARACTERS, format_seconds
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
ACTING = "a\x00b\x1b[31m\u202ec\u2066d\r\ne\tf"


@pytest.fixture(scope="module")
def run() -> Run:
    """A question about a film, answered by rules with trigrams for embeddings."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("KGWB_EMBEDDINGS", "lexical")
        return Workbench(kgwb.open_kg("films")).ask("Who directed Arrival?")


def output_html(made: Step) -> str:
    """Return the output of a step of Chatty-KG as HTML, rendered with the step's inputs."""
    inputs = tuple(made.inputs.values())
    views = load_system("chatty_kg").views
    return render(made.output, RenderContext(inputs=inputs, views=views))


def marked(markup: str, elements: str = "mark|del|ins") -> list[tuple[str, str]]:
    """Return the marked texts, each after the element that marks it."""
    return re.findall(rf"<({elements})\b[^>]*>(.*?)</", markup)


def plain(markup: str) -> str:
    """Return the text of HTML, its words with single blanks between them."""
    text = html.unescape(
        re.sub("<[^>]+>", " ", re.sub("<style>.*?</style>", "", markup, flags=re.S))
    )
    return " ".join(text.split())


def step(key: str, output: object, *, parent: str = "", **more: object) -> Step:
    return Step(key, key.partition("[")[0], "", parent, {}, type(output), output, done=True, **more)  # type: ignore[arg-type]


# Decisions


def test_decisions_do_not_differ_by_reasons_and_scores() -> None:
    scored = Link("A", replace(ARRIVAL, score=0.1), (ARRIVAL,), "why")
    assert decision_of(Link("A", ARRIVAL)) == decision_of(scored)
    assert decision_of(Link("A", ARRIVAL)) != decision_of(Link("A", None))


def test_another_wording_and_a_renamed_unknown_are_not_the_first_different_decision() -> None:
    first = chatty("Who directed Dune?", Scripted(HOMONYMS)).go()
    renamed = {**HOMONYMS, "chatty_kg/qir": qir("Dune | directed by | ?who")}
    differences = first.diff(first.fork(models=Scripted(renamed, name="b")).go())
    assert differences.first_difference is None
    assert {pair.status for pair in differences} == {"same", "changed"}
    assert "No decision differs" in to_html(differences)
    other_vertex = {**renamed, "linking/vertex_selection": vertex(2, "Dune", "another reason")}
    differences = first.diff(first.fork(models=Scripted(other_vertex, name="c")).go())
    assert differences.first_difference is not None
    assert differences.first_difference.key == "vertex_selection[Dune]"
    assert to_html(differences).count('class="decide"') == 1


# Records in one line


@pytest.mark.parametrize(
    ("value", "line"),
    [
        (Context(), "no earlier turn"),
        (Context((Turn("Who?", ("A", "B")),), cut=1), "1 earlier turn, 1 answer left out"),
        (QIR((FACT,), "?x"), "1 triple, asks for ?x"),
        (QIR((FACT,), kind="boolean"), "1 triple, asks for yes or no"),
        (
            RetrievedCandidates("Arrival", (ARRIVAL,), "all words", found=9),
            "1 candidate of 9 found",
        ),
        (Link("Arrival", ARRIVAL), "Arrival → Arrival (Film)"),
        (Link("Arrival", None), "Arrival → no vertex"),
        (LinkedRelation(FACT, (DIRECTOR,)), "→ director, best of 1 predicate"),
        (
            LinkingResult((Link("Arrival", ARRIVAL),), ()),
            "1 of 1 entity and 0 of 0 relations linked",
        ),
        (GeneratedQueries((QUERY,), 40), "1 candidate query of 40"),
        (QuerySelection((QUERY,), ("director",)), "1 query kept, relevant: director"),
    ],
)
def test_a_record_in_one_line(value: object, line: str) -> None:
    assert one_line(value) == line


def test_a_record_without_a_view_shows_its_fields() -> None:
    @dataclass
    class Vote:
        agent: str

    assert "agent critic" in plain(record_html(Vote("critic")))


def test_a_reason_that_may_be_missing_has_a_line_only_where_there_is_one() -> None:
    @frozen
    class Vote(Record):
        agent: str
        reason: Explanation | None = None

    assert "because" not in Vote("critic").summary()
    assert Vote("critic", "it fits").summary().endswith("because: it fits")


def test_triples_of_a_record_without_a_view_are_chains_and_no_lists_of_iris() -> None:
    @dataclass
    class Walk:
        triples: tuple[Triple, ...]

    film, director = URIRef(EX + "Dune"), URIRef(EX + "director")
    text = plain(record_html(Walk(((film, director, URIRef(EX + "Denis")),))))
    assert text.endswith("triples Dune — director → Denis")


def test_a_line_has_no_characters_that_control_a_terminal() -> None:
    assert one_line("red \x1b[31m\n\u202ereversed") == "red �[31m �reversed"


# The tree of a run


def line_of(agent: str, tree: str) -> str:
    """Return the first line of an agent's step in a tree."""
    return next(line for line in tree.splitlines() if f"─ {agent}: " in line)


def test_the_tree_has_agents_below_their_supervisors_and_the_triples_of_the_answer(
    run: Run,
) -> None:
    tree = format_tree(run.steps, run.calls)
    assert "├─ qir: ⟨Arrival, " in tree
    assert re.search(r"├─ understanding: .*\n│  └─ classifier: self-contained", tree)
    assert "Arrival — director → Denis Villeneuve" in tree
    assert re.search(r"→ director <https://kgwb.example/films/director>", tree)
    assert "\x1b[" not in tree
    assert "\x1b[1mqir\x1b[0m" in format_tree(run.steps, run.calls, color=True)


def test_the_tree_has_the_origin_and_the_cost_of_each_output(run: Run) -> None:
    live = line_of("qir", format_tree(run.steps, run.calls))
    assert "(qir_agent, live, " in live
    assert f"{', '.join(step_costs(run['qir'], run.calls))})" in live
    assert step_costs(run["qir"], run.calls)[0] == "1 model call"
    again = run.fork().go()
    again.override("qir", run.output("qir")).go()
    tree = format_tree(again.steps, again.calls)
    assert "(qir_agent, by hand, " in line_of("qir", tree)
    assert re.search(r"record, 1 query, ", line_of("execution", tree))


def test_the_root_step_of_an_execution_can_be_shown() -> None:
    """It has no key; debuggers and verbose tracebacks show the variables of the engine."""
    assert repr(Step("", "", "", "", {}, None)).startswith("└─ :")


def test_the_tree_shows_failed_attempts_notes_and_errors() -> None:
    check = CheckResult("well-formed JSON", "no JSON")
    attempt = Attempt("", "well...", (check,))
    error = "no valid reply"
    failed = Step("qir", "qir", "", "", {}, QIR, attempts=[attempt], notes=["cut"], error=error)
    tree = format_tree([failed])
    assert f"failed: {error}" in tree
    assert f"{check.name}: {check.problem}" in tree
    assert "\n      note: cut" in tree
    empty = replace(failed, attempts=[Attempt("", "", (check,))])
    assert f"attempt 1 failed: {check.name}: {check.problem}\n" in format_tree([empty])
    assert "\n   │  note: cut" in format_tree([failed, replace(failed, key="below", parent="qir")])


# A run as HTML


def test_hostile_text_is_shown_as_text() -> None:
    """One text is in every place of a run and of a failed step; tests/hostile has a thousand."""
    text = HOSTILE + ACTING
    attempt = Attempt("", text, (CheckResult(text, text),))
    failed = step(
        "rephraser", RephrasedQuestion(text, "x"), notes=[text], error=text, attempts=[attempt]
    )
    for shown in (render_run_page(hostile_run([text] * EACH)), render_step_page(failed)):
        assert "<script" not in shown
        assert "' onclick" not in shown
        assert CONTROL_CHARACTERS.search(shown) is None
        assert html.escape("<script>alert") in shown
        assert "a�b�[31m�c�d\ne\tf" in shown


def test_a_run_shows_question_answer_support_totals_prompt_reply_and_checks(run: Run) -> None:
    markup = render_run_page(run)
    page = plain(markup)
    support = "stands on 1 triple"
    prompt = "the prompt as it was sent"
    for part in (run.question, "Denis Villeneuve", support, prompt, "rules"):
        assert part in page
    assert " ".join(run["qir"].attempts[0].reply.split()) in page
    assert "well-formed JSON" in page
    assert markup.count("<summary") == markup.count("</summary>") >= len(run.steps)


def test_an_answer_without_support_stands_on_no_number_of_triples(run: Run) -> None:
    no = Answer("boolean", (Value(Literal(False), "false"),))
    details = answer_view(RunState.of(run.fork().override("execution", no).go())).details
    assert NO_SUPPORT in details
    assert "stands on" not in details


def test_a_page_fetches_and_runs_nothing_and_sets_no_text_as_tex(run: Run) -> None:
    page = render_run_page(run)
    assert not re.search(r"<script|<link|<img|<iframe|@import|url\((?!\"data:)|\son\w+=", page)
    assert re.match('<section class="kg tex2jax_ignore mathjax_ignore"', page)
    assert len(page) < 80_000
    rules = re.search("<style>(.*?)</style>", page, re.S)
    assert rules and len(rules[1]) < len(load_style())
    assert "var(--jp-" in load_style()


def test_candidates_are_rows_and_the_chosen_one_is_marked() -> None:
    link = Link("Arrival", ARRIVAL, (ARRIVAL,), "the only one")
    markup = record_html(link)
    for part in ("taken", "Film", ARRIVAL.description, link.reason, "org:Arrival"):
        assert part in plain(markup)
    assert markup.count('<li class="taken"') == 1
    candidates = tuple(Candidate(URIRef(f"{EX}{number}"), "x") for number in range(100))
    assert "and 40 more" in record_html(RetrievedCandidates("x", candidates))
    found = step("r", RetrievedCandidates("Arrival", (ARRIVAL,), query='"arrival"'))
    assert "degree 1,000+" in render(
        found.output, RenderContext(graph_results={"degrees": {ARRIVAL.iri: 1000}})
    )
    assert "&quot;arrival&quot;" in record_html(found.output)
    incoming = RankedPredicate(URIRef(EX + "made"), "made", "in", 0.5)
    ranked = record_html(LinkedRelation(FACT, (DIRECTOR, incoming)))
    assert "width:87.0%" in ranked
    assert "1 director → 0.87 org:director" in plain(ranked)
    assert "2 made ← 0.50 org:made" in plain(ranked)


# Views of records


def test_the_words_that_decided_or_changed_are_marked() -> None:
    dependent = Classification("dependent", "nothing before 'he' says what it stands for")
    inputs = {"question": "Where did he meet the other?"}
    classified = Step("c", "c", "", "", inputs, Classification, dependent, done=True)
    assert marked(output_html(classified)) == [("mark", "he")]
    self_contained = Classification("self-contained", "a name stands in it")
    assert marked(output_html(step("c", self_contained))) == []
    changed = RephrasedQuestion("When was Denis Villeneuve born?", "When was he born?")
    assert marked(record_html(changed)) == [("del", "he"), ("ins", "Denis Villeneuve")]
    assert marked(record_html(RephrasedQuestion("Who?", "Who?"))) == []


def test_a_rephrased_question_is_shown_with_the_earlier_turns() -> None:
    turn = Turn("Who directed Arrival?", ("Denis Villeneuve",))
    rephrased = RephrasedQuestion("B?", "A?")
    inputs = {"context": Context((turn,))}
    made = Step("r", "r", "", "", inputs, RephrasedQuestion, rephrased, done=True)
    assert turn.question in output_html(made)


def test_a_qir_is_a_chain_of_pills() -> None:
    markup = record_html(QIR((FACT, Fact("?x", "born in", "?place")), "?place"))
    assert markup.count('class="chain"') == 1
    assert re.findall('class="(ent|unk[^"]*)"', markup) == ["ent", "unk", "unk asked"]
    assert re.findall("<th>(.*?)</th>", markup) == ["subject", "relation", "object"]


def test_omitted_queries_are_counted_and_a_kept_one_has_its_prefixes() -> None:
    generated = record_html(GeneratedQueries((QUERY, QUERY), 120))
    assert "120 combinations" in generated
    assert "2 kept" in generated
    query = replace(QUERY, sparql=f"SELECT ?x WHERE {{ <{EX}Arrival> <{EX}director> ?x . }}")
    selected = record_html(QuerySelection((query,), ("director",)))
    assert f"PREFIX org: <{EX}>" in html.unescape(re.sub("<[^>]+>", "", selected))


@pytest.mark.parametrize(
    ("query", "same"),
    [
        (
            f'SELECT ?x WHERE {{ ?x <{EX}p> "<{EX}q>" . }}',
            f'PREFIX org: <{EX}>\nSELECT ?x WHERE {{\n  ?x org:p "<{EX}q>" .\n}}',
        ),
        (f"ASK {{ <{EX}a/> <http://other.org/p> <{EX}b> }}", None),
        ("PREFIX a: <http://a/> ASK { a:b ?p <http://c/d> }", None),
    ],
)
def test_a_query_means_the_same_with_its_prefixes(query: str, same: str | None) -> None:
    made = readable_query(query, RenderContext())
    assert same in (None, made)
    assert str(prepareQuery(made).algebra) == str(prepareQuery(query).algebra)


def test_sparql_is_highlighted_and_laid_out() -> None:
    query = 'SELECT ?x WHERE { ?x <http://e/p> "a . b" . FILTER(?x != 1.5) }'
    markup = render_query(query, RenderContext())
    assert '<span class="kw">SELECT</span> <span class="var">?x</span>' in markup
    assert html.unescape(re.sub("</?(?:span|pre)[^>]*>", "", markup)).count("\n") == 4
    assert lay_out("ASK {\n ?a ?b ?c}") == "ASK {\n ?a ?b ?c}"


@pytest.mark.parametrize(
    "text", ["", "}}}} {", '"unended', HOSTILE, "SELECT 文 § <a", "ASK{?a?b?c.}"]
)
def test_any_text_can_be_highlighted(text: str) -> None:
    shown = html.unescape(
        re.sub(r"</?(?:span|pre)\b[^>]*>", "", render_query(text, RenderContext()))
    )
    assert "".join(shown.split()) == "".join(text.split())


def test_values_of_one_name_are_told_apart_by_their_iris() -> None:
    films = [URIRef(EX + "Dune_1984"), URIRef(EX + "Dune_2021")]
    answer = Answer("list", tuple(Value(film, "Dune") for film in films))
    assert "Dune (Dune_1984)" in record_html(answer)
    elsewhere = Value(URIRef("http://b/Dune_1984"), "Dune")
    answer = Answer("list", (Value(films[0], "Dune"), elsewhere))
    assert "Dune (http://b/Dune_1984)" in record_html(answer)
    assert "Villeneuve (" not in record_html(ANSWER)


def test_a_huge_literal_of_an_answer_is_cut() -> None:
    text = Literal("x" * 12_345)
    huge = Answer(
        "list", (Value(text, str(text), ((SUPPORT[0], SUPPORT[1], text),)),), text="many x"
    )
    assert "x" * 301 not in record_html(huge)
    assert "(12,345 letters)" in record_html(huge)


def test_a_long_answer_is_cut_between_its_values_and_says_how_many_there_are() -> None:
    texts = [f"{number} {'word ' * 120}end" for number in range(59)]
    answer = Answer("list", tuple(Value(Literal(text), text) for text in texts))
    first_line = answer.summary().splitlines()[0]
    assert len(first_line) <= MAX_LINE_CHARS + len("… (59 in all)")
    *whole, rest = first_line.split(", ")
    assert whole == texts[:3]
    assert "59" in rest
    one_value = Answer("list", (Value(Literal("x" * 3_000), "x" * 3_000),))
    assert "(3,000 letters)" in one_value.summary()


def test_an_answer_has_the_names_of_its_support() -> None:
    named = replace(ANSWER, names=((SUPPORT[0], "Arrival's sequel"),))
    assert "Arrival's sequel — director" in summarize(named)
    assert "Arrival&#x27;s sequel" in record_html(named)


def test_an_answer_without_values_has_its_reason() -> None:
    reason = "no vertex for Atlantis"
    shown = plain(record_html(Answer("list", reason=f"{NOT_IN_GRAPH}: {reason}")))
    assert reason in shown
    assert NOT_IN_GRAPH not in shown


def test_ten_thousand_values_cost_no_more_than_those_that_are_shown() -> None:
    people = [URIRef(f"{EX}p{n}") for n in range(10_000)]
    answer = Answer(
        "list", tuple(Value(one, "Person", ((SUPPORT[0], SUPPORT[1], one),)) for one in people)
    )
    begun = time.process_time()
    markup = record_html(answer)
    line, *_ = summarize(answer).splitlines()
    assert time.process_time() - begun < 5
    assert "and 9,940 more" in markup
    assert "Person (p59)" in markup
    assert "Person (p60)" not in markup
    names = [f"Person ({one})" for one in people[:5]]
    assert line.split(", ") == [*names, "and 9,995 more"]


def test_a_label_of_a_megabyte_is_cut_wherever_it_is_shown() -> None:
    vertex, text = URIRef(EX + "x" * MEGA), "x" * MEGA
    candidate = Candidate(vertex, text, 1.0, (text,), text, (text,))
    values: list[object] = [
        Answer(
            "list",
            (Value(vertex, text, ((vertex, vertex, Literal(text)),)),),
            names=((vertex, text),),
        ),
        Answer("list", (Value(vertex, text),), text=text),
        Link("x", candidate, (candidate,)),
        RetrievedCandidates("x", (candidate,)),
        LinkedRelation(FACT, (RankedPredicate(vertex, text, "out", 0.5),)),
        QuerySelection((CandidateQuery("x", (("?x", f"<{vertex}>", "?y"),), (text,), 0.5),), ()),
        Context((Turn("Who?", (text,)),)),
    ]
    for value in values:
        shown = record_html(value, {str(vertex): text}) + summarize(value)
        assert len(shown) < 20_000
        assert re.search(r"\(1,000,0\d\d letters\)", shown)


# Differences


def test_differences_show_both_outputs_of_steps_that_differ(run: Run) -> None:
    other = run.fork(question="Who directed Dune: Part Two?").go()
    differences = run.diff(other)
    pairs = {pair.key: pair for pair in differences}
    assert pairs["qir"].changed_parts[:2] == ("inputs", "output")
    assert pairs["entity_linking[Arrival]"].second is None
    summary = differences.summary()
    assert re.search(r"\n  first:  ⟨Arrival, (?:.*\n)+?  second: ⟨Dune: ", summary)
    assert to_html(differences).count('class="decide"') == 1
    assert {pair.status for pair in run.diff(run.fork().go())} == {"same"}


# Templates


def test_a_list_has_no_text_between_its_lines(run: Run) -> None:
    timeline = str(render_timeline(RunState.of(run), "qir"))
    inside = timeline[timeline.index("<ol") : timeline.index("</ol>")]
    assert re.findall(r"</li>(.*?)<li", inside, re.S) == [""] * (inside.count("<li") - 1)


# Where the time went


def test_the_time_of_a_step_is_shown_without_that_of_the_steps_it_supervises() -> None:
    run = chatty("Who directed Arrival?", Scripted(DIRECTED, delay_s=0.02)).go()
    markup = render_waterfall(run.steps, run.calls)
    rows = re.findall(r'padding-left:(\d)em" title="([^"]*)".*?class="num">(.*?)<', markup, re.S)
    depths = {key: depth for depth, key, _ in rows}
    figures = {key: figures for _, key, figures in rows}
    assert re.match(r"model \d+ ms", figures["qir"])
    assert "model" not in figures["understanding"]
    assert (depths["query_planning"], depths["matching"]) == ("0", "1")
    assert "(recorded)" in plain(render_waterfall(run.go().steps, run.calls))
    assert render_waterfall([], {}) == ""


@pytest.mark.parametrize(
    ("value", "text"), [(0.0, "0 ms"), (0.0004, "0.4 ms"), (0.038, "38 ms"), (1.2, "1.2 s")]
)
def test_times_have_a_suitable_unit(value: float, text: str) -> None:
    assert format_seconds(value) == text


def test_an_input_names_the_step_that_it_came_from(run: Run) -> None:
    markup = render_inputs(run["execution"], RenderContext(steps=tuple(run.steps)))
    origins = re.findall(r'<div class="lead"><b>(.*?)</b>.*? from (.*?)<', markup)
    assert ("selection", "predicate selection") in origins


@pytest.mark.parametrize(
    ("question", "values", "mismatch"),
    [
        (
            "Where was Amy born?",
            ["1967-10-03", URIRef(EX + "Gentilly")],
            "1967-10-03 is a date where a place was asked",
        ),
        (
            "Who directed it?",
            "12345",
            "1 is a number; 2 is a number; 3 is a number; and 2 more where somebody was asked",
        ),
        ("Which films are there?", ["12"], ""),
    ],
)
def test_values_of_a_type_that_was_not_asked_for_are_named(
    question: str, values: list[str], mismatch: str
) -> None:
    found = [Value(each if isinstance(each, URIRef) else Literal(each), each) for each in values]
    for kind in ("list", "count"):
        assert describe_type_mismatch(question, Answer(kind, tuple(found))) == mismatch


# Surveys


def test_a_survey_is_a_page_that_expands_and_lines_for_a_terminal() -> None:
    turtle = """
@prefix : <http://example.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:Boat rdfs:subClassOf :Vessel ; rdfs:label "boat" . :flag a <http://www.w3.org/2002/07/owl#ObjectProperty> .
:a a :Boat ; rdfs:label "Aa"@de ; :length [ :value 12.5 ; :unit "m" ] ; :home <http://else.org/Port> ;
    :nextTo :b .
:b a :Boat ; :length [ :value 30.5 ; :unit "m" ] ; :state "idle" ; :nextTo :a .
:c a :Boat ; :length [ :value 7.0 ; :unit "m" ] ; :state "idle" ; :nextTo :a ."""
    seen = survey_graph(kgwb.open_kg(rdflib.Graph().parse(data=turtle)))
    markup = record_html(seen)
    shown = plain(markup)
    parts = """22 triples 3 things 2 classes 9 predicates | Vessel org:Vessel 3 Subclasses: boat 3
boat org:Boat in Vessel 3 | length org:length 100% structure | length / unit org:unit 100% string : m
length / value org:value 100% decimal : 7 … 30.5 | state org:state 67% string : idle
home org:home 33% without a class 1: Port · 1 lead to IRIs without triples | label rdfs:label 33% German text : Aa
33% of the things have a label | 2 things without a label | Declared and never used: 1 flag
Asserted in both directions: 1 next to (2 of 3)"""
    assert [part for part in re.split(r" \| |\n", parts) if part not in shown] == [], shown
    assert "<details open" not in markup and "<input" not in markup
    assert to_html(seen)
    counts, largest_class, *_ = repr(seen).splitlines()
    assert counts.split(", ") == [f"{count} {noun}" for noun, count in seen.counts().items()]
    assert re.match(r"boat +3  length 100%", largest_class)
    assert str(seen).startswith("2 classes")


# Where no kernel is, and where no style sheet is


def element_texts(markup: str) -> str:
    """Return the text of HTML as a browser without a style sheet has it: with no blanks put in."""
    texts = re.sub("<[^>]+>", "", re.sub("<style>.*?</style>", "", markup, flags=re.S))
    return " ".join(html.unescape(texts).split())


def test_a_page_reads_well_without_its_style_sheet(run: Run) -> None:
    page = to_html(run)
    text = element_texts(page)
    assert "Arrival — director → Denis Villeneuve" in text
    assert "QIR agent: classifier rephraser qir" in text
    assert "translator chat agent Who directed Arrival?" in text


def test_nothing_that_only_a_kernel_answers_is_offered_without_one(run: Run) -> None:
    pages = [
        widget.static_html()
        for widget in (
            Workbench(run.kg).debug(run),
            Workbench(run.kg).chat(),
            kgwb.compare(run, run.fork()),
        )
    ]
    pages += [to_html(run), to_html(run["qir"])]
    offered = r"<(?:button|input|textarea|select|form)\b|data-do="
    assert [re.findall(offered, page) for page in pages] == [[]] * len(pages)


def test_a_picture_is_an_image_with_its_triples_in_words(run: Run) -> None:
    workbench = Workbench(kgwb.open_kg("films"))
    workbench.ask("Who directed Arrival?")
    page = workbench.subgraph().static_html()
    (image,) = re.findall(r"<img [^>]*>", page)
    assert "Arrival — director → Denis Villeneuve" in html.unescape(image)
    data = base64.b64decode(image.partition("base64,")[2].rstrip('">'))
    picture = ElementTree.fromstring(data)
    shown = {text.text for text in picture.iter("{http://www.w3.org/2000/svg}text")}
    assert {"Arrival", "Denis Villeneuve"} <= shown
    assert '<svg class="graph' not in page


def test_a_fold_of_a_supervisor_has_one_mark() -> None:
    run = chatty("Who directed Arrival?", Scripted(DIRECTED)).go()
    page = to_html(run)
    summaries = re.findall(r"<summary.*?</summary>", page, flags=re.S)
    supervisors = [summary for summary in summaries if "query planning</span>" in summary]
    assert supervisors
    assert not any("kind" in summary for summary in supervisors)


@pytest.mark.parametrize("part", ["answer", "value", "draft"])
def test_a_record_has_a_short_repr_and_html(part: str) -> None:
    many = tuple(Value(URIRef(f"{EX}{n}"), f"Film {n}", (SUPPORT,) * 20) for n in range(50))
    answer = Answer("list", many, queries=("SELECT " * 100,))
    record: Record = {"answer": answer, "value": many[0], "draft": QUERY}[part]
    assert len(repr(record)) <= MAX_REPR_CHARS + len("<CandidateQuery: >") + len(
        "… (1,000 letters)"
    )
    assert type(record).__name__ in repr(record)
    assert str(record).split(",")[0][:20] in repr(record)
    assert len(plain(to_html(record))) > 0


def test_a_small_record_has_the_repr_that_makes_it_again() -> None:
    fact = Fact("Dune", "director", "?who")
    assert eval(repr(fact)) == fact
    assert repr(Answer("list")).startswith("Answer(kind='list'")


# --- what has one name


PLACES = ("http://one.example/org/d", "http://two.example/org/d", "http://www.w3.org/ns/org#d")


@pytest.mark.parametrize("prefixes", [{}, {"http://two.example/org/": "org"}])
@pytest.mark.parametrize("order", [1, -1])
def test_no_two_iris_have_one_curie_in_a_context(prefixes: dict[str, str], order: int) -> None:
    context = RenderContext(prefixes=prefixes)
    texts = {curie_text(iri, context) for iri in PLACES[::order]}
    assert len(texts) == len(PLACES)
    if prefixes:
        assert curie_text(PLACES[1], context) == "org:d"


@pytest.mark.parametrize(
    "selectors",
    [
        (".kg b", ".kg i"),
        (".kg :is(th, td):not(.num)", ".kg b"),
        (".kg tr:is(:hover, :nth-child(odd), :nth-child(even)) td", ".kg tr:nth-child(odd) td"),
    ],
)
def test_selectors_are_split_at_the_commas_between_them(selectors: tuple[str, ...]) -> None:
    assert SELECTOR_COMMA.split(",".join(selectors)) == list(selectors)
