"""One question asked of several systems: their answers, what these stand on and share, what they cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from kgwb.bench.figures import Table
from kgwb.bench.ladder import climbed, gold_of
from kgwb.bench.metrics import score
from kgwb.bench.questions import BenchQuestion, answer_strings
from kgwb.bench.runner import Watch
from kgwb.errors import KgwbError
from kgwb.flow import Dialogue
from kgwb.run import Run, Setup
from kgwb.show import html as h
from kgwb.terms import Triple, triple_text
from kgwb.text import format_seconds, pluralize, shorten, single_line


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

    def __getitem__(self, system: str) -> Run:
        return next(each.run for each in self.asked if each.system == system)

    def __repr__(self) -> str:
        tables = self._answers(60), self._triples()
        return "\n\n".join([self.question, *(str(table) for table in tables if table.rows)])

    def _repr_html_(self) -> str:
        title = h.tag("h2", shorten(self.question, 1000), class_="question grow")
        tables = self._answers(300).html(), self._triples().html()
        return h.static(h.div("head", title), h.div("body stack", *tables))

    def _answers(self, most: int) -> Table:
        """A column for each system, of cells with at most so many letters: its answer, support and cost."""
        asked, shared = self.asked, self.shared
        totals = [each.run.totals for each in asked]

        def stands_on(each: Asked) -> str:
            others = {triple for other in asked if other is not each for triple in other.support}
            own = sum(triple not in others for triple in each.support)
            return (
                f"{pluralize(len(each.support), 'triple')}, {own} alone" if each.run.answer else ""
            )

        rows: list[tuple[object, ...]] = [
            (
                "answer",
                *(
                    f"failed: {each.error}" if each.error else str(each.run.answer)
                    for each in asked
                ),
            ),
            ("stands on", *map(stands_on, asked)),
            ("shared by all", *(len(shared) if each.support else "" for each in asked)),
            ("model calls", *(used.model_calls for used in totals)),
            ("tokens", *(f"{used.prompt_tokens + used.completion_tokens:,}" for used in totals)),
            ("time", *(format_seconds(used.seconds) for used in totals)),
        ]
        if any(each.f1 is not None for each in asked):
            rows.insert(
                1, ("F1", *("–" if each.f1 is None else f"{each.f1:.2f}" for each in asked))
            )
            rows.append(("lost at", *(each.lost for each in asked)))
        cells = [tuple(shorten(single_line(cell), most) for cell in row) for row in rows]
        return Table(("", *(each.system for each in asked)), cells)

    def _triples(self) -> Table:
        """The triples that answers stand on, those of the most systems first, with a mark for each."""
        bearers = Counter(triple for each in self.asked for triple in dict.fromkeys(each.support))
        rows = []
        for triple, _ in bearers.most_common():
            marks = ("yes" if triple in each.support else "" for each in self.asked)
            rows.append((single_line(triple_text(triple, self.names)), *marks))
        return Table(
            ("the triples that answers stand on", *(each.system for each in self.asked)), rows
        )


def ask_all(
    setups: Sequence[Setup], question: str | BenchQuestion, dialogue: Dialogue
) -> SideBySide:
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
            known = gold_of(gold, setup.kg) if setup.system.gold else None
            blame = climbed(run.fork(), known, gold, setup, Watch()) if known else {}
            lost = str(blame.get("agent") or blame.get("why") or "not known")
        asked.append(Asked(setup.system.name, run, error, f1, lost))
    names = {
        iri: name for each in reversed(asked) for iri, name in each.run.display_names().items()
    }
    return SideBySide(text, tuple(asked), names)
