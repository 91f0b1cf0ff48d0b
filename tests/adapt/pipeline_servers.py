"""Servers on loopback for pipelines: a chat model that follows a script, and a SPARQL endpoint."""

from __future__ import annotations

import http.server
import json
import threading
import urllib.parse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pyoxigraph as ox
from model_servers import OpenAIServer, openai_events, sse

Script = Callable[[dict[str, Any]], str | dict[str, Any]]


class Handler(http.server.BaseHTTPRequestHandler):
    def reply(self, body: bytes, content_type: str, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


class ChatServer:
    """Answers chat completions by ``script``: a text, or the fields of the message."""

    def __init__(self, url: str, script: Script) -> None:
        self.url = url
        self.script = script
        self.requests: list[dict[str, Any]] = []

    def completion(self, body: dict[str, Any]) -> dict[str, Any]:
        self.requests.append(body)
        said = self.script(body)
        if isinstance(said, dict) and ("status_code" in said or "choices" in said):
            return said
        fields: dict[str, Any] = {"content": said} if isinstance(said, str) else dict(said)
        finish = "tool_calls" if "tool_calls" in fields else "stop"
        content = fields.pop("content", None)
        made: dict[str, Any] = OpenAIServer.reply(content, finish, **fields).body
        return {"id": f"chatcmpl-{len(self.requests)}", "created": 1, **made}

    def response(self, body: dict[str, Any]) -> dict[str, Any]:
        """The Responses API: a text of the script, or the items of the output."""
        self.requests.append(body)
        said: Any = self.script(body)
        if isinstance(said, str):
            content = [{"type": "output_text", "text": said, "annotations": []}]
            message = {"id": "msg_1", "type": "message", "role": "assistant"}
            said = {"output": [{**message, "status": "completed", "content": content}]}
        usage = {"input_tokens": 12, "output_tokens": 5, "total_tokens": 17}
        made = {"id": f"resp_{len(self.requests)}", "object": "response", "created_at": 1}
        return {**made, "model": "tiny-1", "status": "completed", "usage": usage, **said}


def completion_chunks(made: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A completion as a server streams it: parts of the content, calls of tools, and the tokens."""
    [choice] = made["choices"]
    for event in openai_events(choice["message"], choice["finish_reason"], made["usage"]):
        yield {**made, "object": "chat.completion.chunk", "usage": None, **event}


def response_events(made: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A response as a server streams it, each item of its output filled in one or two pieces."""
    begun = {**made, "output": [], "status": "in_progress"}
    events: list[dict[str, Any]] = [{"type": "response.created", "response": begun}]
    for index, item in enumerate(made["output"]):
        place = {"output_index": index, "item_id": item["id"]}
        empty = {**item, "content": []} if "content" in item else {**item, "arguments": ""}
        events.append({"type": "response.output_item.added", "output_index": index, "item": empty})
        for number, part in enumerate(item.get("content", ())):
            at = {**place, "content_index": number, "logprobs": []}
            text = part["text"]
            events.append(
                {"type": "response.content_part.added", **at, "part": {**part, "text": ""}}
            )
            for piece in (text[:5], text[5:]):
                events.append({"type": "response.output_text.delta", **at, "delta": piece})
            events.append({"type": "response.output_text.done", **at, "text": text})
            events.append({"type": "response.content_part.done", **at, "part": part})
        if "arguments" in item:
            name = "response.function_call_arguments"
            events.append({"type": f"{name}.delta", **place, "delta": item["arguments"]})
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    events.append({"type": f"response.{made['status']}", "response": made})
    for number, event in enumerate(events):
        yield {**event, "sequence_number": number}


@contextmanager
def serving(handler: type[Handler], port: int = 0) -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@contextmanager
def chat_server(script: Script, port: int = 0) -> Iterator[ChatServer]:
    chats = ChatServer("", script)

    class ChatHandler(Handler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            is_response = self.path.endswith("/responses")
            made = chats.response(body) if is_response else chats.completion(body)
            if "status_code" in made:
                self.reply(b"{}", "application/json", made["status_code"])
            elif body.get("stream"):
                events = response_events(made) if is_response else completion_chunks(made)
                self.reply(sse(*events, "[DONE]").encode(), "text/event-stream")
            else:
                self.reply(json.dumps(made).encode(), "application/json")

    with serving(ChatHandler, port) as url:
        chats.url = f"{url}/v1"
        yield chats


class Endpoint:
    """A SPARQL endpoint over a few triples, and the queries that came."""

    def __init__(self, turtle: str) -> None:
        self.url = ""
        self.queries: list[str] = []
        self.store = ox.Store()
        self.store.load(turtle.encode(), format=ox.RdfFormat.TURTLE)

    def result(self, query: str, accepted: str) -> tuple[bytes, str]:
        self.queries.append(query)
        found = self.store.query(query)
        if isinstance(found, ox.QueryTriples):
            asked_first, _, _ = accepted.partition(",")
            graph_format = ox.RdfFormat.from_media_type(asked_first) or ox.RdfFormat.TURTLE
            return found.serialize(format=graph_format), graph_format.media_type
        formats = (ox.QueryResultsFormat.CSV, ox.QueryResultsFormat.XML)
        asked = [each for each in formats if each.media_type in accepted]
        result_format = [*asked, ox.QueryResultsFormat.JSON][0]
        return found.serialize(format=result_format), result_format.media_type


@contextmanager
def sparql_endpoint(turtle: str, port: int = 0) -> Iterator[Endpoint]:
    endpoint = Endpoint(turtle)

    class SparqlHandler(Handler):
        def do_GET(self) -> None:
            parameters = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)
            try:
                accepted = self.headers.get("Accept", "")
                body, content_type = endpoint.result(parameters["query"][0], accepted)
            except SyntaxError as error:
                self.reply(str(error).encode(), "text/plain", 400)
                return
            self.reply(body, content_type)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self.path += f"?{body.decode()}"
            self.do_GET()

    with serving(SparqlHandler, port) as url:
        endpoint.url = f"{url}/sparql"
        yield endpoint
