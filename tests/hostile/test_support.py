"""RoboData with support sets that a model invents, hostile ids, and hostile graphs."""

from __future__ import annotations

import json
import random
import re

from machine import PROVEN, answered, fetch, goes, produce, robodata, script, search
from page import record_html
from small import films, iri

from hostile.corpus import IRIS, NO_IRIS, SEED, texts
from hostile.runs import bundles, graph
from hostile.test_surveys import assert_quoted
from kgwb.kg.sparql import LONE_SURROGATE
from kgwb.llm import Scripted
from kgwb.run.exports import to_cypher, to_graphml, to_json
from kgwb.show.notebook import to_html
from kgwb.systems.robodata.states import TOOLS_BY_STATE

RUNS, ELEMENTS = 20, 8
WHOLE = [text for text in texts(500) if not LONE_SURROGATE.search(text)]
"""Texts without lone surrogates, because no reply with one is accepted."""
THERE = set(films().construct("CONSTRUCT WHERE { ?s ?p ?o }"))


def invented(number: int) -> list[list[str]]:
    """Support elements, most of them wrong: wrong combinations, unknown ids, hostile texts."""
    chance = random.Random(SEED + number)
    ids = "orgx:dune orgx:denis orgx:lynch orgx:amy orgx:director orgx:starring wdt:S1".split()
    ids += [f"<{iri('dune')}>", str(iri("denis")), '"Dune"', "Dune", *WHOLE[:40], *IRIS, *NO_IRIS]
    ids = [each for each in ids if not LONE_SURROGATE.search(each)]
    lengths = (chance.choice((0, 1, 2, 3, 3, 3, 4)) for _ in range(ELEMENTS))
    return [[chance.choice(ids) for _ in range(length)] for length in lengths]


def test_invented_support_is_marked_and_never_part_of_the_answer() -> None:
    wrong = 0
    for number in range(RUNS):
        elements = [*invented(number), PROVEN[0]]
        run, _ = answered(
            produce=produce(*elements, answers=[each[0] for each in elements if each])
        )
        local = run.output("local_graph[turn 5]")
        [sentence] = run.output("produce").sentences
        assert run.answer
        assert {*sentence.support, *run.answer.support} <= {*local.support} <= THERE
        assert {*sentence.nodes, *(value.term for value in run.answer.values)} <= {*local.nodes}
        assert "[not in the graph: " in run.answer.text
        wrong += len(sentence.failed)
        page = record_html(run.output("produce"), of_system="robodata")
        assert re.search(r'class="note bad"[^>]*>[^<]*not in the graph', page)
        assert page.count('class="chain"') == len(sentence.support)
    assert wrong > RUNS * ELEMENTS / 2


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
