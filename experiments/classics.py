"""The classic benchmark formulas of genetic programming: how many does an engine recover?

`python experiments/classics.py --budget 10 --problems Nguyen,Keijzer-4` runs an engine on formulas of Nguyen (Uy et al.
2011), Keijzer (2003), Korns (2011), Vladislavleva (2009) and Pagie (1997) as McDermott et al. list them ("Genetic
Programming Needs Better Benchmarks", GECCO 2012), Nguyen-11 and -12 as Petersen et al. (2021) added them, and of
Livermore (Mundhenk et al. 2021). Rows are drawn as published, except those where a formula is not defined (Korns-5 has
the logarithm of a number from -50 to 50), which are drawn again or left out of a grid. Where nothing is published
about held-out rows, 1000 are drawn uniformly from the range of the training rows. quality/recovery.py defines when a
formula counts as recovered. Run again, the command goes on where it was interrupted.
"""

from __future__ import annotations

from collections.abc import Callable

from quality.command import arguments, main
from quality.problems import FormulaProblem, Grid, Uniform
from quality.summary import recovery_table

Where = Callable[[int], Uniform | Grid]
"""Makes the sampler of rows for a number of features."""

HELD_OUT = 1000
INEXPRESSIBLE = ("Keijzer-6",)
"""Not expressible with the engines' primitives: the feature is the number of terms of a sum."""


def U(low: float, high: float, rows: int) -> Where:
    """Uniformly drawn rows, the same range for each feature; named as in the literature."""
    return lambda count: Uniform(((low, high),) * count, rows)


def E(low: float, high: float, step: float) -> Where:
    """A grid, the same values for each feature; named as in the literature."""
    return lambda count: Grid(((low, high, step),) * count)


def uniform(*bounds: tuple[float, float], rows: int) -> Where:
    """Uniformly drawn rows, with a range for each feature."""
    return lambda count: Uniform(bounds, rows)


def grid(*axes: tuple[float, float, float]) -> Where:
    """A grid, with values for each feature."""
    return lambda count: Grid(axes)


def formula(name: str, features: str, text: str, train: Where, test: Where | None = None) -> FormulaProblem:
    """One row of the table; features are letters."""
    learn = train(len(features))
    held_out = Uniform(learn.bounds, HELD_OUT) if test is None else test(len(features))
    return FormulaProblem(name, tuple(features), text, learn, held_out, name not in INEXPRESSIBLE)


def powers(highest: int) -> str:
    """x**highest + ... + x**2 + x."""
    return " + ".join([f"x**{power}" for power in range(highest, 1, -1)] + ["x"])


KEIJZER_4 = "x**3*exp(-x)*cos(x)*sin(x)*(sin(x)**2*cos(x) - 1)"
KORNS, SPREAD = "xyzvw", U(-50, 50, 10_000)
SURFACE = U(-3, 3, 20), E(-3, 3, 0.01)

