"""The command line as a person meets it."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from commands import DENIS, FILM, QUESTION, bench, rows, write_questions
from tables import read_table

import kgwb
from kgwb.cli import doctor, main
from kgwb.errors import EmbeddingError
from kgwb.kg.base import ResultSet, Vocabulary
from kgwb.kg.dialects import DIALECTS
from kgwb.llm.rules import BASELINE_REMARK

KEY = "sk-proj-0123456789abcdefTHEKEY"
COMPARE = ["compare-profiles", "--kg", "films", "--questions", "q.jsonl"]
Capture = pytest.CaptureFixture[str]
pytestmark = pytest.mark.usefixtures("here")


def ask(*arguments: str) -> int:
    return main(["ask", "--kg", "films", *arguments])


# --- ask


def test_ask_prints_the_answer_with_its_support_and_the_steps_if_wanted(
    capsys: Capture,
) -> None:
    assert ask(QUESTION) == 0
    out, _ = capsys.readouterr()
    answer = "→ Denis Villeneuve\n  Answered\n    Denis Villeneuve: Arrival — director → Denis Villeneuve\n"
    assert out.startswith(f"{QUESTION}\n{answer}")
    assert out.count("\n") == 5
    ask("--steps", QUESTION)
    out, aside = capsys.readouterr()
    assert out.startswith(f"{QUESTION}\n{answer}├─ ")
    assert "├─ qir: " in out
    assert "\x1b[" not in out
    assert BASELINE_REMARK in aside


def test_ask_as_json_for_other_programs(capsys: Capture) -> None:
    assert ask("--json", QUESTION) == 0
    data = json.loads(capsys.readouterr().out)
    answer = {
        **{"kind": "list", "values": [DENIS], "labels": ["Denis Villeneuve"], "texts": []},
        **{"text": "Denis Villeneuve", "reason": "", "ungrounded": False, "state": "given"},
        "support": [[FILM + "Arrival", FILM + "director", DENIS]],
        **{"doubt": "", "readings": [], "measure": "", "measures": [None], "remarks": []},
    }
    assert data["answer"] == answer
    assert [step["key"] for step in data["steps"]][:2] == ["translator", "context"]
    totals = "model_calls tokens prompt_tokens completion_tokens queries seconds"
    assert (set(data["totals"]), set(data)) == (set(totals.split()), {"answer", "steps", "totals"})
    assert ask("--json", "Who directed Qwertyuiop?") == 0
    answer = json.loads(capsys.readouterr().out)["answer"]
    assert (answer["values"], "Qwertyuiop" in answer["reason"]) == ([], True)


READING = """
def draft(sparql, *assumptions):
    return {"reason": "", "sparql": sparql, "asked": "list", "columns": [], "missing": "", "more": [],
            "assumptions": list(assumptions)}

