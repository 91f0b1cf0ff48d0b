"""RoboData as a whole: states, tools, the local graph, support sets, limits, overrides and replays."""

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
from page import pictures
from rdflib import Literal
from small import FILMS, SLOW, answer_of, asked, iri, keys

import kgwb
from kgwb.errors import InvalidReplyError, OverrideError
from kgwb.llm import Scripted
from kgwb.run.answers import NOT_IN_GRAPH
from kgwb.run.exports import to_cypher, to_graphml, to_json
from kgwb.show.notebook import to_html
from kgwb.show.subgraph import build_subgraph
from kgwb.systems.robodata.records import LocalGraph

DIRECTED = (iri("dune"), iri("director"), iri("denis"))
STARRING = (iri("dune"), iri("starring"), iri("timothee"))
CALLS = {"remote": 2, "eval_remote": 1, "update": 1, "eval_local": 1, "produce": 1}
ANSWER = "Denis Villeneuve"
ADVICE = "Fetch both triples."
"""The advice of the scripted model."""


def variables_of(model: Scripted, task: str, name: str) -> list[str]:
    """The values of a prompt variable in the requests of a task, in order."""
    return [str(r.variables[name]) for r in model.requests if r.task == f"robodata/{task}"]


# The machine


def test_values_have_the_order_of_the_sentences_that_prove_them() -> None:
    directed = ["orgx:dune", "orgx:director", "orgx:denis"]
    starring = ["orgx:dune", "orgx:starring", "orgx:timothee"]
    proofs = {"orgx:denis": directed, "orgx:timothee": starring}
    for order in (("orgx:denis", "orgx:timothee"), ("orgx:timothee", "orgx:denis")):
        sentences = [{"text": name, "support": [proofs[name]]} for name in order]
        reply = produce(answers=("orgx:denis", "orgx:dune", "orgx:timothee"), sentences=sentences)
        run, _ = answered(produce=reply)
        answer = answer_of(run)
        assert answer.text == f"{order[0]} (1) {order[1]} (2)"
        # Dune is in both sentences, and comes where the local graph has it.
        ends = [name.removeprefix("orgx:") for name in order]
        terms = [value.term for value in answer.values if value.term != iri("dune")]
        assert terms == [iri(end) for end in ends]


def test_the_states_are_visited_and_the_answer_has_its_support() -> None:
    run, model = answered()
    answer = answer_of(run)
    assert (answer.labels, answer.support) == ((ANSWER,), (DIRECTED, STARRING))
    assert answer.text == f"{run.output('produce').sentences[0].text} (1)"
    assert asked(model) == CALLS
    position = run.output("turn[turn 6]")
    assert position.state == "PRODUCE"
    assert [visit.state for visit in position.visits] == [
        *("EVAL_LOCAL", "REMOTE", "REMOTE", "EVAL_REMOTE", "UPDATE", "EVAL_LOCAL")
    ]
    assert position.statistics == "6 turns, 4 tool calls, 3 nodes, 2 edges"
    first_steps = """
        turn[turn 1], eval_local[turn 1], turn[turn 2], remote[turn 2],
        search_entities[turn 2/use 1], local_graph[turn 2]
    """
    assert keys(run)[:6] == [key.strip() for key in first_steps.split(",")]


def test_the_last_thought_is_shown_in_the_next_prompt() -> None:
    run, model = answered()
    first_thought = run.output("turn[turn 1]").visits[0].thought
    assert variables_of(model, "remote", "thought") == [first_thought, "so"]


def test_the_next_state_is_a_field_and_not_a_word_of_the_thought() -> None:
    words = "cannot PRODUCE_ANSWER yet; irrelevant; UPDATE"
    run, _ = answered(eval_remote=judges("EVAL_LOCAL", words), settings={"turn_limit": 5})
    assert run.output("eval_remote").next == "EVAL_LOCAL"
    with pytest.raises(InvalidReplyError, match="next"):
        answered(eval_remote=judges("PRODUCE", "we may produce"))


def test_a_run_that_never_produces_ends_at_its_limit() -> None:
    loop = {"eval_local": judges("REMOTE"), "remote": goes("EVAL_REMOTE", search())}
    run, model = answered(**loop, settings={"turn_limit": 8})
    assert (model.call_count(), answer_of(run).labels) == (8 - 2 + 1, (ANSWER,))
    assert "limit of 8" in answer_of(run).text


def test_nothing_is_produced_from_an_empty_local_graph() -> None:
    remote = goes("REMOTE", search("nobody"))
    run, model = answered(remote=remote, settings={"turn_limit": 4})
    assert not run.answer
    assert answer_of(run).reason.startswith(NOT_IN_GRAPH)
    assert "limit of 4" in answer_of(run).reason
    assert asked(model) == {"remote": 2}


