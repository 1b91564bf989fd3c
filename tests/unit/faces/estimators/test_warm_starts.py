"""A second fit goes on with what it can use of the first one's formulas, whatever changed between them."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.markers import mostly_slow

from shine.estimators import SymbolicRegressor

X = np.random.default_rng(0).uniform(1, 5, (40, 2))
Y = X[:, 0] / X[:, 1] + X[:, 0] ** 2
QUICK = {"generations": 1, "population_size": 30, "max_time": 5, "random_state": 0, "settings": {"seeding": 0.0}}


def first(**parameters):
    return SymbolicRegressor(warm_start=True, guesses=["x0/x1 + x0**2", "x0"], **QUICK | parameters)


CHANGES = [{"max_size": 1}, {"max_size": 3}, {"max_depth": 1}, {"primitives": ["add"]}]


@pytest.mark.slow
@pytest.mark.parametrize("scale", mostly_slow([1.0, 1e60, 1e-60], fast=[1e60]))
@pytest.mark.parametrize("change", mostly_slow(CHANGES, fast=CHANGES[:1]))
def test_limits_and_primitives_may_change(scale, change):
    model = first().fit(X * scale, Y)
    model.set_params(guesses=(), **change).fit(X * scale, Y)
    assert np.isfinite(model.predict(X * scale)).all()


@pytest.mark.slow
def test_a_template_may_come_change_and_go():
    model = first().fit(X, Y).set_params(guesses=())
    for template in ("f(x0) + g(x1)", "h(x0, x1)", None):
        assert np.isfinite(model.set_params(template=template).fit(X, Y).predict(X)).all()


def test_a_guess_of_the_users_still_has_to_keep_the_limits():
    with pytest.raises(ValueError, match="guesses: initial individual 0 has 3 nodes, and max_size is 1"):
        SymbolicRegressor(guesses=["x0 + x1"], max_size=1, primitives=["add"], **QUICK).fit(X * 1e60, Y)
