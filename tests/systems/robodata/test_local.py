"""The state that looks closer at a large local graph."""

from __future__ import annotations

from machine import answered, goes, use
from small import asked


def test_what_was_found_in_the_local_graph_is_shown_first() -> None:
    closer = goes("EVAL_LOCAL", use("get_edge", predicate="orgx:starring"))
    _, model = answered(local=closer, settings={"shown_chars": 120})
    assert asked(model)["local"] == 1
    [request] = [each for each in model.requests if each.task == "robodata/eval_local"]
    heading, first, *_ = str(request.variables["graph"]).splitlines()
    assert (heading, first) == ("Triples", "orgx:dune | orgx:starring | orgx:timothee")
    assert "get_edge" in str(request.variables["results"])
