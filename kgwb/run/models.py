"""Models: opened by their specification, replayed from a run file, or asked a recorded call again."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from kgwb import llm
from kgwb.errors import NotRecordedError, SettingError
from kgwb.kg.base import Graph
from kgwb.llm.base import ChatModel, ChatReply, ChatRequest, Message, seed_of_repeat
from kgwb.records import JsonObject, Record, frozen
from kgwb.run.differences import describe_difference
from kgwb.run.http_protocols import (
    as_chat_messages,
    comparable_reply,
    message_from_data,
    shown_text,
    tools_of_options,
)
from kgwb.run.record import RunFile, damage_errors
from kgwb.run.steps import Call, encode_canonical
from kgwb.text import common_prefix_length, pluralize

Models = Mapping[str, ChatModel | str] | ChatModel | str | None
"""A model or its specification for all agents, or by the name of an agent or a role; "" is the default."""
_Recorded = tuple[JsonObject, list[ChatReply]]
"""What a request held, and the replies to it in the order of recording."""


def open_model(spec: Any, **options: Any) -> ChatModel:
    """Return the model of a specification: "rules", "openai:gpt-4o", "replay:FILE", ...

    A model is returned as it is. A function from messages to a text is a model, and so is a client
    of the library openai with the name of a model (``name=``). "replay:FILE" is a model that
    answers with the replies of a run file; ``kgwb.llm.model`` describes the others and the
    ``options``.

    Raises UnknownModelError for an unknown specification and for a missing key, and RunFileError
    if a run file cannot be read.
    """
    if isinstance(spec, str):
        kind, _, path = spec.strip().partition(":")
        if kind == "replay" and path:
            return Replay.from_file(path)
    return llm.model(spec, **options)


def open_models(models: Models) -> dict[str, ChatModel]:
    """Return the models by agent name; a model for all agents is the default, under "".

    A model that is None is left out. Raises what ``open_model`` raises. Models for several agents
    are given by the name of the agent or role. For None, no model is returned.
    """
    if models is None:
        return {}
    if not isinstance(models, Mapping):
        models = {"": models}
    return {user: open_model(model) for user, model in models.items() if model is not None}


class StandIn:
    """A model that goes by another name, so that what is recorded under that name is found."""

    def __init__(self, model: ChatModel, name: str) -> None:
        self.model = model
        self.name = name
        self.remote = model.remote

    def complete(
        self, request: ChatRequest, kg: Graph | None, cancel: threading.Event
    ) -> ChatReply:
        """Return the reply of the model."""
        return self.model.complete(request, kg, cancel)


class Replay(ChatModel):
    """A model that answers with recorded replies.

    Equal requests get their replies in the order of recording, and then the last one again.
    """

    remote = False

    def __init__(
        self, replies: Iterable[tuple[JsonObject, ChatReply]], *, name: str = "replay"
    ) -> None:
        """Keep the replies, each after the ``ChatRequest.recorded_content()`` of its request."""
        self.name = name
        self._lock = threading.Lock()
        self._recorded: defaultdict[str, list[_Recorded]] = defaultdict(list)
        """By the text of the last message. A reply that was used is removed, unless it is the last."""
        for content, reply in replies:
            replies_to_it = self._find(content)
            if not replies_to_it:
                self._recorded[_last_text(content)].append((content, replies_to_it))
            replies_to_it.append(reply)

    @classmethod
    def from_file(cls, path: str | Path) -> Replay:
        """Return a model with the replies of a run file; it is named "replay:" and the file's name.

        Raises RunFileError if the file cannot be read, is no run file, or is damaged.
        """
        path = Path(path)
        replies = []
        entries = RunFile(path).entries()
        with damage_errors(path):
            for entry in entries:
                if "call" in entry and entry["call"]["kind"] == "model":
                    call = Call.from_data(entry["call"])
                    replies.append((call.request["content"], call.result))
            return cls(replies, name=f"replay:{path.name}")

    def complete(
        self, request: ChatRequest, kg: Graph | None, cancel: threading.Event
    ) -> ChatReply:
        """Return the recorded reply to a request with the same content, with its recorded cost.

        The prompt's name, the model and the timeout do not count. Replies to equal requests are
        returned in the order of the recording, and the last of them again and again. Graph and
        cancel event are ignored. Raises NotRecordedError if there is no such reply.
        """
        content = request.recorded_content()
        with self._lock:
            replies = self._find(content) or self._find_by_json(content)
            if not replies:
                raise NotRecordedError(
                    f"the recording {self.name!r} has no reply to this request of {request.task}"
                    f"{self._describe_nearest(content)}",
                    hint="ask a model: model=kgwb.model(...) in Python, --model in the terminal",
                )
            if len(replies) > 1:
                return replies.pop(0)
            return replies[0]

    def _find(self, content: JsonObject) -> list[ChatReply]:
        """Return the replies to a request; for one that is not recorded, a new list."""
        for recorded, replies in self._recorded.get(_last_text(content), ()):
            if recorded == content:
                return replies
        return []

    def _find_by_json(self, content: JsonObject) -> list[ChatReply]:
        """Return the replies to a request with the same JSON: a tuple that a system gave was recorded as a list."""
        encoded = encode_canonical(content)
        for recorded, replies in self._recorded.get(_last_text(content), ()):
            if encode_canonical(recorded) == encoded:
                return replies
        return []

    def _describe_nearest(self, content: JsonObject) -> str:
        """Return in what a request differs from the recorded one that is most like it.

        That is the one with the fewest other parts, of equals the one whose JSON begins alike for
        longest. "" if there is no recorded request.
        """
        contents = [each for each, _ in chain.from_iterable(self._recorded.values())]
        if not contents:
            return ""
        text = encode_canonical(content)

        def distance(recorded: JsonObject) -> tuple[int, int]:
            """Return how many parts differ, and minus the number of equal characters before that."""
            parts = [name for name in content if content[name] != recorded.get(name)]
            return len(parts), -common_prefix_length(text, encode_canonical(recorded))

        nearest = min(contents, key=distance)
        return f"; it is most like one with {describe_difference(nearest, content)}"


def _last_text(content: JsonObject) -> str:
    """Return the last text of the last message of a request; "" without messages."""
    messages = content["messages"]
    return str(messages[-1][-1]) if messages else ""


MAX_TIMES = 100
"""How often a call can be asked again at once."""
DEFAULT_TEMPERATURE = 1.0
"""For a call of a trace that does not say: what most servers take then."""
DEFAULT_MAX_TOKENS = 2048
LIMIT_OPTIONS = ("max_output_tokens", "max_completion_tokens", "max_tokens", "num_predict")
"""Names of the limit of tokens in the protocols."""
ROLES = {"system": "system", "developer": "system", "assistant": "assistant", "ai": "assistant"}
"""The role under which a message is sent, by its role in the record; all others are the user's."""


