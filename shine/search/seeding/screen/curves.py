"""Curves: functions of a coordinate with one constant inside, times a coordinate, as terms of sums."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from shine.base.typing import Floats
from shine.compiler.arrays import apply
from shine.lang.forms.library import STANDARD
from shine.search.seeding.bank.formula_writer import Nodes, Unwritable, Writer, constant
from shine.search.seeding.bank.function_families import EXPONENTIAL, FAMILIES, Family, rate
from shine.search.seeding.screen.screen import Screen

FIRST_ANGLE, STEP, MOST_WAVES = 0.5, 0.5, 120
"""The lowest frequency and the distance of frequencies, as angles over the range of the argument; their number."""

ANGLE_A_ROW = 1.0
"""Highest angle between neighbouring rows."""

EVERY = 2
"""Steps between the constants of a grid that are taken: a fit follows."""

_OF_COORDINATES = ("exponential", "power", "inverse", "log")


def _frequencies(argument: Floats) -> Floats:
    count = min(MOST_WAVES, int(ANGLE_A_ROW * len(argument) / STEP))
    angles: Floats = FIRST_ANGLE + STEP * np.arange(float(count))
    return (angles * rate(argument))[:, None]


def _wave(name: str) -> Family:
    return Family(
        name,
        3,
        _frequencies,
        lambda z, c: apply(STANDARD[name], c[:, :1] * z),
        lambda w, n, c: w.call(name, w.multiply(constant(c[0]), n)),
    )


OF_COORDINATES = (*(family for family in FAMILIES if family.name in _OF_COORDINATES), _wave("sin"), _wave("cos"))
OF_SQUARES = tuple(family for family in FAMILIES if family.name in ("exponential", "inverse"))
OF_INVERSES = (EXPONENTIAL,)
"""Functions of a coordinate, of its square and of its inverse."""


@dataclass(frozen=True, eq=False)
class Curve:
    """A function of one argument with a constant inside, times a factor.

    Parameters
    ----------
    family : Family
        Of one constant.
    argument, factor : Nodes
        The factor is None for 1.
    argument_values, factor_values : ndarray of shape (n_rows,)
    grid : ndarray of shape (n,)
        Constants worth trying.
    """

    family: Family
    argument: Nodes
    argument_values: Floats
    factor: Nodes | None
    factor_values: Floats
    grid: Floats

    def values(self, constants: Floats) -> Floats:
        """Values for each choice of the constant, shape (n, n_rows), up to a factor."""
        with np.errstate(all="ignore"):
            return self.family.values(self.argument_values, constants[:, None]) * self.factor_values

    @property
    def size(self) -> int:
        """Nodes of its formula, about."""
        return self.family.size + len(self.argument) + (0 if self.factor is None else 1 + len(self.factor))

    def on(self, rows: slice) -> Curve:
        """The same on some rows."""
        return replace(self, argument_values=self.argument_values[rows], factor_values=self.factor_values[rows])

    def nodes(self, writer: Writer, value: float) -> Nodes:
        """It as a formula, up to a factor; raises `Unwritable` if the set has no functions for it."""
        own = self.family.write(writer, self.argument, (value,))
        return own if self.factor is None else writer.multiply(self.factor, own)


def curves_of(screen: Screen) -> Iterator[Curve]:
    """The curves of the coordinates of a screen, also times each coordinate."""
    writer = screen.writer
    leaves = list(zip(screen.coordinates.nodes, screen.coordinates.values, strict=True))
    factors: list[tuple[Nodes | None, Floats]] = [(None, np.ones(len(screen.target))), *leaves]
    for nodes, values in leaves:
        arguments: list[tuple[Nodes, Floats, tuple[Family, ...]]] = [(nodes, values, OF_COORDINATES)]
        with suppress(Unwritable):
            arguments.append((writer.power(nodes, 2.0), values * values, OF_SQUARES))
        if (values > 0).all() or (values < 0).all():
            with suppress(Unwritable):
                arguments.append((writer.power(nodes, -1.0), 1 / values, OF_INVERSES))
        for argument, own, families in arguments:
            for family in families:
                with np.errstate(all="ignore"):
                    grid = family.grid(own)[::EVERY, 0]
                with suppress(Unwritable):
                    for factor, factor_values in factors if len(grid) else ():
                        curve = Curve(family, argument, own, factor, factor_values, grid)
                        curve.nodes(writer, float(grid[0]))
                        yield curve
