"""The fixed lists from which the organisation is built: units, wards, names, medicines, diagnoses.

Everything here is invented, except for countries, substances and common medical words.
"""

from __future__ import annotations

FACILITIES = (
    ("fac-01", "Hospital", "Rowanvale General Hospital", "Rowanvale", "412"),
    ("fac-02", "Hospital", "Lindmere Hospital", "Lindmere", "188"),
    ("fac-03", "DayClinic", "Ashcombe Day Clinic", "Ashcombe", None),
    ("fac-04", "Hospital", "St Brannoc's Hospital", "Port Brannoc", "236"),
    ("fac-05", "Hospital", "Greyfell Rehabilitation Hospital", "Greyfell", "96"),
    ("fac-06", "DayClinic", "Tarnside Eye Clinic", "Tarnside", None),
)
PARTNER_FACILITIES = (
    ("fac-03", "fac-01"),
    ("fac-02", "fac-05"),
    ("fac-06", "fac-02"),
    ("fac-01", "fac-04"),
)

UNITS = (
    ("100", "Directorate", "Directorate of Medicine", "Direktion Medizin"),
    ("200", "Directorate", "Directorate of Surgery", "Direktion Chirurgie"),
    ("300", "Directorate", "Directorate of Women and Children", "Direktion Frauen und Kinder"),
    (
        "400",
        "Directorate",
        "Directorate of Diagnostics and Pharmacy",
        "Direktion Diagnostik und Apotheke",
    ),
    ("500", "Directorate", "Directorate of Operations", "Direktion Betrieb"),
    ("110", "Department", "Cardiology", "Kardiologie"),
    ("120", "Department", "Respiratory Medicine", "Pneumologie"),
    ("130", "Department", "Gastroenterology", "Gastroenterologie"),
    ("140", "Department", "Nephrology", "Nephrologie"),
    ("150", "Department", "Neurology", "Neurologie"),
    ("160", "Department", "Geriatric Medicine", "Altersmedizin"),
    ("210", "Department", "General Surgery", "Allgemeinchirurgie"),
    ("220", "Department", "Orthopaedics and Trauma", "Orthopädie und Unfallchirurgie"),
    ("230", "Department", "Anaesthesia and Intensive Care", "Anästhesie und Intensivmedizin"),
    ("240", "Department", "Urology", "Urologie"),
    ("250", "Department", "Ophthalmology", "Augenheilkunde"),
    ("310", "Department", "Obstetrics", "Geburtshilfe"),
    ("320", "Department", "Paediatrics", "Kinderheilkunde"),
    ("410", "Department", "Radiology", "Radiologie"),
    ("420", "Department", "Laboratory Medicine", "Labormedizin"),
    ("430", "Department", "Pharmacy", "Apotheke"),
    ("510", "Department", "Medical Engineering", "Medizintechnik"),
    ("520", "Department", "Procurement", "Einkauf"),
    ("530", "Department", "Sterile Supply", "Sterilgutversorgung"),
    ("540", "Department", "Finance", "Finanzen"),
    ("550", "Department", "Therapies", "Therapien"),
    ("111", "Section", "Heart Failure Service", "Herzinsuffizienz-Dienst"),
    ("112", "Section", "Catheter Laboratory", "Herzkatheterlabor"),
    ("141", "Section", "Dialysis Service", "Dialyse"),
    ("221", "Section", "Hand Surgery Service", "Handchirurgie"),
    ("231", "Section", "Pain Service", "Schmerzdienst"),
    ("421", "Section", "Blood Bank", "Blutbank"),
    ("511", "Section", "Repair Workshop", "Gerätewerkstatt"),
    ("512", "Section", "Device Safety Office", "Gerätesicherheit"),
)
UNITS_WITHOUT_HEAD = ("240", "421", "530")

