"""Laws as formulas: composed, with named functions, and in every export."""

from __future__ import annotations

import ctypes
import pickle
import subprocess
import warnings

import numpy as np
import pytest
from helpers.markers import mostly_slow
from helpers.templates import composition, individuals, law
from unit.formats.write.test_excel import evaluated
from unit.formats.write.test_sql import selected

import shine
from shine.evaluate.kernels.kernel import Kernel
from shine.formats.write import export
from shine.lang.interpret import evaluate
from shine.search.templates.law import Groups, law_of

GROUPS = Groups("g", (0.0, 1.0, 2.5, 4.0, 7.0))
LAWS = {
    "decay": law("f(a, b)*exp(-k[g]*t) + h(t)", ("a", "b", "t", "g"), {"f": "a*b + 1.5", "h": "sin(t)"},
                 {"k": [0.3, -0.7, 1.1, 1.6, 0.5]}, GROUPS),
    "derivative": law("c*D(f, 0)(t) + f(t) - a", ("a", "b", "t", "g"), {"f": "exp(-t)*t**2"}, {"c": -2.5}),
    "repeated": law("sum(w*f(x + q) for x, w in zip([a, b], [1, p[g]]))", ("a", "b", "t", "g"),
                    {"f": "sqrt(x) + 0.25/x"}, {"q": 0.5, "p": [1, 2, 3, 4, 5.5]}, GROUPS),
    "nested": law("def law(a, b, t):\n    u = f(a)\n    return u*t if u > 1 else f(u*b) + c", ("a", "b", "t", "g"),
                  {"f": "x*(x - 0.5)"}, {"c": 3.0}),
}  # fmt: skip
ROWS = np.random.default_rng(0).uniform(0.3, 2, (4, 60))
ROWS[3] = np.resize(GROUPS.values, 60)


def expected(name):
    a, b, t, g = ROWS
    k = np.array([0.3, -0.7, 1.1, 1.6, 0.5])[np.searchsorted(GROUPS.values, g)]
    p = np.array([1, 2, 3, 4, 5.5])[np.searchsorted(GROUPS.values, g)]
    f = lambda x: np.sqrt(x) + 0.25 / x  # noqa: E731
    u = a * (a - 0.5)
    return {
        "decay": (a * b + 1.5) * np.exp(-k * t) + np.sin(t),
        "derivative": -2.5 * np.exp(-t) * (2 * t - t**2) + np.exp(-t) * t**2 - a,
        "repeated": f(a + 0.5) + p * f(b + 0.5),
        "nested": np.where(u > 1, u * t, u * b * (u * b - 0.5) + 3),
    }[name]


def of_python(name):
    space = {}
    exec(export(LAWS[name].named(), "python", "law"), space)
    return space["law"](*ROWS)


def of_pandas(name):
    pandas = pytest.importorskip("pandas")
    space = {}
    exec(export(LAWS[name].named(), "pandas", "law"), space)
    return space["law"](pandas.DataFrame(dict(zip("abtg", ROWS, strict=True)))).to_numpy()


def of_polars(name):
    polars = pytest.importorskip("polars")
    space = {}
    exec(export(LAWS[name].named(), "polars", "law"), space)
    return polars.DataFrame(dict(zip("abtg", ROWS, strict=True))).select(space["law"])["law"].to_numpy()


def of_sql(name):
    return selected(export(LAWS[name].named(), "sql", dialect="sqlite"), tuple("abtg"), ROWS)


def of_excel(name):
    return evaluated(export(LAWS[name].named(), "excel").strip(), ROWS)


def of_json(name):
    from shine.formats.write.json import from_json

    return evaluate(from_json(export(LAWS[name].named(), "json", "law")), list(ROWS))


def of_c(name, folder):
    source = folder / "law.c"
    source.write_text(export(LAWS[name].named(), "c", "law"))
    library = folder / "law.so"
    subprocess.run(["cc", "-O1", "-ffp-contract=off", "-shared", "-fPIC", source, "-o", library, "-lm"], check=True)
    function = ctypes.CDLL(str(library)).law
    function.restype, function.argtypes = ctypes.c_double, [ctypes.c_double] * len(LAWS[name].named().parameters)
    return np.array([function(*row) for row in ROWS.T.tolist()])


def of_sympy(name):
    sympy = pytest.importorskip("sympy")
    from shine.formats.write.sympy import sympy_expression

    expression = sympy_expression(LAWS[name].named())
    symbols = {symbol.name: symbol for symbol in expression.free_symbols}
    values = [
        expression.subs({symbol: row["abtg".index(letter)] for letter, symbol in symbols.items()})
        for row in ROWS.T[:8].tolist()
    ]
    assert sympy
    return np.array([float(value) for value in values])


def of_torch(name):
    torch = pytest.importorskip("torch")
    space = {}
    exec(export(LAWS[name].named(), "torch", "law"), space)
    return space["law"](*map(torch.tensor, ROWS)).numpy()


