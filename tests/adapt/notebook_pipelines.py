"""Record anew the runs of the pipelines in notebooks/pipelines.

    PYTHONPATH=. python tests/adapt/notebook_pipelines.py

A chat server and a SPARQL endpoint on the ports that the pipelines name answer from the script below.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from pipeline_servers import chat_server, sparql_endpoint

from kgwb.kg import open_kg, sample_path
from kgwb.run import Run
from kgwb.run.systems import resolve_system

FOLDER = Path(__file__).parent.parent.parent / "notebooks" / "pipelines"
CHAT_PORT = 11434
SPARQL_PORT = 3030
FILMS = "https://kgwb.example/films/"
PREFIX = f"PREFIX fl: <{FILMS}>\n"
QUESTIONS = {
    "plain": "Who directed Dune?",
    "looping": "Who wrote Story of Your Life?",
    "branches": "Who directed and scored Spirited Away?",
}
EDITS: dict[str, tuple[str, Any]] = {
    "plain": ("link", [f"{FILMS}Dune_2021_film"]),
    "looping": ("mention", {"name": "Do Androids Dream of Electric Sheep?", "queries": []}),
    "branches": ("read", "Arrival"),
}
"""What the notebook puts in for a step of each run; the calls that follow are recorded, too."""


def reply_to(body: dict[str, Any]) -> str:
    """Reply by the first words of the first message, as a careful model would."""
    first = str(body["messages"][0]["content"])
    last = str(body["messages"][-1]["content"])
    beginnings = {
        "List the names": '{"mentions": ["Dune"]}',
        "Write one SPARQL query": directors_query(last),
        "Which one name": "Story of Your Life",
        "Write a SPARQL query": draft_for(first),
        "Say in a sentence": first.rpartition("/")[2].replace("_", " ") + " wrote it.",
        "Which film": "Spirited Away",
    }
    for beginning, reply in beginnings.items():
        if first.startswith(beginning):
            return reply
    return "\n".join(line for line in first.splitlines() if line.startswith(FILMS))


def directors_query(text: str) -> str:
    """Write a query for the directors of all IRIs in a text."""
    iris = [f"<{word.strip(',')}>" for word in text.split() if word.startswith("http")]
    values = f"VALUES ?film {{ {' '.join(iris)} }}"
    return f"{PREFIX}SELECT DISTINCT ?person WHERE {{ {values} ?film fl:director ?person }}"


def draft_for(text: str) -> str:
    """Draft a query with a predicate that the graph does not have, and then with the right one."""
    _, _, about = text.partition("It is about ")
    name = about.partition("\n")[0].removesuffix(".")
    predicate = "fl:author" if "has no rows" in text else "fl:writer"
    return (
        f"{PREFIX}PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>\n"
        f'SELECT ?person WHERE {{ ?work rdfs:label "{name}"@en ; {predicate} ?person }}'
    )


def record(name: str) -> None:
    """Save a run of a pipeline, with the calls of the edit that the notebook makes."""
    system = resolve_system(FOLDER / f"{name}.py")
    run = Run(system, QUESTIONS[name], kg=open_kg("films"), models=None).go()
    key, value = EDITS[name]
    run.override(key, value).go()
    run.remove_override(key).go()
    run.save(FOLDER / f"{name}.jsonl")


def main() -> None:
    """Record the three runs."""
    films = sample_path("films")
    os.environ["FILMS"] = str(films)
    turtle = films.read_text(encoding="utf-8")
    with (
        chat_server(reply_to, CHAT_PORT),
        sparql_endpoint(turtle, SPARQL_PORT),
    ):
        for name in QUESTIONS:
            record(name)


if __name__ == "__main__":
    main()
