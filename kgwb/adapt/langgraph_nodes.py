"""The nodes of a graph of LangGraph as agents. This module needs LangGraph."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from langchain_core.runnables import Runnable
from langgraph.pregel import Pregel

from kgwb.errors import SettingError
from kgwb.run.agents import AgentSpec, agent
from kgwb.run.steps import current_run

START_NODE = "__start__"
"""The node that LangGraph adds to write the first state."""


class NodeStep(Runnable[Any, Any]):
    """A node of a graph; inside a run each execution of it is a step."""

    def __init__(self, spec: AgentSpec, node: Any) -> None:
        self.name = spec.name
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
        return run.execute(self._spec, {"state": input}, work)

    async def ainvoke(self, input: Any, config: Any = None, **options: Any) -> Any:
        """Await the node on a state as a step of the run, and return its output.

        The step's input is the state. Outside of a run the node is awaited as it is.
        """
        work = partial(self._node.ainvoke, input, config, **options)
        run = current_run()
        if run is None:
            return await work()
        return await run.execute_async(self._spec, {"state": input}, work)


def graph_as_function(
    graph: Any, start: Callable[[str], Any]
) -> tuple[Callable[[str], Any], list[Any]]:
    """Return a function from a question to the last state of a graph, and its nodes as agents.

    It is a coroutine function if a node can only be awaited. Raises SettingError if the graph is
    not compiled.
    """
    if not isinstance(graph, Pregel):
        raise SettingError(
            f"system_from_langgraph got a {type(graph).__name__}, which is not a compiled graph",
            hint="pass what graph.compile() returns",
        )
    agents = []
    nodes = {}
    for name, node in graph.nodes.items():
        nodes[name] = node
        if name == START_NODE:
            continue
        function: Any = agent(str(name))(_node_function(name, node.bound))
        agents.append(function)
        nodes[name] = node.copy({"bound": NodeStep(function.spec, node.bound)})
    stepped = graph.copy({"nodes": nodes, "checkpointer": None})
    # One node at a time, so that the steps have the same order each time.
    config: Any = {"max_concurrency": 1}

    def langgraph(question: str) -> Any:
        """The last state of the graph."""
        return stepped.invoke(start(question), config)

    async def langgraph_awaited(question: str) -> Any:
        """The last state of the graph."""
        return await stepped.ainvoke(start(question), config)

    if any(_is_awaited(node.bound) for node in graph.nodes.values()):
        return langgraph_awaited, agents
    return langgraph, agents


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
