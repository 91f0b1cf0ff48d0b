"""Triad as a whole: choices are among the options, and attempts go back to an earlier phase."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from small import answer_of, asked, films, iri, keys
from triads import CALLS, KEYS, QUESTION, SCRIPT, TRIAD, answered, choice, template, triad, triplets

import kgwb
from kgwb.errors import GraphTimeoutError, InvalidReplyError, OverrideError
from kgwb.llm import Scripted
from kgwb.run import Run
from kgwb.run.answers import NOT_IN_GRAPH
from kgwb.run.links import Candidate
from kgwb.systems.triad.generalist import fill_template, find_template_problems
from kgwb.systems.triad.records import Attempt, Choice, Triplet
from kgwb.workbench import list_recordings

DIRECTED = triplets("Arrival | directed by | ?x")
ONE_HOP = {
    "triplets": DIRECTED,
    "template": template("SELECT DISTINCT ?x WHERE { <Arrival> <directed by> ?x . }"),
    "query_choice_judgement": choice(1),
}
FIRST = [choice(1)] * 6
RUNTIME = triplets("?film | directed by | Denis Villeneuve", "?film | runtime | ?minutes")
LONGER = "SELECT ?film {{ ?film <directed by> <Denis Villeneuve> . ?film <runtime> ?minutes . {} }}"


def attempts(run: Run) -> list[Attempt]:
    return [step.output for step in run.steps if step.agent == "attempt"]


def places(run: Run) -> list[str]:
    return [step.subject for step in run.steps if step.agent == "attempt"]


# --- what is answered


def test_a_template_is_filled_with_each_candidate_and_one_query_is_chosen() -> None:
    run, model = answered()
    answer = answer_of(run)
    assert keys(run) == KEYS
    assert (model.call_count(), answer.labels) == (CALLS, ("Missoula",))
    assert answer.support == (
        (iri("lynchs_dune"), iri("director"), iri("lynch")),
        (iri("lynch"), iri("birthPlace"), iri("missoula")),
    )
    queries = run.output("queries[try 1/parsing]")
    assert [each.slots[0] for each in queries.kept] == ["Dune, Film", "Dune, Film"]
    assert [each.results for each in queries.kept] == [("Gentilly",), ("Missoula",)]
    offered = model.requests[5].variables["queries"]
    assert [each["first"] for each in offered] == [["Gentilly"], ["Missoula"]]
    assert answer.queries == (queries.kept[1].query.sparql,)


def test_relations_have_the_direction_of_the_graph_or_as_published_of_the_triplet() -> None:
    backwards = {
        "triplets": triplets("?x | directs | Arrival"),
        "template": template("SELECT DISTINCT ?x WHERE { ?x <directs> <Arrival> . }"),
        "query_choice_judgement": choice(1),
    }
    run, model = answered(**backwards)
    assert answer_of(run).labels == ("Denis Villeneuve",)
    shown = next(
        r.variables["relations"] for r in model.requests if r.task == "triad/relation_choice"
    )
    assert next(each["triple"] for each in shown) == ["Arrival", "director", "?x"]
    published, _ = answered(**backwards, settings={"as_written": True, "tries": 1})
    assert not published.answer


@pytest.mark.parametrize(
    ("parts", "head", "kind", "label"),
    [
        ("Dune | directed by | David Lynch", "ASK", "yes or no", "true"),
        ("Dune | directed by | Amy Adams", "ASK", "yes or no", "false"),
        ("Arrival | starring | ?x", "SELECT ?x", "yes or no", "true"),
        ("Arrival | starring | ?x", "SELECT ?x", "count", "2"),
        ("Arrival | starring | ?x", "SELECT (COUNT(?x) AS ?n)", "count", "2"),
        ("Denis Villeneuve | children | ?n", "SELECT ?n", "count", "3"),
    ],
)
def test_the_answer_is_a_truth_value_or_a_number_if_the_question_asks_for_one(
    parts: str, head: str, kind: str, label: str
) -> None:
    subject, relation, object_ = parts.split(" | ")
    name = {"children": "number of children", "directed by": "director"}.get(relation, relation)
    end = object_ if object_.startswith("?") else f"<{object_}>"

    def model(request: Any) -> Any:
        if request.task != "triad/relation_choice":
            return replies[request.task]
        return choice(
            *(r["number"] for r in request.variables["relations"] if r["triple"][1] == name)
        )

    replies = SCRIPT | {
        "triad/triplets": triplets(parts),
        "triad/template": template(f"{head} {{ <{subject}> <{relation}> {end} . }}"),
        "triad/query_choice_judgement": choice(1),
        "triad/answer_type": {"type": kind},
    }
    settings = TRIAD.settings(answer_type_from="model")
    run = triad(Scripted(model), "So?", settings=settings).go()
    assert answer_of(run).labels == (label,)
    kinds = {"yes or no": "boolean", "count": "count"}
    assert answer_of(run).kind == kinds[kind]
    assert len(attempts(run)) == 1  # "no" is an answer: there is no second attempt


# --- retries


def test_a_second_attempt_goes_back_to_parsing_if_a_mention_is_not_in_the_graph() -> None:
    run, model = answered(**ONE_HOP | {"triplets": [triplets("Qwxz | directed by | ?x"), DIRECTED]})
    assert answer_of(run).labels == ("Denis Villeneuve",)
    first, second = attempts(run)
    assert (first.back, second.query is not None) == ("parsing", True)
    [triplet] = second.triplets
    assert str(triplet) in second.changed
    assert places(run) == ["try 1/parsing", "try 2/parsing"]
    failed = [r.variables["failed"] for r in model.requests if r.task == "triad/triplets"]
    assert failed == [[], [first.fault]]
    assert first.fault.startswith("Qwxz:")


def test_a_second_attempt_goes_back_to_the_phase_at_fault() -> None:
    """The triples of a film hold, but it is too short for the FILTER of the template."""
    long, short = (template(LONGER.format(f"FILTER(?minutes > {n})")) for n in (500, 100))
    replies = {"triplets": RUNTIME, "relation_choice": FIRST, "query_choice_judgement": choice(1)}
    run, model = answered(**replies, template=[long, short])
    assert answer_of(run).labels == ("Arrival",)
    assert places(run) == ["try 1/parsing", "try 2/construction"]
    assert attempts(run)[1].changed == (short["sparql"],)
    assert asked(model)["triplets"] == 1
    settings = {"retry_from": "parsing"}
    again, model = answered(
        triplets=RUNTIME, relation_choice=FIRST, template=long, settings=settings
    )
    # The second attempt decides nothing otherwise, so there is no third one.
    assert (bool(again.answer), asked(model)["triplets"]) == (False, 2)


def test_there_are_no_more_attempts_than_allowed() -> None:
    names = [triplets(f"Nothing {n} | directed by | ?x") for n in range(5)]
    for tries in (1, 2, 3):
        run, model = answered(triplets=names, settings={"tries": tries})
        assert (asked(model)["triplets"], len(attempts(run))) == (tries, tries)
        assert answer_of(run).reason == f"{NOT_IN_GRAPH}: {attempts(run)[-1].fault}"


TOO_SLOW = Mock(side_effect=GraphTimeoutError("too slow"))


def test_a_query_that_takes_too_long_has_no_result_but_a_note(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kg = films()
    run = triad(Scripted(SCRIPT), kg=kg, settings=TRIAD.settings(tries=1)).go(until="template")
    monkeypatch.setattr(kg, "select", TOO_SLOW)
    monkeypatch.setattr(kg, "ask", TOO_SLOW)
    run.go()
    [empty, _] = run.output("queries[try 1/parsing]").empty
    assert empty.reads in answer_of(run).reason
    [note] = run["queries[try 1/parsing]"].notes
    assert "too slow" in note


def test_an_answer_whose_triples_cannot_be_looked_for_has_no_support_but_a_note(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kg = films()
    run = triad(Scripted(SCRIPT), kg=kg).go(until="query_choice")
    monkeypatch.setattr(kg, "select", TOO_SLOW)
    run.go()
    assert (answer_of(run).labels, answer_of(run).support) == (("Missoula",), ())
    [note] = run["answer"].notes
    assert "too slow" in note


def test_replies_that_are_no_json_end_the_run_unless_there_is_own_knowledge() -> None:
    garbage = {"triplets": "I do not know.", "own_knowledge_fact": {"answer": "Moscow"}}
    with pytest.raises(InvalidReplyError, match="triplets"):
        answered(**garbage)
    run, _ = answered(**garbage, settings={"own_knowledge": True})
    assert (answer_of(run).labels, answer_of(run).ungrounded) == (("Moscow",), True)


# --- the model's own knowledge, only by a setting


@pytest.mark.parametrize(
    ("kind", "ablation", "label"),
    [
        ("select", "none", "Moscow"),
        ("yes or no", "none", "true"),
        ("count", "none", "Moscow"),
        ("count", "boolean_fallback", ""),
        ("select", "boolean_fallback", ""),
        ("yes or no", "boolean_fallback", "true"),
        ("select", "no_fallback", ""),
    ],
)
def test_own_knowledge_is_used_for_some_types_of_answers_and_is_marked(
    kind: str, ablation: str, label: str
) -> None:
    run, _ = answered(
        triplets=triplets("Nothing | born in | ?x"),
        answer_type={"type": kind},
        own_knowledge_fact={"answer": "Moscow"},
        own_knowledge_truth={"answer": "True"},
        settings={"own_knowledge": True, "ablation": ablation},
    )
    answer = answer_of(run)
    assert (answer.labels, answer.ungrounded) == ((label,) if label else (), bool(label))


def test_own_knowledge_is_used_only_with_the_setting() -> None:
    run, model = answered(triplets=triplets("Nothing | born in | ?x"))
    assert (bool(run.answer), asked(model)["own_knowledge_fact"]) == (False, 0)


# --- runs of earlier versions


def test_a_run_file_of_before_a_setting_does_what_was_done_then(tmp_path: Path) -> None:
    settings = {"may_refuse_queries": False, "answer_type_from": "model"}
    run, _ = answered(settings=settings)
    path = run.save(tmp_path / "run.jsonl")
    header, *entries = path.read_text().splitlines(keepends=True)
    data = json.loads(header)
    for name in settings:
        del data["settings"][name]
    path.write_text("".join([json.dumps(data) + "\n", *entries]))
    loaded = kgwb.load_run(path)
    assert (keys(loaded), loaded.answer) == (keys(run), run.answer)


RECORDINGS = [name for name in list_recordings() if "/triad/" in name]


@pytest.mark.parametrize("name", RECORDINGS)
def test_every_recording_replays(name: str) -> None:
    run = kgwb.recording(name)
    assert (run.status, run.totals.live_model_calls) == ("done", 0)
    assert run.answer is not None


# --- ablations, as settings


def test_without_the_choice_of_uris_the_most_similar_names_are_taken() -> None:
    settings = {"ablation": "no_uri_choice", "entities": 1, "relations": 1}
    run, model = answered(query_choice_judgement=choice(1), settings=settings)
    assert not {"entity_choice", "relation_choice"} & {*asked(model)}
    assert len(run.output("queries[try 1/parsing]").kept) <= 1


def test_at_most_k_options_can_be_chosen() -> None:
    two, one = ({"entities": number, "relations": number, "theta": 1} for number in (2, 1))
    assert answered(settings=two)[0].answer
    run, _ = answered(settings=one)
    assert not run.answer
    assert "choose 0 to 1" in attempts(run)[-1].fault


def test_n_is_the_number_of_examples() -> None:
    for number in (1, 2, 3):
        _, model = answered(settings={"exemplars": number})
        assert model.requests[0].messages[0].content.count("Example\n") == number


# --- templates

FOUND = (Triplet("Dune", "directed by", "?p"), Triplet("?p", "born in", "?c"))
GOOD = "SELECT ?c WHERE { <Dune> <directed by> ?p . ?p <born in> ?c . }"


@pytest.mark.parametrize(
    ("sparql", "problem"),
    [
        (GOOD, ""),
        (GOOD.replace("?p . ?p", "?p.\n ?p").replace("<Dune>", "< dune >"), ""),
        (GOOD.replace(" }", " FILTER(?c != <Dune>) }"), ""),
        (GOOD.replace("SELECT ?c", "SELECT (COUNT(DISTINCT ?c) AS ?n)"), ""),
        (GOOD.replace("?p <born in> ?c .", ""), "lacks <?p> <born in> <?c>"),
        (GOOD.replace("<Dune>", "<http://example.org/dune>"), "lacks <Dune>"),
        (GOOD.replace("<Dune>", "<urn:slot:0>"), "<urn:slot:0> is no entity"),
        (GOOD.replace(" }", " ?c a <http://e/City> }"), "<http://e/City> is no entity"),
        (GOOD.replace(" }", " ?c a ?k }"), "none of the triplets"),
        (GOOD.replace(" }", " ?c ?k ?v }"), "none of the triplets"),
        (GOOD.replace(" }", ' BIND(IRI("http://e/x") AS ?y) }'), "IRI( is no entity"),
        (GOOD.replace(" }", " SERVICE <Dune> { ?a ?b ?c } }"), "SERVICE"),
        (GOOD.replace("SELECT ?c", "SELECT *"), "exactly one variable"),
        ("DELETE WHERE { <Dune> <directed by> ?p . ?p <born in> ?c . }", "change the graph"),
        ("PREFIX e: <http://e/> " + GOOD, "<http://e/> is no entity"),
        ("Which?", "lacks"),
    ],
)
def test_a_template_has_the_triplets_and_no_other_iri(sparql: str, problem: str) -> None:
    found = "; ".join(find_template_problems(sparql, FOUND))
    assert problem in found
    assert bool(problem) == bool(found)


def test_a_name_with_sparql_in_it_is_only_a_slot() -> None:
    name = 'x> } ; DROP ALL # "<script>'
    filled = fill_template(
        f"ASK {{ <{name}> <by> ?x }}", (Triplet(name, "by", "?x"),), ["<e:e>"], [("<e:p>", "in")]
    )
    assert filled == "ASK { ?x <e:p> <e:e> }"


# --- by hand, and where it is used


def test_a_query_chosen_by_hand_is_answered_without_a_model() -> None:
    run, model = answered()
    queries = run.output("queries[try 1/parsing]")
    run.override("query_choice[try 1/parsing]", Choice(QUESTION, queries.kept[:1])).go()
    assert (model.call_count(), answer_of(run).labels) == (CALLS, ("Gentilly",))


def test_an_override_must_be_among_the_options() -> None:
    run, _ = answered()
    relation = run.output("relation_choice[try 1/parsing/⟨?person, born in, ?city⟩]")
    entity = run.output("entity_choice[try 1/parsing/Dune]")
    other = Choice("Dune", (Candidate(iri("made_up"), "Made up"),))
    for key, value, problem in (
        ("entity_choice[try 1/parsing/Dune]", other, "not one of the options"),
        (
            "relation_choice[try 1/parsing/⟨?person, born in, ?city⟩]",
            entity,
            "not one of the options",
        ),
        ("query_choice[try 1/parsing]", relation, "not one of the options"),
        ("template[try 1/parsing]", "ASK { <a:a> <a:b> <a:c> }", "lacks"),
        ("triplets[try 1/parsing]", (Triplet("?a", "b", "?c"),), "names an entity"),
    ):
        with pytest.raises(OverrideError, match=problem):
            run.override(key, value)
