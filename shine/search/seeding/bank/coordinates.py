"""Coordinates: formulas of the features that banks combine, and a factor of the target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from shine.base.typing import Floats, Indices
from shine.compiler.arrays import power
from shine.search.seeding.bank.formula_writer import Factor, Nodes


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Formulas that seem to determine the target once it is divided by a factor.

    Parameters
    ----------
    nodes : tuple of Nodes
        Each coordinate as a formula of the features.
    values : ndarray of shape (n_coordinates, n_rows)
    factors : tuple of (Nodes, float)
        Powers whose product is the factor.
    factor : ndarray of shape (n_rows,)
        Their product.
    """

    nodes: tuple[Nodes, ...]
    values: Floats
    factors: tuple[Factor, ...]
    factor: Floats

    @classmethod
    def of_features(cls, columns: Floats, chosen: Indices) -> Coordinates:
        """Some features, unchanged, and the factor 1."""
        nodes = tuple(((i + 1, 0.0),) for i in chosen.tolist())
        return cls(nodes, columns[chosen], (), np.ones(columns.shape[1]))

    def on(self, rows: Indices) -> Coordinates:
        """These coordinates on some rows."""
        return replace(self, values=self.values[:, rows], factor=self.factor[rows])

    def without(self, dropped: Sequence[int]) -> Coordinates:
        """These coordinates without some."""
        kept = [i for i in range(len(self.nodes)) if i not in dropped]
        return replace(self, nodes=tuple(self.nodes[i] for i in kept), values=self.values[kept])

    def with_one(self, nodes: Nodes, values: Floats) -> Coordinates:
        """These coordinates and one more."""
        return replace(self, nodes=(*self.nodes, nodes), values=np.vstack([self.values, values]))

    def divided_by(self, coordinate: int, exponent: float) -> Coordinates:
        """These coordinates, with a power of one of them as another factor."""
        if exponent == 0:
            return self
        return replace(
            self,
            factors=(*self.factors, (self.nodes[coordinate], exponent)),
            factor=self.factor * power(self.values[coordinate], exponent),
        )
