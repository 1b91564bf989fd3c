"""Inference from very many rows, in the time that a large sample of them takes.

The sample tells what needs many passes: the kind of the covariance, what the rows do not determine, quantiles of the
noise. Sums over all rows say the rest, in one pass (see `shine.evaluate.inference.all_rows`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from shine.base.lazy import cached_property
from shine.evaluate.inference.all_rows import Sums, with_all_rows
from shine.evaluate.inference.constants import Form
from shine.evaluate.inference.covariance import Kind
from shine.evaluate.inference.inference import Basis, Inference
from shine.evaluate.inference.likelihood import Likelihood
from shine.evaluate.inference.uncertainty import Uncertainty

SAMPLED_ROWS = 1 << 17
"""Rows of the sample."""


class InferenceOfManyRows(Inference):
    """Inference from very many rows (see `Inference`).

    Parameters
    ----------
    form : Form
    basis : Basis
    kind : {"auto", "model", "robust"}
    everywhere : Sums, optional
        Over all rows, if the basis has a sample of them.
    """

    def __init__(self, form: Form, basis: Basis, kind: Kind = "auto", everywhere: Sums | None = None) -> None:
        super().__init__(form, basis, kind)
        self._everywhere = everywhere

    @cached_property
    def uncertainty(self) -> Uncertainty:
        """The uncertainty without profiles."""
        rows, form = self.basis.rows, self.form
        few = replace(self.basis, rows=rows.sampled(SAMPLED_ROWS, np.random.default_rng(0)))
        sampled = Inference(form, few, self._kind)
        here, everywhere = sums_of(form, few), self._everywhere or sums_of(form, self.basis)
        count = float(rows.effective_rows) if self.basis.of is None else self.basis.of
        return with_all_rows(sampled, here, everywhere, count, rows.ranges)


def sums_of(form: Form, basis: Basis) -> Sums:
    """The sums of `shine.evaluate.inference.all_rows`: for squared errors, the curvature is twice the normal matrix."""
    near = Likelihood(form, basis.rows, basis.error).local(form.values)
    return Sums(near.total, near.curvature / 2, -near.gradient / 2)


@dataclass(frozen=True, eq=False)
class SumsOfForm:
    """Sums over all rows at the constants of a formula, for a pickle that has a sample of the rows.

    Parameters
    ----------
    sums : Sums
    redundant : tuple of int
        Places of simple numbers that are no constants (see `shine.evaluate.inference.redundant`).
    """

    sums: Sums
    redundant: tuple[int, ...]

    @classmethod
    def of(cls, form: Form, basis: Basis) -> Self:
        """The sums of a formula over the rows of a basis."""
        return cls(sums_of(form, basis), tuple(sorted(form.held.places)))
