"""A formula as straight-line code: a list of steps that computes every value once.

Forms with statements (C, torch, JAX) and graphs of nodes (ONNX, GraphDef) start from here. Steps have no depth, so a
formula that nests deeper than the target's parser allows needs no special case.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from shine.base.errors import ExportError
from shine.lang.forms.library import STANDARD
from shine.lang.forms.names import unique
from shine.lang.forms.primitives import BASIC
from shine.lang.forms.tree import Primitive, Tree


@dataclass(frozen=True)
class Step:
    """One value of a formula.

    Parameters
    ----------
    primitive : Primitive or None
        The primitive applied; None if the value is a parameter or a number.
    operands : tuple of int
        Positions of the earlier steps that it is applied to.
    leaf : str or float
        Name of the parameter, or the number; 0 if a primitive is applied.
    """

    primitive: Primitive | None
    operands: tuple[int, ...] = ()
    leaf: str | float = 0.0


@dataclass(frozen=True)
class Body:
    """The steps of one tree that its result needs.

    Parameters
    ----------
    tree : Tree
    steps : tuple of Step
        The last one is the result.
    uses : tuple of int
        How often each step is an operand; the result counts one more.
    """

    tree: Tree
    steps: tuple[Step, ...]
    uses: tuple[int, ...]

    def composites(self) -> Iterator[Primitive]:
        """The composite primitive of each step that applies one."""
        return (step.primitive for step in self.steps if step.primitive and step.primitive.definition is not None)


@dataclass(frozen=True)
class StraightLine:
    """A formula and the functions it calls.

    Parameters
    ----------
    main : Body
    functions : mapping of str to Body
        Bodies of the composite primitives it needs, by unique names, callees before callers. Two different primitives
        with the same name get different names here.
    names : mapping of int to str
        Name of each composite primitive by the `id` of its `Primitive`.
    """

    main: Body
    functions: Mapping[str, Body]
    names: Mapping[int, str]

    def name(self, primitive: Primitive) -> str:
        """The name of a primitive in this code."""
        return self.names.get(id(primitive), primitive.name)

    def run(
        self, operations: Mapping[str, Callable[..., Any]], number: Callable[[float], Any], arguments: Sequence[Any]
    ) -> Any:
        """Compute the formula with the given operations.

        Parameters
        ----------
        operations : mapping of str to callable
            The operation of each primitive without a body.
        number : callable of a float
            Makes an operand of a number in the formula.
        arguments : sequence
            One for each parameter.
        """
        values: list[Any] = []
        calls = [(self.main, values, dict(zip(self.main.tree.parameters, arguments, strict=True)))]
        while True:
            body, values, given = calls[-1]
            if len(values) == len(body.steps):
                calls.pop()
                if not calls:
                    return values[-1]
                calls[-1][1].append(values[-1])
                continue
            step = body.steps[len(values)]
            operands = [values[operand] for operand in step.operands]
            if step.primitive is None:
                values.append(given[step.leaf] if isinstance(step.leaf, str) else number(step.leaf))
            elif step.primitive.definition is None:
                values.append(operations[step.primitive.name](*operands))
            else:
                body = self.functions[self.name(step.primitive)]
                calls.append((body, [], dict(zip(body.tree.parameters, operands, strict=True))))


def body_of(tree: Tree, form: str, kept: Collection[str] = ()) -> Body:
    """The steps of one tree; an `ExportError` if the tree calls a function without a definition.

    Parameters
    ----------
    tree : Tree
    form : str
        Name of the target, for errors.
    kept : collection of str
        Composite primitives of the standard library that are operations of the target, so they need no body.
    """
    steps: list[Step] = []
    known: dict[object, int] = {}
    assigned: dict[str, int] = {}
    stack: list[int] = []

    def add(key: object, step: Step) -> int:
        if key not in known:
            known[key] = len(steps)
            steps.append(step)
        return known[key]

    def apply(name: str, operands: tuple[int, ...]) -> int:
        return add((name, operands), Step(_primitive(tree, name, form, kept), operands))

    for kind, detail in tree.tokens[1:]:
        if kind == "assign" and isinstance(detail, str):
            assigned[detail] = stack.pop()
        elif kind == "name" and isinstance(detail, str):
            stack.append(assigned[detail] if detail in assigned else add(("name", detail), Step(None, (), detail)))
        elif kind == "constant" and isinstance(detail, str):
            # The repr of a float distinguishes -0.0 from 0.0.
            number = float(detail)
            stack.append(add(("number", repr(number)), Step(None, (), number)))
        elif kind == "compare" and isinstance(detail, tuple):
            first = len(stack) - len(detail) - 1
            operands = stack[first:]
            del stack[first:]
            holds = [apply(name, pair) for name, pair in zip(detail, pairwise(operands), strict=True)]
            result = holds[0]
            for other in holds[1:]:
                result = apply("logical_and", (result, other))
            stack.append(result)
        else:
            first = len(stack) - detail
            operands = stack[first:]
            del stack[first:]
            stack.append(apply(kind, tuple(operands)))
    return _needed(tree, steps, stack.pop())


def _primitive(tree: Tree, name: str, form: str, kept: Collection[str]) -> Primitive:
    primitive = BASIC.get(name) or tree.functions.get(name)
    if name in kept and primitive is STANDARD[name]:
        return Primitive(name, primitive.arity)
    if primitive is None or (name not in BASIC and primitive.definition is None):
        raise ExportError(f"primitive {name!r} cannot be exported to {form}: it has no definition")
    return primitive


def _needed(tree: Tree, steps: list[Step], result: int) -> Body:
    """The steps that the result needs, renumbered."""
    uses = [0] * len(steps)
    uses[result] = 1
    for position in range(result, -1, -1):
        if uses[position]:
            for operand in steps[position].operands:
                uses[operand] += 1
    kept = [position for position in range(result + 1) if uses[position]]
    moved = {position: new for new, position in enumerate(kept)}
    renumbered = tuple(
        Step(
            steps[position].primitive,
            tuple(moved[operand] for operand in steps[position].operands),
            steps[position].leaf,
        )
        for position in kept
    )
    return Body(tree, renumbered, tuple(uses[position] for position in kept))


def straight_line(tree: Tree, form: str, kept: Collection[str] = ()) -> StraightLine:
    """A formula and the functions it calls as straight-line code; parameters as in `body_of`.

    An `ExportError` if the formula, or a function it calls, calls a function without a definition.
    """
    main = body_of(tree, form, kept)
    bodies: dict[int, Body] = {}
    names: dict[int, str] = {}
    functions: dict[str, Body] = {}
    # A stack, because definitions nest to any depth; an entry is a body's identity and its composites still to visit.
    waiting = [(0, main.composites())]
    while waiting:
        identity, composites = waiting[-1]
        primitive = next((p for p in composites if id(p) not in bodies), None)
        if primitive is None:
            waiting.pop()
            if waiting:
                functions[names[identity]] = bodies[identity]
            continue
        assert primitive.definition is not None
        bodies[id(primitive)] = body_of(primitive.definition, form, kept)
        names[id(primitive)] = unique(primitive.name, names.values())
        waiting.append((id(primitive), bodies[id(primitive)].composites()))
    return StraightLine(main, functions, names)
