"""Systems and their agents. An agent is a function; each execution of it is a step of the run."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    NamedTuple,
    ParamSpec,
    TypeVar,
    get_type_hints,
    overload,
)

from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError

from kgwb.errors import SettingError
from kgwb.llm.base import Rule
from kgwb.records import JsonObject, type_adapter
from kgwb.run.answers import Answer, Candidate, Link, Reading, Turn
from kgwb.run.prompts import Prompts, shipped_names
from kgwb.run.steps import current_run, load_mapping
from kgwb.settings import Settings
from kgwb.text import tell_apart

if TYPE_CHECKING:
    from kgwb.run.gold import GoldDecisions

P = ParamSpec("P")
T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])
OTHER_STAGE = "other"
"""The stage of what is spent in no agent's stage."""
View = Callable[[Any, Any], str]
"""Renders a record as HTML, given the record and a ``kgwb.show.terms.RenderContext``."""


class CommandResult(NamedTuple):
    """What came of a command of a system."""

    settings: Mapping[str, Any]
    """The settings of the run that change, by name."""
    message: str = ""
    """What the person is told."""


Command = Callable[[Any, Mapping[str, str]], CommandResult]
"""Does what a person asks for in a view, given the run and the values of the form.

The run is executed again up to the step of the view, with the changed settings.
"""


@overload
def agent(function: Callable[P, T], /) -> Callable[P, T]: ...


@overload
def agent(
    name: str = "",
    /,
    *,
    subject: str | None = None,
    check: InputCheck | None = None,
    kind: AgentKind = "code",
) -> Callable[[Callable[P, T]], Callable[P, T]]: ...


def agent(
    name: Any = "",
    /,
    *,
    subject: str | None = None,
    check: InputCheck | None = None,
    kind: AgentKind = "code",
) -> Any:
    """Mark a function as an agent: ``@agent``, or ``@agent("name", ...)``.

    Each call of the decorated function is a step of the run: recorded, and shown to the person, who
    can replace its output. The run is the function's parameter ``run``, its last one. A function
    without this parameter belongs to the run that is being executed; outside of an execution it is
    called as it is. A step of an ``async def`` function is awaited. The ``self`` of a method is no
    input of its step.

    ``name`` is by default the name of the function. ``subject`` names the parameter that tells the
    steps of this agent apart. ``check`` judges a replacement. The decorated function has the
    AgentSpec as ``spec``. Raises SettingError if ``subject`` is not a parameter.
    """

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        """Return a function that executes this one as a step of the run in its arguments.

        Without a run in its arguments it is a step of the run that is being executed, and outside
        of an execution the function is called as it is. Raises SettingError if ``subject`` is not a
        parameter.
        """
        spec = AgentSpec(given_name or function.__name__, function, subject, check, kind)
        signature = inspect.signature(function)
        positions = _positional_parameters(signature)
        is_awaited = inspect.iscoroutinefunction(function)
        is_method = next(iter(signature.parameters), "") == "self"
        if subject and subject not in signature.parameters:
            names = ", ".join(signature.parameters)
            raise SettingError(
                f"agent {spec.name}: subject={subject!r} is not one of its parameters",
                hint=f"write one of {names}",
            )

        @functools.wraps(function)
        def execute(*args: P.args, **kwargs: P.kwargs) -> T:
            """Execute the function as a step of the run, and return its output.

            The run is the argument ``run``, else the one that is being executed. Without a run the
            function is called as it is. A module that was loaded again has its new version of the
            function executed.
            """
            work = functools.partial(current_version(function), *args, **kwargs)
            inputs = _bind_arguments(signature, positions, args, kwargs)
            if is_method:
                inputs.pop("self", None)
            run = inputs.pop("run", None) or current_run()
            if run is None:
                return work()
            execute_step = run.execution.execute_async if is_awaited else run.execution.execute
            result: T = execute_step(spec, inputs, work)
            return result

        decorated: Any = execute
        if is_awaited:

            @functools.wraps(function)
            async def execute_awaited(*args: P.args, **kwargs: P.kwargs) -> Any:
                """Do what ``execute`` does, as a coroutine function, which libraries tell apart."""
                awaited: Any = execute(*args, **kwargs)
                return await awaited

            decorated = execute_awaited
        decorated.spec = spec
        return decorated  # type: ignore[no-any-return]

    if callable(name):
        given_name = ""
        return decorate(name)
    given_name = name
    return decorate


