"""Empirical laws: their measurements, the scores of a front, and the table."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from laws import rescored
from quality.empirical_laws import LAWS
from quality.engines import Found
from quality.law_scores import LawRecord, law_scores
from quality.measurements import COUNTS, Noise, absolute, anywhere, data, even, law, relative
from quality.records import Run, append_record

RUN = Run("test-line", "shine", 0, 0.0, 1.0, 0, 1)
LINE = law("test-line", "2.0*x", rows=20, noise=absolute(0.1), x=even(1, 10))
KNOWN = next(law for law in LAWS if not law.untouched)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_a_measurement_is_that_of_a_law(law):
    split = data(law, 0)
    assert split.X.shape == (law.rows, len(law.features))
    assert 6 <= law.rows <= 100
    assert 1 <= len(law.features) <= 4
    off = (split.y - law.truth.predict(split.X)) / law.sigma(split.X)
    assert 0.2 < np.sqrt(np.mean(off**2)) < 3
    assert np.isfinite(split.y_test).all()
    np.testing.assert_allclose(split.y_test, law.truth.predict(split.X_test), rtol=1e-14)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_the_noise_hides_no_law(law):
    noise = np.sqrt(np.mean(law.sigma(data(law, 0).X) ** 2))
    assert noise < 0.3 * np.std(law.truth.predict(data(law, 0).X))


def test_a_seed_draws_one_measurement():
    first, again, other = data(KNOWN, 3), data(KNOWN, 3), data(KNOWN, 4)
    np.testing.assert_array_equal(first.y, again.y)
    assert not np.array_equal(first.y, other.y)


def test_noise_is_a_share_a_width_or_that_of_counts():
    y = np.array([-4.0, 100.0])
    assert relative(0.1).sigma(y).tolist() == [0.4, 10.0]
    assert absolute(2.0).sigma(y).tolist() == [2.0, 2.0]
    assert COUNTS.sigma(y).tolist() == [1.0, 10.0]
    with pytest.raises(ValueError, match="unknown kind of noise"):
        Noise("loud", 1.0).sigma(y)


def test_a_law_without_a_value_in_some_row_is_refused():
    with pytest.raises(ValueError, match="no value"):
        data(law("test-root", "sqrt(x - 5.0)", rows=9, noise=relative(0.1), x=anywhere(1, 9)), 0)


def test_a_front_is_scored_formula_by_formula():
    front = ("1.9*x", "1.999*x", "1.99*x + 0.01", "nonsense(x)")
    scores = law_scores(RUN, LINE, data(LINE, 0), Found(front[2], front[3], 1.0, front), 0.0)
    assert (scores["verdict"], scores["position"]) == ("offset", 2)
    assert (scores["identical"], scores["constants"], scores["found"]) == (1, 0, "1.999*x")
    assert json.loads(scores["front"]) == list(front)


def test_a_chosen_formula_that_is_not_on_the_front_is_judged():
    scores = law_scores(RUN, LINE, data(LINE, 0), Found("2*x", "x", 1.0, ("x",)), 0.0)
    assert (scores["verdict"], scores["position"], scores["identical"]) == ("identical", -1, -1)


@pytest.mark.slow
def test_sympy_accepts_what_srbench_accepts():
    pytest.importorskip("sympy")
    front = ("x**2", "1.99*x + 0.01", "1.9*x")
    scores = law_scores(RUN, LINE, data(LINE, 0), Found(front[1], front[2], 1.0, front), 20.0)
    assert (scores["by_sympy"], scores["sympy"]) == ("no", 2)
    scores = law_scores(RUN, LINE, data(LINE, 0), Found("2*x + 1", front[2], 1.0, front), 20.0)
    assert (scores["by_sympy"], scores["verdict"]) == ("yes", "no")


def test_a_file_is_scored_again_from_its_fronts(tmp_path):
    law = KNOWN
    record = LawRecord(law.name, "shine", 0, 0.0, 1.0, 0, 1, by_sympy="yes", verdict="no", expression=law.text,
                       front=json.dumps(["0*" + law.features[0], law.text]))  # fmt: skip
    append_record(tmp_path / "laws.csv", record)
    append_record(tmp_path / "laws.csv", replace(record, seed=1, error="failed"))
    first, second = rescored(tmp_path / "laws.csv")
    assert (first.verdict, first.identical, first.position, first.by_sympy) == ("identical", 1, 1, "yes")
    assert (second.error, second.verdict) == ("failed", "no")
