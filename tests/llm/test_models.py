from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from model_servers import Answer, OllamaServer, OpenAIServer

from kgwb import llm
from kgwb.errors import RunFileError, UnknownModelError
from kgwb.llm import ModelStatus, OllamaModel, OpenAIModel, Replay, available, model


def status(kind: str, timeout_s: float = 1.0) -> ModelStatus:
    return {state.kind: state for state in available(timeout_s)}[kind]


def test_importing_loads_no_sdk() -> None:
    code = "import sys, kgwb.llm; print(sorted({'openai', 'ollama', 'httpx', 'httpx2'} & set(sys.modules)))"
    seen = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert seen.stdout.strip() == "[]"


def test_exported_names_are_sorted_and_exist() -> None:
    assert llm.__all__ == sorted(llm.__all__)
    assert all(hasattr(llm, name) for name in llm.__all__)


def test_rules_need_nothing() -> None:
    pytest.importorskip("kgwb.llm.rules")
    assert model("rules").name == "rules"


@pytest.mark.parametrize(
    ("spec", "name", "url"),
    [
        ("openai:gpt-4o", "gpt-4o", "https://api.openai.com/v1"),
        ("openai:ft:gpt-4o:me", "ft:gpt-4o:me", "https://api.openai.com/v1"),
        ("openai:tiny@http://localhost:8000/v1", "tiny", "http://localhost:8000/v1"),
        ("openai:@cf/meta/tiny@https://ai.example/v1", "@cf/meta/tiny", "https://ai.example/v1"),
    ],
)
def test_models_of_openai(key: str, spec: str, name: str, url: str) -> None:
    made = model(spec)
    assert isinstance(made, OpenAIModel)
    assert (made.name, made.model, made.url, made.remote) == (spec, name, url, True)


def test_the_address_may_be_an_option_or_stand_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (
        model("openai:tiny", base_url="http://localhost:8000/v1/").name
        == "openai:tiny@http://localhost:8000/v1"
    )
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:9000/v1")
    assert model("openai:tiny").name == "openai:tiny@http://localhost:9000/v1"


def test_models_of_ollama() -> None:
    made = model("ollama:llama3.2:3b@http://gpu.example:11434")
    assert isinstance(made, OllamaModel)
    assert (made.name, made.model) == ("ollama:llama3.2:3b@http://gpu.example:11434", "llama3.2:3b")
    assert model("ollama:llama3.2:3b").name == "ollama:llama3.2:3b"


def test_replay_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text("", encoding="utf-8")
    made = model(f"replay:{path}")
    assert isinstance(made, Replay)
    assert made.name == "replay:run.jsonl"
    with pytest.raises(RunFileError, match="cannot be read"):
        model(f"replay:{tmp_path / 'none.jsonl'}")


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


def test_a_server_of_ones_own_needs_no_key(openai_server: OpenAIServer) -> None:
    made = model(f"openai:tiny@{openai_server.url}")
    assert isinstance(made, OpenAIModel)
    assert made.models() == ("small", "tiny")


@pytest.mark.parametrize("url", ["http://me:THEKEY@host/v1", "http://host/v1?api-key=THEKEY"])
def test_an_address_with_a_key_in_it_is_refused_unseen(url: str) -> None:
    for spec in (f"openai:tiny@{url}", f"ollama:tiny@{url}"):
        with pytest.raises(UnknownModelError, match="must not hold") as caught:
            model(spec)
        assert "THEKEY" not in str(caught.value)


@pytest.mark.parametrize("url", ["localhost:8000", "ftp://host", "http://", "http://host:x", "http://a b"])
def test_an_address_that_is_none(url: str) -> None:
    with pytest.raises(UnknownModelError, match="not the address of a server"):
        model("openai:tiny", base_url=url)


def test_rules_and_replay_are_always_there() -> None:
    assert [state.kind for state in available(0.2)] == ["rules", "human", "openai", "ollama", "replay"]
    assert status("rules").usable
    assert "replay:FILE" in status("replay").detail


def test_status_without_a_key() -> None:
    state = status("openai")
    assert not state.usable
    assert "OPENAI_API_KEY is not set; set OPENAI_API_KEY" in state.detail


def test_status_of_servers_that_run(
    openai_server: OpenAIServer, ollama_server: OllamaServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", openai_server.url)
    monkeypatch.setenv("OLLAMA_HOST", ollama_server.url)
    for kind, url in (("openai", openai_server.url), ("ollama", ollama_server.url)):
        assert status(kind) == ModelStatus(kind, True, f"{url} has 2 models", ("small", "tiny"))


def test_status_of_a_server_without_models(
    ollama_server: OllamaServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OLLAMA_HOST", ollama_server.url)
    ollama_server.model_names = []
    assert status("ollama") == ModelStatus("ollama", False, f"{ollama_server.url} answers, but has no models")


def test_status_of_a_wrong_key(
    openai_server: OpenAIServer, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", openai_server.url)
    monkeypatch.setattr(openai_server, "listing", lambda: Answer({"error": {"message": f"bad {key}"}}, 401))
    state = status("openai")
    assert (state.usable, "answers 401: bad ***" in state.detail) == (False, True)
    assert key not in repr(state)


def test_status_waits_no_longer_than_told(
    openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", openai_server.url)
    monkeypatch.setattr(openai_server, "listing", lambda: Answer({}, delay_s=10))
    assert "no reply from" in status("openai", 0.2).detail


def test_status_where_nobody_listens(free_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_HOST", free_url)
    assert json.dumps(status("ollama").detail).startswith(f'"{free_url} cannot be reached')
