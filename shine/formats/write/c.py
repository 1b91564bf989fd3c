"""Formulas as C: a header and a source in C99 that need only <math.h>."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator

from shine.formats.write.language import SPACED, Form, Language, binary, call, calls, comparisons, identifiers
from shine.formats.write.printer import Printer
from shine.formats.write.sources import Headings, abridged, notes, takes_models
from shine.formats.write.straightline import Body, StraightLine, straight_line
from shine.lang.forms.names import c_identifier
from shine.lang.forms.rounding import Precision, rounded_tree
from shine.lang.forms.tree import Primitive, Tree

_CHOICE, _OR, _AND, _EQUAL, _ORDER, _SUM, _PRODUCT, _SIGN, _ATOM = range(1, 10)

HELPERS: dict[str, tuple[str, str]] = {
    "min": (
        "double a, double b",
        """\
    /* NaN if either is; b if they are equal, as 0.0 and -0.0 are. */
    return a < b || a != a ? a : b;""",
    ),
    "max": (
        "double a, double b",
        """\
    /* NaN if either is; b if they are equal, as 0.0 and -0.0 are. */
    return a > b || a != a ? a : b;""",
    ),
    "sign": (
        "double a",
        """\
    /* 1, -1 or 0; NaN for NaN. */
    return a > 0.0 ? 1.0 : a < 0.0 ? -1.0 : a == 0.0 ? 0.0 : a;""",
    ),
    "mod": (
        "double a, double b",
        """\
    /* The remainder that has the sign of the divisor; NaN for the divisor 0. */
    const double remainder = fmod(a, b);
    if (remainder == 0.0) {
        return copysign(0.0, b);
    }
    return (b < 0.0) != (remainder < 0.0) ? remainder + b : remainder;""",
    ),
    "floordiv": (
        "double a, double b",
        """\
    /* The quotient rounded down, from an exact remainder; a / b for the divisor 0. */
    const double remainder = fmod(a, b);
    double quotient = (a - remainder) / b;
    double below;
    if (b == 0.0) {
        return a / b;
    }
    if (remainder != 0.0 && (b < 0.0) != (remainder < 0.0)) {
        quotient -= 1.0;
    }
    if (quotient == 0.0) {
        return copysign(0.0, a / b);
    }
    below = floor(quotient);
    return quotient - below > 0.5 ? below + 1.0 : below;""",
    ),
    "logical_and": (
        "double a, double b",
        """\
    /* One of its operands: the second unless the first is 0. */
    return a != 0.0 ? b : a;""",
    ),
    "logical_or": (
        "double a, double b",
        """\
    /* One of its operands: the first unless it is 0. */
    return a != 0.0 ? a : b;""",
    ),
}
"""Parameters and body of the helper function of each primitive that is neither an operator nor in <math.h>."""


_NAMES = "sqrt exp log floor ceil sin cos tan asin acos atan sinh cosh tanh pow"

_FORMS: dict[str, Form] = {
    # C reads two signs in a row as a decrement.
    "neg": Form("-{0}", _SIGN, (_ATOM,)),
    **calls(_NAMES, abs="fabs"),
    "logical_not": Form("{0} ? 0.0 : 1.0", _CHOICE, (_OR,), (0,)),
    "where": Form("{0} ? {1} : {2}", _CHOICE, (_OR, _CHOICE + 1, _CHOICE), (0,)),
}

_CONDITIONS: dict[str, Form] = {
    **comparisons(SPACED, _ORDER, _SUM),
    **comparisons({name: SPACED[name] for name in ("eq", "ne")}, _EQUAL, _SUM),
    "logical_not": Form("!{0}", _SIGN, (_ATOM,), (0,)),
    "logical_and": binary("{0} && {1}", _AND, 0, 1),
    # Compilers warn of && within || without parentheses.
    "logical_or": Form("{0} || {1}", _OR, (_AND + 1, _AND + 1), (0, 1)),
}


def language(prefix: str) -> Language:
    """The language C; names of helper functions begin with the prefix."""
    return Language(
        "C",
        forms={**_FORMS, **calls(" ".join(HELPERS), (prefix + "_{}").format)},
        conditions=_CONDITIONS,
        nonzero=Form("{0} != 0.0", _EQUAL, (_SUM,)),
        as_number=Form("{0} ? 1.0 : 0.0", _CHOICE, conditions=(0,)),
        number=lambda value: "NAN" if math.isnan(value) else repr(value),
        strengths=(_SUM, _PRODUCT, _SIGN, _ATOM),
        times=" * ",
        over=" / ",
        folds=False,
        rearranges=False,
    )


_NOTICE = """\
Doubles throughout, and IEEE 754 all the way: NaN and infinities go in and come out. Compile without
-ffast-math, and with -ffp-contract=off where the compiler would fuse products and sums otherwise."""

_DECLARATIONS = """\
/* How many features the formula has. */
enum {{ {name}_n_features = {count} }};

