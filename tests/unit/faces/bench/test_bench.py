"""The comparison of evaluators: its measurements, wrong losses, and missing packages."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from shine.faces.bench import TIERS, Contender, Settings, benchmark, report_text
from shine.faces.bench import run as bench_run
from shine.faces.bench.contenders import Prepared, Timed, prepare_reference
from shine.faces.bench.peers import PEERS, PLAIN
from shine.faces.cli.commands import shine as main
from shine.lang.population import Population

SMALL = Settings(rows=(7, 20), population=12, max_size=9, repeats=1)
REFERENCE_TIER = TIERS[0]


def shine(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def skewed(factor: float) -> Contender:
    """The reference tier with losses multiplied by a factor."""

    def prepare(population: Population, dtype: str) -> Prepared:
        right = prepare_reference(population, dtype)

        def over(dataset: object, which: object) -> Timed:
            timed = right.over(dataset, which)  # type: ignore[arg-type]
            return Timed(timed.run, lambda losses: losses * factor)

        return Prepared(over)

    return Contender("skewed", "float64", prepare)


@pytest.mark.slow
def test_the_command_prints_and_writes_what_it_measured(tmp_path: Path) -> None:
    file = tmp_path / "bench.json"
    result = shine("bench", "--rows", "5", "130", "--population", "8", "--json", file)
    assert result.exit_code == 0, result.output
    record = json.loads(file.read_text())
    assert set(record) == {
        "machine", "settings", "nodes", "finite", "measurements", "absent",
    }  # fmt: skip
    assert record["settings"]["rows"] == [5, 130]
    assert {"cpu", "cores", "load", "versions"} <= set(record["machine"])
    assert "node-rows/s" in result.stdout
    for measured in record["measurements"]:
        assert set(measured) == {
            "evaluator", "precision", "rows", "compile", "finite", "all", "agreement", "ratio_to_reference",
        }  # fmt: skip
        assert measured["finite"]["node_rows_per_second"] > 0
        assert measured["agreement"]["wrong"] == 0
    measured = {(m["evaluator"], m["precision"]) for m in record["measurements"]}
    assert {("plain Python", "float64"), *((tier.name, tier.dtype) for tier in TIERS)} <= measured


def test_an_unknown_primitive_is_a_usage_error() -> None:
    result = shine("bench", "--primitives", "add,nothing")
    assert result.exit_code == 2
    assert "nothing" in result.stderr


@pytest.mark.parametrize(("factor", "wrong"), [(1 + 1e-12, False), (1 + 1e-6, True), (math.nan, True)])
def test_wrong_losses_are_noticed(factor: float, wrong: bool) -> None:
    report = benchmark(SMALL, [skewed(factor)])
    assert bool(report.wrong) == wrong
    assert ("WRONG" in report_text(report)) == wrong


def test_wrong_losses_fail_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_run.benchmark, "__defaults__", ((skewed(1.01),), lambda what: None))
    result = shine("bench", "--rows", "5", "--population", "8")
    assert result.exit_code == 1
    assert "skewed" in result.stderr


def test_an_absent_package_is_reported() -> None:
    absent = replace(REFERENCE_TIER, name="other", package="no-such-package")
    report = benchmark(SMALL, [REFERENCE_TIER, absent])
    assert "other: not installed (pip install no-such-package)" in report_text(report)
    assert {m.evaluator for m in report.measurements} == {"reference"}


def test_an_evaluator_without_a_primitive_is_left_out() -> None:
    report = benchmark(replace(SMALL, primitives=("add", "tanh")), [PLAIN, REFERENCE_TIER])
    assert report.absent[0].reason == "has no tanh"


@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer.name)
def test_peers_compute_the_same_losses(peer: Contender) -> None:
    pytest.importorskip(peer.package or "")
    settings = replace(SMALL, population=60, primitives=("add", "sub", "mul", "div", "sin", "exp"))
    report = benchmark(settings, [peer])
    assert [m.rows for m in report.measurements] == [7, 20]
    assert not report.wrong


def test_a_plot_without_matplotlib_is_refused_before_anything_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shine.faces.cli.commands.bench.find_spec", lambda name: None)
    result = shine("bench", "--plot", "plot.png")
    assert result.exit_code == 1
    assert "pip install 'shine-gp[plot]'" in result.stderr


def test_a_plot_is_drawn() -> None:
    pytest.importorskip("matplotlib")
    from shine.faces.bench.table import plot

    drawn = plot(benchmark(SMALL, [REFERENCE_TIER]), ".png")
    assert drawn.startswith(b"\x89PNG")
