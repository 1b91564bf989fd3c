"""From files and recipes to data sets, and the errors of invalid ones."""

from __future__ import annotations

import gzip
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shine.base.errors import DataError, MissingExtraError
from shine.data.datasets.dataset import Dataset
from shine.data.datasets.recipe import Feature, Grid, Integers, LogUniform, Normal, Uniform
from shine.data.files import source
from shine.data.loading import Recipe, Roles, generate, load

TABLE = [[1.0, 2.0, 3.0], [4.0, 5.5, -6e-3]]


def write(folder: Path, name: str, text: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("d.CSV", "a,b,y\n1,2,3\n4,5.5,-6e-3"),
        ("d.csv", "\ufeffa,b,y\r\n1,2,3\r\n4,5.5,-6e-3\r\n"),
        ("d.tsv", "a\tb\ty\n1\t2\t3\n4\t5.5\t-6e-3\n"),
        ("d.tsv.gz", gzip.compress(b"a\tb\ty\n1\t2\t3\n4\t5.5\t-6e-3\n", mtime=0)),
    ],
)
def test_delimited_text_is_read(name: str, text: str | bytes, tmp_path: Path) -> None:
    dataset = load(write(tmp_path, name, text), "y").dataset
    assert dataset.features == ("a", "b")
    np.testing.assert_array_equal(np.vstack([dataset.columns, dataset.target]).T, TABLE)


def test_chosen_columns_come_in_the_chosen_order_and_the_others_may_hold_anything(tmp_path: Path) -> None:
    path = write(tmp_path, "d.csv", "id,a,y,w,b\nrow one,1,3,1,2\n,4,6,0.5,5\n")
    dataset = load(path, "y", ["b", "a"], Roles("w")).dataset
    assert dataset.features == ("b", "a")
    np.testing.assert_array_equal(dataset.columns, [[2.0, 5.0], [1.0, 4.0]])
    np.testing.assert_array_equal(dataset.weights, [1.0, 0.5])


def test_headings_become_identifiers_that_differ(tmp_path: Path) -> None:
    path = write(tmp_path, "d.csv", 'blood pressure,blood-pressure,"x, y",2nd,lambda,,y\n1,2,3,4,5,6,7\n')
    dataset = load(path, "y").dataset
    assert dataset.features == ("blood_pressure", "blood_pressure_2", "x_y", "x_2nd", "lambda_", "x")
    assert load(path, "y", ["blood-pressure"]).dataset.features == ("blood_pressure_2",)
    assert load(path, "blood_pressure_2").dataset.target.tolist() == [2.0]


def test_a_quoted_line_break_keeps_the_lines_of_errors_right(tmp_path: Path) -> None:
    path = write(tmp_path, "d.csv", '"a\nb",y\n1,2\n\n3,x\n')
    with pytest.raises(DataError, match=r"d\.csv:5: column 'y': 'x' is not a number$"):
        load(path, "y")


FOR_TEXT = "; for text, data.categories may be one-hot, ordinal or ignore"

