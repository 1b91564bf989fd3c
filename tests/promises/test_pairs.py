"""Settings that may be combined: every two values together, in few tiny searches, each of which is sound."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from helpers.markers import mostly_slow
from promises.faces import X, search

VALUES: dict[str, tuple[Any, ...]] = {
    "loss": ("mse", "mae", "nmse", "quantile(0.9)"),
    "noise": ("absolute", "relative", "log", "counts"),
    "validation": (None, "random", "time"),
    "linear_scaling": (True, False),
    "dtype": ("float64", "float32"),
    "primitives": (("add", "mul", "sin"), ("+", "*", "np.exp"), ("add", "def twice(a): return a + a")),
    "guesses": ((), ("x0 + x1",), ("3.5*x1 + x0",)),
    "constraints": (None, {"limits": {"add": 2}}, {"monotonic": {"x0": "increasing"}}, {"forbidden": ["x1"]}),
    "max_size": (7, 12),
    "threads": (1, 2),
    "sample_weight": (None, 1.0 + np.arange(40) % 3),
    "groups": (None, np.arange(40) % 8),
    "islands": (1, 2),
    "seed": (0, 3),
}
"""Values of the settings of searches, the simplest first."""

FORBIDDEN = (
    # A guess with a forbidden feature takes no part, with a warning, which is an error here.
    *(("guesses", guess, "constraints", 3) for guess in (1, 2)),
    # These are refused, in words: a guess with mul, and two answers to one question.
    ("primitives", 2, "guesses", 2),
    *(("loss", 3, "noise", noise) for noise in (1, 2, 3)),
    *(("validation", kind, "groups", 1) for kind in (1, 2)),
)
"""Two values, by name and place, that contradict each other."""

Combination = tuple[int, ...]


def pairs_of(combination: Combination) -> set[tuple[int, int, int, int]]:
    """The pairs of values in a combination, which has the place of a value of each setting."""
    return {(i, combination[i], k, combination[k]) for i, k in combinations(range(len(combination)), 2)}


def allowed(combination: Combination) -> bool:
    given = dict(zip(VALUES, combination, strict=True))
    return not any(given[one] == i and given[other] == k for one, i, other, k in FORBIDDEN)


def covering() -> list[Combination]:
    """Few combinations that have every allowed pair: greedily, the best of 60 random ones that have the next pair."""
    rng = np.random.default_rng(0)
    counts = [len(values) for values in VALUES.values()]
    wanted = {
        (i, a, k, b) for i, k in combinations(range(len(counts)), 2) for a in range(counts[i]) for b in range(counts[k])
    }
    names = list(VALUES)
    wanted -= {(names.index(one), i, names.index(other), k) for one, i, other, k in FORBIDDEN}
    found = []
    while wanted:
        i, a, k, b = min(wanted)
        candidates = []
        while len(candidates) < 60:
            drawn = [int(rng.integers(count)) for count in counts]
            drawn[i], drawn[k] = a, b
            if allowed(tuple(drawn)):
                candidates.append(tuple(drawn))
        best = max(candidates, key=lambda each: len(pairs_of(each) & wanted))
        wanted -= pairs_of(best)
        found.append(best)
    return found


COVERING = covering()


def settings(combination: Combination) -> dict[str, Any]:
    given = {name: VALUES[name][place] for name, place in zip(VALUES, combination, strict=True)}
    return {name: value for name, value in given.items() if value is not None}


def test_the_combinations_have_every_pair_that_is_allowed():
    together = set().union(*map(pairs_of, COVERING))
    counts = [len(values) for values in VALUES.values()]
    every = sum(a * b for a, b in combinations(counts, 2))
    assert len(together) == every - len(FORBIDDEN)


@pytest.mark.parametrize("number", mostly_slow(range(len(COVERING)), fast=[0]))
@pytest.mark.parametrize("face", ["evolve", "SymbolicRegressor"])
def test_a_combination_is_sound(face, number):
    words = settings(COVERING[number])
    found = search(face, **words)
    assert np.isfinite(found.losses).all()
    assert found.losses == sorted(found.losses, reverse=True)
    assert found.best in found.expressions
    assert np.isfinite(found.predict(X)).all()
    assert search(face, **words).front == found.front
    if words.get("constraints") == {"forbidden": ["x1"]}:
        assert "x1" not in "".join(found.expressions)


@pytest.mark.parametrize("number", mostly_slow(range(len(COVERING)), fast=[1]))
@pytest.mark.parametrize("face", ["SymbolicRegressor", "config"])
def test_the_faces_find_the_same(face, number):
    # Weighted combinations keep rows back, where an estimator's weight is no repeated row.
    words = settings(COVERING[number])
    one, other = search("evolve", **words), search(face, **words)
    assert one.expressions == other.expressions
    np.testing.assert_allclose(one.losses, other.losses, rtol=1e-9)
