"""Formulas for people: few and common symbols, equal up to rounding.

The search writes formulas with the functions that it draws from, and may keep ``x0*x0``, ``exp(x0/3.3333333333333335)``
or ``a + -2*b``. Here only the notation changes; the values are equal up to rounding.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from shine.lang.forms.grammar import reject
from shine.lang.forms.interpretation import Interpretation
from shine.lang.forms.library import STANDARD
from shine.lang.forms.named_numbers import NAMED_POWERS, figures, named_number, short
from shine.lang.forms.printing import expression_source
from shine.lang.forms.rounding import Precision, rounded_tree
from shine.lang.forms.tape import application
from shine.lang.forms.tree import Tree
from shine.lang.forms.visitor import Visit

LONGEST = 10_000
"""Most characters of a text that is read as Julia's."""

_SIGNS = re.compile(r"\?|&&|\|\||!(?!=)")
_WORDS = ((r"&&", " and "), (r"\|\|", " or "), (r"!(?!=)", " not "))


def in_python(text: str) -> str | None:
    """An expression with ``?:``, ``&&``, ``||`` or ``!`` in Python's words; None if there are none, or it is wrong."""
    if len(text) > LONGEST or not _SIGNS.search(text):
        return None
    for sign, words in _WORDS:
        text = re.sub(sign, words, text)
    try:
        found = _list(text).strip()
    except RecursionError:
        return None
    return None if "?" in found else found


def _list(text: str) -> str:
    """Expressions with commas between them."""
    ends = [at for at, sign in _outside(text) if sign == ","]
    return ",".join(_choice(text[begin + 1 : end]) for begin, end in zip([-1, *ends], [*ends, len(text)], strict=True))


def _choice(text: str) -> str:
    """An expression that may be a choice: ``condition ? value : value``."""
    signs = [(at, sign) for at, sign in _outside(text) if sign in "?:"]
    if not signs or signs[0][1] != "?":
        return _with_brackets(text)
    waiting = 0
    for at, sign in signs:
        waiting += 1 if sign == "?" else -1
        if not waiting:
            first = signs[0][0]
            condition, value = _with_brackets(text[:first]), _choice(text[first + 1 : at])
            return f"(({value}) if ({condition}) else ({_choice(text[at + 1 :])}))"
    return _with_brackets(text)


def _with_brackets(text: str) -> str:
    """An expression outside whose brackets nothing is to be done."""
    found, begin = "", 0
    for at, sign in _outside(text):
        if sign == "(":
            found, begin = found + text[begin : at + 1], at + 1
        elif sign == ")":
            found, begin = found + _list(text[begin:at]), at
    return found + text[begin:]


def _outside(text: str) -> Iterator[tuple[int, str]]:
    """Signs outside all parentheses, and the outermost parentheses themselves, with their places."""
    depth = 0
    for at, sign in enumerate(text):
        depth -= sign == ")"
        if not depth:
            yield at, sign
        depth += sign == "("


LARGEST_POWER = 1000
"""Largest exponent that repeated factors are collected into."""

_LONGEST_CHAIN = 100
"""Factors that are looked at for the sign of a product: longer products keep the sign where it is."""


def for_people(tree: Tree, precision: Precision = None, supported: int | None = None) -> Tree:
    """The formula as faces for people show it: in their notation, with constants of few digits.

    Parameters
    ----------
    tree : Tree
        A formula of float64 numbers.
    precision : int, "exact" or None
        So many significant digits; the tree as it is; or the digits that the data support.
    supported : int, optional
        Significant digits that the data support; all digits if it is not known.

    Raises
    ------
    ValueError
        If the precision is none of these.

    Examples
    --------
    >>> from shine.lang.parse import parse
    >>> for_people(parse("1.0004*a + 2.71*exp(b/3.3333333333333335)"), 3).readable
    'a + 2.71*exp(0.3*b)'
    """
    if precision == "exact":
        return tree
    # Before, because the inverse of a rounded divisor is not short; after, because a rounded factor may be 1.
    return presented(rounded_tree(presented(tree), precision, supported))


