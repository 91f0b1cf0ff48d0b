"""A graph in files or in memory: Oxigraph with a label index."""

from __future__ import annotations

import hashlib
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from functools import partial
from math import inf
from pathlib import Path
from typing import Any, TypeVar, cast

import pyoxigraph as ox
import rdflib
from oxrdflib._converter import to_ox
from rdflib import BNode, URIRef

from kgwb.errors import GraphFileError, GraphTimeoutError, QueryError
from kgwb.kg.base import SCHEMA_NAMESPACES, QueryLimits, ResultSet, Vocabulary
from kgwb.kg.files import CACHE_VERSION, open_files
from kgwb.kg.labels import LabelIndex, collect_labels
from kgwb.kg.muting import add_muted, rewrite_without
from kgwb.kg.sparql import QueryForm, n3, validate_query
from kgwb.terms import Term, Triple, Triples, make_literal
from kgwb.threads import run_in_thread

T = TypeVar("T")


class LocalGraph:
    """A Graph in an Oxigraph store. May be used by several threads at once."""

    remote = False
    muted: Triples = ()

    def __init__(
        self,
        store: ox.Store,
        labels: LabelIndex,
        identity: str,
        prefixes: Mapping[str, str],
        source: str,
        vocabulary: Vocabulary,
        limits: QueryLimits | None,
    ) -> None:
        self.store, self.identity, self.source = store, identity, source
        self.prefixes = prefixes
        """By namespace, what the graph's author calls it."""
        self.vocabulary, self.limits = vocabulary, limits or QueryLimits()
        self.whole_graph: LocalGraph = self
        self._use_label_index(labels)
        self._has_named_graphs = next(iter(store.named_graphs()), None) is not None

    @classmethod
    def open(
        cls,
        path: Path | str,
        *,
        vocabulary: Vocabulary | None = None,
        limits: QueryLimits | None = None,
        cache: bool = True,
    ) -> LocalGraph:
        """The graph of a file or folder. Raises GraphFileError."""
        vocabulary = vocabulary or Vocabulary()
        return cls(*open_files(Path(path), vocabulary, cache=cache), str(path), vocabulary, limits)

    @classmethod
    def from_rdflib(
        cls,
        graph: rdflib.Graph,
        *,
        vocabulary: Vocabulary | None = None,
        limits: QueryLimits | None = None,
    ) -> LocalGraph:
        """A copy of an rdflib Graph or Dataset as it is now. Raises GraphFileError if it is empty."""
        vocabulary, store = vocabulary or Vocabulary(), ox.Store()
        quads = getattr(graph, "quads", None)
        facts: Iterable[Any] = quads() if quads else graph
        try:
            store.extend(cast(ox.Quad, to_ox(fact)) for fact in facts)
        except ValueError as error:
            raise GraphFileError(
                f"the rdflib graph holds what RDF does not allow: {error}"
            ) from error
        if not len(store):
            raise GraphFileError(
                "the rdflib graph holds no triple", hint="parse a file into it first"
            )
        lines = "\n".join(sorted(map(str, store)))
        digest = hashlib.sha256(f"{CACHE_VERSION}\n{vocabulary!r}\n{lines}".encode()).hexdigest()
        labels = LabelIndex.build(collect_labels(store, vocabulary))
        prefixes = {str(namespace): prefix for prefix, namespace in graph.namespaces()}
        source = f"rdflib graph of {len(store)} triples"
        return cls(store, labels, f"sha256:{digest}", prefixes, source, vocabulary, limits)

    def _use_label_index(self, labels: LabelIndex) -> None:
        self.search, self.exact, self.names = labels.search, labels.exact, labels.names

    def without(self, *triples: Triple) -> LocalGraph:
        """See Graph. Labels are indexed anew where a triple has a part in them: seconds, of a large graph."""
        graph = copy(self)
        graph.muted = add_muted(self.muted, triples)
        if any(map(graph._affects_labels, triples)):
            store: Any = _FilteredStore(self.store, graph.muted)
            graph._use_label_index(LabelIndex.build(collect_labels(store, self.vocabulary)))
        return graph

    def _affects_labels(self, triple: Triple) -> bool:
        """Whether the labels may be others without a triple: it is one, or all there is about a term."""
        hidden = {*self.vocabulary.excluded_predicates, *self.vocabulary.types}
        if triple[1] in hidden or str(triple[1]).startswith(SCHEMA_NAMESPACES):
            return True
        silent = f"?p NOT IN ({', '.join(n3(predicate) for predicate in sorted(hidden))})"
        ends = [n3(end) for end in triple[::2] if isinstance(end, URIRef)]
        left = [f"{{ {{ {end} ?p ?o }} UNION {{ ?s ?p {end} }} FILTER({silent}) }}" for end in ends]
        tests = (f"FILTER EXISTS {test}" for test in (f"{{ ?s {n3(triple[1])} ?o }}", *left))
        return not self.ask(f"ASK {{ {' '.join(tests)} }}")

    def select(self, query: str) -> ResultSet:
        """See Graph."""
        return self._execute_query(query, ("select",), self._read_rows)

    def ask(self, query: str) -> bool:
        """See Graph."""
        return self._execute_query(query, ("ask",), lambda result, _: bool(result))

    def construct(self, query: str) -> tuple[Triple, ...]:
        """See Graph."""
        return self._execute_query(
            query,
            ("construct", "describe"),
            partial(read_triples, max_triples=self.limits.row_limit),
        )

    def __repr__(self) -> str:
        return f"LocalGraph({self.source!r})"

    def _execute_query(
        self, query: str, forms: tuple[QueryForm, ...], read: Callable[[Any, float], T]
    ) -> T:
        parsed = validate_query(query, *forms, allow_service=self.limits.allow_service)
        if parsed.undeclared_prefixes:
            prefixes = ":, ".join(parsed.undeclared_prefixes)
            raise QueryError(
                f"the query does not declare {prefixes}:", hint="begin it with PREFIX lines"
            )
        text = rewrite_without(parsed.text, self.muted)
        until = time.monotonic() + self.limits.query_timeout_s

        def work() -> T:
            try:
                # Oxigraph's iterators must not outlive this thread's frames (no other thread may drop them),
                # so the result has no name here, in the frame that cannot be cleared.
                return read(
                    self.store.query(text, use_default_graph_as_union=self._has_named_graphs), until
                )
            except BaseException as error:
                traceback.clear_frames(error.__traceback__)
                raise

        try:  # Aside, as a query inside Oxigraph cannot be stopped, only left.
            return run_in_thread(work, timeout_s=self.limits.query_timeout_s)
        except TimeoutError:
            raise GraphTimeoutError(
                f"the query took longer than {self.limits.query_timeout_s:g} s",
                hint="ask for less, or raise query_timeout_s",
            ) from None
        except (SyntaxError, ValueError, OSError, RuntimeError) as error:
            raise QueryError(f"Oxigraph rejects the query: {error}") from error

    def _read_rows(self, result: Any, until: float) -> ResultSet:
        variables = tuple(variable.value for variable in result.variables)
        rows: list[tuple[Term | None, ...]] = []
        for solution in result:
            if len(rows) == self.limits.row_limit:
                return ResultSet(variables, tuple(rows), cut=True)
            rows.append(
                tuple(None if term is None else term_from_oxigraph(term) for term in solution)
            )
            if time.monotonic() > until:
                raise TimeoutError
        return ResultSet(variables, tuple(rows))


