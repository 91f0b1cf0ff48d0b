"""The question: its topic entities in brackets, and how three roles debate it one hop shorter (DoG)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches

from kgwb.flow import Context, Link, Value
from kgwb.run import Run, agent
from kgwb.run.ask import Check, Reply, ask, find_problems, schema_config
from kgwb.systems.dog.records import (
    BRACKETED_NAME,
    FilledTriples,
    Head,
    HopInput,
    Remark,
    SimplifiedQuestion,
    SolvedHop,
    TopicEntities,
    normalize_name,
)
from kgwb.systems.dog.settings import DogSettings
from kgwb.systems.linking import link_entity


class TopicReply(Reply):
    """The names in the question, as written there."""

    model_config = schema_config("TopicReply", "The names in the question, as written there.")

    entities: list[str]


def find_topic_problems(topics: TopicEntities, question: str) -> Iterator[str]:
    """What is wrong with topic entities put in by hand: each must be marked in the question, and no other."""
    marked = BRACKETED_NAME.findall(topics.question)
    if not topics.entities:
        yield "no topic entity: a walk over the graph has to begin somewhere"
    yield from (
        f"[{name}] is not in the question" for name in topics.entities if name not in marked
    )
    yield from (
        f"[{name}] is marked and no topic entity" for name in marked if name not in topics.entities
    )


@agent("topic_entity", check=find_topic_problems, kind="model")
def find_topic_entities(question: str, run: Run) -> TopicEntities:
    """All topic entities, not only the first; a question that marks its own costs no model call."""
    if run.dialogue.turns:
        run.note("DoG has no dialogue: the question is read alone")
    if marked := BRACKETED_NAME.findall(question):
        return TopicEntities(question, tuple(dict.fromkeys(marked)))
    checks, last = (
        make_topic_checks(question),
        lambda reply: bool(_resolve_names(question, reply, run)),
    )
    reply = ask(
        "dog/topic_entity", {"question": question}, TopicReply, run, checks=checks, last_resort=last
    )
    names = _resolve_names(question, reply, run)
    if names != _clean_names(reply):
        run.note(f"taken instead, from the graph's names in the question: {', '.join(names)}")
    return bracket_names(question, names)


def _clean_names(reply: TopicReply) -> list[str]:
    return list(dict.fromkeys(" ".join(name.split()) for name in reply.entities))


def _resolve_names(question: str, reply: TopicReply, run: Run) -> list[str]:
    """The names that stand in the question; for one that does not, the nearest of the graph's that does."""
    names = (
        name if name and _find_name(question, name) else _find_nearest_label(name, question, run)
        for name in _clean_names(reply)
    )
    written = dict.fromkeys(filter(None, names))
    return [
        name for name in written if not any(name != longer and name in longer for longer in written)
    ]


def _find_nearest_label(name: str, question: str, run: Run) -> str:
    """The name of the graph in the question that is spelled most like this one; empty if none is like it."""
    words = [match.span() for match in re.finditer(r"\w+", question)]
    spans = [
        question[a:b] for n, (a, _) in enumerate(words) for _, b in words[n : n + MAX_LABEL_WORDS]
    ]
    there = {normalize_name(label): label for label in run.kg.exact(spans)}
    sought = normalize_name(name)[:MAX_NAME_CHARS]
    inside = [label for label in there if {*label.split()} <= {*re.findall(r"\w+", sought)}]
    near = get_close_matches(sought, there, 1) or sorted(inside, key=len)[-1:]
    return there[near[0]] if near else ""


MAX_LABEL_WORDS, MAX_NAME_CHARS = 8, 200
"""Words of a name of the graph that is looked for in a question, and letters of the name it shall be like."""


def make_topic_checks(question: str) -> tuple[Check[TopicReply], ...]:
    """At least one name, as a walk has to begin somewhere; each in the question, and none inside another."""
    problem = f"no entity is named: name what {question!r} is about"

    def written(reply: TopicReply) -> str:
        names = _clean_names(reply)
        lost = [name for name in names if not name or not _find_name(question, name)]
        if lost:
            return f"{', '.join(map(repr, lost))} is not in the question: copy the names from {question!r}"
        inside = [name for name in names for longer in names if name != longer and name in longer]
        return f"{inside[0]!r} is part of another name" if inside else ""

    at_least_one = Check[TopicReply](
        "at least one entity", lambda reply: "" if reply.entities else problem
    )
    return at_least_one, Check("copied from the question", written)


def bracket_names(question: str, names: Sequence[str]) -> TopicEntities:
    """The question with the first mention of each name in brackets, spelled as the question spells it."""
    spelled = []
    for name in sorted(names, key=len, reverse=True):
        if match := _find_name(question, name):
            spelled.append(match[0])
            question = f"{question[: match.start()]}[{match[0]}]{question[match.end() :]}"
    return TopicEntities(question, tuple(sorted(dict.fromkeys(spelled), key=question.index)))


def _find_name(question: str, name: str) -> re.Match[str] | None:
    """Where a name first stands as whole words, else anywhere; letter case aside."""
    written = re.escape(name)
    whole = re.search(rf"(?<!\w){written}(?!\w)", question, re.IGNORECASE)
    return whole or re.search(written, question, re.IGNORECASE)


def begin(topics: TopicEntities, run: Run) -> tuple[HopInput, tuple[Link, ...]]:
    """Where the walk begins: the vertex of each topic entity, and the links of all."""
    links = run.map(
        link_entity, topics.entities, BRACKETED_NAME.sub(r"\1", topics.question), Context()
    )
    heads = (
        Head(link.entity, (Value(link.vertex.iri, link.vertex.label),), (link.vertex.iri,))
        for link in links
        if link.vertex
    )
    return HopInput(topics.question, tuple(heads)), links


