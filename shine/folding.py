"""Folding of constants by compiled code, for whoever stands above the compiler."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache, partial

import numpy as np
from llvmlite import ir

from shine.codegen.loops import emit_scalar
from shine.lang.folding import EXACT, INEXACT, Array, Functions
from shine.lang.parse import parse
from shine.lang.primitives import ARITIES
from shine.llvm import Engine


@cache
def _function(name: str) -> Callable[..., float]:
    """A primitive of float64 numbers, compiled when it is first needed."""
    parameters = ("x", "y")[: ARITIES[name]]
    module = ir.Module(name=name)
    emit_scalar(module, parse(f"{name}({', '.join(parameters)})", parameters), "folded", "float64")
    function: Callable[..., float] = Engine(str(module), "O0").function(
        "folded", ctypes.c_double, *[ctypes.c_double] * len(parameters)
    )
    return function


def _value(name: str, *arguments: Array) -> Array:
    return np.array([_function(name)(*(float(argument[0]) for argument in arguments))])


COMPILED: Functions = {**EXACT, **{name: partial(_value, name) for name in INEXACT}}
"""Every basic primitive, with the bits that all compiled tiers have. Compiling one takes about 10 ms."""
