"""RAGonite ("iterative retrieval on induced databases and verbalized RDF"), section by section.

The published code, https://github.com/Fraunhofer-IIS/RAGonite, induces the database and writes the
passages. The rest is known from the paper and from its screenshots.
"""

from __future__ import annotations

from typing import Any

import pytest
from ragonite import (
    FINISH,
    PREFIXES,
    QUESTION,
    answered,
    cited,
    induce_turtle,
    passages,
    ragonite,
    rows_of,
    script,
    sql,
    use,
)
from rdflib import Literal
from small import answer_of, films

import kgwb
from conformance.claims import Gap, conforms
from kgwb.bench import load_questions
from kgwb.kg import sample_path
from kgwb.kg.embeddings import DEFAULT_MODEL, Embeddings
from kgwb.llm import Scripted
from kgwb.run.answers import Dialogue, Turn
from kgwb.systems.ragonite.annotations import open_annotations
from kgwb.systems.ragonite.database import Database
from kgwb.systems.ragonite.database_file import open_database
from kgwb.systems.ragonite.documents import open_documents
from kgwb.systems.ragonite.settings import RagoniteSettings

PROFILES = ("paper", "reference", "fast")
CARS = """
:ix3 a :Car, :Product ; rdfs:label "iX3" ; :fuelType :electric ; :price "55160" .
:m60 a :Car, :Product ; rdfs:label "iX M60" ; :fuelType :electric ; :price "124605" ; :length "4953 mm" .
:hat a :Product ; rdfs:label "Hat" ; :price "20" .
:electric a :FuelType ; rdfs:label "fullElectric" .
"""
"""Figure 2, with a product that is no car."""
GAPS = [
    Gap(
        source="section 2.1",
        paper="for a 1:1 or 1:N relation from A to B, the key of A is a column of B",
        code="a column of A for 1:1 and N:1; its name has both tables and not the predicate, so that "
        "two predicates between the same tables overwrite each other",
        reason="a link is a column at its subject, named by its predicate, and several values are a "
        "table of two keys, for 1:N as for N:M: the direction of a link then shows in the schema, and "
        "no link is lost",
    ),
    Gap(
        source="section 2.2, (i)",
        paper="prefixes are stripped from IRIs to extract the raw content",
        code="labels are not used",
        reason="a thing is named by its label, as in the paper's example, and by the last part of its "
        "IRI only without a label; its id stands in brackets, so that things of one name are told apart",
    ),
    Gap(
        source="sections 2.3 and 2.4, prompts",
        paper="the two agents are prompted to choose tools, and to cite sources",
        reason="the paper describes its prompts and does not print them; ours are written after these "
        "descriptions. A reply also lists the values of the answer with their sources, so that each "
        "can be a term of the graph with its triples",
    ),
]


def settings_of(name: str, **changes: Any) -> RagoniteSettings:
    """The settings of a profile, with some of them changed."""
    return RagoniteSettings.of_profile(name, **changes)


def induced(name: str, turtle: str, **changes: Any) -> Database:
    """The database of a few triples in a profile."""
    return induce_turtle(turtle, **settings_of(name, **changes).to_data())


def tables_of(database: Database) -> dict[str, list[str]]:
    """The names of the columns of each table."""
    return {
        table.name: [column.name for column in table.columns] for table in database.schema.tables
    }


# --- 2.1 Database induction


@conforms(
    "section 2.1, figure 2",
    "a table for each combination of entity types, named after them",
    fast="a table for each highest class, with the subclass in a column; of several classes, the "
    "commonest counts",
    setting="tables",
)
@pytest.mark.parametrize("name", PROFILES)
def test_each_combination_of_types_has_a_table(name: str) -> None:
    tables = set(tables_of(induced(name, CARS)))
    if name == "fast":
        assert tables == {"product", "product_type", "fuel_type"}
    else:
        assert tables == {"car_product", "product", "fuel_type"}


@conforms(
    "section 2.1",
    "each type has a table; the subject is the primary key, and each literal is a column",
)
@conforms("section 2.1", "the facts of a subject are one row; what it lacks is NULL")
@conforms(
    "section 2.1",
    "the data type of a column, and whether it can be NULL, follow from its values",
)
@pytest.mark.parametrize("name", PROFILES)
def test_literals_are_typed_columns_of_the_subject(name: str) -> None:
    turtle = """
    :a a :Car ; rdfs:label "A" ; :price 55160 ; :weight 1.5 ; :drive "rear" .
    :b a :Car ; rdfs:label "B" ; :price 124605 ; :drive "front" .
    """
    database = induced(name, turtle)
    [table] = database.schema.tables
    types = {column.name: column.type for column in table.columns}
    assert types == {
        "id": "TEXT PRIMARY KEY",
        "name": "TEXT",
        "price": "INTEGER NOT NULL",
        "weight": "REAL",
        "drive": "TEXT NOT NULL",
    }
    rows = rows_of(database, "SELECT id, price, weight IS NULL FROM car ORDER BY id")
    assert rows == (("a", "55160", "0"), ("b", "124605", "1"))


