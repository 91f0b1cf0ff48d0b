"""What answers cost, and the budget that stops a benchmark."""

import json
from pathlib import Path
from typing import Any

import pytest
from small import CHATTY, DIRECTED, chatty, films, iri

from kgwb.bench.cost import Budget, Cost, Prices, by_model, cost_table, costs, load_prices, stages
from kgwb.bench.questions import BenchQuestion
from kgwb.bench.results import Results
from kgwb.bench.runner import Bench, Setup
from kgwb.cli import main
from kgwb.errors import InputError
from kgwb.kg.embeddings import Embeddings
from kgwb.llm import ChatReply, Scripted
from kgwb.run.prompts import Prompts
from kgwb.run.record import Step
from kgwb.settings import Settings

TABLE = """
currency = "EUR"
[[price]]
model = "openai:large*"
input = 2.0
output = 8
date = "2026-11-22"
source = "made up"
[[price]]
model = "*"
input = 0.5
output = 1
"""


def used(prompt: int, completion: int, **models: tuple[int, int]) -> dict[str, Any]:
    by_name = {
        name: {"calls": 1, "prompt_tokens": tokens[0], "completion_tokens": tokens[1]}
        for name, tokens in ({"openai:large": (prompt, completion)} | models).items()
    }
    return {"prompt_tokens": prompt, "completion_tokens": completion, "models": by_name}


def prices(folder: Path, text: str = TABLE) -> Prices:
    (folder / "prices.toml").write_text(text)
    return load_prices(folder / "prices.toml")


# --- money


def test_tokens_cost_what_the_first_price_that_fits_says(tmp_path: Path) -> None:
    table = prices(tmp_path)
    assert table.of("openai:large-2026").source == "made up"
    row = used(1_000_000, 250_000, small=(400_000, 100_000))
    assert table.money(row) == pytest.approx(2 + 2 + 0.2 + 0.1)
    assert table.money(row, "small") == pytest.approx(0.5 + 0.25 + 0.2 + 0.1)
    assert table.money({"seconds": 1.0}) == 0  # a line of an older kgwb tells no tokens


def test_the_papers_qald_9_run_costs_what_the_paper_says(tmp_path: Path) -> None:
    """Chatty-KG, section 7.4: 326K tokens in and 7.73K out, $0.88; one price follows from the other."""
    row = used(326_000, 7_730)
    output = 10.0
    table = TABLE.replace("output = 8", f"output = {output}").replace(
        "input = 2.0", f"input = {(0.88 - output * 0.00773) / 0.326}"
    )
    assert prices(tmp_path, table).money(row) == pytest.approx(0.88)


def test_the_table_that_is_shipped_has_no_price_of_a_hosted_model() -> None:
    shipped = load_prices()
    assert shipped.of("rules").input == shipped.of("ollama:phi4").output == 0
    with pytest.raises(InputError, match="no price of 'openai:gpt-4o'") as complaint:
        shipped.of("openai:gpt-4o")
    assert '[[price]] with model = "openai:gpt-4o"' in complaint.value.hint


@pytest.mark.parametrize(
    "text",
    ["[", 'price = 1\ncurrency = "EUR"', "", TABLE.replace("2.0", "-1"), TABLE.replace("date", "day")],
)
def test_a_table_that_cannot_be_read_is_named(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError, match=r"cannot read the prices .*prices\.toml"):
        prices(tmp_path, text)


# --- by stage, by model, by question


def step(key: str, parent: str, seconds: float) -> Step:
    return Step(key, key.partition("[")[0], "", parent, {}, str, seconds=seconds)


def test_seconds_by_stage_count_every_step_once() -> None:
    steps = [
        step("understanding", "", 1.0),
        step("classifier", "understanding", 0.9),
        step("qir", "", 2.0),
        step("query_planning", "", 20.0),
        step("matching", "query_planning", 5.0),
        step("entity_linking[x]", "matching", 4.0),
        step("vertex_selection[x]", "entity_linking[x]", 3.0),
        step("query_generator", "query_planning", 6.0),
        step("execution", "query_planning", 7.0),
    ]
    assert stages(CHATTY, steps) == {"understanding": 3.0, "linking": 5.0, "execution and selection": 13.0}


def test_every_agent_of_chatty_kg_but_the_supervisor_of_all_stages_has_a_stage() -> None:
    from kgwb.systems.chatty_kg.gold import STAGES

    assert {spec.name for spec in CHATTY.agents} - {*STAGES} == {"query_planning"}
    assert not {*STAGES} - {spec.name for spec in CHATTY.agents}


def test_calls_and_tokens_by_model() -> None:
    said = {
        name: ChatReply(json.dumps(reply), prompt_tokens=10, completion_tokens=3)
        for name, reply in DIRECTED.items()
    }
    run = chatty("Who directed Arrival?", Scripted(said, name="one")).go()
    assert by_model(run.calls.values()) == {"one": {"calls": 2, "prompt_tokens": 20, "completion_tokens": 6}}


