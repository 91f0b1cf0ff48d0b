"""The file of a database: it is made once for each graph, and kept in the cache folder."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from rdflib import BNode, Literal, URIRef

from kgwb.build import (
    CACHE_LIFETIME_S,
    Embeddings,
    Graph,
    GraphError,
    GraphUnreachableError,
    Run,
    SettingError,
    Term,
    Triple,
    cache_dir,
    choose_prefix,
    draft_of,
    is_valid_iri,
    local_part,
    n3,
    parse_count,
    split_into_batches,
    split_iri,
    tell_apart,
    to_curie,
    to_data,
    values_clause,
)
from kgwb.systems.ragonite.database import Database, insert_passage, read_reasons
from kgwb.systems.ragonite.induction import DatabaseBuilder, find_pages
from kgwb.systems.ragonite.records import Schema
from kgwb.systems.ragonite.settings import RagoniteSettings


@dataclass(frozen=True, slots=True)
class Extension:
    """A change of the induced database: a folder of documents, or a file of annotations."""

    kind: str
    """The setting that names the folder or the file."""
    source: str
    """Its path."""
    identity: str
    """A hash of its content."""
    apply: Callable[[sqlite3.Connection], None]
    """Changes a database. Raises SettingError if the content does not fit it."""
    notes: tuple[str, ...] = ()
    """What a person should know of it, such as files that were left out."""


def resolve_extension(
    kind: str, source: str, read: Callable[[str], Extension], run: Run
) -> Extension:
    """Return the extension that a setting names, as it is now.

    In a replay, or if the folder or file is gone, it is the one that the run has recorded: only its
    identity is known then, by which recorded calls are found. Raises what ``read`` raises.
    """
    recorded_identity = ""
    for call in run.calls.values():
        if call.kind == f"ragonite.{kind}" and call.request["source"] == source:
            recorded_identity = call.request["identity"]

    def refuse(connection: sqlite3.Connection) -> None:
        read(source)

    recorded = Extension(kind, source, recorded_identity, refuse)
    if run.unrecorded_graph is None:
        return recorded
    try:
        return read(source)
    except SettingError:
        if recorded_identity:
            return recorded
        raise


def record_extension(extension: Extension, run: Run) -> None:
    """Write to the run's record which content an extension has, and add its notes to the step."""
    request = {"source": extension.source, "identity": extension.identity}
    kind = f"ragonite.{extension.kind}"
    for note in run.call(kind, request, lambda: extension.notes, tuple[str, ...]):
        run.note(note)


TRIPLES_PER_QUERY = 10_000
SECONDS_PER_1000_TRIPLES = 1.5
"""How long induction takes, as measured."""
MEGABYTES_PER_1000_TRIPLES = 1.2
"""How much memory induction takes, as measured."""
SIZE_HINT = (
    "if the graph is too large, choose a part of it by classes, such as"
    " --set part=http://example.org/Film, or raise the setting max_triples"
)


def read_triples(kg: Graph, settings: RagoniteSettings) -> Iterator[Triple]:
    """Yield the distinct triples of the graph.

    With classes in the setting ``part``, these are the triples whose subject is an instance of one,
    or a blank node that an instance leads to. The triples are counted first. Then they are read
    TRIPLES_PER_QUERY at a time, until a query returns none. Only an endpoint is asked to sort them.

    Raises SettingError if ``part`` has an invalid IRI; GraphError if there are no triples, if there are
    more than ``max_triples``, or if they cannot be counted; and what the graph raises.
    """
    pattern = _pattern_of_part(kg, settings)
    problem = _find_size_problem(kg, pattern, settings.max_triples)
    if problem:
        raise GraphError(f"no database can be made of {kg.source}: {problem}", hint=SIZE_HINT)
    # A file always returns its triples in the same order. An endpoint does so only if it sorts.
    order = ""
    if kg.remote:
        order = " ORDER BY ?s ?p ?o"
    distinct = f"SELECT DISTINCT ?s ?p ?o WHERE {{ {pattern} }}{order}"
    start = 0
    while True:
        rows = kg.select(
            f"SELECT ?s ?p ?o WHERE {{ {{ {distinct} }} }} LIMIT {TRIPLES_PER_QUERY} OFFSET {start}"
        ).rows
        if not rows:
            break
        start += len(rows)
        for subject, predicate, object_ in rows:
            if subject is not None and predicate is not None and object_ is not None:
                yield subject, URIRef(predicate), object_


