"""Where an answer was lost: a fault put in at one agent, and the ladder that names this agent."""

import json
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from commands import bench, measure, retry, write_lines
from small import EX, FILMS, films, predicates, qir, vertex, workbench

from kgwb import profile
from kgwb.bench.ladder import (
    GOLD_NOT_REPRODUCED,
    LADDER_FILE,
    NO_GOLD_QUERY,
    NOT_FIXED_BY_GOLD,
    compute_linking_recall,
    locate_losses,
)
from kgwb.bench.questions import BenchQuestion, add_gold_queries
from kgwb.bench.report import Report
from kgwb.bench.results import BenchRow, Results
from kgwb.bench.runner import Benchmark, BenchSetup
from kgwb.errors import InputError, ModelUnreachableError
from kgwb.kg.base import Vocabulary
from kgwb.kg.embeddings import Embeddings
from kgwb.llm import ChatRequest, Scripted
from kgwb.run.gold import parse_gold_query
from kgwb.run.prompts import Prompts

BORN = "SELECT DISTINCT ?city WHERE { :arrival :director ?d . ?d :birthPlace ?city }"
QUESTION = "In which city was the director of Arrival born?"


def sparql(text: str) -> str:
    return f"PREFIX : <{EX}> {text}"


def question(text: str, query: str | None, answer: str, **fields: Any) -> BenchQuestion:
    gold = answer if answer[0].isdigit() or answer == "true" else EX + answer
    query = sparql(query) if query else None
    given = {"id": "1", "question": text, "sparql": query, "answers": (gold,), **fields}
    return BenchQuestion.model_validate(given)


class Model:
    """Says what is right to every agent, or what it is told to say instead."""

    def __init__(self, **wrong: Any) -> None:
        self.wrong, self.asked = wrong, 0

    def __call__(self, request: ChatRequest) -> Any:
        self.asked += 1
        agent, told = request.task.rpartition("/")[2], request.variables
        if agent in self.wrong:
            return self.wrong[agent]
        match agent:
            case "qir":
                return qir("Arrival | directed by | ?d", "?d | born in | ?city", target="?city")
            case "vertex_selection":
                return vertex(1, told["candidates"][0]["label"])
            case "predicate_selection":
                chosen = []
                for relation in told["relations"]:
                    wanted = "director" if "direct" in relation["triple"][1] else "birth place"
                    offered = [predicate["name"] for predicate in relation["predicates"]]
                    chosen.append([wanted] if wanted in offered else [])
                return predicates(*chosen)
            case "rephraser":
                return {"question": QUESTION}
            case "classifier":
                return {"reason": "it", "label": "dependent"}
        raise AssertionError(agent)


def setup(model: Any, **settings: Any) -> BenchSetup:
    how: Any = {"settings": profile("fast", **settings), "embeddings": Embeddings("lexical")}
    return BenchSetup.from_workbench(workbench(Scripted(model), **how))


def apply_ladder(
    folder: Path, model: Any, *questions: BenchQuestion, save_runs: Any = False, **settings: Any
) -> list[BenchRow]:
    given = setup(model, **settings)
    results = Results(folder, given.to_config())
    Benchmark(given, results, save_runs=save_runs).run(questions)
    return locate_losses(given, results, questions)


ASKED = question(QUESTION, BORN, "gentilly", hops=2)


WRONG_PREDICATES = predicates(["starring"], ["number of children"])
ODD_RELATION = qir("Arrival | director | ?d", "?d | number of city | ?city", target="?city")

# --- one fault, one name


