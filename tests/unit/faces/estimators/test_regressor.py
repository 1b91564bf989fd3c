"""`SymbolicRegressor`: its results, its displays, and its limits."""

from __future__ import annotations

import math
import signal
import sys

import numpy as np
import pandas
import pytest
from helpers.markers import mostly_slow

import shine
from shine.base.errors import InterruptedFitWarning
from shine.estimators import SymbolicRegressor

RNG = np.random.default_rng(0)
X = RNG.uniform(1, 5, (100, 2))
A, B = X.T
HARD = np.sin(3 * A) * B + np.log(B)
QUICK = {
    "population_size": 60,
    "generations": 4,
    "max_time": None,
    "primitives": ("add", "sub", "mul"),
    "random_state": 0,
    "n_jobs": 1,
    "settings": {"seeding": 0.0},
    "noise": "absolute",
}


def quick(**parameters):
    return SymbolicRegressor(**QUICK | parameters)


@pytest.fixture(scope="module")
def product():
    return quick(guesses=["x0*x1"]).fit(X, A * B)


@pytest.fixture(scope="module")
def hard():
    return quick().fit(X, HARD)


@pytest.mark.slow
def test_a_formula_is_found_and_told():
    model = quick(population_size=300, generations=20).fit(X, A * B)
    assert model.best_.expression in {"x0*x1", "x1*x0"}
    assert model.get_best() is model.best_ is model.front_.best
    assert model.score(X, A * B) == 1.0
    assert model.stopped_by_ == "loss"
    assert model.predict([[3.0, 5.0]]).tolist() == [15.0]


def test_formulas_come_in_the_forms_that_others_read(product):
    namespace: dict = {}
    exec(product.python(), namespace)
    assert namespace["f"](3.0, 5.0) == 15.0
    assert "x_{0}" in product.latex()
    assert product.latex(0) == product.front_[0].latex() != product.latex()


def test_a_formula_is_an_expression_of_sympys(product):
    pytest.importorskip("sympy")
    formula = product.sympy()
    values = {symbol: {"x0": 3, "x1": 5}[symbol.name] for symbol in formula.free_symbols}
    assert float(formula.subs(values)) == 15.0


def test_the_table_has_the_columns_that_users_of_pysr_know(hard):
    table = hard.equations_
    assert isinstance(table, pandas.DataFrame)
    assert list(table.columns) == ["complexity", "loss", "score", "expression", "equation"]
    assert table["expression"].tolist() == [each.expression for each in hard.front_]
    assert table["equation"].tolist() == [each.formula() for each in hard.front_]
    falls = -np.diff(np.log(table["loss"])) / np.diff(table["complexity"])
    assert table["score"].tolist() == pytest.approx([0.0, *falls])


def test_without_pandas_the_table_is_a_light_one(monkeypatch, hard):
    expected = hard.equations_
    monkeypatch.setitem(sys.modules, "pandas", None)
    table = hard.equations_
    assert list(table) == ["complexity", "loss", "score", "expression", "equation"]
    assert table["equation"] == expected["equation"].tolist()
    assert repr(table) == repr(hard.front_)


def test_it_looks_like_scikit_learn_before_the_fit_and_like_a_table_after(hard):
    assert repr(quick()).startswith("SymbolicRegressor(generations=4")
    lines = repr(hard).splitlines()
    assert (lines[0], lines[-1]) == ("SymbolicRegressor.equations_ = [", "]")
    *table, reason = lines[2:-1]
    assert [position for position, line in enumerate(table) if line.startswith(">>>")] == [hard.front_.best_index]
    assert len(table) == len(hard.front_)
    assert reason == f">>> {hard.front_.reason}"


def test_notebooks_show_the_parameters_before_the_fit_and_the_formula_after(product):
    assert "estimator" in quick()._repr_html_()
    assert quick()._repr_latex_() is None
    html = product._repr_html_()
    assert html.count(product.best_._repr_html_()) == 1
    assert html.count("<tr") == 1 + len(product.front_)
    assert product._repr_latex_() == f"$${product.latex()}$$"
    assert set(product._repr_mimebundle_()) == {"text/plain", "text/html", "text/latex"}


@pytest.mark.slow
@pytest.mark.parametrize("loss", mostly_slow(["mse", "mae"], fast=["mse"]))
def test_every_target_has_its_formula(loss):
    targets = np.column_stack([A * B, A + B, A])
    model = quick(population_size=300, generations=20, loss=loss).fit(X, targets)
    assert model.predict(X) == pytest.approx(targets, rel=1e-12)
    assert model.predict(X).shape == (100, 3)
    assert len(model.front_) == len(model.best_) == len(model.equations_) == len(model.latex()) == 3
    assert model.predict(X, index=[0, -1, -1])[:, 0].tolist() == model.front_[0][0].predict(X).tolist()
    assert model.predict(X, index=0) == pytest.approx(
        np.column_stack([front[0].predict(X) for front in model.front_]), rel=1e-15
    )
    assert repr(model).count("SymbolicRegressor.equations_ of output") == 3
    with pytest.raises(ValueError, match="index has 2 positions; there are 3 fronts"):
        model.predict(X, index=[0, 0])


