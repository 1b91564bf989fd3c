"""The formulas of a front that the rows do not tell apart, and what they predict."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from shine.base.errors import DataError
from shine.base.lazy import cached_property
from shine.base.typing import Floats, Mask
from shine.evaluate.inference.bands import UNKNOWN, growth
from shine.evaluate.inference.constants import Form
from shine.evaluate.inference.evidence import LEAST_SHARE, Predictions, shares
from shine.evaluate.inference.inference import ROUNDING
from shine.evaluate.inference.uncertainty import Uncertainty
from shine.evaluate.losses.form import loss_of
from shine.search.description import NATS_A_NODE, DescriptionLength
from shine.search.models.certainty import lengths_of, population_of
from shine.search.models.model import Model
from shine.search.problem.reference_losses import constant_loss, rounding_loss
from shine.search.problem.unwritten import description_of

NONE = 0.4
"""Probability that the law is none of the formulas, if their errors are more than rounding: so it was after 38 % of
searches with 8 to 13 rows and 4 or 10 % noise (laws of `experiments/next_measurement.py`); by the front alone, after
56 %."""

LARGEST = 1e140
"""Values, and uncertainties of values, from which on a formula says nothing: a pole, or an explosion."""

_LEAST = float(np.finfo(np.float64).tiny) ** 0.5


@dataclass(frozen=True, eq=False)
class Rival:
    """A formula that the rows leave.

    Parameters
    ----------
    model : Model
    index : int
        Its position in the front; those beside the front come after it.
    form : Form
    known : Uncertainty
    """

    model: Model
    index: int
    form: Form
    known: Uncertainty

    @property
    def is_determined(self) -> bool:
        """Whether the rows determine its constants and the noise."""
        known = self.known
        spread = known.exact or math.isfinite(known.scale)
        return spread and not known.undetermined.any() and bool(np.isfinite(known.covariance).all())

    @cached_property
    def root(self) -> Floats:
        """A square root of the covariance of the constants, shape (n_constants, n_directions)."""
        covariance = self.known.covariance
        with np.errstate(all="ignore"):
            scale = np.sqrt(np.diagonal(covariance))
            scale = np.where(scale > 0, scale, 1.0)
            sizes, turned = np.linalg.eigh(covariance / scale / scale[:, None])
        root: Floats = scale[:, None] * turned * np.sqrt(np.maximum(sizes, 0.0))
        return root

    def at(self, columns: Mapping[str, Floats], count: int) -> tuple[Floats, Floats, Floats]:
        """Values, their derivatives by independent directions of the constants, and the variance of the noise.

        Values that the formula does not have are NaN, and so are those of which nothing can be said.
        """
        known, features = self.known, self.model.tree.parameters
        best = known.best if np.isfinite(known.best).all() else self.form.values
        given = self.form.kernel("O0")(*best.tolist(), *(columns.get(name, np.zeros(count)) for name in features))
        found = np.broadcast_to(np.array(given, np.float64).reshape(len(given), -1), (len(given), count))
        values, partials = found[0].copy(), found[1:]
        with np.errstate(all="ignore"):
            slopes = self.root.T @ partials
            noise = self.noise(values)
            values[~(values**2 + (slopes**2).sum(axis=0) + noise < LARGEST**2)] = np.nan
        return values, slopes, noise

    def noise(self, values: Floats) -> Floats:
        """Variance of a reading around the values; rounding is left of exact ones."""
        spread = (
            growth("counts", values) if self.known.error == "poisson"
            else (0.0 if self.known.exact else self.known.scale) * growth(self.known.noise, values)
        )  # fmt: skip
        found: Floats = spread**2 + (ROUNDING * np.abs(values)) ** 2 + _LEAST**2
        return found


def lengths(models: Sequence[Model]) -> Floats:
    """Nats of the rows' description by each formula, as the choice counts them.

    If some are exact, the rows refute the others, and what counts is their size. Models of a run know neither rows nor
    loss, but their own losses and sums of errors.
    """
    first, basis = models[0], models[0].basis
    known = first.uncertainty
    if basis is None:
        worst = max((model for model in models), key=lambda model: model.loss)
        least, most = LEAST_SHARE * worst.loss, worst.loss
    else:
        loss = loss_of(basis.loss)
        least, most = rounding_loss(basis.rows, loss), constant_loss(basis.rows, loss)
    exact = np.array([model.loss <= least for model in models])
    if exact.any():
        return np.where(exact, [NATS_A_NODE * model.counts[0] for model in models], np.inf)
    if known.likelihood is not None:
        description = DescriptionLength.of_likelihood(known.rows, known.likelihood)
    else:
        power = known.power / _exponent(models) if basis is None else loss_of(basis.loss).log_likelihood
        description = DescriptionLength.with_unknown_noise(known.rows, power, most or 1.0)
        if basis is not None and type(first) is Model:
            functions = population_of(models, basis.rows.features).primitives
            unwritten = description_of(basis.rows, basis.loss, functions).unwritten
            description = replace(description, unwritten=unwritten)
    return lengths_of(models, description)


def _exponent(models: Sequence[Model]) -> float:
    """The power of the sum of errors that a loss is: 1, or a half of roots, by how both fall along a front."""
    worst, best = models[0], min(models, key=lambda model: model.loss)
    before, after = (0.0 if model.known is None else model.known.total for model in (worst, best))
    known = before > after > 0 and worst.loss > best.loss
    return 0.5 if known and math.log(worst.loss / best.loss) < 0.75 * math.log(before / after) else 1.0


@dataclass(frozen=True, eq=False)
class Rivals:
    """The formulas of a front that the rows do not tell apart, the most probable first.

    Parameters
    ----------
    each : tuple of Rival
    weights : ndarray of shape (n_rivals,)
        Their probabilities, which add up to 1.
    """

    each: tuple[Rival, ...]
    weights: Floats

    @classmethod
    def of(cls, models: Sequence[Model], beside: Sequence[Model] = ()) -> Rivals:
        """The rivals of a front and of what is beside it.

        A `DataError` if the models do not know their rows, or these do not tell the noise.
        """
        models = [*models, *beside]
        weights = shares(lengths(models))
        # Formulas that are less probable than this share of the most probable one are left out.
        order = [at for at in np.argsort(-weights, kind="stable").tolist() if weights[at] >= 0.01 * weights.max()]
        # Most formulas that are told apart.
        found = [Rival(models[at], at, models[at].form(), models[at].uncertainty) for at in order[:12]]
        if any(rival.known.noise == UNKNOWN for rival in found):
            raise DataError(
                f"the loss {found[0].known.error} does not say how readings scatter around the formula's value, so "
                "nothing tells where they would decide between formulas"
            )
        told = [rival for rival in found if rival.is_determined]
        if not told:
            raise DataError("the rows are too few to tell constants from noise; measure more rows, anywhere")
        kept = weights[[rival.index for rival in told]]
        return cls(tuple(told), kept / kept.sum())

    def at(self, columns: Mapping[str, Floats], count: int) -> tuple[Predictions, Mask]:
        """Predictions at some points, and whether all rivals have a value there."""
        parts = [rival.at(columns, count) for rival in self.each]
        values = np.array([part[0] for part in parts])
        there = np.isfinite(values).all(axis=0)
        # The noise is that of the instrument, whichever formula is right.
        noise = self.weights @ np.array([part[2] for part in parts])
        cleared = [np.where(there, part[1], 0.0) for part in parts]
        freedom = float(self.weights @ [rival.known.freedom for rival in self.each])
        return Predictions(np.where(there, values, 0.0), cleared, np.where(there, noise, 1.0), freedom), there

    def only(self, places: Sequence[int]) -> Rivals:
        """Some of them, as if there were no others."""
        weights = self.weights[list(places)]
        return Rivals(tuple(self.each[at] for at in places), weights / weights.sum())

    @property
    def used(self) -> set[str]:
        """Features that some rival uses."""
        return {name for rival in self.each for name in rival.model.tree.used_parameters}

    @property
    def missing(self) -> float:
        """Nats that are missing to know the formula."""
        return abs(float(self.weights @ np.log(self.weights)))
