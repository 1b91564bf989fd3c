"""Losses of users as text, and what they mean in plain Python, row by row."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from shine.evaluate.losses.form import Loss, RowLoss
from shine.lang.forms.functions import with_definitions
from shine.lang.forms.library import STANDARD

Array = NDArray[np.float64]

TEXTS = {
    "quantile": "def quantile(p, y):\n    r = y - p\n    return 0.8*r if r > 0 else -0.2*r",
    "huber": "def huber(p, y):\n    r = abs(y - p)\n    return r*r if r < 1.5 else 3.0*r - 2.25",
    "student": "def student(p, y):\n    return 5*log(1 + (p - y)*(p - y)/4)",
    "log_cosh": "def log_cosh(p, y):\n    a = abs(p - y)\n    return a + log(1 + exp(-2*a)) - 0.6931471805599453",
    "fractional": "def fractional(p, y):\n    return abs(p - y)**1.5",
    "welsch": "def welsch(p, y):\n    return 1 - exp(-(p - y)*(p - y))",
    "interval": "def interval(p, y, high):\n    return (y - p)**2 if p < y else (p - high)**2 if p > high else 0",
    "gaussian": "def gaussian(p, y, sigma):\n    r = (p - y)/sigma\n    return r*r",
    "weighing": "def weighing(p, y, weight, high):\n    return weight*(p - y)*(p - y)/(1 + high*high)",
}
"""Losses with the least error 0, also of several columns: `high`, `sigma` and the weights."""


def own_loss(text: str, least: float | None = 0.0, **facts: float) -> Loss:
    """The loss that a definition means; arguments after the target are columns."""
    node = ast.parse(text).body[0]
    assert isinstance(node, ast.FunctionDef)
    columns = tuple(argument.arg for argument in node.args.args[2:])
    function = with_definitions(STANDARD, text)[node.name]
    return Loss(node.name, RowLoss(node.name, function, columns, least=least, **facts))


def in_python(text: str) -> Callable[..., float]:
    """The definition as a function of Python's floats; NaN where Python raises an error."""
    space = {name: getattr(math, name) for name in ("exp", "log", "sqrt", "sin", "tanh")}
    exec(text, space)
    function = space[ast.parse(text).body[0].name]

    def value(*arguments: float) -> float:
        try:
            found = function(*arguments)
        except OverflowError:
            return math.inf
        except (ValueError, ZeroDivisionError):
            return math.nan
        return math.nan if isinstance(found, complex) else float(found)

    return value


def errors_in_python(text: str, predictions: Array, *columns: Array) -> Array:
    """The error of each row, NaN where the prediction is not finite."""
    function = in_python(text)
    rows = zip(predictions.tolist(), *(column.tolist() for column in columns), strict=True)
    return np.array([function(*row) if math.isfinite(row[0]) else math.nan for row in rows])


def random_text(rng: np.random.Generator, depth: int = 4) -> str:
    """The definition of a random function ``(p, y, a, b)`` that is a value of most rows."""
    steps, names = [], ["p", "y", "a", "b", "p - y", "y - p"]
    for number in range(int(rng.integers(1, depth))):
        steps.append(f"    v{number} = {_expression(rng, names, 2)}")
        names.append(f"v{number}")
    return "\n".join(["def own(p, y, a, b):", *steps, f"    return {_expression(rng, names, 2)}"])


def _expression(rng: np.random.Generator, names: list[str], depth: int) -> str:
    if depth == 0:
        return f"({rng.choice(names)})" if rng.random() < 0.8 else f"{rng.uniform(0.1, 3):.3g}"
    parts = [_expression(rng, names, depth - 1) for _ in range(4)]
    forms = (
        "({0} + {1})", "({0} - {1})", "{0}*{1}", "{0}/(1 + {1}*{1})", "abs({0})", "exp(-abs({0}))", "log(1 + abs({0}))",
        "abs({0})**0.7", "sqrt(1 + {0}*{0})", "({0} if {1} > {2} else {3})", "tanh({0})", "max({0}, {1})",
        "min({0}, {1})", "sin({0})", "({0})**2",
    )  # fmt: skip
    return str(rng.choice(forms)).format(*parts)
