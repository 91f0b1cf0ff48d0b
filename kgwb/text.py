"""Text for people: numbers with their nouns, lists that are cut, names that differ where they stand
side by side, and text that is safe to print: without control characters, users, passwords and keys."""

from __future__ import annotations

import base64
import html
import json
import math
import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import lru_cache, partial
from pathlib import Path, PurePath
from typing import Any, AnyStr, TypeVar
from urllib.parse import quote, quote_plus, unquote_plus

H = TypeVar("H", bound=Hashable)

MAX_LABEL_CHARS = 300
"""Characters shown of a label or a literal."""
CONTROL_CHARACTERS = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Invisible characters that control a terminal or the text direction; not tab and newline."""
PLURAL_ENDINGS = {"ay": "ays", "ex": "ices", "y": "ies", "ch": "ches", "ss": "sses"}
"""Plural endings by the endings of nouns; other nouns get an "s"."""


FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
"""A spreadsheet computes a cell that begins with one of these."""


def quote_cell(text: str) -> str:
    """Return a text for a cell of a table, with "'" before one that a spreadsheet would compute.

    So has one that has such quotes already: ``unquote_cell`` returns each text as it was.
    """
    if text.lstrip("'").startswith(FORMULA_STARTS):
        return f"'{text}"
    return text


def unquote_cell(cell: str) -> str:
    """Return the text that ``quote_cell`` made a cell of."""
    text = cell.removeprefix("'")
    if text.lstrip("'").startswith(FORMULA_STARTS):
        return text
    return cell


def pluralize(number: int, noun: str) -> str:
    """Return a number with its noun, singular or plural: "1 query", "2 queries", "1,000 films".

    0 is plural. Thousands have commas.
    """
    if number == 1:
        return f"1 {noun}"
    plural = f"{noun}s"
    for ending, plural_ending in PLURAL_ENDINGS.items():
        if noun.endswith(ending):
            plural = noun.removesuffix(ending) + plural_ending
            break
    return f"{number:,} {plural}"


def and_more(number: int) -> str:
    """Return "and 3 more"; an empty text if the number is 0 or less."""
    if number <= 0:
        return ""
    return f"and {number:,} more"


def first_items(items: Sequence[Any], limit: int, to_text: Callable[[Any], str] = str) -> list[str]:
    """Return at most ``limit`` items as texts; if there are more, also the text "and 4 more"."""
    texts = list(map(to_text, items[:limit]))
    if len(items) > limit:
        texts.append(and_more(len(items) - limit))
    return texts


def list_first(items: Iterable[Any], limit: int = 5) -> str:
    """Return at most ``limit`` items in one line, and how many more: "a, b, and 4 more"."""
    shown = first_items(list(items), limit)
    return ", ".join(shown)


def list_within(items: Sequence[str], max_chars: int) -> str:
    """Return the first items that fit into ``max_chars``, and how many there are in all.

    "a, b, … (59 in all)": the text is cut between items. All items are returned if they fit. An item
    that does not fit alone is shortened.
    """
    text = ", ".join(items)
    if len(text) <= max_chars:
        return text
    shown: list[str] = []
    size = 0
    for item in items:
        size += len(item) + len(", ")
        if size > max_chars:
            break
        shown.append(item)
    if not shown:
        shown = [shorten(items[0], max_chars)]
    if len(shown) < len(items):
        shown.append(f"… ({len(items):,} in all)")
    return ", ".join(shown)


def common_prefix_length(first: Sequence[object], second: Sequence[object]) -> int:
    """Return how many items, or characters, at the beginning of two sequences are equal.

    It is the shorter length at most.
    """
    length = 0
    for item, other in zip(first, second, strict=False):
        if item != other:
            break
        length += 1
    return length


def shorten(text: str, limit: int = MAX_LABEL_CHARS) -> str:
    """Return the text; if it has more than ``limit`` characters, its beginning and its length.

    For example "Once upon… (1,000,000 letters)".
    """
    if len(text) <= limit:
        return text
    return f"{text[:limit]}… ({len(text):,} letters)"


def shorten_at_word(text: str, limit: int = MAX_LABEL_CHARS) -> str:
    """Return the text; if it has more than ``limit`` characters, its first words and "…".

    A word that is longer than a fifth of the limit may be cut.
    """
    if len(text) <= limit:
        return text
    words = text[:limit]
    end = words.rfind(" ")
    if end > limit * 4 // 5:
        words = words[:end]
    words = words.rstrip(" ,;:")
    return f"{words} …"


def tell_apart(
    items: Iterable[H], forms: Sequence[Callable[[H], str]], *, fold_case: bool = False
) -> dict[H, str]:
    """Return a text for each item, such that texts that are shown together do not look the same.

    ``forms`` are functions from an item to a text, from short to long. An item has the first form
    in which it looks like no other item; items that look the same go on to the next form together.
    The last form should differ for all items: if two still look the same in it, both keep it. Texts
    look the same if they differ only in Unicode's normal form (NFC), white space and invisible
    characters, and with ``fold_case`` also in letter case.
    """
    form_numbers = dict.fromkeys(items, 0)
    last_number = len(forms) - 1
    while True:
        texts = {}
        items_by_look: dict[str, list[H]] = defaultdict(list)
        for item, number in form_numbers.items():
            text = forms[number](item)
            texts[item] = text
            look = look_of(text)
            if fold_case:
                look = look.casefold()
            items_by_look[look].append(item)

        unclear: list[H] = []
        for alike in items_by_look.values():
            if len(alike) == 1:
                continue
            for item in alike:
                if form_numbers[item] < last_number:
                    unclear.append(item)
        if not unclear:
            return texts
        for item in unclear:
            form_numbers[item] += 1


def fit_width(text: str, max_chars: int) -> str:
    """Return a text, cut with "…" at its end if it is wider than ``max_chars`` characters.

    Wide characters, such as Chinese ones, count twice.
    """
    room = max_chars
    for position, char in enumerate(text):
        room -= 1
        if is_wide(char):
            room -= 1
        if room < 0:
            return text[: position - 1].rstrip() + "…"
    return text


def is_wide(char: str) -> bool:
    """Return whether a character takes twice the width, as Chinese ones do."""
    return unicodedata.east_asian_width(char) in ("W", "F")


def look_of(text: str) -> str:
    """Return a text as it looks: NFC, no format characters, one space for any white space."""
    if not text.isascii():
        composed = unicodedata.normalize("NFC", text)
        visible = [char for char in composed if unicodedata.category(char) != "Cf"]
        text = "".join(visible)
    return " ".join(text.split())


def shortest_distinct_names(paths: Sequence[Path]) -> list[str]:
    """Return for each path its last parts, as few as tell it apart from all other paths.

    "p" is enough for "a/p" beside "a/q"; beside "c/p" it is "a/p". A path that is there twice has
    the same name twice.
    """
    depth = max((len(path.parts) for path in paths), default=0)
    forms = [partial(_last_parts, count=count) for count in range(1, depth + 1)]
    names = tell_apart(paths, forms)
    return [names[path] for path in paths]


def _last_parts(path: Path, count: int) -> str:
    """Return the last parts of a path; the whole path if it has no more parts."""
    last_parts = path.parts[-count:]
    return str(Path(*last_parts))


def display_name(name: str) -> str:
    """Return the name of an agent or a field as words: "vertex_selection" is "vertex selection"."""
    return name.replace("_", " ")


def format_seconds(seconds: float) -> str:
    """Return a duration rounded for people: "0.4 ms", "38 ms", "1.2 s", "1,234.5 s".

    It is in seconds from 1 s on, with one decimal. Milliseconds have a decimal below 10 ms. What
    would be shown as 0.0 ms is "0 ms".
    """
    if seconds < 0.00005:
        return "0 ms"
    if seconds >= 0.9995:
        return f"{seconds:,.1f} s"
    milliseconds = seconds * 1000
    decimals = 0 if milliseconds >= 9.5 else 1
    return f"{milliseconds:.{decimals}f} ms"


def remove_controls(text: str) -> str:
    """Return the text with "�" for control characters and "?" for lone surrogates.

    Tabs and newlines stay; other line ends become newlines. The text may come from a graph, a model
    or a server. Printed as it is, it could control a terminal.
    """
    unix_lines = re.sub("\r\n?", "\n", text)
    printable = CONTROL_CHARACTERS.sub("�", unix_lines)
    return printable.encode("utf-8", "replace").decode()


def single_line(value: object) -> str:
    """Return the text of a value on one line, without control characters."""
    words = str(value).split()
    return remove_controls(" ".join(words))


def text_or_json(value: Any) -> str:
    """Return a text as it is, and any other value as JSON."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def source_name(source: str) -> str:
    """Return the name of a graph for people: a whole URL, or the last part of a path."""
    text = single_line(source)
    if "://" in text:
        return text
    return PurePath(text).name or text


