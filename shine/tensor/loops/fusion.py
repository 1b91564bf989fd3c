"""The nests of loops of a function, and their fusion."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any

from shine.tensor.form.module import Function, Instruction, Value
from shine.tensor.loops.placement import CHEAP, Access, Placement, is_lazy, is_same, is_uniform, placement_of, symbols

REDUCTIONS = frozenset({"reduce_sum", "reduce_prod", "reduce_max", "reduce_min"})

PRODUCTS = frozenset({"dot", "convolve"})


@dataclass(frozen=True, eq=False)
class Store:
    """Elements of `value` go to ``target[start + step * index]``.

    A value that is its own target is computed; another one is copied. A value that only the nest itself needs is
    computed and not written: it stays in a register.
    """

    value: Value
    target: Value
    start: tuple[int, ...]
    step: tuple[int, ...]
    is_written: bool = True

    @property
    def is_computed(self) -> bool:
        """Whether the value is computed here."""
        return self.value == self.target


@dataclass(eq=False)
class Nest:
    """One nest of loops.

    Parameters
    ----------
    kind : str
        ``"loops"``, or the operation that has loops of its own.
    shape : tuple of int
        Iterations.
    axes : tuple of int
        Those that are reduced.
    stores : list of Store
    reductions : list of Instruction
    maker : Instruction or None
        The instruction with loops of its own; the elements of a product go through `stores`.
    """

    kind: str
    shape: tuple[int, ...] = ()
    axes: tuple[int, ...] = ()
    stores: list[Store] = field(default_factory=list)
    reductions: list[Instruction] = field(default_factory=list)
    maker: Instruction | None = None

    @property
    def written(self) -> set[Value]:
        """Values with memory that it writes."""
        found = {store.target for store in self.stores if store.is_written} | {
            reduction.result for reduction in self.reductions
        }
        return found if self.maker is None or self.stores else found | set(self.maker.results)


@dataclass(eq=False)
class Group:
    """Nests inside common outer loops, one for each of the first axes that all have."""

    nests: list[Nest]
    outer: int = 0


def fuse(function: Function) -> tuple[Placement, list[Group]]:
    """The values of a function with memory, and the groups of nests that compute them, in order.

    Elementwise chains become part of the product or the reduction that makes their input, and of the reduction that
    reads them. Precondition: the function is valid.
    """
    kept: set[Value] = set()
    while True:
        placed = placement_of(function, kept)
        nests = _merged(placed, _with_epilogues(placed, list(_nests(placed))))
        repeated = _repeated(placed, nests)
        if not repeated:
            break
        kept |= repeated
    _keep_in_registers(placed, nests)
    return placed, _grouped(placed, nests)


def _repeated(placed: Placement, nests: list[Nest]) -> set[Value]:
    """Costly values that two nests compute; not values computed only on the way to another one."""
    times = Counter(made.result for nest in nests for made in computed(placed, nest) if made is not nest.maker)
    found = {value for value, count in times.items() if count > 1 and placed.costs.get(value, 0) > CHEAP}
    return found.difference(*(placed.makers[value].operands for value in found))


def full_store(value: Value) -> Store:
    """All elements in their places."""
    return Store(value, value, (0,) * value.type.rank, (1,) * value.type.rank)


def copied(value: Value, target: Value) -> Nest:
    """A nest that copies a value."""
    rank = value.type.rank
    return Nest("loops", value.type.shape, stores=[Store(value, target, (0,) * rank, (1,) * rank)])


def _nests(placed: Placement) -> Iterator[Nest]:
    """A nest for each value with memory."""
    for instruction in placed.function.body:
        if placed.stored.isdisjoint(instruction.results):
            continue
        name, operands, result = instruction.operation, instruction.operands, instruction.results[0]
        if name == "constant" and not is_uniform(instruction):
            continue
        if is_lazy(instruction):
            yield Nest("loops", result.type.shape, stores=[full_store(result)])
        elif name in REDUCTIONS:
            axes: Any = instruction.attributes["axes"]
            yield Nest("loops", operands[0].type.shape, axes, reductions=[instruction])
        elif name == "concatenate":
            yield from _concatenation(instruction)
        elif name == "pad":
            yield from _padding(instruction)
        elif name in PRODUCTS:
            yield Nest(name, result.type.shape, stores=[full_store(result)], maker=instruction)
        else:
            yield Nest(name, result.type.shape, maker=instruction)


def _concatenation(instruction: Instruction) -> Iterator[Nest]:
    axis: Any = instruction.attributes["axis"]
    first = 0
    for operand in instruction.operands:
        rank = operand.type.rank
        start = tuple(first if i == axis else 0 for i in range(rank))
        yield Nest("loops", operand.type.shape, stores=[Store(operand, instruction.result, start, (1,) * rank)])
        first += operand.type.shape[axis]


def _padding(instruction: Instruction) -> Iterator[Nest]:
    (operand, filling), attributes, result = instruction.operands, instruction.attributes, instruction.result
    low: Any = attributes["low"]
    interior: Any = attributes["interior"]
    rank = result.type.rank
    yield Nest("loops", result.type.shape, stores=[Store(filling, result, (0,) * rank, (1,) * rank)])
    step = tuple(between + 1 for between in interior)
    yield Nest("loops", operand.type.shape, stores=[Store(operand, result, low, step)])


def reads(placed: Placement, nest: Nest) -> list[Access]:
    """A nest's reads from memory; without indices where its own loops decide them."""
    found: list[Access] = []
    inside = set(nest.maker.results) if nest.maker is not None else set()
    for operand in nest.maker.operands if nest.maker is not None else ():
        found += [(leaf, ()) for leaf, _ in placed.accesses(operand, False)]
    for store in nest.stores:
        if store.value not in inside:
            found += placed.accesses(store.value, store.is_computed)
    for reduction in nest.reductions:
        found += placed.accesses(reduction.operands[0], False)
    kept = {store.value for store in nest.stores if store.is_computed} | inside
    # Values that the nest itself has just computed come from a register.
    return [(leaf, at) for leaf, at in found if leaf not in kept or not is_same(at, symbols(nest.shape))]


