"""RDF terms: their types, their JSON form, and their text.

Terms are rdflib terms everywhere in kgwb. Their JSON form is that of SPARQL 1.1 Query Results JSON.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from numbers import Number
from typing import Annotated, Any, TypeAlias, TypeVar
from unicodedata import normalize
from urllib.parse import unquote

import rdflib
from pydantic import PlainSerializer, PlainValidator
from rdflib import RDF, XSD, BNode, Literal, URIRef

from kgwb.text import look_of, shorten

KNOWN_PREFIXES = {str(namespace): prefix for prefix, namespace in rdflib.Graph().namespaces()} | {
    "http://schema.org/": "schema",
    "http://dbpedia.org/resource/": "dbr",
    "http://dbpedia.org/ontology/": "dbo",
    "http://dbpedia.org/property/": "dbp",
    "http://www.wikidata.org/entity/": "wd",
    "http://www.wikidata.org/prop/direct/": "wdt",
}
"""The usual prefixes of well-known namespaces, by namespace."""
MAX_PREFIX_CHARS = 12
"""The length of a prefix that is made from a namespace."""
# rdflib looks an attribute of a namespace up in three classes, which takes as long as to make a literal.
_STRING_DATATYPE = str(XSD.string)
_PARSED_DATATYPES = frozenset((RDF.XMLLiteral, RDF.HTML))
"""Datatypes of which rdflib parses a literal when it is made."""
NAMELESS = "a node without a name"
"""What is shown of a blank node of which nothing else is known."""
_NUMBER = re.compile(r"[+-]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
"""A number as values are compared. NUMBER is what a person takes for one."""
_SHORTEST_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]*[1-9])?")
_TRUTH_VALUES = {"1": "true", "0": "false"}
_DATE_OR_DATETIME = re.compile(
    r"(-?[0-9]{4,}-[0-9]{2}-[0-9]{2})(T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?)?(Z|[+-][0-9]{2}:[0-9]{2})?"
)
_MIDNIGHT = re.compile(r"T00:00:00(?:\.0+)?")
CAMEL_CASE_BOUNDARY = re.compile(
    r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[a-z])(?=(?:1[5-9]|20)\d\d(?![^\W_]))"
)
"""Where a word begins in "directedBy" and in "isPartOfUSState", and a year in "SpringOpen2023"."""


def term_to_data(term: URIRef | Literal | BNode) -> dict[str, str]:
    """Return the JSON form of a term (SPARQL 1.1 Query Results JSON, section 3.2.2).

    It has "type" ("uri", "bnode" or "literal") and "value", and of a literal "xml:lang" or else
    "datatype", if it has one.
    """
    if isinstance(term, URIRef):  # as most terms
        return {"type": "uri", "value": str(term)}
    if isinstance(term, BNode):
        return {"type": "bnode", "value": str(term)}
    data = {"type": "literal", "value": str(term)}
    if term.language:
        data["xml:lang"] = term.language
    elif term.datatype:
        data["datatype"] = str(term.datatype)
    return data


def term_from_data(data: Any) -> URIRef | Literal | BNode:
    """Return the term that JSON data describes (see ``term_to_data``); an rdflib term as it is.

    The type "typed-literal" of SPARQL 1.0 is read, too. Raises ValueError for anything else.
    """
    if isinstance(data, URIRef | Literal | BNode):
        return data
    value = None
    if isinstance(data, Mapping):
        value = data.get("value")
    if not isinstance(value, str):
        raise ValueError(f"not an RDF term: {data!r}")
    match data.get("type"):
        case "uri":
            return URIRef(value)
        case "bnode":
            return BNode(value)
        case "literal" | "typed-literal":
            datatype = data.get("datatype") or ""
            language = data.get("xml:lang") or ""
            return make_literal(value, datatype, language)
    raise ValueError(f"not an RDF term: {data!r}")


def make_literal(lexical_form: str, datatype: str = "", language: str = "") -> Literal:
    """Return a literal with exactly this lexical form, which rdflib would normalize by default.

    A datatype is ignored beside a language, and xsd:string is the same as none. Raises ValueError
    for an invalid datatype or language tag.
    """
    datatype_iri = None
    has_datatype = datatype and datatype != _STRING_DATATYPE
    if has_datatype and not language:
        datatype_iri = _iri_from_data(datatype)
    if datatype_iri in _PARSED_DATATYPES:
        # rdflib parses these when they are made, and 1 MB of text takes 200 MB of memory.
        # So the literal is made as plain text, and gets its datatype afterwards.
        literal = Literal(lexical_form)
        literal.__setstate__((None, {"language": None, "datatype": datatype_iri}))
        return literal
    return Literal(
        lexical_form, lang=str(language or "") or None, datatype=datatype_iri, normalize=False
    )


def _iri_from_data(data: object) -> URIRef:
    """Return a text as an IRI. Raises ValueError for anything but a text."""
    if not isinstance(data, str):
        raise ValueError(f"not an IRI: {data!r}")
    return URIRef(data)


NUMBER = r"[+-]?\d+(?:[,'’\u00a0\u2009\u202f]\d{3})*(?:\.\d+)?(?:[eE][+-]?\d+)?"
NUMBER_TEXT = re.compile(NUMBER)
"""A text that is a number, perhaps with commas, apostrophes or narrow spaces between thousands."""
QUANTITY_TEXT = re.compile(rf"\s*{NUMBER}\s*([^\W\d].*)")
"""A text that begins with a number, and what is behind it: "rooms" of "12 rooms"."""
MIN_NOUN_CHARS = 3
"""Letters that a noun and its plural begin with."""
_W3C = "http://www.w3.org/"


def is_number(term: object) -> bool:
    """Return whether a term is a literal whose value is a number, or that is written like one.

    Graphs made of tables often have numbers without a datatype, or "1,200" as an integer. A
    datatype may also be a unit, as in DBpedia. Truth values and dates are not numbers.
    """
    if not isinstance(term, Literal):
        return False
    value = term.value
    if value is None or isinstance(value, str):
        return NUMBER_TEXT.fullmatch(term.strip()) is not None
    return isinstance(value, Number) and not isinstance(value, bool)


def is_amount(term: Term, question: str) -> bool:
    """Return whether a term is the number that a question asks for, perhaps with what it counts.

    "12 rooms" is one for "How many rooms has it?", but "12 Monkeys" is none for "How many films
    ...?". With a datatype, as in "12.5 km2"^^cdt:area, what stands behind the number is a unit.
    """
    if is_number(term):
        return True
    quantity = QUANTITY_TEXT.fullmatch(str(term))
    if not isinstance(term, Literal) or quantity is None:
        return False
    if unit_datatype(term):
        return True
    asked = question.casefold().split()
    for word in quantity[1].casefold().split():
        beginning = word[:-1] if word.endswith("s") else word
        is_noun = len(beginning) >= MIN_NOUN_CHARS
        if is_noun and any(each.startswith(beginning) for each in asked):
            return True
    return False


def unit_datatype(term: object) -> str:
    """Return the datatype of a literal that may be a unit: one that no W3C standard has; else ""."""
    datatype = term.datatype if isinstance(term, Literal) else None
    if datatype is None or datatype.startswith(_W3C):
        return ""
    return str(datatype)


Term: TypeAlias = Annotated[
    URIRef | Literal | BNode,
    PlainValidator(term_from_data),
    PlainSerializer(term_to_data, when_used="json"),
]
Iri: TypeAlias = Annotated[
    URIRef, PlainValidator(_iri_from_data), PlainSerializer(str, when_used="json")
]
Triple: TypeAlias = tuple[Term, Iri, Term]
Triples: TypeAlias = tuple[Triple, ...]
DisplayNames: TypeAlias = Mapping[str, str]
"""Display names by IRI. For an IRI that has none, ``name_from_iri`` makes one."""


def value_of_text(text: str) -> Hashable:
    """Return the value that a text stands for: texts of one value are equal, however it is written.

    - A number is its numeric value: "3999", "3999.0" and "+3.999E3" are equal. With leading zeros
      it is a code and stays text ("007").
    - A dateTime at midnight is its date, because Wikidata and DBpedia write dates like that. Any
      other dateTime is its moment in UTC; without a time zone it is taken to be in UTC. The time
      zone of a date is dropped.
    - Anything else is its text in Unicode's form NFC. Letter case counts.
    """
    if _NUMBER.fullmatch(text):
        return Decimal(text)
    moment = _DATE_OR_DATETIME.fullmatch(text)
    if moment:
        day, time, zone = moment.groups()
        if time is None or _MIDNIGHT.fullmatch(time):
            return str(day)
        if not zone:
            text += "Z"
        return _in_utc(text)
    return normalize("NFC", text)


def _in_utc(text: str) -> str:
    """Return a dateTime in UTC, or unchanged if Python's calendar lacks its year."""
    try:
        return datetime.fromisoformat(text).astimezone(UTC).isoformat()
    except (ValueError, OverflowError):
        return text


