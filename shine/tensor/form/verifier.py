"""Checks of a module: names, order, types. A module that passes can be printed, interpreted and compiled."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from typing import Any, TypeAlias

from shine.base.errors import FormError, placed
from shine.tensor.form.module import Function, GradientDeclaration, Instruction, Module, Value
from shine.tensor.form.operations import CALLS, OPERATIONS, result_types
from shine.tensor.form.shapes import Signature
from shine.tensor.form.types import TensorType

Kind: TypeAlias = "tuple[type, type] | type"
"""A class, or a container and the class of its items (of its keys, for a mapping)."""

_KINDS: dict[type, dict[str, Kind]] = {
    Module: {"name": str, "functions": (Mapping, str), "labels": (Mapping, str)},
    Function: {
        "name": str,
        "parameters": (tuple, Value),
        "body": (tuple, Instruction),
        "results": (tuple, Value),
        "separate": bool,
    },
    Instruction: {
        "results": (tuple, Value),
        "operation": str,
        "operands": (tuple, Value),
        "attributes": (Mapping, str),
    },
    GradientDeclaration: {
        "name": str,
        "of": str,
        "wrt": (tuple, int),
        "keeping": (tuple, int),
        "seedable": bool,
        "parameter_types": (tuple, TensorType),
        "result_types": (tuple, TensorType),
    },
    Value: {"name": str, "type": TensorType},
}
"""Type of each field."""


def check_structure(module: Module) -> None:
    """Raise FormError unless all fields, of the functions and instructions too, contain what they should."""
    _check(module, "module")
    for name, label in module.labels.items():
        _demand_kind(isinstance(label, str), f"module: the label of %{name}", label, "text")
    for name, function in module.functions.items():
        where = f"@{name}"
        of = (Function, GradientDeclaration)
        _demand_kind(isinstance(function, of), where, function, "a Function or a GradientDeclaration")
        _check(function, where)
        if isinstance(function, Function):
            _check_all((*function.parameters, *function.results), where)
            for place, instruction in enumerate(function.body):
                here = f"{where}, instruction {place}"
                _check(instruction, here)
                _check_all((*instruction.results, *instruction.operands), here)


def _check_all(values: Iterable[Value], where: str) -> None:
    for value in values:
        _check(value, where)


def _check(thing: Any, where: str) -> None:
    """The fields of one object."""
    for name, kind in _KINDS[type(thing)].items():
        found = getattr(thing, name)
        if isinstance(kind, type):
            _demand_kind(isinstance(found, kind), f"{where}: {name}", found, kind.__name__)
            continue
        container, items = kind
        _demand_kind(isinstance(found, container), f"{where}: {name}", found, container.__name__)
        for item in found:
            _demand_kind(isinstance(item, items), f"{where}: an item of {name}", item, items.__name__)


def _demand_kind(holds: bool, what: str, found: object, wanted: str) -> None:
    if not holds:
        raise FormError(f"{what} is a {type(found).__name__}, and must be {wanted}")


NAME = re.compile(r"[A-Za-z_][A-Za-z_0-9.]*")
"""Names of modules and functions."""

VALUE_NAME = re.compile(r"[A-Za-z_0-9.]+")
"""Names of values."""

MOST_NESTED = 100
"""Calls of functions within each other: passes may follow them by recursion."""


def verify(module: Module) -> Module:
    """Check a module; return it. Raises a `FormError` if it is not valid; the message says what is wrong and where."""
    check_structure(module)
    _demand(NAME.fullmatch(module.name), f"module: {module.name!r} is no name")
    for name in module.labels:
        _demand(VALUE_NAME.fullmatch(name), f"module: there is a label for {name!r}, which is no name")
    for name, function in module.functions.items():
        where = f"@{name}"
        _demand(name == function.name, f"{where}: the function is called {function.name!r} itself")
        _demand(NAME.fullmatch(name), f"{where}: {name!r} is no name")
        if isinstance(function, Function):
            _verify_function(function, module)
        else:
            _verify_declaration(function, module)
    _verify_calls(module)
    return module


def needed_by(function: Function | GradientDeclaration) -> Iterator[str]:
    """Names of the functions that a function calls or differentiates."""
    if isinstance(function, GradientDeclaration):
        yield function.of
        return
    for instruction in function.body:
        yield from called_by(instruction)


def called_by(instruction: Instruction) -> Iterator[str]:
    """Names of the functions that an instruction calls."""
    if instruction.operation in CALLS:
        kinds = OPERATIONS[instruction.operation].attributes
        yield from (str(instruction.attributes[key]) for key, kind in kinds.items() if kind == "function")


def signature(module: Module, name: str) -> Signature:
    """Types of the parameters and results of a function; a `FormError` if there is none of that name."""
    found = module.functions.get(name)
    if found is None:
        known = ", ".join(f"@{known}" for known in module.functions)
        raise FormError(f"there is no function @{name}; there are {known}")
    return found.parameter_types, found.result_types


def _verify_calls(module: Module) -> None:
    needed = {f.name: set(needed_by(f)) for f in module.functions.values()}
    depths: dict[str, int] = {}
    try:
        for name in TopologicalSorter(needed).static_order():
            depths[name] = 1 + max((depths[other] for other in needed[name]), default=0)
    except CycleError as error:
        circle = " -> ".join(f"@{name}" for name in reversed(error.args[1]))
        raise FormError(f"functions call each other in a circle: {circle}") from None
    for name, depth in depths.items():
        _demand(depth <= MOST_NESTED, f"@{name}: calls are nested {depth} deep, and {MOST_NESTED} is the most")


def _verify_function(function: Function, module: Module) -> None:
    known: dict[str, Value] = {}
    for parameter in function.parameters:
        _define(parameter, known, f"@{function.name}")
    for instruction in function.body:
        names = ", ".join(map(str, instruction.results)) or instruction.operation
        where = f"@{function.name}, {names}"
        for operand in instruction.operands:
            _demand(
                known.get(operand.name) == operand,
                f"{where}: {operand} of type {operand.type} is not defined before, or has another type there",
            )
        operands = tuple(operand.type for operand in instruction.operands)
        with placed(where, FormError):
            types = result_types(
                instruction.operation, operands, instruction.attributes, lambda name: signature(module, name)
            )
        declared = tuple(result.type for result in instruction.results)
        _demand(
            declared == types,
            f"{where}: {instruction.operation} gives ({', '.join(map(str, types))}), and not "
            f"({', '.join(map(str, declared))})",
        )
        for result in instruction.results:
            _define(result, known, where)
    for result in function.results:
        _demand(
            known.get(result.name) == result,
            f"@{function.name}, return: {result} of type {result.type} is not defined, or has another type",
        )


def _verify_declaration(declared: GradientDeclaration, module: Module) -> None:
    where = f"@{declared.name}"
    with placed(where, FormError):
        parameters, results = signature(module, declared.of)
    wrong = [i for i in declared.wrt if not 0 <= i < len(parameters)]
    _demand(not wrong, f"{where}: wrt {wrong}: @{declared.of} has {len(parameters)} parameters, counted from 0")
    _demand(declared.wrt, f"{where}: wrt names no parameter")
    wrong = [i for i in declared.keeping if not 0 <= i < len(results)]
    _demand(not wrong, f"{where}: keeping {wrong}: @{declared.of} has {len(results)} results, counted from 0")
    for index in declared.wrt:
        floats = parameters[index].dtype in ("f32", "f64")
        _demand(floats, f"{where}: wrt {index}: {parameters[index]} has no derivative; only f32 and f64 have one")
    scalar = len(results) == 1 and not results[0].shape
    _demand(
        declared.seedable or scalar,
        f"{where}: @{declared.of} does not return one scalar, so its gradient must be seedable",
    )
    expected = parameters + (results if declared.seedable else ())
    returned = tuple(parameters[i] for i in declared.wrt) + tuple(results[i] for i in declared.keeping)
    for word, given, needed in (
        ("takes", declared.parameter_types, expected),
        ("returns", declared.result_types, returned),
    ):
        _demand(
            given == needed,
            f"{where} {word} ({', '.join(map(str, needed))}), and not ({', '.join(map(str, given))})",
        )


def _define(value: Value, known: dict[str, Value], where: str) -> None:
    _demand(VALUE_NAME.fullmatch(value.name), f"{where}: {value.name!r} is no name")
    _demand(value.name not in known, f"{where}: %{value.name} is defined twice")
    known[value.name] = value


def _demand(holds: object, message: str) -> None:
    if not holds:
        raise FormError(message)


def without_dead(function: Function) -> Function:
    """A function without the instructions that no result depends on."""
    needed, body = set(function.results), []
    for instruction in reversed(function.body):
        if needed.intersection(instruction.results):
            needed.update(instruction.operands)
            body.append(instruction)
    return replace(function, body=tuple(reversed(body)))


def last_uses(function: Function) -> dict[Value, int]:
    """Index of the last instruction that needs each value; that of the end for results."""
    found: dict[Value, int] = {}
    for place, instruction in enumerate(function.body):
        for value in (*instruction.results, *instruction.operands):
            found[value] = place
    found.update(dict.fromkeys(function.results, len(function.body)))
    return found


def peak_bytes(module: Module, name: str) -> int:
    """Most bytes of values that a function needs at once, if each instruction has its results to itself.

    Parameters and constants do not count; they are not computed. A call needs what the function that it calls needs.
    """
    function = module.function(name)
    last = last_uses(function)
    alive: dict[Value, int] = {}
    peak = 0
    for place, instruction in enumerate(function.body):
        inside = max((peak_bytes(module, called) for called in called_by(instruction)), default=0)
        if instruction.operation != "constant":
            alive.update((result, result.type.bytes) for result in instruction.results)
        peak = max(peak, sum(alive.values()) + inside)
        alive = {value: size for value, size in alive.items() if last[value] > place}
    return peak
