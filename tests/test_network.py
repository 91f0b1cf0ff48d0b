"""Redirects, packed and endless replies, for requests to endpoints and to model servers."""

from __future__ import annotations

import gzip
import itertools
import json
import re
import ssl
import sys
import threading
import time
import traceback
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import certifi
import pytest
from hostile.servers import Said, Seen, serving
from rdflib import Literal
from small import films
from tables import read_table

from kgwb import open_kg
from kgwb.errors import GraphError, KgwbError, ModelTimeoutError
from kgwb.kg import QueryLimits, Vocabulary
from kgwb.kg.dialects import search_wikibase
from kgwb.llm import ChatRequest, Message, model
from kgwb.network import RedirectError, check_redirect
from kgwb.records import from_data
from kgwb.terms import Term, term_to_data

KEY = "q7Zp-api-key-value-1"
SELECT = "SELECT ?x { ?s ?p ?x }"
FIRST = Path(__file__).parent / "certificates" / "one.pem"
SECOND = FIRST.with_name("two.pem")
"""Two self-signed certificates of this machine, each with its key. Both are made for these tests."""


def _graph(url: str, query: str = SELECT, key: str = KEY) -> str:
    kg = open_kg(f"{url.replace('//', f'//reader:{key}@')}/sparql?apikey={key}", dialect="generic")
    [[term]] = kg.select(query).rows
    return str(term)


def _model(spec: str) -> Callable[[str], str]:
    def ask(url: str) -> str:
        request = ChatRequest("task", (Message("user", "Who wrote Faust?"),), timeout_s=20.0)
        return model(f"{spec}@{url}").complete(request, None, threading.Event()).text

    return ask


def _wikibase(url: str) -> object:
    return search_wikibase(url, "ada", 1, Vocabulary(), QueryLimits())


ASK: dict[str, Callable[[str], str]] = {
    "GET": _graph,
    "POST": lambda url: _graph(url, f"{SELECT} #{'long' * 600}"),
    "openai": _model("openai:tiny"),
    "ollama": _model("ollama:tiny"),
}


def refused(
    ask: Callable[[str], object], *reply: Any, says: str | None = None
) -> tuple[KgwbError, list[Seen]]:
    """Return the error of a request to a server that always replies so, and the requests it got."""
    with serving(lambda seen: reply) as server, pytest.raises(KgwbError, match=says) as caught:
        ask(server.url)
    return caught.value, server.seen


SERVERS = ("GET", "openai", "ollama")


def rows(term: dict[str, str]) -> dict[str, Any]:
    """Return a SELECT result of one row with this term."""
    return {"head": {"vars": ["x"]}, "results": {"bindings": [{"x": term}]}}


def body(text: str, name: str) -> bytes:
    """Return a complete reply that holds ``text``."""
    message = {"role": "assistant", "content": text}
    if name == "openai":
        data: Any = {"choices": [{"index": 0, "finish_reason": "stop", "message": message}]}
    elif name == "ollama":
        data = {"model": "tiny", "done": True, "done_reason": "stop", "message": message}
    else:
        data = rows({"type": "literal", "value": text})
    return json.dumps(data).encode()


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kgwb.llm.remote.INITIAL_BACKOFF_S", 0.001)
    for name in ("OPENAI_API_KEY", "OLLAMA_API_KEY"):
        monkeypatch.setenv(name, KEY)


# --- redirects

CODES = (301, 302, 303, 307, 308)


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("name", ASK)
def test_a_redirect_to_another_server_is_refused(name: str, code: int) -> None:
    with serving() as other:
        says = f"redirects to {other.url}, another server"
        error, requests = refused(ASK[name], code, {"Location": f"{other.url}/x"}, "", says=says)
    assert (len(requests), other.seen) == (1, [])
    assert error.hint


@pytest.mark.parametrize(
    "target", ["ftp://127.0.0.1/x", "file:///etc/hostname", "data:,x", "//127.0.0.1:9/"]
)
@pytest.mark.parametrize("name", ASK)
def test_a_redirect_leads_to_http_only(name: str, target: str) -> None:
    says = r"(?i)(redirect.*(ftp|file|data|127\.0\.0\.1:9)|Invalid URL|For absolute URLs)"
    error, _ = refused(ASK[name], 302, {"Location": target}, "elsewhere", says=says)
    assert "try again" not in error.hint