MASK = "***"
MIN_SECRET_CHARS = 8
"""Secrets of this length are also masked in bodies, and within words."""
SAFE_PARAMETERS = frozenset(
    """accept action analytic base baseuri collection context database dataset db debug
    default-graph default-graph-uri distinct explain format graph graph-uri include-inferred
    includeinferred infer inference lang language limit maxquerytime maxquerytimemillis maxrows
    named-graph named-graph-uri namespace offset output query queryln reasoning repo repository
    resultformat results rulebase ruleset sameas schema send should-sponge soft-limit stylesheet
    timeout type using-graph-uri using-named-graph-uri version
    """.split()
)
"""Parameters of an endpoint's address whose values may be shown, in lower case.

They are those of SPARQL's protocol, Virtuoso, Fuseki, RDF4J, GraphDB, Blazegraph, Stardog,
AllegroGraph and MarkLogic. The values of all other parameters are masked.
"""
SECRET_NAME_PATTERN = re.compile(
    "key(?!space|word)|token|secret|pass(?!age|enger)|pwd|auth(?!or(?:s|ity)?$)|credential|bearer"
    "|signature|session|private|login|jwt"
    "|(?<![a-z])(?:code|pin|pw|sid|sig)(?![a-z])",
    re.IGNORECASE,
)
"""Matches within the names of parameters whose values are secret for certain."""

