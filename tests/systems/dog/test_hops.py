"""Topic entities, then one hop: its relations, the chosen one, its triples, and the answers in them."""

from __future__ import annotations

import re
from contextlib import nullcontext
from typing import Any

import pytest
import rdflib
from debate import ARRIVAL, DIRECTOR, filtering, trying
from rdflib import BNode, Literal
from small import DOG, FILMS, alone, films, iri

from kgwb import open_kg, profile
from kgwb.errors import InvalidReplyError
from kgwb.kg import Graph
from kgwb.run.answers import Value
from kgwb.systems.dog.hop import (
    fill_triples,
    filter_relation,
    find_answer_values,
    get_relations,
    try_answer,
)
from kgwb.systems.dog.question import bracket_names, find_topic_entities
from kgwb.systems.dog.records import (
    FilledTriples,
    FilteredRelation,
    Head,
    Relation,
    Relations,
    TopicEntities,
    TriedAnswer,
    combine_names,
)
from kgwb.terms import Triple


def find_topics(question: str, *entities: str) -> tuple[TopicEntities, Any]:
    """The topic entities if a model names these, and the model."""
    replies = {"topic_entity": {"entities": list(entities)}}
    topics, _, model = alone(lambda run: find_topic_entities(question, run), replies, of=DOG)
    return topics, model


def test_all_names_get_brackets_in_the_spelling_of_the_question() -> None:
    topics, _ = find_topics("who wrote ARRIVAL and Dune?", "dune", "Arrival")
    assert topics == TopicEntities("who wrote [ARRIVAL] and [Dune]?", ("ARRIVAL", "Dune"))
    marked = "which films star [Amy Adams] and [Jeremy Renner]"
    topics, model = find_topics(marked)  # the model is not asked
    assert (topics, model.call_count()) == (
        TopicEntities(marked, ("Amy Adams", "Jeremy Renner")),
        0,
    )


@pytest.mark.parametrize(
    ("question", "names", "marked"),
    [
        (
            "the arrivals of Arrival",
            ["Arrival"],
            "the arrivals of [Arrival]",
        ),  # a whole word comes before a part of one
        ("who made Dune and Dune Part Two", ["Dune Part Two"], "who made Dune and [Dune Part Two]"),
        ("Wer drehte »Amélie«?", ["Amélie"], "Wer drehte »[Amélie]«?"),
        ("films like $9.99 (2008)", ["$9.99"], "films like [$9.99] (2008)"),
        ("哪部电影", ["电影"], "哪部[电影]"),
    ],
)
def test_a_name_gets_brackets_at_its_first_place(
    question: str, names: list[str], marked: str
) -> None:
    assert bracket_names(question, names).question == marked


@pytest.mark.parametrize(
    ("names", "problem", "taken"),
    [
        ([], "no entity is named: name what 'who directed Dune or arrival?' is about", None),
        (
            ["Solaris"],
            "'Solaris' is not in the question: copy the names from 'who directed Dune or",
            None,
        ),
        (["Dune", " "], "'' is not in the question", ["Dune"]),
        (["Dune or", "Dune"], "'Dune' is part of another name", ["Dune or"]),
        (["Dune: Part One"], "'Dune: Part One' is not in the question", ["Dune"]),
        (["Arrivals", "Dune"], "'Arrivals' is not in the question", ["Dune", "arrival"]),
    ],
)
def test_a_wrong_name_is_sent_back_and_in_the_end_replaced_by_the_nearest_label(
    names: list[str], problem: str, taken: list[str] | None
) -> None:
    question = "who directed Dune or arrival?"
    with pytest.raises(InvalidReplyError, match=re.escape(problem)) if not taken else nullcontext():
        topics, model = find_topics(question, *names)
        assert problem in model.requests[-1].messages[-1].content
        assert list(topics.entities) == taken
        assert topics.question.replace("[", "").replace("]", "") == question


# --- hops


