"""The names of built-in losses in text, with their numbers: ``quantile(0.9)``."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Mapping, Sequence

from shine.evaluate.fitness.losses import LOSSES
from shine.evaluate.losses.library import LIBRARY
from shine.lang.forms.names import similar, value_text

_CALL = re.compile(r"\s*([A-Za-z_]\w*)\s*(\(.*\))?\s*", re.DOTALL)

OTHER_NAMES = {
    "rmsle": "logarithmic", "msle": "logarithmic", "mean_squared_log_error": "logarithmic", "log": "logarithmic",
    "mean_squared_error": "mse", "squared_error": "mse", "mse_loss": "mse", "l2": "mse", "L2DistLoss": "mse",
    "rms": "rmse", "root_mean_squared_error": "rmse", "mean_absolute_error": "mae", "absolute_error": "mae",
    "absolute": "mae", "l1": "mae", "L1DistLoss": "mae", "smape": "relative", "mape": "relative",
    "mean_absolute_percentage_error": "relative", "pinball": "quantile", "QuantileLoss": "quantile",
    "quantile_loss": "quantile", "mean_pinball_loss": "quantile", "HuberLoss": "huber", "smooth_l1": "huber",
    "logcosh": "log_cosh", "LogCoshLoss": "log_cosh", "log_loss": "binomial", "logloss": "binomial",
    "logistic": "binomial", "cross_entropy": "binomial", "binary_crossentropy": "binomial", "bernoulli": "binomial",
    "LogitMarginLoss": "binomial", "PoissonLoss": "poisson", "mean_poisson_deviance": "poisson", "nll": "gaussian",
    "chi2": "gaussian", "normal": "gaussian", "mean_gamma_deviance": "gamma", "negbin": "negative_binomial",
    "nbinom": "negative_binomial", "student": "student_t", "t": "student_t", "studentt": "student_t",
    "cauchy": "student_t", "tobit": "censored", "L1HingeLoss": "hinge", "hinge_loss": "hinge",
}  # fmt: skip
"""Shine's names for the losses of other libraries."""


def call_of(text: str) -> tuple[str, tuple[float, ...]]:
    """The name of a loss and its numbers, all of them, in their order.

    Raises
    ------
    ValueError
        If there is no such loss, or a number is missing, unknown or outside its bounds.
    """
    found = _CALL.fullmatch(text)
    name = found[1] if found else text.strip()
    if name in LOSSES and found and not found[2]:
        return name, ()
    if found is None or name not in LIBRARY:
        near = OTHER_NAMES.get(name) or similar(name, [*LOSSES, *LIBRARY])
        hint = f"did you mean {near!r}? " if near else ""
        raise ValueError(
            f"unknown loss {value_text(text.strip())}; {hint}use one of {', '.join([*LOSSES, *LIBRARY])}, "
            "or a function, 'def name(prediction, target): ...'"
        )
    try:
        node = ast.parse(f"f{found[2] or '()'}", mode="eval").body
        assert isinstance(node, ast.Call)
        given = [ast.literal_eval(each) for each in node.args]
        named = {str(each.arg): ast.literal_eval(each.value) for each in node.keywords}
    except (SyntaxError, ValueError, AssertionError):
        raise ValueError(f"{value_text(text.strip())} is not a loss with numbers in brackets; {_usage(name)}") from None
    return name, numbers_of(name, given, named)


def numbers_of(name: str, given: Sequence[object], named: Mapping[str, object]) -> tuple[float, ...]:
    """The numbers of a built-in loss from those given by position and by name; see `call_of` for the errors."""
    numbers = LIBRARY[name].numbers
    known = list(numbers)
    if len(given) > len(known):
        raise ValueError(f"the loss {name} has {len(given)} number{'s' * (len(given) > 1)}; {_usage(name)}")
    values: dict[str, object] = dict(zip(known, given, strict=False))
    for word, value in named.items():
        if word not in numbers or word in values:
            problem = f"{word} twice" if word in values else f"no number {word}"
            raise ValueError(f"the loss {name} has {problem}; {_usage(name)}")
        values[word] = value
    found = []
    for word, bounds in numbers.items():
        value = values.get(word, bounds.default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not bounds.low < value < bounds.high:
            between = f"between {bounds.low:g} and {bounds.high:g}" if math.isfinite(bounds.high) else "above 0"
            raise ValueError(f"{word} of the loss {name} must be a number {between}, is {value_text(value)}")
        found.append(float(value))
    return tuple(found)


def call_text(name: str, numbers: Sequence[float]) -> str:
    """The name of a loss with its numbers, as `call_of` reads it."""
    short = (f"{number:g}" if float(f"{number:g}") == number else repr(number) for number in numbers)
    return f"{name}({', '.join(short)})" if numbers else name


def _usage(name: str) -> str:
    numbers = LIBRARY[name].numbers
    if not numbers:
        return f"write {name!r}, without numbers"
    example = call_text(name, [each.default for each in numbers.values()])
    return f"write {example!r}, with {' and '.join(numbers)}"
