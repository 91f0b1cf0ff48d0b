"""Names that earlier versions wrote into files, and what they are called now.

Run files, results and surveys hold names: of agents in the keys of steps, of settings, of prompts,
and of the fields of records. A name that is changed is added here, so that files of earlier
versions can still be read and replayed. Everything that reads such a file goes through this module.
The names of today are listed in ``tests/frozen/names.json``.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from typing import Any

AGENTS: Mapping[str, Mapping[str, str]] = {}
"""For each system, new names of its agents by the old ones."""
SETTINGS: Mapping[str, str] = {}
"""New names of settings by the old ones."""
EARLIER_SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "chatty_kg": {"shows_units": False},
    "triad": {
        "relation_examples": False,
        "merge_results": False,
        "may_refuse_queries": False,
        "answer_type_from": "model",
    },
}
"""For each system: settings that a file may not have, with what was done before they were added.

A setting whose default does what was done before is not here.
"""
SETTING_VALUES: Mapping[tuple[str, Any], Mapping[str, Any]] = {
    ("translate", True): {"translate": "by_words"},
    ("translate", False): {"translate": "never"},
    ("ablation", "unneeded_roles"): {
        "ablation": "none",
        "debate_end": "first_valid",
        "says_last_hop": False,
    },
}
"""For the name of a setting and a value that it no longer has, the settings that mean the same."""
PROMPTS: Mapping[str, str] = {}
"""New names of prompts by the old ones, such as "chatty_kg/qir"."""
FIELDS: Mapping[str, Mapping[str, str]] = {}
"""For each record class, by its module and name: new names of its fields by the old ones."""


def current_step_key(system: str, key: str) -> str:
    """Return the key of a step with the present name of its agent.

    A key is "agent[subject]#2", of which subject and occurrence may be missing. A key of an agent
    that was not renamed is returned as it is.
    """
    parts = re.split(r"[\[#]", key, maxsplit=1)
    agent = parts[0]
    present_names = AGENTS.get(system, {})
    present_name = present_names.get(agent, agent)
    rest = key.removeprefix(agent)
    return present_name + rest


def current_settings(settings: Mapping[str, Any], system: str) -> dict[str, Any]:
    """Return the settings that a file of an earlier version names, as they are called now.

    Old names are replaced, and an old value by the settings that mean the same (SETTING_VALUES),
    unless ``settings`` has these itself. A setting that the file lacks has its value of
    EARLIER_SETTINGS, if there is one for the system.
    """
    earlier = EARLIER_SETTINGS.get(system, {})
    present = dict(earlier)
    replacements: dict[str, Any] = {}
    for old_name, value in settings.items():
        name = SETTINGS.get(old_name, old_name)
        meaning = None
        if isinstance(value, Hashable):
            meaning = SETTING_VALUES.get((name, value))
        if meaning is None:
            present[name] = value
        else:
            replacements.update(meaning)
    return replacements | present


def current_prompt(name: str) -> str:
    """Return the present name of a prompt."""
    return PROMPTS.get(name, name)


def current_fields(record_class: str, data: Any) -> Any:
    """Return the JSON data of a record with the present names of its fields.

    ``record_class`` is the module and the name of its class, such as "kgwb.flow.Turn". Fields that
    were not renamed stay. Data of a class without renamed fields, or that is not a JSON object, is
    returned as it is.
    """
    renamed = FIELDS.get(record_class)
    if not renamed or not isinstance(data, Mapping):
        return data
    fields = {}
    for name, value in data.items():
        present_name = renamed.get(name, name)
        fields[present_name] = value
    return fields