BAD = {
    "a,y\n1,2\nn/a,3\n": ["d.csv:3: column 'a': the value is missing ('n/a'); data.missing may be drop or mean"],
    "a,y\n1,2\n,3\n": ["d.csv:3: column 'a': the value is missing; data.missing may be drop or mean"],
    "a,y\n1,2\nnan,inf\n": [
        "d.csv:3: column 'y': 'inf' is not finite; correct it, or leave the row out",
        "d.csv:3: column 'a': the value is missing ('nan'); data.missing may be drop or mean",
    ],
    "a,y\n1,1e999\n": ["d.csv:2: column 'y': '1e999' is too large"],
    'a,b,y\n1.5,2.5,1\n3,"4,5",1\n': ["d.csv:3: column 'b': '4,5' is not a number where the decimal sign is '.'"],
    "a;y\n1,500;2\n": [
        "d.csv: '1,500' may be 1500 or 1.500, and no other number tells; set data.decimal to '.' or ','"
    ],
    "day,y\n05/01/2023,2\n": [
        "d.csv:2: column 'day': '05/01/2023' may begin with the day or the month; write dates as 2023-12-31"
    ],
    "day,y\n2023-01-05,1\n2023-02-31,2\n": ["d.csv:3: column 'day': '2023-02-31' is not a date"],
    "t,y\n8:30,1\n9:45,1\nlater,1\n": ["d.csv:4: column 't': 'later' is not a time"],
    "a,y\n12%,1\n5,1\n": ["d.csv:2: column 'a': '12%' and '5' have different signs"],
    "a,y\ninf,1\n-Infinity,1\n": [
        "d.csv:2: column 'a': 'inf' is not finite; correct it, or leave the row out",
        "d.csv:3: column 'a': '-Infinity' is not finite; correct it, or leave the row out",
    ],
    "a,y\n-,1\n?,1\n": ["d.csv:2: column 'a': no row has a value"],
    "a,y\n1,\n2,-\n3,5\n": [
        "d.csv:2: column 'y': the value is missing, as in 1 other row; data.missing may be drop or mean"
    ],
    "a,y\n1,red\n2,blue\n": ["d.csv:2: column 'y': 'red' is not a number; the target must be numbers"],
    "a,y\n1,2023-01-01\n": ["d.csv:2: column 'y': the target must be numbers; the column holds dates"],
    "a,y\n1,2\n1,2,3\n1\n": ["d.csv:3: 3 cells, but the header has 2", "d.csv:4: 1 cells, but the header has 2"],
    "a,y\n1_0,2\n": [f"d.csv:2: column 'a': '1_0' is not a number{FOR_TEXT}"],
    "a,y\n0x1,2\n": [f"d.csv:2: column 'a': '0x1' is not a number{FOR_TEXT}"],
    "a,y\n١,2\n": [f"d.csv:2: column 'a': '١' is not a number{FOR_TEXT}"],
    "a,y\n1,2\n\x00,2\n": ["d.csv:3: column 'a': '\\x00' is not a number"],
    'a,y\n1,"2\n3,4\n': ["d.csv:3: column 'y': '2\\n3,4' is not a number; the target must be numbers"],
    "a,y\n": ["d.csv: there is a header, but no row of data below it"],
    "a,y\n\n \n": ["d.csv: there is a header, but no row of data below it"],
    "": ["d.csv: the file is empty; a header row with the names of the columns is needed"],
    "\n\n": ["d.csv: the file is empty; a header row with the names of the columns is needed"],
    "1,2\n3,4\n": [
        "d.csv:1: the first row holds numbers (1, 2); a header row with the names of the columns is needed above it"
    ],
    "y\n1\n": ["d.csv: no column is left to be a feature"],
    "a,b\n1,2\n": ["d.csv: there is no column 'y'; the file has 'a', 'b'"],
    "y,a,y\n1,2,3\n": ["d.csv: 2 columns have the heading 'y'; write 'y_2' for another, or rename one of them"],
}


@pytest.mark.parametrize("text", BAD)
def test_bad_text_is_explained(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "d.csv", text)
    with pytest.raises(DataError) as caught:
        load("d.csv", "y")
    assert str(caught.value).splitlines() == BAD[text]


def test_at_most_ten_bad_cells_are_listed(tmp_path: Path) -> None:
    path = write(tmp_path, "d.csv", "a,y\n" + "".join(f"x{i},1\n2,1\n" for i in range(25)))
    with pytest.raises(DataError) as caught:
        load(path, "y")
    lines = str(caught.value).splitlines()
    assert len(lines) == 11
    assert lines[-1] == f"{path}: and 15 more like these"