# Unit, job, how many people. A job is a key of JOBS.
POSTS = (
    ("110 consultant 4", "110 registrar 3", "110 nurse 5", "111 consultant 1", "111 nurse 3"),
    ("112 consultant 1", "112 technician 2", "112 nurse 2", "120 consultant 3", "120 registrar 2"),
    ("120 nurse 4", "120 locum 1", "130 consultant 3", "130 registrar 2", "130 nurse 3"),
    ("140 consultant 2", "140 nurse 2", "141 nurse 4", "141 technician 2", "150 consultant 3"),
    ("150 registrar 2", "150 nurse 3", "150 locum 1", "160 consultant 2", "160 nurse 4"),
    ("210 consultant 5", "210 registrar 4", "210 nurse 4", "210 locum 2", "220 consultant 4"),
    ("220 registrar 3", "220 nurse 4", "221 consultant 1", "221 registrar 1", "230 consultant 5"),
    ("230 registrar 3", "230 nurse 8", "230 locum 2", "231 consultant 1", "231 nurse 2"),
    ("240 consultant 2", "240 registrar 1", "240 nurse 2", "250 consultant 2", "250 nurse 2"),
    ("310 consultant 3", "310 midwife 7", "320 consultant 3", "320 registrar 2", "320 nurse 4"),
    (
        "410 consultant 3",
        "410 technician 5",
        "420 consultant 1",
        "420 technician 4",
        "421 technician 2",
    ),
    (
        "430 pharmacist 6",
        "510 technician 2",
        "511 technician 5",
        "512 technician 2",
        "520 administrator 4",
    ),
    ("530 technician 3", "540 administrator 4", "550 therapist 7", "500 administrator 2"),
)
JOBS = {
    "consultant": ("Consultant", "Consultant"),
    "registrar": ("Registrar", "Registrar"),
    "locum": ("LocumPhysician", "Locum Physician"),
    "nurse": ("Nurse", "Staff Nurse"),
    "midwife": ("Midwife", "Midwife"),
    "therapist": ("Therapist", "Physiotherapist"),
    "technician": ("Technician", "Technician"),
    "pharmacist": ("Pharmacist", "Pharmacist"),
    "administrator": ("Administrator", "Officer"),
}

# Which specialty the physicians of a unit have.
SPECIALTIES = (
    ("sp-01", "Cardiology", "Kardiologie", ("110", "111", "112")),
    ("sp-02", "Respiratory medicine", "Pneumologie", ("120",)),
    ("sp-03", "Gastroenterology", "Gastroenterologie", ("130",)),
    ("sp-04", "Nephrology", "Nephrologie", ("140", "141")),
    ("sp-05", "Neurology", "Neurologie", ("150",)),
    ("sp-06", "Geriatrics", "Geriatrie", ("160",)),
    ("sp-07", "General surgery", "Allgemeinchirurgie", ("210",)),
    ("sp-08", "Orthopaedic surgery", "Orthopädie", ("220", "221")),
    ("sp-09", "Anaesthesiology", "Anästhesiologie", ("230", "231")),
    ("sp-10", "Urology", "Urologie", ("240",)),
    ("sp-11", "Ophthalmology", "Augenheilkunde", ("250",)),
    ("sp-12", "Obstetrics", "Geburtshilfe", ("310",)),
    ("sp-13", "Paediatrics", "Pädiatrie", ("320",)),
    ("sp-14", "Radiology", "Radiologie", ("410",)),
    ("sp-15", "Laboratory medicine", "Labormedizin", ("420",)),
)

QUALIFICATIONS = (
    ("q-01", "Advanced life support", "Erweiterte Reanimation"),
    ("q-02", "Paediatric life support", "Reanimation von Kindern"),
    ("q-03", "Radiation protection", "Strahlenschutz"),
    ("q-04", "Laser safety", "Lasersicherheit"),
    ("q-05", "Wound care", "Wundversorgung"),
    ("q-06", "Palliative care", "Palliativpflege"),
    ("q-07", "Infection control", "Hygiene"),
)

