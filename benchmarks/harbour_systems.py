"""Compares all systems on 30 questions of the harbour, with the recorded replies of one kind of reader.

    python benchmarks/harbour_systems.py questions FILE        write the questions, to ask them with kgwb bench
    python benchmarks/harbour_systems.py keep SYSTEM RESULTS   keep the replies in a results folder
    python benchmarks/harbour_systems.py page                  replay them all, and write the table of the docs

The harbour is in ../shared/data or KGWB_DATA. The questions are drawn once from all 105. The readers had
seen neither graph nor gold nor code, and answered each prompt in one go. The time is that of kgwb and the
graph, one question at a time, without any model.

The figures are those of the readers' own runs. A request that has changed since, or that shows blank nodes,
whose names are others each time that the graph is opened, has no recorded reply: ``page`` prints how many
questions of each system replay, and docs/profiles.md says so.
"""

from __future__ import annotations

import json
import random
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from graphs import engines
from recorded_questions import lenient, replay
from replies import RECORDINGS, keep_replies
from table import write_between

from kgwb.bench.results import BenchRow, read_results

SYSTEMS = ("chatty_kg", "dog", "ragonite", "triad", "robodata", "surveyor")
FIGURES = RECORDINGS / "harbour30.figures.json"
"""By system and question: what came of the reader's run."""
PAGE = Path(__file__).parents[1] / "docs" / "profiles.md"
BEGIN = "<!-- made by benchmarks/harbour_systems.py -->"
END = "<!-- end of the table -->"
HEADINGS = (
    "system",
    "F1 strict",
    "F1 lenient",
    "answered of 25",
    "answered of 5 without an answer",
    "model calls",
    "prompt tokens",
    "queries",
    "own ms",
)


def draw_questions() -> list[str]:
    """Return the lines of 30 questions, drawn with a fixed seed, in the order of the file."""
    path = engines.harbour() / "questions.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines()
    drawn = random.Random(35).sample(lines, 30)
    return sorted(drawn, key=lambda line: str(json.loads(line)["id"]))


def write_questions(path: Path) -> None:
    """Write the drawn questions to a file, one JSON object a line."""
    path.write_text("\n".join(draw_questions()) + "\n", encoding="utf-8")


def recording_of(system: str) -> Path:
    """Return the path of the replies to a system's prompts."""
    name = "harbour.surveyor" if system == "surveyor" else f"harbour30.{system}"
    return RECORDINGS / f"{name}.jsonl.gz"


def keep_figures(system: str, rows: Sequence[BenchRow]) -> None:
    """Write the figures of a system's rows to FIGURES, those of the drawn questions only."""
    drawn = {json.loads(line)["id"] for line in draw_questions()}
    kept = {}
    for row in rows:
        if row["id"] in drawn:
            kept[row["id"]] = {
                "has_answer": bool(row["gold"]),
                "answered": bool(row["answers"]),
                "f1": row["f1"],
                "lenient": lenient(row),
                "model_calls": row["model_calls"],
                "prompt_tokens": row.get("prompt_tokens", 0),
                "queries": row["queries"],
            }
    figures = read_figures() if FIGURES.exists() else {}
    figures[system] = kept
    FIGURES.write_text(json.dumps(figures, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def read_figures() -> dict[str, dict[str, dict[str, Any]]]:
    """Return the figures by system and question."""
    figures: dict[str, dict[str, dict[str, Any]]] = json.loads(FIGURES.read_text(encoding="utf-8"))
    return figures


def measure(system: str) -> list[dict[str, Any]]:
    """Return the result rows of a system with its recorded replies."""
    with tempfile.TemporaryDirectory() as folder:
        questions = Path(folder) / "questions.jsonl"
        write_questions(questions)
        graph = str(engines.harbour())
        return replay(graph, str(questions), str(recording_of(system)), system)


def make_line(system: str, figures: Sequence[dict[str, Any]], seconds: float) -> str:
    """Return the line of the table for a system.

    F1 is the mean over the questions that have an answer; calls, tokens and queries are means over
    all questions.
    """
    answerable = [row for row in figures if row["has_answer"]]
    without_answer = [row for row in figures if not row["has_answer"]]
    cells = (
        system,
        f"{statistics.mean(row['f1'] for row in answerable):.3f}",
        f"{statistics.mean(row['lenient'] for row in answerable):.3f}",
        str(sum(row["answered"] for row in answerable)),
        str(sum(row["answered"] for row in without_answer)),
        f"{statistics.mean(row['model_calls'] for row in figures):.1f}",
        f"{statistics.mean(row['prompt_tokens'] for row in figures):,.0f}",
        f"{statistics.mean(row['queries'] for row in figures):.1f}",
        f"{1000 * seconds:.0f}",
    )
    return f"| {' | '.join(cells)} |"


def write_page() -> None:
    """Replay all systems, and put the table between the lines BEGIN and END of the page."""
    figures = read_figures()
    lines = [f"| {' | '.join(HEADINGS)} |", "|---" * len(HEADINGS) + "|"]
    for system in SYSTEMS:
        replayed = [row for row in measure(system) if not row["error"]]
        seconds = statistics.median(row["seconds"] for row in replayed)
        lines.append(make_line(system, list(figures[system].values()), seconds))
        print(lines[-1])
        print(f"  {len(replayed)} of {len(figures[system])} replayed")
        for row in replayed:
            if row["f1"] != figures[system][row["id"]]["f1"]:
                print(f"  {row['id']} has another F1 now: {row['f1']}")
    write_between("\n".join(lines), PAGE, BEGIN, END)


def main(action: str, *arguments: str) -> None:
    """Do what the module's text says."""
    if action == "questions":
        write_questions(Path(arguments[0]))
    elif action == "keep":
        system, results = arguments
        said = "replies of a reader to 30 questions of the harbour, recorded"
        _, rows = read_results(Path(results))
        keep_figures(system, rows)
        if system == "surveyor":
            return  # The replies to all questions of the harbour are kept with recorded_questions.py.
        count = keep_replies([Path(results)], recording_of(system), system, said)
        print(f"{recording_of(system).name}: {count} replies")
    elif action == "page":
        write_page()
    else:
        sys.exit(f"{action!r} is none of questions, keep, page")


if __name__ == "__main__":
    main(*sys.argv[1:])
