"""The agents of Surveyor that write a query, execute it, and review its result."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import partial
from itertools import chain
from typing import Literal

import rdflib
from pydantic import model_validator
from rdflib import URIRef

from kgwb.build import (
    NOT_IN_GRAPH,
    Check,
    ClassGroup,
    GoldQuery,
    GraphError,
    GraphUnreachableError,
    Prefixes,
    Reading,
    Reply,
    ResultSet,
    Run,
    Rung,
    SchemaFacts,
    SurveyWriter,
    Term,
    Vocabulary,
    add_missing_prefixes,
    agent,
    analyze_query,
    ask_model,
    bracket_iri,
    execute_sparql,
    execute_unrecorded,
    find_iris,
    find_measure,
    format_exactly,
    format_typed_literal,
    get_names_in_rows,
    get_output,
    inspect_result,
    list_first,
    pluralize,
    quote_text,
    quote_unless_number,
    short_name,
    split_clauses,
    tell_apart,
    to_curie,
    validate_query,
)
from kgwb.systems.surveyor.mentions import ClassNames, NamedClasses, format_mentions, iris_of
from kgwb.systems.surveyor.records import (
    Asked,
    Draft,
    Executed,
    Mentions,
    Part,
    Review,
    has_nothing,
)
from kgwb.systems.surveyor.settings import SurveyorSettings

CHARS_PER_TOKEN = 4
"""Characters of a token on average."""
MAX_TYPED_CANDIDATES = 3
"""Candidates of a mention whose types are shown to the drafter."""


def excerpt_for_question(
    writer: SurveyWriter, mentions: Mentions, run: Run, requested: Iterable[URIRef] = ()
) -> Part:
    """Return the excerpt of the survey with the classes that matter to a question, the most important first.

    First come the classes that the drafter requested; then those that the question is about, or
    that a mention has candidates of; then those that have a value found for a mention. These are
    named: each is described in full. What their predicates lead to has a line, and the others only
    a title. Where nothing is named, all are, and the things without a class come last. A class that
    the survey describes at the predicates that lead to it is left out, unless it is wanted by name.
    """
    requested = set(requested)
    wanted = requested.union(ClassNames.of_survey(writer).find_all(_class_names_in(mentions)))
    value_predicates: set[URIRef] = set()
    for mention in mentions.found:
        for match in mention.values:
            if match.predicate not in writer.labels:
                value_predicates.add(match.predicate)

    ranks: dict[int, tuple[bool, bool, bool, bool]] = {}
    for position, group in enumerate(writer.groups):
        classes = iris_of(group)
        is_unwanted = wanted.isdisjoint(classes)
        if is_unwanted and writer.is_inlined(group):
            continue
        lacks_value = value_predicates.isdisjoint(prop.predicate for prop in group.properties)
        is_unrequested = requested.isdisjoint(classes)
        ranks[position] = (is_unrequested, is_unwanted, lacks_value, not classes)
    positions = sorted(ranks, key=ranks.__getitem__)
    named = set()
    for position in positions:
        is_unrequested, is_unwanted, lacks_value, _ = ranks[position]
        if not (is_unrequested and is_unwanted and lacks_value):
            named.add(position)
    return _write_excerpt(positions, named or set(positions), writer, run)


def _class_names_in(mentions: Mentions) -> list[str]:
    """Return the names of the classes that a question is about; names may be repeated.

    After those that the model named come the types of the first MAX_TYPED_CANDIDATES candidates of
    each mention. A candidate has the names of its types, and not their IRIs: of several classes of
    one name, all are meant.
    """
    names = list(mentions.classes)
    for mention in mentions.found:
        for candidate in mention.candidates[:MAX_TYPED_CANDIDATES]:
            names += candidate.types
    return names


def _write_excerpt(
    positions: Iterable[int], named: Set[int], writer: SurveyWriter, run: Run
) -> Part:
    """Return an excerpt with the groups at these positions that fit in ``survey_tokens``, in order.

    Those that are ``named`` are described in full, or in a line where there is no room for more. What
    they lead to has a line. The first group is in it even if it is too long. Remarks on the survey
    follow, and a line that names the groups that were left out; these lines are not counted.
    """
    max_chars = SurveyorSettings.of_run(run).survey_tokens * CHARS_PER_TOKEN
    near: set[int] = set()
    for position in named:
        near.update(writer.positions_led_to(position))
    used_chars = 0
    texts: list[str] = []
    shown: list[int] = []
    omitted: list[ClassGroup] = []
    for position in positions:
        left = max_chars - used_chars
        is_named = position in named
        text = ""
        if is_named:
            text = writer.group_text(position)
        if is_named and (not texts or len(text) <= left):
            shown.append(position)
        else:
            if is_named or position in near:
                text = writer.outline(position)
            if is_named and len(text) <= left:
                text = writer.outline(position, left - len(text))
            if not text or len(text) > left:
                omitted.append(writer.groups[position])
                continue
        used_chars += len(text)
        texts.append(text)

    lines = [*texts, *writer.remarks()]
    if omitted:
        titles = ", ".join(_format_omitted(group, writer) for group in omitted)
        lines.append(f"Other classes, not shown here: {titles}")
    names = ClassNames.of_survey(writer)
    return Part(
        "\n".join(lines),
        tuple(_title_of(writer.groups[position], names) for position in shown),
        tuple(_title_of(group, names) for group in omitted),
        tuple((prefix, namespace) for namespace, prefix in writer.prefixes.items()),
        _find_unseen_classes(shown, writer),
    )


def _format_omitted(group: ClassGroup, writer: SurveyWriter) -> str:
    """Return the title of a group, and whether it has subclasses."""
    title = writer.format_title(group)
    if len(group.members) > 1:
        return f"{title} with subclasses"
    return title


def _title_of(group: ClassGroup, names: ClassNames) -> str:
    """Return the title of the top class of a group."""
    if group.top_class.iri is None:
        return group.top_class.name
    return names.titles[group.top_class.iri]


def _find_unseen_classes(shown: Iterable[int], writer: SurveyWriter) -> NamedClasses:
    """Return the classes of a survey, with their names, that the shown groups do not describe.

    In the survey of a large graph, a class may have no predicates because its instances were not
    looked at; such a class is not described either. Each stands once, those of the largest groups
    first.
    """
    described: set[URIRef] = set()
    for position in shown:
        described.update(iris_of(writer.groups[position]))
    unseen: dict[URIRef, str] = {}
    for group in writer.groups:
        for surveyed in (group.top_class, *group.members):
            is_unknown = writer.survey.sampled and surveyed.size and not surveyed.properties
            if surveyed.iri and (is_unknown or surveyed.iri not in described):
                unseen[surveyed.iri] = surveyed.name
    return tuple(unseen.items())


MAX_SHOWN_ERROR_CHARS = 600
"""Characters of an error that the reviewer sees."""
MAX_SHOWN_LITERAL_CHARS = 80
"""Characters of a literal that the reviewer sees."""
NUMBER_IN_QUESTION = re.compile(r"(?<![\w-])\d[\d.,]*(?![\w-])")
DIGIT_SEPARATOR = re.compile(r"(?<=\d)[.,](?=\d)")
MAX_OTHER_READINGS = 2
"""Other readings of one assumption that are offered."""
MAX_NAMED_CLASSES = 30
"""Classes that are named to a drafter who asked for one that does not exist."""


# The drafter


class AssumptionReply(Reply):
    """How the question was read, and how else it may be read."""

    taken: str
    others: list[str]

    @model_validator(mode="before")
    @classmethod
    def _read_text(cls, data: object) -> object:
        """Read a text as what was taken, as replies of earlier versions have it."""
        if isinstance(data, str):
            return {"taken": data, "others": []}
        return data


class DraftReply(Reply):
    """A query with what it asks for, or what the graph has nothing for."""

    reason: str
    sparql: str
    asked: Asked
    columns: list[str]
    assumptions: list[AssumptionReply]
    missing: str
    more: list[str]


def find_draft_problems(draft: Draft, mentions: Mentions, part: Part) -> Iterator[str]:
    """Yield what is wrong with a draft that a person puts in by hand.

    Its query must be a valid SELECT or ASK that only reads the graph. A draft without a query must
    say why there is none, as ``_find_missing_decision`` requires.
    """
    if not draft.sparql:
        problem = _find_missing_decision(draft.missing, draft.reason, draft.more, part)
        if problem:
            yield problem
        return
    try:
        form = validate_query(draft.sparql).form
    except GraphError as error:
        yield error.message
        return
    if form not in ("select", "ask"):
        yield f"the query is a {form.upper()}, but only SELECT and ASK can be used here"


@agent("drafter", check=find_draft_problems, kind="model")
def draft_query(mentions: Mentions, part: Part, run: Run) -> Draft:
    """Ask the model for a query that answers the question, given an excerpt of the survey.

    The draft has no query if the model replies that the graph lacks something (``missing``), or
    that it has to see other classes first (``more``). The model's request to see classes is ignored
    if it also wrote a query, or said what is missing and the excerpt left no class out. A reply
    with neither, or that asks only for classes that cannot be shown, is not valid. Raises
    InvalidReplyError if no reply is.
    """
    variables = _describe_input(mentions, part, run)
    check = Check("a query, or why there is none", partial(_find_draft_reply_problem, part))
    reply = ask_model("surveyor/drafter", variables, DraftReply, run, checks=(check,))
    query = add_prefixes(reply.sparql, part.prefixes)
    asks_for_classes = bool(_names_of(part).find_all(reply.more))
    if asks_for_classes and not query:
        return Draft("", reply.asked, reason=reply.reason, more=tuple(reply.more))
    return Draft(
        query,
        reply.asked,
        columns=tuple(reply.columns),
        assumptions=tuple(assumption.taken for assumption in reply.assumptions),
        missing="" if query else reply.missing,
        reason=reply.reason,
        readings=tuple(_list_readings(reply.assumptions)),
    )


def _describe_input(mentions: Mentions, part: Part, run: Run) -> dict[str, str]:
    """Return what the drafter and the reviewer are shown: the question, the survey, and what names may mean.

    The question has the readings that a person chose, and the day that the settings have.
    """
    question = mentions.question_as_read
    today = SurveyorSettings.of_run(run).today
    if today:
        question += (
            f'\nToday is {today}: write "{today}"^^xsd:date where the query needs it, not NOW().'
        )
    names = format_mentions(mentions, part.prefixes)
    return {"question": question, "survey": part.text, "names": names}


def _list_readings(assumptions: Iterable[AssumptionReply]) -> Iterator[Reading]:
    """Yield the other readings of each assumption, each once, at most MAX_OTHER_READINGS.

    Empty ones are left out, and those that are what was taken.
    """
    for assumption in assumptions:
        taken = " ".join(assumption.taken.split())
        others: dict[str, None] = {}
        for text in assumption.others:
            other = " ".join(text.split())
            if other not in ("", taken):
                others[other] = None
        for other in list(others)[:MAX_OTHER_READINGS]:
            yield Reading(taken, other)


def _find_draft_reply_problem(part: Part, reply: DraftReply) -> str:
    """Return the problem of a reply without a query and without a reason for it; else ""."""
    if reply.sparql.strip():
        return ""
    return _find_missing_decision(reply.missing, reply.reason, reply.more, part)


def _find_missing_decision(missing: str, reason: str, more: Sequence[str], part: Part) -> str:
    """Return the problem of a draft that has no query and nothing that could lead to one; "" if it has.

    It must say what is missing, ask for a class that can still be shown, or, if it asks for none,
    give a reason. The problem of classes that cannot be shown names up to MAX_NAMED_CLASSES that
    can.
    """
    names = _names_of(part)
    if missing.strip() or names.find_all(more):
        return ""
    if not more and reason.strip():
        return ""
    if not more:
        return "there is no query, and missing is empty"
    problem = f"nothing more can be shown of {list_first(more)}"
    if names.titles:
        known = list_first(names.titles.values(), MAX_NAMED_CLASSES)
        return f"{problem}; what can be shown are {known}"
    return (
        f"{problem}: write the query with the classes of the survey, "
        "or say in missing what the graph has nothing for"
    )


def _names_of(part: Part) -> ClassNames:
    """Return the names of the classes that a model may still ask to see, by the excerpt."""
    prefix_of = {namespace: prefix for prefix, namespace in part.prefixes}
    return ClassNames(part.unseen, prefix_of)


def add_prefixes(text: str, prefixes: Prefixes) -> str:
    """Return a query with the PREFIX lines that it lacks and that ``prefixes`` has.

    A text that is not a valid query is returned without the spaces around it: the reviewer is shown
    the error when the query is executed.
    """
    query = text.strip()
    try:
        return add_missing_prefixes(query, prefixes)
    except GraphError:
        return query


# The executor


@agent("executor", subject="place", kind="sparql")
def execute_draft(
    place: str, sparql: str, contradictions: tuple[str, ...], facts: SchemaFacts, run: Run
) -> Executed:
    """Execute a query, and look for signs of a mistake in its result.

    ``contradictions`` are what the survey denies of the query. ``place`` is "draft" or "revision 1"
    and so on. An error of the query is part of the result, so that the reviewer can correct it. The
    rows have no display names if the graph cannot be asked for them. Raises GraphUnreachableError.
    """
    try:
        result = execute_sparql(run.kg, sparql)
    except GraphUnreachableError:  # a revision of the query does not help
        raise
    except GraphError as error:
        return Executed(sparql, error=error.message, contradictions=contradictions)
    findings = tuple(inspect_result(run.kg, sparql, result, facts))
    truth = None
    measure = None
    if isinstance(result, bool):
        truth = result
        result = _find_witness(sparql, run) if truth else ResultSet((), ())
    else:
        measure = find_measure(run.kg, sparql, result)
    names: Mapping[URIRef, str] = {}
    try:
        names = get_names_in_rows(result.rows, run.kg)
    except GraphError as error:
        run.note(f"the names of the things in the rows could not be read: {error.message}")
    return Executed(
        sparql,
        result.variables,
        result.rows,
        findings,
        truth=truth,
        names=tuple(sorted(names.items())),
        measure=measure.name if measure else "",
        measured=measure.values if measure else (),
        contradictions=contradictions,
    )


def _find_witness(sparql: str, run: Run) -> ResultSet:
    """Return one row that makes an ASK true; no row if it has no variables or the graph fails."""
    clauses = split_clauses(sparql)
    select = f"{clauses.prologue} SELECT * {clauses.dataset} WHERE {{ {clauses.where} }} LIMIT 1"
    try:
        return run.kg.select(select)
    except GraphError as error:
        run.note(f"what makes the answer true could not be read: {error.message}")
        return ResultSet((), ())


def format_result(executed: Executed, max_rows: int, prefixes: Prefixes = ()) -> str:
    """Return a result as text for the reviewer: its size, the findings, and the first ``max_rows`` rows.

    The measure of a superlative is behind the columns. What contradicts the survey, and a finding
    that is likely to be a mistake, begins with "!". Everything that the graph says is in
    quotes. Different terms in the rows never look the same. How many rows are left out is said. Of
    a query that could not be executed, the error is returned, cut at MAX_SHOWN_ERROR_CHARS.
    """
    contradictions = [f"! {text}" for text in executed.contradictions]
    if executed.error:
        error = quote_text(executed.error, MAX_SHOWN_ERROR_CHARS)
        return "\n".join([f"! It could not be run: {error}", *contradictions])
    heading = str(executed)
    if executed.truth and executed.rows:
        heading += ", for example of"
    elif len(executed.columns) > 1:
        heading += _count_distinct(executed)
    lines = [heading, *contradictions]
    for finding in executed.findings:
        bullet = "-"
        if finding.wrong:
            bullet = "!"
        lines.append(f"{bullet} {finding}")
    columns = [f"?{column}" for column in executed.columns]
    shown_rows: Sequence[Sequence[Term | None]] = executed.rows[:max_rows]
    if executed.measure:
        columns.append(f"[measure, no column: {executed.measure}]")
        measured = executed.measured[:max_rows]
        shown_rows = [(*row, value) for row, value in zip(shown_rows, measured, strict=True)]
    if executed.rows:
        lines.append(" | ".join(columns))
    texts = _format_terms(shown_rows, dict(executed.names), prefixes)
    for row in shown_rows:
        lines.append(" | ".join("" if term is None else texts[term] for term in row))
    if len(executed.rows) > max_rows:
        lines.append(f"and {pluralize(len(executed.rows) - max_rows, 'more row')}")
    return "\n".join(lines)


def _count_distinct(executed: Executed) -> str:
    """Return how many different values each column has that has fewer than rows; "" if none has."""
    texts = []
    for position, column in enumerate(executed.columns):
        different = {row[position] for row in executed.rows} - {None}
        if 0 < len(different) < len(executed.rows):
            texts.append(f"{len(different)} different ?{column}")
    if texts:
        return f", with {', '.join(texts)}"
    return ""


def _format_terms(
    rows: Sequence[Sequence[Term | None]], names: Mapping[URIRef, str], prefixes: Prefixes
) -> dict[Term, str]:
    """Return a text for each term in the rows; texts of different terms differ.

    It is the local part of an IRI with its name in quotes, a number or date as it is, and any other
    term in quotes, cut at MAX_SHOWN_LITERAL_CHARS. Where that is not enough, it is a CURIE with the name, or a literal
    with its language or datatype; and where that is not either, the term in full.
    """
    prefix_of = {namespace: prefix for prefix, namespace in prefixes}

    def format_shortly(term: Term) -> str:
        if isinstance(term, URIRef):
            return f"{short_name(term)} {quote_text(names.get(term, ''))}"
        return quote_unless_number(term, MAX_SHOWN_LITERAL_CHARS)

    def format_fully(term: Term) -> str:
        """Return a CURIE with its name, or a literal with its language or datatype."""
        if isinstance(term, URIRef):
            return f"{to_curie(term, prefix_of)} {quote_text(names.get(term, ''))}"
        if isinstance(term, rdflib.Literal):
            return format_typed_literal(term, prefix_of, MAX_SHOWN_LITERAL_CHARS)
        return format_exactly(term)

    terms = [term for term in chain.from_iterable(rows) if term is not None]
    return tell_apart(terms, (format_shortly, format_fully, format_exactly))


# The reviewer


def is_open(mentions: Mentions, drafted: Draft, executed: Executed) -> bool:
    """Return whether something about a draft or its result foretells that the draft is wrong.

    - It contradicts the survey or could not be executed; a finding is more than a description.
    - The result is empty, zero or "no", or has several rows where one value is asked for.
    - A number of the question is not in the query, or none of its names, see ``_uses_names``.
    - A label is selected, and not the thing that has it.

    Each of these is a sign if at least half of the drafts that had it were wrong, among 40 wrong and
    40 right ones (``benchmarks/harbour/drafts.jsonl``), or if it could not occur there. Together they
    found 26 of the wrong ones and none of the right ones; of 153 right drafts of readers, over two
    graphs, 16 had one. No sign is a union, a negation, a subquery, a group, or a large result.
    An assumption leaves nothing open: the other readings are offered to the person.
    """
    if executed.error or executed.contradictions:
        return True
    if not all(finding.settled for finding in executed.findings):
        return True
    is_empty = not executed.rows or has_nothing(executed.rows[0])
    if executed.truth is False or (executed.truth is None and is_empty):
        return True
    if drafted.asked == "one" and len(executed.rows) > 1:
        return True
    return (
        _lacks_number(mentions, drafted.sparql)
        or not _uses_names(mentions, drafted.sparql)
        or _selects_label(drafted.sparql)
    )


def _lacks_number(mentions: Mentions, sparql: str) -> bool:
    """Return whether the question has a number that is no part of a name, and that a query lacks."""
    question = mentions.question
    for name in mentions.names:
        question = question.replace(name, " ")
    query = DIGIT_SEPARATOR.sub("", sparql)
    for number in NUMBER_IN_QUESTION.findall(question):
        if DIGIT_SEPARATOR.sub("", number).strip(".,") not in query:
            return True
    return False


def _uses_names(mentions: Mentions, sparql: str) -> bool:
    """Return whether a query has one of the names of the question, or the question has none.

    A name is used by the IRI of a candidate, by a value or a thing that has it, or as a text.
    """
    iris = find_iris(sparql, {})
    text = sparql.casefold()
    for mention in mentions.found:
        terms: set[Term] = {candidate.iri for candidate in mention.candidates}
        texts = [mention.name]
        for match in mention.values:
            terms.update((match.value, *match.subjects))
            texts.append(str(match.value))
        if not terms.isdisjoint(iris) or any(each.casefold() in text for each in texts):
            return True
    return not mentions.found


def _selects_label(sparql: str) -> bool:
    """Return whether a query selects the object of a label predicate."""
    try:
        parts = analyze_query(sparql)
    except GraphError:
        return False
    labels = set(map(bracket_iri, Vocabulary().labels))
    names = {object_ for _, predicate, object_ in parts.steps if predicate in labels}
    return not names.isdisjoint(parts.projected_variables)


class ReviewReply(Reply):
    """The verdict, with the better query where there is one."""

    reason: str
    verdict: Literal["fine", "revise", "not in this graph"]
    sparql: str
    columns: list[str]
    missing: str


@agent("reviewer", subject="place", kind="model")
def review_draft(
    place: str, mentions: Mentions, part: Part, drafted: Draft, executed: Executed, run: Run
) -> Review:
    """Ask the model whether a query and its result answer the question.

    The model must reply with a query if its verdict is "revise", and only then. If the graph does
    not have what is asked for, it must say what that is, or give a reason. The revised draft
    keeps the kind of answer and the assumptions of the old one, and also the columns unless the
    model names others. ``place`` is that of the old one, see ``execute_draft``. Raises
    InvalidReplyError if no reply is valid.
    """
    max_rows = SurveyorSettings.of_run(run).shown_rows
    variables = _describe_input(mentions, part, run)
    variables["draft"] = _format_draft(drafted)
    variables["result"] = format_result(executed, max_rows, part.prefixes)
    checks = (
        Check("a query if and only if it revises", _find_review_problem),
        Check("what is missing", _find_missing_reason),
    )
    reply = ask_model("surveyor/reviewer", variables, ReviewReply, run, checks=checks)
    if reply.verdict != "revise":
        return Review(reply.verdict, reply.missing or reply.reason)
    revised = Draft(
        add_prefixes(reply.sparql, part.prefixes),
        drafted.asked,
        columns=tuple(reply.columns) or drafted.columns,
        assumptions=drafted.assumptions,
        reason=reply.reason,
        readings=drafted.readings,
    )
    return Review("revise", reply.reason, revised)


def _format_draft(draft: Draft) -> str:
    """Return a draft's query without its PREFIX lines, with each assumption as a comment line below it."""
    lines = [draft.sparql_without_prefixes]
    for assumption in draft.assumptions:
        lines.append(f"# assumed: {' '.join(assumption.split())}")
    return "\n".join(lines)


