"""The functions of Python and NumPy that Shine recognises, and the conditions under which they raise an exception."""

from __future__ import annotations

import ast
import builtins
import math
import operator
from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from shine.lang.forms.functions import with_definitions
from shine.lang.forms.library import STANDARD
from shine.lang.forms.tree import Primitive

_DEFINITIONS = """
def identity(x):
    return x

def truth(x):
    return x != 0

def isnan(x):
    return x != x

def isinf(x):
    return x == x and x - x != 0

def isfinite(x):
    return x - x == 0

def trunc(x):
    return ceil(x) if x < 0 else floor(x)

def fmod(a, b):
    rest = abs(a) % abs(b)
    return -rest if a < 0 else rest

def smaller(a, b):
    # Python's min: it returns the first of two numbers if one is NaN.
    return b if b < a else a

def larger(a, b):
    return b if b > a else a

def fmin(a, b):
    return b if a != a or b < a else a

def fmax(a, b):
    return b if a != a or b > a else a

def log_to_base(x, base):
    return log(x) / log(base) if base > 0 else (base - base) / 0

def exp2(x):
    return 2 ** x

def degrees(x):
    return x * 57.29577951308232

def radians(x):
    return x * 0.017453292519943295

def clip(x, low, high):
    return min(max(x, low), high)

def both(a, b):
    return (a != 0) and (b != 0)

def either(a, b):
    return (a != 0) or (b != 0)

def one_of(a, b):
    return (a != 0) != (b != 0)

def bitwise_and(a, b):
    # Defined for truth values only; NaN for others, because floats have no bitwise operations.
    return a * b if (a == 0 or a == 1) and (b == 0 or b == 1) else (a - a) / 0

def bitwise_or(a, b):
    return max(a, b) if (a == 0 or a == 1) and (b == 0 or b == 1) else (a - a) / 0

def bitwise_xor(a, b):
    return a != b if (a == 0 or a == 1) and (b == 0 or b == 1) else (a - a) / 0

def ones_like(x):
    return 1

def zeros_like(x):
    return 0

def full_like(x, value):
    return value

def round(x):
    # Python's round: to the nearest whole number, halves to the even one.
    size = abs(x)
    low = floor(size)
    rest = size - low
    near = low + 1 if rest > 0.5 or (rest == 0.5 and low % 2 == 1) else low
    return x * 0 if near == 0 else -near if x < 0 else near

def signbit(x):
    # The reciprocal tells -0 from 0.
    return x < 0 or (x == 0 and 1 / x < 0)

def copysign(a, b):
    return -abs(a) if signbit(b) else abs(a)

def atan2(y, x):
    top = abs(y)
    side = abs(x)
    both_infinite = isinf(y) and isinf(x)
    steep = 1 if both_infinite else 0 if top == 0 else top / side
    angle = atan(steep)
    turned = 3.141592653589793 - angle if signbit(x) else angle
    # A comparison with NaN is false: NaN reaches the result by the angle, except beside a zero.
    result = x + y if x != x or y != y else turned
    return -result if signbit(y) else result

def logaddexp(a, b):
    # exp of the larger number is taken out, so that neither overflows.
    large = max(a, b)
    distance = abs(a - b)
    return a + 0.6931471805599453 if a == b else large + log1p(exp(-distance))

def logaddexp2(a, b):
    large = max(a, b)
    distance = abs(a - b)
    return a + 1 if a == b else large + log1p(2 ** -distance) / 0.6931471805599453

def heaviside(x, value):
    return x if x != x else 0 if x < 0 else value if x == 0 else 1

def nan_to_num(x):
    return 0 if x != x else min(max(x, -1.7976931348623157e308), 1.7976931348623157e308)
"""


TABLE: Mapping[str, Primitive] = with_definitions(STANDARD, _DEFINITIONS)
"""Shine's primitives, and compositions of them that functions of Python compute."""

Raises = tuple[tuple[type[Exception], str], ...]
"""Exceptions, each with its condition in the language, on the arguments a and b."""


@dataclass(frozen=True)
class Known:
    """Shine's primitives for a recognised function.

    Parameters
    ----------
    names : tuple of str
        Primitives of `TABLE`, one for each number of arguments that the function takes.
    raises : tuple of (type, str)
    folded : bool
        Whether the function also takes more arguments, which are folded from the left.
    """

    names: tuple[str, ...]
    raises: Raises = ()
    folded: bool = False

    def name(self, arguments: int) -> str | None:
        """Primitive for some number of arguments."""
        return next((name for name in self.names if TABLE[name].arity == arguments), None)


