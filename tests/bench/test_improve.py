"""A search for a better prompt of one agent: what it finds, what it asks, and what it refuses."""

import json
import shlex
import sys
from pathlib import Path

import pytest
from commands import Rows, bench, change_rows, once, retries, rows, write_lines

from kgwb.cli import main

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import improving
from improving import HARMING, HELPING, NEUTRAL, World

Capture = pytest.CaptureFixture[str]
SYSTEM = ["--system", improving.__file__, "--model", "scripted:model.py"]
FAULT = 4
"""The relation is chosen wrongly."""
CHANGES = [HARMING[FAULT], *NEUTRAL[:2], HELPING[FAULT]]
PROMPT = "scripted/relation"
MODEL = f"""
import improving
WORLD = improving.World({FAULT}, 14, improving.HELPING, trait_share=0.5)
def SCRIPT(request):
    return WORLD._reply(request)
"""
PROPOSER = """
import json
from pathlib import Path
REPLIES = {replies!r}
GIVEN = []
def SCRIPT(request):
    asked = request.messages[0].content
    with Path("proposer.jsonl").open("a") as file:
        file.write(json.dumps(asked) + "\\n")
    GIVEN.append(1)
    change = REPLIES[min(len(GIVEN), len(REPLIES)) - 1]
    prompt = asked.split("```")[1].strip()
    return "Here:\\n```\\n" + prompt.replace(*change) + "\\n```"
"""
ADDED = "\n\n[user]"


def add(instruction: str) -> tuple[str, str]:
    return ADDED, f"\n{instruction}{ADDED}"


@pytest.mark.parametrize("has_fault", [True, False])
def test_the_missing_instruction_is_found_and_nothing_is_claimed_without_a_fault(
    tmp_path: Path, has_fault: bool
) -> None:
    world = World(FAULT, 20, CHANGES, has_fault=has_fault, trait_share=0.5)
    outcome = improving.improve(world, tmp_path)
    assert (outcome.found, outcome.claims) == (has_fault, has_fault)
    if has_fault:
        assert outcome.agent == "relation"
        assert world.score_on_test(outcome.texts) > world.score_on_test({}) + 0.15
        assert outcome.searching < 0.4 * len(CHANGES) * 20 * len(improving.AGENTS)


def measure_world() -> None:
    """Measure a world in the terminal, with the ladder."""
    world = World(FAULT, 14, HELPING, trait_share=0.5)
    world.graph.serialize("g.ttl")
    write_lines("q.jsonl", [each.model_dump(exclude_defaults=True) for each in world.questions])
    Path("model.py").write_text(MODEL)
    assert bench("--ladder", *SYSTEM, kg="g.ttl") == 0


working_folder = once(measure_world)


@pytest.fixture
def measured(working_folder: Path) -> list[str]:
    """The command that improves an agent of the measured world; the second proposal helps."""
    propose(add(NEUTRAL[0]), add(HELPING[FAULT]))
    given = ["--proposer", "scripted:proposer.py", "--budget", "model_calls=400"]
    return ["improve", "relation", "r", *SYSTEM, *given]


def propose(*changes: tuple[str, str]) -> None:
    """Write the model that proposes: each change replaces a text of the prompt by another."""
    Path("proposer.py").write_text(PROPOSER.format(replies=changes))


def proposals() -> list[str]:
    """Each request for a changed prompt."""
    path = Path("proposer.jsonl")
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def candidates() -> list[Path]:
    return sorted(path.parent for path in Path("r").glob("retries/improve*/change.diff"))


