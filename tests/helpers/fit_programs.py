"""Programs around a fit, as users write them, drawn from a number by a grammar: data, container, settings, face."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from helpers.containers import CONTAINERS, PLAIN, contained, headings
from numpy.typing import NDArray

from shine.data.columns.headings import names_of_headings

Array = NDArray[np.float64]
FACES = ("regressor",) * 8 + ("evolve",) * 7 + ("classifier",) * 4 + ("transformer",) * 3 + ("file",) * 2 + ("cli",)


class Own(Exception):
    """An error of the user's own, raised in a callback: it passes through."""


@dataclass
class Program:
    """What a user runs."""

    number: int
    face: str
    values: Array
    """The features, shape (n_rows, n_columns); the container may hold something else."""
    target: Any
    heads: list[str]
    kind: str
    X: Any
    y: Any
    options: dict[str, Any]
    """Of the estimator, or of `evolve`."""
    beside: dict[str, Any]
    """Of the fit: weights, standard deviations, groups, columns."""
    again: dict[str, Any] | None = None
    """Options that change for a second fit with a warm start."""
    notes: list[str] = field(default_factory=list)

    @property
    def seconds(self) -> float | None:
        """The limit of time, if there is a sane one."""
        given = self.options.get("max_time")
        return float(given) if isinstance(given, int | float) and 0 < given < 1e4 else None


class Random(np.random.Generator):
    """A generator of choices; only an odd program has settings that are mistakes."""

    odd = False


def one(rng: Random, *values: Any, wrong: tuple[Any, ...] = ()) -> Any:
    """One of some values; in an odd program maybe a wrong one."""
    if wrong and rng.odd and rng.random() < 0.2:
        values = wrong
    return values[int(rng.integers(len(values)))]


