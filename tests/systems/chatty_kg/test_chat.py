"""The dialogue: context, translation, classifier and rephraser, "what else", the answer as a sentence."""

from __future__ import annotations

from typing import Any

import pytest
from small import PAPER, alone, iri

from kgwb import profile
from kgwb.errors import InvalidReplyError
from kgwb.flow import Answer, Context, Dialogue, Question, Turn, Value
from kgwb.settings import Settings
from kgwb.systems.chatty_kg import chat
from kgwb.systems.chatty_kg.chat import classify_question, rephrase_question
from kgwb.systems.chatty_kg.records import Classification, RephrasedQuestion

TURN = Turn("Which films did Denis Villeneuve direct?", ("Arrival", "Dune", "Sicario"))


@pytest.mark.parametrize(
    ("most", "kept", "cut"),
    [(100, ("Arrival", "Dune", "Sicario"), 0), (2, ("Arrival", "Dune"), 2), (1, ("Arrival",), 4)],
)
def test_the_context_holds_every_turn_with_at_most_l_answers(
    most: int, kept: tuple[str, ...], cut: int
) -> None:
    settings = profile("fast", answers_in_context=most)
    context, run, _ = alone(
        lambda run: chat.build_context(Dialogue((TURN, TURN)), run), settings=settings
    )
    assert [turn.answers for turn in context.turns] == [kept, kept]
    assert context.cut == cut
    note = f"{cut} earlier answers left out of the context: at most {most} a turn"
    assert run["context"].notes == ([note] if cut else [])


# --- translation


@pytest.mark.parametrize(
    ("question", "settings"),
    [
        ("Who directed Arrival?", Settings()),
        ("Arrival director", Settings()),
        ("Wrote Stephen King It?", Settings()),
        ("What does Das Boot mean?", Settings()),
        ("Dune?", Settings()),
        ("1984", Settings()),
        ("Wer ist das?", profile("fast", translate=False)),
    ],
)
def test_english_is_not_translated_and_nothing_if_switched_off(
    question: str, settings: Settings
) -> None:
    translated, _, model = alone(
        lambda run: chat.translate_question(Question(question), run), settings=settings
    )
    assert (translated, model.call_count()) == (Question(question), 0)


@pytest.mark.parametrize(
    "question",
    [
        "Wer hat Arrival gedreht?",
        "¿Quién dirigió la película Arrival?",
        "Qui est le réalisateur de Arrival ?",
        "Кто снял фильм «Прибытие»?",
        "アライバルの監督は誰ですか",
        "अराइवल का निर्देशन किसने किया",
    ],
)
def test_other_languages_are(question: str) -> None:
    reply = {"translator": {"question": "Who directed Arrival? "}}
    translated, _, model = alone(
        lambda run: chat.translate_question(Question(question), run), reply
    )
    assert translated == Question("Who directed Arrival?", original=question)
    assert model.call_count() == 1


def test_an_empty_translation_or_rephrasing_is_turned_away() -> None:
    empty = {"translator": {"question": " "}, "rephraser": {"question": "\n"}}
    with pytest.raises(InvalidReplyError, match="the question is empty"):
        alone(lambda run: chat.translate_question(Question("Wer ist das?"), run), empty)
    with pytest.raises(InvalidReplyError, match="the question is empty"):
        alone(lambda run: rephrase_question("And he?", SPOKEN, run), empty)


# --- the answer as a sentence

DENIS = Answer("list", (Value(iri("denis"), "Denis Villeneuve"),))


def test_a_sentence_holds_every_value() -> None:
    sentences = [
        {"sentence": "He directed it."},
        {"sentence": "Arrival was directed by denis villeneuve. "},
    ]
    reworded, run, _ = alone(
        lambda run: chat.reword_answer(DENIS, "Who directed it?", run), {"answer_writer": sentences}
    )
    assert str(reworded) == "Arrival was directed by denis villeneuve."
    assert reworded.values == DENIS.values
    assert (
        run["answer_writer"].attempts[0].checks[-1].problem
        == "the sentence does not hold Denis Villeneuve"
    )


@pytest.mark.parametrize(
    ("asked_for", "values", "rewordable"),
    [(True, 1, True), (True, 5, True), (True, 6, False), (True, 0, False), (False, 1, False)],
)
def test_only_short_answers_are_reworded_and_only_if_asked_for(
    asked_for: bool, values: int, rewordable: bool
) -> None:
    answer = Answer("list", DENIS.values * values)
    settings = profile("fast", reword_answer=asked_for)
    assert alone(lambda run: chat.can_be_reworded(answer, run), settings=settings)[0] is rewordable


