"""Dependencies in a program: the parameters of each output, and the part that some outputs need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from shine.lang.forms.tree import names_in
from shine.lang.program.program import Program


def parameters_read(program: Program) -> tuple[tuple[int, ...], ...]:
    """Positions of the parameters that each output depends on, in increasing order."""
    # A set of parameters is a number, one bit for each: programs have up to hundreds of thousands of statements.
    read = {parameter.name: 1 << position for position, parameter in enumerate(program.parameters)}
    for statement in program.statements:
        read[statement.name] = 0
        for name in names_in(statement.value):
            read[statement.name] |= read[name]
    positions = range(len(program.parameters))
    return tuple(tuple(p for p in positions if read[output.name] >> p & 1) for output in program.outputs)


def part(program: Program, outputs: Sequence[int]) -> Program:
    """The program with only the outputs at the given positions."""
    chosen = tuple(program.outputs[position] for position in outputs)
    needed = {output.name for output in chosen}
    statements = []
    for statement in reversed(program.statements):
        if statement.name in needed:
            statements.append(statement)
            needed.update(names_in(statement.value))
    parameters = tuple(parameter for parameter in program.parameters if parameter.name in needed)
    return replace(program, parameters=parameters, statements=tuple(reversed(statements)), outputs=chosen)
