"""The subgraph of a run: the roles in it, its limits, how it is expanded, and how it is drawn."""

import re
import time
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree

import pytest
from rdflib import BNode, Literal, URIRef
from small import DIRECTED, FILMS, Alone, chatty, films, iri, predicates, qir

from kgwb import load_run
from kgwb.errors import SettingError
from kgwb.kg import ResultSet
from kgwb.llm import Scripted
from kgwb.records import Role
from kgwb.run import Run
from kgwb.run.answers import Answer, Value
from kgwb.show.subgraph import Edge, Node, Subgraph, build_subgraph, expand_node, subgraph_of_answer
from kgwb.show.subgraph_picture import (
    EMPTY_MESSAGE,
    box_lines,
    compute_layout,
    edge_curve,
    place_labels,
    render_legend,
    render_svg,
    render_tables,
    text_width,
)
from kgwb.show.terms import RenderContext
from kgwb.terms import Term, Triple
from kgwb.text import fit_width

BORN = {
    "chatty_kg/qir": qir(
        "Arrival | directed by | ?x", "?x | birth place | ?place", target="?place"
    ),
    "chatty_kg/predicate_selection": predicates(["director"], ["birth place"]),
}
ARRIVAL = Role("linked", "Arrival")
ANSWER = Role("answer")
SUPPORT = Role("support")
NEIGHBOUR = Role("neighbour")


def directed() -> Run:
    return chatty("Who directed Arrival?", Scripted(DIRECTED)).go()


def born() -> Run:
    return chatty("Where was the director of Arrival born?", Scripted(BORN)).go()


def answered(answer: Answer) -> Run:
    """The run of a system that has no records but its answer."""
    kg = films()
    system = Alone(lambda run: None)
    iris = {term for triple in answer.support for term in triple if isinstance(term, URIRef)}
    named = replace(answer, names=tuple(kg.names(sorted(iris)).items()))
    system.answer = lambda question, dialogue, run: named
    return Run(system, "Alone?", kg=kg, models=Scripted({})).go()


def roles_by_label(subgraph: Subgraph) -> dict[str, tuple[Role, ...]]:
    return {node.label: node.roles for node in subgraph.nodes}


