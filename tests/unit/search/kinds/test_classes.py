"""Searches for the odds of a class."""

from __future__ import annotations

import numpy as np

import shine
from shine.data.datasets.dataset import Dataset
from shine.faces.keywords import settings_from
from shine.search.kinds.classes import ClassesProblem
from shine.search.run import search

X = np.random.default_rng(0).uniform(-2, 2, (200, 2))


def test_formulas_of_an_earlier_part_of_the_run_compete():
    settings = settings_from(generations=0, population=5, seeding=0.0, seed=1)
    earlier = [shine.Model(shine.parse("9*x0*x1", ["x0", "x1"]), 0.1, 0.9)]
    data = Dataset.from_arrays(X, (X[:, 0] * X[:, 1] > 0.1) * 1.0)
    losses = [search(data, settings, earlier=each, kind=ClassesProblem).front[-1].loss for each in ((), earlier)]
    assert losses[1] < losses[0] / 2
