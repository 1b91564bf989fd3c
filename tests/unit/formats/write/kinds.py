"""A model of each kind, the user's own table, and the model's predictions for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import shine
from shine.data import open_dataset
from shine.data.applying import new_rows
from shine.data.datasets.preparation import Preparation
from shine.search.models.model import Model

ROWS = 60


@dataclass(frozen=True)
class Case:
    """A model, the columns that its user has, what it predicts for them, and its features as it takes them."""

    model: Model
    table: dict[str, Any]
    wanted: Any
    features: dict[str, Any]
    texts: tuple[str, ...] = ()


def _rng() -> np.random.Generator:
    return np.random.default_rng(3)


def _columns(*names: str) -> dict[str, Any]:
    rng = _rng()
    return {name: rng.uniform(0.5, 3, ROWS) for name in names}


def _found(X: Any, y: Any, guess: Any = None, **settings: Any) -> Any:
    guesses = {} if guess is None else {"guesses": [guess] if isinstance(guess, str | dict) else guess}
    return shine.evolve(X, y, generations=1, population=20, seed=1, **guesses, **settings)


def _of_arrays(made: Any, columns: dict[str, Any], texts: tuple[str, ...] = ()) -> Case:
    """A case of a model that takes a table as it is."""
    import pandas

    frame = pandas.DataFrame(columns)
    predicted = made.predict(frame)
    names = made.tree.parameters
    codes = {text: float(number) for number, text in enumerate(sorted(texts))}
    values = [np.array([codes.get(each, each) for each in column], np.float64) for column in columns.values()]
    return Case(made, columns, predicted, dict(zip(names, values, strict=True)), texts)


def _of_file(columns: dict[str, Any], y: Any, guess: str, own: dict[str, Any], texts: Any = (), **reading: Any) -> Case:
    """A case of a model that was found in a file, with the file's numbers worked out by hand, too."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "data.csv"
        cells = [["" if cell is None else str(cell) for cell in column] for column in [*columns.values(), y]]
        lines = [",".join(row) for row in zip(*cells, strict=True)]
        path.write_text("\n".join([",".join([*columns, "target"]), *lines]), encoding="utf-8")
        result = _found(open_dataset(path, **reading), "target", guess)
        model = _largest(result)
        rows, *_ = new_rows(path, model.preparation or Preparation(()), model.tree.used_parameters)
        for name, values in rows.items():
            np.testing.assert_allclose(values, own[name])
        wanted = model.kernel(*(rows.get(name, np.zeros(ROWS)) for name in model.tree.parameters))
    return Case(model, columns, wanted, {name: own[name] for name in model.tree.parameters}, tuple(texts))


def plain() -> Case:
    columns = _columns("a", "b")
    return _of_arrays(_found(_frame(columns), 2 * columns["a"] * columns["b"] + 1, "2*a*b + 1").best, columns)


def other_headings() -> Case:
    columns = _columns("my area (m²)", "Größe", "面积 '1\"", "order")
    y = sum(columns.values()) * 2
    return _of_arrays(_largest(_found(_frame(columns), y, primitives=["add", "mul"])), columns)


def _largest(result: Any) -> Model:
    return max(result.front, key=lambda each: len(each.tree.used_parameters))


def _frame(columns: dict[str, Any]) -> Any:
    import pandas

    return pandas.DataFrame(columns)


def texts_one_hot() -> Case:
    rng, columns = _rng(), _columns("a")
    sites = [["north", "o'south", 'East "7"'][each] for each in rng.integers(0, 3, ROWS)]
    flags = [["no", "yes"][each] for each in rng.integers(0, 2, ROWS)]
    columns |= {"the site": sites, "flag": flags}
    made = {
        "the_site_is_East_7": np.array([each == 'East "7"' for each in sites], float),
        "the_site_is_north": np.array([each == "north" for each in sites], float),
        "the_site_is_o_south": np.array([each == "o'south" for each in sites], float),
        "flag_is_yes": np.array([each == "yes" for each in flags], float),
        "a": columns["a"],
    }
    y = made["a"] * (1 + made["the_site_is_north"]) + 3 * made["flag_is_yes"]
    quoted = columns | {"the site": sites}
    guess = "a*(1 + the_site_is_north) + 3*flag_is_yes"
    case = _of_file(_csv(quoted), y, guess, made, ("north", "o'south", "no", "yes"), categories="one-hot")
    return Case(case.model, columns, case.wanted, case.features, case.texts)


