"""How fast graphs open, are surveyed and labels are found, against the plain libraries in the same run.

    python benchmarks/graphs.py [FILE]

FILE is by default MetaQA's graph, in the folder KGWB_DATA or ../shared/data.
"""

from __future__ import annotations

import gzip
import os
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from unittest import mock

import pyoxigraph
import rdflib
from rdflib.namespace import RDF, RDFS

from kgwb.kg import QueryLimits
from kgwb.kg.dialects import DIALECTS
from kgwb.kg.endpoint import Endpoint
from kgwb.kg.files import identify_kind
from kgwb.kg.label_search import normalized_words
from kgwb.kg.local import LocalGraph, term_from_oxigraph
from kgwb.kg.sparql import string_literal
from kgwb.kg.survey import survey_graph

ROOT = Path(__file__).parent.parent
sys.path.append(str(ROOT / "tests"))
import engines  # noqa: E402
from engines import metaqa  # noqa: E402

LABEL = f"<{RDFS.label}>"


def opening(file: Path, repeats: int = 5) -> dict[str, float]:
    """Medians in seconds of Oxigraph's own bulk load into a disk store, and of open_kg cold and warm."""
    taken: dict[str, list[float]] = {"bulk_load": [], "cold": [], "warm": []}
    kept = os.environ.get("KGWB_CACHE")
    for _ in range(repeats):
        folder = Path(tempfile.mkdtemp())
        os.environ["KGWB_CACHE"] = str(folder / "cache")
        try:
            taken["bulk_load"].append(_seconds(lambda: _bulk_load(file, folder / "store")))  # noqa: B023
            taken["cold"].append(_seconds(lambda: LocalGraph.open(file)))
            taken["warm"].append(_seconds(lambda: LocalGraph.open(file)))
        finally:
            shutil.rmtree(folder)
    os.environ.pop("KGWB_CACHE")
    if kept is not None:
        os.environ["KGWB_CACHE"] = kept
    medians = {name: statistics.median(seconds) for name, seconds in taken.items()}
    ratios = [cold / bulk for cold, bulk in zip(taken["cold"], taken["bulk_load"], strict=True)]
    return {**medians, "cold / bulk_load": statistics.median(ratios)}


def surveys(file: Path, repeats: int = 3) -> dict[str, float]:
    """Medians in CPU seconds of a survey that is not kept, and of a query that reads each triple once."""
    scan = f"SELECT ?c ?p (COUNT(*) AS ?n) WHERE {{ ?v <{RDF.type}> ?c . ?v ?p ?o }} GROUP BY ?c ?p"
    taken: dict[str, list[float]] = {"survey": [], "one scan": []}
    for _ in range(repeats):
        with (
            tempfile.TemporaryDirectory() as folder,
            mock.patch.dict(os.environ, KGWB_CACHE=folder),
        ):
            kg = LocalGraph.open(file)
            taken["one scan"].append(_cpu_seconds(lambda: kg.select(scan)))  # noqa: B023
            taken["survey"].append(_cpu_seconds(lambda: survey_graph(kg)))  # noqa: B023
    medians = {name: statistics.median(seconds) for name, seconds in taken.items()}
    return medians | {"survey / one scan": medians["survey"] / medians["one scan"]}


def label_search(file: Path, searches: int = 200, filters: int = 2) -> dict[str, float]:
    """Medians in seconds of a search of two words: label index, Oxigraph's and rdflib's FILTER CONTAINS."""
    kg = LocalGraph.open(file, cache=False)
    pairs = _pairs(kg, searches)
    memory = rdflib.Graph()
    for quad in kg.store:
        memory.add(
            (
                term_from_oxigraph(quad.subject),
                term_from_oxigraph(quad.predicate),
                term_from_oxigraph(quad.object),
            )
        )
    taken = {
        "label index": _median(lambda text: kg.search(text, 40), pairs),
        "Oxigraph FILTER": _median(lambda text: list(kg.store.query(_filter(text))), pairs[:20]),  # type: ignore[arg-type]
        "rdflib FILTER": _median(lambda text: list(memory.query(_filter(text))), pairs[:filters]),
    }
    index = taken["label index"]
    return taken | {
        "Oxigraph FILTER / label index": taken["Oxigraph FILTER"] / index,
        "rdflib FILTER / label index": taken["rdflib FILTER"] / index,
    }


