"""Models and results: predictions, tables, and which formula is recommended."""

from __future__ import annotations

import copy
import math
import pickle
from itertools import pairwise

import numpy as np
import pytest

import shine
from shine.errors import DataError
from shine.search.front import Front, Result, choose
from shine.search.model import Model
from shine.search.refinement import pareto_front

FORMULAS = {1: "a", 2: "-a", 3: "a + b", 4: "-a + b", 5: "a + b*a", 7: "a + b*a + b", 9: "a + b*a + b*b"}
"""A formula of each size."""


def model(size: int, loss: float) -> Model:
    return Model(shine.parse(FORMULAS[size], ("a", "b")), loss, 1 - loss)


def front(*losses: tuple[int, float]) -> list[Model]:
    return [model(size, loss) for size, loss in losses]


def result(models: list[Model], best: int = 0) -> Result:
    return Result(tuple(models), best, 3, 100, 0.5, 7, "generations")


def test_a_model_knows_its_text_and_its_size():
    assert [(model(size, 1.0).expression, model(size, 1.0).complexity) for size in FORMULAS] == [
        (text, size) for size, text in FORMULAS.items()
    ]


def test_complexity_counts_nodes_as_often_as_their_weights_say():
    weighed = Model(shine.parse("2.5*sin(a) + a", ("a", "b")), 0.0, 1.0, {"sin": 4, "constant": 3, "a": 2})
    # add, mul, 2.5, sin, a, a
    assert weighed.complexity == 1 + 1 + 3 + 4 + 2 + 2


def test_a_front_is_ordered_by_weighted_complexity():
    sine, sums = (
        Model(shine.parse(text, ("a", "b")), loss, 0.0, {"sin": 9})
        for text, loss in (("sin(a)", 1.0), ("a + b + a", 2.0))
    )
    assert [each.expression for each in pareto_front([sine, sums], 0.0)] == ["a + b + a", "sin(a)"]


@pytest.mark.parametrize("rows", [1, 5])
def test_predictions_are_the_formula_s_values_for_each_row(rows):
    X = np.random.default_rng(0).normal(size=(rows, 2))
    assert model(5, 0.1).predict(X).tolist() == (X[:, 0] + X[:, 1] * X[:, 0]).tolist()


@pytest.mark.parametrize("text", ["2.5", "a"])
def test_a_formula_that_reads_less_than_all_columns_predicts_every_row(text):
    X = np.arange(12.0).reshape(6, 2)
    prediction = Model(shine.parse(text, ("a", "b")), 0.0, 1.0).predict(X)
    assert prediction.tolist() == (X[:, 0].tolist() if text == "a" else [2.5] * 6)


def test_no_rows_have_no_predictions():
    assert model(3, 0.1).predict(np.empty((0, 2))).shape == (0,)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([[1.0]], "X has 1 columns; the formula needs 2: a, b"),
        ([[1.0, 2.0, 3.0]], "X has 3 columns; the formula needs 2: a, b"),
        ([1.0, 2.0], r"X has shape \(2,\)"),
        ([[1.0, math.nan]], "NaN or infinite, the first in row 0, column 1"),
        ([["a", "b"]], "X cannot be read as numbers"),
    ],
)
def test_data_that_do_not_fit_the_formula_are_refused(X, message):
    with pytest.raises(DataError, match=message):
        model(3, 0.1).predict(X)


def test_a_result_predicts_with_the_recommended_formula():
    found = result(front((1, 1.0), (3, 0.5), (5, 0.25)), best=1)
    assert found.best.expression == "a + b"
    assert found.predict([[1.0, 2.0]]).tolist() == [3.0]


def test_a_result_is_a_table_of_plain_values():
    assert list(result(front((1, 1.0), (3, 0.5)), best=1).rows()) == [
        {"complexity": 1, "loss": 1.0, "r2": 0.0, "expression": "a", "best": False},
        {"complexity": 3, "loss": 0.5, "r2": 0.5, "expression": "a + b", "best": True},
    ]


@pytest.mark.parametrize(
    ("losses", "enough", "rows", "squared", "size"),
    [
        # One formula is the recommended one, whatever it is worth.
        ([(3, 1e9)], 0.0, 100, True, 3),
        # The simplest that is good enough, though later ones are better.
        ([(1, 1.0), (3, 1e-13), (5, 1e-20)], 1e-12, 100, True, 3),
        ([(1, 1.0), (3, 1e-13), (5, 0.0)], 0.0, 100, True, 5),
        # A node is worth log(rows)/2, a factor of the squared loss rows/2 times its logarithm: with 100 rows, two
        # nodes pay from a factor of exp(-2*log(100)/100) = 0.912 on.
        ([(1, 1.0), (3, 0.92)], 0.0, 100, True, 1),
        ([(1, 1.0), (3, 0.90)], 0.0, 100, True, 3),
        # A loss that is not squared counts twice: the square root of that factor is enough.
        ([(1, 1.0), (3, 0.96)], 0.0, 100, False, 1),
        ([(1, 1.0), (3, 0.95)], 0.0, 100, False, 3),
        # More rows are more evidence.
        ([(1, 1.0), (3, 0.95)], 0.0, 20, True, 1),
        ([(1, 1.0), (3, 0.95)], 0.0, 1000, True, 3),
        # A tail of slight improvements is not worth its nodes.
        ([(1, 10.0), (3, 0.5), (5, 0.499), (7, 0.498), (9, 0.497)], 0.0, 200, True, 3),
        # The unit of the target does not matter.
        ([(1, 10e12), (3, 0.5e12), (5, 0.499e12)], 0.0, 200, True, 3),
        # More nodes than rows fit anything.
        ([(1, 1.0), (3, 0.1), (7, 0.0)], 0.0, 6, True, 3),
        ([(7, 1.0)], 0.0, 6, True, 7),
        # Equally long descriptions: the simpler formula.
        ([(1, 1.0), (3, 1.0)], 0.0, 1, True, 1),
    ],
)
def test_the_recommended_formula_has_the_shortest_description(losses, enough, rows, squared, size):
    models = front(*losses)
    assert models[choose(models, enough, rows, 0.5 if squared else 1.0)].complexity == size


