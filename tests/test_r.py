"""The R code of docs/r.md runs and prints what the page shows, where R and reticulate are installed."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

PAGE = (Path(__file__).parents[1] / "docs" / "r.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^(<!-- .+ -->\n)?```r\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def rscript(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    (folder / "page.R").write_text(code, encoding="utf-8")
    command = ["Rscript", "--vanilla", "page.R"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.slow
def test_the_page_for_r_does_what_it_says(tmp_path: Path) -> None:
    if shutil.which("Rscript") is None:
        pytest.skip("needs R")
    pytest.importorskip("pandas")
    version = rscript('cat(as.character(packageVersion("reticulate")))', tmp_path)
    if version.returncode:
        pytest.skip("needs reticulate")
    if np.lib.NumpyVersion(np.__version__) >= "2.0.0" and tuple(map(int, version.stdout.split(".")[:2])) < (1, 39):
        pytest.skip(f"reticulate {version.stdout} does not know NumPy 2")
    blocks = BLOCK.findall(PAGE)
    code = [
        f'reticulate::use_python("{sys.executable}", required = TRUE)\n',
        *(text for mark, text in blocks if not mark),
    ]
    ran = rscript("".join(code), tmp_path)
    assert ran.returncode == 0, ran.stderr
    shown = PAGE.partition("```text\n")[2].partition("```")[0].strip()
    assert shown in ran.stdout
    assert len(blocks) >= 5
