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
SETTING_VALUES: Mapping[str, Mapping[Any, Any]] = {
    "translate": {True: "by_words", False: "never"},
}
"""For settings under their present names: new values by the old ones."""
PROMPTS: Mapping[str, str] = {}
"""New names of prompts by the old ones, such as "chatty_kg/qir"."""
FIELDS: Mapping[str, Mapping[str, str]] = {}
"""For each record class, by its module and name: new names of its fields by the old ones."""


def current_step_key(system: str, key: str) -> str:
    """Return the key of a step with the present name of its agent.

    A key is "agent[subject]#2", of which subject and occurrence may be missing.
    """
    agent = re.split(r"[\[#]", key, maxsplit=1)[0]
    present_names = AGENTS.get(system, {})
    return present_names.get(agent, agent) + key.removeprefix(agent)


def current_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings, which are values by name, under their present names and with present values.

    A value that has no new one is returned as it is.
    """
    present = {}
    for name, value in settings.items():
        present_name = SETTINGS.get(name, name)
        present[present_name] = value
        present_values = SETTING_VALUES.get(present_name, {})
        if isinstance(value, Hashable) and value in present_values:
            present[present_name] = present_values[value]
    return present


def current_prompt(name: str) -> str:
    """Return the present name of a prompt."""
    return PROMPTS.get(name, name)


def current_fields(record_class: str, data: Any) -> Any:
    """Return the JSON data of a record with the present names of its fields.

    ``record_class`` is the module and the name of its class, such as "kgwb.flow.Turn". Data that is
    not a JSON object is returned as it is.
    """
    renamed = FIELDS.get(record_class)
    if not renamed or not isinstance(data, Mapping):
        return data
    return {renamed.get(name, name): value for name, value in data.items()}
