"""What every sample question and every tenth of metaqa_dev is answered today, to compare with after a change.

    python tests/answers.py            compare with tests/answers.jsonl.gz; exit status 1 if an answer differs
    python tests/answers.py --write    replace that file, where answers were changed on purpose

Asks through ``kgwb bench`` with ``rules``: both systems, both profiles. An answer is its values or its error.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import engines

from kgwb import cli
from kgwb.kg import SAMPLE_NAMES, sample_path

FILE = Path(__file__).with_name("answers.jsonl.gz")
EVERY = 10
"""One in so many questions of metaqa_dev is asked."""
Answers = dict[str, list[str]]
"""Values, or the error, by "set system profile id"."""


def answers(
    sets: Sequence[str] = (*SAMPLE_NAMES, "metaqa"), profiles: Sequence[str] = ("fast", "paper")
) -> Answers:
    """What every system and profile answers to these question sets; sets that are not here are left out."""
    with tempfile.TemporaryDirectory() as folder:
        return {
            f"{name} {system} {profile} {row['id']}": sorted(row["answers"])
            or [row["error"] or "no answer"]
            for name in sets
            for system in ("chatty_kg", "dog")
            for profile in profiles
            for row in _asked(name, system, profile, Path(folder))
        }


def recorded() -> Answers:
    """What was answered when the file was written."""
    lines = gzip.decompress(FILE.read_bytes()).decode("utf-8").splitlines()
    return dict(map(json.loads, lines))


def _asked(name: str, system: str, profile: str, folder: Path) -> Iterator[dict[str, object]]:
    graph, questions = _files(name, folder)
    out = folder / f"{name}-{system}-{profile}"
    if graph.exists():
        options = ["--system", system, "--profile", profile, "--out", str(out)]
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            cli.main(["bench", "--kg", str(graph), "--questions", str(questions), *options])
        yield from map(json.loads, (out / "results.jsonl").read_text(encoding="utf-8").splitlines())


def _files(name: str, folder: Path) -> tuple[Path, Path]:
    if name in SAMPLE_NAMES:
        return sample_path(name), sample_path(name).with_name(f"{name}.questions.jsonl")
    graph, some = engines.metaqa(), folder / "metaqa.jsonl"
    if graph.exists():
        lines = (
            graph.with_name("metaqa_dev.jsonl")
            .read_text(encoding="utf-8")
            .splitlines(keepends=True)
        )
        some.write_text("".join(lines[::EVERY]), encoding="utf-8")
    return graph, some


def _main() -> int:
    found = answers()
    if "--write" in sys.argv:
        text = "".join(
            json.dumps(line, ensure_ascii=False) + "\n" for line in sorted(found.items())
        )
        FILE.write_bytes(gzip.compress(text.encode(), mtime=0))
        sys.stdout.write(f"{len(found)} answers written to {FILE}\n")
        return 0
    before = recorded()
    different = [key for key in found if before.get(key) != found[key]]
    for key in different:
        sys.stdout.write(f"{key}: was {before.get(key)}, is {found[key]}\n")
    sys.stdout.write(f"{len(found) - len(different)} of {len(found)} answers as recorded\n")
    return bool(different)


if __name__ == "__main__":
    sys.exit(_main())
