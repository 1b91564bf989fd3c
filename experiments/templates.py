"""Inverse problems with constants per group: `python experiments/templates.py --seconds 60 --noise 0 0.05`.

Each problem has a known part, unknown functions, and 5 to 20 groups with constants of their own. SciPy and NumPy check
the result; the check knows nothing of Shine's own fits. An unknown function counts as recovered if it has the true
form: the true form with fitted constants comes close to it, far beyond the range of the data too, and with its own
constants fitted anew it agrees with that true form to one part in a million. The law counts as recovered if all its
functions are, and if its predictions for fresh rows of the same groups agree with the true values: exactly without
noise, else to a third of the noise.

`--cost` compares the processor time of fits with groups with that of plain fits of the same formulas over as many rows.
"""

from __future__ import annotations

import argparse
import ast
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares

import shine
from shine.data.datasets.dataset import Dataset
from shine.evaluate.tiers.gradients import MachineLinearizer
from shine.evaluate.tiers.machine_tier import MachineEvaluator
from shine.lang.growth import Terminals
from shine.search.evolution.operators.creation import ptc2
from shine.search.evolution.operators.slot_breeding import assembled
from shine.search.templates.composition import bound
from shine.search.templates.fits.linearizer import TemplateEvaluator, TemplateLinearizer
from shine.search.templates.reading import template

Array = np.ndarray
Truth = Callable[[dict[str, Array], dict[str, Array]], Array]


@dataclass(frozen=True)
class Form:
    """The true form of an unknown function: with which constants, and on which arguments it is compared."""

    of: Callable[..., Array]
    start: tuple[float, ...]
    ranges: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Problem:
    """An inverse problem.

    Parameters
    ----------
    law : str
        The template; columns are named like `columns`.
    unknown : mapping of str to list of str
    groups : int
    columns : mapping of str to (float, float)
        Range of each column.
    constants : mapping of str to (float, float)
        Range of each constant of a group.
    truth : callable
        ``truth(columns, constants of each row)``.
    forms : mapping of str to Form
    """

    law: str
    unknown: Mapping[str, list[str]]
    groups: int
    columns: Mapping[str, tuple[float, float]]
    constants: Mapping[str, tuple[float, float]]
    truth: Truth
    forms: Mapping[str, Form]


