"""One agent as a cell: what a person reads on it, and what pressing does."""

import html
import re
from pathlib import Path

import pytest
import surveying
from page import do, page, text, wait_for
from small import DIRECTED, HOMONYMS, asked, chatty, predicates, qir, workbench

from kgwb import load_run
from kgwb.errors import OverrideError, SettingError
from kgwb.llm import Scripted
from kgwb.run.prompts import Prompts
from kgwb.ui.cell import AgentCell
from kgwb.ui.session import Session, session_of

QUESTION = "Who directed Arrival?"


def cell(
    agent: str,
    script: object = DIRECTED,
    question: str = QUESTION,
    *,
    done: bool = False,
    **options: object,
) -> tuple[AgentCell, Session, Scripted]:
    """The cell of an agent, of a run that is ``done`` or not begun."""
    model = Scripted(script, **options)  # type: ignore[arg-type]
    session = Session(chatty(question, model))
    if done:
        session.go().result()
    return AgentCell(session, agent), session, model


def template_of(made: AgentCell) -> str:
    """The prompt that is edited in a cell."""
    return page(made).values(page(made).find("Try once").form)["template"]


def test_the_prompt_is_shown_before_it_is_sent_and_the_result_after_every_run() -> None:
    made, session, model = cell("qir")
    assert "not run" in text(made)
    assert f"Question: {QUESTION}" in text(made)
    assert model.call_count() == 0
    do(made, "Run")
    assert "done" in text(made)
    assert "directed by" in text(made)
    assert "1 model call" in text(made)
    do(made, "Prompt")
    do(made, "Run again")
    assert 'id="panel-result-' in made.html
    assert asked(model) == {"qir": 1}
    assert list(session.steps)[-1] == "qir"  # it runs no further than its agent
    for agent, there in (("qir", True), ("execution", False)):
        names = [name for name, _, _ in AgentCell(session, agent).sections(agent, None)]
        assert ("prompt" in names) == there


def test_every_attempt_is_shown_with_its_checks() -> None:
    made, session, _ = cell(
        "qir", {**DIRECTED, "chatty_kg/qir": [{"nonsense": 1}, DIRECTED["chatty_kg/qir"]]}
    )
    do(made, "Run")
    do(made, "Attempts")
    attempts = session.steps["qir"].attempts
    assert [attempt.accepted for attempt in attempts] == [False, True]
    assert attempts[0].problems[0].name in text(made)
    assert "Attempt 2" in text(made) and "Attempts 2" in text(made)


def test_a_prompt_is_tried_once_saved_and_taken_back(tmp_path: Path) -> None:
    model = Scripted({**DIRECTED, "chatty_kg/qir": [DIRECTED["chatty_kg/qir"]] * 3})
    bench = workbench(model, prompts=tmp_path)
    bench.begin(QUESTION)
    made = bench.cell("qir")
    template = template_of(made)
    made.update({"do": "draft", "value": template + "\nBe brief."})
    assert 'class="diff"' in made.html
    do(made, "Try once")
    assert model.requests[-1].messages[-1].content.endswith("Be brief.")
    assert "Be brief." not in Prompts().text("chatty_kg/qir")
    assert made.selected_section == "prompt"
    assert 'id="tried"' in made.html
    assert "edited" in text(made)
    do(made, "Save to file")
    assert (tmp_path / "chatty_kg" / "qir.md").read_text().rstrip().endswith("Be brief.")
    assert "saved to" in text(made)
    assert "edited" not in text(made)
    made.update({"do": "draft", "value": template + "\nBe long."})
    do(made, "Back to the file")
    assert "Be long." not in text(made)


