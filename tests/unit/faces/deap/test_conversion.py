"""From prefix to postfix order: the tape of every tree is that of a recursive walk."""

from __future__ import annotations

import operator

import numpy as np
import pytest
from deap import gp
from hypothesis import given
from hypothesis import strategies as st

from shine.faces.deap.conversion import population_of
from shine.faces.deap.vocabulary import vocabulary_of


def choose(a, b, c):
    return a if b > c else c


PSET = gp.PrimitiveSet("MAIN", 2)
for function, arity in ((operator.sub, 2), (operator.neg, 1), (choose, 3)):
    PSET.addPrimitive(function, arity)
PSET.addTerminal(0.5, name="half")
VOCABULARY = vocabulary_of(PSET)

leaves = st.one_of(
    st.sampled_from(["ARG0", "ARG1", "half"]).map(lambda name: [PSET.mapping[name]]),
    st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.integers(-(10**300), 10**300), st.booleans()).map(
        lambda value: [gp.Terminal(value, False, object)]
    ),
)


def extended(inner):
    return st.one_of(
        st.tuples(inner).map(lambda parts: [PSET.mapping["neg"], *parts[0]]),
        st.tuples(inner, inner).map(lambda parts: [PSET.mapping["sub"], *parts[0], *parts[1]]),
        st.tuples(inner, inner, inner).map(lambda parts: [PSET.mapping["choose"], *parts[0], *parts[1], *parts[2]]),
    )


trees = st.recursive(leaves, extended, max_leaves=30).map(gp.PrimitiveTree)


def walked(nodes):
    """Codes and values in postfix order, by recursion."""
    node = next(nodes)
    written = [pair for _ in range(node.arity) for pair in walked(nodes)]
    codes = VOCABULARY.primitives.function_codes
    if node.arity:
        return [*written, (codes[node.name], 0.0)]
    features = {"ARG0": (1, 0.0), "ARG1": (2, 0.0), "half": (0, 0.5)}
    return [features[node.name] if node.name in features else (0, float(node.value))]


@pytest.mark.slow
@given(st.lists(trees, max_size=8))
def test_every_tree_has_the_tape_of_a_recursive_walk(individuals):
    population = population_of(individuals, VOCABULARY)
    assert len(population) == len(individuals)
    assert population.is_valid
    for index, individual in enumerate(individuals):
        tape = population.tape(index)
        assert list(zip(tape.codes.tolist(), tape.values.tolist(), strict=True)) == walked(iter(individual))


@given(st.lists(trees, min_size=1, max_size=4), st.data())
def test_a_tree_with_missing_or_additional_nodes_is_rejected(individuals, data):
    index = data.draw(st.integers(0, len(individuals) - 1))
    nodes = list(individuals[index])
    place = data.draw(st.integers(0, len(nodes) - 1))
    removed = nodes.pop(place)
    if removed.arity == 1:
        nodes.insert(place, PSET.mapping["sub"])  # without a unary function, the rest would be complete
    individuals[index] = gp.PrimitiveTree(nodes)
    try:
        population_of(individuals, VOCABULARY)
    except ValueError as error:
        assert "is not one complete tree in prefix order" in str(error)
    else:
        raise AssertionError("an incomplete tree was taken")


def test_an_empty_list_of_trees_is_an_empty_population():
    population = population_of([], VOCABULARY)
    assert (len(population), population.codes.dtype) == (0, np.int16)
