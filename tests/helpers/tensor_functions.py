"""Runs what a function adds to a builder."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from shine.tensor.form.builder import FunctionBuilder
from shine.tensor.form.interpreter import interpret
from shine.tensor.form.module import Module
from shine.tensor.form.types import type_of
from shine.tensor.form.verifier import verify


def module_with(write: Callable[..., Any], *arrays: Any) -> Module:
    """A module whose function `@f` has a parameter for each array, and what is written with them as its results."""
    b = FunctionBuilder("f")
    found = write(b, *(b.parameter(f"x{i}", type_of(np.asarray(array))) for i, array in enumerate(arrays)))
    return verify(Module("m", {"f": b.done(*(found if isinstance(found, tuple) else (found,)))}))


def evaluated(write: Callable[..., Any], *arrays: Any) -> Any:
    """The result, or a tuple of several, of what is written on arrays, by the reference interpreter."""
    results = interpret(module_with(write, *arrays), "f", arrays)
    return results if len(results) > 1 else results[0]
