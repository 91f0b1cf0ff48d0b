"""Question simplifying: three roles debate the question one hop shorter (DoG, "Question Simplifying")."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from kgwb.run import Run, agent
from kgwb.run.ask import Check, Reply, ask, faults
from kgwb.systems.dog.records import MARKED, Filled, Remark, Simplified, Solved, plain
from kgwb.systems.dog.settings import settings_of

Debate = tuple[Remark, ...]


class RemarkReply(Reply):
    """What a role says to the others, and the question it proposes."""

    remark: str
    question: str


def problems(put_in: Simplified | Remark, *came_in: object) -> Iterator[str]:
    """What is wrong with a simplified question, or a role's words, put in by hand."""
    if not put_in.question.strip():
        yield "the question is empty"


@agent("simplifying", check=problems)
def simplify(question: str, solved: tuple[Solved, ...], filled: tuple[Filled, ...], run: Run) -> Simplified:
    """The question without the hop that was solved: the roles speak in turn, each hearing all before.

    By a setting, who would speak after a question that passes the checks is not asked.
    """
    debate: Debate = ()
    settings, checks = settings_of(run), checks_of(question, solved)
    for number in range(1, settings.debate_rounds + 1):
        for speak in ROLES[settings.ablation]:
            debate = (*debate, speak(f"round {number}", question, solved, debate, filled, run))
            proposed = RemarkReply(remark="", question=debate[-1].question)
            if settings.ablation == "unneeded_roles" and not [*faults(proposed, checks)]:
                return Simplified(debate[-1].question, question, debate)
    return Simplified(debate[-1].question, question, debate)


def _role(prompt: str, purpose: str) -> Role:
    """The agent of one role, named as its prompt is.

    A question that fails the checks to the last is used as it is, and the step's notes say so.
    """
    role = prompt.removeprefix("dog/")

    def speak(
        place: str,
        question: str,
        solved: tuple[Solved, ...],
        debate: Debate,
        filled: tuple[Filled, ...],
        run: Run,
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


Role = Callable[[str, str, tuple[Solved, ...], Debate, tuple[Filled, ...], Run], Remark]
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
        kept = [f"[{name}]" for name in sorted(names) if f"[{plain(name)}]" in plain(reply.question)]
        return f"the question still names {', '.join(kept)}, which is solved" if kept else ""

    return Check("goes on from what was found", goes_on), Check("the solved entity is gone", gone)
