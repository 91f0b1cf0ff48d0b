"""Label search in the full-text index of each engine. An engine is added by a row of ``dialects.toml``.

Which dialect an endpoint understands is found by probing, and then remembered.

The queries follow the documentation of the engines. A searched text reaches an index only as words
of lower-case letters and digits, and Lucene's operators are capitals and signs, so no text can hold
an operator. Every query has a LIMIT.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from string import Template
from typing import Literal
from urllib.parse import urlencode
from urllib.request import Request

from pydantic import BaseModel, ValidationError

from kgwb import disk
from kgwb.errors import GraphError, GraphTimeoutError, SettingError
from kgwb.kg.base import QueryLimits, ResultSet, Vocabulary
from kgwb.kg.label_search import lowercase_words, normalize
from kgwb.kg.sparql import is_valid_iri, n3, string_literal, union_clause, values_clause
from kgwb.kg.sparql_client import SparqlClient, send_request
from kgwb.text import mask_url

SearchStage = Literal["all words", "prefix", "any word"]
"""How a label must match: all words, all words or beginnings of words, or at least one word."""
SEARCH_STAGES: tuple[SearchStage, ...] = ("all words", "prefix", "any word")
"""In the order in which they are tried until one finds a label."""
OVERFETCH_FACTOR = 10
"""How many times the wanted hits an index is asked for.