def _pattern_of_part(kg: Graph, settings: RagoniteSettings) -> str:
    """Return the graph pattern of the triples to read.

    With classes in the setting ``part``, these are the triples of their instances and of blank
    nodes that an instance leads to. Raises SettingError for an invalid IRI.
    """
    classes = [URIRef(iri.strip("<>")) for iri in settings.part.split()]
    for iri in classes:
        if not is_valid_iri(iri):
            raise SettingError(
                f"the setting part has {str(iri)!r}, which is not an IRI",
                hint="give the IRIs of classes, separated by blanks, such as --set part=http://example.org/Film",
            )
    if not classes:
        return "?s ?p ?o"
    types = "|".join(map(n3, kg.vocabulary.types))
    of_classes = values_clause("?c", classes)
    instances = f"{of_classes} ?s ({types}) ?c"
    nodes = f"{of_classes} ?v ({types}) ?c . ?v ?leads ?s FILTER(isBlank(?s))"
    return f"{{ {{ {instances} }} UNION {{ {nodes} }} }} ?s ?p ?o"


def _find_size_problem(kg: Graph, pattern: str, max_triples: int) -> str:
    """Count the triples of a pattern, and return why they cannot be read; "" if they can.

    There may be none, more than ``max_triples``, in which case the text has an estimate of time and
    memory, or the graph may not count them. Raises GraphUnreachableError.
    """
    try:
        [(number,)] = kg.select(f"SELECT (COUNT(*) AS ?n) WHERE {{ {pattern} }}").rows
        count = parse_count(number)
    except GraphUnreachableError:
        raise
    except (GraphError, ValueError) as error:
        return f"its triples cannot be counted: {error}"
    if not count:
        return "it has no triples"
    if count <= max_triples:
        return ""
    minutes = count * SECONDS_PER_1000_TRIPLES / 60_000
    megabytes = count * MEGABYTES_PER_1000_TRIPLES / 1000
    return (
        f"{count:,} triples would take about {minutes:,.0f} minutes and {megabytes:,.0f} MB;"
        f" the limit (setting max_triples) is {max_triples:,}"
    )


MAX_PASSAGE_CHARS = 900
MAX_OBJECTS_PER_SENTENCE = 12
MAX_NESTED_TRIPLES = 4
"""Triples of an instance that is only a part of a value, such as a number with its unit."""


class Fact(NamedTuple):
    """One or more triples as words: the relation of a subject to an object.

    A triple that the title of the passage already says is a fact without words.
    """

    relation: str
    object: str
    triples: Sequence[int]
    """The numbers of the triples."""
    reverse: str = ""
    """The name of the predicate if the reverse of the fact follows it, else empty."""


class Passage(NamedTuple):
    """Sentences about one term, and the numbers of the triples that they say."""

    text: str
    triples: Sequence[int]


