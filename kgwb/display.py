"""How objects show themselves: ``kgwb.show`` registers text and HTML for types of the rooms below it."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from functools import singledispatch


class Shown:
    """What a terminal shows by ``as_text``, and a notebook by ``as_html``."""

    __slots__ = ()

    def __repr__(self) -> str:
        return as_text(self)

    def _repr_html_(self) -> str | None:
        return as_html(self)


@singledispatch
def as_text(value: object) -> str:
    """The ``repr`` of a value; its fields, where no other text is registered."""
    if not is_dataclass(value):
        return object.__repr__(value)
    shown = (
        f"{field.name}={getattr(value, field.name)!r}" for field in fields(value) if field.repr
    )
    return f"{type(value).__name__}({', '.join(shown)})"


@singledispatch
def as_html(value: object) -> str | None:
    """The HTML of a value in a notebook; None, and so its text, where none is registered."""
    return None
