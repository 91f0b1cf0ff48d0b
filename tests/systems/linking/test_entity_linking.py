"""Entity linking: the candidates of a name, then the choice among them."""

from small import DOG, alone, iri, keys, vertex

from kgwb.run.answers import Context
from kgwb.run.linking import link_entity


def test_the_candidates_of_a_name_are_searched_and_one_is_chosen() -> None:
    link, run, model = alone(
        lambda run: link_entity("Dune", "Who directed Dune?", Context(), run),
        {"vertex_selection": vertex(2, "Dune")},
        of=DOG,
    )
    assert {candidate.iri for candidate in link.candidates} == {iri("dune"), iri("lynchs_dune")}
    assert (link.vertex, model.call_count()) == (link.candidates[1], 1)
    assert keys(run) == [
        "entity_linking[Dune]",
        "entity_retriever[Dune]",
        "vertex_selection[Dune]",
    ]
