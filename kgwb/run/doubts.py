"""Reasons to doubt the answer of a run: a cut result, a query whose result changes with the time, and
things that the question does not name.

For the last, what a run linked at its end, or what its queries name, is compared with the question,
whichever model or system chose it. ``kgwb.kg.names`` has the rules. Nothing of this is imported before
a run comes to its end.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import replace
from difflib import SequenceMatcher
from itertools import chain, islice, pairwise, product
from typing import Any

from rdflib import RDFS, URIRef

from kgwb import disk
from kgwb.errors import GraphError, NotRecordedError
from kgwb.kg.algebra import analyze_query, find_iris
from kgwb.kg.base import Graph, ResultSet
from kgwb.kg.names import (
    FUNCTION_WORDS,
    MAX_COMPARED_CHARS,
    MAX_MORE_WORDS,
    SAME,
    Likeness,
    compare_labels,
    compare_names,
    replace_marks,
)
from kgwb.kg.queries import describe_vertices, existing_triples
from kgwb.kg.sparql import find_tokens, n3, tokenize, values_clause
from kgwb.records import frozen, to_data
from kgwb.run.answers import (
    CLASS_TYPES,
    Answer,
    Candidate,
    Link,
    NameReading,
    add_units,
    content_words,
)
from kgwb.run.steps import QUERY_KINDS, Call, Step, names_in_steps, used_calls
from kgwb.terms import Term, Triple, name_from_iri
from kgwb.text import list_first


def complete_answer(answer: Answer, run: Any) -> Answer:
    """Return the answer of a run with units, and with what is to be doubted or remarked of it.

    ``run`` is a run at the end of its execution.
    """
    answer = doubt_cut_results(add_units(answer), used_calls(run.steps, run.calls))
    answer = doubt_names(answer, run)
    answer = remark_on_engine(answer, run.kg)
    return remark_on_changing_queries(answer)


def doubt_cut_results(answer: Answer, used_calls: Iterable[Call]) -> Answer:
    """Return an answer with a doubt if the result of one of its queries was cut, else as it is.

    An answer without values, or of the kind "boolean", has no such doubt. The arguments are those
    of ``find_cut_result``.
    """
    if not answer.values or answer.kind == "boolean":
        return answer
    result = find_cut_result(answer, used_calls)
    if result is None:
        return answer
    cut = f"the result of its query was cut at {len(result.rows):,} rows, so more may be missing"
    return answer.with_doubts([cut])


def find_cut_result(answer: Answer, used_calls: Iterable[Call]) -> ResultSet | None:
    """Return the first result of an answer's queries that was cut; None if none was.

    For a count only the last query is looked at: a system counts again, by another query, where a
    list was cut. ``used_calls`` are the recorded calls that the answer was made from.
    """
    queries = answer.queries
    if answer.kind == "count":
        queries = queries[-1:]
    endings = tuple(query.strip() for query in queries if query.strip())
    for call in used_calls:
        result = call.result
        if call.kind != "select" or not isinstance(result, ResultSet) or not result.cut:
            continue
        # PREFIX lines may have been put before the query.
        if call.request["query"].strip().endswith(endings):
            return result
    return None


CHANGING_FUNCTIONS = ("NOW", "RAND", "UUID", "STRUUID")
"""The functions whose value is another one each time a query is executed (SPARQL 1.1, section 17.4)."""
_CHANGING_WORD = re.compile(rf"\b(?:{'|'.join(CHANGING_FUNCTIONS)})\b", re.IGNORECASE)
"""Finds what may be a call of one; few queries have it, and only their tokens are read."""


def remark_on_changing_queries(answer: Answer) -> Answer:
    """Return an answer with a remark if one of its queries calls one of CHANGING_FUNCTIONS, else as it is."""
    called: dict[str, None] = {}
    for query in answer.queries:
        called |= dict.fromkeys(_find_changing_functions(query))
    if not called:
        return answer
    functions = list_first([f"{name}()" for name in called])
    remark = f"the query calls {functions}, so at another time its result may be another one"
    return replace(answer, remarks=(*answer.remarks, remark))


def _find_changing_functions(query: str) -> list[str]:
    """Return the CHANGING_FUNCTIONS that a query calls; none of a text that is not a query."""
    if not _CHANGING_WORD.search(query):
        return []
    try:
        tokens = tokenize(query).tokens
    except GraphError:
        return []
    called = []
    for function, bracket in pairwise(tokens):
        name = function[0].upper()
        if name in CHANGING_FUNCTIONS and bracket[0] == "(":
            called.append(name)
    return called


MAX_INTEGER = 2**63 - 1
"""The largest integer that Oxigraph counts with."""


def remark_on_engine(answer: Answer, graph: Graph) -> Answer:
    """Return an answer with the remarks of ``kgwb/kg/engines.toml`` that its queries call for.

    The identity of a graph tells of a replay, too, whether an endpoint or Oxigraph was asked.
    """
    engine = "Virtuoso" if getattr(graph, "is_virtuoso", False) else ""
    if not graph.identity.startswith(("http:", "https:")):
        engine = "Oxigraph"
    has_large = any(_is_large_integer(value.term) for value in answer.values)
    remarks = dict.fromkeys(answer.remarks)
    for trait in disk.read_table("kg/engines.toml")["trait"]:
        if trait["engine"] != engine or has_large < trait.get("large", False):
            continue
        for query in answer.queries:
            if trait["sign"] not in query:
                continue
            if re.search(trait["pattern"], _skeleton_of(query), re.IGNORECASE):
                remarks[trait["remark"]] = None
    if len(remarks) == len(answer.remarks):
        return answer
    return replace(answer, remarks=tuple(remarks))


def _is_large_integer(term: object) -> bool:
    """Return whether a term is an integer of more than 64 bits."""
    value = getattr(term, "value", None)
    return isinstance(value, int) and not -MAX_INTEGER <= value <= MAX_INTEGER


def _skeleton_of(query: str) -> str:
    """Return a query with placeholders for its strings and IRIs; "" for a text that is not a query."""
    with suppress(GraphError):
        return tokenize(query).skeleton
    return ""


# Whether the things that an answer is about are those that the question names


CLASS_PREDICATES = frozenset((RDFS.subClassOf, RDFS.domain, RDFS.range))
"""Predicates that lead to a class, beside those of the vocabulary for types."""
SQL_TEXT = re.compile(r"'((?:[^']|'')*)'")
MAX_MET_THINGS = 100
"""Things of a support, and triples at one thing, that are compared with the question."""
MIN_RESEMBLANCE = 0.6
"""How much (difflib's ratio) a part of a question must be like a label to be shown as its name."""
MAX_SIGN_CHARS = 3
"""Characters of the longest name that is rather a sign."""
AROUND_NAME = '.,;:?"“”«»'
"""Punctuation around a name in a question that is no part of it."""
POSSESSIVE = re.compile(r"['’]s$")
YEAR = re.compile(r"\b[12]\d{3}\b")
UNSPACED = r"[\u3040-\u30ff\u3400-\u9fff\u0e00-\u0e7f]"
"""Letters of scripts that write no space between words. Text, since compiling it takes a millisecond of an import."""
GERMAN_WORDS = frozenset(
    "der die das wer ist von hat wurde welche welcher welches wie wo wann".split()
)
"""Words of a question in German, where each noun has a capital."""
COMPASS = frozenset("north south east west northern southern eastern western".split())
EMPTY_CELLS = ("None", "0")
"""How cells look that say that nothing was found."""
MIN_TEXT_CHARS = 3
"""Letters of the shortest text in lower case that is no flag or language tag of a query."""
PEOPLE = frozenset("person people human man woman author writer director actor scientist".split())
"""Words in the names of classes whose members are called by their surnames."""


@frozen
class _Named:
    """A thing, or a text, that an answer is about."""

    labels: tuple[str, ...]
    """What it is called, as far as the run knows. The first one is shown."""
    mention: str = ""
    """The name that was linked to it; empty for what a query names."""
    iri: URIRef | None = None
    candidates: tuple[Candidate, ...] = ()
    """What was found for the name."""
    is_asked_for: bool = True
    """Whether the question should name it; other things may be met on the way."""


def doubt_names(answer: Answer, run: Any) -> Answer:
    """Return an answer with a doubt if what it is about is not called as in the question.

    ``run`` is a run at the end of its execution. Names that were read as others, and those that
    several things have, are one doubt, and each is kept in ``read_names`` with the other candidates.
    A surname alone that means one person is a remark. What a person put in is in no doubt.
    """
    texts = _texts_of(run)
    readings: dict[NameReading, None] = {}
    remarks = dict.fromkeys(answer.remarks)
    all_named = dict.fromkeys(_find_named(answer, texts, run))
    put_in = _outputs_put_in(run.steps)
    for named in all_named:
        if put_in and json.dumps(named.iri or named.labels[0]) in put_in:
            continue
        others = [each for each in all_named if each is not named]
        reading = _read_name(named, others, texts, run)
        reading = reading or _find_twins(named, others, texts, answer, run)
        if reading is not None and _is_surname(reading, named):
            remarks[str(reading)] = None
        elif reading is not None:
            readings[reading] = None
    if not readings and not answer.read_names and len(remarks) == len(answer.remarks):
        return answer
    doubted = answer.with_doubts(map(str, readings))
    return replace(doubted, remarks=tuple(remarks), read_names=tuple(readings))


def _texts_of(run: Any) -> Sequence[str]:
    """Return the texts that may name a thing: the question, then the dialogue, the latest turn first.

    Each text of the dialogue is also there with the year of the question in place of its own: after "who won
    the Cup 2019", "and in 2022?" is about the Cup 2022. A name that stands in marks of any kind stands in
    quotes there, which are no part of it.
    """
    texts = []
    for turn in reversed(run.dialogue.turns):
        texts += [turn.question, turn.standalone, turn.text]
        texts += turn.answers
        texts += turn.entities
    year = YEAR.search(run.question)
    if year:
        texts += [YEAR.sub(year[0], text) for text in texts if YEAR.search(text)]
    texts.insert(0, run.question)
    return [replace_marks(text, '"') for text in texts if text]


# What an answer is about


def _find_named(answer: Answer, texts: Sequence[str], run: Any) -> Iterator[_Named]:
    """Yield the things and texts that an answer is about: what was linked, else what its queries name.

    Classes and predicates are left out.
    """
    steps = [step for step in run.steps if step.done]
    links = [step.output for step in steps if isinstance(step.output, Link)]
    linked = [link for link in links if link.is_linked]
    for link in linked:
        if link.value is not None and str(link.value) != "true":  # a truth value is no name
            yield _Named((str(link.value),), link.entity)
        for vertex in link.vertices:
            if vertex.types != CLASS_TYPES:
                yield _Named((vertex.label,), link.entity, vertex.iri, link.candidates)
    if not linked:
        yield from _find_queried(answer, texts, run, steps)


def _find_queried(
    answer: Answer, texts: Sequence[str], run: Any, steps: Sequence[Step]
) -> Iterator[_Named]:
    """Yield the things and texts that the queries of an answer name.

    If they name no thing, or it has no queries, the things in its support are yielded. ``texts``
    may name them.
    """
    ends = _find_ends(answer, run.kg)
    iris: dict[URIRef, None] = {}
    queried: dict[str, None] = {}
    for query in answer.queries:
        iris |= dict.fromkeys(_find_constants(query, ends, run.kg))
        queried |= dict.fromkeys(_find_texts(query))
    has_named = bool(iris)
    if not has_named:
        iris = dict.fromkeys(_choose_ends(ends, texts, answer))
    for call in used_calls(steps, run.calls):
        if call.kind not in QUERY_KINDS:
            sent = call.request.get("query", "")
            queried |= dict.fromkeys(SQL_TEXT.findall(sent))

    names = {str(iri): name for iri, name in answer.names}
    names |= names_in_steps(steps, run.calls)
    found = _find_candidates(steps)
    for iri in iris:
        candidates = found.get(iri, ())
        labels = [candidate.label for candidate in candidates if candidate.iri == iri]
        if str(iri) in names:
            labels.insert(0, names[str(iri)])
        labels = labels or [name_from_iri(iri)]
        yield _Named(tuple(labels), iri=iri, candidates=candidates, is_asked_for=has_named)
    asked = "\n".join(texts).casefold()
    for text in queried:
        part = text.strip("%")
        if part == text or part.casefold() not in asked:
            yield _Named((part,), is_asked_for=not part.islower())


def _choose_ends(ends: set[URIRef], texts: Sequence[str], answer: Answer) -> Sequence[URIRef]:
    """Return the things of a support in order; of many, those that share a word with the question."""
    if len(ends) <= MAX_MET_THINGS:
        return sorted(ends)
    names = dict(answer.names)
    asked = content_words(" ".join(texts))
    chosen = []
    for end in sorted(ends):
        name = names.get(end) or name_from_iri(end)
        if asked & content_words(name):
            chosen.append(end)
    return chosen[:MAX_MET_THINGS]


def _find_ends(answer: Answer, kg: Graph) -> set[URIRef]:
    """Return the things in the support of an answer that are neither its values nor classes."""
    ends = set()
    for subject, predicate, object_ in answer.support:
        ends.add(subject)
        if not _leads_to_class(predicate, kg):
            ends.add(object_)
    for value in answer.values:
        ends.difference_update(value.terms)
    return {end for end in ends if isinstance(end, URIRef)}


def _leads_to_class(predicate: Term, kg: Graph) -> bool:
    """Return whether the objects of a predicate are classes."""
    return predicate in kg.vocabulary.types or predicate in CLASS_PREDICATES


def _find_constants(query: str, ends: set[URIRef], kg: Graph) -> Iterator[URIRef]:
    """Yield the things that a SPARQL query names, without its predicates and classes.

    Of those outside of its triple patterns, only ``ends`` are things.
    """
    with suppress(GraphError):
        for subject, predicate, object_ in analyze_query(query).steps:
            terms = [subject, object_]
            if _leads_to_class(URIRef(predicate[1:-1]), kg):
                terms = [subject]
            for term in terms:
                if term.startswith("<"):
                    yield URIRef(term[1:-1])
    yield from sorted(ends & find_iris(query, {}))


def _find_texts(query: str) -> Iterator[str]:
    """Yield the texts in a SPARQL query that may be names: those without a datatype, and no tags or flags."""
    tokens = list(find_tokens(query))
    next_tokens = [*tokens[1:], None]
    for token, following in zip(tokens, next_tokens, strict=True):
        text = token[0].strip("\"'")
        is_tag = text.islower() and len(text) < MIN_TEXT_CHARS
        is_typed = following is not None and following[0] == "^"
        if token.lastgroup == "string" and not is_tag and not is_typed:
            yield text.strip("^$")


def _find_candidates(steps: Iterable[Step]) -> Mapping[URIRef, tuple[Candidate, ...]]:
    """Return, for each thing that a search of a run found, all that the search found."""
    found: dict[URIRef, tuple[Candidate, ...]] = {}
    for step in steps:
        candidates: tuple[Candidate, ...] = getattr(step.output, "candidates", ())
        for candidate in candidates:
            found[candidate.iri] = candidates
    return found


# How the question names it


def _outputs_put_in(steps: Iterable[Step]) -> str:
    """Return the outputs that a person put in, as JSON, which has each thing and text in quotes; "" for none."""
    put_in = [to_data(step.output) for step in steps if step.origin == "by hand"]
    if not put_in:
        return ""
    return json.dumps(put_in)


def _read_name(
    named: _Named, others: Iterable[_Named], texts: Sequence[str], run: Any
) -> NameReading | None:
    """Return what in the question was read as a thing or a text; None if that is its name.

    The graph is asked for all labels of a thing that is not called by one that the run knows. A
    thing that nothing in the question is like counts only if no query had led to it.
    """
    taken = _words_of(others) - _words_of([named])
    name, likeness = _find_name(named.mention, named.labels, texts, taken)
    if likeness.nearness != "same" and named.iri is not None:
        labels = [*named.labels, *_find_labels(named.iri, run.kg)]
        name, likeness = _find_name(named.mention, labels, texts, taken)
    if likeness.nearness == "same":
        return None
    if not name and (not named.is_asked_for or _was_reached(named.iri, run)):
        return None
    candidates = [each for each in named.candidates if each.iri != named.iri]
    return NameReading(
        name,
        named.labels[0],
        likeness.difference,
        named.iri,
        tuple(candidates),
    )


def _words_of(named: Iterable[_Named]) -> set[str]:
    """Return the words of the labels of things, in lower case."""
    labels = chain.from_iterable(each.labels for each in named)
    return set(chain.from_iterable(label.casefold().split() for label in labels))


def _find_labels(iri: URIRef, kg: Graph) -> Sequence[str]:
    """Return all labels of a thing, in every language; none in a replay that has not recorded them."""
    predicates = values_clause("?p", kg.vocabulary.labels)
    with suppress(GraphError, NotRecordedError):
        result = kg.select(f"SELECT ?label WHERE {{ {predicates} {n3(iri)} ?p ?label }}")
        return [str(label) for (label,) in result.rows]
    return []


def _find_name(
    mention: str, labels: Sequence[str], texts: Sequence[str], taken: Set[str]
) -> tuple[str, Likeness]:
    """Return the name in some texts that is nearest to the labels of a thing, and how near.

    If the texts have the mention, that is the name, unless a longer one around it is a label.
    Otherwise the name is "" if nothing in the texts is like a label. ``taken`` are the words of
    other names.
    """
    wanted = [mention] if mention else labels
    spans: list[str] = []
    for text in texts:
        for span in _find_spans(text, wanted, taken):
            if span == mention and compare_labels(span, labels) == SAME:
                return span, SAME  # as for most: the text is not read to its end
            spans.append(span)
    around = [span for span in spans if mention.casefold() in span.casefold()]
    if mention and around:
        spans = sorted(around, key=len)
    likenesses = {}
    for span in spans:
        likenesses[span] = compare_labels(span, labels)
        if likenesses[span] == SAME:
            return span, SAME
    if mention and around:
        return spans[0], likenesses[spans[0]]
    distances = [likeness.distance for likeness in likenesses.values()]
    least = min(distances, default=0)
    nearest = [span for span in likenesses if likenesses[span].distance == least]
    resemblances = {span: _resemblance(span, labels[0]) for span in nearest}
    name = max(nearest, key=lambda span: resemblances[span], default="")
    if name and (likenesses[name].nearness == "near" or resemblances[name] >= MIN_RESEMBLANCE):
        return name, likenesses[name]
    return "", Likeness("different", "another name")


def _resemblance(first: str, second: str) -> float:
    """Return how much two texts are alike, 0 to 1; 1 for two signs.

    Of a long text the beginning is compared: the time grows with the square of the length.
    """
    if _is_sign(first) and _is_sign(second):
        return 1.0
    beginning = first[:MAX_COMPARED_CHARS].casefold()
    other = second[:MAX_COMPARED_CHARS].casefold()
    return SequenceMatcher(None, beginning, other, autojunk=False).ratio()


def _is_sign(text: str) -> bool:
    """Return whether a name is rather a sign, such as C# or 007: it is short, and no word."""
    return len(text) <= MAX_SIGN_CHARS and not text.islower() and not text[1:].islower()


def _find_spans(text: str, labels: Sequence[str], taken: Set[str]) -> Iterator[str]:
    """Yield the parts of a text that may be a name of about as many words as one of the labels.

    Words beside such a part that belong to the same name are added to it.
    """
    words = text.split()
    counts = {len(label.split()) for label in labels}
    fewest = max(1, min(counts) - MAX_MORE_WORDS)
    most = max(counts) + MAX_MORE_WORDS
    goes_on = [False]
    is_german = not GERMAN_WORDS.isdisjoint(words)
    for position, (word, following) in enumerate(pairwise(words)):
        has_capitals = position > 0 and not is_german
        goes_on.append(_belong_together(word, following, taken, has_capitals=has_capitals))
    goes_on.append(False)
    for start in range(len(words)):
        for end in range(start + fewest, min(start + most, len(words)) + 1):
            if goes_on[start] or goes_on[end]:  # it is a part of a name
                continue
            span = " ".join(words[start:end]).strip(AROUND_NAME)
            if FUNCTION_WORDS.issuperset(span.casefold().split()):
                continue
            yield span
            if POSSESSIVE.search(span):
                yield POSSESSIVE.sub("", span).strip(AROUND_NAME)
    if re.search(UNSPACED, text):
        for start, label in product(range(len(text)), labels):
            yield text[start : start + len(label)]


def _belong_together(word: str, following: str, taken: Set[str], *, has_capitals: bool) -> bool:
    """Return whether two words of a question that stand side by side are parts of one name.

    They are if both are capitalized, or the second one is a number, or if the first one is a point
    of the compass, or the second one in round brackets. Capitals say nothing in German, and in the
    first word of a question.
    """
    if word[-1] in AROUND_NAME or POSSESSIVE.search(word):
        return False
    words = (word.casefold(), following.casefold().strip(AROUND_NAME))
    if not taken.isdisjoint(words):
        return False
    if following[0] == "(" or word.casefold() in COMPASS:
        return True
    is_end = following[0].isdigit() or (has_capitals and following[0].isupper())
    return word[0].isupper() and is_end


def _was_reached(iri: URIRef | None, run: Any) -> bool:
    """Return whether a query had a thing in its result before any query named it."""
    for call in used_calls(run.steps, run.calls):
        if call.kind not in QUERY_KINDS:
            continue
        if iri in find_iris(call.request.get("query", ""), {}):
            return False
        rows = call.result
        if isinstance(rows, ResultSet):
            rows = rows.rows
        if isinstance(rows, tuple) and any(iri in row for row in rows):
            return True
    return False


def _is_surname(reading: NameReading, named: _Named) -> bool:
    """Return whether a name is the surname alone of the one person found that has it."""
    ending = f" {reading.name}".casefold()
    types: list[str] = []
    for candidate in named.candidates:
        if candidate.iri == named.iri:
            types += candidate.types
        elif candidate.label.casefold().endswith(ending):
            return False
    words = " ".join(types).casefold().split()
    is_person = not PEOPLE.isdisjoint(words)
    return is_person and named.labels[0].casefold().endswith(ending)


# Several things of one name


def _find_twins(
    named: _Named, others: Sequence[_Named], texts: Sequence[str], answer: Answer, run: Any
) -> NameReading | None:
    """Return the other things that have the name, if nothing in the question tells them apart; else None.

    A thing that the question does not name was met on the way, and has no twins.
    """
    if named.iri is None or _was_earlier(named.iri, run):
        return None
    candidates: Sequence[Candidate] = named.candidates
    if not candidates and _is_in(texts, named, others):
        candidates = _find_homonyms(named, run.kg)
    own = [each for each in candidates if each.iri == named.iri]
    meant = {each.iri for each in (named, *others)}
    twins = []
    for candidate in candidates:
        is_twin = compare_names(named.labels[0], candidate.label) == SAME
        if own and is_twin and candidate.iri not in meant:
            twins.append(candidate)
    if not twins or not _is_in(texts, named, others):
        return None
    links = _find_links(named, texts, answer)
    twins = [each for each in twins if not _is_told_apart(own[0], each, links, answer, run)]
    if not twins:
        return None
    return NameReading(named.labels[0], own[0].label_with_types, "", named.iri, tuple(twins))


def _is_in(texts: Sequence[str], named: _Named, others: Iterable[_Named]) -> bool:
    """Return whether some texts name a thing."""
    taken = _words_of(others) - _words_of([named])
    name, _ = _find_name(named.mention, named.labels, texts, taken)
    return bool(name)


def _find_links(named: _Named, texts: Sequence[str], answer: Answer) -> Sequence[Triple]:
    """Return the triples of the support between a thing and what some texts name as it is called, but its names."""
    names = dict(answer.names)
    own_words = _words_of([named])
    at_thing = (triple for triple in answer.support if named.iri in (triple[0], triple[2]))
    links = []
    for triple in islice(at_thing, MAX_MET_THINGS):
        subject, _, object_ = triple
        end = object_ if subject == named.iri else subject
        label = str(end)
        if isinstance(end, URIRef):
            label = names.get(end) or name_from_iri(end)
        spans = chain.from_iterable(_find_spans(text, [label], own_words) for text in texts)
        is_named = any(compare_names(span, label) == SAME for span in spans)
        if is_named and compare_labels(label, named.labels) != SAME:
            links.append(triple)
    return links


def _was_earlier(iri: URIRef, run: Any) -> bool:
    """Return whether the dialogue is about a thing already, which tells it apart from others of its name."""
    return any(iri in (*turn.linked, *turn.vertices) for turn in run.dialogue.turns)


def _find_homonyms(named: _Named, kg: Graph) -> Sequence[Candidate]:
    """Return the things with a label of a thing, which was not searched; none if they are not recorded."""
    label = named.labels[0]
    with suppress(GraphError, NotRecordedError):
        iris = kg.exact([label]).get(label, ())
        if len(iris) > 1:
            described = describe_vertices(kg, iris)
            return [Candidate(iri, label, 1.0, *described[iri]) for iri in iris]
    return ()


def _is_told_apart(
    vertex: Candidate, twin: Candidate, links: Sequence[Triple], answer: Answer, run: Any
) -> bool:
    """Return whether the question is about one of two things of a name, and not about the other one.

    It is if it has a word that describes only the first one, if the other one lacks one of the
    ``links`` between the first one and what else the question names, or if a query of the answer
    has no result for the other one. Where no query can be asked, their types tell.
    """
    words = content_words(run.question) - content_words(vertex.label)
    if words & (vertex.describing_words - twin.describing_words):
        return True
    with suppress(GraphError, NotRecordedError):
        swapped: dict[Term, URIRef] = {vertex.iri: twin.iri}
        wanted = {(swapped.get(s, s), p, swapped.get(o, o)) for s, p, o in links}
        if existing_triples(run.kg, wanted) != wanted:
            return True
    term = n3(vertex.iri)
    queries = [query for query in answer.queries if term in query]
    if not answer.values:
        queries = []  # that the other one has no result either says nothing
    try:
        results = [run.kg.select(query.replace(term, n3(twin.iri))) for query in queries]
    except (GraphError, NotRecordedError):
        results = []
    if not results:
        return set(vertex.types) != set(twin.types)
    return any(map(_is_empty, results))


def _is_empty(result: ResultSet) -> bool:
    """Return whether no cell of a result has a value."""
    return all(str(term) in EMPTY_CELLS for term in chain(*result.rows))
