"""Boxes of points that can be measured."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shine.base.errors import DataError
from shine.data.datasets.dataset import Dataset
from shine.data.datasets.preparation import Preparation, PreparedColumn
from shine.search.models.measuring.box import Axis, Box, box_of

SHARES = np.linspace(0, 1, 101)
ROWS = Dataset.from_arrays(
    np.column_stack([np.linspace(0.3, 2.7, 9), np.arange(1, 10), np.arange(9) % 2]), np.arange(9.0),
    features=["x", "n", "on"],
)  # fmt: skip


def box(given=None, **options):
    return box_of(given, ROWS.features, {}, ROWS.ranges, ROWS, **options)


def test_features_without_limits_have_the_range_of_the_rows():
    ends = [(axis.low, axis.high) for axis in box({"n": (2, 5)}).axes]
    assert ends == [(0.3, 2.7), (2, 5), (0, 1)]


def test_whole_numbers_stay_whole_and_others_are_round():
    x, n, on = box({"x": (0, 10)}).values(np.tile(SHARES, (3, 1)))
    assert set(n) == set(range(1, 10)) and set(on) == {0.0, 1.0}
    assert np.allclose(x * 10, np.rint(x * 10)) and len(set(x)) > 50 and (x.min(), x.max()) == (0, 10)


def test_whole_numbers_are_those_between_the_limits():
    (_, n, _) = box({"n": (1.5, 4.2)}).axes
    assert (n.low, n.high) == (2, 4)


def test_a_feature_can_be_fixed():
    assert box({"x": 3}).axes[0].is_fixed
    assert set(box({"x": 3}).values(np.tile(SHARES, (3, 1)))[0]) == {3.0}


PREPARED = Preparation((
    PreparedColumn("metal", "metal", "one-hot", ("metal_is_gold", "metal_is_tin"),
                   ("metal is gold", "metal is tin"), ("clay", "gold", "tin")),
    PreparedColumn("size", "size", "ordinal", ("size",), ("size",), ("big", "small")),
))  # fmt: skip
NAMES = ("metal_is_gold", "metal_is_tin", "size")


def test_texts_stay_texts():
    found = box_of({"metal": ["clay", "tin"]}, NAMES, {}, {}, None, PREPARED)
    values = found.values(np.array([[0.0, 0.9], [0.0, 0.9]]))
    columns = found.columns(values)
    assert [found.plain(point) for point in values.T] == [
        {"metal": "clay", "size": "big"}, {"metal": "tin", "size": "small"},
    ]  # fmt: skip
    assert [columns[name].tolist() for name in NAMES] == [[0, 0], [0, 1], [0, 1]]


def test_beyond_the_rows_signs_and_fixed_features_stay():
    wider = box({"on": 1}).beyond_the_rows()
    assert [(axis.low, axis.high) for axis in wider.axes] == [
        (pytest.approx(0.15), pytest.approx(7.5)), (1, 25), (1, 1),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("given", "message"),
    [({}, "box is empty: name features with limits"),
     ([("x", 1)], "it is a mapping of features to limits"),
     ({"xx": (0, 1)}, "box has 'xx', which is no feature; did you mean 'x'"),
     ({"x": (2, 1)}, r"the lower limit comes first: \(1, 2\)"),
     ({"x": (0, float("nan"))}, "its limits are finite numbers"),
     ({"x": (0, float("inf"))}, "its limits are finite numbers"),
     ({"x": (0, 1, 2)}, "a pair of limits: the lowest and the highest"),
     ({"x": "low"}, "a pair of limits: the lowest and the highest"),
     ({"x": True}, "a pair of limits: the lowest and the highest"),
     ({"n": (1.2, 1.8)}, "the feature has whole numbers, and there is none between these limits"),
     ({"n": 2.5}, "the feature has whole numbers, and there is none between these limits")],
)  # fmt: skip
def test_wrong_boxes_are_a_value_error(given, message):
    with pytest.raises(ValueError, match=message):
        box(given)


@pytest.mark.parametrize(("labels", "told"), [("iron", "'iron'"), ([], r"\[\]"), (3, "3")])
def test_unknown_texts_are_a_value_error(labels, told):
    with pytest.raises(ValueError, match=f"'metal' has no label {told}; it has clay, gold, tin"):
        box_of({"metal": labels}, NAMES, {}, {}, None, PREPARED)


def test_a_feature_without_a_known_range_must_be_in_the_box():
    with pytest.raises(DataError, match="the range of 'x' is not known; give it in the box"):
        box_of(None, ["x"], {}, {}, needed={"x"})
    assert box_of({"x": (0, 1)}, ["x"], {}, {}).axes[0].known is None


def test_a_feature_that_does_not_matter_and_has_no_known_range_is_left_out():
    (axis,) = box_of({"x": (0, 1)}, ["x", "z"], {}, {}, needed={"x"}).axes
    assert axis.heading == "x"


def test_a_feature_is_named_once():
    with pytest.raises(ValueError, match="box names 'width of x' twice"):
        box_of({"x": (0, 1), "width of x": (0, 2)}, ["x"], {"x": "width of x"}, {})


@given(st.floats(-1.7e308, 1.7e308), st.floats(-1.7e308, 1.7e308), st.booleans())
@example(5e-324, 5e-324, False)
@example(1e-323, 3e-323, False)
@example(1e-320, 1e300, False)
@example(-1e-310, 2e-310, False)
@example(1e308, 1.5e308, True)
@example(1.0, 5.992310449540701e307, False)
@example(1.0, 5.833333333333619e307, False)
def test_points_of_any_range_are_within_it(one, other, whole):
    low, high = sorted(np.rint([one, other]).tolist() if whole else [one, other])
    axis = Axis("a", ("a",), low=low, high=high, is_integer=whole, known=(low, high))
    wider = Box((axis,)).beyond_the_rows().axes[0]
    assert wider.low <= low <= high <= wider.high
    for each in (axis, wider):
        values = each.values(np.linspace(0, 1, 7))
        assert ((values >= each.low) & (values <= each.high)).all()
