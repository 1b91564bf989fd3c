"""The adjoint transform of a function: its instructions, then the rule of each in reverse order.

The adjoint of a value is the sum of what the instructions that use it contribute (Griewank and Walther, *Evaluating
Derivatives*, 2008, chapter 3). Only values on a way from the parameters asked for to the results get one.

A rule of an operation adds instructions and returns the adjoint of each operand, or None where that is 0. Where an
operation has a kink, the derivative is that of one side, or 0; equal extrema share it. The partial derivatives of
elementwise operations are those of formulas; elements that were moved move back, and those that were copied are summed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from shine.base.errors import FormError
from shine.lang.derivative import is_constant, table_partials
from shine.tensor.adjoint import products
from shine.tensor.adjoint.products import Adjoints, Step, reshaped, sliced, stretched_to, summed_to, transposed, zeros
from shine.tensor.form.builder import FunctionBuilder, write_formula
from shine.tensor.form.module import Function, GradientDeclaration, Instruction, Module, Value, with_result_names
from shine.tensor.form.operations import FROM_THE_LANGUAGE
from shine.tensor.form.printing import function_text
from shine.tensor.form.types import FLOATS
from shine.tensor.form.verifier import signature, without_dead

Rule: TypeAlias = Callable[[Step], Adjoints]


@dataclass
class Derivatives:
    """A module that grows by the derivatives that its functions need."""

    module: Module
    _made: dict[tuple[str, tuple[int, ...]], str] = field(default_factory=dict, init=False)

    def of(self, name: str, wrt: Sequence[int]) -> str:
        """The gradient of a function by some parameters, seedable; made if there is none yet."""
        made = f"{name}.wrt.{'.'.join(map(str, wrt))}"
        function = self.module.function(name)
        types = function.parameter_types + function.result_types
        results = tuple(function.parameter_types[i] for i in wrt)
        key = (name, tuple(wrt))
        while key not in self._made:
            found = self.gradient(GradientDeclaration(made, name, tuple(wrt), (), True, types, results))
            there = self.module.functions.get(made)
            if there is None:
                self.module = self.module.with_functions(found)
            elif function_text(there) != function_text(found):
                # Another function has the name: a user's, or the gradient of what a user's function hides.
                made += "_"
                continue
            self._made[key] = made
        return self._made[key]

    def gradient(self, declared: GradientDeclaration) -> Function:
        """The function that a declaration stands for.

        Raises
        ------
        FormError
            If the original has a loop between the parameters and the results.
        """
        return without_dead(_Transform(self, declared).run())


class _Transform:
    """Differentiates one function."""

    def __init__(self, derivatives: Derivatives, declared: GradientDeclaration) -> None:
        self.derivatives, self.declared = derivatives, declared
        self.function = derivatives.module.function(declared.of)
        self.b = FunctionBuilder(declared.name, lambda name: signature(derivatives.module, name))
        self.adjoints: dict[Value, Value] = {}

    def run(self) -> Function:
        b, function, declared = self.b, self.function, self.declared
        here = {value: b.parameter(value.name, value.type) for value in function.parameters}
        seeds = self._seeds()
        varying = {function.parameters[i] for i in declared.wrt}
        done: list[tuple[Instruction, Instruction, tuple[bool, ...]]] = []
        for instruction in function.body:
            wanted = tuple(v in varying and v.type.dtype in FLOATS for v in instruction.operands)
            if any(wanted):
                varying.update(instruction.results)
            operands = tuple(here[v] for v in instruction.operands)
            results = b.emit(instruction.operation, operands, **instruction.attributes)
            here.update(zip(instruction.results, results, strict=True))
            done.append((instruction, replace(instruction, operands=operands, results=results), wanted))
        for result, seed in zip(function.results, seeds, strict=True):
            if result in varying and result.type.dtype in FLOATS:
                self._add(here[result], seed)
        for original, instruction, wanted in reversed(done):
            cotangents = tuple(self.adjoints.pop(result, None) for result in instruction.results)
            if any(wanted) and any(cotangent is not None for cotangent in cotangents):
                contributions = self._adjoint(Step(b, instruction, cotangents, wanted), original)
                for operand, is_wanted, found in zip(instruction.operands, wanted, contributions, strict=True):
                    if is_wanted and found is not None:
                        self._add(operand, found)
        wrt = [here[function.parameters[i]] for i in declared.wrt]
        gradients = [self.adjoints.get(value) or zeros(b, value.type) for value in wrt]
        kept = [function.results[i] for i in declared.keeping]
        made = b.done(*gradients, *(here[value] for value in kept))
        return with_result_names(made, self._names(made, kept))

    def _names(self, made: Function, kept: Sequence[Value]) -> tuple[Value, ...]:
        """Names of results: `d_x` by the parameter `x`; results of the original keep their names."""
        names = [f"d_{self.function.parameters[i].name}" for i in self.declared.wrt] + [value.name for value in kept]
        used = {value.name for value in made.parameters}
        found = []
        for name, value in zip(names, made.results, strict=True):
            while name in used:
                name += "_"
            used.add(name)
            found.append(replace(value, name=name))
        return tuple(found)

    def _seeds(self) -> list[Value]:
        """Derivatives by the results: parameters, or 1."""
        results, used = self.function.results, {value.name for value in self.function.parameters}
        if not self.declared.seedable:
            return [self.b.constant(1, results[0].type.dtype)]
        names = []
        for number in range(len(results)):
            name = f"seed{number}"
            while name in used:
                name += "_"
            used.add(name)
            names.append(name)
        return [self.b.parameter(name, result.type) for name, result in zip(names, results, strict=True)]

    def _add(self, value: Value, contribution: Value) -> None:
        before = self.adjoints.get(value)
        self.adjoints[value] = contribution if before is None else self.b.add(before, contribution)

    def _adjoint(self, step: Step, original: Instruction) -> Sequence[Value | None]:
        name = step.instruction.operation
        if name == "while":
            raise FormError(
                f"@{self.declared.of}, {original.results[0]}: a loop has no gradient, because the number of "
                "its rounds is not known; write the rounds out, or keep the loop apart from what is differentiated"
            )
        if name == "call":
            return self._called(step, step.instruction.operands)
        if name == "cond":
            return [None, *self._called(step, step.instruction.operands[1:])]
        return RULES[name](step)

    def _called(self, step: Step, arguments: Sequence[Value]) -> list[Value | None]:
        """The gradients of the called functions, called in the same way; they compute the originals again."""
        instruction, skipped = step.instruction, len(step.instruction.operands) - len(arguments)
        wrt = [place for place, is_wanted in enumerate(step.wanted[skipped:]) if is_wanted]
        seeds = [
            zeros(self.b, result.type) if cotangent is None else cotangent
            for result, cotangent in zip(instruction.results, step.cotangents, strict=True)
        ]
        functions = {key: self.derivatives.of(str(name), wrt) for key, name in instruction.attributes.items()}
        operands = [*instruction.operands[:skipped], *arguments, *seeds]
        found = self.b.emit(instruction.operation, operands, **functions)
        gradients: list[Value | None] = [None] * len(arguments)
        for place, gradient in zip(wrt, found, strict=True):
            gradients[place] = gradient
        return gradients


def _first(rule: Callable[[Step], Value]) -> Rule:
    """The rule of an operation of which only the first operand has an adjoint."""
    return lambda step: [rule(step), *[None] * (len(step.operands) - 1)]


def _primitive(s: Step) -> Adjoints:
    """By `shine.lang.derivative`."""
    found: Adjoints = []
    for operand, partial, is_wanted in zip(s.operands, table_partials(s.instruction.operation), s.wanted, strict=True):
        if not is_wanted or partial is None:
            found.append(None)
            continue
        if is_constant(partial, 1):
            product = s.cotangent
        elif is_constant(partial, -1) or str(partial.result) == "-1":
            product = s.b.neg(s.cotangent)
        else:
            product = s.b.mul(s.cotangent, write_formula(s.b, partial, [*s.operands, s.instruction.result]))
        found.append(summed_to(s.b, product, operand.type.shape))
    return found


def _select(s: Step) -> Adjoints:
    """The cotangent where the condition chooses the operand, 0 elsewhere."""
    b, (condition, first, second) = s.b, s.operands
    zero = b.constant(0, s.cotangent.type.dtype)
    return [
        None,
        summed_to(b, b.select(condition, s.cotangent, zero), first.type.shape) if s.wanted[1] else None,
        summed_to(b, b.select(condition, zero, s.cotangent), second.type.shape) if s.wanted[2] else None,
    ]


def _cast(s: Step) -> Adjoints:
    both = {s.operand.type.dtype, s.cotangent.type.dtype}
    return [s.b.cast(s.cotangent, dtype=s.operand.type.dtype) if both <= FLOATS else None]


def _slice(s: Step) -> Value:
    """Zeros around and between the elements."""
    b, cotangent = s.b, s.cotangent
    if not cotangent.type.elements:
        return zeros(b, s.operand.type)
    start, step = s.attributes["start"], s.attributes["step"]
    sizes = zip(s.operand.type.shape, start, step, cotangent.type.shape, strict=True)
    high = tuple(size - first - (count - 1) * by - 1 for size, first, by, count in sizes)
    between = tuple(by - 1 for by in step)
    return b.pad(cotangent, b.constant(0, cotangent.type.dtype), low=start, high=high, interior=between)


def _pad(s: Step) -> Adjoints:
    """The operand's elements, and the sum of all others for the padding."""
    b, cotangent = s.b, s.cotangent
    low, high, interior = (s.attributes[name] for name in ("low", "high", "interior"))
    first: Value | None = None
    second: Value | None = None
    if s.wanted[0]:
        stop = tuple(
            max(size - after, start) for size, after, start in zip(cotangent.type.shape, high, low, strict=True)
        )
        first = b.slice(cotangent, start=low, stop=stop, step=tuple(between + 1 for between in interior))
    if s.wanted[1]:
        inside = stretched_to(b, b.constant(False), s.operand.type.shape)
        padding = b.pad(inside, b.constant(True), low=low, high=high, interior=interior)
        second = b.reduce_sum(b.select(padding, cotangent, b.constant(0, cotangent.type.dtype)))
    return [first, second]