@pytest.mark.parametrize("save_runs", [False, "lost"])
@pytest.mark.parametrize(
    ("wrong", "settings", "agent", "mended_by"),
    [
        ({"qir": qir("Arrival | directed by | ?d")}, {}, "qir", "QIR"),
        ({"qir": "no reply"}, {"theta": 1}, "qir", "QIR"),
        ({"predicate_selection": WRONG_PREDICATES}, {}, "predicate_selection", "selection"),
        ({}, {"query_num": 1}, "query_generator", "query"),
        ({"qir": ODD_RELATION}, {"predicates_per_relation": 1}, "relation_linking", "predicates"),
    ],
)
def test_the_agent_that_lost_the_answer_is_named(
    tmp_path: Path, wrong: dict[str, Any], settings: Any, agent: str, mended_by: str, save_runs: Any
) -> None:
    [line] = apply_ladder(tmp_path, Model(**wrong), ASKED, save_runs=save_runs, **settings)
    assert (line["agent"], line["mended_by"], line["rungs"][mended_by]) == (agent, mended_by, 1.0)
    assert (tmp_path / "runs" / "1.jsonl").exists() == bool(save_runs)


@pytest.mark.parametrize(
    ("wrong", "mention", "agent"),
    [
        ({"vertex_selection": vertex(2, "Dune")}, "Dune", "vertex_selection"),
        ({"vertex_selection": vertex(0, "")}, "Dune", "vertex_selection"),
        ({}, "The Desert Planet", "entity_retriever"),
    ],
)
def test_a_wrong_vertex_is_the_choice_s_or_the_search_s_fault(
    tmp_path: Path, wrong: dict[str, Any], mention: str, agent: str
) -> None:
    """The search is to blame only for what it did not offer; the question does not hold the label."""
    query = "SELECT ?d { :dune :director ?d }"
    asked = question(f"Who directed {mention} then?", query, "denis")
    wrong = {"qir": qir(f"{mention} | directed by | ?d"), **wrong}
    [line] = apply_ladder(tmp_path, Model(**wrong), asked)
    assert (line["agent"], line["stage"], line["mended_by"]) == (agent, "linking", "vertices")


def test_a_dialogue_s_question_that_was_understood_wrongly(tmp_path: Path) -> None:
    directed, then = "SELECT ?d { :arrival :director ?d }", {"turn": 2, "standalone": QUESTION}
    turns = (
        question("Who directed Arrival?", directed, "denis", id="a", dialogue="d", turn=1),
        question("And where was he born?", BORN, "gentilly", id="b", dialogue="d", **then),
    )

    def model(request: ChatRequest) -> Any:
        if request.task.endswith("/qir") and QUESTION not in str(request.variables):
            return qir("Arrival | directed by | ?d")
        return Model(rephraser={"question": "And where?"})(request)

    [line] = apply_ladder(tmp_path, model, *turns)
    assert (line["id"], line["agent"], line["stage"]) == ("b", "understanding", "understanding")
    assert line["rungs"] == {"question": 1.0}


@pytest.mark.parametrize(
    ("query", "answer", "why"),
    [
        (BORN, "missoula", GOLD_NOT_REPRODUCED),
        (None, "missoula", NO_GOLD_QUERY),
        ("nonsense", "missoula", NO_GOLD_QUERY),
        ("SELECT ?x { ?x a :Film }", "missoula", NO_GOLD_QUERY),
        ("ASK { :arrival :director :denis }", "true", NOT_FIXED_BY_GOLD),
    ],
)
def test_an_answer_that_no_gold_makes_right_has_a_reason(
    tmp_path: Path, query: str | None, answer: str, why: str
) -> None:
    """The ASK: what opens with "in which" cannot be answered by yes, whatever is put in."""
    [line] = apply_ladder(tmp_path, Model(), question(QUESTION, query, answer))
    assert (line["agent"], line["mended_by"]) == (None, None)
    assert line["why"].startswith(why)


@pytest.mark.parametrize(
    ("text", "query", "answer", "agent"),
    [
        ("How many?", "SELECT (COUNT(DISTINCT ?f) AS ?n) { ?f :director :denis }", "3", "qir"),
        ("Is Arrival by Denis Villeneuve?", "ASK { :arrival :director :denis }", "true", "qir"),
        ("What?", "SELECT ?f { ?f :runtime ?t } ORDER BY DESC(?t) LIMIT 1", "arrival", ""),
        ("What runs 116 minutes?", "SELECT ?f { ?f :runtime 116 }", "arrival", ""),
        ("By whom?", "SELECT ?d { { :arrival :director ?d } UNION { :dune :x ?d } }", "denis", ""),
        ("Who?", "SELECT ?d { :arrival :director|:author ?d ; :starring ?s }", "denis", ""),
    ],
)
def test_every_form_of_gold_query_makes_an_answer_right(
    tmp_path: Path, text: str, query: str, answer: str, agent: str
) -> None:
    """Also those that Chatty-KG could never make: then the query generator is to blame."""
    wrong = {"qir": qir("Sicario | basedOn | ?x"), "predicate_selection": predicates([])}
    [line] = apply_ladder(tmp_path, Model(**wrong), question(text, query, answer))
    assert line["agent"] == (agent or "query_generator")


