"""RoboData ("Epistemic agent over Wikidata"), section by section of its paper.

The reference code is https://github.com/EmanueleMusumeci/RoboData (commit 2ee910e). The paper has
no numbers on its sections, so claims are cited by their titles.
"""

from __future__ import annotations

import string
import tomllib
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import islice, product
from pathlib import Path
from typing import Any

import pytest
from machine import (
    DIRECTED,
    FETCHED,
    PROVEN,
    QUESTION,
    ROBODATA,
    STARRING,
    fetch,
    goes,
    judges,
    produce,
    script,
    search,
    use,
    variables_of,
)
from rdflib import Literal, URIRef
from small import answer_of, films, iri, requests_to, run_of, without_settings

import kgwb
from conformance.claims import conforms, violated_by
from conformance.whole_runs import WholeRuns, check_whole_runs, open_in_order, read_cases
from kgwb.kg import Graph
from kgwb.llm import Scripted
from kgwb.records import from_data, to_data
from kgwb.run import Run
from kgwb.run.answers import NOT_IN_GRAPH
from kgwb.show.run_state import GIVEN, IN_DOUBT, judge_answer
from kgwb.systems.robodata.records import LocalGraph, Observation, Position, Visit
from kgwb.systems.robodata.settings import RoboDataSettings
from kgwb.systems.robodata.states import TOOLS_BY_STATE, format_graph
from kgwb.systems.robodata.tools import TRIPLE_COLUMNS, Observed

PROFILES = ("paper", "reference", "fast")
INIT = "kgwb/systems/robodata/__init__.py"
RECORDS = "kgwb/systems/robodata/records.py"
SETTINGS = "kgwb/systems/robodata/settings.py"
STATES = "kgwb/systems/robodata/states.py"
TOOLS = "kgwb/systems/robodata/tools.py"
INVENTED = ["orgx:dune", "orgx:director", "orgx:lynch"]
"""A triple that is not in the graph."""

settings_of = RoboDataSettings.of_profile


def answered(
    profile_name: str, kg: Graph | None = None, settings: Any = (), **replies: Any
) -> tuple[Run, Scripted]:
    """A run to its end in a profile, and its model. The usual script explores twice in a row."""
    model = Scripted(script(**with_published(replies)))
    usual = {"after_remote": "remote_or_eval_remote"}
    chosen = settings_of(profile_name, **{**usual, **dict(settings)})
    return run_of(ROBODATA, QUESTION, model, kg=kg, settings=chosen).go(), model


def with_published(replies: dict[str, Any]) -> dict[str, Any]:
    """The replies of a script, also for the other texts of the same prompts."""
    usual = {name.partition("/")[2]: reply for name, reply in script(**replies).items()}
    every = dict(usual)
    for name, reply in usual.items():
        for suffix in ("_published", "_listed", "_unreflected", "_unreflected_listed"):
            every[name + suffix] = reply
    return every


def last_position(run: Run) -> Position:
    """The position of a run after its last turn."""
    position: Position = [step for step in run.steps if step.agent == "turn"][-1].output
    return position


def states_of(run: Run) -> list[str]:
    """The states that a run visited, without PRODUCE."""
    return [visit.state for visit in last_position(run).visits]


# --- Epistemic Substrate and Stateful Orchestrator


@conforms(
    "Epistemic Substrate",
    "the local graph is empty at first, and is populated while the question is answered",
)
@conforms(
    "Experimental Evaluation",
    "the number of turns, tool calls, nodes and edges is reported for each question",
)
@conforms("Local Data Evaluation", "if there is enough data, Produce Answer is visited")
@conforms("Local Graph Update", "from there to Local Data Evaluation")
@violated_by(INIT, "local = local.with_triples(nodes, triples)", "pass")
@violated_by(RECORDS, "sum(len(visit.results) for", "sum(bool(visit.results) for")
@violated_by(
    INIT, '        if position.state == "PRODUCE":\n', '        if position.state == "LOCAL":\n'
)
@violated_by(RECORDS, '    "UPDATE": ("EVAL_LOCAL",),\n', '    "UPDATE": ("EVAL_REMOTE",),\n')
def test_a_run_fetches_what_answers_the_question(name: str) -> None:
    run, _ = answered(name)
    sizes = [len(step.output.local.support) for step in run.steps if step.agent == "turn"]
    assert (sizes[0], sizes[-1]) == (0, 2)
    assert sizes == sorted(sizes)
    states = states_of(run)
    assert states[states.index("UPDATE") + 1] == states[-1] == "EVAL_LOCAL"
    assert answer_of(run).labels == ("Denis Villeneuve",)
    assert last_position(run).statistics == "6 turns, 4 tool calls, 3 nodes, 2 edges"


@conforms(
    "Epistemic Substrate",
    "the local graph has a common schema, which could take in several remote sources: RDF terms and triples, with "
    "IDs that tell those of all sources apart. A run asks one source, as the paper's runs do",
)
@violated_by(
    RECORDS,
    "return TermIds(self.prefixes, self.names).with_terms([*self.nodes, *predicates])",
    "return TermIds(self.prefixes, self.names)",
)
@violated_by(RECORDS, "all_triples = dict.fromkeys(self.support)", "all_triples = {}")
def test_the_local_graph_takes_in_several_sources(name: str) -> None:
    first = last_position(answered(name)[0]).local
    other = "http://other.example/"
    turtle = f"""
    @prefix : <{other}> . @prefix x: <http://third.example/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
    :dune rdfs:label "Dune" ; :director x:denis . x:denis rdfs:label "Denis Villeneuve" .
    """
    kg = films(turtle)
    remote = goes("EVAL_REMOTE", search())
    update = goes("EVAL_LOCAL", fetch(f"<{other}director>", f"<{other}dune>"))
    second = last_position(answered(name, kg, remote=remote, update=update)[0]).local
    joined = first.with_names(second.names).with_triples(second.nodes, second.support)
    assert joined.support == (*first.support, *second.support)
    assert (len(first.support), len(second.support)) == (2, 1)
    lines = [line.split(" | ") for line in joined.format_lines()[-3:]]
    assert [joined.find_elements(ids) for ids in lines] == [(triple,) for triple in joined.support]
    ids = {joined.id_mapping.format_id(node) for node in joined.nodes}
    assert len(ids) == len(joined.nodes) == 5


@conforms(
    "Stateful Orchestrator",
    "the model decides the order of the states; each has its prompt and its tools",
)
@conforms(
    "Local Graph Exploration",
    "from there to Local Data Evaluation, or exploring goes on",
)
@violated_by(
    STATES,
    'return Decision(" ".join(reply.thought.split()), reply.next, actions)',
    "return Decision(reply.thought, next_states[0], actions)",
)
@violated_by(RECORDS, '    "LOCAL": ("LOCAL", "EVAL_LOCAL"),\n', '    "LOCAL": ("EVAL_LOCAL",),\n')
def test_the_model_decides_the_order_of_states(name: str) -> None:
    evals = [judges("REMOTE"), judges("LOCAL"), judges("PRODUCE")]
    remote = [goes("EVAL_REMOTE", search())] * 2
    eval_remote = [judges("UPDATE"), judges("EVAL_LOCAL")]
    closer = use("get_node", node="orgx:denis")
    local = [goes("LOCAL", closer), goes("EVAL_LOCAL", closer)]
    run, _ = answered(name, eval_local=evals, remote=remote, eval_remote=eval_remote, local=local)
    first = ["EVAL_LOCAL", "REMOTE", "EVAL_REMOTE", "UPDATE", "EVAL_LOCAL"]
    then = ["REMOTE", "EVAL_REMOTE", "EVAL_LOCAL", "LOCAL", "LOCAL", "EVAL_LOCAL"]
    assert states_of(run) == [*first, *then]


@conforms(
    "Stateful Orchestrator",
    "after a number of turns the agent is forced to produce an answer",
)
@violated_by(
    SETTINGS, "            return self.turn_limit\n", "            return self.turn_limit + 1\n"
)
def test_the_last_turn_produces(name: str) -> None:
    loop = {"eval_local": judges("REMOTE"), "remote": goes("EVAL_REMOTE", search())}
    run, _ = answered(name, settings={"turn_limit": 9}, **loop)
    assert len(states_of(run)) == 9 - 1
    assert "limit of 9" in answer_of(run).text


@conforms(
    "Stateful Orchestrator; Experimental Evaluation",
    "it is forced to produce an answer also where nothing was collected: the model is asked, and a yes or "
    "no without a support set is in doubt",
    code="the same, but nothing is in doubt",
    fast="without a model the answer says that nothing was found",
    setting="empty_graph",
)
@violated_by(STATES, 'if not local and settings.empty_graph == "asked":', "if not local:")
@pytest.mark.parametrize("kind", ["nothing", "things", "yes"])
def test_an_answer_is_produced_from_an_empty_graph_too(name: str, kind: str) -> None:
    empty = {"remote": goes("EVAL_REMOTE", search("x")), "eval_remote": judges("EVAL_LOCAL")}
    reply = produce(*PROVEN, kind=kind, missing="who directed it")
    run, model = answered(name, settings={"turn_limit": 6}, produce=reply, **empty)
    answer = answer_of(run)
    assert not answer.support
    if name == "fast":
        assert not requests_to(model, "produce") and not answer.values
        return
    [graph] = variables_of(model, "produce", "graph")
    assert graph == "empty"
    if kind == "yes":
        assert answer.labels == ("true",)
        assert name == "reference" or "yes is not proved" in answer.doubt
    else:
        assert not answer.values and "who directed it" in answer.reason
        assert "not in the graph" in answer.text


