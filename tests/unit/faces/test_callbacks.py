"""Searches as runs of MLflow."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shine
from shine.base.errors import ExportError, MissingExtraError
from shine.callbacks import MLflow
from shine.search.problem.settings import SearchSettings

X = np.random.default_rng(0).uniform(1, 2, (30, 2))
QUICK: dict[str, Any] = {"generations": 3, "population": 30, "seeding": 0, "tier": "reference"}


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that MLflow keeps runs in."""
    pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "runs").as_uri())
    return tmp_path / "runs"


@pytest.mark.slow  # MLflow takes seconds to import
def test_a_run_has_parameters_curves_and_the_front(store: Path):
    from mlflow import MlflowClient

    log = MLflow("plants", name="first", tags={"by": "test"})
    result = shine.evolve(X, X[:, 0] * X[:, 1], report=log, **QUICK)
    client = MlflowClient()
    run = client.get_run(log.run_id)
    assert (run.info.status, run.info.run_name, run.data.tags["by"]) == ("FINISHED", "first", "test")
    assert run.data.params["evolution.population"] == "30" and run.data.params["seed"] == "0"
    assert run.data.metrics["final_loss"] == result.best.loss
    assert client.get_metric_history(log.run_id, "loss")
    front = client.download_artifacts(log.run_id, "front.csv")
    assert len(Path(front).read_text().splitlines()) == len(result.front) + 1


@pytest.mark.slow  # MLflow takes seconds to import
def test_a_server_that_goes_away_does_not_end_the_search(store: Path, monkeypatch: pytest.MonkeyPatch):
    log = MLflow()

    def lose(*arguments: object, **more: object) -> None:
        raise ConnectionError("no route")

    log.begin(SearchSettings())
    monkeypatch.setattr(log._client, "log_batch", lose)
    monkeypatch.setattr(log, "begin", lambda settings: None)
    with pytest.warns(RuntimeWarning, match="MLflow: no route; the search goes on without it"):
        assert shine.evolve(X, X[:, 0], report=log, **QUICK).best.expression == "x0"


@pytest.mark.slow  # MLflow takes seconds to import
def test_a_place_that_cannot_keep_runs_is_told_before_the_search(monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "nowhere://x")
    with pytest.raises(ExportError, match=r"MLflow keeps no runs in nowhere://x: .*Set MLFLOW_TRACKING_URI"):
        shine.evolve(X, X[:, 0], report=MLflow(), **QUICK)


def test_without_mlflow_the_extra_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'shine-gp\[mlflow\]'"):
        MLflow()
