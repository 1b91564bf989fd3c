"""Templates solved for their unknown function."""

from __future__ import annotations

import numpy as np
import pytest

import shine
from shine.data.user_data import TrainingArrays
from shine.lang.parse import parse
from shine.search.kinds.template import seeding
from shine.search.kinds.template.problem import prepared_template
from shine.search.kinds.template.rough_fits import RoughFit
from shine.search.kinds.template.solving import Known, solved, solved_for_all
from shine.search.problem.settings import SearchSettings
from shine.search.problem.template_data import with_template

A, B = np.random.default_rng(0).uniform(1, 3, (2, 200))


def f(a, b):
    return a * np.sqrt(b) + 1 / a


def task_of(text, y, parameters=None):
    law = shine.template(text, parameters=parameters or {})
    columns, names = [A, B, np.arange(200) % 4], ["a", "b", "g"]
    dataset = with_template(law, TrainingArrays(np.column_stack(columns), y, names, names))
    return prepared_template(dataset, SearchSettings(template=law))


def values_of(text, y):
    task = task_of(text, y)
    return solved(task.composition, task.dataset, task.composition.template.unknowns[0].name, Known())


def line_is_open(text, parameters=None):
    task = task_of(text, A, parameters)
    numbers = {each.name: np.full(200, 2.0) for each in task.composition.parameters}
    return solved(task.composition, task.dataset, "f", Known(numbers)).up_to_line


SOLVED = {
    "exp(f(a, b))/b": (np.exp(f(A, B)) / B, f(A, B)),
    "log(f(a, b)*b) - a": (np.log(f(A, B) * B) - A, f(A, B)),
    "a - b/f(a*b, b)": (A - B / f(A * B, B), f(A * B, B)),
    "3 - sqrt(-(-f(a, b)))*2": (3 - 2 * np.sqrt(f(A, B)), f(A, B)),
    "inv(2*f(a, 2) + b)": (1 / (2 * f(A, 2) + B), f(A, 2)),
}


@pytest.mark.parametrize("text", SOLVED)
def test_a_template_without_parameters_is_solved(text):
    y, expected = SOLVED[text]
    found = values_of(text, y)
    assert not found.up_to_line
    np.testing.assert_allclose(found.rows.target, expected, rtol=1e-9)


def test_arguments_become_columns():
    found = values_of("f(a*b, 2)", f(A * B, 2))
    np.testing.assert_allclose(found.rows.columns, [A * B, np.full(200, 2.0)])


@pytest.mark.parametrize("text", ["c*f(a, b) + d", "(f(a, b)/c - 2)*d - 1", "-f(a, b) + c"])
def test_factors_and_summands_of_the_whole_leave_a_line_open(text):
    found = values_of(text, f(A, B))
    assert found.up_to_line
    assert abs(np.corrcoef(found.rows.target, f(A, B))[0, 1]) > 1 - 1e-12


@pytest.mark.parametrize("text", [
    "f(a, b)*c*b", "exp(c*f(a, b))", "c*sqrt(f(a, b)) + d", "f(a) + f(b)", "f(a) + h(b)", "D(f, 0)(a)", "f(a), f(b)",
    "f(a, b)**2", "sin(f(a, b))", "f(c*a)", "k[g]*f(a)",
])  # fmt: skip
def test_other_templates_are_not_solved(text):
    y = np.column_stack([A, B]) if "), f" in text else A
    assert values_of(text, y) is None


@pytest.mark.parametrize("text", [
    "c[g]*f(a) + d[g]", "d - f(a)/c", "exp(c[g]*f(a) + d[g])*b", "(f(a) + d[g])*c[g]", "2*(c*f(a)) + d",
])  # fmt: skip
def test_known_parameters_take_up_a_line(text):
    assert line_is_open(text)


