"""What answers cost, and the budget that stops a benchmark."""

import json
import time
from collections.abc import Callable
from copy import copy
from pathlib import Path
from typing import Any

import commands
import pytest
from asked import ASKED
from commands import write_questions
from small import CHATTY, DIRECTED, iri, run_of, workbench
from tables import read_table

from kgwb.bench.cost import (
    Budget,
    CostSummary,
    Prices,
    load_prices,
    sum_seconds_by_stage,
    sum_usage,
    summarize_costs,
)
from kgwb.bench.questions import BenchQuestion
from kgwb.bench.results import Results, make_row
from kgwb.bench.runner import Benchmark, BenchSetup
from kgwb.errors import InputError
from kgwb.kg.embeddings import Embeddings
from kgwb.llm import ChatReply, ChatRequest, Scripted
from kgwb.run import System, agent
from kgwb.run.answers import Answer
from kgwb.run.steps import Call, Step, Totals
from kgwb.run.systems import list_systems, load_system

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


def used(prompt: int, completion: int, model: str = "openai:large") -> dict[str, Any]:
    tokens = {"prompt_tokens": prompt, "completion_tokens": completion}
    return {**tokens, "models": {model: {"calls": 1, **tokens}}}


def prices(folder: Path, text: str = TABLE) -> Prices:
    (folder / "prices.toml").write_text(text)
    return load_prices(folder / "prices.toml")


def test_the_first_price_that_matches_a_model_applies(tmp_path: Path) -> None:
    table = prices(tmp_path)
    assert table.find_price("openai:large-2026").source == "made up"
    assert table.compute_money(used(1_000_000, 250_000)) == pytest.approx(2 + 2)
    assert table.compute_money(used(400_000, 100_000, "small")) == pytest.approx(0.2 + 0.1)
    assert table.compute_money({"seconds": 1.0}) == 0  # a line of an older kgwb has no tokens


def counted(calls: int, uncounted: int) -> dict[str, Any]:
    """What calls used, for some of which the server did not report the tokens."""
    counts = {"calls": calls, "uncounted_calls": uncounted}
    tokens = {"prompt_tokens": 100, "completion_tokens": 50}
    return {**tokens, "models": {"openai:large": {**counts, **tokens}}}


@pytest.mark.parametrize("row", [used(0, 0), used(0, 50), counted(3, 1)])
def test_money_and_tokens_are_not_known_where_a_server_does_not_report_all_tokens(
    row: dict[str, Any], tmp_path: Path
) -> None:
    table = prices(tmp_path)
    uses: tuple[Callable[[], object], ...] = (
        lambda: table.compute_money(row),
        lambda: summarize_costs([{"seconds": 1.0, **row}], table),
        lambda: Budget({"money": 1}, table).add(row),
        lambda: Budget({"tokens": 1}, table).add(row),
    )
    for use in uses:
        with pytest.raises(InputError, match="not known"):
            use()
    Budget({"model_calls": 1}, table).add(row)


@pytest.mark.parametrize(
    ("replies", "uncounted", "shown"), read_table(Path(__file__).with_name("known_tokens.jsonl"))
)
def test_tokens_that_are_known_in_part_are_said_to_be(
    replies: list[tuple[int, int]], uncounted: int, shown: str
) -> None:
    calls = [call_of("openai:large", *tokens) for tokens in replies]
    assert sum_usage(calls)["models"]["openai:large"].get("uncounted_calls", 0) == uncounted
    totals = Totals.of(calls, 0, 0.0)
    assert totals.uncounted_calls == uncounted
    assert shown in str(totals)


def call_of(model: str, prompt: int = 0, completion: int = 0) -> Call:
    """A call of a model that replied, with so many tokens."""
    reply = ChatReply("x", prompt_tokens=prompt, completion_tokens=completion)
    return Call("k", "model", "", {"model": model}, 0, reply, "", 0.0)


@pytest.mark.parametrize("model", ["rules", "human", "scripted", "scripted:a.py", "function:ask"])
def test_a_model_without_a_server_may_report_no_tokens(model: str, tmp_path: Path) -> None:
    assert ChatReply("", prompt_tokens=10).is_counted("openai:large")  # there is no text
    assert ChatReply("x", model="by hand").is_counted("openai:large")
    call = call_of(model)
    row = sum_usage([call])
    assert "uncounted_calls" not in row["models"][model]
    assert Totals.of([call], 0, 0.0).uncounted_calls == 0
    for name in (model, "mine"):  # a function or a class of a person may have any name
        Budget({"money": 1, "tokens": 1}, prices(tmp_path)).add(used(0, 0, name))
    with pytest.raises(InputError, match="not known"):
        Budget({"tokens": 1}).add(sum_usage([call_of(model, 0, 5)]))


