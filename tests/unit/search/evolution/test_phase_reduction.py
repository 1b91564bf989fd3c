import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shine.lang.forms.library import STANDARD
from shine.lang.forms.primitives import PrimitiveSet, select
from shine.lang.interpret import evaluate
from shine.lang.parse import parse
from shine.lang.population import Population
from shine.search.finishing.refinement import reduced_phases

PRIMITIVES = PrimitiveSet(select(STANDARD, ["add", "sub", "mul", "sin", "cos", "tan", "exp"]), ("x", "y"))


def reduced(text):
    population = Population.from_trees([parse(text, ("x", "y"), STANDARD)], PRIMITIVES)
    return reduced_phases(population).tree(0)


@pytest.mark.parametrize("text", ["sin(x - 19.84955592153876)", "sin((x*y + y) - 19.84955592153876)"])
def test_a_phase_loses_whole_periods(text):
    assert np.isclose(np.abs(reduced(text).result.args[0].right.value), 1.0)


def test_the_period_of_the_tangent_is_pi():
    assert str(reduced("tan(x + 3.5)")) == f"tan(x + {3.5 - math.pi})"


@pytest.mark.parametrize(
    "text", ["sin(x*19.0)", "exp(x + 19.0)", "sin(x) + 19.0", "sin(exp(x + 19.0))", "sin(x - 3.0)"]
)
def test_constants_elsewhere_do_not_change(text):
    assert str(reduced(text)) == str(parse(text, ("x", "y"), STANDARD))


@pytest.mark.slow
@given(
    st.sampled_from(["sin({} + x)", "cos(x - {})", "tan({} - (x + y))", "sin(x - (y - {}))", "exp(sin(x + {})) - {}"]),
    st.floats(-1000, 1000),
)
def test_values_change_by_rounding_only(template, phase):
    text = template.replace("{}", repr(phase))
    columns = np.random.default_rng(0).uniform(-1, 1, (2, 20))
    before = evaluate(parse(text, ("x", "y"), STANDARD), columns)
    after = evaluate(reduced(text), columns)
    # Rounding of the phase changes the argument, and a tangent may be steep.
    slope = 1 + np.maximum(np.abs(before), 1) ** 2
    assert (np.abs(after - before) <= 1e-12 * slope).all()
