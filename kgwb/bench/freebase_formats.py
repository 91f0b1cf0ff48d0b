"""The question sets on Freebase that DoG is measured on: WebQSP, CWQ, WebQuestions and GrailQA.

Each set is read as its authors published it, and also as the repository of DoG has it, where every
question has its topic entities in ``topic_entity``, as names by Freebase id.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field

from kgwb.bench.questions import BenchQuestion, LexicalForm

FREEBASE = "http://rdf.freebase.com/ns/"
_MACHINE_ID = re.compile(r"[mg]\.\w+")
"""A Freebase id, such as m.03_r3, which sets use in the place of an IRI."""
_DESCRIPTION = re.compile(r'\(description (?:"((?:[^"\\]|\\.)*)"|([^()]*))\)')
"""An answer in the targetValue of WebQuestions: (description "Jamaican English")."""
TopicNames = Annotated[dict[str, str], Field(default_factory=dict)]
"""Names of topic entities by Freebase id, as in the repository of DoG."""


def to_freebase_iri(machine_id: str) -> str:
    """Return the IRI of a Freebase id; any other text is returned as it is."""
    if _MACHINE_ID.fullmatch(machine_id):
        return FREEBASE + machine_id
    return machine_id


def _gold_fields(names: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields ``answers`` and ``answer_labels`` of a question for gold answers with their names.

    ``names`` has the name of each by IRI or lexical form. Without any, ``answers`` is None, for not
    known: the test questions of some sets are published so.
    """
    if not names:
        return {"answers": None}
    return {"answers": tuple(names), "answer_labels": tuple(names.values())}


def _topic_field(topics: TopicNames, *others: str | None) -> dict[str, Any]:
    """Return the field ``topic_entity`` with the first id that is given, as an IRI; no field without any.

    The ids of ``topics`` go before ``others``.
    """
    for machine_id in (*topics, *others):
        if machine_id:
            return {"topic_entity": to_freebase_iri(machine_id)}
    return {}


# --- WebQSP


class _WebQspAnswer(BaseModel):
    kind: str = Field("", validation_alias="AnswerType")
    """It is checked that this is a text, and not used: the argument says what it is."""
    argument: LexicalForm = Field(validation_alias="AnswerArgument")
    name: str | None = Field(None, validation_alias="EntityName")


class _WebQspParse(BaseModel):
    """One reading of a question, with its query and its answers."""

    sparql: str | None = Field(None, validation_alias="Sparql")
    topic: str | None = Field(None, validation_alias="TopicEntityMid")
    chain: tuple[str, ...] | None = Field(None, validation_alias="InferentialChain")
    answers: tuple[_WebQspAnswer, ...] = Field((), validation_alias="Answers")


class WebQspEntry(BaseModel):
    """A question of WebQSP."""

    id: str = Field(validation_alias="QuestionId")
    question: str = Field(validation_alias="RawQuestion")
    parses: tuple[_WebQspParse, ...] = Field((), validation_alias="Parses")
    topic_entity: TopicNames

    def to_questions(self, number: int) -> Iterator[BenchQuestion]:
        """Yield the question with the answers of all its parses, and with the query and hops of the first parse.

        The hops are the predicates of that parse's chain; a node without a name lies between some
        of them, so that two can be one hop of a walk. Without a parse there are neither answers nor
        a query.
        """
        names = {}
        for parse in self.parses:
            for answer in parse.answers:
                names[to_freebase_iri(answer.argument)] = answer.name or answer.argument
        first = self.parses[0] if self.parses else _WebQspParse()
        yield BenchQuestion(
            id=self.id,
            question=self.question,
            language="en",
            sparql=first.sparql,
            hops=len(first.chain) if first.chain else None,
            **_gold_fields(names),
            **_topic_field(self.topic_entity, first.topic),
        )


# --- ComplexWebQuestions (CWQ)


class _CwqAnswer(BaseModel):
    id: LexicalForm | None = Field(None, validation_alias="answer_id")
    name: LexicalForm | None = Field(None, validation_alias="answer")


class CwqEntry(BaseModel):
    """A question of ComplexWebQuestions."""

    id: str = Field(validation_alias="ID")
    question: str
    sparql: str | None = None
    type: str | None = Field(None, validation_alias="compositionality_type")
    answers: tuple[_CwqAnswer, ...] = ()
    answer: LexicalForm | None = None
    """The name of the one answer that the repository of DoG has."""
    topic_entity: TopicNames

    def to_questions(self, number: int) -> Iterator[BenchQuestion]:
        """Yield the question, with the ids of its answers as Freebase IRIs and names as labels.

        Its type is how it was composed, such as "conjunction". An answer without an id is its name.
        If there are no answers, the single text ``answer`` is the gold label.
        """
        names = {}
        for answer in self.answers:
            value = answer.id or answer.name
            if value:
                names[to_freebase_iri(value)] = answer.name or value
        gold = _gold_fields(names)
        if not names and self.answer:
            gold["answer_labels"] = (self.answer,)
        yield BenchQuestion(
            id=self.id,
            question=self.question,
            language="en",
            sparql=self.sparql,
            type=self.type,
            **gold,
            **_topic_field(self.topic_entity),
        )


