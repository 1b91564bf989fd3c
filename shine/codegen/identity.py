"""What compiled code depends on: the meaning of the functions in it, and the code that made it. Keys of caches."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Self

from shine.lang.tree import Primitive


@dataclass(frozen=True)
class Functions:
    """Functions that are equal if they mean the same, and not only if they read the same."""

    meaning: tuple[str, ...]
    functions: tuple[Primitive, ...] = field(compare=False)

    @classmethod
    def of(cls, functions: tuple[Primitive, ...]) -> Self:
        """Functions with their meaning."""
        return cls(tuple(described(function) for function in functions), functions)


def described(function: Primitive) -> str:
    """Text that is equal for primitives of the same name and meaning."""
    return f"{function.name} {function.arity} {_meaning(function)}"


def _meaning(primitive: Primitive) -> str:
    """Text that is equal for equal composite primitives, whatever they call included."""
    if primitive.definition is None:
        return ""
    tree = primitive.definition
    calls = sorted({token[0] for token in tree.tokens[1:] if token[0] in tree.functions})
    parts = [str(tree), *(f"{name}: {_meaning(tree.functions[name])}" for name in calls if name != primitive.name)]
    return "\n".join(parts)


@cache
def source_digest(*packages: str) -> str:
    """Digest of the code that emits and compiles machines, and of further packages: a change of it makes other
    entries of the cache."""
    digest = hashlib.sha256()
    root = Path(__file__).parents[1]
    for package in ("codegen", "llvm", *packages):
        for path in sorted((root / package).rglob("*.py")):
            content = path.read_bytes()
            digest.update(f"{path.relative_to(root).as_posix()} {len(content)}\n".encode() + content)
    return digest.hexdigest()
