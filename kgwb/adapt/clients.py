"""The clients and graphs of a pipeline: wrapped, so that a run records what they are asked.

``check_system`` asks a system twice, and says what differs and what went past the run.
"""

from __future__ import annotations

import hashlib
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial, wraps
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import rdflib
from rdflib import BNode
from rdflib.query import Result
from SPARQLWrapper import SPARQLWrapper

from kgwb.errors import KgwbError, QueryError, SettingError
from kgwb.kg import GraphSource, endpoint_of
from kgwb.kg.base import Graph
from kgwb.kg.sparql import is_serializable, n3, tokenize, validate_query, word_of
from kgwb.records import JsonObject, decision_of, frozen, one_line
from kgwb.run import Run, System
from kgwb.run.differences import find_difference
from kgwb.run.http_queries import recorded_form, result_of
from kgwb.run.http_recorder import missing_calls_noted
from kgwb.run.models import Models
from kgwb.run.steps import QUERY_KINDS, SEARCH_KINDS, current_frame, current_run
from kgwb.terms import Term, Triple
from kgwb.text import pluralize


def json_options(options: Mapping[str, Any]) -> JsonObject:
    """Return options of a client as JSON data. What has no JSON form is the name of its class.

    An object in memory, such as a callback, has no text that is the same the next time.
    """
    return {name: _json_value(value) for name, value in options.items()}


def _json_value(value: Any) -> Any:
    """Return a value of a request as JSON data that identifies it.

    A class with a JSON schema becomes that schema, an object of pydantic its fields, and another
    object the name of its type.
    """
    if isinstance(value, type) and hasattr(value, "model_json_schema"):
        return value.model_json_schema()
    if isinstance(value, Mapping):
        return json_options(value)
    if isinstance(value, list | tuple):
        return [_json_value(item) for item in value]
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    return type(value).__qualname__


T = TypeVar("T")


def wrap_executor(executor: Executor) -> Executor:
    """Return an executor that inside a run executes what is submitted at once, on this thread.

    So the branches of a pipeline belong to the run, and their steps have the same order each time.
    Outside of a run it is the plain executor, such as a ThreadPoolExecutor.

    Raises SettingError for what is no executor.
    """
    if not isinstance(executor, Executor):
        raise SettingError(
            f"wrap_executor got a {type(executor).__name__}, which is not a ThreadPoolExecutor",
            hint="pass a concurrent.futures.ThreadPoolExecutor()",
        )
    return RunExecutor(executor)


class NumberedFuture(Future[T]):
    """A future whose place in a set depends on its number, and not on its address in memory.

    ``concurrent.futures.as_completed`` and ``wait`` keep futures in sets. So a pipeline that uses
    them sees the results of done futures in the same order in each execution of a run.
    """

    def __init__(self, number: int) -> None:
        """``number`` is how many futures were made before in the execution of the run."""
        super().__init__()
        self._number = number

    def __hash__(self) -> int:
        """Return a number that makes ``as_completed``, which takes the last first, keep the order."""
        return -2 - self._number