def _find_review_problem(reply: ReviewReply) -> str:
    """Return a problem if a reply has a query without the verdict "revise", or the reverse; else "".

    A query of blanks is none.
    """
    if bool(reply.sparql.strip()) == (reply.verdict == "revise"):
        return ""
    return "sparql goes with revise, and only with it"


def _find_missing_reason(reply: ReviewReply) -> str:
    """Return a problem if a reply says that the graph lacks something, but neither what nor why; else ""."""
    if reply.missing.strip() or reply.reason.strip() or reply.verdict != NOT_IN_GRAPH:
        return ""
    return "missing is empty"


ASKED_BY_KIND: dict[str, Asked] = {"list": "list", "count": "count", "boolean": "yes or no"}


def make_draft_rung(run: Run, gold: GoldQuery) -> Rung | None:
    """Return the gold query, to put in as the draft; None if the run's draft has the same result."""
    executed: Executed | None = get_output(run, "executor[draft]")
    if executed is not None and _has_gold_result(executed, gold, run):
        return None
    return Rung("drafter", {"drafter": Draft(gold.sparql, ASKED_BY_KIND[gold.kind])})


def _has_gold_result(executed: Executed, gold: GoldQuery, run: Run) -> bool:
    """Execute the gold query, and return whether an executed query has the same rows, in any order.

    Of an ASK the truth is compared. False if the gold query cannot be executed.
    """
    result = execute_unrecorded(gold.sparql, run)
    if result is None:
        return False
    if isinstance(result, bool):
        return executed.truth == result
    return not executed.error and set(executed.rows) == set(result.rows)


def make_review_rung(run: Run, gold: GoldQuery) -> Rung | None:
    """Return the verdict "fine", to put in at the first review; None if the reviewer gave it, or reviewed nothing."""
    review: Review | None = get_output(run, "reviewer[draft]")
    if review is None or review.verdict == "fine":
        return None
    return Rung("reviewer", {"reviewer[draft]": Review("fine", "gold")})
