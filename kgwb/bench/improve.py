"""A search for a better prompt of one agent, by the optimizer GEPA (Agrawal et al., arXiv 2507.19457).

GEPA keeps a pool of candidates, which are texts of prompts. It chooses one, and some of the answers
that the agent lost, by default three. A model proposes a changed prompt from these. The changed prompt is asked with
the same questions, and if it is better there, with all questions that it is judged by.
``PromptSearch`` is what GEPA calls an adapter: it asks questions of a results folder again, so that
a candidate costs only the steps that its prompt changes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

from kgwb import disk
from kgwb.bench.comparisons import MORE_THAN_CHANCE, ResultsComparison
from kgwb.bench.cost import Budget, sum_usage
from kgwb.bench.lab import TEST_SLICE, RetryExperiment
from kgwb.bench.questions import slices_of
from kgwb.bench.results import BenchRow, QuestionSample, is_lost, is_shown, question_of_row
from kgwb.bench.runner import BenchSetup
from kgwb.errors import InputError, PromptError
from kgwb.llm.base import ChatModel, ChatRequest, Message
from kgwb.records import encode_data
from kgwb.run import Run
from kgwb.run.models import recorded_messages
from kgwb.run.prompts import Prompts
from kgwb.run.steps import Call, Step
from kgwb.text import pluralize

MAX_PROPOSAL_TOKENS = 8192
TEMPLATE_FILE = Path(__file__).with_name("templates") / "improve.md"
PromptTexts = dict[str, str]
"""Texts of prompts by name: what GEPA calls a candidate."""


@dataclass
class Candidate:
    """A changed prompt, and what was asked with it."""

    name: str
    texts: PromptTexts
    setup: BenchSetup
    folder: Path
    """The results folder. It is also a folder of prompts, and has their difference in "change.diff"."""
    model_calls: int = 0
    """The calls that were made to ask questions with it."""
    is_judged: bool = False
    """Whether it was asked all questions that candidates are judged by."""


@dataclass
class PromptSearch:
    """A search for better prompts of one agent, and the adapter with which GEPA evaluates candidates.

    Candidates are judged by all lost questions and as many right ones, of those in ``slices``. The
    part of the budget that the test part will take is kept for it.

    Nothing is asked when it is made. Raises SettingError for an unknown agent, and InputError if no
    lost answer is blamed on the agent, if it asked no model there, if the test part was asked too
    often, or if the budget is too small.
    """

    experiment: RetryExperiment
    agent: str
    proposer: ChatModel
    budget: Budget
    slices: Sequence[str]
    workers: int
    report: Callable[[str], object]
    """Called with a line for what is asked with a candidate, and for a proposal that cannot be used."""

    def __post_init__(self) -> None:
        self.experiment.system.agent_spec(self.agent)
        self.candidates: list[Candidate] = []
        self._failure: Exception | None = None
        """What stopped the search: GEPA itself goes on after a proposal failed."""
        self._rows = self.experiment.earlier_results.rows
        others = [each for each in self.slices if not each.startswith("split=")]
        self.test_slices = [*others, TEST_SLICE]
        """The slices of the test part by which the best candidate is confirmed: the other slices stay."""
        self.test_ids = []
        for id_, row in self._rows.items():
            if slices_of(row).issuperset(self.test_slices):
                self.test_ids.append(id_)
        self.blamed = self._find_blamed()
        """The row of the ladder of each answer that the agent lost, by the id of the question."""
        self._sample = self.experiment.sample(slices=self.slices)
        self.judged_ids = sorted(self._sample.ids)
        self.measured_texts = self._find_measured_texts()
        self.reserved: dict[str, float] = {}
        """What is kept of each limit of the budget for the test part."""
        self._reserve_for_test()

    # --- what is searched with

    def _find_blamed(self) -> dict[str, BenchRow]:
        """Return the ladder's row of each answer that the agent lost. Raises InputError without any."""
        blamed = {}
        results = self.experiment.earlier_results.in_slices(self.slices)
        for id_, loss in results.losses_by_id.items():
            if loss["agent"] == self.agent and is_shown(self._rows[id_]):
                blamed[id_] = loss
        if not blamed:
            raise InputError(
                f"no lost answer of {results.folder} outside its test part is blamed on {self.agent}",
                hint="name an agent that lost answers: kgwb bench ... --ladder finds out which did",
            )
        return blamed

    def _find_measured_texts(self) -> PromptTexts:
        """Return the prompts that the agent used where it lost an answer. Raises InputError if it used none."""
        texts = {}
        for id_ in self.blamed:
            run = self.experiment.load_run(question_of_row(self._rows[id_]))
            for step in self._find_lost_steps(id_, run):
                for name in step.prompts:
                    texts[name] = run.prompts.text(name)
        if not texts:
            raise InputError(
                f"{self.agent} asked no model where it lost answers, so it has no prompt to improve",
                hint="change its settings, or name another agent",
            )
        return texts

    def _find_lost_steps(self, id_: str, run: Run) -> list[Step]:
        """Return the steps of the agent in a run of a question that it lost, and that asked a model.

        These are the step to which gold must be put in, or those inside it; if there is none, all.
        """
        steps = [step for step in run.steps if step.agent == self.agent and step.model_calls]
        key = self.blamed[id_]["step"]
        return [step for step in steps if key in (step.key, step.parent)] or steps

    def _reserve_for_test(self) -> None:
        """Take what the test part cost when it was measured out of the budget of the search.

        Raises InputError if nothing is left, or if the test part was asked too often.
        """
        if self.test_ids:
            self.experiment.describe_test_look(self.experiment.earlier_results.folder)
        limits = self.budget.limits
        for name, limit in limits.items():
            reserved = sum(
                self.budget.prices.compute_amount(self._rows[id_], name) for id_ in self.test_ids
            )
            if reserved >= limit:
                raise InputError(
                    f"the budget {name}={limit:,.6g} is too small: the test part alone, by which the best prompt "
                    f"is confirmed, takes up to {reserved:,.6g}",
                    hint="raise it with --budget",
                )
            self.reserved[name] = reserved
            limits[name] = limit - reserved

    # --- the search

    def run(self, max_proposals: int) -> None:
        """Search until so many proposals were made, or the budget is used up.

        Raises InputError without the package gepa, what asking raises, and the error of the model that
        proposes.
        """
        try:
            from gepa import optimize
            from gepa.utils import MaxCandidateProposalsStopper
        except ImportError as exc:
            raise InputError(
                "nothing was asked: the package gepa, which searches, is not installed",
                hint="install it: pip install 'kgwb[improve]'",
            ) from exc

        optimize(
            seed_candidate=self.measured_texts,
            trainset=[*self.blamed],
            valset=self.judged_ids,
            adapter=self,
            stop_callbacks=[
                MaxCandidateProposalsStopper(max_proposals),
                lambda state: self._failure or self.budget.exhausted,
            ],
            logger=SimpleNamespace(log=lambda message: None),
        )
        if self._failure is not None:
            raise self._failure

    def evaluate(
        self, batch: Sequence[str], candidate: PromptTexts, capture_traces: bool = False
    ) -> Any:
        """Return the rows and the F1 of questions with these prompts; called by GEPA.

        The measured prompts are not asked with again. A question that ended in an error, or that
        the budget did not allow, counts 0.
        """
        from gepa.core.adapter import EvaluationBatch

        known = self._find_candidate(candidate)
        rows = self._ask(known, batch) if known else self._rows
        found = [rows.get(id_, {}) for id_ in batch]
        scores = [row.get("f1") or 0.0 for row in found]
        return EvaluationBatch(outputs=found, scores=scores, trajectories=found)

    def _find_candidate(self, texts: PromptTexts) -> Candidate | None:
        """Return the candidate with these texts; None for the measured ones."""
        return next((each for each in self.candidates if each.texts == texts), None)

    def _ask(self, candidate: Candidate, batch: Sequence[str]) -> Mapping[str, BenchRow]:
        """Ask questions with a candidate, as far as the budget allows, and return all rows of it by id."""
        is_whole = set(batch) == self._sample.ids
        benchmark = self.experiment.ask_again(
            candidate.setup,
            self.experiment.choose_questions([f"id={id_}" for id_ in batch]),
            candidate.folder,
            sample=self._sample if is_whole else QuestionSample(),
            workers=self.workers,
            budget=self.budget,
        )
        candidate.is_judged |= is_whole and not benchmark.stop_reason
        rows = benchmark.results.rows
        if benchmark.made_calls:
            candidate.model_calls += benchmark.made_calls
            lost = sum(map(is_lost, rows.values()))
            cost = pluralize(candidate.model_calls, "model call")
            self.report(
                f"{candidate.name}: {len(rows)} asked, {lost} lost, {cost}; {candidate.folder}"
            )
        return rows

    # --- proposals

    def make_reflective_dataset(
        self, candidate: PromptTexts, eval_batch: Any, components_to_update: Sequence[str]
    ) -> Any:
        """Return the rows of lost answers for each prompt; called by GEPA before ``propose_new_texts``.

        GEPA hides what is raised here, so what can fail is left to ``propose_new_texts``.
        """
        lost = [row for row in eval_batch.trajectories if row and is_lost(row)]
        return dict.fromkeys(components_to_update, lost)

    def propose_new_texts(
        self,
        candidate: PromptTexts,
        reflective_dataset: Any,
        components_to_update: Sequence[str],
    ) -> PromptTexts:
        """Ask for a changed text of a prompt, and return it by its name if it can be used; called by GEPA.

        GEPA changes one prompt of a candidate at a time.
        """
        [name] = components_to_update
        try:
            examples = self._make_examples(name, candidate, reflective_dataset[name])
            text = self._propose(name, candidate[name], examples) if examples else ""
            if not text:
                return {}
            self._add_candidate({**candidate, name: text})
        except Exception as exc:  # noqa: BLE001  # ``run`` raises it; GEPA would go on
            self._failure = exc
            return {}
        return {name: text}

    def _make_examples(
        self, name: str, texts: PromptTexts, rows: Sequence[BenchRow]
    ) -> list[dict[str, str]]:
        """Return what the agent was sent with a prompt and replied, and what is right, where it lost answers.

        ``rows`` are of questions that were asked with these texts. Raises KgwbError if what was asked is
        not recorded.
        """
        candidate = self._find_candidate(texts)
        folder = candidate.folder if candidate else None
        examples = []
        for row in rows:
            id_ = row["id"]
            run = self.experiment.load_run(question_of_row(row), folder)
            for step in self._find_lost_steps(id_, run):
                if name not in step.prompts:
                    continue
                call = step.model_calls[-1]
                examples.append(
                    {
                        "question": row["question"],
                        "what the model was sent": recorded_messages(call)[-1].content,
                        "its reply": call.result.text,
                        "what would have been right here": encode_data(
                            self.blamed[id_].get("gold_value")
                        ),
                        "right answer to the question": encode_data(row["gold"]),
                    }
                )
        return examples

    def _propose(self, name: str, text: str, examples: Sequence[Mapping[str, str]]) -> str:
        """Return a changed text of a prompt; "" if what the model proposes cannot be used.

        Raises what the model raises.
        """
        from gepa.strategies.instruction_proposal import InstructionProposalSignature as Form

        prompt = Form.prompt_renderer(
            {
                "current_instruction_doc": text,
                "dataset_with_feedback": examples,
                "prompt_template": disk.read_text(TEMPLATE_FILE),
            }
        )
        request = ChatRequest(
            f"improve/{self.agent}",
            (Message("user", str(prompt)),),
            temperature=1.0,
            seed=len(self.candidates),
            max_output_tokens=MAX_PROPOSAL_TOKENS,
        )
        reply = self.proposer.complete(request, None, Event())
        call = Call("", "model", "", {"model": self.proposer.name}, 0, reply, "", reply.seconds)
        self.budget.add(sum_usage([call]))
        proposed: str = Form.output_extractor(reply.text)["new_instruction"] + "\n"
        try:
            self.experiment.system.check_prompts(Prompts(texts={name: proposed}))
        except PromptError as exc:
            self.report(f"a proposal was not used: {exc.message}")
            return ""
        return proposed

    def _add_candidate(self, texts: PromptTexts) -> None:
        """Add a candidate, unless it is known, and write its prompts and their difference into its folder."""
        if texts == self.measured_texts or self._find_candidate(texts):
            return
        setup = self.experiment.make_setup(Prompts(texts=texts))
        name = f"improve {self.agent} {len(self.candidates) + 1}"
        folder = self.experiment.get_results_folder(setup, name)
        lines: list[str] = []
        for prompt, text in texts.items():
            before = self.measured_texts[prompt].splitlines(True)
            lines += unified_diff(before, text.splitlines(True), prompt, prompt)
            disk.write_atomically(folder / f"{prompt}.md", [text])
        disk.write_atomically(folder / "change.diff", lines)
        self.candidates.append(Candidate(name, texts, setup, folder))


def find_best(comparisons: Sequence[ResultsComparison]) -> ResultsComparison | None:
    """Return the comparison whose F1 rose most, of those that are better beyond chance; None if none is."""
    by_gain = {}
    for comparison in comparisons:
        if comparison.judge("f1") == MORE_THAN_CHANCE:
            by_gain[comparison.compare_scores("f1").difference] = comparison
    most = max(by_gain, default=0.0)
    return by_gain[most] if most > 0 else None
