"""The settings of Triad. Each difference between its profiles is a setting of its own."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic.dataclasses import dataclass

from kgwb.build import STRICT_CONFIG, UNLIMITED, Count, Settings


@dataclass(frozen=True, kw_only=True, config=STRICT_CONFIG)
class TriadSettings(Settings):
    """The settings of Triad, beside those that every system has."""

    PAPER: ClassVar = {
        "own_knowledge": True,
        "theta": 1,
        "spelling": 1.0,
        "candidate_texts": "labels",
        "unasked_choice": "never",
        "guidelines": "published",
        "entity_options": "uris",
        "exact_k": True,
        "relation_options": "uris",
        "shown_relations": UNLIMITED,
        "relation_examples": False,
        "as_written": True,
        "strict_templates": False,
        "free_templates": True,
        "whole_graph": True,
        "links_own_answers": True,
        "query_limit": UNLIMITED,
        "merge_results": False,
        "merges_forms": False,
        "query_options": "sparql",
        "may_refuse_queries": False,
        "asks_about_single": True,
        "answer_type_from": "chain_of_thought",
        "retry_from": "parsing",
        "retry_feedback": False,
        "stop_unchanged": False,
    }

    exemplars: Count = 3
    """How many examples of each task the generalist is shown (N in Table 4)."""
    entities: Count = 2
    """How many vertices are chosen for a mention (K in Table 4)."""
    relations: Count = 2
    """How many relations are chosen for a triplet at most (K in Table 4)."""
    tries: Count = 3
    """How many attempts are made to find a query (T in Table 4)."""
    guidelines: Literal["extended", "published"] = "extended"
    """Whose guidelines the generalist and the advisor are given.

    - "extended": ours, which also say what to do with values, kinds, titles and plurals.
    - "published": those of appendix B and D.
    """
    entity_options: Literal["described", "uris"] = "described"
    """What the decision-maker sees of the vertices that a mention may mean.

    - "described": numbers, labels, and what else is known of the candidates.
    - "uris": their URIs, one a line (appendix C).
    """
    exact_k: bool = False
    """Whether K vertices are chosen for a mention, as published, or up to K (appendix C).

    Where there are fewer candidates, as published all are chosen.
    """
    relation_options: Literal["triples", "uris"] = "triples"
    """What the decision-maker sees when it chooses the relations of a triplet.

    - "triples": the triplet, and each relation as the triple that the graph would have.
    - "uris": the two entities without an order, and URIs; not the words of the relation
      (appendix C).
    """
    shown_relations: Count = 40
    """How many relations the model may choose from for a triplet: the most similar by name.

    As published, all that one hop reaches (section 3.2).
    """
    relation_examples: bool = True
    """Whether each relation is looked up, and shown with a thing that it leads to.

    So the decision-maker sees that a relation leads to a value, or to a node between two things. A
    relation that leads to values only is left out where its end is named in the question. Only with
    ``relation_options`` "triples".
    """
    join_sample: Count = 50
    """How many terms stand for an unknown when the relations around it are looked for."""
    as_written: bool = False
    """Whether relations have the direction of the template, as published, or that of the graph.

    As published, a template is written before the URIs are known (section 3.1).
    """
    strict_templates: bool = True
    """Whether a template must have every triplet, and ask for one variable or one count.

    As published, it is to "make an effort" to use them (appendix B).
    """
    free_templates: bool = False
    """Whether a template may have triples that are no triplets, and relations in lists and paths.

    As published, it is any standard query over the names of the triplets (appendix B).
    """
    query_limit: Count = 40
    """How many queries are run in an attempt. Those with the best options come first.

    As published, all are (section 3.2).
    """
    merge_results: bool = True
    """Whether only the first of several queries with the same result is offered."""
    merges_forms: bool = True
    """Whether texts that differ in language, datatype or spelling only are one value of an answer.

    As published, the values are those of the query (section 3.3).
    """
    query_options: Literal["results", "sparql"] = "results"
    """What the decision-maker sees of the queries that it chooses from.

    - "results": the query with names in place of URIs, and its first results.
    - "sparql": the SPARQL alone (appendix C).
    """
    may_refuse_queries: bool = True
    """Whether the decision-maker may choose no query, and judges a single one too.

    As published, it chooses one of several (section 3.2, K = 1).
    """
    asks_about_single: bool = False
    """Whether the decision-maker is asked about a single query, though it may not refuse it."""
    links_own_answers: bool = False
    """Whether a fact from own knowledge is the vertex that the search of labels finds first for it.

    So it can be compared with an answer of the graph, as in Table 3. Section 4.1 links the answers
    of models alone in this way.
    """
    answer_type_from: Literal["query", "model", "chain_of_thought"] = "query"
    """Where the type of the answer comes from.

    - "query": from the chosen query; without one a model is asked. If the question asks how many
      and the query lists things, they are counted.
    - "model": a model is asked in any case.
    - "chain_of_thought": the same, step by step (section 3.1, equation 4).
    """
    retry_from: Literal["fault", "parsing", "linking", "construction"] = "fault"
    """The phase that a further attempt goes back to: the one at fault, or always the same."""
    retry_feedback: bool = True
    """Whether the agents are told why earlier attempts found no query.

    As published there is no place for it in the prompts (appendix B and C). Then they are asked
    the same again, with another seed and with ``retry_temperature``.
    """
    stop_unchanged: bool = True
    """Whether an attempt that decides nothing otherwise than the one before is the last."""
    ablation: Literal[
        "none", "no_uri_choice", "no_query_choice", "no_fallback", "boolean_fallback"
    ] = "none"
    """What is left out of the system (section 4.3, Table 3).

    - "none": nothing.
    - "no_uri_choice": D-uri, the choice of vertices and relations; the most similar by name are
      taken.
    - "no_query_choice": D-query; the model writes an executable query in place of a template, and
      none is chosen.
    - "no_fallback": A-llm, answers from own knowledge, also with the setting ``own_knowledge``.
    - "boolean_fallback": A-fact; only truth values come from own knowledge, facts and counts do not.
    """