_ZERO_DIVISOR: Raises = ((ZeroDivisionError, "b == 0"),)
_INFINITE: Raises = ((ValueError, "isinf(a)"),)
_OUTSIDE: Raises = ((ValueError, "abs(a) > 1"),)
_NOT_POSITIVE: Raises = ((ValueError, "a <= 0"),)
_NO_INTEGER: Raises = ((OverflowError, "isinf(a)"), (ValueError, "isnan(a)"))
_FRACTION = "(a < 0 and isfinite(a) and isfinite(b) and b != floor(b))"


def _overflow(result: str, arguments: str = "isfinite(a)") -> Raises:
    return ((OverflowError, f"isinf({result}) and {arguments}"),)


RAISES_OF_OPERATORS: Mapping[type[ast.operator], Raises] = {
    ast.Div: _ZERO_DIVISOR,
    ast.FloorDiv: _ZERO_DIVISOR,
    ast.Mod: _ZERO_DIVISOR,
    ast.Pow: (
        (ZeroDivisionError, "a == 0 and b < 0 and isfinite(b)"),
        *_overflow("a ** b", "isfinite(a) and isfinite(b) and a != 0"),
    ),
}
"""Conditions under which operators raise on Python's own numbers; on NumPy's they never do."""

_BUILTINS = {
    "abs": Known(("abs",)),
    "bool": Known(("truth",)),
    "float": Known(("identity",)),
    "int": Known(("trunc",), _NO_INTEGER),
    "max": Known(("larger",), folded=True),
    "min": Known(("smaller",), folded=True),
    "pow": Known(("pow",), RAISES_OF_OPERATORS[ast.Pow]),
    "round": Known(("round",), _NO_INTEGER),
}

_OPERATOR = {
    **{name: Known((name,)) for name in ("add", "sub", "mul", "neg", "abs", "lt", "le", "gt", "ge", "eq", "ne")},
    "truediv": Known(("div",), _ZERO_DIVISOR),
    "floordiv": Known(("floordiv",), _ZERO_DIVISOR),
    "mod": Known(("mod",), _ZERO_DIVISOR),
    "pow": Known(("pow",), RAISES_OF_OPERATORS[ast.Pow]),
    "pos": Known(("identity",)),
    "truth": Known(("truth",)),
    "not_": Known(("logical_not",)),
    "and_": Known(("bitwise_and",)),
    "or_": Known(("bitwise_or",)),
    "xor": Known(("bitwise_xor",)),
}

_MATH = {
    **{name: Known((name,), _INFINITE) for name in ("sin", "cos", "tan")},
    **{name: Known((name,), _OUTSIDE) for name in ("asin", "acos")},
    **{name: Known((name,), _overflow(f"{name}(a)")) for name in ("exp", "exp2", "expm1", "sinh", "cosh")},
    **{name: Known((name,), _NOT_POSITIVE) for name in ("log2", "log10")},
    **{name: Known((name,), _NO_INTEGER) for name in ("floor", "ceil", "trunc")},
    **{name: Known((name,)) for name in ("atan", "tanh", "cbrt", "degrees", "radians", "isnan", "isinf", "isfinite")},
    "fabs": Known(("abs",)),
    "atan2": Known(("atan2",)),
    "copysign": Known(("copysign",)),
    "sqrt": Known(("sqrt",), ((ValueError, "a < 0"),)),
    "log": Known(("log", "log_to_base"), _NOT_POSITIVE),
    "log1p": Known(("log1p",), ((ValueError, "a <= -1"),)),
    "hypot": Known(("hypot",), _overflow("hypot(a, b)", "isfinite(a) and isfinite(b)")),
    "fmod": Known(("fmod",), ((ValueError, "b == 0 or isinf(a)"),)),
    "pow": Known(
        ("pow",),
        (
            (ValueError, f"(a == 0 and b < 0 and isfinite(b)) or {_FRACTION}"),
            *_overflow("a ** b", "isfinite(a) and isfinite(b) and a != 0"),
        ),
    ),
}

