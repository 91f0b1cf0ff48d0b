"""The 60 questions: words, gold SPARQL, and a second answer from the Python objects without the graph."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

import organisation as org
import terms_of_clinic as terms
from triples import DBPEDIA, FACTORS
from vocabulary import ID

Rows = list[list[object]]
Answer = Callable[[org.Organisation], Rows]


@dataclass(frozen=True)
class Question:
    """A question with its gold query and the function that answers it from the objects."""

    kind: str
    text: str
    sparql: str
    answer: Answer
    note: str
    ranked: bool


QUESTIONS: list[Question] = []


def ask(
    kind: str, text: str, sparql: str, note: str = "", ranked: bool = False
) -> Callable[[Answer], Answer]:
    """Add a question that the decorated function answers; the rows of a ranked one keep their order."""

    def add(answer: Answer) -> Answer:
        QUESTIONS.append(Question(kind, text, sparql, answer, note, ranked))
        return answer

    return add


def iri(key: str | None) -> str | None:
    """Return the IRI of an id as text, or None."""
    if key is None:
        return None
    return str(ID[key])


def column(keys: Iterable[str | None]) -> Rows:
    """Return a column of IRIs without repetitions; None is left out."""
    return [[iri(key)] for key in sorted({key for key in keys if key})]


def most(counts: Counter[str]) -> list[str]:
    """Return the keys with the highest count, all of them where there is a tie."""
    highest = max(counts.values())
    return [key for key, count in counts.items() if count == highest]


def site_of(place: str) -> str:
    """Return the id of the facility of a ward or room."""
    sites = {row[0]: row[5] for row in terms.WARDS}
    sites |= {row[0]: row[3] for row in terms.ROOMS}
    return sites[place]


def base(quantity: org.Quantity) -> Decimal:
    """Return the value of a quantity in kilograms, minutes or square metres."""
    return Decimal(quantity.value) * FACTORS[quantity.unit]


def beds_by_ward() -> dict[str, int]:
    """Return the number of beds of each ward that has one."""
    return {row[0]: int(row[6]) for row in terms.WARDS if row[6]}


def in_force(contract: org.Contract, day: date) -> bool:
    """Say whether a contract had begun and not ended on a day."""
    return contract.start <= day and (contract.end is None or contract.end >= day)


IMAGING_KINDS = (
    "ImagingDevice",
    "MagneticResonanceScanner",
    "ComputedTomographyScanner",
    "UltrasoundUnit",
)
TWO_HOURS = 120


@ask(
    "lookup",
    "Which number do I dial for Gemma Larkin?",
    "SELECT ?phone WHERE { id:p-1511 v:phone ?phone }",
)
def dial(made: org.Organisation) -> Rows:
    return [[person.phone] for person in made.people.values() if person.name == "Gemma Larkin"]


@ask(
    "lookup",
    "Anna Keller, the gastroenterologist - where do I send her a mail?",
    "SELECT ?email WHERE { id:p-1097 v:email ?email }",
    "Homonym: a nurse in Cardiology has the same name.",
)
def mail_keller(made: org.Organisation) -> Rows:
    people = [each for each in made.people.values() if each.name == "Anna Keller"]
    return [[each.email] for each in people if each.specialty_name == "Gastroenterology"]


@ask(
    "lookup",
    "Who is in charge of Radiology?",
    "SELECT ?person WHERE { ?person v:isHeadOf id:ou-410 }",
    "The opposite property, from the unit to the person, is filled for three units only.",
)
def radiology(made: org.Organisation) -> Rows:
    return column(each.id for each in made.people.values() if each.heads == "410")


@ask(
    "lookup",
    "Until when did agreement RVC-2019-013 run?",
    "SELECT ?date WHERE { id:k-013 v:endsOn ?date }",
)
def agreement_end(made: org.Organisation) -> Rows:
    return [[each.end] for each in made.contracts.values() if each.number == "RVC-2019-013"]


@ask(
    "lookup",
    "How heavy is VN-0176? Tell me the figure as recorded and the unit.",
    "SELECT ?value ?unit WHERE { id:dev-VN-0176 v:weight [ v:value ?value ; v:unit ?unit ] }",
    "A node with value and unit; the unit is its IRI.",
)
def weight_of_ventilator(made: org.Organisation) -> Rows:
    weight = made.devices["dev-VN-0176"].weight
    assert weight
    return [[weight.value, iri(f"unit-{weight.unit}")]]


@ask(
    "lookup",
    "What did we pay for CT-0176, and in what money?",
    "SELECT ?amount ?currency WHERE { id:dev-CT-0176 v:price [ v:amount ?amount ; v:currency ?currency ] }",
    "A node with amount and currency.",
)
def paid_for_scanner(made: org.Organisation) -> Rows:
    price = made.devices["dev-CT-0176"].price
    assert price
    return [[price.amount, price.currency]]


@ask(
    "lookup",
    "PM-0254: what came in its place?",
    "SELECT ?device WHERE { ?device v:successorOf id:dev-PM-0254 }",
    "Asked against the direction of the property.",
)
def successor(made: org.Organisation) -> Rows:
    return column(each.id for each in made.devices.values() if each.successor_of == "dev-PM-0254")


@ask(
    "lookup",
    "I want to post something to Sonaris. Street, code and town?",
    "SELECT ?street ?postCode ?town WHERE { id:co-07 v:address "
    "[ v:street ?street ; v:postCode ?postCode ; v:town ?town ] }",
)
def post_to_sonaris(made: org.Organisation) -> Rows:
    firms = [each for each in made.companies.values() if each.name == "Sonaris"]
    return [[each.street, each.post_code, each.town] for each in firms]


@ask(
    "join",
    "Who has led operations in Ashcombe's theatre? Only those that went ahead.",
    "SELECT DISTINCT ?person WHERE { ?op v:theatre id:rm-301 ; v:leadSurgeon ?person ; v:performedOn ?day }",
    "A cancelled operation has no day on which it was performed.",
)
def operated_in_ashcombe(made: org.Organisation) -> Rows:
    done = [each for each in made.procedures.values() if each.done]
    return column(each.surgeon for each in done if each.theatre == "rm-301")


@ask(
    "join",
    "Which wards does General Surgery look after?",
    "SELECT ?ward WHERE { ?ward v:responsibleUnit id:ou-210 ; v:atFacility ?site }",
    "Only places of care have a facility; contracts and guidelines have a responsible unit too.",
)
def wards_of_surgery(made: org.Organisation) -> Rows:
    return column(row[0] for row in terms.WARDS if row[4] == "210")


@ask(
    "join",
    "From which countries do the firms come that send us warfarin?",
    "SELECT DISTINCT ?country WHERE { ?m v:activeSubstance id:sub-06 ; v:suppliedBy ?firm . "
    "?firm v:address [ v:country ?country ] }",
    "Countries are external IRIs without labels.",
)
def warfarin_countries(made: org.Organisation) -> Rows:
    substance = org.substance_id("Warfarin")
    countries = set()
    for medicine in made.medicines.values():
        if medicine.substance == substance:
            countries |= {made.companies[key].country for key in medicine.suppliers}
    return [[DBPEDIA + country] for country in countries]


@ask(
    "join",
    "What should not be given together with aspirin?",
    "SELECT DISTINCT ?other WHERE { { id:sub-07 v:interactsWith ?other } "
    "UNION { ?other v:interactsWith id:sub-07 } }",
    "Symmetric, but entered one way only. Substances are meant, not packs.",
)
def not_with_aspirin(made: org.Organisation) -> Rows:
    pairs = [pair for pair in terms.INTERACTIONS if "Aspirin" in pair]
    others = {name for pair in pairs for name in pair} - {"Aspirin"}
    return column(org.substance_id(name) for name in others)


@ask(
    "join",
    "Who of our own people has done safety checks on dialysis machines?",
    "SELECT DISTINCT ?person WHERE { ?order a v:SafetyInspection ; v:concerns ?device ; v:doneBy ?person . "
    "?device a v:DialysisMachine }",
    "Checks by contractors have no person. One of the people is a dangling IRI.",
)
def checked_dialysis(made: org.Organisation) -> Rows:
    orders = [each for each in made.orders.values() if each.kind == "SafetyInspection"]
    return column(each.person for each in orders if each.device.startswith("dev-DM"))


@ask(
    "join",
    "What were people mainly admitted for to the maternity ward of St Brannoc's?",
    "SELECT DISTINCT ?diagnosis WHERE { ?ward a v:MaternityWard ; v:atFacility id:fac-04 . "
    "?stay v:toWard ?ward ; v:mainDiagnosis ?diagnosis }",
)
def maternity_diagnoses(made: org.Organisation) -> Rows:
    return column(each.diagnosis for each in made.admissions.values() if each.ward == "w-17")


@ask(
    "join",
    "Who is the boss of whoever leads the hand surgeons?",
    "SELECT ?boss WHERE { ?head v:isHeadOf id:ou-221 ; v:reportsTo ?boss }",
    "The hand surgeons are the Hand Surgery Service.",
)
def boss_of_hand_surgery(made: org.Organisation) -> Rows:
    return column(each.manager for each in made.people.values() if each.heads == "221")


@ask(
    "join",
    "Which firm do the consultants who advise Finance come from?",
    "SELECT DISTINCT ?firm WHERE { ?person a v:ExternalConsultant ; v:advises id:ou-540 ; v:sentBy ?firm }",
    "Two classes are called Consultant: senior physicians, and advisers from outside.",
)
def advisers_of_finance(made: org.Organisation) -> Rows:
    return column(each.agency for each in made.advisers.values() if each.unit == "540")


@ask(
    "join",
    "Whose devices played a part in patient safety events at Lindmere? The makers' names, please.",
    "SELECT DISTINCT ?name WHERE { ?event a v:SafetyEvent ; v:atPlace [ v:atFacility id:fac-02 ] ; "
    "v:concerns [ v:makerName ?name ] }",
    "The name is there for every device, the company for nine in ten.",
)
def makers_in_events(made: org.Organisation) -> Rows:
    events = [
        each for each in made.events.values() if site_of(each.ward) == "fac-02" and each.device
    ]
    return [[name] for name in {made.devices[str(each.device)].maker_name for each in events}]


@ask(
    "count",
    "How many patients came in as emergencies in 2023? Count every stay.",
    "SELECT (COUNT(?stay) AS ?n) WHERE { ?stay a v:EmergencyAdmission ; v:admittedOn ?day "
    "FILTER(YEAR(?day) = 2023) }",
)
def emergencies(made: org.Organisation) -> Rows:
    stays = [each for each in made.admissions.values() if each.kind == "EmergencyAdmission"]
    return [[sum(each.admitted.year == 2023 for each in stays)]]


@ask(
    "count",
    "How many consultants do we have on file for orthopaedic surgery, former ones included?",
    'SELECT (COUNT(?person) AS ?n) WHERE { ?person a v:Consultant ; v:specialtyText "Orthopaedic surgery" }',
    "The text is there for every physician, the specialty as a thing for nine in ten.",
)
def orthopaedic_consultants(made: org.Organisation) -> Rows:
    people = [each for each in made.people.values() if each.kind == "Consultant"]
    return [[sum(each.specialty_name == "Orthopaedic surgery" for each in people)]]


@ask(
    "count",
    "How many ventilators are there at Lindmere?",
    "SELECT (COUNT(?device) AS ?n) WHERE { ?device a v:Ventilator ; v:standsAt [ v:atFacility id:fac-02 ] }",
    "Devices stand on wards or in theatres.",
)
def ventilators_at_lindmere(made: org.Organisation) -> Rows:
    devices = [each for each in made.devices.values() if each.kind == "Ventilator"]
    return [[sum(site_of(each.place) == "fac-02" for each in devices)]]


@ask(
    "count",
    "How many operations meant for 2022 were called off?",
    'SELECT (COUNT(?op) AS ?n) WHERE { ?op a v:PerformedProcedure ; v:state "cancelled" ; v:plannedFor ?day '
    "FILTER(YEAR(?day) = 2022) }",
    "Two classes are called Procedure: the kind and the single operation.",
)
def called_off(made: org.Organisation) -> Rows:
    cancelled = [each for each in made.procedures.values() if each.state == "cancelled"]
    return [[sum(each.planned.year == 2022 for each in cancelled)]]


@ask(
    "count",
    "How many different patients has Lorenz Ostler had under his care on the wards?",
    "SELECT (COUNT(DISTINCT ?patient) AS ?n) WHERE { ?stay v:attending id:p-1178 ; v:ofPatient ?patient }",
)
def patients_of_ostler(made: org.Organisation) -> Rows:
    stays = [each for each in made.admissions.values() if each.attending == "p-1178"]
    return [[len({each.patient for each in stays})]]


@ask(
    "count",
    "How many wards are there at Rowanvale General, with intensive care and maternity?",
    "SELECT (COUNT(DISTINCT ?ward) AS ?n) WHERE { ?ward a/rdfs:subClassOf* v:Ward ; v:atFacility id:fac-01 }",
    "Things have the most specific class only.",
)
def wards_at_general(made: org.Organisation) -> Rows:
    return [[sum(row[5] == "fac-01" for row in terms.WARDS)]]


@ask(
    "yes-no",
    "Is there a known problem with giving digoxin and furosemide together?",
    "ASK { { id:sub-11 v:interactsWith id:sub-12 } UNION { id:sub-12 v:interactsWith id:sub-11 } }",
    "Symmetric, but entered the other way only.",
)
def digoxin_and_furosemide(made: org.Organisation) -> Rows:
    return [[any({"Digoxin", "Furosemide"} == {*pair} for pair in terms.INTERACTIONS)]]


@ask(
    "yes-no",
    "Did we have a running deal with Sable Waste Services on 1 June 2021?",
    "ASK { ?c v:contractPartner id:co-24 ; v:startsOn ?start OPTIONAL { ?c v:endsOn ?end } "
    'FILTER(?start <= "2021-06-01"^^xsd:date && (!BOUND(?end) || ?end >= "2021-06-01"^^xsd:date)) }',
    "A contract without an end is still in force.",
)
def deal_with_sable(made: org.Organisation) -> Rows:
    contracts = [each for each in made.contracts.values() if each.partner == "co-24"]
    return [[any(in_force(each, date(2021, 6, 1)) for each in contracts)]]


@ask(
    "yes-no",
    "Does anybody directly in Cardiology know Arabic?",
    'ASK { ?person v:memberOf id:ou-110 ; v:speaks "Arabic" }',
)
def arabic_in_cardiology(made: org.Organisation) -> Rows:
    people = [each for each in made.people.values() if each.unit == "110"]
    return [[any("Arabic" in each.languages for each in people)]]


@ask(
    "superlative",
    "Where do we have the most beds on one ward?",
    "SELECT ?ward WHERE { ?ward a/rdfs:subClassOf* v:Ward ; v:bedCount ?b . "
    "{ SELECT (MAX(xsd:integer(?c)) AS ?most) WHERE { ?w a/rdfs:subClassOf* v:Ward ; v:bedCount ?c } } "
    "FILTER(xsd:integer(?b) = ?most) }",
    "A tie of two wards; numbers of beds are strings.",
)
def biggest_ward(made: org.Organisation) -> Rows:
    return column(most(Counter(beds_by_ward())))


@ask(
    "superlative",
    "Which is our most spacious operating theatre?",
    "SELECT ?room WHERE { ?room a v:OperatingTheatre ; v:floorArea [ v:value ?x ; v:unit [ v:toBase ?f ] ] } "
    "ORDER BY DESC(?x * ?f) LIMIT 1",
    "Areas are in square metres or square feet.",
)
def largest_theatre(made: org.Organisation) -> Rows:
    rooms = [row for row in terms.ROOMS if row[1] == "OperatingTheatre" and row[4]]
    largest = max(rooms, key=lambda row: base(org.Quantity(str(row[4]), row[5])))
    return [[iri(largest[0])]]


@ask(
    "superlative",
    "Which firm delivers the largest number of different medicines to us?",
    "SELECT ?firm WHERE { { SELECT ?firm (COUNT(DISTINCT ?m) AS ?n) WHERE { ?m a v:Medicine ; "
    "v:suppliedBy ?firm } GROUP BY ?firm } { SELECT (MAX(?k) AS ?most) WHERE { SELECT ?f "
    "(COUNT(DISTINCT ?m2) AS ?k) WHERE { ?m2 a v:Medicine ; v:suppliedBy ?f } GROUP BY ?f } } FILTER(?n = ?most) }",
    "Each pack on the list is a medicine.",
)
def main_supplier(made: org.Organisation) -> Rows:
    counts: Counter[str] = Counter()
    for medicine in made.medicines.values():
        counts.update(medicine.suppliers)
    return column(most(counts))


@ask(
    "superlative",
    "The three lightest ventilators, lightest first?",
    "SELECT ?device WHERE { ?device a v:Ventilator ; v:weight [ v:value ?x ; v:unit [ v:toBase ?f ] ] } "
    "ORDER BY (?x * ?f) LIMIT 3",
    "Weights are in kilograms or grams.",
    ranked=True,
)
def lightest_ventilators(made: org.Organisation) -> Rows:
    weights = {}
    for device in made.devices.values():
        if device.kind == "Ventilator" and device.weight:
            weights[device.id] = base(device.weight)
    return [[iri(key)] for key in sorted(weights, key=lambda key: weights[key])[:3]]


@ask(
    "superlative",
    "Which MR scanner have we had the longest?",
    "SELECT ?device WHERE { ?device a v:MagneticResonanceScanner ; v:purchaseYear ?y . "
    "{ SELECT (MIN(?z) AS ?first) WHERE { ?d a v:MagneticResonanceScanner ; v:purchaseYear ?z } } "
    "FILTER(?y = ?first) }",
    "By the year of purchase, which is a string. A tie of two scanners.",
)
def oldest_scanner(made: org.Organisation) -> Rows:
    devices = [
        each
        for each in made.devices.values()
        if each.kind == "MagneticResonanceScanner" and each.bought
    ]
    first = min(str(each.bought) for each in devices)
    return column(each.id for each in devices if each.bought == first)


@ask(
    "superlative",
    "Which machine has been in for repair most often?",
    "SELECT ?device WHERE { { SELECT ?device (COUNT(?o) AS ?n) WHERE { ?o a v:Repair ; v:concerns ?device } "
    "GROUP BY ?device } { SELECT (MAX(?k) AS ?most) WHERE { SELECT ?d (COUNT(?p) AS ?k) WHERE { "
    "?p a v:Repair ; v:concerns ?d } GROUP BY ?d } } FILTER(?n = ?most) }",
    "Repairs only, without safety inspections; all ties.",
)
def most_repaired(made: org.Organisation) -> Rows:
    repairs = [each for each in made.orders.values() if each.kind == "Repair"]
    return column(most(Counter(each.device for each in repairs)))


@ask(
    "superlative",
    "Who has led the most operations, not counting those that fell through?",
    "SELECT ?person WHERE { { SELECT ?person (COUNT(?o) AS ?n) WHERE { ?o v:leadSurgeon ?person ; "
    "v:performedOn ?x } GROUP BY ?person } { SELECT (MAX(?k) AS ?most) WHERE { SELECT ?q (COUNT(?p) AS ?k) "
    "WHERE { ?p v:leadSurgeon ?q ; v:performedOn ?y } GROUP BY ?q } } FILTER(?n = ?most) }",
)
def busiest_surgeon(made: org.Organisation) -> Rows:
    done = [each for each in made.procedures.values() if each.done]
    return column(most(Counter(each.surgeon for each in done)))


@ask(
    "filter",
    "Which operations went on for more than two hours?",
    "SELECT ?op WHERE { ?op a v:PerformedProcedure ; v:duration [ v:value ?x ; v:unit [ v:toBase ?f ] ] "
    "FILTER(?x * ?f > 120) }",
    "Durations are in minutes or hours.",
)
def long_operations(made: org.Organisation) -> Rows:
    timed = [each for each in made.procedures.values() if each.duration]
    return column(each.id for each in timed if each.duration and base(each.duration) > TWO_HOURS)


@ask(
    "filter",
    "Which imaging machines, of any sort, did we pay more than 700,000 euros for?",
    "SELECT DISTINCT ?device WHERE { ?device a/rdfs:subClassOf* v:ImagingDevice ; "
    'v:price [ v:amount ?x ; v:currency "EUR" ] FILTER(?x > 700000) }',
    "Prices in other currencies are left out. Things have the most specific class only.",
)
def dear_imaging(made: org.Organisation) -> Rows:
    priced = [each for each in made.devices.values() if each.kind in IMAGING_KINDS and each.price]
    euros = [each for each in priced if each.price and each.price.currency == "EUR"]
    return column(each.id for each in euros if each.price and each.price.amount > 700000)


@ask(
    "filter",
    "Which medicines are we down to fewer than 200 of?",
    "SELECT ?m WHERE { ?m a v:Medicine ; v:inStock ?s FILTER(xsd:integer(?s) < 200) }",
    "The stock is a number as a string; where it is missing it is not known.",
)
def low_stock(made: org.Organisation) -> Rows:
    known = [each for each in made.medicines.values() if each.stock]
    return column(each.id for each in known if int(str(each.stock)) < 200)


@ask(
    "filter",
    "Could you list the contracts that were running on New Year's Day 2021?",
    "SELECT ?c WHERE { ?c a v:Contract ; v:startsOn ?start OPTIONAL { ?c v:endsOn ?end } "
    'FILTER(?start <= "2021-01-01"^^xsd:date && (!BOUND(?end) || ?end >= "2021-01-01"^^xsd:date)) }',
    "A contract without an end is still in force.",
)
def running_contracts(made: org.Organisation) -> Rows:
    return column(each.id for each in made.contracts.values() if in_force(each, date(2021, 1, 1)))


@ask(
    "filter",
    "Which ventilators were out of warranty by the end of 2023?",
    'SELECT ?device WHERE { ?device a v:Ventilator ; v:warrantyUntil ?day FILTER(?day < "2024-01-01"^^xsd:date) }',
    "Where the last day of the warranty is missing it is not known.",
)
def warranty_gone(made: org.Organisation) -> Rows:
    devices = [
        each for each in made.devices.values() if each.kind == "Ventilator" and each.warranty
    ]
    return column(each.id for each in devices if each.warranty and each.warranty.year <= 2023)


@ask(
    "filter",
    "What business partners do we have with Hesperia in the name?",
    'SELECT ?firm WHERE { ?firm a v:Company ; foaf:name ?name FILTER(CONTAINS(LCASE(?name), "hesperia")) }',
)
def hesperia(made: org.Organisation) -> Rows:
    return column(each.id for each in made.companies.values() if "hesperia" in each.name.lower())


@ask(
    "filter",
    "Patients from Tarnside born before 1960?",
    'SELECT ?patient WHERE { ?patient a v:Patient ; v:town "Tarnside" ; v:birthYear ?y '
    "FILTER(xsd:integer(?y) < 1960) }",
    "Years of birth are strings.",
)
def old_patients(made: org.Organisation) -> Rows:
    patients = [
        each for each in made.patients.values() if each.town == "Tarnside" and each.birth_year
    ]
    return column(each.id for each in patients if int(str(each.birth_year)) < 1960)


@ask(
    "group",
    "How many stays began at each of our sites in 2023?",
    "SELECT ?site (COUNT(?stay) AS ?n) WHERE { ?stay v:toWard [ v:atFacility ?site ] ; v:admittedOn ?day "
    "FILTER(YEAR(?day) = 2023) } GROUP BY ?site",
    "A transfer to another ward is a stay. Sites without any have no row.",
)
def stays_by_site(made: org.Organisation) -> Rows:
    stays = [each for each in made.admissions.values() if each.admitted.year == 2023]
    counts = Counter(site_of(each.ward) for each in stays)
    return [[iri(site), count] for site, count in counts.items()]


@ask(
    "group",
    "What were at least fifteen stays mainly about? Give me the illness and how many stays.",
    "SELECT ?diagnosis (COUNT(?stay) AS ?n) WHERE { ?stay v:mainDiagnosis ?diagnosis } "
    "GROUP BY ?diagnosis HAVING(COUNT(?stay) >= 15)",
    "Each diagnosis on its own, without those within it.",
)
def common_diagnoses(made: org.Organisation) -> Rows:
    counts = Counter(each.diagnosis for each in made.admissions.values() if each.diagnosis)
    return [[iri(key), count] for key, count in counts.items() if count >= 15]


@ask(
    "group",
    "What does a job by each of the outside service firms cost on average, looking at bills in euros?",
    "SELECT ?firm (AVG(?x) AS ?mean) WHERE { ?order v:contractor ?firm ; "
    'v:cost [ v:amount ?x ; v:currency "EUR" ] } GROUP BY ?firm',
    "Repairs and safety inspections.",
)
def cost_by_contractor(made: org.Organisation) -> Rows:
    amounts: dict[str, list[Decimal]] = defaultdict(list)
    for order in made.orders.values():
        if order.contractor and order.cost and order.cost.currency == "EUR":
            amounts[order.contractor].append(order.cost.amount)
    return [[iri(firm), sum(each, Decimal(0)) / len(each)] for firm, each in amounts.items()]


@ask(
    "group",
    "How many intensive care beds does each site have?",
    "SELECT ?site (SUM(xsd:integer(?b)) AS ?beds) WHERE { ?ward a v:IntensiveCareUnit ; "
    "v:atFacility ?site ; v:bedCount ?b } GROUP BY ?site",
    "The High Dependency Unit is an intensive care unit by its class. Numbers of beds are strings.",
)
def intensive_beds(made: org.Organisation) -> Rows:
    beds: Counter[str] = Counter()
    for row in terms.WARDS:
        if row[1] == "IntensiveCareUnit" and row[6]:
            beds[row[5]] += int(row[6])
    return [[iri(site), count] for site, count in beds.items()]


@ask(
    "group",
    "Patient safety events year by year?",
    "SELECT ?year (COUNT(?event) AS ?n) WHERE { ?event a v:SafetyEvent ; v:happenedOn ?day "
    "BIND(YEAR(?day) AS ?year) } GROUP BY ?year",
    "2024 has the first quarter only.",
)
def events_by_year(made: org.Organisation) -> Rows:
    counts = Counter(each.day.year for each in made.events.values())
    return [[year, count] for year, count in counts.items()]


@ask(
    "negation",
    "Which wards have never taken in anyone?",
    "SELECT DISTINCT ?ward WHERE { ?ward a/rdfs:subClassOf* v:Ward "
    "FILTER NOT EXISTS { ?stay v:toWard ?ward } }",
)
def unused_wards(made: org.Organisation) -> Rows:
    used = {each.ward for each in made.admissions.values()}
    return column(row[0] for row in terms.WARDS if row[0] not in used)


@ask(
    "negation",
    "Which repairs from 2023 are still unfinished?",
    "SELECT ?order WHERE { ?order a v:Repair ; v:openedOn ?day FILTER(YEAR(?day) = 2023) "
    "FILTER NOT EXISTS { ?order v:closedOn ?end } }",
    "2023 is when the order was opened.",
)
def open_repairs(made: org.Organisation) -> Rows:
    repairs = [each for each in made.orders.values() if each.kind == "Repair" and not each.closed]
    return column(each.id for each in repairs if each.opened.year == 2023)


@ask(
    "negation",
    "Which departments are without anyone at the top?",
    "SELECT ?unit WHERE { ?unit a v:Department FILTER NOT EXISTS { ?person v:isHeadOf ?unit } }",
    "Departments only: a directorate and a section have no head either.",
)
def headless_departments(made: org.Organisation) -> Rows:
    led = {each.heads for each in made.people.values()}
    departments = [row[0] for row in terms.UNITS if row[1] == "Department"]
    return column(f"ou-{unit}" for unit in departments if unit not in led)


@ask(
    "optional",
    "Our pharmacists with mail and telephone, as far as we have these.",
    "SELECT ?person ?email ?phone WHERE { ?person a v:Pharmacist OPTIONAL { ?person v:email ?email } "
    "OPTIONAL { ?person v:phone ?phone } }",
)
def pharmacists(made: org.Organisation) -> Rows:
    people = [each for each in made.people.values() if each.kind == "Pharmacist"]
    return [[iri(each.id), each.email, each.phone] for each in people]


@ask(
    "optional",
    "Studies that go on at present: which, led by whom, paid by which firm, and with how many people, if known?",
    "SELECT ?study ?leader ?sponsor ?n WHERE { ?study a v:Study "
    "OPTIONAL { ?study v:principalInvestigator ?leader } OPTIONAL { ?study v:sponsor ?sponsor } "
    "OPTIONAL { ?study v:participants ?n } FILTER NOT EXISTS { ?study v:endsOn ?end } }",
    "A study without an end goes on. Leader, firm and number are missing here and there.",
)
def running_studies(made: org.Organisation) -> Rows:
    heads = {each.heads: each.id for each in made.people.values() if each.heads}
    running = [row for row in terms.STUDIES if row[5] is None]
    return [[iri(row[0]), iri(heads.get(row[2])), iri(row[3]), row[6]] for row in running]


@ask(
    "path",
    "Which stays that began in 2024 were mainly for a heart or circulation disease, whatever it was?",
    "SELECT ?stay WHERE { ?stay v:admittedOn ?day ; v:mainDiagnosis/v:within* id:dx-01 "
    "FILTER(YEAR(?day) = 2024) }",
    "A diagnosis is within another, which may be within a third.",
)
def circulatory_stays(made: org.Organisation) -> Rows:
    above = {row[0]: row[4] for row in terms.DIAGNOSES}
    found = []
    for stay in made.admissions.values():
        diagnosis = stay.diagnosis
        while diagnosis and diagnosis != "dx-01":
            diagnosis = above[diagnosis]
        if diagnosis and stay.admitted.year == 2024:
            found.append(stay.id)
    return column(found)


@ask(
    "path",
    "Which older agreements, all the way back, led to RVC-2022-014?",
    "SELECT ?old WHERE { id:k-014 v:replaces+ ?old }",
)
def older_agreements(made: org.Organisation) -> Rows:
    found = []
    earlier = made.contracts["k-014"].replaces
    while earlier:
        found.append(earlier)
        earlier = made.contracts[earlier].replaces
    return column(found)


@ask(
    "set",
    "Which patients have lain both at Lindmere and at St Brannoc's?",
    "SELECT DISTINCT ?patient WHERE { ?a v:ofPatient ?patient ; v:toWard [ v:atFacility id:fac-02 ] . "
    "?b v:ofPatient ?patient ; v:toWard [ v:atFacility id:fac-04 ] }",
)
def both_sites(made: org.Organisation) -> Rows:
    patients: dict[str, set[str]] = {"fac-02": set(), "fac-04": set()}
    for stay in made.admissions.values():
        patients.setdefault(site_of(stay.ward), set()).add(stay.patient)
    return column(patients["fac-02"] & patients["fac-04"])


@ask(
    "set",
    "Which colleagues cover for each other?",
    "SELECT ?a ?b WHERE { ?a v:standsInFor ?b . ?b v:standsInFor ?a FILTER(STR(?a) < STR(?b)) }",
    "The one for the other and the other way round; each pair once.",
)
def mutual_deputies(made: org.Organisation) -> Rows:
    pairs = []
    for person in made.people.values():
        for other in person.stands_in_for:
            if person.id < other and person.id in made.people[other].stands_in_for:
                pairs.append([iri(person.id), iri(other)])
    return [[*pair] for pair in pairs]


def nothing(made: org.Organisation) -> Rows:
    """Return no rows: the organisation does not know."""
    return []


UNUSED = "Declared in the vocabulary, never used."
UNKNOWN = "Nothing of the kind in the vocabulary."
for _text, _sparql, _note in (
    (
        "What did the inquiry into PSE-018 find as the deeper reason?",
        "SELECT ?cause WHERE { id:ev-018 v:rootCause ?cause }",
        UNUSED,
    ),
    (
        "At what times can I go and see somebody on Birch Ward?",
        "SELECT ?times WHERE { id:w-01 v:visitingHours ?times }",
        UNUSED,
    ),
    (
        "What pay grade is Noel Whitlock on?",
        "SELECT ?grade WHERE { id:p-1490 v:salaryBand ?grade }",
        UNUSED,
    ),
    ("How long does one wait for a new hip at present?", "", UNKNOWN),
    (
        "Anna Keller, the gastroenterologist: on what number can I reach her?",
        "SELECT ?phone WHERE { id:p-1097 v:phone ?phone }",
        "Most others have one, and so has the nurse of the same name.",
    ),
    (
        "Who runs Urology?",
        "SELECT ?person WHERE { ?person v:isHeadOf id:ou-240 }",
        "Other departments have a head, this one has not.",
    ),
):
    ask("unanswerable", _text, _sparql, _note)(nothing)
