"""What a question names, and the part of the survey that matters to it or to a query."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from rdflib import URIRef

from kgwb.errors import GraphError
from kgwb.flow import Candidate, Dialogue, Retrieved
from kgwb.kg.embeddings import Index
from kgwb.kg.queries import describe, holding
from kgwb.kg.survey_text import Group, Writer
from kgwb.kg.text import local_name
from kgwb.run import Run, agent
from kgwb.run.ask import Reply, ask
from kgwb.systems.linking import relations_of
from kgwb.systems.surveyor.records import Mention, Mentions, Part
from kgwb.systems.surveyor.settings import settings_of

MOST_NAMES, TURNS = 8, 4
"""Names looked up, and earlier turns that a question may point back to."""
LONGEST_NAME, FULLY_SHOWN = 200, 2
"""Letters of a name, and candidates of which it is told which predicates they have."""


class MentionReply(Reply):
    """What to look up, and the classes the question is about."""

    reason: str
    question: str
    names: list[str]
    classes: list[str]


@agent("mention_finder", kind="model")
def find_names(question: str, dialogue: Dialogue, classes: tuple[str, ...], run: Run) -> Mentions:
    """The names that a question has, and the classes it is about."""
    turns = dialogue.turns[-TURNS:]
    earlier = [{"question": t.standalone or t.question, "answers": list(t.answers[:5])} for t in turns]
    variables = {"question": question, "earlier": earlier, "classes": list(classes)}
    reply = ask("surveyor/mention_finder", variables, MentionReply, run)
    names = dict.fromkeys(filter(None, (" ".join(name.split())[:LONGEST_NAME] for name in reply.names)))
    known = {name.casefold(): name for name in classes}
    chosen = dict.fromkeys(known[name.casefold()] for name in reply.classes if name.casefold() in known)
    alone = " ".join(reply.question.split()) or question
    return Mentions(alone, tuple(map(Mention, names))[:MOST_NAMES], tuple(chosen), reply.reason)


@agent("value_finder", subject="name", kind="search")
def find_values(name: str, retrieved: Retrieved, predicates: tuple[URIRef, ...], run: Run) -> Mention:
    """The name with its candidates, the best of each type first, and the values that hold its words."""
    most = settings_of(run).name_candidates
    alike = Counter[tuple[str, ...]]()
    ranks: dict[Candidate, tuple[bool, int]] = {}
    for each in retrieved.candidates:
        ranks[each] = each.score < 1, alike[each.types]
        alike[each.types] += 1
    candidates = tuple(sorted(ranks, key=ranks.__getitem__))
    try:
        values = holding(run.kg, predicates, name)[:most]
    except GraphError as error:
        run.note(f"values were not searched for {name!r}: {error.message}")
        values = ()
    known = {each.iri for each in retrieved.candidates}
    shown = candidates[:most]
    if len(shown) <= FULLY_SHOWN:
        iris = [each.iri for each in shown]
        kinds, uses = describe(run.kg, iris), relations_of(iris, run) if iris else {}
        shown = tuple(replace(c, types=kinds[c.iri].types, relations=uses[c.iri]) for c in shown)
    return Mention(name, shown, tuple(v for v in values if v.value not in known))


LETTERS = 4
"""Of a token, on average."""


def relevant(writer: Writer, mentions: Mentions, run: Run, more: Iterable[str] = ()) -> Part:
    """The classes named, those of candidates, then the nearest to the question, as far as there is room."""
    wanted = {name.casefold() for name in (*more, *mentions.classes)}
    wanted |= {kind.casefold() for m in mentions.found for c in m.candidates[:3] for kind in c.types}
    used = {value.predicate for mention in mentions.found for value in mention.values}
    plain = []  # what each group is about, in words
    for group in writer.groups:
        uses = (writer.names.get(str(p.predicate)) or local_name(p.predicate) for p in group.properties[:16])
        plain.append(", ".join([*group.names[:8], *uses]))
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
