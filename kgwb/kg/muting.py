"""Muting: asking a graph as if it did not have some triples. The query changes, the graph does not.

Each triple pattern that could match a muted triple gets a FILTER in its own group. Because of this,
the same rule holds inside OPTIONAL, UNION, MINUS, EXISTS and subqueries, and below aggregates.
Blank nodes and property paths have no variable that a FILTER could use, so their block of patterns
is rewritten as a subquery with new variables. The subquery selects only the variables of the block.
A block without variables selects a constant; where that would be a column of a ``SELECT *``, the
star becomes the list of the variables.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any

import pyoxigraph as ox
from rdflib import XSD, BNode, Literal, URIRef, Variable
from rdflib.paths import AlternativePath, InvPath, MulPath, NegatedPath, Path, SequencePath
from rdflib.plugins.sparql.parser import parseQuery

from kgwb.errors import QueryError
from kgwb.kg.algebra import TRANSLATION_ERRORS, RdflibPattern, translate_query
from kgwb.kg.sparql import (
    PARSE_ERRORS,
    Token,
    ValidatedQuery,
    exclusive_parser,
    n3,
    string_literal,
    tokenize,
    undeclared_prefix_error,
    union_clause,
    validate_query,
    walk_nodes,
)
from kgwb.terms import Term, Triple, Triples

_NUMERIC_DATATYPES = {XSD.integer, XSD.decimal, XSD.double, XSD.float}
_PATTERN_KEYWORDS = {"A", "TRUE", "FALSE"}
"""The only words that can stand in triple patterns."""
_OPENING_KEYWORDS = {"CONSTRUCT", "WHERE", "VALUES", "SERVICE", "GRAPH", "FILTER", "BIND"}
"""Words that determine the kind of the next bracket."""
_PATH_HINT = "use / | ^ instead of * + ? ! in it"
_REWRITE_HINT = "simplify the query, or unmute the triple"


def add_muted(muted: Triples, triples: Sequence[Triple]) -> Triples:
    """Return the muted triples and the given ones, each once.

    Raises QueryError for a value that is not a triple of RDF terms, and for a triple that cannot
    stand in a query, such as one with a blank node.
    """
    for triple in triples:
        are_terms = all(isinstance(term, URIRef | BNode | Literal) for term in triple)
        if not are_terms:
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
    all_triples = (*muted, *triples)
    distinct_triples = dict.fromkeys(all_triples)
    return tuple(distinct_triples)


@lru_cache(maxsize=1024)
def rewrite_without(
    query: str,
    triples: Triples,
    *,
    has_distinct_paths: bool = False,
    lost_nodes: frozenset[Term] | None = None,
) -> str:
    """Return a query whose result is that of ``query`` on the graph without some triples.

    ``query`` is returned as it is if none of its patterns could match one of the triples. Otherwise
    FILTERs and subqueries are added. A SERVICE clause asks another graph and stays as it is.

    ``has_distinct_paths`` says that the engine finds each pair of nodes once on a path with "|", as
    Oxigraph does. By the SPARQL standard it finds a pair once on each of its ways. ``lost_nodes``
    are the subjects and objects that the graph has only in those triples. None means unknown: then
    all their subjects and objects may be such nodes.

    Raises the errors of ``validate_query``, and QueryError if a pattern uses a prefix without a
    declaration, or if the query cannot be rewritten. That is a DESCRIBE; a path with * + ? or !
    over the predicate of such a triple; a path that may match
    a lost node with itself, as ``?x :p* ?y`` does; a blank node that stands in several groups; and
    ``SELECT *`` where a group of patterns has blank nodes or paths but no variable, if no other
    group has a variable, or if there is a SERVICE.
    """
    if not triples:
        return query
    if lost_nodes is None:
        lost_nodes = nodes_of(triples)
    validated = validate_query(query, allow_service=True)
    if validated.form == "describe":
        raise _cannot_mute_error("what DESCRIBE gives is the engine's choice", "use CONSTRUCT")
    text = validated.text
    tokens = tokenize(text).tokens
    form_start, form_end = _span_of_word(tokens, validated.form)
    prologue = text[:form_start]
    blocks = _find_triples_blocks(tokens)
    _check_prefixes(tokens, blocks, validated.undeclared_prefixes)
    replacements = []
    has_constant_column = False
    pattern_count = 0
    for start, end in blocks:
        block_text = text[start:end]
        patterns = _parse_patterns(prologue, block_text.strip(" \n\t."))
        pattern_count += len(patterns)
        block = _TriplesBlock(
            patterns,
            triples,
            query=text,
            outside=text[:start] + text[end:],
            has_distinct_paths=has_distinct_paths,
            lost_nodes=lost_nodes,
        )
        replacement = block.rewrite(block_text)
        replacements.append((start, end, replacement))
        has_constant_column |= block.has_constant_column
    if pattern_count != _count_patterns(validated):  # a check on _find_triples_blocks
        raise _cannot_mute_error("its groups are not clear", 'write spaces around "<" and ">"')
    if has_constant_column:
        replacements += _expand_stars(prologue, text, tokens)

    rewritten = _replace_parts(text, replacements)
    if rewritten == text:
        return query
    after_form = text[form_end:].lstrip()
    has_template = after_form.startswith("{")
    if validated.form == "construct" and not has_template:
        # CONSTRUCT WHERE { ... } allows no FILTER. Its block, the only one, becomes the template.
        start, end = blocks[0]
        template = text[start:end]
        return f"{rewritten[:form_end]} {{ {template} }} {rewritten[form_end:]}"
    return rewritten


def _check_prefixes(
    tokens: Iterable[Token], blocks: Sequence[tuple[int, int]], undeclared: Sequence[str]
) -> None:
    """Raise QueryError if a pattern uses one of the undeclared prefixes, as rdflib cannot read it.

    ``blocks`` are the start and end of each block of patterns. An endpoint may know prefixes of its
    own, so elsewhere in the query they are no error.
    """
    if not undeclared:
        return
    used = []
    for token in tokens:
        if token.lastgroup != "name" or token["prefix"] not in undeclared:
            continue
        if any(start <= token.start() < end for start, end in blocks):
            used.append(token["prefix"])
    if used:
        raise undeclared_prefix_error(list(dict.fromkeys(used)))


def _span_of_word(tokens: Iterable[Token], word: str) -> tuple[int, int]:
    """Return where the first token that is a word, in any letter case, begins and ends."""
    for token in tokens:
        if token[0].lower() == word:
            return token.span()
    raise ValueError(f"there is no {word!r}")


def nodes_of(triples: Triples) -> frozenset[Term]:
    """Return the subjects and objects of triples."""
    subjects = {subject for subject, _, _ in triples}
    objects = {object_ for _, _, object_ in triples}
    return frozenset(subjects | objects)


def _count_patterns(query: ValidatedQuery) -> int:
    """Return how many triple patterns rdflib reads in a query, without those inside SERVICE.

    A pattern with a path counts as one.
    """
    with exclusive_parser():
        try:
            tree = parseQuery(query.skeleton)[1]
        except PARSE_ERRORS:  # the skeleton of "a<b" may not parse, see the gate
            tree = parseQuery(query.text)[1]
    total = 0
    for node in walk_nodes(tree, ["ServiceGraphPattern"]):
        if node.name == "TriplesBlock":
            terms = sum(map(len, node.triples))
            total += terms // 3
    return total


def _cannot_mute_error(why: str, hint: str = _REWRITE_HINT) -> QueryError:
    """Return the error for a query that cannot be rewritten, with the reason ``why``."""
    return QueryError(f"a muted triple cannot be kept out of this query: {why}", hint=hint)


def _replace_parts(text: str, replacements: Iterable[tuple[int, int, str]]) -> str:
    """Return a text with some parts replaced, each given by its start, its end and the new text.

    The parts must not overlap; they may be given in any order.
    """
    pieces = []
    position = 0
    for start, end, new_text in sorted(replacements):
        pieces.append(text[position:start])
        pieces.append(new_text)
        position = end
    pieces.append(text[position:])
    return "".join(pieces)


def _expand_stars(prologue: str, text: str, tokens: Sequence[Token]) -> list[tuple[int, int, str]]:
    """Return what replaces the "*" of each ``SELECT *``: start, end, and the selected variables.

    The variables are written "?a ?b". A ``COUNT(*)`` stays as it is. Raises QueryError for a
    ``SELECT *`` over a group that has no variable.
    """
    stars = []
    previous_words = ("", "")
    for number, token in enumerate(tokens):
        word = token[0].upper()
        is_star = word == "*" and "SELECT" in previous_words
        _, previous_word = previous_words
        previous_words = (previous_word, word)
        if not is_star:
            continue
        start, star_end = token.span()
        end = _find_end_of_select(tokens[number:])
        selected = text[start:end]
        variables = _variables_in_scope(f"{prologue}SELECT {selected}")
        if not variables:
            raise _cannot_mute_error("SELECT * selects no variable", "write a variable in it")
        columns = " ".join(variables)
        stars.append((start, star_end, columns))
    return stars


def _find_end_of_select(tokens: Sequence[Token]) -> int:
    """Return the position in the query's text at which a SELECT ends.

    ``tokens`` are those from its beginning to the end of the query. A subquery ends before the "}"
    that closes the group around it, any other SELECT at the last token.
    """
    depth = 0
    for token in tokens:
        if token[0] == "{":
            depth += 1
        elif token[0] == "}":
            depth -= 1
            if depth < 0:
                return token.start()
    return tokens[-1].end()


def _variables_in_scope(query: str) -> list[str]:
    """Return the variables that the ``SELECT *`` of a query selects, each as "?name".

    Oxigraph parses the query for this, on an empty graph, because rdflib also lists variables that
    stand only in a FILTER. Raises QueryError if Oxigraph cannot parse it, and if it has a SERVICE,
    because Oxigraph could call that.
    """
    if re.search(r"\bSERVICE\b", query, re.IGNORECASE):
        raise _cannot_mute_error("SELECT * stands over a SERVICE")
    try:
        solutions: Any = ox.Store().query(query)
    except SyntaxError as error:
        raise _cannot_mute_error(f"Oxigraph does not read its SELECT * ({error})") from error
    return [str(variable) for variable in solutions.variables]


# Where the triple patterns stand


def _find_triples_blocks(tokens: Sequence[Token]) -> list[tuple[int, int]]:
    """Return the start and end of each block of triple patterns in the text of a query.

    A block is a run of triple patterns with nothing else between them, without the braces around
    it. The blocks come in the order of the query. The template of a CONSTRUCT, the data of VALUES
    and the inside of a SERVICE are not patterns of the graph, and have no blocks.
    """
    blocks = []
    block = []
    # The kind of each open bracket, the innermost last. A clause is a text outside of groups,
    # such as SELECT and ORDER BY. Data are VALUES, the template of a CONSTRUCT, and all inside a
    # SERVICE.
    open_brackets = ["clause"]
    opening_keyword = ""  # the last word of _OPENING_KEYWORDS whose bracket has not come yet
    for token in tokens:
        innermost = open_brackets[-1]
        sign = token[0].upper()
        is_keyword = token.lastgroup == "word" and sign not in _PATTERN_KEYWORDS
        ends_block = opening_keyword or is_keyword or sign in ("{", "}")
        if innermost == "group" and not ends_block:
            block.append(token)
            continue
        if block:
            start = block[0].start()
            end = block[-1].end()
            blocks.append((start, end))
            block = []

        if sign == "{":
            kind = "group"
            if innermost == "data" or opening_keyword in ("CONSTRUCT", "VALUES", "SERVICE"):
                kind = "data"
            open_brackets.append(kind)
            opening_keyword = ""
        elif sign == "(" and innermost != "data":
            open_brackets.append("expression")
            if opening_keyword != "VALUES":  # the braces of VALUES (?x ?y) { ... } follow
                opening_keyword = ""
        elif sign == "}" or (sign == ")" and innermost == "expression"):
            open_brackets.pop()
        elif sign == "SELECT" and innermost == "group":
            open_brackets[-1] = "clause"  # the braces hold a subquery
        elif sign in _OPENING_KEYWORDS:
            opening_keyword = sign
    return blocks


def _parse_patterns(prologue: str, block: str) -> list[RdflibPattern]:
    """Return the triple patterns of a block; none for an empty one.

    ``prologue`` declares the prefixes. A blank node is the same in all patterns of the block.
    Raises QueryError if rdflib rejects it.
    """
    if not block:
        return []
    try:
        with exclusive_parser():
            algebra = translate_query(f"{prologue}SELECT * WHERE {{ {block} }}")
    except TRANSLATION_ERRORS as error:
        start = block[:80]
        raise _cannot_mute_error(f"rdflib does not read {start!r} ({error})") from error
    patterns = []
    for node in walk_nodes(algebra):
        if node.name == "BGP":
            patterns.extend(node.triples)
    return patterns


# How they are rewritten


class _TriplesBlock:
    """A block of triple patterns, and how it is written so that it does not match muted triples."""

    has_constant_column = False
    """Whether the block became a subquery that selects a constant, as it has no variable."""

    def __init__(
        self,
        patterns: Sequence[RdflibPattern],
        muted: Triples,
        *,
        query: str,
        outside: str,
        has_distinct_paths: bool,
        lost_nodes: frozenset[Term],
    ) -> None:
        """``query`` has no new variable yet. ``outside`` is the query without the block."""
        self.patterns = patterns
        self.muted = muted
        self.query = query
        self.outside = outside
        self.has_distinct_paths = has_distinct_paths
        self.lost_nodes = lost_nodes
        self.subjects: set[Any] = set()
        """Variables and blank nodes that are a subject of a triple, so they cannot be literals."""
        for pattern in patterns:
            self.subjects |= _subjects_of(*pattern)
        self._variable_count = 0

    def rewrite(self, text: str) -> str:
        """Return the block as SPARQL that does not match the muted triples.

        ``text`` is the block as it stands in the query. It is unchanged if no pattern could match a
        muted triple. Otherwise FILTERs follow it, or the whole block becomes a subquery if such a
        pattern has a blank node or a path. Raises QueryError for a path that may match a lost node
        with itself, and as ``_rewrite_as_subquery`` does.
        """
        for pattern in self.patterns:
            self._check_empty_path(pattern)
        parts = [text]
        for pattern in self.patterns:
            if self._may_match_muted(pattern):
                if any(isinstance(node, BNode | Path) for node in pattern):
                    return self._rewrite_as_subquery(text)
                parts += self._exclusion_filters(pattern)
        return " ".join(dict.fromkeys(parts))

    def _rewrite_as_subquery(self, text: str) -> str:
        """Return the block as a subquery that has new variables in place of its blank nodes.

        It selects the block's own variables, or the number 1 if there are none;
        ``has_constant_column`` says so then. Raises QueryError if a blank node also stands in
        another group, because it would have to be the same variable there.
        """
        for label in re.findall(r"_:[\w.-]*\w", text):
            whole_label = re.escape(label) + r"\b"
            if re.search(whole_label, self.outside):
                why = f"the blank node {label} stands in several groups"
                raise _cannot_mute_error(why, "write a variable for it")

        new_variables: dict[BNode, Variable] = defaultdict(self._new_variable)
        patterns = []
        for pattern in self.patterns:
            nodes = []
            for node in pattern:
                if isinstance(node, BNode):
                    nodes.append(new_variables[node])
                else:
                    nodes.append(node)
            self.subjects |= _subjects_of(*nodes)
            patterns.append(nodes)
        variables = _columns_of(chain.from_iterable(self.patterns))
        self.has_constant_column = not variables
        columns = variables or self._constant_column()
        lines = [self._rewrite_pattern(*pattern) for pattern in patterns]
        body = " ".join(lines)
        return f"{{ SELECT {columns} WHERE {{ {body} }} }}"

    def _constant_column(self) -> str:
        """Return the expression of a SELECT for the number 1, under a new variable."""
        variable = self._new_variable()
        return f"(1 AS {variable.n3()})"

    def _new_variable(self) -> Variable:
        """Return ?hidden_1, ?hidden_2 and so on: the next name that the query does not have."""
        self._variable_count += 1
        while f"hidden_{self._variable_count}" in self.query:
            self._variable_count += 1
        return Variable(f"hidden_{self._variable_count}")

    def _may_match_muted(self, pattern: RdflibPattern) -> bool:
        """Return whether a pattern could match a muted triple.

        A pattern with a path counts if the path may use the predicate of a muted triple.
        """
        _, predicate, _ = pattern
        if not isinstance(predicate, Path):
            filters = self._exclusion_filters(pattern)
            return bool(filters)
        muted_predicates = {muted for _, muted, _ in self.muted}
        return any(_path_uses(predicate, muted) for muted in muted_predicates)

    def _check_empty_path(self, pattern: RdflibPattern) -> None:
        """Raise QueryError if a path may match a lost node with itself.

        It may if it can be empty, there are lost nodes, and each of its ends is a variable, a blank
        node or a lost node.
        """
        subject, predicate, object_ = pattern
        if not self.lost_nodes or not _may_be_empty(predicate):
            return
        for node in (subject, object_):
            if not isinstance(node, Variable | BNode) and node not in self.lost_nodes:
                return
        why = f"the path {_path_to_sparql(predicate)} may match one of its nodes with itself"
        raise _cannot_mute_error(why, _PATH_HINT)

    def _exclusion_filters(self, pattern: RdflibPattern) -> list[str]:
        """Return a FILTER for each muted triple that a pattern could match.

        It is false where the variables of the pattern have the terms of the triple. A pattern with
        a path has none. For a pattern without variables that is the triple itself, the FILTER is
        always false.
        """
        filters = []
        for triple in self.muted:
            if not all(map(self._can_match, pattern, triple)):
                continue
            conditions = []
            for node, term in zip(pattern, triple, strict=True):
                if isinstance(node, Variable):
                    conditions.append(_equality_condition(node, term))
            is_match = " && ".join(dict.fromkeys(conditions)) or "1 = 1"
            filters.append(f"FILTER(!({is_match}))")
        return filters

    def _can_match(self, node: Any, term: Term) -> bool:
        """Return whether a node of a pattern could match a term of the graph.

        A variable or a blank node could match any term, but not a literal if it is a subject. Two
        literals match if they have the same language and datatype, and the same text or value. A
        path does not match a term.
        """
        if isinstance(node, Variable | BNode):
            return not isinstance(term, Literal) or node not in self.subjects
        if not isinstance(node, Literal) or not isinstance(term, Literal):
            return bool(node == term)
        if node.language != term.language:
            return False
        node_datatype = node.datatype or XSD.string
        term_datatype = term.datatype or XSD.string
        if node_datatype != term_datatype:
            return False
        if str(node) == str(term):
            return True
        return node.value is not None and node.value == term.value

    def _rewrite_pattern(self, subject: Any, predicate: Any, object_: Any) -> str:
        """Return a pattern without blank nodes as SPARQL, followed by its FILTERs.

        A path that may use a muted triple is written out: "^a" as the reversed pattern, "a|b" as a
        UNION, "a/b" as one pattern for each step. Where the engine finds each pair of nodes once on
        a path with "|", the UNION is a SELECT DISTINCT. Raises QueryError for a path with *, +, ?
        or !.
        """
        pattern = (subject, predicate, object_)
        is_path = isinstance(predicate, Path)
        if not is_path or not self._may_match_muted(pattern):
            nodes = map(_node_to_sparql, pattern)
            filters = self._exclusion_filters(pattern)
            return " ".join([*nodes, ".", *filters])
        if isinstance(predicate, InvPath):
            return self._rewrite_pattern(object_, predicate.arg, subject)
        if isinstance(predicate, AlternativePath):
            ways = []
            for way in predicate.args:
                rewritten = self._rewrite_pattern(subject, way, object_)
                ways.append(rewritten)
            union = union_clause(ways)
            if not self.has_distinct_paths:
                return union
            columns = _columns_of([subject, object_])
            if not columns:
                columns = self._constant_column()
            return f"{{ SELECT DISTINCT {columns} WHERE {{ {union} }} }}"
        if isinstance(predicate, SequencePath):
            return self._rewrite_steps(subject, predicate.args, object_)
        why = f"the path {_path_to_sparql(predicate)} leads over its predicate"
        raise _cannot_mute_error(why, _PATH_HINT)

    def _rewrite_steps(self, subject: Any, steps: Sequence[Any], object_: Any) -> str:
        """Return a path "a/b/c" as a pattern for each step, with new variables between them.

        The patterns, each rewritten without the muted triples, are joined by blanks. The new
        variables are noted as subjects where they certainly are.
        """
        between = [self._new_variable() for _ in steps[1:]]
        ends = [*between, object_]
        start = subject
        for step, end in zip(steps, ends, strict=True):
            # Only of the new variables: the path may be one of several ways between the others.
            certain = _subjects_of(start, step, end)
            self.subjects |= certain.intersection(between)
            start = end

        patterns = []
        for step, end in zip(steps, ends, strict=True):
            pattern = self._rewrite_pattern(subject, step, end)
            patterns.append(pattern)
            subject = end
        return " ".join(patterns)


def _columns_of(nodes: Iterable[Any]) -> str:
    """Return the distinct variables among nodes as the columns of a SELECT; "" for none."""
    variables: dict[str, None] = {}
    for node in nodes:
        if isinstance(node, Variable):
            variables[node.n3()] = None
    return " ".join(variables)


def _equality_condition(variable: Variable, term: Term) -> str:
    """Return the SPARQL condition that a variable has a term.

    It is written so that Virtuoso evaluates it correctly too. The term of a literal has the same
    datatype or language as well.
    """
    written = n3(term)
    equals = f"?{variable} = {written}"
    if not isinstance(term, Literal):
        # sameTerm is false in Virtuoso for an IRI that VALUES binds.
        return equals
    is_literal = f"isLiteral(?{variable})"
    if term.language:
        return f"{is_literal} && sameTerm(?{variable}, {written})"
    if not term.datatype:
        # sameTerm is false in Virtuoso for equal texts without a language.
        has_no_language = f'LANG(?{variable}) = ""'
        has_datatype = f"DATATYPE(?{variable}) = {n3(XSD.string)}"
        has_text = f"STR(?{variable}) = {written}"
        return f"{is_literal} && {has_no_language} && {has_datatype} && {has_text}"
    # sameTerm is false in Virtuoso for equal numbers and for equal dates.
    has_text = f"STR(?{variable}) = {string_literal(term)}"
    if term.datatype not in _NUMERIC_DATATYPES:
        equals = has_text
    elif term.value != term.value:  # NaN, which is equal to nothing
        equals = f"?{variable} != ?{variable}"
    else:
        # A number that is too large for the engine, or no number at all, is an error in a
        # comparison. Then the text counts.
        equals = f"COALESCE({equals}, {has_text})"
    datatype = n3(term.datatype)
    has_datatype = f"DATATYPE(?{variable}) = {datatype}"
    return f"{is_literal} && {has_datatype} && {equals}"


def _subjects_of(subject: Any, predicate: Any, object_: Any) -> set[Any]:
    """Return those ends of a pattern that are certainly the subject of a triple.

    An inverse path turns a triple round, so that the object of the pattern is the subject of the
    triple. A path that may be empty says nothing of its ends. An alternative counts if it holds for
    each way.
    """
    if isinstance(predicate, InvPath):
        return _subjects_of(object_, predicate.arg, subject)
    if isinstance(predicate, AlternativePath):
        ways = [_subjects_of(subject, way, object_) for way in predicate.args]
        return set.intersection(*ways)
    if isinstance(predicate, SequencePath):
        if any(map(_may_be_empty, predicate.args)):
            return set()
        first_step = predicate.args[0]
        last_step = predicate.args[-1]
        first = _subjects_of(subject, first_step, None)
        last = _subjects_of(None, last_step, object_)
        return (first | last) - {None}
    if isinstance(predicate, MulPath | NegatedPath):
        return set()
    return {subject}


def _may_be_empty(path: Any) -> bool:
    """Return whether a path may match a node with itself without using a triple.

    So do "*" and "?". An alternative may if any way may, a sequence if all steps may, and a
    predicate or a negated path never.
    """
    if isinstance(path, MulPath):
        return bool(path.zero) or _may_be_empty(path.path)
    if isinstance(path, InvPath):
        return _may_be_empty(path.arg)
    if isinstance(path, AlternativePath):
        return any(map(_may_be_empty, path.args))
    if isinstance(path, SequencePath):
        return all(map(_may_be_empty, path.args))
    return False


def _path_uses(path: Any, predicate: URIRef) -> bool:
    """Return whether a path, or a predicate in its place, may take a triple that has the predicate.

    A negated path always may.
    """
    if not isinstance(path, Path):
        return bool(path == predicate)
    if isinstance(path, NegatedPath):
        return True
    if isinstance(path, InvPath):
        return _path_uses(path.arg, predicate)
    if isinstance(path, MulPath):
        return _path_uses(path.path, predicate)
    steps: Sequence[Any] = path.args  # type: ignore[attr-defined]  # a sequence or alternatives
    return any(_path_uses(step, predicate) for step in steps)


def _node_to_sparql(node: Any) -> str:
    """Return a node of a pattern as SPARQL: a path, a variable, an IRI or a literal."""
    if isinstance(node, Path):
        return _path_to_sparql(node)
    if isinstance(node, Variable):
        return f"?{node}"
    return n3(node)


def _path_to_sparql(path: Path) -> str:
    """Return a path as SPARQL.

    Parts that are paths stand in parentheses. rdflib's ``n3`` cannot be used: it writes "^^" for two
    inverses, and fails at a negated path that has an inverse in it.
    """
    if isinstance(path, InvPath):
        return f"^{_part_to_sparql(path.arg)}"
    if isinstance(path, MulPath):
        return f"{_part_to_sparql(path.path)}{path.mod}"
    parts: Sequence[Any] = path.args  # type: ignore[attr-defined]  # all others have them
    if isinstance(path, NegatedPath):
        return "!(...)"  # only for messages; rdflib does not keep the inverse predicates in it
    separator = "/"
    if isinstance(path, AlternativePath):
        separator = "|"
    return separator.join(map(_part_to_sparql, parts))


def _part_to_sparql(part: Any) -> str:
    """Return a part of a path as SPARQL: a path in parentheses, or a predicate."""
    if isinstance(part, Path):
        return f"({_path_to_sparql(part)})"
    return n3(part)