@pytest.mark.parametrize(
    "text",
    [
        *("[", 'price = 1\ncurrency = "EUR"', "", TABLE.replace("date", "day")),
        TABLE.replace('"openai:large*"', "5"),
        *(TABLE.replace("2.0", price) for price in "-1 nan true 1e400".split()),
    ],
)
def test_an_unreadable_table_is_named_in_the_error(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError, match=r"prices\.toml") as caught:
        prices(tmp_path, text)
    assert "\n" not in caught.value.message


def test_seconds_by_stage_count_every_step_once() -> None:
    spent = """understanding - 1; classifier understanding 0.9; qir - 2; query_planning - 20;
        matching query_planning 5; entity_linking[x] matching 4; vertex_selection[x] entity_linking[x] 3;
        query_generator query_planning 6; execution query_planning 7"""
    steps = [
        Step(key, key.partition("[")[0], "", parent.strip("-"), {}, str, seconds=float(seconds))
        for key, parent, seconds in map(str.split, spent.split(";"))
    ]
    assert sum_seconds_by_stage(CHATTY, steps, 25.0) == {
        "understanding": (3.0, 0.0),
        "linking": (5.0, 0.0),
        "execution and selection": (13.0, 0.0),
        "other": (4.0, 0.0),
    }
    # Half of the steps were executed beside the others.
    halved = sum_seconds_by_stage(CHATTY, steps, 11.5)
    assert halved["linking"] == (2.5, 0.0)
    assert sum(time.seconds for time in halved.values()) == 11.5


def test_the_wait_for_models_stands_apart_in_every_stage() -> None:
    calls = {key: model_call(key, 3.0) for key in "abcd"}
    qir = Step("qir", "qir", "", "", {}, str, seconds=4.0, calls=["a", "b", "c"], live_calls=1)
    linker = Step("linker", "entity_linking", "", "", {}, str, seconds=2.0, calls=["d"])
    qir.known_calls = linker.known_calls = calls
    times = sum_seconds_by_stage(CHATTY, [qir, linker], 6.0)
    # The calls that came from the record took no time.
    assert times["understanding"] == (4.0, 3.0)
    assert times["linking"] == (2.0, 0.0)


def model_call(key: str, seconds: float) -> Call:
    return Call(key, "model", "", {}, 0, ChatReply("yes"), "", seconds)


class SlowModel(Scripted):
    """A scripted model that takes its time."""

    def complete(self, *arguments: Any) -> ChatReply:
        time.sleep(WAIT_S)
        return super().complete(*arguments)


WAIT_S = 0.02


@pytest.mark.parametrize("name", list_systems())
def test_the_stages_of_every_system_add_up_to_its_seconds(name: str) -> None:
    question, replies = ASKED[name]
    run = run_of(load_system(name), question, SlowModel(replies)).go()
    row = make_row(BenchQuestion(id="1", question=question), run, None)
    assert sum(row["stages"].values()) == pytest.approx(row["seconds"], abs=1e-4)
    waited = run.totals.model_calls * WAIT_S
    assert waited <= row["model_seconds"] <= row["seconds"]
    assert sum(row["stage_model_seconds"].values()) == pytest.approx(row["model_seconds"])
    costs = summarize_costs([row])
    parts = [cost.total for kind, cost in costs.items() if kind.startswith("seconds, ")]
    assert sum(parts) == pytest.approx(row["seconds"] + row["model_seconds"], abs=1e-4)


def test_stages_whose_titles_look_alike_stay_apart() -> None:
    titles = ["Linking", "linking", "Look ↻", "Other", "other"]
    agents = {}
    for number, title in enumerate(titles):
        agents[title] = (agent(f"agent{number}")(lambda run: ""),)
    system = System("own", lambda question, dialogue, run: Answer("list"), agents)
    surveyor = copy(load_system("surveyor"))
    surveyor.gold = None
    own_agents = {"look", "draft", "review", "answer"}
    assert sum_seconds_by_stage(surveyor, [], 0.0).keys() == own_agents
    stages = sum_seconds_by_stage(system, [], 1.0)
    assert set(stages) == {"Linking", "linking", "look", "Other", "other (stage)", "other"}
    assert stages["other"].seconds == 1.0


@pytest.mark.parametrize(
    ("name", "supervisors"),
    [
        ("chatty_kg", {"query_planning"}),
        ("surveyor", set()),
        ("ragonite", set()),
        ("robodata", {"turn"}),
    ],
)
def test_every_agent_with_gold_decisions_has_a_stage_except_supervisors(
    name: str, supervisors: set[str]
) -> None:
    system = load_system(name)
    assert system.gold is not None
    assert {spec.name for spec in system.agents} ^ {*system.stage_by_agent} == supervisors


