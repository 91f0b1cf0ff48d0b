"""Every command that asks a model, with servers that behave like those of known providers, and in trouble."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from providers import PROVIDERS, TROUBLES, Provider

from kgwb import systems
from kgwb.cli import main

OPENAI, *_ = PROVIDERS
EVERY_SYSTEM = systems.list_systems()
Capture = pytest.CaptureFixture[str]


def spec(server: object) -> str:
    return server.tiny().name  # type: ignore[attr-defined,no-any-return]


def rows(table: str, text: str) -> list[str]:
    """The lines of a printed table, which begins with a header."""
    lines = text.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith(table))
    found = []
    for line in lines[start + 1 :]:
        if not line.strip():
            break
        found.append(line)
    return found


@pytest.mark.parametrize("provider", PROVIDERS, ids=lambda provider: provider.name)
def test_doctor_tells_what_a_provider_refuses_and_every_system_answers(
    provider: Provider, here: Path, capsys: Capture
) -> None:
    with provider.started() as server:
        code = main(["doctor", "--model", spec(server), "--systems", "all", "--yes"])
    out = capsys.readouterr().out
    answers = rows("system  ", out)
    assert code == 0, out
    assert [line.split()[0] for line in answers] == list(EVERY_SYSTEM)
    assert all("2001-07-20" in line for line in answers), out
    told = rows("the model  ", out) if "\nthe model  " in out else []
    for refusal in provider.refusals:
        if refusal.part != "tools":
            assert any(line.startswith(f"refuses {refusal.reported}  ") for line in told), out
    for found in provider.finds:
        assert any(line.startswith(found) for line in told), out
    assert len(told) == sum(refusal.part != "tools" for refusal in provider.refusals) + len(
        provider.finds
    )
    for name, value in provider.headers.items():
        if "ratelimit" in name:
            assert any(line.split() == [name, value] for line in rows("rate limit", out))
    assert f"\ntools: {provider.tools}" in out


def test_doctor_waits_and_tells_the_limits(here: Path, capsys: Capture) -> None:
    limited, *_ = TROUBLES
    with OPENAI.started(limited) as server:
        code = main(["doctor", "--model", spec(server), "--systems", "dog,triad", "--yes"])
    out = capsys.readouterr().out
    assert code == 0, out
    assert limited.wait in out
    for name, value in OPENAI.headers.items():
        assert [name, value] in [line.split() for line in rows("rate limit", out)]


def test_doctor_goes_on_after_a_system_that_fails(here: Path, capsys: Capture) -> None:
    Path("mine.py").write_text(OWN_SYSTEM)
    names = "triad,./mine.py,chatty_kg"
    with OPENAI.started() as server:
        code = main(["doctor", "--model", spec(server), "--systems", names, "--yes"])
    out = capsys.readouterr().out
    states = [line.split()[:2] for line in out.splitlines() if line.startswith(("ok ", "failed "))]
    assert code == 1
    assert states[-3:] == [["ok", "triad"], ["failed", "mine"], ["ok", "chatty_kg"]]
    assert "  mine           calls not known\n" in out
    assert [line.split()[1] for line in rows("system  ", out)] == [
        "2001-07-20",
        "failed",
        "2001-07-20",
    ]


OWN_SYSTEM = """
from kgwb.build import Answer, Dialogue, Question, Run, System, agent

@agent("ask")
def ask(question: Question, run: Run) -> Answer:
    return 1 / 0

def answer(question: Question, dialogue: Dialogue, run: Run) -> Answer:
    return ask(question, run)

SYSTEM = System("mine", answer, [ask])
"""


def test_doctor_says_the_cost_by_the_table_of_prices(here: Path, capsys: Capture) -> None:
    Path("prices.toml").write_text(
        'currency = "EUR"\n[[price]]\nmodel = "openai:tiny*"\ninput = 1000000\noutput = 2000000\n'
    )
    with OPENAI.started() as server:
        command = ["doctor", "--model", spec(server), "--systems", "chatty_kg", "--yes"]
        assert main([*command, "--prices", "prices.toml"]) == 0
        priced = capsys.readouterr().out
        assert main(command) == 0
        unpriced = capsys.readouterr().out
    # 1,545 tokens of the prompt and 50 of the reply were recorded; the server reports 12 and 5
    assert "1 call, tokens 1,595, 1,645.00 EUR" in priced
    assert rows("system  ", priced)[0].endswith("  22.00 EUR")
    assert any(line.endswith(" EUR") for line in rows("kgwb experiment", priced))
    assert "EUR" not in unpriced and "1 call, tokens 1,595, price not known" in unpriced


@pytest.mark.parametrize(("reply", "chats"), [("n\n", 0), ("\n", 0), ("y\n", 2), ("YES\n", 2)])
def test_doctor_asks_for_a_confirmation(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture, reply: str, chats: int
) -> None:
    terminal = StringIO(reply)
    terminal.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr("sys.stdin", terminal)
    with OPENAI.started() as server:
        assert main(["doctor", "--model", spec(server), "--systems", "chatty_kg"]) == 0
        assert len(server.chats) == chats  # with the small request with a tool


def test_doctor_asks_nothing_where_nobody_can_confirm(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr("sys.stdin", StringIO())
    with OPENAI.started() as server:
        assert main(["doctor", "--model", spec(server), "--systems", "chatty_kg"]) == 2
        assert not server.chats
    assert "--yes" in capsys.readouterr().err
