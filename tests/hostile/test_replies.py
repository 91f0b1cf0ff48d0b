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
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from types import SimpleNamespace
from typing import Any

import pytest
from debate import filtering
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from machine import goes, search
from machine import use as tool
from pydantic import BaseModel
from ragonite import FINISH, passages, sql
from small import CHATTY, PAPER, alone, chatty, films, iri, predicates, qir, vertex
from surveying import FINE, draft
from triads import template, triplets

from hostile.corpus import HALVES, NUL, ORDERS, PLAIN, outcomes, texts
from kgwb.errors import InvalidReplyError
from kgwb.kg.queries import CandidateQuery
from kgwb.llm import Scripted
from kgwb.run import Run, System, linking
from kgwb.run import ask as structured
from kgwb.run.answers import (
    Candidate,
    Context,
    RetrievedCandidates,
)
from kgwb.run.ask import Check, act, check_reply
from kgwb.run.prompts import shipped_folder
from kgwb.run.systems import list_systems, load_system
from kgwb.settings import Settings
from kgwb.show.comparison import to_html
from kgwb.systems.chatty_kg import predicate_selection
from kgwb.systems.chatty_kg import qir as qirs
from kgwb.systems.chatty_kg.records import (
    Fact,
    GeneratedQueries,
    LinkedRelation,
    LinkingResult,
    RankedPredicate,
)
from kgwb.systems.dog import hop
from kgwb.systems.dog.records import Relation, Relations
from kgwb.systems.ragonite.tool_selector import TOOLS_BY_ABLATION as RAGONITE_TOOLS
from kgwb.systems.ragonite.tool_selector import Finish
from kgwb.systems.robodata.records import Position, Visit
from kgwb.systems.robodata.states import DECIDERS
from kgwb.systems.surveyor import drafter
from kgwb.systems.surveyor.records import Draft, Executed, Mention, Mentions, Part
from kgwb.systems.triad import advisor, decision_maker, generalist
from kgwb.systems.triad import records as triads
from kgwb.systems.triad.settings import TriadSettings

MUTATED, FREE, PLAYED = 500, 200, 60
"""Replies tried of each agent: spoilt ones, free texts, and spoilt ones through the whole agent."""
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
    CandidateQuery(f"ASK {{ <x:{n}> ?p ?o }}", (), names, 0.5)
    for n, names in enumerate(product(*BY_FACT))
)
RANKED = tuple(RankedPredicate(iri(name), name, "out", 0.5) for name in "ab")
LINKED = LinkingResult((), tuple(LinkedRelation(fact, RANKED) for fact in FACTS))
ASKED = "Who starred in Dune and in Arrival?"
RELATIONS = Relations(
    "Dune", (Relation("director", "out", (iri("d"),)), Relation("sequel of", "in", ()))
)
MENTIONS = Mentions(ASKED, (Mention("Dune", CANDIDATES),))
PART = Part("org:Film 4", ("Film",), ("Story",))
TOOLS = (*RAGONITE_TOOLS["none"], Finish)
POSITION = Position(
    "Who directed Dune?", state="REMOTE", visits=(Visit("EVAL_LOCAL", "so", "REMOTE"),)
)
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
    chosen: Callable[[Any], Iterable[Any]] = lambda made: ()
    """What the agent has taken of what was offered."""
    of_offered: Collection[Any] = ()
    before: Mapping[str, Any] = field(default_factory=dict)
    """What the agent is told before this reply."""

    @property
    def of(self) -> System:
        """The system whose prompt it is; what links for several of them is Chatty-KG's here."""
        folder = FOLDERS[self.prompt]
        return load_system(folder) if folder in list_systems() else CHATTY


def _vertex(reply: Any) -> bool:
    if reply.number == 0:
        return not reply.label.strip()
    return _vertices(SimpleNamespace(numbers=[reply.number], labels=[reply.label]))


def _vertices(reply: Any) -> bool:
    if len(reply.numbers) != len(reply.labels):
        return False
    for number, label in zip(reply.numbers, reply.labels, strict=True):
        if not 0 < number <= len(LABELS):
            return False
        if LABELS[number - 1].casefold() != label.strip().casefold():
            return False
    return True


