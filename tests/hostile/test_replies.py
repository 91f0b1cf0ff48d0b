"""What a model may answer: malformed and adversarial replies to every agent, judged by an oracle of its own.

A reply is accepted only if the text holds an object that its JSON schema allows (jsonschema, not pydantic)
and if every choice is among those that were offered. Nothing but InvalidReplyError comes out of an agent.
"""

from __future__ import annotations

import ast
import json
import random
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import pytest
from debate import filtering, remark, trying
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from machine import FETCHED, PROVEN, goes, judges, search
from machine import produce as told
from machine import use as tool
from pydantic import BaseModel
from ragonite import FINISH, cited, passages, sql, use
from rdflib import Literal
from rdflib.plugins.sparql import prepareQuery
from small import CHATTY, PAPER, alone, chatty, films, iri, predicates, published, qir, vertex
from surveying import FINE, NOT_HERE, draft, mention, revise
from triads import TEMPLATE, TWO_HOPS, choice, template, triplets

from hostile.corpus import HALVES, NUL, ORDERS, PLAIN, outcomes, texts
from kgwb.errors import InvalidReplyError
from kgwb.kg.queries import CandidateQuery
from kgwb.llm import Scripted
from kgwb.run import Run, System, linking
from kgwb.run import ask as acting
from kgwb.run import ask as structured
from kgwb.run.answers import (
    Answer,
    Candidate,
    Context,
    Dialogue,
    Question,
    RetrievedCandidates,
    Turn,
    Value,
)
from kgwb.run.ask import Check, act, check_reply
from kgwb.run.prompts import shipped_folder
from kgwb.run.systems import list_systems, load_system
from kgwb.settings import Settings
from kgwb.show.notebook import to_html
from kgwb.systems.chatty_kg import chat, predicate_selection
from kgwb.systems.chatty_kg import qir as qirs
from kgwb.systems.chatty_kg.records import (
    Fact,
    GeneratedQueries,
    LinkedRelation,
    LinkingResult,
    RankedPredicate,
)
from kgwb.systems.chatty_kg.settings import ChattySettings
from kgwb.systems.dog import hop, question
from kgwb.systems.dog.records import FilledTriples, Relation, Relations, SolvedHop
from kgwb.systems.ragonite import answerer as ragonite
from kgwb.systems.ragonite.records import Source
from kgwb.systems.ragonite.tool_selector import TOOLS_BY_ABLATION as RAGONITE_TOOLS
from kgwb.systems.ragonite.tool_selector import Finish, Sparql
from kgwb.systems.robodata import states
from kgwb.systems.robodata.records import LocalGraph, Position, Visit
from kgwb.systems.robodata.states import DECIDERS, assess_strategy, observe_strategy, produce_answer
from kgwb.systems.surveyor import drafter, mentions
from kgwb.systems.surveyor.records import Draft, Executed, Mention, Mentions, Part
from kgwb.systems.triad import advisor, decision_maker, generalist
from kgwb.systems.triad import records as triads
from kgwb.systems.triad.settings import TriadSettings

MUTATED, FREE, PLAYED = 850, 200, 60
"""Replies tried of each agent: spoilt ones, free texts, and spoilt ones through the whole agent."""
LEAST = 10_000
SLOW_S = 30
KG = films()
LABELS = (
    "Arrival", "Аrrival", "ARRIVAL II", "Dune", "Dune", 'say "hi"', "עברית", ORDERS[0], "<b>", "ß", "{{x}}",
    "0",
)  # fmt: skip
NAMES = ("director", "directed by", ORDERS[3], 'a"b', "Director")
CANDIDATES = tuple(Candidate(iri(f"v{n}"), label, 0.5) for n, label in enumerate(LABELS))
RETRIEVED = RetrievedCandidates("Arrival", CANDIDATES)
SEVERAL = RetrievedCandidates("arrivals", CANDIDATES, may_be_several=True)
HOMONYM = RetrievedCandidates("Dune", tuple(c for c in CANDIDATES if c.label == "Dune"))
FACTS = (Fact("Arrival", "by", "?x"), Fact("?x", "from", "?y"))
BY_FACT = (NAMES[:3], NAMES[3:])
QUERIES = tuple(
    CandidateQuery(f"ASK {{ <x:{n}> ?p ?o }}", (), (one, two), 0.5)
    for n, one in enumerate(BY_FACT[0])
    for two in BY_FACT[1]
)
GENERATED = GeneratedQueries(QUERIES, len(QUERIES))
LINKED = LinkingResult(
    (),
    tuple(
        LinkedRelation(
            fact, tuple(RankedPredicate(iri(n), n.replace(" ", "_"), "out", 0.5) for n in "ab")
        )
        for fact in FACTS
    ),
)
CONTEXT = Context((Turn("Who directed Dune?", ("Denis Villeneuve",)),))
ANSWER = Answer("list", (Value(Literal("a"), 'a "b"'), Value(Literal("b"), "<b>")))


FAST = Settings()
FOLDERS = {path.stem: path.parent.name for path in shipped_folder().glob("*/*.md")}


@dataclass(frozen=True)
class Case:
    """One reply class as its agent asks for it."""

    prompt: str
    work: Callable[[Run], Any]
    valid: tuple[Mapping[str, Any], ...]
    offered: Callable[[Any], bool] = lambda reply: True
    """Whether every choice of a reply is among what was offered; written without the code under test."""
    settings: Settings = FAST
    before: Mapping[str, Any] = ()  # type: ignore[assignment]
    """What the agent is told before this reply."""

    @property
    def of(self) -> System:
        """The system whose prompt it is; what links for several of them is Chatty-KG's here."""
        return (
            load_system(FOLDERS[self.prompt]) if FOLDERS[self.prompt] in list_systems() else CHATTY
        )


