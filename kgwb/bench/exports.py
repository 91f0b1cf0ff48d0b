"""Results for others: conditions, JUnit XML and JSON for a build server, and an archive that opens anywhere.

The archive is an RO-Crate (https://www.researchobject.org/ro-crate/). It has the results, the saved
runs, the prompts as they were sent, the settings and versions, and the graph if it is a file that is
not too large. Its metadata has a checksum for every file.
"""

from __future__ import annotations

import hashlib
import json
import operator
import os
import re
import shutil
import tempfile
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple
from urllib.parse import quote

from kgwb import disk
from kgwb.bench.assertions import count_held, list_failed
from kgwb.bench.comparisons import (
    FAILED,
    MORE_THAN_CHANCE,
    OUTCOME_STATES,
    ResultsComparison,
    load_prompt_texts,
)
from kgwb.bench.figures import LoadedResults
from kgwb.bench.judgements import (
    CODINGS_FILES,
    RATINGS_FILES,
    SAMPLE_FILE,
    SCORES_FILE,
    format_values,
)
from kgwb.bench.lab import RETRIES_FOLDER
from kgwb.bench.ladder import LADDER_FILE
from kgwb.bench.metrics import MEASURES, QuestionGroup
from kgwb.bench.results import (
    CONFIG_FILE,
    RESULTS_FILE,
    BenchRow,
    count_verdicts,
    find_run_file,
    get_verdict,
    is_shown,
)
from kgwb.disk import __version__
from kgwb.errors import GraphFileError, InputError
from kgwb.kg import VOCABULARIES, Vocabulary, find_graph_file
from kgwb.kg.files import identify_files
from kgwb.records import JsonObject, frozen
from kgwb.show.html import Html, render_template, safe
from kgwb.show.run_state import ERROR, GAVE_UP, RIGHT, UNANSWERED, WRONG
from kgwb.text import mask_text, pluralize, single_line

PASSED = "passed"
FAILURE = "failure"
ERROR_CASE = "error"
SKIPPED = "skipped"
FAILED_ASSERTIONS = "failed_assertions"
"""The figure that counts the questions of which an assertion does not hold; missing without any assertion."""
RESULT_FIGURES = (
    *("questions", RIGHT, "lost", WRONG, UNANSWERED, "gave_up", "errors", FAILED_ASSERTIONS),
    *MEASURES,
)
"""The figures of a benchmark on which a condition can be put."""
VERDICT_FIGURES = ("better", "worse", "f1_change", "f1_low", "f1_high")
"""What a retry shows of F1: 1 or 0 for better and for worse beyond chance, and the difference with its interval."""
CHANGE_FIGURES = (
    "questions",
    *(name.replace(" ", "_") for name in OUTCOME_STATES),
    FAILED_ASSERTIONS,
    "f1",
    *VERDICT_FIGURES,
)
"""The figures of a retry on which a condition can be put: also the number of questions by outcome, and F1 after it."""
MAX_CASE_CHARS = 300
_COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "!=": operator.ne,
    "==": operator.eq,
    "<": operator.lt,
    ">": operator.gt,
    "=": operator.eq,
}
_CONDITION = re.compile(r"\s*(\w+)\s*(<=|>=|!=|==|<|>|=)\s*(-?\d+(?:\.\d+)?)\s*")


