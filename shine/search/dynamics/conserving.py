"""Equations that keep a quantity of the states: what is left to search for.

Of two states, x' = g*dH/dy and y' = -g*dH/dx with one unknown function g of all of them keep H(x, y), and each motion
that keeps it has this form. Of more, one rate follows from the others, which are free: that of a state by which the
derivative of H has one sign in all readings.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shine.base.errors import DataError, UnsupportedSyntaxError
from shine.base.typing import Floats
from shine.data.trajectories import Trajectories
from shine.evaluate.kernels.kernel import Kernel
from shine.lang.derivative import derivative, unused_name
from shine.lang.forms.names import listed
from shine.lang.forms.tree import Tree
from shine.lang.parse import parse
from shine.lang.simplify.simplifier import simplify
from shine.search.dynamics.smoothing.smoothing import Smoothed

CHANGING = 0.8
"""Rate of a quantity, as a share of the sizes of its terms' rates, from which the readings do not keep it; where noise
hides all, this is 0.7."""


def conserving(text: str, trajectories: Trajectories, smooth: Smoothed, features: Sequence[str]) -> dict[str, str]:
    """Right sides of all states, as a template, that keep a quantity.

    Parameters
    ----------
    text : str
        The quantity, a formula of states.
    trajectories : Trajectories
    smooth : Smoothed
    features : sequence of str
        What rates may depend on.

    Raises
    ------
    UnsupportedSyntaxError
        If the text is no such formula.
    DataError
        If there is one state, the readings do not keep the quantity, or each derivative of the quantity changes its
        sign, with more than two states.
    """
    names = trajectories.states
    try:
        tree = parse(text, names)
        slopes = [simplify(derivative(tree, name)) for name in names]
    except (UnsupportedSyntaxError, ValueError) as error:
        raise UnsupportedSyntaxError(f"conserve: {error}; it is a formula of {listed(names)}") from None
    if len(names) == 1:
        raise DataError(f"conserve: {names[0]} is the only state, and would stand still")
    states, speeds = (np.concatenate([getattr(run, kind) for run in smooth.runs]) for kind in ("states", "rates"))
    values = [np.broadcast_to(Kernel(slope)(*states.T), len(states)) for slope in slopes]
    changes = np.array(values).T * speeds
    change, most = (
        float(np.sqrt(np.add.reduce(np.add.reduce(each, axis=1) ** 2))) for each in (changes, np.abs(changes))
    )
    if not change < CHANGING * most:
        raise DataError(f"conserve: the readings do not keep {text}: nothing in it makes up for what changes")
    arguments = ", ".join(features)
    function = unused_name("f", features)
    if len(names) == 2:
        call = f"{function}({arguments})"
        return {names[0]: f"{call}*({slopes[1]})", names[1]: f"-{call}*({slopes[0]})"}
    last = _dependent(slopes, values)
    if last is None:
        raise DataError(f"conserve: each derivative of {text} is 0 somewhere in the readings; no rate follows from it")
    rates = {name: f"{unused_name(f'f{number}', features)}({arguments})" for number, name in enumerate(names)}
    del rates[names[last]]
    factors = {
        name: "" if str(slope) in ("1", "1.0") else f"({slope})*" for name, slope in zip(names, slopes, strict=True)
    }
    sums = " + ".join(f"{factors[name]}{rate}" for name, rate in rates.items())
    return {**rates, names[last]: f"-({sums})" + (f"/({slopes[last]})" if factors[names[last]] else "")}


def _dependent(slopes: Sequence[Tree], values: Sequence[Floats]) -> int | None:
    """The state whose rate follows from the others: the last one with a derivative of one sign, a constant first."""
    usable = [place for place, own in enumerate(values) if (own > 0).all() or (own < 0).all()]
    return max(usable, key=lambda place: (not slopes[place].used_parameters, place), default=None)
