"""Dask's clients, clusters and addresses, and the scripts that batch systems get."""

from __future__ import annotations

import signal
import subprocess
import sys
from importlib.util import find_spec

import pytest
from unit.base.parallel.executors import results

from shine.base.parallel import ParallelSettings, opened
from shine.base.parallel.opening import CLASSES, jobs_of


@pytest.mark.slow
def test_no_scheduler_at_an_address(monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr("shine.base.parallel.opening.SECONDS_TO_CONNECT", 1)
    with (
        pytest.raises(ValueError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:9: "),
        opened("tcp://127.0.0.1:9"),
    ):
        pass


@pytest.mark.slow
def test_clients_clusters_and_addresses_do_tasks():
    distributed = pytest.importorskip("distributed")
    local = distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None)
    with local as cluster, distributed.Client(cluster) as client:
        for source in (client, cluster, cluster.scheduler_address):
            with opened(source) as pool:
                assert results(pool, abs, [-1, 2]) == [1, 2]


@pytest.fixture
def dask_jobqueue():
    """The library, whose import takes Ctrl-C away."""
    interrupt = signal.getsignal(signal.SIGINT)
    yield pytest.importorskip("dask_jobqueue")
    signal.signal(signal.SIGINT, interrupt)


@pytest.mark.slow
@pytest.mark.skipif(find_spec("dask_jobqueue") is None, reason="needs dask-jobqueue")
def test_ctrl_c_stays_what_it_was():
    code = (
        "import contextlib, signal; from shine.base.parallel.opening import jobs_of\n"
        "with contextlib.suppress(ValueError): jobs_of('slurm', {'colour': 'red'})\n"
        "import dask_jobqueue; assert signal.getsignal(signal.SIGINT) is signal.default_int_handler"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["slurm", "pbs", "lsf", "sge", "moab"])
def test_options_reach_the_batch_system(name, dask_jobqueue):
    options = {"queue": "long", "cores": 4, "memory": "8GB", "walltime": "02:00", "interface": "lo"}
    with jobs_of(name, options) as cluster:
        script = cluster.job_script()
    assert "long" in script
    assert "--nthreads 1" in script and "--nworkers 4" in script


def test_every_batch_system_is_known_to_dask_jobqueue(dask_jobqueue):
    assert all(hasattr(dask_jobqueue, name) for name in CLASSES.values())


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_unknown_option_is_rejected(dask_jobqueue):
    with pytest.raises(ValueError, match=r"cluster: slurm refuses its options: .*colour"):
        jobs_of("slurm", {"colour": "red"})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"dask": "tcp://a:1", "workers": 2}, "leave out workers and cluster"),
        ({"cluster": "slurm"}, "cluster: slurm needs workers"),
        ({"options": {"cores": 2}}, "say which: cluster: slurm"),
    ],
)
def test_settings_that_contradict_are_rejected(given, message):
    with pytest.raises(ValueError, match=message):
        ParallelSettings(**given)
