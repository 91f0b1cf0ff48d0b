"""One question asked of several systems: their answers, the support of these, and the cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from kgwb.bench.cost import sum_seconds_by_stage
from kgwb.bench.ladder import apply_rungs, load_gold_query
from kgwb.bench.questions import BenchQuestion
from kgwb.bench.results import compute_answer_f1, known_right_answer
from kgwb.bench.runner import RunCanceller
from kgwb.errors import KgwbError
from kgwb.kg.term_text import format_exactly
from kgwb.run import Run, Setup
from kgwb.run.answers import Dialogue
from kgwb.show import html as h
from kgwb.show.run_state import ANSWER_STATE_LABELS, ERROR, state_of_output
from kgwb.show.tables import Table
from kgwb.terms import Term, Triple, format_triple
from kgwb.text import format_seconds, pluralize, shorten, single_line, tell_apart

MAX_TEXT_CHARS = 60
"""Characters of a cell in the text form, which must fit a terminal."""
MAX_HTML_CHARS = 300
AnswerTerms = tuple[frozenset[tuple[Term, ...]], str]
"""What an answer is, whatever its values are called: their terms, and its text."""


@dataclass(frozen=True)
class SystemAnswer:
    """The answer of one system."""

    system: str
    """Its name; of several systems with one name, the second has "#2" after it, and so on."""
    run: Run
    error: str = ""
    """Why there is no answer, if the run failed."""
    f1: float | None = None
    """None without gold."""
    lost_at: str = ""
    """The agent that lost a wrong answer, or why it is not known; empty for a right answer."""

    @property
    def support(self) -> tuple[Triple, ...]:
        """The triples that the answer is derived from."""
        return self.run.answer.support if self.run.answer else ()


@dataclass(frozen=True, repr=False)
class SystemComparison:
    """The answers of several systems to one question, in the order in which they were asked."""

    question: str
    answers: tuple[SystemAnswer, ...]
    names: dict[str, str] = field(default_factory=dict)
    """Display names by IRI."""

    @property
    def shared_support(self) -> frozenset[Triple]:
        """The triples that all answers with any support have in common."""
        supports = [frozenset(answer.support) for answer in self.answers if answer.support]
        if not supports:
            return frozenset()
        return frozenset.intersection(*supports)

    def __getitem__(self, system: str) -> Run:
        """Return the run of a system by its shown name. Raises KeyError if there is none."""
        for answer in self.answers:
            if answer.system == system:
                return answer.run
        raise KeyError(system)

    def __repr__(self) -> str:
        """Return the question, the table of answers, and the table of support if there is any, as text."""
        answer_table = self._make_answer_table(MAX_TEXT_CHARS)
        support_table = self._make_support_table()
        parts = [self.question, str(answer_table)]
        if support_table.rows:
            parts.append(str(support_table))
        return "\n\n".join(parts)

    def _repr_html_(self) -> str:
        """Return the question and both tables as HTML with their style, for a notebook."""
        question = shorten(self.question, 1000)
        title = h.tag("h2", question, class_="question grow")
        answer_table = self._make_answer_table(MAX_HTML_CHARS)
        support_table = self._make_support_table()
        head = h.div("head", title)
        body = h.div(
            "body stack",
            answer_table.render(),
            support_table.render(),
        )
        return h.static_section(head, body)

    def _make_answer_table(self, max_chars: int) -> Table:
        """Return a table with a column for each system: its answer, state, support, and cost.

        F1 and the agent that lost the answer are shown if there is gold. Longer cells are cut at
        ``max_chars`` characters.
        """
        shared_count = len(self.shared_support)
        texts = self._write_answers()
        columns = []
        for answer in self.answers:
            text = texts[_terms_of(answer)]
            columns.append(self._describe_answer(answer, text, shared_count))
        rows = []
        for name in columns[0] if columns else ():
            row = [name]
            for column in columns:
                row.append(shorten(single_line(column[name]), max_chars))
            rows.append(tuple(row))
        return Table(("", *self._system_names()), rows)

    def _write_answers(self) -> dict[AnswerTerms, str]:
        """Return the text of each different answer, by its terms.

        Answers of the same names whose values are different things have the terms in full.
        """
        text_by_terms = {}
        for answer in self.answers:
            text_by_terms[_terms_of(answer)] = str(answer.run.answer)
        forms = (text_by_terms.__getitem__, _format_terms)
        return tell_apart(text_by_terms, forms)

    def _describe_answer(
        self, answer: SystemAnswer, text: str, shared_count: int
    ) -> dict[str, object]:
        """Return the cells of an answer's column, by the names of the rows, in their order.

        They are the answer as ``text`` or the error, its state, the support, the number of triples
        that all systems share (``shared_count``), model calls, tokens, and times. F1 and the agent
        that lost the answer are added if any answer was scored.
        """
        run = answer.run
        totals = run.totals
        has_gold = any(other.f1 is not None for other in self.answers)
        cells: dict[str, object] = {"answer": text, "state": ""}
        if answer.error:
            cells["answer"] = f"failed: {answer.error}"
            cells["state"] = ANSWER_STATE_LABELS[ERROR]
        elif run.answer is not None:
            cells["state"] = state_of_output(run, run.answer)
        if has_gold:
            cells["F1"] = _format_f1(answer.f1)
        cells["support"] = self._describe_support(answer)
        cells["shared by all"] = shared_count if answer.support else ""
        cells["model calls"] = totals.model_calls
        tokens = totals.prompt_tokens + totals.completion_tokens
        cells["tokens"] = f"{tokens:,}"
        cells["time"] = format_seconds(totals.seconds)
        waiting_s = _wait_for_models(run)
        cells["of it waiting for models"] = format_seconds(waiting_s)
        if has_gold:
            cells["lost at"] = answer.lost_at
        return cells

    def _describe_support(self, answer: SystemAnswer) -> str:
        """Return the number of supporting triples, and of those that support no other answer, as text.

        It reads "3 triples, 1 of its own"; "" without an answer.
        """
        if not answer.run.answer:
            return ""
        others: set[Triple] = set()
        for other in self.answers:
            if other is not answer:
                others.update(other.support)
        own = [triple for triple in answer.support if triple not in others]
        count = pluralize(len(answer.support), "triple")
        return f"{count}, {len(own)} of its own"

    def _make_support_table(self) -> Table:
        """Return a table of all supporting triples, with "yes" for each system whose answer has one.

        The triples that most systems share come first; those that equally many share come in the
        order of the systems. Triples that read the same are written in full.
        """
        system_counts: Counter[Triple] = Counter()
        in_order: dict[Triple, None] = {}
        for answer in self.answers:
            triples = dict.fromkeys(answer.support)
            in_order.update(triples)
            system_counts.update(triples.keys())
        most_shared_first = sorted(in_order, key=system_counts.__getitem__, reverse=True)
        format_by_name = partial(format_triple, names=self.names)
        texts = tell_apart(in_order, (format_by_name, _format_in_full))
        rows = []
        for triple in most_shared_first:
            row = [single_line(texts[triple])]
            for answer in self.answers:
                is_support = triple in answer.support
                row.append("yes" if is_support else "")
            rows.append(tuple(row))
        headers = ("triples that support an answer", *self._system_names())
        return Table(headers, rows)

    def _system_names(self) -> list[str]:
        return [answer.system for answer in self.answers]


def _format_f1(f1: float | None) -> str:
    """Return F1 with two digits; "–" if it is not known."""
    if f1 is None:
        return "–"
    return f"{f1:.2f}"


def _terms_of(answer: SystemAnswer) -> AnswerTerms:
    """Return what identifies an answer: the set of its values' terms, and its text or its reason.

    An answer that is missing has none, and "".
    """
    found = answer.run.answer
    if found is None:
        return frozenset(), ""
    terms = frozenset(value.terms for value in found.values)
    return terms, found.text or found.reason


def _format_terms(terms: AnswerTerms) -> str:
    """Return the terms of an answer in full, in their order as text; its text without any."""
    rows, text = terms
    values = []
    for row in rows:
        values.append(" · ".join(map(format_exactly, row)))
    return ", ".join(sorted(values)) or text


def _format_in_full(triple: Triple) -> str:
    """Return a triple with its terms in full."""
    subject, predicate, object_ = map(format_exactly, triple)
    return f"{subject} — {predicate} → {object_}"


def _wait_for_models(run: Run) -> float:
    """Return how many seconds a run waited for models."""
    total_s = run.totals.seconds
    times = sum_seconds_by_stage(run.system, run.steps, run.calls, total_s)
    seconds = 0.0
    for time in times.values():
        seconds += time.model_seconds
    return seconds


def ask_all(
    setups: Sequence[Setup], question: str | BenchQuestion, dialogue: Dialogue
) -> SystemComparison:
    """Ask the system of each setup the question, one after another, and return the answers side by side.

    A system that fails has its error in its column, and the others are still asked. A
    ``BenchQuestion`` has gold, so that answers are scored; the oracle ladder then finds the agent
    that lost an answer (kgwb.bench.ladder), which may make further model calls. A system that is
    given again is named "NAME#2".
    """
    gold = question if isinstance(question, BenchQuestion) else None
    text = gold.question if gold else str(question)
    answers = [_ask_system(setup, text, gold, dialogue) for setup in setups]
    return _compare_answers(text, answers)


def compare_runs(question: str | BenchQuestion, runs: Sequence[Run]) -> SystemComparison:
    """Return the answers of finished runs side by side, such as of recorded ones; nothing is asked.

    They are scored if the question is a ``BenchQuestion`` with gold. Which agent lost an answer is
    not looked for.
    """
    gold = None
    text = question
    if isinstance(question, BenchQuestion):
        gold = question.answers
        text = question.question
    answers = []
    for run in runs:
        f1 = None if gold is None else compute_answer_f1(run.answer, gold)
        answers.append(SystemAnswer(run.system.name, run, f1=f1))
    return _compare_answers(str(text), answers)


def _compare_answers(question: str, answers: Sequence[SystemAnswer]) -> SystemComparison:
    """Return the comparison of answers, in which a system that occurs again is named "NAME#2" and so on.

    Where systems name an IRI differently, the name of the first system counts.
    """
    counts: Counter[str] = Counter()
    named = []
    for answer in answers:
        counts[answer.system] += 1
        count = counts[answer.system]
        if count > 1:
            answer = replace(answer, system=f"{answer.system}#{count}")  # noqa: PLW2901
        named.append(answer)
    names: dict[str, str] = {}
    for answer in reversed(named):  # the names of the first system go before those of others
        names.update(answer.run.display_names())
    return SystemComparison(question, tuple(named), names)


def _ask_system(
    setup: Setup, text: str, gold: BenchQuestion | None, dialogue: Dialogue
) -> SystemAnswer:
    """Ask one system, score its answer if the gold answers are known, and return both.

    A run that fails has its error, and F1 0 if there is gold. For an answer whose F1 is below 1 the
    agent that lost it is looked for.
    """
    name = setup.system.name
    run = setup.begin(text, dialogue)
    if gold is not None:
        run.right_answer = known_right_answer(gold.gold, gold.answer_labels)
    error = ""
    try:
        run.go_explained()
    except KgwbError as exc:
        error = exc.without_hint
    if gold is None or gold.answers is None:
        return SystemAnswer(name, run, error)
    if error:
        return SystemAnswer(name, run, error, f1=0.0)
    f1 = compute_answer_f1(run.answer, gold.answers)
    lost_at = ""
    if f1 < 1:
        lost_at = _find_blamed_agent(setup, run, gold)
    return SystemAnswer(name, run, f1=f1, lost_at=lost_at)


def _find_blamed_agent(setup: Setup, run: Run, question: BenchQuestion) -> str:
    """Apply the oracle ladder to a fork of a run, and return the agent that lost its answer.

    If it is not known, the reason is returned; "not known" without a gold query or gold decisions.
    Models may be asked.
    """
    gold_query = None
    if setup.system.gold:
        gold_query = load_gold_query(question, setup.kg)
    if gold_query is None:
        return "not known"
    loss = apply_rungs(run.fork(), gold_query, question, setup, RunCanceller())
    return str(loss.get("agent") or loss["why"])
