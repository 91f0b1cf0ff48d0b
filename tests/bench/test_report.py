"""A report: every figure where it belongs, and nothing in it but text and figures."""

import json
import os
import re
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from commands import write_lines
from hostile.corpus import IRIS, texts
from page import Page as Shown
from small import DIRECTED, HOMONYMS, workbench

import kgwb
from kgwb.bench import Report, load_prices
from kgwb.bench.comparisons import UNKNOWN_AGENT
from kgwb.bench.report import render_run_page
from kgwb.cli import main
from kgwb.cli.bench import print_metrics
from kgwb.errors import InputError
from kgwb.llm import Scripted
from kgwb.llm.rules import BASELINE_REMARK
from kgwb.text import format_seconds

CONFIG = {
    "kgwb": "0.1.0",
    "kg": "sha256:1",
    "source": "my films",
    "system": "chatty_kg",
    "models": {"": "openai:gpt-4o", "qir": "rules"},
    "embeddings": "lexical",
    "prompts": {"chatty_kg/qir": "4dee1e80"},
    "settings": kgwb.profile("paper", theta=5).to_data(),
    "questions": {"count": 4, "fingerprint": "d04a"},
    "versions": {"python": "3.11.7"},
}


def row(id_: str, answers: list[str], gold: list[str] | None, **more: Any) -> dict[str, Any]:
    f1 = float(set(answers) == set(gold or ())) if gold is not None else None
    given = {"question": f"What is {id_}?", "answers": answers, "gold": gold, "seconds": 1.0}
    tokens = {"prompt_tokens": 1000, "completion_tokens": 10}
    used = {"model_calls": 2, "queries": 3, "error": None, **tokens}
    return {"id": id_, **given, **used, **({} if f1 is None else {"f1": f1}), **more}


def folder(
    path: Path, *rows: dict[str, Any], ladder: tuple[dict[str, Any], ...] = (), **config: Any
) -> Path:
    path.mkdir(parents=True)
    (path / "config.json").write_text(json.dumps(CONFIG | config))
    write_lines(path / "results.jsonl", rows)
    write_lines(path / "ladder.jsonl", ladder)
    return path


def lost(id_: str, agent: str | None, stage: str | None = None, **more: Any) -> dict[str, Any]:
    blamed = {"agent": agent, "stage": stage, "why": ""}
    return {"id": id_, "hops": 1, "f1": 0.0, "error": None, **blamed, **more}


ROWS = (
    row("a", ["1"], ["1"], hops=1, type="count", seconds=1.0, stages={"linking": 0.1}),
    row("b", ["2"], ["1"], hops=1, type="count", seconds=2.0, stages={"linking": 0.2}),
    row("c", [], ["http://e/x"], hops=2, type="list", seconds=3.0, stages={"linking": 0.3}),
    row("d", ["http://e/x"], ["http://e/x"], hops=2, type="list", seconds=10.0),
    row("e", ["9"], None),
)
LADDER = (lost("b", "qir", "understanding"), lost("c", None, why="the graph does not give it"))


class Page(Shown):
    """The tables, links and elements of a page."""

    def __init__(self, html: str) -> None:
        super().__init__(html)
        pairs = [(one.tag, *pair) for one in self.elements for pair in one.attributes.items()]
        loads = "src srcset action formaction data xlink:href".split()
        self.odd = [pair for pair in pairs if pair[1].startswith("on") or pair[1] in loads]
        self.links = [value for _, name, value in pairs if name == "href"]
        self.tags = [one.tag for one in self.elements]
        self.rows: list[list[str]] = []
        for one in self.elements:
            if one.tag == "tr":
                self.rows.append([])
            elif one.tag in ("td", "th"):
                self.rows[-1].append(one.text)

    def lines(self, first: str) -> list[list[str]]:
        return [line[1:] for line in self.rows if line and line[0] == first]


def page(tmp_path: Path, *folders: Path, **how: Any) -> Page:
    return Page(Report(*folders, **how).save(tmp_path / "report.html").read_text())


# --- the figures