@conforms(
    "section 2.1",
    "a relation to one thing is a foreign key; an N:M relation is a table with two foreign keys",
)
@pytest.mark.parametrize("name", PROFILES)
def test_links_are_foreign_keys(name: str) -> None:
    turtle = """
    :f a :Film ; :director :p ; :star :p, :q . :g a :Film ; :director :p ; :star :p, :q .
    :p a :Person . :q a :Person .
    """
    tables = {table.name: table for table in induced(name, turtle).schema.tables}
    keys = {column.name: column.references for column in tables["film"].columns}
    assert keys["director"] == "person"
    pairs = [(column.name, column.references) for column in tables["film_star"].columns]
    assert pairs == [("film", "film"), ("star", "person")]


@conforms(
    "section 2.1",
    "the model receives the question and the schema: all CREATE TABLE statements with data types, "
    "constraints and comments",
)
@pytest.mark.parametrize("name", PROFILES)
def test_the_schema_is_sent_with_comments(name: str) -> None:
    _, model = answered(settings=settings_of(name))
    request = model.requests[0]
    assert request.variables["question"] == QUESTION
    schema = str(request.variables["schema"])
    assert schema.count("CREATE TABLE") == schema.count("PRIMARY KEY") + schema.count("_starring (")
    assert "runtime INTEGER" in schema and "REFERENCES" in schema and "-- " in schema


@conforms(
    "section 2.1",
    "the model receives all previous questions and answers, as far as its room goes",
)
@pytest.mark.parametrize("name", PROFILES)
def test_all_previous_questions_and_answers_are_shown(name: str) -> None:
    def turn(number: int) -> Turn:
        names = tuple(f"thing {each}" for each in range(20))
        return Turn(f"question {number}", names, text=f"Answer {number} in words.")

    dialogue = Dialogue(tuple(turn(number) for number in range(8)))
    _, model = answered(settings=settings_of(name), dialogue=dialogue)
    for request in model.requests:
        earlier: Any = request.variables["earlier"]
        assert [each["question"] for each in earlier] == [turn.question for turn in dialogue.turns]
        assert [each["text"] for each in earlier] == [turn.text for turn in dialogue.turns]
        assert all(len(each["answers"]) == 20 for each in earlier)


# --- 2.2 KG verbalization


ENGINE = """
:engine a :EngineSpecification ; rdfs:label "BMW 120 Sport" ; :enginePerformance "125 kW" ;
    :fuelType :gasoline .
:gasoline rdfs:label "Gasoline" .
:EngineSpecification rdfs:label "Engine Specification" .
"""
"""The capsule of section 2.2. Gasoline has a label, and no other fact."""
VERBALIZED = [
    (
        "BMW 120 Sport has engine performance 125 kW",
        "125 kW is engine performance of BMW 120 Sport",
    ),
    ("BMW 120 Sport has fuel type Gasoline", "Gasoline is fuel type of BMW 120 Sport"),
]


@conforms(
    "section 2.2, (i) to (iii)",
    'without prefixes; each fact is a sentence of subject, predicate and object, with "is" before '
    'types and "has" before other predicates',
    fast='facts with the same predicate are one sentence, and later sentences begin with "It"',
    setting="verbalization",
)
@conforms(
    "section 2.2, (iv)",
    "the reverse of each fact is in the same passage",
    fast="the reverse of a link is in the passage of its object, where a search for that finds it",
    setting="verbalization",
)
@conforms(
    "section 2.2, its example",
    'literals are reversed: "125 kW is engine performance of BMW 120 Sport"',
    fast="literals are not reversed",
    setting="reverse_literals",
)
@pytest.mark.parametrize("name", PROFILES)
def test_the_capsule_of_the_paper_is_verbalized_as_printed(name: str) -> None:
    passages = dict(induced(name, ENGINE).passages)
    first, *others = passages["BMW 120 Sport [engine]"].removesuffix(".").split(". ")
    if name == "fast":
        assert first == "BMW 120 Sport is a Engine Specification"
        assert set(others) == {"It has engine performance 125 kW", "It has fuel type Gasoline"}
        assert "is fuel type of BMW 120 Sport" in passages["Gasoline [gasoline]"]
    else:
        assert first == "BMW 120 Sport is Engine Specification"
        # The order of the facts is that of the graph. A reverse follows its fact.
        pairs = [tuple(others[:2]), tuple(others[2:])]
        assert sorted(pairs) == VERBALIZED


