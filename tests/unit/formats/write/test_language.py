"""A new language, Julia say, is a record: the smallest one shows what a language decides."""

from __future__ import annotations

import pytest

from shine.base.errors import ExportError
from shine.formats.write.language import Form, Language, call, calls
from shine.formats.write.printer import Printer
from shine.formats.write.straightline import straight_line
from shine.lang.parse import parse

ORDER, SUM, PRODUCT, SIGN, POWER = range(1, 6)

JULIA = Language(
    "Julia",
    forms={**calls("sin"), "where": Form("ifelse({0}, {1}, {2})", conditions=(0,)), "neg": Form("-{0}", SIGN, (SIGN,))},
    conditions={"lt": Form("{0} < {1}", ORDER, (SUM, SUM))},
    nonzero=Form("{0} != 0", ORDER, (SUM,)),
    as_number=Form("Float64({0})", conditions=(0,)),
    strengths=(SUM, PRODUCT, SIGN, POWER),
    times=" * ",
    folds=False,
    rearranges=False,
)


def julia(code: str) -> list[str]:
    """The functions of a formula."""
    lines = straight_line(parse(code), "Julia")
    functions = [*lines.functions.items(), ("f", lines.main)]
    texts = []
    for name, body in functions:
        parameters = {parameter: parameter for parameter in body.tree.parameters}
        assignments, result = Printer(JULIA).statements(
            body, parameters, lambda primitive: call(lines.name(primitive), primitive.arity), [*lines.functions]
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
