"""What to measure next: points where the formulas part that the rows leave."""

from __future__ import annotations

import math
import pickle
import re
from dataclasses import replace

import numpy as np
import pytest

import shine
from shine.base.errors import DataError
from shine.data.datasets.preparation import Preparation, PreparedColumn
from shine.lang.parse import parse
from shine.search.models.front import Front
from shine.search.models.measuring.rivals import NONE, Rivals
from shine.search.models.model import Model
from shine.search.models.result import Result

RNG = np.random.default_rng(3)
X = np.linspace(0.2, 2.0, 12)[:, None]
NOISE = RNG.normal(0, 0.03, 12)
LAW = 3 * X[:, 0] / (1 + 0.4 * X[:, 0])


def front(y, *formulas, rows=X, names=("x",), **options):
    """A front of formulas with the losses of their best constants."""
    models = [Model(parse(formula, list(names)), 1.0, 0.5, **options) for formula in formulas]
    basis = models[0].with_data(rows, y).basis
    models = [replace(model, basis=basis) for model in models]
    fitted = [replace(model, loss=model.uncertainty.total / len(y)) for model in models]
    return Front(tuple(fitted), len(models) - 1)


FORMULAS = ("2.1", "1.9*x", "3*x/(0.4*x + 1)", "4.4*(1 - exp(-0.64*x))")


@pytest.fixture(scope="module")
def tied():
    return front(LAW + NOISE, *FORMULAS)


@pytest.fixture(scope="module")
def far(tied):
    """The answer for a box that reaches beyond the rows."""
    return tied.next_measurement({"x": (0, 10)})


@pytest.mark.slow
def test_two_formulas_that_the_rows_do_not_tell_apart_are_measured_where_they_part(far):
    found = far
    assert found.indices == (3, 2) or found.indices == (2, 3)
    assert 4 < found.points[0]["x"] <= 10 and found.used == ("x",)
    assert 0.5 < found.missing <= 1 and 0.6 * found.missing < found.information < found.missing
    assert 0.3 < found.decides < 0.45  # half of what it were if one of them was surely the law
    assert found.weights.sum() == pytest.approx(1)
    assert abs(found.values[0, 0] - found.values[1, 0]) > 2 * found.deviations.max()
    assert any(note.startswith("beyond the rows, whose x is 0.2 to 2") for note in found.notes)


@pytest.mark.slow
def test_within_the_rows_several_readings_tell_more_than_one(tied):
    one, five = (tied.next_measurement(n=n) for n in (1, 5))
    assert len(five.points) == 5 and one.information < five.information < five.missing
    assert all(0.2 <= point["x"] <= 2 for point in five.points) and not five.notes


def test_repeated_points_are_counted_in_the_text(tied):
    found = tied.next_measurement({"x": 8}, n=3)
    assert found.points == ({"x": 8.0},) * 3 and found.places == ["x = 8 (3 times)"]
    assert str(found).startswith("measure at x = 8 (3 times): together they decide")


def test_a_pickle_gives_the_same_answer(tied, far):
    assert pickle.loads(pickle.dumps(tied)).next_measurement({"x": (0, 10)}).plain() == far.plain()


def test_a_front_from_a_file_gives_the_same_answer(tied, far):
    known = Front(tuple(replace(model, basis=None, known=model.uncertainty) for model in tied), tied.best_index)
    found = known.next_measurement({"x": (0, 10)})
    assert found.points == far.points and found.weights == pytest.approx(far.weights, rel=1e-3)


def test_the_loss_of_a_file_may_be_a_root(tied):
    known = tuple(replace(model, basis=None, known=model.uncertainty, loss=math.sqrt(model.loss)) for model in tied)
    assert Rivals.of(known).weights == pytest.approx(Rivals.of(tied.models).weights, rel=1e-3)


def test_formulas_that_are_the_same_in_the_box_count_once():
    same = front(LAW + NOISE, "2.1", "3*x/(0.4*x + 1)", "3/(0.4 + 1/x)", "7.5 - 7.5/(0.4*x + 1)")
    found = same.next_measurement({"x": (0.1, 10)})
    assert len(found.indices) == 1 and found.missing == 0 and found.information == 0 and found.decides == 1 - NONE
    assert "the rows leave one formula" in str(found)


