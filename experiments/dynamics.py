"""Equations of motion from trajectories: `python experiments/dynamics.py clean --seconds 20 --part development`.

The systems are those of `quality/motions.py`; a hash of the name says whether one is untouched. `--part families`, or
one of them, are those of `quality/families_of_motions.py`. Four settings:

* `clean`: one trajectory of 101 points from the first initial value;
* `noisy` and `little`: 150 points, each reading times 1 + 0.05 z or 1 + 0.01 z with normal z, half of the times left
  out;
* `runs`: four runs of 40 points at random times from values between the two initial ones, with normal noise of 2 % of
  each state's spread, one reading in ten missing.

What is found is integrated from the first initial value (reconstruction) and from the other one, along 101 points, and
compared with the true states: the squared error as a share of their variance, mean over the states. Chaotic families
are compared over five Lyapunov times. `--engine pysindy` does the same with PySINDy, in a Python that has it:
polynomials to the second, third and fifth degree, with and without sines and cosines, and several thresholds. The best
is taken, by the error of its rollout on the readings, plus a price for each term.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from quality.families_of_motions import FAMILIES
from quality.motions import MOTIONS, Motion

Array = np.ndarray
Simulate = Callable[[Array, Array], Array]

NOISE = {"clean": 0.0, "noisy": 0.05, "little": 0.01, "runs": 0.02}


@dataclass
class Readings:
    """Runs as an engine gets them."""

    states: list[Array]
    times: list[Array]


def readings(motion: Motion, setting: str, seed: int) -> Readings:
    """The readings of a setting."""
    random = np.random.default_rng([seed, *motion.name.encode()])
    if setting == "clean":
        times = np.linspace(0, motion.end, 101)
        return Readings([motion.trajectory(motion.starts[0], times)], [times])
    if setting != "runs":
        times = np.linspace(0, motion.end, 150)
        states = motion.trajectory(motion.starts[0], times)
        states = states * (1 + NOISE[setting] * random.standard_normal(states.shape))
        kept = np.sort(random.permutation(150)[:75])
        return Readings([states[kept]], [times[kept]])
    found = Readings([], [])
    first, other = map(np.array, motion.starts)
    for share in (0.0, 0.2, 0.4, 0.6):
        times = np.sort(np.append(0.0, random.uniform(0, motion.end, 39)))
        states = motion.trajectory(tuple(first + share * (other - first)), times)
        states += NOISE[setting] * states.std(axis=0) * random.standard_normal(states.shape)
        found.states.append(np.where(random.uniform(size=states.shape) < 0.1, np.nan, states))
        found.times.append(times)
    return found


def with_shine(given: Readings, motion: Motion, arguments: argparse.Namespace) -> tuple[Simulate, str]:
    """What Shine finds, as a function of an initial value and times, and as text."""
    import shine

    model = shine.SymbolicDynamics(
        autonomous=motion.autonomous,
        max_time=arguments.seconds,
        n_jobs=arguments.threads,
        random_state=arguments.seed,
    )
    model.fit(given.states, given.times, states=motion.states)
    return model.simulate, "; ".join(model.best_.lines())


def with_pysindy(given: Readings, motion: Motion, arguments: argparse.Namespace) -> tuple[Simulate, str]:
    """What PySINDy finds, with the library and the threshold that suit the readings best."""
    import pysindy

    # It takes no missing readings: lines between the neighbours.
    filled = [
        np.column_stack([np.interp(times, times[~np.isnan(x)], x[~np.isnan(x)]) for x in states.T])
        for states, times in zip(given.states, given.times, strict=True)
    ]
    sines = pysindy.FourierLibrary(n_frequencies=1)
    polynomials = [pysindy.PolynomialLibrary(degree=degree) for degree in (2, 3, 5)]
    libraries = [*polynomials, polynomials[0] + sines, polynomials[1] + sines]
    noisy = arguments.setting != "clean"
    rates = pysindy.SmoothedFiniteDifference() if noisy else pysindy.FiniteDifference(order=4)
    best, found = np.inf, None
    for library in libraries:
        for threshold in (0.003, 0.01, 0.03, 0.1, 0.3):
            try:
                optimizer = pysindy.STLSQ(threshold=threshold, alpha=1e-6)
                model = pysindy.SINDy(optimizer=optimizer, feature_library=library, differentiation_method=rates)
                model.fit(filled, t=given.times, feature_names=list(motion.states))
                own = [
                    error_of(lambda x0, t, model=model: integrated(model, x0, t), x[0], t, x)
                    for x, t in zip(filled, given.times, strict=True)
                ]
                terms = int(np.count_nonzero(model.coefficients()))
            except Exception:  # whatever a library raises for a combination that does not work
                continue
            count = sum(x.size for x in filled)
            price = count * np.log(max(float(np.mean(own)), 1e-14)) + 2 * terms * np.log(count)
            if price < best:
                best, found = price, model
    if found is None:
        raise ArithmeticError("no combination works")
    equations = "; ".join(f"{state}' = {text}" for state, text in zip(motion.states, found.equations(), strict=True))
    return lambda x0, t: integrated(found, x0, t), equations


def integrated(model: object, start: Array, times: Array) -> Array:
    """States of a model of PySINDy; NaN where it explodes."""
    from scipy.integrate import solve_ivp

    began = time.process_time()

    def rates(_: float, states: Array) -> Array:
        if np.abs(states).max() > 1e6 or time.process_time() - began > 1.5:
            raise ArithmeticError
        return model.predict(states[None])[0]  # type: ignore[attr-defined]

    try:
        found = solve_ivp(rates, (times[0], times[-1]), start, "LSODA", times, rtol=1e-8, atol=1e-10).y.T
    except ArithmeticError:
        found = np.zeros((0, len(start)))
    rest = np.full((len(times) - len(found), len(start)), np.nan)
    return np.concatenate([found, rest])


ENGINES = {"shine": with_shine, "pysindy": with_pysindy}


def error_of(simulate: Simulate, start: Array, times: Array, states: Array) -> float:
    """Squared error of a rollout as a share of the variance, mean over the states; inf if it explodes."""
    found = simulate(np.asarray(start, dtype=float), times)
    shares = ((found - states) ** 2).mean(axis=0) / states.var(axis=0)
    return float(shares.mean()) if np.isfinite(shares).all() else np.inf


def measured(motion: Motion, arguments: argparse.Namespace) -> tuple[float, float, float, float, str]:
    """Errors of the reconstruction and from the other value, seconds, those of the processor, and equations."""
    given = readings(motion, arguments.setting, arguments.seed)
    began, worked = time.monotonic(), time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            simulate, text = ENGINES[arguments.engine](given, motion, arguments)
    except Exception as error:  # counted as a miss, and shown
        return (
            np.inf,
            np.inf,
            time.monotonic() - began,
            time.process_time() - worked,
            f"{type(error).__name__}: {error}",
        )
    seconds, work = time.monotonic() - began, time.process_time() - worked
    errors = []
    for start, end in zip(motion.starts, (motion.end, motion.compared or motion.end), strict=True):
        times = np.linspace(0, end, 101)
        errors.append(error_of(simulate, start, times, motion.trajectory(start, times)))
    return errors[0], errors[1], seconds, work, text


def totals(errors: Iterable[tuple[float, float]], clean: bool) -> str:
    """Shares of the systems below the bounds that count."""
    first, other = np.array(list(errors)).T
    if clean:
        below = ", ".join(f"{bound:.0e}: {np.mean(other < bound):.0%}" for bound in (1e-2, 1e-4, 1e-6))
        return f"error from the other value below {below}; reconstructed below 1e-2: {np.mean(first < 1e-2):.0%}"
    return f"R2 above 0.9: reconstructed {np.mean(first < 0.1):.0%}, from the other value {np.mean(other < 0.1):.0%}"


def systems_of(part: str) -> list[tuple[str, Motion]]:
    """The systems of a part, each after the name of the group whose totals are printed."""
    families = [part] if part in FAMILIES else list(FAMILIES) if part == "families" else []
    if families:
        return [(family, motion) for family in families for motion in FAMILIES[family]]
    return [
        (f"{len(motion.states)} states", motion)
        for motion in MOTIONS
        if part == "all" or motion.untouched == (part == "untouched")
    ]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("setting", choices=list(NOISE))
    parser.add_argument("--engine", choices=list(ENGINES), default="shine")
    parser.add_argument(
        "--part", choices=["development", "untouched", "all", "families", *FAMILIES], default="development"
    )
    parser.add_argument("--every", type=int, default=1, help="only every n-th system")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--names", default="", help="only systems whose name contains this")
    arguments = parser.parse_args()
    grouped = [pair for pair in systems_of(arguments.part) if arguments.names in pair[1].name][:: arguments.every]
    results = []
    for group, motion in grouped:
        first, other, seconds, work, text = measured(motion, arguments)
        results.append((first, other, group, seconds, work))
        if motion not in MOTIONS or not motion.untouched:  # of the others, only totals are looked at
            print(f"{motion.name:40} {len(motion.states)} {first:9.1e} {other:9.1e} {seconds:6.1f} s {work:6.1f} s")
            print(f"  {text}", flush=True)
    for group in dict.fromkeys(sorted(result[2] for result in results)):
        own = [result[:2] for result in results if result[2] == group]
        print(f"{group}, {len(own)} systems: {totals(own, arguments.setting == 'clean')}")
    print(f"all {len(results)}: {totals([result[:2] for result in results], arguments.setting == 'clean')}")
    seconds, work = np.median([result[3:] for result in results], axis=0)
    print(f"median seconds: {seconds:.1f}, of the processor {work:.1f}")


if __name__ == "__main__":
    main()