_NUMPY_NAMES = {
    "add": "add", "subtract": "sub", "multiply": "mul", "divide": "div", "floor_divide": "floordiv",
    "remainder": "mod", "fmod": "fmod", "power": "pow", "float_power": "pow", "negative": "neg",
    "positive": "identity", "absolute": "abs", "fabs": "abs", "sqrt": "sqrt", "square": "square", "cbrt": "cbrt",
    "reciprocal": "inv", "exp": "exp", "exp2": "exp2", "expm1": "expm1", "log": "log", "log2": "log2",
    "log10": "log10", "log1p": "log1p", "sin": "sin", "cos": "cos", "tan": "tan", "arcsin": "asin",
    "arccos": "acos", "arctan": "atan", "sinh": "sinh", "cosh": "cosh", "tanh": "tanh", "hypot": "hypot",
    "minimum": "min", "maximum": "max", "fmin": "fmin", "fmax": "fmax", "clip": "clip", "floor": "floor",
    "ceil": "ceil", "trunc": "trunc", "sign": "sign", "degrees": "degrees", "radians": "radians",
    "rad2deg": "degrees", "deg2rad": "radians", "less": "lt", "less_equal": "le", "greater": "gt",
    "greater_equal": "ge", "equal": "eq", "not_equal": "ne", "logical_and": "both", "logical_or": "either",
    "logical_not": "logical_not", "logical_xor": "one_of", "bitwise_and": "bitwise_and",
    "bitwise_or": "bitwise_or", "bitwise_xor": "bitwise_xor", "isnan": "isnan", "isinf": "isinf",
    "isfinite": "isfinite", "where": "where", "ones_like": "ones_like", "zeros_like": "zeros_like",
    "full_like": "full_like", "rint": "round", "round": "round", "around": "round", "fix": "trunc",
    "arctan2": "atan2", "copysign": "copysign", "signbit": "signbit", "logaddexp": "logaddexp",
    "logaddexp2": "logaddexp2", "heaviside": "heaviside", "nan_to_num": "nan_to_num",
    "copy": "identity", "asarray": "identity", "float64": "identity",
}  # fmt: skip

_NUMPY = {name: Known((primitive,)) for name, primitive in _NUMPY_NAMES.items()}


def _known() -> dict[int, Known]:
    rows: list[tuple[ModuleType, dict[str, Known]]] = [
        (builtins, _BUILTINS), (operator, _OPERATOR), (math, _MATH), (np, _NUMPY)
    ]  # fmt: skip
    # The oldest supported Python lacks some functions of math.
    return {id(getattr(module, name)): row for module, table in rows for name, row in table.items()
            if hasattr(module, name)}  # fmt: skip


KNOWN: Mapping[int, Known] = _known()
"""The recognised functions by identity; their modules keep them alive."""

_OF_SCIPY: Mapping[str, Known] = {"expit": Known(("sigmoid",))}
"""Universal functions of SciPy by name: their modules take too long to import to know their identity."""

TRUTHS = frozenset({
    "truth", "isnan", "isinf", "isfinite", "signbit", "lt", "le", "gt", "ge", "eq", "ne", "both", "either", "one_of",
    "logical_not", "bitwise_and", "bitwise_or", "bitwise_xor", "where", "identity", "ones_like", "zeros_like",
})  # fmt: skip
"""Primitives that can return truth values."""


def known_of(function: object) -> Known | None:
    """Facts about a function of Python, NumPy or SciPy; None if it is not recognised."""
    if isinstance(function, np.ufunc) and function.__name__ in _OF_SCIPY:
        return _OF_SCIPY[function.__name__]
    return KNOWN.get(id(function))


BOOLEAN: Mapping[str, str] = {"bitwise_and": "logical_and", "bitwise_or": "logical_or", "bitwise_xor": "ne"}
"""Primitives that replace bitwise ones if all arguments are of type bool."""

OWN_MEANINGS: Mapping[str, str] = {"smaller": "min", "larger": "max"}
"""Shine's primitives for those of Python that differ from them only where a value is NaN."""

MODULES: Mapping[str, ModuleType] = {"np": np, "numpy": np, "math": math, "operator": operator}
"""Modules by the names that texts give them."""

_NUMBERS: Mapping[str, float] = {"pi": math.pi, "e": math.e}
"""Numbers of `math` and NumPy."""


def known_text(text: str) -> Known | None:
    """The function that a dotted name such as ``np.log`` means; None if there is none."""
    module, dot, name = text.partition(".")
    if not dot or module not in MODULES:
        return None
    return known_of(getattr(MODULES[module], name, None))


def bare_names(tree: ast.AST) -> ast.AST:
    """A syntax tree with ``log(x)`` for ``np.log(x)`` and the number for ``math.pi``; changed in place.

    Only functions that are primitives of Shine, or differ from one where a value is NaN, are replaced.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            known = known_text(ast.unparse(node.func)) if isinstance(node.func.value, ast.Name) else None
            name = known.name(2 if known.folded else len(node.args)) if known is not None else None
            name = None if name is None else OWN_MEANINGS.get(name, name)
            if name in STANDARD:
                node.func = ast.copy_location(ast.Name(name, ast.Load()), node.func)
        for field, value in ast.iter_fields(node):
            if isinstance(value, list):
                value[:] = [_number(each) for each in value]
            elif isinstance(value, ast.Attribute):
                setattr(node, field, _number(value))
    return tree


def _number(node: Any) -> Any:
    match node:
        case ast.Attribute(value=ast.Name(id="np" | "numpy" | "math"), attr=name) if name in _NUMBERS:
            return ast.copy_location(ast.Constant(_NUMBERS[name]), node)
    return node
