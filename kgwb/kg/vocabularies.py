"""Which predicates carry names and noise in well-known graphs. Yours: ``VOCABULARIES["mine"] = ...``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pyoxigraph import NamedNode

from kgwb import disk
from kgwb.errors import SettingError
from kgwb.flow import from_data, to_data
from kgwb.kg.base import Vocabulary

_Iri = Annotated[str, AfterValidator(lambda iri: NamedNode(iri).value)]
_Tag = Annotated[str, Field(pattern=r"^([A-Za-z]+(-[A-Za-z0-9]+)*)?$")]
_HOSTS = {
    "dbpedia.org": "dbpedia",
    "wikidata.org": "wikidata",
    "yago-knowledge.org": "yago",
    "dblp.org": "dblp",
    "makg.org": "mag",
    "ma-graph.org": "mag",
}
_QLEVER = ("qlever.dev", "qlever.cs.uni-freiburg.de")  # where /api/NAME is a graph


class _Fields(BaseModel):
    """The fields of a Vocabulary as a file gives them."""

    model_config = ConfigDict(extra="forbid", strict=True)
    labels: Annotated[list[_Iri], Field(min_length=1)] = Field(default_factory=list)
    descriptions: list[_Iri] = Field(default_factory=list)
    types: list[_Iri] = Field(default_factory=list)
    noise: list[_Iri] = Field(default_factory=list)
    languages: list[_Tag] = Field(default_factory=list)


def _from_json(data: object) -> Vocabulary:
    """A vocabulary of JSON data; what the data leaves out is as in the default. Raises ValueError."""
    fields = _Fields.model_validate(data).model_dump(exclude_unset=True)
    vocabulary: Vocabulary = from_data(to_data(Vocabulary()) | fields, Vocabulary)
    return vocabulary


_KNOWN = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
VOCABULARIES: dict[str, Vocabulary] = {"default": Vocabulary()} | {
    name: _from_json(data) for name, data in _KNOWN.items()
}
"""By name. ``VOCABULARIES["dbpedia"].plus(noise=[...])`` adds to one."""


def well_known(url: str) -> Vocabulary:
    """The vocabulary of the well-known graph at an endpoint's URL; the default for any other."""
    parts = urlsplit(url)
    host, path = (parts.hostname or "").lower(), parts.path.rstrip("/").rpartition("/")[2]
    if host in _QLEVER:
        return VOCABULARIES.get(path, VOCABULARIES["default"])
    domains = (".".join(host.split(".")[-number:]) for number in range(2, host.count(".") + 2))
    return VOCABULARIES[next((_HOSTS[domain] for domain in domains if domain in _HOSTS), "default")]


def vocabulary_of(name: str) -> Vocabulary:
    """The vocabulary of a name, or of a JSON file: an object with fields of Vocabulary, lists of texts.

    What the file leaves out is as in the default. Raises SettingError.
    """
    if name in VOCABULARIES:
        return VOCABULARIES[name]
    fields = ", ".join(_Fields.model_fields)
    hint = f"choose one of {', '.join(VOCABULARIES)}, or a .json file with any of {fields}"
    if not name.endswith(".json"):
        raise SettingError(f"no vocabulary named {name!r}", hint=hint)
    try:
        return _from_json(json.loads(disk.read_text(Path(name))))
    except ValidationError as error:
        first = error.errors()[0]
        problem = f"{first['msg']} in {'.'.join(map(str, first['loc'])) or 'it'}: {first['input']!r}"
    except (OSError, ValueError, RecursionError) as error:
        problem = str(error)
    raise SettingError(f"the vocabulary {name} cannot be used: {problem}", hint=hint)
