"""Systems for mathematics: LaTeX, and SymPy's equations."""

from __future__ import annotations

from typing import Any

from shine.formats.write.latex import latex
from shine.formats.write.latex.names import latex_name
from shine.formats.write.sympy import sympy_expression, sympy_source
from shine.formats.write.systems.system import Grid, System
from shine.lang.forms.names import unique


def latex_system(system: System, name: str = "f") -> str:
    """The equations as an `aligned` block of LaTeX's mathematics mode; the name is not in it."""
    left = "{{{}}}_{{k+1}}" if system.is_map else r"\dot{{{}}}" if system.grid is None else r"\partial_t {}"
    lines = []
    for state, tree in zip(system.states, system.trees, strict=True):
        rows = latex(tree, headings=system.headings).splitlines()
        # A block ends with the formula, after constants by the run and functions.
        *own, formula = [row.removesuffix(r" \\") for row in rows[1:-1] or rows]
        lines += [f"{left.format(latex_name(state))} &= {formula.split(' &= ')[-1]}", *own]
    lines = list(dict.fromkeys(lines))
    return "\\begin{aligned}\n" + " \\\\\n".join(lines) + "\n\\end{aligned}\n"


def sympy_equations(system: System) -> list[Any]:
    """The equations as SymPy's `Eq` of the derivative of each state, a function of the time, or of the next state.

    An `ExportError` if SymPy is not installed, or cannot hold a formula.
    """
    expressions = [sympy_expression(tree) for tree in system.trees]
    import sympy

    time = sympy.Symbol(system.time, real=True)
    functions = {sympy.Symbol(state, real=True): sympy.Function(state)(time) for state in system.states}
    if system.grid is not None:
        return _field_equations(system, system.grid, expressions)
    return [
        sympy.Eq(
            function.subs(time, time + 1) if system.is_map else function.diff(time),
            expression.subs(functions),
            evaluate=False,
        )
        for function, expression in zip(functions.values(), expressions, strict=True)
    ]


def _field_equations(system: System, grid: Grid, expressions: list[Any]) -> list[Any]:
    """As `sympy_equations`, of fields, which are functions of the time and of the coordinates."""
    import sympy

    time, *space = (sympy.Symbol(name, real=True) for name in (system.time, *grid.axes))
    fields = [sympy.Function(state)(time, *space) for state in system.states]
    derivatives = [
        field.diff(*((axis, count) for axis, count in zip(space, counts, strict=True) if count))
        if any(counts)
        else field
        for counts in grid.counts
        for field in fields
    ]
    meant = {sympy.Symbol(name, real=True): each for name, each in zip(grid.features, derivatives, strict=True)}
    return [
        sympy.Eq(field.diff(time), expression.subs(meant), evaluate=False)
        for field, expression in zip(fields, expressions, strict=True)
    ]


def sympy_program(system: System, name: str = "f") -> str:
    """Python source that builds the right-hand side as a SymPy `Matrix` of its symbols, numbers to the last bit.

    Raises
    ------
    ValueError
        If the name is not a Python identifier.
    ExportError
        If SymPy is not installed, or cannot hold a formula.
    """
    heads: list[str] = []
    values: list[str] = []
    results: list[str] = []
    for place, tree in enumerate(system.trees):
        own = unique(f"{name}_{place}", {*system.parameters, *results})
        results.append(own)
        for line in sympy_source(tree, own, headings=system.headings).splitlines():
            if line.startswith(f"{own} = "):
                values.append(line)
            elif line and line not in heads:
                heads.append(line)
    return "\n".join([heads[0], "", *heads[1:], *values, f"{name} = Matrix([{', '.join(results)}])", ""])
