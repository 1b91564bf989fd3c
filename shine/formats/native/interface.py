"""The interface of a compiled formula: its names and types in C and in Python."""

from __future__ import annotations

from dataclasses import dataclass

from shine.base.errors import CompilationError
from shine.base.lazy import cached_property
from shine.lang.forms.names import c_identifier, check_text
from shine.lang.program.program import Program

C_TYPES: dict[str, str] = {
    "float64": "double",
    "float32": "float",
    **{kind: f"{kind}_t" for kind in ("int64", "int32", "int16", "int8", "uint8")},
    "bool": "uint8_t",
}
"""Type in C of each storage type; of bool, 0 is false and 1 is true."""


@dataclass(frozen=True)
class Column:
    """An argument or a result.

    Parameters
    ----------
    name : str
        Name in C.
    label : str
        Name in the formula or the graph.
    dtype : str
        Storage type.
    stride : str
        Name of its stride in C.
    """

    name: str
    label: str
    dtype: str
    stride: str

    @property
    def c_type(self) -> str:
        """Its type in C."""
        return C_TYPES[self.dtype]


@dataclass(frozen=True)
class Interface:
    """The entry points of a program.

    Parameters
    ----------
    name : str
        Name of the function of one row; the names of the others begin with it.
    parameters, outputs : tuple of Column
    can_fail : bool
        Whether an integer division may have a zero divisor; the functions then return a status.
    """

    name: str
    parameters: tuple[Column, ...]
    outputs: tuple[Column, ...]
    can_fail: bool

    @property
    def returns_value(self) -> bool:
        """Whether the function of one row returns its result instead of writing it."""
        return not self.can_fail and len(self.outputs) == 1

    @cached_property
    def matrix(self) -> str | None:
        """Type of the matrix of all arguments; None if they have several types, or there are several results."""
        kinds = {column.dtype for column in self.parameters} or {column.dtype for column in self.outputs}
        return kinds.pop() if len(kinds) == 1 and len(self.outputs) == 1 else None

    @property
    def dtypes(self) -> set[str]:
        """Storage types of all arguments and results."""
        return {column.dtype for column in (*self.parameters, *self.outputs)}


def check_name(name: str) -> None:
    """Raise unless functions in C, C++ and Python can have this name.

    Raises
    ------
    ValueError
        If they cannot; the message suggests a name.
    TypeError
        If it is no text.
    """
    check_text("name", name)
    possible = c_identifier(name)
    if possible != name or name.startswith("shine"):
        hint = f"; {possible!r} would do" if possible != name else ""
        raise ValueError(f"name {name!r} is not free for a function in C{hint}")


def interface_of(program: Program, name: str, can_fail: bool) -> Interface:
    """The entry points that a program gets; a `CompilationError` if it has constant arrays, which have no rows."""
    for parameter in program.parameters:
        if parameter.value is not None:
            shape = "x".join(map(str, parameter.value.shape))
            raise CompilationError(
                f"{parameter.label!r} is a constant array of {shape} numbers, but compiled code is "
                "applied to rows of numbers; make it an input of the graph, or use shine.jit"
            )
    taken = {name, "n_rows", "X", "row_stride", "column_stride", "status"}
    taken |= {f"{name}_{suffix}" for suffix in ("batch", "columns", "n_features", "n_outputs", "division_by_zero")}

    def free(text: str) -> str:
        chosen = c_identifier(text, taken)
        taken.add(chosen)
        return chosen

    def columns(described: list[tuple[str, str, str]]) -> tuple[Column, ...]:
        names = [free(text) for text, _, _ in described]
        strides = [free(f"{text}_stride") for text in names]
        return tuple(
            Column(column, label, dtype, stride)
            for column, (_, label, dtype), stride in zip(names, described, strides, strict=True)
        )

    parameters = columns([(each.name, each.label, each.dtype) for each in program.parameters])
    single = len(program.outputs) == 1
    outputs = columns([("y" if single else f"{each.label}_out", each.label, each.dtype) for each in program.outputs])
    return Interface(name, parameters, outputs, can_fail)
