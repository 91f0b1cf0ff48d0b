"""The question: its topic entities in brackets, and how three roles debate it one hop shorter (DoG)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches

from kgwb.flow import Context, Link, Value
from kgwb.run import Run, agent
from kgwb.run.ask import Check, Reply, ask, find_problems, schema_config
from kgwb.systems.dog.records import (
    MARKED,
    Filled,
    Focus,
    Head,
    Remark,
    Simplified,
    Solved,
    Topics,
    plain,
)
from kgwb.systems.dog.settings import DogSettings
from kgwb.systems.linking import link_entity


class TopicReply(Reply):
    """The names in the question, as written there."""

    model_config = schema_config("TopicReply", "The names in the question, as written there.")

    entities: list[str]


def topic_problems(topics: Topics, question: str) -> Iterator[str]:
    """What is wrong with topic entities put in by hand: each must be marked in the question, and no other."""
    marked = MARKED.findall(topics.question)
    if not topics.entities:
        yield "no topic entity: a walk over the graph has to begin somewhere"
    yield from (
        f"[{name}] is not in the question" for name in topics.entities if name not in marked
    )
    yield from (
        f"[{name}] is marked and no topic entity" for name in marked if name not in topics.entities
    )


@agent("topic_entity", check=topic_problems, kind="model")
def find_topics(question: str, run: Run) -> Topics:
    """All topic entities, not only the first; a question that marks its own costs no model call."""
    if run.dialogue.turns:
        run.note("DoG has no dialogue: the question is read alone")
    if marked := MARKED.findall(question):
        return Topics(question, tuple(dict.fromkeys(marked)))
    checks, last = topic_checks(question), lambda reply: bool(_usable(question, reply, run))
    reply = ask(
        "dog/topic_entity", {"question": question}, TopicReply, run, checks=checks, last_resort=last
    )
    names = _usable(question, reply, run)
    if names != _names(reply):
        run.note(f"taken instead, from the graph's names in the question: {', '.join(names)}")
    return mark(question, names)


def _names(reply: TopicReply) -> list[str]:
    return list(dict.fromkeys(" ".join(name.split()) for name in reply.entities))


def _usable(question: str, reply: TopicReply, run: Run) -> list[str]:
    """The names that stand in the question; for one that does not, the nearest of the graph's that does."""
    names = (
        name if name and _place(question, name) else _nearest(name, question, run)
        for name in _names(reply)
    )
    written = dict.fromkeys(filter(None, names))
    return [
        name for name in written if not any(name != longer and name in longer for longer in written)
    ]


def _nearest(name: str, question: str, run: Run) -> str:
    """The name of the graph in the question that is spelled most like this one; empty if none is like it."""
    words = [match.span() for match in re.finditer(r"\w+", question)]
    spans = [question[a:b] for n, (a, _) in enumerate(words) for _, b in words[n : n + MOST_WORDS]]
    there = {plain(label): label for label in run.kg.exact(spans)}
    sought = plain(name)[:MOST_LETTERS]
    inside = [label for label in there if {*label.split()} <= {*re.findall(r"\w+", sought)}]
    near = get_close_matches(sought, there, 1) or sorted(inside, key=len)[-1:]
    return there[near[0]] if near else ""


MOST_WORDS, MOST_LETTERS = 8, 200
"""Words of a name of the graph that is looked for in a question, and letters of the name it shall be like."""


def topic_checks(question: str) -> tuple[Check[TopicReply], ...]:
    """At least one name, as a walk has to begin somewhere; each in the question, and none inside another."""
    problem = f"no entity is named: name what {question!r} is about"

    def written(reply: TopicReply) -> str:
        names = _names(reply)
        lost = [name for name in names if not name or not _place(question, name)]
        if lost:
            return f"{', '.join(map(repr, lost))} is not in the question: copy the names from {question!r}"
        inside = [name for name in names for longer in names if name != longer and name in longer]
        return f"{inside[0]!r} is part of another name" if inside else ""

    at_least_one = Check[TopicReply](
        "at least one entity", lambda reply: "" if reply.entities else problem
    )
    return at_least_one, Check("copied from the question", written)


def mark(question: str, names: Sequence[str]) -> Topics:
    """The question with the first mention of each name in brackets, spelled as the question spells it."""
    spelled = []
    for name in sorted(names, key=len, reverse=True):
        if match := _place(question, name):
            spelled.append(match[0])
            question = f"{question[: match.start()]}[{match[0]}]{question[match.end() :]}"
    return Topics(question, tuple(sorted(dict.fromkeys(spelled), key=question.index)))


def _place(question: str, name: str) -> re.Match[str] | None:
    """Where a name first stands as whole words, else anywhere; letter case aside."""
    written = re.escape(name)
    whole = re.search(rf"(?<!\w){written}(?!\w)", question, re.IGNORECASE)
    return whole or re.search(written, question, re.IGNORECASE)