KEY_PATTERN = re.compile(
    r"""\b(?:sk|pk|rk|gsk|hf|xai|ghp|nvapi)[-_][\w*.-]{6,}|\bAIza[\w-]{20,}"""
    r"""|(?<=Bearer )\S+|(?<=Basic )\S+|(?:(?<=api_key=)|(?<=api-key=)|(?<=apikey=))[^\s&"']+""",
    re.IGNORECASE,
)
"""Text that looks like a key."""

# These patterns search what servers send. Their repetitions are bounded and cannot overlap, so that
# the time is in proportion to the length of the text.
_LOGIN = re.compile(r"(:/{1,3})[^\s/:]{0,100}(?::\S{0,200})?@")
_PARAMETER = re.compile(r"""([?&;]([^\s=&?;<>"']{1,80})=)[^\s&"'<>]+""")
_URL_PARTS = re.compile(r"(.*?:/+|(?=[^/@:\s]+:\S+@[\w.-]+(?::\d+)?/))(.*)", re.DOTALL)
"""Splits a URL after the "://". The scheme may be missing before USER:PASSWORD@HOST/."""
_PARAMETER_NAME = re.compile("[A-Za-z_.-]{1,30}")
_PERCENT_ESCAPE = re.compile("%..")
_URLSAFE_BASE64 = str.maketrans("+/", "-_")
_UP_TO_LAST_BREAK = re.compile(r"""(.*[\s"'<>,;{}])""", re.DOTALL)