@conforms(
    "Experimental Evaluation",
    "at most 30 turns in batches A and B, the first of which finds an empty graph; then the answer is produced",
    fast="the answer is the 30th turn",
    setting="turn_limit",
)
@conforms(
    "Experimental Evaluation, batch C",
    "at most 50 turns with metacognition, then the answer",
    code="also 30 for two of its eight queries",
    fast="the answer is the 30th turn in any case",
    setting="turn_limit",
)
@violated_by(SETTINGS, "TURNS = 31\n", "TURNS = 30\n")
@violated_by(SETTINGS, "TURNS_WITH_METACOGNITION = 51\n", "TURNS_WITH_METACOGNITION = 31\n")
@violated_by(
    INIT,
    "range(1, RoboDataSettings.of_run(run).turns)",
    "range(2, RoboDataSettings.of_run(run).turns)",
)
@pytest.mark.parametrize(
    ("name", "without", "with_metacognition"),
    [("paper", 30, 50), ("reference", 30, 50), ("fast", 29, 29)],
)
def test_turns_depend_on_the_batch(name: str, without: int, with_metacognition: int) -> None:
    loop = {"remote": goes("EVAL_REMOTE"), "eval_remote": judges("REMOTE")}
    for metacognition, turns in ((False, without), (True, with_metacognition)):
        run, _ = answered(name, settings={"metacognition": metacognition}, **loop)
        assert len(states_of(run)) == turns
    assert settings_of(name, turn_limit=7, metacognition=True).turns == 7


@conforms(
    "Experimental Evaluation",
    "no temperature is named; that of the code is taken",
    code="0.8 where it evaluates or looks in the remote graph, 0.7 for the meta-observation, else 0.1",
    fast="one temperature, 0",
    setting="temperatures",
)
@violated_by(STATES, '    "observation": 0.7,\n', '    "observation": 0.8,\n')
@violated_by(STATES, '    "update": 0.1,\n', '    "update": 0.8,\n')
def test_the_temperature_depends_on_the_state(name: str) -> None:
    _, model = answered(name, settings={"metacognition": True})
    published = {"assessment": 0.8, "observation": 0.7, "update": 0.1, "produce": 0.1}
    published |= dict.fromkeys(("remote", "eval_remote", "eval_local"), 0.8)
    for prompt, temperature in published.items():
        used = {request.temperature for request in requests_to(model, prompt)}
        assert used == {0.0 if name == "fast" else temperature}, prompt


# --- What is sent


LISTED = {
    "remote": set(),
    "eval_remote": {"results", "advice"},
    "update": {"results"},
    "eval_local": {"results", "advice"},
    "local": {"results"},
    "produce": set(),
}
"""What the paper lists for each state besides self-reflection, memory and local graph."""
PROMPTS: dict[str, dict[str, list[str]]] = tomllib.loads(
    Path(__file__).with_name("robodata_prompts.toml").read_text(encoding="utf-8")
)
"""What the paper says and prints of each system prompt."""


def looked_closer(name: str, **settings: Any) -> Scripted:
    """The model of a run that visits all states, the local evaluation before and after LOCAL."""
    evals = [judges("REMOTE"), judges("LOCAL"), judges("PRODUCE")]
    remote = [*script()["robodata/remote"], goes("EVAL_REMOTE", search("Arrival"))]
    eval_remote = [judges("UPDATE"), judges("EVAL_LOCAL")]
    replies = {"eval_local": evals, "remote": remote, "eval_remote": eval_remote}
    return answered(name, settings=settings, **replies)[1]


@conforms(
    "Stateful Orchestrator, assistant prompts",
    "each state has self-reflection, memory and local graph; the local states the results of local "
    "exploration, the evaluation and the update of remote data those of remote tools, the evaluations the "
    "advice of metacognition; nothing else",
    fast="all states also have the latest results of all tools and the turns left",
    setting="ingredients",
)
@conforms(
    "Stateful Orchestrator, assistant prompts",
    "what a state is given comes as a message of the assistant, between two of the user, since many models refuse "
    "to begin with the assistant",
    fast="as a message of the user",
    setting="ingredients",
)
@violated_by(STATES, '    "EVAL_LOCAL": ("LOCAL",),\n', "")
@violated_by(STATES, '    "EVAL_LOCAL": ("LOCAL",),\n', '    "EVAL_LOCAL": ("LOCAL", "REMOTE"),\n')
@violated_by(STATES, '    "LOCAL": ("LOCAL",),\n', '    "LOCAL": ("REMOTE",),\n')
@violated_by(STATES, '    "UPDATE": ("REMOTE",),\n', '    "UPDATE": ("LOCAL",),\n')
@violated_by(STATES, 'prompt = "produce_listed"', "pass")
@violated_by(STATES, "    if not is_listed or is_metacognition:\n", "    if True:\n")
@violated_by(STATES, "with_rows=is_listed", "with_rows=False")
@violated_by(RECORDS, "            if visit.state in states:\n", "            if visit.results:\n")
@violated_by(RECORDS, "                results.clear()\n", "                pass\n")
@violated_by(STATES, "position.format_results(settings.shown_chars)", "position.format_results(0)")
@violated_by("prompts/robodata/remote_listed.md", "\n[assistant]\n", "\n[user]\n")
@violated_by(
    "prompts/robodata/eval_local_listed.md",
    "{{results}}\n\nStrategic advice: {{advice}}\n\n[user]\n",
    "{{results}}\n\n[user]\nStrategic advice: {{advice}}\n",
)
@violated_by(SETTINGS, '        "ingredients": "listed",\n', "")
def test_each_state_has_what_the_paper_lists_for_it(name: str) -> None:
    model = looked_closer(name, metacognition=True)
    for prompt, listed in LISTED.items():
        request = requests_to(model, prompt)[-1]
        roles = [message.role for message in request.messages]
        if name == "fast":
            assert roles == ["system", "user"] and "results" in request.variables
            continue
        assert roles == ["system", "user", "assistant", "user"]
        data = request.messages[2].content
        everywhere = {"question", "thought", "memory", "graph"}
        forms = {"tool_uses", "search_hits", "after_remote", "next_example"}
        given = set(request.variables) - forms - {"neighbour_limit", "removing_tools"}
        assert given == everywhere | listed
        assert all(str(request.variables[each]) in data for each in given - {"question"})
        assert "Results" in data or "results" not in listed
    if name != "fast":
        assert variables_of(model, "local", "results") == ["none"]
        *before, of_local = variables_of(model, "eval_local", "results")
        assert before == ["none", "none"]
        assert "get_node" in of_local and "search_entities" not in of_local
        of_remote = variables_of(model, "update", "results")[-1]
        assert "get_entity_info" in of_remote and "get_node" not in of_remote
        # what was found before the last update is in memory, and no longer among the results
        last = [variables_of(model, "eval_remote", each)[-1] for each in ("results", "memory")]
        assert ["get_entity_info" in text for text in last] == [False, True]
        assert "search_entities" in last[0]
        assessed = variables_of(model, "assessment", "results")
        assert all(
            each in assessed[-1] for each in ("get_node", "search_entities", "fetch_relationship")
        )
        assert ["get_entity_info" in text for text in assessed][-5:] == [True, *[False] * 4]
        # what a search has found is in the memory of the turn after it
        assert "orgx:lynchs_dune" in variables_of(model, "remote", "memory")[1]


