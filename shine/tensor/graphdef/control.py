"""Conditions and loops, which call functions of the graph; those of TensorFlow 1 are choices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from shine.base.errors import GraphImportError
from shine.tensor.form.shapes import Types
from shine.tensor.frontend.graph_builder import GraphBuilder, Operand, Output, Variable
from shine.tensor.graphdef.evaluation import Call, Evaluation
from shine.tensor.graphdef.node import Function, Node, check_count


def if_(evaluation: Evaluation, b: GraphBuilder, node: Node, inputs: Sequence[Output]) -> Sequence[Output]:
    """If: one of two functions, by a condition. A constant condition leaves one of them."""
    check_count(inputs, 1, -1)
    condition, *arguments = inputs
    if isinstance(condition, Variable) or condition.shape != ():
        raise GraphImportError(f"its condition must be a scalar, but has shape {list(condition.shape)}")
    branches = [evaluation.function(node, key) for key in ("then_branch", "else_branch")]
    if condition.known is not None:
        return evaluation.written_out(b, branches[0 if condition.known else 1], arguments)
    if condition.dtype != "bool":
        condition = b.ne(condition, b.like(condition, 0))
    passed = [_is_passed(each) for each in arguments]
    names = [
        evaluation.separate(f"{node.name}_{side}", branch, arguments, passed)
        for side, branch in zip(("then", "else"), branches, strict=True)
    ]
    operands = [
        each for each, is_passed in zip(arguments, passed, strict=True) if is_passed and isinstance(each, Operand)
    ]
    _check_results(branches[0].function, evaluation.functions[names[0]].result_types)
    return b.emit("cond", [condition, *operands], true=names[0], false=names[1])


def while_(evaluation: Evaluation, b: GraphBuilder, node: Node, inputs: Sequence[Output]) -> Sequence[Output]:
    """While: a function of the state, as long as another one is true. Arguments that the body passes on stay outside
    the state if they are variables or small constants."""
    condition, body = evaluation.function(node, "cond"), evaluation.function(node, "body")
    for count, what in ((len(body.function.arguments), "arguments"), (len(body.function.references), "results")):
        if count != len(inputs):
            raise GraphImportError(f"its body has {count} {what}, and the loop {len(inputs)} values")
    fixed = _invariants(body.function)
    passed = [_is_passed(each) or place not in fixed for place, each in enumerate(inputs)]
    changed = [place for place, each in enumerate(inputs) if isinstance(each, Variable) and place not in fixed]
    if changed:
        raise GraphImportError(f"its body changes argument {changed[0]}, which is a variable")
    names = [
        evaluation.separate(f"{node.name}_{part}", called, inputs, passed)
        for part, called in (("condition", condition), ("body", body))
    ]
    tensors = [each for each in inputs if isinstance(each, Operand)]
    are_passed = [is_passed for each, is_passed in zip(inputs, passed, strict=True) if isinstance(each, Operand)]
    evaluation.without(names[1], [place for place, is_passed in enumerate(are_passed) if not is_passed])
    state = [each for each, is_passed in zip(tensors, are_passed, strict=True) if is_passed]
    results = iter(b.emit("while", state, condition=names[0], body=names[1]))
    return [
        replace(each, value=next(results).value, known=None) if is_passed and isinstance(each, Operand) else each
        for each, is_passed in zip(inputs, passed, strict=True)
    ]


def _is_passed(given: Output) -> bool:
    if isinstance(given, Variable):
        return False
    # Constants of at most so many elements are written into branches and loops; larger ones are passed to them.
    return given.known is None or given.known.size > 64


def _check_results(function: Function, types: Types) -> None:
    if len(types) != len(function.results):
        raise GraphImportError("its branches return variables, which is not supported")


def _invariants(function: Function) -> set[int]:
    """The arguments that a body returns as they are, by their places."""
    steps = {step.node.name: step for step in function.steps}
    fixed = set()
    for place, (argument, reference) in enumerate(zip(function.arguments, function.references, strict=True)):
        name = reference.node
        while name in steps and steps[name].node.op == "Identity" and steps[name].inputs:
            name = steps[name].inputs[0].node
        if name == argument.name:
            fixed.add(place)
    return fixed


CALLS: dict[str, Call] = {
    **dict.fromkeys(("If", "StatelessIf"), if_),
    **dict.fromkeys(("While", "StatelessWhile"), while_),
}
"""The rule of each operation that calls functions by attributes."""


_BOTH = frozenset({0, 1})

_MOST_VISITS = 1 << 22
"""Most nodes that are visited to find branches, some seconds' work."""


def with_choices(nodes: Mapping[str, Any]) -> dict[str, Any]:
    """The nodes, of which each `Merge` reads the predicate, its value if true, and its value if false.

    One whose predicate cannot be found stays as it is, and is an error where it is needed.

    A `GraphImportError` if there are very many conditions that depend on very many nodes.
    """
    result = dict(nodes)
    visits = 0
    for name, node in nodes.items():
        if node.op == "Merge":
            values = [text for text in node.input if not text.startswith("^")]
            walks = [_sides(nodes, text) for text in values]
            visits += sum(count for _, count in walks)
            if visits > _MOST_VISITS:
                raise GraphImportError("it has so many conditions (Switch, Merge) that their branches are not searched")
            result[name] = _choice(node, values, [sides for sides, _ in walks])
    return result


def _choice(node: Any, values: Sequence[str], sides: Sequence[Mapping[str, int]]) -> Any:
    if len(values) != 2:
        return node
    first, second = sides
    for predicate in {**first, **second}:
        a, b = first.get(predicate), second.get(predicate)
        # A branch of constants may depend on nothing.
        if {a, b} == _BOTH or (None in (a, b) and len(first.keys() | second.keys()) == 1):
            is_first_true = a == 1 or b == 0
            choice = type(node)()
            choice.CopyFrom(node)
            del choice.input[:]
            choice.input.extend([predicate, *(values if is_first_true else reversed(values))])
            return choice
    return node


def _sides(nodes: Mapping[str, Any], start: str) -> tuple[dict[str, int], int]:
    """The predicates that a value depends on being true (1) or false (0), and how many nodes that took."""
    found: dict[str, set[int]] = {}
    waiting, seen = [start], {start}
    while waiting:
        name, _, index = waiting.pop().removeprefix("^").partition(":")
        node = nodes.get(name)
        if node is None:
            continue
        inputs = list(node.input)
        if node.op == "Switch" and len(inputs) > 1:
            found.setdefault(_origin(nodes, inputs[1]), set()).add(int(index == "1"))
        for text in inputs:
            if text not in seen:
                seen.add(text)
                waiting.append(text)
    # A condition inside that branch has both sides.
    return {predicate: min(sides) for predicate, sides in found.items() if sides != _BOTH}, len(seen)


def _origin(nodes: Mapping[str, Any], text: str) -> str:
    """The value that a chain of `Identity` nodes passes on."""
    seen = set()
    while text not in seen:
        seen.add(text)
        node = nodes.get(text.partition(":")[0])
        if node is None or node.op != "Identity" or not node.input:
            break
        text = node.input[0]
    return text.removesuffix(":0")
