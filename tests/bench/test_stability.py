"""How often repeated questions come out right: pass rates, pass^k, and the questions right by luck."""

from collections import Counter
from itertools import combinations, product
from pathlib import Path
from random import Random
from typing import Any

import pytest
from commands import bench, retries, retry, write_questions
from model_servers import OpenAIServer
from rdflib import Literal
from small import films

from kgwb.bench.figures import LoadedResults, PassRate, estimate_chances, find_pass_rates
from kgwb.bench.questions import BenchQuestion
from kgwb.bench.results import ALIKE, SEED_IGNORED, Results
from kgwb.bench.runner import MAX_SEED_PROBES, Benchmark, BenchSetup
from kgwb.bench.statistics import wilson_interval
from kgwb.llm import ChatRequest, Message
from kgwb.llm.base import seed_of_repeat
from kgwb.run import Run, System, agent
from kgwb.run.answers import Answer, Value
from kgwb.settings import Settings
from kgwb.workbench import Workbench


def asks(pattern: str) -> list[Any]:
    """Asks that came out as the pattern says: "r" right, "w" wrong, "e" an error."""
    scores = {"r": {"f1": 1.0}, "w": {"f1": 0.0}, "e": None}
    return [scores[letter] for letter in pattern]


def test_wilson_s_interval_is_that_of_the_literature() -> None:
    """The figures are those of Newcombe 1998, table I, method 3."""
    published = {(81, 263): (0.2553, 0.3662), (15, 148): (0.0624, 0.1605), (0, 20): (0, 0.1611)}
    for (count, total), interval in published.items():
        assert wilson_interval(count, total) == pytest.approx(interval, abs=1e-4)
    assert wilson_interval(20, 20) == pytest.approx((1 - 0.1611, 1), abs=1e-4)
    assert wilson_interval(0, 3)[0] == 0 and wilson_interval(3, 3)[1] == 1


def test_pass_hat_k_is_the_share_of_choices_in_which_all_are_right() -> None:
    for right, k in product(range(6), (1, 2, 5)):
        choices = list(combinations([True] * right + [False] * (5 - right), k))
        share = sum(map(all, choices)) / len(choices)
        assert PassRate(right, 5).chance_of_all(k) == pytest.approx(share)


def test_pass_hat_k_of_all_questions_is_the_mean_of_those_that_all_were_asked() -> None:
    rates = [PassRate.of_asks(asks(pattern)) for pattern in ("rrrr", "wwww", "wrww", "rrrw")]
    chances = estimate_chances(rates)
    assert {k: chance.value for k, chance in chances.items()} == pytest.approx(
        {1: (1 + 0 + 0.25 + 0.75) / 4, 2: (1 + 0 + 0 + 0.5) / 4, 3: (1 + 0 + 0 + 0.25) / 4}
    )
    assert list(estimate_chances([*rates, PassRate(1, 2)])) == [1, 2]
    assert estimate_chances([]) == {}


def test_an_error_is_not_right_and_the_ask_that_chose_a_question_does_not_count() -> None:
    assert PassRate.of_row({"asks": asks("rew")}) == PassRate(1, 3)
    repeated = {"asks": asks("rew"), "asks_before": asks("wr")}
    assert PassRate.of_row(repeated) == PassRate(0, 2)
    assert PassRate.of_row(repeated, "asks_before") == PassRate(1, 1)
    assert PassRate.of_row({}) is None


# --- what a server makes of seeds


class SeededServer(OpenAIServer):
    """Replies "ok" with a chance of its own to each question: drawn by the seed, or else by its count of requests."""

    def __init__(self, *, honours_seeds: bool, temperature_counts: bool = True) -> None:
        super().__init__()
        self.honours_seeds = honours_seeds
        self.temperature_counts = temperature_counts

    def chat(self, body: dict[str, Any]) -> Any:
        question = body["messages"][-1]["content"]
        drawn_by: list[object] = [question]
        if body["temperature"] and self.temperature_counts:
            drawn_by.append(body["seed"] if self.honours_seeds else len(self.seen))
        is_right = Random(repr(drawn_by)).random() < chance_of(question)
        return self.reply("ok" if is_right else "no")


def chance_of(question: str) -> float:
    return (0.0, 0.3, 0.7, 1.0)[int(question) % 4]


@agent("lookup")
def lookup(question: str, run: Run) -> Answer:
    """Answers what the model says, asked as the settings say."""
    settings = run.settings
    message = Message("user", question)
    request = ChatRequest(
        "toy/lookup", (message,), temperature=settings.temperature, seed=settings.seed
    )
    _, reply = run.chat(request)
    return Answer("list", (Value(Literal(reply.text), reply.text),))


TOY = System("toy", lambda question, dialogue, run: lookup(question.text, run), (lookup,))


def measure_with(
    server: SeededServer, folder: Path, temperature: float = 1.0, repeats: int = 10
) -> LoadedResults:
    numbers = map(str, range(16))
    questions = [BenchQuestion(id=each, question=each, answers=("ok",)) for each in numbers]
    settings = Settings(temperature=temperature)
    workbench = Workbench(films(), server.tiny(), system=TOY, settings=settings)
    setup = BenchSetup.from_workbench(workbench)
    try:
        Benchmark(setup, Results(folder, setup.to_config()), repeats=repeats).run(questions)
    finally:
        server.close()
    return LoadedResults.read(folder)


def test_each_repeat_has_a_seed_of_its_own_so_that_stability_is_that_of_the_server(
    tmp_path: Path,
) -> None:
    server = SeededServer(honours_seeds=True)
    results = measure_with(server, tmp_path)
    rates = find_pass_rates(results)
    for chance in (0.0, 0.3, 0.7, 1.0):
        alike = [rate for id_, rate in rates.items() if chance_of(id_) == chance]
        low, high = wilson_interval(sum(rate.right for rate in alike), 10 * len(alike))
        assert low <= chance <= high
    asked = Counter((body["messages"][-1]["content"], body["seed"]) for body in server.chats)
    seeds = [seed_of_repeat(7, number) for number in range(10)]
    assert set(asked) == set(product(rates, seeds))
    assert asked.total() == 16 * 10 + MAX_SEED_PROBES
    assert results.seed_remarks == []


@pytest.mark.parametrize(
    ("server", "temperature", "said"),
    [
        ({"honours_seeds": False}, 1.0, SEED_IGNORED),
        ({"honours_seeds": True, "temperature_counts": False}, 1.0, ALIKE),
        ({"honours_seeds": True}, 0.0, ALIKE),
    ],
)
def test_a_server_on_which_seeds_have_no_effect_is_said(
    server: dict[str, bool], temperature: float, said: str, tmp_path: Path
) -> None:
    results = measure_with(SeededServer(**server), tmp_path, temperature, repeats=3)
    known = {row.get("seeds", "") for row in results.rows.values()}
    assert said in known
    assert len(results.seed_remarks) == 1
    assert results.seed_remarks[0] in results.model_remarks


def test_repeats_at_temperature_0_are_refused_unless_it_is_given(here: Path) -> None:
    write_questions()
    twice = ["--repeats", "2"]
    for each in ([], ["--each", "seed=1,2"], ["--each", "model=rules,rules2"]):
        assert bench(*twice, *each) == 2
    assert not list(Path("r").rglob("results.jsonl"))
    assert bench(*twice, "--set", "temperature=0") == 0
    changed = ["--only", "all", "--set", "predicates_per_relation=3", *twice]
    assert retry(*changed) == 2
    assert not retries()
    assert retry(*changed, "--set", "temperature=0") == 0
