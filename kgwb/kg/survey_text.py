"""A survey as text for a model. Names are CURIEs, and what the graph says stands in quotes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from rdflib import RDF, RDFS, XSD, URIRef

from kgwb.kg.survey_groups import ClassGroup, group_classes, merge_values
from kgwb.kg.survey_properties import MAX_LISTED_VALUES
from kgwb.kg.survey_records import ClassSurvey, PropertySurvey, Survey, ValueSurvey
from kgwb.kg.term_text import INVALID_IRI_CHARACTER, UNQUOTED_VALUE, quote_text, to_curie
from kgwb.terms import KNOWN_PREFIXES, Term, choose_prefix, local_part, name_from_iri, split_iri
from kgwb.text import list_first

MAX_CLASS_NAMES = 150
MAX_PREFIXES = 20
"""Namespaces that get a prefix: those with the most IRIs."""
MAX_NOTE_CHARS = 80
MAX_SUBCLASSES = 30
"""Subclasses of a class that are shown."""
MAX_SUBCLASS_DEPTH = 20
"""Levels of subclasses that are shown."""
MAX_REPEATED_LISTINGS = 4
"""A class with several superclasses is shown with its subclasses so often, then without them."""
MAX_VALUE_TYPES = 5
"""Sorts of a predicate's values that are shown."""
MAX_LISTED_INSTANCES = 8
"""If a predicate has at most so many instances of a class as values, all are named."""
MAX_INCOMING = 6
"""Predicates of other classes that lead to a class."""
MAX_UNUSED = 30
MIN_MERGED_SORTS = 3
"""If values are of so many classes of one group, the group stands for them."""


