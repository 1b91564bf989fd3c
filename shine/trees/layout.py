"""The tables that compiled code reads, and what all of that code shares: types, lanes, the tables as arguments.

A tree of at most 64 leaves is a list of its nodes, each with a word: the leaves that are left if a row goes right. The
`and` of the words of all nodes where a row goes right has the row's leaf as its first bit, whatever their order
(Lucchese et al., QuickScorer, SIGIR 2015; for vectors of rows, SIGIR 2016). A larger tree is walked from the root: its
nodes lie by levels, siblings side by side.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from llvmlite import ir

from shine.base.typing import AnyArray, Indices
from shine.compiler.codegen.blocks import I64, POINTER, counted, element_pointer, load, store
from shine.compiler.codegen.numbers import splat
from shine.trees.form import CODES, Ensemble, Tree, check, levels

WORDS_A_SET = CODES // 32 + 1
"""Words of 32 bits of a set of categories."""

MISSING_LEFT, CATEGORICAL = 1 << 30, 1 << 31
"""Flags beside the feature of a node that is walked."""

WALK_NODE = np.dtype([("threshold", np.float64), ("way", np.uint64)])
"""A node that is walked: its way is the feature with flags, and in the upper half the left child, which the right one
follows. A leaf is its own left child."""

TREE_FIELDS = ("first", "missing_right", "missing_left", "by_set", "value", "width", "output", "levels")
"""Fields of a tree's row: its first node; how many nodes compare numbers and send NaN right or left, or compare
categories (all 0 if it is walked); the place of its first value, values of a leaf, first output, levels to walk."""


@dataclass(frozen=True)
class Shape:
    """Kinds of tables, on which code depends; all else is data.

    Parameters
    ----------
    real : {"float64", "float32"}
        Type in which features are compared.
    word : {32, 64}
        Bits of the words.
    has_lists, has_walks, has_sets : bool
        Whether there are trees as lists of words, trees that are walked, and categories.
    link : str
    """

    real: str
    word: int
    has_lists: bool
    has_walks: bool
    has_sets: bool
    link: str


@dataclass(frozen=True, eq=False)
class Tables:
    """The data of compiled code; arrays are contiguous.

    Parameters
    ----------
    features : ndarray, int64
        Columns that are read, those with categories last.
    trees : ndarray of shape (n_trees, 8), int64
        See `TREE_FIELDS`.
    thresholds, words : ndarray
        Of the nodes of lists.
    places : ndarray of shape (n_list_nodes, 2), int32
        Their features, as positions in `features`, and their sets, as positions in `sets`.
    nodes : ndarray of `WALK_NODE`
    leaves : ndarray, int64
        Place of the first value of each node that is walked to, after the tree's first.
    values : ndarray, float64
    sets : ndarray, uint32
    base : ndarray of shape (n_outputs,), float64
    """

    features: Indices
    trees: Indices
    thresholds: AnyArray
    words: AnyArray
    places: AnyArray
    nodes: AnyArray
    leaves: Indices
    values: AnyArray
    sets: AnyArray
    base: AnyArray

    @property
    def arrays(self) -> dict[str, AnyArray]:
        """The arrays by name, in order."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


@dataclass(frozen=True, eq=False)
class Layout:
    """An ensemble as code reads it.

    Parameters
    ----------
    shape : Shape
    tables : Tables
    numeric : int
        Number of features before those with categories.
    divisor : float
    n_results : int
    """

    shape: Shape
    tables: Tables
    numeric: int
    divisor: float
    n_results: int

    @property
    def report(self) -> tuple[str, ...]:
        """Method of computing the trees."""
        listed = self.tables.trees[self.tables.trees[:, 7] == 0]
        walked = self.tables.trees[self.tables.trees[:, 7] > 0]
        size = sum(array.nbytes for array in self.tables.arrays.values())
        lines = []
        if len(listed):
            lines.append(
                f"{len(listed)} trees as lists of {len(self.tables.words)} comparisons "
                f"with words of {self.shape.word} bits"
            )
        if len(walked):
            lines.append(f"{len(walked)} trees walked by levels, at most {int(walked[:, 7].max())}")
        used = len(self.tables.features)
        lines.append(f"{used} features read, compared as {self.shape.real}; {size} bytes of tables")
        return tuple(lines)