@pytest.mark.parametrize("name", ASK)
def test_a_redirect_in_a_circle_is_followed_a_few_times(name: str) -> None:
    says = "infinite loop|maximum allowed redirects"
    _, requests = refused(ASK[name], 307, {"Location": "/again"}, "", says=says)
    assert len(requests) < 25


@pytest.mark.parametrize(
    ("name", "code"), [*itertools.product(("GET", "POST"), CODES), ("openai", 307), ("ollama", 308)]
)
def test_a_redirect_on_the_server_keeps_query_and_login(name: str, code: int) -> None:
    def answer(seen: Seen) -> Said:
        path, query = urlsplit(seen.path).path, urlsplit(seen.path).query
        if path.endswith("/"):
            return 200, {}, body("Goethe", name)
        return code, {"Location": f"{path}/?{query}".rstrip("?")}, itertools.repeat(bytes(1 << 16))

    with serving(answer) as server:
        assert ASK[name](server.url) == "Goethe"
    first, last = server.seen[:2]
    login = re.search("(?i)authorization: .+", str(first))
    assert login
    assert login.group() in str(last)
    assert (first.method, first.body, first.fields) == (last.method, last.body, last.fields)


@pytest.mark.parametrize(
    ("url", "target", "allowed"), read_table(Path(__file__).with_name("redirects.jsonl"))
)
def test_redirect_is_allowed_on_the_same_server_only(url: str, target: str, allowed: bool) -> None:
    with nullcontext() if allowed else pytest.raises(RedirectError):
        check_redirect(url, target)


# --- bodies


def members(data: bytes) -> bytes:
    return gzip.compress(data[:9]) + gzip.compress(data[9:])


def bomb(data: bytes) -> bytes:
    return gzip.compress(bytes(40_000_000))


PACKED: dict[str, tuple[str, Callable[[bytes], bytes], str]] = {
    "gzip": ("gzip", gzip.compress, ""),
    "several members": ("x-gzip", members, ""),
    "deflate": ("deflate", zlib.compress, ""),
    "a bomb": ("gzip", bomb, "more than 32,000,000 bytes"),
    "twice": (
        "gzip, gzip",
        lambda data: gzip.compress(gzip.compress(data)),
        "Content-Encoding is 'gzip, gz",
    ),
    "unknown": ("br", lambda data: data, "Content-Encoding is 'br'"),
    "cut": ("gzip", lambda data: gzip.compress(data)[:-9], "its gzip breaks off"),
    "broken": ("gzip", lambda data: data, "its gzip is broken"),
}


@pytest.mark.parametrize("packed", PACKED)
@pytest.mark.parametrize("status", [200, 400])
@pytest.mark.parametrize("name", SERVERS)
def test_a_packed_body_is_unpacked_within_its_bound(name: str, status: int, packed: str) -> None:
    coding, pack, problem = PACKED[packed]
    reply = body("Goethe", name) if status == 200 else b"syntax error"
    packed_reply = status, {"Content-Encoding": coding}, pack(reply)
    if status == 200 and not problem:
        with serving(lambda seen: packed_reply) as server:
            assert ASK[name](server.url) == "Goethe"
        return
    problem = problem.replace("32,", "2,") if name != "GET" else problem
    says = (
        problem if status == 200 else "rejects" if name == "GET" else "answers with HTTP status 400"
    )
    error, _ = refused(ASK[name], *packed_reply, says=says)
    assert status == 200 or problem or "syntax error" in error.message


@pytest.mark.parametrize(
    ("status", "says"), [(200, "more than 3?2,000,000 bytes"), (400, "400|rejects")]
)
@pytest.mark.parametrize("name", SERVERS)
def test_endless_body_is_read_to_its_limit(name: str, status: int, says: str) -> None:
    error, _ = refused(ASK[name], status, {}, itertools.repeat(b"x" * (1 << 16)), says=says)
    assert len(str(error)) < 1_500


def drip(seen: Seen) -> Said:
    return 200, {}, iter(lambda: time.sleep(0.05) or b" ", b"")


def interim(seen: Seen) -> Said:
    return 100, {}, iter(lambda: time.sleep(0.01) or b"HTTP/1.1 100 Continue\r\n\r\n", b"")


@pytest.mark.parametrize("answer", [drip, interim])
@pytest.mark.parametrize("name", ["openai", "ollama"])
def test_endless_list_of_models_times_out(name: str, answer: Callable[[Seen], Said]) -> None:
    with serving(answer) as server, pytest.raises(ModelTimeoutError):
        model(f"{name}:tiny@{server.url}").list_models(0.3)  # type: ignore[attr-defined]