def value_of_term(term: Term) -> Hashable:
    """Return what makes a term one value with others: an IRI or a blank node itself, the value of a literal.

    The language does not count, nor does a datatype that is no unit, but that a number or a truth
    value may be written in several ways: "0100"^^xsd:integer is 100, and "1"^^xsd:boolean is true.
    A text is a number only if it is written in the shortest way: "7" is one value with 7 and 7.0,
    and the text "7.0" is another. A dateTime with a time zone is its moment.
    """
    if not isinstance(term, Literal):
        return term
    text = str(term)
    value = term.value
    if isinstance(value, str) and not _SHORTEST_NUMBER.fullmatch(text):
        return normalize("NFC", text), ""
    if isinstance(value, bool):
        text = _TRUTH_VALUES.get(text, text)
    elif isinstance(value, Number):
        text = str(value)
    elif isinstance(value, datetime) and value.utcoffset():
        text = _in_utc(text)
    return value_of_text(text), unit_datatype(term)


def split_iri(iri: str) -> tuple[str, str]:
    """Return the namespace of an IRI, up to its last "/" or "#", and the local part after it.

    The namespace is "" if the IRI has neither.
    """
    slash = iri.rfind("/")
    number_sign = iri.rfind("#")
    end = max(slash, number_sign) + 1
    return iri[:end], iri[end:]


