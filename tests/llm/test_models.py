"""Which models a specification names, and which can be used here."""

from __future__ import annotations

import subprocess
import sys

import pytest
from model_servers import Answer, OllamaServer, OpenAIServer

from kgwb import llm
from kgwb.errors import UnknownModelError
from kgwb.llm import ModelStatus, OllamaModel, OpenAIModel, available, model


def status(kind: str, timeout_s: float = 1.0) -> ModelStatus:
    return {state.kind: state for state in available(timeout_s)}[kind]


def test_importing_loads_no_sdk() -> None:
    code = "import sys, kgwb.llm; print(sorted({'openai', 'ollama', 'httpx', 'httpx2'} & set(sys.modules)))"
    seen = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert seen.stdout.strip() == "[]"


def test_exported_names_are_sorted_and_exist() -> None:
    assert sorted(llm.__all__, key=lambda name: (not name.isupper(), name)) == llm.__all__
    assert all(hasattr(llm, name) for name in llm.__all__)


@pytest.mark.parametrize(
    ("spec", "name", "url"),
    [
        ("openai:gpt-4o", "gpt-4o", "https://api.openai.com/v1"),
        ("openai:ft:gpt-4o:me", "ft:gpt-4o:me", "https://api.openai.com/v1"),
        ("openai:tiny@http://localhost:8000/v1", "tiny", "http://localhost:8000/v1"),
        ("openai:@cf/meta/tiny@https://ai.example/v1", "@cf/meta/tiny", "https://ai.example/v1"),
        ("ollama:llama3.2:3b", "llama3.2:3b", "http://127.0.0.1:11434"),
        ("ollama:llama3.2:3b@http://gpu.example:11434", "llama3.2:3b", "http://gpu.example:11434"),
    ],
)
def test_models_behind_a_server(key: str, spec: str, name: str, url: str) -> None:
    remote = model(spec)
    assert isinstance(remote, OpenAIModel | OllamaModel)
    assert (remote.name, remote.model, remote.url, remote.remote) == (spec, name, url, True)


def test_the_address_may_be_an_option_or_stand_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    given = model("openai:tiny", base_url="http://localhost:8000/v1/")
    assert given.name == "openai:tiny@http://localhost:8000/v1"
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:9000/v1")
    assert model("openai:tiny").name == "openai:tiny@http://localhost:9000/v1"


@pytest.mark.parametrize(
    "spec",
    ["", "gpt-4o", "openai", "openai:", "ollama:@http://localhost", "rules:fast", "replay:", "azure:gpt-4o"],
)
def test_an_unknown_specification_names_the_known_forms(key: str, spec: str) -> None:
    with pytest.raises(UnknownModelError, match="no model named") as caught:
        model(spec)
    assert all(form in caught.value.hint for form in llm.FORMS)


@pytest.mark.parametrize("base_url", [None, "https://eu.api.openai.com/v1"])
def test_a_missing_key_says_what_to_set(base_url: str | None) -> None:
    with pytest.raises(UnknownModelError, match="OPENAI_API_KEY is not set") as caught:
        model("openai:gpt-4o", base_url=base_url)
    assert "`rules`" in caught.value.hint


@pytest.mark.parametrize("url", ["http://me:THEKEY@host/v1", "http://host/v1?api-key=THEKEY"])
@pytest.mark.parametrize("kind", ["openai:tiny@", "ollama:tiny@", "opnai:tiny@", ""])
def test_an_address_with_a_key_in_it_is_refused_unseen(kind: str, url: str) -> None:
    says = "must not hold" if kind.startswith("o") and kind != "opnai:tiny@" else "no model named"
    with pytest.raises(UnknownModelError, match=says) as caught:
        model(kind + url)
    assert "THEKEY" not in str(caught.value)


@pytest.mark.parametrize("kind", ["openai", "ollama"])
@pytest.mark.parametrize("url", ["ftp://host", "http://", "http://host:x", "http://a b"])
def test_an_address_that_is_none(kind: str, url: str) -> None:
    with pytest.raises(UnknownModelError, match="not the address of a server"):
        model(f"{kind}:tiny", base_url=url)


# --- what can be used


def test_the_kinds_and_what_a_server_needs() -> None:
    assert [state.kind for state in available(0.2)] == ["rules", "human", "openai", "ollama", "replay"]
    assert status("rules").usable
    assert "replay:FILE" in status("replay").detail
    assert not status("openai").usable
    assert "OPENAI_API_KEY is not set; set OPENAI_API_KEY" in status("openai").detail


def test_servers_that_run(
    openai_server: OpenAIServer, ollama_server: OllamaServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", openai_server.url)
    monkeypatch.setenv("OLLAMA_HOST", ollama_server.url)
    for kind, url in (("openai", openai_server.url), ("ollama", ollama_server.url)):
        assert status(kind) == ModelStatus(kind, True, f"{url} has 2 models", ("small", "tiny"))
    ollama_server.model_names = []
    assert status("ollama") == ModelStatus("ollama", False, f"{ollama_server.url} answers, but has no models")
    monkeypatch.setenv("OLLAMA_HOST", "http://127.0.0.1:9")
    assert status("ollama").detail.startswith("http://127.0.0.1:9 cannot be reached")


@pytest.mark.parametrize(
    ("listing", "detail"),
    [
        (Answer({"error": {"message": "bad sk-proj-0123456789abcdefTHEKEY"}}, 401), "answers 401: bad ***"),
        (Answer({}, delay_s=10), "no reply from"),
        (Answer("<html>Welcome</html>"), "other than a model's reply: <html>Welcome"),
        (Answer({"data": [{"name": "tiny"}]}), "answers, but has no models"),
    ],
)
def test_servers_that_do_not_list_their_models(
    openai_server: OpenAIServer, key: str, monkeypatch: pytest.MonkeyPatch, listing: Answer, detail: str
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", openai_server.url)
    monkeypatch.setattr(openai_server, "listing", lambda: listing)
    state = status("openai", 0.5)
    assert not state.usable
    assert detail in state.detail
    assert key not in repr(state)