def mask_url(url: str) -> str:
    """Return an address without login and fragment, with the values of unsafe parameters masked.

    A parameter without a value, or with a name that does not look like one, is masked as a whole:
    it may be the key. A text that is not an address, such as the name of a file, is returned as it
    is.
    """
    match = _URL_PARTS.match(url)
    if match is None:
        return url
    scheme, rest = match.groups()
    _, login, rest = rest.rpartition("@")
    if login:
        scheme += f"{MASK}@"
    rest, _, _ = rest.partition("#")
    place, question_mark, query = rest.partition("?")
    masked_place = mask_urls_in_text(place)
    parameters = query.split("&")
    masked_query = "&".join(map(_mask_parameter, parameters))
    return f"{scheme}{masked_place}{question_mark}{masked_query}"


def _mask_parameter(parameter: str) -> str:
    """Return a parameter of a URL, written "name=value", as it is if it is safe.

    Otherwise the value is masked: "name=***". Without a value, or with a name that does not match
    _PARAMETER_NAME, all of it is masked: "***".
    """
    if not parameter:
        return ""
    name, _, value = parameter.partition("=")
    if is_safe_parameter(unquote_plus(name), unquote_plus(value)):
        return parameter
    if value.strip("=") and _PARAMETER_NAME.fullmatch(name):
        return f"{name}={MASK}"
    return MASK


def is_safe_parameter(name: str, value: str) -> bool:
    """Return whether the value of a parameter, both decoded, may be shown.

    The name must be one of SAFE_PARAMETERS, and the value must not be an address with a login or
    with parameters.
    """
    return name.lower() in SAFE_PARAMETERS and not re.search("[@?]", value)


def mask_urls_in_text(text: str) -> str:
    """Return a text with the logins in its addresses masked, and the values of secret parameters.

    The values of parameters whose name does not match SECRET_NAME_PATTERN are kept.
    """
    without_logins = _LOGIN.sub(rf"\1{MASK}@", text)
    return _PARAMETER.sub(_mask_secret_value, without_logins)


def mask_text(text: str) -> str:
    """Return any text with logins and secret parameters of addresses masked, and all keys in it.

    A key is what looks like one. See ``mask_urls_in_text`` for the addresses.
    """
    without_secrets = mask_urls_in_text(text)
    return KEY_PATTERN.sub(_mask_key, without_secrets)


def _mask_key(match: re.Match[str]) -> str:
    """Return the mask for a match of KEY_PATTERN; a plain word after a blank is returned as it is.

    So "the bearer of" stays, and the token in "Bearer TOKEN" does not.
    """
    is_after_blank = match.string[: match.start()].endswith(" ")
    word = match[0].strip(".,;:!?()'\"")
    if is_after_blank and (not word or word.isalpha()):
        return match[0]
    return MASK


def mask_data(data: Any) -> Any:
    """Return JSON data as a copy in which the secrets in its texts are masked.

    A text is masked whole if its name in an object is that of a secret, such as "api_key", and it
    looks like a key or a password (``is_distinctive_secret``) of one word. Tuples become lists.
    """
    if isinstance(data, str):
        return mask_text(data)
    if isinstance(data, list | tuple):
        return [mask_data(item) for item in data]
    if not isinstance(data, dict):
        return data
    masked = {}
    for name, value in data.items():
        masked[name] = mask_data(value)
        if isinstance(value, str) and _is_secret_value(str(name), value):
            masked[name] = MASK
    return masked


def _is_secret_value(name: str, value: str) -> bool:
    """Return whether a text is a secret by its name, and by its form."""
    if not SECRET_NAME_PATTERN.search(name):
        return False
    is_one_word = len(value.split()) == 1
    return is_one_word and is_distinctive_secret(value)


def _mask_secret_value(match: re.Match[str]) -> str:
    """Return a match of _PARAMETER, with the value masked if the name is that of a secret."""
    start, name = match.groups()
    if not SECRET_NAME_PATTERN.search(name):
        return match[0]
    return start + MASK