DEVELOPED: dict[str, Problem] = {
    "damped oscillators": Problem(
        "c[group] + exp(-k[group]*t)*f(t)", {"f": ["t"]}, 8, {"t": (0, 5)}, {"c": (-1, 1), "k": (0.2, 1)},
        lambda x, p: p["c"] + np.exp(-p["k"] * x["t"]) * 3 * np.cos(2.3 * x["t"]),
        {"f": Form(lambda t, a, w, s: a * np.cos(w * t + s), (3, 2.3, 0), ((0, 8),))},
    ),
    "pair potentials": Problem(
        "e[group]*f(r/s[group])", {"f": ["x"]}, 10, {"r": (1, 4)}, {"e": (0.5, 3), "s": (0.8, 1.2)},
        lambda x, p: p["e"] * ((x["r"] / p["s"]) ** -8 - 2 * (x["r"] / p["s"]) ** -4),
        {"f": Form(lambda x, a, b, m: a * x**-m + b * x ** (-m / 2), (1, -2, 8), ((0.8, 6),))},
    ),
    "growth curves": Problem(
        "K[group]*f(t - s[group])", {"f": ["u"]}, 12, {"t": (0, 6)}, {"K": (1, 5), "s": (1, 4)},
        lambda x, p: p["K"] / (1 + np.exp(-1.7 * (x["t"] - p["s"]))),
        {"f": Form(lambda u, a, b, c: a / (1 + b * np.exp(-c * u)), (1, 1, 1.7), ((-6, 6),))},
    ),
    "dose and response": Problem(
        "b[group] + f(dose/c[group])", {"f": ["x"]}, 6, {"dose": (0.05, 8)}, {"b": (0, 1), "c": (0.5, 2)},
        lambda x, p: p["b"] + 4 * (x["dose"] / p["c"]) ** 2 / (1 + (x["dose"] / p["c"]) ** 2),
        {"f": Form(lambda x, o, a, b: o + a * x**2 / (b + x**2), (0, 4, 1), ((0, 30),))},
    ),
    "isotherms": Problem(
        "q[group]*f(b[group]*p*exp(h/T))", {"f": ["z"]}, 10, {"p": (0.1, 5), "T": (1, 2)},
        {"q": (1, 4), "b": (0.1, 1)},
        lambda x, c: c["q"] * (z := c["b"] * x["p"] * np.exp(1.5 / x["T"])) / (1 + z),
        {"f": Form(lambda z, a, b: a * z / (b + z), (1, 1), ((0, 40),))},
    ),
    "reaction rates": Problem(
        "A[group]*exp(-E[group]/T)*f(c)", {"f": ["c"]}, 5, {"T": (0.5, 2), "c": (0.1, 4)},
        {"A": (1, 5), "E": (0.5, 1.5)},
        lambda x, p: p["A"] * np.exp(-p["E"] / x["T"]) * x["c"] ** 1.5 / (1 + 0.6 * x["c"] ** 1.5),
        {"f": Form(lambda c, a, b, m: a * c**m / (1 + b * c**m), (1, 0.6, 1.5), ((0.05, 8),))},
    ),
    "springs with drag": Problem(
        "f(x) + m[group]*g(v)", {"f": ["x"], "g": ["v"]}, 15, {"x": (-2, 2), "v": (-3, 3)}, {"m": (0.5, 2)},
        lambda x, p: -1.5 * x["x"] - 0.8 * x["x"] ** 3 - p["m"] * 0.4 * x["v"] * np.abs(x["v"]),
        {
            "f": Form(lambda x, o, a, b: o + a * x + b * x**3, (0, -1.5, -0.8), ((-3, 3),)),
            "g": Form(lambda v, o, a: o + a * v * np.abs(v), (0, -0.4), ((-5, 5),)),
        },
    ),
    "lamps": Problem(
        "a[group]*f(l*T) + d[group]", {"f": ["u"]}, 20, {"l": (0.3, 2), "T": (0.5, 1.5)},
        {"a": (1, 3), "d": (-0.5, 0.5)},
        lambda x, p: p["a"] / ((u := x["l"] * x["T"]) ** 3 * (np.exp(1.4 / u) - 1)) + p["d"],
        {"f": Form(lambda u, o, a, b: o + a / (u**3 * (np.exp(b / u) - 1)), (0, 1, 1.4), ((0.1, 4),))},
    ),
}  # fmt: skip
"""Problems that the search was developed with."""

