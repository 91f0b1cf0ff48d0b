"""What the paper of Triad says (Zong et al., 2024), line by line.

Its code is not published, so that there is no profile ``reference``.
"""

import tomllib
from pathlib import Path
from typing import Any

import pytest
import rdflib
import triads
from rdflib import RDF, RDFS, Literal
from small import FILMS, answer_of, asked, films, iri, keys
from triads import (
    QUESTION,
    answered,
    as_published,
    choice,
    filled,
    of_type,
    requests_of,
    template,
    triplets,
    uris,
)

import kgwb
from conformance.claims import conforms, violated_by
from conformance.whole_runs import (
    WholeRuns,
    check_whole_runs,
    open_in_order,
    read_cases,
    run_to_end,
)
from kgwb.errors import SettingError
from kgwb.llm import ChatRequest, Scripted
from kgwb.run import Run
from kgwb.systems.triad.gold import collect_linked_iris

ADVISOR = "kgwb/systems/triad/advisor.py"
DECISION_MAKER = "kgwb/systems/triad/decision_maker.py"
GENERALIST = "kgwb/systems/triad/generalist.py"
INIT = "kgwb/systems/triad/__init__.py"
SETTINGS = "kgwb/systems/triad/settings.py"
NOTHING = triplets("Nothing | born in | ?x")
"""Triplets whose mention is not in the graph."""


def systems_text(request: Any) -> str:
    """The guidelines that a request begins with."""
    content: str = request.messages[0].content
    return content


def places(run: Run) -> list[str]:
    return [step.subject for step in run.steps if step.agent == "attempt"]


# --- Section 2: phases and roles


@conforms("section 2.1", "four phases: parsing, URI linking, query construction, answer generation")
@conforms(
    "section 2.2",
    "one agent in three roles: the generalist does small tasks, the decision-maker chooses, the "
    "advisor answers",
)
@violated_by(INIT, '"advisor": ("answer", "own_knowledge"),', '"advisor": ("own_knowledge",),')
def test_the_phases_follow_each_other_and_each_agent_has_one_of_three_roles() -> None:
    run, _ = as_published()
    steps = list(dict.fromkeys(step.agent for step in run.steps))
    assert steps == [
        *("attempt", "triplets", "entity_retriever", "entity_choice", "relations"),
        *("relation_choice", "template", "queries", "query_choice", "answer_type", "answer"),
    ]
    roles = {step.agent: step.role for step in run.steps}
    assert roles == {
        "attempt": "",
        "triplets": "generalist",
        "entity_retriever": "decision-maker",
        "entity_choice": "decision-maker",
        "relations": "decision-maker",
        "relation_choice": "decision-maker",
        "template": "generalist",
        "queries": "decision-maker",
        "query_choice": "decision-maker",
        "answer_type": "generalist",
        "answer": "advisor",
    }


# --- Section 3.1: the generalist


GUIDELINES = tomllib.loads(Path(__file__).with_name("triad_guidelines.toml").read_text())
"""The guidelines that the appendices print, by the name of the prompt."""


@conforms(
    "section 3.1, equations 2 to 4; appendix B",
    "the prompts have the printed guidelines, N examples and a chain of thought",
    fast="guidelines of ours, which also say what to do with values, kinds, titles and plurals",
    setting="guidelines",
)
@conforms(
    "appendix C; appendix D",
    "the prompts of the decision-maker and of the advisor have the printed guidelines",
    fast="prompts of ours, which show names, numbers and what a relation leads to in place of URIs",
    switched_by="guidelines",
)
@violated_by(
    "prompts/triad/triplets_published.md",
    "3. Entities should represent the smallest semantic units and should not contain descriptive details.\n",
    "",
)
@violated_by("prompts/triad/triplets_published.md", ' Let\'s think step by step, in "reason"', "")
@violated_by(SETTINGS, "exemplars: Count = 3", "exemplars: Count = 2")
def test_the_prompts_have_the_guidelines_of_the_appendix_examples_and_a_chain_of_thought() -> None:
    models = [as_published()[1]]
    for answer_type in ("select", "yes or no"):
        models.append(as_published(triplets=NOTHING, answer_type=of_type(answer_type))[1])
    sent: dict[str, str] = {}
    for model in models:
        for request in model.requests:
            sent.setdefault(request.task.removeprefix("triad/"), systems_text(request))
    assert set(sent) == set(GUIDELINES)
    for prompt, guidelines in GUIDELINES.items():
        assert guidelines in sent[prompt]
        is_generalist = prompt in (
            "triplets_published",
            "template_published",
            "answer_type_reasoned",
        )
        assert sent[prompt].count("Example\n") == 3 * is_generalist
        assert ("Let's think step by step" in sent[prompt]) is is_generalist
    _, model = as_published(settings={"exemplars": 2})
    assert systems_text(model.requests[0]).count("Example\n") == 2
    _, model = answered()
    assert requests_of(model, "triplets") and not requests_of(model, "triplets_published")


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        ({"reason": "", "triplets": [["Dune", "by"]]}, "lacks a part"),
        ({"reason": "", "triplets": []}, "give 1 to"),
        (triplets("Dune | by | ?a person"), "is no variable"),
    ],
)
@conforms("appendix B, triplets 1", "a triplet is <entity1, relation, entity2>")
@conforms(
    "appendix B, triplets 2",
    "there is at least one triplet",
)
@conforms("appendix B, triplets 4 and 5", "an implicit entity is a variable, ?variable")
@violated_by(
    GENERALIST,
    '                yield f"{end!r} is no variable: write ?name"',
    "                pass",
)
@violated_by(GENERALIST, '            yield f"{triplet} lacks a part"', "            pass")
@violated_by(
    GENERALIST,
    "if not list_mentions(triplets) or len(triplets) > MAX_TRIPLETS:",
    "if len(triplets) > MAX_TRIPLETS:",
)
def test_triplets_have_the_printed_form(reply: Any, problem: str) -> None:
    run, _ = as_published(triplets=[reply, triads.TWO_HOPS])
    first, second = (step.output for step in run.steps if step.agent == "attempt")
    assert problem in first.fault
    assert [triplet.ends for triplet in second.triplets] == [
        ("Dune", "?person"),
        ("?person", "?city"),
    ]


@conforms(
    "section 3.1, equation 3",
    "a template with names is written once, and the linked URIs are put in afterwards: one call, "
    "however many candidates there are",
)
@violated_by(
    DECISION_MAKER, "for options in combinations[:limit]:", "for options in combinations[:1]:"
)
def test_one_template_is_written_and_filled_with_every_candidate() -> None:
    run, model = as_published()
    assert len(requests_of(model, "template_published")) == 1
    queries = run.output("queries[try 1/parsing]")
    sparql = [query.query.sparql for query in queries.kept]
    assert sparql == [filled("dune")["sparql"], filled("lynchs_dune")["sparql"]]


