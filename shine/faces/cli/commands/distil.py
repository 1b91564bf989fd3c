"""``shine distil``: sample a network, search for each of its outputs, print how near the formulas are to it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shine.base.errors import FormError, GraphImportError, placed
from shine.faces.cli.commands.evolve import interruption_of, printed_by, run_config
from shine.faces.cli.graphs import GraphOptions, reading_of
from shine.faces.cli.options import (
    FILE,
    SEED,
    json_option,
    parallel_options,
    parallel_overrides,
    precision_option,
    quiet_option,
    set_option,
)
from shine.faces.cli.output import json_text, print_json

if TYPE_CHECKING:
    from shine.base.typing import Floats
    from shine.faces.distillation.lessons import Lesson
    from shine.lang.forms.rounding import Precision

SAMPLES, SEARCH, FIDELITY = "samples.csv", "search.yaml", "fidelity.json"
"""Files beside the runs: what the network gave, the configuration of the searches, and how near the formulas are."""


@click.command("distil")
@click.argument("model", type=FILE)
@click.option("--inputs", metavar="RANGES", help="Where to sample, as x=-2:2,y=-1:1; or columns of --data, as x,y.")
@click.option("--data", type=FILE, metavar="FILE", help="Measured rows: the formula is compared with them, too.")
@click.option("--target", "targets", multiple=True, metavar="NAME", help="Column that an output predicts.")
@click.option("--layer", metavar="NAME", help="A value inside of the network, in place of its outputs.")
@click.option("--output", "outputs", multiple=True, metavar="N|NAME", help="Output to distil; by default all.")
@click.option("--largest", type=click.IntRange(1), metavar="N", help="Distil the N outputs of the largest variance.")
@click.option("--rows", type=click.IntRange(8), metavar="N", help="Rows that the search sees. [512]")
@click.option("--config", type=FILE, metavar="FILE", help="Feeds and fetches of a TensorFlow graph, a tf2xla Config.")
@click.option("--checkpoint", type=FILE, metavar="FILE", help="Checkpoint with the values of a graph's variables.")
@click.option("shapes", "--shape", multiple=True, metavar="NAME=SIZES", help="Shape of a network's input, as x=64,2.")
@click.option("--seed", type=SEED, default=0, metavar="N", help="Seed of the samples and the search. [0]")
@click.option("--out", type=FILE, metavar="DIR", help="New or empty folder; by default runs/<MODEL>[-2, ...].")
@set_option
@parallel_options
@precision_option
@quiet_option
@json_option
@click.pass_context
def distil(
    context: click.Context,
    /,
    model: Path,
    inputs: str | None,
    data: Path | None,
    targets: tuple[str, ...],
    layer: str | None,
    outputs: tuple[str, ...],
    largest: int | None,
    rows: int | None,
    config: Path | None,
    checkpoint: Path | None,
    shapes: tuple[str, ...],
    seed: int,
    out: Path | None,
    overrides: tuple[str, ...],
    workers: int | None,
    dask: str | None,
    slurm: dict[str, str] | None,
    precision: Precision,
    quiet: bool,
    as_json: bool,
) -> int:
    """Search for the formulas that a trained network, MODEL, has learned.

    MODEL is a file of ONNX or TensorFlow, or a tensor program as text. It is compiled and sampled. The folder gets the
    samples, a run for each output, and fidelity.json.

    \b
    Example:
      shine distil model.onnx --inputs x=-2:2,y=-1:1 --set stop.seconds=10
      shine distil model.onnx --data measured.csv --target force
      shine distil edges.onnx --inputs dx=-2:2,dy=-2:2 --layer messages --largest 2
    """
    from shine.faces.distillation.distilling import fidelity_lines, judged
    from shine.faces.distillation.lessons import lesson
    from shine.faces.runs import chosen_folder, default_folder, open_run, write_text

    reading = GraphOptions((), config, checkpoint, None, shapes)
    overrides += tuple(parallel_overrides(workers, dask, slurm))
    printed, interruption = printed_by(quiet, as_json), interruption_of(context)
    where, features = _place(inputs)
    known = None
    if data is not None:
        known = _rows(data, targets, list(where) if where else features)
    elif targets:
        raise click.UsageError("--target names a column of --data; give the file")
    elif not where:
        raise click.UsageError("say where to sample the network: --inputs x=-2:2,y=-1:1, or --data FILE --target NAME")
    with placed("", GraphImportError, FormError, TypeError, ValueError, kind=click.UsageError):
        taught = lesson(
            model,
            where or (known[1] if known else {}),
            layer=layer,
            output=[int(each) if each.isdecimal() else each for each in outputs] or None,
            largest=largest,
            rows=rows,
            features=None if where or not known else known[0],
            seed=seed,
            reading=reading_of(model, reading),
        )
    if known is not None and known[2].shape[1] != len(taught.outputs):
        raise click.UsageError(
            f"{len(taught.outputs)} outputs are distilled, and {known[2].shape[1]} targets are given; choose with "
            "--output"
        )
    try:
        folder = default_folder(model) if out is None else chosen_folder(out)
    except FileExistsError as error:
        raise click.UsageError(f"--out {error}") from None
    _write(folder, taught, seed)
    fidelities: dict[str, Any] = {}
    for place, name in enumerate(taught.outputs):
        if printed == "front":
            click.echo(f"{name}:")
        settings = [*overrides, f"data.target={json.dumps(name)}"]
        told_by_search = "nothing" if printed == "json" else printed
        code = run_config(folder / SEARCH, None, folder / name, settings, told_by_search, precision, interruption)
        if code:
            return code
        result = open_run(folder / name).result
        found = judged(taught, place, result, None if known is None else (known[1], known[2]))
        names = ("to_network", "to_data", "network_to_data")
        fidelities[name] = {
            "formula": result.best.expression,
            "share": taught.shares[place],
            **{key: asdict(each) for key, each in zip(names, found, strict=True) if each is not None},
        }
        if printed == "front":
            click.echo(fidelity_lines(*found, taught.dropped))
    described = {
        "model": str(model.resolve()),
        "folder": str(folder),
        "layer": layer,
        "dropped": taught.dropped,
        "outputs": fidelities,
    }
    write_text(folder / FIDELITY, json_text(described))
    if printed == "json":
        print_json(described)
    return 0


def _place(inputs: str | None) -> tuple[dict[str, tuple[float, float]], list[str] | None]:
    """Ranges by name, or names of columns."""
    if inputs is None:
        return {}, None
    ranges: dict[str, tuple[float, float]] = {}
    names: list[str] = []
    for part in inputs.split(","):
        name, equals, text = (each.strip() for each in part.partition("="))
        if name in names or not name:
            raise click.UsageError(f"--inputs {inputs}: name each input once, as in x=-2:2,y=-1:1")
        names.append(name)
        if equals:
            ends = text.split(":")
            try:
                low, high = (float(end) for end in ends)
            except ValueError:
                raise click.UsageError(f"--inputs {part}: write the range of {name} as {name}=-2:2") from None
            ranges[name] = (low, high)
    if ranges and len(ranges) < len(names):
        raise click.UsageError(f"--inputs {inputs}: give a range for each input, or for none")
    return ranges, names


def _rows(path: Path, targets: Sequence[str], features: Sequence[str] | None) -> tuple[tuple[str, ...], Floats, Floats]:
    """Names, features and targets of a file's rows."""
    import numpy as np

    from shine.data.loading import load
    from shine.data.opening import open_dataset

    if not targets:
        raise click.UsageError("--data needs --target, the column that the network predicts")
    opened = open_dataset(path, stream=False)
    columns = [each for each in opened.source.headings if each not in targets] if features is None else features
    read = [load(opened, target, columns).dataset for target in targets]
    return read[0].features, read[0].columns.T, np.stack([each.target for each in read], axis=1)


def _write(folder: Path, taught: Lesson, seed: int) -> None:
    """Write the samples, and the configuration of the searches."""
    import numpy as np

    from shine.faces.config import Config, dump_config
    from shine.faces.config.models import DataSettings
    from shine.faces.runs import write_text
    from shine.search.evolution.settings import StopSettings
    from shine.search.problem import DEFAULT_PRIMITIVES
    from shine.search.problem.settings import FitnessSettings

    table = np.column_stack([taught.X, taught.values]).tolist()
    lines = [",".join((*taught.features, *taught.outputs)), *(",".join(map(repr, row)) for row in table)]
    write_text(folder / SAMPLES, "\n".join(lines) + "\n")
    config = Config(
        data=DataSettings(path=(folder / SAMPLES).resolve(), target=taught.outputs[0], features=taught.features),
        primitives=DEFAULT_PRIMITIVES,
        fitness=FitnessSettings(noise="absolute", outliers="keep", evidence=taught.evidence),
        stop=StopSettings(generations=None, seconds=60.0),
        seed=seed,
    )
    write_text(folder / SEARCH, dump_config(config))
