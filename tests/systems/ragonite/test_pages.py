"""An IRI that leads out of the graph is a whole IRI in its column: it can be opened (figure 2)."""

from ragonite import execute, induce_turtle, rows_of

PAGE = "https://www.cars.example/en/all-models/ix3/" + "a" * 80 + "/index.html?x=1,2"
TURTLE = f"""
:ix3 a :Car ; rdfs:label "iX3" ; :url <{PAGE}> ; :fuel <http://e/fuel/electric> .
:x5 a :Car ; rdfs:label "X5" ; :url <https://www.cars.example/en/x5> ; :fuel <http://e/fuel/diesel> .
:x7 a :Car ; rdfs:label "X7" ; :url <https://other.example/named> .
<https://other.example/named> rdfs:label "The page of the X7" .
"""


def test_a_page_outside_of_the_graph_keeps_its_whole_iri() -> None:
    database = induce_turtle(TURTLE)
    rows = dict(rows_of(database, "SELECT id, url FROM car"))
    assert rows["x5"] == "https://www.cars.example/en/x5"
    assert rows["ix3"] == PAGE.replace(",", "%2C")
    assert rows["x7"] == "named"
    assert dict(rows_of(database, "SELECT id, fuel FROM car"))["x5"] == "diesel"


def test_the_cell_of_a_page_is_the_page() -> None:
    database = induce_turtle(TURTLE)
    source = execute(database, "SELECT id, url FROM car WHERE id = 'ix3'")
    terms = {meaning.text: str(meaning.term) for meaning in source.meanings}
    assert terms[PAGE.replace(",", "%2C")] == PAGE
    text = next(text for title, text in database.passages if title.startswith("iX3"))
    assert PAGE in text


def test_a_page_is_found_by_a_pattern() -> None:
    database = induce_turtle(TURTLE)
    rows = rows_of(database, "SELECT name FROM car WHERE url LIKE '%cars.example/en/x5'")
    assert rows == (("X5",),)
