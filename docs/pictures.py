"""Makes the pictures of the documentation that show results.

``python docs/pictures.py`` writes them all to docs/images; ``python docs/pictures.py fit front`` only these;
``--folder FOLDER`` writes them elsewhere. They need Matplotlib. Drawings of Shine itself (data, tile) are made by hand,
report.png is a photograph of a report, and live.png of a live page.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

import shine
from shine import Front, Model, SymbolicClassifier, SymbolicRegressor, parse
from shine.evaluate.inference.constants import form_of, with_values

matplotlib.use("Agg")
from matplotlib import pyplot

IMAGES = Path(__file__).parent / "images"
WIDE, SQUARE = (6.5, 3.5), (4.5, 3.5)
"""Sizes of the pictures, in inches."""


@cache
def tea() -> tuple[SymbolicRegressor, Any, Any]:
    """The cup of tea of the tutorial, with its model."""
    rng = np.random.default_rng(1)
    minutes = rng.uniform(0, 60, (150, 1))
    degrees = 20 + 65 * np.exp(-0.05 * minutes[:, 0]) + rng.normal(0, 0.5, 150)
    model = SymbolicRegressor(primitives=["mul", "exp"], generations=10, random_state=6)
    return model.fit(minutes, degrees), minutes, degrees


@cache
def plates() -> tuple[SymbolicRegressor, Any, Any]:
    """A law of two features, with noise."""
    rng = np.random.default_rng(0)
    X = rng.uniform(1, 5, (200, 2))
    y = X[:, 0] ** 2 / X[:, 1] + rng.normal(0, 0.3, 200)
    return SymbolicRegressor(generations=3, random_state=0).fit(X, y), X, y


def front() -> Any:
    return tea()[0].plot(ax=axes(WIDE))


def fit() -> Any:
    model, X, y = tea()
    return model.plot("fit", X, y, ax=axes(SQUARE))


def residuals() -> Any:
    """Those of a formula that is too simple: a bend is left in them."""
    model, X, y = tea()
    return model.plot("residuals", X, y, index=2, ax=axes(SQUARE))


def dependence() -> Any:
    model, X, _ = plates()
    figure = pyplot.figure(figsize=WIDE, layout="constrained")
    return model.plot("dependence", X, features=[0, 1], ax=figure.subplots(1, 2))[0]


def band() -> Any:
    """Few readings, so that both bands can be seen."""
    rng = np.random.default_rng(2)
    minutes = rng.uniform(0, 60, (25, 1))
    degrees = 20 + 65 * np.exp(-0.05 * minutes[:, 0]) + rng.normal(0, 2.5, 25)
    law = Model(parse("65.1*exp(-0.051*minutes) + 20.1"), 0.0, 0.0).with_data(minutes, degrees)
    best = form_of(law.tree)
    law = replace(law, tree=with_values(best, law.uncertainty.best))
    return Front((law,), 0).plot("band", ax=axes(WIDE))


def calibration() -> Any:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2))
    passed = rng.random(600) < 1 / (1 + np.exp(-(2 * X[:, 0] - X[:, 1])))
    model = SymbolicClassifier(primitives=["add", "sub", "mul"], generations=3, random_state=0).fit(X, passed)
    return model.plot("fit", X, passed, ax=axes(SQUARE))


def extrapolation() -> Any:
    """A formula of the right form, and a polynomial, beyond the data that both describe."""
    model, X, y = tea()
    longer = np.linspace(0, 150, 200)
    powers = np.polynomial.Polynomial.fit(X[:, 0], y, 3)
    ax = axes(WIDE)
    ax.plot(X[:, 0], y, "o", color="#56606b", markersize=2, label="data")
    ax.plot(longer, model.predict(longer[:, None]), color="#b04a00", label=model.best_.formula())
    ax.plot(longer, powers(longer), "--", color="#0b62a8", label="polynomial of degree 3")
    ax.set(xlabel="minutes", ylabel="degrees", ylim=(0, 120))
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False)
    return ax


def templates() -> Any:
    """The concentrations of the page on templates, of four patients, and the formula that was found."""
    rng = np.random.default_rng(0)
    weights, rates = rng.uniform(50, 100, 12), rng.uniform(0.1, 0.4, 12)
    times = (0.5, 1, 2, 4, 8, 12)
    rows = [(who, dose, t, weights[who]) for who in range(12) for dose in (100, 200, 400) for t in times]
    X = np.array(rows)
    who = X[:, 0].astype(int)
    blood = 1.6 * X[:, 1] / X[:, 3] * np.exp(-rates[who] * X[:, 2]) * rng.normal(1, 0.05, len(X))
    law = shine.template("f(dose, weight)*exp(-k[patient]*t)", parameters={"k": (0, None)})
    names = ["patient", "dose", "t", "weight"]
    model = shine.evolve(X, blood, features=names, template=law, noise="relative", generations=10).best
    ax, longer = axes(WIDE), np.linspace(0, 12, 100)
    for patient, colour in zip((0, 1, 3, 11), ("#b04a00", "#0b62a8", "#3d7a35", "#7a3d78"), strict=True):
        own = (who == patient) & (X[:, 1] == 400)
        ax.plot(X[own, 2], blood[own], "o", color=colour, markersize=4)
        dense = np.column_stack([np.full((100, 2), (patient, 400.0)), longer, np.full(100, weights[patient])])
        label = f"P{patient + 1:02}: k = {model.constants['k'][patient]:.2f}"
        ax.plot(longer, model.predict(dense), color=colour, label=label)
    ax.set(xlabel="hours", ylabel="concentration after a dose of 400", title=model.formula())
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False)
    return ax


def quantile() -> Any:
    """Skewed readings, with the formulas of squared errors and of a quantile."""
    rng = np.random.default_rng(0)
    hours = rng.uniform(0.2, 6, (250, 1))
    minutes = 4 * hours[:, 0] + 10 + 3 * hours[:, 0] * rng.exponential(1, 250)
    along = np.linspace(0.2, 6, 100)[:, None]
    ax = axes(WIDE)
    ax.plot(hours[:, 0], minutes, "o", color="#56606b", markersize=2, label="data")
    for loss, style, color in (("mse", "--", "#0b62a8"), ("quantile(0.9)", "-", "#b04a00")):
        model = SymbolicRegressor(loss=loss, primitives=["add", "mul"], generations=5, random_state=0)
        values = model.fit(hours, minutes).predict(along)
        ax.plot(along[:, 0], values, style, color=color, label=loss)
    ax.set(xlabel="hours", ylabel="minutes")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False)
    return ax


def arrays() -> Any:
    """Rastrigin's function of two variables, and the individuals of three generations of a genetic algorithm."""
    from deap import algorithms, base, creator, tools

    import shine.deap

    text = "10*n + sum(v*v - 10*cos(2*pi*v) for v in x)"
    creator.create("LeastOfPicture", base.Fitness, weights=(-1.0,))
    creator.create("PairOfPicture", list, fitness=creator.LeastOfPicture)
    random.seed(3)
    toolbox, objective = base.Toolbox(), shine.deap.CompiledObjective(text)
    toolbox.register("mate", tools.cxOnePoint)
    toolbox.register("mutate", tools.mutGaussian, mu=0.0, sigma=0.3, indpb=0.5)
    toolbox.register("select", tools.selTournament, tournsize=3)
    toolbox.register("evaluate", objective)
    toolbox.register("map", objective.map)
    individuals = [creator.PairOfPicture(random.uniform(-5.12, 5.12) for _ in range(2)) for _ in range(60)]
    along = np.linspace(-5.12, 5.12, 161)
    grid = np.stack(np.meshgrid(along, along), axis=-1).reshape(-1, 2)
    heights = shine.jit(text)(grid).reshape(161, 161)
    _, parts = pyplot.subplots(1, 3, figsize=(9, 3.1), layout="constrained", sharey=True)
    for ax, generation, following in zip(parts, (0, 5, 40), (5, 35, 0), strict=True):
        ax.imshow(heights, extent=(-5.12, 5.12, -5.12, 5.12), origin="lower", cmap="Greys_r")
        ax.plot(*zip(*individuals, strict=True), "o", color="#b04a00", markersize=4)
        best = min(map(objective, individuals))[0]
        ax.set(title=f"generation {generation}, best {best:.2g}", xlabel="x[0]")
        individuals, _ = algorithms.eaSimple(individuals, toolbox, 0.5, 0.3, following, verbose=False)
    parts[0].set_ylabel("x[1]")
    return parts[0]


