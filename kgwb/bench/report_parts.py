"""The figures of a report: what was measured, charts, published figures, and the table of questions."""

from __future__ import annotations

import shlex
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from kgwb.bench.cost import summarize_costs
from kgwb.bench.figures import (
    MEASURE_LABELS,
    AllResults,
    LoadedResults,
    distinct_groups,
    distinct_keys,
)
from kgwb.bench.metrics import is_iri, score_row
from kgwb.bench.results import (
    BenchRow,
    flatten_config,
    get_label,
    get_verdict,
    is_lost,
)
from kgwb.errors import InputError
from kgwb.llm.rules import BASELINE_REMARK
from kgwb.run import systems
from kgwb.show import html as h
from kgwb.show.html import ChartBar, Html, tag
from kgwb.show.run_state import ANSWER_STATE_ICONS, RIGHT, UNANSWERED, WRONG
from kgwb.text import and_more, format_seconds, pluralize, shorten, single_line, tell_apart

PUBLISHED_FIGURES_FILE = Path(__file__).with_name("published.toml")
SETUP_ENTRIES = ("kgwb", "system", "models", "source", "kg", "embeddings", "questions")
"""Entries of a configuration that are shown first."""
MAX_SHOWN_VALUES = 5
"""Values, or rows of a table, that are shown of an answer."""
MAX_LABEL_BESIDE_IRI = 80
"""Characters of a label that has its IRI beside it."""
LinkToRun = Callable[[LoadedResults, BenchRow, object], Html | None]
"""Returns a text as a link to the page of a row's run; None if the run was not saved."""


def render_verdict_badges(results: LoadedResults) -> Iterator[Html]:
    """Yield a badge for each state of an answer, with the number of questions in this state.

    Right, wrong and unanswered are always there; the others are left out if there are none. They
    are in the order of ANSWER_STATE_ICONS.
    """
    always_shown = (RIGHT, WRONG, UNANSWERED)
    verdicts = map(get_verdict, results.rows.values())
    counts = Counter(verdicts)
    for verdict, icon in ANSWER_STATE_ICONS.items():
        count = counts[verdict]
        if count or verdict in always_shown:
            text = f"{count} {verdict}"
            yield h.state_badge(icon, text, pill=True)


# --- what was measured


def render_setup(all_results: AllResults, details: bool = False) -> Html:
    """Render a table of the configurations, a column for each folder; values that differ are marked.

    The table has SETUP_ENTRIES, or with ``details`` everything else. An entry that a folder lacks
    is "–".
    """
    headers = [""]
    configs = []
    for results in all_results:
        headers.append(results.name)
        configs.append(flatten_config(results.config))
    rows = []
    for name in distinct_keys(configs):
        is_detail = name.partition(" ")[0] not in SETUP_ENTRIES
        if is_detail != details:
            continue
        values: list[object] = [str(config.get(name, "–")) for config in configs]
        if len(set(values)) > 1:
            values = [tag("mark", value) for value in values]
        rows.append((name, *values))
    # All of them: what is left out could be what differs.
    return h.table(headers, rows, max_rows=len(rows))


def find_model_remarks(all_results: AllResults) -> list[str]:
    """Return remarks on the models: that ``rules`` is only a baseline, and that several versions answered.

    The first is there if an agent used ``rules``. A pipeline that asks its own clients leaves it
    unused, though it is the default.
    """
    remarks = []
    if any(map(_has_used_rules, all_results)):
        remarks.append(BASELINE_REMARK)
    for results in all_results:
        remarks += results.version_remarks
    return remarks


def _has_used_rules(results: LoadedResults) -> bool:
    """Return whether an agent used the model ``rules``, as the rows say.

    If no row names its models, as in early versions, the configuration decides.
    """
    if "rules" not in results.model_specs.values():
        return False
    used_models = [row["models"] for row in results.rows.values() if "models" in row]
    return not used_models or any("rules" in models for models in used_models)


