"""Views of a target: the target divided by a formula, with the outermost functions undone.

If y = exp(f), the view log(y) is f, which a smaller formula explains.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from shine.base.typing import Floats
from shine.compiler import arrays
from shine.compiler.arrays import exp, log
from shine.lang.forms.library import STANDARD
from shine.search.seeding.bank.formula_writer import Nodes, Unwritable, Writer, constant

DIFFERENCE = 1e-6
"""Step of a numeric derivative, as a share of the target's spread and size."""

SMALL = 1e-3
"""Share of the target's spread below which a value of a target of one sign is small: its step is a share of itself."""

PROBE: Nodes = ((1, 0.0),)
"""Any formula, to test whether a form can be written."""


@dataclass(frozen=True)
class Undoing:
    """Inverse of one function: ``t -> forward(t)``; ``inverse`` and ``write`` apply it again.

    Parameters
    ----------
    forward, inverse : callable
        Array functions of values and the numbers of a step; NaN or inf where they have no value.
    write : callable
        Takes a writer, a formula and the numbers, and returns the formula with `inverse` applied.
    homogeneous : bool
        Whether a multiple of the view is the view of a multiple of the target, so that linear scaling covers the
        factor.
    """

    forward: Callable[..., Floats]
    inverse: Callable[..., Floats]
    write: Callable[..., Nodes]
    homogeneous: bool = False


@dataclass(frozen=True)
class Step:
    """Undoes one function. A step is a value: it is equal to others of its kind, and travels to other processes.

    Parameters
    ----------
    name : str
        Its row of `UNDOINGS`.
    numbers : tuple of float
    """

    name: str
    numbers: tuple[float, ...] = ()

    @property
    def homogeneous(self) -> bool:
        """Whether a multiple of the view is the view of a multiple of the target."""
        return UNDOINGS[self.name].homogeneous

    def forward(self, values: Floats) -> Floats:
        """Values with the function undone."""
        return UNDOINGS[self.name].forward(values, *self.numbers)

    def inverse(self, values: Floats) -> Floats:
        """Values with the function applied."""
        return UNDOINGS[self.name].inverse(values, *self.numbers)

    def write(self, writer: Writer, nodes: Nodes) -> Nodes:
        """A formula with the function applied."""
        return UNDOINGS[self.name].write(writer, nodes, *self.numbers)


Chain = tuple[Step, ...]
"""Steps applied one after the other, the first to the target."""


def power(exponent: float, sign: float = 1.0) -> Step:
    """Undo a power; `sign` is the sign of the target, which an even power loses."""
    return Step("inverse") if exponent == -1 else Step("power", (exponent, sign))


def shift(by: float) -> Step:
    """Undo the subtraction of a constant: add it."""
    return Step("shift", (by,))


def exponential(sign: float) -> Step:
    """Undo the exponential function of a target of one sign."""
    return Step("exp", (sign,))


def _signed(writer: Writer, nodes: Nodes, sign: float) -> Nodes:
    return nodes if sign > 0 else writer.negate(nodes)


def _function(name: str, inverse: Callable[[Floats], Floats] | str) -> Undoing:
    """Undoing of a function of one argument by its inverse."""

    def undo(values: Floats) -> Floats:
        return arrays.apply(STANDARD[inverse], values) if isinstance(inverse, str) else inverse(values)

    return Undoing(undo, lambda t: arrays.apply(STANDARD[name], t), lambda w, n: w.call(name, n))


def _inverse_sinh(values: Floats) -> Floats:
    size = np.abs(values)
    return np.copysign(log(size + np.sqrt(size * size + 1)), values)


INVERSES: Mapping[str, Callable[[Floats], Floats] | str] = {
    "log": "exp",
    "sin": "asin",
    "cos": "acos",
    "tan": "atan",
    "asin": "sin",
    "acos": "cos",
    "atan": "tan",
    "tanh": lambda values: 0.5 * log((1 + values) / (1 - values)),
    "sinh": _inverse_sinh,
}
"""Functions with an inverse, at least on one branch."""

FUNCTIONS = tuple(Step(name) for name in INVERSES)
"""Steps that undo them."""

UNDOINGS = {
    "power": Undoing(
        lambda t, exponent, sign: arrays.power(sign * t, exponent),
        lambda t, exponent, sign: sign * arrays.power(t, 1 / exponent),
        lambda w, n, exponent, sign: _signed(w, w.power(n, 1 / exponent), sign),
        homogeneous=True,
    ),
    "inverse": Undoing(lambda t: 1 / t, lambda t: 1 / t, lambda w, n: w.power(n, -1.0), homogeneous=True),
    "shift": Undoing(lambda t, by: t + by, lambda t, by: t - by, lambda w, n, by: w.add(n, constant(-by))),
    "exp": Undoing(
        lambda t, sign: log(sign * t),
        lambda t, sign: sign * exp(t),
        lambda w, n, sign: _signed(w, w.call("exp", n), sign),
    ),
    **{name: _function(name, inverse) for name, inverse in INVERSES.items()},
}
"""Inverse of each kind of step."""