@conforms(
    "appendix B, template 3",
    "the model makes an effort to use the triplets; a template may lack one",
    fast="a template must have every triplet, and ask for one variable or one count",
    switched_by="strict_templates",
)
def test_a_template_may_lack_a_triplet() -> None:
    short = template("SELECT ?person ?film WHERE { <Dune> <directed by> ?person . }")
    one_hop = {
        "sparql": f"SELECT ?person ?film WHERE {{ <{iri('dune')}> <{iri('director')}> ?person . }}"
    }
    run, _ = as_published(template=short, query_choice=one_hop)
    assert answer_of(run).labels == ("Denis Villeneuve",)
    run, model = answered(template=[short, triads.template()])
    assert (answer_of(run).labels, len(requests_of(model, "template"))) == (("Missoula",), 2)


@pytest.mark.parametrize(
    "sparql",
    [
        f"SELECT ?city WHERE {{ <Dune> <directed by> ?x . ?x <{iri('birthPlace')}> ?city }}",
        "PREFIX e: <http://e/> SELECT ?city WHERE { e:dune <directed by> ?p . ?p <born in> ?city }",
    ],
)
@conforms("appendix B, template 5 and 6", "names stand in angle brackets; no PREFIX, no ':'")
@violated_by(
    GENERALIST, "if iri not in slots or iri in template:", "if iri in slots and iri in template:"
)
def test_a_template_has_names_and_no_uris(sparql: str) -> None:
    run, model = as_published(template=[template(sparql), template()])
    assert len(requests_of(model, "template_published")) == 2
    assert [run[f"attempt[{place}]"].output.has_invalid_reply for place in places(run)] == [
        True,
        False,
    ]
    assert answer_of(run).labels == ("Missoula",)


ROUTE = """
@prefix : <http://example.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:dune a :Film , :Story ; rdfs:label "Dune"@en , "Wüstenplanet"@de ; rdfs:comment "of sand" ; :director :denis ;
    :budget 165 . :alien a :Film ; rdfs:label "Alien" ; :director :scott ; :budget 11 .
:denis a :Person ; rdfs:label "Denis Villeneuve" . :scott rdfs:label "Ridley Scott" .
:Film rdfs:label "film" . :Unused rdfs:subClassOf :Film ; rdfs:label "film noir" .
"""
"""Two films whose class is in no fact, a class without things, two languages, a comment and numbers."""


@conforms(
    "appendix B, template 2",
    "a template is a standard SPARQL query: it may have types, filters on further triples, variables "
    "as predicates, lists with ; or a comma, paths, and other variables than the triplets",
    fast="each triple is one of the triplets",
    switched_by="free_templates",
)
@violated_by(GENERALIST, "if not allows_more and (", "if (has_unknown_predicate) or (")
@pytest.mark.parametrize(
    ("sparql", "label"),
    [
        ("SELECT ?x WHERE { <Dune> <directed by> ?x . <Dune> a <film> . }", "Denis Villeneuve"),
        (
            "SELECT ?x WHERE { <Dune> <directed by> ?x . ?x ?p ?n FILTER(isLiteral(?n)) }",
            "Denis Villeneuve",
        ),
        ("SELECT ?n WHERE { <Dune> <directed by> ?x . <Dune> ?p ?n FILTER(?n > 100) }", "165"),
    ],
)
def test_a_template_may_have_types_and_further_triples(sparql: str, label: str) -> None:
    replies = {
        "triplets": triplets("Dune | directed by | ?x", "Dune | kind | film"),
        "entity_choice": [uris("dune"), uris("Film")],
        "relation_choice": [uris("director"), {"uris": [str(RDF.type)]}],
        "settings": {"entities": 1, "own_knowledge": False},
    }
    run, _ = as_published(
        "Who directed the film Dune?", **replies, template=template(sparql), kg=films(ROUTE)
    )
    assert answer_of(run).labels == (label,)


@conforms(
    "section 3.2, equation 5, F_es",
    "all entities of the graph: a class, too, which no fact has",
    fast="a class is offered only if facts have it",
    switched_by="whole_graph",
)
@violated_by(
    "kgwb/run/linking.py",
    "add_classes_with_words(retrieved, run) if run.settings.whole_graph",
    "retrieved if run.settings.whole_graph",
)
@violated_by(
    "kgwb/run/linking.py",
    "if iri not in found and words <= set(",
    "if iri not in found and words > set(",
)
def test_a_class_is_an_entity() -> None:
    kind = triplets("?x | kind | film")
    replies = {
        "triplets": kind,
        "entity_choice": uris("Film", "Unused"),
        "relation_choice": {"uris": [str(RDF.type)]},
    }
    named = template("SELECT ?x WHERE { ?x <kind> <film> . }")
    run, model = as_published("Which films are there?", **replies, template=named, kg=films(ROUTE))
    [request] = requests_of(model, "entity_choice_published")
    assert request.variables["uris"].split() == [str(iri("Film")), str(iri("Unused"))]
    assert {*answer_of(run).labels} == {"Alien", "Dune"}


@violated_by(DECISION_MAKER, "fills_all = settings.free_templates", "fills_all = False")
@violated_by(
    GENERALIST,
    "predicates.setdefault(triplet.relation, predicate)",
    "predicates[triplet.relation] = relation_terms[0][0]",
)
@pytest.mark.parametrize(
    ("sparql", "labels"),
    [
        ("SELECT ?x WHERE { <Dune> <directed by> ?x ; <costs> ?n . }", ["Denis Villeneuve"]),
        ("SELECT ?n WHERE { <Dune> <directed by> ?x , ?y ; <costs> ?n . }", ["165"]),
        ("SELECT ?who WHERE { <Dune> <directed by> ?who }", ["Denis Villeneuve"]),
        ("SELECT ?x WHERE { ?x ^<Directed By> <dune> }", ["Denis Villeneuve"]),
        ("SELECT ?x WHERE { <Dune> <directed by>|<costs> ?x }", ["165", "Denis Villeneuve"]),
        (
            "SELECT ?m WHERE { ?m <directed by> ?x FILTER NOT EXISTS { ?m <costs> 165 } }",
            ["Alien"],
        ),
        ("ASK { <Dune> <directed by> ?who ; <costs> 165 }", ["true"]),
    ],
)
def test_a_template_may_have_lists_paths_and_other_variables(
    sparql: str, labels: list[str]
) -> None:
    replies = {
        "triplets": triplets("Dune | directed by | ?x", "Dune | costs | ?n"),
        "entity_choice": uris("dune"),
        "relation_choice": [uris("director"), uris("budget")],
        "settings": {"entities": 1, "relations": 1, "own_knowledge": False},
    }
    run, _ = as_published("What of Dune?", **replies, template=template(sparql), kg=films(ROUTE))
    assert sorted(answer_of(run).labels) == labels


