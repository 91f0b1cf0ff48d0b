"""A survey as text for a model. Names are CURIEs, and what the graph says stands in quotes."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from threading import Lock

from rdflib import RDF, RDFS, XSD, URIRef

from kgwb.kg.base import Vocabulary
from kgwb.kg.survey_queries import holds_structure
from kgwb.kg.survey_records import (
    MAX_LISTED_VALUES,
    ClassGroup,
    ClassSurvey,
    PropertySurvey,
    Survey,
    TextOfLink,
    ValueSurvey,
    group_classes,
    iris_in_properties,
    merge_values,
)
from kgwb.kg.term_text import (
    INVALID_IRI_CHARACTER,
    UNQUOTED_VALUE,
    quote_text,
    quote_unless_number,
    to_curie,
)
from kgwb.terms import KNOWN_PREFIXES, Term, choose_prefix, local_part, name_from_iri, split_iri
from kgwb.text import first_items, list_first, pluralize

LABEL_PREDICATES = Vocabulary().labels
MAX_PREFIXES = 40
"""Namespaces that get a prefix: those with the most IRIs."""
MAX_NOTE_CHARS = 80
MAX_SUBCLASSES = 30
"""Subclasses of a class that are shown."""
MAX_VALUE_TYPES = 5
"""Sorts of a predicate's values that are shown."""
MAX_LISTED_INSTANCES = 6
"""If a predicate has at most so many instances of a class as values, all are named."""
MAX_INCOMING = 6
"""Predicates of other classes that lead to a class."""
MAX_OUTLINED = 12
"""Predicates of a class that is shown in one line."""
MAX_UNUSED = 40
MIN_MERGED_SORTS = 3
"""If values are of so many classes of one group, the group stands for them."""
MAX_KEPT_WRITERS = 8
"""Writers that are kept: one for each survey that questions are asked over at one time."""
_kept_writers: dict[tuple[int, tuple[URIRef, ...]], SurveyWriter] = {}
"""By the id of the survey and the label predicates, the oldest first."""
_writers_lock = Lock()
ALL_INSTANCES = "?x rdf:type/rdfs:subClassOf*"


