"""Label search in the full-text index of each engine. An engine is added by a row of DIALECTS.

The queries follow the documentation of the engines. A searched text reaches an index only as words
of lower-case letters and digits, and Lucene's operators are capitals and signs, so no text can hold
an operator. Every query has a LIMIT.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from string import Template
from typing import Literal

from kgwb.errors import SettingError
from kgwb.kg.base import Vocabulary
from kgwb.kg.sparql import n3, string_literal, union_clause
from kgwb.masking import mask_url

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
    or_separator: str | None = " OR "
    """The separator of words of which one must be in the label.

    If it is empty, the pattern is repeated for each word. None means that the engine cannot search
    so.
    """
    min_wildcard_letters: int = 1
    """Letters that must stand before a "*"; 0 if the index has no wildcards."""
    service_iri: str = ""
    """The IRI of the engine's own SERVICE, if its search is one.

    The gate accepts it in this search only.
    """
    engine_hints: tuple[str, ...] = ()
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
                weight = len(word) ** 2
                weights.append(f"IF({condition}, {weight}, 0)")
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
        prologue = ""
        for prefix in self.prefixes.splitlines():
            prologue += f"PREFIX {prefix}\n"
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
        separator: str | None = self.and_separator
        if stage == "any word":
            separator = self.or_separator
        if separator is None or (stage == "prefix" and not has_wildcard):
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
        match = re.fullmatch(self.argument_pattern, self.argument)
        return match is not None

    def __repr__(self) -> str:
        return f"{self.name} ({self.selection_reason})"


def _contains_condition(word: str) -> str:
    """Return the SPARQL condition that ?label contains a lower-case word, in any case."""
    return f"CONTAINS(LCASE(STR(?label)), {string_literal(word)})"


_URL = r"https?://[^\s?#@\"'<>\\$]+"
"""A URL without user, password and query, because it will stand in records."""
_ALL_DIALECTS = (
    Dialect(
        "virtuoso",
        "?v ?p ?label . ?label bif:contains $text",
        "bif: <bif:>",
        word_template='"$word"',
        min_wildcard_letters=4,  # with fewer, Virtuoso answers with error FT370
        engine_hints=("virtuoso",),
    ),
    Dialect(
        "jena",  # ?label is read from the graph, because the index may not store it
        "?v text:query ($p $text $deep) . ?v $p ?label",
        "text: <http://jena.apache.org/text#>",
        text_template="($words)",
        engine_hints=("fuseki", "jena"),
    ),
    Dialect(
        "graphdb-fts",
        '?label onto:fts ($text "$index" $deep) . ?v ?p ?label',
        "onto: <http://www.ontotext.com/>",
        engine_hints=("graphdb", "/repositories/"),
        argument_pattern=r"(?P<index>\*|[A-Za-z-]+)",  # "*": all languages, since GraphDB 10.8
        argument="*",
    ),
    Dialect(
        "rdf4j",
        "?v search:matches [ search:query $text ; search:property $p ] . ?v $p ?label",
        "search: <http://www.openrdf.org/contrib/lucenesail#>",
        engine_hints=("rdf4j", "/repositories/"),
    ),
    Dialect(
        "blazegraph",
        "?label bds:search $text ; bds:matchAllTerms $every ; bds:maxRank $deep . ?v ?p ?label",
        "bds: <http://www.bigdata.com/rdf/search#>",
        and_separator=" ",
        or_separator=" ",
        engine_hints=("blazegraph", "bigdata", "/namespace/"),
    ),
    Dialect(
        "qlever",  # its SERVICE textSearch: would find the same, but need allow_service
        "?text ql:contains-word $text . ?text ql:contains-entity ?label . ?v ?p ?label",
        "ql: <http://qlever.cs.uni-freiburg.de/builtin-functions/>",
        and_separator=" ",
        or_separator="",
        min_wildcard_letters=4,
        engine_hints=("qlever",),
    ),
    Dialect(
        "stardog",
        "SERVICE <tag:stardog:api:search:textMatch> {"
        " [] fts:query $text ; fts:limit $deep ; fts:result ?label } ?v ?p ?label",
        "fts: <tag:stardog:api:search:>",
        service_iri="tag:stardog:api:search:textMatch",
        engine_hints=("stardog", ":5820/"),
    ),
    Dialect(
        "wikidata",
        "",
        engine_hints=(
            "//query.wikidata.org/",
            "//qlever.dev/api/wikidata",
            "//qlever.cs.uni-freiburg.de/api/wikidata",
        ),
        probe_without_hint=False,
        argument_pattern=f"(?P<api>{_URL})",
        argument="https://www.wikidata.org/w/api.php",
    ),
    Dialect(
        "wikidata-mwapi",
        'SERVICE <http://wikiba.se/ontology#mwapi> { bd:serviceParam wikibase:api "EntitySearch" ;'
        ' wikibase:endpoint "www.wikidata.org" ; wikibase:limit $limit ; mwapi:search $text ;'
        " mwapi:language $language . ?v wikibase:apiOutputItem mwapi:item }"
        " ?v ?p ?label FILTER(LANG(?label) = $language)",
        "bd: <http://www.bigdata.com/rdf#>\n"
        "mwapi: <https://www.mediawiki.org/ontology#API/>\n"
        "wikibase: <http://wikiba.se/ontology#>",
        and_separator=" ",
        or_separator=None,
        min_wildcard_letters=0,
        service_iri="http://wikiba.se/ontology#mwapi",
        engine_hints=("//query.wikidata.org/",),
        probe_without_hint=False,
    ),
    Dialect(
        "graphdb-connector",
        "?search a <http://www.ontotext.com/connectors/lucene/instance#$index> ; luc:query $text ;"
        ' luc:limit "$limit" ; luc:entities ?v . ?v ?p ?label',
        "luc: <http://www.ontotext.com/connectors/lucene#>",
        text_template="$field:($words)",
        argument_pattern=r"(?P<index>\w[\w-]*)/(?P<field>\w[\w-]*)",
    ),
    Dialect(
        "neptune",
        "SERVICE <http://aws.amazon.com/neptune/vocab/v01/services/fts#search> { fts:config"
        ' fts:endpoint "$endpoint" ; fts:queryType "simple_query_string" ; fts:field $labels ;'
        " fts:query $text ; fts:return ?v } ?v ?p ?label",
        "fts: <http://aws.amazon.com/neptune/vocab/v01/services/fts#>",
        and_separator=" + ",
        or_separator=" | ",
        service_iri="http://aws.amazon.com/neptune/vocab/v01/services/fts#search",
        argument_pattern=f"(?P<endpoint>{_URL})",
    ),
    Dialect("generic", "?v ?p ?label FILTER($test)", min_wildcard_letters=0),
)
DIALECTS: dict[str, Dialect] = {dialect.name: dialect for dialect in _ALL_DIALECTS}
"""Dialects by name, in the order of probing.

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
