"""Systems made of a pipeline: of its function, or of the file that has it, or of a graph of LangGraph."""

from __future__ import annotations

import ast
import asyncio
import functools
import inspect
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, TypeVar, get_type_hints

import rdflib
from rdflib import BNode, Literal, URIRef

from kgwb.adapt.clients import wrap_executor, wrap_rdflib
from kgwb.errors import KgwbError, SettingError
from kgwb.kg.base import AnswerKind, ResultSet
from kgwb.kg.queries import find_support_by_row
from kgwb.kg.responses import parse_cell
from kgwb.kg.sparql import is_query, is_valid_iri
from kgwb.kg.term_text import short_name
from kgwb.run import Run
from kgwb.run.agents import System, agent, spec_of
from kgwb.run.answers import CANNOT_EXPRESS, NOT_IN_GRAPH, Answer, Dialogue, Question, Value
from kgwb.run.steps import Call, current_run, used_calls
from kgwb.run.systems import load_file
from kgwb.terms import Term, Triples

IRI_SCHEMES = ("http://", "https://", "urn:")
MAX_FOUND_QUERIES = 3
"""Queries of a run that are taken for those of its answer, if a pipeline does not name them."""
MAX_NAMED_ROWS = 100
"""A sentence does not name the rows of a longer result."""


def make_answer(
    values: Any,
    queries: Sequence[str] | None = None,
    *,
    kind: AnswerKind | None = None,
    text: str = "",
    reason: str = "",
) -> Answer:
    """Return the values that a pipeline found as an Answer, with the triples that support them.

    ``values`` are one value or several: terms of rdflib, texts (an IRI is a vertex), numbers, truth
    values, or terms in the JSON form of SPARQL results. Of a row, the first cell counts.
    ``queries`` are the queries that they came from; None means those of the run whose results have
    a value, the last MAX_FOUND_QUERIES of them; without values, those that have no rows. ``kind`` is
    by default that of the values. Without values, ``reason`` says why.

    A sentence is the text of the answer if its query is known: the values are then the first cells of
    the query's rows. It is known if it is given, or if ``values`` are a mapping that has both. Of the
    queries that no one names, the last counts whose rows are named in the sentence; the values are
    those that are.

    The support of a value is found from the recorded queries: the triples that they match where the
    value is in a row. The step gets a note if no value has support.
    """
    run = current_run()
    if isinstance(values, Mapping) and "value" not in values:
        values, queries = _split_mapping(run, values, queries)
    items = _items_of(values)
    if len(items) == 1 and isinstance(items[0], str) and " " in items[0]:
        sentence = items[0]
        if queries is None:
            found = _values_named_in(run, sentence)
        else:
            found = _values_of_queries(run, queries, sentence)
        if found:
            text = text or sentence
            items = found
    kind = kind or _kind_of(items)
    items = list(map(_first_cell, items))
    terms = list(map(_term_of, items))
    given_terms = {
        _term_of(item) for item in items if isinstance(item, URIRef | Literal | BNode | Mapping)
    }
    results = _results_of_queries(run, queries, terms)
    texts = tuple(dict.fromkeys(results if queries is None else queries))
    if not terms:
        if queries is None:
            texts = _queries_without_rows(run)
        reason = reason or _why_no_value(run, texts)
        return Answer(kind, queries=texts, text=text, reason=reason)

    labels = _labels_of(run, terms)
    answer_values = []
    for term in dict.fromkeys(terms):
        support = _support_of(run, term, results, is_text=term not in given_terms)
        answer_values.append(Value(term, labels[term], support))
    if run is not None and not any(value.support for value in answer_values):
        run.note(_why_unsupported(results))
    return Answer(kind, tuple(answer_values), texts, text, reason)


def _split_mapping(
    run: Run | None, found: Mapping[str, Any], queries: Sequence[str] | None
) -> tuple[Any, Sequence[str] | None]:
    """Return the values and the queries in a mapping that a pipeline returned.

    Queries are its texts that are queries and that the run has recorded, and the values are the
    first of the rest that is not the question. A mapping without such a text is the value itself.
    """
    named = []
    rest = []
    for part in found.values():
        if isinstance(part, str) and is_query(part) and _calls_with(run, part):
            named.append(part)
        elif run is None or part != run.question:
            rest.append(part)
    if not named:
        return found, queries
    value = rest[0] if rest else None
    return value, queries or named


def _values_of_queries(run: Run | None, queries: Sequence[str], sentence: str) -> list[Any]:
    """Return the first cells of the rows of the last of these queries that has rows.

    Empty if a result has the sentence itself as a cell, so that it is a value.
    """
    results = _results_of_queries(run, queries, ())
    values: list[Any] = []
    for result in results.values():
        if _holds_any(result, [Literal(sentence)]):
            return []
        if isinstance(result, ResultSet) and result.rows:
            values = [row[0] for row in result.rows if row[0] is not None]
    return values


