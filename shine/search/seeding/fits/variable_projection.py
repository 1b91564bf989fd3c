"""Fits of the constants of one formula by variable projection, which follows the narrow valleys near an exact fit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shine.base.typing import Floats
from shine.compiler.arrays import Regression, apply, dot
from shine.lang.forms.primitives import CONSTANT, PrimitiveSet
from shine.search.seeding.bank.formula_writer import Nodes, unknown, with_constants

STEPS = 30
"""Most steps of a fit."""

DAMPINGS = (0.0, 1e-4, 1e-2, 1.0, 100.0)
"""Damping factors that every step tries, from Newton's step to a short one along the gradient."""

DIFFERENCE = 1e-7
"""Step of a numeric derivative, as a share of the constant: about the root of the rounding error."""

LEAST_GAIN = 0.01
"""A step that lowers the squared error by a smaller share is slow: close to an exact fit, steps gain much more;
otherwise the evolution fits the constants again."""

ROUNDING = 1e-28
"""Squared error, as a share of the target's square, that is rounding."""

MOST_SLOW = 2
"""Slow steps in a row that end a fit."""


def evaluated(
    nodes: Nodes, columns: Floats, primitives: PrimitiveSet, places: Sequence[int] = (), constants: Floats | None = None
) -> Floats:
    """Values of a formula for several choices of some of its constants.

    Parameters
    ----------
    nodes : Nodes
    columns : ndarray of shape (n_features, n_rows)
    primitives : PrimitiveSet
    places : sequence of int
        Where the constants are.
    constants : ndarray of shape (n, n_places), optional
        Their values; those in the formula without them.

    Returns
    -------
    ndarray of shape (n, n_rows)
        n is 1 without constants; not finite where there is no value.
    """
    choices = 1 if constants is None else len(constants)
    where = {place: i for i, place in enumerate(places)}
    stack: list[Floats] = []
    for place, (code, value) in enumerate(nodes):
        arity = int(primitives.arities[code])
        if code == CONSTANT:
            own = constants[:, where[place], None] if constants is not None and place in where else np.array([[value]])
            stack.append(own)
        elif arity == 0:
            stack.append(columns[code - 1][None])
        else:
            arguments = stack[-arity:]
            del stack[-arity:]
            stack.append(apply(primitives.function(code), *arguments))
    return np.broadcast_to(stack[0], (choices, columns.shape[1]))


def refitted(
    nodes: Nodes,
    columns: Floats,
    target: Floats,
    weights: Floats,
    primitives: PrimitiveSet,
    *,
    slope: bool,
    intercept: bool,
) -> Nodes:
    """The formula with the constants that fit best, beginning with those that it has.

    Parameters
    ----------
    nodes : Nodes
    columns : ndarray of shape (n_features, n_rows)
    target, weights : ndarray of shape (n_rows,)
    primitives : PrimitiveSet
    slope, intercept : bool
        Whether the formula is judged with its best slope and with its best intercept.

    Returns
    -------
    Nodes
        Constants that are whole numbers stay. The formula itself if nothing fits better.

    Notes
    -----
    Levenberg and Marquardt's method on the errors that remain after slope and intercept are solved for (variable
    projection: Golub and Pereyra 1973), with differences for derivatives. Constants are measured by their size, so it
    does not matter in which units the data are.
    """
    places = unknown(nodes)
    if not places:
        return nodes
    root = np.sqrt(weights)
    goal = target * root

    def errors(choices: Floats) -> Floats:
        values = evaluated(nodes, columns, primitives, places, choices) * root
        basis = [values] if slope else []
        if intercept:
            basis.append(np.broadcast_to(root, values.shape))
        return Regression.of(np.stack(basis, axis=-2)).rest(goal) if basis else goal - values

    with np.errstate(all="ignore"):
        own = np.array([nodes[place][1] for place in places])
        rest = errors(own[None])[0]
        error, least = float(dot(rest, rest)), ROUNDING * float(dot(goal, goal))
        slow = 0
        for _ in range(STEPS):
            if not least < error < np.inf:
                break
            step = DIFFERENCE * own
            derivatives = (errors(own + np.diag(step)) - rest) / DIFFERENCE
            if not np.isfinite(derivatives).all():
                break
            choices = own * (1 - _steps(derivatives, rest))
            found = errors(choices)
            sizes = dot(found, found)
            best = int(np.argmin(np.where(np.isfinite(sizes), sizes, np.inf)))
            if not sizes[best] < error:
                break
            gain = 1 - float(sizes[best]) / error
            own, rest, error = choices[best], found[best], float(sizes[best])
            slow = slow + 1 if gain < LEAST_GAIN else 0
            if slow == MOST_SLOW:
                break
    return with_constants(nodes, places, own) if np.isfinite(own).all() else nodes


def _steps(derivatives: Floats, rest: Floats) -> Floats:
    """Relative steps for each damping factor, shape (n_dampings, n_constants)."""
    count = len(derivatives)
    lengths = np.sqrt(dot(derivatives, derivatives))
    damped = np.sqrt(np.array(DAMPINGS))[:, None, None] * np.diag(lengths)
    wide = np.broadcast_to(derivatives, (len(DAMPINGS), *derivatives.shape))
    view = np.concatenate([rest, np.zeros(count)])
    return Regression.of(np.concatenate([wide, damped], axis=-1)).coefficients(view)