def test_median_and_percentile_over_the_questions_that_have_the_figure(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [{"seconds": 5.0, "model_calls": 3, "queries": 1}]  # an older line
    for number in range(1, 5):
        spent = {"seconds": float(number), "stages": {"linking": number / 2}, "model_calls": 2}
        rows.append({**spent, **used(number * 1_000_000, 0)})
    kinds = summarize_costs(rows, prices(tmp_path))
    assert kinds["seconds"] == CostSummary(5, 15.0, 3.0, pytest.approx(4.8))
    assert kinds["seconds, linking"] == CostSummary(4, 5.0, 1.25, pytest.approx(1.925))
    totals = [kinds[kind].total for kind in ("model calls", "prompt tokens", "EUR")]
    assert totals == [11, 10**7, 20.0]
    assert summarize_costs([])["seconds"] == CostSummary(0, 0.0, 0.0, 0.0)


TEXTS = [f"Who directed Arrival ({number})?" for number in range(6)]
QUESTIONS = [BenchQuestion(id=text, question=text, answers=(iri("denis"),)) for text in TEXTS]


def reply_to(request: ChatRequest) -> ChatReply:
    text = json.dumps(DIRECTED[request.task])
    return ChatReply(text, prompt_tokens=10, completion_tokens=5)


def bench(
    folder: Path, budget: Budget | None, workers: int = 1
) -> tuple[Benchmark, list[dict[str, Any]]]:
    model = Scripted(reply_to, name="openai:large")
    setup = BenchSetup.from_workbench(workbench(model, embeddings=Embeddings("lexical")))
    results = Results(folder, setup.to_config(QUESTIONS))
    runner = Benchmark(setup, results, workers=workers, budget=budget or Budget({}))
    return runner, runner.run(QUESTIONS)


@pytest.mark.parametrize(
    ("limits", "asked"),
    [
        ({"tokens": 90}, 3),
        ({"model_calls": 3}, 2),
        ({"money": 0.00007, "tokens": 10**9}, 1),
        ({"seconds": 1e-9}, 1),
    ],
)
def test_a_budget_stops_the_run_and_a_larger_one_continues_it(
    tmp_path: Path, limits: dict[str, float], asked: int
) -> None:
    for _ in range(2):  # what was spent before counts
        runner, rows = bench(tmp_path, Budget(limits, prices(tmp_path)))
        assert (len(rows), bool(runner.stop_reason)) == (asked, asked < len(QUESTIONS))
    rows = bench(tmp_path, None)[1]
    assert [row["id"] for row in rows] == TEXTS
    calls = {"calls": 2, "prompt_tokens": 20, "completion_tokens": 10}
    assert rows[0]["models"] == {"openai:large": calls}


def test_a_budget_counts_a_question_once_however_often_its_folder_is_asked(tmp_path: Path) -> None:
    budget = Budget({"model_calls": 99})
    for folder, calls in (("first", 12), ("first", 12), ("second", 24), ("first", 24)):
        bench(tmp_path / folder, budget)
        assert budget.used == {"model_calls": calls}


def test_pending_questions_are_finished_when_the_budget_is_used_up(tmp_path: Path) -> None:
    assert 1 <= len(bench(tmp_path, Budget({"tokens": 30}), workers=4)[1]) <= 4


@pytest.mark.parametrize(
    ("name", "limit"), [("euros", 1), *(("tokens", n) for n in (float("nan"), -1, 0))]
)
def test_an_unknown_or_nonpositive_budget_is_refused(name: str, limit: float) -> None:
    with pytest.raises(InputError, match=r"euros|above 0"):
        Budget({name: limit})


def test_the_terminal_shows_costs_and_stops_at_the_budget(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_questions(*[{"question": f"Who directed Arrival ({n})?"} for n in range(3)])
    wrong = ["--model", "openai:x@http://127.0.0.1:9/v1", "--budget", "money=1"]
    for options, code, said in (
        (["--budget", "model_calls=1"], 3, "1 of 3"),
        (["--budget", "model_calls=many"], 2, "model_calls=many"),
        (wrong, 2, "'openai:x"),
    ):
        assert commands.bench(*options) == code
        assert said in capsys.readouterr().err
    prices(here)
    assert commands.bench("--prices", "prices.toml") == 0
    assert "\nEUR " in capsys.readouterr().out
    prices(here, TABLE.replace('"*"', '"other"'))
    assert commands.bench("--prices", "prices.toml") == 0
    out, complaint = capsys.readouterr()
    assert "'rules'" in complaint
    assert "model calls" in out
