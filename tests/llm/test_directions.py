"""Which end is which: names of predicates, and questions asked of one triple from either end."""

from __future__ import annotations

import re
from typing import Any

import pytest
import rdflib
from small import answer_of, published, qir

from kgwb import open_kg
from kgwb.kg import Graph
from kgwb.llm import Scripted
from kgwb.llm.base import ChatRequest
from kgwb.llm.rules.words import compare_wordings, find_wording
from kgwb.workbench import Workbench

DIRECTIONS = """
parent | parent of | in
parent of | parentOf | out
parent | has parent | out
child | parent of | out
children | parent | in
part of | is part of | out
part | has part | out
manager | manages | in
manages | managed by | in
employee | employs | out
employer | employee of | out
employer | works for | out
feeds | is fed by | in
owns | belongs to | in
subclasses | subClassOf | in
superclass | sub class of | out
member | member of sports team | in
head of | head of government | in
position | position held | out
supplies | supplied by | in
narrower concepts | narrower | out
narrower terms | has broader | in
broader concept | broader | out
broader concept of | narrower | out
precedes | follows | in
wrote | author of | out
stars in | starred actors | in
plays in | employed musicians | in
actors | starred actors | out
mentored | mentor | in
sired | has sire | in
enters | entered by | in
"""


@pytest.mark.parametrize("row", DIRECTIONS.strip().splitlines())
def test_the_names_of_a_relation_and_a_predicate_tell_the_direction(row: str) -> None:
    relation, predicate, direction = row.split(" | ")
    assert compare_wordings(relation, predicate).direction == direction


@pytest.mark.parametrize(
    ("relation", "predicate", "certainty"),
    [
        ("spouse", "married to", "either"),
        ("host", "hosts", "open"),  # the hosts of it, or what it hosts
        ("director", "director", "likely"),
        ("director", "director of", "certain"),
        ("starring actor cast", "cast", "guessed"),
        ("location", "located in", "guessed"),
    ],
)
def test_how_far_the_names_tell_it(relation: str, predicate: str, certainty: str) -> None:
    assert compare_wordings(relation, predicate).certainty == certainty


WORDINGS = {
    "who is the parent of @": ("parent of", False),
    "who is @ the parent of": ("parent of", True),
    "is @ the parent of @": ("parent of", True),
    "whose parent is @": ("parent of", True),
    "which units have @ as a parent": ("parent of", True),
    "who is the man with @ for his boss": None,
    "what does @ have as its parent": ("parent of", False),
    "which boxes does @ feed": ("feeded", True),
    "which dogs did @ sire": ("sired", True),
    "what feeds @": ("feeds", False),
    "by whom is @ managed": ("managed by", True),
    "@ is the capital of which country": ("capital of", True),
    "who wrote the films directed by @": None,
    "when was @ born": None,
}


@pytest.mark.parametrize(("question", "wording"), WORDINGS.items())
def test_a_question_names_a_relation_from_one_end(
    question: str, wording: tuple[str, bool] | None
) -> None:
    assert find_wording(question.split()) == wording


def _graph(triple: str) -> Graph:
    name = re.sub(" (.)", lambda match: match[1].upper(), triple)
    turtle = f"""
        @prefix : <http://e/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
        :a :{name} :b . :a rdfs:label "Sorin" . :b rdfs:label "Otilia" ."""
    return open_kg(rdflib.Graph().parse(data=turtle, format="turtle"))


ASKED = """
parent of | Who is the parent of Otilia? | Sorin
parent of | Who is the parent of Sorin? |
parent of | Is Sorin the parent of Otilia? | true
parent of | Is Otilia the parent of Sorin? | false
mentor of | Whose mentor is Sorin? | Otilia
has child | Who is the child of Sorin? | Otilia
has child | Who is the child of Otilia? |
has child | Is Sorin the child of Otilia? | false
supervises | Who supervises Otilia? | Sorin
supervises | Who supervises Sorin? |
supervises | Who is the supervisor of Otilia? | Sorin
supervises | Does Otilia supervise Sorin? | false
trained under | Who did Otilia train under? |
trained under | Who did Sorin train under? | Otilia
trained under | Did Otilia train under Sorin? | false
trained under | How many people trained under Sorin? | 0
reports to | How many people report to Sorin? | 0
reports to | How many people report to Otilia? | 1
alumni of | Is Otilia an alumna of Sorin? | false
head of government | Is Otilia the head of government of Sorin? | true
point of contact | Was Otilia the point of contact for Sorin? | true
trained by | Who is the trainer of Sorin? | Otilia
trained by | Who is the trainer of Otilia? |
trained by | Who trained Sorin? | Otilia
sold by | Who was Sorin sold by? | Otilia
sold to | Who was Sorin sold by? |
sold to | Who was Sorin sold to? | Otilia
sold to | Did Otilia sell Sorin? |
sold to | What did Otilia sell? |
lent to | By whom was Sorin lent? |
rented from | Who was Sorin rented by? |
works for | Who works for Otilia? | Sorin
works for | Who works for Sorin? |
sibling of | Who is the sibling of Otilia? | Sorin
sibling of | Who is the sibling of Sorin? | Otilia
"""