BACKWARDS = triplets("?x | directs | Arrival")


@conforms(
    "section 3.1; appendix B, template 7",
    "a triple has the order that it has in the template, which is written before the URIs are known",
    fast="the direction in which the graph has the chosen relation",
    switched_by="as_written",
)
@violated_by(
    DECISION_MAKER,
    "direction = None if settings.as_written else option.direction",
    "direction = option.direction",
)
def test_a_triple_has_the_direction_of_the_template() -> None:
    written = {"triplets": BACKWARDS, "entity_choice": uris("arrival")}
    for order, label in (("?x <directs> <Arrival>", ()), ("<Arrival> <directs> ?x", "it")):
        run, _ = as_published(
            **written,
            relation_choice=[uris("director")] * 3,
            template=template(f"SELECT ?x WHERE {{ {order} . }}"),
            settings={"own_knowledge": False},
        )
        assert answer_of(run).labels == (("Denis Villeneuve",) if label else ())
    run, _ = answered(
        triplets=BACKWARDS,
        template=template("SELECT ?x WHERE { ?x <directs> <Arrival> . }"),
        relation_choice=choice(1),
        query_choice_judgement=choice(1),
    )
    assert answer_of(run).labels == ("Denis Villeneuve",)


@conforms(
    "section 3.1, equation 4",
    "a model classifies the type of the answer in the phase of answer generation",
    fast="the chosen query says the type; if the question asks how many, listed things are "
    "counted; a model is asked only if there is no query",
    switched_by="answer_type_from",
)
@violated_by(INIT, 'answer_type_from != "query"', 'answer_type_from == "query"')
def test_a_model_classifies_the_type_of_the_answer() -> None:
    run, model = as_published()
    assert [step.agent for step in run.steps][-2:] == ["answer_type", "answer"]
    assert len(requests_of(model, "answer_type_reasoned")) == 1
    run, model = answered()
    assert not requests_of(model, "answer_type")
    run, model = answered(triplets=NOTHING)
    assert len(requests_of(model, "answer_type")) == 1


@pytest.mark.parametrize(
    ("answer_type", "kind", "label"),
    [("select", "list", "Missoula"), ("count", "count", "1"), ("yes or no", "boolean", "true")],
)
@conforms(
    "appendix B, type 3",
    "the types are <select>, <yes or no>, and one that is lost in print, taken to be <count>",
)
@violated_by(ADVISOR, 'kind != "count" or are_amounts:', 'kind != "count" or terms:')
def test_the_type_of_the_answer_is_one_of_three(answer_type: str, kind: str, label: str) -> None:
    run, _ = as_published(answer_type=of_type(answer_type))
    assert (answer_of(run).kind, answer_of(run).labels) == (kind, (label,))


# --- Section 3.2: the decision-maker


@conforms(
    "section 3.2, equation 5, List_es",
    "all entities that text similarity finds in the graph are the options",
    fast="the best of them, with types, descriptions, and where labels are equal relations",
    switched_by="candidate_texts",
)
@conforms(
    "section 3.2, equation 5",
    "the model selects in any case",
    fast="a single vertex of exactly this label is taken without a model",
    switched_by="unasked_choice",
)
@conforms(
    "appendix C, entity selection",
    "the model sees the question, the entity and the URIs, and replies with URIs",
    fast="labels with what else is known, and numbers",
    setting="entity_options",
)
@violated_by(
    DECISION_MAKER,
    "by_uri = group_by_uri(candidates)",
    "by_uri = group_by_uri(candidates[:100])",
)
@violated_by(
    DECISION_MAKER,
    'variables: JsonObject = {"question": question, "entity": entity}',
    'variables: JsonObject = {"question": "?", "entity": entity}',
)
@violated_by(
    "kgwb/run/linking.py",
    "key=lambda candidate: (-candidate.score, candidate.iri)",
    "key=lambda candidate: candidate.iri",
)
@violated_by(DECISION_MAKER, 'uri.strip().removeprefix("<").removesuffix(">")', "uri.strip()")
def test_an_entity_is_chosen_by_uris_among_all_that_the_text_search_finds() -> None:
    one = {"triplets": triplets("Arrival | directed by | ?city"), "entity_choice": uris("arrival")}
    run, model = as_published(
        **one,
        relation_choice=uris("director"),
        template=template("SELECT ?city WHERE { <Arrival> <directed by> ?city . }"),
    )
    [request] = requests_of(model, "entity_choice_published")
    variables = {"question": QUESTION, "entity": "Arrival", "uris": str(iri("arrival")), "most": 1}
    assert request.variables == variables
    [candidate] = run.output("entity_retriever[try 1/parsing/Arrival]").candidates
    assert (candidate.types, candidate.relations) == ((), ())
    in_brackets = [f" <{uri}> " for uri in uris("dune", "lynchs_dune")["uris"]]
    run, _ = as_published(entity_choice={"uris": in_brackets})
    assert answer_of(run).labels == ("Missoula",)
    many = " ".join(f':dune{number} rdfs:label "Dune {number}" .' for number in range(150))
    _, model = as_published(kg=films(FILMS + many))
    [request] = requests_of(model, "entity_choice_published")
    offered = request.variables["uris"].split()
    assert len(offered) == 152
    # the most similar first, of equal ones by IRI
    assert offered[:2] == list(map(str, [iri("dune"), iri("lynchs_dune")]))
    longer = ':a rdfs:label "Dune and more" . :zzz rdfs:label "Dune" .'
    _, model = as_published(kg=films(FILMS + longer))
    [request] = requests_of(model, "entity_choice_published")
    assert [uri.rpartition("/")[2] for uri in request.variables["uris"].split()] == [
        *("dune", "lynchs_dune", "zzz", "a")
    ]
    _, model = answered(
        triplets=one["triplets"],
        template=template("SELECT ?city WHERE { <Arrival> <directed by> ?city . }"),
        query_choice_judgement=choice(1),
    )
    assert not requests_of(model, "entity_choice")


