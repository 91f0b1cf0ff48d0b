"""The subgraph of a run: who plays which role, what is cut, what expanding adds, and how it is drawn."""

import re
import time
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree

import pytest
from rdflib import BNode, Literal, URIRef
from small import DIRECTED, FILMS, Alone, chatty, films, iri, predicates, qir

from kgwb import load_run, open_kg
from kgwb.errors import SettingError
from kgwb.flow import Answer, Value
from kgwb.kg import ResultSet
from kgwb.llm import Scripted
from kgwb.records import Role
from kgwb.run import Run
from kgwb.show.subgraph import (
    Edge,
    Node,
    Subgraph,
    build_subgraph,
    compute_layout,
    expand_node,
    fit_width,
    render_legend,
    render_svg,
    render_tables,
    text_width,
)
from kgwb.show.terms import RenderContext
from kgwb.terms import Triple

BORN = {
    "chatty_kg/qir": qir(
        "Arrival | directed by | ?x", "?x | birth place | ?place", target="?place"
    ),
    "chatty_kg/predicate_selection": predicates(["director"], ["birth place"]),
}


def directed() -> Run:
    return chatty("Who directed Arrival?", Scripted(DIRECTED)).go()


def born() -> Run:
    return chatty("Where was the director of Arrival born?", Scripted(BORN)).go()


def answered(answer: Answer) -> Run:
    """The run of a system that has no records but its answer."""
    kg, system = films(), Alone(lambda run: None)
    iris = {term for triple in answer.support for term in triple if isinstance(term, URIRef)}
    named = replace(answer, names=tuple(kg.names(sorted(iris)).items()))
    system.answer = lambda question, dialogue, run: named
    return Run(system, "Alone?", kg=kg, models=Scripted({})).go()


def roles(found: Subgraph) -> dict[str, list[str]]:
    return {node.label: [str(role) for role in node.roles] for node in found.nodes}


def star(leaves: int, label: str = "leaf") -> Subgraph:
    """A hub with so many leaves."""
    hub = Node(iri("hub"), "hub", (Role("linked", "hub"),))
    nodes = [Node(iri(f"n{n}"), f"{label} {n}", (Role("answer"),)) for n in range(leaves)]
    edges = [Edge((hub.term, iri("p"), node.term), "predicate") for node in nodes]
    return Subgraph((hub, *nodes), tuple(edges))


# --- what the record says


def test_linked_bound_answer_and_support_are_told_apart_also_without_a_graph(
    tmp_path: Path,
) -> None:
    run = born()
    found = build_subgraph(run)
    assert roles(found) == {
        "Arrival": ["linked to “Arrival”", "support"],
        "Denis Villeneuve": ["bound to ?x", "support"],
        "Gentilly": ["bound to ?place", "answer", "support"],
    }
    assert [node.shape for node in found.nodes] == ["linked", "unknown", "answer"]
    assert [(edge.label, [str(role) for role in edge.roles]) for edge in found.edges] == [
        ("director", ["support", "stands for “directed by”"]),
        ("birth place", ["support", "stands for “birth place”"]),
    ]
    assert [(one.label, len(one.support)) for one in found.answers] == [("Gentilly", 2)]
    assert found.notes == ()
    replay = load_run(run.save(tmp_path / "run.jsonl"))
    assert (replay.unrecorded_graph, build_subgraph(replay)) == (None, found)


def test_an_unfinished_run_shows_what_is_linked_so_far() -> None:
    run = chatty("Who directed Arrival?", Scripted(DIRECTED))
    assert build_subgraph(run) == Subgraph()
    assert "No vertex is linked yet" in render_svg(Subgraph())
    run.go(until="vertex_selection[Arrival]")
    assert roles(build_subgraph(run)) == {"Arrival": ["linked to “Arrival”"]}


def test_an_empty_answer_leaves_the_linked_vertices() -> None:
    replies = {
        "chatty_kg/qir": qir("Ted Chiang | directed by | ?x"),
        "chatty_kg/predicate_selection": predicates([]),
    }
    run = chatty("Whom did Ted Chiang direct?", Scripted(replies)).go()
    assert not run.answer
    assert roles(build_subgraph(run)) == {"Ted Chiang": ["linked to “Ted Chiang”"]}