def test_a_shipped_prompt_is_saved_in_the_folder_of_the_form(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shipped = Prompts().text("chatty_kg/qir")
    made, _, _ = cell("qir")
    made.update({"do": "draft", "value": template_of(made) + "\nBe brief."})
    do(made, "Save to file", folder="")
    assert "not overwritten" in text(made)
    do(made, "Save to file", folder="mine")
    saved = tmp_path / "mine" / "chatty_kg" / "qir.md"
    assert saved.read_text().rstrip().endswith("Be brief.")
    assert Prompts().text("chatty_kg/qir") == shipped


def test_a_prompt_that_its_agent_cannot_fill_is_said_and_not_used() -> None:
    made, _, model = cell("qir")
    template = template_of(made)
    wrong = template.replace("{{question}}", "{{query}}")
    made.update({"do": "draft", "value": wrong})
    assert "note bad" in made.html
    assert "Nothing to send" not in text(made)
    do(made, "Try once", template=wrong)
    assert "Failed" in text(made)
    assert model.call_count() == 0


def test_after_an_edit_by_hand_the_prompt_stays_editable() -> None:
    made, session, model = cell(
        "qir", {**DIRECTED, "chatty_kg/qir": [DIRECTED["chatty_kg/qir"]] * 2}
    )
    do(made, "Run")
    do(made, "Edit as a form")
    do(made, "Use this result", **{"facts.0.1": "made by"})
    assert session.steps["qir"].origin == "by hand"
    do(made, "Prompt")
    do(made, "Try once", template=template_of(made) + "\nBe brief.")
    assert session.steps["qir"].origin != "by hand"
    assert asked(model)["qir"] == 2


def test_a_click_on_a_row_takes_another_vertex_and_the_next_one_takes_it_back() -> None:
    made, session, _ = cell("vertex_selection", HOMONYMS, "Who directed Dune?", done=True)
    before = session.steps["vertex_selection[Dune]"].output
    row = next(one for one in page(made).elements if one.attributes.get("id") == "take-1")
    assert row.attributes["data-do"] == "take"
    do(made, row.text)
    after = session.steps["vertex_selection[Dune]"].output
    assert after.vertex == before.candidates[1]
    assert after.reason == "chosen by hand"
    assert "stale" in text(AgentCell(session, "execution"))
    session.go().result()
    assert str(session.run.answer) == "David Lynch"
    do(made, "Undo the edit")
    assert session.steps["vertex_selection[Dune]"].output.vertex == before.vertex


STARRING = {"chatty_kg/predicate_selection": predicates(["starring"])}


def test_another_candidate_query_is_taken_by_a_click() -> None:
    made, session, _ = cell("predicate_selection", dict(DIRECTED, **STARRING), done=True)
    do(made, "take this one")  # the first
    [taken] = session.steps["predicate_selection"].output.queries
    assert taken.predicates == ("director",)
    assert len(session.steps["predicate_selection"].output.predicates) == 1


def test_an_edited_result_that_breaks_a_check_is_said_and_changes_nothing() -> None:
    made, session, _ = cell("qir", done=True)
    before = session.steps["qir"].output
    do(made, "Edit as a form", "Remove this row")
    assert "facts.0.0" not in made.html
    do(made, "Use this result")
    assert isinstance(made.event_error, OverrideError)
    assert (session.steps["qir"].output, session.history) == (before, [])
    assert {session.run_state().step_state(key) for key in session.steps} == {"done"}
    do(made, "Add a row")
    assert "facts.0.0" in made.html


def test_a_failed_step_gets_a_result_by_its_form() -> None:
    made, _, _ = cell("qir", {**DIRECTED, "chatty_kg/qir": [{"nonsense": 1}] * 3})
    do(made, "Run", "Edit as a form", "Add a row")
    triple = {"facts.0.0": "Arrival", "facts.0.1": "director", "facts.0.2": "?x"}
    do(made, "Add a row", **triple)
    assert page(made).values(page(made).find("Use this result").form)["facts.0.1"] == "director"


def test_an_agent_with_several_steps_lets_one_choose() -> None:
    script = {
        "chatty_kg/qir": qir("Arrival | starring | ?actor", "?film | starring | ?actor"),
        "chatty_kg/predicate_selection": predicates(["starring"], ["starring"]),
    }
    made, session, _ = cell(
        "relation_linking", script, "Who starred in Arrival and what?", done=True
    )
    keys = [step.key for step in session.steps_of("relation_linking")]
    assert made.key == keys[0]
    do(made, "?film, starring, ?actor")
    assert made.key == keys[1]


def test_an_unknown_agent_and_no_question_are_said() -> None:
    bench = workbench(Scripted(DIRECTED))
    with pytest.raises(SettingError, match="no question"):
        bench.cell("qir")
    bench.begin(QUESTION).go()
    with pytest.raises(SettingError, match="no agent"):
        bench.cell("magician")
    assert "not needed" in text(bench.cell("rephraser"))


def test_without_a_kernel_the_step_is_seen() -> None:
    made, session, _ = cell("qir")
    assert "Not run" in made.static_html()
    session.go().result()
    data = made._repr_mimebundle_()
    data = data[0] if isinstance(data, tuple) else data
    assert "directed by" in data["text/html"]
    assert "data-static" in data["text/html"]
    assert data["text/plain"].startswith("└─ qir")


# --- questions to the graph


def test_what_is_asked_of_the_graph_stands_where_it_was_asked() -> None:
    made, _, _ = cell("entity_retriever", done=True)
    do(made, "Look for it", name="Dune")
    assert "'Arrival'" in text(made)
    do(made, "Look for it", name="")
    assert "is empty" in text(made)
    do(made, "Show degrees")
    assert "degree " in text(made)
    made, _, _ = cell("relation_linking", done=True)
    do(made, "examples")
    assert "Arrival — director → Denis Villeneuve" in text(made)


def test_a_query_is_edited_where_it_is_shown_run_and_used() -> None:
    made, session, _ = cell("query_generator", done=True)
    assert "PREFIX org: <http://example.org/>" in text(made)
    do(made, "Run query")
    assert "1 row" in text(made)
    typed = page(made).values(page(made).find("Run query").form)["sparql"]
    starring = typed.replace("director", "starring")
    do(made, "Run query", sparql=starring)
    assert "2 rows" in text(made)
    do(made, "Use this query", sparql=typed)  # as it was
    assert session.steps["query_generator"].origin != "by hand"
    do(made, "Use this query", sparql=starring)
    assert session.steps["query_generator"].origin == "by hand"
    assert session.steps["query_generator"].output.queries[0].patterns[0][1].endswith("starring>")


@pytest.mark.parametrize(
    ("sparql", "shown"),
    [
        ("DELETE WHERE { ?s ?p ?o }", "would change the graph"),
        ("SELECT ?x WHERE { ?x org:director ?y }", "4 rows"),  # a prefix of the graph
        ('SELECT ?x WHERE { ?x rdfs:label "org:a unknown:b" }', "0 rows"),
        ("SELECT ?x WHERE { ?x unknown:director ?y }", "does not declare unknown:"),
    ],
)
def test_what_comes_of_a_query_is_said_where_it_is_typed(sparql: str, shown: str) -> None:
    made, _, _ = cell("query_generator", done=True)
    do(made, "Run query", sparql=sparql)
    assert shown in text(made)


def test_a_wrong_query_is_shown_with_the_line_that_is_wrong() -> None:
    made, _, _ = cell("query_generator", done=True)
    do(made, "Run query", sparql="SELECT ?x WHERE {\n  ?x org:director\n} LIMIT 3")
    failure = made.html.partition('class="src wrong"')[2].partition("</pre>")[0]
    assert plain(failure).endswith("3 } LIMIT 3")
    assert made.graph_worker.failure is None


def plain(markup: str) -> str:
    """Return the text behind the first tag's end."""
    return " ".join(html.unescape(re.sub("<[^>]+>", " ", markup.partition(">")[2])).split())


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (
            qir("Dune | starring | ?x", "?x | birth place | ?place", target="?place"),
            "without it the query has rows|nothing in the graph matches",
        ),
        (qir("Atlantis | directed by | ?person"), "no vertex for “Atlantis”"),
    ],
)
def test_an_empty_answer_says_why(reply: dict[str, object], why: str) -> None:
    chosen = predicates(["starring"], ["birth place"])
    script = {**HOMONYMS, "chatty_kg/qir": reply, "chatty_kg/predicate_selection": chosen}
    made, session, _ = cell("execution", script, "Where was who starred in it born?", done=True)
    assert session.run.answer is not None and not session.run.answer
    assert re.search(why, text(made))


