"""Required features: a formula has them as far as the rows see them.

A search that only allows formulas with a feature adds it where it changes nothing: ``- 3e-17*x``, ``x/x``, or a power
of 0.0009 in the noise. The same formula without it says as much, and the reason of the choice tells what is left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from shine.base.typing import Floats
from shine.data.datasets.dataset import Dataset
from shine.lang.forms.names import listed
from shine.lang.forms.primitives import CONSTANT, PrimitiveSet
from shine.lang.forms.tree import Tree
from shine.search.finishing.polishing import population_of
from shine.search.models.model import Model


def with_required(
    models: Sequence[Model],
    required: Sequence[str],
    rows: Dataset,
    primitives: PrimitiveSet,
    lengths: Callable[[Sequence[Model]], Floats],
    refitted: Callable[[list[Tree]], list[Model]] | None = None,
) -> list[Model]:
    """The models without required features that no row shows; only those with all, if the shortest one has them.

    `lengths` are nats of descriptions, and `refitted` gives the models of formulas whose constants are fitted anew;
    without it, every feature counts that stands there.
    """
    found = [model for model in models if not required or math.isfinite(model.loss)]
    for name in required:
        which = [at for at, model in enumerate(found) if name in model.tree.used_parameters]
        if refitted is None or not which:
            continue
        own = population_of([found[at].tree for at in which], primitives)
        # A value that the feature has: at its mean, a formula may have a pole.
        place, column = own.codes == own.primitives.feature_codes[name], rows.columns[rows.features.index(name)]
        values = np.where(place, np.sort(column)[rows.n_rows // 2], own.values)
        held = replace(own, codes=np.where(place, CONSTANT, own.codes), values=values)
        for at, model in zip(which, refitted([held.tree(each) for each in range(len(held))]), strict=True):
            without, within = lengths([model, found[at]])
            found[at] = model if without <= within else found[at]
    found = list({model.tree: model for model in found}.values())
    if found and required and not lacking(found[int(np.argmin(lengths(found)))], required):
        found = [model for model in found if not lacking(model, required)]
    return found


def lacking(model: Model, required: Sequence[str]) -> str:
    """A word for the reason of a choice if a formula lacks required features; empty if it has them."""
    names = [name for name in required if name not in model.tree.used_parameters]
    return f"; without the required {listed(names)}, as no formula describes the rows better with it" if names else ""
