"""Nodes -> instructions: applies the rules in order; calls are written in place, branches and loops as functions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from shine.base.errors import FormError, GraphImportError
from shine.base.typing import AnyArray
from shine.lang.forms.names import shown
from shine.tensor.form import module as form
from shine.tensor.form.shapes import Signature
from shine.tensor.form.verifier import without_dead
from shine.tensor.frontend.graph_builder import Budget, GraphBuilder, Operand, Output, Variable
from shine.tensor.graphdef.constants import ELEMENTS, RESOURCE, VARIANT, Tensors
from shine.tensor.graphdef.node import Function, Library, Node, Operation, Rule, check_arguments
from shine.tensor.graphdef.order import Outputs, Step, chosen
from shine.tensor.graphdef.rules import OUTPUT_NAMES, rule, variables
from shine.tensor.graphdef.rules.variables import VARIABLES, WRITES

MAX_DEPTH = 40
"""Deepest nesting of branches and loops: each takes some levels of Python's stack."""

_ARGUMENTS = {**ELEMENTS, RESOURCE: "resource", VARIANT: variables.VARIANT}
"""Element types of arguments of functions: variables can be passed on."""


_TAKE_LISTS = {*variables.LISTS, "Identity", "IdentityN"}


class _Placed(GraphImportError):
    """An error that names its node already."""


@dataclass(frozen=True)
class Called:
    """A function of the graph with the attributes of its call."""

    function: Function
    bindings: Mapping[str, Any]


@dataclass
class _Frame:
    """A graph or a function while it is evaluated, and the node that calls it."""

    steps: Iterator[Step]
    values: dict[str, Outputs[Output]]
    bindings: Mapping[str, Any]
    function: Function | None = None
    node: Node | None = None


Call = Callable[["Evaluation", GraphBuilder, Node, Sequence[Output]], Sequence[Output]]
"""The rule of an operation that calls functions."""


