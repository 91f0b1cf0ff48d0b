"""Labs and their tasks: a task is a function that checks an answer."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args, get_type_hints

from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from kgwb.errors import InputError
from kgwb.kg import Graph, open_kg
from kgwb.kg.embeddings import Embeddings
from kgwb.labs.texts import Problem, Texts, load_texts, say
from kgwb.llm import ChatModel
from kgwb.records import frozen
from kgwb.run import Run
from kgwb.run.systems import load_file
from kgwb.text import fit_width, single_line

LAB_MODULES: Mapping[object, str] = {1: "one", 2: "two", 3: "three"}
MAX_HINTS = 3
MAX_NAME_CHARS = 30
"""Characters of the name of a lab of one's own."""
MAX_SHOWN_CHARS = 200
"""Characters of an answer that are repeated after it was right."""
Stage = Literal["understand", "link", "query", "answer"]
STAGES: tuple[Stage, ...] = get_args(Stage)
AnswerCheck = Callable[[Any], Problem]
"""Returns what is wrong with an answer, without giving the right one away; "" if it is right."""
LESSON_PARTS = ("found", "lesson", "question")


@frozen
class TriedQuestion:
    """What came of a question with a student's prompt or without a student's triples."""

    question: str
    attempts: int
    """How many replies the model needed until one was accepted; 0 if none was."""
    answer: str
    """The answer, or the error that there was instead."""
    is_right: bool
    """Whether the labels of the answer are those that are right."""


LiveTrial = Callable[[Any, ChatModel | str], list[TriedQuestion]]
"""Tries an answer to a task with a model, or the model of a specification."""


@frozen
class Choice:
    """What there is to choose in a task, and what of it is right: a row that ``judge_choice`` reads."""

    right: Collection[Any]
    """Of several, all must be chosen; where one option is asked for, one of them."""
    options: Collection[Any] = ()
    """Empty if there is no limit."""
    numbers: Mapping[Any, tuple[float, float]] = field(default_factory=dict)
    """Where a number is given with an option: its lowest and its highest right value, by option."""
    one_suffices: bool = False
    """Whether one of the right ones is enough, also where several may be given."""


@dataclass(frozen=True, config=ConfigDict(arbitrary_types_allowed=True, extra="forbid"))
class Task:
    """A task of a lab. Raises pydantic's ValidationError for texts of another form."""

    name: str
    """Number of the lab and position in it: "1.3"."""
    title: str
    check: AnswerCheck
    answer_type: Any
    """The type of an answer. Answers of another type are wrong, and are not given to the check."""
    hints: tuple[str, ...]
    """At most MAX_HINTS, each of which says more than the one before."""
    stage: Stage = "answer"
    """The stage of question answering that the task is about."""
    is_free: bool = False
    """Whether students write the answer in words of their own, so that equal ones are remarkable."""
    beside: str = ""
    """Words of this task, separated by spaces, that may stand beside a value: "question questions"."""
    open_run: Callable[[], Run] | None = None
    """Opens the run that the task is about, as students get it; None if it is about none."""
    lesson: Mapping[str, str] = field(default_factory=dict)
    """What is shown after a right answer: LESSON_PARTS. Each may be missing."""
    rubric: Mapping[str, float] = field(default_factory=dict)
    """By what an answer is graded by hand: the most points of each criterion. Empty if it is not."""
    hidden_checks: tuple[AnswerCheck, ...] = ()
    """Further checks, which run only where a class is checked again."""
    try_live: LiveTrial | None = None
    """Tries an answer with a model that is named; None if no model is needed to see what comes of it."""
    texts: Texts = field(default_factory=load_texts, compare=False)
    """Where the texts of messages are looked up."""

    def describe_lesson(self, answer: str) -> str:
        """Return the lines that are shown after a right answer: that it is right, then the parts of the lesson.

        The parts are what was found, the lesson, and a question to discuss; each may be missing.
        "{answer}" in the first is replaced by the answer, shortened.
        """
        found, lesson, question = map(self.lesson.get, LESSON_PARTS)
        parts = [
            self.texts.get("feedback.right"),
            found and found.replace("{answer}", shorten(answer)),
            lesson,
            question and self.texts.get("feedback.discuss", question=question),
        ]
        return "\n".join(filter(None, parts))

    def translate(self, texts: Texts) -> Task:
        """Return a copy of the task in which keys are replaced by their texts, for title, hints and lesson.

        Hints and a rubric that the task does not give have the keys "TASK.hint.1" and so on, and
        "TASK.rubric.1" and so on, for a point each. So do the parts of a lesson: "TASK.found",
        "TASK.lesson" and "TASK.question". Those that the texts lack are left out.
        """
        hints = self.hints or self._list_keys("hint", texts)
        rubric = self.rubric or dict.fromkeys(self._list_keys("rubric", texts), 1.0)
        lesson = {}
        for part in LESSON_PARTS:
            key = self.lesson.get(part, f"{self.name}.{part}")
            if part in self.lesson or texts.has(key):
                lesson[part] = texts.get(key)
        return replace(
            self,
            title=texts.get(self.title),
            hints=tuple(map(texts.get, hints)),
            lesson=lesson,
            rubric={texts.get(criterion): most for criterion, most in rubric.items()},
            texts=texts,
        )

    def _list_keys(self, part: str, texts: Texts) -> list[str]:
        """Return the keys "TASK.PART.1" and so on, at most MAX_HINTS, that the texts have."""
        keys = [f"{self.name}.{part}.{number}" for number in range(1, MAX_HINTS + 1)]
        return list(filter(texts.has, keys))


