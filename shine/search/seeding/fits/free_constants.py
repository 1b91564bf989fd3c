"""The constants inside formulas that fit best: of many formulas in one native call, then of those that nearly fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from shine.base.typing import Floats, Mask
from shine.compiler.arrays import Regression, apply, dot
from shine.evaluate.protocols import FirstLines, Linearizer
from shine.lang.forms.primitives import CONSTANT, PrimitiveSet
from shine.lang.population import Population
from shine.search.seeding.bank.formula_writer import Nodes, is_structural, tape, unknown, with_constants

STEPS = 50
"""Most steps of a fit."""

LEAST_GAIN = 1e-2
"""A fit ends where the next step promises to remove a smaller share of the error: close to an exact fit, steps remove
nearly all of it; otherwise the evolution fits the constants again."""

MOST_UNKNOWN = 8
"""Most constants that are fitted: a formula with more is left as it is."""

NUDGE = 1e-6
"""Relative distance by which a constant that is no part of the form is moved away from a whole number."""


@dataclass(frozen=True)
class Line:
    """Parts of the line that formulas are judged with."""

    slope: bool
    intercept: bool


@dataclass(frozen=True, eq=False)
class ConstantFits:
    """Fits of the constants of formulas to a target.

    Parameters
    ----------
    predict : callable
        Predictions of a population on the rows, shape (n_individuals, n_rows).
    columns : ndarray of shape (n_features, n_rows)
    target, weights : ndarray of shape (n_rows,)
        The weights add up to 1.
    linearizer : Linearizer
        Over the same rows and weights.
    primitives : PrimitiveSet
    linear_scaling : bool
        Whether formulas are judged with their best slope and intercept. They are then fitted with both, and also with a
        slope alone.
    """

    predict: Callable[[Population], Floats]
    columns: Floats
    target: Floats
    weights: Floats
    linearizer: Linearizer
    primitives: PrimitiveSet
    linear_scaling: bool

    def of(self, formulas: Sequence[Nodes]) -> list[tuple[Nodes, Nodes]]:
        """Formulas and what they become with the constants that fit best, beginning with those that they have.

        Constants that are small whole numbers stay. A formula without others, or with very many, is left as it is.
        """
        kept = [(nodes, nodes) for nodes in formulas if not 0 < len(unknown(nodes)) <= MOST_UNKNOWN]
        starts = [nodes for nodes in formulas if 0 < len(unknown(nodes)) <= MOST_UNKNOWN]
        if not starts:
            return kept
        if not self.linear_scaling:
            return kept + self._fitted(starts, np.ones(len(starts)), np.zeros(len(starts)), Line(False, False))
        with np.errstate(all="ignore"):
            predictions = np.asarray(self.predict(self._population(starts)), np.float64)
            slopes, intercepts, through = _lines(predictions, self.target, self.weights)
        usable = np.flatnonzero(np.isfinite(slopes) & np.isfinite(intercepts) & np.isfinite(through) & (through != 0))
        starts = [starts[i] for i in usable.tolist()]
        found = self._fitted(starts, slopes[usable], intercepts[usable], Line(True, True))
        return kept + found + self._fitted_through_origin(starts, through[usable])

    def _fitted_through_origin(self, starts: list[Nodes], slopes: Floats) -> list[tuple[Nodes, Nodes]]:
        """Formulas fitted with a slope alone, which becomes a constant of theirs for the time."""
        if "mul" not in self.primitives.function_codes:
            return []
        times = (self.primitives.function_codes["mul"], 0.0)
        # A slope that is a small whole number would not be fitted.
        products = [(*n, (CONSTANT, s * (1 + NUDGE)), times) for n, s in zip(starts, slopes.tolist(), strict=True)]
        return self._fitted(products, np.ones(len(starts)), np.zeros(len(starts)), Line(True, False))

    def _fitted(self, starts: list[Nodes], slopes: Floats, intercepts: Floats, line: Line) -> list[tuple[Nodes, Nodes]]:
        """Formulas before and after a fit that begins with these lines; a slope alone is their last factor."""
        if not starts:
            return []
        population = self._population(starts)
        fixed: Mask = np.zeros((len(starts), int(np.count_nonzero(population.constants, axis=1).max())), bool)
        for i, nodes in enumerate(starts):
            own = [is_structural(value) for code, value in nodes if code == CONSTANT]
            fixed[i, : len(own)] = own
        lines = FirstLines(slopes, intercepts, line.slope and line.intercept)
        fit = self.linearizer.fit(population, STEPS, tolerance=LEAST_GAIN, lines=lines, fixed=fixed)
        variance = float(dot((self.target - dot(self.target, self.weights)) ** 2, self.weights))
        found = []
        for i, whole in enumerate(starts):
            nodes = whole[:-2] if line.slope and not line.intercept else whole
            places = unknown(nodes)
            values = fit.population.values[i][list(places)]
            usable = np.isfinite(fit.errors[i]) and np.isfinite(values).all()
            after = with_constants(nodes, places, values) if usable else nodes
            # Share of the variance below which a formula may be exact with other constants. The native fits crawl
            # through narrow valleys, so these are fitted once more by variable projection.
            if fit.errors[i] < 1e-3 * variance:
                after = refitted(after, self.columns, self.target, self.weights, self.primitives, **vars(line))
            found.append((nodes, after))
        return found

    def _population(self, formulas: Sequence[Nodes]) -> Population:
        return Population.from_tapes([tape(nodes) for nodes in formulas], self.primitives)


def _lines(predictions: Floats, target: Floats, weights: Floats) -> tuple[Floats, Floats, Floats]:
    """Slopes and intercepts of the best lines, and slopes of the best lines through the origin."""
    mean, target_mean = dot(predictions, weights), dot(target, weights)
    centered = predictions - mean[:, None]
    slopes = dot(centered, weights * (target - target_mean)) / dot(centered**2, weights)
    through = dot(predictions, weights * target) / dot(predictions**2, weights)
    return slopes, target_mean - slopes * mean, through


DAMPINGS = (0.0, 1e-4, 1e-2, 1.0, 100.0)
"""Damping factors that every step tries, from Newton's step to a short one along the gradient."""

DIFFERENCE = 1e-7
"""Step of a numeric derivative, as a share of the constant: about the root of the rounding error."""


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
        # Squared error, as a share of the target's square, that is rounding.
        error, least = float(dot(rest, rest)), 1e-28 * float(dot(goal, goal))
        slow = 0
        for _ in range(30):  # most steps of a fit by variable projection
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
            if slow == 2:  # slow steps in a row that end a fit
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