ASKED = "Who starred in Dune and in Arrival?"
RELATIONS = Relations(
    "Dune", (Relation("director", "out", (iri("d"),)), Relation("sequel of", "in", ()))
)
FILLED = FilledTriples(
    "list", triples=(("Dune", "director", "Denis"), ("Dune", "director", 'say "hi"'))
)
SOLVED = (SolvedHop("Dune", "director", "Denis"),)
MENTIONS, PART = (
    Mentions(ASKED, (Mention("Dune", CANDIDATES),)),
    Part("org:Film 4", ("Film",), ("Story",)),
)
TRIPLETS = (
    triads.Triplet("Dune", "directed by", "?person"),
    triads.Triplet("?person", "born in", "?city"),
)
AROUND = tuple(
    triads.Relation(iri(f"r{n}"), name, "out" if n % 2 else "in") for n, name in enumerate(NAMES)
)
IRIS = [str(candidate.iri) for candidate in CANDIDATES]
AROUND_IRIS = [str(relation.iri) for relation in AROUND]
KEPT = tuple(triads.Filled(query, ("Dune",), query.sparql, ("Denis",), 1) for query in QUERIES)
SLOTS = {"Dune", "directed by", "born in"}
SOURCES = (
    Source("passages", "Dune", "It is a film."),
    Source("sql", "SELECT 1", "", ("1",), (("1",),)),
)
CHOSEN = {
    "tool_selector": (*RAGONITE_TOOLS["none"], Finish),
    "tool_selector_sparql": (Sparql, Finish),
}
"""The tools of RAGonite, by prompt."""


def _copied(reply: Any) -> bool:
    names = [" ".join(name.split()).casefold() for name in reply.entities]
    apart = not any(one != other and one in other for one in names for other in names)
    return bool(names) and apart and all(name and name in ASKED.casefold() for name in names)


def _among(reply: Any) -> bool:
    names = {" ".join(name.split()).casefold() for name in reply.answers}
    return (reply.sufficient == "yes") == bool(names) and names <= {"dune", "denis", 'say "hi"'}


def _goes_on(reply: Any) -> bool:
    question = " ".join(reply.question.split()).casefold()
    return "[denis]" in question and "[dune]" not in question


def _vertex(reply: Any) -> bool:
    if reply.number == 0:
        return not reply.label.strip()
    label = LABELS[reply.number - 1] if 0 < reply.number <= len(LABELS) else None
    return label is not None and label.casefold() == reply.label.strip().casefold()


def _vertices(reply: Any) -> bool:
    if len(reply.numbers) != len(reply.labels):
        return False
    for number, label in zip(reply.numbers, reply.labels, strict=True):
        if not 0 < number <= len(LABELS):
            return False
        if LABELS[number - 1].casefold() != label.strip().casefold():
            return False
    return True


def _whole(reply: Any) -> bool:
    return all(part.strip() for t in reply.triples for part in (t.subject, t.predicate, t.object))


def _triples(reply: Any) -> bool:
    ends = [end.strip() for triple in reply.triples for end in (triple.subject, triple.object)]
    unknowns = any(end.startswith("?") for end in ends)
    return _whole(reply) and unknowns and any(end and not end.startswith("?") for end in ends)


def _by_triple(reply: Any) -> bool:
    lists = reply.predicates
    return len(lists) == 2 and all(
        not said or set(said) & set(known) for said, known in zip(lists, BY_FACT, strict=True)
    )


def _slots_only(reply: Any) -> bool:
    """A query for one thing, whose every name is one of the triplets', read by rdflib itself."""
    named = {" ".join(name.split()).casefold() for name in re.findall(r"<([^<>]*)>", reply.sparql)}
    numbered = {name: f"<urn:{n}>" for n, name in enumerate(sorted(named))}
    bare = re.sub(
        r"<([^<>]*)>", lambda name: numbered[" ".join(name[1].split()).casefold()], reply.sparql
    )
    read = prepareQuery(bare).algebra
    one = read.name == "AskQuery" or len(read.PV) == 1
    return (
        one
        and named == {name.casefold() for name in SLOTS}
        and ":" not in re.sub("<[^<>]*>", "", bare)
    )


def _whole_triplets(reply: Any) -> bool:
    ends = [end.strip() for parts in reply.triplets for end in (parts[0], parts[2])]
    variables = all(
        re.fullmatch(r"\?[A-Za-z_]\w*", end, re.ASCII) for end in ends if end.startswith("?")
    )
    whole = all(
        "".join(parts[3:]).strip() == "" and all(map(str.strip, parts)) for parts in reply.triplets
    )
    return variables and whole and any(not end.startswith("?") for end in ends)


def _numbers(least: int, most: int, options: int) -> Callable[[Any], bool]:
    def among(reply: Any) -> bool:
        chosen = {*reply.numbers} & {*range(1, options + 1)}
        return len(chosen) == len(reply.numbers) and least <= len(chosen) <= most

    return among


def uris(*chosen: str) -> dict[str, Any]:
    return {"uris": [*chosen]}


def _uris(least: int, most: int, options: Sequence[str]) -> Callable[[Any], bool]:
    def among(reply: Any) -> bool:
        chosen = {uri.strip().removeprefix("<").removesuffix(">") for uri in reply.uris}
        is_offered = chosen <= {*options} and len(chosen) == len(reply.uris)
        return is_offered and least <= len(chosen) <= most

    return among


