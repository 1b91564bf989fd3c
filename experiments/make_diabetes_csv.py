"""Write configs/diabetes.csv: scikit-learn's diabetes data, unscaled, with telling names.

Run from the root of the repository: ``python experiments/make_diabetes_csv.py``.
"""

from __future__ import annotations

import csv
from pathlib import Path

from sklearn.datasets import load_diabetes

NAMES = {
    "age": "age",
    "sex": "sex",
    "bmi": "bmi",
    "bp": "blood_pressure",
    "s1": "total_cholesterol",
    "s2": "ldl",
    "s3": "hdl",
    "s4": "cholesterol_ratio",
    "s5": "log_triglycerides",
    "s6": "glucose",
}
"""A telling name for each of scikit-learn's columns."""


def main() -> None:
    """Write the file next to the configuration that reads it."""
    data = load_diabetes(scaled=False)
    path = Path("configs") / "diabetes.csv"
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow([*(NAMES[name] for name in data.feature_names), "progression"])
        for row, target in zip(data.data.tolist(), data.target.tolist(), strict=True):
            writer.writerow([f"{value:.10g}" for value in (*row, target)])


if __name__ == "__main__":
    main()
