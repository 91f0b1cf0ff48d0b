"""Pictures of every widget, in the light and the dark theme: `make screenshots`.

A subject is a cell of a notebook and what is done in it before the picture is taken; add it to ``SUBJECTS``.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from browser.harness import Cell, NotebookPage, Site, browsing
from browser.servers import serving

HEIGHT = 1700
"""Of the window: a picture can be no higher."""
TRACE = Path(__file__).parents[1] / "traces" / "langgraph.json"
SETUP = """
import kgwb
from kgwb.kg import sample_path
from kgwb.kg.embeddings import Embeddings
from kgwb.ui.choosers import GraphChooser

def begun():
    workbench = kgwb.Workbench(kgwb.open_kg("films"), "rules")
    workbench.ask("Who is the author of Harry Potter?")
    workbench.begin("When was its first movie released?")
    return workbench

def finished():
    workbench = begun()
    workbench.runs[-1].go()
    return workbench

walk = begun()

def hopping():
    settings = kgwb.profile("fast")
    workbench = kgwb.Workbench(kgwb.open_kg("films"), "rules", system="dog", settings=settings)
    workbench.begin("Who starred in films that share a director with Inception?")
    return workbench

hops = hopping()

def recorded():
    replies = sample_path("films").with_suffix(".surveyor.jsonl")
    workbench = kgwb.Workbench(
        kgwb.open_kg("films"), f"replay:{replies}", system="surveyor", embeddings=Embeddings("lexical")
    )
    workbench.begin("Which directors have made more than three films, and how many?")
    return workbench

asked = recorded()

def machine():
    replies = sample_path("wikidata_slice").with_suffix(".robodata.jsonl")
    workbench = kgwb.Workbench(
        kgwb.open_kg("wikidata_slice"),
        f"replay:{replies}",
        system="robodata",
        settings=kgwb.profile("fast", system="robodata", turn_limit=18),
        embeddings=Embeddings("lexical"),
    )
    workbench.ask("Which philosophers influenced by Kant were also mathematicians?")
    return workbench
"""
HUMAN = """
played = kgwb.Workbench(kgwb.open_kg("films"), "rules", models={"qir": kgwb.model("human")})
played.begin("Who directed Arrival?")
played.cell("qir")
"""
HOSTED = """
import os, tempfile
from kgwb.llm.base import announce
from kgwb.llm.rules import RulesModel

class Hosted(RulesModel):
    \"\"\"Answers as ``rules``, and says what a hosted model says before it is asked.\"\"\"

    name = "openai:gpt-4o"

    def complete(self, request, kg, cancel):
        announce(self.name, "https://api.openai.com/v1", kg)
        return super().complete(request, kg, cancel)

os.environ["KGWB_CACHE"] = tempfile.mkdtemp()  # where it was never said
hosted = kgwb.Workbench(kgwb.open_kg("films"), Hosted())
"""
AGENTS = (
    *(
        "translator",
        "context",
        "classifier",
        "rephraser",
        "qir",
        "entity_retriever",
        "vertex_selection",
    ),
    *("relation_linking", "query_generator", "predicate_selection", "execution"),
)
"""Those of Chatty-KG, in flow order."""


ROLES = (
    *("topic_entity", "relations", "relation_filtering", "triple_filling", "answer_trying"),
    *("simplifying_expert", "critic", "linguist", "simplifying", "iteration"),
)
"""Those of DoG, in flow order."""


DRAFTERS = ("surveyor", "mention_finder", "drafter", "executor", "reviewer")
"""Those of Surveyor, in flow order."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What a picture shows."""

    code: str
    act: Callable[[Cell], object]
    most: int = 900
    """The highest that the picture may be, in pixels; what is below is left out."""


def run_agent(cell: Cell) -> None:
    cell.click("Run").wait("done")


def edit_prompt(cell: Cell) -> None:
    cell.tab("Prompt").wait("as in the file")
    prompt = cell.output.locator("textarea").first
    cell.fill(prompt, prompt.input_value().replace("small graph pattern", "graph pattern"))
    cell.wait("What you changed")


def try_once(cell: Cell) -> None:
    edit_prompt(cell)
    cell.click("Try once").wait("What came of it")


def edit_result(cell: Cell) -> None:
    run_agent(cell)
    cell.tab("Edit as a form").wait("Use this result")


def play(cell: Cell) -> None:
    cell.click("Run").wait("waiting for your reply")


def step_through(cell: Cell) -> None:
    cell.click("Continue").wait("2001-11-16")
    cell.row("vertex selection").click()
    cell.wait("taken")


def edit_and_stand(cell: Cell) -> None:
    step_through(cell)
    cell.output.locator(".cand", has_text="take this one").first.click()
    cell.wait("stale")


def show_answer(cell: Cell) -> None:
    cell.click("Continue").wait("2001-11-16").tab("Answer").wait("stands on")


def mute(cell: Cell) -> None:
    show_answer(cell)
    cell.click(cell.button("Mute").first).wait("without this triple")


def open_turn(cell: Cell) -> None:
    cell.click(cell.button("Open").last).wait("Supporting triples")
    cell.click("Open in the debugger").wait("vertex selection")


def go_on(cell: Cell) -> None:
    cell.click("Continue").wait("api.openai.com").wait("Denis Villeneuve")


def look_around(cell: Cell) -> None:
    cell.wait("Questions it can answer")


def debate(cell: Cell) -> None:
    cell.click("Continue").wait("Anne Hathaway")
    cell.row("critic").first.click()
    cell.wait("simplifying expert")


def nothing(cell: Cell) -> None:
    cell.show()


