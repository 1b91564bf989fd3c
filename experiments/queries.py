"""Filters of data frames beside other libraries: `python experiments/queries.py --rows 100000000`.

Filters a table of float64 and int64 columns by conditions that select 0.1 %, 10 % and 90 % of its rows, with Shine and
with pandas (with numexpr), numexpr, pyarrow.compute, Polars and DuckDB, each on one thread, in turn. Prints the median
time of the processor that each takes, the ratio of the fastest other library's to Shine's, and the bytes of columns
that Shine reads a second, beside those of a plain read of a column.

Two results are compared: the positions of the selected rows, and a mask. Each library makes what it can: Polars and
pyarrow make masks of bits, numexpr of bytes, and positions follow by each library's own way. DuckDB stores the table in
its own format, in memory; it returns row numbers as an Arrow table, and counts the rows instead of a mask.

Needs `pip install 'shine-gp[pandas,polars]' duckdb numexpr`; 1e8 rows take 9 GiB of memory and half an hour.
"""

# ruff: noqa: E402  # threads are limited before the libraries are imported
from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from statistics import median
from typing import Any

for _name in ("POLARS_MAX_THREADS", "NUMEXPR_MAX_THREADS", "OMP_NUM_THREADS"):
    os.environ[_name] = "1"

import duckdb
import numexpr
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

import shine.arrow
import shine.pandas

SHARES = (0.001, 0.1, 0.9)
"""Shares of the rows that are selected."""

CONDITIONS = ("x < {a}", "(x > {b}) & (x < {c})", "(x > {d}) & (i < {e})", "x*x + y*y < {f}")
"""Columns are uniform between 0 and 1, `i` below a million; `limits` has the numbers."""


def limits(share: float) -> dict[str, float]:
    """Numbers with which each of `CONDITIONS` selects a share of the rows."""
    root = share**0.5
    radius = _radius(share)
    return {
        "a": share, "b": (1 - share) / 2, "c": (1 + share) / 2, "d": 1 - root, "e": int(root * 1_000_000),
        "f": radius * radius,
    }  # fmt: skip


def _radius(share: float) -> float:
    """The radius of a circle around a corner of the unit square that covers a share of it."""
    if share <= np.pi / 4:
        return float(np.sqrt(4 * share / np.pi))
    low, high = 1.0, float(np.sqrt(2))
    for _ in range(60):
        r = (low + high) / 2
        side = np.sqrt(r * r - 1)
        area = side + r * r / 2 * (np.pi / 2 - 2 * np.arctan(side))
        low, high = (r, high) if area < share else (low, r)
    return low


