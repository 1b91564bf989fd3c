"""Folded constants have the bits that the machine and native code compute."""

from __future__ import annotations

import ast
import math
import re
from functools import cache

import numpy as np
import pytest
from helpers.formulas import APPROXIMATE, FEATURES, WRITTEN, random_tree
from helpers.markers import mostly_slow

from shine.compiler.arrays import COMPILED
from shine.data.datasets.dataset import Dataset
from shine.evaluate.kernels.kernel import Kernel
from shine.evaluate.tiers.machine_tier import MachineEvaluator
from shine.formats.read.guesses import Rewriting
from shine.lang.derivative import gradient
from shine.lang.forms.library import STANDARD
from shine.lang.forms.primitives import PrimitiveSet
from shine.lang.forms.tree import Tree
from shine.lang.parse import parse
from shine.lang.population import Population
from shine.lang.simplify.simplifier import simplify

PRIMITIVES = PrimitiveSet(tuple(STANDARD.values()), FEATURES)


class _Numbers(ast.NodeTransformer):
    """Replaces each name of a feature by a random number."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id not in FEATURES:
            return node
        written = self.rng.random() < 0.5
        return ast.Constant(float(self.rng.choice(WRITTEN) if written else self.rng.normal() * 3))


def constants(rng: np.random.Generator) -> Tree:
    """A random formula of constants only."""
    names = ("add", *map(str, rng.choice([name for name in STANDARD if name != "add"], 4, replace=False)))
    node = _Numbers(rng).visit(random_tree(rng, names, int(rng.integers(2, 12))).result)
    return parse(ast.unparse(ast.fix_missing_locations(node)), FEATURES)


def evaluated(trees: list[Tree]) -> np.ndarray:
    """Predictions of the machine for formulas without features."""
    dataset = Dataset(np.zeros((len(FEATURES), 1)), np.zeros(1), None, FEATURES)
    return MachineEvaluator(dataset, "mse", False, "float64").predict(Population.from_trees(trees, PRIMITIVES))[:, 0]


@cache
def trees() -> list[Tree]:
    return [constants(np.random.default_rng(seed)) for seed in range(300)]


@cache
def values() -> np.ndarray:
    return evaluated(trees())


@pytest.mark.slow
def test_there_is_something_to_fold():
    assert np.isfinite(values()).sum() > 100
    used = " ".join(map(str, trees()))
    assert all(re.search(rf"\b{name}\(|\*\*" if name == "pow" else rf"\b{name}\(", used) for name in APPROXIMATE)


@pytest.mark.slow
@pytest.mark.parametrize("opt_level", ["O0", "O2"])
def test_machine_and_native_code_agree_on_constants(opt_level):
    for tree, value in list(zip(trees(), values().tolist(), strict=True))[:60]:
        native = Kernel(tree, "float64", opt_level)(0.0, 0.0, 0.0)
        assert native == value or (math.isnan(native) and math.isnan(value)), str(tree)


@pytest.mark.slow
def test_simplified_constants_have_the_bits_of_their_evaluation():
    for tree, value in zip(trees(), values().tolist(), strict=True):
        if not math.isfinite(value):
            continue
        # With rounding=False, constants are folded but nothing is reordered.
        simple = simplify(tree, rounding=False, functions=COMPILED)
        assert evaluated([simple])[0] == value, f"{tree} -> {simple}"


@pytest.mark.slow
def test_without_compiled_functions_only_exact_operations_are_folded():
    texts = {"x + (2*3 - sqrt(16))": "x + 2", "x*exp(2)": "x*exp(2)", "x + sin(0)": "x", "x + 7**2 + 2**0.5": None}
    for text, expected in texts.items():
        simple = simplify(parse(text), rounding=False)
        assert expected is None or str(simple) == expected
    found = evaluated([simplify(tree, rounding=False) for tree in trees()])
    finite = np.isfinite(values())
    assert (found[finite] == values()[finite]).all()


@pytest.mark.parametrize("name", mostly_slow(APPROXIMATE, fast=list(APPROXIMATE)[::4]))
def test_every_function_of_one_constant_is_folded_to_its_value(name):
    rng = np.random.default_rng(len(name))
    for _ in range(10):
        numbers = [abs(float(x)) for x in (rng.choice(WRITTEN), rng.normal())][: STANDARD[name].arity]
        text = f"{name}({', '.join(map(repr, numbers))})"
        value = Kernel(parse(text, ()), "float64", "O2")()
        if math.isfinite(value):
            simple = simplify(parse(f"x + {text}", ("x",)), functions=COMPILED)
            assert Kernel(simple)(0.0) == value, text


def test_a_translation_folds_other_primitives_to_the_bits_of_the_evaluation():
    for tree, value in zip(trees(), values().tolist(), strict=True):
        if math.isfinite(value):
            terms = Rewriting(("add",))
            found = terms.number(terms.read(tree, [terms.parameter(name) for name in FEATURES], ("add",)))
            assert found is None or found == value, str(tree)


def test_derivatives_keep_functions_of_constants():
    # Derivatives are made in a layer below the compiler, and evaluated like any other formula.
    assert "*log(2)" in str(gradient(parse("2**x"))[0])
    assert str(gradient(parse("x*sin(0.3)"))[0]) == "sin(0.3)"
