"""High precision: the numbers and functions of a formula in any number of digits, and roots of systems of equations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mpmath import mp

from quality.formulas import Formula, Operation

DIGITS = 100

IDENTICAL = 30
"""Digits to which identical formulas agree."""


def numbers(formula: Formula, ctx: Any) -> list[Any]:
    """Constants as they are written, in the context's precision."""
    return [+ctx.pi if text == "pi" else ctx.mpf(text) for text in formula.constants]


def root(
    residuals: Callable[[list[Any]], list[Any]],
    start: list[Any],
    limits: list[Any],
    units: list[Any],
    ctx: Any,
    expired: Callable[[], bool],
) -> list[Any] | None:
    """Parameters near the start with no residual, by the method of Levenberg and Marquardt; None if it finds none.

    The damping is the squared residual: it converges quadratically even where parameters depend on each
    other (Yamashita and Fukushima 2001), and more where the residual would grow; parameters stop at their limits. It
    gives up if the residual is not halved. `units` are the scales of the parameters.
    """
    enough, parameters, count = ctx.mpf(10) ** -IDENTICAL, start, len(start)
    errors = residuals(parameters)
    size = _norm(errors)
    for _ in range(60):
        if size <= enough:
            return parameters
        jacobian = []
        for position, unit in enumerate(units):
            if expired():
                raise TimeoutError
            step = unit * ctx.mpf(10) ** -50
            moved = [value + step if i == position else value for i, value in enumerate(parameters)]
            jacobian.append([(b - a) * 10**50 for a, b in zip(errors, residuals(moved), strict=True)])
        normal = ctx.matrix([[ctx.fdot(a, b) for b in jacobian] for a in jacobian])
        right = ctx.matrix([-ctx.fdot(column, errors) for column in jacobian])
        if not all(ctx.isfinite(value) for value in normal):
            return None
        damping, before = max(size * size, ctx.mpf(10) ** -80) * max(normal[i, i] for i in range(count)), size
        for _ in range(20):
            free = _moved(parameters, units, normal + damping * ctx.eye(count), right, ctx)
            moved = [min(max(new, old - far), old + far) for new, old, far in zip(free, start, limits, strict=True)]
            errors_there = residuals(moved)
            size = _norm(errors_there)
            if size < before:
                break
            damping *= 100
        if not size <= before * 0.5:  # nor if it is not a number
            return None
        parameters, errors = moved, errors_there
    return None


def _moved(parameters: list[Any], units: list[Any], normal: Any, right: Any, ctx: Any) -> list[Any]:
    """Parameters after the step that solves the normal equations; unchanged if these are singular."""
    try:
        steps = ctx.lu_solve(normal, right)
    except ZeroDivisionError:
        return parameters
    return [value + unit * step for value, unit, step in zip(parameters, units, steps, strict=True)]


def _norm(values: list[Any]) -> Any:
    """The largest absolute value; NaN if any value is."""
    return max(abs(value) for value in values) if all(value == value for value in values) else mp.nan


def operations(ctx: Any) -> dict[str, Operation]:
    """The functions in high precision; a value that IEEE arithmetic makes infinite or NaN is NaN here."""
    nan = ctx.nan

    def within(function: Operation, allowed: Callable[[Any], bool] = lambda x: True) -> Operation:
        # No float64 is larger, and a larger exponent would fill the memory.
        return lambda x: function(x) if abs(x) < 1e308 and allowed(x) else nan

    def power(base: Any, exponent: Any) -> Any:
        whole = exponent == ctx.floor(exponent) if abs(exponent) < 1e6 else False
        if whole:
            return base ** int(exponent) if base != 0 or exponent >= 0 else nan
        return exponential(exponent * ctx.log(base)) if base > 0 else nan

    exponential = within(ctx.exp, lambda x: x < 710)
    hyperbolic = lambda x: abs(x) < 710  # noqa: E731 - a bound, named
    return {
        "add": lambda a, b: a + b,
        "sub": lambda a, b: a - b,
        "mul": lambda a, b: a * b,
        "div": lambda a, b: a / b if b != 0 else nan,
        "pow": power,
        "neg": lambda a: -a,
        "abs": abs,
        "square": lambda a: a * a,
        "sqrt": within(ctx.sqrt, lambda x: x >= 0),
        "exp": exponential,
        "log": within(ctx.log, lambda x: x > 0),
        "sin": within(ctx.sin),
        "cos": within(ctx.cos),
        "tan": within(ctx.tan),
        "asin": within(ctx.asin, lambda x: abs(x) <= 1),
        "acos": within(ctx.acos, lambda x: abs(x) <= 1),
        "atan": within(ctx.atan),
        "sinh": within(ctx.sinh, hyperbolic),
        "cosh": within(ctx.cosh, hyperbolic),
        "tanh": within(lambda x: ctx.tanh(x) if abs(x) < 710 else ctx.sign(x)),
        "cube": lambda a: a * a * a,
        "cbrt": within(lambda x: ctx.sign(x) * ctx.cbrt(abs(x))),
        "inv": lambda a: 1 / a if a != 0 else nan,
        "log10": within(lambda x: ctx.log(x) / ctx.ln10, lambda x: x > 0),
        "log2": within(lambda x: ctx.log(x) / ctx.ln2, lambda x: x > 0),
        "log1p": within(lambda x: ctx.log(1 + x), lambda x: x > -1),
        "expm1": lambda x: exponential(x) - 1,
        "harmonic": within(ctx.harmonic),
        "protected_div": lambda a, b: a / b if abs(b) > 0.001 else ctx.mpf(1),
        "protected_log": within(lambda a: ctx.log(abs(a)) if abs(a) > 0.001 else ctx.mpf(0)),
        "protected_sqrt": within(lambda a: ctx.sqrt(abs(a))),
        "capped_exp": within(lambda a: ctx.exp(min(a, ctx.mpf(100)))),
    }
