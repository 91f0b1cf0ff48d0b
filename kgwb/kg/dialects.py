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
from kgwb.kg.sparql import n3, quoted
from kgwb.masking import shown

Stage = Literal["all words", "prefix", "any word"]
STAGES: tuple[Stage, ...] = ("all words", "prefix", "any word")
DEEP = 10
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
    word: str = "$word"
    text: str = "$words"
    both: str = " AND "
    either: str | None = " OR "
    """Between words of which one is enough; empty: the pattern is written once for each; None: impossible."""
    wildcard_from: int = 1
    """Letters that must stand before a "*"; 0 where there are no wildcards."""
    magic: str = ""
    """The IRI of the engine's own SERVICE, if its search is one."""
    hints: tuple[str, ...] = ()
    """Parts of URLs, or of what a server calls itself, that let one expect this engine."""
    blind: bool = True
    """Whether it is tried without a hint; not where other hosts would learn what is searched."""
    form: str = ""
    """The site's own names, which cannot be probed, as a regular expression; empty if it needs none."""
    argument: str = ""
    """Those names: what follows the colon in NAME:ARGUMENT."""
    known: str = "named"
    """Why this one: named, probed or remembered."""

    def search_query(
        self, words: Sequence[str], limit: int, stage: Stage, vocabulary: Vocabulary
    ) -> str | None:
        """A SELECT of ?v and ?label, or None where the engine has no such stage. Words are lower-case."""
        # What to search for, in the index's own language; one of them is enough
        searched: Sequence[str] = words
        if stage == "prefix":
            if not self.wildcard_from or max(map(len, words)) < self.wildcard_from:
                return None
            searched = [f"{word}*" if len(word) >= self.wildcard_from else word for word in words]
        searched = [Template(self.word).substitute(word=word) for word in searched]
        if stage != "any word":
            searched = [self.both.join(searched)]
        elif self.either is None:
            return None
        elif self.either:
            searched = [self.either.join(searched)]
        labels = [n3(predicate) for predicate in vocabulary.labels]
        values = {"limit": limit, "deep": DEEP * limit, "labels": ", ".join(labels), **self.names}
        values["every"] = quoted("false" if stage == "any word" else "true")
        values["language"] = quoted(next(filter(None, vocabulary.languages), "en"))
        values["test"] = (" || " if stage == "any word" else " && ").join(map(_contains, words))
        parts = [
            Template(self.pattern).substitute(values, text=quoted(text), p=predicate)
            for text in (
                Template(self.text).substitute(words=each, **self.names) for each in searched
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
            held = (f"IF({_contains(word)}, {len(word) ** 2}, 0)" for word in words)
            order = f"DESC({' + '.join(held)}) "
        head = "".join(f"PREFIX {prefix}\n" for prefix in self.prefixes.splitlines())
        return (
            f"{head}SELECT DISTINCT ?v ?label WHERE {{ {where} FILTER(isIRI(?v){only}) }}\n"
            f"ORDER BY {order}STRLEN(STR(?label)) ?v LIMIT {limit}"
        )

    @property
    def names(self) -> dict[str, str]:
        """The names in ``argument``. Raises SettingError where they are not of the form."""
        if match := re.fullmatch(self.form, self.argument):
            return match.groupdict()
        hint = "give INSTANCE/FIELD, or a URL without user, password and query, as CONTRIBUTING.md shows"
        seen = shown(self.argument)
        raise SettingError(f"the dialect {self.name!r} cannot be used with {seen!r}", hint=hint)

    @property
    def whole(self) -> bool:
        """Whether it can be used as it is, without names of the site."""
        return bool(re.fullmatch(self.form, self.argument))

    def __repr__(self) -> str:
        return f"{self.name} ({self.known})"


def _contains(word: str) -> str:
    return f"CONTAINS(LCASE(STR(?label)), {quoted(word)})"


_URL = r"https?://[^\s?#@\"'<>\\$]+"  # without a password, as it stands in the record
_ROWS = (
    Dialect(
        "virtuoso",
        "?v ?p ?label . ?label bif:contains $text",
        "bif: <bif:>",
        word='"$word"',
        wildcard_from=4,  # fewer is error FT370
        hints=("virtuoso",),
    ),
    Dialect(
        "jena",  # ?label from the graph, as the index may not store it
        "?v text:query ($p $text $deep) . ?v $p ?label",
        "text: <http://jena.apache.org/text#>",
        text="($words)",
        hints=("fuseki", "jena"),
    ),
    Dialect(
        "graphdb-fts",
        '?label onto:fts ($text "$index" $deep) . ?v ?p ?label',
        "onto: <http://www.ontotext.com/>",
        hints=("graphdb", "/repositories/"),
        form=r"(?P<index>\*|[A-Za-z-]+)",  # "*" is every language's, from GraphDB 10.8
        argument="*",
    ),
    Dialect(
        "rdf4j",
        "?v search:matches [ search:query $text ; search:property $p ] . ?v $p ?label",
        "search: <http://www.openrdf.org/contrib/lucenesail#>",
        hints=("rdf4j", "/repositories/"),
    ),
    Dialect(
        "blazegraph",
        "?label bds:search $text ; bds:matchAllTerms $every ; bds:maxRank $deep . ?v ?p ?label",
        "bds: <http://www.bigdata.com/rdf/search#>",
        both=" ",
        either=" ",
        hints=("blazegraph", "bigdata", "/namespace/"),
    ),
    Dialect(
        "qlever",  # SERVICE textSearch: would do the same; here nothing needs leave
        "?text ql:contains-word $text . ?text ql:contains-entity ?label . ?v ?p ?label",
        "ql: <http://qlever.cs.uni-freiburg.de/builtin-functions/>",
        both=" ",
        either="",
        wildcard_from=4,
        hints=("qlever",),
    ),
    Dialect(
        "stardog",
        "SERVICE <tag:stardog:api:search:textMatch> {"
        " [] fts:query $text ; fts:limit $deep ; fts:result ?label } ?v ?p ?label",
        "fts: <tag:stardog:api:search:>",
        magic="tag:stardog:api:search:textMatch",
        hints=("stardog", ":5820/"),
    ),
    Dialect(
        "wikidata",
        "",
        hints=(
            "//query.wikidata.org/",
            "//qlever.dev/api/wikidata",
            "//qlever.cs.uni-freiburg.de/api/wikidata",
        ),
        blind=False,
        form=f"(?P<api>{_URL})",
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
        both=" ",
        either=None,
        wildcard_from=0,
        magic="http://wikiba.se/ontology#mwapi",
        hints=("//query.wikidata.org/",),
        blind=False,
    ),
    Dialect(
        "graphdb-connector",
        "?search a <http://www.ontotext.com/connectors/lucene/instance#$index> ; luc:query $text ;"
        ' luc:limit "$limit" ; luc:entities ?v . ?v ?p ?label',
        "luc: <http://www.ontotext.com/connectors/lucene#>",
        text="$field:($words)",
        form=r"(?P<index>\w[\w-]*)/(?P<field>\w[\w-]*)",
    ),
    Dialect(
        "neptune",
        "SERVICE <http://aws.amazon.com/neptune/vocab/v01/services/fts#search> { fts:config"
        ' fts:endpoint "$endpoint" ; fts:queryType "simple_query_string" ; fts:field $labels ;'
        " fts:query $text ; fts:return ?v } ?v ?p ?label",
        "fts: <http://aws.amazon.com/neptune/vocab/v01/services/fts#>",
        both=" + ",
        either=" | ",
        magic="http://aws.amazon.com/neptune/vocab/v01/services/fts#search",
        form=f"(?P<endpoint>{_URL})",
    ),
    Dialect("generic", "?v ?p ?label FILTER($test)", wildcard_from=0),
)
DIALECTS: dict[str, Dialect] = {dialect.name: dialect for dialect in _ROWS}
"""By name, in the order of probing; ``generic`` (FILTER CONTAINS) fits any engine and reads every label.

Never probed, as they need the site's own names: ``graphdb-connector:INSTANCE/FIELD`` and
``neptune:OPENSEARCH_URL``. Others take a name too: ``graphdb-fts:en`` searches one index only, and
``wikidata:API_URL`` another Wikibase.
"""


def named(dialect: str | Dialect) -> Dialect:
    """The dialect that a person names, as NAME or NAME:ARGUMENT. Raises SettingError."""
    if isinstance(dialect, Dialect):
        return dialect
    name, _, argument = str(dialect).partition(":")
    if name not in DIALECTS:
        raise SettingError(
            f"no dialect named {name!r}", hint=f"choose one of {', '.join(DIALECTS)}"
        )
    dialect = replace(DIALECTS[name], argument=argument or DIALECTS[name].argument)
    _ = dialect.names  # raises where the argument is not of its form
    return dialect
