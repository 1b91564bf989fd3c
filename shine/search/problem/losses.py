"""What a loss asks of a search: noise that it describes itself, rows that it does not trust."""

from __future__ import annotations

from shine.base.errors import DataError
from shine.data.datasets.dataset import Dataset
from shine.evaluate.fitness.losses import LOSSES, Loss
from shine.evaluate.fitness.row_loss import SIGMA
from shine.search.problem.outliers import without_doubtful


def takes_noise(loss: Loss) -> bool:
    """Whether a model of the noise can weight the errors; all other losses say themselves what the noise is."""
    return loss.name in LOSSES


def read_by(loss: Loss, dataset: Dataset, noise: str) -> Dataset:
    """The data set as a loss takes it: without weights for deviations that it does not use, or uses itself.

    Raises
    ------
    ValueError
        If a model of the noise is asked for, and the loss is one.
    DataError
        If the deviations are known, and the loss does not read them.
    """
    if takes_noise(loss):
        return dataset
    if noise not in ("auto", "absolute"):
        raise ValueError(
            f"noise={noise!r} weights squared and absolute errors; the loss {loss.name} says itself what the noise is: "
            "leave noise out"
        )
    if dataset.deviations is not None and SIGMA not in loss.kind.columns:
        raise DataError(
            f"the loss {loss.name} does not read sigma; use loss='gaussian', or a function with an argument sigma"
        )
    return dataset.without_deviations


def rows_of_seeding(sample: Dataset, loss: Loss, noise: str) -> tuple[Dataset, str]:
    """The rows that the seeding looks at, with the model of their noise: it knows squared errors only."""
    if SIGMA in loss.kind.columns:
        return without_doubtful(sample, loss).with_deviations(without_doubtful(sample, loss).beside[SIGMA]), SIGMA
    return without_doubtful(sample, loss), noise
