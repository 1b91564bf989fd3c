"""A compiled evaluator for programs that use DEAP: `CompiledEvaluator`, and `compile`, a faster `gp.compile`.

DEAP is an extra: importing this package without it says what to install.
"""

from __future__ import annotations

from shine.deap.evaluator import CompiledEvaluator
from shine.deap.formulas import compile, tree

__all__ = ["CompiledEvaluator", "compile", "tree"]
