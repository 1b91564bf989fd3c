"""Inference from very many rows, in the time that a large sample of them takes.

The sample tells what needs many passes: the kind of the covariance, what the rows do not determine, quantiles of the
noise. Sums over all rows say the rest, in one pass (see `shine.evaluate.inference.all_rows`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from shine.base.lazy import cached_property
from shine.base.typing import Floats
from shine.evaluate.inference.all_rows import Sums, with_all_rows
from shine.evaluate.inference.constants import Form
from shine.evaluate.inference.covariance import Kind
from shine.evaluate.inference.curvature import Curvature
from shine.evaluate.inference.inference import Basis, Inference
from shine.evaluate.inference.likelihood import Likelihood
from shine.evaluate.inference.uncertainty import Uncertainty

SAMPLED_ROWS = 1 << 17
"""Rows of the sample."""

STEPS = 2
"""Steps over all rows to the most likely constants; a formula's own are a few standard errors away from them."""


class InferenceOfManyRows(Inference):
    """Inference from very many rows (see `Inference`).

    Parameters
    ----------
    form : Form
    basis : Basis
    kind : {"auto", "model", "robust"}
    everywhere, here : Sums, optional
        Over all rows, if the basis has a sample of them; and over the sample, at the same constants.
    """

    def __init__(
        self,
        form: Form,
        basis: Basis,
        kind: Kind = "auto",
        everywhere: Sums | None = None,
        here: Sums | None = None,
    ) -> None:
        super().__init__(form, basis, kind)
        self._everywhere, self._here = everywhere, here

    @cached_property
    @np.errstate(all="ignore")
    def uncertainty(self) -> Uncertainty:
        """The uncertainty without profiles."""
        rows, form = self.basis.rows, self.form
        few = replace(self.basis, rows=rows.sampled(SAMPLED_ROWS, np.random.default_rng(0)))
        sampled = Inference(form, few, self._kind)
        everywhere = self._everywhere or least_sums(form, self.basis)
        here = self._here or sums_of(form, few, everywhere.values)
        count = float(rows.effective_rows) if self.basis.of is None else self.basis.of
        return with_all_rows(sampled, here, everywhere, count, rows.ranges)


def sums_of(form: Form, basis: Basis, values: Floats) -> Sums:
    """The sums of `shine.evaluate.inference.all_rows`, with half the curvature of any error as normal matrix."""
    near = Likelihood(form, basis.rows, basis.error).local(values)
    return Sums(values, near.total, near.curvature / 2, -near.gradient / 2)


def least_sums(form: Form, basis: Basis) -> Sums:
    """The sums next to the least sum of errors: after steps from the formula's constants, as long as errors fall."""
    few = basis.rows.sampled(SAMPLED_ROWS, np.random.default_rng(0))
    sampled = Curvature.of(Likelihood(form, few, basis.error), form.values)
    found = sums_of(form, basis, form.values)
    for _ in range(STEPS):
        straight = found
        if sampled.smoothed:  # errors with kinks have a curvature only in the mean over the noise
            mean = sampled.hessian / 2 * (basis.rows.effective_rows / few.effective_rows)
            straight = replace(found, normal=mean)
        step, least = straight.step()
        if not (np.isfinite(step).all() and least < found.errors):
            break
        further = sums_of(form, basis, found.values + step)
        if not further.errors < found.errors:
            break
        found = further
    return found


@dataclass(frozen=True, eq=False)
class SumsOfForm:
    """Sums over all rows next to the most likely constants, for a model that has a sample of the rows.

    Parameters
    ----------
    sums : Sums
    redundant : tuple of int
        Places of simple numbers that are no constants (see `shine.evaluate.inference.redundant`).
    here : Sums, optional
        Over the sample, if they were made in the same way.
    """

    sums: Sums
    redundant: tuple[int, ...]
    here: Sums | None = None

    @classmethod
    def of(cls, form: Form, basis: Basis) -> Self:
        """The sums of a formula over the rows of a basis."""
        return cls(least_sums(form, basis), tuple(sorted(form.held.places)))
