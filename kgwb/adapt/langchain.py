"""Chat models of LangChain whose calls are model calls of a run, and nodes of LangGraph as agents.

This module needs LangChain.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, get_type_hints

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    convert_to_messages,
    convert_to_openai_messages,
)
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError

from kgwb.adapt.clients import json_options
from kgwb.errors import OverrideError, SettingError
from kgwb.llm.base import (
    ChatReply,
    ChatRequest,
    Message,
    fields_of_text,
    parse_token_count,
    text_of_fields,
)
from kgwb.records import JsonObject, describe_validation_error
from kgwb.run.agents import AgentSpec, agent, agent_of_key
from kgwb.run.http_clients import await_on_client_loop, wait_for
from kgwb.run.http_protocols import data_from_message, message_from_data
from kgwb.run.http_recorder import TASK, ClientModel, missing_calls_noted
from kgwb.run.steps import current_run

HTTP_PROVIDERS = ("openai", "azure", "ollama", "anthropic", "groq", "mistral", "deepseek", "xai")
"""Providers whose requests a run records at HTTP, with all that the program reads of the reply."""
ADDRESS_FIELDS = ("base_url", "endpoint_url", "endpoint")
"""Fields in which models of other providers may have the address of their server."""
REPLY_FIELDS = ("content", "tool_calls", "invalid_tool_calls", "additional_kwargs")
"""The fields of a reply that are recorded besides its tokens, if they are not empty."""
Generate = Callable[[list[BaseMessage]], ChatResult]
"""Asks the plain model."""


def wrap_model(llm: Any) -> BaseChatModel:
    """Return a copy of a chat model whose calls go through the run, where a run does not see its requests.

    It is not streamed. Raises SettingError unless ``llm`` is a BaseChatModel.
    """
    if not isinstance(llm, BaseChatModel):
        raise SettingError(
            f"wrap_langchain got a {type(llm).__name__}, which is not a chat model of LangChain",
            hint="pass a BaseChatModel, and call bind_tools on what wrap_langchain returns",
        )
    wrapped = llm.model_copy(update={"disable_streaming": True})
    recorder = _Recorder(llm)
    # Fields are set by pydantic alone; a method of an object goes before that of its class
    object.__setattr__(wrapped, "_generate", recorder.generate)
    object.__setattr__(wrapped, "_agenerate", recorder.agenerate)
    return wrapped


class _Recorder:
    """Asks a chat model: inside a run through its record."""

    def __init__(self, llm: Any) -> None:
        self._llm = llm

    def generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: Any = None,
        **options: Any,
    ) -> ChatResult:
        """Return the reply to the messages that the run recorded or makes now.

        Outside of a run the plain model is asked.
        """
        ask: Any = partial(self._llm._generate, stop=stop, run_manager=run_manager, **options)
        asked = self._request_to_record(messages, {**options, "stop": stop})
        if asked is None:
            return ask(messages)  # type: ignore[no-any-return]
        return self._recorded(asked, messages, ask)

    async def agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: Any = None,
        **options: Any,
    ) -> ChatResult:
        """Return the reply to the messages that the run recorded or makes now.

        The plain model is asked by its own coroutine. Inside a run it is waited for, so that steps
        of several branches have the same order each time. Outside of a run it is awaited.
        """
        ask: Any = partial(self._llm._agenerate, stop=stop, **options)
        if current_run() is None:
            return await await_on_client_loop(ask(messages))  # type: ignore[no-any-return]
        asked = self._request_to_record(messages, {**options, "stop": stop})
        if asked is None:
            return await ask(messages)  # type: ignore[no-any-return]
        return self._recorded(asked, messages, lambda sent: wait_for(ask(sent)))

    def _request_to_record(
        self, messages: list[BaseMessage], options: JsonObject
    ) -> tuple[str, ChatRequest] | None:
        """Return the name of the model and its request, if that is to be recorded here; else None.

        It is not outside of a run, nor for one of the HTTP_PROVIDERS, unless an earlier version has
        recorded it. The name has provider and model, the request the model's parameters and
        ``options``.
        """
        run = current_run()
        if run is None:
            return None
        shown = [message_from_data(data) for data in convert_to_openai_messages(messages)]
        described: Any = self._llm._get_ls_params()
        identity = {**self._llm._identifying_params, **described}
        provider = described.get("ls_provider", self._llm._llm_type)
        model_name = described.get("ls_model_name", type(self._llm).__name__)
        name = f"{provider}:{model_name}"
        recorded = json_options({**identity, **options})
        request = ChatRequest(TASK, tuple(shown), options=recorded)
        if provider in HTTP_PROVIDERS and not run.has_reply(name, request):
            return None
        return name, request

    def _address(self) -> str:
        """Return the address that the model asks, as far as its fields say it; else ""."""
        for field in ADDRESS_FIELDS:
            value = getattr(self._llm, field, None)
            if isinstance(value, str) and value:
                return value
        return ""

    def _recorded(
        self, asked: tuple[str, ChatRequest], messages: list[BaseMessage], generate: Generate
    ) -> ChatResult:
        """Return the reply that the run has recorded; without one, ask ``generate`` and record it."""
        name, request = asked

        def send(sent: Sequence[Message]) -> ChatReply:
            """Ask ``generate`` the given messages; if a person edited them, the edited ones."""
            if tuple(sent) == request.messages:
                return _reply_of(generate(messages))
            edited = [data_from_message(message) for message in sent]
            return _reply_of(generate(convert_to_messages(edited)))

        run = current_run()
        with missing_calls_noted(run):
            _, reply = run.chat(request, ClientModel(name, self._address(), send))
        return _result_of(reply)


def _reply_of(result: ChatResult) -> ChatReply:
    """Return LangChain's reply as a ChatReply, as it is recorded.

    Its text is the content of the message, if that is a text and no other of the REPLY_FIELDS is
    filled; otherwise the JSON of those fields.
    """
    message: Any = result.generations[0].message
    fields = {}
    for name in REPLY_FIELDS:
        value = getattr(message, name, None)
        if value or name == "content":
            fields[name] = value
    usage = getattr(message, "usage_metadata", None) or {}
    about = message.response_metadata or {}
    return ChatReply(
        text_of_fields(fields),
        model=str(about.get("model_name", "")),
        prompt_tokens=parse_token_count(usage.get("input_tokens")),
        completion_tokens=parse_token_count(usage.get("output_tokens")),
        finish_reason=str(about.get("finish_reason", "stop")),
        fingerprint=str(about.get("system_fingerprint") or ""),
    )


def _result_of(reply: ChatReply) -> ChatResult:
    """Return a recorded reply as LangChain's ChatResult: one generation with an AIMessage.

    The message has the recorded fields, the token counts, the model and the finish reason.
    """
    usage: Any = {
        "input_tokens": reply.prompt_tokens,
        "output_tokens": reply.completion_tokens,
        "total_tokens": reply.prompt_tokens + reply.completion_tokens,
    }
    about = {"model_name": reply.model, "finish_reason": reply.finish_reason}
    fields = fields_of_text(reply.text)
    message = AIMessage(**fields, usage_metadata=usage, response_metadata=about)
    return ChatResult(generations=[ChatGeneration(message=message)])


INTERRUPT = "__interrupt__"
"""The name in a state under which LangGraph says why it stopped."""
START_NODE = "__start__"
"""The node that LangGraph adds to write the first state."""


class NodeStep(Runnable[Any, Any]):
    """A node of a graph; inside a run each execution of it is a step."""

    def __init__(self, spec: AgentSpec, node: Any, types: Mapping[str, Any]) -> None:
        """``types`` are those of the fields of the graph's state."""
        self.name = spec.name
        self._types = types
        self._spec = spec
        self._node = node

    def invoke(self, input: Any, config: Any = None, **options: Any) -> Any:
        """Execute the node on a state as a step of the run, and return its output.

        The step's input is the state. Outside of a run the node is invoked as it is.
        """
        work = partial(self._node.invoke, input, config, **options)
        run = current_run()
        if run is None:
            return work()
        output = run.execution.execute(self._spec, {"state": input}, work)
        return self._typed(output, run)

    async def ainvoke(self, input: Any, config: Any = None, **options: Any) -> Any:
        """Await the node on a state as a step of the run, and return its output.

        The step's input is the state. Outside of a run the node is awaited as it is.
        """
        work = partial(self._node.ainvoke, input, config, **options)
        run = current_run()
        if run is None:
            return await work()
        output = await run.execution.execute_async(self._spec, {"state": input}, work)
        return self._typed(output, run)

    def _typed(self, output: Any, run: Any) -> Any:
        """Return the output of the node; if a person put it in, with the types of the state's fields.

        Raises OverrideError for a part that is not of the type of its field.
        """
        put_in = [agent_of_key(key) for key in run.overrides]
        if not isinstance(output, dict) or self.name not in put_in:
            return output
        typed = {}
        for name, value in output.items():
            typed[name] = value
            if name in self._types:
                field_type = self._types[name]
                try:
                    typed[name] = _field_adapter(field_type).validate_python(value)
                except PydanticSchemaGenerationError:
                    continue  # a type that pydantic does not know
                except ValidationError as error:
                    problem = describe_validation_error(error)
                    raise OverrideError(
                        f"{name} of what was put in for the node {self.name} cannot be used: {problem}",
                        hint="give a value of the type that the state has there, as JSON data",
                    ) from error
        return typed


