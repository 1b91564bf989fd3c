"""torch.fx and torch.export -> program: elementwise graphs of PyTorch, with torch's own number types.

`reader` walks a graph, `operations` is the table of supported operations, `rules` compute them, and `values` promotes
number types as torch does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shine.base.errors import GraphImportError
from shine.formats.read.torchfx.reader import Reader
from shine.lang.program.program import Program


def from_fx(graph_module: Any, dtype: Any = "float32", name: str = "graph") -> Program:
    """The program of an elementwise graph that `torch.fx.symbolic_trace` recorded.

    Parameters
    ----------
    graph_module : torch.fx.GraphModule
        Its parameters, buffers and constants become part of the program: numbers if they have no dimensions, else
        arrays. Modules must be in the mode of their later use (``eval()``, say).
    dtype : str or torch.dtype, or mapping of str to them
        Type of the inputs, or of each input by its name: float64, float32, int64, int32 or bool. A type that the graph
        states, as after ``ShapeProp``, counts instead.
    name : str
        Name of the program.

    Returns
    -------
    Program
        Its arguments have the names of the inputs; its outputs are ``output``, or ``output_0, output_1, ...``, or the
        keys of a dictionary. Results have torch's types. An input of unknown shape counts as an array, which decides
        the type of its combinations with numbers.

    Raises
    ------
    GraphImportError
        If torch is missing, an operation or a number type is not supported, or a node changes a value in place that
        other nodes read. The message names the node and its function.
    TypeError
        If it is not a graph module.

    Examples
    --------
    >>> import torch  # doctest: +SKIP
    >>> program = from_fx(torch.fx.symbolic_trace(lambda x: torch.relu(x) + 1))  # doctest: +SKIP
    """
    torch = _torch()
    if not isinstance(graph_module, torch.fx.GraphModule):
        raise TypeError(f"a torch.fx.GraphModule is needed, not {type(graph_module).__name__}")
    given = dtype if isinstance(dtype, Mapping) else {}
    reader = Reader(torch, graph_module, {}, "float32" if isinstance(dtype, Mapping) else dtype, given)
    return reader.program(name, None)


def from_export(exported_program: Any, name: str = "graph") -> Program:
    """The program of an elementwise graph that `torch.export.export` recorded.

    Parameters
    ----------
    exported_program : torch.export.ExportedProgram
        Of ATen operators, before or after ``run_decompositions()``. Its parameters, buffers and constants become part
        of the program.
    name : str
        Name of the program.

    Returns
    -------
    Program
        As of `from_fx`.

    Raises
    ------
    GraphImportError
        As for `from_fx`; also if the program writes to its buffers or inputs.
    TypeError
        If it is not an exported program.
    """
    torch = _torch()
    if not isinstance(exported_program, torch.export.ExportedProgram):
        raise TypeError(f"a torch.export.ExportedProgram is needed, not {type(exported_program).__name__}")
    signature = exported_program.graph_signature
    lifted = {}
    for spec in signature.input_specs:
        kind = spec.kind.name
        if kind in ("PARAMETER", "BUFFER", "CONSTANT_TENSOR"):
            held = exported_program.constants if spec.target in exported_program.constants else None
            lifted[spec.arg.name] = (exported_program.state_dict if held is None else held)[spec.target]
        elif kind != "USER_INPUT":
            raise GraphImportError(
                f"input {spec.arg.name!r} is a {kind.lower()}; only tensors and numbers are supported"
            )
    labels = []
    for spec in signature.output_specs:
        if spec.kind.name != "USER_OUTPUT":
            raise GraphImportError(
                f"output {spec.arg.name!r} is a {spec.kind.name.lower()}; a program returns values and changes nothing"
            )
        labels.append(spec.arg.name)
    reader = Reader(torch, exported_program.graph_module, lifted, "float32", {})
    return reader.program(name, len(labels))


def _torch() -> Any:
    try:
        import torch.export
    except ImportError:
        raise GraphImportError("this needs torch: pip install 'shine[torch]'") from None
    return torch
