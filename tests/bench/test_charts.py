"""Figures for a paper: what they hold, that they are valid files, and that print keeps them apart."""

from __future__ import annotations

import importlib.util
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pypdf
import pytest
from commands import bench
from engines import leave_out

from kgwb.bench import Report
from kgwb.bench.comparisons import ResultsComparison
from kgwb.bench.figures import LoadedResults
from kgwb.bench.judgements import add_coding, draw_sample
from kgwb.bench.metrics import Estimate
from kgwb.bench.papers import (
    FILLS,
    WIDTH_INCHES,
    Chart,
    Panel,
    find_experiment,
    load_measured,
    make_chart,
    make_experiment_chart,
    make_table,
    write_chart,
)
from kgwb.cli import main
from kgwb.errors import InputError

Capture = pytest.CaptureFixture[str]
ONE = Estimate(1, 1, 1)
NAMES = ("_under $a_b$ <i>", "Привет & co")
SERIES = {
    "_first": [Estimate(0.5, 0.3, 0.7), None],
    "second": [ONE, Estimate(0.25, 0.1, 0.4)],
}
CHART = Chart("a title", "100 % of A_B & $x$ <b>", [Panel("share", NAMES, SERIES)])


@pytest.fixture
def drawn() -> None:
    """Leave out the tests that draw, where matplotlib or pandas is not installed."""
    if not all(map(importlib.util.find_spec, ("matplotlib", "pandas"))):
        leave_out("no matplotlib or pandas: pip install 'kgwb[figures]'")


def svg_texts(path: Path) -> list[str]:
    root = ElementTree.parse(path).getroot()
    return [element.text or "" for element in root.iter("{http://www.w3.org/2000/svg}text")]


# --- what the figures hold


def test_quality_has_a_bar_for_each_folder_and_measure_with_its_interval(
    measured: list[Path],
) -> None:
    results = Report(*measured).results
    chart = make_chart("quality", results, measures=["f1", "recall"])
    [panel] = chart.panels
    assert list(panel.categories) == ["good_one", "bad"]
    assert list(panel.series) == ["F1", "recall"]
    assert panel.series["F1"] == [one.groups["all"].estimate("f1") for one in results]
    assert chart.caption == make_table("quality", results, measures=["f1", "recall"]).caption


