"""The unknowns of a fit: constants of a system that are one number or multiples of it, those known, and bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shine.base.lazy import cached_property
from shine.base.typing import Floats, Indices, Mask


@dataclass(frozen=True, eq=False)
class Unknowns:
    """What a fit finds of the constants of a system.

    Parameters
    ----------
    numbers : ndarray of shape (n_constants,), int64
        Number of the unknown that each constant is; -1 for one that is known.
    low, high : ndarray of shape (n_unknowns,)
        Bounds; infinite where there is none.
    factors : ndarray of shape (n_constants,), optional
        What the unknown is multiplied by to give the constant; 1 by default.
    """

    numbers: Indices
    low: Floats
    high: Floats
    factors: Floats | None = None

    @classmethod
    def of(cls, numbers: Indices) -> Unknowns:
        """Unknowns without bounds."""
        count = int(numbers.max(initial=-1)) + 1
        return cls(numbers, np.full(count, -np.inf), np.full(count, np.inf))

    @classmethod
    def free(cls, free: Mask) -> Unknowns:
        """An unknown for each constant that is free."""
        return cls.of(np.where(free, np.cumsum(free) - 1, -1))

    @property
    def count(self) -> int:
        """Number of unknowns."""
        return len(self.low)

    def counts(self, parts: Sequence[slice]) -> list[int]:
        """How many unknowns occur first in each part of the constants."""
        first = np.full(len(self.numbers), False)
        first[self._order[self._firsts]] = True
        return [int(first[part].sum()) for part in parts]

    def added(self, slopes: Floats, axis: int) -> Floats:
        """Derivatives by the unknowns along an axis, given those by the constants."""
        taken = np.take(slopes, self._order, axis=axis)
        if self.factors is not None:
            taken = np.moveaxis(np.moveaxis(taken, axis, -1) * self.factors[self._order], -1, axis)
        return taken if len(self._order) == self.count else np.add.reduceat(taken, self._firsts, axis=axis)

    def moved(self, constants: Floats, step: Floats | float = 0.0) -> Floats:
        """The constants after a step of the unknowns, which ends at the bounds."""
        values = np.append(np.clip(self._values(constants) + step, self.low, self.high), 0.0)[self.numbers]
        found: Floats = np.where(self.numbers < 0, constants, values if self.factors is None else values * self.factors)
        return found

    def held(self, constants: Floats, slope: Floats) -> Mask:
        """Unknowns at a bound that a step along the negative gradient would leave."""
        values = self._values(constants)
        held: Mask = ((values <= self.low) & (slope < 0)) | ((values >= self.high) & (slope > 0))
        return held

    def of_constants(self, covariance: Floats) -> Floats:
        """The covariance of the constants, given that of the unknowns; 0 for those that are known."""
        wider = np.pad(covariance, (0, 1))
        found: Floats = wider[self.numbers[:, None], self.numbers]
        return found if self.factors is None else found * self.factors * self.factors[:, None]

    def _values(self, constants: Floats) -> Floats:
        """The unknowns, given the constants."""
        firsts = self._order[self._firsts]
        return constants[firsts] if self.factors is None else constants[firsts] / self.factors[firsts]

    @cached_property
    def _order(self) -> Indices:
        """Places of the constants that are not known, by the number of the unknown."""
        return np.argsort(self.numbers, kind="stable")[int((self.numbers < 0).sum()) :]

    @cached_property
    def _firsts(self) -> Indices:
        """Where each unknown begins in this order."""
        return np.searchsorted(self.numbers[self._order], np.arange(self.count))
