"""The pool: complete formulas, measured on rows that had no part in finding them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np

from shine.arrays import dot, log
from shine.gp.seeding.proposals import Proposal, Rows
from shine.gp.seeding.writing import Nodes, Unwritable, Writer, tape
from shine.gp.structure import depths
from shine.lang.population import Population
from shine.typing import Floats, Mask

Predict = Callable[[Population], Floats]

ROUNDING = 1e-20
"""Share of variance left that is rounding: a formula that leaves less fits exactly."""

NEARLY = 1e-14
"""Share of variance left that may be rounding of the data, or a series of another function."""

FLOOR = 1e-22
"""Share of variance below which formulas fit equally well."""


class Pool:
    """Formulas of a primitive set with what they leave of the target on held-out rows.

    Parameters
    ----------
    rows : Rows
        All sampled rows.
    training, held_out : ndarray of shape (n_rows,), bool
        Rows that constants are fitted on, and rows that formulas are judged by.
    writer : Writer
    predict : callable
        Predictions of a population on all sampled rows, shape (n_individuals, n_rows).
    max_size, max_depth : int
        Of formulas.
    linear_scaling : bool
        Whether formulas are judged with their best slope and intercept, which they then lack.
    price : float
        What a node costs, as a share of the error.
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
        self.left: dict[Nodes, float] = {}
        self.kinds: dict[Nodes, str] = {}
        self.failures: list[str] = []
        self._ingredients: dict[Nodes, tuple[Nodes, ...]] = {}
        self._values: dict[Nodes, Floats] = {}

    @property
    def least_left(self) -> float:
        """The least share of variance any formula leaves on held-out rows."""
        return min(self.left.values(), default=np.inf)

    @property
    def exact(self) -> bool:
        """Whether a formula fits to within rounding."""
        return self.least_left < ROUNDING

    @property
    def nearly_exact(self) -> bool:
        """Whether a formula fits so well that no further round is worth its time."""
        return self.least_left < NEARLY

    @contextmanager
    def surviving(self, search: str) -> Iterator[None]:
        """Let a search fail without harm: it is counted, and the log says why."""
        try:
            yield
        except Exception:
            self.failures.append(search)
            logging.getLogger(__name__).debug("the search %r was skipped", search, exc_info=True)

    def propose(self, proposals: Sequence[Proposal]) -> None:
        """Complete proposals and measure what comes of them."""
        values = self._training_values(list(dict.fromkeys(part for p in proposals for part in p.parts)))
        written: dict[Nodes, str] = {}
        with np.errstate(all="ignore"):
            for proposal in proposals:
                try:
                    for nodes in proposal.complete(self._train, values, self.writer, self.linear_scaling):
                        written.setdefault(nodes, proposal.kind)
                        self._ingredients.setdefault(nodes, proposal.parts)
                except Unwritable:
                    continue
        self.add(written)

    def _training_values(self, parts: list[Nodes]) -> Mapping[Nodes, Floats]:
        new = [part for part in parts if part not in self._values]
        if new:
            predictions = self.predict(self._population(new))[:, self.training]
            self._values.update(zip(new, predictions.astype(np.float64), strict=True))
        return self._values

    def _population(self, formulas: Sequence[Nodes], width: int | None = None) -> Population:
        return Population.from_tapes([tape(nodes) for nodes in formulas], self.writer.primitives, width)

    def add(self, formulas: Mapping[Nodes, str]) -> None:
        """Measure complete formulas, given with what found them."""
        new = [
            nodes
            for nodes in formulas
            if nodes not in self.left and len(nodes) <= self.max_size and all(np.isfinite(v) for _, v in nodes)
        ]
        if not new:
            return
        population = self._population(new)
        shallow = depths(population) <= self.max_depth
        left = self._measured(np.asarray(self.predict(population), np.float64))
        for nodes, ok, share in zip(new, shallow.tolist(), left.tolist(), strict=True):
            if ok and np.isfinite(share) and share < 1:
                # In this order, so that a formula in `left` has its kind whenever an interrupt comes.
                self.kinds[nodes] = formulas[nodes]
                self.left[nodes] = share

    def _measured(self, predictions: Floats) -> Floats:
        """Share of the held-out target's variance left by lines fitted on the training rows."""
        weights, target = self.rows.weights, self.rows.target
        fit, held = np.where(self.training, weights, 0), np.where(self.held_out, weights, 0)
        fit, held = fit / fit.sum(), held / held.sum()
        with np.errstate(all="ignore"):
            mean, target_mean = dot(predictions, fit), dot(target, fit)
            centered = predictions - mean[:, None]
            slopes = dot(centered, fit * (target - target_mean)) / dot(centered**2, fit)
            lines = target_mean + slopes[:, None] * centered
            errors = target - (lines if self.linear_scaling else predictions)
            left = dot(errors**2, held) / dot((target - dot(target, held)) ** 2, held)
        usable = np.isfinite(predictions).all(axis=1)
        return np.where(usable, left, np.inf)

    def criterion(self, nodes: Nodes) -> float:
        """What candidates are ordered by: the logarithm of the share left, and a price a node."""
        return float(log(np.array(self.left[nodes] + FLOOR))) + self.price * len(nodes)

    def best_ingredients(self, formulas: int) -> dict[Nodes, float]:
        """What the best formulas were proposed to be made of, with the least share of variance left by one of them."""
        found: dict[Nodes, float] = {}
        for nodes in sorted(self.left, key=lambda nodes: (self.criterion(nodes), nodes))[:formulas]:
            for part in self._ingredients.get(nodes, ()):
                found[part] = min(found.get(part, 1.0), self.left[nodes])
        return found

    def chosen(self, most: int) -> tuple[Population, Floats, tuple[str, ...]]:
        """The candidates, best first: at least the best of each size and of each search.

        Returns
        -------
        population : Population
        left : ndarray of shape (n,)
            Share of the held-out target's variance each leaves.
        kinds : tuple of str
            The search that found each.
        """
        order = sorted(self.left, key=lambda nodes: (self.criterion(nodes), nodes))
        firsts: dict[object, Nodes] = {}
        for nodes in order:
            firsts.setdefault(len(nodes), nodes)
            firsts.setdefault(self.kinds[nodes], nodes)
        kept = set(list(dict.fromkeys([*firsts.values(), *order]))[:most])
        best = [nodes for nodes in order if nodes in kept]
        return (
            self._population(best, self.max_size),
            np.array([self.left[nodes] for nodes in best]),
            tuple(self.kinds[nodes] for nodes in best),
        )
