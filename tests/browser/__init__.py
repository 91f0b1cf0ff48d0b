"""The notebooks in a real browser."""
