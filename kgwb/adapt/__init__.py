"""Pipelines that already run: their functions, clients and graphs as the agents and calls of a run.

A wrapped client is a call like any other. Inside a run it goes through the run's record; outside of
a run it is the plain client. ``docs/how-to/my-pipeline.md`` goes through an example.
"""
