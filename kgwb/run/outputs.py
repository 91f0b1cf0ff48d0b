"""Whether a value has the type that a function promises by its annotation."""

from __future__ import annotations

import types
from collections.abc import Sequence
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from kgwb.text import shorten, single_line

MAX_SHOWN_CHARS = 80


def matches_type(value: Any, promised: Any) -> bool:
    """Return whether a value has the type of an annotation; True for types that cannot be judged.

    The items of a tuple are judged too, those of other collections are not. A class that was
    defined again, by a cell or a reload, is the same class. A whole number may stand for a float.
    """
    if isinstance(promised, type):  # as most outputs: a class without brackets
        return _is_instance(value, promised)
    origin = get_origin(promised)
    arguments = get_args(promised)
    if origin is Annotated:
        return matches_type(value, arguments[0])
    if origin in (Union, types.UnionType):
        return any(matches_type(value, choice) for choice in arguments)
    if origin is Literal:
        return value in arguments
    if origin is tuple:
        return isinstance(value, tuple) and _items_match(value, arguments)
    return _is_instance(value, origin or promised)


def _is_instance(value: Any, promised: Any) -> bool:
    """Return whether a value has a type that has no brackets.

    A class of the same module and name counts as the same, and a whole number as a float. True for
    Any and for what is no class, such as a type variable. None stands for the type of None.
    """
    if promised is None:
        return value is None
    if promised is float:
        return isinstance(value, int | float)
    if promised is Any or not isinstance(promised, type):
        return True
    return isinstance(value, promised) or _is_same_class(type(value), promised)


def _items_match(items: Sequence[Any], promised: Sequence[Any]) -> bool:
    """Return whether the items of a tuple have the types in the brackets of its annotation.

    ``promised`` are these types; "..." as the second allows any number of the first.
    """
    if len(promised) == 2 and promised[1] is Ellipsis:
        item_type = promised[0]
        return all(matches_type(item, item_type) for item in items)
    if len(items) != len(promised):
        return False
    return all(map(matches_type, items, promised))


def _is_same_class(actual: type, promised: type) -> bool:
    """Return whether a class, or one that it derives from, has the name and module of another."""
    place = (promised.__module__, promised.__qualname__)
    places = [(base.__module__, base.__qualname__) for base in actual.__mro__]
    return place in places


def type_text(promised: Any) -> str:
    """Return a type as text: the name of a class, else as in "tuple[kgwb.flow.Link, ...]"."""
    if isinstance(promised, type) and not get_args(promised):
        return promised.__name__
    return str(promised).replace("typing.", "")


def value_text(value: Any) -> str:
    """Return a value with its type, in one line: "str 'Arrival'"; "None" for None.

    The value's ``repr`` is cut at MAX_SHOWN_CHARS characters.
    """
    if value is None:
        return "None"
    shown = shorten(repr(value), MAX_SHOWN_CHARS)
    return single_line(f"{type(value).__name__} {shown}")
