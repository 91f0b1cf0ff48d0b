"""A run as a person reads it: the answer, the agents in their stages, every step, and where time went."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from rdflib import Literal

from kgwb.errors import KgwbError
from kgwb.flow import Answer, Term
from kgwb.run.record import QUERIES, SEARCHES, Attempt, Call, Step, Totals
from kgwb.show.html import (
    KINDS,
    Html,
    aside,
    clean,
    count,
    div,
    dotted,
    fold,
    icon,
    join,
    kind_tile,
    note,
    seconds,
    section,
    short,
    span,
    spoken,
    state_sign,
    table,
    tag,
    with_style,
)
from kgwb.show.tell import line, outcome, says_more, view
from kgwb.show.terms import Around, around
from kgwb.show.text import NO_CALLS
from kgwb.show.views import answer_parts

if TYPE_CHECKING:
    from kgwb.run import Run

SIGNS = {
    "failed": ("bad", "failed"),
    "stale": ("stale", "stale"),
    "running": ("wait", "running"),
    "not run": ("off", "not run"),
    "not needed": ("off", "not needed"),
    "ahead": ("off", "ahead"),
    "unfinished": ("wait", "in progress"),
    "done": ("ok", "done"),
}
"""The icon and the word of each state of a step."""
WANTED = {
    "where": ("a place", {"a thing", "a text"}),
    "when": ("a time", {"a date", "a number", "a text"}),
    "who": ("somebody", {"a thing", "a text"}),
    "how many": ("a number", {"a number"}),
}
"""What question words ask for, and the kinds of values that can be that."""
STATUS = {
    "new": "Not run yet",
    "running": "Running",
    "paused": "Stopped on the way",
    "cancelled": "Cancelled",
    "failed": "Failed",
}


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a run stands: its steps, also those overtaken by an edit, and what is done to it now."""

    run: Run
    steps: Mapping[str, Step]
    states: Mapping[str, str] = field(default_factory=dict)
    """Of steps that are not simply done or failed, by key."""
    busy: str = ""
    failure: KgwbError | None = None
    before: Answer | None = None
    """The answer before the latest edit."""
    answer: Answer | None = None
    status: str = "done"
    totals: Totals = field(default_factory=Totals)

    @classmethod
    def of(cls, run: Run) -> Standing:
        """A run that nobody steps through."""
        return cls(run, run.by_key, {}, "", run.error, None, run.answer, run.status, run.totals)

    @property
    def stale(self) -> bool:
        return "stale" in self.states.values()

    @property
    def ended(self) -> bool:
        """Whether the run came to its end, and nothing was changed since."""
        return self.status == "done" and not self.stale

    def state(self, key: str) -> str:
        """One of SIGNS."""
        step = self.steps.get(key)
        if step is None:
            return "not needed" if self.ended else "not run"
        usual = "done" if step.done else "failed" if step.error else "unfinished"
        return self.states.get(key, usual)


def agent_of(key: str) -> str:
    """The agent's name in the key of a step."""
    return key.partition("[")[0].partition("#")[0]


def kind_at(run: Run, agent: str) -> str:
    """The kind of an agent; a person, where one plays it."""
    kind = run.system.kind(agent)
    return "person" if kind == "model" and run.model_name(agent) == "human" else kind


def subject_text(step: Step) -> str:
    """What a step is about, as words."""
    return clean(step.subject).replace("⟨", "").replace("⟩", "").replace("/", " · ")


def spent_text(step: Step, calls: Mapping[str, Call]) -> str:
    """ "1 model call · 2 queries · 0.3 ms"."""
    kinds = [calls[key].kind for key in step.calls if key in calls]
    counted = [
        (kinds.count("model") if calls else len(step.attempts), "model call"),
        (sum(kind in QUERIES for kind in kinds), "query"),
        (sum(kind in SEARCHES for kind in kinds), "label search"),
    ]
    return " · ".join([*(count(number, noun) for number, noun in counted if number), seconds(step.seconds)])


# --- the answer


