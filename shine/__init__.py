"""Shine: symbolic regression, with formulas compiled to native code."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shine.errors import (
        CompilationError,
        ConfigError,
        DataError,
        ExportError,
        GraphImportError,
        LoweringError,
        ShineError,
        UnsupportedSyntaxError,
    )
    from shine.estimators import SymbolicClassifier, SymbolicRegressor, SymbolicTransformer
    from shine.evaluators.evaluator import Evaluator
    from shine.gp.constraints import Constraints
    from shine.gradient import grad
    from shine.kernel import Kernel, jit
    from shine.lang.parse import parse
    from shine.lang.primitives import PrimitiveSet
    from shine.model import Front, Model, Result
    from shine.population import Population
    from shine.search import evolve

__version__ = "0.1.0"

__all__ = [
    "CompilationError",
    "ConfigError",
    "Constraints",
    "DataError",
    "Evaluator",
    "ExportError",
    "Front",
    "GraphImportError",
    "Kernel",
    "LoweringError",
    "Model",
    "Population",
    "PrimitiveSet",
    "Result",
    "ShineError",
    "SymbolicClassifier",
    "SymbolicRegressor",
    "SymbolicTransformer",
    "UnsupportedSyntaxError",
    "evolve",
    "grad",
    "jit",
    "parse",
]

_HOMES = {
    "Constraints": "shine.gp.constraints",
    "Front": "shine.model",
    "Evaluator": "shine.evaluators.evaluator",
    "Kernel": "shine.kernel",
    "Model": "shine.model",
    "Population": "shine.population",
    "PrimitiveSet": "shine.lang.primitives",
    "Result": "shine.model",
    "SymbolicClassifier": "shine.estimators",
    "SymbolicRegressor": "shine.estimators",
    "SymbolicTransformer": "shine.estimators",
    "evolve": "shine.search",
    "grad": "shine.gradient",
    "jit": "shine.kernel",
    "parse": "shine.lang.parse",
}
"""Module of each public name; those that are not listed are exceptions."""

_PACKAGES = ("deap", "export", "report")
"""Packages that users reach as attributes."""


def __getattr__(name: str) -> Any:
    # NumPy and LLVM take most of what it costs to import Shine, and not everything that Shine does needs them: a name
    # is imported when it is first asked for.
    if name in _PACKAGES:
        return import_module(f"{__name__}.{name}")
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES.get(name, "shine.errors")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_PACKAGES})
