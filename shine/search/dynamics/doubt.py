"""Whether a system is an answer: it must explain the readings nearly as well as curves that know no law.

Such curves foretell each reading of a state from those before it: a smooth one, and one that follows its last value and
chance. Where the errors of a system's rollouts, its constants and its new starts take clearly more nats than those of
the better curves, it explains nothing: noise, random walks, motions too fast for their readings, states whose rates
depend on what nobody read.
"""

from __future__ import annotations

import math

import numpy as np

from shine.base.typing import Floats
from shine.compiler.arrays import log
from shine.data.datasets.dataset import stable_mean
from shine.search.dynamics.forms import Form
from shine.search.dynamics.result import NEAR
from shine.search.dynamics.smoothing.process import saved_nats
from shine.search.dynamics.smoothing.smoothing import FEW
from shine.search.dynamics.system import SystemModel
from shine.search.models.certainty import CONVINCING
from shine.search.models.front_table import loss_text

REBUILT = 0.01
"""Error, as a share of the variance, below which readings are rebuilt: between them, a curve through clean readings is
more exact than any law that is nearly right."""

SHARE = 0.8
"""Share of curves' nats that a system saves at least; of its own, lines that start as often may save this share."""

NUMBERS, PARTS = 3, 2
"""Numbers of a curve: its scale of time, its motion and its noise; and most parts of the readings that it foretells."""


def doubt_about(system: SystemModel, form: Form) -> str:
    """Why a system is no answer, and what would help; empty if it is one."""
    curves = _saved_by_curves(system, form, math.sqrt(REBUILT))
    best = float(np.add.reduce(np.maximum(np.maximum.reduce(curves, axis=1), 0.0)))
    shares, numbers = (system.losses / system.variances)[: system.n_read], system.restarts * system.n_read
    saved = _saved(form, shares, numbers + (0 if system.unknowns is None else system.unknowns.count))
    by_starts = _saved(form, _shares_of_lines(system, form), numbers + system.n_read) if system.restarts else -math.inf
    if system.nats < -CONVINCING and saved >= max(SHARE * best, by_starts / SHARE):
        return ""
    # Least noise, as a share of the readings' spread, by which smooth curves are told from random walks
    smooth, rough = np.add.reduce(_saved_by_curves(system, form, 1e-3)).tolist()
    step = np.concatenate([np.diff(run.times) for run in form.trajectories.runs])
    often = f"steps of {float(np.sort(step)[len(step) // 2]) * form.step:.3g}"
    if best <= CONVINCING:
        why = f"no reading tells anything of the next one: they are noise, or the motion is too fast for {often}"
        helps = "read more often"
    elif rough > smooth - NEAR:
        why = "each reading follows the last one and chance, as a random walk does: rates do not depend on the states"
        helps = f"read what drives them, or, if the motion is too fast for {often}, read more often"
    else:
        why = "smooth curves foretell the readings better: rates do not follow from the states"
        more = ["hidden=1"] if form.hidden is None and form.order == 1 and not form.is_map else []
        more += ["autonomous=False"] if form.time is None else []
        helps = ", or ".join(["read more states", *more, "more runs (next_experiment) and more seconds"])
    missed = f"has the error {loss_text(system.error)} along" if math.isfinite(system.error) else "does not follow"
    return f"the best system {missed} the readings that it was fitted to; {why}. What may help: {helps}"


def _saved(form: Form, shares: Floats, numbers: int) -> float:
    """Nats saved beside constants by what leaves some shares of the variances, with so many numbers."""
    read = form.readings.counts[: len(shares)]
    price = 0.5 * numbers * math.log(float(np.add.reduce(read)) / len(shares))
    return -0.5 * float(np.add.reduce(read * log(shares + REBUILT))) - price


def _shares_of_lines(system: SystemModel, form: Form) -> Floats:
    """Errors, as shares of the variances, of constant rates that start anew as often as a system."""
    runs, found = form.trajectories.runs, []
    parts = math.ceil((len(runs) + system.restarts) / len(runs))
    for column in range(system.n_read):
        squares = np.zeros(3)
        for run in runs:
            known = ~np.isnan(run.states[:, column])
            pairs = (np.array_split(own, parts) for own in (run.times[known], run.states[known, column]))
            for times, values in zip(*pairs, strict=True):
                t, x = (own - np.add.reduce(own) / max(len(own), 1) for own in (times, values))
                squares += [float(np.add.reduce(own)) for own in (t * t, t * x, x * x)]
        rest = squares[2] - (squares[1] ** 2 / squares[0] if squares[0] else 0.0)
        found.append(rest / float(form.readings.counts[column]))
    return np.array(found) / system.variances[: system.n_read]


def _saved_by_curves(system: SystemModel, form: Form, least: float) -> Floats:
    """Nats that curves save of the readings of each state, shape (n_states, 2) (see `saved_nats`)."""
    found = np.zeros((system.n_read, 2))
    for column, count in enumerate(form.readings.counts[: system.n_read].tolist()):
        given = [(run.times, run.states[:, column]) for run in form.trajectories.runs]
        read = [(t[known], x[known]) for t, x in given if int((known := ~np.isnan(x)).sum()) >= FEW]
        if read:
            mean, spread = stable_mean(np.concatenate([x for _, x in read])), math.sqrt(float(system.variances[column]))
            process, runs = form.smooth.processes[column], [(t, (x - mean) / spread) for t, x in read]
            saved = saved_nats(runs, 0.0 if process is None else process.noise / spread, least, PARTS)
            found[column] = count * np.array(saved) - 0.5 * NUMBERS * math.log(count)
    return found