def test_all_columns_that_are_not_there_are_told_with_similar_ones(tmp_path: Path) -> None:
    path = write(tmp_path, "d.csv", "a,y\n1,2\n2,3\n")
    with pytest.raises(DataError) as error:
        load(path, "Y", ["b"])
    assert str(error.value).splitlines() == [
        f"{path}: there is no column 'Y'; did you mean 'y'? the file has 'a', 'y'",
        f"{path}: there is no column 'b'; the file has 'a', 'y'",
    ]


def test_cells_that_are_wrong_alike_are_one_line(tmp_path: Path) -> None:
    path = write(tmp_path, "d.csv", "a,y\n" + "1,2\n" * 30 + f"{10**400},3\n" * 20)
    with pytest.raises(DataError) as error:
        load(path, "y")
    (line,) = str(error.value).splitlines()
    assert line.startswith(f"{path}:32: column 'a': '1000") and line.endswith(" is too large, and in 19 more rows")


def test_bytes_that_are_not_text_are_named_with_their_line(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"d\.csv:2: byte 0x81 is not UTF-8 text; save it as UTF-8"):
        load(write(tmp_path, "d.csv", b"a,y\n1,\x81\n"), "y")


def test_damaged_gzip_files_are_explained(tmp_path: Path) -> None:
    whole = gzip.compress(b"a,y\n" + b"1,2\n" * 1000)
    with pytest.raises(DataError, match="the file is truncated"):
        load(write(tmp_path, "d.csv.gz", whole[:-10]), "y")
    with pytest.raises(DataError, match="is not a valid gzip file"):
        load(write(tmp_path, "d.csv.gz", b"a,y\n1,2\n"), "y")
    with pytest.raises(DataError, match="is not a valid gzip file"):
        load(write(tmp_path, "d.csv.gz", whole[:20] + b"junk" + whole[24:]), "y")


def test_decompression_stops_at_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "MAX_BYTES", 1000)
    with pytest.raises(DataError, match="holds more than 1000 bytes"):
        load(write(tmp_path, "d.csv.gz", gzip.compress(b"a,y\n" + b"1,2\n" * 1000)), "y")
    np.savez_compressed(tmp_path / "d.npz", a=np.zeros(1000), y=np.zeros(1000))
    with pytest.raises(DataError, match="holds more than 1000 bytes"):
        load(tmp_path / "d.npz", "y")


def test_an_unreadable_file_is_explained(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"none\.csv: no such file"):
        load(tmp_path / "none.csv", "y")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(DataError, match=r"folder\.csv: a folder of data has files of one format, .*; it has no file"):
        load(tmp_path / "folder.csv", "y")
    with pytest.raises(DataError, match=r"d\.xls: data files end in one of \.csv, "):
        load(tmp_path / "d.xls", "y")
    with pytest.raises(DataError, match=r"cannot be read|no such file"):
        load("a\0b.csv", "y")


def test_npz_columns_are_arrays_by_name(tmp_path: Path) -> None:
    np.savez(tmp_path / "d.npz", a=np.arange(3), flag=np.array([True, False, True]), y=np.arange(3.0))
    dataset = load(tmp_path / "d.npz", "y").dataset
    assert dataset.features == ("a", "flag")
    np.testing.assert_array_equal(dataset.columns, [[0, 1, 2], [1, 0, 1]])