def numbers_in(text: str) -> list[int]:
    """The numbers in a note, such as 20 and 812 in "20 of at least 812 more triples shown"."""
    return [int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*", text)]


def star(leaves: int, label: str = "leaf") -> Subgraph:
    """A hub with so many leaves."""
    hub = Node(iri("hub"), "hub", (Role("linked", "hub"),))
    nodes = [Node(iri(f"n{n}"), f"{label} {n}", (ANSWER,)) for n in range(leaves)]
    edges = [Edge((hub.term, iri("p"), node.term), "predicate") for node in nodes]
    return Subgraph((hub, *nodes), tuple(edges))


# --- from records to roles


def test_nodes_and_edges_have_their_roles_also_in_a_replay(tmp_path: Path) -> None:
    run = born()
    subgraph = build_subgraph(run)
    assert roles_by_label(subgraph) == {
        "Arrival": (ARRIVAL, SUPPORT),
        "Denis Villeneuve": (Role("unknown", "?x"), SUPPORT),
        "Gentilly": (Role("unknown", "?place"), ANSWER, SUPPORT),
    }
    assert [node.shape for node in subgraph.nodes] == ["linked", "unknown", "answer"]
    assert {edge.label: edge.roles for edge in subgraph.edges} == {
        "director": (SUPPORT, Role("relation", "directed by")),
        "birth place": (SUPPORT, Role("relation", "birth place")),
    }
    [answer] = subgraph.answers
    assert (answer.label, len(answer.support)) == ("Gentilly", 2)
    assert subgraph.notes == ()

    replay = load_run(run.save(tmp_path / "run.jsonl"))
    assert replay.unrecorded_graph is None
    assert build_subgraph(replay) == subgraph


def test_an_unfinished_run_has_the_vertices_that_are_linked_so_far() -> None:
    run = chatty("Who directed Arrival?", Scripted(DIRECTED))
    assert build_subgraph(run) == Subgraph()
    assert render_svg(Subgraph()) == EMPTY_MESSAGE
    run.go(until="vertex_selection[Arrival]")
    assert roles_by_label(build_subgraph(run)) == {"Arrival": (ARRIVAL,)}


def test_an_empty_answer_leaves_the_linked_vertices() -> None:
    replies = {
        "chatty_kg/qir": qir("Ted Chiang | directed by | ?x"),
        "chatty_kg/predicate_selection": predicates([]),
    }
    run = chatty("Whom did Ted Chiang direct?", Scripted(replies)).go()
    assert not run.answer
    name = "Ted Chiang"
    assert roles_by_label(build_subgraph(run)) == {name: (Role("linked", name),)}


def test_literals_and_blank_nodes_are_nodes() -> None:
    triple = (iri("arrival"), iri("runtime"), Literal(116))
    values = (Value(Literal(116), "116", (triple,)), Value(BNode("b"), "b"))
    assert roles_by_label(build_subgraph(answered(Answer("list", values)))) == {
        "Arrival": (SUPPORT,),
        "116": (ANSWER, SUPPORT),
        "a node without a name": (ANSWER,),
    }


def test_a_count_is_not_a_node_but_has_its_support() -> None:
    triples = tuple((iri(name), iri("director"), iri("denis")) for name in ("arrival", "dune"))
    subgraph = build_subgraph(answered(Answer("count", (Value(Literal(2), "2", triples),))))
    assert set(roles_by_label(subgraph)) == {"Arrival", "Dune", "Denis Villeneuve"}
    assert [(answer.label, answer.support) for answer in subgraph.answers] == [("2", triples)]


def test_triples_that_match_single_patterns_only_bind_nothing() -> None:
    """Each pattern alone would match; the director of another film is not ?x of this one."""
    run = born()
    stray = (iri("lynchs_dune"), iri("director"), iri("lynch"))
    [value] = run.answer.values
    values = (Value(value.term, value.label, (*value.support, stray)),)
    run.execution.answer = Answer("list", values, run.answer.queries)
    [lynch] = [node for node in build_subgraph(run).nodes if node.term == iri("lynch")]
    assert lynch.roles == (SUPPORT,)


# --- limits


def chains(number: int) -> Answer:
    """Values that each stand on a chain of two triples from one vertex."""

    def chain(n: int) -> tuple[Triple, ...]:
        return (iri("start"), iri("p"), iri(f"m{n}")), (iri(f"m{n}"), iri("q"), iri(f"v{n}"))

    return Answer("list", tuple(Value(iri(f"v{n}"), f"v{n}", chain(n)) for n in range(number)))


@pytest.mark.parametrize(
    ("values", "max_nodes", "nodes", "answers", "note"),
    [
        (29, 60, 59, 29, ""),
        (602, 60, 59, 29, "59 of 1,205 nodes shown, with 29 of 602 answers"),
        (5, 5, 5, 2, "5 of 11 nodes shown, with 2 of 5 answers"),
        (1, 2, 1, 1, "1 of 3 nodes shown; 2 triples of v0 left out"),
    ],
)
def test_supports_are_kept_whole_and_a_note_has_the_numbers(
    values: int, max_nodes: int, nodes: int, answers: int, note: str
) -> None:
    subgraph = build_subgraph(answered(chains(values)), max_nodes=max_nodes)
    assert len(subgraph.nodes) == nodes
    assert len(subgraph.answers) == answers
    assert subgraph.omission_note == note
    terms = {node.term for node in subgraph.nodes}
    assert all(set(edge.triple[::2]) <= terms for edge in subgraph.edges)
    assert all(len(answer.support) == 2 for answer in subgraph.answers[1:])
    assert note in render_legend(subgraph, None)


@pytest.mark.parametrize(
    ("role", "sign"),
    [(ARRIVAL, "linked"), (Role("unknown", "?x"), "on the way"), (ANSWER, "answer")],
)
def test_a_legend_explains_the_shapes_of_its_picture_and_no_others(role: Role, sign: str) -> None:
    legend = render_legend(Subgraph((Node(iri("Arrival"), "Arrival", (role,)),)), None)
    assert re.findall(r">([^<>]*\w[^<>]*)<", legend) == [sign]


def test_many_thousand_supports_are_read_in_time() -> None:
    triples = tuple((iri(f"f{n}"), iri("director"), iri("denis")) for n in range(20_000))
    run = answered(Answer("count", (Value(Literal(20_000), "20000", triples),)))
    begun = time.process_time()
    subgraph = build_subgraph(run)
    assert time.process_time() - begun < 5
    assert numbers_in(subgraph.omission_note) == [30, 20_001, 19_971, 20_000]


# --- expanding


def test_expanding_adds_both_directions_and_leaves_noise_out() -> None:
    kg = films(f"{FILMS} :denis :contract [ :year 2016 ; :with :dune ] .")
    subgraph = expand_node(kg, build_subgraph(directed()), iri("denis"))
    roles = roles_by_label(subgraph)
    added = {label for label in roles if roles[label] == (NEIGHBOUR,)}
    assert added == {"Gentilly", "3", "Dune", "Sicario", "contract: with Dune; year 2016"}
    assert all(edge.label not in ("label", "type") for edge in subgraph.edges)
    assert subgraph.notes == ("Denis Villeneuve: all 5 more triples shown",)

    again = expand_node(kg, subgraph, iri("denis"))
    assert numbers_in(again.nodes[1].expansion_note) == []
    assert again.edges == subgraph.edges


def test_a_list_of_thousands_is_described_by_its_members_within_the_time_of_a_query() -> None:
    members = " ".join(f":m{n}" for n in range(4_000))
    kg = films(f"{FILMS} :denis :reads ( {members} ) .")
    subgraph = expand_node(kg, build_subgraph(directed()), iri("denis"))
    assert any(label.startswith("(m0, m1, m2, ") for label in roles_by_label(subgraph))


def test_predicates_take_turns() -> None:
    kg = films(FILMS + "".join(f":x{n} :aaa :denis ." for n in range(30)))
    subgraph = expand_node(kg, build_subgraph(directed()), iri("denis"), max_triples=4)
    assert len({edge.label for edge in subgraph.edges}) == 4
    [note] = subgraph.notes
    assert numbers_in(note) == [4, 34]


@pytest.mark.parametrize("term", [Literal("1"), BNode("b")])
def test_a_literal_or_blank_node_cannot_be_expanded(term: Literal | BNode) -> None:
    with pytest.raises(SettingError, match="has no neighbours"):
        expand_node(films(), Subgraph(), term)


def test_only_so_many_triples_of_a_vertex_are_asked_for() -> None:
    kg = films(
        "@prefix : <http://example.org/> ." + "".join(f":s{n} :p :hub ." for n in range(600))
    )
    subgraph = expand_node(kg, Subgraph((Node(iri("hub"), "hub"),)), iri("hub"))
    assert len(subgraph.nodes) == 21
    assert numbers_in(subgraph.nodes[0].expansion_note) == [20, 500]


def test_a_result_that_the_graph_cut_is_not_called_complete(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kg = films()
    result = ResultSet(("s", "p", "o"), ((None, iri("p"), iri("o")),), cut=True)
    monkeypatch.setattr(kg, "select", lambda query: result)
    subgraph = expand_node(kg, Subgraph((Node(iri("hub"), "hub"),)), iri("hub"))
    assert subgraph.nodes[0].expansion_note == "1 of at least 2 more triples shown"


# --- the picture and the tables


def test_the_picture_distinguishes_roles_by_shape_and_text() -> None:
    subgraph = build_subgraph(born())
    picture = render_svg(subgraph)
    shown_text = " ".join(" ".join(ElementTree.fromstring(picture).itertext()).split())
    for text in ("“Arrival”", "?x", "?place, the answer", "director"):
        assert text in shown_text
    assert [picture.count(f'class="{shape}"') for shape in ("linked", "via", "ans")] == [1, 1, 1]
    assert picture.count("<polygon") == len(subgraph.edges)
    assert "<title>" in picture
    assert "<desc>Arrival — director" in picture
    assert render_svg(subgraph) == picture


def test_the_support_of_an_answer_is_highlighted_and_the_rest_recedes() -> None:
    subgraph = expand_node(films(), build_subgraph(born()), iri("arrival"))
    picture = render_svg(subgraph, subgraph.answers[0])
    assert picture.count("✓ ") == 2
    assert picture.count('class="ed lit"') == 2
    assert 'class="neighbour dim"' in picture
    assert "✓" not in render_svg(subgraph)


@pytest.mark.parametrize(
    "subgraph", [star(1), star(14, "A label of some length"), star(60), star(15, "電影" * 20)]
)
def test_no_two_nodes_overlap(subgraph: Subgraph) -> None:
    layout = compute_layout(subgraph)
    for box, other in combinations(layout.boxes, 2):
        is_beside = abs(box.x - other.x) >= (box.width + other.width) / 2
        is_above = abs(box.y - other.y) >= (box.height + other.height) / 2
        assert is_beside or is_above
    for box in layout.boxes:
        assert box.width / 2 < box.x < layout.width - box.width / 2
        assert box.height / 2 < box.y < layout.height - box.height / 2


@pytest.mark.parametrize("subgraph", [star(1), star(60)])
def test_a_picture_is_never_so_small_that_its_letters_cannot_be_read(subgraph: Subgraph) -> None:
    picture = render_svg(subgraph)
    layout = compute_layout(subgraph)
    [min_width] = re.findall(r"min-width:(\d+)px", picture)
    [max_height] = re.findall(r"max-height:(\d+)px", picture)
    smallest_letters = 10.5  # the rule for .sub in look.css
    scale = min(int(min_width) / layout.width, int(max_height) / layout.height)
    assert scale * smallest_letters >= 8.9
    assert picture.startswith('<div class="across">'), "what is wider than its place scrolls"


@pytest.mark.parametrize("ends", ["aa", "ab ba ab", "ab bc ca", "ab cd"])
def test_loops_parallel_edges_triangles_and_parts_are_drawn(ends: str) -> None:
    nodes = tuple(Node(iri(name), name) for name in sorted({*ends} - {" "}))
    edges = []
    for n, (subject, object_) in enumerate(ends.split()):
        edges.append(Edge((iri(subject), iri(f"p{n}"), iri(object_)), f"p{n}"))
    picture = render_svg(Subgraph(nodes, tuple(edges)))
    lines = re.findall(r'd="(M[^"]* C[^"]*)"', picture)
    assert len(set(lines)) == len(edges)  # no line hides another
    assert "nan" not in picture


def test_the_tables_have_every_triple_with_its_roles_and_answers() -> None:
    tables = render_tables(build_subgraph(born()), RenderContext())
    for text in ("“directed by”", "birth place", "bound to ?place, answer", "Gentilly"):
        assert text in tables
    assert re.search(r"“birth place”</td><td>Gentilly</td>", tables)


@pytest.mark.parametrize(
    ("first", "second", "distinctions"),
    [
        (iri("Dune_1984"), iri("Dune_2021"), ["Dune_1984", "Dune_2021"]),
        (iri("a/Dune"), iri("b/Dune"), [f"{iri('a/Dune')}", f"{iri('b/Dune')}"]),
        (Literal("Dune", "en"), iri("Dune_2021"), ["Dune", "Dune_2021"]),
        (Literal("Dune", "en"), Literal("Dune", "de"), ["en", "de"]),
        (BNode("a"), BNode("b"), ["", ""]),
        (iri("Dune_1984"), Literal("Arrival"), ["", ""]),
    ],
)
def test_nodes_whose_labels_look_the_same_are_told_apart(
    first: Term, second: Term, distinctions: list[str]
) -> None:
    names = tuple((term, "Dune") for term in (first, second) if isinstance(term, URIRef))
    value = Value(first, "Dune", ((first, iri("p"), second),))
    subgraph = subgraph_of_answer(Answer("list", (value,), names=names))
    assert [node.distinction for node in subgraph.nodes] == distinctions
    for node in subgraph.nodes:
        if node.distinction:
            _, caption = box_lines(node)
            assert node.distinction.endswith(caption.lstrip("…"))
            assert node.name == f"{node.label} ({node.distinction})"
    tables = render_tables(subgraph, RenderContext(names={str(term): name for term, name in names}))
    for node in subgraph.nodes:
        if isinstance(node.term, URIRef):
            assert tables.count(f">{node.name}</a>") == 2


def test_nodes_that_expanding_adds_and_long_labels_are_told_apart() -> None:
    films_named = Subgraph(
        (Node(iri("lynchs_dune"), "Dune"), Node(iri("denis"), "Denis Villeneuve"))
    )
    expanded = expand_node(films(), films_named, iri("denis"))
    named = {node.name for node in expanded.nodes}
    assert {"Dune (lynchs_dune)", "Dune (dune)", "Arrival"} <= named

    head = "International Conference on Learning Representations"
    triple = (iri("ICLR_2019"), iri("next"), iri("ICLR_2020"))
    names = ((triple[0], f"{head} 2019"), (triple[2], f"{head} 2020"))
    answer = Answer("list", (Value(triple[0], f"{head} 2019", (triple,)),), names=names)
    drawn = [box_lines(node) for node in subgraph_of_answer(answer).nodes]
    assert [caption for _, caption in drawn] == ["ICLR_2019", "ICLR_2020"]


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("a" * 28, "a" * 28),
        ("a" * 29, "a" * 27 + "…"),
        ("電" * 20, "電" * 13 + "…"),
    ],
)
def test_labels_are_shortened_by_their_width(text: str, short: str) -> None:
    assert fit_width(text, 28) == short
    assert text_width(short, 13) <= text_width("W" * 28, 13)


