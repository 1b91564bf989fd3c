"""How often do 95 % intervals of the constants of equations of motion hold the truth?

`python experiments/motion_intervals.py --fits 200` fits four systems, one with shared constants, to simulated
trajectories: the form is known, or, with `--seconds 5`, searched for. SciPy fits the true rates by each formula that is
found: its constants are then the truth, however the formula is written. Fits of formulas that cannot be the true ones
are counted, and left out.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from quality.motions import Motion
from scipy.optimize import least_squares

import shine
from shine.evaluate.rollouts.rates import with_named_constants, with_numbers
from shine.lang.forms.tree import Tree
from shine.lang.interpret import evaluate

SYSTEMS = {
    "predators and prey": (
        Motion("", "x' = 1.1*x - 0.4*x*y\ny' = 0.1*x*y - 0.4*y", ((10.0, 5.0), (5.0, 2.0)), 12.0),
        "x' = a*x - b*x*y; y' = c*x*y - d*y",
    ),
    "growth to a limit": (
        Motion("", "n' = 0.83*n*(1 - n/7.3)", ((0.5,), (1.0,)), 10.0),
        "n' = r*n*(1 - n/k)",
    ),
    "a driven level": (
        Motion("", "x' = 2.1*sin(y) - 0.57*x\ny' = 0.9 - 0.31*y", ((1.0, 3.0), (0.0, 2.0)), 10.0),
        "x' = s*sin(y) - a*x; y' = b - c*y",
    ),
    "an epidemic": (
        Motion("", "s' = -1.5*s*i\ni' = 1.5*s*i - 0.5*i\nr' = 0.5*i", ((0.95, 0.05, 0.0), (0.8, 0.2, 0.0)), 16.0),
        "s' = -b*s*i; i' = b*s*i - g*i; r' = g*i",
    ),
}


def truth_of(tree: Tree, free: np.ndarray, motion: Motion, number: int, times: np.ndarray) -> np.ndarray | None:
    """The free constants with which a formula is a state's true rate, by SciPy; None if there are none."""
    values = with_named_constants(tree)[1]
    states = motion.trajectory(motion.starts[0], times)
    rates = np.array([motion.rates(0.0, state)[number] for state in states])
    columns = [states[:, motion.states.index(name)] for name in tree.parameters]

    def wrong(constants: np.ndarray) -> np.ndarray:
        every = values.copy()
        every[free] = constants
        return evaluate(with_numbers(tree, every), columns) - rates

    found = values[free]
    if free.any():
        found = least_squares(wrong, found, x_scale="jac", xtol=1e-15, ftol=1e-15, gtol=1e-15).x
    return found if np.abs(wrong(found)).max() < 1e-6 * np.abs(rates).max() else None


def held(motion: Motion, model: shine.SymbolicDynamics, times: np.ndarray) -> list[bool] | None:
    """Whether each interval holds the truth; None if the system cannot be the true one."""
    best, intervals = model.best_, model.conf_int()
    names = iter(best.constant_names)
    truths = []
    for number, tree in enumerate(best.trees):
        free = np.array([next(names) in intervals for _ in with_named_constants(tree)[1]], dtype=bool)
        truths.append(truth_of(tree, free, motion, number, times))
    if any(truth is None for truth in truths):
        return None
    pairs = zip(np.concatenate(truths).tolist(), intervals.values(), strict=True)
    return [low <= truth <= high for truth, (low, high) in pairs]


def main() -> None:
    """Print a line for each system."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--fits", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--noise", type=float, default=0.02, help="as a share of each state's standard deviation")
    parser.add_argument("--points", type=int, default=60)
    parser.add_argument("--seconds", type=float, default=0.0, help="of a search; 0 if the form is known")
    parser.add_argument("--names", default="", help="only systems whose name contains this")
    arguments = parser.parse_args()
    for name, (motion, template) in SYSTEMS.items():
        if arguments.names not in name:
            continue
        times = np.linspace(0, motion.end, arguments.points)
        states = motion.trajectory(motion.starts[0], times)
        begin, inside, others = time.process_time(), [], 0
        for seed in range(arguments.first, arguments.first + arguments.fits):
            draws = np.random.default_rng([seed, arguments.points]).standard_normal(states.shape)
            kinds = {"max_time": arguments.seconds} if arguments.seconds else {"template": template, "max_time": 5.0}
            model = shine.SymbolicDynamics(n_jobs=1, random_state=seed, **kinds)
            model.fit(states + arguments.noise * states.std(axis=0) * draws, times, states=motion.states)
            own = held(motion, model, times)
            others += own is None
            inside += [own] if own is not None else []
        every = [each for own in inside for each in own]
        share = f"{np.mean(every):.3f}" if every else "none"
        print(
            f"{name}: {sum(every)} of {len(every)} intervals in {len(inside)} fits, {share}; {others} "
            f"fits of other forms; {time.process_time() - begin:.0f} s of the processor",
            flush=True,
        )


if __name__ == "__main__":
    main()
