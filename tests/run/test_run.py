"""A run can be edited, forked and compared, and only what changed is asked again."""

import json
import time
import weakref
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from small import (
    DIRECTED,
    HOMONYMS,
    KEYS,
    SCRIPT,
    TEXTS,
    answer_of,
    asked,
    chatty,
    films,
    iri,
    keys,
    made_up,
    predicates,
    qir,
    sure,
    workbench,
)

from kgwb.errors import (
    GraphTimeoutError,
    InvalidReplyError,
    OverrideError,
    PromptError,
    SettingError,
)
from kgwb.llm import Scripted
from kgwb.run.answers import Candidate, Link
from kgwb.run.prompts import Prompts
from kgwb.run.store import CallStore
from kgwb.systems.chatty_kg.records import LinkingResult

QIR_PROMPT = Prompts().text("chatty_kg/qir")


# --- edits: a prompt


def test_after_a_prompt_edit_other_agents_are_asked_again_only_if_the_reply_changes() -> None:
    other = qir("Arrival | grew out of | ?story")
    script = {
        "chatty_kg/qir": [DIRECTED["chatty_kg/qir"], DIRECTED["chatty_kg/qir"], other],
        "chatty_kg/predicate_selection": [predicates(["director"]), predicates(["based on"])],
    }
    model = Scripted(script)
    run = chatty("Who directed Arrival?", model).go()
    run.edit_prompt("chatty_kg/qir", QIR_PROMPT + "\nThink twice.").go()
    assert asked(model) == {"qir": 2, "predicate_selection": 1}
    assert [step.key for step in run.steps if step.origin == "live"] == ["qir"]
    run.edit_prompt("chatty_kg/qir", QIR_PROMPT + "\nThink again.").go()
    assert asked(model) == {"qir": 3, "predicate_selection": 2}
    assert run["entity_linking[Arrival]"].origin == "record"  # the entity is the same
    assert str(run.answer) == "Story of Your Life"


# --- edits: a value put in by hand


def test_an_override_of_a_vertex_repeats_only_the_steps_that_depend_on_it() -> None:
    model = Scripted(HOMONYMS)
    run = chatty("Who directed Dune?", model).go()
    link = run.output("vertex_selection[Dune]")
    vertex = next(candidate for candidate in link.candidates if candidate != link.vertex)
    before = asked(model)
    run.override("vertex_selection[Dune]", replace(link, vertex=vertex)).go()
    assert set(asked(model) - before) <= {"predicate_selection"}  # it comes after the vertex
    assert {run["qir"].origin, run["entity_retriever[Dune]"].origin} == {"record"}
    assert run["vertex_selection[Dune]"].origin == "by hand"
    assert run["relation_linking[⟨Dune, directed by, ?person⟩]"].origin == "live"
    [value] = answer_of(run).values
    assert value.support == ((vertex.iri, iri("director"), value.term),)


def test_an_override_can_be_json_data_and_can_be_removed() -> None:
    run = made_up(Scripted(SCRIPT)).go()
    run.override("split", ["Sicario"]).override("look_up[Sicario]", "a thriller")
    with pytest.raises(Exception, match="made_up/guess"):  # the script has no fourth answer
        run.go()
    assert len(run["guess"].attempts) == 0
    assert keys(run) == ["split", "look_up[Sicario]", "deciding", "guess"]
    run.override("guess", {"guess": "mine", "sure": True}).go()
    assert (str(run.answer), run.output("guess").guess) == ("mine", "mine")
    run.remove_override("guess")
    assert run.remove_override("split").remove_override("split").go().answer
    assert (keys(run), run.totals.live_model_calls) == (KEYS, 0)


@pytest.mark.parametrize(
    ("step", "value", "problem"),
    [
        ("split", 7, "valid list"),
        ("split", ["a", 1], "valid string"),
        ("split", [], "split cannot be used: no word of"),
        ("split", None, "valid list"),
        ("guess#2", object(), "object in braces"),
    ],
)
def test_an_override_of_the_wrong_type_or_that_fails_the_check_is_refused(
    step: str, value: Any, problem: str
) -> None:
    run = made_up(Scripted(SCRIPT)).go()
    with pytest.raises(OverrideError, match=problem) as caught:
        run.override(step, value)
    assert caught.value.hint
    assert run.overrides == {}