def test_a_count_is_no_node_but_supported_and_literals_and_blank_nodes_are() -> None:
    triple = (iri("arrival"), iri("runtime"), Literal(116))
    values = (Value(Literal(116), "116", (triple,)), Value(BNode("b"), "b"))
    found = roles(build_subgraph(answered(Answer("list", values))))
    assert found == {"Arrival": ["support"], "116": ["answer", "support"], "blank node": ["answer"]}
    triples = tuple((iri(name), iri("director"), iri("denis")) for name in ("arrival", "dune"))
    found = build_subgraph(answered(Answer("count", (Value(Literal(2), "2", triples),))))
    assert set(roles(found)) == {"Arrival", "Dune", "Denis Villeneuve"}
    assert [(one.label, one.support) for one in found.answers] == [("2", triples)]


def test_what_does_not_hold_together_binds_nothing() -> None:
    """Each pattern alone would match; the director of another film is not ?x of this one."""
    run = born()
    stray = (iri("lynchs_dune"), iri("director"), iri("lynch"))
    [value] = run.answer.values
    values = (Value(value.term, value.label, (*value.support, stray)),)
    run.answer = Answer("list", values, run.answer.queries)
    assert roles(build_subgraph(run))["lynch"] == ["support"]


# --- the cut


def chains(number: int) -> Answer:
    """Values that each stand on a chain of two triples from one vertex."""

    def chain(n: int) -> tuple[Triple, ...]:
        return (iri("start"), iri("p"), iri(f"m{n}")), (iri(f"m{n}"), iri("q"), iri(f"v{n}"))

    return Answer("list", tuple(Value(iri(f"v{n}"), f"v{n}", chain(n)) for n in range(number)))


@pytest.mark.parametrize(
    ("values", "most", "nodes", "answers", "said"),
    [
        (29, 60, 59, 29, ""),
        (602, 60, 59, 29, "59 of 1,205 nodes shown, with 29 of 602 answers"),
        (5, 5, 5, 2, "5 of 11 nodes shown, with 2 of 5 answers"),
        (1, 2, 1, 1, "1 of 3 nodes shown; 2 triples of v0 left out"),
    ],
)
def test_supports_are_kept_whole_and_the_cut_has_its_number(
    values: int, most: int, nodes: int, answers: int, said: str
) -> None:
    found = build_subgraph(answered(chains(values)), max_nodes=most)
    assert (len(found.nodes), len(found.answers), found.omission_note) == (nodes, answers, said)
    terms = {node.term for node in found.nodes}
    assert all(set(edge.triple[::2]) <= terms for edge in found.edges)
    assert all(len(one.support) == 2 for one in found.answers[1:])
    assert said in render_legend(found, None)


def test_many_thousand_supports_are_read_in_time() -> None:
    triples = tuple((iri(f"f{n}"), iri("director"), iri("denis")) for n in range(20_000))
    run = answered(Answer("count", (Value(Literal(20_000), "20000", triples),)))
    begun = time.perf_counter()
    found = build_subgraph(run)
    assert time.perf_counter() - begun < 5
    assert found.omission_note == "30 of 20,001 nodes shown; 19,971 triples of 20000 left out"


# --- expanding


def test_expanding_adds_both_directions_and_leaves_noise_out() -> None:
    run = directed()
    found = expand_node(films(), build_subgraph(run), iri("denis"))
    new = {label for label, told in roles(found).items() if told == ["found by expanding"]}
    assert new == {"Gentilly", "3", "Dune", "Sicario"}
    assert all(edge.label not in ("label", "type") for edge in found.edges)
    assert found.notes == ("Denis Villeneuve: all 4 more triples shown",)
    again = expand_node(films(), found, iri("denis"))
    assert (again.nodes[1].expansion_note, again.edges) == ("no more triples", found.edges)


def test_every_predicate_has_its_turn() -> None:
    kg = films(FILMS + "".join(f":x{n} :aaa :denis ." for n in range(30)))
    found = expand_node(kg, build_subgraph(directed()), iri("denis"), max_triples=4)
    assert {edge.label for edge in found.edges} == {
        "director",
        "aaa",
        "birth place",
        "number of children",
    }
    assert found.notes == ("Denis Villeneuve: 4 of 34 more triples shown",)


@pytest.mark.parametrize("term", [Literal("1"), BNode("b")])
def test_what_has_no_triples_of_its_own_is_refused(term: Literal | BNode) -> None:
    with pytest.raises(SettingError, match="cannot be expanded"):
        expand_node(films(), Subgraph(), term)


