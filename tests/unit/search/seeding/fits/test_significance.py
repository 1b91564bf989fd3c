"""Terms that the rows need are told from those that they do not need."""

import numpy as np

from shine.compiler.arrays import Regression
from shine.search.seeding.fits.elimination import significant

RNG = np.random.default_rng(0)
COLUMNS = RNG.standard_normal((6, 200))


def test_exact_data_need_only_the_terms_that_made_them():
    values = 2 * COLUMNS[1] - 0.001 * COLUMNS[4]
    assert significant(Regression.of(COLUMNS), values, 3.0).tolist() == [False, True, False, False, True, False]


def test_a_term_within_the_noise_is_not_needed():
    values = 2 * COLUMNS[1] - 0.001 * COLUMNS[4] + 0.1 * RNG.standard_normal(200)
    assert significant(Regression.of(COLUMNS), values, 3.0).tolist() == [False, True, False, False, False, False]