# --- what else

SAID = Context(
    (Turn("Who directed Dune?", ("Denis Villeneuve",), vertices=(iri("denis"), iri("dune"))),)
)


def found(*names: str) -> Answer:
    return Answer("list", tuple(Value(iri(name), name) for name in names))


@pytest.mark.parametrize(
    ("question", "context", "settings", "others"),
    [
        ("What else did he direct?", SAID, Settings(), True),
        ("Who besides him?", SAID, Settings(), True),
        ("Which other films did he make?", SAID, Settings(), True),
        ("What did he direct?", SAID, Settings(), False),
        ("What else is there?", Context(), Settings(), False),
        ("What else did he direct?", SAID, PAPER, False),
    ],
)
def test_else_asks_for_others(
    question: str, context: Context, settings: Settings, others: bool
) -> None:
    assert (
        alone(lambda run: chat.asks_for_others(question, context, run), settings=settings)[0]
        is others
    )


def test_else_leaves_out_what_was_talked_about() -> None:
    left, run, _ = alone(
        lambda run: chat.leave_out_mentioned(found("arrival", "dune", "sicario"), SAID, run)
    )
    assert left.labels == ("arrival", "sicario")
    assert run["what_else"].notes == ["left out as already talked about: dune"]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (found("dune"), "nothing else than what was said"),
        (Answer("list", reason="not in this graph: x"), "x"),
    ],
)
def test_nothing_else_is_said_with_its_reason(answer: Answer, reason: str) -> None:
    left: Any = alone(lambda run: chat.leave_out_mentioned(answer, SAID, run))[0]
    assert not left
    assert reason in str(left)


# --- classifier


REPLY = {"classifier": {"reason": "elliptical", "label": "dependent"}}
TALKED = Context((Turn("Who directed Dune?", ("Denis Villeneuve",)),))


@pytest.mark.parametrize(
    ("context", "settings", "calls"),
    [
        (Context(), Settings(), 0),
        (TALKED, Settings(), 1),
        (Context(), PAPER, 1),
        (TALKED, PAPER, 1),
    ],
)
def test_without_history_fast_does_not_ask(
    context: Context, settings: Settings, calls: int
) -> None:
    classified, _, model = alone(
        lambda run: classify_question("And the year?", context, run), REPLY, settings=settings
    )
    assert model.call_count() == calls
    alone_by_rule = Classification("self-contained", "nothing was said before")
    assert classified == (Classification("dependent", "elliptical") if calls else alone_by_rule)


def test_the_model_does_not_see_the_dialogue() -> None:
    _, _, model = alone(lambda run: classify_question("And the year?", TALKED, run), REPLY)
    assert model.requests[0].variables == {"question": "And the year?"}
    assert "Villeneuve" not in str(model.requests[0].messages)


@pytest.mark.parametrize(
    ("question", "calls"),
    [
        ("Where was he born?", 0),
        ("When did it come out?", 0),
        ("Who is Denis Villeneuve, and where was he born?", 1),
        ("Who wrote 1984, and was it filmed?", 1),
        ("When was the first movie released?", 1),
    ],
)
def test_a_pronoun_before_any_name_leaves_no_doubt(question: str, calls: int) -> None:
    classified, _, model = alone(lambda run: classify_question(question, TALKED, run), REPLY)
    assert (classified.label, model.call_count()) == ("dependent", calls)
    assert (
        alone(lambda run: classify_question(question, TALKED, run), REPLY, settings=PAPER)[
            2
        ].call_count()
        == 1
    )


# --- rephraser


SPOKEN = Context(
    (
        Turn("Who directed Dune?", ("Denis Villeneuve",), entities=("Dune",)),
        Turn("Where was he born?", ("Gentilly",), standalone="Where was Denis Villeneuve born?"),
    )
)


def test_it_sees_answers_entities_and_standalone_forms() -> None:
    reply = {"rephraser": {"question": "In which country \n is Gentilly?"}}
    rephrased, _, model = alone(
        lambda run: rephrase_question("Which country is that in?", SPOKEN, run), reply
    )
    assert rephrased == RephrasedQuestion(
        "In which country is Gentilly?", "Which country is that in?"
    )
    assert model.requests[0].variables["dialogue"] == [
        {"question": "Who directed Dune?", "answers": ["Denis Villeneuve"], "about": ["Dune"]},
        {"question": "Where was Denis Villeneuve born?", "answers": ["Gentilly"], "about": []},
    ]