# --- question simplifying

SolvedHops = tuple[SolvedHop, ...]
HopResults = tuple[FilledTriples, ...]
Debate = tuple[Remark, ...]


class RemarkReply(Reply):
    """What a role says to the others, and the question it proposes."""

    model_config = schema_config(
        "RemarkReply", "What a role says to the others, and the question it proposes."
    )

    remark: str
    question: str


def find_question_problems(override: SimplifiedQuestion | Remark, *inputs: object) -> Iterator[str]:
    """What is wrong with a simplified question, or a role's words, put in by hand."""
    if not override.question.strip():
        yield "the question is empty"


@agent("simplifying", check=find_question_problems)
def simplify_question(
    question: str, solved: SolvedHops, filled: HopResults, run: Run
) -> SimplifiedQuestion:
    """The question without the hop that was solved: the roles speak in turn, each hearing all before.

    By a setting, who would speak after a question that passes the checks is not asked.
    """
    debate: Debate = ()
    settings, checks = DogSettings.of_run(run), make_question_checks(question, solved)
    for number in range(1, settings.debate_rounds + 1):
        for speak in ROLE_AGENTS_BY_ABLATION[settings.ablation]:
            debate = (*debate, speak(f"round {number}", question, solved, debate, filled, run))
            proposed = RemarkReply(remark="", question=debate[-1].question)
            if settings.ablation == "unneeded_roles" and not [*find_problems(proposed, checks)]:
                return SimplifiedQuestion(debate[-1].question, question, debate)
    return SimplifiedQuestion(debate[-1].question, question, debate)


def _make_role_agent(prompt: str, purpose: str) -> RoleAgent:
    """The agent of one role, named as its prompt is.

    A question that fails the checks to the last is used as it is, and the step's notes say so.
    """
    role = prompt.removeprefix("dog/")

    def speak(
        place: str, question: str, solved: SolvedHops, debate: Debate, filled: HopResults, run: Run
    ) -> Remark:
        seen = []
        for hop, result in zip(solved, filled, strict=False):
            examples = [list(triple) for triple in result.triples[:MAX_EXAMPLE_TRIPLES]]
            about = {"entity": hop.entity, "relation": hop.relation, "found": hop.found}
            seen.append({**about, "count": result.found, "examples": examples})
        earlier = [{"role": r.role, "remark": r.words, "question": r.question} for r in debate]
        variables = {"question": question, "solved": seen, "debate": earlier}
        checks, last = (
            make_question_checks(question, solved),
            lambda reply: bool(reply.question.strip()),
        )
        reply = ask(prompt, variables, RemarkReply, run, checks=checks, last_resort=last)
        words = " ".join(reply.remark.split())
        return Remark(role.replace("_", " "), words, " ".join(reply.question.split()))

    speak.__doc__ = purpose
    return agent(role, subject="place", check=find_question_problems, kind="model")(speak)


RoleAgent = Callable[[str, str, SolvedHops, Debate, HopResults, Run], Remark]
PURPOSE_BY_PROMPT = {
    "dog/simplifying_expert": "The expert answers the first hop and puts what was found in its place (R1).",
    "dog/critic": "The critic compares the new question with the old, and says what is wrong"
    " and how to fix it (R2).",
    "dog/linguist": "The linguist takes out what is solved, and has the last word of the round (R3).",
    "dog/fused_agent": "One agent with the tasks of all three roles (QS' of Table 2).",
}
simplify_as_expert, simplify_as_critic, simplify_as_linguist, simplify_as_fused_agent = (
    _make_role_agent(*each) for each in PURPOSE_BY_PROMPT.items()
)
ROLE_AGENTS_BY_ABLATION: dict[str, tuple[RoleAgent, ...]] = {
    "none": (simplify_as_expert, simplify_as_critic, simplify_as_linguist),
    "unneeded_roles": (simplify_as_expert, simplify_as_critic, simplify_as_linguist),
    "no_linguist": (simplify_as_expert, simplify_as_critic),
    "expert_only": (simplify_as_expert,),
    "fused_agent": (simplify_as_fused_agent,),
}
"""Who speaks in a round, by ablation (Table 2); without focusing there is no debate."""
MAX_EXAMPLE_TRIPLES = 3
"""Triples of a hop that the roles see, beside the number found."""


def make_question_checks(
    question: str, solved: Sequence[SolvedHop]
) -> tuple[Check[RemarkReply], ...]:
    """The question goes on from what was found, in brackets, and no longer from what was solved.

    What else the question names in brackets is still to be gone on from.
    """
    entities = {normalize_name(hop.entity) for hop in solved}
    kept = [
        name for name in BRACKETED_NAME.findall(question) if normalize_name(name) not in entities
    ]

    def goes_on(reply: RemarkReply) -> str:
        names = [*(hop.found for hop in solved), *kept]
        lost = [
            f"[{name}]"
            for name in names
            if f"[{normalize_name(name)}]" not in normalize_name(reply.question)
        ]
        return f"the question does not go on from {', '.join(lost)}" if lost else ""

    def gone(reply: RemarkReply) -> str:
        names = {hop.entity for hop in solved} - {hop.found for hop in solved}
        kept = [
            f"[{name}]"
            for name in sorted(names)
            if f"[{normalize_name(name)}]" in normalize_name(reply.question)
        ]
        return f"the question still names {', '.join(kept)}, which is solved" if kept else ""

    return Check("goes on from what was found", goes_on), Check("the solved entity is gone", gone)