def begin(topics: Topics, run: Run) -> tuple[Focus, tuple[Link, ...]]:
    """Where the walk begins: the vertex of each topic entity, and the links of all."""
    links = run.map(link_entity, topics.entities, MARKED.sub(r"\1", topics.question), Context())
    heads = (
        Head(link.entity, (Value(link.vertex.iri, link.vertex.label),), (link.vertex.iri,))
        for link in links
        if link.vertex
    )
    return Focus(topics.question, tuple(heads)), links


# --- question simplifying

Hops = tuple[Solved, ...]
Results = tuple[Filled, ...]
Debate = tuple[Remark, ...]


class RemarkReply(Reply):
    """What a role says to the others, and the question it proposes."""

    model_config = schema_config(
        "RemarkReply", "What a role says to the others, and the question it proposes."
    )

    remark: str
    question: str


def problems(put_in: Simplified | Remark, *came_in: object) -> Iterator[str]:
    """What is wrong with a simplified question, or a role's words, put in by hand."""
    if not put_in.question.strip():
        yield "the question is empty"


@agent("simplifying", check=problems)
def simplify(question: str, solved: Hops, filled: Results, run: Run) -> Simplified:
    """The question without the hop that was solved: the roles speak in turn, each hearing all before.

    By a setting, who would speak after a question that passes the checks is not asked.
    """
    debate: Debate = ()
    settings, checks = DogSettings.of_run(run), checks_of(question, solved)
    for number in range(1, settings.debate_rounds + 1):
        for speak in ROLES[settings.ablation]:
            debate = (*debate, speak(f"round {number}", question, solved, debate, filled, run))
            proposed = RemarkReply(remark="", question=debate[-1].question)
            if settings.ablation == "unneeded_roles" and not [*find_problems(proposed, checks)]:
                return Simplified(debate[-1].question, question, debate)
    return Simplified(debate[-1].question, question, debate)


def _role(prompt: str, purpose: str) -> Role:
    """The agent of one role, named as its prompt is.

    A question that fails the checks to the last is used as it is, and the step's notes say so.
    """
    role = prompt.removeprefix("dog/")

    def speak(
        place: str, question: str, solved: Hops, debate: Debate, filled: Results, run: Run
    ) -> Remark:
        seen = []
        for hop, result in zip(solved, filled, strict=False):
            examples = [list(triple) for triple in result.triples[:EXAMPLES]]
            about = {"entity": hop.entity, "relation": hop.relation, "found": hop.found}
            seen.append({**about, "count": result.found, "examples": examples})
        earlier = [{"role": r.role, "remark": r.words, "question": r.question} for r in debate]
        variables = {"question": question, "solved": seen, "debate": earlier}
        checks, last = checks_of(question, solved), lambda reply: bool(reply.question.strip())
        reply = ask(prompt, variables, RemarkReply, run, checks=checks, last_resort=last)
        words = " ".join(reply.remark.split())
        return Remark(role.replace("_", " "), words, " ".join(reply.question.split()))

    speak.__doc__ = purpose
    return agent(role, subject="place", check=problems, kind="model")(speak)


Role = Callable[[str, str, Hops, Debate, Results, Run], Remark]
PURPOSES = {
    "dog/simplifying_expert": "The expert answers the first hop and puts what was found in its place (R1).",
    "dog/critic": "The critic compares the new question with the old, and says what is wrong"
    " and how to fix it (R2).",
    "dog/linguist": "The linguist takes out what is solved, and has the last word of the round (R3).",
    "dog/fused_agent": "One agent with the tasks of all three roles (QS' of Table 2).",
}
simplify_first, criticise, polish, simplify_alone = (_role(*each) for each in PURPOSES.items())
ROLES: dict[str, tuple[Role, ...]] = {
    "none": (simplify_first, criticise, polish),
    "unneeded_roles": (simplify_first, criticise, polish),
    "no_linguist": (simplify_first, criticise),
    "expert_only": (simplify_first,),
    "fused_agent": (simplify_alone,),
}
"""Who speaks in a round, by ablation (Table 2); without focusing there is no debate."""
EXAMPLES = 3
"""Triples of a hop that the roles see, beside the number found."""


def checks_of(question: str, solved: Sequence[Solved]) -> tuple[Check[RemarkReply], ...]:
    """The question goes on from what was found, in brackets, and no longer from what was solved.

    What else the question names in brackets is still to be gone on from.
    """
    entities = {plain(hop.entity) for hop in solved}
    kept = [name for name in MARKED.findall(question) if plain(name) not in entities]

    def goes_on(reply: RemarkReply) -> str:
        names = [*(hop.found for hop in solved), *kept]
        lost = [f"[{name}]" for name in names if f"[{plain(name)}]" not in plain(reply.question)]
        return f"the question does not go on from {', '.join(lost)}" if lost else ""

    def gone(reply: RemarkReply) -> str:
        names = {hop.entity for hop in solved} - {hop.found for hop in solved}
        kept = [
            f"[{name}]" for name in sorted(names) if f"[{plain(name)}]" in plain(reply.question)
        ]
        return f"the question still names {', '.join(kept)}, which is solved" if kept else ""

    return Check("goes on from what was found", goes_on), Check("the solved entity is gone", gone)
