"""Declared gradients -> functions, for a whole module; and a declaration from Python."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from graphlib import TopologicalSorter

from shine.base.errors import FormError
from shine.lang.forms.names import listed, value_text
from shine.tensor.adjoint.adjoints import Derivatives
from shine.tensor.form.module import Function, GradientDeclaration, Instruction, Module
from shine.tensor.form.types import FLOATS
from shine.tensor.form.verifier import last_uses, needed_by, peak_bytes, signature, verify


def in_segments(module: Module, declared: GradientDeclaration, memory: int) -> Module:
    """Add a gradient that needs no more than some bytes for values at once.

    A `FormError` if there is no such partition; the message says how many bytes the best one needs.
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
    live = _live_bytes(body)
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
            cuts.append(min(near, key=lambda at: (live[at], abs(shares[at - 1] - middle))))
    return cuts


def _live_bytes(body: Sequence[Instruction]) -> list[int]:
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


def with_gradients(module: Module) -> Module:
    """Put a function in the place of each declaration.

    A declaration may name another one: gradients of gradients follow.

    A `FormError` if the module is not valid, or a loop stands between parameters and results.
    """
    verify(module)
    order = TopologicalSorter({f.name: set(needed_by(f)) for f in module.functions.values()}).static_order()
    for name in order:
        declared = module.functions[name]
        if isinstance(declared, GradientDeclaration):
            derivatives = Derivatives(module)
            found = derivatives.gradient(declared)
            module = derivatives.module.with_functions(found)
    return verify(module)


def gradient(
    module: Module,
    of: str,
    wrt: Sequence[int] | None = None,
    *,
    keeping: Sequence[int] = (),
    seedable: bool | None = None,
    name: str | None = None,
    memory: int | None = None,
) -> Module:
    """Add the gradient of a function to a module.

    Parameters
    ----------
    module : Module
    of : str
        The function to differentiate.
    wrt : sequence of int, optional
        Its parameters, from 0, with respect to which; by default all of floating-point numbers.
    keeping : sequence of int
        Results, from 0, that the gradient returns as well, after the gradients.
    seedable : bool, optional
        Whether the gradient takes the derivative by each result, after the parameters. By default, unless the function
        returns one scalar.
    name : str, optional
        Name of the gradient; ``{of}_grad`` by default.
    memory : int, optional
        Most bytes that the gradient may need for values at once. To keep to it, values are computed again.

    Returns
    -------
    Module
        With the gradient, and with the gradients that other declarations stand for.

    Raises
    ------
    FormError
        If there is no such function, parameter or result, the name is taken, a loop of unknown length stands between
        parameters and results, or the memory is not enough.
    TypeError
        If an argument is of another kind.
    """
    if not isinstance(module, Module):
        raise TypeError(f"{value_text(module)} is no module")
    if memory is not None and type(memory) is not int:
        raise TypeError(f"memory={value_text(memory)} is no number of bytes; give an int")
    parameters, results = signature(module, of)
    floats = [i for i, parameter in enumerate(parameters) if parameter.dtype in FLOATS]
    chosen = _places("wrt", floats if wrt is None else wrt, len(parameters), f"parameters of @{of}")
    kept = _places("keeping", keeping, len(results), f"results of @{of}")
    seeds = (len(results) != 1 or bool(results[0].shape)) if seedable is None else seedable
    made = f"{of}_grad" if name is None else name
    if made in module.functions:
        raise FormError(f"there is a function @{made} already; choose another name")
    declared = GradientDeclaration(
        made,
        of,
        chosen,
        kept,
        seeds,
        parameters + (results if seeds else ()),
        tuple(parameters[i] for i in chosen) + tuple(results[i] for i in kept),
    )
    complete = with_gradients(module)
    if memory is None:
        return with_gradients(complete.with_functions(declared))
    return in_segments(complete, declared, memory)


def _places(what: str, given: Sequence[int], count: int, of: str) -> tuple[int, ...]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise TypeError(f"{what}={value_text(given)} is no list of integers")
    found = tuple(given)
    for place in found:
        if type(place) is not int or not 0 <= place < count:
            raise FormError(f"{what} has {value_text(place)}, but the {of} are {listed(map(str, range(count)))}")
    return found