PROBLEMS = (
    formula("Nguyen-1", "x", powers(3), U(-1, 1, 20)),
    formula("Nguyen-2", "x", powers(4), U(-1, 1, 20)),
    formula("Nguyen-3", "x", powers(5), U(-1, 1, 20)),
    formula("Nguyen-4", "x", powers(6), U(-1, 1, 20)),
    formula("Nguyen-5", "x", "sin(x**2)*cos(x) - 1", U(-1, 1, 20)),
    formula("Nguyen-6", "x", "sin(x) + sin(x + x**2)", U(-1, 1, 20)),
    formula("Nguyen-7", "x", "log(x + 1) + log(x**2 + 1)", U(0, 2, 20)),
    formula("Nguyen-8", "x", "sqrt(x)", U(0, 4, 20)),
    formula("Nguyen-9", "xy", "sin(x) + sin(y**2)", U(0, 1, 20)),
    formula("Nguyen-10", "xy", "2*sin(x)*cos(y)", U(0, 1, 20)),
    formula("Nguyen-11", "xy", "x**y", U(0, 1, 20)),
    formula("Nguyen-12", "xy", "x**4 - x**3 + y**2/2 - y", U(0, 1, 20)),
    formula("Keijzer-1", "x", "0.3*x*sin(2*pi*x)", E(-1, 1, 0.1), E(-1, 1, 0.001)),
    formula("Keijzer-2", "x", "0.3*x*sin(2*pi*x)", E(-2, 2, 0.1), E(-2, 2, 0.001)),
    formula("Keijzer-3", "x", "0.3*x*sin(2*pi*x)", E(-3, 3, 0.1), E(-3, 3, 0.001)),
    formula("Keijzer-4", "x", KEIJZER_4, E(0, 10, 0.05), E(0.05, 10.05, 0.05)),
    formula(
        "Keijzer-5",
        "xyz",
        "30*x*z/((x - 10)*y**2)",
        uniform((-1, 1), (1, 2), (-1, 1), rows=1000),
        uniform((-1, 1), (1, 2), (-1, 1), rows=10_000),
    ),
    formula("Keijzer-6", "x", "harmonic(x)", E(1, 50, 1), E(1, 120, 1)),
    formula("Keijzer-7", "x", "log(x)", E(1, 100, 1), E(1, 100, 0.1)),
    formula("Keijzer-8", "x", "sqrt(x)", E(0, 100, 1), E(0, 100, 0.1)),
    formula("Keijzer-9", "x", "log(x + sqrt(x**2 + 1))", E(0, 100, 1), E(0, 100, 0.1)),
    formula("Keijzer-10", "xy", "x**y", U(0, 1, 100), E(0, 1, 0.01)),
    formula("Keijzer-11", "xy", "x*y + sin((x - 1)*(y - 1))", *SURFACE),
    formula("Keijzer-12", "xy", "x**4 - x**3 + y**2/2 - y", *SURFACE),
    formula("Keijzer-13", "xy", "6*sin(x)*cos(y)", *SURFACE),
    formula("Keijzer-14", "xy", "8/(2 + x**2 + y**2)", *SURFACE),
    formula("Keijzer-15", "xy", "x**3/5 + y**3/2 - y - x", *SURFACE),
    formula("Korns-1", KORNS, "1.57 + 24.3*v", SPREAD, SPREAD),
    formula("Korns-2", KORNS, "0.23 + 14.2*(v + y)/(3*w)", SPREAD, SPREAD),
    formula("Korns-3", KORNS, "-5.41 + 4.9*(v - x + y/w)/(3*w)", SPREAD, SPREAD),
    formula("Korns-4", KORNS, "-2.3 + 0.13*sin(z)", SPREAD, SPREAD),
    formula("Korns-5", KORNS, "3 + 2.13*log(w)", SPREAD, SPREAD),
    formula("Korns-6", KORNS, "1.3 + 0.13*sqrt(x)", SPREAD, SPREAD),
    formula("Korns-7", KORNS, "213.80940889*(1 - exp(-0.54723748542*x))", SPREAD, SPREAD),
    formula("Korns-8", KORNS, "6.87 + 11*sqrt(7.23*x*v*w)", SPREAD, SPREAD),
    formula("Korns-9", KORNS, "sqrt(x)/log(y)*exp(z)/v**2", SPREAD, SPREAD),
    formula("Korns-10", KORNS, "0.81 + 24.3*(2*y + 3*z**2)/(4*v**3 + 5*w**4)", SPREAD, SPREAD),
    formula("Korns-11", KORNS, "6.87 + 11*cos(7.23*x**3)", SPREAD, SPREAD),
    formula("Korns-12", KORNS, "2 - 2.1*cos(9.8*x)*sin(1.3*w)", SPREAD, SPREAD),
    formula("Korns-13", KORNS, "32 - 3*tan(x)/tan(y)*tan(z)/tan(v)", SPREAD, SPREAD),
    formula("Korns-14", KORNS, "22 - 4.2*(cos(x) - tan(y))*tanh(z)/sin(v)", SPREAD, SPREAD),
    formula("Korns-15", KORNS, "12 - 6*tan(x)/exp(y)*(log(z) - tan(v))", SPREAD, SPREAD),
    formula("Vladislavleva-1", "xy", "exp(-(x - 1)**2)/(1.2 + (y - 2.5)**2)", U(0.3, 4, 100), E(-0.2, 4.2, 0.1)),
    formula(
        "Vladislavleva-2",
        "x",
        "exp(-x)*x**3*cos(x)*sin(x)*(cos(x)*sin(x)**2 - 1)",
        E(0.05, 10, 0.1),
        E(-0.5, 10.5, 0.05),
    ),
    formula(
        "Vladislavleva-3",
        "xy",
        "exp(-x)*x**3*cos(x)*sin(x)*(cos(x)*sin(x)**2 - 1)*(y - 5)",
        grid((0.05, 10, 0.1), (0.05, 10.05, 2)),
        grid((-0.5, 10.5, 0.05), (-0.5, 10.5, 0.5)),
    ),
    formula(
        "Vladislavleva-4",
        "abcde",
        "10/(5 + (a - 3)**2 + (b - 3)**2 + (c - 3)**2 + (d - 3)**2 + (e - 3)**2)",
        U(0.05, 6.05, 1024),
        U(-0.25, 6.35, 5000),
    ),
    formula(
        "Vladislavleva-5",
        "xyz",
        "30*(x - 1)*(z - 1)/(y**2*(x - 10))",
        uniform((0.05, 2), (1, 2), (0.05, 2), rows=300),
        grid((-0.05, 2.1, 0.15), (0.95, 2.05, 0.1), (-0.05, 2.1, 0.15)),
    ),
    formula("Vladislavleva-6", "xy", "6*sin(x)*cos(y)", U(0.1, 5.9, 30), E(-0.05, 6.05, 0.02)),
    formula(
        "Vladislavleva-7",
        "xy",
        "(x - 3)*(y - 3) + 2*sin((x - 4)*(y - 4))",
        U(0.05, 6.05, 300),
        U(-0.25, 6.35, 1000),
    ),
    formula(
        "Vladislavleva-8",
        "xy",
        "((x - 3)**4 + (y - 3)**3 - (y - 3))/((y - 2)**4 + 10)",
        U(0.05, 6.05, 50),
        E(-0.25, 6.35, 0.2),
    ),
    formula("Pagie-1", "xy", "1/(1 + x**-4) + 1/(1 + y**-4)", E(-5, 5, 0.4)),
    formula("Livermore-1", "x", "1/3 + x + sin(x**2)", U(-10, 10, 1000)),
    formula("Livermore-2", "x", "sin(x**2)*cos(x) - 2", U(-1, 1, 20)),
    formula("Livermore-3", "x", "sin(x**3)*cos(x**2) - 1", U(-1, 1, 20)),
    formula("Livermore-4", "x", "log(x + 1) + log(x**2 + 1) + log(x)", U(0, 2, 20)),
    formula("Livermore-5", "xy", "x**4 - x**3 + x**2 - y", U(0, 1, 20)),
    formula("Livermore-6", "x", "4*x**4 + 3*x**3 + 2*x**2 + x", U(-1, 1, 20)),
    formula("Livermore-7", "x", "sinh(x)", U(-1, 1, 20)),
    formula("Livermore-8", "x", "cosh(x)", U(-1, 1, 20)),
    formula("Livermore-9", "x", powers(9), U(-1, 1, 20)),
    formula("Livermore-10", "xy", "6*sin(x)*cos(y)", U(0, 1, 20)),
    formula("Livermore-11", "xy", "x**2*y**2/(x + y)", U(-1, 1, 50)),
    formula("Livermore-12", "xy", "x**5/y**3", U(-1, 1, 50)),
    formula("Livermore-13", "x", "x**(1/3)", U(0, 4, 20)),
    formula("Livermore-14", "x", "x**3 + x**2 + x + sin(x) + sin(x**2)", U(-1, 1, 20)),
    formula("Livermore-15", "x", "x**(1/5)", U(0, 4, 20)),
    formula("Livermore-16", "x", "x**(2/5)", U(0, 4, 20)),
    formula("Livermore-17", "xy", "4*sin(x)*cos(y)", U(0, 1, 20)),
    formula("Livermore-18", "x", "sin(x**2)*cos(x) - 5", U(-1, 1, 20)),
    formula("Livermore-19", "x", "x**5 + x**4 + x**2 + x", U(-1, 1, 20)),
    formula("Livermore-20", "x", "exp(-x**2)", U(-1, 1, 20)),
    formula("Livermore-21", "x", powers(8), U(-1, 1, 20)),
    formula("Livermore-22", "x", "exp(-0.5*x**2)", U(-1, 1, 20)),
)
"""Formulas, and from where their training and held-out rows are drawn."""


if __name__ == "__main__":
    main(arguments(__doc__, "classics", rows="as published").parse_args(), lambda: PROBLEMS, recovery_table)
