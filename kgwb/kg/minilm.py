"""all-MiniLM-L6-v2 in NumPy: the published weights, without the time and memory that torch needs.

It is a BERT encoder (Devlin et al. 2019) with six layers. The vector of a text is the mean of its
tokens' vectors, scaled to length one (Reimers and Gurevych 2019). The weights are mapped from their
file, so that the processes of a machine share them.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController
from tokenizers import Tokenizer

FloatArray = NDArray[np.float32]
TokenizedText = tuple[int, list[int]]
"""The position of a text among the texts to encode, and the ids of its tokens."""
MAX_TOKENS = 256
"""Tokens of a text that are encoded. The model's authors cut texts at this length."""
MAX_BATCH_TOKENS = 2048
"""Tokens that are encoded together. Their intermediate values take some 50 MB."""
MAX_TEXTS_WITHOUT_THREADS = 64
"""Up to so many texts are encoded on one thread."""
SENTENCE_ENDS = (". ", "! ", "? ", "\n")
ERF_SLOPE = 0.3275911
ERF_COEFFICIENTS = (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429)
"""Constants of the error function in Abramowitz and Stegun, 7.1.26.

They give it to 1.5e-7, which is as exact as float32.
"""


class MiniLM:
    """The encoder in a folder with ``model.safetensors``, ``config.json`` and ``tokenizer.json``.

    Raises OSError, ValueError or KeyError if one of the files is missing or damaged.
    """

    def __init__(self, folder: Path) -> None:
        """Read the configuration and the tokenizer, and map the weights."""
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        self._layers = config["num_hidden_layers"]
        self._heads = config["num_attention_heads"]
        self._epsilon = np.float32(config["layer_norm_eps"])
        self._weights = map_weights(folder / "model.safetensors")
        self._blas = ThreadpoolController()
        tokenizer_text = (folder / "tokenizer.json").read_text(encoding="utf-8")
        self._tokenizer = Tokenizer.from_str(tokenizer_text)
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(MAX_TOKENS)
        self._whole_tokenizer = Tokenizer.from_str(tokenizer_text)
        self._whole_tokenizer.no_padding()
        self._whole_tokenizer.no_truncation()

    def encode(self, texts: Sequence[str]) -> FloatArray:
        """Return a unit vector of each text, as an array of shape (texts, 384), in order.

        A text is cut after MAX_TOKENS tokens. More than MAX_TEXTS_WITHOUT_THREADS texts are encoded
        in batches on as many threads as there are cores, else on the calling thread.
        """
        size = self._weights["embeddings.LayerNorm.bias"].size
        shape = (len(texts), size)
        vectors = np.empty(shape, np.float32)

        def encode_batch(batch: Sequence[TokenizedText]) -> None:
            """Compute the vectors of a batch, and write them to their rows of ``vectors``."""
            positions, token_ids = zip(*batch, strict=True)
            vectors[list(positions)] = self._forward(np.array(token_ids))

        batches = self._make_batches(texts)
        # Each batch uses one core. With several, BLAS threads wait for one another, and on a
        # machine that others use too, one text took a second instead of milliseconds.
        with self._blas.limit(limits=1, user_api="blas"):
            if len(texts) <= MAX_TEXTS_WITHOUT_THREADS:
                for batch in batches:
                    encode_batch(batch)
            else:
                with ThreadPoolExecutor(os.cpu_count()) as pool:
                    # Taking the results raises the error of a batch that failed.
                    list(pool.map(encode_batch, batches))
        return vectors

    def split(self, text: str) -> list[str]:
        """Return the parts of a text that are encoded whole, in order; the text if it is short.

        Each has at most MAX_TOKENS tokens with the two that stand around a text. A part ends after
        a sentence if one ends in its second half, else after a blank or a token.
        """
        encoding = self._whole_tokenizer.encode(text, add_special_tokens=False)
        return split_at_tokens(text, encoding.offsets, MAX_TOKENS - 2)

    def _make_batches(self, texts: Sequence[str]) -> list[list[TokenizedText]]:
        """Tokenize texts, and group them into batches whose texts have the same number of tokens.

        A text stands in its batch with its position. A batch has at most MAX_BATCH_TOKENS tokens in
        all, or is one text. Texts of equal length need no padding.
        """
        by_length: dict[int, list[TokenizedText]] = defaultdict(list)
        for position, text in enumerate(texts):
            token_ids = self._tokenizer.encode(text).ids
            by_length[len(token_ids)].append((position, token_ids))

        batches = []
        for length, group in by_length.items():
            batch_size = max(1, MAX_BATCH_TOKENS // length)
            for start in range(0, len(group), batch_size):
                batches.append(group[start : start + batch_size])
        return batches

    def _forward(self, token_ids: NDArray[np.int64]) -> FloatArray:
        """Return the unit vectors of texts of one length, by the layers of a BERT encoder.

        Embeddings of words, positions and segment are added and normalized. Each layer attends,
        then has a dense part, both with a residual sum and a LayerNorm. The vector is the mean over
        the tokens. ``token_ids`` has the shape (texts, tokens), the result (texts, 384).
        """
        texts, length = token_ids.shape
        words = self._weights["embeddings.word_embeddings.weight"]
        positions = self._weights["embeddings.position_embeddings.weight"]
        segments = self._weights["embeddings.token_type_embeddings.weight"]
        embedded = words[token_ids] + positions[:length] + segments[0]
        embedded = embedded.reshape(texts * length, -1)
        states = self._normalize(embedded, "embeddings")
        # The layers are not a function of their own, whose caller would keep the old states, and
        # sums have no names: with more arrays alive, NumPy asked the operating system for memory
        # again and again, and encoding took a sixth longer.
        for layer in range(self._layers):
            name = f"encoder.layer.{layer}"
            attended = self._attend(states, texts, f"{name}.attention.self")
            states = self._normalize(
                states + self._apply_dense(attended, f"{name}.attention.output.dense"),
                f"{name}.attention.output",
            )
            inner = gelu(self._apply_dense(states, f"{name}.intermediate.dense"))
            states = self._normalize(
                states + self._apply_dense(inner, f"{name}.output.dense"), f"{name}.output"
            )
        states_by_text = states.reshape(texts, length, -1)
        means = states_by_text.mean(1)
        lengths = np.linalg.norm(means, axis=1, keepdims=True)
        unit_vectors: FloatArray = means / lengths
        return unit_vectors

    def _attend(self, states: FloatArray, texts: int, name: str) -> FloatArray:
        """Return for each token the weighted mean of the values of its text's tokens.

        The weights are the softmax of the scaled products of the token's query and their keys, for
        each attention head. ``states`` and the result have the shape (texts * tokens, 384).
        """
        head_size = states.shape[1] // self._heads
        shape = (texts, -1, self._heads, head_size)

        def project(part: str) -> FloatArray:
            """Return one of query, key and value of each token, by text and attention head.

            The shape is (texts, heads, tokens, head size).
            """
            projected = self._apply_dense(states, f"{name}.{part}")
            by_head = projected.reshape(shape)
            return by_head.swapaxes(1, 2)

        queries = project("query")
        keys = project("key")
        values = project("value")
        scale = np.sqrt(np.float32(head_size))
        scores = queries @ keys.swapaxes(2, 3) / scale
        greatest = scores.max(-1, keepdims=True)
        weights = np.exp(scores - greatest)
        weights /= weights.sum(-1, keepdims=True)
        means: FloatArray = weights @ values
        return means.swapaxes(1, 2).reshape(states.shape)

    def _apply_dense(self, states: FloatArray, name: str) -> FloatArray:
        """Return the states times the transposed weights of a linear layer, plus its bias.

        ``name`` is the layer's name in the file of weights.
        """
        weights = self._weights[f"{name}.weight"]
        bias = self._weights[f"{name}.bias"]
        product: FloatArray = states @ weights.T + bias
        return product

    def _normalize(self, states: FloatArray, name: str) -> FloatArray:
        """Return the output of a LayerNorm: each state with mean 0 and variance 1, then rescaled.

        ``name`` is the layer with the learned weights and bias that rescale it.
        """
        states = states - states.mean(1, keepdims=True)
        variance = (states * states).mean(1, keepdims=True)
        states /= np.sqrt(variance + self._epsilon)
        states *= self._weights[f"{name}.LayerNorm.weight"]
        states += self._weights[f"{name}.LayerNorm.bias"]
        return states


def map_weights(file: Path) -> dict[str, Any]:
    """Map the float32 arrays of a safetensors file into memory, and return them by name.

    The file holds the length of its header in 8 bytes, the header as JSON, and the arrays' bytes.
    Arrays of other types are left out.
    """
    with file.open("rb") as opened:
        header_length = int.from_bytes(opened.read(8), "little")
        header = json.loads(opened.read(header_length))
    data_start = 8 + header_length
    weights = {}
    for name, tensor in header.items():
        if tensor.get("dtype") != "F32":
            continue
        start, _ = tensor["data_offsets"]
        mapped = np.memmap(file, np.float32, "r", data_start + start, tuple(tensor["shape"]))
        weights[name] = mapped.view(np.ndarray)
    return weights


def gelu(values: FloatArray) -> FloatArray:
    """Return x * P(X <= x) for each value x, where X is standard normal, as a new array.

    The probability is computed from a polynomial approximation of the error function.
    """
    scale = np.float32(0.5**0.5)
    sizes = np.abs(values) * scale
    slope = np.float32(ERF_SLOPE)
    argument = np.float32(1) / (1 + slope * sizes)
    complement: FloatArray = np.zeros_like(values)
    for coefficient in reversed(ERF_COEFFICIENTS):
        complement = (complement + np.float32(coefficient)) * argument
    complement *= np.exp(-sizes * sizes)
    result = np.where(values >= 0, 2 - complement, complement)
    result *= values
    result /= np.float32(2)
    return result


def split_at_tokens(text: str, offsets: Sequence[tuple[int, int]], max_tokens: int) -> list[str]:
    """Return the parts of a text that have at most ``max_tokens`` of its tokens, in order.

    ``offsets`` has where each token begins and ends. A part ends after a sentence if one ends in
    its second half, else after a blank there, else before a token. Together, the parts are the
    text.
    """
    parts = []
    start = 0
    first = 0
    while len(offsets) - first > max_tokens:
        end, _ = offsets[first + max_tokens]
        middle, _ = offsets[first + max_tokens // 2]
        end = _find_last_end(text, middle, end)
        while first < len(offsets):
            token_start, _ = offsets[first]
            if token_start >= end:
                break
            first += 1
        parts.append(text[start:end])
        start = end
    parts.append(text[start:])
    return parts


def _find_last_end(text: str, middle: int, end: int) -> int:
    """Return where the last sentence between two positions ends, else the last word, else ``end``."""
    for marks in (SENTENCE_ENDS, (" ",)):
        last_end = max(text.rfind(mark, middle, end) + len(mark) for mark in marks)
        if last_end > middle:
            return last_end
    return end
