"""RDF terms, triples and queries as HTML: labels, CURIEs, SPARQL with its PREFIX lines."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from pygments.lexers.rdf import SparqlLexer
from pygments.token import Comment, Keyword, Literal, Name, Punctuation, _TokenType
from rdflib import BNode, URIRef
from rdflib import Literal as RdfLiteral

from kgwb.flow import Candidate
from kgwb.run import Run
from kgwb.run.agents import View
from kgwb.run.steps import Step
from kgwb.show import html as h
from kgwb.show.html import Html
from kgwb.terms import (
    DisplayNames,
    Term,
    Triple,
    choose_prefix,
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
"""Supporting triples shown of one value."""
MAX_TYPES = 3
MAX_RELATIONS = 6
QUOTED_STRING_PATTERN = r"\"(?:[^\"\\]|\\.)*\""


@dataclass(frozen=True, slots=True)
class RenderContext:
    """What is known where a record is rendered."""

    names: DisplayNames = field(default_factory=dict)
    prefixes: Mapping[str, str] = field(default_factory=dict)
    """The graph's own prefixes, by namespace."""
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
    graph_results: Mapping[str, Any] = field(default_factory=dict)
    """What the graph replied to questions about this record, by the name of the question."""

    def input_of(self, input_type: type[T]) -> T | None:
        """Return the first input of a type; None if there is none."""
        for value in self.inputs:
            if isinstance(value, input_type):
                return value
        return None

    def prefix_of(self, namespace: str) -> str:
        """Return the prefix of a namespace; the graph's own if it has one."""
        return self.prefixes.get(namespace) or choose_prefix(namespace)

    def with_names(self, names: Iterable[tuple[URIRef, str]]) -> RenderContext:
        """Return this context with the names that a record has of its own IRIs.

        A name that is known already stays.
        """
        own = {str(iri): name for iri, name in names}
        return replace(self, names={**own, **self.names})


def context_of(
    run: Run, step: Step | None = None, steps: Iterable[Step] = (), **known: Any
) -> RenderContext:
    """Return what a run's record knows. Nothing is asked of the graph.

    ``steps`` may stand for those of the run, where a widget also shows stale ones.
    """
    steps = tuple(steps) or tuple(run.steps)
    return RenderContext(
        names=run.display_names(),
        prefixes=prefixes_of(run),
        inputs=tuple(step.inputs.values()) if step else (),
        steps=steps,
        views=run.system.views,
        **known,
    )


def prefixes_of(run: Run) -> Mapping[str, str]:
    """Return the prefixes of a run's graph by namespace; none for a replay or an endpoint."""
    return getattr(run.unrecorded_graph, "prefixes", {})


# Terms and triples


def render_curie(iri: str, context: RenderContext) -> Html:
    """Render an IRI as a link with the text "fl:Harry_Potter"."""
    return h.iri_link(iri, curie_text(iri, context), "curie")


def curie_text(iri: str, context: RenderContext) -> str:
    """Return an IRI as "fl:Harry_Potter"; whole if it cannot be split."""
    namespace, local = split_iri(str(iri))
    if namespace and local:
        return f"{context.prefix_of(namespace)}:{local}"
    return str(iri)


def render_term(term: Term, context: RenderContext) -> Html:
    """Render an IRI by its label, or a literal with its language or datatype."""
    if isinstance(term, URIRef):
        return h.iri_link(term, format_term(term, context.names))
    annotation = "blank node"
    if isinstance(term, RdfLiteral):
        annotation = term.language or name_from_iri(term.datatype or "")
    text = h.tag("bdi", shorten(str(term)))
    return h.join(text, " ", h.muted_text(annotation)) if annotation else text


