"""The questions of a benchmark, in one form for all file formats (kgwb.bench.formats), and their gold answers.

A gold text that is the name of a thing is found too: a system that answers with the thing scores 0 by it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, pairwise
from typing import Annotated, Any
from unicodedata import normalize

from pydantic import AliasChoices, BaseModel, BeforeValidator, Field, model_validator
from rdflib import Literal, URIRef

from kgwb import disk
from kgwb.bench.cost import NonNegativeAmount
from kgwb.bench.metrics import is_iri, normalize_value
from kgwb.errors import GraphError, InputError
from kgwb.kg.base import Graph
from kgwb.kg.sparql import is_valid_iri, n3, validate_query
from kgwb.records import JsonObject, frozen
from kgwb.run.answers import Answer, Candidate
from kgwb.run.gold import GoldQuery, parse_gold_query
from kgwb.terms import Term
from kgwb.text import and_more, list_first, pluralize

StringRow = tuple[str | None, ...]
"""A row of a table, its terms as question files write them; None for a term that is missing."""
_BARE_COUNT = re.compile(
    r"\b(?P<select>SELECT\s+(?:DISTINCT\s+)?)COUNT\s*\(\s*(?P<distinct>DISTINCT\s+)?(?P<what>[?$]\w+|\*)"
    r"(?:\s+AS\s+[?$]\w+)?\s*\)",
    re.IGNORECASE,
)
"""A COUNT right after SELECT, without the parentheses and the alias that SPARQL 1.1 requires."""
METAQA_RELATIONS: Mapping[str, str] = disk.read_table("bench/question_sets.toml")["metaqa"]
"""The predicate of MetaQA's graph for each word of its question types. Each leads away from a movie."""


def to_lexical_form(value: object) -> object:
    """Return a boolean or a number as the text that RDF has for it, and anything else as it is."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value)
    return value


LexicalForm = Annotated[str, BeforeValidator(to_lexical_form)]
"""A text that may be given as a JSON boolean or number."""


def _to_list(value: object) -> object:
    """Return a single value as a list, and several as they are. An empty value is none."""
    if isinstance(value, list | tuple):
        return value
    return [] if value in (None, "") else [value]


Texts = Annotated[tuple[LexicalForm, ...], BeforeValidator(_to_list)]
"""Texts of which a single one may be given without a list."""


class Assertions(BaseModel, frozen=True):
    """What is asserted of the answer to a question, whatever its gold.

    A value is an IRI, a CURIE, or the lexical form of a literal, see ``resolve_assertions``. The
    names follow those of promptfoo ("contains", "not-contains", "cost").
    """

    contains: Texts = ()
    """Values that the answer has."""
    not_contains: Texts = ()
    uses_predicate: Texts = ()
    """Predicates of the SPARQL queries that the answer came from, or of the triples that support it."""
    not_uses_predicate: Texts = ()
    max_model_calls: NonNegativeAmount | None = None
    max_tokens: NonNegativeAmount | None = None
    """Of prompts and replies together."""
    max_seconds: NonNegativeAmount | None = None
    max_cost: NonNegativeAmount | None = None
    """In the currency of the table of prices."""

    @model_validator(mode="before")
    @classmethod
    def _check_names(cls, data: Any) -> Any:
        """Return the data. Raises ValueError for a name that is no assertion."""
        known = list(cls.model_fields)
        for name in data if isinstance(data, dict) else ():
            if name not in known:
                raise ValueError(f"{name!r} is no assertion; there are {', '.join(known)}")
        return data


TEST_SPLIT = "test"
SLICE_FIELDS = ("hops", "type", "language", "dialogue", "split")
"""Fields by which questions can be chosen, beside their tags."""


class BenchQuestion(BaseModel, frozen=True):
    """One question with its gold. As JSON data, it is one line of kgwb's own question files."""

    id: LexicalForm
    question: str
    answers: tuple[LexicalForm, ...] | None = None
    """The gold answers; None if they are not known.

    They are IRIs or lexical forms of literals; of a boolean question "true" or "false"; of a table
    all its values.
    """
    answer_labels: tuple[str, ...] = ()
    """Labels of the gold answers. MetaQA's released files have no more than these."""
    columns: tuple[str, ...] = ()
    """The names of the columns, if the gold is a table."""
    rows: tuple[tuple[LexicalForm | None, ...], ...] = ()
    """The rows, if the gold is a table."""
    sparql: str | None = None
    """The gold query, as the question set writes it."""
    gold_error: str | None = None
    """Why the gold answers could not be found by the gold query or the labels."""
    language: str | None = None
    """The language tag of ``question``, as the set writes it; None if the set has none."""
    translations: tuple[tuple[str, str], ...] = ()
    """Every wording of the question, as (language, text), if the set has several."""
    hops: int | str | None = None
    type: str | None = None
    tags: Texts = ()
    """Words of the person's own, by which questions are chosen and figures are given."""
    split: LexicalForm | None = None
    """The part of the set. TEST_SPLIT is for a last check alone: nothing is chosen by it."""
    topic_entity: str | None = None
    """The vertex (or its label) that the question is about, if the set names it (MetaQA)."""
    path: str | None = None
    """The path from the topic entity to the answers, if the set has it (MetaQA): "movie_to_actor"."""
    dialogue: LexicalForm | None = None
    """The id of the dialogue. Its turns are asked in order, each with the answers before it."""
    turn: int = 0
    standalone: str | None = None
    """The meaning of the question outside its dialogue."""
    right: str | None = None
    """What counts as right, for a person who judges the answer."""
    assertions: Assertions = Field(
        Assertions(), validation_alias=AliasChoices("assert", "assertions")
    )
    """What else must be true of the answer; "assert" in a file."""

    @model_validator(mode="before")
    @classmethod
    def _read_table(cls, data: Any) -> Any:
        """Convert data of a question file before validation, and return a changed copy.

        ``answers`` may be rows of a table, and ``kind`` is the old name of ``type``. Data that is no
        dictionary is returned as it is. Raises ValueError for a misspelled "assert", which would be
        checked by nobody.
        """
        if not isinstance(data, dict):
            return data
        data = dict(data)
        if isinstance(data.get("kind"), str):
            data.setdefault("type", data["kind"])
        for name in data:
            if str(name).startswith("assert") and name not in ("assert", "assertions"):
                raise ValueError(
                    f"{name!r} is no field of a question; assertions stand in 'assert'"
                )
        if isinstance(data.get("answers"), list):
            data.update(_read_answer_rows(data["answers"]))
        return data

    @property
    def gold(self) -> list[str] | None:
        """The gold answers as results files write them: a list, or None if they are not known."""
        return None if self.answers is None else list(self.answers)


