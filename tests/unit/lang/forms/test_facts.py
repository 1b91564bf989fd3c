"""Every listed fact holds on samples, and every fact that holds for a basic primitive is listed."""

import itertools
import math

import numpy as np
import pytest

from shine.lang.forms.facts import COMPOSITE_FACTS, FACTS, SCALED, basic_where, names_where
from shine.lang.forms.library import STANDARD
from shine.lang.interpret import evaluate
from shine.lang.parse import parse

KNOWN = {**FACTS, **COMPOSITE_FACTS}
UNARY = [name for name, facts in FACTS.items() if facts.arity == 1]
BINARY = [name for name, facts in FACTS.items() if facts.arity == 2]

SAMPLES = np.concatenate([[0.0, 0.25, 0.5, 0.75, 1.0, 2.0, 3.0, 10.0], np.random.default_rng(0).normal(0, 2, 60)])
SAMPLES = np.concatenate([SAMPLES, -SAMPLES])

NOT_NEGATIVE_BUT_UNUSED = {"acos", *basic_where(lambda facts: facts.values == "truth")}
"""Functions without negative values that simplification makes no use of."""

WHOLE_BUT_UNUSED = {"floordiv"}
"""The same for whole values."""


def applied(name, *columns):
    """A primitive of some columns."""
    parameters = ("a", "b", "c")[: len(columns)]
    return evaluate(parse(f"{name}({', '.join(parameters)})", parameters), [np.array(c, float) for c in columns])


def combined(arity, values):
    """All combinations of values, a column an argument."""
    return np.array(list(itertools.product(values, repeat=arity))).T


def equal(a, b):
    return bool(np.allclose(a, b, rtol=1e-9, atol=1e-9, equal_nan=True))


def parity_of(name):
    values, mirrored = applied(name, SAMPLES), applied(name, -SAMPLES)
    return "even" if equal(values, mirrored) else "odd" if equal(values, -mirrored) else None


def has_period(name, period):
    values = applied(name, SAMPLES)
    return equal(values, applied(name, SAMPLES + period)) and not equal(values, values[0])


def undoes(name, other):
    inner = applied(other, SAMPLES)
    known = np.isfinite(inner)
    return equal(applied(name, inner[known]), SAMPLES[known])


def test_facts_are_known_of_primitives_of_this_arity():
    assert {name: facts.arity for name, facts in KNOWN.items()} == {name: STANDARD[name].arity for name in KNOWN}
    assert all(STANDARD[name].definition is not None for name in COMPOSITE_FACTS)


@pytest.mark.parametrize(
    "name", [n for n, each in STANDARD.items() if each.arity == 1 and n != "logical_not"] + ["pow"]
)
def test_the_effect_of_a_factor_of_the_argument_is_as_listed(name):
    x = SAMPLES[(SAMPLES != 0.0) & (SAMPLES != 10.0)]
    others = [np.full(len(x), 1.7)] * (STANDARD[name].arity - 1)
    before, after = applied(name, x, *others), applied(name, 3.0 * x, *others)
    known = np.isfinite(before) & np.isfinite(after) & (before != 0.0)
    ratios, differences = after[known] / before[known], after[known] - before[known]
    found = "factor" if np.ptp(ratios) < 1e-9 else "summand" if np.ptp(differences) < 1e-9 else None
    assert SCALED.get(name) == found


@pytest.mark.parametrize("name", KNOWN)
def test_parity_is_as_listed(name):
    if KNOWN[name].arity == 1:
        assert KNOWN[name].parity == parity_of(name)
    assert KNOWN[name].parity is None or KNOWN[name].arity == 1


@pytest.mark.parametrize("name", [*BINARY, "hypot"])
def test_commutativity_is_as_listed(name):
    a, b = combined(2, SAMPLES)
    assert KNOWN[name].commutative == equal(applied(name, a, b), applied(name, b, a))


@pytest.mark.parametrize("name", sorted(names_where(lambda facts: facts.commutative)))
def test_the_sign_of_zero_depends_on_the_order(name):
    one, other = applied(name, [0.0], [-0.0]), applied(name, [-0.0], [0.0])
    assert KNOWN[name].sign_by_order == bool(np.signbit(one) != np.signbit(other))


@pytest.mark.parametrize("name", UNARY)
def test_periods_are_as_listed(name):
    period = FACTS[name].period
    assert (period is not None) == has_period(name, 2 * math.pi)
    assert period is None or (has_period(name, period) and not has_period(name, period / 2))


@pytest.mark.parametrize("name", UNARY)
def test_a_function_undoes_the_one_that_is_listed(name):
    assert [other for other in UNARY if undoes(name, other)] == [FACTS[name].undoes] * (FACTS[name].undoes is not None)


@pytest.mark.parametrize("name", KNOWN)
def test_results_for_infinite_arguments_are_as_listed(name):
    facts = KNOWN[name]
    columns = combined(facts.arity, np.array([math.inf, -math.inf, 1.5, -0.5, math.nan, 0.0]))
    with_nan, with_infinity = np.isnan(columns).any(axis=0), np.isinf(columns).any(axis=0)
    values = applied(name, *columns)
    if facts.infinite is not None:
        assert np.isnan(values[with_nan]).all()
        assert (facts.infinite == "kept") == (not np.isfinite(values[with_infinity]).any())
    elif name in UNARY:
        assert not np.isnan(values[with_nan]).any()


@pytest.mark.parametrize("name", KNOWN)
def test_functions_without_negative_values_are_listed(name):
    values = applied(name, *combined(KNOWN[name].arity, SAMPLES[::3]))
    holds = not (values < 0).any()
    assert KNOWN[name].not_negative <= holds
    assert holds == KNOWN[name].not_negative or name in {*NOT_NEGATIVE_BUT_UNUSED, *COMPOSITE_FACTS}


@pytest.mark.parametrize("name", KNOWN)
def test_whole_values_and_truth_values_are_listed(name):
    values = applied(name, *combined(KNOWN[name].arity, np.append(SAMPLES[::3], np.pi)))
    values = values[np.isfinite(values)]
    found = "truth" if np.isin(values, [0, 1]).all() else "whole" if (values == np.rint(values)).all() else None
    assert KNOWN[name].values == (None if name in WHOLE_BUT_UNUSED else found)


@pytest.mark.parametrize("name", [name for name in UNARY if FACTS[name].inexact])
def test_the_argument_with_an_exact_value_is_as_listed(name):
    values = applied(name, [0.0, 1.0])
    assert [at for at, value in zip([0.0, 1.0], values, strict=True) if value in (0, 1)] == [FACTS[name].exact_at]
