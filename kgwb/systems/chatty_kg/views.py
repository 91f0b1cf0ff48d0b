"""The HTML of Chatty-KG's records: a QIR as chains, ranked predicates, kept queries, changed words."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from kgwb.build import (
    CANNOT_EXPRESS,
    CandidateQuery,
    Context,
    Html,
    RenderContext,
    View,
    bar,
    button,
    collapsible,
    div,
    highlight_words,
    join,
    muted_text,
    note,
    omitted_count,
    pluralize,
    query_part_text,
    render,
    render_curie,
    render_explanation,
    render_graph_result,
    render_query_block,
    render_table,
    render_word_diff,
    shorten,
    single_line,
    span,
    state_badge,
    table,
    tag,
    tell_apart,
)
from kgwb.systems.chatty_kg.records import (
    QIR,
    Classification,
    GeneratedQueries,
    LinkedRelation,
    QuerySelection,
    RankedPredicate,
    RephrasedQuestion,
    is_unknown,
    pattern_predicates,
)

MAX_RANKED = 8
"""Predicates of a relation that are shown; more are folded."""
MAX_KEPT = 3
"""Queries that are shown with their SPARQL."""
MAX_OTHERS = 40
"""Other candidate queries in the folded table."""
QUOTED_WORDS = re.compile(r"['\"‘“]([^'\"‘’“”]+)['\"’”]")
KIND_TEXTS = {"list": "", "count": "asks how many", "boolean": "asks for yes or no"}


def render_fact_end(name: str, targets: Collection[str] = ()) -> Html:
    """Render an end of a fact: an entity in a solid frame, an unknown dashed, a target double.

    The name of an entity is shortened. Only an unknown can be a target.
    """
    if not is_unknown(name):
        return span("ent", shorten(name), title="entity")
    if name in targets:
        return span("unk asked", name, title="asked for")
    return span("unk", name, title="unknown")


def _render_relation(relation: str) -> Html:
    return span("rel", "— ", tag("em", shorten(relation)), " →")


def render_facts(qir: QIR) -> Html:
    """Render the facts of a QIR from left to right, each on its own line, with the targets marked.

    A fact whose subject is the object of the fact before it continues the line.
    """
    lines: list[list[Html]] = []
    last_end = ""
    for fact in qir.facts:
        if not lines or fact.subject != last_end:
            lines.append([render_fact_end(fact.subject, qir.selected)])
        lines[-1].append(_render_relation(fact.relation))
        lines[-1].append(render_fact_end(fact.object, qir.selected))
        last_end = fact.object
    return div("stack", *(div("chain", *line) for line in lines))


def render_qir(qir: QIR, context: RenderContext) -> Html:
    """Render the facts as chains, and folded as a table.

    Between them is written what is compared, that a count or yes or no is asked for, and what triples
    cannot express or leave out, if any.
    """
    parts = [render_facts(qir)]
    if qir.comparisons:
        parts.append(muted_text("; ".join(map(str, qir.comparisons))))
    if KIND_TEXTS[qir.kind]:
        parts.append(muted_text(KIND_TEXTS[qir.kind]))
    if qir.beyond:
        parts.append(note(f"{CANNOT_EXPRESS}: {'; '.join(map(shorten, qir.beyond))}"))
    if qir.doubts:
        parts.append(note("; ".join(map(shorten, qir.doubts))))
    if qir.facts:
        table = render_table(qir.facts, context)
        parts.append(collapsible(muted_text("as a table"), table, key="qir-table"))
    return div("body stack", *parts)


def render_classification(value: Classification, context: RenderContext) -> Html:
    """Render the label, the question, and the reason of a classification.

    Words that the reason has in quotation marks are highlighted in the question, which is left out
    if the inputs of the step are not known.
    """
    label = span("type b", value.label)
    question = context.input_of(str)
    marked: object = ""
    if question:
        quoted = QUOTED_WORDS.findall(value.reason)
        marked = div("", highlight_words(question, quoted))
    return div("body stack", label, marked, render_explanation(value.reason))


def render_rephrased_question(value: RephrasedQuestion, context: RenderContext) -> Html:
    """Render the question with its changed words marked, or a remark that nothing was changed.

    If there are earlier turns, they are folded below it.
    """
    if value.question == value.original:
        question = join(div("b", value.question), muted_text("nothing was changed"))
    else:
        question = render_word_diff(value.original, value.question)
    parts = [question]
    earlier = context.input_of(Context)
    if earlier and earlier.turns:
        title = muted_text("earlier turns")
        parts.append(collapsible(title, render(earlier, context), key="dialogue"))
    return div("body stack", *parts)


def render_linked_relation(value: LinkedRelation, context: RenderContext) -> Html:
    """Render a fact and its ranked predicates, or a remark that there are none.

    Predicates of the first selected query are marked as used. Those after MAX_RANKED are folded.
    Ranks count from 1.
    """
    fact = value.fact
    heading = div(
        "chain lead",
        render_fact_end(fact.subject),
        _render_relation(fact.relation),
        render_fact_end(fact.object),
        muted_text("may be one of these predicates"),
    )
    used = _predicates_of_best_query(context)
    rows = []
    for position, predicate in enumerate(value.predicates):
        is_used = str(predicate.iri) in used
        rows.append(_render_ranked(position, predicate, is_used, context))
    if not rows:
        rows = [div("body", "no predicate: no linked vertex leads to it")]
    shown = rows[:MAX_RANKED]
    folded = rows[MAX_RANKED:]
    if folded:
        more = muted_text(f"{len(folded)} more")
        shown.append(div("band", collapsible(more, *folded, key="ranked")))
    return div("ranks", heading, *shown)


def _predicates_of_best_query(context: RenderContext) -> set[str]:
    """Return the IRIs of the predicates of the first selected query, without angle brackets.

    If several steps of the run selected queries, the last one counts. Empty if none is done.
    """
    queries: Sequence[CandidateQuery] = ()
    for step in context.steps:
        if step.done and isinstance(step.output, QuerySelection):
            queries = step.output.queries
    if not queries:
        return set()
    return {predicate.strip("<>") for predicate in pattern_predicates(queries[0])}


def _render_ranked(
    position: int, predicate: RankedPredicate, is_used: bool, context: RenderContext
) -> Html:
    """Render a row with rank, name, direction, similarity and IRI of a predicate.

    ``position`` counts from 0, the shown rank from 1. A used predicate is marked. Where the person
    can ask the graph, a button asks for examples of its triples; these are shown below the row once
    they are there.
    """
    arrow = span("soft", "→", title="from subject to object")
    if predicate.direction == "in":
        arrow = span("soft", "←", title="from object to subject")
    name = [tag("b" if is_used else "span", shorten(predicate.name)), " ", arrow]
    if is_used:
        name += [" ", state_badge("kept", "used")]
    examples_button: object = ""
    if context.is_interactive:
        examples_button = button("examples", "examples", class_="ghost", arg=position)
    row = div(
        "rank used" if is_used else "rank",
        span("num", position + 1),
        span("cut", *name),
        bar(predicate.similarity),
        span("num", f"{predicate.similarity:.2f}"),
        span("cut", render_curie(predicate.iri, context)),
        examples_button,
    )
    examples = render_graph_result(f"examples {position}", context)
    return join(row, div("body", examples) if examples else "")


def render_generated_queries(value: GeneratedQueries, context: RenderContext) -> Html:
    """Render how many combinations there were, and the queries that were kept.

    The first MAX_KEPT queries are shown with their SPARQL, and each can be taken as the only query.
    The others are in a folded table.
    """
    kept = len(value.queries)
    text = "no combination"
    if kept:
        is_cut = kept < value.before_truncation
        kept_text = "all kept"
        if is_cut:
            kept_text = f"{kept:,} kept (query_num)"
        text = f"{pluralize(value.before_truncation, 'combination')}, {kept_text}"
    parts = [muted_text(text)]
    for position, query in enumerate(value.queries[:MAX_KEPT]):
        rank = span("num", position + 1)
        head = _render_query_head(rank, query)
        parts.append(
            render_query_block(position, query.sparql, context, head=head, can_replace=True)
        )
    if kept > MAX_KEPT:
        parts.append(_render_other_queries(value.queries, MAX_KEPT, context))
    return div("body stack", *parts)


def render_query_selection(value: QuerySelection, context: RenderContext) -> Html:
    """Render the first MAX_KEPT selected queries with their SPARQL, or a remark that there are none.

    All candidate queries are in a folded table. Where the person can choose, each has a button that
    selects it instead.
    """
    parts = []
    for position, query in enumerate(value.queries[:MAX_KEPT]):
        head = _render_query_head(state_badge("kept", "kept"), query)
        parts.append(render_query_block(position, query.sparql, context, head=head))
    if not value.queries:
        parts.append(note("no query was kept"))
    generated = context.input_of(GeneratedQueries)
    if generated and generated.queries:
        parts.append(_render_other_queries(generated.queries, 0, context))
    return div("body stack", *parts)


def _render_query_head(mark: Html, query: CandidateQuery) -> Html:
    """Render a mark, the score of a query as a bar and a number of two digits, and its predicates' names."""
    names = " · ".join(map(shorten, query.predicates))
    return div(
        "row",
        mark,
        muted_text("score"),
        span("minibar", bar(query.score)),
        span("num", f"{query.score:.2f}"),
        span("soft cut", names),
    )


