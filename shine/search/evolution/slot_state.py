"""Slots in the stored state of a run: written, read, and checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from shine.base.typing import Mask
from shine.lang.forms.names import normalized
from shine.lang.forms.primitives import CONSTANT, PrimitiveSet, select
from shine.lang.forms.tree import Primitive
from shine.lang.population import Population
from shine.search.evolution.operators.slots import Slot, SlottedSet, ends_of_slots
from shine.search.evolution.run_state_checks import check_integer, names_of, text_of


def header_of_slots(primitives: PrimitiveSet) -> dict[str, Any]:
    """Slots in a state's header, as JSON values; empty for an ordinary primitive set."""
    if not isinstance(primitives, SlottedSet):
        return {}
    slots = [
        {
            "name": slot.name,
            "functions": [function.name for function in slot.primitives.functions],
            "arguments": list(slot.primitives.features),
            "max_size": slot.max_size,
            "max_depth": slot.max_depth,
        }
        for slot in primitives.slots
    ]
    return {"slots": slots, "numbers": [repr(number) for number in primitives.numbers]}


def slotted_set(slots: Any, numbers: Any, table: Mapping[str, Primitive]) -> SlottedSet:
    """The primitive set that a header describes.

    Raises
    ------
    ValueError
        If the header has another form, or a function is not in the table.
    """
    if not isinstance(slots, Sequence) or not slots or not isinstance(numbers, Sequence):
        raise ValueError("the slots of the run's state have another form")
    return SlottedSet.of([_slot(slot, table) for slot in slots], [float(text_of(each, "number")) for each in numbers])


def _slot(slot: Any, table: Mapping[str, Primitive]) -> Slot:
    functions = select(table, names_of(slot["functions"], "functions"))
    arguments = tuple(names_of(slot["arguments"], "arguments"))
    limits = (check_integer(slot[key], key, 1) for key in ("max_size", "max_depth"))
    return Slot(normalized(text_of(slot["name"], "name")), PrimitiveSet(functions, arguments), *limits)


def keep_slots(population: Population) -> Mask:
    """Whether valid individuals of a slotted set have root and numbers at the end, and in each slot its own codes."""
    primitives = population.primitives
    assert isinstance(primitives, SlottedSet)
    n, frame = len(population), primitives.frame
    everyone = np.arange(n)
    whole = population.sizes > frame
    roots = np.where(whole, population.sizes - 1, 0)
    inside = np.arange(population.width) < population.sizes[:, None]
    whole &= population.codes[everyone, roots] == primitives.root
    whole &= ((population.codes == primitives.root) & inside).sum(axis=1) == 1
    numbers = roots[:, None] - np.arange(1, frame)
    whole &= (population.codes[everyone[:, None], np.maximum(numbers, 0)] == CONSTANT).all(axis=1)
    kept = np.flatnonzero(whole)
    found = population.take(kept)
    ends, begins = ends_of_slots(found), np.zeros(len(kept), np.int64)
    positions = np.arange(population.width)
    for slot, codes in enumerate(primitives.codes_of_slots):
        allowed = np.isin(found.codes, codes)
        own = (positions >= begins[:, None]) & (positions <= ends[:, slot][:, None])
        whole[kept] &= (allowed | ~own).all(axis=1) & (ends[:, slot] >= begins)
        begins = ends[:, slot] + 1
    return whole
