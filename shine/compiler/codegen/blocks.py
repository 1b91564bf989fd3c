"""Helpers that llvmlite's builder lacks: loops, memory, variables, vectors with one value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from llvmlite import ir

I64 = ir.IntType(64)
POINTER = ir.PointerType()


class FunctionPointer(ir.PointerType):
    """An opaque pointer that knows the function it points to, so that it can be called.

    llvmlite's own typed pointers are written ``i1 (ptr)*``, which LLVM no longer reads.
    """

    def __init__(self, signature: ir.FunctionType) -> None:
        super().__init__()
        self.pointee = signature


class Variables:
    """Named i64 variables of a function being built: slots on its stack.

    Phi nodes instead are not measurably faster.

    Parameters
    ----------
    builder : ir.IRBuilder
        Positioned where the slots are allocated: outside loops, so that the stack does not grow.
    initial : int
        Value of each variable at the start.
    """

    def __init__(self, builder: ir.IRBuilder, **initial: int) -> None:
        self._builder = builder
        self._slots = {}
        for name, value in initial.items():
            slot = builder.alloca(I64, name=name)
            slot.type = POINTER
            self._slots[name] = slot
            builder.store(number(value), slot)

    def __getitem__(self, name: str) -> ir.Value:
        return self._builder.load(self._slots[name], typ=I64)

    def __setitem__(self, name: str, value: ir.Value | int) -> None:
        self._builder.store(number(value), self._slots[name])


def number(value: ir.Value | int) -> ir.Value:
    """An i64, given as a value or as a Python integer."""
    return ir.Constant(I64, value) if isinstance(value, int) else value


def declare(
    module: ir.Module, name: str, result: ir.Type, kinds: Sequence[ir.Type], labels: Sequence[str]
) -> ir.Function:
    """A new function with named arguments."""
    function = ir.Function(module, ir.FunctionType(result, list(kinds)), name)
    function.type = FunctionPointer(function.ftype)
    for argument, label in zip(function.args, labels, strict=True):
        argument.name = label
    return function


def stack(builder: ir.IRBuilder, element: ir.Type, count: int) -> ir.Value:
    """Allocate `count` elements on the stack, aligned to a cache line; return their address."""
    room = builder.alloca(element, count)
    room.type, room.align = POINTER, 64
    return room


class Loop:
    """A counted loop being built: its `index`, and the `values` it carries from one iteration to the next."""

    def __init__(self, index: ir.Value, values: list[ir.Value]) -> None:
        self.index = index
        self.values = values
        self.results: list[ir.Value] = []


@contextmanager
def counted(
    builder: ir.IRBuilder, start: ir.Value, stop: ir.Value, step: int | ir.Value = 1, carried: Sequence[ir.Value] = ()
) -> Iterator[Loop]:
    """``for index in range(start, stop, step)``; afterwards the builder stands after the loop.

    Parameters
    ----------
    builder : ir.IRBuilder
    start, stop : ir.Value
        i64; no iteration runs if start >= stop.
    step : int or ir.Value
    carried : sequence of ir.Value
        Initial values; the body must append the next ones to `Loop.results`. After the loop, ``Loop.values`` holds the
        final ones.

    Examples
    --------
    >>> with counted(builder, zero, n, carried=[total]) as loop:    # doctest: +SKIP
    ...     loop.results.append(builder.fadd(loop.values[0], item))
    """
    before = builder.block
    head = builder.append_basic_block("head")
    body = builder.append_basic_block("body")
    builder.branch(head)
    builder.position_at_end(head)
    index = builder.phi(start.type, "index")
    index.add_incoming(start, before)
    phis = [builder.phi(value.type) for value in carried]
    for phi, value in zip(phis, carried, strict=True):
        phi.add_incoming(value, before)
    condition = builder.icmp_signed("<", index, stop)
    builder.position_at_end(body)
    loop = Loop(index, list(phis))
    yield loop
    following = builder.add(index, ir.Constant(index.type, step) if isinstance(step, int) else step)
    index.add_incoming(following, builder.block)
    for phi, value in zip(phis, loop.results, strict=True):
        phi.add_incoming(value, builder.block)
    builder.branch(head)
    done = builder.append_basic_block("done")
    with builder.goto_block(head):
        builder.cbranch(condition, body, done)
    builder.position_at_end(done)
    loop.values = list(phis)


def element_pointer(builder: ir.IRBuilder, pointer: ir.Value, index: ir.Value, element: ir.Type) -> ir.Value:
    """Address of ``pointer[index]``."""
    return builder.gep(pointer, [index], source_etype=element)


def load(
    builder: ir.IRBuilder, pointer: ir.Value, index: ir.Value, element: ir.Type, kind: ir.Type, align: int | None = None
) -> ir.Value:
    """Load a scalar or vector of type `kind` at ``pointer[index]``; by default it is aligned like `element`."""
    address = element_pointer(builder, pointer, index, element)
    return builder.load(address, typ=kind, align=align or alignment(element))


def store(
    builder: ir.IRBuilder,
    value: ir.Value,
    pointer: ir.Value,
    index: ir.Value,
    element: ir.Type,
    align: int | None = None,
) -> None:
    """Store a scalar or vector at ``pointer[index]``; by default it is aligned like `element`."""
    builder.store(value, element_pointer(builder, pointer, index, element), align=align or alignment(element))


def alignment(element: ir.Type) -> int:
    """Alignment of a scalar type, in bytes."""
    if isinstance(element, ir.IntType):
        return max(1, int(element.width) // 8)
    # Pointers have 4 bytes on some targets.
    return {ir.FloatType: 4, ir.DoubleType: 8, ir.PointerType: 4}[type(element)]


def broadcast(builder: ir.IRBuilder, scalar: ir.Value, kind: ir.VectorType) -> ir.Value:
    """A vector with the same value in every lane."""
    undefined = ir.Constant(kind, ir.Undefined)
    first = builder.insert_element(undefined, scalar, ir.Constant(ir.IntType(32), 0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), kind.count), [0] * kind.count)
    return builder.shuffle_vector(first, undefined, zeros)


def horizontal_sum(builder: ir.IRBuilder, vector: ir.Value) -> ir.Value:
    """Sum of a vector's lanes, halves first: the same order, so the same bits, on every target."""
    width = vector.type.count
    while width > 1:
        width //= 2
        low, high = (
            builder.shuffle_vector(
                vector, vector, ir.Constant(ir.VectorType(ir.IntType(32), width), list(range(first, first + width)))
            )
            for first in (0, width)
        )
        vector = builder.fadd(low, high)
    return builder.extract_element(vector, ir.Constant(ir.IntType(32), 0))