@conforms(
    "Stateful Orchestrator; Metacognition, system prompts",
    "the prompts ask for what the paper says of each: strategy, transitions, invitations to reflect and to "
    "keep the graph connected (where it is evaluated and updated), form and example of the answer, what to "
    "focus on and to consider",
    fast="metacognition is asked in fewer words, and the update not to keep the graph in one piece",
    setting="ingredients",
)
@violated_by(
    "prompts/robodata/eval_local_listed.md",
    "\n- The nodes should hang together; a part that is connected to nothing else helps nobody.",
    "",
)
@violated_by("prompts/robodata/update_listed.md", "no node that hangs on nothing, ", "")
@violated_by(
    "prompts/robodata/local_listed.md",
    "reflect on what was done so far: what worked, what failed, what should be done otherwise now. Two",
    "write two",
)
@violated_by(
    "prompts/robodata/eval_remote_listed.md",
    "reflect on what was done so far: what worked, what failed, what should be done otherwise now. Two",
    "write two",
)
@violated_by("prompts/robodata/produce_listed.md", "\n[example]\n", "\nNo example\n")
@violated_by(
    "prompts/robodata/assessment_listed.md",
    "- data retrieval patterns: how it gathers data and checks it, and whether it looks at relations in both "
    "directions\n",
    "",
)
@violated_by(
    "prompts/robodata/observation_listed.md",
    "- strategic continuity: how does it compare with the strategies before? Was the advice",
    "- was the advice",
)
@violated_by("prompts/robodata/eval_local.md", "\n- The nodes should hang together;", "\n-")
@conforms(
    "Stateful Orchestrator; Metacognition, system prompts",
    "the system prompts have the sentences that the paper prints, so that the answer is comprehensive, one claim in "
    "each sentence; what it has in brackets, such as [format example], is ours. How a reply names the next state is "
    "not said: it is JSON, with the next state as a field",
    code="the code ends a reply with the name of the next state, which is looked for anywhere in it; "
    "here `reference` is `paper`",
    fast="other words; short sentences are asked for",
    setting="ingredients",
)
@violated_by("prompts/robodata/produce_listed.md", "produces comprehensive answers", "answers")
@violated_by(
    "prompts/robodata/remote_listed.md",
    " Focus on entities/relationships related to the query.",
    "",
)
@violated_by(
    "prompts/robodata/update_listed.md", " Avoid isolated nodes and redundancy: no node", " No node"
)
@violated_by(
    "prompts/robodata/eval_remote_listed.md",
    " Evaluate if remote data is relevant",
    " See whether it is useful",
)
@violated_by(
    "prompts/robodata/observation_listed.md",
    "against task outcome and previous observations",
    "again",
)
@violated_by(STATES, '        prompt += "_listed"\n', "        pass\n")
def test_a_system_prompt_has_what_the_paper_says_and_prints(name: str) -> None:
    model = looked_closer(name, metacognition=True)
    for prompt, expected in PROMPTS.items():
        system = requests_to(model, prompt)[-1].messages[0].content
        assert any(text not in system for text in expected["printed"]) == (name == "fast"), prompt
        missing = {text for text in expected["said"] if text not in system}
        if name == "paper":
            assert not missing, prompt
        if prompt == "update":
            assert ("Keep the local graph in one piece" in missing) == (name == "fast")
        # the published code does not offer REMOTE, and metacognition is asked in fewer words in fast
        if name != "fast" or prompt not in ("assessment", "observation"):
            assert missing <= {"Keep the local graph in one piece", '"REMOTE" if'}, prompt


DESCRIBED = """
@prefix : <http://example.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix skos: <http://www.w3.org/2004/02/skos/core#> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
:dune rdfs:label "Dune"@en, "Der Wüstenplanet"@de ; skos:altLabel "Dune: Part One"@en ;
    rdfs:comment "a film of 2021"@en ; :director :denis ; :starring :timothee ; owl:sameAs <http://other.example/d> .
:director rdfs:label "director"@en, "Regie"@de ; rdfs:comment "who directs"@en ; rdfs:domain :Film ;
    owl:inverseOf :directed . :directorOf owl:equivalentProperty :director .
:lynchs_dune :director :lynch . :denis rdfs:label "Denis Villeneuve" . :timothee rdfs:label "Timothée Chalamet" .
"""


@conforms(
    "Local Graph Exploration and Remote Data Exploration, tools",
    "get_node, get_edge, get_entity_info and get_property_info give detailed information; which is not said: "
    "labels in all languages, aliases, descriptions, and triples. An edge is named by its predicate. Of an entity it "
    "is one triple for each predicate and direction, also of noise predicates, and their number: "
    "explore_entity_neighbors has them all. Of a property it is the triples at it but for noise, and 1,000 with it at "
    "most: of a type or a label there may be millions",
    fast="triples alone, without those of noise predicates, and five with a property",
    setting="details",
)
@violated_by(TOOLS, "[*vocabulary.labels, *vocabulary.descriptions]", "[*vocabulary.labels]")
@violated_by(TOOLS, "[*vocabulary.labels, *vocabulary.descriptions]", "[*vocabulary.descriptions]")
@violated_by(TOOLS, "return add_details(node, sample, local, run)", "return sample")
@violated_by(TOOLS, "return add_details(predicate, sample, local, run)", "return sample")
@violated_by(
    TOOLS, "    return add_details(entity, observed, local, run)\n", "    return observed\n"
)
@violated_by(TOOLS, "    return add_details(property, sample, local, run)\n", "    return sample\n")
@violated_by(TOOLS, "*triples], settings.shown_triples, is_complete)", "*triples], 1, is_complete)")
@violated_by(TOOLS, "[*outgoing, *incoming, *triples], ", "triples, ")
@violated_by(TOOLS, 'noise = settings.details == "described"', "noise = False")
@violated_by("kgwb/kg/queries.py", "if not predicates and not noise:", "if not predicates:")
@violated_by(TOOLS, "    rows += observed.rows\n", "")
def test_details_are_names_descriptions_and_triples(name: str) -> None:
    looks = [
        use("get_entity_info", entity="orgx:dune"),
        use("get_property_info", property="orgx:director"),
    ]
    closer = [use("get_node", node="orgx:dune"), use("get_edge", predicate="orgx:director")]
    run, _ = answered(
        name,
        films(DESCRIBED),
        remote=[goes("REMOTE", search()), goes("EVAL_REMOTE", *looks)],
        eval_local=[judges("LOCAL"), judges("PRODUCE")],
        local=goes("EVAL_LOCAL", *closer),
    )
    film = {"Dune", "Der Wüstenplanet", "Dune: Part One", "a film of 2021"}
    predicate = {"director", "Regie", "who directs"}
    triples = {str(iri(end)) for end in ("Film", "directed", "director")}
    expected = {
        "get_entity_info": film | {"http://other.example/d"},
        "get_property_info": predicate | triples,
        "get_node": film,
        "get_edge": predicate,
    }
    for tool, texts in expected.items():
        rows = run.output(tool).rows
        shown = texts.intersection(str(row[2]) for row in rows)
        assert shown == (set() if name == "fast" else texts), tool
        assert DIRECTED in [row[:3] for row in rows]
    of_property = run.output("get_property_info").rows
    assert len([row for row in of_property if row[1] == iri("director")]) == 2
    assert (iri("directorOf") in [row[0] for row in of_property]) == (name != "fast")


@conforms(
    "Local Graph Exploration, tools",
    "get_node and get_edge look into the local graph: of what is not in it they show nothing",
)
@violated_by(
    TOOLS,
    "    if not nodes:\n        return sample\n",
    "",
)
@violated_by(
    TOOLS,
    "    if not triples:\n        return sample\n",
    "",
)
def test_nothing_is_shown_of_what_is_not_in_the_local_graph(name: str) -> None:
    looks = [use("get_node", node="orgx:lynchs_dune"), use("get_edge", predicate="orgx:place")]
    local = goes("EVAL_LOCAL", *looks)
    replies = {"local": local, "eval_local": [judges("LOCAL"), judges("PRODUCE")]}
    run, _ = answered(name, films(MANY_SIDED), **replies)
    assert [run.output(tool).rows for tool in ("get_node", "get_edge")] == [(), ()]


def memory_after_looks(name: str, *looks: Any, **settings: Any) -> str:
    """The memory of the turn after one that used some tools, and another turn before."""
    remote = [
        goes("REMOTE", search(), looks[0], thought="first"),
        goes("EVAL_REMOTE", *looks, thought="all"),
    ]
    _, model = answered(name, many(300), settings, remote=remote, eval_remote=judges("UPDATE"))
    return variables_of(model, "eval_remote", "memory")[0]


@conforms(
    "Stateful Orchestrator, assistant prompts; Metacognition",
    "what memory holds is not said: it has every turn with its states, thought and tool calls, so that it is the "
    "sequence of actions too, and below each the rows that tools showed. These have 16,000 characters: the latest "
    "turn first, each of its tools its share; it is said where rows are left out",
    fast="6,000 characters: earlier turns have only their states, and no rows",
    setting="memory_chars",
)
@violated_by(SETTINGS, '        "memory_chars": 16_000,\n', "")
@violated_by(
    RECORDS,
    '                lines.append("\\n".join([line, *rows]))\n                continue\n',
    "",
)
@violated_by(
    RECORDS,
    "            share = max_chars // (len(self.results) - position)\n",
    "            share = max_chars\n",
)
@violated_by(RECORDS, "                max_chars -= sum(map(len, rows))\n", "")
@violated_by(
    RECORDS, '                line += f"; thought: {visit.thought}"\n', "                pass\n"
)
def test_memory_has_every_turn_whole_and_says_what_is_left_out(name: str) -> None:
    # in the first turn no ID was shown yet
    dune, starring = str(iri("dune")), str(iri("starring"))
    every = use("explore_entity_neighbors", entity=dune, predicate=starring, limit=300)
    other = use("explore_entity_neighbors", entity="orgx:dune", predicate="orgx:basis", limit=300)
    memory = memory_after_looks(name, every, every, other)
    assert "thought: all" in memory
    assert (memory.count("orgx:starring") > 100) == (name != "fast")
    if name == "fast":
        return
    for head in ("2. REMOTE → REMOTE; search_entities", "3. REMOTE → EVAL_REMOTE; explore"):
        assert head in memory
    assert "thought: first" in memory and "orgx:novel" in memory and "not shown" in memory
    assert 10_000 < len(memory) < 18_000
    short = memory_after_looks(name, every, every, other, memory_chars=1)
    assert "thought: first" in short and short.count("not shown") == 5


