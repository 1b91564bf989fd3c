"""What happens to the answers when a constant of the search is half or twice as large?

`python experiments/sensitivity.py --out FILE` takes each number that a module of the search has under an upper-case
name, and searches a small collection three times: with the constant as it is, with half of it, and with twice. Searches
end by generations, so that nothing but the constant differs. The numbers are changed as the modules are read, so that
what is computed from them follows. `--table FILE ...` prints a row for each constant: how many chosen formulas differ,
how many of these are better and worse on fresh rows by more than `FAR`, and the seconds of the processor.
"""

from __future__ import annotations

import argparse
import ast
import importlib.abc
import importlib.machinery
import json
import math
import multiprocessing
import os
import sys
import tempfile
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from fresh_rows import random_cases
from quality.empirical_laws import LAWS
from quality.problems import Split, generator, with_noise
from quality.random_trees import random_problem
from quality.sum_laws import sum_law

ROOT = Path(__file__).parents[1] / "shine" / "search"
PARTS = ("description.py", "lives.py", "evolution", "finishing", "problem", "seeding", "models/certainty.py")
"""What takes part in every search for a formula."""

FAR = 0.05
"""Change of log10(1 - R2) on fresh rows that counts as better or worse; below `LEAST`, all are exact."""

LEAST = 1e-12
SETTINGS = {"generations": 30, "population": 200, "seeding_members": 1000, "seconds": None, "threads": 1}


class Constant(NamedTuple):
    """A number under an upper-case name."""

    file: str
    name: str
    text: str

    @property
    def module(self) -> str:
        """As Python calls it."""
        return "shine.search." + self.file.removesuffix(".py").replace("/", ".").removesuffix(".__init__")


def _named(statement: ast.stmt) -> Iterator[tuple[str, ast.expr, Callable[[ast.expr], None]]]:
    """The names that a statement gives to values, with the values, and what puts others in their places."""
    match statement:
        case (
            ast.Assign(targets=[ast.Name(id=name)], value=value) | ast.AnnAssign(target=ast.Name(id=name), value=value)
        ):
            if value is not None:
                yield name, value, partial(setattr, statement, "value")
        case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)):
            for at, (name, value) in enumerate(zip(names, values, strict=True)):
                if isinstance(name, ast.Name):
                    yield name.id, value, partial(values.__setitem__, at)


def constants(parts: Sequence[str]) -> Iterator[Constant]:
    """All positive numbers under upper-case names."""
    for part in parts:
        for path in sorted(ROOT.glob(part) if part.endswith(".py") else (ROOT / part).rglob("*.py")):
            for statement in ast.parse(path.read_text()).body:
                for name, value, _ in _named(statement):
                    if name.lstrip("_").isupper() and _positive(value):
                        yield Constant(str(path.relative_to(ROOT)), name, ast.unparse(value))


def _positive(value: ast.expr) -> bool:
    try:
        number = eval(compile(ast.Expression(value), "", "eval"), {"math": math})
    except Exception:
        return False  # computed from others, which change it
    return isinstance(number, (int, float)) and not isinstance(number, bool) and number > 0


class Changed(importlib.abc.MetaPathFinder):
    """Reads one module with one number changed."""

    def __init__(self, constant: Constant, factor: float) -> None:
        self.constant, self.factor = constant, factor

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
        """Of that module only."""
        if fullname != self.constant.module:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path)
        assert spec is not None and spec.origin is not None
        constant, factor = self.constant, self.factor

        class Loader(importlib.machinery.SourceFileLoader):
            def get_code(self, fullname: str) -> Any:
                tree = ast.parse(Path(self.path).read_text())
                every = (each for statement in tree.body for each in _named(statement))
                ((_, value, put),) = (each for each in every if each[0] == constant.name)
                number = eval(constant.text, {"math": math})
                other = max(round(number * factor), 1) if isinstance(number, int) else number * factor
                put(ast.copy_location(ast.Constant(other), value))
                return compile(ast.fix_missing_locations(tree), self.path, "exec")

        spec.loader = Loader(fullname, spec.origin)
        return spec


def collection(seed: int) -> Iterator[tuple[str, Split, dict[str, Any]]]:
    """Small tables: random formulas, sums and laws with noise and without, and tables with nothing simple in them."""
    for number, noise in enumerate((0.0, 0.03, 0.1, 0.03)):
        problem = random_problem(7 + number, seed + number)
        rng = generator(problem.name, seed)
        yield problem.name, with_noise(problem.split(rng, 50), noise, rng), {}
    for number, noise in ((seed % 7, 0.02), (seed % 7 + 8, 0.1)):
        law = sum_law(number)
        rng = generator(law.name, seed)
        yield law.name, with_noise(law.split(rng, 60), noise, rng), {}
    for law in LAWS[seed % 17 :: 17]:
        yield law.name, law.split(generator(law.name, seed), None), {}
    cases = [case for case in random_cases(1) if len(case.y) < 200]
    for case in cases[seed % 31 :: 31]:
        yield case.name, Split(case.X, case.y, case.fresh_X, case.fresh_y), {"primitives": case.primitives}


