"""Laws that are sums of two to six terms, drawn at random: growth, reactions, oscillators, materials.

A term is a constant times a small function of the state, of time, or of both; fractional powers are among them, and up
to two terms of a law have an inner constant. The rows are points of one trajectory (the law is a rate, and Runge and
Kutta's method integrates it; a material follows a curve with time), or random within the ranges of the features.
Coefficients are drawn so that each term is a visible part of the whole on random rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from quality.formulas import Formula, parse_formula
from quality.problems import Split

Array = NDArray[np.float64]

ROWS = 1000
ALIKE = 1e-6
"""Largest error on other points, as a share of the law's standard deviation there, of a formula that is the law."""

LEAST_PART = 0.15
"""Least standard deviation of a term, as a share of the whole law's, on random rows."""

INNER = (0.45, 0.4, 0.15)
"""Shares of laws with no inner constant, one, and two."""


@dataclass(frozen=True)
class Kind:
    """A kind of law.

    Parameters
    ----------
    features : dict of str to (float, float)
        Ranges; time is `t`.
    plain : tuple of str
        Terms without an inner constant.
    curved : dict of str to (float, float)
        Terms with an inner constant, for which `k` stands, and its range.
    rate_of : str
        The state whose rate the law is; empty if the states follow a given curve.
    """

    features: Mapping[str, tuple[float, float]]
    plain: tuple[str, ...]
    curved: Mapping[str, tuple[float, float]]
    rate_of: str = ""


KINDS = {
    "growth": Kind(
        {"t": (0.0, 15.0), "P": (0.5, 9.0)},
        ("P", "P**2", "P**3", "sqrt(P)", "P**(1/3)", "P**(2/3)", "P*log(P)", "log(1 + P)", "P*sin(t)", "sin(t)",
         "P*exp(-t)", "P/(1 + P)", "t*P", "exp(-P)"),
        {"P*exp(-k*P)": (0.1, 1.5), "P*exp(-k*t)": (0.05, 0.8), "P**2/(k + P)": (0.3, 6), "P*sin(k*t)": (0.3, 3),
         "sin(k*P)": (0.4, 2.5), "log(k + P)": (0.2, 4), "P**k": (0.35, 2.6)},
        "P",
    ),
    "reaction": Kind(
        {"t": (0.0, 12.0), "A": (0.1, 2.5)},
        ("A", "A**2", "A**3", "sqrt(A)", "A**(1/3)", "A**(3/4)", "A*log(1 + t)", "log(1 + A)", "sin(sqrt(A))",
         "A*exp(-t)", "A**2/(1 + A**2)", "cos(t)", "exp(-t)", "A*sqrt(t)"),
        {"A*exp(-k*t)": (0.1, 1.5), "A**2/(1 + k*A**2)": (0.3, 5), "A/(k + A)": (0.2, 3), "exp(-k/A)": (0.2, 2),
         "A*sin(k*t)": (0.4, 3), "log(1 + k*A)": (0.5, 8), "A**k": (0.3, 2.7)},
        "A",
    ),
    "oscillator": Kind(
        {"t": (0.0, 20.0), "x": (-2.0, 2.0), "v": (-2.0, 2.0)},
        ("x", "v", "x**3", "v**3", "x*v", "x**2*v", "x*v**2", "x**2", "sin(t)", "sin(x)", "sin(v)", "exp(-x**2)",
         "x*cos(v)", "v*exp(-t)", "x*exp(-v**2)", "1/(1 + x**2)"),
        {"sin(k*t)": (0.3, 3), "cos(k*t)": (0.3, 3), "sin(k*x)": (0.5, 2.5), "x*exp(-k*x**2)": (0.2, 2),
         "v*exp(-k*x**2)": (0.2, 2), "1/(k + x**2)": (0.4, 4), "exp(-k*t)": (0.05, 0.5)},
        "v",
    ),
    "material": Kind(
        {"e": (0.01, 0.8), "T": (3.0, 9.0)},
        ("e", "e**2", "T", "e*T", "sqrt(e)", "e**(1/3)", "e**(1/4)", "T*sqrt(e)", "e**2*T", "T**2", "exp(-e)",
         "e*exp(-T)", "log(T)", "1/T", "e/T", "T**(3/4)"),
        {"exp(-k/T)": (2, 20), "exp(-k*e)": (2, 12), "log(1 + k*e)": (3, 40), "e*exp(-k*e)": (2, 10),
         "e/(k + e)": (0.05, 1), "e**k": (0.1, 2.6), "T*exp(-k*e)": (2, 10)},
    ),
}  # fmt: skip