# --- WebQuestions


def _read_descriptions(value: object) -> object:
    """Return the names in a targetValue, as a list: (list (description "A B") (description C)).

    Escapes inside quotes are those of JSON. A value that is no text is returned as it is. Raises
    ValueError for quotes that are not JSON.
    """
    if not isinstance(value, str):
        return value
    names = []
    for quoted, plain in _DESCRIPTION.findall(value):
        names.append(json.loads(f'"{quoted}"') if quoted else plain.strip())
    return names


class WebQuestionsEntry(BaseModel):
    """A question of WebQuestions, whose gold answers are names."""

    url: str = ""
    question: str = Field(validation_alias="utterance")
    answers: Annotated[tuple[str, ...], BeforeValidator(_read_descriptions)] = Field(
        validation_alias="targetValue"
    )

    def to_questions(self, number: int) -> Iterator[BenchQuestion]:
        """Yield the question, with labels as its gold answers and without a query.

        Its id is its number in the file. Its topic entity is the name in the address of its
        Freebase page, if there is one.
        """
        name = self.url.rpartition("/")[2].replace("_", " ")
        yield BenchQuestion(
            id=str(number),
            question=self.question,
            language="en",
            answer_labels=self.answers,
            topic_entity=name or None,
        )


class DogWebQuestionsEntry(BaseModel):
    """A question of WebQuestions in the repository of DoG."""

    question: str
    answers: tuple[str, ...]
    topic_entity: TopicNames

    def to_questions(self, number: int) -> Iterator[BenchQuestion]:
        """Yield the question, with labels as its answers and the first of its topic entities.

        The id is its number in the file. There is no query.
        """
        yield BenchQuestion(
            id=str(number),
            question=self.question,
            language="en",
            answer_labels=self.answers,
            **_topic_field(self.topic_entity),
        )


# --- GrailQA


class _GrailAnswer(BaseModel):
    argument: LexicalForm = Field(validation_alias="answer_argument")
    name: str | None = Field(None, validation_alias="entity_name")


class _GrailNode(BaseModel):
    kind: str = Field("", validation_alias="node_type")
    id: str


class _GraphQuery(BaseModel):
    nodes: tuple[_GrailNode, ...] = ()


class GrailQaEntry(BaseModel):
    """A question of GrailQA. Those of the test set have neither a query nor answers."""

    id: LexicalForm = Field(validation_alias="qid")
    question: str
    answers: tuple[_GrailAnswer, ...] = Field((), validation_alias="answer")
    graph_query: _GraphQuery = _GraphQuery()
    sparql: str | None = Field(None, validation_alias="sparql_query")
    hops: int | None = Field(None, validation_alias="num_edge")
    level: str | None = None
    function: str | None = None
    topic_entity: TopicNames

    def to_questions(self, number: int) -> Iterator[BenchQuestion]:
        """Yield the question, with its answers as Freebase IRIs and their names as labels.

        Its type is its level of generalization, else its function. The topic entity is that of the
        set, else the first entity of its graph query, and the hops are its edges.
        """
        names = {}
        for answer in self.answers:
            names[to_freebase_iri(answer.argument)] = answer.name or answer.argument
        entities = [node.id for node in self.graph_query.nodes if node.kind == "entity"]
        yield BenchQuestion(
            id=self.id,
            question=self.question,
            language="en",
            sparql=self.sparql,
            type=self.level or self.function,
            hops=self.hops,
            **_gold_fields(names),
            **_topic_field(self.topic_entity, *entities),
        )


FreebaseEntry = WebQspEntry | CwqEntry | WebQuestionsEntry | DogWebQuestionsEntry | GrailQaEntry
ENTRY_CLASSES: tuple[tuple[frozenset[str], type[FreebaseEntry]], ...] = (
    (frozenset({"QuestionId", "Parses"}), WebQspEntry),
    (frozenset({"ID", "compositionality_type"}), CwqEntry),
    (frozenset({"utterance", "targetValue"}), WebQuestionsEntry),
    (frozenset({"url", "question", "answers"}), DogWebQuestionsEntry),
    (frozenset({"qid", "question"}), GrailQaEntry),
)
"""For each set, the fields by which an entry is recognized, and its class."""


def find_entry_class(entries: Iterable[object]) -> type[FreebaseEntry] | None:
    """Return the class for the first entry that has all fields by which a set is recognized; None if none has."""
    for entry in entries:
        if not isinstance(entry, dict):
            continue
        for names, entry_class in ENTRY_CLASSES:
            if names.issubset(entry):
                return entry_class
    return None
