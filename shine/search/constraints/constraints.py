"""Constraints as a user declares them: which formulas a search may consider, and which pay a penalty."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Annotated, Any, Literal, TypeVar

from annotated_types import Ge

from shine.lang.forms.names import listed, normalized, shortened, shown, similar, value_text
from shine.lang.forms.tree import Primitive
from shine.search.constraints.dimensional_analysis import MOST_ARGUMENTS
from shine.search.constraints.units import DIMENSIONLESS, parse_unit
from shine.search.evolution.complexity import CONSTANT_NAME

Problem = tuple[tuple[str, ...], str]
"""The keys that lead to a mistake in the constraints, and its description."""

Count = Annotated[int, Ge(0)]
Value = TypeVar("Value")
Argument = int | Literal["constant"] | None
"""Limit of an argument: a number of nodes, a constant, or none."""
Direction = Literal["increasing", "decreasing"]


@dataclass(frozen=True)
class Constraints:
    """Constraints on the formulas of a search; none by default.

    Parameters
    ----------
    limits, nesting : dict
        Most occurrences of a function, a feature or a `constant`: ``{"sin": 2}``; within the arguments of a function:
        ``{"sin": {"exp": 0}}``.
    arguments : dict
        Most nodes of each argument of a function, or ``"constant"`` for a number; -1 or None for any:
        ``{"pow": (-1, "constant")}``, ``{"sin": 5}``.
    required, forbidden : tuple of str
        Features that every formula must have if the rows show them, and features that no formula may have.
    monotonic : dict
        Features in which the prediction must be ``"increasing"`` or ``"decreasing"``.
    penalty : float
        Price of predictions that go in the wrong direction.
    units : dict
        Units of all features that are not forbidden: ``{"m": "kg", "v": "m/s"}``.
    target_unit : str
        Unit of the target; needed with `units`.
    dimensionless_constants : bool
        Whether every constant is a plain number; otherwise it may have any unit.

    Raises
    ------
    ValueError
        If a field has a wrong value, or two fields contradict each other; the message names them.
    """

    limits: dict[str, Count] = field(default_factory=dict)
    """Most occurrences in a formula of a function, a feature or a `constant`, by name: `{sin: 2}`."""
    nesting: dict[str, dict[str, Count]] = field(default_factory=dict)
    """Most occurrences of a name within the arguments of a function: `{sin: {sin: 0, exp: 1}}`."""
    # `_problems` checks the values: pydantic would tell of each kind that they are not.
    arguments: dict[str, Any] = field(default_factory=dict)
    """Most nodes of each argument of a function, `constant` for a number, -1 for any: `{pow: [-1, constant]}`."""
    required: tuple[str, ...] = ()
    """Features that every formula must have if the rows show them."""
    forbidden: tuple[str, ...] = ()
    """Features that no formula may have."""
    monotonic: dict[str, Direction] = field(default_factory=dict)
    """Features in which the prediction must not fall (`increasing`) or must not rise (`decreasing`)."""
    penalty: Annotated[float, Ge(0)] = 100.0
    """Price of the wrong direction: the loss times 1 + penalty * (share of pairs of rows with the wrong order)."""
    units: dict[str, str] = field(default_factory=dict)
    """Units of all features that are not forbidden, such as `kg*m/s^2` or `1`: only consistent formulas are allowed."""
    target_unit: str | None = None
    """Unit of the target; needed with `units`."""
    dimensionless_constants: bool = False
    """Whether every constant is a plain number; otherwise it may have any unit that makes the formula consistent."""

    def with_unit(self, target: str) -> str:
        """A name of the target, with the unit if it has one."""
        told = self.target_unit in (None, "1") or not target or target.endswith("]")
        return target if told else f"{target} [{self.target_unit}]"

    def __post_init__(self) -> None:
        for name, value in _normalized(self).items():
            object.__setattr__(self, name, value)
        for problem in self._problems():
            raise ValueError(problem)

    def __bool__(self) -> bool:
        return self.structural or bool(self.monotonic)

    @property
    def structural(self) -> bool:
        """Whether any constraint is on the nodes of a formula; `monotonic` alone is on its values."""
        return bool(self.limits or self.nesting or self.arguments or self.required or self.forbidden or self.units)

    @property
    def arguments_by_place(self) -> dict[str, tuple[Argument, ...]]:
        """The limit of each argument of the functions in `arguments`; None if there is none."""
        every = {name: limits if isinstance(limits, tuple) else (limits,) for name, limits in self.arguments.items()}
        return {name: tuple(None if limit == -1 else limit for limit in limits) for name, limits in every.items()}

    def _problems(self) -> Iterator[str]:
        """Mistakes that do not depend on the primitives; a message about one field begins with its name."""
        counts = [("limits", name, count) for name, count in self.limits.items()]
        counts += [("nesting", name, count) for inner in self.nesting.values() for name, count in inner.items()]
        for key, name, count in counts:
            if isinstance(count, bool) or not isinstance(count, int) or count < 0:
                yield f"{key} of {shown(name)} must be a whole number from 0, is {value_text(count)}"
        for name, limits in self.arguments_by_place.items():
            for limit in limits:
                whole = isinstance(limit, int) and not isinstance(limit, bool) and limit > 0
                if limit is not None and limit != CONSTANT_NAME and not whole:
                    yield (
                        f"arguments of {shown(name)} must be limited by a whole number of nodes from 1, by "
                        f"{CONSTANT_NAME!r}, or by -1, which allows any; a limit is {value_text(limit)}"
                    )
        forbidden = set(self.forbidden)
        for name in self.required:
            if name in forbidden:
                yield f"required and forbidden both have {shown(name)}; remove it from one of them"
        for name, direction in self.monotonic.items():
            if direction not in ("increasing", "decreasing"):
                yield f"monotonic must be increasing or decreasing, is {value_text(direction)} for {shown(name)}"
            if name in forbidden:
                yield f"monotonic has {shown(name)}, which is forbidden; remove it from one of them"
        if not (isfinite(self.penalty) and self.penalty >= 0):
            yield f"penalty must be a number from 0, is {value_text(self.penalty)}"
        if bool(self.units) != (self.target_unit is not None):
            missing = "target_unit" if self.units else "units"
            yield f"{missing} is missing; units are given for all features and the target, or for none"
        # These messages do not begin with the field: a caller that drops the named field would report it as missing.
        wrong = []
        for what, text in (
            *((f"the unit of {shown(name)}", unit) for name, unit in self.units.items()),
            ("the unit of the target", self.target_unit or "1"),
        ):
            try:
                parse_unit(text)
            except ValueError as error:
                wrong.append(f"{what}: {error}")
        if wrong:
            yield "; ".join(wrong)

    def problems(
        self, functions: Sequence[Primitive], features: Sequence[str], linear_scaling: bool, of_classes: bool = False
    ) -> Iterator[Problem]:
        """Mistakes given the primitives and features of a search, perhaps one for the odds of classes."""
        names = [function.name for function in functions]
        everything = dict.fromkeys([*names, *features, CONSTANT_NAME])
        for name in self.limits:
            yield from _unknown(("limits", name), "function or feature", name, everything)
        for outer, inner in self.nesting.items():
            yield from _unknown(("nesting", outer), "function", outer, names)
            for name in inner:
                yield from _unknown(("nesting", outer, name), "function or feature", name, everything)
        arities = {function.name: function.arity for function in functions}
        for name, limits in self.arguments_by_place.items():
            yield from _unknown(("arguments", name), "function", name, names)
            if arities.get(name, len(limits)) != len(limits):
                yield (
                    ("arguments", name),
                    f"{shown(name)} takes {arities[name]}, and {len(limits)} are limited; give one limit for each, "
                    "-1 for any size",
                )
        columns = dict.fromkeys(features)
        for key in ("required", "forbidden", "monotonic", "units"):
            for name in getattr(self, key):
                yield from _unknown((key, *([name] if key in ("monotonic", "units") else [])), "feature", name, columns)
        if features and not set(features) - set(self.forbidden):
            yield ("forbidden",), "every feature is forbidden; allow at least one"
        if self.units:
            yield from self._unit_problems(functions, features, linear_scaling)
        if of_classes and parse_unit(self.target_unit or "1") != DIMENSIONLESS:
            yield ("target_unit",), f'is {self.target_unit!r}; odds and scores of classes have no unit: give "1"'

    def _unit_problems(
        self, functions: Sequence[Primitive], features: Sequence[str], linear_scaling: bool
    ) -> Iterator[Problem]:
        forbidden = set(self.forbidden)
        for name in features:
            if name not in self.units and name not in forbidden:
                yield ("units",), f'feature {shown(name)} is missing; give a feature without a unit the unit "1"'
        for function in functions:
            if function.arity > MOST_ARGUMENTS:
                name = shown(function.name)
                message = f"function {name} has {function.arity} arguments; with units at most {MOST_ARGUMENTS}"
                yield ("units",), message
        if self.dimensionless_constants and linear_scaling and parse_unit(self.target_unit or "1") != DIMENSIONLESS:
            message = (
                "does not go with linear scaling, whose intercept is a constant that has the unit of the target, "
                f"{self.target_unit!r}; set linear_scaling to false, or allow constants to have units"
            )
            yield ("dimensionless_constants",), message


def _normalized(constraints: Constraints) -> dict[str, Any]:
    """The fields with names of features or functions, in the normal form that formulas use."""
    return {
        **{key: _with_names(getattr(constraints, key)) for key in ("limits", "monotonic", "units")},
        "arguments": {
            name: tuple(limits) if isinstance(limits, list) else limits
            for name, limits in _with_names(constraints.arguments).items()
        },
        **{key: tuple(map(normalized, getattr(constraints, key))) for key in ("required", "forbidden")},
        "nesting": {outer: _with_names(inner) for outer, inner in _with_names(constraints.nesting).items()},
    }


def _with_names(mapping: Mapping[str, Value]) -> dict[str, Value]:
    named: dict[str, Value] = {}
    for given, value in mapping.items():
        if normalized(given) in named:
            raise ValueError(f"{shown(given)} and another name are equal in Unicode's normal form; remove one of them")
        named[normalized(given)] = value
    return named


def _unknown(loc: tuple[str, ...], kind: str, name: str, allowed: Collection[str]) -> Iterator[Problem]:
    if name not in allowed:
        near = similar(name, allowed)
        hint = f'did you mean "{near}"? ' if near else ""
        yield loc, f'unknown {kind} "{shortened(name)}"; {hint}allowed are {listed(allowed, 100)}'


def check_constraints(
    constraints: Constraints,
    functions: Sequence[Primitive],
    features: Sequence[str],
    linear_scaling: bool,
    of_classes: bool = False,
) -> None:
    """Raise an error if constraints do not fit a search.

    Raises
    ------
    ValueError
        With all mistakes (see `Constraints.problems`).
    """
    found = [
        f"constraints.{'.'.join(map(shortened, loc))}: {message}"
        for loc, message in constraints.problems(functions, features, linear_scaling, of_classes)
    ]
    if found:
        raise ValueError("\n".join(found))
