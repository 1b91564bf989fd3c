"""Rules that choose from a front: what each takes, and the tables that compare them."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from blackbox import DataProblem
from quality.choices import RULES, ChoiceRecord, Entry, choice_scores, choice_table
from quality.engines import Found
from quality.problems import Split

FRONT = [
    Entry("1.0", 1, 100.0, -0.01),
    Entry("x", 2, 10.0, 0.5),
    Entry("2*x + 1", 5, 9.0, 0.8),
    Entry("1/x", 90, 0.1, -math.inf),
]
RECORD = ChoiceRecord("set", "shine", 0, 0.0, 1.0, 0, 1, train_rows=40, constant=-0.02, shipped=2,
                      front=json.dumps(FRONT))  # fmt: skip


def test_rules_take_different_formulas_of_a_front():
    assert {name: rule(RECORD) for name, rule in RULES.items()} == {
        "shipped": 2, "former": 1, "most accurate": 3, "in hindsight": 2, "simpler, in hindsight": 2,
    }  # fmt: skip


def test_a_front_is_scored_with_the_chosen_formula_even_if_it_is_not_on_it():
    X, y = np.array([[1.0], [2.0], [3.0]]), np.array([2.0, 4.0, 7.0])
    problem = DataProblem("set", ("x",), X, y)
    split = Split(X, y, X - 1, y)
    values = choice_scores(RECORD, problem, split, Found("2*x", "1/x", 1.0, ("x", "1/x")), 0.0)
    record = ChoiceRecord("set", "shine", 0, 0.0, 1.0, 0, 1, **values)
    assert [(entry.text, entry.size) for entry in record.entries] == [("x", 1), ("1/x", 3), ("2*x", 3)]
    assert (record.shipped, record.train_rows) == (2, 3)
    assert record.entries[2].loss == pytest.approx(1 / 3)
    assert record.entries[1].r2_test == -math.inf
    assert record.constant == 0.0


def test_the_tables_compare_rules_on_the_same_fronts():
    worse = replace(RECORD, seed=1, shipped=3)
    other = replace(RECORD, problem="other", shipped=1)
    failed = replace(RECORD, seed=2, error="failed")
    text = choice_table([RECORD, worse, other, failed])
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("|")]
    rows = {(cells[0], cells[1]): cells[2:] for cells in lines if len(cells) == 11}
    assert text.startswith("shine, 1 s, 1 thread: 3 splits, 1 failed")
    assert rows["set", "shipped"] == ["2", "-inf", "-0.100", "-inf", "1", "1", "1", "1", "47.5"]
    assert rows["other", "former"] == ["1", "0.500", "0.500", "0.500", "0", "0", "0", "0", "2"]
    assert rows["set", "constant"][:4] == ["2", "-0.020", "-0.020", "-0.020"]
    overall = {cells[0]: cells[1:] for cells in lines if len(cells) == 10}
    assert overall["in hindsight"][2:4] == ["+0.3000", "+0.3000"]
    assert overall["former"] == ["0.5000", "0.5000", "+0.0000", "+0.0000", "0", "0", "0", "0", "2"]