taken = {"taken": "films that he directed", "others": ["films that he wrote"]}
query = "SELECT ?f { ?f films:%s films:Denis_Villeneuve }"
SCRIPT = {
    "surveyor/mention_finder": {"reason": "", "question": "", "names": [], "classes": []},
    "surveyor/drafter": [draft(query % "director", taken), draft(query % "screenwriter")],
    "surveyor/reviewer": {"reason": "", "verdict": "fine", "sparql": "", "columns": [], "missing": ""},
}
"""


def test_ask_reads_the_question_in_another_way(capsys: Capture, tmp_path: Path) -> None:
    model = tmp_path / "replies.py"
    model.write_text(READING)
    surveyor = ("--system", "surveyor", "--model", f"scripted:{model}")
    assert ask(*surveyor, "Films of Denis Villeneuve?") == 0
    [offered] = [line for line in capsys.readouterr().out.splitlines() if "--reading 1" in line]
    assert "films that he wrote" in offered
    assert ask(*surveyor, "--json", "--reading", "1", "Films of Denis Villeneuve?") == 0
    data = json.loads(capsys.readouterr().out)
    [query] = [s["output"]["sparql"] for s in data["steps"] if s["key"] == "drafter"]
    assert "screenwriter" in query
    # The model has no other reading now; what is offered is the query rewritten.
    assert all(reading["sparql"] for reading in data["answer"]["readings"])
    with pytest.raises(SystemExit):
        ask(*surveyor, "--reading", "x", "Films of Denis Villeneuve?")


def test_a_history_is_asked_or_remembered(capsys: Capture) -> None:
    turn = {"question": "Who wrote Dune?", "answers": ["Frank Herbert"], "entities": ["Dune"]}
    Path("history.json").write_text(json.dumps([QUESTION, turn]))
    assert ask("--history", "history.json", "--json", "When was he born?") == 0
    steps = json.loads(capsys.readouterr().out)["steps"]
    [context] = [step for step in steps if step["key"] == "context"]
    asked, remembered = context["output"]["turns"]
    assert (asked["question"], asked["answers"]) == (QUESTION, ["Denis Villeneuve"])
    assert (remembered["answers"], remembered["entities"]) == (["Frank Herbert"], ["Dune"])


@pytest.mark.parametrize("text", ["{", "{}", '[{"answers": []}]', "[3]"])
def test_a_history_that_cannot_be_used(capsys: Capture, text: str) -> None:
    Path("history.json").write_text(text)
    assert ask("--history", "history.json", QUESTION) == 2
    assert "JSON list" in capsys.readouterr().err


def test_settings_are_taken_by_name_and_a_saved_run_answers_again() -> None:
    settings = ("--set", "theta=1", "--set", "multi_turn=false")
    ask("--profile", "paper", *settings, "--save", "run.jsonl", QUESTION)
    assert str(kgwb.load_run("run.jsonl").answer) == "Denis Villeneuve"
    saved = json.loads(Path("run.jsonl").read_text().splitlines()[0])["settings"]
    assert (saved["profile"], saved["theta"], saved["multi_turn"]) == ("paper", 1, False)
    assert ask("--profile", "paper", "--agent-model", "qir=replay:run.jsonl", QUESTION) == 0


def test_a_run_that_fails_shows_its_steps_up_to_the_failure(capsys: Capture) -> None:
    ask("--save", "run.jsonl", QUESTION)
    capsys.readouterr()
    assert ask("--model", "replay:run.jsonl", "Who directed Dune: Part Two?") == 2
    out, complaint = capsys.readouterr()
    assert "qir: failed: " in out
    assert complaint.startswith("kgwb: ")


def test_a_saved_run_is_not_replaced_by_that_of_another_question_or_system(
    capsys: Capture,
) -> None:
    path = Path("run.jsonl")
    assert ask("--save", "run.jsonl", QUESTION) == 0
    saved = path.read_bytes()
    assert ask("--save", "run.jsonl", "Who directed Dune: Part Two?") == 2
    assert QUESTION in capsys.readouterr().err
    assert ask("--system", "dog", "--save", "run.jsonl", QUESTION) == 2
    assert "chatty_kg" in capsys.readouterr().err
    assert path.read_bytes() == saved
    assert ask("--save", "run.jsonl", f"  {QUESTION} ") == 0


def test_several_systems_are_asked_without_the_settings_that_they_lack_and_it_is_said(
    capsys: Capture,
) -> None:
    assert ask("--systems", "chatty_kg,dog", "--set", "query_num=2", QUESTION) == 0
    error = capsys.readouterr().err
    assert "dog has no query_num" in error and "chatty_kg has" not in error


# --- bench


def test_bench_fails_if_every_question_fails(capsys: Capture) -> None:
    write_questions()
    ask("--save", "run.jsonl", "Who directed Dune: Part Two?")
    no_reply = ["--model", "replay:run.jsonl"]
    assert bench(*no_reply, out="out") == 2
    assert "out" in capsys.readouterr().err.splitlines()[-1]
    assert bench(*no_reply, out="out") == 2  # as it was asked before
    write_questions({}, {"question": "Who directed Dune: Part Two?"})
    assert bench(*no_reply, out="out") == 0


def test_bench_says_which_of_several_systems_lack_a_setting(capsys: Capture) -> None:
    write_questions()
    several = ["--systems", "chatty_kg,dog,triad"]
    assert bench(*several, "--set", "query_num=1", out="out") == 2
    error = capsys.readouterr().err
    assert "dog has no query_num; triad has no query_num" in error and "chatty_kg has" not in error
    assert bench(*several, "--each", "ablation=none,all", out="out") == 2
    assert "chatty_kg has no ablation" in capsys.readouterr().err
    assert not Path("out").exists()


def test_bench_scores_by_hops_and_type_and_resumes(capsys: Capture) -> None:
    write_questions(
        {"hops": 1, "type": "factoid"},
        {
            "question": "Who directed Qwertyuiop?",
            "answers": [],
            "hops": 1,
            "language": "\x1b]0;x\x07",
        },
    )
    assert bench("--workers", "2", "--limit", "1", out="out") == 0
    assert bench(out="out") == 0
    out = capsys.readouterr().out
    right = r" +1\.000 \[1\.000, 1\.000]" * 2 + r" +1\.000" * 10
    found = re.findall(rf"^(\w.*\w) +(\d){right} +0 +0$", out, re.MULTILINE)
    parts = [
        ("all", "2"),
        ("answerable", "1"),
        ("unanswerable", "1"),
        ("hops 1", "2"),
        ("type factoid", "1"),
    ]
    assert found[-5:] == parts
    assert not {"\x1b", "\x07"} & {*out}
    assert len(rows("out")) == 2
    assert bench("--set", "theta=1", out="out") == 2
    assert "theta was 3" in capsys.readouterr().err


def test_bench_tells_a_gold_text_from_the_thing_of_that_name(capsys: Capture) -> None:
    write_questions({"answers": ["Denis Villeneuve"]}, {"answers": []})
    bench()
    lost = [line for line in capsys.readouterr().out.splitlines() if line.startswith("wrong")]
    director = "Denis Villeneuve (https://kgwb.example/films/Denis_Villeneuve)"
    assert lost[0].endswith(f"→ {director}; right: Denis Villeneuve")
    assert lost[1].endswith("right: no answer")


def test_bench_asks_every_nth_question_but_no_torn_dialogue(capsys: Capture) -> None:
    write_questions(*[{}] * 5)
    assert bench("--every", "2", "--limit", "2", out="out") == 0
    assert [row["id"] for row in rows("out")] == ["1", "3"]
    write_questions({"dialogue": "a", "turn": 1}, {"dialogue": "a", "turn": 2})
    assert bench("--every", "2", out="out") == 2
    assert "--every" in capsys.readouterr().err


def test_bench_measures_each_value_of_a_setting(capsys: Capture) -> None:
    question = "Where was the director of Stalker born?"
    write_questions({"question": question, "answers": ["https://kgwb.example/films/Zavrazhye"]})
    assert bench("--system", "dog", "--each", "ablation=none,no_focusing", out="out") == 0
    out = capsys.readouterr().out
    folders = ["ablation=none", "ablation=no_focusing"]
    assert re.findall(r"^all +1 +(\d\.\d+) ", out, re.MULTILINE) == ["1.000", "0.000"]
    assert re.findall(r"^ablation=[^:\n]*$", out, re.MULTILINE) == folders
    assert "ablation=no_focusing: 0 fixed, 1 broken" in out and Path("out/report.html").exists()
    assert Path("out", folders[1], "config.json").exists()


def test_compare_profiles_switches_each_setting_of_the_other_profile_alone(capsys: Capture) -> None:
    write_questions()
    command = [*COMPARE, "--out", "out", "--system", "dog"]
    assert main([*command, "--set", "debate_rounds=2"]) == 0
    paper = kgwb.profile("paper", system="dog", debate_rounds=2)
    fast = kgwb.profile("fast", system="dog", debate_rounds=2).to_data()
    changed = [name for name, value in paper.to_data().items() if value != fast[name]]
    changed.remove("profile")
    assert "own_knowledge" in changed and "debate_rounds" not in changed
    printed = capsys.readouterr()
    assert printed.err.count("rules is a baseline") == 1
    table = printed.out.partition("settings ")[2]
    names = [row.split()[0] for row in table.splitlines()[1:]]
    assert [name.partition("=")[0] for name in names] == ["fast", *changed, "paper"]
    switched = Path("out", "own_knowledge=True", "config.json").read_text()
    assert json.loads(switched)["settings"]["own_knowledge"] is True
    assert main([*command[:-1], "triad", "--other", "reference"]) == 2
    assert "code is not published" in capsys.readouterr().err


def test_compare_profiles_counts_the_questions_asked_for_and_names_what_failed(
    capsys: Capture,
) -> None:
    write_questions({}, {"answers": ["http://e/nobody"]})
    command = [*COMPARE, "--system", "dog"]
    assert bench("--system", "dog", out="out/fast") == 0
    assert main([*command, "--out", "out", "--limit", "1"]) == 0
    table = capsys.readouterr().out.partition("settings ")[2]
    fast = table.splitlines()[1].split()
    assert fast[:2] == ["fast", "1.000"]
    assert float(fast[-3]) == rows("out/fast")[0]["model_calls"]
    ask("--save", "run.jsonl", "Who directed Dune: Part Two?")
    no_reply = ["--model", "replay:run.jsonl"]
    assert main([*command, "--out", "failed", *no_reply]) == 2
    assert "failed/fast, failed/" in capsys.readouterr().err.splitlines()[-1]


def test_bench_keeps_two_folders_of_prompts_with_one_name_apart(capsys: Capture) -> None:
    write_questions()
    for parent in ("a", "c"):
        Path(parent, "p", "chatty_kg").mkdir(parents=True)
    assert bench("--each", "prompts=a/p,c/p,a", out="out") == 0
    folders = ["prompts=a%2Fp", "prompts=c%2Fp", "prompts=a"]
    named = re.findall(r"^prompts=[^:\n]*$", capsys.readouterr().out, re.MULTILINE)
    assert named == ["prompts=a/p", "prompts=c/p", "prompts=a"]
    assert all(Path("out", folder, "results.jsonl").exists() for folder in folders)
    Path("link").symlink_to("a/p")
    assert bench("--each", "prompts=a/p,link", out="out") == 2
    assert "twice" in capsys.readouterr().err


def test_an_interrupted_bench_says_how_far_it_came(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("kgwb.bench.runner.Benchmark.run", interrupt)
    write_questions()
    assert bench(out="out") == 130
    assert "0 of 1" in capsys.readouterr().err


# --- doctor


def test_doctor_lists_what_works_and_never_shows_a_key(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    names = "python graph dialect model embeddings memory jupyterlab pyvis cache"
    assert [name for name in names.split() if f"ok       {name} " not in out] == []
    assert KEY not in out


def test_doctor_surveys_the_graph_that_is_named(capsys: Capture) -> None:
    main(["doctor", "--kg", "films"])
    survey = capsys.readouterr().out.split("\n\n")[1]
    assert survey.startswith("2,863 triples, 420 things, 16 classes, 40 predicates\n")
    assert "100% of the things have a label, English 420" in survey.splitlines()[-1]


def test_doctor_fails_where_something_needed_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    Path("file").touch()
    monkeypatch.setenv("KGWB_CACHE", "file")
    assert main(["doctor", "--kg", "nowhere.ttl", "--model", "gpt"]) == 1
    out = capsys.readouterr().out
    for line in ("missing  graph ", "missing  model ", "absent   cache folder "):
        assert line in out
    assert "no survey: there is no file" in out and "open a sample: films" in out


PIPELINE = """
from kgwb.build import system_from_function

