"""Shared by the tests of exports to C, torch, JAX and ONNX: random rows, random formulas, comparison of values.

Two facts together show that an exported formula has the model's own predictions, without a guess at how errors grow:
each primitive alone is within 2 ulp of Shine's compiled one; and a whole formula of exact primitives has exactly the
value of the target's primitives applied one by one, as the reference tier does here.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
from helpers.equality import same_bits, ulps
from helpers.formulas import APPROXIMATE
from numpy.typing import NDArray

import shine
from shine.lang.forms.library import STANDARD
from shine.lang.forms.primitives import ARITIES
from shine.lang.forms.tape import application as application_of
from shine.lang.forms.tree import Primitive, Tree
from shine.lang.interpret import REFERENCE

FEATURES = ("a", "b", "x1")
"""The parameters of the strategies' trees."""

EXACT = tuple(name for name in ARITIES if name not in APPROXIMATE)
"""Primitives that have one right result to the bit."""

SMOOTH = "a*sin(b) + exp(-a*a) - log(b)/sqrt(a + b) + tanh(a)**3 + atan(a/b) + cosh(a)*sinh(b) + log1p(a)*hypot(a, b)"
"""A formula whose derivatives exist wherever its features are positive."""

Columns = list[NDArray[np.floating]]
Function = Callable[..., NDArray[np.floating]]


def special_numbers(dtype: str) -> NDArray[np.floating]:
    """Zeros, infinities, NaN, the ends of the range, small integers, and the points where functions turn."""
    info = np.finfo(dtype)
    positive = [0.0, 0.5, 1.0, 2.0, 3.0, 1 / 3, np.pi, np.pi / 2, 1e-5, 10.0, 709.5, 88.5, 1e6, 1e15, 1e22, np.inf]
    positive += [
        info.max,
        info.max / 2,
        info.tiny,
        info.smallest_subnormal,
        info.tiny / 3,
        1 + info.eps,
        1 - info.epsneg,
    ]
    with np.errstate(all="ignore"):
        values = np.array([*positive, np.nan]).astype(dtype)
    return np.concatenate([values, -values])


def rows(seed: int, count: int, dtype: str = "float64", features: int = len(FEATURES)) -> Columns:
    """Columns of ordinary numbers, of numbers of all magnitudes and of special ones; the first two have every pair."""
    rng = np.random.default_rng(seed)
    info = np.finfo(dtype)
    special = special_numbers(dtype)
    pairs = [grid.ravel() for grid in np.meshgrid(special, special)]
    columns = []
    for position in range(features):
        wide = np.ldexp(rng.uniform(-1, 1, count), rng.integers(info.minexp, info.maxexp, count))
        kind = rng.random(count)
        column = np.where(
            kind < 0.6, rng.normal(size=count) * 3, np.where(kind < 0.9, wide, rng.choice(special, count))
        )
        first = pairs[position][:count] if position < 2 else rng.choice(special, len(pairs[0]))[:count]
        with np.errstate(all="ignore"):
            columns.append(np.concatenate([first, column[len(first) :]]).astype(dtype))
    return columns


def application(name: str) -> Tree:
    """A primitive applied to the parameters."""
    return shine.parse(f"{name}({', '.join(FEATURES[: STANDARD[name].arity])})", FEATURES)


def differences(
    values: NDArray[np.floating], expected: NDArray[np.floating], columns: Columns, limit: float = 0
) -> list[str]:
    """Where values are more than `limit` ulp off; 0 is the same bits, the sign of zero included."""
    values = np.broadcast_to(values, expected.shape)
    assert values.dtype == expected.dtype
    wrong = ~same_bits(values, expected) if limit == 0 else ulps(values, expected) > limit
    wrong |= (expected == 0) & ~same_bits(values, expected)
    return [
        f"at {[float(column[row]) for column in columns]}: {values[row]!r}, expected {expected[row]!r}"
        for row in np.flatnonzero(wrong)[:5]
    ]


@contextmanager
def primitives_of_the_target(functions: dict[str, Function], names: Iterable[str] = APPROXIMATE) -> Iterator[None]:
    """Within the context, the reference tier computes the named primitives with the target's functions."""
    original = dict(REFERENCE)
    for name in names:
        arity = ARITIES[name]
        REFERENCE[name] = _one_by_one(functions[name], arity)
    try:
        yield
    finally:
        REFERENCE.update(original)


def _one_by_one(function: Function, arity: int) -> Function:
    def apply(*operands: NDArray[np.floating]) -> NDArray[np.floating]:
        unused = [operands[0]] * (len(FEATURES) - arity)
        return np.asarray(function(*operands, *unused))

    return apply


def deep_tree(levels: int) -> Tree:
    """A formula of a and b with as many levels, of several primitives, whose value stays finite."""
    node: ast.expr = ast.Name("a", ast.Load())
    other = ast.Name("b", ast.Load())
    for level in range(levels):
        name, operands = [
            ("sub", [other, node]),
            ("aq", [node, other]),
            ("abs", [node]),
            ("add", [node, ast.Constant(0.75)]),
            ("where", [application_of("lt", [other, ast.Constant(9.0)]), node, other]),
            ("min", [node, application_of("neg", [other])]),
        ][level % 6]
        node = application_of(name, operands)
    return Tree(("a", "b"), node, functions=STANDARD)


def chain_of_functions(length: int) -> Tree:
    """A formula that calls g1, which calls g2 twice, and so on; its value is a, through 2**length calls."""
    table = dict(STANDARD)
    parameters, last = ("x",), shine.parse("x")
    for number in range(length, 0, -1):
        table[f"g{number}"] = Primitive(f"g{number}", 1, replace(last, functions=dict(table)))
        last = shine.parse(f"g{number}(x)/2 + g{number}(x)/2", parameters, table)
    return shine.parse("g1(a)", FEATURES, table)


def module_of(source: str) -> dict[str, Callable[..., object]]:
    """The functions that the text of a module defines."""
    names: dict[str, Callable[..., object]] = {}
    exec(compile(source, "<exported>", "exec"), names)  # type: ignore[arg-type]
    return names
