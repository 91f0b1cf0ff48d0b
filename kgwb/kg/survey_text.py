"""A survey as text for a model. Names are CURIEs, and what the graph says stands in quotes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from threading import Lock

from rdflib import RDF, RDFS, XSD, URIRef

from kgwb.kg.base import Vocabulary
from kgwb.kg.survey_groups import ClassGroup, group_classes, merge_values
from kgwb.kg.survey_properties import MAX_LISTED_VALUES, holds_structure
from kgwb.kg.survey_records import ClassSurvey, PropertySurvey, Survey, ValueSurvey
from kgwb.kg.term_text import INVALID_IRI_CHARACTER, UNQUOTED_VALUE, quote_text, to_curie
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
MAX_LISTED_INSTANCES = 8
"""If a predicate has at most so many instances of a class as values, all are named."""
MAX_INCOMING = 6
"""Predicates of other classes that lead to a class."""
MAX_UNUSED = 30
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
        self.groups = group_classes(survey)
        self.group_of: dict[URIRef | None, ClassGroup] = {}
        for group in self.groups:
            for member in group.members:
                self.group_of[member.iri] = group
        self.prefixes = choose_prefixes(self.groups)
        self._texts: dict[int, str] = {}
        """The text of each group that was asked for, by the position of the group."""
        self._inlined: dict[int, bool] = {}
        """Whether each group that was asked for is inlined, by its position."""

    def group_text(self, position: int) -> str:
        """Return the lines of the group at a position, see ``format_group``.

        They are kept, because they are the same for every question, and take 1 ms.
        """
        if position not in self._texts:
            self._texts[position] = self.format_group(self.groups[position])
        return self._texts[position]

    def is_position_inlined(self, position: int) -> bool:
        """Return whether the group at a position is inlined, see ``is_inlined``. It is kept, too."""
        if position not in self._inlined:
            self._inlined[position] = self.is_inlined(self.groups[position])
        return self._inlined[position]

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
        a class or MAX_LISTED_VALUES others; for strings only "a, b". Otherwise IRIs without a class
        have one example, literals those of ``_format_literals``, and instances of classes and blank
        nodes none.
        """
        examples = [self._format_example(term) for term in values.examples]
        limit = MAX_LISTED_VALUES
        if values.sort == "class":
            limit = MAX_LISTED_INSTANCES

        if values.whole and 0 < len(examples) <= limit:
            listed = ", ".join(examples)
            if sort == "string":
                return listed
            return f"{sort}: only {listed}"
        if values.sort == "IRI" and examples:
            return f"{sort}, such as {examples[0]}"
        if values.is_literal:
            return self._format_literals(values, sort, examples[:2])
        return sort

    def _format_literals(self, values: ValueSurvey, sort: str, examples: Sequence[str]) -> str:
        """Return the sort of literals with at most two examples, and their number if it is small.

        Numbers and dates are shown by the least and the greatest: "integer 0 … 39". The number of
        distinct values is added if it is more than the examples and at most MAX_LISTED_VALUES.
        """
        texts = map(str, values.examples)
        need_no_quotes = all(map(UNQUOTED_VALUE.fullmatch, texts))
        if need_no_quotes and "string" not in sort and len(examples) == 2:
            least, greatest = values.examples[:2]
            return f"{sort} {least} … {greatest}"
        listed = ", ".join(examples)
        text = f"{sort} {listed}"
        if len(examples) < values.distinct <= MAX_LISTED_VALUES:
            text += f" ({values.distinct} different)"
        return text

    def _format_sort(self, values: ValueSurvey) -> str:
        """Return a class as a CURIE, and another sort as it is: "integer", "text@en", "node".

        A sort that is not one word, such as the IRI of a datatype, becomes "literal".
        """
        if values.sort == "class":
            return self.to_curie(str(values.of))
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
        """Return an IRI as ``format_iri`` does, and any other term as its text in quotes."""
        if isinstance(term, URIRef):
            return self.format_iri(term)
        return quote_text(term)

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
        note = self.format_note(prop.predicate)
        return f"{line} {text}{note}"

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
                if leading and not _has_inner(prop, surveyed):
                    return False
                number += sum(values.distinct for values in leading)
        if self.survey.sampled:
            return number > 0
        return number >= surveyed.size

    def format_group(self, group: ClassGroup) -> str:
        """Return the lines that describe a group of classes.

        The first has the top class, the number of instances, the subclasses if the group has
        several members, and the class's description in the graph. Then comes a line for each
        predicate, and last, if there are any, the predicates of other groups that lead to it: at
        most MAX_INCOMING, and how many more there are.
        """
        top_class = group.top_class
        title = f"{self.format_title(group)} instances"
        if len(group.members) > 1:
            own = "each of one subclass"
            if top_class.size:
                own = f"{top_class.size} of the class itself"
            subclasses = self._format_subclasses(top_class, (top_class.iri,), Counter())
            title += f", {own}: {subclasses}"
        title += self.format_note(top_class.iri)

        lines = [title]
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
        sort = "class" if group.top_class.iri else "IRI"
        triples: Counter[str] = Counter()
        for other in self.groups:
            if other is group or not other.top_class.iri:
                continue
            class_name = self.to_curie(other.top_class.iri)
            for prop in other.properties:
                number = 0
                for values in prop.values:
                    if values.sort == sort and values.of in members:
                        number += values.triples
                if number:
                    predicate = self.to_curie(prop.predicate)
                    triples[f"{class_name} {predicate} {number}"] += number
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
                    text += f" [{below}]"
            subclasses.append(text)
        return list_first(subclasses, MAX_SUBCLASSES)

    def remarks(self, shown: Collection[str]) -> Iterator[str]:
        """Yield a line on predicates in one direction only, and a line on unused declarations.

        The first lists predicates between instances of one class, some of whose triples are not
        asserted in the other direction; only those whose CURIE is in one of the texts ``shown``.
        The second lists declared classes and predicates without a triple, at most MAX_UNUSED, and
        how many more there are. A line that would list nothing is left out.
        """
        one_way = []
        for predicate, triples, both in self.survey.both_ways:
            curie = self.to_curie(predicate)
            whole_curie = re.compile(rf"(?<![\w:-]){re.escape(curie)}(?![\w-])")
            is_shown = any(map(whole_curie.search, shown))
            if is_shown and both < triples:
                one_way.append(curie)
        if one_way:
            listed = ", ".join(one_way)
            yield f"Between things of one class, mostly asserted in one direction only: {listed}"

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
