"""Whether a system is an answer: it must explain the readings nearly as well as curves that know no law.

Such curves foretell each reading of a state from those before it: a smooth one, and one that follows its last value and
chance. Where the errors of a system's rollouts, its constants and its new starts take clearly more nats than those of
the better curves, it explains nothing: noise, random walks, motions too fast for their readings, states whose rates
depend on what nobody read.
"""

from __future__ import annotations

import math

import numpy as np

from shine.compiler.arrays import log
from shine.data.datasets.dataset import stable_mean
from shine.search.dynamics.forms import Form
from shine.search.dynamics.smoothing.process import Run, saved_nats
from shine.search.dynamics.smoothing.smoothing import FEW
from shine.search.dynamics.system import SystemModel
from shine.search.models.certainty import CONVINCING
from shine.search.models.front_table import loss_text

REBUILT = 0.01
"""Error, as a share of the variance, below which readings are rebuilt: between them, a curve through clean readings is
more exact than any law that is nearly right."""

SHARE = 0.8
"""Share of the nats that curves save which a system saves at least."""

NUMBERS = 3
"""Those that a curve has: its scale of time, its motion and its noise."""

ALIKE = 0.9
"""Share of the nats that smooth curves save from which curves that follow their last value and chance save as many."""

PARTS = 2
"""Most parts of the readings that curves foretell."""


def doubt_about(system: SystemModel, form: Form) -> str:
    """Why a system is no answer, and what would help; empty if it is one."""
    curves = np.array([_saved_by_curves(system, form, column) for column in range(system.n_read)])
    best = float(np.add.reduce(np.maximum(np.maximum.reduce(curves, axis=1), 0.0)))
    if system.nats < -CONVINCING and _saved(system, form) >= SHARE * best:
        return ""
    smooth, rough = np.add.reduce(curves).tolist()
    step = np.concatenate([np.diff(run.times) for run in form.trajectories.runs])
    often = f"steps of {float(np.sort(step)[len(step) // 2]) * form.step:.3g}"
    if best <= CONVINCING:
        why = f"no reading tells anything of the next one: they are noise, or the motion is too fast for {often}"
        helps = "read more often"
    elif rough > ALIKE * smooth:
        why = "each reading follows the last one and chance, as a random walk does: rates do not depend on the states"
        helps = f"read what drives them, or, if the motion is too fast for {often}, read more often"
    else:
        why = "smooth curves foretell the readings better: rates do not follow from the states"
        more = ["read more states", *(["hidden=1"] if form.hidden is None else [])]
        more += ["autonomous=False"] if form.time is None else []
        helps = ", or ".join([*more, "more runs (next_experiment) and more seconds"])
    missed = f"has the error {loss_text(system.error)} along" if math.isfinite(system.error) else "does not follow"
    return f"the best system {missed} the readings that it was fitted to; {why}. What may help: {helps}"


def _saved(system: SystemModel, form: Form) -> float:
    """Nats that a system saves beside constants, however its equations are written."""
    count = system.n_read
    read, shares = form.readings.counts[:count], (system.losses / system.variances)[:count]
    numbers = (0 if system.unknowns is None else system.unknowns.count) + system.restarts * count
    price = 0.5 * numbers * math.log(float(np.add.reduce(read)) / count)
    return -0.5 * float(np.add.reduce(read * log(shares + REBUILT))) - price


def _saved_by_curves(system: SystemModel, form: Form, column: int) -> list[float]:
    """Nats that curves save of the readings of a state: smooth ones, and such as follow their last value and chance."""
    runs: list[Run] = []
    values = np.concatenate([run.states[:, column] for run in form.trajectories.runs])
    mean, spread = stable_mean(values[~np.isnan(values)]), math.sqrt(float(system.variances[column]))
    for run in form.trajectories.runs:
        known = ~np.isnan(run.states[:, column])
        if int(known.sum()) >= FEW:
            runs.append((run.times[known], (run.states[known, column] - mean) / spread))
    if not runs:
        return [0.0, 0.0]
    process, count = form.smooth.processes[column], float(form.readings.counts[column])
    noise = 0.0 if process is None else process.noise / spread
    price = 0.5 * NUMBERS * math.log(count)
    return [count * own - price for own in saved_nats(runs, noise, math.sqrt(REBUILT), PARTS)]
