"""One adjoint rule for each operation.

A rule adds instructions and returns the adjoint of each operand, or None where that is 0. Where an operation has a
kink, the derivative is that of one side, or 0; equal extrema share it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from shine.tensor.adjoint import elementwise, movement, products
from shine.tensor.adjoint.shaping import reshaped, summed_to
from shine.tensor.form.builder import FunctionBuilder
from shine.tensor.form.module import Instruction, Value
from shine.tensor.form.operations import FROM_THE_LANGUAGE
from shine.tensor.form.types import FLOATS


@dataclass(frozen=True, eq=False)
class Step:
    """The context of a rule.

    Parameters
    ----------
    b : FunctionBuilder
        The adjoint in the making.
    instruction : Instruction
        The one to differentiate, as it stands in that function.
    cotangents : tuple of (Value or None)
        Derivatives by its results; None if 0.
    wanted : tuple of bool
        The operands whose adjoints are needed.
    """

    b: FunctionBuilder
    instruction: Instruction
    cotangents: tuple[Value | None, ...]
    wanted: tuple[bool, ...]

    @property
    def operand(self) -> Value:
        """The first operand."""
        return self.instruction.operands[0]

    @property
    def second(self) -> Value:
        """The second operand."""
        return self.instruction.operands[1]

    @property
    def attributes(self) -> Mapping[str, Any]:
        """The instruction's."""
        return self.instruction.attributes

    @property
    def cotangent(self) -> Value:
        """The derivative by the first result, which is not 0."""
        assert self.cotangents[0] is not None
        return self.cotangents[0]


Rule: TypeAlias = Callable[[Step], Sequence["Value | None"]]


def _none(step: Step) -> Sequence[Value | None]:
    """Results that do not change when the operands change a little."""
    return [None] * len(step.instruction.operands)


def _primitive(step: Step) -> Sequence[Value | None]:
    instruction = step.instruction
    return elementwise.of_primitive(
        step.b, instruction.operation, instruction.operands, instruction.result, step.cotangent, step.wanted
    )


def _cast(step: Step) -> Sequence[Value | None]:
    both = {step.operand.type.dtype, step.cotangent.type.dtype}
    return [step.b.cast(step.cotangent, dtype=step.operand.type.dtype) if both <= FLOATS else None]


def _chosen_along(axis_of: Callable[[Instruction], int]) -> Rule:
    def rule(step: Step) -> Sequence[Value | None]:
        if step.cotangents[0] is None:
            return [None]
        order = step.instruction.results[1]
        return [movement.along(step.b, step.operand, order, step.cotangent, axis_of(step.instruction))]

    return rule


def _axis(instruction: Instruction) -> int:
    axis = instruction.attributes["axis"]
    assert isinstance(axis, int)
    return axis


def _shape(step: Step) -> tuple[int, ...]:
    return step.operand.type.shape


RULES: dict[str, Rule] = {
    **dict.fromkeys(FROM_THE_LANGUAGE, _primitive),
    **dict.fromkeys(("round", "and", "or", "not", "constant", "argmax", "argmin"), _none),
    "select": lambda s: elementwise.select(s.b, s.instruction.operands, s.cotangent, s.wanted),
    "cast": _cast,
    "broadcast": lambda s: [summed_to(s.b, s.cotangent, _shape(s))],
    "reshape": lambda s: [reshaped(s.b, s.cotangent, _shape(s))],
    "transpose": lambda s: [movement.transpose(s.b, s.cotangent, s.attributes["permutation"])],
    "slice": lambda s: [movement.slice_(s.b, s.operand, s.cotangent, s.attributes)],
    "pad": lambda s: movement.pad(s.b, s.operand, s.cotangent, s.wanted, s.attributes),
    "concatenate": lambda s: movement.concatenate(
        s.b, s.instruction.operands, s.cotangent, s.wanted, _axis(s.instruction)
    ),
    "gather": lambda s: [
        movement.gather(s.b, s.operand, s.second, s.cotangent, _axis(s.instruction)),
        None,
    ],
    "scatter_add": lambda s: movement.scatter_add(
        s.b, s.instruction.operands, s.cotangent, s.wanted, _axis(s.instruction)
    ),
    "reduce_sum": lambda s: [products.of_sum(s.b, s.operand, s.cotangent, s.attributes)],
    "reduce_prod": lambda s: [products.of_product(s.b, s.operand, s.cotangent, s.attributes)],
    **dict.fromkeys(
        ("reduce_max", "reduce_min"),
        lambda s: [products.of_extremum(s.b, s.operand, s.instruction.result, s.cotangent, s.attributes)],
    ),
    "sort": _chosen_along(_axis),
    "top_k": _chosen_along(lambda instruction: instruction.operands[0].type.rank - 1),
    "dot": lambda s: products.dot(s.b, s.operand, s.second, s.cotangent, s.wanted),
    "convolve": lambda s: products.convolve(s.b, s.operand, s.second, s.cotangent, s.wanted, s.attributes),
}
"""Rules by operation. Those that call functions are in `adjoints`, because they need derivatives of functions."""