def test_quality_cost_and_losses(tmp_path: Path) -> None:
    made = page(tmp_path, folder(tmp_path / "one", *ROWS, ladder=LADDER))
    heads = "questions F1 paper F1 precision recall lenient F1 P@1 MRR Hit@5 exact paper P any hit name in reply errors"
    assert f"{heads} without gold" in [" ".join(line[1:]) for line in made.rows]
    everything = made.lines("all")[0]
    assert everything[0] == "5"
    assert everything[1].startswith("0.500 [")
    assert everything[2].startswith("0.600 [")  # what is withheld counts 1
    assert everything[3:] == ["0.500", "0.750", "0", "1"]  # equal columns are folded
    assert made.lines("hops 1")[0][:2] == ["2", "0.500 [0.000, 1.000]"]
    assert made.lines("a question") == [["total", "median", "95th percentile"]]
    assert made.lines("seconds") == [["17", "2", "8.6"]]
    assert made.lines("seconds, linking") == [["0.6", "0.2", "0.29"]]
    assert made.lines("prompt tokens") == [["5,000", "1,000", "1,000"]]
    assert made.lines("lost at") == [["stage", "answers", "hops 1"]]
    assert made.lines("qir") == [["understanding", "1", "1"]]
    assert made.lines("the graph does not give it") == [["–", "1", "1"]]
    assert made.lines("all")[2:] == [["understanding", "1", "1"], ["–", "1", "1"], ["", "2", "2"]]
    assert "median" in made.text and "95 % within 8.6 s" in made.text
    assert "0.500 (4 questions)" in made.text  # a bar counts those with gold alone


def test_a_row_of_the_ladder_counts_only_for_its_own_result(tmp_path: Path) -> None:
    stale = (lost("b", "qir", "understanding", f1=0.5), lost("gone", "qir", "understanding"))
    made = page(tmp_path, folder(tmp_path / "one", *ROWS, ladder=stale))
    assert made.lines("qir") == []
    assert "kgwb bench --ladder" in made.text


def test_what_was_measured_can_be_repeated(tmp_path: Path) -> None:
    other = folder(tmp_path / "two", *ROWS, embeddings="other")
    made = page(tmp_path, folder(tmp_path / "one", *ROWS), other)
    command = "kgwb bench --kg 'my films' --system chatty_kg --model openai:gpt-4o --agent-model qir=rules"
    assert f"{command} --profile paper --set theta=5 --questions FILE --out DIR" in made.text
    assert made.lines("embeddings") == [["lexical", "other"]]
    assert made.tags.count("mark") == 2
    assert made.lines("settings theta") == [["5", "5"]]
    assert made.lines("prompts chatty_kg/qir") == [["4dee1e80", "4dee1e80"]]
    assert made.lines("versions python") == [["3.11.7", "3.11.7"]]
    assert BASELINE_REMARK in made.text


@pytest.mark.parametrize(("asked", "is_said"), [("rules", True), ("openai:gpt-4o", False)])
def test_rules_is_a_baseline_only_where_it_was_asked(
    tmp_path: Path, asked: str, is_said: bool
) -> None:
    counts = {"calls": 1, "prompt_tokens": 0, "completion_tokens": 0}
    measured = row("a", ["1"], ["1"], models={asked: counts})
    unasked = row("b", [], ["1"], models={})
    made = page(tmp_path, folder(tmp_path / "one", measured, unasked, models="rules"))
    assert (BASELINE_REMARK in made.text) == is_said


def test_money_is_shown_or_the_reason_that_it_is_not(tmp_path: Path) -> None:
    tokens = {"prompt_tokens": 2_000_000, "completion_tokens": 1_000_000}
    used = {"openai:gpt-4o": {"calls": 1, **tokens}}
    measured = folder(tmp_path / "one", row("a", ["1"], ["1"], models=used))
    table = tmp_path / "prices.toml"
    entry = 'currency = "EUR"\n[[price]]\nmodel = "openai:*"\ninput = 2\noutput = 10\n'
    table.write_text(entry)
    assert page(tmp_path, measured, prices=load_prices(table)).lines("EUR") == [["14", "14", "14"]]
    made = page(tmp_path, measured, prices=load_prices())
    assert "'openai:gpt-4o'" in made.text
    assert made.lines("model calls") == [["2", "2", "2"]]


