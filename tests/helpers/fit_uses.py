"""Runs a program of `helpers.fit_programs`, and judges the fit, its time, and every use of its model.

A fit may end in a sensible model, or in a `ShineError`, a `ValueError` or a `TypeError` with one clear line, raised on
purpose by Shine, or by scikit-learn's checks of data. Everything else is a failure: other exceptions, warnings, text on
the terminal, words of other libraries, more than the limit of time, values that are not finite on the rows of the fit,
and a printed formula that computes something else. The oracle for formulas is NumPy, on the exported Python text.
"""

from __future__ import annotations

import copy
import dis
import io
import logging
import math
import os
import pickle
import re
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import pandas as pd
from helpers.containers import PLAIN, contained
from helpers.fit_programs import Own, Program
from helpers.fits import Skipped, terminal

import shine
from shine.base.errors import ExtrapolationWarning, ShineError

WORDS_OF_LIBRARIES = re.compile(
    r"reshape|broadcast|ufunc|object is not|object has no|has no attribute|unsupported operand|not supported between|"
    r"array element|out of bounds|out of range for|unhashable|index out of|invalid literal|Traceback|0x[0-9a-f]{8}|"
    r"boolean value of NA|truth value|arg must be|positional argument|takes no keyword|got an unexpected|<lambda>|"
    r"validation error|ambiguous|zero-size array|cannot convert|could not convert|Cannot interpret|must be real number|"
    r"arrow error|DataType|ArrowInvalid|ComputeError|pandas\.core|StopIteration|math domain"
)
"""Texts that no user should have to read."""

OF_SKLEARN = ("sklearn/utils/validation.py", "sklearn/utils/multiclass.py", "sklearn/utils/_encode.py")
"""Files whose messages `fit` passes on, as scikit-learn's conventions want."""

FORMS = ("python", "pandas", "polars", "latex", "sympy", "json", "c", "excel", "sql", "onnx", "graphdef")

ORDINARY = 128
"""Binary exponent above which columns are scaled."""

SLACK = 1.0
"""Seconds of processor time that a fit may take beyond its limit and a tenth of it."""


@dataclass
class Outcome:
    """What came of a program."""

    verdict: str = "model"
    """`model`, `error` (a clear one), or `FAILED`."""
    text: str = ""
    failures: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    """Errors of the uses of a model."""
    skipped: list[str] = field(default_factory=list)
    """Searches of the seeding that failed inside, and were skipped."""
    seconds: float = 0.0
    processor: float = 0.0
    limit: float | None = None


def complaint(error: BaseException) -> str | None:
    """What is wrong with an error that a user gets; None if it is a legitimate one."""
    if isinstance(error, Own):
        return None
    name, text = type(error).__name__, str(error)
    steps: list[TracebackType] = []
    step = error.__traceback__
    while step is not None:
        steps.append(step)
        step = step.tb_next
    where = steps[-1] if steps else None
    if where is None:
        return f"{name} without a place: {text[:200]}"
    code = where.tb_frame.f_code
    place = f"{'/'.join(code.co_filename.split(os.sep)[-3:])}:{where.tb_lineno} {code.co_name}"
    if type(error) is UserWarning and f"{os.sep}shine{os.sep}" in code.co_filename:
        return None  # a warning that Shine gives on purpose, such as of guesses that break constraints
    if isinstance(error, Warning):
        return f"warning {name} in {place}: {text[:200]}"
    if not isinstance(error, ShineError | ValueError | TypeError):
        return f"{name} in {place}: {text[:200]}"
    raised = {each.offset: each.opname for each in dis.get_instructions(code)}.get(where.tb_lasti, "")
    own = f"{os.sep}shine{os.sep}" in code.co_filename or code.co_filename.endswith(OF_SKLEARN)
    if not own or not raised.startswith(("RAISE", "RERAISE")):
        return f"{name} not raised on purpose, in {place}: {text[:200]}"
    if not text.strip() or len(text) > 3000:
        return f"{name} of {len(text)} characters in {place}"
    if text.startswith("Expected 2D array"):
        return None  # scikit-learn's words, which its users know
    if found := WORDS_OF_LIBRARIES.search(re.sub(r"'[^']*'", "''", text)):
        return f"{name} in words of a library ({found[0]}) in {place}: {text[:200]}"
    return None