UNTOUCHED: dict[str, Problem] = {
    "relaxing springs": Problem(
        "a[group]*f(t/s[group])", {"f": ["u"]}, 10, {"t": (0, 4)}, {"a": (1, 3), "s": (0.7, 1.5)},
        lambda x, p: p["a"] * np.exp(-(u := x["t"] / p["s"])) * np.cos(3 * u),
        {"f": Form(lambda u, a, k, w, s: a * np.exp(-k * u) * np.cos(w * u + s), (1, 1, 3, 0), ((0, 7),))},
    ),
    "Morse potentials": Problem(
        "d[group]*f(r - r0[group])", {"f": ["u"]}, 8, {"r": (0.8, 4)}, {"d": (0.5, 3), "r0": (1, 1.6)},
        lambda x, p: p["d"] * (1 - np.exp(-1.3 * (x["r"] - p["r0"]))) ** 2,
        {"f": Form(lambda u, a, b, c: a * (1 - b * np.exp(-c * u)) ** 2, (1, 1, 1.3), ((-1, 6),))},
    ),
    "Gompertz growth": Problem(
        "K[group]*f(t) + b[group]", {"f": ["t"]}, 15, {"t": (0, 6)}, {"K": (1, 4), "b": (0, 1)},
        lambda x, p: p["K"] * np.exp(-4 * np.exp(-0.9 * x["t"])) + p["b"],
        {"f": Form(lambda t, o, a, b, c: o + a * np.exp(-b * np.exp(-c * t)), (0, 1, 4, 0.9), ((-1, 12),))},
    ),
    "inhibited enzymes": Problem(
        "V[group]*f(s, i)", {"f": ["s", "i"]}, 6, {"s": (0.1, 5), "i": (0, 3)}, {"V": (1, 5)},
        lambda x, p: p["V"] * x["s"] / (0.5 + x["s"] + 0.8 * x["i"]),
        {"f": Form(lambda s, i, a, b, c: a * s / (b + s + c * i), (1, 0.5, 0.8), ((0.05, 10), (0, 6)))},
    ),
    "adsorption on rough surfaces": Problem(
        "q[group]*f(b[group]*p)", {"f": ["z"]}, 12, {"p": (0.1, 6)}, {"q": (1, 4), "b": (0.3, 2)},
        lambda x, p: p["q"] * (z := (p["b"] * x["p"]) ** 0.7) / (1 + z),
        {"f": Form(lambda z, a, b, m: a * z**m / (b + z**m), (1, 1, 0.7), ((0.02, 30),))},
    ),
    "electrodes": Problem(
        "E[group] + f(T, c)", {"f": ["T", "c"]}, 20, {"T": (0.8, 1.5), "c": (0.05, 5)}, {"E": (-1, 1)},
        lambda x, p: p["E"] + 0.4 * x["T"] * np.log(x["c"]),
        {"f": Form(lambda T, c, o, a: o + a * T * np.log(c), (0, 0.4), ((0.5, 2), (0.01, 10)))},
    ),
    "resonances": Problem(
        "A[group]*f(w/w0[group])", {"f": ["x"]}, 9, {"w": (0.2, 3)}, {"A": (0.5, 2), "w0": (0.8, 1.4)},
        lambda x, p: p["A"] / ((1 - (r := x["w"] / p["w0"]) ** 2) ** 2 + 0.3 * r**2),
        {"f": Form(lambda x, a, b, c: a / ((1 - b * x**2) ** 2 + c * x**2), (1, 1, 0.3), ((0.05, 5),))},
    ),
    "pumps and pipes": Problem(
        "f(h) + k[group]*g(v)", {"f": ["h"], "g": ["v"]}, 5, {"h": (0.2, 4), "v": (0.1, 3)}, {"k": (0.5, 2)},
        lambda x, p: 1.5 * np.sqrt(x["h"]) + p["k"] * 0.6 * x["v"] ** 1.75,
        {
            "f": Form(lambda h, o, a: o + a * np.sqrt(h), (0, 1.5), ((0.05, 10),)),
            "g": Form(lambda v, o, a, m: o + a * v**m, (0, 0.6, 1.75), ((0.02, 6),)),
        },
    ),
}  # fmt: skip
"""Problems that are run to judge the search, and never to develop it."""

PROBLEMS = DEVELOPED | UNTOUCHED

PRIMITIVES = ("add", "sub", "mul", "div", "neg", "square", "sqrt", "pow", "exp", "log", "sin", "cos", "abs")