def command_for(results: LoadedResults) -> str:
    """Return the ``kgwb bench`` command that measures the same again, as text for a shell.

    Settings are given as far as they differ from the profile. FILE and DIR stand for the questions
    and the new folder: the results do not hold them. Prompts and embeddings are not in it. A system
    that is not installed has its settings compared with the common defaults.
    """
    entries = flatten_config(results.config)
    source = str(results.config.get("source"))
    system = str(results.config.get("system"))
    profile = str(entries.get("settings profile", "fast"))
    words = ["kgwb", "bench", "--kg", source, "--system", system]
    for agent, model in results.model_specs.items():
        if agent:
            words.append("--agent-model")
            words.append(f"{agent}={model}")
        else:
            words.append("--model")
            words.append(model)
    words.append("--profile")
    words.append(profile)
    for setting, value in _list_changed_settings(entries, system, profile):
        words.append("--set")
        words.append(f"{setting}={value}")
    command = shlex.join(map(single_line, words))
    return f"{command} --questions FILE --out DIR"


def _list_changed_settings(
    entries: Mapping[str, Any], system: str, profile: str
) -> Iterator[tuple[str, Any]]:
    """Yield the settings of a flat configuration that differ from those of the profile."""
    known_system = ""
    if system in systems.list_systems():
        known_system = system
    profile_settings = systems.profile(profile, system=known_system)
    defaults = profile_settings.to_data()
    for name, value in entries.items():
        kind, _, setting = name.partition(" ")
        if kind == "settings" and value != defaults.get(setting):
            yield setting, value


# --- charts


def render_f1_chart(all_results: AllResults) -> Html:
    """Render a bar chart of F1 with its interval, for all questions and for each kind of question.

    The bars of one kind stand together, one for each folder. Questions without gold do not count;
    kinds without any gold have no bar.
    """
    bars = []
    for name in distinct_groups(all_results):
        for number, results in enumerate(all_results):
            group = results.groups.get(name)
            f1 = group.estimate("f1") if group else None
            if group is None or f1 is None:
                continue
            questions = pluralize(len(group.rows) - group.without_gold, "question")
            bar = ChartBar(
                label=name + results.label_suffix,
                value=f1.value,
                value_text=f"{f1.value:.3f} ({questions})",
                interval_low=f1.low,
                interval_high=f1.high,
                series=number,
            )
            bars.append(bar)
    title = "Strict F1 by kind of question, with its interval"
    return h.bar_chart(title, bars, 1.0)


def render_seconds_chart(all_results: AllResults) -> Html:
    """Render a bar chart of the seconds of a question: in all, and by each stage, for each folder.

    A bar is the median, and its line goes on to the 95th percentile.
    """
    bars = []
    for number, results in enumerate(all_results):
        for name, cost in summarize_costs(results.rows.values()).items():
            if not name.startswith("seconds"):
                continue
            stage = name.partition(", ")[2] or "in all"
            median = format_seconds(cost.median)
            p95 = format_seconds(cost.p95)
            bar = ChartBar(
                label=stage + results.label_suffix,
                value=cost.median,
                value_text=f"{median}, 95 % within {p95}",
                interval_low=cost.median,
                interval_high=cost.p95,
                series=number,
            )
            bars.append(bar)
    title = "Seconds a question by stage: the median, and a line to the 95th percentile"
    return h.bar_chart(title, bars)


def has_losses(all_results: AllResults) -> bool:
    """Return whether the cause of a lost answer is known."""
    return any(results.losses_by_agent for results in all_results)


def render_loss_chart(all_results: AllResults) -> Html:
    """Render a bar chart of the answers that each agent lost, over all its stages, for each folder.

    Reasons for which no agent is known have bars, too. Empty without losses.
    """
    bars = []
    for number, results in enumerate(all_results):
        totals: Counter[str] = Counter()
        for (agent, _), counts in results.losses_by_agent.items():
            totals[agent] += counts[""]
        for agent, total in totals.items():
            label = agent + results.label_suffix
            bars.append(ChartBar(label, total, str(total), 0, 0, number))
    return h.bar_chart("Answers lost, by agent", bars)


# --- published figures


def render_published(all_results: AllResults, name: str) -> Html:
    """Render the figures that papers print for a question set, beside those measured here.

    ``name`` is a set of published.toml, which comes with kgwb. The person who makes the report
    names it: the results do not tell which questions were asked. A warning is shown if the number
    of questions differs. Raises InputError for an unknown set.
    """
    data = tomllib.loads(PUBLISHED_FIGURES_FILE.read_text(encoding="utf-8"))
    known_sets = data["sets"]
    if name not in known_sets:
        raise InputError(
            f"kgwb has no published figures for a question set named {name!r}",
            hint=f"name one of {', '.join(known_sets)} with --published, or leave --published out",
        )
    question_set = known_sets[name]
    warnings = []
    rows: dict[tuple[object, ...], None] = {}
    for results in all_results:
        count = len(results.rows)
        published_count = question_set.get("questions", count)
        if count != published_count:
            warnings.append(
                f"{results.name} has {count:,} questions, the published set {published_count:,}: "
                "these figures are not of the same questions."
            )
    for entry in data["published"]:
        if entry["set"] == name:
            rows.update(dict.fromkeys(_rows_beside(entry, all_results)))
    headers = ("questions", "measure", "per cent", "system", "source", "how it was measured")
    return h.render_template(
        "bench/templates/published.html",
        question_set=question_set["name"],
        warnings=warnings,
        table=h.table(headers, rows),
    )


