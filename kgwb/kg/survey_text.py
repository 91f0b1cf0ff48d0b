"""A graph as text for a model: its survey, with alike classes told once, and ids for what is in it.

Names are CURIEs, and what the graph says is in quotes.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from urllib.parse import quote

from rdflib import RDF, RDFS, XSD, URIRef

from kgwb.errors import QueryError
from kgwb.kg.base import SCHEMA_NAMESPACES
from kgwb.kg.sparql import is_valid_iri, validate_query
from kgwb.kg.survey import MAX_LISTED_VALUES
from kgwb.kg.survey_records import ClassSurvey, PropertySurvey, Survey, ValueSurvey
from kgwb.terms import (
    KNOWN_PREFIXES,
    Iri,
    Term,
    choose_prefix,
    local_part,
    name_from_iri,
    split_iri,
)
from kgwb.text import list_first

MIN_SHARED_PREDICATES = 0.6
"""Share of predicates that subclasses have in common to be told as one."""
MAX_VALUE_CHARS, MAX_NOTE_CHARS, MAX_SUBCLASSES, MAX_VALUE_TYPES, MAX_INCOMING = 48, 80, 30, 5, 6
"""Letters of a value and of a note; subclasses, sorts of values and incoming predicates that are shown."""
MAX_SUBCLASS_DEPTH, MAX_REPEATED_LISTINGS = 20, 4
"""Levels of subclasses, and superclasses under which the subclasses of one are told again."""
MAX_LISTED_INSTANCES = 8
"""Things that are named where they are all the values there are."""
NUMBER_PATTERN = re.compile(r"[-+]?\d+(\.\d+)?")
UNQUOTED_VALUE = re.compile(r"[-+\d.:TZeE]+")
"""Numbers, dates and times, which need no quotes."""
KNOWN_NAMESPACES = {prefix: space for space, prefix in KNOWN_PREFIXES.items()}
MAX_LITERAL_CHARS = 300
"""Letters of a literal that are shown beside ids."""
SAFE_LOCAL_PART = re.compile(r"(?![\xaa-\xbe])\w(?:(?![\xaa-\xbe])[\w-])*")
"""Local names that stand in a CURIE as they are; no ordinal or superscript may."""
INVALID_IRI_CHARACTER = re.compile(r"[\s<>\"{}|\\^`\x00-\x20\x7f-\x9f\ud800-\udfff]")
"""What no IRI may hold, though that of an engine may."""
Prefixes = tuple[tuple[str, str], ...]
"""Prefixes with their namespaces."""


@dataclass(frozen=True, slots=True)
class ClassGroup:
    """A class, or a superclass with subclasses that are described alike."""

    top_class: ClassSurvey
    members: tuple[ClassSurvey, ...]
    """The classes with instances in it."""
    properties: tuple[PropertySurvey, ...]

    @property
    def size(self) -> int:
        return max(self.top_class.total, sum(member.size for member in self.members))

    @property
    def names(self) -> list[str]:
        return list(dict.fromkeys([self.top_class.name, *(member.name for member in self.members)]))


def group_classes(survey: Survey) -> tuple[ClassGroup, ...]:
    """The classes of a survey; a superclass stands for subclasses whose predicates are alike."""
    children: dict[URIRef, list[ClassSurvey]] = defaultdict(list)
    for each in survey.classes:
        for parent in each.parents:
            children[parent].append(each)
    shown: set[URIRef | None] = set()
    result: list[ClassGroup] = []
    for each in sorted(survey.classes, key=lambda c: (bool(c.parents), -c.total)):
        if each.iri in shown or not each.total or str(each.iri).startswith(SCHEMA_NAMESPACES):
            continue
        below, left = dict[ClassSurvey, None](), [each]
        while left:  # each once, however many ways lead to it
            if (kind := left.pop()) not in below:
                below[kind] = None
                left += reversed(children.get(kind.iri, ()) if kind.iri else ())
        members = [kind for kind in below if kind.size and kind.iri not in shown]
        if len(members) > 1 and not _are_similar(members):
            members = [each] if each.size else []
        if members:
            shown.update(member.iri for member in members)
            result.append(ClassGroup(each, tuple(members), _merge_properties(members)))
    return tuple(sorted(result, key=lambda group: -group.size))


def _are_similar(members: Sequence[ClassSurvey]) -> bool:
    """Whether classes are described by mostly the same predicates."""
    uses = [{p.predicate for p in member.properties} for member in members]
    common = Counter(predicate for each in uses for predicate in each)
    usual = {predicate for predicate, n in common.items() if n > len(uses) / 2}
    shares = [len(each & usual) / max(1, min(len(each), len(usual))) for each in uses]
    return sum(shares) / len(shares) >= MIN_SHARED_PREDICATES


def _merge_properties(members: Sequence[ClassSurvey]) -> tuple[PropertySurvey, ...]:
    if len(members) == 1:
        return members[0].properties
    by: dict[URIRef, list[PropertySurvey]] = defaultdict(list)
    for member in members:
        for each in member.properties:
            by[each.predicate].append(each)
    merged = []
    for predicate, same in by.items():
        values = _merge_values([values for p in same for values in p.values])
        inner = next((p.inner for p in sorted(same, key=lambda p: -p.things) if p.inner), ())
        things, triples = sum(p.things for p in same), sum(p.triples for p in same)
        merged.append(
            PropertySurvey(predicate, things, triples, values, inner, max(p.unnamed for p in same))
        )
    return tuple(sorted(merged, key=lambda p: (-p.things, p.predicate)))


def _merge_values(values: Sequence[ValueSurvey]) -> tuple[ValueSurvey, ...]:
    by: dict[tuple[str, URIRef | None], list[ValueSurvey]] = defaultdict(list)
    for each in values:
        by[each.sort, each.of].append(each)
    merged = []
    for same in by.values():
        examples = dict.fromkeys(example for each in same for example in each.examples)
        whole = all(each.whole for each in same) and len(examples) <= MAX_LISTED_VALUES
        ordered = tuple(examples) if whole else _extremes_first([*examples])
        distinct = max(len(examples), *(values.distinct for values in same))
        triples = sum(values.triples for values in same)
        merged.append(
            replace(same[0], triples=triples, distinct=distinct, examples=ordered, whole=whole)
        )
    return tuple(sorted(merged, key=lambda v: -v.triples))


def _extremes_first(examples: Sequence[Term]) -> tuple[Term, ...]:
    """The least and the greatest first."""
    numbers = all(NUMBER_PATTERN.fullmatch(str(term)) for term in examples)
    ordered = sorted(examples, key=lambda term: (float(str(term)) if numbers else 0.0, str(term)))
    return tuple(dict.fromkeys((*ordered[:1], *ordered[-1:], *examples)))[:3]


# --- text


class SurveyWriter:
    """Writes a survey with CURIEs and quoted values: what a graph says never stands outside of quotes."""

    def __init__(self, survey: Survey) -> None:
        self.survey, self.names = survey, {str(iri): name for iri, name in survey.names}
        self.notes = {str(iri): note for iri, note in survey.notes}
        self.groups = group_classes(survey)
        self.group_of = {member.iri: group for group in self.groups for member in group.members}
        spaces: Counter[str] = Counter()
        for group in self.groups:
            iris = [member.iri for member in group.members if member.iri]
            for each in group.properties:
                examples = (
                    term for v in each.values for term in v.examples if isinstance(term, URIRef)
                )
                iris += [each.predicate, *examples, *(inner.predicate for inner in each.inner)]
            spaces.update(split_iri(iri)[0] for iri in iris)
        self.prefixes: dict[str, str] = {
            str(space): KNOWN_PREFIXES[str(space)] for space in (RDF, RDFS, XSD)
        }
        for space, _ in (
            each for each in spaces.most_common(20) if not INVALID_IRI_CHARACTER.search(each[0])
        ):
            if space not in self.prefixes:
                self.prefixes[space] = choose_prefix(space, self.prefixes.values())

    def class_names(self) -> tuple[str, ...]:
        """The names of classes for a reader to choose from, the largest first."""
        names = [name for group in self.groups for name in group.names if group.top_class.iri]
        return tuple(dict.fromkeys(names))[:150]

    def to_curie(self, iri: str) -> str:
        return to_curie(iri, self.prefixes)

    def format_iri(self, iri: str) -> str:
        """A CURIE, with its label where that says more."""
        name = self.names.get(str(iri), "")
        same = re.sub(r"\W", "", name).lower() == re.sub(r"\W|_", "", local_part(iri)).lower()
        return self.to_curie(iri) + (
            "" if not name or same or name == name_from_iri(iri) else f" {quote_text(name)}"
        )

    def format_title(self, group: ClassGroup) -> str:
        """A class with its number of instances."""
        return f"{self.format_iri(group.top_class.iri) if group.top_class.iri else group.top_class.name} {group.size}"

    def format_values(self, values: ValueSurvey) -> str:
        """The sort of values, with all of them where they are few, else with some."""
        sort = self.to_curie(str(values.of)) if values.sort == "class" else values.sort
        sort = sort if values.sort == "class" or re.fullmatch(r"[\w@.-]+", sort) else "literal"
        shown = [
            self.format_iri(term) if isinstance(term, URIRef) else quote_text(term)
            for term in values.examples
        ]
        if values.whole and 0 < len(shown) <= (
            MAX_LISTED_INSTANCES if sort[0] == "<" or ":" in sort else MAX_LISTED_VALUES
        ):
            return ("" if sort == "string" else f"{sort}: only ") + ", ".join(shown)
        if values.sort in ("class", "IRI", "node"):
            return f"{sort}, such as {shown[0]}" if values.sort == "IRI" and shown else sort
        bare = all(UNQUOTED_VALUE.fullmatch(str(term)) for term in values.examples)
        if bare and "string" not in sort and len(shown) > 1:
            return f"{sort} {values.examples[0]} … {values.examples[1]}"
        more = (
            f" ({values.distinct} different)"
            if len(shown[:2]) < values.distinct <= MAX_LISTED_VALUES
            else ""
        )
        return f"{sort} {', '.join(shown[:2])}{more}"

    def format_property(self, each: PropertySurvey, size: int) -> str:
        """A line: predicate, how many instances have it, and its values."""
        count = "all" if each.things >= size else f"{each.things}"
        triples = f" ({each.triples} triples)" if each.triples > each.things else ""
        head = f"  {self.format_iri(each.predicate)}: {count}{triples}"
        if each.inner:
            use = [
                f"{self.format_iri(p.predicate)} {' or '.join(map(self.format_values, p.values))}"
                for p in each.inner
            ]
            kind = self.format_values(each.values[0]) if each.values else "node"
            return f"{head} -> {kind} with {'; '.join(use)}"
        # The values with those of alike classes together
        groups = [self.group_of.get(v.of) if v.sort == "class" else None for v in each.values]
        heads = [
            group.top_class.iri if group else v.of
            for v, group in zip(each.values, groups, strict=True)
        ]
        several = {head for head, times in Counter(heads).items() if times > 2}
        pairs = zip(each.values, heads, strict=True)
        values = _merge_values([replace(v, of=head) if head in several else v for v, head in pairs])
        sorts = list(dict.fromkeys(map(self.format_values, values)))[:MAX_VALUE_TYPES]
        arrow = " ->" if any(v.sort in ("class", "IRI", "node") for v in each.values) else ""
        nameless = (
            ", no label" if each.unnamed and [v.sort for v in each.values[:1]] == ["IRI"] else ""
        )
        return f"{head}{arrow} {' or '.join(sorts)}{nameless}{self.format_note(each.predicate)}"

    def format_note(self, iri: str | None) -> str:
        """What the graph says of a class or predicate."""
        note = self.notes.get(str(iri))
        return f" ({quote_text(note, MAX_NOTE_CHARS)})" if note else ""

    def is_inlined(self, group: ClassGroup) -> bool:
        """Whether a class is told with what leads to it, at every place."""
        used = (p for other in self.groups for p in other.properties)
        ways = [p for p in used if any(v.of == group.top_class.iri for v in p.values)]
        return bool(ways) and all(each.inner for each in ways)

    def format_group(self, group: ClassGroup) -> str:
        """A class with its predicates and those that lead to it."""
        title = f"{self.format_title(group)} instances"
        if len(group.members) > 1:
            own = (
                f"{group.top_class.size} of the class itself"
                if group.top_class.size
                else "each of one subclass"
            )
            title += f", {own}: {self._format_subclasses(group.top_class, (group.top_class.iri,), Counter())}"
        lines = [title + self.format_note(group.top_class.iri)]
        lines += [self.format_property(each, group.size) for each in group.properties]
        mine = {member.iri for member in group.members}
        incoming: Counter[str] = Counter()
        for other in self.groups:
            for each in other.properties if other is not group and other.top_class.iri else ():
                n = sum(v.triples for v in each.values if v.of in mine)
                if n:
                    incoming[
                        f"{self.to_curie(str(other.top_class.iri))} {self.to_curie(each.predicate)} {n}"
                    ] += n
        if incoming:
            lines.append(
                f"  from others: {'; '.join(text for text, _ in incoming.most_common(MAX_INCOMING))}"
            )
        return "\n".join(lines)

    def _format_subclasses(
        self, top: ClassSurvey, above: tuple[URIRef | None, ...], ways: Counter[URIRef | None]
    ) -> str:
        """The subclasses of a class with their instances, each with its own in brackets."""
        kinds = []
        for each in self.survey.classes:
            if top.iri not in each.parents or each.iri in above or not each.total:
                continue
            ways[each.iri] += 1
            deep = len(above) > MAX_SUBCLASS_DEPTH or ways[each.iri] > MAX_REPEATED_LISTINGS
            below = "" if deep else self._format_subclasses(each, (*above, each.iri), ways)
            kinds.append(
                f"{self.format_iri(str(each.iri))} {each.total}{f' [{below}]' if below else ''}"
            )
        return list_first(kinds, MAX_SUBCLASSES)

    def remarks(self, shown: Collection[str]) -> Iterator[str]:
        """What is to be known of predicates beside what they hold."""
        one_way = [self.to_curie(p) for p, n, both in self.survey.both_ways if both < n]
        if one_way := [curie for curie in one_way if any(curie in text for text in shown)]:
            yield f"Between things of one class, mostly asserted in one direction only: {', '.join(one_way)}"
        if self.survey.unused:
            names = [self.to_curie(iri) for iri in self.survey.unused]
            yield f"Declared, but without any triple: {', '.join(names[:30])}"


def quote_text(text: str, max_chars: int = MAX_VALUE_CHARS) -> str:
    """A value in quotes, cut; what is in it stays in it."""
    text = " ".join(text.split())
    return json.dumps(
        text if len(text) <= max_chars else text[:max_chars] + "…", ensure_ascii=False
    )


def add_missing_prefixes(sparql: str, prefixes: Prefixes) -> str:
    """A query with the PREFIX lines that it lacks. Raises a GraphError if it is no query."""
    known, lacking = dict(prefixes), validate_query(sparql).undeclared_prefixes
    lines = [f"PREFIX {prefix}: <{known[prefix]}>" for prefix in lacking if prefix in known]
    return "\n".join([*lines, sparql.strip()])


def to_curie(iri: str, prefixes: Mapping[str, str]) -> str:
    """An IRI with its namespace's prefix, or in brackets."""
    namespace, local = split_iri(iri)
    prefix = prefixes.get(namespace)
    return f"{prefix}:{local}" if prefix and SAFE_LOCAL_PART.fullmatch(local) else bracket_iri(iri)


