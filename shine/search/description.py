"""Description lengths: the nats to write down a formula, its constants, and the errors that it leaves.

The formula with the shortest description is the one that the data speak for (minimum description length, Rissanen 1978;
Schwarz 1978 for the constants). The price of a node also corrects for how many formulas were tried: their number grows
by a factor with each node, and the best of many fits well by chance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from shine.base.lazy import cached_property
from shine.base.typing import Floats, Indices, Mask
from shine.compiler.arrays import exp, log
from shine.lang.forms.tree import Tree

NATS_A_NODE = 1.25
"""Price of a node. A node multiplies the number of different formulas by three to five. Prices from 1.25 to 2.5 choose
the same number of laws in a few noisy rows; real tables prefer low prices."""

SPARE_ROWS = 1 / 8
"""Rows without a constant of their own that an exact formula needs for each of its nodes. Formulas with nearly as many
constants as rows, or with very many nodes, meet few rows exactly by chance."""

BELIEVED = 1e-8
"""Share of the variance below which errors are those of the data, unless they are rounding: of their digits, their
instrument, their preprocessing. Such errors are systematic."""

NEARLY_LARGEST = 0.75
"""Share of the largest size from which the formula of the shortest description shows that larger ones would explain
more. Without noise the shortest description has nearly the largest size until the formula is found (24 to 30 nodes of
30 in a dozen searches); with noise it is seldom half as large."""

NATS_FOR_ALL = 60.0
"""Nats that a description must be able to lose for a search to wait all its generations. If it can lose less, fewer and
smaller formulas would pay for their nodes, and the search waits in proportion. Noise leaves 5 to 30."""

UNTOLD, UNSEEN = 0.1, 0.04
"""Nats a row by which the shortest description must beat the smallest formula's to tell how much more can be explained;
and nats a row to hope for where it does not: a law that oscillates faster than the rows looks like noise until it is
found."""

FEWEST = 10
"""Generations that a search waits at least, if it may."""

PATIENCE_WITHOUT_NOISE = 10
"""Factor of the patience while the formula of the shortest description is nearly the largest. Such
searches found formulas after nothing had improved for more than 1000 generations."""


@dataclass(frozen=True)
class DescriptionLength:
    """Description length of some rows by formulas.

    Parameters
    ----------
    rows : float
        Number of rows; their effective number if they have weights.
    of_errors : callable
        Losses, numbers of constants -> nats to write down the errors. The result must not depend on the processor.
    noise : float
        Loss that noise alone leaves, by rows that are repeated or near; inf if it is not known.
    believed : float
        Losses below this one are systematic errors (see `BELIEVED`).
    unwritten : callable, optional
        Trees -> numbers of their unwritten coefficients, each as long as a node (see
        `shine.search.problem.unwritten`).
    """

    rows: float
    of_errors: Callable[[Floats, Indices], Floats]
    noise: float = math.inf
    believed: float = 0.0
    unwritten: Callable[[Sequence[Tree]], Indices] | None = None

    @classmethod
    def with_unknown_noise(cls, rows: float, power: float, worst: float) -> Self:
        """Errors whose scale is estimated from the rows.

        A constant costs half the logarithm of the precision that it is written to. Its prior is as wide as one row
        could tell: that makes half the logarithm of the number of rows (Kass and Wasserman 1995). With little noise,
        such a prior is too narrow for the constants of a law; mixed over all widths (Zellner and Siow 1980), it makes
        half the logarithm of rows + 1/share, where the share is that of the constant's loss.

        Parameters
        ----------
        rows : float
        power : float
            Factor of the loss's logarithm in the negative log-likelihood of a row (see
            `shine.evaluate.losses.form.Loss`).
        worst : float
            Loss of a constant, that others are compared with; positive.
        """

        def of_errors(losses: Floats, constants: Indices) -> Floats:
            with np.errstate(all="ignore"):
                share = 2 * power * log(losses / worst)
                # Half the logarithm of rows + 1/share for each constant, without the part that `lengths` adds. Written
                # in this way, it is finite if the share is 0.
                beyond = 0.5 * constants * log(exp(share) + 1 / rows)
                nats: Floats = 0.5 * (rows - constants) * share + beyond
            return nats

        believed = worst * float(exp(log(np.array(BELIEVED)) * (0.5 / power)))
        return cls(rows, of_errors, believed=believed)

    @classmethod
    def of_likelihood(cls, rows: float, factor: float) -> Self:
        """Losses that are negative log-likelihoods of a row up to a factor: no scale has to be estimated."""
        return cls(rows, lambda losses, constants: factor * rows * losses)

    def lengths(self, losses: Floats, sizes: Indices, constants: Indices) -> Floats:
        """Nats of each description; inf for formulas with as many constants as rows: they can fit anything.

        Each constant is written down to the precision that the rows determine.

        Parameters
        ----------
        losses : ndarray of shape (n_formulas,)
        sizes, constants : ndarray of shape (n_formulas,), int64
            Nodes, and the constants among them.
        """
        formulas = NATS_A_NODE * sizes + 0.5 * constants * math.log(max(self.rows, 1.0))
        allowed = np.isfinite(losses) & ((constants < self.rows) | (sizes == 1))
        return np.where(allowed, self.of_errors(losses, constants) + formulas, np.inf)

    def of_constant(self, loss: float) -> float:
        """Nats of one constant, to the precision that the rows determine, in a formula with a loss."""
        with np.errstate(all="ignore"):
            without, with_one = self.of_errors(np.array([loss, loss]), np.array([0, 1])).tolist()
        nats = with_one - without + 0.5 * math.log(max(self.rows, 1.0))
        return math.inf if math.isnan(nats) else max(nats, 0.0)

    def final(self, losses: Floats, sizes: Indices, constants: Indices) -> Floats:
        """Nats of each description when the search is over: systematic errors count as few observations.

        While it goes on, a form that is nearly exact may become exact.

        Parameters
        ----------
        losses, sizes, constants
            As for `lengths`.
        """
        with np.errstate(all="ignore"):
            # Independent observations in systematic errors. A constant that removes nine tenths of them does not pay.
            few = self.believed * exp(log(losses / self.believed) * min(4.0 / self.rows, 1.0))
        return self.lengths(np.where(losses < self.believed, few, losses), sizes, constants)

    def gain(self, lengths: Floats, sizes: Indices) -> float:
        """Nats by which a formula could be shorter than the shortest description; inf if there is none yet.

        The best that can be hoped for are the errors of the best formula so far, whatever its length, or of noise
        alone, by a formula of one node; or a little for each row if no formula explains anything (see `UNTOLD`).

        Parameters
        ----------
        lengths : ndarray of shape (n_formulas,)
            Those of the formulas' descriptions (see `lengths`), the smallest formula first.
        sizes : ndarray of shape (n_formulas,), int64
        """
        hoped = min(float((lengths - NATS_A_NODE * sizes).min()), self._of_noise)
        shortest = float(lengths.min())
        if not math.isfinite(shortest):
            return math.inf
        untold = float(lengths[np.isfinite(lengths)][0]) - shortest < UNTOLD * self.rows
        return max(shortest - hoped - NATS_A_NODE, UNSEEN * self.rows if untold else 0.0)

    @cached_property
    def _of_noise(self) -> float:
        """Nats of noise alone."""
        with np.errstate(all="ignore"):
            nats = float(self.of_errors(np.array([self.noise]), np.zeros(1, np.int64))[0])
        return math.inf if math.isnan(nats) else nats

    def convinces(self, sizes: Indices, constants: Indices) -> Mask:
        """Whether formulas that meet all rows exactly do not do so by chance."""
        spare: Mask = self.rows - constants >= SPARE_ROWS * sizes
        return spare


@dataclass(frozen=True)
class Stagnation:
    """The last generation in which the shortest description became shorter."""

    length: float = float("inf")
    fell: int = 0

    def after(self, length: float, generation: int) -> Stagnation:
        """The stagnation after a generation with a shortest description."""
        # Both are inf before the first formula of finite loss, and -inf after one of loss 0.
        # Nats by which a description must be shorter to count: the data are then e times more probable
        return Stagnation(length, generation) if length < self.length - 1.0 else self

    def is_over(self, generation: int, most: int, share: float, gain: float = float("inf")) -> bool:
        """Whether nothing has improved for long.

        Parameters
        ----------
        generation : int
        most : int
            Generations to wait for an improvement if much could be gained. They are `PATIENCE_WITHOUT_NOISE` times as
            many if the formula of the shortest description has nearly the largest size. It is always waited for as many
            as had passed until the last improvement.
        share : float
            Size of that formula as a share of the largest.
        gain : float
            Nats that a formula could still make the description shorter (see
            `shine.search.description.DescriptionLength.gain`).
        """
        if share >= NEARLY_LARGEST:
            patience = float(PATIENCE_WITHOUT_NOISE * most)
        else:
            patience = min(most, max(FEWEST, most * gain / NATS_FOR_ALL))
        return generation - self.fell >= max(patience, self.fell)
