"""Units, and dimensional analysis against a system of linear equations over all constants of a formula."""

from __future__ import annotations

import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit.search.evolution.oracles import Node, population_of, tree_of

from shine.lang.forms.library import STANDARD
from shine.lang.forms.primitives import BASIC, PrimitiveSet, select
from shine.lang.forms.tree import Primitive
from shine.lang.growth import Terminals
from shine.lang.interpret import REFERENCE, evaluate_tape
from shine.lang.population import Population
from shine.lang.vocabulary import primitive_table
from shine.search.constraints.dimensional_analysis import MOST_ARGUMENTS, RULES, DimensionalAnalysis, rule_of
from shine.search.constraints.units import BASE, DIMENSIONLESS, LONGEST, PREFIXED, PREFIXES, UNPREFIXED, parse_unit
from shine.search.evolution.operators.creation import ptc2

UNITS = {"m": "kg", "v": "m/s", "t": "s", "r": "1"}


def exponents(**powers: float) -> tuple[Fraction, ...]:
    return tuple(Fraction(powers.get(name, 0)) for name in BASE)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1", exponents()),
        ("m", exponents(m=1)),
        ("m/s^2", exponents(m=1, s=-2)),
        ("m/s**2", exponents(m=1, s=-2)),
        ("m/s²", exponents(m=1, s=-2)),
        ("m s⁻²", exponents(m=1, s=-2)),
        ("kg*m**2/s**2", exponents(kg=1, m=2, s=-2)),
        ("kg·m/s/s", exponents(kg=1, m=1, s=-2)),
        ("1/s", exponents(s=-1)),
        ("1/(m*s)", exponents(m=-1, s=-1)),
        ("J/kg*K", exponents(m=2, s=-2, K=1)),
        ("J/(kg K)", exponents(m=2, s=-2, K=-1)),
        ("m^(1/2)", exponents(m=Fraction(1, 2))),
        ("m^-0.5", exponents(m=Fraction(-1, 2))),
        ("(m/s)^2", exponents(m=2, s=-2)),
        (" N ", exponents(kg=1, m=1, s=-2)),
        ("g", exponents(kg=1)),
        ("min", exponents(s=1)),
        ("cd", exponents(cd=1)),
        ("mmol/L", exponents(mol=1, m=-3)),
        ("dam", exponents(m=1)),
        ("Pa", exponents(kg=1, m=-1, s=-2)),
        ("%", exponents()),
    ],
)
def test_units_are_read(text, expected):
    assert parse_unit(text) == expected


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("N*m", "J"), ("J/s", "W"), ("W/A", "V"), ("V/A", "ohm"), ("A*s", "C"), ("C/V", "F"), ("V*s", "Wb"),
        ("Wb/m^2", "T"), ("Wb/A", "H"), ("1/ohm", "S"), ("N/m^2", "Pa"), ("J/kg", "Gy"), ("Pa", "bar"), ("eV", "J"),
        ("kat", "mol/s"), ("lx", "lm/m^2"), ("kW*h", "kWh"), ("t", "kg"), ("L", "m^3"), ("pc", "ly"), ("atm", "Pa"),
        ("°C", "K"), ("W/°C", "W/K"), ("°", "rad"), ("µM", "mol/m^3"), ("uM", "mmol/L"),
    ],
)  # fmt: skip
def test_derived_units_have_their_dimensions(one, other):
    assert parse_unit(one) == parse_unit(other)


@pytest.mark.parametrize("prefix", PREFIXES)
def test_a_prefix_does_not_change_a_dimension(prefix):
    assert parse_unit(f"{prefix}V") == parse_unit("V")


def test_a_prefixed_name_has_one_meaning_unless_a_table_lists_it():
    prefixed: dict[str, set[tuple[Fraction, ...]]] = {}
    for prefix in PREFIXES:
        for name, dimension in PREFIXED.items():
            prefixed.setdefault(prefix + name, set()).add(dimension)
    plain = {**PREFIXED, **UNPREFIXED}
    assert {name for name, meanings in prefixed.items() if len(meanings) > 1 and name not in plain} == set()


