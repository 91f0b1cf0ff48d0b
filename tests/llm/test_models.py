"""Which models a specification names, and which can be used here."""

from __future__ import annotations

import subprocess
import sys

import pytest
from model_servers import Answer, OllamaServer, OpenAIServer

from kgwb.cli import doctor
from kgwb.errors import UnknownModelError
from kgwb.llm import SPEC_FORMATS, ModelStatus, OllamaModel, OpenAIModel, check_models, model


def status(kind: str, timeout_s: float = 1.0) -> ModelStatus:
    return {state.kind: state for state in check_models(timeout_s)}[kind]


def test_importing_loads_no_sdk() -> None:
    code = "import sys, kgwb.llm; print(sorted({'openai', 'ollama', 'httpx', 'httpx2'} & set(sys.modules)))"
    seen = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert seen.stdout.strip() == "[]"


SERVERS = ("openai", "ollama")
OPENAI_URL, OLLAMA_URL = "https://api.openai.com/v1", "http://127.0.0.1:11434"


@pytest.mark.parametrize(
    ("spec", "name", "url"),
    [
        ("openai:ft:gpt-4o:me", "ft:gpt-4o:me", OPENAI_URL),
        ("openai:@cf/meta/tiny@https://ai.example/v1", "@cf/meta/tiny", "https://ai.example/v1"),
        ("ollama:llama3.2:3b", "llama3.2:3b", OLLAMA_URL),
        ("ollama:llama3.2:3b@http://gpu.example:11434", "llama3.2:3b", "http://gpu.example:11434"),
    ],
)
def test_models_behind_a_server(key: str, spec: str, name: str, url: str) -> None:
    remote = model(spec)
    assert isinstance(remote, OpenAIModel | OllamaModel)
    assert (remote.name, remote.model, remote.url, remote.remote) == (spec, name, url, True)


@pytest.mark.parametrize(
    ("variable", "value", "name"),
    [
        ("OPENAI_BASE_URL", "http://localhost:9000/v1", "openai:tiny@http://localhost:9000/v1"),
        ("OLLAMA_HOST", "", "ollama:tiny"),
        ("OLLAMA_HOST", "0.0.0.0", "ollama:tiny"),
        ("OLLAMA_HOST", ":9000", "ollama:tiny@http://127.0.0.1:9000"),
        ("OLLAMA_HOST", "[::1]", "ollama:tiny@http://[::1]:11434"),
        ("OLLAMA_HOST", "gpu.example/ollama", "ollama:tiny@http://gpu.example:11434/ollama"),
        ("OLLAMA_HOST", "https://gpu.example/", "ollama:tiny@https://gpu.example"),
    ],
)
def test_the_address_comes_from_the_environment_or_an_option(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, name: str
) -> None:
    monkeypatch.setenv(variable, value)
    spec = name.partition("@")[0]
    assert model(spec).name == name
    assert (
        model(spec, base_url="http://localhost:8000/v1/").name == f"{spec}@http://localhost:8000/v1"
    )


ALL_FORMS = ", ".join(SPEC_FORMATS)
NO_NAMES = (
    "",
    *"gpt-4o openai openai: ollama:@http://localhost rules:fast replay: azure:gpt-4o".split(),
)
NO_URLS = ("ftp://host", "http://host:x", "http://a b")
WITH_KEYS = ("http://me:THEKEY@host/v1", "http://host/v1?api-key=THEKEY")
EU = {"base_url": "https://eu.api.openai.com/v1"}
REFUSED = [
    *((spec, {}, "no model named", ALL_FORMS) for spec in NO_NAMES),
    *(
        (f"{wrong}{url}", {}, "no model named", ALL_FORMS)
        for wrong in ("opnai:a@", "")
        for url in WITH_KEYS
    ),
    *(
        (f"{kind}:a", {"base_url": url}, "not the address", "")
        for kind in SERVERS
        for url in NO_URLS
    ),
    *((f"{kind}:a@{url}", {}, "must not hold", "") for kind in SERVERS for url in WITH_KEYS),
    *(("openai:gpt-4o", options, "OPENAI_API_KEY is not set", "`rules`") for options in ({}, EU)),
]


@pytest.mark.parametrize(("spec", "options", "says", "hint"), REFUSED)
def test_a_specification_of_no_model_is_refused_with_a_hint(
    spec: str, options: dict[str, str], says: str, hint: str
) -> None:
    with pytest.raises(UnknownModelError, match=says) as caught:
        model(spec, **options)
    assert hint in caught.value.hint
    assert "THEKEY" not in str(caught.value)


# The status of models


def test_the_status_of_each_kind_of_model() -> None:
    assert [state.kind for state in check_models(0.2)] == [
        "rules",
        "human",
        "openai",
        "ollama",
        "replay",
    ]
    assert status("rules").is_usable
    assert "replay:FILE" in status("replay").detail
    assert not status("openai").is_usable
    assert "OPENAI_API_KEY" in status("openai").detail


def test_the_status_of_servers(
    openai_server: OpenAIServer, ollama_server: OllamaServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", openai_server.url)
    monkeypatch.setenv("OLLAMA_HOST", ollama_server.url)
    for kind, url in (("openai", openai_server.url), ("ollama", ollama_server.url)):
        assert status(kind) == ModelStatus(kind, True, f"{url} has 2 models", ("small", "tiny"))
    ollama_server.model_names = []
    for url in (ollama_server.url, "http://127.0.0.1:9"):
        monkeypatch.setenv("OLLAMA_HOST", url)
        state = status("ollama")
        assert (state.is_usable, state.models) == (False, ())
        assert url in state.detail


@pytest.mark.parametrize(
    ("listing", "detail"),
    [
        (
            Answer({"error": {"message": "bad sk-proj-0123456789abcdefTHEKEY"}}, 401),
            "answers with HTTP status 401: bad ***",
        ),
        (Answer({}, delay_s=10), "no reply from"),
        (Answer("<html>Welcome</html>"), "other than a model's reply: <html>Welcome"),
        (Answer({"data": [{"name": "tiny"}]}), "answers, but has no models"),
    ],
)
def test_the_status_of_servers_that_do_not_list_their_models(
    openai_server: OpenAIServer,
    key: str,
    monkeypatch: pytest.MonkeyPatch,
    listing: Answer,
    detail: str,
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", openai_server.url)
    monkeypatch.setattr(openai_server, "listing", lambda: listing)
    state = status("openai", 0.5 if listing.delay_s else 20.0)
    assert not state.is_usable
    assert detail in state.detail
    assert key not in repr(state)


@pytest.mark.parametrize(
    ("name", "kind", "listing", "ok"),
    [
        ("other", "openai", None, True),
        ("", "openai", None, False),  # at an address without a server
        ("other", "openai", Answer({"error": "no such page"}, 404), True),
        ("other", "openai", Answer({"error": "bad key"}, 401), False),
        ("other", "ollama", None, False),
    ],
)
def test_doctor_tries_the_server_of_the_model_that_is_named(
    openai_server: OpenAIServer,
    ollama_server: OllamaServer,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    kind: str,
    listing: Answer | None,
    ok: bool,
) -> None:
    server = openai_server if kind == "openai" else ollama_server
    if listing is not None:
        monkeypatch.setattr(server, "listing", lambda: listing)
    url = server.url if name else "http://127.0.0.1:9/v1"
    found = list(doctor.run_health_checks("films", f"{kind}:{name or 'tiny'}@{url}"))
    assert [(check.ok, check.required) for check in found if check.name == "model"] == [(ok, True)]
