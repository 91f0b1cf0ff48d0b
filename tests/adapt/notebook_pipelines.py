"""Record anew the runs of the pipelines in notebooks/pipelines.

    PYTHONPATH=. python tests/adapt/notebook_pipelines.py [NAME ...]

Without a name that is those that need no other package. For the published ones, install what PUBLISHED names into an
environment of its own. A chat server and a SPARQL endpoint on the ports that the pipelines name answer from the script
below.
"""

from __future__ import annotations

import json
import os
import re
import sys
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
PUBLISHED = {
    "smolagents_agent": ("Who directed Dune?", "smolagents[openai]==1.26.0"),
    "sparql_chain": (
        "Who composed the music of Arrival?",
        "langchain-community==0.4.2 langchain-classic==1.0.8 langchain-openai==1.7.4",
    ),
    "dspy_react": ("Which films did Denis Villeneuve direct?", "dspy[litellm]==3.4.1"),
}
"""Question and packages of the published pipelines."""
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


# --- the published pipelines


LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
DIRECTORS = f"""{PREFIX}SELECT ?person ?name WHERE {{
  ?film <{LABEL}> "Dune"@en ; fl:%s ?person . ?person <{LABEL}> ?name
}}"""
COMPOSERS = f"""{PREFIX}SELECT ?name WHERE {{
  ?film <{LABEL}> "Arrival"@en ; fl:composer ?person . ?person <{LABEL}> ?name
}}"""
VILLENEUVE = f"{FILMS}Denis_Villeneuve"


def reply_to_smolagents(body: dict[str, Any]) -> dict[str, Any]:
    """Call the tool with a predicate that the graph does not have, then with the right one; then answer."""
    outputs = [text for text in map(str, body["messages"]) if "Observation:\\n" in text]
    said = {"answer": "Dune was directed by David Lynch (1984) and by Denis Villeneuve (2021)."}
    calls = [
        ("sparql", {"query": DIRECTORS % "directedBy"}),
        ("sparql", {"query": DIRECTORS % "director"}),
        ("final_answer", said),
    ]
    name, arguments = calls[min(len(outputs), 2)]
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"id": f"call_{len(outputs)}", "type": "function", "function": function}
    return {"content": None, "tool_calls": [call]}


def reply_to_chain(body: dict[str, Any]) -> str:
    """Name the form, write the query, and say what its rows say."""
    text = str(body["messages"][-1]["content"])
    if "Identify the intent" in text:
        return "SELECT"
    if "Generate a SPARQL SELECT statement" in text:
        return COMPOSERS
    return "The music of Arrival was composed by Jóhann Jóhannsson."


def reply_to_dspy(body: dict[str, Any]) -> str:
    """Find the person by name, ask for the films, finish, and copy the IRIs."""
    text = str(body["messages"][-1]["content"])
    query = f"{PREFIX}SELECT ?film WHERE {{ ?film fl:director <{VILLENEUVE}> }} ORDER BY ?film"
    turns = [
        ("I need the IRI of the person.", "find_thing", {"name": "Denis Villeneuve"}),
        ("Now I ask which films have this director.", "sparql", {"query": query}),
        ("These are the films.", "finish", {}),
    ]
    if "next_thought" in text.rpartition("Respond with")[2]:
        thought, tool, arguments = turns[text.count("[[ ## observation_")]
        fields = {"next_thought": thought, "next_tool_name": tool}
        fields["next_tool_args"] = json.dumps(arguments)
    else:
        films = re.findall(rf"«({FILMS}[^»]+)»", text)
        found = [film for film in dict.fromkeys(films) if film != VILLENEUVE]
        reasoning = "The second query returned the films that he directed."
        fields = {"reasoning": reasoning, "iris": json.dumps(found)}
    parts = [f"[[ ## {name} ## ]]\n{value}" for name, value in fields.items()]
    return "\n\n".join([*parts, "[[ ## completed ## ]]"])


SCRIPTS: dict[str, Any] = {
    "smolagents_agent": reply_to_smolagents,
    "sparql_chain": reply_to_chain,
    "dspy_react": reply_to_dspy,
}


def record_published(name: str) -> None:
    """Save a run of a published pipeline."""
    question, _ = PUBLISHED[name]
    with chat_server(SCRIPTS[name], CHAT_PORT):
        system = resolve_system(FOLDER / f"{name}.py")
        system.origin = f"notebooks/pipelines/{name}.py"  # not where it is on this machine
        run = Run(system, question, kg=open_kg("films"), models=None).go()
    run.save(FOLDER / f"{name}.jsonl")


# --- recording


def record(name: str) -> None:
    """Save a run of a pipeline, with the calls of the edit that the notebook makes."""
    system = resolve_system(FOLDER / f"{name}.py")
    run = Run(system, QUESTIONS[name], kg=open_kg("films"), models=None).go()
    key, value = EDITS[name]
    run.override(key, value).go()
    run.remove_override(key).go()
    run.save(FOLDER / f"{name}.jsonl")


def main() -> None:
    """Record the published pipelines that are named, else those that need no other package."""
    films = sample_path("films")
    os.environ["FILMS"] = str(films)
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else it is downloaded
    for name in sys.argv[1:]:
        record_published(name)
    if sys.argv[1:]:
        return
    turtle = films.read_text(encoding="utf-8")
    with (
        chat_server(reply_to, CHAT_PORT),
        sparql_endpoint(turtle, SPARQL_PORT),
    ):
        for name in QUESTIONS:
            record(name)


if __name__ == "__main__":
    main()