def _read_answer_rows(answers: list[Any]) -> JsonObject:
    """Return the fields ``answers`` and ``rows`` of a question whose answers include lists (rows of a table).

    ``answers`` has the values of all rows, each once and without nulls. ``rows`` is there only if
    every answer is a list and one of them has several values. Empty if no answer is a list.
    """
    values: dict[object, None] = {}
    rows = []
    for answer in answers:
        cells = [answer]
        if isinstance(answer, list):
            cells = answer
            rows.append(answer)
        for cell in cells:
            if cell is not None:
                values[to_lexical_form(cell)] = None
    if not rows:
        return {}
    fields: JsonObject = {"answers": list(values)}
    if len(rows) == len(answers) and max(map(len, rows)) > 1:
        fields["rows"] = rows
    return fields


def slices_of(question: Mapping[str, Any]) -> set[str]:
    """Return each slice that a question or a row is in: "tag=long", "type=count", "split=dev"."""
    slices = {f"tag={tag}" for tag in question.get("tags", ())}
    for name in SLICE_FIELDS:
        if question.get(name) is not None:
            slices.add(f"{name}={question[name]}")
    return slices


def find_in_slices(questions: Iterable[Mapping[str, Any]], slices: Collection[str]) -> set[str]:
    """Return the ids of the questions, or rows, that are in all of the slices.

    Raises InputError if there is none.
    """
    questions = list(questions)
    ids = {question["id"] for question in questions if slices_of(question).issuperset(slices)}
    if not ids:
        known = set().union(*map(slices_of, questions))
        raise InputError(
            f"no question is in the slice {' and '.join(slices)}",
            hint=f"choose among {list_first(sorted(known, reverse=True)) or 'questions with tags'} (--slice)",
        )
    return ids


