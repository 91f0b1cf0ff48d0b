"""Loading large files: what is shown meanwhile, interrupts, and labels read on the way."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pyoxigraph
import pytest

from kgwb.kg import cache_dir, open_kg
from kgwb.kg.base import Vocabulary
from kgwb.kg.labels import LabelReader, collect_labels
from kgwb.kg.local import LocalGraph

LABEL = "<http://www.w3.org/2000/01/rdf-schema#label>"
LABELS = 15_000


class Bar:
    """What is asked of a progress bar. With ``interrupt``, a person interrupts at its first update."""

    def __init__(self, interrupt: bool = False) -> None:
        self.interrupt = interrupt
        self.n = 0.0
        self.seen: list[float] = []

    def __call__(self, **options: Any) -> Bar:
        return self

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def set_description(self, text: str, refresh: bool) -> None:
        pass

    def set_postfix_str(self, text: str, refresh: bool) -> None:
        pass

    def update(self, more: float) -> None:
        self.n += more
        self.seen.append(self.n)
        if self.interrupt:
            raise KeyboardInterrupt


@pytest.fixture
def large(tmp_path: Path) -> Path:
    path = tmp_path / "large.nt"
    lines = [f'<urn:v{n}> {LABEL} "vertex {n} of a large graph" .\n' for n in range(LABELS)]
    path.write_text("".join(lines))
    return path


def test_a_bar_says_how_far_loading_is(large: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bar = Bar()
    monkeypatch.setattr("kgwb.kg.loading.transient_bar", bar)
    assert isinstance(open_kg(large), LocalGraph)
    assert bar.seen
    assert bar.seen == sorted(bar.seen)
    assert bar.seen[0] >= 0
    assert bar.seen[-1] <= 1


def test_an_interrupted_graph_is_not_left_half_loaded(
    large: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("kgwb.kg.loading.transient_bar", Bar(interrupt=True))
    ended = threading.Event()
    build = LocalGraph.open.__globals__["open_files"].__globals__["_open_while_watched"]

    def watched(*args: Any, **options: Any) -> Any:
        try:
            return build(*args, **options)
        finally:
            ended.set()

    monkeypatch.setattr("kgwb.kg.files._open_while_watched", watched)
    with pytest.raises(KeyboardInterrupt):
        open_kg(large)
    assert ended.wait(60)
    assert list((cache_dir() / "graphs").glob("*/*")) == []
    assert "loaded into memory" not in caplog.text
    monkeypatch.setattr("kgwb.kg.loading.transient_bar", Bar())
    again = LocalGraph.open(large)
    assert len(again.store) == LABELS
    assert len(again.search("vertex 77", 1).hits) == 1


def test_labels_are_the_same_read_on_the_way_and_from_the_store() -> None:
    alternative = "<http://www.w3.org/2004/02/skos/core#altLabel>"
    lines = [
        f'<http://e/a> {LABEL} "plain" .',
        f'<http://e/a> {LABEL} "Größe"@de .',
        f'<http://e/a> {LABEL} "English"@en-GB <http://e/graph> .',
        f'<http://e/b> {LABEL} "a \\"quoted\\" text, a line\\nand \\\\" .',
        f'<http://e/b> {alternative} "other"@en .',
        f'<http://e/c> {LABEL} "7"^^<http://www.w3.org/2001/XMLSchema#integer> .',
        f'<http://e/d> {LABEL} "  " .',
        f"<http://e/d> {LABEL} <http://e/a> .",
        f'_:b {LABEL} "of a blank node" .',
        f'<http://e/e> <http://e/says> "<http://e/f> {LABEL} \\"no label\\" ." .',
        f'<http://e/a> {LABEL} "plain" .',
    ]
    data = "\n".join(lines).encode() + b"\n"
    store = pyoxigraph.Store()
    store.load(data, pyoxigraph.RdfFormat.N_QUADS)
    written = b"".join(
        pyoxigraph.serialize([quad], format=pyoxigraph.RdfFormat.N_QUADS) or b"" for quad in store
    )
    reader = LabelReader(Vocabulary())
    reader.read(written)
    read = collect_labels(store, Vocabulary(), reader.ranked)
    assert sorted(read) == sorted(collect_labels(store, Vocabulary()))
    assert len(read) == 7