def _triples(reply: Any) -> bool:
    parts = [(t.subject.strip(), t.predicate.strip(), t.object.strip()) for t in reply.triples]
    ends = [end for subject, _, object_ in parts for end in (subject, object_)]
    named = [end for end in ends if not end.startswith("?")]
    is_linked = 0 < len(named) < len(ends)
    return all(map(all, parts)) and (is_linked or any(map(str.strip, reply.beyond)))


def _by_triple(reply: Any) -> bool:
    lists = reply.predicates
    return len(lists) == 2 and all(
        not said or set(said) & set(known) for said, known in zip(lists, BY_FACT, strict=True)
    )


def _select_tool(run: Run) -> Any:
    """One turn of RAGonite's loop, with the tools that it is offered there."""
    shown = {"question": ASKED, "earlier": [], "schema": "", "tools": []}
    return act("ragonite/tool_selector", shown, TOOLS, run, limit=1)


CASES = {
    case.prompt: case
    for case in (
        Case(
            "qir",
            lambda run: qirs.extract_qir("Who directed Arrival?", run),
            (
                qir("Arrival | directed by | ?person"),
                qir("Dune | by | ?x", "?x | born in | ?y", target="?y"),
                qir("?x | made in | ?year", beyond=["the oldest: an order by ?year"]),
            ),
            _triples,
        ),
        Case(
            "vertex_selection",
            lambda run: linking.select_vertex(RETRIEVED, "Who?", Context(), run),
            (vertex(0, ""), *(vertex(n, label) for n, label in enumerate(LABELS, 1))),
            _vertex,
            chosen=lambda made: [made.vertex],
            of_offered=(None, *CANDIDATES),
        ),
        Case(
            "vertex_selection_several",
            lambda run: linking.select_vertex(SEVERAL, "Who?", Context(), run),
            (
                {"reason": "", "numbers": [], "labels": []},
                {"reason": "both", "numbers": [1, 3], "labels": [LABELS[0], LABELS[2]]},
            ),
            _vertices,
            chosen=lambda made: [made.vertex],
            of_offered=(None, *CANDIDATES),
        ),
        Case(
            "vertex_selection_names",
            lambda run: linking.select_vertex(HOMONYM, "Who?", Context(), run),
            ({"name": "v3"}, {"name": "v4"}),
            lambda reply: reply.name in ("v3", "v4"),
            PAPER,
            chosen=lambda made: [made.vertex],
            of_offered=(None, *CANDIDATES),
            before={"vertex_selection_labels": {"label": "Dune"}},
        ),
        Case(
            "predicate_selection_published",
            lambda run: predicate_selection.select_predicates(
                GeneratedQueries(QUERIES, len(QUERIES)), "Who?", LINKED, run
            ),
            tuple(
                {"reasoning": "", "predicates": said} for said in (["director"], [*NAMES, "other"])
            ),
            lambda reply: bool(set(reply.predicates) & set(NAMES)),
            PAPER,
            chosen=lambda made: (*made.queries, *made.predicates),
            of_offered=(*QUERIES, *NAMES),
        ),
        Case(
            "predicate_selection",
            lambda run: predicate_selection.select_predicates(
                GeneratedQueries(QUERIES, len(QUERIES)), "Who?", LINKED, run
            ),
            (predicates(["director"], []), predicates(list(BY_FACT[0]), [NAMES[4], "other"])),
            _by_triple,
            chosen=lambda made: (*made.queries, *made.predicates),
            of_offered=(*QUERIES, *NAMES),
        ),
        Case(
            "relation_filtering",
            lambda run: hop.filter_relation(RELATIONS, ASKED, run),
            tuple(filtering(name) for name in ("director", "~sequel of", "")),
            lambda reply: (
                " ".join(reply.relation.split()).casefold() in ("", *map(str, RELATIONS.found))
            ),
            chosen=lambda made: [made.relation],
            of_offered=(None, *RELATIONS.found),
        ),
        Case(
            "drafter",
            lambda run: drafter.draft_query(MENTIONS, PART, run),
            (
                draft(assumptions=[{"taken": "a", "others": ["b"]}]),
                draft("", "table", "a", missing="x", more=["Film"]),
                draft("x", "one"),
            ),
        ),
        Case(
            "remote",
            lambda run: DECIDERS["REMOTE"]("turn 2", POSITION, run),
            (
                goes("REMOTE", search(), tool("sparql_query", sparql="ASK { }")),
                goes("EVAL_REMOTE", tool("build_local_graph", entity="a", predicates=["b"])),
            ),
            lambda reply: (
                reply.next in ("REMOTE", "EVAL_REMOTE")
                and {action.tool for action in reply.actions}
                <= {"search_entities", "sparql_query", "build_local_graph"}
            ),
        ),
        Case(
            "tool_selector",
            _select_tool,
            (sql(), passages(), FINISH),
            lambda reply: reply.action.tool in ("sql", "passages", "finish"),
        ),
    )
}
"""Every shape of a reply, and ways in which something is chosen of what was offered."""


