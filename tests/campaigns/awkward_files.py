"""Do tables as people keep them go from the file to a formula, to SQL that databases run, to LaTeX, to a page?

    python tests/campaigns/awkward_files.py [--tables houses sales ...] [--seconds 10] [--keep FOLDER]

The command line fits each table of `helpers/raw_tables.py`. The exported SQL computes the target from the rows as they
are in the file, in SQLite and DuckDB, and the target in the file says what is right. pdfLaTeX and LuaLaTeX set the
exported LaTeX; Chromium draws the report at three widths, in which the page must not be wider than the window. Programs
that are not installed are named and left out. With `--keep`, pictures and pages stay there to be looked at.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the helpers are, when this is run as a script

from helpers.raw_tables import TABLES, RawTable

WIDTHS = (360, 800, 1400)
"""Widths of windows in CSS pixels: a phone, a tablet, a desk."""

CLOSE = 1e-6
"""Largest error of a value, as a share of the largest target; constants are fitted."""

CHROMIUM = """
    --headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking
    --disable-component-update --disable-sync --hide-scrollbars
""".split()  # noqa: SIM905

OVERFLOW = """<script>addEventListener("load", () => {
  document.title = "overflow " + (document.documentElement.scrollWidth - innerWidth);
});</script></body>"""

DOCUMENT = r"""\documentclass{article}
\usepackage{iftex,amsmath,amssymb}
\ifpdftex\usepackage[T1]{fontenc}\usepackage{textcomp}\else\usepackage{fontspec}\fi
\begin{document}
\[ %s \]
\end{document}
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="+", choices=list(TABLES), default=list(TABLES))
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    programs = ("pdflatex", "lualatex", "chromium")
    missing = [name for name in programs if shutil.which(name) is None]
    missing += [name for name in ("duckdb",) if importlib.util.find_spec(name) is None]
    if missing:
        print(f"left out, as it is not installed: {', '.join(missing)}")
    failed = False
    for name in options.tables:
        with tempfile.TemporaryDirectory() as scratch:
            folder = (options.keep or Path(scratch)) / name
            folder.mkdir(parents=True, exist_ok=True)
            problems = list(problems_with(TABLES[name](), folder.resolve(), options.seconds))
            shown = (folder / "run" / "formula.txt").read_text(encoding="utf-8").strip()
        print(f"{name}: {'; '.join(problems) or 'right'}: {shown}", flush=True)
        failed = failed or bool(problems)
    return int(failed)