def head(*names: str) -> Head:
    terms = tuple(iri(name) for name in names)
    return Head("these", tuple(map(Value, terms, names)), terms)


def filled(
    name: str, way: Any, start: Head, turtle: str = "", kg: Graph | None = None, **settings: Any
) -> tuple[FilledTriples, list[str]]:
    """The triples of a head and a predicate, and the notes on the step."""
    chosen = FilteredRelation(start.name, "", Relation(name, way, (iri(name),)))
    kg, fast = kg or films(FILMS + turtle), profile("fast", **settings)
    result, run, _ = alone(
        lambda run: fill_triples(chosen, start, run), kg=kg, settings=fast, of=DOG
    )
    return result, run.steps[-1].notes


def labels(result: FilledTriples) -> list[str]:
    return [value.label for value in result.values]


# --- relations


def test_relations_are_found_in_both_directions_without_noise() -> None:
    relations, _, model = alone(lambda run: get_relations(head("arrival", "denis"), run), of=DOG)
    names = "based on, birth place, director, ~director, number of children, runtime, starring"
    assert [str(relation) for relation in relations.found] == names.split(", ")
    assert model.call_count() == 0


def test_predicates_of_one_name_are_one_relation() -> None:
    kg = films(FILMS + "@prefix o: <http://example.org/other/> . :arrival o:director :lynch .")
    relations, _, _ = alone(lambda run: get_relations(ARRIVAL, run), kg=kg, of=DOG)
    director = relations.find_relation("Director")
    assert director is not None
    assert len(director.iris) == 2
    chosen = FilteredRelation("Arrival", "", director)
    result, _, _ = alone(lambda run: fill_triples(chosen, ARRIVAL, run), kg=kg, of=DOG)
    assert labels(result) == ["David Lynch", "Denis Villeneuve"]


@pytest.mark.parametrize(("term", "names"), [(Literal(116), ["~runtime"]), (BNode("b"), [])])
def test_relations_of_literals_lead_back_and_a_blank_node_has_none(
    term: Any, names: list[str]
) -> None:
    relations, _, _ = alone(
        lambda run: get_relations(Head("it", (Value(term, "it"),)), run), of=DOG
    )
    assert [str(relation) for relation in relations.found] == names


# --- the choice


OFFERED = Relations("Arrival", (DIRECTOR, Relation("starring", "in", (iri("starring"),))))


def filtered(*replies: Any) -> tuple[FilteredRelation, Any]:
    script = {"relation_filtering": list(replies)}
    result, _, model = alone(lambda run: filter_relation(OFFERED, "who?", run), script, of=DOG)
    return result, model


def test_the_relation_is_chosen_by_its_name_and_direction() -> None:
    choice, model = filtered(filtering("~Starring "))
    assert choice.relation == OFFERED.found[1]
    assert model.requests[0].variables == {
        "question": "who?",
        "entity": "Arrival",
        "relations": ["director", "~starring"],
    }
    assert filtered(filtering(""))[0].relation is None  # a model may choose none


def test_a_relation_in_the_wrong_direction_is_sent_back() -> None:
    assert filtered(filtering("starring"), filtering("director"))[0].relation == DIRECTOR
    with pytest.raises(InvalidReplyError, match="~director"):
        filtered(*[filtering("~director")] * 3)


@pytest.mark.parametrize(
    ("question", "ablation", "offered", "calls"),
    [
        ("where is [x]", "none", (), 0),
        ("where is [x]", "none", (DIRECTOR,), 0),
        ("which [x] has [y]", "none", (DIRECTOR,), 1),
        ("where is [x]", "no_focusing", (DIRECTOR,), 1),
    ],
)
def test_the_only_relation_is_taken_without_a_model_unless_choosing_none_has_a_meaning(
    question: str, ablation: Any, offered: tuple[Relation, ...], calls: int
) -> None:
    choice, _, model = alone(
        lambda run: filter_relation(Relations("x", offered), question, run),
        {"relation_filtering": filtering("")},
        settings=profile("fast", ablation=ablation),
        of=DOG,
    )
    assert (choice.relation, model.call_count()) == (
        DIRECTOR if offered and not calls else None,
        calls,
    )


