"""One agent as a cell."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from pressing import parts, press, settled, shown, wait_for
from small import DIRECTED, HOMONYMS, asked, chatty, films, workbench

from kgwb.errors import ModelError, SettingError
from kgwb.flow import Classified
from kgwb.llm import Scripted
from kgwb.prompts import Prompts
from kgwb.run import Run
from kgwb.ui.cell import AgentCell, PromptSection
from kgwb.ui.session import Session, session_of

QUESTION = "Who directed Arrival?"


def cell(agent: str, script: object = DIRECTED, **options: object) -> tuple[AgentCell, Session, Scripted]:
    model = Scripted(script, **options)  # type: ignore[arg-type]
    session = Session(chatty(QUESTION, model))
    return AgentCell(session, agent), session, model


def test_a_cell_shows_the_prompt_before_it_is_sent_and_the_result_after() -> None:
    made, session, model = cell("qir")
    assert "not run yet" in shown(made)
    assert f"Question: {QUESTION}" in shown(made)
    assert model.calls() == 0
    press(made, "Run")
    settled(session)
    assert "directed by" in shown(made)
    assert "done" in shown(made)
    assert "live" in shown(made)
    assert asked(model) == {"qir": 1}


def test_a_cell_runs_no_further_than_its_agent() -> None:
    made, session, _ = cell("classifier")
    press(made, "Run")
    settled(session)
    assert list(session.steps)[-1] == "classifier"


def test_every_attempt_is_shown_with_its_checks() -> None:
    replies = [{"nonsense": 1}, DIRECTED["chatty_kg/qir"]]
    made, session, _ = cell("qir", {**DIRECTED, "chatty_kg/qir": replies})
    press(made, "Run")
    settled(session)
    made._sections.value = "Attempts"
    assert "attempt 1: not accepted" in shown(made)
    assert "failed: the reply&#x27;s form" in shown(made)
    assert "attempt 2: accepted" in shown(made)


def test_trying_a_prompt_once_leaves_the_file_and_asks_again() -> None:
    made, session, model = cell("qir")
    press(made, "Run")
    settled(session)
    made._sections.value = "Prompt"
    section = prompt_of(made)
    section._text.value += "\nBe brief."
    assert "+Be brief." in shown(made)
    press(made, "Try this once")
    settled(session)
    assert asked(model) == {"qir": 2}
    assert "Be brief." not in Prompts().text("chatty_kg/qir")
    assert model.requests[-1].messages[-1].content.endswith("Be brief.")


def test_a_prompt_saved_goes_to_the_folder_of_the_person(tmp_path: Path) -> None:
    bench = workbench(Scripted(DIRECTED), prompts=tmp_path)
    run = bench.begin(QUESTION)
    made = bench.cell("qir")
    prompt_of(made)._text.value += "\nBe brief."
    press(made, "Save to file")
    assert (tmp_path / "chatty_kg" / "qir.md").read_text().endswith("Be brief.")
    assert "saved to" in shown(made)
    run.go(until="qir")
    assert run.calls[run["qir"].calls[0]].request["content"]["messages"][-1][1].endswith("Be brief.")


def test_a_prompt_that_its_agent_cannot_fill_is_said_and_not_used() -> None:
    made, session, model = cell("qir")
    section = prompt_of(made)
    section._text.value = section._text.value.replace("{{question}}", "{{query}}")
    assert "This prompt cannot be used" in shown(made)
    press(made, "Try this once")
    assert "Failed" in made.message.value
    assert "query" in made.message.value
    assert (model.calls(), session.busy) == (0, "")


def test_a_result_by_hand_is_marked_and_can_be_undone() -> None:
    made, session, _ = cell("classifier")
    press(made, "Run")
    settled(session)
    made._sections.value = "Edit the result"
    form_of(made).value = lambda: Classified("dependent", "I say so")
    press(made, "Use this result")
    settled(session)
    assert "by hand" in shown(made)
    assert "dependent" in shown(made)
    press(made, "Undo the edit by hand")
    settled(session)
    assert "by hand" not in shown(made)


def test_an_edited_result_that_breaks_a_check_is_said_and_changes_nothing() -> None:
    made, session, _ = cell("qir")
    press(made, "Run")
    settled(session)
    before = session.steps["qir"].output
    made._sections.value = "Edit the result"
    form_of(made).value = lambda: type(before)(())
    press(made, "Use this result")
    assert "at least one entity" in made.message.value
    assert session.steps["qir"].output is before


def test_cells_after_an_edit_say_that_they_are_stale() -> None:
    made, session, _ = cell("qir")
    after = AgentCell(session, "execution")
    press(after, "Run")
    settled(session)
    assert "stale" not in shown(after)
    session.edit_prompt("chatty_kg/qir", session.run.prompts.text("chatty_kg/qir") + "\nBe brief.")
    assert "stale" in shown(after)
    assert "stale" in shown(made)
    press(after, "Run")
    settled(session)
    assert "stale" not in shown(after)


def test_a_failing_model_is_said_in_the_cell_with_its_remedy() -> None:
    made, session, _ = cell("qir", {"chatty_kg/qir": ModelError("the server is down", hint="start it")})
    press(made, "Run")
    settled(session)
    assert "the server is down" in made.message.value
    assert "start it" in made.message.value
    assert "failed" in shown(made)


def test_a_slow_model_can_be_cancelled() -> None:
    made, session, model = cell("qir", delay_s=30, remote=True)
    press(made, "Run")
    wait_for(lambda: model.calls() == 1)
    wait_for(lambda: "running" in shown(made))
    press(made, "Cancel")
    settled(session)
    assert session.run.status == "cancelled"


def test_an_agent_with_several_steps_lets_one_choose() -> None:
    model = Scripted({**HOMONYMS})
    run = Run(chatty(QUESTION, model).system, "Who directed Dune?", kg=films(), models=model).go()
    made = AgentCell(session_of(run), "vertex_selection")
    assert made.key == "vertex_selection[Dune]"
    assert made._which.layout.display == "none"


def test_hostile_text_is_shown_as_text() -> None:
    nasty = "<img src=x onerror=alert(1)>"
    script = {**DIRECTED, "chatty_kg/qir": [nasty, DIRECTED["chatty_kg/qir"]]}
    made, session, _ = cell("qir", script)
    press(made, "Run")
    settled(session)
    for section in made._sections.options:
        made._sections.value = section
        assert "<img" not in shown(made)
    assert "&lt;img" in made.static()


def test_a_click_on_another_thread_does_the_same() -> None:
    made, session, _ = cell("qir")
    clicking = threading.Thread(target=press, args=(made, "Run"))
    clicking.start()
    clicking.join()
    settled(session)
    assert session.state("qir") == "done"


def test_an_unknown_agent_and_no_question_are_said() -> None:
    bench = workbench(Scripted(DIRECTED))
    with pytest.raises(SettingError, match="no question"):
        bench.cell("qir")
    bench.begin(QUESTION)
    with pytest.raises(SettingError, match="no agent"):
        bench.cell("magician")


def test_without_widgets_the_step_is_seen() -> None:
    made, session, _ = cell("qir")
    assert "Not run when this was displayed" in made.static()
    session.go().result()
    data = made._repr_mimebundle_()
    data = data[0] if isinstance(data, tuple) else data
    assert "directed by" in data["text/html"]
    assert data["text/plain"].startswith("└─ qir")


def form_of(made: AgentCell) -> Any:
    return made._editors[made.key][1]


def prompt_of(made: AgentCell) -> PromptSection:
    made._sections.value = "Prompt"
    [section] = [one for one in parts(made) if isinstance(one, PromptSection)]
    return section


def test_another_cell_that_runs_leaves_this_one_as_it_is() -> None:
    made, session, _ = cell("qir")
    press(made, "Run")
    settled(session)
    made._sections.value = "Edit the result"
    typed = form_of(made)
    session.go("classifier").result()
    session.go().result()
    assert made._sections.value == "Edit the result"
    assert form_of(made) is typed
    made._sections.value = "Prompt"
    AgentCell(session, "execution").run_agent()
    settled(session)
    assert made._sections.value == "Prompt"


def test_a_cell_of_a_finished_run_shows_its_result_at_once() -> None:
    bench = workbench(Scripted(DIRECTED))
    bench.ask(QUESTION)
    assert "Denis Villeneuve" in shown(bench.cell("execution"))


def test_what_was_typed_is_there_when_the_person_comes_back() -> None:
    made, session, _ = cell("qir")
    session.go().result()
    prompt_of(made)._text.value += "\nBe brief."
    made._sections.value = "Edit the result"
    typed = form_of(made)
    made.choose("classifier")
    made.choose("qir")
    assert form_of(made) is typed
    assert prompt_of(made)._text.value.endswith("Be brief.")


def test_a_prompt_file_that_is_gone_takes_nothing_away(tmp_path: Path) -> None:
    run = chatty(QUESTION, Scripted(DIRECTED)).go()
    run.prompts = Prompts(tmp_path, {"chatty_kg/gone": run.prompts.text("chatty_kg/qir")})
    run["qir"].prompts[:] = ["chatty_kg/gone"]
    made = AgentCell(session_of(run), "qir")
    before = prompt_of(made)._text.value
    press(made, "Back to the file's text")
    assert "there is no readable file prompts/chatty_kg/gone.md" in made.message.value
    assert prompt_of(made)._text.value == before
    assert "no such file now" in shown(made)


def test_an_agent_that_the_question_does_not_need_is_told() -> None:
    made, session, _ = cell("rephraser")
    press(made, "Run")
    settled(session)
    assert "the run ended without it" in shown(made)
