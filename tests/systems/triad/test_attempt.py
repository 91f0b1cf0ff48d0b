"""Attempts: a query is found, or the next attempt goes back to the phase at fault."""

from pathlib import Path

import pytest
from small import answer_of, asked, iri, keys, without_settings
from triads import (
    CALLS,
    KEYS,
    answered,
    choice,
    template,
    triplets,
)

import kgwb
from kgwb.errors import InvalidReplyError, OverrideError
from kgwb.run import Run
from kgwb.run.answers import Candidate
from kgwb.systems.triad.records import Attempt, Choice, Triplet

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


def test_replies_that_are_no_json_end_the_run_unless_there_is_own_knowledge() -> None:
    garbage = {"triplets": "I do not know.", "own_knowledge_fact": {"answer": "Moscow"}}
    with pytest.raises(InvalidReplyError, match="triplets"):
        answered(**garbage)
    run, _ = answered(**garbage, settings={"own_knowledge": True})
    assert (answer_of(run).labels, answer_of(run).ungrounded) == (("Moscow",), True)


def test_a_run_file_of_before_a_setting_does_what_was_done_then(tmp_path: Path) -> None:
    settings = {"may_refuse_queries": False, "answer_type_from": "model"}
    run, _ = answered(settings=settings)
    path = without_settings(run.save(tmp_path / "run.jsonl"), settings)
    loaded = kgwb.load_run(path)
    assert (keys(loaded), loaded.answer) == (keys(run), run.answer)


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


def test_a_fault_names_the_triplet_that_failed_and_not_those_behind_it() -> None:
    run, model = answered(relation_choice=choice(), settings={"tries": 1})
    [attempt] = [step.output for step in run.steps if step.agent == "attempt"]
    assert "⟨Dune, directed by, ?person⟩" in attempt.fault
    assert "born in" not in attempt.fault
    [_, _, behind] = attempt.linked
    assert (behind.was_looked_for, behind.chosen) == (False, ())
    assert asked(model)["relation_choice"] == 1