class Condition(NamedTuple):
    """A condition on a figure, such as "f1<0.8"."""

    figure: str
    comparison: str
    limit: float

    @classmethod
    def parse(cls, text: str, figures: Sequence[str]) -> Condition:
        """Parse a text such as "f1<0.8" as a condition on one of these figures.

        Raises InputError for another form, and for a figure that is not among them.
        """
        match = _CONDITION.fullmatch(text)
        if match is None or (match[3].startswith("-") and match[1] not in VERDICT_FIGURES):
            raise InputError(
                f"the condition {text!r} cannot be read",
                hint="write a figure, a comparison and a number, such as --fail-if 'f1<0.8'",
            )
        figure, comparison, limit = match.groups()
        if figure not in figures:
            raise InputError(
                f"the condition {text!r} names an unknown figure, {figure!r}",
                hint=f"use one of these figures: {', '.join(figures)}",
            )
        return cls(figure, comparison, float(limit))

    def is_met(self, figures: Mapping[str, float]) -> bool:
        """Return whether the figure compares with the limit as the condition says.

        A figure that is missing meets every condition: so a set without gold does not pass a check
        of F1.
        """
        if self.figure not in figures:
            return True
        compare = _COMPARISONS[self.comparison]
        return compare(figures[self.figure], self.limit)

    def __str__(self) -> str:
        return f"{self.figure}{self.comparison}{self.limit:g}"


class Case(NamedTuple):
    """What became of one question."""

    id: str
    question: str
    state: str
    """PASSED, FAILURE, ERROR_CASE or SKIPPED."""
    outcome: str
    """The verdict on the answer, or the outcome of a change."""
    text: str
    """The answer and the gold, or the error."""
    seconds: float


@frozen
class Suite:
    """The questions and the figures of a results folder."""

    name: str
    figures: Mapping[str, float]
    cases: Sequence[Case]


def make_results_suite(name: str, rows: Sequence[BenchRow]) -> Suite:
    """Return the questions of a benchmark as cases, with RESULT_FIGURES.

    An answer is passed if it is right and all assertions on it hold, and else a failure. A question
    without gold and without assertions is skipped unless it ended in an error. Without any gold there
    are no measures among the figures.
    """
    counts = count_verdicts(rows)
    cases = []
    for row in rows:
        verdict = get_verdict(row)
        has_gold = row["gold"] is not None
        state = SKIPPED
        if verdict == ERROR:
            state = ERROR_CASE
        elif list_failed(row) or (has_gold and verdict != RIGHT):
            state = FAILURE
        elif has_gold or row.get("assertions"):
            state = PASSED
        if is_shown(row):
            cases.append(_make_case(row, state, verdict))
    figures: dict[str, float] = {"questions": len(rows)}
    for verdict in (RIGHT, WRONG, UNANSWERED, GAVE_UP):
        figures[verdict.replace(" ", "_")] = counts[verdict]
    figures["errors"] = counts[ERROR]
    figures["lost"] = counts.total() - counts[RIGHT]
    figures |= _count_failed(rows)
    group = QuestionGroup(name, rows)
    if group.without_gold < len(rows):
        for measure in MEASURES:
            figures[measure] = float(getattr(group.mean_scores, measure))
    return Suite(name, figures, cases)


def make_change_suite(comparison: ResultsComparison) -> Suite:
    """Return the questions of a retry as cases, with CHANGE_FIGURES.

    A broken question is a failure, as is one of which all assertions held only before, and one that
    ended in an error is an error. One that is fixed or still right is passed. Any other is skipped,
    since the change is not to blame for it. Without a verdict on F1, its figures are missing, so
    that no condition on them passes.
    """
    after = comparison.after
    figures: dict[str, float] = {"questions": len(comparison.outcomes)}
    for name in OUTCOME_STATES:
        figures[name.replace(" ", "_")] = comparison.counts[name]
    figures |= _count_failed(map(after.rows.__getitem__, comparison.outcomes))
    with suppress(InputError):
        figures |= _judge_change(comparison)
    cases = []
    for id_, row in comparison.before.rows.items():
        outcome = comparison.outcomes.get(id_)
        if outcome is None or not is_shown(row):
            continue
        state = PASSED
        if outcome == FAILED:
            state = ERROR_CASE
        elif outcome == "broken" or (list_failed(after.rows[id_]) and not list_failed(row)):
            state = FAILURE
        elif outcome not in ("fixed", "still right"):
            state = SKIPPED
        cases.append(_make_case(after.rows[id_], state, outcome))
    return Suite(after.name, figures, cases)


