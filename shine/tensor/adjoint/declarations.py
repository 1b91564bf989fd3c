"""Declared gradients -> functions, for a whole module; and a declaration from Python."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from graphlib import TopologicalSorter

from shine.base.errors import FormError
from shine.lang.forms.names import listed, value_text
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
