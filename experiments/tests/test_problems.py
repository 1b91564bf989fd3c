"""The tables of problems: rows as published, formulas with their known values, data files as they are."""

from __future__ import annotations

import gzip
import math
from collections import Counter

import blackbox
import classics
import feynman
import numpy as np
import pytest
from quality.problems import FormulaProblem, Split, generator, with_noise
from quality.recovery import judge

BY_NAME = {problem.name: problem for problem in classics.PROBLEMS}

AS_TEXTBOOKS_HAVE_THEM = {
    # A point of each formula, computed by other means than its text.
    "Nguyen-4": ((2.0,), 2**7 - 2),
    "Nguyen-12": ((2.0, 4.0), 12.0),
    "Keijzer-5": ((1.0, 2.0, 3.0), -2.5),
    "Keijzer-6": ((4.0,), 25 / 12),
    "Keijzer-9": ((0.75,), math.asinh(0.75)),
    "Keijzer-14": ((1.0, 1.0), 2.0),
    "Korns-2": ((9.0, 1.0, 9.0, 2.0, 1.0), 14.43),
    "Korns-10": ((0.0, 1.0, 1.0, 1.0, 1.0), 0.81 + 24.3 * 5 / 9),
    "Vladislavleva-1": ((1.0, 2.5), 1 / 1.2),
    "Vladislavleva-4": ((3.0,) * 5, 2.0),
    "Vladislavleva-5": ((2.0, 1.0, 3.0), -7.5),
    "Vladislavleva-8": ((4.0, 4.0), 1 / 26),
    "Pagie-1": ((1.0, 1.0), 1.0),
    "Livermore-7": ((1.0,), (math.e - 1 / math.e) / 2),
    "Livermore-9": ((2.0,), 2**10 - 2),
    "Livermore-11": ((1.0, 3.0), 9 / 4),
    "Livermore-16": ((32.0,), 4.0),
}

ROWS = {
    # Training and held-out rows, counted from the published ranges.
    "Nguyen-1": (20, 1000),
    "Keijzer-1": (21, 2001),
    "Keijzer-4": (201, 201),
    "Keijzer-6": (50, 120),
    "Keijzer-7": (100, 991),
    "Keijzer-11": (20, 601**2),
    "Korns-5": (10_000, 10_000),
    "Vladislavleva-1": (100, 45**2),
    "Vladislavleva-2": (100, 221),
    "Vladislavleva-3": (100 * 6, 221 * 23),
    "Vladislavleva-4": (1024, 5000),
    "Vladislavleva-5": (300, 15 * 12 * 15),
    "Vladislavleva-6": (30, 306**2),
    "Vladislavleva-8": (50, 34**2),
    "Pagie-1": (26**2, 1000),
    "Livermore-1": (1000, 1000),
}


def split_of(problem: FormulaProblem, seed: int = 0, rows: int | None = None) -> Split:
    """The rows an experiment draws."""
    return problem.split(generator(problem.name, seed), rows)


def test_the_classics_are_complete():
    families = Counter(name.rpartition("-")[0] for name in BY_NAME)
    assert families == {"Nguyen": 12, "Keijzer": 15, "Korns": 15, "Vladislavleva": 8, "Pagie": 1, "Livermore": 22}
    assert len(BY_NAME) == len(classics.PROBLEMS)


@pytest.mark.parametrize("name", AS_TEXTBOOKS_HAVE_THEM)
def test_a_formula_has_its_value(name):
    point, value = AS_TEXTBOOKS_HAVE_THEM[name]
    assert BY_NAME[name].truth.predict(np.array([point])) == pytest.approx([value], rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("name", ROWS)
def test_rows_are_as_many_as_published(name):
    split = split_of(BY_NAME[name])
    assert (len(split.y), len(split.y_test)) == ROWS[name]


@pytest.mark.slow
@pytest.mark.parametrize("problem", classics.PROBLEMS, ids=lambda problem: problem.name)
def test_every_classic_has_finite_rows_within_its_range_and_recovers_itself(problem):
    split = split_of(problem)
    low, high = np.array(problem.bounds).T
    assert np.isfinite(split.y).all()
    assert np.isfinite(split.y_test).all()
    np.testing.assert_allclose(split.X, np.clip(split.X, low, high), atol=1e-9)
    assert np.ptp(split.y) > 0
    assert judge(problem.truth, problem.truth, problem.bounds).recovered


def test_the_same_seed_draws_the_same_rows_and_another_draws_others():
    problem = BY_NAME["Nguyen-9"]
    first, again, other = split_of(problem), split_of(problem), split_of(problem, 1)
    np.testing.assert_array_equal(first.X, again.X)
    np.testing.assert_array_equal(first.X_test, again.X_test)
    assert not np.isin(first.X, other.X).any()


def test_noise_has_the_level_asked_for_and_leaves_the_rows_held_out_alone():
    split = split_of(BY_NAME["Korns-1"])
    noisy = with_noise(split, 0.1, np.random.default_rng(0))
    assert np.std(noisy.y - split.y) == pytest.approx(0.1 * np.std(split.y), rel=0.05)
    np.testing.assert_array_equal(noisy.y_test, split.y_test)
    np.testing.assert_array_equal(with_noise(split, 0.0, np.random.default_rng(0)).y, split.y)


HEADER = "Filename,Number,Output,Formula,# variables," + ",".join(f"v{i}_name,v{i}_low,v{i}_high" for i in range(1, 11))


def equations(tmp_path, *lines):
    """A file in the form of the Feynman database."""
    path = tmp_path / "equations.csv"
    path.write_text("\n".join([HEADER, *lines, "," * 34]) + "\n", encoding="utf-8")
    return path


def test_equations_are_read_with_their_variables_even_if_those_are_counted_wrongly(tmp_path):
    path = equations(tmp_path, "A.1,1,f,r*sin(theta),1,r,1,5,theta,0,2" + "," * 24)
    (problem,) = feynman.read_equations(path)
    assert (problem.name, problem.features, problem.bounds) == ("A.1", ("r", "theta"), ((1.0, 5.0), (0.0, 2.0)))
    split = split_of(problem)
    assert split.X.shape == split.X_test.shape == (1000, 2)
    np.testing.assert_allclose(split.y, split.X[:, 0] * np.sin(split.X[:, 1]), rtol=1e-15)


def test_tables_are_read_with_the_target_by_name_or_last(tmp_path):
    (tmp_path / "a.csv").write_text("target,one,two\n1,2,3\n4,5,6\n", encoding="utf-8")
    (tmp_path / "b.tsv.gz").write_bytes(gzip.compress(b"one\tmy two\ty\n1\t2\t3\n4\t5\t6\n"))
    first, second = (blackbox.read_table(tmp_path / name) for name in ("a.csv", "b.tsv.gz"))
    assert (first.name, first.features, first.y.tolist()) == ("a", ("one", "two"), [1, 4])
    assert (second.name, second.features, second.y.tolist()) == ("b", ("x0", "x1"), [3, 6])
    assert second.X.tolist() == [[1, 2], [4, 5]]


def test_a_quarter_of_real_rows_is_held_out_and_none_is_on_both_sides():
    rows = np.arange(100.0)
    problem = blackbox.DataProblem("count", ("x",), rows[:, None], rows)
    split = problem.split(np.random.default_rng(0))
    assert len(split.y_test) == 25
    assert sorted([*split.y, *split.y_test]) == rows.tolist()
    np.testing.assert_array_equal(split.X[:, 0], split.y)
    assert len(problem.split(np.random.default_rng(0), 10).y) == 10
