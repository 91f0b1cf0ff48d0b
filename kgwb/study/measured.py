"""What kgwb has measured itself of the papers' experiments: ``measured/*.jsonl.gz``, a file for each experiment.

A line is one configuration on one question set: its set-up, and the scores of each question. Answers
and gold are not in it, since the question sets are not kgwb's. The model is ``rules``, so that
everybody can measure the same again without a key.
"""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from kgwb import disk
from kgwb.bench.results import BenchRow
from kgwb.study.papers import Measurement, find_experiment

MEASURED_FOLDER = Path(__file__).with_name("measured")


class MeasuredLine(BaseModel, frozen=True, extra="forbid"):
    """A line of a file: one configuration on one question set."""

    set: str
    configuration: str
    model: str
    day: str
    is_stand_in: bool
    """Whether the questions are not those of the paper."""
    config: dict[str, Any]
    """The configuration of the results folder, without the place of the graph."""
    ids: tuple[str, ...]
    errors: tuple[str, ...]
    """The ids of the questions that ended in an error."""
    scores: dict[str, tuple[float, ...]]
    """For each measure of the experiment, a value for each id."""


def save_measured(
    name: str, measurements: Sequence[Measurement], folder: Path = MEASURED_FOLDER
) -> Path:
    """Write what was measured of an experiment to its file, the same bytes each time; return the path.

    Raises InputError for an unknown experiment or a file that cannot be written.
    """
    _, experiment = find_experiment(name)
    lines = []
    for measurement in measurements:
        rows = measurement.rows
        scores = {}
        for measure in experiment.measures:
            scores[measure] = tuple(float(row.get(measure, 0)) for row in rows)
        config = {key: value for key, value in measurement.config.items() if key != "source"}
        line = MeasuredLine(
            set=measurement.set_name,
            configuration=measurement.configuration,
            model=measurement.model,
            day=measurement.day,
            is_stand_in=measurement.stand_in is not None,
            config=config,
            ids=tuple(row["id"] for row in rows),
            errors=tuple(row["id"] for row in rows if row["error"] is not None),
            scores=scores,
        )
        lines.append(line.model_dump_json() + "\n")
    path = folder / f"{name}.jsonl.gz"
    with disk.os_errors_as_input_error(f"cannot write {path}", "name another folder"):
        path.write_bytes(gzip.compress("".join(lines).encode(), mtime=0))
    return path


def load_measured(name: str, folder: Path = MEASURED_FOLDER) -> list[Measurement]:
    """Return what kgwb has measured of an experiment; empty if it has not measured it.

    The rows have the id, the error and the measures of the experiment alone. Raises InputError for
    an unknown experiment.
    """
    paper, _ = find_experiment(name)
    path = folder / f"{name}.jsonl.gz"
    if not path.is_file():
        return []
    measurements = []
    for _, entry in disk.read_json_lines(path):
        line = MeasuredLine.model_validate(entry)
        stand_in = paper.sets[line.set].stand_in if line.is_stand_in else None
        measurement = Measurement(
            line.set,
            line.configuration,
            line.model,
            _rows_of(line),
            stand_in,
            config=line.config,
            day=line.day,
        )
        measurements.append(measurement)
    return measurements


def _rows_of(line: MeasuredLine) -> list[BenchRow]:
    """Return the rows of the questions of a line."""
    rows = []
    for position, id_ in enumerate(line.ids):
        row: BenchRow = {"id": id_, "error": "an error" if id_ in line.errors else None}
        for measure, values in line.scores.items():
            row[measure] = values[position]
        rows.append(row)
    return rows