WAYS = {
    "eval_local": {"PRODUCE", "REMOTE", "LOCAL"},
    "local": {"LOCAL", "EVAL_LOCAL"},
    "remote": {"REMOTE", "EVAL_REMOTE"},
    "eval_remote": {"UPDATE", "REMOTE", "EVAL_LOCAL"},
    "update": {"EVAL_LOCAL"},
}
DECISIONS: Mapping[Any, Any] = {
    "EVAL_LOCAL": tuple(judges(way) for way in sorted(WAYS["eval_local"])),
    "LOCAL": (
        goes("LOCAL", tool("get_node", node="orgx:dune"), tool("get_edge", predicate="x")),
        goes("EVAL_LOCAL", tool("query_local", sparql="ASK { }")),
    ),
    "REMOTE": (
        goes("REMOTE", search(), tool("sparql_query", sparql="ASK { }")),
        goes(
            "EVAL_REMOTE",
            tool("explore_entity_neighbors", entity="a", predicate="", limit=20),
            tool("build_local_graph", entity="a", predicates=["b"]),
        ),
    ),
    "EVAL_REMOTE": tuple(judges(way) for way in sorted(WAYS["eval_remote"])),
    "UPDATE": (FETCHED, goes("EVAL_LOCAL", tool("fetch_node", node="a"))),
}
"""Valid replies of each state."""
POSITION = Position(
    "Who directed Dune?",
    local=LocalGraph()
    .with_triples([], [(iri("dune"), iri("director"), iri("denis"))])
    .with_names([(iri("dune"), "Dune")]),
    visits=(Visit("EVAL_LOCAL", "so", "REMOTE"),),
)


def _in_machine(state: str, reply: Any) -> bool:
    """Whether the next state is one that this one leads to, and every tool one that it has."""
    mine = {action["tool"] for valid in DECISIONS[state] for action in valid.get("actions", ())}
    return reply.next in WAYS[state.lower()] and all(
        a.tool in mine for a in getattr(reply, "actions", ())
    )


def _cited(reply: Any) -> bool:
    """Whether every number is that of a source, and a truth value one."""
    numbers = [number for value in reply.values for number in value.sources]
    numbers += [int(number) for number in re.findall(r"\[([0-9]{1,6})\]", reply.answer)]
    said = {value.value.strip().lower() for value in reply.values}
    truth = reply.kind != "boolean" or (said <= {"true", "false"} and len(reply.values) < 2)
    return truth and all(value.sources for value in reply.values) and {*numbers} <= {1, 2}


def _selects(prompt: str) -> Callable[[Run], Any]:
    """One turn of RAGonite's loop, with the tools that it is offered there."""
    shown = {"question": ASKED, "earlier": [], "schema": "", "tools": []}
    return lambda run: act(f"ragonite/{prompt}", shown, CHOSEN[prompt], run, limit=1)


