"""The form of a run on disk (docs/run_format.md): written whole, or call by call while it is executed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from kgwb.aside import undisturbed
from kgwb.flow import Dialogue, from_data, to_data
from kgwb.run.agents import spec_at
from kgwb.run.engine import Engine
from kgwb.run.record import FORMAT, Call, RunFile, Totals
from kgwb.version import __version__

DAMAGED = (LookupError, ValueError, TypeError, AttributeError, ArithmeticError, RecursionError)
"""What comes of a file whose entries have not their form, or do not fit together."""


class SavedEngine(Engine):
    """An engine whose record can be kept in a file; ``kgwb.run.Run`` adds what a person does."""

    id: str
    created: str
    question: str
    dialogue: Dialogue

    def __init__(self) -> None:
        super().__init__()
        self.recorded_status = ""
        """How the latest execution ended that the file of a loaded run tells of."""
        self.recorded_position = 0
        """Steps that were done then."""
        self._file: RunFile | None = None

    @property
    def totals(self) -> Totals:
        """What the latest execution used."""
        used = dict.fromkeys(key for step in self.steps for key in step.calls)
        live = sum(step.live_calls for step in self.steps)
        return Totals.of((self.calls[key] for key in used if key in self.calls), live, self._seconds)

    def save(self, path: str | Path) -> Path:
        """Write the run to a new or replaced file (docs/run_format.md).

        Returns its path. Raises RunFileError.
        """
        self._write(lambda: RunFile(Path(path)).write([*self._whole()]))
        return Path(path)

    def _read(self, lines: Iterator[dict[str, Any]]) -> None:
        for entry in lines:
            if "call" in entry:
                call = Call.from_data(entry["call"])
                self.calls[call.key] = call
                self.recorded_status = ""  # an execution that began after the last one ended
            elif "prompt" in entry:
                self.prompts = self.prompts.with_text(entry["prompt"]["name"], entry["prompt"]["text"])
            elif "override" in entry:
                key, value = entry["override"]["step"], entry["override"]["value"]
                if value is None:
                    self.overrides.pop(key, None)
                else:
                    self.overrides[key] = from_data(value, spec_at(self.system, key).form)
            elif "end" in entry:
                self.recorded_status = entry["end"]["status"]
                self.recorded_position = entry["end"]["position"]

    def _keep_in(self, path: str | Path | None) -> None:
        """Begin a file that every further call is written to as it ends, with what it holds already."""
        if path:
            self._file = RunFile(Path(path))
            self.resume(path)
            self._file.write([self._header(), *self._entries()])

    def resume(self, path: str | Path) -> None:
        """Take the calls of a file that holds this question, if its run did not come to an end."""
        header, *entries = RunFile(Path(path)).found() or [{}]
        with suppress(*DAMAGED):  # what cannot be read is asked again
            ended = [entry["end"]["status"] for entry in entries if "end" in entry]
            if header["question"] == self.question and ended[-1:] != ["done"]:
                self._read(entry for entry in entries if "call" in entry)

    def _header(self) -> dict[str, Any]:
        return {
            "kgwb_run": FORMAT,
            "kgwb": __version__,
            "id": self.id,
            "created": self.created,
            "system": self.system.name,
            "question": self.question,
            "dialogue": to_data(self.dialogue),
            "settings": self.settings.to_data(),
            "models": {**self._recorded_models, **{name: model.name for name, model in self.models.items()}},
            "embeddings": self.embeddings.name,
            "graph": self.kg.identity,
            "source": self.kg.source,
            "vocabulary": to_data(self.kg.vocabulary),
            "prompts": {**self._used_prompts, **self.prompts.texts},
        }

    def _whole(self) -> Iterator[dict[str, Any]]:
        yield self._header()
        yield from self._entries()
        yield from ({"step": step.to_data()} for step in self.steps)
        yield self._ending()

    def _entries(self) -> Iterator[dict[str, Any]]:
        for call in list(self.calls.values()):
            yield {"call": call.to_data()}
        for key, value in self.overrides.items():
            yield {"override": {"step": key, "value": to_data(value, spec_at(self.system, key).form)}}

    def _ending(self) -> dict[str, Any]:
        return {
            "end": {
                "status": self.status,
                "position": self.position,
                "answer": to_data(self.answer) if self.answer is not None else None,
                "error": self.error.message if self.error else "",
                "totals": to_data(self.totals),
            }
        }

    def _record(self, call: Call) -> None:
        if self._file:
            self._append(call=call.to_data())

    def _end(self) -> None:
        if self._file:
            self._append(**self._ending())

    def _append(self, **entry: Any) -> None:
        if self._file:
            self._write(partial(self._file.append, **entry))

    def _write(self, write: Callable[[], None]) -> None:
        """Write where no interrupt can hit it, and in order: an earlier save must not replace a later one."""

        def alone() -> None:
            with self._lock:
                write()

        undisturbed(alone)
