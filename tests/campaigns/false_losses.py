"""Does evolution find a formula whose reported loss is not that of its predictions?

    python tests/campaigns/false_losses.py [--evaluations 1e7] [--seed 0]

A search whose fitness is the disagreement: individuals evolve toward the largest relative difference between a loss
that a tier reports, with each form of the line, and the one that follows from the predictions in long arithmetic.
Losses, weights, number types, tiers, forms of the line, and sizes of columns and target take turns. Each disagreement
beyond `ALLOWED` is printed.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from dataclasses import replace

import numpy as np

from shine.compiler.arrays import COMPILED
from shine.data.datasets.dataset import Dataset
from shine.evaluate.losses import loss_for
from shine.evaluate.losses.rows import loss_columns_of, loss_rows
from shine.evaluate.scores import Scores
from shine.evaluate.tiers.evaluator import evaluator_of
from shine.evaluate.tiers.fitted_lines import FittedLines
from shine.lang.forms.library import STANDARD
from shine.lang.forms.primitives import PrimitiveSet
from shine.lang.population import Population
from shine.search.evolution.evolution import Start, evolve
from shine.search.evolution.scoring import Scoring
from shine.search.evolution.settings import EvolutionSettings, StopSettings

ALLOWED = 1e-6
"""Relative difference that rounding may make: errors from moments are derived only where it makes less."""

ROWS = 24

LOSSES = ("mse", "mse", "mse", "rmse", "r2", "mae", "huber", "log_cosh", "student_t")

FUNCTIONS = ("add", "sub", "mul", "div", "neg", "exp", "log", "sqrt", "square", "sin", "tanh")

SETTINGS = EvolutionSettings(population=10_000, max_size=25, constants=(-1e3, 1e3), constant_steps=0)


class Disagreement:
    """Scores individuals by how far their reported losses are from the truth.

    Parameters
    ----------
    rng : numpy.random.Generator
        Draws the rows, and how they are evaluated.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        size = rng.choice([0, 0, -100, 100], 3)
        columns = np.ldexp(rng.normal(size=(ROWS, 2)) + rng.choice([0.0, 3.0]), size[:2])
        target = np.ldexp(rng.normal(size=ROWS) + rng.choice([0.0, 1e3]), size[2])
        weights = rng.choice([None, 1, 2])
        if weights is not None:
            weights = np.exp(rng.normal(size=ROWS) if weights == 1 else 60 * rng.normal(size=ROWS))
        name = str(rng.choice(LOSSES))
        self.dataset = Dataset.from_arrays(columns, target, sample_weight=weights)
        self.loss = loss_for(name, self.dataset)
        dtype, scaled = str(rng.choice(["float64", "float64", "float32"])), bool(rng.random() < 0.8)
        tier = str(rng.choice(["machine"] * 9 + ["native"]))
        if scaled and not self.loss.kind.follows_from_moments and rng.random() < 0.7:
            tier = "fitted lines"
            self.evaluator = FittedLines(self.dataset, 200, self.loss, dtype)
        else:
            self.evaluator = evaluator_of(self.dataset, self.loss, scaled, dtype, tier)
        self.case = (
            f"{name} {dtype} {tier} {'scaled' if scaled else 'plain'} {'weighted' if weights is not None else ''}"
        )
        self.evaluations, self.found = 0, dict[str, str]()

    def score(self, population: Population, threshold: float = np.inf) -> Scores:
        """The smaller, the more a reported loss disagrees with the predictions."""
        reported = self.evaluator.score(population).every
        predictions = self.evaluator.predict(population).astype(np.float64)
        worst = np.zeros(len(population))
        for form in range(len(reported.losses)):
            losses = reported.losses[form]
            true = self._true(predictions, reported.slopes[form], reported.intercepts[form])
            with np.errstate(all="ignore"):
                apart = np.abs(losses - true) / (np.abs(true) + self._floor)
            apart = np.where(np.isfinite(losses), np.where(np.isnan(apart), 1.0, apart), 0.0)
            worst = np.maximum(worst, np.minimum(apart, 1e6))
            for at in np.flatnonzero(apart > ALLOWED)[:1].tolist():
                self.found[self.case] = f"{population.tree(at)}, form {form}: {losses[at]:g}, true {true[at]:g}"
        self.evaluations += len(population)
        return Scores(1 / (worst + 1e-17), np.ones(len(population)), np.zeros(len(population)))

    @property
    def _floor(self) -> float:
        """Loss that is all rounding: of functions whose terms cancel."""
        return 0.0 if self.loss.kind.degree is not None else 1e-9 * (1 + float(np.abs(self.dataset.target).max()))

    def _true(self, predictions: np.ndarray, slopes: np.ndarray, intercepts: np.ndarray) -> np.ndarray:
        kind = self.loss.kind
        rows, columns = loss_rows(self.dataset, kind), loss_columns_of(self.dataset, kind)
        with np.errstate(all="ignore"):
            models = intercepts[:, None] + slopes[:, None] * predictions
            if kind.degree == 2:
                errors = (rows.target - models).astype(np.longdouble) ** 2
            else:
                errors = kind.errors(models, rows.target, columns, COMPILED).astype(np.longdouble)
            total = (rows.row_weights * errors).sum(axis=1)
            return np.asarray(self.loss.of_sum(total, rows.weight, rows.target_square), np.float64)

    def predict(self, population: Population) -> np.ndarray:
        """Predictions, as the evaluator gives them."""
        return self.evaluator.predict(population)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--evaluations", type=float, default=1e7)
    parser.add_argument("--generations", type=int, default=60, help="generations of each search")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng, done, cases = np.random.default_rng(options.seed), 0, Counter[str]()
    primitives = PrimitiveSet([STANDARD[name] for name in FUNCTIONS], ("x0", "x1"))
    found: list[str] = []
    while done < options.evaluations:
        judge = Disagreement(rng)
        stop = StopSettings(loss=0.0, generations=options.generations, seconds=None, stagnation=None)
        settings = replace(SETTINGS, constants=(-(10.0 ** float(rng.choice([1, 150]))), 10.0))
        if "native" in judge.case:  # each formula takes the compiler some milliseconds
            stop, settings = replace(stop, generations=5), replace(settings, population=50)
        evolve(Scoring(judge), Start(primitives), settings, stop, rng)
        done += judge.evaluations
        cases[judge.case] += judge.evaluations
        found += [f"{case}: {what}" for case, what in judge.found.items()]
        for case, what in judge.found.items():
            print(f"{case}: {what}", flush=True)
    for case, count in sorted(cases.items()):
        print(f"{count:>12} {case}")
    print(f"{done} evaluations, {len(found)} disagreements")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