def mask_secrets(text: AnyStr, secrets: Iterable[str]) -> AnyStr:
    """Return a text, or the body of a reply in bytes, in which the given secrets are masked.

    All usual encodings of a secret are masked (``_encodings_of``). One shorter than
    MIN_SECRET_CHARS is only masked in a text, where it is a whole word: in a body it may be a part
    of the data.
    """
    for secret in secrets:
        for encoding in _encodings_of(str(secret)):
            is_short = len(encoding) < MIN_SECRET_CHARS
            if isinstance(text, bytes):
                if not is_short:
                    text = text.replace(encoding.encode(), MASK.encode())
            elif is_short:
                escaped = re.escape(encoding)
                text = re.sub(rf"(?<!\w){escaped}(?!\w)", MASK, text)
            else:
                text = text.replace(encoding, MASK)
    return text


@lru_cache(maxsize=64)
def _encodings_of(secret: str) -> tuple[str, ...]:
    """Return a secret as it is, and as URLs, URLs in URLs, HTML, JSON, Python and base64 write it.

    Each is returned once, without empty ones. Base64 is that of ``_base64_parts``.
    """
    in_urls = [
        quote(secret),
        quote(secret, safe=""),
        quote_plus(secret, safe="/"),
        quote_plus(secret),
    ]
    in_urls += [_lower_escapes(text) for text in in_urls]
    in_html = html.escape(secret)
    in_json = json.dumps(secret)[1:-1]
    in_json_of_php = in_json.replace("/", "\\/")
    in_python = repr(secret)[1:-1]
    encodings = [secret, *in_urls, *map(quote, in_urls)]
    encodings += [in_html, in_json, in_json_of_php, in_python]
    for part in _base64_parts(secret):
        in_url = quote(part, safe="")
        in_php = part.replace("/", "\\/")
        encodings += [part, in_url, in_php]
    distinct = dict.fromkeys(encodings)
    return tuple(filter(None, distinct))


def _base64_parts(secret: str) -> list[str]:
    """Return what a secret becomes in base64, alone and inside of a longer text.

    Three bytes become four characters, so inside of a text there are three forms. Of each only the
    characters are returned that no other byte has a share in; forms shorter than MIN_SECRET_CHARS
    are left out. Alone, it is returned with and without "=" at its end. All are returned in the
    alphabet of base64 and in that of URLs.
    """
    data = secret.encode("utf-8", "surrogatepass")
    alone = base64.b64encode(data).decode()
    parts = [alone, alone.rstrip("=")]
    for bytes_before in range(3):
        encoded = base64.b64encode(bytes(bytes_before) + data).decode()
        start = math.ceil(bytes_before * 8 / 6)
        end = (bytes_before + len(data)) * 8 // 6
        part = encoded[start:end]
        if len(part) >= MIN_SECRET_CHARS:
            parts.append(part)
    in_urls = [part.translate(_URLSAFE_BASE64) for part in parts]
    return parts + in_urls


def _lower_escapes(text: str) -> str:
    """Return a percent-encoded text with its escapes in lower case: "%2f" for "%2F"."""
    return _PERCENT_ESCAPE.sub(lambda match: match[0].lower(), text)


def is_distinctive_secret(text: str) -> bool:
    """Return whether a key or password can be masked in a reply without a change of its meaning.

    Servers that need no key are given one like ``x``, ``ollama`` or ``sk-no-key-required``. A reply
    may hold such a word, or a number, as a part of the data. So a secret must have at least 8
    characters if it has both letters and digits or signs (other than "_", ".", "-" and blanks),
    and else at least 20.
    """
    has_letter = re.search("[A-Za-z]", text)
    has_sign = re.search("[^A-Za-z_. -]", text)
    min_chars = 8 if has_letter and has_sign else 20
    return len(text) >= min_chars


def truncate_at_word(text: str, max_chars: int) -> str:
    """Return a text, cut after a word if it is too long, and then with "…" at its end.

    The result has at most ``max_chars`` characters. A text is not cut within a word, because a part
    of a secret would not be recognised and masked.
    """
    if len(text) <= max_chars:
        return text
    match = _UP_TO_LAST_BREAK.match(text[: max_chars - 1])
    if match is None:
        return "…"
    return f"{match[1].rstrip()}…"