LAB = """
import tempfile
from pathlib import Path
from kgwb.bench import Benchmark, BenchSetup, Results, add_gold_answers, load_questions
folder, kg = Path(tempfile.mkdtemp()), kgwb.open_kg("films")
questions = add_gold_answers(load_questions(sample_path("films").with_suffix(".questions.jsonl"))[:20], kg)
for name in ("fast", "paper"):
    setup = BenchSetup.from_workbench(kgwb.Workbench(kg, "rules", settings=kgwb.profile(name)))
    Benchmark(setup, Results(folder / name, setup.to_config(questions)), save_runs=True).run(questions)
kgwb.PromptLab(folder / "fast", folder / "paper")
"""


LOST_LAB = LAB.replace(
    'kgwb.PromptLab(folder / "fast", folder / "paper")',
    """
import os
from kgwb.bench.lab import RetryExperiment
from kgwb.bench.lab import write_note
from kgwb.run.prompts import Prompts
lab = RetryExperiment(folder / "fast", kg=kg)
text = Prompts().text("chatty_kg/qir")
setup = lab.make_setup(Prompts().with_text("chatty_kg/qir", text + "\\nTake care.\\n"))
retry = lab.get_results_folder(setup, "qir")
lab.ask_again(setup, lab.choose_questions(), retry)
write_note(retry, "it guessed the relation")
os.chdir(folder)
kgwb.PromptLab(folder / "fast")
""",
)


def keep_winner(cell: Cell) -> None:
    cell.output.locator("summary", has_text="Earlier retries").click()
    cell.wait("it guessed the relation")
    cell.click("Start from it").wait("the prompts of").click("Keep").wait("Kept in")
    cell.output.locator("summary", has_text="Kept in").click()
    cell.tab("predicate selection").wait("You decide which predicates")


def open_question(cell: Cell) -> None:
    cell.click("When was the director of Arrival born?").wait("the right answer is")


WIDTHS, BESIDE = (905, 700), 432
"""Pixels of a widget, and of all that JupyterLab shows beside one."""


def ask_of_trace(cell: Cell) -> None:
    """The prompt of a model call of a trace, which can be asked again."""
    cell.row("Model").first.click()
    cell.wait("Attempts").tab("Prompt").wait("Ask again")


SUBJECTS = {
    "trace": Subject(f'kgwb.debug(kgwb.open_trace("{TRACE}", kg="films"))', ask_of_trace, 1200),
    **{name: Subject(f'walk.cell("{name}")', run_agent) for name in AGENTS},
    **{f"dog_{name}": Subject(f'hops.cell("{name}")', run_agent) for name in ROLES},
    **{f"surveyor_{name}": Subject(f'asked.cell("{name}")', run_agent, 1200) for name in DRAFTERS},
    **{
        f"robodata_{name}": Subject(f'machine().cell("{name}")', nothing, 1400)
        for name in ("turn", "remote", "search_entities", "local_graph", "produce")
    },
    "dog_debate": Subject("hopping().debug()", debate, 1500),
    "prompt_once": Subject('finished().cell("qir")', try_once, 1700),
    "edit": Subject('begun().cell("qir")', edit_result),
    "human": Subject(HUMAN, play),
    "debugger": Subject("begun().debug()", step_through),
    "debugger_edited": Subject("begun().debug()", edit_and_stand),
    "debugger_answer": Subject("begun().debug()", show_answer),
    "debugger_muted": Subject("begun().debug()", mute),
    "subgraph": Subject("finished().subgraph()", nothing),
    "comparison": Subject(
        'run = finished().runs[-1]; kgwb.compare(run, run.fork(settings=kgwb.profile("paper")).go(), '
        'names=("fast", "paper"))',
        nothing,
    ),
    "chat": Subject("finished().chat()", open_turn),
    "notice_debugger": Subject(HOSTED + 'hosted.debug("Who directed Arrival?")', go_on),
    "lab": Subject(LAB, nothing, 1500),
    "lab_lost": Subject(LOST_LAB, nothing, 1500),
    "lab_kept": Subject(LOST_LAB, keep_winner, 2200),
    "lab_opened": Subject(LAB, open_question, 2500),
    "graph": Subject("GraphChooser()", look_around, 1400),
}


def take(page: NotebookPage, names: list[str], folder: Path, end: str) -> None:
    """Take the pictures of a notebook that has a cell for each name, after the first."""
    page.cell(0).run()
    for place, name in enumerate(names, start=1):
        cell = page.cell(place).run()
        SUBJECTS[name].act(cell)
        cell.picture(folder / f"{name}_{end}.png", most=SUBJECTS[name].most)


def main() -> None:
    """Take the pictures asked for, all if none is named; fails if anything goes wrong on the way."""
    parser = argparse.ArgumentParser(prog="make screenshots", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help=f"any of: {', '.join(SUBJECTS)}")
    parser.add_argument("--folder", type=Path, default=Path("build/screenshots"))
    parser.add_argument(
        "--scale", type=float, default=1, help="pixels of the picture for one of the page"
    )
    given = parser.parse_args()
    names = given.names or list(SUBJECTS)
    if unknown := sorted(set(names) - set(SUBJECTS)):
        parser.error(f"there is no {', '.join(unknown)}; there are {', '.join(SUBJECTS)}")
    given.folder.mkdir(parents=True, exist_ok=True)
    with (
        browsing() as browser,
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as copy,
        serving("lab", Path(copy)) as server,
    ):
        site = Site(server, browser)
        notebook = server.write("pictures.ipynb", SETUP, *(SUBJECTS[name].code for name in names))
        for theme, width in product(("light", "dark"), WIDTHS):
            window = {"width": width + BESIDE, "height": HEIGHT, "scale": given.scale}
            with site.visit(notebook, theme=theme, **window) as page:
                take(page, names, given.folder, f"{theme}_{width}")


if __name__ == "__main__":
    main()