GO_ON = {"qir", "vertex_selection_names", "predicate_selection_published"}
"""Whose agents go on without a valid reply, or with the last one."""


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
    settings = case.settings.with_changes(theta=1)
    replies = {**case.before, case.prompt: text}
    return alone(case.work, replies, kg=KG, settings=settings, of=case.of)[0]


@pytest.mark.parametrize("name", CASES)
def test_no_spoilt_reply_is_accepted_wrongly(name: str) -> None:
    valid = CASES[name].valid
    assert all(judged(name, json.dumps(reply)) for reply in valid)
    tried = outcomes(
        MUTATED,
        st.integers(0, 2**60),
        lambda number: accepted(name, spoilt(valid, random.Random(number))),
    )
    assert 0 < sum(tried) < len(tried), "some do no harm, some do"


TRIPLETS = (triads.Triplet("Dune", "directed by", "?person"),)
KEPT = tuple(triads.Filled(query, ("Dune",), query.sparql, ("Denis",), 1) for query in QUERIES)
BY_SPARQL = TriadSettings(query_options="sparql")


@pytest.mark.parametrize(
    ("prompt", "work", "wrong"),
    [
        (
            "reviewer",
            lambda run: drafter.review_draft(
                "draft", MENTIONS, PART, Draft("ASK { }"), Executed("ASK { }"), run
            ),
            {**FINE, "verdict": "revise"},
        ),
        (
            "own_knowledge_truth",
            lambda run: advisor.answer_from_own_knowledge(ASKED, "yes or no", "nothing", run),
            {"answer": "Maybe"},
        ),
        (
            "query_choice_published",
            lambda run: decision_maker.choose_query(triads.Queries("", (), KEPT), ASKED, (), run),
            {"sparql": "ASK { }"},
        ),
        (
            "triplets",
            lambda run: generalist.extract_triplets(ASKED, (), run),
            triplets("?x | by | ?y"),
        ),
        (
            "template",
            lambda run: generalist.write_template(TRIPLETS, ASKED, (), run),
            template("ASK { }"),
        ),
        (
            "written_query",
            lambda run: generalist.write_query(TRIPLETS, (), ASKED, (), run),
            template("DROP ALL"),
        ),
    ],
)
def test_what_an_agents_own_check_forbids_is_turned_away(
    prompt: str, work: Callable[[Run], Any], wrong: Mapping[str, Any]
) -> None:
    settings = BY_SPARQL if prompt == "query_choice_published" else FAST
    with pytest.raises(InvalidReplyError):
        play(Case(prompt, work, (), settings=settings), json.dumps(wrong))


@pytest.mark.parametrize("name", ["qir", "vertex_selection", "drafter", "tool_selector"])
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
        wanted = judged(name, text) is not None
        try:
            made = play(case, text)
        except InvalidReplyError as error:
            assert not wanted
            assert error.attempts[-1].reply == text
            continue
        assert wanted or name in GO_ON
        taken += 1
        assert all(each in case.of_offered for each in case.chosen(made))
    assert taken


def test_a_reply_of_any_depth_is_judged() -> None:
    """Python reads, writes and validates nested data to limits that are not quite the same."""
    for depth in (*range(1, 900, 50), *range(900, 1_020), *range(1_020, 1_100, 20)):
        objects, lists = '{"a":' * depth + "1" + "}" * depth, "[" * depth + "]" * depth
        for text in (objects, lists, f'{{"predicates": {lists}}}'):
            assert judged("predicate_selection", text) is None


