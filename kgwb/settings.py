"""The settings of a run.

There are three profiles (docs/profiles.md). ``fast``, the default, is a system with fixes of ours.
``paper`` does what the system's paper says. ``reference`` does what the code that its authors
published does, where this is known and differs from the paper. A system with settings of its own
has a subclass in its folder.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import fields
from types import NoneType
from typing import Annotated, Any, ClassVar, Literal, Self, get_args, get_type_hints

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from kgwb.errors import SettingError

UNLIMITED = 1_000_000
"""The highest value of a limit: one that is never reached."""
Count = Annotated[int, Field(ge=1, le=UNLIMITED)]
"""A whole number, such as a number of attempts."""
Fraction = Annotated[float, Field(ge=0, le=1)]
Temperature = Annotated[float, Field(ge=0, le=100)]
Seed = Annotated[int, Field(ge=-(2**63), lt=2**63)]
TimeoutSeconds = Annotated[float, Field(ge=0.001, le=1_000_000)]
Profile = Literal["fast", "reference", "paper"]
NUMBER_PATTERN = re.compile(r"[-+]?(\d[\d.e+-]*|inf|nan)")
STRICT_CONFIG = ConfigDict(strict=True, allow_inf_nan=False)
"""The pydantic configuration of settings: no value is converted to another type."""
DEFERRED_CONFIG = STRICT_CONFIG | ConfigDict(defer_build=True)
"""Checks are built when the first settings are made, not at the import.

