"""Functions with constants inside: of tabulated families, and oscillations of any frequency."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from shine.base.typing import Floats, Indices
from shine.compiler.arrays import Panels, apply, combined, dot, exp, least_squares
from shine.lang.forms.library import STANDARD
from shine.search.seeding.bank.formula_writer import Nodes, constant
from shine.search.seeding.bank.function_families import FAMILIES, WIDER_FAMILIES, rate
from shine.search.seeding.fits.correlations import Normalized, fitted_lines
from shine.search.seeding.screen.estimates import Estimate
from shine.search.seeding.screen.screen import Screen, divided_views
from shine.search.seeding.screen.skeletons import RefinedSkeleton
from shine.search.seeding.screen.tabulated_functions import Table, arguments_of
from shine.search.seeding.screen.target_views import View, values_of

COST_OF_VIEW = 2
"""Nodes that a step of a view takes besides its own: about the slope of its argument."""


def functions_with_constants(screen: Screen, arguments: int, simplest: int, divisors: int) -> Iterator[Estimate]:
    """chain(y) = a*u(g; c) + b, and y = M * (a*u(g; c) + b), for a table of functions u and constants c

    Parameters
    ----------
    screen : Screen
    arguments : int
        Cheapest members that are tried as g.
    simplest : int
        Cheapest members that are tried as g in functions with two constants.
    divisors : int
        Likely monomials M.
    """
    views = [View(chain) for chain in screen.chains] + [v for v in divided_views(screen, divisors) if v.divisor]
    members = arguments_of(screen, arguments)
    yield from _of_families(screen, views, Table.of(screen, FAMILIES, members))
    yield from _of_families(screen, views[:1], Table.of(screen, WIDER_FAMILIES, members[:simplest]))


def _of_families(screen: Screen, views: list[View], table: Table) -> Iterator[Estimate]:
    """For each view and each function of each argument, the best constants of the grid."""
    if not table.groups:
        return
    normal = Normalized.of(values_of(views, screen.target), screen.weights)
    members = table.normalized(screen.weights)
    correlations = Panels(members.units).inner(normal.units)
    chosen = np.stack(list(table.best_of_groups(np.abs(correlations))), axis=1)
    for k, view in enumerate(views):
        rows = chosen[k]
        which = np.full(len(rows), k)
        fitted = fitted_lines(normal, members, table.values, which, rows, correlations[k, rows].astype(np.float64))
        shares = screen.unexplained(view.target(fitted))
        extra = COST_OF_VIEW * len(view.chain) + len(view.divisor or ())
        for row, share in zip(rows.tolist(), shares.tolist(), strict=True):
            yield Estimate(
                share, extra + table.size(screen, row), partial(_skeleton_of_family, screen, view, table, row)
            )


def _skeleton_of_family(screen: Screen, view: View, table: Table, row: int) -> RefinedSkeleton:
    """A view as an affine function of a row of the table."""
    start = screen.sum_of_formulas("function with constants", view.chain, (table.nodes(screen, row),), view.divisor)
    return RefinedSkeleton(start)


FIRST_ANGLE, STEP = 1.5, 0.4
"""The lowest frequency and the distance of frequencies, as angles over the range of the argument: two sines closer than
a step differ little."""

ANGLE_A_ROW = 3.0
"""Highest angle between neighbouring rows: beyond it, a slower sine has the same values."""

DECAYS = (0.0, 0.5, -0.5, 1.0, -1.0, 2.0, -2.0, 4.0, -4.0, 8.0, -8.0)
"""Exponents of the amplitude over the range of the argument."""

PEAKS = 2
"""Frequencies that are estimated for each argument and decay."""

PARALLEL = 1e-6
"""Least squared sine of the angle of sine and cosine; a smaller one is replaced by this."""

SIZE, SIZE_OF_DECAY = 5, 5
"""Nodes of the sine and of its amplitude, besides their arguments."""


def oscillations(screen: Screen, arguments: int, simplest: int, divisors: int, most: int) -> Iterator[Estimate]:
    """y = M * (a * exp(d*g) * sin(w*g + p) + b)

    Parameters
    ----------
    screen : Screen
    arguments : int
        Cheapest members that are tried as g.
    simplest : int
        Cheapest members that are tried as g with an amplitude that is not constant.
    divisors : int
        Likely monomials M.
    most : int
        Most frequencies for each argument.
    """
    if not (screen.writer.has("sin") and screen.writer.has("mul") and screen.writer.has("add")):
        return
    views = [View(()), *(v for v in divided_views(screen, divisors) if not v.chain)]
    for place, member in enumerate(arguments_of(screen, arguments).tolist()):
        decays = DECAYS if place < simplest and screen.writer.has("exp") else DECAYS[:1]
        waves = _Waves.of(screen.values[member], most, decays)
        for view in views:
            yield from _estimates(screen, view, member, waves)


@dataclass(frozen=True, eq=False)
class _Waves:
    """Sines and cosines of one argument, for all decays and frequencies.

    Parameters
    ----------
    decays, frequencies : ndarray of shape (n,)
    values : ndarray of shape (n, 2, n_rows)
    groups : int
        Number of decays; each has its frequencies in ascending order.
    """

    decays: Floats
    frequencies: Floats
    values: Floats
    groups: int

    @classmethod
    def of(cls, argument: Floats, most: int, decays: tuple[float, ...]) -> _Waves:
        """The waves that the rows can tell apart."""
        own, rows = rate(argument), len(np.unique(argument))
        angles = FIRST_ANGLE + STEP * np.arange(most)
        angles = angles[angles <= ANGLE_A_ROW * (rows - 1)]
        decay = np.repeat(np.array(decays) * own, len(angles))
        frequency = np.tile(angles * own, len(decays))
        exponent = decay[:, None] * argument
        amplitude = exp(exponent - exponent.max(axis=1, initial=-np.inf)[:, None])
        turned = frequency[:, None] * argument
        waves = np.stack([apply(STANDARD["sin"], turned), apply(STANDARD["cos"], turned)], axis=1)
        return cls(decay, frequency, waves * amplitude[:, None], len(decays))


def _estimates(screen: Screen, view: View, member: int, waves: _Waves) -> Iterator[Estimate]:
    """The best frequencies of each decay."""
    if not len(waves.values):
        return
    values = view.of(screen.target)
    unit = Normalized.of(values[None], screen.weights).units
    sines, cosines = (Normalized.of(waves.values[:, i], screen.weights).units for i in range(2))
    a, b = (Panels(units).inner(unit)[0] for units in (sines, cosines))
    r = dot(sines, cosines)
    explained = (a * a + b * b - 2 * a * b * r) / np.maximum(1 - r * r, PARALLEL)
    rows = _peaks(explained.reshape(waves.groups, -1))
    root = np.sqrt(screen.weights)
    design = np.concatenate([waves.values[rows], np.ones((len(rows), 1, len(root)))], axis=1)
    coefficients = least_squares(design * root, values * root)
    shares = screen.unexplained(view.target(combined(coefficients, design)))
    for row, share, found in zip(rows.tolist(), shares.tolist(), coefficients, strict=True):
        size = SIZE + int(screen.sizes[member]) + len(view.divisor or ())
        if waves.decays[row]:
            size += SIZE_OF_DECAY + int(screen.sizes[member])
        phase = _angle(float(found[0]), float(found[1]))
        yield Estimate(share, size, partial(_skeleton, screen, view, member, waves, row, phase))


def _peaks(explained: Floats) -> Indices:
    """Places of the highest local maxima of each row, in the flattened table."""
    padded = np.pad(explained, ((0, 0), (1, 1)), constant_values=-np.inf)
    peak = (explained >= padded[:, :-2]) & (explained > padded[:, 2:])
    ranked = np.argsort(np.where(peak, -explained, np.inf), axis=1, kind="stable")[:, :PEAKS]
    rows = np.repeat(np.arange(len(explained)), ranked.shape[1])
    kept = peak[rows, ranked.ravel()]
    return (rows * explained.shape[1] + ranked.ravel())[kept]


def _angle(x: float, y: float) -> float:
    """The angle of a point in the plane."""
    size = float(np.sqrt(x * x + y * y))
    if not size + x > 0:
        return float(np.pi)
    return 2 * float(apply(STANDARD["atan"], np.array(y / (size + x))))


def _skeleton(screen: Screen, view: View, member: int, waves: _Waves, row: int, phase: float) -> RefinedSkeleton:
    """The wave as a term of a regression."""
    writer, argument = screen.writer, screen.bank.nodes(member)
    turned = writer.add(writer.multiply(constant(float(waves.frequencies[row])), argument), constant(phase))
    term: Nodes = writer.call("sin", turned)
    if waves.decays[row]:
        growth = writer.call("exp", writer.multiply(constant(float(waves.decays[row])), argument))
        term = writer.multiply(growth, term)
    return RefinedSkeleton(screen.sum_of_formulas("oscillation", view.chain, (term,), view.divisor))
