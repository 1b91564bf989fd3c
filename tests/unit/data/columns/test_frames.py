"""Data frames of pandas, Polars and pyarrow, and arrays, that hold more than numbers."""

from __future__ import annotations

import datetime
from decimal import Decimal
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from shine.base.errors import DataError
from shine.data.columns.frames import columns_with, frame_problem
from shine.data.datasets.dataset import Dataset
from shine.estimators import SymbolicClassifier, SymbolicRegressor

DAY = datetime.date(2023, 1, 5)
HOUR = datetime.timedelta(hours=1)

BAD = {
    "text": (["red", "blue", "red"], "column 'c' holds text, such as 'red'"),
    "text with a hole": ([None, "blue", "red"], "column 'c' holds text, such as 'blue'"),
    "numbers as text": (["1,5", "2", "3"], "column 'c' holds numbers as text, such as '1,5'"),
    "dates": ([DAY, DAY, DAY], "column 'c' holds dates"),
    "dates with a hole": ([DAY, None, DAY], "column 'c' holds dates"),
    "moments": ([datetime.datetime(2023, 1, 5, 8)] * 3, "column 'c' holds dates"),
    "durations": ([HOUR, 2 * HOUR, HOUR], "column 'c' holds times of day or durations"),
}
GOOD = {
    "numbers": [1.5, 2, 3],
    "truth": [True, False, True],
    "decimals": [Decimal("1.5"), Decimal(2), Decimal(3)],
    "huge": [10**30, 1, 2.5],
}
LIBRARIES = ["pandas", "polars", "pyarrow"]


def frame(library: str, values: list[Any]) -> Any:
    """A data frame with a column of numbers, a, and another, c."""
    module: ModuleType = pytest.importorskip(library)
    if library == "polars":
        return module.DataFrame({"a": [1.0, 2.0, 3.0], "c": module.Series(values, strict=False)})
    return {"pandas": getattr(module, "DataFrame", None), "pyarrow": getattr(module, "table", None)}[library](
        {"a": [1.0, 2.0, 3.0], "c": values}
    )


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("kind", BAD)
def test_a_column_that_holds_no_numbers_is_named(kind: str, library: str) -> None:
    values, message = BAD[kind]
    bad = frame(library, values)
    with pytest.raises(ValueError) as caught:
        SymbolicRegressor().fit(bad, [1, 2, 3])
    assert str(caught.value).startswith(f"X: {message}; formulas need numbers\n")
    with pytest.raises(DataError) as also:
        Dataset.from_arrays(bad, [1, 2, 3])
    assert str(also.value) == str(caught.value)


@pytest.mark.parametrize(
    ("kind", "library"),
    # Arrow has no integers beyond 64 bits.
    [(kind, library) for kind in GOOD for library in LIBRARIES if (kind, library) != ("huge", "pyarrow")],
)
def test_columns_of_numbers_pass(kind: str, library: str) -> None:
    assert frame_problem(frame(library, GOOD[kind]), "X") is None


def test_pandas_own_types() -> None:
    pandas = pytest.importorskip("pandas")
    good = {
        "nullable": pandas.array([1, 2, 3], dtype="Int64"),
        "categories of numbers": pandas.Categorical([1, 2, 1]),
        "nullable truth": pandas.array([True, False, True], dtype="boolean"),
    }
    for values in good.values():
        assert frame_problem(pandas.DataFrame({"c": values}), "X") is None
    bad = {
        "categories": (pandas.Categorical(["u", "v", "u"]), "text, such as 'u'"),
        "zones": (pandas.date_range("2023-01-05", periods=3, tz="Europe/Berlin"), "dates"),
        "complex": (np.array([1j, 2, 3]), "complex numbers"),
        "mixed": (np.array([1, "x", 2.5], object), "numbers and text, such as 'x'"),
    }
    for values, contents in bad.values():
        problem = frame_problem(pandas.DataFrame({"c": values}), "X")
        assert problem is not None
        assert problem.startswith(f"X: column 'c' holds {contents}; formulas need numbers\n")


def test_all_columns_are_named_and_each_kind_has_its_remedy() -> None:
    pandas = pytest.importorskip("pandas")
    days = pandas.to_datetime(["2023-01-05", "2023-01-06"])
    problem = frame_problem(pandas.DataFrame({"u": ["a", "b"], "n": [1, 2], "d": days, "v": ["c", "d"]}), "X")
    assert problem is not None
    first, *remedies = problem.splitlines()
    assert first == (
        "X: column 'u' holds text, such as 'a'; column 'd' holds dates; column 'v' holds text, such as 'c'; "
        "formulas need numbers"
    )
    assert [line.partition(":")[0] for line in remedies] == ["text", "dates"]
    assert "['u', 'v']" in remedies[0]