LONG = "x" * 5_000_000


@pytest.mark.parametrize(
    ("reply", "ask"),
    [
        ({"error": LONG}, _graph),
        (rows({"type": "odd", "value": LONG}), _graph),
        ({"head": {"vars": [LONG]}, "results": {"bindings": {}}}, _graph),
        ({"error": {"info": LONG[:900_000]}}, _wikibase),
    ],
    ids=["an error", "a type", "a name", "an API"],
)
def test_long_message_of_an_endpoint_is_cut(reply: Any, ask: Callable[[str], object]) -> None:
    error, _ = refused(ask, 200, {}, reply)
    assert len(str(error)) < 1_500 and isinstance(error, GraphError)


@pytest.mark.parametrize("kind", ["XMLLiteral", "HTML"])
def test_xml_in_a_literal_is_not_parsed(kind: str) -> None:
    """Parsed, as rdflib does, 1 MB of it takes 200 MB, and odd XML is another literal."""
    text, datatype = "<a>" * 200_000, f"http://www.w3.org/1999/02/22-rdf-syntax-ns#{kind}"
    term = {"type": "literal", "value": text, "datatype": datatype}
    with serving(lambda seen: (200, {}, rows(term))) as server:
        [[value]] = open_kg(server.url, dialect="generic").select(SELECT).rows
    [[local]] = films(f'[] <urn:p> "{text}"^^<{datatype}> .').select(SELECT).rows
    for one in (value, local, from_data(term, Term)):
        assert term_to_data(one) == term
        assert isinstance(one, Literal) and isinstance(one.value, str)


@pytest.mark.parametrize(
    ("field", "ask"),
    [
        ("search", _wikibase),
        ("data", lambda url: model(f"openai:tiny@{url}").list_models(20.0)),  # type: ignore[attr-defined]
        ("models", lambda url: model(f"ollama:tiny@{url}").list_models(20.0)),  # type: ignore[attr-defined]
        ("models", ASK["ollama"]),
    ],
    ids=["wikidata", "openai", "ollama", "a reply"],
)
def test_document_with_millions_of_items_is_not_parsed(
    field: str, ask: Callable[[str], object]
) -> None:
    """The error messages of a validator for all items would take 5 GB."""
    refused(ask, 200, {}, {field: [0] * 1_000_000}, says=r"more than [12],000,000 bytes")


def test_lines_of_a_document_that_is_no_stream_count_together() -> None:
    document = json.dumps({"models": [0] * 1_000_000}, indent=0).encode()
    listing = lambda url: model(f"ollama:tiny@{url}").list_models(20.0)  # type: ignore[attr-defined]  # noqa: E731
    refused(listing, 200, {}, document, says="more than 2,000,000 bytes")


@pytest.mark.parametrize("name", ASK)
@pytest.mark.parametrize("charset", ["rot13", "zip", "idna", "utf-7"])
def test_charset_of_an_error_is_ignored(name: str, charset: str) -> None:
    headers = {"Content-Type": f"application/json; charset={charset}"}
    refused(ASK[name], 400, headers, {"error": "syntax +AEE-"}, says=r"syntax \+AEE-")


# --- environments

ODD_ENVIRONMENT = {
    "HTTP_PROXY": f"host:{KEY}",
    "ALL_PROXY": f"socks5://user:{KEY}@127.0.0.1:9",
    "NO_PROXY": "[::1",
    "SSL_CERT_FILE": "/nowhere",
    "OLLAMA_API_KEY": "kl\u00e9-of-Ollama",
    "OLLAMA_HOST": "host:99999",
}


@pytest.mark.parametrize("variable", ODD_ENVIRONMENT)
@pytest.mark.parametrize("name", SERVERS)
def test_environment_in_which_no_client_can_be_made_is_an_error(
    name: str, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, ODD_ENVIRONMENT[variable])
    monkeypatch.delitem(sys.modules, "ollama", raising=False)  # makes a client when it is imported
    with pytest.raises(KgwbError) as caught:
        ASK[name]("http://127.0.0.1:9")
    assert caught.value.hint
    assert KEY not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("name", ["openai", "ollama"])