@pytest.mark.parametrize("row", ASKED.strip().splitlines())
@pytest.mark.parametrize("system", ["chatty_kg", "triad", "dog"])
def test_a_question_from_the_other_end_is_not_answered_in_plain(row: str, system: str) -> None:
    name, question, right = (cell.strip() for cell in row.split("|"))
    answer = answer_of(Workbench(_graph(name), "rules", system=system).ask(question))
    assert answer.labels in ((right,), ()) if right else not answer.labels
    if system == "chatty_kg":
        assert answer.labels == ((right,) if right else ())


@pytest.mark.parametrize(("name", "number"), [("parent of", "0"), ("has parent", "1")])
def test_who_is_only_the_other_end_of_a_predicate_has_none_of_it(name: str, number: str) -> None:
    workbench = Workbench(_graph(name), "rules")
    answer = answer_of(workbench.ask("How many parents does Sorin have?"))
    assert "".join(answer.labels) == number


def _read_as_parent(request: ChatRequest) -> dict[str, Any]:
    """What a model replies that reads any question as one for the parent of Sorin, and takes what is offered."""
    task = request.task.partition("/")[2]
    replies = {
        "qir": qir("Sorin | parent | ?x"),
        "qir_published": published(qir("Sorin | parent | ?x")),
        "classifier": {"reason": "", "label": "self-contained"},
        "classifier_published": {"label": "self-contained"},
        "translator": {"question": "Who is the parent of Sorin?"},
        "vertex_selection_labels": {"label": "Sorin"},
        "predicate_selection": {"reasoning": "", "predicates": [["parent of"]]},
        "predicate_selection_published": {"reasoning": "", "predicates": ["parent of"]},
    }
    return replies[task]


@pytest.mark.parametrize("profile", ["fast", "paper"])
def test_a_triple_that_says_the_reverse_of_a_models_relation_is_no_plain_answer(
    profile: str,
) -> None:
    workbench = Workbench(_graph("parent of"), Scripted(_read_as_parent), settings=profile)
    answer = answer_of(workbench.ask("Who is the parent of Sorin?"))
    assert answer.labels == {"fast": (), "paper": ("Otilia",)}[profile]
    assert bool(answer.doubt) == (profile == "paper")


ONTOLOGY = """
@prefix : <http://example.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> . @prefix skos: <http://www.w3.org/2004/02/skos/core#> .
:Thing a owl:Class ; rdfs:label "Thing" .
:Agent a owl:Class ; rdfs:label "Agent" ; rdfs:subClassOf :Thing .
:MediaItem a owl:Class ; rdfs:label "MediaItem" ; rdfs:subClassOf :Thing .
:Novel a owl:Class ; rdfs:label "Novel" ; rdfs:subClassOf :MediaItem ;
    rdfs:subClassOf [ a owl:Restriction ; owl:onProperty :about ; owl:someValuesFrom :Thing ] ;
    owl:equivalentClass [ a owl:Class ; owl:intersectionOf ( :MediaItem [ owl:complementOf :Sonata ] ) ] .
:Sonata a owl:Class ; rdfs:label "Sonata" ; rdfs:subClassOf :MediaItem .
:about a owl:ObjectProperty ; rdfs:label "about" ; rdfs:subPropertyOf :overlaps .
:overlaps a owl:ObjectProperty ; rdfs:label "overlaps" .
:t1 a skos:Concept ; skos:prefLabel "tools" ; skos:narrower :t2 .
:t2 a skos:Concept ; skos:prefLabel "hand tools" ; skos:broader :t1 ; skos:narrower :t3 .
:t3 a skos:Concept ; skos:prefLabel "axes" ; skos:broader :t2 ; skos:narrower :t4 .
:t4 a skos:Concept ; skos:prefLabel "stone axes" ; skos:broader :t3 .
"""
ASKED_OF_CLASSES = """
Which classes are subclasses of MediaItem? | Novel, Sonata
Which classes are the subclasses of MediaItem? | Novel, Sonata
What are the subclasses of Thing? | Agent, MediaItem
How many subclasses does MediaItem have? | 2
Which class is a superclass of Sonata? | MediaItem
What is the superclass of Sonata? | MediaItem
Which classes have MediaItem as superclass? | Novel, Sonata
Which classes have Sonata as a subclass? | MediaItem
What does MediaItem have as subclasses? | Novel, Sonata
What are the superclasses of Thing? |
What are the subclasses of Sonata? |
Is Novel a subclass of MediaItem? | true
Is MediaItem a subclass of Novel? | false
What are the subproperties of overlaps? | about
Which relations are sub properties of overlaps? | about
Which properties are the subproperties of overlaps? | about
Which kinds are sub classes of MediaItem? | Novel, Sonata
What are the narrower concepts of hand tools? | axes
What is the broader concept of hand tools? | tools
What is the broader concept of axes? | hand tools
Which concepts are narrower concepts of axes? | stone axes
What are the narrower concepts of stone axes? |
What are the broader concepts of tools? |
"""


