"""Data sets, from files and recipes."""

from shine.moved import names_of

__getattr__ = names_of(__name__)