def test_published_figures_are_shown_only_if_the_set_is_named(tmp_path: Path) -> None:
    measured = folder(tmp_path / "one", *ROWS)
    assert "published" not in page(tmp_path, measured).text
    made = page(tmp_path, measured, published="qald-9")
    lines = [line[:3] for line in made.lines("all")]
    assert ["paper F1", "49.69", "Chatty-KG, GPT-4o"] in lines
    assert ["paper F1", "60.00", "one"] in lines
    assert "published set 150" in made.text
    lines = [line[:3] for line in page(tmp_path, measured, published="metaqa").lines("hops 1")]
    assert ["any hit", "98.60", "DoG, GPT-3.5"] in lines and ["any hit", "50.00", "one"] in lines


def test_two_result_sets_are_compared(tmp_path: Path) -> None:
    better = (
        ROWS[0] | {"answers": ["7"], "f1": 0.0},
        ROWS[1] | {"answers": ["1"], "f1": 1.0},
        *ROWS[2:],
    )
    first, second = folder(tmp_path / "one", *ROWS), folder(tmp_path / "two", *better[:4])
    made = page(tmp_path, first, second)
    change = "+0.000 [-0.500, +0.500]"  # of four questions one is better, and one as much worse
    assert made.lines("two")[0][:5] == ["F1", "4", *["0.500 [0.000, 1.000]"] * 2, change]
    assert [line[0] for line in made.lines("two")[1:]] == ["paper F1"]
    assert made.lines(UNKNOWN_AGENT) == [["1", "1", "1", "1"]]
    assert made.lines("What is b?") == [["wrong 2", "right 1", "1", "–", "–"]]
    assert made.lines("e")[0][-4:] == ["not asked", "", "", ""]
    attributes = [one.attributes for one in made.elements]
    classes = [each.get("class") for each in attributes if "question-" in each.get("id", "")]
    assert classes == ["lost differs", "lost differs", "lost", "", ""]
    corrected = folder(tmp_path / "corrected", ROWS[0] | {"gold": ["5"], "f1": 0.0})
    assert "cannot be compared" not in page(tmp_path, first, corrected).text
    other = folder(tmp_path / "other", ROWS[0] | {"question": "Another?", "gold": ["5"]})
    assert "cannot be compared" in page(tmp_path, first, other).text


def test_of_many_changed_questions_the_first_are_shown(tmp_path: Path) -> None:
    more = row("failed", [], ["5"], error="no server")
    before = answered(tmp_path / "one", range(65), 65, more)
    after = answered(tmp_path / "two", range(0), 65, more)
    made = page(tmp_path, before, after)
    assert "and 5 more" in made.text
    assert made.lines("What is q59?") and not made.lines("What is q60?")
    assert 'class="note bad">1 question left out' in (tmp_path / "report.html").read_text()


def answered(path: Path, right: range, count: int, *more: dict[str, Any]) -> Path:
    """A folder with so many questions, of which those in a range are right, and with further rows."""
    rows = [row(f"q{n}", ["5"] if n in right else ["7"], ["5"]) for n in range(count)]
    return folder(path, *rows, *more)


@pytest.mark.parametrize(
    ("right", "figures"),
    [
        # 10 better and 5 worse of 50: p = 0.3 and d = 0.1, so by hand
        # (1.96 sqrt(0.3) + 0.8416 sqrt(0.29)) ** 2 / 0.01 = 233.1; 184 more.
        (range(5, 25), ["190", "8", "10", "1987", "50", "0.212"]),
        (range(4, 16), ["5", "50", "8"]),
        (range(15, 16), []),
        (range(15), []),
    ],
    ids=["undecided", "too few differ", "decided", "none differs"],
)
def test_an_undecided_comparison_says_how_many_questions_it_takes(
    tmp_path: Path, right: range, figures: list[str]
) -> None:
    folders = answered(tmp_path / "one", range(15), 50), answered(tmp_path / "two", right, 50)
    [comparison] = Report(*folders).comparisons
    needed = comparison.needed_questions
    assert re.findall(r"\d+(?:\.\d+)?", needed) == figures
    assert (f"  {needed}" in comparison.summary_lines()) == bool(figures)
    assert needed in page(tmp_path, *folders).text


