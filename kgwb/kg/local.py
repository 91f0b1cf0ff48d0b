"""A graph in files or in memory: an Oxigraph store with a label index."""

from __future__ import annotations

import hashlib
import time
import traceback
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from functools import partial
from math import inf
from pathlib import Path
from typing import Any, TypeVar, cast

import pyoxigraph as ox
import rdflib
from oxrdflib._converter import to_ox
from rdflib import BNode, Literal, URIRef

from kgwb.background import run_in_thread
from kgwb.errors import GraphFileError, GraphTimeoutError, QueryError
from kgwb.kg.base import SCHEMA_NAMESPACES, QueryLimits, ResultSet, Vocabulary
from kgwb.kg.files import (
    CACHE_VERSION,
    copy_store,
    merge_named_graphs,
    open_files,
    reads_union,
    remove_copy,
)
from kgwb.kg.label_search import LabelIndex
from kgwb.kg.labels import collect_labels, fact_condition
from kgwb.kg.sparql import (
    QueryForm,
    n3,
    names_dataset,
    undeclared_prefix_error,
    union_clause,
    validate_query,
)
from kgwb.terms import Term, Triple, Triples, make_literal

T = TypeVar("T")


class LocalGraph:
    """A graph in an Oxigraph store. Several threads may use it at once."""

    remote = False
    muted: Triples = ()
    notes: tuple[str, ...] = ()
    """What was left out or changed when the graph was read from its files, a sentence each."""

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
        self.store = store
        self.identity = identity
        self.prefixes = prefixes
        """The prefixes that the author of the graph uses, by namespace."""
        self.source = source
        self.vocabulary = vocabulary
        self.limits = limits or QueryLimits()
        self.whole_graph: LocalGraph = self
        self._use_label_index(labels)
        self._reads_union = reads_union(store)

    @classmethod
    def open(
        cls,
        path: Path | str,
        *,
        vocabulary: Vocabulary | None = None,
        limits: QueryLimits | None = None,
        cache: bool = True,
    ) -> LocalGraph:
        """Open an RDF file, or all RDF files in a folder as one graph.

        ``cache`` allows large files to be kept in the cache folder. Raises GraphFileError.
        """
        vocabulary = vocabulary or Vocabulary()
        opened = open_files(Path(path), vocabulary, cache=cache)
        store, labels, identity, prefixes, notes = opened
        graph = cls(store, labels, identity, prefixes, str(path), vocabulary, limits)
        graph.notes = notes
        return graph

    @classmethod
    def from_rdflib(
        cls,
        graph: rdflib.Graph,
        *,
        vocabulary: Vocabulary | None = None,
        limits: QueryLimits | None = None,
    ) -> LocalGraph:
        """Copy an rdflib Graph or Dataset as it is now; later changes of it have no effect.

        The identity is a digest of the triples and the vocabulary. Raises GraphFileError if it is
        empty, or has a term that RDF does not allow.
        """
        vocabulary = vocabulary or Vocabulary()
        store = ox.Store()
        read_quads = getattr(graph, "quads", graph.__iter__)  # a Graph has none, a Dataset has
        try:
            store.extend(map(_to_quad, read_quads()))
        except ValueError as error:
            raise GraphFileError(
                f"the rdflib graph contains a term that RDF does not allow: {error}",
                hint="remove this term from the rdflib graph, or correct it",
            ) from error
        if not len(store):
            raise GraphFileError(
                "the rdflib graph contains no triples", hint="parse a file into it first"
            )
        lines = "\n".join(sorted(map(str, store)))
        content = f"{CACHE_VERSION}\n{vocabulary!r}\n{lines}"
        identity = f"sha256:{hashlib.sha256(content.encode()).hexdigest()}"
        merge_named_graphs(store)
        labels = LabelIndex.build(collect_labels(store, vocabulary))
        prefixes = {str(namespace): prefix for prefix, namespace in graph.namespaces()}
        source = f"rdflib graph of {len(store)} triples"
        return cls(store, labels, identity, prefixes, source, vocabulary, limits)

    def __repr__(self) -> str:
        notes = "".join(f"; {note}" for note in self.notes)
        return f"LocalGraph({self.source!r}){notes}"

    def _use_label_index(self, labels: LabelIndex) -> None:
        """Let an index answer ``search``, ``exact`` and ``names``."""
        self.search = labels.search
        self.exact = labels.exact
        self.names = labels.names

    def without(self, *triples: Triple) -> LocalGraph:
        """Return a copy of this graph without some triples; this graph does not change.

        The copy of a graph that is kept in the cache folder takes milliseconds, that of one in
        memory a second for each 200,000 triples. The label index is built again if the triples
        affect it, which takes seconds for a large graph. Identity and survey stay those of the
        whole graph. Raises QueryError for what ``add_muted`` refuses.
        """
        muted = add_muted(self.muted, triples)
        graph = self._copy()
        graph.muted = muted
        for triple in triples:
            subject, predicate, object_ = cast(tuple[Any, Any, Any], tuple(map(to_ox, triple)))
            for quad in list(graph.store.quads_for_pattern(subject, predicate, object_, None)):
                graph.store.remove(quad)
        if any(map(graph._affects_labels, triples)):
            graph._index_labels()
        return graph

    def updated(self, update: str) -> LocalGraph:
        """Return a copy of this graph after a SPARQL update, as a graph of its own; this graph does not change.

        Oxigraph raises SyntaxError for an update that does not parse, and OSError for one that fails.
        """
        graph = self._copy()
        graph.store.update(update)
        merge_named_graphs(graph.store)
        graph._reads_union = reads_union(graph.store)
        digest = hashlib.sha256(f"{self.identity}\n{update}".encode())
        graph.identity = f"sha256:{digest.hexdigest()}"
        graph.source = f"{self.source}, updated"
        graph.whole_graph = graph
        graph._index_labels()
        return graph

    def _copy(self) -> LocalGraph:
        """Return a copy of this graph with a store of its own. Its folder is removed with the copy."""
        graph = copy(self)
        graph.store, folder = copy_store(self.store)
        if folder is not None:
            weakref.finalize(graph, remove_copy, folder)
        return graph

    def _index_labels(self) -> None:
        """Make the label index anew from the store."""
        labels = collect_labels(self.store, self.vocabulary)
        self._use_label_index(LabelIndex.build(labels))

    def _affects_labels(self, triple: Triple) -> bool:
        """Return whether muting a triple changes this graph's label index. An ASK may be sent.

        It does if the predicate is one of labels, types, noise or the schema. It also does if the
        triple is the last one of its predicate, or the last fact about its subject or object: the
        index has an IRI without a label only where a fact uses it.
        """
        subject, predicate, object_ = triple
        no_facts = {*self.vocabulary.excluded_predicates, *self.vocabulary.types}
        if predicate in no_facts or str(predicate).startswith(SCHEMA_NAMESPACES):
            return True
        is_fact = fact_condition(self.vocabulary)
        conditions = [f"FILTER EXISTS {{ ?s {n3(predicate)} ?o }}"]
        for end in (subject, object_):
            if not isinstance(end, URIRef):
                continue
            facts = union_clause((f"{n3(end)} ?p ?o", f"?s ?p {n3(end)}"))
            conditions.append(f"FILTER EXISTS {{ {facts} FILTER({is_fact}) }}")
        is_used_otherwise = self.ask(f"ASK {{ {' '.join(conditions)} }}")
        return not is_used_otherwise

    def select(self, query: str) -> ResultSet:
        """Run a SELECT query and return its rows, at most the row limit (then marked as cut).

        Raises QueryRefusedError or QueryError for a query that is refused or wrong, and
        GraphTimeoutError.
        """
        return self._execute_query(query, ("select",), self._read_rows)

    def ask(self, query: str) -> bool:
        """Run an ASK query and return its truth value.

        Raises QueryRefusedError or QueryError for a query that is refused or wrong, and
        GraphTimeoutError.
        """
        return self._execute_query(query, ("ask",), lambda result, _: bool(result))

    def construct(self, query: str) -> tuple[Triple, ...]:
        """Run a CONSTRUCT or DESCRIBE query and return its distinct triples, at most the row limit.

        Raises QueryRefusedError or QueryError for a query that is refused or wrong, and
        GraphTimeoutError.
        """
        read = partial(read_triples, max_triples=self.limits.row_limit)
        return self._execute_query(query, ("construct", "describe"), read)

    def _execute_query(
        self, query: str, forms: tuple[QueryForm, ...], read: Callable[[Any, float], T]
    ) -> T:
        """Run a query of one of these forms, and read its result.

        Returns what ``read`` returns, which gets Oxigraph's result and the deadline. Raises
        QueryRefusedError or QueryError if the query does not pass the gate, QueryError if it uses
        an undeclared prefix or Oxigraph rejects it, and GraphTimeoutError.
        """
        parsed = validate_query(query, *forms, allow_service=self.limits.allow_service)
        if parsed.undeclared_prefixes:
            raise undeclared_prefix_error(parsed.undeclared_prefixes)
        # Oxigraph ignores FROM in a query over the union.
        is_union = self._reads_union and not names_dataset(parsed)
        timeout_s = self.limits.query_timeout_s
        deadline = time.monotonic() + timeout_s

        def execute() -> T:
            """Run the query and return what ``read`` makes of its result, on the same thread.

            After an error the frames that hold Oxigraph's result are cleared, because only this
            thread may free it.
            """
            try:
                # An iterator of Oxigraph may only be dropped by the thread that made it, so it must
                # not outlive the frames of this thread. They are cleared after an error. This frame
                # cannot be cleared from within, so here the result gets no name.
                return read(
                    self.store.query(parsed.text, use_default_graph_as_union=is_union),
                    deadline,
                )
            except BaseException as error:
                traceback.clear_frames(error.__traceback__)
                raise

        try:
            # On a thread that can be left, because Oxigraph cannot be stopped within a query.
            return run_in_thread(execute, timeout_s=timeout_s)
        except TimeoutError:
            raise GraphTimeoutError(
                f"the query took longer than {timeout_s:g} s",
                hint="give the query a LIMIT or fewer patterns, or raise query_timeout_s (--query-timeout)",
            ) from None
        except (SyntaxError, ValueError, OSError, RuntimeError) as error:
            raise QueryError(
                f"Oxigraph rejects the query: {error}",
                hint="correct the query at the line and column that are named",
            ) from error

    def _read_rows(self, result: Any, deadline: float) -> ResultSet:
        """Return the rows of Oxigraph's result, marked as cut if there are more than the row limit.

        Raises TimeoutError when the deadline, a value of ``time.monotonic()``, has passed.
        """
        variables = tuple(variable.value for variable in result.variables)
        rows: list[tuple[Term | None, ...]] = []
        for solution in result:
            if len(rows) == self.limits.row_limit:
                return ResultSet(variables, tuple(rows), cut=True)
            cells = [None if term is None else term_from_oxigraph(term) for term in solution]
            rows.append(tuple(cells))
            if time.monotonic() > deadline:
                raise TimeoutError
        return ResultSet(variables, tuple(rows))