class PassageWriter:
    """Writes the triples of a database as passages, which are added to it."""

    def __init__(self, database: DatabaseBuilder, settings: RagoniteSettings) -> None:
        """Index the triples. The settings say how they are written."""
        self.database = database
        self.by_fact = settings.verbalization != "grouped"
        self.lowercases = settings.lowercases
        self.reverse_facts = settings.reverse_facts
        self.reverse_literals = settings.reverse_literals
        self._outgoing: dict[Term, list[int]] = defaultdict(list)
        """The numbers of the triples by their subject."""
        self._incoming: dict[Term, list[int]] = defaultdict(list)
        """The numbers of the triples by their object."""
        for number, (subject, _, object_) in enumerate(database.triples):
            self._outgoing[subject].append(number)
            self._incoming[object_].append(number)
        self._written_triples: set[int] = set()
        self._shown_names: Mapping[Term, str] = {}
        """The texts of the terms in the passage that is being written, where these are needed."""
        self._passage_count = 0
        self._predicate_names = self._name_predicates()
        self._type_relation = "is" if settings.verbalization == "facts" else "is a"
        self._relation_ranks = {self._type_relation: 0}
        """The relations that come before all others in a passage: types, then descriptions."""
        for iri in database.vocabulary.descriptions:
            if iri in self._predicate_names:
                self._relation_ranks[f"has {self._predicate_names[iri]}"] = 1

    def _name_predicates(self) -> Mapping[URIRef, str]:
        """Return the name of each predicate of the database, by IRI.

        It is the display name; where several have the same, the CURIE stands behind it in brackets.
        """
        predicates = sorted({predicate for _, predicate, _ in self.database.triples})
        prefixes: dict[str, str] = {}
        for namespace, _ in map(split_iri, predicates):
            if namespace not in prefixes:
                prefixes[namespace] = choose_prefix(namespace, prefixes.values())
        names = self.database.names

        def format_with_curie(predicate: URIRef) -> str:
            return f"{names[predicate]} ({to_curie(predicate, prefixes)})"

        return tell_apart(predicates, (names.__getitem__, format_with_curie))

    def write_passages(self) -> int:
        """Write the passages of all subjects, and of all objects that have reverse facts there.

        A term without facts has no passage.

        Nested terms come last, because most of them are written in the passages of other terms.
        """
        terms: Iterable[Term] = self._outgoing
        if self.reverse_facts:
            terms = dict.fromkeys((*self._outgoing, *self._incoming))
        described = [term for term in terms if not isinstance(term, Literal)]
        for term in sorted(described, key=self._is_nested):
            self._write_passages_of(term)
        return self._passage_count

    def _is_nested(self, term: Term) -> bool:
        """Return whether a term only holds the parts of a value, such as a number and a unit.

        That is a blank node, or a term in a table without a label that has 1 to MAX_NESTED_TRIPLES
        triples and is the object of exactly one. If each subject has one passage, any IRI has its
        own.
        """
        if isinstance(term, BNode) or self.by_fact:
            return isinstance(term, BNode)
        outgoing = self._outgoing.get(term, ())
        incoming = self._incoming.get(term, ())
        if not 0 < len(outgoing) <= MAX_NESTED_TRIPLES or len(incoming) != 1:
            return False
        predicates = set()
        for number in outgoing:
            _, predicate, _ = self.database.triples[number]
            predicates.add(predicate)
        has_label = not predicates.isdisjoint(self.database.vocabulary.labels)
        return not has_label and term in self.database.table_by_term

    def _write_passages_of(self, term: Term) -> None:
        """Write the facts about a term, in one passage or in several, as the settings say.

        Types come first, then descriptions, then other facts. The facts of a nested term that are
        in another passage are not written again. The title is the name with the id in brackets.
        """
        is_nested = self._is_nested(term)
        self._shown_names = self._name_neighbours(term)
        facts = []
        for number in self._outgoing.get(term, ()):
            if not (is_nested and number in self._written_triples):
                facts.append(self._make_fact(number, frozenset([term])))
        facts.sort(key=lambda fact: self._relation_ranks.get(fact.relation, 2))
        name = self._name_of(term)
        title = name
        if name != self.database.id_by_term[term]:
            title = self._name_fully(term)
        if self.by_fact:
            passages = [join_facts(name, facts)]
        else:
            is_schema_term = term in self.database.classes.schema_terms
            if self.reverse_facts and not is_nested and not is_schema_term:
                facts += self._make_reverse_facts(term)
            passages = list(split_into_passages(name, facts))
        for passage in passages:
            if passage.triples:
                self._write_passage(title, passage)

    def _name_neighbours(self, term: Term) -> Mapping[Term, str]:
        """Return a text for each term that a triple connects with this one; texts of different terms differ.

        It is the literal or the name; where several would look the same, a literal has its datatype
        behind it, and anything else its id in square brackets. Subjects of incoming triples count
        only with reverse facts.
        """
        triples = self.database.triples
        neighbours = [triples[number][2] for number in self._outgoing.get(term, ())]
        if self.reverse_facts and not self.by_fact:
            for number in self._incoming.get(term, ()):
                subject, _, _ = triples[number]
                neighbours.append(subject)
        return tell_apart(neighbours, (self._name_of, self._name_fully, self._name_exactly))

    def _make_fact(self, number: int, path: frozenset[Term]) -> Fact:
        """Return a triple as a fact: "is a" for a type, else "has" with the predicate's name.

        ``number`` is that of the triple. A nested object is written as its own facts, in brackets.
        ``path`` has the terms that the triple is nested in; these are written by name, since blank
        nodes may lead to each other in a circle. The display name of the subject is a fact without
        words.
        """
        triple = self.database.triples[number]
        _, predicate, object_ = triple
        if self.database.is_display_name(triple):
            return Fact("", "", [number])
        if predicate in self.database.vocabulary.types:
            return Fact(self._type_relation, self._show(object_), [number])
        name = self._relation_name(predicate)
        relation = f"has {name}"
        reverse = ""
        if self._is_reversed_beside(object_):
            reverse = name
        if object_ in path or not self._is_nested(object_):
            return Fact(relation, self._show(object_), [number], reverse)

        parts = []
        numbers = [number]
        for nested_number in self._outgoing[object_]:
            nested = self._make_fact(nested_number, path | {object_})
            parts.append(f"{nested.relation.removeprefix('has ')} {nested.object}")
            numbers += nested.triples
        return Fact(relation, f"({'; '.join(parts)})", numbers, reverse)

    def _is_reversed_beside(self, object_: Term) -> bool:
        """Return whether the reverse of a fact with this object follows it in its passage.

        None does without ``reverse_facts``. "125 kW is engine performance of BMW 120 Sport" does with
        ``reverse_literals``. The reverse of a link does if there is a passage for each subject only
        (section 2.2); else it is in the passage of the object.
        """
        is_beside = self.reverse_literals if isinstance(object_, Literal) else self.by_fact
        return is_beside and self.reverse_facts

    def _make_reverse_facts(self, term: Term) -> Iterator[Fact]:
        """Yield the facts that lead to a term, in the order of the triples: "is director of Dune".

        Types and facts about blank nodes are left out.
        """
        for number in self._incoming.get(term, ()):
            subject, predicate, _ = self.database.triples[number]
            is_type = predicate in self.database.vocabulary.types
            if not is_type and not isinstance(subject, BNode):
                relation = f"is {self._relation_name(predicate)} of"
                yield Fact(relation, self._show(subject), [number])

    def _relation_name(self, predicate: URIRef) -> str:
        """Return the display name of a predicate, without "has " before it unless each fact is a sentence."""
        name = self._predicate_names[predicate]
        return name if self.by_fact else name.removeprefix("has ")

    def _show(self, term: Term) -> str:
        """Return a term as the passage that is being written shows it."""
        return self._shown_names.get(term) or self._name_of(term)

    def _name_of(self, term: Term) -> str:
        """Return a literal with its language in brackets, or the display name or id of a term."""
        if isinstance(term, Literal):
            return f"{term} ({term.language})" if term.language else str(term)
        return self.database.names.get(term) or self.database.id_by_term[term]

    def _name_fully(self, term: Term) -> str:
        """Return a literal with its language or datatype, or a name with the id in brackets.

        A literal without a datatype is returned as it is named.
        """
        name = self._name_of(term)
        if not isinstance(term, Literal):
            return f"{name} [{self.database.id_by_term[term]}]"
        if term.datatype and not term.language:
            return f"{name} ({local_part(term.datatype)})"
        return name

    def _name_exactly(self, term: Term) -> str:
        """Return what ``_name_fully`` does, but with the IRI of a datatype."""
        if isinstance(term, Literal) and term.datatype and not term.language:
            return f"{term} ({term.datatype})"
        return self._name_fully(term)

    def _write_passage(self, title: str, passage: Passage) -> None:
        """Insert a passage with its triples into the database, and add it to the index of words.

        It gets the next number, from 0. Title and text are indexed in their normal form. Its
        triples count as written from then on. With the setting ``lowercases`` the text is in lower
        case.
        """
        self._written_triples.update(passage.triples)
        connection = self.database.connection
        text = passage.text.lower() if self.lowercases else passage.text
        insert_passage(connection, self._passage_count, title, text)
        facts = [(self._passage_count, number) for number in passage.triples]
        connection.executemany("INSERT INTO _facts VALUES (?, ?)", facts)
        self._passage_count += 1