def _judge_change(comparison: ResultsComparison) -> dict[str, float]:
    """Return F1 after a change, and the VERDICT_FIGURES. Raises InputError if F1 cannot be compared."""
    scores = comparison.compare_scores("f1")
    is_beyond_chance = comparison.judge("f1") == MORE_THAN_CHANCE
    low, high = scores.confidence_interval
    return {
        "f1": scores.second,
        "better": float(is_beyond_chance and scores.difference > 0),
        "worse": float(is_beyond_chance and scores.difference < 0),
        "f1_change": scores.difference,
        "f1_low": low,
        "f1_high": high,
    }


def _count_failed(rows: Iterable[BenchRow]) -> dict[str, int]:
    """Return the figure FAILED_ASSERTIONS of some rows; empty if nothing is asserted of them."""
    held, asserted = count_held(rows)
    return {FAILED_ASSERTIONS: asserted - held} if asserted else {}


def _make_case(row: BenchRow, state: str, outcome: str) -> Case:
    """Return a row as a case, with its error, or its answers and the gold by their labels, as the text.

    Each list is cut at MAX_CASE_CHARS characters.
    """
    text = row["error"]
    if text is None:
        text = f"answered {format_values(row, 'answers', MAX_CASE_CHARS)}"
        if row["gold"] is not None:
            text += f"; right: {format_values(row, 'gold', MAX_CASE_CHARS)}"
        text = "; ".join([text, *list_failed(row)])
    return Case(
        id=row["id"],
        question=row["question"],
        state=state,
        outcome=outcome,
        text=single_line(text),
        seconds=row["seconds"],
    )


def find_met_conditions(suites: Sequence[Suite], conditions: Sequence[Condition]) -> list[str]:
    """Return a sentence for each condition that a suite's figures meet: "results: f1<0.8 (it is 0.75)".

    They are in the order of the suites, then of the conditions.
    """
    sentences = []
    for suite in suites:
        for case in _cases_of_conditions(suite, conditions):
            if case.state == FAILURE:
                sentences.append(f"{suite.name}: {case.text}")
    return sentences


def write_junit(path: Path, suites: Sequence[Suite], conditions: Sequence[Condition] = ()) -> None:
    """Write the suites to a file as JUnit XML, which is replaced.

    Each condition is a case of its own in each suite, which fails if it is met. Raises InputError
    if the file cannot be written.
    """
    listed = []
    for suite in suites:
        cases = [*suite.cases, *_cases_of_conditions(suite, conditions)]
        states = Counter(case.state for case in cases)
        listed.append((suite.name, cases, states))
    text = render_template("bench/templates/junit.xml", suites=listed, attribute=_attribute)
    _write(path, f"{text}\n")


def _attribute(text: str) -> Html:
    """Return a text as the value of an attribute of XML, which a line break must be written for to be kept."""
    return Html(safe(text).replace("\n", "&#10;"))


def _cases_of_conditions(suite: Suite, conditions: Sequence[Condition]) -> Iterator[Case]:
    """Yield a case for each condition, which fails if the suite meets it."""
    for condition in conditions:
        is_met = condition.is_met(suite.figures)
        state = FAILURE if is_met else PASSED
        shown = "not known"
        value = suite.figures.get(condition.figure)
        if value is not None:
            shown = f"{value:.4g}"
        text = f"{condition} (it is {shown})"
        yield Case(str(condition), "--fail-if", state, "met", text, 0)


def write_json(path: Path, suites: Sequence[Suite], conditions: Sequence[Condition]) -> None:
    """Write the suites to a file as JSON, which is replaced.

    For each suite it has the figures, whether each condition is met, and what became of each
    question. Raises InputError if the file cannot be written.
    """
    suites_data = []
    for suite in suites:
        met = {}
        for condition in conditions:
            met[str(condition)] = condition.is_met(suite.figures)
        entry: JsonObject = {
            "name": suite.name,
            "figures": suite.figures,
            "fail_if": met,
            "questions": [case._asdict() for case in suite.cases],
        }
        suites_data.append(entry)
    text = json.dumps({"results": suites_data}, ensure_ascii=False, indent=2)
    _write(path, text + "\n")