def test_prompts_say_how_many_turns_are_left() -> None:
    remote = goes("REMOTE", search("nobody"))
    _, model = answered(remote=remote, settings={"turn_limit": 12})
    turns = variables_of(model, "remote", "turns")
    assert [int(text.split()[0]) for text in turns] == [*range(11, 1, -1)]
    assert ["low" in text for text in turns] == [True] + 9 * [False]
    assert ["high" in text for text in turns] == 5 * [False] + 5 * [True]
    assert ["only connect" in text for text in turns] == 8 * [False] + 2 * [True]


def test_metacognition_advises_only_the_evaluations() -> None:
    _, model = answered(settings={"metacognition": True})
    assert asked(model) == {**CALLS, "assessment": 2, "observation": 2}
    assert variables_of(model, "eval_local", "advice") == [ADVICE]
    assert variables_of(model, "observation", "previous") == ["none", ADVICE]
    statistics = variables_of(model, "assessment", "statistics")[0]
    for count in ("REMOTE → REMOTE 1", "REMOTE → EVAL_REMOTE 1", "search_entities 1"):
        assert count in statistics
    [update] = [request for request in model.requests if request.task == "robodata/update"]
    assert not any(ADVICE in message.content for message in update.messages)


def test_empty_advice_is_shown_as_none() -> None:
    nothing = {"judgement": "sound", "advice": ""}
    _, model = answered(settings={"metacognition": True}, observation=nothing)
    assert variables_of(model, "eval_local", "advice") == ["none"]


def test_memory_and_local_graph_are_cut_in_prompts() -> None:
    remote = [goes("REMOTE", search(), thought=f"thought {n}") for n in range(6)]
    remote.append(goes("EVAL_REMOTE", search()))
    _, model = answered(remote=remote, settings={"memory_chars": 150, "shown_chars": 60})
    memory = variables_of(model, "eval_remote", "memory")[0].splitlines()
    assert memory[1].startswith("2. REMOTE → REMOTE,")
    assert "thought" not in memory[1]
    assert memory[-1].startswith("8. REMOTE → EVAL_REMOTE; search_entities")
    assert memory[-1].endswith("thought: so")
    assert all("more line" in text for text in variables_of(model, "eval_local", "graph"))


# Tools


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
        (use("sparql_query", sparql="SELECT ?x { ?x"), "error: ", 0),
        (use("sparql_query", sparql="DROP ALL"), "error: ", 0),
        (use("sparql_query", sparql="DESCRIBE orgx:dune"), "write a SELECT or an ASK", 0),
        (use("get_entity_info", entity="Dune"), 'error: "\\"Dune\\" is neither', 0),
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
def test_a_use_of_a_tool_is_a_step_whose_result_the_model_is_shown(
    action: Any, line: str, rows: int
) -> None:
    run, model = answered(remote=[goes("REMOTE", search()), goes("EVAL_REMOTE", action)])
    observed = run.output(f"{action['tool']}[turn 3/use 1]")
    assert line in str(observed)
    assert len(observed.rows) == rows
    assert line in variables_of(model, "eval_remote", "results")[0]
    assert run.output("turn[turn 3]").visits[-1].results == (observed,)


