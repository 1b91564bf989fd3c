"""Data files -> data sets. Also exports recipes, from `shine.data.generated`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

from shine.data.array_files import open_npz, open_parquet
from shine.data.dataset import Dataset
from shine.data.delimited import open_delimited
from shine.data.generated import generate, recipe_problems
from shine.data.recipe import Feature, Recipe
from shine.data.source import Source
from shine.errors import DataError
from shine.lang.names import shown

__all__ = ["FORMATS", "Feature", "Recipe", "generate", "load_file", "recipe_problems"]

FORMATS: dict[str, Callable[[Path], Source]] = {
    ".csv": open_delimited,
    ".csv.gz": open_delimited,
    ".tsv": open_delimited,
    ".tsv.gz": open_delimited,
    ".npz": open_npz,
    ".parquet": open_parquet,
}
"""The function that opens a file, by the ending of the file's name."""


def load_file(
    path: str | Path,
    target: str,
    features: Sequence[str] | None = None,
    weights: str | None = None,
    sigma: str | None = None,
    groups: str | None = None,
) -> Dataset:
    """Read a table of numbers.

    Parameters
    ----------
    path : path
        CSV or TSV with a header row (plain or gzipped), NPZ or Parquet, by the ending of the name.
    target : str
        Heading of the column to explain.
    features : sequence of str, optional
        Headings of the feature columns; all other columns by default.
    weights : str, optional
        Heading of the column of sample weights.
    sigma : str, optional
        Heading of the column of standard deviations of the target's noise.
    groups : str, optional
        Heading of the column that numbers the group of each row.

    Returns
    -------
    Dataset
        Its features are the headings; a heading that is not an identifier is turned into one, and kept beside it.

    Raises
    ------
    DataError
        If the file cannot be read or a column is missing or invalid; the message names the file, and the line and
        the column where possible.
    """
    path = Path(path)
    opener = next((opener for ending, opener in FORMATS.items() if path.name.lower().endswith(ending)), None)
    if opener is None:
        raise DataError(f"{path}: data files end in one of {', '.join(FORMATS)}")
    source = opener(path)
    others = {"sample_weight": weights, "sigma": sigma, "groups": groups}
    roles = {"target": target} | {role: name for role, name in others.items() if name is not None}
    apart = [source.index(name) for name in roles.values()]
    if features is None:
        chosen = [i for i in range(len(source.headings)) if i not in apart]
    else:
        chosen = [source.index(name) for name in features]
    _check_choice(source, apart, chosen)
    columns = source.read([*apart, *chosen])
    given = dict(zip(roles, columns[: len(apart)], strict=True))
    names, headings = [source.names[i] for i in chosen], [source.headings[i] for i in chosen]
    X, y = np.column_stack(columns[len(apart) :]), given.pop("target")
    try:
        return Dataset.from_arrays(X, y, features=names, headings=headings, **cast(dict[str, Any], given))
    except DataError as error:
        raise DataError(f"{path}: {error}") from None


def _check_choice(source: Source, apart: Sequence[int], chosen: Sequence[int]) -> None:
    if not chosen:
        raise DataError(f"{source.path}: no column is left to be a feature")
    index, uses = Counter([*apart, *chosen]).most_common(1)[0]
    if uses > 1:
        raise DataError(
            f"{source.path}: column {shown(source.headings[index])} is used twice among target, weights, sigma, "
            "groups and features"
        )
