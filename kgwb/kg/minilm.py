"""all-MiniLM-L6-v2 in NumPy: the published weights, without the seconds and memory that torch needs to start.

A BERT encoder (Devlin et al. 2019) of six layers, whose token vectors are averaged and scaled to length one
(Reimers and Gurevych 2019). The weights are mapped from their file: the processes of a machine share them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController
from tokenizers import Tokenizer

FloatArray = NDArray[np.float32]
MAX_TOKENS = 256
"""Of one text, as the model's authors cut it."""
MAX_BATCH_TOKENS, MAX_TEXTS_WITHOUT_THREADS = 2048, 64
"""Tokens that are encoded together, whose intermediate values take some 50 MB; texts that need no threads."""
ERF_COEFFICIENTS = (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429)
"""Abramowitz and Stegun, 7.1.26: the error function to 1.5e-7, which is what float32 can hold."""


class MiniLM:
    """The encoder in a folder with ``model.safetensors``, ``config.json`` and ``tokenizer.json``.

    Raises OSError, ValueError or KeyError where they are missing or damaged.
    """

    def __init__(self, folder: Path) -> None:
        config = json.loads((folder / "config.json").read_text())
        self._layers, self._heads = config["num_hidden_layers"], config["num_attention_heads"]
        self._epsilon = np.float32(config["layer_norm_eps"])
        # A safetensors file: the length of a JSON header, the header, and the arrays' bytes
        file = folder / "model.safetensors"
        with file.open("rb") as opened:
            length = int.from_bytes(opened.read(8), "little")
            header = json.loads(opened.read(length))
        self._weights: dict[str, Any] = {
            name: np.memmap(
                file,
                np.float32,
                "r",
                8 + length + tensor["data_offsets"][0],
                tuple(tensor["shape"]),
            ).view(np.ndarray)
            for name, tensor in header.items()
            if tensor.get("dtype") == "F32"
        }
        self._blas = ThreadpoolController()
        self._tokenizer = Tokenizer.from_str((folder / "tokenizer.json").read_text())
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(MAX_TOKENS)

    def encode(self, texts: Sequence[str]) -> FloatArray:
        """A unit vector of each text, (texts, 384). Texts of one length go together, which spares padding."""
        by_length: dict[int, list[tuple[int, list[int]]]] = {}
        for place, text in enumerate(texts):
            ids = self._tokenizer.encode(text).ids
            by_length.setdefault(len(ids), []).append((place, ids))
        vectors = np.empty(
            (len(texts), self._weights["embeddings.LayerNorm.bias"].size), np.float32
        )

        def put(batch: Sequence[tuple[int, list[int]]]) -> None:
            places, ids_of = zip(*batch, strict=True)
            vectors[list(places)] = self._forward(np.array(ids_of))

        batches = []
        for length, group in by_length.items():
            size = max(1, MAX_BATCH_TOKENS // length)
            batches += [group[start : start + size] for start in range(0, len(group), size)]
        # Each batch on one core: where others work too, BLAS threads that wait for one another make one text
        # take a second instead of milliseconds. Many batches go side by side.
        with self._blas.limit(limits=1, user_api="blas"):
            if len(texts) <= MAX_TEXTS_WITHOUT_THREADS:
                for batch in batches:
                    put(batch)
                return vectors
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                for _ in pool.map(put, batches):  # raises what one of them raised
                    pass
        return vectors

    def _forward(self, ids: NDArray[np.int64]) -> FloatArray:
        """The vectors of texts of one length, from their tokens' ids, (texts, length)."""
        texts, length = ids.shape
        words, positions, kinds = (
            self._weights[f"embeddings.{name}_embeddings.weight"]
            for name in ("word", "position", "token_type")
        )
        states = (words[ids] + positions[:length] + kinds[0]).reshape(texts * length, -1)
        states = self._layer_norm(states, "embeddings")
        for layer in range(self._layers):
            name = f"encoder.layer.{layer}"
            attended = self._attention(states, texts, f"{name}.attention.self")
            states = self._layer_norm(
                states + self._dense(attended, f"{name}.attention.output.dense"),
                f"{name}.attention.output",
            )
            inner = _gelu(self._dense(states, f"{name}.intermediate.dense"))
            states = self._layer_norm(
                states + self._dense(inner, f"{name}.output.dense"), f"{name}.output"
            )
        means = states.reshape(texts, length, -1).mean(1)
        unit: FloatArray = means / np.linalg.norm(means, axis=1, keepdims=True)
        return unit

    def _attention(self, states: FloatArray, texts: int, name: str) -> FloatArray:
        """For each token the mean of its text's values, weighted by how near its query is to their keys."""
        shape = (texts, -1, self._heads, states.shape[1] // self._heads)
        query, key, value = (
            self._dense(states, f"{name}.{part}").reshape(shape).transpose(0, 2, 1, 3)
            for part in ("query", "key", "value")
        )
        scores = query @ key.transpose(0, 1, 3, 2) / np.sqrt(np.float32(shape[3]))
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        shares /= shares.sum(-1, keepdims=True)
        means: FloatArray = (shares @ value).transpose(0, 2, 1, 3).reshape(states.shape)
        return means

    def _dense(self, states: FloatArray, name: str) -> FloatArray:
        product: FloatArray = (
            states @ self._weights[f"{name}.weight"].T + self._weights[f"{name}.bias"]
        )
        return product

    def _layer_norm(self, states: FloatArray, name: str) -> FloatArray:
        states = states - states.mean(1, keepdims=True)
        states /= np.sqrt((states * states).mean(1, keepdims=True) + self._epsilon)
        states *= self._weights[f"{name}.LayerNorm.weight"]
        states += self._weights[f"{name}.LayerNorm.bias"]
        return states


def _gelu(values: FloatArray) -> FloatArray:
    """The values, each times the share of a normal distribution that lies below it."""
    size = np.abs(values) * np.float32(0.5**0.5)
    part = np.float32(1) / (1 + np.float32(0.3275911) * size)
    rest: FloatArray = np.zeros_like(values)
    for factor in reversed(ERF_COEFFICIENTS):
        rest = (rest + np.float32(factor)) * part
    rest *= np.exp(-size * size)
    return values * np.where(values >= 0, 2 - rest, rest) / np.float32(2)
