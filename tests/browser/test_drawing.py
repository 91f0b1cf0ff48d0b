"""What a page draws of a widget's states, which it unpacks one after the other, with a model in place of a kernel's."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from kgwb.ui.live import load_script, read_scripts

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
    window.show = async (script, times) => {
        const { default: widget } = await load(script);
        document.body.replaceChildren();
        for (let count = 0; count < times; count++) {
            const el = document.body.appendChild(document.createElement("div"));
            await widget.render({ model, el }).catch(() => {});
        }
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


def test_of_two_states_in_a_row_the_latter_is_drawn_and_an_equal_one_hides_none(
    blank: Page,
) -> None:
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


def test_the_script_is_loaded_once_and_a_widget_without_it_says_so_until_it_is_there(
    blank: Page,
) -> None:
    loader = read_scripts("loader.js")
    blank.evaluate(
        """([packed, script]) => {
            change(packed);
            window.asked = 0;
            const shared = { script, style: ".kg { color: rgb(1, 2, 3) }" };
            model.widget_manager = { get_model: async () => {
                if (!asked++) throw new Error("widget model not found");
                return { get: (name) => shared[name] };
            } };
        }""",
        [state("drawn"), load_script()],
    )
    blank.evaluate("loader => show(loader, 1)", loader)
    expect(blank.get_by_text("widget model not found")).to_be_visible()
    blank.evaluate("loader => show(loader, 2)", loader)
    expect(blank.locator(".kg")).to_have_text(["drawn", "drawn"])
    expect(blank.locator(".kg").first).to_have_css("color", "rgb(1, 2, 3)")
    assert blank.evaluate("asked") == 2
    assert blank.locator("style").count() == 1

    blank.evaluate(
        "loader => { delete globalThis.DecompressionStream; kgwbLoaded.clear(); return show(loader, 1) }",
        loader,
    )
    expect(blank.get_by_text("DecompressionStream")).to_be_visible()
