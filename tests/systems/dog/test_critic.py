"""The critic of the debate."""

from debate import (
    check_role,
)


def test_its_question_goes_on_from_what_was_found() -> None:
    check_role("critic")
