"""A run as a person reads it: the answer, the agents in their stages, every step, and where time went."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from rdflib import Literal

from kgwb.display import as_html
from kgwb.errors import KgwbError
from kgwb.flow import CANNOT_EXPRESS, NOT_HERE, Answer
from kgwb.run import Run
from kgwb.run.record import Call, Step, Totals, by_supervisor
from kgwb.show import html as h
from kgwb.show.html import Html
from kgwb.show.tell import answer_parts, line, outcome, says_more, view
from kgwb.show.terms import Around, around, names_in, names_of, triple_text
from kgwb.show.text import cost_of
from kgwb.text import display_name, format_seconds, pluralize, shorten, single_line

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
LOOKS = {
    "failed": "lit isbad",
    "stale": "isstale",
    "not needed": "unused",
    "done": "lit",
    "running": "lit",
}
"""How an agent looks in the flow strip by the first of these states that one of its steps has."""
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
    return single_line(step.subject).replace("⟨", "").replace("⟩", "").replace("/", " · ")


def answer_state(standing: Standing) -> tuple[str, str, str, str]:
    """Icon, word, the large text and what stands under it."""
    run, answer, failure = standing.run, standing.answer, standing.failure
    if standing.busy:
        return "wait", f"{standing.busy[:1].upper()}{standing.busy[1:]}", "…", ""
    if failure is not None:
        what = failure.message.removeprefix(f"{run.system.name}/")
        hint = f"What to do: {failure.hint}" if failure.hint else ""
        return "bad", "Failed", what[:1].upper() + what[1:], hint
    if standing.stale:
        before = f"before your edit: {standing.before}" if standing.before is not None else ""
        return "stale", "Stale", "Continue to see the answer after your edit", before
    if answer is None or standing.status != "done":
        return "off", STATUS.get(standing.status, standing.status), "No answer yet", ""
    return _outcome_of(answer, standing.totals)


def _outcome_of(answer: Answer, spent: Totals) -> tuple[str, str, str, str]:
    calls, queries = pluralize(spent.model_calls, "model call"), pluralize(spent.queries, "query")
    cost = f"{format_seconds(spent.seconds)} · {calls} · {queries}"
    if answer.ungrounded:
        words = str(answer.text or ", ".join(answer.labels))
        return "none", "Not grounded", words, f"from the model's own knowledge · {cost}"
    if answer:
        stands_on = f"stands on {pluralize(len(answer.support), 'triple')} · {cost}"
        return "ok", "Answered", single_line(shorten(str(answer))), stands_on
    reason = answer.reason.removeprefix(f"{NOT_HERE}: ")
    if reason.startswith(CANNOT_EXPRESS):
        return "none", "Not answered", "The question was not answered", f"{reason} · {cost}"
    return (
        "none",
        "Not in this graph",
        "No answer in this graph",
        f"{reason} · {cost}" if reason else cost,
    )


WANTED = {
    "where": ("a place", {"a thing", "a text"}),
    "when": ("a time", {"a date", "a number", "a text"}),
    "who": ("somebody", {"a thing", "a text"}),
    "how many": ("a number", {"a number"}),
}
"""What question words ask for, and the kinds of values that can be that."""


def doubt(question: str, answer: Answer) -> str:
    """What is odd about an answer: "1967-10-03 is a date where a place was asked"."""
    asked = re.search(r"\b(where|when|who|how many)\b", question.casefold())
    if asked is None or answer.kind != "list" or answer.columns:
        return ""
    wanted, fits = WANTED[asked[1]]
    odd = []
    for value in answer.values:
        kind, text = "a thing", str(value.term)
        if isinstance(value.term, Literal):
            datatype = str(value.term.datatype or "").rpartition("#")[2].casefold()
            kind = "a number" if re.fullmatch(r"[-+]?[\d.,]+", text) else "a text"
            if (
                "date" in datatype
                or datatype.startswith("g")
                or re.fullmatch(r"-?\d{4}(-\d\d){0,2}", text)
            ):
                kind = "a date"
        if kind not in fits:
            odd.append(f"{shorten(value.label, 60)} is {kind}")
    return f"{shorten('; '.join(odd), 200)} where {wanted} was asked" if odd else ""


def answer_banner(standing: Standing, more: object = "") -> Html:
    """The answer, large, with its state and its cost."""
    sign, word, big, under = answer_state(standing)
    if sign == "ok" and standing.answer and (odd := doubt(standing.run.question, standing.answer)):
        sign, word, under = "none", "Answered, with doubt", f"{odd} · {under}"
    about = h.join(" · ", h.tag("bdi", shorten(under, 1000))) if under else ""
    return h.div(
        f"answer {'run' if sign == 'wait' else sign}",
        h.icon(sign, "spin" if sign == "wait" else ""),
        h.div("big", h.tag("bdi", shorten(big, 1000))),
        h.div("under", h.span("word", word), about, more),
        role="alert" if sign == "bad" else "status",
    )


def set_up(run: Run) -> str:
    """ "chatty_kg · rules · fast · without Arrival — director → Denis Villeneuve", a triple that is muted."""
    models = (
        ", ".join(dict.fromkeys(model.name for model in run.models.values())) or "recorded replies"
    )
    parts = [run.system.name, single_line(models), run.settings.profile]
    if run.kg.muted:
        names = names_of(run)
        muted = "; ".join(single_line(triple_text(triple, names)) for triple in run.kg.muted)
        parts.append(f"without {muted}")
    return " · ".join(parts)


def head(run: Run) -> Html:
    """The question, and what answered it."""
    question = h.tag("h2", shorten(run.question, 1000), class_="question grow")
    return h.div("head", question, h.span("soft small", set_up(run)))


def flow_strip(standing: Standing, chosen: str = "") -> Html:
    """The agents of the system by stage, lit as far as the run came; the timeline has the same in words."""
    stages = []
    for title, agents in standing.run.system.stages:
        nodes = [_node(standing, agent, agent == agent_of(chosen)) for agent in agents]
        caption, style = h.span("caption", title), f"--n:{len(agents)}"
        stages.append(h.div("stage", caption, h.tag("ol", *nodes), style=style))
    return h.div("flow", *stages, aria_hidden="true")


def _node(standing: Standing, agent: str, chosen: bool) -> Html:
    kind = kind_at(standing.run, agent)
    mine = [step for step in standing.steps.values() if step.agent == agent]
    states = {standing.state(step.key) for step in mine} or {standing.state(agent)}
    state = next((state for state in LOOKS if state in states), "not run")
    by_hand = any(step.origin == "by hand" for step in mine)
    stops = not standing.run.breakpoints.isdisjoint({agent, *(step.key for step in mine)})
    classes = [
        "node",
        LOOKS.get(state, "waiting"),
        "ishand" * by_hand,
        "chosen" * chosen,
        "stop" * stops,
    ]
    times = h.span("times", f"×{len(mine)}") if len(mine) > 1 else ""
    tile = h.span(f"kind {kind}", h.icon("bad" if state == "failed" else kind), times)
    sent = {"type": "button", "data_do": "choose", "data_arg": mine[0].key if mine else agent}
    words = f"{display_name(agent)}: {h.KINDS[kind]}, {SIGNS[state][1]}"
    face = h.tag(
        "button", tile, h.span("name", display_name(agent)), **sent, title=words, tabindex="-1"
    )
    return h.tag("li", face, class_=" ".join(filter(None, classes)))


class Row(NamedTuple):
    """A line of the timeline: a step, or an agent that has none, where its step would stand."""

    key: str
    step: Step | None
    depth: int


def _depths(steps: Iterable[Step]) -> dict[str, int]:
    """How many supervisors stand above each step, by its key."""
    depth = {"": -1}
    for step in steps:
        depth[step.key] = depth.get(step.parent, -1) + 1
    return depth


def _rows(standing: Standing) -> list[Row]:
    """The steps in flow order, and among them the agents that have none."""
    system, depth = standing.run.system, _depths(standing.steps.values())
    rows = [Row(step.key, step, depth[step.key]) for step in standing.steps.values()]
    order = [spec.name for spec in system.agents]
    above = {under: name for name, below in system.supervisors.items() for under in below}
    reached = {step.agent for step in standing.steps.values()}
    for place, agent in enumerate(order):
        if agent in reached:
            continue
        supervisor, level, over = above.get(agent), 0, above.get(agent)
        while over:
            level, over = level + 1, above.get(over)
        agents = [agent_of(row.key) for row in rows]
        within = [n for n, name in enumerate(agents) if supervisor in (name, above.get(name))]
        earlier = [n for n in within or range(len(rows)) if order.index(agents[n]) < place]
        at = max(earlier, default=-1) + 1
        level = min(level, rows[at - 1].depth + 1 if at else 0)
        while at < len(rows) and rows[at].depth > level:
            at += 1
        rows.insert(at, Row(agent, None, level))
    return rows


def timeline(standing: Standing, chosen: str) -> Html:
    """A line for each step: breakpoint, tile, name, outcome, and its time over a bar."""
    rows, run = _rows(standing), standing.run
    above = {step.parent for step in standing.steps.values()} | {*run.system.supervisors}
    longest = (
        max((row.step.seconds for row in rows if row.step and row.key not in above), default=0)
        or 1.0
    )
    here = next((place for place, row in enumerate(rows) if row.key == chosen), 0)
    reached = {step.key for step in run.steps}
    done = [
        n for n, row in enumerate(rows) if row.key in reached and standing.state(row.key) != "stale"
    ]
    lines = []
    for place, row in enumerate(rows):
        key = {here - 1: "k ArrowUp", here + 1: "j ArrowDown"}.get(place)
        lines.append(_line(standing, row, row.key == chosen, key, row.key in above, longest))
        if place == max(done, default=-1) and run.steps and not standing.ended:
            lines.append(h.tag("li", class_="cursor", aria_label="the run stands here"))
    return h.tag("ol", *lines, class_="tl", aria_label="steps of the run")


def _line(
    standing: Standing, row: Row, chosen: bool, key: str | None, above: bool, longest: float
) -> Html:
    step, agent, state = row.step, agent_of(row.key), standing.state(row.key)
    name, kind = display_name(agent), kind_at(standing.run, agent)
    looks = {"stale": "isstale", "ahead": "ahead"}.get(state, "")
    classes = ["chosen" * chosen, "sup" * above, "offrow" * (step is None), looks]
    stops = not standing.run.breakpoints.isdisjoint({row.key, agent})
    gutter = h.tag(
        "button",
        **{"class_": "gut", "type": "button", "tabindex": "-1"},
        **{"data_do": "stop", "data_arg": row.key, "data_key": "b" if chosen else None},
        **{
            "aria_pressed": str(stops).lower(),
            "aria_label": f"stop after {name}",
            "title": "stop here (b)",
        },
    )
    words = "not needed" if step is None and state == "not needed" else ""
    if step is not None and step.done and state not in ("stale", "failed"):
        of = f"{subject_text(step)}: " if above and step.subject else ""
        words = f"{of}{outcome(step)}" if of or not above else ""
    time = h.span("ms")
    if step is not None and not above and step.origin != "by hand" and (step.done or step.error):
        width = f"right:0;width:{min(100.0, max(2.0, step.seconds / longest * 100)):.1f}%"
        track = h.span(f"track {kind}", h.tag("i", class_=kind, style=width))
        time = h.span("ms", format_seconds(step.seconds), track)
    subject = f" {subject_text(step)}" if step is not None and step.subject else ""
    face = h.tag(
        "button",
        h.kind_tile(kind, small=True, hollow=_not_asked(step, kind)),
        h.span("say", h.span("nm", name), _row_sign(step, state, above), h.span("out cut", words)),
        time,
        **{"class_": "go", "type": "button", "tabindex": "0" if chosen else "-1"},
        **{"data_do": "choose", "data_arg": row.key, "data_key": key},
        **{"title": f"{name}{subject}{': ' if words else ''}{words}", "style": f"--d:{row.depth}"},
        **{"id": f"t-{row.key}", "aria_current": "step" if chosen else None},
    )
    return h.tag("li", gutter, face, class_=" ".join(filter(None, classes)) or "trow")


def _row_sign(step: Step | None, state: str, above: bool) -> Html:
    if state in ("failed", "stale", "running") and not above:
        return h.state_sign(*SIGNS[state])
    return (
        h.state_sign("hand", "by hand") if step is not None and step.origin == "by hand" else Html()
    )


def _not_asked(step: Step | None, kind: str) -> bool:
    """Whether a step needed none of its model's replies."""
    done = kind == "model" and step is not None and step.done
    return bool(done and step and not step.attempts and step.origin != "by hand")


