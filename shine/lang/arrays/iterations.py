"""Iterables of reductions: ranges, vectors, their slices, and `zip`, `enumerate` and `reversed` of these.

Each becomes a loop over whole numbers, and a rule for the items that Python would yield.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass

from shine.lang.arrays.affine import Affine, length_of
from shine.lang.arrays.formula import Element, Whole

Item = ast.expr | tuple["Item", ...]
"""An expression, or a tuple as `zip` and `enumerate` yield it."""


@dataclass(frozen=True)
class Iteration:
    """A loop, and its items.

    Parameters
    ----------
    start : Affine
    stops : tuple of Affine
        The loop ends before the first of them.
    step : int
    item : callable
        The item for a value of the loop variable.
    """

    start: Affine
    stops: tuple[Affine, ...]
    step: int
    item: Callable[[Affine], Item]

    def shifted(self) -> Iteration:
        """The same items for 0, 1, 2, ...; the step must be 1 or -1."""
        if self.step == 1 and self.start == Affine():
            return self
        counts = tuple((stop - self.start).times(self.step) for stop in self.stops)
        return Iteration(Affine(), counts, 1, lambda at: self.item(self.start + at.times(self.step)))


def of_range(start: Affine, stops: tuple[Affine, ...], step: int) -> Iteration:
    """``range(start, stop, step)``, with the first of several stops."""
    return Iteration(start, first_of(stops), step, lambda at: Whole(number=at))


def of_vector(vector: str, lower: int | None = None, upper: int | None = None) -> Iteration:
    """``vector``, or the slice ``vector[lower:upper]``: as in Python, numbers below 0 count from the end.

    Raises
    ------
    ValueError
        If `lower` is below 0: how many elements the slice has is not linear in the length.
    """
    length, first = length_of(vector), lower or 0
    if first < 0:
        raise ValueError
    stops = (length,) if upper is None else (length.plus(upper),) if upper < 0 else (Affine(constant=upper), length)
    return Iteration(Affine(constant=first), first_of(stops), 1, lambda at: Element(vector=vector, index=at))


def zipped(iterations: list[Iteration]) -> Iteration:
    """``zip`` of iterations with steps of 1 or -1."""
    same = {(each.start, each.step) for each in iterations}
    if same != {(Affine(), 1)}:
        iterations = [each.shifted() for each in iterations]
    stops = first_of(tuple(stop for each in iterations for stop in each.stops))
    return Iteration(Affine(), stops, 1, lambda at: tuple(each.item(at) for each in iterations))


def enumerated(iteration: Iteration, first: int) -> Iteration:
    """``enumerate(iteration, first)``; the step must be 1 or -1."""
    inner = iteration.shifted()
    return Iteration(inner.start, inner.stops, 1, lambda at: (Whole(number=at.plus(first)), inner.item(at)))


def backwards(iteration: Iteration) -> Iteration:
    """``reversed(iteration)``; the step must be 1 or -1, and there must be one stop."""
    (stop,), step = iteration.stops, iteration.step
    return Iteration(stop.plus(-step), (iteration.start.plus(-step),), -step, iteration.item)


def first_of(stops: tuple[Affine, ...]) -> tuple[Affine, ...]:
    """Stops without those that another one always precedes."""
    least: dict[tuple[tuple[str, int], ...], int] = {}
    for stop in stops:
        least[stop.terms] = min(stop.constant, least.get(stop.terms, stop.constant))
    return tuple(Affine(terms, constant) for terms, constant in least.items())
