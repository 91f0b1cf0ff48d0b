"""The command line as a person meets it. Embeddings are trigrams throughout, so that torch is not loaded."""

import json
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import kgwb
from kgwb import doctor, lab
from kgwb.cli import main
from kgwb.kg.dialects import DIALECTS

KEY = "sk-proj-0123456789abcdefTHEKEY"
QUESTION = "Who directed Arrival?"
VILLENEUVE = "https://kgwb.example/films/Denis_Villeneuve"


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No torch, no key, no colours, a cache folder of its own; and nobody's files are touched."""
    monkeypatch.setenv("KGWB_EMBEDDINGS", "lexical")
    monkeypatch.setenv("KGWB_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.chdir(tmp_path)


def ask(*arguments: str) -> int:
    return main(["ask", "--kg", "films", *arguments])


# --- ask


def test_ask_prints_the_answer_with_what_it_stands_on_and_the_way_if_wanted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert ask(QUESTION) == 0
    said, aside = capsys.readouterr()
    assert said.startswith(QUESTION)
    answer = "→ Denis Villeneuve\n    Denis Villeneuve: Arrival — director → Denis Villeneuve\n"
    assert said.startswith(f"{QUESTION}\n{answer}")
    assert "├─ qir: " not in said
    assert said.count("\n") == 4
    ask("--steps", QUESTION)
    said, aside = capsys.readouterr()
    assert said.startswith(f"{QUESTION}\n{answer}├─ ")
    assert "├─ qir: " in said
    assert "\x1b[" not in said
    assert "rules is a baseline" in aside


def test_ask_as_json_for_other_programs(capsys: pytest.CaptureFixture[str]) -> None:
    assert ask("--json", QUESTION) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["answer"] == {
        "kind": "list",
        "values": [VILLENEUVE],
        "labels": ["Denis Villeneuve"],
        "text": "Denis Villeneuve",
        "support": [
            ["https://kgwb.example/films/Arrival", "https://kgwb.example/films/director", VILLENEUVE]
        ],
        "reason": "",
        "ungrounded": False,
    }
    assert [step["key"] for step in told["steps"]][:2] == ["translator", "context"]
    assert set(told["totals"]) == {
        "model_calls", "tokens", "prompt_tokens", "completion_tokens", "queries", "seconds",
    }  # fmt: skip
    assert set(told) == {"answer", "steps", "totals"}


def test_ask_another_system(capsys: pytest.CaptureFixture[str]) -> None:
    rounds = ("--set", "debate_rounds=2", "--set", "ablation=none")
    assert ask("--steps", "--system", "dog", *rounds, "Where was the director of Stalker born?") == 0
    said = capsys.readouterr().out
    assert "linguist[hop 1/round 2]: " in said
    assert "→ Zavrazhye\n" in said
    assert ask("--system", "cat", QUESTION) == 2
    assert "choose one of chatty_kg, dog" in capsys.readouterr().err


def test_an_answer_that_is_not_in_the_graph_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    assert ask("--json", "Who directed Qwertyuiop?") == 0
    told = json.loads(capsys.readouterr().out)["answer"]
    assert (told["values"], told["text"]) == ([], "")
    assert "not in this graph" in told["reason"]


def test_a_saved_run_opens_again(tmp_path: Path) -> None:
    ask("--save", "run.jsonl", QUESTION)
    assert str(kgwb.load_run(tmp_path / "run.jsonl").answer) == "Denis Villeneuve"


def test_the_dialogue_so_far_is_asked_or_remembered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    turn = {"question": "Who wrote Dune?", "answers": ["Frank Herbert"], "entities": ["Dune"]}
    (tmp_path / "history.json").write_text(json.dumps([QUESTION, turn]))
    assert ask("--history", "history.json", "--json", "When was he born?") == 0
    context = next(step for step in json.loads(capsys.readouterr().out)["steps"] if step["key"] == "context")
    asked, remembered = context["output"]["turns"]
    assert (asked["question"], asked["answers"]) == (QUESTION, ["Denis Villeneuve"])
    assert (remembered["answers"], remembered["entities"]) == (["Frank Herbert"], ["Dune"])


@pytest.mark.parametrize("text", ["{", "{}", '[{"answers": []}]', "[3]"])
def test_a_history_that_cannot_be_used(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str) -> None:
    (tmp_path / "history.json").write_text(text)
    assert ask("--history", "history.json", QUESTION) == 2
    assert "a JSON list of questions" in capsys.readouterr().err


def test_settings_and_the_profile_are_taken_by_name(tmp_path: Path) -> None:
    ask(
        "--profile", "paper", "--set", "theta=1", "--set", "multi_turn=false", "--save", "run.jsonl", QUESTION
    )
    settings = json.loads((tmp_path / "run.jsonl").read_text().splitlines()[0])["settings"]
    assert (settings["profile"], settings["theta"], settings["multi_turn"]) == ("paper", 1, False)


def test_one_agent_can_have_a_model_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    ask("--save", "run.jsonl", QUESTION)
    assert ask("--agent-model", "qir=replay:run.jsonl", QUESTION) == 0


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--kg", "nowhere.ttl", QUESTION], "there is no file or folder nowhere.ttl"),
        (["--model", "gpt", QUESTION], "no model named 'gpt'"),
        (["--model", "openai:gpt-4o", QUESTION], "OPENAI_API_KEY"),
        (["--system", "oracle", QUESTION], "no system named 'oracle'"),
        (["--profile", "slow", QUESTION], "no profile named 'slow'"),
        (["--set", "theta", QUESTION], "'theta' is not NAME=VALUE"),
        (["--set", "theta=many", QUESTION], "theta is 'many'"),
        (["--set", "theta=0", QUESTION], "theta is 0"),
        (["--set", f"v_limit={10**20}", QUESTION], "v_limit is 100000000000000000000"),
        (["--set", f"query_num={10**20}", QUESTION], "query_num is 100000000000000000000"),
        (["--set", "model_timeout_s=inf", QUESTION], "model_timeout_s is inf"),
        (["--set", "tehta=1", QUESTION], "no setting named tehta"),
        (["--agent-model", "oracle=rules", QUESTION], "chatty_kg has no agent 'oracle'"),
        (["--save", "x" * 300, QUESTION], "cannot write the run"),
        (["--prompts", "x" * 300, QUESTION], "there is no folder x"),
        ([""], "the question is empty"),
        (["why " * 1001], "the question has 1,001 words"),
    ],
)
def test_what_cannot_be_done_is_said_with_a_remedy(
    capsys: pytest.CaptureFixture[str], arguments: list[str], complaint: str
) -> None:
    assert ask(*arguments) == 2
    said = capsys.readouterr().err
    assert complaint in said
    assert "What to do: " in said