# Number, class, English, German, unit, facility, beds.
WARDS = (
    ("w-01", "Ward", "Birch Ward", "Station Birke", "110", "fac-01", "28"),
    ("w-02", "Ward", "Cedar Ward", "Station Zeder", "120", "fac-01", "24"),
    ("w-03", "Ward", "North Ward", "Station Nord", "130", "fac-01", "22"),
    ("w-04", "Ward", "Hazel Ward", "Station Hasel", "140", "fac-01", "18"),
    ("w-05", "Ward", "Rowan Ward", "Station Eberesche", "150", "fac-01", "26"),
    ("w-06", "Ward", "Alder Ward", "Station Erle", "210", "fac-01", "30"),
    ("w-07", "Ward", "Willow Ward", "Station Weide", "220", "fac-01", "30"),
    ("w-08", "IntensiveCareUnit", "Intensive Care Unit", "Intensivstation", "230", "fac-01", "16"),
    ("w-09", "MaternityWard", "Lilac Ward", "Station Flieder", "310", "fac-01", "20"),
    ("w-10", "Ward", "Bluebell Ward", "Station Glockenblume", "320", "fac-01", "19"),
    ("w-11", "Ward", "Heron Ward", "Station Reiher", "110", "fac-02", "20"),
    ("w-12", "Ward", "Osprey Ward", "Station Fischadler", "210", "fac-02", "25"),
    ("w-13", "IntensiveCareUnit", "Intensive Care Unit", "Intensivstation", "230", "fac-02", "8"),
    ("w-14", "Ward", "Kestrel Ward", "Station Falke", "160", "fac-02", "24"),
    ("w-15", "Ward", "North Ward", "Station Nord", "220", "fac-04", "27"),
    ("w-16", "Ward", "South Ward", "Station Süd", "210", "fac-04", "9"),
    ("w-17", "MaternityWard", "Harbour Ward", "Station Hafen", "310", "fac-04", "12"),
    ("w-18", "Ward", "Chapel Ward", "Station Kapelle", "160", "fac-04", "21"),
    (
        "w-19",
        "IntensiveCareUnit",
        "High Dependency Unit",
        "Überwachungsstation",
        "230",
        "fac-04",
        "6",
    ),
    ("w-20", "Ward", "Fell Ward", "Station Heide", "550", "fac-05", "25"),
    ("w-21", "Ward", "Beck Ward", "Station Bach", "550", "fac-05", None),
    ("w-22", "Ward", "Day Surgery Bay", "Tageschirurgie", "210", "fac-03", "10"),
    ("w-23", "Ward", "Eye Recovery Bay", "Aufwachbereich Augen", "250", "fac-06", "6"),
    ("w-24", "Ward", "Dialysis Bay", "Dialyseplätze", "141", "fac-01", "14"),
)
ADJOINING_WARDS = (
    ("w-02", "w-01"),
    ("w-03", "w-04"),
    ("w-06", "w-07"),
    ("w-16", "w-15"),
    ("w-12", "w-13"),
)
WARDS_WITHOUT_ADMISSIONS = ("w-21", "w-23", "w-24")

