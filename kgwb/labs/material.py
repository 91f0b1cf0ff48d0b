"""What the notebooks of the labs show. It has no solutions, so that students may look at all of it."""

from __future__ import annotations

from kgwb import disk
from kgwb.systems.chatty_kg.qir import QirReply, TripleReply

__all__ = ["CLAIMS", "DIALOGUE", "REPLIES", "QirReply", "TripleReply"]

_MATERIAL: dict[str, list[str]] = disk.read_table("labs/material.toml")
DIALOGUE = _MATERIAL["dialogue"]
REPLIES = _MATERIAL["replies"]
CLAIMS = _MATERIAL["claims"]
