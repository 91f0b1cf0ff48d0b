"""From a changed prompt to the page of what it did: 50 questions that were measured before."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from table import Row

import kgwb
from kgwb.bench import Benchmark, BenchSetup, Report, Results, load_prices, load_questions
from kgwb.bench.lab import RetryExperiment
from kgwb.kg import sample_path
from kgwb.kg.embeddings import Embeddings
from kgwb.run.prompts import Prompts

PROMPT, WANTED_S = "chatty_kg/qir", 5.0


def retrying() -> list[Row]:
    """Seconds from the estimate to the written page."""
    with tempfile.TemporaryDirectory() as name:
        folder, kg = Path(name), kgwb.open_kg("films")
        questions = load_questions(sample_path("films").with_suffix(".questions.jsonl"))[:50]
        setup = BenchSetup.from_workbench(
            kgwb.Workbench(kg, "rules", embeddings=Embeddings("lexical"))
        )
        Benchmark(setup, Results(folder / "before", setup.to_config()), save_runs=True).run(
            questions
        )
        prompts = Prompts().with_text(PROMPT, f"{Prompts().text(PROMPT)}\nTake care.\n")
        started = time.perf_counter()
        lab = RetryExperiment(folder / "before", kg=kg)
        changed, chosen = lab.make_setup(prompts), lab.choose_questions(["all"])
        lab.estimate_cost(changed, chosen, prices=load_prices())
        lab.ask_again(changed, chosen, folder / "after")
        Report(folder / "before", folder / "after").save(folder / "report.html")
        seconds = time.perf_counter() - started
    return [Row("50 questions, one prompt changed: to the page", seconds, "s", value_most=WANTED_S)]
