"""Runs of configurations with a template: written, resumed, read back; and what is wrong with a configuration."""

from __future__ import annotations

import numpy as np
import pytest

from shine.base.errors import ConfigError, DataError
from shine.faces.config import read_job
from shine.runs import open_run, resume_job, run_job

CONFIG = """
data: {path: data.csv, target: y}
primitives: [add, mul]
template:
  formula: f(a)*exp(-k[who]*t)*c + g(t)
  unknown:
    f: {arguments: [a], primitives: [add, mul, square], max_size: 9}
    g: [t]
  parameters:
    k: [0, null]
    c: 1
evolution: {population: 60}
stop: {generations: 4, seconds: null}
"""


@pytest.fixture
def config(tmp_path):
    rng = np.random.default_rng(0)
    a, t = rng.uniform(1, 3, (2, 90))
    who = rng.integers(0, 3, 90)
    y = (a**2 + 1) * np.exp(-np.array([0.3, 0.7, 1.1])[who] * t) + 0.1 * rng.normal(size=90)
    rows = [f"{row[0]},{row[1]},{'ABC'[int(row[2])]},{row[3]}" for row in zip(a, t, who, y, strict=True)]
    (tmp_path / "data.csv").write_text("\n".join(["a,t,who,y", *rows]))
    (tmp_path / "config.yaml").write_text(CONFIG)
    return tmp_path / "config.yaml"


def ran(config, folder, overrides=(), **options):
    folder.mkdir()
    return run_job(read_job(config, overrides), folder, tell=lambda notice: None, **options)


@pytest.mark.slow
def test_a_run_is_read_back_with_the_same_predictions(config, tmp_path):
    result = ran(config, tmp_path / "run")
    again = open_run(tmp_path / "run").result
    X = read_job(config).dataset.columns.T
    for before, after in zip(result.front, again.front, strict=True):
        np.testing.assert_allclose(after.predict(X), before.predict(X), rtol=1e-12)
        assert (after.groups, after.complexity, after.formula()) == (before.groups, before.complexity, before.formula())
    assert again.best.groups == ("A", "B", "C")


@pytest.mark.slow
def test_a_run_that_was_interrupted_ends_like_one_that_was_not(config, tmp_path):
    whole = ran(config, tmp_path / "whole")
    ran(config, tmp_path / "part", ["stop.generations=2"], checkpoint_seconds=0)
    resumed = resume_job(tmp_path / "part", overrides=["stop.generations=4"], tell=lambda notice: None)
    assert [model.expression for model in resumed.front] == [model.expression for model in whole.front]


WRONG = {
    "template.formula=f(a": "template: .*not a Python expression",
    "template.formula=f(a)*k[0.5]+g(t)": "whole number",
    "template.formula=f(b)*k[who]+g(t)+c": "needs a column 'b'",
    "template.unknown.f.primitves=[add]": 'template.unknown.f.primitves: unknown key.*did you mean "primitives"',
    "template.parameters.k=[3, 1]": "not below the upper bound",
    "template.parameters.q=1": "no parameter 'q'",
    "template.unknown.f.primitives=[foo]": "unknown primitive 'foo'",
    "guesses=[a*a]": "guesses: with a template",
    "constraints.limits.add=1": "each unknown function has its own",
    "fitness.validation=random": "validation does not go",
}


@pytest.mark.parametrize(("override", "message"), WRONG.items())
def test_what_is_wrong_is_found_before_the_run(config, override, message):
    with pytest.raises(ConfigError, match=message):
        read_job(config, [override])


@pytest.mark.slow
def test_a_group_that_is_not_known_is_an_error_of_predictions(config, tmp_path):
    result = ran(config, tmp_path / "run")
    with pytest.raises(DataError, match="refit_groups"):
        result.best.predict([[1.0, 1.0, 7.0]])