def answer_state(standing: Standing) -> tuple[str, str, str, str]:  # noqa: PLR0911  # a case a state
    """Icon, word, the large text and what stands under it."""
    run, answer = standing.run, standing.answer
    if standing.busy:
        return "wait", f"{standing.busy[:1].upper()}{standing.busy[1:]}", "…", ""
    failure = standing.failure
    if failure is not None:
        what = failure.message.removeprefix(f"{run.system.name}/")
        return (
            "bad",
            "Failed",
            what[:1].upper() + what[1:],
            f"What to do: {failure.hint}" if failure.hint else "",
        )
    if standing.stale:
        before = f"before your edit: {standing.before}" if standing.before is not None else ""
        return "stale", "Stale", "Continue to see the answer after your edit", before
    if answer is None or standing.status != "done":
        return "off", STATUS.get(standing.status, standing.status), "No answer yet", ""
    spent = standing.totals
    calls, queries = count(spent.model_calls, "model call"), count(spent.queries, "query")
    cost = f"{seconds(spent.seconds)} · {calls} · {queries}"
    if answer.ungrounded:
        return (
            "none",
            "Not grounded",
            str(answer.text or ", ".join(answer.labels)),
            f"from the model's own knowledge · {cost}",
        )
    if answer:
        return (
            "ok",
            "Answered",
            clean(short(str(answer))),
            f"stands on {count(len(answer.support), 'triple')} · {cost}",
        )
    reason = answer.reason.removeprefix("not in this graph: ")
    return "none", "Not in this graph", "No answer in this graph", f"{reason} · {cost}" if reason else cost


def doubt(question: str, answer: Answer) -> str:
    """What is odd about an answer: "1967-10-03 is a date where a place was asked"."""
    asked = re.search(r"\b(where|when|who|how many)\b", question.casefold())
    if asked is None or not answer or answer.kind != "list":
        return ""
    wanted, fits = WANTED[asked[1]]
    odd = [(value.label, kind) for value in answer.values if (kind := _kind_of_value(value.term)) not in fits]
    if not odd:
        return ""
    shown = "; ".join(f"{short(label, 60)} is {kind}" for label, kind in odd[:3])
    return f"{shown} where {wanted} was asked"


def _kind_of_value(term: Term) -> str:
    if not isinstance(term, Literal):
        return "a thing"
    kind = str(term.datatype or "").rpartition("#")[2].casefold()
    if "date" in kind or kind.startswith("g") or re.fullmatch(r"-?\d{4}(-\d\d){0,2}", str(term)):
        return "a date"
    return "a number" if re.fullmatch(r"[-+]?[\d.,]+", str(term)) else "a text"


def answer_banner(standing: Standing, more: object = "", *, slim: bool = False) -> Html:
    """The answer, large, with its state and its cost."""
    sign, word, big, under = answer_state(standing)
    odd = doubt(standing.run.question, standing.answer) if sign == "ok" and standing.answer else ""
    if odd:
        sign, word, under = "none", "Answered, with doubt", f"{odd} · {under}"
    role = "alert" if sign == "bad" else "status"
    return div(
        f"answer {'run' if sign == 'wait' else sign}{' slim' if slim else ''}",
        icon(sign, "spin" if sign == "wait" else ""),
        div("big", tag("bdi", short(big, 1000))),
        div("under", span("word", word), join(" · ", tag("bdi", short(under, 1000))) if under else "", more),
        role=role,
    )


def set_up(run: Run) -> str:
    """ "chatty_kg · rules · fast"."""
    models = ", ".join(dict.fromkeys(model.name for model in run.models.values())) or "recorded replies"
    return f"{run.system.name} · {clean(models)} · {run.settings.profile}"


def head(run: Run) -> Html:
    """The question, and what answered it."""
    return div(
        "head", tag("h2", short(run.question, 1000), class_="question grow"), span("soft small", set_up(run))
    )


# --- the agents in their stages


def flow_strip(standing: Standing, chosen: str = "") -> Html:
    """The agents of the system by stage, lit as far as the run came; the timeline says the same in words."""
    stages = []
    for title, agents in standing.run.system.stages:
        nodes = [_node(standing, agent, agent == agent_of(chosen)) for agent in agents]
        stages.append(div("stage", span("caption", title), tag("ol", *nodes), style=f"--n:{len(agents)}"))
    return div("flow", *stages, aria_hidden="true")


