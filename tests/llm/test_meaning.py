"""Questions that say the relation of a name in other words than the graph, and follow-ups to them."""

from pathlib import Path

import pytest
import rdflib
from rules_asked import ask
from tables import read_table

from kgwb import Workbench, open_kg
from kgwb.kg import Graph

CLUB = """
@prefix : <http://club.example/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
:Ferry rdfs:subClassOf :Boat . :Rigger rdfs:subClassOf :Person .
:grebe a :Boat ; rdfs:label "Grebe" ; :maintainedBy :ida ; :skipper :pal ; :mooredIn :cove ;
  :lentTo :tor ; :insured true ; :nickname "the Old Duck" ; :keelMadeOf :oak ; :leadTimeDays 12 .
:auk a :Ferry ; rdfs:label "Great Auk" ; :maintainedBy :olga ; :mooredIn :cove ; :insured false ;
  :decommissionedOn "2015-10-31"^^xsd:date ; :commissionedOn "1960-04-01"^^xsd:date .
:ida a :Rigger ; rdfs:label "Ida Moss" ; :headOf :crew ; :reportsTo :olga ; :joinedOn "2011-05-02"^^xsd:date .
:olga a :Rigger ; rdfs:label "Olga Ruud" ; :joinedOn "1998-01-15"^^xsd:date .
:pal a :Person ; rdfs:label "Pal Berg" ; :homeTown "Larvik" ; :joinedOn "2003-03-03"^^xsd:date .
:tor a :Person ; rdfs:label "Tor Lie" . :crew a :Team ; rdfs:label "Night Crew" . :oak rdfs:label "oak" .
:cove a :Place ; rdfs:label "Seal Cove" .
:slip a :BoatOrder ; rdfs:label "Slip 7" ; :orderedFrom :yard ; :orderedBoat :pram . :pram rdfs:label "Pram 3" .
:pal :memberOf :crew ; :operates :pram . :crew :numberOfMembers "48" .
:tor :services :wren . :wren a :Boat ; rdfs:label "Wren 5" . :grebe :heightM 12.5 .
:yard a :Firm ; rdfs:label "Voss Yard" .
:truce a :Boat ; rdfs:label "The Truce" ; :skipper :tor .
:check a :Inspection ; :inspectedBoat :auk ; :inspector :ida ; :inspectedOn "2014-02-02"^^xsd:date ;
  :checkNumber "C-14" ; :faultsFound 3 . :grebe :passedSurvey true . :auk :passedSurvey false .
:heron1 :registered true . :grebe :registered true . :auk :registered false .
:heron1 a :Boat ; rdfs:label "Heron" ; :mooredIn :quay ; :skipper :tor . :quay a :Place ; rdfs:label "Fish Quay" .
:heron2 a :Boat ; rdfs:label "Heron" ; :mooredIn :basin ; :skipper :pal . :basin a :Place ; rdfs:label "Old Basin" .
:wreck :discoveredBy :olga ; rdfs:label "Brown Wreck" . :olga :taught :nils .
:nils a :Helmsman ; rdfs:label "Nils Aas" ; :job "helmsman" ; :sailed :wreck .
:wreck :keptBy :nils . :grebe :operational true . :auk :hasCabin :cabin ; :operational false .
:cabin a :Cabin ; rdfs:label "Cabin 2" ; :seats 6 ; :paintedBy :tor ; :paintedIn "2019"^^xsd:gYear .
:repair a :Restoration ; :restoredBoat :wreck ; :restoredBy :pal .
:quay :status :open ; :openInWinter false ; :depthM 4 . :cove :depthM 9 . :basin :depthM 6 . :wreck :depthM 2 .
:wreck :builtYear "1888"^^xsd:gYear . :grebe :builtYear "1950"^^xsd:gYear . :auk :builtYear "1960"^^xsd:gYear .
:open rdfs:label "open" .
:regatta a :BoatShow ; rdfs:label "Spring Regatta" .
:cup rdfs:label "Seal Cup" . :race18 a :Race ; :raceOf :cup ; :year 2018 ; :numberOfBoats 31 ;
  :mensWinner :pal ; :womensWinner :ida .
:race19 a :Race ; :raceOf :cup ; :year 2019 ; :numberOfBoats 40 ; :mensWinner :tor ; :womensWinner :olga .
:cabin :madeBy :yard . :pal :bornIn :cove ; :birthYear 1970 . :nils :trainedUnder :olga . :tor :trainedUnder :nils .
:pal :sister :inga ; :formerClub :oldclub ; :sailsFor :newclub ; :medals 7 . :medal :medallist :pal .
:inga a :Person ; rdfs:label "Inga Berg" ; :joinedOn "2001-06-01"^^xsd:date .
:oldclub a :Club ; rdfs:label "Old Sailors" . :newclub a :Club ; rdfs:label "Fjord Sailors" .
:lamp :givenTo :ida ; :givenBy :olga ; rdfs:label "Brass Lamp" . :basin :status :open .
:night a :Team ; rdfs:label "Night" ; :numberOfMembers "5" .
:cup :goldMedal :truce ; :silverMedal :wren .
:lantern a :Prize ; :awardedAt :regatta ; :wonBy :pal ; rdfs:label "Lantern Prize" .
:tune :madeBy :tor ; rdfs:label "Sea Tune" . :poem :writer :pal ; rdfs:label "Sea Poem" .
:song :writtenBy :pal ; rdfs:label "Sea Song" . :reel :playedBy :pal ; rdfs:label "Deck Reel" .
"""
HERE = Path(__file__).parent


@pytest.fixture(autouse=True)
def default_embeddings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KGWB_EMBEDDINGS")


@pytest.fixture(scope="module")
def club() -> Graph:
    return open_kg(rdflib.Graph().parse(data=CLUB))


@pytest.mark.parametrize(
    ("question", "labels", "read_as"), read_table(HERE / "in_other_words.jsonl")
)
def test_a_relation_in_other_words_is_answered_in_doubt(
    question: str, labels: list[str], read_as: str, club: Graph
) -> None:
    """A doubt names the predicate or label ``read_as``; without one there is no doubt."""
    answer = ask(Workbench(club, "rules"), question)
    assert list(answer.labels) == labels
    assert (f"“{read_as}”" in answer.doubt) if read_as else not answer.doubt


@pytest.mark.parametrize(("questions", "labels"), read_table(HERE / "follow_ups.jsonl"))
def test_a_pronoun_stands_for_what_its_kind_allows(
    questions: list[str], labels: list[str], club: Graph
) -> None:
    bench = Workbench(club, "rules")
    for question in questions:
        answer = ask(bench, question)
    assert sorted(answer.labels) == labels
