"""How label search and kgwb's overhead grow with the graph: made labels and graphs, from a fixed seed.

    python benchmarks/growth.py [most labels] [most triples]

Labels have two or three words, of a vocabulary that grows with their number and is used unevenly, as names
are. A made graph has films with a label, a director, an actor, a year and a genre: five triples each.
"""

from __future__ import annotations

import itertools
import os
import random
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from curve import Line, page
from overhead import bare, interleaved, plain_agents, workbench
from pipeline import recorded_on
from table import Row, p95, show

import kgwb
from kgwb.kg.label_search import Label, LabelIndex

LABELS = (10_000, 100_000, 1_000_000, 10_000_000)
TRIPLES = (10_000, 100_000, 1_000_000)
SEARCHES = 200
SEED = 7
EXAMPLE = "http://example.org/"
SYLLABLES = [consonant + vowel for consonant in "bcdfghjklmnprstvz" for vowel in "aeiou"]
Points = list[tuple[float, float]]


def search_growth(most: int = LABELS[-1]) -> tuple[list[Row], list[Line]]:
    """Building and searching label indexes of growing size; medians and 95th percentiles."""
    rows: list[Row] = []
    curves: dict[str, Points] = {}
    for count in (count for count in LABELS if count <= most):
        with tempfile.TemporaryDirectory() as folder:
            started = time.perf_counter()
            index = LabelIndex.build(made_labels(count), Path(folder) / "labels.sqlite")
            built = time.perf_counter() - started
            megabytes = (Path(folder) / "labels.sqlite").stat().st_size / 1e6
            rows.append(Row(f"{count:,} labels: index built", built, "s"))
            rows.append(Row(f"{count:,} labels: index on disk", megabytes, "MB"))
            for what, texts in _searches(count).items():
                taken = [1000 * _seconds(lambda: index.search(text, 40)) for text in texts]  # noqa: B023
                median = statistics.median(taken)
                points = curves.setdefault(what, [])
                points.append((count, median))
                smallest, first = points[0]
                wanted = count / smallest if count > smallest else None  # slower than linearly
                # A slip is looked for among all words, for 0.2 s at most, and is no search of the index.
                slip = what == "a slip in a word"
                rows.append(
                    Row(f"{count:,} labels: {what}, median", median, "ms", median / first,
                        f"{smallest:,} labels", None if slip else wanted,
                        value_most=10 if count == LABELS[-1] and not slip else None, p95=p95(taken))
                )  # fmt: skip
            index.close()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    rows.append(Row("label indexes: peak memory of this process so far", peak, "MB"))
    return rows, [Line(what, tuple(points)) for what, points in curves.items()]


def overhead_growth(most: int = TRIPLES[-1], questions: int = 40) -> tuple[list[Row], list[Line]]:
    """What kgwb adds to the bare agents, a question, on graphs of growing size, and how long they open."""
    rows: list[Row] = []
    curves: dict[str, Points] = {"the agents alone": [], "kgwb on top": []}
    for count in (count for count in (*TRIPLES, 10_000_000) if count <= most):
        with tempfile.TemporaryDirectory() as folder, _cache_in(Path(folder)):
            file = Path(folder) / "made.nt"
            films = made_graph(file, count)
            started = time.perf_counter()
            kg = kgwb.open_kg(str(file))
            rows.append(
                Row(f"{count:,} triples: opened the first time", time.perf_counter() - started, "s")
            )
            texts = random.Random(SEED).sample(films, questions)
            given = recorded_on(kg, "made", [f"Who directed {title}?" for title in texts])
            variants = {"bare": bare(given.bench, plain_agents()), "kgwb": workbench(given.bench)}
            taken = interleaved(variants, given.questions)
            added = statistics.median(
                one - other for one, other in zip(taken["kgwb"], taken["bare"], strict=True)
            )
            alone = statistics.median(taken["bare"])
            for name, value in (("the agents alone", alone), ("kgwb on top", added)):
                points = curves[name]
                points.append((count, 1000 * value))
                what = f"{count:,} triples, {len(given.runs)} questions: {name}"
                wanted = count / points[0][0] if len(points) > 1 else None
                ratio = 1000 * value / points[0][1]
                rows.append(
                    Row(what, 1000 * value, "ms", ratio, f"{points[0][0]:,.0f} triples", wanted)
                )
            del kg, given, variants
    return rows, [Line(name, tuple(points)) for name, points in curves.items()]