def test_an_override_before_its_step_is_checked_when_the_step_is_reached() -> None:
    run = chatty("Who directed Arrival?", Scripted(DIRECTED))
    run.override("vertex_selection", Link("Sicario", Candidate(iri("sicario"), "Sicario")))
    with pytest.raises(OverrideError, match="Sicario"):
        run.go()
    assert (run.status, run["qir"].done) == ("failed", True)
    assert run.remove_override("vertex_selection").go().answer
    wrong: Any = Link("Arrival", "not a candidate")  # type: ignore[arg-type]
    with pytest.raises(OverrideError, match=r"vertex_selection\[Arrival\]"):
        run.override("vertex_selection", wrong)


# --- fork, diff, refresh


def test_a_fork_with_a_model_for_one_agent_asks_that_agent_alone() -> None:
    run = made_up(Scripted(SCRIPT)).go()
    another = Scripted({"made_up/guess": sure("other")}, name="other")
    fork = run.fork(models={"guess": another}).go()  # the others keep theirs
    assert (asked(another), fork.totals.live_model_calls) == ({"guess": 1}, 1)
    differences = {difference.key: difference for difference in run.diff(fork)}
    assert [key for key, difference in differences.items() if difference.status == "same"] == KEYS[
        :3
    ]
    assert differences["guess"].changed_parts == ("output", "calls", "replies")
    assert differences["guess#2"].second is None
    assert fork.diff(run)[-1].first is None


def test_a_fork_opens_graph_model_settings_and_prompts_by_name(tmp_path: Path) -> None:
    (tmp_path / "chatty_kg").mkdir()
    (tmp_path / "chatty_kg" / "qir.md").write_text(QIR_PROMPT + "Be brief.")
    run = chatty("Who directed Arrival?", Scripted(DIRECTED)).go()
    fork = run.fork(kg="films", models="rules", settings="fast", prompts=str(tmp_path)).go()
    assert (str(fork.answer), fork.models[""].name) == ("Denis Villeneuve", "rules")
    assert (fork.settings.profile, fork.kg.source) == ("fast", "films")
    [call] = fork["qir"].calls
    assert "Be brief." in str(fork.calls[call].request["content"])
    assert run.fork(settings={"theta": 5}).settings.theta == 5


def test_unknown_parameters_agents_and_steps_are_refused_and_change_nothing() -> None:
    run = made_up(Scripted(SCRIPT)).go()
    with pytest.raises(SettingError, match="modle"):
        run.fork(modle=None)
    with pytest.raises(SettingError, match="no agent 'qri'"):
        run.fork(models={"": Scripted({}), "qri": Scripted({})})
    with pytest.raises(SettingError, match="guess#9"):
        run.refresh("guess#9")
    with pytest.raises(PromptError):
        run.edit_prompt("made_up/guess", "no header")
    assert run.go().totals.live_model_calls == 0


@pytest.mark.parametrize(("step", "again"), [("guess#2", {"guess": 1}), ("deciding", {"guess": 3})])
def test_refresh_asks_a_step_and_what_it_supervises_again(step: str, again: dict[str, int]) -> None:
    model = Scripted(
        {**SCRIPT, "made_up/guess": [*SCRIPT["made_up/guess"], *SCRIPT["made_up/guess"]]}
    )
    run = made_up(model).go()
    before = asked(model)
    run.refresh(step).go(until="split")  # not there yet: it stays to be refreshed
    run.go()
    assert asked(model) - before == again
    run.go()
    assert asked(model) - before == again


def test_a_preview_asks_nothing_and_takes_earlier_calls_from_the_store(tmp_path: Path) -> None:
    with CallStore(tmp_path / "store.sqlite", "graph") as store:
        run, other = made_up(Scripted(SCRIPT)), made_up(Scripted({}))
        assert other.preview_request("guess") is None
        for each in (run, other):
            each.use_store(store)
        run.go()
        request = other.preview_request("guess")
    assert request is not None and request.task == "made_up/guess"
    assert other.preview_request("deciding") is None
    assert other.steps == []


# --- failures


