"""The meaning of a program, in NumPy: the oracle for the tests of compiled programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from shine.base.typing import AnyArray
from shine.lang.forms.tree import Tree, names_in
from shine.lang.meaning.interpret import evaluate
from shine.lang.program.arguments import Signature
from shine.lang.program.program import STORAGE_TYPES, Program, Statement


def interpret(program: Program, arguments: Sequence[ArrayLike] | Mapping[str, ArrayLike]) -> tuple[AnyArray, ...]:
    """The outputs of a program.

    Parameters
    ----------
    program : Program
    arguments : sequence or mapping of str to array-like
        In the order of ``program.arguments``, or by label or name.

    Returns
    -------
    tuple of ndarray
        One for each output, of its type and of the broadcast shape of the arguments that it depends on.

    Raises
    ------
    TypeError, ValueError
        If arguments are missing or too many, or do not fit their types or each other.
    ZeroDivisionError
        If an integer division has a zero divisor in any row.
    """
    listed, named = ((), arguments) if isinstance(arguments, Mapping) else (arguments, {})
    return interpret_arrays(program, Signature(program).arrays(listed, named))


def interpret_arrays(program: Program, arrays: Sequence[AnyArray]) -> tuple[AnyArray, ...]:
    """The outputs of a program, statement by statement.

    Every value has the broadcast shape of its operands, like the nodes of a graph.

    Parameters
    ----------
    program : Program
    arrays : sequence of ndarray
        One for each parameter, bound ones included, of the parameter's storage type.

    Returns
    -------
    tuple of ndarray
        One for each output, of its storage type.

    Raises
    ------
    ZeroDivisionError
        If an integer division has a zero divisor in any row.
    ValueError
        If shapes do not fit each other.
    """
    values: dict[str, AnyArray] = {}
    for parameter, array in zip(program.parameters, arrays, strict=True):
        values[parameter.name] = np.asarray(array).astype(STORAGE_TYPES[parameter.dtype])
    operands = [names_in(statement.value) for statement in program.statements]
    left = Counter(name for names in operands for name in names)
    left.update(output.name for output in program.outputs)
    for statement, names in zip(program.statements, operands, strict=True):
        values[statement.name] = _value(program, statement, names, [values[name] for name in names])
        # Free values after their last use: all values of a long program do not fit into memory.
        left.subtract(names)
        for name in names:
            if left[name] == 0:
                del values[name]
    return tuple(
        values[output.name] != 0 if output.dtype == "bool" else values[output.name].copy() for output in program.outputs
    )


def converted(array: AnyArray, dtype: str) -> AnyArray:
    """Values in another number type, as `shine.lang.program.program.Statement` defines it."""
    if array.dtype.kind == "i" or np.dtype(dtype).kind == "f":
        with np.errstate(over="ignore"):
            return array.astype(dtype)
    limits = np.iinfo(dtype)
    # Both bounds are powers of two, which every float type can represent. NaN is not between them.
    fits = (array >= float(limits.min)) & (array < -float(limits.min))
    return np.where(fits, np.where(fits, array, 0).astype(dtype), limits.min).astype(dtype)


def _value(program: Program, statement: Statement, names: Sequence[str], operands: Sequence[AnyArray]) -> AnyArray:
    if statement.converts:
        return converted(operands[0], statement.dtype)
    shape = np.broadcast_shapes(*(operand.shape for operand in operands))
    columns = [np.broadcast_to(operand, shape).reshape(-1) for operand in operands]
    tree = Tree(tuple(names), statement.value, functions=program.functions)
    return evaluate(tree, columns, statement.dtype).reshape(shape)
