"""Write the organisation as triples, with the mess that such data has."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date
from decimal import Decimal

import organisation as org
import terms_of_clinic as terms
from rdflib import FOAF, RDF, RDFS, SKOS, XSD, BNode, Literal, URIRef
from vocabulary import DEF, ID

DBPEDIA = "http://dbpedia.org/resource/"
PREFIXES = {
    "v": str(DEF),
    "id": str(ID),
    "owl": "http://www.w3.org/2002/07/owl#",
    "rdf": str(RDF),
    "rdfs": str(RDFS),
    "skos": str(SKOS),
    "foaf": str(FOAF),
    "xsd": str(XSD),
    "dbr": DBPEDIA,
}
UNITS_OF_MEASURE = (
    ("kg", "kg", "1"),
    ("g", "g", "0.001"),
    ("min", "min", "1"),
    ("h", "h", "60"),
    ("m2", "m²", "1"),
    ("ft2", "sq ft", "0.09290304"),
    ("mg", "mg", "0.000001"),
    ("ug", "µg", "0.000000001"),
)
FACTORS = {key: Decimal(factor) for key, _, factor in UNITS_OF_MEASURE}

Node = URIRef | BNode
Term = URIRef | BNode | Literal
Value = Term | str | date | Decimal | int | bool | None


def term_of(value: Value) -> Term | None:
    """Return the RDF term of a Python value; a term is itself."""
    if value is None or isinstance(value, URIRef | BNode | Literal):
        return value
    if isinstance(value, bool):
        return Literal(value)
    if isinstance(value, date):
        return Literal(value.isoformat(), datatype=XSD.date)
    if isinstance(value, Decimal):
        return Literal(f"{value:.2f}", datatype=XSD.decimal)
    if isinstance(value, int):
        return Literal(value)
    return Literal(value)


class Writer:
    """Collects the triples of the organisation in the order in which they are to be written."""

    def __init__(self, made: org.Organisation) -> None:
        self.made = made
        self.triples: list[tuple[Node, URIRef, Term]] = []
        self.nodes = 0

    def add(self, subject: Node, predicate: URIRef, value: Value) -> None:
        """Add a triple, or nothing where there is no value."""
        term = term_of(value)
        if term is not None:
            self.triples.append((subject, predicate, term))

    def describe(self, key: str, kind: str, **values: Value) -> URIRef:
        """Add a thing of a class with the properties that have a value."""
        subject = ID[key]
        self.add(subject, RDF.type, DEF[kind])
        for name, value in values.items():
            self.add(subject, DEF[name], value)
        return subject

    def each(self, subject: URIRef, name: str, keys: Iterable[str]) -> None:
        """Add one triple for each thing."""
        for key in keys:
            self.add(subject, DEF[name], ID[key])

    def link(self, key: str | None) -> URIRef | None:
        """Return the IRI of an id, or None."""
        if key is None:
            return None
        return ID[key]

    def unit_link(self, unit: str) -> URIRef:
        """Return the IRI of an organisational unit."""
        return ID[f"ou-{unit}"]

    def bilingual(self, subject: URIRef, predicate: URIRef, english: str, german: str) -> None:
        """Add a label in English and in German."""
        self.add(subject, predicate, Literal(english, "en"))
        self.add(subject, predicate, Literal(german, "de"))

    def quantity(self, quantity: org.Quantity | None) -> BNode | None:
        """Add a blank node with value and unit."""
        if quantity is None:
            return None
        self.nodes += 1
        node = BNode(f"q{self.nodes:04d}")
        self.add(node, DEF.value, Literal(quantity.value, datatype=XSD.decimal))
        self.add(node, DEF.unit, ID[f"unit-{quantity.unit}"])
        return node

    def price(self, price: org.Price | None, key: str) -> URIRef | None:
        """Add a node with amount and currency; it has no label."""
        if price is None:
            return None
        return self.describe(f"price-{key}", "Price", amount=price.amount, currency=price.currency)

    def write(self) -> list[tuple[Node, URIRef, Term]]:
        """Return all triples."""
        self.write_lists()
        self.write_units()
        self.write_places()
        self.write_companies()
        self.write_people()
        self.write_stays()
        self.write_devices()
        self.write_medicines()
        self.write_papers()
        return self.triples

    def write_lists(self) -> None:
        """Write units of measure, specialties, qualifications, diagnoses and severities."""
        for key, symbol, factor in UNITS_OF_MEASURE:
            subject = self.describe(f"unit-{key}", "UnitOfMeasure")
            self.add(subject, RDFS.label, symbol)
            self.add(subject, DEF.toBase, Literal(factor, datatype=XSD.decimal))
        for key, english, german, _ in terms.SPECIALTIES:
            self.bilingual(self.describe(key, "Specialty"), SKOS.prefLabel, english, german)
        for key, english, german in terms.QUALIFICATIONS:
            self.bilingual(self.describe(key, "Qualification"), SKOS.prefLabel, english, german)
        for key, english, german in terms.SEVERITIES:
            self.bilingual(self.describe(key, "Severity"), SKOS.prefLabel, english, german)
        for key, code, english, german, above in terms.DIAGNOSES:
            subject = self.describe(key, "Diagnosis", diagnosisCode=code, within=self.link(above))
            self.bilingual(subject, SKOS.prefLabel, english, german)
        for key, english, german, specialty, _, _ in terms.PROCEDURES:
            subject = self.describe(key, "ProcedureType", specialty=ID[specialty])
            self.bilingual(subject, RDFS.label, english, german)

    def write_units(self) -> None:
        """Write the organisational units; three of them name their head a second time."""
        heads = {person.heads: person.id for person in self.made.people.values() if person.heads}
        for number, kind, english, german in terms.UNITS:
            subject = self.describe(f"ou-{number}", kind)
            self.bilingual(subject, RDFS.label, english, german)
            above = org.parent_unit(number)
            if above:
                self.add(subject, DEF.partOf, self.unit_link(above))
            if number in ("110", "210", "430"):
                self.add(subject, DEF.headOfUnit, ID[heads[number]])

    def write_places(self) -> None:
        """Write facilities, wards and rooms."""
        for key, kind, name, town, beds in terms.FACILITIES:
            subject = self.describe(key, kind, town=town, bedCount=beds)
            self.add(subject, FOAF.name, name)
        for first, second in terms.PARTNER_FACILITIES:
            self.add(ID[first], DEF.partnerOf, ID[second])
        for key, kind, english, german, unit, facility, beds in terms.WARDS:
            subject = self.describe(
                key,
                kind,
                responsibleUnit=self.unit_link(unit),
                atFacility=ID[facility],
                bedCount=beds,
            )
            self.bilingual(subject, SKOS.prefLabel, english, german)
        for first, second in terms.ADJOINING_WARDS:
            self.add(ID[first], DEF.adjoins, ID[second])
        for key, kind, name, facility, area, unit in terms.ROOMS:
            size = org.Quantity(area, unit) if area else None
            subject = self.describe(
                key, kind, atFacility=ID[facility], floorArea=self.quantity(size)
            )
            self.add(subject, RDFS.label, name)

    def write_companies(self) -> None:
        """Write companies, with a node for the address and countries that are not described."""
        for company in self.made.companies.values():
            subject = self.describe(company.id, "Company", email=company.email)
            self.add(subject, FOAF.name, company.name)
            node = BNode(f"a{company.id[3:]}")
            self.add(subject, DEF.address, node)
            self.add(node, DEF.street, company.street)
            self.add(node, DEF.postCode, company.post_code)
            self.add(node, DEF.town, company.town)
            self.add(node, DEF.country, URIRef(DBPEDIA + company.country))

    def write_people(self) -> None:
        """Write staff, locums and advisers; a few have the old fields of the telephone book too."""
        for number, person in enumerate(self.made.people.values()):
            subject = self.write_person(person)
            if number % 23 == 5:
                self.add(subject, DEF.mailbox, person.email)
                self.add(subject, DEF.worksAt, self.unit_link(person.unit))
            if number % 29 == 7:
                self.add(subject, DEF.supervisor, self.link(person.manager))
        for adviser in self.made.advisers.values():
            unit = self.unit_link(adviser.unit)
            subject = self.describe(
                adviser.id, "ExternalConsultant", advises=unit, hiredOn=adviser.hired
            )
            self.add(subject, FOAF.name, adviser.name)
            self.add(subject, DEF.sentBy, self.link(adviser.agency))

    def write_person(self, person: org.Person) -> URIRef:
        """Write one member of staff."""
        subject = self.describe(
            person.id,
            person.kind,
            email=person.email,
            phone=person.phone,
            hiredOn=person.hired,
            leftOn=person.left,
            jobTitle=person.title,
            memberOf=self.unit_link(person.unit),
            reportsTo=self.link(person.manager),
            specialty=self.link(person.specialty),
            specialtyText=person.specialty_name,
            sentBy=self.link(person.agency),
        )
        label = person.name
        if person.kind in ("Consultant", "Registrar", "LocumPhysician"):
            label = f"Dr {person.name}"
        self.add(subject, RDFS.label, label)
        if person.kind != "LocumPhysician":
            self.add(subject, DEF.number, f"E{person.id[2:]}")
        if person.heads:
            self.add(subject, DEF.isHeadOf, self.unit_link(person.heads))
        for language in person.languages:
            self.add(subject, DEF.speaks, language)
        self.each(subject, "qualification", person.qualifications)
        self.each(subject, "standsInFor", person.stands_in_for)
        return subject

    def write_stays(self) -> None:
        """Write patients, admissions and operations; none of them has a label."""
        for patient in self.made.patients.values():
            subject = self.describe(
                patient.id,
                "Patient",
                number=patient.number,
                birthYear=patient.birth_year,
                town=patient.town,
                bloodGroup=patient.blood_group,
            )
            self.each(subject, "allergicTo", patient.allergies)
        for number, stay in enumerate(self.made.admissions.values()):
            subject = self.describe(
                stay.id,
                stay.kind,
                number=stay.number,
                ofPatient=ID[stay.patient],
                toWard=ID[stay.ward],
                admittedOn=stay.admitted,
                dischargedOn=stay.discharged,
                mainDiagnosis=self.link(stay.diagnosis),
                attending=ID[stay.attending],
                dischargedTo=stay.destination,
                continues=self.link(stay.continues),
            )
            self.each(subject, "otherDiagnosis", stay.other)
            if stay.admitted.year == 2022 and number % 9 == 0:
                self.add(subject, DEF.wardOfStay, ID[stay.ward])
        for done in self.made.procedures.values():
            self.describe(
                done.id,
                "PerformedProcedure",
                procedureType=ID[done.kind],
                duringAdmission=self.link(done.admission),
                leadSurgeon=ID[done.surgeon],
                anaesthetist=self.link(done.anaesthetist),
                theatre=ID[done.theatre],
                plannedFor=done.planned,
                performedOn=done.done,
                duration=self.quantity(done.duration),
                state=done.state,
            )

    def write_devices(self) -> None:
        """Write devices and service orders."""
        for device in self.made.devices.values():
            subject = self.describe(
                device.id,
                device.kind,
                inventoryNumber=device.number,
                makerName=device.maker_name,
                maker=self.link(device.maker),
                model=device.model,
                standsAt=ID[device.place],
                purchaseYear=device.bought,
                price=self.price(device.price, device.number),
                weight=self.quantity(device.weight),
                warrantyUntil=device.warranty,
                successorOf=self.link(device.successor_of),
            )
            self.add(subject, RDFS.label, device.label)
        for order in self.made.orders.values():
            subject = self.describe(
                order.id,
                order.kind,
                concerns=ID[order.device],
                openedOn=order.opened,
                closedOn=order.closed,
                doneBy=self.link(order.person),
                contractor=self.link(order.contractor),
                cost=self.price(order.cost, order.number),
                fault=order.fault,
            )
            self.add(subject, RDFS.label, order.number)

    def write_medicines(self) -> None:
        """Write active substances and medicines."""
        for name in terms.SUBSTANCES:
            self.add(self.describe(org.substance_id(name), "ActiveSubstance"), SKOS.prefLabel, name)
        for first, second in terms.INTERACTIONS:
            self.add(ID[org.substance_id(first)], DEF.interactsWith, ID[org.substance_id(second)])
        for medicine in self.made.medicines.values():
            subject = self.describe(
                medicine.id,
                "Medicine",
                activeSubstance=ID[medicine.substance],
                strength=self.quantity(medicine.strength),
                dosageForm=medicine.form,
                inStock=medicine.stock,
                controlled=medicine.controlled or None,
                price=self.price(medicine.price, medicine.id),
                substitutes=self.link(medicine.substitute),
            )
            self.add(subject, RDFS.label, medicine.label)
            self.each(subject, "suppliedBy", medicine.suppliers)

    def write_papers(self) -> None:
        """Write contracts, safety events, guidelines and studies."""
        for contract in self.made.contracts.values():
            self.describe(
                contract.id,
                "Contract",
                number=contract.number,
                contractPartner=ID[contract.partner],
                responsibleUnit=self.unit_link(contract.unit),
                startsOn=contract.start,
                endsOn=contract.end,
                contractValue=self.price(contract.value, contract.number),
                keptBy=self.link(contract.owner),
                replaces=self.link(contract.replaces),
            )
        for event in self.made.events.values():
            subject = self.describe(
                event.id,
                "SafetyEvent",
                happenedOn=event.day,
                atPlace=ID[event.ward],
                eventCategory=event.category,
                severity=self.link(event.severity),
                concerns=self.link(event.device),
                reportedBy=self.link(event.reporter),
                closedOn=event.closed,
            )
            self.add(subject, RDFS.label, Literal(f"{event.number} {event.text}", event.language))
        self.write_guidelines_and_studies()

    def write_guidelines_and_studies(self) -> None:
        """Write guidelines and studies; the leader of a study is the head of its unit."""
        heads = {person.heads: person.id for person in self.made.people.values() if person.heads}
        for key, title, unit, start, diagnosis, earlier in terms.GUIDELINES:
            subject = self.describe(
                key,
                "Guideline",
                responsibleUnit=self.unit_link(unit),
                startsOn=date.fromisoformat(start),
                concerns=self.link(diagnosis),
                replaces=self.link(earlier),
            )
            self.add(subject, RDFS.label, title)
        for key, name, unit, sponsor, start, end, count, diagnosis in terms.STUDIES:
            subject = self.describe(
                key,
                "Study",
                principalInvestigator=self.link(heads.get(unit)),
                sponsor=self.link(sponsor),
                startsOn=date.fromisoformat(start),
                endsOn=date.fromisoformat(end) if end else None,
                participants=count,
                concerns=self.link(diagnosis),
            )
            self.add(subject, SKOS.prefLabel, name)


def turtle_term(term: Term) -> str:
    """Write a term in Turtle, with a prefix where the local part needs no escape."""
    if isinstance(term, BNode):
        return f"_:{term}"
    if isinstance(term, Literal):
        if term.datatype == XSD.string or term.datatype is None:
            return str(term.n3())
        return f'"{term}"^^{turtle_term(term.datatype)}'
    for prefix, namespace in PREFIXES.items():
        local = str(term).removeprefix(namespace)
        if str(term).startswith(namespace) and re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", local):
            return f"{prefix}:{local}"
    return str(term.n3())


def turtle(triples: Iterable[tuple[Node, URIRef, Term]]) -> str:
    """Write triples as Turtle, one block for each subject in the order of its first triple."""
    blocks: dict[Node, list[str]] = {}
    for subject, predicate, term in triples:
        blocks.setdefault(subject, []).append(f"{turtle_term(predicate)} {turtle_term(term)}")
    lines = [f"@prefix {prefix}: <{namespace}> ." for prefix, namespace in PREFIXES.items()]
    for subject, statements in blocks.items():
        lines.append("")
        lines.append(f"{turtle_term(subject)} " + " ;\n  ".join(statements) + " .")
    return "\n".join(lines) + "\n"
