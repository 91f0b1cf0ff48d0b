"""What the prompt lab lists: the questions that were lost, the earlier retries, and what was kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from kgwb.bench.figures import LoadedResults, find_pass_rates, show_folder_name
from kgwb.bench.lab import PastRetry, PromptHistory
from kgwb.bench.report_parts import name_values, render_answers, render_gold
from kgwb.bench.results import BenchRow, is_lost
from kgwb.show import html as h
from kgwb.show.html import Html
from kgwb.text import display_name, pluralize
from kgwb.ui.live import text_input

NOT_BLAMED = "no agent is known (kgwb bench --ladder finds it)"


def render_lost_questions(results: LoadedResults, *, has_links: bool) -> Html:
    """Render the lost questions in a section for each blamed agent, sorted by kind in it.

    Agents that lost most come first. With ``has_links`` a click on a question opens it in the
    debugger. Nothing is rendered if no question was lost.
    """
    groups: dict[str, list[BenchRow]] = {}
    for id_, row in results.rows.items():
        if is_lost(row):
            loss = results.losses_by_id.get(id_, {})
            agent = loss.get("agent") or ""
            groups.setdefault(agent, []).append(row)
    if not groups:
        return Html()

    def rank(agent: str) -> tuple[int, str]:
        """Return the sort key of an agent: most lost questions first, then by name."""
        return -len(groups[agent]), agent

    parts = []
    for agent in sorted(groups, key=rank):
        rows = groups[agent]
        title = display_name(agent) or NOT_BLAMED
        table = _render_rows(rows, results.question_titles, has_links=has_links)
        count = h.muted_text(pluralize(len(rows), "question"))
        summary = h.join(title, " ", count)
        part = h.collapsible(summary, table, expanded=True, key=f"lost-{agent}")
        parts.append(part)
    caption = h.div("caption", "Lost questions, by the agent that is blamed")
    return h.join(caption, *parts)


def _render_rows(rows: Sequence[BenchRow], titles: Mapping[str, str], *, has_links: bool) -> Html:
    """Render a table of lost questions with kind, question, answer and gold, sorted by kind.

    ``titles`` are the texts of the questions by id. With ``has_links`` a question is a button.
    """
    table_rows = []
    for row in sorted(rows, key=_kind_of):
        question = _render_question(row["id"], titles, has_links=has_links)
        names = name_values([row])
        answers = render_answers(row, names)
        gold = render_gold(row, names)
        table_rows.append((_kind_of(row), question, answers, gold))
    table = h.table(("kind", "question", "answer", "gold"), table_rows)
    return h.div("across cells", table)


def _render_question(id_: str, titles: Mapping[str, str], *, has_links: bool) -> object:
    """Return the title of a question; with ``has_links``, a button that opens its run.

    It is opened in the debugger, at the step to blame.
    """
    if not has_links:
        return titles[id_]
    return h.button(
        titles[id_],
        "open",
        class_="ghost",
        arg=f"0 \t{id_}",
        title="open it in the debugger, at the step to blame",
    )


def render_lucky_questions(results: LoadedResults, *, has_links: bool) -> Html:
    """Render a collapsed table of the questions that are right by luck, with their rates.

    A question is right by luck if it was asked several times, and some answers were right and
    others were not. Those most often right come first. With ``has_links`` a click opens the first
    run in the debugger. Nothing is rendered if there are none.
    """
    lucky = []
    for id_, rate in find_pass_rates(results).items():
        if rate.is_luck:
            lucky.append((id_, rate))
    if not lucky:
        return Html()
    lucky.sort(key=lambda entry: -entry[1].chance_of_all(1))
    rows = []
    for id_, rate in lucky:
        question = _render_question(id_, results.question_titles, has_links=has_links)
        rows.append((question, rate))
    table = h.table(("question", "right, with its interval"), rows)
    count = pluralize(len(rows), "question")
    title = h.join("Right by luck ", h.muted_text(count))
    body = h.div("across cells", table)
    return h.collapsible(title, body, key="lucky")


def _kind_of(row: BenchRow) -> str:
    """Return the type and the hops of a question, as far as they are known: "count, 2 hops"."""
    parts = []
    if "type" in row:
        parts.append(str(row["type"]))
    hops = row.get("hops")
    if isinstance(hops, int):
        parts.append(pluralize(hops, "hop"))
    elif "hops" in row:
        parts.append(f"{hops} hops")
    return ", ".join(parts)


def render_retries(retries: Sequence[PastRetry]) -> Html:
    """Render a collapsed table of earlier retries, each with a button to start from it.

    Nothing is rendered if there are none.
    """
    rows = []
    for retry in retries:
        start = h.button(
            "Start from it",
            "start",
            class_="ghost",
            arg=retry.folder.name,
            title="show it, and take its prompts into the editor",
        )
        began = retry.began.isoformat(" ", "minutes")
        rows.append((began, retry.name, retry.note, retry.effect, start))
    titles = ("date", "changed", "note", "effect", "")
    table = h.div("across", h.table(titles, rows))
    title = h.join("Earlier retries ", h.muted_text(len(rows)))
    return h.collapsible(title, table, key="retries") if rows else Html()


def render_keep_form(folders: Sequence[Path], kept_folder: str) -> Html:
    """Render the form that keeps the prompts of one of these retries; nothing without any.

    Below it, collapsed, is the history of ``kept_folder``, the folder in which they are kept.
    """
    if not folders:
        return Html()
    options = []
    for folder in reversed(folders):
        shown_name = show_folder_name(folder)
        option = h.tag("option", shown_name, value=str(folder))
        options.append(option)
    choice = h.tag("select", *options, name="winner", aria_label="the retry whose prompts are kept")
    folder_input = text_input("kept_folder", "the folder in which prompts are kept", kept_folder)
    note_input = text_input("kept_note", "a note", placeholder="why")
    form = h.tag(
        "form",
        h.tag("label", h.span("", "the prompts of"), choice, class_="f grow"),
        h.tag("label", h.span("", "in folder"), folder_input, class_="f"),
        h.tag("label", h.span("", "note"), note_input, class_="f grow"),
        h.button("Keep", "keep", class_="primary"),
        class_="row ends",
        data_do="keep",
        id="keep-form",
    )
    history = PromptHistory(kept_folder)
    if not history.changes:
        return h.div("body stack", form, Html())
    rows = history.to_table()
    count = pluralize(len(rows.rows), "change")
    title = h.join(f"Kept in {kept_folder} ", h.muted_text(count))
    undo = h.button("Undo the latest", "undo", class_="ghost")
    table = h.div("across", rows.render())
    listed = h.collapsible(title, table, undo, key="kept")
    return h.div("body stack", form, listed)
