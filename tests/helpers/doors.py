"""Random input for every door of Shine: formulas, tables, configurations and results of runs.

Each check draws inputs and asserts that each is read, or refused with one clear error of Shine.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from shine.base.errors import ShineError
from shine.data.loading import load
from shine.faces.config import read_job
from shine.lang.parse import parse
from shine.runs import open_run, run_job

TOKENS = [
    "a", "b", "µ", "μ", "ﬁ", "été", "inf", "nan", "pi", "e", "True", "None", "if", "else", "and", "not", "+", "-", "*",
    "/", "//", "%", "**", "(", ")", ",", "<", ">=", "==", "1", "0", "1e999", "1e308", "2.5", "9" * 4301,
    "0x" + "f" * 600, "1_000",
    "1j", "'s'", '"', "sin", "min", "where", "[", "]", "{", "}", ":", "=", ":=", "\n",
    "lambda x: x", "def f(x): return x\n", "def été(a, b):\n    return a*b\n", "import os", "@", "#", "\\", "\0",
    "\ud800",
    "x1፩", "²", "٣", "a" * 300, "a.b", "\ufeff", "\u202e",
]  # fmt: skip
CELLS = [
    "1", "2.5", "-3e4", "", "nan", "inf", "1e999", "9" * 4301, "0x10", "1_000", "１", "µ", "1,5", '"1"', '"a\nb"', '"',
    "\0", "\ufeff", "x" * 140_000, "-", "True",
]  # fmt: skip
HEADINGS = [
    "a",
    "b",
    "y",
    "µ",
    "μ",
    "ﬁ",
    "a b",
    "",
    "1",
    "if",
    "sin",
    "x" * 10_000,
    '"q""r"',
    "\0",
    "__x",
    "inf",
    "nan",
]
VALUES = [
    None, True, -1, 0, 1, 2.5, -1e308, 1e308, 2**63, 10**400, float("nan"), "", "x", "µ", "été", "inf", "nan",
    "a" * 10_000,
    "a+" * 3000 + "a", "(" * 500 + "a" + ")" * 500, "9" * 4301, "def µ(x): return x", "def g(x): return g(x)", "1/0",
    "log(-1)", [], {}, [[]], {"a": 1}, ["a", "a"], ["µ", "μ"], ["inf", "nan"], "import os", "a\n+b",
    {"µ": {"normal": {}}, "μ": {"normal": {}}}, {"normal": {"mean": 1e308, "deviation": 1e308}},
    {"uniform": {"low": -1e308, "high": 1e308}}, {"grid": {"start": 1e308, "step": 1e308, "count": 2**70}},
]  # fmt: skip
CONFIG: dict[str, Any] = {
    "data": {
        "generate": {
            "rows": 8,
            "noise": 0.1,
            "features": {"a": {"uniform": {"low": 1, "high": 2}}, "b": {"normal": {"mean": 0}}, "p": {"permute": "a"}},
            "target": "a*b",
        }
    },
    "primitives": ["add", "mul", "def g(x): return x + 1"],
    "evolution": {"population": 8, "max_size": 5, "seeding": 0, "complexity": {"add": 2}},
    "fitness": {"tier": "reference", "threads": 1},
    "constraints": {"limits": {"add": 2}, "forbidden": ["p"]},
    "stop": {"generations": 0},
    "guesses": ["a + b"],
}


def is_read(read: Callable[[], object]) -> bool:
    """Whether input is read; if it is not, check that the error is Shine's and its lines are short."""
    try:
        read()
    except ShineError as error:
        assert max(map(len, str(error).splitlines())) < 900, str(error)
        return False
    return True


def changed(document: Any, rng: random.Random) -> Any:
    """A copy with another value at a random place."""
    document = copy.deepcopy(document)
    node = document
    while True:
        key = rng.choice(list(node) if isinstance(node, dict) else range(len(node)))
        if isinstance(node[key], dict | list) and node[key] and rng.random() < 0.8:
            node = node[key]
            continue
        if isinstance(node, dict) and rng.random() < 0.2:
            node[rng.choice(["µ", "zz", "x" * 1000, "a b", "inf", "__x"])] = node.pop(key)
        else:
            node[key] = rng.choice(VALUES)
        return document


def check_formulas(rng: random.Random, tries: int, folder: Path) -> None:
    """Random tokens; what is read is printed and read again."""
    read = 0
    for _ in range(20 * tries):
        text = rng.choice(["", " "]).join(rng.choice(TOKENS) for _ in range(rng.randrange(1, 8)))
        if is_read(lambda text=text: parse(text)):
            tree = parse(text)
            again = parse(str(tree), None if tree.assignments else tree.parameters)
            assert again == tree, text
            read += 1
    assert read > tries / 2


def random_table(rng: random.Random) -> str:
    """A delimited table of random headings and cells, usually with equally long rows."""
    columns, delimiter, usual = rng.randrange(1, 5), rng.choice(",;\t"), rng.random() < 0.5
    rows = [[rng.choice(HEADINGS) for _ in range(columns)]]
    for _ in range(rng.randrange(6)):
        width = columns if rng.random() < 0.95 else rng.randrange(6)
        rows.append(["1.5" if usual else rng.choice(CELLS) for _ in range(width)])
    return rng.choice(["\n", "\r\n", "\r"]).join(delimiter.join(row) for row in rows)


def check_tables(rng: random.Random, tries: int, folder: Path) -> None:
    """Random tables, with a random choice of target and features."""
    path = folder / "d.csv"
    for _ in range(2 * tries):
        path.write_bytes(random_table(rng).encode())
        target, features = rng.choice(["y", "a", "µ", "x" * 10_000]), rng.choice([None, None, ["a"], ["µ", "a"], []])
        is_read(lambda target=target, features=features: load(path, target, features))


def check_configurations(rng: random.Random, tries: int, folder: Path) -> None:
    """A good configuration with one change."""
    path = folder / "c.yaml"
    path.write_text(json.dumps(CONFIG))
    assert is_read(lambda: read_job(path))
    for _ in range(tries):
        path.write_text(json.dumps(changed(CONFIG, rng)))
        is_read(lambda: read_job(path))


def check_results(rng: random.Random, tries: int, folder: Path) -> None:
    """The result of a run with one change, and now and then a truncated or foreign file."""
    (folder / "c.yaml").write_text(json.dumps(CONFIG))
    (folder / "run").mkdir()
    run_job(read_job(folder / "c.yaml"), folder / "run")
    path = folder / "run" / "result.json"
    record = json.loads(path.read_text())
    for number in range(tries):
        text = json.dumps(changed(record, rng))
        if number % 20 == 0:
            broken = [text[: rng.randrange(len(text))], "[" * 100_000, '{"seed": ' + "9" * 5000 + "}", "", "null"]
            text = rng.choice(broken)
        path.write_text(text)
        is_read(lambda: open_run(folder / "run").result.rows())


DOORS = {
    "formulas": check_formulas,
    "tables": check_tables,
    "configurations": check_configurations,
    "results": check_results,
}
"""The checks by the input they draw."""
