"""LangGraph and LangChain, which are not installed with kgwb: its extra ``langgraph`` has them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from kgwb.adapt.pipelines import ToAnswer, system_from_function
from kgwb.errors import SettingError
from kgwb.run.agents import System

ChatModel = TypeVar("ChatModel")
"""A chat model of LangChain."""


def system_from_langgraph(
    graph: Any,
    *,
    start: Callable[[str], Any],
    answer: ToAnswer | None = None,
    name: str = "langgraph",
    **options: Any,
) -> System:
    """Return a system of a graph that LangGraph has compiled; each node is an agent.

    ``start`` returns the first state for a question. ``answer`` makes an Answer, or its values, of
    the last state. A node that is executed several times, as in a loop, has a step each time; nodes
    in branches are executed one after another. A graph inside of the graph is one step. ``options``
    are those of ``System``. The given graph does not change; the system works without its
    checkpointer.

    Raises SettingError if LangGraph is not installed, or ``graph`` is not a compiled graph.
    """
    with _explained_import():
        from kgwb.adapt.langchain import graph_as_function

        function, agents = graph_as_function(graph, start)
    return system_from_function(name, function, to_answer=answer, agents=agents, **options)


def wrap_langchain(llm: ChatModel) -> ChatModel:
    """Return a chat model of LangChain whose calls go through the run, also after ``bind_tools``.

    Inside a run, calls are recorded with all their parameters, found again, and their messages can
    be edited. Outside of a run it is the plain model. The given model does not change.

    Raises SettingError if LangChain is not installed, or ``llm`` is not a BaseChatModel.
    """
    with _explained_import():
        from kgwb.adapt.langchain import wrap_model
    wrapped: Any = wrap_model(llm)
    return wrapped  # type: ignore[no-any-return]


@contextmanager
def _explained_import() -> Iterator[None]:
    """Raise SettingError, which names the extra to install, if an import in the block fails.

    That is in place of a ModuleNotFoundError.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise SettingError(
            f"LangGraph and LangChain cannot be used: the package {error.name} is not installed",
            hint="install the extra: pip install 'kgwb[langgraph]'",
        ) from error
