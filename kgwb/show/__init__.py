"""What a person sees of records, steps and runs: functions from state to HTML or text, without widgets."""

from kgwb.show import compare, run, text  # noqa: F401  # how steps, runs and differences show themselves
