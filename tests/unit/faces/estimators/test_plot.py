"""`plot` of the estimators: a drawing for each front, with data as in `fit`."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from shine.estimators import SymbolicClassifier, SymbolicRegressor, SymbolicTransformer

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
from matplotlib.figure import Figure  # noqa: E402

pandas = pytest.importorskip("pandas")

RNG = np.random.default_rng(0)
X = pandas.DataFrame(RNG.uniform(1, 2, (60, 2)), columns=["my area", "b"])
Y = X["my area"] * X["b"]
OPTIONS = {"population_size": 30, "generations": 1, "primitives": ["add", "mul"], "random_state": 0}
CLASSES = np.array(["low", "mid", "high"])[np.digitize(X["b"], [1.3, 1.6])]


@cache
def one() -> SymbolicRegressor:
    return SymbolicRegressor(**OPTIONS).fit(X, Y)


@cache
def two() -> SymbolicRegressor:
    return SymbolicRegressor(**OPTIONS).fit(X, np.column_stack([Y, X["b"]]))


@cache
def three() -> SymbolicClassifier:
    return SymbolicClassifier(**OPTIONS).fit(X, CLASSES)


@cache
def components() -> SymbolicTransformer:
    return SymbolicTransformer(n_components=1, **OPTIONS).fit(X, Y)


def panels(count: int) -> list:
    return list(Figure().subplots(1, count, squeeze=False).flat)


def test_a_regressor_draws_its_front_by_default():
    (axes,) = panels(1)
    assert one().plot(ax=axes) is axes
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), [model.loss for model in one().front_])


def test_each_target_has_its_drawing():
    axes = panels(2)
    assert two().plot("fit", X, np.column_stack([Y, X["b"]]), ax=axes).tolist() == axes
    assert [each.get_title() for each in axes] == ["output 0", "output 1"]
    np.testing.assert_array_equal(axes[1].lines[0].get_xdata(), X["b"])


def test_each_class_is_drawn_with_its_probability():
    axes = panels(3)
    three().plot("fit", X, CLASSES, ax=axes)
    assert [each.get_title() for each in axes] == ["class high", "class low", "class mid"]
    assert all(0 <= value <= 1 for each in axes for value in each.lines[0].get_ydata())


def test_axes_have_the_names_and_the_units_of_target_and_features():
    model = SymbolicRegressor(**OPTIONS, units=({"my area": "m^2", "b": "m"}, "m^3")).fit(X, Y.rename("room"))
    for kind, data in {"fit": (X, Y), "residuals": (X, Y), "dependence": (X,), "band": ()}.items():
        for axes in np.atleast_1d(model.plot(kind, *data)):
            assert "room [m^3]" in axes.get_xlabel() + axes.get_ylabel()
            assert kind not in ("dependence", "band") or axes.get_xlabel() in ("my area [m^2]", "b [m]")
    assert components().plot("dependence", X, features=["b"]).get_ylabel() == "prediction"


@pytest.mark.parametrize(
    ("model", "kind", "allowed"),
    [(three(), "residuals", "'front', 'fit', 'dependence'"), (components(), "fit", "'front', 'dependence'")],
)
def test_what_makes_no_sense_is_refused(model, kind, allowed):
    with pytest.raises(ValueError, match=f"kind is '{kind}'; it must be one of {allowed}"):
        model.plot(kind, X, Y)


def test_y_has_as_many_columns_as_there_are_targets():
    with pytest.raises(ValueError, match="y has 1 column; the estimator was fitted to 2 targets"):
        two().plot("fit", X, Y)


def test_nothing_is_drawn_before_the_fit():
    with pytest.raises(NotFittedError):
        SymbolicRegressor().plot()
