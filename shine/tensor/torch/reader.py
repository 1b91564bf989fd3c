"""A program of `torch.export` -> a module whose `@main` has the program's inputs; weights are constants."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from shine.base.errors import FormError, GraphImportError, placed
from shine.lang.forms.names import choices
from shine.lang.program.program import Program
from shine.tensor.form.module import Module, Value
from shine.tensor.form.types import HALVES, NAMES
from shine.tensor.form.verifier import verify
from shine.tensor.frontend.graph_builder import Budget, GraphBuilder, Operand
from shine.tensor.frontend.naming import fetched, free_name, with_results
from shine.tensor.programs import function_program
from shine.tensor.torch.call import Call
from shine.tensor.torch.elementwise import ELEMENTWISE
from shine.tensor.torch.layers import LAYERS
from shine.tensor.torch.movement import INDEXING, MOVEMENT, RESIZING

if TYPE_CHECKING:
    from torch.export import ExportedProgram

RULES = {**ELEMENTWISE, **MOVEMENT, **INDEXING, **RESIZING, **LAYERS}
"""Rules by the name of the operation, whatever its overload."""

_WITHOUT_RESULT = {"_assert_tensor_metadata", "_assert_async", "_assert_scalar"}
"""Operations that only check facts known here."""

_NOT_DECOMPOSED = ("softplus", "mish", "log_sigmoid_forward", "celu", "selu")
"""Functions that overflow in a branch that is not taken when torch decomposes them: the derivative would be NaN."""

DTYPES = {str(dtype) for dtype in NAMES}


def from_exported(program: ExportedProgram, *, fetches: Sequence[str] | None = None) -> Module:
    """Read a program of `torch.export`; a `GraphImportError` if it cannot be read; the message names the node.

    Parameters
    ----------
    program : ExportedProgram
        With static shapes, as ``torch.export.export(model.eval(), inputs)`` makes it.
    fetches : sequence of str, optional
        Values of the program that are the results, in place of its own: names of nodes (``tanh_1``), or of torch's
        modules (``net.2``) for what they return.

    Returns
    -------
    Module
        With one function, `@main`. Parameters and buffers are constants; labels are torch's names of the inputs.
    """
    with _one_line():
        return _Reader(_core(program)).module(fetches)


def program_from_exported(program: ExportedProgram) -> Program:
    """Read an elementwise program of `torch.export` as a program of rows.

    Parameters
    ----------
    program : ExportedProgram
        As of `from_exported`; a `torch.fx.GraphModule` is exported as other modules are.

    Returns
    -------
    Program
        Its arguments and outputs have torch's names and types, and its calls may have other shapes. Parameters and
        buffers without dimensions become numbers, others arrays.

    Raises
    ------
    GraphImportError
        If an operation is not elementwise, or cannot be read.
    """
    with _one_line():
        return _Reader(_core(program)).program_of_rows()


@contextmanager
def _one_line() -> Iterator[None]:
    with placed("", FormError, kind=GraphImportError):
        yield


def _core(program: ExportedProgram) -> ExportedProgram:
    """The program in torch's core operations."""
    kind = type(program)
    if kind.__name__ != "ExportedProgram" or not kind.__module__.startswith("torch."):
        raise GraphImportError(f"a program of torch.export.export(model, inputs) is needed, and not {kind.__name__}")
    try:
        with warnings.catch_warnings():
            # Torch warns of its own code.
            warnings.simplefilter("ignore")
            return program.run_decompositions(_decompositions())
    except Exception as error:
        # torch raises many kinds of errors for programs that it cannot decompose.
        raise GraphImportError(f"torch cannot decompose the program: {str(error).splitlines()[0][:200]}") from None


def _decompositions() -> Any:
    """Torch's own, but for the functions that stay whole."""
    import torch

    found = torch.export.default_decompositions()
    for name in _NOT_DECOMPOSED:
        found.pop(getattr(torch.ops.aten, name).default, None)
    return found


