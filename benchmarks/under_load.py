"""Many questions at once over one graph and one model server, and what that costs.

Three processes share nothing but files and loopback: one asks every question alone with ``rules`` and writes
down the replies and what each run came to; one serves these replies (``replies_server.py``); one asks
everything again, side by side, and compares. ``record`` and ``load`` start them.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from kgwb.bench.questions import BenchQuestion, group_by_dialogue
from kgwb.bench.results import Results
from kgwb.bench.runner import Benchmark, BenchSetup
from kgwb.errors import InvalidReplyError, KgwbError
from kgwb.kg import Graph, open_kg
from kgwb.kg.embeddings import Embeddings
from kgwb.llm.servers import OpenAIModel
from kgwb.records import to_data
from kgwb.run import Run, System, systems
from kgwb.run.answers import Answer, Dialogue, Question, Turn
from kgwb.run.prompts import Prompts
from kgwb.run.steps import Call
from kgwb.settings import Settings
from kgwb.workbench import Workbench

HERE = Path(__file__).resolve()


@dataclass(frozen=True, slots=True)
class Recording:
    """What asking every question alone left behind."""

    source: str
    """The graph: a file, or the URL of an endpoint."""
    questions: str
    """The question file."""
    replies: str
    """What the model said, by messages."""
    runs: str
    """Fingerprints of the runs, and the questions that even alone end in an error."""


@dataclass(frozen=True, slots=True)
class Load:
    """What is asked at once."""

    recording: Recording
    folder: str
    """Where results go; one that is not there yet."""
    questions: int
    workers: int
    delay_s: float = 0.0
    """What the model takes for each reply."""
    compare: bool = True
    """Whether each run is compared with that of the question asked alone, which takes about a tenth more."""


@dataclass(slots=True)
class Figures:
    """What it came to. Memory is resident, in MB; lists hold what went wrong."""

    seconds: float = 0.0
    asked: int = 0
    errors: list[str] = field(default_factory=list)
    different: list[str] = field(default_factory=list)
    """Questions whose run is not that of the question asked alone."""
    first_quarter_mb: float = 0.0
    """Peak while the first quarter of the questions was answered."""
    later_mb: float = 0.0
    """Peak after that."""

    @property
    def rate(self) -> float:
        """Questions a second."""
        return self.asked / self.seconds


def record(source: str, questions: Path, folder: Path, most: int = 2_000) -> Recording:
    """Ask each question of the file (at most so many) alone, in another process; files go to ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    recording = Recording(
        source, str(questions), str(folder / "replies.json"), str(folder / "runs.json")
    )
    _elsewhere("record", {"recording": asdict(recording), "most": most})
    return recording


def load(given: Load) -> Figures:
    """Ask so many questions at once, in another process."""
    return Figures(**json.loads(_elsewhere("load", asdict(given))))


def _elsewhere(what: str, given: Any) -> str:
    command = [sys.executable, "-W", "error", str(HERE), what, json.dumps(given)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout


# --- in the process that records


def _record(recording: Recording, most: int) -> None:
    kg = open_kg(recording.source)
    replies: dict[str, str] = {}
    runs: dict[str, str] = {}
    failed: list[str] = []
    for turns in group_by_dialogue(questions_of(Path(recording.questions), most)):
        workbench = Workbench(kg, "rules", embeddings=Embeddings())
        for question in turns:
            run = workbench.begin(question.question)
            with suppress(InvalidReplyError):  # the baseline's grammar does not reach that far
                run.go()
            runs[place_of(run)] = fingerprint(run)
            if run.error:
                failed.append(run.question)
            for call in run.calls.values():
                if call.kind == "model":
                    said = json.dumps(call.request["content"]["messages"], ensure_ascii=False)
                    assert replies.setdefault(said, call.result.text) == call.result.text
    Path(recording.replies).write_text(json.dumps(replies), encoding="utf-8")
    Path(recording.runs).write_text(json.dumps([runs, failed]), encoding="utf-8")


def questions_of(file: Path, most: int, times: int = 1) -> list[BenchQuestion]:
    """At most so many questions of a file, all of them asked several times under ids of their own.

    They come in an order of their ids' digests, for files begin with what is easy. Of every ten that stand
    alone two are made a dialogue, so that histories can be mixed up too.
    """
    found = []
    entries = sorted(_lines(file), key=lambda entry: _digest(entry.get("dialogue", entry["id"])))
    for place, entry in enumerate(entries[:most]):
        if place % 10 < 2 and "dialogue" not in entry:
            entry |= {"dialogue": f"pair {place // 10}", "turn": place % 10}
        kept = ("id", "question", "answers", "dialogue", "turn")
        found.append(BenchQuestion(**{name: entry[name] for name in kept if name in entry}))
    return [
        question.model_copy(
            update={
                "id": f"{question.id}/{time}",
                "dialogue": question.dialogue and f"{question.dialogue}/{time}",
            }
        )
        for time in range(times)
        for question in found
    ]


def _lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def place_of(run: Run) -> str:
    """Digest of a question with its history."""
    return _digest([run.question, to_data(run.dialogue)])


def fingerprint(run: Run) -> str:
    """Digest of what a run says, steps and calls included; times, costs and the model's name left out."""
    calls = {key: _digest(_content(call)) for key, call in run.calls.items()}
    steps = []
    for step in run.steps:
        data = step.to_data()
        data.pop("recorded_seconds", None)  # of a step that was replayed
        for name in ("seconds", "origin", "live_calls"):
            del data[name]
        data["calls"] = [calls[key] for key in step.calls]
        data["attempts"] = [
            {**attempt, "call": calls[attempt["call"]]} for attempt in data["attempts"]
        ]
        steps.append(data)
    return _digest(
        [run.question, to_data(run.dialogue), to_data(run.answer), steps, sorted(calls.values())]
    )


def _content(call: Call) -> Any:
    if call.kind == "model":
        return [call.request["task"], call.request["content"], call.repeat, call.result.text]
    return [call.kind, call.request, call.repeat, to_data(call.result, call.result_type)]


def _digest(data: Any) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:24]


