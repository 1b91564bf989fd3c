"""A loss is defined in one place; code that lacks its kind of errors refuses it, and never takes it for another."""

from __future__ import annotations

import numpy as np
import pytest
from llvmlite import ir
from pydantic import TypeAdapter

import shine
from shine.codegen.gradient.normal_equations import REWEIGHTINGS, normal_function
from shine.codegen.moments import ERRORS, errors_function
from shine.codegen.numbers import Numbers
from shine.data.dataset import Dataset
from shine.deap.sums import sums_of_errors
from shine.evaluators.evaluator import evaluator_of
from shine.evaluators.gradients import MachineLinearizer
from shine.fitness.losses import ERROR_KINDS, LOSSES, ErrorKind, Loss, error_kind, loss_of
from shine.search.refinement import rounding_loss
from shine.search.settings import FitnessSettings

X = np.linspace(-2, 2, 40)[:, None]
Y = np.sin(X[:, 0]) + 0.1
POPULATION = shine.Population.from_sources(["x0", "x0*x0"])


def cubes(residuals, out=None):
    size = np.abs(residuals)
    return np.multiply(size * size, size, out=out)


@pytest.fixture
def made_up(monkeypatch):
    """The name of a loss whose kind of errors has no code."""
    kind = ErrorKind("cubic", cubes, follows_from_moments=False, log_likelihood=1 / 3)
    loss = Loss(kind, lambda total, weight, _: total / weight, lambda loss, weight, _: loss * weight, degree=3)
    monkeypatch.setitem(ERROR_KINDS, "cubic", kind)
    monkeypatch.setitem(LOSSES, "mce", loss)
    return "mce"


def test_every_kind_of_errors_has_code():
    assert list(ERRORS) == list(REWEIGHTINGS) == list(ERROR_KINDS)
    assert {loss.kind for loss in LOSSES.values()} == set(ERROR_KINDS.values())


def test_sum_of_is_the_inverse_of_of_sum():
    for loss in LOSSES.values():
        assert loss.sum_of(float(loss.of_sum(np.float64(6.0), 4.0, 3.0)), 4.0, 3.0) == pytest.approx(6.0)


def test_the_exponent_of_a_loss_is_its_power_of_the_sum():
    for loss in LOSSES.values():
        grown, once = (float(loss.of_sum(np.float64(total), 4.0, 3.0)) for total in (10.0, 1.0))
        assert grown / once == pytest.approx(10.0**loss.exponent)
    assert [LOSSES[name].log_likelihood for name in ("mse", "rmse", "mae")] == [0.5, 1.0, 1.0]


def test_unknown_names_are_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="unknown loss 'huber'; use one of mse"):
        loss_of("huber")
    with pytest.raises(ValueError, match="unknown kind of errors 'huber'; use one of squared, absolute"):
        error_kind("huber")


@pytest.mark.parametrize("tier", ["machine", "native", "auto"])
@pytest.mark.parametrize("scaling", [False, True])
def test_compiled_tiers_refuse_a_kind_without_code(made_up, tier, scaling):
    evaluator = evaluator_of(Dataset.from_arrays(X, Y), made_up, scaling, "float64", tier)
    with pytest.raises(ValueError, match="no code adds up 'cubic' errors; there is code for squared, absolute"):
        evaluator.score(POPULATION)


def test_codegen_and_constant_fitting_refuse_a_kind_without_code(made_up):
    with pytest.raises(ValueError, match="no code adds up 'cubic' errors"):
        errors_function(ir.Module(), Numbers("float64"), "cubic")
    with pytest.raises(ValueError, match="no code fits constants by 'cubic' errors; there is code for squared"):
        normal_function(ir.Module(), "cubic", weighted=True)
    with pytest.raises(ValueError, match="no code fits constants by 'cubic' errors"):
        MachineLinearizer(Dataset.from_arrays(X, Y), made_up)


def test_kernels_searches_and_settings_refuse_a_kind_without_code(made_up):
    with pytest.raises(ValueError, match="no code adds up 'cubic' errors"):
        shine.jit("x0*x0").fitness(X, Y, loss=made_up)
    with pytest.raises(ValueError, match="loss must be one of mse, rmse, mae, nmse, r2"):
        shine.evolve(X, Y, loss=made_up, generations=1)
    with pytest.raises(ValueError, match="'mse', 'rmse', 'mae', 'nmse' or 'r2'"):
        TypeAdapter(FitnessSettings).validate_python({"loss": made_up})


def test_numpy_code_computes_the_new_kind(made_up):
    dataset = Dataset.from_arrays(X, Y)
    losses = evaluator_of(dataset, made_up, False, "float64", "reference").score(POPULATION).losses
    residuals = np.array([Y - X[:, 0], Y - X[:, 0] ** 2])
    assert losses == pytest.approx(np.mean(np.abs(residuals) ** 3, axis=1), rel=1e-12)
    sums = sums_of_errors(np.array([X[:, 0]]), Y, ERROR_KINDS["cubic"])
    assert sums == pytest.approx(np.sum(np.abs(residuals[0]) ** 3), rel=1e-12)
    assert rounding_loss(dataset, made_up) == pytest.approx(
        np.mean((8 * np.finfo(float).eps * np.abs(Y)) ** 3), rel=1e-9
    )
