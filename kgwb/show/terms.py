"""Terms, triples and queries as a person reads them: labels, CURIEs, SPARQL with its PREFIX lines."""

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

from kgwb.flow import Candidate, Link, Term, Triple
from kgwb.kg.survey import Survey
from kgwb.kg.text import local_name, prefix_of, split
from kgwb.run import Run
from kgwb.run.record import Call, Step
from kgwb.show import html as h
from kgwb.show.html import Html
from kgwb.text import pluralize, shorten

T = TypeVar("T")
LEXER = SparqlLexer(stripnl=False, ensurenl=False)
MOST_SUPPORT = 20
"""Supporting triples that HTML shows of one value."""
CLASSES: Mapping[_TokenType, str] = {
    **dict.fromkeys((Keyword, Name.Function), "kw"),
    **dict.fromkeys((Name.Label, Name.Namespace, Name.Tag), "nm"),
    **{Name.Variable: "var", Literal: "lit", Comment: "px"},
}
"""The class of each kind of token in a query."""


@dataclass(frozen=True, slots=True)
class Around:
    """What is known where a record is shown."""

    names: h.Names = field(default_factory=dict)
    prefixes: Mapping[str, str] = field(default_factory=dict)
    """The graph's own prefixes, by namespace."""
    inputs: tuple[Any, ...] = ()
    """What came in to the step that yielded the record."""
    steps: tuple[Step, ...] = ()
    """The steps of the run."""
    live: bool = False
    """Whether the person may choose, edit and ask here."""
    mutable: bool = False
    """Whether a triple can be muted here, see Run.mute."""
    more: Mapping[str, Any] = field(default_factory=dict)
    """What was asked of the graph about this record, by the name of the question."""

    def of(self, form: type[T]) -> T | None:
        """What came in to the step, by its type."""
        return next((value for value in self.inputs if isinstance(value, form)), None)

    def prefix_of(self, namespace: str) -> str:
        """The prefix of a namespace, the graph's own if it has one."""
        return self.prefixes.get(namespace) or prefix_of(namespace)

    def named(self, names: Iterable[tuple[URIRef, str]]) -> Around:
        """With what a record itself calls its IRIs, where nothing else does."""
        return replace(self, names={**{str(iri): name for iri, name in names}, **self.names})


def around(run: Run, step: Step | None = None, steps: Iterable[Step] = (), **known: Any) -> Around:
    """What a run's record knows of its terms; nothing is asked of a graph but a local one's names."""
    steps = tuple(steps) or tuple(run.steps)
    return Around(
        names_of(run, steps),
        prefixes_of(run),
        tuple(step.inputs.values()) if step else (),
        steps,
        **known,
    )


def prefixes_of(run: Run) -> Mapping[str, str]:
    """The prefixes of a run's graph by namespace; none of a replay's, or an endpoint's."""
    return getattr(run.graph, "prefixes", {})


def names_in(steps: Iterable[Step], calls: Mapping[str, Call]) -> dict[str, str]:
    """Every display name that a run's record holds."""
    names: dict[str, str] = {}
    for call in list(calls.values()):  # a run that is executed adds to them meanwhile
        if call.kind == "names":
            names.update((str(iri), name) for iri, name in call.result.items())
    for step in steps:
        if isinstance(step.output, Link) and step.output.vertex:
            names[str(step.output.vertex.iri)] = step.output.vertex.label
        if isinstance(step.output, Survey):
            names = {**{str(iri): name for iri, name in step.output.names}, **names}
    return names


def names_of(run: Run, steps: Iterable[Step] = ()) -> dict[str, str]:
    """Every display name in a run's record and in its answer."""
    named = run.answer.names if run.answer is not None else ()
    return {**{str(iri): name for iri, name in named}, **names_in(steps or run.steps, run.calls)}


def curie(iri: str, around: Around) -> Html:
    """An IRI as "fl:Harry_Potter", a link."""
    return h.iri_link(iri, curie_text(iri, around), "curie")


def curie_text(iri: str, around: Around) -> str:
    """An IRI as "fl:Harry_Potter"; whole where it cannot be cut."""
    namespace, local = split(str(iri))
    return f"{around.prefix_of(namespace)}:{local}" if namespace and local else str(iri)


def term_text(term: Term, names: h.Names) -> str:
    """A term by its name, or its lexical form; at most its first letters."""
    text = str(term)
    return shorten((names.get(text) or local_name(text)) if isinstance(term, URIRef) else text)


def term(value: Term, around: Around) -> Html:
    """An IRI by its label, or a literal with its language or datatype."""
    if isinstance(value, URIRef):
        return h.iri_link(value, term_text(value, around.names))
    kind = "blank node"
    if isinstance(value, RdfLiteral):
        kind = value.language or local_name(value.datatype or "")
    return h.join(h.tag("bdi", shorten(str(value))), h.join(" ", h.aside(kind)) if kind else "")


def triple_text(triple: Triple, names: h.Names) -> str:
    """ "Arrival — director → Denis Villeneuve"."""
    subject, predicate, object_ = (term_text(term, names) for term in triple)
    return f"{subject} — {predicate} → {object_}"