@pytest.mark.long
def test_a_vertex_of_200_000_triples_is_cut_quickly(tmp_path: Path) -> None:
    file = tmp_path / "hub.nt"
    file.write_text(
        "".join(f"<{iri(f's{n}')}> <{iri('p')}> <{iri('hub')}> .\n" for n in range(200_000))
    )
    kg = open_kg(file)
    begun = time.perf_counter()
    found = expand_node(kg, Subgraph((Node(iri("hub"), "hub"),)), iri("hub"))
    assert time.perf_counter() - begun < 10
    assert len(found.nodes) == 21
    assert found.notes == ("hub: 20 of at least 500 more triples shown",)


def test_a_result_that_the_graph_cut_is_not_called_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    kg, cut = films(), ResultSet(("s", "p", "o"), ((None, iri("p"), iri("o")),), cut=True)
    monkeypatch.setattr(kg, "select", lambda query: cut)
    found = expand_node(kg, Subgraph((Node(iri("hub"), "hub"),)), iri("hub"))
    assert found.nodes[0].expansion_note == "1 of at least 2 more triples shown"


# --- the picture and the tables


def test_the_picture_tells_roles_apart_by_shape_and_text() -> None:
    picture = render_svg(build_subgraph(born()))
    said = " ".join(" ".join(ElementTree.fromstring(picture).itertext()).split())
    for text in ("“Arrival”", "?x", "?place, the answer", "director"):
        assert text in said
    assert [picture.count(f'class="{role}"') for role in ("linked", "via", "ans")] == [1, 1, 1]
    assert picture.count("<polygon") == 2  # an arrow head a triple
    assert "<title>" in picture
    assert "<desc>Arrival — director → Denis Villeneuve" in picture
    assert render_svg(build_subgraph(born())) == picture


def test_what_supports_an_answer_is_widened_and_marked_and_the_rest_recedes() -> None:
    found = expand_node(films(), build_subgraph(born()), iri("arrival"))
    picture = render_svg(found, found.answers[0])
    assert picture.count("✓ ") == 2
    assert picture.count('class="ed lit"') == 2
    assert 'class="neighbour dim"' in picture
    assert "✓" not in render_svg(found)


@pytest.mark.parametrize(
    "found", [star(1), star(14, "A label of some length"), star(60), star(15, "電影" * 20)]
)
def test_no_two_nodes_overlap(found: Subgraph) -> None:
    placed = compute_layout(found)
    for one, other in combinations(placed.boxes, 2):
        beside = abs(one.x - other.x) >= (one.width + other.width) / 2
        above = abs(one.y - other.y) >= (one.height + other.height) / 2
        assert beside or above
    for place in placed.boxes:
        assert place.x - place.width / 2 > 0 and place.x + place.width / 2 < placed.width
        assert place.y - place.height / 2 > 0 and place.y + place.height / 2 < placed.height


@pytest.mark.parametrize("ends", ["aa", "ab ba ab", "ab bc ca", "ab cd"])
def test_loops_parallels_triangles_and_parts_are_drawn(ends: str) -> None:
    nodes = tuple(Node(iri(name), name) for name in sorted({*ends} - {" "}))
    edges = tuple(
        Edge((iri(s), iri(f"p{n}"), iri(o)), f"p{n}") for n, (s, o) in enumerate(ends.split())
    )
    found = Subgraph(nodes, edges)
    lines = re.findall(r'd="(M[^"]* C[^"]*)"', render_svg(found))
    assert len(set(lines)) == len(edges)  # no line hides another
    assert "nan" not in render_svg(found)


def test_the_tables_name_every_triple_its_roles_and_its_answers() -> None:
    html = render_tables(build_subgraph(born()), RenderContext())
    for text in ("stands for “directed by”", "birth place", "bound to ?place, answer", "Gentilly"):
        assert text in html
    assert re.search(r"<td>support, stands for “birth place”</td><td>Gentilly</td>", html)


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("Arrival", "Arrival"),
        ("a" * 28, "a" * 28),
        ("a" * 29, "a" * 27 + "…"),
        ("電" * 20, "電" * 13 + "…"),
    ],
)
def test_labels_are_shortened_by_their_width(text: str, short: str) -> None:
    assert fit_width(text, 28) == short
    assert text_width(short, 13) <= text_width("W" * 28, 13)
