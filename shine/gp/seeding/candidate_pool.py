"""The pool of candidates: complete formulas with their errors on rows that had no part in finding them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np

from shine.arrays import dot, log
from shine.gp.seeding.formula_writer import Nodes, Unwritable, Writer, tape
from shine.gp.seeding.skeletons import Rows, Skeleton
from shine.gp.subtrees import depths
from shine.lang.population import Population
from shine.typing import Floats, Mask

LOGGER = logging.getLogger("shine.gp.seeding")
"""Reports which searches were skipped, and why."""

Predict = Callable[[Population], Floats]
"""Predictions of a population, shape (n_individuals, n_rows)."""

ROUNDING = 1e-20
"""Share of variance unexplained below which a formula fits exactly: the rest is rounding."""

NEARLY = 1e-14
"""Share of variance unexplained that may be rounding of the data, or the rest of a truncated series of another
function."""

FLOOR = 1e-22
"""Share of variance unexplained below which formulas fit equally well."""


class CandidatePool:
    """Formulas of a primitive set with their errors on held-out rows.

    Parameters
    ----------
    rows : Rows
        All sampled rows.
    training, held_out : ndarray of shape (n_rows,), bool
        Rows that constants are fitted on, and rows that formulas are measured on.
    writer : Writer
    predict : callable
        Predicts on all sampled rows.
    max_size, max_depth : int
        Most nodes and levels of a formula.
    linear_scaling : bool
        Whether formulas are measured with their best slope and intercept; they then contain neither.
    price : float
        Price of a node, as a share of the error.

    Attributes
    ----------
    unexplained : dict of Nodes to float
        Share of the held-out target's variance that each formula leaves unexplained.
    kinds : dict of Nodes to str
        The kind of each formula, as the search that found it names it.
    failures : list of str
        Searches that failed.
    """

    def __init__(
        self,
        rows: Rows,
        training: Mask,
        held_out: Mask,
        writer: Writer,
        predict: Predict,
        max_size: int,
        max_depth: int,
        linear_scaling: bool,
        price: float,
    ) -> None:
        self.rows, self.training, self.held_out, self.writer, self.predict = rows, training, held_out, writer, predict
        self.max_size, self.max_depth, self.linear_scaling, self.price = max_size, max_depth, linear_scaling, price
        self._train = Rows(rows.columns[:, training], rows.target[training], rows.weights[training])
        self.unexplained: dict[Nodes, float] = {}
        self.kinds: dict[Nodes, str] = {}
        self.failures: list[str] = []
        self._ingredients: dict[Nodes, tuple[Nodes, ...]] = {}
        self._values: dict[Nodes, Floats] = {}

    @property
    def least_unexplained(self) -> float:
        """The least share of variance that a formula leaves unexplained; inf without formulas."""
        return min(self.unexplained.values(), default=np.inf)

    @property
    def exact(self) -> bool:
        """Whether a formula fits to within rounding."""
        return self.least_unexplained < ROUNDING

    @property
    def nearly_exact(self) -> bool:
        """Whether a formula fits so well that no further round is worth its time."""
        return self.least_unexplained < NEARLY

    @contextmanager
    def surviving(self, search: str) -> Iterator[None]:
        """Go on if a search fails: record the failure and log the reason."""
        try:
            yield
        except Exception:
            self.failures.append(search)
            LOGGER.debug("the search %r was skipped", search, exc_info=True)

    def complete(self, skeletons: Sequence[Skeleton]) -> None:
        """Complete skeletons on the training rows, and add the formulas."""
        values = self._training_values(list(dict.fromkeys(part for skeleton in skeletons for part in skeleton.parts)))
        written: dict[Nodes, str] = {}
        with np.errstate(all="ignore"):
            for skeleton in skeletons:
                try:
                    for nodes in skeleton.complete(self._train, values, self.writer, self.linear_scaling):
                        written.setdefault(nodes, skeleton.kind)
                        self._ingredients.setdefault(nodes, skeleton.parts)
                except Unwritable:
                    continue
        self.add(written)

    def _training_values(self, parts: list[Nodes]) -> Mapping[Nodes, Floats]:
        """Values of formulas on the training rows; each is predicted once."""
        new = [part for part in parts if part not in self._values]
        if new:
            predictions = self.predict(self._population(new))[:, self.training]
            self._values.update(zip(new, predictions.astype(np.float64), strict=True))
        return self._values

    def _population(self, formulas: Sequence[Nodes], width: int | None = None) -> Population:
        """Formulas as a population."""
        return Population.from_tapes([tape(nodes) for nodes in formulas], self.writer.primitives, width)

    def add(self, formulas: Mapping[Nodes, str]) -> None:
        """Measure complete formulas, given with their kinds, and keep those that explain part of the variance."""
        new = [
            nodes
            for nodes in formulas
            if nodes not in self.unexplained and len(nodes) <= self.max_size and all(np.isfinite(v) for _, v in nodes)
        ]
        if not new:
            return
        population = self._population(new)
        shallow = depths(population) <= self.max_depth
        shares = self._unexplained(np.asarray(self.predict(population), np.float64))
        for nodes, ok, share in zip(new, shallow.tolist(), shares.tolist(), strict=True):
            if ok and np.isfinite(share) and share < 1:
                self.keep(nodes, formulas[nodes], share)

    def keep(self, nodes: Nodes, kind: str, unexplained: float) -> None:
        """Put a measured formula into the pool."""
        # The kind comes first: after an interrupt in between, every measured formula must have its kind.
        self.kinds[nodes] = kind
        self.unexplained[nodes] = unexplained

    def _unexplained(self, predictions: Floats) -> Floats:
        """Share of the held-out target's variance that predictions leave; inf where one is not finite.

        With linear scaling, slope and intercept are fitted on the training rows.
        """
        weights, target = self.rows.weights, self.rows.target
        fit, held = np.where(self.training, weights, 0), np.where(self.held_out, weights, 0)
        fit, held = fit / fit.sum(), held / held.sum()
        with np.errstate(all="ignore"):
            mean, target_mean = dot(predictions, fit), dot(target, fit)
            centered = predictions - mean[:, None]
            slopes = dot(centered, fit * (target - target_mean)) / dot(centered**2, fit)
            lines = target_mean + slopes[:, None] * centered
            errors = target - (lines if self.linear_scaling else predictions)
            shares = dot(errors**2, held) / dot((target - dot(target, held)) ** 2, held)
        usable = np.isfinite(predictions).all(axis=1)
        return np.where(usable, shares, np.inf)

    def criterion(self, nodes: Nodes) -> float:
        """The criterion that orders candidates: the logarithm of the error plus a price for each node."""
        return float(log(np.array(self.unexplained[nodes] + FLOOR))) + self.price * len(nodes)

    def best_ingredients(self, formulas: int) -> dict[Nodes, float]:
        """Parts of the best formulas, each with the least share of variance that a formula with this part leaves."""
        found: dict[Nodes, float] = {}
        for nodes in sorted(self.unexplained, key=lambda nodes: (self.criterion(nodes), nodes))[:formulas]:
            for part in self._ingredients.get(nodes, ()):
                found[part] = min(found.get(part, 1.0), self.unexplained[nodes])
        return found

    def chosen(self, most: int) -> tuple[Population, Floats, tuple[str, ...]]:
        """The candidates, best first: at least the best of each size and of each kind.

        Returns
        -------
        population : Population
        unexplained : ndarray of shape (n,)
            Share of the held-out target's variance.
        kinds : tuple of str
            The kind of each.
        """
        order = sorted(self.unexplained, key=lambda nodes: (self.criterion(nodes), nodes))
        firsts: dict[object, Nodes] = {}
        for nodes in order:
            firsts.setdefault(len(nodes), nodes)
            firsts.setdefault(self.kinds[nodes], nodes)
        kept = set(list(dict.fromkeys([*firsts.values(), *order]))[:most])
        best = [nodes for nodes in order if nodes in kept]
        return (
            self._population(best, self.max_size),
            np.array([self.unexplained[nodes] for nodes in best]),
            tuple(self.kinds[nodes] for nodes in best),
        )