@conforms("section 2.2", "reversed facts can be left out: they help smaller models")
@pytest.mark.parametrize("name", PROFILES)
def test_reversed_facts_can_be_left_out(name: str) -> None:
    database = induced(name, ENGINE, reverse_facts=False, reverse_literals=False)
    assert not any(" of BMW 120 Sport" in text for _, text in database.passages)


HUB = ":hub a :Hub ; rdfs:label 'Hub' ; :links " + ", ".join(
    f":a_place_with_a_long_name_{number}" for number in range(60)
)


@conforms(
    "section 2.2",
    "the facts with a specific entity as subject are one passage; what is only an object has none",
    fast="long passages are divided at 900 letters; what is only an object has a passage, too",
    setting="verbalization",
)
@pytest.mark.parametrize("name", PROFILES)
def test_each_subject_has_one_passage(name: str) -> None:
    passages = induced(name, f"{HUB} .").passages
    of_hub = [text for title, text in passages if title == "Hub [hub]"]
    assert (len(of_hub) == len(passages) == 1) == (name != "fast")
    assert (max(map(len, of_hub)) > 5_000) == (name != "fast")


MOTTO = "She paints the sea in the morning. " * 60 + "She collects trilobites."
LONG = f"""
{PREFIXES}
:a a :Painter ; rdfs:label "Ann" ; :motto "{MOTTO}" .
:b a :Painter ; rdfs:label "Bob" ; :motto "He paints." .
"""


@conforms(
    "section 2.2",
    "passages are searched by a dense retriever: all of a passage is embedded, in several vectors "
    "where the encoder reads less; the nearest counts",
)
@pytest.mark.parametrize("name", PROFILES)
def test_the_whole_passage_is_embedded(name: str) -> None:
    embeddings = Embeddings(DEFAULT_MODEL)
    database = open_database(films(LONG), settings_of(name), embeddings)
    number, _ = database.find_nearest_passages("collector of fossil trilobites", embeddings)[0]
    assert "Ann" in database.passages[number][0]
    windows = embeddings.split(database.passages[number][1])
    assert len(windows) > 1
    assert "".join(windows) == database.passages[number][1]


@conforms(
    "section 2.2, figure 1",
    "the top passages are those nearest in the vector search alone",
    fast="the vector search and a search by words are fused by reciprocal rank, as in the screenshots",
    setting="passage_ranking",
)
@pytest.mark.parametrize("name", PROFILES)
def test_passages_are_ranked_by_vectors(name: str) -> None:
    embeddings = Embeddings("lexical")
    database = induced(name, CARS)
    found = database.search_passages("iX M60", embeddings, settings_of(name))
    nearest = database.find_nearest_passages("iX M60", embeddings)
    by_vectors = [(database.passages[number][0], cosine) for number, cosine in nearest[:5]]
    assert ([(source.title, source.score) for source in found] == by_vectors) == (name != "fast")


# --- 2.3 Iterative retrieval


@conforms(
    "section 2.3", "three rounds of retrieval, and another number on request", setting="rounds"
)
@pytest.mark.parametrize("name", PROFILES)
def test_there_are_three_rounds(name: str) -> None:
    for rounds in (3, 5):
        uses = [sql(f"SELECT {number}") for number in range(rounds)]
        settings = settings_of(name, rounds=rounds)
        run, model = answered(*uses, passages(), settings=settings)
        assert settings_of(name).rounds == 3
        left = [request.variables.get("left") for request in model.requests[:-1]]
        assert left == [*range(rounds, 0, -1), 1]
        assert [step.agent for step in run.steps].count("sql") == rounds


@conforms(
    "section 2.3",
    "results, and error messages, of a round are in the prompt of the next one",
)
@pytest.mark.parametrize("name", PROFILES)
def test_results_and_errors_are_in_the_next_prompt(name: str) -> None:
    uses = [sql("SELECT budget FROM film"), passages(), sql(), FINISH]
    settings = settings_of(name, rounds=4)
    _, model = answered(*uses, settings=settings)
    so_far = [str(request.variables["so_far"]) for request in model.requests[:4]]
    assert "no such column: budget" in so_far[1]
    assert "Denis Villeneuve" in so_far[2] and "no such column" in so_far[2]
    assert '"arrival" | "Arrival"' in so_far[3]


