"""A report as a browser shows it: alone, light and dark, filtered and sorted."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

import kgwb
from kgwb.bench import Benchmark, BenchSetup, Report, Results, load_questions
from kgwb.kg import sample_path

GROUND = "getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0]"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    questions = load_questions(sample_path("films").with_suffix(".questions.jsonl"))[:12]
    setup = BenchSetup.from_workbench(kgwb.Workbench(kgwb.open_kg("films")))
    results = Results(folder / "films", setup.to_config(questions))
    Benchmark(setup, results, save_runs=True).run(questions)
    return Report(folder / "films").save(folder / "report.html")


def test_a_report_opens_alone(chromium: Browser, report: Path) -> None:
    page = chromium.new_page(color_scheme="light")
    asked, wrong = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: wrong.append(message.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.goto(report.as_uri())
    rows = page.locator("#questions tbody tr")
    bright = int(page.evaluate(GROUND))
    page.emulate_media(color_scheme="dark")
    assert int(page.evaluate(GROUND)) < 128 < bright
    expect(page.get_by_text("12 shown")).to_be_visible()

    page.get_by_label("Words").fill("DIRECTED")
    expect(page.get_by_text("12 shown")).to_have_count(0)
    found = [one for one in rows.all() if one.is_visible()]
    assert 0 < len(found) < 12
    assert all("directed" in one.inner_text().lower() for one in found)
    page.get_by_label("Words").fill("")
    page.get_by_label("Which questions").select_option("lost")
    lost = [row for row in read(report) if row["f1"] < 1]
    expect(rows.filter(visible=True)).to_have_count(len(lost))
    page.get_by_label("Which questions").select_option("all")

    for order in (False, True):
        page.get_by_role("button", name="question", exact=True).click()
        shown = rows.locator("td:nth-child(4)").all_inner_texts()
        assert shown == sorted(shown, key=str.casefold, reverse=order)
    rows.locator("a", has_text="run").first.click()
    page.get_by_text("in a notebook beside this page").wait_for()
    assert [url for url in asked if not url.startswith("file:")] == []
    assert wrong == []
    page.close()


def read(report: Path) -> list[dict[str, float]]:
    lines = (report.parent / "films" / "results.jsonl").read_text().splitlines()
    return list(map(json.loads, lines))


def test_all_columns_of_two_folders_fit_a_window_of_1400_pixels(
    chromium: Browser, report: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    shutil.copytree(report.parent / "films", other)
    both = Report(report.parent / "films", other).save(tmp_path / "both.html")
    page = chromium.new_page(viewport={"width": 1400, "height": 900})
    page.goto(both.as_uri())
    table = page.locator("#questions")
    widths = table.evaluate("table => [table.scrollWidth, table.parentElement.clientWidth]")
    assert widths[0] <= widths[1] <= 1400
    page.close()