def answers(constant: Constant | None, factor: float, seeds: Sequence[int]) -> list[dict[str, Any]]:
    """What is chosen for each table with a constant changed; in a process of its own."""
    warnings.simplefilter("ignore")
    if constant is not None:
        sys.meta_path.insert(0, Changed(constant, factor))
        if "@native" in (ROOT / constant.file).read_text():
            os.environ["SHINE_CACHE_DIR"] = tempfile.mkdtemp()  # kernels kept with the number as it is are of no use
    import shine  # only here: the modules are read with the change

    found = []
    for seed in seeds:
        for name, split, settings in collection(seed):
            began = time.process_time()
            try:
                best = shine.evolve(split.X, split.y, seed=seed, **SETTINGS, **settings).best
                text, nodes = best.expression, best.complexity
                with np.errstate(all="ignore"):
                    errors = split.y_test - best.predict(split.X_test)
                    left = float(errors @ errors / np.sum((split.y_test - split.y_test.mean()) ** 2))
            except Exception as error:
                text, nodes, left = repr(error), 0, math.inf
            seconds = time.process_time() - began
            left = left if math.isfinite(left) else 1e9
            found.append({"table": f"{name} {seed}", "text": text, "nodes": nodes, "left": left, "seconds": seconds})
    return found


def _apart(*asked: Any) -> list[dict[str, Any]]:
    """The answers from a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(answers, asked)


def _log_left(answer: dict[str, Any]) -> float:
    return math.log10(min(max(answer["left"], LEAST), 10.0))


def table(records: Sequence[dict[str, Any]]) -> str:
    """A row for each constant, and what half and twice of it do."""
    plain = {each["table"]: each for record in records if record["name"] is None for each in record["answers"]}
    rows: dict[tuple[str, str, str], dict[float, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for record in records:
        if record["name"] is not None:
            rows[record["file"], record["name"], record["text"]][record["factor"]] += record["answers"]
    head = ("constant", "value", "tables", "half: differ, better, worse", "twice", "seconds: half, twice")
    lines = [_row(head), _row(["---"] * len(head))]
    for (file, name, text), by_factor in rows.items():
        cells, seconds, count = [], [], 0
        for factor in (0.5, 2.0):
            pairs = [(plain[each["table"]], each) for each in by_factor[factor] if each["table"] in plain]
            count = len(pairs)
            gains = [_log_left(a) - _log_left(b) for a, b in pairs if a["text"] != b["text"]]
            cells.append(f"{len(gains)}, {sum(g > FAR for g in gains)}, {sum(g < -FAR for g in gains)}")
            spent = sum(b["seconds"] for _, b in pairs) / max(sum(a["seconds"] for a, _ in pairs), 1e-9)
            seconds.append(f"{spent:.2f}")
        lines.append(_row([f"{file} `{name}`", text, count, *cells, ", ".join(seconds)]))
    return "\n".join(lines)


def _row(cells: Sequence[object]) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--table", type=Path, nargs="+", help="print the table of these files")
    parser.add_argument("--parts", nargs="*", default=PARTS, help="files and folders of shine/search")
    parser.add_argument("--only", nargs="*", default=[], help="names of constants")
    parser.add_argument("--seeds", type=int, nargs="*", default=[1])
    parser.add_argument("--part", default="0/1", help="i/n: every n-th constant from i")
    given = parser.parse_args()
    if given.table:
        print(table([json.loads(line) for path in given.table for line in path.read_text().splitlines()]))
        return
    part, parts = map(int, given.part.split("/"))
    wanted = [each for each in constants(given.parts) if not given.only or each.name in given.only]
    asked: list[tuple[Constant | None, float]] = [(None, 1.0)]
    asked += [(each, factor) for each in wanted[part::parts] for factor in (0.5, 2.0)]
    for constant, factor in asked:
        found = _apart(constant, factor, given.seeds)
        record = {**(constant._asdict() if constant else {"name": None}), "factor": factor, "answers": found}
        with given.out.open("a") as file:
            file.write(json.dumps(record) + "\n")
        print(constant, factor, f"{sum(each['seconds'] for each in found):.1f} s", flush=True)


if __name__ == "__main__":
    main()