def _render_other_queries(
    queries: Sequence[CandidateQuery], skipped: int, context: RenderContext
) -> Html:
    """Render a folded table of queries, without the first ``skipped`` of them.

    A row has score, predicates and patterns, and if none are skipped and the person can choose, a
    button that selects the query. At most MAX_OTHERS rows are shown, with the number of the others
    below.
    """
    can_be_chosen = context.is_interactive and not skipped
    rows = []
    shown = queries[: skipped + MAX_OTHERS]
    read_as = _read_queries(shown, context)
    for position, query in enumerate(shown):
        if position < skipped:
            continue
        names = shorten(" · ".join(query.predicates))
        patterns = []
        for line in read_as[position].splitlines():
            patterns.append(join(shorten(line), tag("br")))
        row = [f"{query.score:.2f}", names, join(*patterns)]
        if can_be_chosen:
            row.append(button("take this one", "take", class_="ghost", arg=position))
        rows.append(row)
    number = len(queries) - skipped
    text = pluralize(number, "other candidate query")
    if not skipped:
        text = "the candidate query"
        if number > 1:
            text = f"all {pluralize(number, 'candidate query')}"
    summary = muted_text(text)
    headings = ["score", "predicates", "reads as"]
    if can_be_chosen:
        headings.append("")
    query_table = table(headings, rows)
    omitted = omitted_count(number - len(rows))
    return collapsible(summary, query_table, omitted, key="other-queries")


def _read_queries(queries: Sequence[CandidateQuery], context: RenderContext) -> dict[int, str]:
    """Return, by position, the patterns of each query as text, one a line, with the names of terms.

    Where queries with other predicates would read the same, they have IRIs instead.
    """

    def read_names(position: int) -> str:
        patterns = queries[position].patterns
        lines = []
        for pattern in patterns:
            lines.append(query_part_text(pattern, context.names))
        return "\n".join(lines)

    def read_iris(position: int) -> str:
        patterns = queries[position].patterns
        lines = []
        for pattern in patterns:
            lines.append(single_line(" ".join(pattern)))
        return "\n".join(lines)

    positions = range(len(queries))
    return tell_apart(positions, (read_names, read_iris))


VIEWS: Mapping[type, View] = {
    Classification: render_classification,
    GeneratedQueries: render_generated_queries,
    LinkedRelation: render_linked_relation,
    QIR: render_qir,
    RephrasedQuestion: render_rephrased_question,
    QuerySelection: render_query_selection,
}
