"""Matching agent: entities to vertices, relations to ranked predicates (section 5.1, Algorithm 2)."""

from __future__ import annotations

from kgwb.flow import Context
from kgwb.run import Run, agent
from kgwb.systems.chatty_kg.entity_linking import link_entity
from kgwb.systems.chatty_kg.records import QIR, Linked
from kgwb.systems.chatty_kg.relation_linking import link_relations


@agent("matching")
def match(qir: QIR, question: str, context: Context, run: Run) -> Linked:
    """EntToVertex and RelToPred of the QIR: each entity side by side, then each relation along the joins."""
    links = run.map(link_entity, qir.entities, question, context, qir.kinds)
    return Linked(links, link_relations(qir, links, run))