@frozen
class Lab:
    """A lab of about 90 minutes. Its tasks are added by ``task``."""

    number: int | str
    """1 to 3 for the labs of kgwb; the name of a lab of one's own, such as "my_lab"."""
    title: str
    tasks: dict[str, Task] = field(default_factory=dict)
    """The tasks by name, in their order."""
    path: str = ""
    """The file of a lab of one's own, which ``load_lab`` sets; empty for the labs of kgwb."""
    catalogues: Path | None = None
    """The file beside which its catalogues are: that of a lab of one's own, without hidden checks."""
    texts: Texts = field(default_factory=load_texts, compare=False)
    """What its students read beside the tasks, in the language that ``load_lab`` was asked for."""

    @property
    def source(self) -> int | str:
        """What ``load_lab`` opens the lab by: the number, or the path of its file."""
        return self.path or self.number

    @property
    def file_stem(self) -> str:
        """The beginning of the names of students' files: "lab1", or the name of a lab of one's own.

        Characters that are no letter, digit or "_" are replaced by "-" there.
        """
        if isinstance(self.number, int):
            return f"lab{self.number}"
        return re.sub(r"\W+", "-", self.number)

    def translate(self, texts: Texts) -> Lab:
        """Return the lab with all that students read as the texts have it."""
        tasks = {name: task.translate(texts) for name, task in self.tasks.items()}
        return replace(
            self,
            title=texts.get(self.title),
            tasks=tasks,
            texts=texts,
        )

    def task(
        self, title: str = "", *hints: str, **fields: Any
    ) -> Callable[[AnswerCheck], AnswerCheck]:
        """Return a decorator that adds a function as the check of the lab's next task, and returns it unchanged.

        The annotation of the function's parameter is the type of an answer. Tasks are named
        "LAB.1", "LAB.2" and so on. At most MAX_HINTS hints are kept. The other arguments are fields of
        Task: stage, is_free, beside, open_run, lesson, rubric and try_live; one that is None is left out.
        The texts may be keys of a catalogue: without a title it is "TASK.title", and without hints, a
        lesson and a rubric those that ``Task.translate`` describes. The decorator raises what Task does.
        """

        def add_task(check: AnswerCheck) -> AnswerCheck:
            """Add a task with this check and the next number to the lab, and return the check unchanged."""
            name = f"{self.number}.{len(self.tasks) + 1}"
            answer_type, *_ = get_type_hints(check).values()
            given = {name: value for name, value in fields.items() if value is not None}
            # By name, so that an error names what is wrong: "hints.0".
            self.tasks[name] = Task(
                name=name,
                title=title or f"{name}.title",
                check=check,
                answer_type=answer_type,
                hints=hints[:MAX_HINTS],
                **given,
            )
            return check

        return add_task

    def choice(
        self,
        answer_type: Any,
        *texts: str,
        **fields: Any,
    ) -> Callable[[Callable[[], Choice]], None]:
        """Return a decorator that adds the lab's next task, by a function that returns what is right to choose.

        Answers of ``answer_type`` are judged by ``judge_choice``. The other arguments are those of ``task``.
        """
        name = f"{self.number}.{len(self.tasks) + 1}"

        def add_task(find_choice: Callable[[], Choice]) -> None:
            def check(answer: Any) -> Problem:
                return judge_choice(self.tasks[name], answer, find_choice())

            check.__annotations__["answer"] = answer_type
            self.task(*texts, **fields)(check)

        return add_task

    def find_task(self, name: str) -> Task:
        """Return a task by its name. Raises InputError, which lists the names, if there is no such task."""
        if name in self.tasks:
            return self.tasks[name]
        raise InputError(
            f"lab {self.number} has no task {str(name)[:40]!r}",
            hint=f"choose one of its tasks: {', '.join(self.tasks)}",
        )

    def hidden(self, task: str) -> Callable[[AnswerCheck], AnswerCheck]:
        """Return a decorator that adds a function to the hidden checks of a task, and returns it unchanged.

        They run where a class is checked again, on answers that are right by the task's own check. In
        a file that students do not get, they may be added to a lab of ``find_lab``. The decorator
        raises KeyError if there is no such task.
        """

        def add_check(check: AnswerCheck) -> AnswerCheck:
            """Add a hidden check, and return it unchanged."""
            known = self.tasks[task]
            self.tasks[task] = replace(known, hidden_checks=(*known.hidden_checks, check))
            return check

        return add_check


