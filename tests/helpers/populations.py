"""Random tapes of every shape and size, over Shine's functions and two of a user's."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from helpers.formulas import FEATURES, WRITTEN

from shine.lang.forms.primitives import CONSTANT, PrimitiveSet
from shine.lang.forms.tape import Tape
from shine.lang.forms.tree import Primitive
from shine.lang.population import Population
from shine.lang.vocabulary import primitive_table


def of_five(a, b, c, d, e):
    """A user's function with more arguments than any of Shine's."""
    largest = max(a, b)
    return largest - c * d if e > 0 else c + d / 2


def of_one(x):
    """A user's function of one argument."""
    return x * x + 1 if x < 1 else sqrt(x) + 1  # noqa: F821 - in the language


TABLE = primitive_table([of_five, of_one])[0]
"""All functions by name: Shine's, basic and composite, and the user's."""


PRIMITIVES = PrimitiveSet(tuple(TABLE.values()), FEATURES)


TAME = ("add", "sub", "min", "max", "abs", "neg", "where", "of_five", "relu", "aq", "mul", "protected_div")
"""Functions under which large trees mostly stay finite."""


USUAL = ("add", "sub", "mul", "div", "pow", "square", "cube", "inv", "sqrt", "neg", "abs", "exp", "log", "sin")
"""Functions of usual formulas."""


@dataclass
class Writer:
    """Postfix tapes of random leaves and of functions drawn from some."""

    rng: np.random.Generator
    functions: tuple[Primitive, ...]
    constant_share: float
    primitives: PrimitiveSet = PRIMITIVES
    codes: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)

    def leaf(self) -> None:
        """Append a feature or a constant."""
        constant = self.rng.random() < self.constant_share
        self.codes.append(CONSTANT if constant else int(self.rng.integers(1, 1 + len(FEATURES))))
        kind = self.rng.random()
        ordinary = float(self.rng.normal() * 10.0 ** self.rng.integers(-2, 3))
        special = float(self.rng.choice([0.0, -0.0, 1.0, -1.0, 1e30, 1e-40, 5e-324, np.inf, np.nan]))
        value = special if kind < 0.1 else float(self.rng.choice(WRITTEN)) if kind < 0.6 else ordinary
        self.values.append(value if constant else 0.0)

    def function(self, least: int = 1, most: int = 5) -> Primitive | None:
        """One of the functions with an arity in a range; None if there is none."""
        fits = [function for function in self.functions if least <= function.arity <= most]
        return fits[int(self.rng.integers(len(fits)))] if fits else None

    def apply(self, function: Primitive) -> None:
        """Append a function."""
        self.codes.append(self.primitives.function_codes[function.name])
        self.values.append(0.0)

    def tape(self) -> Tape:
        """The finished tape."""
        return Tape(np.array(self.codes, np.int16), np.array(self.values))


def left_chain(writer: Writer, size: int) -> None:
    """Each function's first argument is the chain so far."""
    writer.leaf()
    while len(writer.codes) < size and (function := writer.function()):
        for _ in range(function.arity - 1):
            writer.leaf()
        writer.apply(function)


def right_chain(writer: Writer, size: int) -> None:
    """Each function's last argument is the rest of the chain."""
    functions = []
    nodes = 1
    while nodes < size and (function := writer.function()):
        functions.append(function)
        for _ in range(function.arity - 1):
            writer.leaf()
        nodes += function.arity
    writer.leaf()
    for function in reversed(functions):
        writer.apply(function)


def balanced(writer: Writer, size: int) -> None:
    """Each function's arguments are about equally large."""
    function = writer.function() if size > 1 else None
    if function is None:
        writer.leaf()
        return
    for _ in range(function.arity):
        balanced(writer, (size - 1) // function.arity)
    writer.apply(function)


def comb(writer: Writer, size: int) -> None:
    """About a quarter of all nodes are values that are alive before the first is used."""
    teeth, start = 0, len(writer.codes)
    while len(writer.codes) - start + teeth < size and (function := writer.function()):
        for _ in range(function.arity):
            writer.leaf()
        writer.apply(function)
        teeth += 1
    if not teeth:
        writer.leaf()
    while teeth > 1:
        function = writer.function(2, min(5, teeth)) or TABLE["add"]
        writer.apply(function)
        teeth -= function.arity - 1


def mixed(writer: Writer, size: int) -> None:
    """Functions are applied at random to the values on the stack."""
    height = 0
    while len(writer.codes) < size or height != 1:
        growing = len(writer.codes) < size
        function = writer.function(1 if growing else 2, height) if height else None
        if not growing and function is None:
            function = TABLE["add"] if height > 1 else None
        if function is None or (growing and writer.rng.random() < 0.5):
            writer.leaf()
            height += 1
        else:
            writer.apply(function)
            height += 1 - function.arity


SHAPES = {shape.__name__: shape for shape in (left_chain, right_chain, balanced, comb, mixed)}
"""Shapes of tapes by name."""


def random_individual(rng: np.random.Generator, shape: str, size: int) -> Tape:
    """A tape of about `size` nodes, of a few functions drawn at random."""
    kind = rng.random()
    names = TAME if size > 50 or kind < 0.3 else USUAL if kind < 0.6 else tuple(TABLE)
    chosen = rng.choice(names, size=min(len(names), int(rng.integers(1, 8))), replace=False)
    constants = float(rng.choice([0.0, 0.3, 0.6, 1.0], p=[0.2, 0.4, 0.35, 0.05]))
    writer = Writer(rng, tuple(TABLE[str(name)] for name in chosen), constants)
    SHAPES[shape](writer, size)
    return writer.tape()


def random_population(rng: np.random.Generator, count: int, largest: int) -> tuple[Population, list[str]]:
    """Individuals of all shapes; half of them small, the others of any size up to the largest."""
    shapes = [str(shape) for shape in rng.choice(list(SHAPES), count)]
    limits = np.where(rng.random(count) < 0.5, min(20, largest), largest)
    sizes = rng.integers(1, limits + 1)
    tapes = [random_individual(rng, shape, int(size)) for shape, size in zip(shapes, sizes, strict=True)]
    return Population.from_tapes(tapes, PRIMITIVES), shapes
