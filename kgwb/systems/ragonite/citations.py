"""What the values of an answer stand for: terms of the graph, by the sources that they cite."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from rdflib import Literal

from kgwb.build import Term, local_part
from kgwb.systems.ragonite.cells import is_name_of
from kgwb.systems.ragonite.records import Meaning, Source


class Citation:
    """The terms that a text of an answer stands for in its sources."""

    def __init__(self, text: str, cited: Sequence[Source], others: Sequence[Source]) -> None:
        """Look the text up in the cited sources, and only if these do not have it in the others.

        White space becomes single spaces. Letter case counts only where the text is there in its
        own case.
        """
        self.text = " ".join(text.split())
        self.terms: tuple[Term, ...] = ()
        """What the text stands for; empty if no source has it, or if it may be something else."""
        self.is_ambiguous = False
        """Whether the text stands for several terms, or does not say for which of several."""
        for sources in (cited, others):
            for fold in (str, str.casefold):
                found = self._find(sources, fold)
                if found:
                    self._choose(found, sources)
                    return

    def _find(self, sources: Sequence[Source], fold: Callable[[str], str]) -> list[Meaning]:
        """Return the distinct meanings of the text in the sources; empty if no source has the text.

        Texts that a model is shown are tried first, and those of the support only if none of them
        matches. ``fold`` brings both texts into the form that is compared.
        """
        wanted = fold(self.text)
        for find_meanings in (shown_meanings, support_meanings):
            found: dict[Meaning, None] = {}
            for source in sources:
                for meaning in find_meanings(source):
                    if fold(meaning.text) == wanted:
                        found[meaning] = None
            if found:
                return list(found)
        return []

    def _choose(self, found: Sequence[Meaning], sources: Sequence[Source]) -> None:
        """Set ``terms`` and ``is_ambiguous`` by the best of the meanings.

        An id stands for its thing. Any other text stands for the value that it is, and for the
        things that have it as their name, but for those whose id is shown: a model cites these by
        the id. If there are only such things, it stands for them. Meanings that are not certain
        give no term. The text is ambiguous unless exactly one term is left.
        """
        ids = [meaning for meaning in found if meaning.kind == "id"]
        best = ids or self._without_shown_ids(found, sources) or found
        certain = [meaning for meaning in best if meaning.is_certain]
        self.terms = tuple(dict.fromkeys(meaning.term for meaning in certain))
        self.is_ambiguous = len(self.terms) != 1

    def _without_shown_ids(
        self, found: Iterable[Meaning], sources: Iterable[Source]
    ) -> list[Meaning]:
        """Return the meanings in their order, but for names of things whose ids the sources show."""
        with_id = set()
        for source in sources:
            for meaning in shown_meanings(source):
                if meaning.kind == "id":
                    with_id.add(meaning.term)
        return [
            meaning for meaning in found if meaning.kind != "name" or meaning.term not in with_id
        ]


def shown_meanings(source: Source) -> Iterator[Meaning]:
    """Yield what the texts stand for that a model is shown of a source.

    They are the cells of a query, or the id of a passage's subject, and the names and values in the
    passage. A run that was saved before does not say what its cells stand for: of a cell, it is the
    id, name or value with this text in the support.
    """
    if source.meanings:
        yield from source.meanings
    else:
        for meaning in support_meanings(source):
            if meaning.kind != "id" or _shows_id(source, meaning.text):
                yield meaning


def support_meanings(source: Source) -> Iterator[Meaning]:
    """Yield what texts stand for by the support of a source: ids and names of its terms, and its values.

    A value that is the name of its subject stands for the subject. A passage has the language of a
    value behind it, and the datatype where that is needed to tell it from another value.
    """
    ids: dict[Term, str] = {}
    names: dict[Term, str] = {}
    for text, term in source.terms:  # the id of a term comes before its name
        known = names if term in ids else ids
        known[term] = text
    for term, id_ in ids.items():
        name = names.get(term, id_)
        for text in (id_, f"{name} [{id_}]"):
            yield Meaning(" ".join(text.split()), term, "id")
        yield Meaning(" ".join(name.split()), term, "name")
    for subject, _, object_ in source.triples:
        if isinstance(object_, Literal) and not is_name_of(object_, names.get(subject, "")):
            for text in _texts_of_value(object_, source):
                yield Meaning(text, object_, "value")


def _texts_of_value(value: Literal, source: Source) -> list[str]:
    """Return the texts by which a model may cite a literal in the support of a source.

    It is its text, and for a literal with a language also the text with the language in brackets.
    If the source's text shows it with its datatype in brackets, it is only that.
    """
    text = " ".join(value.split())
    if value.language:
        return [text, f"{text} ({value.language})"]
    datatype = value.datatype or ""
    for shown_type in (datatype, local_part(datatype)):
        with_type = f"{text} ({shown_type})"
        if shown_type and with_type in source.text:
            return [with_type]
    return [text]


def _shows_id(source: Source, id_: str) -> bool:
    """Return whether an id stands in a cell of a source, or in brackets in a passage or its title.

    The title of a passage alone is the id if the name of its subject is the same. A cell may be a
    list with commas.
    """
    if source.tool == "passages":
        return id_ == source.title or f"[{id_}]" in f"{source.title} {source.text}"
    for row in source.rows:
        for cell in row:
            if id_ == cell or id_ in cell.split(","):
                return True
    return False
