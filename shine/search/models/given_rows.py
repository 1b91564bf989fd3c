"""Rows that a formula is given, for its intervals to refer to."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from shine.data.columns.matching import columns_for
from shine.data.datasets.dataset import Dataset
from shine.evaluate.inference.inference import Basis
from shine.evaluate.losses import LossSource, loss_for
from shine.evaluate.losses.rows import data_for_loss
from shine.lang.forms.tree import Tree
from shine.search.problem.noise import check_noise, with_model


def basis_of(
    tree: Tree,
    headings: Mapping[str, str],
    X: ArrayLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    sigma: ArrayLike | None,
    loss: LossSource,
    noise: str,
    beside: Mapping[str, ArrayLike] | None = None,
) -> Basis:
    """Rows that a formula's constants refer to (see `UncertainModel.with_data`)."""
    columns = columns_for(X, tree.parameters, headings, tree.used_parameters)
    if noise != "sigma":
        check_noise(noise)
    rows = Dataset.from_arrays(
        np.column_stack(columns), y, sample_weight=sample_weight, features=tree.parameters, sigma=sigma, beside=beside
    )
    if noise == "auto":
        noise = "absolute" if sigma is None else "sigma"
    read = loss_for(loss, rows)
    return Basis(with_model(data_for_loss(read, rows, noise), noise, read), read, noise)
