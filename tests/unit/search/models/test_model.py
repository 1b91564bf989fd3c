"""Models: predictions, complexity, exports, copies."""

from __future__ import annotations

import copy
import math
import pickle

import numpy as np
import pytest

import shine
from shine.base.errors import DataError
from shine.search.models.model import Model

FORMULAS = {1: "a", 2: "-a", 3: "a + b", 4: "-a + b", 5: "a + b*a", 7: "a + b*a + b", 9: "a + b*a + b*b"}
"""A formula of each size."""


def model(size: int, loss: float) -> Model:
    return Model(shine.parse(FORMULAS[size], ("a", "b")), loss, 1 - loss)


def test_a_printed_model_is_a_formula_with_its_figures():
    model = Model(shine.parse("2.3456789*a*a + -1.0*b", ("a", "b")), 0.00123456, 0.99998, digits=3)
    assert str(model).splitlines() == ["2.35*a**2 - b", "loss 0.001235, R2 0.99998, complexity 9"]
    assert repr(model) == "Model('2.35*a**2 - b', loss=0.001235, r2=0.99998, complexity=9)"


def test_the_exact_formula_is_one_step_away():
    model = Model(shine.parse("2.3456789*a*a", ("a",)), 0.5, 0.5, digits=3)
    assert model.expression == "2.3456789*a*a"
    assert [model.formula(precision) for precision in (None, 2, "exact")] == ["2.35*a**2", "2.3*a**2", model.expression]


def test_complexity_counts_nodes_as_often_as_their_weights_say():
    weighed = Model(shine.parse("2.5*sin(a) + a", ("a", "b")), 0.0, 1.0, {"sin": 4, "constant": 3, "a": 2})
    # add, mul, 2.5, sin, a, a
    assert weighed.complexity == 1 + 1 + 3 + 4 + 2 + 2


@pytest.mark.parametrize("rows", [1, 5])
def test_predictions_are_the_formula_s_values_for_each_row(rows):
    X = np.random.default_rng(0).normal(size=(rows, 2))
    assert model(5, 0.1).predict(X).tolist() == (X[:, 0] + X[:, 1] * X[:, 0]).tolist()


@pytest.mark.parametrize("text", ["2.5", "a"])
def test_a_formula_that_reads_less_than_all_columns_predicts_every_row(text):
    X = np.arange(12.0).reshape(6, 2)
    prediction = Model(shine.parse(text, ("a", "b")), 0.0, 1.0).predict(X)
    assert prediction.tolist() == (X[:, 0].tolist() if text == "a" else [2.5] * 6)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([[1.0]], "X has 1 columns; the formula needs 2: a, b"),
        ([[1.0, 2.0, 3.0]], "X has 3 columns; the formula needs 2: a, b"),
        ([1.0, 2.0], r"X has shape \(2,\)"),
        ([[1.0, math.nan]], "NaN or infinite, the first in row 0, column 1"),
        ([["a", "b"]], "X: column 0 holds text, such as 'a'"),
    ],
)
def test_data_that_do_not_fit_the_formula_are_refused(X, message):
    with pytest.raises(DataError, match=message):
        model(3, 0.1).predict(X)


def gap(x, y):
    return x * x - y


def wide_gap(x, y):
    wide = gap(x, y)
    return wide + wide


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


@pytest.mark.parametrize("form", ["python", "latex", "sympy"])
def test_a_model_has_the_forms_of_the_exports(form):
    from shine.formats.write import export

    if form == "sympy":
        pytest.importorskip("sympy")
    found = model(5, 0.1)
    exported = export(found.tree, form, "f")
    assert found.export(form) == exported
    # In a file a formula of LaTeX has its name in front.
    assert str(getattr(found, form)()).strip() in str(exported)


HEADED = Model(
    shine.parse("2.34567*net_price*b", ("net_price", "b")), 0.1, 0.9, {}, {"net_price": "net price (€)", "b": "b"}, 3
)


@pytest.mark.parametrize("copied", [lambda model: pickle.loads(pickle.dumps(model)), copy.deepcopy, copy.copy])
def test_copies_have_the_headings_and_the_digits(copied):
    assert dict(copied(HEADED).headings) == dict(HEADED.headings)
    assert copied(HEADED).digits == 3


def test_forms_for_people_have_the_digits_that_the_data_support_and_code_has_all():
    assert HEADED.latex() == r"2.35 {\text{net price (€)}} b"
    assert HEADED.latex(2) == HEADED.export("latex", precision=2).strip().removeprefix("f = ")
    assert "2.34567" in HEADED.latex("exact")
    for form in ("sql", "python", "json", "c", "excel"):
        assert "2.34567" in HEADED.export(form), form
        assert "2.3" in HEADED.export(form, precision=2) and "2.34" not in HEADED.export(form, precision=2), form
    assert HEADED.export("sql") == '2.34567 * "net price (€)" * b\n'
    assert HEADED.rounded("exact") == HEADED.tree


def test_sympy_has_the_digits_that_the_data_support():
    pytest.importorskip("sympy")
    assert str(HEADED.sympy()) == "2.35*b*net_price"
    assert str(HEADED.sympy("exact")) == "2.34567*b*net_price"
