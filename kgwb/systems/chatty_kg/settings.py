"""The settings of Chatty-KG. Each decision that differs between the profiles has its own setting."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from kgwb.build import STRICT_CONFIG, UNLIMITED, Count, Settings

LanguageTag = Annotated[str, Field(pattern=r"^([A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*)?$")]


@dataclass(frozen=True, kw_only=True, config=STRICT_CONFIG)
class ChattySettings(Settings):
    """What changes how Chatty-KG answers. Sections and algorithms are those of its paper."""

    PAPER: ClassVar = {
        "spelling": 0.0,
        "repair": "ask_varied",
        "exhausted_attempts": "abstain",
        "candidate_texts": "labels",
        "vertex_choice": "label",
        "unasked_choice": "never",
        "keeps_links": False,
        "translate": "model",
        "unasked_classification": False,
        "context_content": "questions_and_answers",
        "leaves_out_mentioned": False,
        "refuses_inexpressible": False,
        "checks_target": False,
        "kind_from": "model",
        "several_targets": False,
        "classes": "searched",
        "links_literals": False,
        "tells_apart": False,
        "links_several": False,
        "linked_ends": "connecting_reached",
        "wording_decides_direction": False,
        "predicate_names": "local_parts",
        "joins_over_node": False,
        "keeps_type_predicates": True,
        "whole_graph": True,
        "predicates_per_relation": UNLIMITED,
        "query_order": "as_combined",
        "refuses_stored_false": False,
        "excludes_named": False,
        "predicate_choice": "pooled",
        "predicate_examples": False,
        "unasked_predicates": False,
        "first_true_decides": False,
        "classifies_with_reason": False,
        "checks_sentence": False,
        "looks_into_nodes": False,
        "shows_units": False,
        "merges_names": False,
        "value_order": "by_row",
    }
    REFERENCE: ClassVar = PAPER | {
        "repair": "ask_afresh",
        "unasked_choice": "only_candidate",
        "rephrasings": 3,
        "context_content": "questions_and_rephrasings",
        "target": "first_by_name",
        "linked_ends": "connecting_first",
        "links_joins": False,
        "keeps_type_predicates": False,
        "whole_graph": False,
        "predicates_per_relation": 21,
        "kind_from": "words",
        "unlinked_facts": "left_out",
        "counts_values": False,
    }

    model_alone: bool = False
    """Whether the model answers without the graph, as the baseline of Table 4 (section 7.3)."""

    # Understanding

    answers_in_context: Count = 100
    """L: answers of an earlier turn that the rephraser sees (section 4.1)."""
    multi_turn: bool = True
    """False skips classifier and rephraser (the system mode of section 6)."""
    question_language: LanguageTag = ""
    """The language tag of the questions, if it is known.

    With "en" nothing is translated, as in the paper's evaluation. With any other tag every question
    is. Empty: ``translate`` decides.
    """
    translate: Literal["model", "by_words", "never"] = "by_words"
    """Who decides whether a question is translated to English, if its language is not known.

    - "model": the translator, which is asked with every question (sections 4.1 and 7.5).
    - "by_words": its words; the translator is not asked if they look English.
    - "never": nothing is translated.
    """
    unasked_classification: bool = True
    """Whether the classifier is spared where the case is clear.

    Without earlier turns a question is self-contained, and with a pronoun before any name it is
    dependent. The paper asks with every question (Algorithm 1, line 1; section 4.2.1).
    """
    classifies_with_reason: bool = True
    """Whether the classifier gives its reason before the label, by criteria with sample questions.

    The paper has it return a label, zero-shot (section 4.2.1).
    """
    rephrasings: Count = 1
    """How often a dependent question is rephrased at most (1: Algorithm 1, lines 2 to 6).

    With more than 1, a rephrased question is classified again (reference code).
    """
    context_content: Literal[
        "standalone_and_entities", "questions_and_answers", "questions_and_rephrasings"
    ] = "standalone_and_entities"
    """What the rephraser sees of each earlier turn.

    - "standalone_and_entities": the standalone question, the answers, and the entities.
    - "questions_and_answers": the question as it was asked, and the answers (section 4.1).
    - "questions_and_rephrasings": the question as asked and as rephrased (reference code).
    """
    leaves_out_mentioned: bool = True
    """Whether values of earlier answers are left out if the question asks what "else" there is."""
    refuses_inexpressible: bool = True
    """Whether the QIR agent names what triples cannot express, and the question is not answered.

    Without it the prompt of section 4.2.3 is used, and the rest of the question is answered.
    """
    checks_target: bool = True
    """Whether the target must be one of the unknowns, beside the checks of section 4.2.3."""
    target: Literal["asked_for", "first_by_name"] = "asked_for"
    """Which unknown is selected: the one that is asked for (section 5.2.1), or the first by name
    (reference code)."""

    kind_from: Literal["words", "model"] = "words"
    """What decides whether a list, a count, or yes or no is asked for: the words of the question, or
    the QIR agent, as section 4.2.3 says. Where the words are no certain sign, the agent decides."""
    several_targets: bool = True
    """Whether several unknowns are selected, each in a column, if the question asks for several.

    The paper selects the main unknown (section 5.2.1).
    """

    # Linking

    classes: Literal["for_kinds", "searched"] = "for_kinds"
    """How classes become candidates.

    - "for_kinds": an entity that names a kind of thing gets the classes of the graph. Its triple is
      then linked to the type predicate, with the subclasses.
    - "searched": every entity gets those whose name has its words, as it gets any other vertex
      (section 5.1.1, which excludes nothing).
    """
    links_literals: bool = True
    """Whether an entity without a vertex is linked to a literal that is exactly it.

    A town may be no more than a text in an address. The paper links to vertices (section 5.1.1).
    """
    tells_apart: bool = True
    """Whether a model sees more of candidates that labels, types and descriptions do not tell apart.

    Candidates of one type without a description get their relations. An entity in lower case that
    is the name of a vertex but for the case may be a common noun: it keeps its other candidates.
    The paper shows labels (section 5.1.1, equation 5).
    """
    links_several: bool = True
    """Whether a model may link an entity to several vertices that it names together.

    It may where the entity is in lower case and matches no label exactly, and several candidates of
    the same types have its words in their labels: "coal" of "Steam coal" and "Coking coal". The
    paper links to one vertex (section 5.1.1, equation 5).
    """
    links_joins: bool = True
    """Whether a fact between two unknowns is linked at what the facts before it lead to.

    Without it such a fact has no predicates (reference code).
    """
    join_sample: Count = 200
    """Vertices sampled to find the predicates of a relation between two unknowns."""
    linked_ends: Literal["connecting_first", "connecting", "connecting_reached", "any_end"] = (
        "connecting_first"
    )
    """Which predicates a fact between two linked vertices gets.

    - "connecting": those that connect the two.
    - "connecting_reached": the same, and an unknown that another fact leads to is linked to what it
      leads to (section 5.1.3).
    - "connecting_first": those before all others that either vertex has.
    - "any_end": all that either vertex has, by similarity.
    """
    joins_over_node: bool = True
    """Whether a fact may lead over one node that the question does not name.

    This is tried if both ends of the fact are linked or typed, and no predicate connects them: from
    an assembly over the entry of a part to a product. It is also tried if one end is an unknown, and
    no predicate at the other end is like the relation: from a ship over its calls to the pilots. The
    paper has one triple pattern for a triple (section 5.2.1).
    """
    keeps_type_predicates: bool = False
    """Whether type predicates are candidates for any relation, as section 5.1.3 has all predicates.

    The reference code leaves them out.
    """
    wording_decides_direction: bool = True
    """Whether, of a predicate that is found in both directions, the one that the words suggest goes
    first, and the other is only asked if it has no rows. Without it both count alike."""
    predicate_names: Literal["labels", "local_parts"] = "labels"
    """How predicates are named: by label, or by the last segment of their IRI (section 5.1.3).

    A segment that nobody can read, such as P57, is replaced by the label.
    """
    predicates_per_relation: Count = 5
    """Ranked predicates kept for a relation. The paper stores all that it ranks, its code 21."""

    # Queries

    query_num: Count = 40
    """Candidate queries kept by truncation (Algorithm 3, line 2)."""
    query_order: Literal["by_score", "as_combined"] = "by_score"
    """Which queries truncation keeps: those of highest score, or the first combinations."""
    unlinked_facts: Literal["no_query", "left_out"] = "no_query"
    """What is done with a fact without predicates: no query is built, or it is left out of all of
    them (reference code). Section 5.2.1 has every triple of the QIR in every query."""
    refuses_stored_false: bool = True
    """Whether a yes-or-no question is not answered with yes by a stored ``false``."""
    excludes_named: bool = True
    """Whether what a question of several facts names cannot be its answer."""
    predicate_choice: Literal["by_fact", "pooled"] = "by_fact"
    """How relevant predicates are chosen.

    - "by_fact": for each fact, and a query must be right in all of them.
    - "pooled": from one list; a query with one of them is kept (Algorithm 3, lines 6, 13 and 17).
    """
    predicate_examples: bool = True
    """Whether a model that chooses by fact sees a triple of the graph for each predicate.

    Of a predicate that is found in both directions it then chooses one or both. The paper shows names
    (Algorithm 3, line 13).
    """
    unasked_predicates: bool = True
    """Whether no model is asked if each relation certainly means one predicate. The paper always
    asks (Algorithm 3, line 13)."""
    first_true_decides: bool = True
    """Whether a question for yes or no ends with the first query that is true.

    The paper executes all kept queries (section 5.2.4).
    """

    # The answer

    counts_values: bool = True
    """Whether values are counted if a count is asked for and no number is stored."""
    looks_into_nodes: bool = True
    """Whether a blank node that stands for a number is answered by it: a length has a number and a unit.

    The paper returns the bindings as they are (section 5.2.4).
    """
    shows_units: bool = True
    """Whether a number that a blank node has is shown with the unit that the node has beside it.

    The value stays the number. The paper returns the bindings as they are (section 5.2.4).
    """
    merges_names: bool = True
    """Whether a text that is the name of another value is left out, and forms of one text are merged.

    A graph may say the same with two predicates, as a text and as a thing: the country "Norway".
    The thing keeps the triples of both. Forms of a text differ in language, datatype or spelling.
    The paper removes equal values only (section 5.2.4).
    """
    value_order: Literal["by_query", "by_row"] = "by_query"
    """The order of an answer's values. Those of queries with a higher score come first; of one query
    by label, or in the order of its rows."""
    reword_answer: bool = False
    """Let the chat agent turn short answers into a sentence (off in the paper's evaluation)."""
    checks_sentence: bool = True
    """Whether such a sentence must have every value, and is asked for again without one.

    Equation 1 takes what the model writes.
    """