def _concatenate(s: Step) -> Adjoints:
    """The part of each operand."""
    ends = np.cumsum([0, *(operand.type.shape[s.axis] for operand in s.operands)]).tolist()
    places = zip(s.wanted, ends[:-1], ends[1:], strict=True)
    return [sliced(s.b, s.cotangent, s.axis, start, stop) if is_wanted else None for is_wanted, start, stop in places]


def _gather(s: Step) -> Value:
    """Each slice is added where it was taken from."""
    b = s.b
    last = b.constant(max(s.operand.type.shape[s.axis] - 1, 0), "i64")
    inside = b.max(b.min(b.cast(s.second, dtype="i64"), last), b.constant(0, "i64"))
    return b.scatter_add(zeros(b, s.operand.type), inside, s.cotangent, axis=s.axis)


def _scatter_add(s: Step) -> Adjoints:
    """The slices were added as they are, but for those beyond the axis."""
    b, (operand, indices, slices) = s.b, s.operands
    found: Value | None = None
    if s.wanted[2] and operand.type.elements:
        places = b.cast(indices, dtype="i64")
        size = b.constant(operand.type.shape[s.axis], "i64")
        counted = getattr(b, "and")(b.ge(places, b.constant(0, "i64")), b.lt(places, size))
        shape = (*indices.type.shape, *(1 for _ in operand.type.shape[s.axis + 1 :]))
        taken = b.gather(s.cotangent, indices, axis=s.axis)
        found = b.select(reshaped(b, counted, shape), taken, b.constant(0, s.cotangent.type.dtype))
    elif s.wanted[2]:
        found = zeros(b, slices.type)
    return [s.cotangent if s.wanted[0] else None, None, found]


