"""The names by which a model chooses classes of a survey, and the classes that a name means."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cached_property, lru_cache
from typing import Self

from rdflib import URIRef

from kgwb.build import Iri, SurveyWriter, bracket_iri, local_part, quote_text, tell_apart, to_curie

MAX_TITLES = 150
"""Classes that a model can choose from."""
MAX_KEPT_NAMES = 8
"""Surveys whose class names are kept: those that questions are asked over at one time."""
NamedClasses = tuple[tuple[Iri, str], ...]
"""Classes, each with its display name."""
TITLE_ENDING = re.compile(r" \((?:[\w-]+:[\w-]+|<[^<>\s]+>)\)$")
"""The CURIE or IRI that tells a class from another one of its name."""


class ClassNames:
    """Some classes with their names. Several of them may have one name."""

    def __init__(self, classes: NamedClasses, prefixes: Mapping[str, str]) -> None:
        """Name the classes. ``prefixes`` has the prefix of each namespace."""
        self._name_of = dict(classes)
        self._prefixes = prefixes
        self.titles: Mapping[URIRef, str] = tell_apart(
            self._name_of, (self._name_of.__getitem__, self._format_with_curie), fold_case=True
        )
        """The name of each class, with the CURIE behind it where other classes have that name.

        Letter case does not tell names apart, because models do not keep it.
        """

    def _format_with_curie(self, iri: URIRef) -> str:
        """Return the name of a class with its CURIE in brackets."""
        return f"{self._name_of[iri]} ({to_curie(iri, self._prefixes)})"

    @cached_property
    def _classes_by_text(self) -> tuple[Mapping[str, Mapping[URIRef, None]], ...]:
        """The classes by the texts that mean them: identities, names, and all in lower case.

        These are three mappings, to be looked up in this order. In the last, letter case does not
        count, and local parts are texts, too.
        """
        by_identity: dict[str, dict[URIRef, None]] = defaultdict(dict)
        by_name: dict[str, dict[URIRef, None]] = defaultdict(dict)
        by_folded_text: dict[str, dict[URIRef, None]] = defaultdict(dict)
        for iri, name in self._name_of.items():
            curie = to_curie(iri, self._prefixes)
            shown = f"{curie} {quote_text(name)}"
            identities = (curie, str(iri), bracket_iri(iri), shown, self.titles[iri])
            for text in identities:
                by_identity[text][iri] = None
            by_name[name][iri] = None
            for text in (*identities, name, local_part(iri)):
                by_folded_text[text.casefold()][iri] = None
        return by_identity, by_name, by_folded_text

    @classmethod
    @lru_cache(maxsize=MAX_KEPT_NAMES)
    def of_survey(cls, writer: SurveyWriter) -> Self:
        """Return the names of all classes of a survey that have an IRI, by IRI.

        The prefixes are those of the writer. The names are kept, because each question needs them
        several times.
        """
        classes = []
        for surveyed in writer.survey.classes:
            if surveyed.iri:
                classes.append((surveyed.iri, surveyed.name))
        return cls(tuple(classes), writer.prefixes)

    def find(self, text: str) -> tuple[URIRef, ...]:
        """Return the classes that a text means; an empty tuple if it means none.

        A CURIE, an IRI, or a title means one class. Another name means all classes that have it,
        and a text that is none of these all classes that it is a CURIE, a name or the local part
        of, but for letter case. The number of instances behind the text, as a survey shows it, does
        not count.
        """
        text = " ".join(text.split())
        without_number = re.sub(r" \d+$", "", text)
        by_identity, by_name, by_folded_text = self._classes_by_text
        for wanted in (text, without_number):
            found = (
                by_identity.get(wanted)
                or by_name.get(wanted)
                or by_folded_text.get(wanted.casefold())
            )
            if found:
                return tuple(found)
        return ()

    def find_all(self, texts: Iterable[str]) -> tuple[URIRef, ...]:
        """Return the classes that any of the texts means, each once.

        The order is that of the texts. Texts that mean no class are left out.
        """
        found: dict[URIRef, None] = {}
        for text in texts:
            found.update(dict.fromkeys(self.find(text)))
        return tuple(found)


def titles_to_choose_from(writer: SurveyWriter) -> tuple[str, ...]:
    """Return the titles of classes that a model may choose, at most MAX_TITLES, of the largest groups first.

    The group of things without a class has none.
    """
    title_of = ClassNames.of_survey(writer).titles
    titles: dict[str, None] = {}
    for position, group in enumerate(writer.groups):
        if group.top_class.iri:
            for surveyed in writer.classes_of(position):
                if surveyed.iri:
                    titles[title_of[surveyed.iri]] = None
    return tuple(titles)[:MAX_TITLES]


def choose_titles(names: Iterable[str], titles: Iterable[str]) -> tuple[str, ...]:
    """Return those of the titles that the names mean, each once, in the order of the names.

    A name means the title that it is, else the one that it is but for letter case, else all titles
    that are this name with a CURIE. Names that mean no title are dropped.
    """
    known_titles = dict.fromkeys(titles)
    titles_by_folded: dict[str, list[str]] = defaultdict(list)
    titles_by_name: dict[str, list[str]] = defaultdict(list)
    for title in known_titles:
        titles_by_folded[title.casefold()].append(title)
        titles_by_name[TITLE_ENDING.sub("", title).casefold()].append(title)
    chosen: dict[str, None] = {}
    for name in names:
        if name in known_titles:
            meant = [name]
        else:
            folded = name.casefold()
            meant = titles_by_folded.get(folded) or titles_by_name.get(folded) or []
        chosen.update(dict.fromkeys(meant))
    return tuple(chosen)