def test_a_literal_that_chatty_kg_cannot_link_does_not_refuse_the_gold_query(
    tmp_path: Path,
) -> None:
    asked = question("What runs 116 minutes?", "SELECT ?f { ?f :runtime 116 }", "arrival")
    [line] = apply_ladder(tmp_path, Model(qir=qir("?f | runs | 116 minutes")), asked)
    assert (line["agent"], line["rungs"]) == ("query_generator", {"query": 1.0})


# --- cost, resuming, tables


def test_the_ladder_continues_where_it_stopped_and_runs_again_for_another_result(
    tmp_path: Path,
) -> None:
    lost = [ASKED.model_copy(update={"id": id_}) for id_ in "123"]
    model = Model(predicate_selection=predicates([], []))
    lines = apply_ladder(tmp_path, model, *lost)
    whole = (tmp_path / LADDER_FILE).read_bytes()
    (tmp_path / LADDER_FILE).write_bytes(
        whole[: whole.rindex(b"{") + 9]
    )  # killed in the middle of the last line
    model.asked = 0
    assert apply_ladder(tmp_path, model, *lost) == lines
    assert model.asked == 0  # what was asked for the lost line is in the store
    (tmp_path / LADDER_FILE).write_text(json.dumps({**lines[0], "error": "no route"}) + "\n")
    assert apply_ladder(tmp_path, model, lost[0]) == lines[:1]


def test_an_error_is_lost_and_what_is_right_is_not(tmp_path: Path) -> None:
    failing = iter([ModelUnreachableError("no route")])
    right = Model()
    lines = apply_ladder(tmp_path, lambda request: next(failing, None) or right(request), ASKED)
    assert [line["why"] for line in lines] == ["it came right when it was asked again"]
    assert apply_ladder(tmp_path / "other", Model(), ASKED) == []


def test_an_unreachable_server_is_not_blamed_on_an_agent(tmp_path: Path) -> None:
    given = setup(Model(qir=qir("Arrival | directed by | ?d")))
    away = setup(lambda request: ModelUnreachableError("no route"))
    results = Results(tmp_path, given.to_config())
    Benchmark(given, results).run([ASKED])
    with pytest.raises(ModelUnreachableError):
        locate_losses(away, results, [ASKED], store=tmp_path / "empty.sqlite")
    assert [line["agent"] for line in locate_losses(given, results, [ASKED])] == ["qir"]


def test_a_system_that_does_not_say_what_gold_is(tmp_path: Path) -> None:
    given: Any = replace(setup(Model()), system=SimpleNamespace(name="other", gold=None))
    with pytest.raises(InputError, match=r"the system other "):
        locate_losses(given, Results(tmp_path, {}), [])