def test_one_formula_is_tested_where_nobody_measured():
    found = front(1.9 * X[:, 0] + NOISE, "1.9*x").next_measurement({"x": (0, 10)}, n=3)
    far, *others = (point["x"] for point in found.points)
    assert far > 8.5 and min(abs(far - other) for other in others) > 1 and found.missing == 0


def test_without_noise_whole_numbers_where_formulas_differ_decide():
    # Only rounding is left, and x**2 - x is 0 in the rows, which are whole numbers.
    rows = np.array([[0.0], [1.0]] * 6)
    found = front(2 * rows[:, 0] + 1, "2*x + 1", "2*x**2 + 1", rows=rows)
    assert found.next_measurement({"x": (0, 1)}).missing == 0
    point = found.next_measurement({"x": (0, 10)})
    assert point.decides == 1 and 2 <= point.points[0]["x"] <= 10 and isinstance(point.points[0]["x"], int)


def test_a_cost_moves_the_point_to_cheaper_ones(tied):
    box = {"x": (0, 10)}
    free = tied.next_measurement(box).points[0]["x"]
    prices = [lambda p: 1 + p["x"] ** 4, "1 + x**4"]
    cheap = [tied.next_measurement(box, cost=price).points[0]["x"] for price in prices]
    assert cheap[0] == cheap[1] < free
    assert tied.next_measurement({"x": (1, 10)}, cost={"x": 3.0}).points[0]["x"] < free
    assert tied.next_measurement(box, cost="7").points[0]["x"] == free


def test_points_without_a_value_are_left_out():
    found = front(LAW + NOISE, "3*x/(0.4*x + 1)", "2.95*log(x + 1.02)").next_measurement({"x": (-3, 1)})
    assert np.isfinite(found.values).all() and any("a formula has no value" in note for note in found.notes)


TWO = np.column_stack([np.tile(np.arange(1.0, 5), 6), RNG.uniform(1, 2, 24)])


def test_whole_numbers_stay_whole():
    y = TWO[:, 0] ** 2 * 0.5 + RNG.normal(0, 1.5, 24)
    point = front(y, "0.5*a**2", "2.3*a - 2", rows=TWO, names=("a", "b")).next_measurement({"a": (0.5, 9.5)}).points[0]
    assert isinstance(point["a"], int) and 1 <= point["a"] <= 9


def test_texts_are_told_as_texts():
    prepared = Preparation((
        PreparedColumn("metal", "metal", "one-hot", ("tin",), ("metal is tin",), ("iron", "tin")),
        PreparedColumn("x", "x", "number", ("x",), ("x",)),
    ))  # fmt: skip
    rows = np.column_stack([np.zeros(12), X[:, 0]])
    rows[::4, 0] = 1
    found = front(
        LAW + NOISE + rows[:, 0], "3*x/(0.4*x + 1) + tin", "4.4*(1 - exp(-0.64*x)) + tin", rows=rows,
        names=("tin", "x"), preparation=prepared,
    ).next_measurement({"metal": "iron", "x": (0, 9)})  # fmt: skip
    assert found.points[0]["metal"] == "iron" and "metal = iron, x = " in str(found)


@pytest.mark.parametrize("n", [0, -1, 1.5, True, "2", 10**9])
def test_n_is_a_number_of_points(tied, n):
    with pytest.raises(ValueError, match="it is a number of points from 1 to 1000"):
        tied.next_measurement(n=n)


@pytest.mark.parametrize(
    ("cost", "message"),
    [("x - 5", "cost is -5 at x = 0; prices are positive numbers"),
     (lambda p: np.nan, "cost is nan at x = 0"),
     ({"x": 1.0}, "cost is 0 at x = 0"),
     ({"z": 1.0}, "cost has 'z', which is no feature; there are x"),
     ("1 + z", "it is a formula of x"),
     ({}, "it is a function of the columns, a formula, or a mapping"),
     (3, "it is a function of the columns, a formula, or a mapping")],
)  # fmt: skip
def test_wrong_costs_are_a_value_error(tied, cost, message):
    with pytest.raises(ValueError, match=message):
        tied.next_measurement({"x": (0, 10)}, cost=cost)


def test_models_without_rows_say_what_to_do(tied):
    bare = Front(tuple(Model(model.tree, model.loss, model.r2) for model in tied), 0)
    with pytest.raises(DataError, match="does not know the rows that it was fitted to"):
        bare.next_measurement()


