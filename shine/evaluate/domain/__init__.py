"""Checks whether a formula has a value wherever fresh rows of the same kind may lie."""

from shine.evaluate.domain.check import Domain

__all__ = ["Domain"]
