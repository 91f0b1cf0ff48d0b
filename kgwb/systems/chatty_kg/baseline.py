"""A model without a graph: the baseline of Chatty-KG's Table 4 (section 7.3)."""

from __future__ import annotations

from rdflib import Literal

from kgwb.build import Answer, Context, Reply, Run, Term, Value, agent, schema_config, try_to_ask
from kgwb.systems.chatty_kg.chat import describe_turn
from kgwb.systems.chatty_kg.qir import determine_kind


class ModelAloneReply(Reply):
    """The answers that a model gives by itself; none if it does not know any."""

    model_config = schema_config(
        "ModelAloneReply", "The answers, best first; an empty list if none is known."
    )

    answers: list[str]


@agent("model_alone", kind="model")
def answer_without_graph(question: str, context: Context, run: Run) -> Answer:
    """Ask the model alone, with the dialogue as it was spoken; its answer is not grounded.

    A name that is the label of exactly one vertex is compared as that vertex, as the gold answers
    are vertices; any other name is a literal. Of a question for yes or no, the first answer is true
    if it is "yes" or "true", else false. The answer has no values if the model knows none or gives
    no valid reply. Each name is a value once, in the model's order. The graph is asked only for
    labels.
    """
    dialogue = [describe_turn(turn, "questions_and_answers") for turn in context.turns]
    variables = {"question": question, "dialogue": dialogue}
    reply = try_to_ask("chatty_kg/model_alone", variables, ModelAloneReply, run)
    names: dict[str, None] = {}
    for answer in reply.answers if reply else ():
        names[answer.strip()] = None
    names.pop("", None)
    kind = determine_kind(question, None) or "list"
    values = []
    for name in names:
        if kind != "boolean":
            values.append(Value(_find_term(name, run), name))
        elif not values:
            truth = name.casefold() in ("yes", "true")
            values.append(Value(Literal(truth), str(truth).lower()))
    reason = "" if values else "the model knows no answer"
    return Answer(kind, tuple(values), reason=reason, ungrounded=bool(values))


def _find_term(name: str, run: Run) -> Term:
    """Return the vertex with exactly this label, else the name as a literal, also if several vertices have it."""
    vertices = run.kg.exact([name]).get(name, ())
    return vertices[0] if len(vertices) == 1 else Literal(name)
