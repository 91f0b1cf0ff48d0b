"""HTTP requests of a run's own code, recorded below the clients that send them.

Inside a run, what httpx, urllib3 (with requests on it), urllib and aiohttp are asked to send goes
through the run's record. A request in a protocol of model servers is a model call, one in that of
SPARQL a query, and any other is recorded as it is. Requests of kgwb itself, and those of threads that
do not know the run, are left alone. A replay sends nothing: connections that Python opens are refused.
"""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from kgwb.disk import USER_AGENT
from kgwb.errors import GraphError, NotRecordedError
from kgwb.kg.base import Graph
from kgwb.llm.base import ChatModel, ChatReply, ChatRequest, Message, announce
from kgwb.records import JsonObject
from kgwb.run.diagnostics import count_past_call, is_in_call
from kgwb.run.http_protocols import (
    Api,
    body_of_reply,
    data_from_message,
    message_from_data,
    read_model_request,
    reply_of_body,
)
from kgwb.run.steps import Call, CallIdentity, Sent, current_run
from kgwb.text import (
    SECRET_NAME_PATTERN,
    is_distinctive_secret,
    mask_data,
    mask_secrets,
    mask_text,
    mask_url,
    mask_urls_in_text,
)

if TYPE_CHECKING:
    from kgwb.run.http_queries import WebQuery

MAX_RECORDED_BYTES = 32_000_000
"""A longer reply is not recorded: it is a download, such as the weights of a model."""
UNKEPT_HEADERS = frozenset(
    "connection content-encoding content-length keep-alive set-cookie transfer-encoding".split()
)
"""Headers of a reply that are not recorded: they are secret, or are about the connection."""
TASK = "chat"
"""The task of every model call of a client: it has no prompt."""
NOT_RECORDED_NOTE = (
    "a request is not in this recording, as it failed or was never sent; if the pipeline caught that "
    "error, what follows may differ from the recorded run"
)
UNREADABLE = (ValueError, LookupError, TypeError, AttributeError, SyntaxError, GraphError)
"""What is raised for the body of a reply that is none of its protocol."""


class HttpRequest(NamedTuple):
    """A request, as any client sends it."""

    method: str
    url: str
    headers: Mapping[str, str]
    """By name in lower case."""
    body: bytes


class HttpReply(NamedTuple):
    """A reply with its whole body, unpacked."""

    status: int
    headers: Mapping[str, str]
    """By name in lower case, without UNKEPT_HEADERS."""
    body: bytes

    @property
    def reason(self) -> str:
        """What the status means, in the words of HTTP; "" for an unknown one."""
        return http.client.responses.get(self.status, "")

    @property
    def media_type(self) -> str:
        """The content type without parameters."""
        content_type, _, _ = self.headers.get("content-type", "").partition(";")
        return content_type.strip().lower()


Send = Callable[[HttpRequest], HttpReply]
"""Sends a request by the plain client."""


def make_reply(status: int, headers: Any, body: bytes) -> HttpReply:
    """Return the reply that a client has received."""
    kept = {}
    for name, value in headers.items():
        if str(name).lower() not in UNKEPT_HEADERS:
            kept[str(name).lower()] = str(value)
    return HttpReply(status, kept, body)


def recording_run(headers: Mapping[str, str]) -> Any:
    """Return the run whose own request is about to be sent here; None if there is none.

    A request inside a call is recorded by that call. One that kgwb itself sends to an endpoint is
    left alone.
    """
    if is_in_call() or headers.get("user-agent") == USER_AGENT:
        return None
    return current_run()


@contextmanager
def missing_calls_noted(run: Any) -> Iterator[None]:
    """Leave a note on the step if the code inside raises NotRecordedError.

    A pipeline often catches every error, to try again or to go on without a reply. A replay would
    then come to its end, perhaps with another answer, and nothing would say why.
    """
    try:
        yield
    except NotRecordedError:
        run.note(NOT_RECORDED_NOTE)
        raise


class _NoResult(Exception):
    """A reply that its protocol has no result for, such as a refusal of the server."""

    def __init__(self, reply: HttpReply, *, is_edited: bool = False) -> None:
        super().__init__()
        self.reply = reply
        self.is_edited = is_edited


class _TooLong(Exception):
    """The reply is longer than MAX_RECORDED_BYTES."""


def reply_to(run: Any, request: HttpRequest, send: Send) -> HttpReply:
    """Return the reply that the run has recorded for a request; without one, send and record it.

    A reply that was just received is returned as it came, and a recorded one with keys masked.

    Raises what ``send`` raises, NotRecordedError in a replay that lacks the call, and GraphError
    for a query to an endpoint in a run with muted triples.
    """
    received: list[HttpReply] = []

    def exchange(sent: HttpRequest) -> HttpReply:
        """Send a request. Raises _TooLong for a reply that is too long to be recorded."""
        reply = send(sent)
        received.append(reply)
        if len(reply.body) > MAX_RECORDED_BYTES:
            raise _TooLong
        return reply

    try:
        with missing_calls_noted(run):
            recorded = _recorded_reply(run, request, exchange)
    except _TooLong:
        count_past_call(str(urlsplit(request.url).hostname))
    return received[-1] if received else recorded