def _write(path: Path, text: str) -> None:
    """Write a file. Raises InputError if it cannot be written."""
    with disk.os_errors_as_input_error(f"cannot write to {path}", "name another file"):
        disk.write_atomically(path, [text], disk.JSON_ENCODING_ERRORS)


METADATA_FILE = "ro-crate-metadata.json"
RESULTS_FOLDER = "results"
GRAPHS_FOLDER = "graphs"
PROMPTS_FOLDER = "prompts"
MAX_GRAPH_MB = 50
MAX_UNPACKED_BYTES = 4 * 2**30
"""An archive that would take more space is not unpacked."""
COPIED_FILES = (
    CONFIG_FILE,
    RESULTS_FILE,
    LADDER_FILE,
    RATINGS_FILES,
    SCORES_FILE,
    SAMPLE_FILE,
    CODINGS_FILES,
)
"""What is taken of a results folder, beside its runs: names, or patterns of names."""
CALLS_PATTERN = "*.sqlite"
"""The store of calls in a results folder."""
ENCODING_FORMATS = {
    ".json": "application/json",
    ".jsonl": "application/jsonl",
    ".md": "text/markdown",
    ".nt": "application/n-triples",
    ".ttl": "text/turtle",
    ".rdf": "application/rdf+xml",
}


@frozen
class PackedArtifact:
    """An archive that was written."""

    path: Path
    file_count: int
    left_out: tuple[str, ...]
    """What is not in it, and why, a sentence each."""


@frozen
class _Entry:
    """A file of the archive: its place there, and its contents, in a file or as text."""

    name: str
    source: Path | None = None
    text: str = ""
    description: str = ""

    def read(self) -> bytes:
        """Return the contents. Raises OSError."""
        return self.text.encode() if self.source is None else self.source.read_bytes()


def pack_results(
    folders: Sequence[Path],
    path: Path,
    *,
    license_iri: str = "",
    max_graph_mb: int = MAX_GRAPH_MB,
) -> PackedArtifact:
    """Write an archive of results folders, which ``unpack_results`` and any RO-Crate tool can open.

    A graph is added once if it is a file of at most ``max_graph_mb`` MB; the store of calls is not,
    since saved runs have the calls that they need to be replayed. ``license_iri`` is the licence of the
    results.

    Raises InputError without a folder, for one without results, for two folders of one name, for a
    text that has what looks like a key or a password, if the package rocrate is missing, and if the
    archive cannot be written. A file that is there is replaced only if it is an archive.
    """
    crate_class = _import_crate()
    all_results = [LoadedResults.read(folder) for folder in folders]
    names = _choose_names(all_results)
    left_out: list[str] = []
    entries: dict[str, _Entry] = {}
    for name, results in zip(names, all_results, strict=True):
        for entry in _entries_of(name, results, left_out):
            entries[entry.name] = entry
        graph_entry = _graph_entry(name, results, max_graph_mb, left_out)
        if graph_entry is not None:
            same_name = entries.get(graph_entry.name)
            if same_name is not None and same_name.source != graph_entry.source:
                # Another graph whose file has the same name.
                graph_entry = replace(
                    graph_entry,
                    name=f"{GRAPHS_FOLDER}/{name}/{PurePosixPath(graph_entry.name).name}",
                )
            entries[graph_entry.name] = graph_entry
    if path.exists() and not zipfile.is_zipfile(path):
        raise InputError(
            f"cannot write {path}: the file there is not an archive of kgwb pack",
            hint="name another file for the archive",
        )
    with (
        disk.os_errors_as_input_error(
            f"cannot write the archive {path}", "name another file, or free some space"
        ),
        tempfile.TemporaryDirectory() as folder,
    ):
        crate = crate_class()
        crate.name = f"Results of kgwb: {', '.join(names)}"
        crate.description = _describe(names, all_results, left_out)
        crate.license = license_iri or "All rights reserved"
        for entry in entries.values():
            _add_to_crate(crate, entry, Path(folder))
        _add_software(crate)
        with disk.draft_of(
            path
        ) as draft:  # an archive that is there stays until the new one is whole
            _write_zip(crate, draft)
    return PackedArtifact(path, len(entries), tuple(left_out))