def _csv(columns: dict[str, Any]) -> dict[str, Any]:
    def cell(value: Any) -> Any:
        return '"' + value.replace('"', '""') + '"' if isinstance(value, str) else value

    return {heading: [cell(each) for each in column] for heading, column in columns.items()}


def texts_ordinal() -> Case:
    rng, columns = _rng(), _columns("a")
    sizes = [["L", "M", "S"][each] for each in rng.integers(0, 3, ROWS)]
    columns["size (text)"] = sizes
    codes = np.array(["LMS".index(each) for each in sizes], float)
    y = columns["a"] * codes + 1
    made = {"a": columns["a"], "size_text": codes}
    return _of_file(columns, y, "a*size_text + 1", made, ("L", "M", "S"), categories="ordinal")


def missing_values() -> Case:
    columns = _columns("a", "b")
    known, rest = columns["a"][1:], columns["a"].tolist()
    rest[0] = None
    y = columns["a"] * columns["b"] * 2
    made = {"a": np.concatenate([[known.mean()], known]), "b": columns["b"]}
    return _of_file(columns | {"a": rest}, y, "2*a*b", made, missing="mean")


def own_marks() -> Case:
    columns = _columns("a", "b")
    marked = np.arange(ROWS) % 9 == 0
    y = columns["a"] * columns["b"] * 2
    made = {"a": np.where(marked, columns["a"][~marked].mean(), columns["a"]), "b": columns["b"]}
    table = columns | {"a": np.where(marked, np.where(np.arange(ROWS) % 2, -999.0, 1e4), columns["a"])}
    return _of_file(table, y, "2*a*b", made, missing="mean", missing_marks=[-999, "1e4", "k.A."])


def missing_texts() -> Case:
    columns = _columns("a")
    sizes: list[Any] = [["L", "M"][each] for each in _rng().integers(0, 2, ROWS)]
    codes = np.array(["LM".index(each) for each in sizes], float)
    y = columns["a"] * codes + 1
    sizes[2] = None
    codes[2] = np.delete(codes, 2).mean()
    made = {"a": columns["a"], "size": codes}
    return _of_file(columns | {"size": sizes}, y, "a*size + 1", made, ("L", "M"), categories="ordinal", missing="mean")


def dates_and_flags() -> Case:
    rng, columns = _rng(), _columns("a")
    days = rng.integers(0, 400, ROWS)
    days[0] = 0
    flags = [["false", "true"][each] for each in rng.integers(0, 2, ROWS)]
    dates = [str(np.datetime64("2023-01-05") + np.timedelta64(int(day), "D")) for day in days]
    made = {"a": columns["a"], "day_days": days.astype(float), "open": np.array([f == "true" for f in flags], float)}
    y = made["a"] + 0.5 * made["day_days"] + 20 * made["open"]
    guess = "a + 0.5*day_days + 20*open"
    case = _of_file(columns | {"day": dates, "open": flags}, y, guess, made)
    table = columns | {"day": [np.datetime64(each).astype("datetime64[us]").item() for each in dates]}
    table["open"] = [flag == "true" for flag in flags]
    return Case(case.model, table, case.wanted, case.features)


def template_with_numbers() -> Case:
    rng, columns = _rng(), _columns("t")
    columns["day"] = rng.choice([1.0, 2.0, 4.0], ROWS)
    y = np.select([columns["day"] == 1, columns["day"] == 2], [2.0, 3.0], 5.0) * columns["t"] + columns["t"] ** 2
    return _of_arrays(_found(_frame(columns), y, template="k[day]*t + f(t)").best, columns)


def _template_with_texts(names: tuple[str, ...], heading: str = "site") -> Case:
    rng, columns = _rng(), _columns("t")
    sites = [names[each] for each in rng.integers(0, len(names), ROWS)]
    y = np.array([2.0 + 1.3 * names.index(each) ** 1.7 for each in sites]) * columns["t"] + columns["t"] ** 2
    columns[heading] = sites
    return _of_arrays(_found(_frame(columns), y, template="k[site]*t + f(t)").best, columns, names)


