"""How often nominal intervals hold the truth, and what they cost: `python experiments/intervals.py --fits 1000`.

Prints two Markdown tables. The first has the shares of simulated fits whose interval of a constant holds the true
constant, of the value of the formula, and of a new reading; with 1000 fits, a share of 0.95 has a standard error of
0.007. The second has seconds of processor time for a formula with `--rows` rows: the standard errors, and the profiles
of all constants, compilation included.

The laws are a decay to a level, a saturation and a power law; a sum of four peaks, which has twelve constants, is only
timed. The noise is Gaussian, Gaussian with a standard deviation in proportion to the square of the law, counted
(Poisson), and Student's t with 4 degrees of freedom. For the latter, the loss is once the likelihood, with the true
scale, and once a loss with a scale of its own, twice as large.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from shine.data.datasets.dataset import Dataset
from shine.evaluate.inference.bands import Bands
from shine.evaluate.inference.constants import Form, Held, form_of, with_values
from shine.evaluate.inference.inference import Basis, Inference
from shine.evaluate.losses import poisson, student_t
from shine.evaluate.losses.form import ABSOLUTE, SQUARED, RowLoss
from shine.lang.interpret import evaluate
from shine.lang.parse import parse

LAWS = {
    "decay": "12.5*exp(-0.71*x) + 3.37",
    "saturation": "23.1*x/(x + 1.62)",
    "power": "4.15*x**1.37",
}
PEAKS = ((10.3, 1.13, 0.37), (7.21, 2.57, 0.53), (12.7, 3.41, 0.29), (5.37, 4.23, 0.61))
TIMED = {**LAWS, "four peaks": " + ".join(f"{a}*exp(-square((x - {b})/{c}))" for a, b, c in PEAKS)}
SMALLEST, LARGEST = 0.1, 5.0
LEVEL = 0.95
NEW_ROWS = 100
SCALE = 0.6

WRITTEN = Held((1.0,))
"""Coefficients of 1 that the laws do not write are known."""


@dataclass(frozen=True)
class Case:
    """A kind of noise, and the loss that the constants are fitted by."""

    draw: Callable[[np.random.Generator, np.ndarray], np.ndarray]
    error: RowLoss


def _t(rng: np.random.Generator, mean: np.ndarray) -> np.ndarray:
    return mean + SCALE * rng.standard_t(4, mean.shape)


CASES = {
    "Gaussian": Case(lambda rng, mean: mean + rng.normal(0, SCALE, mean.shape), SQUARED),
    "Gaussian, uneven": Case(lambda rng, mean: mean + rng.normal(0, 1, mean.shape) * mean**2 / 100, SQUARED),
    "Poisson": Case(lambda rng, mean: rng.poisson(mean).astype(float), poisson().kind),
    "Student's t": Case(_t, student_t(4.0, SCALE).kind),
    "Student's t, another scale": Case(_t, RowLoss("t", student_t(4.0, 2 * SCALE).kind.function, least=0.0)),
    "Student's t, least absolute errors": Case(_t, ABSOLUTE),
}


def coverage(case: Case, form: Form, rows: int, fits: int, seed: int) -> dict[str, np.ndarray]:
    """Shares of fits whose intervals hold the truth: a share for each constant, and of the bands."""
    rng, truth = np.random.default_rng(seed), form.values
    law = with_values(form, truth)
    found: dict[str, list[np.ndarray]] = {"profile": [], "wald": [], "mean": [], "prediction": []}
    for _ in range(fits):
        x = rng.uniform(SMALLEST, LARGEST, rows)
        y = case.draw(rng, evaluate(law, [x]))
        basis = Basis(Dataset.from_arrays(x[:, None], y, features=["x"]), case.error)
        # Searches hand over the most likely constants.
        inference = Inference(replace(form, values=Inference(form, basis).optimum.constants), basis)
        for name, ends in (("profile", inference.profile(LEVEL)), ("wald", inference.uncertainty.wald(LEVEL))):
            found[name].append((ends[:, 0] <= truth) & (truth <= ends[:, 1]))
        bands, new = Bands(inference.form, inference.uncertainty), rng.uniform(SMALLEST, LARGEST, NEW_ROWS)
        mean = evaluate(law, [new])
        for name, values in (("mean", mean), ("prediction", case.draw(rng, mean))):
            low, high = bands.interval([new], LEVEL, name)  # type: ignore[arg-type]
            found[name].append(np.mean((low <= values) & (values <= high)))
    return {name: np.mean(shares, axis=0) for name, shares in found.items()}


def seconds(case: Case, form: Form, rows: int) -> tuple[float, float]:
    """Seconds of processor time for the standard errors, and for the profiles after them."""
    rng = np.random.default_rng(0)
    law = with_values(form, form.values)
    x = rng.uniform(SMALLEST, LARGEST, rows)
    data = Dataset.from_arrays(x[:, None], case.draw(rng, evaluate(law, [x])), features=["x"])
    begin = time.process_time()
    inference = Inference(form_of(law, WRITTEN), Basis(data, case.error))
    _ = inference.uncertainty
    between = time.process_time()
    inference.profile(LEVEL)
    return between - begin, time.process_time() - between


def main() -> None:
    """Run the measurement."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fits", type=int, default=1000, help="simulated fits of each law and noise")
    parser.add_argument("--data", type=int, default=100, help="rows of each simulated fit")
    parser.add_argument("--rows", type=int, default=10_000, help="rows of the timed fits")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cases", nargs="*", default=list(CASES), choices=list(CASES), metavar="NOISE")
    options = parser.parse_args()
    forms = {name: form_of(parse(text, ["x"]), WRITTEN) for name, text in LAWS.items()}
    print("| noise | law | profile | by standard errors | value | new reading |\n|---|---|---|---|---|---|", flush=True)
    for name in options.cases:
        for law, form in forms.items():
            found = coverage(CASES[name], form, options.data, options.fits, options.seed)
            shares = [" ".join(f"{share:.3f}" for share in np.atleast_1d(values)) for values in found.values()]
            print(f"| {name} | {law} | {' | '.join(shares)} |", flush=True)
    print("\n| noise | law | standard errors | profiles |\n|---|---|---|---|")
    for name in options.cases:
        for law, text in TIMED.items():
            form = form_of(parse(text, ["x"]), WRITTEN)
            errors, profiles = seconds(CASES[name], form, options.rows)
            print(f"| {name} | {law} | {errors:.3f} s | {profiles:.3f} s |", flush=True)


if __name__ == "__main__":
    main()
