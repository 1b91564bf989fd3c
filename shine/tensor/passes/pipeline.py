"""All passes in order, until nothing changes."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TypeAlias

from shine.tensor.form.module import Function, Module, with_result_names
from shine.tensor.form.verifier import verify
from shine.tensor.passes.algebra import simplify
from shine.tensor.passes.canonicalize import canonicalize, fold
from shine.tensor.passes.dce import entries_of, remove_dead, share
from shine.tensor.passes.products import flatten_products, join_products, order_products
from shine.tensor.passes.reshaping import choose_layout
from shine.tensor.passes.specialize import inline, specialize

Pass: TypeAlias = Callable[[Module], Module]

CLEANING: tuple[Pass, ...] = (inline, specialize, canonicalize, fold, simplify, share)
"""Passes after which others find more."""

CHOOSING: tuple[Pass, ...] = (order_products, join_products, choose_layout, flatten_products)
"""Passes that choose by cost among forms of the same meaning; each once a round."""

MOST_ROUNDS = 12
"""Rounds of all passes; networks need three or four."""


def optimized(module: Module, entries: Collection[str] | None = None) -> Module:
    """A module that computes the same with less.

    Parameters
    ----------
    module : Module
    entries : collection of str, optional
        Functions whose signatures stay; default: `entries_of`. Others may disappear.

    Returns
    -------
    Module
        The results of the entries keep their names where they are values of their own. Elementwise operations keep
        every bit; sums and matrix products may add in another order.

    Raises
    ------
    FormError
        If the module is not valid, or there is no function of the name of an entry.
    """
    verify(module)
    kept = entries_of(module) if entries is None else tuple(entries)

    def clean(found: Module) -> Module:
        for _ in range(MOST_ROUNDS):
            before = found
            for each in CLEANING:
                found = each(found)
            found = remove_dead(found, kept)
            if found is before:
                break
        return found

    found = clean(remove_dead(module, kept))
    for _ in range(MOST_ROUNDS):
        before = found
        for each in CHOOSING:
            chosen = each(found)
            found = found if chosen is found else clean(chosen)
        if found is before:
            break
    return _with_names(found, module, kept)


def _with_names(module: Module, original: Module, entries: Collection[str]) -> Module:
    """Results of the entries under their old names: foreign names hang on them."""
    functions = {name: original.functions[name] for name in entries}
    renamed = [
        with_result_names(module.function(name), old.results)
        for name, old in functions.items()
        if isinstance(old, Function)
    ]
    return module.with_functions(*renamed)
