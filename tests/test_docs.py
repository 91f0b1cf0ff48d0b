"""The documentation: its examples run, and its links lead somewhere.

Every block of code in docs/ and in README.md is an example. Those of a page run in their order, in
one namespace and in one folder. It has a graph and questions, my_graph.ttl and questions.jsonl, and
the recordings of the checkout:

- ``python``: is executed.
- ``sh``: lines that begin with ``kgwb`` are executed, other lines are not. Of ``kgwb lab`` and
  ``kgwb serve``, which do not end, the arguments are parsed.
- ``text``: is what the example right before it prints. Times and "..." match anything.

A block after a line with nothing but the name of a file is the content of this file. Files of Python,
JSON and TOML are written to the folder.

A comment before a block changes how it is tested:

    <!-- test: ollama:phi4 as rules -->   replaces one text by another
    <!-- test: skip, it needs a cluster -->   only the syntax is checked, for the reason given
"""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sybil import Document, Example, Region, Sybil
from sybil.evaluators.python import pad
from sybil.parsers.markdown import CodeBlockParser
from sybil.parsers.markdown.lexers import DirectiveInHTMLCommentLexer

from kgwb.bench import load_questions, save_questions
from kgwb.cli import _parse_command, main
from kgwb.kg import sample_path

ROOT = Path(__file__).parent.parent
TESTED_ELSEWHERE = {"docs/labs_solutions.md"}
"""Pages whose blocks another file tests: tests/test_labs.py."""
ABOUT_THE_PAST = {"CHANGELOG.md"}
"""Pages that name files that are gone."""
MARKDOWN = [
    path
    for path in sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
    if path.relative_to(ROOT).as_posix() not in TESTED_ELSEWHERE
]
PAGES = [path for path in MARKDOWN if path.parent != ROOT or path.name == "README.md"]
SLOW_PAGES = (
    "my-benchmark.md",
    "my-graph.md",
    "my-model.md",
    "my-prompts.md",
    "terminal.md",
    "widgets.md",
)
"""Pages whose examples take seconds: they are tested with the long tests."""
FILE_NAME = re.compile(r"^`([\w/.-]+)`:?\s*\Z", re.MULTILINE)
"""Before a block that is the content of a file."""
UNENDING = ("lab", "serve")
"""Commands that do not end by themselves."""
SECONDS = re.compile(r"\b\d+(\.\d+)? m?s\b")
REPLACEMENT = re.compile(r"(\S+) as (\S+)")
LINK = re.compile(r"\]\((?!\w+:)([^)#\s]*)(#[^)\s]*)?\)")
CODE_PATH = re.compile(
    r"`((?:kgwb|tests|docs|prompts|benchmarks|notebooks|binder|sample_kgs)/[\w/.-]*)`"
)
INVENTED = re.compile(r"describer|[A-Z]{4,}")
"""Paths of examples and placeholders."""
PLACES_TABLE = re.compile(r"\| where in `([\w/]+)` \|\n\|[-|]+\n((?:\|.*\n)+)")
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


# Examples


def take_directive(example: Example) -> None:
    example.namespace["directive"] = example.parsed


def parse_directives(document: Document) -> Iterator[Region]:
    for region in DirectiveInHTMLCommentLexer("test")(document):
        region.parsed = region.lexemes["arguments"]
        region.evaluator = take_directive
        yield region


def source_of(example: Example) -> tuple[str, bool]:
    """Return the code of an example, and whether it is executed."""
    directive = example.namespace.pop("directive", "")
    source = str(example.parsed)
    if directive.startswith("skip"):
        assert re.match(r"skip, \w", directive), "say why it is skipped: skip, REASON"
        return source, False
    for old, new in REPLACEMENT.findall(directive.replace(",", " ")):
        assert old in source, f"{old} is not in the example"
        source = source.replace(old, new)
    is_file = FILE_NAME.search(example.document.text[: example.start])
    return source, is_file is None