def spread(rng: Random, low: float, high: float) -> float:
    """A number even in its logarithm."""
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def column(rng: Random, n: int, wild: float) -> tuple[str, Array]:
    """Values of a column, wild ones with a probability."""
    tame = {
        "uniform": lambda: rng.uniform(-3, 3, n),
        "positive": lambda: rng.uniform(0.5, 5, n),
        "normal": lambda: rng.standard_normal(n),
        "whole": lambda: rng.integers(-4, 9, n).astype(float),
    }
    odd = {
        "constant": lambda: np.full(n, one(rng, 0.0, -0.0, 1.0, -7.5, 1e300, 5e-324)),
        "binary": lambda: rng.integers(0, 2, n).astype(float),
        "huge": lambda: rng.uniform(-1, 1, n) * 10.0 ** rng.uniform(100, 308),
        "tiny": lambda: rng.uniform(-1, 1, n) * 10.0 ** rng.uniform(-307, -100),
        "subnormal": lambda: rng.integers(-9, 9, n) * 5e-324,
        "any scale": lambda: rng.choice([-1, 1], n) * 10.0 ** rng.uniform(-300, 300, n),
        "beyond 2**53": lambda: 2.0**53 + 2 * rng.integers(0, 1000, n),
        "signed zeros": lambda: rng.choice([0.0, -0.0], n),
        "limits": lambda: rng.choice([1.7976931348623157e308, -1.7976931348623157e308, 2.2e-308, 0.0, 1.0], n),
        "repeated": lambda: np.resize(rng.uniform(-2, 2, 3), n),
        "one outlier": lambda: np.where(np.arange(n) == n // 2, 1e12, rng.standard_normal(n)),
        "nearly constant": lambda: 1.0 + 2.2e-16 * rng.integers(0, 4, n),
    }
    bad = odd | {
        "missing": lambda: np.where(rng.random(n) < 0.2, np.nan, rng.standard_normal(n)),
        "infinite": lambda: np.where(rng.random(n) < 0.1, one(rng, np.inf, -np.inf), rng.standard_normal(n)),
        "all missing": lambda: np.full(n, np.nan),
    }
    table = tame if rng.random() > wild else bad if rng.odd and rng.random() < 0.3 else odd
    name = str(rng.choice(list(table)))
    return name, np.asarray(table[name](), float)


def target_of(rng: Random, values: Array) -> tuple[str, Array]:
    """A target: a law of the columns, or a column of its own."""
    n, d = values.shape
    if rng.random() < 0.3 or d == 0 or n == 0:
        return column(rng, n, 0.9)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        a, b = (values[:, int(rng.integers(d))] for _ in range(2))
        noise = rng.choice([0.0, 0.0, 0.1, 1.0]) * rng.standard_normal(n)
        laws = {
            "line": 2.5 * a - 1.25 + noise, "product": a * b + noise, "sine": np.sin(a) + noise,
            "ratio": a / (1 + b * b) + noise, "power": np.abs(a) ** 1.5 + noise,
            "exponential": np.exp(np.clip(a, -9, 9)),
            "step": (a > np.median(a)) * 3.0,
            "count": rng.poisson(np.nan_to_num(np.clip(np.abs(a), 0, 50))).astype(float),
            "column": a.copy(), "far": 1e9 + a + noise,
        }  # fmt: skip
        name = str(rng.choice(list(laws)))
        y = laws[name]
    if rng.random() < 0.15:
        y = y * 10.0 ** rng.uniform(-300, 300)
        name += " at any scale"
    return name, np.clip(np.nan_to_num(y, posinf=1.7e308, neginf=-1.7e308), -1.7e308, 1.7e308)


NAMES = (
    "add", "sub", "mul", "div", "floordiv", "mod", "pow", "min", "max", "neg", "abs", "sqrt", "exp", "log",
    "floor", "ceil", "sign", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "lt", "le",
    "gt", "ge", "eq", "ne", "logical_and", "logical_or", "logical_not", "where", "square", "cube", "inv",
    "sigmoid", "relu", "hypot", "log1p", "expm1", "log2", "log10", "cbrt", "aq", "protected_div",
    "protected_log", "protected_sqrt",
)  # fmt: skip

OWN_PRIMITIVES = (
    "def halved(x): return x/2", "def leg(a, b): return sqrt(a*a + b*b)", "def seven(x): return 7.0",
    "def never(x): return log(-1 - x*x)", "def big(x): return 1e300*x", "def pick(a, b, c): return a if b > c else c",
    "def deep(x): return sin(sin(sin(sin(sin(x)))))",
)  # fmt: skip

LOSSES = (
    "def own(prediction, target): return abs(prediction - target)**1.5",
    "def own(prediction, target): return 1",
    "def own(prediction, target): return 0",
    "def own(prediction, target): return prediction - target",
    "def own(prediction, target): return -1",
    "def own(prediction, target): return log(-1 - prediction*prediction)",
    "def own(prediction, target): return exp(abs(prediction - target))",
    "def own(prediction, target): return 1 if prediction > target else 0",
    "def own(prediction, target): return 1/abs(prediction - target)",
    "def own(prediction): return prediction*prediction",
    "def own(prediction, target, price): return price*abs(prediction - target)",
    "def own(prediction, target, weight): return weight*(prediction - target)**2",
    "def own(prediction, target): return 1e300*(prediction - target)**2",
    "def own(prediction, target): return floor(abs(prediction - target))",
    "def own(prediction, target): return abs(prediction - target)/(abs(target) + abs(prediction))",
)  # fmt: skip
WRONG_LOSSES = (
    "def own(prediction, target): return unknown(prediction)", "def own(prediction, target): return 'text'",
    "own", "", "def own(a, b): return (a - b)**2", "quantile(2)", "huber(-1)",
)  # fmt: skip

BUILT_IN = [
    "mse",
    "rmse",
    "mae",
    "nmse",
    "r2",
    "huber(1)",
    "huber(1e-300)",
    "log_cosh",
    "student_t(4,1)",
    "quantile(0.9)",
    "poisson",
    "negative_binomial(1)",
    "gamma",
    "logarithmic",
    "relative",
    "binomial",
    "hinge",
]

TEMPLATES = (
    "f({a})", "f({a}) + g({b})", "f({a})*exp(-k*{b})", "k[{g}]*f({a}) + c", "f({a}) + k[{g}]", "D(f, 0)({a})",
    "f(f({a}))", "f({a} + {b})/f({b})", "max(f({a}), 0)", "f({a}) if {b} > 0 else g({a})", "log(f({a}))", "f({a})**p",
    "A*sin(w*{a} + f({b}))", "k*{a}", "{a}", "f({a}, {b}, {a})", "sqrt(f({a}))", "1/f({a})", "f({a})*0", "f(0)",
    "1e300*f({a})", "f({a}) - f({a})", "exp(exp(f({a})))", "sum(f(x) for x in [{a}, {b}])", "k[{a}]*f({b})",
    "f({a}), g({a})", "f({a}), f({b})*k", "floor(f({a}))",
)  # fmt: skip
WRONG_TEMPLATES = ("f(", "", "f({a}))", "{a} +", "f({a})[0]", "D(f, 3)({a})", "k[{a}]*f({a}) + c[{b}]")


def formula(rng: Random, heads: list[str], depth: int, names: list[str]) -> str:
    """A random formula as text."""
    if depth == 0 or rng.random() < 0.15:
        return one(rng, *heads, *heads, repr(round(float(rng.normal()), 3)), "1", "0", "1e300", "-0.0", "1e-300")
    name = str(rng.choice(names))
    arity = 2 if name in BINARY else 1
    if name in ("lt", "le", "gt", "ge", "eq", "ne", "where", "logical_and", "logical_or", "logical_not"):
        name, arity = "add", 2
    return f"{name}({', '.join(formula(rng, heads, depth - 1, names) for _ in range(arity))})"


BINARY = frozenset(
    [
        "add",
        "sub",
        "mul",
        "div",
        "floordiv",
        "mod",
        "pow",
        "min",
        "max",
        "lt",
        "le",
        "gt",
        "ge",
        "eq",
        "ne",
        "logical_and",
        "logical_or",
        "hypot",
        "aq",
        "protected_div",
    ]
)


def guess(rng: Random, heads: list[str], names: list[str]) -> Any:
    """A guess: sane, deep, wide, strange, or wrong."""
    a = heads[0] if heads else "x0"
    deep = int(spread(rng, 2, 40))
    heads = heads or ["x0"]
    return one(
        rng,
        *(formula(rng, heads, depth, names) for depth in (1, 2, 3, 6)), a, f"{a}*{a} + 1.5",
        "sin(" * deep + a + ")" * deep, "exp(" * 6 + a + ")" * 6, " + ".join([a] * deep),
        "*".join([f"({a} + {i})" for i in range(deep)]),
        f"{a}/0", f"0*{a}", "2", f"1e300*{a}*1e300", f"{a} if {a} > 0 else -{a}",
        wrong=("1e400", "", f"{a}^2", f"unknown({a})", "no_column", f"{a} +", 3.0, None, f"{a}; {a}", f"[{a}]",
               f"def h({a}): return {a}*2"),
    )  # fmt: skip


def settings_of(rng: Random, heads: list[str]) -> dict[str, Any]:
    """Settings that all estimators and `evolve` know; the words are those of the estimators."""
    size = int(spread(rng, 1, 40))
    options: dict[str, Any] = {
        "max_time": round(spread(rng, 0.01, 2.0 if rng.random() < 0.07 else 0.2), 3),
        "generations": one(rng, None, None, 0, 1, 2, 5),
        "population_size": int(spread(rng, 2, 500)),
        "max_size": size,
        "max_depth": one(rng, 10, 10, 1, 2, 3, 5),
        "random_state": int(rng.integers(1000)),
        "n_jobs": one(rng, 1, 1, 1, 1, 1, 1, 2, -1, None),
    }
    draw = rng.random()
    if draw < 0.25:
        options["primitives"] = [str(rng.choice(NAMES))]
    elif draw < 0.5:
        options["primitives"] = [str(name) for name in rng.choice(NAMES, int(rng.integers(2, 9)), replace=False)]
    elif draw < 0.6:
        options["primitives"] = [one(rng, *OWN_PRIMITIVES), *one(rng, [], ["add", "mul"], ["+", "^", "np.exp"])]
    elif draw < 0.64 and rng.odd:
        options["primitives"] = one(
            rng, ["sin", "nothing"], ["nothing"], "sin", ["add", "add"], None, [3], ["def f(x): return y"]
        )
    if rng.random() < 0.25:
        names = options.get("primitives", ["add", "mul", "sub", "div", "sin", "sqrt"])
        names = [name for name in names or () if name in NAMES] if rng.random() < 0.8 else NAMES
        formal = list(_names(heads))
        options["guesses"] = [guess(rng, formal, names or ["add"]) for _ in range(int(rng.integers(1, 4)))]
    if rng.random() < 0.15:
        options["parsimony"] = one(rng, 0.0, 0.5, 10.0, 1e300)
    if rng.random() < 0.1:
        options["stop_loss"] = one(rng, 0.0, 0.5, 1.0, 1e9)
    if rng.random() < 0.05:
        options["dtype"] = "float32"
    if rng.random() < 0.12:
        a = heads[0] if heads else "x0"
        options["constraints"] = one(
            rng, {"limits": {"constant": 0}}, {"limits": {a: 1}}, {"nesting": {"sin": {"sin": 0}}}, {"required": [a]},
            {"forbidden": heads[1:]}, {"monotonic": {a: "increasing"}},
            {"monotonic": {a: "decreasing"}, "penalty": 1e300},
            {"units": dict.fromkeys(heads, "m"), "target_unit": "s"},
            {"units": dict.fromkeys(heads, "kg*m/s^2"), "target_unit": "1", "dimensionless_constants": True},
            wrong=({"required": [a], "forbidden": [a]}, {"limits": {"a?": 1}}, {"x": 1}, {"limits": {"sin": -1}},
                   {"forbidden": heads}, 3),
        )  # fmt: skip
    if rng.random() < 0.3:
        options["settings"] = {
            str(name): value
            for name, value in {
                "seeding": one(rng, 0.0, 0.1, 1.0), "seeding_members": one(rng, 10, 100, 1000),
                "islands": one(rng, 1, 2, 5), 
                "constants": one(rng, (0.0, 0.0), (-1e300, 1e300), (1.0, 1.0)), "constant_share": one(rng, 0.0, 1.0),
                "complexity": one(rng, {"constant": 5}, {"sin": 1000},
                                  {heads[0] if heads else "x0": 2}, wrong=({"what": 2},)),
                "constant_steps": one(rng, 0, 1, 100), "rows": one(rng, 1, 2, 10), "fitting_rows": one(rng, 1, 5),
                "patience": one(rng, 1, 2), "initial_size": one(rng, 1, 50), "tournament": one(rng, 1, 1000),
                "migrants": one(rng, 0, 1000), "renewal": one(rng, 1, 3), "stagnation": one(rng, 1, None),
                "crossover": one(rng, 0.0, 1.0),
            }.items() if rng.random() < 0.2
        }  # fmt: skip
    if rng.odd and rng.random() < 0.1:
        name = str(rng.choice(["max_time", "generations", "population_size", "max_size", "max_depth", "parsimony",
                               "n_jobs", "random_state", "dtype", "guesses", "settings"]))  # fmt: skip
        options[name] = one(rng, -1, 0, "many", np.nan, np.inf, [], {}, 2.5, True, 10**30, b"", None, np.int64(3))
    return options


def program(number: int) -> Program:
    """The program of a number."""
    rng = Random(np.random.PCG64([2026, number]))
    rng.odd = rng.random() < 0.35
    face = str(rng.choice(FACES))
    n = one(
        rng,
        2,
        3,
        4,
        5,
        8,
        *[int(spread(rng, 10, 300)) for _ in range(12)],
        int(spread(rng, 300, 5000)),
        wrong=(0, 1, 2),
    )
    d = int(rng.integers(1, 5)) if rng.random() < 0.95 else int(rng.integers(5, 60))
    wild = 0.15 if rng.random() < 0.7 else 0.8
    named = [column(rng, n, wild) for _ in range(d)]
    values = np.column_stack([values for _, values in named])
    note, target = target_of(rng, values)
    notes = [f"{n} x {d}", "/".join(sorted({name for name, _ in named})), f"y {note}"]
    kind = str(rng.choice(list(CONTAINERS if rng.odd and rng.random() < 0.7 else PLAIN)))
    kind = "array" if rng.random() < 0.3 else kind
    heads = headings(d, rng)
    framed = (
        kind.startswith(("frame", "Polars", "Arrow", "record", "mapping")) and kind != "frame with numbered columns"
    )
    formal = heads if framed else [f"x{i}" for i in range(d)]
    options = settings_of(rng, formal)
    beside: dict[str, Any] = {}
    if rng.random() < 0.15:
        beside["sample_weight"] = one(
            rng, rng.uniform(0.1, 2, n), rng.integers(0, 3, n).astype(float), 10.0 ** rng.uniform(-300, 300, n),
            np.full(n, 1e-320), np.where(np.arange(n) == 0, 1.0, 0.0), [1] * n, np.ones(n, "float32"),
            wrong=(np.zeros(n), -np.ones(n), np.ones(n + 1), "weights"),
        )  # fmt: skip
    y: Any = target
    if face == "classifier":
        y = _classes(rng, target)
    if face in ("regressor", "evolve", "file", "cli"):
        _of_numbers(rng, options, beside, n, face)
    if face in ("regressor", "evolve") and rng.random() < 0.15 and d > 0:
        y = _template(rng, options, formal, target, values)
    elif face == "regressor" and rng.random() < 0.06:
        y = np.column_stack([target, np.abs(target), np.zeros(n)][: int(rng.integers(1, 4))])
    if face in ("regressor", "evolve", "transformer") and rng.random() < 0.12 and np.ndim(y) == 1:
        y = _contained_target(rng, np.asarray(y, float), notes)
    if face == "transformer":
        options |= {"n_components": one(rng, 1, 2, 5), "raw_features": bool(rng.random() < 0.6)}
    if face in ("regressor", "classifier") and rng.random() < 0.1:
        options["model_selection"] = one(
            rng, "accuracy", "score", lambda front: 0, wrong=(lambda front: 99, lambda f: None, "x")
        )
    if rng.random() < 0.08:
        options["callbacks"] = one(rng, _stop, _nothing, [_nothing, _stop], wrong=(3, _fail))
    again = None
    if face in ("regressor", "classifier", "transformer") and rng.random() < 0.25:
        again = {"warm_start": bool(rng.random() < 0.9)} | _changed(rng, options, formal)
    X = contained(values, heads, kind)
    notes += [
        kind,
        *(f"{name}={str(value)[:60]}" for name, value in (options | (beside and {"beside": sorted(beside)})).items()),
    ]
    return Program(number, face, values, target, heads, kind, X, y, options, beside, again, notes)


def _names(heads: list[str]) -> tuple[str, ...]:
    """Names in formulas of columns with some headings."""
    try:
        return names_of_headings(heads)
    except ValueError:
        return tuple(heads)


def _stop(progress: Any) -> bool:
    return True


def _fail(progress: Any) -> None:
    raise Own("a callback fails")


def _nothing(progress: Any) -> None:
    repr(progress.formula)


def _classes(rng: Random, target: Array) -> Any:
    finite = np.nan_to_num(target, posinf=0, neginf=0)
    codes = (
        np.digitize(finite, np.quantile(finite, one(rng, [0.5], [0.3, 0.7], [0.1, 0.2, 0.6])))
        if len(target)
        else finite
    )
    codes = codes.astype(int)
    words = np.array(["no", "yes", "größer", ""])
    return one(
        rng, codes, codes, codes > 0, words[codes], codes.astype(float) * 1e9, words[codes].astype(object),
        codes.tolist(), codes.astype("int8"),
        wrong=(np.where(codes > 0, np.nan, 0.0), np.zeros(len(codes), int), target, codes.reshape(-1, 1),
               np.array([None if c else 1 for c in codes], object), np.column_stack([codes, codes])),
    )  # fmt: skip


def _of_numbers(rng: Random, options: dict[str, Any], beside: dict[str, Any], n: int, face: str) -> None:
    """Settings of a numeric target."""
    draw = rng.random()
    if draw < 0.2:
        options["loss"] = str(rng.choice(BUILT_IN))
    elif draw < 0.4:
        options["loss"] = one(rng, *LOSSES, wrong=WRONG_LOSSES)
        if "price" in options["loss"] and rng.random() < 0.8:
            beside["loss_columns"] = {"price": rng.uniform(0, 2, n)}
    if rng.random() < 0.1:
        options["noise"] = one(rng, "absolute", "relative", "log", "counts", "auto", wrong=("white",))
        if options["noise"] in ("relative", "log", "counts") and not rng.odd:
            options.pop("loss", None)
    if rng.random() < 0.2:
        options["linear_scaling"] = False
    if rng.random() < 0.08:
        options["validation"] = one(rng, "random", "time", wrong=("groups", "never"))
        options["validation_fraction"] = one(rng, 0.25, 0.9, 0.01, 1e-300, wrong=(2,))
    if rng.random() < 0.08:
        beside["sigma"] = one(
            rng, rng.uniform(0.1, 2, n), np.full(n, 1e-300), np.full(n, 1e300), 10.0 ** rng.uniform(-200, 200, n),
            wrong=(np.zeros(n), np.full(n, np.nan)),
        )  # fmt: skip
    if rng.random() < 0.08:
        beside["groups"] = one(
            rng, np.arange(n) // 3, np.zeros(n), np.array(list("ab" * n))[:n], wrong=(np.arange(n + 2),)
        )
    if face == "evolve" and rng.random() < 0.08:
        options["objective"] = one(
            rng, _median, _median, lambda p: np.zeros(len(p)), lambda p: np.full(len(p), np.nan),
            lambda p, f: np.array([[1.0, len(str(t))] for t in f]),
            wrong=(lambda p: -np.ones(len(p)), lambda p: 1.0, lambda p: p, 3, _own_failure),
        )  # fmt: skip
    if face == "evolve" and rng.random() < 0.05:
        options["evidence"] = one(rng, 8, 20.0, 1e9, wrong=(1,))
    if face == "evolve" and rng.random() < 0.1:
        options["outliers"] = one(rng, "auto", "keep", wrong=("leave",))
    if face == "evolve" and rng.random() < 0.1:
        options["tier"] = one(rng, "native", "reference", "machine")


def _median(predictions: Array) -> Array:
    with np.errstate(all="ignore"):
        return np.abs(np.median(predictions, axis=1))


def _own_failure(predictions: Array) -> Array:
    raise Own("an objective fails")


def _template(rng: Random, options: dict[str, Any], formal: list[str], target: Array, values: Array) -> Any:
    """Put a template into the options; returns the target, with a column for each output."""
    names = _names(formal)
    a, b, g = names[0], names[-1], str(rng.choice(names))
    text = one(rng, *TEMPLATES, wrong=WRONG_TEMPLATES).format(a=a, b=b, g=g)
    more: dict[str, Any] = {}
    if rng.random() < 0.5:
        known = {"k": one(rng, (0, None), 2.0, (-1e-3, 1e-3), {"start": 1e300}, wrong=((5, -5), "x", (1, 1))),
                 "c": one(rng, {"integer": True, "bounds": (1, 5)}, 0.0), "p": (0.5, 3),
                 "A": {"start": 0.0}}  # fmt: skip
        more["parameters"] = {name: fact for name, fact in known.items() if re.search(rf"\b{name}\b", text)}
    if rng.random() < 0.3 and "f(" in text and text.count("(") < 3:
        more["unknown"] = {"f": one(rng, {"max_size": 1}, {"primitives": ["sin"]}, {"max_depth": 2},
                                    {"primitives": ["pow"], "max_size": 7},
                                    wrong=({"max_size": -1}, {"x": 1}))}  # fmt: skip
    if rng.random() < 0.1:
        more["shrinkage"] = True
    options["template"] = {"formula": text} | more if more else text
    if rng.random() < 0.9:
        for name in ("constraints", "validation", "linear_scaling", "dtype", "objective", "validation_fraction"):
            options.pop(name, None)
    return np.column_stack([target, target]) if "), " in text and "[" not in text and text.count("(") == 2 else target


def _contained_target(rng: Random, y: Array, notes: list[str]) -> Any:
    kind = str(rng.choice([name for name in (CONTAINERS if rng.odd else PLAIN) if name != "text"]))
    made = contained(y.reshape(-1, 1), ["y"], kind)
    notes.append(f"y as {kind}")
    return (
        made[:, 0] if isinstance(made, np.ndarray) and made.ndim == 2 and rng.random() < 0.9 and made.shape[1] else made
    )


def _changed(rng: Random, options: dict[str, Any], heads: list[str]) -> dict[str, Any]:
    """Options of a second fit."""
    fresh = settings_of(rng, heads)
    changed = {name: fresh[name] for name in fresh if rng.random() < 0.4 and name != "max_time"}
    return changed | ({"max_time": fresh["max_time"]} if options.get("max_time") is None else {})
