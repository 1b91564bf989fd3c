"""Errors of rows that follow one another."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from shine.base.typing import Floats, Indices
from shine.compiler.arrays import Regression, dot, exp, inner, log

LEAST_GAP, APART = 1e-3, 1e6
"""Distance of rows at the same place, which have different errors, and of groups, whose errors do not correlate."""

ALIKE = "errors of neighbouring rows correlate by"


@dataclass(frozen=True, eq=False)
class Serial:
    """Errors of rows at some places that correlate by ``correlation ** distance`` (an autoregressive process)."""

    correlation: float
    places: Floats

    @classmethod
    def of(cls, rows: int, groups: Indices | None, times: Floats | None = None) -> Self:
        """Rows in the order of their times, each group on its own, before the correlation is known.

        The unit is the median step. Rows of the same time follow one another, as they stand, one step apart.
        """
        times = np.arange(rows, dtype=np.float64) if times is None else times
        groups = np.zeros(rows, np.int64) if groups is None else groups
        order = np.lexsort((times, groups))
        gaps, same = np.diff(times[order] / 2), np.diff(groups[order]) == 0  # no difference overflows
        later = gaps > 0
        step = np.median(gaps[same & later]) if (same & later).any() else 1.0
        gaps = np.where(same, np.where(later, np.minimum(gaps / step, APART), 1.0), APART)
        places = np.empty(rows)
        places[order] = np.concatenate([np.zeros(1), np.cumsum(gaps)])
        return cls(0.0, places)

    def take(self, rows: Indices) -> Serial:
        """Those of the rows at some indices."""
        return replace(self, places=self.places[rows])

    @property
    def order(self) -> Indices:
        """The rows as they follow one another."""
        return np.argsort(self.places, kind="stable")

    def links(self, correlation: float | None = None) -> Floats:
        """Correlation of each row's error, in this order, with that of the row before; 0 for the first row."""
        gaps = np.maximum(np.diff(self.places[self.order]), LEAST_GAP)
        known = self.correlation if correlation is None else correlation
        return np.concatenate([np.zeros(1), exp(log(np.array(known)) * gaps)])

    @property
    def independent_rows(self) -> float:
        """Number of independent rows that tell a mean as well: the sum of the inverse of their correlations."""
        links = self.links()
        # Independent rows that are left at least: slopes are determined by how rows differ, not by their number
        return max(float(np.sum((1 - links) / (1 + links))), min(len(links), 8))

    def told(self, rows: int) -> str:
        """What so many rows count as, for people."""
        return f"{ALIKE} {self.correlation:.2g}: these {rows} rows count as {self.independent_rows:.0f}"

    def shrinkage(self, errors: Floats) -> float:
        """Share of a mean squared error from which independent ones have the likelihood of these."""
        own = self.estimated(errors, np.zeros((0, len(errors))))
        parts, factors = own.innovations(errors)
        with np.errstate(all="ignore"):
            share = float(dot(parts, parts) / dot(errors, errors) * exp(np.array(2 * factors)))
        return share if share > 0 else 1.0

    def innovations(self, errors: Floats, correlation: float | None = None) -> tuple[Floats, float]:
        """What is new in each error, shape (..., n_rows), in order, and the mean logarithm of what it was divided by.

        It is independent and has the variance of the errors, if these are such a process (Prais and Winsten 1954).
        """
        links, ordered = self.links(correlation), errors[..., self.order]
        before = np.concatenate([np.zeros_like(ordered[..., :1]), ordered[..., :-1]], axis=-1)
        sizes = np.sqrt(1 - links**2)
        return (ordered - links * before) / sizes, float(np.mean(log(sizes)))

    def correlated(self, columns: Floats) -> Floats:
        """Sums of the products of columns over all pairs of rows, times the correlation of the rows' errors."""
        ordered, links = np.ascontiguousarray(columns[:, self.order].T), self.links()
        before = np.zeros_like(ordered)
        for row in range(1, len(ordered)):
            before[row] = links[row] * (before[row - 1] + ordered[row - 1])
        across = inner(ordered.T, before.T)
        found: Floats = inner(ordered.T, ordered.T) + across + across.T
        return found

    def estimated(self, errors: Floats, columns: Floats) -> Self:
        """With the most likely correlation of errors that a least-squares fit of some columns left.

        Residual maximum likelihood (Patterson and Thompson 1971), as such a fit takes away correlation.
        """
        both, freedom = np.vstack([columns, errors]), len(errors) - len(columns)

        def length(correlation: float) -> float:
            whitened, factors = self.innovations(both, correlation)
            # Columns whose part across the others is a smaller share do not count.
            regression = Regression.of(whitened, 1e-10)
            sizes = np.diagonal(regression.triangle) * regression.scale * regression.kept
            with np.errstate(divide="ignore"):
                logs = np.sum(log(sizes[:-1][regression.kept[:-1]])) + freedom * log(sizes[-1:])[0]
            return float(logs) + len(errors) * factors

        squares = exp(np.linspace(0, 2 * LARGEST, TRIED))
        return replace(self, correlation=min(((squares - 1) / (squares + 1)).tolist(), key=length))


LARGEST, TRIED = 3.0, 100
"""Largest correlation, 0.995, by the number whose hyperbolic tangent it is, and how many are tried."""
