"""Constants of formulas: which of them are free, in a law and in a formula that claims to be it."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from quality.formulas import Formula, Step


@dataclass(frozen=True)
class Freed:
    """A formula whose exponents are constants, and which of its constants are free.

    Parameters
    ----------
    formula : Formula
    free : tuple of bool
        Constants that may change.
    exponents : tuple of bool
        Constants that are exponents.
    """

    formula: Formula
    free: tuple[bool, ...]
    exponents: tuple[bool, ...]


def as_law(formula: Formula) -> Freed:
    """A law: exponents of powers and numbers with a point are free."""
    steps: list[Step] = []
    texts = list(formula.constants)
    powers: set[int] = set()

    def exponent(value: str) -> Step:
        texts.append(value)
        powers.add(len(texts) - 1)
        return Step("constant", len(texts) - 1)

    for step in formula.steps:
        if step.kind == "exponent":
            steps.append(exponent(str(step.index)))
        elif step.kind == "square":
            steps += [exponent("2"), Step("pow", arity=2)]
        else:
            if step.kind == "pow" and steps[-1].kind == "constant":
                powers.add(steps[-1].index)
            steps.append(step)
    fixed = [text.lstrip("-").isdigit() or text == "pi" for text in texts]
    free = tuple(not fixed[i] or i in powers for i in range(len(texts)))
    return Freed(Formula(tuple(steps), tuple(texts)), free, tuple(i in powers for i in range(len(texts))))


def as_candidate(formula: Formula) -> Freed:
    """A candidate: all numbers but zero are free, and simple powers are functions."""
    powers = {
        before.index
        for before, step in itertools.pairwise(formula.steps)
        if step.kind == "pow" and before.kind == "constant"
    }
    return Freed(
        formula,
        tuple(bool(value) for value in formula.values),
        tuple(i in powers for i in range(len(formula.constants))),
    )
