#!/usr/bin/env bash
# rank-bm25, bm25s: the delta of BM25+ changes no ranking, and BM25L counts words without end.
#
# Expected. Lv and Zhai made BM25+ ("Lower-bounding term frequency normalization", 2011) because
# BM25 punishes very long documents: a word that occurs in one counts hardly more than one that does
# not. So each word that occurs adds at least delta times its idf, and one that does not adds
# nothing. BM25L, of the same authors, moves the normalized frequency by delta for the same reason;
# the weight of a word stays below k1 + 1 times its idf, however often it is said.
#
# Seen (rank-bm25 0.2.2, bm25s 0.3.16). Both add delta for words that do not occur, too: every
# document has the same sum on top, one without any word of the question has a score, and the
# ranking is that of BM25 for each delta from 0 to 1000. The long document with all words stays
# behind a short one with one of them. bm25s does so for BM25L as well; rank-bm25's BM25L multiplies
# by the frequency once more, so a word said 100 times weighs 197 times what it weighs said once; k1
# + 1 is 2.5.
#
#   "lake depth", a long text with both, a short one with "lake"  first
#   delta only for words that occur, delta 1, 10, 1000            long
#   BM25Plus and bm25s "bm25+", delta 0, 1, 10, 1000              short
#   weight of a word said 100 times, said once being 1            BM25Okapi 2.5, BM25L 197
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -qq --disable-pip-version-check \
    rank-bm25==0.2.2 bm25s==0.3.16

venv/bin/python - <<'PY'
from importlib.metadata import version

import bm25s
import numpy as np
from rank_bm25 import BM25L, BM25Okapi, BM25Plus

for package in ("rank-bm25", "bm25s"):
    print(package, version(package))
QUESTION = ["lake", "depth"]
OTHERS = [f"town{number} is quiet here".split() for number in range(60)]
DOCUMENTS = [
    "lake depth".split() + [f"word{number}" for number in range(400)],
    "the lake beside the town".split(),
    *OTHERS,
    *["lake has a shore and boats".split()] * 3,
]
DELTAS = (0, 1, 10, 1000)


def by_rank_bm25(delta: float) -> np.ndarray:
    return BM25Plus(DOCUMENTS, delta=delta).get_scores(QUESTION)


def by_bm25s(delta: float) -> np.ndarray:
    index = bm25s.BM25(method="bm25+", k1=1.5, b=0.75, delta=delta)
    index.index(DOCUMENTS, show_progress=False)
    return index.get_scores(QUESTION)


def by_hand(delta: float) -> np.ndarray:
    """BM25Plus without delta, and delta times the idf for each word that occurs."""
    plain = BM25Plus(DOCUMENTS, delta=0)
    bonus = [sum(plain.idf[word] for word in QUESTION if word in text) for text in DOCUMENTS]
    return plain.get_scores(QUESTION) + delta * np.array(bonus)


def first(scores: np.ndarray) -> str:
    best = int(np.argmax(scores))
    return {0: "long", 1: "short"}.get(best, "other")


seen = {}
for ask in (by_hand, by_rank_bm25, by_bm25s):
    seen[ask.__name__] = [first(ask(delta)) for delta in DELTAS]
    without = ask(1)[2]
    seen[ask.__name__].append(bool(without > 0))
    print(f"{ask.__name__:<13} delta {DELTAS}: first {seen[ask.__name__][:-1]},", end=" ")
    print(f"score without a word of the question, delta 1: {without:.2f}")
texts = [["lake"], ["lake"] * 100, *[["town"] * 50 for _ in range(20)]]
weights = {}
for algorithm in (BM25Okapi, BM25Plus, BM25L):
    scores = algorithm(texts, b=0).get_scores(["lake"])
    once, often = scores[:2] - scores[2]
    weights[algorithm.__name__] = round(float(often / once), 1)
print("100 times against once:", weights)
if seen != {
    "by_hand": ["short", "long", "long", "long", False],
    "by_rank_bm25": ["short"] * 4 + [True],
    "by_bm25s": ["short"] * 4 + [True],
} or (weights["BM25Okapi"], weights["BM25L"]) != (2.5, 197.1):
    raise SystemExit("the behaviour has changed")
PY
