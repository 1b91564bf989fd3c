"""The graphs of TensorFlow's tests of its compiler: as programs in C++ from the command line, and as callables."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from cli.commandline import shine as command
from unit.tensor.native.cpp import results_in_cpp

import shine.tensor

FOLDER = Path(__file__).parents[3] / "fixtures" / "tensor_graphs"
GRAPHS = sorted(path.name.partition(".")[0] for path in FOLDER.glob("*.config.*"))

MOST_BYTES = 100_000
"""Size of the objects of these graphs, weights included; one of them has most operations."""

pytestmark = pytest.mark.slow


def files_of(name: str) -> tuple[Path, dict[str, Path]]:
    """The graph and its options."""
    pytest.importorskip("google.protobuf")
    (graph,) = (path for path in FOLDER.glob(f"{name}.pb*") if ".config" not in path.name)
    (config,) = FOLDER.glob(f"{name}.config.*")
    checkpoint = {"checkpoint": FOLDER / f"{name}.ckpt"} if list(FOLDER.glob(f"{name}.ckpt.index")) else {}
    return graph, {"config": config, **checkpoint}


def values_of(name: str) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Arguments and TensorFlow's results, by label."""
    with np.load(FOLDER / f"{name}.npz") as arrays:
        tables = ({k.partition("/")[2]: arrays[k] for k in arrays if k.startswith(kind)} for kind in ("in/", "out/"))
        return next(tables), next(tables)


@pytest.mark.parametrize("name", GRAPHS)
def test_the_callable_computes_what_tensorflow_does(name: str) -> None:
    graph, options = files_of(name)
    given, expected = values_of(name)
    function = shine.tensor.load(graph, **options)
    found = function(**given)
    for result, value in zip(function.results, found if isinstance(found, tuple) else (found,), strict=True):
        np.testing.assert_allclose(value, expected[result.label], rtol=2e-6, atol=2e-6)


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
@pytest.mark.parametrize("name", GRAPHS)
def test_a_program_in_cpp_computes_what_tensorflow_does(name: str, tmp_path: Path) -> None:
    graph, options = files_of(name)
    given, expected = values_of(name)
    arguments = [word for option, path in options.items() for word in (f"--{option}", path)]
    done = command("compile", graph, *arguments, "--cpp-class", "a::Net", "--out", tmp_path)
    assert (done.exit_code, done.stderr) == (0, "")
    assert (tmp_path / f"{name}.o").stat().st_size < MOST_BYTES
    results = list(expected.values())
    found = results_in_cpp(tmp_path, name, list(given.values()), results)
    for one, other in zip(found, results, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-6, atol=2e-6)
