"""The triple patterns of a SPARQL query, and triple patterns as SPARQL and as triples."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain, count
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from rdflib import RDF, RDFS, XSD, BNode, Literal, URIRef, Variable
from rdflib.paths import AlternativePath, InvPath, MulPath, Path, SequencePath
from rdflib.term import Identifier
from rdflib.util import from_n3

from kgwb.errors import QueryError
from kgwb.kg.base import AnswerKind
from kgwb.kg.sparql import (
    PARSE_ERRORS,
    Token,
    exclusive_parser,
    expand_escapes,
    find_tokens,
    n3,
    parse_query,
    respace,
    tokenize,
    undeclared_prefix_error,
    validate_query,
    walk_nodes,
    word_of,
)
from kgwb.records import frozen
from kgwb.terms import Term, Triples

if TYPE_CHECKING:
    from rdflib.plugins.sparql.parserutils import CompValue

TriplePattern = tuple[str, str, str]
"""A triple pattern: terms in N-Triples form, variables as "?x"."""

RdflibPattern = tuple[Any, Any, Any]
"""A triple, or a triple pattern of rdflib's terms, variables and property paths."""

TRANSLATION_ERRORS = (*PARSE_ERRORS, NotImplementedError, RecursionError)
"""The exceptions for a query that rdflib cannot parse or translate to its algebra."""
LIST_MEMBER = f"<{RDF.rest}>*/<{RDF.first}>"
"""The predicate of a pattern that leads from an rdf:List to its members. In a triple it is rdfs:member."""
PATH_PLACEHOLDER = "path"
"""Stands in a triple pattern in the place of a property path."""
_NEGATION_NODES = ("Builtin_NOTEXISTS", "UnaryNot", "Minus")
"""Nodes of rdflib's algebra for parts of a query that must not match."""
_LOCAL_ESCAPE = re.compile(r"\\(?=.)")
"""The backslash before a sign in the local part of a name."""
_DECIMAL_DIGITS = "770077007700"
"""The digits before the number that stands for a decimal."""
_NUMBERED = re.compile(
    rf'<urn:(?P<iri>\d+):|"(?P<sign>-?){_DECIMAL_DIGITS}(?P<decimal>\d+)"\^\^<{XSD.integer}>'
)
"""An IRI or a decimal that stands for another one, in the analysis of a numbered query."""
_COUNT_IN_SELECT = re.compile(r"^[^{]*\bCOUNT\s*\(", re.IGNORECASE)
_LOGICAL_OPERATORS = {"ConditionalOrExpression": " || ", "ConditionalAndExpression": " && "}
_SPARQL_NAMES = {
    "LeftJoin": "OPTIONAL",
    "Extend": "BIND, AS or an aggregate",
    "AggregateJoin": "an aggregate",
    "ToMultiSet": "VALUES or a query in the query",
    "Filter": "a filter in a group of its own",
}
"""The names in SPARQL of nodes of rdflib's algebra, where those differ."""


@frozen
class QueryAnalysis:
    """The parts of a SELECT or ASK."""

    kind: AnswerKind
    """The kind of answer that the query gives: "boolean" for an ASK, else "count" or "list"."""
    projected_variables: tuple[str, ...]
    """The variables that are selected, or the one that is counted, as "?x"; empty for an ASK."""
    patterns: tuple[TriplePattern, ...]
    """The triple patterns without those of NOT EXISTS and MINUS. Blank nodes are variables here."""
    filters: str
    """The FILTERs of the outermost group, with all prefixed names written out."""
    unsupported_feature: str
    """The first other feature of the query, by its name in SPARQL.

    Empty if it is a conjunctive query, which means that it has nothing else.
    """
    steps: tuple[TriplePattern, ...]
    """All triple patterns, also those of NOT EXISTS and MINUS, with property paths taken apart.

    They tell what the query reads, and are no query: each alternative of a path is a step, and a
    repeated path (p+, p*, p?) is taken once. A node between two steps of a path is "?.1", "?.2" and
    so on.
    """


