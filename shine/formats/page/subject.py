"""The result that a report describes, as protocols: any result with these attributes can be reported."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, Protocol, runtime_checkable

from shine.base.errors import DataError
from shine.base.typing import Floats
from shine.data.datasets.dataset import Dataset
from shine.lang.forms.tree import Tree


class ModelLike(Protocol):
    """A formula with its measures; `shine.search.models.model.Model` is one."""

    @property
    def tree(self) -> Tree:
        """Its parameters are all features, in the order of the columns."""
        ...

    @property
    def expression(self) -> str:
        """The formula as text to copy."""
        ...

    @property
    def headings(self) -> Mapping[str, str]:
        """Original heading of each feature's column, by the feature's name; a feature that it lacks is its heading."""
        ...

    @property
    def digits(self) -> int | None:
        """Significant digits of constants that the data support; None if it is not known."""
        ...

    @property
    def loss(self) -> float:
        """Loss as the search measured it."""
        ...

    @property
    def noise(self) -> str:
        """Model of the noise by which the rows are weighted in loss and R2; "absolute" if they are not."""
        ...

    @property
    def r2(self) -> float | None:
        """Coefficient of determination."""
        ...

    @property
    def complexity(self) -> int:
        """Number of nodes, or their weighted number."""
        ...

    def predict(self, X: Floats) -> Floats:
        """Values of the formula, shape (n_rows,), for X of shape (n_rows, n_features)."""
        ...


class SummaryLike(Protocol):
    """The table of a formula's constants; `shine.evaluate.inference.summary.Summary` is one."""

    @property
    def formula(self) -> str:
        """The formula with names in place of its constants."""
        ...

    @property
    def heading(self) -> str:
        """What the table is about."""
        ...

    @property
    def headings(self) -> list[str]:
        """Headings of its columns."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on the numbers."""
        ...

    def cells(self) -> list[list[str]]:
        """Texts of its rows."""
        ...

    def rows(self) -> Iterator[dict[str, Any]]:
        """Its rows as plain values: name, coef, std_err, low, high."""
        ...


@runtime_checkable
class UncertainLike(ModelLike, Protocol):
    """A formula that tells how sure it is."""

    @property
    def categories(self) -> tuple[str, ...]:
        """Parameters whose values are labels, with none between them."""
        ...

    def summary(self) -> SummaryLike:
        """The table of its constants; a `DataError` if it does not know the rows that it was fitted to."""
        ...

    def predict_interval(self, X: Floats, level: float, kind: Literal["mean", "prediction"]) -> Floats:
        """Intervals around its values, shape (n_rows, 2)."""
        ...


class ResultLike(Protocol):
    """The result of a search; `shine.search.models.front.Result` is one."""

    @property
    def front(self) -> Sequence[ModelLike]:
        """Formulas of rising complexity and falling loss; not empty."""
        ...

    @property
    def best_index(self) -> int:
        """Position of the chosen formula in the front."""
        ...

    @property
    def reason(self) -> str:
        """Why it was chosen; formulas are called by their position. Empty if it is not known."""
        ...

    @property
    def generations(self) -> int:
        """Generations bred."""
        ...

    @property
    def evaluations(self) -> int:
        """Formulas evaluated."""
        ...

    @property
    def seconds(self) -> float:
        """Duration of the search."""
        ...

    @property
    def seed(self) -> int:
        """Seed of every random choice."""
        ...

    @property
    def stopped_by(self) -> str:
        """Which limit ended the search."""
        ...


def columns_of(tree: Tree, dataset: Dataset) -> Floats:
    """The columns that a formula needs, in the order of its parameters, shape (n_rows, n_parameters).

    Raises
    ------
    DataError
        If the data set lacks one of them.
    """
    missing = [name for name in tree.parameters if name not in dataset.features]
    if missing:
        raise DataError(f"the data set has no column {missing[0]!r}, which the formula needs")
    if tree.parameters == dataset.features:
        return dataset.columns.T
    return dataset.columns[[dataset.features.index(name) for name in tree.parameters]].T


def is_number(value: object) -> bool:
    """Whether a value is a finite number."""
    return isinstance(value, int | float) and math.isfinite(value)
