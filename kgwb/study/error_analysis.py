"""Error analysis: people give a sample of the lost questions categories, and it is said how far they agree.

The sample and its categories stand in ``errors.json`` in the results folder, and what a person says
in ``errors.NAME.jsonl``, a line for each question. Of several lines of one question the last counts.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from urllib.parse import quote, unquote

from pydantic import BaseModel, ValidationError, field_validator

from kgwb import disk
from kgwb.bench.agreement import CategoryPair, compute_kappa
from kgwb.bench.figures import LoadedResults, ReportTable
from kgwb.bench.results import BenchRow, is_lost, parse_json_lines
from kgwb.bench.statistics import wilson_interval
from kgwb.errors import InputError
from kgwb.records import describe_validation_error
from kgwb.text import shorten, single_line

SAMPLE_FILE = "errors.json"
CODINGS_FILES = "errors.*.jsonl"
WRONG_GOLD = "gold is wrong"
"""The category of questions whose gold answer is wrong. It is in every scheme."""
AMBIGUOUS_QUESTION = "question is ambiguous"
GRAPH_LACKS_IT = "the graph lacks it"
OTHER_CATEGORY = "other"
STRATA = ("agent", "kind")
"""By what a sample can be divided: the agent that is blamed, or the kind of the question."""
DEFAULT_SAMPLE_SIZE = 20
MAX_CATEGORY_CHARS = 80


class ErrorSample(BaseModel, frozen=True, extra="forbid"):
    """Which lost questions are looked at, and the categories that they can be given."""

    ids: tuple[str, ...]
    """In the order in which they are shown, which is random."""
    categories: tuple[str, ...]
    seed: int
    stratified_by: str
    """One of STRATA."""
    lost_count: int
    """How many questions were lost when the sample was drawn."""

    @field_validator("categories")
    @classmethod
    def _check_categories(cls, categories: tuple[str, ...]) -> tuple[str, ...]:
        for category in categories:
            if not category.strip() or len(category) > MAX_CATEGORY_CHARS:
                raise ValueError(f"a category has 1 to {MAX_CATEGORY_CHARS} characters")
        if len(set(categories)) < len(categories):
            raise ValueError("a category is named twice")
        return categories


class Coding(BaseModel, frozen=True, extra="forbid"):
    """What a person says of one lost question; a line of the person's file."""

    id: str
    question: str
    answers: tuple[str, ...]
    gold: tuple[str, ...]
    """A coding does not count any more if the answers or the gold have changed since."""
    category: str
    note: str = ""


CodingsByCoder = Mapping[str, Mapping[str, Coding]]
"""By coder, the codings by question id."""


# The sample


def draw_sample(
    results: LoadedResults,
    size: int = DEFAULT_SAMPLE_SIZE,
    *,
    seed: int = 0,
    stratified_by: str = "agent",
    categories: Sequence[str] = (),
) -> ErrorSample:
    """Draw a sample of the lost questions, and write it to the results folder.

    Each stratum has its share of the sample as it has of all lost questions, rounded by largest
    remainder, so that shares of the sample estimate those of all. The same seed draws the same
    questions. With ``size`` questions or fewer all are taken. The ``categories`` are by default the
    agents of the system that was measured, and what else can be to blame; WRONG_GOLD is added where
    it is missing.

    Raises InputError if there is a sample already, if no question was lost, for a size below 1, an
    unknown stratum or a category that is empty, too long or named twice, and if the file cannot be
    written.
    """
    path = results.folder / SAMPLE_FILE
    if path.exists():
        raise InputError(
            f"no sample was drawn: {path} has an earlier sample of these results",
            hint="go on with that sample (leave --sample out); to begin again, first move it and the "
            "files errors.*.jsonl beside it elsewhere",
        )
    if size < 1:
        raise InputError(
            f"a sample cannot have {size} questions", hint="give a size of 1 or more: --sample 50"
        )
    if stratified_by not in STRATA:
        raise InputError(
            f"a sample cannot be divided by {stratified_by!r}",
            hint=f"give --by {' or '.join(STRATA)} (in Python: stratified_by=...)",
        )
    lost = [row for row in results.rows.values() if is_lost(row)]
    if not lost:
        raise InputError(
            f"no sample was drawn: no answer in {results.folder} is wrong or missing",
            hint="name other results: these have no errors to analyse",
        )
    scheme = list(categories or _default_categories(results))
    if WRONG_GOLD not in scheme:
        scheme.append(WRONG_GOLD)
    ids = _choose_ids(results, lost, size, seed, stratified_by)
    try:
        sample = ErrorSample(
            ids=tuple(ids),
            categories=tuple(scheme),
            seed=seed,
            stratified_by=stratified_by,
            lost_count=len(lost),
        )
    except ValidationError as exc:
        raise InputError(
            f"these categories cannot be used: {describe_validation_error(exc)}",
            hint="give each category once, as a short text",
        ) from exc
    text = json.dumps(sample.model_dump(), indent=2, ensure_ascii=False)
    with disk.os_errors_as_input_error(
        f"cannot write {path}", "check that the disk has space and that you may write there"
    ):
        disk.write_atomically(path, [text, "\n"], disk.JSON_ENCODING_ERRORS)
    return sample


