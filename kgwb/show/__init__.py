"""What a person sees of records, steps and runs: functions from state to HTML or text, without widgets."""
