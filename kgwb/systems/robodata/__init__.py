"""RoboData: a state machine builds a local graph in turns, and produces the answer from it.

System robodata

| agent | kind | function | prompt | view | gold | test |
| --- | --- | --- | --- | --- | --- | --- |
| turn | group | take_turn |  | render_machine_state |  | test_turn.py |
| assessment | model | states.assess_strategy | assessment* |  | think | test_assessment.py |
| observation | model | states.observe_strategy | observation* |  | think | test_observation.py |
| remote | model | states.decide_remote | remote* | render_decision | remote | test_remote.py |
| search_entities | search | tools.search_entities |  | render_tool_result | remote | test_tools.py |
| get_entity_info | sparql | tools.get_entity_info |  | render_tool_result | remote | test_tools.py |
| get_property_info | sparql | tools.get_property_info |  | render_tool_result | remote | test_tools.py |
| sparql_query | sparql | tools.sparql_query |  | render_tool_result | remote | test_tools.py |
| explore_entity_neighbors | sparql | tools.explore_entity_neighbors |  | render_tool_result | remote | test_tools.py |
| build_local_graph | sparql | tools.build_local_graph |  | render_tool_result | remote | test_tools.py |
| eval_remote | model | states.decide_eval_remote | eval_remote* | render_decision | remote | test_eval_remote.py |
| update | model | states.decide_update | update* | render_decision | local | test_update.py |
| fetch_node | sparql | tools.fetch_node |  | render_tool_result | local | test_tools.py |
| fetch_relationship_from_node | sparql | tools.fetch_relationship_from_node |  | render_tool_result | local | test_tools.py |
| fetch_relationship_to_node | sparql | tools.fetch_relationship_to_node |  | render_tool_result | local | test_tools.py |
| remove_node | code | tools.remove_node |  | render_tool_result | local | test_tools.py |
| remove_edge | code | tools.remove_edge |  | render_tool_result | local | test_tools.py |
| local_graph | code | update_local_graph |  | render_local_graph | local | test_local_graph.py |
| eval_local | model | states.decide_eval_local | eval_local* | render_decision | local | test_eval_local.py |
| local | model | states.decide_local | local* | render_decision | look closer | test_local.py |
| get_node | code | tools.get_node |  | render_tool_result | look closer | test_tools.py |
| get_edge | code | tools.get_edge |  | render_tool_result | look closer | test_tools.py |
| query_local | sparql | tools.query_local |  | render_tool_result | look closer | test_tools.py |
| produce | model | states.produce_answer | produce* | render_produced_answer | answer | test_produce.py |
| answer | sparql | states.build_answer |  |  | answer | test_answer.py |
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

from rdflib import URIRef

from kgwb.build import (
    Answer,
    Dialogue,
    GoldDecisions,
    LinkedIris,
    Question,
    Run,
    System,
    Term,
    agent,
    collect_iris,
    list_outputs,
    use_tool,
)
from kgwb.systems.robodata.records import LocalGraph, Observed, Position, Visit
from kgwb.systems.robodata.settings import RoboDataSettings
from kgwb.systems.robodata.states import (
    DECIDERS,
    TOOLS_BY_STATE,
    assess_strategy,
    build_answer,
    decide_eval_local,
    decide_eval_remote,
    decide_local,
    decide_remote,
    decide_update,
    list_observed,
    make_answer_rung,
    make_graph_rung,
    observe_strategy,
    produce_answer,
)


def answer_question(question: Question, dialogue: Dialogue, run: Run) -> Answer:
    """Take turns until the state is PRODUCE or one turn is left, then produce the answer.

    The setting ``turn_limit`` bounds the turns, the last of which is kept for the answer. Earlier
    turns of the dialogue are not used. Raises InvalidReplyError if a state's replies stay invalid.
    """
    position = Position(question.text)
    for number in range(1, RoboDataSettings.of_run(run).turns):
        position = take_turn(f"turn {number}", position, run)
        if position.state == "PRODUCE":
            break
    produced = produce_answer(position, run)
    return build_answer(position, produced, run)


@agent("turn", subject="place")
def take_turn(place: str, position: Position, run: Run) -> Position:
    """Let the present state decide, use the tools it chose, and update the local graph.

    Returns the next position: the next state, the changed local graph, and one more visit. With
    metacognition, new advice on the strategy is asked for before each of the two states that
    evaluate; before the first turn only with ``assesses_first_turn``.
    """
    position = _renew_advice(place, position, run)
    decision = DECIDERS[position.state](place, position, run)
    results = []
    for number, action in enumerate(decision.actions, 1):
        result = use_tool(action, f"use {number}", run, local=position.local)
        results.append(result)
    local = position.local
    if results:
        local = update_local_graph(place, local, tuple(results), run)
    visit = Visit(position.state, decision.thought, decision.next, tuple(results))
    visits = (*position.visits, visit)
    return replace(position, state=decision.next, local=local, visits=visits)


def _renew_advice(place: str, position: Position, run: Run) -> Position:
    """Return a position with new advice, if metacognition is on and its state evaluates."""
    settings = RoboDataSettings.of_run(run)
    if not settings.metacognition or not position.state.startswith("EVAL"):
        return position
    if not position.visits and not settings.assesses_first_turn:
        return position
    strategy = assess_strategy(place, position, run)
    observation = observe_strategy(place, position, strategy, run)
    # The published code shows each evaluation only the advice that was just given.
    keeps_advice = settings.observation_memory != "last_observation"
    return position.with_observation(observation, keeps_advice=keeps_advice)


@agent("local_graph", subject="place")
def update_local_graph(
    place: str, local: LocalGraph, results: tuple[Observed, ...], run: Run
) -> LocalGraph:
    """Add to the local graph, or remove from it, the results of a turn's tools, in their order.

    Returns the new local graph. A row of one cell is a node, a row of three a triple; other rows
    and those with an empty cell are skipped. Results that are only shown change nothing, but the
    display names of all results are kept: later prompts need ids and names for terms that were only
    shown.
    """
    local = local.with_names(chain.from_iterable(result.names for result in results))
    for result in results:
        nodes = []
        triples = []
        for row in result.rows:
            if len(row) == 1 and row[0] is not None:
                nodes.append(row[0])
            elif len(row) == 3:
                subject, predicate, object_ = row
                if subject and predicate and object_ is not None:
                    triples.append((subject, URIRef(predicate), object_))
        if result.effect == "added":
            local = local.with_triples(nodes, triples)
        elif result.effect == "removed":
            local = local.without(nodes, triples)
    return local


def collect_linked_iris(run: Run) -> LinkedIris:
    """Return the IRIs in a run's last local graph, and as candidates all terms in results of tools.

    The nodes count as vertices, and the predicates of its triples as predicates. The candidates of
    both kinds are the same. All are empty before the first turn has ended.
    """
    last: list[Position] = list_outputs(run, "turn")[-1:]
    seen = collect_iris(last, lambda position: filter(None, chain(*list_observed(position))))
    return LinkedIris(
        collect_iris(last, lambda position: filter(_is_iri, position.local.nodes)),
        collect_iris(last, lambda position: [triple[1] for triple in position.local.support]),
        seen,
        seen,
    )


def _is_iri(term: Term) -> bool:
    return isinstance(term, URIRef)


GOLD = GoldDecisions(
    {"local graph": make_graph_rung, "answer": make_answer_rung}, collect_linked_iris
)
"""The states that evaluate, the look at the local graph, and metacognition have no gold.

No query says in which turn a person would have gone on.
"""

SYSTEM = System(
    "robodata",
    answer_question,
    {
        "Think ↻": (take_turn, assess_strategy, observe_strategy),
        "Remote ↻": (decide_remote, *TOOLS_BY_STATE["REMOTE"], decide_eval_remote),
        "Local ↻": (
            decide_update,
            *TOOLS_BY_STATE["UPDATE"],
            update_local_graph,
            decide_eval_local,
        ),
        "Look closer": (decide_local, *TOOLS_BY_STATE["LOCAL"]),
        "Answer": (produce_answer, build_answer),
    },
    supervisors={"turn": ("assessment", "observation", *map(str.lower, DECIDERS), "local_graph")},
    settings=RoboDataSettings,
    views="kgwb.systems.robodata.views",
    gold=GOLD,
)
