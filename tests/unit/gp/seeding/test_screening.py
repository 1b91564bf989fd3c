"""The array code of the searches against plain least squares, one candidate at a time."""

from itertools import combinations

import numpy as np
import pytest

from shine.arrays import Panels
from shine.gp.seeding.relevance import relevant
from shine.gp.seeding.screening import (
    Normalized,
    best_matches,
    best_pairs,
    best_triples,
    beyond_monomials,
    largest,
    projector,
)
from shine.gp.seeding.sums import Dictionary, first_terms, replaced, with_another_term
from shine.gp.seeding.symmetries import Coordinates, Surrogate, _share_left, systems
from shine.gp.seeding.writing import Writer, tape
from shine.lang.interpret import evaluate_tape
from shine.lang.library import STANDARD
from shine.lang.primitives import PrimitiveSet

RNG = np.random.default_rng(0)
VALUES = RNG.standard_normal((30, 50)) + np.arange(30)[:, None]
WEIGHTS = RNG.uniform(0.1, 1, 50)
WEIGHTS /= WEIGHTS.sum()


def left_by_least_squares(columns, target):
    """Share of the weighted variance that the best sum of columns and a constant leaves."""
    root = np.sqrt(WEIGHTS)
    design = np.column_stack([np.ones(len(target)), *columns]) * root[:, None]
    residual = target * root - design @ np.linalg.lstsq(design, target * root, rcond=None)[0]
    centered = (target - target @ WEIGHTS) * root
    return residual @ residual / (centered @ centered)


def units(values):
    return Normalized.of(values, WEIGHTS).units


def test_matches_are_the_largest_weighted_correlations():
    targets = RNG.standard_normal((4, 50))
    which, member, correlation = best_matches(Panels(units(VALUES)), units(targets), 2)
    for k in range(4):
        shares = [1 - left_by_least_squares([v], targets[k]) for v in VALUES]
        found = correlation[which == k] ** 2
        assert sorted(found) == pytest.approx(sorted(shares)[-2:], abs=1e-5)
        assert set(member[which == k]) == set(np.argsort(shares)[-2:])


@pytest.mark.parametrize("each", [1, 3, 7, 100])
def test_largest_entries(each):
    table = RNG.standard_normal((5, 20)).astype(np.float32)
    found = largest(np.abs(table), each)
    for row, columns in zip(np.abs(table), found, strict=True):
        assert set(columns) == set(np.argsort(row)[-min(each, 20) :])


def test_pairs_are_the_best_of_all():
    target = VALUES[3] - 2 * VALUES[11] + 0.1 * RNG.standard_normal(50)
    u = units(VALUES)
    first, second, left = best_pairs(u, units(target[None])[0], u @ u.T, 5)
    shares = {pair: left_by_least_squares(VALUES[list(pair)], target) for pair in combinations(range(30), 2)}
    assert (first[0], second[0]) == min(shares, key=shares.get) == (3, 11)
    assert left[0] == pytest.approx(shares[3, 11], abs=1e-5)
    assert (np.diff(left) >= 0).all()


def test_triples_are_the_best_of_all():
    target = VALUES[20] - 2 * VALUES[4] + VALUES[9] + 0.3 * RNG.standard_normal(50)
    triples, left = best_triples(units(VALUES), units(target[None])[0], 10)
    shares = {three: left_by_least_squares(VALUES[list(three)], target) for three in combinations(range(30), 3)}
    assert tuple(triples[0].tolist()) == min(shares, key=shares.get)
    for three, share in zip(triples, left, strict=True):
        assert share == pytest.approx(shares[tuple(three.tolist())], abs=1e-4)


def test_forward_selection_takes_what_leaves_least():
    targets = RNG.standard_normal((3, 50))
    u, t = units(VALUES), units(targets)
    found = first_terms(Dictionary(u), t, 1)
    for _ in range(2):
        more = with_another_term(Dictionary(u), t, found)
        for i in range(3):
            before = found.chosen[i].tolist()
            shares = [left_by_least_squares(VALUES[[*before, j]], targets[i]) for j in range(30)]
            assert more.left[i] == pytest.approx(min(shares), abs=1e-4)
            assert more.chosen[i].tolist() == [*before, int(np.argmin(shares))]
        found = more


def test_replacing_terms_never_loses_and_mends_a_bad_start():
    target = VALUES[5] + VALUES[6] - VALUES[7]
    u, t = units(VALUES), units(target[None])
    start = first_terms(Dictionary(u), t, 1)
    bad = type(start)(np.zeros(1, np.int64), np.array([[0, 5, 6]]), np.ones(1))
    mended = replaced(Dictionary(u), t, bad, 2)
    assert sorted(mended.chosen[0].tolist()) == [5, 6, 7]
    assert mended.left[0] < 1e-6


def test_unusable_rows_become_zero():
    values = np.array([[1.0, np.nan, 2.0], [3.0, 3.0, 3.0], [1.0, 2.0, np.inf], [1.0, 2.0, 4.0]])
    normal = Normalized.of(values, np.full(3, 1 / 3))
    assert not normal.units[:3].any()
    assert (normal.units[3] ** 2).sum() == pytest.approx(1, abs=1e-6)