@pytest.mark.parametrize("chosen", [uris("dune"), uris("dune", "arrival"), uris("dune", "dune")])
@conforms(
    "section 3.2, equation 5; appendix C, entity selection 1 and 3",
    "exactly K URIs of the list are selected, or all if there are fewer",
    fast="at most K, the best first, and perhaps none",
    switched_by="exact_k",
)
@violated_by(SETTINGS, "entities: Count = 2", "entities: Count = 1")
@violated_by(DECISION_MAKER, "        fewest = most\n", "        fewest = 1\n")
def test_exactly_k_entities_of_the_list_are_chosen(chosen: dict[str, Any]) -> None:
    run, model = as_published(entity_choice=[chosen, uris("lynchs_dune", "dune")])
    assert len(requests_of(model, "entity_choice_published")) == 2
    assert answer_of(run).labels == ("Missoula",)
    run, _ = answered(entity_choice=choice(2), query_choice_judgement=choice(1))
    [option] = run.output("entity_choice[try 1/parsing/Dune]").chosen
    assert option.iri in {iri("dune"), iri("lynchs_dune")}


@conforms(
    "section 3.2, equation 6, F_rs",
    "the options are the relations one hop around the chosen entities, all of them: also types, "
    "labels and descriptions",
    fast="the 40 that are named most like the triplet's relation, without types, labels, "
    "descriptions and noise",
    switched_by="shown_relations",
)
@conforms(
    "section 3.2, equation 6",
    "one hop is one triple: the predicates of lists and containers are relations like others, and nothing is "
    "reached over them",
    fast="what a list or container holds counts as one hop from the thing that has the list",
    setting="whole_graph",
)
@conforms(
    "section 3.2, equation 6",
    "the options are the URIs alone",
    fast="with an example of what each leads to",
    setting="relation_examples",
)
@conforms(
    "appendix C, relation selection 1 to 3",
    "the model sees the question, two entities without an order, and URIs; not the words of the "
    "relation",
    fast="the triplet, and each relation as the triple that the graph would have",
    switched_by="relation_options",
)
@violated_by(DECISION_MAKER, "keeps_all=settings.whole_graph", "keeps_all=False")
@violated_by(DECISION_MAKER, "group_by_uri(relations)", "group_by_uri(relations[:100])")
@violated_by(DECISION_MAKER, "list(triplet.ends)", "[str(triplet)]")
@violated_by(DECISION_MAKER, "terms |= sample_reached_terms(triplet, choice, terms, run)", "pass")
@violated_by(
    DECISION_MAKER, "nearby = () if settings.whole_graph else predicates", "nearby = predicates"
)
def test_relations_are_chosen_by_uris_among_all_that_one_hop_reaches() -> None:
    run, model = as_published()
    first, second = requests_of(model, "relation_choice_published")
    assert first.variables == {
        "question": QUESTION,
        "entities": ["Dune", "?person"],
        "uris": "\n".join(map(str, [iri("director"), iri("starring"), RDF.type, RDFS.label])),
        "most": 2,
    }
    around = {str(iri(name)) for name in ("birthPlace", "director", "numberOfChildren")}
    assert set(second.variables["uris"].split()) == {*around, str(RDFS.label)}
    listed = FILMS + ":list :cast ( :dune :arrival ) ."
    _, model = as_published(kg=films(listed))
    offered = requests_of(model, "relation_choice_published")[0].variables["uris"].split()
    assert str(RDF.first) in offered and len(offered) == 5
    relations = run.output("relations[try 1/parsing/⟨Dune, directed by, ?person⟩]")
    assert {relation.example for relation in relations} == {""}
    many = " ".join(f":dune :p{number} {number} ." for number in range(120))
    _, model = as_published(kg=films(FILMS + many))
    assert len(requests_of(model, "relation_choice_published")[0].variables["uris"].split()) == 124
    _, model = answered()
    shown = requests_of(model, "relation_choice")[0].variables["relations"]
    assert shown[0]["leads to"] == "Denis Villeneuve"


@conforms(
    "section 3.2, equation 6, F_rs",
    "without the choice of URIs, relations are matched with names as text, as section 4.1 does for the index",
    fast=("by embeddings, and a part by spelling"),
    switched_by="spelling",
)
def test_without_the_choice_of_uris_relations_are_matched_as_text() -> None:
    settings = {"ablation": "no_uri_choice", "relations": 1}
    written = triplets("Dune | directer | ?person", "?person | birthplace | ?city")
    named = template(
        "SELECT ?city WHERE { <Dune> <directer> ?person . ?person <birthplace> ?city . }"
    )
    chosen = {"sparql": filled("dune")["sparql"].replace(" DISTINCT", "")}
    run, _ = as_published(triplets=written, template=named, query_choice=chosen, settings=settings)
    [relation] = run.output("relation_choice[try 1/parsing/⟨Dune, directer, ?person⟩]").chosen
    assert relation.iri == iri("director")
    requests = [call.request for call in run.calls.values() if call.kind == "similarity"]
    assert {request["spelling"] for request in requests} == {1.0}


@pytest.mark.parametrize("number", [1, 2])
@conforms(
    "section 3.2, equation 6; appendix C, relation selection 4 to 6",
    "at most K relations of the list are selected, the most likely first",
)
@violated_by(
    DECISION_MAKER,
    "task.min_choices <= len(chosen) <= task.max_choices",
    "task.min_choices <= len(chosen)",
)
def test_at_most_k_relations_are_chosen_the_most_likely_first(number: int) -> None:
    names = ["starring", "director"]
    first = uris(*names)
    second_attempt = [uris("director"), uris("birthPlace")]
    replies = [first, uris("birthPlace")] if number == 2 else [first, *second_attempt]
    run, _ = as_published(
        relation_choice=replies,
        settings={"relations": number},
    )
    steps = [step for step in run.steps if step.agent == "relation_choice"]
    chosen = [relation.iri for relation in steps[0].output.chosen] if steps[0].done else []
    assert chosen == ([iri(name) for name in names] if number == 2 else [])
    assert len(places(run)) == (1 if number == 2 else 2)


@conforms(
    "section 3.2, equation 7, List_qs",
    "every combination of template, entities and relations is a query",
    fast="at most 40 are run, those with the best options first",
    setting="query_limit",
)
@conforms("section 3.2, equation 7, F_qs", "queries that retrieve nothing are eliminated")
@conforms(
    "section 3.2, equation 7",
    "each query with a result is an option",
    fast="of several with the same result the first is",
    setting="merge_results",
)
@violated_by(
    DECISION_MAKER,
    "answered = [query for query in queries if query.rows]",
    "answered = list(queries)",
)
@violated_by(DECISION_MAKER, "MAX_COMBINATIONS = 20_000", "MAX_COMBINATIONS = 4")
def test_every_combination_is_a_query_and_those_without_a_result_are_eliminated() -> None:
    label = {"uris": [*uris("birthPlace", "director", "starring")["uris"], str(RDFS.label)]}
    first = {"uris": [*uris("director", "starring", "birthPlace")["uris"], str(RDFS.label)]}
    everywhere = films(FILMS + ":dune :birthPlace :gentilly . :denis :starring :amy .")
    run, _ = as_published(relation_choice=[first, label], settings={"relations": 4}, kg=everywhere)
    queries = run.output("queries[try 1/parsing]")
    assert len(queries.kept) + len(queries.empty) == 2 * 4 * 4
    assert {"Gentilly", "Missoula"} < {query.results[0] for query in queries.kept}
    assert all(query.rows == 0 for query in queries.empty)


