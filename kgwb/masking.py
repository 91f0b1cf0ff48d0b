"""What may be shown of texts that may hold a user, a password or a key."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import AnyStr
from urllib.parse import quote, quote_plus, unquote_plus

MASK = "***"
MIN_SECRET_CHARS = 8
"""Characters of a secret that is hidden in bodies too, and where it is part of a word."""
SAFE_PARAMETERS = frozenset(
    """accept action analytic base baseuri collection context database dataset db debug default-graph
    default-graph-uri distinct explain format graph graph-uri include-inferred includeinferred infer inference
    lang language limit maxquerytime maxquerytimemillis maxrows named-graph named-graph-uri namespace offset
    output query queryln reasoning repo repository resultformat results rulebase ruleset sameas schema send
    should-sponge soft-limit stylesheet timeout type using-graph-uri using-named-graph-uri version""".split()
)
"""Parameters of an endpoint's address that hold no secret, in lower case; the values of others are hidden.

From SPARQL's protocol, Virtuoso, Fuseki, RDF4J, GraphDB, Blazegraph, Stardog, AllegroGraph and MarkLogic.
"""
SECRET_NAME_PATTERN = re.compile(
    "key(?!space|word)|token|secret|pass(?!age|enger)|pwd|auth(?!or(?:s|ity)?$)|credential|bearer|signature"
    "|session|private|login|jwt"
    "|(?<![a-z])(?:code|pin|pw|sid|sig)(?![a-z])",
    re.IGNORECASE,
)
"""What is in the names of parameters that hold a secret for certain."""

# Bounded and without overlap: a server's own words are searched with these.
_LOGIN = re.compile(r"(:/{1,3})[^\s/:]{0,100}(?::\S{0,200})?@")
_PARAMETER = re.compile(r"""([?&;]([^\s=&?;<>"']{1,80})=)[^\s&"'<>]+""")
_URL_PARTS = re.compile(r"(.*?:/+|(?=[^/@:\s]+:\S+@[\w.-]+(?::\d+)?/))(.*)", re.DOTALL)
"""What leads to the host, be it forgotten before USER:PASSWORD@HOST/, and the rest."""
_PERCENT_ESCAPE = re.compile("%..")
_UP_TO_LAST_BREAK = re.compile(r"""(.*[\s"'<>,;{}])""", re.DOTALL)


def mask_url(url: str) -> str:
    """An address without its login, and of its parameters only those that are known to hold no secret.

    What is no address, as a file's name or a sample's, is returned as it is.
    """
    if not (match := _URL_PARTS.match(url)):
        return url
    scheme, rest = match.groups()
    _, login, rest = rest.rpartition("@")
    place, mark, query = rest.partition("#")[0].partition("?")
    head = f"{scheme}{MASK}@" if login else scheme
    parameters = query.split("&")
    for number, parameter in enumerate(parameters):
        name, _, value = parameter.partition("=")
        if parameter and not is_safe_parameter(unquote_plus(name), unquote_plus(value)):
            named = value.strip("=") and re.fullmatch(
                "[A-Za-z_.-]{1,30}", name
            )  # else it may be the key
            parameters[number] = f"{name}={MASK}" if named else MASK
    return head + mask_urls_in_text(place) + mark + "&".join(parameters)


def is_safe_parameter(name: str, value: str) -> bool:
    """Whether a parameter of an address, decoded, holds no secret: neither itself nor as an address in it."""
    return name.lower() in SAFE_PARAMETERS and not re.search("[@?]", value)


def mask_urls_in_text(text: str) -> str:
    """A text without what looks like a login or a key in the addresses that it holds."""
    return _PARAMETER.sub(
        lambda match: match[1] + MASK if SECRET_NAME_PATTERN.search(match[2]) else match[0],
        _LOGIN.sub(rf"\1{MASK}@", text),
    )


def mask_secrets(text: AnyStr, secrets: Iterable[str]) -> AnyStr:
    """A text or a body without the secrets that a server sends back; a body may hold short ones as data."""
    for form in (form for secret in secrets for form in _encodings_of(str(secret))):
        long = len(form) >= MIN_SECRET_CHARS
        if isinstance(text, bytes):
            text = text.replace(form.encode(), MASK.encode()) if long else text
        elif long:
            text = text.replace(form, MASK)
        else:
            text = re.sub(rf"(?<!\w){re.escape(form)}(?!\w)", MASK, text)
    return text


@lru_cache(maxsize=64)
def _encodings_of(secret: str) -> tuple[str, ...]:
    """A secret as it is, and as addresses (of addresses), HTML, JSON and Python write it."""
    quoted = [code(secret, safe=safe) for code in (quote, quote_plus) for safe in ("/", "")]
    quoted += [_PERCENT_ESCAPE.sub(lambda match: match[0].lower(), form) for form in quoted]
    as_json = json.dumps(secret)[1:-1]
    escaped = (html.escape(secret), as_json, as_json.replace("/", "\\/"), repr(secret)[1:-1])
    return tuple(filter(None, dict.fromkeys((secret, *quoted, *map(quote, quoted), *escaped))))


def is_distinctive_secret(text: str) -> bool:
    """Whether a key or password is long and odd enough that a reply holds it only as an echo.

    Servers that want no key get one like ``x``, ``ollama`` or ``sk-no-key-required``, which is short or made
    of words. Masked in a reply, it would change what the reply means, and so would a number.
    """
    odd = re.search("[A-Za-z]", text) and re.search("[^A-Za-z_. -]", text)
    return len(text) >= (8 if odd else 20)


def truncate_at_word(text: str, max_chars: int) -> str:
    """A text of at most so many characters, cut between words: half a secret would not be recognised."""
    if len(text) <= max_chars:
        return text
    words = _UP_TO_LAST_BREAK.match(text[: max_chars - 1])
    return (words[1].rstrip() if words else "") + "…"
