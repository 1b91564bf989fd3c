"""The composite primitives, written in the language itself, and the table of all primitives."""

from __future__ import annotations

import copyreg
from typing import Any

from shine.lang.forms.functions import with_definitions
from shine.lang.forms.primitives import BASIC
from shine.lang.forms.tree import Primitive

_DEFINITIONS = """
def square(x):
    return x * x

def cube(x):
    return x * x * x

def inv(x):
    return 1 / x

def sigmoid(x):
    return 1 / (1 + exp(-x))

def relu(x):
    return max(x, 0)

def hypot(a, b):
    # Scaled by the larger leg, so that the squares neither overflow nor vanish.
    large = max(abs(a), abs(b))
    small = min(abs(a), abs(b))
    ratio = small / large
    length = large * sqrt(1 + ratio * ratio)
    return large if small == 0 or large - large != 0 else length

def log1p(x):
    # Kahan's correction: the rounding error of 1 + x cancels in the quotient.
    u = 1 + x
    corrected = log(u) * (x / (u - 1))
    return x if u == 1 else log(u) if u == x else corrected

def expm1(x):
    # Kahan's correction again: (u - 1) / log(u) is smooth where u rounds.
    u = exp(x)
    corrected = (u - 1) * (x / log(u))
    return x if u == 1 else u - 1 if u - 1 == u or u - 1 == -1 else corrected

def log2(x):
    return log(x) / 0.6931471805599453

def log10(x):
    return log(x) / 2.302585092994046

def cbrt(x):
    # 1/3 is rounded; one Newton step corrects the error. Small numbers are scaled so that the square does not vanish.
    scaled = x * 1152921504606846976 if abs(x) < 1e-30 else x
    root = sign(x) * abs(scaled) ** 0.3333333333333333
    better = root - (root - scaled / (root * root)) / 3
    result = better / 1048576 if abs(x) < 1e-30 else better
    return x if x == 0 or x - x != 0 else result

def aq(a, b):
    # The analytic quotient, a division without a pole (Ni, Drieberg, Rockett 2013).
    return a / sqrt(1 + b * b)

def protected_div(a, b):
    return a / b if abs(b) > 0.001 else 1

def protected_log(x):
    return log(abs(x)) if abs(x) > 0.001 else 0

def protected_sqrt(x):
    return sqrt(abs(x))
"""


STANDARD: dict[str, Primitive] = with_definitions(BASIC, _DEFINITIONS)
"""Every primitive of Shine by name: the basic ones and the composites."""


def _own(name: str) -> Primitive:
    """One of Shine's primitives, unpickled."""
    return STANDARD[name]


def _reduced(primitive: Primitive) -> str | tuple[Any, ...]:
    """The pickled form of a primitive: the name if it is one of Shine's own, otherwise its attributes."""
    if STANDARD.get(primitive.name) is primitive:
        return _own, (primitive.name,)
    # Not as arguments of the class: a definition's table of functions may contain the primitive itself.
    return primitive.__reduce_ex__(2)


# Shine's own primitives are recognized by identity. Copies and other processes must have the very same objects.
copyreg.pickle(Primitive, _reduced)