@conforms(
    "appendix C, SPARQL selection",
    "the model sees the question and the SPARQL candidates",
    fast="the queries with names in place of URIs, and their first results",
    switched_by="query_options",
)
@conforms(
    "section 3.2, equation 7, K = 1; appendix C, SPARQL selection 1",
    "one of the queries is selected",
    fast="none may be right; a single query is judged too",
    setting="may_refuse_queries",
)
@conforms(
    "section 3.2, equation 7",
    "the decision-maker selects, also where one query is left",
    switched_by="asks_about_single",
)
@violated_by(
    DECISION_MAKER,
    'variables: JsonObject = {"question": question}\n    if not shows_results:',
    'variables: JsonObject = {"question": ""}\n    if not shows_results:',
)
def test_one_query_is_chosen_by_its_sparql() -> None:
    _, model = as_published()
    [request] = requests_of(model, "query_choice_published")
    listed = f"{filled('dune')['sparql']}\n{filled('lynchs_dune')['sparql']}"
    assert request.variables == {"question": QUESTION, "queries": listed}
    _, model = as_published(entity_choice=uris("dune"), settings={"entities": 1})
    assert len(requests_of(model, "query_choice_published")) == 1
    run, model = answered(
        entity_choice=choice(1), query_choice_judgement=choice(), settings={"tries": 1}
    )
    assert len(requests_of(model, "query_choice_judgement")) == 1
    assert "no query answers" in answer_of(run).reason


@conforms("appendix C, SPARQL selection 2", "a query that is not in the list cannot be selected")
@violated_by(
    DECISION_MAKER, '        return "this is none of the queries in the list"', '        return ""'
)
@violated_by(
    DECISION_MAKER,
    "            if key not in task.options:",
    "            if str(key)[:20] not in str(task.options):",
)
@violated_by(
    DECISION_MAKER,
    "by_text.setdefault(_normalize_space(filled.query.sparql), [filled])",
    "by_text.setdefault(filled.query.sparql, [filled])",
)
@pytest.mark.parametrize(
    "made_up", ["SELECT ?city WHERE { ?x ?y ?city }", filled("dune")["sparql"] + " LIMIT 1", ""]
)
def test_a_query_that_the_model_makes_up_is_not_taken(made_up: str) -> None:
    run, _ = as_published(query_choice=[{"sparql": made_up}, filled("dune")])
    assert answer_of(run).queries == (filled("dune")["sparql"],)
    assert len(places(run)) == 2
    # white space tells no queries apart
    spaced = triads.TEMPLATE.replace("{ ", "{\n  ").replace(" . ", "  .\n")
    run, _ = as_published(template=template(spaced), query_choice=filled("dune"))
    assert (answer_of(run).labels, len(places(run))) == (("Gentilly",), 1)


# --- Section 3.3: the advisor


@conforms(
    "section 3.3, equation 8; section 3.1, equation 4",
    "a count is right however long the list is: the graph counts what a cut result does not have",
)
@violated_by(ADVISOR, "if not result.cut:", "if result.rows:")
@violated_by("kgwb/run/answers.py", "queries=(*answer.queries, query))", "queries=answer.queries)")
@pytest.mark.parametrize(("row_limit", "queries"), [(10_000, 1), (8, 2)])
def test_a_count_is_right_if_its_result_was_cut(row_limit: int, queries: int) -> None:
    turtle = " ".join(f":film{number} :director :denis ." for number in range(7))
    graph = rdflib.Graph().parse(data=f"{FILMS} {turtle}", format="turtle")
    run, _ = as_published(
        "How many films did Denis Villeneuve direct?",
        kg=kgwb.open_kg(graph, row_limit=row_limit),
        triplets=triplets("?film | directed by | Denis Villeneuve"),
        entity_choice=uris("denis"),
        relation_choice=uris("director"),
        template=template("SELECT ?film WHERE { ?film <directed by> <Denis Villeneuve> . }"),
        query_choice=lambda request: {"sparql": request.variables["queries"].splitlines()[0]},
        answer_type=of_type("count"),
    )
    answer = answer_of(run)
    assert (answer.labels, len(answer.queries), answer.doubt) == (("10",), queries, "")


@conforms("section 3.3, equation 8", "the final query is run, and its result is the answer")
@violated_by(INIT, "    if last.query:", "    if last.query and not settings.own_knowledge:")
def test_the_advisor_answers_from_the_graph() -> None:
    run, model = as_published()
    assert (answer_of(run).labels, answer_of(run).ungrounded) == (("Missoula",), False)
    assert not requests_of(model, "own_knowledge_fact_published")


BANDS = """@prefix : <http://example.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
:can rdfs:label "Can" ; :member :jaki, :irmin ; :name "Can"@en, "Can"@de, "CAN" ; :albums 12, "12.0"^^xsd:decimal .
:jaki rdfs:label "Jaki" ; :born :aue . :irmin rdfs:label "Irmin" ; :alive true . :aue rdfs:label "Aue" ."""


def of_band(relation: str, sparql: str, answer_type: str = "select", **changes: Any) -> Run:
    """A run in ``paper`` whose query is a template about the band, with one relation."""
    run, _ = as_published(
        "What of Can?",
        kg=films(BANDS),
        triplets=triplets(f"Can | {relation} | ?x"),
        entity_choice=uris("can"),
        relation_choice=uris(relation),
        template=template(sparql),
        query_choice=lambda request: {"sparql": request.variables["queries"].splitlines()[0]},
        answer_type=of_type(answer_type),
        settings={"tries": 1, "entities": 1, **changes},
    )
    return run


@conforms(
    "section 3.3, equation 8",
    "a query of several columns gives its rows, also where the first of them is empty",
)
@violated_by("kgwb/run/ask.py", "kept_row = row if len(columns) > 1 else ()", "kept_row: Row = ()")
@violated_by(
    "kgwb/run/ask.py",
    "if cell is not None]\n        if cells:",
    "if cell is not None]\n        if row[0]:",
)
@violated_by(
    DECISION_MAKER,
    "cell for cell in chain.from_iterable(rows)",
    "cell for cell in (row[0] for row in rows)",
)
def test_a_query_of_several_columns_is_answered_by_its_rows() -> None:
    sparql = (
        "SELECT ?place ?x WHERE { <Can> <member> ?x . OPTIONAL { ?x ?p ?place . ?place ?q ?name } }"
    )
    answer = answer_of(of_band("member", sparql))
    assert sorted(answer.labels) == ["Aue · Jaki", "Irmin"]
    assert answer.columns == ("place", "x")
    rows = {value.label: value.row for value in answer.values}
    assert rows["Aue · Jaki"] == (iri("aue"), iri("jaki"))
    assert rows["Irmin"] == (None, iri("irmin"))
    assert all(value.support for value in answer.values)
    only_second = "SELECT ?none ?x WHERE { <Can> <member> ?x . OPTIONAL { ?none ?p ?x FILTER(isLiteral(?none)) } }"
    assert sorted(answer_of(of_band("member", only_second)).labels) == ["Irmin", "Jaki"]
    counted = answer_of(of_band("member", sparql, "count"))
    assert (counted.labels, counted.columns) == (("2",), ())


