#!/usr/bin/env bash
# GEPA: an error while a new prompt is written ends nothing; the budget is spent on the old prompt.
#
# Expected. gepa.optimize has raise_on_exception, True unless told otherwise: "Whether to propagate
# proposer/evaluator exceptions instead of stopping gracefully". GEPAAdapter reserves exceptions
# for "unrecoverable, systemic failures", such as a missing model. So the error of an adapter's
# make_reflective_dataset or propose_new_texts, or of reflection_lm, ends the search, as one of
# evaluate does. GEPAAdapter also says that an exception is logged and the next iteration
# begins, which is what raise_on_exception=False is for; on_error, "called when an error occurs during
# optimization", would then be told.
#
# Seen (gepa 0.1.4). Only evaluate's error is raised. The others are caught in the proposer, which does
# not know of raise_on_exception: they are lines of the log, and on_error is not called. Each iteration
# evaluates the old prompt on a minibatch again, until the budget is spent; what fails is called once
# or, to write a prompt, twice in each. optimize then returns the first prompt as the best one, like a
# search that found nothing better; here one proposal without the error is enough for a better one.
#
#   error in                 ends with     calls of it  evaluations, of 30  on_error
#   evaluate                 LookupError             2                   3         1
#   make_reflective_dataset  first prompt            9                  30         0
#   propose_new_texts        first prompt           18                  30         0
#   reflection_lm            first prompt           18                  30         0
#   nothing                  better prompt
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -qq --disable-pip-version-check \
    gepa==0.1.4

venv/bin/python - <<'PY'
from importlib.metadata import version

from gepa import optimize
from gepa.core.adapter import EvaluationBatch

print("gepa", version("gepa"))


class Search:
    """An adapter, a callback and a log; in the iterations one part fails."""

    def __init__(self, failing: str) -> None:
        self.failing, self.calls, self.evaluations, self.errors = failing, 0, 0, 0
        if failing == "reflection_lm":
            self.propose_new_texts = None

    def use(self, part: str, first: int = 1) -> None:
        if part == self.failing:
            self.calls += 1
            if self.calls >= first:
                raise LookupError("there is no model of this name")

    def evaluate(self, batch, candidate, capture_traces=False):
        self.use("evaluate", first=2)  # the first call is that of the start, before any iteration
        self.evaluations += len(batch)
        texts = [candidate["prompt"]] * len(batch)
        scores = [1.0 if "Think." in text else 0.0 for text in texts]
        return EvaluationBatch(texts, scores, texts if capture_traces else None)

    def make_reflective_dataset(self, candidate, eval_batch, components_to_update):
        self.use("make_reflective_dataset")
        return {name: [{"Feedback": "The answer is wrong."}] for name in components_to_update}

    def propose_new_texts(self, candidate, reflective_dataset, components_to_update):
        self.use("propose_new_texts")
        return {name: candidate[name] + " Think." for name in components_to_update}

    def reflection_lm(self, prompt):
        self.use("reflection_lm")
        return "```\nAnswer. Think.\n```"

    def on_error(self, event) -> None:
        self.errors += 1

    def log(self, message: str) -> None:
        pass


def run(failing: str) -> tuple[str, int, int, int]:
    search = Search(failing)
    try:
        result = optimize(
            {"prompt": "Answer."},
            trainset=["question 1", "question 2", "question 3"],
            valset=["question 4", "question 5", "question 6"],
            adapter=search,
            reflection_lm=search.reflection_lm if failing == "reflection_lm" else None,
            max_metric_calls=30,
            raise_on_exception=True,
            callbacks=[search],
            logger=search,
        )
        end = {"Answer.": "first prompt"}.get(result.best_candidate["prompt"], "better prompt")
    except LookupError:
        end = "LookupError"
    return end, search.calls, search.evaluations, search.errors


PARTS = ("evaluate", "make_reflective_dataset", "propose_new_texts", "reflection_lm")
seen = {}
for part in (*PARTS, "nothing"):
    seen[part] = end, calls, evaluations, errors = run(part)
    print(f"error in {part:23} {end:13} calls of it {calls:2},", end=" ")
    print(f"evaluations {evaluations:2}, on_error {errors}")
if seen != {
    "evaluate": ("LookupError", 2, 3, 1),
    "make_reflective_dataset": ("first prompt", 9, 30, 0),
    "propose_new_texts": ("first prompt", 18, 30, 0),
    "reflection_lm": ("first prompt", 18, 30, 0),
    "nothing": ("better prompt", 0, 30, 0),
}:
    raise SystemExit("the behaviour has changed")
PY
