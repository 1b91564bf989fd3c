"""Systems as programs: what they integrate is what SciPy integrates from the formulas themselves."""

import csv
import io
import shutil
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from shine.formats.write.systems.system import System, export_system
from shine.lang.parse import parse

COMPILER = shutil.which("cc")
needs_cc = pytest.mark.skipif(COMPILER is None, reason="needs a C compiler")


def system(states, *sources, controls=(), time="t"):
    parameters = (*states, *controls, time)
    return System(tuple(parse(source, parameters) for source in sources), tuple(states), tuple(controls), time)


SYSTEMS = {
    "Lotka-Volterra": (
        system("xy", "1.5*x - x*y", "x*y - 3*y"),
        lambda t, s: [1.5 * s[0] - s[0] * s[1], s[0] * s[1] - 3 * s[1]],
        [1.0, 2.0],
    ),
    "Lorenz": (
        system(["x", "y", "z"], "10*(y - x)", "x*(28 - z) - y", "x*y - 8/3*z"),
        lambda t, s: [10 * (s[1] - s[0]), s[0] * (28 - s[2]) - s[1], s[0] * s[1] - 8 / 3 * s[2]],
        [1.0, 1.0, 20.0],
    ),
    "driven pendulum": (
        system(["angle", "speed"], "speed", "-sin(angle) - 0.1*speed + 0.5*cos(0.7*time)", time="time"),
        lambda t, s: [s[1], -np.sin(s[0]) - 0.1 * s[1] + 0.5 * np.cos(0.7 * t)],
        [0.5, 0.0],
    ),
    "Michaelis-Menten with names of C": (
        system(["double", "rates"], "-double/(0.3 + double)", "max(double, 0.1) - sqrt(abs(rates))"),
        lambda t, s: [-s[0] / (0.3 + s[0]), max(s[0], 0.1) - np.sqrt(abs(s[1]))],
        [2.0, 1.0],
    ),
    "a switch": (
        system("x", "1 - x if t < 1 else -x"),
        lambda t, s: [1 - s[0] if t < 1 else -s[0]],
        [0.0],
    ),
}


def expected(rates, start, end, step):
    solve_ivp = pytest.importorskip("scipy.integrate").solve_ivp
    times = np.arange(round(end / step) + 1) * step
    found = solve_ivp(rates, (0, times[-1]), start, "DOP853", times, rtol=1e-11, atol=1e-12, max_step=0.01)
    return np.column_stack([times, found.y.T])


def table(text):
    rows = list(csv.reader(io.StringIO(text)))
    return rows[0], np.array(rows[1:], dtype=float)


