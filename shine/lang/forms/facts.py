"""Facts about the primitives: one row for each, read by every part of Shine that needs a fact.

Meanings, lowerings, partial derivatives, bounds and dimensions are rules, not facts: they have tables of their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Literal

Family = Literal["arithmetic", "remainder", "extremum", "function", "step", "comparison", "logic"]


@dataclass(frozen=True)
class Facts:
    """Facts about a primitive.

    Parameters
    ----------
    arity : int
    family : str
        Kind of operation, one of `Family`.
    commutative : bool
        Whether swapping the operands leaves the value unchanged.
    sign_by_order : bool
        Whether swapping the operands 0.0 and -0.0 still changes the sign of the result.
    parity : {"even", "odd"}, optional
    period : float, optional
    undoes : str, optional
        The function that it undoes: `sin` undoes `asin`, because ``sin(asin(x))`` is x or NaN.
    infinite : {"kept", "bounded"}, optional
        Result for infinite arguments: "kept" if it is always infinite or NaN, "bounded" if it may be finite. In both
        cases NaN stays NaN.
    not_negative : bool
        Whether all values are at least 0 or NaN, and simplification uses that.
    values : {"whole", "truth"}, optional
        "whole" if all values are whole numbers, "truth" if all are 0 or 1.
    floats_only : bool
        Whether it has no meaning for integers.
    divides : bool
        Whether integers raise ZeroDivisionError for some operands.
    elementary : bool
        Whether compiled code calls a function for it, because it takes many instructions.
    inexact : bool
        Whether the last bits of NumPy's values differ from those of compiled code.
    exact_at : float, optional
        The argument for which all tiers compute the value of an inexact function exactly.
    nests_freely : bool
        Whether laws often nest it in other functions; they rarely nest the others.
    """

    arity: int
    family: Family
    _: KW_ONLY
    commutative: bool = False
    sign_by_order: bool = False
    parity: Literal["even", "odd"] | None = None
    period: float | None = None
    undoes: str | None = None
    infinite: Literal["kept", "bounded"] | None = None
    not_negative: bool = False
    values: Literal["whole", "truth"] | None = None
    floats_only: bool = False
    divides: bool = False
    elementary: bool = False
    inexact: bool = False
    exact_at: float | None = None
    nests_freely: bool = False


def _function(
    exact_at: float,
    infinite: Literal["kept", "bounded"],
    *,
    parity: Literal["even", "odd"] | None = None,
    period: float | None = None,
    undoes: str | None = None,
    not_negative: bool = False,
) -> Facts:
    """A transcendental function of one argument."""
    return Facts(
        1, "function", exact_at=exact_at, infinite=infinite, parity=parity, period=period, undoes=undoes,
        not_negative=not_negative, floats_only=True, elementary=True, inexact=True,
    )  # fmt: skip


_COMPARISON = Facts(2, "comparison", values="truth")
_EQUALITY = Facts(2, "comparison", values="truth", commutative=True)
_EXTREMUM = Facts(2, "extremum", commutative=True, sign_by_order=True, infinite="bounded")
_ROUNDING = Facts(1, "step", infinite="kept", values="whole", nests_freely=True)

FACTS: dict[str, Facts] = {
    "add": Facts(2, "arithmetic", commutative=True, infinite="kept"),
    "sub": Facts(2, "arithmetic", infinite="kept"),
    "mul": Facts(2, "arithmetic", commutative=True, infinite="kept"),
    "div": Facts(2, "arithmetic", divides=True),
    "floordiv": Facts(2, "remainder", divides=True, elementary=True),
    "mod": Facts(2, "remainder", divides=True, elementary=True),
    "pow": Facts(2, "arithmetic", divides=True, elementary=True, inexact=True),
    "min": _EXTREMUM,
    "max": _EXTREMUM,
    "neg": Facts(1, "arithmetic", parity="odd", undoes="neg", infinite="kept", nests_freely=True),
    "abs": Facts(1, "arithmetic", parity="even", infinite="kept", not_negative=True, nests_freely=True),
    "sqrt": Facts(1, "function", infinite="kept", not_negative=True, floats_only=True, nests_freely=True),
    "exp": _function(0.0, "bounded", undoes="log", not_negative=True),
    "log": _function(1.0, "kept", undoes="exp"),
    "floor": _ROUNDING,
    "ceil": _ROUNDING,
    "sign": Facts(1, "step", parity="odd", infinite="bounded", values="whole", nests_freely=True),
    "sin": _function(0.0, "kept", parity="odd", period=2 * math.pi, undoes="asin"),
    "cos": _function(0.0, "kept", parity="even", period=2 * math.pi, undoes="acos"),
    "tan": _function(0.0, "kept", parity="odd", period=math.pi, undoes="atan"),
    "asin": _function(0.0, "kept", parity="odd"),
    "acos": _function(1.0, "kept"),
    "atan": _function(0.0, "bounded", parity="odd"),
    "sinh": _function(0.0, "kept", parity="odd"),
    "cosh": _function(0.0, "kept", parity="even", not_negative=True),
    "tanh": _function(0.0, "bounded", parity="odd"),
    "lt": _COMPARISON,
    "le": _COMPARISON,
    "gt": _COMPARISON,
    "ge": _COMPARISON,
    "eq": _EQUALITY,
    "ne": _EQUALITY,
    "logical_and": Facts(2, "logic"),
    "logical_or": Facts(2, "logic"),
    "logical_not": Facts(1, "logic", values="truth", parity="even"),
    "where": Facts(3, "logic"),
}
"""Facts about every basic primitive."""

COMPOSITE_FACTS: dict[str, Facts] = {
    "square": Facts(1, "arithmetic", parity="even", infinite="kept", not_negative=True, nests_freely=True),
    "cube": Facts(1, "arithmetic", parity="odd", infinite="kept", nests_freely=True),
    "inv": Facts(1, "arithmetic", parity="odd", nests_freely=True),
    "sigmoid": Facts(1, "function", infinite="bounded", not_negative=True),
    "relu": Facts(1, "extremum", infinite="bounded", not_negative=True),
    "hypot": Facts(2, "function", commutative=True),
    "cbrt": Facts(1, "function", parity="odd", nests_freely=True),
    "protected_sqrt": Facts(1, "function", parity="even", not_negative=True),
}
"""Facts about composites, for those that need one."""


SCALED: dict[str, Literal["factor", "summand"]] = {
    **dict.fromkeys(
        ("neg", "abs", "sign", "sqrt", "square", "cube", "inv", "cbrt", "relu", "protected_sqrt", "pow"), "factor"
    ),
    **dict.fromkeys(("log", "log2", "log10", "protected_log"), "summand"),
}
"""Functions that make of a positive factor of their first argument a factor of the value, or a summand."""


def basic_where(holds: Callable[[Facts], object]) -> frozenset[str]:
    """Names of the basic primitives whose facts fulfil a condition."""
    return frozenset(name for name, facts in FACTS.items() if holds(facts))


def names_where(holds: Callable[[Facts], object]) -> frozenset[str]:
    """Names of the primitives, composites included, whose facts fulfil a condition."""
    return basic_where(holds) | {name for name, facts in COMPOSITE_FACTS.items() if holds(facts)}