# Number, class, name, facility, area, unit of the area.
ROOMS = (
    ("rm-101", "OperatingTheatre", "Theatre 1", "fac-01", "48.5", "m2"),
    ("rm-102", "OperatingTheatre", "Theatre 2", "fac-01", "44", "m2"),
    ("rm-103", "OperatingTheatre", "Theatre 3", "fac-01", "61", "m2"),
    ("rm-104", "OperatingTheatre", "Theatre 4 (hybrid)", "fac-01", "770", "ft2"),
    ("rm-201", "OperatingTheatre", "Theatre 1", "fac-02", "36", "m2"),
    ("rm-202", "OperatingTheatre", "Theatre 2", "fac-02", "38", "m2"),
    ("rm-301", "OperatingTheatre", "Theatre A", "fac-03", "290", "ft2"),
    ("rm-401", "OperatingTheatre", "Theatre 1", "fac-04", "410", "ft2"),
    ("rm-402", "OperatingTheatre", "Theatre 2", "fac-04", "425", "ft2"),
    ("rm-601", "OperatingTheatre", "Laser Theatre", "fac-06", "29", "m2"),
    ("rm-111", "ImagingRoom", "MR Suite", "fac-01", "82", "m2"),
    ("rm-112", "ImagingRoom", "CT Suite", "fac-01", "55", "m2"),
    ("rm-113", "ImagingRoom", "Ultrasound 1", "fac-01", "18", "m2"),
    ("rm-211", "ImagingRoom", "CT Suite", "fac-02", "520", "ft2"),
    ("rm-411", "ImagingRoom", "Imaging North", "fac-04", "690", "ft2"),
    ("rm-511", "ImagingRoom", "Ultrasound Room", "fac-05", None, ""),
)

GIVEN_NAMES = """Anna Bernard Clara Dilip Esther Farid Greta Hamish Ines Jonas Karin Leander Mabel Nikolai Orla
Piotr Quentin Rosa Sunil Tilda Ursula Viktor Wanda Yusuf Zelda Astrid Bruno Celia Dorian Elif Felix Gemma Hugo
Imogen Jasper Kezia Lorenz Mirjam Noel Olga""".split()
FAMILY_NAMES = """Abernethy Bexley Castellan Drummond Eversley Fenwick Garrick Hollander Ibsen Jessop Keller Lindqvist
Marchbank Nakamura Oakeshott Pereira Quayle Rasmussen Sundaram Thorne Underhill Vasquez Whitlock Yardley Zeller
Ainslie Brandt Corrigan Delacroix Ekwueme Forsyth Grantham Haddad Ismay Jankowski Kowal Larkin Merriweather
Nordahl Ostler Pemberton Rathbone Sinclair Tremaine Voss Winslow""".split()
LANGUAGES = ("German", "French", "Polish", "Arabic", "Turkish", "Spanish", "Hindi", "Portuguese")
TOWNS = (
    "Rowanvale",
    "Lindmere",
    "Ashcombe",
    "Port Brannoc",
    "Greyfell",
    "Tarnside",
    "Nether Wick",
    "Oakholt",
)

