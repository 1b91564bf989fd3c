"""Random formulas that are worth finding: every part of them matters, and they cannot be written much shorter.

A formula of a wanted number of nodes is drawn node by node: a function of one argument (three in ten), or an operator
whose arguments share the remaining nodes at random. Features, their ranges, and constants over two decades are drawn
as well. It is drawn again if a value is not finite, if a few values are far from all others, if a part can be replaced
by its mean without much change, or if a part is a smaller one in disguise.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quality.formulas import NUMPY
from quality.measurements import Axis, anywhere, decades
from quality.problems import FormulaProblem

Array = NDArray[np.float64]

Tree = tuple[Any, ...]
"""("x", column), ("c", number), (function, tree), or (operator, tree, tree)."""

OPERATORS = {"add": " + ", "sub": " - ", "mul": "*", "div": "/"}
OPERATOR_WEIGHTS = (0.3, 0.15, 0.35, 0.2)
FUNCTIONS = ("sqrt", "square", "exp", "log", "sin", "cos")
UNARY = 0.3
CONSTANT = 0.25
"""Shares of functions of one argument among inner nodes, and of constants among leaves."""

RANGES = (anywhere(-1, 1), anywhere(-3, 3), anywhere(0, 1), anywhere(0.5, 5), anywhere(1, 10), anywhere(0, 20),
          decades(0.1, 10), decades(1, 1000), anywhere(2, 3))  # fmt: skip
MOST_FEATURES = 5
NAMES = ("a", "b", "c", "d", "e")

MATTERS = 0.05
"""Least change of the values, as a share of their standard deviation, if a part becomes its mean, or a feature another
row's."""
FARTHEST = 15.0
"""Largest distance of a value from the mean, in standard deviations."""
LARGEST = 1e6
SAME = 1e-10
"""Two parts with a squared correlation nearer to 1 are the same, up to two constants."""
TRIED = 2000
ROWS = 500
HELD_OUT = 1000


@dataclass(frozen=True)
class Drawn:
    """Rows drawn from an axis for each feature."""

    axes: tuple[Axis, ...]
    rows: int

    @property
    def bounds(self) -> tuple[tuple[float, float], ...]:
        """Range of each feature."""
        return tuple((axis.low, axis.high) for axis in self.axes)

    def points(self, rng: np.random.Generator) -> Array:
        """Shape (rows, n_features)."""
        return np.column_stack([axis.draw(rng, self.rows) for axis in self.axes])

    def of(self, rows: int | None) -> Drawn:
        """The same with another number of rows."""
        return self if rows is None else Drawn(self.axes, rows)


