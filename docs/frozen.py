"""What the pages of the reference need to know of kgwb's own decorators."""

from __future__ import annotations

import griffe


class Frozen(griffe.Extension):
    """Shows a class with ``@frozen`` (kgwb.records) as the dataclass that it is, with its signature."""

    def on_class_instance(self, *, cls: griffe.Class, **_: object) -> None:
        """Put the decorator that ``frozen`` applies in its place, before signatures are made."""
        for decorator in cls.decorators:
            if decorator.callable_path == "kgwb.records.frozen":
                decorator.value = griffe.ExprName("dataclasses.dataclass")
                cls.labels.add("dataclass")