def presented(tree: Tree) -> Tree:
    """The formula in the notation that people use, of any depth, with values equal up to rounding.

    Parameters
    ----------
    tree : Tree
        A formula of float64 numbers.

    Examples
    --------
    >>> from shine.lang.parse import parse
    >>> presented(parse("-1.0*a + a*a*exp(b/3.3333333333333335) + -2.0*b")).readable
    'a**2*exp(0.3*b) - a - 2*b'
    """
    writer = _Notation()
    assignments = tuple((name, writer.visit(value)) for name, value in tree.assignments)
    return replace(
        tree,
        result=writer.visit(tree.result),
        assignments=assignments,
        functions={**STANDARD, **tree.functions},
    )


class _Notation(Interpretation):
    """Builds the expression anew, with a rule for each operator."""

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        return node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return node

    def visit_Compare(self, node: ast.Compare) -> Visit:
        left = yield node.left
        comparators = []
        for comparator in node.comparators:
            comparators.append((yield comparator))
        return ast.Compare(left, node.ops, comparators)

    def _apply(self, name: str, *operands: ast.expr) -> ast.expr:
        rule = _RULES.get(name)
        return application(name, list(operands)) if rule is None else rule(*operands)


def _negated(a: ast.expr) -> ast.expr:
    """``-a``; the minus of a product stands before its first factor."""
    positive = _opposite(a)
    if positive is not None:
        return positive
    match a:
        case ast.Constant(value=int() | float() as number):
            return ast.Constant(-number)
        case ast.BinOp(left, ast.Sub(), right):
            return _difference(right, left)
        case ast.BinOp(left, (ast.Mult() | ast.Div()) as operator, right) if _is_short_chain(a):
            return ast.BinOp(_negated(left), operator, right)
    return ast.UnaryOp(ast.USub(), a)


def _sum(a: ast.expr, b: ast.expr) -> ast.expr:
    if _number(a) == 0:
        return b
    if _number(b) == 0:
        return a
    if (positive := _opposite(b)) is not None:
        return _difference(a, positive)
    if (positive := _opposite(a)) is not None:
        return _difference(b, positive)
    return ast.BinOp(a, ast.Add(), b)


def _difference(a: ast.expr, b: ast.expr) -> ast.expr:
    if _number(b) == 0:
        return a
    if _number(a) == 0:
        return _negated(b)
    if (positive := _opposite(b)) is not None:
        return _sum(a, positive)
    return ast.BinOp(a, ast.Sub(), b)


def _product(a: ast.expr, b: ast.expr) -> ast.expr:
    if (positive := _opposite(b)) is not None and _number(b) is None:
        return _negated(_product(a, positive))
    if _number(b) is not None and _number(a) is None:
        a, b = b, a
    number = _number(a)
    if number == 1:
        return b
    if number == -1:
        return _negated(b)
    if number is not None and (positive := _opposite(b)) is not None:
        return _product(ast.Constant(-number), positive)
    match b:
        case ast.Call(ast.Name("inv"), [divisor]):
            return _quotient(a, divisor)
    match a:
        # 3*x*x is (3*x)*x.
        case ast.BinOp(left, ast.Mult(), right) if (power := _joint_power(right, b)) is not None:
            return ast.BinOp(left, ast.Mult(), power)
    power = _joint_power(a, b)
    return ast.BinOp(a, ast.Mult(), b) if power is None else power


def _quotient(a: ast.expr, b: ast.expr) -> ast.expr:
    number = _number(b)
    if number == 1:
        return a
    if (positive := _opposite(b)) is not None:
        return _negated(_quotient(a, positive))
    if number and _number(a) is None and (factor := _shorter_inverse(number)) is not None:
        return _product(ast.Constant(factor), a)
    return ast.BinOp(a, ast.Div(), b)


def _power(a: ast.expr, b: ast.expr) -> ast.expr:
    exponent = _number(b)
    if exponent == 1:
        return a
    if exponent == -1:
        return _quotient(ast.Constant(1.0), a)
    if exponent in NAMED_POWERS:
        return application(NAMED_POWERS[int(exponent)], [a])
    if exponent == 0.5:
        return application("sqrt", [a])
    return ast.BinOp(a, ast.Pow(), b)