def test_from_the_loss_to_a_kept_prompt(measured: list[str], capsys: Capture) -> None:
    assert main(measured) == 0
    captured = capsys.readouterr()
    [asked, *_] = proposals()
    lost = [json.loads(line) for line in Path("r/ladder.jsonl").read_text().splitlines()]
    blamed = [loss for loss in lost if loss["agent"] == "relation"]
    [first] = [loss for loss in blamed if f"# Example 1\n## question\n{loss['question']}" in asked]
    assert first["gold_value"] in asked and improving.PROMPTS[PROMPT].strip() in asked

    neutral, helping, *_ = candidates()
    changed = (helping / f"{PROMPT}.md").read_text()
    assert HELPING[FAULT] in changed
    assert f"+{HELPING[FAULT]}" in (helping / "change.diff").read_text().splitlines()
    tried = rows(neutral)
    assert len(tried) == 3 and {row["id"] for row in tried} <= {loss["id"] for loss in blamed}
    for row in tried:  # only the relation is chosen again
        assert row["paid"]["model_calls"] == 1 and row["model_calls"] == len(improving.AGENTS)
    assert Path("r/improved.html").is_file()

    [winner] = [folder for folder in retries() if rows(folder)[0]["split"] == "test"]
    assert not Path("my_prompts").exists()
    [line] = [line for line in captured.err.splitlines() if "kgwb keep" in line]
    command = shlex.split(line.partition("kgwb ")[2])
    assert Path(command[-1]).resolve() == winner.resolve()
    assert main([*command, *SYSTEM[:2]]) == 0
    assert Path("my_prompts", f"{PROMPT}.md").read_text() == changed


@pytest.mark.parametrize(
    "change",
    [
        ("{{question}}", "the question"),
        ("[user]", "[usr]"),
        ("reply: Choice", "reply: Reading"),
        ("Choose", "Choose"),
    ],
)
def test_a_proposal_that_cannot_be_used_asks_nothing(
    change: tuple[str, str], measured: list[str]
) -> None:
    propose(change)
    assert main([*measured, "--proposals", "2"]) == 0
    assert len(proposals()) == 2 and not candidates()


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"relation": "writr"}, "writer"),
        ({"relation": "look_up"}, "--ladder"),
        ({"model_calls=400": "model_calls=50"}, "56"),
        ({"scripted:proposer.py": "nothing"}, "nothing"),
    ],
)
def test_what_cannot_be_searched_is_said_before_anything_is_asked(
    changed: dict[str, str], said: str, measured: list[str], capsys: Capture
) -> None:
    assert main([changed.get(word, word) for word in measured]) == 2
    assert said in capsys.readouterr().err
    assert not proposals() and not candidates()


def test_no_prompt_is_chosen_by_the_test_part(measured: list[str], capsys: Capture) -> None:
    assert main([*measured, "--slice", "split=test"]) == 2
    said = capsys.readouterr().err
    assert "--ladder" in said and "--only" not in said  # an option that the command lacks
    assert not proposals() and not candidates()


def test_the_slice_of_the_search_is_that_of_the_test_part(measured: list[str]) -> None:
    """Every question of the test part but two has another tag."""
    held = [row["id"] for row in rows() if row["split"] == "test"]

    def tag(rows: Rows) -> None:
        for row in rows:
            row["tags"] = ["b"] if row["id"] in held[2:] else ["a"]

    change_rows("r", tag)
    assert main([*measured, "--slice", "tag=a"]) in (0, 3)
    tested = [[row["id"] for row in rows(folder)] for folder in retries()]
    assert held[:2] in tested and not [part for part in tested if set(part) & set(held[2:])]


def test_a_budget_stops_the_search_and_more_of_it_continues(
    measured: list[str], capsys: Capture
) -> None:
    propose(*[add(text) for text in NEUTRAL])
    assert main([*measured, "--budget", "model_calls=70"]) == 3
    few = candidates()
    calls = sum(row["paid"]["model_calls"] for each in few for row in rows(each))
    assert calls + len(proposals()) <= 70 - 14 * len(improving.AGENTS) + 3
    assert main([*measured, "--proposals", "8"]) == 0
    assert set(few) < set(candidates())


def test_a_missing_package_and_an_error_of_the_model_that_proposes_end_the_search(
    measured: list[str], capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("proposer.py").write_text("def SCRIPT(request):\n    raise ZeroDivisionError('worn out')")
    assert main(measured) == 2
    assert "worn out" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "gepa", None)
    assert main(measured) == 2
    assert "kgwb[improve]" in capsys.readouterr().err
    assert not candidates()
