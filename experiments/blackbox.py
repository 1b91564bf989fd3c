"""Real data, where no formula is known: how accurate and how short are the formulas an engine finds?

`python experiments/blackbox.py --budget 10 --seeds 3` learns from three quarters of the rows of each data set, drawn by
the seed, and measures on the rest: the diabetes data that scikit-learn carries, and every file *.csv and *.tsv.gz in
shared/data inside or beside the repository, or in the folder named with `--data`. The target is the column "target",
or the last. Rows are used as they are. The same command again goes on where it was interrupted.
"""

from __future__ import annotations

import csv
import gzip
import keyword
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from quality.command import arguments, main
from quality.formulas import NUMPY
from quality.problems import Split
from quality.summary import accuracy_table

Array = NDArray[np.float64]

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = (ROOT / "shared/data", ROOT.parent / "shared/data")
HELD_OUT = 0.25


@dataclass(frozen=True, eq=False)
class DataProblem:
    """A table of numbers.

    Parameters
    ----------
    name : str
    features : tuple of str
    X : ndarray of shape (n_rows, n_features)
    y : ndarray of shape (n_rows,)
    held_out : float
        Share of the rows that are not learned from.
    """

    name: str
    features: tuple[str, ...]
    X: Array
    y: Array
    held_out: float = HELD_OUT
    text: str = ""
    truth: None = None
    expressible: bool = True

    @property
    def bounds(self) -> tuple[tuple[float, float], ...]:
        """Range of each feature."""
        return tuple(zip(self.X.min(axis=0).tolist(), self.X.max(axis=0).tolist(), strict=True))

    def split(self, rng: np.random.Generator, rows: int | None = None) -> Split:
        """Hold out a share of the rows, and keep at most `rows` of the others."""
        order = rng.permutation(len(self.y))
        test, train = np.split(order, [round(self.held_out * len(order))])
        train = train[:rows]
        return Split(self.X[train], self.y[train], self.X[test], self.y[test])


def usable_names(names: Sequence[str]) -> tuple[str, ...]:
    """The names of columns, or x0, x1, ... if a formula cannot contain one of them."""
    fine = all(name.isidentifier() and not keyword.iskeyword(name) and name not in {*NUMPY, "pi"} for name in names)
    return tuple(names) if fine and len(set(names)) == len(names) else tuple(f"x{i}" for i in range(len(names)))


def read_table(path: Path) -> DataProblem | None:
    """The data set of a file with a header, tabs between columns if it ends in .tsv or .tsv.gz; None if not numeric."""
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    lines = content.decode("utf-8-sig").splitlines()
    header, *cells = csv.reader(lines, delimiter="\t" if ".tsv" in path.suffixes else ",")
    try:
        values = np.array([line for line in cells if line], dtype=np.float64)
    except ValueError:
        return None
    target = header.index("target") if "target" in header else len(header) - 1
    others = [i for i in range(len(header)) if i != target]
    names = usable_names([header[i] for i in others])
    return DataProblem(path.name.partition(".")[0], names, values[:, others], values[:, target])


def diabetes() -> DataProblem:
    """Progression of diabetes by ten measurements of 442 patients (Efron et al. 2004)."""
    from sklearn.datasets import load_diabetes

    data = load_diabetes()
    return DataProblem("diabetes", usable_names(data.feature_names), data.data, data.target.astype(np.float64))


def data_sets(folder: Path | None) -> list[DataProblem]:
    """scikit-learn's data set and the numeric tables of a folder; SystemExit if the folder does not exist."""
    if folder is not None and not folder.is_dir():
        raise SystemExit(f"there is no folder {folder}")
    places = [place for place in (FOLDERS if folder is None else (folder,)) if place.is_dir()][:1]
    paths = sorted(
        path for place in places for pattern in ("*.csv", "*.tsv", "*.tsv.gz") for path in place.glob(pattern)
    )
    return [diabetes(), *(problem for problem in map(read_table, paths) if problem is not None)]


if __name__ == "__main__":
    parser = arguments(__doc__, "blackbox", rows="three quarters of all")
    parser.add_argument("--data", type=Path, help="folder of tables")
    options = parser.parse_args()
    main(options, lambda: data_sets(options.data), accuracy_table)
