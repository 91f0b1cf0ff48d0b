"""RDF terms, triples and queries as HTML: labels, CURIEs, SPARQL with its PREFIX lines."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from itertools import groupby
from typing import Any, TypeVar

from pygments.lexers.rdf import SparqlLexer
from pygments.token import Comment, Keyword, Literal, Name, Punctuation, _TokenType
from rdflib import BNode, URIRef
from rdflib import Literal as RdfLiteral

from kgwb.records import frozen
from kgwb.run import Run
from kgwb.run.agents import View
from kgwb.run.answers import Candidate
from kgwb.run.steps import Step
from kgwb.settings import Settings
from kgwb.show.html import (
    MAX_ROWS,
    Html,
    button,
    collapsible,
    div,
    iri_link,
    join,
    join_with_dots,
    muted_text,
    preformatted,
    safe,
    span,
    table,
    tag,
)
from kgwb.terms import (
    KNOWN_PREFIXES,
    DisplayNames,
    Term,
    Triple,
    choose_prefix,
    describe_term,
    format_term,
    name_from_iri,
    split_iri,
)
from kgwb.text import pluralize, shorten

T = TypeVar("T")
SPARQL_LEXER = SparqlLexer(stripnl=False, ensurenl=False)
TOKEN_CLASSES: Mapping[_TokenType, str] = {
    Keyword: "kw",
    Name.Function: "kw",
    Name.Label: "nm",
    Name.Namespace: "nm",
    Name.Tag: "nm",
    Name.Variable: "var",
    Literal: "lit",
    Comment: "px",
}
"""The CSS class of each kind of token in a query."""
MAX_SUPPORT_TRIPLES = 20
"""Supporting triples that are shown of one value."""
MAX_TYPES = 3
"""Classes that are shown of a candidate."""
MAX_RELATIONS = 6
"""Predicates that are shown of a candidate without a description."""
QUOTED_STRING_PATTERN = r"\"(?:[^\"\\]|\\.)*\""
IRI_PATTERN = r"<(?P<iri>[A-Za-z][\w+.-]*:[^<>\"\s]+)>"
KEY_CHARS = 16


@frozen
class RenderContext:
    """What is known where a record is rendered: names, the step, and what the person can do."""

    names: DisplayNames = field(default_factory=dict)
    prefixes: Mapping[str, str] = field(default_factory=dict)
    """The graph's own prefixes, by namespace."""
    used_prefixes: dict[str, str] = field(default_factory=dict, repr=False, compare=False)
    """The prefixes that this page uses, by namespace; each stands for one namespace only."""
    ambiguous_literals: frozenset[Term] = frozenset()
    """Literals whose text is also that of another term here; they have their type beside them."""
    inputs: tuple[Any, ...] = ()
    """The inputs of the step whose output is rendered."""
    steps: tuple[Step, ...] = ()
    """The steps of the run."""
    views: Mapping[type, View] = field(default_factory=dict)
    """The views of the system, by record class."""
    is_interactive: bool = False
    """Whether the person can choose, edit and ask here."""
    can_mute: bool = False
    """Whether a triple can be muted here, see ``Run.mute``."""
    settings: Settings | None = None
    """The settings of the run; None where there is no run."""
    graph_results: Mapping[str, Any] = field(default_factory=dict)
    """What the graph replied to questions about this record, by the name of the question.

    The names are "where", "degrees", "query 0", "why 0" and so on. A reply is a list of lines, or
    a record; under "degrees" there are numbers by IRI.
    """

    def input_of(self, input_type: type[T]) -> T | None:
        """Return the first input of a type; None if there is none."""
        for value in self.inputs:
            if isinstance(value, input_type):
                return value
        return None

    def prefix_of(self, namespace: str) -> str:
        """Return the prefix of a namespace, and remember it in ``used_prefixes``.

        It is the graph's own, else a well-known or a generated one. No other namespace has the same
        prefix in this context, so that CURIEs tell IRIs apart. A prefix of the graph's author is
        not generated for another namespace.
        """
        used = self.used_prefixes
        if namespace not in used:
            prefix = self.prefixes.get(namespace, "")
            taken = set(used.values())
            if not prefix or prefix in taken:
                prefix = choose_prefix(namespace, taken | self._authors_prefixes())
            used[namespace] = prefix
        return used[namespace]

    def _authors_prefixes(self) -> set[str]:
        """Return the graph's prefixes that its author chose.

        Those that are the usual ones of their namespaces are left out, since rdflib binds them in
        every graph.
        """
        prefixes = set()
        for namespace, prefix in self.prefixes.items():
            if KNOWN_PREFIXES.get(namespace) != prefix:
                prefixes.add(prefix)
        return prefixes

    def with_names(self, names: Iterable[tuple[URIRef, str]]) -> RenderContext:
        """Return a copy of this context that also has the given display names.

        An IRI that has a name in this context keeps it.
        """
        added = texts_by_iri(names)
        return replace(self, names={**added, **self.names})


