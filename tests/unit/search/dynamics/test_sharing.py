"""Constants that equations share: found where the data do not tell them apart, and nowhere else."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from shine.data.trajectories import Trajectories, Trajectory
from shine.lang.parse import parse
from shine.search.dynamics.equations import Equation
from shine.search.dynamics.forms import form_of
from shine.search.dynamics.joining import Candidate, with_terms_of_others
from shine.search.dynamics.rows import rate_rows
from shine.search.dynamics.run import find_dynamics, fitted
from shine.search.dynamics.settings import DynamicsSettings
from shine.search.dynamics.sharing import with_sharing
from shine.search.models.model import Model
from shine.search.problem.settings import SearchSettings


def system_of(rates, states, starts, end, noise=0.02, **options):
    """A form of noisy runs, and what fits equations to it."""
    times, runs = np.linspace(0, end, 60), []
    function = eval(f"lambda t, v: (lambda {', '.join(states)}: [{', '.join(rates)}])(*v)", {"sin": np.sin})
    for number, start in enumerate(starts):
        exact = solve_ivp(function, (0, end), start, t_eval=times, rtol=1e-9, atol=1e-12).y.T
        noisy = exact + noise * exact.std(axis=0) * np.random.default_rng(number).standard_normal(exact.shape)
        runs.append(Trajectory(times, noisy, np.zeros((60, 0))))
    form = form_of(Trajectories(tuple(runs), states), DynamicsSettings(**options))

    def fit(equations):
        return fitted(equations, form, lambda: False)

    return form, fit


def equations(texts, states):
    return [Equation(Model(parse(text, states), 0.0, 1.0)) for text in texts]


EPIDEMIC = ("-1.5*s*i", "1.5*s*i - 0.5*i", "0.5*i")


@pytest.mark.slow
def test_a_flow_from_state_to_state_has_one_constant():
    states = ("s", "i", "r")
    _, fit = system_of(EPIDEMIC, states, [(0.95, 0.05, 0.0)], 16)
    apart = fit(equations(["-1.4*s*i", "i*(1.6*s - 0.6)", "0.45*i"], states))
    shared = with_sharing(apart, fit)
    assert (apart.unknowns.count, shared.unknowns.count) == (4, 2)
    assert shared.nats < apart.nats - 5
    np.testing.assert_allclose(shared.constants, [1.5, 1.5, 0.5, 0.5], rtol=0.03)
    texts = [line.split(" = ")[1] for line in shared.lines()]
    assert texts[0].removeprefix("-") == texts[1].split(" - ")[0] and texts[2] == texts[1].split(" - ")[1]
    # Each motion keeps the sum now.
    np.testing.assert_allclose(shared.rates(np.random.default_rng(0).random((9, 3))).sum(axis=1), 0, atol=1e-15)


def test_constants_that_differ_stay_apart():
    states = ("x", "y")
    _, fit = system_of(["1.1*x - 0.5*x*y", "0.21*x*y - 0.6*y"], states, [(4.0, 1.0)], 18)
    shared = with_sharing(fit(equations(["x*(1.1 - 0.5*y)", "y*(0.21*x - 0.6)"], states)), fit)
    assert shared is None or shared.unknowns.count == 4


NETWORKS = {
    # Two a become one b, which decays to c.
    "dimerisation": (["-2*0.4*a**2", "0.4*a**2 - 0.3*b", "0.3*b"], "-0.9*a**2 0.5*a**2-0.35*b 0.28*b", [0.8, 0.4]),
    # a and two b become three c, of which one becomes b.
    "three molecules": (
        ["-0.3*a*b**2", "-2*0.3*a*b**2 + 0.5*c", "3*0.3*a*b**2 - 0.5*c"],
        "-0.33*a*b**2 0.52*c-0.7*a*b**2 1.0*a*b**2-0.6*c",
        [0.3, 0.6, 0.9],
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
def test_numbers_of_molecules_are_ratios_of_shared_terms(name):
    states, (rates, guess, sizes) = ("a", "b", "c"), NETWORKS[name]
    _, fit = system_of(rates, states, [(2.0, 1.5, 0.1), (1.0, 0.2, 1.0)], 6)
    apart = fit(equations(guess.split(), states))
    shared = with_sharing(apart, fit)
    assert (apart.unknowns.count, shared.unknowns.count) == (len(sizes) + 2, 2)
    assert shared.nats < apart.nats - 5
    # Rates of the one reaction: its ratios are exact.
    other = 1.0 if name == "three molecules" else 0.0
    found = np.abs(shared.rates([[1.0, other, 0.0]])[0, : len(sizes)])
    np.testing.assert_allclose(found / found[0], np.array(sizes) / sizes[0], rtol=1e-14)
    np.testing.assert_allclose(found, sizes, rtol=0.01)


@pytest.mark.slow
def test_one_law_of_two_states_has_its_constants_once():
    states = ("x", "y", "u", "v")
    rates = ["u", "v", "-1.4*x + 0.5*y", "-1.4*y + 0.5*x"]
    _, fit = system_of(rates, states, [(1.0, 0.0, 0.0, 0.4)], 14)
    apart = fit(equations(["u", "v", "0.45*y - 1.3*x", "0.55*x - 1.5*y"], states))
    shared = with_sharing(apart, fit)
    assert (apart.unknowns.count, shared.unknowns.count) == (4, 2)
    errors = [np.abs(np.abs(each.constants) - [0.5, 1.4] * 2).max() for each in (apart, shared)]
    assert errors[1] < errors[0]


def test_second_order_exchanges_positions_with_rates():
    states = ("x", "y")
    form, _ = system_of(["-y", "x"], states, [(1.0, 0.0)], 6, order=2)
    assert form.trajectories.states == ("x", "y", "x_dot", "y_dot")
    names = form.trajectories.states
    own = equations(["x_dot", "y_dot", "-1.01*x - 0.01*x_dot", "-0.99*y + 0.01*y_dot"], names)
    apart = fitted(own, form, lambda: False)
    shared = with_sharing(apart, lambda each: fitted(each, form, lambda: False))
    assert shared.unknowns.count < apart.unknowns.count


def test_coefficients_that_may_be_0_or_1_are():
    states = ("x", "y")
    _, fit = system_of(["0.2 - x + x**2*y", "0.9 - x**2*y"], states, [(0.14, 0.6)], 15)
    apart = fit(equations(["x*(x*(1.01*y - 0.001) - 0.98) + 0.2", "0.9 - 0.98*x**2*y"], states))
    shared = with_sharing(apart, fit)
    assert [sorted(model.tree.used_parameters) for model in shared.equations] == [["x", "y"]] * 2
    assert len(shared.constants) == 2


def test_conditions_share_nothing():
    states = ("x", "y")
    _, fit = system_of(["-0.5*x", "0.5*x - 0.2*y"], states, [(2.0, 0.3)], 6)
    apart = fit(equations(["-0.5*x", "0.5*x if x > 0 else 0.1"], states))
    assert with_sharing(apart, fit) is None


def candidates(texts, states, rows):
    found = []
    for text, given in zip(texts, rows, strict=True):
        model = Model(parse(text, states), 0.0, 1.0)
        if given is not None:
            errors = model.kernel(*given.dataset.columns) - given.dataset.target
            loss = np.average(errors**2, weights=given.dataset.row_weights)
            model = replace(model, loss=float(loss))
        found.append([Candidate(model, 0.0)])
    return found


def test_a_term_of_another_state_becomes_a_candidate():
    states = ("x", "y")
    form, _ = system_of(["1.1*x - 0.5*x*y", "0.21*x*y - 0.6*y"], states, [(4.0, 1.0)], 18)
    rows = [rate_rows(form.trajectories, form.smooth, column, True) for column in (0, 1)]
    given = candidates(["1.5*x - x*log(y)", "y*(0.25*x - 0.6)"], states, rows)
    best = with_terms_of_others(given, rows, states, 30)[0][0].model
    points = np.random.default_rng(0).uniform(0.5, 4, (2, 20))
    np.testing.assert_allclose(best.kernel(*points), 1.1 * points[0] - 0.5 * points[0] * points[1], atol=0.2)
    few = with_terms_of_others(given, rows, states, 3)[0]
    assert all(each in given[0] or each.model.tree.size <= 3 for each in few)


@pytest.mark.slow
def test_a_search_untold_finds_the_flows_of_an_epidemic():
    states = ("s", "i", "r")
    form, _ = system_of(EPIDEMIC, states, [(0.95, 0.05, 0.0), (0.6, 0.02, 0.1)], 16)
    search = SearchSettings(primitives=("add", "sub", "mul"))
    search = replace(search, stop=replace(search.stop, seconds=12.0), fitness=replace(search.fitness, threads=1))
    chosen = find_dynamics(form.trajectories, DynamicsSettings(search)).chosen
    assert len(chosen.constants) == 4 and chosen.unknowns.count == 2
    np.testing.assert_allclose(sorted(np.abs(chosen.constants)), [0.5, 0.5, 1.5, 1.5], rtol=0.03)
