"""Label search in Wikidata, or another Wikibase, by its own API (what its search box asks)."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import urlencode
from urllib.request import Request

from pydantic import BaseModel, ValidationError

from kgwb import __version__
from kgwb.errors import GraphError
from kgwb.kg.base import Limits, Vocabulary
from kgwb.kg.sparql import writable
from kgwb.kg.transport import sent

_MOST_HITS, _MOST_CHARS = 50, 250  # that the API gives, and takes
_MOST_BYTES = 1_000_000  # of so many hits


class _Match(BaseModel):
    text: str = ""


class _Entity(BaseModel):
    concepturi: str
    label: str = ""
    match: _Match = _Match()


class _Error(BaseModel):
    info: str = "it does not say why"


class _Reply(BaseModel):
    search: tuple[_Entity, ...] = ()
    error: _Error | None = None


def find(
    api: str, text: str, limit: int, vocabulary: Vocabulary, limits: Limits
) -> tuple[list[tuple[str, str]], str]:
    """The (IRI, label) of items with a label or alias like ``text``, else of properties; and the URL asked.

    Raises GraphUnreachableError, GraphTimeoutError or GraphError. Source: MediaWiki's wbsearchentities.
    """
    language = next(filter(None, vocabulary.languages), "en")
    asked = {"action": "wbsearchentities", "format": "json", "search": " ".join(text.split())[:_MOST_CHARS]}
    asked |= {"language": language, "uselang": language, "limit": str(min(limit, _MOST_HITS))}
    for kind in ("item", "property"):
        url = f"{api}?{urlencode({**asked, 'type': kind})}"
        if entities := _entities(url, limits):
            break
    labels = ((one.concepturi, label) for one in entities for label in (one.label, one.match.text))
    return [(iri, label) for iri, label in labels if label and writable(iri)], url


def _entities(url: str, limits: Limits) -> tuple[_Entity, ...]:
    headers = {"User-Agent": f"kgwb/{__version__}", "Accept": "application/json"}
    limits = replace(limits, byte_limit=min(limits.byte_limit, _MOST_BYTES))
    body = sent(url, Request(url, headers=headers), limits).body
    try:
        reply = _Reply.model_validate_json(body)
    except ValidationError as error:
        seen = body[:200].decode(errors="replace")
        raise GraphError(f"{url} sent what is no list of entities: {seen!r}", hint=_CHECK) from error
    if reply.error:
        raise GraphError(f"{url} rejects the search: {reply.error.info[:500]}", hint=_CHECK)
    return reply.search


_CHECK = 'check the address of the API in dialect="wikidata:ADDRESS", which ends in api.php'
