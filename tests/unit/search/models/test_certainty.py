"""How sure the form is: evidence, averages and stability of fronts."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest

import shine
from shine.base.errors import DataError
from shine.lang.parse import parse
from shine.search.description import DescriptionLength
from shine.search.models.certainty import choose, fitted_constants
from shine.search.models.front import Front
from shine.search.models.model import Model

RNG = np.random.default_rng(0)
X = RNG.uniform(0, 4, (80, 1))


def front(y, *formulas, best=0):
    models = [Model(parse(formula, ["x"]), float(index), 0.5) for index, formula in enumerate(formulas)]
    first = models[0].with_data(X, y)
    return Front(tuple(Model(m.tree, -m.loss, m.r2, basis=first.basis) for m in models), best)


def line(noise=0.3):
    return front(1.37 + 2.31 * X[:, 0] + RNG.normal(0, noise, 80), "5.3", "3.1*x", "2.3*x + 1.4", best=2)


def test_evidence_and_stability_agree_on_a_clear_law():
    found = line()
    assert found.evidence() == pytest.approx([0, 0, 1], abs=1e-6)
    stability = found.stability(20, threads=1)
    assert (stability.shares.tolist(), stability.best_share) == ([0, 0, 1], 1.0)


@pytest.mark.slow
def test_the_noise_of_a_wide_table_is_not_fitted_by_its_other_columns():
    rng = np.random.default_rng(0)
    table = rng.uniform(1, 3, (300, 60))
    law = 2 * table[:, 4] * table[:, 17] / table[:, 33]
    found = shine.evolve(table, law + 0.1 * law.std() * rng.normal(size=300), seed=0, seconds=30, stagnation=60)
    assert set(found.best.tree.used_parameters) == {"x4", "x17", "x33"}


def test_the_same_seed_gives_the_same_shares_whatever_the_threads():
    doubtful = front(0.3 * X[:, 0] + RNG.normal(0, 1.0, 80), "0.6", "0.3*x", "0.2*x + 0.1")
    shares = [doubtful.stability(30, seed=4, threads=threads).shares.tolist() for threads in (1, 2)]
    assert shares[0] == shares[1] and sum(shares[0]) == pytest.approx(1)
    assert max(shares[0]) < 1


def test_subsamples_are_another_kind():
    told = repr(line().stability(10, kind="subsample", threads=1))
    assert told.splitlines()[0] == "chosen on 10 subsamples of the rows:"
    assert ">>> 100.0%    2  2.3*x + 1.4" in told


def test_an_average_is_that_of_the_formulas_that_count():
    found = line()
    values, deviations = found.predict(X, return_std=True)
    expected, own = found.best.predict(X, return_std=True)
    assert values == pytest.approx(expected, rel=1e-5) and deviations == pytest.approx(own, rel=1e-3)
    assert np.array_equal(found.predict(X), values)


def test_evidence_and_stability_remain_after_a_pickle():
    found = line()
    copied = pickle.loads(pickle.dumps(found))
    assert copied.evidence() == pytest.approx(found.evidence())
    assert np.array_equal(copied.stability(20).shares, found.stability(20).shares)


def test_stability_asks_for_rows():
    known = [replace(model, basis=None, known=model.uncertainty) for model in line()]
    with pytest.raises(DataError, match="stability needs the rows"):
        Front(tuple(known), 0).stability()


@pytest.mark.parametrize(
    ("options", "message"),
    [({"kind": "jackknife"}, "kind is 'jackknife'; it must be one of 'bootstrap', 'subsample'"),
     ({"resamples": 0}, "resamples is 0; it is a number of samples"),
     ({"resamples": 2.5}, "resamples is 2.5; it is a number of samples")],
)  # fmt: skip
def test_wrong_arguments_are_a_value_error(options, message):
    with pytest.raises(ValueError, match=message):
        line().stability(**options)


FORMULAS = {1: "a", 2: "-a", 3: "a + b", 4: "-a + b", 5: "a + b*a", 7: "a + b*a + b", 9: "a + b*a + b*b"}
"""A formula of each size, without constants."""


def model(size: int, loss: float) -> Model:
    return Model(shine.parse(FORMULAS.get(size, "a" + " + b" * (size // 2)), ("a", "b")), loss, 1 - loss)


def description(rows: float, power: float = 0.5, worst: float = 1.0) -> DescriptionLength:
    return DescriptionLength.with_unknown_noise(rows, power, worst)


def fitted(text: str, loss: float) -> Model:
    return Model(shine.parse(text, ("a", "b")), loss, 1 - loss)


@pytest.mark.parametrize(
    ("losses", "enough", "rows", "squared", "size"),
    [
        # A single formula is always recommended.
        ([(3, 1e9)], 0.0, 100, True, 3),
        # The simplest that is good enough, even if later ones are better.
        ([(1, 1.0), (3, 1e-13), (5, 1e-20)], 1e-12, 100, True, 3),
        ([(1, 1.0), (3, 1e-13), (5, 0.0)], 0.0, 100, True, 5),
        # With 100 rows, two nodes pay from a factor of exp(-2*1.25*2/100) = 0.951 on.
        ([(1, 1.0), (3, 0.96)], 0.0, 100, True, 1),
        ([(1, 1.0), (3, 0.94)], 0.0, 100, True, 3),
        # A loss that is not squared counts twice: the square root of that factor is enough.
        ([(1, 1.0), (3, 0.98)], 0.0, 100, False, 1),
        ([(1, 1.0), (3, 0.97)], 0.0, 100, False, 3),
        # More rows are more evidence.
        ([(1, 1.0), (3, 0.95)], 0.0, 20, True, 1),
        ([(1, 1.0), (3, 0.95)], 0.0, 1000, True, 3),
        # A tail of slight improvements is not worth its nodes.
        ([(1, 10.0), (3, 0.5), (5, 0.499), (7, 0.498), (9, 0.497)], 0.0, 200, True, 3),
        # The unit of the target does not matter.
        ([(1, 10e12), (3, 0.5e12), (5, 0.499e12)], 0.0, 200, True, 3),
        # Equally long descriptions: the simpler formula.
        ([(1, 1.0), (3, 1.0)], 0.0, 1, True, 1),
    ],
)
def test_the_recommended_formula_has_the_shortest_description(losses, enough, rows, squared, size):
    models = [model(size, loss) for size, loss in losses]
    assert models[choose(models, enough, description(rows, 0.5 if squared else 1.0)).index].complexity == size


def test_as_many_constants_as_rows_fit_anything():
    models = [model(1, 1.0), fitted("1.5*a + 2.5*b + 3.5", 0.0)]
    assert choose(models, 0.0, description(3)).index == 0
    assert choose(models, 0.0, description(5)).index == 1


def test_nodes_without_constants_need_no_rows():
    # Six planets: more nodes than rows, one constant.
    models = [model(1, 1e7), fitted("121.8*(a*a)", 2e5), fitted("365.25*(a*sqrt(a)) + 0.1*a*a", 40.0)]
    assert choose(models, 0.0, description(6)).index == 2


def test_an_exact_formula_of_many_nodes_needs_spare_rows():
    convinces = description(6).convinces
    assert convinces(np.array([10, 10, 33]), np.array([1, 5, 1])).tolist() == [True, False, True]
    assert description(3).convinces(np.array([5, 33]), np.array([2, 0])).tolist() == [True, False]


def test_constants_inside_assignments_count():
    def law(a, b):
        u = a + 2.0
        return 3.0 * u + u * u

    assert fitted_constants(shine.parse(law)) == 2


def test_the_reason_names_the_next_best():
    models = [model(1, 1.0), model(3, 0.5), model(5, 0.49)]
    assert choose(models, 0.0, description(100)).reason.endswith("formula 2 needs 1.5 nats more")
    assert "exact" in choose(models, 0.6, description(100)).reason


@pytest.mark.slow
def test_noise_alone_is_described_by_a_constant():
    # The best of many functions of noise fits well by chance; the price of the nodes outweighs that.
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), rng.normal(size=40)
    found = shine.evolve(X, y, population=300, generations=10, seconds=None, seeding=0, max_size=15)
    assert found.best.tree.size <= 3


@pytest.mark.parametrize("rows", [30, 100_000])
@pytest.mark.parametrize("fall", [2, 8])
def test_errors_of_the_data_are_not_described_by_further_terms(rows, fall):
    # One part in 1e12 of the variance: the rounding of a spline, say, a little less with each term.
    front = [model(1, 1.0), model(3, 1e-2), *(model(5 + 4 * at, 1e-12 / fall**at) for at in range(5))]
    assert choose(front, 1e-30, description(rows)).index == 2


@pytest.mark.parametrize("rows", [30, 100_000])
def test_a_law_beside_an_approximation_stays(rows):
    front = [model(1, 1.0), model(3, 1e-5), model(7, 1e-9), model(9, 1e-14), model(13, 5e-15)]
    assert choose(front, 1e-30, description(rows)).index == 3
    front = [model(1, 1.0), model(3, 1e-5), model(7, 1e-9), model(9, 1e-9 / 3), model(25, 1e-30)]
    assert choose(front, 1e-30, description(rows)).index == 4
