"""The experiments on MetaQA as kgwb measures them with rules: kgwb/bench/measured/.

    python tests/measured.py FOLDER    measure, or continue in FOLDER, and write the files anew

It takes some ten minutes. The data is in the folder that KGWB_DATA names, else in shared/data beside the project.
"""

from __future__ import annotations

import sys
from pathlib import Path

from engines import metaqa

from kgwb.bench.papers import find_experiment, save_measured
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


if __name__ == "__main__":
    main(Path(sys.argv[1]))
