"""The other notebooks, a person's reply and question in them, and input that is wrong."""

from __future__ import annotations

import json
import re

from playwright.sync_api import expect

from browser.harness import Cell, Site
from browser.named import walk

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
BEGUN = """
import kgwb
workbench = kgwb.Workbench(kgwb.open_kg("films"), "rules")
workbench.begin("Who directed Arrival?")
"""


def test_edits_are_compared_and_a_prompt_is_saved_to_its_file(lab: Site) -> None:
    with lab.visit("11_edit_and_rerun.ipynb") as page:
        page.run_all()
        comparison = (
            page.cell("other.override").wait("1997-06-26").wait("First decision that differs")
        )
        decisions = comparison.output.locator(".decide, .cmp")
        expect(decisions.first).to_contain_text("first book")  # stands on top, in full
        assert decisions.count() > 1
        comparison.wait("the same").wait("in full")
        page.cell('names=("fast", "paper")').wait("In doubt")
        character = page.cell("kgwb.debug(wrong)").wait("no predicate fits the question")
        expect(character.row("predicate selection")).to_contain_text("0 queries kept")
        character.row("query generator").click()
        character.settle().output.get_by_text("edit and run", exact=True).nth(1).click()
        character.click("Run query", until="2001-11-16")
        debugger, cell = page.cell("run.fork().go()"), page.cell('workbench.cell("qir")')
        debugger.row("qir").click()
        debugger.tab("Edit as a form", until="Use this result")
        debugger.fill(debugger.output.locator("input[name='facts.0.1']"), "first book")
        debugger.click("Use this result", until="by hand").click(
            "Continue", until="No answer in this graph"
        )
        debugger.wait("?x1 — release date → ?answer: without it the query has rows")
        debugger.row("qir").click()
        debugger.tab("Edit as a form", until="Use this result")
        debugger.fill(debugger.output.locator("input[name='facts.1.1']"), "publication date")
        debugger.click("Use this result").settle().click("Continue", until="1997-06-26")
        again = page.cell("other.override").run()
        answers = again.wait("First decision that differs").output.locator(".answer .big")
        expect(answers).to_have_text(["2001-11-16", "1997-06-26"])
        cell.tab("Edit as a form", until="Use this result")
        cell.fill(cell.output.locator("input[name='facts.0.1']"), "first book")
        cell.click("Use this result").settle().wait("by hand").tab("Prompt")
        cell.wait("Its result was put in by hand.")
        cell.click("Try once").settle().wait("by hand", gone=True)
        compared = page.cell('names=("fast", "paper")').run().wait("First decision that differs")
        for answer in compared.output.locator(".answer .big").all():
            expect(answer).to_have_text(re.compile("^2001-11-16"))
        cell.tab("Prompt").wait("as in the file")
        prompt = cell.output.locator("textarea")
        cell.fill(prompt, prompt.input_value() + "\nThink twice.").wait("What you changed")
        cell.click("Save to file").wait("saved to")
        saved = lab.server.folder / "notebooks" / "my_prompts" / "chatty_kg" / "qir.md"
        assert saved.read_text().endswith("\nThink twice.\n")


def test_another_query_is_put_into_the_draft_without_a_model(lab: Site) -> None:
    with lab.visit("60_surveyor.ipynb") as page:
        assert walk(page, "60_surveyor.ipynb") == []
        debugger = page.cell("workbench.debug()").wait("by hand")  # by the clicks of the text
        debugger.row("drafter").click()
        debugger.settle().tab("Edit as a form").wait("Use this result")
        query = debugger.output.locator("[name=sparql]")
        debugger.fill(query, query.input_value().replace("> 3", "> 4"))
        debugger.click("Use this result").settle().click("Continue").wait("Answered").settle()
        expect(debugger.output.locator(".answer .big")).to_have_text(
            "Alfred Hitchcock · 5, Christopher Nolan · 6, Denis Villeneuve · 5"
        )


def test_a_person_plays_an_agent(lab: Site) -> None:
    with lab.visit("12_you_are_the_agent.ipynb") as page:
        assert walk(page, "12_you_are_the_agent.ipynb") == ["Ask the model"]
        page.expect_problem("message: Your last reply cannot be used")
        cell = page.cell('workbench.cell("qir")').wait("attempt 2 of 3")
        cell.wait("Who directed Arrival?").wait("Turn a standalone question into triples")
        prompt = cell.output.locator(
            "details", has_text="The full prompt, as a model would receive it"
        )
        expect(prompt).to_have_count(1)
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
        cell.fill(cell.output.locator("#question"), "Who is the keeper of Otto?")
        cell.output.locator("#question").press("Enter")
        cell.wait("Maria Lopez")
        turn, box = cell.output.locator("#turn-0"), cell.output.locator("#question")
        expect(turn).to_be_in_viewport()
        cell.settle()
        assert box.bounding_box()["width"] > 0.9 * turn.bounding_box()["width"]  # type: ignore[index]
        cell.click(cell.output.locator(".chip", has_text="keeper of Ella"))
        expect(box).to_have_value("What is the keeper of Ella?")
        cell.click("Ask").wait("What is the keeper of Ella?")
        expect(cell.output.locator("#turn-1")).to_be_in_viewport()
        cell.click(cell.button("Open").last).wait("Supporting triples")
        cell.click("Open in the debugger").wait("entity retriever").click("Close the debugger")
        cell.click("Subgraph").wait("pale: not used").tab("Table").wait("supports")


