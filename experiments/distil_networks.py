"""Networks trained on known laws, and what `shine.distil` makes of them.

``python experiments/distil_networks.py laws`` trains two-layer networks (64 tanh units each, PyTorch, Adam) on 2000
rows of each law, distils them from the ranges alone, and prints how often the law comes out, with the fidelities.
``... forces`` does the same for the messages of a small graph network that was trained on the accelerations of pairs of
particles (Cranmer et al. 2020, "Discovering symbolic models from deep learning with inductive biases"). ``... worth``
prints how many independent rows the errors of the networks are worth.

A law counts as found if the chosen formula, with its constants fitted to the law itself, is the law to within rounding,
and has at most four nodes more.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import torch

import shine
from shine.faces.distillation.lessons import latin_hypercube

LAWS: dict[str, dict[str, tuple[float, float]]] = {
    "exp(-x*x)*y": {"x": (-2, 2), "y": (-2, 2)},
    "x*y/(x*x + 1)": {"x": (-2, 2), "y": (-2, 2)},
    "sin(x) + y*y": {"x": (-3, 3), "y": (-2, 2)},
    "x/(1 + exp(-2*y))": {"x": (-2, 2), "y": (-2, 2)},
    "log(x)*sqrt(y)": {"x": (0.5, 4), "y": (0.5, 4)},
    "x*x*x - x*y": {"x": (-2, 2), "y": (-2, 2)},
    "x/(y*y)": {"x": (0.5, 3), "y": (0.5, 3)},
    "sin(2*x)*exp(-0.5*x)": {"x": (0, 4)},
    "x*y/(z + 1)": {"x": (-1, 1), "y": (-1, 1), "z": (0, 3)},
}
"""The laws and their ranges. The first is that of the documentation."""

FORCES: dict[str, Callable[[Any], Any]] = {
    "spring": lambda r: 1 - 1 / r,
    "1/r": lambda r: 1 / r**2,
    "1/r**2": lambda r: 1 / r**3,
}
"""Forces between two particles, divided by their displacement, by their distance."""

PARTICLES, MESSAGES, NEAREST, FARTHEST = 4, 2, 0.5, 3.0
"""Particles of a scene in the plane, components of a message, and the distances that occur."""

FORCE_NODES = 20
"""Most nodes of a formula for a message: the shortest have 11 to 16."""

TRAINING_ROWS = 2000
SAME = 1e-12
"""Share of the variance that is rounding."""


def layers(*sizes: int) -> torch.nn.Sequential:
    """Linear layers with tanh between them."""
    made: list[torch.nn.Module] = []
    for before, after in pairwise(sizes):
        made += [torch.nn.Linear(before, after), torch.nn.Tanh()]
    return torch.nn.Sequential(*made[:-1])


def trained(model: torch.nn.Module, loss_of: Callable[[Any], Any], rows: int, steps: int) -> torch.nn.Module:
    """Adam with a falling rate, on batches of 256 rows."""
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    rate = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for _ in range(steps):
        optimizer.zero_grad()
        loss_of(torch.randint(0, rows, (256,))).backward()
        optimizer.step()
        rate.step()
    return model.eval()


def network_for(law: str, seed: int, steps: int) -> torch.nn.Module:
    """A network of two layers of 64 that has learned a law."""
    torch.manual_seed(seed)
    ranges = LAWS[law]
    X = latin_hypercube(ranges, TRAINING_ROWS, np.random.default_rng(seed))
    inputs = torch.tensor(X, dtype=torch.float32)
    targets = torch.tensor(values(law, X), dtype=torch.float32)[:, None]
    model = layers(len(ranges), 64, 64, 1)
    return trained(model, lambda batch: ((model(inputs[batch]) - targets[batch]) ** 2).mean(), len(X), steps)


def values(law: str, X: Any) -> Any:
    return shine.Model(tree(law), 0.0, 0.0).predict(X)


def tree(law: str) -> Any:
    return shine.parse(law, parameters=list(LAWS[law]))


def is_law(model: shine.Model, truth: Any, X: Any, names: list[str], most: int) -> bool:
    """Whether a formula is the law, but for its constants."""
    if model.complexity > most:
        return False
    refitted = shine.evolve(
        X, truth, features=names, guesses=[model.expression], generations=0, seeding=0, population=20, seconds=5.0
    )
    near = [each for each in refitted.front if each.complexity <= most]
    return any(np.mean((each.predict(X) - truth) ** 2) <= SAME * np.var(truth) for each in near)


def laws(seeds: int, steps: int, seconds: float, rows: int | None) -> None:
    """Print what is found of each law."""
    total = 0
    for law, ranges in LAWS.items():
        found = 0
        for seed in range(seeds):
            network = network_for(law, seed, steps)
            X = latin_hypercube(ranges, 1000, np.random.default_rng(1000 + seed))
            truth = values(law, X)
            began = time.monotonic()
            distilled = shine.distil(network, ranges, seed=seed, seconds=seconds, rows=rows)[0]
            took = time.monotonic() - began
            with torch.no_grad():
                error = np.std(network(torch.tensor(X, dtype=torch.float32)).numpy()[:, 0] - truth) / np.std(truth)
            good = is_law(distilled.best, truth, X, list(ranges), shine.Model(tree(law), 0.0, 0.0).complexity + 4)
            own = np.std(distilled.predict(X) - truth) / np.std(truth)
            found += good
            print(
                f"{law:22} seed {seed}: network {error:.1e}, formula to network R2 {distilled.to_network.r2:.6f}, to "
                f"the law {own:.1e}, {took:.0f} s, {'found' if good else 'MISSED'}: {distilled.best.formula()}",
                flush=True,
            )
        total += found
        print(f"{law:22} {found} of {seeds}", flush=True)
    print(f"all: {total} of {seeds * len(LAWS)}")


def independent_rows(X: Any, errors: Any) -> float:
    """Independent rows that correlated errors are worth: n^2 over the sum of squared correlations of all pairs.

    Correlations are means over pairs of rows at similar distances, less what chance adds to their squares.
    """
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    count = len(Z)
    first, second = np.triu_indices(count, 1)
    distances = np.linalg.norm(Z[first] - Z[second], axis=1)
    products = errors[first] * errors[second] / np.mean(errors**2)
    total = 0.0
    for same in np.array_split(np.argsort(distances), max(len(distances) // (2 * count), 1)):
        chance = products[same].var() / len(same)
        total += 2 * len(same) * max(products[same].mean() ** 2 - chance, 0.0)
    return count**2 / (count + total)


def worth(seeds: int, steps: int, seconds: float, rows: int | None) -> None:
    """Print what samples of the networks' errors are worth."""
    for law, ranges in LAWS.items():
        for seed in range(seeds):
            network = network_for(law, seed, steps)
            X = latin_hypercube(ranges, rows or 512, np.random.default_rng(1000 + seed))
            with torch.no_grad():
                errors = network(torch.tensor(X, dtype=torch.float32)).numpy()[:, 0] - values(law, X)
            noise = np.random.default_rng(seed).normal(size=len(X))
            print(
                f"{law:22} seed {seed}: {len(X)} errors of the network are worth {independent_rows(X, errors):.0f} "
                f"rows; independent noise {independent_rows(X, noise):.0f}",
                flush=True,
            )


