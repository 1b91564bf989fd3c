"""Compiled evaluators for scripts that use DEAP: `CompiledEvaluator` for trees, `CompiledObjective` for vectors, and
`compile`, a faster `gp.compile`.

DEAP is an extra: without it, importing this package raises an error that says what to install.
"""

from __future__ import annotations

from shine.faces.deap.conversion import compile, tree
from shine.faces.deap.evaluator import CompiledEvaluator
from shine.faces.deap.vectors import CompiledObjective

__all__ = ["CompiledEvaluator", "CompiledObjective", "compile", "tree"]


def __dir__() -> list[str]:
    return sorted(__all__)
