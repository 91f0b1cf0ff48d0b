"""The sections of a report: what was measured, how good, how fast and dear, and where answers were lost."""

from __future__ import annotations

import shlex
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from kgwb import systems
from kgwb.bench.cost import Cost, Prices, costs
from kgwb.bench.ladder import LADDER, Lost, losses, recall
from kgwb.bench.metrics import MEASURES, Group, groups
from kgwb.bench.results import Lines, Row, read_results, run_file
from kgwb.bench.statistics import compare, interval
from kgwb.errors import InputError
from kgwb.show.html import (
    Bar,
    Html,
    aside,
    bars,
    clean,
    count,
    fold,
    join,
    note,
    preformatted,
    seconds,
    table,
    tag,
)
from kgwb.show.text import BASELINE
from kgwb.systems import names, profile

PUBLISHED = Path(__file__).with_name("published.toml")
UNDERSTANDING = "understanding"
"""The stage that the paper sets apart: question understanding, or other (Chatty-KG, section 7)."""
NAMES = dict(
    zip(MEASURES, "precision|recall|F1|P@1|MRR|Hit@5|exact match|paper P|paper F1".split("|"), strict=True)
)
ORDER = ("f1", "precision", "recall", "hits1", "mrr", "hit5", "exact", "paper_f1", "paper_precision")
MEANS = ("precision", "recall", "hits1", "exact")
_FIRST = ("kgwb", "system", "models", "source", "kg", "embeddings", "questions")


@dataclass(frozen=True)
class Measured:
    """A results folder as it was read."""

    name: str
    tail: str
    """What tells its figures from those of other folders: ", name", or nothing where it is alone."""
    folder: Path
    config: Mapping[str, Any]
    rows: Mapping[str, Row]
    """By question id, in the order they finished."""
    ladder: Mapping[str, Row] = field(repr=False)
    """Where answers were lost, of those results that are still what they were then."""

    @cached_property
    def groups(self) -> dict[str, Group]:
        """The averages over all questions, and over parts of them, by name."""
        return {group.name: group for group in groups(list(self.rows.values()))}

    def part(self, name: str) -> list[Row]:
        """The results that a group is over."""
        field, _, value = name.partition(" ")
        return [row for row in self.rows.values() if name == "all" or str(row.get(field)) == value]

    def figure(self, part: str, measure: str) -> Figure | None:
        """A measure with its interval; None where no question has gold."""
        group = self.groups.get(part)
        if group is None or group.questions == group.without_gold:
            return None
        if (part, measure) not in self._figures:
            value = getattr(group.scores, measure)
            self._figures[part, measure] = Figure(value, *interval(self.part(part), measure))
        return self._figures[part, measure]

    @cached_property
    def _figures(self) -> dict[tuple[str, str], Figure]:
        return {}

    def run_file(self, row: Row) -> Path | None:
        """The saved run of a result, if it was kept."""
        return run_file(self.folder, row)


