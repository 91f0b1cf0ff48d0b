"""One question asked of several systems: their answers, what these stand on and share, what they cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kgwb.bench.figures import Table
from kgwb.bench.ladder import climbed, gold_of
from kgwb.bench.metrics import score
from kgwb.bench.questions import BenchQuestion, answer_strings
from kgwb.bench.runner import Watch
from kgwb.display import as_html, as_text
from kgwb.errors import KgwbError
from kgwb.flow import Dialogue, Triple
from kgwb.run import Run, Setup
from kgwb.show import html as h
from kgwb.show.terms import names_of, triple_text
from kgwb.systems import oracle


@dataclass(frozen=True)
class Asked:
    """What one system made of the question."""

    system: str
    run: Run
    error: str = ""
    """Why there is no answer, where the run failed."""
    f1: float | None = None
    """None without gold."""
    lost: str = ""
    """Where a wrong answer was lost; empty if it is right, or if nothing tells."""

    @property
    def support(self) -> tuple[Triple, ...]:
        """The triples that the answer stands on."""
        return self.run.answer.support if self.run.answer else ()


@dataclass(frozen=True, repr=False)
class SideBySide:
    """The answers of several systems to one question, in the order they were asked."""

    question: str
    asked: tuple[Asked, ...]
    names: dict[str, str] = field(default_factory=dict)
    """Display names by IRI."""

    @property
    def shared(self) -> frozenset[Triple]:
        """The triples that every answer with any triple stands on."""
        sets = [frozenset(each.support) for each in self.asked if each.support]
        return frozenset.intersection(*sets) if sets else frozenset()

    @property
    def triples(self) -> tuple[Triple, ...]:
        """Every triple that an answer stands on, those of the most systems first."""
        every = dict.fromkeys(triple for each in self.asked for triple in each.support)
        return tuple(sorted(every, key=lambda triple: -sum(triple in each.support for each in self.asked)))

    def __getitem__(self, system: str) -> Run:
        return next(each.run for each in self.asked if each.system == system)

    def __repr__(self) -> str:
        return as_text(self)

    def _repr_html_(self) -> str | None:
        return as_html(self)


def ask_all(setups: Sequence[Setup], question: str | BenchQuestion, dialogue: Dialogue) -> SideBySide:
    """Ask the system of each set-up; a ``BenchQuestion`` has gold that tells which are right.

    A system that fails has its error in its column, and the others go on. An answer that is not right is
    climbed for where it was lost (see ``bench.ladder``), which may ask a model a few times more.
    """
    gold = question if isinstance(question, BenchQuestion) else None
    text = gold.question if gold else str(question)
    asked = []
    for setup in setups:
        run, error = setup.begin(text, dialogue), ""
        try:
            run.go()
        except KgwbError as exc:
            error = exc.message
        f1, lost = None, ""
        if gold and gold.answers is not None:
            f1 = 0.0 if error else score(answer_strings(run.answer), gold.answers).f1
        if gold and f1 is not None and f1 < 1 and not error:
            known = gold_of(gold, setup.kg) if oracle(setup.system.name) else None
            blame = climbed(run.fork(), known, gold, setup, Watch()) if known else {}
            lost = str(blame.get("agent") or blame.get("why") or "not known")
        asked.append(Asked(setup.system.name, run, error, f1, lost))
    names = {iri: name for each in reversed(asked) for iri, name in names_of(each.run).items()}
    return SideBySide(text, tuple(asked), names)


# --- how it shows itself


def _table(shown: SideBySide, most: int) -> Table:
    """A column for each system, of cells with at most so many letters: its answer, support and cost."""
    asked, shared = shown.asked, shown.shared
    totals = [each.run.totals for each in asked]

    def stands_on(each: Asked) -> str:
        others = {triple for other in asked if other is not each for triple in other.support}
        own = sum(triple not in others for triple in each.support)
        return f"{h.count(len(each.support), 'triple')}, {own} alone" if each.run.answer else ""

    rows: list[tuple[object, ...]] = [
        ("answer", *(f"failed: {each.error}" if each.error else str(each.run.answer) for each in asked)),
        ("stands on", *map(stands_on, asked)),
        ("shared by all", *(len(shared) if each.support else "" for each in asked)),
        ("model calls", *(used.model_calls for used in totals)),
        ("tokens", *(f"{used.prompt_tokens + used.completion_tokens:,}" for used in totals)),
        ("time", *(h.seconds(used.seconds) for used in totals)),
    ]
    if any(each.f1 is not None for each in asked):
        rows.insert(1, ("F1", *("–" if each.f1 is None else f"{each.f1:.2f}" for each in asked)))
        rows.append(("lost at", *(each.lost for each in asked)))
    cells = [tuple(h.short(h.clean(cell), most) for cell in row) for row in rows]
    return Table(("", *(each.system for each in asked)), cells)


def _triples(shown: SideBySide, title: str) -> Table:
    """Each triple, with a mark for every system whose answer stands on it."""
    rows = []
    for triple in shown.triples:
        marks = ("yes" if triple in each.support else "" for each in shown.asked)
        rows.append((h.clean(triple_text(triple, shown.names)), *marks))
    return Table((title, *(each.system for each in shown.asked)), rows)


@as_text.register
def _(shown: SideBySide) -> str:
    triples = _triples(shown, "stands on")
    return "\n\n".join([shown.question, str(_table(shown, 60)), *([str(triples)] if triples.rows else [])])


@as_html.register
def _(shown: SideBySide) -> str:
    title = h.tag("h2", h.short(shown.question, 1000), class_="question grow")
    tables = _table(shown, 300).html(), _triples(shown, "the triples that answers stand on").html()
    return h.static(h.div("head", title), h.div("body stack", *tables))