CASES = {
    case.prompt: case
    for case in (
        Case(
            "classifier",
            lambda run: chat.classify_question("Who was Ada, and when was he born?", CONTEXT, run),
            ({"reason": "he", "label": "dependent"}, {"reason": "", "label": "self-contained"}),
            lambda reply: reply.label in ("dependent", "self-contained"),
        ),
        Case(
            "classifier_published",
            lambda run: chat.classify_question("Who was Ada, and when was he born?", CONTEXT, run),
            ({"label": "dependent"}, {"label": "self-contained"}),
            lambda reply: reply.label in ("dependent", "self-contained"),
            settings=ChattySettings(classifies_with_reason=False),
        ),
        Case(
            "rephraser",
            lambda run: chat.rephrase_question("When was he born?", CONTEXT, run),
            ({"question": "When was Denis Villeneuve born?"},),
            lambda reply: bool(reply.question.strip()),
        ),
        Case(
            "translator",
            lambda run: chat.translate_question(Question("Wer ist der Regisseur von Dune?"), run),
            ({"question": "Who directed Dune?"},),
            lambda reply: bool(reply.question.strip()),
        ),
        Case(
            "answer_writer",
            lambda run: chat.write_answer(ANSWER, "Who?", run),
            ({"sentence": 'It is a "b" and <b>.'},),
            lambda reply: all(value.label in reply.sentence.casefold() for value in ANSWER.values),
        ),
        Case(
            "qir",
            lambda run: qirs.extract_qir("Who directed Arrival?", run),
            (
                qir("Arrival | directed by | ?person"),
                qir("Dune | by | ?x", "?x | born in | ?y", target="?y"),
                qir("?x | made in | ?year", beyond=["the oldest: an order by ?year"]),
            ),
            lambda reply: _triples(reply) or (any(map(str.strip, reply.beyond)) and _whole(reply)),
        ),
        Case(
            "qir_published",
            lambda run: qirs.extract_qir("Who directed Arrival?", run),
            (published(qir("Arrival | directed by | ?person")),),
            _triples,
            PAPER,
        ),
        Case(
            "model_alone",
            lambda run: chat.ask_model_alone("Who directed it?", Context(), run),
            ({"answers": ["Denis Villeneuve"]}, {"answers": []}),
            lambda reply: True,
        ),
        Case(
            "vertex_selection",
            lambda run: linking.select_vertex(RETRIEVED, "Who?", Context(), run),
            (vertex(0, ""), *(vertex(n, label) for n, label in enumerate(LABELS, 1))),
            _vertex,
        ),
        Case(
            "vertex_selection_several",
            lambda run: linking.select_vertex(SEVERAL, "Who?", Context(), run),
            (
                {"reason": "", "numbers": [], "labels": []},
                {"reason": "both", "numbers": [1, 3], "labels": [LABELS[0], LABELS[2]]},
            ),
            _vertices,
        ),
        Case(
            "vertex_selection_labels",
            lambda run: linking.select_vertex(RETRIEVED, "Who?", Context(), run),
            tuple({"label": label} for label in LABELS if label != "Dune"),
            lambda reply: reply.label in LABELS,
            PAPER,
        ),
        Case(
            "vertex_selection_names",
            lambda run: linking.select_vertex(HOMONYM, "Who?", Context(), run),
            ({"name": "v3"}, {"name": "v4"}),
            lambda reply: reply.name in ("v3", "v4"),
            PAPER,
            {"vertex_selection_labels": {"label": "Dune"}},
        ),
        Case(
            "predicate_selection",
            lambda run: predicate_selection.select_predicates(GENERATED, "Who?", LINKED, run),
            (predicates(["director"], []), predicates(list(BY_FACT[0]), [NAMES[4], "other"])),
            _by_triple,
        ),
        Case(
            "predicate_selection_published",
            lambda run: predicate_selection.select_predicates(GENERATED, "Who?", LINKED, run),
            tuple(
                {"reasoning": "", "predicates": said} for said in (["director"], [*NAMES, "other"])
            ),
            lambda reply: bool(set(reply.predicates) & set(NAMES)),
            PAPER,
        ),
        Case(
            "topic_entity",
            lambda run: question.find_topic_entities(ASKED, run),
            ({"entities": ["Dune", "Arrival"]}, {"entities": ["dune"]}),
            _copied,
        ),
        Case(
            "relation_filtering",
            lambda run: hop.filter_relation(RELATIONS, ASKED, run),
            tuple(filtering(name) for name in ("director", "~sequel of", "")),
            lambda reply: (
                " ".join(reply.relation.split()).casefold() in ("", *map(str, RELATIONS.found))
            ),
        ),
        Case(
            "answer_trying",
            lambda run: hop.try_answer(ASKED, (FILLED,), run),
            (trying("Denis", 'say "hi"'), trying()),
            _among,
        ),
        Case(
            "linguist",
            lambda run: question.simplify_as_linguist("round 1", ASKED, SOLVED, (), (FILLED,), run),
            (remark("When was [Denis] born?"),),
            _goes_on,
        ),
        Case(
            "own_knowledge",
            lambda run: hop.answer_from_own_knowledge(ASKED, "no way on", run),
            ({"answers": ["Timothée Chalamet"]}, {"answers": []}),
            # from memory: its answers are marked as not grounded
        ),
        Case(
            "mention_finder",
            lambda run: mentions.find_mentions("Who directed Dune?", Dialogue(), LABELS, run),
            (mention("Dune", classes=LABELS[:2]), mention(classes=["none of them"])),
            # names are looked up, and of the classes only those listed are taken
        ),
        Case(
            "drafter",
            lambda run: drafter.draft_query(MENTIONS, PART, run),
            (
                draft(assumptions=[{"taken": "a", "others": ["b"]}]),
                draft("", "table", "a", missing="x", more=["Film"]),
                draft("x", "one"),
            ),
            lambda reply: reply.asked in ("one", "list", "count", "yes or no", "table"),
        ),
        Case(
            "reviewer",
            lambda run: drafter.review_draft(
                "draft", MENTIONS, PART, Draft("ASK { }"), Executed("ASK { }"), run
            ),
            (FINE, revise("SELECT * { ?a ?b ?c }", "a"), NOT_HERE),
            lambda reply: (
                reply.verdict in ("fine", "revise", "not in this graph")
                and (reply.verdict == "revise") == bool(reply.sparql.strip())
            ),
        ),
        Case(
            "triplets",
            lambda run: generalist.extract_triplets(ASKED, (), run),
            (TWO_HOPS, triplets("Arrival | directed by | ?x")),
            _whole_triplets,
        ),
        Case(
            "template",
            lambda run: generalist.write_template(TRIPLETS, ASKED, (), run),
            (template(), template(TEMPLATE.replace("SELECT DISTINCT ?city WHERE", "ASK"))),
            _slots_only,
        ),
        Case(
            "answer_type",
            lambda run: generalist.classify_answer_type(ASKED, run),
            tuple({"type": name} for name in ("count", "select", "yes or no")),
            lambda reply: reply.type in ("count", "select", "yes or no"),
        ),
        Case(
            "answer_type_reasoned",
            lambda run: generalist.classify_answer_type(ASKED, run),
            tuple(
                {"reason": "it asks so", "type": f"<{name}>"}
                for name in ("count", "select", "yes or no")
            ),
            lambda reply: reply.type in ("<count>", "<select>", "<yes or no>"),
            settings=TriadSettings(answer_type_from="chain_of_thought"),
        ),
        Case(
            "entity_choice",
            lambda run: decision_maker.choose_entities(RETRIEVED, "Arrival", ASKED, (), run),
            (choice(), choice(12), choice(1, 3)),
            _numbers(0, 2, len(CANDIDATES)),
        ),
        Case(
            "relation_choice",
            lambda run: decision_maker.choose_relations(AROUND, TRIPLETS[0], ASKED, (), run),
            (choice(), choice(5), choice(2, 1)),
            _numbers(0, 2, len(AROUND)),
        ),
        Case(
            "query_choice",
            lambda run: decision_maker.choose_query(triads.Queries("", (), KEPT), ASKED, (), run),
            (choice(1), choice(6)),
            _numbers(1, 1, len(KEPT)),
            settings=TriadSettings(may_refuse_queries=False),
        ),
        Case(
            "query_choice_judgement",
            lambda run: decision_maker.choose_query(triads.Queries("", (), KEPT), ASKED, (), run),
            (choice(), choice(6)),
            _numbers(0, 1, len(KEPT)),
        ),
        Case(
            "entity_choice_published",
            lambda run: decision_maker.choose_entities(RETRIEVED, "Arrival", ASKED, (), run),
            (uris(*IRIS[:2]), uris(f"<{IRIS[2]}>", IRIS[0])),
            _uris(2, 2, IRIS),
            settings=TriadSettings(entity_options="uris", exact_k=True),
        ),
        Case(
            "relation_choice_published",
            lambda run: decision_maker.choose_relations(AROUND, TRIPLETS[0], ASKED, (), run),
            (uris(), uris(AROUND_IRIS[1]), uris(AROUND_IRIS[0], AROUND_IRIS[1])),
            _uris(0, 2, AROUND_IRIS),
            settings=TriadSettings(relation_options="uris"),
        ),
        Case(
            "query_choice_published",
            lambda run: decision_maker.choose_query(triads.Queries("", (), KEPT), ASKED, (), run),
            tuple({"sparql": filled.query.sparql} for filled in KEPT[:2]),
            lambda reply: reply.sparql.split() in [str(filled).split() for filled in KEPT],
            settings=TriadSettings(query_options="sparql"),
        ),
        Case(
            "written_query",
            lambda run: generalist.write_query(TRIPLETS, (), ASKED, (), run),
            (template("SELECT ?x WHERE { ?x ?y ?z }"), template("ASK { }")),
            lambda reply: prepareQuery(reply.sparql).algebra.name in ("SelectQuery", "AskQuery"),
        ),
        Case(
            "own_knowledge_truth",
            lambda run: advisor.answer_from_own_knowledge(ASKED, "yes or no", "nothing found", run),
            ({"answer": "True"}, {"answer": "False"}),
            lambda reply: reply.answer in ("True", "False"),
        ),
        Case(
            "own_knowledge_fact",
            lambda run: advisor.answer_from_own_knowledge(ASKED, "select", "nothing found", run),
            ({"answer": "Timothée Chalamet"}, {"answer": ""}),
            # from memory: its answer is marked as not grounded
        ),
        *(
            Case(
                state.lower(),
                lambda run, state=state: DECIDERS[state](
                    "turn 2", replace(POSITION, state=state), run
                ),
                valid,
                lambda reply, state=state: _in_machine(state, reply),
            )
            for state, valid in DECISIONS.items()
        ),
        Case(
            "produce",
            lambda run: produce_answer(POSITION, run),
            (
                told(*PROVEN, ["orgx:nobody"], [], ["a", "b"]),
                told(kind="count", answers=()),
                told(kind="nothing", answers=(), missing="x", sentences=[]),
            ),
            # support is checked, and marked
            lambda reply: reply.kind in ("things", "count", "yes", "no", "nothing"),
        ),
        Case(
            "assessment",
            lambda run: assess_strategy("turn 2", POSITION, run),
            ({"strategy": "It searches."}, {"strategy": ""}),
        ),
        Case(
            "observation",
            lambda run: observe_strategy("turn 2", POSITION, "It searches.", run),
            ({"judgement": "", "advice": "Fetch."},),
        ),
        *(
            Case(
                prompt,
                _selects(prompt),
                valid,
                lambda reply, names=names: (
                    reply.action.tool in names
                ),  # SQL is judged by SQLite, as it runs
            )
            for prompt, valid, names in (
                ("tool_selector", (sql(), passages(), FINISH), ("sql", "passages", "finish")),
                (
                    "tool_selector_sparql",
                    (use("sparql", query="ASK { }"), FINISH),
                    ("sparql", "finish"),
                ),
            )
        ),
        Case(
            "answerer",
            lambda run: ragonite.write_answer(ASKED, Dialogue(), SOURCES, run),
            (
                cited(("Dune", 1), ("1", 2), text="Dune [1], [2]."),
                cited(("true", 2), kind="boolean"),
                cited(text="It is not said."),
            ),
            _cited,
        ),
    )
}


