"""What a page draws of a widget's states, which it unpacks one after the other, with a model in place of a kernel's."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from kgwb.ui.live import load_script

RESTARTED = "The kernel was restarted: run this cell again."
WIDGET = """async (script) => {
    const load = (text) => import(URL.createObjectURL(new Blob([text], { type: "text/javascript" })));
    const listeners = {};
    const state = {};
    window.sent = [];
    window.model = {
        get: (name) => state[name], set() {}, off() {},
        on: (name, does) => { listeners[name] = does },
        send: (message) => { sent.push(message) },
    };
    window.change = (packed, isTold = true) => {
        state.packed = new DataView(new Uint8Array(packed).buffer);
        if (isTold) listeners["change:packed"]?.();
    };
    window.draw = async () => {
        const el = document.createElement("div");
        document.body.replaceChildren(el);
        return (await load(script)).default.render({ model, el });
    };
}"""


def state(text: str) -> list[int]:
    """A state as Python packs it."""
    return list(zlib.compress(f'<section class="kg" data-say="{text}">{text}</section>'.encode()))


@pytest.fixture
def blank(chromium: Browser) -> Iterator[Any]:
    context = chromium.new_context()
    opened = context.new_page()
    wrong: list[str] = []
    opened.on("pageerror", lambda error: wrong.append(str(error)))
    opened.evaluate(WIDGET, load_script())
    yield opened
    assert wrong == []
    context.close()


def test_of_two_states_in_a_row_the_latter_is_drawn_and_an_equal_one_hides_none(blank: Page) -> None:
    blank.evaluate("async (first) => { change(first); await draw() }", state("first"))
    expect(blank.locator(".kg")).to_have_text("first")
    blank.evaluate("states => states.forEach(one => change(one))", [state("2"), state("3")])
    expect(blank.locator(".kg")).to_have_text("3")
    # Backbone tells of no change if a state is sent once more, as revive() asks for.
    blank.evaluate("packed => { change(packed); change(packed, false) }", state("4"))
    expect(blank.locator(".kg")).to_have_text("4")


def test_a_state_that_came_before_the_kernel_was_lost_is_drawn_with_the_note(blank: Page) -> None:
    blank.evaluate(
        """async (packed) => {
            model.send = () => { throw new Error("the kernel is gone") };
            change(packed);
            await draw();
        }""",
        state("drawn before"),
    )
    expect(blank.locator(".kg")).to_have_text(f"{RESTARTED}drawn before")
    expect(blank.get_by_role("status")).to_have_text(RESTARTED)
    expect(blank.locator(".kg")).to_have_attribute("aria-busy", "false")


def test_a_view_that_is_removed_before_it_is_drawn_sends_nothing_more(blank: Page) -> None:
    blank.evaluate(
        """async (packed) => {
            change(packed);
            const remove = await draw();
            document.body.replaceChildren();
            remove();
        }""",
        state("gone"),
    )
    blank.wait_for_function("sent.length === 2")
    assert blank.evaluate("sent.map(({ do: name }) => name)") == ["shown", "gone"]