def test_the_local_graph_has_what_was_fetched_and_not_removed() -> None:
    remove_node = use("remove_node", node="orgx:lynch")
    remove_edge = use(
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
    update = [first, goes("EVAL_LOCAL", remove_node, remove_edge)]
    run, _ = answered(eval_local=evals, remote=remote, update=update, local=closer)
    fetched: LocalGraph = run.output("local_graph[turn 5]")
    assert (len(fetched.nodes), len(fetched.support)) == (8, 5)
    assert {iri("amy"), Literal(3)} <= {*fetched.nodes}
    kept: LocalGraph = run.output("local_graph[turn 9]")
    assert {*fetched.nodes} - {*kept.nodes} == {iri("lynch")}
    assert (len(kept.support), STARRING in kept.support) == (3, False)
    uses = [step.output for step in run.steps if "turn 11/use" in step.key]
    assert [len(result.rows) for result in uses] == [3, 2, 2]


def test_an_error_of_the_engine_is_a_result_and_is_replayed(tmp_path: Path) -> None:
    kg = kgwb.open_kg(rdflib.Graph().parse(data=FILMS), query_timeout_s=1)
    slow = goes("EVAL_REMOTE", use("sparql_query", sparql=SLOW))
    run, _ = answered(kg, remote=[goes("REMOTE", search()), slow])
    assert "took longer" in run.output("sparql_query").error
    loaded = kgwb.load_run(run.save(tmp_path / "run.jsonl"))
    assert [step.output for step in loaded.steps] == [step.output for step in run.steps]


def test_too_many_tool_uses_are_not_accepted() -> None:
    with pytest.raises(InvalidReplyError, match="more than 2"):
        answered(remote=goes("REMOTE", *[search()] * 3), settings={"tool_uses": 2})


# The answer


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
    assert sentence.failed[0] == "orgx:dune | orgx:director | orgx:lynch"
    assert f"[{sentence.problem}]" in answer_of(run).text
    assert (answer_of(run).support, answer_of(run).labels) == ((DIRECTED,), (ANSWER,))


def test_an_answer_that_is_not_a_node_is_left_out_and_noted() -> None:
    run, _ = answered(produce=produce(*PROVEN, answers=("orgx:denis", "orgx:lynch")))
    assert answer_of(run).labels == (ANSWER,)
    [note] = run["produce"].notes
    assert "orgx:lynch" in note and "orgx:denis" not in note


def test_a_sentence_without_support_is_marked() -> None:
    run, _ = answered(produce=produce())
    [sentence] = run.output("produce").sentences
    assert sentence.problem == "without support"
    assert f"[{sentence.problem}]" in answer_of(run).text


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


def test_an_answer_without_values_has_what_is_missing_as_its_reason() -> None:
    missing = "the budget"
    run, _ = answered(produce=produce(kind="nothing", answers=(), missing=missing))
    assert not run.answer
    assert answer_of(run).reason == f"{NOT_IN_GRAPH}: {missing}"


def test_an_answer_of_unknown_nodes_has_no_values() -> None:
    run, _ = answered(produce=produce(*PROVEN, answers=("orgx:nobody",)))
    assert not run.answer


# Overrides


def test_support_that_a_person_put_into_the_local_graph_is_checked_against_the_graph() -> None:
    run, _ = answered()
    local: LocalGraph = run.output("local_graph[turn 5]")
    triple = (iri("dune"), iri("director"), iri("lynch"))
    run.override("local_graph[turn 5]", local.without([], [STARRING]).with_triples([], [triple]))
    ids = ["orgx:dune", "orgx:director", "orgx:lynch"]
    run = run.fork(models=Scripted(script(produce=produce(PROVEN[0], ids)))).go()
    assert answer_of(run).support == (DIRECTED,)
    assert f"[not in the graph: {' | '.join(ids)}]" in answer_of(run).text


def test_an_override_of_a_result_changes_the_local_graph() -> None:
    run = robodata(Scripted(script())).go()
    key = "fetch_relationship_from_node[turn 5/use 2]"
    run.override(key, {"effect": "added", "use": "nothing"}).go()
    assert STARRING not in run.output("local_graph[turn 5]").support
    assert answer_of(run).support == (DIRECTED,)


def uri(term: str) -> dict[str, str]:
    return {"type": "uri", "value": str(term)}


UNKNOWN_SUPPORT = [uri(iri("dune")), str(iri("director")), uri(iri("lynch"))]


@pytest.mark.parametrize(
    ("key", "output", "problem"),
    [
        ("eval_remote", {"thought": "", "next": "PRODUCE"}, "EVAL_REMOTE .* PRODUCE"),
        (
            "remote[turn 2]",
            {"thought": "", "next": "REMOTE", "actions": [FETCHED["actions"][0]]},
            "tool",
        ),
        (
            "produce",
            {"sentences": [{"text": "x", "support": [UNKNOWN_SUPPORT]}], "kind": "things"},
            "local graph",
        ),
    ],
)
def test_an_override_must_be_possible(key: str, output: Any, problem: str) -> None:
    run, _ = answered()
    with pytest.raises(OverrideError, match=problem):
        run.override(key, output)


def test_an_override_of_a_decision_changes_the_next_state() -> None:
    run, model = answered()
    run.override(
        "remote[turn 2]", {"thought": "", "next": "EVAL_REMOTE", "actions": [search("Arrival")]}
    )
    run.go(until="turn[turn 2]")
    assert run.output("turn[turn 2]").state == "EVAL_REMOTE"
    assert model.call_count() == sum(CALLS.values())


# Pictures and exports


def test_the_subgraph_shows_the_local_graph_while_it_grows() -> None:
    run = robodata(Scripted(script()))
    sizes = []
    for turn in (4, 5):
        run.go(until=f"turn[turn {turn}]")
        shown = build_subgraph(run)
        sizes.append((len(shown.nodes), len(shown.edges)))
    assert sizes == [(0, 0), (3, 2)]
    step = run["turn[turn 5]"]
    page = to_html(step)
    for text in ("EVAL_REMOTE", "PRODUCE", "✓"):
        assert text in pictures(page)
    assert step.output.statistics in page
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


# Servers

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
def test_a_server_gives_the_same_results_as_its_file(
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