@lru_cache(maxsize=128)
def analyze_query(sparql: str) -> QueryAnalysis:
    """Return the parts of a SELECT or ASK: kind, variables, triple patterns, filters and so on.

    ``unsupported_feature`` names the first thing besides triple patterns and filters, else it is
    "". Queries that differ only in IRIs and decimals are analyzed once, and then answered from a cache. Raises
    QueryRefusedError for an update, and QueryError for a query that has another form, does not
    parse, or uses a prefix without a declaration.
    """
    query = validate_query(sparql, "select", "ask")
    if query.undeclared_prefixes:
        raise undeclared_prefix_error(query.undeclared_prefixes)
    numbered_text, numbered = _number_terms(query.text)

    def restore(text: str) -> str:
        """Return a part of the analysis with the IRIs and decimals of the query for their numbers."""
        if not numbered:
            return text
        return _NUMBERED.sub(lambda match: _numbered_term(match, numbered), text)

    try:
        analysis = _analyze_text(numbered_text)
    except QueryError:  # an apparent IRI may be a comparison by "<" and ">"
        return _analyze_text(query.text)
    patterns = dict.fromkeys(_map_terms(restore, pattern) for pattern in analysis.patterns)
    steps = dict.fromkeys(_map_terms(restore, step) for step in analysis.steps)
    filters = restore(analysis.filters)
    return replace(analysis, patterns=tuple(patterns), filters=filters, steps=tuple(steps))


def _number_terms(query: str) -> tuple[str, list[str]]:
    """Return a query with a number for each IRI and decimal, and the list of these.

    The cache then answers for all queries that differ only in them. The text is one that rdflib can
    read: it is spaced as in ``respace``, decimals are integers, since rdflib reads no negative ones,
    and names and the codepoint escapes of strings are written out, since it does not read the escapes
    in names, and takes "\\u0061bcde" for one escape of eight digits. An IRI "<urn:N:>" ends in
    ":", because what a prefix stands for is followed by a local part.
    """
    numbered: list[str] = []
    namespaces: dict[str, str] = {}
    base = None
    texts: dict[Token, str] = {}
    tokens = tokenize(query).tokens
    if _DECIMAL_DIGITS in query or _NUMBERED.search(query):
        return respace(tokens, itemgetter(0)), []
    before = before_last = tokens[0]
    for token in tokens:
        text = token[0]
        if token["iri"]:
            namespace = f"urn:{len(numbered)}:"
            text = f"<{namespace}>"
            iri = str(URIRef(expand_escapes(token[0][1:-1]), base))
            numbered.append(iri)
            if word_of(before) == "BASE":
                base = iri
            if before_last[0].upper() == "PREFIX":
                namespaces[before["prefix"]] = namespace
        elif token["string"]:
            text = expand_escapes(text)
        elif token["decimal"]:
            text = f"{_DECIMAL_DIGITS}{len(numbered)}"
            numbered.append(token[0])
        elif token["prefix"] in namespaces:
            _, _, local = text.partition(":")
            text = f"<{namespaces[token['prefix']]}{_LOCAL_ESCAPE.sub('', local)}>"
        texts[token] = text
        before_last, before = before, token
    return respace(tokens, texts.__getitem__), numbered


def _numbered_term(match: re.Match[str], numbered: Sequence[str]) -> str:
    """Return the beginning of an IRI, or a decimal with its sign, for a match of ``_NUMBERED``."""
    if match["iri"]:
        return f"<{numbered[int(match['iri'])]}"
    decimal = numbered[int(match["decimal"])]
    return n3(Literal(match["sign"] + decimal, datatype=XSD.decimal))


def find_iris(query: str, prefixes: Mapping[str, str]) -> set[URIRef]:
    """Return the IRIs in a query, in full or as prefixed names, without those of declarations.

    A prefix means what the query declares it for, else its namespace in ``prefixes``; names with
    other prefixes are left out. The query need not be valid: what is no token in it is left out.
    """
    namespaces = dict(prefixes)
    iris = set()
    before = before_last = ""
    for token in find_tokens(query):
        text = token[0]
        is_declared = before.upper() in ("PREFIX", "BASE")
        if token["iri"] and before_last.upper() == "PREFIX":
            namespaces[before[:-1]] = text[1:-1]
        elif token["iri"] and not is_declared:
            iris.add(URIRef(expand_escapes(text[1:-1])))
        elif token["prefix"] in namespaces and not is_declared:
            _, _, local = text.partition(":")
            iris.add(URIRef(namespaces[token["prefix"]] + _LOCAL_ESCAPE.sub("", local)))
        before_last, before = before, text
    return iris


