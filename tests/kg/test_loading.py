"""Loading large files: what is shown meanwhile, interrupts, and labels read on the way."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyoxigraph
import pytest
from rdflib import URIRef
from tables import read_table

from kgwb.errors import GraphFileError
from kgwb.kg import cache_dir, files, open_kg
from kgwb.kg.base import Vocabulary
from kgwb.kg.files import Load
from kgwb.kg.label_search import Label
from kgwb.kg.labels import LabelReader, collect_labels
from kgwb.kg.local import LocalGraph

HERE = Path(__file__).parent
LABEL = "<http://www.w3.org/2000/01/rdf-schema#label>"
LABELS = 15_000


def load_of(path: Path) -> Load:
    formats, _ = files._find_rdf_files(path)
    return Load(path, formats, Vocabulary())


class Bar:
    """What is asked of a progress bar. A person interrupts at its first update after an event."""

    def __init__(self, event: threading.Event) -> None:
        self.event = event
        self.n = 0.0

    def __call__(self, **options: Any) -> Bar:
        return self

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def set_description(self, text: str, refresh: bool) -> None:
        pass

    def update(self, more: float) -> None:
        self.n += more
        assert more >= 0 and self.n <= 1
        if self.event.is_set():
            raise KeyboardInterrupt


@pytest.fixture
def large(tmp_path: Path) -> Path:
    path = tmp_path / "large.nt"
    lines = [f'<urn:v{n}> {LABEL} "vertex {n} of a large graph" .\n' for n in range(LABELS)]
    path.write_text("".join(lines))
    return path


def test_the_parser_says_how_far_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = "from kgwb.kg import parser_process as p; p.REPORT_INTERVAL_S = 0; p._main()"
    monkeypatch.setattr(files, "PARSER_COMMAND", (sys.executable, "-c", program))
    for name in ("a.ttl", "b.ttl"):
        (tmp_path / name).write_text("# a comment\n<http://e/s> <http://e/p> 1 .\n")
    load = load_of(tmp_path)
    deque(load.parse(), maxlen=0)
    assert (load.share, load.triples) == (files.READING_SHARE, 2)


@pytest.mark.parametrize("cache", [True, False])
def test_an_interrupt_stops_the_index_while_labels_are_written(
    cache: bool, large: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, stopped, ended = (threading.Event() for _ in range(3))
    stop_load, open_files = Load.stop, files._open_while_watched
    counted: list[int] = []

    def stop(load: Load) -> None:
        stop_load(load)
        stopped.set()

    def labels(reader: LabelReader) -> Iterator[Label]:
        began.set()
        assert stopped.wait(60)
        for number in range(100_000):
            counted.append(number)
            yield Label(f"urn:v{number}", f"vertex {number}", True, True)

    def open_them(*args: Any, **options: Any) -> Any:
        try:
            return open_files(*args, **options)
        finally:
            ended.set()

    monkeypatch.setattr("kgwb.kg.files._open_while_watched", open_them)
    monkeypatch.setattr("kgwb.kg.files.transient_bar", Bar(began))
    monkeypatch.setattr(Load, "stop", stop)
    monkeypatch.setattr(LabelReader, "labels", labels)
    with pytest.raises(KeyboardInterrupt):
        open_kg(large, cache=cache)
    assert ended.wait(60)
    assert len(counted) < 50_000
    assert list((cache_dir() / "graphs").glob("*")) == []


def test_what_the_triples_tell_about_labels() -> None:
    data = (HERE / "labelled.nq").read_bytes()
    expected = read_table(HERE / "labels_of_labelled.jsonl")
    reader = LabelReader(Vocabulary())
    reader.read(data)
    assert sorted(map(list, reader.labels())) == expected
    assert reader.may_be_nested
    store = pyoxigraph.Store()
    store.load(data, pyoxigraph.RdfFormat.N_QUADS)
    assert sorted(map(list, collect_labels(store, Vocabulary()))) == expected


PLAIN = [
    '<http://e/s> <http://e/p> "a \\"quoted\\" text"@en-GB .',
    "<http://e/s> <http://e/p> <http://e/o> <http://e/graph> .",
    '<http://e/s> <http://e/p> "7"^^<http://www.w3.org/2001/XMLSchema#integer> .',
    '<http://e/s> <http://e/p> "größer" .',
]
NESTED = "<http://e/s> <http://e/p> <<( <http://e/x> <http://e/y> <http://e/z> )>> ."
NOT_PLAIN = [
    "# a comment",
    "",
    "<http://e/s>  <http://e/p> <http://e/o> .",
    "<http://e/s> <http://e/p> <http://e/o>.",
    "<http://e/s>\t<http://e/p>\t<http://e/o> .",
    "<http://e/s> <http://e/p> _:blank .",
    "_:blank <http://e/p> <http://e/o> .",
    "<http://e/s> <http://e/p> <http://e/\\u00e9> .",
    NESTED,
    "<http://e/s> <http://e/p> <http://e/o> .\r",
    "x<http://e/s> <http://e/p> <http://e/o> .",
    "<http://e/s> <http://e/p> <http://e/o> . <http://e/s> <http://e/p> <http://e/o> .",
    '<http://e/s> <http://e/p> <http://e/o>"x" .',
    '<http://e/s> <http://e/p> "x"<http://e/o> .',
]


@pytest.mark.parametrize("extension", ["ttl", "trig", "nt", "nq"])
@pytest.mark.parametrize("last", [NESTED, PLAIN[0]])
def test_a_triple_in_a_triple_is_known_of_before_the_triples_are_stored(
    extension: str, last: str, tmp_path: Path
) -> None:
    file = tmp_path / f"graph.{extension}"
    comment = "# so that it is parsed\n"
    file.write_text(f"{comment}{PLAIN[0]}\n{last}\n", encoding="utf-8")
    load = load_of(file)
    assert not load.read_if_plain()
    deque(load.parse(), maxlen=0)
    assert load.labels.may_be_nested == (last == NESTED)


@pytest.mark.parametrize("line", PLAIN + NOT_PLAIN)
def test_only_a_plain_file_is_loaded_without_the_parser(line: str, tmp_path: Path) -> None:
    file = tmp_path / "a.nq"
    file.write_bytes(f"{PLAIN[0]}\n{line}\n".encode())
    assert load_of(file).read_if_plain() == (line in PLAIN)


def test_a_plain_file_has_the_same_labels_and_triples_as_parsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MIN_CACHED_BYTES", 0)
    triples = [*PLAIN, f'<http://e/o> {LABEL} "the \\u00e9nd" .', f'<http://e/s> {LABEL} "start" .']
    graphs = []
    for start in ("", "# a comment\n"):
        file = tmp_path / f"{len(start)}.nq"
        file.write_text(start + "".join(f"{line}\n" for line in triples), encoding="utf-8")
        graphs += [LocalGraph.open(file), LocalGraph.open(file, cache=False)]
    first, *others = graphs
    assert first.search("end", 5).hits[0].iri == URIRef("http://e/o")
    for other in others:
        assert sorted(map(str, other.store)) == sorted(map(str, first.store))
        for text in ("énd", "start", "graph", "p"):
            assert other.search(text, 5) == first.search(text, 5)


@pytest.mark.parametrize("wrong", [b"<http://e/s> <http://e/p> <o> .", b'<a:s> <a:p> "\xff" .'])
def test_an_error_in_a_plain_file_has_its_line(
    wrong: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MIN_CACHED_BYTES", 0)
    file = tmp_path / "a.nt"
    file.write_bytes(b"<http://e/s> <http://e/p> <http://e/o> .\n" * 3 + wrong + b"\n")
    with pytest.raises(GraphFileError) as caught:
        LocalGraph.open(file)
    assert caught.value.line == 4
    assert list((cache_dir() / "graphs").iterdir()) == []


NOTEBOOK_BAR = """
import ipykernel
import tqdm.notebook
from kgwb import background
background.DELAY_S = 0
tqdm.notebook.display = lambda shown: None
seen = []
try:
    with background.transient_bar(total=1.0) as bar:
        bar.update(0.15)
        seen.append(bar.container.layout.visibility)
        {then}
except ValueError:
    pass
print(*seen, bar.container.layout.visibility)
"""


@pytest.mark.parametrize("then", ["pass  # the rest is never told", "raise ValueError"])
def test_a_bar_in_a_notebook_is_gone_when_the_work_has_ended(then: str) -> None:
    code = NOTEBOOK_BAR.format(then=then)  # in a process of its own: ipykernel stays imported
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["None", "hidden"]