def _to_quad(statement: Any) -> ox.Quad:
    """Return a triple or a quad of rdflib as Oxigraph's.

    oxrdflib shows a triple term of RDF 1.2 as a tuple, in the place of an object. Raises ValueError
    for a term that RDF does not allow.
    """
    subject, predicate, object_, *graph = statement
    if not isinstance(object_, tuple):
        return cast(ox.Quad, to_ox(statement))
    term = _to_quad(object_).triple
    quad = cast(ox.Quad, to_ox((subject, predicate, predicate, *graph)))
    return ox.Quad(quad.subject, quad.predicate, term, quad.graph_name)


def add_muted(muted: Triples, triples: Sequence[Triple]) -> Triples:
    """Return the muted triples and the given ones, each once.

    Raises QueryError for a value that is not a triple of RDF terms, and for a triple that cannot
    stand in a query, such as one with a blank node.
    """
    for triple in triples:
        if not all(isinstance(term, URIRef | BNode | Literal) for term in triple):
            raise QueryError(
                f"{triple!s:.200} is not a triple of IRIs and literals",
                hint="take a triple of value.support, or write each of its terms as rdflib.URIRef(...)",
            )
        if any(isinstance(term, BNode) for term in triple):
            raise QueryError(
                f"{triple!s:.200} has a blank node and cannot be muted: no query can name it",
                hint="mute a triple beside it that has IRIs and literals only",
            )
        for term in triple:
            n3(term)  # raises QueryError if the term cannot stand in a query
    return tuple(dict.fromkeys((*muted, *triples)))


