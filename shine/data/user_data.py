"""Data as a user gives them, and as arrays: a table or a file, a target, and columns with other roles."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from shine.base.stages import LOGGER
from shine.data.columns.headings import (
    LossColumns,
    frame_headings,
    names_of_headings,
    split_loss_columns,
    with_columns,
    without_roles,
)
from shine.data.datasets.dataset import Dataset
from shine.data.datasets.doubts import doubts, facts
from shine.data.datasets.training import Loaded
from shine.data.loading import Roles, load
from shine.data.opening import Opened, opened
from shine.data.streams.sources import is_streamable
from shine.lang.forms.names import is_list, value_text


@dataclass(frozen=True, eq=False)
class TrainingArrays:
    """A table in memory, with a target and columns of other roles.

    Parameters
    ----------
    X : array-like or data frame of shape (n_rows, n_features)
    y : array-like of shape (n_rows,) or (n_rows, n_outputs)
    names, headings : sequence of str, optional
        Names of the columns in formulas, and their headings.
    sample_weight, sigma, groups, times : array-like of shape (n_rows,), optional
        See `Dataset.from_arrays`.
    loss_columns : mapping of str to array-like of shape (n_rows,), optional
        Columns for the loss, by name.
    """

    X: Any
    y: Any
    names: Sequence[str] | None = None
    headings: Sequence[str] | None = None
    sample_weight: ArrayLike | None = None
    sigma: ArrayLike | None = None
    groups: ArrayLike | None = None
    times: ArrayLike | None = None
    loss_columns: Mapping[str, ArrayLike] | None = None

    def dataset(self) -> Dataset:
        """The checked data set; a `DataError` if the arrays do not fit."""
        dataset = Dataset.from_arrays(
            self.X,
            self.y,
            features=self.names,
            headings=self.headings,
            sample_weight=self.sample_weight,
            sigma=self.sigma,
            groups=self.groups,
            times=self.times,
            loss_columns=self.loss_columns,
        )
        _tell(dataset)
        return dataset


def _tell(dataset: Dataset, notes: Sequence[str] = ()) -> None:
    """Warn of doubts about the data, and log notes."""
    for note in (*notes, *facts(dataset)):
        LOGGER.info(note)
    for doubt in doubts(dataset):
        warnings.warn(doubt, UserWarning, stacklevel=2)


@dataclass(frozen=True, eq=False)
class UserData:
    """Data as `shine.evolve` takes them.

    Parameters
    ----------
    X : array-like, data frame, path, Opened, or a source as `shine.data.opening.open_dataset` takes it
    y : array-like or str
        A text is the heading of a column.
    features : sequence of str, optional
        Headings of the columns of an array; headings of the features if `y` is one.
    sample_weight, sigma, groups, times : array-like or str, optional
    loss_columns : mapping of str to array-like, or sequence of str, optional
        See `shine.data.columns.headings.split_loss_columns`.
    """

    X: Any
    y: Any
    features: Sequence[str] | None = None
    sample_weight: Any = None
    sigma: Any = None
    groups: Any = None
    times: Any = None
    loss_columns: LossColumns | None = None

    def __post_init__(self) -> None:
        if self.features is not None and not is_list(self.features):
            raise TypeError(f"features must be a list of headings, such as ['a', 'b'], is {value_text(self.features)}")

    @property
    def is_source(self) -> bool:
        """Whether columns are looked up by heading in a file or another source."""
        X = self.X
        return isinstance(X, Opened | str | Path) or (
            is_streamable(X) and (isinstance(self.y, str) or not isinstance(X, np.ndarray))
        )

    def opened(self) -> UserData:
        """These data, with a source opened once."""
        return replace(self, X=opened(self.X)) if self.is_source and not isinstance(self.X, Opened) else self

    def headings_by_name(self) -> dict[str, str]:
        """The heading of each column by its name in formulas; empty if there are no headings."""
        if isinstance(self.X, Opened):
            return dict(zip(self.X.source.names, self.X.source.headings, strict=True))
        headings = frame_headings(self.X) if self.features is None else self.features
        return {} if headings is None else dict(zip(names_of_headings(headings), headings, strict=True))

    def _roles(self) -> dict[str, Any]:
        """The target and the columns of other roles, as they were given."""
        others = ("sample_weight", "sigma", "groups", "times")
        return {"y": self.y} | {role: getattr(self, role) for role in others}

    def loaded(self, numbered: str | None = None) -> Loaded:
        """The data set of a source.

        Parameters
        ----------
        numbered : str, optional
            Column of groups, whose texts become numbers.

        Raises
        ------
        DataError
            If a column is not there or cannot be used.
        TypeError
            If a column is not given by its heading.
        """
        for name, heading in self._roles().items():
            if not isinstance(heading, str) and (heading is not None or name == "y"):
                source = f"X is the file {value_text(self.X)}" if isinstance(self.X, str) else "X is opened data"
                raise TypeError(
                    f"{source}: {name} is the heading of one of its columns, not {value_text(heading)}; arrays go with "
                    "an array or a data frame as X"
                )
        loss_columns: Any = self.loss_columns
        if loss_columns is not None and (
            isinstance(loss_columns, str) or not all(isinstance(each, str) for each in loss_columns)
        ):
            raise TypeError(
                f"loss_columns lists headings of columns where X is opened data, not {value_text(loss_columns)}"
            )
        data: Opened = self.opened().X
        if numbered is not None:
            data = replace(data, reading=replace(data.reading, numbered=(numbered,)))
        others = Roles(self.sample_weight, self.sigma, self.groups, self.times, tuple(loss_columns or ()))
        found = load(data, self.y, self.features, others)
        _tell(found.dataset, found.notes)
        return found

    def arrays(self) -> TrainingArrays:
        """The columns of a table in memory, each role by itself.

        Raises
        ------
        DataError
            If a column is missing, occurs twice or has two roles, or X has no headings.
        TypeError
            If `loss_columns` has none of its forms.
        """
        table, columns = without_roles(self.X, self._roles())
        table, loss_columns = split_loss_columns(table, self.loss_columns)
        if isinstance(self.y, str) and self.features is not None:
            table = with_columns(table, self.features)
        headings = frame_headings(table) if self.features is None else self.features
        names = None if headings is None else names_of_headings(headings)
        return TrainingArrays(X=table, names=names, headings=headings, loss_columns=loss_columns, **columns)
