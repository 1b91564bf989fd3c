"""Offspring of every operator are valid, within the limits, and repeat with their seed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from unit.search.evolution.oracles import NO_VARIATION, Node, assert_same, assert_valid, tree_of

from shine.lang.forms.primitives import PrimitiveSet
from shine.lang.forms.tree import Primitive
from shine.lang.growth import Terminals
from shine.lang.population import Population
from shine.search.evolution.operators.creation import ptc2
from shine.search.evolution.operators.variation import Offspring, breed
from shine.search.evolution.settings import EvolutionSettings


@dataclass(frozen=True)
class Case:
    """Random parents, the limits they keep, and a seed for an operator."""

    parents: Population
    max_size: int
    max_depth: int
    terminals: Terminals
    seed: int


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


OPERATORS = [*NO_VARIATION, "part_mutation"]


def bred(case: Case, operator: str) -> Offspring:
    """Offspring of one operator, all parents alike; those of part mutation have parts of the parents."""
    shares = {**NO_VARIATION, "part_mutation": 0.0, "hoist_mutation": 1e-300, operator: 1.0}
    limits = {"max_size": case.max_size, "max_depth": case.max_depth, "population": 12, "tournament": 1}
    settings = EvolutionSettings(**shares, **limits, initial_size=1)  # type: ignore[arg-type]
    return breed(case.parents, np.arange(12), settings, case.terminals, case.seed, case.parents, scaled=False)


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


def pairs(case: Case, operator: str) -> Iterator[tuple[tuple[object, ...], tuple[object, ...]]]:
    """Each parent and its offspring."""
    offspring = bred(case, operator)
    for index, ancestor in enumerate(offspring.ancestors.tolist()):
        child = expression(offspring.population, index, tree_of(offspring.population, index))
        yield expression(case.parents, ancestor, tree_of(case.parents, ancestor)), child


@given(cases(), st.sampled_from(OPERATORS))
def test_offspring_are_valid_and_within_both_limits(case: Case, operator: str) -> None:
    assert_valid(bred(case, operator).population, case.max_size, case.max_depth)


@given(cases(), st.sampled_from(OPERATORS))
def test_a_key_repeats_bit_for_bit(case: Case, operator: str) -> None:
    assert_same(bred(case, operator).population, bred(case, operator).population)


@given(cases(), st.sampled_from(["crossover", "part_mutation"]))
def test_crossover_puts_one_subtree_of_a_donor_in_place_of_one_of_the_receiver(case: Case, operator: str) -> None:
    donors = (expression(case.parents, index, tree_of(case.parents, index)) for index in range(12))
    given = {part for donor in donors for part in subexpressions(donor)}
    for receiver, child in pairs(case, operator):
        assert set(with_one_part_replaced(receiver, child)) & given


@given(cases())
def test_subtree_mutation_inserts_at_most_eight_nodes(case: Case) -> None:
    for parent, child in pairs(case, "subtree_mutation"):
        assert any(len(subexpressions(part)) <= 8 for part in with_one_part_replaced(parent, child))


@given(cases())
def test_hoist_puts_a_part_of_a_subtree_in_its_place(case: Case) -> None:
    for parent, child in pairs(case, "hoist_mutation"):
        assert set(with_one_part_replaced(parent, child)) & set(subexpressions(parent))
        assert len(subexpressions(child)) < len(subexpressions(parent)) or len(subexpressions(parent)) == 1


@given(cases(), st.sampled_from(["point_mutation", "constant_mutation"]))
def test_point_and_constant_mutation_keep_the_shape(case: Case, operator: str) -> None:
    parents, offspring = case.parents, bred(case, operator)
    arities = parents.primitives.arities
    assert np.array_equal(arities[offspring.population.codes], arities[parents.codes[offspring.ancestors]])
    assert np.array_equal(offspring.population.sizes, parents.sizes[offspring.ancestors])
