"""Plausible rows, tails, and formulas that explode beside the known rows."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from helpers.markers import mostly_slow

import shine
from shine.data.datasets.dataset import Dataset
from shine.evaluate.domain import Domain
from shine.evaluate.domain.check import far_ends
from shine.evaluate.domain.neighbourhood import Column
from shine.evaluate.domain.plausible import PlausibleRows

FEATURES = ("a", "b", "c")
KINDS = {
    "uniform": lambda rng, rows: rng.uniform(0.1, 3, (rows, 3)),
    "normal": lambda rng, rows: np.abs(rng.normal(2, 0.8, (rows, 3))) + 0.05,
    "lognormal": lambda rng, rows: rng.lognormal(0, 1, (rows, 3)),
    "pareto": lambda rng, rows: 1 + rng.pareto(1.5, (rows, 3)),
    "counts": lambda rng, rows: 1.0 + rng.poisson(3, (rows, 3)),
    "clustered counts": lambda rng, rows: 1.0 + rng.negative_binomial(1, 0.2, (rows, 3)),
    "correlated": lambda rng, rows: np.exp(0.8 * rng.normal(size=(rows, 1)) + 0.3 * rng.normal(size=(rows, 3))),
    "curve": lambda rng, rows: (lambda t: np.column_stack([t, t**2, 1 / t]))(rng.uniform(0.3, 3, rows)),
}
LAWS = (
    "exp(a)", "exp(2*a)", "a*exp(b)", "exp(a)*b", "exp(a)/c", "a*exp(-b)", "exp(-a)/b", "exp(a)*sin(b)", "2**a",
    "a**2", "a**3*b", "a**5", "a**1.5*b**0.5", "a*b", "a*b*c", "a*b*c*c", "a*b**2*c", "sqrt(a*b)", "(a - b)**2",
    "1/a", "1/a**2", "b/a", "a*b/(c*c)", "(a + b)/c", "a/(b + c)", "a**2*b/c", "1/(a*b)", "1/(a + b)",
    "1/(a*a + b*b)", "b**3/a", "log(a)*b", "a/(1 + b**2)", "a*(b - c)",
)  # fmt: skip
BASES = ("a + b", "a*b", "exp(0.3*a)*c", "a/b")
EXPLOSIONS = (
    "exp(exp((cos({p}*a)*cos({q}*b))**2)**2)", "exp({p}*5*sin({q}*a)*sin(b))", "exp(a*b*{p})", "(a*b)**8",
    "cos({p}*a)**40*exp({q}*3*b)", "exp(a**2*{p} - b**2)", "(a - b)**10", "exp({p}*a*b*c)", "tan({p}*a)*tan({q}*b)",
)  # fmt: skip


def values(text: str, X: np.ndarray) -> np.ndarray:
    """What NumPy makes of a formula."""
    known = {name: getattr(np, name) for name in ("exp", "log", "sin", "cos", "tan", "sqrt")}
    with np.errstate(all="ignore"):
        return eval(text, known | dict(zip(FEATURES, X.T, strict=False)))


def domain_of(X: np.ndarray, y: np.ndarray) -> Domain:
    return Domain(Dataset.from_arrays(X, y, features=FEATURES[: X.shape[1]]))


def points_of(X: np.ndarray) -> np.ndarray:
    return PlausibleRows.of([Column.of(column.copy()) for column in X.T]).steps[-1][0].T


@pytest.mark.parametrize("rows", mostly_slow([30, 100, 300], fast=[100]))
@pytest.mark.parametrize("kind", KINDS)
def test_laws_with_noise_do_not_explode(kind, rows):
    refused = []
    for seed, law in enumerate(LAWS):
        rng = np.random.default_rng([rows, seed, 3])
        X = KINDS[kind](rng, rows)
        y = values(law, X) * (1 + 0.1 * rng.normal(size=rows))
        if np.isfinite(y).all() and domain_of(X, y).explodes(shine.parse(law, FEATURES)):
            refused.append(law)
    # Some quantities of so heavy tails show too little of them in so few rows.
    assert len(refused) <= len(LAWS) // 20, refused


def explosive(rows: int):
    """Formulas near a law on known rows that explode on fresh rows within the ranges of the known ones."""
    for number, kind in enumerate(KINDS):
        for base in BASES:
            rng = np.random.default_rng([rows, number, len(base), 5])
            X, fresh = KINDS[kind](rng, rows), KINDS[kind](rng, 20 * rows)
            fresh = fresh[((fresh >= X.min(axis=0)) & (fresh <= X.max(axis=0))).all(axis=1)]
            y = values(base, X) * (1 + 0.1 * rng.normal(size=rows))
            for explosion in EXPLOSIONS:
                p, q = rng.uniform(0.3, 2.5, 2).round(3).tolist()
                text = explosion.format(p=p, q=q)
                with np.errstate(all="ignore"):
                    factor = 0.5 * y.std() / np.abs(values(text, X)).max()
                    off = factor * values(text, fresh)
                # Ten standard deviations of the target, and of that of the fresh rows: beyond all of its tails.
                spread = max(np.ptp(y), np.ptp(values(base, fresh)))
                if factor > 0 and not np.mean(np.abs(off) > 10 * spread) < 0.002:
                    yield domain_of(X, y), f"{base} + {float(factor)!r}*{text}"


@pytest.mark.parametrize("rows", [30, 100, 300])
def test_formulas_that_explode_on_fresh_rows_are_told_by_the_known_ones(rows):
    cases = list(explosive(rows))
    missed = [text for domain, text in cases if domain.defines(shine.parse(text, FEATURES))]
    assert len(cases) >= 10
    assert len(missed) <= len(cases) // 10, missed


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["uniform", "normal", "lognormal", "clustered counts"])
def test_the_order_of_the_rows_does_not_matter(kind):
    rng = np.random.default_rng(6)
    X = KINDS[kind](rng, 25)
    y = values("a + b", X) + 0.1 * rng.normal(size=25)
    for explosion in EXPLOSIONS:
        tree = shine.parse(explosion.format(p=0.7, q=1.3), FEATURES)
        found = set()
        for _ in range(5):
            order = rng.permutation(25)
            found.add(domain_of(X[order], y[order]).defines(tree))
        assert len(found) == 1, explosion


@pytest.mark.parametrize(
    ("kind", "margin"),
    [("uniform", "a*b + c"), ("normal", "a*b + c"), ("normal", "a + b + c"), ("correlated", "a/b + c")],
)
@pytest.mark.parametrize("text", ["1 + 0.001*sqrt({})", "a + 0.001*log(sqrt({}))", "a + 1e-4*({})**0.3"])
def test_an_end_of_the_domain_is_found_though_no_value_leads_there(kind, margin, text):
    X = KINDS[kind](np.random.default_rng(7), 200)
    X = X[np.lexsort(X.T)]
    # All known rows, and all that are drawn without a guide, lie on the same side of the end.
    drawn = PlausibleRows.of([Column.of(column.copy()) for column in X.T]).steps
    end = min(float(values(margin, points).min()) for points in [X, *(step[0].T for step in drawn)])
    assert domain_of(X, X[:, 0]).explodes(shine.parse(text.format(f"({margin} - {0.99 * end!r})"), FEATURES))


def test_an_explosion_of_counts_is_found_though_no_known_row_shows_it():
    rng = np.random.default_rng(4)
    X = rng.negative_binomial(2, 0.1, (300, 2)).astype(float)
    X = X[np.abs(np.cos(X).prod(axis=1)) < 0.8][:120]
    y = X[:, 0] * rng.lognormal(0, 0.5, 120) + X[:, 1]
    domain, text = domain_of(X, y), "exp(exp((cos(a)*cos(b))**2)**2)"
    factor = float(np.std(y) / values(text, X).max())
    assert not domain.defines(shine.parse(f"a + b + {factor!r}*{text}", FEATURES[:2]))
    assert domain.defines(shine.parse("a + b + 3*cos(a)*cos(b)", FEATURES[:2]))


def test_plausible_rows_stay_within_the_range_of_each_column():
    X = KINDS["pareto"](np.random.default_rng(0), 80)
    points = points_of(X)
    assert (points >= X.min(axis=0)).all()
    assert (points <= X.max(axis=0)).all()


def test_plausible_rows_are_the_same_each_time():
    X = KINDS["normal"](np.random.default_rng(0), 80)
    assert (points_of(X) == points_of(X)).all()


def test_plausible_rows_combine_columns_anew():
    X = KINDS["uniform"](np.random.default_rng(0), 50)
    assert len(np.unique(points_of(X), axis=0)) > 1000


def test_whole_numbers_stay_whole_and_few_values_stay_what_they_are():
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.poisson(5, 60), rng.choice([0.5, 2.5, 7.0], 60), rng.normal(size=60)])
    points = points_of(X)
    assert (points[:, 0] == np.floor(points[:, 0])).all()
    assert set(points[:, 1].tolist()) == {0.5, 2.5, 7.0}


def test_columns_that_exclude_each_other_do_so_in_plausible_rows():
    rng = np.random.default_rng(1)
    first = rng.integers(0, 2, 80).astype(float)
    points = points_of(np.column_stack([first, 1 - first, rng.normal(size=80)]))
    assert (points[:, 0] + points[:, 1] == 1).all()


@pytest.mark.parametrize("others", [0, 4])
def test_columns_along_a_curve_stay_near_it(others):
    rng = np.random.default_rng(2)
    x = rng.uniform(-1, 1, 200)
    points = points_of(np.column_stack([x, x**2, rng.normal(size=(200, others))]))
    assert np.quantile(np.abs(points[:, 1] - points[:, 0] ** 2), 0.99) < 0.4
    assert np.median(np.abs(points[:, 1] - points[:, 0] ** 2)) < 0.1


def test_columns_that_rise_together_move_together():
    rng = np.random.default_rng(2)
    inner = rng.uniform(1, 2, 60)
    points = points_of(np.column_stack([inner, inner + rng.uniform(0.001, 0.01, 60)]))
    assert (points[:, 1] > points[:, 0]).all()
    assert (points[:, 1] < points[:, 0] + 0.01).all()


@pytest.mark.parametrize("X", [np.ones((1, 1)), np.ones((5, 2)), np.array([[1e300, -1e300], [-1e300, 1e300]])])
def test_few_rows_and_extreme_numbers_have_plausible_rows(X):
    with warnings.catch_warnings(action="error"):
        assert np.isfinite(points_of(X)).all()


@pytest.mark.parametrize("draw", [np.random.default_rng(0).normal, np.random.default_rng(0).exponential])
def test_fresh_values_lie_between_the_far_ends(draw):
    for _ in range(50):
        low, high = far_ends(draw(size=100))
        fresh = draw(size=2000)
        assert low < fresh.min()
        assert fresh.max() < high


def test_far_ends_of_heavy_tails_are_further_out():
    rng = np.random.default_rng(0)
    light, heavy = rng.uniform(0, 1, 200), rng.pareto(1, 200)
    reaches = [(far_ends(each)[1] - np.median(each)) / np.ptp(each) for each in (light, heavy)]
    assert reaches[0] < 1 < 2 < reaches[1]


@pytest.mark.parametrize("values", [np.ones(20), np.array([1e308, -1e308] * 10), np.arange(3.0)])
def test_far_ends_hold_all_known_values(values):
    with np.errstate(all="ignore"):
        low, high = far_ends(values)
    assert low <= values.min()
    assert high >= values.max()