def step_head(standing: Standing, key: str, controls: object = "") -> Html:
    """Tile, name, subject and state; under them kind, cost and model."""
    run, step, agent = standing.run, standing.steps.get(key), agent_of(key)
    kind, state = kind_at(run, agent), standing.state(key)
    by_hand = step is not None and step.origin == "by hand" and state == "done"
    sign, word = ("hand", "by hand") if by_hand else SIGNS[state]
    silent = _not_asked(step, kind)
    facts = [
        h.span(f"kindword {kind}", h.KINDS[kind]),
        h.span("", "was not asked") if silent else "",
    ]
    if step is not None and (step.done or step.error):
        facts += _cost_and_origin(step, run.calls)
        facts.append(h.aside(f"by {run.model_name(agent)}") if step.attempts else "")
    subject = h.span("soft cut", subject_text(step)) if step is not None and step.subject else ""
    purpose = run.system.spec(agent).purpose.replace("``", "")
    name = h.tag("h3", display_name(agent), class_="title", title=purpose)
    titles = h.div("row", name, subject, h.state_sign(sign, word, pill=True))
    about = h.div("grow", titles, h.div("row small", h.dotted(*facts)))
    return h.div("head", h.kind_tile(kind, hollow=silent), about, controls)


def _cost_and_origin(step: Step, calls: Mapping[str, Call]) -> list[Html | str]:
    """What a step cost, and whether it asked anybody just now."""
    origin = {"record": "from the record", "live": "asked live"}.get(step.origin, "")
    return [
        h.aside(" · ".join(cost_of(step, calls))),
        h.aside(origin) if step.calls and origin else "",
    ]


