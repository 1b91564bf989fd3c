"""Trees as native code: ensembles of scikit-learn, and tables of sorted keys. See docs/tutorial-trees.md."""

from __future__ import annotations

from typing import Any

from shine.trees.compiled import (
    CompiledBoostedClassifier,
    CompiledClassifier,
    CompiledRegressor,
    CompiledTrees,
    compiled_of,
)
from shine.trees.reading import read

__all__ = ["CompiledBoostedClassifier", "CompiledClassifier", "CompiledRegressor", "CompiledTrees", "compile"]


def compile(model: Any) -> CompiledTrees:
    return compiled_of(read(model))