def test_a_reply_that_never_becomes_valid_keeps_all_attempts_and_resumes_after_an_edit() -> None:
    bad: list[Any] = ["I cannot say.", '{"guess": 3}', {"guess": "", "sure": True}]
    model = Scripted({**SCRIPT, "made_up/guess": [*bad, sure("good")]})
    run = made_up(model)
    with pytest.raises(InvalidReplyError) as caught:
        run.go()
    assert [attempt.reply for attempt in caught.value.attempts] == [
        bad[0],
        bad[1],
        json.dumps(bad[2]),
    ]
    step = run["guess"]
    assert (run.status, step.done, len(step.attempts), step.error) == (
        "failed",
        False,
        3,
        run.error.message,
    )  # type: ignore[union-attr]
    assert run["deciding"].error == step.error
    with pytest.raises(InvalidReplyError):
        run.go()
    assert model.call_count() == 6  # the bad replies are on the record, too
    run.edit_prompt("made_up/guess", TEXTS["made_up/guess"] + "Reply with JSON.")
    assert (run.position, str(run.go().answer)) == (3, "good")
    assert asked(model) == {"split": 1, "look_up": 2, "guess": 4}


def test_a_graph_that_fails_in_the_middle_and_recovers(monkeypatch: pytest.MonkeyPatch) -> None:
    kg, model = films(), Scripted(DIRECTED)
    select, queries = kg.select, list[str]()

    def moody(query: str) -> Any:
        queries.append(query)
        if len(queries) == 2:
            raise GraphTimeoutError("the query took longer than 30 s", hint="wait")
        return select(query)

    monkeypatch.setattr(kg, "select", moody)
    run = chatty("Who directed Arrival?", model, kg)
    with pytest.raises(GraphTimeoutError):
        run.go()
    assert run.status == "failed"
    assert [step.key for step in run.steps if step.error][-1].startswith("relation_linking")
    assert str(run.go().answer) == "Denis Villeneuve"
    assert model.call_count() == 2


# --- the workbench


def test_the_dialogue_remembers_finished_turns_only() -> None:
    bench = workbench(
        Scripted({**DIRECTED, "chatty_kg/qir": ["no"] * 3 + [DIRECTED["chatty_kg/qir"]]})
    )
    with pytest.raises(InvalidReplyError):
        bench.ask("Who directed Arrival?")
    assert (bench.runs[-1].status, bench.dialogue.turns) == ("failed", ())
    bench.ask("Who directed Arrival?")
    dialogue = bench.dialogue
    assert [turn.answers for turn in dialogue.turns] == [("Denis Villeneuve",)]
    bench.new_dialogue()
    assert bench.dialogue.turns == ()
    bench.continue_dialogue(dialogue)
    assert bench.dialogue == dialogue
    assert "chatty_kg" in repr(bench)


def test_an_override_of_an_agent_with_several_steps_is_refused() -> None:
    run = made_up(Scripted(SCRIPT))
    with pytest.raises(OverrideError, match="several steps") as caught:
        run.override("look_up", "nothing").go()
    assert "look_up[Arrival], look_up[Dune]" in caught.value.hint
    assert run.remove_override("look_up").go().status == "done"


@pytest.mark.parametrize(
    ("step", "question", "facts"),
    [
        ("matching", "Who wrote Sicario?", ["Sicario | wrote | ?writer"]),
        (
            "relation_linking[⟨Arrival, directed by, ?person⟩]",
            "Who wrote Sicario?",
            ["Sicario | wrote | ?writer"],
        ),
        (
            "query_generator",
            "Who directed Sicario and starred in Arrival?",
            ["Sicario | director | ?person", "Arrival | starring | ?person"],
        ),
    ],
)
def test_an_output_of_another_question_is_refused_with_the_reason(
    step: str, question: str, facts: list[str]
) -> None:
    other = chatty(question, Scripted({**DIRECTED, "chatty_kg/qir": qir(*facts)}))
    other.go(until="query_generator")
    value = next(each.output for each in other.steps if each.agent == step.partition("[")[0])
    run = chatty("Who directed Arrival?", Scripted(DIRECTED)).go()
    with pytest.raises(OverrideError, match="cannot be used") as caught:
        run.override(step, value)
    assert caught.value.hint
    assert run.go().answer


def test_a_query_can_be_put_in_where_no_fact_is_linked() -> None:
    run = chatty("Who directed Arrival?", Scripted(DIRECTED)).go()
    answer, queries = run.answer, run.output("query_generator")
    run.override("matching", LinkingResult((), ())).override("query_generator", queries)
    run.go()
    assert run.output("predicate_selection").queries == queries.queries
    assert answer.labels[0] in run.answer.labels


# --- memory


def test_a_run_that_nobody_needs_is_freed_at_once() -> None:
    run = made_up(Scripted(SCRIPT)).go()
    freed = weakref.ref(run)
    del run
    time.sleep(0.1)  # the thread that executed it may have it for a moment
    assert freed() is None