/*
 * The formula for one row.
{arguments} */
double {name}({parameters});

/*
 * The formula for n_rows rows: y[0] to y[n_rows - 1] are written, and must not overlap X.
 *
 * Feature j of row i is X[i * row_stride + j * column_stride]; strides count doubles, not bytes, and may be
 * negative:
 *
 *   rows one after the other (row-major):           row_stride = {count}, column_stride = 1
 *   columns one after the other (column-major):     row_stride = 1, column_stride = n_rows
 *
 * X is never read if the formula has no features or n_rows is 0.
 */
void {name}_batch(const double *X, size_t n_rows, ptrdiff_t row_stride, ptrdiff_t column_stride, double *y);
"""

_HEADER = """\
/*
{comment}
 */
#ifndef {guard}
#define {guard}

#include <stddef.h>
{included}
{body}
#endif
"""

_LINKED = """\
#ifdef __cplusplus
extern "C" {{
#endif

{declarations}
#ifdef __cplusplus
}}
#endif
"""

_INCLUDES = """\
#include <math.h>
{include}
#if defined(__FAST_MATH__)
#error "without IEEE 754 the formula has other values: compile without -ffast-math"
#endif
"""

_BATCH = """\
void {name}_batch(const double *X, size_t n_rows, ptrdiff_t row_stride, ptrdiff_t column_stride, double *y)
{{
    size_t i;
{unused}    for (i = 0; i < n_rows; i++) {{
{row}        y[i] = {name}({arguments});
    }}
}}
"""


@takes_models
def c_files(
    tree: Tree, name: str = "f", *, headings: Headings | None = None, precision: Precision = None
) -> dict[str, str]:
    """A formula as a C header and source.

    Parameters
    ----------
    tree : Tree or Model
        Its parameters become the arguments of the C function, in this order.
    name : str
        Name of the function; changed if C does not allow it or its library already has it.
    headings : mapping of str to str, optional
        Original headings of the columns, by feature, for a comment.
    precision : int, "exact" or None
        Significant digits of constants; all by default.

    Returns
    -------
    dict of str to str
        Text of each file by its name: ``f.h`` and ``f.c``. They declare ``double f(double a, ...)`` for one row and
        ``f_batch`` for many, in row-major or column-major order; C++ compilers take both files as well.

    Raises
    ------
    ExportError
        If the formula calls a function without a definition.

    Examples
    --------
    >>> from shine.lang.parse import parse
    >>> print(*c_files(parse("sqrt(a*a + b*b)"), "length"))
    length.h length.c
    """
    writer = Writer(rounded_tree(tree, precision, named=False), name, headings or {})
    header = header_text(commented(writer.description()), f"{writer.name}_h", linked(writer.declarations()))
    source = "\n".join([_INCLUDES.format(include=f'\n#include "{writer.name}.h"\n'), *writer.functions()])
    return {f"{writer.name}.h": header, f"{writer.name}.c": source}


@takes_models
def c_source(tree: Tree, name: str = "f", *, headings: Headings | None = None, precision: Precision = None) -> str:
    """A formula as one C source file, with its declarations.

    Parameters
    ----------
    tree, name, headings, precision
        As for `c_files`.

    Returns
    -------
    str
        The content of the two files of `c_files`.

    Raises
    ------
    ExportError
        If the formula calls a function without a definition.
    """
    writer = Writer(rounded_tree(tree, precision, named=False), name, headings or {})
    comment = f"/*\n{commented(writer.description())}\n */\n"
    includes = _INCLUDES.format(include="#include <stddef.h>\n")
    return "\n".join([comment + includes, linked(writer.declarations()), *writer.functions()])


def header_text(comment: str, guard: str, body: str, included: str = "") -> str:
    """A header with the lines of a comment, a macro that keeps it from being included twice, and further includes."""
    body = body.rstrip("\n") + "\n"
    return _HEADER.format(comment=comment, guard=guard.upper(), included=included, body=body)


def linked(declarations: str) -> str:
    """Declarations that compilers of C++ take, too."""
    return _LINKED.format(declarations=declarations)


class Writer:
    """Writes the pieces of a formula's files."""

    def __init__(self, tree: Tree, name: str, headings: Headings) -> None:
        self.tree, self.headings = tree, headings
        self.name = c_identifier(name)
        self.code: StraightLine = straight_line(tree, "C")
        self.printer = Printer(language(self.name))
        own = [f"{self.name}_{suffix}" for suffix in (*HELPERS, "batch", "n_features")]
        self.globals = [self.name, *own]
        self.composites = identifiers(
            lambda function, taken: c_identifier(f"{self.name}_{function}", taken), self.code.functions, self.globals
        )
        self.globals += self.composites.values()
        self.parameters = self._parameters(tree)

    def _parameters(self, tree: Tree) -> dict[str, str]:
        """The name of each parameter in C."""
        return identifiers(c_identifier, tree.parameters, self.globals)

    def description(self) -> str:
        """The comment at the top: the formula, shortened if it is very long, and how to compile it."""
        return f"{abridged(for_comment(str(self.tree)))}\n\nWritten by Shine.\n\n{_NOTICE}"

    def declarations(self) -> str:
        """Prototypes with their documentation."""
        noted = notes(self.parameters, self.headings)
        renamed = [f" * {name} is {in_comment(heading)}.\n" for name, heading in noted.items()]
        return _DECLARATIONS.format(
            name=self.name,
            count=len(self.parameters),
            parameters=_signature(self.parameters.values()),
            arguments="".join(renamed),
        )

    def functions(self) -> Iterator[str]:
        """Definitions: helpers, composites, the formula, its batch."""
        yield from self.definitions()
        yield self._batch()

    def definitions(self, linkage: str = "") -> Iterator[str]:
        """Definitions of helpers, composites and the formula, the last with a linkage such as ``static``."""
        texts = [
            f"static double {self._function(self.composites[function], self._parameters(body.tree), body)}"
            for function, body in self.code.functions.items()
        ]
        texts.append(f"{linkage}double {self._function(self.name, self.parameters, self.code.main)}")
        for helper, (parameters, body) in HELPERS.items():
            # Compilers warn of a static function that is never called.
            if any(f"{self.name}_{helper}(" in text for text in texts):
                yield f"static double {self.name}_{helper}({parameters})\n{{\n{body}\n}}\n"
        yield from texts

    def _function(self, name: str, parameters: dict[str, str], body: Body) -> str:
        assignments, result = self.printer.statements(body, parameters, self._call, self.globals)
        used = {step.leaf for step in body.steps}
        unused = [f"(void){new};" for old, new in parameters.items() if old not in used]
        variables = [f"const double {variable} = {value};" for variable, value in assignments]
        text = "".join(f"    {statement}\n" for statement in (*variables, *unused, f"return {result};"))
        return f"{name}({_signature(parameters.values())})\n{{\n{text}}}\n"

    def _call(self, primitive: Primitive) -> Form:
        return call(self.composites[self.code.name(primitive)], primitive.arity)

    def _batch(self) -> str:
        count = len(self.parameters)
        places = ["row[0]", "row[column_stride]", *(f"row[{position} * column_stride]" for position in range(2, count))]
        unused = ["X", "row_stride"] if not count else []
        unused += ["column_stride"] if count < 2 else []
        return _BATCH.format(
            name=self.name,
            unused="".join(f"    (void){parameter};\n" for parameter in unused),
            row="        const double *row = X + (ptrdiff_t)i * row_stride;\n" if count else "",
            arguments=", ".join(places[:count]),
        )


def _signature(names: Collection[str]) -> str:
    return ", ".join(f"double {name}" for name in names) or "void"


def in_comment(text: str) -> str:
    """A text that neither ends a comment nor seems to begin one."""
    return text.replace("*/", "* /").replace("/*", "/ *")


def for_comment(text: str) -> str:
    """Lines in ASCII that cannot end the comment that they stand in."""
    return in_comment(ascii(text)[1:-1].replace("\\n", "\n").replace("\\'", "'"))


def commented(text: str) -> str:
    """Lines of a comment."""
    return "\n".join(f" * {line}".rstrip() for line in text.splitlines())
