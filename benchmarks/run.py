"""Every speed benchmark: ``make bench``. Figures are set against something timed in the same run."""

from __future__ import annotations

import graphs
import pipeline

if graphs.metaqa().exists():
    graphs.main()
else:
    print("MetaQA is not here (KGWB_DATA names its folder): the figures for a large graph are left out.")
print()
pipeline.main()
