"""Tables for a paper: what they say, and that no name in them becomes markup."""

from __future__ import annotations

import csv
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from engines import leave_out

from kgwb.bench import Report
from kgwb.bench.figures import LoadedResults
from kgwb.bench.judgements import add_coding, draw_sample
from kgwb.bench.papers import (
    find_experiment,
    load_measured,
    make_error_table,
    make_experiment_chart,
    make_table,
    write_chart,
)
from kgwb.bench.statistics import holm_adjusted
from kgwb.cli import main
from kgwb.errors import InputError
from kgwb.show.tables import Best, Table, check_table_format, escape_latex

Capture = pytest.CaptureFixture[str]
TABLE = Table(("system", "F1"), (("a_b|c", Best("0.5")), ("d", "–")), "100 % of A_B & C|D")


def test_holm_is_the_step_down_method() -> None:
    assert holm_adjusted([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm_adjusted([0.9, 0.8]) == [1.0, 1.0]
    assert holm_adjusted([]) == []


def test_latex_has_the_rules_of_booktabs_and_no_name_is_a_command() -> None:
    text = TABLE.to_format("latex")
    assert text.count(r"\toprule") == text.count(r"\midrule") == text.count(r"\bottomrule") == 1
    assert r"\caption{100 \% of A\_B \& C|D}" in text
    assert r"a\_b|c & \textbf{0.5} \\" in text
    assert "d & -- \\\\" in text
    assert escape_latex("\\input{x}^~#$") == (
        r"\textbackslash{}input\{x\}\textasciicircum{}\textasciitilde{}\#\$"
    )


def test_markdown_and_csv(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)  # which LaTeX alone needs
    with pytest.raises(InputError, match="pandas"):
        check_table_format("latex")
    lines = TABLE.to_format("markdown").splitlines()
    assert lines[:3] == ["| system | F1 |", "| --- | ---: |", r"| a\_b\|c | **0.5** |"]
    assert list(csv.reader(TABLE.to_format("csv").splitlines()))[1] == ["a_b|c", "0.5"]
    with pytest.raises(InputError):
        TABLE.to_format("word")


def test_the_best_is_bold_and_what_differs_from_the_baseline_is_marked(
    measured: list[Path],
) -> None:
    results = Report(*measured).results
    table = make_table("quality", results, measures=["f1"], baseline="good_one")
    (name, good), (_, bad) = table.rows
    assert name == "good_one" and isinstance(good, Best) and not isinstance(bad, Best)
    assert "†" not in str(good)
    assert str(bad).endswith("†")
    assert "set-up" in table.caption
    assert "12 questions on films" in table.caption
    assert "†" not in str(make_table("quality", results, measures=["f1"]).rows)
    alike = [results[0], replace(results[1], name="good_one")]
    assert make_table("quality", alike, measures=["f1"], baseline="good_one").rows[1][1] == bad


def test_results_of_different_questions_have_no_best_and_no_baseline(
    measured: list[Path],
) -> None:
    first, second = Report(*measured).results
    fewer = second.with_rows(list(second.rows.values())[:5])
    table = make_table("quality", [first, fewer], measures=["f1"])
    assert not any(isinstance(cell, Best) for row in table.rows for cell in row)
    assert len(table.caption) > len(make_table("quality", [first, second]).caption)
    with pytest.raises(InputError):
        make_table("quality", [first, fewer], measures=["f1"], baseline="good_one")


def test_other_tables_and_wrong_names(measured: list[Path]) -> None:
    results = Report(*measured).results
    assert make_table("cost", results).rows
    wrong: tuple[tuple[str, dict[str, Any]], ...] = (
        ("quality", {"measures": ["f9"]}),
        ("quality", {"baseline": "nobody"}),
        ("prizes", {}),
    )
    for name, options in wrong:
        with pytest.raises(InputError):
            make_table(name, results, **options)


def test_the_command_prints_the_table_or_writes_it(measured: list[Path], capsys: Capture) -> None:
    capsys.readouterr()
    command = ["report", *map(str, measured), "--to", "csv", "--measures", "f1,hits1"]
    assert main(command) == 0
    printed = capsys.readouterr().out
    assert printed.splitlines()[0] == "system,F1,P@1"
    assert main([*command, "--out", "t.csv"]) == 0
    assert Path("t.csv").read_text(encoding="utf-8") == printed
    assert main([*command[:-4], "--to", "word"]) == 2


@pytest.mark.long
def test_latex_compiles(measured: list[Path]) -> None:
    if not shutil.which("pdflatex"):
        leave_out("no pdflatex: install the Debian package texlive-latex-recommended")
    tables = [TABLE]
    results = LoadedResults.read(measured[1])
    results = results.with_rows([{**row, "f1": 0.0} for row in results.rows.values()])
    sample = draw_sample(results, 3, categories=["90 % & more_"])
    add_coding(results, sample, "ann", sample.ids[0], "90 % & more_")
    tables.append(make_error_table(results))
    for name in ("quality", "cost"):
        tables.append(make_table(name, Report(*measured).results))
    body = "\n".join(table.to_latex() for table in tables)
    for number, name in enumerate(("dog.table1_metaqa", "dog.table2_metaqa")):
        paper, experiment = find_experiment(name)
        chart = make_experiment_chart(paper, experiment, load_measured(name))
        write_chart(chart, Path(f"figure_{number}.tex"), "latex")
        body += f"\n\\input{{figure_{number}}}"
    packages = r"\usepackage{booktabs}\usepackage{graphicx}\usepackage[utf8]{inputenc}"
    preamble = rf"\documentclass{{article}}{packages}"
    Path("t.tex").write_text(
        f"{preamble}\n\\begin{{document}}\n{body}\n\\end{{document}}\n", encoding="utf-8"
    )
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "t.tex"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout
