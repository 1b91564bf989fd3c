"""The pool of candidates: complete formulas with their errors on rows that had no part in finding them."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np

from shine.base.typing import Floats, Mask
from shine.compiler.arrays import dot, log
from shine.compiler.tapes import depths
from shine.lang.population import Population
from shine.search.description import SPARE_ROWS
from shine.search.seeding.bank.formula_writer import Nodes, Unwritable, Writer, tape, unknown, with_constants
from shine.search.seeding.fits.free_constants import ConstantFits
from shine.search.seeding.fits.target_errors import LINE, TargetErrors, together
from shine.search.seeding.screen.estimates import node_price
from shine.search.seeding.screen.skeletons import RefinedSkeleton, Rows, Skeleton
from shine.search.seeding.task import Finding, LinearizerOf, SeedingTask

LOGGER = logging.getLogger("shine.search.seeding")
"""Reports which searches were skipped, and why."""

FLOOR = 1e-22
"""Share of variance unexplained below which formulas fit equally well."""


class CandidatePool:
    """Formulas of a primitive set with their errors on held-out rows.

    Parameters
    ----------
    task : SeedingTask
    training, held_out : ndarray of shape (n_rows,), bool
        Rows that constants are fitted on, and rows that formulas are measured on.

    Attributes
    ----------
    unexplained : dict of Nodes to float
        Share of the held-out target's variance that each formula leaves unexplained.
    kinds : dict of Nodes to str
        The kind of each formula, as the search that found it names it.
    failures : list of str
        Searches that failed.
    exact_size, exact_constants : float
        Nodes of the smallest formula that fits exactly, and the fewest constants of one; inf without one.
    shortest : tuple of float and int
        Nats of the shortest description of the rows, up to a constant, and the nodes of its formula.
    """

    def __init__(self, task: SeedingTask, training: Mask, held_out: Mask) -> None:
        self.task, self.training, self.held_out, self.writer = task, training, held_out, Writer(task.primitives)
        self.rows = rows = task.rows
        self._errors = TargetErrors.of(rows.target, rows.weights)
        self._train = [
            Rows(rows.columns[:, training], rows.target[training], weights[training])
            for weights in self._errors.weights
        ]
        self._fits = [self._fits_on(rows, task.linearizer_of) for rows in self._train] if task.linearizer_of else []
        self._distinct = len(np.unique(rows.columns, axis=1).T)
        self._price = node_price(task.settings.price, int(held_out.sum()))
        self._best: float = np.inf
        self._surely: float = np.inf
        self.exact_size, self.exact_constants = np.inf, np.inf
        self.shortest: tuple[float, int] = np.inf, 0
        self._shortest_share = 1.0
        self.unexplained: dict[Nodes, float] = {}
        self.kinds: dict[Nodes, str] = {}
        self.failures: list[str] = []
        self._ingredients: dict[Nodes, tuple[Nodes, ...]] = {}
        self._values: dict[Nodes, Floats] = {}
        self._completed: set[Skeleton] = set()

    @property
    def exact(self) -> bool:
        """Whether a formula fits exactly: all rows of a wide target, and more rows than it has constants."""
        return self._surely < self.task.settings.exact

    @property
    def nearly_exact(self) -> bool:
        """Whether a formula fits so well that no further round is worth its time."""
        # Share of variance unexplained that may be rounding of the data, or the rest of a truncated series of another
        # function.
        return self._surely < 1e-14

    @contextmanager
    def surviving(self, search: str) -> Iterator[None]:
        """Go on if a search fails: record the failure and log the reason."""
        try:
            yield
        except Exception:
            self.failures.append(search)
            LOGGER.debug("the search %r was skipped", search, exc_info=True)

    def complete(self, skeletons: Sequence[Skeleton]) -> None:
        """Complete skeletons on the training rows, and add the formulas; those of earlier calls are left out."""
        skeletons = [skeleton for skeleton in dict.fromkeys(skeletons) if skeleton not in self._completed]
        self._completed.update(skeletons)
        values = self._training_values(list(dict.fromkeys(part for skeleton in skeletons for part in skeleton.parts)))
        written: dict[Nodes, str] = {}
        starts: list[dict[Nodes, Skeleton]] = [{} for _ in self._fits]
        with np.errstate(all="ignore"):
            for skeleton in skeletons:
                refined = isinstance(skeleton, RefinedSkeleton) and bool(self._fits)
                try:
                    for i, rows in enumerate(self._train):
                        for nodes in skeleton.complete(rows, values, self.writer, self.task.linear_scaling):
                            if refined:
                                starts[i].setdefault(nodes, skeleton)
                            else:
                                self._write(nodes, skeleton, written)
                except Unwritable:
                    continue
            for own, fits in zip(starts, self._fits, strict=True):
                for before, after in fits.of(list(own)):
                    self._write(after, own[before], written)
        self.add(written)

    def _write(self, nodes: Nodes, skeleton: Skeleton, written: dict[Nodes, str]) -> None:
        """Note a complete formula of a skeleton."""
        written.setdefault(nodes, skeleton.kind)
        self._ingredients.setdefault(nodes, skeleton.parts)

    def _fits_on(self, rows: Rows, linearizer_of: LinearizerOf) -> ConstantFits:
        """Fits of constants on some of the training rows."""
        # Most rows that constants inside functions are fitted on: the evolution fits them again on more.
        every = -(-len(rows.target) // 200)
        which = np.flatnonzero(self.training)[::every]
        few = Rows(rows.columns[:, ::every], rows.target[::every], rows.weights[::every] / rows.weights[::every].sum())
        return ConstantFits(
            lambda population: self.task.predict(population)[:, which],
            few.columns,
            few.target,
            few.weights,
            linearizer_of(few),
            self.task.primitives,
            self.task.linear_scaling,
        )

    def _training_values(self, parts: list[Nodes]) -> Mapping[Nodes, Floats]:
        """Values of formulas on the training rows; each is predicted once."""
        new = [part for part in parts if part not in self._values]
        if new:
            predictions = self.task.predict(self._population(new))[:, self.training]
            self._values.update(zip(new, predictions.astype(np.float64), strict=True))
        return self._values

    def _population(self, formulas: Sequence[Nodes], width: int | None = None) -> Population:
        """Formulas as a population."""
        return Population.from_tapes([tape(nodes) for nodes in formulas], self.task.primitives, width)

    def add(self, formulas: Mapping[Nodes, str]) -> None:
        """Measure complete formulas, given with their kinds, and keep those that explain part of the variance."""
        most_nodes = max(self.task.max_size, self.task.longest)
        new = [nodes for nodes in formulas if nodes not in self.unexplained and len(nodes) <= most_nodes]
        new = [nodes for nodes in new if all(np.isfinite(v) for _, v in nodes)]
        if not new:
            return
        population = self._population(new)
        shallow = depths(population) <= self.task.max_depth
        predictions = np.asarray(self.task.predict(population), np.float64)
        shares = self._unexplained(predictions)
        rows, kept = self._distinct, []
        for row, (nodes, ok, share, most) in enumerate(zip(new, shallow.tolist(), *shares.T.tolist(), strict=True)):
            constants = len(unknown(nodes)) + (LINE if self.task.linear_scaling else 0)
            if constants >= rows:
                continue
            # Constants that were fitted to the measured rows make their error too small (Craven and Wahba 1978).
            corrected = share if self.split else share * (rows / (rows - constants)) ** 2
            # An exact formula must fit this many different rows beyond the constants that were fitted to them: n
            # constants fit n rows of anything.
            sure = rows - constants >= 2
            exact = sure and most < self.task.settings.exact
            if ok and np.isfinite(corrected) and share < 1 and (exact or len(nodes) <= self.task.max_size):
                self.keep(nodes, formulas[nodes], corrected)
                kept.append(row)
                if sure:
                    self._surely = min(self._surely, most)
                if exact:
                    self.exact_size = min(self.exact_size, len(nodes))
                    self.exact_constants = min(self.exact_constants, constants)
                length = rows / 2 * self.criterion(nodes), len(nodes)
                if rows - constants >= SPARE_ROWS * len(nodes) and length < self.shortest:
                    self.shortest, self._shortest_share = length, corrected

        if self.task.found is not None and kept:
            best = min(kept, key=lambda row: self.criterion(new[row]))
            if self.criterion(new[best]) < self._best:
                self._best = self.criterion(new[best])
                line = self._line(predictions[best]) if self.task.linear_scaling else (1.0, 0.0)
                self.task.found(Finding(population.tree(best), *line, self.unexplained[new[best]]))

    def _line(self, predictions: Floats) -> tuple[float, float]:
        """Slope and intercept of the line that fits the target best."""
        target, weights = self.rows.target, self.rows.weights
        mean = dot(predictions, weights)
        centered = predictions - mean
        square = dot(centered * weights, centered)
        slope = float(dot(centered * weights, target) / square) if square > 0 else 0.0
        return slope, float(dot(target, weights) - slope * mean)

    def keep(self, nodes: Nodes, kind: str, unexplained: float) -> None:
        """Put a measured formula into the pool."""
        # The kind comes first: after an interrupt in between, every measured formula must have its kind.
        self.kinds[nodes] = kind
        self.unexplained[nodes] = unexplained

    @property
    def split(self) -> bool:
        """Whether formulas are measured on other rows than their constants are fitted on."""
        return not self.training.all()

    @property
    def reaches_noise(self) -> bool:
        """Whether noise leaves so much of the target that no formula could pay for much more.

        Errors far below the noise say that it is none: the law is finer than the rows show.
        """
        share, noise = self._shortest_share, self.task.noise
        if not share >= 0.5 * noise > 0:  # share of the estimated noise below which errors cannot be noise
            return False
        # Nats that a formula might still gain when the noise counts as reached: three or four nodes with a constant.
        return len(self.rows.target) / 2 * float(log(np.array(share / noise))) <= 20.0

    def _unexplained(self, predictions: Floats) -> Floats:
        """Share of the held-out target's variance that predictions leave, and the largest by any measure.

        inf where a prediction is not finite. With linear scaling, slope and intercept are fitted on the training rows.
        """
        shares = self._errors.held_out(predictions, self.training, self.held_out, self.task.linear_scaling)
        usable: Mask = np.logical_and.reduce(np.isfinite(predictions), axis=1)
        both = np.column_stack([together(shares), shares.max(axis=0)])
        return np.where(usable[:, None], both, np.inf)

    def criterion(self, nodes: Nodes) -> float:
        """The criterion that orders candidates: the logarithm of the error plus a price for each node."""
        return float(log(np.array(self.unexplained[nodes] + FLOOR))) + self._price * len(nodes)

    def best_ingredients(self, formulas: int) -> dict[Nodes, float]:
        """Parts of the best formulas, each with the least share of variance that a formula with this part leaves."""
        found: dict[Nodes, float] = {}
        for nodes in sorted(self.unexplained, key=lambda nodes: (self.criterion(nodes), nodes))[:formulas]:
            for part in self._ingredients.get(nodes, ()):
                found[part] = min(found.get(part, 1.0), self.unexplained[nodes])
        return found

    def chosen(self, most: int) -> tuple[Population, Floats, tuple[str, ...]]:
        """The candidates, best first: among them the best of each size and of each kind.

        Returns
        -------
        population : Population
        unexplained : ndarray of shape (n,)
            Share of the held-out target's variance.
        kinds : tuple of str
            The kind of each.
        """
        order = sorted(self.unexplained, key=lambda nodes: (self.criterion(nodes), nodes))
        counts: Counter[object] = Counter()
        different: list[Nodes] = []
        firsts: list[Nodes] = []
        for nodes in order:
            size, kind, form = len(nodes), self.kinds[nodes], with_constants(nodes, unknown(nodes), 0.0)
            counts[form] += 1
            if counts[form] > 2:  # most formulas that differ in their constants only
                continue
            different.append(nodes)
            # Formulas of each size and of each kind that are handed on whatever their errors: with noise, the law is
            # rarely the best of its size
            if counts[size] < 8 or counts[kind] < 3:
                firsts.append(nodes)
                counts.update([size, kind])
        # The best of all come first if there is no room for both.
        kept = set(list(dict.fromkeys([*different[: most // 2], *firsts, *different]))[:most])
        best = [nodes for nodes in order if nodes in kept]
        return (
            self._population(best, max(self.task.max_size, *map(len, best))),
            np.array([self.unexplained[nodes] for nodes in best]),
            tuple(self.kinds[nodes] for nodes in best),
        )
