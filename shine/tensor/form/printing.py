"""A module as text, after DLVM's (Wei, Schwartz, Adve 2017); `reading` reads it back exactly."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shine.lang.forms.names import value_text
from shine.tensor.form.module import Attribute, Function, GradientDeclaration, Instruction, Module, Value
from shine.tensor.form.operations import OPERATIONS
from shine.tensor.form.types import TensorType, type_of


def text_of(module: Module) -> str:
    """The text of a module."""
    if not isinstance(module, Module):
        raise TypeError(f"{value_text(module)} is no module")
    parts = [f"module @{module.name}\n"]
    parts += ["".join(f"label %{name} = {_quoted(label)}\n" for name, label in module.labels.items())]
    return "\n".join(filter(None, [*parts, *map(function_text, module.functions.values())]))


def function_text(function: Function | GradientDeclaration) -> str:
    """The text of a function."""
    types = f"{_listed(function.parameter_types)} -> {_results(function.result_types)}"
    if isinstance(function, GradientDeclaration):
        keeping = f" keeping {', '.join(map(str, function.keeping))}" if function.keeping else ""
        seedable = " seedable" if function.seedable else ""
        wrt = ", ".join(map(str, function.wrt))
        return f"[gradient @{function.of} wrt {wrt}{keeping}{seedable}]\nfunc @{function.name}: {types}\n"
    separate = ["[separate]"] if function.separate else []
    lines = [*separate, f"func @{function.name}: {types} {{", f"'entry({_typed(function.parameters)}):"]
    lines += [f"    {instruction_text(instruction)}" for instruction in function.body]
    return "\n".join([*lines, f"    return {_typed(function.results)}".rstrip(), "}\n"])


def instruction_text(instruction: Instruction) -> str:
    """The text of an instruction, on one line."""
    results = ", ".join(map(str, instruction.results))
    words = [f"{results} =" if results else "", instruction.operation, _typed(instruction.operands)]
    kinds = OPERATIONS[instruction.operation].attributes
    if kinds:
        words.append(f"{{{', '.join(f'{k} = {_attribute(instruction.attributes[k], kinds[k])}' for k in kinds)}}}")
    return " ".join(word for word in words if word)


def _attribute(value: Attribute, kind: str) -> str:
    if isinstance(value, np.ndarray):
        return _array(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return f"[{', '.join(map(str, value))}]"
    return f"@{value}" if kind == "function" else str(value)


def _array(array: np.ndarray) -> str:
    """The type and the elements of an array, in order."""
    found = type_of(array)
    # Most elements of an array written as numbers; a larger one is written as the hexadecimal of its bytes.
    if array.size <= 64:
        return f"{found} [{', '.join(_number(element) for element in array.ravel())}]"
    return f"{found} 0x{array.astype(found.numpy.newbyteorder('<')).tobytes().hex()}"


def _number(element: np.generic) -> str:
    """A number that reads back as the same bits; those of NaN are written, because NaNs differ."""
    value = element.item()
    if isinstance(value, bool):
        return "true" if value else "false"
    if value != value:
        # An array, because a number alone has no byte order.
        return f"0x{np.array(element).astype(element.dtype.newbyteorder('>')).tobytes().hex()}"
    return str(element)


def _typed(values: Sequence[Value]) -> str:
    return ", ".join(f"{value}: {value.type}" for value in values)


def _listed(types: Sequence[TensorType]) -> str:
    return f"({', '.join(map(str, types))})"


def _results(types: Sequence[TensorType]) -> str:
    return str(types[0]) if len(types) == 1 else _listed(types)


def _quoted(text: str) -> str:
    return '"' + text.encode("unicode_escape").decode("ascii").replace('"', "\\x22") + '"'