def select_slices(
    questions: Sequence[BenchQuestion], slices: Collection[str]
) -> list[BenchQuestion]:
    """Return the questions that are in all of the slices, with the earlier turns of their dialogues.

    Without slices these are all. Raises InputError if there is none.
    """
    fields = list(map(vars, questions))
    ids = with_earlier_turns(fields, find_in_slices(fields, slices))
    return [question for question in questions if question.id in ids]


def with_earlier_turns(questions: Iterable[Mapping[str, Any]], ids: Collection[str]) -> set[str]:
    """Return the ids with those of all earlier turns of their dialogues."""
    questions = list(questions)
    last_turns: dict[str | None, int] = {}
    for question in questions:
        dialogue = question.get("dialogue")
        if question["id"] in ids and dialogue is not None:
            turn = question.get("turn", 0)
            last_turns[dialogue] = max(last_turns.get(dialogue, 0), turn)
    chosen = set(ids)
    for question in questions:
        last_turn = last_turns.get(question.get("dialogue"), 0)
        if question.get("turn", 0) < last_turn:
            chosen.add(question["id"])
    return chosen


def make_standalone_questions(questions: Iterable[BenchQuestion]) -> list[BenchQuestion]:
    """Return copies of the questions outside of their dialogues, in their standalone wording.

    A question without such a wording keeps its own. Each copy has no dialogue, and the turn 0.
    ``compute_retention`` compares a system's answers to both.
    """
    standalone_questions = []
    for question in questions:
        text = question.standalone or question.question
        changes = {"question": text, "dialogue": None, "turn": 0}
        standalone_questions.append(question.model_copy(update=changes))
    return standalone_questions


def group_by_dialogue(questions: Iterable[BenchQuestion]) -> Iterator[tuple[BenchQuestion, ...]]:
    """Yield the questions in groups, each of which must be asked in order.

    A group is a dialogue, sorted by turn, or a single question outside of all dialogues. Groups
    come in the order of their first questions.
    """
    groups: dict[str, list[BenchQuestion]] = {}
    for question in questions:
        key = f"id {question.id}"
        if question.dialogue is not None:
            key = f"dialogue {question.dialogue}"
        groups.setdefault(key, []).append(question)
    for turns in groups.values():
        yield tuple(sorted(turns, key=lambda question: question.turn))


def answer_to_strings(answer: Answer | None) -> list[str]:
    """Return the values of an answer as question files write them, each once.

    Of a table these are all its cells. Without an answer the list is empty.
    """
    if answer is None:
        return []
    terms = chain.from_iterable(value.terms for value in answer.values)
    texts = map(term_to_string, terms)
    return list(dict.fromkeys(texts))


def row_to_strings(row: Iterable[Term | None]) -> StringRow:
    """Return a row as question files write it. A missing term stays None."""
    return tuple(None if term is None else term_to_string(term) for term in row)


def term_to_string(term: Term) -> str:
    """Return a term as question files write it: the IRI, the lexical form, or "true" or "false".

    A boolean literal may have the lexical form "1" or "0"; it is still "true" or "false".
    """
    if isinstance(term, Literal) and isinstance(term.value, bool):
        return str(term.value).lower()
    return str(term)


# --- gold queries


def add_gold_queries(questions: Iterable[BenchQuestion], kg: Graph) -> list[BenchQuestion]:
    """Return the questions, with a gold query added that is made from MetaQA's topic entity and path.

    A question stays as it is if it has a query, lacks one of the two, or has a relation that the
    graph lacks. Predicates are recognized by their local names (METAQA_RELATIONS); of several with
    one name, any may lead on. The topic entity is not an answer, even if the path leads back to it.
    The graph is asked once for its predicates, if any question needs a query.
    """
    questions = list(questions)
    if not any(question.path and not question.sparql for question in questions):
        return questions
    predicates = _find_metaqa_predicates(kg)
    return [_add_gold_query(question, predicates) for question in questions]


