"""Elementwise modules -> programs: formulas over numbers, whose arguments may have other shapes.

An instruction becomes a statement; a composite that a reader wrote out becomes a call of it again. Constants whose
elements are equal become numbers where other operands determine the shape of the result.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from shine.base.errors import GraphImportError
from shine.base.typing import AnyArray
from shine.lang.forms.library import STANDARD
from shine.lang.forms.tape import application
from shine.lang.forms.tree import Primitive
from shine.lang.program.builder import ProgramBuilder, number
from shine.lang.program.program import STORAGE_TYPES, Program
from shine.tensor.form.interpreter import evaluate
from shine.tensor.form.module import Function, Instruction, Module, Value
from shine.tensor.form.operations import CALLS, FROM_THE_LANGUAGE
from shine.tensor.form.types import without_ones
from shine.tensor.frontend.definitions import FUNCTIONS
from shine.tensor.passes.specialize import inline

Composites = Mapping[str, tuple[Primitive, tuple[Value, ...]]]
"""Functions that wrote values, by the values' names, with their operands."""

_FUNCTIONS = {
    "and": "logical_and", "or": "logical_or", "not": "logical_not", "select": "where", "round": "round_even",
}  # fmt: skip
"""Functions of programs that have another name among the operations of modules."""

_ADVICE = "only elementwise operations are part of a formula; shine.tensor compiles all others"


def program_of(module: Module) -> Program:
    """The function `main` of a module as a program.

    Parameters
    ----------
    module : Module
        All its operations are elementwise. Calls are written out.

    Returns
    -------
    Program
        Its arguments and outputs have the module's labels. Shapes are broadcast when it is called.

    Raises
    ------
    GraphImportError
        If a result depends on an operation that is not elementwise, or on elements that programs do not have.
    """
    main = (inline(module) if len(module.functions) > 1 else module).function("main")
    labels = {value.name: module.labels.get(value.name, value.name) for value in (*main.parameters, *main.results)}
    return function_program(main, [labels[value.name] for value in main.results], labels, name=module.name)


def function_program(
    function: Function,
    outputs: Sequence[str],
    labels: Mapping[str, str],
    *,
    composites: Composites | None = None,
    name: str = "graph",
) -> Program:
    """A function as a program.

    Parameters
    ----------
    function : Function
    outputs : sequence of str
        Label of each result.
    labels : mapping of str to str
        Those of parameters and constants, by the values' names.
    composites : mapping, optional
    name : str

    Raises
    ------
    GraphImportError
        As of `program_of`.
    """
    return _Translation(function, labels, composites or {}).program(outputs, name)


@dataclass(frozen=True, eq=False)
class _Held:
    """A value in a program: a name, or the elements of a constant.

    Parameters
    ----------
    shape : tuple of int
        Of the name; it is broadcast where it is used.
    """

    shape: tuple[int, ...]
    name: str = ""
    array: AnyArray | None = None

    @property
    def number(self) -> ast.expr | None:
        """The value of all elements of a constant, if they are equal to the bit."""
        if self.array is None or not self.array.size:
            return None
        first = self.array.reshape(-1)[0] if self.array.size == 1 else self.array[(0,) * self.array.ndim]
        if self.array.size > 1 and any(self.array.strides):
            bits = np.ascontiguousarray(self.array).view(f"u{self.array.itemsize}")
            if not (bits == bits.reshape(-1)[0]).all():
                return None
        return _literal(first)


