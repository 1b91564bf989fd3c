"""``shine info``, and the printed output of ``shine bench --json``."""

from __future__ import annotations

import json
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import pytest
from cli.commandline import shine

import shine as package
from shine.base.errors import DISTRIBUTION


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of compiled code."""
    monkeypatch.setenv("SHINE_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_versions_and_the_host_are_those_that_are_used(cache: Path) -> None:
    facts = json.loads(shine("info", "--json").stdout)
    versions = facts["versions"]
    assert versions["shine"] == package.__version__
    assert {name: versions[name] for name in ("numpy", "llvmlite")} == {
        name: metadata.version(name) for name in ("numpy", "llvmlite")
    }
    assert versions["llvm"].count(".") == 2
    assert facts["threads"] >= 1
    assert facts["cpu"]["triple"].count("-") >= 2
    assert not [feature for feature in facts["cpu"]["features"] if not feature or feature[0] in "+-"]


def test_the_same_is_printed_for_people(cache: Path) -> None:
    text = shine("info").stdout
    facts = json.loads(shine("info", "--json").stdout)
    for said in (*facts["versions"].values(), facts["system"], facts["cpu"]["llvm"], str(cache)):
        assert said in text
    assert max(map(len, text.splitlines())) < 120 + len(str(cache))


def test_the_cache_is_counted_and_cleared_and_nothing_else_goes(cache: Path) -> None:
    assert json.loads(shine("info", "--json").stdout)["cache"] == {"folder": str(cache), "entries": 0, "bytes": 0}
    cache.mkdir()
    for name in ("0" * 64, "f" * 64, ".writing-x"):
        (cache / name).write_bytes(b"12345")
    (cache / "notes.txt").write_text("mine")
    assert json.loads(shine("info", "--json").stdout)["cache"] == {"folder": str(cache), "entries": 3, "bytes": 15}
    cleared = json.loads(shine("info", "--clear-cache", "--json").stdout)["cache"]
    assert cleared == {"folder": str(cache), "entries": 0, "bytes": 0, "removed": 3}
    assert [path.name for path in cache.iterdir()] == ["notes.txt"]
    assert "3 entries" not in shine("info", "--clear-cache").stdout


def test_extras_are_those_of_the_metadata_with_what_is_installed(cache: Path) -> None:
    extras = json.loads(shine("info", "--json").stdout)["extras"]
    assert set(extras) == set(metadata.metadata(DISTRIBUTION).get_all("Provides-Extra") or ())
    for packages in extras.values():
        for name, version in packages.items():
            try:
                assert metadata.version(name) == version
            except metadata.PackageNotFoundError:
                assert version is None


def test_bench_prints_json_instead_of_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measured = {"rows": [1000], "rate": 2.5}
    report = SimpleNamespace(as_json=lambda: measured, wrong=())
    monkeypatch.setattr("shine.faces.bench.benchmark", lambda settings, progress: report)
    monkeypatch.setattr("shine.faces.bench.report_text", lambda report: "the table")
    assert json.loads(shine("bench", "--json", "--rows", "5").stdout) == measured
    file = tmp_path / "bench.json"
    assert shine("bench", "--json", file).stdout == "the table\n"
    assert json.loads(file.read_text()) == measured
