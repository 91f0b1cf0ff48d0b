"""Which predicates carry names and noise in well-known graphs. Yours: ``VOCABULARIES["mine"] = ...``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pyoxigraph import NamedNode
from rdflib import URIRef
from rdflib.namespace import DCTERMS, FOAF, OWL, PROV, RDF, RDFS, SKOS

from kgwb import disk
from kgwb.errors import SettingError
from kgwb.flow import Iri, from_data, to_data
from kgwb.kg.base import SCHEMA, Vocabulary

_SPACES = {
    "dblp": "https://dblp.org/rdf/schema#",
    "dbo": "http://dbpedia.org/ontology/",
    "dbp": "http://dbpedia.org/property/",
    "dcterms": str(DCTERMS),
    "foaf": str(FOAF),
    "makg": "https://makg.org/property/",
    "owl": str(OWL),
    "prov": str(PROV),
    "rdf": str(RDF),
    "rdfs": str(RDFS),
    "schema": SCHEMA,
    "skos": str(SKOS),
    "wd": "http://www.wikidata.org/prop/",
    "wikibase": "http://wikiba.se/ontology#",
}


TAG = re.compile(r"([A-Za-z]+(-[A-Za-z0-9]+)*)?")


def _iris(names: str) -> tuple[Iri, ...]:
    return tuple(URIRef(_SPACES[name.partition(":")[0]] + name.partition(":")[2]) for name in names.split())


_NOISE = "rdf:type owl:sameAs rdfs:seeAlso "

VOCABULARIES: dict[str, Vocabulary] = {
    "default": Vocabulary(),
    "dbpedia": Vocabulary(  # without pages, links between them, pictures and categories
        labels=_iris("rdfs:label foaf:name foaf:nick dbo:alias dbo:alternativeName"),
        descriptions=_iris("dbo:abstract rdfs:comment dcterms:description"),
        types=_iris("rdf:type"),
        noise=_iris(
            _NOISE + "dbo:wikiPageWikiLink dbo:wikiPageWikiLinkText dbo:wikiPageExternalLink"
            " dbo:wikiPageInterLanguageLink dbo:wikiPageRedirects dbo:wikiPageDisambiguates dbo:wikiPageID"
            " dbo:wikiPageRevisionID dbo:wikiPageLength dbo:wikiPageOutDegree dbo:wikiPageUsesTemplate"
            " dbp:wikiPageUsesTemplate dbp:wordnet_type dbo:thumbnail dbp:imageCaption dbp:imageName"
            " dbp:imageSize foaf:depiction foaf:isPrimaryTopicOf foaf:primaryTopic prov:wasDerivedFrom"
            " dcterms:subject"
        ),
    ),
    "wikidata": Vocabulary(  # direct claims stay; statements, qualifiers and bookkeeping go
        labels=_iris("rdfs:label skos:altLabel"),
        descriptions=_iris("schema:description"),
        types=_iris("wd:direct/P31"),
        noise=_iris(
            _NOISE + "wd: wd:direct-normalized/ wd:statement/ wd:qualifier/ wd:reference/ wikibase:"
            " schema:about schema:isPartOf schema:inLanguage schema:version schema:dateModified"
        ),
        languages=("en", "mul", ""),
    ),
    "yago": Vocabulary(
        labels=_iris("rdfs:label schema:alternateName schema:name skos:prefLabel skos:altLabel"),
        descriptions=_iris("rdfs:comment schema:description"),
        types=_iris("rdf:type"),
        noise=_iris(_NOISE + "schema:mainEntityOfPage schema:sameAs schema:image schema:url"),
    ),
    "dblp": Vocabulary(
        labels=_iris("rdfs:label dblp:primaryCreatorName dblp:otherCreatorName dblp:title"),
        descriptions=_iris("rdfs:comment dcterms:description"),
        types=_iris("rdf:type"),
        noise=_iris(
            _NOISE + "dblp:hasSignature dblp:signatureCreator dblp:signaturePublication dblp:bibtexType"
            " dblp:signatureDblpName dblp:listedOnTocPage dblp:indexPage dblp:archivedWebpage"
        ),
        languages=("", "en"),
    ),
    "mag": Vocabulary(
        labels=_iris("foaf:name dcterms:title rdfs:label"),
        descriptions=_iris("dcterms:abstract dcterms:description"),
        types=_iris("rdf:type"),
        noise=_iris(_NOISE + "dcterms:created makg:rank"),
        languages=("", "en"),
    ),
}
"""By name. ``VOCABULARIES["dbpedia"].plus(noise=[...])`` adds to one."""

_HOSTS = {
    "dbpedia.org": "dbpedia",
    "wikidata.org": "wikidata",
    "yago-knowledge.org": "yago",
    "dblp.org": "dblp",
    "makg.org": "mag",
    "ma-graph.org": "mag",
}
_QLEVER = ("qlever.dev", "qlever.cs.uni-freiburg.de")  # where /api/NAME is a graph


def well_known(url: str) -> Vocabulary:
    """The vocabulary of the well-known graph at an endpoint's URL; the default for any other."""
    parts = urlsplit(url)
    host, path = (parts.hostname or "").lower(), parts.path.rstrip("/").rpartition("/")[2]
    found = path if host in _QLEVER else ""
    for known, name in _HOSTS.items():
        if host == known or host.endswith(f".{known}"):
            found = name
    return VOCABULARIES.get(found, VOCABULARIES["default"])


def _is_iri(text: str) -> bool:
    try:
        return bool(NamedNode(text))
    except ValueError:
        return False


def _wrong(data: dict[str, Any]) -> Iterator[str]:
    for name, texts in data.items():
        fits = TAG.fullmatch if name == "languages" else _is_iri
        listed = isinstance(texts, list) and all(isinstance(text, str) for text in texts)
        if not listed or (name == "labels" and not texts):
            yield f"{name} is no list of texts, or an empty one"
        else:
            yield from (f"{text!r} cannot stand in {name}" for text in texts if not fits(text))


def vocabulary_of(given: str) -> Vocabulary:
    """The vocabulary of a name, or of a JSON file: an object with fields of Vocabulary, lists of texts.

    What the file leaves out is as in the default. Raises SettingError.
    """
    if given in VOCABULARIES:
        return VOCABULARIES[given]
    known = [field.name for field in fields(Vocabulary)]
    hint = f"choose one of {', '.join(VOCABULARIES)}, or a .json file with any of {', '.join(known)}"
    if not given.endswith(".json"):
        raise SettingError(f"no vocabulary named {given!r}", hint=hint)
    try:
        data = json.loads(disk.read_text(Path(given)))
        if not isinstance(data, dict) or not set(data) <= set(known):
            raise ValueError("it holds something else")
        if wrong := next(_wrong(data), ""):
            raise ValueError(wrong)
        made: Vocabulary = from_data({**to_data(VOCABULARIES["default"]), **data}, Vocabulary)
    except (OSError, ValueError, RecursionError) as error:
        raise SettingError(f"the vocabulary {given} cannot be used: {error}", hint=hint) from error
    return made
