"""Searches with templates, from data to models."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest

import shine
from shine.base.errors import DataError, ExportError

RNG = np.random.default_rng(0)
A, T = RNG.uniform(1, 3, (2, 150))
GROUPS = RNG.integers(0, 4, 150)
RATES = np.array([0.3, 0.7, 1.1, 0.5])
DECAY = (A**2 + 1) * np.exp(-RATES[GROUPS] * T)
SETTINGS = {"generations": 4, "seconds": None, "threads": 1, "population": 100}
ARITHMETIC = ("add", "mul", "div", "square")


def evolve(X, y, text, features, **options):
    return shine.evolve(X, y, features=features, template=text, **{"primitives": ARITHMETIC, **SETTINGS, **options})


@pytest.fixture(scope="module")
def decay():
    return evolve(np.column_stack([A, T, GROUPS * 2.0]), DECAY, "f(a)*exp(-k[day]*t)", ["a", "t", "day"])


@pytest.mark.slow
def test_constants_by_group_are_found_with_the_function(decay):
    best = decay.best
    assert str(best.functions["f"]) == "a**2 + 1" and best.loss < 1e-25
    np.testing.assert_allclose(best.constants["k"], RATES, rtol=1e-9)
    assert best.groups == (0.0, 2.0, 4.0, 6.0)


@pytest.mark.slow
def test_the_result_reads_as_its_parts(decay):
    assert decay.best.formula() == "(a**2 + 1)*exp(-k[day]*t)"
    assert str(decay.best).splitlines()[1:3] == ["  f(a) = a**2 + 1", "  k[day] = 0: 0.3, 2: 0.7, 4: 1.1, 6: 0.5"]
    assert "k[day]" in str(decay.front) and decay.front.to_frame()["equation"].str.contains("k").all()


@pytest.mark.slow
def test_predictions_are_those_of_the_expression(decay):
    X = np.column_stack([A, T, GROUPS * 2.0])
    np.testing.assert_allclose(decay.predict(X), DECAY, rtol=1e-9)
    assert np.array_equal(shine.jit(decay.best.expression)(*X.T), decay.predict(X))


def test_models_are_pickled_with_their_parts(decay):
    X = np.column_stack([A, T, GROUPS * 2.0])
    found = pickle.loads(pickle.dumps(decay)).best
    assert np.array_equal(found.predict(X), decay.predict(X)) and str(found) == str(decay.best)


def test_a_group_that_is_not_known_is_an_error_that_says_what_to_do(decay):
    with pytest.raises(DataError, match=r"column 'day' has the group 3, .* refit_groups.* known are 0, 2, 4, 6"):
        decay.predict([[1.0, 1.0, 3.0]])


def test_the_same_seed_gives_the_same_front_on_any_number_of_threads(decay):
    again = evolve(np.column_stack([A, T, GROUPS * 2.0]), DECAY, "f(a)*exp(-k[day]*t)", ["a", "t", "day"], threads=3)
    assert [model.expression for model in again.front] == [model.expression for model in decay.front]


@pytest.mark.slow
def test_texts_name_groups():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": A, "t": T, "who": np.array(["Ann", "Bob", "Cyd", "Dee"])[GROUPS]})
    found = shine.evolve(frame, DECAY, template="f(a)*exp(-k[who]*t)", primitives=ARITHMETIC, **SETTINGS)
    assert found.best.groups == ("Ann", "Bob", "Cyd", "Dee")
    np.testing.assert_allclose(found.predict(frame), DECAY, rtol=1e-9)
    with pytest.raises(DataError, match=r"group 'Zoe'.* known are Ann, Bob, Cyd, Dee"):
        found.predict(frame.assign(who="Zoe"))


def test_texts_name_groups_in_an_array_without_headings():
    rows = np.array([[a, name] for a, name in zip(A.tolist(), "uvw" * 100, strict=False)], dtype=object)
    y = np.array(["uvw".index(name) + 1.0 for name in rows[:, 1]]) * A
    options = {"primitives": ["mul"], "generations": 0, "population": 20, "seeding": 0.0, "guesses": [{"f": "x0"}]}
    found = shine.evolve(rows, y, template="k[x1]*f(x0)", **options)
    assert found.best.groups == ("u", "v", "w") and found.best.loss < 1e-25


@pytest.mark.slow
def test_derivatives_of_an_unknown_function():
    found = evolve(
        T[:, None], 3 * np.cos(T) + np.sin(T), "c*D(f, 0)(t) + f(t)", ["t"], primitives=("add", "mul", "sin")
    )
    assert str(found.best.functions["f"]) == "sin(t)" and found.best.constants["c"] == pytest.approx(3)


@pytest.mark.slow
def test_several_outputs_share_functions_and_parameters():
    Y = np.column_stack([A**2 * np.exp(-0.4 * T), 100 * (A**2 + 0.4)])
    found = evolve(np.column_stack([A, T]), Y, "f(a)*exp(-c*t), 100*(f(a) + c)", ["a", "t"])
    assert str(found.best.functions["f"]) == "a**2" and found.best.constants["c"] == pytest.approx(0.4)
    np.testing.assert_allclose(found.predict(np.column_stack([A, T])), Y, rtol=1e-9)
    assert [model.formula() for model in found.best.outputs] == ["a**2*exp(-0.4*t)", "100*(a**2 + 0.4)"]
    with pytest.raises(ExportError, match="2 outputs; choose one"):
        found.best.export("c")
    assert "exp" in found.best.outputs[0].export("python")


@pytest.mark.slow
def test_parameters_keep_bounds_and_fixed_values():
    y = 2 * A * T + 0.25
    options = {"parameters": {"n": {"integer": True, "bounds": (1, 5)}, "c": (0.5, None)}}
    found = evolve(np.column_stack([A, T]), y, shine.template("f(a, t)*n + c", **options), ["a", "t"], generations=3)
    n, c = found.best.constants["n"], found.best.constants["c"]
    assert n in range(1, 6) and c >= 0.5


@pytest.mark.slow
def test_an_unknown_function_has_its_own_primitives_and_size():
    unknown = {
        "f": {"arguments": ["a"], "primitives": ["mul"], "max_size": 3},
        "h": {"arguments": ["t"], "primitives": ["sin"]},
    }
    law = shine.template("f(a) + h(t)", unknown=unknown)
    found = evolve(np.column_stack([A, T]), A * A + np.sin(T), law, ["a", "t"], generations=3)
    assert found.best.formula() == "a**2 + sin(t)"


@pytest.mark.slow
def test_constraints_hold_for_the_function_that_has_them():
    law = shine.template("f(a) + h(t)", unknown={
        "f": {"arguments": ["a"], "constraints": {"limits": {"square": 0, "mul": 0}}}, "h": ["t"],
    })  # fmt: skip
    found = evolve(np.column_stack([A, T]), A**2 + T**2, law, ["a", "t"], generations=3)
    for model in found.front:
        assert "square" not in str(model.functions["f"].tree) and "*" not in str(model.functions["f"].tree)


def test_guesses_are_functions_and_numbers():
    guess = {"f": "a*a + 1.0", "k": RATES}
    found = evolve(np.column_stack([A, T, GROUPS]), DECAY, "f(a)*exp(-k[g]*t)", ["a", "t", "g"], generations=0,
                   population=20, guesses=[guess])  # fmt: skip
    assert found.best.loss < 1e-25


def test_guesses_are_written_with_the_functions_of_the_search():
    found = evolve(np.column_stack([A, T]), A * np.exp(-T), "f(t)*a", ["a", "t"], generations=0, seeding=0.0,
                   population=20, primitives=["add", "mul", "exp"], guesses=[{"f": "exp(-t)"}])  # fmt: skip
    assert found.best.loss < 1e-25


def test_a_model_is_a_guess_for_the_next_search(decay):
    found = evolve(np.column_stack([A, T, GROUPS * 2.0]), DECAY, "f(a)*exp(-k[day]*t)", ["a", "t", "day"],
                   generations=0, population=20, guesses=[decay.best])  # fmt: skip
    assert found.best.loss < 1e-25


WRONG = [
    ({"validation": "random"}, "validation does not go"),
    ({"groups": GROUPS}, "groups do not go with a template, which names its column of groups itself"),
    ({"constraints": {"limits": {"square": 1}}}, "each unknown function has its own"),
    ({"dtype": "float32"}, "float64"),
    ({"tier": "native"}, "tile machine"),
    ({"complexity": {"a": 2}}, "complexity has 'a'"),
    ({"guesses": ["a*t"]}, r"guesses\[0\]: with a template, a guess is a mapping"),
    ({"guesses": [{"q": "a"}]}, "the template has no 'q'"),
    ({"guesses": [{"f": "a + q"}]}, "unknown name 'q'"),
    ({"guesses": [{"k": [1, 2]}]}, "k is a number"),
    ({"primitives": ["add", "def f(a): return a*a"]}, r"'f' is unknown there.*shine\.template takes .*functions=\[f\]"),
]


@pytest.mark.parametrize(("options", "message"), WRONG)
def test_what_does_not_go_with_a_template_is_refused(options, message):
    with pytest.raises(ValueError, match=message) as refused:
        evolve(np.column_stack([A, T]), A, "f(a)*k", ["a", "t"], **options)
    assert "\n" not in str(refused.value)


def test_rows_that_are_groups_of_their_own_are_refused():
    with pytest.raises(DataError, match="each row is a group of its own by 't'"):
        evolve(np.column_stack([A, T]), DECAY, "f(a) + k[t]", ["a", "t"])


def test_a_column_that_the_data_lack_is_named():
    with pytest.raises(DataError, match="needs a column 'b'; the data have a, t"):
        evolve(np.column_stack([A, T]), A, "f(b)*k", ["a", "t"])


def test_outputs_and_targets_must_fit():
    with pytest.raises(DataError, match="2 outputs, but y has 1 column; give one column per output"):
        evolve(np.column_stack([A, T]), A[:, None], "f(a), f(t)", ["a", "t"])


@pytest.mark.slow
def test_an_estimator_takes_a_template():
    from sklearn.base import clone

    model = shine.SymbolicRegressor(
        template="f(x0)*exp(-k[x2]*x1)", primitives=ARITHMETIC, generations=8, max_time=None, population_size=300,
        random_state=0, n_jobs=1,
    )  # fmt: skip
    X = np.column_stack([A, T, GROUPS])
    model = clone(model).fit(X, DECAY)
    assert str(model.best_.functions["f"]) == "x0**2 + 1" and model.score(X, DECAY) == pytest.approx(1)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))
    with pytest.raises(DataError, match="refit_groups"):
        model.predict([[1.0, 1.0, 9.0]])


@pytest.mark.filterwarnings("error::shine.ExtrapolationWarning")
@pytest.mark.slow
def test_uncertainty_of_groups_with_any_numbers_is_that_of_groups_from_zero():
    codes = np.arange(60) % 3
    t = np.random.default_rng(1).uniform(1, 3, 60)
    y = (codes + 1) * t**2 + np.random.default_rng(2).normal(0, 0.1, 60)
    found = []
    for numbers in (np.arange(3.0), np.array([101.0, 205.0, 999.0])):
        X = np.column_stack([numbers[codes], t])
        options = {"generations": 2, "population": 60}
        result = evolve(X, y, "k[g]*f(t)", ["g", "t"], **options)
        found.append(np.column_stack([*result.predict(X, return_std=True), result.best.predict_interval(X)]))
    np.testing.assert_allclose(found[1], found[0], rtol=1e-9)


TWO = np.column_stack([2.5 * T**2 + 1, 3 * T]) + np.random.default_rng(3).normal(0, 0.01, (150, 2))
SHORT = {"generations": 2, "population": 60}


@pytest.fixture(scope="module")
def two():
    return evolve(T[:, None], TWO, "a*f(t) + c, b*t", ["t"], **SHORT)


@pytest.mark.slow
def test_intervals_of_one_output_are_those_of_the_constants_that_it_uses(two):
    line = two.best.outputs[1].with_data(T[:, None], TWO[:, 1])
    assert list(line.conf_int()) == ["b"] and line.form().text == "b*t"
    slope = T @ TWO[:, 1] / (T @ T)
    error = np.sqrt(np.sum((TWO[:, 1] - slope * T) ** 2) / 149 / (T @ T))
    assert line.standard_errors()["b"] == pytest.approx(error, rel=1e-3)
    assert "b" not in two.best.outputs[0].form().names


@pytest.mark.slow
def test_intervals_of_all_outputs_name_those_of_one(two):
    for asked in (two.best.conf_int, two.best.form, lambda: two.best.with_data(T[:, None], TWO)):
        with pytest.raises(DataError, match=r"model\.outputs\[0\]\.with_data"):
            asked()


def test_a_parameter_with_the_name_of_a_column_is_refused():
    law = shine.template("x1*f(x0)", parameters={"x1": 2})
    with pytest.raises(DataError, match="'x1' is a parameter of the template, and a column of the data"):
        shine.evolve(np.column_stack([A, T]), DECAY, template=law, **{**SETTINGS, "primitives": ARITHMETIC})


def test_a_search_that_had_no_time_has_a_formula():
    found = evolve(T[:, None], T, "f(t)*k", ["t"], seconds=1e-6, population=5000, seeding=0)
    assert found.stopped_by == "seconds" and np.isfinite(found.best.loss) and found.evaluations < 5000


@pytest.mark.slow
def test_displays_show_the_formulas_of_all_outputs(two):
    first, second = two.best.outputs
    assert two.best.latex() == rf"{first.latex()},\quad {second.latex()}"
    for shown in (two.best._repr_html_(), two.front._repr_html_(), two._repr_html_()):
        assert shown.count("<math") >= 2
    assert second.latex() in two.front._repr_latex_()
    assert first.latex() in two._repr_latex_()


@pytest.mark.parametrize(("law", "size"), [*itertools.product(("A*sin(f(a))", "f(a), k*a"), (5e-324, 1e-200, 1.7e308))])
def test_a_target_whose_squares_lose_digits_is_refused(law, size):
    a = np.linspace(1, 2, 30)
    y = size * np.where(a > 1.5, 1.0, -1.0)
    y = np.column_stack([y, y]) if ", " in law else y
    with pytest.raises(DataError, match=r"the target is up to .*e[-+]\d+; with a template, give it in a unit"):
        evolve(a[:, None], y, law, ["a"], generations=1, population=20)
