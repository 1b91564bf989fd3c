"""Defaults that signatures repeat; they are here because the settings take long to import."""

DEFAULT_PRIMITIVES = ("add", "sub", "mul", "div", "sqrt", "square", "exp", "log", "sin", "cos")
"""Functions that a search draws from by default."""
