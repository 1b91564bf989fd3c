"""Regions: the largest connected parts of a formula that are one sum, or one product."""

from __future__ import annotations

from typing import NamedTuple

from shine.lang.simplify.coefficients import (
    ONE,
    ZERO,
    Coefficient,
    Unfit,
    coefficient,
    negative,
    plus,
    times,
    to_the_power,
)
from shine.lang.simplify.sums import LARGEST_EXPONENT
from shine.lang.simplify.terms import CONSTANT, Terms

SUMS = frozenset({"add", "sub", "neg"})
_PRODUCTS = {"mul": 1, "div": 1, "inv": -1, "square": 2, "cube": 3, "pow": 1}
"""Operations of a product, with the exponent of the first argument."""


class Region(NamedTuple):
    """One sum or product: its constant, its leaves with coefficients or exponents, and the operations between them."""

    constant: Coefficient
    leaves: list[tuple[Coefficient, int]] | list[tuple[int, int]]
    interior: list[int]


def region_of(terms: Terms, term: int) -> Region | None:
    """The region below a term; None if the term is neither a sum nor a product, or numbers leave their range."""
    try:
        if terms.operations[term] in SUMS:
            return _sum_region(terms, term)
        return _product_region(terms, term) if _exponents(terms, term) else None
    except Unfit:
        return None


def _exponents(terms: Terms, term: int) -> tuple[int, ...]:
    """Exponents of the arguments of a product; none for other terms."""
    operation, arguments = terms.operations[term], terms.arguments[term]
    if operation == "pow":
        exponent = terms.number(arguments[1])
        whole = exponent is not None and exponent.is_integer() and abs(exponent) <= LARGEST_EXPONENT
        return (int(exponent),) if whole and exponent is not None else ()
    if operation == "neg":
        return (1,)
    if operation not in _PRODUCTS:
        return ()
    return (_PRODUCTS[operation], -1 if operation == "div" else 1)[: len(arguments)]


def _sum_region(terms: Terms, root: int) -> Region:
    constant, leaves, interior = ZERO, list[tuple[Coefficient, int]](), list[int]()
    stack = [(ONE, root)]
    while stack:
        factor, term = stack.pop()
        operation, arguments = terms.operations[term], terms.arguments[term]
        if operation in SUMS:
            interior.append(term)
            signs = (factor, negative(factor) if operation == "sub" else factor)
            if operation == "neg":
                signs = (negative(factor), ZERO)
            stack += reversed(list(zip(signs, arguments, strict=False)))
        elif operation == CONSTANT:
            constant = plus(constant, times(factor, coefficient(terms.values[term])))
        elif (scaled := _multiple(terms, term)) is not None and terms.operations[scaled[1]] in SUMS:
            interior.append(term)
            stack.append((times(factor, scaled[0]), scaled[1]))
        else:
            leaves.append((factor, term))
    return Region(constant, leaves, interior)


def _multiple(terms: Terms, term: int) -> tuple[Coefficient, int] | None:
    """The constant and the other factor of a product or quotient with a constant; None for other terms."""
    operation, arguments = terms.operations[term], terms.arguments[term]
    if operation not in ("mul", "div"):
        return None
    numbers = [terms.number(argument) for argument in arguments]
    if numbers[1]:
        return coefficient(numbers[1]) if operation == "mul" else coefficient(1.0, numbers[1]), arguments[0]
    if numbers[0] and operation == "mul":
        return coefficient(numbers[0]), arguments[1]
    return None


def _product_region(terms: Terms, root: int) -> Region:
    constant, leaves, interior = ONE, list[tuple[int, int]](), list[int]()
    stack = [(1, root)]
    while stack:
        exponent, term = stack.pop()
        exponents = _exponents(terms, term)
        if terms.operations[term] == CONSTANT:
            constant = times(constant, to_the_power(coefficient(terms.values[term]), exponent))
        elif exponents and max(abs(exponent * own) for own in exponents) <= LARGEST_EXPONENT:
            interior.append(term)
            if terms.operations[term] == "neg" and exponent % 2:
                constant = negative(constant)
            pairs = zip((exponent * own for own in exponents), terms.arguments[term], strict=False)
            stack += [(own, argument) for own, argument in reversed(list(pairs)) if own]
        else:
            leaves.append((exponent, term))
    return Region(constant, leaves, interior)
