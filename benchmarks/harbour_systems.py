"""Compares all systems on 30 questions of the harbour, with the recorded replies of one kind of reader.

    python benchmarks/harbour_systems.py questions FILE        write the questions, to ask them with kgwb bench
    python benchmarks/harbour_systems.py keep SYSTEM RESULTS   keep the replies in a results folder
    python benchmarks/harbour_systems.py page                  replay them all, and write the table of the docs

The harbour is in ../shared/data or KGWB_DATA. The questions are drawn once from all 105. The readers had
seen neither graph nor gold nor code, and answered each prompt in one go. The time is that of kgwb and the
graph, one question at a time, without any model.
"""

from __future__ import annotations

import json
import random
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from graphs import engines
from recorded_questions import lenient, replay
from replies import RECORDINGS, keep_replies

SYSTEMS = ("chatty_kg", "dog", "ragonite", "triad", "robodata", "surveyor")
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
    "own seconds",
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


def measure(system: str) -> list[dict[str, Any]]:
    """Return the result rows of a system with its recorded replies."""
    with tempfile.TemporaryDirectory() as folder:
        questions = Path(folder) / "questions.jsonl"
        write_questions(questions)
        graph = str(engines.harbour())
        return replay(graph, str(questions), str(recording_of(system)), system)


def make_line(system: str, rows: list[dict[str, Any]]) -> str:
    """Return the line of the table for a system.

    F1 is the mean over the questions that have an answer; calls, tokens and queries are means over
    all questions, and seconds their median.
    """
    answerable = [row for row in rows if row["gold"]]
    without_answer = [row for row in rows if not row["gold"]]
    cells = (
        system,
        f"{statistics.mean(row['f1'] for row in answerable):.3f}",
        f"{statistics.mean(map(lenient, answerable)):.3f}",
        str(sum(bool(row["answers"]) for row in answerable)),
        str(sum(bool(row["answers"]) for row in without_answer)),
        f"{statistics.mean(row['model_calls'] for row in rows):.1f}",
        f"{statistics.mean(row.get('prompt_tokens', 0) for row in rows):,.0f}",
        f"{statistics.mean(row['queries'] for row in rows):.1f}",
        f"{statistics.median(row['seconds'] for row in rows):.2f}",
    )
    return f"| {' | '.join(cells)} |"


def write_page() -> None:
    """Replay all systems, and put the table between the lines BEGIN and END of the page."""
    lines = [f"| {' | '.join(HEADINGS)} |", "|---" * len(HEADINGS) + "|"]
    for system in SYSTEMS:
        rows = measure(system)
        lines.append(make_line(system, rows))
        print(lines[-1])
        for row in rows:
            if row["error"]:
                print(f"  {row['id']}: {row['error']}")
    head, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, _, tail = rest.partition(END)
    table = "\n".join(lines)
    PAGE.write_text(f"{head}{BEGIN}\n\n{table}\n\n{END}{tail}", encoding="utf-8")


def main(action: str, *arguments: str) -> None:
    """Do what the module's text says."""
    if action == "questions":
        write_questions(Path(arguments[0]))
    elif action == "keep":
        system, results = arguments
        said = "replies of a reader to 30 questions of the harbour, recorded"
        count = keep_replies([Path(results)], recording_of(system), system, said)
        print(f"{recording_of(system).name}: {count} replies")
    elif action == "page":
        write_page()
    else:
        sys.exit(f"{action!r} is none of questions, keep, page")


if __name__ == "__main__":
    main(*sys.argv[1:])