def scenes(count: int, rng: np.random.Generator) -> Any:
    """Displacements and distances of all pairs of some particles, of shape (count, particles, particles - 1, 3)."""
    found: list[Any] = []
    while len(found) < count:
        places = rng.uniform(-1.5, 1.5, (PARTICLES, 2))
        away = places[None] - places[:, None]
        apart = away[~np.eye(PARTICLES, dtype=bool)].reshape(PARTICLES, PARTICLES - 1, 2)
        distances = np.linalg.norm(apart, axis=-1)
        if distances.min() > NEAREST and distances.max() < FARTHEST:
            found.append(np.concatenate([apart, distances[..., None]], axis=-1))
    return np.array(found)


def messages_for(force: str, seed: int, steps: int) -> torch.nn.Module:
    """The edge model of a graph network: displacement and distance -> message.

    Accelerations are linear in the sums of messages.

    Messages have as many components as the force (Cranmer et al. 2020, "Bottleneck"): they are linear combinations of
    its components, rotated and scaled freely.
    """
    torch.manual_seed(seed)
    pairs = scenes(TRAINING_ROWS, np.random.default_rng(seed))
    inputs = torch.tensor(pairs, dtype=torch.float32)
    targets = torch.tensor((pairs[..., :2] * FORCES[force](pairs[..., 2:])).sum(axis=2), dtype=torch.float32)
    edges, nodes = layers(3, 64, 64, MESSAGES), torch.nn.Linear(MESSAGES, 2)

    def loss_of(batch: Any) -> Any:
        return ((nodes(edges(inputs[batch]).sum(dim=2)) - targets[batch]) ** 2).mean()

    trained(torch.nn.ModuleList([edges, nodes]), loss_of, len(pairs), steps)
    return edges


def forces(seeds: int, steps: int, seconds: float, rows: int | None) -> None:
    """Print what is found of each force in the messages."""
    for force in FORCES:
        found = 0
        for seed in range(seeds):
            edges = messages_for(force, seed, steps)
            X = scenes(1000, np.random.default_rng(1000 + seed)).reshape(-1, 3)[:3000]
            components = X[:, :2] * FORCES[force](X[:, 2:])
            basis = np.column_stack([components, np.ones(len(X))])
            distilled = shine.distil(
                edges, X, features=["dx", "dy", "r"], largest=2, seed=seed, seconds=seconds, rows=rows
            )
            with torch.no_grad():
                sent = edges(torch.tensor(X, dtype=torch.float32)).numpy().astype(float)
            for each in distilled:
                message = sent[:, int(each.output.rpartition("_")[2])]
                # Messages are linear combinations of the components of the force.
                truth = basis @ np.linalg.lstsq(basis, message, rcond=None)[0]
                good = is_law(each.best, truth, X, ["dx", "dy", "r"], FORCE_NODES)
                found += good
                print(
                    f"{force:8} seed {seed} {each.output:9} {each.share:.2f} of the variance, linear in the force: R2 "
                    f"{1 - np.var(message - truth) / np.var(message):.5f}; formula to network R2 "
                    f"{each.to_network.r2:.5f}, {'found' if good else 'MISSED'}: {each.best.formula()}",
                    flush=True,
                )
        print(f"{force:8} {found} of {2 * seeds} messages", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["laws", "forces", "worth"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--rows", type=int)
    given = parser.parse_args()
    torch.set_num_threads(1)
    measure = {"laws": laws, "forces": forces, "worth": worth}[given.what]
    measure(given.seeds, given.steps, given.seconds, given.rows)