# --- Local Data Evaluation


@conforms(
    "Local Data Evaluation",
    "if the graph is empty, the system proceeds directly to Remote Data Exploration",
    code="the same, but that the first turn goes to LOCAL first, which `reference` leaves out",
    fast="after the first turn the model is asked, so that it can give up",
    setting="empty_graph",
)
@violated_by(
    STATES,
    'if not position.local and settings.empty_graph == "remote":',
    'if not position.local and settings.empty_graph == "never":',
)
@violated_by(SETTINGS, '        "empty_graph": "remote",\n', "")
def test_an_empty_graph_leads_to_remote(name: str) -> None:
    given_up = {
        "remote": goes("EVAL_REMOTE", search("nobody")),
        "eval_remote": judges("EVAL_LOCAL"),
    }
    run, model = answered(name, settings={"turn_limit": 8}, **given_up)
    asked_after_first = len(requests_to(model, "eval_local"))
    if name == "fast":
        assert states_of(run) == ["EVAL_LOCAL", "REMOTE", "EVAL_REMOTE", "EVAL_LOCAL"]
        assert asked_after_first == 1
    else:
        assert states_of(run) == (["EVAL_LOCAL", "REMOTE", "EVAL_REMOTE"] * 3)[:7]
        assert asked_after_first == 0
    assert answer_of(run).reason.startswith(NOT_IN_GRAPH) == (name == "fast")


@conforms(
    "Local Data Evaluation",
    "if the local graph exceeds the maximum, Local Graph Exploration is visited: once after each change of the "
    "graph, then the model decides",
    code="the graph is never cut, and the model decides",
    setting="large_graph",
)
@violated_by(
    RECORDS,
    "            if any(result.changes_graph for result in visit.results):\n                return False\n",
    "",
)
@violated_by(STATES, "not is_whole and not position.was_looked_into and", "not is_whole and")
def test_a_graph_that_does_not_fit_is_explored_before_the_answer(name: str) -> None:
    run, model = answered(name, settings={"shown_chars": 60})
    visited = ["EVAL_LOCAL"] if name == "reference" else ["EVAL_LOCAL", "LOCAL", "EVAL_LOCAL"]
    assert states_of(run)[5:] == visited
    assert len(requests_to(model, "eval_local")) == 1
    more = goes("EVAL_LOCAL", fetch("orgx:director", "orgx:lynchs_dune"))
    again = {
        "eval_local": [judges("REMOTE"), judges("PRODUCE")],
        "remote": [*script()["robodata/remote"], goes("EVAL_REMOTE", search())],
        "update": [FETCHED, more],
    }
    run, _ = answered(name, settings={"shown_chars": 60}, **again)
    assert states_of(run).count("LOCAL") == (0 if name == "reference" else 2)


# --- Local Graph Exploration


NODES = 480
EDGES = 623
LARGE = "https://example.org/large/"
PREDICATES = ("twinnedWith", "country", "locatedIn", "population", "partOf")


def name_of(number: int) -> str:
    """A name of 28 letters, another one for each number."""
    letters = islice(product(string.ascii_lowercase, repeat=2), number, number + 1)
    return "".join(next(letters)) + "abcdefghijklmnopqrstuvwxyz"


@cache
def large_graph(*, telling: bool) -> LocalGraph:
    """A local graph of 480 nodes and 623 edges with names of 28 letters.

    The names are the last part of IRIs if these are ``telling``, else IRIs have numbers.
    """
    nodes = []
    for number in range(NODES):
        nodes.append(URIRef(LARGE + (name_of(number) if telling else f"Q{number}")))
    triples = []
    for number in range(EDGES):
        predicate = URIRef(LARGE + PREDICATES[number % len(PREDICATES)])
        step = 1 + number // NODES
        triples.append((nodes[number % NODES], predicate, nodes[(number * 7 + step) % NODES]))
    names = [(node, name_of(number)) for number, node in enumerate(nodes)]
    local = LocalGraph().with_names(names).with_triples(nodes, triples)
    assert (len(local.nodes), len(local.support)) == (NODES, EDGES)
    return local


def position_with(local: LocalGraph, *visits: Visit) -> Position:
    """A position in which a local graph was fetched, and then some turns were taken."""
    fetched = Observed(TRIPLE_COLUMNS, local.support, len(local.support), effect="added")
    return Position(
        "Which?", "PRODUCE", local, (Visit("UPDATE", "so", "EVAL_LOCAL", (fetched,)), *visits)
    )


def shown_triples(text: str) -> list[str]:
    """The lines of a prompt's local graph that are triples."""
    lines = text.splitlines()
    return [line for line in lines[lines.index("Triples") :] if line.count(" | ") == 2]


def as_line(local: LocalGraph, triple: Any) -> str:
    return " | ".join(map(local.id_mapping.format_id, triple))


@conforms(
    "Local Graph Exploration",
    "the graph is truncated; what is kept is not said: triples first, of them the newest and those "
    "that are asked about",
    code="entities, relations, triples; all of them, whatever fits the model; `reference` truncates",
)
@violated_by(STATES, "-named, -added.get(triple, 0))", "-named, 0)")
@violated_by(STATES, "-named, -added.get(triple, 0))", "0, -added.get(triple, 0))")
@violated_by(STATES, 'lines = ["Triples", *triples]', 'lines = ["Triples", *triples[::-1]]')
@pytest.mark.parametrize("telling", [True, False])
def test_a_cut_graph_begins_with_its_newest_and_most_relevant_triples(telling: bool) -> None:
    local = large_graph(telling=telling)
    limit = settings_of("paper").shown_chars
    text = format_graph(position_with(local), limit)
    lines = shown_triples(text)
    assert text.startswith("Triples\n") and len(text) < limit * 1.1
    assert f"({EDGES - len(lines)} more lines, not shown)" in text
    assert len(lines) > (150 if telling else 80)

    newest = local.support[-1]
    fetched_last = Observed(TRIPLE_COLUMNS, (local.support[7],), 1, effect="added")
    assert as_line(local, newest) in lines
    assert as_line(local, local.support[7]) not in lines

    first = local.without([], [local.support[7]])
    last = Visit("UPDATE", "so", "EVAL_LOCAL", (fetched_last,))
    grown = replace(position_with(first, last), local=local)
    assert shown_triples(format_graph(grown, limit))[0] == as_line(local, local.support[7])

    subject = local.support[3][0]
    thought = f"What is {local.id_mapping.format_id(subject)} twinned with?"
    named = position_with(local, Visit("EVAL_LOCAL", thought, "PRODUCE"))
    first_line = shown_triples(format_graph(named, limit))[0]
    assert local.id_mapping.format_id(subject) in first_line


@conforms(
    "Local Graph Exploration",
    "LOCAL gathers what is not visible in the truncated graph, and the answer can cite it",
)
@violated_by(STATES, "return (-found.get(triple, 0), ", "return (0, ")
@pytest.mark.parametrize("telling", [True, False])
def test_every_triple_can_be_cited_or_is_found_by_local(telling: bool) -> None:
    local = large_graph(telling=telling)
    limits = {settings_of(name).shown_chars for name in PROFILES}
    assert limits == {16_000}
    limit = limits.pop()
    shown = set(shown_triples(format_graph(position_with(local), limit)))
    hidden = [triple for triple in local.support if as_line(local, triple) not in shown]
    assert len(shown) + len(hidden) == EDGES and len(hidden) > 300
    subjects = [*dict.fromkeys(triple[0] for triple in hidden)]
    uses = settings_of("paper").tool_uses
    for start in range(0, len(subjects), uses):
        results = []
        for subject in subjects[start : start + uses]:
            at_node = [triple for triple in local.support if subject in (triple[0], triple[2])]
            results.append(Observed(TRIPLE_COLUMNS, tuple(at_node), len(at_node)))
        position = position_with(local, Visit("LOCAL", "so", "EVAL_LOCAL", tuple(results)))
        lines = shown_triples(format_graph(position, limit))
        for triple in sum((result.rows for result in results), ()):
            assert as_line(local, triple) in lines
            assert local.find_elements(as_line(local, triple).split(" | ")) == (triple,)


# --- Remote Data Exploration and Evaluation