def layout(ensemble: Ensemble) -> Layout:
    """The tables of an ensemble; a `FormError` if the ensemble is not valid."""
    check(ensemble)
    used = np.unique(np.concatenate([np.zeros(0, np.int64), *(np.unique(tree.feature) for tree in ensemble.trees)]))
    used = used[used >= 0]
    by_code = np.isin(used, list(ensemble.categorical))
    features = np.concatenate([used[~by_code], used[by_code]]).astype(np.int64)
    positions = np.zeros(ensemble.n_features + 1, np.int64)
    positions[features] = np.arange(len(features))
    # Leaves of the largest tree that is a list of words: from here on, walking is faster.
    listed = [int(tree.leaves.sum()) <= 64 for tree in ensemble.trees]
    most = max((int(t.leaves.sum()) for t, is_list in zip(ensemble.trees, listed, strict=True) if is_list), default=0)
    shape = Shape(
        ensemble.rounding,
        32 if most <= 32 else 64,
        any(listed),
        not all(listed),
        len(ensemble.sets) > 0,
        ensemble.link,
    )
    parts = _Parts(shape, positions)
    for tree, is_list in zip(ensemble.trees, listed, strict=True):
        (parts.add_list if is_list else parts.add_walk)(tree)
    tables = parts.tables(features, _packed(ensemble.sets), np.ascontiguousarray(ensemble.base, np.float64))
    return Layout(shape, tables, int((~by_code).sum()), ensemble.divisor, ensemble.n_results)