# --- the triples


def test_tails_come_with_the_triples_that_lead_to_them() -> None:
    result, notes = filled("director", "out", head("arrival", "lynchs_dune"))
    assert labels(result) == ["David Lynch", "Denis Villeneuve"]
    assert result.values[1].support == ((iri("arrival"), iri("director"), iri("denis")),)
    lynch, denis = (
        ("lynchs_dune", "director", "David Lynch"),
        ("arrival", "director", "Denis Villeneuve"),
    )
    assert (result.triples, result.found, notes) == ((lynch, denis), 2, [])


def test_an_inverse_relation_leads_to_subjects_but_not_back_to_the_start() -> None:
    start = Head("Denis Villeneuve", (Value(iri("denis"), "Denis Villeneuve"),), (iri("dune"),))
    result, _ = filled("director", "in", start)
    assert labels(result) == ["Arrival", "Sicario"]  # the question began at Dune
    assert result.triples[0] == ("Denis Villeneuve", "~director", "Arrival")


def test_fan_out_limits_tails_and_triples_with_a_note_and_shows_one_triple_of_each_tail() -> None:
    result, notes = filled("starring", "out", head("arrival", "dune"), fan_out=2)
    assert (labels(result), result.found) == (["Amy Adams", "Jeremy Renner"], 3)
    assert [re.findall(r"\d+", note) for note in notes] == [["3", "2"]]
    turtle = ":a :r :x, :y . :b :r :x, :y . :c :r :x, :y . :x rdfs:label 'X' . :y rdfs:label 'Y' ."
    result, notes = filled("r", "out", head("a", "b", "c"), turtle, fan_out=2)
    assert result.triples == (("a", "r", "X"), ("a", "r", "Y"))
    assert [re.findall(r"\d+", note) for note in notes] == [["2", "6"]]


@pytest.mark.parametrize(
    ("names", "relation", "fan_out", "row_limit", "note"),
    [
        (["arrival", "dune"], "director", 9, 9, "all triples"),
        (["arrival", "gentilly"], "director", 9, 9, "all triples; no triple for gentilly"),
        (["gentilly", "missoula"], "director", 9, 9, "no triple for gentilly, missoula"),
        (
            ["arrival", "dune", "gentilly"],
            "starring",
            2,
            9,
            "cut: 2 of 3 triples; no triple for gentilly",
        ),
        (["arrival", "dune", "gentilly"], "starring", 9, 2, "cut: 2 of more than 2 triples"),
    ],
)
def test_the_note_of_a_result_names_vertices_without_a_triple_and_says_if_it_was_cut(
    names: list[str], relation: str, fan_out: int, row_limit: int, note: str
) -> None:
    kg = open_kg(rdflib.Graph().parse(data=FILMS, format="turtle"), row_limit=row_limit)
    result, _ = filled(relation, "out", head(*names), kg=kg, fan_out=fan_out)
    assert result.note == note


def test_a_result_without_tails_has_a_reason() -> None:
    result, _ = filled("director", "in", head("gentilly"))
    assert result.values == ()
    assert "~director" in result.reason
    result, _ = filled("director", "out", Head("3", (Value(Literal(3), "3"),)))
    assert (result.values, result.queries) == ((), ())


@pytest.mark.parametrize("node", ["_:m", ":m1"])
def test_the_tails_behind_a_node_without_a_name_are_found(node: str) -> None:
    marriage = f":denis :marriage {node} . {node} :spouse :tanya ; :since 1990 . "
    turtle = f"{marriage} :tanya rdfs:label 'Tanya Lapointe' ."
    result, notes = filled("marriage", "out", head("denis"), turtle)
    assert labels(result) == ["1990", "Tanya Lapointe"]
    assert result.triples[1] == ("denis", "marriage", "…", "spouse", "Tanya Lapointe")
    assert len(result.values[1].support) == 2
    assert len(notes) == 1
    further, _, _ = alone(
        lambda run: get_relations(
            Head("they", result.values, result.values[1].support[0][:1]), run
        ),
        kg=films(FILMS + turtle),
        of=DOG,
    )
    assert "~spouse" in map(str, further.found)