def test_folders_of_one_name_are_told_apart_by_the_folder_around_them(tmp_path: Path) -> None:
    folders = [folder(tmp_path / name / "out", *ROWS) for name in ("monday", "tuesday")]
    names = [results.name for results in Report(*folders).results]
    assert names == ["monday/out", "tuesday/out"]


# --- questions and their runs


def test_every_question_is_a_row_that_leads_to_its_run(tmp_path: Path) -> None:
    run = workbench(Scripted(DIRECTED)).ask("Who directed Arrival?")
    name = "a b%2Fc#?"
    labels = {"http://e/y": "Why"}
    kept = row(name, ["x"], [*labels], run=f"runs/{name}.jsonl", hops=1, type="list", labels=labels)
    gone = row("gone", [], [], run="runs/gone.jsonl")
    measured = folder(tmp_path / "one", kept, gone, ladder=(lost(name, "qir"),))
    run.save(measured / kept["run"])
    made = page(tmp_path, measured)
    assert made.lines(name) == [
        ["1", "list", f"What is {name}?", "Why", "wrong x", "0.00", "qir", "run 1.0 s"]
    ]
    assert made.lines("gone")[0][-1] == "not saved 1.0 s"
    assert "one/runs/a%20b%252Fc%23%3F.html" in made.links
    shown = Page((measured / "runs" / f"{name}.html").read_text())
    assert f"kgwb.debug(kgwb.load_run('{name}.jsonl'))" in shown.text
    assert "Denis Villeneuve" in shown.text


def test_a_page_of_a_run_is_made_once(tmp_path: Path) -> None:
    measured = folder(tmp_path / "one", row("a", ["x"], ["y"], run="runs/a.jsonl"))
    workbench(Scripted(DIRECTED)).ask("Who directed Arrival?").save(measured / "runs" / "a.jsonl")
    shown, made = measured / "runs" / "a.html", []
    for asked in ("", "", "Who directed Dune?"):
        if asked:
            os.utime(shown, (2**32, 2**32))  # a clock that was ahead
            workbench(Scripted(HOMONYMS)).ask(asked).save(measured / "runs" / "a.jsonl")
        Report(measured).save(tmp_path / "report.html")
        made.append(shown.stat().st_ino)
    assert made[0] == made[1] and "Who directed Dune?" in shown.read_text()
    shown.write_text("mine")
    assert "one/runs/a.jsonl" in page(tmp_path, measured).links
    assert shown.read_text() == "mine"


def test_the_page_of_a_run_has_gold_the_step_to_blame_and_the_recorded_times(
    tmp_path: Path,
) -> None:
    measured = folder(tmp_path / "one", row("a", ["x"], ["y"], run="runs/a.jsonl"))
    file = measured / "runs" / "a.jsonl"
    workbench(Scripted(DIRECTED)).ask("Who directed Arrival?").save(file)
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    for line in lines:
        if line.get("step", {}).get("key") == "qir":
            line["step"]["seconds"] = 77.0
        if "end" in line:
            line["end"]["totals"]["seconds"] = 99.0
    write_lines(file, lines)
    Report(measured).save(tmp_path / "report.html")
    shown = measured / "runs" / "a.html"
    text = Page(shown.read_text()).text
    assert "the right answer is" in text and "lost the answer" not in text
    assert format_seconds(77.0) in text and format_seconds(99.0) in text
    write_lines(measured / "ladder.jsonl", [{**lost("a", "qir"), "step": "qir", "gold": ["y"]}])
    os.utime(measured / "ladder.jsonl", (2**32, 2**32))
    Report(measured).save(tmp_path / "report.html")
    assert shown.read_text().count("lost the answer") == 1