@cache
def door(name: str) -> tuple[type[BaseModel], tuple[Check[Any], ...]]:
    """The reply class and the checks as the agent itself gives them to the door."""
    seen: list[Any] = []
    real = check_reply

    def spy(text: str, finish_reason: str, reply: Any, checks: Any) -> Any:
        seen.append((reply, tuple(checks)))
        return real(text, finish_reason, reply, checks)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(structured, "check_reply", spy)
        play(CASES[name], json.dumps(CASES[name].valid[0]))
    return seen[-1]  # type: ignore[no-any-return]


def play(case: Case, text: str) -> Any:
    """What the agent makes of one reply, in one attempt."""
    replies = {**dict(case.before), case.prompt: text}
    return alone(
        case.work, replies, kg=KG, settings=case.settings.with_changes(theta=1), of=case.of
    )


OFFERED = {
    "entity_choice": CANDIDATES,
    "relation_choice": AROUND,
    "query_choice": KEPT,
    "query_choice_judgement": KEPT,
}


def test_every_reply_class_of_the_systems_is_tried() -> None:
    modules = (
        chat,
        predicate_selection,
        qirs,
        linking,
        hop,
        question,
        mentions,
        drafter,
        advisor,
        decision_maker,
        generalist,
        states,
        ragonite,
    )
    there = {
        one
        for module in modules
        for name, one in vars(module).items()
        if name.endswith("Reply") and one.__module__ == module.__name__
    }
    there |= {acting._action_reply(tools) for tools in CHOSEN.values()}
    parts = {qirs.TripleReply, states.SentenceReply, ragonite.ValueReply, drafter.AssumptionReply}
    assert {door(name)[0] for name in CASES} == there - parts
    assert len(CASES) * (MUTATED + FREE) >= LEAST


@pytest.mark.parametrize("name", CASES)
def test_valid_replies_are_accepted(name: str) -> None:
    for valid in CASES[name].valid:
        reply, results = check_reply(json.dumps(valid), "stop", *door(name))
        assert reply is not None
        assert not [result.problem for result in results if result.problem]


@pytest.mark.parametrize("name", CASES)
def test_no_spoilt_reply_is_accepted_wrongly(name: str) -> None:
    valid = CASES[name].valid
    tried = outcomes(
        MUTATED,
        st.integers(0, 2**60),
        lambda number: accepted(name, spoilt(valid, random.Random(number))),
    )
    assert 0 < sum(tried) < len(tried), "some do no harm, some do"


@pytest.mark.parametrize("name", CASES)
def test_no_free_text_is_accepted_wrongly(name: str) -> None:
    schema_words = sorted(
        json.dumps(word) for word in re.findall(r"\w+", json.dumps(CASES[name].valid))
    )[:40]
    pieces = st.sampled_from(
        [*'{}[]:,"\\ \n', *schema_words, "true", "null", "1", "-0", "1e999", *HALVES, *texts(200)]
    )
    free = st.text(max_size=200) | st.lists(pieces, max_size=60).map("".join)
    outcomes(FREE, free, lambda text: accepted(name, text))


@pytest.mark.parametrize("name", CASES)
def test_an_agent_makes_nothing_of_a_reply_that_is_turned_away(name: str) -> None:
    case, taken = CASES[name], 0
    for number in range(PLAYED):
        text = spoilt(case.valid, random.Random(number), huge=False)
        reply, results = check_reply(text, "stop", *door(name))
        wanted = reply is not None and not any(result.problem for result in results)
        try:
            made, _, _ = play(case, text)
        except InvalidReplyError as error:
            assert not wanted
            assert error.attempts[-1].reply == text
            continue
        on = (
            "answer_writer",
            "qir",
            "qir_published",
            "vertex_selection_labels",
            "vertex_selection_names",
            "predicate_selection_published",
            "linguist",
            "topic_entity",
        )
        assert wanted or name in on, "which go on without it, or with the last of theta"
        taken += 1
        if name == "answer_writer" and not wanted:
            assert made == ANSWER
        if name.startswith("vertex"):
            assert made.vertex is None or made.vertex in CANDIDATES
        if name == "relation_filtering":
            assert made.relation is None or made.relation in RELATIONS.found
        if name == "topic_entity":
            assert {*made.entities} <= {"Dune", "Arrival"}
        offered = OFFERED.get(name.removesuffix("_published"))
        if offered is not None:
            assert {*made.chosen} <= {*offered}
        if name in ("own_knowledge", "own_knowledge_truth", "own_knowledge_fact"):
            assert made.ungrounded == bool(made.values)
        if name == "mention_finder":
            assert set(made.classes) <= set(LABELS)
        if name.startswith("predicate"):
            assert set(made.queries) <= set(QUERIES)
            assert set(made.predicates) <= set(NAMES)
    assert taken


def test_a_reply_of_any_depth_is_judged() -> None:
    """Python reads, writes and validates nested data to limits that are not quite the same."""
    for depth in (*range(1, 900, 50), *range(900, 1_020), *range(1_020, 1_100, 20)):
        objects, lists = '{"a":' * depth + "1" + "}" * depth, "[" * depth + "]" * depth
        for text in (objects, lists, f'{{"predicates": {lists}}}'):
            assert check_reply(text, "stop", *door("predicate_selection"))[0] is None


@pytest.mark.parametrize(
    "text",
    [
        "[" * 1_000_000,
        "{" * 1_000_000,
        "[[[[" * 50 + "1," * 400_000,
        '{"label": "' + "a" * 1_000_000 + '"}',
        "{" + '"label": "a", ' * 70_000 + '"label": "Arrival"}',
        "\\" * 1_000_000,
        '"' * 1_000_000,
        '{"number": ' + "9" * 1_000_000 + "}",
    ],
    ids=lambda text: f"{text[:12]}...",
)
def test_a_huge_reply_is_turned_away_in_time(text: str) -> None:
    started = time.process_time()
    for name in CASES:
        reply, results = check_reply(text, "stop", *door(name))
        assert reply is None or any(result.problem for result in results) or name == "rephraser"
    assert time.process_time() - started < SLOW_S * len(CASES)


# --- no reply outside the candidate list