def unpack_results(archive: Path, folder: Path) -> list[Path]:
    """Unpack an archive of ``pack_results`` into a new folder; return its results folders.

    A folder that holds an unpacked copy of the same archive is used as it is. Every file is compared
    with its checksum.

    Raises InputError if the file is no such archive, if it is damaged or too large, if a path in it
    leads out of the folder, and if the folder holds something else.
    """
    with disk.os_errors_as_input_error(
        f"cannot read the archive {archive}", "check the path of the archive"
    ):
        try:
            with zipfile.ZipFile(archive) as opened:
                entities = _read_entities(opened, archive)
                if folder.exists():
                    _check_same(folder, opened, archive)
                else:
                    _extract(opened, entities, archive, folder)
        except zipfile.BadZipFile as exc:
            raise InputError(
                f"{archive} is not an archive of kgwb pack: {exc}",
                hint="name a folder that kgwb bench has written, or an archive of kgwb pack",
            ) from exc
    return sorted(path.parent for path in (folder / RESULTS_FOLDER).glob(f"*/{CONFIG_FILE}"))


# Packing


def _import_crate() -> Any:
    """Return the class ROCrate. Raises InputError, with the command, if rocrate is not installed."""
    try:
        from rocrate.rocrate import ROCrate
    except ImportError as exc:
        raise InputError(
            "nothing was packed: the package rocrate is not installed",
            hint="install it: pip install 'kgwb[artifact]'",
        ) from exc
    return ROCrate


def _choose_names(all_results: Sequence[LoadedResults]) -> list[str]:
    """Return the folders' names in the archive. Raises InputError if two are equal, or without any."""
    if not all_results:
        raise InputError(
            "nothing was packed: no folder of results is named",
            hint="name a folder that kgwb bench --out has written",
        )
    names = [results.folder.resolve().name for results in all_results]
    if len(set(names)) < len(names):
        raise InputError(
            f"nothing was packed: two folders have the same name: {', '.join(sorted(names))}",
            hint="rename one of the folders",
        )
    return names


def _entries_of(name: str, results: LoadedResults, left_out: list[str]) -> Iterator[_Entry]:
    """Yield the files of one results folder, its saved runs, and its prompts as they were sent."""
    target = f"{RESULTS_FOLDER}/{name}"
    for pattern in COPIED_FILES:
        for source in sorted(results.folder.glob(pattern)):
            yield _Entry(f"{target}/{source.name}", source)
    missing = 0
    for row in results.rows.values():
        run_file = find_run_file(results.folder, row)
        if run_file is None:
            missing += 1
            continue
        place = run_file.relative_to(results.folder.resolve()).as_posix()
        yield _Entry(f"{target}/{place}", run_file, description=f"The run of: {row['question']}")
    if missing:
        left_out.append(
            f"{name}: the runs of {pluralize(missing, 'question')}, which were not saved "
            "(kgwb bench --save-runs)"
        )
    measured = results.config.get("prompts") or {}
    texts = load_prompt_texts(results, measured)
    for prompt_name, text in texts.items():
        yield _Entry(f"{target}/{PROMPTS_FOLDER}/{prompt_name}.md", text=text)
    unsent = len(measured) - len(texts)
    if unsent:
        left_out.append(f"{name}: {pluralize(unsent, 'prompt')} that no saved run used")
    retries = list(results.folder.glob(f"{RETRIES_FOLDER}/*/{CONFIG_FILE}"))
    if retries:
        count = pluralize(len(retries), "retry")
        left_out.append(f"{name}: {count}, each of which can be packed as a folder of its own")
    if any(results.folder.glob(CALLS_PATTERN)):
        left_out.append(
            f"{name}: the store of calls; saved runs are replayed from their own record"
        )


