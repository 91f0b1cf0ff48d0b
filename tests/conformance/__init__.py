"""Tests that profile ``paper`` does what the papers say: one file a system, one claim a test.

`python tests/conformance/table.py` lists the claims, and writes the tables of docs/profiles.md.
"""
