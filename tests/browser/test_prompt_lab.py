"""The walkthrough of the prompt lab, as a person does it: each half in at most three commands or clicks."""

from __future__ import annotations

import re

from browser.harness import Site
from browser.named import walk

FIXED = re.compile(r"\b[1-9]\d* fixed")
"""How many exactly depends on which embeddings are there."""


def test_from_a_measurement_to_its_first_cause_and_on_to_a_prompt_that_is_kept(lab: Site) -> None:
    with lab.visit("51_prompt_lab.ipynb") as page:
        assert walk(page, "51_prompt_lab.ipynb") == ["Keep"]
        cell = page.cell("PromptLab.measure").wait("Lost questions")
        cell.wait("the right answer is").wait("distributor")

        cell.tab("qir", until="You turn a question")
        editor = cell.output.locator("[id^=lab-form] textarea")
        cell.fill(editor, editor.input_value() + "\nRead slowly.")
        cell.click("Ask again").wait(FIXED)
        cell.click("Keep", until="Kept in my_prompts")

        kept = lab.server.folder / "notebooks" / "my_prompts" / "chatty_kg" / "qir.md"
        assert "Read slowly." in kept.read_text()
        history = page.cell("PromptHistory").run()
        history.wait(FIXED).wait("0 broken").wait("films-001")
