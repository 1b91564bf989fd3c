"""Classes of a module's data, checked because code that makes modules may get them wrong."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from shine.base.errors import FormError
from shine.tensor.form.module import Function, GradientDeclaration, Instruction, Module, Value
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
        _demand(isinstance(label, str), f"module: the label of %{name}", label, "text")
    for name, function in module.functions.items():
        where = f"@{name}"
        of = (Function, GradientDeclaration)
        _demand(isinstance(function, of), where, function, "a Function or a GradientDeclaration")
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
            _demand(isinstance(found, kind), f"{where}: {name}", found, kind.__name__)
            continue
        container, items = kind
        _demand(isinstance(found, container), f"{where}: {name}", found, container.__name__)
        for item in found:
            _demand(isinstance(item, items), f"{where}: an item of {name}", item, items.__name__)


def _demand(holds: bool, what: str, found: object, wanted: str) -> None:
    if not holds:
        raise FormError(f"{what} is a {type(found).__name__}, and must be {wanted}")
