"""Numbers of Python and NumPy as Shine's constants."""

from __future__ import annotations

import ast
import math

import numpy as np

from shine.lang.forms.names import value_text

_NUMBERS = (int, float, np.integer, np.floating, np.bool_)


def number_of(value: object) -> float | None:
    """A number or truth value as a float; None if it is neither, or too large for a float."""
    if not isinstance(value, _NUMBERS):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def constant(value: float) -> ast.expr:
    """A number as an expression: a quotient if it is not finite, because such numbers have no literal."""
    if math.isfinite(value):
        return ast.Constant(value)
    numerator = 0.0 if math.isnan(value) else math.copysign(1.0, value)
    return ast.BinOp(ast.Constant(numerator), ast.Div(), ast.Constant(0.0))


def described(value: object) -> str:
    """A description of a value for messages."""
    name = getattr(value, "__name__", None)
    return f"{value_text(value, 40) if name is None else name} of type {type(value).__name__}"