def read_sample(results: LoadedResults) -> ErrorSample | None:
    """Return the sample in a results folder; None if none was drawn.

    Raises InputError if its file is damaged.
    """
    path = results.folder / SAMPLE_FILE
    if not path.exists():
        return None
    with disk.os_errors_as_input_error(f"cannot read {path}", "check that you may read this file"):
        try:
            return ErrorSample.model_validate_json(path.read_bytes())
        except ValidationError as exc:
            raise InputError(
                f"{path} is not the sample of an error analysis: {describe_validation_error(exc)}",
                hint="correct the file; or move it elsewhere, and draw a new sample with: "
                f"kgwb errors {results.folder} --sample {DEFAULT_SAMPLE_SIZE}",
            ) from exc


def _default_categories(results: LoadedResults) -> list[str]:
    """Return the agents of the system that was measured, and what else can be to blame."""
    return [*results.agent_names, WRONG_GOLD, AMBIGUOUS_QUESTION, GRAPH_LACKS_IT, OTHER_CATEGORY]


def _choose_ids(
    results: LoadedResults, lost: Sequence[BenchRow], size: int, seed: int, stratified_by: str
) -> list[str]:
    """Return the ids of a stratified sample, in a random order."""
    generator = random.Random(seed)
    strata: dict[str, list[str]] = {}
    for row in lost:
        stratum = _stratum_of(results, row, stratified_by)
        strata.setdefault(stratum, []).append(row["id"])
    quotas = _share_out(min(size, len(lost)), {name: len(ids) for name, ids in strata.items()})
    chosen = []
    for name in sorted(strata):
        chosen += generator.sample(sorted(strata[name]), quotas[name])
    generator.shuffle(chosen)
    return chosen


def _stratum_of(results: LoadedResults, row: BenchRow, stratified_by: str) -> str:
    """Return the agent that is blamed for a lost question, or its type and hops; "" if unknown."""
    if stratified_by == "agent":
        return results.losses_by_id.get(row["id"], {}).get("agent") or ""
    return f"{row.get('type', '')} {row.get('hops', '')}"


def _share_out(total: int, sizes: Mapping[str, int]) -> dict[str, int]:
    """Share ``total`` out in proportion to sizes, by largest remainder; equal remainders by name."""
    whole = sum(sizes.values())
    quotas = {}
    remainders = {}
    for name, size in sizes.items():
        quotas[name], remainders[name] = divmod(total * size, whole)
    by_remainder = sorted(sizes, key=lambda name: (-remainders[name], name))
    for name in by_remainder[: total - sum(quotas.values())]:
        quotas[name] += 1
    return quotas


# What people say


def name_codings_file(folder: Path, coder: str) -> Path:
    """Return the file of a coder in a results folder."""
    return folder / CODINGS_FILES.replace("*", quote(coder, safe=""))


