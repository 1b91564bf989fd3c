"""Scaling: extreme numbers are divided by powers of two, and formulas get the factors back."""

import numpy as np
import pytest

import shine
from shine.data.datasets.dataset import Dataset
from shine.lang.interpret import evaluate
from shine.lang.parse import parse
from shine.search.problem.scaling import Scaling, without_line

RNG = np.random.default_rng(0)
X = RNG.uniform(1, 5, (50, 3))
Y = X[:, 0] * X[:, 1] + X[:, 2]


def dataset(columns=(1.0, 1.0, 1.0), target=1.0, weights=None):
    return Dataset.from_arrays(X * np.array(columns), Y * target, sample_weight=weights)


@pytest.mark.parametrize("scale", [1.0, 6.6e-34, 3e8, 6e23, 1e-35, 1e35])
def test_numbers_of_physics_stay_as_they_are(scale):
    data = dataset((scale, 1.0, 1 / scale), scale)
    scaling = Scaling.of(data)
    assert not scaling
    assert scaling.applied(data) is data


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e160, 1e300, 5e-324])
def test_extreme_numbers_come_near_one_and_no_bit_of_them_changes(scale):
    data = Dataset.from_arrays(np.rint(X) * np.array([scale, 1.0, scale / 3]), np.rint(Y) * scale)
    scaled = Scaling.of(data).applied(data)
    assert np.array_equal(scaled.columns[1], data.columns[1])
    for own, other in ((scaled.columns[0], data.columns[0]), (scaled.columns[2], data.columns[2])):
        if other.any():
            assert 0.1 < np.abs(own).max() <= 1
            exponents = np.frexp(own)[1] - np.frexp(other)[1]
            assert len(set(exponents[other != 0].tolist())) == 1
            assert np.array_equal(np.frexp(own)[0], np.frexp(other)[0])
    assert 0.1 < np.abs(scaled.target).max() <= 1


@pytest.mark.parametrize("scale", [1e-300, 1e200, 1.7e308])
def test_extreme_weights_are_normalized_and_need_no_scaling(scale):
    data = dataset(weights=np.linspace(0.5, 1, 50) * scale)
    assert 0.1 < data.weights.max() <= 1
    assert data.weights / data.weights.max() == pytest.approx(np.linspace(0.5, 1, 50))
    assert not Scaling.of(data)


@pytest.mark.parametrize("formula", ["x0", "x0*x1 + x2", "sqrt(x0)/x1", "exp(x0 - x2)*3 - 1", "2.5", "sin(x0)**2"])
@pytest.mark.parametrize("scales", [(1e200, 1.0, 1e200, 1e-200), (1e-300, 5e-324, 1.0, 1e300)])
def test_a_formula_written_for_the_given_data_keeps_its_values(formula, scales):
    data = Dataset.from_arrays(np.rint(X) * np.array(scales[:3]), np.rint(Y) * scales[3])
    scaling = Scaling.of(data)
    scaled, tree = scaling.applied(data), parse(formula, data.features)
    expected = np.ldexp(evaluate(tree, list(scaled.columns)), scaling.target)
    assert np.allclose(evaluate(scaling.leaving(tree, data), list(data.columns)), expected, rtol=1e-11)
    back = scaling.entering(scaling.leaving(tree, data))
    assert np.allclose(evaluate(back, list(scaled.columns)), evaluate(tree, list(scaled.columns)), rtol=1e-10)


def test_losses_in_units_of_the_target_stay_finite():
    scaling = Scaling({}, 300)
    assert scaling.loss(2.0, 1) == 2.0 * 2.0**300
    assert scaling.loss(2.0, 0) == 2.0
    assert Scaling({}, 700).loss(1.0, 2) == np.finfo(float).max
    assert Scaling({}, -700).loss(1.0, 2) == 0.0


LAWS = {
    "quotient": lambda x: x[:, 0] / x[:, 2],
    "sum of alike": lambda x: x[:, 0] + 2 * x[:, 1],
}