def test_npz_may_hold_a_matrix_x(tmp_path: Path) -> None:
    X = np.arange(6.0).reshape(3, 2)
    np.savez_compressed(tmp_path / "d.npz", X=X, y=np.arange(3.0))
    dataset = load(tmp_path / "d.npz", "y").dataset
    assert dataset.features == ("x0", "x1")
    np.testing.assert_array_equal(dataset.columns, X.T)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"a": np.zeros(2), "y": np.zeros(3)}, "the columns differ in their number of rows: a has 2, y has 3"),
        ({"a": np.zeros((2, 2)), "y": np.zeros(2)}, "array 'a' has shape (2, 2); columns are 1-D, and only 'X' may"),
        (
            {"a": np.array(["p", "q"]), "y": np.zeros(2)},
            "row 0: column 'a': 'p' is not a number (2 different texts)" + FOR_TEXT,
        ),
        ({"a": np.zeros(2, complex), "y": np.zeros(2)}, "column 'a': holds complex128, not numbers"),
        (
            {"a": np.array([0.0, np.nan]), "y": np.zeros(2)},
            "row 1: column 'a': the value is missing; data.missing may be drop or mean",
        ),
        ({"a": np.zeros(0), "y": np.zeros(0)}, "there is no row of data"),
        ({}, "there is no row of data"),
    ],
)
def test_bad_npz_arrays_are_explained(arrays: dict[str, np.ndarray], message: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "d.npz", **arrays)  # type: ignore[arg-type]
    with pytest.raises(DataError) as caught:
        load(tmp_path / "d.npz", "y")
    assert message in str(caught.value)


def test_pickled_objects_are_never_loaded(tmp_path: Path) -> None:
    np.savez(tmp_path / "d.npz", a=np.array([{}, []], dtype=object), y=np.zeros(2))
    with pytest.raises(DataError, match="array 'a' cannot be read: Object arrays cannot be loaded"):
        load(tmp_path / "d.npz", "y")


def test_damaged_npz_files_are_explained(tmp_path: Path) -> None:
    np.savez(tmp_path / "d.npz", a=np.zeros(100), y=np.zeros(100))
    whole = (tmp_path / "d.npz").read_bytes()
    for content in (b"", b"PK", whole[:-30], whole.replace(b"NUMPY", b"NUMPX"), whole[:60] + b"junk" + whole[64:]):
        with pytest.raises(DataError, match=r"d\.npz: "):
            load(write(tmp_path, "d.npz", content), "y")
    with zipfile.ZipFile(tmp_path / "e.npz", "w") as archive:
        header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000000,), }".ljust(117) + b"\n"
        archive.writestr("y.npy", b"\x93NUMPY\x01\x00v\x00" + header)
        archive.writestr("a.npy", b"not an array")
    with pytest.raises(DataError, match=r"e\.npz: array 'y' cannot be read"):
        load(tmp_path / "e.npz", "y")


def test_parquet_without_pyarrow_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"needs pyarrow; .* 'shine-gp\[parquet\]'"):
        load(write(tmp_path, "d.parquet", b"PAR1"), "y")


def test_parquet_is_read(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = pyarrow.table({"a": [1, 2], "name": ["p", "q"], "hole": [1.0, None], "y": [3.0, 4.0]})
    parquet.write_table(table, tmp_path / "d.parquet")
    dataset = load(tmp_path / "d.parquet", "y", ["a"]).dataset
    np.testing.assert_array_equal(dataset.columns, [[1.0, 2.0]])
    with pytest.raises(DataError, match="row 0: column 'name': 'p' is not a number"):
        load(tmp_path / "d.parquet", "y", ["name"])
    with pytest.raises(DataError, match="row 1: column 'hole': the value is missing"):
        load(tmp_path / "d.parquet", "y", ["hole"])
    with pytest.raises(DataError, match="is not a valid Parquet file"):
        load(write(tmp_path, "e.parquet", b"PAR1 junk"), "y")


def test_weights_are_checked(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"d\.csv: sample weights must not be negative"):
        load(write(tmp_path, "d.csv", "a,y,w\n1,2,-1\n"), "y", others=Roles("w"))


def test_a_column_is_used_once(tmp_path: Path) -> None:
    with pytest.raises(
        DataError,
        match="column 'y' is used twice among target, weights, sigma, groups, times, loss_columns and features",
    ):
        load(write(tmp_path, "d.csv", "a,y\n1,2\n"), "y", ["a", "y"])


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.sampled_from(["d.csv", "d.tsv", "d.csv.gz", "d.npz"]),
    content=st.one_of(
        st.binary(max_size=300),
        st.lists(st.sampled_from([*'ay,;\t\n"1.-e ', "\r", "nan", "\0", "\ufeff", "\u2028"]), max_size=40).map(
            lambda parts: b"a,y\n" + "".join(parts).encode()
        ),
    ),
)
def test_junk_is_data_or_a_data_error(name: str, content: bytes, tmp_path: Path) -> None:
    try:
        dataset = load(write(tmp_path, name, content), "y").dataset
    except DataError:
        return
    assert np.isfinite(dataset.columns).all()


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(st.tuples(*[st.floats(allow_nan=False, allow_infinity=False)] * 2), min_size=1, max_size=20))
def test_every_number_is_read_exactly(rows: list[tuple[float, float]], tmp_path: Path) -> None:
    path = write(tmp_path, "d.csv", "a,y\n" + "".join(f"{a!r},{y!r}\n" for a, y in rows))
    dataset = load(path, "y").dataset
    np.testing.assert_array_equal(dataset.columns[0], [a for a, _ in rows])
    np.testing.assert_array_equal(dataset.target, [y for _, y in rows])


