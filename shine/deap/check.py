"""Whether a script's own function computes the fitness that compiled code computes instead of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from shine.deap.library import gp
from shine.deap.objectives import Objective, described

_TOLERANCE = {"float64": 1e-6, "float32": 1e-3}
"""Largest relative difference between values of the fitness."""

_NEGLIGIBLE = 1e-6
"""Values below this share of the target's mean square may differ as values of this size may."""


def check_same(
    function: Callable[[Any], Any],
    individuals: Sequence[Any],
    fitnesses: Sequence[tuple[float, ...]],
    objectives: Sequence[Objective],
    dtype: str,
    scale: float,
) -> bool:
    """Compare the fitness of the smallest individual whose values are finite; only one, as the function is slow.

    Parameters
    ----------
    function : callable
        The script's own.
    individuals, fitnesses : sequence
        With the values of compiled code.
    objectives : sequence of Objective
    dtype : {"float64", "float32"}
    scale : float
        Mean square of the target.

    Returns
    -------
    bool
        Whether there was an individual to compare.

    Raises
    ------
    ValueError
        If the fitness differs.
    """
    finite = [i for i, values in enumerate(fitnesses) if np.isfinite(values).all()]
    if not finite:
        return False
    index = min(finite, key=lambda i: _size(individuals[i]))
    own, other = fitnesses[index], function(individuals[index])
    if _alike(np.array(own), other, _TOLERANCE[dtype], scale):
        return True
    tree = individuals[index]
    written = str(tree) if isinstance(tree, gp.PrimitiveTree) else ", ".join(map(str, tree))
    shown = repr(own[0]) if len(own) == 1 else _shortened(own)
    raise ValueError(
        f"toolbox.evaluate returns {_shortened(other)} for {written}, but the compiled {described(objectives)} is "
        f"{shown}: give the evaluator the loss or objectives, X and y of that function, or check=False if the "
        "difference is meant"
    )


def _alike(own: np.ndarray[Any, Any], other: Any, tolerance: float, scale: float) -> bool:
    try:
        values = np.ravel(np.asarray(other, dtype=np.float64))
    except (TypeError, ValueError):
        return False
    if values.shape != own.shape:
        return False
    return bool((np.abs(values - own) <= tolerance * np.maximum(np.abs(own), _NEGLIGIBLE * scale)).all())


def _size(individual: Any) -> int:
    """Number of nodes; of all trees if there are several."""
    return len(individual) if isinstance(individual, gp.PrimitiveTree) else sum(map(len, individual))


def _shortened(values: Any, most: int = 6) -> str:
    """A fitness in a message; only the first values of many."""
    if isinstance(values, tuple) and len(values) > most:
        return f"({', '.join(map(repr, values[:most]))}, ... {len(values)} values)"
    return repr(values)