def _values_named_in(run: Run | None, sentence: str) -> list[Any]:
    """Return the first cells whose names stand in a sentence, of the last query that has such rows.

    A query whose result has the sentence itself as a cell ends the search: the sentence is a value.
    Looked at are the last MAX_FOUND_QUERIES results with 1 to MAX_NAMED_ROWS rows.
    """
    results = []
    for call in _recorded_queries(run):
        if isinstance(call.result, ResultSet) and 0 < len(call.result.rows) <= MAX_NAMED_ROWS:
            results.append(call.result)
    for result in reversed(results[-MAX_FOUND_QUERIES:]):
        if _holds_any(result, [Literal(sentence)]):
            return []
        cells = [row[0] for row in result.rows if row[0] is not None]
        labels = _labels_of(run, cells)
        named = [cell for cell in cells if _is_named_in(sentence, labels[cell])]
        if named:
            return named
    return []


def _is_named_in(sentence: str, label: str) -> bool:
    """Return whether a label stands in a sentence, and not as a part of a word."""
    if not label:
        return False
    whole_words = rf"(?<!\w){re.escape(label)}(?!\w)"
    return re.search(whole_words, sentence) is not None


def _queries_without_rows(run: Run | None) -> tuple[str, ...]:
    """Return the latest MAX_FOUND_QUERIES queries of the run that have no rows, the last first.

    A row without any term is none: rdflib keeps one for GROUP BY over nothing, and never shows it.
    """
    texts: dict[str, None] = {}
    for call in reversed(_recorded_queries(run)):
        if not isinstance(call.result, ResultSet):
            continue
        terms = chain.from_iterable(call.result.rows)
        if all(term is None for term in terms):
            query = call.request["query"]
            texts[query] = None
    return tuple(texts)[:MAX_FOUND_QUERIES]


def _why_no_value(run: Run | None, queries: Sequence[str]) -> str:
    """Return the reason of an answer without values; ``queries`` are those that gave none."""
    if queries:
        return f"{NOT_IN_GRAPH}: the queries gave no value"
    if _recorded_queries(run):
        return f"{CANNOT_EXPRESS}: the pipeline gave no value, although its queries have results"
    return f"{CANNOT_EXPRESS}: the pipeline gave no value, and no query"


def _items_of(values: Any) -> list[Any]:
    """Return the values of a pipeline as a list: [] for None, one item for a text or mapping."""
    if values is None:
        return []
    if isinstance(values, str | Mapping) or not isinstance(values, Iterable):
        return [values]
    return list(values)


def _kind_of(items: Sequence[Any]) -> AnswerKind:
    """Return "boolean" for one truth value, "count" for one whole number, else "list".

    A literal counts by its Python value.
    """
    if len(items) != 1:
        return "list"
    [item] = items
    if isinstance(item, Literal):
        item = item.toPython()
    if isinstance(item, bool):
        return "boolean"
    if isinstance(item, int):
        return "count"
    return "list"


def _first_cell(item: Any) -> Any:
    """Return the first cell of a row; any other value as it is."""
    while isinstance(item, tuple | list) and item:
        item = item[0]
    return item


def _term_of(item: Any) -> Term:
    """Return the RDF term of a value that a pipeline gave.

    A term is returned as it is, and a mapping is read as a cell of SPARQL results. A text is an IRI
    if it begins like one and is valid; any other value becomes a literal.
    """
    if isinstance(item, URIRef | Literal | BNode):
        return item
    if isinstance(item, Mapping) and "value" in item:
        return parse_cell(item)
    if isinstance(item, str) and item.startswith(IRI_SCHEMES) and is_valid_iri(item):
        return URIRef(item)
    return Literal(item)


def _labels_of(run: Run | None, terms: Sequence[Term]) -> dict[Term, str]:
    """Return a label for each term: the display name of an IRI, the text of anything else.

    Display names are asked of the run's graph; without a run or if that fails, which is noted on
    the step, they are local parts.
    """
    labels: dict[Any, str] = {term: str(term) for term in terms}
    iris = [term for term in terms if isinstance(term, URIRef)]
    for iri in iris:
        labels[iri] = short_name(iri)
    if run is None:
        return labels
    try:
        labels.update(run.kg.names(iris))
    except KgwbError as error:
        run.note(f"the values have no display names: {error.message}")
    return labels


# Support