def _rows_beside(entry: Mapping[str, Any], all_results: AllResults) -> Iterator[tuple[object, ...]]:
    """Yield the rows of a table for an entry of published.toml: measured figures first, then published ones.

    A row has the group of questions, the measure, the figure in per cent with two digits, the
    system, the source, and how it was measured. Folders without the figure have no row.
    """
    questions = entry.get("group", "all")
    measure = entry["measure"]
    label = MEASURE_LABELS[measure]
    for results in all_results:
        group = results.groups.get(questions)
        figure = group.estimate(measure) if group else None
        if figure:
            percent = f"{100 * figure.value:.2f}"
            value = tag("b", percent)
            name = tag("b", results.name)
            how = f"as {label}"
            yield questions, label, value, name, "measured here", how
    source = f"published: {entry['source']}"
    if "note" in entry:
        note = entry["note"]
        source = f"{source}; {note}"
    how = entry["how"]
    for system, printed in entry["figures"].items():
        percent = f"{printed:.2f}"
        yield questions, label, percent, system, source, how


# --- every question


def render_verdict(row: BenchRow) -> Html:
    """Render the state of a row's answer as a badge."""
    verdict = get_verdict(row)
    return h.state_badge(ANSWER_STATE_ICONS[verdict], verdict)


def name_values(rows: Iterable[BenchRow]) -> dict[str, str]:
    """Return the shown name of each value among the answers and the gold of some rows, by the value.

    An IRI whose label is also that of another value has its IRI added: "Dune (http://e/dune2)".
    """
    labels: dict[str, str] = {}
    for row in rows:
        values = list(row["answers"])
        values += row["gold"] or ()
        for value in values:
            labels.setdefault(value, get_label(row, value))

    def shown_label(value: str) -> str:
        return shorten(labels[value])

    def label_with_iri(value: str) -> str:
        if not is_iri(value):
            return shown_label(value)
        label = shorten(labels[value], MAX_LABEL_BESIDE_IRI)
        return f"{label} ({value})"

    forms = (shown_label, label_with_iri)
    return tell_apart(labels, forms)


def render_answers(row: BenchRow, names: Mapping[str, str]) -> Html:
    """Render the verdict on a row as a badge, and below it the answers or the error.

    A lost answer that should be a table also has the F1 of each gold column, and an answer from a
    result that a limit cut says so. ``names`` are those of ``name_values``.
    """
    parts = [h.div("", render_verdict(row))]
    if row["error"]:
        error = shorten(row["error"])
        parts.append(h.note(error, level="bad"))
    else:
        answers = render_values(row, "answers", names)
        parts.append(answers)
    scores = row.get("by_column")
    if scores and is_lost(row):
        by_column = _format_column_scores(scores)
        parts.append(h.div("soft", f"by column: {by_column}"))
    cut_rows = row.get("cut_rows")
    if cut_rows:
        cut = f"the result of its query was cut at {pluralize(cut_rows, 'row')}"
        parts.append(h.div("soft", cut))
    return h.join(*parts)


def _format_column_scores(scores: Mapping[str, float]) -> str:
    """Return the F1 of each gold column: "film 1.00, year 0.50"."""
    texts = []
    for column, score in scores.items():
        texts.append(f"{column} {score:.2f}")
    return ", ".join(texts)