@pytest.mark.parametrize("name", ["results.jsonl", "notes", "pipe", "."])
def test_only_a_page_of_kgwb_is_replaced(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    measured = folder(tmp_path / "one", *ROWS)
    (measured / "notes").write_text("mine")
    os.mkfifo(measured / "pipe")

    def times() -> dict[str, tuple[int, int]]:
        files = [(path.name, path.stat()) for path in measured.iterdir()]
        return {name: (each.st_ino, each.st_mtime_ns) for name, each in files}

    before = times()
    assert main(["report", str(measured), "--out", str(measured / name)]) == 2
    assert "report" in capsys.readouterr().err
    assert times() == before
    (measured / "report.html").touch()
    assert [main(["report", str(measured)]) for _ in range(2)] == [0, 0]


def test_the_page_of_a_damaged_run_shows_the_error(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("{}\n")
    assert "What to do" in Page(render_run_page(tmp_path / "a.jsonl")).text


def test_a_lost_question_opens_live_but_not_with_an_address_from_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "a key")
    bench = kgwb.Workbench(kgwb.open_kg("films"), "rules")
    rows = (row("z", ["x"], ["https://kgwb.example/films/Arrival"], run="runs/z.jsonl"),)
    for spec, names in (("rules", ["rules"]), ("openai:x@http://elsewhere.example/v1", [])):
        setup = {"source": "films", "kg": bench.kg.identity, "models": {"": spec}}
        measured = folder(tmp_path / spec[:5], *rows, **setup)
        bench.ask("Who directed Dune?").save(measured / "runs" / "z.jsonl")
        opened = kgwb.debug(Report(measured), "z")
        assert opened.run.unrecorded_graph is not None
        assert [model.name for model in opened.run.models.values()] == names
        assert '<b class="right">Arrival</b>' in opened.view()


# --- nothing but text


def hostile(tmp_path: Path) -> Iterator[Path]:
    some = cycle([*texts(1_000), *IRIS])
    for number in range(2):
        rows = []
        for k in range(12):
            kind = {"type": next(some), "hops": next(some), "question": next(some)}
            error = next(some) if k % 3 == 0 else None
            answers = [next(some), next(some)]
            rows.append(row(str(k) + next(some), answers, [next(some)], **kind, error=error))
        ladder = tuple(lost(one["id"], next(some), next(some), error=one["error"]) for one in rows)
        config = {"source": next(some), "models": {next(some): next(some)}}
        config[next(some)] = {next(some): next(some)}
        yield folder(tmp_path / f"<b>{number}", *rows, ladder=ladder, **config)


def test_hostile_texts_stay_text(tmp_path: Path) -> None:
    folders = [*hostile(tmp_path)]
    report = Report(*folders, published="qald-9")
    text = report.save(tmp_path / "report.html").read_text()
    made, plain = (
        Page(text),
        page(tmp_path, folder(tmp_path / "plain", *ROWS, ladder=LADDER), folders[0]),
    )
    assert made.odd == []
    assert set(made.tags) <= set(plain.tags) | {"mark", "b"}
    assert (made.tags.count("script"), text.count("<style>")) == (1, 2)
    assert all(re.match(r"https?://|#question-\d+$", link) for link in made.links)
    assert "default-src 'none'; img-src data:;" in text  # its icons are pictures in the style
    assert not re.search("[\0-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)
    shown = Page(report._repr_html_())
    assert (shown.odd, "script" in shown.tags) == ([], False)
    repr(report).encode()


@pytest.mark.parametrize(
    "run",
    [
        *("{other}", "runs/../../x.jsonl", "runs", "runs/link.jsonl", "runs/\0", "x" * 5000),
        "runs/a.jsonl",  # its page is a link
    ],
)
def test_nothing_outside_the_runs_is_read_or_written(run: str, tmp_path: Path) -> None:
    other = tmp_path / "x.jsonl"
    other.write_text("{}")
    measured = folder(tmp_path / "one", row("a", ["1"], ["1"], run=run.format(other=other)))
    (measured / "runs").mkdir()
    (measured / "runs" / "a.jsonl").write_text("{}")
    (measured / "runs" / "a.html").symlink_to(tmp_path / "mine")
    (measured / "runs" / "link.jsonl").symlink_to(other)
    Report(measured).save(measured / "report.html")
    assert not (tmp_path / "mine").exists()
    assert {*tmp_path.rglob("*.html")} == {measured / "report.html", measured / "runs" / "a.html"}


# --- what cannot be reported


WRONG = {
    "answers": None,
    "models": {"m": {}},
    "seconds": 1e300,
    "linking": {"vertices": {}},
    "f1": 2,
    "remembered": {"question": "?", "linked": [True]},
}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("config.json", "{", "has no results of a benchmark: config.json: "),
        ("config.json", "[]", "has no results of a benchmark: config.json: "),
        ("results.jsonl", "nonsense\n", "line 1, is not a result"),
        ("ladder.jsonl", "[]\n", "ladder.jsonl, line 1, is not a result"),
        ("ladder.jsonl", '{"id": "b", "f1": 0, "error": null}\n', "line 1, is not a result: agent"),
        ("results.jsonl", json.dumps({**ROWS[4], "gold": []}), "gold"),
        *(
            ("results.jsonl", json.dumps({**ROWS[0], name: value}), f"not a result: {name}")
            for name, value in WRONG.items()
        ),
    ],
)
def test_a_damaged_folder_is_refused(name: str, content: str, message: str, tmp_path: Path) -> None:
    measured = folder(tmp_path / "one", *ROWS)
    (measured / name).write_text(content)
    with pytest.raises(InputError, match=message):
        Report(measured)


