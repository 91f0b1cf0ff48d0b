"""Question simplifying: three roles debate the question one hop shorter (DoG, "Question Simplifying")."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from kgwb.run import Run, agent
from kgwb.run.ask import Check, Reply, ask
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
    rounds = [f"round {number}" for number in range(1, settings_of(run).debate_rounds + 1)]
    checks = checks_of(question, solved)
    for place in rounds:
        for speak in ROLES[settings_of(run).ablation]:
            debate = (*debate, speak(place, question, solved, debate, filled, run))
            proposed = RemarkReply(remark="", question=debate[-1].question)
            passes = not any(check.test(proposed) for check in checks)
            if passes and settings_of(run).ablation == "unneeded_roles":
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
        variables = {
            "question": question,
            "solved": [
                {
                    "entity": hop.entity,
                    "relation": hop.relation,
                    "found": hop.found,
                    "count": result.found,
                    "examples": [list(triple) for triple in result.triples[:EXAMPLES]],
                }
                for hop, result in zip(solved, filled, strict=False)
            ],
            "debate": [{"role": r.role, "remark": r.words, "question": r.question} for r in debate],
        }
        reply = ask(
            prompt,
            variables,
            RemarkReply,
            run,
            checks=checks_of(question, solved),
            last_resort=lambda reply: bool(reply.question.strip()),
        )
        return Remark(
            role.replace("_", " "), " ".join(reply.remark.split()), " ".join(reply.question.split())
        )

    speak.__doc__ = purpose
    return agent(role, subject="place", check=problems, kind="model")(speak)


Role = Callable[[str, str, tuple[Solved, ...], Debate, tuple[Filled, ...], Run], Remark]
simplify_first = _role(
    "dog/simplifying_expert", "The expert answers the first hop and puts what was found in its place (R1)."
)
criticise = _role(
    "dog/critic",
    "The critic compares the new question with the old, and says what is wrong and how to fix it (R2).",
)
polish = _role(
    "dog/linguist", "The linguist takes out what is solved, and has the last word of the round (R3)."
)
simplify_alone = _role("dog/fused_agent", "One agent with the tasks of all three roles (QS' of Table 2).")
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
