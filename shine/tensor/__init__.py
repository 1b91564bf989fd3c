"""Tensor graphs: a typed form, its frontends, passes and gradients, and native code for it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shine.tensor.adjoint.declarations import gradient
    from shine.tensor.building import build, compile
    from shine.tensor.form.module import Module
    from shine.tensor.form.printing import text_of
    from shine.tensor.form.reading import module_of
    from shine.tensor.loading import load
    from shine.tensor.native.function import TensorFunction

__all__ = ["Module", "TensorFunction", "build", "compile", "gradient", "load", "module_of", "text_of"]

_HOMES = {
    "Module": "shine.tensor.form.module",
    "TensorFunction": "shine.tensor.native.function",
    "build": "shine.tensor.building",
    "compile": "shine.tensor.building",
    "gradient": "shine.tensor.adjoint.declarations",
    "load": "shine.tensor.loading",
    "module_of": "shine.tensor.form.reading",
    "text_of": "shine.tensor.form.printing",
}
"""The module of each name, imported at its first use."""


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
