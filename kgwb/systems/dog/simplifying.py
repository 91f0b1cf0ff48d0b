"""Question simplifying: three roles debate the question one hop shorter (DoG, "Question Simplifying")."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from pydantic import BaseModel, ConfigDict

from kgwb.run import Run, agent
from kgwb.structured import Check, ask
from kgwb.walk import Filled, Remark, Simplified, Solved, plain

Debate = tuple[Remark, ...]


class RemarkReply(BaseModel):
    """What a role says to the others, and the question it proposes."""

    model_config = ConfigDict(extra="forbid")
    remark: str
    question: str


def unchanged(simplified: Simplified, question: str, *came_in: object) -> Iterator[str]:
    """What is wrong with a simplified question put in by hand."""
    if not simplified.question.strip():
        yield "the question is empty"


@agent("simplifying", check=unchanged)
def simplify(question: str, solved: tuple[Solved, ...], filled: tuple[Filled, ...], run: Run) -> Simplified:
    """The question without the hop that was solved: the roles speak in turn, each hearing all before."""
    debate: Debate = ()
    rounds = [f"round {number}" for number in range(1, run.settings.debate_rounds + 1)]
    for place in rounds:
        for speak in ROLES[run.settings.ablation]:
            debate = (*debate, speak(place, question, solved, debate, filled, run))
    return Simplified(debate[-1].question, question, debate)


def problems(remark: Remark, *came_in: object) -> Iterator[str]:
    """What is wrong with a role's words put in by hand."""
    if not remark.question.strip():
        yield "the question is empty"


@agent("simplifying_expert", subject="place", check=problems)
def simplify_first(
    place: str,
    question: str,
    solved: tuple[Solved, ...],
    debate: Debate,
    filled: tuple[Filled, ...],
    run: Run,
) -> Remark:
    """The expert answers the first hop and puts what was found in its place (R1)."""
    return _speak("dog/simplifying_expert", "simplifying expert", question, solved, debate, filled, run)


@agent("critic", subject="place", check=problems)
def criticise(
    place: str,
    question: str,
    solved: tuple[Solved, ...],
    debate: Debate,
    filled: tuple[Filled, ...],
    run: Run,
) -> Remark:
    """The critic compares the new question with the old, and says what is wrong and how to mend it (R2)."""
    return _speak("dog/critic", "critic", question, solved, debate, filled, run)


@agent("linguist", subject="place", check=problems)
def polish(
    place: str,
    question: str,
    solved: tuple[Solved, ...],
    debate: Debate,
    filled: tuple[Filled, ...],
    run: Run,
) -> Remark:
    """The linguist takes out what is solved, and has the last word of the round (R3)."""
    return _speak("dog/linguist", "linguist", question, solved, debate, filled, run)


@agent("fused_agent", subject="place", check=problems)
def simplify_alone(
    place: str,
    question: str,
    solved: tuple[Solved, ...],
    debate: Debate,
    filled: tuple[Filled, ...],
    run: Run,
) -> Remark:
    """One agent with the tasks of all three roles (QS' of Table 2)."""
    return _speak("dog/fused_agent", "fused agent", question, solved, debate, filled, run)


Role = Callable[[str, str, tuple[Solved, ...], Debate, tuple[Filled, ...], Run], Remark]
ROLES: dict[str, tuple[Role, ...]] = {
    "none": (simplify_first, criticise, polish),
    "no_linguist": (simplify_first, criticise),
    "expert_only": (simplify_first,),
    "fused_agent": (simplify_alone,),
}
"""Who speaks in a round, by ablation (Table 2); without focusing there is no debate."""
LAST_WORD = {
    "none": "dog/linguist",
    "no_linguist": "dog/critic",
    "expert_only": "dog/simplifying_expert",
    "fused_agent": "dog/fused_agent",
}
"""Whose question is checked: the others may err, for the debate is there to mend it."""


def _speak(
    prompt: str,
    role: str,
    question: str,
    solved: Sequence[Solved],
    debate: Debate,
    filled: Sequence[Filled],
    run: Run,
) -> Remark:
    """One turn of the debate; a question that fails the checks to the last is used as it is, and says so."""
    variables = {
        "question": question,
        "solved": [{"entity": one.entity, "relation": one.relation, "found": one.found} for one in solved],
        "triples": [list(triple) for one in filled for triple in one.triples],
        "debate": [{"role": one.role, "remark": one.words, "question": one.question} for one in debate],
    }
    checks = checks_of(solved) if prompt == LAST_WORD[run.settings.ablation] else ()
    reply = ask(
        prompt, variables, RemarkReply, run, checks=checks, last_resort=lambda r: bool(r.question.strip())
    )
    return Remark(role, " ".join(reply.remark.split()), " ".join(reply.question.split()))


def checks_of(solved: Sequence[Solved]) -> tuple[Check[RemarkReply], ...]:
    """The question goes on from what was found, in brackets, and no longer from what was solved."""

    def found(reply: RemarkReply) -> str:
        lost = [f"[{one.found}]" for one in solved if f"[{plain(one.found)}]" not in plain(reply.question)]
        return f"the question does not go on from {', '.join(lost)}" if lost else ""

    def gone(reply: RemarkReply) -> str:
        names = {one.entity for one in solved} - {one.found for one in solved}
        kept = [f"[{name}]" for name in sorted(names) if f"[{plain(name)}]" in plain(reply.question)]
        return f"the question still names {', '.join(kept)}, which is solved" if kept else ""

    return Check("goes on from what was found", found), Check("the solved entity is gone", gone)
