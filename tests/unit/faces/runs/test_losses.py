"""Runs under losses of users: the configuration, the folder and a resumed run keep the function."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from shine.base.errors import ConfigError, DataError
from shine.faces.cli.commands import shine as command_line
from shine.faces.config import read_config, read_job
from shine.runs import chosen_folder, open_run, resume_job, run_job

CONFIG = """\
data:
  path: life.csv
  target: hours
  loss_columns: [cut off]
primitives: [add, mul]
evolution: {population: 40}
fitness:
  loss: |
    def one_sided(prediction, target, cut_off):
        distance = prediction - target
        if cut_off > 0 and distance > 0:
            return 0
        return distance*distance
stop: {generations: 4, seconds: null}
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    a, b = rng.uniform(0.5, 3, (2, 60))
    law = 2 * a * b + 1 + 0.1 * rng.normal(size=60)
    rows = zip(a, b, np.minimum(law, 10), (law > 10).astype(int), strict=True)
    lines = ["a,b,hours,cut off", *(",".join(map(str, row)) for row in rows)]
    (tmp_path / "life.csv").write_text("\n".join(lines))
    path = tmp_path / "c.yaml"
    path.write_text(CONFIG)
    return path


def test_a_column_beside_is_no_feature(config: Path) -> None:
    dataset = read_job(config).dataset
    assert dataset.features == ("a", "b") and set(dataset.loss_columns) == {"cut_off"}


@pytest.mark.slow
def test_the_folder_has_the_function(config: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    done = CliRunner().invoke(command_line, ["evolve", str(config), "--out", str(folder)])
    assert done.exit_code == 0, done.output
    assert read_config(folder / "config.yaml").fitness.loss == read_config(config).fitness.loss
    assert "a*b" in open_run(folder).result.best.expression


@pytest.mark.slow
def test_a_changed_column_is_other_data(config: Path, tmp_path: Path) -> None:
    run_job(read_job(config), chosen_folder(tmp_path / "part"), lambda progress: True, checkpoint_seconds=0)
    table = (config.parent / "life.csv").read_text()
    (config.parent / "life.csv").write_text(table.replace(",0\n", ",1\n", 1))
    with pytest.raises(DataError, match="the data have changed"):
        resume_job(tmp_path / "part")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["fitness.loss=hubr(2)"], "--set fitness.loss: unknown loss 'hubr\\(2\\)'; did you mean 'huber'"),
        (["fitness.loss=poisson"], "--set fitness.loss: the loss poisson does not read the column 'cut_off'"),
        (["data.loss_columns=[]"], "fitness.loss: the loss one_sided reads a column 'cut_off' beside the data"),
        (["data.loss_columns=[hours]"], "column 'hours' is used twice"),
        (["fitness.noise=counts"], "fitness.loss: noise='counts' weights squared and absolute errors"),
        (["fitness.loss='def f(u): return u'"], "a loss has an argument prediction; it has u"),
    ],
)
def test_what_does_not_fit_is_told_with_its_place(config: Path, changes: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read_job(config, changes)
