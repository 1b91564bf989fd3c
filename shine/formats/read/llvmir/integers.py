"""Rules of instructions on integers, and of conversions from and to them.

Integers are stored in floating-point numbers as long as these are exact: truth values, counters, cases of a switch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from shine.base.errors import GraphImportError
from shine.formats.read.llvmir.calls import meaning
from shine.formats.read.llvmir.scope import FLAGS, Bits, Integer, Lane, Number, Rule, Scope, Value
from shine.formats.read.llvmir.text import Cursor, Type
from shine.lang.forms.tree import CONDITIONAL

_IntegerRule = Callable[[Scope, Integer, Integer], Integer]


def _integers(rule: _IntegerRule) -> Rule:
    return lambda scope, cursor: _of_integers(scope, cursor, rule)


def _of_integers(scope: Scope, cursor: Cursor, rule: _IntegerRule) -> Value:
    _, a, b = scope.pair(cursor)
    return scope.each(lambda x, y: rule(scope, scope.integer(x), scope.integer(y)), a, b)


def sum_of(scope: Scope, a: Integer, b: Integer) -> Integer:
    """``a + b``, which must fit the width."""
    if a.width == 1:
        return _exclusive(scope, a, b)
    if a.low == a.high == 0:
        return b
    return scope.bounded(scope.call("add", a.node, b.node), a.low + b.low, a.high + b.high, a.width)


def _difference(scope: Scope, a: Integer, b: Integer) -> Integer:
    if a.width == 1:
        return _exclusive(scope, a, b)
    return scope.bounded(scope.call("sub", a.node, b.node), a.low - b.high, a.high - b.low, a.width)


def product_of(scope: Scope, a: Integer, b: Integer) -> Integer:
    """``a * b``, which must fit the width."""
    if a.width == 1:
        return _conjunction(scope, a, b)
    if b.low == b.high == 1:
        return a
    bounds = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
    node = scope.call("mul", a.node, b.node)
    if a.low < 0 or b.low < 0:
        # A negative factor turns 0 into -0; adding 0 undoes that.
        node = scope.call("add", node, scope.graph.constant(0))
    return scope.bounded(node, min(bounds), max(bounds), a.width)


def _shifted(scope: Scope, a: Integer, b: Integer) -> Integer:
    if b.low != b.high or not 0 <= b.low < a.width:
        raise GraphImportError("a shift must be by a constant")
    factor = 1 << b.low
    node = scope.call("mul", a.node, scope.graph.constant(factor))
    return scope.bounded(node, a.low * factor, a.high * factor, a.width)


def _conjunction(scope: Scope, a: Integer, b: Integer) -> Integer:
    return Integer(scope.both(*_truths(a, b)), 0, 1, a.width)


def _disjunction(scope: Scope, a: Integer, b: Integer) -> Integer:
    return Integer(scope.either(*_truths(a, b)), 0, 1, a.width)


def _exclusive(scope: Scope, a: Integer, b: Integer) -> Integer:
    x, y = _truths(a, b)
    for one, other in ((x, y), (y, x)):
        if scope.graph.number(one) == 1:
            return Integer(scope.opposite(other), 0, 1, a.width)
    return Integer(scope.call("ne", x, y), 0, 1, a.width)


def _truths(a: Integer, b: Integer) -> tuple[int, int]:
    if min(a.low, b.low) < 0 or max(a.high, b.high) > 1:
        raise GraphImportError("operations on the bits of integers are supported only for integers that are 0 or 1")
    return a.node, b.node


def _right_shift(scope: Scope, cursor: Cursor) -> Value:
    """lshr, only to extract the sign of a floating-point number."""
    _, a, b = scope.pair(cursor)

    def rule(bits: Lane, amount: Lane) -> Lane:
        by = scope.integer(amount)
        if not isinstance(bits, Bits) or not by.low == by.high == bits.width - 1:
            raise GraphImportError(
                "shifts to the right are supported only to extract the sign of a floating-point number"
            )
        return Integer(scope.call(meaning("signbit"), bits.node), 0, 1, bits.width)

    return scope.each(rule, a, b)


def _compare_integers(scope: Scope, cursor: Cursor) -> Value:
    cursor.skip("samesign")
    predicate = cursor.take()
    _, a, b = scope.pair(cursor)

    def rule(x: Lane, y: Lane) -> Lane:
        if isinstance(x, Bits):
            return scope.condition(_sign_test(scope, predicate, x, scope.integer(y)))
        return scope.condition(_integer_test(scope, predicate, scope.integer(x), scope.integer(y)))

    return scope.each(rule, a, b)


def _sign_test(scope: Scope, predicate: str, bits: Bits, limit: Integer) -> int:
    negative = scope.call(meaning("signbit"), bits.node)
    if (predicate, limit.low, limit.high) == ("slt", 0, 0):
        return negative
    if (predicate, limit.low, limit.high) == ("sgt", -1, -1):
        return scope.opposite(negative)
    raise GraphImportError("the bits of a number have no meaning in a formula, only its sign")


def _integer_test(scope: Scope, predicate: str, a: Integer, b: Integer) -> int:
    if predicate in ("eq", "ne"):
        return scope.call(predicate, a.node, b.node)
    kind, name = predicate[:1], predicate[1:]
    if name not in ("lt", "le", "gt", "ge") or kind not in ("s", "u"):
        raise GraphImportError(f"comparison {predicate!r} is not understood")
    if kind == "s" and a.width == 1:
        raise GraphImportError("truth values have no signs")
    signed = scope.call(name, a.node, b.node)
    if kind == "s" or (a.low >= 0 and b.low >= 0):
        return signed
    # As unsigned integers, negative numbers are greater than all others.
    zero = scope.graph.constant(0)
    a_negative, b_negative = (scope.call("lt", x.node, zero) for x in (a, b))
    differ = b_negative if name in ("lt", "le") else a_negative
    return scope.call(CONDITIONAL, scope.call("eq", a_negative, b_negative), signed, differ)


# Conversions.


def _conversion(rule: Callable[[Scope, Lane, Type], Lane]) -> Rule:
    def apply(scope: Scope, cursor: Cursor) -> Value:
        cursor.skip(*FLAGS)
        source = cursor.type()
        value = scope.read(cursor, source)
        cursor.expect("to")
        target = cursor.type()
        if source.lanes != target.lanes:
            raise GraphImportError(f"a conversion of {source} to {target} is not supported")
        return scope.each(lambda lane: rule(scope, lane, target), value)

    return apply


def _to_number(signed: bool) -> Callable[[Scope, Lane, Type], Lane]:
    def rule(scope: Scope, lane: Lane, target: Type) -> Lane:
        scope.check_type(target)
        integer = scope.integer(lane)
        return Number((_signed(scope, integer) if signed else _unsigned(integer)).node)

    return rule


def _signed(scope: Scope, integer: Integer) -> Integer:
    """An integer as a signed integer; a true i1 becomes -1."""
    if integer.width > 1:
        return integer
    return Integer(scope.call("sub", scope.graph.constant(0), integer.node), -1, 0, 1)


def _unsigned(integer: Integer) -> Integer:
    if integer.low < 0:
        raise GraphImportError("an unsigned integer that may be negative is not supported")
    return integer


def _truncated(scope: Scope, lane: Lane, target: Type) -> Lane:
    integer = scope.integer(lane)
    low, high = (0, 1) if target.width == 1 else (-(1 << (target.width - 1)), (1 << (target.width - 1)) - 1)
    if integer.low < low or integer.high > high:
        raise GraphImportError(f"cutting an integer to {target.width} bits is supported only if it fits")
    return replace(integer, width=target.width)


def _to_integer(scope: Scope, lane: Lane, target: Type) -> Lane:
    """The number without its fraction; in LLVM, a number that does not fit is undefined."""
    limit = 1 << (target.width - 1)
    integer_constant = scope.call(meaning("trunc"), scope.number(lane))
    return Integer(scope.call("add", integer_constant, scope.graph.constant(0)), -limit, limit - 1, target.width)


def _bits(scope: Scope, lane: Lane, target: Type) -> Lane:
    if isinstance(lane, Bits):
        scope.check_type(target)
        return Number(lane.node)
    if not isinstance(lane, Number) or target.width not in (32, 64):
        raise GraphImportError("the bits of a number have no meaning in a formula, only its sign")
    return Bits(lane.node, target.width)


def _float_conversion(scope: Scope, lane: Lane, target: Type) -> Lane:
    raise GraphImportError("it mixes double and float; write the function in one of them, constants too (0.5f)")


INTEGER_RULES: Mapping[str, Rule] = {
    "add": _integers(sum_of),
    "sub": _integers(_difference),
    "mul": _integers(product_of),
    "shl": _integers(_shifted),
    "and": _integers(_conjunction),
    "or": lambda scope, cursor: _of_integers(scope, cursor, sum_of if cursor.next == "disjoint" else _disjunction),
    "xor": _integers(_exclusive),
    "lshr": _right_shift,
    "icmp": _compare_integers,
    "sitofp": _conversion(_to_number(signed=True)),
    "uitofp": _conversion(_to_number(signed=False)),
    "zext": _conversion(lambda scope, lane, target: replace(_unsigned(scope.integer(lane)), width=target.width)),
    "sext": _conversion(lambda scope, lane, target: replace(_signed(scope, scope.integer(lane)), width=target.width)),
    "trunc": _conversion(_truncated),
    "fptosi": _conversion(_to_integer),
    "bitcast": _conversion(_bits),
    "fpext": _conversion(_float_conversion),
    "fptrunc": _conversion(_float_conversion),
}
"""Rule of each opcode."""