def bracket_iri(iri: str) -> str:
    """An IRI in brackets; what could end them is percent-encoded."""
    return f"<{INVALID_IRI_CHARACTER.sub(lambda odd: quote(odd[0], errors='replace'), iri)}>"


def short_name(iri: str) -> str:
    """The last part of an IRI; the IRI in brackets if that is more than a word."""
    local = local_part(iri)
    return local if SAFE_LOCAL_PART.fullmatch(local) else bracket_iri(iri)


def format_value(term: Term | None) -> str:
    """A term with quotes or brackets, but for numbers and dates."""
    if term is None:
        return "nothing"
    if isinstance(term, URIRef):
        return bracket_iri(term)
    return str(term) if UNQUOTED_VALUE.fullmatch(term) else quote_text(term)


# --- ids that a model is shown, and gives back


@dataclass(frozen=True)
class TermIds:
    """Prefixes beside the usual ones, and names; both only grow, so that an id keeps its meaning."""

    prefixes: Prefixes = ()
    names: tuple[tuple[Iri, str], ...] = ()

    def with_names(self, names: Iterable[tuple[Iri, str]]) -> TermIds:
        """With these names, and a prefix for each of their namespaces."""
        known, prefixes = dict(self.names) | dict(names), dict(self.prefixes)
        for space in sorted(
            {split_iri(iri)[0] for iri in known} - {*KNOWN_NAMESPACES.values(), *prefixes.values()}
        ):
            prefixes[choose_prefix(space, {*KNOWN_NAMESPACES, *prefixes})] = space
        return TermIds(tuple(prefixes.items()), tuple(sorted(known.items())))

    @property
    def namespaces(self) -> Prefixes:
        """All prefixes with their namespaces."""
        return (*KNOWN_NAMESPACES.items(), *self.prefixes)

    @cached_property
    def _prefix_of(self) -> dict[str, str]:
        return {space: prefix for prefix, space in self.namespaces}

    @cached_property
    def _name_of(self) -> dict[URIRef, str]:
        return dict(self.names)

    def format_id(self, term: Term | None) -> str:
        """A CURIE, an IRI in brackets, or a literal in quotes."""
        if isinstance(term, URIRef):
            return to_curie(term, self._prefix_of)
        return "" if term is None else quote_text(term, MAX_LITERAL_CHARS)

    def format_named_id(self, term: Term | None) -> str:
        """The id of a term, with its name."""
        name = self._name_of.get(term, "") if isinstance(term, URIRef) else ""
        return f"{self.format_id(term)} {quote_text(name)}" if name else self.format_id(term)

    def parse_id(self, text: str) -> URIRef:
        """The IRI that an id stands for. Raises QueryError if it is none."""
        prefix, _, local = text.strip().partition(":")
        space = dict(self.namespaces).get(prefix)
        iri = text.strip().strip("<>") if space is None else space + local
        if not re.match(r"[A-Za-z][\w+.-]*:.", iri) or not is_valid_iri(iri):
            raise QueryError(f"{quote_text(text, 80)} is no id of a tool's result")
        return URIRef(iri)

    def matches(self, text: str, term: Term) -> bool:
        """Whether a text stands for a term: as its id, its IRI, or its lexical form."""
        return text.strip() in (self.format_id(term), str(term), f"<{term}>")
