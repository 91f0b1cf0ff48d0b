"""List the claims of the papers with their tests, and write the tables of docs/profiles.md.

    python tests/conformance/table.py           print a line for each claim
    python tests/conformance/table.py --write   write the tables into docs/profiles.md

A table stands between the lines ``<!-- claims: SYSTEM -->`` and ``<!-- end of claims -->``.
"""

from __future__ import annotations

import argparse
import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parents[1]
PROFILES_PAGE = TESTS.parent / "docs/profiles.md"
TABLE = re.compile(r"(<!-- claims: (\w+) -->\n).*?(<!-- end of claims -->)", re.DOTALL)
HEADER = (
    "| where | what the paper says (`paper`) | what the published code does (`reference`) "
    "| what `fast` does | setting |\n|---|---|---|---|---|"
)
SAME = "the same"

if str(TESTS) not in sys.path:  # as pytest does
    sys.path.insert(0, str(TESTS))

from conformance.claims import Claim, Gap, Mutation, claims_of, mutations_of  # noqa: E402  # needs the path


def systems_with_claims() -> list[str]:
    """Return the names of the systems that have conformance tests, in alphabetical order."""
    files = sorted(Path(__file__).parent.glob("test_*.py"))
    names = [file.stem.removeprefix("test_") for file in files]
    return [name for name in names if name != "claims"]


def claims_of_system(name: str) -> list[tuple[Claim, str]]:
    """Return the claims of a system's paper, each with the name of its test."""
    return list(claims_of(importlib.import_module(f"conformance.test_{name}")))


def mutations_of_system(name: str) -> list[Mutation]:
    """Return the changes that violate what the tests of a system's paper hold."""
    return mutations_of(importlib.import_module(f"conformance.test_{name}"))


def table_rows(name: str) -> Iterator[str]:
    """Yield a system's table in Markdown, line by line: a row for each claim."""
    from kgwb.run.systems import load_system

    has_code = load_system(name).settings.REFERENCE is not None
    yield HEADER
    for claim, _ in claims_of_system(name):
        code = claim.code or (SAME if has_code else "not published")
        fast = claim.fast or SAME
        if isinstance(claim, Gap):
            fast = f"**not followed in any profile**: {claim.reason}"
        setting = f"`{claim.setting}`" if claim.setting else ""
        cells = (claim.source, claim.paper, code, fast, setting)
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def page_with_tables(text: str) -> str:
    """Return the text of docs/profiles.md with the tables as the tests have them now."""

    def write_table(match: re.Match[str]) -> str:
        rows = "\n".join(table_rows(match[2]))
        return f"{match[1]}\n{rows}\n\n{match[3]}"

    return TABLE.sub(write_table, text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--write", action="store_true", help="write docs/profiles.md")
    if parser.parse_args().write:
        text = PROFILES_PAGE.read_text(encoding="utf-8")
        PROFILES_PAGE.write_text(page_with_tables(text), encoding="utf-8")
    for name in systems_with_claims():
        print(f"\n{name}")
        for claim, test in claims_of_system(name):
            print(f"  {claim.source}: {claim.paper} -> {test or 'not followed'}")


if __name__ == "__main__":
    main()