def horizontal_sums(builder: ir.IRBuilder, vectors: Sequence[ir.Value]) -> list[ir.Value]:
    """The `horizontal_sum` of each vector, with the same bits, for fewer instructions: their halves share vectors."""
    width = vectors[0].type.count
    places = ir.VectorType(ir.IntType(32), width)
    sums: list[ir.Value] = []
    for first in range(0, len(vectors), width):
        left = list(vectors[first : first + width])
        for group in (width >> step for step in range(width.bit_length() - 1)):
            left += left[-1:] * (len(left) % 2)
            every = [[lane for lane in range(2 * width) if (lane % group < group // 2) == low] for low in (True, False)]
            left = [
                builder.fadd(*(builder.shuffle_vector(a, b, ir.Constant(places, half)) for half in every))
                for a, b in zip(left[::2], left[1::2], strict=True)
            ]
        count = min(width, len(vectors) - first)
        sums += [builder.extract_element(left[0], ir.Constant(ir.IntType(32), lane)) for lane in range(count)]
    return sums


def any_lane(builder: ir.IRBuilder, mask: ir.Value) -> ir.Value:
    """Whether an i1, or any lane of an i1 vector, is set."""
    if not isinstance(mask.type, ir.VectorType):
        return mask
    bits = ir.IntType(mask.type.count)
    return builder.icmp_unsigned("!=", builder.bitcast(mask, bits), ir.Constant(bits, 0))


def intrinsic(module: ir.Module, name: str, kind: ir.Type, arity: int) -> ir.Function:
    """An LLVM intrinsic whose arguments and result all have one type."""
    lane = kind.element if isinstance(kind, ir.VectorType) else kind
    suffix = (f"v{kind.count}" if lane is not kind else "") + {ir.DoubleType: "f64", ir.FloatType: "f32"}[type(lane)]
    overload = f"{name}.{suffix}"
    if overload in module.globals:
        return module.globals[overload]
    return ir.Function(module, ir.FunctionType(kind, [kind] * arity), overload)