def run_python(example: Example) -> None:
    source, is_executed = source_of(example)
    code = compile(pad(source, example.line), example.path, "exec")
    if not is_executed:
        write_file(example)
        return
    names = example.namespace.setdefault("names", {"__name__": "__main__"})
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(code, names)
    example.namespace["printed"] = (example.end, printed.getvalue())


def run_commands(example: Example) -> None:
    source, is_executed = source_of(example)
    printed = io.StringIO()
    for line in source.replace("\\\n", " ").splitlines():
        program, *arguments = shlex.split(line, comments=True) or [""]
        if program != "kgwb":
            continue
        if is_executed and arguments[0] not in UNENDING:
            with contextlib.redirect_stdout(printed):
                assert main(arguments) == 0, f"{line}\n{printed.getvalue()}"
        else:
            _parse_command(arguments)
    example.namespace["printed"] = (example.end, printed.getvalue())


def write_file(example: Example) -> None:
    if file_name := FILE_NAME.search(example.document.text[: example.start]):
        path = Path(file_name[1])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(str(example.parsed), encoding="utf-8")


def compare_output(example: Example) -> None:
    end, printed = example.namespace.pop("printed", (0, ""))
    if not printed or example.document.text[end : example.start].strip():
        return
    wanted, got = (
        SECONDS.sub("0 s", text.replace("\N{NO-BREAK SPACE}", " "))
        for text in (str(example.parsed), printed)
    )
    options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    if not doctest.OutputChecker().check_output(wanted, got, options):
        raise AssertionError(f"{example.path}, line {example.line}: it printed\n{printed}")


EXAMPLES = Sybil(
    [
        parse_directives,
        CodeBlockParser("python", run_python),
        CodeBlockParser("sh", run_commands),
        CodeBlockParser("json", write_file),
        CodeBlockParser("toml", write_file),
        CodeBlockParser("text", compare_output),
    ]
)


def runnable_pages() -> list[Any]:
    """Return each page with examples as a parameter; the slow ones are marked as long."""
    parameters = []
    for page in PAGES:
        marks = [pytest.mark.long] if page.name in SLOW_PAGES else []
        parameters.append(pytest.param(page, id=page.relative_to(ROOT).as_posix(), marks=marks))
    return parameters


@pytest.mark.parametrize("page", runnable_pages())
def test_the_examples_of_a_page_run(
    page: Path, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KGWB_EMBEDDINGS")
    graph = sample_path("films")
    shutil.copy(graph, "my_graph.ttl")
    save_questions(load_questions(graph.with_suffix(".questions.jsonl"))[12:20], "questions.jsonl")
    Path("recordings").symlink_to(ROOT / "recordings")
    for example in EXAMPLES.parse(page).examples():
        example.evaluate()


# Links and sizes


@pytest.mark.parametrize("page", MARKDOWN, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_links_of_a_page_lead_somewhere(page: Path) -> None:
    text = FENCED.sub("", page.read_text(encoding="utf-8"))
    missing = [target for target, _ in LINK.findall(text) if not (page.parent / target).exists()]
    assert missing == []


@pytest.mark.parametrize("page", MARKDOWN, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_files_that_a_page_names_exist(page: Path) -> None:
    if page.name in ABOUT_THE_PAST:
        return
    named = CODE_PATH.findall(page.read_text(encoding="utf-8"))
    assert [
        path for path in named if not (ROOT / path).exists() and not INVENTED.search(path)
    ] == []


def test_the_places_of_differences_exist() -> None:
    text = (ROOT / "docs" / "profiles.md").read_text(encoding="utf-8")
    places = []
    for folder, rows in PLACES_TABLE.findall(text):
        for row in rows.strip().splitlines():
            for name in re.findall(r"`([^`]+)`", row.rsplit("|", 2)[1]):
                places.append(
                    ROOT / name if "/" in name and name[0] != "." else ROOT / folder / name
                )
    assert len(places) > 20
    assert [place for place in places if not place.exists()] == []


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 120