def test_a_system_written_in_cells_is_stepped_edited_muted_and_compared(lab: Site) -> None:
    with lab.visit("14_your_own_system.ipynb") as page:
        assert walk(page, "14_your_own_system.ipynb") == []
        kept = page.cell('workbench.cell("choose_ends")').tab("Result").wait("Spirited Away")
        kept.tab("Attempts").wait("only three can be chosen")
        page.cell("run.go().fork().override").wait("all four").wait("The Boy and the Heron")
        page.cell("workbench.subgraph()").wait("Stephen King").tab("Table").wait("supports")
        page.cell("run.mute").wait("20 July 2001")
        page.cell("compare_runs").wait("tog 0.86")
        debugger = page.cell("workbench.debug()")
        debugger.click("To the start").wait("No answer yet")
        debugger.click("Step").click("Continue", until="Answered")
        assert "The Boy and the Heron" not in debugger.text
        debugger.row("choose ends").click()
        debugger.tab("Edit as a form", until="Use this result")


def run_agent(cell: Cell, source: str, results: dict[str, str]) -> None:
    """Run an agent by the button of its cell, if it is among these, and read its result."""
    agent = re.fullmatch(r'workbench\.cell\("(.+)"\)', source)
    if agent:
        cell.click("Run").wait(results[agent[1]])


def test_a_lost_question_opens_from_its_benchmark(lab: Site) -> None:
    with lab.visit("50_benchmark.ipynb") as page:
        assert walk(page, "50_benchmark.ipynb") == []
        page.cell('Report(folder / "fast")').wait("Where answers were lost")
        cell = page.cell("kgwb.debug(report").wait("the right answer is").wait("Inputs")
        blamed = cell.settle().output.locator(".tl [aria-current=step] .nm").inner_text()
        page.cell("lines = locate_losses").wait(blamed.replace(" ", "_"))
        cell.click("Run again").wait("Stopped on the way")
        cell.click("Continue").wait("Stopped on the way", gone=True)


def test_a_walk_is_run_hop_by_hop_and_its_debate_is_read(lab: Site) -> None:
    with lab.visit("40_dog.ipynb") as page:
        assert walk(page, "40_dog.ipynb", lambda *of: run_agent(*of, WALKED)) == []
        page.cell("workbench.subgraph()").wait("✓")
        page.cell("workbench.debug()").wait("Anne Hathaway")
        page.cell("kgwb.compare").wait("without focusing")


def test_a_local_graph_is_built_turn_by_turn_and_edited(lab: Site) -> None:
    with lab.visit("41_robodata.ipynb") as page:
        assert walk(page, "41_robodata.ipynb") == []
        turn = page.cell('run["turn[turn 6]"]').wait("8 nodes, 15 edges").wait("EVAL_LOCAL")
        expect(turn.output.locator("img[alt*='Hermann Weyl']")).not_to_have_count(0)
        page.cell('workbench.cell("produce")').wait("influenced by").tab("Attempts").wait(
            "accepted"
        )
        page.cell("workbench.subgraph()").wait("David Hilbert").tab("Table").wait("supports")
        cell = page.cell('workbench.cell("update")').wait("fetch_relationship_from_node")
        cell.tab("Edit as a form", until="Use this result")
        cell.fill(cell.output.locator("textarea, input[type=text]").first, "seen by a person")
        cell.click("Use this result", until="by hand").wait("seen by a person")
        page.cell("workbench.debug()").wait("by hand").wait("local graph")


def test_both_tools_are_used_and_the_answer_cites_them(lab: Site) -> None:
    with lab.visit("20_ragonite.ipynb") as page:
        assert walk(page, "20_ragonite.ipynb") == []
        tables = page.cell('workbench.cell("ragonite")').wait("birth_place")
        tables.click(tables.output.locator("summary", has_text="film_director")).wait(
            "CREATE TABLE"
        )
        page.cell('workbench.cell("sql")').wait("SELECT").wait("row")
        page.cell('workbench.cell("passages")').wait("Hayao Miyazaki")
        page.cell('workbench.cell("answerer")').wait("cited")
        page.cell("workbench.debug()").wait("Answer")


def test_what_is_wrong_is_said_in_the_cell_and_the_page_goes_on(lab: Site) -> None:
    cells = (BEGUN, "workbench.cell('execution')", "workbench.cell('qir')")
    with lab.visit(lab.server.write("wrong.ipynb", *cells)) as page:
        page.run_all()
        execution, qir = page.cell(1), page.cell(2)
        execution.click("Run").wait("done")
        for fold in ("The SPARQL it came from", "edit and run"):
            execution.click(execution.output.locator("summary", has_text=fold))
        sparql = execution.output.locator("textarea")
        for wrong in ("SELECT ?x WHERE {", "DELETE WHERE { ?s ?p ?o }"):
            execution.fill(sparql, wrong).click("Run query").wait("Failed")
            execution.fill(sparql, "SELECT ?s WHERE { ?s ?p ?o } LIMIT 3")
            execution.click("Run query").wait("3 rows").wait("Failed", gone=True)
        qir.click("Run again").settle().tab("Edit as a form").wait("Use this result")
        qir.fill(qir.output.locator("input[type=text]:visible").first, "")
        qir.click("Use this result").wait("Failed: ")
        page.expect_problem("message: Failed: ")
        qir.tab("Result").wait("Failed: ", gone=True)


def test_a_template_is_filled_and_a_retry_names_its_phase(lab: Site) -> None:
    with lab.visit("30_triad.ipynb") as page:
        assert walk(page, "30_triad.ipynb", lambda *of: run_agent(*of, FILLED)) == []
        page.cell("run.go()").wait("Jerry Goldsmith")
        debugger = page.cell("workbench.debug()").wait("try 1 · parsing: back to parsing")
        debugger.wait(
            "try 2 · parsing: back to parsing; changed: ⟨Arrival, production cost, ?cost⟩"
        )
        debugger.wait(
            "try 3 · parsing: back to parsing; changed: ⟨?budget, budget of film, Arrival⟩"
        )
