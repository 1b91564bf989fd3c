"""Random formulas as people write them, of a size and of some primitives."""

from __future__ import annotations

import numpy as np

from shine.lang.forms.library import STANDARD
from shine.lang.forms.primitives import CONSTANT, PrimitiveSet
from shine.lang.forms.tape import tree_from_tape
from shine.lang.forms.tree import Tree

# Not derived from the compiler's tables: the tests must notice a missing row.
EXACT = ("add", "sub", "mul", "div", "sqrt")
BASIC_EXACT = (*EXACT, "neg", "abs", "min", "max", "floor", "ceil", "sign", "where", "lt", "le", "gt", "ge", "eq", "ne",
               "logical_and", "logical_or", "logical_not", "floordiv", "mod")  # fmt: skip
APPROXIMATE = ("exp", "log", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "pow")
COMPOSITE = tuple(name for name, primitive in STANDARD.items() if primitive.definition is not None)
OF_INTEGERS = (*(name for name in BASIC_EXACT if name != "sqrt"), "pow", "square", "cube", "inv", "relu")
FEATURES = ("a", "b", "c")

VOCABULARIES = (EXACT, BASIC_EXACT, BASIC_EXACT + APPROXIMATE, BASIC_EXACT + APPROXIMATE + COMPOSITE)
"""Sets of primitives for random trees, from exact ones to all."""

EXPONENTS = (2.0, 3.0, -1.0, 0.5, 1 / 3, 4.0, -2.0, 1.5, 2 / 3, -0.5, 1.0, 0.0, 5.0)
"""Exponents that people write."""

WRITTEN = (
    *EXPONENTS, *map(float, range(-10, 11)), 0.25, 0.1, 100.0, 1000.0, 1e-3, np.pi, 2 * np.pi, np.e
)  # fmt: skip
"""Numbers that people write."""


def idiom(rng: np.random.Generator, names: tuple[str, ...]) -> list[str | float] | None:
    """A usual form of one value x in postfix order, such as x**2, 2**x or x*x; None if the names lack its function.

    ``"x"``, always the first part, stands for the value.
    """
    exponent, feature = float(rng.choice(EXPONENTS)), str(rng.choice(FEATURES))
    forms: list[list[str | float]] = [
        ["x", exponent, "pow"], ["x", exponent, "pow"], [float(rng.choice([2.0, 10.0, np.e])), feature, "pow"],
        [feature, feature, "mul"], [feature, feature, "mul", feature, "mul"], ["x", "square"], ["x", "cube"],
        ["x", float(rng.choice(WRITTEN)), "mul"], [1.0, feature, "div"],
    ]  # fmt: skip
    form = forms[int(rng.integers(len(forms)))]
    return form if all(not isinstance(part, str) or part in ("x", *FEATURES, *names) for part in form) else None


def random_tree(rng: np.random.Generator, names: tuple[str, ...], size: int) -> Tree:
    """A random tree of about `size` nodes: random nodes are applied to what is on the stack until one value is left."""
    primitives = PrimitiveSet(tuple(STANDARD[name] for name in names), FEATURES)
    codes: list[int] = []
    values: list[float] = []
    height = 0
    # Powers soon overflow and hide the rest of a tree: only half of the trees get them on purpose.
    usual = rng.random() < 0.5
    while len(codes) < size or height != 1:
        fits = [f.name for f in primitives.functions if f.arity <= height]
        growing = len(codes) < size
        # Past the size, take only functions that lower the stack.
        fits = [name for name in fits if growing or STANDARD[name].arity > 1]
        form = idiom(rng, names) if usual and growing and height and rng.random() < 0.2 else None
        if form is not None:
            for part in form[form[0] == "x" :]:
                known = primitives.function_codes | primitives.feature_codes
                codes.append(known[part] if isinstance(part, str) else CONSTANT)
                values.append(0.0 if isinstance(part, str) else part)
            height += form[0] != "x"
        elif not fits or (growing and rng.random() < 0.5):
            constant = rng.random() < 0.3
            codes.append(CONSTANT if constant else int(rng.integers(1, 1 + len(FEATURES))))
            written = usual and rng.random() < 0.5
            number = rng.choice(WRITTEN) if written else rng.normal() * 10.0 ** rng.integers(-3, 4)
            values.append(float(number) if constant else 0.0)
            height += 1
        else:
            name = fits[int(rng.integers(len(fits)))]
            codes.append(primitives.function_codes[name])
            values.append(0.0)
            height += 1 - STANDARD[name].arity
    return tree_from_tape(np.array(codes, np.int16), np.array(values), primitives)