def computed(placed: Placement, nest: Nest) -> set[Instruction]:
    """Instructions that a nest computes at each place, in registers."""
    todo = [(store.value, store.is_computed) for store in nest.stores]
    todo += [(reduction.operands[0], False) for reduction in nest.reductions]
    found: set[Instruction] = set()
    while todo:
        value, is_root = todo.pop()
        maker = placed.makers.get(value)
        if maker is not None and maker not in found and (is_root or not placed.has_memory(value)):
            found.add(maker)
            todo += [(operand, False) for operand in maker.operands]
    return found


def _needed(placed: Placement, nest: Nest) -> set[Value]:
    return {placed.base(leaf) for leaf, _ in reads(placed, nest)}


def _with_epilogues(placed: Placement, nests: list[Nest]) -> list[Nest]:
    """Products that store, instead of their sums, the elementwise chains that follow."""
    results = {placed.base(result) for result in placed.function.results}
    needed = {id(nest): _needed(placed, nest) for nest in nests}
    known: set[Value] = set()
    done: list[Nest] = []
    left = deque(nests)
    while left:
        product = left.popleft()
        done.append(product)
        if product.kind in PRODUCTS:
            assert product.maker is not None
            made = product.maker.result
            left = deque(nest for nest in left if not _is_taken(placed, product, nest, known, needed[id(nest)]))
            needed[id(product)] = _needed(placed, product)
            others = (needed[id(nest)] for nest in (*done[:-1], *left))
            if len(product.stores) > 1 and made not in results and not any(made in values for values in others):
                product.stores.pop(0)
                placed.stored.discard(made)
        known |= product.written
    return done