def split_into_passages(name: str, facts: Iterable[Fact]) -> Iterator[Passage]:
    """Yield the facts about a term as passages of about MAX_PASSAGE_CHARS characters.

    Facts with the same relation are one sentence, or several if they are more than
    MAX_OBJECTS_PER_SENTENCE. A sentence is never divided. The first of a passage begins with the
    name of the term, the others with "It". The reverse of a fact follows the sentence. If no fact
    has words, the name is the only passage. Without facts there is none.
    """
    facts_by_relation: dict[str, list[Fact]] = {"": []}
    for fact in facts:
        facts_by_relation.setdefault(fact.relation, []).append(fact)
    unworded = facts_by_relation.pop("")
    triples = list(chain.from_iterable(fact.triples for fact in unworded))
    text = ""
    for relation, group in facts_by_relation.items():
        for part in split_into_batches(group, MAX_OBJECTS_PER_SENTENCE):
            objects = ", ".join(fact.object for fact in part)
            sentence = f"{relation} {objects}."
            for fact in part:
                if fact.reverse:
                    sentence += f" {fact.object} is {fact.reverse} of {name}."
            if text and len(text) + len(sentence) > MAX_PASSAGE_CHARS:
                yield Passage(text, triples)
                text = ""
                triples = []
            text += f" It {sentence}" if text else f"{name} {sentence}"
            for fact in part:
                triples += fact.triples
    if triples:
        yield Passage(text or name, triples)


