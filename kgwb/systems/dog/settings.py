"""The settings of DoG."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from kgwb.build import STRICT_CONFIG, UNLIMITED, Count, Settings

Ablation = Literal["none", "no_focusing", "expert_only", "no_linguist", "fused_agent"]
ExampleCount = Annotated[int, Field(ge=0, le=UNLIMITED)]
"""A number of examples in a prompt. It may be 0, as in figure 4."""
SCRIPT_ROUNDS = {"model": 1, "tails": 3}
"""Rounds of a debate in the published scripts: for Freebase, and for MetaQA."""
SCRIPT_FILTERING_EXEMPLARS = {"model": 3, "tails": 5}
"""Examples for relation filtering in the published scripts: for Freebase, and for MetaQA."""


@dataclass(frozen=True, kw_only=True, config=STRICT_CONFIG)
class DogSettings(Settings):
    """The settings of DoG, beside those that every system has.

    The published code has scripts for Freebase and others for MetaQA, which differ. The value
    "by_script" of a setting is what these scripts have: those for MetaQA if ``answers`` is "tails",
    else those for Freebase.
    """

    PAPER: ClassVar = {
        "topic_entities": "first",
        "topic_given": True,
        "debate_rounds": 3,
        "remark_checks": "none",
        "only_relation": "asked",
        "repair": "ask_varied",
        "own_knowledge": True,
        "own_knowledge_at": "limit",
        "answer_words": "own",
        "role_triples": None,
        "whole_graph": True,
        "fan_out": UNLIMITED,
        "follows_namesakes": False,
        "merges_forms": False,
        "filtering_exemplars": 10,
        "trying_exemplars": 10,
    }
    REFERENCE: ClassVar = {
        **PAPER,
        "own_knowledge_at": "any_end",
        "whole_graph": False,
        "relation_directions": "by_script",
        "debate_rounds": "by_script",
        "debate_end": "last_round",
        "filtering_exemplars": "by_script",
        "trying_exemplars": 5,
    }

    topic_entities: Literal["all", "first"] = "all"
    """At which names of a question the walk starts.

    - "all": at each of them.
    - "first": at the first one ("the initial topic entity", Overview; the scripts too).
    """
    topic_given: bool = False
    """Whether the walk starts at the topic entity that a question set gives (Overview).

    Otherwise, and for a question by itself, the model names it and it is linked.
    """
    relation_directions: Literal["both", "outgoing", "by_script"] = "both"
    """Which relations of a head can be chosen.

    - "both": also those that lead to it, with "~" before their names (Relation Filtering).
    - "outgoing": those that lead away from it.
    - "by_script": "both" for MetaQA, "outgoing" for Freebase.
    """
    follows_namesakes: bool = True
    """Whether all predicates of one name and one direction are followed as one relation.

    Otherwise the first of them is, by IRI: the paper follows one relation (Implementation Settings).
    """
    only_relation: Literal["taken", "asked"] = "taken"
    """Whether a model is asked if a head has a single relation.

    - "taken": the relation is taken without a model, unless choosing none has a meaning.
    - "asked": the model is asked, as it is for any number of relations (Relation Filtering).
    """
    answers: Literal["model", "tails"] = "model"
    """Where the answers come from.

    - "model": after each hop the model tries to answer with its triples (Answer Trying).
    - "tails": there are ``iteration_limit`` hops, and the tails of the last one are the answers. No
      model tries or writes an answer. This is how MetaQA is measured (figure 4, caption); its
      questions of 1, 2 and 3 hops have an ``iteration_limit`` of 1, 2 and 3.
    """
    answer_words: Literal["copied", "own"] = "copied"
    """What a model that tries to answer may write.

    - "copied": names in the triples, exactly as they stand there.
    - "own": also words of its own, such as a count, yes or no (Task Formulation).
    """
    own_knowledge_at: Literal["any_end", "limit"] = "any_end"
    """After which walks without an answer the model answers by itself, if ``own_knowledge`` is on.

    - "any_end": all; a walk also ends where no relation leads on.
    - "limit": those that reached ``iteration_limit`` without enough triples (Answer Trying). With
      ``answers`` "tails" there are none.
    """
    iteration_limit: Count = 3
    """After how many hops the walk ends without an answer.

    The paper has a limit (Answer Trying) and not its value, which is that of the scripts.
    """
    says_last_hop: bool = True
    """Whether the model is told at the last hop that the walk ends there. The paper is silent."""
    debate_rounds: Count | Literal["by_script"] = 1
    """How many rounds the roles debate at most to shorten a question.

    The paper allows 3 (Implementation Settings), and finds that 1 is best on most question sets
    (figure 3). "by_script" is 3 for MetaQA, and 1 for Freebase.
    """
    debate_end: Literal["agreed", "last_round", "first_valid"] = "agreed"
    """When a debate ends.

    - "agreed": after a round in which all roles propose the same question, word for word, and in
      any case after ``debate_rounds`` rounds. A role alone has to propose it twice.
    - "last_round": after ``debate_rounds`` rounds, as the scripts do.
    - "first_valid": with the first question that passes the checks. So critic and linguist mostly
      do not speak: it is the cheapest, and no debate.
    """
    remark_checks: Literal["every_role", "none"] = "every_role"
    """Which questions that the roles propose are checked, and asked for again if they fail.

    - "every_role": each must go on from what was found, and must no longer name what is solved.
    - "none": it is for the critic and the linguist to repair them (Question Simplifying: the first
      proposal "may contain apparent errors").
    """
    filtering_exemplars: ExampleCount | Literal["by_script"] | None = None
    """How many examples are sent for relation filtering: 10 (Implementation Settings), and in
    figure 4 other numbers. None: as many as the setting ``exemplars`` says. "by_script" is 5 for
    MetaQA, and 3 for Freebase.
    """
    trying_exemplars: ExampleCount | None = None
    """How many examples are sent for answer trying: 10 (Implementation Settings), and in figure 4
    other numbers. None: as many as the setting ``exemplars`` says.
    """
    simplifying_exemplars: ExampleCount = 1
    """How many examples each role of the debate is sent: 1 (Implementation Settings), and in
    figure 4 other numbers.
    """
    role_triples: Count | None = 3
    """How many triples of a hop the roles of a debate see at most. None: all (Question Simplifying)."""
    fan_out: Count = 100
    """How many tails of a head are kept after a hop, and how many of its triples a model sees.

    Where more were found, the step has a note. The paper names no limit.
    """
    merges_forms: bool = True
    """Whether texts that differ in language, datatype or spelling only are one value of an answer.

    The paper's answer is what the model generates (Task Formulation).
    """
    ablation: Ablation = "none"
    """What is left out of the system: the rows of Table 2.

    - "none": nothing (row 4).
    - "no_focusing": trying to answer after each hop, and simplifying the question. The model tries
      once, at the end, with the triples of all hops (row 1).
    - "expert_only", "no_linguist": the other roles of the debate (rows 2 and 3).
    - "fused_agent": the debate; one agent has the tasks of all three roles (row 5).
    """

    @property
    def max_debate_rounds(self) -> int:
        """The value of ``debate_rounds`` as a number: for "by_script", that of SCRIPT_ROUNDS for ``answers``."""
        if self.debate_rounds == "by_script":
            return SCRIPT_ROUNDS[self.answers]
        return self.debate_rounds

    @property
    def follows_incoming_relations(self) -> bool:
        """Whether relations that lead to a head can be chosen: not with ``relation_directions`` "outgoing".

        With "by_script" they can if ``answers`` is "tails".
        """
        if self.relation_directions == "by_script":
            return self.answers == "tails"
        return self.relation_directions == "both"

    @property
    def filtering_example_count(self) -> int:
        """How many examples the prompt for filtering relations has at most.

        It is ``filtering_exemplars``, if that is a number; the number of the published script for
        the setting ``answers``, if it is "by_script"; and ``exemplars`` if it is None.
        """
        if self.filtering_exemplars == "by_script":
            return SCRIPT_FILTERING_EXEMPLARS[self.answers]
        if self.filtering_exemplars is None:
            return self.exemplars
        return self.filtering_exemplars

    @property
    def trying_example_count(self) -> int:
        """The value of ``trying_exemplars``, or that of ``exemplars`` if it is None."""
        if self.trying_exemplars is None:
            return self.exemplars
        return self.trying_exemplars
