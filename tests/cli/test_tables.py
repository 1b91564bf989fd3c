"""Tables with text, dates and missing values on the command line: from the file to predictions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli.commandline import shine

from shine.runs import open_run

CONFIG = """\
data: {path: flats.csv, target: price, missing: drop, categories: one-hot}
primitives: [add, mul]
evolution: {population: 50}
stop: {generations: 2, seconds: 20}
"""

NOTES = [
    "flats.csv: numbers have a decimal comma, as '50,5'",
    "flats.csv: without 1 of 7 rows, where values are missing: 1 in 'size (m²)'",
    "column 'place' holds 2 texts; 0 or 1 each: place_is_town",
    "column 'sold' holds dates; sold_days counts days since 2023-01-05",
]


@pytest.fixture
def flats(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A configuration and its data, in the current folder."""
    monkeypatch.chdir(tmp_path)
    lines = ["size (m²);place;sold;price"]
    for size, place, days in [(50.5, "town", 0), (81, "rim", 2), (62, "rim", 9), (38, "town", 15), (95, "town", 20)]:
        price = f"{30 * size + 400 * (place == 'town') + 2 * days:.2f}"
        lines.append(f"{size};{place};{5 + days:02}.01.2023;{price}".replace(".", ",").replace(",01,2023", ".01.2023"))
    lines += ["n/a;rim;06.01.2023;3,5", "70,5;rim;06.01.2023;2117"]
    Path("flats.csv").write_text("\n".join(lines), encoding="utf-8")
    Path("flats.yaml").write_text(CONFIG)
    return Path("flats.yaml")


def told(text: str) -> list[str]:
    """The notes, without the folder of the data."""
    notes = [line.removeprefix("note: ") for line in text.splitlines() if line.startswith("note: ")]
    return [note[note.index("flats.csv") :] if "flats.csv" in note else note for note in notes]


def test_check_tells_what_became_of_the_columns(flats: Path) -> None:
    result = shine("config", "check", flats)
    assert told(result.stdout) == NOTES
    assert json.loads(shine("config", "check", flats, "--json").stdout)["features"] == [
        "size_m2", "place_is_town", "sold_days",
    ]  # fmt: skip


@pytest.mark.slow
def test_a_run_tells_and_remembers_and_predictions_follow(flats: Path) -> None:
    result = shine("evolve", flats, "--out", "run", "--json")
    assert told(result.stderr) == NOTES
    record = json.loads(result.stdout)
    assert record == json.loads(Path("run/result.json").read_text())
    assert [column["kind"] for column in record["preparation"]["columns"]] == ["number", "one-hot", "date"]
    Path("new.csv").write_text('sold,place,size (m²)\n2023-01-15,town,"1,000.5"\n2023-01-15,rim,\n', encoding="utf-8")
    result = shine("predict", "run", "new.csv")
    first, second = result.stdout.splitlines()[1:]
    expected = open_run("run").result.best.predict([[1000.5, 1, 10]])[0]
    assert (float(first), second) == (expected, "nan")
    assert result.stderr == "note: new.csv: no prediction for 1 of 2 rows, where values are missing: 1 in 'size (m²)'\n"
    assert json.loads(shine("predict", "run", "new.csv", "--json").stdout)["prediction"] == [expected, None]
    assert shine("resume", "run").exit_code == 0


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        (
            "data.missing=error",
            "data.path: flats.csv:7: column 'size (m²)': the value is missing ('n/a'); ",
        ),
        (
            "data.categories=error",
            "data.path: flats.csv:2: column 'place': 'town' is not a number (2 ",
        ),
        ("data.missing=means", 'data.missing: must be one of error, drop, mean, is "means"; did you mean "mean"?'),
        ("data.categories=onehot", 'data.categories: must be one of error, one-hot, ordinal, ignore, is "onehot"; did'),
        ("data.decimal=point", "data.decimal: must be one of ., ,"),
    ],
)
def test_what_cannot_be_read_is_explained(setting: str, message: str, flats: Path) -> None:
    result = shine("config", "check", flats, "--set", setting)
    assert result.exit_code == 2
    assert message in result.stderr


def test_generated_data_need_no_reading(flats: Path) -> None:
    flats.write_text("data: {generate: {features: {a: {normal: {}}}, target: a}, missing: drop}\n")
    result = shine("config", "check", flats)
    assert "data.missing: belongs to path; generated data are numbers" in result.stderr
