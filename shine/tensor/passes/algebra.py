"""Algebraic simplification of elementwise operations: fewer and cheaper ones, with the same bits."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from shine.tensor.form.interpreter import evaluate
from shine.tensor.form.module import Function, Instruction, Module, Value
from shine.tensor.form.operations import CALLS
from shine.tensor.form.types import DTYPES, FLOATS, INTEGERS
from shine.tensor.passes import reshaping
from shine.tensor.passes.rewriting import Replacement, Rewriting, Rule, by_table, rewritten, splat
from shine.tensor.passes.specialize import unchanged

MOST_ELEMENTS = 4096
"""Elements of a value that is computed for that."""


def _known_condition(r: Rewriting, instruction: Instruction) -> Replacement:
    condition, a, b = instruction.operands
    number = splat(r.array(condition))
    if number is None and a != b:
        return None
    return r.fitted(b if number is False else a, instruction.result.type.shape)


def _negated_condition(r: Rewriting, instruction: Instruction) -> Replacement:
    condition, a, b = instruction.operands
    negated = r.maker(condition, "not")
    return None if negated is None else r.make("select", negated.operands[0], b, a)


def _known_branch(r: Rewriting, instruction: Instruction) -> Replacement:
    """One branch is called, if the predicate is known or both are the same function."""
    predicate, *arguments = instruction.operands
    number = splat(r.array(predicate))
    true, false = str(instruction.attributes["true"]), str(instruction.attributes["false"])
    if number is None and true != false:
        return None
    return r.emit("call", arguments, function=false if number is False else true)


def _negated_predicate(r: Rewriting, instruction: Instruction) -> Replacement:
    predicate, *arguments = instruction.operands
    negated = r.maker(predicate, "not")
    if negated is None:
        return None
    true, false = instruction.attributes["true"], instruction.attributes["false"]
    return r.emit("cond", (*negated.operands, *arguments), true=false, false=true)


def _never_runs(r: Rewriting, instruction: Instruction) -> Replacement:
    """A loop whose condition is false at the start gives its first state."""
    condition = r.module.function(str(instruction.attributes["condition"]))
    known = {
        parameter: array
        for parameter, operand in zip(condition.parameters, instruction.operands, strict=True)
        if (array := r.array(operand)) is not None
    }
    return instruction.operands if _holds(r.module, condition, known) is False else None


def _unchanged(r: Rewriting, instruction: Instruction) -> Replacement:
    """Take values that a loop returns unchanged from before the loop."""
    fixed = unchanged(r.module, instruction)
    if not any(r.uses[instruction.results[place]] for place in fixed):
        return None
    made = r.emit("while", instruction.operands, **instruction.attributes)
    return tuple(instruction.operands[place] if place in fixed else value for place, value in enumerate(made))


def _holds(module: Module, function: Function, known: dict[Value, np.ndarray]) -> bool | None:
    """The value of a condition, if it follows from the known parameters; None if it does not."""
    # Instructions of a loop's condition that is computed to know whether the loop ever runs.
    if len(function.body) > 64:
        return None
    values = dict(known)
    for instruction in function.body:
        small = all(result.type.elements <= MOST_ELEMENTS for result in instruction.results)
        if not small or instruction.operation in CALLS or any(v not in values for v in instruction.operands):
            continue
        with np.errstate(all="ignore"):
            found = evaluate(instruction, [values[operand] for operand in instruction.operands])
        for result, array in zip(instruction.results, found, strict=True):
            values[result] = np.asarray(array, result.type.numpy).reshape(result.type.shape)
    (result,) = function.results
    return bool(values[result]) if result in values else None


def simplify(module: Module) -> Module:
    """Apply identities.

    Precondition: the module is valid; `canonicalize` first finds more, because constants stand right then.
    Postcondition: no instruction matches a rule of the table here and in `reshaping`. Elementwise rules
    keep every bit, signed zeros included, but for which NaN a NaN is. Rules for floats that add in another order
    (a sum of sums, a sum of equal elements) keep the value up to rounding and the sign of zero.
    """
    return rewritten(module, by_table(RULES))


def _neutral(test: Callable[[Any, str], bool], place: int = 1) -> Rule:
    """The other operand, if the one at `place` is a constant that changes nothing."""

    def rule(r: Rewriting, instruction: Instruction) -> Replacement:
        number, other = splat(r.array(instruction.operands[place])), instruction.operands[1 - place]
        if number is None or not test(number, other.type.dtype):
            return None
        return r.fitted(other, instruction.result.type.shape)

    return rule


def _is_negative_zero(number: Any, dtype: str) -> bool:
    """x + -0.0 is x for every x; x + 0.0 is 0.0 for -0.0."""
    return number == 0 and (dtype in INTEGERS or math.copysign(1, number) < 0)


def _is_positive_zero(number: Any, dtype: str) -> bool:
    """x - 0.0 is x for every x."""
    return number == 0 and (dtype in INTEGERS or math.copysign(1, number) > 0)


def _is_one(number: Any, dtype: str) -> bool:
    return bool(number == 1)


def _is_true(number: Any, dtype: str) -> bool:
    return number is True


def _is_false(number: Any, dtype: str) -> bool:
    return number is False


def _absorbing(test: Callable[[Any, str], bool]) -> Rule:
    """The constant, whatever the other operand is."""

    def rule(r: Rewriting, instruction: Instruction) -> Replacement:
        found = instruction.operands[1]
        number = splat(r.array(found))
        return None if number is None or not test(number, found.type.dtype) else _filled(r, instruction, number)

    return rule


def _is_integer_zero(number: Any, dtype: str) -> bool:
    return number == 0 and dtype in INTEGERS


def _filled(r: Rewriting, instruction: Instruction, number: Any) -> Value:
    """A number for every element of the result."""
    found = instruction.result.type
    return r.fitted(r.constant(number, found.with_shape(())), found.shape)


def _minus_one(r: Rewriting, instruction: Instruction) -> Replacement:
    """x * -1 is -x, and so is x / -1."""
    a, b = instruction.operands
    is_found = splat(r.array(b)) == -1 and b.type.dtype in FLOATS
    return r.fitted(r.make("neg", a), instruction.result.type.shape) if is_found else None


def _reciprocal(r: Rewriting, instruction: Instruction) -> Replacement:
    """Division by a power of two is a product: both are rounded once."""
    a, b = instruction.operands
    divisors = r.array(b)
    if divisors is None or b.type.dtype not in FLOATS or not divisors.size:
        return None
    with np.errstate(all="ignore"):
        inverse = (1 / divisors).astype(divisors.dtype)
        significands, _ = np.frexp(divisors)
        tiny = np.finfo(divisors.dtype).tiny
    exact = np.isfinite(inverse) & (np.abs(significands) == 0.5) & (np.abs(inverse) >= tiny)
    return r.make("mul", a, r.constant(inverse)) if exact.all() else None


def _negated_from(r: Rewriting, instruction: Instruction) -> Replacement:
    """-0.0 - x is -x."""
    a, b = instruction.operands
    number = splat(r.array(a))
    if number is None or not _is_negative_zero(number, a.type.dtype):
        return None
    return r.fitted(r.make("neg", b), instruction.result.type.shape)


def _plus_negated(r: Rewriting, instruction: Instruction) -> Replacement:
    """a + -b is a - b."""
    a, b = instruction.operands
    if (negated := r.maker(b, "neg")) is not None:
        return r.make("sub", a, negated.operands[0])
    if (negated := r.maker(a, "neg")) is not None:
        return r.make("sub", b, negated.operands[0])
    return None


def _minus_negated(r: Rewriting, instruction: Instruction) -> Replacement:
    """a - -b is a + b."""
    a, b = instruction.operands
    negated = r.maker(b, "neg")
    return None if negated is None else r.make("add", a, negated.operands[0])


def _both_negated(r: Rewriting, instruction: Instruction) -> Replacement:
    """-a * -b is a * b; so is division."""
    found = [r.maker(operand, "neg") for operand in instruction.operands]
    if found[0] is None or found[1] is None or instruction.result.type.dtype not in FLOATS:
        return None
    return r.make(instruction.operation, found[0].operands[0], found[1].operands[0])


def _same_minus(r: Rewriting, instruction: Instruction) -> Replacement:
    """x - x is 0 for integers; for floats it may be NaN."""
    a, b = instruction.operands
    return _filled(r, instruction, 0) if a == b and a.type.dtype in INTEGERS else None


def _power(r: Rewriting, instruction: Instruction) -> Replacement:
    """Squares and cubes are products: the meaning of `pow` says so. Integers have more: their powers are exact."""
    base, exponent = instruction.operands
    number = splat(r.array(exponent))
    if number is None or (number not in (2, 3) and not (number in (0, 1) and base.type.dtype in INTEGERS)):
        return None
    if number == 0:
        return _filled(r, instruction, 1)
    power = base
    for _ in range(int(number) - 1):
        power = r.make("mul", power, base)
    return r.fitted(power, instruction.result.type.shape)


def _same_twice(r: Rewriting, instruction: Instruction) -> Replacement:
    """min(x, x), max(x, x), x and x, x or x."""
    a, b = instruction.operands
    return a if a == b else None


def _compared_with_itself(value: bool) -> Rule:
    """Integers equal themselves; NaN does not."""

    def rule(r: Rewriting, instruction: Instruction) -> Replacement:
        a, b = instruction.operands
        return _filled(r, instruction, value) if a == b and a.type.dtype not in FLOATS else None

    return rule


def _undone(r: Rewriting, instruction: Instruction) -> Replacement:
    """-(-x) is x; so is not not x."""
    before = r.maker(instruction.operands[0], instruction.operation)
    return None if before is None else before.operands[0]


def _after(*inner: str) -> Rule:
    """An operation that changes nothing after another one."""

    def rule(r: Rewriting, instruction: Instruction) -> Replacement:
        (operand,) = instruction.operands
        return operand if r.maker(operand, *inner) is not None else None

    return rule


def _absolute_of_negated(r: Rewriting, instruction: Instruction) -> Replacement:
    before = r.maker(instruction.operands[0], "neg")
    return None if before is None else r.make("abs", before.operands[0])


def _rounded_already(r: Rewriting, instruction: Instruction) -> Replacement:
    """Rounding changes neither integers nor floats that were integers."""
    (operand,) = instruction.operands
    before = r.maker(operand, "cast")
    is_whole = operand.type.dtype in INTEGERS or (before is not None and before.operands[0].type.dtype not in FLOATS)
    return operand if is_whole else None


def _not_compared(r: Rewriting, instruction: Instruction) -> Replacement:
    """not (a == b) is a != b; other comparisons differ for NaN."""
    before = r.maker(instruction.operands[0], *_OPPOSITES)
    if before is None:
        return None
    name = before.operation
    if name not in ("eq", "ne") and before.operands[0].type.dtype in FLOATS:
        return None
    return r.make(_OPPOSITES[name], *before.operands)


_OPPOSITES = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}


def _double_cast(r: Rewriting, instruction: Instruction) -> Replacement:
    """A cast through a type that has all the elements of the first one."""
    before = r.maker(instruction.operands[0], "cast")
    if before is None:
        return None
    (source,), middle, target = before.operands, before.result.type.dtype, instruction.result.type.dtype
    first = source.type.dtype
    if not np.can_cast(DTYPES[first], DTYPES[middle], "safe") or (first, middle) in _ROUNDED:
        return None
    # Floats beyond the range of integers become the nearest, but integers wrap.
    if first in INTEGERS and middle in FLOATS and target in INTEGERS and target != first:
        return None
    return source if target == first else r.make("cast", source, dtype=target)


_ROUNDED = {("i64", "f64")}
"""Casts that NumPy calls safe, and that round."""

_WHOLE = ("floor", "ceil", "round", "sign")

RULES: dict[str, tuple[Rule, ...]] = {
    "add": (_neutral(_is_negative_zero), _plus_negated),
    "sub": (_neutral(_is_positive_zero), _negated_from, _minus_negated, _same_minus),
    "mul": (_neutral(_is_one), _absorbing(_is_integer_zero), _minus_one, _both_negated),
    "div": (_neutral(_is_one), _minus_one, _reciprocal, _both_negated),
    "floordiv": (_neutral(lambda number, dtype: number == 1 and dtype in INTEGERS),),
    "pow": (_power,),
    "min": (_same_twice,),
    "max": (_same_twice,),
    "neg": (_undone,),
    "not": (_undone, _not_compared),
    "abs": (_absolute_of_negated, _after("abs", "exp", "cosh")),
    "floor": (_after(*_WHOLE), _rounded_already),
    "ceil": (_after(*_WHOLE), _rounded_already),
    "round": (_after(*_WHOLE), _rounded_already),
    "sign": (_after("sign"),),
    "and": (_neutral(_is_true), _absorbing(_is_false), _same_twice),
    "or": (_neutral(_is_false), _absorbing(_is_true), _same_twice),
    "eq": (_compared_with_itself(True),),
    "ne": (_compared_with_itself(False),),
    "le": (_compared_with_itself(True),),
    "ge": (_compared_with_itself(True),),
    "lt": (_compared_with_itself(False),),
    "gt": (_compared_with_itself(False),),
    "cast": (_double_cast,),
    **reshaping.RULES,
    "select": (_known_condition, _negated_condition),
    "cond": (_known_branch, _negated_predicate),
    "while": (_never_runs, _unchanged),
}
"""Rules by operation."""
