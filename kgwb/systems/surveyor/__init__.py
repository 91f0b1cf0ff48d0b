"""Surveyor: a graph is surveyed, a query drafted, run, and revised by what came back."""
