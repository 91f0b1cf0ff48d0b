"""The fused agent, which does the tasks of all three roles."""

from debate import check_role


def test_its_question_goes_on_from_what_was_found() -> None:
    check_role("fused_agent")
