"""The one door to a model: what it accepts, what it says when it does not, and how it asks again."""

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict
from rdflib import Literal
from small import TEXTS, films, system_of
from tables import read_table

from kgwb import profile
from kgwb.errors import InvalidReplyError
from kgwb.llm import ChatReply, Scripted
from kgwb.run import Run, System, agent
from kgwb.run.answers import Answer, Value
from kgwb.run.ask import JSON_CHECK_NAME, SCHEMA_CHECK_NAME, Check, ask, check_reply, try_to_ask
from kgwb.run.prompts import Prompts
from kgwb.run.steps import CheckResult

HERE = Path(__file__).parent


class Reply(BaseModel):
    model_config = ConfigDict(extra="forbid")
    word: str
    number: int


SMALL = Check[Reply](
    "small", lambda reply: "" if reply.number < 10 else f"{reply.number} is not below 10"
)
KIND = Check[Reply]("kind", lambda reply: "rude word" if reply.word == "rude" else "")
GRAPH = films()
GOOD = {"word": "a", "number": 1}
DRAFT = '{"word": "draft", "number": 2}'


def run_with(*lines: Any, last_resort: Any = None, **settings: Any) -> tuple[Run, Scripted]:
    """A run whose one agent asks for a reply, and the model that says these lines."""

    @agent("asking")
    def asking(question: str, run: Run) -> int:
        variables, checks = {"question": question}, (SMALL, KIND)
        return ask(
            "made_up/split", variables, Reply, run, checks=checks, last_resort=last_resort
        ).number

    def number_asked(question: Any, dialogue: Any, run: Run) -> Answer:
        number = asking(question.text, run)
        return Answer("count", (Value(Literal(number), str(number)),))

    model, system = (
        Scripted({"made_up/split": list(lines)}),
        System("asks", number_asked, (asking,)),
    )
    how: Any = {"prompts": Prompts(texts=TEXTS), "settings": profile("fast", **settings)}
    return Run(system, "Why?", kg=GRAPH, models=model, **how), model


@pytest.mark.parametrize(
    "text",
    read_table(HERE / "replies_with_json.jsonl"),
)
@pytest.mark.parametrize("finish_reason", ["stop", "length"])
def test_the_json_in_a_reply_is_found(text: str, finish_reason: str) -> None:
    reply, results = check_reply(text, finish_reason, Reply, (SMALL,))
    assert reply == Reply(word="a", number=1)
    assert [(r.name, r.problem) for r in results] == [
        (JSON_CHECK_NAME, ""),
        (SCHEMA_CHECK_NAME, ""),
        ("small", ""),
    ]


@pytest.mark.parametrize(
    "text",
    [
        'So <think>it is {"word": "a", "number": 1}',
        f'<think>Not {DRAFT}\n```json\n{{"word": "a", "number": 1}}\n```\n',
        f'<think>Not {DRAFT}, rather {{"word": "a", "number": 1}}</think>\n',
        f'Not {DRAFT}, rather {{"word": "a", "number": 1}}</think>\n',
        '[THINK]{"word": "a", "number": 1}',
    ],
)
def test_the_json_that_ends_thoughts_is_the_reply_of_a_model_that_finished(text: str) -> None:
    reply, _ = check_reply(text, "stop", Reply, ())
    assert reply == Reply(word="a", number=1)
    reply, [result] = check_reply(text, "length", Reply, ())
    assert reply is None
    assert "length limit" in result.problem


def test_markers_of_thoughts_in_a_text_of_the_reply_are_part_of_it() -> None:
    for word in ("<think>", "</think>", "a</think>b<think>c"):
        reply, _ = check_reply(f"Here: {json.dumps({**GOOD, 'word': word})}", "stop", Reply, ())
        assert reply == Reply(word=word, number=1)


@pytest.mark.parametrize(
    ("text", "finish_reason", "check", "problem"),
    read_table(HERE / "invalid_replies.jsonl"),
)
def test_the_failed_check_of_an_invalid_reply(
    text: str, finish_reason: str, check: str, problem: str
) -> None:
    reply, results = check_reply(text, finish_reason, Reply, (SMALL,))
    assert reply is None
    assert (results[-1].name, problem in results[-1].problem) == (check, True), results


