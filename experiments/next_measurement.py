"""How many measurements does it take to find a law, measured where the formulas part or anywhere in the box?

`python experiments/next_measurement.py --seeds 3` draws a few noisy rows of each of ten laws in a part of its box. Then
three experimenters go on, a reading at a time, each followed by a search: one measures where
`Front.next_measurement(box)` says, one at random in the box, one as far from all rows as the box allows. They count
readings until the search chooses the law for the first time, which may be by chance, and until it is decided: chosen,
with odds of 20 to 1 against all other formulas that were found. The law is any formula that becomes it, everywhere in
the box, by other constants, and has no more of them. Of the readings that were asked for, a table tells the probability
to decide that was said, and the share that decided: one formula, right or wrong, had the odds after the next search.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

import shine
from shine.search.models.certainty import fitted_constants
from shine.search.models.measuring.next_measurement import ODDS, NextMeasurement
from shine.search.models.model import Model

ROWS, NOISE = 8, 0.04
"""Rows to begin with, and the noise as a share of the law's standard deviation in the box."""

EXACT = 1e-6
"""Least share of the law's variance that another form leaves."""


@dataclass(frozen=True)
class Law:
    """A law, the box that can be measured, and the part of it that the first rows are in."""

    formula: str
    box: dict[str, tuple[float, float]]
    part: dict[str, tuple[float, float]]

    @property
    def model(self) -> Model:
        """The law as a formula of a front."""
        return Model(shine.parse(self.formula, list(self.box)), 0.0, 1.0)

    def drawn(self, limits: dict[str, tuple[float, float]], count: int, rng: np.random.Generator) -> np.ndarray:
        """Points drawn evenly from limits, shape (count, n_features)."""
        low, high = np.array([limits[name] for name in self.box]).T
        return rng.uniform(low, high, (count, len(low)))


LAWS = {
    "enzyme": Law("3*x/(x + 1.7)", {"x": (0.1, 10)}, {"x": (0.1, 2)}),
    "saturation": Law("4*(1 - exp(-0.6*x))", {"x": (0.1, 10)}, {"x": (0.1, 2)}),
    "cooling": Law("20 + 65*exp(-0.3*x)", {"x": (0, 15)}, {"x": (0, 3)}),
    "growth": Law("5*x**2/(x**2 + 4)", {"x": (0.1, 10)}, {"x": (0.1, 2)}),
    "power": Law("2.1*x**1.5", {"x": (0.5, 10)}, {"x": (0.5, 3)}),
    "drag": Law("0.4*x + 0.15*x**2", {"x": (0, 10)}, {"x": (0, 2.5)}),
    "stock": Law("3*x*exp(-0.5*x)", {"x": (0, 10)}, {"x": (0, 2)}),
    "resistors": Law("a*b/(a + b)", {"a": (1, 10), "b": (1, 10)}, {"a": (1, 4), "b": (1, 4)}),
    "hypotenuse": Law("sqrt(a**2 + b**2)", {"a": (0, 10), "b": (0, 10)}, {"a": (2, 5), "b": (2, 5)}),
    "attraction": Law("2.5*a/b**2", {"a": (1, 10), "b": (1, 5)}, {"a": (1, 4), "b": (2, 4)}),
}

UNTOUCHED = {
    "barrier": Law("5*exp(-3/x)", {"x": (0.5, 10)}, {"x": (1, 3)}),
    "inverse": Law("1.5 + 4/x", {"x": (0.5, 10)}, {"x": (1, 3)}),
    "logarithm": Law("2 + 1.3*log(x)", {"x": (0.5, 20)}, {"x": (0.5, 5)}),
    "bell": Law("4*exp(-0.1*x**2)", {"x": (0, 8)}, {"x": (0, 2)}),
    "adsorption": Law("1.8*x**0.4", {"x": (0.1, 10)}, {"x": (0.1, 2)}),
    "kinetic": Law("0.5*m*v**2", {"m": (1, 10), "v": (1, 10)}, {"m": (1, 4), "v": (1, 4)}),
    "circuit": Law("5*a/(b + 2)", {"a": (0, 10), "b": (0, 10)}, {"a": (0, 4), "b": (0, 4)}),
    "absorption": Law("3*a*exp(-0.4*b)", {"a": (0, 10), "b": (0, 6)}, {"a": (1, 4), "b": (0, 2)}),
}
"""Laws on which nothing was tried before the last measurement."""