def step_notes(step: Step | None) -> Html:
    """What the agent remarked, and why it failed."""
    notes = [h.note(text, kind="calm") for text in step.notes] if step else []
    if step and step.error:
        notes.append(h.note(h.tag("b", "Failed. "), step.error, kind="bad"))
    return h.div("body notes", *notes) if notes else Html()


def came_in(step: Step, around: Around) -> Html:
    """What came in, and which earlier step yielded it."""
    if not step.inputs:
        return h.div("body soft", "Nothing comes in.")
    earlier = around.steps[: around.steps.index(step)] if step in around.steps else ()
    parts = []
    for name, value in step.inputs.items():
        makers = (other for other in earlier if other.done and other.output is value)
        maker = next(
            (display_name(other.agent) for other in makers if other.key != step.parent),
            "the question",
        )
        shown = (
            view(value, around) if says_more(value) else h.div("body", h.tag("bdi", line(value)))
        )
        lead = h.div("lead", h.tag("b", display_name(name)), h.aside(f" from {maker}"))
        parts.append(h.div("part", lead, shown))
    return h.join(*parts)


def attempts(step: Step, calls: Mapping[str, Call]) -> Html:
    """The prompt as it was sent, the reply as it came, and each check by name."""
    shown = []
    for number, attempt in enumerate(step.attempts, 1):
        sign = (
            h.state_sign("ok", "accepted")
            if attempt.accepted
            else h.state_sign("bad", "not accepted")
        )
        checks = [
            h.div("row", h.state_sign("bad", check.name), h.span("", check.problem))
            if check.problem
            else h.state_sign("ok", check.name)
            for check in attempt.checks
        ]
        cost, sent = "", Html()
        if (call := calls.get(attempt.call)) is not None:
            tokens = f"{call.result.prompt_tokens} + {call.result.completion_tokens} tokens"
            cost = f"{call.request['model']} · {tokens} · {format_seconds(call.seconds)}"
            messages = call.request["content"]["messages"]
            lines = (h.join(h.span("role", role), text, "\n") for role, text in messages)
            sent = h.fold(
                h.aside("the prompt as it was sent"), h.preformatted(*lines), key=f"sent-{number}"
            )
        title = h.div("row", h.tag("b", f"Attempt {number}"), sign, h.aside(cost))
        shown.append(
            h.div("stack tight", title, h.preformatted(attempt.reply), h.div("row", *checks), sent)
        )
    return h.div("body stack", *shown) if shown else h.div("body soft", "This step asked no model.")


