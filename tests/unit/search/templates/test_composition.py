"""Whole populations composed, compared with each individual's functions computed apart and put together in NumPy."""

from __future__ import annotations

import numpy as np
from helpers.templates import composition, individuals

from shine.lang.derivative import derivative
from shine.lang.interpret import evaluate
from shine.search.evolution.operators.slot_breeding import formulas_in
from shine.search.templates.tapes import LONGEST

ROWS = 20
COLUMNS = dict(zip("abt", np.random.default_rng(1).uniform(0.3, 2.0, (3, ROWS)), strict=True))
COUNT = 150


def values(tree, arguments):
    with np.errstate(all="ignore"):
        return np.asarray(evaluate(tree, list(arguments)), float) * np.ones(ROWS)


def compositions_agree(made, individual_of, count=COUNT):
    """Compare each individual's formulas with the outputs that `individual_of(functions, leaves)` computes."""
    population = individuals(made, count)
    assert population.is_valid
    outputs = made.composed(population)
    assert all(output.population.is_valid for output in outputs)
    slots = [formulas_in(population, number, slot.max_size) for number, slot in enumerate(made.genome.slots)]
    checked = lost = 0
    for i in range(count):
        functions = [slot.tree(i) for slot in slots]
        first = population.sizes[i] - 1 - made.n_leaves
        leaves = population.values[i, first : first + made.n_leaves]
        with np.errstate(all="ignore"):
            expected = individual_of(functions, leaves)
        for output, wanted in zip(outputs, expected, strict=True):
            if output.population.sizes[i] == 1 and np.isnan(output.population.values[i, 0]):
                continue  # too long
            found = values(output.population.tree(i), [COLUMNS[name] for name in made.features])
            # Where an infinite factor meets the 0 of a branch that is not taken, a derivative is NaN.
            lost += np.isnan(found) @ np.isfinite(wanted)
            finite = np.isfinite(wanted) & ~np.isnan(found)
            np.testing.assert_allclose(found[finite], wanted[finite], rtol=1e-7, atol=1e-9)
            checked += finite.sum()
    assert checked > ROWS * count / 4 and lost < checked / 50


def test_calls_with_expressions_and_calls_inside_and_parameters():
    small = {"arguments": ["x"], "primitives": ["add", "sin"], "max_size": 7}
    unknown, text = {"f": ["u", "v"], "h": small}, "f(a, b)*exp(-k[g]*t) + h(t) + f(h(a + c), b*2)*d"
    made = composition(text, ("a", "b", "t", "g"), 3, unknown=unknown, parameters={"d": 2.5})
    COLUMNS["g"] = np.zeros(ROWS)
    a, b, t = (COLUMNS[name] for name in "abt")

    def expected(functions, leaves):
        f, h = functions
        k, c = leaves[0], leaves[3]
        inner = values(h, [a + c])
        return [values(f, [a, b]) * np.exp(-k * t) + values(h, [t]) + values(f, [inner, b * 2]) * 2.5]

    compositions_agree(made, expected)


def test_derivatives_of_first_and_second_order_at_any_place():
    made = composition("D(f, 0)(a, b) + h(t)*c, D(D(f, 0), 1)(h(b), t)", ("a", "b", "t"))
    a, b, t = (COLUMNS[name] for name in "abt")

    def expected(functions, leaves):
        f, h = functions
        once = derivative(f, f.parameters[0])
        twice = derivative(once, f.parameters[1])
        return [values(once, [a, b]) + values(h, [t]) * leaves[0], values(twice, [values(h, [b]), t])]

    compositions_agree(made, expected)


def test_loops_are_sums_of_calls():
    made = composition("sum(w*f(x) for x, w in zip([a, b, t], [1, c, 2]))", ("a", "b", "t"))

    def expected(functions, leaves):
        a, b, t = (values(functions[0], [COLUMNS[name]]) for name in "abt")
        return [a + leaves[0] * b + 2 * t]

    compositions_agree(made, expected, 40)


def test_a_formula_that_is_too_long_is_nan():
    made = composition("sum(f(t, i) for i in range(600))", ("t",), max_size=15)
    population = individuals(made, 30)
    (composed,) = made.composed(population)
    sizes = formulas_in(population, 0, 15).sizes
    long = sizes > 9
    assert long.any() and (composed.population.sizes[long] == 1).all()
    assert np.isnan(composed.population.values[long, 0]).all()
    assert composed.population.sizes.max() <= LONGEST and composed.population.is_valid


def test_zero_of_either_sign_stays_what_it_is():
    made = composition("f(t) + 1/(0.0*t) + 1/(-0.0*t)", ("t",))
    (composed,) = made.composed(individuals(made, 3))
    zeros = composed.population.values[0][composed.population.values[0] == 0]
    assert np.signbit(zeros).any() and not np.signbit(zeros).all()