def test_as_many_constants_as_rows_are_no_ground_for_advice():
    few = front(np.array([1.0, 2.1]), "1.1*x + 0.9", rows=np.array([[0.0], [1.0]]))
    with pytest.raises(DataError, match="too few to tell constants from noise"):
        few.next_measurement()


def result(found):
    return Result(found, found.best_index, 0, 0, 0.0, 0, "loss")


def test_a_result_names_ties_and_the_measurement_that_decides(tied):
    told = result(tied).ties_text
    assert told.startswith("formulas 2 and 3 cannot be told apart ")
    assert re.search("; one measurement at x = .* decides with a probability of [2-4].%", told)
    assert told in repr(result(tied)).replace("\n    ", " ")


def test_a_clear_law_has_no_ties():
    assert result(front(1.9 * X[:, 0] + NOISE, "2.1", "1.9*x")).ties_text == ""
    assert result(front(1.9 * X[:, 0] + NOISE, "1.9*x")).ties_text == ""
    assert result(Front((Model(parse("x"), 0.1, 0.5), Model(parse("2*x"), 0.1, 0.5)), 0)).ties_text == ""


def spread_over(levels):
    """A result whose rows have only these values of x."""
    rows = np.repeat(np.array(levels, dtype=float), 8)[:, None]
    noise = np.random.default_rng(1).normal(0, 0.1, len(rows))
    return result(front(1.9 * rows[:, 0] + noise, "2.1", "1.9*x", rows=rows))


def test_a_result_names_the_values_between_which_no_row_tests_it():
    assert spread_over([0.3, 1.1, 1.9, 4.6]).untested_text == "no row tests the formula between the 4 values of x"


@pytest.mark.parametrize("levels", [range(9), (0, 1), np.linspace(0, 1, 90)])
def test_nothing_is_between_whole_numbers_nor_untested_between_many_values(levels):
    assert spread_over(levels).untested_text == ""


def test_models_without_rows_say_nothing_of_them():
    assert result(Front((Model(parse("x"), 0.1, 0.5),), 0)).untested_text == ""


def test_what_is_beside_the_front_is_a_rival(tied):
    hidden = replace(tied, models=tied.models[:2] + tied.models[3:], best_index=2, beside=(tied[2],))
    found, told = hidden.next_measurement({"x": (0, 10)}), tied.next_measurement({"x": (0, 10)})
    assert found.points == told.points and found.decides == told.decides
    assert sorted(found.indices, key=str) == [2, None] and set(found.formulas) == set(told.formulas)
    assert "%       3*x/(0.4*x + 1): " in str(found) and found.plain()["indices"] == list(found.indices)
    assert result(hidden).ties_text.startswith("formula 2 and 1 more cannot be told apart ")


@pytest.mark.slow
def test_a_search_keeps_what_a_tighter_formula_hides():
    rng = np.random.default_rng(1)
    x = rng.uniform(0.1, 2, 8)
    y = 3 * x / (x + 1.7) + rng.normal(0, 0.05, 8)
    front = shine.evolve(x[:, None], y, features=["x"], noise="absolute", seconds=None, generations=2, threads=1).front
    rivals = Rivals.of(front, front.beside)
    assert len(front.beside) > 1 and front.beside[0].basis is front.best.basis
    assert not {model.tree for model in front} & {model.tree for model in front.beside}
    assert any(rival.index >= len(front) for rival in rivals.each)
    many = rng.uniform(0.1, 2, (1001, 1))
    noisy = 3 * many[:, 0] + rng.normal(0, 0.05, 1001)
    assert shine.evolve(many, noisy, seconds=None, generations=1, threads=1).front.beside == ()


def test_a_formula_that_explodes_at_an_edge_says_nothing_there(tied):
    wild = replace(Model(parse("3*x*exp(5e-14/x**16)/(0.4*x + 1)", ["x"]), 1.0, 0.5), basis=tied.best.basis)
    hidden = replace(tied, beside=(replace(wild, loss=tied[2].loss),))
    found = hidden.next_measurement({"x": (0, 10)})
    assert None in found.indices or len(found.indices) == 2
    assert math.isfinite(found.information) and found.points[0]["x"] > 0