@frozen
class NewReply(Record):
    """A reply to a call that was asked again."""

    text: str
    """With calls of tools it is the JSON of their names and arguments."""
    model: str
    prompt_tokens: int
    completion_tokens: int
    seconds: float


@frozen
class NewReplies(Record):
    """The replies to a call that was asked again."""

    replies: tuple[NewReply, ...]
    before: str
    """The recorded reply."""

    def __str__(self) -> str:
        return pluralize(len(self.replies), "new reply")


def check_times(times: int) -> None:
    """Raise SettingError unless a model call can be asked so often at once: 1 to MAX_TIMES times."""
    if not 1 <= times <= MAX_TIMES:
        raise SettingError(
            f"a model call cannot be asked {times} times", hint=f"give times from 1 to {MAX_TIMES}"
        )


def ask_call_again(
    call: Call,
    models: Sequence[ChatModel],
    messages: Sequence[Message] | None,
    times: int,
    kg: Graph | None,
) -> NewReplies:
    """Ask each model a recorded model call again, ``times`` times, and return the new replies.

    They come model by model. ``messages`` are sent in place of the recorded ones; None keeps these.
    The other parameters are those of the call, but each time after the first has another seed if
    the call has one. Nothing is recorded. Raises the ModelErrors of the models.
    """
    # Without tools a reply is what the model wrote, also if that looks like a call
    read = comparable_reply if _tools_of(call) else str
    replies = []
    for model in models:
        for number in range(times):
            request = request_of_call(call, messages, number)
            reply = model.complete(request, kg, threading.Event())
            replies.append(
                NewReply(
                    read(reply.text),
                    model.name,
                    reply.prompt_tokens,
                    reply.completion_tokens,
                    reply.seconds,
                )
            )
    return NewReplies(tuple(replies), read(call.result.text))


def request_of_call(
    call: Call, messages: Sequence[Message] | None = None, number: int = 0
) -> ChatRequest:
    """Return the request of a recorded model call with the seed of repeat ``number`` if it has a seed.

    ``messages`` replace the recorded ones unless they are None. A temperature or limit that was not
    recorded is DEFAULT_TEMPERATURE or DEFAULT_MAX_TOKENS.
    """
    if messages is None:
        messages = recorded_messages(call)
    content: Any = call.request["content"]
    tools = _tools_of(call)
    if tools:
        messages = list(map(message_from_data, as_chat_messages(messages)))
    if "options" in content:
        content = _named_as_recorded(content["options"])
    temperature = content["temperature"]
    if temperature is None:
        temperature = DEFAULT_TEMPERATURE
    seed = content["seed"]
    if seed is not None:
        seed = seed_of_repeat(seed, number)
    return ChatRequest(
        task=call.request["task"],
        messages=tuple(messages),
        schema=content["schema"],
        temperature=temperature,
        seed=seed,
        max_output_tokens=content["max_output_tokens"] or DEFAULT_MAX_TOKENS,
        tools=tools,
    )


def _tools_of(call: Call) -> JsonObject:
    """Return the tools that a recorded model call offered; {} without any."""
    content: JsonObject = call.request["content"]
    return tools_of_options(content.get("options", content))


def _named_as_recorded(options: JsonObject) -> JsonObject:
    """Return the options of a wrapped client under the names that requests of kgwb have.

    An option that was not given is None. A form of the reply is left out.
    """
    options = {**options, **(options.get("options") or {})}  # Ollama has them there
    limits = [options.get(name) for name in LIMIT_OPTIONS]
    return {
        "schema": None,
        "temperature": options.get("temperature"),
        "seed": options.get("seed"),
        "max_output_tokens": next(filter(None, limits), None),
    }


def recorded_messages(call: Call) -> tuple[Message, ...]:
    """Return the messages of a recorded model call in order, with roles that can be sent again.

    A role that is not in ROLES becomes "user", but for the outputs of tools in a call that has
    tools.
    """
    roles = dict(ROLES)
    if _tools_of(call):
        roles["tool"] = "tool"
    messages = []
    for role, text in call.request["content"]["messages"]:
        sent_role: Any = roles.get(role, "user")
        messages.append(Message(sent_role, shown_text(text)))
    return tuple(messages)
