"""Short numbers in exact systems, if rollouts follow the readings as well."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from shine.lang.parse import parse
from shine.search.dynamics.sharing import with_short_numbers
from shine.search.dynamics.system import SystemModel
from shine.search.models.model import Model

ONE = np.ones(1)


def system(text, error):
    model = Model(parse(text, ("x",)), 0.0, 1.0, {})
    return SystemModel((model,), ("x",), (), None, error * ONE, ONE, ONE[None], ONE)


def written(text, error, after):
    def fit(equations):
        assert set(equations[0].names) == {""}
        return replace(system(str(equations[0].model.tree), after))

    return str(with_short_numbers(system(text, error), fit).trees[0])


def test_constants_of_an_exact_system_become_short():
    assert written("-0.30000000004*x + 2.123456789", 1e-20, 1e-20) == "-0.3*x + 2.123456789"


@pytest.mark.parametrize(("error", "after"), [(1e-20, 1e-10), (1e-6, 1e-6)])
def test_constants_stay_if_the_error_grows_or_there_is_noise(error, after):
    assert written("-0.30000000004*x + 2.1", error, after) == "-0.30000000004*x + 2.1"


def test_an_exponent_that_becomes_whole_is_a_constant_no_longer():
    given = []

    def fit(equations):
        given.append(equations[0].names)
        return system(str(equations[0].model.tree), 1e-20)

    found = with_short_numbers(system("-0.30000000004*x**4.0000000001 + 2.1", 1e-20), fit)
    assert str(found.trees[0]) == "-0.3*x**4.0 + 2.1"
    assert len(found.constants) == 2
    assert given == [None, ("", "")]
