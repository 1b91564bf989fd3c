"""Gradients that keep to a memory budget: parts of the original become functions, and are computed again.

Only values passed from part to part are kept for the adjoints; the values inside a part are computed again when it is
differentiated (Chen, Xu, Zhang and Guestrin, *Training deep nets with sublinear memory cost*, 2016).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from shine.base.errors import FormError
from shine.tensor.adjoint.adjoints import Derivatives
from shine.tensor.form.liveness import last_uses, peak_bytes
from shine.tensor.form.module import Function, GradientDeclaration, Instruction, Module
from shine.tensor.form.verifier import verify


def in_segments(module: Module, declared: GradientDeclaration, memory: int) -> Module:
    """Add a gradient that needs no more than some bytes for values at once.

    Raises
    ------
    FormError
        If there is no such partition; the message says how many bytes the best one needs.
    """
    least = None
    for parts in _counts(len(module.function(declared.of).body)):
        found = _with_parts(module, declared, parts)
        peak = peak_bytes(found, declared.name)
        if peak <= memory:
            return verify(found)
        least = peak if least is None else min(least, peak)
    raise FormError(f"the gradient of @{declared.of} needs {least} bytes for values, and memory is {memory}")


def _counts(instructions: int) -> Iterator[int]:
    """Numbers of parts to try: steps of a quarter, because few more parts change little."""
    count = 1
    while count <= max(instructions, 1):
        yield count
        count += max(count // 4, 1)


def _with_parts(module: Module, declared: GradientDeclaration, parts: int) -> Module:
    if parts > 1:
        divided, *functions = _divided(module.function(declared.of), parts, module)
        module = module.with_functions(divided, *functions)
        declared = replace(declared, of=divided.name)
    derivatives = Derivatives(module)
    found = derivatives.gradient(declared)
    return derivatives.module.with_functions(found)


def _divided(function: Function, parts: int, module: Module) -> list[Function]:
    """A function as calls of parts, and the parts."""
    constants = {i.result: i for i in function.body if i.operation == "constant"}
    body = [i for i in function.body if i.operation != "constant"]
    cuts = _cuts(body, parts)
    last = last_uses(replace(function, body=tuple(body)))
    calls: list[Instruction] = []
    made: list[Function] = []
    for number, (start, stop) in enumerate(zip([0, *cuts], [*cuts, len(body)], strict=True)):
        inside = body[start:stop]
        computed = {value for i in inside for value in i.results}
        used = dict.fromkeys(value for i in inside for value in i.operands if value not in computed)
        taken = tuple(value for value in used if value not in constants)
        given = tuple(value for i in inside for value in i.results if last[value] >= stop)
        name = _unused(f"{function.name}.part{number}", module)
        known = [constants[value] for value in used if value in constants]
        made.append(Function(name, taken, (*known, *inside), given, separate=True))
        calls.append(Instruction(given, "call", taken, {"function": name}))
    returned = [constants[value] for value in dict.fromkeys(function.results) if value in constants]
    name = _unused(f"{function.name}.parts", module)
    return [replace(function, name=name, body=(*returned, *calls)), *made]


def _cuts(body: Sequence[Instruction], parts: int) -> list[int]:
    """Cuts near equal shares of the bytes, at the places over which the fewest bytes pass."""
    sizes = [sum(value.type.bytes for value in i.results) for i in body]
    passing = _passing(body)
    total, done = sum(sizes), 0
    cuts: list[int] = []
    shares: list[int] = []
    for size in sizes:
        done += size
        shares.append(done)
    for number in range(1, parts):
        middle, reach = total * number / parts, total / (2 * parts)
        first = (cuts[-1] if cuts else 0) + 1
        near = [at for at in range(first, len(body)) if abs(shares[at - 1] - middle) <= reach]
        if near:
            cuts.append(min(near, key=lambda at: (passing[at], abs(shares[at - 1] - middle))))
    return cuts


def _passing(body: Sequence[Instruction]) -> list[int]:
    """Bytes of the values that are computed before each place and used after it."""
    last = {value: place for place, i in enumerate(body) for value in i.operands}
    changes = [0] * (len(body) + 1)
    for place, i in enumerate(body):
        for value in i.results:
            if last.get(value, place) > place:
                changes[place + 1] += value.type.bytes
                changes[last[value] + 1] -= value.type.bytes
    total, found = 0, []
    for change in changes:
        total += change
        found.append(total)
    return found


def _unused(name: str, module: Module) -> str:
    while name in module.functions:
        name += "_"
    return name