# Number, code, English, German, the diagnosis above it.
DIAGNOSES = (
    (
        "dx-01",
        "K09",
        "Diseases of the circulatory system",
        "Krankheiten des Kreislaufsystems",
        None,
    ),
    ("dx-02", "K10", "Diseases of the respiratory system", "Krankheiten des Atmungssystems", None),
    ("dx-03", "K11", "Diseases of the digestive system", "Krankheiten des Verdauungssystems", None),
    (
        "dx-04",
        "K14",
        "Diseases of the kidney and urinary tract",
        "Krankheiten der Niere und Harnwege",
        None,
    ),
    ("dx-05", "K19", "Injuries", "Verletzungen", None),
    ("dx-06", "K06", "Diseases of the nervous system", "Krankheiten des Nervensystems", None),
    ("dx-07", "K15", "Pregnancy and childbirth", "Schwangerschaft und Geburt", None),
    ("dx-11", "K09.2", "Ischaemic heart disease", "Ischämische Herzkrankheit", "dx-01"),
    ("dx-12", "K09.21", "Acute myocardial infarction", "Akuter Myokardinfarkt", "dx-11"),
    ("dx-13", "K09.22", "Angina pectoris", "Angina pectoris", "dx-11"),
    ("dx-14", "K09.5", "Heart failure", "Herzinsuffizienz", "dx-01"),
    ("dx-15", "K09.6", "Atrial fibrillation", "Vorhofflimmern", "dx-01"),
    ("dx-21", "K10.1", "Pneumonia", "Lungenentzündung", "dx-02"),
    ("dx-22", "K10.4", "Asthma", "Asthma", "dx-02"),
    ("dx-23", "K10.5", "Chronic obstructive pulmonary disease", "COPD", "dx-02"),
    ("dx-31", "K11.2", "Appendicitis", "Appendizitis", "dx-03"),
    ("dx-32", "K11.4", "Gallstones", "Gallensteine", "dx-03"),
    ("dx-33", "K11.5", "Inguinal hernia", "Leistenbruch", "dx-03"),
    ("dx-41", "K14.1", "Chronic kidney disease", "Chronische Nierenkrankheit", "dx-04"),
    ("dx-42", "K14.3", "Kidney stones", "Nierensteine", "dx-04"),
    ("dx-51", "K19.2", "Fracture of the femur", "Oberschenkelfraktur", "dx-05"),
    ("dx-52", "K19.3", "Fracture of the wrist", "Handgelenksfraktur", "dx-05"),
    ("dx-53", "K19.31", "Distal radius fracture", "Distale Radiusfraktur", "dx-52"),
    ("dx-61", "K06.2", "Stroke", "Schlaganfall", "dx-06"),
    ("dx-62", "K06.4", "Epilepsy", "Epilepsie", "dx-06"),
    ("dx-71", "K15.1", "Delivery", "Entbindung", "dx-07"),
    ("dx-72", "K15.2", "Delivery by caesarean section", "Entbindung durch Kaiserschnitt", "dx-07"),
)
# Which diagnoses the wards of a unit admit.
DIAGNOSES_OF_UNIT = {
    "110": ("dx-12", "dx-13", "dx-14", "dx-15"),
    "120": ("dx-21", "dx-22", "dx-23"),
    "130": ("dx-32", "dx-31", "dx-03"),
    "140": ("dx-41", "dx-42"),
    "150": ("dx-61", "dx-62"),
    "160": ("dx-14", "dx-21", "dx-61", "dx-51"),
    "210": ("dx-31", "dx-32", "dx-33"),
    "220": ("dx-51", "dx-52", "dx-53"),
    "230": ("dx-12", "dx-21", "dx-61", "dx-05"),
    "310": ("dx-71", "dx-72"),
    "320": ("dx-22", "dx-31", "dx-62", "dx-53"),
    "550": ("dx-51", "dx-61"),
}

# Number, name, German, specialty, diagnoses, usual minutes.
PROCEDURES = (
    ("pt-01", "Coronary angioplasty", "Koronarangioplastie", "sp-01", ("dx-12", "dx-13"), 70),
    (
        "pt-02",
        "Pacemaker implantation",
        "Schrittmacherimplantation",
        "sp-01",
        ("dx-15", "dx-14"),
        90,
    ),
    ("pt-03", "Appendicectomy", "Appendektomie", "sp-07", ("dx-31",), 60),
    ("pt-04", "Cholecystectomy", "Cholezystektomie", "sp-07", ("dx-32",), 85),
    ("pt-05", "Inguinal hernia repair", "Leistenbruchoperation", "sp-07", ("dx-33",), 75),
    ("pt-06", "Hip replacement", "Hüftprothese", "sp-08", ("dx-51",), 120),
    ("pt-07", "Femoral nailing", "Oberschenkelnagelung", "sp-08", ("dx-51",), 100),
    ("pt-08", "Wrist plating", "Handgelenksverplattung", "sp-08", ("dx-52", "dx-53"), 65),
    ("pt-09", "Caesarean section", "Kaiserschnitt", "sp-12", ("dx-72",), 50),
    ("pt-10", "Ureteroscopy", "Ureteroskopie", "sp-10", ("dx-42",), 55),
    ("pt-11", "Cataract surgery", "Kataraktoperation", "sp-11", (), 30),
)