def is_law(found: Model, law: Law) -> bool:
    """Whether a formula becomes the law by other constants, and has no more of them."""
    points = law.drawn(law.box, 200, np.random.default_rng(0))
    exact = law.model.predict(points)
    fitted = found.with_data(points, exact)
    left = fitted.uncertainty.total / len(points) / exact.var()
    # As written, and as counted where 1 and whole exponents may move too.
    most = max(fitted_constants(law.model.tree), len(law.model.form().names))
    return left < EXACT and fitted_constants(found.tree) <= most


SAID = (0.0, 0.05, 0.15, 0.3, 0.45, 0.6 + 1e-9)
"""Ends of the intervals of the probability that is said."""

Experimenter = Callable[[Law, NextMeasurement, np.ndarray, np.random.Generator], np.ndarray]


def asks(law: Law, advice: NextMeasurement, X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The point where the formulas part."""
    point = advice.points[0]
    return np.array([[point[name] for name in law.box]])


def guesses(law: Law, advice: NextMeasurement, X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A point anywhere in the box."""
    return law.drawn(law.box, 1, rng)


def spreads(law: Law, advice: NextMeasurement, X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The point that is farthest from all rows, in shares of the box."""
    low, high = np.array(list(law.box.values())).T
    corners = np.array(np.meshgrid(*[(0.0, 1.0)] * len(low))).reshape(len(low), -1).T
    points = np.concatenate([corners, rng.uniform(0, 1, (2000, len(low)))])
    apart = ((points[:, None] - (X - low) / (high - low)) ** 2).sum(axis=2).min(axis=1)
    return low + (high - low) * points[[apart.argmax()]]


EXPERIMENTERS: dict[str, Experimenter] = {"asks": asks, "at random": guesses, "far": spreads}


def needed(
    law: Law, experimenter: Experimenter, seed: int, options: argparse.Namespace, told: list[tuple[float, bool]]
) -> tuple[int, int]:
    """Readings until the law is chosen, and until it is decided; one more than `most` if it is not.

    `told` receives, of each reading that was asked for, the probability that was said, and whether it decided.
    """
    rng, most = np.random.default_rng(seed), options.most
    size = options.noise * float(np.std(law.model.predict(law.drawn(law.box, 1000, rng))))
    X = law.drawn(law.part, ROWS, rng)
    y = law.model.predict(X) + rng.normal(0, size, len(X))
    chosen, said = most + 1, None
    for count in range(most + 1):
        result = shine.evolve(
            X, y, features=list(law.box), noise="absolute", seconds=None, generations=options.generations, threads=1,
            seed=seed,
        )  # fmt: skip
        advice = result.next_measurement(law.box)
        is_decided = bool(advice.weights[0] >= ODDS / (1 + ODDS))
        if said is not None:
            told.append((said, is_decided))
        said = advice.decides if experimenter is asks and not is_decided else None
        if is_law(result.best, law):
            chosen = min(chosen, count)
            if is_decided and advice.indices[0] == result.best_index:
                return chosen, count
        further = experimenter(law, advice, X, rng)
        X = np.concatenate([X, further])
        y = np.concatenate([y, law.model.predict(further) + rng.normal(0, size, len(further))])
    return chosen, most + 1


def main() -> None:
    """Print the readings of both experimenters, by law."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--most", type=int, default=15, help="readings after which a series ends")
    parser.add_argument("--noise", type=float, default=NOISE)
    parser.add_argument("--generations", type=int, default=2)
    parser.add_argument("--laws", default=",".join(LAWS), help="names, or `untouched`")
    parser.add_argument("--who", default=",".join(EXPERIMENTERS))
    options = parser.parse_args()
    laws = UNTOUCHED if options.laws == "untouched" else {name: LAWS[name] for name in options.laws.split(",")}
    every: dict[str, list[tuple[int, int]]] = {who: [] for who in options.who.split(",")}
    told: list[tuple[float, bool]] = []
    for name, law in laws.items():
        texts = []
        for who in every:
            counts = [needed(law, EXPERIMENTERS[who], seed, options, told) for seed in range(options.seeds)]
            every[who] += counts
            texts.append(f"{who} {' '.join(f'{first}/{last}' for first, last in counts)}")
        print(f"{name:12} {'; '.join(texts)}", flush=True)
    for who, counts in every.items():
        chosen, decided = (statistics.median(each) for each in zip(*counts, strict=True))
        print(f"median, {who}: chosen after {chosen:g}, decided after {decided:g}")
    for low, high in pairwise(SAID):
        some = [(said, decided) for said, decided in told if low <= said < high]
        if some:
            said, share = (statistics.mean(each) for each in zip(*some, strict=True))
            print(f"said {said:.2f}, decided {share:.2f} of {len(some)} readings")


if __name__ == "__main__":
    main()
