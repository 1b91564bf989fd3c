"""`SymbolicDynamics` of fields: the laws that it finds in noise, what it does with them, what it refuses."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from helpers.known_fields import burgers, known_fields, with_noise

import shine
from shine.base.errors import DataError, ExportError
from shine.search.dynamics.fields import run

pytestmark = pytest.mark.timeout(300)
"""The searches end by themselves after some 20 s of the processor."""

ARITHMETIC = ["add", "sub", "mul", "div"]
X, T = np.linspace(-2, 8, 128), np.linspace(0, 6, 101)


def estimator(**options):
    return shine.SymbolicDynamics(kind="pde", primitives=ARITHMETIC, random_state=0, **options)


@pytest.fixture(scope="module")
def shocks():
    return estimator(max_time=100).fit(with_noise(burgers(X, T), 0.01), T, space=X)


@pytest.mark.slow
def test_burgers_equation_is_found_in_noise(shocks):
    assert set(shocks.best_.equations[0].tree.used_parameters) == {"u", "u_x", "u_xx"}
    values = np.random.default_rng(1).uniform(-1, 1, (4, 50))
    found = shocks.best_.equations[0].kernel(*values)
    np.testing.assert_allclose(found, 0.1 * values[2] - values[0] * values[1], atol=0.01)
    low, high = shocks.conf_int()["u_t[0]"]
    assert low < high
    assert "u_t = " in repr(shocks) and "kept back" in shocks.front_.reason


@pytest.mark.slow
def test_other_shocks_move_as_the_law_says(shocks):
    wanted = burgers(np.arange(-8, 8, X[1] - X[0]), T + 1)  # nothing happens at the edges
    assert shocks.score(burgers(X - 0.7, T + 2), T, space=X) > 0.999
    found = shocks.simulate(wanted[0], T[:20])
    np.testing.assert_allclose(found, wanted[:20], atol=0.02)
    rates = shocks.predict(wanted)
    assert rates.shape == wanted.shape and np.isnan(rates[0]).all()
    inner = np.isfinite(rates)
    slopes = np.gradient(wanted, T[1], axis=0)
    assert np.corrcoef(rates[inner], slopes[inner])[0, 1] > 0.99


@pytest.mark.slow
def test_of_exact_equations_the_shortest_is_chosen():
    angle, times = np.linspace(0, 2 * np.pi, 48, endpoint=False), np.linspace(0, 1, 41)[:, None]
    field = np.exp(-0.5 * times) * np.sin(angle) + 0.5 * np.exp(-2 * times) * np.cos(2 * angle)
    model = estimator(periodic=True, max_time=10).fit(field, times[:, 0], space=angle[1])
    assert str(model.best_).splitlines()[0] == "u_t = 0.5*u_xx"


@pytest.mark.slow
@pytest.mark.parametrize("walks", [False, True])
def test_in_noise_nothing_is_found(walks):
    noise = np.random.default_rng(0).standard_normal((48, 40))
    lost = estimator(max_time=6).fit(np.cumsum(noise, axis=0) if walks else noise, 0.1)
    assert not lost.found_ and lost.front_.reason.startswith("nothing was found: the error of the weak form")
    with pytest.raises(DataError, match="nothing was found"):
        lost.predict(noise)
    assert lost.predict(noise, index=0).shape == noise.shape


@pytest.mark.slow
def test_copies_know_the_law(shocks):
    for other in (pickle.loads(pickle.dumps(shocks)), copy.deepcopy(shocks)):
        assert other.best_.lines() == shocks.best_.lines()
        np.testing.assert_array_equal(other.predict(burgers(X, T)), shocks.predict(burgers(X, T)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda model: model.conserved(), "conserved is for trajectories"),
        (lambda model: model.next_experiment(), "next_experiment is for trajectories"),
        (lambda model: model.simulate({"v": X}, T), "x0 has v; give a mapping with the fields u"),
        (lambda model: model.simulate(burgers(X, T), T), r"x0 has a field of shape \(101, 128\); 1 axes"),
        (lambda model: model.simulate(X, T, return_std=True), "no standard deviations"),
    ],
)
def test_what_fields_do_not_have_is_told(shocks, call, message):
    with pytest.raises(DataError, match=message):
        call(shocks)


STILL = np.linspace(-8, 8, 97)
"""Nothing happens at the edges."""


def known(monkeypatch, x=STILL, t=T[:40], *, two=False, **options):
    """A model of shocks whose law is known at once; with `two`, along the first of two axes."""
    law = "0.2*u_xx - 0.9*u*u_x" + (" + 0.3*u_yy" if two else "")
    monkeypatch.setattr(run, "find_fields", known_fields(law))
    field = burgers(x, t + 1)
    if two:
        field = np.repeat(field[:, :, None], 33, axis=2)
    return estimator(**options).fit(field, t, space=x if not two else [x, 0.1])


def test_plots_of_fields(monkeypatch):
    pytest.importorskip("matplotlib").use("Agg")
    model = known(monkeypatch)
    profiles = model.plot()
    assert profiles.get_lines()[1].get_label() == "t = 0"
    np.testing.assert_allclose(profiles.get_lines()[0].get_xdata(), STILL)
    last = profiles.get_lines()[-1]
    np.testing.assert_allclose(last.get_ydata(), burgers(STILL, T[39:40] + 1)[0], atol=0.02)
    (image,) = model.plot("residuals").collections
    assert np.abs(image.get_array()).max() < 0.02
    with pytest.raises(ValueError, match="kind is 'phase'; it must be one of 'trajectories', 'residuals'"):
        model.plot("phase")


PROGRAMS = pytest.mark.parametrize(
    ("to", "needs"), [("python", "scipy"), pytest.param("jax", "diffrax", marks=pytest.mark.slow)]
)


@PROGRAMS
def test_a_program_integrates_a_field_as_the_model_does(monkeypatch, to, needs):
    pytest.importorskip(needs)
    model = known(monkeypatch)
    program = {"__name__": "program"}
    exec(model.export(to, "rates"), program)
    start = burgers(STILL, T[:1] + 1)
    np.testing.assert_allclose(program["simulate"](start, T[:40])[:, 0], model.simulate(start[0], T[:40]), atol=1e-5)
    found = program["rates"](np.ones((4, 5)))
    np.testing.assert_allclose(found, model.best_.equations[0].kernel(*np.ones((4, 5)))[None])


def test_equations_of_fields_for_mathematics(monkeypatch):
    sympy = pytest.importorskip("sympy")
    model = known(monkeypatch)
    assert model.latex(precision=1).splitlines()[1].startswith(r"\partial_t u &= ")
    (equation,) = model.sympy()
    t, x = sympy.symbols("t x", real=True)
    wave = sympy.exp(x - t)
    numbers = sorted(float(each) for each in equation.rhs.atoms(sympy.Float))
    value = equation.rhs.subs(sympy.Function("u")(t, x), wave).doit().subs({t: 0, x: 0})
    assert abs(float(value) - sum(numbers)) < 1e-9
    assert equation.lhs == sympy.Function("u")(t, x).diff(t)
    with pytest.raises(ExportError, match="there is no export c of fields; use one of python, jax, sympy, latex"):
        model.export("c")


FIELD = burgers(X, T)


@pytest.mark.parametrize(
    ("x", "t", "options", "message"),
    [
        (FIELD[0], T, {}, r"field 'u' has shape \(128,\); \(n_times, n_points\)"),
        (FIELD[:20], T[:20], {}, r"shape \(20, 128\); at least 32 times and points, in this order"),
        (FIELD[..., None], T, {}, "at least 32 times and points, in this order"),
        (FIELD.T, T, {}, "t has 101 times, and the field 128; its first axis is the time"),
        (np.where(FIELD > 1.2, np.nan, FIELD), T, {}, "not finite at"),
        (np.ones((40, 40)), 1.0, {}, "is 1 everywhere; leave it out"),
        (FIELD * 1e120, T, {}, "values above 1e.100; give it in other units"),
        (FIELD, T**2, {"space": X}, "t must have equal steps"),
        (FIELD, T, {"space": X[:5]}, "space has 5 points, and the field 128"),
        (FIELD, T, {"space": -1.0}, "space must be a step above 0"),
        (FIELD, T, {"run": "id"}, "a field has no run; leave it out"),
        ({"u": FIELD, "v": FIELD[:, :64]}, T, {}, "field 'v' has shape"),
        ({}, T, {}, "x has no field"),
        (FIELD, T, {"states": ["a", "b"]}, "states has the name of one field"),
    ],
)
def test_fields_that_cannot_be_used_get_one_line(x, t, options, message):
    with pytest.raises(DataError, match=message):
        estimator().fit(x, t, **options)


def test_settings_of_trajectories_are_refused():
    with pytest.raises(DataError, match="rates of fields do not depend on the time"):
        estimator(autonomous=False).fit(FIELD, T)
    with pytest.raises(ValueError, match="derivatives must be a whole number from 1 to 4, is 7"):
        estimator(derivatives=7).fit(FIELD, T)
    with pytest.raises(ValueError, match="order=2 is for kind='ode'"):
        estimator(order=2).fit(FIELD, T)
    with pytest.raises(ValueError, match="lags are for maps"):
        estimator(lags=1).fit(FIELD, T)
