"""A search for equations of motion that finds known equations at once, for tests of what is made of its result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from shine.data.trajectories import Trajectories
from shine.lang.parse import parse
from shine.search.dynamics.result import DynamicsResult, SystemFront
from shine.search.dynamics.system import SystemModel
from shine.search.models.front import Front
from shine.search.models.model import Model


def system(
    trajectories: Trajectories,
    equations: Sequence[str],
    time: str | None = None,
    lags: int = 0,
    order: int = 1,
    hidden: int | None = None,
    stiff: bool = False,
) -> SystemModel:
    """A system with given right-hand sides; each constant has the standard deviation 0.01."""
    further = [f"{name}_lag{lag}" for lag in range(1, lags + 1) for name in trajectories.states]
    further += [f"{name}_dot" for name in trajectories.states if order == 2]
    further += [] if hidden is None else ["h"]
    every = (*trajectories.states, *further)
    features = (*every, *trajectories.controls, *([] if time is None else [time]))
    models = tuple(Model(parse(text, features), 1e-6, 0.999) for text in equations)
    states = np.concatenate([run.states for run in trajectories.runs])
    found = SystemModel(
        models,
        every,
        trajectories.controls,
        time,
        losses=np.append(1e-4 * np.nanvar(states, axis=0), [0.0] * len(further)),
        variances=np.append(np.nanvar(states, axis=0), [np.inf] * len(further)),
        starts=np.array([np.append(run.states[lags], [0.0] * len(further)) for run in trajectories.runs]),
        noise=np.append(0.01 * np.nanstd(states, axis=0), [0.0] * len(further)),
        nats=-100.0,
        headings=trajectories.headings,
        is_map=lags > 0,
        lags=lags,
        order=order,
        hidden=hidden,
        stiff=stiff,
    )
    count = len(found.constants)
    return replace(found, covariance=1e-4 * np.eye(count))


def known_search(
    *fronts: Sequence[str], best: int = -1, stopped_by: str = "seconds", doubt: str = "", **form: Any
) -> Any:
    """A function in place of `find_dynamics` whose front has the given systems (see `system`)."""

    def find(trajectories: Trajectories, settings: Any, *_session: Any) -> DynamicsResult:
        time = None if settings.autonomous else trajectories.time
        models = tuple(system(trajectories, equations, time, **form) for equations in fronts)
        equations = {
            models[0].states[state]: Front(tuple(model.equations[state] for model in models), len(models) - 1)
            for state in models[0].sought
        }
        reason = f"nothing was found: {doubt}" if doubt else "it is known"
        front = SystemFront(models, best % len(models), reason, found=not doubt)
        return DynamicsResult(front, equations, 0.1, settings.search.seed, stopped_by, len(models))

    return find
