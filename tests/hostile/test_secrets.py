"""Keys and passwords that servers send back are masked in everything that is stored or shown.

That is messages, records, files, logs and pages. Variables in memory may hold them.
"""

from __future__ import annotations

import base64
import logging
import sqlite3
import subprocess
import sys
import traceback
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import ipywidgets as widgets
import nbformat
import pytest
from nbclient import NotebookClient
from rdflib import URIRef
from small import DIRECTED, chatty

from hostile.servers import Said, Seen, serving
from kgwb import cli, open_kg
from kgwb.errors import KgwbError
from kgwb.kg import Graph
from kgwb.llm import Scripted, model
from kgwb.run import Run
from kgwb.run.store import STORE_FILE
from kgwb.show.comparison import to_html
from kgwb.ui.debugger import VIEW_LABELS, Debugger
from kgwb.ui.session import session_of

KEY = "sk-proj-kGwB0123456789/abc+DEF=xyz"
ODD_KEY = "plainkeywithoutaform77"
PASSWORD = "pa55:w/ord@7+yes"
API_KEY = "q7Zp/apikey+value=1"
PREFIXES = ("", "x", "xy")
"""Texts before a secret: in base64 it has another form after each."""


def text_of(file: Path) -> str:
    """What is in a file; of a store of calls, what its calls say."""
    if file.name != STORE_FILE:
        return file.read_text()
    with closing(sqlite3.connect(file)) as database:
        packed = database.execute("SELECT data FROM calls").fetchall()
    return "".join(zlib.decompress(data).decode() for (data,) in packed)


def in_base64(secret: str) -> list[str]:
    """Return the base64 of a secret behind each of PREFIXES, in both alphabets."""
    forms = []
    for prefix in PREFIXES:
        data = f"{prefix}{secret}".encode()
        forms += [base64.b64encode(data).decode(), base64.urlsafe_b64encode(data).decode()]
    return forms


SECRETS = (
    *(
        form
        for secret in (KEY, ODD_KEY, PASSWORD, API_KEY)
        for form in (secret, quote(secret), quote(secret, safe=""))
    ),
    base64.b64encode(f"reader:{PASSWORD}".encode()).decode()[:-4],
    *(form[4:-4] for secret in (KEY, ODD_KEY, PASSWORD, API_KEY) for form in in_base64(secret)),
)
STATUSES = (200, 206, 301, 401, 404, 429, 503)


def assert_no_secret(where: str, *things: object) -> None:
    """Assert that none of these things holds a secret in any encoding. ``where`` names them."""
    for thing in things:
        text = thing.decode("utf-8", "replace") if isinstance(thing, bytes) else str(thing)
        for secret in SECRETS:
            at = text.find(secret)
            assert at < 0, f"{where} holds {secret}: ...{text[max(0, at - 200) : at + 60]}"


def shown_error(error: BaseException) -> str:
    """Return an error as a notebook or a terminal shows it, with its context and its attributes."""
    return "".join(traceback.format_exception(error)) + repr(error) + repr(vars(error))


# --- model servers


def echo(seen: Seen) -> dict[str, Any]:
    """Return the request as the debugging page of a server would show it."""
    key = key_of(seen)
    encoded = " ".join(in_base64(key))
    return {"request": str(seen), "headers": seen.headers, "key": key, "encoded": encoded}


def key_of(seen: Seen) -> str:
    return seen.headers.get("Authorization", "").removeprefix("Bearer ")


