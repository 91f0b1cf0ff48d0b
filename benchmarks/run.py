"""Every speed benchmark in one table: ``make bench``. Figures are ratios against something timed in the same run."""

from __future__ import annotations

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent


def data_folder() -> Path | None:
    """The folder with MetaQA: KGWB_DATA, or ../shared/data beside the checkout; None if it is not there."""
    for folder in (os.environ.get("KGWB_DATA"), HERE.parent.parent / "shared" / "data"):
        if folder and Path(folder).is_dir():
            return Path(folder)
    return None


def main() -> None:
    sys.path.insert(0, str(HERE))
    import graphs
    import pipeline

    data = data_folder()
    if data is None:
        print(
            "MetaQA is not here: the small samples stand in, and the figures for large graphs are left out."
        )
    print("graphs")
    graphs.main()
    print("\npipeline")
    pipeline.show([*pipeline.pipeline(data), *pipeline.importing()])


if __name__ == "__main__":
    main()
