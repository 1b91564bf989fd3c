"""The header of a compiled tensor program, for C and C++."""

from __future__ import annotations

from shine.formats.native.code import Code, Files
from shine.formats.native.headers import c_header, for_comment
from shine.tensor.loops.arena import ALIGNMENT
from shine.tensor.native.interface import Interface, Tensor

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
