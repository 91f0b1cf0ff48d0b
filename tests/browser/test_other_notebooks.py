"""The other notebooks, a person's reply and question in them, and input that is wrong."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import expect

from browser.harness import Cell, Site
from browser.named import named, walk

REPLY = {
    "entities": ["Arrival"],
    "unknowns": ["?person"],
    "triples": [{"subject": "Arrival", "predicate": "directed by", "object": "?person"}],
    "target": "?person",
    "question_type": "list",
    "beyond": [],
}
WALKED = {
    "topic_entity": "Inception",
    "relations": "release date",
    "relation_filtering": "taken",
    "triple_filling": "Christopher Nolan",
    "answer_trying": "another hop is needed",
    "simplifying_expert": "films directed by",
    "critic": "asks for the same: I agree",
    "linguist": "Nothing in it is redundant",
    "simplifying": "films directed by",
    "iteration[hop 3]": "Interstellar | 4 others",
}
"""DoG's agents in the order of their notebook, and what is read in each cell."""
FILLED = {
    "triplets": "The Mummy",
    "entity_choice": "The Mummy",
    "relation_choice": "composer",
    "template": "SELECT DISTINCT",
    "queries": "Jerry Goldsmith",
    "query_choice": "Jerry Goldsmith",
}
"""Triad's agents in the order of their notebook, and what is read in each cell."""


def test_what_a_text_names_and_asks_to_click() -> None:
    text = "Press **qir** and then **Edit\nas a form**. **Compare** shows it.\n\n| **Result** | what comes |"
    assert list(named(text)) == [
        ("qir", True),
        ("Edit as a form", True),
        ("Compare", False),
        ("Result", False),
    ]


def test_edits_are_compared_and_a_prompt_is_saved_to_its_file(lab: Site) -> None:
    with lab.visit("11_edit_and_rerun.ipynb") as page:
        assert walk(page, "11_edit_and_rerun.ipynb") == []
        page.cell("other.override").wait("1997-06-26").wait("First decision that differs")
        page.cell('names=("fast", "paper")').wait("In doubt")
        character = page.cell("kgwb.debug(wrong)").wait("no predicate fits the question")
        character.row("query generator").click()
        character.settle().output.get_by_text("edit and run", exact=True).nth(1).click()
        character.click("Run query", until="2001-11-16")
        debugger, cell = page.cell("run.fork().go()"), page.cell('workbench.cell("qir")')
        for relation, written, answer in (
            (0, "first book", "?x1 — release date → ?answer: without it the query has rows"),
            (1, "publication date", "1997-06-26"),
        ):
            debugger.tab("Step").row("qir").click()
            debugger.settle().tab("Edit as a form").wait("Use this result")
            debugger.fill(debugger.output.locator(f"input[name='facts.{relation}.1']"), written)
            debugger.click("Use this result").settle().click("Continue").settle().wait(answer)
        cell.tab("Prompt").wait("as in the file")
        prompt = cell.output.locator("textarea")
        cell.fill(prompt, prompt.input_value() + "\nThink twice.").wait("What you changed")
        cell.click("Save to file").wait("saved to")
        saved = lab.server.folder / "notebooks" / "my_prompts" / "chatty_kg" / "qir.md"
        assert saved.read_text().endswith("\nThink twice.\n")


def test_a_person_plays_an_agent(lab: Site) -> None:
    with lab.visit("12_you_are_the_agent.ipynb") as page:
        assert walk(page, "12_you_are_the_agent.ipynb") == ["Ask the model"]
        page.expect_problem("message: Your last reply cannot be used")
        cell = page.cell('workbench.cell("qir")').wait("attempt 2 of 3")
        assert cell.output.bounding_box()["height"] < 1200  # type: ignore[index]
        cell.click("Reply as JSON")
        cell.fill(cell.output.locator("textarea:visible").first, json.dumps(REPLY))
        cell.click("Send").wait("done").wait("Ask the model")
        page.cell("workbench.debug()").click("Continue", until="Denis Villeneuve")


def test_a_dialogue_is_held_with_the_newest_turn_in_view(lab: Site) -> None:
    with lab.visit("13_your_own_graph.ipynb") as page:
        assert walk(page, "13_your_own_graph.ipynb") == []
        chooser = (
            page.cell("GraphChooser").wait("Your graph at a glance").wait("What is the keeper of")
        )
        chooser.wait("bornIn").fill("Search classes and predicates", "KEEPER").wait(
            "bornIn", gone=True
        )
        cell = page.cell("workbench.chat()").click("New dialogue").wait("A new dialogue has begun")
        turn, box = cell.output.locator("#turn-0"), cell.output.locator("#question")
        cell.fill(box, "Who is the keeper of Otto?")
        box.press("Enter")
        cell.wait("Maria Lopez")
        expect(turn).to_be_in_viewport()
        cell.settle()
        assert box.bounding_box()["width"] > 0.9 * turn.bounding_box()["width"]  # type: ignore[index]
        cell.click(cell.output.locator(".chip", has_text="keeper of Ella"))
        expect(box).to_have_value("What is the keeper of Ella?")
        cell.click("Ask").wait("What is the keeper of Ella?")
        expect(cell.output.locator("#turn-1")).to_be_in_viewport()


def run_agent(cell: Cell, source: str, results: dict[str, str]) -> None:
    """Run an agent by the button of its cell, if it is among these, and read its result."""
    agent = re.fullmatch(r'workbench\.cell\("(.+)"\)', source)
    if agent and results:
        cell.click("Run").wait(results[agent[1]])


@pytest.mark.parametrize(
    ("notebook", "results", "seen"),
    [
        ("14_your_own_system", {}, {"compare_runs": "tog 0.86"}),
        ("20_ragonite", {}, {'workbench.cell("answerer")': "cited"}),
        ("30_triad", FILLED, {"workbench.debug()": "changed: ⟨Arrival, production cost, ?cost⟩"}),
        ("40_dog", WALKED, {"workbench.debug()": "Anne Hathaway"}),
        ("41_robodata", {}, {'run["turn[turn 6]"]': "8 nodes, 15 edges"}),
        ("52_papers", {}, {}),
        ("60_surveyor", {}, {"workbench.debug()": "by hand"}),  # by the clicks of the text
    ],
)
def test_what_a_notebook_names_is_on_the_screen_and_its_agents_run(
    lab: Site, notebook: str, results: dict[str, str], seen: dict[str, str]
) -> None:
    with lab.visit(f"{notebook}.ipynb") as page:
        assert walk(page, f"{notebook}.ipynb", lambda *of: run_agent(*of, results)) == []
        for source, shown in seen.items():
            page.cell(source).wait(shown)


def test_a_lost_question_opens_from_its_benchmark(lab: Site) -> None:
    with lab.visit("50_benchmark.ipynb") as page:
        assert walk(page, "50_benchmark.ipynb") == []
        cell = page.cell("kgwb.debug(report").wait("the right answer is").wait("Inputs")
        blamed = cell.settle().output.locator(".tl [aria-current=step] .nm").inner_text()
        page.cell("lines = locate_losses").wait(blamed.replace(" ", "_"))
