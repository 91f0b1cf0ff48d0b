"""Settings of a run.

Profile ``paper`` is a system as published; ``fast`` keeps its flow, with fixes (docs/profiles.md).
The settings of a system are a subclass in its folder.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from kgwb.deprecated import RenamedAttribute
from kgwb.errors import SettingError

Count = Annotated[int, Field(ge=1, le=1_000_000)]
Fraction = Annotated[float, Field(ge=0, le=1)]
NUMBER_PATTERN = re.compile(r"[-+]?(\d[\d.e+-]*|inf|nan)")
STRICT_CONFIG = ConfigDict(strict=True, allow_inf_nan=False)


@dataclass(frozen=True, kw_only=True, config=STRICT_CONFIG)
class Settings:
    """Everything that changes what a run of any system does, except models, prompts and graph."""

    PAPER: ClassVar[Mapping[str, Any]] = {"spelling": 0.0, "exemplars": 10, "repair": "ask_afresh"}
    """What profile ``paper`` sets otherwise."""

    profile: Literal["paper", "fast"] = "fast"
    theta: Count = 3
    """Attempts a reply may take until it passes its checks (Chatty-KG, section 6)."""
    v_limit: Count = 600
    """Vertices fetched for a mention."""
    shown_candidates: Count = 40
    """Distinct candidates that vertex selection may choose from in ``fast``; ``paper`` shows all."""
    spelling: Fraction = 0.3
    """Share of spelling in the similarity of a relation with predicate names; the rest is the embeddings'."""
    own_knowledge: bool = False
    """Let the model answer by itself where the graph gave no answer; such an answer is marked."""
    exemplars: Count = 5
    """Examples shown of those that a prompt file holds as [example]."""
    repair: Literal["show_error", "ask_afresh"] = "show_error"
    """After an invalid reply: let the model see why, or ask the same again (as published)."""
    temperature: Annotated[float, Field(ge=0, le=100)] = 0.0
    seed: Annotated[int, Field(ge=-(2**63), lt=2**63)] = 7
    max_output_tokens: Count = 2048
    model_timeout_s: Annotated[float, Field(ge=0.001, le=1_000_000)] = 60.0
    max_question_words: Count = 1_000
    workers: Count = 4
    """Entities of one question linked at the same time on a remote graph or model."""

    @property
    def is_fast(self) -> bool:
        """Whether the fixes of profile ``fast`` apply."""
        return self.profile == "fast"

    @classmethod
    def setting_names(cls) -> tuple[str, ...]:
        return tuple(field.name for field in fields(cls))

    @classmethod
    def of_profile(cls, profile: str, /, *, parse_strings: bool = False, **changes: Any) -> Self:
        """The settings of a profile with changes, as ``texts`` if they were typed. Raises SettingError."""
        if profile not in ("fast", "paper"):
            raise SettingError(f"no profile named {profile!r}", hint="choose one of fast, paper")
        if unknown := sorted(set(changes) - set(cls.setting_names())):
            hint = f"the settings are {', '.join(cls.setting_names())}"
            raise SettingError(f"no setting named {', '.join(unknown)}", hint=hint)
        values = {"profile": profile, **(cls.PAPER if profile == "paper" else {})}
        try:
            if parse_strings:
                typed = TypeAdapter(cls).validate_strings(changes, strict=False)
                changes = {name: getattr(typed, name) for name in changes}
            return cls(**values | changes)
        except ValidationError as exc:
            wrong = exc.errors(include_url=False)[0]
            name = str(wrong["loc"][0])
            value = (
                changes[name]
                if parse_strings and NUMBER_PATTERN.fullmatch(changes[name])
                else repr(changes[name])
            )
            hint = f"give {name} another value: {wrong['msg'].lower()}"
            raise SettingError(f"{name} is {value}", hint=hint) from exc

    @classmethod
    def of(cls, settings: Settings | Mapping[str, Any] | str | None) -> Self:
        """Settings, a profile's name, or what differs from ``fast``, as settings of this class's system.

        Raises SettingError for what it does not have.
        """
        if isinstance(settings, str):
            return cls.of_profile(settings)
        if not isinstance(settings, Settings):
            changes = {"profile": "fast", **(settings or {})}
            return cls.of_profile(changes.pop("profile"), **changes)
        if isinstance(settings, cls):
            return settings
        return cls.of_profile(settings.profile, **settings.changes_from_profile())

    @classmethod
    def of_run(cls, run: Any) -> Self:
        """The settings of a run, as those of this class's system."""
        return cls.of(run.settings)

    def changes_from_profile(self) -> dict[str, Any]:
        """What differs from the profile."""
        usual = self.of_profile(self.profile).to_data()
        return {name: value for name, value in self.to_data().items() if value != usual[name]}

    def with_changes(self, **changes: Any) -> Self:
        """A copy with some settings changed. Raises SettingError."""
        return self.of_profile(changes.get("profile", self.profile), **self.to_data() | changes)

    def to_data(self) -> dict[str, Any]:
        return asdict(self)

    changed = RenamedAttribute("changed", "with_changes")
    names = RenamedAttribute("names", "setting_names")
