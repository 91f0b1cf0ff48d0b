"""The errors that kgwb raises, all below KgwbError.

The message says what was asked and what happened. ``hint`` says what to do next.
``Stopped`` and ``Cancelled`` are not errors: they end the execution of a system for a pause or a
cancel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kgwb.text import mask_urls_in_text, remove_controls, truncate_at_word

MAX_MESSAGE_CHARS = 4_000
"""A message is cut after so many characters: it may have a long reply of a server in it."""


class KgwbError(Exception):
    """Base of all errors of kgwb; ``hint`` is what to do next.

    Logins and keys in the URLs of the message are masked.
    """

    def __init__(self, message: str, *, hint: str = "") -> None:
        self.message = mask_urls_in_text(truncate_at_word(message, MAX_MESSAGE_CHARS))
        super().__init__(self.message)
        # A hint is not masked: it may show the form of an address. Whoever raises the error masks
        # the data in it.
        self.hint = hint

    def __str__(self) -> str:
        """Return the message and the hint, without control characters.

        Labels of the graph and replies of servers may have such characters.
        """
        text = self.message
        if self.hint:
            text += f"\n  What to do: {self.hint}"
        return remove_controls(text)

    @property
    def without_hint(self) -> str:
        """What is kept where there is no place for a hint, such as in a row of results."""
        return self.message


class InputError(KgwbError):
    """A person's input cannot be used."""


class QuestionError(InputError):
    """An empty or far too long question."""


class SettingError(InputError):
    """An unknown or impossible setting, system or agent."""


class PromptError(InputError):
    """A prompt file is missing, or its variables do not fit its agent."""


class RunFileError(InputError):
    """A run file cannot be read or written, is damaged, or has the format of another version."""


class OverrideError(InputError):
    """A value put in by hand has the wrong type, fails the agent's check, or fits several steps."""


class GraphError(KgwbError):
    """A graph cannot be opened or queried."""


class GraphFileError(GraphError):
    """A file of a graph does not exist, is empty, or cannot be parsed."""

    def __init__(
        self, message: str, *, hint: str = "", line: int | None = None, column: int | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.line = line
        """The line in which parsing failed, from 1 on; None if it is not known."""
        self.column = column


class GraphUnreachableError(GraphError):
    """An endpoint cannot be found, refuses the connection, or fails."""


class GraphTimeoutError(GraphError):
    """A query took longer than the graph's ``query_timeout_s``."""


class QueryRefusedError(GraphError):
    """A query was not sent: it is no SELECT, ASK, CONSTRUCT or DESCRIBE, or uses SERVICE.

    SERVICE, which queries another endpoint, must be allowed when the graph is opened.
    """


class QueryError(GraphError):
    """The engine rejects a query, or its answer is not a result."""


class ModelError(KgwbError):
    """A language model cannot be asked, or its server fails."""


class UnknownModelError(ModelError):
    """There is no such model, or the key that it needs is not in the environment."""


class ModelUnreachableError(ModelError):
    """The server refuses the connection, resets it or fails, also when the request is repeated."""


class ModelTimeoutError(ModelError):
    """The model did not reply within the timeout."""


class ModelRefusedError(ModelError):
    """The server rejects the request (status 400, 401, 403, 404 or 422)."""


class KeyRefusedError(ModelRefusedError):
    """The server of a model refuses the key (status 401)."""


class InvalidReplyError(KgwbError):
    """A model gave no valid reply within ``Settings.theta`` attempts.

    ``attempts`` has every reply with the checks that it passed or failed.
    """

    def __init__(self, message: str, attempts: Sequence[Any], *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.attempts = tuple(attempts)


class OutputError(KgwbError):
    """An agent, or a system, returned something else than what it promises."""


class AgentFailedError(KgwbError):
    """An agent, or a system, raised an error that is not one of kgwb's.

    It is the ``error`` of the run. What was raised is raised on as it is; where a person reads a
    message and no traceback, this is raised in its place (``kgwb.run.diagnostics``).
    """

    def __init__(self, message: str, *, place: str) -> None:
        super().__init__(message, hint=f"correct it where it arose: {place}")
        self.place = place
        """File and line of the person's own code."""

    @property
    def without_hint(self) -> str:
        return f"{self.message}: {self.place}"


class NotRecordedError(KgwbError):
    """A replay needs a call that is not recorded, and has no model or graph to make it."""


class BenchmarkStoppedError(KgwbError):
    """A benchmark stopped, since its model or graph could not be reached for several questions."""


class EmbeddingError(KgwbError):
    """Sentence embeddings cannot be loaded."""


class Stopped(BaseException):
    """The execution has reached the step at which it is to stop. It is no failure."""


class Cancelled(BaseException):
    """A person cancelled the execution. Everything recorded so far is kept."""
