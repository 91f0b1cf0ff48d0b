"""The experiments on MetaQA as kgwb measures them with rules: kgwb/bench/measured/.

    python tests/measured.py FOLDER    measure, or continue in FOLDER, and write the files anew

It takes some ten minutes. The data is in the folder that KGWB_DATA names, else in shared/data beside the project.
"""

from __future__ import annotations

import gzip
import sys
from collections.abc import Sequence
from pathlib import Path

from engines import metaqa

from kgwb.bench.papers import MEASURED_FOLDER, MeasuredLine, Measurement, find_experiment
from kgwb.cli.experiment import ExperimentCommand

NAMES = (
    "dog.table1_metaqa",
    "dog.table2_metaqa",
    "dog.figure3",
    "dog.figure4_filtering",
    "dog.figure4_simplifying",
)


def main(folder: Path) -> None:
    """Measure each experiment in FOLDER, and write its file."""
    for name in NAMES:
        command = ExperimentCommand(name=name, model="rules", data=metaqa().parent, out=folder)
        paper, experiment = find_experiment(name)
        path = save_measured(name, command.measure(paper, experiment))
        sys.stdout.write(f"{path}: {path.stat().st_size:,} bytes\n")


def save_measured(
    name: str, measurements: Sequence[Measurement], folder: Path = MEASURED_FOLDER
) -> Path:
    """Write what was measured of an experiment to its file, the same bytes each time; return the path.

    Raises InputError for an unknown experiment.
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
    path.write_bytes(gzip.compress("".join(lines).encode(), mtime=0))
    return path


if __name__ == "__main__":
    main(Path(sys.argv[1]))