def _is_taken(placed: Placement, product: Nest, nest: Nest, known: Set[Value], needed: Set[Value]) -> bool:
    """Whether a product computes a nest's values, once it has the sum; then it stores them from now on."""
    if nest.kind != "loops" or nest.reductions or nest.shape != product.shape or len(nest.stores) != 1:
        return False
    (root,), own = nest.stores, {store.value for store in product.stores}
    assert product.maker is not None
    if own.isdisjoint(needed) or not root.is_computed or root.value.type.dtype != product.maker.result.type.dtype:
        return False
    found = placed.accesses(root.value, True)
    outer = {placed.base(leaf) for leaf, _ in found if leaf not in own}
    is_ready = all(b in known or b not in placed.makers or _is_data(placed, b) for b in outer)
    if not is_ready or not all(is_same(at, symbols(nest.shape)) for leaf, at in found if leaf in own):
        return False
    product.stores.append(root)
    return True


def _is_data(placed: Placement, value: Value) -> bool:
    maker = placed.makers[value]
    return maker.operation == "constant" and not is_uniform(maker)


def _merged(placed: Placement, nests: list[Nest]) -> list[Nest]:
    """Nests over the same iterations in one, unless one needs a value that another finishes at its end."""
    done: list[Nest] = []
    for nest in nests:
        accesses = reads(placed, nest)
        needed = {placed.base(leaf) for leaf, _ in accesses}
        for before in reversed(done):
            if _can_merge(placed, before, nest, accesses):
                before.axes = before.axes if before.reductions else nest.axes
                before.stores += nest.stores
                before.reductions += nest.reductions
                break
            if needed & before.written or nest.written & before.written:
                done.append(nest)
                break
        else:
            done.append(nest)
    return done


def _can_merge(placed: Placement, first: Nest, second: Nest, accesses: Sequence[Access]) -> bool:
    if first.kind != "loops" or second.kind != "loops" or first.shape != second.shape:
        return False
    if first.reductions and second.reductions and first.axes != second.axes:
        return False
    if any(not store.is_computed for nest in (first, second) for store in nest.stores):
        return False
    kept, indices_of_all, written = {store.value for store in first.stores}, symbols(first.shape), first.written
    return all(
        leaf in kept and is_same(indices, indices_of_all) for leaf, indices in accesses if placed.base(leaf) in written
    )


def _keep_in_registers(placed: Placement, nests: list[Nest]) -> None:
    """Write only results, and values that another nest reads."""
    needed = {placed.base(result) for result in placed.function.results}
    needed.update(*(_needed(placed, nest) for nest in nests))
    for nest in nests:
        if nest.kind == "loops":
            nest.stores = [
                replace(store, is_written=not store.is_computed or store.target in needed) for store in nest.stores
            ]


def _grouped(placed: Placement, nests: list[Nest]) -> list[Group]:
    """Neighbours in common outer loops: the next nest reads values while they are in the first cache."""
    groups: list[Group] = []
    for nest in nests:
        last = groups[-1] if groups else None
        outer = _common(placed, last, nest) if last is not None else 0
        if last is not None and outer:
            last.nests.append(nest)
            last.outer = outer
        else:
            groups.append(Group([nest]))
    return groups


def _common(placed: Placement, group: Group, nest: Nest) -> int:
    """Number of outer loops that a nest can share with a group that it reads from."""
    limits = [outermost(member) for member in (*group.nests, nest)]
    outer = min(limits)
    for member in group.nests:
        while outer and member.shape[:outer] != nest.shape[:outer]:
            outer -= 1
    written = {value for member in group.nests for value in member.written}
    accesses = [access for access in reads(placed, nest) if placed.base(access[0]) in written]
    for leaf, indices in accesses:
        if leaf not in written:
            return 0
        while outer and not is_same(indices[:outer], symbols(nest.shape[:outer])):
            outer -= 1
    if len(group.nests) > 1:
        outer = group.outer if outer >= group.outer else 0
    return outer if accesses else 0


def outermost(nest: Nest) -> int:
    """Axes that can be outer loops: neither reduced nor the last; of a convolution, images and rows."""
    if nest.kind == "convolve":
        return len(nest.shape) - 2
    if nest.kind != "loops" or any(not store.is_computed for store in nest.stores):
        return 0
    return min([*nest.axes, lane_axis(nest.shape)]) if nest.shape else 0


def lane_axis(shape: Sequence[int]) -> int:
    """The axis along which vectors lie: the last one that is longer than 1."""
    return max((axis for axis, size in enumerate(shape) if size != 1), default=len(shape) - 1)
