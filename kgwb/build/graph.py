"""Asking a graph: what systems find in it beyond the queries that they write themselves."""

from kgwb.kg.queries import find_predicates, find_triples
from kgwb.systems.queries import label_terms

__all__ = ["find_predicates", "find_triples", "label_terms"]
