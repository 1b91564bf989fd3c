"""Data that a search is given as a file, a folder or a relation, with columns by their headings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from shine.base.stages import LOGGER
from shine.data.loading import Loaded, load
from shine.data.opened import Opened, opened
from shine.data.streams.sources import is_streamable
from shine.lang.forms.names import value_text
from shine.search.templates.template import Template


def is_opened(X: object, y: object) -> bool:
    """Whether a search is given data whose columns have to be looked up by heading."""
    return isinstance(X, Opened | str | Path) or (
        is_streamable(X) and (isinstance(y, str) or not isinstance(X, np.ndarray))
    )


def opened_once(X: Any) -> Any:
    """Data, opened unless they are already."""
    return X if isinstance(X, Opened) else opened(X)


def opened_dataset(
    X: Any,
    y: Any,
    features: Sequence[str] | None,
    sample_weight: Any,
    sigma: Any,
    groups: Any,
    beside: Any,
    template: Template | None,
) -> Loaded:
    """The data set of opened data (see `shine.evolve` for the parameters).

    Raises
    ------
    DataError
        If a column is not there or cannot be used.
    TypeError
        If a column is not given by its heading.
    """
    roles = {"y": y, "sample_weight": sample_weight, "sigma": sigma, "groups": groups}
    for name, heading in roles.items():
        if not isinstance(heading, str) and (heading is not None or name == "y"):
            raise TypeError(f"{name} is the heading of a column where X is opened data, not {value_text(heading)}")
    if beside is not None and (isinstance(beside, str) or not all(isinstance(each, str) for each in beside)):
        raise TypeError(f"beside lists headings of columns where X is opened data, not {value_text(beside)}")
    data: Opened = opened_once(X)
    if template is not None and template.groups is not None:
        data = replace(data, reading=replace(data.reading, numbered=(template.groups,)))
    loaded = load(data, y, features, sample_weight, sigma, groups, beside=tuple(beside or ()))
    for note in loaded.notes:
        LOGGER.info(note)
    return loaded