def texts_by_iri(pairs: Iterable[tuple[URIRef, str]]) -> dict[str, str]:
    """Return pairs of an IRI and a text, such as its name, as a dict by the IRI as a plain str."""
    return {str(iri): text for iri, text in pairs}


def context_of(
    run: Run, step: Step | None = None, steps: Iterable[Step] = (), **known: Any
) -> RenderContext:
    """Return the context in which a step of a run is rendered. The graph is not queried for it.

    ``steps`` replaces the steps of the latest execution, for a widget that also shows stale ones.
    ``known`` are further fields of the context. ``step`` gives the context its inputs.
    """
    names = run.display_names()
    inputs: tuple[Any, ...] = ()
    if step is not None:
        inputs = tuple(step.inputs.values())
    context = RenderContext(
        names=names,
        prefixes=prefixes_of(run),
        inputs=inputs,
        steps=tuple(steps) or tuple(run.steps),
        views=run.system.views,
        settings=run.settings,
        **known,
    )
    # All pages of a run choose the same prefixes, whatever stands on them.
    for namespace in sorted({split_iri(iri)[0] for iri in names}):
        context.prefix_of(namespace)
    return context


def prefixes_of(run: Run) -> Mapping[str, str]:
    """Return the prefixes of a run's graph by namespace; none for a replay or an endpoint."""
    return getattr(run.unrecorded_graph, "prefixes", {})


# Terms and triples


def render_curie(iri: str, context: RenderContext) -> Html:
    """Render an IRI as a link with the text "fl:Harry_Potter"."""
    return iri_link(iri, curie_text(iri, context), "curie")


def curie_text(iri: str, context: RenderContext) -> str:
    """Return an IRI as "fl:Harry_Potter"; whole if it cannot be split.

    The prefix is that of the context. The local part is not escaped.
    """
    namespace, local = split_iri(str(iri))
    if namespace and local:
        return f"{context.prefix_of(namespace)}:{local}"
    return str(iri)


def render_term(term: Term, context: RenderContext) -> Html:
    """Render an IRI as a link with its label, or a literal with its language, else its datatype.

    A blank node is its name, or what it has, with the remark that it is one.
    """
    if isinstance(term, URIRef):
        return iri_link(term, format_term(term, context.names))
    annotation = "blank node"
    if isinstance(term, RdfLiteral):
        annotation = term.language or name_from_iri(term.datatype or "")
    if term in context.ambiguous_literals:
        annotation = describe_term(term)
    text = tag("bdi", format_term(term, context.names))
    if not annotation:
        return text
    return join(text, " ", muted_text(annotation))


def render_cell(term: Term | None, context: RenderContext) -> Html:
    """Render a term in a table of results; nothing for None, where the variable is unbound."""
    if term is None:
        return Html()
    return render_term(term, context)


def triple_key(triple: Triple) -> str:
    """Return a short hash of a triple, which identifies it in the events of a page."""
    content = repr(triple).encode("utf-8", "surrogatepass")
    return hashlib.sha256(content).hexdigest()[:KEY_CHARS]


def render_triples(
    triples: Sequence[Triple], context: RenderContext, answers: Iterable[Term] = ()
) -> Html:
    """Render triples as chains of pills, one a line; pills of answers have a double frame.

    At most MAX_SUPPORT_TRIPLES are shown, and then how many more there are.
    """
    answer_terms = frozenset(answers)
    shown = triples[:MAX_SUPPORT_TRIPLES]
    lines = [_render_triple(triple, context, answer_terms) for triple in shown]
    omitted = len(triples) - MAX_SUPPORT_TRIPLES
    return div("stack tight", *lines, render_omitted_triples(omitted))


def render_omitted_triples(number: int) -> Html:
    """Render "and 3 more triples"; nothing if the number is 0 or less."""
    if number <= 0:
        return Html()
    count = pluralize(number, "more triple")
    return muted_text(f"and {count}")


