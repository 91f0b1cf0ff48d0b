#!/usr/bin/env bash
# openai, langchain-openai: a stream that an error ends is a whole reply.
#
# Expected. A server that has sent status 200 and fails later can only say so in the stream: in
# server-sent events as "event: error" (the HTML standard names events by this field), or as vLLM
# did, as a data event {"object": "error", ...}. The client raises, as it does for a data event
# with a field "error", and as LiteLLM does for a stream without a finish reason.
#
# Seen (openai 3.57.0, langchain-openai 1.7.4). The client makes a chunk without choices of either,
# and ends the stream as any other. LangChain adds up what came: the half sentence is an AIMessage,
# and nothing is raised. That there is no finish reason is the only trace; a chain does not look.
#
#   sent              "Paris is not", then the error; the whole is "Paris is not the largest"
#   openai            "Paris is not", finish reasons: none
#   langchain-openai  AIMessage("Paris is not")
#   with "error"      APIError
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -qq --disable-pip-version-check \
    langchain-openai==1.7.4 openai==3.57.0

venv/bin/python - <<'PY'
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version

import openai
from langchain_openai import ChatOpenAI

for package in ("openai", "langchain-openai"):
    print(package, version(package))


def event(data, name=""):
    return f"{name}data: {json.dumps(data)}\n\n".encode()


def part(text):
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": None}
    return event({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]})


ERRORS = {
    "event: error": event({"message": "out of memory", "code": 500}, "event: error\n"),
    "object: error": event({"object": "error", "message": "engine died", "code": 500}),
    "field error": event({"error": {"message": "out of memory", "code": 500}}),
}
sent = [b""]


class Server(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        self.wfile.write(part("Paris") + part(" is not") + sent[0] + b"data: [DONE]\n\n")


server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
threading.Thread(target=server.serve_forever, daemon=True).start()
where = {"base_url": f"http://127.0.0.1:{server.server_port}/v1", "api_key": "none", "max_retries": 0}


def by_openai():
    messages = [{"role": "user", "content": "Is Paris the largest city?"}]
    chunks = openai.OpenAI(**where).chat.completions.create(model="m", messages=messages, stream=True)
    choices = [chunk.choices[0] for chunk in chunks if chunk.choices]
    return "".join(choice.delta.content for choice in choices), {choice.finish_reason for choice in choices}


def by_langchain():
    reply = ChatOpenAI(model="m", streaming=True, **where).invoke("Is Paris the largest city?")
    return reply.content, {reply.response_metadata.get("finish_reason")}


seen = []
for name, sent[0] in ERRORS.items():
    for ask in (by_openai, by_langchain):
        try:
            result = ask()
        except openai.APIError:
            result = "APIError"
        print(f"{name:<14} {ask.__name__:<13} {result}")
        seen.append(result)
half = ("Paris is not", {None})
if seen != [half] * 4 + ["APIError"] * 2:
    raise SystemExit("the behaviour has changed")
PY
