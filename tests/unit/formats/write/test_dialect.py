"""A new language, Julia say, is a table of forms and a template: the smallest one shows what a dialect decides."""

from __future__ import annotations

import pytest

from shine.base.errors import ExportError
from shine.formats.write.statements.dialect import Dialect, Form, call, write
from shine.formats.write.statements.straightline import straight_line
from shine.lang.parse import parse

ORDER, SUM, PRODUCT, SIGN = range(1, 5)

JULIA = Dialect(
    "Julia",
    forms={
        "add": Form("{0} + {1}", SUM, (SUM, SUM + 1)),
        "sub": Form("{0} - {1}", SUM, (SUM, SUM + 1)),
        "mul": Form("{0} * {1}", PRODUCT, (PRODUCT, PRODUCT + 1)),
        "neg": Form("-{0}", SIGN, (SIGN,)),
        "sin": call("sin", 1),
        "lt": Form("Float64({0} < {1})"),
        "where": Form("ifelse({0}, {1}, {2})", conditions=(0,)),
    },
    conditions={"lt": Form("{0} < {1}", ORDER, (SUM, SUM))},
    nonzero=Form("{0} != 0", ORDER, (SUM,)),
    number=lambda value: Form(repr(value)),
)


def julia(code: str) -> list[str]:
    """The functions of a formula."""
    lines = straight_line(parse(code), "Julia")
    functions = [*lines.functions.items(), ("f", lines.main)]
    texts = []
    for name, body in functions:
        parameters = {parameter: parameter for parameter in body.tree.parameters}
        assignments, result = write(
            body, JULIA, parameters, lambda primitive: call(lines.name(primitive), primitive.arity), [*lines.functions]
        )
        statements = [f"{variable} = {value}" for variable, value in assignments]
        texts.append(f"{name}({', '.join(parameters)}) = ({'; '.join([*statements, result])})")
    return texts


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("a - (b - c)", "f(a, b, c) = (a - (b - c))"),
        ("(a - b) - c", "f(a, b, c) = (a - b - c)"),
        ("(a + b)*-c", "f(a, b, c) = ((a + b) * -c)"),
        ("a if b < c else 2.5", "f(a, b, c) = (ifelse(b < c, a, 2.5))"),
        ("a if b - c else a", "f(a, b, c) = (ifelse(b - c != 0, a, a))"),
        ("a + (b < c)", "f(a, b, c) = (a + Float64(b < c))"),
    ],
)
def test_operands_get_parentheses_and_conditions_where_the_forms_say_so(code, text):
    assert julia(code) == [text]


def test_a_value_that_is_used_twice_gets_a_variable():
    assert julia("sin(a + b)*sin(a + b)") == ["f(a, b) = (v1 = sin(a + b); v1 * v1)"]


def test_a_composite_primitive_becomes_a_function():
    assert julia("square(a) - b") == ["square(x) = (x * x)", "f(a, b) = (square(a) - b)"]


def test_a_primitive_without_a_form_is_refused():
    with pytest.raises(ExportError, match="primitive 'tan' cannot be exported to Julia"):
        julia("tan(a)")
