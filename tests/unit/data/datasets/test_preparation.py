"""Dates, texts and missing values of a file become numbers, and the user is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shine.base.errors import DataError
from shine.data.applying import new_rows
from shine.data.datasets.preparation import Reading
from shine.data.datasets.training import Loaded
from shine.data.loading import Roles, load

NAN = float("nan")


def loaded(folder: Path, text: str, features: list[str] | None = None, **reading: Any) -> Loaded:
    (folder / "d.csv").write_text(text, encoding="utf-8")
    return load(folder / "d.csv", "y", features, reading=Reading(**reading))


def columns(data: Loaded) -> dict[str, list[float]]:
    return dict(zip(data.dataset.features, data.dataset.columns.tolist(), strict=True))


def predicted(folder: Path, data: Loaded, text: str) -> dict[str, list[float]]:
    (folder / "new.csv").write_text(text, encoding="utf-8")
    assert data.preparation is not None
    rows, *_ = new_rows(folder / "new.csv", data.preparation, data.dataset.features)
    return {name: values.tolist() for name, values in rows.items()}


def told(data: Loaded, folder: Path) -> list[str]:
    return [note.replace(f"{folder}/", "") for note in data.notes]


COLOURS = "colour,a,y\nred,1,2\nblue,2,3\ngreen,3,4\nred,4,5\n"


def test_each_text_gets_a_column(tmp_path: Path) -> None:
    data = loaded(tmp_path, COLOURS, categories="one-hot")
    assert columns(data) == {
        "colour_is_blue": [0, 1, 0, 0], "colour_is_green": [0, 0, 1, 0], "colour_is_red": [1, 0, 0, 1],
        "a": [1, 2, 3, 4],
    }  # fmt: skip
    assert data.preparation is not None
    assert data.preparation.columns[0].headings == ("colour is blue", "colour is green", "colour is red")
    assert told(data, tmp_path) == [
        "column 'colour' holds 3 texts; 0 or 1 each: colour_is_blue, colour_is_green, colour_is_red"
    ]


def test_two_texts_need_one_column(tmp_path: Path) -> None:
    data = loaded(tmp_path, "sex,y\nmale,1\nfemale,2\nmale,3\n", categories="one-hot")
    assert columns(data) == {"sex_is_male": [1, 0, 1]}


def test_texts_get_numbers(tmp_path: Path) -> None:
    data = loaded(tmp_path, COLOURS, categories="ordinal")
    assert columns(data) == {"colour": [2, 0, 1, 2], "a": [1, 2, 3, 4]}
    assert told(data, tmp_path) == [
        "column 'colour' holds text; colour numbers the texts in alphabetical order: "
        "'blue' is 0, 'green' is 1, 'red' is 2"
    ]


def test_texts_are_ignored(tmp_path: Path) -> None:
    data = loaded(tmp_path, COLOURS, categories="ignore")
    assert columns(data) == {"a": [1, 2, 3, 4]}
    assert told(data, tmp_path) == ["column 'colour' holds text; it is left out"]
    assert data.preparation is None


def test_a_text_that_is_the_same_everywhere_tells_nothing(tmp_path: Path) -> None:
    data = loaded(tmp_path, "lab,a,y\nBonn,1,2\nBonn,2,3\n", categories="one-hot")
    assert columns(data) == {"a": [1, 2]}
    assert told(data, tmp_path) == ["column 'lab' holds the same text in every row; it is left out"]


def test_names_of_texts_differ_from_other_names(tmp_path: Path) -> None:
    text = "c,c_is_a,y\na,1,2\nb,2,3\na b,3,4\na-b,4,5\n"
    data = loaded(tmp_path, text, categories="one-hot")
    assert data.dataset.features == ("c_is_a_2", "c_is_a_b", "c_is_a_b_2", "c_is_b", "c_is_a")


def test_names_of_long_texts_are_cut(tmp_path: Path) -> None:
    data = loaded(tmp_path, f"c,y\n{'x' * 90}1,1\n{'x' * 90}2,2\n{'x' * 90}3,3\n", categories="one-hot")
    name = f"c_is_{'x' * 40}"
    assert data.dataset.features == (name, f"{name}_2", f"{name}_3")


def test_too_many_texts_are_refused(tmp_path: Path) -> None:
    rows = "".join(f"name {row},1,{row}\n" for row in range(60))
    with pytest.raises(DataError, match="60 different texts are too many for one-hot, which takes 50"):
        loaded(tmp_path, f"who,a,y\n{rows}", categories="one-hot")


def test_one_bad_cell_among_numbers_is_no_category(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"d\.csv:3: column 'a': '2\.5x' is not a number$"):
        loaded(tmp_path, "a,y\n1,2\n2.5x,3\n3,4\n", categories="one-hot")


HOLES = "a,b,y\n1,10,1\n,20,2\n3,n/a,3\n5,30,\n6,60,6\n"


def test_rows_with_missing_values_are_dropped_and_counted(tmp_path: Path) -> None:
    data = loaded(tmp_path, HOLES, missing="drop")
    assert columns(data) == {"a": [1, 6], "b": [10, 60]}
    assert data.dataset.target.tolist() == [1, 6]
    assert told(data, tmp_path) == [
        "d.csv: without 3 of 5 rows, where values are missing: 1 in 'y', 1 in 'a', 1 in 'b'"
    ]


def test_means_replace_missing_values_but_no_targets(tmp_path: Path) -> None:
    data = loaded(tmp_path, HOLES, missing="mean")
    assert columns(data) == {"a": [1, 10 / 3, 3, 6], "b": [10, 20, 30, 60]}
    assert told(data, tmp_path) == [
        "d.csv: without 1 of 5 rows, where values are missing: 1 in 'y'",
        "d.csv: the mean of the column replaces missing values: 1 in 'a', 1 in 'b'",
    ]


def test_a_missing_text_is_the_share_of_each(tmp_path: Path) -> None:
    data = loaded(tmp_path, "c,y\na,1\na,2\n,3\nb,4\na,5\n", categories="one-hot", missing="mean")
    assert columns(data) == {"c_is_b": [0, 0, 0.25, 1, 0]}


def test_no_row_is_left(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no row has a value in every column"):
        loaded(tmp_path, "a,b,y\n1,,1\n,2,2\n", missing="drop")


def test_dates_count_from_the_first(tmp_path: Path) -> None:
    data = loaded(tmp_path, "day,at,y\n05.01.2023,8:30,1\n07.01.2023,,2\n,9:00,3\n", missing="mean")
    assert columns(data) == {"day_days": [0, 2, 1], "at_hours": [8.5, 8.75, 9]}
    assert "column 'day' holds dates; day_days counts days since 2023-01-05" in told(data, tmp_path)
    assert "column 'at' holds times of day or durations; at_hours is in hours" in told(data, tmp_path)


def test_truth_is_0_and_1(tmp_path: Path) -> None:
    data = loaded(tmp_path, "a,y\nTRUE,1\nFalse,2\n")
    assert columns(data) == {"a": [1, 0]}


def test_groups_may_be_texts(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("a,who,y\n1,ann,2\n2,bob,3\n3,ann,4\n")
    data = load(tmp_path / "d.csv", "y", others=Roles(groups="who"))
    assert data.dataset.groups is not None
    assert data.dataset.groups.tolist() == [0, 1, 0]


def test_a_file_of_numbers_needs_no_memory(tmp_path: Path) -> None:
    assert loaded(tmp_path, "a,y\n1,2\n3,4\n").preparation is None


EVERYTHING = """\
price;colour;day;grade;y
1,5;red;05/03/2023;1;1
2,5;blue;31/03/2023;A;2
;green;;C;3
4;red;06/03/2023;B;4
"""
"""A decimal comma, texts that look like numbers, dates with the day first, and missing values."""


def test_new_files_are_prepared_like_the_training_data(tmp_path: Path) -> None:
    data = loaded(tmp_path, EVERYTHING, categories="one-hot", missing="mean")
    again = predicted(tmp_path, data, EVERYTHING)
    for name, values in columns(data).items():
        np.testing.assert_array_equal(again[name], values)


def test_separators_are_looked_for_anew_and_the_rest_is_remembered(tmp_path: Path) -> None:
    data = loaded(tmp_path, EVERYTHING, categories="one-hot", missing="mean")
    new = predicted(tmp_path, data, "grade,day,colour,price\n1,04/05/2023,,1.25\n1,05/05/2023,blue,\n")
    assert new["price"] == [1.25, pytest.approx(8 / 3)]
    assert new["day_days"] == [60, 61]  # 4 and 5 May: the day comes first, as in the training data
    assert new["colour_is_blue"] == [0.25, 1]
    assert new["grade_is_1"] == [1, 1]  # a text, although all cells are numbers


def test_a_decimal_sign_that_no_cell_tells_is_remembered(tmp_path: Path) -> None:
    data = loaded(tmp_path, "a;y\n1,5;2\n2;3\n")
    assert predicted(tmp_path, data, "a;b\n1,520;0\n") == {"a": [1.52]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("colour,a\npurple,1\n", "new.csv:2: column 'colour': 'purple' was not in the training data; known are 'blue'"),
        ("colour,a\n,1\n", "new.csv:2: column 'colour': the value is missing; leave such rows out, or train with"),
        ("colour\nred\n", "new.csv: there is no column a; the formula needs colour, a, and the file has colour"),
        ("colour,a\nred,x\n", "new.csv:2: column 'a': 'x' is not a number"),
    ],
)
def test_new_rows_that_do_not_fit_are_refused(text: str, message: str, tmp_path: Path) -> None:
    data = loaded(tmp_path, COLOURS, categories="one-hot")
    with pytest.raises(DataError) as caught:
        predicted(tmp_path, data, text)
    assert message in str(caught.value)


def test_dropped_rows_have_no_prediction(tmp_path: Path) -> None:
    data = loaded(tmp_path, HOLES, missing="drop")
    new = predicted(tmp_path, data, "a,b\n1,\n2,3\n")
    np.testing.assert_array_equal(new["b"], [NAN, 3])