SYSTEM = system_from_function("mine", lambda question: [question])
"""


@pytest.mark.parametrize(
    ("system", "state", "code"),
    [
        ([], "missing  embeddings", 1),
        (["--system", "dog"], "missing  embeddings", 1),
        (["--system", "./mine.py"], "absent   embeddings", 0),
        (["--system", "./nowhere.py"], "missing  system", 1),
    ],
)
def test_doctor_asks_for_what_the_named_system_needs(
    system: list[str], state: str, code: int, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def refuse(*arguments: object) -> None:
        raise EmbeddingError("no weights")

    Path("mine.py").write_text(PIPELINE)
    monkeypatch.setattr("kgwb.kg.embeddings.Embeddings.similarity", refuse)
    assert main(["doctor", *system]) == code
    assert state in capsys.readouterr().out


def test_doctor_names_the_dialect_of_an_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    virtuoso = DIALECTS["virtuoso"]
    endpoint = SimpleNamespace(
        source="http://example.org/sparql",
        ask=lambda query: True,
        select=lambda query: ResultSet(("p",), ()),
        dialect=virtuoso,
        vocabulary=Vocabulary(),
    )
    monkeypatch.setattr("kgwb.kg.open_kg", lambda source: endpoint)
    findings = doctor.run_health_checks("http://example.org/sparql", "rules")
    assert ("dialect", "virtuoso (named)") in [(each.name, each.detail) for each in findings]


# --- lab


@pytest.fixture
def handed(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The commands that take the place of this process."""
    commands: list[list[str]] = []
    monkeypatch.setattr("os.execv", lambda path, command: commands.append(command) or sys.exit(0))
    return commands