class _FilteredStore:
    """A store without some triples, as far as ``collect`` reads one."""

    def __init__(self, store: ox.Store, muted: Triples) -> None:
        self._store, self._muted = store, muted
        self._triples = {tuple(map(to_ox, triple)) for triple in muted}

    def quads_for_pattern(self, *pattern: Any) -> Iterator[ox.Quad]:
        quads = self._store.quads_for_pattern(*pattern)
        return (quad for quad in quads if tuple(quad.triple) not in self._triples)

    def query(self, text: str, **options: Any) -> Any:
        return self._store.query(rewrite_without(text, self._muted), **options)


def read_triples(
    statements: Iterable[Any], deadline: float = inf, *, max_triples: int
) -> tuple[Triple, ...]:
    """The first different triples, as rdflib's. Raises TimeoutError when the clock passes ``until``."""
    triples: dict[Triple, None] = {}
    for each in statements:
        if len(triples) == max_triples:
            break
        triples[
            term_from_oxigraph(each.subject),
            URIRef(each.predicate.value),
            term_from_oxigraph(each.object),
        ] = None
        if time.monotonic() > deadline:
            raise TimeoutError
    return tuple(triples)


def term_from_oxigraph(term: Any) -> Term:
    """The rdflib term of an Oxigraph term, lexical form untouched. Raises QueryError for a triple term."""
    if isinstance(term, ox.NamedNode):
        return URIRef(term.value)
    if isinstance(term, ox.Literal):
        return make_literal(term.value, term.datatype.value, term.language or "")
    if isinstance(term, ox.BlankNode):
        return BNode(term.value)
    raise QueryError(f"the result holds {term}, which is no RDF 1.1 term", hint="ask for its parts")
