"""The prompts of a run as the person edits them, before they are tried or saved."""

from __future__ import annotations

from typing import NamedTuple

from kgwb.errors import KgwbError, PromptError
from kgwb.llm.base import ChatRequest, Message
from kgwb.llm.rules import BASELINE_REMARK
from kgwb.run.agents import agent_of_key
from kgwb.run.http_protocols import shown_text
from kgwb.run.models import recorded_messages
from kgwb.run.prompts import messages_to_text
from kgwb.run.steps import Step
from kgwb.show import html as h
from kgwb.show.html import Html
from kgwb.show.prompt_form import (
    find_left_out,
    render_messages_form,
    render_prompt_form,
    replace_template,
    split_prompt,
)
from kgwb.ui.live import Event, form_of, typed_text
from kgwb.ui.session import Session

OVERRIDDEN_NOTE = (
    "Its result was put in by hand. “Try once” removes that result, and asks the model."
)


class EditedPrompt(NamedTuple):
    """A prompt with the template as it was typed."""

    name: str
    text: str


class PromptEditor:
    """Drafts of the prompts of a session's run, and the form in which they are edited.

    Steps are named by their keys, or by their agent if they were not run yet.
    """

    def __init__(self, session: Session) -> None:
        """Begin without drafts."""
        self.session = session
        self.run = session.run
        self.drafts: dict[str, str] = {}
        """Templates as they were typed, by step."""
        self.revision = 0
        """Increased whenever the text area must take over the draft."""

    def prompt_name(self, key: str) -> str:
        """Return the name of the prompt to edit for a step's key or an agent.

        It is the prompt that the step used last, now or before an edit; else one that another step
        of the agent used; else that of the request that the step would send; else "SYSTEM/AGENT".
        """
        agent = agent_of_key(key)
        versions = self._versions_of(key)
        others = self.session.steps_of(agent)
        for step in (*versions, *others):
            if step.prompts:
                return step.prompts[-1]
        is_done = bool(versions) and versions[0].done
        if not (is_done or self.run.read_only or self.session.current_task):
            request = self.session.peek(key)
            if request is not None:
                return request.task
        return f"{self.run.system.name}/{agent}"

    def _versions_of(self, key: str) -> list[Step]:
        """Return the step with this key now and before each edit, the newest first.

        Empty if no execution has reached it.
        """
        executions = [self.session.steps]
        for state in reversed(self.session.history):
            executions.append(state.steps)
        return [steps[key] for steps in executions if key in steps]

    def edited_prompt(self, key: str, event: Event) -> EditedPrompt:
        """Return a step's prompt with the template of the event's form, else with its draft.

        Without both it is the text that the run uses, which the header always comes from. Raises
        PromptError if there is no such prompt.
        """
        name = self.prompt_name(key)
        text = self.run.prompts.text(name)
        template = form_of(event).get("template", self.drafts.get(key))
        if template is not None:
            text = replace_template(text, template)
        return EditedPrompt(name, text)

    def keep_draft(self, key: str, template: object) -> None:
        """Keep the template as it is in the text area."""
        self.drafts[key] = typed_text(template)

    def discard_draft(self, key: str) -> None:
        """Forget the draft of a step, if there is one."""
        self.drafts.pop(key, None)

    def revert(self, key: str) -> None:
        """Put the template of the prompt's file into the editor.

        It is a draft if the run uses another text; otherwise the draft is dropped. Raises
        PromptError if the file cannot be read.
        """
        name = self.prompt_name(key)
        file_text = self._file_text(name)
        if file_text is None:
            raise PromptError(
                f"the file prompts/{name}.md is missing or cannot be read",
                hint="press “Save to file” to write it from this text",
            )
        self.discard_draft(key)
        if self.run.prompts.text(name) != file_text:
            _header, self.drafts[key] = split_prompt(file_text)
        self.revision += 1

    def _file_text(self, name: str) -> str | None:
        """Return the text of a prompt's file; None if there is none, or it cannot be read."""
        try:
            return self.run.prompts.path(name).read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError, PromptError):
            return None

    def render(self, key: str, step: Step | None, reply: Html) -> Html:
        """Render the form of a step's prompt, with the request that it will send.

        ``step`` is None if the step was not run. While a task is executed, no request is shown. A
        prompt that cannot be used is shown with the problem. An agent without a prompt file shows
        the messages that it sent. ``reply`` is what came of trying the prompt.
        """
        name = self.prompt_name(key)
        try:
            used_text = self.run.prompts.text(name)
        except PromptError:
            return self._render_own_messages(key, step, reply)
        draft = self.drafts.get(key)
        request = None
        problem = ""
        if not self.session.current_task:
            text = used_text
            if draft is not None:
                text = replace_template(used_text, draft)
            try:
                request = self.session.peek(key, name, text)
            except KgwbError as exc:
                problem = exc.message
        file_text = self._file_text(name)
        return render_prompt_form(
            name,
            file_text,
            used_text,
            draft,
            request=request,
            problem=problem,
            note=self._remark(key, step),
            revision=self.revision,
            needs_folder=self.run.prompts.needs_folder(name),
            reply=reply,
            left_out=find_left_out(step),
        )

    def drafted_request(self, key: str) -> ChatRequest | None:
        """Return the first request that a step will send with the draft of its prompt.

        Returns None while a task is executed, and if the agent sends nothing now or its prompt
        cannot be used.
        """
        if self.session.current_task:
            return None
        try:
            prompt = self.edited_prompt(key, {})
            return self.session.peek(key, prompt.name, prompt.text)
        except KgwbError:
            return None

    def own_messages(self, step: Step | None) -> str | None:
        """Return the messages of a step's first model call as text, if it used no prompt file.

        Returns None for a step that used one, or that made no model call.
        """
        if step is None or step.prompts:
            return None
        if not step.model_calls:
            return None
        first_call = step.model_calls[0]
        messages = []
        for role, content in first_call.request["content"]["messages"]:
            messages.append(Message(role, shown_text(content)))
        return messages_to_text(messages)

    def frozen_messages(self, key: str, step: Step | None) -> str | None:
        """Return the draft of a step's messages, else those of its first model call as text.

        Returns None for a step that made no model call. A role that cannot be sent again is
        replaced by one that can.
        """
        if step is None or not step.model_calls:
            return None
        messages = recorded_messages(step.model_calls[0])
        return self.drafts.get(key, messages_to_text(messages))

    def _render_own_messages(self, key: str, step: Step | None, reply: Html) -> Html:
        """Render the messages that a step sent without a prompt file, in an editor.

        The draft stands there if there is one. A step that sent none is a text that says so.
        ``reply`` is what trying them gave.
        """
        text = self.own_messages(step)
        if text is None:
            return h.div("body soft", "This agent has no prompt file.")
        is_edited = (key, 0) in self.run.edited_messages
        draft = self.drafts.get(key, text)
        return render_messages_form(draft, is_edited, self.revision, reply)

    def _remark(self, key: str, step: Step | None) -> str:
        """Return a remark if the prompt does not decide the result; else an empty text.

        That is so if the result was put in by hand, or if the model is "rules", which reads no
        prompt.
        """
        if step is not None and step.origin == "by hand":
            return OVERRIDDEN_NOTE
        agent = agent_of_key(key)
        if self.run.model_name(agent) == "rules":
            return f"{BASELINE_REMARK}."
        return ""