@dataclass(frozen=True, slots=True)
class Figure:
    """A value from 0 to 1 with its 95 % bootstrap interval over questions."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f}\u00a0[{self.low:.3f},\u00a0{self.high:.3f}]"


Sets = Sequence[Measured]


def measured_in(folder: Path, name: str, tail: str = "") -> Measured:
    """What ``kgwb bench --out`` left in a folder. Raises InputError if it did not, or if that is damaged."""
    config, found = read_results(folder)
    rows = {row["id"]: row for row in found}
    ladder = Lines(folder / LADDER, Lost, mend=False).rows.items()
    stands = {key: line for key, line in ladder if _stands(line, rows)}
    return Measured(name, tail, folder, config, rows, stands)


def _stands(line: Row, rows: Mapping[str, Row]) -> bool:
    row = rows.get(line["id"], {})
    return (row.get("f1"), row.get("error")) == (line.get("f1"), line.get("error"))


def _heads(sets: Sets, *first: str) -> list[str]:
    return [*first, *(one.name for one in sets)]


# --- what was measured


def measured(sets: Sets) -> Iterator[Html]:
    """Everything needed to repeat it; what differs between the folders is marked."""
    configs = [one.config for one in sets]
    yield _beside(sets, "", [{name: one[name] for name in _FIRST if name in one} for one in configs])
    if any("rules" in _mapping(one.get("models")).values() for one in configs):
        yield note(BASELINE, kind="calm")
    yield from (fold(f"the command that asks {one.name} again", preformatted(command(one))) for one in sets)
    parts = [name for name in dict.fromkeys(name for one in configs for name in one) if name not in _FIRST]
    told = (_beside(sets, name, [_mapping(one.get(name)) for one in configs]) for name in parts)
    yield fold(f"all {', '.join(parts)}", *told)


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {"": value}


def _beside(sets: Sets, head: str, entries: Sequence[Mapping[str, object]]) -> Html:
    rows = []
    for name in dict.fromkeys(name for one in entries for name in one):
        values = [_told(one.get(name)) for one in entries]
        rows.append((name, *(tag("mark", value) if len({*values}) > 1 else value for value in values)))
    return table(_heads(sets, head), rows)


def _told(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}: {_told(one)}" if name else _told(one) for name, one in value.items())
    return "–" if value is None else str(value)


def command(one: Measured) -> str:
    """The command line that measures this again; where the questions lie is not kept, only what they are."""
    config, settings = one.config, _mapping(one.config.get("settings"))
    models = _mapping(config.get("models"))
    system = str(config.get("system")) if config.get("system") in names() else ""
    usual = profile("paper" if settings.get("profile") == "paper" else "fast", system=system).to_data()
    words = ["kgwb", "bench", "--kg", str(config.get("source")), "--system", str(config.get("system"))]
    for agent, model in models.items():
        words += ["--agent-model", f"{agent}={model}"] if agent else ["--model", str(model)]
    words += ["--profile", str(settings.get("profile"))]
    changed = (name for name, value in settings.items() if usual.get(name) != value)
    for name in changed:
        words += ["--set", f"{name}={settings[name]}"]
    return f"{shlex.join(map(clean, words))} --questions FILE --out DIR"


# --- how good


def quality(sets: Sets) -> Iterator[Html]:
    """All measures over all questions, then the main ones by hops, type and language."""
    yield aside(
        "From 0 to 1, averaged over questions, with the 95 % bootstrap interval. The first seven are strict: "
        "an answer withheld counts 0. As Chatty-KG computes it (paper), it counts precision 1, and F1 is the "
        "harmonic mean of the averages."
    )
    everyone = [one.groups["all"] for one in sets]
    counts = {
        "questions": [group.questions for group in everyone],
        "that ended in an error, and count 0": [group.errors for group in everyone],
        "without gold, not counted": [group.without_gold for group in everyone],
    }
    told = [(NAMES[measure], *(one.figure("all", measure) or "–" for one in sets)) for measure in ORDER]
    yield table(_heads(sets, ""), [*told, *((name, *some) for name, some in counts.items())])
    parts = dict.fromkeys(name for one in sets for name in one.groups if name != "all")
    pairs = [(part, one, one.figure(part, "f1")) for part in parts for one in sets]
    shown = [(part, one, one.groups[part], f1) for part, one, f1 in pairs if f1]
    yield tag("h3", "By hops, type and language") if shown else Html()
    chart = [
        Bar(
            part + one.tail,
            f1.value,
            f"{f1.value:.3f} ({count(group.questions, 'question')})",
            f1.low,
            f1.high,
            sets.index(one),
        )
        for part, one, group, f1 in shown
    ]
    yield bars("Strict F1 by part of the questions, with its interval", chart, 1.0)
    rows = (
        (
            part + one.tail,
            group.questions,
            f1,
            one.figure(part, "paper_f1"),
            *(f"{getattr(group.scores, measure):.3f}" for measure in MEANS),
            group.errors,
        )
        for part, one, group, f1 in shown
    )
    yield table(("", "questions", "F1", "paper F1", *(NAMES[measure] for measure in MEANS), "errors"), rows)


# --- figures of papers


def published(sets: Sets, name: str) -> Iterator[Html]:
    """What papers print for the question set of that name, beside what was measured. Raises InputError."""
    data = tomllib.loads(PUBLISHED.read_text(encoding="utf-8"))
    if name not in data["sets"]:
        hint = f"name one of {', '.join(data['sets'])}, or leave it out"
        raise InputError(f"no figures are known for a question set {name!r}", hint=hint)
    known = data["sets"][name]
    yield tag("h2", "Beside published figures")
    yield tag("div", f"Question set, as whoever made this report says: {known['name']}. Per cent.")
    for one in sets:
        if known.get("questions", len(one.rows)) != len(one.rows):
            told = f"{one.name} has {len(one.rows):,} questions, the published set {known['questions']:,}"
            yield note(f"{told}: these figures are not of the same questions.", kind="bad")
    rows: list[tuple[object, ...]] = []
    for entry in (entry for entry in data["published"] if entry["set"] == name):
        part, what = entry.get("group", "all"), NAMES[entry["measure"]]
        ours = ((one, one.figure(part, entry["measure"])) for one in sets)
        rows += [
            (part, what, tag("b", f"{100 * found.value:.2f}"), tag("b", one.name), "measured here")
            for one, found in ours
            if found
        ]
        source = join(entry["source"], *([f"; {entry['note']}"] if "note" in entry else []))
        rows += [
            (part, what, f"{value:.2f}", who, join("published: ", source))
            for who, value in entry["figures"].items()
        ]
    yield table(("questions", "measure", "per cent", "system", "where from"), dict.fromkeys(rows))


# --- two result sets


def compared(sets: Sets) -> Iterator[Html]:
    """Each further folder against the first, question by question."""
    first, *others = sets
    yield tag("h2", f"Against {first.name}, question by question")
    for other in others:
        try:
            yield from _compared(first, other)
        except InputError as exc:
            yield note(f"{other.name} cannot be compared: {exc}", kind="bad")


def _compared(first: Measured, other: Measured) -> Iterator[Html]:
    numbers = {key: number for number, key in enumerate(first.rows, 1)}  # as in the table of questions
    rows: list[tuple[object, ...]] = []
    changed: list[tuple[object, ...]] = []
    for measure in ("f1", "paper_f1"):
        found = compare([*first.rows.values()], [*other.rows.values()], measure)
        low, high = found.interval
        difference = f"{found.difference:+.3f} [{low:+.3f}, {high:+.3f}]"
        figures = (
            f"{found.questions:,}",
            f"{found.one:.3f}",
            f"{found.other:.3f}",
            difference,
            f"{found.p_value:.4f}",
        )
        rows.append((other.name, NAMES[measure], *figures))
        changed = changed or [
            (other.name, what, tag("a", key, href=f"#question-{numbers[key]}"), first.rows[key]["question"])
            for what, keys in (("better", found.better), ("worse", found.worse))
            for key in keys
        ]
    heads = (
        "",
        "measure",
        "questions",
        first.name,
        other.name,
        "difference",
        "p (permutation)",
    )
    yield table(heads, rows)
    yield fold(
        f"{count(len(changed), 'question')} answered better or worse (strict F1)",
        table(("", "", "id", "question"), changed),
    )


# --- cost


def cost(sets: Sets, prices: Prices | None) -> Iterator[Html]:
    """Seconds by stage, calls, tokens, queries, and money where every model has a price."""
    told: list[dict[str, Cost]] = []
    for one in sets:
        rows = [*one.rows.values()]
        try:
            spent = costs(rows, prices)
        except InputError as exc:
            yield note(f"{one.name}: money is left out. {exc}", kind="calm")
            spent = costs(rows)
        told.append({cost.name: cost for cost in spent})
    names = dict.fromkeys(name for some in told for name in some)
    timed = [(name, number) for name in names if name.startswith("seconds") for number in range(len(sets))]
    chart = [
        Bar(
            (name.partition(", ")[2] or "in all") + sets[number].tail,
            found.median,
            f"{seconds(found.median)}, 95 % within {seconds(found.p95)}",
            found.median,
            found.p95,
            number,
        )
        for name, number in timed
        if (found := told[number].get(name))
    ]
    yield bars("Seconds a question by stage: the median, and a line to the 95th percentile", chart)
    heads = [f"{what}{one.tail}" for one in sets for what in ("total", "median", "95th percentile")]
    figures = {
        name: [figure for some in told for figure in astuple(some[name])[2:]]
        for name in names
        if all(name in some for some in told)
    }
    lines = ((name, *(f"{figure:,.4g}" for figure in some)) for name, some in figures.items())
    yield table(("a question", *heads), lines)


# --- where answers were lost


def lost_at(sets: Sets) -> Iterator[Html]:
    """The oracle ladder's agents, the paper's split, and the recall of linking."""
    told = [losses([*one.ladder.values()], _agents(one)) for one in sets]
    counts = [{(loss.name, loss.stage): loss.answers for loss in some} for some in told]
    keys = dict.fromkeys(key for some in counts for key in some)
    if keys:
        yield aside(
            "Gold was put in at one agent after another until the answer came right; the first agent whose "
            "gold mended it is to blame. Below, the paper's split."
        )
        chart = [
            Bar(f"{key[0]}{one.tail}", some[key], str(some[key]), 0, 0, number)
            for key in keys
            for number, (one, some) in enumerate(zip(sets, counts, strict=True))
            if key in some
        ]
        yield bars("Answers lost, by agent", chart)
        rows = [
            (name, stage or "–", *(some.get((name, stage), 0) for some in counts)) for name, stage in keys
        ]
        understood = [sum(n for (_, stage), n in some.items() if stage == UNDERSTANDING) for some in counts]
        everything = [sum(some.values()) for some in counts]
        other = [of - part for of, part in zip(everything, understood, strict=True)]
        split = {"question understanding": understood, "other": other, "all": everything}
        bold = ((tag("b", name), "", *(tag("b", n) for n in some)) for name, some in split.items())
        yield table(_heads(sets, "lost at", "stage"), [*rows, *bold])
    else:
        yield aside("Nothing is known of where: kgwb bench --ladder finds it out, if an answer was lost.")
    recalls = [
        (f"gold {what} {said}", *(_share(recall([*one.rows.values()], what, of)) for one in sets))
        for what in ("vertices", "predicates")
        for said, of in (("linked", "linked"), ("among the candidates", "candidates"))
    ]
    yield table(_heads(sets, "recall of linking"), recalls)


def _share(share: float | None) -> str:
    return "–" if share is None else f"{share:.3f}"


def _agents(one: Measured) -> list[str]:
    name = one.config.get("system")
    return [spec.name for spec in systems.system(name).agents] if name in systems.names() else []
