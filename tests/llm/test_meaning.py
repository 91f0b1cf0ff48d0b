"""Questions that say the relation of a name in other words than the graph, and follow-ups to them."""

import pytest
import rdflib
from rules_asked import ask

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
:regatta a :BoatShow ; rdfs:label "Spring Regatta" .
:cup rdfs:label "Seal Cup" . :race18 a :Race ; :raceOf :cup ; :year 2018 ; :numberOfBoats 31 ;
  :mensWinner :pal ; :womensWinner :ida .
:race19 a :Race ; :raceOf :cup ; :year 2019 ; :numberOfBoats 40 ; :mensWinner :tor ; :womensWinner :olga .
:cabin :madeBy :yard . :pal :bornIn :cove ; :birthYear 1970 . :nils :trainedUnder :olga . :tor :trainedUnder :nils .
:tune :madeBy :tor ; rdfs:label "Sea Tune" . :poem :writer :pal ; rdfs:label "Sea Poem" .
:song :writtenBy :pal ; rdfs:label "Sea Song" . :reel :playedBy :pal ; rdfs:label "Deck Reel" .
"""
IN_OTHER_WORDS = {
    "Who looks after the Grebe?": (["Ida Moss"], "maintained by"),
    "Who is borrowing the Grebe at the moment?": (["Tor Lie"], "lent to"),
    "When did the Great Auk shut down?": (["2015-10-31"], "decommissioned on"),
    "Who is Ida Moss's boss?": (["Olga Ruud"], "reports to"),
    "How long do we have to wait for the Grebe?": (["12"], "lead time days"),
    "Is the Grebe covered by insurance?": (["true"], "insured"),
    "Is the Great Auk covered by insurance?": (["false"], "insured"),
    "Where does the skipper of the Grebe live?": (["Larvik"], "home town"),
    "Who maintains the Great Auk ferry?": (["Olga Ruud"], ""),
    "Who maintains the Old Duck?": (["Ida Moss"], "Grebe"),
    "Where does Olga Ruud live?": ([], ""),
    "What did we order from Voss Yard?": (["Slip 7"], "Boat Order"),
    "Who ordered the Pram 3?": ([], ""),
    "Who operates the Pram 3?": (["Pal Berg"], ""),
    "Who operates the Wren 5?": (["Tor Lie"], "services"),
    "How tall is the Grebe?": (["12.5"], ""),
    "How tall do you have to be to go on the Grebe?": (["12.5"], "height M"),
    "How many members does the Night Crew have?": (["48"], ""),
    "Who is teaching Ida Moss to sail?": ([], ""),
    "Which women are the skipper of the Grebe?": ([], ""),
    "Who inspected the Great Auk?": (["Ida Moss"], "inspector"),
    "Who was the womens winner of the Seal Cup in 2019?": (["Olga Ruud"], "year"),
    "Who was the womens winner of the Seal Cup in 2017?": ([], ""),
    "Who won the Seal Cup in 2018?": ([], ""),
    "How many boats did the Seal Cup have up to 2018?": ([], ""),
    "How many boats did the Seal Cup have in May 2018?": ([], ""),
    "Which boats are registered?": (["Grebe", "Heron"], ""),
    "Which firm operates the Pram 3?": ([], ""),
    "How many boats did the Seal Cup have in 2018?": (["31"], "number of boats"),
    "How many boats were in the Seal Cup race of 2019?": (["40"], "number of boats"),
    "Who made the cabin of the Great Auk?": (["Voss Yard"], ""),
    "Where was the skipper of the Grebe born?": (["Seal Cove"], ""),
    "Under whom did Nils Aas train?": (["Olga Ruud"], ""),
    "Who is the Sea Tune played by?": (["Tor Lie"], "made by"),
    "Who directed the Sea Song?": ([], ""),
    "Who directed the Sea Poem?": ([], ""),
    "Who wrote the Sea Song?": (["Pal Berg"], ""),
    "Are the Grebe or the Great Auk insured?": ([], ""),
    "Are any of the Grebe, the Auk and the Great Auk insured?": ([], ""),
    "When was the Great Auk inspected?": (["2014-02-02"], "inspected on"),
    "How many faults were found on the Great Auk?": (["3"], "faults found"),
    "List the boats that Ida Moss has inspected.": (["Great Auk"], "inspected boat"),
    "Who inspected the Grebe?": ([], ""),
    "Who is the skipper of the Heron in the Old Basin?": (["Pal Berg"], ""),
    "Who is the skipper of the Heron that is moored in the Fish Quay?": (["Tor Lie"], ""),
    "Who is the head of the crew?": (["Ida Moss"], "Night Crew"),
    "Whose boat is The Truce? I mean the skipper.": ([], ""),
    "How many people work in the Night Crew?": (["1"], "member of"),
    "Who found the Brown Wreck?": (["Olga Ruud"], "discovered by"),
    "Who sailed the Brown Wreck?": (["Nils Aas"], ""),
    "Which boats did not pass the survey?": (["Great Auk"], ""),
    "Which boats failed the survey?": ([], ""),
    "Which boats are out of action?": (["Great Auk"], "operational"),
    "How many people fit in the Great Auk's cabin?": (["6"], "seats"),
    "What is the email address of Nils Aas?": ([], ""),
    "Which boats aren't working?": (["Great Auk"], "operational"),
    "Who restored the Brown Wreck?": (["Pal Berg"], "restored by"),
    "Which show was the Great Auk inspected at?": ([], ""),
}
"""Of each question the answers, and the predicate or label that a doubt names; "" for none."""
FOLLOW_UPS = {
    "Who looks after the Great Auk? > When did she join?": ["1998-01-15"],
    "When did Ida Moss join? > And her boss?": ["1998-01-15"],
    "When did Tor Lie join? > And his boss?": [],
    "Which boats are moored in Seal Cove? > Who maintains them?": ["Ida Moss", "Olga Ruud"],
    "Which boats are moored in Seal Cove? > How many of them are ferries?": ["1"],
    "Who is Tor Lie's boss? > When did he join?": [],
    "Which pier is the Grebe tied to? > Where is it moored?": [],
}


@pytest.fixture(autouse=True)
def default_embeddings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KGWB_EMBEDDINGS")


@pytest.fixture(scope="module")
def club() -> Graph:
    return open_kg(rdflib.Graph().parse(data=CLUB))


@pytest.mark.parametrize(("question", "expected"), IN_OTHER_WORDS.items())
def test_a_relation_in_other_words_is_answered_in_doubt(
    question: str, expected: tuple[list[str], str], club: Graph
) -> None:
    labels, read_as = expected
    answer = ask(Workbench(club, "rules"), question)
    assert list(answer.labels) == labels
    assert (f"“{read_as}”" in answer.doubt) if read_as else not answer.doubt


@pytest.mark.parametrize(("dialogue", "labels"), FOLLOW_UPS.items())
def test_a_pronoun_stands_for_what_its_kind_allows(
    dialogue: str, labels: list[str], club: Graph
) -> None:
    bench = Workbench(club, "rules")
    for question in dialogue.split(" > "):
        answer = ask(bench, question)
    assert sorted(answer.labels) == labels
