"""One rule for each operation of a query's steps: vectors of values and masks -> LLVM IR.

Logic has three values, as in SQL: a condition on a missing value is neither true nor false. So a condition is two
masks, where it is true and where it is false; a number is a value and the mask where it is there.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from llvmlite import ir

from shine.base.errors import LoweringError
from shine.compiler.codegen.blocks import I64, broadcast, load
from shine.compiler.codegen.lowering import INTEGER_LOWERINGS
from shine.compiler.codegen.native.astjit import BLOCK_NODES, AstJit
from shine.compiler.codegen.numbers import Numbers, splat
from shine.frames.columns import BIT, ELEMENTS, Inputs, lanes, size_of
from shine.frames.language.types import FLOATS, Plan, Step
from shine.lang.forms.tree import Tree
from shine.lang.python.known import TABLE


@dataclass(frozen=True)
class Number:
    """A vector of numbers, and the mask of those that are not missing; None if none is."""

    value: ir.Value
    valid: ir.Value | None = None


@dataclass(frozen=True)
class Truth:
    """Masks where a condition is true and where it is false; None if it is false wherever it is not true."""

    true: ir.Value
    false: ir.Value | None = None


@dataclass
class Rows:
    """The rows that a step works on: some lanes of a group."""

    builder: ir.IRBuilder
    inputs: Inputs
    slots: list[ir.Value]
    row: ir.Value
    lane: ir.Value
    width: int
    plan: Plan

    def both(self, a: ir.Value | None, b: ir.Value | None) -> ir.Value | None:
        """The intersection of two masks; None is the full one."""
        return b if a is None else a if b is None else self.builder.and_(a, b)

    def false(self, truth: Truth) -> ir.Value:
        """Mask where a condition is false."""
        return self.builder.not_(truth.true) if truth.false is None else truth.false

    def condition(self, holds: ir.Value, valid: ir.Value | None) -> Truth:
        """A condition on values of which some are missing."""
        if valid is None:
            return Truth(holds)
        return Truth(self.builder.and_(holds, valid), self.builder.and_(self.builder.not_(holds), valid))

    def known(self, truth: Truth) -> ir.Value | None:
        """Mask where a condition is true or false."""
        return None if truth.false is None else self.builder.or_(truth.true, truth.false)

    def vector(self, kind: str) -> ir.VectorType:
        """The type of a vector of numbers."""
        return lanes(ELEMENTS[kind], self.width)


Result = Number | Truth
Rule = Callable[..., Result]


def slot_values(builder: ir.IRBuilder, plan: Plan, slots: ir.Value) -> list[ir.Value]:
    """The numbers that are passed at each call: each has 8 bytes."""
    return [
        load(builder, slots, ir.Constant(I64, i * 8 // size_of(kind)), ELEMENTS[kind], ELEMENTS[kind])
        for i, kind in enumerate(plan.slots)
    ]


def emit_steps(rows: Rows) -> Result:
    """The result of a query on some lanes."""
    results: list[Result] = []
    for count, step in enumerate(rows.plan.steps):
        if count and count % BLOCK_NODES == 0:
            block = rows.builder.append_basic_block("next")
            rows.builder.branch(block)
            rows.builder.position_at_end(block)
        results.append(RULES[step.operation](rows, step, *(results[i] for i in step.arguments)))
    return results[-1]


def _column(rows: Rows, step: Step) -> Result:
    position: Any = step.detail
    value = rows.inputs.values(position, rows.row, rows.lane, rows.width)
    valid = rows.inputs.valid(position, value, rows.row, rows.lane)
    return rows.condition(value, valid) if step.kind == "bool" else Number(value, valid)


def _constant(rows: Rows, step: Step) -> Result:
    number: Any = step.detail[0]  # type: ignore[index]
    if step.kind == "bool":
        return Truth(splat(lanes(BIT, rows.width), int(number)))
    return Number(splat(rows.vector(step.kind), number))


def _slot(rows: Rows, step: Step) -> Result:
    position: Any = step.detail
    return Number(broadcast(rows.builder, rows.slots[position], rows.vector(step.kind)))


def _convert(rows: Rows, step: Step, given: Result) -> Result:
    target = rows.vector(step.kind)
    if isinstance(given, Truth):
        return Number(rows.builder.zext(given.true, target), rows.known(given))
    source = _kind(rows, step)
    return Number(converted(rows.builder, given.value, source, step.kind), given.valid)


def _kind(rows: Rows, step: Step) -> str:
    return rows.plan.steps[step.arguments[0]].kind


def converted(build: ir.IRBuilder, value: ir.Value, source: str, target: str) -> ir.Value:
    """Numbers in another type: a wider one, or the nearest float."""
    kind = lanes(ELEMENTS[target], value.type.count)
    if source in FLOATS and target in FLOATS:
        return value if source == target else build.fpext(value, kind)
    is_unsigned = source.startswith("u")
    if target in FLOATS:
        return (build.uitofp if is_unsigned else build.sitofp)(value, kind)
    if kind == value.type:
        return value
    return (build.zext if is_unsigned else build.sext)(value, kind)


def _compared(build: ir.IRBuilder, comparison: str, kind: str, a: ir.Value, b: ir.Value) -> ir.Value:
    if kind in FLOATS:
        return (build.fcmp_unordered if comparison == "!=" else build.fcmp_ordered)(comparison, a, b)
    return (build.icmp_unsigned if kind.startswith("u") else build.icmp_signed)(comparison, a, b)


def _compare(rows: Rows, step: Step, a: Number, b: Number) -> Result:
    holds = _compared(rows.builder, str(step.detail), _kind(rows, step), a.value, b.value)
    return rows.condition(holds, rows.both(a.valid, b.valid))


def _compare_exactly(rows: Rows, step: Step, a: Number, b: Number) -> Result:
    """Numbers of two of int64, uint64 and float64."""
    kinds = [rows.plan.steps[i].kind for i in step.arguments]
    comparison = str(step.detail)
    if kinds[0] == "float64" or kinds == ["uint64", "int64"]:
        flipped = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(comparison, comparison)
        holds = _exact(rows.builder, flipped, b.value, a.value, kinds[1], kinds[0])
    else:
        holds = _exact(rows.builder, comparison, a.value, b.value, kinds[0], kinds[1])
    return rows.condition(holds, rows.both(a.valid, b.valid))


def _exact(build: ir.IRBuilder, comparison: str, a: ir.Value, b: ir.Value, kind: str, other: str) -> ir.Value:
    """A comparison of integers with floats, or of signed with unsigned ones."""
    if other == "uint64":
        # A negative number is below all unsigned ones.
        negative = build.icmp_signed("<", a, splat(a.type, 0))
        holds = build.icmp_unsigned(comparison, a, b)
        below = splat(holds.type, int(comparison in ("<", "<=", "!=")))
        return build.select(negative, below, holds)
    # Rounding keeps order: the rounded integer decides unless it equals the float, which is then a whole number. It is
    # compared as an integer, unless it is the bound of the type, which is above all of its integers.
    near = converted(build, a, kind, other)
    same = build.fcmp_ordered("==", near, b)
    bound = splat(b.type, float(2**64 if kind == "uint64" else 2**63))
    inside = build.fcmp_ordered("<", b, bound)
    safe = build.select(build.and_(same, inside), b, splat(b.type, 0.0))
    whole = (build.fptoui if kind == "uint64" else build.fptosi)(safe, a.type)
    below = splat(same.type, int(comparison in ("<", "<=", "!=")))
    tie = build.select(inside, _compared(build, comparison, kind, a, whole), below)
    return build.select(same, tie, _compared(build, comparison, other, near, b))


def _compare_units(rows: Rows, step: Step, a: Number, b: Number) -> Result:
    """``a * factor`` compared with b, without the product, which may overflow: a with the floor of b / factor."""
    build = rows.builder
    detail: Any = step.detail
    comparison, factor = detail
    size = splat(b.value.type, factor)
    quotient = build.sdiv(b.value, size)
    rest = build.sub(b.value, build.mul(quotient, size))
    negative = build.icmp_signed("<", rest, splat(rest.type, 0))
    floor = build.select(negative, build.sub(quotient, splat(rest.type, 1)), quotient)
    exact = build.icmp_signed("==", rest, splat(rest.type, 0))
    same = build.icmp_signed("==", a.value, floor)
    # Where a equals the floor, a * factor is b if nothing is left, and below b otherwise.
    below = splat(same.type, int(comparison in ("<", "<=", "!=")))
    equal = splat(same.type, int(comparison in ("<=", ">=", "==")))
    tie = build.select(exact, equal, below)
    holds = build.select(same, tie, build.icmp_signed(comparison, a.value, floor))
    return rows.condition(holds, rows.both(a.valid, b.valid))


def _joined(rows: Rows, step: Step, a: Truth, b: Truth) -> Result:
    one, other = rows.builder.and_, rows.builder.or_
    if step.operation == "or":
        one, other = other, one
    true = one(a.true, b.true)
    return Truth(true, None if a.false is None and b.false is None else other(rows.false(a), rows.false(b)))


def _not(rows: Rows, step: Step, a: Truth) -> Result:
    return Truth(rows.false(a), None if a.false is None else a.true)


def _isna(rows: Rows, step: Step, a: Result) -> Result:
    build = rows.builder
    valid = rows.known(a) if isinstance(a, Truth) else a.valid
    if isinstance(a, Number) and _kind(rows, step) in FLOATS:
        valid = rows.both(valid, build.fcmp_ordered("ord", a.value, a.value))
    return Truth(splat(lanes(BIT, rows.width), 0) if valid is None else build.not_(valid))


def _where(rows: Rows, step: Step, test: Truth, a: Result, b: Result) -> Result:
    build = rows.builder
    if isinstance(a, Truth) and isinstance(b, Truth):
        true = build.select(test.true, a.true, b.true)
        if a.false is None and b.false is None:
            return Truth(true)
        return Truth(true, build.select(test.true, rows.false(a), rows.false(b)))
    assert isinstance(a, Number) and isinstance(b, Number)
    value = build.select(test.true, a.value, b.value)
    if a.valid is None and b.valid is None:
        return Number(value)
    full = splat(test.true.type, 1)
    return Number(value, build.select(test.true, a.valid or full, b.valid or full))


def _apply(rows: Rows, step: Step, *operands: Number) -> Result:
    """A primitive of the language; a quotient of whole numbers by zero is missing."""
    valid: ir.Value | None = None
    for operand in operands:
        valid = rows.both(valid, operand.valid)
    name, values = str(step.detail), [operand.value for operand in operands]
    if step.kind == "uint64" and name in _UNSIGNED:
        value, failed = _UNSIGNED[name](rows.builder, *values)
    else:
        value, failed = _by_language(rows, name, step.kind, values)
    return Number(value, valid if failed is None else rows.both(valid, rows.builder.not_(failed)))


def _by_language(rows: Rows, name: str, kind: str, values: list[ir.Value]) -> tuple[ir.Value, ir.Value | None]:
    numbers = Numbers("int64" if kind == "uint64" else kind, rows.width)
    jit = AstJit(rows.builder, numbers)
    parameters = [f"p{i}" for i in range(len(values))]
    call = ast.Call(ast.Name(name, ast.Load()), [ast.Name(each, ast.Load()) for each in parameters], [])
    try:
        value = jit.lower(Tree(tuple(parameters), call, functions=TABLE), values)
    except LoweringError as error:  # pragma: no cover
        raise LoweringError(f"{name} of {kind}: {error}") from None
    return value, jit.failed


def _unsigned_division(method: str) -> Callable[..., tuple[ir.Value, ir.Value | None]]:
    def rule(build: ir.IRBuilder, a: ir.Value, b: ir.Value) -> tuple[ir.Value, ir.Value | None]:
        zero = build.icmp_unsigned("==", b, splat(b.type, 0))
        return getattr(build, method)(a, build.select(zero, splat(b.type, 1), b)), zero

    return rule


def _unsigned_extremum(comparison: str) -> Callable[..., tuple[ir.Value, ir.Value | None]]:
    return lambda build, a, b: (build.select(build.icmp_unsigned(comparison, a, b), a, b), None)


_UNSIGNED: Mapping[str, Callable[..., tuple[ir.Value, ir.Value | None]]] = {
    "floordiv": _unsigned_division("udiv"),
    "mod": _unsigned_division("urem"),
    "min": _unsigned_extremum("<"),
    "max": _unsigned_extremum(">"),
}
"""Primitives that differ for unsigned numbers."""

assert set(_UNSIGNED) <= set(INTEGER_LOWERINGS)

RULES: Mapping[str, Rule] = {
    "column": _column,
    "constant": _constant,
    "slot": _slot,
    "convert": _convert,
    "same": lambda rows, step, a: a,
    "compare": _compare,
    "compare_exactly": _compare_exactly,
    "compare_units": _compare_units,
    "and": _joined,
    "or": _joined,
    "not": _not,
    "isna": _isna,
    "where": _where,
    "apply": _apply,
}
"""Rule of each operation."""
