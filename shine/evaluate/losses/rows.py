"""A loss over the rows of a data set: whether it can be computed, and properties that follow from its values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from shine.base.errors import DataError
from shine.base.typing import Floats
from shine.compiler.arrays import apply
from shine.data.datasets.dataset import Dataset
from shine.evaluate.losses.form import LOSSES, SIGMA, WEIGHT, Loss, RowLoss
from shine.evaluate.losses.library import POSITIVE, BuiltIn, Values
from shine.evaluate.losses.reading import TARGET, built_in_of, loss_from
from shine.lang.forms.library import STANDARD
from shine.lang.forms.names import listed, shown, value_text
from shine.lang.forms.synonyms import SHORT_LOSS_ARGUMENTS
from shine.lang.values import ValueGraph

SAMPLED_ROWS, SAMPLED_PREDICTIONS = 1000, 9
"""Numbers of rows and predictions, quantiles of the target, for samples of a user's loss."""


def loss_for(source: object, dataset: Dataset) -> Loss:
    """The loss that a user gives, for a data set.

    Parameters
    ----------
    source : str, function or Loss
        See `shine.evaluate.losses.reading.loss_from`.
    dataset : Dataset

    Returns
    -------
    Loss
        The properties of a user's function follow from its values: if a perfect prediction has the error 0 in every
        row, the scale of the errors is estimated from the data, as that of squared errors is. Any other function is a
        negative log-likelihood, up to a constant for each row: that of a perfect prediction is subtracted if errors are
        negative.

    Raises
    ------
    ValueError, UnsupportedSyntaxError, TypeError
        If there is no such loss.
    DataError
        If a column is missing or not used, or a value of the target or a column is not allowed; or if the error is
        negative or not a number.
    """
    loss = loss_from(source, dataset.loss_columns)
    _check_columns(loss, dataset)
    built_in = built_in_of(loss)
    if built_in is not None:
        _check_values(loss, built_in, dataset)
    elif loss.name not in LOSSES or loss.kind != LOSSES[loss.name].kind:
        return _learned(loss, dataset)
    return loss


def loss_columns_of(dataset: Dataset, kind: RowLoss) -> tuple[Floats, ...]:
    """The columns that a loss reads, each of shape (n_rows,), float64; a `DataError` if the data have no such column.

    Columns beside the features come before the sample weights and the standard deviations that a data set has itself.
    """
    known = dict(dataset.loss_columns)
    for name in set(kind.columns) - known.keys():
        if name == WEIGHT:
            known[name] = dataset.sample_weights
        elif name == SIGMA and dataset.deviations is not None:
            known[name] = dataset.deviations
        else:
            has = ", ".join(map(shown, dataset.loss_columns)) or "none"
            raise DataError(
                f"loss {shown(kind.name)} reads column {shown(name)}, which the data do not have beside the features;"
                f" there they have: {has}"
            )
    return tuple(np.ascontiguousarray(known[name], np.float64) for name in kind.columns)


def loss_rows(dataset: Dataset, kind: RowLoss) -> Dataset:
    """The data set with the weights that the errors of its rows are multiplied by.

    A function that reads the weights, or the deviations of the noise, takes care of them itself.
    """
    if SIGMA in kind.columns:
        dataset = dataset.without_deviations
    return replace(dataset, weights=None, deviations=None) if WEIGHT in kind.columns else dataset


def _check_columns(loss: Loss, dataset: Dataset) -> None:
    columns = loss.kind.columns
    has = f"there they have {listed(dataset.loss_columns)}" if dataset.loss_columns else "loss_columns={...} names them"
    for name in columns:
        if name in dataset.loss_columns or name == WEIGHT or (name == SIGMA and dataset.deviations is not None):
            continue
        meant = SHORT_LOSS_ARGUMENTS.get(name)
        hint = f"{name} is called {meant} in losses; " if meant else ""
        raise DataError(f"the loss {loss.name} reads a column {shown(name)} beside the data; {hint}{has}")
    for name in dataset.loss_columns:
        if name in columns or (name == SIGMA and dataset.deviations is not None and loss.name in LOSSES):
            continue
        if name == SIGMA and loss.name in LOSSES:
            raise DataError(f"the loss {loss.name} reads no column beside the data; give sigma as sigma=...")
        advice = "use a loss that reads it: 'gaussian', or a function" if name == SIGMA else "leave it out"
        raise DataError(f"the loss {loss.name} does not read the column {shown(name)} beside the data; {advice}")