def join_facts(name: str, facts: Iterable[Fact]) -> Passage:
    """Return all facts about a term as one passage (section 2.2).

    Each fact is a sentence with the name of the term; its reverse is the next sentence. If no fact
    has words, the name is the passage. Without facts it has no triples.
    """
    sentences = []
    triples: list[int] = []
    for fact in facts:
        triples += fact.triples
        if fact.relation:
            sentences.append(f"{name} {fact.relation} {fact.object}.")
        if fact.reverse:
            sentences.append(f"{fact.object} is {fact.reverse} of {name}.")
    return Passage(" ".join(sentences) or name, triples)


DATABASE_VERSION = 9
"""Changes with the content of the file, so that older files are not used."""
_build_locks: dict[Path, threading.Lock] = {}
"""By file. One thread makes a database while others that need it wait."""
_open_databases: dict[Path, Database] = {}
"""The databases that this process uses, by file."""


def open_database(
    kg: Graph,
    settings: RagoniteSettings,
    embeddings: Embeddings,
    extensions: Sequence[Extension] = (),
) -> Database:
    """Return the database of a graph, or of the part of it that the settings choose.

    It is taken from memory, else from its file in the cache folder, else it is made and the file
    is written. A database of an endpoint is made again after CACHE_LIFETIME_S. A file that is
    damaged is replaced. If no file can be written, the database is in memory only. With extensions
    it is a copy to which they were applied, in a file of its own.

    Raises GraphError for a graph without triples or with too many, SettingError for an invalid
    setting ``part`` or an extension that does not fit, EmbeddingError, and what the graph raises.
    """
    path = _database_path(kg, settings)
    make = partial(_make_database, path, kg, settings, embeddings)
    induced = _open_file(path, partial(_is_current, kg), make)
    if not extensions:
        return induced
    parts = "\n".join(f"{extension.kind} {extension.identity}" for extension in extensions)
    extended_path = path.with_stem(f"{path.stem}-{_hash(parts)}")
    extend = partial(_extend_database, extended_path, induced, extensions, embeddings)
    return _open_file(extended_path, lambda made_at: made_at >= induced.made_at, extend)