def add_coding(
    results: LoadedResults, sample: ErrorSample, coder: str, id_: str, category: str, note: str = ""
) -> Coding:
    """Give a question of the sample a category, and append that to the coder's file.

    Raises InputError for a coder without a name, a question outside of the sample, a category outside
    of its scheme, and a file that cannot be written.
    """
    if not coder.strip():
        raise InputError(
            "the name of the person who codes is empty",
            hint="give the initials of the person, as in kgwb.ErrorCoding(FOLDER, 'ann')",
        )
    if id_ not in sample.ids or id_ not in results.rows:
        raise InputError(
            f"the question {id_!r} cannot be coded: it is not in the sample of {results.folder}",
            hint=f"choose a question of the sample, such as {sample.ids[0]!r}",
        )
    if category not in sample.categories:
        raise InputError(
            f"the question {id_!r} cannot get the category {category!r}, which the sample does not have",
            hint=f"choose one of {', '.join(sample.categories)}",
        )
    row = results.rows[id_]
    coding = Coding(
        id=id_,
        question=row["question"],
        answers=tuple(row["answers"]),
        gold=tuple(row["gold"]),
        category=category,
        note=note.strip(),
    )
    path = name_codings_file(results.folder, coder)
    with disk.os_errors_as_input_error(
        f"cannot write {path}", "check that the disk has space and that you may write there"
    ):
        disk.end_last_line(path)
        disk.append_json_line(path, coding.model_dump())
    return coding


def read_codings(results: LoadedResults, sample: ErrorSample, coder: str) -> dict[str, Coding]:
    """Return what a coder says of the sample, by question id, in the order of the sample.

    Codings of other questions, of earlier answers and of earlier gold are left out. Raises InputError,
    which names the line, for one that is not valid or has a category outside of the scheme.
    """
    path = name_codings_file(results.folder, coder)
    if not path.exists():
        return {}

    def parse(data: object) -> Coding:
        coding = Coding.model_validate(data)
        if coding.category not in sample.categories:
            raise ValueError(f"{coding.category!r} is not a category of {SAMPLE_FILE}")
        return coding

    hint = f"correct the line, or add the category to {SAMPLE_FILE}"
    codings = {}
    with disk.os_errors_as_input_error(f"cannot read {path}", "check that you may read this file"):
        disk.end_last_line(path)  # a reader of JSON lines takes it for unfinished
        for coding in parse_json_lines(path, parse, "is not a coding", hint):
            codings[coding.id] = coding
    current = {}
    for id_ in sample.ids:
        if id_ in codings and _is_current(codings[id_], results):
            current[id_] = codings[id_]
    return current


def read_all_codings(results: LoadedResults, sample: ErrorSample) -> CodingsByCoder:
    """Return what all coders say of the sample, by their names. Raises what ``read_codings`` raises."""
    prefix, suffix = CODINGS_FILES.split("*")
    by_coder = {}
    for path in sorted(results.folder.glob(CODINGS_FILES)):
        coder = unquote(path.name.removeprefix(prefix).removesuffix(suffix))
        by_coder[coder] = read_codings(results, sample, coder)
    return by_coder


def _is_current(coding: Coding, results: LoadedResults) -> bool:
    """Return whether a coding is about the present answer and gold of a lost question."""
    row = results.rows.get(coding.id)
    if row is None or not is_lost(row):
        return False
    return tuple(row["answers"]) == coding.answers and tuple(row["gold"]) == coding.gold


def find_wrong_gold(codings: CodingsByCoder) -> frozenset[str]:
    """Return the ids of the questions whose gold is wrong, as everybody says who has coded them."""
    categories: dict[str, set[str]] = {}
    for codings_by_id in codings.values():
        for id_, coding in codings_by_id.items():
            categories.setdefault(id_, set()).add(coding.category)
    wrong_ids = set()
    for id_, named in categories.items():
        if named == {WRONG_GOLD}:
            wrong_ids.add(id_)
    return frozenset(wrong_ids)


# The tables