@conforms(
    "section 2.3, figure 3",
    "both branches are used at least once; the one that was not used is offered alone, without the "
    "results so far, as in the trace of the screenshots",
)
@pytest.mark.parametrize("name", PROFILES)
@pytest.mark.parametrize(("first", "other"), [("sql", "passages"), ("passages", "sql")])
def test_both_branches_are_used(name: str, first: str, other: str) -> None:
    use_of = {"sql": sql(), "passages": passages()}
    _, model = answered(use_of[first], FINISH, use_of[other], settings=settings_of(name))
    assert model.requests[2].variables["tools"] == [other]
    assert model.requests[2].variables["so_far"] == "nothing yet"


@conforms(
    "section 3", "the tools are used in any order, and the model decides when there is enough"
)
@pytest.mark.parametrize("name", PROFILES)
def test_the_model_ends_the_retrieval(name: str) -> None:
    run, _ = answered(passages(), sql(), FINISH, settings=settings_of(name))
    agents = [step.agent for step in run.steps]
    assert agents[2:5] == ["passages", "sql", "finish"]


# --- 2.4 Branch integration


POWER = """
:a a :Engine ; rdfs:label "A" ; :power "125 kW" . :b a :Engine ; rdfs:label "B" ; :power "90 kW" .
:c a :Wheel ; rdfs:label "C" .
"""


@conforms(
    "sections 2.1 and 2.4",
    "the second agent has the SQL outputs: schema with comments, query and rows",
)
@pytest.mark.parametrize("name", PROFILES)
def test_the_answerer_knows_the_tables_of_the_sql(name: str) -> None:
    query = "SELECT NAME, MAX(POWER) AS best FROM ENGINE"
    run, model = answered(
        sql(query),
        passages(),
        FINISH,
        answer=cited(("125 kW", 1)),
        kg=films(PREFIXES + POWER),
        settings=settings_of(name),
    )
    sources = str(model.requests[-1].variables["sources"])
    definition = sources[: sources.index("[1] sql")]
    assert '-- 90 … 125, in "kW"' in definition
    assert "CREATE TABLE engine" in definition and "wheel" not in definition
    assert [value.term for value in answer_of(run).values] == [Literal("125 kW")]


@conforms(
    "section 2.4",
    "a second agent answers from the SQL outputs and the top passages together; no branch goes first",
)
@conforms(
    "section 3",
    "the answer cites its sources by number: rows of SQL, and passages",
)
@pytest.mark.parametrize("name", PROFILES)
def test_the_answer_is_written_from_all_sources(name: str) -> None:
    for uses in ((sql(), passages(), FINISH), (passages(), sql(), FINISH)):
        run, model = answered(*uses, settings=settings_of(name))
        sources = str(model.requests[-1].variables["sources"])
        tools = [source.tool for source in run.output("tool_selector")]
        for number, tool in enumerate(tools, 1):
            assert f"[{number}] {tool}" in sources
        assert set(tools) == {"sql", "passages"}
    assert run.output("answerer").cited_numbers == {1}


# --- 4 Evaluation


@conforms(
    "section 4",
    "four configurations are compared: SPARQL alone, SQL alone, passages alone, and SQL with passages; "
    "each is shown what its tools need, and no more",
    setting="ablation",
)
@pytest.mark.parametrize("name", PROFILES)
@pytest.mark.parametrize(
    ("ablation", "shown", "hidden"),
    [
        ("none", ["CREATE TABLE", "SELECT", "passages"], ["SPARQL"]),
        ("sql_only", ["CREATE TABLE", "SELECT"], ["passage", "SPARQL"]),
        ("passages_only", ["passages"], ["CREATE TABLE", "SELECT", "SQL"]),
        ("sparql_only", ["SPARQL"], ["CREATE TABLE", "passage", "SQLite"]),
    ],
)
def test_a_configuration_is_shown_its_own_tools(
    name: str, ablation: str, shown: list[str], hidden: list[str]
) -> None:
    uses = {
        "none": [sql(), passages(), FINISH],
        "sql_only": [sql(), FINISH],
        "passages_only": [passages(), FINISH],
        "sparql_only": [use("sparql", query="ASK {}"), FINISH],
    }[ablation]
    model = Scripted(
        {**script(*uses, answer=cited(("dune", 1))), "ragonite/tool_selector_sparql": uses}
    )
    settings = settings_of(name, ablation=ablation)
    ragonite(model, settings=settings).go()
    first = "".join(message.content for message in model.requests[0].messages)
    assert all(text in first for text in shown)
    assert not [text for text in hidden if text in first]
    no_sources = {
        "none": [],
        "sql_only": ["passage"],
        "passages_only": ["query", "table", "column", "rows"],
        "sparql_only": ["passage", "table"],
    }[ablation]
    instructions = model.requests[-1].messages[0].content
    assert not [text for text in no_sources if text in instructions]


