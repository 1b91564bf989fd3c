"""One tape for individuals that differ in what does not matter: the order of operands, sums of constants, zeros added.

Array code over the nodes of all individuals, one after the other in flat arrays. A subtree is an interval of them, and
what holds for all nodes of an interval is a difference of running sums; so nothing walks a tree, and no step is made
for one individual.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from shine.gp.hashing import Hashes, mixed
from shine.lang.interpret import REFERENCE, evaluate
from shine.lang.population import Population
from shine.lang.primitives import CONSTANT, PrimitiveSet

Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]

COMMUTATIVE = frozenset({"add", "mul", "eq", "ne"})
"""Functions whose operands may change places without changing a bit."""

_BY_SIGN_OF_ZERO = frozenset({"min", "max"})
_DIVIDING = frozenset({"div", "inv", "floordiv", "mod", "pow"})