class Evaluation:
    """Writes functions of a module from the nodes of a graph and of its functions.

    Parameters
    ----------
    library : Library
    variables : callable
        The value of a variable by its name.
    calls : mapping of str to callable
        Rules of operations that call functions.
    check : callable, optional
        Raises `GraphImportError` for operations that are not wanted.
    dtypes : mapping of int to str
        Element types that are read, by TensorFlow's numbers.
    """

    def __init__(
        self,
        library: Library,
        variables: Callable[[str], AnyArray | form.Value],
        calls: Mapping[str, Call],
        check: Callable[[str], None] | None = None,
        dtypes: Mapping[int, str] = ELEMENTS,
    ) -> None:
        self.library = library
        self.functions: dict[str, form.Function] = {}
        self._variables = variables
        self._calls = calls
        self._tensors = Tensors(dtypes)
        self._active: set[str] = set()
        self._check, self._depth = check, 0
        self._budget = Budget()

    def building(self, name: str) -> GraphBuilder:
        """A new function of the module."""
        return GraphBuilder(name, self._signature, self._variables, self._budget)

    def run(
        self, b: GraphBuilder, steps: Sequence[Step], values: dict[str, Outputs[Output]], bindings: Mapping[str, Any]
    ) -> None:
        """Add the outputs of each node to those that are known.

        Parameters
        ----------
        b : GraphBuilder
        steps : sequence of Step
        values : dict of str to Outputs
            Outputs of nodes that are given, such as feeds.
        bindings : mapping of str to AttrValue

        Raises
        ------
        GraphImportError
            If a node cannot be read; the message names it.
        """
        self._run(b, _Frame(iter(steps), values, bindings))

    def _run(self, b: GraphBuilder, outermost: _Frame) -> None:
        """Evaluate frames; calls of functions have theirs on a stack, so that they may nest deeply."""
        stack = [outermost]
        while stack:
            frame = stack[-1]
            step = next(frame.steps, None)
            if step is None:
                stack.pop()
                if frame.node is None or not stack:
                    continue
            elif step.node.name in frame.values:
                continue
            node = frame.node if step is None else Node(step.node, frame.bindings, self._tensors)
            assert node is not None
            try:
                if step is None:
                    stack[-1].values[node.name] = self._returned(frame)
                    continue
                self._budget.node()
                inputs = [chosen(frame.values, reference) for reference in step.inputs]
                called = None if node.op in self._calls else self.library.called(node)
                if called is None:
                    frame.values[node.name] = self._outputs(b, node, inputs)
                else:
                    stack.append(self._entered(Called(*called), inputs, node))
            except _Placed:
                raise
            except (GraphImportError, FormError) as error:
                inside = stack[-1].function
                place = f"{node} in function {shown(inside.name)}" if inside else str(node)
                raise _Placed(f"{place}: {error}") from None

    def _entered(self, called: Called, inputs: Sequence[Output], node: Node | None = None) -> _Frame:
        """The frame of a call."""
        function = called.function
        check_arguments(function.arguments, inputs, called.bindings, dtypes=_ARGUMENTS)
        if function.operations & WRITES:
            raise GraphImportError(f"function {shown(function.name)} changes variables; they are frozen")
        if function.name in self._active:
            raise GraphImportError(f"function {shown(function.name)} calls itself, which is not supported")
        self._active.add(function.name)
        values = {each.name: Outputs[Output]([value]) for each, value in zip(function.arguments, inputs, strict=True)}
        return _Frame(iter(function.steps), values, called.bindings, function, node)

    def _returned(self, frame: _Frame) -> Outputs[Output]:
        """The results of a call."""
        function = frame.function
        assert function is not None
        self._active.discard(function.name)
        results = [chosen(frame.values, reference) for reference in function.references]
        check_arguments(function.results, results, frame.bindings, "result", dtypes=_ARGUMENTS)
        by_name = frame.node is not None and frame.node.op == function.name
        return Outputs(results, [each.name for each in function.results] if by_name else ())

    def _outputs(self, b: GraphBuilder, node: Node, inputs: Sequence[Output]) -> Outputs[Output]:
        if node.op in self._calls:
            return Outputs(self._calls[node.op](self, b, node, inputs))
        if self._check is not None:
            self._check(node.op)
        has_variables = any(isinstance(each, Variable) for each in inputs)
        if node.op in VARIABLES and (has_variables or node.op != "Identity"):
            return _applied(VARIABLES[node.op], b, node, inputs)
        if has_variables:
            raise GraphImportError("its input is a variable; only its value can be computed with")
        operands = [each for each in inputs if isinstance(each, Operand)]
        if any(isinstance(each, variables.TensorList) for each in operands) and node.op not in _TAKE_LISTS:
            raise GraphImportError("its input is a list of tensors, which only operations on lists take")
        return _applied(rule(node.op), b, node, operands)

    def function(self, node: Node, key: str) -> Called:
        """The function that an attribute names."""
        return Called(*self.library.named(*node.function(key)))

    def written_out(self, b: GraphBuilder, called: Called, inputs: Sequence[Output]) -> Sequence[Output]:
        """The results of a call, whose nodes become part of the caller."""
        frame = self._entered(called, inputs)
        if self._depth == MAX_DEPTH:
            raise GraphImportError(f"branches and loops nest more than {MAX_DEPTH} deep")
        self._depth += 1
        self._run(b, frame)
        self._depth -= 1
        return self._returned(frame).values

    def separate(self, name: str, called: Called, inputs: Sequence[Output], passed: Sequence[bool]) -> str:
        """Write a function of the module for some types of arguments.

        Parameters
        ----------
        name : str
            Wanted name.
        called : Called
        inputs : sequence of Operand or Variable
            Arguments, whose types the parameters get.
        passed : sequence of bool
            Arguments that are passed at run time; the others are constants or variables.

        Returns
        -------
        str
            Name of the function. Its results are those of the graph's function that are tensors.
        """
        b = GraphBuilder(self._free(name), self._signature, self._frozen, self._budget)
        arguments: list[Output] = []
        for place, (given, is_passed) in enumerate(zip(inputs, passed, strict=True)):
            if isinstance(given, Variable):
                arguments.append(given)
            elif is_passed:
                parameter = b.builder.parameter(f"a{place}", given.value.type)
                arguments.append(replace(given, value=parameter, known=None))
            else:
                assert given.known is not None
                constant = b.constant(given.known)
                arguments.append(replace(given, value=constant.value, known=constant.known))
        results = self.written_out(b, called, arguments)
        values = [result.value for result in results if isinstance(result, Operand)]
        self.functions[b.builder.name] = without_dead(b.builder.done(*values))
        return b.builder.name

    def without(self, name: str, places: Sequence[int]) -> None:
        """Drop some results of a function."""
        function = self.functions[name]
        kept = tuple(value for place, value in enumerate(function.results) if place not in places)
        self.functions[name] = without_dead(form.Function(name, function.parameters, function.body, kept))

    def _free(self, wanted: str) -> str:
        """A name for a function that none has yet."""
        name = re.sub(r"[^A-Za-z0-9_.]", "_", wanted)
        name = base = name if re.match("[A-Za-z_]", name) and name != "main" else f"f_{name}"
        number = 1
        while name in self.functions:
            number += 1
            name = f"{base}_{number}"
        # The name is taken from now on, although its body comes later.
        self.functions[name] = form.Function(name, (), (), ())
        return name

    def _frozen(self, name: str) -> AnyArray:
        """The value of a variable in a branch or loop, which has no parameters but its arguments."""
        found = self._variables(name)
        if isinstance(found, form.Value):
            raise GraphImportError(f"variable {shown(name)} is an argument, and is read in a branch or loop; freeze it")
        return found

    def _signature(self, name: str) -> Signature:
        function = self.functions[name]
        return function.parameter_types, function.result_types


def _applied(applied: Rule, b: GraphBuilder, node: Node, inputs: Sequence[Any]) -> Outputs[Output]:
    """The outputs of a node by its rule."""
    found = applied(Operation(node, b, inputs))
    return Outputs([found] if isinstance(found, Output) else found, OUTPUT_NAMES.get(node.op, ()))
