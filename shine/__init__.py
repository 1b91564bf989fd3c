"""Shine: symbolic regression, with formulas compiled to native code."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shine.base.errors import (
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
    from shine.evaluate.kernels.gradient import grad
    from shine.evaluate.kernels.jit import jit
    from shine.evaluate.kernels.kernel import Kernel
    from shine.evaluate.tiers.evaluator import Evaluator
    from shine.faces.distillation.distilling import distil
    from shine.faces.estimators import SymbolicClassifier, SymbolicRegressor, SymbolicTransformer
    from shine.faces.evolving import evolve
    from shine.formats.read.llvmir import primitive_from_llvm
    from shine.lang.forms.primitives import PrimitiveSet
    from shine.lang.parse import parse
    from shine.lang.population import Population
    from shine.lang.program.program import Program
    from shine.search.constraints.constraints import Constraints
    from shine.search.models.front import Front, Result
    from shine.search.models.model import Model
    from shine.search.templates.reading import template
    from shine.search.templates.template import Template
    from shine.tensor.graphdef.programs import load_graph

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
    "Constraints": "shine.search.constraints.constraints",
    "Front": "shine.search.models.front",
    "Evaluator": "shine.evaluate.tiers.evaluator",
    "Kernel": "shine.evaluate.kernels.kernel",
    "Model": "shine.search.models.model",
    "Population": "shine.lang.population",
    "PrimitiveSet": "shine.lang.forms.primitives",
    "Program": "shine.lang.program.program",
    "Result": "shine.search.models.front",
    "SymbolicClassifier": "shine.estimators",
    "SymbolicRegressor": "shine.estimators",
    "SymbolicTransformer": "shine.estimators",
    "distil": "shine.faces.distillation.distilling",
    "evolve": "shine.faces.evolving",
    "grad": "shine.evaluate.kernels.gradient",
    "jit": "shine.evaluate.kernels.jit",
    "load_graph": "shine.tensor.graphdef.programs",
    "parse": "shine.lang.parse",
    "primitive_from_llvm": "shine.formats.read.llvmir",
    "Template": "shine.search.templates.template",
    "template": "shine.search.templates.reading",
}
"""Module of each public name; exceptions, which are not listed, are in `shine.base.errors`."""

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
    value = getattr(import_module(_HOMES.get(name, "shine.base.errors")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *_PACKAGES, "__version__"})
