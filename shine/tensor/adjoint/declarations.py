"""Declared gradients -> functions, for a whole module; and a declaration from Python."""

from __future__ import annotations

from collections.abc import Sequence
from graphlib import TopologicalSorter

from shine.errors import FormError
from shine.tensor.adjoint.adjoints import Derivatives
from shine.tensor.adjoint.segments import in_segments
from shine.tensor.form.module import GradientDeclaration, Module
from shine.tensor.form.types import FLOATS
from shine.tensor.form.verifier import needed_by, signature, verify


def with_gradients(module: Module) -> Module:
    """Put a function in the place of each declaration.

    A declaration may name another one: gradients of gradients follow.

    Raises
    ------
    FormError
        If the module is not valid, or a loop stands between parameters and results.
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
    """
    parameters, results = signature(module, of)
    chosen = tuple(wrt) if wrt is not None else tuple(i for i, t in enumerate(parameters) if t.dtype in FLOATS)
    wrong = [i for i in (*chosen, *keeping) if not isinstance(i, int) or i < 0]
    wrong += [i for i in chosen if i not in wrong and i >= len(parameters)]
    wrong += [i for i in keeping if i not in wrong and i >= len(results)]
    if wrong:
        raise FormError(
            f"{wrong[0]}: @{of} has the parameters 0 to {len(parameters) - 1} and the results 0 to {len(results) - 1}"
        )
    seeds = (len(results) != 1 or bool(results[0].shape)) if seedable is None else seedable
    made = f"{of}_grad" if name is None else name
    if made in module.functions:
        raise FormError(f"there is a function @{made} already; choose another name")
    declared = GradientDeclaration(
        made,
        of,
        chosen,
        tuple(keeping),
        seeds,
        parameters + (results if seeds else ()),
        tuple(parameters[i] for i in chosen) + tuple(results[i] for i in keeping),
    )
    complete = with_gradients(module)
    if memory is None:
        return with_gradients(complete.with_functions(declared))
    return in_segments(complete, declared, memory)
