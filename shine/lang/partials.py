"""The table of partial derivatives of the primitives, written in the language itself."""

from __future__ import annotations

from functools import cache

from shine.lang.forms.library import STANDARD
from shine.lang.forms.tree import Tree
from shine.lang.parse import parse

ARGUMENTS = ("a", "b", "c")
"""Names of a primitive's arguments in its partials."""

VALUE = "y"
"""Name of a primitive's value in its partials."""

_LESS, _NOT_LESS = "1 if a < b else 0", "0 if a < b else 1"
_GREATER, _NOT_GREATER = "1 if a > b else 0", "0 if a > b else 1"
_IF, _IF_NOT = "1 if a else 0", "0 if a else 1"

PARTIALS: dict[str, tuple[str | None, ...]] = {
    "add": ("1", "1"),
    "sub": ("1", "-1"),
    "mul": ("b", "a"),
    "div": ("1 / b", "-(y / b)"),
    "floordiv": (None, None),
    "mod": ("1", "-(a // b)"),
    # The first is 0 for the exponent 0, even if the base is 0; the second is 0 for the base 0 and any exponent. The
    # condition of the first fails only for 0**0: where it fails, it cuts off further derivatives.
    "pow": ("b * a ** (b - 1) if b != 0 or a != 0 else 0", "y * log(a) if a != 0 and y != 0 else 0"),
    # If the operands are equal, the second is the result and gets the derivative.
    "min": (_LESS, _NOT_LESS),
    "max": (_GREATER, _NOT_GREATER),
    "neg": ("-1",),
    "abs": ("sign(a)",),
    "sqrt": ("0.5 / y",),
    "exp": ("y",),
    "log": ("1 / a",),
    "floor": (None,),
    "ceil": (None,),
    "sign": (None,),
    "sin": ("cos(a)",),
    "cos": ("-sin(a)",),
    "tan": ("1 + y * y",),
    # 1 - a is exact near 1, and 1 + a near -1; a * a is exact near neither.
    "asin": ("1 / sqrt((1 - a) * (1 + a))",),
    "acos": ("-1 / sqrt((1 - a) * (1 + a))",),
    "atan": ("1 / (1 + a * a)",),
    "sinh": ("cosh(a)",),
    "cosh": ("sinh(a)",),
    # 1 - y * y cancels where y is near 1, and the square of cosh overflows.
    "tanh": ("4 * (sigmoid(2 * a) * sigmoid(-(2 * a)))",),
    "lt": (None, None),
    "le": (None, None),
    "gt": (None, None),
    "ge": (None, None),
    "eq": (None, None),
    "ne": (None, None),
    # These yield one of their operands: `a and b` is b unless a is 0, `a or b` is a unless a is 0.
    "logical_and": (None, _IF),
    "logical_or": (_IF, _IF_NOT),
    "logical_not": (None,),
    "where": (None, _IF, _IF_NOT),
    # Composites: these are shorter or more accurate than the derivative of the definition.
    "square": ("2 * a",),
    "cube": ("3 * (a * a)",),
    "inv": ("-(y * y)",),
    "sigmoid": ("y * sigmoid(-a)",),
    "relu": ("1 if a > 0 else 0",),
    "hypot": ("a / y if y != 0 else 0", "b / y if y != 0 else 0"),
    "log1p": ("1 / (1 + a)",),
    "expm1": ("exp(a)",),
    "cbrt": ("1 / (3 * (y * y))",),
    "protected_sqrt": ("0.5 * sign(a) / y if a != 0 else 0",),
}
"""Partial derivatives of primitives by argument, in the language itself: in the arguments a, b, c and the value y.

None is a derivative that is zero wherever it exists. At a step, a kink or a cusp, the derivative is that of one side,
or 0. Every basic primitive has a row; the partials of a composite without a row are derived from its definition. At
points where the function is NaN, its partials have no meaning.
"""


@cache
def table_partials(name: str) -> tuple[Tree | None, ...]:
    """The row of a primitive as trees in the arguments and the value, used or not."""
    parameters = (*ARGUMENTS[: STANDARD[name].arity], VALUE)
    return tuple(None if text is None else parse(text, parameters) for text in PARTIALS[name])