@needs_cc
@pytest.mark.parametrize("name", SYSTEMS)
def test_the_program_in_c_integrates_as_scipy_does(name, tmp_path):
    given, rates, start = SYSTEMS[name]
    (tmp_path / "f.c").write_text(export_system(given, "c"))
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O1"]
    subprocess.run([COMPILER, *flags, "-DF_MAIN", "f.c", "-lm", "-o", "f"], cwd=tmp_path, check=True)
    words = [str(value) for value in [*start, 2.0, 0.25]]
    ran = subprocess.run([str(tmp_path / "f"), *words], capture_output=True, text=True, check=True)
    heading, found = table(ran.stdout)
    assert len(heading) == len(start) + 1
    np.testing.assert_allclose(found, expected(rates, start, 2.0, 0.25), rtol=1e-6, atol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("name", SYSTEMS)
def test_the_program_in_python_integrates_as_scipy_does(name, tmp_path):
    given, rates, start = SYSTEMS[name]
    wanted = expected(rates, start, 2.0, 0.25)
    (tmp_path / "f.py").write_text(export_system(given, "python"), encoding="utf-8")
    words = [str(value) for value in [*start, 2.0, 0.25]]
    ran = subprocess.run([sys.executable, "f.py", *words], cwd=tmp_path, capture_output=True, text=True, check=True)
    heading, found = table(ran.stdout)
    assert heading == [given.time, *given.states]
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def namespace(text):
    found = {"__name__": "exported"}
    exec(compile(text, "exported", "exec"), found)
    return found


CONTROLLED = system("xv", "v", "force - x - 0.2*v", controls=["force"])


def test_controls_are_functions_or_arrays():
    pytest.importorskip("scipy")
    program = namespace(export_system(CONTROLLED, "python"))
    times = np.linspace(0, 3, 301)
    by_function = program["simulate"]([1.0, 0.0], times, np.sin)
    by_array = program["simulate"]([1.0, 0.0], times, np.sin(times))
    wanted = expected(lambda t, s: [s[1], np.sin(t) - s[0] - 0.2 * s[1]], [1.0, 0.0], 3.0, 0.01)[:, 1:]
    np.testing.assert_allclose(by_function, wanted, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(by_array, wanted, rtol=1e-4, atol=1e-4)
    with pytest.raises(TypeError, match="give the controls force"):
        program["simulate"]([1.0, 0.0], times)


def by_run():
    """Decays with a rate by the run and a control."""
    sources = ("push - k*x", "k = 0.5 if run <= 0.5 else 2.0")
    parameters = ("x", "push", "run", "t")
    tree = parse(f"def formula({', '.join(parameters)}):\n    {sources[1]}\n    return {sources[0]}", parameters)
    return System((tree,), ("x",), ("push", "run"), runs=("slow", 'fast "one"'), shown=("x' = push - k[run]*x",))


def alone():
    """The same without the control."""
    return replace(
        by_run(), trees=system("x", "-x*(0.5 if run <= 0.5 else 2.0)", controls=["run"]).trees, controls=("run",)
    )


def test_constants_by_run_are_in_one_program_of_python():
    pytest.importorskip("scipy")
    program = namespace(export_system(by_run(), "python"))
    times = np.linspace(0, 2, 5)
    for run, rate in (("slow", 0.5), ('fast "one"', 2.0)):
        found = program["simulate"]([3.0], times, run, lambda time: 1.0)[:, 0]
        np.testing.assert_allclose(found, 1 / rate + (3 - 1 / rate) * np.exp(-rate * times), rtol=1e-6)
    with pytest.raises(ValueError, match="not in list"):
        program["simulate"]([3.0], times, "other", lambda time: 1.0)


def test_mathematics_tells_the_names_of_the_runs():
    pytest.importorskip("sympy")
    assert "# 0 where 'run' is 'slow', 1 where" in export_system(by_run(), "sympy")
    latex = export_system(by_run(), "latex")
    assert r"\dot{x} &= \mathrm{push} - k x" in latex and r"0.5 & \text{if } \mathrm{run} = {\text{slow}}" in latex


@needs_cc
def test_constants_by_run_are_in_one_program_of_c(tmp_path):
    (tmp_path / "f.c").write_text(export_system(alone(), "c"))
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O1"]
    subprocess.run([COMPILER, *flags, "-c", "f.c", "-o", "f.o"], cwd=tmp_path, check=True)
    subprocess.run([COMPILER, *flags, "-DF_MAIN", "f.c", "-lm", "-o", "f"], cwd=tmp_path, check=True)
    for run, rate in (("slow", 0.5), ('fast "one"', 2.0)):
        words = [str(tmp_path / "f"), "3", "2", "0.5", run]
        _, found = table(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
        np.testing.assert_allclose(found[:, 1], 3 * np.exp(-rate * found[:, 0]), rtol=1e-8)
    ran = subprocess.run([*words[:-1], "other"], capture_output=True, text=True)
    assert (ran.returncode, ran.stderr.strip()) == (2, "no run has the name other")


def test_powers_and_runs_in_julia():
    text = export_system(by_run(), "julia")
    assert 'const runs_ = ["slow", "fast \\"one\\""]' in text
    assert "function simulate(start, times, run; controls" in text
    powers = export_system(system("x", "x**2 - x**-3 + (x*x)**1.5"), "julia")
    rates = next(line for line in powers.splitlines() if "rates_[1] = " in line)
    assert "x^2" in rates and "**" not in rates


@pytest.mark.parametrize("to", ["python", "jax"])
@pytest.mark.parametrize("name", ["np", "simulate", "found", "start"])
def test_a_name_of_the_program_itself_is_refused(to, name):
    with pytest.raises(ValueError, match=f"'{name}' is a name of the program itself; choose another"):
        export_system(CONTROLLED, to, name)


@needs_cc
def test_controls_in_c_come_from_the_caller(tmp_path):
    caller = """
#include "f.c"
static void push(double t, double *controls, void *context) { controls[0] = *(double *)context * sin(t); }
int main(void)
{
    double states[2] = {1.0, 0.0}, strength = 1.0;
    if (f_integrate(0.0, 3.0, states, 1e-10, push, &strength)) return 1;
    printf("%.17g %.17g", states[0], states[1]);
    return 0;
}
"""
    (tmp_path / "f.c").write_text(export_system(CONTROLLED, "c"))
    (tmp_path / "main.c").write_text(caller)
    subprocess.run([COMPILER, "-Wall", "-Werror", "main.c", "-lm", "-o", "main"], cwd=tmp_path, check=True)
    ran = subprocess.run([str(tmp_path / "main")], capture_output=True, text=True, check=True)
    wanted = expected(lambda t, s: [s[1], np.sin(t) - s[0] - 0.2 * s[1]], [1.0, 0.0], 3.0, 0.01)[-1, 1:]
    np.testing.assert_allclose(np.array(ran.stdout.split(), dtype=float), wanted, rtol=1e-7)


@needs_cc
def test_an_explosion_in_c_is_told(tmp_path):
    (tmp_path / "f.c").write_text(export_system(system("x", "x*x"), "c"))
    subprocess.run([COMPILER, "-DF_MAIN", "f.c", "-lm", "-o", "f"], cwd=tmp_path, check=True)
    ran = subprocess.run([str(tmp_path / "f"), "1", "2", "0.25"], capture_output=True, text=True)
    assert (ran.returncode, ran.stderr.strip()) == (1, "the states explode before time 1")


def test_sympy_has_the_right_hand_side_and_the_equations():
    sympy = pytest.importorskip("sympy")
    from shine.formats.write.systems.mathematics import sympy_equations

    found = namespace(export_system(SYSTEMS["Lorenz"][0], "sympy"))["f"]
    x, y, z = (sympy.Symbol(name, real=True) for name in "xyz")
    assert sympy.simplify(found - sympy.Matrix([10 * (y - x), x * (28 - z) - y, x * y - 8.0 / 3 * z])).norm() < 1e-12
    equation = sympy_equations(system("x", "2*x*t"))[0]
    time = sympy.Symbol("t", real=True)
    assert sympy.checkodesol(equation, sympy.Eq(sympy.Function("x")(time), sympy.exp(time**2)))[0]


def test_latex_has_a_line_a_state():
    text = export_system(system(["alpha", "y"], "alpha/2", "-y**2"), "latex")
    assert text.splitlines()[1:3] == [r"\dot{\alpha} &= \frac{\alpha}{2} \\", r"\dot{y} &= -y^{2}"]


def test_julia_means_what_the_formulas_mean():
    given = system("xy", "-x**2 + 2**-y if x < y and not x == 1 else min(x, y)", "floor(x)//y + log(abs(x)) - x % y")
    text = export_system(given, "julia")
    lines = [line.strip().partition(" = ")[2] for line in text.splitlines() if line.strip().startswith("rates_[")]
    # The text is Python but for signs and the names of functions, with the same strengths of operators.
    python = [line.replace("^", "**").replace("!(", "~np.bool_(") for line in lines]
    names = {"np": np, "min": min, "fld": lambda a, b: a // b, "mod": lambda a, b: a % b, "abs": abs}
    names |= {"ifelse": lambda c, a, b: a if c else b, "float": float, "floor": np.floor, "log": np.log}
    for x, y in [(0.5, 2.0), (3.0, 1.5), (1.0, 2.0)]:
        values = [eval(line, {**names, "x": x, "y": y}) for line in python]
        first = -(x**2) + 2**-y if x < y and x != 1 else min(x, y)
        assert values == pytest.approx([first, np.floor(x) // y + np.log(abs(x)) - x % y])
    assert "ODEProblem(f!," in text


@pytest.mark.slow
@pytest.mark.parametrize("stiff", [False, True], ids=["explicit", "implicit"])
@pytest.mark.parametrize("name", list(SYSTEMS)[::2])
def test_jax_programs_integrate_with_diffrax(name, stiff):
    pytest.importorskip("diffrax")
    given, rates, start = SYSTEMS[name]
    program = namespace(export_system(replace(given, stiff=stiff), "jax"))
    end = 1.5 if name == "Lorenz" else 3.0  # chaos
    wanted = expected(rates, start, end, 0.25)
    np.testing.assert_allclose(program["simulate"](start, wanted[:, 0]), wanted[:, 1:], rtol=1e-7, atol=1e-7)


@pytest.mark.slow
def test_jax_programs_are_differentiated_mapped_over_starts_and_take_controls():
    pytest.importorskip("diffrax")
    import jax

    driven = system("x", "u - 2*x", controls=("u",))
    program = namespace(export_system(driven, "jax"))

    def last(start):
        return program["simulate"]([start], [0.0, 1.0], lambda time: (jax.numpy.exp(-time),))[-1, 0]

    value, slope = jax.value_and_grad(last)(3.0)
    assert value == pytest.approx(2 * np.exp(-2) + np.exp(-1), abs=1e-9)
    assert slope == pytest.approx(np.exp(-2), abs=1e-9)
    many = jax.vmap(last)(jax.numpy.array([3.0, 0.0]))
    np.testing.assert_allclose(many, [value, np.exp(-1) - np.exp(-2)], atol=1e-9)
    # A control that rises evenly: x = t/2 - 1/4 from -1/4.
    np.testing.assert_allclose(program["simulate"]([-0.25], [0.0, 2.0], [0.0, 2.0])[:, 0], [-0.25, 0.75], atol=1e-9)
    with pytest.raises(TypeError, match="give the controls u"):
        program["simulate"]([1.0], [0.0, 1.0])


@pytest.mark.slow
def test_a_jax_program_prints_a_table_and_says_what_it_needs(tmp_path):
    pytest.importorskip("diffrax")
    given, rates, start = SYSTEMS["Lotka-Volterra"]
    (tmp_path / "f.py").write_text(export_system(given, "jax"))
    words = [sys.executable, "f.py", *map(str, start), "2", "0.5"]
    ran = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
    heading, found = table(ran.stdout)
    assert heading == ["t", "x", "y"]
    np.testing.assert_allclose(found, expected(rates, start, 2, 0.5), rtol=1e-7)
    (tmp_path / "diffrax.py").write_text("raise ImportError")
    ran = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert ran.stderr.endswith("ImportError: this program integrates with diffrax 0.7 or later: pip install diffrax\n")


def test_a_program_called_with_too_few_words_says_what_it_takes(tmp_path):
    (tmp_path / "f.py").write_text(export_system(SYSTEMS["Lotka-Volterra"][0], "python"))
    ran = subprocess.run([sys.executable, "f.py", "1", "2"], cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode and ran.stderr == "give the states at time 0, the last time and the step: X0 Y0 END STEP\n"
    # Words cannot give controls.
    assert not any("__main__" in export_system(CONTROLLED, to) for to in ("python", "jax"))


def test_an_unknown_form_and_a_bad_name_are_refused():
    with pytest.raises(ValueError, match="unknown export 'excel' of a system; use one of python, c, julia"):
        export_system(CONTROLLED, "excel")
    for to in ("python", "julia", "jax"):
        with pytest.raises(ValueError, match="is not a name"):
            export_system(CONTROLLED, to, "for")


MAP = System(
    tuple(parse(text, ("x", "y", "k")) for text in ("1 - 1.4*x**2 + y + 0.001*k", "0.3*x")),
    ("x", "y"),
    time="k",
    is_map=True,
)


def iterated(steps):
    found = [(0.1, 0.2)]
    for k in range(steps):
        x, y = found[-1]
        found.append((1 - 1.4 * x**2 + y + 0.001 * k, 0.3 * x))
    return found


def test_a_map_in_python_is_a_loop():
    program = namespace(export_system(MAP, "python"))
    np.testing.assert_allclose(program["simulate"]([0.1, 0.2], 9), iterated(9), rtol=1e-12)


@needs_cc
def test_a_map_in_c_is_a_loop(tmp_path):
    (tmp_path / "f.c").write_text(export_system(MAP, "c"))
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic"]
    subprocess.run([COMPILER, *flags, "-DF_MAIN", "f.c", "-lm", "-o", "f"], cwd=tmp_path, check=True)
    ran = subprocess.run([str(tmp_path / "f"), "0.1", "0.2", "9"], capture_output=True, text=True, check=True)
    heading, found = table(ran.stdout)
    assert heading == ["k", "x", "y"]
    np.testing.assert_allclose(found[:, 1:], iterated(9), rtol=1e-12)
    ran = subprocess.run([str(tmp_path / "f"), "100", "0", "30"], capture_output=True, text=True)
    assert ran.returncode == 1
    assert "the states explode before step" in ran.stderr


def test_a_map_in_mathematics_gives_the_next_state():
    assert "{y}_{k+1} &= 0.3 x" in export_system(MAP, "latex")
    assert "@" not in export_system(MAP, "julia")
    sympy = pytest.importorskip("sympy")
    from shine.formats.write.systems.mathematics import sympy_equations

    step = sympy.Symbol("k", real=True)
    assert sympy_equations(MAP)[1].lhs == sympy.Function("y")(step + 1)
