"""A dictionary of simple terms and curves: which terms a sum needs next, and the constants that fit it best."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from shine.base.lazy import cached_property
from shine.base.typing import Floats, Indices
from shine.compiler.arrays import Regression, apply, combined, dot, inner, power
from shine.lang.forms.library import STANDARD
from shine.search.seeding.bank.formula_writer import Nodes, Unwritable, Writer, constant
from shine.search.seeding.bank.function_families import EXPONENTIAL, FAMILIES, Family, rate
from shine.search.seeding.fits.correlations import units_of
from shine.search.seeding.fits.elimination import of_length_one
from shine.search.seeding.screen.screen import Screen

FIRST_ANGLE, STEP, MOST_WAVES = 0.5, 0.5, 120
"""The lowest frequency and the distance of frequencies, as angles over the range of the argument; their number."""

_OF_COORDINATES = ("exponential", "power", "inverse", "log")


def _frequencies(argument: Floats) -> Floats:
    count = min(MOST_WAVES, int(len(argument) / STEP))  # an angle of 1 between neighbouring rows at most
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
_INVERSE = tuple(family for family in FAMILIES if family.name == "inverse")
OF_POWERS, OF_INVERSES = ((2.0, (EXPONENTIAL, *_INVERSE)), (3.0, _INVERSE), (4.0, _INVERSE)), (EXPONENTIAL,)
"""Functions of a coordinate, of its powers, as several molecules that bind at once give them, and of its inverse."""


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
        for exponent, families in OF_POWERS:
            with suppress(Unwritable):
                arguments.append((writer.power(nodes, exponent), power(values, exponent), families))
        if (values > 0).all() or (values < 0).all():
            with suppress(Unwritable):
                arguments.append((writer.power(nodes, -1.0), 1 / values, OF_INVERSES))
        for argument, own, families in arguments:
            for family in families:
                with np.errstate(all="ignore"):
                    # Steps between the constants of a grid that are taken: a fit follows.
                    grid = family.grid(own)[::2, 0]
                with suppress(Unwritable):
                    for factor, factor_values in factors if len(grid) else ():
                        curve = Curve(family, argument, own, factor, factor_values, grid)
                        curve.nodes(writer, float(grid[0]))
                        yield curve


STAGES, THINNED = ((3, 300), (4, 80), (6, 24)), 3
"""Steps of the fits, and the sums that are fitted further; the first fits see one row in so many."""

FARTHEST, DIFFERENCE = 0.4, 1e-6
"""Largest step of a constant, and that of a numeric derivative, as shares of it."""

AT_ONCE = 200
"""Sums that are fitted together, which bounds the memory."""

Term = tuple[int, float]
"""A member and NaN; or a curve, counted after the members, and its constant."""


@dataclass(frozen=True, eq=False)
class Sum:
    """Terms, and the length of what they leave of the target, of length 1 before."""

    terms: tuple[Term, ...]
    left: float = 1.0

    @cached_property
    def groups(self) -> tuple[int, ...]:
        """Members and curves, whatever the constants."""
        return tuple(sorted(which for which, _ in self.terms))


@dataclass(frozen=True, eq=False)
class CurveDictionary:
    """Members and curves on some rows.

    Parameters
    ----------
    members : ndarray of shape (n_members, n_rows)
        Their values, times roots of weights.
    curves : sequence of Curve
    terms : list of (int, float)
        The term of each column.
    units : ndarray of shape (n_columns, n_rows)
        The columns, centered and scaled to length 1.
    target : ndarray of shape (n_rows,)
        Centered and scaled to length 1.
    root : ndarray of shape (n_rows,)
        Roots of weights.
    rounding : float
        Length of the target that may be rounding.
    """

    members: Floats
    curves: Sequence[Curve]
    terms: list[Term]
    units: Floats
    target: Floats
    root: Floats
    rounding: float

    @classmethod
    def of(cls, members: Floats, curves: Sequence[Curve], target: Floats, weights: Floats) -> CurveDictionary:
        """The dictionary for values of members, a target and weights; of the curves, as many as there is room for."""
        terms: list[Term] = [(at, np.nan) for at in range(len(members))]
        values = [members]
        for which, curve in enumerate(curves):
            if len(terms) + len(curve.grid) > 6000:  # most columns: members, and curves with each of their constants
                break
            terms += [(len(members) + which, k) for k in curve.grid.tolist()]
            values.append(curve.values(curve.grid))
        root = np.sqrt(weights)
        units, (own, mean, length) = units_of(np.concatenate(values), weights)[0], units_of(target[None], weights)
        # Roundings of the target that no sum is to blame for.
        rounding = 16 * float(np.finfo(np.float64).eps) * (1 + abs(float(mean[0])) / (float(length[0]) or 1.0))
        return cls(members * root, curves[: len(values) - 1], terms, units, own[0], root, rounding)

    @cached_property
    def _starts(self) -> Indices:
        """The first column of each member and curve."""
        return np.unique([which for which, _ in self.terms], return_index=True)[1]

    def further(self, terms: tuple[Term, ...], most: int) -> Iterator[Sum]:
        """Sums with one more term: the best ones, no two of the same curve."""
        square, along, _ = self._beside(terms)
        gains = along * along
        taken = {which for which, _ in terms}
        # Columns that are looked at for each term: a curve has many.
        for at in np.argsort(-gains, kind="stable")[: 40 * most].tolist():
            if most == 0 or not gains[at] > 0:
                return
            if self.terms[at][0] not in taken:
                taken.add(self.terms[at][0])
                most -= 1
                yield _longer(terms, (self.terms[at],), square - gains[at])

    def with_pairs(self, terms: tuple[Term, ...], most: int) -> Iterator[Sum]:
        """Sums with a member and another term: the best of all such pairs, no two of the same members and curves."""
        square, along, columns = self._beside(terms)
        count = len(self.members)
        own, sines = along[:count, None], inner(columns[:count], columns)
        gains = along - own * sines
        gains *= gains
        sines *= sines
        np.subtract(1.0, sines, out=sines)
        # Squared sine of an angle below which a product cannot tell how much a column adds to others.
        sines[sines < 1e-9] = np.inf
        gains /= sines
        gains[:, along == 0] = -1
        of_groups = np.maximum.reduceat(gains, self._starts, axis=1) + own * own
        taken = [which for which, _ in terms]
        of_groups[:, taken] = of_groups[[which for which in taken if which < count]] = -1
        of_groups[along[:count] == 0] = of_groups[np.tril_indices(count)] = -1
        ends = [*self._starts[1:].tolist(), len(self.terms)]
        for place in _largest(of_groups.ravel(), most).tolist():
            member, group = divmod(place, len(ends))
            gain = of_groups[member, group]
            if not gain > 0:
                return
            at = int(self._starts[group]) + int(np.argmax(gains[member, self._starts[group] : ends[group]]))
            yield _longer(terms, ((member, np.nan), self.terms[at]), square - gain)

    def with_exchanged_pairs(self, terms: tuple[Term, ...], most: int) -> Iterator[Sum]:
        """Sums with two other terms in place of any two: so many of each two."""
        for first, second in combinations(range(len(terms)), 2):
            yield from self.with_pairs((*terms[:first], *terms[first + 1 : second], *terms[second + 1 :]), most)

    def _beside(self, terms: tuple[Term, ...]) -> tuple[float, Floats, Floats]:
        """What terms leave of the target, squared; of the columns, scaled to length 1; and products of the two.

        Along a curve, terms are nearly dependent: what is left of them is computed, not derived from products.
        """
        count = len(self.members)
        rows = [self.members[w] if w < count else self._curve(w, np.array([k]))[0] for w, k in terms]
        basis = Regression.of(np.stack([self.root, *rows])).basis
        rest, columns = self.target[None], self.units
        for _ in range(2):
            rest = rest - inner(inner(rest, basis), basis.T)
            columns = columns - inner(inner(columns, basis), basis.T)
        lengths = np.sqrt(dot(columns, columns))
        # Length that terms must leave of a column of length 1: less has lost its direction to rounding.
        usable = lengths > 1e-10
        columns = np.where(usable, 1 / np.where(usable, lengths, 1.0), 0.0)[:, None] * columns
        return float(dot(rest[0], rest[0])), inner(rest, columns)[0], columns

    def _curve(self, which: int, constants: Floats) -> Floats:
        return self.curves[which - len(self.members)].values(constants) * self.root

    def fitted(self, sums: Sequence[Sum], most: int) -> list[Sum]:
        """The sums with the constants that fit best, the best first; only the most promising ones, no two alike."""
        best = list({each.groups: each for each in sorted(sums, key=lambda each: -each.left)}.values())
        best = self.ordered(best)[:most]
        for number, (steps, kept) in enumerate(STAGES):
            dictionary = self if number else self._thinned
            best = self.ordered(dictionary._fits(best, steps))[:kept]
        return best

    def ordered(self, sums: Iterable[Sum]) -> list[Sum]:
        """Sums in the order of their description: a constant inside fits noise, and a plain term has none."""
        # Price of a constant inside a term, beside a plain one: half the logarithm of the rows, and its nodes.
        price = 5.0 / len(self.root)
        return sorted(sums, key=lambda each: each.left * (1 + price * sum(not math.isnan(k) for _, k in each.terms)))

    @cached_property
    def _thinned(self) -> CurveDictionary:
        """The dictionary on a part of the rows, for fits."""
        rows = slice(None, None, THINNED if len(self.root) >= 150 else 1)  # fewest rows that are thinned
        curves = [curve.on(rows) for curve in self.curves]
        return replace(
            self, members=self.members[:, rows], curves=curves, target=self.target[rows], root=self.root[rows]
        )

    def needed(self, each: Sum, enough: float) -> Sum:
        """The sum without terms that it does not need to leave at most so much."""
        for at in range(len(each.terms)) if len(each.terms) > 1 else ():
            (fewer,) = self._fits([Sum((*each.terms[:at], *each.terms[at + 1 :]))], STAGES[-1][0])
            if fewer.left <= enough:
                return self.needed(fewer, enough)
        return each

    def _fits(self, sums: Sequence[Sum], steps: int) -> Iterator[Sum]:
        """Sums after some steps, those of one form together."""
        forms: dict[tuple[int, int], list[Sum]] = {}
        for each in sums:
            plain = tuple(term for term in each.terms if term[0] < len(self.members))
            curved = tuple(term for term in each.terms if term[0] >= len(self.members))
            forms.setdefault((len(plain), len(curved)), []).append(Sum((*plain, *curved)))
        for (plain_terms, _), alike in forms.items():
            for first in range(0, len(alike), AT_ONCE):
                yield from self._fit_together(alike[first : first + AT_ONCE], plain_terms, steps)

    def _fit_together(self, sums: list[Sum], plain: int, steps: int) -> Iterator[Sum]:
        """Sums of the same numbers of members and curves, the members first.

        Gauss and Newton's method, with all coefficients solved for in each step (variable projection: Golub and
        Pereyra 1973). Each curve is scaled to length 1: its derivative is then that of its direction.
        """
        which = np.array([[term[0] for term in each.terms] for each in sums])
        constants = np.array([[term[1] for term in each.terms[plain:]] for each in sums])
        fixed, linear = 1 + plain, 1 + which.shape[1]
        columns = np.empty((len(sums), linear + constants.shape[1], len(self.root)))
        columns[:, 0], columns[:, 1:fixed] = self.root, self.members[which[:, :plain]]
        best, least = constants, np.full(len(sums), np.inf)
        moves, shares = np.zeros_like(constants), np.ones(len(sums))
        for step in range(steps + 1 if constants.shape[1] else 1):
            for curve in np.unique(which[:, plain:]).tolist():
                rows, slots = np.nonzero(which[:, plain:] == curve)
                own = constants[rows, slots]
                units, moved = (of_length_one(self._curve(curve, own * (1 + by))) for by in (0.0, DIFFERENCE))
                columns[rows, fixed + slots] = units
                columns[rows, linear + slots] = (moved - units) / DIFFERENCE
            regression = Regression.of(columns if step < steps else columns[:, :linear])
            basis, rest = regression.basis[:, :linear], np.broadcast_to(self.target, (len(sums), len(self.target)))
            for _ in range(2):
                rest = rest - combined(dot(basis, rest[:, None]), basis)
            left = np.sqrt(dot(rest, rest))
            better = left < least
            best, least = np.where(better[:, None], constants, best), np.minimum(left, least)
            if step < steps:
                # Where the step led to larger errors, a shorter one from the same place may not.
                # Share of a step that is tried if the step led to larger errors
                shares = np.where(better, 1.0, 0.25 * shares)
                with np.errstate(all="ignore"):
                    found = regression.coefficients(self.target)[:, linear:]
                    found = found / regression.leading(linear).coefficients(self.target)[:, fixed:]
                moves = np.where(better[:, None], np.where(np.isfinite(found), found, 0.0), moves)
                constants = best * (1 + np.clip(shares[:, None] * moves, -FARTHEST, FARTHEST))
        for each, own, length in zip(sums, best.tolist(), least.tolist(), strict=True):
            curved = ((curve, k) for (curve, _), k in zip(each.terms[plain:], own, strict=True))
            yield Sum((*each.terms[:plain], *curved), length)


def _largest(values: Floats, most: int) -> Indices:
    """Places of the largest values, the largest first; the first of equal ones."""
    least = np.sort(values)[max(len(values) - most, 0)]
    places = np.flatnonzero(values >= least)
    return places[np.argsort(-values[places], kind="stable")[:most]]


def _longer(terms: tuple[Term, ...], further: tuple[Term, ...], square: float) -> Sum:
    return Sum((*terms, *further), float(np.sqrt(max(square, 0.0))))
