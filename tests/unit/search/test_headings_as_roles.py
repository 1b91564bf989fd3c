"""Columns of a data frame in memory, given to `shine.evolve` by their headings."""

from __future__ import annotations

import numpy as np
import pytest

import shine
from shine.base.errors import DataError

RNG = np.random.default_rng(0)
A, B = RNG.uniform(1, 2, (2, 30))
COLUMNS = {"a [m]": A, "b": B, "y": 2 * A + B, "w": np.arange(30.0) + 1, "day": np.repeat(["mon", "tue"], 15)}
QUICK = {"generations": 1, "population": 20, "seeding": 0.0, "seconds": 5}


def frames():
    pandas, polars, arrow = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    batch = arrow.RecordBatch.from_pydict({name: arrow.array(values) for name, values in COLUMNS.items()})
    return [pandas.DataFrame(COLUMNS), polars.DataFrame(COLUMNS), arrow.table(COLUMNS), batch]


@pytest.mark.slow
@pytest.mark.parametrize("kind", range(4), ids=["pandas", "polars", "table", "batch"])
def test_they_are_what_arrays_of_their_values_are(kind):
    frame = frames()[kind]
    by_heading = shine.evolve(frame, "y", sample_weight="w", groups="day", **QUICK)
    given = {"sample_weight": COLUMNS["w"], "groups": COLUMNS["day"], "features": ["a [m]", "b"]}
    by_arrays = shine.evolve(np.column_stack([A, B]), COLUMNS["y"], **given, **QUICK)
    assert by_heading.best.expression == by_arrays.best.expression
    assert by_heading.best.headings == {"a_m": "a [m]", "b": "b"}
    assert by_heading.best.predict(frame).shape == (30,)


def test_features_choose_columns():
    found = shine.evolve(frames()[0], "y", features=["b"], **QUICK)
    assert found.best.tree.parameters == ("b",)


def test_other_columns_may_have_numbers_as_headings():
    frame = pytest.importorskip("pandas").DataFrame(np.column_stack([A, B]))
    frame["y"] = A + B
    assert shine.evolve(frame, "y", **QUICK).best.tree.parameters == ("x0", "x1")


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"y": "Y"}, "X has no column 'Y', which is given as y; did you mean 'y'[?] it has a .m., b, y, w, day"),
        ({"y": "y", "sigma": "v"}, "X has no column 'v', which is given as sigma; "),
        ({"y": "y", "features": ["a", "b"]}, "X has no column 'a', which is given as a feature; "),
        ({"y": "y", "sample_weight": "y"}, "column 'y' of X is given twice; a column has one role"),
        ({"X": [[1.0], [2.0]], "y": "y"}, "y has 'y', a heading, but X is of type list and has none; give arrays"),
        ({"X": dict(COLUMNS), "y": A}, "X is a dict; make a data frame of it, with"),
    ],
)
def test_what_is_not_there_is_told(keywords, message):
    with pytest.raises(DataError, match=message):
        shine.evolve(**({"X": frames()[0]} | keywords))


def test_a_lazy_frame_has_its_target_by_heading():
    frame = pytest.importorskip("polars").LazyFrame({"a": A})
    with pytest.raises(TypeError, match=r"X is .*: y is the heading of one of its columns"):
        shine.evolve(frame, B)


def test_a_frame_in_memory_is_not_opened():
    with pytest.raises(TypeError, match="a DataFrame is no file and no data set"):
        shine.data.open_dataset(frames()[0])