@pytest.mark.parametrize("user", [0, 1000])
def test_lab_opens_the_first_notebook_and_passes_arguments_on(
    user: int, monkeypatch: pytest.MonkeyPatch, handed: list[list[str]]
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: user)
    with pytest.raises(SystemExit):
        main(["lab", "--no-browser", "--port", "8899", "--ServerApp.root_dir=/mine"])
    package = Path(kgwb.__file__).parent
    assert handed[0] == [
        *(sys.executable, "-m", "jupyterlab"),
        "--LabApp.default_url=/lab/tree/notebooks/00_start.ipynb",
        f"--LabApp.app_settings_dir={package / 'cli' / 'lab_settings'}",
        "--LabApp.extension_manager=readonly",
        "--ServerApp.contents_manager_class=kgwb.ui.saved.Notebooks",
        *(["--allow-root"] if user == 0 else []),
        *("--no-browser", "--port", "8899", "--ServerApp.root_dir=/mine"),
    ]


def test_an_installed_kgwb_copies_its_notebooks_and_keeps_those_edited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, handed: list[list[str]]
) -> None:
    package = tmp_path / "site-packages" / "kgwb"
    shipped = package / "_data" / "notebooks"
    shipped.mkdir(parents=True)
    for name in ("00_start.ipynb", "10_chatty_kg.ipynb"):
        (shipped / name).write_text("shipped")
    (shipped / "pipelines").mkdir()
    (shipped / "pipelines" / "plain.py").write_text("shipped")
    monkeypatch.setattr("kgwb.disk.PACKAGE_FOLDER", package)
    Path("notebooks").mkdir()
    Path("notebooks/00_start.ipynb").write_text("edited")
    with pytest.raises(SystemExit):
        main(["lab"])
    assert f"--ServerApp.root_dir={tmp_path}" in handed[0]
    texts = {path.name: path.read_text() for path in Path("notebooks").glob("*.ipynb")}
    assert Path("notebooks/pipelines/plain.py").read_text() == "shipped"
    assert texts == {"00_start.ipynb": "edited", "10_chatty_kg.ipynb": "shipped"}