def run(program: Program) -> Outcome:
    """Run a program and judge it."""
    found = Outcome(limit=program.seconds)
    skipped = Skipped()
    logger = logging.getLogger("shine")
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    logger.addHandler(skipped)
    try:
        with warnings.catch_warnings(), terminal() as written, tempfile.TemporaryDirectory() as folder:
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", ExtrapolationWarning)  # the rows are few and wild
            for text in ("X (has|does not have valid) feature names", "A column-vector y was passed"):
                warnings.filterwarnings("ignore", text)  # scikit-learn's conventions
            try:
                Judge(program, found, Path(folder)).all()
            except Exception:
                found.failures.append(f"the judge fails: {traceback.format_exc()[-800:]}")
    finally:
        logger.removeHandler(skipped)
    if written[0]:
        found.failures.append(f"wrote to the terminal: {written[0][:200]}")
    found.skipped = skipped.found
    if found.failures:
        found.verdict = "FAILED"
    return found


@dataclass
class Judge:
    """Runs the fit of a program and uses its model."""

    program: Program
    found: Outcome
    folder: Path

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng([7, self.program.number])

    def all(self) -> None:
        runs = {"evolve": self.evolve, "file": self.file, "cli": self.cli}
        runs.get(self.program.face, self.estimator)()

    def error(self, error: BaseException, stage: str) -> None:
        wrong = complaint(error)
        if wrong is not None:
            frames = [f"{Path(f.filename).name}:{f.lineno}" for f in traceback.extract_tb(error.__traceback__)[-6:]]
            self.found.failures.append(f"{stage}: {wrong} [{' '.join(frames)}]")
        elif stage.startswith("fit"):
            self.found.verdict, self.found.text = "error", f"{type(error).__name__}: {error}"
        else:
            self.found.said.append(f"{stage}: {type(error).__name__}: {str(error)[:150]}")

    def attempt(self, stage: str, what: Callable[[], Any], certain: bool = False) -> Any:
        """A use of a model; None if it raises an error, which is a failure if it is certain to work."""
        try:
            return what()
        except Exception as error:
            before = len(self.found.failures)
            self.error(error, stage)
            if certain and len(self.found.failures) == before:
                self.fail(f"{stage}: refused after a fit: {error}")
            return None

    def fail(self, text: str) -> None:
        self.found.failures.append(text[:600])

    def check(self, holds: Any, text: str) -> None:
        if not bool(holds):
            self.fail(text)

    @contextmanager
    def timed(self, seconds: float | None, stage: str = "fit") -> Iterator[None]:
        """Measures a fit, and compares its processor time with its limit."""
        threads = 1 if self.program.options.get("n_jobs") in (1, None) else os.cpu_count() or 1
        clock, spent = time.perf_counter(), time.process_time()
        try:
            yield
        finally:
            used = time.process_time() - spent
            self.found.seconds += time.perf_counter() - clock
            self.found.processor += used
            if seconds is not None and used > 1.1 * seconds * threads + SLACK:
                self.fail(f"{stage}: TIME {used:.2f} s of the processor, limit {seconds} s")

    # The faces.

    def estimator(self) -> None:
        p = self.program
        kinds = {"regressor": shine.SymbolicRegressor, "classifier": shine.SymbolicClassifier,
                 "transformer": shine.SymbolicTransformer}  # fmt: skip
        allowed = {"sample_weight"} if p.face != "regressor" else {"sample_weight", "sigma", "groups", "loss_columns"}
        beside = {name: value for name, value in p.beside.items() if name in allowed}
        try:
            model = kinds[p.face](**p.options)
            self.attempt("repr unfitted", lambda: repr(model), certain=True)
            with self.timed(p.seconds):
                model.fit(p.X, p.y, **beside)
        except Exception as error:
            self.error(error, "fit")
            return
        self.fitted(model, beside)
        if p.again is None:
            return
        try:
            model.set_params(**p.again)
            half = self.rng.random() < 0.3 and p.kind in PLAIN and len(p.values) > 8
            X, y, more = p.X, p.y, beside
            if half and np.ndim(p.y) == 1:
                X, y, more = contained(p.values[::2], p.heads, p.kind), np.asarray(p.y, dtype=object)[::2], {}
                y = np.array(y.tolist())
            given = p.again.get("max_time", p.options.get("max_time"))
            with self.timed(given if isinstance(given, int | float) and 0 < given < 1e4 else None, "refit"):
                model.fit(X, y, **more)
        except Exception as error:
            self.error(error, "refit")
            return
        self.attempt("predict after refit", lambda: self.forward(model)(p.X), certain=True)

    def forward(self, model: Any) -> Callable[..., Any]:
        return model.transform if self.program.face == "transformer" else model.predict  # type: ignore[no-any-return]

    def knows_all_groups(self) -> bool:
        """Whether every group of a template has a row of positive weight: others are unknown after the fit."""
        return "template" not in self.program.options or bool(np.all(self.program.beside.get("sample_weight", 1.0)))

    def fitted(self, model: Any, beside: dict[str, Any]) -> None:
        """Use a fitted estimator."""
        p = self.program
        predicted = self.attempt("predict", lambda: self.forward(model)(p.X), certain=self.knows_all_groups())
        if predicted is None:
            return
        weights = np.asarray(beside.get("sample_weight", np.ones(len(predicted))), float)
        if p.face == "classifier":
            known = set(np.asarray(model.classes_).tolist())
            self.check(set(np.asarray(predicted).tolist()) <= known, f"predicts {set(predicted.tolist()) - known}")
            shares = self.attempt("predict_proba", lambda: model.predict_proba(p.X), certain=True)
            if shares is not None:
                self.check(
                    np.isfinite(shares).all() and np.allclose(shares.sum(axis=1), 1), "probabilities do not sum to 1"
                )
            self.attempt("decision_function", lambda: model.decision_function(p.X), certain=True)
        else:
            self.check(
                np.isfinite(np.asarray(predicted)[weights > 0]).all(),
                "predictions on the rows of the fit are not finite",
            )
        again = None
        if not self.has_functions():
            again = self.attempt("pickle", lambda: pickle.loads(pickle.dumps(model)), certain=True)
        if again is not None:
            other = self.attempt("predict of the pickle", lambda: self.forward(again)(p.X), certain=True)
            same = other is not None and np.array_equal(
                np.asarray(other), np.asarray(predicted), equal_nan=p.face != "classifier"
            )
            self.check(other is None or same, "a pickle predicts something else")
        for stage, what in {
            "repr": lambda: repr(model), "str": lambda: str(model), "html": lambda: model._repr_html_(),
            "latex": model.latex, "python": model.python, "equations": lambda: model.equations_,
            "clone": lambda: copy.deepcopy(model).get_params(),
            "names": lambda: model.stopped_by_ + repr(model.seconds_),
        }.items():  # fmt: skip
            # The Python text of a template with several outputs is that of one of them.
            self.attempt(stage, what, certain=stage != "python" or "template" not in p.options)
        if p.face != "transformer":
            score = self.attempt("score", lambda: model.score(p.X, p.y, sample_weight=beside.get("sample_weight")))
            self.check(score is None or isinstance(score, float), f"score is {score!r}")
        self.elsewhere(self.forward(model))
        fronts = model.front_ if isinstance(model.front_, list) else [model.front_]
        for front in fronts[:2]:
            self.front(front, weights)
        if not isinstance(model.front_, list) and p.face == "regressor":
            self.uncertain(model)

    def has_functions(self) -> bool:
        """Whether the options hold functions, which no pickle has."""
        return any(
            callable(value) or (isinstance(value, list | tuple) and any(map(callable, value)))
            for value in self.program.options.values()
        )

    def elsewhere(self, forward: Callable[[Any], Any]) -> None:
        """Predict for other rows in other containers."""
        p = self.program
        kind = str(self.rng.choice(PLAIN))
        rows = p.values[: int(self.rng.integers(0, 4))]
        fresh = {
            "few rows": lambda: contained(rows, p.heads, kind),
            "one column more": lambda: np.column_stack([p.values, p.values]),
            "no rows": lambda: p.values[:0], "a number": lambda: 1.0, "text": lambda: [["a"] * p.values.shape[1]],
            "missing": lambda: np.full_like(p.values, np.nan), "far": lambda: np.full((2, p.values.shape[1]), 1e300),
            "the container": lambda: p.X[:1] if isinstance(p.X, np.ndarray | pd.DataFrame) else p.X,
        }  # fmt: skip
        name = str(self.rng.choice(list(fresh)))
        self.attempt(f"predict for {name}", lambda: forward(fresh[name]()))

    def uncertain(self, model: Any) -> None:
        p = self.program
        rows = len(p.values)
        for stage, what in {
            "conf_int": lambda: model.conf_int(), "summary": lambda: str(model.summary()),
            "standard_errors": lambda: model.standard_errors(),
        }.items():  # fmt: skip
            self.attempt(stage, what)
        pair = self.attempt("return_std", lambda: model.predict(p.X, return_std=True))
        if pair is not None:
            self.check(
                len(pair) == 2 and len(pair[1]) == rows and not (np.asarray(pair[1]) < 0).any(),
                "standard deviations below 0",
            )
        ends = self.attempt("predict_interval", lambda: model.predict_interval(p.X))
        if ends is not None:
            self.check(
                np.shape(ends) == (rows, 2) and not (ends[:, 0] > ends[:, 1]).any(), "ends of intervals are swapped"
            )

    def front(self, front: Any, weights: Any) -> None:
        """Check a front and its formulas."""
        p = self.program
        self.attempt("repr of the front", lambda: (repr(front), front._repr_html_(), front.to_frame()), certain=True)
        complexities, losses = [m.complexity for m in front], [m.loss for m in front]
        self.check(len(front) > 0 and front.best in list(front), "the best formula is not on the front")
        if "objective" not in p.options:
            # A feature may be as simple as the best constant, at which a front begins.
            rising = all(a < b for a, b in pairwise(complexities[1:])) and complexities == sorted(complexities)
            self.check(rising, f"complexities {complexities}")
            # The losses of data near the ends of float64's range are at its ends, too.
            ends = (0.0, float(np.finfo(np.float64).max))
            self.check(all(a > b or a in ends for a, b in pairwise(losses)), f"losses do not fall: {losses}")
        self.check(all(math.isfinite(loss) for loss in losses), f"losses {losses}")
        for model in dict.fromkeys([front.best, front[int(self.rng.integers(len(front)))]]):
            self.model(model, weights)

    def model(self, model: Any, weights: Any) -> None:
        """Check a formula: its limits, its forms, and its values by another evaluator."""
        p = self.program
        for stage, what in {
            "repr": lambda: repr(model),
            "str": lambda: str(model),
            "formula": lambda: model.formula(3),
        }.items():
            self.attempt(f"{stage} of a model", what, certain=True)
        form = str(self.rng.choice(FORMS))
        self.attempt(f"export {form}", lambda: model.export(form))
        self.attempt("sympy", model.sympy)
        self.attempt("copy", lambda: pickle.loads(pickle.dumps(model)).expression, certain=True)
        if "template" in p.options:
            return
        size = p.options.get("max_size")
        # The first component may be a linear model of all features in place of them.
        is_linear = p.face == "transformer" and p.options.get("raw_features") is False
        if isinstance(size, int) and not (self.is_extreme() or is_linear):
            self.check(model.tree.size <= size, f"{model.tree.size} nodes, max_size {size}: {model.expression[:200]}")
        if p.kind not in PLAIN or not len(p.values):
            return
        values = np.asarray(p.values, float)
        computed = self.attempt("Model.predict", lambda: model.predict(values), certain=True)
        if computed is None:
            return
        self.check(
            np.isfinite(computed[weights > 0]).all(), f"not finite on the rows of the fit: {model.expression[:200]}"
        )
        expected = self.by_numpy(model, values)
        if expected is None:
            return
        scale = float(np.nanmax(np.abs(computed), initial=1e-300))
        with np.errstate(all="ignore"):
            near = [values * (1 + 4e-16 * self.rng.choice([-1, 1], values.shape)) for _ in range(2)]
        moved = [self.by_numpy(model, other) for other in near]
        with np.errstate(all="ignore"):
            noise = sum(np.abs(other - expected) for other in moved if other is not None)
            allowed = 1e-7 * np.abs(computed) + 1e-9 * scale + 1e3 * np.nan_to_num(noise, nan=np.inf)
            off = ~(np.abs(computed - expected) <= allowed) & ~(np.isnan(noise))
        self.check(
            not off.any(),
            f"the Python text computes {expected[off][:3]}, the model {computed[off][:3]}: {model.expression[:200]}",
        )

    def is_extreme(self) -> bool:
        """Whether numbers are so near the ends of float64's range that formulas need factors."""
        numbers = [np.abs(self.program.values), np.abs(np.asarray(self.program.target, float))]
        sizes = np.concatenate([each[(each > 0) & np.isfinite(each)] for each in numbers], axis=None)
        return bool(len(sizes)) and bool(sizes.max() > 2.0**ORDINARY or sizes.min() < 2.0**-ORDINARY)

    def by_numpy(self, model: Any, values: Any) -> Any:
        """Values of the exported Python text."""
        text = self.attempt("python of a model", model.python, certain=True)
        if text is None:
            return None
        space: dict[str, Any] = {}
        try:
            exec(text, space)
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return np.broadcast_to(np.asarray(space["f"](*values.T), float), len(values))
        except Exception as error:
            self.fail(f"the Python text fails: {error!r}: {text[-300:]}")
            return None

    def evolve_options(self) -> dict[str, Any]:
        """The options in the words of `shine.evolve`."""
        options = dict(self.program.options)
        renamed = {
            "max_time": "seconds",
            "population_size": "population",
            "random_state": "seed",
            "callbacks": "report",
        }
        options = {renamed.get(name, name): value for name, value in options.items()}
        settings = options.pop("settings", None)
        jobs = options.pop("n_jobs", None)
        options["threads"] = None if jobs == -1 else jobs
        if isinstance(options.get("report"), list):
            options["report"] = options["report"][0]
        return options | (settings if isinstance(settings, dict) else {})

    def evolve(self) -> None:
        p = self.program
        try:
            with self.timed(p.seconds):
                result = shine.evolve(p.X, p.y, **p.beside, **self.evolve_options())
        except Exception as error:
            self.error(error, "fit")
            return
        self.result(result)

    def result(self, result: Any) -> None:
        p = self.program
        weights = np.asarray(p.beside.get("sample_weight", np.ones(len(p.values))), float)
        for stage, what in {
            "repr": lambda: repr(result),
            "html": result._repr_html_,
            "rows": lambda: list(result.rows()),
        }.items():
            self.attempt(f"{stage} of the result", what, certain=True)
        predicted = self.attempt(
            "predict", lambda: result.predict(p.X), certain=p.face == "evolve" and self.knows_all_groups()
        )
        if predicted is not None:
            self.check(
                np.isfinite(predicted[weights > 0]).all(),
                f"not finite on the rows of the fit: {result.best.expression[:200]}",
            )
        self.attempt("conf_int", result.conf_int)
        self.attempt("summary", lambda: str(result.summary()))
        self.attempt("predict_interval", lambda: result.predict_interval(p.X))
        self.elsewhere(result.predict)
        self.front(result.front, weights)

    def table(self, ending: str) -> Path:
        """The data in a file."""
        p = self.program
        frame = pd.DataFrame(p.values, columns=p.heads)
        frame["y"] = np.asarray(p.target, float)
        path = self.folder / f"data.{ending}"
        if ending == "csv":
            frame.to_csv(path, index=False, sep=str(self.rng.choice([",", ";", "\t"])))
        elif ending == "parquet":
            frame.to_parquet(path)
        elif ending == "feather":
            frame.to_feather(path)
        else:
            buffer = io.BytesIO()
            np.save(buffer, frame.to_numpy())
            path.write_bytes(buffer.getvalue())
        return path

    def file(self) -> None:
        p = self.program
        path = self.table(str(self.rng.choice(["csv", "parquet", "feather"])))
        options = {name: value for name, value in self.evolve_options().items() if name != "objective"}
        missing, stream = str(self.rng.choice(["error", "drop", "mean"])), bool(self.rng.random() < 0.5)
        try:
            with self.timed(p.seconds):
                source = (
                    path
                    if self.rng.random() < 0.4
                    else shine.data.open_dataset(path, missing=missing, stream=stream or None)
                )
                result = shine.evolve(source, "y", **options)
        except Exception as error:
            self.error(error, "fit")
            return
        p.kind, p.beside = "file", {}
        for stage, what in {"repr": lambda: repr(result), "html": result._repr_html_}.items():
            self.attempt(f"{stage} of the result", what, certain=True)
        self.front(result.front, np.ones(len(p.values)))
        count = self.attempt("predict_file", lambda: result.predict_file(path, self.folder / "out.csv"))
        self.check(count is None or count == len(p.values), f"predict_file wrote {count} rows of {len(p.values)}")

    def cli(self) -> None:
        import yaml
        from click.testing import CliRunner

        from shine.faces.cli.commands import shine as command

        p = self.program
        ending = str(self.rng.choice(["csv", "parquet", "feather"]))
        options = self.evolve_options()
        fitness = {
            name: options[name]
            for name in ("loss", "noise", "validation", "linear_scaling", "dtype")
            if name in options
        }
        stop = {name: options[name] for name in ("generations", "seconds", "stagnation") if name in options}
        top = {
            name: options[name]
            for name in ("primitives", "guesses", "constraints", "seed", "template")
            if name in options
        }
        rest = {name: value for name, value in options.items()
                if name not in {*fitness, *stop, *top, "threads", "report", "stop_loss", "model_selection",
                                "validation_fraction", "objective", "evidence", "tier", "outliers"}}  # fmt: skip
        config = {"data": {"path": self.table(ending).name, "target": "y"}, "fitness": fitness | {"threads": 1},
                  "stop": stop,                  "evolution": rest, **top}  # fmt: skip
        if self.rng.random() < 0.3:
            config["data"]["missing"] = str(self.rng.choice(["drop", "mean"]))
        plain = yaml.safe_dump(_plain(config), allow_unicode=True)
        (self.folder / "c.yaml").write_text(plain, encoding="utf-8")
        before = Path.cwd()
        os.chdir(self.folder)

        def shine_(*words: str) -> Any:
            done = CliRunner().invoke(command, words)
            if done.exception is not None and not isinstance(done.exception, SystemExit):
                frames = traceback.extract_tb(done.exception.__traceback__)[-5:]
                places = " ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in frames)
                self.fail(f"shine {words[0]}: {done.exception!r} [{places}]")
            elif done.exit_code:
                self.check(
                    "error:" in done.output, f"shine {words[0]}: exit code {done.exit_code}, {done.output[-200:]}"
                )
                if found := WORDS_OF_LIBRARIES.search(re.sub(r"'[^']*'", "''", done.output)):
                    self.fail(f"shine {words[0]}: words of a library ({found[0]}): {done.output[-300:]}")
            return done

        try:
            with self.timed(p.seconds, "fit (shine evolve)"):
                done = shine_("evolve", "c.yaml", "--out", "run")
            if done.exit_code:
                self.found.verdict, self.found.text = (
                    "error",
                    f"exit code {done.exit_code}: {done.output[-300:].strip()}",
                )
                return
            for words in (
                ("predict", "run", self.table(ending).name, "--out", "p.csv"),
                ("export", "run", "--to", str(self.rng.choice(FORMS))),
                ("runs",), ("resume", "run", "--set", "stop.generations=9", "--set", "stop.seconds=3"),
                ("report", "run"),
            ):  # fmt: skip
                if self.rng.random() < 0.6:
                    done = shine_(*words)
                    if done.exit_code:
                        self.found.said.append(f"shine {words[0]}: {done.output.strip()[-150:]}")
        finally:
            os.chdir(before)


def _plain(value: Any) -> Any:
    """A value as YAML writes it."""
    if isinstance(value, dict):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, np.generic):
        return value.item()
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