class _Parts:
    """Tables that grow tree by tree."""

    def __init__(self, shape: Shape, positions: Indices) -> None:
        self._real, self._word = np.dtype(shape.real), np.dtype(f"u{shape.word // 8}")
        self._positions = positions
        self._rows: list[list[int]] = []
        self._lists: list[tuple[AnyArray, AnyArray, AnyArray]] = []
        self._walks: list[tuple[AnyArray, AnyArray]] = []
        self._values: list[AnyArray] = []
        self._n_list = self._n_walk = self._n_values = 0

    def add_list(self, tree: Tree) -> None:
        """A tree as the words of its nodes."""
        count, first, order = np.zeros(len(tree.feature), np.int64), np.zeros(len(tree.feature), np.int64), levels(tree)
        for level in reversed(order):
            inner = level[tree.feature[level] >= 0]
            count[level] = 1
            count[inner] = count[tree.left[inner]] + count[tree.right[inner]]
        for level in order:
            inner = level[tree.feature[level] >= 0]
            first[tree.left[inner]] = first[inner]
            first[tree.right[inner]] = first[inner] + count[tree.left[inner]]
        inner = np.flatnonzero(~tree.leaves)
        # By kind; within a kind by feature, so that a vector of rows is often in the cache already.
        kind = np.where(tree.categories[inner] >= 0, 2, tree.missing_left[inner].astype(np.int64))
        inner = inner[np.lexsort((tree.feature[inner], kind))]
        self._lists.append(
            (
                _rounded_down(tree.threshold[inner], self._real),
                self._words_of(first[inner], count[tree.left[inner]]),
                np.stack([self._positions[tree.feature[inner]], tree.categories[inner] * WORDS_A_SET], axis=1),
            )
        )
        kinds = np.bincount(kind, minlength=3).tolist()
        ends = np.flatnonzero(tree.leaves)
        self._row(self._n_list, kinds, tree, ends[np.argsort(first[ends])], 0)
        self._n_list += len(inner)

    def add_walk(self, tree: Tree) -> None:
        """A tree as nodes by level."""
        order = levels(tree)
        nodes = np.concatenate(order)
        place = np.zeros(len(tree.feature), np.int64)
        place[nodes] = np.arange(len(nodes))
        is_leaf = tree.leaves[nodes]
        by_set = (tree.categories[nodes] >= 0) & ~is_leaf
        made = np.zeros(len(nodes), WALK_NODE)
        made["threshold"] = np.where(by_set, tree.categories[nodes] * float(WORDS_A_SET), tree.threshold[nodes])
        made["threshold"][is_leaf] = np.inf
        flags = np.where(tree.missing_left[nodes] | is_leaf, MISSING_LEFT, 0) | np.where(by_set, CATEGORICAL, 0)
        feature = np.where(is_leaf, 0, self._positions[tree.feature[nodes]]) | flags
        left = np.where(is_leaf, np.arange(len(nodes)), place[tree.left[nodes]])
        made["way"] = left << 32 | feature
        leaves = np.where(is_leaf, np.cumsum(is_leaf) - 1, 0) * tree.values.shape[1]
        self._walks.append((made, leaves))
        self._row(self._n_walk, [0, 0, 0], tree, nodes[is_leaf], len(order))
        self._n_walk += len(nodes)

    def _row(self, first: int, kinds: list[int], tree: Tree, ends: Indices, depth: int) -> None:
        width = tree.values.shape[1]
        self._rows.append([first, *kinds, self._n_values, width, tree.output, depth])
        self._values.append(tree.values[ends].reshape(-1))
        self._n_values += len(ends) * width

    def _words_of(self, first: Indices, count: Indices) -> AnyArray:
        """Words without `count` bits from the bit `first` on; bit 0 is the highest."""
        bits = self._word.itemsize * 8
        every = (1 << bits) - 1
        words = [
            every ^ (((1 << c) - 1) << (bits - f - c)) for f, c in zip(first.tolist(), count.tolist(), strict=True)
        ]
        return np.array(words, self._word)

    def tables(self, features: Indices, sets: AnyArray, base: AnyArray) -> Tables:
        """All tables."""

        def joined(parts: list[AnyArray], dtype: np.dtype, shape: tuple[int, ...] = (0,)) -> AnyArray:
            return np.concatenate([np.zeros(shape, dtype), *parts]).astype(dtype)

        return Tables(
            features,
            np.array(self._rows, np.int64).reshape(-1, len(TREE_FIELDS)),
            joined([part[0] for part in self._lists], self._real),
            joined([part[1] for part in self._lists], self._word),
            joined([part[2] for part in self._lists], np.dtype(np.int32), (0, 2)),
            joined([part[0] for part in self._walks], WALK_NODE),
            joined([part[1] for part in self._walks], np.dtype(np.int64)),
            joined(self._values, np.dtype(np.float64)),
            sets,
            base,
        )


def _rounded_down(thresholds: AnyArray, real: np.dtype) -> AnyArray:
    """The largest numbers of a type that are not above thresholds: numbers of this type compare alike with both."""
    with np.errstate(over="ignore"):
        rounded = thresholds.astype(real)
    return np.where(rounded > thresholds, np.nextafter(rounded, real.type(-np.inf)), rounded)


def _packed(sets: AnyArray) -> AnyArray:
    """Sets as words of 32 bits, the first code in the lowest bit."""
    padded = np.zeros((len(sets), WORDS_A_SET * 32), np.bool_)
    padded[:, : sets.shape[1]] = sets
    weights = np.uint32(1) << np.arange(32, dtype=np.uint32)
    words: AnyArray = (padded.reshape(-1, 32) * weights).sum(axis=1, dtype=np.uint32)
    return words


I1, I32, DOUBLE, FLOAT = ir.IntType(1), ir.IntType(32), ir.DoubleType(), ir.FloatType()

REALS: dict[str, ir.Type] = {"float64": DOUBLE, "float32": FLOAT}

AT_ONCE = 4
"""Vectors of rows that a node is applied to at once: enough to hide how long an instruction takes."""

TABLES = ("features", "trees", "thresholds", "words", "places", "nodes", "leaves", "values", "sets", "base")
"""Arguments that are arrays of `shine.trees.layout.Tables`."""

