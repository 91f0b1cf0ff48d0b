"""The dialogue: context, translation, classifier, rephraser, "what else", and answers as sentences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from small import PAPER, alone, iri

from kgwb import profile
from kgwb.errors import InvalidReplyError
from kgwb.run import Run
from kgwb.run.answers import NOT_IN_GRAPH, Answer, Context, Dialogue, Question, Turn, Value
from kgwb.run.steps import CheckResult
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
    assert bool(run["context"].notes) == bool(cut)


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
        ("Wer ist das?", profile("fast", translate="never")),
    ],
)
def test_english_is_not_translated_and_nothing_is_if_switched_off(
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
def test_a_question_in_another_language_is_translated(question: str) -> None:
    english = "Who directed Arrival?"
    reply = {"translator": {"question": f"{english} "}}
    translated, _, model = alone(
        lambda run: chat.translate_question(Question(question), run), reply
    )
    assert translated == Question(english, original=question)
    assert model.call_count() == 1


def test_a_question_that_comes_back_as_it_was_is_not_said_to_be_translated() -> None:
    question = Question("Wer hat Arrival gedreht?")
    same, run, _ = alone(
        lambda run: chat.translate_question(question, run),
        {"translator": {"question": question.text}},
    )
    assert same == question
    [note] = run["translator"].notes
    assert note.startswith("not translated")


@pytest.mark.parametrize(
    "work",
    [
        lambda run: chat.translate_question(Question("Wer ist das?"), run),
        lambda run: rephrase_question("And he?", SPOKEN, run),
    ],
)
def test_an_empty_translation_or_rephrased_question_is_invalid(work: Callable[[Run], Any]) -> None:
    empty = {"translator": {"question": " "}, "rephraser": {"question": "\n"}}
    with pytest.raises(InvalidReplyError) as caught:
        alone(work, empty)
    [problem] = caught.value.attempts[-1].problems
    assert problem == CheckResult("not empty", "the question is empty")


# --- the answer as a sentence

DENIS = Answer("list", (Value(iri("denis"), "Denis Villeneuve"),))


def test_a_sentence_has_every_value() -> None:
    sentence = "Arrival was directed by denis villeneuve."
    sentences = [{"sentence": "He directed it."}, {"sentence": f"{sentence} "}]
    reworded, run, _ = alone(
        lambda run: chat.write_answer(DENIS, "Who directed it?", run), {"answer_writer": sentences}
    )
    assert (reworded.text, reworded.values) == (sentence, DENIS.values)
    [problem] = run["answer_writer"].attempts[0].problems
    assert "Denis Villeneuve" in problem.problem


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
def test_words_like_else_ask_for_other_values(
    question: str, context: Context, settings: Settings, others: bool
) -> None:
    assert (
        alone(lambda run: chat.asks_for_others(question, context, run), settings=settings)[0]
        is others
    )


def test_values_of_earlier_answers_are_left_out() -> None:
    left, run, _ = alone(
        lambda run: chat.answer_what_else(found("arrival", "dune", "sicario"), SAID, run)
    )
    assert left.labels == ("arrival", "sicario")
    [note] = run["what_else"].notes
    assert note.endswith(": dune")


NOTHING_FOUND = Answer("list", reason=f"{NOT_IN_GRAPH}: x")


@pytest.mark.parametrize("answer", [found("dune"), NOTHING_FOUND])
def test_an_answer_that_has_nothing_new_has_a_reason(answer: Answer) -> None:
    left: Any = alone(lambda run: chat.answer_what_else(answer, SAID, run))[0]
    assert (left.values, left.reason.startswith(NOT_IN_GRAPH)) == ((), True)
    assert (left == answer) is (answer is NOTHING_FOUND)


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
    label = "dependent" if calls else "self-contained"
    assert (classified.label, model.call_count()) == (label, calls)


def test_the_model_does_not_see_the_dialogue() -> None:
    question = "And the year?"
    classified, _, model = alone(lambda run: classify_question(question, TALKED, run), REPLY)
    assert classified == Classification("dependent", "elliptical")
    assert model.requests[0].variables == {"question": question}
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


def test_the_rephraser_sees_answers_entities_and_standalone_forms() -> None:
    reply = {"rephraser": {"question": "In which \n country?"}}
    rephrased, _, model = alone(lambda run: rephrase_question("In which?", SPOKEN, run), reply)
    assert rephrased == RephrasedQuestion("In which country?", "In which?")
    first, second = SPOKEN.turns
    assert model.requests[0].variables["dialogue"] == [
        {"question": first.question, "answers": ["Denis Villeneuve"], "about": ["Dune"]},
        {"question": second.standalone, "answers": ["Gentilly"], "about": []},
    ]