def _node(standing: Standing, agent: str, chosen: bool) -> Html:
    run, kind = standing.run, kind_at(standing.run, agent)
    mine = [step for step in standing.steps.values() if step.agent == agent]
    states = {standing.state(step.key) for step in mine} or {standing.state(agent)}
    words = {
        "failed": "lit isbad",
        "stale": "isstale",
        "not needed": "unused",
        "done": "lit",
        "running": "lit",
    }
    state = next((state for state in words if state in states), "not run")
    stops = {agent, *(step.key for step in mine)} & run.breakpoints
    classes = {
        words.get(state, "waiting"): True,
        "ishand": any(step.origin == "by hand" for step in mine),
        "chosen": chosen,
        "stop": bool(stops),
    }
    times = span("times", f"×{len(mine)}") if len(mine) > 1 else ""
    tile = span(f"kind {kind}", icon("bad" if state == "failed" else kind), times)
    about = {"title": f"{spoken(agent)}: {KINDS[kind]}, {SIGNS[state][1]}", "tabindex": "-1"}
    name = span("name", spoken(agent))
    step = mine[0].key if mine else agent
    face = tag("button", tile, name, type="button", data_do="choose", data_arg=step, **about)
    return tag("li", face, class_=" ".join(["node", *(name for name, on in classes.items() if on)]))


# --- the timeline


class Row(NamedTuple):
    """A line of the timeline: a step, or an agent that has none, where its step would stand."""

    key: str
    step: Step | None
    depth: int


def rows_of(standing: Standing) -> list[Row]:
    """The steps in flow order, and among them the agents that have none."""
    system, depth = standing.run.system, {"": -1}
    for step in standing.steps.values():
        depth[step.key] = depth.get(step.parent, -1) + 1
    rows = [Row(step.key, step, depth[step.key]) for step in standing.steps.values()]
    order = [spec.name for spec in system.agents]
    above = {under: name for name, below in system.supervisors.items() for under in below}
    reached = {step.agent for step in standing.steps.values()}
    for agent in (name for name in order if name not in reached):
        level, over = 0, above.get(agent)
        while over:
            level, over = level + 1, above.get(over)
        place, supervisor = order.index(agent), above.get(agent)
        within = [
            n for n, row in enumerate(rows) if supervisor in (agent_of(row.key), above.get(agent_of(row.key)))
        ]
        before = [n for n in within or range(len(rows)) if order.index(agent_of(rows[n].key)) < place]
        at = max(before, default=-1) + 1
        level = min(level, rows[at - 1].depth + 1 if at else 0)
        while at < len(rows) and rows[at].depth > level:
            at += 1
        rows.insert(at, Row(agent, None, level))
    return rows


def timeline(standing: Standing, chosen: str) -> Html:
    """A line for each step: breakpoint, tile, name, outcome, and its time over a bar."""
    rows, run = rows_of(standing), standing.run
    above = {step.parent for step in standing.steps.values()} | {*run.system.supervisors}
    longest = max((row.step.seconds for row in rows if row.step and row.key not in above), default=0) or 1.0
    here = next((place for place, row in enumerate(rows) if row.key == chosen), 0)
    reached = {step.key for step in run.steps}
    now = max(
        (n for n, row in enumerate(rows) if row.key in reached and standing.state(row.key) != "stale"),
        default=-1,
    )
    lines = []
    for place, row in enumerate(rows):
        key = {here - 1: "k ArrowUp", here + 1: "j ArrowDown"}.get(place)
        lines.append(_line(standing, row, row.key == chosen, key, row.key in above, longest))
        if place == now and run.steps and not standing.ended:
            lines.append(tag("li", class_="cursor", aria_label="the run stands here"))
    return tag("ol", *lines, class_="tl", aria_label="steps of the run")