def _check_values(loss: Loss, built_in: BuiltIn, dataset: Dataset) -> None:
    read = dict(zip(loss.kind.columns, loss_columns_of(dataset, loss.kind), strict=True))
    if TARGET in built_in.values:
        read[TARGET] = dataset.target
    if "lower" in read and "upper" in read:
        wrong = read["lower"] > read["upper"]
        if wrong.any():
            row = int(np.argmax(wrong))
            raise DataError(
                f"the loss {loss.name}: lower is above upper in {int(wrong.sum())} rows, first in row {row}"
            )
    known: dict[str, Values] = {SIGMA: POSITIVE, **built_in.values}
    for name, values in read.items():
        wrong = ~known[name].allow(values) if name in known else np.zeros(0, bool)
        if wrong.any():
            row, what = int(np.argmax(wrong)), "the target" if name == TARGET else name
            allowed = known[name].words
            raise DataError(f"the loss {loss.name}: {what} must be {allowed}; it is {values[row]:g} in row {row}")


def _learned(loss: Loss, dataset: Dataset) -> Loss:
    """A user's loss with the properties that follow from its values on the rows."""
    rows = dataset.sampled(SAMPLED_ROWS, np.random.default_rng(0))
    columns, target = loss_columns_of(rows, loss.kind), rows.target
    perfect = _errors(loss, target, target, columns)
    predictions = np.unique(np.sort(target)[np.linspace(0, len(target) - 1, SAMPLED_PREDICTIONS).astype(int)])
    predictions = np.append(predictions, [rows.target_mean, 0.0, -1.0, 1.0])
    others = np.array([_errors(loss, np.full_like(target, value), target, columns) for value in predictions])
    if not np.isfinite(perfect).any() and not np.isfinite(others).any():
        raise DataError(f"the loss {loss.name} is not a finite number in any row, not even for a perfect prediction")
    every, values = np.vstack([perfect, others]), [None, *predictions.tolist()]
    with np.errstate(invalid="ignore"):
        place = np.unravel_index(int(np.nanargmin(np.where(np.isfinite(every), every, np.inf))), every.shape)
    least = float(every[place])
    # Largest relative gain of a prediction over a perfect one that rounding explains.
    if least < 0 and np.isfinite(perfect).all() and not (others < perfect - 1e-12 * np.abs(perfect)).any():
        return replace(loss, kind=replace(_shifted(loss.kind), least=0.0, log_likelihood=1.0))
    if least < 0:
        what = "a perfect prediction" if values[place[0]] is None else f"the prediction {values[place[0]]:g}"
        raise DataError(
            f"the loss {loss.name} is negative, {value_text(least)} for {what} in row {place[1]}; errors must be at "
            "least 0: subtract the error of a perfect prediction"
        )
    exact = bool((perfect == 0).all())
    return replace(loss, kind=replace(loss.kind, least=0.0, log_likelihood=None if exact else 1.0))


def _shifted(kind: RowLoss) -> RowLoss:
    """The error of a row less that of a perfect prediction."""
    tree = kind.function.definition
    assert tree is not None
    graph = ValueGraph()
    names = [graph.parameter(name) for name in tree.parameters]
    parts = (graph.read(tree, arguments, STANDARD) for arguments in (names, [names[1], *names[1:]]))
    (shifted,) = graph.write([graph.apply("sub", *parts)], tree.parameters, tree.name)
    return replace(kind, function=replace(kind.function, definition=shifted))


def _errors(loss: Loss, predictions: Floats, target: Floats, columns: tuple[Floats, ...]) -> Floats:
    return apply(loss.kind.function, predictions, target, *columns)


def takes_noise(loss: Loss) -> bool:
    """Whether a model of the noise can weight the errors; all other losses say themselves what the noise is."""
    return loss.name in LOSSES


def data_for_loss(loss: Loss, dataset: Dataset, noise: str) -> Dataset:
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
