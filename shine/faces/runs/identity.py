"""The identity of a run, as checkpoints record it: its settings and its data."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np

from shine import __version__
from shine.data.datasets.dataset import Dataset
from shine.faces.config import Config, Job


def description(job: Job) -> dict[str, Any]:
    """The settings and data that, with its state, decide a run's outcome; and the versions of Shine and NumPy."""
    return {
        "shine": __version__,
        "numpy": np.__version__,
        "data": data_digest(job.dataset),
        "settings": settings_of(job.config),
    }


def settings_of(config: Config) -> dict[str, Any]:
    """The settings that decide the result of a run, except its limits, as JSON values."""
    no_matter: Any = {"data": True, "stop": True, "fitness": {"threads"}, "parallel": True}
    values: dict[str, Any] = json.loads(config.model_dump_json(exclude=no_matter))
    return values


def data_digest(dataset: Dataset) -> str:
    """SHA-256 of a data set's shape, names and numbers; of rows that are not in memory, by their checksum."""
    digest = hashlib.sha256(json.dumps([dataset.features, dataset.n_rows, dataset.weights is not None]).encode())
    for array in (dataset.columns, dataset.target, dataset.weights, dataset.groups):
        if array is not None:
            digest.update(np.ascontiguousarray(array).data)
    for name, column in dataset.loss_columns.items():
        # The weights contain known deviations.
        if dataset.deviations is None or name != "sigma":
            digest.update(name.encode() + column.tobytes())
    if dataset.all_rows is not None:
        digest.update(json.dumps([dataset.all_rows.n_rows, dataset.all_rows.checksum]).encode())
    return digest.hexdigest()