@pytest.mark.parametrize(
    ("law", "scale"), [("quotient", 1e153), pytest.param("sum of alike", 1e-100, marks=pytest.mark.slow)]
)
def test_a_law_is_found_at_any_scale(law, scale):
    x = X * scale
    y = LAWS[law](x)
    y = y / np.abs(y).max() * 10.0 ** RNG.uniform(-200, 200)
    result = shine.evolve(x, y, seed=0, population=200, generations=3, seconds=30, threads=1, seeding_members=3000)
    assert result.best.r2 > 1 - 1e-12
    assert np.allclose(result.predict(x), y, rtol=1e-9)
    # Constants beyond 2^500 are not merged.
    assert result.best.complexity <= 13


@pytest.mark.slow
@pytest.mark.parametrize("sign", [1, -1])
def test_a_front_has_no_formula_whose_values_leave_the_range(sign):
    x = np.append(RNG.uniform(0.5, 0.9, 30), 1.0)
    y = sign * np.append(np.ldexp(x[:-1], 1023) * 2, np.finfo(np.float64).max)
    front = shine.evolve(x[:, None], y, seed=0, population=50, generations=1, seconds=None, threads=1).front
    assert all(np.isfinite(model.predict(x[:, None])).all() for model in front)


def test_progress_is_reported_in_the_units_of_the_data():
    seen = []
    x, y = X * 1e100, Y * 1e-100
    shine.evolve(
        x, y, seed=0, population=100, generations=1, seconds=20, threads=1, seeding_members=500, loss="rmse",
        report=seen.append,
    )  # fmt: skip
    last = seen[-1]
    assert 0 <= last.best_loss < 1e-99
    tree = last.front.tree(len(last.front) - 1)
    values = evaluate(tree, list(x.T))
    # With its best slope and intercept, as the search judges individuals.
    slope, intercept = np.polyfit(values / np.abs(values).max(), y * 1e100, 1)
    fitted = (slope * values / np.abs(values).max() + intercept) * 1e-100
    assert np.sqrt(np.mean(((fitted - y) * 1e100) ** 2)) * 1e-100 == pytest.approx(last.best_loss, rel=1e-3, abs=1e-112)


@pytest.mark.slow
def test_guesses_are_formulas_of_the_given_data():
    x, y = X * 1e100, np.sin(X[:, 0]) + X[:, 1] ** 3
    result = shine.evolve(
        x, y, seed=0, population=50, generations=1, seconds=20, threads=1, seeding=0.0, linear_scaling=False,
        guesses=["sin(x0*1e-100) + (x1*1e-100)*(x1*1e-100)*(x1*1e-100)"], primitives=["add", "mul", "sin"],
    )  # fmt: skip
    assert min(model.loss for model in result.front) < 1e-20


@pytest.mark.parametrize(
    ("formula", "most"),
    [
        ("2.5*x0", 3), ("2.5*x0 + 1.5", 5), ("x0 + 1.5*x1", 7), 
        ("-(1.5*x0) - 2.5", 6), ("max(1.5*x0, 2.5*x1)", 7), ("sin(1.5*x0)", 6), ("sqrt(2.5*x0 + 1.25*x1)", 10),
    ],
)  # fmt: skip
@pytest.mark.parametrize("scales", [(1e300, 1e300, 1e250), (1e200, 1.0, 1e160), (1, 1, 1e-300)])
def test_constants_take_up_factors_so_that_formulas_stay_small(formula, most, scales):
    *columns, target = scales
    data = Dataset.from_arrays(X[:, :2] * columns, Y * target)
    scaling = Scaling.of(data)
    tree = parse(formula, ["x0", "x1"])
    written = scaling.leaving(tree, data)
    scaled = scaling.applied(data)
    expected = np.ldexp(evaluate(tree, list(scaled.columns)), scaling.target)
    assert evaluate(written, list(data.columns)) == pytest.approx(expected, rel=1e-11, abs=0)
    assert written.size <= most


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        ("2.0*sin(a) + 1.0", "sin(a)"),
        ("1.0 - 2.0*sin(a)", "sin(a)"),
        ("sin(a)/2.0 - 1.0", "sin(a)"),
        ("sin(a) + b", "sin(a) + b"),
        ("2.0/a", "2.0/a"),
        ("a", "a"),
    ],
)
def test_a_line_is_taken_off(text, bare):
    assert without_line(parse(text, ("a", "b"))) == parse(bare, ("a", "b"))