@conforms(
    "Stateful Orchestrator; Remote Data Exploration",
    "the paper contradicts itself. Its overview: remote data is evaluated in Remote Data "
    "Evaluation, or exploring goes on. The paragraph on the state: on to Local Data Evaluation, so "
    "that Remote Data Evaluation and Local Graph Update would never be visited. `paper` is the "
    "overview; `remote_or_eval_local` is the paragraph",
    code="always Remote Data Evaluation",
    setting="after_remote",
)
@violated_by(
    STATES,
    '"remote_or_eval_local": ("REMOTE", "EVAL_LOCAL"),',
    '"remote_or_eval_local": ("REMOTE", "EVAL_REMOTE"),',
)
@violated_by(
    STATES,
    'variables["after_remote"] = AFTER_REMOTE[settings.after_remote]',
    'variables["after_remote"] = AFTER_REMOTE["eval_remote"]',
)
@pytest.mark.parametrize(
    ("value", "possible"),
    [
        ("remote_or_eval_remote", {"REMOTE", "EVAL_REMOTE"}),
        ("eval_remote", {"EVAL_REMOTE"}),
        ("remote_or_eval_local", {"REMOTE", "EVAL_LOCAL"}),
    ],
)
def test_each_reading_of_remote_can_be_chosen(value: str, possible: set[str]) -> None:
    values = [settings_of(name).after_remote for name in PROFILES]
    assert values == ["remote_or_eval_remote", "eval_remote", "remote_or_eval_remote"]
    for next_state in ("REMOTE", "EVAL_REMOTE", "EVAL_LOCAL"):
        remote = goes(
            next_state,
            use(
                "build_local_graph",
                entity="orgx:dune",
                predicates=["orgx:director", "orgx:starring"],
            ),
        )
        settings = {"after_remote": value, "turn_limit": 6}
        if next_state not in possible:
            with pytest.raises(kgwb.errors.InvalidReplyError, match="next"):
                answered("fast", settings=settings, remote=remote)
            continue
        run, model = answered("fast", settings=settings, remote=remote)
        assert states_of(run)[2] == next_state
        prompt = requests_to(model, "remote")[0].messages[0].content
        assert f'"{next_state}"' in prompt


@conforms(
    "Remote Data Exploration, tools",
    "get_entity_info, get_property_info, search_entities, sparql_query, explore_entity_neighbors, "
    "build_local_graph",
)
@conforms(
    "Local Graph Update, tools",
    "fetch_node, fetch_relationship_from_node, fetch_relationship_to_node, and no other",
    code="also remove_node and remove_edge",
    fast="also remove_node and remove_edge",
    setting="removes",
)
@violated_by(STATES, "        return FETCHING_TOOLS\n", "        pass\n")
@violated_by(INIT, "local = local.without(nodes, triples)", "pass")
@violated_by(SETTINGS, '        "removes": False,\n', "")
@violated_by(
    RECORDS, "has_node = subject in nodes or object_ in nodes", "has_node = subject in nodes"
)
def test_update_removes_only_where_the_paper_does_not_rule(name: str) -> None:
    removal = use(
        "remove_edge", subject="orgx:dune", predicate="orgx:director", object="orgx:denis"
    )
    update = goes("EVAL_LOCAL", *FETCHED["actions"], removal)
    if name == "paper":
        with pytest.raises(kgwb.errors.InvalidReplyError):
            answered(name, update=update)
        return
    later = goes("EVAL_LOCAL", removal, use("remove_node", node="orgx:timothee"))
    remote = [*script()["robodata/remote"], goes("EVAL_REMOTE", search())]
    evals = [judges("REMOTE"), judges("PRODUCE")]
    run, model = answered(name, update=[update, later], remote=remote, eval_local=evals)
    # in the turn in which a triple is fetched, it is not there yet
    removed = [step.output for step in run.steps if step.agent == "remove_edge"]
    assert [(each.effect, len(each.rows)) for each in removed] == [("removed", 0), ("removed", 1)]
    assert run.output("remove_node").rows == ((iri("timothee"),),)
    position = last_position(run)
    # with a node go its triples, in both directions
    assert (position.local.nodes, position.local.support) == ((iri("dune"), iri("denis")), ())
    assert "remove_node" in requests_to(model, "update")[0].messages[0].content


PREFIXES = """
@prefix : <http://example.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
"""


def open_turtle(turtle: str, **limits: int) -> Graph:
    """A graph of triples in Turtle, with limits of its own."""
    return films(PREFIXES + turtle, **limits)


def two_steps(count: int) -> Graph:
    """A graph in which so many things are one step from a film, and as many two steps."""
    film = ':dune rdfs:label "Dune" .'
    for number in range(count):
        film += f" :dune :next :first{number:04} . :first{number:04} :next :second{number:04} ."
    return open_turtle(film)


@conforms(
    "Remote Data Exploration, tools",
    "build_local_graph adds a subgraph from remote data to the local graph; which is not said: what leads away from "
    "an entity in two steps, along predicates that the model names, or types and superclasses. No limit is named",
    code="it only reads",
    fast="100 triples",
    setting="shown_triples",
)
@violated_by(TOOLS, "for _ in range(MAX_HOPS):", "for _ in range(1):")
@violated_by(TOOLS, "tuple(added)[:limit], len(added)", "tuple(added)[:100], len(added)")
@violated_by(TOOLS, "isinstance(term, URIRef)][:limit]", "isinstance(term, URIRef)][:100]")
@violated_by(TOOLS, "heads, followed, (), max_read)", "heads, followed, (), MAX_READ_TRIPLES)")
@violated_by(TOOLS, 'len(added), is_complete, "added")', "len(added), is_complete)")
def test_a_built_graph_is_added_and_cut_in_fast_alone(name: str) -> None:
    built = use("build_local_graph", entity=str(iri("dune")), predicates=[str(iri("next"))])
    remote = goes("EVAL_REMOTE", built)
    run, _ = answered(name, two_steps(1200), {"turn_limit": 3}, remote=remote)
    built_rows = run.output("build_local_graph").rows
    assert len(built_rows) == (100 if name == "fast" else 2400)
    assert run.output("local_graph[turn 2]").support == built_rows


def many(count: int, **limits: int) -> Graph:
    """A graph in which a film has so many actors, and so many things are named alike."""
    film = (
        ':dune rdfs:label "Dune" ; :director :denis . :story :basis :dune . :novel :basis :dune .'
    )
    for number in range(count):
        actor = f":actor{number:04}"
        film += f' :dune :starring {actor} . {actor} rdfs:label "Actor Nobody {number}" .'
    return open_turtle(film, **limits)


@conforms(
    "Remote Data Exploration, tools",
    "search_entities shows what it finds: no limit is named, so it is that of any search of labels, `v_limit`",
    code="5, and on request more, up to 50; `reference` shows 50",
    fast="5",
    setting="search_hits",
)
@conforms(
    "Remote Data Exploration, tools",
    "no limit is named for the rows or the triples of a query",
    code="50",
    fast="50",
    setting="query_rows",
)
@violated_by(SETTINGS, '        "search_hits": UNLIMITED,\n', '        "search_hits": 50,\n')
@violated_by(SETTINGS, '        "query_rows": UNLIMITED,\n', "")
@violated_by(SETTINGS, '        "query_rows": 50,\n', "")
@violated_by(
    STATES, "str(min(settings.search_hits, settings.v_limit))", "str(settings.search_hits)"
)
@violated_by(
    "prompts/robodata/remote_listed.md", "no PREFIX lines\n", "no PREFIX lines; 50 rows are shown\n"
)
@pytest.mark.parametrize(
    ("name", "hits", "shown"), [("paper", 600, 70), ("reference", 50, 50), ("fast", 5, 50)]
)
def test_a_search_and_a_query_show_what_they_find(name: str, hits: int, shown: int) -> None:
    query = use(
        "sparql_query", sparql=f"SELECT ?actor WHERE {{ ?film <{iri('starring')}> ?actor }}"
    )
    others = [use("sparql_query", sparql="SELECT nothing"), search("Dune")]
    remote = goes("EVAL_REMOTE", search("Actor Nobody"), query, *others)
    run, model = answered(name, many(70), remote=remote, settings={"turn_limit": 4})
    assert run.output("sparql_query[turn 2/use 3]").error
    assert run.output("search_entities[turn 2/use 4]").rows
    observed = run.output("search_entities[turn 2/use 1]")
    assert (len(observed.rows), observed.found) == (min(hits, 70), 70)
    observed = run.output("sparql_query[turn 2/use 2]")
    assert (len(observed.rows), observed.found) == (shown, 70)
    system = requests_to(model, "remote")[0].messages[0].content
    assert f"at most {hits} with types" in system or name == "fast"
    assert ("50 rows are shown" in system) == (name == "fast")


@conforms(
    "Remote Data Exploration and Local Graph Exploration, tools",
    "sparql_query executes SPARQL queries, of each form; what CONSTRUCT and DESCRIBE return are triples",
    fast="the same, but the prompt offers SELECT and ASK alone",
    setting="ingredients",
)
@violated_by(TOOLS, 'form in ("construct", "describe")', 'form in ("construct",)')
@violated_by(TOOLS, 'form in ("construct", "describe")', 'form in ("describe",)')
@violated_by(
    TOOLS,
    "return Observed(TRIPLE_COLUMNS, triples[:limit], len(triples)",
    "return Observed(TRIPLE_COLUMNS, triples[:1], len(triples)",
)
@violated_by(
    "prompts/robodata/remote_listed.md", "a SPARQL query of any form", "a SELECT or an ASK"
)
def test_queries_of_each_form_are_executed(name: str) -> None:
    queries = [
        "SELECT ?who WHERE { orgx:dune orgx:director ?who }",
        "ASK { orgx:dune orgx:director orgx:denis }",
        "CONSTRUCT { ?who orgx:made ?film } WHERE { ?film orgx:director ?who }",
        "DESCRIBE orgx:dune",
    ]
    looks = [use("sparql_query", sparql=query) for query in queries]
    remote = [goes("REMOTE", search()), goes("EVAL_REMOTE", *looks)]
    run, model = answered(name, films(DESCRIBED), remote=remote)
    rows = [run.output(f"sparql_query[turn 3/use {number}]").rows for number in range(1, 5)]
    assert rows[:2] == [((iri("denis"),),), ((Literal(True),),)]
    made = {
        (iri("denis"), iri("made"), iri("dune")),
        (iri("lynch"), iri("made"), iri("lynchs_dune")),
    }
    assert set(rows[2]) == made and {DIRECTED, STARRING} < set(rows[3])
    results = variables_of(model, "eval_remote", "results")[-1]
    assert "orgx:made" in results
    system = requests_to(model, "remote")[0].messages[0].content
    assert ("of any form" in system) == (name != "fast")