def shine(folder: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", "shine", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, encoding="utf-8")
    if done.returncode:
        raise RuntimeError(f"{' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout


def problems_with(table: RawTable, folder: Path, seconds: float) -> Iterator[str]:
    """What went wrong on the way of a table."""
    (folder / table.file).write_bytes(table.content)
    config: dict[str, Any] = {
        "data": {"path": table.file, "target": table.target, **table.data},
        "primitives": list(table.primitives),
        "stop": {"seconds": seconds},
    }
    (folder / "config.yaml").write_text(json.dumps(config), encoding="utf-8")  # JSON is YAML
    shutil.rmtree(folder / "run", ignore_errors=True)
    try:
        formula = shine(folder, "evolve", "config.yaml", "--out", "run", "--quiet")
        (folder / "run" / "formula.txt").write_text(formula, encoding="utf-8")
        for dialect, values in (("sqlite", in_sqlite), ("duckdb", in_duckdb)):
            if dialect == "sqlite" or importlib.util.find_spec(dialect):
                text = shine(folder, "export", "run", "--to", "sql", "--dialect", dialect)
                yield from wrong(dialect, values(table, text), table)
        text = shine(folder, "export", "run", "--to", "latex")
        for program in ("pdflatex", "lualatex"):
            if shutil.which(program) and (text.isascii() or program == "lualatex" or table.latin):
                yield from wrong_latex(program, text, folder)
        shine(folder, "report", "run")
        if shutil.which("chromium"):
            for width in WIDTHS:
                yield from wrong_page(folder, width)
    except RuntimeError as error:
        yield str(error)


def wrong(dialect: str, values: list[float | None], table: RawTable) -> Iterator[str]:
    """A line if the database's values are not the target's."""
    target = table.columns[table.target]
    largest = max(abs(each) for each in target)
    used = [column for head, column in table.columns.items() if head in table.features]
    for row, (value, right) in enumerate(zip(values, target, strict=True)):
        if any(column[row] is None for column in used):
            if value is not None:
                yield f"{dialect} has {value} in row {row}, where a value is missing"
                return
        elif value is None or not math.isclose(value, right, rel_tol=0, abs_tol=CLOSE * largest):
            yield f"{dialect} has {value} in row {row}, where {right} is right"
            return


def in_sqlite(table: RawTable, text: str) -> list[float | None]:
    with closing(sqlite3.connect(":memory:")) as base:
        return _values(base, table, text, lambda column: "")


def in_duckdb(table: RawTable, text: str) -> list[float | None]:
    import duckdb

    def kind(column: list[Any]) -> str:
        known = next(each for each in column if each is not None)
        is_date = isinstance(known, str) and known[:4].isdigit()
        return "DATE" if is_date else "VARCHAR" if isinstance(known, str) else "DOUBLE"

    with closing(duckdb.connect()) as base:
        return _values(base, table, text, kind)


def _values(base: Any, table: RawTable, text: str, kind: Any) -> list[float | None]:
    """The values of an expression over the rows, in a database."""
    # What no formula reads may have names that the database confuses.
    read = {head: table.columns[head] for head in table.features}
    names = ['"' + head.replace('"', '""') + '"' for head in read]
    kinds = [kind(column) for column in read.values()]
    base.execute(f"CREATE TABLE rows ({', '.join(map(' '.join, zip(names, kinds, strict=True)))}, place INTEGER)")
    rows = list(zip(*read.values(), range(len(table.columns[table.target])), strict=True))
    base.executemany(f"INSERT INTO rows VALUES ({', '.join('?' * (len(names) + 1))})", rows)
    return [value for (value,) in base.execute(f"SELECT {text} FROM rows ORDER BY place").fetchall()]


def wrong_latex(program: str, text: str, folder: Path) -> Iterator[str]:
    """A line if LaTeX fails or lacks a letter."""
    (folder / "formula.tex").write_text(DOCUMENT % text.strip(), encoding="utf-8")
    command = [program, "-interaction=nonstopmode", "-halt-on-error", "formula.tex"]
    done = subprocess.run(command, cwd=folder, capture_output=True, check=False)
    if done.returncode:
        errors = [line for line in done.stdout.decode(errors="replace").splitlines() if line.startswith("!")]
        yield f"{program}: {errors[0] if errors else 'failed'}"


def wrong_page(folder: Path, width: int) -> Iterator[str]:
    """A line if the report is wider than a window; leaves a picture of it."""
    page = (folder / "run" / "report.html").read_text(encoding="utf-8")
    page = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page)  # it forbids the script below
    (folder / "page.html").write_text(page.replace("</body>", OVERFLOW), encoding="utf-8")
    with tempfile.TemporaryDirectory() as profile:
        command = ["chromium", *CHROMIUM, f"--user-data-dir={profile}", f"--window-size={width},2400"]
        command += [f"--screenshot={folder / f'report-{width}.png'}", "--dump-dom", (folder / "page.html").as_uri()]
        done = subprocess.run(command, capture_output=True, text=True, check=False, encoding="utf-8")
    if "<title>overflow 0</title>" not in done.stdout:
        found = done.stdout.partition("<title>")[2].partition("</title>")[0]
        yield f"the report is too wide in a window of {width}: {found or 'nothing was drawn'}"


if __name__ == "__main__":
    sys.exit(main())
