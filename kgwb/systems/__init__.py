"""The systems of kgwb: a folder each, whose ``__init__.py`` is the map of the system."""