@conforms(
    "Remote Data Exploration, tools",
    "explore_entity_neighbors retrieves all neighbours of an entity: the number in its field `limit` does not count; "
    "predicates of labels, descriptions and noise lead to none",
    code="20, and on request more",
    fast="20, and on request at most 100",
    setting="default_neighbours",
)
@conforms(
    "Remote Data Exploration, tools",
    "no limit is named for what a tool shows of an entity or a node",
    fast="100 triples",
    setting="shown_triples",
)
@violated_by(SETTINGS, '        "default_neighbours": UNLIMITED,\n', "")
@violated_by(SETTINGS, '        "shown_triples": UNLIMITED,\n', '        "shown_triples": 500,\n')
@violated_by(
    TOOLS,
    "limit = max(MAX_READ_TRIPLES, RoboDataSettings.of_run(run).shown_triples)",
    "limit = MAX_READ_TRIPLES",
)
@violated_by(
    TOOLS, "sample_triples([*outgoing, *incoming], shown", "sample_triples(outgoing, shown"
)
@violated_by(TOOLS, "MAX_READ_TRIPLES = 1_000\n", "MAX_READ_TRIPLES = 600\n")
@violated_by(TOOLS, "(), predicates, [iri], limit,", "(), predicates, [iri], 1,")
@violated_by(TOOLS, "if limit > 0 and wanted != UNLIMITED:", "if limit > 0:")
@violated_by(
    STATES, "NEIGHBOUR_LIMITS[settings.default_neighbours == UNLIMITED]", "NEIGHBOUR_LIMITS[False]"
)
@pytest.mark.parametrize(
    ("name", "asked_for", "shown"),
    [
        ("paper", 0, 1503),
        ("paper", 1, 1503),
        ("reference", 0, 20),
        ("reference", 2000, 1503),
        ("fast", 500, 100),
    ],
)
def test_neighbours_are_all_shown(name: str, asked_for: int, shown: int) -> None:
    every = use("explore_entity_neighbors", entity=str(iri("dune")), predicate="", limit=asked_for)
    remote = goes("EVAL_REMOTE", every, use("get_property_info", property=str(iri("starring"))))
    run, model = answered(name, many(1500), remote=remote, settings={"turn_limit": 4})
    rows = run.output("explore_entity_neighbors").rows
    assert len(rows) == shown
    of_property = run.output("get_property_info")
    assert (len(of_property.rows), of_property.whole) == (5 if name == "fast" else 1000, False)
    if shown > 100:
        incoming = {row[0] for row in rows if row[1] == iri("basis")}
        assert incoming == {iri("story"), iri("novel")}
    offered = '"limit": 0}: all' in requests_to(model, "remote")[0].messages[0].content
    assert offered == (name == "paper")


@conforms(
    "Remote Data Exploration and Local Graph Update, tools",
    "all neighbours, relations and rows: where the graph has cut a result, it says that there may be more",
)
@violated_by("kgwb/kg/queries.py", "< max_triples and not result.cut", "< max_triples")
@violated_by(TOOLS, "not result.cut", "True")
@violated_by(
    RECORDS, "if self.found > len(self.rows) or not self.whole:", "if self.found > len(self.rows):"
)
@pytest.mark.parametrize("row_limit", [50, 53])
def test_a_result_that_the_graph_has_cut_is_not_said_to_be_all(name: str, row_limit: int) -> None:
    dune, starring = str(iri("dune")), str(iri("starring"))
    looks = {
        "explore_entity_neighbors": {"entity": dune, "predicate": starring, "limit": 0},
        "get_entity_info": {"entity": dune},
        "get_property_info": {"property": starring},
        "sparql_query": {"sparql": f"SELECT ?actor WHERE {{ ?film <{starring}> ?actor }}"},
        "build_local_graph": {"entity": dune, "predicates": [starring]},
    }
    remote = goes("EVAL_REMOTE", *(use(tool, **arguments) for tool, arguments in looks.items()))
    update = goes("EVAL_LOCAL", fetch(starring, dune))
    settings = {"turn_limit": 5, "fetched_per_node": 200}
    kg = many(52, row_limit=row_limit)
    run, model = answered(name, kg, settings, remote=remote, update=update)
    results = variables_of(model, "update", "results")[0]
    for tool in (*looks, "fetch_relationship_from_node"):
        observed = run.output(tool)
        # Beside its actors, a film has a director and a label.
        is_cut = row_limit == 50 or (tool == "get_entity_info" and row_limit < 54)
        assert observed.whole != is_cut, tool
        assert (" of at least " in str(observed)) == is_cut, tool
        assert tool not in looks or f"{observed}: " in results


@conforms(
    "Remote Data Exploration, tools",
    "detailed information has all names and descriptions of a thing, however many they are",
    fast="none",
    setting="details",
)
@violated_by(TOOLS, "    if not has_all:\n", "    if has_all is None:\n")
@violated_by(TOOLS, "whole=observed.whole and has_all", "whole=observed.whole")
@pytest.mark.parametrize(("row_limit", "shown"), [(10_000, 1201), (1_100, 1_100)])
def test_all_names_of_a_thing_are_shown(row_limit: int, shown: int) -> None:
    makers = ", ".join(f'"maker {number}"' for number in range(1200))
    names = f':director skos:altLabel {makers} ; rdfs:label "director" .'
    kg = open_turtle(f"{names} :dune :director :denis .", row_limit=row_limit)
    remote = goes("EVAL_REMOTE", use("get_property_info", property=str(iri("director"))))
    run, _ = answered("paper", kg, {"turn_limit": 3}, remote=remote)
    observed = run.output("get_property_info")
    names = [row for row in observed.rows if row[0] == iri("director")]
    assert (len(names), observed.found) == (shown, shown + 1)
    assert observed.whole == (row_limit > 1201)


@conforms(
    "Metacognition; Stateful Orchestrator, assistant prompts",
    "the sequence of actions has the tool calls as they were made",
    fast="an argument is shortened to 120 characters",
    setting="shortens_uses",
)
@violated_by(SETTINGS, '        "shortens_uses": False,\n', "")
@violated_by(TOOLS, "MAX_ARGUMENT_CHARS if is_short else UNLIMITED", "MAX_ARGUMENT_CHARS")
def test_the_arguments_of_tool_calls_are_whole(name: str) -> None:
    names = " ".join(f"?name{number}" for number in range(30))
    query = f"SELECT * WHERE {{ VALUES ({names}) {{ ({'1 ' * 30}) }} ?film ?p ?last }}"
    remote = goes("EVAL_REMOTE", use("sparql_query", sparql=query))
    _, model = answered(name, settings={"turn_limit": 4, "metacognition": True}, remote=remote)
    [*_, memory] = variables_of(model, "eval_remote", "memory")
    results = variables_of(model, "eval_remote", "results")[0]
    assessed = variables_of(model, "assessment", "memory")[-1]
    for text in (memory, results, assessed):
        assert ("?film ?p ?last" in text) == (name != "fast")
        assert "?name0 " in text


@conforms(
    "Remote Data Evaluation",
    "relevant data leads to Local Graph Update, other data to exploring or to Local Data Evaluation",
)
@violated_by(RECORDS, '("UPDATE", "REMOTE", "EVAL_LOCAL")', '("UPDATE", "REMOTE")')
@pytest.mark.parametrize("next_state", ["UPDATE", "REMOTE", "EVAL_LOCAL"])
def test_remote_data_is_evaluated(name: str, next_state: str) -> None:
    replies = {"remote": goes("EVAL_REMOTE", search()), "eval_remote": judges(next_state)}
    run, _ = answered(name, settings={"turn_limit": 5}, **replies)
    assert states_of(run)[2:] == ["EVAL_REMOTE", next_state]


# --- Local Graph Update


@conforms(
    "Local Graph Update",
    "the selected relations are fetched; no limit is named",
    code="all that lead away from a node, and at most 500 that lead to it; in `reference` 500 both ways",
    fast="at most 50 for each node",
    setting="fetched_per_node",
)
@conforms(
    "Local Graph Update",
    "a use fetches all of each of its nodes",
    code="the same; a use has one node",
    fast="at most 500 for all nodes of a use",
    setting="fetched_per_use",
)
@violated_by(SETTINGS, '        "fetched_per_node": UNLIMITED,\n', "")
@violated_by(SETTINGS, '        "fetched_per_node": 500,\n', "")
@pytest.mark.parametrize(("name", "one"), [("paper", 1100), ("reference", 500), ("fast", 50)])
def test_all_triples_of_a_node_are_fetched(name: str, one: int) -> None:
    starring = str(iri("starring"))
    dune = str(iri("dune"))
    remote = goes("EVAL_REMOTE", search())
    update = goes("EVAL_LOCAL", fetch(starring, dune), fetch(starring, dune, dune))
    run, _ = answered(name, many(1100), remote=remote, update=update, settings={"turn_limit": 5})
    results = [run.output(f"fetch_relationship_from_node[turn 4/use {n}]") for n in (1, 2)]
    # A node that is listed twice counts once.
    assert [len(result.rows) for result in results] == [one, one]
    assert (settings_of(name).fetched_per_use > 500) == (name != "fast")


