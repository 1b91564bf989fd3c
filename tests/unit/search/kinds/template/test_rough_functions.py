"""Rough functions, fitted together with the parameters by group."""

from __future__ import annotations

import numpy as np

import shine
from shine.data.datasets.dataset import Dataset
from shine.search.kinds.template.problem import prepared_template
from shine.search.kinds.template.rough_fits import RoughFitter
from shine.search.kinds.template.rough_functions import rough_functions
from shine.search.problem.settings import SearchSettings

GROUPS = np.array([1.0, 2.0, 3.0, 5.0])


def fits_of(text, truth, noise=0.0):
    rng = np.random.default_rng(0)
    t, g = rng.uniform(0.2, 4, 160), np.arange(160) % 4
    y = truth(t, GROUPS[g]) + noise * rng.standard_normal(160)
    law = shine.template(text)
    task = prepared_template(
        Dataset.from_arrays(np.column_stack([t, g]), y, features=["t", "g"]), SearchSettings(template=law)
    )
    return task, rough_functions(RoughFitter(task.composition, task.dataset, task.loss, 1), np.random.default_rng(0))


def test_without_noise_parameters_come_close():
    _, fits = fits_of("k[g]*f(t)", lambda t, k: k * np.sin(3 * t) / (1 + t))
    np.testing.assert_allclose(fits[0].numbers / fits[0].numbers[0], GROUPS, rtol=1e-4)


def test_one_of_the_shapes_is_a_product_of_powers():
    task, fits = fits_of("k[g]*f(t)", lambda t, k: k * t**-1.7)
    assert fits[0].error < 1e-20 * task.dataset.target_square and "log" in str(fits[0].functions["f"])


def test_signs_stay_those_of_the_start():
    _, fits = fits_of("f(t/k[g])", lambda t, k: (t / k) ** 4 + 1)
    assert (fits[0].numbers > 0).all()
