"""What a paper says, as data: a conformance test is marked with its claim, and with what would violate it.

    @conforms("section 3.1", "each role sees all triples")
    @violated_by("kgwb/systems/dog/question.py", "triples", "triples[:1]")
    @violated_by("prompts/dog/critic.md", "Compare the two questions.", "")
    def test_each_role_sees_all_triples() -> None: ...

`make mutations` makes each of these changes by itself, in a copy of the project, and runs the test below it. The test
has to fail: else it does not hold the claim.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import pytest

TestFunction = TypeVar("TestFunction", bound=Callable[..., Any])


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A line of an algorithm or a numbered claim of a paper, and what kgwb does instead of it."""

    source: str
    """Where the paper says it: "Algorithm 1, line 6", "section 5.1.3", "definition 3.2"."""
    paper: str
    """What the paper says, in our words. Profile ``paper`` does this."""
    code: str = ""
    """What the published code does, as in profile ``reference``. Empty: the same, or unknown."""
    fast: str = ""
    """What profile ``fast`` does. Empty: the same as the paper."""
    setting: str = ""
    """The setting that switches it, so that its effect can be measured alone."""


@dataclass(frozen=True, kw_only=True)
class Gap(Claim):
    """A claim that kgwb does not follow in any profile."""

    reason: str
    """What kgwb does instead, and why."""


@dataclass(frozen=True, kw_only=True)
class Mutation:
    """A change that violates what a test holds."""

    test: str
    """The name of the test that has to fail."""
    path: str
    """The changed file, from the folder of the project."""
    old: str
    """A text that stands once in the file."""
    new: str
    """What stands there instead."""


def violated_by(path: str, old: str, new: str) -> Callable[[TestFunction], TestFunction]:
    """Mark a test with a change that it has to fail on. The arguments are those of ``Mutation``."""

    def mark(test: TestFunction) -> TestFunction:
        mutation = Mutation(test=test.__name__, path=path, old=old, new=new)
        test.mutations = [mutation, *getattr(test, "mutations", ())]  # type: ignore[attr-defined]
        return test

    return mark


def conforms(
    source: str,
    paper: str,
    *,
    code: str = "",
    fast: str = "",
    setting: str = "",
    switched_by: str = "",
) -> Callable[[TestFunction], TestFunction]:
    """Mark a test as the one of a claim. The arguments are the fields of ``Claim``.

    ``switched_by`` is a setting that has a value of its own in profile ``paper``, and without it the
    test has to fail. A test of several claims is marked several times; the first mark comes first
    in the table.
    """
    claim = Claim(source=source, paper=paper, code=code, fast=fast, setting=setting or switched_by)

    def mark(test: TestFunction) -> TestFunction:
        claims = [claim, *getattr(test, "claims", ())]
        test.claims = claims  # type: ignore[attr-defined]
        return _violated_without(switched_by, test) if switched_by else test

    return mark


def _violated_without(setting: str, test: TestFunction) -> TestFunction:
    """Mark a test with the change that leaves a setting out of what profile ``paper`` changes."""
    path = f"kgwb/systems/{test.__module__.rpartition('test_')[2]}/settings.py"
    text = (Path(__file__).parents[2] / path).read_text(encoding="utf-8")
    line = re.search(rf'        "{setting}": .*\n', text)
    return violated_by(path, line[0] if line else setting, "")(test)


def by_profile(**expected: Any) -> pytest.MarkDecorator:
    """Run a test in some profiles: with each as ``name``, and with what is ``expected`` there."""
    return pytest.mark.parametrize(("name", "expected"), expected.items())


def mutations_of(module: ModuleType) -> list[Mutation]:
    """Return the mutations of a module's tests, in the order of the file."""
    found: list[Mutation] = []
    for value in vars(module).values():
        found += getattr(value, "mutations", ())
    return found


def claims_of(module: ModuleType) -> Iterator[tuple[Claim, str]]:
    """Yield each claim of a module with the name of its test, in the order of the file.

    The gaps, which are rows of gaps.toml, come last and have no test.
    """
    for name, value in vars(module).items():
        for claim in getattr(value, "claims", ()):
            yield claim, name
    system = module.__name__.rpartition("test_")[2]
    rows = tomllib.loads(Path(__file__).with_name("gaps.toml").read_text(encoding="utf-8"))
    for row in rows.get(system, ()):
        yield Gap(**row), ""
