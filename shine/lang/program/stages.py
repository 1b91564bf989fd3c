"""Splits a long program into several short programs that run one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from shine.lang.forms.tree import names_in
from shine.lang.program.program import STORAGE_TYPES, Output, Parameter, Program, Statement


@dataclass(frozen=True)
class Stage:
    """Statements of a program that are compiled together.

    Parameters
    ----------
    program : Program
        Its parameters are parameters of the whole program, with their names, and values of earlier stages.
    targets : tuple of (int or str)
        Target of each output: a position among the whole program's outputs, or the name of a value for later stages.
    """

    program: Program
    targets: tuple[int | str, ...]


def stages(program: Program, most: int) -> tuple[Stage, ...]:
    """Split a program into stages of at most `most` nodes. A statement with more nodes is a stage of its own.

    Compilers take more than linear time for a long function, and keep all its values on the stack.
    """
    if program.size <= most:
        return (Stage(program, tuple(range(len(program.outputs)))),)
    groups = _groups(program, most)
    dtypes = {parameter.name: STORAGE_TYPES[parameter.dtype] for parameter in program.parameters}
    dtypes |= {statement.name: statement.dtype for statement in program.statements}
    parameters = {parameter.name: parameter for parameter in program.parameters}
    reads = [dict.fromkeys(name for each in group for name in names_in(each.value)) for group in groups]
    last = {name: number for number, names in enumerate(reads) for name in names}
    home = {each.name: number for number, group in enumerate(groups) for each in group}
    targets: list[list[int | str]] = [[] for _ in groups]
    for position, output in enumerate(program.outputs):
        number = home.get(output.name, 0)
        targets[number].append(position)
        reads[number][output.name] = None
    for name, number in home.items():
        if last.get(name, number) > number:
            targets[number].append(name)
    made = []
    for group, names, own in zip(groups, reads, targets, strict=True):
        inside = {each.name for each in group}
        inputs = [parameters.get(name, Parameter(name, dtypes[name], name)) for name in names if name not in inside]
        outputs = [
            program.outputs[target] if isinstance(target, int) else Output(target, target, dtypes[target])
            for target in own
        ]
        part = replace(program, parameters=tuple(inputs), statements=tuple(group), outputs=tuple(outputs))
        made.append(Stage(part, tuple(own)))
    return tuple(made)


def _groups(program: Program, most: int) -> Sequence[Sequence[Statement]]:
    groups: list[list[Statement]] = [[]]
    size = 0
    for statement in program.statements:
        size += statement.size
        if size > most and groups[-1]:
            groups.append([])
            size = statement.size
        groups[-1].append(statement)
    return groups
