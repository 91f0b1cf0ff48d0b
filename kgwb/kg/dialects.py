"""Label search as each engine's own full-text index wants it. To add an engine: a row in DIALECTS.

Forms as in the engines' documentation. An index gets words of lower-case letters and digits only, so nothing
that a text holds is an operator (Lucene's are capitals and signs), and every query has a LIMIT.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from string import Template
from typing import Literal

from kgwb.errors import SettingError
from kgwb.kg.base import Vocabulary
from kgwb.kg.sparql import n3, string_literal
from kgwb.masking import mask_url

SearchStage = Literal["all words", "prefix", "any word"]
SEARCH_STAGES: tuple[SearchStage, ...] = ("all words", "prefix", "any word")
OVERFETCH_FACTOR = 10
"""How many times the hits wanted an index is asked for: not every text in it is a label."""


@dataclass(frozen=True, slots=True, repr=False)
class Dialect:
    """How an engine finds labels: what to write around the words, and when to expect this engine."""

    name: str
    pattern: str
    """Binds ?v and ?label, and ?p where the index does not know of label predicates.

    Holds $text (the words as one string), $limit and $deep (hits), $every ("true" if all words must be
    there), $p (a label predicate; the pattern is written once for each), $labels (all of them), $language,
    $test (the words as conditions) and the groups of ``form``. Empty where not SPARQL is asked but an API.
    """
    prefixes: str = ""
    """For the head of the query, a line each."""
    word_template: str = "$word"
    text_template: str = "$words"
    and_separator: str = " AND "
    or_separator: str | None = " OR "
    """Between words of which one is enough; empty: the pattern is written once for each; None: impossible."""
    min_wildcard_letters: int = 1
    """Letters that must stand before a "*"; 0 where there are no wildcards."""
    service_iri: str = ""
    """The IRI of the engine's own SERVICE, if its search is one."""
    engine_hints: tuple[str, ...] = ()
    """Parts of URLs, or of what a server calls itself, that let one expect this engine."""
    probe_without_hint: bool = True
    """Whether it is tried without a hint; not where other hosts would learn what is searched."""
    argument_pattern: str = ""
    """The site's own names, which cannot be probed, as a regular expression; empty if it needs none."""
    argument: str = ""
    """Those names: what follows the colon in NAME:ARGUMENT."""
    selection_reason: str = "named"
    """Why this one: named, probed or remembered."""

    def build_search_query(
        self, words: Sequence[str], limit: int, stage: SearchStage, vocabulary: Vocabulary
    ) -> str | None:
        """A SELECT of ?v and ?label, or None where the engine has no such stage. Words are lower-case."""
        # What to search for, in the index's own language; one of them is enough
        searched: Sequence[str] = words
        if stage == "prefix":
            if not self.min_wildcard_letters or max(map(len, words)) < self.min_wildcard_letters:
                return None
            searched = [
                f"{word}*" if len(word) >= self.min_wildcard_letters else word for word in words
            ]
        searched = [Template(self.word_template).substitute(word=word) for word in searched]
        if stage != "any word":
            searched = [self.and_separator.join(searched)]
        elif self.or_separator is None:
            return None
        elif self.or_separator:
            searched = [self.or_separator.join(searched)]
        labels = [n3(predicate) for predicate in vocabulary.labels]
        values = {
            "limit": limit,
            "deep": OVERFETCH_FACTOR * limit,
            "labels": ", ".join(labels),
            **self.argument_fields,
        }
        values["every"] = string_literal("false" if stage == "any word" else "true")
        values["language"] = string_literal(next(filter(None, vocabulary.languages), "en"))
        values["test"] = (" || " if stage == "any word" else " && ").join(
            map(_contains_condition, words)
        )
        parts = [
            Template(self.pattern).substitute(values, text=string_literal(text), p=predicate)
            for text in (
                Template(self.text_template).substitute(words=each, **self.argument_fields)
                for each in searched
            )
            for predicate in (labels if "$p " in self.pattern else [""])
        ]
        if not parts:
            return None
        where = parts[0] if len(parts) == 1 else " UNION ".join(f"{{ {part} }}" for part in parts)
        only = f" && ?p IN ({values['labels']})" if "?p " in self.pattern else ""
        order = ""
        if (
            stage == "any word"
        ):  # most, and the longest, of the words first: a LIMIT keeps "The Ex" for "the"
            held = (f"IF({_contains_condition(word)}, {len(word) ** 2}, 0)" for word in words)
            order = f"DESC({' + '.join(held)}) "
        head = "".join(f"PREFIX {prefix}\n" for prefix in self.prefixes.splitlines())
        return (
            f"{head}SELECT DISTINCT ?v ?label WHERE {{ {where} FILTER(isIRI(?v){only}) }}\n"
            f"ORDER BY {order}STRLEN(STR(?label)) ?v LIMIT {limit}"
        )

    @property
    def argument_fields(self) -> dict[str, str]:
        """The names in ``argument``. Raises SettingError where they are not of the form."""
        if match := re.fullmatch(self.argument_pattern, self.argument):
            return match.groupdict()
        hint = "give INSTANCE/FIELD, or a URL without user, password and query, as CONTRIBUTING.md shows"
        seen = mask_url(self.argument)
        raise SettingError(f"the dialect {self.name!r} cannot be used with {seen!r}", hint=hint)

    @property
    def is_complete(self) -> bool:
        """Whether it can be used as it is, without names of the site."""
        return bool(re.fullmatch(self.argument_pattern, self.argument))

    def __repr__(self) -> str:
        return f"{self.name} ({self.selection_reason})"


def _contains_condition(word: str) -> str:
    return f"CONTAINS(LCASE(STR(?label)), {string_literal(word)})"


_URL = r"https?://[^\s?#@\"'<>\\$]+"  # without a password, as it stands in the record
_ALL_DIALECTS = (
    Dialect(
        "virtuoso",
        "?v ?p ?label . ?label bif:contains $text",
        "bif: <bif:>",
        word_template='"$word"',
        min_wildcard_letters=4,  # fewer is error FT370
        engine_hints=("virtuoso",),
    ),
    Dialect(
        "jena",  # ?label from the graph, as the index may not store it
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
        argument_pattern=r"(?P<index>\*|[A-Za-z-]+)",  # "*" is every language's, from GraphDB 10.8
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
        "qlever",  # SERVICE textSearch: would do the same; here nothing needs leave
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
"""By name, in the order of probing; ``generic`` (FILTER CONTAINS) fits any engine and reads every label.

Never probed, as they need the site's own names: ``graphdb-connector:INSTANCE/FIELD`` and
``neptune:OPENSEARCH_URL``. Others take a name too: ``graphdb-fts:en`` searches one index only, and
``wikidata:API_URL`` another Wikibase.
"""


def parse_dialect(dialect: str | Dialect) -> Dialect:
    """The dialect that a person names, as NAME or NAME:ARGUMENT. Raises SettingError."""
    if isinstance(dialect, Dialect):
        return dialect
    name, _, argument = str(dialect).partition(":")
    if name not in DIALECTS:
        raise SettingError(
            f"no dialect named {name!r}", hint=f"choose one of {', '.join(DIALECTS)}"
        )
    dialect = replace(DIALECTS[name], argument=argument or DIALECTS[name].argument)
    _ = dialect.argument_fields  # raises where the argument is not of its form
    return dialect
