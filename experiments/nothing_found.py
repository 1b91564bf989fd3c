"""Is it said that nothing was found, and only then? `python experiments/nothing_found.py none` (or `some`).

* `none`: readings of one to three states that no system of these states explains: ten kinds, in turn, with other
  numbers for each seed. Nothing was found, or else the answer is wrong.
* `some`: the trajectories of `dynamics.py` (`clean`, `little`, `noisy`), by default of the untouched systems. An answer
  counts as good if its rollout from the first value follows the true states with R2 above 0.9.

Seconds are those of the processor.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections import Counter
from collections.abc import Callable

import numpy as np
from dynamics import error_of, readings
from quality.motions import MOTIONS

Array = np.ndarray
Random = np.random.Generator


def white(random: Random, count: int, states: int) -> Array:
    """Noise."""
    return 3 + random.standard_normal((count, states))


def walk(random: Random, count: int, states: int) -> Array:
    """Random walks."""
    return np.add.accumulate(random.standard_normal((count, states)))


def decaying(random: Random, count: int, states: int) -> Array:
    """Noise whose every value keeps a share of the last one."""
    share, found = random.uniform(0.5, 0.95), random.standard_normal((count, states))
    for row in range(1, count):
        found[row] += share * found[row - 1]
    return found


def fast(random: Random, count: int, states: int) -> Array:
    """A wave of its own in each column, with 2.1 to 3.5 readings a period."""
    phases = 2 * np.pi * np.arange(count)[:, None] / random.uniform(2.1, 3.5, states) + random.uniform(0, 6, states)
    return random.uniform(1, 3, states) * np.sin(phases) + 0.03 * random.standard_normal((count, states))


def two_waves(random: Random, count: int, _: int) -> Array:
    """The sum of two waves as one column."""
    times = np.linspace(0, 1, count)[:, None]
    waves = [
        random.uniform(0.6, 1.5) * np.sin(2 * np.pi * random.uniform(4, 9) * times + random.uniform(0, 6))
        for _ in range(2)
    ]
    return waves[0] + waves[1] + 0.01 * random.standard_normal((count, 1))


def smooth(random: Random, count: int, states: int) -> Array:
    """Smooth random curves."""
    times = np.arange(count)
    kernel = np.exp(-0.5 * ((times[:, None] - times) / random.uniform(2.5, 5)) ** 2) + 1e-8 * np.eye(count)
    return np.linalg.cholesky(kernel) @ random.standard_normal((count, states))


def one_of_three(random: Random, count: int, _: int) -> Array:
    """The first state of Lorenz's system alone."""
    from scipy.integrate import solve_ivp

    def rates(_: float, x: Array) -> list[float]:
        return [10 * (x[1] - x[0]), x[0] * (28 - x[2]) - x[1], x[0] * x[1] - 8 / 3 * x[2]]

    times = 20 + 0.08 * np.arange(count)
    start = random.normal(0, 5, 3) + np.array([0, 0, 25])
    found = solve_ivp(rates, (0, times[-1]), start, t_eval=times, rtol=1e-9, atol=1e-9).y.T[:, :1]
    return found * (1 + 0.01 * random.standard_normal(found.shape))


def shuffled(random: Random, count: int, states: int) -> Array:
    """Waves of one period whose times were mixed up."""
    times = 20 * np.arange(count)[:, None] / count
    return np.sin(times + random.uniform(0, 6, states))[random.permutation(count)]


def driven(random: Random, count: int, states: int) -> Array:
    """States that decay, and are driven by smooth random curves that nobody read."""
    drives, found = smooth(random, 4 * count, states), np.zeros((4 * count, states))
    for row in range(1, 4 * count):
        found[row] = found[row - 1] + 0.1 * (drives[row] - 0.5 * found[row - 1])
    return found[::4] + 0.02 * found.std(axis=0) * random.standard_normal((count, states))


def pulses(random: Random, count: int, states: int) -> Array:
    """Jumps at random times, each of which decays."""
    found = np.zeros((count, states))
    for row in range(1, count):
        jumps = random.exponential(1.0, states) * (random.uniform(size=states) < 0.15)
        found[row] = 0.8 * found[row - 1] + jumps
    return found + 0.01 * random.standard_normal((count, states))


KINDS: tuple[Callable[[Random, int, int], Array], ...] = (
    white, walk, decaying, fast, two_waves, smooth, one_of_three, shuffled, driven, pulses,
)  # fmt: skip


def fitted(
    states: object, times: object, names: object, arguments: argparse.Namespace, autonomous: bool = True
) -> object:
    """The model of some readings."""
    import shine

    model = shine.SymbolicDynamics(
        autonomous=autonomous, max_time=arguments.seconds, n_jobs=1, random_state=arguments.seed
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(states, times, states=names)


def none(arguments: argparse.Namespace) -> None:
    """Readings that no system explains."""
    answered, why = 0, Counter[str]()
    for number in range(arguments.first, arguments.first + arguments.count):
        random = np.random.default_rng([arguments.seed, number])
        kind, states = KINDS[number % len(KINDS)], 1 + number // len(KINDS) % 3
        given = kind(random, int(random.integers(60, 150)), states)
        step = float(random.choice([0.1, 0.5, 1.0]))
        model = fitted(given, step * np.arange(len(given)), None, arguments)
        answered += not model.found_
        reason = model.front_.reason
        why[f"{kind.__name__}: {reason.split('; ')[1].split('.')[0] if not model.found_ else 'A SYSTEM'}"] += 1
        if model.found_:
            print(f"{number} {kind.__name__}: {'; '.join(model.best_.lines())}, {model.best_.figures}", flush=True)
    for text, count in sorted(why.items()):
        print(f"{count:4} {text}")
    print(f"nothing was found in {answered} of {arguments.count}")


def some(arguments: argparse.Namespace) -> None:
    """Readings of known systems."""
    counts = Counter[tuple[bool, bool]]()
    chosen = [
        motion for motion in MOTIONS if arguments.part == "all" or motion.untouched == (arguments.part != "development")
    ]
    for motion in chosen[arguments.first :: arguments.every]:
        times = np.linspace(0, motion.end, 101)
        for setting in ("clean", "little", "noisy"):
            given = readings(motion, setting, arguments.seed)
            try:
                model = fitted(given.states, given.times, motion.states, arguments, motion.autonomous)
            except Exception as error:
                print(f"{motion.name} {setting}: {type(error).__name__}: {error}")
                continue
            error = error_of(model.best_.simulate, motion.starts[0], times, motion.trajectory(motion.starts[0], times))
            counts[error < 0.1, model.found_] += 1
            if not model.found_:
                print(f"{setting}: error {error:.1e}, in the fit {model.best_.error:.1e}", flush=True)
    good = counts[True, True] + counts[True, False]
    print(f"{good} rebuilt well, of which nothing was found in {counts[True, False]}")
    print(f"{counts.total() - good} others, of which nothing was found in {counts[False, False]}")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("kind", choices=["none", "some"])
    parser.add_argument("--count", type=int, default=100, help="data sets that no system explains")
    parser.add_argument("--first", type=int, default=0, help="number of the first one, or of the first system")
    parser.add_argument("--every", type=int, default=1, help="only every n-th system")
    parser.add_argument("--part", choices=["development", "untouched", "all"], default="untouched")
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    time.monotonic = time.process_time
    {"none": none, "some": some}[arguments.kind](arguments)


if __name__ == "__main__":
    main()
