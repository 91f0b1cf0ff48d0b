"""Text of a graph stays in quotes or brackets when it is shown to a model."""

from __future__ import annotations

import json
import re
from itertools import product

import pytest
from rdflib import Literal, URIRef
from small import films, iri
from surveying import FINE, draft, mention, revise, script, surveyor

from hostile.corpus import IRIS, NO_IRIS, texts
from hostile.runs import bundles, graph
from kgwb.kg.base import ResultSet
from kgwb.kg.findings import QuantityWithUnit, SchemaFacts, inspect_result
from kgwb.kg.queries import ValueMatch
from kgwb.kg.survey_records import ClassSurvey, PropertySurvey, Survey, ValueSurvey
from kgwb.kg.survey_text import SurveyWriter
from kgwb.kg.term_text import INVALID_IRI_CHARACTER
from kgwb.llm import Scripted
from kgwb.run.answers import Candidate
from kgwb.systems.surveyor.drafter import format_result
from kgwb.systems.surveyor.mentions import format_mentions
from kgwb.systems.surveyor.records import Executed, Mention, Mentions

LABELS = texts(400)


def outside(text: str) -> str:
    """Return the text of a prompt that is neither in quotes nor in brackets."""
    return re.sub(r'"(?:[^"\\\n]|\\.)*"|<[^<>\s]*>', "", text)


def assert_quoted(text: str) -> None:
    rest = outside(text).replace(" ->", "")
    assert not re.search(r'INJECTED|["<>{}\x00]', rest), f"{rest!r:.300} of {text!r:.2000}"


def test_surveyor_is_shown_text_of_the_graph_in_quotes() -> None:
    """Survey, names, findings and rows: labels, descriptions, values and names of classes."""
    sparql = f"SELECT ?f ?o {{ ?f <{iri('director')}> ?o }} ORDER BY ?o LIMIT 2"
    none = f"SELECT ?f {{ ?f <{iri('director')}> <{iri('film')}> }}"
    for number, bundle in enumerate(bundles(LABELS)):
        words = tuple(f"INJECTED {text}" for text in bundle)
        replies = script(
            draft(sparql), [revise(none), FINE], mention(words[0], words[2], classes=words[5:6])
        )
        model = Scripted(replies)
        surveyor(model, "Who?", kg=graph(words, IRIS[number % len(IRIS)])).go()
        assert model.call_count() == 4
        for request in model.requests:
            shown = request.variables
            for name in {"survey", "names", "result"} & shown.keys():
                assert_quoted(shown[name])
            assert_quoted(json.dumps([shown.get("classes"), shown.get("earlier")]))


ENDS = ("", " INJECTED", "/> INJECTED <", "\nINJECTED", "#INJECTED text")
ODD_IRIS = (*IRIS, *NO_IRIS, "http://e/INJECTED.", "http://e/a\u2028INJECTED", "http://e/²")


@pytest.mark.parametrize("text", ODD_IRIS)
def test_no_iri_can_end_its_brackets(text: str) -> None:
    kinds = tuple(URIRef(f"{text}{end}") for end in ENDS)
    of_kinds = product(("class", "IRI", "a b", ""), kinds)
    sorts = tuple(ValueSurvey(sort, kind, 2, 2, (kind, Literal(kind))) for sort, kind in of_kinds)
    used = tuple(
        PropertySurvey(kind, 2, 3, sorts, (PropertySurvey(kind, 1, 1, sorts),), 1) for kind in kinds
    )
    used += tuple(
        PropertySurvey(URIRef(f"{kind}{n}"), 2, 3, sorts[n:]) for n, kind in enumerate(kinds)
    )
    classes = tuple(ClassSurvey(kind, "INJECTED", 2, 3, kinds[:1], used) for kind in kinds)
    both = tuple((kind, 2, 1) for kind in kinds)
    names = tuple((kind, "INJECTED") for kind in kinds)
    seen = Survey(1, 1, 1, classes, 1, (), kinds, both, (), names)
    writer = SurveyWriter(seen)
    texts = [writer.format_group(group) for group in writer.groups]
    assert_quoted("\n".join([*texts, *writer.remarks(), *map(writer.format_title, writer.groups)]))
    prefixes = tuple((prefix, space) for space, prefix in writer.prefixes.items())
    # Prefixes are written into queries.
    assert not any(INVALID_IRI_CHARACTER.search(space) for _, space in prefixes)
    injected = ("INJECTED",)
    candidates = tuple(
        Candidate(kind, *injected, 1, injected, relations=injected) for kind in kinds
    )
    held = tuple(ValueMatch(kind, kind, 2) for kind in kinds)
    assert_quoted(
        format_mentions(Mentions("Who?", (Mention("INJECTED", candidates, held),)), prefixes)
    )
    rows = tuple((kind, Literal("INJECTED |\n"), None) for kind in kinds)
    executed = Executed("ASK { }", ("a", "b", "c"), rows, names=names)
    assert_quoted(format_result(executed, 8))
    query = f"SELECT ?a {{ ?a <{iri('of')}> ?b . ?b <{iri('n')}> ?c }}"
    amounts = tuple(QuantityWithUnit(iri("of"), iri("n"), kind, 2) for kind in kinds)
    findings = [
        str(each)
        for each in inspect_result(
            films(), query, ResultSet(("a",), ()), SchemaFacts(amounts=amounts)
        )
    ]
    assert_quoted("\n".join(each for each in findings if "beside" in each))
    assert sum("beside" in each for each in findings) == len(kinds)
