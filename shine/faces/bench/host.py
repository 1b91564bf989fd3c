"""The host that a measurement was made on, without its name and its user's."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from shine.base.distribution import DISTRIBUTION
from shine.compiler.threads import processors

PACKAGES = (DISTRIBUTION, "numpy", "llvmlite", "deap", "gplearn", "pyoperon")


def description() -> dict[str, object]:
    """CPU, cores, load, system and versions."""
    return {
        "cpu": cpu_name(),
        "cores": processors(),
        "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": {package: found for package in PACKAGES if (found := installed(package))},
    }


def installed(package: str) -> str | None:
    """Version of a package; None if it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def cpu_name() -> str:
    """The processor's name as the system gives it, with its widest vector instructions."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor() or platform.machine()
    lines = [line.partition(":") for line in text.split("\n\n")[0].splitlines()]
    fields = {name.strip(): value.strip() for name, _, value in lines}
    name = fields.get("model name") or platform.machine()
    if name == "AMD EPYC":  # the name on some clouds
        name += f" (family {fields.get('cpu family')}, model {fields.get('model')})"
    flags = fields.get("flags", "").split()
    vectors = "AVX-512" if "avx512f" in flags else "AVX2" if "avx2" in flags else ""
    return f"{name}, {vectors}" if vectors else name
