"""Inference about the constants of a formula from the rows of its fit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from shine.base.lazy import cached_property
from shine.base.typing import Floats, Mask
from shine.data.datasets.dataset import Dataset, stable_sum
from shine.evaluate.inference.bands import OVERDISPERSED, WITH_QUANTILES, noise_of
from shine.evaluate.inference.constants import Form, Held
from shine.evaluate.inference.covariance import Covariance, Kind, covariance
from shine.evaluate.inference.likelihood import Likelihood, derivatives_of, row_error
from shine.evaluate.inference.profiles import Optimum, fitted, profiled
from shine.evaluate.inference.uncertainty import FAR, Uncertainty, distance
from shine.evaluate.losses.form import Loss, RowLoss
from shine.evaluate.losses.reading import built_in_of, call_of
from shine.lang.forms.names import listed

FEWEST = 5
"""Degrees of freedom below which an estimate says nothing: its interval would span a factor of six."""


@lru_cache(maxsize=2)  # The search asks for those of its rows, and its end once more.
def of_replicates(rows: Dataset) -> tuple[float, float, float]:
    """Mean weighted square of the deviations of equal rows from their mean, its degrees of freedom, and its sum."""
    # Whole sample weights are numbers of equal rows.
    given = rows.sample_weights
    counts = given if (given == np.floor(given)).all() else np.ones(rows.n_rows)
    precisions = rows.row_weights / np.where(given > 0, given, 1.0)
    numbers = np.unique(rows.columns.T, axis=0, return_inverse=True)[1].reshape(-1)
    seen = np.bincount(numbers, weights=counts)
    means = np.bincount(numbers, weights=counts * rows.target) / np.where(seen > 0, seen, 1.0)
    squares = counts * precisions * (rows.target - means[numbers]) ** 2
    # Each group loses one of its rows to its mean.
    free = counts * precisions * (1 - 1 / np.maximum(seen, 1.0))[numbers]
    freedom, total = float(stable_sum(np.maximum(seen - 1, 0.0))), float(stable_sum(squares))
    weight = float(stable_sum(free))
    mean_precision = rows.weight / float(stable_sum(given))
    return (total / weight * mean_precision if weight > 0 else math.inf), freedom, total


def lack_of_fit(rows: Dataset, total: float, freedom: float) -> str:
    """What equal rows say about a formula that leaves a sum of squares, for people; empty if they say nothing.

    The test of Fisher (1922): errors beyond those of equal rows, by degree of freedom, over those.
    """
    from scipy.special import fdtrc  # slow to import

    _, known, own = of_replicates(rows)
    if known < FEWEST or freedom <= known or not own > 0:
        return ""
    ratio = max(total - own, 0.0) / (freedom - known) / (own / known)
    tail = float(fdtrc(freedom - known, known, ratio))
    # Probability below which a formula misses something.
    told = "the form misses something" if tail < 0.01 else "no lack of fit shows"
    return f"by equal rows, {told}: F({freedom - known:.0f}, {known:.0f}) = {ratio:.3g}, P = {tail:.2g}"


ROUNDING = 8 * 2.0**-53
"""Error of a prediction, as a share of the target, that is rounding."""

KEPT_NUMBERS, FEWEST_KEPT = 1 << 18, 1000
"""Most numbers of the rows in a pickle, 2 MiB, and rows that are there however many columns they have. Of more rows, it
has a random sample."""

ROUNDED = "simple numbers stand for the most likely ones"
FAR_AWAY = "the formula's constants are not the most likely ones, which are"
"""Notes about such constants: about those that are up to `FAR` away, and about others."""

NOT_DETERMINED = "the rows do not determine"
"""Beginning of the note on constants without ends."""


@dataclass(frozen=True, eq=False)
class Basis:
    """The data and noise of a fit, shared by the formulas of a front.

    Parameters
    ----------
    rows : Dataset
        With the weights of the noise.
    loss : str or RowLoss
    noise : str
        Growth of the noise (see `Uncertainty`).
    of : float, optional
        Effective number of all rows if these are a sample, as in a pickle of many; None if they are all.
    """

    rows: Dataset
    loss: Any
    noise: str = "absolute"
    of: float | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        rows = self.rows.sampled(self.most_kept, np.random.default_rng(0))
        of = self.rows.effective_rows if rows is not self.rows else self.of
        return Basis, (replace(rows, known_ranges=self.rows.ranges), self.loss, self.noise, of)

    @property
    def most_kept(self) -> int:
        """Most rows in a pickle."""
        return max(KEPT_NUMBERS // (1 + len(self.rows.features)), FEWEST_KEPT)

    @cached_property
    def error(self) -> RowLoss:
        """The error of a row."""
        return row_error(self.loss)

    @cached_property
    def spread(self) -> str:
        """Scatter of new readings: by the loss, or else by the noise."""
        built_in = built_in_of(Loss(self.error.name, self.error))
        if built_in is None or built_in.spread is None:
            return self.noise
        numbers = call_of(self.error.name)[1]
        return f"{OVERDISPERSED}{numbers[0]}" if OVERDISPERSED.startswith(built_in.spread) else built_in.spread

    def ranges(self, features: Sequence[str]) -> dict[str, tuple[float, float]]:
        """Least and largest value of each of some features."""
        return {name: self.rows.ranges[name] for name in features}


class Inference:
    """Inference from the rows about the constants of a formula.

    Squares of rows at the ends of float64's range overflow; what follows from them is infinite or not a number.

    Parameters
    ----------
    form : Form
    basis : Basis
    kind : {"auto", "model", "robust"}
        Kind of covariance (see `shine.evaluate.inference.covariance`).
    """

    def __init__(self, form: Form, basis: Basis, kind: Kind = "auto") -> None:
        self.form, self.basis, self._kind = form, basis, kind
        self.likelihood = Likelihood(self.form, basis.rows, basis.error)

    @cached_property
    @np.errstate(all="ignore")
    def optimum(self) -> Optimum:
        """The most likely constants, near those of the formula."""
        start = self.likelihood.total(self.form.values)
        # Share of the sum of errors that the last step of the first fit may promise.
        found = fitted(self.likelihood, self.form.values, 1e-12 * abs(start) if math.isfinite(start) else 0.0)
        return found if found.total <= start else Optimum(self.form.values, start)

    @cached_property
    @np.errstate(all="ignore")
    def found(self) -> Covariance:
        """The covariance of the constants."""
        return covariance(self.likelihood, self.optimum.constants, self.optimum.total, self._kind)

    @property
    def away(self) -> float:
        """Distance of the formula's constants from the best ones in standard errors, by the likelihood."""
        before, best, error = self.likelihood.total(self.form.values), self.optimum.total, self.basis.error
        factor = error.log_likelihood
        if factor is None:
            factor = self.found.freedom / (error.degree or 2.0) / best if best > 0 else math.inf
        return math.sqrt(2 * factor * (before - best)) if before > best else 0.0

    @property
    def is_exact(self) -> bool:
        """Whether nothing but rounding is left of the errors."""
        return not self._underflows and self.optimum.total <= self._rounding

    @cached_property
    @np.errstate(all="ignore")
    def _rounding(self) -> float:
        """The total error that rounding leaves; -inf if the loss does not measure errors alone."""
        rows, error = self.basis.rows, self.basis.error
        if error.log_likelihood is not None or error.columns:
            return -math.inf
        size = ROUNDING * np.abs(rows.target)
        return float(rows.row_weights @ derivatives_of(error).errors([rows.target + size, rows.target]))

    @property
    def _underflows(self) -> bool:
        """Whether the target is so small that squares of its rounding errors are 0."""
        largest = float(np.abs(self.basis.rows.target).max(initial=0.0))
        return self._rounding == 0 and 0 < largest < math.sqrt(np.finfo(np.float64).tiny) / ROUNDING

    @cached_property
    @np.errstate(all="ignore")
    def uncertainty(self) -> Uncertainty:
        """The uncertainty without profiles."""
        best, found, form = self.optimum, self.found, self.form
        noise = noise_of(self.likelihood, best.constants, self.basis.spread, len(form.names) - len(found.directions))
        used = form.tree.used_parameters
        return Uncertainty(
            form.names,
            form.values,
            best.constants,
            found.matrix,
            found.undetermined,
            found.directions,
            found.kind,
            self.basis.error.name,
            float(self.basis.rows.effective_rows),
            found.freedom,
            found.freedoms,
            best.total,
            self.basis.error.log_likelihood,
            1 / (self.basis.error.degree or 2.0),
            found.information,
            self.basis.spread,
            noise.scale,
            np.zeros(0) if self.basis.error.name in WITH_QUANTILES else noise.residuals,
            self.basis.ranges([name for name in used if name not in form.names]),
            self.is_exact,
            tuple(sorted(form.held.places)),
            self.away,
            tuple(self._notes()),
        )

    @np.errstate(all="ignore")
    def profile(self, level: float) -> Floats:
        """Profile-likelihood intervals, shape (n_constants, 2); or by standard errors if errors are mere rounding."""
        known = self.uncertainty
        if level not in known.profiles:
            ends = known.wald(level)
            if not self.is_exact and math.isfinite(self.optimum.total):
                widths, given = known.widths(level), Optimum(known.values, self.likelihood.total(known.values))
                bounded = np.where(known.undetermined, self._levels_off != 0, known.errors > 0)
                for index in np.flatnonzero(bounded).tolist():
                    width = float(widths[index])
                    ends[index] = profiled(self.likelihood, self.optimum, given, self.found, index, width)
            known.profiles[level] = known.holding(ends)
        return known.profiles[level]

    @property
    def _levels_off(self) -> Floats:
        """Side on which each constant is unbounded, as the log-likelihood levels off; 0 if it does not."""
        known = self.found.determined
        return np.zeros(len(self.form.names)) if known is None else known.levels_off

    def _notes(self) -> list[str]:
        form, found, best = self.form, self.found, self.optimum
        notes, rows, count = [], self.basis.rows.effective_rows, len(form.names)
        asked = [each for each in form.exact if Held(form.held.exact).holds(each, -1)]
        exact = [each for each in form.exact if each not in asked]
        if asked:
            notes.append(f"taken as exact, as you asked: {_numbers(asked)}")
        if exact:
            notes.append(f"taken as exact, because the other constants make up for any change: {_numbers(exact)}")
        if not math.isfinite(best.total):
            notes.append("the formula has no finite loss on the rows, so nothing is known about its constants")
        elif found.freedom == 0 and form.names:
            notes.append(f"{rows:g} row{'s' * (rows != 1)} cannot tell {count} constant{'s' * (count != 1)} and noise")
        elif found.undetermined.any():
            lost = [name for name, is_lost in zip(form.names, found.undetermined, strict=True) if is_lost]
            alone = len(lost) == 1
            reason = "the loss does not change with it" if alone else "changes of them cancel"
            if self._levels_off.any():
                reason = "the likelihood levels off, so its highest point may be at infinity"
            notes.append(f"{NOT_DETERMINED} {listed(lost)}: {reason}")
        if self._underflows and form.names:
            notes.append("the target is so small that its errors count as 0; give it in a smaller unit")
        if self.is_exact and form.names:
            notes.append("the formula is exact to within rounding; the intervals say no more than that")
        if found.kind == "robust" and form.names:
            notes.append("robust standard errors: they do not trust that the noise is as even as the weights say"
                         if self.basis.error.follows_from_moments else
                         "robust standard errors: the loss does not say how the errors are distributed")  # fmt: skip
        if self.basis.error.follows_from_moments and found.kind != "dependent" and not self.is_exact:
            notes.append(lack_of_fit(self.basis.rows, best.total, found.freedom))
        notes = [note for note in (*notes, found.note) if note]
        given = form.names, form.values, best.constants, found.matrix, found.undetermined
        return notes + rounded_notes(*given, self.away)


def _numbers(values: Sequence[float]) -> str:
    return listed([f"{value:.4g}" for value in values])


def rounded_notes(
    names: Sequence[str], values: Floats, best: Floats, covariance: Floats, lost: Mask, by_likelihood: float
) -> list[str]:
    """Notes on constants that the search rounded to simple numbers (see `Uncertainty` for the parameters)."""
    with np.errstate(all="ignore"):
        away = np.abs(values - best) / np.sqrt(np.diagonal(covariance))
    # Standard errors that a constant of the formula may be away from its most likely value without a note.
    told = np.isfinite(away) & (away > 0.1) & ~lost
    likely = [f"{names[i]} = {best[i]:.6g}" for i in np.flatnonzero(told).tolist()]
    is_near = distance(values, best, covariance, lost) <= FAR or by_likelihood <= FAR
    return [f"{ROUNDED if is_near else FAR_AWAY}: {listed(likely)}"] if likely else []
