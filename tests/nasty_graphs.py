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