@pytest.mark.slow
def test_the_front_can_be_predicted_with_and_chosen_from():
    model = quick().fit(X, HARD)
    for position, each in enumerate(model.front_):
        assert model.predict(X, index=position).tolist() == each.predict(X).tolist()
    choices = {
        name: quick(model_selection=name).fit(X, HARD).front_.best_index for name in ("best", "accuracy", "score")
    }
    losses = [each.loss for each in model.front_]
    assert choices["accuracy"] == losses.index(min(losses)) == len(losses) - 1
    assert choices["score"] == int(model.equations_["score"].argmax())
    assert quick(model_selection=lambda front: -1).fit(X, HARD).front_.best_index == len(losses) - 1


def test_ctrl_c_leaves_what_was_found():
    def interrupt(progress):
        if progress.generation == 2:
            signal.raise_signal(signal.SIGINT)

    with pytest.warns(InterruptedFitWarning):
        model = quick(callbacks=interrupt, generations=10**6).fit(X, HARD)
    assert (model.stopped_by_, model.generations_) == ("interrupted", 2)
    assert math.isfinite(model.score(X, HARD))


@pytest.mark.slow
def test_the_time_is_shared_among_the_targets():
    model = quick(max_time=0.4, generations=10**6).fit(X, np.column_stack([HARD, HARD + A]))
    assert model.stopped_by_ == "seconds"
    assert 0.3 < model.seconds_ < 30


@pytest.mark.slow
def test_a_warm_start_goes_on():
    y = np.sqrt(A * B + 3)
    model = quick(warm_start=True).fit(X, y)
    first, evaluations = model.front_[-1].loss, model.evaluations_
    for repetition in range(2, 4):
        model.fit(X, y)
        assert model.front_[-1].loss <= first * (1 + 1e-6)
        assert model.generations_ == 4 * repetition
    assert model.evaluations_ > evaluations
    assert quick().fit(X, y).generations_ == 4


@pytest.mark.slow
def test_a_warm_start_begins_anew_with_other_columns():
    model = quick(warm_start=True).fit(X, A * B)
    assert model.fit(np.column_stack([X, A]), A * B).n_features_in_ == 3


@pytest.mark.slow
def test_units_and_constraints_are_given_by_the_headings_of_the_columns():
    frame = pandas.DataFrame({"mass of it": A, "lambda": B})
    model = quick(population_size=200, units=({"mass of it": "kg", "lambda": "m/s"}, "kg*m/s"))
    assert model.fit(frame, A * B).best_.expression in {"mass_of_it*lambda_", "lambda_*mass_of_it"}
    by_order = quick(population_size=200, units=(["kg", "m/s"], "kg*m/s"))
    assert by_order.fit(frame, A * B).best_.expression == model.best_.expression
    without = quick(constraints={"forbidden": ["lambda"]}).fit(frame, HARD)
    assert not any("lambda" in each.expression for each in without.front_)


def test_the_engine_s_own_errors_come_through():
    with pytest.raises(shine.UnsupportedSyntaxError, match="unknown name 'c'"):
        quick(guesses=["x0 + c"]).fit(X, A)
    with pytest.raises(shine.DataError, match="the target is constant"):
        quick(loss="r2").fit(X, np.ones(100))


@pytest.mark.parametrize("index", [99, -99, "best", 1.5, True, [1, 2, 3], "x" * 100_000])
def test_an_index_that_is_no_position_is_told_with_the_positions(index, product):
    for ask in (lambda: product.predict(X, index=index), lambda: product.latex(index), lambda: product.python(index)):
        with pytest.raises(ValueError, match=r"index (must be a position in the front|has 3 positions)") as e:
            ask()
        assert len(str(e.value)) < 300


@pytest.mark.parametrize(
    ("settings", "columns", "message"),
    [
        ({"template": "f(x0)"}, 1, "objective does not go with a template"),
        ({"executor": 2}, 1, "an objective is called in this process only"),
        ({}, 2, "an objective judges formulas of one target, and y has 2"),
    ],
)
def test_what_does_not_go_with_an_objective_is_told(settings, columns, message):
    X = np.random.default_rng(0).uniform(1, 3, (10, 2))
    with pytest.raises(ValueError, match=message):
        shine.SymbolicRegressor(objective=lambda p: abs(p).max(axis=1), **settings).fit(X, X[:, :columns].squeeze())
