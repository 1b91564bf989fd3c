"""How C writes each primitive."""

from __future__ import annotations

import math

from shine.formats.write.statements.dialect import COMPARISON_SIGNS, Dialect, Form, call

_CHOICE, _OR, _AND, _EQUAL, _ORDER, _SUM, _PRODUCT, _SIGN, _ATOM = range(1, 10)

HELPERS: dict[str, tuple[str, str]] = {
    "min": (
        "double a, double b",
        """\
    /* NaN if either is; b if they are equal, as 0.0 and -0.0 are. */
    return a < b || a != a ? a : b;""",
    ),
    "max": (
        "double a, double b",
        """\
    /* NaN if either is; b if they are equal, as 0.0 and -0.0 are. */
    return a > b || a != a ? a : b;""",
    ),
    "sign": (
        "double a",
        """\
    /* 1, -1 or 0; NaN for NaN. */
    return a > 0.0 ? 1.0 : a < 0.0 ? -1.0 : a == 0.0 ? 0.0 : a;""",
    ),
    "mod": (
        "double a, double b",
        """\
    /* The remainder that has the sign of the divisor; NaN for the divisor 0. */
    const double remainder = fmod(a, b);
    if (remainder == 0.0) {
        return copysign(0.0, b);
    }
    return (b < 0.0) != (remainder < 0.0) ? remainder + b : remainder;""",
    ),
    "floordiv": (
        "double a, double b",
        """\
    /* The quotient rounded down, from an exact remainder; a / b for the divisor 0. */
    const double remainder = fmod(a, b);
    double quotient = (a - remainder) / b;
    double below;
    if (b == 0.0) {
        return a / b;
    }
    if (remainder != 0.0 && (b < 0.0) != (remainder < 0.0)) {
        quotient -= 1.0;
    }
    if (quotient == 0.0) {
        return copysign(0.0, a / b);
    }
    below = floor(quotient);
    return quotient - below > 0.5 ? below + 1.0 : below;""",
    ),
    "logical_and": (
        "double a, double b",
        """\
    /* One of its operands: the second unless the first is 0. */
    return a != 0.0 ? b : a;""",
    ),
    "logical_or": (
        "double a, double b",
        """\
    /* One of its operands: the first unless it is 0. */
    return a != 0.0 ? a : b;""",
    ),
}
"""Parameters and body of the helper function of each primitive that is neither an operator nor in <math.h>."""


def _operator(symbol: str, strength: int) -> Form:
    return Form(f"{{0}} {symbol} {{1}}", strength, (strength, strength + 1))


_FORMS: dict[str, Form] = {
    "add": _operator("+", _SUM),
    "sub": _operator("-", _SUM),
    "mul": _operator("*", _PRODUCT),
    "div": _operator("/", _PRODUCT),
    # C reads two signs in a row as a decrement.
    "neg": Form("-{0}", _SIGN, (_ATOM,)),
    "abs": call("fabs", 1),
    "pow": call("pow", 2),
    **{
        name: call(name, 1)
        for name in ("sqrt", "exp", "log", "floor", "ceil", "sin", "cos", "tan", "asin", "acos", "atan")
    },
    **{name: call(name, 1) for name in ("sinh", "cosh", "tanh")},
    **{
        name: Form(f"{{0}} {symbol} {{1}} ? 1.0 : 0.0", _CHOICE, (_SUM, _SUM))
        for name, symbol in COMPARISON_SIGNS.items()
    },
    "logical_not": Form("{0} ? 0.0 : 1.0", _CHOICE, (_OR,), (0,)),
    "where": Form("{0} ? {1} : {2}", _CHOICE, (_OR, _CHOICE + 1, _CHOICE), (0,)),
}

_CONDITIONS: dict[str, Form] = {
    **{
        name: Form(f"{{0}} {symbol} {{1}}", _EQUAL if name in ("eq", "ne") else _ORDER, (_SUM, _SUM))
        for name, symbol in COMPARISON_SIGNS.items()
    },
    "logical_not": Form("!{0}", _SIGN, (_ATOM,), (0,)),
    "logical_and": Form("{0} && {1}", _AND, (_AND, _AND + 1), (0, 1)),
    # Compilers warn of && within || without parentheses.
    "logical_or": Form("{0} || {1}", _OR, (_AND + 1, _AND + 1), (0, 1)),
}


def _number(value: float) -> Form:
    text = "NAN" if math.isnan(value) else repr(value)
    return Form(text, _SIGN if text.startswith("-") else _ATOM)


def dialect(prefix: str) -> Dialect:
    """The dialect of C; names of helper functions begin with the prefix."""
    helpers = {name: call(f"{prefix}_{name}", helper[0].count("double")) for name, helper in HELPERS.items()}
    return Dialect("C", {**_FORMS, **helpers}, _CONDITIONS, Form("{0} != 0.0", _EQUAL, (_SUM,)), _number)
