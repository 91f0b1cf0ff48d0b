"""DoG's records as HTML: relations to choose from, triples, the debate, and the walk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kgwb.build import (
    MAX_ROWS,
    Html,
    RenderContext,
    View,
    and_more,
    collapsible,
    div,
    join,
    muted_text,
    pluralize,
    render,
    render_answer_parts,
    render_choices,
    render_curie,
    render_explanation,
    render_word_diff,
    shorten,
    span,
    table,
    tag,
)
from kgwb.systems.dog import records


def render_question(text: str) -> Html:
    """Render a question with its names in brackets highlighted, without the brackets."""
    parts: list[object] = list(records.BRACKETED_NAME.split(text))
    names = parts[1::2]
    parts[1::2] = [span("ent", name) for name in names]
    return join(*parts)


def render_bracketed_question(
    value: records.TopicEntities | records.HopInput, context: RenderContext
) -> Html:
    """Render the question of a record, with its names highlighted."""
    return div("body", render_question(value.question))


def render_relations(relations: records.Relations, context: RenderContext) -> Html:
    """Render the relations of a head as a table: name, direction, and predicates as links.

    Without relations a remark says so.
    """
    rows = []
    for relation in relations.found:
        direction = _format_direction(relations.head, relation)
        predicates = _render_predicates(relation, context)
        rows.append((shorten(str(relation)), direction, predicates))
    headings = ("relation", "in the graph", "predicate")
    return div("body", table(headings, rows) or muted_text("no relation"))


def _format_direction(head: str, relation: records.Relation) -> str:
    return f"{head} → …" if relation.direction == "out" else f"… → {head}"


def _render_predicates(relation: records.Relation, context: RenderContext) -> Html:
    return join(*[div("", render_curie(iri, context)) for iri in relation.iris])


def render_filtered_relation(value: records.FilteredRelation, context: RenderContext) -> Html:
    """Render the chosen relation with its reason, and the relations to choose from as options.

    At most MAX_ROWS relations are options, and the last option is to choose none. A chosen relation
    that was not offered is added to them. The number of options that are not shown is written
    below.
    """
    relations = context.input_of(records.Relations)
    offered = list(relations.found) if relations else []
    if value.relation and value.relation not in offered:
        offered.append(value.relation)
    options = []
    selected = -1
    for position, relation in enumerate(offered[:MAX_ROWS]):
        if relation == value.relation:
            selected = position
        direction = muted_text(_format_direction(value.head, relation))
        predicates = span("under", _render_predicates(relation, context))
        name = tag("b", shorten(str(relation)))
        options.append(join(name, " ", direction, predicates))

    chosen = tag("b", str(value.relation or "no relation"))
    summary = div(
        "body stack",
        div("", render_question(f"[{value.head}]"), " → ", chosen),
        render_explanation(value.subquestion, "to answer"),
        render_explanation(value.reason),
    )
    none_label = "no relation: none fits, or another entity comes first"
    choices = render_choices(options, [selected], none_label, context)
    omitted = and_more(len(offered) - MAX_ROWS)
    return join(summary, choices, div("band soft", omitted) if omitted else "")


def render_filled_triples(value: records.FilledTriples, context: RenderContext) -> Html:
    """Render the triples of a hop in words as a table, and below it, folded, the support of each tail.

    The support of a tail are the triples that lead to it from the topic entity. Above the table are
    head and relation, and how many tails were found and kept, or why there is none. The table has
    five columns if any triple has a node without a name between head and tail. It has at most
    MAX_ROWS rows.
    """
    headings = ["head", "relation", "tail"]
    if any(len(triple) > len(headings) for triple in value.triples):
        headings[2:2] = ["between", "relation"]
    rows = []
    for triple in value.triples[:MAX_ROWS]:
        cells = list(map(shorten, triple))
        if len(cells) < len(headings):
            cells[2:2] = ["", ""]
        rows.append(cells)

    result = value.reason
    if value.values:
        found = pluralize(value.found, "tail")
        result = f"{found} found, {len(value.values)} kept"
    notes = filter(None, (result, value.note))
    head = render_question(f"[{value.head}]")
    return div(
        "body stack",
        div("", head, f" {value.relation or ''}"),
        muted_text("; ".join(notes)),
        table(headings, rows, total=len(value.triples)),
        collapsible(
            muted_text("the triples that lead to each tail from the topic entity"),
            *render_answer_parts(value, context),
            key="tails",
        ),
    )


def render_tried_answer(value: records.TriedAnswer, context: RenderContext) -> Html:
    """Render the decision about a hop's triples: yes or no, its question, answers and reason.

    With answers, it is said that the triples answer the question, else that another hop is needed.
    The question is left out if the inputs of the step are not known.
    """
    meaning = "another hop is needed"
    if value.answers:
        meaning = "these triples answer it"
    question = context.input_of(str)
    return div(
        "body stack",
        div("", span("type b", value.sufficient), " ", meaning),
        div("", muted_text("question "), render_question(question)) if question else "",
        render_explanation(", ".join(map(shorten, value.answers)), "answers"),
        render_explanation(value.reason),
    )


def render_remark(value: records.Remark, context: RenderContext) -> Html:
    """Render the debate up to a remark, which is highlighted.

    Earlier remarks are those among the inputs of the step.
    """
    debate = []
    for step_input in context.inputs:
        if isinstance(step_input, tuple):
            for part in step_input:
                if isinstance(part, records.Remark):
                    debate.append(part)
    return div("body", render_debate([*debate, value], current=len(debate)))


def render_simplified_question(value: records.SimplifiedQuestion, context: RenderContext) -> Html:
    """Render what changed in the question, word by word, and the debate that led to it."""
    changes = render_word_diff(value.original, value.question)
    return div("body stack", changes, render_debate(value.debate))


def render_debate(debate: Sequence[records.Remark], current: int = -1) -> Html:
    """Render the remarks of a debate in order, each with its role and the question that it proposes.

    Roles have colours, of which there are three, in turn. The remark at position ``current`` is
    highlighted, or none if it is -1.
    """
    roles = list(dict.fromkeys(remark.role for remark in debate))
    turns = []
    for position, remark in enumerate(debate):
        classes = f"says turn-{roles.index(remark.role) % 3}"
        if position == current:
            classes += " now"
        words = div("", tag("bdi", remark.words))
        proposal = div("", muted_text("→ "), render_question(remark.question))
        turns.append(div(classes, tag("b", remark.role), words, proposal))
    return div("stack", *turns)


def render_hop(value: records.Hop, context: RenderContext) -> Html:
    """Render how the question became shorter, the results of a hop, and its decision.

    The table has the questions of the hops before, that of this hop, and the one that is left. The
    decision is rendered below, if the hop tried to answer.
    """
    questions = [*value.before, value.question]
    if value.left:
        questions.append(value.left.question)
    rows = []
    for number, question in enumerate(questions, 1):
        is_left = number > len(value.before) + 1
        label = ""
        if is_left:
            label = "left"
        rows.append((number, render_question(question), label))
    headings = ("", "the question, shorter after each hop", "")
    questions_table = table(headings, rows)
    results = []
    for result in value.filled:
        results.append(div("", render_question(str(result))))
    summary = div("body stack", questions_table, *results)
    if value.tried is None:
        return summary
    # Without the inputs of this step, which are not those of the decision.
    own_context = RenderContext(context.names, context.prefixes, views=context.views)
    decision = render(value.tried, own_context)
    return join(summary, decision)


VIEWS: Mapping[type, View] = {
    records.FilledTriples: render_filled_triples,
    records.FilteredRelation: render_filtered_relation,
    records.HopInput: render_bracketed_question,
    records.Hop: render_hop,
    records.Relations: render_relations,
    records.Remark: render_remark,
    records.SimplifiedQuestion: render_simplified_question,
    records.TopicEntities: render_bracketed_question,
    records.TriedAnswer: render_tried_answer,
}
"""The view of each record of DoG."""
