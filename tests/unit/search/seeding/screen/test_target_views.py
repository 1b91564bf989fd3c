"""Views of a target lead back to it, as numbers and as formulas."""

import numpy as np
import pytest

from shine.lang.forms.library import STANDARD
from shine.lang.forms.primitives import PrimitiveSet
from shine.lang.interpret import evaluate_tape
from shine.search.seeding.bank.formula_writer import Writer, constant, tape
from shine.search.seeding.screen import target_views
from shine.search.seeding.screen.target_views import View

LEAF = ((1, 0.0),)
TARGETS = {
    "positive": np.linspace(0.2, 0.9, 30),
    "negative": -np.linspace(0.2, 3, 30),
    "mixed": np.linspace(-2, 3, 30),
    "large": np.linspace(1, 500, 30),
}


@pytest.mark.parametrize("kind", TARGETS)
def test_chains_go_there_and_back_as_numbers_and_as_formulas(kind):
    writer = Writer(PrimitiveSet(tuple(STANDARD.values()), ("a", "b", "c")))
    target = TARGETS[kind]
    chains = target_views.chains(target, writer) + target_views.product_chains(target, writer)
    assert len(chains) >= 10
    for chain in chains:
        seen = target_views.forward(chain, target)
        assert target_views.inverse(chain, seen) == pytest.approx(target, rel=1e-8)
        formula = tape(target_views.write(chain, writer, LEAF))
        back = evaluate_tape(formula.codes, formula.values, writer.primitives, [seen, seen, seen])
        assert back == pytest.approx(target, rel=1e-8)


@pytest.mark.parametrize("kind", TARGETS)
def test_homogeneous_chains_keep_factors_outside(kind):
    writer = Writer(PrimitiveSet(tuple(STANDARD.values()), ("a", "b", "c")))
    for chain in target_views.chains(TARGETS[kind], writer):
        if target_views.homogeneous(chain):
            seen = target_views.forward(chain, TARGETS[kind])
            ratio = target_views.inverse(chain, 3 * seen) / TARGETS[kind]
            assert ratio == pytest.approx(np.full(30, ratio[0]), rel=1e-9)


def test_a_view_divides_first():
    target, divisor = np.linspace(0.5, 3, 20), np.linspace(1, 2, 20)
    view = View((target_views.exponential(1.0),), constant(2.0), divisor)
    assert view.of(target) == pytest.approx(np.log(target / divisor))
    assert view.target(view.of(target)) == pytest.approx(target)
