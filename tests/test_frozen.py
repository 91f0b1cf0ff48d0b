"""What is stored in files and sent to models keeps its name, or has its old name in kgwb/old_names.py.

``python tests/test_frozen.py`` writes the names and schemas of today; do that only to add new ones.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
from pydantic import BaseModel

from kgwb import old_names
from kgwb.flow import Answer, Dialogue
from kgwb.records import Record, from_data
from kgwb.run.ask import Reply
from kgwb.run.calls import RESULT_TYPES, Call, call_key
from kgwb.run.prompts import shipped_folder
from kgwb.run.steps import Totals
from kgwb.systems import SYSTEM_NAMES, load_system
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
    for name in SYSTEM_NAMES:
        renamed: Mapping[str, str] = old_names.AGENTS.get(name, {})
        missing = [
            each
            for each in stored["agents"][name]
            if renamed.get(each, each) not in now["agents"][name]
        ]
        assert missing == []
        kept = now["settings"][name]
        lost = [
            each
            for each in stored["settings"][name]
            if old_names.SETTINGS.get(each, each) not in kept
        ]
        assert lost == []
    prompts = [old_names.PROMPTS.get(each, each) for each in stored["prompts"]]
    assert [each for each in prompts if each not in now["prompts"]] == []


def test_new_names_are_added_to_the_file() -> None:
    stored, now = frozen("names.json"), current_names()
    assert now["agents"] == stored["agents"]
    assert now["prompts"] == stored["prompts"]
    for part in ("agent outputs", "call results", "run"):
        assert now[part] == stored[part]


def test_the_schemas_that_models_were_sent_have_not_changed() -> None:
    assert schemas() == frozen("reply_schemas.json")


def test_a_record_is_read_under_the_old_names_of_its_fields(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(old_names, "FIELDS", {f"{__name__}.Moved": {"place": "city"}})

    @dataclass(frozen=True, slots=True)
    class Moved(Record):
        city: str

    Both = tuple[Moved, tuple[Moved, ...]]

    moved = Moved("Oslo")
    assert from_data([{"place": "Oslo"}, [{"place": "Oslo"}, {"city": "Oslo"}]], Both) == (
        moved,
        (moved, moved),
    )


def test_a_call_is_found_under_the_new_name_of_its_prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(old_names, "PROMPTS", {"old/agent": "new/agent"})
    request = {"model": "rules", "task": "old/agent", "content": {}}
    data = {
        "key": call_key("model", request, 0),
        "kind": "model",
        "step": "agent",
        "request": request,
        "repeat": 0,
        "reply": {"text": "yes"},
        "taken_at": "",
        "seconds": 0.0,
    }
    call = Call.from_data(data)
    assert call.key == call_key("model", {**request, "task": "new/agent"}, 0)


def test_the_key_of_a_step_gets_the_new_name_of_its_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(old_names, "AGENTS", {"dog": {"walk": "hops"}})
    keys = ["walk", "walk[a]#2", "walking", "other[walk]"]
    assert [old_names.current_step_key("dog", key) for key in keys] == [
        "hops",
        "hops[a]#2",
        "walking",
        "other[walk]",
    ]


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / "names.json").write_text(json.dumps(current_names(), indent=1) + "\n")
    (FOLDER / "reply_schemas.json").write_text(json.dumps(schemas(), indent=1) + "\n")
