"""``shine export``: a formula in another language."""

from __future__ import annotations

import keyword
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shine.faces.cli.group import FormulaCommand
from shine.faces.cli.options import index_option, json_option, model_of, out_option, precision_option
from shine.faces.cli.output import deliver, print_json, write_file

if TYPE_CHECKING:
    from shine.lang.forms.rounding import Precision


@click.command("export", cls=FormulaCommand)
@click.argument("source", metavar="RUN|FORMULA")
@click.option("--to", required=True, metavar="FORMAT", help="Language of the result.")
@index_option
@out_option
@click.option("--name", default="f", metavar="NAME", help="Name of the function. [f]")
@precision_option
@click.option("--dialect", metavar="NAME", help="Database that SQL is for: standard, sqlite, postgres or duckdb.")
@json_option
def export_command(
    source: str,
    to: str,
    index: int | None,
    out: Path | None,
    name: str,
    precision: Precision,
    dialect: str | None,
    as_json: bool,
) -> None:
    """Write the formula of a run, or a formula given as text, in another language.

    FORMAT is python, pandas, polars, latex, sympy, json, c, torch, jax, onnx, graphdef, excel or sql. With --out, C
    makes a header beside the source. SQL, pandas and Polars find the columns of a run by their headings. A run of
    dynamics is written as a program that integrates it, in python, c, julia, jax, sympy or latex.

    \b
    Example:
      shine export runs/pythagoras --to latex --precision 3
      shine export runs/pythagoras --to sql --dialect sqlite
      shine export "sqrt(a*a + b*b)" --to c --out hypotenuse.c --name hypotenuse
      shine export --to python -- "-a*exp(b)"
    """
    from shine.faces.cli.dynamics import dynamics_run, exported_system
    from shine.formats.write import EXPORTS, export
    from shine.formats.write.c import c_files
    from shine.formats.write.sources import sources_of, with_preparation
    from shine.formats.write.sql import DIALECTS, prepared_notes
    from shine.lang.forms.tree import Tree

    options: dict[str, Any] = {} if dialect is None else {"dialect": dialect}
    if options and to != "sql":
        raise click.UsageError(f"--dialect {dialect}: is for --to sql only")
    if not name.isidentifier() or keyword.iskeyword(name):
        raise click.UsageError(f"--name {name}: is no name of a function; it takes letters, digits and _, such as f")
    system = dynamics_run(Path(source))
    if system is not None:
        exported_system(system, to, name, index, precision, out, as_json)
        return
    if to not in EXPORTS:
        raise click.UsageError(f"--to {to}: no such format; use one of {', '.join(EXPORTS)}")
    if dialect not in (None, *DIALECTS):
        raise click.UsageError(f"--dialect {dialect}: is unknown; use one of {', '.join(DIALECTS)}")
    found, _ = model_of(source, index)
    if to == "sql" and not isinstance(found, Tree):
        sources = sources_of(found.tree.used_parameters, with_preparation(found.headings, found.preparation))
        for note in prepared_notes(sources.values(), dialect or DIALECTS[0]):
            click.echo(f"note: {note}", err=True)
    tree = found if isinstance(found, Tree) else found.tree
    headings: Mapping[str, str] = {} if isinstance(found, Tree) else found.headings
    columns = [headings.get(feature, feature) for feature in tree.parameters]
    write = partial(export, tree) if isinstance(found, Tree) else found.export
    record = {"expression": str(tree), "parameters": tree.parameters, "headings": columns, "to": to, "name": name}
    if to == "c" and out is not None:
        files = _c_files(c_files(found, name, precision=precision), out)
        for path, content in files.items():
            write_file(path, content)
        if as_json:
            print_json({**record, "files": [str(path) for path in files]})
        return
    made = write(to, name, precision=precision, **options)
    deliver(made, out, to, record if as_json else None, "files")


def _c_files(texts: Mapping[str, str], out: Path) -> dict[Path, bytes]:
    """Contents of the files to write for C."""
    files: dict[Path, bytes] = {}
    for file, text in texts.items():
        # The source includes the header by its name, so only the source can be renamed.
        path = out / file if out.is_dir() else out if file.endswith(".c") else out.with_name(file)
        if path in files:
            raise click.UsageError(f"--out {out}: is the header's name; name the source, such as f.c")
        files[path] = text.encode()
    return files
