"""Each campaign finds nothing over a few cases: so it still works when somebody needs it for hours."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent

CAMPAIGNS = {
    "agents": ["--calls", "14"],
    "agreement": ["--pairs", "20000", "--rows", "300", "--largest", "200"],
    "awkward_files": ["--seconds", "5", "--tables", "houses", "deposits", "paint", "meeting", "excel"],
    "compile_leak": ["--compiles", "100"],
    "doors": ["--tries", "40"],
    "false_losses": ["--evaluations", "5000", "--generations", "3"],
    "fork_storm": ["--forks", "5"],
    "fuzz_dynamics": ["--fits", "12", "--seconds", "40"],
    "fuzz_fit": ["--cases", "10"],
    "fuzz_graphs": ["--files", "200", "--folder", "fuzz"],
    "fuzz_programs": ["--fits", "12"],
    "kill_and_resume": ["--kills", "5", "--generations", "8", "--kinds", "plain"],
    "poisoned_cache": ["--cases", "40"],
    "run_ptx": ["make", "kernels"],
    "simplify": ["--formulas", "100", "--milliseconds", "1000"],
    "tiny_fits": ["--cases", "25", "--workers", "1"],
    "write_faults": ["--faults", "4"],
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