def local_part(iri: str) -> str:
    """Return the part of an IRI after its namespace."""
    _, local = split_iri(iri)
    return local


def last_part(iri: str) -> str:
    """Return what stands behind the last "/", "#" or ":" of an IRI, those at its end left out."""
    without_end = iri.rstrip("/#:")
    return re.split(r"[/#:]", without_end)[-1]


def name_from_iri(iri: str) -> str:
    """Return the last part of an IRI as words: "directed by" for ".../directedBy".

    "_", "-", camel case and a year behind letters separate words. Words are written in lower case,
    unless the first letter of the part is a capital, or all letters of the word are. The IRI is
    returned if it has no such part.
    """
    tail = last_part(iri)
    separated = CAMEL_CASE_BOUNDARY.sub(" ", unquote(tail))
    words = re.sub("[_-]", " ", separated).split()
    if tail[:1].islower():
        words = [word if word.isupper() else word.lower() for word in words]
    return " ".join(words) or iri


def choose_prefix(namespace: str, taken: Collection[str] = ()) -> str:
    """Return a prefix for a namespace that is not among the prefixes taken.

    It is the usual prefix of a well-known namespace, else the last word of the namespace in lower
    case, or "ns". An "x" is added as often as needed.
    """
    prefix = KNOWN_PREFIXES.get(namespace)
    if not prefix:
        without_scheme = re.sub(r"^\w+:/*", "", namespace)
        words = re.findall(r"[A-Za-z][A-Za-z0-9]*", without_scheme)
        prefix = "ns"
        if words:
            prefix = words[-1].lower()[:MAX_PREFIX_CHARS]
    while prefix in taken:
        prefix += "x"
    return prefix


def format_term(term: Term, names: DisplayNames) -> str:
    """Return the display name of an IRI or a blank node, or the text of a literal, shortened.

    The name of an IRI that is not in ``names`` is made from the IRI. The name of a blank node
    stands under ``node_key``; without one it is NAMELESS.
    """
    text = str(term)
    if isinstance(term, URIRef):
        text = names.get(text) or name_from_iri(text)
    elif isinstance(term, BNode):
        text = names.get(node_key(term)) or NAMELESS
    return shorten(text)


def node_key(node: BNode) -> str:
    """Return what a blank node's display name stands under, among those of IRIs: "_:b1"."""
    return f"_:{node}"


def describe_term(term: Term) -> str:
    """Return what tells a term from others of its name.

    That is the IRI, or the language or datatype of a literal ("text" for none), and NAMELESS for a
    blank node. A literal whose text may look like another one has its text in ASCII as well.
    """
    if isinstance(term, BNode):
        return NAMELESS
    if not isinstance(term, Literal):
        return str(term)
    literal_type = str(term.language or term.datatype or "text")
    text = str(term)
    if text.isascii() and look_of(text) == text:
        return literal_type
    return f"{literal_type}, {shorten(ascii(text))}"


def format_triple(triple: Triple, names: DisplayNames) -> str:
    """Return a triple by its names: "Arrival — director → Denis Villeneuve"."""
    subject, predicate, object_ = (format_term(term, names) for term in triple)
    return f"{subject} — {predicate} → {object_}"


Node = TypeVar("Node", bound=Hashable)
Item = TypeVar("Item")


def split_into_batches(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    """Yield the items in order, in sequences of at most ``size`` items."""
    for start in range(0, len(items), size):
        yield items[start : start + size]


def find_reached(starts: Iterable[Node], edges: Mapping[Node, Collection[Node]]) -> set[Node]:
    """Return some things with all that edges lead to from them, at any distance."""
    found = set(starts)
    waiting = list(found)
    while waiting:
        reached = set(edges.get(waiting.pop(), ())) - found
        found |= reached
        waiting += reached
    return found