class SurveyWriter:
    """Writes the classes of a survey as text for a model, in groups of similar classes.

    Each line says what a pattern finds. Text of the graph never stands outside of quotes.
    """

    def __init__(self, survey: Survey, labels: Collection[URIRef] = LABEL_PREDICATES) -> None:
        """``labels`` are the predicates by which the graph names its things."""
        self.survey = survey
        self.labels = labels
        self.names = {str(iri): name for iri, name in survey.names}
        self.notes = {str(iri): note for iri, note in survey.notes}
        self.groups = group_classes(survey)
        self.prefixes = choose_prefixes(self.groups)
        self._position_of: dict[URIRef | None, int] = {}
        for position, group in enumerate(self.groups):
            self._position_of.update(dict.fromkeys(group.iris, position))
        self._factors: dict[str, list[str]] = defaultdict(list)
        """The numbers of each thing that nodes have as their unit, each with its predicate."""
        for thing, predicate, number in survey.factors:
            text = str(number)
            if not UNQUOTED_VALUE.fullmatch(number):
                text = quote_text(number)
            self._factors[str(thing)].append(f"{self.to_curie(predicate)} {text}")
        self._both_ways = {iri: numbers for iri, *numbers in survey.both_ways}
        self._structures: dict[URIRef | None, ClassSurvey] = {}
        """The classes whose instances only hold structure."""
        for surveyed in survey.classes:
            values = {prop.predicate: prop.values for prop in surveyed.properties}
            if surveyed.iri and holds_structure(values, labels):
                self._structures[surveyed.iri] = surveyed
        self._inlined = self._find_inlined()
        self._texts: dict[int, str] = {}
        """The text of each group that was asked for, by the position of the group."""

    def group_text(self, position: int) -> str:
        """Return the lines of the group at a position, see ``format_group``.

        They are kept, because they are the same for every question, and take 1 ms.
        """
        if position not in self._texts:
            self._texts[position] = self.format_group(self.groups[position])
        return self._texts[position]

    def positions_led_to(self, position: int) -> set[int]:
        """Return the positions of the groups whose classes are values of a group's predicates."""
        positions = set()
        for prop in self.groups[position].properties:
            for values in prop.values:
                led_to = self._position_of.get(values.of)
                if led_to is not None:
                    positions.add(led_to)
        return positions

    def to_curie(self, iri: str) -> str:
        """Return an IRI as a CURIE, or in brackets if its namespace has no prefix."""
        return to_curie(iri, self.prefixes)

    def format_iri(self, iri: str) -> str:
        """Return a CURIE, followed by the IRI's display name in quotes if that says more.

        It does not if its letters and digits are those of the local part, whatever their case.
        """
        curie = self.to_curie(iri)
        name = self.names.get(str(iri)) or name_from_iri(iri)
        name_letters = re.sub(r"\W", "", name)
        local_letters = re.sub(r"\W|_", "", local_part(iri))
        if name_letters.lower() == local_letters.lower():
            return curie
        return f"{curie} {quote_text(name)}"

    def format_title(self, group: ClassGroup) -> str:
        """Return the group's top class with its number of instances: "ex:Film "film" 120".

        The display name is left out if it says no more than the CURIE. The group of things without
        a class has its own name in place of a CURIE.
        """
        name = group.top_class.name
        if group.top_class.iri:
            name = self.format_iri(group.top_class.iri)
        return f"{name} {group.size}"

    def format_note(self, iri: str | None) -> str:
        """Return the graph's own description of a class or predicate in brackets, after a space.

        It is quoted, and cut at MAX_NOTE_CHARS. Empty if there is none.
        """
        note = self.notes.get(str(iri))
        if not note:
            return ""
        return f" ({quote_text(note, MAX_NOTE_CHARS)})"

    # Groups of classes

    def format_group(self, group: ClassGroup) -> str:
        """Return the lines that describe a group of classes.

        The first has the top class, the number of instances, what patterns find if there are
        subclasses, and the class's description in the graph. Then comes a line for each predicate,
        and last, if there are any, the predicates of other groups that lead to it. A text that
        another predicate has as a link comes right below that, unless the link is such a text, too.
        """
        title = f"{self.format_title(group)} instances{self._format_patterns(group)}"
        lines = [title + self.format_note(group.top_class.iri)]
        if self.survey.sampled and group.members and not group.properties:
            lines.append("  its predicates are not known")
        properties = {prop.predicate: prop for prop in group.properties}
        texts: dict[URIRef, list[str]] = defaultdict(list)
        pairs = [each for each in self.survey.texts_of_links if each.of == group.top_class.iri]
        text_predicates = {found.text for found in pairs}
        for found in pairs:
            # A predicate with texts and things as values may be a text as well as a link.
            if found.link not in text_predicates:
                link = properties[found.link]
                text = properties.pop(found.text)
                texts[found.link].append(self._format_text_of(found, link, text, group.size))
        for prop in properties.values():
            lines.append(self.format_property(prop, group))
            lines += texts[prop.predicate]
        incoming = self._incoming(group)
        if incoming:
            lines.append(f"  led to by {'; '.join(first_items(incoming, MAX_INCOMING))}")
        return "\n".join(lines)

    def outline(self, position: int, max_chars: int = 0) -> str:
        """Return the group at a position in short: its title, and the names of its predicates.

        The names are at most MAX_OUTLINED, and how many more there are. The predicates that the most
        instances have get lines of their own instead, as far as these fit in ``max_chars``.
        """
        group = self.groups[position]
        names = []
        lines = []
        for prop in group.properties:
            line = ""
            if max_chars > 0:
                line = self.format_property(prop, group)
                max_chars -= len(line)
            if line and max_chars >= 0:
                lines.append(line)
            else:
                names.append(self.to_curie(prop.predicate))
        title = f"{self.format_title(group)}: {list_first(names, MAX_OUTLINED)}"
        return "\n".join([title, *lines])

    def _format_patterns(self, group: ClassGroup) -> str:
        """Return what patterns for the top class find, and its subclasses; "" if it has none.

        A subclass has its own instances, and if they are more, those with its own subclasses.
        """
        top_class = group.top_class
        if not top_class.iri or not group.below:
            return ""
        curie = self.to_curie(top_class.iri)
        text = f": ?x a {curie} finds {top_class.size or 'none'}"
        if top_class.total > top_class.size:
            text += f", {ALL_INSTANCES} {curie} finds {top_class.total}"
        subclasses = []
        for surveyed in group.below:
            number = str(surveyed.size)
            if surveyed.total > surveyed.size:
                number += f" (with its own subclasses {surveyed.total})"
            subclasses.append(f"{self.format_iri(str(surveyed.iri))} {number}")
        text += f"; subclasses: {list_first(subclasses, MAX_SUBCLASSES)}"
        if group.is_single:
            text += ", described apart"
        return text

    def _incoming(self, group: ClassGroup) -> list[str]:
        """Return the predicates of other groups that have instances of this group as values.

        Each is a text "predicate of class, class", the one with the most triples first. Groups of
        things without a class are left out.
        """
        triples: Counter[URIRef] = Counter()
        sources: dict[URIRef, dict[str, None]] = defaultdict(dict)
        for other in self.groups:
            if other is group or not other.top_class.iri:
                continue
            source = self.to_curie(other.top_class.iri)
            for prop in other.properties:
                for values in prop.values:
                    if values.of in group.iris:
                        triples[prop.predicate] += values.triples
                        sources[prop.predicate][source] = None
        texts = []
        for predicate, _ in triples.most_common():
            classes = list_first(sources[predicate], MAX_INCOMING)
            texts.append(f"{self.to_curie(predicate)} of {classes}")
        return texts

    def is_inlined(self, group: ClassGroup) -> bool:
        """Return whether a group's classes are described where they are values, and need no lines.

        That is so if all of their instances only hold structure, and if each predicate that leads
        to them shows their own predicates.
        """
        members = {member.iri for member in group.members}
        return bool(members) and members <= self._inlined

    def _find_inlined(self) -> set[URIRef | None]:
        """Return the classes whose instances are all shown at the predicates that lead to them.

        They only hold structure, every predicate with them as values shows their predicates, and
        these have at least as many values as the class has instances. In a sample one value is
        enough, because their number is not known.
        """
        shown: Counter[URIRef | None] = Counter()
        not_shown: set[URIRef | None] = set()
        for group in self.groups:
            for prop in group.properties:
                for values in prop.values:
                    if self._are_nodes(values, prop):
                        shown[values.of] += values.distinct
                    else:
                        not_shown.add(values.of)
        inlined = set()
        for iri, surveyed in self._structures.items():
            least = surveyed.size
            if self.survey.sampled:
                least = 1
            if iri not in not_shown and shown[iri] >= least:
                inlined.add(iri)
        return inlined

    # Predicates

    def format_property(self, prop: PropertySurvey, group: ClassGroup) -> str:
        """Return a line of a predicate: how many instances have it, its triples, and its values.

        The number of instances is "all" if it is that of the group. The number of triples follows
        if it is larger. If some of the values only hold structure, their inner predicates come after
        the values. Last come how many triples hold in reverse, if it leads to the group itself, and
        the predicate's description in the graph.
        """
        line = f"  {self._format_uses(prop, group.size)}"
        leads_to_itself = any(values.of in group.iris for values in prop.values)
        if leads_to_itself and prop.predicate in self._both_ways:
            triples, both = self._both_ways[prop.predicate]
            number = str(both or "none")
            if both == triples:
                number = "all"
            line += f"; {number} of its {triples} triples also the other way round"
        return line + self.format_note(prop.predicate)

    def _format_uses(self, prop: PropertySurvey, size: int) -> str:
        """Return a predicate, how many of ``size`` instances have it, its triples, and its values."""
        count = "all" if prop.things >= size else str(prop.things)
        if prop.triples > prop.things:
            count += f" ({prop.triples} triples)"
        values = self._format_all_sorts(prop)
        return f"{self.format_iri(prop.predicate)}: {count} {values}"

    def _format_text_of(
        self, found: TextOfLink, link: PropertySurvey, text: PropertySurvey, size: int
    ) -> str:
        """Return the line of a text below that of the link: its coverage, and how many differ."""
        uses = self._format_uses(text, size)
        same = "all" if found.same == found.both else found.same
        only_link = link.things - found.both
        only_text = text.things - found.both
        return (
            f"    the same as a text, {uses}; {found.both} have both (in {same} of these the name of"
            f" the thing contains the text), {only_text} only the text, {only_link} only the thing"
        )

    # Values

    def _format_all_sorts(self, prop: PropertySurvey) -> str:
        """Return at most MAX_VALUE_TYPES sorts of a predicate's values, and how many more there are.

        Those that hold structure come last, or "node" if there are none of them; after "with" their
        inner predicates follow, each with its values, separated by "; ".
        """
        nodes = []
        others = []
        for values in self._merge_grouped(prop.values):
            if self._are_nodes(values, prop):
                nodes.append(values)
            else:
                others.append(values)
        texts = self.format_all_values([*others, *nodes], prop.bare)
        text = " or ".join(texts[:MAX_VALUE_TYPES])
        omitted = len(texts) - MAX_VALUE_TYPES
        if omitted > 0:
            text += f" or {pluralize(omitted, 'other kind')} of values"
        if prop.inner:
            inner_texts = []
            for inner in prop.inner:
                sorts = " or ".join(self.format_all_values(inner.values))
                inner_texts.append(f"{self.format_iri(inner.predicate)} {sorts}")
            text += f" with {'; '.join(inner_texts)}"
        return text

    def _are_nodes(self, values: ValueSurvey, prop: PropertySurvey) -> bool:
        """Return whether values only hold structure, and are shown by their own predicates.

        That is so for blank nodes without a class, and for instances of a class that only holds
        structure and whose predicates are inner predicates of ``prop``.
        """
        surveyed = self._structures.get(values.of)
        if surveyed is None:
            return values.sort == "node"
        inner = {inner.predicate for inner in prop.inner}
        return inner.issuperset(surveyed.predicates)

    def _merge_grouped(self, sorts: Sequence[ValueSurvey]) -> tuple[ValueSurvey, ...]:
        """Replace many classes of one group by its top class, then merge values of one class.

        A group's classes are replaced if at least MIN_MERGED_SORTS of the values are of the group.
        They get the sort "subclass". The most frequent comes first.
        """
        positions = [self._position_of.get(values.of) for values in sorts]
        merged = list(sorts)
        for number, position in enumerate(positions):
            if position is not None and positions.count(position) >= MIN_MERGED_SORTS:
                top_class = self.groups[position].top_class.iri
                merged[number] = replace(sorts[number], sort="subclass", of=top_class)
        return merge_values(merged)

    def format_all_values(self, sorts: Sequence[ValueSurvey], bare: int = 0) -> list[str]:
        """Return a text for each sort of a predicate's values, each text once.

        What is no literal has an arrow before it, and behind it its triples if there are several
        sorts. ``bare`` is how many triples lead to IRIs that the graph says nothing about.
        """
        texts: dict[str, None] = {}
        for values in sorts:
            name = self._format_sort(values)
            if values.sort == "IRI" and bare:
                name = "IRI that the graph says nothing about"
                if bare < values.triples:
                    name = f"IRI without a class ({bare} of which the graph says nothing about)"
            if not values.is_literal:
                name = f"-> {name}"
                if len(sorts) > 1:
                    name += f" ({values.triples})"
            texts[self.format_values(values, name)] = None
        return list(texts)

    def format_values(self, values: ValueSurvey, sort: str) -> str:
        """Return the name of a sort of values, with all of them if few, else with examples.

        "sort: only a, b" if all values are known and are at most MAX_LISTED_INSTANCES instances of
        a class or MAX_LISTED_VALUES others. Otherwise IRIs without a class have one example,
        literals those of ``_format_literals``, and instances of classes and blank nodes none.
        Strings stand in quotes, numbers and dates do not.
        """
        limit = MAX_LISTED_VALUES
        if values.sort in ("class", "subclass"):
            limit = MAX_LISTED_INSTANCES
        if values.whole and 0 < len(values.examples) <= limit:
            listed = ", ".join(map(self._format_example, sorted(values.examples)))
            return f"{sort}: only {listed}"
        examples = list(map(self._format_example, values.examples))
        if values.sort == "IRI" and examples:
            return f"{sort}, such as {examples[0]}"
        if values.is_literal:
            return self._format_literals(values, sort, examples)
        return sort

    def _format_literals(self, values: ValueSurvey, sort: str, examples: Sequence[str]) -> str:
        """Return the sort of literals with at most two examples, and their number if it is small.

        Numbers and dates are shown by the least and the greatest: "integer 0 … 39". Of texts, the
        one from among the others is shown first, because the least and the greatest are often odd
        ones. The number of distinct values is added if it is more than the examples and at most
        MAX_LISTED_VALUES.
        """
        are_ordered = not any(example.startswith('"') for example in examples)
        if are_ordered and len(examples) > 1:
            return f"{sort} {examples[0]} … {examples[1]}"
        shown = [*examples[2:3], *examples[:2]][:2]
        text = f"{sort} {', '.join(shown)}"
        if len(shown) < values.distinct <= MAX_LISTED_VALUES and not values.at_least:
            text += f" ({values.distinct} different)"
        return text

    def _format_sort(self, values: ValueSurvey) -> str:
        """Return the CURIE of a class or of a datatype that is not one of XML Schema.

        Other sorts are returned as they are: "integer", "text@en", "node". One that is not a word
        becomes "literal".
        """
        if values.sort == "subclass":
            return f"{self.to_curie(str(values.of))} or a subclass"
        if values.sort == "IRI":
            return "IRI without a class"
        is_known = str(values.of).startswith((str(XSD), str(RDF)))
        if values.of and (values.sort == "class" or not is_known):
            return self.to_curie(values.of)
        if re.fullmatch(r"[\w@.-]+", values.sort):
            return values.sort
        return "literal"

    def _format_example(self, term: Term) -> str:
        """Return an IRI as ``format_iri`` does, and any other term as its text.

        A thing that is a unit has its numbers in brackets, such as its factor. A text stands in
        quotes; a number, a date or a boolean does not, so that a number kept as a text is told from
        a number.
        """
        if not isinstance(term, URIRef):
            return quote_unless_number(term)
        text = self.format_iri(term)
        numbers = self._factors.get(str(term))
        if numbers:
            text += f" ({', '.join(numbers)})"
        return text

    def remarks(self) -> Iterator[str]:
        """Yield lines on the sample, on what is not known, and on unused declarations.

        Of the declarations at most MAX_UNUSED are listed, and how many more there are. A line that
        would be empty is left out.
        """
        if self.survey.sampled:
            sample = "a sample"
            if self.survey.sample_limit:
                sample += f" of at most {self.survey.sample_limit} instances of each class"
            yield f"The numbers of instances with a predicate are estimated from {sample}"
        if self.survey.lacks:
            yield f"Not known of this graph: {'; '.join(self.survey.lack_texts())}"
        if self.survey.unused:
            listed = list_first(map(self.to_curie, self.survey.unused), MAX_UNUSED)
            yield f"Declared, but without any triple: {listed}"


