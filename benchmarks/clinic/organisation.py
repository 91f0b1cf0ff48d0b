"""Build Rowanvale Hospitals as Python objects, the same each time for one seed.

The objects refer to each other by id. An id is the last part of the thing's IRI.
"""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import terms_of_clinic as terms

SEED = 350707
SNAPSHOT = date(2024, 3, 31)


@dataclass(frozen=True)
class Quantity:
    """A number with the unit in which it was written down."""

    value: str
    unit: str


@dataclass(frozen=True)
class Price:
    """An amount of money."""

    amount: Decimal
    currency: str


@dataclass
class Company:
    """A business partner."""

    id: str
    name: str
    street: str | None
    post_code: str
    town: str
    country: str
    email: str | None


@dataclass
class Person:
    """Somebody who works for or with the hospitals."""

    id: str
    kind: str
    given: str
    family: str
    unit: str
    title: str
    hired: date
    email: str | None = None
    phone: str | None = None
    left: date | None = None
    manager: str | None = None
    heads: str | None = None
    specialty_name: str | None = None
    specialty: str | None = None
    languages: list[str] = field(default_factory=list)
    qualifications: list[str] = field(default_factory=list)
    stands_in_for: list[str] = field(default_factory=list)
    agency: str | None = None

    @property
    def name(self) -> str:
        """Return given and family name."""
        return f"{self.given} {self.family}"


@dataclass
class Patient:
    """A patient, known by a number only."""

    id: str
    number: str
    birth_year: str | None
    town: str
    blood_group: str | None
    allergies: list[str]


@dataclass
class Admission:
    """A stay on a ward."""

    id: str
    number: str
    kind: str
    patient: str
    ward: str
    admitted: date
    discharged: date | None
    diagnosis: str | None
    other: list[str]
    attending: str
    destination: str | None
    continues: str | None = None


@dataclass
class Procedure:
    """An operation; a cancelled one has no day on which it was done."""

    id: str
    kind: str
    admission: str | None
    surgeon: str
    anaesthetist: str | None
    theatre: str
    planned: date
    done: date | None
    duration: Quantity | None
    state: str


@dataclass
class Device:
    """A medical device."""

    id: str
    number: str
    kind: str
    label: str
    maker_name: str
    maker: str | None
    model: str
    place: str
    bought: str | None
    price: Price | None
    weight: Quantity | None
    warranty: date | None
    successor_of: str | None = None


@dataclass
class Order:
    """A repair or a safety inspection of a device."""

    id: str
    number: str
    kind: str
    device: str
    opened: date
    closed: date | None
    person: str | None
    contractor: str | None
    cost: Price | None
    fault: str | None


@dataclass
class Medicine:
    """A medicine that the pharmacy keeps."""

    id: str
    label: str
    substance: str
    strength: Quantity
    form: str
    suppliers: list[str]
    stock: str | None
    controlled: bool
    price: Price | None
    substitute: str | None = None


@dataclass
class Contract:
    """An agreement with a company."""

    id: str
    number: str
    partner: str
    unit: str
    start: date
    end: date | None
    value: Price | None
    owner: str | None
    replaces: str | None = None


@dataclass
class Event:
    """A patient safety event."""

    id: str
    number: str
    day: date
    ward: str
    category: str
    severity: str | None
    text: str
    language: str
    device: str | None
    reporter: str | None
    closed: date | None


@dataclass
class Organisation:
    """Everything that is not a fixed list, each kind by id."""

    companies: dict[str, Company] = field(default_factory=dict)
    people: dict[str, Person] = field(default_factory=dict)
    advisers: dict[str, Person] = field(default_factory=dict)
    """External consultants: their class has the same label as the senior physicians."""
    patients: dict[str, Patient] = field(default_factory=dict)
    admissions: dict[str, Admission] = field(default_factory=dict)
    procedures: dict[str, Procedure] = field(default_factory=dict)
    devices: dict[str, Device] = field(default_factory=dict)
    orders: dict[str, Order] = field(default_factory=dict)
    medicines: dict[str, Medicine] = field(default_factory=dict)
    contracts: dict[str, Contract] = field(default_factory=dict)
    events: dict[str, Event] = field(default_factory=dict)


def parent_unit(unit: str) -> str | None:
    """Return the unit directly above, or None for a directorate."""
    if unit.endswith("00"):
        return None
    if unit.endswith("0"):
        return f"{unit[0]}00"
    return f"{unit[:2]}0"