def chains(target: Floats, writer: Writer) -> list[Chain]:
    """Chains of at most three steps that a target goes through and comes back from, and that can be written."""
    sign = -1.0 if (target < 0).all() else 1.0
    single: list[Chain] = [(), *((power(p, sign),) for p in (-1.0, 2.0, -2.0, 0.5, -0.5)), (exponential(sign),)]
    single += [(step,) for step in FUNCTIONS]
    shifted = [(*first, shift(by)) for first in ((), (power(-1.0),), (power(2.0, sign),)) for by in (1.0, -1.0)]
    deeper: list[Chain] = []
    for chain in shifted:
        with np.errstate(all="ignore"):
            own = -1.0 if (forward(chain, target) < 0).all() else 1.0
        deeper += [(*chain, last) for last in (power(-1.0), power(2.0, own), power(0.5, own), exponential(own))]
    return [chain for chain in (*single, *deeper) if usable(chain, target, writer)]


def product_chains(target: Floats, writer: Writer) -> list[Chain]:
    """Chains after which searches look for products: they end by adding or subtracting 1, or are a single step."""
    sign = -1.0 if (target < 0).all() else 1.0
    firsts: list[Chain] = [(), (power(-1.0),), (power(2.0, sign),), (power(-2.0, sign),), (exponential(sign),)]
    found = [(*first, shift(by)) for first in firsts for by in (1.0, -1.0)]
    found += [(), (exponential(sign),), *((step,) for step in FUNCTIONS)]
    return [chain for chain in found if usable(chain, target, writer)]


def usable(chain: Chain, target: Floats, writer: Writer) -> bool:
    """Whether a target goes through a chain and comes back, varies there, and the way back can be written."""
    try:
        write(chain, writer, PROBE)
    except Unwritable:
        return False
    with np.errstate(all="ignore"):
        seen = forward(chain, target)
        back = inverse(chain, seen)
    scale = np.abs(target).max()
    # Largest error of a target that went through a chain and back, as a share of its largest value.
    if not np.isfinite(seen).all() or not (np.abs(back - target) <= 1e-9 * scale).all():
        return False
    # Range of a view, as a share of its largest value, below which it is a constant with rounding.
    return bool(np.ptp(seen) > 1e-9 * np.abs(seen).max())


def forward(chain: Chain, target: Floats) -> Floats:
    """The target after the steps of a chain; NaN or inf where they have no value."""
    with np.errstate(all="ignore"):
        return reduce(lambda t, step: step.forward(t), chain, target)


def inverse(chain: Chain, values: Floats) -> Floats:
    """The target that has these values after a chain; NaN or inf where there is none."""
    with np.errstate(all="ignore"):
        return reduce(lambda t, step: step.inverse(t), reversed(chain), values)


def write(chain: Chain, writer: Writer, nodes: Nodes) -> Nodes:
    """The formula of the target, from a formula of the target after the chain."""
    return reduce(lambda n, step: step.write(writer, n), reversed(chain), nodes)


def homogeneous(chain: Sequence[Step]) -> bool:
    """Whether a multiple of the view is the view of a multiple of the target."""
    return all(step.homogeneous for step in chain)


def slope(chain: Chain, target: Floats) -> Floats:
    """Derivative of the target after a chain by the target, from a central difference."""
    size, spread = np.abs(target), np.std(target)
    step = DIFFERENCE * (spread + size)
    if (target > 0).all() or (target < 0).all():
        # A step across zero would leave the range of a logarithm or a root.
        step = np.where(size < SMALL * spread, DIFFERENCE * size, step)
    return (forward(chain, target + step) - forward(chain, target - step)) / (2 * step)


@dataclass(frozen=True, eq=False)
class View:
    """The target divided by a formula, after a chain.

    Parameters
    ----------
    chain : Chain
    divisor : Nodes, optional
        None for 1.
    divisor_values : ndarray of shape (n_rows,), optional
    """

    chain: Chain
    divisor: Nodes | None = None
    divisor_values: Floats | None = None

    def of(self, target: Floats) -> Floats:
        """Values of the view, shape (n_rows,)."""
        return forward(self.chain, target if self.divisor_values is None else target / self.divisor_values)

    def target(self, values: Floats) -> Floats:
        """The target whose view has these values, shape (..., n_rows)."""
        divided = inverse(self.chain, values)
        with np.errstate(all="ignore"):
            return divided if self.divisor_values is None else self.divisor_values * divided


def values_of(views: Sequence[View], target: Floats) -> Floats:
    """Values of views, shape (n_views, n_rows)."""
    return np.array([view.of(target) for view in views]).reshape(len(views), len(target))