def _chosen_along(axis_of: Callable[[Step], int]) -> Rule:
    """The adjoint of a choice of elements along an axis, by the index of each: they go back to their places."""

    def rule(s: Step) -> Adjoints:
        if s.cotangents[0] is None:
            return [None]
        b, operand, cotangent, axis = s.b, s.operand, s.cotangent, axis_of(s)
        rank, size = operand.type.rank, operand.type.shape[axis]
        if not cotangent.type.elements:
            return [zeros(b, operand.type)]
        last = [*(i for i in range(rank) if i != axis), axis]
        turned = transposed(b, cotangent, last)
        lines = int(np.prod(turned.type.shape[:-1], dtype=np.int64))
        starts = b.constant((np.arange(lines, dtype=np.int64) * size).reshape(*turned.type.shape[:-1], 1))
        order = transposed(b, s.instruction.results[1], last)
        places = reshaped(b, b.add(order, starts), (turned.type.elements,))
        flat = zeros(b, operand.type.with_shape((operand.type.elements,)))
        found = b.scatter_add(flat, places, reshaped(b, turned, (turned.type.elements,)), axis=0)
        found = reshaped(b, found, tuple(operand.type.shape[i] for i in last))
        return [transposed(b, found, np.argsort(last).tolist())]

    return rule


RULES: dict[str, Rule] = {
    **dict.fromkeys(FROM_THE_LANGUAGE, _primitive),
    # Results that do not change when the operands change a little.
    **dict.fromkeys(
        ("round", "and", "or", "not", "constant", "argmax", "argmin"), lambda step: [None] * len(step.operands)
    ),
    "select": _select,
    "cast": _cast,
    "broadcast": _first(lambda s: summed_to(s.b, s.cotangent, s.operand.type.shape)),
    "reshape": _first(lambda s: reshaped(s.b, s.cotangent, s.operand.type.shape)),
    "transpose": _first(lambda s: transposed(s.b, s.cotangent, np.argsort(s.attributes["permutation"]).tolist())),
    "slice": _first(_slice),
    "pad": _pad,
    "concatenate": _concatenate,
    "gather": _first(_gather),
    "scatter_add": _scatter_add,
    "reduce_sum": _first(products.of_sum),
    "reduce_prod": _first(products.of_product),
    **dict.fromkeys(("reduce_max", "reduce_min"), _first(products.of_extremum)),
    "sort": _chosen_along(lambda s: s.axis),
    "top_k": _chosen_along(lambda s: s.operand.type.rank - 1),
    "dot": products.dot,
    "convolve": products.convolve,
}
"""Rules by operation. Those that call functions are in `adjoints`, because they need derivatives of functions."""