def test_lab_started_by_a_jupyterhub_asks_the_hub_who_may_enter(
    monkeypatch: pytest.MonkeyPatch, handed: list[list[str]]
) -> None:
    monkeypatch.setenv("JUPYTERHUB_SERVICE_URL", "http://127.0.0.1:40000/user/ada/")
    with pytest.raises(SystemExit):
        main(["lab"])
    assert handed[0][1:3] == ["-m", "jupyterhub.singleuser"]


# --- demo, and the rest


def test_demo_plays_the_five_turns_agent_by_agent(capsys: Capture) -> None:
    assert main(["demo"]) == 0
    out = capsys.readouterr().out
    assert re.findall(r"^\d\. (\w+)", out, re.MULTILINE) == ["Who", "When", "Who", "When", "What"]
    assert (out.count("   qir  "), out.count("\n→ ")) == (5, 5)


def test_help_and_version_are_fast() -> None:
    code = "import sys; sys.argv = ['kgwb', sys.argv[1]]\ntry:\n    import kgwb.__main__\n"
    code += "except SystemExit:\n    print(*sys.modules)"
    for flag, text in (
        ("--help", "score the answers"),
        ("--version", f"kgwb {kgwb.__version__}\n"),
    ):
        out = subprocess.check_output([sys.executable, "-c", code, flag], text=True)
        assert text in out
        assert not {"rdflib", "pydantic", "numpy", "kgwb.run"} & set(out.split())


@pytest.mark.parametrize(
    "row",
    read_table(Path(__file__).with_name("wrong_commands.toml")),
    ids=lambda row: row["command"],
)
def test_a_wrong_command_is_refused_before_anything_is_asked(
    row: dict[str, str], capsys: Capture
) -> None:
    write_questions()
    Path("no_gold.py").write_text(
        "from kgwb.build import Answer, Question, agent, System\n"
        "@agent\ndef copy(text: str) -> str:\n    return text\n"
        'SYSTEM = System("no_gold", lambda question, dialogue, run: Answer("list"), (copy,))\n'
    )
    command = row["command"].format(long="x" * 300, words="why " * 1001)
    try:
        code: object = main(shlex.split(command))
    except SystemExit as leaving:
        code = leaving.code
    said = capsys.readouterr().err
    assert code == 2 and row["says"] in said
    assert "What to do: " in said or "usage: kgwb" in said
    assert not Path("out").exists()
