"""RoboData as a whole: states, tools, the local graph, support sets, limits, edits and replays."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import rdflib
from machine import (
    FETCHED,
    PROVEN,
    answered,
    fetch,
    goes,
    judges,
    produce,
    robodata,
    script,
    search,
    use,
)
from rdflib import Literal
from small import FILMS, SLOW, answer_of, asked, iri, keys

import kgwb
from kgwb.errors import InvalidReplyError, OverrideError
from kgwb.kg.exports import to_cypher, to_graphml, to_json
from kgwb.llm import Scripted
from kgwb.show.notebook import to_html
from kgwb.show.subgraph import build_subgraph
from kgwb.systems.robodata.local_graph import LocalGraph

DIRECTED = (iri("dune"), iri("director"), iri("denis"))
STARRING = (iri("dune"), iri("starring"), iri("timothee"))
CALLS = {"remote": 2, "eval_remote": 1, "update": 1, "eval_local": 1, "produce": 1}


def prompts(model: Scripted, task: str, name: str) -> list[str]:
    return [str(r.variables[name]) for r in model.requests if r.task == f"robodata/{task}"]


# --- the machine


def test_the_states_are_gone_through_and_the_answer_has_its_support() -> None:
    run, model = answered()
    answer = answer_of(run)
    assert (answer.labels, answer.support) == (("Denis Villeneuve",), (DIRECTED, STARRING))
    assert answer.text == "Denis Villeneuve directed Dune. (1)"
    assert asked(model) == CALLS
    last = run.output("turn[turn 6]")
    assert [visit.state for visit in last.visits] == [
        *("EVAL_LOCAL", "REMOTE", "REMOTE", "EVAL_REMOTE", "UPDATE", "EVAL_LOCAL")
    ]
    assert str(last) == "→ PRODUCE; 6 turns, 4 tool calls, 3 nodes, 2 edges"
    assert keys(run)[:6] == [
        *("turn[turn 1]", "eval_local[turn 1]", "turn[turn 2]", "remote[turn 2]"),
        *("search_entities[turn 2/use 1]", "local_graph[turn 2]"),
    ]
    assert prompts(model, "remote", "thought") == ["the local graph is empty", "so"]


def test_the_next_state_is_a_field_and_never_a_word() -> None:
    words = "cannot PRODUCE_ANSWER yet; irrelevant; UPDATE"
    run, _ = answered(eval_remote=judges("EVAL_LOCAL", words), settings={"turn_limit": 5})
    assert run.output("eval_remote").next == "EVAL_LOCAL"
    with pytest.raises(InvalidReplyError, match="next"):
        answered(eval_remote=judges("PRODUCE", "we may produce"))


def test_a_run_that_never_produces_ends_at_its_limit_and_says_so() -> None:
    on = {"eval_local": judges("REMOTE"), "remote": goes("EVAL_REMOTE", search())}
    run, model = answered(**on, settings={"turn_limit": 8})
    assert (model.call_count(), answer_of(run).labels) == (8 - 2 + 1, ("Denis Villeneuve",))
    assert "ended at the limit of 8 turns, with what was found by then" in answer_of(run).text
    lost, model = answered(remote=goes("REMOTE", search("nobody")), settings={"turn_limit": 4})
    assert str(lost.answer).startswith("not in this graph: nothing in the graph was found")
    assert "ended at the limit of 4 turns" in answer_of(lost).reason
    assert asked(model) == {"remote": 2}, "an empty local graph needs no producer"
    assert (
        "2 turns left, PRODUCE with them; urgency high; only connect"
        in prompts(model, "remote", "turns")[-1]
    )


def test_metacognition_advises_the_evaluations_and_nobody_else() -> None:
    _, model = answered(settings={"metacognition": True})
    assert asked(model) == {**CALLS, "assessment": 2, "observation": 2}
    assert prompts(model, "eval_local", "advice") == ["Fetch both triples."]
    assert prompts(model, "observation", "previous") == ["none", "Fetch both triples."]
    assert (
        "REMOTE → REMOTE 1; REMOTE → EVAL_REMOTE 1; search_entities 1"
        in prompts(model, "assessment", "statistics")[0]
    )
    assert not any(
        "Fetch both" in m.content for r in model.requests for m in r.messages if "update" in r.task
    )
    nothing = {"judgement": "sound", "advice": ""}
    _, model = answered(settings={"metacognition": True}, observation=nothing)
    assert prompts(model, "eval_local", "advice") == ["none"]


def test_memory_keeps_to_its_budget_and_prompts_to_theirs() -> None:
    remote = [
        *(goes("REMOTE", search(), thought=f"thought {n}") for n in range(6)),
        goes("EVAL_REMOTE", search()),
    ]
    _, model = answered(remote=remote, settings={"memory_chars": 150, "shown_chars": 60})
    memory = prompts(model, "eval_remote", "memory")[0].splitlines()
    assert memory[1] == "2. REMOTE → REMOTE, 1 tool call"
    assert memory[-1].startswith(
        '8. REMOTE → EVAL_REMOTE; search_entities("Dune"): 2 rows; thought: so'
    )
    assert all("more line" in text for text in prompts(model, "eval_local", "graph"))


# --- tools


@pytest.mark.parametrize(
    ("action", "line", "rows"),
    [
        (search(), 'search_entities("Dune"): 2 rows', 2),
        (use("get_entity_info", entity="orgx:denis"), 'get_entity_info("orgx:denis"): 3 rows', 3),
        (use("get_property_info", property="orgx:director"), "4 rows", 4),
        (use("get_property_info", property="orgx:starring"), "3 rows", 3),
        (
            use("explore_entity_neighbors", entity="orgx:denis", predicate="", limit=2),
            "2 rows of 5",
            2,
        ),
        (
            use(
                "explore_entity_neighbors", entity="orgx:denis", predicate="orgx:director", limit=0
            ),
            "3 rows",
            3,
        ),
        (use("sparql_query", sparql="SELECT ?f { ?f orgx:director orgx:denis }"), "3 rows", 3),
        (use("sparql_query", sparql="ASK { orgx:dune orgx:director orgx:denis }"), "1 row", 1),
        ({"tool": "sparql_query", "sparql": "SELECT ?x { ?x"}, "error: ", 0),
        (use("sparql_query", sparql="DROP ALL"), "error: ", 0),
        (use("sparql_query", sparql="DESCRIBE orgx:dune"), "write a SELECT or an ASK", 0),
        (use("get_entity_info", entity="Dune"), 'error: "\\"Dune\\" is no id', 0),
        (use("build_local_graph", entity="orgx:arrival", predicates=[]), "1 row added", 1),
        (
            use(
                "build_local_graph",
                entity="orgx:arrival",
                predicates=["orgx:director", "orgx:birthPlace"],
            ),
            "2 rows added",
            2,
        ),
    ],
)
def test_a_use_of_a_tool_is_a_step_with_its_result_counted(
    action: Any, line: str, rows: int
) -> None:
    run, model = answered(remote=[goes("REMOTE", search()), goes("EVAL_REMOTE", action)])
    observed = run.output(f"{action['tool']}[turn 3/use 1]")
    assert line in str(observed)
    assert len(observed.rows) == rows
    assert line in prompts(model, "eval_remote", "results")[0]
    assert run.output("turn[turn 3]").visits[-1].results == (observed,)


def test_what_is_fetched_and_removed_is_what_the_local_graph_has() -> None:
    gone = use("remove_node", node="orgx:lynch")
    edge = use(
        "remove_edge", subject="orgx:dune", predicate="orgx:starring", object="orgx:timothee"
    )
    first = goes(
        "EVAL_LOCAL",
        fetch("orgx:director", "orgx:dune", "orgx:lynchs_dune"),
        fetch("orgx:director", "orgx:denis", to=True, others=("orgx:sicario",)),
        fetch("orgx:numberOfChildren", "orgx:denis"),
        fetch("orgx:starring", "orgx:dune"),
        use("fetch_node", node="orgx:amy"),
        use("fetch_node", node="orgx:nobody"),
    )
    closer = goes(
        "EVAL_LOCAL",
        use("get_node", node="orgx:denis"),
        use("get_edge", predicate="orgx:director"),
        use("query_local", sparql="SELECT ?f { ?f orgx:director orgx:denis }"),
    )
    evals = [judges("REMOTE"), judges("LOCAL"), judges("PRODUCE")]
    remote = [*script()["robodata/remote"], goes("EVAL_REMOTE", search())]
    update = [first, goes("EVAL_LOCAL", gone, edge)]
    run, _ = answered(eval_local=evals, remote=remote, update=update, local=closer)
    grown: LocalGraph = run.output("local_graph[turn 5]")
    assert str(grown) == "8 nodes, 5 edges"
    assert {iri("amy"), Literal(3)} <= {*grown.nodes}
    kept: LocalGraph = run.output("local_graph[turn 9]")
    assert {*grown.nodes} - {*kept.nodes} == {iri("lynch")}
    assert (len(kept.support), STARRING in kept.support) == (3, False)
    lines = [str(step.output).partition(": ")[2] for step in run.steps if "turn 11/use" in step.key]
    assert lines == ["3 rows", "2 rows", "2 rows"]


def test_an_error_of_the_engine_is_a_result_and_replays(tmp_path: Path) -> None:
    kg = kgwb.open_kg(rdflib.Graph().parse(data=FILMS), query_timeout_s=0.5)
    slow = goes("EVAL_REMOTE", use("sparql_query", sparql=SLOW))
    run, _ = answered(kg, remote=[goes("REMOTE", search()), slow])
    assert "took longer" in run.output("sparql_query").error
    loaded = kgwb.load_run(run.save(tmp_path / "run.jsonl"))
    assert [step.output for step in loaded.steps] == [step.output for step in run.steps]


def test_too_many_tool_uses_are_sent_back() -> None:
    with pytest.raises(InvalidReplyError, match="more than 2"):
        answered(remote=goes("REMOTE", *[search()] * 3), settings={"tool_uses": 2})


# --- the answer


def test_support_that_is_not_in_the_graph_is_marked_beside_its_sentence() -> None:
    invented = (
        ["orgx:dune", "orgx:director", "orgx:lynch"],
        ["orgx:dune", "orgx:sibling", "orgx:denis"],
        ["orgx:amy"],
        [],
    )
    run, _ = answered(produce=produce(PROVEN[0], *invented, answers=("orgx:denis", "orgx:lynch")))
    [sentence] = run.output("produce").sentences
    assert (sentence.support, len(sentence.failed)) == ((DIRECTED,), 4)
    assert "[not in the graph: orgx:dune | orgx:director | orgx:lynch, " in answer_of(run).text
    assert (answer_of(run).support, answer_of(run).labels) == ((DIRECTED,), ("Denis Villeneuve",))
    assert "left out of the answers: orgx:lynch" in run["produce"].notes[0]
    bare, _ = answered(produce=produce())
    assert "[without support]" in answer_of(bare).text


@pytest.mark.parametrize(
    ("kind", "answers", "shape", "label"),
    [
        ("count", ("orgx:denis", "orgx:timothee", "orgx:nobody"), "count", "2"),
        ("yes", (), "boolean", "true"),
        ("no", (), "boolean", "false"),
    ],
)
def test_numbers_and_truth_values(kind: str, answers: Any, shape: str, label: str) -> None:
    run, _ = answered(produce=produce(*PROVEN, kind=kind, answers=answers))
    answer = answer_of(run)
    assert (answer.kind, answer.labels, len(answer.support)) == (shape, (label,), 2)


def test_what_the_graph_has_nothing_for_is_said() -> None:
    run, _ = answered(produce=produce(kind="nothing", answers=(), missing="what it cost"))
    assert (str(run.answer), bool(run.answer)) == ("not in this graph: what it cost", False)
    lost, _ = answered(produce=produce(*PROVEN, answers=("orgx:nobody",)))
    assert not lost.answer


# --- by hand, and again


def test_a_tools_result_and_the_local_graph_may_be_put_in_by_hand() -> None:
    run, _ = answered()
    local: LocalGraph = run.output("local_graph[turn 5]")
    triple = (iri("dune"), iri("director"), iri("lynch"))
    run.override("local_graph[turn 5]", local.without([], [STARRING]).with_triples([], [triple]))
    by_hand = ["orgx:dune", "orgx:director", "orgx:lynch"]
    run = run.fork(models=Scripted(script(produce=produce(PROVEN[0], by_hand)))).go()
    assert answer_of(run).support == (DIRECTED,), "the graph itself does not have what was put in"
    assert "not in the graph: orgx:dune | orgx:director | orgx:lynch" in answer_of(run).text
    again = robodata(Scripted(script())).go()
    again.override(
        "fetch_relationship_from_node[turn 5/use 2]", {"effect": "added", "use": "nothing"}
    ).go()
    assert STARRING not in again.output("local_graph[turn 5]").support
    assert answer_of(again).support == (DIRECTED,)
    with pytest.raises(OverrideError, match="EVAL_REMOTE does not lead to PRODUCE"):
        again.override("eval_remote", {"thought": "", "next": "PRODUCE"})
    with pytest.raises(OverrideError, match="has no such tool"):
        again.override(
            "remote[turn 2]", {"thought": "", "next": "REMOTE", "actions": [FETCHED["actions"][0]]}
        )
    wrong = {"text": "x", "support": [[{"type": "uri", "value": str(end)} for end in triple]]}
    wrong["support"][0][1] = str(triple[1])  # type: ignore[index]
    with pytest.raises(OverrideError, match="not in the local graph"):
        again.override("produce", {"sentences": [wrong], "kind": "things"})


def test_a_decision_by_hand_changes_the_way() -> None:
    run, model = answered()
    run.override(
        "remote[turn 2]", {"thought": "", "next": "EVAL_REMOTE", "actions": [search("Arrival")]}
    )
    run.go(until="turn[turn 2]")
    assert run.output("turn[turn 2]").state == "EVAL_REMOTE"
    assert model.call_count() == sum(CALLS.values()), "nothing is asked for it"


def test_the_local_graph_is_what_the_picture_shows_as_it_grows() -> None:
    run = robodata(Scripted(script()))
    sizes = []
    for turn in (4, 5):
        run.go(until=f"turn[turn {turn}]")
        shown = build_subgraph(run)
        sizes.append((len(shown.nodes), len(shown.edges)))
    assert sizes == [(0, 0), (3, 2)]
    page = to_html(run["turn[turn 5]"])
    assert all(name in page for name in ("EVAL_REMOTE", "PRODUCE", "5 turns, 4 tool calls", "✓"))
    assert "2 rows" in to_html(run["search_entities"])


def test_the_local_graph_is_exported() -> None:
    run, _ = answered()
    local = run.output("local_graph[turn 5]")
    data = json.loads(to_json(local))
    assert (len(data["nodes"]), {edge["label"] for edge in data["edges"]}) == (
        3,
        {"director", "starring"},
    )
    assert len(ElementTree.fromstring(to_graphml(local))[-1]) == 5
    assert to_cypher(local).count("-[:RELATION {") == 2
    assert to_cypher(LocalGraph()) == ""


# --- servers

EVERY_TOOL = goes(
    "EVAL_REMOTE",
    use("get_entity_info", entity="orgx:dune"),
    use("get_property_info", property="orgx:starring"),
    use("sparql_query", sparql="SELECT ?f WHERE { ?f orgx:director orgx:denis } ORDER BY ?f"),
    use("sparql_query", sparql="ASK { orgx:dune orgx:director orgx:lynch }"),
    use("explore_entity_neighbors", entity="orgx:denis", predicate="", limit=5),
    use("build_local_graph", entity="orgx:dune", predicates=["orgx:director", "orgx:birthPlace"]),
)


@pytest.mark.long
@pytest.mark.parametrize("server", ["oxigraph", "virtuoso"])
def test_a_server_gives_what_its_file_gives(
    server: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    file = tmp_path / "robodata.ttl"
    file.write_text(FILMS, encoding="utf-8")
    engine = request.getfixturevalue(server)
    used = {action["tool"] for action in EVERY_TOOL["actions"]}
    remote = [goes("REMOTE", search()), EVERY_TOOL]
    here, there = (answered(kgwb.open_kg(kg), remote=remote)[0] for kg in (file, engine.load(file)))
    assert answer_of(there) == answer_of(here) and answer_of(here).support == (DIRECTED, STARRING)
    assert keys(there) == keys(here)
    for step in here.steps:
        assert str(there.output(step.key)) == str(step.output), step.key
        assert step.agent not in used or not step.output.error, step.output