@pytest.mark.parametrize(
    ("name", "way", "start", "turtle", "tails", "triple"),
    [
        ("actor", "in", "amy", "_:m :actor :amy ; :film :sicario . ", ["Sicario"],
         ("amy", "~actor", "…", "film", "Sicario")),
        ("homepage", "out", "denis", ":denis :homepage <http://example.org/denis.html> .", ["denis.html"],
         ("denis", "homepage", "denis.html")),  # a page on the web is a tail
    ],
)  # fmt: skip
def test_only_nodes_without_a_name_are_followed_further(
    name: str, way: Any, start: str, turtle: str, tails: list[str], triple: tuple[str, ...]
) -> None:
    result, _ = filled(name, way, head(start), turtle)
    assert (labels(result), result.triples) == (tails, (triple,))


def test_in_a_graph_without_labels_a_vertex_has_the_name_in_its_iri() -> None:
    kg = films("@prefix : <http://example.org/> . :a :r :bee . :bee :s :c .")
    result, _ = filled("r", "out", head("a"), kg=kg)
    assert labels(result) == ["bee"]


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        (["Dune"], "Dune"),
        (["A", "B"], "A | B"),
        (["A", "B", "C"], "A | 2 others"),
        (["[REC|2]"], "(REC/2)"),
    ],
)
def test_several_vertices_have_one_name_in_a_question(names: list[str], shown: str) -> None:
    assert combine_names([Value(iri("x"), name) for name in names]) == shown


# --- answer trying


TRIPLES = (("Arrival", "starring", "Amy Adams"), ("Arrival", "starring", "…", "as", "Louise Banks"))
FILLED = FilledTriples("list", head="Arrival", triples=TRIPLES, note="all triples")


def tried(*replies: Any, filled: tuple[FilledTriples, ...] = (FILLED,)) -> tuple[TriedAnswer, Any]:
    script = {"answer_trying": list(replies)}
    decision, _, model = alone(lambda run: try_answer("who?", filled, run), script, of=DOG)
    return decision, model


def test_answers_are_names_in_the_triples_and_letter_case_and_spaces_are_ignored() -> None:
    nothing = FilledTriples("list", reason="nothing", head="Roma", note="no triple")
    decision, model = tried(
        trying("amy  adams", "Louise Banks", "Arrival"), filled=(FILLED, nothing)
    )
    assert (decision.sufficient, len(decision.answers)) == ("yes", 3)
    assert model.requests[0].variables["found"] == [
        {
            "entity": "Arrival",
            "triples": [list(triple) for triple in TRIPLES],
            "note": "all triples",
        },
        {"entity": "Roma", "triples": [], "note": "no triple; nothing"},
    ]


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (trying("Jeremy Renner"), "'Jeremy Renner' is not in the triples"),
        (trying("starring"), "'starring' is not in the triples"),
        ({**trying(), "sufficient": "yes"}, "the reply is yes, but gives no answer"),
        ({**trying("Amy Adams"), "sufficient": "no"}, "the reply is no, with answers"),
        ({**trying(), "sufficient": "No, yes is too early"}, "Input should be 'yes' or 'no'"),
        ("Yes, and here is why not.", "no JSON"),
    ],
)
def test_a_reply_that_contradicts_itself_or_the_triples_is_sent_back(
    reply: Any, problem: str
) -> None:
    assert tried(reply, trying())[0].sufficient == "no"
    with pytest.raises(InvalidReplyError, match=problem):
        tried(reply, reply, reply)


AMY, FILM = iri("amy"), iri("arrival")
PLAYS = (FILM, iri("starring"), AMY)