The annotations of such a class must not be strings, so ``from __future__ import annotations`` is
missing here: pydantic would look their names up where the first settings are made, and ``Literal``
may be rdflib's there.
"""


@dataclass(frozen=True, kw_only=True, config=DEFERRED_CONFIG)
class Settings:
    """The settings that every system has. Models, prompts and graph are not settings."""

    PAPER: ClassVar[Mapping[str, Any]] = {}
    """The settings that profile ``paper`` changes. All others have their defaults."""
    REFERENCE: ClassVar[Mapping[str, Any] | None] = None
    """The settings that profile ``reference`` changes; None without published code."""

    profile: Profile = "fast"
    theta: Count = 3
    """How often a model is asked until its reply passes the checks (Chatty-KG, section 6)."""
    v_limit: Count = 600
    """How many vertices the label search for a mention returns at most."""
    candidate_texts: Literal["described", "labels"] = "described"
    """What is known of the candidates for an entity when one of them is chosen.

    - "described": at most ``shown_candidates``, and exact matches only if there are any. They have
      types and descriptions, and exact matches also the names of their predicates.
    - "labels": the labels of all vertices that were found (Chatty-KG, section 5.1.1).
    """
    shown_candidates: Count = 40
    """How many candidates are shown at most if ``candidate_texts`` is "described"."""
    vertex_choice: Literal["number", "label"] = "number"
    """How a model names the vertex that it chooses for an entity.

    - "number": by its number in the list, with the label as a cross-check. 0 means none of them.
    - "label": by its label; it cannot choose none (Chatty-KG, section 5.1.1). Among several
      vertices of one label, it is then asked for the local part of an IRI (reference code).
    """
    unasked_choice: Literal["exact_match", "only_candidate", "never"] = "exact_match"
    """When a vertex is chosen without a model.

    - "exact_match": the only candidate has exactly the entity as its label.
    - "only_candidate": there is one candidate, whatever its label (Chatty-KG, reference code).
    - "never": a model is asked whenever there are candidates (Chatty-KG, Algorithm 2, line 6).
    """
    whole_graph: bool = False
    """Whether every predicate can be a relation, and every class a thing that a question names.

    So say the papers of Chatty-KG, DoG and Triad. Otherwise labels, descriptions, types and noise
    (see the vocabulary of the graph) are no relations, and a class is a thing only if facts have it.
    """
    keeps_links: bool = True
    """Whether an entity keeps the vertex that an earlier turn of the dialogue linked it to.

    The paper links each question anew (Chatty-KG, Algorithm 2, lines 2 to 11).
    """
    spelling: Fraction = 0.3
    """The weight of spelling in the similarity of a relation and a predicate name.

    The rest is the weight of the embeddings.
    """
    own_knowledge: bool = False
    """Whether the model may answer by itself if the graph has no answer. This is then marked."""
    exemplars: Count = 5
    """How many of the examples of a prompt file, marked [example], are sent."""
    repair: Literal["show_error", "ask_varied", "ask_afresh"] = "show_error"
    """What is done after an invalid reply.

    - "show_error": the model is shown its reply and the problems.
    - "ask_varied": it is asked the same, with another seed and with ``retry_temperature``, so that
      replies vary (Chatty-KG, section 6).
    - "ask_afresh": the same request is sent again (Chatty-KG, reference code).
    """
    retry_temperature: Temperature = 0.5
    """The temperature where the same is asked again to get another reply."""
    exhausted_attempts: Literal["error", "abstain"] = "error"
    """What an agent does if no reply is valid within theta attempts: fail, or go on without a
    result, so that the question is not answered (Chatty-KG, Algorithms 1 to 3)."""
    temperature: Temperature = 0.0
    seed: Seed = 7
    max_output_tokens: Count = 2048
    model_timeout_s: TimeoutSeconds = 60.0
    max_question_words: Count = 1_000
    workers: Count = 4
    """How many entities of a question are linked at the same time if graph or model is remote."""

    @classmethod
    def setting_names(cls) -> tuple[str, ...]:
        """Return the names of all settings of this system."""
        return tuple(field.name for field in fields(cls))

    @classmethod
    def select_known(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return those of some values by name whose name is a setting of this system."""
        names = cls.setting_names()
        known = {}
        for name, value in values.items():
            if name in names:
                known[name] = value
        return known

    @classmethod
    def profile_changes(cls) -> dict[str, Mapping[str, Any]]:
        """Return the settings that each profile of this system changes, by the profile's name.

        "fast" changes none. "reference" is left out for a system that has no such profile.
        """
        changes: dict[str, Mapping[str, Any]] = {"fast": {}, "paper": cls.PAPER}
        if cls.REFERENCE is not None:
            changes["reference"] = cls.REFERENCE
        return changes

    @classmethod
    def of_profile(cls, profile: str, /, *, parse_strings: bool = False, **changes: Any) -> Self:
        """Return the settings of a profile with some of them changed.

        With ``parse_strings`` the changes are texts, such as "true" or "0.5", which are parsed by
        the type of their setting; "None" is None where the setting can be that. Raises SettingError
        for an unknown setting, for a value that the setting cannot have, and for a profile that the
        system does not have.
        """
        values = cls._profile_values(profile)
        cls._check_names(changes)
        try:
            if parse_strings:
                values.update(cls._parse_texts(changes))
            else:
                values.update(changes)
            return cls(**values)
        except ValidationError as exc:
            raise _setting_error(exc, changes, are_strings=parse_strings) from exc

    @classmethod
    def _profile_values(cls, profile: str) -> dict[str, Any]:
        """Return the settings that a profile changes, and its name. Raises SettingError for an unknown one."""
        profiles = cls.profile_changes()
        if profile in profiles:
            return {**profiles[profile], "profile": profile}
        reason = f"this system has no profile named {profile!r}"
        if profile in get_args(Profile):
            reason = f"this system has no profile {profile!r}: its code is not published"
        choices = ", ".join(profiles)
        raise SettingError(reason, hint=f"choose one of {choices}")

    @classmethod
    def _check_names(cls, names: Iterable[str]) -> None:
        """Raise SettingError for names that are no settings of this system."""
        known = cls.setting_names()
        unknown = set(names).difference(known)
        if not unknown:
            return
        listed = ", ".join(sorted(unknown))
        choices = ", ".join(known)
        raise SettingError(
            f"this system has no setting named {listed}", hint=f"the settings are {choices}"
        )

    @classmethod
    def _parse_texts(cls, texts: Mapping[str, str]) -> dict[str, Any]:
        """Return the values of settings by their texts, parsed by the types of the settings.

        "None" is None where the setting can be that. Raises ValidationError for an impossible one.
        """
        types = get_type_hints(cls)
        values: dict[str, Any] = {}
        others = {}
        for name, text in texts.items():
            if text == "None" and NoneType in get_args(types[name]):
                values[name] = None
            else:
                others[name] = text
        parsed = TypeAdapter(cls).validate_strings(others, strict=False)
        for name in others:
            values[name] = getattr(parsed, name)
        return values

    @classmethod
    def of(cls, settings: "Settings | Mapping[str, Any] | str | None") -> Self:
        """Return settings, or a profile's name, or changes, as settings of this class.

        A text is the name of a profile. A mapping has what differs from the profile that it names
        under "profile", else from ``fast``; None changes nothing. Of the settings of another
        system, the profile and those that differ from it are taken over. Raises SettingError for a
        setting or a profile that this system does not have, or an impossible value.
        """
        if isinstance(settings, cls):
            return settings
        if isinstance(settings, str):
            return cls.of_profile(settings)
        if isinstance(settings, Settings):
            profile: str = settings.profile
            changes = settings.changes_from_profile()
        else:
            changes = dict(settings or {})
            profile = changes.pop("profile", "fast")
        return cls.of_profile(profile, **changes)

    @classmethod
    def of_run(cls, run: Any) -> Self:
        """Return the settings of a run as those of this class's system; see ``of``."""
        return cls.of(run.settings)

    def changes_from_profile(self) -> dict[str, Any]:
        """Return the settings that differ from those of their profile, by name, as JSON data."""
        defaults = self.of_profile(self.profile).to_data()
        changes = {}
        for name, value in self.to_data().items():
            if value != defaults[name]:
                changes[name] = value
        return changes

    def with_changes(self, **changes: Any) -> Self:
        """Return a copy with some settings changed.

        All other settings keep their values, also when the profile is changed. Raises SettingError.
        """
        values = {**self.to_data(), **changes}
        return self.of_profile(values["profile"], **values)

    def to_data(self) -> dict[str, Any]:
        """Return the settings as JSON data, by name."""
        return dict(vars(self))


def _setting_error(
    error: ValidationError, changes: Mapping[str, Any], *, are_strings: bool
) -> SettingError:
    """Return the error for the first setting that has an impossible value.

    The value is shown as Python writes it, except that a number given as a text has no quotes.
    """
    first = error.errors(include_url=False)[0]
    name = str(first["loc"][0])
    problem = first["msg"].lower().removeprefix("value error, ")
    value = changes[name]
    shown_value = repr(value)
    if are_strings and NUMBER_PATTERN.fullmatch(value):
        shown_value = value
    return SettingError(
        f"the setting {name} is {shown_value}, which is not allowed",
        hint=f"give {name} another value: {problem}",
    )
