"""What very many rows say about the constants of a formula, in the time that a large sample of them takes.

The sample tells what needs many passes: the kind of the covariance, what the rows do not determine, quantiles of the
noise. Sums over all rows say the rest, in one pass (see `shine.evaluate.inference.all_rows`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from shine.base.lazy import cached_property
from shine.base.typing import Floats
from shine.evaluate.inference.all_rows import Sums, with_all_rows
from shine.evaluate.inference.inference import Inference
from shine.evaluate.inference.likelihood import Likelihood
from shine.evaluate.inference.uncertainty import Uncertainty

SAMPLED_ROWS = 1 << 17
"""Rows of the sample."""


class InferenceOfManyRows(Inference):
    """What more than `SAMPLED_ROWS` rows say about the constants of a formula (see `Inference`)."""

    @cached_property
    def uncertainty(self) -> Uncertainty:
        """All that is known, without profiles."""
        rows, form = self.basis.rows, self.form
        few = replace(self.basis, rows=rows.sampled(SAMPLED_ROWS, np.random.default_rng(0)))
        sampled = Inference(form, few, self._kind)
        known = sampled.uncertainty
        here, everywhere = _sums(sampled.likelihood, form.values), _sums(self.likelihood, form.values)
        return with_all_rows(known, here, everywhere, float(rows.effective_rows), self.basis.ranges(list(known.ranges)))


def _sums(likelihood: Likelihood, constants: Floats) -> Sums:
    """The sums of `shine.evaluate.inference.all_rows`: for squared errors, the curvature is twice the normal matrix."""
    near = likelihood.local(constants)
    return Sums(near.total, near.curvature / 2, -near.gradient / 2)
