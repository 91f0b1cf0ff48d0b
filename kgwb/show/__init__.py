"""What a person sees of records, steps and runs: functions from state to HTML or text, without widgets."""

from kgwb.show import compare, run, survey, text  # noqa: F401  # how records show themselves
