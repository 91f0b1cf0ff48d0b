"""The survey of a graph: its classes, the predicates that their instances use, and the values.

It does not depend on any question. A survey is kept in the cache folder, by the graph's identity.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock

from rdflib import URIRef

from kgwb import disk
from kgwb.kg.base import Graph
from kgwb.kg.survey_builder import SurveyBuilder
from kgwb.kg.survey_queries import SURVEY_TIMEOUT_S
from kgwb.kg.survey_records import Survey
from kgwb.records import from_data, to_data

CACHE_LIFETIME_S = 86_400.0
"""How long the survey of an endpoint is used. That of a file is used as long as it is unchanged."""
SURVEY_VERSION = 6
"""Part of a survey's identity: surveys of other versions are built again."""
INCOMPLETE_LIFETIME_S = 600.0
"""How long a survey that lacked time is used: else each question of a slow endpoint would wait for another."""
_survey_locks: dict[str, Lock] = {}
"""By survey: one thread builds it, while the others wait."""
_incomplete_surveys: dict[Path, tuple[float, Survey]] = {}
"""By the file in which a whole one would be: the last one that lacked time, with the time at which it was made."""
_loaded_surveys: dict[Path, tuple[int, Survey]] = {}
"""Surveys that this process has read, with the times (ns) at which their files were written."""


def survey_graph(
    kg: Graph, only_classes: Sequence[URIRef] = (), *, timeout_s: float | None = None
) -> Survey:
    """Return the survey of a graph: from the cache folder if it is there, else a new one.

    A new survey takes seconds and is stored in the cache folder, unless that cannot be written. It
    is not stored either if a query took too long or no time was left for one, since a later call
    may have more: this process uses it for INCOMPLETE_LIFETIME_S. The stored survey of an endpoint
    is used for CACHE_LIFETIME_S. Surveys with different time limits are stored apart. No query is
    sent after ``timeout_s`` seconds, SURVEY_TIMEOUT_S by default. Triples that are muted in ``kg``
    are in the survey nevertheless. With ``only_classes``, a sample of the instances of these
    classes is surveyed, and the cache is neither read nor written.

    Parts whose queries the graph refuses, and for which no time is left, are left out, and the
    survey says so (``lacks``). Raises GraphError if the graph answers nothing.
    """
    kg = kg.whole_graph
    if only_classes:
        return SurveyBuilder(kg, only_classes, timeout_s).build()
    identity = f"{SURVEY_VERSION} {kg.identity} {kg.vocabulary!r}"
    if timeout_s not in (None, SURVEY_TIMEOUT_S):
        identity += f" {timeout_s}"
    hashed = hashlib.sha256(identity.encode())
    digest = hashed.hexdigest()
    file_name = f"survey-{digest[:32]}.json"
    path = disk.cache_dir() / file_name
    lock = _survey_locks.setdefault(digest, Lock())
    with lock:  # several questions may be asked of one graph at the same time
        survey = _read_survey(path, kg.remote)
        if survey is not None:
            return survey
        made_at, incomplete = _incomplete_surveys.get(path, (0.0, None))
        if incomplete is not None and time.monotonic() - made_at < INCOMPLETE_LIFETIME_S:
            return incomplete
        builder = SurveyBuilder(kg, timeout_s=timeout_s)
        survey = builder.build()
        if builder.queries.lacked_time:
            _incomplete_surveys[path] = (time.monotonic(), survey)
            return survey
        text = json.dumps(to_data(survey))
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            disk.write_atomically(path, [text], "surrogatepass")
    return survey


def _read_survey(path: Path, is_remote: bool) -> Survey | None:
    """Return the survey in a file. It is read again only if the file has changed.

    None if there is no file, if it is damaged, or if it is older than CACHE_LIFETIME_S and the
    graph is remote.
    """
    with suppress(OSError, ValueError):
        file = path.stat()
        age_s = time.time() - file.st_mtime
        if is_remote and age_s >= CACHE_LIFETIME_S:
            return None
        written_at, survey = _loaded_surveys.get(path, (None, None))
        if survey is None or written_at != file.st_mtime_ns:
            data = json.loads(disk.read_text(path))
            survey = from_data(data, Survey)
            _loaded_surveys[path] = (file.st_mtime_ns, survey)
        return survey
    return None