def extract_patterns(sparql: str) -> tuple[tuple[TriplePattern, ...], str]:
    """Return the triple patterns and the filters of a conjunctive SELECT or ASK.

    Raises QueryError for a query that has something else besides, or no triple pattern, and the
    errors of ``analyze_query``.
    """
    analysis = analyze_query(sparql)
    if analysis.unsupported_feature:
        raise QueryError(
            f"the query holds {analysis.unsupported_feature}",
            hint="use triple patterns and FILTERs only; other queries can be run, but not be taken apart",
        )
    if not analysis.patterns:
        raise QueryError(
            "the query has no triple pattern",
            hint="write at least one, such as WHERE { ?film ?p ?o }",
        )
    return analysis.patterns, analysis.filters


@lru_cache(maxsize=1024)
def _analyze_text(sparql: str) -> QueryAnalysis:
    """Return the parts of a SELECT or ASK that passed the gate, from a cache of 1,024 texts.

    The patterns stand once each, in the order of the query. A pattern in FILTER NOT EXISTS, or on
    the right of MINUS, is left out. A property path in a pattern becomes PATH_PLACEHOLDER and
    counts as an unsupported feature.

    Raises QueryError if rdflib rejects the query.
    """
    try:
        with exclusive_parser():
            algebra = translate_query(sparql)
            filters, unsupported_feature = _split_conjunction(algebra.p)
    except TRANSLATION_ERRORS as error:
        hint = "correct the query, or write it in a simpler form"
        raise QueryError(f"rdflib cannot parse the query: {error}", hint=hint) from error

    nodes = list(walk_nodes(algebra, _NEGATION_NODES))
    triples = []
    for node in nodes:
        if node.name == "BGP":
            triples += node.triples
    if any(isinstance(predicate, Path) for _, predicate, _ in triples):
        unsupported_feature = unsupported_feature or "a property path"
    patterns = dict.fromkeys(_map_terms(_term_to_pattern_text, triple) for triple in triples)
    kind, variables = _find_projection(sparql, algebra, nodes)
    steps = _take_paths_apart(_all_triples_in(algebra))
    return QueryAnalysis(
        kind, variables, tuple(patterns), filters, unsupported_feature, tuple(steps)
    )


def _all_triples_in(algebra: CompValue) -> Iterator[RdflibPattern]:
    """Yield the triple patterns of rdflib's algebra, also those of EXISTS and NOT EXISTS.

    These two keep the form of the parser, which has the terms of several patterns in one list, and
    paths that are not translated everywhere.
    """
    from rdflib.plugins.sparql.algebra import translatePath, traverse

    for node in walk_nodes(algebra):
        if node.name == "BGP":
            yield from node.triples
        elif node.name == "TriplesBlock":
            for terms in traverse(node.triples, visitPost=translatePath):
                yield from zip(terms[::3], terms[1::3], terms[2::3], strict=True)


def _take_paths_apart(triples: Iterable[RdflibPattern]) -> dict[TriplePattern, None]:
    """Return triple patterns with each path replaced by its steps, see ``QueryAnalysis.steps``."""
    numbers = count(1)
    steps: dict[TriplePattern, None] = {}
    for triple in triples:
        for step in _steps_of(*triple, numbers):
            pattern = _map_terms(_term_to_pattern_text, step)
            steps[pattern] = None
    return steps


def _steps_of(
    subject: Any, predicate: Any, object_: Any, numbers: Iterator[int]
) -> Iterator[RdflibPattern]:
    """Yield the steps of one triple pattern: itself, or those of its path.

    A negated set of predicates is left as it is. A node between two steps is a variable with the
    next of ``numbers``.
    """
    if isinstance(predicate, InvPath):
        yield from _steps_of(object_, predicate.arg, subject, numbers)
    elif isinstance(predicate, MulPath):
        yield from _steps_of(subject, predicate.path, object_, numbers)
    elif isinstance(predicate, AlternativePath):
        for alternative in predicate.args:
            yield from _steps_of(subject, alternative, object_, numbers)
    elif isinstance(predicate, SequencePath):
        *before, last = predicate.args
        start = subject
        for part in before:
            end = Variable(f".{next(numbers)}")
            yield from _steps_of(start, part, end, numbers)
            start = end
        yield from _steps_of(start, last, object_, numbers)
    else:
        yield subject, predicate, object_


