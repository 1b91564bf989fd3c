"""A whole search: data in, the Pareto front of models out."""

from shine.moved import names_of

__getattr__ = names_of(__name__)
