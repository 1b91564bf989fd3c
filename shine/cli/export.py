"""``shine export``: a formula in another language."""

from __future__ import annotations

import base64
import keyword
from pathlib import Path

import click

from shine.cli.output import print_bytes, print_json, print_text, write_file
from shine.cli.sources import tree_of
from shine.export import EXPORTS, export
from shine.export.c import c_files
from shine.lang.tree import Tree


def export_formula(source: str, to: str, index: int | None, out: Path | None, name: str, as_json: bool) -> None:
    """Print or write a formula, or the formula of a run, in another language."""
    if to not in EXPORTS:
        raise click.UsageError(f"--to {to}: no such format; use one of {', '.join(EXPORTS)}")
    if not name.isidentifier() or keyword.iskeyword(name):
        raise click.UsageError(f"--name {name}: is not a valid name of a function")
    tree = tree_of(source, index)
    record = {"expression": str(tree), "parameters": tree.parameters, "to": to, "name": name}
    if out is not None:
        files = _files(tree, to, name, out)
        for path, content in files.items():
            write_file(path, content)
        if as_json:
            print_json({**record, "files": [str(path) for path in files]})
        return
    made = export(tree, to, name)
    if as_json:
        shown = {"text": made} if isinstance(made, str) else {"base64": base64.b64encode(made).decode()}
        print_json({**record, **shown})
    elif isinstance(made, str):
        print_text(made)
    else:
        print_bytes(made, to)


def _files(tree: Tree, to: str, name: str, out: Path) -> dict[Path, bytes]:
    """Contents of the files to write."""
    if to != "c":
        made = export(tree, to, name)
        return {out: made.encode() if isinstance(made, str) else made}
    files: dict[Path, bytes] = {}
    for file, text in c_files(tree, name).items():
        # The source includes the header by its name, so only the source can be renamed.
        path = out / file if out.is_dir() else out if file.endswith(".c") else out.with_name(file)
        if path in files:
            raise click.UsageError(f"--out {out}: is the header's name; name the source, such as f.c")
        files[path] = text.encode()
    return files