def _find_projection(
    sparql: str, algebra: CompValue, nodes: Iterable[CompValue]
) -> tuple[AnswerKind, tuple[str, ...]]:
    """Return the kind of answer of a query, and the variables that the answer is about.

    An ASK is "boolean" and has no variables. A SELECT with a COUNT is "count", with the variable
    inside of its first COUNT. Any other SELECT is "list", with its selected variables. A variable
    is written "?name".
    """
    if algebra.name == "AskQuery":
        return "boolean", ()
    if _COUNT_IN_SELECT.search(sparql):
        for node in nodes:
            if node.name == "Aggregate_Count":
                return "count", (f"?{node.vars}",)
    return "list", tuple(map(Variable.n3, algebra.PV))


def translate_query(sparql: str) -> CompValue:
    """Return rdflib's algebra of a query, with blank nodes numbered "_1", "_2" in their order.

    The parser gives them random names, which would differ each time the query is translated. The
    caller must hold ``exclusive_parser``. Raises one of TRANSLATION_ERRORS.
    """
    from rdflib.plugins.sparql.algebra import translateQuery, traverse
    from rdflib.plugins.sparql.sparql import SPARQLError

    numbered: dict[BNode, BNode] = {}

    def number_blank_node(node: Any) -> BNode | None:
        """Return the numbered blank node for one of the query; None for any other node.

        None makes rdflib leave the node as it is.
        """
        if not isinstance(node, BNode):
            return None
        return numbered.setdefault(node, BNode(f"_{len(numbered) + 1}"))

    tree = parse_query(sparql)
    tree = traverse(tree, visitPost=number_blank_node)
    try:
        algebra: CompValue = translateQuery(tree).algebra
        return algebra
    except SPARQLError as error:
        raise ValueError(str(error)) from error


def _split_conjunction(node: CompValue) -> tuple[str, str]:
    """Return the filters of a conjunctive query as SPARQL, and the first unsupported feature.

    A conjunctive query has only triple patterns, filters of the outermost group, DISTINCT, ORDER BY
    and LIMIT. Its feature is "", and each filter is written "FILTER(...) ". For any other query the
    filters are "", and the feature is the name in SPARQL of the first other part, such as
    "OPTIONAL".
    """
    filters = ""
    try:
        while node.name in ("Project", "Distinct", "Reduced", "OrderBy", "Slice", "Filter"):
            if node.name == "Filter":
                expression = _expression_to_sparql(node.expr)
                filters += f"FILTER({expression}) "
            node = node.p
    except NotImplementedError as error:
        return "", str(error)
    pending = deque([node])
    while pending:
        part = pending.popleft()
        if part.name == "Join":
            pending += [part.p1, part.p2]
        elif part.name != "BGP":
            return "", _SPARQL_NAMES.get(part.name, part.name.upper())
    return filters, ""


def _term_to_pattern_text(term: Any) -> str:
    """Return a term of rdflib's algebra in the form that a TriplePattern has.

    That is "?name" for a variable and for a blank node, PATH_PLACEHOLDER for a path, and SPARQL for
    an IRI or a literal.
    """
    if isinstance(term, Variable | BNode):  # a blank node of a query is a variable without a name
        return f"?{term}"
    if isinstance(term, Path):
        return PATH_PLACEHOLDER
    return n3(term)


