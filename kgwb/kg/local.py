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
from kgwb.kg.base import SCHEMA_SPACES, Limits, Rows, Vocabulary
from kgwb.kg.files import CACHE_VERSION, open_files
from kgwb.kg.labels import LabelIndex, collect
from kgwb.kg.muting import hide, mute
from kgwb.kg.sparql import Form, checked, n3
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
        limits: Limits | None,
    ) -> None:
        self.store, self.identity, self.source = store, identity, source
        self.prefixes = prefixes
        """By namespace, what the graph's author calls it."""
        self.vocabulary, self.limits = vocabulary, limits or Limits()
        self.whole_graph: LocalGraph = self
        self._take(labels)
        self._union = next(iter(store.named_graphs()), None) is not None

    @classmethod
    def open(
        cls,
        path: Path | str,
        *,
        vocabulary: Vocabulary | None = None,
        limits: Limits | None = None,
        cache: bool = True,
    ) -> LocalGraph:
        """The graph of a file or folder. Raises GraphFileError."""
        vocabulary = vocabulary or Vocabulary()
        return cls(*open_files(Path(path), vocabulary, cache=cache), str(path), vocabulary, limits)

    @classmethod
    def of(
        cls,
        graph: rdflib.Graph,
        *,
        vocabulary: Vocabulary | None = None,
        limits: Limits | None = None,
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
        labels = LabelIndex.build(collect(store, vocabulary))
        prefixes = {str(namespace): prefix for prefix, namespace in graph.namespaces()}
        source = f"rdflib graph of {len(store)} triples"
        return cls(store, labels, f"sha256:{digest}", prefixes, source, vocabulary, limits)

    def _take(self, labels: LabelIndex) -> None:
        self.search, self.exact, self.names = labels.search, labels.exact, labels.names

    def without(self, *triples: Triple) -> LocalGraph:
        """See Graph. Labels are indexed anew where a triple has a part in them: seconds, of a large graph."""
        graph = copy(self)
        graph.muted = mute(self.muted, triples)
        if any(map(graph._names_by, triples)):
            store: Any = _Hiding(self.store, graph.muted)
            graph._take(LabelIndex.build(collect(store, self.vocabulary)))
        return graph

    def _names_by(self, triple: Triple) -> bool:
        """Whether the labels may be others without a triple: it is one, or all there is about a term."""
        hidden = {*self.vocabulary.hidden, *self.vocabulary.types}
        if triple[1] in hidden or str(triple[1]).startswith(SCHEMA_SPACES):
            return True
        silent = f"?p NOT IN ({', '.join(n3(predicate) for predicate in sorted(hidden))})"
        ends = [n3(end) for end in triple[::2] if isinstance(end, URIRef)]
        left = [f"{{ {{ {end} ?p ?o }} UNION {{ ?s ?p {end} }} FILTER({silent}) }}" for end in ends]
        tests = (f"FILTER EXISTS {test}" for test in (f"{{ ?s {n3(triple[1])} ?o }}", *left))
        return not self.ask(f"ASK {{ {' '.join(tests)} }}")

    def select(self, query: str) -> Rows:
        """See Graph."""
        return self._ask(query, ("select",), self._rows)

    def ask(self, query: str) -> bool:
        """See Graph."""
        return self._ask(query, ("ask",), lambda result, _: bool(result))

    def construct(self, query: str) -> tuple[Triple, ...]:
        """See Graph."""
        return self._ask(
            query, ("construct", "describe"), partial(triples_of, most=self.limits.row_limit)
        )

    def __repr__(self) -> str:
        return f"LocalGraph({self.source!r})"

    def _ask(self, query: str, forms: tuple[Form, ...], read: Callable[[Any, float], T]) -> T:
        parsed = checked(query, *forms, allow_service=self.limits.allow_service)
        if parsed.undeclared:
            prefixes = ":, ".join(parsed.undeclared)
            raise QueryError(
                f"the query does not declare {prefixes}:", hint="begin it with PREFIX lines"
            )
        text = hide(parsed.text, self.muted)
        until = time.monotonic() + self.limits.query_timeout_s

        def work() -> T:
            try:
                # Oxigraph's iterators must not outlive this thread's frames (no other thread may drop them),
                # so the result has no name here, in the frame that cannot be cleared.
                return read(self.store.query(text, use_default_graph_as_union=self._union), until)
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

    def _rows(self, result: Any, until: float) -> Rows:
        variables = tuple(variable.value for variable in result.variables)
        rows: list[tuple[Term | None, ...]] = []
        for solution in result:
            if len(rows) == self.limits.row_limit:
                return Rows(variables, tuple(rows), cut=True)
            rows.append(tuple(None if term is None else from_ox(term) for term in solution))
            if time.monotonic() > until:
                raise TimeoutError
        return Rows(variables, tuple(rows))


class _Hiding:
    """A store without some triples, as far as ``collect`` reads one."""

    def __init__(self, store: ox.Store, muted: Triples) -> None:
        self._store, self._muted = store, muted
        self._triples = {tuple(map(to_ox, triple)) for triple in muted}

    def quads_for_pattern(self, *pattern: Any) -> Iterator[ox.Quad]:
        quads = self._store.quads_for_pattern(*pattern)
        return (quad for quad in quads if tuple(quad.triple) not in self._triples)

    def query(self, text: str, **options: Any) -> Any:
        return self._store.query(hide(text, self._muted), **options)


def triples_of(statements: Iterable[Any], until: float = inf, *, most: int) -> tuple[Triple, ...]:
    """The first different triples, as rdflib's. Raises TimeoutError when the clock passes ``until``."""
    triples: dict[Triple, None] = {}
    for each in statements:
        if len(triples) == most:
            break
        triples[from_ox(each.subject), URIRef(each.predicate.value), from_ox(each.object)] = None
        if time.monotonic() > until:
            raise TimeoutError
    return tuple(triples)


def from_ox(term: Any) -> Term:
    """The rdflib term of an Oxigraph term, lexical form untouched. Raises QueryError for a triple term."""
    if isinstance(term, ox.NamedNode):
        return URIRef(term.value)
    if isinstance(term, ox.Literal):
        return make_literal(term.value, term.datatype.value, term.language or "")
    if isinstance(term, ox.BlankNode):
        return BNode(term.value)
    raise QueryError(f"the result holds {term}, which is no RDF 1.1 term", hint="ask for its parts")
