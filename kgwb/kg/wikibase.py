"""Label search by the API of a Wikibase, such as Wikidata, instead of by SPARQL."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import urlencode
from urllib.request import Request

from pydantic import BaseModel, ValidationError

from kgwb.errors import GraphError
from kgwb.kg.base import QueryLimits, Vocabulary
from kgwb.kg.sparql import is_valid_iri
from kgwb.kg.transport import USER_AGENT, send_request

LabelledVertices = list[tuple[str, str]]
"""IRIs of vertices, each with one of its labels. A vertex may occur several times."""
MAX_WIKIBASE_HITS = 50
"""The API returns no more hits than this."""
MAX_WIKIBASE_CHARS = 250
"""The API accepts no longer text than this."""
MAX_WIKIBASE_BYTES = 1_000_000
"""The reply to a search for so many hits is far shorter than this."""
_CHECK_API_HINT = (
    'check the address of the API in dialect="wikidata:ADDRESS", which ends in api.php'
)


class _WikibaseEntity(BaseModel):
    """An item or a property."""

    concepturi: str
    label: str = ""
    match: dict[str, str] = {}
    """The label or the alias that the text matched, under "text"."""


class _WikibaseResponse(BaseModel):
    """The reply to a search, or an error."""

    search: tuple[_WikibaseEntity, ...] = ()
    error: dict[str, object] = {}


def search_wikibase(
    api: str, text: str, limit: int, vocabulary: Vocabulary, limits: QueryLimits
) -> tuple[LabelledVertices, str]:
    """Search the items of a Wikibase for a label or an alias; if none is found, its properties.

    ``api`` is the URL of its api.php; MediaWiki's wbsearchentities is called. The language is the
    first one of the vocabulary, else English. The text is cut at MAX_WIKIBASE_CHARS, and at most
    MAX_WIKIBASE_HITS entities are requested. Returns pairs of IRI and text, in the API's order:
    each entity with its label and again with the label or alias that matched. The second value is
    the URL of the last request. Entities with an invalid IRI are left out.

    Raises GraphUnreachableError, GraphTimeoutError, or GraphError if the reply is an error or is
    not a list of entities.
    """
    limits = replace(limits, byte_limit=min(limits.byte_limit, MAX_WIKIBASE_BYTES))
    language = next(filter(None, vocabulary.languages), "en")
    parameters = {
        "action": "wbsearchentities",
        "format": "json",
        "search": " ".join(text.split())[:MAX_WIKIBASE_CHARS],
        "language": language,
        "uselang": language,
        "limit": str(min(limit, MAX_WIKIBASE_HITS)),
    }
    for entity_type in ("item", "property"):
        parameters["type"] = entity_type
        url = f"{api}?{urlencode(parameters)}"
        entities = _request_entities(url, limits)
        if entities:
            break

    vertices: LabelledVertices = []
    for entity in entities:
        iri = entity.concepturi
        if not is_valid_iri(iri):
            continue
        matched = entity.match.get("text", "")
        for label in (entity.label, matched):
            if label:
                vertices.append((iri, label))
    return vertices, url


def _request_entities(url: str, limits: QueryLimits) -> tuple[_WikibaseEntity, ...]:
    """Send one search to the API and return the entities of its reply, in its order.

    Raises GraphError if the reply is an error or is not a list of entities, and what
    ``send_request`` does.
    """
    request = Request(url, headers={"User-Agent": USER_AGENT, "Accept": "application/json"})
    body = send_request(url, request, limits).body
    try:
        reply = _WikibaseResponse.model_validate_json(body)
    except ValidationError as error:
        start = body[:200].decode(errors="replace")
        raise GraphError(
            f"the search for labels failed: {url} did not send a list of entities but {start!r}",
            hint=_CHECK_API_HINT,
        ) from error
    if reply.error:
        reason = str(reply.error.get("info", "it does not say why"))[:500]
        raise GraphError(f"{url} rejects the search for labels: {reason}", hint=_CHECK_API_HINT)
    return reply.search
