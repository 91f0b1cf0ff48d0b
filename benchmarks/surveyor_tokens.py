"""Measures Surveyor's calls and tokens a question, with the replies that a reader gave to like prompts.

    python benchmarks/surveyor_tokens.py GRAPH QUESTIONS RECORDING [--write NEW_RECORDING]

    python benchmarks/surveyor_tokens.py DATA/harbour DATA/harbour/questions.jsonl \
        benchmarks/recordings/harbour.surveyor.jsonl.gz

A request is answered by the reply that was recorded for the most similar request of the same prompt
and question. So the figures are known for prompts that were edited since, before a reader sees
them. A review that was never recorded is "fine". Tokens are characters of the prompts, divided by
4. ``--write`` keeps the new requests with these replies, for ``recorded_questions.py``.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import statistics
import tempfile
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import kgwb
from kgwb.bench import load_questions
from kgwb.bench.metrics import score_answers
from kgwb.disk import read_json_lines
from kgwb.kg import Graph
from kgwb.llm import ChatModel, ChatReply, ChatRequest
from kgwb.run.answers import Dialogue

CHARS_PER_TOKEN = 4
QUESTION_LINE = re.compile(r"^Question: (.*)$", re.MULTILINE)
FINE = {"reason": "it is", "verdict": "fine", "sparql": "", "columns": [], "missing": ""}
HEADER = {
    "kgwb_run": 1,
    "kgwb": "0.1.0",
    "system": "surveyor",
    "question": "replies of a strong reader, recorded",
    "models": {"": "recorded"},
}


class MostSimilar(ChatModel):
    """Answers with the reply to the most similar recorded request of the prompt and the question."""

    remote = False

    def __init__(self, entries: Sequence[dict[str, Any]], name: str = "recorded") -> None:
        """Keep the replies of the model calls among the entries of run files."""
        self.name = name
        self.requests: list[ChatRequest] = []
        self.made_up = 0
        self._recorded: dict[tuple[str, str], list[tuple[set[str], str]]] = defaultdict(list)
        for entry in entries:
            call = entry.get("call", {})
            if call.get("kind") != "model":
                continue
            text = "\n".join(text for _, text in call["request"]["content"]["messages"])
            key = (call["request"]["task"], _question_in(text))
            self._recorded[key].append((set(text.splitlines()), call["reply"]["text"]))

    def complete(
        self, request: ChatRequest, kg: Graph | None, cancel: threading.Event
    ) -> ChatReply:
        """Return the reply to the recorded request that shares the most lines with this one."""
        self.requests.append(request)
        text = "\n".join(message.content for message in request.messages)
        lines = set(text.splitlines())
        recorded = self._recorded.get((request.task, _question_in(text)), [])
        if not recorded and request.task != "surveyor/reviewer":
            raise KeyError(f"no reply was recorded for {request.task}: {_question_in(text)}")
        if recorded:
            _, reply = max(recorded, key=lambda pair: len(pair[0] & lines) / len(pair[0] | lines))
        else:
            self.made_up += 1
            reply = json.dumps(FINE)
        return ChatReply(reply, mode="schema", model="reader", prompt_tokens=tokens_of(request))


def _question_in(text: str) -> str:
    """Return the question that a prompt of Surveyor asks."""
    last: str = QUESTION_LINE.findall(text)[-1]
    return last


def tokens_of(request: ChatRequest) -> int:
    """Return the characters of a request's messages, divided by CHARS_PER_TOKEN."""
    characters = sum(len(message.content) for message in request.messages)
    return characters // CHARS_PER_TOKEN


def read_entries(file: Path) -> list[dict[str, Any]]:
    """Return the entries of a run file, which may be compressed."""
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / "run.jsonl"
        packed = file.read_bytes()
        plain.write_bytes(gzip.decompress(packed) if file.suffix == ".gz" else packed)
        return [entry for _, entry in read_json_lines(plain)]


def model_calls(run: kgwb.Run) -> Iterator[dict[str, Any]]:
    """Yield the entries of a run's model calls, as they stand in a run file."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "run.jsonl"
        run.save(file)
        for _, entry in read_json_lines(file):
            if entry.get("call", {}).get("kind") == "model":
                yield entry


def write_recording(file: Path, entries: Sequence[dict[str, Any]]) -> None:
    """Write entries below a header as a run file, compressed if its name says so."""
    lines = [
        json.dumps(entry, ensure_ascii=False, separators=(",", ":")) for entry in (HEADER, *entries)
    ]
    text = "\n".join(lines) + "\n"
    data = text.encode()
    file.write_bytes(gzip.compress(data, mtime=0) if file.suffix == ".gz" else data)


def main() -> None:
    """Ask all questions, and print calls and tokens a question, and those of each prompt."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("graph")
    parser.add_argument("questions")
    parser.add_argument("recording", type=Path)
    parser.add_argument("--write", type=Path)
    given = parser.parse_args()
    model = MostSimilar(read_entries(given.recording))
    workbench = kgwb.Workbench(kgwb.open_kg(given.graph), model, system="surveyor")
    kept: list[dict[str, Any]] = []
    tokens: list[int] = []
    calls: Counter[int] = Counter()
    denied: Counter[str] = Counter()
    by_task: dict[str, list[int]] = defaultdict(list)
    for question in load_questions(given.questions):
        model.requests.clear()
        run = workbench.setup.begin(question.question, Dialogue()).go()
        for request in model.requests:
            by_task[request.task].append(tokens_of(request))
        calls[len(model.requests)] += 1
        executed = [step.output for step in run.steps if step.agent == "executor"]
        if executed and executed[0].contradictions:
            denied["mended" if not executed[-1].contradictions else "not mended"] += 1
        tokens.append(sum(map(tokens_of, model.requests)))
        kept += model_calls(run)
        values = run.answer.values if run.answer else ()
        given_terms = [term for value in values for term in value.row or (value.term,)]
        answers = [str(term) for term in given_terms if term is not None]
        f1 = score_answers(answers, question.answers or ()).f1
        if f1 < 1:
            print(f"lost: {question.id} F1 {f1:.3f} {question.question}")
    for task, numbers in by_task.items():
        print(
            f"{task:26}{len(numbers):5} calls, {statistics.median(numbers):6g} tokens in the median"
        )
    listed = ", ".join(
        f"{number} questions with {count}" for count, number in sorted(calls.items())
    )
    print(f"calls: {listed}; {model.made_up} reviews made up")
    print(
        f"drafts that the survey denies: {denied.total()}, of these {denied['mended']} mended by a review"
    )
    numbers = [count for count, number in calls.items() for _ in range(number)]
    median_calls = statistics.median(numbers)
    print(
        f"a question: {median_calls:g} calls and {statistics.median(tokens):g} tokens in the median,"
    )
    print(f"{statistics.mean(tokens):.0f} tokens in the mean, {max(tokens)} at most")
    if given.write:
        seen = {entry["call"]["key"]: entry for entry in kept}
        write_recording(given.write, list(seen.values()))


if __name__ == "__main__":
    main()