def _recorded_reply(run: Any, request: HttpRequest, exchange: Send) -> HttpReply:
    """Return the recorded reply to a request; without one, send and record it.

    What is no result of its protocol is recorded as any other reply, and found again where no
    result is recorded: a client that sends a request again after an error has its result at once.
    """
    from kgwb.run.http_queries import read_web_query

    path = urlsplit(request.url).path
    asked = read_model_request(request.method, path, request.body)
    query = None if asked else read_web_query(*request)
    if asked is None and query is None:
        return _plain_reply(run, request, exchange)

    def exchange_unless_refused(sent: HttpRequest) -> HttpReply:
        """Send a request, unless the run has recorded that the server refused it."""
        if sent is request and _find_plain(run, request) is not None:
            raise _NoResult(HttpReply(0, {}, b""))
        return exchange(sent)

    try:
        if asked is not None:
            return _model_reply(run, request, *asked, exchange_unless_refused)
        return _query_reply(run, request, query, exchange_unless_refused)
    except _NoResult as refusal:
        reply = refusal.reply
        if refusal.is_edited:
            return reply
        return _plain_reply(run, request, lambda _: reply)
    except NotRecordedError:
        if _find_plain(run, request) is None:
            raise
        return _plain_reply(run, request, exchange)


# A model call


class ClientModel(ChatModel):
    """Answers one request of a pipeline by the pipeline's own client."""

    remote = True

    def __init__(self, name: str, url: str, send: Callable[[Sequence[Message]], ChatReply]) -> None:
        """``url`` is the address of the client's server; empty if it is not known."""
        self.name = name
        self.url = url
        self._send = send

    def complete(
        self, request: ChatRequest, kg: Graph | None, cancel: threading.Event
    ) -> ChatReply:
        """Return the client's reply to the messages of the request, which a person may have edited.

        If the client's server is on another machine, a notice first says what leaves this one.
        Raises what the client raises.
        """
        announce(self.name, self.url, kg)
        return self._send(request.messages)


def _model_reply(
    run: Any, request: HttpRequest, api: Api, data: JsonObject, exchange: Send
) -> HttpReply:
    """Return the recorded reply of a model; without one, send the request and record it.

    Messages that a person edited are sent in place of those of the request. Raises _NoResult for
    another status than 200, and for a reply that cannot be read.
    """
    messages = tuple(message_from_data(item) for item in api.items_of(data))

    def send(sent: Sequence[Message]) -> ChatReply:
        """Send the request with these messages."""
        outgoing = request
        is_edited = tuple(sent) != messages
        if is_edited:
            items = [data_from_message(message) for message in sent]
            body = json.dumps(api.with_items(data, items), ensure_ascii=False)
            outgoing = request._replace(body=body.encode())
        reply = exchange(outgoing)
        try:
            if reply.status == 200:
                text = reply.body.decode("utf-8", "replace")
                masked = mask_secrets(text, _secrets_of(request))
                return reply_of_body(api, masked)
        except UNREADABLE:
            pass  # the client says what is wrong with it
        raise _NoResult(reply, is_edited=is_edited)

    address, _, _ = request.url.partition("?")
    url = address.removesuffix(api.path)
    server = ""
    if url != api.url:
        server = f"@{mask_url(url)}/"
    name = f"{api.provider}:{data.get('model', '')}{server}"
    options = mask_data(api.options_of(data))
    asked = ChatRequest(TASK, messages, options=options)
    _, reply = run.chat(asked, ClientModel(name, url, send))
    is_streamed = data.get("stream", api.provider == "ollama")
    body, content_type = body_of_reply(api, reply, is_streamed=is_streamed)
    return HttpReply(200, {"content-type": content_type}, body.encode())


# A query


