"""What the scripted chat model says to the pipelines of this folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

PIPELINES = Path(__file__).parent / "pipelines"
MARK = "# added"
"""At the end of each line of a pipeline that is kgwb's."""

DIRECTOR_QUERY = """
PREFIX : <http://example.org/>
SELECT ?person WHERE { :arrival :director ?person }
"""


def plain_text(path: Path) -> str:
    """The program that a pipeline was before the lines for kgwb were added."""
    lines = path.read_text().splitlines()
    return "\n".join(line for line in lines if not line.endswith(MARK))


def reply_to(body: dict[str, Any]) -> str | dict[str, Any]:
    """Reply by the first words of the last message, else of the first."""
    first = str(body["messages"][0]["content"])
    last = str(body["messages"][-1].get("content"))
    if first.startswith("List the names"):
        return '{"mentions": ["Arrival"]}'
    if first.startswith("Write one SPARQL query"):
        return DIRECTOR_QUERY
    if last.startswith("Title in"):
        return "Arrival"
    if last.startswith("Choose"):
        _, _, listed = last.partition(": ")
        return " ".join(listed.split(", "))
    return f"reply to {last}"