class Tables:
    """The same columns in each library, without copies where a library reads NumPy's arrays.

    Parameters
    ----------
    rows : int
    seed : int
    """

    def __init__(self, rows: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.arrays = {"x": rng.random(rows), "y": rng.random(rows), "i": rng.integers(0, 1_000_000, rows)}
        self.pandas = pd.DataFrame(self.arrays, copy=False)
        self.arrow = pa.table(self.arrays)
        self.polars = pl.from_arrow(self.arrow)
        self.duckdb = duckdb.connect(config={"threads": 1})
        self.duckdb.register("given", self.arrow)
        self.duckdb.execute("CREATE TABLE t AS SELECT x, y, i FROM given")


def calls(tables: Tables, text: str) -> dict[str, dict[str, Callable[[], Any]]]:
    """For each kind of result, what each library runs."""
    sql = text.replace("&", "AND")
    python = _python(text)
    polars_condition = python({name: pl.col(name) for name in tables.arrays})

    def arrow_mask() -> Any:
        return _arrow(text, tables.arrow)

    def polars_mask() -> Any:
        return tables.polars.select(polars_condition.alias("m"))["m"]

    def numexpr_mask() -> Any:
        return numexpr.evaluate(text, local_dict=tables.arrays)

    return {
        "indices": {
            "shine": lambda: tables.pandas.shine.query(text, threads=1),
            "pandas eval": lambda: np.flatnonzero(tables.pandas.eval(text, engine="numexpr").to_numpy()),
            "numexpr": lambda: np.flatnonzero(numexpr_mask()),
            "pyarrow": lambda: pc.indices_nonzero(arrow_mask()),
            "polars": lambda: polars_mask().arg_true(),
            "duckdb": lambda: tables.duckdb.sql(f"SELECT rowid FROM t WHERE {sql}").to_arrow_table(),
        },
        "mask": {
            "shine": lambda: shine.arrow.filter(tables.arrow, text, "mask", threads=1),
            "shine, bytes": lambda: tables.pandas.shine.query(text, "mask", threads=1),
            "pandas eval": lambda: tables.pandas.eval(text, engine="numexpr"),
            "numexpr": numexpr_mask,
            "pyarrow": arrow_mask,
            "polars": polars_mask,
            "duckdb, count": lambda: tables.duckdb.execute(f"SELECT count(*) FROM t WHERE {sql}").fetchone(),
        },
    }


def _python(text: str) -> Callable[[dict[str, Any]], Any]:
    return lambda names: eval(text, {"__builtins__": {}}, names)


_ARROW = {"<": pc.less, ">": pc.greater, "+": pc.add, "*": pc.multiply, "&": pc.and_}


class _Arrow:
    """An Arrow array with operators."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def _by(self, name: str, other: Any) -> _Arrow:
        return _Arrow(_ARROW[name](self.array, other.array if isinstance(other, _Arrow) else other))

    def __lt__(self, other: Any) -> _Arrow:
        return self._by("<", other)

    def __gt__(self, other: Any) -> _Arrow:
        return self._by(">", other)

    def __add__(self, other: Any) -> _Arrow:
        return self._by("+", other)

    def __mul__(self, other: Any) -> _Arrow:
        return self._by("*", other)

    def __and__(self, other: Any) -> _Arrow:
        return self._by("&", other)


def _arrow(text: str, table: pa.Table) -> Any:
    return _python(text)({name: _Arrow(table[name]) for name in table.column_names}).array


BLOCK = 1 << 15
"""Numbers of a block that is copied into the cache to measure the memory's bandwidth."""


def bandwidth(tables: Tables, repeats: int) -> float:
    """Gigabytes a second of a column that are copied, block by block, into one block in the cache."""
    column, block = tables.arrays["x"], np.empty(BLOCK)

    def read() -> None:
        for start in range(0, len(column) - BLOCK + 1, BLOCK):
            np.copyto(block, column[start : start + BLOCK])

    return column.nbytes / measure({"read": read}, repeats)["read"] / 1e9


def check(functions: dict[str, Callable[[], Any]]) -> None:
    """Stop if two libraries select different numbers of rows."""
    found = {name: len(function()) for name, function in functions.items()}
    if len(set(found.values())) > 1:
        raise SystemExit(f"the libraries select different rows: {found}")


def measure(functions: dict[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """Median seconds of the processor of each, all of them in turn."""
    times: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(repeats + 1):  # the first one compiles and is not counted
        for name, function in functions.items():
            start = time.process_time()
            function()
            times[name].append(time.process_time() - start)
    return {name: median(all_[1:]) for name, all_ in times.items()}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    numexpr.set_num_threads(1)
    pa.set_cpu_count(1)
    tables = Tables(options.rows, options.seed)
    print(f"{options.rows:.0e} rows; a column is read with {bandwidth(tables, options.repeats):.1f} GB/s")
    for kind in ("indices", "mask"):
        print(f"\n{kind}, milliseconds")
        for condition in CONDITIONS:
            for share in SHARES:
                text = condition.format(**limits(share))
                functions = calls(tables, text)[kind]
                if kind == "indices":
                    check(functions)
                times = measure(functions, options.repeats)
                own = times["shine"]
                others = {name: seconds for name, seconds in times.items() if not name.startswith("shine")}
                read = sum(8 * options.rows for name in tables.arrays if f"{name} " in text or f"{name}*" in text)
                print(
                    f"{condition:26} {share:5.1%} "
                    + "  ".join(f"{name} {1000 * seconds:.1f}" for name, seconds in times.items())
                    + f"  | best other / shine {min(others.values()) / own:.2f}, {read / own / 1e9:.1f} GB/s",
                    flush=True,
                )


if __name__ == "__main__":
    main()
