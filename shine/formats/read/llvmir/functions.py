"""Definitions, in the language, of C's mathematics library and LLVM's intrinsics."""

from __future__ import annotations

import ast
from functools import cache

from shine.lang.forms.functions import verify_function
from shine.lang.forms.library import STANDARD
from shine.lang.forms.tree import Tree

_DEFINITIONS = """
def signbit(x):
    # Only division tells -0.0 from 0.0. NaN has no sign in the language and counts as positive.
    return x < 0 or x == 0 and 1 / x < 0

def copysign(x, y):
    negative = y < 0 or y == 0 and 1 / y < 0
    return -abs(x) if negative else abs(x)

def fmod(x, y):
    # For positive numbers, Python's remainder. C's remainder has the sign of x, even if it is 0.
    rest = abs(x) % abs(y)
    return x - rest if x == 0 else -rest if x < 0 else rest

def trunc(x):
    return ceil(x) if x < 0 else floor(x)

def round(x):
    # Halves away from zero; adding a half to x itself would round twice.
    large = abs(x)
    whole = floor(large)
    away = whole + 1 if large - whole >= 0.5 else whole
    return x if x == 0 else -away if x < 0 else away

def rint(x):
    # Halves to even.
    large = abs(x)
    whole = floor(large)
    rest = large - whole
    up = rest > 0.5 or rest == 0.5 and whole % 2 == 1
    even = whole + 1 if up else whole
    return x if x == 0 else -even if x < 0 else even

def fmin(x, y):
    # If one is NaN, the result is the other; C leaves open which of 0.0 and -0.0 is less.
    return y if y < x or x != x else x

def fmax(x, y):
    return y if y > x or x != x else x

def minimum(x, y):
    # NaN if one is; -0.0 is less than 0.0, and the sum of zeros is negative if both are.
    return -(-x - y) if x == 0 and y == 0 else min(x, y)

def maximum(x, y):
    return x + y if x == 0 and y == 0 else max(x, y)

def minimumnum(x, y):
    return -(-x - y) if x == 0 and y == 0 else y if y < x or x != x else x

def maximumnum(x, y):
    return x + y if x == 0 and y == 0 else y if y > x or x != x else x

def fdim(x, y):
    return 0 if x <= y else x - y

def exp2(x):
    return 2 ** x

def exp10(x):
    return 10 ** x

def pow(x, y):
    return x ** y

def atan2(y, x):
    # The angle within an eighth of the circle, then mirrored to its place.
    small = min(abs(y), abs(x))
    large = max(abs(y), abs(x))
    ratio = 0 if large == 0 else 1 if small == large else small / large
    eighth = atan(ratio)
    quarter = 1.5707963267948966 - eighth if abs(y) > abs(x) else eighth
    half = 3.141592653589793 - quarter if x < 0 or x == 0 and 1 / x < 0 else quarter
    return -half if y < 0 or y == 0 and 1 / y < 0 else half

def asinh(x):
    # Beyond 1e8 the root equals x; below, log1p keeps small values exact.
    large = abs(x)
    near = log1p(large + large * large / (1 + sqrt(1 + large * large)))
    value = log(large) + 0.6931471805599453 if large > 100000000 else near
    return x if x == 0 else -value if x < 0 else value

def acosh(x):
    above = x - 1
    near = log1p(above + sqrt(above) * sqrt(above + 2))
    return log(x) + 0.6931471805599453 if x > 100000000 else near

def atanh(x):
    large = abs(x)
    value = log1p(2 * large / (1 - large)) / 2
    return x if x == 0 else -value if x < 0 else value
"""


@cache
def _definitions() -> dict[str, Tree]:
    table = {}
    for node in ast.parse(_DEFINITIONS).body:
        assert isinstance(node, ast.FunctionDef)
        table[node.name] = verify_function(node, STANDARD)
    return table


_PRIMITIVES = (
    "sqrt", "exp", "log", "log2", "log10", "log1p", "expm1", "cbrt", "hypot", "floor", "ceil",
    "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh",
)  # fmt: skip
_DEFINED = (
    "pow", "exp2", "exp10", "atan2", "asinh", "acosh", "atanh", "fmod", "fmin", "fmax", "fdim", "copysign",
    "trunc", "round", "rint",
)  # fmt: skip

LIBRARY: dict[str, str] = {
    **{name: name for name in (*_PRIMITIVES, *_DEFINED)},
    "fabs": "abs",
    "nearbyint": "rint",
    "roundeven": "rint",
    "fminimum": "minimum",
    "fmaximum": "maximum",
    "fminimum_num": "minimumnum",
    "fmaximum_num": "maximumnum",
}
"""Functions of C's mathematics library by name; floats have an ``f`` at the end."""

INTRINSICS: dict[str, str] = {
    **{name: LIBRARY[name] for name in LIBRARY.keys() - {"fmin", "fmax", "fmod", "fdim", "hypot", "cbrt"}},
    **{name: name for name in ("minimum", "maximum", "minimumnum", "maximumnum")},
    "minnum": "fmin",
    "maxnum": "fmax",
}
"""LLVM's intrinsics by name: ``llvm.sqrt.f64`` is ``sqrt``."""


def meaning(name: str) -> Tree | str:
    """The definition of a name in these tables, or of ``signbit``; or the name of a primitive."""
    return _definitions().get(name, name)


def arity(name: str) -> int:
    """Number of arguments of a name in these tables."""
    found = meaning(name)
    return STANDARD[found].arity if isinstance(found, str) else len(found.parameters)