def triple_key(triple: Triple) -> str:
    """Return a short key of a triple's content, by which a page names it."""
    return hashlib.sha256(repr(triple).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def render_triples(
    triples: Sequence[Triple], context: RenderContext, answers: Iterable[Term] = ()
) -> Html:
    """Render triples as chains of pills, one a line; pills of answers have a double frame."""
    answer_texts = {str(term) for term in answers}
    chains = [
        _render_triple(triple, context, answer_texts) for triple in triples[:MAX_SUPPORT_TRIPLES]
    ]
    hidden = len(triples) - MAX_SUPPORT_TRIPLES
    more = h.muted_text(f"and {pluralize(hidden, 'more triple')}") if hidden > 0 else ""
    return h.div("stack tight", *chains, more)


def _render_triple(triple: Triple, context: RenderContext, answer_texts: set[str]) -> Html:
    subject, predicate, object_ = triple
    relation = h.tag("em", format_term(predicate, context.names))
    parts = [
        _render_term_pill(subject, context, answer_texts),
        h.span("rel", relation, title=shorten(str(predicate))),
        _render_term_pill(object_, context, answer_texts),
    ]
    if context.can_mute and not isinstance(subject, BNode) and not isinstance(object_, BNode):
        mute = h.button(
            "Mute",
            "mute",
            class_="ghost",
            arg=triple_key(triple),
            title="does the answer stand without this triple?",
        )
        parts.append(mute)
    return h.div("chain", *parts)


def _render_term_pill(term: Term, context: RenderContext, answer_texts: set[str]) -> Html:
    pill_class = "unk asked plain" if str(term) in answer_texts else "ent"
    tooltip = shorten(str(term)) if isinstance(term, URIRef) else None
    return h.span(pill_class, format_term(term, context.names), title=tooltip)


def render_candidate(candidate: Candidate, context: RenderContext) -> Html:
    """Render a vertex: its label and types, below them its CURIE and what tells it apart."""
    types = [h.span("type", shorten(name)) for name in candidate.types[:MAX_TYPES]]
    details = candidate.description or ", ".join(candidate.relations[:MAX_RELATIONS])
    under = [render_curie(candidate.iri, context)]
    if details:
        under += [h.safe(" · "), h.safe(shorten(details))]
    head = h.span("row", h.tag("b", shorten(candidate.label)), *types)
    return h.join(head, h.span("under soft", *under))


# Queries


def lay_out(query: str) -> str:
    """Return a query of one line with a line for each triple pattern.

    A query of several lines is returned as its author laid it out.
    """
    prologue, body = _split_prologue(query.strip())
    if "\n" in body:
        return query
    lines = [""]
    indents = [0]
    depth = 0

    def begin_line() -> None:
        lines.append("")
        indents.append(depth)

    for token_type, text in SPARQL_LEXER.get_tokens(body):
        if token_type is not Punctuation:
            if token_type is Keyword and text.upper() == "FILTER":
                begin_line()
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
    laid_out = [
        "  " * indent + line.strip()
        for indent, line in zip(indents, lines, strict=True)
        if line.strip()
    ]
    return prologue + "\n".join(laid_out)


def _split_prologue(query: str) -> tuple[str, str]:
    """Split a query after its PREFIX lines."""
    prologue = re.match(r"(?:PREFIX[^\n]*\n)*", query)
    end = prologue.end() if prologue else 0
    return query[:end], query[end:]


def readable_query(query: str, context: RenderContext) -> str:
    """Return a query laid out, with CURIEs and PREFIX lines where that is safe.

    The query means the same as before.
    """
    if re.search(r"\bPREFIX\b|\bBASE\b", query, re.I):
        return lay_out(query)
    namespaces: dict[str, str] = {}

    def to_curie(match: re.Match[str]) -> str:
        if match["iri"] is None:  # quoted text, which is no IRI whatever it holds
            return match[0]
        namespace, local = split_iri(match["iri"])
        prefix = context.prefix_of(namespace)
        is_plain_local = re.fullmatch(r"[A-Za-z_][\w-]*", local, re.ASCII)
        is_plain_prefix = re.fullmatch(r"[A-Za-z]\w*", prefix)
        if not is_plain_local or not is_plain_prefix:
            return match[0]
        if namespaces.setdefault(prefix, namespace) != namespace:
            return match[0]
        return f"{prefix}:{local}"

    iri_or_text = rf"{QUOTED_STRING_PATTERN}|<(?P<iri>[A-Za-z][\w+.-]*:[^<>\"\s]+)>"
    body = re.sub(iri_or_text, to_curie, lay_out(query))
    prologue = [f"PREFIX {prefix}: <{namespace}>\n" for prefix, namespace in namespaces.items()]
    return "".join(prologue) + body


def render_query(query: str, context: RenderContext) -> Html:
    """Render a query with PREFIX lines and highlighting."""
    parts = []
    for token_type, text in SPARQL_LEXER.get_tokens(readable_query(query, context)):
        token_class = _token_class(token_type)
        parts.append(h.span(token_class, text) if token_class else h.safe(text))
    return h.preformatted(*parts)


def _token_class(token_type: _TokenType) -> str:
    """Return the CSS class of a token type: its own, or that of the type it belongs to."""
    for group, token_class in TOKEN_CLASSES.items():
        if token_type[: len(group)] == group:
            return token_class
    return ""


def render_term_labels(query: str, context: RenderContext) -> Html:
    """Render a table of the terms of a query with their labels; nothing if none is known."""
    namespaces = dict(re.findall(r"PREFIX\s+([\w-]*):\s*<([^>]*)>", query))
    body = re.sub(rf"PREFIX[^\n]*\n|{QUOTED_STRING_PATTERN}", "", query)
    iris = []
    for iri, prefix, local in re.findall(r"<([^<>\s]+)>|([\w-]+):([\w-]+)", body):
        iris.append(iri or namespaces.get(prefix, "") + local)
    rows = [
        (render_curie(iri, context), context.names[iri])
        for iri in dict.fromkeys(iris)
        if iri in context.names
    ]
    if not rows:
        return Html()
    table = h.table(("term", "label"), rows[: h.MAX_ROWS])
    return h.collapsible(
        h.muted_text("what its terms are called"), table, key="legend", expanded=True
    )