def virtuoso_search(file: Path, searches: int = 200, filters: int = 10) -> dict[str, float]:
    """Medians in seconds of a query for two words: Virtuoso's own full text, and FILTER CONTAINS.

    The first two are of the query alone, on the same server; the last is of the whole search, with what it
    asks besides. Empty, and said why, where Virtuoso is not installed.
    """
    try:
        with tempfile.TemporaryDirectory() as folder, engines.virtuoso(Path(folder)) as server:
            kg = Endpoint(
                server.load(file), dialect="virtuoso", limits=QueryLimits(query_timeout_s=120)
            )
            pairs = _pairs(LocalGraph.open(file, cache=False), searches)
            taken = {
                "Virtuoso full text": _median(
                    lambda text: kg.select(_query("virtuoso", text, kg)), pairs
                ),
                "Virtuoso FILTER": _median(
                    lambda text: kg.select(_query("generic", text, kg)), pairs[:filters]
                ),
                "kgwb's search on Virtuoso": _median(lambda text: kg.search(text, 40), pairs),
            }
    except engines.EngineMissingError as missing:
        print(f"  left out: {missing}")
        return {}
    return taken | {"FILTER / full text": taken["Virtuoso FILTER"] / taken["Virtuoso full text"]}


def _pairs(kg: LocalGraph, most: int) -> list[str]:
    """The first two words of some labels, always the same ones."""
    rows = kg.store.query(f"SELECT ?l {{ ?v {LABEL} ?l }}")
    labels = sorted({row[0].value for row in rows if len(normalized_words(row[0].value)) >= 2})  # type: ignore[union-attr]
    return [
        " ".join(normalized_words(text)[:2])
        for text in random.Random(7).sample(labels, min(most, len(labels)))
    ]


def _query(dialect: str, text: str, kg: Endpoint) -> str:
    query = DIALECTS[dialect].build_search_query(
        normalized_words(text), 160, "all words", kg.vocabulary
    )
    assert query is not None
    return query


def _bulk_load(file: Path, folder: Path) -> None:
    store = pyoxigraph.Store(folder)
    form = identify_kind(file).rdf_format
    assert form is not None
    with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as stream:
        store.bulk_load(stream, form)  # type: ignore[arg-type]


def _filter(text: str) -> str:
    tests = " && ".join(
        f"CONTAINS(LCASE(STR(?l)), {string_literal(word)})" for word in normalized_words(text)
    )
    return f"SELECT ?v ?l WHERE {{ ?v {LABEL} ?l FILTER({tests}) }} LIMIT 40"


def _median(act: Callable[[str], object], texts: Iterable[str]) -> float:
    return statistics.median(_seconds(lambda: act(text)) for text in texts)  # noqa: B023


def _seconds(act: Callable[[], object]) -> float:
    started = time.perf_counter()
    act()
    return time.perf_counter() - started


def _cpu_seconds(act: Callable[[], object]) -> float:
    started = time.process_time()
    act()
    return time.process_time() - started


def main() -> None:
    """Prints the tables."""
    file = Path(sys.argv[1]) if len(sys.argv) > 1 else metaqa()
    if not file.exists():
        sys.exit(f"there is no {file}: name a file, or set KGWB_DATA")
    for measure in (opening, surveys, label_search, virtuoso_search):
        print(f"\n{measure.__name__} ({file.name})")
        for name, value in measure(file).items():
            print(
                f"  {name:32} {value:12.1f} x"
                if "/" in name
                else f"  {name:32} {value * 1000:12.3f} ms"
            )


if __name__ == "__main__":
    main()