# --- in the process under load


class Watch:
    """Compares runs as they end, and samples what the process takes."""

    def __init__(self, given: Load) -> None:
        self.expected, self.failed = json.loads(
            Path(given.recording.runs).read_text(encoding="utf-8")
        )
        self.figures = Figures()
        self.given = given
        self.lock = threading.Lock()

    def compare(self, run: Run) -> None:
        """Note a run that is not as it was alone."""
        if self.given.compare and self.expected.get(place_of(run)) != fingerprint(run):
            self.figures.different.append(run.question)

    def sample(self) -> None:
        """One more question was answered."""
        figures = self.figures
        with self.lock:
            figures.asked += 1
            first = figures.asked * 4 <= self.given.questions
            name = "first_quarter_mb" if first else "later_mb"
            setattr(figures, name, max(getattr(figures, name), resident_mb()))


class Watched(System):
    """A system whose finished runs are compared."""

    def __init__(self, watch: Watch, system: System) -> None:
        super().__init__(
            system.name, self._answer, (), remember=self._remember, settings=system.settings
        )
        self.watch, self.system, self.agents = watch, system, system.agents

    def _answer(self, question: Question, dialogue: Dialogue, run: Run) -> Answer:
        try:
            return self.system.answer(question, dialogue, run)
        except KgwbError:
            self.watch.compare(run)
            raise

    def _remember(self, run: Run) -> Turn:
        """Asked for once as the run ends, and by the runner for the dialogue."""
        if run.status == "running":
            self.watch.compare(run)
        return self.system.remember(run)


def _load(given: Load) -> Figures:
    file = Path(given.recording.questions)
    times = -(-given.questions // len(_lines(file)))
    asked = questions_of(file, given.questions, times)[: given.questions]
    watch = Watch(given)
    with replies_server(Path(given.recording.replies), given.delay_s) as url:
        _ask_all(given, asked, watch, url)
    return watch.figures


def _ask_all(given: Load, asked: Sequence[BenchQuestion], watch: Watch, url: str) -> None:
    kg = open_kg(given.recording.source)
    model = OpenAIModel("recorded", base_url=f"{url}/v1")
    started = time.perf_counter()
    _by_bench(given, asked, watch, kg, model)
    watch.figures.seconds = time.perf_counter() - started


def _by_bench(
    given: Load, asked: Sequence[BenchQuestion], watch: Watch, kg: Graph, model: OpenAIModel
) -> None:
    system = Watched(watch, systems.load_system("chatty_kg"))
    setup = BenchSetup(kg, system, {"": model}, Settings(), Prompts(), Embeddings())

    results = Results(Path(given.folder), setup.to_config())
    how: Any = {"workers": given.workers, "on_row": lambda row: watch.sample()}
    rows = Benchmark(setup, results, **how).run(asked)
    figures = watch.figures
    failed = [row for row in rows if row["error"] is not None]
    figures.errors = [row["error"] for row in failed if row["question"] not in watch.failed]


def resident_mb() -> float:
    """Memory of this process that is in use now."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


@contextmanager
def replies_server(replies: Path, delay_s: float) -> Iterator[str]:
    """The address of a server that answers as recorded; it ends with the block, or with this process."""
    command = [sys.executable, str(HERE.with_name("replies_server.py")), str(replies), str(delay_s)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.stdin.close()
            process.wait()


def main(what: str, given: dict[str, Any]) -> None:
    """What the processes run; figures go to standard output."""
    recording = Recording(**given.pop("recording"))
    works: dict[str, Callable[[], Any]] = {
        "record": lambda: _record(recording, **given),
        "load": lambda: sys.stdout.write(json.dumps(asdict(_load(Load(recording, **given))))),
    }
    works[what]()


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