def writer_of_survey(survey: Survey, labels: Collection[URIRef] = LABEL_PREDICATES) -> SurveyWriter:
    """Return the writer of a survey, which is kept with the texts that it has written.

    Questions over one graph share its survey, and to group its classes and to write them takes
    longer than all else that is done for a question. The MAX_KEPT_WRITERS writers that were made
    last are kept. They are found by the object that the survey is, because comparing two surveys
    takes long.
    """
    key = (id(survey), tuple(labels))
    with _writers_lock:
        if key not in _kept_writers:
            # The writer holds the survey, so that no other survey gets its id.
            _kept_writers[key] = SurveyWriter(survey, labels)
        if len(_kept_writers) > MAX_KEPT_WRITERS:
            oldest = next(iter(_kept_writers))
            del _kept_writers[oldest]
        return _kept_writers[key]


def choose_prefixes(groups: Sequence[ClassGroup]) -> dict[str, str]:
    """Return the prefix of each namespace in groups of classes, by namespace.

    These are RDF, RDFS, XSD and the MAX_PREFIXES namespaces with the most IRIs. A namespace that a
    query cannot contain is left out. A well-known namespace has its usual prefix.
    """
    namespaces: Counter[str] = Counter()
    for group in groups:
        for iri in (*group.iris, *iris_in_properties(group.properties)):
            namespace, _ = split_iri(iri)
            namespaces[namespace] += 1

    prefixes = {}
    for known in map(str, (RDF, RDFS, XSD)):
        prefixes[known] = KNOWN_PREFIXES[known]
    for namespace, _ in namespaces.most_common(MAX_PREFIXES):
        if namespace not in prefixes and not INVALID_IRI_CHARACTER.search(namespace):
            prefixes[namespace] = choose_prefix(namespace, prefixes.values())
    return prefixes
