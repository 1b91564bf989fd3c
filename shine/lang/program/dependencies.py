"""Which names the parts of a program read, and the part that some outputs need."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shine.lang.program.program import Program


def names_in(expression: ast.expr) -> tuple[str, ...]:
    """Names whose values an expression reads, each once, in the order in which they are first read."""
    found: dict[str, None] = {}
    waiting: list[ast.AST] = [expression]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Name):
            found[node.id] = None
        elif isinstance(node, ast.Call):
            # The name of the function is none of a value, even if a value has the same.
            waiting += reversed(node.args)
        else:
            waiting += reversed(list(ast.iter_child_nodes(node)))
    return tuple(found)


def parameters_read(program: Program) -> tuple[tuple[int, ...], ...]:
    """Positions of the parameters that each output depends on, in their order."""
    # A set of parameters is the bits of a number: programs have up to hundreds of thousands of statements.
    read = {parameter.name: 1 << position for position, parameter in enumerate(program.parameters)}
    for statement in program.statements:
        read[statement.name] = 0
        for name in names_in(statement.value):
            read[statement.name] |= read[name]
    positions = range(len(program.parameters))
    return tuple(tuple(p for p in positions if read[output.name] >> p & 1) for output in program.outputs)


def part(program: Program, outputs: Sequence[int]) -> Program:
    """A program with only some outputs, given by position, and what they need."""
    chosen = tuple(program.outputs[position] for position in outputs)
    needed = {output.name for output in chosen}
    statements = []
    for statement in reversed(program.statements):
        if statement.name in needed:
            statements.append(statement)
            needed.update(names_in(statement.value))
    parameters = tuple(parameter for parameter in program.parameters if parameter.name in needed)
    return replace(program, parameters=parameters, statements=tuple(reversed(statements)), outputs=chosen)
