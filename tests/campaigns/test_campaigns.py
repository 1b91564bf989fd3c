"""Each campaign finds nothing over a few cases: so it still works when somebody needs it for hours."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent

CAMPAIGNS = {
    "agents": ["--calls", "14"],
    "agreement": ["--pairs", "5000", "--rows", "300", "--largest", "200"],
    "awkward_files": ["--seconds", "5", "--tables", "houses", "meeting", "excel"],
    "false_losses": ["--evaluations", "5000", "--generations", "3"],
    "fuzz_dynamics": ["--fits", "4", "--seconds", "20"],
    "fuzz_graphs": ["--files", "60", "--folder", "fuzz"],
    "fuzz_programs": ["--fits", "6"],
    "run_ptx": ["make", "kernels"],
    "tiny_fits": ["--cases", "4", "--workers", "1"],
}
"""Options for a few cases of each script of this folder."""


def test_every_campaign_is_tried():
    assert {path.stem for path in FOLDER.glob("*.py")} == {*CAMPAIGNS, Path(__file__).stem}


@pytest.mark.slow
@pytest.mark.parametrize("name", CAMPAIGNS)
def test_a_campaign_finds_nothing_in_a_few_cases(name, tmp_path):
    if name == "agents":
        pytest.importorskip("mcp")
    if name == "fuzz_graphs":
        pytest.importorskip("google.protobuf", reason="protobuf is not installed")
    command = [sys.executable, str(FOLDER / f"{name}.py"), *CAMPAIGNS[name]]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=tmp_path, timeout=110)
    assert done.returncode == 0, done.stdout + done.stderr
