"""Simplification: an equal formula with fewer nodes."""

from shine.moved import names_of

__getattr__ = names_of(__name__)
