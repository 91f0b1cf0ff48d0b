"""The commands that a person gives to a run: step, edit, cancel. It works without widgets.

All widgets of a run share its session, on whichever threads their events arrive.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from kgwb.errors import EmbeddingError, SettingError
from kgwb.llm.base import ChatRequest, Human, PendingRequest
from kgwb.run import Run
from kgwb.run.agents import agent_of_key
from kgwb.run.diagnostics import explained_failure
from kgwb.run.steps import Step, group_by_supervisor
from kgwb.show.run_state import RunState
from kgwb.text import display_name
from kgwb.ui.worker import NOTIFY_DELAY_S, Work, Worker


class Session(Worker):
    """A run, and its worker: the commands of the person are executed one at a time.

    A step that an edit makes stale is kept, and shown, until it is run again. So are the steps
    beyond the position to which the person goes back.
    """

    def __init__(self, run: Run) -> None:
        """Follow a run, and begin to load its embeddings unless it is a replay or only read.

        Use ``session_of`` instead: all widgets of a run must share its session.
        """
        super().__init__()
        self.run = run
        self.history: list[RunState] = []
        """The state of the run before each edit, oldest first."""
        self.embeddings_loader = Worker()
        """Loads the embeddings from the start, so that their time is not added to an agent's."""
        self._steps: dict[str, Step] = run.steps_by_key
        self._executed_keys: set[str] = set(self._steps)
        """Keys of the steps of the latest execution."""
        self._stale: set[str] = set()
        """Keys of the stale steps."""
        self._complete_totals = run.totals
        """Of the execution that reached the last of the known steps."""
        self._complete_answer = run.answer
        """Of the same execution."""
        self._has_new_steps = False
        """Whether the run has begun or ended a step since its steps were taken over."""
        self._previews: dict[tuple[str, str, str], ChatRequest | None] = {}
        if run.unrecorded_graph is not None and not run.read_only:
            self.embeddings_loader.submit("loading the embeddings, once", self._load_embeddings)
            self.embeddings_loader.subscribe(self.notify)
        run.listeners.append(self._on_step)  # code of the person may execute the run, too

    # The state of the run

    @property
    def steps(self) -> Mapping[str, Step]:
        """The latest known step of every key in flow order, also stale ones."""
        with self._lock:
            return dict(self._steps)

    @property
    def all_steps(self) -> tuple[Step, ...]:
        """The latest known steps in flow order, also stale ones."""
        return tuple(self.steps.values())

    def steps_of(self, agent: str) -> tuple[Step, ...]:
        """Return the steps of an agent, also stale ones; for a step's key, only that step."""
        return tuple(step for step in self.all_steps if agent in (step.agent, step.key))

    def run_state(self) -> RunState:
        """Return the state of the run and of each step, see ``kgwb.show.run_state``.

        A step is "ahead" if an earlier execution reached it, and the latest one stopped before it.
        """
        run = self.run
        with self._lock:
            previous_answer = None
            if self.history:
                previous_answer = self.history[-1].answer
            return RunState(
                run,
                dict(self._steps),
                self._step_states(),
                self.current_task,
                self.failure,
                previous_answer=previous_answer,
                answer=run.answer,
                status=run.status,
                totals=run.totals,
            )

    def _step_states(self) -> dict[str, str]:
        """Return the state of each step that is stale, ahead, running or unfinished, by key.

        The first that applies: "stale" after an edit; "ahead" if the latest execution has not
        reached it; if it is not done, "waiting" for a person's reply, "running", or "unfinished" if
        no task is executed. Steps that have failed or are done have no entry.
        """
        states = {}
        awaited_prompts = {pending.request.task for pending in self.pending_requests}
        for key, step in self._steps.items():
            if key in self._stale:
                states[key] = "stale"
            elif step.error:
                continue
            elif key not in self._executed_keys:
                states[key] = "ahead"
            elif step.done:
                continue
            elif awaited_prompts.intersection(step.prompts):
                states[key] = "waiting"
            else:
                states[key] = "running" if self.current_task else "unfinished"
        return states

    @property
    def pending_requests(self) -> tuple[PendingRequest, ...]:
        """The requests of this run that wait for a person's reply, the oldest first.

        Requests of other runs that the person plays in are left out. Empty while no task is
        executed.
        """
        if not self.current_task:
            return ()
        run_cancel = self.run.execution.cancelled
        requests = []
        for model in dict.fromkeys(self.run.models.values()):
            if not isinstance(model, Human):
                continue
            for pending in model.pending_requests:
                if pending.cancel is run_cancel:
                    requests.append(pending)
        return tuple(requests)

    def peek(self, step: str, name: str = "", text: str = "") -> ChatRequest | None:
        """Return the first request that a step or agent would send, without sending it.

        With ``name``, the prompt of that name has this text; without, the prompts of the run are
        used. The request is cached until the run changes. Returns None, and raises, as
        ``Run.preview_request`` does.
        """
        preview = (step, name, text)
        if preview not in self._previews:
            prompts = self.run.prompts
            if name:
                prompts = prompts.with_text(name, text)
            self._previews[preview] = self.run.preview_request(step, prompts=prompts)
        return self._previews[preview]

    # Moving through the run

    def go(self, until: str | int | None = None) -> Future[None]:
        """Submit an execution of the run up to where ``Run.go`` stops.

        Returns a future that is done when the execution has ended; its error is in ``failure``.

        Raises SettingError if code executes the run, as all commands do.
        """
        label = _run_label(str(until or "the end"))
        if until == 0:
            label = "going back to the start"
        return self._submit_command(label, lambda: self.run.go(until))

    def step(self) -> Future[None]:
        """Submit an execution that ends with one more step.

        The end of a supervisor does not count: the steps that it supervises did the work. Raises
        SettingError if code executes the run.
        """

        def step() -> None:
            """Execute one step, and more while the run has paused at a supervisor's end."""
            self.run.step()
            while self._paused_after_supervisor() and not self.cancelled:
                self.run.step()

        return self._submit_command("running one step", step)

    def _paused_after_supervisor(self) -> bool:
        """Return whether the run has paused, and the step that ended last supervises others."""
        if self.run.status != "paused":
            return False
        _, is_supervisor = self._finished_steps()[-1]
        return is_supervisor

    def back(self) -> Future[None]:
        """Submit going back to before the latest step that is not a supervisor.

        Nothing is executed if no step is done.
        """

        def go_back() -> None:
            """Go back to before the latest step that does not supervise others."""
            supervise = [is_supervisor for _, is_supervisor in self._finished_steps()]
            while supervise and supervise[-1]:
                supervise.pop()
            if supervise:
                supervise.pop()
            self.run.step_back(self.run.position - len(supervise))

        return self._submit_command("going back one step", go_back)

    def _finished_steps(self) -> list[tuple[str, bool]]:
        """Return the keys of the steps that are done, in the order of their ends.

        With each comes whether it supervises others. A supervisor ends after the steps that it
        supervises. Only steps of the latest execution count. Those that failed are left out.
        """
        groups = group_by_supervisor(self.run.steps)

        def steps_by_end(supervisor: str | None) -> Iterator[Step]:
            """Yield the steps below a supervisor in the order of their ends; None is the top."""
            for step in groups.get(supervisor, ()):
                yield from steps_by_end(step.key)
                yield step

        finished = []
        for step in steps_by_end(None):
            if step.done:
                supervises = step.key in groups
                finished.append((step.key, supervises))
        return finished

    def run_to(self, key: str) -> Future[None]:
        """Submit an execution up to the end of a step or agent, given by its key or name.

        If the step is done and not stale, the run goes back to its end instead. Raises SettingError
        if code executes the run.
        """

        def run_to() -> None:
            """Execute the run to the step's end; go back there if it is done and not stale."""
            finished_keys = [finished for finished, _ in self._finished_steps()]
            if key in finished_keys and self.run_state().step_state(key) == "done":
                position = finished_keys.index(key) + 1
                self.run.step_back(self.run.position - position)
            else:
                self.run.go(key)

        return self._submit_command(_run_label(key), run_to)

    # Edits

    def replace(self, key: str, value: Any) -> Future[None]:
        """Put in a value as the output of a step, and submit an execution up to this step.

        Raises SettingError if the run is busy, and OverrideError if the value is not valid.
        """
        with self._edit(key):
            self.run.override(key, value)
        return self.go(key)

    def restore(self, key: str) -> Future[None]:
        """Remove a value that was put in, and submit an execution up to its step.

        Raises SettingError if the run is busy.
        """
        with self._edit(key):
            self.run.remove_override(key)
        return self.go(key)

    def edit_prompt(self, name: str, text: str) -> None:
        """Use another text for a prompt in this run. The steps that used the prompt become stale.

        Raises SettingError if the run is busy, and PromptError if the text is wrong.
        """
        users = [step.key for step in self.all_steps if name in step.prompts]
        with self._edit(*users):
            self.run.edit_prompt(name, text)
        self.notify()

    def edit_settings(self, **changes: Any) -> None:
        """Change settings of this run. All steps become stale.

        Raises SettingError if the run is busy, or for an unknown or impossible setting.
        """
        first_keys = [step.key for step in self.all_steps[:1]]
        with self._edit(*first_keys):
            self.run.edit_settings(**changes)
        self.notify()

    def edit_messages(self, key: str, text: str) -> None:
        """Send other messages in the first model call of a step, which becomes stale.

        Raises SettingError if the run is busy, and PromptError for a text without roles.
        """
        with self._edit(key):
            self.run.edit_messages(key, text)
        self.notify()

    def edit_reply(self, key: str, text: str | None, number: int) -> None:
        """Put in a reply of a model call of a step, which becomes stale; None takes it back.

        Raises SettingError if the run is busy.
        """
        with self._edit(key):
            self.run.edit_reply(key, text, number)
        self.notify()

    def save_prompt(self, name: str, text: str, folder: str = "") -> str:
        """Write a prompt to its file, and use it in this run. Returns the path of the file.

        The file is in ``folder``, if given; else it is where ``Prompts.save`` writes it. If the run
        used another text, the steps that used the prompt become stale. Raises SettingError if the
        run is busy, and PromptError if the text is not a prompt or the file cannot be written.
        """
        self.require_idle()
        prompts = self.run.prompts
        used = prompts.text(name)
        if folder:
            prompts = replace(prompts, folder=Path(folder))
        path = prompts.save(name, text)
        if used != text:
            self.edit_prompt(name, text)
        return str(path)

    def refresh(self, key: str) -> Future[None]:
        """Submit an execution up to a step, in which the step's calls are made again.

        If it fails or is cancelled before, the recorded calls are used after all. Returns a future
        that is done when it has ended. Raises SettingError if the run is busy, or has not reached
        the step.
        """
        with self._edit(key):
            self.run.refresh(key)

        def ask_again() -> None:
            """Execute the run up to the step; if that fails, use the recorded calls again."""
            try:
                self.run.go(key)
            finally:
                if self.run.status not in ("paused", "done"):
                    self.run.undo_refresh()

        label = f"asking {display_name(agent_of_key(key))} anew"
        return self._submit_command(label, ask_again)

    @contextmanager
    def _edit(self, *keys: str) -> Iterator[None]:
        """Run the code inside as an edit of the steps with these keys.

        Afterwards the state before the edit is added to ``history``, unless steps were stale
        already, and the first edited step and those after it are stale. If the code raises, neither
        happens. Raises SettingError if the run is busy.
        """
        with self._lock:
            self.require_idle()
            if self._has_new_steps:
                self._update_steps()
            self._previews.clear()
            before = RunState(
                self.run, self.steps, answer=self._complete_answer, totals=self._complete_totals
            )
            yield
            if before.steps and not self._stale:
                self.history.append(before)
            self._mark_stale(keys)

    def _mark_stale(self, edited: Iterable[str]) -> None:
        """Mark the first of the edited steps, all steps after it, and its supervisors as stale.

        Its supervisors are the steps that it is inside of, of all levels. Steps that the session
        does not know are ignored.
        """
        steps = self._steps
        order = list(steps)
        positions = [order.index(key) for key in edited if key in order]
        if not positions:
            return
        first = min(positions)
        following = order[first:]
        self._stale.update(following)
        supervisor = steps[following[0]].parent
        while supervisor in steps:
            self._stale.add(supervisor)
            supervisor = steps[supervisor].parent

    # The worker

    def cancel(self) -> None:
        """Cancel the execution at its next call, and drop the queue.

        A slow remote call is left behind on its thread.
        """
        super().cancel()
        self.run.cancel()

    def require_idle(self) -> None:
        """Raise SettingError if the run is being executed, by this session or by code."""
        super().require_idle()
        if self.run.status == "running":
            raise SettingError(
                "busy: a cell of the notebook is executing this run",
                hint="wait until it has ended, or cancel it",
            )

    def notify(self) -> None:
        """Take over new steps of the run, and call every listener.

        While code executes the run outside of this session, this is repeated until the run has
        ended.
        """
        if self._has_new_steps:
            self._update_steps()
        super().notify()
        if not self.current_task and self.run.status == "running":
            self.notify_soon()

    def _load_embeddings(self) -> None:
        """Load the run's embeddings; a failure is left to the agent that needs them."""
        with suppress(EmbeddingError):  # the agent that needs them raises it again
            self.run.embeddings.load()

    def _submit_command(self, label: str, command: Work) -> Future[None]:
        """Submit a command on the run, which is executed once the embeddings are loaded.

        A command that was cancelled while it waited is not executed. The steps are taken over at
        its end. Returns a future that is done then. Raises SettingError if code executes the run.
        """

        def execute() -> None:
            """Execute the command once the embeddings are loaded, unless it was cancelled before.

            The steps are taken over in any case.
            """
            try:
                self._wait_for_embeddings()
                if not self.cancelled:
                    self.current_task = label
                    with explained_failure(self.run):
                        command()
            finally:
                self._update_steps()

        if not self.current_task:
            self.require_idle()
        return self.submit(label, execute)

    def _wait_for_embeddings(self) -> None:
        """Wait until the embeddings are loaded, or the command is cancelled.

        Meanwhile the loading is shown as the current task; every NOTIFY_DELAY_S it is looked
        whether it has ended. Returns at once if none are loaded, as in a replay.
        """
        loader = self.embeddings_loader
        thread = loader.thread
        if thread is None:
            return
        while thread.is_alive() and not self.cancelled:
            self.current_task = loader.current_task or self.current_task
            thread.join(NOTIFY_DELAY_S)

    def _on_step(self, event: str, step: Step) -> None:
        """Note that a step has begun or ended, and notify the listeners soon.

        The run calls this on its own threads. If the person has cancelled meanwhile, the run is
        cancelled.
        """
        if self.cancelled and self.current_task:
            # The cancel came before the execution had begun, which did not see it.
            self.run.cancel()
        self._has_new_steps = True
        self.notify_soon()

    def _update_steps(self) -> None:
        """Take over the steps of the latest execution into the session's own.

        Steps that it did not reach stay, unless it has come to the end. They all become stale if a
        step has another output than before; otherwise stale ones among them stay stale. If no
        earlier step is left, answer and totals are kept as those of a complete state.
        """
        with self._lock:
            self._has_new_steps = False
            self._previews.clear()
            latest = self.run.steps_by_key
            known = self._steps
            if self.run.status == "done":
                known = {}
            later = {key: step for key, step in known.items() if key not in latest}
            if _have_changed_output(known, latest):
                self._stale = set(later)
            else:
                self._stale = self._stale.intersection(later)
            self._steps = {**latest, **later}
            self._executed_keys = set(latest)
            if not later:
                self._complete_totals = self.run.totals
                self._complete_answer = self.run.answer


def _run_label(key: str) -> str:
    """Return the label of the task that runs up to a step or agent."""
    return f"running to {display_name(agent_of_key(key))}"


def _have_changed_output(known: Mapping[str, Step], latest: Mapping[str, Step]) -> bool:
    """Return whether a step that is done in both has another output in the latest execution.

    Steps that only one of them has do not count.
    """
    for key, step in latest.items():
        before = known.get(key)
        if before is None or not (before.done and step.done):
            continue
        if before.output != step.output:
            return True
    return False


_ATTACH_LOCK = threading.Lock()


def session_of(run: Run) -> Session:
    """Return the session of a run, and make it when it is first asked for."""
    with _ATTACH_LOCK:
        if not isinstance(run.widget_state, Session):
            run.widget_state = Session(run)
        return run.widget_state