def openai_says(status: int) -> Callable[[Seen], Said]:
    def answer(seen: Seen) -> Said:
        key = key_of(seen)
        headers = {"X-Echo": key, "Retry-After": "0", "Content-Type": "application/json"}
        headers["Location"] = f"/elsewhere?key={key}"
        if status >= 300:
            message = f"Incorrect API key provided: {key} {in_base64(key)}. {seen}"
            return status, headers, {"error": {"message": message, "param": key, "code": key}}
        if seen.method == "GET":
            return 200, headers, {"data": [{"id": key}, {"id": f"model-{key}"}]}
        message = {
            "role": "assistant",
            "content": f'{{"label": "{key}", "headers": "{key}"}} {echo(seen)}',
        }
        choice = {"index": 0, "message": message, "finish_reason": key}
        said = {
            "id": key,
            "model": f"model {key}",
            "choices": [choice],
            "usage": {"prompt_tokens": 1},
        }
        return 200, headers, said

    return answer


@pytest.fixture(autouse=True)
def _everything_is_logged(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    with caplog.at_level(logging.DEBUG):
        yield
    ours = [record for record in caplog.records if record.name.startswith("kgwb")]
    assert_no_secret("the log", *(record.getMessage() + repr(record.args) for record in ours))


@pytest.mark.parametrize("key", [KEY, ODD_KEY], ids=["of a known form", "of no form"])
@pytest.mark.parametrize("status", STATUSES)
def test_key_that_a_model_server_sends_back_is_masked_everywhere(
    status: int, key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    monkeypatch.setattr("kgwb.llm.remote.INITIAL_BACKOFF_S", 0.0)
    with serving(openai_says(status)) as server:
        made = model(f"openai:m@{server.url}/v1")
        run = chatty("Who directed Arrival?", made, path=tmp_path / "kept.jsonl")  # type: ignore[arg-type]
        with pytest.raises(KgwbError) as caught:
            run.go()
        assert any(key in str(seen) for seen in server.seen)
        assert_no_secret("the error", shown_error(caught.value))
        try:
            assert_no_secret("the list", made.list_models())  # type: ignore[attr-defined]
        except KgwbError as error:
            assert_no_secret("the error of a list", shown_error(error))
    assert_no_secret("the model", repr(made))
    assert_no_secret_in_run(run, tmp_path)


# --- endpoints


def sparql_says(status: int) -> Callable[[Seen], Said]:
    def answer(seen: Seen) -> Said:
        token = seen.headers.get("Authorization", "").removeprefix("Basic ")
        decoded = base64.b64decode(token or "").decode("utf-8", "replace")
        fields = [value for values in seen.fields.values() for value in values]
        password = decoded.partition(":")[2]
        known = " ".join((str(seen), token, decoded, *in_base64(password), *fields))
        headers = {
            "Content-Type": "application/sparql-results+json",
            "Server": known.replace("\n", " ")[:500],
            "Retry-After": "0",
        }
        if status >= 300:
            headers["Location"] = "http://127.0.0.1:9/" if status == 301 else "/"
            return status, headers, f"<h1>{known}</h1>"
        value = {"type": "literal", "value": known}
        vertex, predicate = ({"type": "uri", "value": f"http://e/{name}"} for name in "ap")
        if "label" in seen.query:
            row = {"v": vertex, "label": value, "p": predicate, "l": value}
        else:
            row = {"s": value, "p": value, "o": {"type": "nonsense", "value": known}}
        head = {"vars": list(row), "link": [known]}
        return status, headers, {"head": head, "results": {"bindings": [row]}, "error": known}

    return answer


def graph(url: str, **options: Any) -> Graph:
    return open_kg(address(url), **options)


def address(url: str, scheme: str = "http") -> str:
    """Return the address of an endpoint with user, password and key."""
    host = url.removeprefix("http://")
    return f"{scheme}://reader:{quote(PASSWORD, safe='')}@{host}/sparql?apikey={quote(API_KEY, safe='')}"


@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("dialect", ["virtuoso", None])
def test_password_that_an_endpoint_sends_back_is_masked_everywhere(
    status: int, dialect: str | None, tmp_path: Path
) -> None:
    with serving(sparql_says(status)) as server:
        kg = graph(server.url, dialect=dialect)
        assert_no_secret("the graph", repr(kg), kg.source, kg.identity)
        asks: tuple[Callable[[], Any], ...] = (
            lambda: kg.select("SELECT * { ?s ?p ?o }"),
            lambda: kg.ask("ASK { ?s ?p ?o }"),
            lambda: kg.construct("CONSTRUCT WHERE { ?s ?p ?o }"),
            lambda: kg.search("Arrival", 5),
            lambda: kg.exact(["Arrival"]),
            lambda: kg.names([URIRef("http://e/a")]),
        )
        for ask in asks:
            try:
                assert_no_secret("an answer", ask())
            except KgwbError as error:
                assert_no_secret("the error", shown_error(error))
        assert any(API_KEY in str(seen.fields) for seen in server.seen)
        run = chatty("Who directed Arrival?", Scripted(DIRECTED), kg, path=tmp_path / "kept.jsonl")
        try:
            run.go()
        except KgwbError as error:
            assert_no_secret("the error", shown_error(error))
    assert_no_secret_in_run(run, tmp_path)


PLAIN = ("http://h/g", "json")
"""Values of parameters that are shown."""
FORMS = {
    "unencoded": ("rea'd<e&r\":pa'55<w&or\"d@7@{}/sparql", ["pa'55<w", "rea'd"]),
    "short": ("reader:pw7@{}/sparql?v=k9&b", ["pw7", "k9", "&b", "reader"]),
    "no password": ("longusertoken77@{}/sparql", ["longusertoken77"]),
    "no name": ("{}/sparql?k9Zq2/7+value==", ["k9Zq2"]),
    "in an address": ("{}/sparql?graph=http://h/?k9Zq2ofit", ["k9Zq2"]),
    "in the path": ("{}/sparql;jsessionid=k9Zq2ofit", ["k9Zq2"]),
} | {
    name: (
        f"{{}}/sparql?{name}=k9Zq2ofit&default-graph-uri={PLAIN[0]}&format={PLAIN[1]}",
        ["k9Zq2"],
    )
    for name in ("sig SessionID bearer pw key access_token k unheard-of").split()
}
"""Addresses, and the parts of them that must not be shown."""


def one_question(folder: Path) -> Path:
    file = folder / "questions.jsonl"
    file.write_text('{"id": "1", "question": "Who directed Arrival?", "answers": ["http://e/a"]}\n')
    return file


@pytest.mark.parametrize("form", FORMS)
def test_an_address_is_shown_without_its_secrets(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """This holds for every command and every file, whatever part of it the server sends back."""
    monkeypatch.setattr("kgwb.bench.serve.Text2SparqlServer.serve_forever", lambda _: None)
    written, hidden = FORMS[form]
    questions = one_question(tmp_path)
    for status in (200, 401):
        with serving(sparql_says(status)) as server:
            url = f"http://{written.format(server.url.removeprefix('http://'))}"
            kg, out = open_kg(url, dialect="generic"), tmp_path / str(status)
            with pytest.raises(KgwbError) as caught:
                kg.select("SELECT * { ?s ?p ?o }")
            seen = [repr(kg), kg.source, kg.identity, str(caught.value)]
            cli.main(["ask", "--kg", url, "--save", str(out / "run"), "Who directed Arrival?"])
            files = ["--questions", str(questions), "--out", str(out), "--save-runs"]
            cli.main(["bench", "--kg", url, *files])
            cli.main(["doctor", "--kg", url])
            cli.main(["serve", "--kg", url, "--dataset", f"http://d={url}", "--port", "0"])
            with pytest.raises(SystemExit):
                cli.main(["serve", "--kgs", url])
            assert server.seen
        seen += [
            *capsys.readouterr(),
            *(text_of(file) for file in out.rglob("*") if file.is_file()),
        ]
        assert [text for text in seen if any(secret in text for secret in hidden)] == []
        assert "default-graph-uri" not in url or all(value in kg.source for value in PLAIN)


def test_identity_does_not_depend_on_the_key() -> None:
    rests = ("", "k=1", "k=2", "k=1&key=1", "graph=a", "graph=b")
    identities = {open_kg(f"http://h/sparql?{rest}").identity for rest in rests}
    assert len(identities) == len(rests)
    one, same = (open_kg(f"http://{end}") for end in ("a:b@h/sparql?key=1", "h/sparql?key=2"))
    assert one.identity == same.identity


def test_a_hint_of_kgwb_is_not_masked() -> None:
    with serving(sparql_says(401)) as server, pytest.raises(KgwbError) as caught:
        open_kg(server.url, dialect="generic").select("SELECT * { ?s ?p ?o }")
    assert "https://USER:PASSWORD@host/sparql" in caught.value.hint


SHAPES = (
    "?key",
    "://",
    "://a:",
    "://@a",
    "&key=",
    ";",
    "?" * 70,
    "key",
    "@",
    ":/",
    "k" * 81 + "=?",
    "a b ",
)


def test_message_of_a_server_is_cut_before_it_is_masked() -> None:
    """It runs in another process, because a pattern that takes for ever would stop all threads."""

    def answer(seen: Seen) -> Said:
        shape = SHAPES[int(seen.path.partition("?")[0].removeprefix("/"))]
        return (
            200,
            {"Content-Type": "application/json"},
            {"error": shape * (1_000_000 // len(shape))},
        )

    code = (
        "import kgwb, sys\nfrom kgwb.errors import KgwbError\n"
        f"for n in range({len(SHAPES)}):\n"
        "    try: kgwb.open_kg(f'{sys.argv[1]}/{n}', dialect='generic').select('SELECT * { ?s ?p ?o }')\n"
        "    except KgwbError as error: assert len(str(error)) < 5_000, n"
    )
    with serving(answer) as server:
        subprocess.run([sys.executable, "-c", code, server.url], check=True, timeout=300)
        assert len(server.seen) == len(SHAPES)


ODD = {
    "v": {"type": "uri", "value": "http://e/ \x1b[31mred\x1b]0;t\x07\u202e"},
    "n": {
        "type": "literal",
        "value": "\x1b[31mx",
        "datatype": "http://www.w3.org/2001/XMLSchema#integer",
    },
    "b": {
        "type": "literal",
        "value": "maybe",
        "datatype": "http://www.w3.org/2001/XMLSchema#boolean",
    },
}


@pytest.mark.parametrize("logging_by", ["", "logging.basicConfig();"])
def test_warnings_of_libraries_have_no_control_characters(logging_by: str, tmp_path: Path) -> None:
    """If logging is configured, the warning is still logged."""
    run = chatty("Who directed Arrival?", Scripted(DIRECTED)).go().save(tmp_path / "run")
    lines = run.read_text()
    assert '"http://example.org/arrival"' in lines
    run.write_text(lines.replace("http://example.org/arrival", "http://e/ \\u001b[31m"))
    code = (
        f"import logging, sys; {logging_by} import kgwb\n"
        "print(kgwb.open_kg(sys.argv[1], dialect='generic').select('SELECT * { ?v ?n ?b }').rows)\n"
        "try: kgwb.load_run(sys.argv[2])\nexcept kgwb.errors.KgwbError: pass"
    )
    body = {"head": {"vars": list(ODD)}, "results": {"bindings": [ODD]}}
    with serving(lambda seen: (200, {"Content-Type": "application/json"}, body)) as server:
        line = [sys.executable, "-c", code, server.url, str(run)]
        done = subprocess.run(line, check=True, capture_output=True, text=True, timeout=300)
    assert "red" in done.stdout
    assert not any(sign in done.stderr for sign in ("\x1b", "\x07", "\u202e", "Traceback"))
    assert ("valid URI" in done.stderr) == bool(logging_by), done.stderr
    assert logging_by or not done.stderr


NOWHERE = (
    *(address(host) for host in ("127.0.0.1:9", "127.0.0.1:9/a b", "kgwb.invalid", "h/\x7f")),
    *(address("127.0.0.1:9", scheme) for scheme in ("HTTP", "ftp", "http:")),
    *(f"http://reader:{mark.join(PASSWORD.split('/'))}@h/sparql?key={API_KEY}" for mark in "/?#"),
    f"reader:{PASSWORD}@h/sparql?apikey={API_KEY}",
)


@pytest.mark.parametrize("url", NOWHERE)
def test_an_address_without_a_server_is_shown_without_secrets(url: str) -> None:
    with pytest.raises(KgwbError) as caught:
        open_kg(url, dialect="generic").select("SELECT * { ?s ?p ?o }")
    assert_no_secret("the error", shown_error(caught.value))


# --- what is kept and shown


def assert_no_secret_in_run(run: Run, folder: Path) -> None:
    """Assert that a run, its files, pages and widgets have no secret."""
    run.save(folder / "saved.jsonl")
    for each in (run, *run.steps):
        assert_no_secret("the run", repr(each), to_html(each))
    debugger = Debugger(session_of(run))
    for view in VIEW_LABELS:
        debugger.update({"do": "view", "arg": view})
    assert_no_secret("the debugger", debugger.static_html(), debugger.html, debugger.get_state())
    widgets.Widget.close_all()
    assert_no_secret_in_files(folder)


def assert_no_secret_in_files(folder: Path) -> None:
    for path in folder.rglob("*"):
        if path.is_file():
            assert_no_secret(str(path.name), path.name, path.read_bytes())


def test_command_line_shows_and_writes_no_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    files = ["--questions", str(one_question(tmp_path)), "--out", str(tmp_path), "--save-runs"]
    for status in (200, 401):
        with serving(sparql_says(status)) as server, serving(openai_says(status)) as models:
            setup = ["--kg", address(server.url), "--model", f"openai:m@{models.url}/v1"]
            cli.main(["ask", *setup, "--json", "Who directed Arrival?"])
            cli.main(["bench", *setup, *files])
            cli.main(["doctor", *setup])
        assert server.seen
    said = capsys.readouterr()
    assert_no_secret("the terminal", said.out, said.err)
    assert_no_secret_in_files(tmp_path)


NOTEBOOK = """
import kgwb, logging
from kgwb.ui.choosers import GraphChooser
logging.basicConfig(level=logging.DEBUG)
logging.getLogger("openai").setLevel(logging.WARNING)
logging.getLogger("httpx").setLevel(logging.WARNING)
import os
kg = kgwb.open_kg(os.environ["TEST_GRAPH"], dialect="generic")
bench = kgwb.Workbench(kg, os.environ["TEST_MODEL"])
run = bench.begin("Who directed Arrival?")
display(bench, kg, run, bench.debug(run), bench.chat())
---
bench.ask("Who directed Arrival?")
---
kg.select("SELECT * { ?s ?p ?o }")
---
bench.debug()
"""


def test_executed_notebook_has_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    cells = [nbformat.v4.new_code_cell(cell) for cell in NOTEBOOK.split("---\n")]
    notebook = nbformat.v4.new_notebook(cells=cells)
    with serving(sparql_says(401)) as server, serving(openai_says(401)) as models:
        monkeypatch.setenv("TEST_GRAPH", address(server.url))
        monkeypatch.setenv("TEST_MODEL", f"openai:m@{models.url}/v1")
        place = {"metadata": {"path": str(tmp_path)}}
        NotebookClient(notebook, timeout=300, allow_errors=True, resources=place).execute()
        assert server.seen
        assert models.seen
    text = nbformat.writes(notebook)
    assert "traceback" in text
    assert "Arrival" in text
    assert_no_secret("the notebook", text, text.replace("\\u001b", "\x1b"))
    assert_no_secret_in_files(tmp_path)