def _graph_entry(
    name: str, results: LoadedResults, max_graph_mb: int, left_out: list[str]
) -> _Entry | None:
    """Return the file of the measured graph; None, with the reason in ``left_out``, without one.

    A file that is another graph now is not the one that was asked.
    """
    source = str(results.config.get("source"))
    file = find_graph_file(source)
    if file is None:
        left_out.append(f"{name}: the graph {mask_text(source)}, which is not a file")
        return None
    size_mb = file.stat().st_size / 1e6
    if size_mb > max_graph_mb:
        left_out.append(
            f"{name}: the graph {file.name}, {size_mb:.0f} MB (--max-graph-mb {max_graph_mb})"
        )
        return None
    if not _is_measured_graph(file, results):
        left_out.append(
            f"{name}: the graph {file.name}, which is not the one that was measured: its content, its "
            "vocabulary or the version of kgwb is another one now"
        )
        return None
    return _Entry(f"{GRAPHS_FOLDER}/{file.name}", file, description="The graph that was asked")


def _is_measured_graph(file: Path, results: LoadedResults) -> bool:
    """Return whether a file has the graph that was measured, with any of the vocabularies of kgwb."""
    with suppress(GraphFileError):
        vocabularies = (Vocabulary(), *VOCABULARIES.values())
        identities = identify_files(file, vocabularies)
        return results.config.get("kg") in identities
    return False


def _describe(
    names: Sequence[str], all_results: Sequence[LoadedResults], left_out: Sequence[str]
) -> str:
    """Return what the archive has: a headline for each folder, how to open it, what is left out."""
    lines = []
    for name, results in zip(names, all_results, strict=True):
        lines.append(f"{name}: {results.headline}.")
    lines.append(f"Open it with: kgwb report ARCHIVE (kgwb {__version__}).")
    for sentence in left_out:
        lines.append(f"Left out: {sentence}.")
    return " ".join(lines)


def _add_to_crate(crate: Any, entry: _Entry, folder: Path) -> None:
    """Add a file to the crate, with its size, its checksum and its format."""
    data = entry.read()
    _refuse_secrets(entry, data)
    copy = folder / "files" / entry.name
    copy.parent.mkdir(parents=True, exist_ok=True)
    copy.write_bytes(data)
    properties = {
        "name": entry.name,
        "contentSize": str(len(data)),
        "sha256": hashlib.sha256(data).hexdigest(),
    }
    if entry.source is not None:
        modified = datetime.fromtimestamp(entry.source.stat().st_mtime, UTC)
        properties["dateModified"] = modified.isoformat(timespec="seconds")
    encoding = ENCODING_FORMATS.get(PurePosixPath(entry.name).suffix)
    if encoding:
        properties["encodingFormat"] = encoding
    if entry.description:
        properties["description"] = entry.description
    crate.add_file(copy, quote(entry.name), properties=properties)


def _write_zip(crate: Any, path: Path) -> None:
    """Write a crate as a zip file. Raises OSError, such as on a full disk.

    The stream of the crate is read to its end even then: if it were left before, its own zip file
    could not be closed, and a ValueError would be printed beside the error.
    """
    failure: OSError | None = None
    with path.open("wb") as file:
        for chunk in crate.stream_zip():
            if failure is not None:
                continue
            try:
                file.write(chunk)
            except OSError as exc:
                failure = exc
    if failure is not None:
        raise failure


def _add_software(crate: Any) -> None:
    """Name kgwb with its version as the program that made the results."""
    from rocrate.model import ContextEntity

    # A SoftwareApplication must have a URL.
    properties = {"@type": "CreativeWork", "name": "kgwb", "version": __version__}
    software = ContextEntity(crate, "#kgwb", properties=properties)
    crate.add(software)
    crate.root_dataset["instrument"] = software