@pytest.mark.parametrize("text", [
    "c[g]*f(a)", "f(a) + d[g]", "c[g]*f(a) + d", "b*f(a)*c + d", "(f(a) + b)*c + d", "c*exp(f(a)) + d", "c*f(a) + d*b",
    "c*f(a) + d + sin(d)", "c/f(a) + d",
])  # fmt: skip
def test_other_parameters_take_up_no_line(text):
    assert not line_is_open(text)


def test_a_parameter_with_bounds_takes_up_no_line():
    assert line_is_open("c[g]*f(a) + d[g]") and not line_is_open("c[g]*f(a) + d[g]", {"c": (0, None)})


@pytest.mark.parametrize("text", ["f(a) + f(b)", "sin(f(a)) + f(b)*k", "D(f, 0)(a) + f(b)"])
def test_without_an_inverse_a_rough_function_is_tabulated_where_it_is_called(text):
    task = task_of(text, A)
    fit = RoughFit({"f": parse("square(x) + 1.0", ("x",))}, np.ones(task.composition.n_leaves), 0.0)
    (values,) = solved_for_all(task.composition, task.dataset, fit)
    np.testing.assert_array_equal(np.sort(values.rows.columns[0]), np.sort(np.concatenate([A, B])))
    np.testing.assert_allclose(values.rows.target, values.rows.columns[0] ** 2 + 1, rtol=1e-12)


def test_rows_without_an_inverse_are_left_out():
    y = np.where(np.arange(200) < 20, -1.0, np.exp(f(A, B)))
    assert values_of("exp(f(a, b))", y).rows.n_rows == 180
    assert values_of("exp(f(a, b))", -np.abs(y)) is None


@pytest.mark.slow
def test_a_law_that_seeding_finds_needs_no_generation():
    y = np.exp(f(A, B)) / B
    found = shine.evolve(np.column_stack([A, B]), y, features=["a", "b"], template="exp(f(a, b))/b", generations=1,
                         seconds=None, threads=1, population=50)  # fmt: skip
    assert found.best.loss < 1e-20 * np.var(y)


@pytest.mark.slow
def test_a_constant_that_a_parameter_makes_redundant_goes():
    y = 3 * f(A, B) + 2
    found = shine.evolve(np.column_stack([A, B]), y, features=["a", "b"], template="c*f(a, b) + d", generations=1,
                         seconds=None, threads=1, population=50)  # fmt: skip
    assert found.best.constants == pytest.approx({"c": 3, "d": 2}) and found.best.counts[1] <= 3


def test_the_evolution_comes_before_rough_functions(monkeypatch):
    called = []
    monkeypatch.setattr(seeding, "rough_functions", lambda *given: called.append(given) or [])
    x, g = np.random.default_rng(0).uniform(1, 3, 90), np.arange(90) % 3
    given = {"features": ["x", "g"], "template": "m[g]*f(x)", "seconds": None, "threads": 1, "population": 100}
    noisy = np.exp(x) * (1 + g) + np.random.default_rng(1).normal(0, 0.1, 90)
    shine.evolve(np.column_stack([x, g]), noisy, generations=3, **given)
    assert not called
    # A larger share is earned by fewer individuals.
    shine.evolve(np.column_stack([x, g]), noisy, generations=3, seeding=0.999, **given)
    assert len(called) == 1


@pytest.mark.slow
def test_rough_functions_clear_the_way_for_parameters_by_group():
    rng = np.random.default_rng(0)
    t, g = rng.uniform(0, 6, 160), rng.integers(0, 4, 160)
    height, shift = np.array([1, 2, 3, 5])[g], np.array([1.5, 2.5, 3.5, 2])[g]
    y = height / (1 + np.exp(-1.7 * (t - shift)))
    found = shine.evolve(np.column_stack([t, g]), y, features=["t", "g"], template="K[g]*f(t - s[g])", generations=20,
                         seconds=None, threads=1, population=500, seeding=0.95)  # fmt: skip
    assert found.best.loss < 1e-20 * np.var(y)