def test_median_and_percentile_over_the_questions_that_tell(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"seconds": float(n), "stages": {"linking": n / 2}, "model_calls": 2, **used(n * 1_000_000, 0)}
        for n in range(1, 5)
    ]
    rows.append({"seconds": 5.0, "model_calls": 3, "queries": 1})  # an older line
    told = {cost.name: cost for cost in costs(rows, prices(tmp_path), ["openai:tiny"])}
    assert told["seconds"] == Cost("seconds", 5, 15.0, 3.0, pytest.approx(4.8))
    assert told["seconds, linking"] == Cost("seconds, linking", 4, 5.0, 1.25, pytest.approx(1.925))
    assert (told["model calls"].total, told["prompt tokens"].total) == (11, 10_000_000)
    assert (told["EUR"].total, told["EUR, priced as openai:tiny"].total) == (20.0, 5.0)
    assert cost_table([*told.values()]).splitlines()[2].split() == "seconds, linking 1.25 1.925 5".split()
    assert costs([])[0] == Cost("seconds", 0, 0.0, 0.0, 0.0)


# --- a budget


QUESTIONS = [
    BenchQuestion(id=str(n), question="Who directed Arrival?", answers=(str(iri("denis")),)) for n in range(6)
]


def bench(folder: Path, budget: Budget | None, workers: int = 1) -> tuple[Bench, list[str]]:
    said = {
        name: ChatReply(json.dumps(reply), prompt_tokens=10, completion_tokens=5)
        for name, reply in DIRECTED.items()
    }
    model = Scripted(lambda request: said[request.task], name="openai:large")
    setup = Setup(films(), CHATTY, {"": model}, Settings(), Prompts(), Embeddings("lexical"))
    runner = Bench(setup, Results(folder, setup.config(QUESTIONS)), workers=workers, budget=budget)
    return runner, [row["id"] for row in runner.run(QUESTIONS)]


@pytest.mark.parametrize(
    ("limits", "asked"),
    [
        ({"tokens": 90}, 3),
        ({"model_calls": 3}, 2),
        ({"money": 0.00007, "tokens": 10**9}, 1),
        ({"seconds": 1e-9}, 1),
        ({"tokens": 10**9}, 6),
    ],
)
def test_a_budget_stops_the_run_and_a_larger_one_goes_on(
    tmp_path: Path, limits: dict[str, float], asked: int
) -> None:
    runner, done = bench(tmp_path, Budget(limits, prices(tmp_path)))
    assert (len(done), bool(runner.stopped)) == (asked, asked < len(QUESTIONS))
    again, same = bench(tmp_path, Budget(limits, prices(tmp_path)))
    assert (same, bool(again.stopped)) == (done, asked < len(QUESTIONS))  # what was spent then counts
    assert bench(tmp_path, None)[1] == [question.id for question in QUESTIONS]


def test_what_runs_when_the_budget_is_used_up_is_kept(tmp_path: Path) -> None:
    _, done = bench(tmp_path, Budget({"tokens": 30}), workers=4)
    assert 1 <= len(done) <= 4


def test_an_unknown_budget_is_named() -> None:
    with pytest.raises(InputError, match="'euros' is no budget"):
        Budget({"euros": 1})


@pytest.mark.parametrize("limit", [float("nan"), -1, 0])
def test_a_budget_is_above_nothing(limit: float) -> None:
    with pytest.raises(InputError, match="is not above 0"):
        Budget({"tokens": limit})


@pytest.mark.parametrize(
    "entry",
    [
        "model = 5\ninput = 1",
        *(f'model = "m"\ninput = {cost}' for cost in "-1 nan inf true '1' 1e400".split()),
    ],
)
def test_a_price_is_a_number_of_a_named_model(entry: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read the prices"):
        prices(tmp_path, f'currency = "EUR"\n[[price]]\n{entry}\noutput = 1')


def test_a_table_of_costs_does_nothing_to_the_terminal() -> None:
    assert "\x1b" not in cost_table([Cost("\x1b[2J", 1, 1, 1, 1)])


# --- in the terminal


def test_the_terminal_tells_costs_and_stops_at_the_budget(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    prices(tmp_path)
    rows = [{"id": str(n), "question": "Who directed Arrival?", "answers": []} for n in range(3)]
    Path("q.jsonl").write_text("\n".join(map(json.dumps, rows)))
    command = ["bench", "--kg", "films", "--questions", "q.jsonl", "--out", "out"]
    assert main([*command, "--budget", "model_calls=1"]) == 3
    said = capsys.readouterr()
    assert "stopped with 1 of 3 questions asked: the budget is used up (model calls" in said.err
    assert "larger budget" in said.err
    assert main([*command, "--prices", "prices.toml", "--priced-as", "openai:large"]) == 0
    assert "EUR, priced as openai:large" in capsys.readouterr().out
    assert main([*command, "--priced-as", "openai:gpt-4o"]) == 0
    said = capsys.readouterr()
    assert "no price of 'openai:gpt-4o'" in said.err
    assert "model calls" in said.out
    assert main([*command, "--budget", "model_calls=many"]) == 2
    assert "model_calls cannot be 'many'" in capsys.readouterr().err
    assert main([*command, "--model", "openai:x@http://127.0.0.1:9/v1", "--budget", "money=1"]) == 2
    assert "no price of 'openai:x" in capsys.readouterr().err