@dataclass(frozen=True)
class SumLaw:
    """A sum of terms with rows.

    Parameters
    ----------
    name, text : str
    kind : Kind
    along : bool
        Whether its rows are one trajectory.
    """

    name: str
    text: str
    kind: Kind
    along: bool
    expressible: bool = True

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(self.kind.features)

    @property
    def bounds(self) -> tuple[tuple[float, float], ...]:
        """Range of each feature."""
        return tuple(self.kind.features.values())

    @cached_property
    def truth(self) -> Formula:
        """The law."""
        return parse_formula(self.text, self.features)

    def split(self, rng: np.random.Generator, rows: int | None = None) -> Split:
        """Rows of the trajectory, or random ones; held out are random points within the ranges of these rows."""
        count = rows or ROWS
        X = self.trajectory(rng, count) if self.along else within(self.bounds, rng, count)
        other = within(tuple(zip(X.min(axis=0), X.max(axis=0), strict=True)), rng, ROWS)
        return Split(X, self.truth.predict(X), other, self.truth.predict(other))

    def trajectory(self, rng: np.random.Generator, rows: int) -> Array:
        """Points of one trajectory from a random start, shape (rows, n_features)."""
        names, formula = self.features, self.truth
        t = np.linspace(*self.kind.features.get("t", (0.0, 10.0)), rows)
        if not self.kind.rate_of:
            # A material that is stretched by steps while it is heated and cooled.
            e, T = self.bounds
            pull = 1 - np.exp(-t / rng.uniform(2, 6)) + 0.25 * np.sin(rng.uniform(0.5, 2) * t) ** 2
            heat = 0.5 + 0.5 * np.sin(rng.uniform(0.3, 1.5) * t + rng.uniform(0, 6))
            return np.column_stack([e[0] + (e[1] - e[0]) * pull / pull.max(), T[0] + (T[1] - T[0]) * heat])
        place = names.index(self.kind.rate_of)
        position = names.index("x") if "x" in names else None
        state = np.array([low + (high - low) * rng.uniform(0.15, 0.85) for low, high in self.bounds])
        state[0] = t[0]

        def rate(state: Array) -> Array:
            found = np.zeros(len(state))
            found[0], found[place] = 1.0, formula.predict(state[None])[0]
            if position is not None:
                found[position] = state[place]
            return found

        points, inner = [state], 4
        step = (t[1] - t[0]) / inner
        for _ in range(rows - 1):
            for _ in range(inner):
                a = rate(state)
                b = rate(state + step / 2 * a)
                c = rate(state + step / 2 * b)
                state = state + step / 6 * (a + 2 * b + 2 * c + rate(state + step * c))
            points.append(state)
        return np.array(points)


def within(bounds: Sequence[tuple[float, float]], rng: np.random.Generator, rows: int) -> Array:
    """Random points within ranges, shape (rows, n_features)."""
    low, high = np.array(bounds, dtype=np.float64).T
    return low + (high - low) * rng.random((rows, len(bounds)))