An index also holds texts that are not labels, which are left out afterwards.
"""


@dataclass(frozen=True, slots=True, repr=False)
class Dialect:
    """How full-text search is written for one engine, and how the engine is recognized."""

    name: str
    pattern: str
    """The inside of the WHERE clause, as a ``string.Template``.

    It is empty if the search is an API, not SPARQL. It binds ?v (the vertex) and ?label, and ?p
    (the predicate between them) if the index cannot restrict a search to label predicates. Its
    placeholders are:

    - $text: the searched words as one string literal;
    - $limit, $deep: hits wanted, and OVERFETCH_FACTOR times as many;
    - $every: "true" if all words must be there, else "false";
    - $p: a label predicate; the pattern is repeated for each;
    - $labels: all label predicates, with commas between;
    - $language: the preferred language of labels, "en" if none is preferred;
    - $test: the words as conditions on ?label;
    - the names of the groups of ``argument_pattern``.
    """
    prefixes: str = ""
    """The prefixes that the pattern uses, as "name: <IRI>", one on each line."""
    word_template: str = "$word"
    """How one word is written in the language of the index, with $word."""
    text_template: str = "$words"
    """How all words together are written, with $words.

    The names of the groups of ``argument_pattern`` are placeholders too.
    """
    and_separator: str = " AND "
    """The separator of words that must all be in the label."""
    or_separator: str = " OR "
    """The separator of words of which one must be in the label.

    If it is empty, the pattern is repeated for each word.
    """
    finds_any_word: bool = True
    """Whether the engine can search for labels that have only one of the words."""
    min_wildcard_letters: int = 1
    """Letters that must stand before a "*"; 0 if the index has no wildcards."""
    service_iri: str = ""
    """The IRI of the engine's own SERVICE, if its search is one.

    The gate accepts it in this search only.
    """
    engine_hints: Sequence[str] = ()
    """Parts of the URL or the Server header of an endpoint that suggest this engine."""
    probe_without_hint: bool = True
    """Whether an endpoint is probed for this dialect even without a hint.

    It is False for searches that send the searched words to another host.
    """
    argument_pattern: str = ""
    """A regular expression for ``argument``; empty if the dialect takes no argument."""
    argument: str = ""
    """ARGUMENT in NAME:ARGUMENT: names of the site, which cannot be found by probing."""
    selection_reason: str = "named"
    """Why an endpoint uses this dialect: "named", "probed", or "remembered in" a file."""

    def build_search_query(
        self, words: Sequence[str], limit: int, stage: SearchStage, vocabulary: Vocabulary
    ) -> str | None:
        """Return the SELECT of ?v and ?label that searches labels in one stage of a search.

        ``words`` are in lower case, and ``limit`` is the LIMIT of the query. Only IRIs with a label
        of the vocabulary's label predicates are found. Shorter labels come first. In the stage "any
        word", the labels with more and longer words of the search come before that (a word weighs
        the square of its length). Returns None if the engine's index cannot search in this stage.
        Raises SettingError if ``argument`` is invalid.
        """
        labels = list(map(n3, vocabulary.labels))
        language = next(filter(None, vocabulary.languages), "en")
        word_conditions = list(map(_contains_condition, words))
        every = '"true"'
        test = " && ".join(word_conditions)
        order = "STRLEN(STR(?label)) ?v"
        if stage == "any word":
            every = '"false"'
            test = " || ".join(word_conditions)
            # Without this, the LIMIT would keep "The Ex" for the word "the" of a longer name.
            weights = []
            for word, condition in zip(words, word_conditions, strict=True):
                weights.append(f"IF({condition}, {len(word) ** 2}, 0)")
            weight_sum = " + ".join(weights)
            order = f"DESC({weight_sum}) {order}"

        template = Template(self.pattern)
        predicates = [""]
        if "$p " in self.pattern:
            predicates = labels
        patterns = []
        for text, predicate in product(self._index_texts(words, stage), predicates):
            values = {
                "text": string_literal(text),
                "p": predicate,
                "labels": ", ".join(labels),
                "limit": limit,
                "deep": OVERFETCH_FACTOR * limit,
                "every": every,
                "language": string_literal(language),
                "test": test,
            }
            patterns.append(template.substitute(values, **self.argument_fields))
        if not patterns:
            return None

        where = patterns[0]
        if len(patterns) > 1:
            where = union_clause(patterns)
        condition = "isIRI(?v)"
        if "?p " in self.pattern:
            condition += f" && ?p IN ({', '.join(labels)})"
        prologue = "".join(f"PREFIX {prefix}\n" for prefix in self.prefixes.splitlines())
        return (
            f"{prologue}SELECT DISTINCT ?v ?label WHERE {{ {where} FILTER({condition}) }}\n"
            f"ORDER BY {order} LIMIT {limit}"
        )

    def _index_texts(self, words: Sequence[str], stage: SearchStage) -> list[str]:
        """Return the texts to search for, in the query language of the index.

        A label that matches one of them is a hit. There are several only if the stage is "any word"
        and the index has no operator for that. In the stage "prefix", a "*" follows each word of at
        least ``min_wildcard_letters``. Empty if the engine cannot search in this stage, or no word
        is long enough for it.
        """
        minimum = self.min_wildcard_letters
        has_wildcard = False
        word_template = Template(self.word_template)
        expressions = []
        for word in words:
            term = word
            if stage == "prefix" and minimum and len(word) >= minimum:
                term += "*"
                has_wildcard = True
            expressions.append(word_template.substitute(word=term))
        separator = self.and_separator
        if stage == "any word":
            separator = self.or_separator
            if not self.finds_any_word:
                return []
        if stage == "prefix" and not has_wildcard:
            return []
        if separator:
            expressions = [separator.join(expressions)]
        text_template = Template(self.text_template)
        fields = self.argument_fields
        return [text_template.substitute(fields, words=expression) for expression in expressions]

    @property
    def argument_fields(self) -> dict[str, str]:
        """The named parts of ``argument``, as ``argument_pattern`` names them.

        Raises SettingError if the argument does not have that form.
        """
        match = re.fullmatch(self.argument_pattern, self.argument)
        if match:
            return match.groupdict()
        raise SettingError(
            f"the dialect {self.name!r} cannot be used with {mask_url(self.argument)!r}",
            hint="give INSTANCE/FIELD, or a URL without user, password and query, as CONTRIBUTING.md shows",
        )

    @property
    def is_complete(self) -> bool:
        """Whether ``argument`` has its form, so that the dialect can be used as it is."""
        return re.fullmatch(self.argument_pattern, self.argument) is not None

    def __repr__(self) -> str:
        return f"{self.name} ({self.selection_reason})"


def _contains_condition(word: str) -> str:
    """Return the SPARQL condition that ?label contains a lower-case word, in any case."""
    return f"CONTAINS(LCASE(STR(?label)), {string_literal(word)})"


_TABLE = disk.read_table("kg/dialects.toml")
DIALECTS = {row["name"]: Dialect(**row) for row in _TABLE["dialect"]}
"""The rows of ``dialects.toml`` by name, in the order of probing.

