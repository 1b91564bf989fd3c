"""Runs of dynamics: kept as they go, resumed, read back."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shine.base.errors import DataError, ExportError
from shine.faces.config import read_any_job
from shine.faces.live.view import Live
from shine.faces.runs import checkpoints
from shine.faces.runs.checkpoints import checkpoint_bytes, read_checkpoint
from shine.runs import chosen_folder, open_run, resume_job, run_job
from shine.search.evolution.observers import Progress
from shine.search.run import Several

CONFIG = """\
data: {path: motion.csv}
dynamics: {time: t, states: [x, v]}
primitives: [add, mul]
evolution: {population: 50, seeding: 0, max_size: 7}
stop: {generations: 2, seconds: null}
"""

TIMES = np.linspace(0, 6, 40)
STATES = np.column_stack([np.cos(TIMES), -np.sin(TIMES)]) + 0.02 * np.random.default_rng(0).standard_normal((40, 2))


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A spring, read with noise."""
    rows = [",".join(map(repr, row)) for row in np.column_stack([TIMES, STATES]).tolist()]
    (tmp_path / "motion.csv").write_text("\n".join(["t,x,v", *rows, ""]))
    (tmp_path / "spring.yaml").write_text(CONFIG)
    return tmp_path / "spring.yaml"


def ran(config: Path, name: str, report: Callable[[Progress], object] | None = None, *overrides: str) -> Path:
    """The folder of a run that keeps each state."""
    folder = chosen_folder(config.parent / name)
    run_job(read_any_job(config, overrides), folder, report, checkpoint_seconds=0)
    return folder


def ending(folder: Path) -> tuple[str, list[dict[str, Any]], str]:
    """What the end of a run leaves, but for times."""
    log = [{key: value for key, value in line.items() if key != "seconds"} for line in open_run(folder).history]
    return (folder / "front.csv").read_text(), log, open_run(folder).result.front.reason


@pytest.mark.slow
@pytest.mark.parametrize("shared", [(), ("parallel={workers: 1}",)])
def test_a_run_killed_in_any_stage_goes_on_to_the_same_end(
    config: Path, monkeypatch: pytest.MonkeyPatch, shared: tuple[str, ...]
) -> None:
    expected, copies, put = ending(ran(config, "whole", None, *shared)), list[Path](), checkpoints.Shelf.put

    def copied(shelf: checkpoints.Shelf, checkpoint: checkpoints.Checkpoint) -> None:
        put(shelf, checkpoint)
        copies.append(config.parent / f"killed after {len(copies)}")
        shutil.copytree(shelf.folder, copies[-1])

    monkeypatch.setattr(checkpoints.Shelf, "put", copied)
    ran(config, "run", None, *shared)
    monkeypatch.undo()
    assert len(copies) > 5
    for copy in copies[::5]:
        resume_job(copy, tell=lambda notice: None)
        assert ending(copy) == expected, copy.name
    # A worker tells how its search has ended.
    assert [line["generation"] for line in expected[1]] == ([0, 1, 2, 5] if shared else list(range(6)))
    assert [line["search"] for line in expected[1]] == 3 * ["x'"] + (1 if shared else 3) * ["v'"]
    assert expected[::2] == ending(ran(config, "alone"))[::2]


@pytest.mark.slow
def test_after_an_interrupt_the_best_systems_are_kept_and_the_run_goes_on(config: Path) -> None:
    def interrupt(progress: Progress) -> None:
        if progress.search == "v'":
            raise KeyboardInterrupt

    folder = ran(config, "run", interrupt)
    part = open_run(folder).result
    assert part.stopped_by == "interrupted"
    assert np.isfinite(part.chosen.simulate([1.0, 0.0], TIMES)).all()
    resume_job(folder)
    assert ending(folder) == ending(ran(config, "whole"))


@pytest.mark.slow
def test_a_checkpoint_of_another_run_or_of_other_data_is_refused(config: Path) -> None:
    folder = ran(config, "run", lambda progress: True)
    path = max((folder / "checkpoints").iterdir())
    saved, content = read_checkpoint(path), path.read_bytes()
    header = json.loads(json.dumps(saved.header))
    header["searches"]["x'"]["state"]["features"] = ["x", "w"]
    for damaged in (header, {**saved.header, "fits": ["none"]}, {**saved.header, "searches": [1]}):
        path.write_bytes(checkpoint_bytes(checkpoints.Checkpoint(damaged, saved.arrays)))
        with pytest.raises(ExportError, match="is not a state of this run"):
            resume_job(folder, tell=lambda notice: None)
    path.write_bytes(content)
    data = config.parent / "motion.csv"
    data.write_text(data.read_text().replace("1.0", "1.5", 1))
    with pytest.raises(DataError, match="the data have changed"):
        resume_job(folder)


@pytest.mark.slow
def test_the_live_page_has_the_search_of_each_rate(config: Path) -> None:
    titles = list[str]()
    with Live("spring") as page:
        visitor = page.watch()

        def look(progress: Progress) -> None:
            titles.append(str(page._picture().parts["top"]))

        job = read_any_job(config)
        run_job(job, chosen_folder(config.parent / "run"), Several((look, page)), visitor=visitor)
        found = page._picture().parts["searched"]
    assert "<h1>spring: v'</h1>" in titles[-1]
    assert "x'" in found
    assert "v'" in found