def _render_triple(triple: Triple, context: RenderContext, answer_terms: frozenset[Term]) -> Html:
    """Render a triple as pill, arrow and pill, with a button to mute it where that is possible.

    A triple with a blank node cannot be muted, since a query cannot name it.
    """
    subject, predicate, object_ = triple
    relation = tag("em", format_term(predicate, context.names))
    parts = [
        _render_term_pill(subject, context, answer_terms),
        span("rel", "— ", relation, " →", title=shorten(str(predicate))),
        _render_term_pill(object_, context, answer_terms),
    ]
    has_blank_node = isinstance(subject, BNode) or isinstance(object_, BNode)
    if context.can_mute and not has_blank_node:
        names = [format_term(term, context.names) for term in triple]
        mute = button(
            "Mute",
            "mute",
            class_="ghost",
            arg=triple_key(triple),
            title=f"ask the question again without {shorten(' — '.join(names))}",
        )
        parts.append(mute)
    return div("chain", *parts)


def _render_term_pill(term: Term, context: RenderContext, answer_terms: frozenset[Term]) -> Html:
    """Render a term by its name in a frame, which is double if the term is among the answers.

    The tooltip of an IRI is the IRI. An ambiguous literal has its language or datatype beside it.
    """
    pill_class = "unk asked plain" if term in answer_terms else "ent"
    tooltip = None
    if isinstance(term, URIRef):
        tooltip = shorten(str(term))
    name = format_term(term, context.names)
    if term in context.ambiguous_literals:
        name = f"{name} ({describe_term(term)})"
    return span(pill_class, name, title=tooltip)


def render_candidate(candidate: Candidate, context: RenderContext) -> Html:
    """Render a vertex with its label and classes, and below them its CURIE and its description.

    At most MAX_TYPES classes are shown. A vertex without a description has up to MAX_RELATIONS of
    its predicates in its place.
    """
    head = [tag("b", shorten(candidate.label))]
    for name in candidate.types[:MAX_TYPES]:
        head.append(span("type", shorten(name)))
    details = candidate.description
    if not details:
        details = ", ".join(candidate.relations[:MAX_RELATIONS])
    curie = render_curie(candidate.iri, context)
    under = join_with_dots(curie, shorten(details))
    return join(span("row", *head), span("under soft", under))


# Queries


def lay_out(query: str) -> str:
    """Return a query of one line with a line for each triple pattern, indented by its braces.

    A line begins after "{" and "." and before "}" and FILTER; each brace indents by two blanks.
    PREFIX lines stay as they are. A query whose body has several lines already is returned
    unchanged.
    """
    prologue, body = _split_prologue(query.strip())
    if "\n" in body:
        return query
    lines = [""]
    indents = [0]
    depth = 0

    def begin_line() -> None:
        """Begin a new line, indented by the present depth."""
        lines.append("")
        indents.append(depth)

    for token_type, text in SPARQL_LEXER.get_tokens(body):
        if token_type is Keyword and text.upper() == "FILTER":
            begin_line()
        if token_type is not Punctuation:
            lines[-1] += text
            continue
        for sign in text:  # the lexer gives several signs together: "}."
            if sign == "{":
                depth += 1
            elif sign == "}":
                depth -= 1
                begin_line()
            lines[-1] += sign
            if sign in "{.":
                begin_line()

    laid_out = []
    for indent, line in zip(indents, lines, strict=True):
        text = line.strip()
        if text:
            laid_out.append("  " * indent + text)
    return prologue + "\n".join(laid_out)


def _split_prologue(query: str) -> tuple[str, str]:
    """Return the PREFIX lines at the beginning of a query, and the rest.

    Either may be empty. Only lines that begin with PREFIX in capitals count.
    """
    prologue = re.match(r"(?:PREFIX[^\n]*\n)*", query)
    assert prologue is not None, "the pattern matches an empty text too"
    end = prologue.end()
    return query[:end], query[end:]


def readable_query(query: str, context: RenderContext) -> str:
    """Return a query laid out, with CURIEs and PREFIX lines; it means the same as before.

    A query that has PREFIX or BASE already is only laid out.
    """
    namespaces: dict[str, str] = {}
    body = replace_iris(lay_out(query), context, namespaces)
    prologue = ""
    for prefix, namespace in namespaces.items():
        prologue += f"PREFIX {prefix}: <{namespace}>\n"
    return prologue + body


