"""Simplify random formulas: is each no longer, equal where its facts hold, and done in the time of its size?

The formulas are made here, not by the search: all primitives, deep and wide, with shared parts, and constants of all
magnitudes. Their values, before and after, come from NumPy by rules of this file alone.
"""

from __future__ import annotations

import argparse
import ast
import time
from collections.abc import Callable, Iterator

import numpy as np

from shine.compiler.arrays import COMPILED
from shine.lang.forms.library import STANDARD
from shine.lang.forms.tree import Tree
from shine.lang.parse import parse
from shine.lang.simplify.simplifier import simplify
from shine.lang.simplify.tidy import tidy

NAMES = ("a", "b", "c", "d", "e")
RANGES = {"a": (0.25, 4.0), "b": (0.0, 3.0), "c": (-5.0, -0.5), "d": (2.0, 3.0)}
"""What is known of the features; nothing is known of e."""

ROWS = 60
MOST_MILLISECONDS = 50.0
"""Processor time for each hundred nodes; formulas of fewer nodes have as much as one of a hundred."""

DISTURBANCE, ALLOWED = 1e-12, 1e-5
"""Relative change of each feature and each step, which is 1e4 times what rounding changes, and the relative change of
any step that this may cause: elsewhere, a formula that is written otherwise has other values by rounding alone."""

SEEDS = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
"""Odd numbers, which mix the bits of a value (Steele, Lea and Flood 2014)."""

UNROUNDED = {"abs", "min", "max", "sign", "floor", "ceil", "relu", "logical_and", "logical_or", "logical_not"}
"""Functions that do not round."""

EXACT = 1e6
"""Whole numbers below this size come without rounding."""

TOLERANCE = 1e-6


def square_root(x):
    return np.sqrt(x)


def whether(condition):
    return np.asarray(condition, np.float64)


def logistic(x):
    return 1 / (1 + np.exp(-x))


MEANINGS: dict[str, Callable] = {
    "neg": np.negative, "abs": np.abs, "sqrt": square_root, "exp": np.exp, "log": np.log, "floor": np.floor,
    "ceil": np.ceil, "sign": np.sign, "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin,
    "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "min": np.minimum,
    "max": np.maximum, "pow": np.power, "mod": np.remainder, "floordiv": np.floor_divide, "square": np.square,
    "cube": lambda x: x**3, "inv": lambda x: 1 / x, "sigmoid": logistic, "relu": lambda x: np.maximum(x, 0.0),
    "hypot": np.hypot, "log1p": np.log1p, "expm1": np.expm1, "log2": np.log2, "log10": np.log10, "cbrt": np.cbrt,
    "aq": lambda x, y: x / np.sqrt(1 + y * y), "protected_div": lambda x, y: np.where(np.abs(y) > 0.001, x / y, 1.0),
    "protected_log": lambda x: np.where(np.abs(x) > 0.001, np.log(np.abs(x)), 0.0),
    "protected_sqrt": lambda x: np.sqrt(np.abs(x)),
    "logical_and": lambda x, y: np.where(x != 0, y, x), "logical_or": lambda x, y: np.where(x != 0, x, y),
    "logical_not": lambda x: whether(x == 0),
}  # fmt: skip
OPERATORS = {
    ast.Add: np.add, ast.Sub: np.subtract, ast.Mult: np.multiply, ast.Div: np.divide, ast.Pow: np.power,
    ast.Mod: np.remainder, ast.FloorDiv: np.floor_divide,
}  # fmt: skip
COMPARISONS = {
    ast.Lt: np.less, ast.LtE: np.less_equal, ast.Gt: np.greater, ast.GtE: np.greater_equal, ast.Eq: np.equal,
    ast.NotEq: np.not_equal,
}  # fmt: skip
UNARY = [name for name, primitive in STANDARD.items() if primitive.arity == 1]
BINARY = [name for name, primitive in STANDARD.items() if primitive.arity == 2 and name in MEANINGS]
INFIX = ["+", "-", "*", "/"]
EXPONENTS = ["2", "3", "0.5", "1.5", "-1", "-2", "0.7516", "4", "1/3"]
COMMON = ["sin", "cos", "exp", "log", "sqrt", "abs", "square", "cube", "neg", "tan", "inv"]