@conforms(
    "section 3.3, equation 8",
    "the values are those of the query: texts that differ in language, datatype or spelling are values of their own",
    fast="such forms are one value",
    switched_by="merges_forms",
)
def test_the_values_are_those_of_the_query() -> None:
    sparql = "SELECT ?x WHERE { <Can> <name> ?x . }"
    assert sorted(answer_of(of_band("name", sparql)).labels) == ["CAN", "Can", "Can"]
    assert len(answer_of(of_band("name", sparql, merges_forms=True)).labels) == 2
    albums = answer_of(of_band("albums", "SELECT ?x WHERE { <Can> <albums> ?x . }"))
    assert sorted(albums.labels) == ["12", "12"]


@pytest.mark.parametrize(
    ("answer_type", "prompt", "kind", "label", "said"),
    [
        ("yes or no", "own_knowledge_truth_published", "boolean", "true", "True"),
        ("yes or no", "own_knowledge_truth_published", "boolean", "false", "False"),
        ("select", "own_knowledge_fact_published", "list", "Moscow", "Moscow"),
        ("count", "own_knowledge_fact_published", "count", "3", "3"),
    ],
)
@conforms(
    "section 3.3",
    "without a feasible query the model answers from its own knowledge",
    fast="it does not, unless it is switched on; the answer has a reason and the asked type",
    switched_by="own_knowledge",
)
@conforms(
    "section 3.3; appendix D", "by the prompt of the answer's type: True or False, or one fact"
)
@violated_by(
    ADVISOR,
    '"triad/own_knowledge_truth" if is_boolean else',
    '"triad/own_knowledge_fact" if is_boolean else',
)
@violated_by(ADVISOR, "reason=reason, ungrounded=True", "reason=reason")
@violated_by(ADVISOR, 'rdflib.Literal(text == "True")', "rdflib.Literal(bool(text))")
@violated_by(
    ADVISOR,
    'ask_until_valid(prompt, {"question": question}',
    'ask_until_valid(prompt, {"question": reason}',
)
def test_the_advisor_answers_from_own_knowledge_by_the_type_of_the_answer(
    answer_type: str, prompt: str, kind: str, label: str, said: str
) -> None:
    replies = {
        "triplets": NOTHING,
        "answer_type": of_type(answer_type),
        "own_knowledge_fact": {"answer": said},
        "own_knowledge_truth": {"answer": said},
    }
    run, model = as_published(**replies)
    [request] = requests_of(model, prompt)
    assert request.variables == {"question": QUESTION}
    answer = answer_of(run)
    assert (answer.kind, answer.labels, answer.ungrounded) == (kind, (label,), True)
    means = {"true": True, "false": False, "3": 3}
    assert answer.values[0].term == Literal(means.get(label, label))
    run, _ = answered(triplets=NOTHING, answer_type={"type": answer_type})
    assert (answer_of(run).kind, answer_of(run).labels) == (kind, ())


@conforms(
    "section 4.2; Table 3",
    "an answer from own knowledge counts. How it is compared with URIs is not said: it is linked by a search of the "
    "names, as section 4.1 says of models alone; what is found first is meant",
    fast="it is a text",
    switched_by="links_own_answers",
)
@violated_by(ADVISOR, "run.kg.search(text, 1).hits", "run.kg.search(text, 1).hits[1:]")
@violated_by(ADVISOR, "run.kg.search(text, 1).hits", "run.kg.search(question, 1).hits")
@pytest.mark.parametrize(
    ("said", "term"),
    [
        ("Gentilly", iri("gentilly")),
        ("Gentilly, Quebec", iri("gentilly")),
        ("Moscow", Literal("Moscow")),
    ],
)
def test_an_answer_from_own_knowledge_is_a_thing_of_the_graph(said: str, term: Any) -> None:
    run, _ = as_published(triplets=NOTHING, own_knowledge_fact={"answer": said})
    [value] = answer_of(run).values
    assert (value.term, value.label, answer_of(run).ungrounded) == (term, said, True)


@conforms(
    "section 3.3",
    "the paper is silent on an unusable reply of the phase of answering: it is asked for again, and loses no "
    "answer",
)
@violated_by(GENERALIST, "for sample in range(settings.tries):", "for sample in range(1):")
@violated_by(
    GENERALIST,
    "            if not settings.own_knowledge:\n                raise\n            run.note",
    "            raise\n            run.note",
)
def test_an_unusable_reply_of_the_last_phase_loses_no_answer() -> None:
    again = ["no JSON", {"reason": "", "type": "number"}, of_type("count")]
    run, model = as_published(answer_type=again)
    assert (answer_of(run).labels, len(requests_of(model, "answer_type_reasoned"))) == (("1",), 3)
    run, model = as_published(answer_type="no JSON")
    assert (answer_of(run).labels, len(requests_of(model, "answer_type_reasoned"))) == (
        ("Missoula",),
        3,
    )
    truth = {"triplets": NOTHING, "answer_type": of_type("yes or no")}
    run, model = as_published(**truth, own_knowledge_truth=[{"answer": "Yes"}, {"answer": "False"}])
    assert answer_of(run).labels == ("false",)
    run, _ = as_published(**truth, own_knowledge_truth={"answer": "Yes"})
    assert (answer_of(run).kind, answer_of(run).labels) == ("boolean", ())


@pytest.mark.parametrize("tries", [1, 2, 3])
@conforms("section 3.3, T; section 4.4", "at most T attempts are made, then the model answers")
@conforms(
    "section 3.3",
    "a retry goes on though nothing changed",
    fast="an attempt that decides nothing otherwise is the last",
    switched_by="stop_unchanged",
)
@violated_by(
    INIT,
    "while phase and len(attempts) < settings.tries:",
    "while phase and len(attempts) <= settings.tries:",
)
def test_at_most_t_attempts_are_made(tries: int) -> None:
    run, model = as_published(triplets=NOTHING, settings={"tries": tries})
    assert len(places(run)) == tries == len(requests_of(model, "triplets_published"))
    assert answer_of(run).ungrounded
    run, _ = answered(triplets=NOTHING, settings={"tries": tries})
    assert len(places(run)) == min(tries, 2)