def triple_key(triple: Triple) -> str:
    """What names a triple in a page: its content, in a few letters."""
    return hashlib.sha256(repr(triple).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def triples(support: Sequence[Triple], around: Around, answers: Iterable[Term] = ()) -> Html:
    """Triples as pills and arrows, one a line; the ends that are answers have a double frame."""
    asked = {*map(str, answers)}

    def end(value: Term) -> Html:
        title = shorten(str(value)) if isinstance(value, URIRef) else None
        class_ = "unk asked plain" if str(value) in asked else "ent"
        return h.span(class_, term_text(value, around.names), title=title)

    def chain(subject: Term, predicate: URIRef, object_: Term) -> Html:
        words = h.tag("em", term_text(predicate, around.names))
        parts = [end(subject), h.span("rel", words, title=shorten(str(predicate))), end(object_)]
        if around.mutable and not isinstance(subject, BNode) and not isinstance(object_, BNode):
            title = "does the answer stand without this triple?"
            key = triple_key((subject, predicate, object_))
            parts.append(h.button("Mute", "mute", class_="ghost", arg=key, title=title))
        return h.div("chain", *parts)

    left = len(support) - MOST_SUPPORT
    more = h.aside(f"and {pluralize(left, 'more triple')}") if left > 0 else ""
    return h.div("stack tight", *(chain(*triple) for triple in support[:MOST_SUPPORT]), more)


def candidate_line(candidate: Candidate, around: Around) -> Html:
    """Label and types of a vertex, then its CURIE and what else sets it apart from others."""
    about = shorten(candidate.description) or shorten(", ".join(candidate.relations[:6]))
    types = (h.span("type", shorten(name)) for name in candidate.types[:3])
    under = h.span(
        "under soft", curie(candidate.iri, around), h.join(" · ", about) if about else ""
    )
    return h.join(h.span("row", h.tag("b", shorten(candidate.label)), *types), under)


def laid_out(text: str) -> str:
    """A query of one line with a line for each triple pattern; any other as its author laid it out."""
    head, body = re.match(r"((?:PREFIX[^\n]*\n)*)(.*)", text.strip(), re.DOTALL).groups()  # type: ignore[union-attr]
    if "\n" in body:
        return text
    lines, depth = [(0, "")], 0
    for kind, word in LEXER.get_tokens(body):
        if kind is Keyword and word.upper() == "FILTER":
            lines.append((depth, ""))
        for part in (
            word if kind is Punctuation else (word,)
        ):  # the lexer gives signs together: "}."
            depth += (part == "{") - (part == "}")
            if part == "}":
                lines.append((depth, ""))
            lines[-1] = (lines[-1][0], lines[-1][1] + part)
            if kind is Punctuation and part in "{.":
                lines.append((depth, ""))
    return head + "\n".join("  " * deep + line.strip() for deep, line in lines if line.strip())


def readable(text: str, around: Around) -> str:
    """A query laid out, its IRIs cut by PREFIX lines where that is safe; it means the same."""
    if re.search(r"\bPREFIX\b|\bBASE\b", text, re.I):
        return laid_out(text)
    used: dict[str, str] = {}

    def cut(match: re.Match[str]) -> str:
        if match["iri"] is None:  # what stands in quotes is no IRI
            return match[0]
        namespace, local = split(match["iri"])
        prefix = around.prefix_of(namespace)
        plain = re.fullmatch(r"[A-Za-z_][\w-]*", local, re.ASCII) and re.fullmatch(
            r"[A-Za-z]\w*", prefix
        )
        if not plain or used.setdefault(prefix, namespace) != namespace:
            return match[0]
        return f"{prefix}:{local}"

    body = re.sub(
        r"\"(?:[^\"\\]|\\.)*\"|<(?P<iri>[A-Za-z][\w+.-]*:[^<>\"\s]+)>", cut, laid_out(text)
    )
    return "".join(f"PREFIX {prefix}: <{namespace}>\n" for prefix, namespace in used.items()) + body


def sparql(text: str, around: Around) -> Html:
    """A query with PREFIX lines, highlighted."""
    parts = []
    for kind, word in LEXER.get_tokens(readable(text, around)):
        class_ = next((name for group, name in CLASSES.items() if kind[: len(group)] == group), "")
        parts.append(h.span(class_, word) if class_ else h.safe(word))
    return h.preformatted(*parts)


def legend(query: str, around: Around) -> Html:
    """What the terms of a query are called, where that is known."""
    spaces = dict(re.findall(r"PREFIX\s+([\w-]*):\s*<([^>]*)>", query))
    body = re.sub(r"PREFIX[^\n]*\n|\"(?:[^\"\\]|\\.)*\"", "", query)
    iris = [
        whole or spaces.get(prefix, "") + local
        for whole, prefix, local in re.findall(r"<([^<>\s]+)>|([\w-]+):([\w-]+)", body)
    ]
    rows = [
        (curie(iri, around), around.names[iri])
        for iri in dict.fromkeys(iris)
        if iri in around.names
    ]
    if not rows:
        return Html()
    shown = h.table(("term", "label"), rows[: h.MOST_ROWS])
    return h.fold(h.aside("what its terms are called"), shown, key="legend", unfolded=True)