def test_in_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    measured = folder(tmp_path / "one", *ROWS)
    assert main(["report", str(measured)]) == 0
    out = capsys.readouterr().out
    counts = "2 right, 2 lost (1 wrong, 1 unanswered, 0 errors), 1 without gold;"
    assert out.startswith(f"one: 5 questions: {counts}")
    assert out.endswith(f"\n{measured / 'report.html'}\n")
    assert "measured here" not in (measured / "report.html").read_text()
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    for wrong in ([tmp_path], [loop], [measured, "--out", loop], [measured, "--published", "qald"]):
        assert main(["report", *map(str, wrong)]) == 2
    assert "lc-quad-1" in capsys.readouterr().err
    nothing = page(tmp_path, folder(tmp_path / "nothing"))
    assert nothing.lines("all")[0][:2] == ["0", "–"]


@pytest.mark.parametrize(
    ("answers", "gold", "more", "shown"),
    [
        (
            ["tug", "412", "EUR", "pilot", "97.5"],
            ["412", "EUR", "97.5"],
            {
                "table": [["tug", "412", "EUR"], ["pilot", "97.5", "EUR"]],
                "gold_table": [["412", "EUR"], ["97.5", "EUR"]],
            },
            ["→ 412, EUR, 97.5; ", ": tug, pilot; ", ": 412, EUR, 97.5"],
        ),
        (
            [f"value {number}" for number in range(100)],
            ["the gold"],
            {},
            ["value 1, ", "(100 in all)", "the gold"],
        ),
        (
            ["read http://e/about first"],
            ["http://e/The_End"],
            {},
            ["read http://e/about", "The End"],
        ),
    ],
    ids=["columns not asked for", "many values", "an address in a text"],
)
def test_a_lost_answer_is_shown_beside_its_gold(
    answers: list[str],
    gold: list[str],
    more: dict[str, Any],
    shown: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    lost_row = row("a", answers, gold, **more)
    print_metrics(folder(tmp_path / "one", lost_row), [lost_row], load_prices())
    [line] = [line for line in capsys.readouterr().out.splitlines() if "What is a?" in line]
    places = [line.find(part) for part in shown]
    assert places[0] > -1 and places == sorted(places)
    assert line.endswith(shown[-1]) or not more


def test_questions_that_are_right_by_luck_are_listed_in_terminal_and_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = []
    for id_, asks in {"a": "rrrr", "b": "wwww", "c": "wrww", "d": "rrrw"}.items():
        scores = [{"f1": float(each == "r")} for each in asks]
        rows.append(row(id_, ["1" if asks[0] == "r" else "2"], ["1"], asks=scores))
    print_metrics(folder(tmp_path / "one", *rows), rows, load_prices())
    out = capsys.readouterr().out
    shown = page(tmp_path, tmp_path / "one")
    [figures] = [line for line in shown.lines("one") if len(line) == 7]
    assert figures[:4] == ["4", "1", "2", "1"] and figures[4].startswith("0.500")
    for id_, rate in {"d": "3 of 4 [0.30, 0.95]", "c": "1 of 4 [0.05, 0.70]"}.items():
        assert [rate] in shown.lines(f"What is {id_}?")
        assert re.search(rf"^What is {id_}\? +{re.escape(rate)}$", out, re.MULTILINE)
    assert out.index("3 of 4") < out.index("1 of 4")