def unit_of(dimension):
    """A dimension written in base units, as `parse_unit` reads it."""
    powers = [
        name if exponent == 1 else f"{name}^{exponent}" if exponent.denominator == 1 else f"{name}^({exponent})"
        for name, exponent in zip(BASE, dimension, strict=True)
        if exponent
    ]
    return "*".join(powers) or "1"


dimensions = st.lists(st.fractions(-3, 3, max_denominator=6), min_size=7, max_size=7).map(tuple)


@pytest.mark.slow
@given(dimensions)
def test_a_dimension_survives_writing_and_reading(dimension):
    text = unit_of(dimension)
    if len(text) <= LONGEST:
        assert parse_unit(text) == dimension


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a unit is missing; 1 means none"),
        ("m/", "a unit is missing"),
        ("m^", "an exponent is a number"),
        ("m^s", "an exponent is a number, such as 2, -1, 0.5 or (1/2), not 's'"),
        ("(m", "')' is missing"),
        ("m)", "')' is not expected"),
        ("2 m", "a unit is expected, not '2'"),
        ("m^(1/0)", "divides by zero"),
        ("furlong", "unknown 'furlong'; known are m, g, s"),
        ("ohms", "did you mean 'ohm'"),
        ("kkg", "unknown 'kkg'"),
        ("m$", "'$' is not allowed"),
        ("m" * (LONGEST + 1), "at most 200"),
        ("(" * 150, "missing"),
    ],
)
def test_texts_that_are_not_units_are_refused(text, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        parse_unit(text)


@given(st.text(alphabet="mskgNJ1290()^*/.- ²⁻%", max_size=30))
def test_any_text_is_a_unit_or_an_error_that_names_it(text):
    try:
        assert len(parse_unit(text)) == len(BASE)
    except ValueError as error:
        assert "unit" in str(error)


# The oracle: every constant of a formula is an unknown; the formula is consistent if all conditions can be solved
# together. A quantity is (coefficient by unknown, known exponents).


def _same(a, b):
    return [_minus(a, b)]


def _minus(a, b):
    unknowns = {u: a[0].get(u, 0) - b[0].get(u, 0) for u in {*a[0], *b[0]}}
    return unknowns, a[1] - b[1]


def _times(a, factor):
    return {u: factor * c for u, c in a[0].items()}, factor * a[1]


NOTHING = ({}, np.zeros(7))
MEANINGS = {
    "add": lambda a, b: (a, _same(a, b)),
    "sub": lambda a, b: (b, _same(a, b)),
    "max": lambda a, b: (b, _same(a, b)),
    "lt": lambda a, b: (NOTHING, _same(a, b)),
    "mul": lambda a, b: (_minus(a, _times(b, -1)), []),
    "div": lambda a, b: (_minus(a, b), []),
    "floordiv": lambda a, b: (NOTHING, _same(a, b)),
    "sqrt": lambda a: (_times(a, 0.5), []),
    "cbrt": lambda a: (_times(a, 1 / 3), []),
    "square": lambda a: (_times(a, 2), []),
    "inv": lambda a: (_times(a, -1), []),
    "abs": lambda a: (a, []),
    "sign": lambda a: (NOTHING, []),
    "exp": lambda a: (NOTHING, [a]),
    "sigmoid": lambda a: (NOTHING, [a]),
    "log2": lambda a: (NOTHING, [a]),
    "relu": lambda a: (a, []),
    "hypot": lambda a, b: (a, _same(a, b)),
    "aq": lambda a, b: (a, [b]),
    "protected_div": lambda a, b: (NOTHING, [a, b]),
    "protected_sqrt": lambda a: (_times(a, 0.5), []),
    "where": lambda c, a, b: (a, _same(a, b)),
    "pow": lambda a, b: (NOTHING, [a, b]),
}
NAMES = tuple(MEANINGS)
PRIMITIVES = PrimitiveSet(select(STANDARD, NAMES), tuple(UNITS))


def constant_value(population: Population, index: int, node: Node) -> float | None:
    """The value of a subtree without features."""
    position = node.position
    code = int(population.codes[index, position])
    if code < population.primitives.first_function:
        return None if code else float(population.values[index, position])
    arguments = [constant_value(population, index, argument) for argument in node.arguments]
    name = population.primitives.function(code).name
    if any(argument is None for argument in arguments):
        return None
    with np.errstate(all="ignore"):
        if name in REFERENCE:
            return float(REFERENCE[name](*map(np.float64, arguments)))
        begin = position + 1 - node.size
        tape = slice(begin, position + 1)
        row = (population.codes[index, tape], population.values[index, tape], population.primitives)
        return float(evaluate_tape(*row, [np.zeros(1)] * len(population.primitives.features))[0])


def is_consistent(population: Population, index: int, target: np.ndarray | None, free: bool) -> bool:
    """Whether the conditions of a formula have a solution."""
    conditions = []

    def quantity(node: Node):
        code = int(population.codes[index, node.position])
        if code == 0:
            return ({node.position: 1.0}, np.zeros(7)) if free else NOTHING
        if code < population.primitives.first_function:
            unit = UNITS[population.primitives.features[code - 1]]
            return {}, np.array(parse_unit(unit), dtype=float)
        arguments = [quantity(argument) for argument in node.arguments]
        name = population.primitives.function(code).name
        if name == "pow":
            exponent = constant_value(population, index, node.arguments[1])
            if exponent is not None and np.isfinite(exponent):
                return _times(arguments[0], exponent)
        result, asked = MEANINGS[name](*arguments)
        conditions.extend(asked)
        return result

    root = quantity(tree_of(population, index))
    if target is not None:
        conditions.append(_minus(root, ({}, target)))
    unknowns = sorted({u for condition in conditions for u in condition[0]})
    if not conditions:
        return True
    known = np.array([-condition[1] for condition in conditions])
    if not unknowns:
        return bool(np.abs(known).max() < 1e-6)
    matrix = np.array([[condition[0].get(u, 0.0) for u in unknowns] for condition in conditions])
    solution = np.linalg.lstsq(matrix, known, rcond=1e-9)[0]
    return bool(np.abs(matrix @ solution - known).max() < 1e-6)


def random_formulas(n: int, seed: int, names: tuple[str, ...] = NAMES, share: float = 0.3) -> Population:
    primitives = PrimitiveSet(select(STANDARD, names), tuple(UNITS))
    # Constants are small multiples of 1/2: rounding of exponents does not matter.
    terminals = Terminals((-2.0, 3.0), share)
    formulas = ptc2(n, primitives, 15, 6, terminals, np.random.default_rng(seed))
    np.round(2 * formulas.values, out=formulas.values)
    formulas.values[:] /= 2
    return formulas


@pytest.mark.parametrize("free", [True, False])
@pytest.mark.parametrize("target", [None, "m/s"])
@pytest.mark.parametrize("names", [NAMES, ("mul", "div", "pow", "sub")])
def test_a_formula_is_consistent_if_its_conditions_have_a_solution(free, target, names):
    formulas = random_formulas(400, len(names), names)
    dimension = None if target is None else parse_unit(target)
    units = {name: parse_unit(unit) for name, unit in UNITS.items()}
    found = DimensionalAnalysis(formulas.primitives, units, free).consistent(formulas, dimension)
    vector = None if dimension is None else np.array(dimension, dtype=float)
    expected = [is_consistent(formulas, index, vector, free) for index in range(len(formulas))]
    assert 4 < np.count_nonzero(expected) < len(formulas) - 4
    assert found.tolist() == expected


@pytest.mark.slow
@given(st.integers(0, 2**32), st.booleans(), st.floats(0, 0.6))
def test_random_formulas_agree_with_the_linear_system(seed, free, share):
    formulas = random_formulas(8, seed, share=share)
    units = {name: parse_unit(unit) for name, unit in UNITS.items()}
    found = DimensionalAnalysis(formulas.primitives, units, free).consistent(formulas, None)
    assert found.tolist() == [is_consistent(formulas, index, None, free) for index in range(len(formulas))]


def consistent(text: str, target: str | None = None, free: bool = True, primitives: PrimitiveSet = PRIMITIVES) -> bool:
    units = {name: parse_unit(unit) for name, unit in UNITS.items()}
    population = population_of([text], primitives, 20)
    dimension = None if target is None else parse_unit(target)
    return bool(DimensionalAnalysis(primitives, units, free).consistent(population, dimension)[0])


def test_an_exponent_that_overflows_is_not_consistent():
    assert not consistent("v 1e300 pow 1e300 pow")


def test_every_basic_primitive_has_a_rule():
    assert set(RULES) == set(BASIC)


PHYSICS = {
    "square": ((), {0: 2}), "cube": ((), {0: 3}), "inv": ((), {0: -1}), "relu": ((), {0: 1}),
    "cbrt": ((), {0: Fraction(1, 3)}), "protected_sqrt": ((), {0: Fraction(1, 2)}), "hypot": ("same", {0: 1}),
    "aq": ((1,), {0: 1}), "sigmoid": ((0,), {}), "log1p": ((0,), {}), "expm1": ((0,), {}), "log2": ((0,), {}),
    "log10": ((0,), {}), "protected_log": ((0,), {}), "protected_div": ((0, 1), {}),
}  # fmt: skip
"""Arguments of each standard composite that must be plain numbers, and powers of arguments in the result."""


@pytest.mark.parametrize("name", sorted(set(STANDARD) - set(BASIC)))
def test_the_rules_of_standard_composites_follow_physics(name):
    numbers, result = PHYSICS[name]
    primitives = PrimitiveSet((STANDARD[name],), ("m", "v"))
    units = {"m": parse_unit("kg"), "v": parse_unit("m/s")}
    arity = STANDARD[name].arity
    arguments = ["m", "m" if numbers == "same" else "v"][:arity]
    found = DimensionalAnalysis(primitives, units)
    expected = np.zeros(7)
    for argument, power in result.items():
        expected += float(power) * np.array(units[arguments[argument]], dtype=float)
    texts = [" ".join([*arguments, name]), " ".join([*["1"] * arity, name])]
    population = population_of(texts, primitives, 5)
    target = tuple(Fraction(x).limit_denominator(10) for x in expected)
    forbidden = numbers != "same" and len(numbers) > 0
    assert found.consistent(population, target)[0] == (not forbidden)
    if numbers == "same":
        differing = population_of([f"m v {name}"], primitives, 5)
        assert not found.consistent(differing, None)[0]
    # Numbers suit every function.
    assert DimensionalAnalysis(primitives, units, False).consistent(population, DIMENSIONLESS)[1]


def lerp(a, b, w):
    return a + w * (b - a)


def growth(x, rate, time):
    return x * exp(rate * time)  # noqa: F821 - the language's own


def clipped(x, y):
    return max(x, 0) * max(y, 0)


def pythagoras(a, b):
    return (a**2 + b**2) ** (1 / 2)


@pytest.mark.parametrize(
    ("function", "text", "target"),
    [
        (lerp, "v v r lerp", "m/s"),
        (lerp, "v m r lerp", None),
        (lerp, "v v t lerp", None),
        (lerp, "v 2 2 lerp", "m/s"),
        (growth, "v 2 t growth", "m/s"),
        (growth, "v t t growth", None),
        (growth, "v t inv t growth", "m/s"),
        (clipped, "m v clipped", "kg*m/s"),
        (pythagoras, "v v pythagoras", "m/s"),
        (pythagoras, "v m pythagoras", None),
    ],
)
def test_the_rule_of_a_function_follows_from_its_definition(function, text, target):
    table, names = primitive_table([function, "inv"])
    primitives = PrimitiveSet(select(table, names), tuple(UNITS))
    assert consistent(text, target, True, primitives) is (target is not None)


def test_a_function_that_returns_zero_has_any_unit():
    table, names = primitive_table([lambda_zero])
    assert rule_of(select(table, names)[0]).result is None


def lambda_zero(x):
    return 0


def test_a_primitive_without_a_rule_is_named():
    with pytest.raises(ValueError, match=r"primitive 'mystery' has no rule for units; known are .*add"):
        rule_of(Primitive("mystery", 1))


def test_functions_of_too_many_arguments_are_refused():
    wide = Primitive("wide", MOST_ARGUMENTS + 1)
    with pytest.raises(ValueError, match="function 'wide' has 9 arguments; units allow 8"):
        DimensionalAnalysis(PrimitiveSet((wide,), ("m",)), {})