def _hash(text: str) -> str:
    """Return a hash of a text for the name of a file."""
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _open_file(
    path: Path, is_current: Callable[[float], bool], make: Callable[[], Database]
) -> Database:
    """Return the database of a file from memory, else from the file, else as ``make`` makes it.

    ``is_current`` says whether one that was made at a time may still be used.
    """
    with _build_locks.setdefault(path, threading.Lock()):
        database = _open_databases.get(path)
        if database is None or not is_current(database.made_at):
            database = _load_database(path, is_current) or make()
            _open_databases[path] = database
        return database


def _database_path(kg: Graph, settings: RagoniteSettings) -> Path:
    """Return the path of a database's file in the cache folder; it need not exist.

    Its name is a hash of all that the content depends on: the version, the identity and vocabulary
    of the graph, muted triples, and ``RagoniteSettings.database_options``.
    """
    options = dict(settings.database_options)
    content = f"{DATABASE_VERSION} {kg.identity} {kg.vocabulary!r} {options!r}"
    if kg.muted:
        content += f" {kg.muted!r}"
    return cache_dir() / f"ragonite-{_hash(content)}.sqlite"


def _is_current(kg: Graph, made_at: float) -> bool:
    """Return whether a database made at a time may still be used: always for a file's graph.

    One of an endpoint may for CACHE_LIFETIME_S. A file's content is part of its identity.
    """
    return not kg.remote or time.time() - made_at < CACHE_LIFETIME_S


def _load_database(path: Path, is_current: Callable[[float], bool]) -> Database | None:
    """Return the database in a file; None without a file, or if it is damaged or out of date.

    It is opened read-only.
    """
    with suppress(OSError, sqlite3.Error, ValueError):
        made_at = path.stat().st_mtime
        if is_current(made_at):
            uri = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
            connection = sqlite3.connect(uri, uri=True, check_same_thread=False)
            return Database(connection, made_at)
    return None


@contextmanager
def _open_in_memory() -> Iterator[sqlite3.Connection]:
    """Open an empty database in memory, commit what the block does, and close it if the block fails."""
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    try:
        with connection:
            yield connection
    except BaseException:
        connection.close()
        raise


def _make_database(
    path: Path, kg: Graph, settings: RagoniteSettings, embeddings: Embeddings
) -> Database:
    """Make the database of a graph in memory, compute the vectors of its passages, and write the file.

    It has the tables of the classes, all triples with their places, the passages, and the schema as
    JSON. A file that cannot be written is no error. Raises what reading the graph and computing the
    vectors raise.
    """
    triples = list(read_triples(kg, settings))
    iris = set()
    for term in chain.from_iterable(triples):
        if isinstance(term, URIRef):
            iris.add(term)
    names: dict[Term, str] = dict(kg.names(sorted(iris)).items())
    for page in find_pages(triples, names):
        names[page] = str(page)
    with _open_in_memory() as connection:
        builder = DatabaseBuilder(triples, names, kg.vocabulary, connection, settings)
        tables = builder.create_tables()
        writer = PassageWriter(builder, settings)
        passage_count = writer.write_passages()
        schema = Schema(tables, len(triples), passage_count, read_reasons(connection))
        connection.execute("CREATE TABLE _schema (json TEXT)")
        connection.execute("INSERT INTO _schema VALUES (?)", (json.dumps(to_data(schema)),))
    return _finish(path, connection, embeddings)


def _extend_database(
    path: Path, induced: Database, extensions: Sequence[Extension], embeddings: Embeddings
) -> Database:
    """Apply extensions to a copy of a database, compute the new vectors, and write the file.

    Raises SettingError if an extension does not fit the database, and EmbeddingError.
    """
    with _open_in_memory() as connection:
        induced.copy_to(connection)
        for extension in extensions:
            extension.apply(connection)
    return _finish(path, connection, embeddings)


def _finish(path: Path, connection: sqlite3.Connection, embeddings: Embeddings) -> Database:
    """Return a database in memory, after its vectors were computed and its file was written.

    The file is written by way of a draft that then takes its place. If that fails, nothing is
    raised, and there is no file. Raises EmbeddingError.
    """
    database = Database(connection, time.time())
    database.find_nearest_passages("", embeddings)  # computes the vectors, which are kept
    with suppress(OSError, sqlite3.Error), draft_of(path) as draft:
        connection.execute("VACUUM INTO ?", (str(draft),))
    return database