def _find_metaqa_predicates(kg: Graph) -> dict[str, str]:
    """Return, for each word of METAQA_RELATIONS, the predicate of the graph in SPARQL; one query is sent.

    A predicate is recognized by what follows the last "/" or "#" of its IRI. If several predicates
    have one name, it is the path of all of them: "(<http://a/directed_by>|<http://b/directed_by>)".
    Words whose predicate the graph lacks are left out.
    """
    by_local_name: dict[str, list[str]] = {}
    result = kg.select("SELECT DISTINCT ?p WHERE { ?s ?p ?o }")
    for (term,) in result.rows:
        if isinstance(term, URIRef):
            local_name = re.split("[/#]", term)[-1]
            by_local_name.setdefault(local_name, []).append(n3(term))
    predicates: dict[str, str] = {}
    for word, name in METAQA_RELATIONS.items():
        same_name = sorted(by_local_name.get(name, ()))
        if len(same_name) == 1:
            predicates[word] = same_name[0]
        elif same_name:
            alternatives = "|".join(same_name)
            predicates[word] = f"({alternatives})"
    return predicates


def _add_gold_query(question: BenchQuestion, predicates: Mapping[str, str]) -> BenchQuestion:
    """Return the question with the query of its path, or unchanged if there is none to add.

    It is unchanged if it has a query, its topic entity is no valid IRI, or its path cannot be
    followed.
    """
    entity = URIRef(question.topic_entity or "")  # some sets give a label here
    if question.sparql or "://" not in entity or not is_valid_iri(entity):
        return question
    topic = n3(entity)
    patterns = _patterns_of_path(question.path or "", topic, predicates)
    if not patterns:
        return question
    body = " ".join(patterns)
    query = f"SELECT DISTINCT ?x WHERE {{ {body} FILTER(?x != {topic}) }}"
    return question.model_copy(update={"sparql": query})


def _patterns_of_path(path: str, topic: str, predicates: Mapping[str, str]) -> list[str]:
    """Return the triple patterns of a path ("actor_to_movie_to_year") from the topic to ``?x``.

    All predicates lead from a movie, so the word at the other end of a hop names the predicate.
    The list is empty if the path has no hop, or a hop has no predicate.
    """
    hops = list(pairwise(path.split("_to_")))
    patterns = []
    here = topic
    for number, (word, next_word) in enumerate(hops, 1):
        there = "?x" if number == len(hops) else f"?x{number}"
        is_from_movie = word == "movie"
        predicate = predicates.get(next_word if is_from_movie else word)
        if predicate is None:
            return []
        if is_from_movie:
            patterns.append(f"{here} {predicate} {there} .")
        else:
            patterns.append(f"{there} {predicate} {here} .")
        here = there
    return patterns


def read_gold_query_of(question: BenchQuestion, kg: Graph) -> GoldQuery | None:
    """Return the parts of a question's gold query; None without a query that can be taken apart."""
    if not question.sparql:
        return None
    return parse_gold_query(to_standard_sparql(question.sparql), kg.vocabulary)


def to_standard_sparql(sparql: str) -> str:
    """Return a gold query in SPARQL 1.1.

    LC-QuAD and QALD write counts in the dialect of Virtuoso: SELECT DISTINCT COUNT(?uri). The first
    of them is replaced by (COUNT(?uri) AS ?count).
    """
    return _BARE_COUNT.sub(r"\g<select>(COUNT(\g<distinct>\g<what>) AS ?count)", sparql, count=1)


# --- gold answers that a question set leaves to be found in the graph


def add_gold_answers(questions: Iterable[BenchQuestion], kg: Graph) -> list[BenchQuestion]:
    """Return the questions, in their order, with gold answers from the graph for those that have none.

    The answers are the first variable of the gold query, or all of them if the question has several
    columns; without a gold query, the vertices that have the gold labels. The query passes the gate
    like any query. If this fails, ``answers`` stays None and ``gold_error`` has the reason. Gold
    vertices get the labels that the graph has. Answers that a question has already are kept.
    """
    answered = []
    for question in questions:
        if question.answers is None:
            question = _add_gold_answer(question, kg)  # noqa: PLW2901
        answered.append(question)
    names = _names_of_gold(answered, kg)
    return [_add_labels(question, names) for question in answered]


def find_contradicted_gold(questions: Iterable[BenchQuestion], kg: Graph) -> list[str]:
    """Return the ids of the questions whose gold answers are not those of their gold query.

    They are compared by value, as answers are scored. A query that fails contradicts nothing.
    Empty for an endpoint, which is not asked so much.
    """
    ids: list[str] = []
    if kg.remote:
        return ids
    for question in questions:
        if not question.sparql or question.answers is None:
            continue
        by_query = _add_gold_answer(question, kg)
        given = set(map(normalize_value, question.answers))
        if not by_query.gold_error and set(map(normalize_value, by_query.answers or ())) != given:
            ids.append(question.id)
    return ids