def disturbed(found: np.ndarray, seed: int) -> np.ndarray:
    """What a step may be by rounding, and by far more; whole numbers stay.

    Equal sizes are disturbed equally, so that what cancels still does.
    """
    found = np.asarray(found, np.float64)
    exact = (found == np.rint(found)) & (np.abs(found) < EXACT)
    mixed = np.abs(found).view(np.uint64) * np.uint64(seed)
    return np.where(exact, found, found * (1 + DISTURBANCE * (mixed / 2.0**63 - 1)))


def values(node: ast.expr, rows: dict[str, np.ndarray], seen: list[np.ndarray], seed: int = 0) -> np.ndarray:
    """The value of an expression, as NumPy has it; all intermediate values go into a list.

    With a seed, each step that rounds is disturbed.
    """
    if isinstance(node, ast.Constant):
        return np.float64(node.value)
    if isinstance(node, ast.Name):
        if node.id not in rows:
            return np.float64(np.pi)
        return disturbed(rows[node.id], seed) if seed else rows[node.id]
    if isinstance(node, ast.BinOp):
        found = OPERATORS[type(node.op)](values(node.left, rows, seen, seed), values(node.right, rows, seen, seed))
    elif isinstance(node, ast.UnaryOp):
        inner = values(node.operand, rows, seen, seed)
        found = whether(inner == 0) if isinstance(node.op, ast.Not) else -inner
    elif isinstance(node, ast.Compare):
        sides = [values(each, rows, seen, seed) for each in (node.left, *node.comparators)]
        truths = [COMPARISONS[type(op)](x, y) for op, x, y in zip(node.ops, sides, sides[1:], strict=False)]
        found = whether(np.logical_and.reduce(np.broadcast_arrays(*truths)))
    elif isinstance(node, ast.BoolOp):
        parts = [values(each, rows, seen, seed) for each in node.values]
        rule = MEANINGS["logical_and" if isinstance(node.op, ast.And) else "logical_or"]
        found = parts[0]
        for part in parts[1:]:
            found = rule(found, part)
    elif isinstance(node, ast.IfExp):
        test, then, other = (values(each, rows, seen, seed) for each in (node.test, node.body, node.orelse))
        found = np.where(test != 0, then, other)
    else:
        found = MEANINGS[node.func.id](*(values(each, rows, seen, seed) for each in node.args))
    if seed and (isinstance(node, ast.BinOp) or (isinstance(node, ast.Call) and node.func.id not in UNROUNDED)):
        found = disturbed(found, seed)
    seen.append(found)
    return found


def number(rng: np.random.Generator) -> str:
    """A constant: as people write it, or of any magnitude."""
    if rng.random() < 0.6:
        return str(rng.choice(["1", "2", "3", "0.5", "1.5", "-1", "10", "0.1", "3.141592653589793", "0", "7"]))
    return repr(float(rng.normal() * 10.0 ** rng.integers(-12, 13)))


def formula(rng: np.random.Generator, size: int, shared: list[str]) -> str:
    """A formula of about so many nodes; some parts repeat earlier ones."""
    if size <= 1:
        return number(rng) if rng.random() < 0.3 else str(rng.choice(NAMES))
    if shared and rng.random() < 0.08:
        return str(rng.choice(shared))
    found = _applied(rng, size, shared)
    if len(found) < 60:
        shared.append(found)
    return found


def _applied(rng: np.random.Generator, size: int, shared: list[str]) -> str:
    kind = rng.random()
    if size == 2 or kind < 0.3:
        name = str(rng.choice(COMMON if rng.random() < 0.7 else UNARY))
        inner = formula(rng, size - 1, shared)
        return f"-({inner})" if name == "neg" else f"(not ({inner}))" if name == "logical_not" else f"{name}({inner})"
    left = int(rng.integers(1, max(size - 1, 2)))
    parts = formula(rng, left, shared), formula(rng, size - 1 - left, shared)
    if kind < 0.75:
        return f"(({parts[0]}){rng.choice(INFIX)}({parts[1]}))"
    if kind < 0.85:
        return f"(({formula(rng, size - 2, shared)})**({rng.choice(EXPONENTS)}))"
    if kind < 0.93:
        name = str(rng.choice([each for each in BINARY if not each.startswith("logical")]))
        sign = {"mod": "%", "floordiv": "//", "pow": "**"}.get(name)
        return f"{name}({parts[0]}, {parts[1]})" if sign is None else f"(({parts[0]}){sign}({parts[1]}))"
    return f"(({parts[0]}) if ({formula(rng, 1, shared)}) {rng.choice(['<', '>=', '=='])} 0.5 else ({parts[1]}))"