@conforms(
    "section 3.3",
    "the retry signal goes to the previous phases, beginning at parsing",
    fast="to the phase at fault",
    switched_by="retry_from",
)
@conforms(
    "section 3.3; appendix B and C",
    "the prompts say nothing of earlier attempts: the same is asked again",
    fast="the agents are told why there was no query",
    setting="retry_feedback",
)
@violated_by(GENERALIST, "sample = 0 if told else len(failed)", "sample = 0")
def test_a_retry_asks_the_same_again_from_parsing() -> None:
    wrong = template(
        "SELECT ?city WHERE { ?person <directed by> <Dune> . ?person <born in> ?city . }"
    )
    run, model = as_published(template=[wrong, template()])
    assert places(run) == ["try 1/parsing", "try 2/parsing"]
    first, second = requests_of(model, "triplets_published")
    assert first.messages == second.messages
    assert (first.seed, second.seed) == (7, 8)
    assert (first.temperature, second.temperature) == (0.0, 0.5)
    assert answer_of(run).labels == ("Missoula",)
    _, model = answered(triplets=[NOTHING, triads.TWO_HOPS])
    told = [request.variables["failed"] for request in requests_of(model, "triplets")]
    assert [len(faults) for faults in told] == [0, 1]


@pytest.mark.parametrize("agent", ["triplets", "template"])
@conforms(
    "section 3.3",
    "each agent is asked once in an attempt; an unusable reply leads to no query, and so to a retry",
    fast="it is asked up to 3 times, and shown what is wrong; then the attempt has failed",
    switched_by="theta",
)
@conforms("section 3.3", "if all attempts have unusable replies, the model answers")
@violated_by(INIT, 'back="parsing", has_invalid_reply=True', "back=None, has_invalid_reply=True")
def test_unusable_replies_lead_to_a_retry_and_then_to_own_knowledge(agent: str) -> None:
    bad: dict[str, Any] = {
        "triplets": triplets("?x | was born in | ?y"),
        "template": template("SELECT nonsense"),
    }
    run, model = as_published("When was he born?", **{agent: bad[agent]})
    assert len(requests_of(model, f"{agent}_published")) == len(places(run)) == 3
    assert (answer_of(run).labels, answer_of(run).ungrounded) == (("Moscow",), True)
    run, model = answered("When was he born?", **{agent: bad[agent]})
    assert len(requests_of(model, agent)) == 6  # the second attempt changes nothing
    assert answer_of(run).reason.startswith("cannot express")


# --- Section 4: hyperparameters, ablations, linking recall


@conforms("section 4.1; Table 4", "N = 3 examples, K = 2 entities and 2 relations, T = 3 attempts")
@violated_by(SETTINGS, "tries: Count = 3", "tries: Count = 2")
@violated_by(SETTINGS, "    relations: Count = 2", "    relations: Count = 3")
@pytest.mark.parametrize("profile", ["paper", "fast"])
def test_the_hyperparameters_are_those_of_the_paper(profile: str) -> None:
    run, model = as_published(triplets=NOTHING) if profile == "paper" else answered()
    assert systems_text(model.requests[0]).count("Example\n") == 3
    if profile == "paper":
        assert len(places(run)) == 3
        _, model = as_published()
    most = {request.variables["most"] for request in model.requests if "most" in request.variables}
    assert most - {1} == {2}


@conforms(
    "section 4.3, G-task and G-chat",
    "another model plays the generalist, and the other roles keep theirs",
)
@violated_by(
    INIT,
    '"generalist": ("triplets", "template", "written_query", "answer_type"),',
    '"generalist": ("triplets", "written_query", "answer_type"),',
)
def test_a_role_can_have_a_model_of_its_own() -> None:
    weak, strong = Scripted(triads.SCRIPT, name="weak"), Scripted(triads.SCRIPT, name="strong")
    run = triads.triad({"generalist": weak, "": strong}).go()
    assert {request.task for request in weak.requests} == {"triad/triplets", "triad/template"}
    assert "triad/entity_choice" in {request.task for request in strong.requests}
    own = triads.triad({"generalist": weak, "template": strong, "": strong})
    assert [own.model_name(agent) for agent in ("triplets", "template", "relations")] == [
        "weak",
        "strong",
        "strong",
    ]
    assert run.answer
    with pytest.raises(SettingError, match="generalst"):
        triads.triad({"generalst": weak})


@conforms("section 4.3, D-uri", "the selection of URIs is replaced by URI matching")
@violated_by(
    DECISION_MAKER,
    'if settings.ablation == "no_uri_choice" or is_decided_unasked(',
    "if is_decided_unasked(",
)
def test_without_d_uri_the_most_similar_are_taken_without_a_model() -> None:
    run, model = as_published(settings={"ablation": "no_uri_choice"})
    assert not {"entity_choice_published", "relation_choice_published"} & {*asked(model)}
    chosen = run.output("entity_choice[try 1/parsing/Dune]").chosen
    assert {option.iri for option in chosen} == {iri("dune"), iri("lynchs_dune")}


@conforms(
    "section 4.3, D-query",
    "the selection of queries is replaced by generation: the model writes an executable query",
)
@violated_by(GENERALIST, '"uris": shown,', '"uris": {},')
def test_without_d_query_the_model_writes_an_executable_query() -> None:
    settings = {"ablation": "no_query_choice"}
    written = {"reason": "", **filled("lynchs_dune")}
    run, model = as_published(written_query=written, settings=settings)
    [request] = requests_of(model, "written_query")
    assert request.variables["uris"]["Dune"] == [str(iri("dune")), str(iri("lynchs_dune"))]
    assert not {"template_published", "query_choice_published"} & {*asked(model)}
    assert (answer_of(run).labels, len(answer_of(run).support)) == (("Missoula",), 2)
    nothing = {"reason": "", "sparql": f"SELECT ?x WHERE {{ <{iri('dune')}> <{iri('born')}> ?x }}"}
    run, _ = as_published(written_query=nothing, settings=settings)
    assert (len(places(run)), answer_of(run).ungrounded) == (3, True)


