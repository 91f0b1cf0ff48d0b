"""Systems made of a pipeline: of its function, or of the file that has it."""

from __future__ import annotations

import ast
import asyncio
import functools
import inspect
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, get_type_hints

import rdflib

from kgwb.adapt.answers import make_answer
from kgwb.adapt.clients import wrap_executor
from kgwb.adapt.graph_clients import wrap_rdflib
from kgwb.errors import SettingError
from kgwb.run import Run
from kgwb.run.agents import System, agent, spec_of
from kgwb.run.answers import Answer, Dialogue, Question
from kgwb.run.systems import load_file

Pipeline = Callable[..., Any]
"""Answers a question, which is its first argument."""
ToAnswer = Callable[[Any], Any]
"""Returns the Answer, or the values, of what a pipeline returned."""
ANSWER_AGENT = "to_answer"
"""The name of the agent that makes the Answer of what the pipeline returned."""


def system_from_function(
    name: str,
    function: Pipeline,
    *,
    to_answer: ToAnswer | None = None,
    agents: Iterable[Any] | None = None,
    **options: Any,
) -> System:
    """Return a system of a pipeline: a function from a question's text to anything.

    The function may be ``async def``. It is an agent itself, and supervises ``agents``. These are
    by default the marked functions of its module that it uses, directly or through others, in the
    order of their use; of a method, such as ``expert.answer``, the marked methods, too.
    ``to_answer`` makes an Answer, or its values, of what the function returns; by default that is
    taken for the values (``make_answer``). This is the last step. ``options`` are those of
    ``System``, such as ``settings`` or ``gold``.

    Raises SettingError if ``function`` is not callable, and what ``System`` raises.
    """
    if not callable(function):
        raise SettingError(
            f"system_from_function got a {type(function).__name__}, which is not a function",
            hint="pass the function that answers a question: system_from_function(answer)",
        )
    if agents is None:
        agents = _used_agents(function)
    pipeline = _as_agent(function)
    steps = [step for step in agents if step.spec.name != pipeline.spec.name]

    @agent(ANSWER_AGENT)
    def make_it_an_answer(result: Any) -> Answer:
        """The answer, with the triples that its values stand on."""
        converted = result if to_answer is None else to_answer(result)
        if isinstance(converted, Answer):
            return converted
        return make_answer(converted)

    def answer(question: Question, dialogue: Dialogue, run: Run) -> Answer:
        """Return the pipeline's answer to the question; a coroutine is awaited."""
        result = pipeline(question.text)
        if inspect.isawaitable(result):
            result = asyncio.run(_wait(result))
        return make_it_an_answer(result)

    supervisors = {}
    if steps:
        supervisors[pipeline.spec.name] = [step.spec.name for step in steps]
    # A system is named in files by the module of its function, and a message by its lines.
    answer.__module__ = function.__module__
    listed = [pipeline, *steps, make_it_an_answer]
    return System(name, answer, listed, supervisors=supervisors, **options)


async def _wait(awaitable: Any) -> Any:
    return await awaitable


def _as_agent(function: Pipeline) -> Any:
    """Return a function as an agent: as it is, if it is one already."""
    return agent(function) if spec_of(function) is None else function


def steps_in(owner: Any, *methods: str, **named: str) -> list[Any]:
    """Make methods of an object steps, and return their agents, for ``system_from_function(agents=)``.

    ``steps_in(chain, "_call", draft="invoke")`` makes a step "_call" and a step "draft". The object
    may be one of a library, also of pydantic, or a module: it calls its methods as before, and only
    this object is changed. Outside of a run they do what they did.

    Raises SettingError if the object has no such method, or its methods cannot be replaced.
    """
    agents = []
    for name, method in (dict(zip(methods, methods, strict=True)) | named).items():
        plain = getattr(owner, method, None)
        if not callable(plain):
            raise SettingError(
                f"steps_in got {method!r}, which is no method of {type(owner).__name__}",
                hint="name a method that the object itself calls",
            )
        spec = spec_of(plain)
        if spec is not None and inspect.ismethod(plain):  # a marked one
            plain = MethodType(spec.function, plain.__self__)
        elif spec is not None:  # a cell that is executed again
            plain = spec.function
        step = agent(name)(_as_function(plain))
        try:
            vars(owner)[method] = step  # pydantic sets fields only
        except TypeError as error:
            raise SettingError(
                f"{method} of a {type(owner).__name__} cannot be made a step: {error}",
                hint="mark a function of your own that calls it with @agent",
            ) from error
        agents.append(step)
    return agents


def _as_function(method: Any) -> Any:
    """Return a function that calls a method of a library, with its parameters and known types.

    Libraries import what only type checkers need for these alone. A function that was made a method
    by hand may still name its ``self``.
    """
    if inspect.iscoroutinefunction(method):

        @functools.wraps(method)
        async def call(*args: Any, **kwargs: Any) -> Any:
            return await method(*args, **kwargs)

    else:

        @functools.wraps(method)
        def call(*args: Any, **kwargs: Any) -> Any:
            return method(*args, **kwargs)

    function: Any = call
    function.__annotations__ = {}
    with suppress(NameError, TypeError):
        function.__annotations__ = get_type_hints(method)
    signature = inspect.signature(method)
    own = [parameter for name, parameter in signature.parameters.items() if name != "self"]
    function.__signature__ = signature.replace(parameters=own)
    return function


