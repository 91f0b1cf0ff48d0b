#!/usr/bin/env bash
# pydantic: a dataclass whose checks are built at its first use reads its annotations by the names of the first caller.
#
# Expected. An annotation that is a string is resolved in the module that defines the class, as
# typing.get_type_hints does, and as pydantic's documentation on resolving annotations says.
# ConfigDict(defer_build=True) says when the checks are built ("until the first model validation"), not by
# which names; a BaseModel with it keeps to its module. So it does not matter who makes the first object.
#
# Seen (pydantic 2.14.4, rdflib 7.6.0). A pydantic dataclass with defer_build looks a name up among the
# local names of whoever makes the first object, and only then in its own module. Another "Limit" there
# is taken without a word, for every later object of the process: 500 passes a check for at most 10. In a
# module that does "from rdflib import Literal", typing's Literal of the class is rdflib's, which cannot
# be subscripted, and making the object raises TypeError.
#
#                            first made by a function      first made in a module
#                            with a Limit of its own       with rdflib's Literal
#   dataclass                refused, as it should be      made
#   dataclass, defer_build   made: limit=500               TypeError
#   BaseModel, defer_build   refused, as it should be      made
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -qq --disable-pip-version-check \
    pydantic==2.14.4 rdflib==7.6.0

cat > settings.py <<'PY'
from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.dataclasses import dataclass

Limit = Annotated[int, Field(le=10)]
DEFERRED = ConfigDict(defer_build=True)


@dataclass
class AtOnce:
    limit: Limit = 3
    form: Literal["rows", "graph"] = "rows"


@dataclass(config=DEFERRED)
class Deferred:
    limit: Limit = 3
    form: Literal["rows", "graph"] = "rows"


class Model(BaseModel):
    model_config = DEFERRED
    limit: Limit = 3
    form: Literal["rows", "graph"] = "rows"
PY
cat > own_limit.py <<'PY'
from typing import Annotated

from pydantic import Field

import settings


def make(kind):
    Limit = Annotated[int, Field(le=1000)]
    try:
        return f"made: limit={kind(limit=500).limit}"
    except ValueError:
        return "refused"


seen = [make(kind) for kind in (settings.AtOnce, settings.Deferred, settings.Model)]
print("a function with a Limit of its own:", seen)
if seen != ["refused", "made: limit=500", "refused"]:
    raise SystemExit("the behaviour has changed")
PY
cat > with_rdflib.py <<'PY'
from importlib.metadata import version

from rdflib import Literal

import settings

print("pydantic", version("pydantic"), "rdflib", version("rdflib"))
seen = []
for kind in (settings.AtOnce, settings.Deferred, settings.Model):
    try:
        kind(form="rows")
        seen.append("made")
    except TypeError as error:
        seen.append(f"{type(error).__name__}: {error}")
print("a module with rdflib's Literal:", seen)
if seen != ["made", "TypeError: type 'Literal' is not subscriptable", "made"]:
    raise SystemExit("the behaviour has changed")
PY
venv/bin/python with_rdflib.py
venv/bin/python own_limit.py
