"""The part of a survey that matters to a question or to a query."""

from __future__ import annotations

import re
from collections.abc import Iterable

from kgwb.kg.embeddings import Index
from kgwb.kg.survey_text import Group, Writer
from kgwb.kg.text import local_name
from kgwb.run import Run
from kgwb.systems.surveyor.records import Mentions, Part
from kgwb.systems.surveyor.settings import settings_of

LETTERS = 4
"""Of a token, on average."""


def relevant(writer: Writer, mentions: Mentions, run: Run, more: Iterable[str] = ()) -> Part:
    """The classes named, those of candidates, then the nearest to the question, as far as there is room."""
    wanted = {name.casefold() for name in (*more, *mentions.classes)}
    wanted |= {kind.casefold() for m in mentions.found for c in m.candidates[:3] for kind in c.types}
    used = {value.predicate for mention in mentions.found for value in mention.values}
    plain = [_plain(group, writer) for group in writer.groups]
    near = dict(run.nearest(mentions.question, Index(plain, run.embeddings), len(plain))) if plain else {}

    def rank(place: int) -> tuple[bool, bool, float]:
        group = writer.groups[place]
        names = {name.casefold() for name in group.names}
        names |= {writer.curie(str(each.iri)).casefold() for each in (group.head, *group.members)}
        valued = any(each.predicate in used for each in group.properties)
        return not names & wanted, not valued, -near.get(place, 0)

    order = [writer.groups[place] for place in sorted(range(len(plain)), key=rank)]
    order = [g for g in order if not writer.is_structure(g) or {n.casefold() for n in g.names} & wanted]
    return _written(order, writer, settings_of(run).survey_tokens, rest=True)


def of_query(writer: Writer, sparql: str, run: Run) -> Part:
    """The classes that a query is about, in half the room: for who reviews it."""
    terms = set(re.findall(r"[\w-]+:[\w-]+|<[^<>\s]+>", sparql))

    def uses(group: Group) -> int:
        iris = [each.iri for each in (group.head, *group.members)]
        iris += [each.predicate for each in group.properties]
        return len({writer.curie(str(iri)) for iri in iris} & terms)

    order = [group for group in writer.groups if uses(group) and not writer.is_structure(group)]
    return _written(sorted(order, key=uses, reverse=True), writer, settings_of(run).survey_tokens // 2)


def _written(order: Iterable[Group], writer: Writer, tokens: int, *, rest: bool = False) -> Part:
    """The groups that there is room for, the first in any case; with ``rest`` the names of the others."""
    room = tokens * LETTERS
    shown: dict[str, str] = {}
    left: list[Group] = []
    for group in order:
        text = writer.group(group)
        if len(text) <= room or not shown:
            room -= len(text)
            shown[group.head.name] = text
        else:
            left.append(group)
    lines = [*shown.values(), *writer.remarks(shown.values())]
    if left and rest:
        lines.append(f"Other classes, not shown here: {', '.join(map(writer.title, left))}")
    prefixes = tuple((prefix, space) for space, prefix in writer.prefixes.items())
    return Part("\n".join(lines), tuple(shown), tuple(group.head.name for group in left), prefixes)


def _plain(group: Group, writer: Writer) -> str:
    """What a group is about, in words."""
    uses = (writer.names.get(str(p.predicate)) or local_name(p.predicate) for p in group.properties[:16])
    return ", ".join([*group.names[:8], *uses])
