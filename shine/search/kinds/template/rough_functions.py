"""Rough functions in place of the unknown ones of a template, so that the parameters come close to the true ones.

Polynomials in several shapes come first. A polynomial has the wrong form, and the parameters bear the consequences; so
cubic splines of the same shape refine the best ones. A spline can take any smooth form. It is a formula like any other:
a cubic polynomial and terms ``c*cube(abs(u - knot))``, whose knots stay where they are. It gets knots where the errors
are, as long as that pays.

Often the data leave a part of the parameters open: with ``a[group]*f(u) + d[group]``, any line of f will do. Each shape
then ends with parameters of its own, and with values of f that other formulas fit: those of ``exp(...)`` go to 0 where
a law does that is a product.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement, pairwise

import numpy as np

from shine.base.typing import Floats
from shine.compiler.arrays import COMPILED
from shine.data.datasets.dataset import Dataset
from shine.lang.forms.tree import Tree
from shine.lang.interpret import evaluate
from shine.lang.parse import parse
from shine.search.evolution.operators.slots import Slot
from shine.search.kinds.template.rough_fits import RoughFit, RoughFitter
from shine.search.kinds.template.solving import Solved, solved_for_all
from shine.search.templates.composition import Composition

DEGREES = {1: (1, 3, 5), 2: (1, 2, 3)}
"""Degrees of rough functions by the number of arguments; of more arguments, 1 and 2."""

STARTS = 6
"""Values of the parameters that a rough fit starts from; the first ones are those of new individuals."""

FIRST_KNOTS, MOST_KNOTS, REFINEMENTS = 8, 36, 5
"""Knots of the first spline; most knots of all functions together; and how often there may be more, or other ones:
the arguments move with the parameters."""


@dataclass(frozen=True)
class Shape:
    """A function of a polynomial or a spline.

    Parameters
    ----------
    outer : str
        The function, with braces in place of the polynomial.
    inner : str
        What the polynomial takes of each argument, with braces in its place.
    """

    outer: str
    inner: str = "{}"


SHAPES = (Shape("{}"), Shape("exp({})"), Shape("1/({})"), Shape("exp({})", "log({})"))
"""Shapes of rough functions. The last one has all products of powers."""


def rough_functions(
    fitter: RoughFitter, rng: np.random.Generator, out_of_time: Callable[[], bool] = lambda: False
) -> list[RoughFit]:
    """The best fit of each shape, the best first; with splines, where functions have one argument.

    All functions of a fit have the same shape.

    Parameters
    ----------
    fitter : RoughFitter
    rng : numpy.random.Generator
        Draws the parameters to start from.
    out_of_time : callable
        Says whether to stop, with the fits so far.
    """
    composition = fitter.composition
    slots = composition.genome.slots
    starts = np.array([_start(composition, start, rng) for start in range(STARTS)])
    found: list[RoughFit] = []
    for shape in SHAPES:
        if out_of_time():
            break
        forms = [list(_polynomials(slot, shape)) for slot in slots]
        together = [[own[min(place, len(own) - 1)] for own in forms] for place in range(max(map(len, forms)))]
        trees = [each for each in together for _ in starts]
        numbers = np.tile(starts, (len(together), 1))
        # Most steps of a rough fit, and the share of the error that its next step must promise to remove
        fits = fitter.fits(trees, numbers, 60, 1e-4)
        best = sorted(fits, key=lambda each: each.error * (1 + _turned(composition, each)))[:1]
        found += [_refined(fitter, fit, shape, out_of_time) for fit in best]
    return sorted(found, key=lambda each: each.error)


def _start(composition: Composition, number: int, rng: np.random.Generator) -> Floats:
    """Values of the leaves to start from; all groups have the same."""
    found = composition.starts
    for parameter, offset, count in zip(composition.parameters, composition.offsets, composition.counts, strict=True):
        # Whole powers of two: no transcendental function, whose bits depend on the processor.
        factor = 1.0 if number == 0 else float(np.ldexp(1 + rng.random(), int(rng.integers(-3, 3))))
        sign = -1.0 if number > STARTS // 2 and parameter.bounds[0] < 0 and rng.random() < 0.5 else 1.0
        found[offset : offset + count] = np.clip(found[offset] * factor * sign, *parameter.bounds)
    return found


def _turned(composition: Composition, fit: RoughFit) -> float:
    """Share of the parameters whose sign is not that of their start.

    Often both signs fit, as in ``f(r/s[group])``; with the other one, formulas need it as well: ``(-x)**-4``.
    """
    return float(np.mean(fit.numbers * composition.starts < 0)) if composition.n_leaves else 0.0


def _polynomials(slot: Slot, shape: Shape) -> Iterator[Tree]:
    """Rough functions of a shape."""
    names = slot.primitives.features
    inner = [shape.inner.format(name) for name in names]
    for degree in DEGREES.get(len(names), (1, 2)):
        if len(names) == 1:
            text = "0.1"
            for power in reversed(range(degree)):
                text = f"({'1.0' if power == 0 else '0.1'} + {inner[0]}*{text})"
        else:
            terms = [
                "*".join(["0.1", *factors])
                for size in range(1, degree + 1)
                for factors in combinations_with_replacement(inner, size)
            ]
            text = " + ".join(["1.0", *terms])
        yield parse(shape.outer.format(text), names)


def _refined(fitter: RoughFitter, fit: RoughFit, shape: Shape, out_of_time: Callable[[], bool]) -> RoughFit:
    """A rough fit with splines, if all functions have one argument and their values are known."""
    composition, rows = fitter.composition, fitter.rows
    slots = composition.genome.slots
    if any(len(slot.primitives.features) > 1 for slot in slots):
        return fit
    names = [slot.primitives.features[0] for slot in slots]
    best = last = fit
    knots: list[Floats] = []
    for _ in range(REFINEMENTS):
        values = solved_for_all(composition, rows, last)
        if values is None or out_of_time():
            break
        before = sum(map(len, knots))
        if knots:
            functions = [last.functions[slot.name] for slot in slots]
            most = MOST_KNOTS // len(slots)
            knots = [_with_more(*each, most) for each in zip(knots, values, functions, strict=True)]
        else:
            knots = [_even(each) for each in values]
        splines = [_spline(name, own, shape) for name, own in zip(names, knots, strict=True)]
        found = _with_splines(fitter, last, splines)
        if found is None:
            break
        count = sum(map(len, knots))
        if _pays(best, found, rows, count):
            best = found
        if before and not _pays(last, found, rows, count - before):
            break
        last = found
    return best


def _pays(before: RoughFit, after: RoughFit, rows: Dataset, knots: int) -> bool:
    """Whether another fit is worth so many knots more."""
    # Nats that a knot must gain: half the logarithm of the number of rows, about.
    return (before.error - after.error) * rows.n_rows > 2 * 4.0 * knots * after.error


def _with_splines(fitter: RoughFitter, fit: RoughFit, splines: Sequence[tuple[Tree, list[bool]]]) -> RoughFit | None:
    """A fit of splines that begins with the parameters of another one; None if it has no finite error."""
    trees, held = [tree for tree, _ in splines], [which for _, own in splines for which in own]
    # The splines come to the parameters first, so that these do not run away meanwhile.
    for only_functions in (True, False):
        found = fitter.fits([trees], fit.numbers[None], held=held, only_functions=only_functions)
        if not found:
            return None
        trees = [found[0].functions[slot.name] for slot in fitter.composition.genome.slots]
    return found[0]


def _even(values: Solved) -> Floats:
    """Knots with the same number of rows between them."""
    ordered = np.sort(values.rows.columns[0])
    places = (np.arange(1, FIRST_KNOTS + 1) * len(ordered)) // (FIRST_KNOTS + 1)
    return ordered[places]


@np.errstate(all="ignore")
def _with_more(knots: Floats, values: Solved, function: Tree, most: int) -> Floats:
    """Knots, and others in the middle of the rows between them where errors are largest."""
    order = np.argsort(values.rows.columns[0], kind="stable")
    arguments = values.rows.columns[0][order]
    fitted = evaluate(function, [arguments], np.float64, COMPILED)
    errors = values.rows.row_weights[order] * (values.rows.target[order] - fitted) ** 2
    ends = np.concatenate([[0], np.searchsorted(arguments, np.sort(knots)), [len(arguments)]])
    sums = np.array([errors[a:b].sum() for a, b in pairwise(ends)])
    worst = np.argsort(-np.nan_to_num(sums), kind="stable")[: max(min(len(knots) // 2, most - len(knots)), 0)]
    middle = [arguments[(ends[k] + ends[k + 1]) // 2] for k in worst if ends[k + 1] - ends[k] > 2]
    return np.unique([*knots, *middle])


def _spline(name: str, knots: Floats, shape: Shape) -> tuple[Tree, list[bool]]:
    """A spline of a shape with these knots, and which of its constants keep their values."""
    u = shape.inner.format(name)
    at = evaluate(parse(u, (name,)), [knots], np.float64, COMPILED)
    terms = [f"0.0*cube(abs({u} - ({float(knot)!r})))" for knot in at.tolist() if math.isfinite(knot)]
    text = " + ".join([f"1.0 + {u}*(0.0 + {u}*(0.0 + {u}*0.0))", *terms])
    return parse(shape.outer.format(text), (name,)), [False] * 4 + [False, True] * len(terms)
