"""The R code of docs/r.md runs and prints what the page shows, where R and reticulate are installed.

The variable PYTHON_FOR_R names an interpreter that has Shine and a NumPy that reticulate knows, if this one does not.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[1] / "docs" / "r.md").read_text(encoding="utf-8")
PYTHON = os.environ.get("PYTHON_FOR_R", sys.executable)
BLOCK = re.compile(r"^(<!-- .+ -->\n)?```r\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def rscript(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    (folder / "page.R").write_text(code, encoding="utf-8")
    command = ["Rscript", "--vanilla", "page.R"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.slow
def test_the_page_for_r_does_what_it_says(tmp_path: Path) -> None:
    if shutil.which("Rscript") is None:
        pytest.skip("needs R")
    version = rscript('cat(as.character(packageVersion("reticulate")))', tmp_path)
    if version.returncode:
        pytest.skip("needs reticulate")
    asked = [PYTHON, "-c", "import pandas, shine, numpy; print(numpy.__version__)"]
    numpy = subprocess.run(asked, cwd=tmp_path, capture_output=True, text=True, check=False).stdout
    if not numpy:
        pytest.skip(f"{PYTHON} needs Shine and pandas")
    if int(numpy.split(".")[0]) > 1 and tuple(map(int, version.stdout.split(".")[:2])) < (1, 39):
        pytest.skip(f"reticulate {version.stdout} does not know NumPy 2; name another interpreter in PYTHON_FOR_R")
    blocks = BLOCK.findall(PAGE)
    code = [
        f'reticulate::use_python("{PYTHON}", required = TRUE)\n',
        *(text for mark, text in blocks if not mark),
    ]
    ran = rscript("".join(code), tmp_path)
    assert ran.returncode == 0, ran.stderr
    shown = PAGE.partition("```text\n")[2].partition("```")[0].strip()
    assert shown in ran.stdout
    assert len(blocks) >= 5
