"""The folders of runs in a folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from shine.base.errors import ExportError

DEEPEST = 4
"""Most folders between a folder and a run in it: the runs of a sweep are in a folder of their own."""


def run_names(folder: Path) -> list[str]:
    """The paths of the runs in a folder, within it.

    Raises
    ------
    ExportError
        If the folder is missing or cannot be read.
    """
    if not folder.is_dir():
        problem = "is not a folder" if folder.exists() else "no such folder"
        raise ExportError(f"{folder}: {problem}; name the folder that holds the runs")
    try:
        return list(_found(os.fspath(folder), "", 0))
    except OSError as error:
        raise ExportError(f"{folder}: cannot be read: {error.strerror}") from None


def _found(place: str, prefix: str, depth: int) -> Iterator[str]:
    with os.scandir(place) as entries:
        folders = [each for each in entries if not each.name.startswith(".") and _is_folder(each)]
    for each in folders:
        name = prefix + each.name
        if os.path.exists(f"{each.path}/result.json") or os.path.exists(f"{each.path}/config.yaml"):
            yield name
        elif depth < DEEPEST:
            try:
                yield from _found(each.path, f"{name}/", depth + 1)
            except OSError:  # it is not readable, or has just been removed
                continue


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        if not entry.is_dir():
            return False
        # A link to a folder around it would list runs twice.
        return not entry.is_symlink() or not _same_branch(entry.path)
    except OSError:
        return False


def _same_branch(link: str) -> bool:
    """Whether a link leads to something in its own folder, or to a folder around it."""
    target, home = os.path.realpath(link), os.path.realpath(os.path.dirname(link))
    try:
        return os.path.commonpath([target, home]) in (target, home)
    except ValueError:  # on another drive
        return False
