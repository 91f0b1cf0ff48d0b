"""What is stored in files and sent to models keeps its name.

``python tests/test_frozen.py`` writes the names and schemas of today; do that only to add new ones.
"""

import json
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, get_args, get_type_hints

from pydantic import BaseModel

from kgwb.run.answers import Answer, Dialogue
from kgwb.run.ask import Reply
from kgwb.run.prompts import shipped_folder
from kgwb.run.steps import RESULT_TYPES, Totals
from kgwb.run.systems import SYSTEM_NAMES, load_system
from kgwb.systems.robodata.states import REPLY_CLASS_BY_STATE

FOLDER = Path(__file__).parent / "frozen"
Names = dict[str, Any]


def current_names() -> Names:
    """The names of today, in the form of the file."""
    return {
        "agents": {name: [spec.name for spec in load_system(name).agents] for name in SYSTEM_NAMES},
        "settings": {
            name: list(load_system(name).settings.setting_names()) for name in SYSTEM_NAMES
        },
        "prompts": sorted(
            path.relative_to(shipped_folder()).with_suffix("").as_posix()
            for path in shipped_folder().rglob("*.md")
        ),
        "agent outputs": {
            name: {spec.name: fields_in(spec.output_type) for spec in load_system(name).agents}
            for name in SYSTEM_NAMES
        },
        "call results": {kind: fields_in(result) for kind, result in RESULT_TYPES.items()},
        "run": {
            "answer": fields_in(Answer),
            "dialogue": fields_in(Dialogue),
            "totals": fields_in(Totals),
        },
    }


def fields_in(stored: Any, above: tuple[type, ...] = ()) -> Any:
    """The names of the fields in a type, and in theirs; nothing where there are no records."""
    if isinstance(stored, type) and is_dataclass(stored):
        if stored in above:
            return "as above"
        hints = get_type_hints(stored)
        return {each.name: fields_in(hints[each.name], (*above, stored)) for each in fields(stored)}
    inside = [fields_in(part, above) for part in get_args(stored)]
    found = [part for part in inside if part]
    return found[0] if len(found) == 1 else found


def reply_classes() -> dict[str, type[BaseModel]]:
    """Every reply class by its title."""
    for name in SYSTEM_NAMES:
        load_system(name)
    classes = [*subclasses(Reply), *REPLY_CLASS_BY_STATE.values()]
    places = {str(each.model_config.get("title") or each.__name__) for each in classes}
    assert places
    return {f"{each.__module__.split('.')[-2]}.{each.__name__}": each for each in classes}


def subclasses(base: type[Reply]) -> Iterator[type[Reply]]:
    for subclass in base.__subclasses__():
        if subclass.__module__.startswith("kgwb."):
            yield subclass
            yield from subclasses(subclass)


def schemas() -> list[str]:
    """The JSON schema of every reply class, as its canonical text."""
    dumped = {
        json.dumps(each.model_json_schema(), sort_keys=True) for each in reply_classes().values()
    }
    return sorted(dumped)


def frozen(name: str) -> Any:
    return json.loads((FOLDER / name).read_text())


def test_every_stored_name_is_known() -> None:
    stored, now = frozen("names.json"), current_names()
    for part in ("agents", "settings"):
        for name in SYSTEM_NAMES:
            assert set(stored[part][name]) <= set(now[part][name])
    assert set(stored["prompts"]) <= set(now["prompts"])


def test_new_names_are_added_to_the_file() -> None:
    stored, now = frozen("names.json"), current_names()
    assert now["agents"] == stored["agents"]
    assert now["prompts"] == stored["prompts"]
    for part in ("agent outputs", "call results", "run"):
        assert now[part] == stored[part]


def test_the_schemas_that_models_were_sent_have_not_changed() -> None:
    assert schemas() == frozen("reply_schemas.json")


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / "names.json").write_text(json.dumps(current_names(), indent=1) + "\n")
    (FOLDER / "reply_schemas.json").write_text(json.dumps(schemas(), indent=1) + "\n")