def test_a_run_that_fails_shows_the_way_up_to_the_failure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ask("--save", "run.jsonl", QUESTION)
    capsys.readouterr()
    assert ask("--model", "replay:run.jsonl", "Who directed Dune: Part Two?") == 2
    said, complaint = capsys.readouterr()
    assert "qir: failed: " in said
    assert complaint.startswith("kgwb: ")


def test_hostile_labels_cannot_steer_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "hostile.ttl").write_text(
        "@prefix : <http://e.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .\n"
        ':f rdfs:label "Arrival" ; :director :d . :d rdfs:label "red \\u001b[31m" .'
    )
    assert ask("--kg", "hostile.ttl", QUESTION) == 0
    assert "→ red �[31m" in capsys.readouterr().out


# --- bench


def test_bench_scores_by_hops_and_type_and_resumes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    questions = [
        {"id": "1", "question": QUESTION, "answers": [VILLENEUVE], "hops": 1, "type": "factoid"},
        {"id": "2", "question": "Who directed Qwertyuiop?", "answers": [], "hops": 1},
    ]
    (tmp_path / "q.jsonl").write_text("\n".join(map(json.dumps, questions)))
    command = ["bench", "--kg", "films", "--questions", "q.jsonl", "--out", "out", "--workers", "2"]
    assert main([*command, "--limit", "1"]) == 0
    assert main(command) == 0
    table = capsys.readouterr().out
    assert re.findall(r"^(\w.*\w) +(\d)(?: +1\.000){9} +0 +0$", table, re.MULTILINE)[-3:] == [
        ("all", "2"),
        ("hops 1", "2"),
        ("type factoid", "1"),
    ]
    assert len((tmp_path / "out" / "results.jsonl").read_text().splitlines()) == 2
    assert main([*command, "--set", "theta=1"]) == 2
    assert "settings theta was 3 and is now 1" in capsys.readouterr().err


