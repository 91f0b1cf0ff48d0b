"""A small graph in which everything has a twin, for all systems.

Two classes, predicates or things have one label, or labels that differ only in case, a sign, the
language, or the normal form of Unicode. Two values have one text. Classes stand in a circle, blank
nodes are values beside IRIs and numbers, and literals look like IRIs, CURIEs and ids.
"""

from __future__ import annotations

from rdflib import URIRef
from small import films

from kgwb.kg import Graph

A = "http://example.org/a/"
B = "http://example.org/b/"
PREFIXES = f"""
@prefix a: <{A}> .
@prefix b: <{B}> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
"""

CLASSES = """
a:Film rdfs:label "Film" . b:Film rdfs:label "Film" . a:Picture rdfs:label "film" .
a:Person rdfs:label "Person" . b:Person rdfs:label "person" .
a:C rdfs:label "Language C" . a:Cpp rdfs:label "Language C++" .
a:Cafe rdfs:label "Café" . b:Cafe rdfs:label "Cafe\u0301" .
a:Pragma rdfs:label "Pragma option" . a:Id rdfs:label "id" .
a:Ship rdfs:subClassOf a:Vessel . a:Vessel rdfs:subClassOf a:Ship .
"""
"""Twins in two namespaces and in one; in case, sign and normal form (é); and a circle."""

PREDICATES = """
a:director rdfs:label "director" . b:director rdfs:label "director" . a:leads rdfs:label "Director" .
"""

THINGS = """
a:dune a a:Film ; rdfs:label "Dune" ; a:director a:ann ; b:director b:ann ; a:year 1984 .
b:dune a b:Film ; rdfs:label "Dune" ; a:director a:ann ; a:pages 412 .
a:sequel a a:Film ; rdfs:label "Dune II" ; a:follows a:dune , b:dune ; a:director b:ann .
a:film1984 a a:Film ; rdfs:label "1984" ; a:year 1984 ; a:title "1984" .
a:picture a a:Picture ; rdfs:label "Orange" ; a:colour "orange" .
b:picture a a:Picture ; rdfs:label "orange" ; a:colour "Orange" .
a:ann a a:Person ; rdfs:label "Ann" ; a:leads b:ann . b:ann a b:Person ; rdfs:label "Ann" .
a:c a a:C ; rdfs:label "C" . a:cpp a a:Cpp ; rdfs:label "C++" .
a:zoe a a:Cafe ; rdfs:label "Zoë" . b:zoe a b:Cafe ; rdfs:label "Zoe\u0308" .
a:option a a:Pragma ; rdfs:label "foreign_keys" . a:number a a:Id ; a:alias "one", "two" .
a:ship a a:Ship ; rdfs:label "Ship" . a:vessel a a:Vessel ; rdfs:label "Vessel" .
"""

VALUES = """
a:dune a:name "Same"@en , "Same"@de ; a:code "5" , 5 ; a:day "1"^^a:day , "1"^^b:day .
a:film1984 a:code "a:dune" ; a:page "http://example.org/a/dune" , a:dune ; a:kind "x"^^a:class .
b:dune a:page "dune" ; a:depth "10-20 m" ; a:depthLow 3 ; a:kind "y"^^b:node .
a:sequel a:price 10 , 20 , 30 , [ a:amount 5 ] ; a:writer a:ann , [ a:called "Anon" ] .
"""
"""One text as two values; texts that look like a CURIE, an IRI and an id; blank nodes beside others.

The local parts of two datatypes are one word, or a word that means another sort of value.
"""

TWINS = PREFIXES + CLASSES + PREDICATES + THINGS + VALUES


def twins() -> Graph:
    """The graph of twins."""
    return films(TWINS)


def a(name: str) -> URIRef:
    return URIRef(A + name)


def b(name: str) -> URIRef:
    return URIRef(B + name)


MESSY_PREFIXES = """
@prefix : <http://messy.example/> .
@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix geo: <http://www.opengis.net/ont/geosparql#> .
"""

