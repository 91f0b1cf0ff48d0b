"""Replies of readers, kept as recordings that are replayed without a model and without network."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from kgwb.run.steps import call_key
from kgwb.run.store import STORE_FILE, read_calls

RECORDINGS = Path(__file__).parent / "recordings"
MODEL = "recorded"
"""The name of the model in a recording, in place of the address of a server."""


def keep_replies(folders: Iterable[Path], recording: Path, system: str, said: str) -> int:
    """Write the model's replies in folders with a store of calls to one file; return how many.

    Each request is kept once, without the address of its server. ``said`` describes the recording
    in its first line.
    """
    header = {
        "kgwb_run": 1,
        "kgwb": "0.1.0",
        "system": system,
        "question": said,
        "models": {"": MODEL},
    }
    lines = [json.dumps(header)]
    known: set[str] = set()
    for folder in folders:
        for call in read_calls(folder / STORE_FILE):
            if call.kind != "model":
                continue
            request = {**call.request, "model": MODEL}
            key = call_key(call.kind, request, call.repeat)
            if key not in known:
                known.add(key)
                kept = replace(call, key=key, request=request)
                lines.append(json.dumps({"call": kept.to_data()}, ensure_ascii=False))
    text = "\n".join(lines) + "\n"
    recording.parent.mkdir(parents=True, exist_ok=True)
    # Without a time the same replies are the same file.
    recording.write_bytes(gzip.compress(text.encode("utf-8", "surrogatepass"), mtime=0))
    return len(known)


def unpack_recording(recording: Path, folder: Path) -> Path:
    """Write a recording to a folder as the run file that ``replay:`` reads; return its path."""
    replies = folder / "replies.jsonl"
    data = recording.read_bytes()
    replies.write_bytes(gzip.decompress(data) if recording.suffix == ".gz" else data)
    return replies