@pytest.mark.parametrize(
    ("ablation", "answer_type", "label"),
    [
        ("none", "select", "Moscow"),
        ("no_fallback", "select", ""),
        ("no_fallback", "yes or no", ""),
        ("boolean_fallback", "select", ""),
        ("boolean_fallback", "yes or no", "true"),
    ],
)
@conforms("section 4.3, A-llm", "without it, no question is answered from own knowledge")
@conforms("section 4.3, A-fact", "without it, Boolean questions are, and single-fact ones are not")
@violated_by(INIT, ' and settings.ablation != "no_fallback":', ":")
@violated_by(ADVISOR, "if not is_boolean and TriadSettings", "if is_boolean and TriadSettings")
def test_the_rows_of_the_advisor_in_table_3(ablation: str, answer_type: str, label: str) -> None:
    replies = {"triplets": NOTHING, "answer_type": of_type(answer_type)}
    run, _ = as_published(**replies, settings={"ablation": ablation})
    assert answer_of(run).labels == ((label,) if label else ())


@conforms(
    "section 4.5",
    "recall of linking: of entities after the text search and after the selection, and of relations "
    "after the selection",
)
@violated_by(
    "kgwb/systems/triad/gold.py",
    'outputs["entity_retriever"], lambda retrieved: retrieved.candidates',
    'outputs["entity_retriever"], lambda retrieved: retrieved.candidates[:1]',
)
def test_linking_recall_has_what_was_found_and_what_was_chosen() -> None:
    run, _ = as_published(entity_choice=uris("lynchs_dune"), settings={"entities": 1})
    linked = collect_linked_iris(run)
    assert linked.vertices == {str(iri("lynchs_dune"))}
    assert linked.vertex_candidates == {str(iri("dune")), str(iri("lynchs_dune"))}
    assert linked.predicates == {str(iri("director")), str(iri("birthPlace"))}
    assert linked.predicates <= linked.predicate_candidates


# --- Section 3: one question at a time


@conforms("section 2.3", "a question is answered alone; there is no dialogue")
@violated_by(INIT, "if run.dialogue.turns and not before:", "if False:")
def test_a_dialogue_is_not_used_and_the_run_says_so() -> None:
    workbench = kgwb.Workbench(films(), Scripted(triads.SCRIPT), system="triad")
    workbench.ask(QUESTION)
    run = workbench.ask(QUESTION)
    [note] = run["attempt"].notes
    assert "alone" in note
    assert keys(run) == triads.KEYS


# --- Whole runs


PHILOSOPHERS = """
@prefix : <http://example.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:plato rdfs:label "Plato" ; :knows :aristotle . :aristotle rdfs:label "Aristotle" ; :knew :plato .
"""


def make_whole_runs() -> WholeRuns:
    """Runs in profile ``paper``: of two hops, of a class, with a retry, and from own knowledge, and those below."""
    graphs = {
        "route": films(ROUTE),
        "philosophers": films(PHILOSOPHERS),
        "films": open_in_order(FILMS),
    }
    runs: dict[str, tuple[Run, Scripted]] = {}
    for name, case in read_cases("triad")["published"].items():
        question, settings = case.get("question", QUESTION), case.get("settings", {})
        kg = graphs.get(case.get("graph", ""))
        runs[name] = as_published(question, settings=settings, kg=kg, **case.get("replies", {}))
    return {**runs, **make_tangled_runs()}


TANGLED = """@prefix : <http://example.org/> . @prefix two: <http://example.org/two#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:orange a :Town ; rdfs:label "Orange"@en, "Orange"@fr ; :twin :vaes, :dili ; two:twin :rome ; :size 9, "9.0" ;
    :mayor [ :name "Bompard" ; :since 2014 ] ; :quarters ( :old :new ) ; :twin :orange .
:Fruit rdfs:label "orange" . :peel a :Fruit ; rdfs:label "orange" ; :growsIn :orange, :dili ; :size 3 .
:vaes rdfs:label "Vääs" ; :in :belgium . :dili :in :timor ; :knownFor "coffee"@en, "Kaffee"@de .
:rome rdfs:label "Rome" ; :in :italy ; :twin :orange . :old rdfs:label "Old town" . :new rdfs:label "New town" .
:belgium rdfs:label "Belgium" . :timor rdfs:label "Timor" . :italy rdfs:label "Italy" .
:in rdfs:label "located in" . :Town rdfs:label "town" .
:orange rdfs:comment "a town in the south, with a theatre and an arch that the Romans have left, and more than that" ;
    :saying "a saying that is longer than sixty characters, and so is cut somewhere", "b", "c", "d" ."""
"""Names that differ in case, values of several forms, a node, a list, a loop, predicates of one name."""


def take_two(request: ChatRequest) -> Any:
    """Reply with the numbers of the first two options."""
    options = request.variables.get("candidates") or request.variables["relations"]
    return choice(*range(1, min(2, len(options)) + 1))


def make_tangled_runs() -> WholeRuns:
    """Runs over TANGLED and over the films: results of every kind, names that are hard to tell apart, retries."""
    graph, of_films = open_in_order(TANGLED), open_in_order(FILMS)
    runs: dict[str, tuple[Run, Scripted]] = {}
    cases = read_cases("triad")
    for name, case in cases["tangled"].items():
        replies = case["replies"]
        told: dict[str, Any] = {
            "entity_choice": uris("orange"),
            "query_choice": lambda request: {"sparql": request.variables["queries"].split("\n")[0]},
            **replies,
        }
        settings = {"tries": 3 if "unsure" in name else 1, "entities": 1}
        runs[name] = as_published(name, **told, kg=graph, settings=settings)
        by_number = {
            **replies,
            **dict.fromkeys(("entity_choice", "relation_choice"), take_two),
            **cases["replies"],
        }
        fast = {"own_knowledge": True, "tries": 2, "entities": 2, "relations": 2}
        run, model = triads.begun(f"How many? {name}", settings=fast, kg=graph, **by_number)
        runs[f"fast: {name}"] = (run_to_end(run), model)
    for name, case in cases["films"].items():
        settings = case.get("settings", {})
        run, model = triads.begun(QUESTION, settings=settings, kg=of_films, **case["replies"])
        runs[f"fast: {name}"] = (run_to_end(run), model)
    return runs


@violated_by("prompts/triad/triplets_published.md", "Here are some examples:\n", "")
@violated_by("prompts/triad/query_choice_published.md", "Sentence: {{question}}\n", "")
@violated_by(DECISION_MAKER, "combinations, key=sum)", "combinations, key=sum, reverse=True)")
@violated_by(
    DECISION_MAKER,
    'relations.sort(key=attrgetter("similarity"), reverse=True)',
    'relations.sort(key=attrgetter("similarity"))',
)
@violated_by(
    DECISION_MAKER,
    '"triad/relation_choice_published", subject, by_uri, UrisReply, 0, most)',
    '"triad/relation_choice_published", subject, by_uri, UrisReply, 1, most)',
)
@violated_by(
    DECISION_MAKER,
    "most = min(most, len(by_uri))",
    "most = min(most, 1)",
)
def test_whole_runs_send_and_do_what_they_did() -> None:
    check_whole_runs("triad", make_whole_runs())
