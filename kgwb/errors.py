"""Everything kgwb raises on purpose.

Every message has what was asked and what was seen; ``hint`` is what to do next.
``Stopped`` and ``Cancelled`` are not errors: they carry a pause or a cancel out of a system.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kgwb.masking import mask_urls_in_text, truncate_at_word
from kgwb.text import remove_controls

MAX_MESSAGE_CHARS = 4_000
"""Characters of a message: it may hold what a server sent, however much that is."""


class KgwbError(Exception):
    """Base of all errors of kgwb; ``hint`` is what to do next."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        self.message = mask_urls_in_text(truncate_at_word(message, MAX_MESSAGE_CHARS))
        super().__init__(self.message)
        self.hint = hint  # our own words, with an address to write like; what else it holds was masked before

    def __str__(self) -> str:
        todo = f"\n  What to do: {self.hint}" if self.hint else ""
        return remove_controls(self.message + todo)  # it may hold labels, and a server's own words


class InputError(KgwbError):
    """What the person gave cannot be used."""


class QuestionError(InputError):
    """An empty or far too long question."""


class SettingError(InputError):
    """An unknown or impossible setting, system or agent."""


class PromptError(InputError):
    """A prompt file is missing, or its variables do not fit its agent."""


class RunFileError(InputError):
    """A run file cannot be read, or was written by another version."""


class OverrideError(InputError):
    """A value put in by hand does not have the form of the step's result."""


class GraphError(KgwbError):
    """A knowledge graph cannot be opened or asked."""


class GraphFileError(GraphError):
    """No such file, nothing in it, or it does not parse (``line`` and ``column`` where known)."""

    def __init__(
        self, message: str, *, hint: str = "", line: int | None = None, column: int | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.line, self.column = line, column


class GraphUnreachableError(GraphError):
    """An endpoint refuses, fails or cannot be found."""


class GraphTimeoutError(GraphError):
    """A query took longer than the graph's ``query_timeout_s``."""


class QueryRefusedError(GraphError):
    """Only SELECT, ASK, CONSTRUCT and DESCRIBE are sent, and SERVICE only by leave."""


class QueryError(GraphError):
    """The engine rejects the query, or what it answers is not a result."""


class ModelError(KgwbError):
    """A language model cannot be asked."""


class UnknownModelError(ModelError):
    """No such model, or the key it needs is not in the environment."""


class ModelUnreachableError(ModelError):
    """The server refuses, resets or fails, also after the repeats of the adapter."""


class ModelTimeoutError(ModelError):
    """No reply within the time allowed."""


class ModelRefusedError(ModelError):
    """The server turns this very request away (400, 401, 403, 404, 422)."""


class InvalidReplyError(KgwbError):
    """No reply passed the checks within theta attempts; ``attempts`` holds every raw reply."""

    def __init__(self, message: str, attempts: Sequence[Any], *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.attempts = tuple(attempts)


class NotRecordedError(KgwbError):
    """A replay without model or graph needs a call that the record does not hold."""


class EmbeddingError(KgwbError):
    """The sentence embeddings cannot be loaded."""


class Stopped(BaseException):
    """The execution reached the step it was asked to stop at; carries no failure."""


class Cancelled(BaseException):
    """The person cancelled the execution; everything recorded so far is kept."""
