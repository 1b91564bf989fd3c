"""Rules of LLVM's instructions: each reads its operands and returns a value of the language."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from shine.base.errors import GraphImportError
from shine.formats.read.llvmir.calls import call, meaning
from shine.formats.read.llvmir.integers import INTEGER_RULES, product_of, sum_of
from shine.formats.read.llvmir.scope import FLAGS, Address, Integer, Lane, Number, Rule, Scope, Undefined, Value
from shine.formats.read.llvmir.text import Cursor, Type


def _arithmetic(name: str) -> Rule:
    """Rule of an instruction on two floating-point numbers that is a primitive or a function of C's library."""

    def rule(scope: Scope, cursor: Cursor) -> Value:
        kind, a, b = scope.pair(cursor)
        scope.check_type(kind)
        return scope.each(lambda x, y: Number(scope.call(meaning(name), scope.number(x), scope.number(y))), a, b)

    return rule


def _addition(scope: Scope, cursor: Cursor) -> Value:
    kind, a, b = scope.pair(cursor)
    scope.check_type(kind)

    def rule(x: Lane, y: Lane) -> Lane:
        first, second = scope.number(x), scope.number(y)
        number = scope.graph.number(second)
        if number is not None and number < 0:
            # LLVM writes a difference with a constant as a sum.
            return Number(scope.call("sub", first, scope.constant(-float(number)).node))
        return Number(scope.call("add", first, second))

    return scope.each(rule, a, b)


def _negation(scope: Scope, cursor: Cursor) -> Value:
    cursor.skip(*FLAGS)
    kind = cursor.type()
    scope.check_type(kind)
    return scope.each(lambda x: Number(scope.call("neg", scope.number(x))), scope.read(cursor, kind))


def _compare_numbers(scope: Scope, cursor: Cursor) -> Value:
    cursor.skip(*FLAGS)
    predicate = cursor.take()
    kind, a, b = scope.pair(cursor)
    scope.check_type(kind)
    if predicate not in _PREDICATES:
        raise GraphImportError(f"comparison {predicate!r} is not understood")
    rule = _PREDICATES[predicate]
    return scope.each(lambda x, y: scope.condition(rule(scope, scope.number(x), scope.number(y))), a, b)


_Predicate = Callable[[Scope, int, int], int]


def _ordered(name: str) -> _Predicate:
    return lambda scope, a, b: scope.call(name, a, b)


def _not(predicate: _Predicate) -> _Predicate:
    return lambda scope, a, b: scope.opposite(predicate(scope, a, b))


def _unequal(scope: Scope, a: int, b: int) -> int:
    """Less or greater; false for NaN."""
    return scope.either(scope.call("lt", a, b), scope.call("gt", a, b))


def _unordered(scope: Scope, a: int, b: int) -> int:
    """Whether one is NaN: only NaN is unequal to itself."""
    tests = [scope.call("ne", x, x) for x in (a, b) if scope.graph.number(x) is None]
    return scope.either(tests[0], tests[-1]) if tests else scope.graph.constant(0)


_PREDICATES: dict[str, _Predicate] = {
    "false": lambda scope, a, b: scope.graph.constant(0),
    "oeq": _ordered("eq"),
    "ogt": _ordered("gt"),
    "oge": _ordered("ge"),
    "olt": _ordered("lt"),
    "ole": _ordered("le"),
    "one": _unequal,
    "ord": _not(_unordered),
    "uno": _unordered,
    "ueq": _not(_unequal),
    "ugt": _not(_ordered("le")),
    "uge": _not(_ordered("lt")),
    "ult": _not(_ordered("ge")),
    "ule": _not(_ordered("gt")),
    "une": _ordered("ne"),
    "true": lambda scope, a, b: scope.graph.constant(1),
}
"""Comparisons of floating-point numbers. With NaN, names that begin with o mean false, names with u true."""


def _select(scope: Scope, cursor: Cursor) -> Value:
    cursor.skip(*FLAGS)
    test = scope.read(cursor, cursor.type())
    cursor.expect(",")
    kind = cursor.type()
    first = scope.read(cursor, kind)
    cursor.expect(",")
    second = scope.read(cursor, cursor.type())
    if len(test) == 1:
        test *= kind.lanes
    return tuple(_selected(scope, *lanes) for lanes in zip(test, first, second, strict=True))


