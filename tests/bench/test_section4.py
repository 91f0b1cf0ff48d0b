"""The kept replies to RAGonite's section 4 give the figures in the docs, without network."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import section4  # noqa: E402


def text_on_page(page: Path) -> str:
    """What stands between the two marks of the page."""
    text = page.read_text(encoding="utf-8")
    return text.partition(section4.BEGIN)[2].partition(section4.END)[0].strip()


@pytest.mark.long  # the vectors of all passages take a minute
def test_the_figures_in_the_docs_are_those_of_the_kept_replies(tmp_path: Path) -> None:
    if not section4.RECORDING.exists():
        assert text_on_page(section4.PAGE) == ""
        return
    measurements = section4.replay(section4.RECORDING, tmp_path)
    assert [len(measurement.rows) for measurement in measurements] == [30] * 4
    assert not [row["error"] for each in measurements for row in each.rows if row["error"]]
    assert text_on_page(section4.PAGE) == section4.make_tables(measurements)