@pytest.mark.parametrize(
    "text",
    [
        "[" * 1_000_000,
        "{" * 1_000_000,
        "[[[[" * 50 + "1," * 400_000,
        "{" + '"label": "a", ' * 70_000 + '"label": "Arrival"}',
        "\\" * 1_000_000,
        '"' * 1_000_000,
        '{"number": 1}' + "\n" * 300_000 + "x",
        '{"number": ' + "9" * 1_000_000 + "}",
    ],
    ids=lambda text: f"{text[:12]}...",
)
def test_a_huge_reply_is_turned_away_in_time(text: str) -> None:
    started = time.process_time()
    for name in ("qir", "vertex_selection", "tool_selector"):
        assert judged(name, text) is None
    assert time.process_time() - started < 3 * SLOW_S


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


def judged(name: str, text: str, finish_reason: str = "stop") -> BaseModel | None:
    """The reply that a text is taken for; None if it is turned away."""
    reply, results = check_reply(text, finish_reason, *door(name))
    assert results
    has_problem = any(result.problem for result in results)
    assert reply is not None or has_problem
    return None if has_problem else reply


def accepted(name: str, text: str) -> bool:
    """Whether a reply is accepted; fails if that is wrong."""
    finish_reasons = ("stop", "stop", "length", "refusal", "content_filter", "?")
    reply = judged(name, text, random.Random(len(text)).choice(finish_reasons))
    if reply is None:
        return False
    assert CASES[name].offered(reply), text[:500]
    assert any(fits(data, reply) for data in objects(text)), text[:500]
    assert not re.search("[\ud800-\udfff]", str(reply.model_dump()))
    return True


def as_number(value: Any) -> Any:
    """A whole number that is written as a text as that number; anything else as it is."""
    if isinstance(value, str) and re.fullmatch(r"\s*[+-]?\d+(_\d+)*(\.0*)?\s*", value):
        return int(float(value.replace("_", "")))
    return value


def fits(data: Any, reply: BaseModel) -> bool:
    """Whether an object of the text has the form by its JSON schema, and says what was accepted.

    A whole number may be written as a text: models do so, and label and number of a choice must agree anyway.
    An assumption may be a text, as in replies of earlier versions.
    """
    if isinstance(data, dict):
        data = dict(data)
        if "number" in data:
            data["number"] = as_number(data["number"])
        if isinstance(data.get("numbers"), list):
            data["numbers"] = list(map(as_number, data["numbers"]))
        if isinstance(data.get("assumptions"), list):
            data["assumptions"] = [
                {"taken": each, "others": []} if isinstance(each, str) else each
                for each in data["assumptions"]
            ]
    schema = type(reply).model_json_schema()
    said = reply.model_dump(include=schema["properties"].keys())
    return data == said and Draft202012Validator(schema).is_valid(data)


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
        return chance.choice(
            (value + 1, -value, str(value), value % 10**9 + 0.5, bool(value), [value])
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
    lambda text, valid, chance: f"<think>{json.dumps(chance.choice(valid))}</think>{text}",
    lambda text, valid, chance: f"{text}{json.dumps(chance.choice(valid))}",
    lambda text, valid, chance: _twice(text, chance),
    lambda text, valid, chance: text.replace('"', "'"),
    lambda text, valid, chance: text.replace("}", ",}").replace("]", ",]"),
    lambda text, valid, chance: text.replace(":", ": // why\n", 1),
    lambda text, valid, chance: text.replace(
        chance.choice(text or " "), chance.choice('"\\\x00{\ud800'), 1
    ),
    lambda text, valid, chance: re.sub("[a-z]", _escaped, text, count=chance.randint(0, 9)),
    lambda text, valid, chance: "{" * chance.choice((1, 50, 300)) + text,
    lambda text, valid, chance: "[" * chance.choice((1, 90, 2_000)) + text,
    lambda text, valid, chance: json.dumps(text),
    lambda text, valid, chance: text.replace("null", "None").replace("true", "True"),
)