def _line(standing: Standing, row: Row, chosen: bool, key: str | None, above: bool, longest: float) -> Html:
    run, step, agent = standing.run, row.step, agent_of(row.key)
    state, kind = standing.state(row.key), kind_at(standing.run, agent)
    classes = {
        "chosen": chosen,
        "sup": above,
        "offrow": step is None,
        "isstale": state == "stale",
        "ahead": state == "ahead",
    }
    stop = not {row.key, agent}.isdisjoint(run.breakpoints)
    gutter = tag(
        "button",
        class_="gut",
        type="button",
        tabindex="-1",
        data_do="stop",
        data_arg=row.key,
        data_key="b" if chosen else None,
        aria_pressed=str(stop).lower(),
        aria_label=f"stop after {spoken(agent)}",
        title="stop here (b)",
    )
    words = row_outcome(standing, row, above)
    subject = f" {subject_text(step)}" if step is not None and step.subject else ""
    face = tag(
        "button",
        kind_tile(kind, small=True, hollow=not_asked(step, kind)),
        span("say", span("nm", spoken(agent)), row_sign(step, state, above), span("out cut", words)),
        _time(step, kind, longest) if not above else span("ms"),
        class_="go",
        type="button",
        tabindex="0" if chosen else "-1",
        data_do="choose",
        data_arg=row.key,
        data_key=key,
        title=f"{spoken(agent)}{subject}{': ' if words else ''}{words}",
        style=f"--d:{row.depth}",
        id=f"t-{row.key}",
        aria_current="step" if chosen else None,
    )
    return tag("li", gutter, face, class_=" ".join(name for name, on in classes.items() if on) or "trow")


def row_outcome(standing: Standing, row: Row, above: bool) -> str:
    """What stands beside the name: nothing for one that only supervises, or where a sign says it."""
    state = standing.state(row.key)
    if row.step is None:
        return "not needed" if state == "not needed" else ""
    return "" if above or state in ("stale", "failed") or not row.step.done else outcome(row.step)


def row_sign(step: Step | None, state: str, above: bool) -> Html:
    if state in ("failed", "stale", "running") and not above:
        return state_sign(*SIGNS[state])
    return state_sign("hand", "by hand") if step is not None and step.origin == "by hand" else Html()


def not_asked(step: Step | None, kind: str) -> bool:
    """Whether a step needed none of its model's replies."""
    return (
        kind == "model" and step is not None and step.done and not step.attempts and step.origin != "by hand"
    )


def _time(step: Step | None, kind: str, longest: float) -> Html:
    if step is None or step.origin == "by hand" or not (step.done or step.error):
        return span("ms")
    width = f"right:0;width:{min(100.0, max(2.0, step.seconds / longest * 100)):.1f}%"
    return span("ms", seconds(step.seconds), span(f"track {kind}", tag("i", class_=kind, style=width)))


# --- one step


def step_head(standing: Standing, key: str, controls: object = "") -> Html:
    """Tile, name, subject and state; under them kind, cost and model."""
    run, step, agent = standing.run, standing.steps.get(key), agent_of(key)
    kind, state = kind_at(run, agent), standing.state(key)
    sign, word = SIGNS[state]
    if step is not None and step.origin == "by hand" and state == "done":
        sign, word = "hand", "by hand"
    silent = not_asked(step, kind)
    facts = [span(f"kindword {kind}", KINDS[kind]), span("", "was not asked") if silent else ""]
    if step is not None and (step.done or step.error):
        facts.append(aside(spent_text(step, run.calls)))
        facts.append(aside(origin_text(step)) if step.calls else "")
        facts.append(aside(f"by {run.model_name(agent)}") if step.attempts else "")
    subject = span("soft cut", subject_text(step)) if step is not None and step.subject else ""
    purpose = run.system.spec(agent).purpose.replace("``", "")
    name = tag("h3", spoken(agent), class_="title", title=purpose)
    titles = div("row", name, subject, state_sign(sign, word, pill=True))
    return div(
        "head",
        kind_tile(kind, hollow=silent),
        div("grow", titles, div("row small", dotted(*facts))),
        controls,
    )


def origin_text(step: Step) -> str:
    """Whether a step asked anybody just now."""
    return {"record": "from the record", "live": "asked live"}.get(step.origin, "")


def step_notes(step: Step | None) -> Html:
    """What the agent remarked, and why it failed."""
    if step is None:
        return Html()
    notes = [note(text, kind="calm") for text in step.notes]
    if step.error:
        notes.append(note(tag("b", "Failed. "), step.error, kind="bad"))
    return div("body notes", *notes) if notes else Html()


def came_in(step: Step, around: Around) -> Html:
    """What came in, and which earlier step yielded it."""
    if not step.inputs:
        return div("body soft", "Nothing comes in.")
    parts = []
    for name, value in step.inputs.items():
        maker = maker_of(value, step, around.steps)
        origin = aside(f" from {spoken(agent_of(maker))}" if maker else " from the question")
        shown = view(value, around) if says_more(value) else div("body", tag("bdi", line(value)))
        parts.append(div("part", div("lead", tag("b", spoken(name)), origin), shown))
    return join(*parts)