def test_what_monomials_leave_of_logarithms():
    columns = RNG.uniform(0.5, 3, (2, 50))
    basis = projector(columns, WEIGHTS)
    values = np.array(
        [
            columns[0] ** 2 / columns[1],
            np.exp(columns[0]),
            -np.exp(columns[0]) * columns[1] ** 3,
            columns[0] - columns[0],
        ]
    )
    rest, lengths = beyond_monomials(values, basis, WEIGHTS)
    assert lengths[0] == lengths[3] == 0 < lengths[1]
    assert rest[1] == pytest.approx(rest[2], abs=1e-9)
    share = left_by_least_squares(np.log(columns), columns[0]) * (WEIGHTS @ (columns[0] - columns[0] @ WEIGHTS) ** 2)
    assert lengths[1] ** 2 == pytest.approx(share)


def test_relevant_features_alone_and_together():
    x = RNG.uniform(-1, 1, (60, 500))
    x[8] = 4.0
    target = x[12] * x[40] + 0.8 * np.abs(x[51]) + 0.01 * RNG.standard_normal(500)
    found = relevant(x, target, np.full(500, 1 / 500), 6)
    assert {12, 40, 51} <= set(found.tolist())
    assert len(found) == 6
    assert relevant(x[5:10], target, np.full(500, 1 / 500), 6).tolist() == [0, 1, 2, 4]


def test_the_surrogate_of_a_polynomial_has_its_gradient():
    x = RNG.uniform(-1, 1, (2, 300))
    other, model = Surrogate.of_each(x, np.array([x[0], x[0] ** 2 * x[1] + 3 * x[1]]), np.full(300, 1 / 300))
    assert other.gradient[0] == pytest.approx(1, abs=1e-4)
    assert model.explained == pytest.approx(1)
    assert model.gradient[0] == pytest.approx(2 * x[0] * x[1], abs=1e-4)
    assert model.gradient[1] == pytest.approx(x[0] ** 2 + 3, abs=1e-4)


LAWS = {
    "difference": (lambda x: np.exp(-((x[0] - x[1]) ** 2) / 4) * x[2], 1, 1),
    "sum": (lambda x: np.log(x[0] + x[1] + 2 * x[2] ** 2), 2, 0),
    "product": (lambda x: np.sin(0.3 * x[0] * x[1]) + x[2], 2, 0),
    "quotient": (lambda x: np.exp(x[0] / x[1]) + x[2] ** 2, 2, 0),
    "sum of squares": (lambda x: 1 / (1 + x[0] ** 2 + x[1] ** 2) + np.log(x[2]), 2, 0),
    "factor": (lambda x: x[2] ** 2 / (1 + x[0] ** 2 * x[1]), 1, 1),
    "merged factors": (lambda x: x[0] * np.tanh(x[0] / (x[1] * x[2])), 1, 1),
}


@pytest.mark.parametrize("noise", [0, 0.005])
@pytest.mark.parametrize("kind", LAWS)
def test_symmetries_reduce_the_coordinates(kind, noise):
    law, most, factors = LAWS[kind]
    x = np.random.default_rng(2).uniform(1, 3, (3, 800))
    target = law(x)
    target = target + noise * np.std(target) * np.random.default_rng(3).standard_normal(800)
    writer = Writer(PrimitiveSet(tuple(STANDARD.values()), ("a", "b", "c")))
    found = systems(Coordinates.of_features(x, np.arange(3)), target, np.full(800, 1 / 800), writer, (0.01,))
    assert found
    assert len(found[0].nodes) <= most
    assert len(found[0].factors) >= factors
    for nodes, values in zip(found[0].nodes, found[0].values, strict=True):
        formula = tape(nodes)
        assert evaluate_tape(formula.codes, formula.values, writer.primitives, list(x)) == pytest.approx(values)
    # The law is a function of the coordinates, once the factor is divided out: neighbours in them have like values.
    reduced = law(x) / found[0].factor
    if len(found[0].nodes) == 1:
        order = np.argsort(found[0].values[0])
        steps = np.abs(np.diff(reduced[order]))
        assert np.median(steps) < 0.02 * np.std(reduced)


def test_no_symmetry_is_seen_where_there_is_none():
    x = np.random.default_rng(2).uniform(1, 3, (2, 800))
    writer = Writer(PrimitiveSet(tuple(STANDARD.values()), ("a", "b")))
    target = x[0] * np.sin(x[1]) + np.exp(x[0] / 2)
    assert not systems(Coordinates.of_features(x, np.arange(2)), target, np.full(800, 1 / 800), writer, (0.01,))


def test_a_direction_that_is_not_finite_has_no_share():
    for bad in (np.nan, np.inf):
        assert _share_left(np.array([1.0, bad]), np.array([1.0, 2.0])) == (0.0, 1.0)
        assert _share_left(np.array([1.0, 2.0]), np.array([1.0, np.nan])) == (0.0, 1.0)