def template_with_texts() -> Case:
    return _template_with_texts(("A1", "A2", "B"))


def template_with_awkward_texts() -> Case:
    return _template_with_texts(("o'clock", 'a "b"', "größe", "0", "\\n */ %"))


def template_of_two_outputs() -> Case:
    columns = _columns("a", "b")
    y = np.column_stack([columns["a"] * columns["b"], columns["a"] + 2])
    made = _found(_frame(columns), y, template="f(a)*b, f(a) + 2").best
    return _of_arrays(made.outputs[1], columns)


def two_classes() -> Case:
    columns = _columns("a", "b")
    labels = np.where(columns["a"] > columns["b"], "yes", "no")
    fitted = shine.SymbolicClassifier(generations=1, population_size=20, random_state=0).fit(_frame(columns), labels)
    return _of_arrays(fitted.best_, columns)


def three_classes() -> Case:
    columns = _columns("a", "b")
    labels = np.select([columns["a"] > 2, columns["b"] > 2], ["x", "y"], "z")
    fitted = shine.SymbolicClassifier(generations=1, population_size=20, random_state=0).fit(_frame(columns), labels)
    return _of_arrays(fitted.best_[0], columns)


def transformer() -> Case:
    columns = _columns("a", "b")
    fitted = shine.SymbolicTransformer(generations=1, population_size=20, random_state=0)
    fitted.fit(_frame(columns), columns["a"] * columns["b"])
    best = fitted.best_
    return _of_arrays(best[0] if isinstance(best, list) else best, columns)


def counts() -> Case:
    columns = _columns("a", "b")
    y = np.round(np.exp(columns["a"] + 0.3 * columns["b"]))
    return _of_arrays(_found(_frame(columns), y, "a + 0.3*b", loss="poisson").best, columns)


def own_objective() -> Case:
    columns = _columns("a", "b")
    y = columns["a"] + columns["b"]
    made = _found(_frame(columns), y, "a + b", objective=lambda many: abs(many - y).max(axis=1))
    return _of_arrays(made.best, columns)


def own_function() -> Case:
    columns = _columns("a", "b")
    y = np.log(1 + columns["a"] ** 2) * columns["b"]
    made = _found(_frame(columns), y, "bump(a)*b", primitives=["mul", "add", "def bump(x): return log(1 + x*x)"])
    return _of_arrays(made.best, columns)


def single_precision() -> Case:
    columns = _columns("a", "b")
    return _of_arrays(_found(_frame(columns), columns["a"] / columns["b"], "a/b", dtype="float32").best, columns)


def streamed() -> Case:
    columns = _columns("a b", "c")
    y = columns["a b"] * columns["c"] + 2
    import pandas

    with TemporaryDirectory() as folder:
        path = Path(folder) / "data.parquet"
        sites = [["n", "s"][each] for each in _rng().integers(0, 2, ROWS)]
        table = columns | {"site": sites}
        pandas.DataFrame(table | {"target": y + (np.array(sites) == "s")}).to_parquet(path)
        opened = open_dataset(path, categories="one-hot", stream=True)
        result = _found(opened, "target", "a_b*c + 2 + site_is_s")
        model = _largest(result)
        result.predict_file(path, Path(folder) / "out.csv", index=list(result.front).index(model))
        wanted = np.array([float(line) for line in (Path(folder) / "out.csv").read_text().splitlines()[1:]])
    made = {"a_b": columns["a b"], "c": columns["c"], "site_is_s": np.array([each == "s" for each in sites], float)}
    return Case(model, table, wanted, {name: made[name] for name in model.tree.parameters}, ("n", "s"))


KINDS: dict[str, Callable[[], Case]] = {
    each.__name__: cache(each)
    for each in (
        plain, other_headings, texts_one_hot, texts_ordinal, missing_values, own_marks, missing_texts, dates_and_flags,
        template_with_numbers, template_with_texts, template_with_awkward_texts, template_of_two_outputs, two_classes,
        three_classes, transformer, counts, own_objective, own_function, single_precision, streamed,
    )
}  # fmt: skip
