"""`plot` of fronts and results: what is drawn, on which axes, and what it needs."""

from __future__ import annotations

import numpy as np
import pytest

import shine
from shine.base.errors import DataError
from shine.search.models.front import Front
from shine.search.models.model import Model
from shine.search.models.result import Result

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
from matplotlib.figure import Figure  # noqa: E402

X = np.random.default_rng(0).uniform(1, 2, (50, 3))
Y = X[:, 0] * X[:, 1]
NAMES = ("a", "b", "größe")
FRONT = Front(tuple(Model(shine.parse(text, NAMES), loss, 0.5) for text, loss in (("2.25", 1.0), ("a*b", 0.01))), 1)


@pytest.fixture
def axes():
    return Figure().add_subplot()


def panels(count: int) -> list:
    return list(Figure().subplots(1, count, squeeze=False).flat)


def test_a_front_of_one_row_is_drawn_too(axes):
    Front(FRONT.models[:1], 0).plot(ax=axes)
    assert axes.lines[0].get_ydata().tolist() == [1.0]
    axes.figure.canvas.draw()


def test_a_result_draws_like_its_front(axes):
    Result(FRONT, 1, 1, 1, 1.0, 0, "loss").plot("fit", X, Y, ax=axes)
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), Y)


def test_a_fit_is_predicted_over_measured(axes):
    FRONT.plot("fit", X, Y + 1, ax=axes)
    np.testing.assert_array_equal(axes.lines[0].get_xdata(), Y + 1)
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), Y)


def test_residuals_are_measured_minus_predicted(axes):
    FRONT.plot("residuals", X, Y + 1, ax=axes)
    np.testing.assert_allclose(axes.lines[0].get_ydata(), 1.0)


def test_the_order_of_rows_is_that_of_the_table(axes):
    FRONT.plot("order", X, Y + np.arange(len(Y)), ax=axes)
    rows, errors = axes.lines[0].get_data()
    np.testing.assert_allclose(errors, rows - 1, atol=1e-12)


def test_dependence_has_a_drawing_for_each_feature_that_the_formula_uses():
    first, second = panels(2)
    assert FRONT.plot("dependence", X, ax=[first, second]).tolist() == [first, second]
    grid, mean = first.lines[0].get_data()
    np.testing.assert_allclose(mean, grid * X[:, 1].mean())
    assert [each.get_xlabel() for each in (first, second)] == ["a", "b"]


@pytest.mark.parametrize("feature", ["größe", 2, -1])
def test_a_feature_that_the_formula_does_not_use_gives_a_flat_line(axes, feature):
    FRONT.plot("dependence", X, features=[feature], ax=axes)
    assert np.ptp(axes.lines[0].get_ydata()) < 1e-12


def test_rows_without_a_finite_prediction_are_counted(axes):
    root = Front((Model(shine.parse("log(a - 1.5)", NAMES), 1.0, 0.5),), 0)
    root.plot("fit", X, Y, ax=axes)
    missing = int((X[:, 0] <= 1.5).sum())
    assert axes.texts[0].get_text() == f"{missing} rows without a finite prediction"
    assert len(axes.lines[0].get_xdata()) == len(X) - missing


def test_dollar_signs_are_no_mathematics(axes):
    model = Model(shine.parse("a*2.0", NAMES), 1.0, 0.5, headings={"a": "$a$ and $b_$"})
    Front((model,), 0).plot("dependence", X, ax=axes)
    axes.figure.canvas.draw()
    assert axes.get_xlabel() == r"\$a\$ and \$b_\$"


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (("pit",), {}, "kind is 'pit'; it must be one of 'front', 'fit', 'residuals', 'order', 'dependence'"),
        (("fit",), {}, r"compares predictions with data: plot\('fit', X, y\)"),
        (("fit", X), {}, r"compares predictions with data: plot\('fit', X, y\)"),
        (("dependence",), {}, r"needs rows to predict: plot\('dependence', X\)"),
        (("dependence", X), {"features": ["c"]}, "features has 'c'; the formula's features are a, b, größe"),
        (("dependence", X), {"features": [3]}, "features has 3"),
        (("dependence", X), {"index": 0}, "the formula 2.25 uses no feature"),
        (("fit", X, Y), {"index": 2}, "index is 2; the front has the formulas 0 to 1"),
        (("fit", X, Y), {"index": "best"}, "index is 'best'"),
        (("fit", X, Y), {"ax": [None, None]}, "ax has 2 axes, and there is 1 drawing"),
    ],
)
def test_a_drawing_says_what_it_needs(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        FRONT.plot(*arguments, **options)


def test_the_data_are_checked():
    with pytest.raises(DataError, match="X has 50 rows, but y has 5"):
        FRONT.plot("fit", X, Y[:5])


KNOWING = Model(shine.parse("2.31*a + 0.77", ("a", "b", "größe")), 0.01, 0.5).with_data(
    X, 2.31 * X[:, 0] + 0.77 + np.random.default_rng(1).normal(0, 0.1, 50)
)


def test_a_band_is_drawn_along_each_feature_with_the_rows_of_the_fit(axes):
    drawn = Front((KNOWING,), 0).plot("band", ax=axes)
    assert drawn is axes and len(axes.collections) == 2
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["new readings", "value"]


def test_constants_are_drawn_with_their_intervals(axes):
    Front((KNOWING,), 0).plot("constants", ax=axes)
    assert [label.get_text() for label in axes.get_yticklabels()] == ["c0 = 2.31", "c1 = 0.77"]


def test_intervals_without_ends_go_to_the_edge(axes):
    hidden = Model(shine.parse("2.31*a + 0.77 + 0.4*exp(0.01*b)", NAMES), 0.01, 0.5)
    Front((hidden.with_data(X * [1, 0, 0], Y),), 0).plot("constants", ax=axes)
    arrows = [(line.get_marker(), line.get_xdata()[0]) for line in axes.lines if line.get_marker() in ("<", ">")]
    left, right = axes.get_xlim()
    assert arrows == [("<", left), (">", right)] * 3


def test_a_band_needs_readings_with_rows_or_the_rows_of_the_fit():
    with pytest.raises(ValueError, match="shows the readings of rows, too"):
        Front((KNOWING,), 0).plot("band", X)
    with pytest.raises(ValueError, match="needs rows; a model from the folder of a run, or from a pickle, has none"):
        FRONT.plot("band")
    with pytest.raises(DataError, match="does not know the rows"):
        FRONT.plot("constants")
