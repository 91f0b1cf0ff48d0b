"""Two executions beside each other as a widget."""

from __future__ import annotations

import pytest
from small import DIRECTED, chatty, predicates, qir

from kgwb import profile
from kgwb.errors import ModelError
from kgwb.flow import QIR, Fact
from kgwb.llm import Scripted
from kgwb.run import Run
from kgwb.ui.comparison import ComparisonPanel
from kgwb.ui.session import Session, session_of
from ui.press import press, text_of

STARRING = {
    "chatty_kg/qir": qir("Arrival | starring | ?person"),
    "chatty_kg/predicate_selection": predicates(["starring"]),
}
EDITED = QIR((Fact("Arrival", "runtime", "?minutes"),), "?minutes")


@pytest.fixture
def run() -> Run:
    return chatty("Who directed Arrival?", Scripted(DIRECTED)).go()


def test_two_runs_are_compared(run: Run) -> None:
    panel = ComparisonPanel(run, run.fork(models=Scripted(STARRING, name="other")).go(), ("mine", "hers"))
    assert "steps differ; first at qir" in text_of(panel)
    assert repr(panel).startswith("ComparisonPanel(mine and hers: ")
    assert "Denis Villeneuve" in panel.static()


def test_all_steps_are_shown_at_wish(run: Run) -> None:
    panel = ComparisonPanel(run, run.fork().go())
    assert "classifier : same" not in text_of(panel)
    panel._shown.value = "all steps"
    assert "classifier : same" in text_of(panel)


def test_a_session_is_compared_with_what_was_before_the_edit(run: Run) -> None:
    session = session_of(run)
    panel = ComparisonPanel.of(session)
    assert panel._with.value == "nothing was edited yet"
    assert "no step differs" in text_of(panel)
    session.replace("qir", EDITED).result()
    assert panel._with.options == ("before qir was put in by hand, and as it stands",)
    assert "some steps are stale" in text_of(panel)
    assert panel.first.answer is not None
    assert panel.first.answer.labels == ("Denis Villeneuve",)
    run.models = {"": Scripted({"chatty_kg/predicate_selection": predicates(["runtime"])})}
    session.go().result()
    assert panel.second.answer is not None
    assert panel.second.answer.labels == ("116",)
    assert "stale" not in text_of(panel.message)


def test_the_same_under_another_profile_runs_meanwhile_and_is_shown(run: Run) -> None:
    panel = ComparisonPanel.of(session_of(run))
    panel.fork("under paper", settings=profile("paper")).result()
    assert panel._with.options == ("as it stands, and under paper",)
    assert (panel.first.name, panel.second.name) == ("as it stands", "under paper")
    assert "differ; first at" in text_of(panel)


def test_buttons_put_the_question_under_the_profiles(run: Run) -> None:
    panel = ComparisonPanel.of(session_of(run))
    press(panel, "The same under profile fast")
    [(label, other)] = panel.others
    assert isinstance(other, Session)
    assert (label, other.run.settings.profile) == ("under profile fast", "fast")


def test_another_model_is_named_in_words(run: Run) -> None:
    panel = ComparisonPanel.of(session_of(run))
    panel._model.value = "rules"
    press(panel, "The same with this model")
    [(label, other)] = panel.others
    assert isinstance(other, Session)
    assert (label, other.run.models[""].name) == ("with model rules", "rules")


@pytest.mark.parametrize(
    ("spec", "said"),
    [("gpt-4o", "no model named"), ("", "no model named"), ("sk-" + "a" * 30, "held a key")],
)
def test_what_is_no_model_is_said_and_loses_nothing(run: Run, spec: str, said: str) -> None:
    panel = ComparisonPanel.of(session_of(run))
    panel._model.value = spec
    press(panel, "The same with this model")
    assert said in text_of(panel.message)
    assert spec[3:] not in text_of(panel.message) or not spec.startswith("sk-")
    assert panel.others == []


def test_a_fork_that_fails_says_so_and_shows_how_far_it_came(run: Run) -> None:
    panel = ComparisonPanel.of(session_of(run))
    failing = Scripted({"chatty_kg/qir": ModelError("the server is gone", hint="start it")}, name="gone")
    panel.fork("gone", models=failing).result()
    assert "the server is gone" in text_of(panel.message)
    assert "start it" in text_of(panel.message)
    assert "failed: the server is gone" in text_of(panel._overview)


def test_one_of_several_comparisons_is_chosen(run: Run) -> None:
    panel = ComparisonPanel.of(session_of(run))
    panel.fork("with stars", models=Scripted(STARRING, name="other")).result()
    panel.fork("once more").result()
    assert panel.second.name == "once more"
    panel._with.index = 0
    assert panel.second.name == "with stars"


def test_a_panel_that_is_closed_hears_no_more(run: Run) -> None:
    session = Session(run)
    panel = ComparisonPanel.of(session)
    panel.close()
    assert session.listeners == []