def amy(*support: Triple) -> FilledTriples:
    return FilledTriples("list", (Value(AMY, "Amy Adams", support),))


YES = TriedAnswer("yes", "", ("Amy Adams",))


def test_all_triples_that_lead_to_an_answer_support_it() -> None:
    sicario = (iri("sicario"), iri("starring"), AMY)
    assert find_answer_values(YES, [amy(PLAYS), amy(sicario)], ()) == (
        Value(AMY, "Amy Adams", (PLAYS, sicario)),
    )


def test_of_vertices_with_one_label_the_answer_is_the_one_that_most_entities_lead_to() -> None:
    homonyms = FilledTriples(
        "list", (Value(AMY, "Amy Adams"), Value(iri("other_amy"), "Amy Adams"))
    )
    assert [value.term for value in find_answer_values(YES, [homonyms, amy()], ())] == [AMY]
    assert len(find_answer_values(YES, [homonyms], ())) == 2


def test_a_head_can_be_the_answer() -> None:
    heads = (Head("Arrival and Dune", (Value(FILM, "Arrival"), Value(iri("dune"), "Dune"))),)
    named = find_answer_values(TriedAnswer("yes", "", ("arrival",)), [amy(PLAYS)], heads)
    assert named == (Value(FILM, "Arrival", (PLAYS,)),)


# --- two things of one name

TWINS = """
@prefix o: <http://example.org/other/> . @prefix q: <http://example.org/quiet/> .
:arrival :Director :amy ; :DIRECTOR :jeremy ; o:marked :ted ; o:spaced :gentilly ; q:blank :missoula .
o:marked rdfs:label "~director" . o:spaced rdfs:label "director  of" . :spaced rdfs:label "director of" .
:arrival :spaced :lynch . q:blank rdfs:label " " . :dune :basedOn :arrival .
"""


def test_every_relation_that_is_offered_can_be_chosen() -> None:
    kg = films(FILMS + TWINS)
    relations, _, _ = alone(lambda run: get_relations(ARRIVAL, run), kg=kg, of=DOG)
    names = [str(relation) for relation in relations.found]
    assert len(set(names)) == len(names)
    assert {"director", "Director", "DIRECTOR", "~based on"} <= set(names)
    assert sum(len(relation.iris) for relation in relations.found) == 11
    for number, name in enumerate(names):
        script = {"relation_filtering": filtering(name)}
        choice, _, _ = alone(
            lambda run: filter_relation(relations, "who?", run), script, kg=kg, of=DOG
        )
        assert choice.relation == relations.found[number]


def test_the_exact_name_of_a_relation_goes_before_one_in_other_letter_case() -> None:
    upper = Relation("Director", "out", (iri("Director"),))
    found = Relations("Arrival", (upper, DIRECTOR))
    assert found.find_relation("director") == DIRECTOR
    assert found.find_relation("Director") == upper
    assert found.find_relation(" director ") == DIRECTOR
    assert found.find_relation("DIRECTOR") == upper


def test_literals_of_one_text_stay_different_tails_and_answers() -> None:
    turtle = ":arrival :r '5', 5, 'Same'@en, 'Same'@de . :r rdfs:label 'r' ."
    result, _ = filled("r", "out", ARRIVAL, turtle)
    terms = {value.term for value in result.values}
    assert terms == {
        Literal("5"),
        Literal(5),
        Literal("Same", lang="en"),
        Literal("Same", lang="de"),
    }
    values = find_answer_values(TriedAnswer("yes", "", ("5", "Same")), [result], ())
    assert {value.term for value in values} == terms
    assert len(values) == 4
    assert all(len(value.support) == 1 for value in values)


def test_answers_come_in_the_order_in_which_the_model_gives_them() -> None:
    result, _ = filled("starring", "out", ARRIVAL)
    for names in (("Jeremy Renner", "Amy Adams"), ("Amy Adams", "Jeremy Renner")):
        values = find_answer_values(TriedAnswer("yes", "", names), [result], ())
        assert tuple(value.label for value in values) == names
