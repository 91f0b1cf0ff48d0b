"""The workbench in a notebook: widgets that show a run's record and call the run; they decide nothing.

Importing a module of this room imports ipywidgets, and nothing outside of it does; ``session`` needs none.
"""
