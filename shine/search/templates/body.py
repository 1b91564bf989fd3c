"""The known part of a template as a plan: which parts of a tape are fixed, and where unknown functions are called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from shine.lang.forms.names import shown
from shine.lang.forms.primitives import CONSTANT, PrimitiveSet
from shine.lang.forms.tape import tape_from_tree
from shine.lang.forms.tree import Primitive, Tree

_NONE = repr(0.0)


@dataclass(frozen=True)
class Fixed:
    """Nodes that are the same for all individuals, apart from the values of parameters.

    Parameters
    ----------
    codes : tuple of int
        Of the composed formulas.
    values : tuple of str
        As text, in which 0.0 and -0.0 differ.
    leaves : tuple of int
        Number of the leaf that a constant takes its value from; -1 if there is none.
    grouped : tuple of bool
        Whether that is the first leaf of a parameter by group.
    """

    codes: tuple[int, ...]
    values: tuple[str, ...]
    leaves: tuple[int, ...]
    grouped: tuple[bool, ...]

    def __add__(self, other: Fixed) -> Fixed:
        return Fixed(
            self.codes + other.codes,
            self.values + other.values,
            self.leaves + other.leaves,
            self.grouped + other.grouped,
        )


@dataclass(frozen=True)
class Call:
    """A call of an unknown function or of its derivative.

    Parameters
    ----------
    slot : int
        Number of the unknown function.
    by : tuple of int
        Arguments that it is differentiated by, one after the other.
    arguments : tuple of Expression
    """

    slot: int
    by: tuple[int, ...]
    arguments: tuple[Expression, ...]


Expression = tuple[Fixed | Call, ...]
"""Parts of a tape in their order."""

Leaf = tuple[int, bool] | float
"""A parameter: number of its first leaf, and whether it is by group; or its fixed value."""


def plan(
    tree: Tree,
    primitives: PrimitiveSet,
    calls: Mapping[str, tuple[int, tuple[int, ...]]],
    leaves: Mapping[str, Leaf],
) -> Expression:
    """The plan of an output.

    Parameters
    ----------
    tree : Tree
        Its names are features of the primitive set and parameters.
    primitives : PrimitiveSet
        Of the composed formulas.
    calls : mapping of str to (int, tuple of int)
        Number of the unknown function, and the arguments to differentiate by, of each function that is not known.
    leaves : mapping of str to Leaf
        The parameters.
    """
    for known in primitives.functions:
        if known.name in calls:
            raise ValueError(
                f"template: {shown(known.name)} is unknown there, and one of the primitives; call one of them by "
                f"another name (shine.template takes functions that you know: functions=[{known.name}])"
            )
    unknown = [Primitive(name, tree.functions[name].arity) for name in calls]
    own = PrimitiveSet((*primitives.functions, *unknown), (*primitives.features, *leaves))
    tape = tape_from_tree(tree, own)
    parameters = list(leaves.values())
    stack: list[Expression] = []
    for code, value in zip(tape.codes.tolist(), tape.values.tolist(), strict=True):
        if code < own.first_function:
            at = code - 1 - len(primitives.features)
            stack.append((_terminal(code, value) if at < 0 else _parameter(parameters[at]),))
            continue
        function = own.function(code)
        arguments = tuple(stack[len(stack) - function.arity :])
        del stack[len(stack) - function.arity :]
        if function.name in calls:
            stack.append((Call(*calls[function.name], arguments),))
        else:
            applied = Fixed((primitives.function_codes[function.name],), (_NONE,), (-1,), (False,))
            stack.append(_merged([part for argument in arguments for part in argument] + [applied]))
    (found,) = stack
    return found


def _terminal(code: int, value: float) -> Fixed:
    return Fixed((code,), (repr(value),), (-1,), (False,))


def _parameter(leaf: Leaf) -> Fixed:
    if isinstance(leaf, float):
        return _terminal(CONSTANT, leaf)
    return Fixed((CONSTANT,), (_NONE,), (leaf[0],), (leaf[1],))


def _merged(parts: Sequence[Fixed | Call]) -> Expression:
    """The parts, neighbouring fixed ones as one."""
    found: list[Fixed | Call] = []
    for part in parts:
        last = found[-1] if found else None
        if isinstance(last, Fixed) and isinstance(part, Fixed):
            found[-1] = last + part
        else:
            found.append(part)
    return tuple(found)
