"""Operators of genetic programming: creation, selection, variation, survival."""
