"""Trees as native code: ensembles of scikit-learn, and tables of sorted keys. See docs/tutorial-trees.md."""

from __future__ import annotations

from shine.trees.compiled import (
    CompiledBoostedClassifier,
    CompiledClassifier,
    CompiledRegressor,
    CompiledTrees,
    build,
    compile,
)
from shine.trees.keys import KeyTable

__all__ = [
    "CompiledBoostedClassifier",
    "CompiledClassifier",
    "CompiledRegressor",
    "CompiledTrees",
    "KeyTable",
    "build",
    "compile",
]


def __dir__() -> list[str]:
    return sorted(__all__)
