"""Names of the values that a function returns."""

from __future__ import annotations

from dataclasses import replace

from shine.tensor.form.module import Function, Instruction, Value


def with_result_names(function: Function, wanted: tuple[Value, ...]) -> Function:
    """A function whose results have the names of some values; parameters keep their own."""
    parameters = set(function.parameters)
    now: dict[Value, Value] = {}
    for result, old in zip(function.results, wanted, strict=True):
        if result not in parameters and result not in now and old not in now.values():
            now[result] = old
    taken = {old.name for old in now.values()}
    names = {value.name for value in parameters} | {r.name for i in function.body for r in i.results} | taken
    for instruction in function.body:
        for value in instruction.results:
            if value not in now and value.name in taken:
                now[value] = replace(value, name=_free(value.name, names))
    if all(old == new for old, new in now.items()):
        return function

    def renamed(values: tuple[Value, ...]) -> tuple[Value, ...]:
        return tuple(now.get(value, value) for value in values)

    body = tuple(Instruction(renamed(i.results), i.operation, renamed(i.operands), i.attributes) for i in function.body)
    return replace(function, body=body, results=renamed(function.results))


def _free(name: str, names: set[str]) -> str:
    """A name that is not taken; it is taken then."""
    found = next(new for number in range(len(names) + 1) if (new := f"{name}.{number}") not in names)
    names.add(found)
    return found
