#!/usr/bin/env bash
# ranx, pytrec_eval: where scores are tied, one run has several measures.
#
# Expected. ranx says of its metrics that they "have been tested against TREC Eval for correctness".
# So for one run it gives what pytrec_eval, which is trec_eval for Python, gives; and a Run made of
# a dictionary of scores does not depend on the order in which the dictionary was filled.
#
# Seen (ranx 0.3.21, pytrec-eval-terrier 0.5.11, ir-measures 0.4.3). Equal scores, which answers
# have that are a set, are ordered by trec_eval by the name of the document, from the end of the
# alphabet. ranx keeps the order of the dictionary up to 15 documents; from 16 on it shuffles them:
# the first one of 16 has rank 15. So the reciprocal rank of a right answer among equals is a matter
# of its name in one, of the order of the rows in the other, and a mean over questions is not the
# same.
#
#   all scores 1.0, right answer     trec_eval  ranx
#   Rome, of Rome, Paris             1          1
#   Rome, of Paris, Rome             1          1/2
#   Rome, of Rome, Zagreb            1/2        1
#   first of d00 to d14, 15 of them  1/15       1
#   first of d00 to d15, 16 of them  1/16       1/15
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -qq --disable-pip-version-check \
    ranx==0.3.21 pytrec-eval-terrier==0.5.11 ir-measures==0.4.3

venv/bin/python -W ignore - <<'PY'
from importlib.metadata import version

import pytrec_eval
import ranx
from ir_measures import RR, calc_aggregate

for package in ("ranx", "pytrec-eval-terrier", "ir-measures"):
    print(package, version(package))


def ranks(names: list[str], right: str) -> tuple[int, int, int]:
    """The rank of the right answer, all scores being equal."""
    qrels, run = {"q": {right: 1}}, {"q": {name: 1.0 for name in names}}
    by_trec = pytrec_eval.RelevanceEvaluator(qrels, {"recip_rank"}).evaluate(run)["q"]["recip_rank"]
    by_ranx = ranx.evaluate(ranx.Qrels(qrels), ranx.Run(run), "mrr")
    by_measures = calc_aggregate([RR], qrels, run)[RR]
    return tuple(round(1 / float(value)) for value in (by_trec, by_measures, by_ranx))


numbered = [f"d{number:02}" for number in range(16)]
CASES = {
    "Rome of Rome, Paris": (["Rome", "Paris"], "Rome"),
    "Rome of Paris, Rome": (["Paris", "Rome"], "Rome"),
    "Rome of Rome, Zagreb": (["Rome", "Zagreb"], "Rome"),
    "d00 of d00 to d14": (numbered[:15], "d00"),
    "d00 of d00 to d15": (numbered, "d00"),
}
seen = {}
for case, (names, right) in CASES.items():
    seen[case] = ranks(names, right)
    print(f"{case:<21} rank by pytrec_eval, ir_measures, ranx:", *seen[case])
if list(seen.values()) != [(1, 1, 1), (1, 1, 2), (2, 2, 1), (15, 15, 1), (16, 16, 15)]:
    raise SystemExit("the behaviour has changed")
PY