def test_calls_share_the_certificates_that_were_read(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    refused(ASK[name], 404)  # imports the SDK, which may read some itself
    contexts = []
    read_certificates = ssl.SSLContext.load_verify_locations

    def count_reading(context: ssl.SSLContext, *files: Any, **options: Any) -> None:
        contexts.append(context)
        read_certificates(context, *files, **options)

    monkeypatch.setattr(ssl.SSLContext, "load_verify_locations", count_reading)
    refused(ASK[name], 404)
    refused(ASK[name], 404)
    assert contexts == []

    own_file = tmp_path / "certificates.pem"
    own_file.write_bytes(Path(certifi.where()).read_bytes())
    monkeypatch.setenv("SSL_CERT_FILE", str(own_file))
    refused(ASK[name], 404)
    refused(ASK[name], 404)
    assert len(contexts) == 1


def test_queries_of_endpoints_share_the_certificates_that_were_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(FIRST))
    made = []

    def count_making() -> ssl.SSLContext:
        context = ssl.create_default_context()
        made.append(context)
        return context

    monkeypatch.setattr(ssl, "_create_default_https_context", count_making)
    with secured("GET", FIRST) as url:
        kg = open_kg(f"{url}/sparql", dialect="generic")
        for _ in range(3):
            kg.select(SELECT)
    assert len(made) == 1


@contextmanager
def secured(name: str, certificate: Path) -> Iterator[str]:
    """A server that proves itself with a certificate and gives a reply to ``ASK[name]``; its address."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with serving(lambda seen: (200, {}, body("secured", name))) as plain:
        plain.wrap(context)
        yield plain.url.replace("http:", "https:")


@pytest.fixture
def trusted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The file of the certificates that are trusted: the first one."""
    monkeypatch.setenv("no_proxy", "*")
    file = tmp_path / "trusted.pem"
    file.write_bytes(FIRST.read_bytes())
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    return file


@pytest.mark.parametrize("name", SERVERS)
def test_certificates_that_changed_under_the_same_path_are_read_again(
    name: str, trusted: Path
) -> None:
    """So a person who adds the certificate of a server need not start the kernel anew."""
    with secured(name, FIRST) as first, secured(name, SECOND) as second:
        assert ASK[name](first) == "secured"
        with pytest.raises(KgwbError):
            ASK[name](second)
        trusted.write_bytes(FIRST.read_bytes() + SECOND.read_bytes())
        assert ASK[name](second) == "secured"
        trusted.write_bytes(SECOND.read_bytes())
        with pytest.raises(KgwbError):
            ASK[name](first)


@pytest.mark.parametrize("name", ["openai", "ollama"])
def test_a_model_that_is_open_sees_certificates_that_were_added(name: str, trusted: Path) -> None:
    request = ChatRequest("task", (Message("user", "Who wrote Faust?"),), timeout_s=20.0)
    with secured(name, SECOND) as url:
        opened = model(f"{name}:tiny@{url}")
        with pytest.raises(KgwbError):
            opened.complete(request, None, threading.Event())
        trusted.write_bytes(FIRST.read_bytes() + SECOND.read_bytes())
        assert opened.complete(request, None, threading.Event()).text == "secured"


# --- keys that come back


REAL = (KEY, "0123THEKEY", "hf_" + "abcDEF" * 6, "secret-123")
WORDS = ("x", "none", "EMPTY", "ollama", "lm-studio", "sk-no-key-required", "1" * 8)


@pytest.mark.parametrize("key", REAL + WORDS)
@pytest.mark.parametrize("name", SERVERS)
def test_a_key_is_masked_before_a_reply_is_read(
    name: str, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So the record has what was read, and a replay reads the same. A key that is a word stays."""
    monkeypatch.setenv("OPENAI_API_KEY", key)
    monkeypatch.setenv("OLLAMA_API_KEY", key)
    with serving(lambda seen: (200, {}, body(f"the xenon {key} example", name))) as server:
        told = _graph(server.url, key=key) if name == "GET" else ASK[name](server.url)
    assert told == f"the xenon {key if key in WORDS else '***'} example"


@pytest.mark.parametrize("name", ["keyspace", "keyword", "author", "authority", "passage"])
def test_value_of_a_parameter_that_is_not_a_key_stays_in_terms(name: str) -> None:
    term = {"type": "uri", "value": "http://e/wikidata2024/Q1"}
    with serving(lambda seen: (200, {}, rows(term))) as server:
        kg = open_kg(f"{server.url}/sparql?{name}=wikidata2024", dialect="generic")
        assert str(kg.select(SELECT).rows[0][0]) == "http://e/wikidata2024/Q1"
        assert "2024" not in kg.source