@conforms(
    "section 4, Runtimes",
    "the seconds of tool selection, SQL, text search and answering are recorded for each question",
)
@pytest.mark.parametrize("name", PROFILES)
def test_each_step_has_its_seconds(name: str) -> None:
    run, _ = answered(settings=settings_of(name))
    timed = {step.agent for step in run.steps if step.seconds is not None}
    assert timed >= {"tool_selector", "sql", "passages", "answerer"}


def test_the_recordings_of_the_paper_cite_texts_and_repair_a_query_in_a_dialogue() -> None:
    first, second = (kgwb.recording(f"paper/ragonite/{number}") for number in (1, 2))
    assert {first.settings.profile, second.settings.profile} == {"paper"}
    assert first.output("answerer").cited_numbers == {2, 3, 4, 6}
    assert {first.output("tool_selector")[number - 1].tool for number in (2, 3, 4)} == {"passages"}
    assert all(value.support for value in answer_of(first).values)
    [turn] = second.dialogue.turns
    assert turn.answers == answer_of(first).labels
    assert turn.text and "[" not in turn.text
    assert "no such column" in second.output("sql[turn 1]").error
    assert answer_of(second).labels == ("Spirited Away",)


CONVERSATION = range(3, 8)
"""The recordings of a conversation of section 4 with texts beside the graph, one for each turn."""


def test_a_recorded_conversation_of_section_4_is_answered_as_its_gold_says() -> None:
    questions = load_questions(sample_path("films").with_suffix(".conversations.jsonl"))
    asked = [question for question in questions if question.dialogue == "films-hitchcock"]
    runs = [kgwb.recording(f"paper/ragonite/{number}") for number in CONVERSATION]
    for position, (question, run) in enumerate(zip(asked, runs, strict=True)):
        assert run.settings.profile == "paper"
        assert run.question == question.question
        earlier = [turn.question for turn in run.dialogue.turns]
        assert earlier == [each.question for each in asked[:position]]
        answers = [str(value.term) for value in answer_of(run).values]
        assert sorted(answers) == sorted(question.answers or ()), question.id


def test_a_recorded_answer_cites_a_text_and_the_graph() -> None:
    run = kgwb.recording("paper/ragonite/7")
    [psycho] = answer_of(run).values
    [text] = psycho.texts
    assert (text.file, text.place) == ("hitchcock.md", "line 5")
    assert psycho.support
    sources = run.output("answerer").sources
    cited = {sources[number - 1].tool for number in run.output("answerer").cited_numbers}
    assert cited == {"sql", "passages"}


def test_a_recorded_question_is_asked_of_tables_that_a_person_has_improved() -> None:
    run = kgwb.recording("paper/ragonite/8")
    [query, *_] = run.output("answerer").sources
    assert query.columns == ("id", "name", "minutes", "oscars")
    [film] = [table for table in run.output("ragonite").tables if table.name == "film"]
    names = [column.name for column in film.columns]
    assert {"minutes", "oscars", "released"} < set(names)
    assert not {"runtime", "aspect_ratio", "label_de"} & set(names)
    assert len(answer_of(run).values) == 5
    assert all(value.support for value in answer_of(run).values)


def test_the_texts_and_annotations_of_the_recordings_are_those_of_the_samples() -> None:
    folder = sample_path("films").parent
    opened = {
        "documents": ("paper/ragonite/7", open_documents(str(folder / "films.texts"))),
        "annotations": (
            "paper/ragonite/8",
            open_annotations(str(folder / "films.annotations.jsonl")),
        ),
    }
    for kind, (name, extension) in opened.items():
        calls = kgwb.recording(name).calls.values()
        [recorded] = [call for call in calls if call.kind == f"ragonite.{kind}"]
        assert recorded.request["identity"] == extension.identity