def test_a_recording_without_its_graph_asks_nothing(tmp_path: Path) -> None:
    run = chatty(QUESTION, Scripted(DIRECTED)).go()
    made = AgentCell(session_of(load_run(run.save(tmp_path / "run.jsonl"))), "entity_retriever")
    assert "kg=..." in text(made)
    assert not any(one.attributes.get("data-do") == "where" for one in page(made).elements)


def test_two_readings_in_the_same_words_are_two() -> None:
    assumed = [
        {"taken": "films that he directed", "others": ["any of these"]},
        {"taken": "films, no series", "others": ["any of these"]},
    ]
    lynch = surveying.draft("SELECT DISTINCT ?film WHERE { ?film org:director org:lynch }")
    proved = surveying.draft("ASK { ?film org:director org:lynch }", "yes or no")
    drafts = [surveying.draft(assumptions=assumed), lynch, proved]
    model = Scripted(surveying.script(drafts))
    run = surveying.surveyor(model, settings=surveying.SURVEYOR.settings())
    session = Session(run)
    session.go().result()
    made = AgentCell(session, "answer")
    assert "also read as" in text(made)
    assert "also read as" not in text(AgentCell(session, "drafter"))
    for number in ("1", "2"):
        made.update({"do": "reading", "arg": number})
        wait_for(lambda: all(each.run.status == "done" for each in made.readings.values()))
    first, second = made.readings.values()
    assert (first.run.answer, second.run.answer) != (None, None)
    assert first.run.answer != second.run.answer
    assert asked(model)["mention_finder"] == 1
    drafted = [each for each in model.requests if each.task == "surveyor/drafter"]
    asked_again = [request.variables["question"] for request in drafted[1:]]
    for own, other, question in zip(assumed, reversed(assumed), asked_again, strict=True):
        assert own["taken"] in question
        assert other["taken"] not in question
    for each in assumed:
        assert f"read as: any of these (taken: {each['taken']})" in text(made)
