"""Folders of runs, and their files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from shine.base.errors import ExportError, placed, reason
from shine.base.files import write_bytes


def default_folder(config_path: Path, runs: Path = Path("runs")) -> Path:
    """Create ``runs/<stem>``, or ``runs/<stem>-2``, ... if that exists already.

    Raises
    ------
    ExportError
        If the folder cannot be made.
    """
    for number in range(1, 1_000_000):
        folder = runs / (config_path.stem if number == 1 else f"{config_path.stem}-{number}")
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            continue
        except OSError as error:
            raise unwritable(folder, error) from None
        return folder
    raise ExportError(f"{runs}: holds a million runs of {config_path.stem!r}; choose a folder with --out")


def chosen_folder(folder: Path) -> Path:
    """Create a folder that the user named; an existing folder must be empty.

    Raises
    ------
    FileExistsError
        If it is not empty: a run never overwrites another.
    ExportError
        If the folder cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise ExportError(f"{folder}: is a file; choose a new or empty folder") from None
    except (OSError, ValueError) as error:
        raise unwritable(folder, error) from None
    problem = _occupied(folder)
    if problem is not None:
        raise FileExistsError(f"{folder}: {problem}")
    return folder


def check_empty(folder: Path) -> None:
    """Raise an `ExportError` unless an existing folder is empty: a run never overwrites another."""
    problem = _occupied(folder)
    if problem is not None:
        raise ExportError(f"{folder}: {problem}")


def _occupied(folder: Path) -> str | None:
    """The problem of a folder that is not empty; None if it is empty."""
    try:
        occupied = {entry.name for entry in folder.iterdir()}
    except (OSError, ValueError) as error:
        raise unwritable(folder, error) from None
    if "result.json" in occupied:
        return "already holds the result of a run; choose another folder"
    return "is not empty; choose another folder" if occupied else None


def read_file(path: Path) -> bytes:
    """All bytes of a file; an `ExportError` if it is missing, is not a file, or cannot be read."""
    with placed(f"{path}: cannot be read", OSError, ValueError, kind=ExportError, told=reason):
        if path.exists() and not path.is_file():  # reading a named pipe would block
            raise ExportError(f"{path}: is not a file")
        return path.read_bytes()


def write_text(path: Path, text: str) -> None:
    """Write a text file, completely or not at all.

    Raises
    ------
    ExportError
        If it cannot be written.
    """
    content = text.encode("utf-8")
    try:
        write_bytes(path, content)
    except OSError as error:
        raise unwritable(path, error) from None


def record_in(line: bytes) -> dict[str, Any] | None:
    """The object in a line of a file of JSON lines; None if the line is incomplete or damaged."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if line.endswith(b"\n") and isinstance(value, dict) else None


def unwritable(path: Path, error: Exception) -> ExportError:
    """The error for a file or a folder that cannot be written."""
    return ExportError(f"{path}: cannot be written: {reason(error)}")
