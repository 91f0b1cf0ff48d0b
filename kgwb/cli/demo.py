"""``kgwb demo``: a dialogue about Harry Potter, agent by agent, offline."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from kgwb.cli.ask import print_answer
from kgwb.cli.terminal import color, warn_about_rules

if TYPE_CHECKING:
    from kgwb.run import Run
    from kgwb.run.steps import Step


@dataclass(kw_only=True)
class DemoCommand:
    """play a dialogue about Harry Potter, agent by agent, offline"""

    def run(self) -> None:
        """Ask the questions of the dialogue "films-hp" of the sample graph films, and print each step.

        Chatty-KG answers them with the model ``rules``, so nothing is sent over a network. A step
        is printed as it ends, and the answer with its support after each question.
        """
        from kgwb.bench import load_questions
        from kgwb.kg import open_kg, sample_path
        from kgwb.workbench import Workbench

        print(
            "Chatty-KG, agent by agent, on the sample graph films. "
            "The model is rules: nothing is sent over the network."
        )
        workbench = Workbench(open_kg("films"))
        questions = load_questions(sample_path("films").with_suffix(".questions.jsonl"))
        for question in questions:
            if question.dialogue == "films-hp":
                print(f"\n{color(f'{question.turn}. {question.question}', 'key')}")
                run = workbench.begin(question.question)
                run.listeners.append(partial(_print_step, run))
                run.go()
                print_answer(run)
        print("\nTo see, edit and re-run every step: kgwb lab")
        warn_about_rules(workbench)


def _print_step(run: Run, event: str, step: Step) -> None:
    """Print a step that has ended in one line: agent, outcome, and cost in brackets.

    It is a listener of the run. Nothing is printed for any other event, and for steps that
    supervise others.
    """
    from kgwb.run.steps import step_costs

    is_supervisor = any(other.parent == step.key for other in run.steps)
    if event != "end" or is_supervisor:
        return
    costs = ", ".join(step_costs(step, run.calls))
    aside = color(f"({costs})", "aside")
    print(f"   {step.agent:<20} {step.outcome}  {aside}", flush=True)
