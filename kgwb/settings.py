"""Settings of a run, and the two profiles.

``paper`` is a system as published; ``fast`` keeps its flow and mends what is known against it (README,
"Profiles").
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal, get_args, get_type_hints

from kgwb.errors import SettingError


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that changes what a run does, except models, prompts and graph."""

    profile: Literal["paper", "fast"] = "fast"
    theta: int = 3
    """Attempts a reply may take until it passes its checks (Chatty-KG, section 6)."""
    answers_in_context: int = 100
    """L: answers of an earlier turn that the rephraser sees."""
    v_limit: int = 600
    """Vertices fetched for a mention."""
    shown_candidates: int = 40
    """Distinct candidates that vertex selection may choose from in ``fast``; ``paper`` shows all."""
    query_num: int = 40
    """Candidate queries kept by truncation."""
    predicates_per_relation: int = 5
    """Ranked predicates kept for a relation; the reference code of Chatty-KG keeps 21."""
    join_sample: int = 200
    """Vertices sampled to find the predicates of a relation between two unknowns (``fast``)."""
    spelling: float = 0.3
    """Share of spelling in the similarity of a relation with predicate names; the rest is the embeddings'."""
    multi_turn: bool = True
    """False skips classifier and rephraser (system mode of the paper, section 6)."""
    reword_answer: bool = False
    """Let the chat agent turn short answers into a sentence (off in the paper's evaluation)."""
    translate: bool = True
    """Translate questions that are not in English first."""
    iteration_limit: int = 3
    """Hops a system that walks the graph takes until it gives up (DoG's reference code)."""
    debate_rounds: int = 1
    """Rounds in which DoG's three roles simplify a question; the paper allows 3, and finds 1 mostly best."""
    fan_out: int = 100
    """Vertices kept of a hop, and triples of it that a model sees; the step tells what was cut."""
    ablation: Literal[
        "none", "no_focusing", "expert_only", "no_linguist", "fused_agent", "unneeded_roles"
    ] = "unneeded_roles"
    """What DoG goes without: nothing, as published; focusing and simplifying, roles, or the debate, as in the
    paper's Table 2; or the roles that would come after a question which passes the checks."""
    own_knowledge: bool = False
    """Let the model answer by itself where the graph gave no answer; such an answer is marked."""
    exemplars: int = 5
    """Examples shown of those that a prompt file holds as [example]."""
    repair: Literal["show_error", "ask_afresh"] = "show_error"
    """After an invalid reply: let the model see why, or ask the same again (as published)."""
    temperature: float = 0.0
    seed: int = 7
    max_output_tokens: int = 2048
    model_timeout_s: float = 60.0
    max_question_words: int = 1_000
    workers: int = 4
    """Entities of one question linked at the same time on a remote graph or model."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if wanted := _wanted(field.name, value, field.default):
                raise SettingError(f"{field.name} is {value!r}", hint=f"give {field.name} {wanted}")

    @property
    def fast(self) -> bool:
        """Whether the mends of profile ``fast`` apply."""
        return self.profile == "fast"

    def changed(self, **changes: Any) -> Settings:
        """A copy with some settings changed; raises SettingError for a name that is none."""
        known = [field.name for field in fields(self)]
        unknown = sorted(set(changes) - set(known))
        if unknown:
            hint = f"the settings are {', '.join(known)}"
            raise SettingError(f"no setting named {', '.join(unknown)}", hint=hint)
        return replace(self, **changes)

    def to_data(self) -> dict[str, Any]:
        return asdict(self)


USUAL = (1, 1_000_000)
"""The least and the most that a number may be: what every engine takes."""
RANGES: dict[str, tuple[float, float]] = {
    "spelling": (0, 1),
    "temperature": (0, 100),
    "seed": (-(2**63), 2**63 - 1),
    "model_timeout_s": (0.001, 1_000_000),
}
"""The same for settings that differ."""
CHOICES = {name: get_args(get_type_hints(Settings)[name]) for name in ("profile", "repair", "ablation")}


def _wanted(name: str, value: Any, default: Any) -> str:
    """What a setting has to be, if the value is not that; else empty."""
    if name in CHOICES:
        return "" if value in CHOICES[name] else f"one of {', '.join(CHOICES[name])}"
    if isinstance(default, bool):
        return "" if isinstance(value, bool) else "True or False"
    low, high = RANGES.get(name, USUAL)
    fits = isinstance(value, type(default) | int) and not isinstance(value, bool) and low <= value <= high
    kind = "whole number" if isinstance(default, int) else "number"
    return "" if fits else f"a {kind} from {low:,} to {high:,}"


PROFILES = {
    "fast": Settings(),
    "paper": Settings(
        profile="paper",
        predicates_per_relation=21,
        spelling=0.0,
        debate_rounds=3,
        ablation="none",
        exemplars=10,
        repair="ask_afresh",
    ),
}


def profile(name: str, **changes: Any) -> Settings:
    """The settings of profile ``paper`` or ``fast``, with changes; raises SettingError for another name."""
    if name not in PROFILES:
        raise SettingError(f"no profile named {name!r}", hint=f"choose one of {', '.join(PROFILES)}")
    return PROFILES[name].changed(**changes)