@dataclass(frozen=True)
class ErrorAnalysis:
    """The sample of a results folder, with what all coders say of it."""

    results: LoadedResults = field(repr=False)
    sample: ErrorSample
    codings: CodingsByCoder

    @classmethod
    def read(cls, results: LoadedResults) -> ErrorAnalysis:
        """Read the sample and all codings of a results folder.

        Raises InputError if no sample was drawn, or if a file is damaged.
        """
        sample = read_sample(results)
        if sample is None:
            raise InputError(
                f"{results.folder} has no error analysis",
                hint=f"draw a sample with: kgwb errors {results.folder} --sample {DEFAULT_SAMPLE_SIZE}",
            )
        return cls(results, sample, read_all_codings(results, sample))

    def make_category_table(self) -> ReportTable:
        """Return the share of each category by coder, with Wilson's interval, and an example.

        Categories that nobody gave have no row. The example is the first question of the sample that
        somebody gave the category. It has no rows if nothing was coded.
        """
        rows = []
        for category in self.sample.categories:
            example = self._find_example(category)
            if not example:
                continue
            shares = []
            for codings in self.codings.values():
                shares.append(_show_share(category, codings.values()))
            rows.append((category, *shares, example))
        return ReportTable(("category", *self.codings, "example"), rows)

    def make_agreement_table(self) -> ReportTable:
        """Return Cohen's kappa of each pair of coders, with its interval, and how often they agree.

        Where kappa is not known it is "–". It has no rows with fewer than two coders.
        """
        rows = []
        for first, second in combinations(self.codings, 2):
            pairs = self._pairs_of(first, second)
            agreed = sum(one == other for one, other in pairs)
            kappa = compute_kappa(pairs)
            share = f"{agreed} of {len(pairs)}"
            rows.append((f"{first}, {second}", share, str(kappa or "–")))
        return ReportTable(("coders", "agreed", "kappa"), rows)

    def make_disagreement_table(self) -> ReportTable:
        """Return the questions that got different categories, with what each coder says and notes."""
        rows = []
        for id_ in self.sample.ids:
            categories = set()
            cells = []
            for codings in self.codings.values():
                coding = codings.get(id_)
                cells.append(_show_coding(coding))
                if coding is not None:
                    categories.add(coding.category)
            if len(categories) > 1:
                title = self.results.question_titles[id_]
                rows.append((title, *cells))
        return ReportTable(("question", *self.codings), rows)

    def make_gold_table(self) -> ReportTable:
        """Return the figures with and without the questions whose gold is wrong.

        These are the ones of ``find_wrong_gold``. Only the sample was looked at, so there may be more
        among the other lost questions. It has no rows if there are none.
        """
        wrong = find_wrong_gold(self.codings)
        if not wrong:
            return ReportTable(("questions", "number", "F1", "exact"), [])
        kept = [row for id_, row in self.results.rows.items() if id_ not in wrong]
        rows = []
        selections = {
            "all": self.results,
            f"without {len(wrong)} whose gold is wrong": self.results.with_rows(kept),
        }
        for name, results in selections.items():
            group = results.groups.get("all")
            if group is not None:
                figures = (group.estimate(measure) or "–" for measure in ("f1", "exact"))
                rows.append((name, len(results.rows), *map(str, figures)))
        return ReportTable(("questions", "number", "F1", "exact"), rows)

    def list_tables(self) -> list[ReportTable]:
        """Return the tables that have rows."""
        tables = (
            self.make_category_table(),
            self.make_agreement_table(),
            self.make_disagreement_table(),
            self.make_gold_table(),
        )
        return [table for table in tables if table.rows]

    def describe(self) -> str:
        """Return in a sentence what was sampled and how much each coder has coded."""
        sample = self.sample
        text = (
            f"{len(sample.ids)} of {sample.lost_count} lost questions, by {sample.stratified_by}, "
            f"seed {sample.seed}"
        )
        for coder, codings in self.codings.items():
            text += f"; {coder} has coded {len(codings)}"
        return text

    def _find_example(self, category: str) -> str:
        """Return the first question of the sample that somebody gave the category; "" if nobody did."""
        for id_ in self.sample.ids:
            for codings in self.codings.values():
                if id_ in codings and codings[id_].category == category:
                    return shorten(single_line(self.results.rows[id_]["question"]))
        return ""

    def _pairs_of(self, first: str, second: str) -> list[CategoryPair]:
        """Return the categories that two coders gave to what both have coded."""
        pairs = []
        for id_, coding in self.codings[first].items():
            other = self.codings[second].get(id_)
            if other is not None:
                pairs.append((coding.category, other.category))
        return pairs


def _show_share(category: str, codings: Iterable[Coding]) -> str:
    """Return how often a coder gave a category: "5 of 20 [0.11, 0.47]"; "–" without codings."""
    counts = Counter(coding.category for coding in codings)
    total = counts.total()
    if not total:
        return "–"
    low, high = wilson_interval(counts[category], total)
    return f"{counts[category]} of {total} [{low:.2f}, {high:.2f}]"


def _show_coding(coding: Coding | None) -> str:
    """Return a category with its note: "qir: lost the year"; "–" without a coding."""
    if coding is None:
        return "–"
    return f"{coding.category}: {coding.note}" if coding.note else coding.category