FEATURES = {
    "u": Feature(uniform=Uniform(1, 5)),
    "l": Feature(log_uniform=LogUniform(0.01, 100)),
    "n": Feature(normal=Normal(3, 0.5)),
    "i": Feature(integers=Integers(1, 6)),
    "g": Feature(grid=Grid(-5, 0.4, count=26, repeat=2)),
    "p": Feature(permute="u"),
}


def test_features_follow_their_recipes() -> None:
    dataset = generate(Recipe(FEATURES, "u", rows=4000))
    u, log_uniform, n, i, g, p = dataset.columns
    assert u.min() >= 1 and u.max() <= 5 and abs(u.mean() - 3) < 0.1
    assert log_uniform.min() >= 0.01 and log_uniform.max() <= 100 and abs(np.median(np.log10(log_uniform))) < 0.1
    assert abs(n.mean() - 3) < 0.05 and abs(n.std() - 0.5) < 0.05
    assert set(i) == {1, 2, 3, 4, 5, 6}
    np.testing.assert_array_equal(g[:6], -5 + 0.4 * np.array([0, 0, 1, 1, 2, 2]))
    np.testing.assert_array_equal(g[52:104], g[:52])
    assert not np.array_equal(p, u)
    np.testing.assert_array_equal(np.sort(p), np.sort(u))


def test_the_target_follows_the_formula() -> None:
    dataset = generate(Recipe(FEATURES, "2*u + i - pi", rows=50))
    np.testing.assert_array_equal(dataset.target, 2 * dataset.columns[0] + dataset.columns[3] - np.pi)
    assert generate(Recipe(FEATURES, "3", rows=4)).target.tolist() == [3.0] * 4


def test_a_seed_fixes_the_data_and_a_feature_more_leaves_the_others() -> None:
    recipe = Recipe(FEATURES, "u", rows=20, noise=0.1, seed=7)
    np.testing.assert_array_equal(generate(recipe).columns, generate(recipe).columns)
    np.testing.assert_array_equal(generate(recipe).target, generate(recipe).target)
    more = Recipe({**FEATURES, "z": Feature(normal=Normal())}, "u", rows=20, seed=7)
    np.testing.assert_array_equal(generate(more).columns[:-1], generate(recipe).columns)
    other = Recipe(FEATURES, "u", rows=20, seed=8)
    assert not np.array_equal(generate(other).columns[0], generate(recipe).columns[0])


def test_noise_is_a_share_of_the_deviation_of_the_target() -> None:
    clean = generate(Recipe(FEATURES, "100*u", rows=5000))
    noisy = generate(Recipe(FEATURES, "100*u", rows=5000, noise=0.2))
    assert (noisy.target - clean.target).std() == pytest.approx(0.2 * clean.target.std(), rel=0.05)