def replace_iris(text: str, context: RenderContext, namespaces: dict[str, str]) -> str:
    """Return a text with CURIEs for the IRIs in angle brackets.

    The namespace of each prefix is noted in ``namespaces``. An IRI stays whole inside of quotes, or
    if its CURIE would need escapes, or if its prefix stands for another namespace in
    ``namespaces``. A text that has PREFIX or BASE is not changed.
    """
    if re.search(r"\bPREFIX\b|\bBASE\b", text, re.I):
        return text

    def to_curie(match: re.Match[str]) -> str:
        """Return the CURIE of a matched IRI, or what was matched if that stays."""
        iri = match["iri"]
        if iri is None:  # a quoted string, in which an IRI is text
            return match[0]
        namespace, local = split_iri(iri)
        prefix = context.prefix_of(namespace)
        is_plain_local = re.fullmatch(r"[A-Za-z_][\w-]*", local, re.ASCII)
        is_plain_prefix = re.fullmatch(r"[A-Za-z]\w*", prefix)
        if not is_plain_local or not is_plain_prefix:
            return match[0]
        if namespaces.setdefault(prefix, namespace) != namespace:
            return match[0]
        return f"{prefix}:{local}"

    return re.sub(f"{QUOTED_STRING_PATTERN}|{IRI_PATTERN}", to_curie, text)


def declare_known_prefixes(query: str, context: RenderContext) -> str:
    """Return a query with a PREFIX for each known prefix that it uses and does not declare.

    Known are the prefixes that the page shows, those of the graph, and the well-known ones. The
    declarations are put before the first word, in the same line, so that the lines keep their
    numbers.
    """
    known: dict[str, str] = {}
    for prefixes in (KNOWN_PREFIXES, context.prefixes, context.used_prefixes):
        for namespace, prefix in prefixes.items():
            known[prefix] = namespace

    code = re.sub(f"{QUOTED_STRING_PATTERN}|{IRI_PATTERN}|#[^\n]*", " ", query)
    declared = set(re.findall(r"\bPREFIX\s+([\w.-]*):", code, re.I))
    used = dict.fromkeys(re.findall(r"(?<![\w:?$.-])([A-Za-z][\w.-]*):", code))
    declarations = ""
    for prefix in used:
        if prefix in known and prefix not in declared:
            declarations += f"PREFIX {prefix}: <{known[prefix]}> "
    return declarations + query


def render_query(query: str, context: RenderContext) -> Html:
    """Render a query laid out, with CURIEs and PREFIX lines, and with highlighting.

    The text means the same as the query.
    """
    parts = []
    all_tokens = SPARQL_LEXER.get_tokens(readable_query(query, context))
    for token_class, tokens in groupby(all_tokens, key=_token_class):
        text = "".join(text for _, text in tokens)
        if token_class:
            parts.append(span(token_class, text))
        else:
            parts.append(safe(text))
    return preformatted(*parts)


def _token_class(token: tuple[_TokenType, str]) -> str:
    """Return the CSS class of a token's type or of a more general one; "" if it has none.

    The colon of a CURIE belongs to its name.
    """
    token_type, text = token
    if text == ":":
        return "nm"
    for group, token_class in TOKEN_CLASSES.items():
        if token_type[: len(group)] == group:
            return token_class
    return ""


def render_term_labels(query: str, context: RenderContext) -> Html:
    """Render a table of a query's terms and their display names, expanded; nothing without any.

    At most MAX_ROWS terms are shown, in the order of the query.
    """
    rows = []
    for iri in dict.fromkeys(_iris_in_query(query)):
        if iri in context.names:
            curie = render_curie(iri, context)
            rows.append((curie, context.names[iri]))
    if not rows:
        return Html()
    labels = table(("term", "label"), rows[:MAX_ROWS])
    return collapsible(muted_text("labels of the terms"), labels, key="legend", expanded=True)


def _iris_in_query(query: str) -> list[str]:
    """Return the IRIs in the body of a query in their order, also those written as CURIEs.

    An IRI that occurs several times is returned as often. Quoted strings are not searched.
    """
    namespaces = dict(re.findall(r"PREFIX\s+([\w-]*):\s*<([^>]*)>", query))
    body = re.sub(rf"PREFIX[^\n]*\n|{QUOTED_STRING_PATTERN}", "", query)
    iris = []
    for iri, prefix, local in re.findall(r"<([^<>\s]+)>|([\w-]+):([\w-]+)", body):
        namespace = namespaces.get(prefix, "")
        iris.append(iri or namespace + local)
    return iris
