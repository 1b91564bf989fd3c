"""Systems fitted to the readings: constants and initial states by rollouts, and the nats that they need then."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from shine.evaluate.rollouts.fitting import FitSettings, fit_rollouts
from shine.search.dynamics.by_run import bare
from shine.search.dynamics.forms import Form
from shine.search.dynamics.system import SystemModel, digits_of
from shine.search.models.model import Model


def fitted(equations: Sequence[Model], form: Form, stop: Callable[[], bool]) -> SystemModel:
    """The system of some equations, with the constants and initial states that fit the readings best.

    Parameters
    ----------
    equations : sequence of Model
        One a state.
    form : Form
    stop : callable
        Says whether the time is over; the fit then ends with what it has.

    Returns
    -------
    SystemModel
        Its error is infinite if no rollout follows the readings to their end.
    """
    start = unfitted(equations, form)
    system, readings = start.compiled, form.readings
    smooth = [run.states for run in readings.smooth.runs]
    fit = fit_rollouts(
        system, readings.trajectories, smooth=smooth, settings=FitSettings(stop=stop, sizes=readings.sizes)
    )
    if not fit.succeeded:
        return start
    losses, relative = readings.losses(fit.states)
    trees = system.trees_with(fit.constants)
    parts = [slice(first, end) for first, end in zip((0, *system.ends[:-1]), system.ends, strict=True)]
    counts = [part.stop - part.start for part in parts]
    errors = np.sqrt(np.diagonal(fit.covariance))
    digits = [
        model.digits or digits_of(fit.constants[part], errors[part])
        for model, part in zip(start.equations, parts, strict=True)
    ]
    models = tuple(
        replace(model, tree=tree, digits=own) for model, tree, own in zip(start.equations, trees, digits, strict=True)
    )
    # Stretches that start anew are paid for as constants.
    anew = len(fit.starts) - len(readings.smooth.runs)
    return replace(
        start,
        equations=models,
        losses=losses,
        starts=np.stack([states[0] for states in fit.states]),
        noise=fit.noise,
        covariance=fit.covariance,
        nats=readings.nats(relative, [bare(tree).size for tree in trees], [count + anew for count in counts]),
    )


def unfitted(equations: Sequence[Model], form: Form) -> SystemModel:
    """The system as the rates gave it, without an error of rollouts (see `fitted` for the parameters)."""
    given, readings, time = form.trajectories, form.readings, form.time
    used = time if any(time in model.tree.used_parameters for model in equations) else None
    return SystemModel(
        # A formula of a template is one like others from here on.
        equations=tuple(
            Model(model.tree, model.loss, model.r2, model.weights, digits=model.digits) for model in equations
        ),
        states=given.states,
        controls=given.controls,
        time=used,
        losses=np.full(len(given.states), math.inf),
        variances=readings.variances,
        starts=readings.starts,
        noise=np.full(len(given.states), math.inf),
        headings=given.headings,
        is_map=form.is_map,
        step=form.step,
        lags=form.lags,
        order=form.order,
        runs=form.runs,
    )