# Prefix, class, English name, how many, typical price, weight in kilograms, makers, models.
DEVICE_KINDS = (
    (
        "MR",
        "MagneticResonanceScanner",
        "MR scanner",
        4,
        1150000,
        4600,
        ("co-03", "co-05"),
        "Aurum Vela",
    ),
    (
        "CT",
        "ComputedTomographyScanner",
        "CT scanner",
        5,
        640000,
        2100,
        ("co-03", "co-05"),
        "Spira Orbis",
    ),
    ("US", "UltrasoundUnit", "Ultrasound unit", 12, 58000, 95, ("co-05", "co-07"), "Sona Echo"),
    ("XR", "ImagingDevice", "Mobile X-ray", 6, 92000, 420, ("co-03",), "Radix"),
    ("VN", "Ventilator", "Ventilator", 24, 27000, 41, ("co-02", "co-09"), "Zephyr Breva Pneuma"),
    ("IP", "InfusionPump", "Infusion pump", 34, 2400, 3, ("co-02", "co-06", "co-08"), "Flux Gutta"),
    ("PM", "PatientMonitor", "Patient monitor", 26, 9800, 8, ("co-06", "co-09"), "Vista Pulsar"),
    ("DM", "DialysisMachine", "Dialysis machine", 9, 19500, 82, ("co-08",), "Nephra Clara"),
    ("DF", "Device", "Defibrillator", 10, 7600, 6, ("co-06", "co-07"), "Spark"),
)

COUNTRIES = (
    "Germany",
    "Switzerland",
    "United_Kingdom",
    "Sweden",
    "Netherlands",
    "Italy",
    "Japan",
    "Ireland",
)
COMPANIES = (
    "Orrin Medical Systems",
    "BREVANTA RESPIRATORY AG",
    "Kaltenbrunn Imaging",
    "Hesperia Pharma",
    "Nordlicht Diagnostics",
    "Pallas Bedside Care",
    "Sonaris",
    "Fluvia Medizintechnik GmbH",
    "Tidewell Critical Care",
    "Marisol Laboratories",
    "Quill & Thorne Generics",
    "Vantry Pharma",
    "Hesperia Logistics",
    "Stellwerk Service GmbH",
    "Meridian Device Care",
    "Coldbrook Maintenance",
    "Lanyard Staffing",
    "Ashdown Locums",
    "Pemberley Advisory",
    "Kestrel & Lowe Consulting",
    "Greenhalgh Textiles",
    "Ostara Medical Gases",
    "Blackfen Catering",
    "Sable Waste Services",
    "Nordwind Pharma",
    "Alba Sutures",
    "Rhone Implants SA",
    "Castor Orthopaedics",
    "Lumen Optics",
    "Ferrant Sterile Goods",
    "Northgate Cleaning",
    "Tansy Biologics",
)
MEDICINE_SUPPLIERS = ("co-04", "co-10", "co-11", "co-12", "co-13", "co-25", "co-32")
SERVICE_CONTRACTORS = ("co-14", "co-15", "co-16")
STAFF_AGENCIES = ("co-17", "co-18")

SUBSTANCES = """Amoxicillin Ceftriaxone Metronidazole Vancomycin Heparin Warfarin Aspirin Clopidogrel Bisoprolol
Amiodarone Digoxin Furosemide Spironolactone Ramipril Atorvastatin Insulin Metformin Salbutamol Prednisolone Morphine
Fentanyl Ketamine Propofol Midazolam Paracetamol Ibuprofen Omeprazole Ondansetron Levetiracetam Oxytocin""".split()
STRENGTHS = (
    ("250", "mg"),
    ("500", "mg"),
    ("1", "g"),
    ("5", "mg"),
    ("40", "mg"),
    ("100", "ug"),
    ("2", "g"),
)
FORMS = ("tablet", "capsule", "injection", "infusion", "syrup")
CONTROLLED = ("Morphine", "Fentanyl", "Ketamine", "Midazolam")
INTERACTIONS = (
    ("Warfarin", "Aspirin"),
    ("Amiodarone", "Warfarin"),
    ("Ibuprofen", "Warfarin"),
    ("Metronidazole", "Warfarin"),
    ("Warfarin", "Omeprazole"),
    ("Digoxin", "Amiodarone"),
    ("Furosemide", "Digoxin"),
    ("Ramipril", "Spironolactone"),
    ("Clopidogrel", "Omeprazole"),
    ("Midazolam", "Fentanyl"),
    ("Aspirin", "Ibuprofen"),
    ("Heparin", "Aspirin"),
)

