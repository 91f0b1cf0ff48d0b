"""The widgets of the workbench: they show the record of a run, and call the run.

Only this room imports ipywidgets. ``worker``, ``session`` and ``conversation`` work without it.
"""