def test_a_retry_says_what_each_agent_lost_before_and_after(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The changed prompt of one agent cures it, and that of another one makes it worse."""
    script = """
from test_ladder import Model, WRONG_PREDICATES, QUESTION, qir

def SCRIPT(request):
    is_changed = "Take care." in request.messages[-1].content
    if is_changed:
        return Model(predicate_selection=WRONG_PREDICATES)(request)
    return Model(qir=qir("Alien | directed by | ?d", "?d | born in | ?c", target="?c"))(request)
"""
    (here / "script.py").write_text(script)
    (here / "films.ttl").write_text(FILMS)
    (here / "q.jsonl").write_text(ASKED.model_dump_json() + "\n")
    (here / "mine" / "chatty_kg").mkdir(parents=True)
    for name in ("chatty_kg/qir", "chatty_kg/predicate_selection"):
        prompt = here / "mine" / f"{name}.md"
        prompt.write_text(f"{Prompts().text(name)}\nTake care.\n")
    model = ["--model", "scripted:script.py"]
    assert bench(*model, kg="films.ttl") == 0

    def lost_at(*options: str) -> set[str]:
        capsys.readouterr()
        assert retry(*model, "--prompts", "mine", *options) == 0
        out = capsys.readouterr().out.splitlines()
        return {line.strip() for line in out if line.startswith("  lost at ")}

    lost = lost_at("--ladder")
    assert lost == {"lost at qir: 1 → 0", "lost at predicate selection: 0 → 1"}
    [page] = Path("r/retries").glob("*/report.html")
    assert "lost at predicate selection" in page.read_text()
    # Without the ladder it is not known where the second one loses its answer.
    assert lost_at("--set", "theta=4") == {"lost at qir: 1 → –"}


# --- linking recall


def test_linking_recall_counts_what_was_linked_and_what_was_offered(tmp_path: Path) -> None:
    given = setup(Model(predicate_selection=predicates(["director"], ["number of children"])))
    [row] = Benchmark(given, Results(tmp_path, given.to_config())).run([ASKED])
    assert row["linking"] == {
        "vertices": {"gold": 1, "linked": 1, "candidates": 1},
        "predicates": {"gold": 2, "linked": 1, "candidates": 2},
    }
    other: BenchRow = {"linking": {"predicates": {"gold": 1, "linked": 1, "candidates": 1}}}
    assert compute_linking_recall([row, other, {}], "predicates") == 0.75
    assert compute_linking_recall([row, other, {}], "predicates", "candidates") == 1.0
    assert compute_linking_recall([{}], "vertices") is None


# --- gold queries


def test_a_gold_query_is_taken_apart() -> None:
    pattern = "?f a :Film ; :director :denis . FILTER NOT EXISTS { ?f :basedOn ?b }"
    gold = parse_gold_query(sparql(f"SELECT (COUNT(?f) AS ?n) {{ {pattern} }}"), Vocabulary())
    assert gold is not None
    assert (gold.kind, gold.target) == ("count", "?f")
    assert gold.patterns == (("?f", f"<{EX}director>", f"<{EX}denis>"),)
    assert (gold.vertices, gold.predicates) == ({EX + "denis"}, {EX + "director"})


# --- MetaQA


def test_a_path_without_its_graph_has_no_gold_query() -> None:
    asked = BenchQuestion(
        id="1", question="?", answers=(), topic_entity=EX + "m", path="movie_to_year"
    )
    assert add_gold_queries([asked], films()) == [asked]


@pytest.mark.long
def test_the_ladder_names_an_agent_for_every_answer_that_rules_loses_on_metaqa(
    metaqa: Path, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    questions = metaqa.with_name("metaqa_dev.jsonl").read_text().splitlines()
    hard = {"metaqa-dev-1hop-33", "metaqa-dev-1hop-57", "metaqa-dev-2hop-47", "metaqa-dev-3hop-333"}
    asked = [row for row in map(json.loads, questions) if row["id"] in hard]
    write_lines("q.jsonl", asked)
    assert bench("--ladder", kg=str(metaqa)) == 0
    told = [json.loads(line) for line in Path("r", LADDER_FILE).read_text().splitlines()]
    assert told
    assert all(line["agent"] for line in told)
    assert re.search(rf"^all +{len(told)}  ", capsys.readouterr().out, re.MULTILINE)


def test_the_step_that_the_ladder_blames_is_shown_and_with_an_agent_its_own(here: Path) -> None:
    measure({"answers": ["http://e/nobody"]}, options=["--save-runs"])
    loss = {"id": "1", "agent": "qir", "stage": None, "step": "execution", "why": "", "error": None}
    write_lines("r/ladder.jsonl", [loss | {"f1": 0.0}])
    assert Report("r").measured_run("1").blamed_step == "execution"
    assert Report("r").measured_run("1", agent="classifier").blamed_step == "classifier"
