"""The settings of RoboData. Each difference between its profiles is a setting of its own."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic.dataclasses import dataclass

from kgwb.build import STRICT_CONFIG, UNLIMITED, Count, Settings

TURNS = 31
"""The 30 turns of the batches A and B, and PRODUCE after them."""
TURNS_WITH_METACOGNITION = 51
"""The 50 turns of batch C, and PRODUCE after them."""


@dataclass(frozen=True, kw_only=True, config=STRICT_CONFIG)
class RoboDataSettings(Settings):
    """The settings that RoboData has besides those of every system."""

    PAPER: ClassVar = {
        "turn_limit": "by_batch",
        "temperatures": "by_state",
        "urgency": "metacognition",
        "observation_memory": "all_observations",
        "empty_graph": "remote",
        "search_hits": UNLIMITED,
        "ingredients": "listed",
        "assesses_first_turn": True,
        "details": "described",
        "removes": False,
        "default_neighbours": UNLIMITED,
        "shown_triples": UNLIMITED,
        "shortens_uses": False,
        "query_rows": UNLIMITED,
        "fetched_per_node": UNLIMITED,
        "fetched_per_use": UNLIMITED,
        "memory_chars": 16_000,
    }
    REFERENCE: ClassVar = {
        **PAPER,
        "assesses_first_turn": False,
        "removes": True,
        "default_neighbours": 20,
        "search_hits": 50,
        "query_rows": 50,
        "fetched_per_node": 500,
        "observation_memory": "last_observation",
        "after_remote": "eval_remote",
        "large_graph": "asked",
        "doubts_unproved": False,
    }

    turn_limit: Count | Literal["by_batch"] = 30
    """How many states are visited at most. The last of them is PRODUCE.

    "by_batch" is what the paper has: PRODUCE comes after 30 turns at the latest, and with
    metacognition after 50 (Experimental Evaluation).
    """
    metacognition: bool = False
    """Whether the strategy is assessed and corrected before each evaluation.

    It is off by default in the paper, too (Experimental Evaluation).
    """
    assesses_first_turn: bool = False
    """Whether the strategy is also assessed before the first turn, when nothing was done yet.

    The paper does so "each time the agent reaches an evaluation state" (Metacognition).
    """
    ingredients: Literal["all", "listed"] = "all"
    """What the prompt of a state has.

    - "all": the previous thought, memory, local graph, results of tools, and the turns left.
    - "listed": what the paper lists for the state (Stateful Orchestrator), as a message of the
      assistant. Only the evaluation of remote data and the update have results of remote tools, only
      the evaluation and exploration of the local graph those of LOCAL, and no state has the turns
      left. Memory then has the rows that tools have shown. Metacognition has no thought, and the
      assessment no outcome.
    """
    details: Literal["triples", "described"] = "triples"
    """What the tools for one node, edge, entity or property show.

    - "triples": triples at it.
    - "described": before these, its names in all languages and its descriptions ("detailed
      information").
    """
    removes: bool = True
    """Whether UPDATE is offered tools that remove nodes and triples. The paper names none."""
    self_reflection: bool = True
    """Whether evaluations reflect on the turns so far, and thoughts are shown in later prompts.

    It is on in all experiments of the paper.
    """
    observation_memory: Literal["latest_advice", "last_observation", "all_observations"] = (
        "latest_advice"
    )
    """What the meta-observation is shown of earlier ones.

    - "latest_advice": the latest advice.
    - "last_observation": strategy, judgement and advice of the last one (reference code).
    - "all_observations": those of all ("compared to previous ones", Metacognition).

    Unless it is "latest_advice", both prompts of metacognition also have the outcome so far and the
    available tools. ``ingredients`` "listed" has its own rule for these.
    """
    urgency: Literal["word", "instruction", "metacognition"] = "word"
    """What a prompt says of the turns that are left.

    - "word": how many, and that the urgency is low, medium or high.
    - "instruction": also what to do, the more urgently the fewer are left, and which parts of the
      local graph are not connected (Metacognition).
    - "metacognition": the same, but in the prompts of metacognition alone (reference code).
    """
    temperatures: Literal["one", "by_state"] = "one"
    """At which temperature a model is asked.

    - "one": at the setting ``temperature``.
    - "by_state": at 0.8 where it evaluates or looks in the remote graph, at 0.7 for the
      meta-observation, and else at 0.1 (reference code; the paper is silent).
    """
    after_remote: Literal["remote_or_eval_remote", "eval_remote", "remote_or_eval_local"] = (
        "remote_or_eval_remote"
    )
    """Which states may follow REMOTE. The paper contradicts itself.

    - "remote_or_eval_remote": the results are evaluated, or the agent keeps exploring. This is the
      paper's first paragraph ("Remote data is evaluated in Remote Data Evaluation").
    - "eval_remote": the results are evaluated (reference code).
    - "remote_or_eval_local": the agent goes to Local Data Evaluation or keeps exploring, as the
      paragraph on Remote Data Exploration says. EVAL_REMOTE and UPDATE are then never visited, and
      only ``build_local_graph`` adds to the local graph.
    """
    empty_graph: Literal["asked", "remote"] = "asked"
    """What is done with an empty local graph.

    - "asked": after the first turn EVAL_LOCAL asks the model, so that it can give up. PRODUCE does
      not ask it: no sentence could have a support set.
    - "remote": EVAL_LOCAL goes to REMOTE without a model (Local Data Evaluation). After the last
      turn PRODUCE asks it all the same ("forced to produce an answer").
    """
    large_graph: Literal["local", "asked"] = "local"
    """What EVAL_LOCAL does with a local graph that a prompt cannot show whole.

    - "local": LOCAL is visited once after each change of the graph (Local Data Evaluation).
    - "asked": the model decides (reference code).
    """
    search_hits: Count = 5
    """Entities that one search shows, of the ``v_limit`` that it finds at most.

    The published code shows 5, and up to 50 on request.
    """
    default_neighbours: Count = 20
    """Triples that ``explore_entity_neighbors`` shows if the model gives no limit (reference code).

    The paper retrieves all. Then the field ``limit`` of the tool is still there, and its number does
    not count.
    """
    shown_triples: Count = 100
    """Triples that one use of a tool shows."""
    shortens_uses: bool = True
    """Whether the arguments of tool uses are shortened to 120 characters where prompts show them.

    The paper shows the sequence of tool calls (Metacognition).
    """
    query_rows: Count = 50
    """Rows of a query that are shown (reference code)."""
    fetched_per_node: Count = 50
    """Triples that are fetched for each of the nodes that a use names.

    The published code fetches all that lead away from a node, and up to 500 that lead to it.
    """
    fetched_per_use: Count = 500
    """Triples that one use fetches for all its nodes."""
    doubts_unproved: bool = True
    """Whether an answer is in doubt if no sentence with a whole support set proves it.

    The paper has a support set for each claim (Contributions). The published code does not check it.
    """
    tool_uses: Count = 12
    """How many tools one reply may use."""
    memory_chars: Count = 6_000
    """Characters of memory in a prompt. The latest turns are whole, earlier ones are shortened.

    With ``ingredients`` "listed" each turn keeps its thought and all its tool uses: these are the
    characters of the rows that its tools have shown, the latest first. It is said where rows are
    left out.
    """
    shown_chars: Count = 16_000
    """Characters of the local graph in a prompt, and of tool results.

    The tools of LOCAL read what is cut from the local graph.
    """

    @property
    def turns(self) -> int:
        """The value of ``turn_limit`` as a number."""
        if self.turn_limit != "by_batch":
            return self.turn_limit
        return TURNS_WITH_METACOGNITION if self.metacognition else TURNS
