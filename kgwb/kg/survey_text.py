"""A survey as text for a model. Names are CURIEs, and what the graph says stands in quotes."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from threading import Lock

from rdflib import RDF, RDFS, XSD, Literal, URIRef

from kgwb.kg.base import Vocabulary
from kgwb.kg.survey_queries import holds_structure
from kgwb.kg.survey_records import (
    MAX_LISTED_VALUES,
    NUMERIC_DATATYPES,
    ClassGroup,
    ClassSurvey,
    PropertySurvey,
    Survey,
    ValueSurvey,
    group_classes,
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
from kgwb.text import and_more, first_items, list_first, tell_apart

LABEL_PREDICATES = Vocabulary().labels
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
MAX_LISTED_INSTANCES = 6
"""If a predicate has at most so many instances of a class as values, all are named."""
MAX_INCOMING = 6
"""Predicates of other classes that lead to a class."""
MAX_UNUSED = 30
MIN_REVERSED_SHARE = 0.5
"""The share of a predicate's triples that another one must have in reverse to be named with it."""
WORD_OF_CURIE = re.compile(r"[\w-]*:[\w-]+|<[^<>\s]+>")
MIN_MERGED_SORTS = 3
"""If values are of so many classes of one group, the group stands for them."""
MAX_KEPT_WRITERS = 8
"""Writers that are kept: one for each survey that questions are asked over at one time."""
_kept_writers: dict[tuple[int, tuple[URIRef, ...]], SurveyWriter] = {}
"""By the id of the survey and the label predicates, the oldest first."""
_writers_lock = Lock()