class _Translation:
    """A program in the making."""

    def __init__(self, function: Function, labels: Mapping[str, str], composites: Composites) -> None:
        self.function, self.labels = function, labels
        self.composites = {result: self._known(*written) for result, written in composites.items()}
        primitives = {primitive.name: primitive for primitive, _ in reversed(self.composites.values())}
        # Of two functions with one name, the second one is written out.
        self.composites = {k: v for k, v in self.composites.items() if primitives[v[0].name] is v[0]}
        functions = {**STANDARD, "round_even": FUNCTIONS["round_even"], **primitives}
        self.builder = ProgramBuilder(functions)
        self.held: dict[Value, _Held] = {}
        self.taken = {labels[value.name] for value in function.parameters}

    @staticmethod
    def _known(function: Primitive, operands: tuple[Value, ...]) -> tuple[Primitive, tuple[Value, ...]]:
        """The language's own function in the place of a form of it for derivatives; TensorFlow's are its own."""
        own = STANDARD.get(function.name)
        is_own = own is not None and own.arity == function.arity and FUNCTIONS.get(function.name) is not function
        return (own if own is not None and is_own else function), operands

    def program(self, outputs: Sequence[str], name: str) -> Program:
        for value in self.function.parameters:
            label = self.labels[value.name]
            self.held[value] = _Held(value.type.shape, self.builder.parameter(label, _dtype(value), value.type.shape))
        for instruction in self._needed():
            try:
                self._read(instruction)
            except GraphImportError as error:
                raise GraphImportError(f"output {self._output_of(instruction, outputs)!r} {error}") from None
        results = []
        for label, value in zip(outputs, self.function.results, strict=True):
            held = self.held[value]
            if held.array is None and held.shape != value.type.shape:
                raise GraphImportError(
                    f"output {label!r} has the shape {list(value.type.shape)} by repetition; {_ADVICE}"
                )
            results.append((label, self._named(value), _dtype(value)))
        return self.builder.finish(results, name)

    def _needed(self) -> list[Instruction]:
        """The instructions that results depend on, without those inside of composites."""
        wanted, found = set(self.function.results), []
        for instruction in reversed(self.function.body):
            if wanted.intersection(instruction.results):
                written = self.composites.get(instruction.results[0].name)
                wanted.update(instruction.operands if written is None else written[1])
                found.append(instruction)
        return found[::-1]

    def _output_of(self, instruction: Instruction, outputs: Sequence[str]) -> str:
        """The first output that depends on an instruction."""
        reached = set(instruction.results)
        for each in self.function.body:
            if reached.intersection(each.operands):
                reached.update(each.results)
        return next(label for label, value in zip(outputs, self.function.results, strict=True) if value in reached)

    def _read(self, instruction: Instruction) -> None:
        name, operands, value = instruction.operation, instruction.operands, instruction.results[0]
        written = self.composites.get(value.name)
        if written is not None:
            function, operands = written
            self.held[value] = self._applied(function.name, operands, value, _type(operands[0]))
        elif name == "constant":
            self.held[value] = _Held(value.type.shape, array=np.asarray(instruction.attributes["value"]))
        elif name == "broadcast":
            known = self._constants(operands)
            wide = _Held(value.type.shape, array=np.broadcast_to(known[0], value.type.shape)) if known else None
            self.held[value] = wide or self.held[operands[0]]
        elif name == "cast":
            self.held[value] = self._cast(operands[0], value)
        elif name in _FUNCTIONS or name in FROM_THE_LANGUAGE:
            self.held[value] = self._computed(name, operands, value)
        elif name not in CALLS and len(known := self._constants(operands)) == len(operands):
            for result, array in zip(instruction.results, evaluate(instruction, known), strict=True):
                self.held[result] = _Held(result.type.shape, array=np.asarray(array, result.type.numpy))
        elif name == "reshape" and without_ones(operands[0].type.shape) == without_ones(value.type.shape):
            self.held[value] = self.held[operands[0]]
        else:
            types = ", ".join(str(operand.type) for operand in operands)
            raise GraphImportError(f"depends on {name} of {types}; {_ADVICE}")

    def _constants(self, operands: Sequence[Value]) -> list[AnyArray]:
        """The arrays of those operands that are constants."""
        arrays = [self.held[operand].array for operand in operands]
        return [array for array in arrays if array is not None]

    def _computed(self, name: str, operands: Sequence[Value], value: Value) -> _Held:
        """An elementwise operation, in the number type of its operands."""
        branches = operands[1:] if name == "select" else operands
        if value.type.dtype != "bool" and name != "select":
            kind = _type(value)
        elif _dtype(branches[0]) != "bool":
            kind = _type(branches[0])
        else:
            # Truth is a number of the type that it came from.
            held = [self.held[each] for each in (*branches, *operands)]
            kind = next((self.builder.dtype_of(each.name) for each in held if each.name), STORAGE_TYPES["bool"])
        if name == "pow" and kind.startswith("int") and self.held[operands[1]].array is None:
            # A negative power of the integer 0 is 0 in modules, and an error in programs.
            base, exponent = self._operands(operands, value.type.shape, kind)[0]
            is_error = ast.BoolOp(ast.And(), [_compared(exponent, ast.Lt()), _compared(base, ast.Eq())])
            guarded = ast.BinOp(ast.IfExp(is_error, ast.Constant(2), base), ast.Pow(), exponent)
            return _Held(value.type.shape, self.builder.assign(kind, guarded))
        return self._applied(_FUNCTIONS.get(name, name), operands, value, kind)

    def _applied(self, function: str, operands: Sequence[Value], value: Value, kind: str) -> _Held:
        expressions, shape = self._operands(operands, value.type.shape, kind)
        made = ast.IfExp(*expressions) if function == "where" else application(function, expressions)
        return _Held(shape, self.builder.assign(kind, made))

    def _cast(self, operand: Value, value: Value) -> _Held:
        if value.type.dtype == "bool":
            (expression,), shape = self._operands([operand], value.type.shape, _type(operand))
            kind = _type(operand)
            return _Held(shape, self.builder.assign(kind, application("ne", [expression, ast.Constant(0)])))
        held = self.held[operand]
        shape = held.shape if held.array is None else value.type.shape
        return _Held(shape, self.builder.convert(self._named(operand), _type(value)))

    def _operands(
        self, operands: Sequence[Value], shape: tuple[int, ...], kind: str
    ) -> tuple[list[ast.expr], tuple[int, ...]]:
        """Expressions of operands in a number type, and the shape that they are broadcast to."""
        numbers = {operand: self.held[operand].number for operand in operands}
        shapes = [self.held[operand].shape for operand in operands if numbers[operand] is None]
        found = np.broadcast_shapes(*shapes)
        if found != shape:
            # Constants of equal elements that add to the shape are arrays.
            numbers = {each: given if each.type.rank == 0 else None for each, given in numbers.items()}
            shapes = [self.held[operand].shape for operand in operands if numbers[operand] is None]
            found = np.broadcast_shapes(*shapes)
        expressions = []
        for operand in operands:
            given = numbers[operand]
            if given is None:
                given = ast.Name(self.builder.convert(self._named(operand), kind), ast.Load())
            expressions.append(given)
        return expressions, found

    def _named(self, value: Value) -> str:
        """The name of a value; a constant gets one here: of a statement if it is a scalar, else of a parameter."""
        held = self.held[value]
        if held.array is None:
            return held.name
        literal = held.number
        if held.array.ndim == 0 and literal is not None:
            name = self.builder.assign(STORAGE_TYPES[_dtype(value)], literal)
        else:
            label = base = self.labels.get(value.name, "constant")
            count = 1
            while label in self.taken:
                count += 1
                label = f"{base}_{count}"
            self.taken.add(label)
            name = self.builder.parameter(label, _dtype(value), held.array.shape, held.array)
        self.held[value] = _Held(held.array.shape, name)
        return name


def _dtype(value: Value) -> str:
    """A value's storage type in programs."""
    name = str(value.type.numpy)
    if name not in STORAGE_TYPES:
        raise GraphImportError(f"depends on elements {value.type.dtype}; formulas have f32, f64, i32, i64 and bool")
    return name


def _type(value: Value) -> str:
    """A value's number type in programs."""
    return STORAGE_TYPES[_dtype(value)]


def _literal(value: np.generic) -> ast.expr:
    if value.dtype.kind != "f":
        return number(int(value))
    if value.dtype == np.float32 and np.isfinite(value):
        # The shortest decimal with this float32 value reads better than all digits of float64.
        short = float(str(value))
        return number(short if np.float32(short) == value else float(value))
    return number(float(value))


def _compared(operand: ast.expr, operator: ast.cmpop) -> ast.expr:
    return ast.Compare(operand, [operator], [ast.Constant(0)])
