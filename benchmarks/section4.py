"""Keeps the replies to the 30 questions of RAGonite's section 4, and makes the table of docs/how-to/my-paper.md.

    python benchmarks/section4.py keep RESULTS...    from the results folders of kgwb experiment ragonite.section4
    python benchmarks/section4.py page               replay them, without network, and write the table

``keep`` writes RECORDING, then the table. Replies are found by the content of a request: a prompt that was
edited since has none, and its question is an error.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from urllib.parse import quote

from replies import MODEL, RECORDINGS, keep_replies
from table import write_between

from kgwb.bench.figures import LoadedResults
from kgwb.bench.papers import (
    Measurement,
    find_experiment,
    make_experiment_table,
    make_kinds_table,
)
from kgwb.cli import main as run_kgwb
from kgwb.kg.embeddings import DEFAULT_MODEL

ROOT = Path(__file__).parents[1]
RECORDING = RECORDINGS / "films.section4.jsonl.gz"
PAGE = ROOT / "docs" / "how-to" / "my-paper.md"
BEGIN = "<!-- made by benchmarks/section4.py -->"
END = "<!-- end -->"
"""The table stands between these lines of the page."""
EXPERIMENT = "ragonite.section4"
SET_NAME = "conversations"
SAID = "replies of a strong reader to the conversations of section 4, recorded"


def replay(recording: Path, folder: Path, embeddings: str = DEFAULT_MODEL) -> list[Measurement]:
    """Measure all configurations with the recorded replies, and return what came of them.

    The results are written to a folder. The embeddings must be those with which the replies were
    recorded, since they find the passages in the prompts. Nothing is asked of a server.
    """
    before = os.environ.get("KGWB_EMBEDDINGS")
    os.environ["KGWB_EMBEDDINGS"] = embeddings
    command = ["experiment", EXPERIMENT, "--model", f"replay:{recording}", "--out", str(folder)]
    printed = StringIO()
    try:
        with redirect_stdout(printed), redirect_stderr(printed):
            status = run_kgwb(command)
    finally:
        os.environ.pop("KGWB_EMBEDDINGS")
        if before is not None:
            os.environ["KGWB_EMBEDDINGS"] = before
    if status:
        sys.exit(printed.getvalue())
    paper, experiment = find_experiment(EXPERIMENT)
    stand_in = paper.sets[SET_NAME].stand_in
    measurements = []
    for configuration in experiment.configurations:
        part = f"{SET_NAME} {quote(configuration.name, safe=' ')}"
        rows = list(LoadedResults.read(folder / EXPERIMENT / part).rows.values())
        measurements.append(Measurement(SET_NAME, configuration.name, MODEL, rows, stand_in))
    return measurements


def make_tables(measurements: Sequence[Measurement]) -> str:
    """Return the paper's table with our figures, and ours by kind of question, as Markdown."""
    paper, experiment = find_experiment(EXPERIMENT)
    figures = make_experiment_table(paper, experiment, measurements)
    kinds = make_kinds_table(paper, experiment, measurements)
    questions = sum(len(measurement.rows) for measurement in measurements)
    errors = sum(bool(row["error"]) for each in measurements for row in each.rows)
    caption = (
        f"{questions} recorded answers of a strong reader, {errors} errors, per cent of exactly right answers"
        " with 95 % intervals. The published figures are of other questions over another graph, judged by"
        " reading."
    )
    tables = [
        figures.with_caption(caption).to_markdown(),
        kinds.with_caption("The same by kind of question.").to_markdown(),
    ]
    return "\n\n".join(table.strip() for table in tables)


def main(action: str, *folders: str) -> None:
    """Keep the replies in results folders, if ``action`` is "keep", and write the table."""
    if action == "keep":
        stores = [Path(folder) / EXPERIMENT for folder in folders]
        count = keep_replies(stores, RECORDING, "ragonite", SAID)
        print(f"{RECORDING}: {count} replies")
    with tempfile.TemporaryDirectory() as folder:
        measurements = replay(RECORDING, Path(folder))
    tables = make_tables(measurements)
    write_between(tables, PAGE, BEGIN, END)
    print(tables)
    for measurement in measurements:
        for row in measurement.rows:
            if row["error"]:
                print(f"error: {measurement.configuration}: {row['id']}: {row['error']}")


if __name__ == "__main__":
    main(*sys.argv[1:])
