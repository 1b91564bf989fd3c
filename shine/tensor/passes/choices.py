"""Identities of select, and of control flow whose way is known."""

from __future__ import annotations

import numpy as np

from shine.tensor.form.interpreter import evaluate
from shine.tensor.form.module import Function, Instruction, Module, Value
from shine.tensor.form.operations import CALLS
from shine.tensor.passes.rewriting import Replacement, Rewriting, Rule, splat
from shine.tensor.passes.specialize import unchanged

MOST_STEPS = 64
"""Instructions of a loop's condition that is computed to know whether the loop ever runs."""

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
    if len(function.body) > MOST_STEPS:
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


RULES: dict[str, tuple[Rule, ...]] = {
    "select": (_known_condition, _negated_condition),
    "cond": (_known_branch, _negated_predicate),
    "while": (_never_runs, _unchanged),
}
"""Rules by operation."""