def substance_id(name: str) -> str:
    """Return the id of an active substance."""
    return f"sub-{terms.SUBSTANCES.index(name) + 1:02d}"


class Builder:
    """Builds the parts in order, each from those before it."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.made = Organisation()

    def build(self) -> Organisation:
        """Return the whole organisation."""
        self.make_companies()
        self.make_people()
        self.make_managers()
        self.make_deputies()
        self.make_advisers()
        self.make_patients()
        self.make_admissions()
        self.make_procedures()
        self.make_devices()
        self.make_orders()
        self.make_medicines()
        self.make_contracts()
        self.make_events()
        return self.made

    def chance(self, probability: float) -> bool:
        """Say yes with the given probability."""
        return self.rng.random() < probability

    def day(self, first: date, last: date) -> date:
        """Return a day between two days, both included."""
        return first + timedelta(days=self.rng.randrange((last - first).days + 1))

    def price(self, typical: int, currencies: tuple[str, ...]) -> Price:
        """Return an amount around a typical one."""
        cents = int(typical * 100 * self.rng.uniform(0.6, 1.5))
        return Price(Decimal(cents) / 100, self.rng.choice(currencies))

    def make_companies(self) -> None:
        """Make the business partners; some have no street, some no mail address."""
        for number, name in enumerate(terms.COMPANIES, start=1):
            key = f"co-{number:02d}"
            words = name.lower().replace("&", "").replace(".", "").split()
            street = None
            if self.chance(0.9):
                street = (
                    f"{self.rng.choice(('Mill Lane', 'Ringstrasse', 'Canal Street'))} {number * 3}"
                )
            email = None
            if self.chance(0.7):
                email = f"info@{words[0]}.example"
            self.made.companies[key] = Company(
                key,
                name,
                street,
                str(self.rng.randrange(10000, 99999)),
                self.rng.choice(("Basel", "Leeds", "Malmö", "Utrecht", "Bergamo", "Cork", "Ulm")),
                self.rng.choice(terms.COUNTRIES),
                email,
            )

    def make_people(self) -> None:
        """Make staff post by post, with unique names except for two pairs."""
        names = [(given, family) for given in terms.GIVEN_NAMES for family in terms.FAMILY_NAMES]
        self.rng.shuffle(names)
        self.add_person("chief", "500", names.pop())
        director = self.made.people["p-1001"]
        director.kind = "Administrator"
        director.title = "Chief Executive"
        for line in terms.POSTS:
            for post in line:
                unit, job, count = post.split()
                for _ in range(int(count)):
                    self.add_person(job, unit, names.pop())
        for unit in ("100", "200", "300", "400"):
            self.add_person("consultant", unit, names.pop())
        self.add_person("administrator", "500", names.pop())
        self.make_homonyms()

    def add_person(self, job: str, unit: str, name: tuple[str, str]) -> None:
        """Add one person with the usual gaps in the data."""
        kind, title = terms.JOBS.get(job, ("Administrator", ""))
        key = f"p-{1001 + len(self.made.people) * 3}"
        given, family = name
        person = Person(key, kind, given, family, unit, title, self.day(date(1996, 1, 1), SNAPSHOT))
        if self.chance(0.9):
            person.email = f"{given[0]}.{family}@rowanvale-health.example".lower()
        if self.chance(0.8):
            person.phone = f"+44 1632 960{self.rng.randrange(100, 999)}"
        if self.chance(0.06):
            person.left = self.day(date(2022, 1, 1), SNAPSHOT)
            person.hired = min(person.hired, date(2021, 1, 1))
        self.add_skills(person)
        self.made.people[key] = person

    def add_skills(self, person: Person) -> None:
        """Give a person languages, qualifications and, if a physician, a specialty."""
        person.languages = self.rng.sample(terms.LANGUAGES, self.rng.choice((0, 0, 1, 1, 2)))
        if person.kind not in ("Administrator", "Pharmacist"):
            keys = [key for key, *_ in terms.QUALIFICATIONS]
            person.qualifications = self.rng.sample(keys, self.rng.choice((0, 1, 1, 2)))
        if person.kind == "LocumPhysician":
            person.agency = self.rng.choice(terms.STAFF_AGENCIES)
        if person.kind not in ("Consultant", "Registrar", "LocumPhysician"):
            return
        for key, name, _, units in terms.SPECIALTIES:
            if person.unit in units:
                person.specialty_name = name
                if self.chance(0.9):
                    person.specialty = key

    def make_homonyms(self) -> None:
        """Give two people of different jobs the same name, twice."""
        nurses = [person for person in self.made.people.values() if person.kind == "Nurse"]
        consultants = [each for each in self.made.people.values() if each.kind == "Consultant"]
        technicians = [each for each in self.made.people.values() if each.kind == "Technician"]
        pairs = (
            (nurses[4], consultants[9], "Anna", "Keller"),
            (technicians[6], nurses[20], "Hugo", "Voss"),
        )
        for first, second, given, family in pairs:
            for number, person in enumerate((first, second), start=1):
                person.given = given
                person.family = family
                if person.email:
                    person.email = f"{given[0]}.{family}{number}@rowanvale-health.example".lower()

    def make_managers(self) -> None:
        """Choose the heads of units; everybody reports to the head of the own unit or of one above."""
        for unit, *_ in terms.UNITS:
            members = [
                each for each in self.made.people.values() if each.unit == unit and not each.left
            ]
            members = [each for each in members if each.kind not in ("LocumPhysician", "Registrar")]
            if not members or unit in terms.UNITS_WITHOUT_HEAD:
                continue
            head = members[0]
            if unit == "500":
                head = members[-1]
            head.heads = unit
        for person in self.made.people.values():
            if person.id != "p-1001":
                person.manager = self.manager_of(person)

    def manager_of(self, person: Person) -> str:
        """Return the id of the nearest head above a person, at last the chief executive."""
        heads = {each.heads: each.id for each in self.made.people.values() if each.heads}
        unit: str | None = person.unit
        while unit:
            head = heads.get(unit)
            if head and head != person.id:
                return head
            unit = parent_unit(unit)
        return "p-1001"

    def make_deputies(self) -> None:
        """Say who stands in for whom among consultants and nurses; some pairs are mutual."""
        for kind in ("Consultant", "Nurse", "Technician"):
            people = [
                each for each in self.made.people.values() if each.kind == kind and not each.left
            ]
            for first, second in itertools.pairwise(people):
                if first.unit != second.unit or not self.chance(0.3):
                    continue
                first.stands_in_for.append(second.id)
                if self.chance(0.35):
                    second.stands_in_for.append(first.id)

    def make_advisers(self) -> None:
        """Make six management consultants from two firms."""
        names = (
            ("Tobias Wren", "520", "co-19"),
            ("Helena Marsh", "540", "co-19"),
            ("Cosmo Adeyemi", "500", "co-20"),
            ("Livia Roth", "500", "co-20"),
            ("Edgar Plume", "410", "co-20"),
            ("Nadia Fairlie", "430", "co-19"),
        )
        for number, (name, unit, company) in enumerate(names, start=1):
            given, family = name.split()
            key = f"x-{number:02d}"
            person = Person(
                key, "ExternalConsultant", given, family, unit, "", date(2023, number, 1)
            )
            person.agency = company
            self.made.advisers[key] = person

    def make_patients(self) -> None:
        """Make the patients; one in ten has no year of birth, two in five no blood group."""
        for number in range(1, 141):
            year = None
            if self.chance(0.9):
                year = str(self.rng.randrange(1931, 2020))
            group = None
            if self.chance(0.6):
                group = self.rng.choice(("A+", "A-", "B+", "0+", "0-", "AB+"))
            allergies = []
            if self.chance(0.2):
                allergies = [substance_id(self.rng.choice(terms.SUBSTANCES))]
            key = f"pat-{4000 + number * 7}"
            self.made.patients[key] = Patient(
                key,
                f"RV{700000 + number * 137}",
                year,
                self.rng.choice(terms.TOWNS),
                group,
                allergies,
            )

    def make_admissions(self) -> None:
        """Make stays; one in eight continues an earlier stay of the same patient on another ward."""
        days = sorted(self.day(date(2022, 1, 1), SNAPSHOT) for _ in range(250))
        counts: dict[int, int] = {}
        for admitted in days:
            counts[admitted.year] = counts.get(admitted.year, 0) + 1
            number = f"{admitted.year}-{counts[admitted.year]:04d}"
            wards = [row for row in terms.WARDS if row[0] not in terms.WARDS_WITHOUT_ADMISSIONS]
            ward = self.rng.choice(wards)
            patient = self.rng.choice([*self.made.patients])
            self.add_admission(number, ward, patient, admitted)

    def add_admission(
        self, number: str, ward: tuple[Any, ...], patient: str, admitted: date
    ) -> None:
        """Add a stay, as a transfer if the patient was just discharged from another one."""
        unit = ward[4]
        pool = terms.DIAGNOSES_OF_UNIT[unit]
        diagnosis = None
        if self.chance(0.95):
            diagnosis = self.rng.choice(pool)
        others = [
            key for key in ("dx-14", "dx-41", "dx-23") if self.chance(0.1) and key != diagnosis
        ]
        kind = self.rng.choice(("EmergencyAdmission", "EmergencyAdmission", "PlannedAdmission"))
        discharged: date | None = admitted + timedelta(days=self.rng.randrange(0, 24))
        destination: str | None = self.rng.choice(("home", "home", "home", "care home", "died"))
        if discharged and discharged > SNAPSHOT:
            discharged = None
            destination = None
        key = f"adm-{number}"
        stay = Admission(
            key,
            f"AD-{number}",
            kind,
            patient,
            ward[0],
            admitted,
            discharged,
            diagnosis,
            others,
            self.attending_of(unit),
            destination,
        )
        if self.chance(0.2):
            self.continue_earlier(stay)
        self.made.admissions[key] = stay

    def continue_earlier(self, stay: Admission) -> None:
        """Make a stay the continuation of a recent one that nothing continues yet."""
        taken = {each.continues for each in self.made.admissions.values()}
        for earlier in reversed([*self.made.admissions.values()]):
            if earlier.ward == stay.ward or earlier.id in taken or earlier.destination == "died":
                continue
            stay.patient = earlier.patient
            stay.continues = earlier.id
            earlier.discharged = stay.admitted
            earlier.destination = "other ward"
            return

    def attending_of(self, unit: str) -> str:
        """Return a consultant of the unit, or a geriatrician for rehabilitation."""
        if unit == "550":
            unit = "160"
        people = [each for each in self.made.people.values() if each.unit == unit]
        people = [each for each in people if each.kind in ("Consultant", "LocumPhysician")]
        return self.rng.choice(people).id

    def make_procedures(self) -> None:
        """Make an operation for most stays with a fitting diagnosis, and some for day patients."""
        for stay in [*self.made.admissions.values()]:
            kinds = [row for row in terms.PROCEDURES if stay.diagnosis in row[4]]
            if kinds and self.chance(0.9):
                self.add_procedure(self.rng.choice(kinds), stay, stay.admitted)
            if kinds and self.chance(0.2):
                self.add_procedure(self.rng.choice(kinds), stay, stay.admitted + timedelta(days=1))
        for _ in range(55):
            kind = self.rng.choice((terms.PROCEDURES[10], terms.PROCEDURES[4], terms.PROCEDURES[7]))
            self.add_procedure(kind, None, self.day(date(2022, 1, 1), SNAPSHOT))

    def add_procedure(self, kind: tuple[Any, ...], stay: Admission | None, planned: date) -> None:
        """Add an operation; one in nine is cancelled, and some have no duration."""
        key, _, _, specialty, _, minutes = kind
        name = {row[0]: row[1] for row in terms.SPECIALTIES}[specialty]
        surgeons = [each for each in self.made.people.values() if each.specialty_name == name]
        anaesthetists = [each for each in self.made.people.values() if each.unit == "230"]
        anaesthetists = [
            each for each in anaesthetists if each.kind in ("Consultant", "LocumPhysician")
        ]
        facility = "fac-03"
        if stay:
            facility = {row[0]: row[5] for row in terms.WARDS}[stay.ward]
        if key == "pt-11":
            facility = "fac-06"
        theatres = [
            row[0] for row in terms.ROOMS if row[1] == "OperatingTheatre" and row[3] == facility
        ]
        theatres = theatres or ["rm-101", "rm-102", "rm-103"]
        cancelled = self.chance(0.11)
        done = None
        duration = None
        if not cancelled:
            done = planned
            duration = self.duration(minutes)
        number = f"op-{planned.year % 100}{len(self.made.procedures) * 7 + 1003}"
        self.made.procedures[number] = Procedure(
            number,
            key,
            stay.id if stay else None,
            self.rng.choice(surgeons).id,
            self.rng.choice(anaesthetists).id if self.chance(0.85) else None,
            self.rng.choice(theatres),
            planned,
            done,
            duration,
            "cancelled" if cancelled else self.rng.choice(("done", "done", "completed")),
        )

    def duration(self, minutes: int) -> Quantity | None:
        """Return a duration in minutes or in hours, or nothing for one in twelve."""
        if self.chance(0.08):
            return None
        taken = int(minutes * self.rng.uniform(0.7, 1.8))
        if self.chance(0.3):
            return Quantity(f"{max(1, round(taken / 15)) * 0.25:g}", "h")
        return Quantity(str(taken), "min")

    def make_devices(self) -> None:
        """Make the devices of each kind; some are the successors of earlier ones."""
        for prefix, kind, name, count, price, weight, makers, models in terms.DEVICE_KINDS:
            earlier: list[str] = []
            for number in range(count):
                inventory = f"{prefix}-{137 + number * 13:04d}"
                maker = self.rng.choice(makers)
                device = Device(
                    f"dev-{inventory}",
                    inventory,
                    kind,
                    self.device_label(inventory, name),
                    self.made.companies[maker].name,
                    maker if self.chance(0.9) else None,
                    f"{self.rng.choice(models.split())} {self.rng.choice((100, 200, 350))}",
                    self.place_of(prefix),
                    str(self.rng.randrange(2006, 2025)) if self.chance(0.93) else None,
                    self.price(price, ("EUR", "EUR", "EUR", "GBP", "CHF"))
                    if self.chance(0.92)
                    else None,
                    self.weight(weight) if self.chance(0.85) else None,
                    self.day(date(2022, 6, 1), date(2028, 12, 31)) if self.chance(0.75) else None,
                )
                if earlier and self.chance(0.2):
                    device.successor_of = earlier.pop()
                earlier.append(device.id)
                self.made.devices[device.id] = device

    def device_label(self, inventory: str, name: str) -> str:
        """Write the number before or behind the name, sometimes all in capitals."""
        label = self.rng.choice(
            (f"{inventory} {name}", f"{name} {inventory}", f"{inventory} {name}")
        )
        if self.chance(0.1):
            return label.upper()
        return label

    def place_of(self, prefix: str) -> str:
        """Return the ward or room in which a device stands."""
        imaging = [row[0] for row in terms.ROOMS if row[1] == "ImagingRoom"]
        theatres = [row[0] for row in terms.ROOMS if row[1] == "OperatingTheatre"]
        wards = [row[0] for row in terms.WARDS]
        fitting = {
            "MR": ["rm-111", "rm-411"],
            "CT": ["rm-112", "rm-211", "rm-411"],
            "US": [*imaging, "w-09", "w-17"],
            "XR": [*imaging, "w-08"],
            "VN": ["w-08", "w-13", "w-19", *theatres[:4]],
            "DM": ["w-24", "w-04"],
        }
        return self.rng.choice(fitting.get(prefix, [*wards, *theatres]))

    def weight(self, kilograms: int) -> Quantity:
        """Return a weight in kilograms, or in grams for one in five."""
        value = kilograms * self.rng.uniform(0.8, 1.25)
        if self.chance(0.2) and kilograms < 100:
            return Quantity(str(int(value * 1000)), "g")
        return Quantity(f"{value:.1f}", "kg")

    def make_orders(self) -> None:
        """Make repairs and inspections: by own technicians, by a contractor, or by nobody yet."""
        technicians = [
            each.id for each in self.made.people.values() if each.unit in ("510", "511", "512")
        ]
        faults = ("battery", "display", "alarm", "leak", "power supply", "software", None)
        devices = [key for key in self.made.devices if self.chance(0.7)]
        for number in range(130):
            device = self.rng.choice(devices)
            kind = self.rng.choice(("Repair", "Repair", "SafetyInspection"))
            opened = self.day(date(2022, 1, 1), SNAPSHOT)
            closed: date | None = opened + timedelta(days=self.rng.randrange(0, 50))
            if closed and (closed > SNAPSHOT or self.chance(0.06)):
                closed = None
            person = self.rng.choice(technicians)
            contractor = None
            if self.chance(0.3):
                contractor = self.rng.choice(terms.SERVICE_CONTRACTORS)
            key = f"so-{20117 + number * 3}"
            self.made.orders[key] = Order(
                key,
                f"SO-{20117 + number * 3}",
                kind,
                device,
                opened,
                closed,
                None if contractor else person,
                contractor,
                self.price(640, ("EUR", "EUR", "EUR", "CHF"))
                if closed and self.chance(0.9)
                else None,
                self.rng.choice(faults) if kind == "Repair" else None,
            )
        self.make_dangling()

    def make_dangling(self) -> None:
        """Refer to a technician and a ventilator of which nothing is known."""
        checks = [each for each in self.made.orders.values() if each.kind == "SafetyInspection"]
        order = [each for each in checks if each.device.startswith("dev-DM")][-1]
        order.person = "p-0907"
        order.contractor = None
        self.made.devices["dev-VN-0137"].successor_of = "dev-VN-0098"

    def make_medicines(self) -> None:
        """Make two medicines for each substance; some have a substitute."""
        for name in terms.SUBSTANCES:
            earlier = None
            for strength, unit in self.rng.sample(terms.STRENGTHS, 2):
                key = f"med-{300 + len(self.made.medicines) * 4}"
                form = self.rng.choice(terms.FORMS)
                label = f"{name} {strength} {unit.replace('ug', 'µg')} {form}"
                if self.chance(0.15):
                    label = label.upper()
                self.made.medicines[key] = Medicine(
                    key,
                    label,
                    substance_id(name),
                    Quantity(strength, unit),
                    form,
                    self.rng.sample(terms.MEDICINE_SUPPLIERS, self.rng.choice((1, 1, 2))),
                    str(self.rng.randrange(0, 1900)) if self.chance(0.92) else None,
                    name in terms.CONTROLLED,
                    self.price(14, ("EUR", "EUR", "GBP")) if self.chance(0.85) else None,
                    earlier if self.chance(0.4) else None,
                )
                earlier = key

    def make_contracts(self) -> None:
        """Make chains of contracts: a later one with the same partner replaces the earlier one."""
        partners = (
            "co-14",
            "co-15",
            "co-16",
            "co-21",
            "co-22",
            "co-23",
            "co-24",
            "co-31",
            "co-17",
            "co-04",
        )
        buyers = [each.id for each in self.made.people.values() if each.unit in ("520", "540")]
        count = 0
        for partner in partners:
            earlier = None
            start = date(self.rng.randrange(2012, 2019), self.rng.randrange(1, 13), 1)
            for step in range(self.rng.choice((2, 3, 4))):
                count += 1
                end: date | None = start + timedelta(days=self.rng.choice((730, 1095)))
                if end and end > SNAPSHOT and self.chance(0.4):
                    end = None
                key = f"k-{count:03d}"
                self.made.contracts[key] = Contract(
                    key,
                    f"RVC-{start.year}-{count:03d}",
                    partner,
                    self.rng.choice(("510", "520", "530", "500", "430")),
                    start,
                    end,
                    self.price(90000 + step * 9000, ("EUR", "EUR", "GBP"))
                    if self.chance(0.9)
                    else None,
                    self.rng.choice(buyers) if self.chance(0.85) else None,
                    earlier,
                )
                earlier = key
                if end is None or end > SNAPSHOT:
                    break
                start = end + timedelta(days=1)

    def make_events(self) -> None:
        """Make safety events; one in three has a German text only."""
        people = [
            each
            for each in self.made.people.values()
            if each.kind in ("Nurse", "Midwife", "Consultant")
        ]
        for number in range(1, 61):
            day = self.day(date(2022, 1, 1), SNAPSHOT)
            ward = self.rng.choice(terms.WARDS)[0]
            category = self.rng.choice(terms.EVENT_CATEGORIES)
            english, german = terms.EVENT_TEXTS[category]
            text, language = self.rng.choice(((english, "en"), (english, "en"), (german, "de")))
            devices = [each.id for each in self.made.devices.values() if each.place == ward]
            device = None
            if category == "device" and devices:
                device = self.rng.choice(devices)
            closed: date | None = day + timedelta(days=self.rng.randrange(3, 60))
            if closed and (closed > SNAPSHOT or self.chance(0.3)):
                closed = None
            key = f"ev-{number:03d}"
            self.made.events[key] = Event(
                key,
                f"PSE-{number:03d}",
                day,
                ward,
                category,
                self.rng.choice(("sv-1", "sv-2", "sv-2", "sv-3", "sv-4"))
                if self.chance(0.93)
                else None,
                text,
                language,
                device,
                self.rng.choice(people).id if self.chance(0.8) else None,
                closed,
            )


def build(seed: int = SEED) -> Organisation:
    """Return the organisation of a seed."""
    return Builder(seed).build()