def _positional_parameters(signature: inspect.Signature) -> tuple[str, ...] | None:
    """Return the names of all parameters, if each can be given by its position; else None."""
    for parameter in signature.parameters.values():
        if parameter.kind not in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            return None
    return tuple(signature.parameters)


def _bind_arguments(
    signature: inspect.Signature,
    positions: Sequence[str] | None,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> JsonObject:
    """Return the arguments of a call by parameter, those that were given only.

    ``positions`` are those of ``_positional_parameters``. A call that gives all of them by position
    is read without ``inspect``, which took as long as the rest of an agent's call. Raises TypeError
    for arguments that the function does not take.
    """
    if positions is not None and not kwargs and len(args) == len(positions):
        return dict(zip(positions, args, strict=True))
    return dict(signature.bind(*args, **kwargs).arguments)


def current_version(function: F) -> F:
    """Return the function that its module has under the same name now.

    A module that is edited and loaded again in a notebook has new functions, while systems and
    other modules still hold the old ones. If it is an agent now, the function below the decorator
    is returned. Functions of a notebook's cells, methods, functions inside of functions, and
    functions that the module no longer has are returned as they are.
    """
    module = sys.modules.get(function.__module__)
    if module is None or function.__module__ == "__main__":
        return function
    current: Any = getattr(module, function.__qualname__, function)
    spec = spec_of(current)
    if spec is not None:
        current = spec.function
    if not inspect.isfunction(current):
        return function
    return current  # type: ignore[return-value]


def remember_turn(run: Any, links: Iterable[Link] | None = None, standalone: str = "") -> Turn:
    """Return what a dialogue remembers of a finished run.

    These are the question, its form outside the dialogue (``standalone``), its answers, and the
    entities that were linked, with their vertices: those of ``links``, else of all steps whose
    output is a Link. If an entity was linked several times, the last vertex counts. Entities
    without a vertex, or with several, are left out. Of a run without an answer, the answers are empty.
    """
    answer = run.answer or Answer("list")
    if links is None:
        outputs = [step.output for step in run.steps if step.done]
        links = [output for output in outputs if isinstance(output, Link)]
    linked = {}
    for link in links:
        if link.vertex and not link.others:
            linked[link.entity] = link.vertex.iri
    return Turn(
        question=run.question,
        answers=answer.labels,
        standalone=standalone,
        entities=tuple(linked),
        linked=tuple(linked.values()),
        vertices=answer.vertices,
    )


class System:
    """A question answering system: a value that says all the system has.

    ``answer(question, dialogue, run)`` returns the Answer of one turn. Everything in it that costs,
    varies or fails goes through the run.

    ``agents`` are the system's agents in flow order, or lists of them by the title of their stage.
    ``supervisors`` are agents that only supervise others, with the names of these.
    ``roles`` has the names of the agents that one role plays, by the role. A role is no agent; a
    model can be given to all of its agents at once.
    ``remember(run)`` returns what a dialogue remembers of a finished run.
    ``settings`` is the class of the system's settings.
    ``views`` has a function for each record class that is shown in a way of its own. It may also be
    the name of a module whose ``VIEWS`` these are, which is imported when a record is first shown.
    ``rules`` has a function for each prompt that the model ``rules`` can answer.
    ``gold`` says what a gold query means to the agents, for the oracle ladder.
    ``handover`` is the name of the system that can answer what this one cannot express.
    ``commands`` has a function for each command that a form or button of the views sends as the
    event "command"; see ``Command``. It may also be the name of a module whose ``COMMANDS`` these
    are, which is imported for the first event.
    ``read_as(run, reading)`` returns a fork of a run that answers the question read in another way,
    for a system whose answers have ``readings``; it gets the Reading that was chosen.
    ``give_topic(run, find)`` puts the topic entity of a question into its run before it is executed,
    for a system that is given it by the question set. ``find()`` asks the graph for it, and returns
    a Candidate or None.
    ``prompts`` is the folder of the system's prompts, or their texts by name. By default it is the
    folder ``prompts`` beside the module of ``answer``, if there is one.
    ``varying`` names fields that do not count when steps are compared, as NAME or CLASS.NAME: ids
    and times that a library draws anew each time.

    Raises SettingError, with all that is wrong, if something given is no agent, if an agent is not
    written as agents are, if supervisors or roles name something that is no agent, or if the answer
    function, the settings, the views or the rules are not what they must be.
    """

    def __init__(  # noqa: PLR0913  # a system is passed as a whole, by keywords
        self,
        name: str,
        answer: Callable[..., Answer],
        agents: Iterable[Agent] | Mapping[str, Iterable[Any]],
        *,
        supervisors: Mapping[str, Sequence[str]] | None = None,
        roles: Mapping[str, Sequence[str]] | None = None,
        remember: Callable[[Any], Turn] = remember_turn,
        settings: type[Settings] = Settings,
        views: Mapping[type, View] | str | None = None,
        rules: Mapping[str, Rule] | None = None,
        gold: GoldDecisions | None = None,
        handover: str = "",
        commands: Mapping[str, Command] | str | None = None,
        read_as: Callable[[Any, Reading], Any] | None = None,
        give_topic: Callable[[Any, Callable[[], Candidate | None]], object] | None = None,
        prompts: Mapping[str, str] | str | Path | None = None,
        varying: Sequence[str] = (),
    ) -> None:
        self.name = name
        self.varying = varying
        self.origin = _module_outside_of_kgwb(answer)
        """Where it came from: the module, or what the person wrote; empty for kgwb's own."""
        self.answer = answer
        self.remember = remember
        self.settings = settings
        self.supervisors = supervisors or {}
        self.roles = roles or {}
        self.views_source = views or {}
        self.rules = rules or {}
        self.gold = gold
        self.handover = handover
        self._commands_source = commands or {}
        self.read_as = read_as
        self.give_topic = give_topic
        if prompts is None:
            prompts = _prompts_folder_beside(answer)
        self.prompts = Prompts.of(prompts)
        if callable(agents):
            raise SettingError(
                f"the system {name} cannot be made: its agents are not in a list",
                hint=f"write [{getattr(agents, '__name__', 'agent')}], or a dict of lists by stage",
            )
        by_stage = agents if isinstance(agents, Mapping) else {"": agents}
        given = {title: list(functions) for title, functions in by_stage.items()}
        all_given = list(chain.from_iterable(given.values()))
        problems = [
            *system_problems(all_given, self.supervisors, self.roles),
            *self._argument_problems(),
        ]
        if problems:
            raise SettingError(
                f"the system {name} cannot be made: {'; '.join(problems)}",
                hint="correct this; the page 'Build a system of your own' (docs/how-to/my-system.md) has an "
                "example",
            )
        self.agents: tuple[AgentSpec, ...] = tuple(function.spec for function in all_given)
        """Every agent in flow order."""
        self.specs_by_name = {spec.name: spec for spec in self.agents}
        self._role_by_agent: dict[str, str] = {}
        for role, agent_names in self.roles.items():
            for agent_name in agent_names:
                self._role_by_agent.setdefault(agent_name, role)
        stages = []
        for title, functions in given.items():
            names = [function.spec.name for function in functions]
            shown = [name for name in names if name not in self.supervisors]
            stages.append((title, tuple(shown)))
        self.stages = tuple(stages)
        """Title and agents' names of each stage. Supervisors are left out."""

    def _argument_problems(self) -> Iterator[str]:
        """Yield what is wrong with the answer function, the settings, the views and the rules.

        They must be: a function of three arguments, a subclass of Settings, functions by class, and
        functions. Each problem is a text that says what to give.
        """
        if not callable(self.answer):
            yield f"answer is {type(self.answer).__name__}: give the function itself"
        elif not _takes_arguments(self.answer, 3):
            yield "answer does not take three arguments: write answer(question, dialogue, run)"
        if not isinstance(self.settings, type) or not issubclass(self.settings, Settings):
            yield f"settings is {self.settings!r}: give a subclass of Settings, not a value of it"
        if not isinstance(self.views_source, str):
            for record_class, view in self.views_source.items():
                if not isinstance(record_class, type) or not callable(view):
                    yield f"views has {record_class!r}: give a function for each record class"
        for prompt, rule in self.rules.items():
            if not callable(rule):
                yield f"the rule of {prompt} is {type(rule).__name__}: give a function"

    @property
    def views(self) -> Mapping[type, View]:
        """The functions that show records, by record class. A module that has them is imported now."""
        return load_mapping(self.views_source, "VIEWS")

    @property
    def commands(self) -> Mapping[str, Command]:
        """What forms and buttons of the views can do, by name. A module that has it is imported now."""
        return load_mapping(self._commands_source, "COMMANDS")

    @property
    def prompt_names(self) -> set[str]:
        """The names of the prompts that the system may use.

        These are its own, those of kgwb in a folder of its name, and those of the shared entity
        linking.
        """
        folders = (f"{self.name}/", "linking/")
        shipped = {name for name in shipped_names() if name.startswith(folders)}
        return self.prompts.own_names() | shipped

    def check_prompts(self, prompts: Prompts) -> None:
        """Raise PromptError if a person's prompts cannot be used in this system, or are not read."""
        prompts.for_system(self.prompts).check(self.prompt_names)

    def agent_spec(self, key: str) -> AgentSpec:
        """Return the AgentSpec of an agent, by its name or by the key of one of its steps.

        Raises SettingError, which lists the agents, if the system has no such agent.
        """
        name = agent_of_key(key)
        if name in self.specs_by_name:
            return self.specs_by_name[name]
        known = ", ".join(self.specs_by_name)
        raise SettingError(
            f"the system {self.name} has no agent {name!r}",
            hint=f"name one of its agents: {known}",
        )

    def map(self) -> list[MapRow]:
        """Return where the code, prompts, view, gold decision and test of each agent are found."""
        return [MapRow.of(spec, self) for spec in self.agents]

    def __repr__(self) -> str:
        """Return the map of the system as a Markdown table, below the system's name."""
        ruled = ("---",) * len(MapRow._fields)
        lines = [f"System {self.name}", ""]
        for row in (MapRow._fields, ruled, *self.map()):
            lines.append(f"| {' | '.join(row)} |")
        return "\n".join(lines)

    def role_of(self, agent_name: str) -> str:
        """Return the first role that an agent plays; "" if it plays none or does not exist."""
        return self._role_by_agent.get(agent_name, "")

    def check_model_user(self, name: str) -> None:
        """Raise SettingError unless a model can be given to this name: an agent's, or a role's.

        The error lists the agents and the roles.
        """
        if name in self.roles:
            return
        try:
            self.agent_spec(name)
        except SettingError as error:
            hint = error.hint
            if self.roles:
                hint = f"{hint}; its roles are {', '.join(self.roles)}"
            raise SettingError(error.message, hint=hint) from error

    def agent_kind(self, key: str) -> str:
        """Return the kind of an agent, by its name or by a step's key; "group" for a supervisor.

        Raises SettingError if the system has no such agent.
        """
        spec = self.agent_spec(key)
        if spec.name in self.supervisors:
            return "group"
        return spec.kind

    @property
    def stage_by_agent(self) -> Mapping[str, str]:
        """The name of the stage of each agent that is in one, for times and lost answers.

        It is the stage that the gold decisions name. If they name none, it is the title of the
        stage in lower case; stages without a title are left out. Titles that would look the same,
        or like OTHER_STAGE, stay as they are.
        """
        stages: dict[str, str] = {}
        if self.gold and self.gold.stages:
            for stage, names_of_agents in self.gold.stages.items():
                stages.update(dict.fromkeys(names_of_agents.split(), stage))
            return stages
        titles = [title for title, _ in self.stages if title]
        names = tell_apart((None, *titles), (_shorten_title, _keep_title, _mark_title))
        for title, agents in self.stages:
            if title:
                stages |= dict.fromkeys(agents, names[title])
        return stages

    def rule(self, prompt: str) -> Rule | None:
        """Return the present version of the function by which ``rules`` answers a prompt.

        Returns None if the system has no rule for the prompt.
        """
        rule = self.rules.get(prompt)
        if rule is None:
            return None
        return current_version(rule)


class MapRow(NamedTuple):
    """Where an agent of a system is found: one row of the system's map.

    Prompts and tests are named after the agent, so its name finds them in a list of files.
    """

    agent: str
    kind: str
    """What the agent does, see ``AgentKind``; "group" for a supervisor."""
    function: str
    """The agent's function, as dotted name: below the system's package without that."""
    prompt: str
    """The agent's prompt below ``prompts/SYSTEM``; with "*" if it has variants. Empty without one."""
    view: str
    """The function that renders the agent's output, if the system has one of its own."""
    gold: str
    """The stage for which a lost answer is counted, see ``GoldDecisions``."""
    test: str
    """The file with the agent's tests, below ``tests/systems/SYSTEM``. All tools share one."""

    @classmethod
    def of(cls, spec: AgentSpec, system: System) -> MapRow:
        """Return the row of one agent of a system."""
        package = system.answer.__module__
        module = spec.function.__module__
        function = f"{module}.{_name_in_module(spec)}".removeprefix(f"{package}.")
        test = f"test_{spec.name}.py"
        if spec.is_tool:
            test = "test_tools.py"
        if module != package and not module.startswith(f"{package}."):
            test = f"../{module.rpartition('.')[2]}/{test}"
        view = system.views.get(spec.output_type)
        return cls(
            agent=spec.name,
            kind=system.agent_kind(spec.name),
            function=function,
            prompt=_prompt_of(spec.name, system),
            view=getattr(view, "__name__", ""),
            gold=system.stage_by_agent.get(spec.name, "") if system.gold else "",
            test=test,
        )


def _name_in_module(spec: AgentSpec) -> str:
    """Return the name under which a module has an agent; the function's own if it has it under none."""
    module = sys.modules.get(spec.function.__module__, object)
    for name, value in vars(module).items():
        if inspect.isfunction(value) and getattr(value, "spec", None) is spec:
            return name
    return spec.function.__qualname__


def _prompt_of(agent: str, system: System) -> str:
    """Return the prompt of an agent, below the folder of the system's prompts; "" if it has none.

    A prompt belongs to the agent with the longest name that the prompt's name begins with. Several
    are written with "*": "qir*" for "qir" and "qir_published".
    """
    found = set()
    for prompt in system.prompt_names:
        folder, _, name = prompt.rpartition("/")
        owners = []
        for owner in system.specs_by_name:
            if f"{name}_".startswith(f"{owner}_"):
                owners.append(owner)
        if max(owners, key=len, default="") == agent:
            found.add(name if folder == system.name else f"../{prompt}")
    if len(found) < 2:
        return "".join(found)
    before_agent, _, _ = min(found, key=len).partition(agent)
    return f"{before_agent}{agent}*"


def _shorten_title(title: str | None) -> str:
    """Return a stage's title in lower case, without the sign of a stage that is repeated.

    None stands for what is in no stage, which is OTHER_STAGE.
    """
    return (title or OTHER_STAGE).removesuffix(" ↻").lower()


def _keep_title(title: str | None) -> str:
    return title or OTHER_STAGE


def _mark_title(title: str | None) -> str:
    if not title:
        return OTHER_STAGE
    return f"{title} (stage)"


def _prompts_folder_beside(function: Any) -> Path | None:
    """Return the folder ``prompts`` beside the file of a function's module.

    Returns None if there is no such folder, if the module has no file, as in a notebook, or if it
    is one of kgwb's own.
    """
    module = sys.modules.get(_module_outside_of_kgwb(function))
    file = getattr(module, "__file__", None)
    if file is None:
        return None
    folder = Path(file).parent / "prompts"
    if not folder.is_dir():
        return None
    return folder


def _takes_arguments(function: Callable[..., Any], number: int) -> bool:
    """Return whether a function can be called with so many positional arguments.

    It counts as one that can if Python knows no signature of it, as of some compiled functions.
    """
    try:
        signature = inspect.signature(function)
    except ValueError:
        return True
    try:
        signature.bind(*range(number))
    except TypeError:
        return False
    return True


def _module_outside_of_kgwb(function: Any) -> str:
    """Return the name of the module that defines a function; empty if it is one of kgwb's."""
    module = str(getattr(function, "__module__", ""))
    package, _, _ = module.partition(".")
    if package == "kgwb":
        return ""
    return module


def spec_of(function: Any) -> AgentSpec | None:
    """Return what a function that ``@agent`` marks is; None for anything else."""
    spec = getattr(function, "spec", None)
    return spec if isinstance(spec, AgentSpec) else None


def agent_of_key(key: str) -> str:
    """Return the agent in the key of a step: "qir" of "qir[Who ...]#2"."""
    without_subject, _, _ = key.partition("[")
    agent, _, _ = without_subject.partition("#")
    return agent


def subject_of(item: Any) -> str:
    """Return what distinguishes the step of an item: its ``step_subject``, else its text."""
    return str(getattr(item, "step_subject", item))


AgentKind = Literal["model", "search", "sparql", "sql", "code"]
"""What an agent does: asks a model, searches labels, queries the graph, or computes."""
Agent = Callable[..., Any]
InputCheck = Callable[..., Iterable[str]]
"""Returns the problems of an output, given the output and the inputs of the step."""
SAVED_TYPES = (str, int, float, bool, type(None))
"""Types that are JSON data as they are."""


@dataclass(frozen=True)
class AgentSpec:
    """What is known of an agent without executing it."""

    name: str
    function: Agent
    subject: str | None
    """The parameter whose value distinguishes several steps of this agent; None if there is none."""
    check: InputCheck | None
    """Judges a value that a person puts in for the agent's output."""
    kind: AgentKind
    is_tool: bool = False
    """Whether a model chooses to use it."""

    @functools.cached_property
    def output_type(self) -> Any:
        """The type of the output, from the annotation of the function; Any if it has none.

        For a TypedDict it is JsonObject: a plain dictionary can be neither checked against it nor,
        before Python 3.12, saved as it. Raises NameError for an annotation whose name the module
        lacks.
        """
        promised = get_type_hints(self.function).get("return", Any)
        if isinstance(promised, type) and hasattr(promised, "__total__"):
            return JsonObject
        return promised

    @property
    def purpose(self) -> str:
        """The first line of the function's docstring."""
        docstring = self.function.__doc__ or ""
        first_line, _, _ = docstring.strip().partition("\n")
        return first_line


def system_problems(
    functions: Iterable[Any],
    supervisors: Mapping[str, Sequence[str]],
    roles: Mapping[str, Sequence[str]],
) -> list[str]:
    """Return what is wrong with the agents, supervisors and roles of a system; [] if nothing.

    ``functions`` are what was given as agents. The checks are: each function is decorated with
    ``@agent``, no two agents have one name, each signature and output type can be used, and
    ``supervisors`` and ``roles`` name only agents (a role's own name may be any). Each text says
    what to write.
    """
    problems = []
    specs = []
    for function in functions:
        spec = spec_of(function)
        if spec is not None:
            specs.append(spec)
        else:
            name = getattr(function, "__name__", repr(function))
            problems.append(f"{name} is not an agent: write @agent above it")
    names = [spec.name for spec in specs]
    for name in dict.fromkeys(names):
        if names.count(name) > 1:
            problems.append(f"two agents are named {name}: give one another name")
    for spec in specs:
        problems += _agent_problems(spec)
    known = ", ".join(names)
    given = {
        "supervisors": chain(supervisors, *supervisors.values()),
        "roles": chain(*roles.values()),
    }
    for where, given_names in given.items():
        for name in given_names:
            if name not in names:
                problems.append(
                    f"{where} name {name!r}, which is not an agent: the agents are {known}"
                )
    return problems


def _agent_problems(spec: AgentSpec) -> Iterator[str]:
    """Yield what is wrong with the signature of an agent's function.

    A parameter ``run`` must be the last one, a parameter annotated as a run must be named ``run``,
    and the output must be one that can be saved (``_output_problems``).
    """
    parameters = inspect.signature(spec.function).parameters
    names = list(parameters)
    if "run" in names and names[-1] != "run":
        yield f"agent {spec.name}: write the parameter run last"
    for name, parameter in parameters.items():
        if name != "run" and _is_run_annotation(parameter.annotation):
            yield f"agent {spec.name}: its parameter {name} is a Run: name it run"
    yield from _output_problems(spec)


def _is_run_annotation(annotation: Any) -> bool:
    """Return whether a parameter is annotated as a run.

    That is a class named Run or Engine, or one of these names as a text; nothing else is resolved.
    """
    return getattr(annotation, "__name__", annotation) in ("Run", "Engine")


def _output_problems(spec: AgentSpec) -> Iterator[str]:
    """Yield why the outputs of an agent cannot be saved; nothing if they can be.

    There is a problem if an annotation names something that its module lacks, such as a type
    imported for type checkers only, if the annotations cannot be read, or if pydantic knows no form
    for the type. Any, SAVED_TYPES and dataclasses pass; the fields of a dataclass are not looked
    at.
    """
    try:
        output_type = spec.output_type
    except NameError as exc:
        yield f"agent {spec.name}: its annotations name {exc.name}, which its module does not have"
        return
    except TypeError as exc:
        yield f"agent {spec.name}: its annotations cannot be read: {exc}"
        return
    if output_type in SAVED_TYPES or output_type is Any:
        return
    if hasattr(output_type, "__dataclass_fields__"):
        return  # reading the types of all its fields takes long
    try:
        type_adapter(output_type)
    except (PydanticUserError, PydanticUndefinedAnnotation, TypeError):
        shown = getattr(output_type, "__name__", str(output_type))
        yield (
            f"agent {spec.name}: {shown} cannot be saved: "
            "return a frozen dataclass, or JSON data, or a tuple of these"
        )