def read_triples(
    statements: Iterable[Any], deadline: float = inf, *, max_triples: int
) -> tuple[Triple, ...]:
    """Return the first ``max_triples`` distinct triples of Oxigraph's triples or quads.

    Raises TimeoutError when the deadline, a value of ``time.monotonic()``, has passed, and
    QueryError for a triple term.
    """
    triples: dict[Triple, None] = {}
    for statement in statements:
        if len(triples) == max_triples:
            break
        subject = term_from_oxigraph(statement.subject)
        predicate = URIRef(statement.predicate.value)
        object_ = term_from_oxigraph(statement.object)
        triples[subject, predicate, object_] = None
        if time.monotonic() > deadline:
            raise TimeoutError
    return tuple(triples)


def term_from_oxigraph(term: Any) -> Term:
    """Return the rdflib term of an Oxigraph term, with its lexical form unchanged.

    Raises QueryError for a triple term, which RDF 1.1 does not have.
    """
    if isinstance(term, ox.NamedNode):
        # rdflib's constructor would check the IRI, which Oxigraph has done, and take three times as long.
        return str.__new__(URIRef, term.value)
    if isinstance(term, ox.Literal):
        return make_literal(term.value, term.datatype.value, term.language or "")
    if isinstance(term, ox.BlankNode):
        return BNode(term.value)
    raise QueryError(
        f"the result holds {term}, which is no RDF 1.1 term",
        hint="select the subject, predicate and object of the quoted triple, not the triple",
    )
