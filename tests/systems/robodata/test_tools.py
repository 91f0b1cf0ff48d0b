"""The tools of the states, and what a model is shown of their results."""

from __future__ import annotations

from pathlib import Path

import pytest
from machine import (
    DIRECTED,
    STARRING,
    answered,
    goes,
    search,
    use,
)
from small import FILMS, SLOW, answer_of, films, keys

import kgwb

EVERY_TOOL = goes(
    "EVAL_REMOTE",
    use("get_entity_info", entity="orgx:dune"),
    use("get_property_info", property="orgx:starring"),
    use("sparql_query", sparql="SELECT ?f WHERE { ?f orgx:director orgx:denis } ORDER BY ?f"),
    use("sparql_query", sparql="ASK { orgx:dune orgx:director orgx:lynch }"),
    use("explore_entity_neighbors", entity="orgx:denis", predicate="", limit=5),
    use("build_local_graph", entity="orgx:dune", predicates=["orgx:director", "orgx:birthPlace"]),
)


@pytest.mark.long
@pytest.mark.parametrize("server", ["oxigraph", "virtuoso"])
def test_a_server_gives_the_same_results_as_its_file(
    server: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    file = tmp_path / "robodata.ttl"
    file.write_text(FILMS, encoding="utf-8")
    engine = request.getfixturevalue(server)
    used = {action["tool"] for action in EVERY_TOOL["actions"]}
    remote = [goes("REMOTE", search()), EVERY_TOOL]
    here, there = (answered(kgwb.open_kg(kg), remote=remote)[0] for kg in (file, engine.load(file)))
    assert answer_of(there) == answer_of(here) and answer_of(here).support == (DIRECTED, STARRING)
    assert keys(there) == keys(here)
    for step in here.steps:
        assert str(there.output(step.key)) == str(step.output), step.key
        assert step.agent not in used or not step.output.error, step.output


def test_errors_are_replayed_and_those_of_queries_that_begin_alike_are_kept_apart(
    tmp_path: Path,
) -> None:
    padding = "# " + "x" * 200 + "\n"
    bad = [padding + "SELECT ?x { ?x", padding + "DESCRIBE <http://e/x>", SLOW]
    uses = [use("sparql_query", sparql=query) for query in bad]
    kg = films(query_timeout_s=1)
    run, _ = answered(kg, remote=[goes("REMOTE", search()), goes("EVAL_REMOTE", *uses)])
    errors = [step.output.error for step in run.steps if step.agent == "sparql_query"]
    assert len(set(errors)) == 3 and "took longer" in errors[2]
    loaded = kgwb.load_run(run.save(tmp_path / "run.jsonl"))
    assert [step.output for step in loaded.steps] == [step.output for step in run.steps]
