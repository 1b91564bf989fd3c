"""Formulas with rows, for the tests of inference."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from shine.data.datasets.dataset import Dataset
from shine.evaluate.inference.constants import Held, form_of
from shine.evaluate.inference.determined import redundant
from shine.evaluate.inference.inference import Basis, Inference
from shine.evaluate.losses.form import RowLoss
from shine.lang.parse import parse
from shine.losses import loss_from


def inference(
    formula: str,
    columns: dict[str, np.ndarray],
    y: np.ndarray,
    loss: str | RowLoss = "mse",
    weights: np.ndarray | None = None,
    sigma: np.ndarray | None = None,
    exact: tuple[float, ...] = (),
    worth: float | None = None,
    **options: str,
) -> Inference:
    """What rows say about the constants of a formula, some of its numbers taken as exact."""
    rows = Dataset.from_arrays(
        np.column_stack(list(columns.values())), y, sample_weight=weights, features=list(columns), sigma=sigma
    )
    rows = replace(rows, worth=worth)
    tree = parse(formula, list(columns))
    error = loss if isinstance(loss, RowLoss) else loss_from(loss)
    basis = Basis(rows, error, options.pop("noise", "absolute"))
    form = form_of(tree, Held(exact))
    form = form_of(tree, Held(exact, redundant(form, rows)))
    return Inference(form, basis, **options)


def line(rows: int = 30, noise: float = 0.3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A noisy line 1.37 + 2.31*x."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 4, rows)
    return x, 1.37 + 2.31 * x + rng.normal(0, noise, rows)