def test_bench_measures_each_value_of_a_setting(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    question = "Where was the director of Stalker born?"
    entry = {"id": "1", "question": question, "answers": ["https://kgwb.example/films/Zavrazhye"], "hops": 2}
    (tmp_path / "q.jsonl").write_text(json.dumps(entry))
    command = ["bench", "--system", "dog", "--kg", "films", "--questions", "q.jsonl", "--out", "out"]
    assert main([*command, "--each", "ablation=none,no_focusing"]) == 0
    told = capsys.readouterr().out
    hits = re.findall(r"^all +1 +(\d\.\d+) ", told, re.MULTILINE)
    assert (hits, re.findall("^ablation=.*$", told, re.MULTILINE)) == (
        ["1.000", "0.000"],
        ["ablation=none", "ablation=no_focusing"],
    )
    assert (tmp_path / "out" / "ablation=no_focusing" / "config.json").exists()


@pytest.mark.parametrize(
    ("arguments", "said", "remedy"),
    [
        (["--each", "ablation=none,all"], "ablation is 'all'", "give ablation one of none, no_focusing, "),
        (["--each", "theta=1,2,01"], "--each has theta=01 twice", "give each value once"),
        (["--each", "theta"], "'theta' is not NAME=V1,V2,...", "write it as"),
        (["--each", "=1"], "'=1' is not NAME=V1,V2,...", "write it as"),
        (["--each", "theta="], "theta is ''", "give theta a whole number from 1 to 1,000,000"),
        (["--each", "tehta=1,2"], "no setting named tehta", "the settings are"),
        (["--ladder"], "dog does not say what gold means to its agents", "leave --ladder out"),
    ],
)
def test_what_bench_cannot_do_is_refused_before_any_question_is_asked(
    arguments: list[str],
    said: str,
    remedy: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("kgwb.systems.oracle", lambda name: None)
    (tmp_path / "q.jsonl").write_text(json.dumps({"id": "1", "question": QUESTION, "answers": []}))
    command = ["bench", "--system", "dog", "--kg", "films", "--questions", "q.jsonl", "--out", "out"]
    assert main([*command, *arguments]) == 2
    complaint = capsys.readouterr().err
    assert said in complaint
    assert remedy in complaint
    assert not (tmp_path / "out").exists()


def test_an_interrupted_bench_says_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("kgwb.bench.runner.Bench.run", interrupt)
    (tmp_path / "q.jsonl").write_text(json.dumps({"id": "1", "question": QUESTION, "answers": []}))
    assert main(["bench", "--kg", "films", "--questions", "q.jsonl", "--out", "out"]) == 130
    assert "stopped with 0 of 1 questions asked" in capsys.readouterr().err


# --- doctor


def test_doctor_says_what_works_and_never_tells_a_key(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    assert main(["doctor"]) == 0
    said = capsys.readouterr().out
    for name in ("python", "graph", "dialect", "model", "embeddings", "jupyterlab", "pyvis", "cache folder"):
        assert f"ok       {name} " in said
    assert KEY not in said


def test_doctor_fails_where_something_needed_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--kg", "nowhere.ttl", "--model", "gpt"]) == 1
    said = capsys.readouterr().out
    assert "missing  graph " in said
    assert "missing  model " in said
    assert "open a sample: films" in said


def test_doctor_names_the_dialect_of_an_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    virtuoso = DIALECTS["virtuoso"]
    endpoint = SimpleNamespace(source="http://example.org/sparql", ask=lambda query: True, dialect=virtuoso)
    monkeypatch.setattr("kgwb.kg.open_kg", lambda source: endpoint)
    found = {finding.name: finding for finding in doctor.examine("http://example.org/sparql", "rules")}
    assert found["dialect"].detail == "virtuoso (named)"


def test_doctor_on_a_cache_folder_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("KGWB_CACHE", str(tmp_path / "file"))
    found = {finding.name: finding for finding in doctor.examine("films", "rules")}["cache folder"]
    assert not found.works
    assert not found.required


# --- lab


def test_lab_opens_the_first_notebook_and_passes_arguments_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    home = Path("/somewhere")
    assert lab.lab_command(home, ["--no-browser", "--port", "8899"]) == [
        sys.executable,
        "-m",
        "jupyterlab",
        "--ServerApp.root_dir=/somewhere",
        "--LabApp.default_url=/lab/tree/notebooks/00_start.ipynb",
        f"--LabApp.app_settings_dir={lab.SETTINGS}",
        "--LabApp.extension_manager=readonly",
        "--no-browser",
        "--port",
        "8899",
    ]


def test_lab_as_root_is_allowed_and_given_options_win(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    command = lab.lab_command(Path("/somewhere"), ["--ServerApp.root_dir=/mine"])
    assert "--allow-root" in command
    assert "--ServerApp.root_dir=/somewhere" not in command


def test_lab_hands_over_to_jupyterlab(monkeypatch: pytest.MonkeyPatch) -> None:
    handed: list[list[str]] = []
    monkeypatch.setattr("os.execv", lambda path, command: handed.append(command) or sys.exit(0))
    with pytest.raises(SystemExit):
        main(["lab", "--no-browser", "--port", "8899"])
    assert handed[0][-3:] == ["--no-browser", "--port", "8899"]


def test_an_installed_kgwb_copies_its_notebooks_and_keeps_those_edited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shipped = tmp_path / "site-packages" / "kgwb" / "_data" / "notebooks"
    shipped.mkdir(parents=True)
    for name in ("00_start.ipynb", "10_chatty_kg.ipynb"):
        (shipped / name).write_text("shipped")
    monkeypatch.setattr(kgwb, "__file__", str(tmp_path / "site-packages" / "kgwb" / "__init__.py"))
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks" / "00_start.ipynb").write_text("edited")
    assert lab.notebooks_home() == tmp_path
    assert (tmp_path / "notebooks" / "00_start.ipynb").read_text() == "edited"
    assert (tmp_path / "notebooks" / "10_chatty_kg.ipynb").read_text() == "shipped"


# --- demo, and the rest


def test_demo_plays_the_five_turns_agent_by_agent(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo"]) == 0
    said = capsys.readouterr().out
    turns = [
        "Who is the author of Harry Potter?",
        "When was its first movie released?",
        "Who played the main character?",
    ]
    turns += ["When was he born?", "What else has he starred in?"]
    assert [said.index(f"{number}. {turn}") for number, turn in enumerate(turns, 1)]
    assert said.count("   qir  ") == 5
    assert said.count("\n→ ") == 5


def test_help_is_fast_to_come_by() -> None:
    code = "import sys; from kgwb.cli import _parser; _parser(); print(*sys.modules)"
    loaded = subprocess.check_output([sys.executable, "-c", code], text=True).split()
    assert not {"rdflib", "pydantic", "numpy", "kgwb.run"} & set(loaded)


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out == f"kgwb {kgwb.__version__}\n"


@pytest.mark.parametrize("arguments", [[], ["sing"], ["demo", "--loud"], ["bench", "--workers", "0"]])
def test_what_is_no_command_is_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as leaving:
        main(arguments)
    assert leaving.value.code == 2
    assert "usage: kgwb" in capsys.readouterr().err
