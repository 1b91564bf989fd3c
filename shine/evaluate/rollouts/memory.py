"""Numbers in memory with Python's operators, for native code that reads as formulas: arrays, variables, loops."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TypeAlias

from llvmlite import ir

from shine.compiler.codegen.blocks import I64, POINTER, broadcast, element_pointer, load, number, store
from shine.compiler.codegen.vecmath.lanes import Lanes

DOUBLE = ir.DoubleType()

WIDTH = 4
"""Lanes of a vector; rows of matrices are padded to whole vectors."""

_VECTOR = ir.VectorType(DOUBLE, WIDTH)

Index: TypeAlias = Lanes | ir.Value | int


def whole(build: ir.IRBuilder, index: Index) -> ir.Value:
    """An i64."""
    return index.value if isinstance(index, Lanes) else number(index)


class Array:
    """Doubles from an address on.

    Parameters
    ----------
    build : ir.IRBuilder
        Any instruction is put where it stands.
    pointer : ir.Value
    """

    def __init__(self, build: ir.IRBuilder, pointer: ir.Value) -> None:
        self.build, self.pointer = build, pointer

    def __getitem__(self, index: Index) -> Lanes:
        return Lanes(self.build, load(self.build, self.pointer, whole(self.build, index), DOUBLE, DOUBLE))

    def __setitem__(self, index: Index, value: Lanes | float) -> None:
        kept = value.value if isinstance(value, Lanes) else ir.Constant(DOUBLE, float(value))
        store(self.build, kept, self.pointer, whole(self.build, index), DOUBLE)

    def vector(self, index: Index) -> Lanes:
        """The vector that begins at an index."""
        return Lanes(self.build, load(self.build, self.pointer, whole(self.build, index), DOUBLE, _VECTOR))

    def put(self, index: Index, vector: Lanes) -> None:
        """Store a vector that begins at an index."""
        store(self.build, vector.value, self.pointer, whole(self.build, index), DOUBLE)

    def from_(self, index: Index) -> Array:
        """The array that begins at an index."""
        return Array(self.build, element_pointer(self.build, self.pointer, whole(self.build, index), DOUBLE))

    def is_there(self) -> ir.Value:
        """Whether the address is not 0, as i1."""
        address = self.build.ptrtoint(self.pointer, I64)
        return self.build.icmp_unsigned("!=", address, number(0))


class Words:
    """64-bit words by name: whole numbers, addresses and doubles that Python and native code exchange."""

    def __init__(self, build: ir.IRBuilder, pointer: ir.Value, names: Sequence[str]) -> None:
        self.build, self.pointer, self._places = build, pointer, {name: i for i, name in enumerate(names)}

    def _load(self, name: str, kind: ir.Type) -> ir.Value:
        return load(self.build, self.pointer, number(self._places[name]), I64, kind, 8)

    def whole(self, name: str) -> Lanes:
        """A whole number."""
        return Lanes(self.build, self._load(name, I64))

    def real(self, name: str) -> Lanes:
        """A double."""
        return Lanes(self.build, self._load(name, DOUBLE))

    def address(self, name: str) -> ir.Value:
        """A pointer."""
        return self._load(name, POINTER)

    def array(self, name: str) -> Array:
        """The doubles at an address."""
        return Array(self.build, self.address(name))

    def put(self, name: str, value: Lanes | int) -> None:
        """Store a number."""
        kept = value.value if isinstance(value, Lanes) else number(value)
        store(self.build, kept, self.pointer, number(self._places[name]), I64, 8)


class Variable:
    """A number that changes: a slot on the stack. Make it before any loop."""

    def __init__(self, initial: Lanes) -> None:
        self._build, self._kind = initial.builder, initial.type
        self._slot = self._build.alloca(self._kind)
        self._slot.type = POINTER
        self.set(initial)

    def get(self) -> Lanes:
        """Its value."""
        return Lanes(self._build, self._build.load(self._slot, typ=self._kind))

    def set(self, value: Lanes | float) -> None:
        """Change it."""
        kept = value.value if isinstance(value, Lanes) else ir.Constant(self._kind, value)
        self._build.store(kept, self._slot)


def real(build: ir.IRBuilder, value: float) -> Lanes:
    """A double."""
    return Lanes(build, ir.Constant(DOUBLE, float(value)))


def integer(build: ir.IRBuilder, value: ir.Value | int) -> Lanes:
    """An i64."""
    return Lanes(build, number(value))


def spread(value: Lanes) -> Lanes:
    """A double in every lane of a vector."""
    return Lanes(value.builder, broadcast(value.builder, value.value, _VECTOR))


def larger(a: Lanes, b: Lanes | float) -> Lanes:
    """The larger number; `a` if `b` is NaN."""
    other = b if isinstance(b, Lanes) else a.constant(b)
    return (other > a).where(other, a)


def smaller(a: Lanes, b: Lanes | float) -> Lanes:
    """The smaller number; `a` if `b` is NaN."""
    other = b if isinstance(b, Lanes) else a.constant(b)
    return (other < a).where(other, a)


class Endless:
    """A loop being built that runs until it is left."""

    def __init__(self, build: ir.IRBuilder) -> None:
        self._build = build
        self.head, self.done = build.append_basic_block("again"), build.append_basic_block("left")

    def leave_if(self, condition: Lanes | ir.Value) -> None:
        """Leave the loop if a condition holds."""
        following = self._build.append_basic_block("stay")
        self._build.cbranch(condition.value if isinstance(condition, Lanes) else condition, self.done, following)
        self._build.position_at_end(following)


@contextmanager
def endless(build: ir.IRBuilder) -> Iterator[Endless]:
    """``while True``; afterwards the builder stands where the loop was left to."""
    loop = Endless(build)
    build.branch(loop.head)
    build.position_at_end(loop.head)
    yield loop
    build.branch(loop.head)
    build.position_at_end(loop.done)