_RULES: Mapping[str, Callable[..., ast.expr]] = {
    "neg": _negated,
    "add": _sum,
    "sub": _difference,
    "mul": _product,
    "div": _quotient,
    "pow": _power,
}
"""Operators as people write them; other functions are written as calls."""


def _number(node: ast.expr) -> float | None:
    """The value of a constant; None for other nodes, and for truth values."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
        return node.value
    return None


def _opposite(node: ast.expr) -> ast.expr | None:
    """The positive form of an expression that begins with a minus; None for others."""
    chain: list[ast.BinOp] = []
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div) and len(chain) < _LONGEST_CHAIN:
        chain.append(node)
        node = node.left
    number = _number(node)
    if number is not None and number < 0:
        positive: ast.expr = ast.Constant(-number)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        positive = node.operand
    else:
        return None
    for above in reversed(chain):
        is_product = isinstance(above.op, ast.Mult)
        positive = above.right if is_product and _number(positive) == 1 else ast.BinOp(positive, above.op, above.right)
    return positive


def _is_short_chain(node: ast.expr) -> bool:
    for _ in range(_LONGEST_CHAIN):
        if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div)):
            return True
        node = node.left
    return False


def _joint_power(a: ast.expr, b: ast.expr) -> ast.expr | None:
    """The product of two whole powers of one base; None if it is no power."""
    (base, exponent), (other, further) = _base_and_exponent(a), _base_and_exponent(b)
    total = exponent + further
    if total > LARGEST_POWER or _number(base) is not None or not _are_equal(base, other):
        return None
    return _power(base, ast.Constant(float(total)))


def _base_and_exponent(node: ast.expr) -> tuple[ast.expr, int]:
    match node:
        case ast.Call(ast.Name(name), [base]) if name in NAMED_POWERS.values():
            return base, next(exponent for exponent, known in NAMED_POWERS.items() if known == name)
        case ast.BinOp(base, ast.Pow(), ast.Constant(value=int() | float() as exponent)) if exponent > 1:
            if float(exponent).is_integer() and exponent <= LARGEST_POWER:
                return base, int(exponent)
    return node, 1


def _are_equal(a: ast.expr, b: ast.expr) -> bool:
    if type(a) is not type(b):
        return False
    if isinstance(a, ast.Name) and isinstance(b, ast.Name):
        return a.id == b.id
    return expression_source(a) == expression_source(b)


def _shorter_inverse(number: float) -> float | None:
    """The inverse of a divisor, if it is shorter to write; None if not."""
    inverse = 1 / number
    if not math.isfinite(inverse) or named_number(abs(number)) is not None:
        return None
    inverse = short(inverse)
    saved = figures(short(number)) - figures(inverse)
    # Of numbers of the same length, people multiply by 1000 and divide by 20.
    return inverse if saved > 0 or (saved == 0 and abs(number) < 1) else None


_DEFINITION = re.compile(r"\s*([^\W\d]\w*)\s*\(([^()=]*)\)\s*=(?!=)\s*(\S.*)", re.DOTALL)
_OF_FLOAT32 = re.compile(r"\b(\d+\.?\d*|\.\d+)f(-?\d+)\b")


def is_short_definition(text: str) -> bool:
    """Whether a text is a definition of one line as in Julia."""
    return _DEFINITION.fullmatch(text) is not None


def definition(text: str) -> str:
    """A definition of one line as in Julia, such as ``inv(x) = 1/x``, as a Python function; other texts as they are."""
    found = _DEFINITION.fullmatch(text)
    if found is None:
        return text
    name, arguments, body = found.groups()
    body = _OF_FLOAT32.sub(r"\1e\2", body.strip()).replace("^", "**")
    return f"def {name}({arguments}): return {in_python(body) or body}"


def check_powers(tree: ast.AST) -> None:
    """Raise an error if ``^``, read as a power, stands between truth values, for which Python means another thing."""
    for node in ast.walk(tree):
        match node:
            case ast.BinOp(left=left, op=ast.Pow(), right=right):
                if any(isinstance(each, ast.Compare | ast.BoolOp) for each in (left, right)):
                    reject("'^' is a power here; write != for 'one of two conditions'", node)