def _used_agents(function: Pipeline) -> list[Any]:
    """Return the agents that a function uses by their names, directly or through other functions.

    They are in the order of their use, each once. Only names of the function's own module are
    known, and of a method those of its class: an agent that is reached in another way has to be
    given.
    """
    found: dict[int, Any] = {}
    seen: set[int] = set()
    owner = type(getattr(function, "__self__", None))

    def visit(used: Any) -> None:
        """Add the agents that a function names in its code to ``found``, and visit the functions.

        A function is visited once; below decorators it is the innermost one.
        """
        plain = inspect.unwrap(getattr(used, "__func__", used))
        if id(plain) in seen or not inspect.isfunction(plain):
            return
        seen.add(id(plain))
        for name in _names_in_order(plain):
            value = plain.__globals__.get(name) or getattr(owner, name, None)
            if spec_of(value) is not None:
                found[id(value)] = value
            if inspect.isfunction(value):
                visit(value)

    visit(function)
    return list(found.values())


def _names_in_order(function: FunctionType) -> list[str]:
    """Return the names of globals and attributes in a function, in the order of their use.

    Of ``say(draft(question))`` that is draft, then say, while the code object has "say" first. Where
    the source is not known, the order is that of the code objects.
    """
    names = _names_in(function.__code__)
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):  # such as a lambda in the middle of a line
        return names
    in_source = _NamesInOrder()
    in_source.visit(tree)
    known = set(names)
    in_order = [name for name in in_source.names if name in known]
    return in_order + names


class _NamesInOrder(ast.NodeVisitor):
    """Collects names and attributes in the order in which Python uses them.

    What is called comes after its arguments, and what a comprehension makes after what it reads.
    """

    def __init__(self) -> None:
        self.names: list[str] = []

    def visit_Name(self, node: ast.Name) -> None:
        self.names.append(node.id)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self.visit(node.value)
        self.names.append(node.attr)

    def visit_Call(self, node: ast.Call) -> None:
        names = []
        for argument in (*node.args, *node.keywords):
            if isinstance(argument, ast.Name):
                names.append(argument)  # a function that is passed on is called later
            else:
                self.visit(argument)
        for callee in (*names, node.func):
            self.visit(callee)

    def visit_ListComp(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> None:
        for generator in node.generators:
            self.visit(generator)
        self.visit(node.elt)

    visit_SetComp = visit_GeneratorExp = visit_ListComp


def _names_in(code: CodeType) -> list[str]:
    """Return the names of globals and attributes in a function's code, and in functions inside it.

    The order is that of Python's code objects; the same name may occur several times.
    """
    names = list(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names += _names_in(constant)
    return names


# A file that is not touched


def system_from_file(
    place: str | Path,
    steps: Sequence[str],
    *,
    name: str = "",
    to_answer: ToAnswer | None = None,
    **options: Any,
) -> System:
    """Return a system of a pipeline in a file, "pipeline.py:answer"; the file is not changed.

    ``steps`` are the names of the functions that are to be steps. In the module, as it is loaded,
    these become agents; graphs of rdflib and thread pools that stand under a name are wrapped, and so
    are those that its functions make. ``name`` is by default that of the file. ``to_answer`` and
    ``options`` are those of ``system_from_function``.

    Raises SettingError if the place does not name a file and a function, if there is no such file,
    function or step, or if its module cannot be imported.
    """
    file_name, _, function_name = str(place).rpartition(":")
    if not file_name.endswith(".py"):
        raise SettingError(
            f"system_from_file got {str(place)!r}, which does not name a file and a function of it",
            hint="write both with a colon, such as pipeline.py:answer",
        )
    module = load_file(Path(file_name))
    own_functions = ", ".join(_functions_of(module)) or "none"
    for wanted in (*steps, function_name):
        if not inspect.isfunction(getattr(module, wanted, None)):
            raise SettingError(
                f"{file_name} has no function {wanted}",
                hint=f"name one of its functions: {own_functions}",
            )
    _wrap_clients(module)
    for step in steps:
        function = getattr(module, step)
        setattr(module, step, _as_agent(function))
    agents = [getattr(module, step) for step in steps]
    system = system_from_function(
        name or Path(file_name).stem,
        getattr(module, function_name),
        to_answer=to_answer,
        agents=agents,
        **options,
    )
    system.origin = str(place)
    return system


def _functions_of(module: ModuleType) -> list[str]:
    """Return the names of the functions that a module defines, not imports, in order."""
    names = []
    for name, value in vars(module).items():
        if inspect.isfunction(value) and value.__module__ == module.__name__:
            names.append(name)
    return names


def _wrap_clients(module: ModuleType) -> None:
    """Replace the clients that stand under a name in a module by wrapped ones.

    A class of clients is replaced by a function that makes wrapped ones.
    """
    wrappers = _client_wrappers()
    for name, value in list(vars(module).items()):
        for client_class, wrap in wrappers.items():
            if value is client_class:
                setattr(module, name, _making_wrapped(client_class, wrap))
            elif type(value) is client_class:
                setattr(module, name, wrap(value))


def _client_wrappers() -> Mapping[type, Callable[[Any], Any]]:
    """Return the function that wraps a client in this process, by the client's class."""
    return {rdflib.Graph: wrap_rdflib, ThreadPoolExecutor: wrap_executor}


def _making_wrapped(client_class: type, wrap: Callable[[Any], Any]) -> Callable[..., Any]:
    """Return a function that takes the place of a class: it makes a client and wraps it."""

    @functools.wraps(client_class, updated=())
    def make(*args: Any, **kwargs: Any) -> Any:
        """Make the client, and wrap it."""
        return wrap(client_class(*args, **kwargs))

    return make
