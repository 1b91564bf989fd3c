"""``shine sweep`` prints what won."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli.commandline import shine


def test_a_failed_run_is_told_and_the_exit_code_says_so(small: Path):
    result = shine("sweep", small, "--grid", "fitness.loss=mse,binomial", "--json")
    assert result.exit_code == 1 and result.stderr.startswith("error: loss=binomial: --grid fitness.loss: ")
    assert len(json.loads(result.stdout)["standings"]) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--grid", "population"], "--grid population: write --grid evolution.population=200,500"),
        (["--grid", "gp.x=1"], 'unknown key "gp"'),
        (["--targets", "3"], "error: --targets: must be text, is 3"),
        (["--json", "--grid", "data.generate.target=a*b,1/(a - a)"], "target: the formula is NaN or infinite in 20"),
        (["--range", "seed=1..2"], "needs a number of draws"),
        (["--random", "2", "--range", "seed=1"], "write LOW..HIGH"),
        (["--holdout"], "--holdout is for --folds"),
        (["--grid", "seed=1", "--grid", "seed=2"], "--grid seed is given twice"),
    ],
)
def test_wrong_use_is_one_line(small: Path, options: list[str], message: str):
    result = shine("sweep", small, *options)
    assert result.exit_code == 2 and message in result.stderr and len(result.stderr.splitlines()) == 1
