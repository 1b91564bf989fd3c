"""Cost of primitives: how many simple operations and elementary functions each is made of."""

from __future__ import annotations

from collections import Counter

from shine.lang.forms.facts import basic_where
from shine.lang.forms.tree import Primitive

ELEMENTARY = basic_where(lambda facts: facts.elementary)
"""Basic primitives that call a function of `shine.compiler.codegen.vecmath.functions`; the others take a few
instructions."""

OPERATION_KINDS = ("simple", "elementary")
"""Kinds of nodes: leaves and operations of a few instructions; elementary functions."""


def operations_of(primitive: Primitive) -> Counter[str]:
    """Number of operations of each kind in a primitive."""
    definition = primitive.definition
    if definition is None:
        return Counter({"elementary" if primitive.name in ELEMENTARY else "simple": 1})
    counts: Counter[str] = Counter()
    for name, detail in definition.tokens[1:]:
        if name == "compare":
            counts["simple"] += len(detail)
        elif name in definition.functions:
            counts += operations_of(definition.functions[name])
        elif name not in ("constant", "name", "assign"):
            counts["elementary" if name in ELEMENTARY else "simple"] += 1
    return counts
