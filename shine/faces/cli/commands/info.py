"""``shine info``, ``shine config`` and ``shine mcp``: what is here, what can be configured, and a server for agents."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click

from shine.base.errors import DISTRIBUTION, ConfigError, needing
from shine.faces.cli.options import FILE, json_option, set_option
from shine.faces.cli.output import USAGE, print_json

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


@click.group("config")
def config() -> None:
    """Check configurations, or print their schema."""


@config.command("schema")
@click.option("--json", is_flag=True, expose_value=False, help="The schema is always JSON.")
def schema() -> None:
    """Print the JSON schema of configurations.

    \b
    Example:
      shine config schema > shine.schema.json
    """
    import shine.faces.config

    print_json(shine.faces.config.schema())


@config.command("check")
@click.argument("path", metavar="CONFIG", type=FILE)
@set_option
@json_option
def check(path: Path, overrides: tuple[str, ...], as_json: bool) -> int:
    """Check CONFIG and its data without searching; prints every problem.

    \b
    Example:
      shine config check configs/pythagoras.yaml --set seed=7
    """
    from shine.faces.config import is_dynamics, read_dynamics, read_job

    try:
        if is_dynamics(path, overrides):
            found = read_dynamics(path, overrides).trajectories
            if as_json:
                print_json({"valid": True, "states": found.states})
            else:
                click.echo(f"{path}: valid; {found.size}")
            return 0
        job = read_job(path, overrides)
    except ConfigError as error:
        if not as_json:
            raise
        print_json({"valid": False, "problems": error.problems})
        return USAGE
    features = job.dataset.features
    rows = job.dataset.n_rows if job.dataset.all_rows is None else job.dataset.all_rows.n_rows
    if as_json:
        print_json({"valid": True, "rows": rows, "features": features, "notes": job.notes})
    else:
        listed = ", ".join(features[:10]) + (", ..." if len(features) > 10 else "")
        click.echo(f"{path}: valid; {rows} rows of {listed}")
        for note in job.notes:
            click.echo(f"note: {note}")
    return 0


@click.command("mcp")
@click.option("--folder", type=FILE, default=Path(), metavar="DIR", help="All that agents may read and write. [here]")
@click.option("--seconds", type=click.FloatRange(1), default=600, metavar="N", help="Most seconds of a search. [600]")
@click.option("--call-seconds", type=click.FloatRange(1), default=60, metavar="N", help="Most of other calls. [60]")
@click.option("--memory", type=click.FloatRange(0.5), default=4, metavar="GIB", help="Most memory of a call. [4]")
@click.option("--searches", type=click.IntRange(1), default=1, metavar="N", help="Most searches at once. [1]")
def mcp_command(folder: Path, seconds: float, call_seconds: float, memory: float, searches: int) -> None:
    """Serve an agent by the Model Context Protocol, over standard input and output.

    The agent's program starts it. Files outside DIR, hidden files and links are neither read nor written.

    \b
    Example:
      shine mcp --folder experiments
    """
    from shine.faces.mcp.places import CallError, check_private

    with needing("the server", "the package mcp", "mcp"):
        from shine.faces.mcp.calls import Desk
        from shine.faces.mcp.server import serve
    try:
        check_private(folder)
    except CallError as error:
        raise click.UsageError(f"--folder {error}") from None
    serve(Desk(folder.resolve(), seconds, call_seconds, memory, searches))
