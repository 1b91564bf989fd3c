"""The problem that a search solves: its settings, rows, noise, loss, primitives and time."""

DEFAULT_PRIMITIVES = ("add", "sub", "mul", "div", "sqrt", "square", "exp", "log", "sin", "cos")
"""Functions that a search draws from by default."""
