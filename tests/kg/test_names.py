"""How near a label is to the name that was asked for: a row for each pair, in both directions."""

from __future__ import annotations

import pytest

from kgwb.kg.names import compare_names

SAME = """
arrival | Arrival
new   york | New York
New York | New York
The Beatles | Beatles
the beatles | The Beatles
An American in Paris | American in Paris
St. John | St John
Dr. Anna Keller | Dr Anna Keller
Stage Ⅳ | Stage IV
H₂O | H2O
ﬁle One | file One
Ｔｏｋｙｏ | Tokyo
ﾄｳｷｮｳ | トウキョウ
Station ① | Station 1
O’Brien | O'Brien
O`Brien | O'Brien
“Heroes” | "Heroes"
Jean–Luc | Jean-Luc
Jean‑Luc | Jean-Luc
1990–1995 | 1990-1995
5 µm | 5 μm
10 Å | 10 Å
Café | Café
50٪ | 50%
5′ end | 5' end
C♯ | C#
New_York | New York
zero\u200bwidth | zerowidth
Inc. | Inc
Mcdonald | McDonald
علي | عـلي
"""
NEAR = """
Big ́ Apple | Big Apple
CO | Co
NaCl | NACL
ibm | IBM
ARRIVAL | Arrival
Strasse | Straße
STRASSE | Straße
Müller | Mueller
Muller | Müller
Ægir | Aegir
Łódź | Lodz
Søren | Soren
Þór | Thor
Ålborg | Aalborg
Göring | Goering
Dvořák | Dvorak
Ёлка | Елка
Йод | Иод
Аnna | Anna
Vitamin С | Vitamin C
がいこく | かいこく
カナダ | かなだ
コンピュータ | コンピューター
أحمد | احمد
مكتبة | مكتبه
على | علي
क़लम | कलम
हिंदी | हिन्दी
Κύπρος | Κυπρος
New York | NewYork
Pi-hole | Pihole
Vitamin B-12 | Vitamin B12
Spider-Man | Spiderman
Coca Cola | Coca-Cola
COVID-19 | COVID 19
AC/DC | ACDC
Yahoo! | Yahoo
U.S.A. | USA
AT&T | ATT
Johnson & Johnson | Johnson and Johnson
Lego® | Lego
Oh! Calcutta | Oh Calcutta
“Heroes” | Heroes
5kg | 5 kg
Bakers | Baker's
McDonald | McDonalds
Cities of Italy | City of Italy
Women's Union | Woman's Union
Anna Keller | Hanna Keller
Katherine | Catherine
Iran | Iraq
Austria | Australia
Georgia | George
Schwarzenegger | Schwartzeneger
Jon Smith | John Smyth
Dostoevsky | Dostoyevsky
Anna Keller Jr | Anna Keller
Dr Anna Keller | Anna Keller
New York City | New York
Keller | Anna Keller
United States | United States of America
Käfer | VW Käfer
Apple Inc. | Apple
Paris, Texas | Paris
Dune (film) | Dune
Dune (2021 film) | Dune
Mercury [planet] | Mercury
University of Oxford | Oxford University
Keller, Anna | Anna Keller
Bank of America | America Bank
J. Smith | John Smith
George W. Bush | George Bush
John F. Kennedy | John Kennedy
Saint Petersburg | St. Petersburg
Mount Everest | Mt Everest
Main Street | Main St.
Univ. of Oxford | University of Oxford
United Nations | UN
Carbon Monoxide | CM
Harry Potter | Harry Potter and the Chamber of Secrets
Sample 1,5 | Sample 1.5
10,000 Steps | 10000 Steps
Seven Samurai | 7 Samurai
Henry VIII | Henry 8
First Street | 1st Street
World War II | Second World War
Elizabeth II | Elizabeth the Second
Disney+ | Disney Plus
50% | 50 percent
Room ٣ | Room 3
L'Oréal | Loreal
Côte d'Ivoire | Cote d Ivoire
D'Artagnan | Dartagnan
İstanbul | Istanbul
서울 | 서올
J. K. Rowling | JK Rowling
E. coli | Escherichia coli
JFK | John F. Kennedy
Saint-Étienne | St Etienne
Interferon alpha | Interferon α
Part One | Part 1
Children of Troy | Child of Troy
F-16 | F16
Colour | Color
Acme Limited | Acme Ltd
Doctor Who | Dr Who
"""
DIFFERENT = """
Hepatitis A | Hepatitis B
Hepatitis A | Hepatitis
Vitamin C | Vitamin D
Group A | Group
Malcolm X | Malcolm
Plan B | Plan Bee
Apollo 11 | Apollo 12
Apollo 11 | Apollo 1
007 | 7
12345 | 12354
-40 | 40
Model -1 | Model 1
3.14 | 314
Version 1.5 | Version 15
Version 1.0 | Version 1
Room 1:5 | Room 1.5
Room 1 5 | Room 15
1/2 | 12
1.5 | 1.50
10² | 102
½ Mile | 12 Mile
Route 66 | Route 66A
XJ-900 | XJ-9000
AB-123 | AB-132
AB-123 | AC-123
A380 | B380
H2O | H20
COVID-19 | COVD-19
B12 | D12
Boeing 737 | Boeing 747
1990-1995 | 1990-1996
Henry VIII | Henry VII
henry viii | Henry VII
Henry VIII | Henry
Rocky II | Rocky
Stage Ⅳ | Stage VI
Super Bowl XL | Super Bowl XLI
First Street | Third Street
Second Bank | Sixth Bank
Nine Lives | Five Lives
Na+ | Na
Rh+ | Rh-
AB+ | AB-
C++ | C#
C++ | C
C# | C
F# | F
A* | A
A* | A+
Level <5 | Level >5
Score ≥5 | Score ≤5
Score ≥5 | Score >5
±5 | 5
Apple 5% | Apple 5
5% | 5‰
$5 | €5
Area 1° | Area 1'
Area 1' | Area 1
10 °C | 10 °F
5 mm | 5 µm
5 mm | 5 cm
100 m | 100 km
5 kg | 5 g
Interferon α | Interferon β
North Korea | South Korea
Korea | North Korea
New York | York
Mexico | New Mexico
East Timor | West Timor
Eastern Front | Western Front
Upper Egypt | Lower Egypt
Northampton | Southampton
Ostpreußen | Westpreußen
Inner Hebrides | Outer Hebrides
Ursa Major | Ursa Minor
Left Bank | Right Bank
Import Duty | Export Duty
Internal Audit | External Audit
Male Choir | Female Choir
Men's Final | Women's Final
antimatter | matter
hypertension | hypotension
hyperthermia | hypothermia
interstate | intrastate
microeconomics | macroeconomics
bicycle | tricycle
prewar | postwar
Mercury (planet) | Mercury (element)
Dune (1984 film) | Dune (2021 film)
Celebrex | Cerebyx
Norway | Sweden
Harry Potter | Harry Potter and the Prisoner of Azkaban Prison
Red Star | Blue Star
Springfield, Illinois | Springfield, Ohio
NASA | NATO
USA | USB
Na | Ni
CNN | BBC
Al | Ed
北京 | 南京
山田 | 山本
東京大学 | 東海大学
Tesla Model 3 | Tesla Model Ʒ
!!! | ???
Windows 95 | Windows 98
Part One | Part Two
Area Fifty | Area Sixty
Terminator 2 | Terminator
Ocean's Eleven | Ocean's Twelve
F-16 | F-15
24/7 | 247
Boeing 737-800 | Boeing 737
Ex-President | President
Vice President | President
Black Monday | Black Sunday
Overpass | Underpass
Interferon alpha | Interferon beta
कखग | चछज
"""


def pairs(nearness: str, table: str) -> list[tuple[str, str, str]]:
    rows = []
    for line in table.strip().splitlines():
        name, label, *other = (part.strip() for part in line.split(" | "))
        rows.append((name, label, "".join(other) or nearness))
    return rows


PAIRS = [*pairs("same", SAME), *pairs("near", NEAR), *pairs("different", DIFFERENT)]


@pytest.mark.parametrize(("name", "label", "nearness"), PAIRS)
def test_how_near_two_names_are(name: str, label: str, nearness: str) -> None:
    assert compare_names(name, label).nearness == nearness
    assert compare_names(label, name).nearness == nearness
