"""The folders of runs in a folder, each with a signature that changes when the run does."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

from shine.errors import ExportError

DEEPEST = 4
"""Most folders between a folder and a run in it: the runs of a sweep are in a folder of their own."""

RECENT = 2.0
"""Seconds in which a file may change without a new time: file systems round times, FAT to two seconds."""


def signatures(folder: Path) -> dict[str, str]:
    """The signature of each run in a folder, by its path there; empty for runs that are being written.

    Only times and sizes of files are read, so that ten thousand runs take some hundredths of a second.

    Raises
    ------
    ExportError
        If the folder is missing or cannot be read.
    """
    if not folder.is_dir():
        problem = "is not a folder" if folder.exists() else "no such folder"
        raise ExportError(f"{folder}: {problem}; name the folder that holds the runs")
    now = time.time_ns() - int(RECENT * 1e9)
    try:
        return dict(_found(os.fspath(folder), "", now, 0))
    except OSError as error:
        raise ExportError(f"{folder}: cannot be read: {error.strerror}") from None


def _found(place: str, prefix: str, recent: int, depth: int) -> Iterator[tuple[str, str]]:
    with os.scandir(place) as entries:
        folders = [each for each in entries if not each.name.startswith(".") and _is_folder(each)]
    for each in folders:
        signature = _signature(each.path, recent)
        name = prefix + each.name
        if signature is not None:
            yield name if name.isascii() else name.encode("utf-8", "backslashreplace").decode(), signature
        elif depth < DEEPEST:
            try:
                yield from _found(each.path, f"{name}/", recent, depth + 1)
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


def _signature(place: str, recent: int) -> str | None:
    """The signature of the run in a folder; None if it holds no run."""
    config, result = _stat(f"{place}/config.yaml"), _stat(f"{place}/result.json")
    if config and result:  # most runs by far
        if config.st_mtime_ns >= recent or result.st_mtime_ns >= recent:
            return ""
        return (
            f"{config.st_mtime_ns} {config.st_size} {config.st_ino} "
            f"{result.st_mtime_ns} {result.st_size} {result.st_ino}"
        )
    if config is None and result is None:
        return None
    known = [config, result, _stat(f"{place}/log.jsonl"), _stat(f"{place}/checkpoints")]
    if any(each and each.st_mtime_ns >= recent for each in known):
        return ""
    return " ".join(f"{each.st_mtime_ns} {each.st_size} {each.st_ino}" if each else "-" for each in known)


def _stat(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)
    except (OSError, ValueError):
        return None


def _same_branch(link: str) -> bool:
    """Whether a link leads to something in its own folder, or to a folder around it."""
    target, home = os.path.realpath(link), os.path.realpath(os.path.dirname(link))
    try:
        return os.path.commonpath([target, home]) in (target, home)
    except ValueError:  # on another drive
        return False