``generic`` (FILTER with CONTAINS) works with any engine, and reads every label.
``graphdb-connector:INSTANCE/FIELD`` and ``neptune:OPENSEARCH_URL`` need an argument, so they are
never probed. Other dialects accept one: ``graphdb-fts:en`` searches the index of one language, and
``wikidata:API_URL`` another Wikibase.
"""


def parse_dialect(dialect: str | Dialect) -> Dialect:
    """Return the dialect for NAME or NAME:ARGUMENT; a Dialect is returned as it is.

    Without an argument, the dialect keeps its default one. Raises SettingError for an unknown name,
    and for an argument that does not match ``argument_pattern``.
    """
    if isinstance(dialect, Dialect):
        return dialect
    name, _, argument = str(dialect).partition(":")
    if name not in DIALECTS:
        hint = f"choose one of {', '.join(DIALECTS)}"
        raise SettingError(f"kgwb has no dialect named {name!r} for searching labels", hint=hint)
    known = DIALECTS[name]
    chosen = replace(known, argument=argument or known.argument)
    _ = chosen.argument_fields  # raises SettingError if the argument is invalid
    return chosen


DIALECT_CACHE_LIFETIME_S = 30 * 24 * 3600
"""After this time an endpoint is probed again: it may have got an index."""
MAX_PROBE_LABELS = 20
"""The number of labels from which the one to probe with is chosen."""
MAX_PROBE_HITS = 50
MAX_PROBE_WORDS = 3
MIN_PROBE_WORD_LETTERS = 4
"""Shorter words may be missing from a full-text index."""
_log = logging.getLogger("kgwb")


def choose_dialect(client: SparqlClient) -> Dialect:
    """Return the dialect for an endpoint: the remembered one, else the first that finds a label.

    A label is taken from the graph and searched for in each dialect; those that the URL or the
    server's name suggest come first. That an engine accepts a query proves nothing: the index may
    be off, empty, or not for labels. If no search finds the label, ``generic`` is chosen, which
    needs no full-text index.

    The choice is kept in the cache folder for DIALECT_CACHE_LIFETIME_S, except where the graph has
    no label to search for. ``selection_reason`` of the result says why it was chosen. Raises
    GraphError if the endpoint fails.
    """
    digest = hashlib.sha256(client.identity.encode()).hexdigest()
    cache_file = disk.cache_dir() / "dialects" / f"{digest}.json"
    remembered = _read_remembered(cache_file)
    if remembered is not None:
        return replace(remembered, selection_reason=f"remembered in {cache_file}")

    label = _find_probe_label(client)
    if not label:
        return replace(DIALECTS["generic"], selection_reason="no label to probe with")
    chosen = DIALECTS["generic"]
    for dialect in _dialects_to_probe(client):
        if _finds_label(client, dialect, label):
            chosen = dialect
            break
    _remember(cache_file, client.identity, chosen)
    return replace(chosen, selection_reason="probed")


def _read_remembered(file: Path) -> Dialect | None:
    """Return the dialect in a file of the cache folder.

    None if the file is missing, damaged, or older than DIALECT_CACHE_LIFETIME_S.
    """
    with suppress(OSError, ValueError, LookupError, TypeError, RecursionError):
        age_s = time.time() - file.stat().st_mtime
        if age_s >= DIALECT_CACHE_LIFETIME_S:
            return None
        remembered = json.loads(file.read_bytes())
        dialect = DIALECTS[remembered["dialect"]]
        if dialect.is_complete:
            return dialect
    return None


def _remember(file: Path, identity: str, dialect: Dialect) -> None:
    """Write the endpoint and the name of its dialect to a file, in JSON.

    If the file cannot be written, a warning is logged, and nothing raised.
    """
    data = {"endpoint": identity, "dialect": dialect.name}
    try:
        disk.write_atomically(file, [json.dumps(data)])
    except OSError as error:
        _log.warning("%s cannot be written (%s); the endpoint will be probed again", file, error)


def _find_probe_label(client: SparqlClient) -> str:
    """Return a label of the graph to search for in each dialect; "" if none is suitable.

    MAX_PROBE_LABELS labels in the preferred languages are read, and if none of them is suitable, as
    many in any language. The one with the most words to search for is returned, then the shortest.
    """
    predicates = values_clause("?p", client.vocabulary.labels)
    languages = ", ".join(map(string_literal, client.vocabulary.languages))
    is_preferred = f" && LANG(?label) IN ({languages})"
    is_long = f"STRLEN(STR(?label)) >= {MIN_PROBE_WORD_LETTERS}"
    for language_condition in (is_preferred, ""):
        conditions = f"isIRI(?v) && {is_long}{language_condition}"
        where = f"{predicates} ?v ?p ?label FILTER({conditions})"
        query = f"SELECT ?label WHERE {{ {where} }} LIMIT {MAX_PROBE_LABELS}"
        rows = client.select_complete(query).rows
        texts = [str(label) for (label,) in rows if label is not None]
        labels = list(filter(_probe_words, texts))
        if labels:
            return max(labels, key=_probe_quality)
    return ""


def _probe_words(label: str) -> list[str]:
    """Return the first words of a label that any full-text index should have, in lower case."""
    words = [word for word in lowercase_words(label) if len(word) >= MIN_PROBE_WORD_LETTERS]
    return words[:MAX_PROBE_WORDS]


def _probe_quality(label: str) -> tuple[int, int, str]:
    """Return a sort key: the greatest label has the most probe words, then the fewest letters."""
    words = _probe_words(label)
    return len(words), -len(label), label


def _dialects_to_probe(client: SparqlClient) -> list[Dialect]:
    """Return the dialects that can be probed, those first that URL or server name suggest.

    Dialects that need an argument are left out, and those that may only be probed on a hint. Within
    both groups the order is that of DIALECTS. ``generic`` is left out.
    """
    seen = f"{client.identity} {client.server}".lower()
    suggested = []
    others = []
    for dialect in DIALECTS.values():
        if not dialect.is_complete or dialect.name == "generic":
            continue
        if any(hint in seen for hint in dialect.engine_hints):
            suggested.append(dialect)
        elif dialect.probe_without_hint:
            others.append(dialect)
    return suggested + others


def _finds_label(client: SparqlClient, dialect: Dialect, label: str) -> bool:
    """Return whether a search in a dialect finds a label with all the probe words of this one.

    A search that the endpoint refuses finds nothing. Then an ordinary query is sent as well, which
    raises GraphError if the endpoint fails for it, too. Raises GraphTimeoutError if the search
    takes too long.
    """
    words = _probe_words(label)
    try:
        found = search_labels(client, dialect, label, words, MAX_PROBE_HITS)
    except GraphTimeoutError as error:
        raise GraphTimeoutError(
            f"{error.message} (asked for a label in the dialect {dialect.name})",
            hint='name the dialect when you open the graph: open_kg(..., dialect="generic")',
        ) from error
    except GraphError:
        client.ask("ASK { ?s ?p ?o }")
        return False
    if found is None:
        return False
    vertices, _ = found
    wanted = set(normalize(" ".join(words)).split())
    for _, text in vertices:
        found_words = normalize(text).split()
        if wanted.issubset(found_words):
            return True
    return False


def search_labels(
    client: SparqlClient,
    dialect: Dialect,
    text: str,
    words: Sequence[str],
    limit: int,
    stage: SearchStage = "all words",
) -> tuple[LabelledVertices, str] | None:
    """Search the labels of an endpoint in a dialect, in one stage of a search.

    ``words`` are those of ``text``, in lower case, at least one. A dialect without a pattern
    searches for ``text`` by Wikibase's API. Returns pairs of an IRI and the label that matched, at
    most ``limit``, with the query or URL that was sent. Returns None if the dialect has no such
    stage.
    """
    if not dialect.pattern:
        if stage != "all words":
            return None
        api = dialect.argument_fields["api"]
        return search_wikibase(api, text, limit, client.vocabulary, client.limits)
    query = dialect.build_search_query(words, limit, stage, client.vocabulary)
    if not query:
        return None
    result = client.select_complete(query, dialect.service_iri)
    return labelled_vertices(result), query


def labelled_vertices(result: ResultSet) -> LabelledVertices:
    """Return pairs of vertex and label, both as strings, from a result with these two columns.

    Rows without a label are left out, and rows whose vertex is not an IRI that a query could hold.
    """
    vertices = []
    for vertex, label in result.rows:
        if vertex and label is not None and is_valid_iri(vertex):
            vertices.append((str(vertex), str(label)))
    return vertices


LabelledVertices = list[tuple[str, str]]
"""IRIs of vertices, each with one of its labels. A vertex may occur several times."""
MAX_WIKIBASE_HITS = 50
"""The API returns no more hits than this."""
MAX_WIKIBASE_CHARS = 250
"""The API accepts no longer text than this."""
MAX_WIKIBASE_BYTES = 1_000_000
"""The reply to a search for so many hits is far shorter than this."""
_CHECK_API_HINT = (
    'check the address of the API in dialect="wikidata:ADDRESS", which ends in api.php'
)


class _WikibaseEntity(BaseModel):
    """An item or a property."""

    concepturi: str
    label: str = ""
    match: dict[str, str] = {}
    """The label or the alias that the text matched, under "text"."""


class _WikibaseResponse(BaseModel):
    """The reply to a search, or an error."""

    search: tuple[_WikibaseEntity, ...] = ()
    error: dict[str, object] = {}


def search_wikibase(
    api: str, text: str, limit: int, vocabulary: Vocabulary, limits: QueryLimits
) -> tuple[LabelledVertices, str]:
    """Search the items of a Wikibase for a label or an alias; if none is found, its properties.

    ``api`` is the URL of its api.php; MediaWiki's wbsearchentities is called. The language is the
    first one of the vocabulary, else English. The text is cut at MAX_WIKIBASE_CHARS, and at most
    MAX_WIKIBASE_HITS entities are requested. Returns pairs of IRI and text, in the API's order:
    each entity with its label and again with the label or alias that matched. The second value is
    the URL of the last request. Entities with an invalid IRI are left out.

    Raises GraphUnreachableError, GraphTimeoutError, or GraphError if the reply is an error or is
    not a list of entities.
    """
    limits = replace(limits, byte_limit=min(limits.byte_limit, MAX_WIKIBASE_BYTES))
    language = next(filter(None, vocabulary.languages), "en")
    parameters = {
        "action": "wbsearchentities",
        "format": "json",
        "search": " ".join(text.split())[:MAX_WIKIBASE_CHARS],
        "language": language,
        "uselang": language,
        "limit": str(min(limit, MAX_WIKIBASE_HITS)),
    }
    for entity_type in ("item", "property"):
        parameters["type"] = entity_type
        url = f"{api}?{urlencode(parameters)}"
        entities = _request_entities(url, limits)
        if entities:
            break

    vertices: LabelledVertices = []
    for entity in entities:
        iri = entity.concepturi
        if not is_valid_iri(iri):
            continue
        matched = entity.match.get("text", "")
        for label in (entity.label, matched):
            if label:
                vertices.append((iri, label))
    return vertices, url


def _request_entities(url: str, limits: QueryLimits) -> tuple[_WikibaseEntity, ...]:
    """Send one search to the API and return the entities of its reply, in its order.

    Raises GraphError if the reply is an error or is not a list of entities, and what
    ``send_request`` does.
    """
    request = Request(url, headers={"User-Agent": disk.USER_AGENT, "Accept": "application/json"})
    body = send_request(url, [request], limits).body
    try:
        reply = _WikibaseResponse.model_validate_json(body)
    except ValidationError as error:
        start = body[:200].decode(errors="replace")
        raise GraphError(
            f"the search for labels failed: {url} did not send a list of entities but {start!r}",
            hint=_CHECK_API_HINT,
        ) from error
    if reply.error:
        reason = str(reply.error.get("info", "it does not say why"))[:500]
        raise GraphError(f"{url} rejects the search for labels: {reason}", hint=_CHECK_API_HINT)
    return reply.search
