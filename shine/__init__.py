"""Shine: symbolic regression, with formulas compiled to native code."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shine.distillation.distilling import distil
    from shine.errors import (
        CompilationError,
        ConfigError,
        DataError,
        ExportError,
        ExtrapolationWarning,
        GraphImportError,
        LoweringError,
        ShineError,
        UnsupportedSyntaxError,
        WorkerError,
    )
    from shine.estimators import SymbolicClassifier, SymbolicRegressor, SymbolicTransformer
    from shine.evaluators.evaluator import Evaluator
    from shine.frontends.graphdef import load_graph
    from shine.frontends.llvmir import primitive_from_llvm
    from shine.gp.constraints.constraints import Constraints
    from shine.kernels.gradient import grad
    from shine.kernels.jit import jit
    from shine.kernels.kernel import Kernel
    from shine.lang.parse import parse
    from shine.lang.population import Population
    from shine.lang.primitives import PrimitiveSet
    from shine.lang.program.program import Program
    from shine.search.front import Front, Result
    from shine.search.model import Model
    from shine.search.run import evolve
    from shine.templates.reading import template
    from shine.templates.template import Template

__version__ = "0.1.0"

__all__ = [
    "CompilationError",
    "ConfigError",
    "Constraints",
    "DataError",
    "Evaluator",
    "ExportError",
    "ExtrapolationWarning",
    "Front",
    "GraphImportError",
    "Kernel",
    "LoweringError",
    "Model",
    "Population",
    "PrimitiveSet",
    "Program",
    "Result",
    "ShineError",
    "SymbolicClassifier",
    "SymbolicRegressor",
    "SymbolicTransformer",
    "Template",
    "UnsupportedSyntaxError",
    "WorkerError",
    "distil",
    "evolve",
    "grad",
    "jit",
    "load_graph",
    "parse",
    "primitive_from_llvm",
    "template",
]

_HOMES = {
    "Constraints": "shine.gp.constraints.constraints",
    "Front": "shine.search.front",
    "Evaluator": "shine.evaluators.evaluator",
    "Kernel": "shine.kernels.kernel",
    "Model": "shine.search.model",
    "Population": "shine.lang.population",
    "PrimitiveSet": "shine.lang.primitives",
    "Program": "shine.lang.program.program",
    "Result": "shine.search.front",
    "SymbolicClassifier": "shine.estimators",
    "SymbolicRegressor": "shine.estimators",
    "SymbolicTransformer": "shine.estimators",
    "distil": "shine.distillation.distilling",
    "evolve": "shine.search.run",
    "grad": "shine.kernels.gradient",
    "jit": "shine.kernels.jit",
    "load_graph": "shine.frontends.graphdef",
    "parse": "shine.lang.parse",
    "primitive_from_llvm": "shine.frontends.llvmir",
    "Template": "shine.templates.template",
    "template": "shine.templates.reading",
}
"""Module of each public name; exceptions, which are not listed, are in `shine.errors`."""

_PACKAGES = (
    "aot", "arrow", "callbacks", "data", "deap", "estimators", "export", "losses", "report", "runs", "tensor",
    "trees",
)  # fmt: skip
"""Packages that users reach as attributes."""


def __getattr__(name: str) -> Any:
    # Names are imported on demand: NumPy and LLVM are slow to import, and not every use needs them.
    if name in _PACKAGES:
        return import_module(f"{__name__}.{name}")
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES.get(name, "shine.errors")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *_PACKAGES, "__version__"})
