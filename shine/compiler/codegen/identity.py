"""Cache keys of compiled code: the meaning of its functions, and the source code that emits it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Self

from shine.lang.forms.tree import Primitive


@dataclass(frozen=True)
class Functions:
    """Functions that compare equal if and only if they have the same names and the same meaning."""

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
    """Text of a composite primitive and of all primitives it calls; empty for a basic one."""
    if primitive.definition is None:
        return ""
    tree = primitive.definition
    calls = sorted({token[0] for token in tree.tokens[1:] if token[0] in tree.functions})
    parts = [
        primitive.source,
        *(f"{name}: {_meaning(tree.functions[name])}" for name in calls if name != primitive.name),
    ]
    return "\n".join(parts)


@cache
def source_digest(*rooms: str) -> str:
    """Digest of the source of the compiler, and of further rooms that emit code: code that was cached before their last
    change is not found."""
    digest = hashlib.sha256()
    root = Path(__file__).parents[2]
    for room in ("compiler", *rooms):
        for path in sorted((root / room).rglob("*.py")):
            content = path.read_bytes()
            digest.update(f"{path.relative_to(root).as_posix()} {len(content)}\n".encode() + content)
    return digest.hexdigest()
