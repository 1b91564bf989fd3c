"""How sure the form is: evidence, averages and stability of fronts."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest

from shine.base.errors import DataError
from shine.lang.parse import parse
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
    assert found.stability(20, threads=1).shares.tolist() == [0, 0, 1]


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