def drawn(problem: Problem, constants: Mapping[str, Array], rows: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Columns, that of the groups last, and true values."""
    columns = {name: rng.uniform(*ends, rows) for name, ends in problem.columns.items()}
    group = rng.integers(0, problem.groups, rows)
    y = problem.truth(columns, {name: values[group] for name, values in constants.items()})
    return np.column_stack([*columns.values(), group]), y


EXACT, CLOSE = 1e-6, 0.1
"""Differences of functions, as a share of their spread, that count as none, and as close enough to go on from."""

TRIALS = 40


def fitted(model: Callable[[Array], Array], values: Array, start: Array, free: bool = False) -> tuple[Array, float]:
    """Constants of a model, and the root mean square of its difference from some values, in units of their spread.

    With `free`, the values are compared with ``a + b*model``.
    """
    spread = values.std() or 1.0

    def rest(theta: Array) -> Array:
        with np.errstate(all="ignore"):
            own = theta[0] + theta[1] * model(theta[2:]) if free else model(theta)
            return np.nan_to_num((own - values) / spread, nan=1e6, posinf=1e6, neginf=-1e6)

    first = np.concatenate([[0.0, 1.0], start]) if free else start
    try:
        found = least_squares(rest, first, xtol=1e-15, ftol=1e-15, gtol=1e-15, x_scale="jac", max_nfev=2000)
    except ValueError:
        return first, np.inf
    return found.x, float(np.sqrt(2 * found.cost / len(values)))


def parametrized(expression: str, names: list[str]) -> tuple[Callable[[list[Array], Array], Array], Array]:
    """An expression as a function of its arguments and its constants; and these. Whole exponents are no constants."""
    tree = ast.parse(expression, mode="eval")
    whole = {
        id(node.right) for node in ast.walk(tree)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow) and isinstance(node.right, ast.Constant)
        and float(node.right.value).is_integer()
    }  # fmt: skip
    constants: list[float] = []

    class Freed(ast.NodeTransformer):
        def visit_Constant(self, node: ast.Constant) -> ast.AST:
            if id(node) in whole:
                return node
            constants.append(float(node.value))
            return ast.parse(f"theta[{len(constants) - 1}]", mode="eval").body

    body = ast.unparse(Freed().visit(tree))
    numpy = {name: getattr(np, name) for name in ("exp", "log", "sin", "cos", "sqrt", "abs", "square")}
    code = eval(f"lambda theta, {', '.join(names)}: {body}", {**numpy, "pow": np.power, "neg": np.negative})
    return lambda arguments, theta: code(theta, *arguments), np.array(constants)


def has_form(expression: str, names: list[str], form: Form, rng: np.random.Generator) -> bool:
    """Whether a function has a form."""
    function, own = parametrized(expression, names)
    # Of several arguments, all but the first are shuffled: the pairs fill their ranges.
    arguments = [np.linspace(*ends, 400) for ends in form.ranges]
    arguments = [arguments[0], *(rng.permutation(each) for each in arguments[1:])]
    with np.errstate(all="ignore"):
        values = function(arguments, own) + np.zeros(400)
        fine = np.isfinite(values)
        if fine.mean() < 0.95:
            return False
        arguments, values = [each[fine] for each in arguments], values[fine]
        best, nearest = np.array(form.start), np.inf
        for trial in range(TRIALS):
            start = np.array(form.start) * (np.exp(0.7 * rng.standard_normal(len(form.start))) if trial else 1.0)
            start = start * np.where(rng.random(len(start)) < 0.2, -1, 1) if trial > TRIALS // 4 else start
            if trial % 2:
                scale = np.ptp(values) / max(np.ptp(form.of(*arguments, *start)), 1e-9)
                start[0] *= scale if np.isfinite(scale) else 1
            theta, distance = fitted(lambda theta: form.of(*arguments, *theta), values, start)
            if distance < nearest:
                best, nearest = theta, distance
            if nearest < EXACT:
                return True
        if nearest > CLOSE:
            return False
        target = form.of(*arguments, *best)
    return fitted(lambda theta: function(arguments, theta), target, own, free=True)[1] < EXACT


def solved(problem: Problem, noise: float, seconds: float, seed: int) -> tuple[bool, str]:
    """Whether the law is recovered, and a line about it."""
    rng = np.random.default_rng(seed)
    constants = {name: rng.uniform(*ends, problem.groups) for name, ends in problem.constants.items()}
    X, truth = drawn(problem, constants, 60 * problem.groups, rng)
    y = truth + noise * truth.std() * rng.standard_normal(len(truth))
    features = [*problem.columns, "group"]
    law = shine.template(problem.law, unknown=problem.unknown, groups="group")
    began, worked = time.perf_counter(), time.process_time()
    result = shine.evolve(
        X, y, features=features, template=law, seconds=seconds, primitives=PRIMITIVES, seed=seed, generations=None
    )
    took, worked = time.perf_counter() - began, time.process_time() - worked
    best = result.best
    fresh, values = drawn(problem, constants, 2000, rng)
    error = float(np.sqrt(np.mean((best.predict(fresh) - values) ** 2)) / values.std())
    forms = {
        name: has_form(best.functions[name].expression, problem.unknown[name], form, rng)
        for name, form in problem.forms.items()
    }
    functions = "; ".join(f"{name} = {best.functions[name].formula(4)}" for name in problem.forms)
    limit = noise / 3 if noise else EXACT
    good = all(forms.values()) and error < limit
    return good, f"{took:5.1f} s, {worked:5.1f} s of one core  error {error:.1e}  {forms}  {functions}"


def cost(individuals: int, rows: int, groups: int, steps: int = 8, repeats: int = 7) -> str:
    """Times of scoring and of fitting random individuals with groups, and of the same formulas with one constant."""
    rng = np.random.default_rng(0)
    names = ("a", "b", "t", "group")
    law = template("f(a, b)*exp(-k[group]*t) + g(t)", unknown={"f": ["a", "b"], "g": ["t"]}, groups="group")
    composition = bound(law, names, groups, ("add", "sub", "mul", "div", "sin", "exp"), 12, 6)
    formulas = [
        ptc2(individuals, slot.primitives, slot.max_size, slot.max_depth, Terminals((-5.0, 5.0), 0.3), rng)
        for slot in composition.genome.slots
    ]
    population = assembled(formulas, composition.genome, np.ones((individuals, groups)))
    X, group = rng.uniform(1, 3, (rows, 3)), rng.integers(0, groups, rows)
    y = X[:, 0] * X[:, 1] * np.exp(-np.linspace(0.5, 2, groups)[group] * X[:, 2]) + X[:, 2] ** 2
    dataset = Dataset.from_arrays(np.column_stack([X, group]), y + 0.1 * rng.standard_normal(rows), features=names)
    plain, grouped = MachineEvaluator(dataset, "mse", False, "float64"), TemplateEvaluator(composition, dataset, "mse")
    population = population.take(np.flatnonzero(np.isfinite(grouped.score(population).losses)))
    (composed,) = composition.composed(population)
    one_fit, group_fit = MachineLinearizer(dataset, "mse"), TemplateLinearizer(composition, dataset, "mse")
    tasks = (
        lambda: plain.score(composed.population),
        lambda: grouped.score(population),
        lambda: one_fit.fit(composed.population, steps, tolerance=1e-2),
        lambda: group_fit.fit(population, steps, tolerance=1e-2),
    )
    times = [[] for _ in tasks]
    for _ in range(repeats):
        for task, own in zip(tasks, times, strict=True):
            began = time.process_time()
            task()
            own.append(time.process_time() - began)
    score, scores, fit, fits = (1e6 * min(own) / len(population) for own in times)
    return (
        f"{rows:6} rows, {groups:4} groups: scores {score:6.1f} -> {scores:6.1f} us, "
        f"fits {fit:7.1f} -> {fits:7.1f} us an individual: {fits / fit:.2f} times as much"
    )


def main() -> None:
    """Run the problems and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--noise", type=float, nargs="+", default=[0.0, 0.05])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", default=list(DEVELOPED), choices=list(PROBLEMS), metavar="NAME")
    parser.add_argument("--untouched", action="store_true", help="run the problems that were kept for judging")
    parser.add_argument("--cost", action="store_true")
    options = parser.parse_args()
    if options.cost:
        for rows, groups in ((500, 10), (1000, 10), (5000, 10), (20000, 10), (20000, 1000)):
            print(cost(1000, rows, groups), flush=True)
        return
    names = list(UNTOUCHED) if options.untouched else options.only
    for noise in options.noise:
        count = 0
        for name in names:
            good, line = solved(PROBLEMS[name], noise, options.seconds, options.seed)
            count += good
            print(f"{'recovered' if good else 'missed   '}  {name:20} noise {noise:4}  {line}", flush=True)
        print(f"noise {noise}: {count} of {len(names)}", flush=True)


if __name__ == "__main__":
    main()
