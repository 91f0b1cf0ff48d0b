#!/usr/bin/env bash
# LangChain: with a length function, the places of chunks in their text are wrong.
#
# Expected. add_start_index of a text splitter: "includes chunk's start index in metadata", so that
# text[start_index:] begins with the chunk and an answer can be shown where it was found. The length
# of chunks is what length_function measures, which is characters by default and otherwise words or
# tokens, as with from_tiktoken_encoder; chunk_size and chunk_overlap are in that measure.
#
# Seen (langchain-text-splitters 1.1.3). A chunk is looked for from the end of the one before it,
# less the overlap, and the number of words is taken off as if it were characters. So the search
# starts behind the chunk, which is not found: start_index is -1, with which text[start_index:] is
# the last character. The search for the next chunk then starts at the front, and where sentences
# repeat finds an early one: the places jump back. With lengths in characters all of it is right.
#
#   six facts, overlap in characters    0 54 98 147 196 244 290
#   six facts, overlap in words         0 -1 81 -1 151 -1 225 -1 298
#   a sentence twelve times, in words   0 81 164 248 331 414 -1 98 180 264 345 428 -1
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -qq --disable-pip-version-check \
    langchain-text-splitters==1.1.3 langchain-core==1.8.3

venv/bin/python - <<'PY'
from importlib.metadata import version

from langchain_text_splitters import RecursiveCharacterTextSplitter

for package in ("langchain-text-splitters", "langchain-core"):
    print(package, version(package))
FACTS = " ".join(f"The district number {n} of the city of Rome has its own mayor." for n in range(1, 7))
REPEATED = "The mayor of Rome said that the city grows. " * 12


def places(text: str, **options) -> tuple[list[int], int]:
    """The start index of each chunk, and how many chunks are not where it says."""
    splitter = RecursiveCharacterTextSplitter(add_start_index=True, **options)
    chunks = splitter.create_documents([text])
    starts = [chunk.metadata["start_index"] for chunk in chunks]
    wrong = [start < 0 or not text.startswith(chunk.page_content, start) for start, chunk in zip(starts, chunks)]
    return starts, sum(wrong)


in_characters = {"chunk_size": 80, "chunk_overlap": 30}
in_words = {"chunk_size": 14, "chunk_overlap": 6, "length_function": lambda text: len(text.split())}
seen = {
    "facts, characters": places(FACTS, **in_characters),
    "facts, words": places(FACTS, **in_words),
    "repeated, words": places(REPEATED, **in_words),
}
for name, (starts, wrong) in seen.items():
    print(f"{name:<18} start_index {starts}, not there: {wrong} of {len(starts)}")
if seen != {
    "facts, characters": ([0, 54, 98, 147, 196, 244, 290], 0),
    "facts, words": ([0, -1, 81, -1, 151, -1, 225, -1, 298], 4),
    "repeated, words": ([0, 81, 164, 248, 331, 414, -1, 98, 180, 264, 345, 428, -1], 2),
}:
    raise SystemExit("the behaviour has changed")
PY