def test_the_remedies_work() -> None:
    pandas = pytest.importorskip("pandas")
    from sklearn.compose import make_column_transformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    days = pandas.to_datetime(["2023-01-05", "2023-01-06", "2023-01-05"])
    hours = pandas.to_timedelta([1, 2, 1], "h")
    X = pandas.DataFrame({"text": ["a", "b", "a"], "day": days, "hours": hours, "n": [1.0, 2.0, 4.0]})
    problem = frame_problem(X, "X")
    assert problem is not None
    names = {
        "make_pipeline": make_pipeline, "make_column_transformer": make_column_transformer, "pandas": pandas, "X": X,
        "OneHotEncoder": OneHotEncoder, "SymbolicRegressor": lambda: SymbolicRegressor(generations=1, max_time=1),
    }  # fmt: skip
    remedies = dict(line.split(": ", 1) for line in problem.splitlines()[1:])
    for kind, column in {"dates": "day", "times of day or durations": "hours"}.items():
        X[column] = eval(remedies[kind].split(": ", 1)[1], dict(names))
    assert X["day"].tolist() == [0, 1, 0]
    assert X["hours"].tolist() == [1, 2, 1]
    chain = eval(remedies["text"].split(": ", 1)[1], dict(names)).fit(X, [1.0, 2.0, 4.0])
    assert chain[-1].feature_names_in_.tolist() == ["text_a", "text_b", "day", "hours", "n"]


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (["a", "b", "a"], "y holds text, such as 'a'; numbers are needed (SymbolicClassifier takes classes)"),
        (np.array(["2023-01-05"] * 3, "datetime64[D]"), "y holds dates; numbers are needed"),
        ([1.0, np.nan, 2.0], "Input y contains NaN: 1, the first in row 1; leave these rows out"),
    ],
)
def test_a_target_that_holds_no_numbers_is_named(y: Any, message: str) -> None:
    for given in (y, *([pytest.importorskip("pandas").Series(y)])):
        with pytest.raises(ValueError) as caught:
            SymbolicRegressor().fit([[1.0], [2.0], [3.0]], given)
        assert str(caught.value) == message


def test_classes_may_be_text() -> None:
    X = np.random.default_rng(0).normal(size=(30, 1))
    classes = np.where(X[:, 0] > 0, "yes", "no")
    assert set(SymbolicClassifier(generations=1, max_time=1).fit(X, classes).predict(X)) <= {"yes", "no"}


def test_dates_in_an_array_are_no_numbers() -> None:
    with pytest.raises(ValueError, match="X holds dates; numbers are needed"):
        SymbolicRegressor().fit(np.array([["2023-01-05"]] * 3, "datetime64[D]"), [1, 2, 3])


def test_text_in_an_array_is_named_by_its_column() -> None:
    with pytest.raises(ValueError, match="X: column 1 holds text, such as 'b'; formulas need numbers"):
        SymbolicRegressor().fit([[1, "b"], [2, "c"]], [1, 2])


@pytest.mark.parametrize("library", LIBRARIES)
def test_missing_values_are_counted_by_column(library: str) -> None:
    with pytest.raises(ValueError) as caught:
        SymbolicRegressor().fit(frame(library, [1.0, float("nan"), float("nan")]), [1, 2, 3])
    assert str(caught.value) == (
        "Input X contains NaN: 2 in column 'c', the first in row 1; leave these rows out, or fill them: "
        "make_pipeline(SimpleImputer(), SymbolicRegressor())"
    )


def test_infinite_values_are_counted_by_column() -> None:
    assert columns_with([[1, np.inf], [np.nan, 2]], True) == "1 in column 1, the first in row 0"
    assert columns_with([[1, np.inf], [np.nan, 2]], False) == "1 in column 0, the first in row 1"


def test_headings_that_occur_twice_are_named() -> None:
    pandas = pytest.importorskip("pandas")
    with pytest.raises(ValueError, match="X has 2 columns with the heading 'a'; rename them"):
        SymbolicRegressor().fit(pandas.DataFrame([[1, 2], [3, 4]], columns=["a", "a"]), [1, 2])


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([[1, 2]] * 4 + [[3]], "X has 2 values in row 0 and 1 in row 4; all rows need as many"),
        ([[1, 2], [1, [2]], [1, 2]], "X has a value of type list in row 1, column 1; numbers are needed"),
        ([[1, object()]] * 3, "X has a value of type object in row 0, column 1; numbers are needed"),
    ],
)
def test_values_that_are_no_numbers_are_told_with_their_place(X: Any, message: str) -> None:
    y = np.arange(float(len(X)))
    with pytest.raises(DataError, match=message):
        Dataset.from_arrays(X, y)
    with pytest.raises((ValueError, TypeError), match=message):  # scikit-learn's checks ask for NumPy's kind of error
        SymbolicRegressor().fit(X, y)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([1, 2, [3, 4]], "y has a value of type list in row 2; numbers are needed"),
        ([[1], [2], [3, 4]], "y has 1 values in row 0 and 2 in row 2; all rows need as many"),
        (csr_matrix([[1.0], [0.0], [2.0]]), "y is sparse"),
    ],
)
def test_targets_that_are_no_numbers_are_told(y: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        Dataset.from_arrays(np.ones((3, 1)), y)
    with pytest.raises(ValueError, match=message):
        SymbolicRegressor().fit(np.ones((3, 1)), y)


def test_arrays_in_the_cells_of_a_frame_are_no_numbers() -> None:
    import pandas

    frame = pandas.DataFrame({"a": [np.zeros(2)] * 3, "b": [1.0, 2.0, 3.0]})
    with pytest.raises(ValueError, match=r"column 'a' holds .*, such as '\[0. 0.\]'"):
        SymbolicRegressor().fit(frame, [1.0, 2.0, 3.0])
