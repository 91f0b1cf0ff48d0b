"""The version of kgwb, apart, so that any file can name it."""

__version__ = "0.1.0"