def waterfall(steps: Sequence[Step], calls: Mapping[str, Call]) -> Html:
    """A bar a step, laid end to end, in model time, graph time and the rest. Nothing without steps.

    The time of a step is without that of the steps it supervises; calls from the record take what they took
    when they were made.
    """
    below, spent, depth = dict[str, float](), dict[str, dict[str, float]](), _depths(steps)
    for step in steps:
        below[step.parent] = below.get(step.parent, 0.0) + step.seconds
    for step in steps:
        own_calls = [calls[key] for key in step.calls if key in calls]
        model = sum(call.seconds for call in own_calls if call.kind == "model")
        graph = sum(call.seconds for call in own_calls if call.kind not in ("model", "similarity"))
        own = max(0.0, step.seconds - below.get(step.key, 0.0))
        rest = max(0.0, own - model - graph) if step.origin == "live" else own
        spent[step.key] = {"model": model, "graph": graph, "rest": rest}
    whole, begun, rows = sum(sum(times.values()) for times in spent.values()), 0.0, []
    if not whole:
        return Html()
    kinds = {"model": "model", "graph": "sparql", "rest": "code"}
    for step in steps:
        times = {name: time for name, time in spent[step.key].items() if time}
        lane = [(None, begun), *((kinds[name], time) for name, time in times.items())]
        widths = [(kind, f"width:{time / whole * 100:.2f}%") for kind, time in lane if time]
        words = ", ".join(f"{name} {format_seconds(time)}" for name, time in times.items())
        known = step.origin == "record" and not calls.keys().isdisjoint(step.calls)
        key, style = single_line(step.key), f"padding-left:{depth[step.key]}em"
        name = h.span("cut", key, style=style, title=key)
        figures = h.span("num", f"{words} (recorded)" if known else words)
        bars = (h.tag("i", class_=kind, style=width) for kind, width in widths)
        rows.append(h.div("fall", name, h.span("lane", *bars), figures))
        begun += sum(times.values())
    sums = ", ".join(
        f"{name} {format_seconds(sum(times[name] for times in spent.values()))}" for name in kinds
    )
    total = f"{format_seconds(whole)} in all: {sums}. Steps are laid end to end, also those that ran side by side."
    return h.div("stack tight", *rows, h.aside(total))


