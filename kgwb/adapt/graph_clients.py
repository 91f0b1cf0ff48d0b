"""Graphs of rdflib and endpoints of SPARQLWrapper: inside a run, their queries are queries of the run."""

from __future__ import annotations

import hashlib
import threading
import weakref
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import rdflib
from rdflib import BNode
from rdflib.query import Result
from SPARQLWrapper import SPARQLWrapper

from kgwb.errors import QueryError, SettingError
from kgwb.kg import endpoint_of
from kgwb.kg.sparql import is_serializable, n3, tokenize, validate_query
from kgwb.run import Run
from kgwb.run.http_queries import recorded_form, result_of
from kgwb.run.http_recorder import missing_calls_noted
from kgwb.run.steps import current_run
from kgwb.terms import Term

Bindings = Mapping[str, Term]
"""Terms by the name of their variable."""
_reading_runs: weakref.WeakSet[Run] = weakref.WeakSet()
"""The runs in which a wrapped graph was read."""


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
        plain_query = super().query

        run = current_run()
        # A store that answers queries itself would not ask ``triples``, which leaves out the muted.
        if run is not None and run.kg.muted:
            use_store_provided = False

        def query_plainly() -> Result:
            """Ask rdflib itself."""
            return plain_query(
                query_object, processor, result, initNs, initBindings, use_store_provided, **options
            )

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
        with missing_calls_noted(run):
            recorded = run.call(kind, request, None if run.is_replay else make)
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
                self._digest = (size, _digest_of(super().triples((None, None, None))))
            return self._digest[1]


def has_read_wrapped_graph(run: Run) -> bool:
    """Return whether a wrapped graph was read in a run, by a query or by methods such as ``objects``."""
    return run in _reading_runs


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
    has_subselect = [token[0].upper() for token in tokens].count("SELECT") > 1
    if validate_query(query, allow_service=True).is_monotonic and not has_subselect:
        return f"{query}\n{values}"
    parts = []
    position = 0
    begins_where = False
    for token in tokens:
        if token[0].upper() in ("SELECT", "ASK", "WHERE"):
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