def of_jax(name):
    jax = pytest.importorskip("jax")
    with jax.enable_x64(True) if hasattr(jax, "enable_x64") else jax.experimental.enable_x64():
        space = {}
        exec(export(LAWS[name].named(), "jax", "law"), space)
        return np.asarray(space["law"](*map(jax.numpy.asarray, ROWS)))


def of_onnx(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(export(LAWS[name].named(), "onnx", "law"), providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_inputs()]
    feed = {each: ROWS["abtg".index(each)] for each in names} if len(names) > 1 else {names[0]: ROWS.T.copy()}
    return session.run(None, feed)[0].ravel()


def of_graphdef(name, folder):
    pytest.importorskip("google.protobuf")
    from shine.lang.program.interpret import interpret

    path = folder / "law.pbtxt"
    path.write_text(export(LAWS[name].named(), "graphdef", "law"))
    program = shine.load_graph(path)
    (values,) = interpret(program, {each.label: ROWS["abtg".index(each.label)] for each in program.arguments})
    return values


@pytest.mark.parametrize("form", [of_python, of_pandas, of_polars, of_sql, of_excel, of_json])
@pytest.mark.parametrize("name", LAWS)
def test_every_form_has_the_values_of_the_law(name, form):
    np.testing.assert_allclose(form(name), expected(name), rtol=1e-12)


QUICK_FORMS = [of_python, of_pandas, of_sql, of_json]


@pytest.mark.parametrize(
    "form",
    mostly_slow(
        [of_python, of_pandas, of_polars, of_sql, of_json, of_c, of_sympy, of_torch, of_jax, of_onnx, of_graphdef],
        QUICK_FORMS,
    ),
)
def test_a_number_that_is_no_group_has_no_value(form, monkeypatch, tmp_path):
    known, unknown = expected("decay"), np.arange(60) % 7 == 0
    monkeypatch.setitem(globals(), "ROWS", np.vstack([ROWS[:3], ROWS[3:] + 0.2 * unknown]))
    with np.errstate(invalid="ignore"):
        found = np.asarray(form("decay", tmp_path) if form in (of_c, of_graphdef) else form("decay"), np.float64)
    wanted = np.where(unknown, np.nan, known)
    np.testing.assert_allclose(found, wanted[: len(found)], rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("form", [of_sympy, of_torch, of_jax, of_onnx])
@pytest.mark.parametrize("name", LAWS)
def test_every_library_has_the_values_of_the_law(name, form):
    found = form(name)
    np.testing.assert_allclose(found, expected(name)[: len(found)], rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("form", [of_c, of_graphdef])
def test_every_file_has_the_values_of_the_law(name, form, tmp_path):
    np.testing.assert_allclose(form(name, tmp_path), expected(name), rtol=1e-12)


@pytest.mark.parametrize("name", LAWS)
def test_composed_and_named_formulas_have_the_same_bits(name):
    found = LAWS[name]
    assert np.array_equal(Kernel(found.composed())(*ROWS), Kernel(found.named())(*ROWS))


def test_forms_with_functions_name_them():
    named = LAWS["decay"].named()
    assert "def f(a, b):" in export(named, "python", "law")
    assert r"\operatorname{f}\left(a, b\right) &= " in export(named, "latex", "law")
    assert "static double law_f(double a, double b)" in export(named, "c", "law")


def test_the_formula_for_people_has_subscripts():
    assert LAWS["decay"].shown() == "(a*b + 1.5)*exp(-k[g]*t) + sin(t)"


def test_what_turns_out_to_be_nothing_is_not_shown():
    found = law("f(a)*c + h(t)", ("a", "t"), {"f": "a", "h": "0"}, {}, parameters={"c": 1})
    assert law("f(a)*c + h(t)", ("a", "t"), {"f": "a", "h": "0"}, {"c": 1.0}).shown() == "a" and found.template


def test_an_individual_is_the_law_that_it_computes():
    made = composition("f(a)*k[g] + D(f, 0)(t)*c + d", ("a", "t", "g"), 3, parameters={"d": 0.25})
    population = individuals(made, 40)
    groups = Groups("g", (0.0, 1.0, 2.0))
    a, t, g = ROWS[0], ROWS[2], np.resize([0.0, 1.0, 2.0], 60)
    (composed,) = made.composed(population)
    for i in range(40):
        found = law_of(made, population, i, groups)
        own = composed.population.take(np.array([i]))
        columns = np.flatnonzero(composed.grouped[i])
        with np.errstate(all="ignore"):
            values = np.asarray(evaluate(found.named(), [a, t, g]), float) * np.ones(60)
        for group in range(3):
            own.values[0, columns] = population.values[i, composed.sources[i, columns] + group]
            with np.errstate(all="ignore"):
                wanted = np.asarray(evaluate(own.tree(0), [a, t, g]), float) * np.ones(60)
            at = (g == group) & np.isfinite(wanted)
            np.testing.assert_allclose(values[at], wanted[at], rtol=1e-6, atol=1e-9)


def test_laws_are_pickled():
    found = pickle.loads(pickle.dumps(LAWS["decay"]))
    assert found.named() == LAWS["decay"].named() and found.composed() == LAWS["decay"].composed()