def test_replies_that_are_cut_off_ask_for_a_higher_limit() -> None:
    cut = ChatReply('{"word": "a', finish_reason="length")
    run, _ = run_with(cut, cut, cut, max_output_tokens=9)
    with pytest.raises(InvalidReplyError) as caught:
        run.go()
    assert "more than 9 tokens with the setting max_output_tokens" in caught.value.hint


def test_show_error_shows_the_last_reply_and_what_is_wrong_with_it() -> None:
    run, model = run_with(" ", "no idea", {"word": "rude", "number": 12}, GOOD, GOOD, theta=5)
    run.go()
    first, empty, second, third = [
        request.messages for request in model.requests
    ]  # the last is not asked
    assert [message.role for message in empty] == [
        "user",
        "user",
    ]  # some servers refuse an empty message
    assert second[: len(first)] == first
    assert [(message.role, message.content) for message in second[len(first) :]] == [
        ("assistant", "no idea"),
        (
            "user",
            "That reply cannot be used:\n- well-formed JSON: no JSON\n"
            "Answer again, with nothing but the JSON object asked for.",
        ),
    ]
    assert len(third) == len(first) + 2  # only the latest error, so that the prompt does not grow
    [no_reply] = run["asking"].attempts[0].problems
    assert no_reply.problem in empty[-1].content
    problems = run["asking"].attempts[2].problems
    assert [check.name for check in problems] == ["small", "kind"]
    for check in problems:
        assert f"- {check.name}: {check.problem}\n" in third[-1].content
    assert [run.calls[attempt.call].repeat for attempt in run["asking"].attempts] == [0, 0, 0, 0]


def test_ask_afresh_repeats_the_same_request_and_numbers_the_repeats() -> None:
    run, model = run_with("no idea", "still none", GOOD, repair="ask_afresh")
    run.go()
    assert len({request.messages for request in model.requests}) == 1
    assert [run.calls[attempt.call].repeat for attempt in run["asking"].attempts] == [0, 1, 2]
    assert [attempt.accepted for attempt in run["asking"].attempts] == [False, False, True]
    run.go()
    assert (str(run.answer), model.call_count()) == ("1", 3)


@pytest.mark.parametrize("repair", ["show_error", "ask_afresh"])
@pytest.mark.parametrize("theta", [1, 2, 4])
def test_after_theta_attempts_all_replies_are_in_the_error(repair: str, theta: int) -> None:
    run, model = run_with(
        *[{"word": "a", "number": 20 + n} for n in range(5)], theta=theta, repair=repair
    )
    with pytest.raises(InvalidReplyError) as caught:
        run.go()
    assert model.call_count() == theta
    assert [json.loads(attempt.reply)["number"] for attempt in caught.value.attempts] == [
        20 + n for n in range(theta)
    ]
    last_problem = f"{19 + theta} is not below 10"
    assert caught.value.attempts[-1].problems == (CheckResult("small", last_problem),)
    assert last_problem in caught.value.message
    assert "look at the attempts" in caught.value.hint
    assert (
        'attempt 1 failed: small: 20 is not below 10: {"word": "a", "number": 20}' in run.summary()
    )


def test_last_resort_may_accept_the_last_reply_of_the_right_form() -> None:
    replies = [{"word": "a", "number": 11}, {"word": "a", "number": 12}, "nothing"]
    run, _ = run_with(*replies, last_resort=lambda reply: reply.number < 30)
    assert str(run.go().answer) == "12"
    assert len(run["asking"].notes) == 1
    assert not any(attempt.accepted for attempt in run["asking"].attempts)
    run, _ = run_with(*replies, last_resort=lambda reply: reply.number > 30)
    with pytest.raises(InvalidReplyError):
        run.go()


@pytest.mark.parametrize("exhausted", ["error", "abstain"])
def test_without_a_valid_reply_the_settings_say_whether_it_is_an_error(exhausted: str) -> None:
    @agent
    def trying(text: str, run: Run) -> bool:
        return try_to_ask("made_up/split", {"question": text}, Reply, run) is None

    settings = profile("fast", theta=1, exhausted_attempts=exhausted)
    model = Scripted({"made_up/split": "no idea"})
    prompts = Prompts(texts=TEXTS)
    run = Run(system_of(trying), "x", kg=GRAPH, models=model, prompts=prompts, settings=settings)
    with nullcontext() if exhausted == "abstain" else pytest.raises(InvalidReplyError):
        run.go()
    assert len(run["trying"].notes) == (exhausted == "abstain")