def _field_adapter(field_type: Any) -> TypeAdapter[Any]:
    """Return what makes a value of the type of a field of a graph's state."""
    try:
        return TypeAdapter(field_type, config=ConfigDict(arbitrary_types_allowed=True))
    except PydanticUserError:  # a class that has a configuration of its own
        return TypeAdapter(field_type)


def _types_of_state(graph: Any) -> Mapping[str, Any]:
    """Return the types of the fields of a graph's state by name, as far as they are known."""
    builder = getattr(graph, "builder", None)
    schema = getattr(builder, "state_schema", None)
    try:
        return get_type_hints(schema, include_extras=True)
    except (TypeError, NameError):
        return {}


def graph_as_function(
    graph: Any, start: Callable[[str], Any]
) -> tuple[Callable[[str], Any], list[Any]]:
    """Return a function from a question to the last state of a graph, and its nodes as agents.

    It is a coroutine function if a node can only be awaited. Raises SettingError if the graph is
    not compiled.
    """
    from langgraph.pregel import Pregel

    if not isinstance(graph, Pregel):
        raise SettingError(
            f"system_from_langgraph got a {type(graph).__name__}, which is not a compiled graph",
            hint="pass what graph.compile() returns",
        )
    if graph.interrupt_before_nodes or graph.interrupt_after_nodes:
        raise SettingError(
            "system_from_langgraph got a graph that interrupts before or after a node, which a run does not do",
            hint="compile it without interrupt_before and interrupt_after, and set breakpoints of the run",
        )
    agents = []
    nodes = {}
    types = _types_of_state(graph)
    for name, node in graph.nodes.items():
        nodes[name] = node
        if name == START_NODE:
            continue
        as_agent = agent(str(name))
        function: Any = as_agent(_node_function(name, node.bound))
        agents.append(function)
        nodes[name] = node.copy({"bound": NodeStep(function.spec, node.bound, types)})
    stepped = graph.copy({"nodes": nodes, "checkpointer": None})
    # One node at a time, so that the steps have the same order each time.
    config: Any = {"max_concurrency": 1}

    def langgraph(question: str) -> Any:
        """The last state of the graph."""
        state = stepped.invoke(start(question), config)
        return _last_state(state)

    async def langgraph_awaited(question: str) -> Any:
        """The last state of the graph."""
        state = await stepped.ainvoke(start(question), config)
        return _last_state(state)

    if any(_is_awaited(node.bound) for node in graph.nodes.values()):
        return langgraph_awaited, agents
    return langgraph, agents


def _last_state(state: Any) -> Any:
    """Return the last state of a graph. Raises SettingError if it stopped at an interrupt."""
    if isinstance(state, dict) and state.get(INTERRUPT):
        raise SettingError(
            f"the graph stopped at an interrupt, which a run does not take up: {state[INTERRUPT]}",
            hint="put in what its node should return: run.override(NODE, VALUE)",
        )
    return state


def _is_awaited(bound: Any) -> bool:
    """Return whether a node can only be awaited."""
    return getattr(bound, "afunc", None) is not None and bound.func is None


def _node_function(name: str, bound: Any) -> Callable[..., Any]:
    """Return a function of this name that invokes a node, to be marked as an agent.

    It has the docstring and, as ``__wrapped__``, the source of the node's own function.
    """

    def execute_node(state: Any) -> Any:
        """Invoke the node with a state."""
        return bound.invoke(state)

    own = getattr(bound, "func", None) or getattr(bound, "afunc", None)
    execute_node.__name__ = name
    execute_node.__annotations__ = {}  # an update of the state has any form
    execute_node.__doc__ = getattr(own, "__doc__", "")
    if own is not None:
        execute_node.__wrapped__ = own  # type: ignore[attr-defined]
    return execute_node