def formulas(rng: np.random.Generator, count: int) -> Iterator[Tree]:
    """Random formulas: small and large, deep chains, wide sums and products."""
    for _ in range(count):
        kind = rng.random()
        if kind < 0.8:
            text = formula(rng, int(rng.integers(2, 120) if rng.random() < 0.3 else rng.integers(2, 40)), [])
        elif kind < 0.9:
            text = formula(rng, 3, [])
            for _ in range(int(rng.integers(5, 28))):
                name = str(rng.choice(COMMON))
                inner = f"-({text})" if name == "neg" else f"{name}({text})"
                text = inner if rng.random() < 0.5 else f"({number(rng)}){rng.choice(INFIX)}{inner}"
        else:
            parts = [formula(rng, int(rng.integers(1, 8)), []) for _ in range(int(rng.integers(10, 120)))]
            sign = str(rng.choice(["+", "*"]))
            text = sign.join(f"({part})" for part in parts)
        yield parse(text, NAMES)


def draw(rng: np.random.Generator, with_facts: bool) -> dict[str, np.ndarray]:
    """Rows of the features, within what is known of them or anywhere."""
    return {name: rng.uniform(*(RANGES.get(name, (-4.0, 4.0)) if with_facts else (-4.0, 4.0)), ROWS) for name in NAMES}


def wrong_rows(tree: Tree, other: Tree, rows: dict[str, np.ndarray]) -> int:
    """Rows in which two formulas differ by more than rounding; only ordinary rows count.

    A row is ordinary if no intermediate value is missing, huge or tiny, and none is moved much by disturbed steps.
    """
    seen: list[np.ndarray] = []
    expected = np.broadcast_to(values(tree.result, rows, seen), ROWS)
    good = np.ones(ROWS, np.bool_)
    for part in seen:
        size = np.broadcast_to(np.abs(part), ROWS)
        good &= np.isfinite(size) & (size < 1e50) & ((size > 1e-50) | (size == 0))
    largest = np.maximum.reduce([np.broadcast_to(np.abs(part), ROWS) for part in [expected, *seen]])
    for seed in SEEDS:
        nearby: list[np.ndarray] = []
        values(tree.result, rows, nearby, seed)
        # Not only the value: no step of it may turn, and none may lose all its digits.
        for before, after in zip(seen, nearby, strict=True):
            good &= np.broadcast_to(np.abs(after - before) <= ALLOWED * np.abs(before), ROWS)
    found = np.broadcast_to(values(other.result, rows, []), ROWS)
    return int((good & ~(np.abs(found - expected) <= TOLERANCE * np.abs(expected) + 1e-13 * largest)).sum())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--formulas", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--milliseconds", type=float, default=MOST_MILLISECONDS, help="for each hundred nodes")
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    faults, slowest = 0, [(0.0, "")]
    with np.errstate(all="ignore"):
        for position, tree in enumerate(formulas(rng, options.formulas)):
            for facts in ({}, RANGES):
                for form in (tidy, lambda each, *rest: simplify(each, functions=rest[0], ranges=rest[1])):
                    form(tree, COMPILED, facts)  # compiles what folds constants
                    start = time.process_time()
                    found = form(tree, COMPILED, facts)
                    taken = (time.process_time() - start) * 1e3 / max(tree.size / 100, 1.0)
                    slowest = sorted([*slowest, (taken, str(tree))], reverse=True)[:3]
                    wrong = wrong_rows(tree, found, draw(rng, bool(facts)))
                    if wrong or found.size > tree.size or taken > options.milliseconds:
                        faults += 1
                        told = f"{wrong} rows differ, {tree.size} -> {found.size} nodes, {taken:.1f} ms"
                        print(f"{position}: {told}", flush=True)
                        print(f"  facts {facts}\n  {tree}\n  {found}", flush=True)
    for taken, text in slowest:
        print(f"{taken:.1f} ms a hundred nodes: {text[:100]}")
    print(f"{options.formulas} formulas, {faults} faults")
    return faults > 0


if __name__ == "__main__":
    raise SystemExit(main())
