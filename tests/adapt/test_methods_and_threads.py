"""A pipeline of methods whose branches run in threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, as_completed, wait
from typing import Any

import httpx
import pytest
from pipeline_servers import Endpoint
from pydantic import BaseModel
from small import answer_of, run_of

from kgwb.build import (
    agent,
    check_system,
    steps_in,
    system_from_function,
    wrap_executor,
)
from kgwb.errors import SettingError

QUESTION = "Who made Arrival?"


def test_requests_in_threads_that_do_not_know_the_run_are_noticed(endpoint: Endpoint) -> None:
    @agent
    def look(question: str) -> int:
        with ThreadPoolExecutor() as pool:
            replies = list(pool.map(httpx.get, [f"{endpoint.url}?query=ASK%7B%7D"] * 2))
        return len(replies)

    def answer(question: str) -> int:
        return look(question)

    checked = check_system(system_from_function("threads", answer, agents=[look]), QUESTION)
    [problem] = checked.problems
    assert "2 requests to 127.0.0.1" in problem
    assert "look" in problem


def test_done_futures_are_completed_in_the_order_of_their_branches_each_time() -> None:
    def answer(question: str) -> list[int]:
        pool = wrap_executor(ThreadPoolExecutor())
        futures = [pool.submit(int, number) for number in range(40)]
        first = [future.result() for future in as_completed(futures)]
        done, _ = wait([pool.submit(int, number) for number in range(9)])
        return [*first, *[future.result() for future in done]]

    run = run_of(system_from_function("several", answer), "Who?", None)
    outputs = [run.go().steps[0].output for _ in range(4)]
    assert outputs[0][:40] == list(range(40))
    assert outputs[1:] == outputs[:1] * 3


def test_an_error_in_a_branch_is_raised_by_its_future() -> None:
    def fail() -> None:
        raise ValueError("no such branch")

    def answer(question: str) -> str:
        with wrap_executor(ThreadPoolExecutor()) as pool:
            branch = pool.submit(fail)
        return str(branch.exception())

    run = run_of(system_from_function("failing", answer, agents=[]), QUESTION, None)
    assert run.go().answer is not None
    assert run.output("answer") == "no such branch"


def test_what_is_no_executor_is_refused() -> None:
    with pytest.raises(SettingError, match="not a ThreadPoolExecutor"):
        wrap_executor(len)  # type: ignore[arg-type]


# --- methods of an object of a library


class Chain(BaseModel):
    """As LangChain's chains: an object of pydantic, which calls its own methods."""

    prefix: str

    def draft(self, question: str, *, loud: bool = False) -> str:
        return f"{self.prefix} {question}"

    async def check(self, text: str) -> bool:
        return text.endswith("?")

    async def answer(self, question: str) -> list[str]:
        drafted = self.draft(question, loud=True)
        return [drafted] if await self.check(drafted) else []


class Plain:
    def __init__(self, prefix: str) -> None:
        self.prefix = prefix

    draft, check, answer = Chain.draft, Chain.check, Chain.answer


class Marked(Plain):
    """With a method that is a step already, of another name."""

    @agent("first")
    def draft(self, question: str, *, loud: bool = False) -> str:
        return f"{self.prefix} {question}"


class Slotted:
    __slots__ = ()

    def draft(self) -> None: ...


class Untyped(Plain):
    """As methods of libraries whose types only type checkers import."""

    def draft(self, question: Unknown, *, loud: bool = False) -> Unknown:  # type: ignore[name-defined, override]  # noqa: F821
        return f"{self.prefix} {question}"

    async def check(self, text: Unknown) -> bool:  # type: ignore[name-defined]  # noqa: F821
        return str(text).endswith("?")


@pytest.mark.parametrize("kind", [Chain, Plain, Marked, Untyped])
def test_methods_of_an_object_are_steps_of_runs(kind: Any) -> None:
    chain = kind(prefix="the")
    for _ in range(2):  # as a cell that is executed again
        steps = steps_in(chain, "check", write="draft")
    system = system_from_function("chain", chain.answer, agents=steps)
    run = run_of(system, "name?", None).go()
    assert [step.key for step in run.steps] == ["answer", "write", "check", "to_answer"]
    assert run["write"].inputs == {"question": "name?", "loud": True}
    assert answer_of(run).labels == ("the name?",)
    edited = run.fork().override("write", "none").go()
    assert edited.answer is not None and not edited.answer.values
    assert kind(prefix="a").draft("b") == "a b"
    assert chain.draft("outside") == "the outside"
    assert bool(check_system(system, "name?"))


@pytest.mark.parametrize(
    ("owner", "method"),
    [(Chain(prefix=""), "nothing"), (Chain(prefix=""), "prefix"), (Slotted(), "draft")],
)
def test_what_cannot_be_made_a_step_is_refused(owner: Any, method: str) -> None:
    with pytest.raises(SettingError):
        steps_in(owner, method)