# --- Answer Production


@conforms(
    "Answer Production",
    "each sentence has a set of entities and relations of the local graph as its proof",
)
@violated_by(STATES, "nodes.append(element[0])", "pass")
@violated_by(STATES, "for ids in reply.support:", "for ids in reply.support[:1]:")
def test_each_sentence_has_its_support_set(name: str) -> None:
    run, _ = answered(name, produce=produce(*PROVEN, ["orgx:denis"]))
    [sentence] = run.output("produce").sentences
    assert (sentence.support, sentence.nodes) == ((DIRECTED, STARRING), (iri("denis"),))
    assert judge_answer("Which?", answer_of(run)).name == GIVEN


@conforms(
    "Answer Production",
    "the answer is its sentences with their support sets, also where the model names no value",
)
@violated_by(
    STATES,
    'Answer("list", text=text, reason=reason, evidence=evidence)',
    'Answer("list", reason=reason)',
)
@violated_by(STATES, "reason=reason, evidence=evidence)", "reason=reason)")
def test_sentences_without_a_value_are_kept(name: str) -> None:
    reply = produce(*PROVEN, answers=[], missing="when")
    answer = answer_of(answered(name, produce=reply)[0])
    assert not answer.values and "when" in answer.reason
    assert answer.text == "Denis Villeneuve directed Dune. (1)"
    assert answer.support == (DIRECTED, STARRING)


@conforms(
    "Stateful Orchestrator, tools",
    "several tool calls in one turn; how many is not said: 12",
    setting="tool_uses",
)
@violated_by(SETTINGS, "    tool_uses: Count = 12\n", "    tool_uses: Count = 11\n")
@violated_by(STATES, "        checks.append(_limit_tool_uses(settings.tool_uses))\n", "")
def test_a_reply_may_use_twelve_tools(name: str) -> None:
    run, model = answered(name, remote=goes("EVAL_REMOTE", *[search()] * 12))
    assert len([step for step in run.steps if step.agent == "search_entities"]) == 12
    assert "at most 12" in requests_to(model, "remote")[0].messages[0].content
    with pytest.raises(kgwb.errors.InvalidReplyError):
        answered(name, remote=goes("EVAL_REMOTE", *[search()] * 13))


@conforms(
    "Contributions",
    "each claim in the answer is supported by a support set: a sentence without one is marked, and an answer that no "
    "sentence with a triple proves is in doubt",
    code="no support set is checked",
    setting="doubts_unproved",
)
@violated_by(STATES, "if sentence.support and not sentence.problem]", "if sentence.support]")
@violated_by(STATES, "if term not in proved]", "if term is None]")
@violated_by(STATES, 'in ("yes", "no") or not produced.answers:', 'in ("yes", "no"):')
@pytest.mark.parametrize(
    ("reply", "unproved"),
    [
        (produce(*PROVEN), ""),
        (produce(PROVEN[0], answers=("orgx:denis", "orgx:timothee")), "Timothée Chalamet"),
        (produce(INVENTED), "Denis Villeneuve"),
        (produce(["orgx:denis"]), "Denis Villeneuve"),
        (produce(PROVEN[0], kind="count", answers=("orgx:timothee",)), "Timothée Chalamet"),
        (produce(*PROVEN, kind="yes", answers=()), ""),
        (produce(*PROVEN, INVENTED, kind="yes", answers=()), "yes"),
        (produce(kind="no", answers=()), "no"),
        (produce(*PROVEN, kind="count", answers=()), ""),
        (produce(INVENTED, kind="count", answers=()), "0"),
    ],
)
def test_what_no_support_set_proves_is_in_doubt(
    name: str, reply: dict[str, Any], unproved: str
) -> None:
    run, _ = answered(name, produce=reply)
    answer = answer_of(run)
    assert answer
    if name == "reference":
        assert answer.doubt == "; ".join(map(str, answer.read_names))
        return
    expected = IN_DOUBT if unproved else GIVEN
    assert judge_answer("Which?", answer).name == expected
    assert unproved in answer.doubt and bool(answer.doubt) == bool(unproved)


# --- Metacognition


@conforms(
    "Metacognition; Experimental Evaluation",
    "self-reflection: evaluations reflect on the past turns, and the thought is handed on; it is on",
    setting="self_reflection",
)
@violated_by(STATES, "if position.visits and settings.self_reflection:", "if position.visits:")
@violated_by(STATES, "with_thoughts=settings.self_reflection", "with_thoughts=True")
@violated_by(SETTINGS, "    self_reflection: bool = True", "    self_reflection: bool = False")
def test_self_reflection_can_be_switched_off(name: str) -> None:
    remote = [
        goes("REMOTE", search(), thought="first"),
        goes("EVAL_REMOTE", search(), thought="second"),
    ]
    reflecting, off = (
        answered(name, settings={"self_reflection": value}, remote=remote)[1]
        for value in (True, False)
    )
    assert settings_of(name).self_reflection
    for model, is_on in ((reflecting, True), (off, False)):
        assert variables_of(model, "eval_remote", "thought") == ["second" if is_on else "none"]
        assert ("first" in variables_of(model, "eval_remote", "memory")[0]) == is_on
        for prompt in ("eval_remote", "eval_local"):
            [request] = requests_to(model, prompt)
            assert ("reflect" in request.messages[0].content) == is_on


@conforms(
    "Experimental Evaluation", "by default metacognition is disabled", setting="metacognition"
)
@conforms(
    "Metacognition",
    "each time the agent reaches an evaluation state, the strategy is assessed and observed",
    code="but for the first turn",
    fast="but for the first turn",
    setting="assesses_first_turn",
)
@violated_by(
    INIT, "if not position.visits and not settings.assesses_first_turn:", "if not position.visits:"
)
@violated_by(INIT, 'not position.state.startswith("EVAL")', 'position.state != "EVAL_LOCAL"')
@violated_by(SETTINGS, "    metacognition: bool = False", "    metacognition: bool = True")
def test_metacognition_comes_before_evaluations(name: str) -> None:
    assert not settings_of(name).metacognition
    run, _ = answered(name, settings={"metacognition": True})
    steps = [step.key for step in run.steps if step.agent in ("assessment", "observation")]
    first = ["assessment[turn 1]", "observation[turn 1]"] if name == "paper" else []
    assert steps == [
        *first,
        *("assessment[turn 4]", "observation[turn 4]"),
        *("assessment[turn 6]", "observation[turn 6]"),
    ]
    _, without = answered(name)
    assert not requests_to(without, "assessment", "observation")


@conforms(
    "Strategic Assessment, prompt",
    "it has action sequence (with memory, in one text), statistics, available tools, local graph and results (of "
    "exploring, and of the last update); nothing else",
    fast="also the last thought; not the tools",
    setting="ingredients",
)
@conforms(
    "Meta-Observation, prompt",
    "it has strategy, previous metacognition, task outcome, available tools, memory, graph and results; nothing else",
    fast="also the last thought; not the outcome nor the tools; of earlier observations the advice",
    setting="ingredients",
)
@violated_by(
    STATES, '        prompt = "assessment_listed"\n', '        prompt = "assessment_published"\n'
)
@violated_by(
    STATES,
    '        variables["tools"] = describe_tools(run)\n',
    '        variables["tools"] = "none"\n',
)
@violated_by(
    STATES,
    '        variables |= {"outcome": position.outcome, "tools": describe_tools(run)}\n    texts',
    '        variables |= {"outcome": "", "tools": describe_tools(run)}\n    texts',
)
def test_metacognition_sees_outcome_and_tools(name: str) -> None:
    _, model = answered(name, settings={"metacognition": True})
    for request in requests_to(model, "assessment", "observation"):
        assert ("tools" in request.variables) == (name != "fast")
        assert ("thought" in request.variables) == (name == "fast")
    for prompt, has_outcome in (("assessment", False), ("observation", name != "fast")):
        for request in requests_to(model, prompt):
            assert ("outcome" in request.variables) == has_outcome
    if name != "fast":
        [tools] = {variables_of(model, each, "tools")[0] for each in ("assessment", "observation")}
        for state, offered in TOOLS_BY_STATE.items():
            for tool in offered:
                is_offered = name != "paper" or not tool.spec.name.startswith("remove")
                assert (f"{state}: {tool.spec.name}(" in tools) == is_offered
        outcome = variables_of(model, "observation", "outcome")[-1]
        assert "3 nodes, 2 edges" in outcome and "4 tool calls" in outcome
    statistics = variables_of(model, "assessment", "statistics")
    assert "search_entities 1" in statistics[-1] and "REMOTE → REMOTE 1" in statistics[-1]


