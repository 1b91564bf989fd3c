"""Graphs as guesses on the command line: ``shine config check``, ``evolve`` and ``resume``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli.commandline import SMALL, shine

pytest.importorskip("google.protobuf", reason="needs protobuf: pip install 'shine-gp[tensor]'")

GRAPH = """
node { name: "u" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "b" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "out" op: "Mul" input: "u" input: "b" attr { key: "T" value { type: DT_FLOAT } } }
"""
GUESSES = "guesses: [{graph: model.pbtxt, features: {u: a}}]\n"


@pytest.fixture
def seeded(small: Path) -> Path:
    """A configuration with a graph that is the solution."""
    small.write_text(SMALL + GUESSES)
    Path("model.pbtxt").write_text(GRAPH)
    return small


def test_check_reads_the_graph(seeded: Path) -> None:
    assert shine("config", "check", seeded).exit_code == 0
    result = shine("config", "check", seeded, "--set", "guesses=[model.pbtxt]", "--json")
    assert result.exit_code == 2
    (problem,) = json.loads(result.stdout)["problems"]
    assert problem.startswith("--set guesses: guesses.0: the graph's input 'u' is not a feature; the features are")


def test_an_invalid_graph_is_one_line(seeded: Path) -> None:
    Path("model.pbtxt").write_bytes(b"\x00\xff junk")
    result = shine("evolve", seeded)
    assert (result.exit_code, result.stdout) == (2, "")
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: small.yaml:6:11: guesses.0: model.pbtxt: ")


def test_a_run_starts_from_the_graph_and_goes_on_without_it(seeded: Path) -> None:
    begun = shine("evolve", seeded, "--out", "run", "--set", "stop.generations=0", "--quiet")
    assert (begun.exit_code, begun.stdout) == (0, "a*b\n")
    Path("model.pbtxt").unlink()
    assert "guesses:\n- a*b\n" in Path("run/config.yaml").read_text()
    gone_on = shine("resume", "run", "--set", "stop={generations: 1, loss: 0}", "--quiet")
    assert (gone_on.exit_code, gone_on.stdout) == (0, "a*b\n")
