"""Waves over evenly spaced values: of all frequencies that have the same values there, the least.

Where values are whole steps apart, ``sin(a*x)`` and ``sin((a - 2*pi/step)*x)`` are equal (Shannon 1949,
doi:10.1109/JRPROC.1949.232969). Rows do not tell them apart, but whoever asks for values between the rows does.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from shine.base.typing import Floats
from shine.lang.forms.facts import FACTS
from shine.lang.forms.interpretation import Interpretation, Rebuilding
from shine.lang.forms.tree import Tree
from shine.lang.forms.visitor import Visit
from shine.lang.parse import parse
from shine.search.finishing.shorter import same_values

Grid = tuple[float, float]
"""A value, and the step that all others are whole numbers of from it."""


def grids_of(names: Sequence[str], columns: Floats) -> dict[str, Grid]:
    """The grid of each feature that has one, of columns of shape (n_features, n_rows)."""
    found = {}
    for name, column in zip(names, columns, strict=True):
        values = np.unique(column)
        if len(values) > 2:
            step = float(np.diff(values).min())
            steps = (values - values[0]) / step
            if np.abs(steps - np.round(steps)).max() < 1e-6:  # decimals are not exact
                found[name] = float(values[0]), step
    return found


def with_slow_waves(tree: Tree, grids: Mapping[str, Grid], columns: Sequence[Floats]) -> Tree:
    """A formula whose waves have the least frequencies.

    Parameters
    ----------
    tree : Tree
    grids : mapping of str to Grid
        Of features.
    columns : sequence of ndarray
        Rows on which the values stay.
    """
    if not grids or tree.assignments:
        return tree
    # By whole periods, nothing changes but the last digits of large frequencies, and constants are fitted afterwards.
    # Waves that are squared, or multiplied, may turn by half a period as well.
    for share, rounding in ((1.0, 0.1), (0.5, 1e-6)):
        at, count = 0, 1
        while at < count:
            slowed = _Slowed(grids, at, share)
            other = replace(tree, result=slowed.visit(tree.result))
            at, count = at + 1, slowed.count
            if slowed.changed and same_values(tree, other, columns, rounding):
                tree = other
    return tree


class _Slowed(Rebuilding):
    """Slows one wave, by its number, by whole shares of its period between two values."""

    def __init__(self, grids: Mapping[str, Grid], at: int, share: float) -> None:
        self._grids, self._at, self._share = grids, at, share
        self.count, self.changed = 0, False

    def visit_Call(self, node: ast.Call) -> Visit:
        rebuilt = yield from super().visit_Call(node)
        period = FACTS[rebuilt.func.id].period if rebuilt.func.id in FACTS else None
        if period is None:
            return rebuilt
        self.count += 1
        if self.count != self._at + 1:
            return rebuilt
        return ast.Call(rebuilt.func, [self._slowed(rebuilt.args[0], period)], [])

    def _slowed(self, argument: ast.expr, period: float) -> ast.expr:
        """The sum of features with coefficients, and of what else is in the argument."""
        line: dict[str, float] = {}
        rest: list[tuple[float, ast.expr]] = []
        for sign, part in _summands(argument):
            own = _Line().visit(part)
            rest += [(sign, part)] if own is None else []
            for name, value in (own or {}).items():
                line[name] = line.get(name, 0.0) + sign * value
        phase, whole = line.pop("", 0.0), period * self._share
        for name in sorted(line.keys() & self._grids.keys()):
            origin, step = self._grids[name]
            if turns := round(line[name] * step / whole):
                line[name] -= turns * whole / step
                before = turns * origin / step
                phase += (before - round(before)) * whole
                self.changed = True
        if not self.changed:
            return argument
        phase -= round(phase / period) * period
        terms = [f"{value!r}*{name}" for name, value in line.items()]
        terms += [repr(phase)] if abs(phase) > 1e-9 else []
        found = parse(" + ".join(terms), tuple(line)).result
        for sign, part in rest:
            found = ast.BinOp(found, ast.Add() if sign > 0 else ast.Sub(), part)
        return found


def _summands(node: ast.expr, sign: float = 1.0) -> Iterator[tuple[float, ast.expr]]:
    """The summands of a sum, each with its sign."""
    match node:
        case ast.BinOp(left, ast.Add(), right):
            yield from _summands(left, sign)
            yield from _summands(right, sign)
        case ast.BinOp(left, ast.Sub(), right):
            yield from _summands(left, sign)
            yield from _summands(right, -sign)
        case _:
            yield sign, node


class _Line(Interpretation):
    """Coefficients of a sum by the names of its features, and of 1 by the empty name; None if it is no line."""

    def visit_Constant(self, node: ast.Constant) -> Any:
        return {"": float(node.value)}  # type: ignore[arg-type]

    def visit_Name(self, node: ast.Name) -> Any:
        return {node.id: 1.0}

    def _apply(self, name: str, *operands: Any) -> Any:
        match name, operands:
            case (("add" | "sub"), (dict(left), dict(right))):
                sign = 1.0 if name == "add" else -1.0
                return {each: left.get(each, 0.0) + sign * right.get(each, 0.0) for each in {**left, **right}}
            case "neg", (dict(only),):
                return {each: -value for each, value in only.items()}
            case "mul", ({"": factor, **nothing}, dict(line)) | (dict(line), {"": factor, **nothing}) if not nothing:
                return {each: value * factor for each, value in line.items()}
            case "div", (dict(line), {"": divisor, **nothing}) if divisor and not nothing:
                return {each: value / divisor for each, value in line.items()}
        return None
