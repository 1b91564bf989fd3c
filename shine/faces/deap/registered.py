"""Arguments of `toolbox.map` in DEAP's algorithms: functions registered for an evaluation, individuals with weights."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any


def without_arguments(function: Any) -> Any:
    """The function that a toolbox has registered; it keeps functions as `functools.partial`."""
    return function.func if isinstance(function, functools.partial) else function


def is_evaluation(function: Any, stands_for: Callable[..., Any] | None) -> bool:
    """Whether a function is the one that an evaluator replaces.

    Parameters
    ----------
    function : callable
        As `toolbox.map` gets it.
    stands_for : callable, optional
        The function that the evaluator was made to replace; by default the one registered as "evaluate", undecorated.
    """
    inner = without_arguments(function)
    if stands_for is not None:
        return function is stands_for or inner is stands_for
    # A toolbox names a function by the alias it registers it under; a decorator changes what it computes.
    return (
        isinstance(function, functools.partial)
        and getattr(function, "__name__", "") == "evaluate"
        and not hasattr(inner, "__wrapped__")
    )


def weights_of(individuals: Sequence[Any]) -> Sequence[float] | None:
    """Weights of the fitness, which all individuals of a script share; None if they have no fitness."""
    weights: Sequence[float] | None = getattr(getattr(individuals[0], "fitness", None), "weights", None)
    return weights
