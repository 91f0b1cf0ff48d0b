"""The vocabulary of Rowanvale Hospitals: classes and properties as tables, and its triples."""

from __future__ import annotations

from collections.abc import Iterator

from rdflib import OWL, RDF, RDFS, XSD, Literal, Namespace, URIRef

DEF = Namespace("http://data.rowanvale-health.example/def#")
ID = Namespace("http://data.rowanvale-health.example/id/")

Triple = tuple[URIRef, URIRef, URIRef | Literal]

# Name, the class above (or -), label. Two pairs have one label: Consultant, and Procedure.
CLASSES = """
Organisation | - | Organisation
Company | Organisation | Company
Facility | Organisation | Facility
Hospital | Facility | Hospital
DayClinic | Facility | Day clinic
OrganisationalUnit | - | Organisational unit
Directorate | OrganisationalUnit | Directorate
Department | OrganisationalUnit | Department
Section | OrganisationalUnit | Section
CarePlace | - | Place of care
Ward | CarePlace | Ward
IntensiveCareUnit | Ward | Intensive care unit
MaternityWard | Ward | Maternity ward
OperatingTheatre | CarePlace | Operating theatre
ImagingRoom | CarePlace | Imaging room
Person | - | Person
Employee | Person | Employee
Physician | Employee | Physician
Consultant | Physician | Consultant
Registrar | Physician | Registrar
LocumPhysician | Person | Locum physician
ExternalConsultant | Person | Consultant
Nurse | Employee | Nurse
Midwife | Employee | Midwife
Therapist | Employee | Therapist
Technician | Employee | Technician
Pharmacist | Employee | Pharmacist
Administrator | Employee | Administrator
Patient | - | Patient
Admission | - | Admission
EmergencyAdmission | Admission | Emergency admission
PlannedAdmission | Admission | Planned admission
Diagnosis | - | Diagnosis
ProcedureType | - | Procedure
PerformedProcedure | - | Procedure
Device | - | Medical device
ImagingDevice | Device | Imaging device
MagneticResonanceScanner | ImagingDevice | MR scanner
ComputedTomographyScanner | ImagingDevice | CT scanner
UltrasoundUnit | ImagingDevice | Ultrasound unit
Ventilator | Device | Ventilator
InfusionPump | Device | Infusion pump
PatientMonitor | Device | Patient monitor
DialysisMachine | Device | Dialysis machine
ServiceOrder | - | Service order
Repair | ServiceOrder | Repair
SafetyInspection | ServiceOrder | Safety inspection
Medicine | - | Medicine
ActiveSubstance | - | Active substance
Contract | - | Contract
SafetyEvent | - | Patient safety event
Severity | - | Severity
Guideline | - | Guideline
Study | - | Clinical study
Specialty | - | Specialty
Qualification | - | Qualification
UnitOfMeasure | - | Unit of measure
Price | - | Price
Volunteer | Person | Volunteer
Ambulance | - | Ambulance
"""

