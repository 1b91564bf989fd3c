"""Do tensor frontends compute what the libraries compute? `python experiments/tensor_fuzz.py --python PATH`.

Random graphs, made and run by TensorFlow, ONNX Runtime or torch in a process of its own (`--python` names a Python that
has it), are read by Shine and run by the reference interpreter, or by native code (`--compiled`). A result agrees if
each element differs by at most `BOUNDS` times one plus the largest magnitude of the result: sums are in another order.
Results of other types, shapes or NaN count as wrong. Printed are the numbers of graphs that agree, differ and are
refused, the largest difference, and every graph that is not read or differs. `--gradients` compares gradients with
those of torch's autograd, too: ties, where conventions differ, are among what differs.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

EXACT = 1e-300
"""For integers and truth: any difference is more."""

BOUNDS = {"float32": 2e-6, "float64": 1e-14}
"""Largest difference by element type, relative to one plus the largest magnitude."""

LOOSER = 100
"""Gradients have more steps than what they are of, and may cancel."""


def difference(module: Any, arrays: dict[str, Any], compiled: bool) -> float:
    """The largest difference of a module's results, as a multiple of the bound; inf if a type or shape differs."""
    main = module.function("main")
    # Names of torch's tensors are not those of its program: they are numbered.
    numbered = "in/0" in arrays
    given, wanted = (
        [f"{word}/{i if numbered else module.labels[value.name]}" for i, value in enumerate(values)]
        for word, values in (("in", main.parameters), ("out", main.results))
    )
    values = results(module, "main", [arrays[name] for name in given], compiled)
    return largest(values, [arrays[name] for name in wanted])


def gradient_difference(module: Any, arrays: dict[str, Any], compiled: bool) -> float:
    """The largest difference of the gradients by all arguments, as a multiple of a bound `LOOSER` times as large."""
    from shine.tensor import gradient

    given, seeds, wanted = (
        [arrays[f"{word}/{i}"] for i in range(sum(name.startswith(f"{word}/") for name in arrays))]
        for word in ("in", "seed", "grad")
    )
    complete = gradient(module, "main", range(len(given)), seedable=True, name="backward")
    return largest(results(complete, "backward", [*given, *seeds], compiled), wanted) / LOOSER


def largest(values: Any, wanted: list[Any]) -> float:
    """The largest difference of some arrays, as a multiple of the bound; inf if a type or shape differs."""
    worst = 0.0
    for value, expected in zip(values, wanted, strict=True):
        if value.shape != expected.shape or value.dtype != expected.dtype:
            return float("inf")
        if value.size:
            gap = np.abs(value.astype("f8") - expected).max() / (1 + np.abs(expected).max())
            worst = max(
                worst, float(gap) / BOUNDS.get(str(expected.dtype), EXACT) if np.isfinite(gap) else float("inf")
            )
    return worst


def results(module: Any, function: str, arguments: list[Any], compiled: bool) -> Any:
    """What the reference interpreter computes, or native code after all passes."""
    if compiled:
        from shine.tensor import load

        found = load(module, function)(*arguments)
        return found if isinstance(found, tuple) else (found,)
    from shine.tensor.form.interpreter import interpret

    return interpret(module, function, arguments)


def read_graphdef(path: Path, arrays: dict[str, Any]) -> Any:
    """A module from a GraphDef."""
    from shine.tensor.graphdef import load_module

    fetches = [name.removeprefix("out/") for name in arrays if name.startswith("out/")]
    return load_module(path, fetches=fetches)


def read_onnx(path: Path, arrays: dict[str, Any]) -> Any:
    """A module from an ONNX model."""
    from shine.tensor.onnx import load_onnx

    return load_onnx(path)


def read_torch(path: Path, arrays: dict[str, Any]) -> Any:
    """A module from a saved program of torch.export."""
    import torch

    from shine.tensor.torch import from_exported

    return from_exported(torch.export.load(path))


FRONTENDS: dict[str, tuple[str, str, Callable[[Path, dict[str, Any]], Any]]] = {
    "graphdef": ("tensorflow_networks.py", "pb", read_graphdef),
    "onnx": ("onnx_networks.py", "onnx", read_onnx),
    "torch": ("torch_networks.py", "pt2", read_torch),
}
"""For each frontend: the script that makes graphs and values, the ending of its files, and the reader."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--frontend", choices=FRONTENDS, default="graphdef")
    parser.add_argument("--python", default=sys.executable, help="a Python that has the library")
    parser.add_argument("--graphs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--compiled", action="store_true", help="run native code in place of the interpreter")
    parser.add_argument("--gradients", action="store_true", help="compare gradients with torch's, too")
    options = parser.parse_args()
    if options.gradients and options.frontend != "torch":
        parser.error("--gradients needs --frontend torch")
    script, ending, read = FRONTENDS[options.frontend]
    from shine.base.errors import GraphImportError

    worst, counts = 0.0, {"agree": 0, "differ": 0, "refused": 0}
    with tempfile.TemporaryDirectory() as folder:
        command = [options.python, str(Path(__file__).parent / script), folder, str(options.graphs), str(options.seed)]
        made = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
        if made.returncode:
            raise SystemExit(f"{' '.join(command)} failed:\n{made.stderr[-2000:]}")
        for place in range(options.graphs):
            path = Path(folder) / f"{place}.{ending}"
            with np.load(path.with_suffix(".npz")) as file:
                arrays = dict(file)
            try:
                module = read(path, arrays)
                found = difference(module, arrays, options.compiled)
                if options.gradients:
                    found = max(found, gradient_difference(module, arrays, options.compiled))
            except GraphImportError as error:
                counts["refused"] += 1
                print(f"graph {place}: {str(error)[:300]}")
                continue
            counts["agree" if found <= 1 else "differ"] += 1
            worst = max(worst, found)
            if found > 1:
                print(f"graph {place}: differs by {found:.3g} times the bound")
    print(f"{options.frontend}, seed {options.seed}: {counts}; largest difference {worst:.3f} of the bound")
    if counts["agree"] < options.graphs:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
