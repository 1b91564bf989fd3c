"""Lessons from a network: rows for the search, and fresh ones to judge the formula by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from shine.base.errors import DataError
from shine.base.typing import Floats
from shine.data.columns.headings import check_features, frame_headings, names_of_headings
from shine.data.columns.numbers import numbers
from shine.data.datasets.dataset import Dataset
from shine.faces.distillation.networks import Network, network_of
from shine.lang.forms.names import listed, shown, value_text

FRESH = 4096
"""Rows that the fidelity to the network is measured on."""

LEAST_ROWS = 8
"""Least rows with finite outputs."""


@dataclass(frozen=True, eq=False)
class Lesson:
    """Rows of a network's features and outputs.

    Parameters
    ----------
    features, outputs : tuple of str
        Names.
    X : ndarray of shape (n_rows, n_features), float64
        Rows that the search sees.
    values : ndarray of shape (n_rows, n_outputs), float64
    fresh_X, fresh_values : ndarray
        Rows that it does not see, in the same form; all rows if there are few.
    shares : tuple of float
        Share of each output in the variance of all outputs of the network.
    dropped : int
        Rows that are left out because an output is not finite.
    network : Network
    positions : tuple of int
        Of the outputs among all outputs of the network.
    """

    features: tuple[str, ...]
    outputs: tuple[str, ...]
    X: Floats
    values: Floats
    fresh_X: Floats
    fresh_values: Floats
    shares: tuple[float, ...]
    dropped: int
    network: Network
    positions: tuple[int, ...]

    @property
    def evidence(self) -> float:
        """Independent rows that the rows are worth."""
        return float(max(EVIDENCE_A_FEATURE * len(self.features), LEAST_EVIDENCE))

    def of_network(self, X: Floats) -> Floats:
        """The outputs for other rows, shape (n_rows, n_outputs)."""
        return self.network.outputs(self.network.rounded(X))[1][:, list(self.positions)]


def lesson(
    model: Any,
    where: Mapping[str, tuple[float, float]] | ArrayLike,
    *,
    layer: str | None = None,
    output: int | str | Sequence[int | str] | None = None,
    largest: int | None = None,
    rows: int | None = None,
    features: Sequence[str] | None = None,
    seed: int = 0,
    reading: Mapping[str, Any] | None = None,
) -> Lesson:
    """Sample a network (see `shine.distil` for the parameters).

    A `DataError`, `GraphImportError` or `FormError` if the network or the rows cannot be used, a `ValueError` if a
    number is out of bounds.
    """
    names, table, ranges = _place(where, features)
    network = network_of(model, names, layer, reading or {})
    wanted = 512 if rows is None else _integer("rows", rows, LEAST_ROWS)  # points that the search sees
    rng = np.random.default_rng(seed)
    if ranges is not None:
        X, fresh = latin_hypercube(ranges, wanted, rng), latin_hypercube(ranges, FRESH, rng)
    else:
        order = rng.permutation(len(table))
        X, fresh = table[order[:wanted]], table[order[wanted:][:FRESH]]
        if len(fresh) < LEAST_ROWS:
            fresh = table
    X, fresh = network.rounded(X), network.rounded(fresh)
    outputs, values = network.outputs(X)
    fresh_values = network.outputs(fresh)[1]
    positions = _chosen(outputs, values, output, largest)
    finite, fresh_finite = (np.isfinite(found[:, positions]).all(axis=1) for found in (values, fresh_values))
    if finite.sum() < LEAST_ROWS or fresh_finite.sum() < LEAST_ROWS:
        raise DataError(
            f"the network gives finite outputs for {finite.sum()} of {len(X)} rows; the search needs {LEAST_ROWS}: "
            "give other ranges, or more rows"
        )
    with np.errstate(all="ignore"):
        variances = np.nanvar(np.where(np.isfinite(values), values, np.nan), axis=0)
    total = float(np.nansum(variances))
    return Lesson(
        names,
        tuple(_unused_name(outputs[place], names) for place in positions),
        X[finite],
        values[finite][:, positions],
        fresh[fresh_finite],
        fresh_values[fresh_finite][:, positions],
        tuple(float(variances[place]) / total if total > 0 else 0.0 for place in positions),
        int((~finite).sum()),
        network,
        tuple(positions),
    )


def _place(
    where: Any, features: Sequence[str] | None
) -> tuple[tuple[str, ...], Floats, dict[str, tuple[float, float]] | None]:
    """Names of the features, and rows or ranges of them."""
    if isinstance(where, Mapping):
        if features is not None:
            raise TypeError("ranges name the features; leave features out")
        ranges = checked_ranges(where)
        return tuple(ranges), np.empty((0, len(ranges))), ranges
    table = numbers(where, "X", 2)
    if len(table) < LEAST_ROWS:
        raise DataError(f"X has {len(table)} rows; the search needs {LEAST_ROWS}")
    if not np.isfinite(table).all():
        raise DataError("X has values that are not finite; leave these rows out")
    headings = frame_headings(where) if features is None else None
    if features is not None:
        names = check_features(features)
    elif headings is not None:
        names = names_of_headings(headings)
    else:
        names = Dataset.from_arrays(table, np.zeros(len(table))).features
    if len(names) != table.shape[1]:
        raise DataError(f"X has {table.shape[1]} columns, and {len(names)} features are named")
    return names, table, None


def _chosen(
    outputs: Sequence[str], values: Floats, output: int | str | Sequence[int | str] | None, largest: int | None
) -> list[int]:
    """Positions of the outputs to distil."""
    if largest is not None:
        if output is not None:
            raise TypeError("give either output or largest")
        count = _integer("largest", largest, 1)
        with np.errstate(all="ignore"):
            variances = np.nan_to_num(np.nanvar(np.where(np.isfinite(values), values, np.nan), axis=0))
        return [int(place) for place in np.argsort(-variances, kind="stable")[:count]]
    if output is None:
        return list(range(len(outputs)))
    wanted = [output] if isinstance(output, int | str | np.integer) else list(output)
    found = []
    for each in wanted:
        if isinstance(each, str) and each in outputs:
            found.append(outputs.index(each))
        elif isinstance(each, int | np.integer) and not isinstance(each, bool) and 0 <= each < len(outputs):
            found.append(int(each))
        else:
            raise DataError(f"the network has no output {shown(each)}; there are {listed(outputs)}, numbered from 0")
    if not found:
        raise ValueError("output names none; leave it out for all outputs")
    return list(dict.fromkeys(found))


def _unused_name(name: str, features: Sequence[str]) -> str:
    while name in features:
        name += "_"
    return name


def _integer(name: str, value: Any, least: int) -> int:
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} is {value_text(value)}; it is a whole number from {least} on")
    return int(value)


Ranges = Mapping[str, tuple[float, float]]
"""Least and greatest value of each feature."""

LEAST_EVIDENCE, EVIDENCE_A_FEATURE = 32, 16
"""Independent rows that they are worth: so many for each feature, and at least so many. The error of a network is
smooth, so neighbouring points repeat it, however many there are. With 32 rows, a formula whose description is twenty
nats longer has to leave less than a third of the squared error: it is chosen for what is larger than the error of the
network. `experiments/distil_networks.py worth` measures what the points are worth."""


def checked_ranges(ranges: Mapping[Any, Any]) -> dict[str, tuple[float, float]]:
    """Ranges as numbers, by names that formulas can use.

    A `DataError` if there is none, a name cannot be used, or a range is not two finite numbers, the smaller one first.
    """
    if not ranges:
        raise DataError('no ranges: name each feature with its least and greatest value, such as {"x": (-2, 2)}')
    names = check_features(list(ranges))
    found = {}
    for name, given in zip(names, ranges.values(), strict=True):
        try:
            low, high = given
        except (TypeError, ValueError):
            raise DataError(
                f"the range of {name} is {value_text(given)}; give two numbers, (least, greatest)"
            ) from None
        for end in (low, high):
            if not isinstance(end, Real) or isinstance(end, bool) or not np.isfinite(float(end)):
                raise DataError(f"the range of {name} has the end {value_text(end)}; give two finite numbers")
        if not low < high:
            raise DataError(f"the range of {name} is {low:g} to {high:g}; the least value comes first")
        if not np.isfinite(float(high) - float(low)):
            raise DataError(f"the range of {name} is wider than the largest number; give a smaller one")
        found[name] = (float(low), float(high))
    return found


def latin_hypercube(ranges: Ranges, rows: int, rng: np.random.Generator) -> Floats:
    """Random points with one in each of `rows` slices of each feature (McKay, Beckman and Conover 1979).

    Returns
    -------
    ndarray of shape (rows, n_features), float64
    """
    slices = np.stack([rng.permutation(rows) for _ in ranges], axis=1)
    low, high = np.array(list(ranges.values())).T
    points: Floats = low + (high - low) * ((slices + rng.random(slices.shape)) / rows)
    return points