class RunExecutor(Executor):
    """Executes by another executor outside of a run, and at once inside. See ``wrap_executor``."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    def submit(self, function: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Call the function, and return a future with its result or its exception.

        Inside a run it is called here and now, so the future is done. Outside, the plain executor
        calls it.
        """
        run = current_run()
        if run is None:
            return self._executor.submit(function, *args, **kwargs)
        future: Future[T] = NumberedFuture(next(run.execution.branch_numbers))
        try:
            future.set_result(function(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 - the future raises it where it is asked
            future.set_exception(error)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Shut the plain executor down."""
        self._executor.shutdown(wait, cancel_futures=cancel_futures)


# Graphs of rdflib and endpoints of SPARQLWrapper


Bindings = Mapping[str, Term]
"""Terms by the name of their variable."""
_reading_runs: weakref.WeakSet[Run] = weakref.WeakSet()
"""The runs in which a wrapped graph was read, by a query or by methods such as ``objects``."""


def wrap_rdflib(graph: rdflib.Graph) -> rdflib.Graph:
    """Return a graph with the same triples whose queries go through the run.

    Inside a run, ``query`` is recorded and found again, and neither queries nor methods such as
    ``objects`` see the triples that are muted in the run. Outside of a run it is the plain graph.
    Both graphs share their triples. A graph of an endpoint (``SPARQLStore``) is returned as it is:
    a run records the queries that it sends.

    Raises SettingError for a Dataset, and for what is no graph of rdflib.
    """
    is_dataset = isinstance(graph, rdflib.Dataset | rdflib.ConjunctiveGraph)
    if not isinstance(graph, rdflib.Graph) or is_dataset:
        raise SettingError(
            f"wrap_rdflib got a {type(graph).__name__}, which is not a single rdflib.Graph",
            hint="pass one graph, such as a named graph of a Dataset",
        )
    if endpoint_of(graph):
        return graph
    return RecordedRdflibGraph(graph)


class RecordedRdflibGraph(rdflib.Graph):
    """An rdflib graph whose queries are recorded inside a run. See ``wrap_rdflib``."""

    def __init__(self, graph: rdflib.Graph) -> None:
        super().__init__(
            store=graph.store,
            identifier=graph.identifier,
            namespace_manager=graph.namespace_manager,
            base=graph.base,
        )
        self._graph = graph
        self._digest = (-1, "")
        """The number of triples at the last digest, and the digest."""
        self._digest_lock = threading.Lock()

    def triples(self, triple: Any) -> Iterator[Any]:  # type: ignore[override]
        """Yield the triples that match a pattern, without those that are muted in the run.

        The run is noted as one that read a wrapped graph.
        """
        run = current_run()
        muted: Any = ()
        if run is not None:
            _reading_runs.add(run)
            muted = run.kg.muted
        for found in super().triples(triple):
            if found not in muted:
                yield found

    def update(self, *arguments: Any, **options: Any) -> None:
        """Let the plain graph run an update: rdflib refuses ``INSERT ... WHERE`` for a subclass of Graph."""
        self._graph.update(*arguments, **options)

    def query(
        self,
        query_object: Any,
        processor: Any = "sparql",
        result: Any = "sparql",
        initNs: Mapping[str, Any] | None = None,
        initBindings: Mapping[Any, Any] | None = None,
        use_store_provided: bool = True,
        **options: Any,
    ) -> Result:
        """Return the run's result of a query; without one, ask rdflib and record it.

        Outside of a run rdflib is asked. It is also asked for a query that kgwb does not accept,
        such as one with a mistake; the step then has a note that it was not recorded.
        """
        run = current_run()
        # A store that answers queries itself would not ask ``triples``, which leaves out the muted.
        if run is not None and run.kg.muted:
            use_store_provided = False
        given = (query_object, processor, result, initNs, initBindings, use_store_provided)
        query_plainly = partial(super().query, *given, **options)
        if run is None:
            return query_plainly()
        try:
            text = self._self_contained(query_object, initNs)
            bindings = _named_bindings(initBindings or {})
            form = validate_query(text, allow_service=True).form
        except QueryError as error:
            run.note(f"a query of rdflib was not recorded: {error.message}")
            return query_plainly()
        kind = "construct" if form == "describe" else form

        def make() -> Any:
            """Return the result of the query as a run records it."""
            return recorded_form(query_plainly())

        if bindings:
            text = _bind_variables(text, bindings)
        request = {"graph": self._identity(), "query": text, **run.kg.muted_data}
        make_or_none = None if run.is_replay else make
        with missing_calls_noted(run):
            recorded = run.call(kind, request, make_or_none)
        return result_of(form, recorded)

    def _self_contained(self, query: Any, prefixes: Mapping[str, Any] | None) -> str:
        """Return the text of a query with PREFIX lines for the prefixes that it does not declare.

        As in rdflib, these are the given prefixes, else those of the graph. ``query`` may be
        prepared by rdflib. Raises QueryError for a text that is not a query.
        """
        text = query
        original = getattr(query, "_original_args", None)  # of rdflib's prepareQuery
        if original is not None:
            text, prepared_prefixes, _ = original
            prefixes = {**(prefixes or {}), **(prepared_prefixes or {})}
        known = dict(prefixes or self.namespaces())
        lines = []
        for prefix in validate_query(str(text), allow_service=True).undeclared_prefixes:
            if prefix in known:
                lines.append(f"PREFIX {prefix}: <{known[prefix]}>")
        return "\n".join([*lines, str(text)])

    def _identity(self) -> str:
        """Return a digest of the triples, in which all blank nodes are equal.

        It is computed again only if the number of triples has changed.
        """
        with self._digest_lock:
            size = len(self.store)
            if self._digest[0] != size:
                triples = super().triples((None, None, None))
                self._digest = (size, _digest_of(triples))
            return self._digest[1]


def _digest_of(triples: Iterable[Any]) -> str:
    """Return a digest of triples, "rdflib:" and 64 hexadecimal digits.

    It does not depend on the order of the triples, nor on the names of blank nodes, which all count
    as one.
    """
    total = 0
    for triple in triples:
        text = _text_of(triple).encode("utf-8", "surrogatepass")
        digest = hashlib.sha256(text).digest()
        total += int.from_bytes(digest, "big")
    return f"rdflib:{total % 2**256:064x}"


def _text_of(term: Any) -> str:
    """Return a term in N-Triples form, and a blank node as "_:".

    Of a triple, and of a triple term, which oxrdflib shows as a tuple, it is that of its parts.
    """
    if isinstance(term, tuple):
        return " ".join(map(_text_of, term))
    return "_:" if isinstance(term, BNode) else str(term.n3())


def _named_bindings(bindings: Mapping[Any, Any]) -> Bindings:
    """Return bindings by the name of the variable, without "?".

    Raises QueryError for a term that cannot stand in a query.
    """
    named = {}
    for variable, term in bindings.items():
        if not is_serializable(term):
            raise QueryError(
                f"{variable} is bound to {term!r}, which cannot stand in a query",
                hint="in initBindings, give each variable a URIRef or a Literal with valid characters",
            )
        named[str(variable).lstrip("?")] = term
    return named


def _bind_variables(query: str, bindings: Bindings) -> str:
    """Return a query with VALUES that bind variables as ``initBindings`` does.

    They stand at the end, or, where that comes too late, at the beginning of each WHERE: groups are
    counted before a VALUES at the end is heeded, and a subselect does not see it.
    """
    variables = " ".join(f"?{name}" for name in bindings)
    terms = " ".join(map(n3, bindings.values()))
    values = f"VALUES ({variables}) {{ ({terms}) }}"
    tokens = tokenize(query).tokens
    has_subselect = [word_of(token) for token in tokens].count("SELECT") > 1
    if validate_query(query, allow_service=True).is_monotonic and not has_subselect:
        return f"{query}\n{values}"
    parts = []
    position = 0
    begins_where = False
    for token in tokens:
        if word_of(token) in ("SELECT", "ASK", "WHERE"):
            begins_where = True
        elif token[0] == "{" and begins_where:
            begins_where = False
            parts.append(f"{query[position : token.end()]} {values}")
            position = token.end()
    return "".join([*parts, query[position:]])


def wrap_sparqlwrapper(wrapper: SPARQLWrapper) -> SPARQLWrapper:
    """Return a SPARQLWrapper as it is: a run records its queries without a wrapper.

    Raises SettingError for anything but a SPARQLWrapper.
    """
    if type(wrapper) is not SPARQLWrapper:
        raise SettingError(
            f"wrap_sparqlwrapper got a {type(wrapper).__name__}, which is not a SPARQLWrapper",
            hint="pass a SPARQLWrapper.SPARQLWrapper",
        )
    return wrapper


# Clients of the library openai


Client = TypeVar("Client")


def wrap_openai(client: Client) -> Client:
    """Return an OpenAI or AsyncOpenAI client as it is: a run records its requests without a wrapper.

    Raises SettingError if it is no client of the library openai.
    """
    import openai

    if not isinstance(client, openai.OpenAI | openai.AsyncOpenAI):
        raise SettingError(
            f"wrap_openai got a {type(client).__name__}, which is not a client of the library openai",
            hint="pass openai.OpenAI(...) or openai.AsyncOpenAI(...)",
        )
    return client


# Whether a system can be repeated


GRAPH_KINDS = QUERY_KINDS | SEARCH_KINDS
"""Kinds of calls that ask a graph, besides those for display names."""


@frozen
class SystemCheck:
    """What was found when a system was asked the same question twice."""

    run: Run
    """The run, as it was the first time."""
    problems: tuple[str, ...]
    """What was not the same the second time, and what went past the run; empty if all is well."""

    def __bool__(self) -> bool:
        return not self.problems

    def __str__(self) -> str:
        if not self.problems:
            steps = pluralize(len(self.run.steps), "step")
            return f"{self.run.system.name}: {steps}, the same twice; nothing went past the run"
        return "\n".join(self.problems)

    __repr__ = __str__


def check_system(
    system: System,
    question: str,
    *,
    kg: GraphSource | None = None,
    model: Models = "rules",
    **options: Any,
) -> SystemCheck:
    """Ask a system a question twice and then from a file; return what was not the same each time.

    The second time everything must come from the record of the first. Then the run is saved, and
    executed from its file without graph and model. Requests that the run did not record are
    problems as well. With ``kg`` it is a problem, too, if no query went through the run, or if an
    rdflib graph with triples of ``kg`` was read that is not wrapped; a graph that the pipeline
    reads from a file is not noticed. A pipeline with its own clients needs no ``kg``, but its
    answer then has no support.

    ``kg``, ``model`` and ``options`` are those of ``Run``. Raises the KgwbError that stops the run
    the first time.
    """
    first = Run(system, question, kg=kg, models=model, **options)
    with watch_plain_graphs() as plain_reads:
        first.go()
    problems = list(_requests_past(first))
    if kg is not None:
        problems += _unwrapped_graph(first, plain_reads)
    second = first.fork()
    try:
        second.go_explained()
    except KgwbError as error:
        problems.append(f"the second time it failed: {error.message}")
    problems += _differences(first, second)
    if not problems:
        problems += _file_problems(first)
    return SystemCheck(first, tuple(problems))


def _requests_past(run: Run) -> Iterator[str]:
    """Yield a problem for each host that a run sent requests to without recording them.

    It has the number of requests and the steps.
    """
    for host, number in run.past_calls.items():
        requests = pluralize(number, "request")
        steps = [step.key for step in run.steps if host in step.past_calls]
        places = ", ".join(steps) or "outside of all steps"
        yield (
            f"{requests} to {host} went past the run (in {places}): wrap the executor that starts "
            "threads, or send them by httpx, requests, urllib or aiohttp"
        )


def _unwrapped_graph(run: Run, plain_reads: PlainReads) -> Iterator[str]:
    """Yield a problem if a run used no graph, or read a graph of rdflib that is not wrapped.

    Reading an rdflib graph in memory makes no request, so nothing else shows it. A run used a graph
    if it recorded a query or read a wrapped graph. ``plain_reads`` are the triples that were read
    from others.
    """
    kinds = {call.kind for call in run.calls.values()}
    if not kinds & GRAPH_KINDS and run not in _reading_runs:
        yield (
            "no query went through the run, so muting a triple changes nothing: wrap the graph that "
            "the pipeline asks (wrap_rdflib), or give no kg if it asks none"
        )
        return
    graph = run.kg.inner
    steps = []
    if graph is not None:
        steps = plain_reads.steps_reading(graph)
    if steps:
        places = ", ".join(step or "outside of all steps" for step in steps)
        yield (
            f"an rdflib graph that is not wrapped was read (in {places}), so muting a triple changes "
            "nothing there: wrap that graph, too (wrap_rdflib)"
        )


def _differences(first: Run, second: Run) -> Iterator[str]:
    """Yield a problem for each difference of a second execution from the first.

    These are steps that only one of them reached, calls that the first did not make, and other
    decisions.
    """
    steps = second.steps_by_key
    for step in first.steps:
        again = steps.pop(step.key, None)
        if again is None:
            yield f"{step.key} was not reached the second time"
            continue
        new_calls = [key for key in again.calls if key not in first.calls]
        if new_calls:
            first_key = new_calls[0]
            call = second.calls[first_key]
            yield f"{step.key} asked something else the second time: {one_line(call.request)}"
        varying = step.varying
        if decision_of(again.output, varying) != decision_of(step.output, varying):
            place, now, before = find_difference(again.output, step.output, varying)
            at = place and f" at {place}"
            yield f"{step.key} returned something else the second time{at}: {now}, before {before}"
    for key in steps:
        yield f"{key} was reached the second time only"


def _file_problems(run: Run) -> Iterator[str]:
    """Yield why a run cannot be saved, and executed from its file without graph and model.

    A failure of that execution is the only problem; otherwise it is each difference from the run.
    """
    with TemporaryDirectory() as folder:
        path = run.save(Path(folder) / "run.jsonl")
        try:
            loaded = Run.load(path, run.system)
            loaded.go_explained()
        except KgwbError as error:
            yield f"without graph and model it fails: {error.message}"
            return
        yield from _differences(run, loaded)


MAX_TRIPLES = 20
"""Triples that are remembered of one step. Whether they are those of a graph is asked for each."""


@dataclass
class PlainReads:
    """What the steps of executions read from graphs of rdflib that are not wrapped."""

    triples: dict[str, list[Triple]] = field(default_factory=dict)
    """The first triples that each step read, by its key, as far as they can stand in a query."""

    def steps_reading(self, graph: Graph) -> list[str]:
        """Return the keys of the steps that read a triple which this graph has, too.

        An ASK is sent to the graph for each triple, until one of the step is found.
        """
        keys = []
        for key, triples in self.triples.items():
            patterns = [" ".join(map(n3, triple)) for triple in triples]
            if any(graph.ask(f"ASK {{ {pattern} }}") for pattern in patterns):
                keys.append(key)
        return keys

    def add(self, triple: Triple) -> None:
        """Note a triple as read by the step that is being executed on this thread.

        Nothing is noted outside of an execution, for a triple with a term that no query can
        contain, and beyond MAX_TRIPLES triples of a step.
        """
        frame = current_frame.get(None)
        if frame is None or not all(map(is_serializable, triple)):
            return
        triples = self.triples.setdefault(frame.step.key, [])
        if len(triples) < MAX_TRIPLES:
            triples.append(triple)


@contextmanager
def watch_plain_graphs() -> Iterator[PlainReads]:
    """Note what executions read from plain graphs of rdflib while the code inside runs.

    rdflib's Graph and ConjunctiveGraph are patched meanwhile. A graph that is made by an execution
    itself, such as the result of a CONSTRUCT, does not count.
    """
    reads = PlainReads()
    own_graphs: dict[int, rdflib.Graph] = {}

    def watch_init(init: Callable[..., None]) -> Callable[..., None]:
        """Return a constructor that puts graphs made in executions into ``own_graphs``."""

        @wraps(init)
        def watched_init(graph: rdflib.Graph, *args: Any, **kwargs: Any) -> None:
            """Initialize the graph; remember it if an execution makes it."""
            if current_frame.get(None) is not None:
                own_graphs[id(graph)] = graph
            init(graph, *args, **kwargs)

        return watched_init

    def watch_triples(triples: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
        """Return ``Graph.triples`` as it is, which also adds what it yields to ``reads``.

        Only triples of graphs that are neither wrapped nor kgwb's own are added.
        """

        @wraps(triples)
        def watched_triples(graph: rdflib.Graph, *args: Any, **kwargs: Any) -> Iterator[Any]:
            """Yield the triples of the graph; note those of a plain graph as read."""
            is_wrapped = isinstance(graph, RecordedRdflibGraph)
            is_plain = not is_wrapped and id(graph) not in own_graphs
            for triple in triples(graph, *args, **kwargs):
                if is_plain:
                    reads.add(triple)
                yield triple

        return watched_triples

    graph_class: Any = rdflib.Graph
    dataset_class: Any = rdflib.ConjunctiveGraph
    plain_init = graph_class.__init__
    plain_triples = graph_class.triples
    plain_dataset_triples = dataset_class.triples
    graph_class.__init__ = watch_init(plain_init)
    graph_class.triples = watch_triples(plain_triples)
    dataset_class.triples = watch_triples(plain_dataset_triples)
    try:
        yield reads
    finally:
        graph_class.__init__ = plain_init
        graph_class.triples = plain_triples
        dataset_class.triples = plain_dataset_triples