def _add_gold_answer(question: BenchQuestion, kg: Graph) -> BenchQuestion:
    """Return the question with gold answers from the graph, or with the reason for none in ``gold_error``.

    They are the distinct cells of the gold query's rows, of which only the first column counts
    unless the question has several columns; else the vertices with the gold labels. A GraphError is
    not raised: its message is the reason.
    """
    changes: JsonObject = {"gold_error": None}
    try:
        if question.sparql and question.sparql.strip():
            rows = _run_gold_query(question.sparql, kg)
            if len(question.columns) > 1:
                changes["rows"] = tuple(rows)
            if not question.rows and "rows" not in changes:
                rows = [row[:1] for row in rows]
            cells = chain.from_iterable(rows)
            answers = [cell for cell in cells if cell is not None]
        elif question.answer_labels:
            answers = _find_vertices_by_label(question.answer_labels, kg)
        else:
            raise GraphError("the question set gives neither answers nor a gold query")
    except GraphError as exc:
        return question.model_copy(update={"gold_error": exc.message})
    changes["answers"] = tuple(dict.fromkeys(answers))
    return question.model_copy(update=changes)


def _run_gold_query(sparql: str, kg: Graph) -> list[StringRow]:
    """Execute a gold query, and return its rows as texts; of an ASK one row with "true" or "false".

    Unbound cells are None. Raises GraphError, also if the graph's row limit cuts the result off.
    """
    sparql = to_standard_sparql(sparql)
    if validate_query(sparql).form == "ask":
        truth = Literal(kg.ask(sparql))
        return [(term_to_string(truth),)]
    result = kg.select(sparql)
    if result.cut:
        raise GraphError(
            f"the gold query has more than {len(result.rows)} rows, the row limit of the graph: "
            "open the graph with a larger row_limit"
        )
    return list(map(row_to_strings, result.rows))


def find_query_answers(sparql: str | None, kg: Graph) -> set[str]:
    """Return all values that a gold query gives, as texts; empty without a query, or if it fails."""
    if not sparql or not sparql.strip():
        return set()
    try:
        rows = _run_gold_query(sparql, kg)
    except GraphError:
        return set()
    cells = chain.from_iterable(rows)
    return {cell for cell in cells if cell is not None}


def _find_vertices_by_label(labels: tuple[str, ...], kg: Graph) -> list[str]:
    """Return the IRI of the one vertex that has each label, in the order of the labels.

    Labels are compared without letter case. If several vertices have a label, the one that has it
    in the same letter case counts. Raises GraphError unless exactly one is left.
    """
    vertices_by_label = kg.exact(labels)
    iris = []
    for label in labels:
        vertices = list(vertices_by_label.get(label, ()))
        count = len(vertices)
        if count > 1:
            names = kg.names(vertices)
            vertices = [vertex for vertex in vertices if names[vertex] == label]
        if len(vertices) != 1:
            problem = f"{count} vertices of the graph are called {label!r}, not exactly one"
            raise GraphError(problem)
        iris.append(str(vertices[0]))
    return iris


def find_topic(question: BenchQuestion, kg: Graph) -> Candidate | None:
    """Return the vertex that a question is about by its question set, with its name.

    The set gives its IRI, or a label that one vertex has. None if the set gives neither, if the
    label search has no such vertex, or if the graph does not answer.
    """
    topic = question.topic_entity
    if not topic:
        return None
    with suppress(GraphError):
        if not is_iri(topic):
            (topic,) = _find_vertices_by_label((topic,), kg)
        iri = URIRef(topic)
        label = kg.names([iri])[iri]
        if iri in kg.exact([label]).get(label, ()):
            return Candidate(iri, label)
    return None


def _names_of_gold(questions: Iterable[BenchQuestion], kg: Graph) -> dict[str, str]:
    """Return the display names of all IRIs among the gold answers, with one request to the graph.

    Empty if the graph does not answer; then parts of the IRIs are shown.
    """
    values: dict[str, None] = {}
    for question in questions:
        values.update(dict.fromkeys(question.answers or ()))
    iris = []
    for value in values:
        if "://" in value and is_valid_iri(URIRef(value)):
            iris.append(URIRef(value))
    try:
        names = kg.names(iris)
    except GraphError:
        return {}
    return {str(iri): name for iri, name in names.items()}