def _selected(scope: Scope, test: Lane, first: Lane, second: Lane) -> Lane:
    if isinstance(test, Undefined):
        return second
    truth = scope.truth(test)
    if isinstance(first, Integer) and isinstance(second, Integer) and first.width == 1:
        # LLVM writes short-circuiting `and` and `or` as a select.
        if scope.graph.number(second.node) == 0:
            return scope.condition(scope.both(truth, first.node))
        if scope.graph.number(first.node) == 1:
            return scope.condition(scope.either(truth, second.node))
    return scope.choose([(truth, (first,)), (scope.opposite(truth), (second,))])[0]


# Vectors: compilers pack pairs of numbers into them.


def _extract(scope: Scope, cursor: Cursor) -> Value:
    vector = scope.read(cursor, cursor.type())
    cursor.expect(",")
    return (vector[_index(scope, cursor, len(vector))],)


def _insert(scope: Scope, cursor: Cursor) -> Value:
    vector = list(scope.read(cursor, cursor.type()))
    cursor.expect(",")
    (element,) = scope.read(cursor, cursor.type())
    cursor.expect(",")
    vector[_index(scope, cursor, len(vector))] = element
    return tuple(vector)


def _index(scope: Scope, cursor: Cursor, lanes: int) -> int:
    index = scope.integer(scope.read(cursor, cursor.type())[0])
    if index.low != index.high or not 0 <= index.low < lanes:
        raise GraphImportError("the index into a vector must be a constant within it")
    return index.low


def _shuffle(scope: Scope, cursor: Cursor) -> Value:
    first = scope.read(cursor, cursor.type())
    cursor.expect(",")
    second = scope.read(cursor, cursor.type())
    cursor.expect(",")
    both = first + second
    mask = scope.read(cursor, cursor.type())
    return tuple(Undefined() if isinstance(lane, Undefined) else both[scope.integer(lane).low] for lane in mask)


# Constant arrays: compilers turn switches into them.


def _address(scope: Scope, cursor: Cursor) -> Value:
    cursor.skip(*FLAGS, "inbounds", "nusw")
    size = _bytes(cursor.type())
    cursor.expect(",")
    (base,) = scope.read(cursor, cursor.type())
    cursor.expect(",")
    index = scope.integer(scope.read(cursor, cursor.type())[0])
    if not isinstance(base, Address) or cursor.next == ",":
        raise GraphImportError("addresses are not supported, except those of constant arrays")
    return (Address(base.table, (*base.steps, (index, size))),)


def _load(scope: Scope, cursor: Cursor) -> Value:
    kind = cursor.type()
    cursor.expect(",")
    (place,) = scope.read(cursor, cursor.type())
    if not isinstance(place, Address):
        raise GraphImportError("memory is not supported, except constant arrays")
    size, elements = _bytes(kind), scope.elements(place.table)
    zero = scope.graph.constant(0)
    position = Integer(zero, 0, 0, 64)
    for index, step in place.steps:
        if step % size:
            raise GraphImportError(f"an array with elements of another type is read as {kind}")
        factor = scope.integer_constant(step // size, 64)
        position = sum_of(scope, position, product_of(scope, index, factor))
    if any((lane.width if isinstance(lane, Integer) else 0) != kind.width for lane in elements):
        raise GraphImportError(f"an array with elements of another type is read as {kind}")
    # An index outside the array is undefined, so the last element may stand for it.
    result = elements[-1]
    for number in range(len(elements) - 2, -1, -1):
        here = scope.call("eq", position.node, scope.graph.constant(number))
        result = scope.choose([(here, (elements[number],)), (scope.opposite(here), (result,))])[0]
    return (result,)


def _bytes(kind: Type) -> int:
    """Size of a type in memory."""
    array = re.fullmatch(r"\[ (\d+) x (.*) \]", kind.element)
    if array:
        return int(array[1]) * _bytes(Type(array[2]))
    size = {"double": 8, "float": 4}.get(kind.element, kind.width // 8)
    if not size or kind.lanes > 1:
        raise GraphImportError(f"type {kind} in memory is not supported")
    return size


RULES: Mapping[str, Rule] = {
    "fadd": _addition,
    "fsub": _arithmetic("sub"),
    "fmul": _arithmetic("mul"),
    "fdiv": _arithmetic("div"),
    "frem": _arithmetic("fmod"),
    "fneg": _negation,
    "fcmp": _compare_numbers,
    "select": _select,
    "call": call,
    "extractelement": _extract,
    "insertelement": _insert,
    "shufflevector": _shuffle,
    "getelementptr": _address,
    "load": _load,
    "freeze": lambda scope, cursor: scope.read(cursor, cursor.type()),
    **INTEGER_RULES,
}
"""Rule of each opcode; jumps and phi belong to the control flow."""
