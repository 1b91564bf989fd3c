"""The plots with Matplotlib show their data."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from unit.formats.page.cases import found

from shine.base.errors import MissingExtraError
from shine.data.datasets.dataset import Dataset
from shine.formats.page import plots

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
import matplotlib.pyplot  # noqa: E402

X = np.random.default_rng(0).normal(size=(40, 2))
DATA = Dataset.from_arrays(X, X[:, 0] * X[:, 1], features=["a", "b"])
RESULT = found(["1.0", "a + b*b", "a*b + 0.1*a"], DATA)


@pytest.fixture
def axes():
    from matplotlib.figure import Figure

    return Figure().add_subplot()


def test_the_front_is_drawn_on_logarithmic_losses_with_the_chosen_one_marked(axes):
    assert plots.pareto(RESULT.front, axes, best_index=1) is axes
    points, chosen = axes.lines[-2], axes.lines[-1]
    assert axes.get_yscale() == "log"
    np.testing.assert_array_equal(points.get_ydata(), [model.loss for model in RESULT.front])
    assert chosen.get_xdata()[0] == RESULT.front[1].complexity
    axes.figure.canvas.draw()


def test_fits_are_drawn_row_by_row(axes):
    plots.predictions(RESULT.best, DATA, axes)
    np.testing.assert_array_equal(axes.lines[0].get_xdata(), DATA.target)
    axes.clear()
    plots.residuals(RESULT.best, DATA, axes)
    line = axes.lines[0]
    np.testing.assert_allclose(line.get_xdata() + line.get_ydata(), DATA.target)


@pytest.mark.parametrize(
    ("draw", "labels"),
    [
        (plots.predictions, ("measured heat flux [kW]", "predicted heat flux [kW]")),
        (plots.residuals, ("predicted heat flux [kW]", "residual of heat flux [kW]")),
        (plots.order, ("row", "residual of heat flux [kW]")),
        (lambda *given: plots.dependence(*given[:2], "a", *given[2:]), ("a", "heat flux [kW]")),
    ],
)
def test_axes_name_the_target(axes, draw, labels):
    draw(RESULT.best, DATA, axes, "heat flux [kW]")
    assert (axes.get_xlabel(), axes.get_ylabel()) == labels
    axes.clear()
    draw(RESULT.best, DATA, axes)
    assert "heat flux" not in axes.get_xlabel() + axes.get_ylabel()


def test_without_matplotlib_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingExtraError, match="pip install"):
        plots.pareto(RESULT.front)


def test_calibration_compares_probabilities_with_shares(axes):
    odds = np.linspace(-4, 4, 1000)
    classes = np.float64(np.random.default_rng(0).random(1000) < 1 / (1 + np.exp(-odds)))
    data = Dataset.from_arrays(odds[:, None], classes, features=["a"])
    plots.calibration(found(["1.0*a"], data).best, data, axes)
    predicted, shares = axes.lines[0].get_data()
    assert len(predicted) == 10
    np.testing.assert_allclose(shares, predicted, atol=0.12)


def test_a_grid_has_at_most_three_drawings_in_a_row():
    axes = plots.grid(4)
    assert len(axes) == len(axes[0].figure.axes) == 4
    assert axes[3].get_subplotspec().rowspan.start == 1
    matplotlib.pyplot.close(axes[0].figure)