SEVERITIES = (
    ("sv-1", "No harm", "Kein Schaden"),
    ("sv-2", "Low harm", "Geringer Schaden"),
    ("sv-3", "Moderate harm", "Mittlerer Schaden"),
    ("sv-4", "Severe harm", "Schwerer Schaden"),
)
EVENT_CATEGORIES = ("fall", "medication", "device", "identification", "pressure ulcer")
EVENT_TEXTS = {
    "fall": ("Patient found on the floor beside the bed", "Sturz im Bad"),
    "medication": ("Wrong dose given", "Falsche Infusionsrate"),
    "device": ("Device alarm not heard", "Gerät während der Behandlung ausgefallen"),
    "identification": ("Wristband of another patient", "Probe falsch beschriftet"),
    "pressure ulcer": ("Pressure ulcer on the heel", "Druckstelle am Steißbein"),
}

# Number, title, owning unit, valid from, diagnosis, the guideline before it.
GUIDELINES = (
    ("gl-01", "Chest pain pathway, 1st edition", "110", "2014-02-01", "dx-12", None),
    ("gl-02", "Chest pain pathway, 2nd edition", "110", "2018-05-01", "dx-12", "gl-01"),
    ("gl-03", "Chest pain pathway, 3rd edition", "110", "2022-03-15", "dx-12", "gl-02"),
    ("gl-04", "Stroke thrombolysis", "150", "2019-09-01", "dx-61", None),
    ("gl-05", "Stroke thrombolysis (revised)", "150", "2023-10-01", "dx-61", "gl-04"),
    ("gl-06", "Community-acquired pneumonia", "120", "2021-01-10", "dx-21", None),
    ("gl-07", "Hip fracture within 36 hours", "220", "2020-06-01", "dx-51", None),
    ("gl-08", "Acute asthma in children", "320", "2022-11-01", "dx-22", None),
    ("gl-09", "Acute asthma in adults", "120", "2022-11-01", "dx-22", None),
    ("gl-10", "Anticoagulation in atrial fibrillation", "110", "2023-02-01", "dx-15", None),
    ("gl-11", "Sedation for procedures", "230", "2021-07-01", None, None),
    ("gl-12", "Caesarean section: antibiotic cover", "310", "2022-04-01", "dx-72", None),
)
STUDIES = (
    ("st-01", "RAPID-HF", "110", "co-12", "2021-03-01", "2023-12-31", "118", "dx-14"),
    ("st-02", "KIDNEY-FLOW", "140", "co-04", "2022-06-01", None, "64", "dx-41"),
    ("st-03", "WRIST-NAIL", "220", "co-28", "2020-01-15", "2022-08-31", "86", "dx-53"),
    ("st-04", "BREATHE-2", "120", "co-25", "2023-01-09", None, "9", "dx-23"),
    ("st-05", "SEIZE-LESS", "150", "co-12", "2022-10-01", None, "41", "dx-62"),
    ("st-06", "CLEAR-STONE", "240", None, "2023-05-01", None, None, "dx-42"),
    ("st-07", "CALM-AF", "110", "co-32", "2019-09-01", "2021-12-31", "205", "dx-15"),
    ("st-08", "EARLY-STEP", "550", None, "2023-09-01", None, "27", "dx-51"),
)