ADDRESSES = r"""
<http://messy.example/caf%C3%A9> a :Place ; rdfs:label "Café" ; :near <http://messy.example/café> .
<http://messy.example/café> a :Place ; rdfs:label "Café" .
<http://messy.example/a%2Fb> a :Place ; :height 3 .
<http://messy.example/a/b> a :Place ; :height 4 .
<http://messy.example/a#b> a :Place ; :height 5 .
<http://messy.example/a/b/> a :Place ; :height 6 .
<http://messy.example/a/b#> a :Place ; :height 7 .
<http://Messy.example/a/b> a :Place ; :height 8 .
<https://messy.example/a/b> a :Place ; :height 9 .
<http://messy.example/Dune_(film)> a :Place ; :height 10 .
<http://messy.example/show?id=1&lang=en> a :Place ; :height 11 .
<http://messy.example/it's> a :Place ; :height 12 .
<http://messy.example/%20> a :Place ; :height 13 .
<urn:uuid:6e8bc430-9c3a-11d9-9669-0800200c9a66> a :Place ; :height 14 .
<mailto:ada@messy.example> a :Place ; :height 15 .
@prefix org: <http://one.example/> .
org:d a :Place ; :height 16 ; org:p org:e .
@prefix org: <http://two.example/> .
org:d a :Place ; :height 17 ; org:p org:e .
"""
"""IRIs that differ in an escape, a slash, the case of the host; and one prefix for two namespaces."""

LABELS = r"""
:gift1 a :Word ; rdfs:label "Gift"@en . :gift2 a :Word ; rdfs:label "Gift"@de .
:angstrom1 a :Word ; rdfs:label "\u00C5" . :angstrom2 a :Word ; rdfs:label "\u212B" .
:file1 a :Word ; rdfs:label "file" . :file2 a :Word ; rdfs:label "\uFB01le" .
:anna1 a :Word ; rdfs:label "Anna" . :anna2 a :Word ; rdfs:label "\u0410nna" .
:street1 a :Word ; rdfs:label "Straße" . :street2 a :Word ; rdfs:label "STRASSE" .
:turkish1 a :Word ; rdfs:label "İzmir" . :turkish2 a :Word ; rdfs:label "izmir" .
:ada1 a :Word ; rdfs:label "Ada Lovelace" . :ada2 a :Word ; rdfs:label "Ada\u00A0Lovelace" .
:ada3 a :Word ; rdfs:label "Ada\u200BLovelace" . :ada4 a :Word ; rdfs:label "Ada Love\u00ADlace" .
:ada5 a :Word ; rdfs:label " Ada Lovelace " . :ada6 a :Word ; rdfs:label "Ada  Lovelace" .
:empty1 a :Word ; rdfs:label "" . :empty2 a :Word ; rdfs:label "" . :blank1 a :Word ; rdfs:label "   " .
:zero1 a :Word ; rdfs:label "\u200B" . :signs1 a :Word ; rdfs:label "!" . :signs2 a :Word ; rdfs:label "?" .
:signs3 a :Word ; rdfs:label "…" . :signs4 a :Word ; rdfs:label "—" . :signs5 a :Word ; rdfs:label "?x" .
:number1 a :Word ; rdfs:label "7" . :number2 a :Word ; rdfs:label "007" . :number3 a :Word ; rdfs:label 7 .
:number4 a :Word ; rdfs:label "7.0" . :number5 a :Word ; rdfs:label "1e3" .
:html1 a :Word ; rdfs:label "<b>bold</b>" . :html2 a :Word ; rdfs:label "bold" .
:html3 a :Word ; rdfs:label "<script>alert(1)</script>" . :html4 a :Word ; rdfs:label "R&D" .
:html5 a :Word ; rdfs:label "R&amp;D" . :markdown1 a :Word ; rdfs:label "| **x** | [y](javascript:z) |" .
:markdown2 a :Word ; rdfs:label "```" . :code1 a :Word ; rdfs:label "} DELETE WHERE { ?s ?p ?o } #" .
:code2 a :Word ; rdfs:label "'; DROP TABLE \"word\"; --" . :code3 a :Word ; rdfs:label "{label} %s {{x}}" .
:code4 a :Word ; rdfs:label "C:\\new\\table" . :tex1 a :Word ; rdfs:label "50% of $x_1$ & more" .
:right1 a :Word ; rdfs:label "שלום" . :right2 a :Word ; rdfs:label "abc\u202Edef\u202C" .
:right3 a :Word ; rdfs:label "مرحبا (test) 12" . :lines1 a :Word ; rdfs:label "two\nlines" .
:lines2 a :Word ; rdfs:label "two lines" . :tab1 a :Word ; rdfs:label "two\tlines" .
:bell1 a :Word ; rdfs:label "bell\u0007" . :emoji1 a :Word ; rdfs:label "👩‍👩‍👧" .
:nothing1 a :Word ; rdfs:label "None" . :nothing2 a :Word ; rdfs:label "none of these" .
:more1 a :Word ; rdfs:label "more" . :other1 a :Word ; rdfs:label "Other classes" .
:iri1 a :Word ; rdfs:label "http://messy.example/gift1" . :iri2 a :Word ; rdfs:label ":gift1" .
:iri3 a :Word ; rdfs:label "<http://messy.example/gift1>" . :iri4 a :Word ; rdfs:label :gift1 .
:both1 a :Word ; rdfs:label "First" , "Second" ; skos:prefLabel "Third" .
:long1 a :Word ; rdfs:label "LONGone" . :long2 a :Word ; rdfs:label "LONGtwo" .
:bare a :Word . <http://other.example/bare> a :Word .
""".replace("LONG", "A very long label " * 150)
"""Labels that look alike, hold nothing to read, or are the text of another language."""

