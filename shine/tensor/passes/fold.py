"""Folding: functions of constants are computed now."""

from __future__ import annotations

import math
from functools import reduce
from operator import add

import numpy as np

from shine.compiler.arrays import COMPILED
from shine.lang.forms.facts import FACTS
from shine.tensor.form.interpreter import evaluate
from shine.tensor.form.module import Instruction, Module
from shine.tensor.form.operations import CALLS
from shine.tensor.form.types import FLOATS
from shine.tensor.passes.rewriting import Replacement, Rewriting, rewritten

MOST_BYTES = 1 << 16
"""Bytes that a folded constant may add to the code. One that is no larger than the constants it replaces always may."""

MOST_REPEATED = 256
"""Bytes of a broadcast constant that is folded: code broadcasts without memory."""

MOST_WORK = 1 << 24
"""Multiplications of a product that is folded: beyond, compiling would take seconds."""

NOT_FOLDED = CALLS | {"constant", "convolve"}
"""Calls are inlined or stay; a convolution of constants does not occur in networks."""


def fold(module: Module) -> Module:
    """Replace instructions whose operands are constants, and those without elements, by constants.

    Precondition: the module is valid. Postcondition: an instruction of constants is left only if its result is larger
    than `MOST_BYTES` (`MOST_REPEATED` for a broadcast) and than its operands, if its bits are not known (elementary
    functions in f32), or if it is in `NOT_FOLDED`. The bits are those of compiled code; sums and products of matrices
    have those of sums in order.
    """
    return rewritten(module, _folded)


def _folded(r: Rewriting, instruction: Instruction) -> Replacement:
    if instruction.operation not in CALLS and instruction.operation != "constant" and _is_empty(instruction):
        return tuple(r.constant(np.empty(v.type.shape, v.type.numpy)) for v in instruction.results)
    if instruction.operation in NOT_FOLDED:
        return None
    arrays = [array for operand in instruction.operands if (array := r.array(operand)) is not None]
    if len(arrays) < len(instruction.operands):
        return None
    freed = sum(a.nbytes for a, v in zip(arrays, instruction.operands, strict=True) if r.uses_now(v) == 1)
    made = sum(result.type.bytes for result in instruction.results)
    if made > (MOST_REPEATED if instruction.operation == "broadcast" else max(MOST_BYTES, freed)):
        return None
    values = _values(instruction, arrays)
    if values is None:
        return None
    types = (result.type for result in instruction.results)
    return tuple(
        r.constant(np.asarray(value, t.numpy).reshape(t.shape)) for value, t in zip(values, types, strict=True)
    )


def _is_empty(instruction: Instruction) -> bool:
    return not any(result.type.elements for result in instruction.results)


def _values(instruction: Instruction, arrays: list[np.ndarray]) -> tuple[np.ndarray, ...] | None:
    """Results; None if their bits are not known."""
    name, facts = instruction.operation, FACTS.get(instruction.operation)
    is_float = instruction.results[0].type.dtype in FLOATS
    with np.errstate(all="ignore"):
        if name == "dot" and is_float:
            return _product(*arrays)
        if facts is not None and facts.inexact and is_float:
            return _inexact(name, arrays)
        return evaluate(instruction, arrays)


def _inexact(name: str, arrays: list[np.ndarray]) -> tuple[np.ndarray, ...] | None:
    """An elementary function with the bits of compiled code, which are known for f64."""
    if arrays[0].dtype != np.float64:
        return None
    return (COMPILED[name](*arrays),)


def _product(left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, ...] | None:
    """A matrix product with sums in order: the same bits on every processor, which NumPy's are not."""
    a = left if left.ndim > 1 else left[None]
    b = right if right.ndim > 1 else right[:, None]
    if math.prod(a.shape) * b.shape[-1] > MOST_WORK or a.shape[-1] == 0:
        return None
    products = (a[..., k, None] * b[..., k, None, :] for k in range(a.shape[-1]))
    return (reduce(add, products),)