@as_html.register
def run_html(run: Run) -> str:
    """A run without a kernel: answer, what it stands on, and every step to unfold."""
    return h.static(run_body(run), aria_label=shorten(run.question))


def run_body(run: Run) -> Html:
    standing, known, answer = Standing.of(run), around(run), run.answer
    answered = answer is not None and run.status == "done"
    time = h.fold(h.aside("Where the time went"), waterfall(tuple(run.steps), run.calls))
    return h.join(
        head(run),
        answer_banner(standing),
        h.div("body stack", *answer_parts(answer, known))
        if answered and answer is not None
        else "",
        flow_strip(standing),
        h.div("steps", *_folded(standing, known, by_supervisor(standing.steps.values()))),
        h.div("band", time) if run.steps else "",
    )


def _folded(
    standing: Standing,
    around: Around,
    steps: Mapping[str | None, Sequence[Step]],
    parent: str | None = None,
    depth: int = 0,
) -> Iterator[Html]:
    """The steps below one, each to unfold; ``steps`` has them by the key of that one."""
    for step in steps.get(parent, ()):
        below = tuple(_folded(standing, around, steps, step.key, depth + 1))
        kind = kind_at(standing.run, step.agent)
        words = h.span("out cut", outcome(step) if step.done else "")
        sign = _row_sign(step, standing.state(step.key), False)
        name = h.span("say", h.span("nm", display_name(step.agent)), sign, words)
        tile = h.kind_tile(kind, small=True, hollow=_not_asked(step, kind))
        face = h.span("go", tile, name, h.span("ms", format_seconds(step.seconds)))
        rows = [
            (display_name(name), h.tag("bdi", line(value))) for name, value in step.inputs.items()
        ]
        inside = _inside(
            step, around, standing.run.calls, h.table((), rows), supervises=bool(below)
        )
        unfolded = bool(step.error) or (bool(below) and depth < 1)
        yield h.tag(
            "details", h.tag("summary", face, style=f"--d:{depth}"), inside, *below, open=unfolded
        )


def _inside(
    step: Step, around: Around, calls: Mapping[str, Call], inputs: Html, *, supervises: bool = False
) -> Html:
    """A step in full; one that supervises others without what came of them."""
    of_step = replace(around, inputs=tuple(step.inputs.values()))
    shown = view(step.output, of_step) if step.done and not supervises else Html()
    cost = h.div("small", h.dotted(h.aside(single_line(step.key)), *_cost_and_origin(step, calls)))
    folds = [h.fold(h.aside(pluralize(len(step.inputs), "input")), inputs)] if step.inputs else []
    if step.attempts:
        folds.append(
            h.fold(h.aside(pluralize(len(step.attempts), "attempt")), attempts(step, calls))
        )
    return h.div("inside", step_notes(step), shown, h.div("body stack tight", cost, *folds))


@as_html.register
def step_html(step: Step) -> str:
    """One step alone: what it yielded, what came in, prompt and replies."""
    known = Around(names_in([step], step.known), steps=(step,))
    came_to = h.span("" if step.done else "soft", outcome(step))
    agent = h.tag("h3", display_name(step.agent), class_="title")
    title = h.div("head", agent, h.aside(subject_text(step)), came_to)
    return h.static(title, _inside(step, known, step.known, came_in(step, known)))
