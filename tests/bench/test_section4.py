"""The kept replies to RAGonite's section 4 give the figures in the docs, without network."""

import gzip
import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import section4  # noqa: E402

from kgwb.cli import main  # noqa: E402

REPLIES = Path(__file__).with_name("section4_replies.py")


def text_on_page(page: Path) -> str:
    """What stands between the two marks of the page."""
    text = page.read_text(encoding="utf-8")
    return text.partition(section4.BEGIN)[2].partition(section4.END)[0].strip()


@pytest.mark.long
def test_replies_that_were_kept_replay_all_120_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KGWB_EMBEDDINGS", "lexical")
    folders = []
    for names in (("SQL and passages", "SQL only"), ("passages only", "SPARQL only")):
        folder = tmp_path / names[0]
        command = ["experiment", section4.EXPERIMENT, "--model", f"scripted:{REPLIES}"]
        for name in names:
            command += ["--configuration", name]
        assert main([*command, "--out", str(folder)]) == 0
        folders.append(folder)
    recording = tmp_path / "kept" / "replies.jsonl.gz"
    stores = [folder / section4.EXPERIMENT for folder in folders]
    count = section4.keep_replies(stores, recording, "ragonite", section4.SAID)
    entries = [json.loads(line) for line in gzip.decompress(recording.read_bytes()).splitlines()]
    assert len(entries) == count + 1
    assert {entry["call"]["request"]["model"] for entry in entries[1:]} == {section4.MODEL}
    first_bytes = recording.read_bytes()
    section4.keep_replies(stores, recording, "ragonite", section4.SAID)
    assert recording.read_bytes() == first_bytes

    measurements = section4.replay(recording, tmp_path / "again", "lexical")
    assert [len(measurement.rows) for measurement in measurements] == [30] * 4
    assert not [row["error"] for each in measurements for row in each.rows if row["error"]]
    exact = {}
    for measurement in measurements:
        exact[measurement.configuration] = sum(row["exact"] for row in measurement.rows)
    assert exact == {
        "SQL and passages": 0,
        "SQL only": 0,
        "passages only": 0,
        "SPARQL only": 30,
    }
    page = tmp_path / "page.md"
    page.write_text(f"a\n{section4.BEGIN}\nold\n{section4.END}\nb\n", encoding="utf-8")
    tables = section4.make_tables(measurements)
    section4.write_between(tables, page, section4.BEGIN, section4.END)
    assert text_on_page(page) == tables
    assert tables.count("| 100.0 ") == 4 and "old" not in page.read_text(encoding="utf-8")


@pytest.mark.long  # the vectors of all passages take a minute
def test_the_figures_in_the_docs_are_those_of_the_kept_replies(tmp_path: Path) -> None:
    if not section4.RECORDING.exists():
        assert text_on_page(section4.PAGE) == ""
        return
    measurements = section4.replay(section4.RECORDING, tmp_path)
    assert [len(measurement.rows) for measurement in measurements] == [30] * 4
    assert not [row["error"] for each in measurements for row in each.rows if row["error"]]
    assert text_on_page(section4.PAGE) == section4.make_tables(measurements)