COUNTS = ("n_features", "n_numeric", "n_trees", "n_outputs")
"""Arguments that are sizes."""


@dataclass(frozen=True)
class Plan:
    """An ensemble's shape on a processor.

    Parameters
    ----------
    shape : Shape
    lanes : int
        Rows of a vector.
    """

    shape: Shape
    lanes: int

    @property
    def block(self) -> int:
        """Rows that are computed together."""
        return self.lanes * AT_ONCE

    @property
    def real(self) -> ir.Type:
        """Type in which features are compared."""
        return REALS[self.shape.real]

    @property
    def word(self) -> ir.IntType:
        """Type of a word of leaves."""
        return ir.IntType(self.shape.word)

    def vector(self, element: ir.Type) -> ir.VectorType:
        """A vector with an element for each row."""
        return ir.VectorType(element, self.lanes)


def number(value: int) -> ir.Constant:
    """An i64."""
    return ir.Constant(I64, value)


def tree_fields(build: ir.IRBuilder, row: ir.Value) -> dict[str, ir.Value]:
    """Fields of a tree's row."""
    return {name: load(build, row, number(place), I64, I64) for place, name in enumerate(TREE_FIELDS)}


def every(kind: ir.VectorType, value: int | float) -> ir.Constant:
    """A vector with one value."""
    return splat(kind, value)


def gather(
    build: ir.IRBuilder, base: ir.Value, indices: ir.Value, element: ir.Type, mask: ir.Value | None = None
) -> ir.Value:
    """``base[index]`` for each lane; 0 where a mask is not set."""
    lanes = indices.type.count
    kind, flags = ir.VectorType(element, lanes), ir.VectorType(I1, lanes)
    pointers = ir.VectorType(POINTER, lanes)
    code = {DOUBLE: "f64", FLOAT: "f32"}.get(element) or f"i{element.width}"
    name = f"llvm.masked.gather.v{lanes}{code}.v{lanes}p0"
    function = build.module.globals.get(name) or ir.Function(
        build.module, ir.FunctionType(kind, [pointers, I32, flags, kind]), name
    )
    places = build.gep(base, [indices], source_etype=element)
    places.type = pointers
    size = 8 if element == DOUBLE else 4 if element == FLOAT else element.width // 8
    chosen = every(flags, 1) if mask is None else mask
    return build.call(function, [places, ir.Constant(I32, size), chosen, ir.Constant(kind, None)])


def has_bit(
    build: ir.IRBuilder, sets: ir.Value, first: ir.Value, codes: ir.Value, mask: ir.Value | None = None
) -> ir.Value:
    """Whether the sets that begin at the words `first` have codes; lanes of integers of one type."""
    kind = codes.type
    place = build.add(first, build.lshr(codes, every(kind, 5)))
    words = gather(build, sets, place, I32, mask)
    narrow = words.type
    shift = build.and_(codes, every(kind, 31))
    if kind != narrow:
        shift = build.trunc(shift, narrow)
    return build.trunc(build.lshr(words, shift), ir.VectorType(I1, kind.count))


def add_values(
    build: ir.IRBuilder, plan: Plan, tree: dict[str, ir.Value], values: ir.Value, places: list[ir.Value], acc: ir.Value
) -> None:
    """Add the values of leaves to the outputs of a tree; `places` are integers, from the tree's first value on."""
    kind = plan.vector(DOUBLE)
    own = element_pointer(build, values, tree["value"], DOUBLE)
    with counted(build, number(0), tree["width"]) as column:
        out = build.mul(build.add(tree["output"], column.index), number(plan.block))
        base = element_pointer(build, own, column.index, DOUBLE)
        for vector, place in enumerate(places):
            at = build.add(out, number(vector * plan.lanes))
            total = build.fadd(load(build, acc, at, DOUBLE, kind), gather(build, base, place, DOUBLE))
            store(build, total, acc, at, DOUBLE)