@conforms(
    "Meta-Observation",
    "the strategy is compared to previous ones",
    code="to the last one",
    fast="to the latest advice",
    setting="observation_memory",
)
@violated_by(
    STATES, "enumerate(position.observations, 1)", "enumerate(position.observations[-1:], 1)"
)
@violated_by(RECORDS, "   judgement: {self.judgement}\\n", "\\n")
def test_a_strategy_is_compared_to_previous_ones(name: str) -> None:
    remote = [*script()["robodata/remote"], goes("EVAL_REMOTE", search())]
    evals = [judges("REMOTE"), judges("PRODUCE")]
    first = 0 if name == "paper" else 1  # which also assesses the first turn
    numbers = range(first, 5)
    assessments = [{"strategy": f"strategy {n}"} for n in numbers]
    observations = [{"judgement": f"judgement {n}", "advice": f"advice {n}"} for n in numbers]
    run, model = answered(
        name,
        settings={"metacognition": True},
        remote=remote,
        eval_local=evals,
        assessment=assessments,
        observation=observations,
    )
    previous = variables_of(model, "observation", "previous")
    parts = [f"{part} {n}" for n in (1, 2, 3) for part in ("strategy", "judgement", "advice")]
    kept = [part for part in parts if part in previous[-1]]
    assert kept == {"paper": parts, "reference": parts[-3:], "fast": parts[-1:]}[name]
    assert previous[0] == "none"
    position = last_position(run)
    assert [each.strategy for each in position.observations] == [f"strategy {n}" for n in numbers]


@conforms(
    "Metacognition",
    "the observation is injected into the prompts of the evaluation states; of one without advice "
    "the paper says nothing: the last advice stays in force",
    code="advice is shown in the evaluation that it was given for",
)
@violated_by(RECORDS, "if not advice and keeps_advice:", "if not advice and not keeps_advice:")
def test_advice_stays_in_force(name: str) -> None:
    observations = [
        *([{"judgement": "none yet", "advice": ""}] if name == "paper" else []),
        {"judgement": "poor", "advice": "look back"},
        {"judgement": "good", "advice": " "},
    ]
    _, model = answered(name, settings={"metacognition": True}, observation=observations)
    assert variables_of(model, "eval_remote", "advice") == ["look back"]
    kept = ["none"] if name == "reference" else ["look back"]
    assert variables_of(model, "eval_local", "advice") == kept
    assert not any(
        "advice" in r.variables for r in requests_to(model, "remote", "update", "produce")
    )


def test_an_advice_of_an_earlier_version_is_read_as_an_observation() -> None:
    assert from_data("look back", Observation) == Observation(advice="look back")
    whole = Observation("broad", "poor", "look back")
    assert from_data(to_data(whole), Observation) == whole


@conforms(
    "Metacognition",
    "as turns run out, a message in the prompts of metacognition urges the model to consolidate the "
    "graph and to avoid isolated nodes and unconnected components, which are named here",
    code="nothing is named, but `reference` does it",
    fast="in all prompts the number of turns left, with the word low, medium or high",
    setting="urgency",
)
@violated_by(STATES, "parts.append(position.local.describe_parts())", "pass")
@violated_by(STATES, 'parts[-1] += f": {URGENCY_INSTRUCTIONS[urgency]}"', "pass")
def test_the_urgency_grows_and_names_what_is_not_connected(name: str) -> None:
    apart = goes(
        "EVAL_LOCAL", fetch("orgx:director", "orgx:dune"), use("fetch_node", node="orgx:amy")
    )
    loop = {
        "update": apart,
        "eval_local": judges("REMOTE"),
        "remote": goes("EVAL_REMOTE", search()),
    }
    _, model = answered(name, settings={"turn_limit": 20, "metacognition": True}, **loop)
    states = ("remote", "eval_remote", "update", "eval_local")
    told = {int(text.split()[0]): text for text in turns_told(model, *states)}
    observed = {int(text.split()[0]): text for text in turns_told(model, "observation")}
    if name != "fast":
        assert not told
        assert len({text.split("urgency")[1].split(";")[0] for text in observed.values()}) == 3
    seen = told if name == "fast" else observed
    low, high = max(seen), min(seen)
    assert low > 10 and high <= 6
    has_names = "orgx:amy" in seen[high] and "not connected" in seen[high]
    assert has_names == (name != "fast")
    assert "not connected" not in seen[low]
    usual = {"only connect what is there already"}
    urges = usual | {"medium: consolidate the local graph", "high: look for nothing"}
    urges.add("connect every node that stands alone")
    urged = {urge for urge in urges if urge in "".join(seen.values())}
    assert urged == (usual if name == "fast" else urges)


def turns_told(model: Scripted, *prompts: str) -> Sequence[str]:
    """What these prompts said of the turns that are left, where they said how many."""
    texts = [str(request.variables.get("turns", "")) for request in requests_to(model, *prompts)]
    return [text for text in texts if text[:1].isdigit()]


def test_a_run_of_the_paper_that_was_saved_before_these_settings_opens(tmp_path: Path) -> None:
    before = {"ingredients": "all", "details": "triples", "removes": True}
    before |= {"assesses_first_turn": False, "default_neighbours": 20}
    run, _ = answered("paper", settings={**before, "metacognition": True})
    path = without_settings(run.save(tmp_path / "run.jsonl"), before)
    assert answer_of(kgwb.load_run(path)) == answer_of(run)


# --- Whole runs


MANY_SIDED = """
@prefix : <http://example.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix skos: <http://www.w3.org/2004/02/skos/core#> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
:dune a :Film, :Work ; rdfs:label "Dune"@en, "Der Wüstenplanet"@de ; skos:altLabel "Dune: Part One"@en ;
    rdfs:comment "a film of 2021"@en ; :director :denis ; :starring :timothee, :zendaya, :nobody1, :nobody2 ;
    :runtime 155 ; :budget "165 M$" ; :released "2021-09-15"^^xsd:date ; :motto "Fear is"@en, "Furcht ist"@de ;
    :shot [ :place :jordan ] ; owl:sameAs <http://elsewhere.example/dune> .
:lynchs_dune a :Film ; rdfs:label "Dune" ; :director :lynch ; :runtime 137 .
:director rdfs:label "director"@en, "Regie"@de ; rdfs:comment "who directs"@en . :starring rdfs:label "starring" .
:denis rdfs:label "Denis Villeneuve" ; a :Person ; :knows :timothee . :timothee rdfs:label "Timothée Chalamet" .
:zendaya rdfs:label "Zendaya" . :lynch rdfs:label "David Lynch" . :jordan rdfs:label "Jordan" .
:place rdfs:comment "where it was shot" .
:Film rdfs:subClassOf :Work ; rdfs:label "film" . :Work rdfs:label "work" .
:novel rdfs:label "Dune (novel)" ; :basis :dune . :story :basis :dune .
""" + " ".join(f":extra{n} :inspiredBy :dune ." for n in range(9))
"""A film with everything: languages, aliases, literals with units, a blank node, twins, things without labels."""
WIDE = (
    "@prefix : <http://example.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> ."
    ':hub rdfs:label "Hub" ; rdfs:comment "the middle"@en, "die Mitte"@de ; :told "2", 2, "two"@en, "two"@de .'
    + "".join(
        f':hub :p{n % 110} :n{n} . :n{n} rdfs:label "Spoke" ; :of :hub ; :next :n{n + 1} . '
        for n in range(520)
    )
)
"""A thing with more predicates, neighbours, facts and namesakes than any limit of the code shows."""


def make_whole_runs() -> WholeRuns:
    """Runs through all states, up to the limits, over cut graphs, and with all kinds of answers."""
    graphs = {"many sided": films(MANY_SIDED), "wide": open_in_order(WIDE)}
    runs: dict[str, tuple[Run, Scripted]] = {}
    for title, case in read_cases("robodata").items():
        kg = graphs.get(case.get("graph", ""))
        for name in (case["profile"],) if "profile" in case else ("paper", "fast"):
            settings, replies = case.get("settings", {}), case.get("replies", {})
            runs[f"{name}: {title}"] = answered(name, kg, settings, **replies)
    return runs


@violated_by(RECORDS, "        for result in reversed(results):", "        for result in results:")
@violated_by(STATES, "HIGH_URGENCY_TURNS = 6", "HIGH_URGENCY_TURNS = 7")
@violated_by(STATES, "LAST_TURNS = 3", "LAST_TURNS = 2")
@violated_by(STATES, "result = len(produced.answers) if", "result = len(sentences) if")
@violated_by(
    TOOLS, "[*run.kg.vocabulary.types, *SUBCLASS_PREDICATES]", "[*run.kg.vocabulary.types]"
)
@violated_by(TOOLS, " UNION {{ ?s ?p {term} }} }}", " }}")
@violated_by(
    TOOLS,
    "find_triples(run.kg, (), [iri], (), MAX_READ_TRIPLES)",
    "find_triples(run.kg, (), [iri], (), 3)",
)
@violated_by("prompts/robodata/produce_listed.md", "; use it only where no triple fits", "")
def test_whole_runs_send_and_do_what_they_did() -> None:
    check_whole_runs("robodata", make_whole_runs())
