"""The text is read back by a small parser of mathematics and computed in long arithmetic."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest
from helpers.formulas import FEATURES, random_tree
from hypothesis import given
from hypothesis import strategies as st
from unit.formats.write.oracles import EXACT, Reader, Undefined, close, exact, mp, tokens

from shine.formats.write.latex import latex
from shine.formats.write.latex.names import latex_heading, latex_name, latex_names
from shine.lang.forms.library import STANDARD
from shine.lang.forms.tree import Primitive
from shine.lang.parse import parse

TOKEN = r"\\left(?:\\[a-z]+|.)|\\right(?:\\[a-z]+|.)|\\(?:begin|end)\{cases\}|\\text\{[a-z ]+\}|\\operatorname\{sgn\}"
TOKEN += r"|\\log_\{10\}|\\log_\{2\}|\\[a-zA-Z]+|\\\\|[0-9]+(?:\.[0-9]+)?|[a-z](?:_\{[0-9]+\})?|[-+=<>^{}&,]|\[3\]|\s+"
FUNCTIONS = {
    r"\sin": mp.sin, r"\cos": mp.cos, r"\tan": mp.tan, r"\arcsin": mp.asin, r"\arccos": mp.acos, r"\arctan": mp.atan,
    r"\sinh": mp.sinh, r"\cosh": mp.cosh, r"\tanh": mp.tanh, r"\ln": mp.log, r"\min": min, r"\max": max,
    r"\operatorname{sgn}": mp.sign, r"\log_{2}": lambda x: mp.log(x, 2), r"\log_{10}": mp.log10,
}  # fmt: skip
RELATIONS = {"<": "lt", r"\le": "le", ">": "gt", r"\ge": "ge", "=": "eq", r"\ne": "ne"}
ENDS = ("", "+", "-", "}", "&", ",", r"\\", r"\bmod", r"\land", r"\lor", *RELATIONS)


class LatexReader(Reader):
    """Products are written by juxtaposition; a sum of conditions is not a condition."""

    def sum(self) -> Any:
        sign = -1 if self.accept("-") else 1
        result = sign * self.product()
        while operator := self.accept("+", "-"):
            result = result + self.product() if operator == "+" else result - self.product()
        return result

    def product(self) -> Any:
        result = self.factor()
        while self.token not in ENDS and not self.token.startswith((r"\right", r"\end")):
            self.accept(r"\cdot")
            result = result * self.factor()
        if self.accept(r"\bmod"):
            return EXACT["mod"](result, self.factor())
        return result

    def factor(self) -> Any:
        base = self.base()
        return EXACT["pow"](base, self.group()) if self.accept("^") else base

    def group(self) -> Any:
        self.expect("{")
        value = self.sum()
        self.expect("}")
        return value

    def condition(self, level: int = 0) -> Any:
        if level < 2:
            result, word = self.condition(level + 1), (r"\lor", r"\land")[level]
            while self.accept(word):
                other = self.condition(level + 1)
                result = (result or other) if level == 0 else (result and other)
            return result
        if self.accept(r"\lnot"):
            return not self.condition(2)
        if self.token == r"\left(":
            # In parentheses stands either a condition or the first operand of a relation.
            start = self.position
            try:
                self.next()
                value = self.condition()
                self.expect(r"\right)")
                return value
            except (AssertionError, KeyError):
                self.position = start
        left = self.sum()
        return EXACT[RELATIONS[self.next()]](left, self.sum()) != 0

    def base(self) -> Any:
        token = self.next()
        if token == r"\left(":
            value = self.sum()
            self.expect(r"\right)")
            return value
        if token == r"\left[":
            value = mp.mpf(bool(self.condition()))
            self.expect(r"\right]")
            return value
        for left, right, rule in (("|", "|", abs), (r"\lfloor", r"\rfloor", mp.floor), (r"\lceil", r"\rceil", mp.ceil)):
            if token == rf"\left{left}":
                value = self.sum()
                self.expect(rf"\right{right}")
                return rule(value)
        if token == r"\frac":
            return self.group() / self.group()
        if token == r"\sqrt":
            degree = 3 if self.accept("[3]") else 2
            value = self.group()
            return mp.sqrt(value) if degree == 2 else mp.sign(value) * mp.cbrt(abs(value))
        if token == r"\begin{cases}":
            rows = []
            value = self.case()
            while not self.accept(r"\text{otherwise}"):
                self.expect(r"\text{if }")
                rows.append((self.condition(), value))
                self.expect(r"\\")
                value = self.case()
            self.expect(r"\end{cases}")
            return next((own for condition, own in rows if condition), value)
        if token in FUNCTIONS:
            exponent = self.group() if self.accept("^") else 1
            self.expect(r"\left(")
            arguments = [self.sum()]
            while self.accept(","):
                arguments.append(self.sum())
            self.expect(r"\right)")
            value = FUNCTIONS[token](*arguments)
            return value if exponent == 1 else value**exponent
        if token == "e" and self.token == "^":
            self.next()
            return mp.exp(self.group())
        if token == r"\pi" and token not in self.values:
            return mp.mpf(math.pi)
        return self.values[token] if token in self.values else mp.mpf(float(token))

    def case(self) -> Any:
        value = self.sum()
        self.expect("&")
        return value


def value_of(text: str, values: dict[str, float]) -> Any:
    reader = LatexReader(tokens(TOKEN, text), {name: mp.mpf(value) for name, value in values.items()})
    return reader.whole(reader.sum)


INLINE = tuple(name for name in STANDARD if name not in {"protected_div", "protected_log"})
POINTS = [dict(zip(FEATURES, np.round(np.random.default_rng(i).normal(size=3) * 2, 3), strict=True)) for i in range(4)]


@pytest.mark.parametrize(
    "name", [name for name in STANDARD if not name.startswith("protected_") or name[10:] == "sqrt"]
)
def test_each_primitive_is_read_back(name):
    names = FEATURES[: STANDARD[name].arity]
    tree = parse(f"{name}({', '.join(names)})", names)
    seen = 0
    for point in [*POINTS, {"a": 0.25, "b": 0.5, "c": 0.75}]:
        values = {key: point[key] for key in names}
        try:
            wanted = exact(tree, list(values.values()))
        except Undefined:
            continue
        seen += 1
        assert close(value_of(latex(tree), values), wanted, 1e-40)
    assert seen


@pytest.mark.slow
def test_random_trees_are_read_back():
    seen = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        tree = random_tree(rng, INLINE, int(rng.integers(3, 30)))
        text = latex(tree)
        for point in POINTS:
            try:
                wanted = exact(tree, list(point.values()))
            except Undefined:
                continue
            seen += 1
            # Powers of ten are exact in the text, and rounded in the formula.
            assert close(value_of(text, point), wanted, 1e-10 if "10^" in text else 1e-30), f"{tree} became {text}"
    assert seen > 150


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("a*b + a*a", "a b + a^{2}"),
        ("-2*x**2 + y + -2*x", "-2 x^{2} + y - 2 x"),
        ("(a + b)/(2*c)", r"\frac{a + b}{2 c}"),
        ("a - (b - c) + (a + b)", r"a - \left(b - c\right) + a + b"),
        ("(a + b)**2*c", r"\left(a + b\right)^{2} c"),
        ("a*(2*(b*c))", r"a \cdot 2 b c"),
        ("2*3*a", r"2 \cdot 3 a"),
        ("2*(a/b)", r"2 \cdot \frac{a}{b}"),
        ("1.5e-10*a + 2e20", r"1.5 \cdot 10^{-10} a + 2 \cdot 10^{20}"),
        ("sin(a)**2 + sin(a)**-1", r"\sin^{2}\left(a\right) + \left(\sin\left(a\right)\right)^{-1}"),
        ("sqrt(exp(-a/b))", r"\sqrt{e^{-\frac{a}{b}}}"),
        ("e + exp(a)", r"e + \exp\left(a\right)"),
        ("abs(a)**b**c", r"\left|a\right|^{b^{c}}"),
        ("(-a)**b + -a**b", r"\left(-a\right)^{b} - a^{b}"),
        ("(a < b)*2", r"2 \left[a < b\right]"),
        ("a if a > 0 else b", r"\begin{cases} a & \text{if } a > 0 \\ b & \text{otherwise} \end{cases}"),
        ("a if a > 0 else b if b > 0 else 1", r"\begin{cases} a & \text{if } a > 0 \\ b & \text{if } b > 0 \\ "
         r"1 & \text{otherwise} \end{cases}"),
        ("floor(a) + a % b + a//b", r"\left\lfloor a\right\rfloor + \left(a \bmod b\right) + "
         r"\left\lfloor \frac{a}{b}\right\rfloor"),
        ("hypot(a, b)/inv(c)", r"\frac{\sqrt{a^{2} + b^{2}}}{\frac{1}{c}}"),
        ("6.283185307179586*sqrt(a/b)", r"2 \pi \sqrt{\frac{a}{b}}"),
        ("-4.1887902047863905*a**3", r"-\frac{4 \pi}{3} a^{3}"),
        ("a/17.32050807568877", r"\frac{a}{10 \sqrt{3}}"),
        ("a**3.141592653589793", r"a^{\pi}"),
        ("4*exp(a/-26.0)", r"4 e^{-\frac{a}{26}}"),
        ("1e13*a*b", r"10^{13} a b"),
    ],
)  # fmt: skip
def test_formulas_read_as_one_would_write_them(formula, expected):
    assert latex(parse(formula)) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("x", "x"),
        ("x1", "x_{1}"),
        ("x_12", "x_{12}"),
        ("speed", r"\mathrm{speed}"),
        ("alpha", r"\alpha"),
        ("Gamma_2", r"\Gamma_{2}"),
        ("lambda_", r"\lambda"),
        ("λ", r"\lambda"),
        ("Σ", r"\Sigma"),
        ("Alpha", r"\mathrm{Alpha}"),
        ("v0_x", "v_{0, x}"),
        ("T_max", r"T_{\mathrm{max}}"),
        ("temp_in_2", r"\mathrm{temp}_{\mathrm{in}, 2}"),
        ("_", r"\mathrm{\_}"),
        ("50% & co", r"\mathrm{50\%\ \&\ co}"),
    ],
)
def test_names_are_typeset(name, expected):
    assert latex_name(name) == expected


def test_names_that_would_look_the_same_are_told_apart():
    assert latex_names(["x1", "x_1", "x"], {}) == {"x1": "x_{1}", "x_1": r"\mathrm{x\_1}", "x": "x"}


def test_assignments_and_functions_have_lines_of_their_own():
    own = parse("def twice(x):\n    half = x/2\n    return half + x")
    table = {**STANDARD, "twice": Primitive("twice", 1, own)}
    tree = parse("def model(a, b):\n    t = a*b\n    return twice(t) + t", primitives=table)
    assert latex(tree) == (
        "\\begin{aligned}\nt &= a b \\\\\n"
        "\\operatorname{twice}\\left(x\\right) &= \\frac{x}{2} + x \\\\\n"
        "\\mathrm{model} &= \\operatorname{twice}\\left(t\\right) + t\n\\end{aligned}"
    )


def test_a_name_and_a_precision_can_be_given():
    assert latex(parse("0.123456*x"), "y_hat", precision=2) == r"y_{\mathrm{hat}} = 0.12 x"
    assert latex(parse("0.30000000000000004*x")) == "0.30000000000000004 x"


@pytest.mark.parametrize(
    ("heading", "expected"),
    [
        ("my area (m²)", r"{\text{my area (m}^{2}\text{)}}"),
        ("unit price (€)", r"{\text{unit price (€)}}"),
        ("CO₂ in µg·m⁻³", r"{\text{CO}_{2}\text{ in }\mu{}\text{g}{\cdot}\text{m}^{-3}}"),
        ("50 % & #1_a $", r"{\text{50 }\%\text{ }\&\text{ }\#\text{1}\_\text{a }\$}"),
        (r"a\b^c~d{e}", r"{\text{a}\backslash{}\text{b}\wedge{}\text{c}\sim{}\text{d}\{\text{e}\}}"),
        ("x²₃²", r"{\text{x}^{2}{}_{3}{}^{2}}"),
        ("²H", r"{{}^{2}\text{H}}"),
        ("T °²", r"{\text{T }{}^{\circ}{}^{2}}"),
        ("Площадь, м²", r"{\text{Площадь, м}^{2}}"),
        ("面积 (大)", r"{\text{面积 (大)}}"),
        ("🏠 rooms", r"{\text{🏠 rooms}}"),
        ("two\n lines\t", r"{\text{two lines}}"),
        ("e\u0301 x", r"{\text{é x}}"),
        ("\u202eright\0 x", r"{\text{right}\text{ x}}"),
        ("a | b < c", r"{\text{a }{|}\text{ b }{<}\text{ c}}"),
        ("", r"\text{?}"),
        ("\u200b", r"\text{?}"),
        ("größe", r"{\text{größe}}"),
        ("lambda", r"\lambda"),
        ("x1", "x_{1}"),
    ],
)
def test_headings_are_text_in_mathematics_mode(heading, expected):
    assert latex(parse("a"), headings={"a": heading}) == expected


@pytest.mark.slow
@given(st.text(max_size=12))
def test_any_heading_is_one_group_without_characters_that_latex_reads(heading):
    text = latex_heading(heading)
    inner = re.sub(r"\\[{}$&#%_]|\\[a-zA-Z]+", "", text)
    depths = np.cumsum([(letter == "{") - (letter == "}") for letter in inner])
    assert not len(depths) or (depths.min() >= 0 and depths[-1] == 0)
    assert not set(inner) & set("\\$&#%~\n\r\t\0")
    assert not re.search(r"[_^](?!\{)|\^\{[^{}]*\}\^|_\{[^{}]*\}_", inner)
