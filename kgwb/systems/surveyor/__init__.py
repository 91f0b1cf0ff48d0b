"""Surveyor: survey the graph, write a query, execute it, and revise it after a look at its result."""