def maker_of(value: object, step: Step, steps: Sequence[Step]) -> str:
    """Key of the earlier step that yielded what came in to a step; empty if it came from the question."""
    earlier = steps[: steps.index(step)] if step in steps else ()
    return next(
        (one.key for one in earlier if one.key != step.parent and one.done and one.output is value), ""
    )


def attempts(step: Step, calls: Mapping[str, Call]) -> Html:
    """The prompt as it was sent, the reply as it came, and each check by name."""
    shown = [attempt(number, one, calls.get(one.call)) for number, one in enumerate(step.attempts, 1)]
    return div("body stack", *shown) if shown else div("body soft", "This step asked no model.")


def attempt(number: int, made: Attempt, call: Call | None) -> Html:
    sign = state_sign("ok", "accepted") if made.accepted else state_sign("bad", "not accepted")
    checks = [
        div("row", state_sign("bad", check.name), span("", check.problem))
        if check.problem
        else state_sign("ok", check.name)
        for check in made.checks
    ]
    cost, sent = "", Html()
    if call is not None:
        reply = call.result
        tokens = f"{reply.prompt_tokens} + {reply.completion_tokens} tokens"
        cost = f"{call.request['model']} · {tokens} · {seconds(call.seconds)}"
        sent = fold(
            aside("the prompt as it was sent"),
            messages(call.request["content"]["messages"]),
            key=f"sent-{number}",
        )
    replied = tag("pre", made.reply, class_="src")
    return div(
        "stack tight",
        div("row", tag("b", f"Attempt {number}"), sign, aside(cost)),
        replied,
        div("row", *checks),
        sent,
    )


def messages(parts: Sequence[Sequence[str]]) -> Html:
    """The messages of a request, each under its role."""
    return tag("pre", *(join(span("role", role), text, "\n") for role, text in parts), class_="src")


# --- where the time went


class Spent(NamedTuple):
    """The time of one step without that of the steps it supervises, in seconds."""

    key: str
    depth: int
    model: float
    graph: float
    rest: float
    recorded: bool
    """Whether its calls came from the record: their time is what they took when they were made."""

    @property
    def total(self) -> float:
        return self.model + self.graph + self.rest


def spent(steps: Sequence[Step], calls: Mapping[str, Call]) -> tuple[Spent, ...]:
    """What each step took; the time of calls from the record is counted as it was when they were made."""
    below: dict[str, float] = {}
    depth: dict[str, int] = {}
    for step in steps:
        below[step.parent] = below.get(step.parent, 0.0) + step.seconds
        depth[step.key] = depth.get(step.parent, -1) + 1 if step.parent else 0
    shown = []
    for step in steps:
        made = [calls[key] for key in step.calls if key in calls]
        model = sum(call.seconds for call in made if call.kind == "model")
        graph = sum(call.seconds for call in made if call.kind not in ("model", "similarity"))
        own = max(0.0, step.seconds - below.get(step.key, 0.0))
        rest = max(0.0, own - model - graph) if step.origin == "live" else own
        shown.append(
            Spent(step.key, depth[step.key], model, graph, rest, bool(made) and step.origin == "record")
        )
    return tuple(shown)


def waterfall(steps: Sequence[Step], calls: Mapping[str, Call]) -> Html:
    """A bar a step, laid end to end, in model time, graph time and the rest. Nothing without steps."""
    rows = spent(steps, calls)
    whole = sum(row.total for row in rows)
    if not whole:
        return Html()
    begun, drawn = 0.0, []
    parts = (("model", "model"), ("graph", "sparql"), ("rest", "code"))
    for row in rows:
        widths = [("", begun / whole), *((kind, getattr(row, name) / whole) for name, kind in parts)]
        spans = (
            tag("i", class_=kind or None, style=f"width:{share * 100:.2f}%")
            for kind, share in widths
            if share
        )
        times = ", ".join(f"{name} {seconds(getattr(row, name))}" for name, _ in parts if getattr(row, name))
        name = span("cut", clean(row.key), style=f"padding-left:{row.depth}em", title=clean(row.key))
        drawn.append(
            div(
                "fall",
                name,
                span("lane", *spans),
                span("num", times + (" (recorded)" if row.recorded else "")),
            )
        )
        begun += row.total
    sums = ", ".join(f"{name} {seconds(sum(getattr(row, name) for row in rows))}" for name, _ in parts)
    said = f"{seconds(whole)} in all: {sums}. Steps are laid end to end, also those that ran side by side."
    return div("stack tight", *drawn, aside(said))