def _expression_to_sparql(node: Any) -> str:
    """Return an expression of rdflib's algebra as SPARQL.

    Terms, "&&" and "||", "!", comparisons, IN, and built-in functions can be written. Raises
    NotImplementedError, with the name of the feature, for EXISTS, arithmetic, and functions that
    are not part of SPARQL.
    """
    if isinstance(node, Identifier):
        return _term_to_pattern_text(node)
    name: str = node.name.removeprefix("Builtin_")
    if name in _LOGICAL_OPERATORS:
        operator = _LOGICAL_OPERATORS[name]
        operands = map(_expression_to_sparql, (node.expr, *node.other))
        return f"({operator.join(operands)})"
    if name == "UnaryNot":
        return f"!({_expression_to_sparql(node.expr)})"
    if name == "RelationalExpression":
        left = _expression_to_sparql(node.expr)
        if isinstance(node.other, list):  # of IN or NOT IN
            right = _arguments_to_sparql(node.other)
        else:
            right = _expression_to_sparql(node.other)
        return f"({left} {node.op} {right})"
    if name.endswith("EXISTS"):
        raise NotImplementedError("EXISTS")
    if name == node.name:
        raise NotImplementedError("arithmetic or a foreign function")
    arguments = [value for key, value in node.items() if key != "_vars"]
    return name + _arguments_to_sparql(arguments)


def _arguments_to_sparql(arguments: Iterable[Any]) -> str:
    """Return the arguments of a function, or the list of IN, in parentheses.

    rdflib's algebra holds the arguments of some functions as one list.
    """
    texts: list[str] = []
    for argument in arguments:
        if isinstance(argument, list):
            texts += map(_expression_to_sparql, argument)
        else:
            texts.append(_expression_to_sparql(argument))
    listed = ", ".join(texts)
    return f"({listed})"


# Triple patterns


def patterns_to_sparql(patterns: Iterable[TriplePattern]) -> str:
    """Return triple patterns as SPARQL in one line, each with a period after it.

    Without patterns the text is empty.
    """
    lines = []
    for subject, predicate, object_ in patterns:
        lines.append(f"{subject} {predicate} {object_} .")
    return " ".join(lines)


def patterns_and_filters_to_sparql(patterns: Iterable[TriplePattern], filters: str) -> str:
    """Return triple patterns and then the filters as the inside of a WHERE clause, in one line.

    All filters are left out if they name a variable that is not in the patterns. Such a variable is
    unbound, so the filter would be an error and no row would pass.
    """
    patterns = list(patterns)
    filtered_variables = set(re.findall(r"\?\w+", filters))
    if not filtered_variables.issubset(variables_of(patterns)):
        filters = ""
    return f"{patterns_to_sparql(patterns)} {filters}"


def variables_of(patterns: Iterable[TriplePattern]) -> tuple[str, ...]:
    """Return the distinct variables of triple patterns ("?x"), in order of appearance."""
    terms = dict.fromkeys(chain.from_iterable(patterns))
    return tuple(term for term in terms if term.startswith("?"))


def term_from_text(text: str) -> Term:
    """Return the RDF term for its N-Triples form, rdfs:member for LIST_MEMBER; else a literal of the text."""
    if text == LIST_MEMBER:
        return RDFS.member
    if text.startswith("<"):
        return URIRef(text[1:-1])
    term: Any = from_n3(text)
    if isinstance(term, URIRef | Literal):
        return term
    return Literal(text)


def instantiate_patterns(patterns: Iterable[TriplePattern], binding: Mapping[str, Any]) -> Triples:
    """Return the triples that patterns become when each variable ("?x") is replaced by its binding.

    All variables of the patterns must be bound. Other terms become IRIs and literals. The order and
    the number of the patterns stay.
    """

    def instantiate(text: str) -> Any:
        """Return the binding of a variable; for another text, the IRI or literal that it writes."""
        if text in binding:
            return binding[text]
        return term_from_text(text)

    return tuple(_map_terms(instantiate, pattern) for pattern in patterns)


def constants_of(patterns: Iterable[TriplePattern]) -> dict[str, Term]:
    """Return the terms of triple patterns that are no variables, by their texts.

    A binding that has them, too, lets ``instantiate_patterns`` read no text: it takes most of the
    time where the same patterns have many bindings.
    """
    constants = {}
    for text in chain.from_iterable(patterns):
        if not text.startswith("?"):
            constants[text] = term_from_text(text)
    return constants


def _map_terms(function: Callable[[Any], Any], triple: RdflibPattern) -> RdflibPattern:
    """Return a triple, or a pattern, with the function applied to each of its terms."""
    subject, predicate, object_ = map(function, triple)
    return subject, predicate, object_
