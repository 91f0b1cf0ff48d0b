"""What leaves the machine with a hosted model: said before the first request, once, and kept in the run.

The hosted server is one of this machine, which the requests reach through a proxy.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from model_servers import GOETHE, OllamaServer, OpenAIServer, Seen, ask

import kgwb
from kgwb.bench import Benchmark, BenchSetup, Results, load_questions
from kgwb.errors import InvalidReplyError
from kgwb.kg import open_kg, sample_path
from kgwb.llm import OpenAIModel
from kgwb.llm.base import NOTICES_FOLDER, SWITCH, DataNotice, presenter
from kgwb.network import is_loopback_host
from kgwb.ui.session import session_of

HOST = "models.example"
URL = f"http://{HOST}/v1"
NAME = f"openai:tiny@{URL}"


class HostedServer(OpenAIServer):
    """A server that is reached through a proxy, under the name of another host."""

    def answer(self, seen: Seen):  # type: ignore[no-untyped-def]
        assert seen.headers["host"] == HOST
        return super().answer(
            Seen(seen.path.removeprefix(f"http://{HOST}"), seen.headers, seen.body)
        )


@pytest.fixture
def hosted(monkeypatch: pytest.MonkeyPatch) -> Iterator[HostedServer]:
    with closing(HostedServer()) as server:
        monkeypatch.setenv("HTTP_PROXY", server.url.removesuffix("/v1"))
        yield server


@pytest.fixture
def shown() -> Iterator[list[DataNotice]]:
    """The notices that were shown."""
    notices: list[DataNotice] = []
    token = presenter.set(notices.append)
    yield notices
    presenter.reset(token)


def complete(name: str = "tiny", kg: kgwb.Graph | None = None) -> None:
    OpenAIModel(name, base_url=URL).complete(ask(), kg, threading.Event())


def test_it_is_shown_before_the_first_request_and_once_for_each_graph_and_model(
    hosted: HostedServer, shown: list[DataNotice]
) -> None:
    hosted.model_names.append("other")
    films, scholars = open_kg("films"), open_kg("scholars")
    chats_when_shown: list[int] = []
    presenter.set(lambda notice: (shown.append(notice), chats_when_shown.append(len(hosted.chats))))

    for kg, name in ((films, "tiny"), (films, "tiny"), (films, "other"), (scholars, "tiny")):
        complete(name, kg)

    assert [(notice.graph, notice.model) for notice in shown] == [
        (films.identity, NAME),
        (films.identity, f"openai:other@{URL}"),
        (scholars.identity, NAME),
    ]
    assert {notice.host for notice in shown} == {HOST}
    assert chats_when_shown == [0, 2, 3]


@pytest.mark.parametrize("content", [b"no time", b"\xff\n"])
def test_another_process_shows_it_again_only_if_the_file_is_damaged(
    hosted: HostedServer,
    shown: list[DataNotice],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    content: bytes,
) -> None:
    complete()
    [file] = (tmp_path / "cache" / NOTICES_FOLDER).iterdir()
    monkeypatch.setattr("kgwb.llm.base._shown_here", {})  # as in a new process
    complete()
    assert len(shown) == 1
    file.write_bytes(content)
    monkeypatch.setattr("kgwb.llm.base._shown_here", {})
    complete()
    assert (len(shown), len(hosted.chats)) == (2, 3)
    assert file.read_text() == shown[1].shown


def test_without_a_folder_to_write_to_it_is_shown_once_in_a_process(
    hosted: HostedServer, shown: list[DataNotice], tmp_path: Path
) -> None:
    (tmp_path / "cache").write_text("a file is in the way")
    complete()
    complete()
    assert len(shown) == 1


def test_the_terminal_has_it_on_the_error_output(
    hosted: HostedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    complete()
    written = capsys.readouterr()
    assert not written.out
    assert HOST in written.err
    assert NAME in written.err


def test_the_variable_acknowledges_it_and_the_run_keeps_it_all_the_same(
    hosted: HostedServer, shown: list[DataNotice], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SWITCH, "off")
    run = kgwb.Workbench("films", NAME).begin("Who directed Arrival?")
    with pytest.raises(InvalidReplyError):
        run.go()
    assert not shown
    assert run.notices == (DataNotice(NAME, HOST, run.kg.identity),)


def test_the_run_and_its_file_keep_it(
    hosted: HostedServer, shown: list[DataNotice], tmp_path: Path
) -> None:
    workbench = kgwb.Workbench("films", NAME)
    live = tmp_path / "live.jsonl"
    run = workbench.begin("Who directed Arrival?", path=live)
    with pytest.raises(InvalidReplyError):
        run.go()
    assert run.notices == tuple(shown)
    assert shown[0].shown

    saved = run.save(tmp_path / "saved.jsonl")
    for file in (live, saved):
        assert kgwb.load_run(file).notices == run.notices
    assert run.fork().notices == run.notices
    second = workbench.begin("Who directed Dune?")
    with pytest.raises(InvalidReplyError):
        second.go()
    assert second.notices == run.notices
    assert len(shown) == 1


def test_models_on_this_machine_have_none(
    openai_server: OpenAIServer, ollama_server: OllamaServer, shown: list[DataNotice]
) -> None:
    for server in (openai_server, ollama_server):
        server.tiny().complete(ask(), None, threading.Event())
    assert not shown


def test_a_benchmark_shows_it_before_the_first_question_and_not_if_nothing_is_asked(
    hosted: HostedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    setup = BenchSetup.from_workbench(kgwb.Workbench("films", NAME))
    questions = load_questions(sample_path("films").with_suffix(".questions.jsonl"))[:1]
    asked_when_shown: list[int] = []
    token = presenter.set(lambda notice: asked_when_shown.append(len(results.rows)))
    results = Results(tmp_path / "results", setup.to_config(questions))
    Benchmark(setup, results).run(questions)
    assert asked_when_shown == [0]
    monkeypatch.setattr("kgwb.llm.base._shown_here", {})
    shutil.rmtree(tmp_path / "cache" / NOTICES_FOLDER)
    Benchmark(setup, results).run(questions)
    presenter.reset(token)
    assert asked_when_shown == [0]


def test_a_widget_shows_it_in_itself(hosted: HostedServer) -> None:
    hosted.always = hosted.reply(GOETHE)
    workbench = kgwb.Workbench("films", NAME)
    debugger = workbench.debug("Who directed Arrival?")
    session_of(workbench.runs[0]).go().result()
    assert HOST in debugger.view()
    assert HOST in workbench.chat().view()
    assert HOST in workbench.cell("qir").view()
    other = workbench.debug("Who directed Dune?")
    session_of(workbench.runs[1]).go().result()
    assert HOST not in other.view().replace(NAME, "")


@pytest.mark.parametrize(
    ("host", "is_here"),
    [
        ("models.localhost", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("0.0.0.0", False),
        ("localhost.example", False),
    ],
)
def test_this_machine(host: str, is_here: bool) -> None:
    assert is_loopback_host(host) == is_here