# --- static forms


def run_html(run: Run) -> str:
    """A run without a kernel: answer, what it stands on, and every step to unfold."""
    return with_style(section(run_body(run), data_static=True, aria_label=short(run.question)))


def run_body(run: Run) -> Html:
    standing, known = Standing.of(run), around(run)
    answer = run.answer
    stands_on = (
        div("body stack", *answer_parts(answer, known)) if answer is not None and run.status == "done" else ""
    )
    steps = tuple(_folded(standing, known))
    time = fold(aside("Where the time went"), waterfall(tuple(run.steps), run.calls))
    return join(
        head(run),
        answer_banner(standing),
        stands_on,
        flow_strip(standing),
        div("steps", *steps),
        div("band", time) if run.steps else "",
    )


def _folded(standing: Standing, around: Around, parent: str = "", depth: int = 0) -> Iterator[Html]:
    """The steps below one, each to unfold."""
    known = standing.steps
    for step in known.values():
        if (step.parent if step.parent in known else "") != parent:
            continue
        below = tuple(_folded(standing, around, step.key, depth + 1))
        kind = kind_at(standing.run, step.agent)
        state = standing.state(step.key)
        words = span("out cut", outcome(step) if step.done else "")
        name = span("say", span("nm", spoken(step.agent)), row_sign(step, state, False), words)
        tile = kind_tile(kind, small=True, hollow=not_asked(step, kind))
        face = span("go", tile, name, span("ms", seconds(step.seconds)))
        shown = tag(
            "details",
            tag("summary", face, style=f"--d:{depth}"),
            _inside(standing.run, step, around, bool(below)),
            *below,
            open=bool(step.error) or (bool(below) and depth < 1),
        )
        yield shown


def _inside(run: Run, step: Step, around: Around, supervises: bool) -> Html:
    """A step in full; one that supervises others only what came of it."""
    of_step = Around(around.names, around.prefixes, tuple(step.inputs.values()), around.steps)
    shown = view(step.output, of_step) if step.done and not supervises and says_more(step.output) else Html()
    inputs = table((), [(spoken(name), tag("bdi", line(value))) for name, value in step.inputs.items()])
    tried = (
        [fold(aside(count(len(step.attempts), "attempt")), attempts(step, run.calls))]
        if step.attempts
        else []
    )
    cost = div(
        "small",
        dotted(
            aside(clean(step.key)),
            aside(spent_text(step, run.calls)),
            aside(origin_text(step)) if step.calls else "",
        ),
    )
    about = div(
        "body stack tight",
        cost,
        fold(aside(count(len(step.inputs), "input")), inputs) if step.inputs else "",
        *tried,
    )
    return div("inside", step_notes(step), shown, about)


def step_html(step: Step, calls: Mapping[str, Call] = NO_CALLS) -> str:
    """One step alone: what it yielded, what came in, prompt and replies."""
    from kgwb.show.terms import names_in

    known = Around(names_in([step], calls), inputs=tuple(step.inputs.values()), steps=(step,))
    facts = dotted(
        aside(subject_text(step)),
        aside(spent_text(step, calls)),
        aside(origin_text(step)) if step.calls else "",
    )
    title = div("head", tag("h3", spoken(step.agent), class_="title"), facts)
    shown = view(step.output, known) if step.done else div("body soft", outcome(step))
    inputs = fold(aside(count(len(step.inputs), "input")), came_in(step, known)) if step.inputs else ""
    tried = fold(aside(count(len(step.attempts), "attempt")), attempts(step, calls)) if step.attempts else ""
    return with_style(section(title, step_notes(step), shown, div("band", inputs, tried), data_static=True))


def record_html(value: object, names: Mapping[str, str] | None = None) -> str:
    """A record as HTML that stands alone; ``names`` are display names by IRI."""
    return with_style(section(view(value, Around(names or {})), data_static=True))