def sum_law(number: int) -> SumLaw:
    """The law of a number: the same in every run. Odd numbers have rows along a trajectory."""
    rng = np.random.default_rng([29, number])
    names = list(KINDS)
    while True:
        name = names[number // 2 % len(names)]
        kind, along = KINDS[name], number % 2 == 1
        law = SumLaw(f"{name}-{number}", _text(kind, rng), kind, along)
        if not along or _stays(law):
            return law


def _text(kind: Kind, rng: np.random.Generator) -> str:
    """A random law of this kind."""
    count, curves = int(rng.integers(2, 7)), int(rng.choice(3, p=INNER))
    curved = [list(kind.curved)[i] for i in rng.choice(len(kind.curved), min(curves, count - 1), replace=False)]
    terms = [str(term) for term in rng.choice(kind.plain, count - len(curved), replace=False)]
    for term in curved:
        low, high = kind.curved[term]
        terms.append(term.replace("k", f"{math.exp(rng.uniform(math.log(low), math.log(high))):.3g}"))
    points = within(tuple(kind.features.values()), np.random.default_rng(0), ROWS)
    parts = []
    for term in terms:
        spread = float(np.std(parse_formula(term, tuple(kind.features)).predict(points)))
        size = math.exp(rng.uniform(math.log(LEAST_PART), 0.0)) / spread
        parts.append(f"{size * rng.choice([-1, 1]):.3g}*{term}")
    return " + ".join(parts).replace("+ -", "- ")


def _stays(law: SumLaw) -> bool:
    """Whether the trajectory of the law stays near the ranges, and moves."""
    with np.errstate(all="ignore"):
        X = law.split(np.random.default_rng([law_number(law), 1]), 200).X
    low, high = np.array(law.bounds).T
    inside = (low - 0.5 * (high - low) < X) & (high + 0.5 * (high - low) > X)
    positive = (X[:, low > 0] > 0).all()
    return bool(np.isfinite(X).all() and inside.all() and positive and (np.ptp(X, axis=0) > 0.25 * (high - low)).all())


def law_number(law: SumLaw) -> int:
    """The number of a law."""
    return int(law.name.rpartition("-")[2])


def judge_sum(candidate: Formula, law: SumLaw, split: Split, noise: float) -> str:
    """Whether a formula has the law's own form: "identical", "constants" or "no".

    It is the law if it has its values on other points, off the trajectory too, and no more terms once products are
    expanded, or no more nodes: partial fractions may be shorter than the law. Under noise, its constants are fitted to
    the law on these points first: its form must be the law's.
    """
    if terms_of(candidate) > terms_of(law.truth) and candidate.size > law.truth.size:
        return "no"
    y, spread = split.y_test, float(np.std(split.y_test))

    def errors(constants: Array) -> Array:
        found = candidate.predict(split.X_test, constants) - y
        return np.where(np.isfinite(found), np.clip(found / spread, -1e6, 1e6), 1e6)

    constants = candidate.values
    if np.abs(errors(constants)).max() <= ALIKE:
        return "identical"
    free = np.flatnonzero((constants % 1 != 0) & (constants != 0))
    if not noise or not len(free) or np.sqrt(np.mean(errors(constants) ** 2)) > 1:
        return "no"

    def moved(factors: Array) -> Array:
        values = constants.copy()
        values[free] *= factors
        return values

    fit = least_squares(lambda factors: errors(moved(factors)), np.ones(len(free)), method="lm", xtol=1e-15, ftol=1e-15,
                        gtol=1e-15, max_nfev=400 * (len(free) + 1))  # fmt: skip
    return "constants" if np.abs(fit.fun).max() <= ALIKE else "no"


def terms_of(formula: Formula) -> int:
    """Terms of a formula once its products and whole powers of sums are expanded; quotients count by numerators."""
    stack: list[int] = []
    exponents: list[int] = []
    for step in formula.steps:
        if step.kind == "exponent":
            exponents.append(step.index)
        elif not step.arity:
            stack.append(1)
        elif step.kind in ("add", "sub"):
            stack.append(stack.pop() + stack.pop())
        elif step.kind == "mul":
            stack.append(stack.pop() * stack.pop())
        elif step.kind == "div":
            stack.pop()
        elif step.kind == "square":
            stack.append(math.comb(stack.pop() + 1, 2))
        elif step.kind == "pow" and exponents:
            base, power = stack.pop(), exponents.pop()
            stack.append(math.comb(base + power - 1, power) if power > 0 else 1)
        elif step.kind != "neg":
            del stack[len(stack) - step.arity :]
            stack.append(1)
    return stack[0]
