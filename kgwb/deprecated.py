"""Old names of public things, which warn and still work for one release."""

from __future__ import annotations

import pkgutil
import warnings
from collections.abc import Callable, Mapping
from typing import Any


def deprecated_names(module: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a ``__getattr__`` for a module some of whose names have changed or moved.

    ``names`` has the present place of each old name: {"to_data": "kgwb.records:to_data"}. Using an
    old name returns what stands there now, with a DeprecationWarning.
    """

    def __getattr__(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        place = names[name].replace(":", ".")
        warnings.warn(
            f"{module}.{name} is now {place}; the old name will be removed in the next release",
            DeprecationWarning,
            stacklevel=2,
        )
        return pkgutil.resolve_name(names[name])

    return __getattr__
