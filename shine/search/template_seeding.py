"""Guesses for a template with one unknown function: the known part is solved for it, and the seeding sees its values.

If ``log(f(a))*b + 2`` is measured, ``f(a)`` is ``exp((y - 2)/b)``: formulas in the arguments of f that describe these
values are guesses. The noise of each value grows as the inverse says (the delta method). Parameters stand in the way,
except factors and summands of the whole: ``c*f(a) + d`` determines f up to a line, like linear scaling.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from shine.arrays import COMPILED, exp, log
from shine.data.dataset import Dataset
from shine.gp.evolution import Seeding
from shine.gp.seeding import Guesses, SeedingSettings
from shine.gp.settings import EvolutionSettings
from shine.gp.slot_breeding import assembled
from shine.lang.interpret import evaluate
from shine.lang.population import Population
from shine.lang.primitives import CONSTANT, PrimitiveSet
from shine.lang.tape import functions_of, tape_from_tree, tree_from_tape
from shine.lang.tree import Primitive
from shine.search.preparation import SEEDING_ROWS, guesses_on
from shine.templates.composition import Composition
from shine.typing import Floats

LEAST_SHARE = 0.5
"""Share of the rows for which the known part must have an inverse."""

Inverse = Callable[[Floats, Floats], tuple[Floats, Floats]]
"""Value of a function, its other operand -> the operand, and the size of the derivative of the value by it."""

_ONE = np.ones(1)

INVERSES: dict[tuple[str, int], Inverse] = {
    ("add", 0): lambda y, o: (y - o, _ONE),
    ("add", 1): lambda y, o: (y - o, _ONE),
    ("sub", 0): lambda y, o: (y + o, _ONE),
    ("sub", 1): lambda y, o: (o - y, _ONE),
    ("mul", 0): lambda y, o: (y / o, np.abs(o)),
    ("mul", 1): lambda y, o: (y / o, np.abs(o)),
    ("div", 0): lambda y, o: (y * o, 1 / np.abs(o)),
    ("div", 1): lambda y, o: (o / y, y * y / np.abs(o)),
    ("neg", 0): lambda y, o: (-y, _ONE),
    ("inv", 0): lambda y, o: (1 / y, y * y),
    ("exp", 0): lambda y, o: (log(y), np.abs(y)),
    ("log", 0): lambda y, o: (exp(y), exp(-y)),
    ("sqrt", 0): lambda y, o: (np.where(y < 0, np.nan, y * y), 0.5 / np.abs(y)),
}
"""Inverses by the name of the function and the place of the operand."""

_AFFINE = ("add", "sub", "mul", "div", "neg")


@dataclass(frozen=True)
class _Node:
    """A node of the known part: its function or leaf, its operands, and the stretch of tape that it ends."""

    name: str
    operands: tuple[_Node, ...]
    begin: int
    end: int


@dataclass(frozen=True, eq=False)
class Solved:
    """The values that an unknown function must have.

    Parameters
    ----------
    rows : Dataset
        Its arguments as columns, its values as target, and their weights.
    up_to_line : bool
        Whether the values are known up to a slope and an intercept.
    """

    rows: Dataset
    up_to_line: bool


@np.errstate(all="ignore")
def solved(composition: Composition, dataset: Dataset) -> Solved | None:
    """The values of the unknown function of a template; None if the template cannot be solved for them.

    Parameters
    ----------
    composition : Composition
    dataset : Dataset
        With the columns of the composition.
    """
    template = composition.template
    if len(template.unknowns) > 1 or len(template.outputs) > 1 or len(template.calls) > 1:
        return None
    ((called, (_, by)),) = template.calls.items()
    (tree,) = template.outputs
    names = {each.name for each in template.parameters}
    used = [tree.functions[name] for name in sorted(functions_of(tree) - {called})]
    arity = len(template.unknowns[0].arguments)
    own = PrimitiveSet((*used, Primitive(called, arity)), (*composition.features, *sorted(names)))
    tape = tape_from_tree(tree, own)
    root, calls = _read(tape.codes.tolist(), own, called)
    if by or calls != 1:
        return None
    fixed = {each.name: each.value for each in template.parameters if each.value is not None}

    def values(node: _Node) -> Floats | None:
        """Values of a part; None if it has free parameters."""
        part = slice(node.begin, node.end + 1)
        found = tree_from_tape(tape.codes[part], tape.values[part], own)
        if set(found.used_parameters) & names - fixed.keys():
            return None
        columns = [dataset.columns[dataset.features.index(name)] for name in composition.features]
        numbers = [np.full(dataset.n_rows, fixed.get(name, 0.0)) for name in sorted(names)]
        return np.broadcast_to(evaluate(found, [*columns, *numbers], np.float64, COMPILED), dataset.target.shape)

    target, slopes, up_to_line, outermost = dataset.target, np.ones(dataset.n_rows), False, True
    node = root
    while node.name != called:
        place = next(place for place, operand in enumerate(node.operands) if _has(operand, called))
        others = [operand for position, operand in enumerate(node.operands) if position != place]
        other = values(others[0]) if others else np.zeros(dataset.n_rows)
        if other is None:
            # A parameter alone, outside of everything that is no line.
            if not (outermost and node.name in _AFFINE and (node.name, place) != ("div", 1)) or others[0].operands:
                return None
            if others[0].name not in names or any(p.by_group for p in template.parameters if p.name == others[0].name):
                return None
            up_to_line = True
        else:
            inverse = INVERSES.get((node.name, place))
            if inverse is None:
                return None
            outermost = outermost and node.name in _AFFINE and bool((other == other[0]).all())
            if up_to_line and not outermost:
                return None
            target, slope = inverse(target, other)
            slopes = slopes * slope
        node = node.operands[place]
    arguments = [values(operand) for operand in node.operands]
    if any(argument is None for argument in arguments):
        return None
    return _rows_of(dataset, [a for a in arguments if a is not None], target, slopes, template.unknowns[0].arguments,
                    up_to_line)  # fmt: skip


def _rows_of(
    dataset: Dataset, arguments: Sequence[Floats], target: Floats, slopes: Floats, names: tuple[str, ...], line: bool
) -> Solved | None:
    weights = dataset.row_weights * slopes * slopes
    fine = np.isfinite(target) & np.isfinite(weights) & (weights > 0) & np.isfinite(np.array(arguments)).all(axis=0)
    which = np.flatnonzero(fine)
    if len(which) < max(LEAST_SHARE * dataset.n_rows, 2):
        return None
    columns = np.ascontiguousarray([argument[which] for argument in arguments])
    even = weights[which] if (weights[which] != weights[which[0]]).any() else None
    return Solved(Dataset(columns, np.ascontiguousarray(target[which]), even, names), line)


def _read(codes: Sequence[int], primitives: PrimitiveSet, called: str) -> tuple[_Node, int]:
    """The tape as nodes, and how often the unknown function is called."""
    stack: list[_Node] = []
    for end, code in enumerate(codes):
        if code < primitives.first_function:
            name = "" if code == CONSTANT else primitives.features[code - 1]
            stack.append(_Node(name, (), end, end))
            continue
        function = primitives.function(code)
        operands = tuple(stack[len(stack) - function.arity :])
        del stack[len(stack) - function.arity :]
        stack.append(_Node(function.name, operands, operands[0].begin, end))
    (root,) = stack
    return root, sum(code == primitives.function_codes[called] for code in codes)


def _has(node: _Node, called: str) -> bool:
    waiting = [node]
    while waiting:
        each = waiting.pop()
        if each.name == called and each.operands:
            return True
        waiting += each.operands
    return False


def template_seeding(
    composition: Composition, sample: Dataset, settings: EvolutionSettings, threads: int
) -> Seeding | None:
    """What looks for guesses of the unknown function; None if the template cannot be solved for it."""
    found = solved(composition, sample)
    if found is None or np.ptp(found.rows.target) == 0:
        return None
    (slot,), genome = composition.genome.slots, composition.genome

    def seeded(rng: np.random.Generator, deadline: float, work: float) -> Guesses:
        guesses = guesses_on(
            found.rows.sampled(SEEDING_ROWS, rng),
            slot.primitives,
            threads,
            rng,
            deadline,
            SeedingSettings(members=settings.seeding_members),
            work=work,
            max_size=slot.max_size,
            max_depth=slot.max_depth,
            linear_scaling=found.up_to_line,
        )
        return replace(guesses, candidates=_individuals(guesses.candidates), parts=_individuals(guesses.parts))

    def _individuals(formulas: Population) -> Population:
        return assembled([formulas], genome)

    return seeded