def test_a_bad_recipe_is_a_data_error() -> None:
    with pytest.raises(DataError, match="target: line 1, column 1: unknown name 'z'"):
        generate(Recipe(FEATURES, "z"))
    with pytest.raises(DataError, match=r"features\.v\.permute: 'w' is not a feature listed above 'v'; no feature is"):
        generate(Recipe({"v": Feature(permute="w")}, "v"))


@pytest.mark.parametrize(
    "cells", [["2", "-1e300", "7.5"], ["2024-02-29", "2024-02-28", "2024-03-02"], ["09:30:10", "09:30:00", "10:00"]]
)
def test_a_column_tells_when_rows_were_read(tmp_path: Path, cells: list[str]) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("x,y,when\n" + "".join(f"{at},{at},{cell}\n" for at, cell in enumerate(cells)))
    dataset = load(path, "y", others=Roles(times="when")).dataset
    assert dataset.features == ("x",)
    assert dataset.times is not None
    assert np.argsort(dataset.times).tolist() == [1, 0, 2]
    path.write_text(path.read_text().replace(cells[1], "soon"))
    with pytest.raises(DataError, match=r"rows.csv:3: column 'when': 'soon' is not"):
        load(path, "y", others=Roles(times="when"))
    path.write_text("x,y,when\n1,2,a\n2,3,b\n")
    with pytest.raises(DataError, match="'a' is not a number; the times must be numbers or dates"):
        load(path, "y", others=Roles(times="when"))


@pytest.mark.parametrize(
    ("times", "message"),
    [
        (["soon", "late"], "times begins with 'soon'; numbers or dates are needed"),
        ([1j, 2j], "times begins with .*1j.*; numbers or dates are needed"),
        ([1.0, np.nan], "times has no value in row 1; give every row a time"),
        ([np.inf, 1.0], "row 0: column 'times': the value is infinite"),
        ([1.0], "times has shape .1,.; X has 2 rows"),
        (np.ma.masked_equal([1, 2], 2), "times has masked values"),
    ],
)
def test_times_that_are_none_are_refused(times: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        Dataset.from_arrays([[1.0], [2.0]], [1.0, 2.0], times=times)


def test_a_column_numbers_the_groups(tmp_path: Path) -> None:
    path = write(tmp_path, "d.csv", "a,day,y,w\n1,7,2,1\n2,3,4,2\n3,7,6,1\n")
    dataset = load(path, "y", others=Roles("w", groups="day")).dataset
    assert dataset.features == ("a",)
    assert dataset.groups is not None
    assert dataset.groups.tolist() == [1, 0, 1]
    assert dataset.take([0, 1]).groups.tolist() == [1, 0]


def test_the_headings_of_a_file_are_kept_beside_the_names(tmp_path):
    text = 'my area (m²),"a ""b""",a b,a_b,y\n' + "1,2,3,4,5\n" * 3
    dataset = load(write(tmp_path, "d.csv", text), "y").dataset
    assert dataset.features == ("my_area_m2", "a_b_2", "a_b_3", "a_b")
    expected = dict(zip(dataset.features, ["my area (m²)", 'a "b"', "a b", "a_b"], strict=True))
    assert dataset.headings == expected
    assert dataset.take([0, 2]).headings == dataset.without(["a_b"]).headings == expected


@pytest.mark.parametrize(("numbers", "left"), [((3, 7, 1), True), ((3, 3, 1), False), ((0.5, 1, 2), False)])
def test_a_column_without_a_heading_that_numbers_some_rows_is_left_out(
    numbers: tuple[float], left: bool, tmp_path: Path
) -> None:
    rows = [f"{number},{row * 2},{row}" for row, number in enumerate(numbers)]
    found = load(write(tmp_path, "d.csv", "\n".join([",a,y", *rows])), "y")
    assert found.dataset.features == (("a",) if left else ("x", "a"))