# --- lines and labels


def machine_states() -> Subgraph:
    """Three nodes in one column, in a row; the one in the middle is the widest."""
    names = ("start", "first", "a second one that is wide", "third")
    hub, *states = (Node(iri(f"s{n}"), name) for n, name in enumerate(names))
    hub = replace(hub, roles=(Role("linked", "hub"),))
    edges = [Edge((hub.term, iri("p"), state.term), "to") for state in states]
    first, _, third = states
    edges.append(Edge((first.term, iri("p"), third.term), "next"))
    return Subgraph((hub, *states), tuple(edges))


def test_an_edge_within_a_column_goes_round_the_boxes_and_ends_at_its_own() -> None:
    layout = compute_layout(machine_states())
    curve = edge_curve(layout, 3)
    third, between = layout.boxes[3], layout.boxes[2]
    assert curve.middle.real > between.x + between.width / 2
    assert curve.second_control.real > curve.end.real >= third.x + third.width / 2


def test_a_picture_is_as_wide_as_its_widest_curve() -> None:
    states = machine_states()
    first, last = states.nodes[1], states.nodes[3]
    there, back = (first.term, iri("p"), last.term), (last.term, iri("p"), first.term)
    edges = [*states.edges[:-1], *(Edge(triple, "") for triple in (there, back, there))]
    layout = compute_layout(replace(states, edges=tuple(edges)))
    for number in range(len(edges)):
        curve = edge_curve(layout, number)
        assert max(curve.point(part / 10).real for part in range(11)) < layout.width


def test_no_label_of_a_picture_lies_on_another() -> None:
    left = [Node(iri(f"l{n}"), f"Person {n}", (ANSWER,)) for n in range(3)]
    right = [Node(iri(f"r{n}"), f"Job {n}") for n in range(2)]
    hub = Node(iri("hub"), "hub", (Role("linked", "hub"),))
    edges = [Edge((hub.term, iri("p"), node.term), "influenced by") for node in left]
    edges += [
        Edge((person.term, iri("q"), job.term), "occupation") for person in left for job in right
    ]
    layout = compute_layout(Subgraph((hub, *left, *right), tuple(edges)))
    curves = [edge_curve(layout, number) for number in range(len(edges))]
    labels = [edge.label for edge in edges]
    boxes = [
        (place, text_width(label, 11))
        for place, label in zip(place_labels(curves, labels), labels, strict=True)
    ]
    for number, (place, width) in enumerate(boxes):
        for other, other_width in boxes[:number]:
            apart = place - other
            is_beside = abs(apart.real) >= (width + other_width) / 2
            assert is_beside or abs(apart.imag) >= 8