def trees() -> Any:
    """How one, ten and a hundred trees follow a curve, as the tutorial on trees tells."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    rng = np.random.default_rng(0)
    hours = rng.uniform(8, 22, (4000, 1))
    grid = np.linspace(8, 22, 1400)[:, None]

    def needed(hour: Any) -> Any:
        return 60 * 4.0 / (16.0 * (1 - 0.4 * np.exp(-((hour[:, 0] - 18) ** 2) / 3)))

    ax = axes(WIDE)
    for count, colour in ((1, "0.7"), (10, "tab:blue"), (100, "tab:red")):
        model = HistGradientBoostingRegressor(max_iter=count, max_leaf_nodes=31, early_stopping=False, random_state=0)
        compiled = shine.trees.compile(model.fit(hours, needed(hours) + rng.normal(0, 2, 4000)))
        label = f"{count} trees" if count > 1 else "1 tree"
        ax.step(grid[:, 0], compiled.predict(grid), color=colour, label=label, where="mid")
    ax.plot(grid[:, 0], needed(grid), "k--", linewidth=1, label="truth")
    ax.set_xlabel("hour")
    ax.set_ylabel("minutes")
    ax.legend(frameon=False)
    return ax


def distil() -> Any:
    """The error of a network, which is smooth, and what the formula makes of the network."""
    import torch

    torch.manual_seed(0)
    torch.set_num_threads(1)
    X = torch.rand(2000, 2) * 4 - 2
    y = torch.exp(-(X[:, :1] ** 2)) * X[:, 1:]
    tanh, linear = torch.nn.Tanh, torch.nn.Linear
    network = torch.nn.Sequential(linear(2, 64), tanh(), linear(64, 64), tanh(), linear(64, 1))
    optimizer = torch.optim.Adam(network.parameters(), lr=3e-3)
    rate = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 3000)
    for _ in range(3000):
        batch = torch.randint(0, 2000, (256,))
        optimizer.zero_grad()
        ((network(X[batch]) - y[batch]) ** 2).mean().backward()
        optimizer.step()
        rate.step()
    model = shine.distil(network, {"x": (-2, 2), "y": (-2, 2)}, seconds=10)[0].best
    figure = pyplot.figure(figsize=WIDE, layout="constrained")
    left, right = figure.subplots(1, 2)
    side = np.linspace(-2, 2, 60)
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    with torch.no_grad():
        values = network(torch.tensor(grid, dtype=torch.float32)).numpy()[:, 0]
        along = np.linspace(-2, 2, 15)
        line = network(torch.tensor(np.column_stack([along, np.ones(15)]), dtype=torch.float32)).numpy()[:, 0]
    errors = (values - np.exp(-(grid[:, 0] ** 2)) * grid[:, 1]).reshape(60, 60)
    drawn = left.contourf(side, side, errors, levels=12, cmap="PuOr")
    figure.colorbar(drawn, ax=left)
    left.set(xlabel="x", ylabel="y", title="error of the network")
    right.plot(along, line, "o", color="#56606b", markersize=4, label="network, y = 1")
    dense = np.column_stack([side, np.ones(60)])
    right.plot(side, model.predict(dense), color="#b04a00", label=model.formula())
    right.set(xlabel="x", ylim=(0, 1.4))
    right.spines[["top", "right"]].set_visible(False)
    right.legend(frameon=False)
    return left


PICTURES: dict[str, Callable[[], Any]] = {
    each.__name__: each
    for each in (
        front,
        fit,
        residuals,
        dependence,
        band,
        calibration,
        extrapolation,
        quantile,
        templates,
        arrays,
        trees,
        distil,
    )
}


def axes(size: tuple[float, float]) -> Any:
    return pyplot.subplots(figsize=size, layout="constrained")[1]


def main() -> None:
    parser = argparse.ArgumentParser(description="Make pictures of the documentation.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"all by default: {', '.join(PICTURES)}")
    parser.add_argument("--folder", type=Path, default=IMAGES)
    options = parser.parse_args()
    for name in options.names or PICTURES:
        if name not in PICTURES:
            parser.error(f"there is no picture {name}; there are {', '.join(PICTURES)}")
        # The same text at every run: no date, and no random names.
        with pyplot.rc_context({"svg.hashsalt": name, "svg.fonttype": "path"}):
            PICTURES[name]().figure.savefig(options.folder / f"{name}.svg", metadata={"Date": None})
        print(options.folder / f"{name}.svg")


if __name__ == "__main__":
    main()
