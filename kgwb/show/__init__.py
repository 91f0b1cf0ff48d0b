"""What a person sees, as functions from a state to HTML."""