def random_problem(size: int, number: int) -> FormulaProblem:
    """The formula of a number among those with `size` nodes: the same in every run."""
    rng = np.random.default_rng([size, number])
    while True:
        features = int(rng.integers(1, min(MOST_FEATURES, (size + 1) // 2) + 1))
        axes = tuple(RANGES[i] for i in rng.integers(len(RANGES), size=features))
        tree = grown(rng, size, features)
        if worth_finding(tree, Drawn(axes, TRIED).points(rng)):
            break
    names, drawn = NAMES[:features], Drawn(axes, ROWS)
    return FormulaProblem(f"nodes{size}-{number}", names, text_of(tree), drawn, Drawn(axes, HELD_OUT))


def grown(rng: np.random.Generator, size: int, features: int) -> Tree:
    """A random tree with this number of nodes."""
    if size == 1:
        if rng.random() < CONSTANT:
            value = float(f"{np.exp(rng.uniform(np.log(0.1), np.log(10))):.2g}")
            return ("c", value)
        return ("x", int(rng.integers(features)))
    if size == 2 or rng.random() < UNARY:
        return (str(rng.choice(FUNCTIONS)), grown(rng, size - 1, features))
    left = int(rng.integers(1, size - 1))
    operator = str(rng.choice(list(OPERATORS), p=OPERATOR_WEIGHTS))
    return (operator, grown(rng, left, features), grown(rng, size - 1 - left, features))


def text_of(tree: Tree) -> str:
    """The formula in Python's notation; constants have a point."""
    match tree:
        case ("x", column):
            return NAMES[column]
        case ("c", value):
            return repr(value)
        case ("square", part):
            return f"({text_of(part)})**2"
        case (name, part):
            return f"{name}({text_of(part)})"
        case (name, left, right):
            return f"({text_of(left)}{OPERATORS[name]}{text_of(right)})"
    raise ValueError(f"not a tree: {tree!r}")


def parts(tree: Tree) -> Iterator[Tree]:
    """All subtrees, the tree itself first."""
    yield tree
    if tree[0] not in ("x", "c"):
        for part in tree[1:]:
            yield from parts(part)


def size_of(tree: Tree) -> int:
    """Number of nodes."""
    return sum(1 for _ in parts(tree))


def values_of(tree: Tree, X: Array, instead: tuple[int, Array] | None = None) -> Array:
    """Values, shape (n_rows,); `instead` replaces the values of one part, the object with this `id`."""
    if instead is not None and id(tree) == instead[0]:
        return instead[1]
    if tree[0] == "x":
        return X[:, tree[1]]
    if tree[0] == "c":
        return np.full(len(X), tree[1])
    with np.errstate(all="ignore"):
        return NUMPY[tree[0]](*(values_of(part, X, instead) for part in tree[1:]))


def worth_finding(tree: Tree, X: Array) -> bool:
    """Whether a formula passes this module's tests at these rows."""
    if {part[1] for part in parts(tree) if part[0] == "x"} != set(range(X.shape[1])):
        return False
    if any(map(_foldable, parts(tree))):
        return False
    if not all(np.abs(values_of(part, X)).max() < LARGEST for part in parts(tree)):  # nor if it is not a number
        return False
    y = values_of(tree, X)
    spread = y.std()
    if not spread > 1e-9 * np.abs(y).max() or np.abs(y - y.mean()).max() > FARTHEST * spread:
        return False
    if not all(_changed(values_of(tree, _shuffled(X, i)), y) for i in range(X.shape[1])):
        return False
    return all(_matters(tree, part, X, y) for part in parts(tree) if part is not tree) and not _disguised(tree, X)


def _shuffled(X: Array, column: int) -> Array:
    """The rows with one column of another row."""
    return np.column_stack([np.roll(values, 1) if i == column else values for i, values in enumerate(X.T)])


def _foldable(tree: Tree) -> bool:
    """Whether constants, or a function and its inverse, meet."""
    if tree[0] in ("x", "c"):
        return False
    below = tree[1:]
    if all(part[0] == "c" for part in below):
        return True
    if (tree[0], below[0][0]) in (("log", "exp"), ("exp", "log"), ("sqrt", "square"), ("square", "sqrt")):
        return True
    kin = next((pair for pair in (("add", "sub"), ("mul", "div")) if tree[0] in pair), None)
    if kin is None:
        return False
    chain = list(_chain(tree, kin))
    if sum(part[0] == "c" for part, _ in chain) > 1:
        return True
    # Equal factors may be a power, equal terms are a multiple, and opposite ones vanish.
    return any(a == b and (kin[0] == "add" or first != other) for (a, first), (b, other) in itertools.pairwise(
        sorted(chain, key=lambda term: repr(term[0]))))  # fmt: skip


def _chain(tree: Tree, kin: tuple[str, str], inverse: bool = False) -> Iterator[tuple[Tree, bool]]:
    """The terms of a sum or the factors of a product, and whether each is subtracted or divided by."""
    for position, part in enumerate(tree[1:]):
        turned = inverse != (position == 1 and tree[0] == kin[1])
        if part[0] in kin:
            yield from _chain(part, kin, turned)
        else:
            yield part, turned


def _matters(tree: Tree, part: Tree, X: Array, y: Array) -> bool:
    """Whether the values change if a part becomes its mean; a constant becomes one that is off by a quarter."""
    own = values_of(part, X)
    other = own * 1.25 if part[0] == "c" else np.full(len(X), own.mean())
    return _changed(values_of(tree, X, (id(part), other)), y)


def _changed(values: Array, y: Array) -> bool:
    """Whether values differ from the target."""
    change = np.where(np.isfinite(values), values - y, y.std())
    return bool(np.sqrt(np.mean(change**2)) >= MATTERS * y.std())


def _disguised(tree: Tree, X: Array) -> bool:
    """Whether a part has the values of a smaller one, up to a factor and an offset that it does not need."""
    seen = [(part, values_of(part, X)) for part in parts(tree) if part[0] != "c"]
    for (large, ours), (small, theirs) in itertools.permutations(seen, 2):
        constants = sum(part[0] == "c" for part in parts(large))
        more = size_of(large) - size_of(small)
        if more > min(2 * constants, 4) and np.corrcoef(ours, theirs)[0, 1] ** 2 > 1 - SAME:
            return True
    return False