def _refuse_secrets(entry: _Entry, data: bytes) -> None:
    """Raise InputError if a text has what looks like a key or a password. Graphs are not looked at.

    kgwb writes none into results and runs, so it is in a note, a question or a prompt of a person.
    """
    if entry.name.startswith(f"{GRAPHS_FOLDER}/"):
        return
    for number, line in enumerate(data.decode(errors="replace").splitlines(), start=1):
        if mask_text(line) != line:
            raise InputError(
                f"nothing was packed: {entry.source or entry.name}, line {number}, has what looks like a key "
                "or a password",
                hint="remove it from that file, and pack again",
            )


# Unpacking


def _read_entities(opened: zipfile.ZipFile, archive: Path) -> dict[str, Mapping[str, Any]]:
    """Return what the metadata says of each file with a checksum, by its path.

    Raises InputError if the metadata is missing or is not that of an RO-Crate.
    """
    try:
        entities = json.loads(opened.read(METADATA_FILE))["@graph"]
        return {entity["name"]: entity for entity in entities if "sha256" in entity}
    except (KeyError, TypeError, ValueError, RecursionError) as exc:
        raise InputError(
            f"{archive} is not an archive of kgwb pack: it has no {METADATA_FILE} that can be read",
            hint="name an archive that kgwb pack has written",
        ) from exc


def _extract(
    opened: zipfile.ZipFile,
    entities: Mapping[str, Mapping[str, Any]],
    archive: Path,
    folder: Path,
) -> None:
    """Extract all files into a new folder, which is there only if every one of them is as it was packed.

    They get the times at which they were last changed before they were packed: captions tell the day
    of a measurement by them. A file without a time that can be read, as in archives of earlier
    versions, keeps the present one.
    """
    size = sum(info.file_size for info in opened.infolist())
    if size > MAX_UNPACKED_BYTES:
        raise InputError(
            f"{archive} was not unpacked: it would take {size / 1e9:.1f} GB, and at most "
            f"{MAX_UNPACKED_BYTES / 1e9:.0f} GB are allowed",
            hint="if you trust the archive, unpack it with another program: it is a zip file",
        )
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as unfinished:
        target = Path(unfinished) / "unpacked"
        for name, entity in entities.items():
            place = (target / name).resolve()
            if not place.is_relative_to(target.resolve()):
                raise InputError(
                    f"{archive} was not unpacked: its file {name} would be written outside of the folder",
                    hint="do not use this archive: kgwb pack does not write such files",
                )
            data = _read_member(opened, name, archive)
            if hashlib.sha256(data).hexdigest() != entity["sha256"]:
                raise InputError(
                    f"the archive {archive} is damaged: the file {name} is not as it was packed",
                    hint="download or copy the archive again",
                )
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
            with suppress(KeyError, TypeError, ValueError, OverflowError):
                modified = datetime.fromisoformat(entity["dateModified"]).timestamp()
                os.utime(place, (modified, modified))
        (target / METADATA_FILE).write_bytes(opened.read(METADATA_FILE))
        shutil.move(target, folder)


def _read_member(opened: zipfile.ZipFile, name: str, archive: Path) -> bytes:
    """Return the contents of a file of the archive. Raises InputError if it is missing."""
    for member in (name, quote(name)):
        if member in opened.namelist():
            return opened.read(member)
    raise InputError(
        f"the archive {archive} is not complete: the file {name} is missing",
        hint="download or copy the archive again",
    )


def _check_same(folder: Path, opened: zipfile.ZipFile, archive: Path) -> None:
    """Raise InputError unless the folder holds the unpacked copy of this archive."""
    metadata = folder / METADATA_FILE
    if not metadata.is_file() or metadata.read_bytes() != opened.read(METADATA_FILE):
        raise InputError(
            f"cannot unpack {archive}: {folder} holds something else",
            hint="rename that folder, or unpack the archive into another folder",
        )
