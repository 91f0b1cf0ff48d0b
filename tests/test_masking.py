"""Secrets are masked in every encoding in which a server may send them back."""

import base64
from collections.abc import Callable
from urllib.parse import quote

import pytest

from kgwb.text import MASK, mask_secrets

KEY = "sk-proj-kGwB0123456789/abc+DEF=xyz?>~"
SHORT_KEY = "q7Zp/api+key1"
SURROUNDINGS = [("", ""), ("a", ""), ("me:", "@"), ("user:", "\nX-Other: 1"), ("{", "}")]
Encode = Callable[[bytes], bytes]


@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
@pytest.mark.parametrize(("before", "after"), SURROUNDINGS)
def test_a_key_in_base64_is_masked_wherever_it_stands(
    encode: Encode, before: str, after: str
) -> None:
    sent = encode(f"{before}{KEY}{after}".encode()).decode()
    for text in (sent, sent.replace("=", "%3D"), sent.rstrip("="), sent.replace("/", "\\/")):
        masked = mask_secrets(f"the header was {text}, wrongly", [KEY])
        assert masked.startswith("the header was ") and masked.endswith(", wrongly")
        assert MASK in masked
        assert len(masked) < len("the header was , wrongly") + len(text) - len(KEY)
        assert mask_secrets(text.encode(), [KEY]) == mask_secrets(text, [KEY]).encode()


@pytest.mark.parametrize(
    "written",
    [
        SHORT_KEY.replace("/", "\\/"),
        quote(SHORT_KEY, safe=""),
        quote(SHORT_KEY, safe="").replace("%2F", "%2f").replace("%2B", "%2b"),
        quote(quote(SHORT_KEY, safe="")),
    ],
)
def test_key_is_masked_in_every_encoding(written: str) -> None:
    assert mask_secrets(f'"key={written}"'.encode(), [SHORT_KEY]) == f'"key={MASK}"'.encode()


def test_a_text_that_only_begins_like_a_key_is_kept() -> None:
    other = base64.b64encode(b"sk-proj-another-key-altogether").decode()
    text = f"a graph of {other} and sk-proj-kGwB"
    assert mask_secrets(text, [KEY]) == text
    assert mask_secrets("abc and YWJj and xYWJjx", ["abc"]) == f"{MASK} and {MASK} and xYWJjx"