def _recorded_queries(run: Run | None) -> list[Call]:
    """Return the SELECT and ASK queries that the present execution used, in order, each once.

    Empty outside of a run.
    """
    if run is None:
        return []
    calls = used_calls(run.steps, run.calls)
    return [call for call in calls if call.kind in ("select", "ask")]


def _results_of_queries(
    run: Run | None, queries: Sequence[str] | None, terms: Sequence[Term]
) -> dict[str, ResultSet | bool]:
    """Return the recorded results of an answer's queries, by the recorded query text.

    With ``queries`` these are the calls whose text contains one of them. None stands for the latest
    MAX_FOUND_QUERIES queries whose result has one of the terms, the last first. Empty outside of a
    run.
    """
    calls: list[Call] = []
    if queries is None:
        recorded = reversed(_recorded_queries(run))
        holding = [call for call in recorded if _holds_any(call.result, terms)]
        calls = holding[:MAX_FOUND_QUERIES]
    else:
        for query in queries:
            calls += _calls_with(run, query)
    return {call.request["query"]: call.result for call in calls}


def _calls_with(run: Run | None, query: str) -> list[Call]:
    """Return the recorded queries whose text contains a query.

    White space does not count: a pipeline may format a query anew after it was sent.
    """
    wanted = "".join(query.split())
    calls = []
    for call in _recorded_queries(run):
        recorded = "".join(call.request["query"].split())
        if wanted in recorded:
            calls.append(call)
    return calls


def _holds_any(result: Any, terms: Sequence[Term]) -> bool:
    """Return whether a recorded result has one of the terms.

    Of a SELECT a cell must have the term's text; of an ASK the truth value must be a term.
    """
    if not isinstance(result, ResultSet):
        truths = [term.toPython() for term in terms if isinstance(term, Literal)]
        return any(truth is result for truth in truths)
    wanted = set(map(str, terms))
    cells = chain.from_iterable(result.rows)
    bound_cells = (cell for cell in cells if cell is not None)
    return any(str(cell) in wanted for cell in bound_cells)


def _why_unsupported(results: Mapping[str, ResultSet | bool]) -> str:
    """Return the note for an answer without supporting triples.

    If a recorded query had its values (``results``), paths and aggregates are named as the reason,
    otherwise that no recorded query has a value.
    """
    if results:
        return "no supporting triple: property paths and aggregates in a query may give none"
    return (
        "no supporting triple: no recorded query has a value in its results; "
        "methods of rdflib, such as graph.objects, are not recorded"
    )


def _support_of(
    run: Run | None, term: Term, results: Mapping[str, ResultSet | bool], *, is_text: bool
) -> Triples:
    """Return the triples that support a value, by the rows that have it; each once.

    These are the rows with its text, as another language or datatype may have got lost on the way.
    If the pipeline gave the term and not only its text (``is_text``), only rows with the term count
    if there are any.

    Queries are sent to the run's graph for this. The step gets a note for a query that fails.
    """
    triples: list[Any] = []
    for query, result in results.items():
        columns: tuple[str, ...] = ()
        rows: list[Any] = []
        if isinstance(result, ResultSet):
            columns = result.variables
            rows = [row for row in result.rows if str(term) in map(str, row)]
            if not is_text:
                rows = [row for row in rows if term in row] or rows
            if not rows:
                continue
        elif result is False:
            continue
        try:
            by_row = find_support_by_row(run.kg, query, columns, rows)  # type: ignore[union-attr]
        except KgwbError as error:
            run.note(f"no support from a query: {error.message}")  # type: ignore[union-attr]
            continue
        for found in by_row.values():
            triples += found
    return tuple(dict.fromkeys(triples))


# Functions as systems


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
    own = []
    for name, parameter in signature.parameters.items():
        if name != "self":
            own.append(parameter)
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
        decorated = getattr(used, "__func__", used)
        plain = inspect.unwrap(decorated)
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
    for name, value in list(vars(module).items()):
        for client_class, wrap in CLIENT_WRAPPERS.items():
            if value is client_class:
                setattr(module, name, _making_wrapped(client_class, wrap))
            elif type(value) is client_class:
                setattr(module, name, wrap(value))


CLIENT_WRAPPERS: Mapping[type, Callable[[Any], Any]] = {
    rdflib.Graph: wrap_rdflib,
    ThreadPoolExecutor: wrap_executor,
}
"""The function that wraps a client in this process, by the client's class."""


def _making_wrapped(client_class: type, wrap: Callable[[Any], Any]) -> Callable[..., Any]:
    """Return a function that takes the place of a class: it makes a client and wraps it."""

    @functools.wraps(client_class, updated=())
    def make(*args: Any, **kwargs: Any) -> Any:
        """Make the client, and wrap it."""
        return wrap(client_class(*args, **kwargs))

    return make


# LangGraph and LangChain


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