class _Reader:
    """Reads one program."""

    def __init__(self, program: Any) -> None:
        self.program = program
        self.b = GraphBuilder("main", _no_functions, _no_functions, Budget())
        self.values: dict[str, Any] = {}
        self.labels: dict[str, str] = {}
        self.constants: dict[str, str] = {}

    def module(self, fetches: Sequence[str] | None) -> Module:
        named = self._results()
        if fetches is not None:
            named = fetched(fetches, self._inner())
        main, labels = with_results(self.b.builder, named, self.labels)
        return verify(Module("torch", {"main": main}, {**self.labels, **labels}))

    def program_of_rows(self) -> Program:
        named = self._results()
        function = self.b.builder.done(*(value for _, value in named))
        labels = {**self.labels, **self.constants}
        outputs: dict[str, str] = {}
        for label, _ in named:
            # A value may be returned twice.
            outputs[free_name(outputs, label)] = label
        return function_program(function, list(outputs), labels, composites=self.b.builder.composites)

    def _results(self) -> list[tuple[str, Value]]:
        """The results with their names."""
        changed = [s for s in self.program.graph_signature.output_specs if "MUTATION" in s.kind.name]
        if changed:
            raise GraphImportError(f"it changes {changed[0].target!r}; export the model for inference: model.eval()")
        specs = {s.arg.name: s for s in self.program.graph_signature.input_specs}
        results: list[Operand] = []
        for node in self.program.graph.nodes:
            where = f"node {node.name!r} ({node.target})"
            self.b.budget.node()
            unfit = placed(
                "its arguments do not fit", ValueError, TypeError, IndexError, KeyError, kind=GraphImportError
            )
            with placed(where, GraphImportError, FormError), unfit:
                if node.op == "placeholder":
                    self.values[node.name] = self._input(node, specs[node.name])
                elif node.op == "call_function":
                    self.values[node.name] = self._called(node)
                elif node.op == "output":
                    results = [self._result(argument) for argument in node.args[0]]
                elif node.op != "get_attr":
                    raise GraphImportError(f"a node of the kind {node.op} is not supported")
        names = [s.arg.name for s in self.program.graph_signature.output_specs]
        return [(name, result.value) for name, result in zip(names, results, strict=True)]

    def _inner(self) -> dict[str, Value]:
        """Values by the names of nodes, and by those of the modules that return them."""
        nodes = {node.name: self.values.get(node.name) for node in self.program.graph.nodes}
        found = {
            name: value.value for name, value in nodes.items() if isinstance(value, Operand) and value.known is None
        }
        modules: dict[str, Value] = {}
        for node in self.program.graph.nodes:
            if node.op == "call_function" and node.name in found:
                # The last node of a module is what it returns.
                paths = [path for path, _ in node.meta.get("nn_module_stack", {}).values()]
                modules.update((path, found[node.name]) for path in paths if path)
        return {**modules, **found}

    def _input(self, node: Any, spec: Any) -> Any:
        if spec.kind.name == "USER_INPUT":
            value = node.meta["val"]
            if not hasattr(value, "shape"):
                return spec.arg.value if hasattr(spec.arg, "value") else value
            name = free_name(self.labels, node.name)
            self.labels[name] = node.name
            return self.b.parameter(name, *_type(value))
        if spec.kind.name == "TOKEN":
            return None  # it orders effects
        tensors = self.program.constants if spec.kind.name == "CONSTANT_TENSOR" else self.program.state_dict
        if spec.target not in tensors:
            # Buffers that are not saved are among the constants.
            tensors = self.program.constants
        if spec.target not in tensors:
            raise GraphImportError(f"its value {spec.target!r} is not part of the program")
        dtype, _ = _type(tensors[spec.target])
        tensor = tensors[spec.target].detach().cpu()
        constant = self.b.constant((tensor.float() if dtype == "float32" else tensor).numpy())
        self.constants[constant.value.name] = str(spec.target)
        return constant

    def _called(self, node: Any) -> Any:
        schema = getattr(node.target, "_schema", None)
        if schema is None and node.target is not operator.getitem:
            raise GraphImportError("control flow and effects are not supported; torch.where chooses between values")
        arguments = [self._argument(argument) for argument in node.args]
        if schema is None:
            parts, place = arguments
            if place >= len(parts):
                raise GraphImportError(f"its result {place} is not supported")
            return parts[place]
        name = schema.name.split("::")[1]
        if name in _WITHOUT_RESULT:
            return None
        if name not in RULES:
            raise GraphImportError(f"the operation is not supported; {choices(name, RULES)}")
        # torch leaves out arguments that are the default.
        named = {a.name: a.default_value for a in schema.arguments if a.has_default_value()}
        named.update(zip((a.name for a in schema.arguments), arguments, strict=False))
        named.update((key, self._argument(value)) for key, value in node.kwargs.items())
        results = node.meta["val"]
        types = [_type(value) for value in (results if isinstance(results, list | tuple) else [results])]
        call = Call(self.b, named, tuple(t[0] for t in types), tuple(t[1] for t in types))
        return self._checked(RULES[name](call), results, types)

    def _checked(self, found: Any, results: Any, types: Sequence[tuple[str, tuple[int, ...]]]) -> Any:
        """The results, with the types that torch says they have."""
        made = [found] if isinstance(found, Operand) else list(found)
        for operand, (dtype, shape) in zip(made, types, strict=False):
            if (operand.dtype, operand.shape) != (dtype, shape):
                raise GraphImportError(f"it gives {dtype} {list(shape)}, and not {operand.dtype} {list(operand.shape)}")
        return made if isinstance(results, list | tuple) else made[0]

    def _argument(self, argument: Any) -> Any:
        if hasattr(argument, "op") and hasattr(argument, "name"):
            if argument.name not in self.values:
                raise GraphImportError(f"its argument {argument.name!r} is not supported")
            return self.values[argument.name]
        if isinstance(argument, list | tuple):
            return [self._argument(each) for each in argument]
        return argument

    def _result(self, argument: Any) -> Operand:
        found = self._argument(argument)
        if not isinstance(found, Operand):
            raise GraphImportError(f"it returns {found!r}; only tensors are returned")
        return found


def _type(value: Any) -> tuple[str, tuple[int, ...]]:
    """NumPy's name of the elements, and the shape, of a tensor; half precision is read as float32."""
    if not hasattr(value, "shape"):
        raise GraphImportError("its result is no tensor: shapes and numbers must be known when the program is read")
    dtype = str(value.dtype).removeprefix("torch.")
    dtype = "float32" if dtype in HALVES else dtype
    if dtype not in DTYPES:
        raise GraphImportError(f"elements {dtype} are not supported; there are {', '.join(sorted(DTYPES))}")
    try:
        return dtype, tuple(int(size) if isinstance(size, int) else _static(size) for size in value.shape)
    except TypeError:
        raise GraphImportError(f"the shape {list(value.shape)} is not static") from None


def _static(size: Any) -> int:
    if str(size).startswith("u"):
        # torch's name of a size that it knows only when the program runs.
        raise GraphImportError(
            f"the size {size} depends on the arguments' values; where and masked_fill choose elements without one"
        )
    raise GraphImportError(f"the size {size} is not static; export the model with the shapes that it is called with")


def _no_functions(name: str) -> Any:
    raise GraphImportError(f"there is no {name!r}")
