"""The part of a survey that matters to a question, as text: alike classes told once, names as CURIEs."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from rdflib import Literal, URIRef

from kgwb.flow import Term
from kgwb.kg.base import SCHEMA_SPACES
from kgwb.kg.index import Index
from kgwb.kg.sparql import checked
from kgwb.kg.survey import FEW, Class, Property, Survey, Values, local_part
from kgwb.kg.text import local_name
from kgwb.run import Run
from kgwb.show.terms import KNOWN
from kgwb.systems.surveyor.records import Mentions, Part, Prefixes
from kgwb.systems.surveyor.settings import settings_of

ALIKE = 0.6
"""Share of predicates that subclasses have in common to be told as one."""
TEXT, SUBCLASSES, SORTS, INCOMING = 48, 14, 5, 6
"""Letters of a value, and subclasses, sorts of values, and incoming predicates that are shown."""
LOCAL = re.compile(r"\w[\w-]*")


@dataclass(frozen=True, slots=True)
class Group:
    """A class, or a superclass with subclasses that are described alike."""

    head: Class
    members: tuple[Class, ...]
    """The classes with instances in it."""
    properties: tuple[Property, ...]

    @property
    def size(self) -> int:
        return max(self.head.total, sum(member.size for member in self.members))

    @property
    def names(self) -> list[str]:
        return list(dict.fromkeys([self.head.name, *(member.name for member in self.members)]))


def groups(survey: Survey) -> tuple[Group, ...]:
    """The classes of a survey; a superclass stands for subclasses whose predicates are alike."""
    children: dict[URIRef, list[Class]] = defaultdict(list)
    for each in survey.classes:
        for parent in each.parents:
            children[parent].append(each)
    shown: set[URIRef | None] = set()
    result: list[Group] = []

    def below(top: Class, seen: frozenset[URIRef]) -> list[Class]:
        under = [child for child in children.get(top.iri, ()) if child.iri not in seen] if top.iri else []
        mine = [top] if top.size else []
        for child in under:
            mine += below(child, seen | {child.iri} if child.iri else seen)
        return list(dict.fromkeys(mine))

    for each in sorted(survey.classes, key=lambda c: (bool(c.parents), -c.total)):
        if each.iri in shown or not each.total or str(each.iri).startswith(SCHEMA_SPACES):
            continue
        members = [
            member
            for member in below(each, frozenset([each.iri] if each.iri else ()))
            if member.iri not in shown
        ]
        if len(members) > 1 and not _alike(members):
            members = [each] if each.size else []
        if members:
            shown.update(member.iri for member in members)
            result.append(Group(each, tuple(members), _merged(members)))
    return tuple(sorted(result, key=lambda group: -group.size))


def _alike(members: Sequence[Class]) -> bool:
    """Whether classes are described by mostly the same predicates."""
    uses = [{p.predicate for p in member.properties} for member in members]
    common = Counter(predicate for each in uses for predicate in each)
    usual = {predicate for predicate, n in common.items() if n > len(uses) / 2}
    shares = [len(each & usual) / max(1, min(len(each), len(usual))) for each in uses]
    return sum(shares) / len(shares) >= ALIKE


def _merged(members: Sequence[Class]) -> tuple[Property, ...]:
    by: dict[URIRef, list[Property]] = defaultdict(list)
    for member in members:
        for each in member.properties:
            by[each.predicate].append(each)
    if len(members) == 1:
        return members[0].properties
    merged = [
        Property(
            predicate,
            sum(p.things for p in same),
            sum(p.triples for p in same),
            _merged_values([values for p in same for values in p.values]),
            next((p.inner for p in sorted(same, key=lambda p: -p.things) if p.inner), ()),
            max(p.unnamed for p in same),
        )
        for predicate, same in by.items()
    ]
    return tuple(sorted(merged, key=lambda p: (-p.things, p.predicate)))


def _merged_values(values: Sequence[Values]) -> tuple[Values, ...]:
    by: dict[tuple[str, URIRef | None], list[Values]] = defaultdict(list)
    for each in values:
        by[each.sort, each.of].append(each)
    merged = []
    for same in by.values():
        examples = dict.fromkeys(example for each in same for example in each.examples)
        whole = all(each.whole for each in same) and len(examples) <= FEW
        ordered = tuple(examples) if whole else _ends(list(examples))
        merged.append(replace(same[0], triples=sum(v.triples for v in same), distinct=max(len(examples), *(v.distinct for v in same)), examples=ordered, whole=whole))  # fmt: skip
    return tuple(sorted(merged, key=lambda v: -v.triples))


def _ends(examples: list[Term]) -> tuple[Term, ...]:
    """The least and the greatest, if they can be ordered."""
    try:
        keys = {term: float(term) if isinstance(term, Literal) else str(term) for term in examples}
    except ValueError:
        keys = {term: str(term) for term in examples}
    ordered = sorted(examples, key=lambda term: keys[term])  # type: ignore[arg-type]
    return tuple(dict.fromkeys((ordered[0], ordered[-1], *examples[:2])))[:3] if ordered else ()


# --- text


class Writer:
    """Writes a survey with CURIEs and quoted values: what a graph says never stands outside of quotes."""

    def __init__(self, survey: Survey) -> None:
        self.survey, self.names = survey, {str(iri): name for iri, name in survey.names}
        self.notes = {str(iri): note for iri, note in survey.notes}
        self.groups = groups(survey)
        self.group_of = {member.iri: group for group in self.groups for member in group.members}
        spaces = Counter(str(iri)[: len(str(iri)) - len(local_part(iri))] for iri in self._iris())
        self.prefixes: dict[str, str] = {}
        for space, _ in spaces.most_common(20):
            words = re.findall(r"[A-Za-z][A-Za-z0-9]*", re.sub(r"^\w+:/*", "", space))
            prefix = KNOWN.get(space) or (words[-1].lower()[:12] if words else "ns")
            while prefix in self.prefixes.values():
                prefix += "x"
            self.prefixes[space] = prefix
        self.prefixes.setdefault("http://www.w3.org/1999/02/22-rdf-syntax-ns#", "rdf")
        self.prefixes.setdefault("http://www.w3.org/2000/01/rdf-schema#", "rdfs")
        self.prefixes.setdefault("http://www.w3.org/2001/XMLSchema#", "xsd")

    def _iris(self) -> Iterator[URIRef]:
        for group in self.groups:
            for member in group.members:
                yield from filter(None, [member.iri])
            for each in group.properties:
                yield each.predicate
                yield from (term for v in each.values for term in v.examples if isinstance(term, URIRef))
                yield from (inner.predicate for inner in each.inner)

    def curie(self, iri: str) -> str:
        local = local_part(iri)
        prefix = self.prefixes.get(iri[: len(iri) - len(local)])
        return f"{prefix}:{local}" if prefix and LOCAL.fullmatch(local) else f"<{iri}>"

    def named(self, iri: str) -> str:
        """A CURIE, with its label where that says more."""
        name = self.names.get(str(iri), "")
        same = re.sub(r"\W", "", name).lower() == re.sub(r"\W|_", "", local_part(iri)).lower()
        return self.curie(iri) + ("" if not name or same or name == local_name(iri) else f" {quoted(name)}")

    def term(self, term: Term) -> str:
        return self.named(str(term)) if isinstance(term, URIRef) else quoted(str(term))

    def values(self, values: Values) -> str:
        sort = self.curie(str(values.of)) if values.sort == "class" and values.of else values.sort
        if (
            values.whole
            and values.examples
            and len(values.examples) <= FEW
            and (values.sort != "class" or values.distinct < 9)
        ):
            shown = ", ".join(map(self.term, values.examples))
            return f"{sort}: only {shown}" if values.sort != "string" else shown
        if values.sort in ("class", "IRI", "node"):
            some = (
                f", such as {self.term(values.examples[0])}"
                if values.examples and values.sort == "IRI"
                else ""
            )
            return f"{sort}{some}"
        low, *rest = values.examples or ("",)
        numeric = values.sort not in ("string",) and "@" not in values.sort
        text = (
            f"{low} … {rest[0]}"
            if numeric and rest
            else ", ".join(quoted(str(e)) for e in values.examples[:2])
        )
        return f"{values.sort} {text}"

    def property(self, each: Property, size: int) -> str:
        """A line: predicate, how many instances have it, and its values."""
        sorts: dict[str, None] = dict.fromkeys(map(self.values, self._by_group(each.values)))
        shown = list(sorts)[:SORTS]
        count = f"{each.things}" + (f" ({each.triples} triples)" if each.triples > each.things else "")
        head = f"  {self.named(each.predicate)}: {'all' if each.things >= size else count}"
        if each.things >= size and each.triples > each.things:
            head += f" ({each.triples} triples)"
        inner = each.inner or self._structure(each)
        if inner:
            parts = "; ".join(
                f"{self.named(p.predicate)} {' or '.join(map(self.values, p.values))}" for p in inner
            )
            sort = self.values(each.values[0]) if each.values else "node"
            return f"{head} -> {sort} with {parts}"
        nameless = ", no label" if each.unnamed and each.values and each.values[0].sort == "IRI" else ""
        note = f" ({quoted(self.notes[str(each.predicate)])})" if str(each.predicate) in self.notes else ""
        arrow = "->" if any(v.sort in ("class", "IRI", "node") for v in each.values) else ""
        return f"{head} {arrow} {' or '.join(shown)}{nameless}{note}".replace("  ", " ").replace(" ", "  ", 1)

    def _by_group(self, values: Sequence[Values]) -> tuple[Values, ...]:
        """The values with those of alike classes together."""
        heads = [
            self.group_of[v.of].head.iri if v.sort == "class" and v.of in self.group_of else v.of
            for v in values
        ]
        several = {head for head, n in Counter(heads).items() if n > 2}
        heads = [head if head in several else v.of for head, v in zip(heads, values, strict=True)]
        return _merged_values([replace(v, of=head) for v, head in zip(values, heads, strict=True)])

    def _structure(self, each: Property) -> tuple[Property, ...]:
        """What stands in the nodes of a class that only holds structure: no label, and few predicates."""
        kinds = [v.of for v in each.values if v.sort == "class"]
        group = self.group_of.get(kinds[0]) if len(kinds) == 1 else None
        return group.properties if group and self.is_structure(group) else ()

    def is_structure(self, group: Group) -> bool:
        literal = [p for p in group.properties if not any(v.sort == "class" for v in p.values)]
        labelled = any(
            "label" in str(p.predicate).lower() or "name" in str(p.predicate).lower()
            for p in group.properties
        )
        return 1 < len(group.properties) <= 4 and len(literal) >= len(group.properties) - 1 and not labelled

    def group(self, group: Group) -> str:
        """A class with its predicates and those that lead to it."""
        head = group.head
        title = self.named(str(head.iri)) if head.iri else "things without a class"
        if len(group.members) > 1:
            kinds = [
                f"{self.named(str(m.iri))} {m.size}" for m in sorted(group.members, key=lambda m: -m.size)
            ]
            more = f" and {len(kinds) - SUBCLASSES} more" if len(kinds) > SUBCLASSES else ""
            of = (
                f"{group.size} instances, each of one subclass"
                if not head.size
                else f"{group.size} instances, {head.size} of the class itself"
            )
            title += f", {of}: {', '.join(kinds[:SUBCLASSES])}{more}"
            if between := [f"{self.named(str(c.iri))} {c.total}" for c in self._between(group)]:
                title += f"; superclasses among them: {', '.join(between)}"
        else:
            title += f", {group.size} instances"
        note = self.notes.get(str(head.iri))
        lines = [title + (f" ({quoted(note)})" if note else "")]
        lines += [self.property(each, group.size) for each in group.properties]
        if incoming := self._incoming(group):
            lines.append(f"  from others: {'; '.join(incoming[:INCOMING])}")
        return "\n".join(lines)

    def _between(self, group: Group) -> list[Class]:
        """The superclasses below the head that have no instances of their own."""
        known = {each.iri: each for each in self.survey.classes}
        up = {parent for member in group.members for parent in member.parents}
        up |= {parent for iri in up if iri in known for parent in known[iri].parents}
        mine = {member.iri for member in group.members} | {group.head.iri}
        return [
            known[iri]
            for iri in sorted(up - mine)
            if iri in known
            and known[iri].total <= group.size
            and group.head.iri in self._above(known[iri], known)
        ]

    def _above(self, each: Class, known: dict[URIRef | None, Class]) -> set[URIRef]:
        above: set[URIRef] = set()
        left = list(each.parents)
        for iri in left:
            if iri not in above:
                above.add(iri)
                left += known[iri].parents if iri in known else ()
        return above

    def _incoming(self, group: Group) -> list[str]:
        mine = {member.iri for member in group.members}
        found: Counter[str] = Counter()
        for other in self.groups:
            for each in other.properties:
                n = sum(v.triples for v in each.values if v.of in mine)
                if n and other is not group and other.head.iri:
                    found[f"{self.curie(str(other.head.iri))} {self.curie(each.predicate)} {n}"] += n
        return [text for text, _ in found.most_common()]

    def remarks(self, shown: Collection[str]) -> Iterator[str]:
        """What is to be known of predicates beside what they hold."""
        one_way = [self.curie(p) for p, n, both in self.survey.both_ways if both < n]
        one_way = [curie for curie in one_way if any(curie in text for text in shown)]
        if one_way:
            yield f"Between things of one class, mostly asserted in one direction only: {', '.join(one_way)}"
        if self.survey.unused:
            names = [self.curie(iri) for iri in self.survey.unused]
            yield f"Declared, but without any triple: {', '.join(names[:30])}"


def quoted(text: str) -> str:
    """A value in quotes, cut; what is in it stays in it."""
    text = " ".join(text.split())
    return json.dumps(text if len(text) <= TEXT else text[:TEXT] + "…", ensure_ascii=False)


def relevant(survey: Survey, mentions: Mentions, run: Run, more: Iterable[str] = ()) -> Part:
    """The classes named, those of candidates, and the nearest to the question, up to the budget."""
    writer = Writer(survey)
    texts = {group.head.iri: writer.group(group) for group in writer.groups}
    wanted = {name.casefold() for name in (*more, *mentions.classes)}
    wanted |= {kind.casefold() for m in mentions.found for c in m.candidates[:3] for kind in c.types}
    used = {value.predicate for m in mentions.found for value in m.values}
    plain = [_plain(group, writer) for group in writer.groups]
    nearest = dict(run.nearest(mentions.question, Index(plain, run.embeddings), len(plain))) if plain else {}

    def rank(place: int) -> tuple[bool, bool, float]:
        group = writer.groups[place]
        by_name = any(name.casefold() in wanted or writer.curie(str(m.iri)).casefold() in wanted for m in (group.head, *group.members) for name in (m.name,))  # fmt: skip
        by_value = any(p.predicate in used for p in group.properties)
        return not by_name, not by_value, -nearest.get(place, 0.0)

    budget = settings_of(run).survey_tokens * 4
    shown: list[str] = []
    kept: list[Group] = []
    left: list[Group] = []
    for place in sorted(range(len(writer.groups)), key=rank):
        group = writer.groups[place]
        text = texts[group.head.iri]
        if writer.is_structure(group) and rank(place)[0]:
            continue
        if len(text) <= budget or not kept:
            budget -= len(text)
            kept.append(group)
            shown.append(text)
        else:
            left.append(group)
    shown += writer.remarks(shown)
    if left:
        names = ", ".join(
            f"{writer.named(str(g.head.iri)) if g.head.iri else g.head.name} {g.size}" for g in left
        )
        shown.append(f"Other classes, not shown here: {names}")
    return Part(
        "\n".join(shown),
        tuple(group.head.name for group in kept),
        tuple(group.head.name for group in left),
        tuple((prefix, space) for space, prefix in writer.prefixes.items()),
    )


def _plain(group: Group, writer: Writer) -> str:
    """What a group is about, in words."""
    words = [
        *group.names[:8],
        *(writer.names.get(str(p.predicate)) or local_name(p.predicate) for p in group.properties[:16]),
    ]
    return ", ".join(words)


def class_names(survey: Survey) -> list[str]:
    """The names of classes for a reader to choose from, the largest first."""
    names = [name for group in groups(survey) for name in group.names if group.head.iri]
    return list(dict.fromkeys(names))[:150]


def with_prefixes(sparql: str, prefixes: Prefixes) -> str:
    """A query with the PREFIX lines that it lacks. Raises a GraphError if it is no query."""
    known = dict(prefixes)
    lines = [
        f"PREFIX {prefix}: <{known[prefix]}>" for prefix in checked(sparql).undeclared if prefix in known
    ]
    return "\n".join([*lines, sparql.strip()])


def of_query(survey: Survey, part: Part, sparql: str, run: Run) -> Part:
    """The classes that a query is about, in half the room: for who reviews it."""
    writer = Writer(survey)
    terms = set(re.findall(r"[\w-]+:[\w-]+|<[^<>\s]+>", sparql))

    def uses(group: Group) -> int:
        mine = [m.iri for m in (group.head, *group.members) if m.iri] + [
            p.predicate for p in group.properties
        ]
        return len({writer.curie(str(iri)) for iri in mine} & terms)

    budget, shown, names = settings_of(run).survey_tokens * 2, [], []
    for group in sorted(
        (g for g in writer.groups if uses(g) and not writer.is_structure(g)), key=uses, reverse=True
    ):
        if len(text := writer.group(group)) <= budget:
            budget -= len(text)
            shown.append(text)
            names.append(group.head.name)
    return Part("\n".join([*shown, *writer.remarks(shown)]), tuple(names), (), part.prefixes)