def test_a_change_has_its_fixed_and_broken_questions_as_table_and_figure(
    measured: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    compared = []

    def compare(before: LoadedResults, after: LoadedResults) -> ResultsComparison:
        compared.append(after)
        return ResultsComparison(before, after)

    right, wrong = Report(*measured).results
    # All answers of the second one are lost
    results = [right, wrong.with_rows([{**row, "f1": 0.0} for row in wrong.rows.values()])]
    table = make_table("changes", results)
    assert list(table.headers[1:3]) == ["fixed", "broken"]
    [counts] = [row for row in table.rows if row[0] == "all questions"]
    assert list(counts[1:3]) == [0, 12]
    monkeypatch.setattr("kgwb.bench.papers.ResultsComparison", compare)
    chart = make_chart("changes", results)
    assert len(compared) == 1  # the runs are replayed once
    [panel] = chart.panels
    fixed, broken = panel.series.values()
    assert panel.is_opposed
    assert sum(bar.value for bar in broken if bar) == 12
    assert not any(bar.value for bar in fixed if bar)
    assert "set-up" in chart.caption and "F1" in chart.caption
    for name in (make_table, make_chart):
        with pytest.raises(InputError):
            name("changes", results[:1])


def test_an_error_analysis_has_a_share_for_each_coder(measured: list[Path]) -> None:
    results = LoadedResults.read(measured[1])
    results = results.with_rows([{**row, "f1": 0.0} for row in results.rows.values()])
    sample = draw_sample(results, 4, categories=["wording", "rows"])
    for coder, category in (("ann", "wording"), ("bob", "rows")):
        for id_ in sample.ids[:2]:
            add_coding(results, sample, coder, id_, category)
    [panel] = make_chart("errors", [results]).panels
    assert list(panel.categories) == ["wording", "rows"]
    shares = {name: [bar and bar.value for bar in bars] for name, bars in panel.series.items()}
    assert shares == {"ann": [1.0, 0.0], "bob": [0.0, 1.0]}


def test_lost_answers_are_counted_for_each_agent(measured: list[Path]) -> None:
    with pytest.raises(InputError):
        make_chart("losses", Report(*measured).results)  # no ladder yet
    assert bench("--ladder", out="lost", questions="wrong.jsonl") == 0
    results = LoadedResults.read(Path("lost"))
    [panel] = make_chart("losses", [results]).panels
    counted = sum(bar.value for bar in panel.series["lost"] if bar)
    assert counted == len(results.losses_by_id) > 0
    none_lost = replace(results, losses_by_id={})
    [panel] = make_chart("losses", [results, none_lost]).panels
    counts = {name: sum(bar.value for bar in bars if bar) for name, bars in panel.series.items()}
    assert counts == {"lost (1)": counted, "lost (2)": 0}


def test_an_experiment_has_the_published_figures_and_ours() -> None:
    paper, experiment = find_experiment("dog.table1_metaqa")
    measurements = load_measured("dog.table1_metaqa")
    [panel] = make_experiment_chart(paper, experiment, measurements).panels
    published, ours = panel.series.values()
    assert [bar and bar.value for bar in published] == [98.6, 96.6, 90.9]
    for bar, measurement in zip(ours, measurements, strict=True):
        estimate = measurement.estimate("hit_any")
        assert estimate is not None and bar is not None
        assert bar.value == pytest.approx(100 * estimate.value)
    paper, experiment = find_experiment("dog.figure3")  # drawn without numbers in the paper
    chart = make_experiment_chart(paper, experiment, load_measured("dog.figure3"))
    assert list(chart.panels[0].series) == ["here"]


def test_measures_of_different_units_have_panels_of_their_own() -> None:
    paper, experiment = find_experiment("chatty_kg.cost")
    chart = make_experiment_chart(paper, experiment, ())
    assert [panel.axis for panel in chart.panels] == [
        "model calls",
        "prompt tokens",
        "completion tokens",
    ]


# --- the files


@pytest.mark.usefixtures("drawn")
def test_an_svg_is_valid_and_has_its_texts_and_its_caption(tmp_path: Path) -> None:
    path = tmp_path / "figure.svg"
    assert write_chart(CHART, path, "svg") == [path]
    texts = svg_texts(path)
    for name in (*NAMES, "second", "share"):
        assert name in texts
    assert any(text.endswith("_first") for text in texts)
    root = ElementTree.parse(path).getroot()
    assert CHART.caption in list(root.itertext())
    assert CHART.title in list(root.itertext())
    source = path.read_text(encoding="utf-8")
    write_chart(CHART, path, "svg")
    assert path.read_text(encoding="utf-8") == source
    # Text is at least seven points in the narrowest column
    width_points = float(root.attrib["width"].removesuffix("pt"))
    sizes = [float(size) for size in re.findall(r"font(?:-size)?: (?:\w+ )*([\d.]+)px", source)]
    assert len(sizes) >= len(texts)
    assert min(sizes) * 3.03 * 72 / width_points >= 7


@pytest.mark.usefixtures("drawn")
def test_a_pdf_opens_with_its_caption_and_embedded_fonts(tmp_path: Path) -> None:
    path = tmp_path / "figure.pdf"
    write_chart(CHART, path, "pdf")
    reader = pypdf.PdfReader(path)
    [page] = reader.pages
    assert reader.metadata is not None
    assert reader.metadata.title == CHART.title
    assert reader.metadata.subject == CHART.caption
    assert float(page.mediabox.width) == pytest.approx(72 * WIDTH_INCHES, abs=1)
    text = page.extract_text()
    for name in (*NAMES, "second"):
        assert name in text
    for font in page["/Resources"]["/Font"].values():  # type: ignore[index]
        descriptor = font.get_object()
        if "/DescendantFonts" in descriptor:
            descriptor = descriptor["/DescendantFonts"][0].get_object()
        assert "/FontFile2" in descriptor["/FontDescriptor"]


@pytest.mark.usefixtures("drawn")
def test_what_cannot_be_drawn_or_included_is_refused(tmp_path: Path) -> None:
    many = {f"{number}": [ONE] for number in range(len(FILLS) + 1)}
    unknown_letters = Panel("share", ["中文"], {"a": [ONE]})
    for panel in (Panel("share", ["x"], many), unknown_letters):
        with pytest.raises(InputError):
            write_chart(Chart("t", "c", [panel]), tmp_path / "f.svg", "svg")
    for name in ("my figure.tex", "50%.tex", "figure.pdf"):
        with pytest.raises(InputError):
            write_chart(CHART, tmp_path / name, "latex")
    with pytest.raises(InputError):
        write_chart(CHART, tmp_path / "f.png", "png")
    assert not list(tmp_path.iterdir())


# --- the commands


@pytest.mark.usefixtures("drawn")
def test_the_report_writes_a_figure_and_prints_its_caption(
    measured: list[Path], capsys: Capture
) -> None:
    command = ["report", *map(str, measured), "--figure", "quality", "--measures", "f1"]
    for wrong in ([], ["--to", "svg"], ["--to", "markdown", "--out", "f.md"]):
        assert main([*command, *wrong]) == 2
    assert main(["report", "bad", "--figure", "prizes", "--to", "svg", "--out", "f.svg"]) == 2
    capsys.readouterr()
    assert main([*command, "--to", "svg", "--out", "f.svg"]) == 0
    caption, path = capsys.readouterr().out.splitlines()
    assert path == "f.svg"
    assert "12 questions on films" in caption and "set-up" in caption
    assert "good_one" in svg_texts(Path("f.svg"))
    assert main([*command, "--to", "latex", "--out", "f.tex"]) == 0
    assert r"\includegraphics[width=\columnwidth]{f.pdf}" in Path("f.tex").read_text()
    assert Path("f.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.usefixtures("drawn")
def test_an_experiment_writes_its_table_and_its_figure(here: Path, capsys: Capture) -> None:
    questions = Path("data", "1-hop", "vanilla", "qa_test.txt")
    questions.parent.mkdir(parents=True)
    questions.write_text("who directed [Arrival]\tDenis Villeneuve\n")
    command = ["experiment", "dog.table1_metaqa", "--model", "rules", "--data", "data"]
    command += ["--sets", "metaqa-1", "--graph", "metaqa=films"]
    for wrong in ("--figure", "--figure --to csv", "--to svg", "--slice hops=2"):
        assert main([*command, *wrong.split()]) == 2
    assert not Path("experiments").exists()
    command += ["--slice", "hops=1"]
    folder = Path("experiments/dog.table1_metaqa")
    capsys.readouterr()
    assert main([*command, "--to", "latex"]) == 0
    table = (folder / "table.tex").read_text(encoding="utf-8")
    assert table in capsys.readouterr().out
    for part in ("98.6", "model rules", "set-up", "1 question of the paper's 500"):
        assert part in table
    assert main([*command, "--figure", "--to", "svg"]) == 0
    assert "MetaQA, 1 hop" in svg_texts(folder / "figure.svg")
    assert main([*command, "--figure", "--to", "latex"]) == 0
    assert "{figure.pdf}" in (folder / "figure.tex").read_text(encoding="utf-8")
    assert (folder / "figure.pdf").is_file()
