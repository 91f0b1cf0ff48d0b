"""One question asked of several systems: their answers, what these stand on and share, what they cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from kgwb.bench.figures import ReportTable
from kgwb.bench.ladder import apply_rungs, load_gold_query
from kgwb.bench.metrics import score_answers
from kgwb.bench.questions import BenchQuestion, answer_to_strings
from kgwb.bench.runner import RunCanceller
from kgwb.errors import KgwbError
from kgwb.flow import Dialogue
from kgwb.run import Run, Setup
from kgwb.show import html as h
from kgwb.terms import Triple, format_triple
from kgwb.text import format_seconds, pluralize, shorten, single_line


@dataclass(frozen=True)
class SystemAnswer:
    """What one system made of the question."""

    system: str
    run: Run
    error: str = ""
    """Why there is no answer, where the run failed."""
    f1: float | None = None
    """None without gold."""
    lost_at: str = ""
    """Where a wrong answer was lost; empty if it is right, or if nothing tells."""

    @property
    def support(self) -> tuple[Triple, ...]:
        """The triples that the answer stands on."""
        return self.run.answer.support if self.run.answer else ()


@dataclass(frozen=True, repr=False)
class SystemComparison:
    """The answers of several systems to one question, in the order they were asked."""

    question: str
    answers: tuple[SystemAnswer, ...]
    names: dict[str, str] = field(default_factory=dict)
    """Display names by IRI."""

    @property
    def shared_support(self) -> frozenset[Triple]:
        """The triples that every answer with any triple stands on."""
        sets = [frozenset(each.support) for each in self.answers if each.support]
        return frozenset.intersection(*sets) if sets else frozenset()

    def __getitem__(self, system: str) -> Run:
        return next(each.run for each in self.answers if each.system == system)

    def __repr__(self) -> str:
        tables = self._make_answer_table(60), self._make_support_table()
        return "\n\n".join([self.question, *(str(table) for table in tables if table.rows)])

    def _repr_html_(self) -> str:
        title = h.tag("h2", shorten(self.question, 1000), class_="question grow")
        tables = self._make_answer_table(300).render(), self._make_support_table().render()
        return h.static_section(h.div("head", title), h.div("body stack", *tables))

    def _make_answer_table(self, max_chars: int) -> ReportTable:
        """A column for each system, of cells with at most so many letters: its answer, support and cost."""
        asked, shared = self.answers, self.shared_support
        totals = [each.run.totals for each in asked]

        def stands_on(each: SystemAnswer) -> str:
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
            rows.append(("lost at", *(each.lost_at for each in asked)))
        cells = [tuple(shorten(single_line(cell), max_chars) for cell in row) for row in rows]
        return ReportTable(("", *(each.system for each in asked)), cells)

    def _make_support_table(self) -> ReportTable:
        """The triples that answers stand on, those of the most systems first, with a mark for each."""
        bearers = Counter(triple for each in self.answers for triple in dict.fromkeys(each.support))
        rows = []
        for triple, _ in bearers.most_common():
            marks = ("yes" if triple in each.support else "" for each in self.answers)
            rows.append((single_line(format_triple(triple, self.names)), *marks))
        return ReportTable(
            ("the triples that answers stand on", *(each.system for each in self.answers)), rows
        )


def ask_all(
    setups: Sequence[Setup], question: str | BenchQuestion, dialogue: Dialogue
) -> SystemComparison:
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
            f1 = 0.0 if error else score_answers(answer_to_strings(run.answer), gold.answers).f1
        if gold and f1 is not None and f1 < 1 and not error:
            known = load_gold_query(gold, setup.kg) if setup.system.gold else None
            blame = apply_rungs(run.fork(), known, gold, setup, RunCanceller()) if known else {}
            lost = str(blame.get("agent") or blame.get("why") or "not known")
        asked.append(SystemAnswer(setup.system.name, run, error, f1, lost))
    names = {
        iri: name for each in reversed(asked) for iri, name in each.run.display_names().items()
    }
    return SystemComparison(text, tuple(asked), names)
