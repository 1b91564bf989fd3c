"""Shine: symbolic regression, with formulas compiled to native code."""

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
from shine.evaluators.evaluator import Evaluator
from shine.gradient import grad
from shine.kernel import Kernel, jit
from shine.lang.parse import parse
from shine.lang.primitives import PrimitiveSet
from shine.model import Model, Result
from shine.population import Population
from shine.search import evolve

__version__ = "0.1.0"

__all__ = [
    "CompilationError",
    "ConfigError",
    "DataError",
    "Evaluator",
    "ExportError",
    "GraphImportError",
    "Kernel",
    "LoweringError",
    "Model",
    "Population",
    "PrimitiveSet",
    "Result",
    "ShineError",
    "UnsupportedSyntaxError",
    "evolve",
    "grad",
    "jit",
    "parse",
]