# Name, domain (or -), range (or -; "text", "date", "number", "boolean" are datatypes), label, comment.
PROPERTIES = """
partnerOf | Facility | Facility | partner of | Holds both ways; entered once.
address | - | - | address |
street | - | text | street |
postCode | - | text | post code |
town | - | text | town |
number | - | text | number |
price | - | Price | price |
country | - | - | country |
partOf | OrganisationalUnit | OrganisationalUnit | part of |
isHeadOf | Person | OrganisationalUnit | is head of |
headOfUnit | OrganisationalUnit | Person | head | Old field of the telephone book.
responsibleUnit | - | OrganisationalUnit | responsible unit |
atFacility | CarePlace | Facility | at facility |
bedCount | - | text | beds | As written in the licence.
adjoins | CarePlace | CarePlace | adjoins | Entered for one of the two only.
floorArea | CarePlace | - | floor area | A node with value and unit.
value | - | - | value |
unit | - | UnitOfMeasure | unit |
toBase | UnitOfMeasure | number | factor to base unit | Multiply by this to get kg, min or m2.
email | - | text | e-mail |
mailbox | Person | text | mail | Old field of the telephone book.
phone | - | text | phone |
hiredOn | - | date | hired on |
leftOn | Person | date | left on |
jobTitle | Person | text | job title |
memberOf | Person | OrganisationalUnit | member of |
worksAt | Person | - | works at | Old field of the telephone book.
reportsTo | Person | Person | reports to |
supervisor | - | - | supervisor | Old field of the telephone book.
specialty | - | Specialty | specialty |
specialtyText | Person | text | specialty | As entered by the personnel office.
speaks | - | text | speaks |
qualification | Person | Qualification | qualification |
standsInFor | Person | Person | stands in for |
sentBy | Person | Company | sent by |
advises | ExternalConsultant | OrganisationalUnit | advises |
birthYear | Patient | text | year of birth |
bloodGroup | Patient | text | blood group |
allergicTo | Patient | ActiveSubstance | allergic to |
ofPatient | - | Patient | patient |
toWard | Admission | Ward | ward |
wardOfStay | - | - | ward | From the old system, 2022 only.
admittedOn | Admission | date | admitted on |
dischargedOn | Admission | date | discharged on |
mainDiagnosis | Admission | Diagnosis | main diagnosis |
otherDiagnosis | - | - | other diagnosis |
attending | Admission | Person | attending physician |
dischargedTo | Admission | text | discharged to |
continues | Admission | Admission | continues | The stay from which the patient was transferred.
diagnosisCode | Diagnosis | text | code |
within | Diagnosis | Diagnosis | within |
procedureType | PerformedProcedure | ProcedureType | kind of procedure |
duringAdmission | PerformedProcedure | Admission | during |
leadSurgeon | PerformedProcedure | Person | lead surgeon |
anaesthetist | - | - | anaesthetist |
theatre | PerformedProcedure | OperatingTheatre | theatre |
plannedFor | PerformedProcedure | date | planned for |
performedOn | PerformedProcedure | date | performed on |
duration | - | - | duration |
state | - | text | state |
inventoryNumber | Device | text | inventory number |
makerName | Device | text | maker | As on the type plate.
maker | Device | Company | maker |
model | - | text | model |
standsAt | Device | CarePlace | location |
purchaseYear | Device | text | year of purchase |
weight | - | - | weight |
warrantyUntil | - | date | warranty until |
successorOf | Device | Device | successor of |
concerns | - | - | concerns |
openedOn | - | date | opened on |
closedOn | - | date | closed on |
doneBy | ServiceOrder | Person | done by |
contractor | ServiceOrder | Company | contractor |
cost | - | Price | cost |
amount | Price | number | amount |
currency | Price | text | currency |
fault | Repair | text | fault |
activeSubstance | Medicine | ActiveSubstance | active substance |
strength | Medicine | - | strength |
dosageForm | Medicine | text | form |
suppliedBy | - | Company | supplied by |
inStock | Medicine | text | stock |
controlled | Medicine | boolean | controlled drug |
substitutes | Medicine | Medicine | substitutes | Holds both ways; entered once.
interactsWith | ActiveSubstance | ActiveSubstance | interacts with | Holds both ways; entered once.
contractPartner | Contract | Company | partner |
startsOn | - | date | starts on |
endsOn | - | date | ends on |
contractValue | Contract | Price | value of contract |
keptBy | Contract | Person | kept by |
replaces | - | - | replaces |
happenedOn | SafetyEvent | date | happened on |
atPlace | SafetyEvent | CarePlace | place |
eventCategory | SafetyEvent | text | category |
severity | SafetyEvent | Severity | severity |
reportedBy | SafetyEvent | Person | reported by |
principalInvestigator | Study | Person | principal investigator |
sponsor | Study | Company | sponsor |
participants | Study | text | participants |
salaryBand | Employee | text | salary band |
nextOfKin | Patient | Person | next of kin |
rootCause | SafetyEvent | text | root cause |
visitingHours | Ward | text | visiting hours |
"""
DATATYPES = {"text": XSD.string, "date": XSD.date, "number": XSD.decimal, "boolean": XSD.boolean}
GERMAN = {
    "Ward": "Station",
    "Nurse": "Pflegekraft",
    "Patient": "Patient",
    "Device": "Medizinprodukt",
    "Medicine": "Arzneimittel",
    "Contract": "Vertrag",
    "toWard": "Station",
    "maker": "Hersteller",
    "leadSurgeon": "Operateur",
    "price": "Preis",
}


def cells(table: str) -> list[list[str]]:
    """Split a table into rows of stripped cells."""
    return [[cell.strip() for cell in line.split("|")] for line in table.strip().splitlines()]


def labels(name: str, label: str) -> Iterator[Triple]:
    """Yield the English label of a term, and the German one where there is one."""
    yield DEF[name], RDFS.label, Literal(label, "en")
    if name in GERMAN:
        yield DEF[name], RDFS.label, Literal(GERMAN[name], "de")


def vocabulary() -> Iterator[Triple]:
    """Yield the triples of all classes and properties."""
    for name, above, label in cells(CLASSES):
        yield DEF[name], RDF.type, OWL.Class
        yield from labels(name, label)
        if above != "-":
            yield DEF[name], RDFS.subClassOf, DEF[above]
    for name, domain, target, label, comment in cells(PROPERTIES):
        kind = OWL.ObjectProperty
        if target in DATATYPES:
            kind = OWL.DatatypeProperty
        yield DEF[name], RDF.type, kind
        yield from labels(name, label)
        if domain != "-":
            yield DEF[name], RDFS.domain, DEF[domain]
        if target != "-":
            yield DEF[name], RDFS.range, DATATYPES.get(target, DEF[target])
        if comment:
            yield DEF[name], RDFS.comment, Literal(comment, "en")
