"""``shine info``: the software and the processor that compute here, and the cache on disk."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click

from shine.base.distribution import DISTRIBUTION
from shine.faces.cli.options import json_option
from shine.faces.cli.output import print_json

_REQUIREMENT = re.compile(r"\s*([A-Za-z0-9._-]+).*;.*\bextra\s*==\s*['\"]([^'\"]+)['\"]")


@click.command("info")
@click.option("--clear-cache", is_flag=True, help="Remove the compiled code; it is compiled again.")
@json_option
def info(clear_cache: bool, as_json: bool) -> None:
    """Print versions, the processor and its features, threads, the cache, and which extras are installed.

    \b
    Example:
      shine info --json
    """
    removed = _cleared() if clear_cache else None
    facts = _facts()
    if removed is not None:
        facts["cache"]["removed"] = removed
    if as_json:
        print_json(facts)
    else:
        _print(facts)


def _facts() -> dict[str, Any]:
    import platform
    from importlib import metadata

    import numpy as np

    import shine
    from shine.compiler.llvm.target import host_cpu, host_triple, llvm_version
    from shine.compiler.threads import processors
    from shine.faces.bench.run import cpu_name

    cpu, features = host_cpu()
    return {
        "versions": {
            "shine": shine.__version__,
            "python": platform.python_version(),
            "numpy": np.__version__,
            "llvmlite": metadata.version("llvmlite"),
            "llvm": llvm_version(),
        },
        "system": f"{platform.system()} {platform.machine()}",
        "cpu": {
            "name": cpu_name(),
            "llvm": cpu,
            "triple": host_triple(),
            "features": sorted(part[1:] for part in features.split(",") if part.startswith("+")),
        },
        "threads": processors(),
        "cache": _cache(),
        "extras": _extras(),
    }


def _entries(folder: Path) -> list[Path]:
    """The cache's own files except its secret; no other file is counted or removed."""
    from shine.base.files import WRITING
    from shine.compiler.llvm.cache import ENTRY

    own = re.compile(rf"{ENTRY.pattern}|{re.escape(WRITING)}.*")
    try:
        return [entry for entry in folder.iterdir() if own.fullmatch(entry.name) and entry.is_file()]
    except OSError:
        return []


def _cache() -> dict[str, Any]:
    """The folder of compiled code, which may not exist yet; None if there is no home folder for it."""
    from shine.compiler.llvm.cache import cache_folder, problem

    try:
        folder = cache_folder()
    except RuntimeError:
        return {"folder": None, "entries": 0, "bytes": 0}
    sizes = []
    for entry in _entries(folder):
        try:
            sizes.append(entry.stat().st_size)
        except FileNotFoundError:  # another process empties it
            continue
    facts: dict[str, Any] = {"folder": str(folder), "entries": len(sizes), "bytes": sum(sizes)}
    # A missing folder is no problem: it is created when it is needed.
    why = problem() if folder.exists() else None
    return facts if why is None else {**facts, "problem": why}


def _cleared() -> int:
    """Remove the entries of the cache; returns their number."""
    from shine.compiler.llvm.cache import cache_folder

    try:
        entries = _entries(cache_folder())
    except RuntimeError:
        return 0
    for entry in entries:
        entry.unlink(missing_ok=True)
    return len(entries)


def _extras() -> dict[str, dict[str, str | None]]:
    """Version of each package that an extra needs, by extra; None for packages that are not installed."""
    from importlib import metadata

    from shine.faces.bench.run import installed

    extras: dict[str, dict[str, str | None]] = {}
    try:
        requirements = metadata.requires(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:  # Shine runs from its source folder
        requirements = []
    for requirement in requirements:
        if match := _REQUIREMENT.match(requirement):
            package, extra = match.groups()
            extras.setdefault(extra, {})[package] = installed(package)
    return dict(sorted(extras.items()))


def _print(facts: dict[str, Any]) -> None:
    cpu, cache = facts["cpu"], facts["cache"]
    lines = [(name, version) for name, version in facts["versions"].items()]
    lines += [
        ("system", facts["system"]),
        ("CPU", cpu["name"]),
        ("compiles for", f"{cpu['triple']}, {cpu['llvm']}"),
        ("features", " ".join(cpu["features"])),
        ("threads", str(facts["threads"])),
        ("cache", f"{cache['folder']}: {cache['entries']} entries, {cache['bytes'] / 1e6:.1f} MB"),
    ]
    if "problem" in cache:
        lines.append(("not used", cache["problem"]))
    if "removed" in cache:
        lines.append(("removed", f"{cache['removed']} entries"))
    for extra, packages in facts["extras"].items():
        listed = ", ".join(f"{package} {version or 'not installed'}" for package, version in packages.items())
        lines.append((f"{DISTRIBUTION}[{extra}]", listed))
    width = max(len(name) for name, _ in lines)
    for name, text in lines:
        click.echo(click.wrap_text(text, 110, f"{name:<{width}}  ", " " * (width + 2)))
