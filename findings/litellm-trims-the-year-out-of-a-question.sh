#!/usr/bin/env bash
# LiteLLM: trimmed to a limit of tokens, a question loses its year and rows of a graph their middle.
#
# Expected. trim_messages will "trim a list of messages to fit within a model's token limit". So
# what it gives fits the limit, whole messages are dropped from the front, and the last question
# stays as it was asked. A call of a tool stays with its answer, and has content null, as chat
# models send it.
#
# Seen (litellm 1.110.2). The first message that does not fit gets a hole: a piece of its middle is
# replaced by "..". The rows that a query gave become "row0 ..row59", without the call that they
# answer, and a question for the year 2020 is asked without the year; it is still a good sentence,
# and the caller is not told. Where a call whose content is null is the first that does not fit,
# nothing is trimmed: an exception is caught, its traceback logged, and what comes back is over the
# limit.
#
#   limit  tokens  what is left of rows and question
#   190    201     everything
#   60     55      "row0 ..row59", no call; question whole
#   40     34      no rows; "... live there, in th..out those who are not registered?"
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -qq --disable-pip-version-check \
    litellm==1.110.2

venv/bin/python -W ignore - <<'PY'
import logging
import os

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
from importlib.metadata import version

from litellm.utils import token_counter, trim_messages

logging.disable(logging.CRITICAL)
print("litellm", version("litellm"))
MODEL = "gpt-4"
QUESTION = "How many people live there, in the year 2020, without those who are not registered?"
FUNCTION = {"name": "sparql", "arguments": '{"query": "SELECT ?c { :Italy :capital ?c }"}'}


def trimmed(limit: int) -> tuple[int, list[str], str, str]:
    """Tokens, roles, rows and question after trimming."""
    call = {"id": "1", "type": "function", "function": FUNCTION}
    messages = [
        {"role": "system", "content": "You answer questions about a graph."},
        {"role": "user", "content": "What is the capital of Italy?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": " ".join(f"row{n}" for n in range(60))},
        {"role": "assistant", "content": "Rome."},
        {"role": "user", "content": QUESTION},
    ]
    left = trim_messages(messages, model=MODEL, max_tokens=limit)
    rows = "".join(message["content"] for message in left if message["role"] == "tool")
    return token_counter(MODEL, messages=left), [m["role"] for m in left], rows, left[-1]["content"]


seen = {}
for limit in (60, 40, 190):
    seen[limit] = tokens, roles, rows, question = trimmed(limit)
    print(f"limit {limit}: {tokens} tokens in", *roles)
    print(f"    rows {rows[:10]}...{rows[-10:]} | {question}")
(_, roles, rows, question), (_, _, none, cut), (tokens, everything, _, _) = seen.values()
if (
    (roles, rows, question) != (["system", "tool", "assistant", "user"], "row0 ..row59", QUESTION)
    or none
    or "2020" in cut
    or not (cut.startswith("How many people") and ".." in cut and cut.endswith("registered?"))
    or (len(everything), tokens > 190) != (6, True)
):
    raise SystemExit("the behaviour has changed")
PY
