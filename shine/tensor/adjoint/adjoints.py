"""The adjoint transform of a function: its instructions, then the rule of each in reverse order.

The adjoint of a value is the sum of what the instructions that use it contribute (Griewank and Walther, *Evaluating
Derivatives*, 2008, chapter 3). Only values on a way from the parameters asked for to the results get one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from shine.base.errors import FormError
from shine.tensor.adjoint.rules import RULES
from shine.tensor.adjoint.shaping import Step, zeros
from shine.tensor.form.builder import FunctionBuilder
from shine.tensor.form.liveness import without_dead
from shine.tensor.form.module import Function, GradientDeclaration, Instruction, Module, Value, with_result_names
from shine.tensor.form.printing import function_text
from shine.tensor.form.types import FLOATS
from shine.tensor.form.verifier import signature


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