def _add_labels(question: BenchQuestion, names: Mapping[str, str]) -> BenchQuestion:
    """Return the question with the names of its gold answers as labels.

    An answer without a name is its own label. The question is returned unchanged if it has labels
    already, or if no answer has a name.
    """
    answers = question.answers or ()
    if question.answer_labels or names.keys().isdisjoint(answers):
        return question
    labels = []
    for value in answers:
        labels.append(names.get(value, value))
    return question.model_copy(update={"answer_labels": tuple(labels)})


MAX_SHOWN_NAMES = 3
"""Gold texts that are shown with their things."""
NAMED_GOLD_HINT = (
    "write the IRI of the thing that is meant in the question file; keep the text if the text itself "
    "is asked for"
)
BOOLEANS = ("true", "false")


@frozen
class NamedGold:
    """A gold text that is the name of a thing, or of several, in the graph."""

    id: str
    """That of the question."""
    text: str
    iris: tuple[str, ...]
    """The things with this name. Of several, the text does not say which is meant."""


def find_named_gold(questions: Iterable[BenchQuestion], kg: Graph) -> list[NamedGold]:
    """Return the gold texts of the questions that are exactly the name of a thing in the graph.

    A right answer with the thing is not equal to such a gold. Looked at are gold answers that the
    question set has, and the values that it asserts. Texts without a letter, such as numbers, are no
    names here, nor is a text that the question's gold query gives. Empty if the graph cannot be asked.
    """
    given = []
    for question in questions:
        asserted = (*question.assertions.contains, *question.assertions.not_contains)
        texts = [text for text in (*(question.answers or ()), *asserted) if _may_be_name(text)]
        if texts:
            given.append((question, texts))
    if not given:
        return []
    try:
        all_texts = chain.from_iterable(texts for _, texts in given)
        things = find_things(set(all_texts), kg)
    except GraphError:
        return []
    found = []
    for question, texts in given:
        named = [text for text in texts if text in things]
        if not named:
            continue
        by_query = find_query_answers(question.sparql, kg)
        for text in named:
            if text not in by_query:
                found.append(NamedGold(question.id, text, things[text]))
    return found


def _may_be_name(text: str) -> bool:
    """Return whether a gold value may be a name: it is no IRI and no boolean, and has a letter."""
    has_letter = any(map(str.isalpha, text))
    return has_letter and text not in BOOLEANS and not is_iri(text)


def find_things(texts: Iterable[str], kg: Graph) -> dict[str, tuple[str, ...]]:
    """Return the things whose display name is exactly a text, by the text. Others are left out."""
    vertices_by_text = kg.exact(sorted(texts))
    vertices = set(chain.from_iterable(vertices_by_text.values()))
    names = kg.names(sorted(vertices))
    things = {}
    for text, candidates in vertices_by_text.items():
        wanted = normalize("NFC", text)
        iris = [str(iri) for iri in candidates if normalize("NFC", names[iri]) == wanted]
        if iris:
            things[text] = tuple(iris)
    return things


def describe_named_gold(found: Sequence[NamedGold], places: Mapping[str, str]) -> str:
    """Return what is wrong with gold texts that are names, as a sentence with the first of them.

    ``places`` says where a question stands in its file, by its id: "line 6".
    """
    questions = pluralize(len({named.id for named in found}), "question")
    verb = "has" if questions.startswith("1 ") else "have"
    examples = []
    for named in found[:MAX_SHOWN_NAMES]:
        place = places.get(named.id)
        where = f"{named.id} ({place})" if place else named.id
        things = list_first([f"<{iri}>" for iri in named.iris], MAX_SHOWN_NAMES)
        number = "" if len(named.iris) == 1 else f"{len(named.iris)} things, "
        examples.append(f"{where}: {named.text!r} is {number}{things}")
    more = and_more(len(found) - MAX_SHOWN_NAMES)
    if more:
        examples.append(more)
    shown = "; ".join(examples)
    return (
        f"{questions} {verb} a text, as gold or in an assertion, that is the name of a thing in the graph: "
        f"an answer with the thing is not that text: {shown}"
    )