class SurveyWriter:
    """Writes the classes of a survey as text for a model, in groups of similar classes.

    Text of the graph never stands outside of quotes.
    """

    def __init__(self, survey: Survey, labels: Collection[URIRef] = LABEL_PREDICATES) -> None:
        """``labels`` are the predicates by which the graph names its things."""
        self.survey = survey
        self.labels = labels
        self.names = {}
        for iri, name in survey.names:
            self.names[str(iri)] = name
        self.notes = {}
        for iri, note in survey.notes:
            self.notes[str(iri)] = note
        self.factors: dict[str, list[tuple[str, str]]] = defaultdict(list)
        """The predicates with the number of each thing that nodes have as their unit."""
        self._numbers_of_units: dict[str, dict[str, str]] = defaultdict(dict)
        """The same the other way round: the number of each thing, by the predicate."""
        for thing, predicate, number in survey.factors:
            text = _format_number(number)
            factor = (str(predicate), text)
            self.factors[str(thing)].append(factor)
            numbers = self._numbers_of_units[str(predicate)]
            numbers[str(thing)] = text
        self.groups = group_classes(survey)
        self.group_of: dict[URIRef | None, ClassGroup] = {}
        self._position_of: dict[URIRef | None, int] = {}
        for position, group in enumerate(self.groups):
            for member in group.members:
                self.group_of[member.iri] = group
                self._position_of[member.iri] = position
        self._superclasses: set[URIRef | None] = set()
        """Top classes of groups that have no instances of their own."""
        for group in self.groups:
            top_class = group.top_class
            if top_class.iri and not top_class.size:
                self._superclasses.add(top_class.iri)
        self.prefixes = choose_prefixes(self.groups)
        self._texts: dict[int, str] = {}
        """The text of each group that was asked for, by the position of the group."""
        self._classes: dict[int, tuple[ClassSurvey, ...]] = {}
        """The classes of each group that was asked for, by its position."""
        self._inlined: dict[int, bool] = {}
        """Whether each group that was asked for is inlined, by its position."""

    def group_text(self, position: int) -> str:
        """Return the lines of the group at a position, see ``format_group``.

        They are kept, because they are the same for every question, and take 1 ms.
        """
        if position not in self._texts:
            group = self.groups[position]
            self._texts[position] = self.format_group(group)
        return self._texts[position]

    def is_position_inlined(self, position: int) -> bool:
        """Return whether the group at a position is inlined, see ``is_inlined``. It is kept, too."""
        if position not in self._inlined:
            group = self.groups[position]
            self._inlined[position] = self.is_inlined(group)
        return self._inlined[position]

    def classes_of(self, position: int) -> tuple[ClassSurvey, ...]:
        """Return the classes that the group at a position describes.

        The top class comes first, then its members, then the superclasses between them, which have
        no instances of their own. The group of things without a class has one without an IRI.
        """
        if position not in self._classes:
            group = self.groups[position]
            classes = [group.top_class, *group.members]
            if len(group.members) > 1:
                classes += self._find_classes_between(group)
            distinct_classes = dict.fromkeys(classes)
            self._classes[position] = tuple(distinct_classes)
        return self._classes[position]

    def positions_led_to(self, props: Iterable[PropertySurvey]) -> set[int]:
        """Return the positions of the groups whose classes are values of the predicates."""
        positions = set()
        for prop in props:
            for values in prop.values:
                position = self._position_of.get(values.of)
                if position is not None:
                    positions.add(position)
        return positions

    def _find_classes_between(self, group: ClassGroup) -> list[ClassSurvey]:
        """Return the superclasses of a group's members that are subclasses of its top class."""
        surveyed_by_iri = {surveyed.iri: surveyed for surveyed in self.survey.classes}
        below: set[URIRef | None] = {group.top_class.iri}
        waiting = [group.top_class.iri]
        while waiting:
            superclass = waiting.pop()
            for surveyed in self.survey.classes:
                if superclass in surveyed.parents and surveyed.iri not in below:
                    below.add(surveyed.iri)
                    waiting.append(surveyed.iri)
        found: dict[ClassSurvey, None] = {}
        looked_at: set[URIRef] = set()
        parents: list[URIRef] = []
        for member in group.members:
            parents += member.parents
        while parents:
            parent = parents.pop(0)
            is_between = parent in below and parent in surveyed_by_iri
            if is_between and parent not in looked_at:
                looked_at.add(parent)
                surveyed = surveyed_by_iri[parent]
                found[surveyed] = None
                parents += surveyed.parents
        return list(found)

    def to_curie(self, iri: str) -> str:
        """Return an IRI as a CURIE, or in brackets if its namespace has no prefix."""
        return to_curie(iri, self.prefixes)

    def format_iri(self, iri: str) -> str:
        """Return a CURIE, followed by the IRI's display name in quotes if that says more.

        It does not if its letters and digits are those of the local part, whatever their case.
        """
        curie = self.to_curie(iri)
        name = self.names.get(str(iri), "")
        if not name or name == name_from_iri(iri):
            return curie

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

    def format_all_values(self, sorts: Sequence[ValueSurvey]) -> list[str]:
        """Return a text for each sort of a predicate's values, each text once.

        Datatypes of one local name are told apart by their CURIEs.
        """
        sort_names = tell_apart(sorts, (self._format_sort, self._format_datatype))
        texts: dict[str, None] = {}
        for values in sorts:
            text = self.format_values(values, sort_names[values])
            texts[text] = None
        return list(texts)

    def format_values(self, values: ValueSurvey, sort: str) -> str:
        """Return the name of a sort of values, with all of them if few, else with examples.

        "sort: only a, b" if all values are known and are at most MAX_LISTED_INSTANCES instances of
        a class or MAX_LISTED_VALUES others. Otherwise IRIs without a class have one example,
        literals those of ``_format_literals``, and instances of classes and blank nodes none.
        Strings stand in quotes, numbers and dates do not.
        """
        in_order = list(values.examples)
        if values.whole:
            in_order.sort(key=_by_number)
        examples = [self._format_example(term) for term in in_order]
        limit = MAX_LISTED_VALUES
        if values.sort == "class":
            limit = MAX_LISTED_INSTANCES

        if values.whole and 0 < len(examples) <= limit:
            listed = ", ".join(examples)
            return f"{sort}: only {listed}"
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
        texts = map(str, values.examples)
        need_no_quotes = all(map(UNQUOTED_VALUE.fullmatch, texts))
        are_ordered = need_no_quotes and "string" not in sort
        if are_ordered and len(examples) > 1:
            least, greatest = values.examples[:2]
            return f"{sort} {least} … {greatest}"
        extremes = examples[:2]
        others = examples[2:3]
        shown = [*others, *extremes][:2]
        listed = ", ".join(shown)
        text = f"{sort} {listed}"
        is_small = len(shown) < values.distinct <= MAX_LISTED_VALUES
        if is_small and not values.at_least:
            text += f" ({values.distinct} different)"
        return text

    def _format_sort(self, values: ValueSurvey) -> str:
        """Return a class as a CURIE, and another sort as it is: "integer", "text@en", "node".

        Before a class that stands for subclasses, without instances of its own, is "a subclass of".

        A sort that is not one word, such as the IRI of a datatype, becomes "literal".
        """
        if values.sort == "class":
            curie = self.to_curie(str(values.of))
            if values.of in self._superclasses:
                return f"a subclass of {curie}"
            return curie
        is_word = re.fullmatch(r"[\w@.-]+", values.sort)
        if not is_word:
            return "literal"
        return values.sort

    def _format_datatype(self, values: ValueSurvey) -> str:
        """Return a class or datatype as a CURIE; another sort, such as a language, as it is."""
        has_iri = values.of is not None and values.of != RDF.langString
        if has_iri:
            return self.to_curie(str(values.of))
        return self._format_sort(values)

    def _format_example(self, term: Term) -> str:
        """Return an IRI as ``format_iri`` does, and any other term as its text.

        A thing that is a unit has its numbers behind it, such as its factor. A text stands in
        quotes; a number, a date or a boolean does not, so that a number kept as a text is told from
        a number.
        """
        if isinstance(term, URIRef):
            return f"{self.format_iri(term)}{self._format_factors(term)}"
        return quote_unless_number(term)

    def _format_factors(self, iri: str) -> str:
        """Return the numbers of a thing that nodes have as their unit in brackets; "" without any."""
        numbers = []
        for predicate, number in self.factors.get(str(iri), ()):
            curie = self.to_curie(predicate)
            numbers.append(f"{curie} {number}")
        if not numbers:
            return ""
        listed = ", ".join(numbers)
        return f" ({listed})"

    def format_property(self, prop: PropertySurvey, size: int) -> str:
        """Return a line of a predicate: how many instances have it, its triples, and its values.

        The number of instances is "all" if it is that of the class, ``size``. The number of triples
        follows if it is larger. If some of the values only hold structure, their inner predicates
        come after the values; otherwise the predicate's description in the graph.
        """
        count = str(prop.things)
        if prop.things >= size:
            count = "all"
        if prop.triples > prop.things:
            count += f" ({prop.triples} triples)"
        predicate = self.format_iri(prop.predicate)
        line = f"  {predicate}: {count}"

        if prop.inner:
            nodes = self._format_nodes(prop)
            return f"{line} -> {nodes}"
        if not all(values.is_literal for values in prop.values):
            line += " ->"
        text = self._format_all_sorts(prop)
        each = self._format_numbers_of_units(prop)
        if each:
            text = each
        note = self.format_note(prop.predicate)
        return f"{line} {text}{note}"

    def _format_numbers_of_units(self, prop: PropertySurvey) -> str:
        """Return the number of each thing that is a unit; "" if the predicate is not that of units.

        An example is "decimal: only 0.3048 of ex:foot "foot", 1 of ex:metre "metre"".
        """
        numbers = self._numbers_of_units.get(str(prop.predicate), {})
        are_all = numbers and len(numbers) >= prop.things
        have_one_sort = len(prop.values) == 1
        if not are_all or not have_one_sort:
            return ""
        sort = self._format_sort(prop.values[0])
        parts = []
        for thing, number in numbers.items():
            name = self.format_iri(thing)
            parts.append(f"{number} of {name}")
        listed = ", ".join(parts)
        return f"{sort}: only {listed}"

    def _format_nodes(self, prop: PropertySurvey) -> str:
        """Return the values of a predicate, some of which only hold structure, joined by " or ".

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
        texts = self.format_all_values(others)
        texts += self.format_all_values(nodes) or ["node"]
        inner_texts = []
        for inner in prop.inner:
            predicate = self.format_iri(inner.predicate)
            text = " or ".join(self.format_all_values(inner.values))
            inner_texts.append(f"{predicate} {text}")
        outer = " or ".join(texts)
        listed = "; ".join(inner_texts)
        return f"{outer} with {listed}"

    def _are_nodes(self, values: ValueSurvey, prop: PropertySurvey) -> bool:
        """Return whether values only hold structure, and are shown by their own predicates.

        That is so for blank nodes without a class, and for instances of a class that only holds
        structure and whose predicates are inner predicates of ``prop``.
        """
        if values.sort != "class":
            return values.sort == "node"
        for surveyed in self.survey.classes:
            if surveyed.iri == values.of:
                return self._holds_structure(surveyed) and _has_inner(prop, surveyed)
        return False

    def _holds_structure(self, surveyed: ClassSurvey) -> bool:
        """Return whether the instances of a class only hold structure."""
        values_by_predicate = {}
        for prop in surveyed.properties:
            values_by_predicate[prop.predicate] = prop.values
        return holds_structure(values_by_predicate, self.labels)

    def _format_all_sorts(self, prop: PropertySurvey) -> str:
        """Return at most MAX_VALUE_TYPES sorts of a predicate's values, and how many more there are.

        ", no label" is added if the values are mostly IRIs without a class, and some of these have
        no label.
        """
        texts = self.format_all_values(self._merge_grouped(prop.values))
        text = " or ".join(texts[:MAX_VALUE_TYPES])
        omitted = and_more(len(texts) - MAX_VALUE_TYPES)
        if omitted:
            text += f", {omitted}"
        are_mostly_iris = prop.values and prop.values[0].sort == "IRI"
        if are_mostly_iris and prop.unnamed:
            text += ", no label"
        return text

    def _merge_grouped(self, sorts: Sequence[ValueSurvey]) -> tuple[ValueSurvey, ...]:
        """Replace many classes of one group by its top class, then merge values of one class.

        A group's classes are replaced if at least MIN_MERGED_SORTS of the values are of the group.
        A class without a group stays itself. The most frequent comes first.
        """
        top_classes = []
        for values in sorts:
            top_class = values.of
            if values.sort == "class" and top_class in self.group_of:
                top_class = self.group_of[top_class].top_class.iri
            top_classes.append(top_class)

        merged = []
        for values, top_class in zip(sorts, top_classes, strict=True):
            if top_classes.count(top_class) >= MIN_MERGED_SORTS:
                merged.append(replace(values, of=top_class))
            else:
                merged.append(values)
        return merge_values(merged)

    def format_note(self, iri: str | None) -> str:
        """Return the graph's own description of a class or predicate in brackets, after a space.

        It is quoted, and cut at MAX_NOTE_CHARS. Empty if there is none.
        """
        note = self.notes.get(str(iri))
        if not note:
            return ""
        return f" ({quote_text(note, MAX_NOTE_CHARS)})"

    def is_inlined(self, group: ClassGroup) -> bool:
        """Return whether a group's classes are described where they are values, and need no lines.

        That is so if all of their instances only hold structure, and if each predicate that leads
        to them shows their own predicates.
        """
        classes = []
        for surveyed in (group.top_class, *group.members):
            if surveyed.size:
                classes.append(surveyed)
        return bool(classes) and all(map(self._is_described_as_value, classes))

    def _is_described_as_value(self, surveyed: ClassSurvey) -> bool:
        """Return whether all instances of a class are shown at the predicates that lead to them.

        It is so if the class only holds structure, every predicate with it as value shows its
        predicates, and these have at least as many values as the class has instances. In a sample
        one value is enough, because their number is not known.
        """
        if surveyed.iri is None or not self._holds_structure(surveyed):
            return False
        number = 0
        for group in self.groups:
            for prop in group.properties:
                leading = [values for values in prop.values if _is_class(values, surveyed.iri)]
                if not leading:
                    continue
                if not _has_inner(prop, surveyed):
                    return False
                for values in leading:
                    number += values.distinct
        if self.survey.sampled:
            return number > 0
        return number >= surveyed.size

    def format_group(self, group: ClassGroup) -> str:
        """Return the lines that describe a group of classes.

        The first has the top class, the number of instances, and the class's description in the
        graph. If the group has several members, it says how many instances have the type of the
        top class itself, and names the subclasses. A class alone whose subclasses are described
        elsewhere has the number with them as well. Then comes a line for each
        predicate, and last, if there are any, the predicates of other groups that lead to it: at
        most MAX_INCOMING, and how many more there are.
        """
        top_class = group.top_class
        title = f"{self.format_title(group)} instances"
        if len(group.members) > 1:
            curie = self.to_curie(str(top_class.iri))
            own = f"none typed {curie} itself, all typed with a subclass"
            if top_class.size:
                own = f"{top_class.size} typed {curie} itself, the others with a subclass"
            subclasses = self._format_subclasses(top_class, (top_class.iri,), Counter())
            title += f", {own}: {subclasses}"
        elif top_class.iri and top_class.total > top_class.size:
            curie = self.to_curie(top_class.iri)
            title += f" typed {curie} itself; with its subclasses {top_class.total}"
        title += self.format_note(top_class.iri)

        lines = [title]
        if self.survey.sampled and not group.properties:
            lines.append("  its predicates are not known")
        for prop in group.properties:
            lines.append(self.format_property(prop, group.size))
        incoming = self._incoming(group)
        if incoming:
            listed = "; ".join(first_items(incoming, MAX_INCOMING))
            lines.append(f"  from others: {listed}")
        return "\n".join(lines)

    def _incoming(self, group: ClassGroup) -> list[str]:
        """Return the predicates of other groups that have instances of this group as values.

        Each is a text "class predicate triples", the one with the most triples first. Groups of
        things without a class are left out.
        """
        members = {member.iri for member in group.members}
        top_class = group.top_class.iri
        sort = "IRI"
        if top_class:
            sort = "class"
        counted_once: dict[tuple[URIRef, URIRef, URIRef | None], int] = {}
        for origin, predicate_iri, target, number in self.survey.incoming:
            counted_once[origin, predicate_iri, target] = number
        triples: Counter[str] = Counter()
        for other in self.groups:
            source = other.top_class.iri
            if other is group or not source:
                continue
            class_name = self.to_curie(source)
            for prop in other.properties:
                number = 0
                for values in prop.values:
                    if values.sort == sort and values.of in members:
                        number += values.triples
                if not number:
                    continue
                route = (source, prop.predicate, top_class)
                number = counted_once.get(route, number)
                predicate = self.to_curie(prop.predicate)
                text = f"{class_name} {predicate} {number}"
                triples[text] += number
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
            is_subclass = top_class.iri in surveyed.parents
            if not is_subclass or surveyed.iri in above or not surveyed.total:
                continue
            name = self.format_iri(str(surveyed.iri))
            text = f"{name} {surveyed.total}"
            listings[surveyed.iri] += 1
            is_repeated = listings[surveyed.iri] > MAX_REPEATED_LISTINGS
            if len(above) <= MAX_SUBCLASS_DEPTH and not is_repeated:
                path = (*above, surveyed.iri)
                below = self._format_subclasses(surveyed, path, listings)
                if below:
                    text += f" [of these {below}]"
            subclasses.append(text)
        return list_first(subclasses, MAX_SUBCLASSES)

    def remarks(self, shown: Collection[str]) -> Iterator[str]:
        """Yield lines on directions, on predicates that say the same, and on unused declarations.

        Predicates between instances of one class have their triples, and how many of these hold the
        other way round as well. Then come predicates that say the reverse of another one, and those
        that say the same. Only predicates that the texts ``shown`` contain are named. Of the
        declarations at most MAX_UNUSED are listed, and how many more there are. A line that would be
        empty is left out.
        """
        used = _iris_with_curies(shown, self.to_curie, self._predicates())
        directions = []
        for predicate, triples, both in self.survey.both_ways:
            if predicate in used:
                curie = self.to_curie(predicate)
                reversed_too = _count_of(both, triples)
                directions.append(f"{curie} {triples} ({reversed_too})")
        if directions:
            listed = ", ".join(directions)
            yield f"Between things of one class, triples (of these the other way round as well): {listed}"
        reversed_pairs = "; ".join(self._format_inverses(used))
        if reversed_pairs:
            yield f"The same the other way round: {reversed_pairs}"
        twins = "; ".join(self._format_twins(used))
        if twins:
            yield f"Said by two predicates of one thing: {twins}"
        if self.survey.sampled:
            sample = "a sample"
            if self.survey.sample_limit:
                sample += f" of at most {self.survey.sample_limit} instances of each class"
            yield f"The numbers of instances with a predicate are estimated from {sample}"
        if self.survey.lacks:
            listed = "; ".join(self.survey.lack_texts())
            yield f"Not known of this graph: {listed}"
        if self.survey.unused:
            listed = list_first(map(self.to_curie, self.survey.unused), MAX_UNUSED)
            yield f"Declared, but without any triple: {listed}"

    def _predicates(self) -> set[str]:
        """The predicates of all groups."""
        return {prop.predicate for group in self.groups for prop in group.properties}

    def _format_inverses(self, used: Collection[str]) -> Iterator[str]:
        """Yield each pair of predicates that say the reverse of each other, with their triples.

        At least MIN_REVERSED_SHARE of the triples of one of them must hold in reverse. The one with
        fewer triples comes first.
        """
        triples: Counter[str] = Counter()
        for group in self.groups:
            for prop in group.properties:
                triples[prop.predicate] += prop.triples
        for first, second, number in self.survey.inverses:
            if first not in used and second not in used:
                continue
            rarer, other = sorted((first, second), key=lambda iri: (triples[iri], iri))
            least = triples[rarer] * MIN_REVERSED_SHARE
            if 0 < least <= number:
                fewer = f"{self.to_curie(rarer)} {triples[rarer]}"
                more = f"{self.to_curie(other)} {triples[other]}"
                yield f"{fewer} and {more} ({number} triples)"

    def _format_twins(self, used: Collection[str]) -> Iterator[str]:
        """Yield each pair of predicates that say the same of instances of a group.

        The class of the group comes first. Both have the number of instances that have them, and
        then comes for how many both agree.
        """
        things: dict[tuple[URIRef | None, URIRef], int] = {}
        for group in self.groups:
            class_iri = group.top_class.iri
            for prop in group.properties:
                things[class_iri, prop.predicate] = prop.things
        for twin in self.survey.twins:
            if twin.predicate not in used or twin.twin not in used:
                continue
            of_class = self.to_curie(str(twin.of))
            things_of_first = things[twin.of, twin.predicate]
            things_of_second = things[twin.of, twin.twin]
            first_curie = self.to_curie(twin.predicate)
            second_curie = self.to_curie(twin.twin)
            first = f"{of_class}: {first_curie} {things_of_first}"
            second = f"{second_curie} {things_of_second}"
            if twin.as_text:
                yield f"{first} is a text, for {twin.things} the name of what {second} leads to"
            else:
                yield f"{first} and {second} for {twin.things} the same value"


def _by_number(term: Term) -> float:
    """Return a sort key that puts numbers in order, and keeps other terms where they are."""
    is_number = isinstance(term, Literal) and term.datatype in NUMERIC_DATATYPES
    if not is_number:
        return 0.0
    try:
        return float(term)
    except ValueError:
        return 0.0


def _format_number(term: Term) -> str:
    """Return a number as it is; in quotes if it is none, whatever its datatype says."""
    if UNQUOTED_VALUE.fullmatch(term):
        return str(term)
    return quote_text(term)


def _count_of(both: int, triples: int) -> str:
    """Return how many of some triples hold in both directions, "all" or "none" where it is so."""
    if not both:
        return "none"
    if both == triples:
        return "all"
    return str(both)


def _iris_with_curies(
    shown: Collection[str], to_curie: Callable[[str], str], iris: Iterable[str]
) -> set[str]:
    """Return those of the IRIs whose CURIE stands in one of some texts as a whole."""
    words: set[str] = set()
    for text in shown:
        words.update(WORD_OF_CURIE.findall(text))
    named = set()
    for iri in iris:
        if to_curie(iri) in words:
            named.add(iri)
    return named


def writer_of_survey(survey: Survey, labels: Collection[URIRef] = LABEL_PREDICATES) -> SurveyWriter:
    """Return the writer of a survey, which is kept with the texts that it has written.

    Questions over one graph share its survey, and to group its classes and to write them takes
    longer than all else that is done for a question. The MAX_KEPT_WRITERS writers that were made
    last are kept. They are found by the object that the survey is, because comparing two surveys
    takes long.
    """
    key = (id(survey), tuple(labels))
    with _writers_lock:
        writer = _kept_writers.get(key)
    if writer is not None:
        return writer
    writer = SurveyWriter(survey, labels)
    with _writers_lock:
        _kept_writers[key] = writer  # it holds the survey, so no other one gets its id
        while len(_kept_writers) > MAX_KEPT_WRITERS:
            oldest = next(iter(_kept_writers))
            del _kept_writers[oldest]
    return writer


def _is_class(values: ValueSurvey, iri: URIRef) -> bool:
    """Return whether values are instances of a class."""
    return values.sort == "class" and values.of == iri


def _has_inner(prop: PropertySurvey, surveyed: ClassSurvey) -> bool:
    """Return whether a predicate is shown with all predicates of a class that it leads to."""
    inner = {inner.predicate for inner in prop.inner}
    return inner.issuperset(surveyed.predicates)


def choose_prefixes(groups: Sequence[ClassGroup]) -> dict[str, str]:
    """Return the prefix of each namespace in groups of classes, by namespace.

    These are RDF, RDFS, XSD and the MAX_PREFIXES namespaces with the most IRIs. A namespace that a
    query cannot contain is left out. A well-known namespace has its usual prefix.
    """
    namespaces: Counter[str] = Counter()
    for group in groups:
        for iri in _iris_of(group):
            namespace, _ = split_iri(iri)
            namespaces[namespace] += 1

    prefixes: dict[str, str] = {}
    for known_namespace in map(str, (RDF, RDFS, XSD)):
        prefixes[known_namespace] = KNOWN_PREFIXES[known_namespace]
    for namespace, _ in namespaces.most_common(MAX_PREFIXES):
        is_valid = INVALID_IRI_CHARACTER.search(namespace) is None
        if is_valid and namespace not in prefixes:
            prefixes[namespace] = choose_prefix(namespace, prefixes.values())
    return prefixes


def _iris_of(group: ClassGroup) -> Iterator[str]:
    """Yield the IRIs of a group: its members, then each predicate with its examples.

    The inner predicates of a predicate follow its examples.
    """
    for member in group.members:
        if member.iri:
            yield member.iri
    for prop in group.properties:
        yield prop.predicate
        for values in prop.values:
            for term in values.examples:
                if isinstance(term, URIRef):
                    yield term
        for inner in prop.inner:
            yield inner.predicate