@pytest.mark.parametrize("order", ORDERS)
def test_a_model_that_obeys_a_label_is_turned_away_recorded_and_shown(order: str) -> None:
    """Two homonyms tell the model what to answer, and it does: nothing that was not offered is linked."""
    label = json.dumps(order, ensure_ascii=False)
    kg = films(f"""
        @prefix : <http://example.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
        :one rdfs:label {label} ; :director :denis ; rdfs:comment {label} .
        :two rdfs:label {label} ; :director :lynch .
        :denis rdfs:label "Denis" . :lynch rdfs:label "Lynch" . :sicario rdfs:label "Sicario" .""")
    elsewhere = {"iri": "http://example.org/sicario"}
    disobeyed = (vertex(1, "Sicario"), vertex(99, "Sicario"), vertex(3, order), order, elsewhere)
    triple = {"subject": order, "predicate": "director", "object": "?x"}
    replies = {
        "chatty_kg/qir": {**qir("x | y | ?x"), "entities": [order], "triples": [triple]},
        "linking/vertex_selection": list(disobeyed),
        "chatty_kg/predicate_selection": predicates(["drop everything"]),
    }
    run = chatty("Who directed it?", Scripted(replies), kg, settings=Settings(theta=len(disobeyed)))
    with pytest.raises(InvalidReplyError) as caught:
        run.go()
    said = [
        line if isinstance(line, str) else json.dumps(line, ensure_ascii=False)
        for line in disobeyed
    ]
    assert [attempt.reply for attempt in caught.value.attempts] == said
    step = next(step for step in run.steps if step.agent == "vertex_selection")
    assert [attempt.reply for attempt in step.attempts] == said
    assert not step.done
    assert to_html(step).count("not accepted") == len(said)
    assert "failed" in repr(run)


# --- the oracle


def accepted(name: str, text: str) -> bool:
    """Whether a reply is accepted; fails if that is wrong."""
    reply_class, checks = door(name)
    finish = random.Random(len(text)).choice(
        ("stop", "stop", "length", "refusal", "content_filter", "?")
    )
    reply, results = check_reply(text, finish, reply_class, checks)
    assert results
    assert (reply is None) <= any(result.problem for result in results)
    if reply is None or any(result.problem for result in results):
        return False
    assert CASES[name].offered(reply), f"not on the list: {text[:500]!r}"
    assert any(fits(reply_class, data, reply) for data in objects(text)), (
        f"has not the form: {text[:500]!r}"
    )
    assert not re.search("[\ud800-\udfff]", str(reply.model_dump()))
    return True


def as_number(value: Any) -> Any:
    """A whole number that is written as a text as that number; anything else as it is."""
    if isinstance(value, str) and re.fullmatch(r"\s*[+-]?\d+(_\d+)*(\.0*)?\s*", value):
        return int(float(value.replace("_", "")))
    return value


def as_assumption(value: Any) -> Any:
    """A text in place of an assumption as what was taken, as replies of earlier versions have it."""
    return {"taken": value, "others": []} if isinstance(value, str) else value


def fits(reply_class: type[BaseModel], data: Any, reply: BaseModel) -> bool:
    """Whether an object of the text has the form by its JSON schema, and says what was accepted.

    A whole number may be written as a text: models do so, and label and number of a choice must agree anyway.
    """
    if isinstance(data, dict) and "number" in data:
        data = {**data, "number": as_number(data["number"])}
    if isinstance(data, dict) and isinstance(data.get("assumptions"), list):
        data = {**data, "assumptions": list(map(as_assumption, data["assumptions"]))}
    if isinstance(data, dict) and isinstance(data.get("numbers"), list):
        data = {**data, "numbers": list(map(as_number, data["numbers"]))}
    return data == reply.model_dump() and not [
        *Draft202012Validator(reply_class.model_json_schema()).iter_errors(data)
    ]


def objects(text: str) -> Iterator[Any]:
    """Every object that begins anywhere in a text and gives no name twice.

    Read as well are the mistakes of models that are among the mutations: a comma before a closing bracket,
    comments, Python's words and quotes, and control characters in texts.
    """

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({name for name, _ in pairs}) < len(pairs):
            raise ValueError("a name is given twice")
        return dict(pairs)

    decoder = json.JSONDecoder(object_pairs_hook=unique, strict=False)
    odd = r'("(?:[^"\\]|\\.)*")|// why\n|,(?=\s*[}\]])'
    mended = re.sub(odd, lambda found: found[1] or "", text)
    for old, new in (("None", "null"), ("True", "true"), ("False", "false")):
        mended = re.sub(rf"(?<=[ \[:]){old}\b", new, mended)
    for form in dict.fromkeys((text, mended)):
        for found in re.finditer("{", form):
            with suppress(ValueError, RecursionError):
                yield decoder.raw_decode(form, found.start())[0]
    for old, new in (("None", "null"), ("True", "true"), ("False", "false")):
        mended = re.sub(rf"(?<=[ \[:]){new}\b", old, mended)
    for found in list(re.finditer("{'", mended))[:9]:
        for end in [end.end() for end in re.finditer("}", mended)][-60:]:
            with suppress(ValueError, RecursionError, SyntaxError, MemoryError):
                yield ast.literal_eval(mended[found.start() : end])


# --- how replies are spoilt

JUNK: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 99, 1.0, 1.5, -0.0, 10**30, 10**400, float("nan"), float("inf"), "", "1",
    " 1 ", "true", "null", [], {}, [[]], [None], [1], {"": ""}, {"label": "Arrival"}, ["director"],
    "director", "Arrival",
)  # fmt: skip


def spoilt(
    valid: tuple[Mapping[str, Any], ...], chance: random.Random, *, huge: bool = True
) -> str:
    """A valid reply with something done to it, or its text with something done to that."""
    data: Any = json.loads(json.dumps(chance.choice(valid)))
    for _ in range(chance.choice((0, 1, 1, 1, 2, 3))):
        data = chance.choice(DATA_MUTATIONS)(data, chance)
    text = json.dumps(data, ensure_ascii=chance.random() < 0.5)
    for _ in range(chance.choice((0, 0, 1, 1, 2))):
        text = chance.choice(TEXT_MUTATIONS)(text, valid, chance)
    return text + " " * 1_000_000 if huge and chance.random() < 0.002 else text