def render_values(row: BenchRow, name: str, names: Mapping[str, str]) -> Html:
    """Render the "answers" or the "gold" of a row, whichever ``name`` says.

    Vertices are links with their names (``name_values``); values of several columns are a table. Of
    more than MAX_SHOWN_VALUES values or rows, the first are shown, with the number of the others.
    Without values it says "none", and "not known" for missing gold.
    """
    values = row[name]
    if values is None:
        return h.muted_text("not known")
    if not values:
        return h.muted_text("none")
    table_name = "table" if name == "answers" else "gold_table"
    table = row.get(table_name)
    if not table:
        table = [[value] for value in values]
    rendered_rows = []
    for cells in table[:MAX_SHOWN_VALUES]:
        rendered_rows.append([_render_value(cell or "", names) for cell in cells])
    if len(table[0]) > 1:
        rendered = h.table((), rendered_rows)
    else:
        lines = [h.div("", *cells) for cells in rendered_rows]
        rendered = h.join(*lines)
    omitted = and_more(len(table) - MAX_SHOWN_VALUES)
    return h.join(rendered, omitted)


def render_gold(row: BenchRow, names: Mapping[str, str]) -> Html:
    """Render the gold of a row, and below it what counts as right, if the question set says it."""
    parts = [render_values(row, "gold", names)]
    if row.get("right"):
        parts.append(h.div("soft", f"right: {row['right']}"))
    return h.join(*parts)


def _render_value(value: str, names: Mapping[str, str]) -> Html | str:
    """Render an IRI as a link with its name. Return any other value as text, shortened."""
    if is_iri(value):
        return h.iri_link(value, names.get(value, value))
    return shorten(value)


def render_question_table(all_results: AllResults, link: LinkToRun) -> Html:
    """Render a table with a row for each question of any folder, and columns for each folder's result.

    A question that a folder lacks is "not asked" there. The script of the page sorts and filters
    the rows.
    """
    titles = ["id", "hops", "type", "question", "gold"]
    for results in all_results:
        for title in ("answers", "F1", "lost at", "run"):
            titles.append(title + results.label_suffix)
    headers = []
    for title in titles:
        button = tag("button", title)
        headers.append(tag("th", button))
    ids = distinct_keys(results.rows for results in all_results)
    rows = []
    for number, id_ in enumerate(ids, 1):
        rows.append(_render_question(number, id_, all_results, link))
    head = tag("thead", tag("tr", *headers))
    body = tag("tbody", *rows)
    return tag("table", head, body, id="questions")


def _render_question(number: int, id_: str, all_results: AllResults, link: LinkToRun) -> Html:
    """Render a question as a table row: id, hops, type, wording, gold, and the cells of each folder.

    What describes the question is of the first folder that has it. Its CSS classes are what the
    page's filter looks for: "lost" and "error", if that happened in one of the folders, and
    "differs", if F1 is not the same in all. A folder without it says "not asked".
    """
    rows = [results.rows[id_] for results in all_results if id_ in results.rows]
    first_row = rows[0]
    names = name_values(rows)
    cells = [
        shorten(id_),
        first_row.get("hops", ""),
        first_row.get("type", ""),
        shorten(first_row["question"]),
        render_gold(first_row, names),
    ]
    classes = []
    scores: set[float | None] = set()
    for results in all_results:
        row = results.rows.get(id_)
        if row is None:
            cells += ["not asked", "", "", ""]
            scores.add(None)
            continue
        cells += _result_cells(results, row, names, link)
        scores.add(row.get("f1"))
        if is_lost(row):
            classes.append("lost")
        if row["error"]:
            classes.append("error")
    if len(scores) > 1:
        classes.append("differs")
    table_cells = [tag("td", cell) for cell in cells]
    return tag("tr", *table_cells, id=f"question-{number}", class_=" ".join(classes))


def _result_cells(
    results: LoadedResults, row: BenchRow, names: Mapping[str, str], link: LinkToRun
) -> Sequence[object]:
    """Return the cells of one folder: answers, F1, the agent that lost the answer, and the run with its time.

    The third has the reason if no agent is known, and is empty without a loss. The run is a link,
    or "not saved".
    """
    scores = score_row(row)
    f1 = ""
    if scores:
        f1 = f"{scores.f1:.2f}"
    loss = results.losses_by_id.get(row["id"], {})
    lost_at = loss.get("agent") or loss.get("why") or ""
    saved_run = link(results, row, "run") or h.muted_text("not saved")
    duration = h.muted_text(_format_duration(row))
    return (
        render_answers(row, names),
        f1,
        lost_at,
        h.join(saved_run, " ", duration),
    )


def _format_duration(row: BenchRow) -> str:
    """Return how long a question took, and how long of it its models were waited for."""
    duration = format_seconds(row["seconds"])
    waiting_s = row.get("model_seconds")
    if not waiting_s:
        return duration
    waiting = format_seconds(waiting_s)
    return f"{duration}, of it {waiting} waiting for models"
