"""The known values of a function, and its operands as values."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from shine.base.errors import GraphImportError
from shine.formats.read.llvmir.flow import ALWAYS
from shine.formats.read.llvmir.text import Cursor, Type
from shine.lang.forms.library import STANDARD
from shine.lang.forms.tree import CONDITIONAL, Tree
from shine.lang.values import ValueGraph


@dataclass(frozen=True)
class Number:
    """A floating-point number: a node of the value graph."""

    node: int


@dataclass(frozen=True)
class Integer:
    """An integer, stored as the equal floating-point number; never -0.0.

    Parameters
    ----------
    node : int
    low, high : int
        Bounds of the integer. A truth value (i1) is 0 or 1; all others are signed.
    width : int
        Bits.
    """

    node: int
    low: int
    high: int
    width: int


@dataclass(frozen=True)
class Bits:
    """The bits of a floating-point number as an integer; only the sign can be read."""

    node: int
    width: int


@dataclass(frozen=True)
class Address:
    """A place in a constant array.

    Parameters
    ----------
    table : str
        Name of the array.
    steps : tuple of (Integer, int)
        Pairs of an index and a number of bytes; the sum of their products is the offset.
    """

    table: str
    steps: tuple[tuple[Integer, int], ...] = ()


@dataclass(frozen=True)
class Undefined:
    """Poison or undef: any value is correct."""


Lane = Number | Integer | Bits | Address | Undefined
Value = tuple[Lane, ...]
"""One lane for each element of a vector; scalars have one lane."""


EXACT_BITS = {"double": 53, "float": 24}
"""Bits of the integers that each floating-point type holds exactly; a function computes in one of these types."""

MAX_TABLE = 64
"""Most elements of a constant array that a formula can index."""

FLAGS = (
    "fast", "nnan", "ninf", "nsz", "arcp", "contract", "afn", "reassoc", "nsw", "nuw", "nneg", "disjoint", "exact",
)  # fmt: skip
"""Assumptions of LLVM about an instruction; they change no defined value."""

SUPPORTED_TYPES = "a formula has arguments and a result of type double, or all of type float, and no memory"


class Scope:
    """Values by their names in the code, and their value graph.

    Parameters
    ----------
    kind : str
        Type of the function's result, and of all floating-point numbers in it.
    tables : mapping of str to str
        Type and elements of each constant array, by name.
    """

    def __init__(self, kind: str, tables: Mapping[str, str]) -> None:
        self.kind = kind
        self.tables = tables
        self.graph = ValueGraph()
        self.values: dict[str, Value] = {}

    # Operands.

    def read(self, cursor: Cursor, kind: Type) -> Value:
        """Read an operand after its type."""
        token = cursor.next
        if token.startswith("%"):
            known = self.values.get(cursor.name())
            if known is None:
                raise GraphImportError(f"operand {token} is not a number; {SUPPORTED_TYPES}")
            return known
        if token.startswith("@") and token[1:].strip('"') in self.tables:
            return (Address(cursor.take()[1:].strip('"')),)
        if kind.lanes == 1:
            return (self._constant(cursor.take(), kind),)
        if token == "splat":
            cursor.take()
            cursor.expect("(")
            lane = self._constant_of(cursor)
            cursor.expect(")")
            return (lane,) * kind.lanes
        if token != "<":
            return (self._constant(cursor.take(), Type(kind.element)),) * kind.lanes
        lanes = []
        while cursor.next in ("<", ","):
            cursor.take()
            lanes.append(self._constant_of(cursor))
        cursor.expect(">")
        return tuple(lanes)

    def pair(self, cursor: Cursor) -> tuple[Type, Value, Value]:
        """Read ``type a, b``."""
        cursor.skip(*FLAGS)
        kind = cursor.type()
        first = self.read(cursor, kind)
        cursor.expect(",")
        return kind, first, self.read(cursor, kind)

    def _constant_of(self, cursor: Cursor) -> Lane:
        kind = cursor.type()
        return self._constant(cursor.take(), kind)

    def _constant(self, token: str, kind: Type) -> Lane:
        if token in ("poison", "undef"):
            return Undefined()
        if kind.width:
            number = {"true": 1, "false": 0, "zeroinitializer": 0}.get(token)
            if number is None and not re.fullmatch(r"-?\d+", token):
                raise GraphImportError(f"constant {token} is not an integer")
            return self.integer_constant(int(token) if number is None else number, kind.width)
        self.check_type(kind)
        if token == "zeroinitializer":
            return self.constant(0.0)
        if re.fullmatch(r"0x[0-9A-Fa-f]{1,16}", token):
            return self.constant(struct.unpack(">d", bytes.fromhex(token[2:].zfill(16)))[0])
        try:
            return self.constant(float(token))
        except ValueError:
            raise GraphImportError(f"constant {token} is not a number") from None

    def elements(self, table: str) -> list[Lane]:
        """The elements of a constant array; nested arrays are flattened."""
        cursor = Cursor(self.tables[table])
        found: list[Lane] = []
        self._elements(cursor, cursor.type(), found)
        return found

    def _elements(self, cursor: Cursor, kind: Type, found: list[Lane]) -> None:
        array = re.fullmatch(r"\[ (\d+) x (.*) \]", kind.element)
        if array is None:
            found.append(self._constant(cursor.take(), kind))
        elif cursor.next == "zeroinitializer":
            inner = Type(array[2])
            for _ in range(min(int(array[1]), MAX_TABLE + 1)):
                # Each element reads the same word.
                self._elements(Cursor("zeroinitializer"), inner, found)
            cursor.take()
        else:
            cursor.expect("[")
            while cursor.next and cursor.next != "]":
                self._elements(cursor, cursor.type(), found)
                cursor.skip(",")
                if len(found) > MAX_TABLE:
                    break
            cursor.take()
        if len(found) > MAX_TABLE:
            raise GraphImportError(f"a formula can choose among {MAX_TABLE} numbers of an array, not more")

    def check_type(self, kind: Type) -> None:
        """Raise an error unless a type is the function's floating-point type, or a vector of it."""
        if kind.element in EXACT_BITS and kind.element != self.kind:
            raise GraphImportError(
                f"it mixes double and float; a formula has one number type, that of the result, {self.kind}"
            )
        if kind.element != self.kind:
            raise GraphImportError(f"type {kind} has no meaning in a formula; {SUPPORTED_TYPES}")

    def constant(self, number: float) -> Number:
        """The value of a floating-point number, which may be infinite or NaN."""
        if math.isfinite(number):
            # 2 reads better than 2.0 and means the same; -0 does not mean -0.0.
            integer_constant = number.is_integer() and abs(number) < 2**53 and repr(number) != "-0.0"
            return Number(self.graph.constant(int(number) if integer_constant else number))
        # The language has no literals for NaN and infinity. The product overflows in float32, too.
        infinity = self.graph.apply("mul", self.graph.constant(1e308), self.graph.constant(1e308))
        if math.isnan(number):
            return Number(self.graph.apply("sub", infinity, infinity))
        return Number(infinity if number > 0 else self.graph.apply("neg", infinity))

    def integer_constant(self, number: int, width: int) -> Integer:
        """The value of an integer constant.

        A `GraphImportError` if the function's floating-point type cannot hold it exactly.
        """
        bits = EXACT_BITS[self.kind]
        reduced = abs(number)
        while reduced and reduced % 2 == 0:
            reduced //= 2
        if reduced.bit_length() > bits:
            raise GraphImportError(f"integer {number} is not a {self.kind}; integers have at most {bits} bits")
        if width == 1:
            number &= 1
        return Integer(self.graph.constant(number), number, number, width)

    def bounded(self, node: int, low: int, high: int, width: int) -> Integer:
        """The value of integer arithmetic, within bounds.

        A `GraphImportError` if it might overflow, or exceed the exact integers of the floating-point type.
        """
        limit = min(1 << EXACT_BITS[self.kind], (1 << (width - 1)) - 1)
        if low < -limit or high > limit:
            raise GraphImportError(
                f"integer arithmetic that may reach {max(-low, high)} is not supported; it must stay within {limit}"
            )
        return Integer(node, low, high, width)

    # Lanes.

    def number(self, lane: Lane) -> int:
        """The node of a lane that is a floating-point number."""
        if isinstance(lane, Undefined):
            raise GraphImportError("its value is undefined")
        if not isinstance(lane, Number):
            raise GraphImportError("an integer stands where a floating-point number is needed")
        return lane.node

    def integer(self, lane: Lane) -> Integer:
        """A lane as an integer."""
        if isinstance(lane, Undefined):
            raise GraphImportError("its value is undefined")
        if isinstance(lane, Bits):
            raise GraphImportError("the bits of a number have no meaning in a formula, only its sign")
        if not isinstance(lane, Integer):
            raise GraphImportError("a floating-point number stands where an integer is needed")
        return lane

    def truth(self, lane: Lane) -> int:
        """The node of a lane that is a truth value."""
        integer = self.integer(lane)
        if integer.width != 1:
            raise GraphImportError(f"an integer of {integer.width} bits stands where a truth value is needed")
        return integer.node

    def condition(self, node: int) -> Integer:
        """A node that is 0 or 1 as a truth value."""
        return Integer(node, 0, 1, 1)

    def each(self, rule: Callable[..., Lane], *values: Value) -> Value:
        """Apply a rule to corresponding lanes of values."""
        if len({len(value) for value in values}) != 1:
            raise GraphImportError("its operands differ in their lanes")
        return tuple(
            Undefined() if any(isinstance(lane, Undefined) for lane in lanes) else rule(*lanes)
            for lanes in zip(*values, strict=True)
        )

    # Conditions.

    def both(self, a: int, b: int) -> int:
        """The node of a conjunction."""
        return a if a == b else self.graph.apply("logical_and", a, b)

    def either(self, a: int, b: int) -> int:
        """The node of a disjunction."""
        return a if a == b else self.graph.apply("logical_or", a, b)

    def opposite(self, a: int) -> int:
        """The node of a negation."""
        if self.graph.names[a] == "logical_not":
            return self.graph.operands[a][0]
        return self.graph.apply("logical_not", a)

    def choose(self, choices: Sequence[tuple[int, Value]]) -> Value:
        """The value whose condition holds; exactly one does."""
        if not choices or len({len(value) for _, value in choices}) != 1:
            raise GraphImportError("its operands differ in their lanes")
        conditions = [condition for condition, _ in choices]
        columns = zip(*(value for _, value in choices), strict=True)
        return tuple(self._chosen(list(zip(conditions, lanes, strict=True))) for lanes in columns)

    def _chosen(self, choices: list[tuple[int, Lane]]) -> Lane:
        grouped: dict[Lane, int] = {}
        for condition, lane in choices:
            if not isinstance(lane, Undefined):
                grouped[lane] = self.either(grouped[lane], condition) if lane in grouped else condition
        if not grouped:
            return Undefined()
        if len(grouped) == 1:
            return next(iter(grouped))
        kinds = {type(lane) for lane in grouped}
        if len(kinds) != 1 or Address in kinds:
            raise GraphImportError("a choice between addresses is not supported, only between numbers")
        # The last choice needs no condition: a negation goes last, because it is the longest and is implied.
        ranked = sorted(grouped, key=lambda lane: (self._is_negation(grouped[lane]), grouped[lane]))
        result = ranked[-1]
        for lane in reversed(ranked[:-1]):
            result = self._either_lane(grouped[lane], lane, result)
        return result

    def _is_negation(self, condition: int) -> bool:
        return condition != ALWAYS and self.graph.names[condition] == "logical_not"

    def _either_lane(self, condition: int, taken: Lane, other: Lane) -> Lane:
        assert not isinstance(taken, Undefined | Address) and not isinstance(other, Undefined | Address)
        node = self.graph.apply(CONDITIONAL, condition, taken.node, other.node)
        if isinstance(taken, Integer) and isinstance(other, Integer):
            return Integer(node, min(taken.low, other.low), max(taken.high, other.high), taken.width)
        return Bits(node, taken.width) if isinstance(taken, Bits) else Number(node)

    def call(self, function: Tree | str, *arguments: int) -> int:
        """The node of a primitive or a formula, applied to nodes."""
        if isinstance(function, str):
            return self.graph.apply(function, *arguments)
        return self.graph.read(function, arguments, kept=STANDARD)


Rule = Callable[[Scope, Cursor], Value | None]
"""Reads an instruction's operands and returns its value, or None if it has none."""
