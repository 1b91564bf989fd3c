"""Common subexpressions are computed once."""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial

import numpy as np

from shine.tensor.form.module import Attribute, Instruction, Module, Value
from shine.tensor.passes.rewriting import Replacement, Rewriting, with_bodies


def share(module: Module) -> Module:
    """Replace instructions by earlier ones that compute the same; calls too, because functions have no effects.

    Precondition: the module is valid; `canonicalize` first finds more. Postcondition: no two instructions of a function
    have the same operation, operands and attributes. No bit changes.
    """
    return with_bodies(module, (Rewriting(module, f).run(partial(_shared, {})) for f in module.defined))


def _shared(seen: dict[Hashable, tuple[Value, ...]], r: Rewriting, instruction: Instruction) -> Replacement:
    found = seen.setdefault(key_of(instruction), instruction.results)
    return None if found == instruction.results else found


def key_of(instruction: Instruction) -> Hashable:
    """Equal for instructions that compute the same."""
    attributes = tuple((name, _key(value)) for name, value in sorted(instruction.attributes.items()))
    return instruction.operation, instruction.operands, attributes


def _key(value: Attribute) -> Hashable:
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    return value
