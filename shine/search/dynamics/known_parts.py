"""Known parts of a system, as text with a line a state, such as ``x' = v; v' = f(x) - k[run]*v``.

Calls of unknown functions are searched for. A line without them is a known equation. Names that are no columns are
constants, which rollouts fit; numbers are known. A function or constant of several lines is one, and its lines are
searched for together: so what leaves one state enters another.

For constants that depend on the run, its number is a further control, and equations have cases by it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from shine.base.errors import UnsupportedSyntaxError
from shine.base.typing import Floats
from shine.evaluate.rollouts.rates import with_named_constants, with_numbers
from shine.lang.forms.interpretation import Rebuilding
from shine.lang.forms.library import STANDARD
from shine.lang.forms.names import listed, shown
from shine.lang.forms.tree import Tree
from shine.lang.forms.visitor import Visit
from shine.lang.parse import parse
from shine.search.dynamics.equations import KNOWN, Equation, name_of
from shine.search.models.model import Model
from shine.search.templates.reading import template
from shine.search.templates.source import DERIVATIVE
from shine.search.templates.template import Parameter, Template, read_parameters

RUN = "run"
"""Name of the control, and the subscript of a constant by run."""


class _Cases(Rebuilding):
    """Takes the case of a run, and writes out names."""

    def __init__(self, number: float | None, written: Mapping[str, ast.expr]) -> None:
        self.number, self.written = number, dict(written)

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.written.get(node.id, node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Visit:
        operand = yield node.operand
        if isinstance(node.op, ast.USub) and isinstance(operand, ast.Constant) and operand.value < 0:  # type: ignore
            return ast.Constant(-operand.value)  # type: ignore[operator]
        return ast.UnaryOp(node.op, operand)

    def visit_IfExp(self, node: ast.IfExp) -> Visit:
        test = node.test
        by_run = isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and test.left.id == RUN
        if not by_run or self.number is None:
            return (yield from super().visit_IfExp(node))
        border = test.comparators[0]  # type: ignore[attr-defined]
        taken = node.body if self.number <= float(border.value) else node.orelse
        return (yield taken)


def cases(value: float, count: int) -> str:
    """A number for each of some runs, as text, the same in all."""
    return "".join(f"{value!r} if {RUN} <= {run + 0.5} else " for run in range(count - 1)) + repr(value)


def of_run(tree: Tree, number: int) -> tuple[Tree, list[int]]:
    """The equation of one run, without cases, and the places of its constants among those of the tree."""
    named, values = with_named_constants(tree)
    places = named.parameters[len(named.parameters) - len(values) :]
    # Added to places that stand for constants: no whole or half exponent comes about.
    visitor = _Cases(number, {name: ast.Constant(place + 0.25) for place, name in enumerate(places)})
    for name, value in named.assignments:
        visitor.written[name] = visitor.visit(value)
    numbered = replace(tree, assignments=(), result=visitor.visit(named.result))
    kept = [int(value) for value in with_named_constants(numbered)[1]]
    return with_numbers(numbered, values[kept]), kept


def bare(tree: Tree) -> Tree:
    """The equation with names for its constants by run, whose values are left out."""
    return replace(tree, assignments=())


def for_people(tree: Tree) -> Tree:
    """The equation for people: ``k[run]`` for a constant by run."""
    subscripted = {name: ast.Name(f"{name}[{RUN}]", ast.Load()) for name, _ in tree.assignments}
    names = {name: subscripted[name] if _by_run(value) else value for name, value in tree.assignments}
    return written_out(tree, names)


def written_out(tree: Tree, names: Mapping[str, ast.expr]) -> Tree:
    """The equation with expressions in the places of names."""
    return replace(tree, assignments=(), result=_Cases(None, names).visit(tree.result))


def values_by_run(tree: Tree, count: int) -> dict[str, list[Tree]]:
    """The value of each constant by run, in the order of the runs, as constant formulas."""
    return {
        name: [
            Tree(tree.parameters, _Cases(number, {}).visit(value), functions=tree.functions) for number in range(count)
        ]
        for name, value in tree.assignments
        if _by_run(value)
    }


def _by_run(value: ast.expr) -> bool:
    return any(isinstance(node, ast.Name) and node.id == RUN for node in ast.walk(value))


def covariance_of(covariance: Floats, kept: list[int]) -> Floats:
    """The covariance of some constants, one of which may be written twice."""
    return covariance[kept][:, kept]


_LINE = re.compile(r"\s*(\w+)\s*('*|\[\s*k\s*\+\s*1\s*\])\s*=\s*(.*?)\s*", re.DOTALL)

ENDINGS = {("ode", 1): "'", ("ode", 2): "''", ("map", 1): "[k+1]"}
"""What follows a state on the left side, by the kind and the order of the equations."""


def known_parts(text: str, states: Sequence[str], kind: str = "ode", order: int = 1) -> dict[str, str]:
    """Right sides by state; an `UnsupportedSyntaxError` if a line has another form, or names no state or one twice."""
    ending, found = ENDINGS[kind, order], dict[str, str]()
    for line in filter(str.strip, re.split(r"[;\n]", text)):
        match = _LINE.fullmatch(line)
        state, marks, right = match.groups() if match else ("", "", "")
        if not right or marks.replace(" ", "") != ending:
            raise UnsupportedSyntaxError(
                f"template: {shown(line.strip())} is no equation of a state; write {states[0]}{ending} = ..., "
                "with ; between"
            )
        if state not in states or state in found:
            what = "occurs twice" if state in found else f"is no state; the states are {listed(states)}"
            raise UnsupportedSyntaxError(f"template: {shown(state)} {what}")
        found[state] = right
    if not found:
        raise UnsupportedSyntaxError(f"template: it is empty; write an equation such as {states[0]}{ending} = f(...)")
    return found


def uses_runs(parts: dict[str, str]) -> bool:
    """Whether a constant has a value for each run."""
    return any(re.search(rf"\[\s*{RUN}\s*\]", right) for right in parts.values())


@dataclass(frozen=True, eq=False)
class Part:
    """Equations that are found together, as they share unknown functions or constants.

    Parameters
    ----------
    states : tuple of str
    template : Template, optional
        With an output for each of them. None for a state of which nothing is known.
    known : tuple of Equation
        The equations, if no function is unknown.
    """

    states: tuple[str, ...]
    template: Template | None = None
    known: tuple[Equation, ...] = ()


def parts_of(
    rights: Mapping[str, str], features: Sequence[str], runs: int, options: Mapping[str, Any]
) -> tuple[list[Part], dict[str, Parameter]]:
    """The parts of some equations, and what is known of their constants.

    Parameters
    ----------
    rights : mapping of str to str
        Right side by state.
    features : sequence of str
        States, controls, perhaps the time and the number of the run.
    runs : int
    options : mapping of str to Any
        ``unknown`` and ``parameters`` of `shine.template`.

    Raises
    ------
    UnsupportedSyntaxError
        If a text is not part of the language of templates, or its constants depend on something else than the run.
    ValueError, TypeError
        If an option is invalid.
    """
    lines = {state: _Line.of(right, features) for state, right in rights.items()}
    asked = read_parameters(options.get("parameters"))
    unknown, used = dict(options.get("unknown") or {}), frozenset().union(*(line.names for line in lines.values()))
    for what, names in (("parameters", asked), ("unknown", unknown)):
        if other := [name for name in names if name not in used]:
            raise ValueError(f"template: {what} has {shown(other[0])}, which no equation uses")
    if whole := [name for name, each in asked.items() if each.integer]:
        raise ValueError(f"template: parameter {whole[0]} is integer; rollouts fit numbers of any size")
    parts = []
    for states in _together(lines):
        own = frozenset().union(*(lines[state].names for state in states))
        if not any(lines[state].functions for state in states):
            parts.append(Part(states, None, tuple(lines[state].known(asked, features, runs) for state in states)))
            continue
        source = ", ".join(f"({rights[state]})" for state in states)
        more = {name: each for name, each in unknown.items() if name in own}
        law = template(source, unknown=more or None, parameters={name: asked[name] for name in asked if name in own})
        if law.groups not in (None, RUN):
            raise UnsupportedSyntaxError(f"template: {law.groups!r} is no group; constants depend on the run: k[run]")
        called = [unknown for unknown, _ in law.calls.values()]
        if twice := [name for name in called if called.count(name) > 1]:
            raise UnsupportedSyntaxError(f"template: {twice[0]} and its derivative are both there; write one of them")
        parts.append(Part(states, law))
    return parts, asked


@dataclass(frozen=True)
class _Line:
    """A right side: its text, unknown functions, constants, and those of the latter that depend on the run."""

    right: str
    functions: frozenset[str]
    constants: frozenset[str]
    grouped: frozenset[str]

    @classmethod
    def of(cls, right: str, features: Sequence[str]) -> _Line:
        try:
            nodes = list(ast.walk(ast.parse(right, mode="eval")))
        except (SyntaxError, ValueError, RecursionError):
            raise UnsupportedSyntaxError(f"template: {right!r} is no formula") from None
        called = {node.func.id for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
        names = {node.id for node in nodes if isinstance(node, ast.Name)} - called - set(features)
        subscripted = [node.value for node in nodes if isinstance(node, ast.Subscript)]
        grouped = {node.id for node in subscripted if isinstance(node, ast.Name)}
        return cls(right, frozenset(called - set(STANDARD)), frozenset(names), frozenset(grouped))

    @property
    def names(self) -> frozenset[str]:
        """What it may share with others."""
        return (self.functions | self.constants) - {DERIVATIVE}

    def known(self, asked: Mapping[str, Parameter], features: Sequence[str], runs: int) -> Equation:
        """The equation, if no function is unknown."""
        lines, names = [], []
        for name in sorted(self.constants):
            option = asked.get(name, Parameter(name))
            by_run = [name_of(name, run) for run in range(runs)] if name in self.grouped else [name]
            names += by_run if option.value is None else [KNOWN] * len(by_run)
            lines.append(f"    {name} = {cases(option.first, len(by_run))}")
        plain = re.sub(rf"\[\s*{RUN}\s*\]", "", self.right)
        tree = parse("\n".join([f"def formula({', '.join(features)}):", *lines, f"    return {plain}"]), features)
        written = len(with_named_constants(tree)[1])
        return Equation(Model(tree, 0.0, 1.0), (*names, *[KNOWN] * (written - len(names))))


def _together(lines: Mapping[str, _Line]) -> list[tuple[str, ...]]:
    """States whose lines share names, directly or through others."""
    groups: list[tuple[tuple[str, ...], frozenset[str]]] = []
    for state, line in lines.items():
        apart = [group for group in groups if not group[1] & line.names]
        joined = [group for group in groups if group[1] & line.names]
        states = (*(each for group in joined for each in group[0]), state)
        groups = [*apart, (states, line.names.union(*(group[1] for group in joined)))]
    return [tuple(state for state in lines if state in states) for states, _ in groups]