def shorten(answer: str) -> str:
    """Return a text in one line, cut at MAX_SHOWN_CHARS characters with "…".

    Square brackets at its ends and all double quotes are removed.
    """
    text = single_line(answer).strip("[]").replace('"', "")
    return fit_width(text, MAX_SHOWN_CHARS)


def load_lab(number: int | str | Path, language: str = "") -> Lab:
    """Return a lab with its tasks in a language; ``load_texts`` says what the language may be.

    Raises InputError if there is no catalogue of the language, and what ``find_lab`` raises.
    """
    found = find_lab(number)
    return found.translate(load_texts(language, found.catalogues))


def find_lab(number: int | str | Path) -> Lab:
    """Return a lab whose texts are keys still: by its number, or by the path of a Python file.

    The file is executed, and has the lab as ``LAB``. What is added to the lab that is returned, such
    as hidden checks, is in no other one. Raises InputError if there is no lab of this number, or if
    the file has no lab with tasks, and SettingError if the file cannot be executed.
    """
    if str(number).endswith(".py"):
        return _load_own_lab(Path(str(number)).expanduser())
    return _find_shipped_lab(number)


def load_shipped_lab(number: int | str, language: str = "") -> Lab:
    """Return a lab of kgwb by its number, with its tasks in a language.

    It is for a number that stands in somebody's file: a path there is not opened. Raises InputError
    if there is no lab of this number, or no catalogue of the language.
    """
    return _find_shipped_lab(number).translate(load_texts(language))


def _find_shipped_lab(number: object) -> Lab:
    if not isinstance(number, int) or number not in LAB_MODULES:
        raise InputError(
            f"kgwb has no lab {str(number)!r}; one of your own is named by its file: --lab my_lab.py",
            hint="give 1, 2 or 3, or a file: kgwb.lab('my_lab.py'), kgwb labs collect --lab my_lab.py",
        )
    module = importlib.import_module(f"kgwb.labs.{LAB_MODULES[number]}")
    shipped: Lab = module.LAB
    return replace(shipped, tasks=dict(shipped.tasks))


LabOpener = Callable[[int | str], Lab]
"""Opens a lab by the number or name that a hand-in has."""


def make_lab_opener(file: str | Path | None, language: str) -> LabOpener:
    """Return a function that opens a lab by the number or name that a hand-in has.

    The name of the lab in ``file`` opens this one; every other one opens a lab of kgwb. Raises
    InputError or SettingError at once if the file has no lab.
    """
    own = load_lab(file, language) if file else None
    return lambda name: own if own and name == own.number else load_shipped_lab(name, language)


def _load_own_lab(path: Path) -> Lab:
    """Execute a Python file, and return its value LAB with the file's path.

    Raises InputError if LAB is no lab with tasks, or its name has more than MAX_NAME_CHARS
    characters, and SettingError if the file cannot be executed.
    """
    own = getattr(load_file(path), "LAB", None)
    if not isinstance(own, Lab) or not own.tasks:
        hint = "see docs/how-to/my-lab.md; kgwb labs new FOLDER writes an example"
        raise InputError(
            f"{path} cannot be opened as a lab: it has no value LAB that is a lab with tasks",
            hint=hint,
        )
    if len(str(own.number)) > MAX_NAME_CHARS:
        raise InputError(
            f"the name of the lab in {path} is too long",
            hint=f"use at most {MAX_NAME_CHARS} characters",
        )
    return replace(own, path=str(path.resolve()), catalogues=own.catalogues or path)


