"""The interface of a compiled tensor program: names and types of its arguments and results, and its scratch memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from shine.formats.native.code import Code, Files
from shine.formats.native.headers import c_header
from shine.formats.native.interface import C_TYPES
from shine.formats.write.c import for_comment
from shine.lang.forms.names import c_identifier
from shine.tensor.form.module import Function, Value
from shine.tensor.form.types import TensorType
from shine.tensor.loops.arena import ALIGNMENT, aligned


@dataclass(frozen=True)
class Tensor:
    """An argument or a result: a buffer with its elements in row-major order.

    Parameters
    ----------
    name : str
        Name in C.
    label : str
        Name in the graph that it comes from.
    type : TensorType
    """

    name: str
    label: str
    type: TensorType

    @property
    def c_type(self) -> str:
        """Type in C of an element."""
        return C_TYPES[self.type.numpy.name]

    @property
    def room(self) -> int:
        """Bytes of its buffer, padded so that another one may follow it."""
        return padded(self.type.bytes)

    def __str__(self) -> str:
        return f"{self.label}: {self.type}"


@dataclass(frozen=True)
class Interface:
    """A function ``void NAME(const void *const *arguments, void *const *results, void *arena)``.

    Parameters
    ----------
    name : str
    arguments, results : tuple of Tensor
    arena_bytes : int
        Scratch memory that a call needs.
    """

    name: str
    arguments: tuple[Tensor, ...]
    results: tuple[Tensor, ...]
    arena_bytes: int

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """All arguments, then all results."""
        return (*self.arguments, *self.results)

    @property
    def signature(self) -> str:
        """Labels and types of arguments and results, as a person reads them."""
        given, made = (", ".join(map(str, tensors)) for tensors in (self.arguments, self.results))
        return f"({given}) -> ({made})" if len(self.results) != 1 else f"({given}) -> {made}"


def interface_of(name: str, function: Function, labels: Mapping[str, str], arena_bytes: int) -> Interface:
    """The interface of a function of a module.

    Parameters
    ----------
    name : str
        Name of the function in C.
    function : Function
    labels : mapping of str to str
        Names that a foreign graph gave to values, by their names here.
    arena_bytes : int
    """
    taken = {name, "arguments", "results", "arena"}
    arguments = _tensors(function.parameters, labels, taken)
    return Interface(name, arguments, _tensors(function.results, labels, taken), arena_bytes)


def padded(size: int) -> int:
    """Bytes that a buffer takes if another one follows it; an empty buffer has an address of its own, too."""
    return max(aligned(size), ALIGNMENT)


def _tensors(values: Sequence[Value], labels: Mapping[str, str], taken: set[str]) -> tuple[Tensor, ...]:
    found = []
    for value in values:
        name = c_identifier(value.name, taken)
        taken.add(name)
        found.append(Tensor(name, labels.get(value.name, value.name), value.type))
    return tuple(found)


PROMISES = """\
Elements are in row-major order. The functions keep no state, allocate nothing, and may be called by many threads at
once, each with results and an arena of its own."""

_DECLARATIONS = """\
/* Numbers of arguments and of results. */
enum {{ {name}_n_arguments = {arguments}, {name}_n_results = {results} }};

/* Bytes of the arena, which is scratch memory: its address must be a multiple of {alignment}. */
#define {name}_arena_bytes ((size_t){arena}u)

/*
 * Computes results from arguments, which it does not change. A result must not overlap anything else. Buffers have the
 * alignment of their elements; addresses that are multiples of {alignment} are fastest.
 *
{listed}
 */
void {name}(const void *const *arguments, void *const *results, void *arena);

#if defined(__cplusplus) || (defined(__STDC_VERSION__) && __STDC_VERSION__ >= 199901L)
/* The same, with a pointer for each tensor. */
{call}#endif
"""


def tensor_header(code: Code, interface: Interface) -> Files:
    """The header ``NAME.h``."""
    text = _DECLARATIONS.format(
        name=interface.name,
        arguments=len(interface.arguments),
        results=len(interface.results),
        arena=interface.arena_bytes,
        alignment=ALIGNMENT,
        listed=described(interface, " * "),
        call=call(interface, "static inline"),
    )
    return c_header(code, text, PROMISES)


def described(interface: Interface, margin: str) -> str:
    """Lines of a comment: the place, the name in C and the type of each tensor, and its label if that is another."""
    lines = []
    for table in ("arguments", "results"):
        for place, each in enumerate(getattr(interface, table)):
            size = "".join(f"[{size}]" for size in each.type.shape)
            label = f", {for_comment(each.label)}" if each.label != each.name else ""
            lines.append(f"{margin}{table}[{place}]  {each.c_type} {each.name}{size}{label}")
    return "\n".join(lines)


def call(interface: Interface, declared: str) -> str:
    """A function with a pointer for each tensor, that calls the function of tables."""
    name = interface.name
    head = f"{declared} void {name}_call("
    parameters = [f"const {each.c_type} *{each.name}" for each in interface.arguments]
    parameters += [*(f"{each.c_type} *{each.name}" for each in interface.results), "void *arena"]
    tables = _table("const void *", "arguments", interface.arguments) + _table("void *", "results", interface.results)
    given = "arguments" if interface.arguments else "NULL"
    made = "results" if interface.results else "NULL"
    listed = f",\n{' ' * len(head)}".join(parameters)
    return f"{head}{listed})\n{{\n{tables}    {name}({given}, {made}, arena);\n}}\n"


def _table(kind: str, name: str, tensors: tuple[Tensor, ...]) -> str:
    if not tensors:
        return ""
    return f"    {kind}const {name}[] = {{{', '.join(each.name for each in tensors)}}};\n"