# --- what is made


def made_labels(count: int) -> Iterator[Label]:
    """So many labels, each of a vertex of its own; the same ones every time."""
    import numpy as np

    known = np.array(_vocabulary(max(1_000, int(count**0.75))), dtype=object)
    numbers = np.random.default_rng(SEED)
    for start in range(0, count, 100_000):
        size = min(100_000, count - start)
        chosen = known[
            (len(known) * numbers.random((size, 3)) ** 3).astype(int)
        ].tolist()  # few are common
        lengths = numbers.choice([2, 2, 3], size).tolist()
        for place, (some, length) in enumerate(zip(chosen, lengths, strict=True), start):
            yield Label(f"{EXAMPLE}e{place}", " ".join(some[:length]), True, True)


def _vocabulary(size: int) -> list[str]:
    """Distinct words of two to four syllables (there are 52 million)."""
    numbers = random.Random(SEED)
    found: dict[str, None] = {}
    while len(found) < size:
        found["".join(numbers.choices(SYLLABLES, k=numbers.randint(2, 4))).title()] = None
    return list(found)


def _searches(count: int) -> dict[str, list[str]]:
    """Texts to search for by kind; all are of labels that there are."""
    step = max(1, count // SEARCHES)
    texts = [label.text for label in itertools.islice(made_labels(count), 0, None, step)][:SEARCHES]
    return {
        "two words": [" ".join(text.split()[:2]) for text in texts],
        "one word": [text.split()[0] for text in texts],
        "a part of a word": [text[:5] for text in texts],
        "a word too many": [f"{text} xqzw" for text in texts],
        "a slip in a word": [text[:2] + "q" + text[3:].split()[0] for text in texts[:40]],
    }


def made_graph(file: Path, triples: int) -> list[str]:
    """Write N-Triples of films; their titles, which are unique."""
    numbers = random.Random(SEED)
    films = triples // 5
    people = max(10, films // 4)
    label = "<http://www.w3.org/2000/01/rdf-schema#label>"
    known = _vocabulary(max(1_000, int(triples**0.5)))
    titles = [
        f"{numbers.choice(known)} {numbers.choice(known)} {number}" for number in range(films)
    ]
    with file.open("w", encoding="utf-8") as out:
        for number, title in enumerate(titles):
            film = f"<{EXAMPLE}film/{number}>"
            director, actor = numbers.randrange(people), numbers.randrange(people)
            out.write(
                f'{film} {label} "{title}" .\n'
                f"{film} <{EXAMPLE}directedBy> <{EXAMPLE}person/Person_{director}> .\n"
                f"{film} <{EXAMPLE}starring> <{EXAMPLE}person/Person_{actor}> .\n"
                f'{film} <{EXAMPLE}releaseYear> "{numbers.randint(1900, 2024)}" .\n'
                f"{film} <{EXAMPLE}hasGenre> <{EXAMPLE}genre/Genre_{number % 20}> .\n"
            )
    return titles


# --- the curve


def draw(lines: Sequence[Line], overhead: Sequence[Line], path: Path) -> None:
    """Write both curves as a page that stands alone."""
    page(
        path,
        [
            ("Label search by number of labels", "labels", "median, ms", lines),
            ("A question by number of triples", "triples", "median, ms", overhead),
        ],
    )


def _seconds(act: Callable[[], object]) -> float:
    started = time.perf_counter()
    act()
    return time.perf_counter() - started


class _cache_in:
    """Graphs are kept below a folder while the block runs."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.before = folder, os.environ.get("KGWB_CACHE")

    def __enter__(self) -> None:
        os.environ["KGWB_CACHE"] = str(self.folder / "cache")

    def __exit__(self, *_: object) -> None:
        del os.environ["KGWB_CACHE"]
        if self.before is not None:
            os.environ["KGWB_CACHE"] = self.before


def main() -> None:
    """Prints the tables and writes the curve."""
    most = [int(float(text)) for text in sys.argv[1:]]
    rows, lines = search_growth(most[0] if most else LABELS[-1])
    more, overhead = overhead_growth(most[1] if len(most) > 1 else TRIPLES[-1])
    show([*rows, *more])
    draw(lines, overhead, Path(__file__).parent.parent / "build" / "bench_growth.html")


if __name__ == "__main__":
    main()