# What several checks need


@cache
def open_sample(name: str) -> Graph:
    """Open a sample graph. It is opened once for all checks."""
    return open_kg(name)


@cache
def open_embeddings(name: str) -> Embeddings:
    """Return the embeddings of this name, which keep their vectors for all checks."""
    return Embeddings(name)


def is_nearest(text: str, right: Sequence[str], other: Sequence[str]) -> bool:
    """Return whether what is nearest to a text, by the embeddings that link words, is a right text, and no other."""
    cosines = open_embeddings(Embeddings().name).similarity(text, (*right, *other))
    return cosines.index(max(cosines)) < len(right)


MARKS = " \t\n.,;:()=\"'`’‘“”„«»"
"""What may stand beside a value in a text, beside words."""
LIST_MARKS = f"{MARKS}&/#[]"
"""What may stand beside values."""
STRAY_MARK = re.compile(rf"[^\w{re.escape(LIST_MARKS)}-]|(?<!\w)-|-(?!\w)")
"""A mark that may turn the meaning of a name beside which it stands: "!qir", "qir >", "- qir"."""
BESIDE = """
    the both only exactly and is are was were it there of by with in has have answer answers
    der die das beide nur genau und ist sind war waren es von mit hat haben antwort antworten
    """
"""Words that may stand beside a value in each task. They say nothing of it."""


def drop_words(text: str, words: str) -> str:
    """Return a text without the words of BESIDE, and others that are separated by spaces, in any case."""
    pattern = "|".join(map(re.escape, f"{BESIDE} {words}".split()))
    return re.sub(rf"(?<!\w)({pattern})(?!\w)", "", text, flags=re.IGNORECASE)


def judge_choice(task: Task, answer: Any, choice: Choice) -> Problem:
    """Return "" for a right answer to a task in which one chooses, else the feedback that applies first.

    An answer is an option, a list of options, or an option with a number. It names an option as
    ``find_options`` reads it, beside the task's words. The feedback is "TASK.number" for another number than the
    option has, and those of ``compare_choices`` with the keys "TASK.unknown", "TASK.wrong" and "TASK.missing".
    """
    number = None
    if isinstance(answer, tuple):
        answer, number = answer
    items = answer if isinstance(answer, list) else [answer]
    chosen: list[Any] = []
    for item in items:
        chosen += find_options(item, choice.options, task.beside)
    one_suffices = choice.one_suffices or items is not answer
    if number is not None:
        lowest, highest = choice.numbers.get(chosen[0], (number, number))
        if not lowest <= number <= highest:
            return say(f"{task.name}.number", choice=chosen[0], number=f"{number:g}")
    return compare_choices(
        chosen,
        choice.right,
        choice.options or chosen,
        unknown=f"{task.name}.unknown",
        wrong=f"{task.name}.wrong",
        missing="" if chosen and one_suffices else f"{task.name}.missing",
    )


def find_options(item: Any, options: Iterable[Any], beside: str) -> list[Any]:
    """Return the option that has the letters and digits of a text; the text itself if there is none.

    Words of BESIDE and of ``beside`` do not count, and options of one letter may be written together: "CEF".
    """
    if not isinstance(item, str) or STRAY_MARK.search(item):
        return [item]
    known = {_to_letters(option): option for option in options}
    for text in (item, drop_words(item, beside)):
        letters = _to_letters(text)
        if letters in known:
            return [known[letters]]
    if letters and known.keys() >= set(letters):
        return [known[letter] for letter in letters]
    return [item]


def _to_letters(name: object) -> str:
    """Return the letters and digits of a name in lower case."""
    return re.sub(r"[\W_]", "", str(name)).casefold()


def compare_choices(
    chosen: Collection[Any],
    right: Collection[Any],
    options: Collection[Any],
    *,
    unknown: str,
    wrong: str,
    missing: str,
) -> Problem:
    """Return "" if a student chose exactly the right options, else the feedback that applies first.

    The feedback is ``unknown`` if a choice is not an option, ``wrong`` if an option is wrongly
    chosen, and ``missing`` if a right one was not chosen: each is a text or the key of one.
    "{choice}" in the first two stands for the smallest such choice, and "{options}" for all options.
    Order and repetitions of the choices do not count.
    """
    for allowed, text in ((options, unknown), (right, wrong)):
        others = set(chosen).difference(allowed)
        if others:
            listed = ", ".join(map(str, options))
            return say(text, choice=min(others), options=listed)
    if set(right).difference(chosen):
        return missing
    return ""
