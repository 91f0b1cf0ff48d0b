"""RAGonite ("iterative retrieval on induced databases and verbalized RDF"), section by section.

The published code, https://github.com/Fraunhofer-IIS/RAGonite, induces the database and writes the
passages. The rest is known from the paper and from its screenshots.
"""

from __future__ import annotations

from typing import Any

import pytest
from ragonite import PREFIXES, induce_turtle
from small import films

from conformance.claims import Gap, conforms
from kgwb.kg.embeddings import DEFAULT_MODEL, Embeddings
from kgwb.systems.ragonite.database import Database
from kgwb.systems.ragonite.database_file import open_database
from kgwb.systems.ragonite.settings import RagoniteSettings

PROFILES = ("paper", "reference", "fast")
CARS = """
:ix3 a :Car, :Product ; rdfs:label "iX3" ; :fuelType :electric ; :price "55160" .
:m60 a :Car, :Product ; rdfs:label "iX M60" ; :fuelType :electric ; :price "124605" ; :length "4953 mm" .
:hat a :Product ; rdfs:label "Hat" ; :price "20" .
:electric a :FuelType ; rdfs:label "fullElectric" .
"""
"""Figure 2, with a product that is no car."""
GAPS: list[Gap] = []


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


# --- 2.2 KG verbalization


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