def _place(data: Any, chance: random.Random) -> tuple[Any, Any]:
    """A container inside the data, and a key of it."""
    while True:
        keys = (
            list(data)
            if isinstance(data, dict)
            else range(len(data))
            if isinstance(data, list)
            else ()
        )
        if not keys:
            return None, None
        key = chance.choice(list(keys))
        if not (isinstance(data[key], dict | list) and data[key]) or chance.random() < 0.4:
            return data, key
        data = data[key]


def _at(change: Callable[[Any, random.Random], Any]) -> Callable[[Any, random.Random], Any]:
    """Change a value somewhere inside."""

    def mutate(data: Any, chance: random.Random) -> Any:
        place, key = _place(data, chance)
        if place is not None:
            place[key] = change(place[key], chance)
        return data

    return mutate


def _drop(data: Any, chance: random.Random) -> Any:
    place, key = _place(data, chance)
    if place is not None:
        del place[key]
    return data


def _rename(data: Any, chance: random.Random) -> Any:
    if isinstance(data, dict) and data:
        key = chance.choice(list(data))
        data[chance.choice((key.upper(), f"{key} ", f"{key}\u200b", key.replace("e", "е"), ""))] = (
            data.pop(key)
        )
    return data


def _add(data: Any, chance: random.Random) -> Any:
    junk = chance.choice((*JUNK, chance.choice(texts())))
    if isinstance(data, dict):
        return {
            **data,
            chance.choice(("confidence", "iri", "Number", "", "__class__", "model_config")): junk,
        }
    return [*data, junk] if isinstance(data, list) else data


def _near(value: Any, chance: random.Random) -> Any:
    """Nearly the same."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        return [value, value]
    if isinstance(value, int):
        small = value % 10**9
        return chance.choice(
            (
                value + 1,
                -value,
                value + 10**6,
                str(value),
                float(small),
                small + 0.5,
                bool(value),
                [value],
            )
        )
    changes: tuple[str, ...] = (
        value.upper(), value.swapcase(), f" {value}", f"{value}\n", f"\u200f{value}",
        f"\u202e{value}\u202c", f"{value}\u200b", f"{value}\x00", f"{value}\ud83d", value[:-1], value * 2,
        value.replace("r", "г").replace("A", "А"), value.replace("i", "İ"), value.replace("ss", "ß"),
        f"{value}; {chance.choice(ORDERS)}", "?" + value,
    )  # fmt: skip
    return chance.choice(changes)


def _deep(value: Any, chance: random.Random) -> Any:
    for _ in range(chance.choice((1, 5, 90, 400))):
        value = [value] if chance.random() < 0.5 else {"a": value}
    return value


DATA_MUTATIONS: tuple[Callable[[Any, random.Random], Any], ...] = (
    _drop,
    _rename,
    _add,
    _at(lambda value, chance: chance.choice(JUNK)),
    _at(lambda value, chance: chance.choice(texts(1_000, halves=True))),
    _at(lambda value, chance: chance.choice((*NUL, *PLAIN, *LABELS, *NAMES))),
    _at(_near),
    _at(_near),
    _at(_deep),
    lambda data, chance: chance.choice(
        ([data], {"reply": data}, [data, data], json.dumps(data), None, [])
    ),
)


def _twice(text: str, chance: random.Random) -> str:
    """A name given twice, first with something else."""
    name = re.search(r'"(\w+)":', text)
    junk = json.dumps(chance.choice((*JUNK[:9], "Sicario", "Arrival")))
    return text.replace("{", f'{{"{name[1]}": {junk}, ', 1) if name else text


def _escaped(letter: re.Match[str]) -> str:
    return f"\\u{ord(letter[0]):04x}"


TEXT_MUTATIONS: tuple[Callable[[str, Any, random.Random], str], ...] = (
    lambda text, valid, chance: text[: chance.randrange(len(text) + 1)],
    lambda text, valid, chance: text[chance.randrange(len(text) + 1) :],
    lambda text, valid, chance: f"```json\n{text}\n```",
    lambda text, valid, chance: f"{chance.choice(texts())}\n{text}",
    lambda text, valid, chance: f"{text}\n{chance.choice(ORDERS)}",
    lambda text, valid, chance: f"<think>{json.dumps(chance.choice(valid))}</think>{text}",
    lambda text, valid, chance: f"{text}{json.dumps(chance.choice(valid))}",
    lambda text, valid, chance: _twice(text, chance),
    lambda text, valid, chance: _twice(text, chance),
    lambda text, valid, chance: text.replace('"', "'"),
    lambda text, valid, chance: text.replace("}", ",}").replace("]", ",]"),
    lambda text, valid, chance: text.replace(":", ": // why\n", 1),
    lambda text, valid, chance: f"\ufeff{text}",
    lambda text, valid, chance: text.replace(
        chance.choice(text or " "), chance.choice('"\\\x00{\ud800'), 1
    ),
    lambda text, valid, chance: re.sub("[a-z]", _escaped, text, count=chance.randint(0, 9)),
    lambda text, valid, chance: "{" * chance.choice((1, 50, 300)) + text,
    lambda text, valid, chance: "[" * chance.choice((1, 90, 2_000)) + text,
    lambda text, valid, chance: text + "}" * chance.choice((1, 50)),
    lambda text, valid, chance: json.dumps(text),
    lambda text, valid, chance: text.replace("null", "None").replace("true", "True"),
)
