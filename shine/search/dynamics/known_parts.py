"""Known parts of a system, as text with a line a state, such as ``x' = v; v' = f(x) - k[run]*v``.

Calls of unknown functions are searched for. A line without them is a known equation; its names that are no columns are
constants, which rollouts fit.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from shine.base.errors import UnsupportedSyntaxError
from shine.lang.forms.library import STANDARD
from shine.lang.forms.names import listed, shown
from shine.lang.parse import parse
from shine.search.dynamics.by_run import RUN, cases
from shine.search.models.model import Model
from shine.search.templates.reading import template
from shine.search.templates.template import Template

_LINE = re.compile(r"\s*(\w+)\s*('*|\[\s*k\s*\+\s*1\s*\])\s*=\s*(.*?)\s*", re.DOTALL)

ENDINGS = {("ode", 1): "'", ("ode", 2): "''", ("map", 1): "[k+1]"}
"""What follows a state on the left side, by the kind and the order of the equations."""


def known_parts(text: str, states: Sequence[str], kind: str = "ode", order: int = 1) -> dict[str, str]:
    """Right sides by state.

    Raises
    ------
    UnsupportedSyntaxError
        If a line has another form, or names no state or one twice.
    """
    ending, found = ENDINGS[kind, order], dict[str, str]()
    for line in filter(str.strip, re.split(r"[;\n]", text)):
        match = _LINE.fullmatch(line)
        state, marks, right = match.groups() if match else ("", "", "")
        if not right or marks.replace(" ", "") != ending:
            raise UnsupportedSyntaxError(
                f"template: {line.strip()!r} is no equation of a state; write {states[0]}{ending} = ..., with ; between"
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


def law_of(right: str, features: Sequence[str], runs: int) -> Template | Model:
    """The template of a right side, or its equation if no function is unknown.

    Parameters
    ----------
    right : str
    features : sequence of str
        States, controls, perhaps the time and the number of the run.
    runs : int

    Raises
    ------
    UnsupportedSyntaxError
        If the text is not part of the language of templates, or its constants depend on something else than the run.
    """
    try:
        body = ast.parse(right, mode="eval").body
    except (SyntaxError, ValueError, RecursionError):
        raise UnsupportedSyntaxError(f"template: {right!r} is no formula") from None
    nodes = list(ast.walk(body))
    functions = {node.func.id for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    if functions - set(STANDARD):
        found = template(right)
        if found.groups not in (None, RUN):
            raise UnsupportedSyntaxError(f"template: {found.groups!r} is no group; constants depend on the run: k[run]")
        return found
    names = {node.id for node in nodes if isinstance(node, ast.Name)} - functions - set(features)
    grouped = {node.value.id for node in nodes if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name)}
    lines = [f"    {name} = {cases(runs) if name in grouped else '1.0'}" for name in sorted(names)]
    plain = re.sub(rf"\[\s*{RUN}\s*\]", "", right)
    if not lines:
        return Model(parse(plain, features), 0.0, 1.0)
    source = "\n".join([f"def formula({', '.join(features)}):", *lines, f"    return {plain}"])
    return Model(parse(source, features), 0.0, 1.0)