def _query_reply(run: Any, request: HttpRequest, query: Any, exchange: Send) -> HttpReply:
    """Return the recorded result of a query in the format that its client wants; else send it.

    Raises GraphError in a run with muted triples, and _NoResult for a reply that is no result.
    """
    from kgwb.run.http_queries import parse_result, write_result

    if run.kg.muted:
        raise GraphError(
            "the pipeline asks an endpoint, which cannot leave out the muted triples",
            hint="CONSTRUCT the part that the question needs, parse it into an rdflib.Graph, and"
            " ask that through wrap_rdflib",
        )

    def make() -> Sent:
        """Send the query, and read its result."""
        reply = exchange(request)
        try:
            if reply.status == 200:
                result = parse_result(query, reply.media_type, reply.body)
                return Sent(result, _data_of_reply(request, reply, mask_secrets))
        except UNREADABLE:
            pass  # the client says what is wrong with it
        raise _NoResult(reply)

    content: JsonObject = {"graph": query.endpoint, "query": query.text}
    if query.parameters:
        content["parameters"] = query.parameters
    if run.is_replay:
        content = _recorded_query(run, query, content)
    call: Call = run.find_or_make_call(query.kind, content, None if run.is_replay else make)
    if call.response is not None:
        reply = _reply_of_data(call.response)
        if query.accepts(reply.media_type):
            return reply
    body, media_type = write_result(query, call.result)
    return HttpReply(200, {"content-type": media_type}, body)


def _recorded_query(run: Any, query: WebQuery, content: JsonObject) -> JsonObject:
    """Return the content of the recorded call that has a query's result.

    A replay sends nothing: if it has no call at this address, that of the same query at another
    address is used.
    """
    key = CallIdentity.of(query.kind, content, 0).key
    if key not in run.calls:
        for call in run.calls.values():
            if call.kind == query.kind and call.request["query"] == query.text:
                found: JsonObject = call.request
                return found
    return content


# Any other request


def _plain_reply(run: Any, request: HttpRequest, exchange: Send) -> HttpReply:
    """Return the recorded reply to any request; without one, send it and record the reply."""

    def make() -> JsonObject:
        """Send the request."""
        return _data_of_reply(request, exchange(request), _mask_body)

    call = run.exchange(_content_of(request), None if run.is_replay else make)
    return _reply_of_data(call.result)


def _find_plain(run: Any, request: HttpRequest) -> Call | None:
    """Return the call with the next reply to a request that is recorded as it is, or None."""
    found: Call | None = run.find_exchange(_content_of(request))
    return found


def _content_of(request: HttpRequest) -> JsonObject:
    """Return the JSON data by which a request is found again, with keys masked.

    That is method, address, the format that is asked for, and the body: its text, or the hash of
    what is no text.
    """
    content_type = request.headers.get("content-type", "")
    _, _, boundary = content_type.partition("boundary=")
    body = request.body
    if boundary:  # it is drawn by chance
        body = body.replace(boundary.strip('"').encode(), b"boundary")
    content: JsonObject = {"method": request.method, "url": mask_urls_in_text(request.url)}
    accepted = request.headers.get("accept", "*/*")
    if accepted != "*/*":
        content["accept"] = accepted
    try:
        text = body.decode()
    except UnicodeDecodeError:
        content["sha256"] = hashlib.sha256(body).hexdigest()
        return content
    if content_type.startswith("application/x-www-form-urlencoded"):
        text = mask_urls_in_text(f"&{text}").removeprefix("&")
    if text:
        content["body"] = _mask_body(text, _secrets_of(request))
    return content


def _mask_body(text: str, secrets: Sequence[str]) -> str:
    """Return a body with the given secrets masked, and those in its fields if it is JSON."""
    text = mask_secrets(text, secrets)
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return text
    masked = mask_data(data)
    return text if masked == data else json.dumps(masked, ensure_ascii=False)


def _secrets_of(request: HttpRequest) -> list[str]:
    """Return the keys in the headers of a request and in the parameters of its address."""
    secrets = []
    for name, value in request.headers.items():
        if SECRET_NAME_PATTERN.search(name):
            secrets.append(value.rpartition(" ")[2])
    for parameter in urlsplit(request.url).query.split("&"):
        name, _, value = parameter.partition("=")
        if SECRET_NAME_PATTERN.search(name):
            secrets.append(value)
    return [secret for secret in secrets if is_distinctive_secret(secret)]


def _data_of_reply(
    request: HttpRequest, reply: HttpReply, mask: Callable[[str, Sequence[str]], str]
) -> JsonObject:
    """Return a reply as it is recorded: JSON data. ``mask`` masks the keys in its body."""
    secrets = _secrets_of(request)
    headers = {}
    for name, value in reply.headers.items():
        headers[name] = mask_text(mask_secrets(value, secrets))
    data: JsonObject = {"status": reply.status, "headers": headers}
    try:
        text = reply.body.decode()
    except UnicodeDecodeError:
        data["base64"] = base64.b64encode(reply.body).decode()
    else:
        data["body"] = mask(text, secrets)
    return data


def _reply_of_data(data: JsonObject) -> HttpReply:
    """Return a reply that was recorded."""
    if "base64" in data:
        body = base64.b64decode(data["base64"])
    else:
        body = data["body"].encode()
    return HttpReply(data["status"], data["headers"], body)
