"""What is known of the arguments of a template's functions, and how that shortens their formulas."""

from __future__ import annotations

import numpy as np
import pytest

import shine

RNG = np.random.default_rng(0)
A, B = RNG.uniform(1, 4, (2, 120))
C = RNG.uniform(-3, 3, 120)
NAMES = ["a", "b", "c"]
X = np.column_stack([A, B, C])


def function(text, y, table=X, **options):
    """The function `f` of a template, found from a guess that has its form already."""
    found = shine.evolve(
        table, y, features=NAMES, template=text, primitives=("mul", "sqrt", "square", "add"), noise="absolute",
        generations=0, seconds=None, threads=1, population=20, seeding=0.0, **options,
    )  # fmt: skip
    return str(found.best.functions["f"])


GUESS = [{"f": "sqrt(y*square(x))"}]
F = {"f": {"arguments": ["x", "y"]}}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "y", "expected"),
    [
        ("f(a, b)", A * np.sqrt(B), "x*sqrt(y)"),
        ("f(a, b) + c*f(b, a)", A * np.sqrt(B) + C * B * np.sqrt(A), "x*sqrt(y)"),
        ("f(a + b, b)", (A + B) * np.sqrt(B), "x*sqrt(y)"),
        ("f(c, b)", np.abs(C) * np.sqrt(B), "sqrt(x**2*y)"),
        ("f(a, b) + f(c, b)", (A + np.abs(C)) * np.sqrt(B), "sqrt(x**2*y)"),
        ("f(a*c, b)", np.abs(A * C) * np.sqrt(B), "sqrt(x**2*y)"),
        ("f(a*p, b)", 1.5 * A * np.sqrt(B), "sqrt(x**2*y)"),
    ],
)
def test_roots_of_squares_vanish_only_where_every_call_has_one_sign(text, y, expected):
    assert function(shine.template(text, unknown=F), y, guesses=GUESS).replace("y*x**2", "x**2*y") == expected