@pytest.mark.parametrize("row", ASKED_OF_CLASSES.strip().splitlines())
@pytest.mark.parametrize("system", ["chatty_kg", "triad", "dog"])
def test_an_ontology_is_asked_about_its_classes(row: str, system: str) -> None:
    question, right = (cell.strip() for cell in row.split("|"))
    graph = open_kg(rdflib.Graph().parse(data=ONTOLOGY, format="turtle"))
    labels = answer_of(Workbench(graph, "rules", system=system).ask(question)).labels
    expected = right.split(", ") if right else []
    if system == "chatty_kg" or labels:
        assert sorted(labels) == expected


CLINIC = """
@prefix : <http://clinic.example/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
:headOf rdfs:label "head of" . :prescribedBy rdfs:label "prescribed by" . :prescribedTo rdfs:label "prescribed to" .
:alumniOf rdfs:label "alumnus of" . :studentOf rdfs:label "student of" . :referral rdfs:label "referring doctor" .
:recordLabel rdfs:label "record label" . :shopOf rdfs:label "in workshop of" .
:apprentice rdfs:label "apprentice" ; owl:inverseOf :shopOf .
:walk a :Trail ; rdfs:label "Ridge Walk" ; :trailhead :hut ; :terminus :lodge .
:path a :Trail ; rdfs:label "Low Path" ; :trailhead :lodge ; :terminus :hut .
:hut a :Hut ; rdfs:label "Orla Hut" . :lodge a :Hut ; rdfs:label "Falk Lodge" .
:drug rdfs:label "Corvasol" ; :prescribedBy :ana ; :prescribedTo :bo , :cy .
:ana a :Doctor ; rdfs:label "Ana Prus" ; :supervises :bo ; :headOf :unit ; :alumniOf :school ; :studentOf :cy .
:cy a :Doctor ; rdfs:label "Cy Berg" . :school rdfs:label "Leiden School" . :unit rdfs:label "Burns Unit" .
:unit :headNurse :dee . :dee a :Nurse ; rdfs:label "Dee Orr" ; :worksOn :ward .
:eva a :Nurse ; rdfs:label "Eva Kos" ; :postedTo :unit .
:ward rdfs:label "Pine Ward" ; :headNurse :eva .
:visit a :Inspection ; :inspectedWard :ward ; :inspector :cy .
:bo rdfs:label "Bo Lund" ; :referral :cy ; :shopOf :ana .
:album rdfs:label "Paper Moon" ; :performer :ana ; :recordLabel :firm . :firm rdfs:label "Nord Discs" .
"""
ASKED_OF_ENDS = """
Where does the Ridge Walk end? | Falk Lodge | end
Where does the Ridge Walk begin? | Orla Hut | begin
At which hut does the Low Path end? | Orla Hut | end
Which trails start at the Orla Hut? | Ridge Walk | start
Who prescribed Corvasol? | Ana Prus |
Who is Bo Lund's supervisor? | Ana Prus |
Who was prescribed Corvasol? | Bo Lund, Cy Berg |
Was Corvasol prescribed by Bo Lund? | false |
Was Corvasol prescribed to Bo Lund? | true |
Is Ana Prus the boss of Bo Lund? | true | boss
Who is the doctor of Bo Lund? | Cy Berg | doctor
Who runs the Burns Unit? | Ana Prus | runs
Which nurses are on the Burns Unit? | Dee Orr | nurses
Which nurse is the head nurse of the Burns Unit? | Dee Orr |
Which nurses work on the Pine Ward? | Dee Orr |
How many nurses work on the Pine Ward? | 1 |
Did Cy Berg inspect the Pine Ward? | true |
Who recorded Paper Moon? | Ana Prus | recorded
Was Ana Prus a student at the Leiden School? | true | student
Was Ana Prus a student of Cy Berg? | true |
Was Bo Lund a student of Cy Berg? | |
Who is the apprentice of Ana Prus? | Bo Lund |
Who is the apprentice of Bo Lund? | |
"""


@pytest.mark.parametrize("row", ASKED_OF_ENDS.strip().splitlines())
@pytest.mark.parametrize("system", ["chatty_kg", "triad", "dog"])
def test_a_predicate_near_the_one_that_is_asked_for_is_no_plain_answer(
    row: str, system: str
) -> None:
    question, right, doubted = (cell.strip() for cell in row.split("|"))
    graph = open_kg(rdflib.Graph().parse(data=CLINIC, format="turtle"))
    answer = answer_of(Workbench(graph, "rules", system=system).ask(question))
    if system == "chatty_kg" or answer.labels:
        assert sorted(answer.labels) == (right.split(", ") if right else [])
        assert doubted in answer.doubt
        assert bool(doubted) == bool(answer.doubt)
