"""RoboData with hostile arguments of its tools, and hostile graphs."""

from __future__ import annotations

import json
import re

from machine import answered, fetch, goes, produce, robodata, script, search
from small import films

from hostile.corpus import IRIS, texts
from hostile.runs import bundles, graph
from hostile.test_surveys import assert_quoted
from kgwb.kg.sparql import LONE_SURROGATE
from kgwb.llm import Scripted
from kgwb.run.exports import to_cypher, to_graphml, to_json
from kgwb.show.comparison import to_html
from kgwb.systems.robodata.states import TOOLS_BY_STATE

WHOLE = [text for text in texts(500) if not LONE_SURROGATE.search(text)]
"""Texts without lone surrogates, because no reply with one is accepted."""
THERE = set(films().construct("CONSTRUCT WHERE { ?s ?p ?o }"))


def test_hostile_arguments_of_tools_are_results_and_change_nothing() -> None:
    """Each tool gets each text as each argument. It returns a result or an error, and changes nothing."""
    kg = films()
    for text in WHOLE[:120:4]:
        remote = [goes("REMOTE", *uses("REMOTE", text)), goes("EVAL_REMOTE", search())]
        update = goes("EVAL_LOCAL", *uses("UPDATE", text), fetch("orgx:director", "orgx:dune"))
        run, _ = answered(kg, remote=remote, update=update)
        assert run.status == "done"
        assert run.answer
        assert set(kg.construct("CONSTRUCT WHERE { ?s ?p ?o }")) == THERE
        for step in run.steps:
            to_html(step)


def uses(state: str, text: str) -> list[dict[str, object]]:
    """A use of each tool of a state, with one text for every argument."""
    kinds = {"string": text, "array": [text], "integer": 20}
    return [
        {
            name: kinds[shape["type"]]
            for name, shape in form.model_json_schema()["properties"].items()
        }
        | {"tool": form.spec.name}
        for form in TOOLS_BY_STATE[state]  # type: ignore[index]
    ]


def test_texts_of_a_graph_are_in_quotes_in_the_prompts_of_every_state() -> None:
    for number, bundle in enumerate(bundles(WHOLE[:300])):
        words = tuple(f"INJECTED {text}" for text in bundle)
        entity = {"tool": "get_entity_info", "entity": "orgx:film"}
        remote = [goes("REMOTE", search(words[0]), entity), goes("EVAL_REMOTE", entity)]
        update = goes("EVAL_LOCAL", fetch("orgx:director", "orgx:film"))
        nothing = produce(["orgx:film"], answers=("orgx:film",))
        model = Scripted(script(remote=remote, update=update, produce=nothing))
        run = robodata(model, graph(words, IRIS[number % len(IRIS)]), metacognition=True).go()
        for request in model.requests:
            for name in ("graph", "results", "memory"):
                assert_quoted(str(request.variables[name]).replace("→", ""))
        local = run.output("local_graph[turn 5]")
        assert len(json.loads(to_json(local))["nodes"]) == len(local.nodes)
        assert to_graphml(local).startswith("<graphml")
        assert "INJECTED" not in re.sub(r'"(?:[^"\\]|\\.)*"', "", to_cypher(local))