VOCABULARY = r"""
:Word rdfs:label "Word" . :Place rdfs:label "Word"@de . :name a :name ; :name :name .
:Loop rdfs:subClassOf :Loop . :loop a :Loop . :Empty a owl:Class ; rdfs:label "Empty" .
:Round1 rdfs:subClassOf :Round2 . :Round2 rdfs:subClassOf :Round3 . :Round3 rdfs:subClassOf :Round1 .
:round a :Round1 , :Round2 , :Round3 .
:restricted a [ a owl:Restriction ; owl:onProperty :height ; owl:someValuesFrom :Word ] .
:kind a :type ; :type :Word ; :a "a" ; :label "label" ; rdf:type :Odd .
:type rdfs:label "type" . :isA rdfs:label "type" . :a rdfs:label "is a" . :kind :isA :Place .
:Odd rdfs:label "id" . :odd1 a :Odd ; :id 1 ; :value 2 ; :count 3 ; :P31 4 ; <http://other.example/P31> 5 .
:odd2 a :Odd ; :label "the label" ; rdfs:comment "the comment" ; :column "x" ; :table "y" ; :select "z" .
<http://messy.example/has%20part> rdfs:label "has part" . :hasPart rdfs:label "has part" .
:odd1 <http://messy.example/has%20part> :odd2 . :odd2 :hasPart :odd1 ; :HasPart :odd1 ; :has_part :odd1 .
"""
"""A thing that is its own class and predicate, circles of one and of three, names that are keywords."""

ODD_VALUES = r"""
:values a :Value ; :whole "abc"^^xsd:integer , "01"^^xsd:integer , 1 , "1" , 1.0 , 1.00 , "1"^^xsd:boolean ;
    :when "2020-01-01T00:00:00+14:00"^^xsd:dateTime , "2020-01-01T00:00:00-14:00"^^xsd:dateTime ,
        "2020-01-01T00:00:00Z"^^xsd:dateTime , "2020-01-01T00:00:00"^^xsd:dateTime ,
        "-0044-03-15T00:00:00Z"^^xsd:dateTime , "12020-01-01T24:00:00Z"^^xsd:dateTime ;
    :day "2020-02-30"^^xsd:date , "2020-02-28+02:00"^^xsd:date ; :year "2020+02:00"^^xsd:gYear , "-0044"^^xsd:gYear ;
    :odds "NaN"^^xsd:double , "INF"^^xsd:double , "-0.0E0"^^xsd:double , "maybe"^^xsd:boolean , true ;
    :said "Colour"@en-GB , "Colour"@EN-gb , "Colour"@en , "Colour" , "colour"@x-odd ;
    :markup "<p>one</p>"^^rdf:HTML , "<p>one</p>"^^rdf:XMLLiteral , "{}"^^rdf:JSON ;
    :where "POINT(1 2)"^^geo:wktLiteral ; :file "aGVsbG8="^^xsd:base64Binary ; :lasts "P1Y2M"^^xsd:duration ;
    :link "http://messy.example/gift1"^^xsd:anyURI , "http://messy.example/gift1" , :gift1 .
:listed a :Value ; :items ( 1 "1" :gift1 ( ) ) , ( ) ; :pair [ rdf:first 1 , 2 ; rdf:rest rdf:nil ] .
:claim a rdf:Statement ; rdf:subject :gift1 ; rdf:predicate :near ; rdf:object :gift2 .
[] a :Value ; rdfs:label "blank" ; :whole 2 . [] a :Value ; rdfs:label "blank" ; :whole 3 .
:nested a :Value ; :part [ a :Part ; :part [ a :Part ; :part [ a :Part ; :whole 4 ] ] ] .
_:b1 :part _:b2 . _:b2 :part _:b1 . :nested :part _:b1 .
:self a :Value ; :near :self ; :whole :self .
"""
"""Ill-typed literals, odd zones, one text of many types, lists, statements and circles of blank nodes."""

MESSY = MESSY_PREFIXES + ADDRESSES + LABELS + VOCABULARY + ODD_VALUES


def messy() -> Graph:
    """The graph of what real files hold: odd addresses, labels, vocabularies and values."""
    return films(MESSY)
