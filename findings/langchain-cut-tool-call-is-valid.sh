#!/usr/bin/env bash
# LangChain: a streamed tool call that was cut off is a valid call with shortened arguments.
#
# Expected. langchain-core keeps a call whose arguments cannot be read as JSON in
# invalid_tool_calls, apart from tool_calls, and documents that list as the place for the model's
# errors. A reply that ends at the limit of tokens leaves such arguments. Where the reply is not
# streamed, the reader of the same text (parse_tool_calls) raises.
#
# Seen (langchain-core 1.8.3). Streamed chunks are added up with a reader of partial JSON, which
# closes open strings and braces. The sum, and the final AIMessage made of it, has the call in
# tool_calls and nothing in invalid_tool_calls. Here the part that is left is a valid query with
# another meaning: the largest country becomes all countries. Only finish_reason "length" tells,
# and an agent that goes by tool_calls runs it.
#
#   received  {"query": "SELECT ?c { ?c a :Country ; :population ?n }
#             (the whole goes on: ORDER BY DESC(?n) LIMIT 1"})
#   streamed  tool_calls: SELECT ?c { ?c a :Country ; :population ?n }     invalid_tool_calls: none
#   at once   OutputParserException
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -qq --disable-pip-version-check \
    langchain-core==1.8.3

venv/bin/python - <<'PY'
import json
from importlib.metadata import version

from langchain_core.exceptions import OutputParserException
from langchain_core.messages import AIMessageChunk, message_chunk_to_message
from langchain_core.output_parsers.openai_tools import parse_tool_calls

print("langchain-core", version("langchain-core"))
QUERY = "SELECT ?c { ?c a :Country ; :population ?n } ORDER BY DESC(?n) LIMIT 1"
arguments = json.dumps({"query": QUERY})
received = arguments[: arguments.index(" ORDER")]  # the limit of tokens was reached here
total = AIMessageChunk(content="")
for start in range(0, len(received), 7):
    first = start == 0
    chunk = {
        "name": "run_sparql" if first else None,
        "id": "call_1" if first else None,
        "args": received[start : start + 7],
        "index": 0,
    }
    total += AIMessageChunk(content="", tool_call_chunks=[chunk])
total += AIMessageChunk(content="", response_metadata={"finish_reason": "length"})
message = message_chunk_to_message(total)
print("received:", received)
print("streamed: tool_calls", [c["args"] for c in message.tool_calls], end=" ")
print("invalid_tool_calls", message.invalid_tool_calls)
try:
    parse_tool_calls([{"id": "call_1", "function": {"name": "run_sparql", "arguments": received}}])
    whole = "a call"
except OutputParserException:
    whole = "OutputParserException"
print("the same text at once:", whole)
if ([c["args"] for c in message.tool_calls], message.invalid_tool_calls, whole) != (
    [{"query": "SELECT ?c { ?c a :Country ; :population ?n }"}],
    [],
    "OutputParserException",
):
    raise SystemExit("the behaviour has changed")
PY
