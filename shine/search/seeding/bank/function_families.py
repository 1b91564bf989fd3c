"""Functions of one argument with unknown constants inside: grids of the constants, values, and formulas.

Every grid follows from the range of the argument, so the units do not matter.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from shine.base.typing import Floats
from shine.compiler.arrays import exp, log, power
from shine.search.seeding.bank.formula_writer import Nodes, Unwritable, Writer, constant

Constants = tuple[float, ...]
"""The constants of one function."""

DECAYS = 0.1 * np.array([1.2**i for i in range(38)])
"""Exponents of an exponential over the range of its argument, from a nearly straight line to a step."""

DISTANCES = np.array([0.001 * 1.3**i for i in range(42)])
"""Distances of a pole or a zero from the range of the argument, as shares of the range, or of the least argument."""

EXPONENTS = np.array([sign * 0.1 * i for i in range(1, 61) for sign in (1, -1)])
"""Powers of an argument."""

CENTRES = np.array([i / 24 for i in range(-12, 37)])
"""Places of a centre, as shares of the range from its lower end."""

FEW_CENTRES = np.array([i / 16 for i in range(-6, 23)])
"""The same, for functions with a width besides."""

WIDTHS = np.array([1.25**i for i in range(22)])
"""Inverse widths of a bell or a step, times the range of the argument."""


@dataclass(frozen=True)
class Family:
    """One function with unknown constants.

    Parameters
    ----------
    name : str
    size : int
        Nodes that it takes besides its argument.
    grid : callable
        Constants worth trying for an argument of shape (n_rows,), shape (n, n_constants); empty if it has no values.
    values : callable
        Values for each choice of constants, shape (n, n_rows), up to a factor.
    write : callable
        The formula for a writer, an argument and constants, up to a factor.
    """

    name: str
    size: int
    grid: Callable[[Floats], Floats]
    values: Callable[[Floats, Floats], Floats]
    write: Callable[[Writer, Nodes, Constants], Nodes]


def rate(argument: Floats) -> float:
    """The constant that an argument is multiplied by to have the range 1."""
    return 1 / float(np.ptp(argument))


def _rates(argument: Floats) -> Floats:
    """Rates of either sign."""
    own = DECAYS * rate(argument)
    return np.concatenate([own, -own])[:, None]


def _exponentials(argument: Floats, constants: Floats) -> Floats:
    """exp(c * argument), the largest of each row scaled to 1."""
    product = constants[:, :1] * argument
    return exp(product - product.max(axis=1)[:, None])


def _beyond(argument: Floats) -> Floats:
    """Shifts that move all arguments to one side of zero, close to it or far."""
    low, high, width = float(argument.min()), float(argument.max()), float(np.ptp(argument))
    near = min(abs(low), abs(high))
    distances = [DISTANCES * width]
    if low * high > 0 and near < width:
        distances.append(DISTANCES[DISTANCES < 1] * near)
    apart = np.concatenate(distances)
    return np.concatenate([-low + apart, -high - apart])[:, None]


def _powers(argument: Floats) -> Floats:
    """Powers of a positive argument."""
    return EXPONENTS[:, None] if (argument > 0).all() else np.zeros((0, 1))


def _raised(argument: Floats, constants: Floats) -> Floats:
    """argument^c, the largest of each row scaled to 1."""
    product = constants[:, :1] * log(argument)
    return exp(product - product.max(axis=1)[:, None])


def _centres(argument: Floats) -> Floats:
    """Shifts that move a place in the range, or near it, to zero."""
    return -(argument.min() + CENTRES * np.ptp(argument))[:, None]


def _centres_and_widths(argument: Floats) -> Floats:
    """Rates and shifts of functions with a centre in the range."""
    rates, centres = WIDTHS * rate(argument), -(argument.min() + FEW_CENTRES * np.ptp(argument))
    return np.column_stack([np.repeat(rates, len(centres)), np.tile(centres, len(rates))])


def _powers_and_scales(argument: Floats) -> Floats:
    """Powers of a positive argument, and scales within its range."""
    if not (argument > 0).all():
        return np.zeros((0, 2))
    logs = log(argument)
    exponents, places = EXPONENTS[EXPONENTS > 0][1:40:2], logs.min() + FEW_CENTRES * np.ptp(logs)
    return np.column_stack([np.repeat(exponents, len(places)), np.tile(places, len(exponents))])


def _shifted(argument: Floats, constants: Floats) -> Floats:
    """|argument + c|"""
    return np.abs(argument + constants[:, :1])


def _write_shifted(writer: Writer, nodes: Nodes, shift: float) -> Nodes:
    return writer.add(nodes, constant(shift))


def _write_scaled(writer: Writer, nodes: Nodes, factor: float) -> Nodes:
    return writer.multiply(constant(factor), nodes)


def _one_sided(name: str, function: Callable[[Floats], Floats], side: int) -> Family:
    """A function that needs a positive argument, of argument + c (side 1) or of -argument - c (side -1)."""

    def grid(argument: Floats) -> Floats:
        shifts = _beyond(argument)
        positive = argument.min() + shifts[:, 0] > 0
        return shifts[positive] if side > 0 else shifts[~positive]

    def write(writer: Writer, nodes: Nodes, constants: Constants) -> Nodes:
        # argument + c, or -(argument + c): the one that is positive
        c = constants[0]
        return writer.call(name, _write_shifted(writer, nodes, c) if side > 0 else writer.subtract(constant(-c), nodes))

    return Family(name, 3, grid, lambda z, c: function(_shifted(z, c)), write)


def _bell(argument: Floats, constants: Floats) -> Floats:
    scaled = constants[:, :1] * (argument + constants[:, 1:])
    return exp(-scaled * scaled)


def _write_bell(writer: Writer, nodes: Nodes, constants: Constants) -> Nodes:
    square = writer.power(_write_shifted(writer, nodes, constants[1]), 2.0)
    return writer.call("exp", _write_scaled(writer, square, -constants[0] * constants[0]))


def _step(argument: Floats, constants: Floats) -> Floats:
    return 1 / (1 + exp(-constants[:, :1] * (argument + constants[:, 1:])))


def _write_step(writer: Writer, nodes: Nodes, constants: Constants) -> Nodes:
    inner = _write_scaled(writer, _write_shifted(writer, nodes, constants[1]), -constants[0])
    return writer.divide(constant(1.0), writer.add(constant(1.0), writer.call("exp", inner)))


def _saturation(argument: Floats, constants: Floats) -> Floats:
    return 1 / (1 + exp(constants[:, :1] * (log(argument) - constants[:, 1:])))


def _write_saturation(writer: Writer, nodes: Nodes, constants: Constants) -> Nodes:
    scale = float(exp(np.array(constants[0] * constants[1])))
    if not 0 < scale < np.inf:
        raise Unwritable
    return writer.divide(constant(1.0), writer.add(constant(scale), writer.power(nodes, constants[0])))


def _stretched(argument: Floats, constants: Floats) -> Floats:
    return exp(-exp(constants[:, :1] * (log(argument) - constants[:, 1:])))


def _write_stretched(writer: Writer, nodes: Nodes, constants: Constants) -> Nodes:
    scale = float(exp(np.array(-constants[0] * constants[1])))
    if not 0 < scale < np.inf:
        raise Unwritable
    return writer.call("exp", _write_scaled(writer, writer.power(nodes, constants[0]), -scale))


LARGEST_EXPONENT = 300.0
"""Exponents are cut here: squares of what is larger overflow."""

EXPONENTIAL = Family("exponential", 3, _rates, _exponentials, lambda w, n, c: w.call("exp", _write_scaled(w, n, c[0])))


def _exponential_plus(sign: float) -> Family:
    """exp(c * argument) plus or minus 1."""

    def values(argument: Floats, constants: Floats) -> Floats:
        return np.abs(exp(np.minimum(constants[:, :1] * argument, LARGEST_EXPONENT)) + sign)

    def write(writer: Writer, nodes: Nodes, constants: Constants) -> Nodes:
        return writer.add(writer.call("exp", _write_scaled(writer, nodes, constants[0])), constant(sign))

    return Family(f"exponential {sign:+.0f}", 5, _rates, values, write)


def _hyperbolic(sign: float) -> Family:
    """exp(c * argument) plus or minus exp(-c * argument), the largest of each row scaled to about 1."""

    def values(argument: Floats, constants: Floats) -> Floats:
        product = constants[:, :1] * argument
        largest = np.abs(product).max(axis=1)[:, None]
        return exp(product - largest) + sign * exp(-product - largest)

    def write(writer: Writer, nodes: Nodes, constants: Constants) -> Nodes:
        rising, falling = (writer.call("exp", _write_scaled(writer, nodes, c)) for c in (constants[0], -constants[0]))
        return writer.add(rising, falling) if sign > 0 else writer.subtract(rising, falling)

    return Family(f"hyperbolic {sign:+.0f}", 8, _rates_from_zero, values, write)


def _rates_from_zero(argument: Floats) -> Floats:
    """Rates of functions in which both signs of a constant give the same: it counts from zero, not over the range."""
    return (DECAYS / float(np.abs(argument).max()))[:, None]


def _logistic(argument: Floats, constants: Floats) -> Floats:
    return 1 / (1 + exp(np.minimum(constants[:, :1] * argument, LARGEST_EXPONENT)))


def _write_logistic(writer: Writer, nodes: Nodes, constants: Constants) -> Nodes:
    grown = writer.call("exp", _write_scaled(writer, nodes, constants[0]))
    return writer.divide(constant(1.0), writer.add(grown, constant(1.0)))


HYPERBOLIC_COSINE = _hyperbolic(1.0)

SHIFTED = Family("shifted", 2, _beyond, _shifted, lambda w, n, c: _write_shifted(w, n, c[0]))

FAMILIES = (
    EXPONENTIAL,
    Family("power", 4, _powers, _raised, lambda w, n, c: w.power(n, c[0])),
    Family(
        "inverse",
        4,
        _beyond,
        lambda z, c: 1 / (z + c),
        lambda w, n, c: w.divide(constant(1.0), _write_shifted(w, n, c[0])),
    ),
    Family(
        "square",
        3,
        _centres,
        lambda z, c: power(z + c, 2.0),
        lambda w, n, c: w.power(_write_shifted(w, n, c[0]), 2.0),
    ),
    _one_sided("log", log, 1),
    _one_sided("log", log, -1),
    _one_sided("sqrt", np.sqrt, 1),
    _one_sided("sqrt", np.sqrt, -1),
    HYPERBOLIC_COSINE,
    _hyperbolic(-1.0),
    # The hyperbolic tangent is a line of it.
    Family("logistic", 7, _rates_from_zero, _logistic, _write_logistic),
)
"""Functions with one constant, of which an affine function is the target or a view of it."""

WIDER_FAMILIES = (
    Family("bell", 7, _centres_and_widths, _bell, _write_bell),
    Family("step", 8, _centres_and_widths, _step, _write_step),
    Family("saturation", 8, _powers_and_scales, _saturation, _write_saturation),
    Family("stretched exponential", 7, _powers_and_scales, _stretched, _write_stretched),
)
"""Functions with two constants."""

FACTORS = (SHIFTED, _exponential_plus(-1.0), _exponential_plus(1.0), HYPERBOLIC_COSINE)
"""Functions with one constant, of which a power is a factor of the target."""