class SurveyWriter:
    """Writes the classes of a survey as text for a model, in groups of similar classes.

    Text of the graph never stands outside of quotes.
    """

    def __init__(self, survey: Survey) -> None:
        self.survey = survey
        self.names = {str(iri): name for iri, name in survey.names}
        self.notes = {str(iri): note for iri, note in survey.notes}
        self.groups = group_classes(survey)
        self.group_of: dict[URIRef | None, ClassGroup] = {}
        for group in self.groups:
            for member in group.members:
                self.group_of[member.iri] = group
        self.prefixes = choose_prefixes(self.groups)

    def class_names(self) -> tuple[str, ...]:
        """Return distinct names of classes to choose from, at most 150, the largest groups first."""
        names: dict[str, None] = {}
        for group in self.groups:
            if group.top_class.iri:
                names |= dict.fromkeys(group.names)
        return tuple(names)[:MAX_CLASS_NAMES]

    def to_curie(self, iri: str) -> str:
        """Return an IRI as a CURIE, or in brackets if its namespace has no prefix."""
        return to_curie(iri, self.prefixes)

    def format_iri(self, iri: str) -> str:
        """Return a CURIE, followed by the IRI's display name in quotes if that says more.

        It does not if its letters and digits are those of the local part, whatever their case.
        """
        name = self.names.get(str(iri), "")
        name_letters = re.sub(r"\W", "", name).lower()
        local_letters = re.sub(r"\W|_", "", local_part(iri)).lower()
        if not name or name_letters == local_letters or name == name_from_iri(iri):
            return self.to_curie(iri)
        return f"{self.to_curie(iri)} {quote_text(name)}"

    def format_title(self, group: ClassGroup) -> str:
        """Return the group's top class with its number of instances."""
        top_class = group.top_class
        name = self.format_iri(top_class.iri) if top_class.iri else top_class.name
        return f"{name} {group.size}"

    def format_values(self, values: ValueSurvey) -> str:
        """Return the sort of values, with all of them if they are few, else with examples.

        Numbers and dates are shown by the least and the greatest: "integer 0 … 39".
        """
        sort = self._format_sort(values)
        shown = [self._format_example(term) for term in values.examples]
        is_class = sort.startswith("<") or ":" in sort
        limit = MAX_LISTED_INSTANCES if is_class else MAX_LISTED_VALUES
        if values.whole and 0 < len(shown) <= limit:
            listed = ", ".join(shown)
            return listed if sort == "string" else f"{sort}: only {listed}"
        if values.sort == "IRI" and shown:
            return f"{sort}, such as {shown[0]}"
        if not values.is_literal:
            return sort
        need_no_quotes = all(UNQUOTED_VALUE.fullmatch(str(term)) for term in values.examples)
        if need_no_quotes and "string" not in sort and len(shown) > 1:
            return f"{sort} {values.examples[0]} … {values.examples[1]}"
        text = f"{sort} {', '.join(shown[:2])}"
        if len(shown[:2]) < values.distinct <= MAX_LISTED_VALUES:
            text += f" ({values.distinct} different)"
        return text

    def _format_sort(self, values: ValueSurvey) -> str:
        """Return a class as a CURIE, another sort as it is, or "literal" if that is not a word."""
        if values.sort == "class":
            return self.to_curie(str(values.of))
        return values.sort if re.fullmatch(r"[\w@.-]+", values.sort) else "literal"

    def _format_example(self, term: Term) -> str:
        return self.format_iri(term) if isinstance(term, URIRef) else quote_text(term)

    def format_property(self, prop: PropertySurvey, size: int) -> str:
        """Return a line with a predicate, how many instances have it, and its values.

        If all ``size`` instances of the class have it, the number is "all". The number of triples
        follows if it is larger. If the values only hold structure, their inner predicates are
        shown; otherwise at most MAX_VALUE_TYPES sorts of values, and the predicate's description.
        """
        count = "all" if prop.things >= size else str(prop.things)
        if prop.triples > prop.things:
            count += f" ({prop.triples} triples)"
        head = f"  {self.format_iri(prop.predicate)}: {count}"
        if prop.inner:
            node = self.format_values(prop.values[0]) if prop.values else "node"
            inner = "; ".join(map(self._format_inner, prop.inner))
            return f"{head} -> {node} with {inner}"

        if not all(values.is_literal for values in prop.values):
            head += " ->"
        texts = map(self.format_values, self._merge_grouped(prop.values))
        distinct_texts = list(dict.fromkeys(texts))
        text = " or ".join(distinct_texts[:MAX_VALUE_TYPES])
        if prop.unnamed and prop.values and prop.values[0].sort == "IRI":
            text += ", no label"
        return f"{head} {text}{self.format_note(prop.predicate)}"

    def _format_inner(self, prop: PropertySurvey) -> str:
        """Return a predicate of a node that only holds structure, with its values."""
        values = " or ".join(map(self.format_values, prop.values))
        return f"{self.format_iri(prop.predicate)} {values}"

    def _merge_grouped(self, sorts: Sequence[ValueSurvey]) -> tuple[ValueSurvey, ...]:
        """Return values of many classes of one group as values of its top class.

        There must be MIN_MERGED_SORTS of them. Values of one class or datatype are merged in any
        case.
        """
        top_classes = []
        for values in sorts:
            top_class = values.of
            if values.sort == "class" and top_class in self.group_of:
                top_class = self.group_of[top_class].top_class.iri
            top_classes.append(top_class)
        merged = []
        for values, top_class in zip(sorts, top_classes, strict=True):
            is_frequent = top_classes.count(top_class) >= MIN_MERGED_SORTS
            merged.append(replace(values, of=top_class) if is_frequent else values)
        return merge_values(merged)

    def format_note(self, iri: str | None) -> str:
        """Return the graph's own description of a class or predicate, in brackets, if it has one."""
        note = self.notes.get(str(iri))
        return f" ({quote_text(note, MAX_NOTE_CHARS)})" if note else ""

    def is_inlined(self, group: ClassGroup) -> bool:
        """Return whether a class is described wherever it is a value, and needs no lines of its own.

        That is the case if a predicate leads to it, and every predicate that does has inner
        predicates.
        """
        leading = []
        for other in self.groups:
            for prop in other.properties:
                if any(values.of == group.top_class.iri for values in prop.values):
                    leading.append(prop)
        return bool(leading) and all(prop.inner for prop in leading)

    def format_group(self, group: ClassGroup) -> str:
        """Return the lines that describe a group of classes.

        The first has the top class, the number of instances, the subclasses if the group has
        several members, and the class's description in the graph. Then comes a line for each
        predicate, and last, if there are any, the predicates of other groups that lead to it.
        """
        top_class = group.top_class
        title = f"{self.format_title(group)} instances"
        if len(group.members) > 1:
            own = "each of one subclass"
            if top_class.size:
                own = f"{top_class.size} of the class itself"
            subclasses = self._format_subclasses(top_class, (top_class.iri,), Counter())
            title += f", {own}: {subclasses}"
        lines = [title + self.format_note(top_class.iri)]
        lines += [self.format_property(prop, group.size) for prop in group.properties]
        incoming = self._incoming(group)
        if incoming:
            lines.append(f"  from others: {'; '.join(incoming[:MAX_INCOMING])}")
        return "\n".join(lines)

    def _incoming(self, group: ClassGroup) -> list[str]:
        """Return the predicates of other groups that have instances of this group as values.

        Each is a text of the other class, the predicate and the number of triples. The most
        frequent comes first. Groups of things without a class are left out.
        """
        members = {member.iri for member in group.members}
        triples: Counter[str] = Counter()
        for other in self.groups:
            if other is group or not other.top_class.iri:
                continue
            for prop in other.properties:
                number = sum(values.triples for values in prop.values if values.of in members)
                if number:
                    class_name = self.to_curie(other.top_class.iri)
                    triples[f"{class_name} {self.to_curie(prop.predicate)} {number}"] += number
        return [text for text, _ in triples.most_common()]

    def _format_subclasses(
        self,
        top_class: ClassSurvey,
        above: tuple[URIRef | None, ...],
        listings: Counter[URIRef | None],
    ) -> str:
        """Return the subclasses of a class, each with its instances and, in brackets, its subclasses.

        At most MAX_SUBCLASSES are shown, and none without instances. ``above`` are the class and
        those that it stands below; these are not shown again. ``listings`` counts how often each
        class was shown: after MAX_REPEATED_LISTINGS, and below MAX_SUBCLASS_DEPTH levels, it has
        no brackets.
        """
        subclasses = []
        for surveyed in self.survey.classes:
            is_shown_above = surveyed.iri in above
            if top_class.iri not in surveyed.parents or is_shown_above or not surveyed.total:
                continue
            listings[surveyed.iri] += 1
            text = f"{self.format_iri(str(surveyed.iri))} {surveyed.total}"
            is_repeated = listings[surveyed.iri] > MAX_REPEATED_LISTINGS
            if len(above) <= MAX_SUBCLASS_DEPTH and not is_repeated:
                below = self._format_subclasses(surveyed, (*above, surveyed.iri), listings)
                if below:
                    text += f" [{below}]"
            subclasses.append(text)
        return list_first(subclasses, MAX_SUBCLASSES)

    def remarks(self, shown: Collection[str]) -> Iterator[str]:
        """Yield a line on predicates in one direction only, and one on unused declarations.

        The first is about predicates between instances of one class, some of whose triples are not
        asserted in the other direction, and only about those that the texts ``shown`` contain.
        """
        one_way = []
        for predicate, triples, both in self.survey.both_ways:
            curie = self.to_curie(predicate)
            if both < triples and any(curie in text for text in shown):
                one_way.append(curie)
        if one_way:
            yield f"Between things of one class, mostly asserted in one direction only: {', '.join(one_way)}"
        if self.survey.unused:
            unused = map(self.to_curie, self.survey.unused[:MAX_UNUSED])
            yield f"Declared, but without any triple: {', '.join(unused)}"


def choose_prefixes(groups: Sequence[ClassGroup]) -> dict[str, str]:
    """Return the prefix of each namespace in groups of classes.

    These are RDF, RDFS, XSD and the MAX_PREFIXES namespaces with the most IRIs, without those that
    a query cannot contain.
    """
    iris: list[str] = []
    for group in groups:
        iris += [member.iri for member in group.members if member.iri]
        for prop in group.properties:
            iris.append(prop.predicate)
            for values in prop.values:
                iris += [term for term in values.examples if isinstance(term, URIRef)]
            iris += [inner.predicate for inner in prop.inner]

    prefixes = {str(namespace): KNOWN_PREFIXES[str(namespace)] for namespace in (RDF, RDFS, XSD)}
    namespaces = Counter(split_iri(iri)[0] for iri in iris)
    for namespace, _ in namespaces.most_common(MAX_PREFIXES):
        if namespace not in prefixes and not INVALID_IRI_CHARACTER.search(namespace):
            prefixes[namespace] = choose_prefix(namespace, prefixes.values())
    return prefixes