@pytest.mark.parametrize(
    ("losses", "enough", "kept"),
    [
        ([(1, 3.0), (3, 2.0), (5, 1.0)], 0.0, [1, 3, 5]),
        # Neither a worse nor an equal one that is larger.
        ([(1, 3.0), (3, 3.0), (4, 4.0), (5, 1.0)], 0.0, [1, 5]),
        # Of one size the better one, in whatever order they come.
        ([(3, 2.0), (1, 3.0), (3, 1.0)], 0.0, [1, 3]),
        ([(3, 1.0), (3, 1.0)], 0.0, [3]),
        # Nothing follows the first that is good enough.
        ([(1, 3.0), (3, 1e-13), (5, 1e-20)], 1e-12, [1, 3]),
        ([(1, 3.0), (3, 1e-12), (5, 1e-20)], 1e-12, [1, 3]),
        ([(1, 3.0), (3, 0.0), (5, 0.0)], 0.0, [1, 3]),
        ([(1, 0.0), (3, 0.0)], 0.0, [1]),
        ([], 0.0, []),
    ],
)
def test_a_front_keeps_what_no_simpler_formula_equals_or_betters(losses, enough, kept):
    found = pareto_front(front(*losses), enough)
    assert [each.complexity for each in found] == kept
    assert all(earlier.loss > later.loss for earlier, later in pairwise(found))


def gap(x, y):
    return x * x - y


def wide_gap(x, y):
    wide = gap(x, y)
    return wide + wide


def test_a_front_is_a_sequence_with_a_choice():
    found = result(front((1, 1.0), (3, 0.5), (5, 0.25)), best=1).front
    assert isinstance(found, Front)
    assert found[1] is found.best is list(found)[1]
    assert (len(found), found.best_index, found[1:]) == (3, 1, tuple(found)[1:])
    assert found.index(found[2]) == 2


@pytest.mark.parametrize(
    ("losses", "scores"),
    [
        ([(1, 1.0)], [0.0]),
        ([(1, math.e**2), (3, 1.0), (4, math.e**-3)], [0.0, 1.0, 3.0]),
        ([(1, 1.0), (3, 0.0)], [0.0, math.inf]),
        ([(1, 0.0)], [0.0]),
    ],
)
def test_scores_are_falls_of_the_logarithm_a_unit_of_complexity(losses, scores):
    assert list(Front(tuple(front(*losses)), 0).scores) == pytest.approx(scores)


def test_a_front_is_a_table():
    found = result(front((1, 1.0), (3, 0.5)), best=1).front
    assert [row["score"] for row in found.rows()] == list(found.scores)
    frame = found.to_frame()
    assert list(frame.columns) == ["complexity", "loss", "score", "equation"]
    assert frame["equation"].tolist() == ["a", "a + b"]
    header, *lines = repr(found).splitlines()
    assert header.split() == ["complexity", "loss", "score", "equation"]
    assert [line.split()[0] for line in lines] == ["0", ">>>"]
    assert lines[1].split()[1:4] == ["1", "3", "0.5"]


def test_a_table_in_a_notebook_has_a_row_a_formula_and_no_markup_of_theirs():
    risky = Model(shine.parse("a < b", ("a", "b")), 1.0, 0.0)
    html = Front((risky, *front((5, 0.5))), 1)._repr_html_()
    assert html.count("<tr") == 3
    assert "a &lt; b" in html
    assert html.count("&#9654;") == 1


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_a_model_travels_as_text(copied):
    population = shine.Population.from_sources(["wide_gap(a, b) - 2.5*gap(b, a)"], ("a", "b"), [gap, wide_gap])
    whole = Model(population.tree(0), 0.25, 0.5, {"gap": 3})
    X = np.random.default_rng(0).normal(size=(5, 2))
    before = whole.predict(X)
    other = copied(whole)
    assert (other.expression, other.loss, other.r2, other.complexity) == (
        whole.expression,
        whole.loss,
        whole.r2,
        whole.complexity,
    )
    assert other.tree == whole.tree
    assert other.predict(X).tolist() == before.tolist()


def test_many_rows_are_predicted_like_few(monkeypatch):
    X = np.random.default_rng(0).normal(size=(1000, 2))
    few = model(9, 0.1).predict(X)
    monkeypatch.setattr("shine.search.model.MANY_ROWS", 999)
    assert model(9, 0.1).predict(X).tolist() == few.tolist()


@pytest.mark.parametrize("form", ["python", "latex", "sympy"])
def test_a_model_has_the_forms_of_the_exports(form):
    from shine.export import export

    if form == "sympy":
        pytest.importorskip("sympy")
    found = model(5, 0.1)
    exported = export(found.tree, form, "f")
    assert found.export(form) == exported
    # In a file a formula of LaTeX has its name in front.
    assert str(getattr(found, form)()).strip() in str(exported)
