"""Views of a target: what is left to explain once the outermost functions of a formula are undone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from shine import arrays
from shine.arrays import exp, log
from shine.gp.seeding.writing import Nodes, Unwritable, Writer, constant
from shine.lang.library import STANDARD
from shine.typing import Floats


@dataclass(frozen=True)
class Step:
    """One function undone: ``t -> forward(t)``, and what brings ``t`` back, as numbers and as a formula.

    Parameters
    ----------
    name : str
    forward, inverse : callable
        Array functions; non-finite where there is no value.
    write : callable
        The formula of the inverse of a formula.
    homogeneous : bool
        Whether a factor on one side is a factor on the other, so that linear scaling covers it.
    """

    name: str
    forward: Callable[[Floats], Floats]
    inverse: Callable[[Floats], Floats]
    write: Callable[[Writer, Nodes], Nodes]
    homogeneous: bool = False


Chain = tuple[Step, ...]
"""Steps applied one after the other, the first to the target."""


def power(exponent: float, sign: float = 1.0) -> Step:
    """Undo a power; `sign` is that of the target, which an even power loses."""
    undone = 1 / exponent

    def write(writer: Writer, nodes: Nodes) -> Nodes:
        raised = writer.power(nodes, undone)
        return raised if sign > 0 else writer.negate(raised)

    if exponent == -1:
        return Step("power", lambda t: 1 / t, lambda t: 1 / t, lambda w, n: w.power(n, -1.0), True)
    return Step(
        "power", lambda t: arrays.power(sign * t, exponent), lambda t: sign * arrays.power(t, undone), write, True
    )


def shift(by: float) -> Step:
    """Undo a constant added."""
    return Step("shift", lambda t: t + by, lambda t: t - by, lambda w, n: w.add(n, constant(-by)))


def exponential(sign: float) -> Step:
    """Undo the exponential function of a target of one sign."""

    def write(writer: Writer, nodes: Nodes) -> Nodes:
        raised = writer.call("exp", nodes)
        return raised if sign > 0 else writer.negate(raised)

    return Step("exp", lambda t: log(sign * t), lambda t: sign * exp(t), write)


def function(name: str, inverse: Callable[[Floats], Floats] | str) -> Step:
    """Undo a function of one argument, given what undoes it."""

    def undo(values: Floats) -> Floats:
        return arrays.apply(STANDARD[inverse], values) if isinstance(inverse, str) else inverse(values)

    return Step(name, undo, lambda t: arrays.apply(STANDARD[name], t), lambda w, n: w.call(name, n))


def _area_tangent(values: Floats) -> Floats:
    return 0.5 * log((1 + values) / (1 - values))


def _area_sine(values: Floats) -> Floats:
    size = np.abs(values)
    return np.copysign(log(size + np.sqrt(size * size + 1)), values)


FUNCTIONS = (
    function("log", "exp"),
    function("sin", "asin"),
    function("cos", "acos"),
    function("tan", "atan"),
    function("asin", "sin"),
    function("acos", "cos"),
    function("atan", "tan"),
    function("tanh", _area_tangent),
    function("sinh", _area_sine),
)
"""Functions whose values can be undone, at least on one branch."""


def chains(target: Floats, writer: Writer) -> list[Chain]:
    """The chains of at most three steps that the target goes through and comes back from, and that can be written."""
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


def shifted(target: Floats, writer: Writer) -> list[Chain]:
    """Chains that end with a constant added; products are looked for behind them, which no other chain shows."""
    sign = -1.0 if (target < 0).all() else 1.0
    firsts: list[Chain] = [(), (power(-1.0),), (power(2.0, sign),), (power(-2.0, sign),), (exponential(sign),)]
    found = [(*first, shift(by)) for first in firsts for by in (1.0, -1.0)]
    found += [(), (exponential(sign),), *((step,) for step in FUNCTIONS)]
    return [chain for chain in found if usable(chain, target, writer)]


def usable(chain: Chain, target: Floats, writer: Writer) -> bool:
    """Whether a target goes through a chain and comes back, not constant, and the way back can be written."""
    try:
        write(chain, writer, ((1, 0.0),))
    except Unwritable:
        return False
    with np.errstate(all="ignore"):
        seen = forward(chain, target)
        back = inverse(chain, seen)
    scale = np.abs(target).max()
    if not np.isfinite(seen).all() or not (np.abs(back - target) <= 1e-9 * scale).all():
        return False
    return bool(np.ptp(seen) > 1e-9 * np.abs(seen).max())


def forward(chain: Chain, target: Floats) -> Floats:
    """The target seen through a chain; not finite where it has no value."""
    with np.errstate(all="ignore"):
        return reduce(lambda t, step: step.forward(t), chain, target)


def through(chains: Sequence[Chain], target: Floats) -> Floats:
    """The target seen through each of some chains, shape (n_chains, n_rows)."""
    return np.array([forward(chain, target) for chain in chains]).reshape(len(chains), len(target))


def inverse(chain: Chain, view: Floats) -> Floats:
    """The target that a view belongs to; not finite where there is none."""
    with np.errstate(all="ignore"):
        return reduce(lambda t, step: step.inverse(t), reversed(chain), view)


def write(chain: Chain, writer: Writer, nodes: Nodes) -> Nodes:
    """The formula for the target, from one for the view."""
    return reduce(lambda n, step: step.write(writer, n), reversed(chain), nodes)


def homogeneous(chain: Sequence[Step]) -> bool:
    """Whether a factor of the view is a factor of the target."""
    return all(step.homogeneous for step in chain)


def slope(chain: Chain, target: Floats) -> Floats:
    """Derivative of the view by the target, from a central difference."""
    step = 1e-6 * (np.std(target) + np.abs(target))
    return (forward(chain, target + step) - forward(chain, target - step)) / (2 * step)
