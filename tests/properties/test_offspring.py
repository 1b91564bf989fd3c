"""Offspring of every operator are valid, within the limits, and repeat with their seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from unit.search.evolution.oracles import Node, assert_same, assert_valid, tree_of

from shine.lang.forms.primitives import PrimitiveSet
from shine.lang.forms.tree import Primitive
from shine.lang.growth import Terminals
from shine.lang.population import Population
from shine.search.evolution.operators import variation
from shine.search.evolution.operators.creation import ptc2


@dataclass(frozen=True)
class Case:
    """Random parents, the limits they keep, and a seed for an operator."""

    parents: Population
    max_size: int
    max_depth: int
    terminals: Terminals
    seed: int

    @property
    def rng(self) -> np.random.Generator:
        return np.random.default_rng(self.seed)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    arities = draw(st.lists(st.integers(1, 4), max_size=5))
    functions = tuple(Primitive(f"f{i}", arity) for i, arity in enumerate(arities))
    functions += tuple(Primitive(name, 2) for name in draw(st.sets(st.sampled_from(["add", "mul"]))))
    features = tuple(f"x{i}" for i in range(draw(st.integers(0, 3))))
    max_size, max_depth = draw(st.integers(1, 40)), draw(st.integers(1, 12))
    terminals = Terminals((-2.0, 3.0), draw(st.floats(0, 1)))
    seed = draw(st.integers(0, 2**32))
    rng = np.random.default_rng(seed)
    population = ptc2(12, PrimitiveSet(functions, features), max_size, max_depth, terminals, rng)
    return Case(population, max_size, max_depth, terminals, seed + 1)


def crossover(case: Case) -> Population:
    donors = case.parents.take(np.arange(len(case.parents))[::-1])
    return variation.subtree_crossover(case.parents, donors, case.max_depth, case.rng)


def subtree_mutation(case: Case) -> Population:
    return variation.subtree_mutation(case.parents, case.max_depth, case.terminals, case.rng)


def hoist_mutation(case: Case) -> Population:
    return variation.hoist_mutation(case.parents, case.rng)


def point_mutation(case: Case) -> Population:
    return variation.point_mutation(case.parents, case.terminals, case.rng)


def constant_mutation(case: Case) -> Population:
    return variation.constant_mutation(case.parents, case.rng)


def coefficient_mutation(case: Case) -> Population:
    return variation.coefficient_mutation(case.parents, case.max_depth, case.rng)


OPERATORS: list[Callable[[Case], Population]] = [
    crossover,
    subtree_mutation,
    hoist_mutation,
    point_mutation,
    constant_mutation,
    coefficient_mutation,
]


def expression(population: Population, index: int, node: Node) -> tuple[object, ...]:
    """A subtree as nested tuples: equal formulas compare equal."""
    code, value = population.codes[index, node.position], population.values[index, node.position]
    return (int(code), float(value), *(expression(population, index, argument) for argument in node.arguments))


def subexpressions(formula: tuple[object, ...]) -> list[tuple[object, ...]]:
    """A formula and all its parts."""
    return [formula, *(part for argument in formula[2:] for part in subexpressions(argument))]  # type: ignore[arg-type]


def with_one_part_replaced(formula: tuple[object, ...], other: tuple[object, ...]) -> list[tuple[object, ...]]:
    """The parts of `other` that may have replaced a part of `formula`, one for each possible place."""
    found = [other]
    if formula[:2] == other[:2] and len(formula) == len(other):
        differing = [i for i in range(2, len(formula)) if formula[i] != other[i]]
        if len(differing) == 1:
            found += with_one_part_replaced(formula[differing[0]], other[differing[0]])  # type: ignore[arg-type]
        elif not differing:
            found += subexpressions(other)
    return found


@given(cases(), st.sampled_from(OPERATORS))
def test_offspring_are_valid_and_within_both_limits(case: Case, operator: Callable[[Case], Population]) -> None:
    offspring = operator(case)
    assert len(offspring) == len(case.parents)
    assert_valid(offspring, case.max_size, case.max_depth)


@given(cases(), st.sampled_from(OPERATORS))
def test_a_seed_repeats_bit_for_bit(case: Case, operator: Callable[[Case], Population]) -> None:
    assert_same(operator(case), operator(case))


@given(cases())
def test_crossover_puts_one_subtree_of_the_donor_in_place_of_one_of_the_receiver(case: Case) -> None:
    parents, offspring = case.parents, crossover(case)
    n = len(parents)
    for index in range(n):
        receiver = expression(parents, index, tree_of(parents, index))
        donor = expression(parents, n - 1 - index, tree_of(parents, n - 1 - index))
        child = expression(offspring, index, tree_of(offspring, index))
        assert set(with_one_part_replaced(receiver, child)) & set(subexpressions(donor))


@given(cases())
def test_hoist_puts_a_part_of_a_subtree_in_its_place(case: Case) -> None:
    parents, offspring = case.parents, hoist_mutation(case)
    for index in range(len(parents)):
        parent = expression(parents, index, tree_of(parents, index))
        child = expression(offspring, index, tree_of(offspring, index))
        assert set(with_one_part_replaced(parent, child)) & set(subexpressions(parent))
        assert offspring.sizes[index] < parents.sizes[index] or parents.sizes[index] == 1


@given(cases())
def test_point_and_constant_mutation_keep_the_shape(case: Case) -> None:
    parents = case.parents
    arities = parents.primitives.arities
    for offspring in (point_mutation(case), constant_mutation(case)):
        assert np.array_equal(arities[offspring.codes], arities[parents.codes])
        assert np.array_equal(offspring.sizes, parents.sizes)
