"""Bad configurations -> the exact error and its place; all of them at once, and nothing but ConfigError."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from shine.base.errors import ConfigError
from shine.faces.config import read_config, read_job
from shine.faces.config.document import MAX_BYTES, parse_document

DATA = "data: {generate: {rows: 5, features: {a: {uniform: {low: 1, high: 2}}}, target: a*a}}\n"


def problems(folder: Path, text: str | bytes, *overrides: str) -> list[str]:
    """The problems reported for a configuration named c.yaml."""
    path = folder / "c.yaml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(ConfigError) as caught:
        read_job(path, overrides)
    return [problem.replace(f"{folder}/", "") for problem in caught.value.problems]


SINGLE = {
    "evolution: {population: -3}": "c.yaml:2:13: evolution.population: must be at least 2, is -3",
    "evolution:\n  max_size: -3": "c.yaml:3:3: evolution.max_size: must be at least 1, is -3",
    "evolution: {population: 1e3}": "c.yaml:2:13: evolution.population: must be a whole number, is 1000.0",
    "evolution: {population: '9'}": 'c.yaml:2:13: evolution.population: must be a whole number, is "9"',
    "evolution: {crossover: 1.5}": "c.yaml:2:13: evolution.crossover: must be at most 1, is 1.5",
    "evolution: [1]": "c.yaml:2:1: evolution: must be a mapping of keys to values, is [1]",
    "evolution: {constants: [5, -5]}": (
        "c.yaml:2:13: evolution.constants: must be a finite range from low to high, got 5.0 to -5.0"
    ),
    "evolution: {constants: [5]}": "c.yaml:2:13: evolution.constants.1: is missing; the list is too short",
    "evolution: {constants: 5}": "c.yaml:2:13: evolution.constants: must be a list, such as [a, b], is 5",
    "evolution: {constants: [1, .inf]}": "c.yaml:2:28: '.inf' is not a finite number",
    "fitness: {linear_scaling: 1}": "c.yaml:2:11: fitness.linear_scaling: must be true or false, is 1",
    "fitness: {loss: mso}": ("c.yaml:2:11: fitness.loss: unknown loss 'mso'; did you mean 'mse'? use one of"),
    "fitness: {validation: last}": ('c.yaml:2:11: fitness.validation: must be one of random, groups, time, is "last"'),
    "fitness: {validation_fraction: 1}": "c.yaml:2:11: fitness.validation_fraction: must be below 1, is 1",
    "fitness: {validation: groups}": "c.yaml:2:11: fitness.validation: validation='groups' needs groups",
    "stop: {seconds: 0}": "c.yaml:2:8: stop.seconds: must be above 0, is 0",
    "seed: -1": "c.yaml:2:1: seed: must be at least 0, is -1",
    "guesses: a*a": 'c.yaml:2:1: guesses: must be a list, such as [a, b], is "a*a"',
    "guesses: [3]": "c.yaml:2:11: guesses.0: must be text, is 3",
    "seed: 1\nseed: 2": "c.yaml:3:1: key 'seed' occurs twice; it is first at c.yaml:2:1",
    "1: 2": "c.yaml:2:1: key '1' is not text; put it in quotes",
    "[a, b]: 2": "not text; put it in quotes",
    "seed: !!python/object/apply:os.system [ls]": "c.yaml:2:7: tag 'tag:yaml.org,2002:python/object/apply:os.system'",
    "seed: !!int x": "c.yaml:2:7: 'x' is not a whole number that can be read",
    'guesses: ["a\\0"]': "c.yaml:2:11: 'a\\x00' contains a control character",
    'guesses: ["\\uD800"]': "c.yaml:2:11: '\\ud800' contains a control character",
    "guesses: [a*]": "c.yaml:2:11: guesses.0: line 1, column",
    "guesses: [b]": "c.yaml:2:11: guesses.0: line 1, column 1: unknown name 'b'; known names are a",
    "random_state: 1": 'c.yaml:2:1: random_state: unknown key "random_state"; did you mean "seed"?',
    "max_time: 1": 'c.yaml:2:1: max_time: unknown key "max_time"; did you mean "stop.seconds"?',
    "evolution: {niterations: 1}": 'unknown key "niterations"; did you mean "stop.generations"?',
    "primitives: [subtract]": 'primitives.0: unknown primitive "subtract"; did you mean "sub"?',
    "primitives: []": "c.yaml:2:1: primitives: must not be empty; [add, sub, mul, div] is a start",
    "primitives: [add, add]": 'c.yaml:2:19: primitives.1: "add" is listed twice',
    "primitives: [ad]": 'c.yaml:2:14: primitives.0: unknown primitive "ad"; did you mean "add"? allowed are abs, acos',
    "seed: [1": "c.yaml:3:1: not valid YAML: while parsing a flow sequence, expected ',' or ']', but got",
    "seed: 'x": "c.yaml:3:1: not valid YAML: while scanning a quoted scalar, found unexpected end of stream",
    "\tseed: 1": "c.yaml:2:1: not valid YAML: while scanning for the next token, found character '\\t'",
    "stop:\n  seconds:1\n  loss: 2": "not allowed here; a colon needs a blank after it: 'seconds: 1'",
    "stop: {seconds:1}": "unknown key \"seconds:1\"; a colon needs a blank after it: 'seconds: 1'",
    "constraints: {units: {a: foo}, target_unit: qux}": "; the unit of the target: unit 'qux' cannot be read",
    "guesses: [A*a]": "unknown name 'A'; did you mean 'a'? known names are a",
    "seconds: 1": 'c.yaml:2:1: seconds: unknown key "seconds"; did you mean "stop.seconds"?',
    "max_depth: 1": 'c.yaml:2:1: max_depth: unknown key "max_depth"; did you mean "evolution.max_depth"?',
    "---\nseed: 1": "c.yaml:2:1: not valid YAML: expected a single document in the stream, but found another document",
    "seed: *nowhere": "c.yaml:2:7: not valid YAML: found undefined alias",
    "guesses: &s [*s]": "c.yaml:2:14: not valid YAML: *s contains itself",
    "seed: \x07": "c.yaml:2:7: not valid YAML: character '\\x07' is not allowed",
    'seed: "\\UFFFFFFFF"': "c.yaml:1:1: not valid YAML: ",
    "seed: " + "9" * 5000: "is too large; whole numbers are below 2**1024",
}


@pytest.mark.parametrize("text", SINGLE, ids=lambda text: text[:30])
def test_one_mistake_is_one_problem_at_its_place(text: str, tmp_path: Path) -> None:
    (found,) = problems(tmp_path, DATA + text + "\n")
    assert SINGLE[text] in found


def test_an_unknown_key_lists_the_known_ones_and_the_nearest(tmp_path: Path) -> None:
    assert problems(tmp_path, DATA + "stop: {generation: 3}\n") == [
        'c.yaml:2:8: stop.generation: unknown key "generation"; did you mean "generations"? '
        "allowed are generations, seconds, stagnation, loss"
    ]
    (found,) = problems(tmp_path, DATA + "sed: 3\n")
    assert found.startswith('c.yaml:2:1: sed: unknown key "sed"; did you mean "seed"? allowed are data, primitives,')


def test_all_problems_are_reported_at_once_in_the_order_of_reading(tmp_path: Path) -> None:
    text = (
        "data: {path: missing.csv, target: y}\n"
        "primitives: [add, pow2]\n"
        "evolution:\n"
        "  popultion: 5\n"
        "  max_size: 0\n"
        "  constants: [2, 1]\n"
        "seed: x\n"
        "seed: 3\n"
    )
    found = problems(tmp_path, text, "stop.seconds=-1", "stop=")
    assert [problem.split(": ")[0] for problem in found] == [
        "c.yaml:1:8",
        "c.yaml:2:19",
        "c.yaml:4:3",
        "c.yaml:5:3",
        "c.yaml:6:3",
        "c.yaml:7:1",
        "c.yaml:8:1",
        "--set stop",
    ]
    assert found[0] == "c.yaml:1:8: data.path: missing.csv: no such file"


def test_a_value_that_cannot_be_read_is_one_problem_only(tmp_path: Path) -> None:
    assert problems(tmp_path, "data: {path: !x d.csv, target: y}\n") == [
        "c.yaml:1:14: tag '!x' is not allowed; write plain values"
    ]


def test_formulas_to_start_from_keep_the_limits(tmp_path: Path) -> None:
    text = DATA + "evolution: {max_size: 5, max_depth: 2}\nguesses: [a, a*a, a*a + a, a*a + a*a]\n"
    assert problems(tmp_path, text) == [
        "c.yaml:3:19: guesses.2: has 3 levels; evolution.max_depth allows 2",
        "c.yaml:3:28: guesses.3: has 7 nodes; evolution.max_size allows 5",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("seed: 1\n", "c.yaml:1:1: data: is missing, and has no default"),
        ("data: {}\n", "c.yaml:1:1: data: needs exactly one of path and generate; has neither"),
        ("data: {path: d.csv}\n", "c.yaml:1:1: data: path needs a target: the heading of the column to explain"),
        ("data: {path: d.csv, target: z}\n", "c.yaml:1:8: data.path: d.csv: there is no column 'z'; the file has 'a'"),
        (
            "data: {path: d.csv, target: b}\n",
            "c.yaml:1:8: data.path: d.csv:3: column 'a': the value is missing ('nan')",
        ),
        ("data: {path: empty.csv, target: b}\n", "c.yaml:1:8: data.path: empty.csv: the file is empty; a header row"),
        ("data: {path: header.csv, target: b}\n", "c.yaml:1:8: data.path: header.csv: there is a header, but no row"),
        (
            "data: {path: ., target: b}\n",
            "c.yaml:1:8: data.path: .: a folder of data has files of one format, .parquet",
        ),
        ("data: {path: data.xls, target: b}\n", "c.yaml:1:8: data.path: data.xls: data files end in one of .csv"),
    ],
)
def test_faults_of_the_data_are_problems_of_the_configuration(text: str, expected: str, tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("a,b\n1,2\nnan,3\n")
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "header.csv").write_text("a,b\n")
    found = problems(tmp_path, text)
    assert len(found) == 1
    assert found[0].replace(f"{tmp_path}: ", ".: ").startswith(expected)


GENERATED = {
    "features: {a: {uniform: {low: 2, high: 1}}}, target: a": (
        "c.yaml:1:44: data.generate.features.a.uniform.low: must be below high; they are 2 and 1"
    ),
    "features: {a: {uniform: {low: 1}}}, target: a": (
        "c.yaml:1:34: data.generate.features.a.uniform.high: is missing, and has no default"
    ),
    "features: {a: {}}, target: a": (
        "c.yaml:1:30: data.generate.features.a: needs exactly one of uniform, log_uniform, normal, integers, grid, "
        "permute; has none"
    ),
    "features: {a: {normal: {}, permute: b}}, target: a": (
        "c.yaml:1:30: data.generate.features.a: needs exactly one of uniform, log_uniform, normal, integers, grid, "
        "permute; has normal, permute"
    ),
    "features: {a: {permute: b}}, target: a": (
        "c.yaml:1:34: data.generate.features.a.permute: 'b' is not a feature listed above 'a'; no feature is above it"
    ),
    "features: {a b: {normal: {}}}, target: a": (
        "c.yaml:1:30: data.generate.features.a b: the name is not an identifier; 'a_b' would do"
    ),
    "features: {a: {normal: {}}}, target: a+": ("c.yaml:1:48: data.generate.target: line 1, column"),
    "features: {a: {normal: {}}}, target: b": "c.yaml:1:48: data.generate.target: ",
    "features: {a: {normal: {}}}, target: log(-a*a)": (
        "c.yaml:1:8: data.generate: target: the formula is NaN or infinite in 1000 of 1000 rows, the first at a="
    ),
    "features: {}, target: '1'": "c.yaml:1:8: data.generate: needs at least one feature",
}


@pytest.mark.parametrize("text", GENERATED)
def test_a_recipe_is_checked_before_it_is_followed(text: str, tmp_path: Path) -> None:
    (found,) = problems(tmp_path, f"data: {{generate: {{{text}}}}}\n")
    assert found.startswith(GENERATED[text])


def test_a_generated_target_excludes_one_of_a_file(tmp_path: Path) -> None:
    (found,) = problems(tmp_path, DATA.replace("data: {", "data: {target: y, "))
    assert found == "c.yaml:1:8: data.target: belongs to path; generated data have their own under generate"


NO_MAPPING = "a configuration is a mapping of keys to values; it names a table: 'data: {path: ..., target: ...}'"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "c.yaml: the file is empty; a configuration needs at least 'data'"),
        (b"# nothing\n", "c.yaml: the file is empty; a configuration needs at least 'data'"),
        (b"[1, 2]\n", f"c.yaml:1:1: {NO_MAPPING}"),
        (b"text\n", f"c.yaml:1:1: {NO_MAPPING}"),
        (b"seed: 1\nx: \xff\n", "c.yaml:2:4: byte 0xff is not UTF-8 text"),
        (b"#" * (MAX_BYTES + 1), f"c.yaml: is longer than {MAX_BYTES} bytes; a configuration is a short text"),
    ],
)
def test_other_files_are_rejected_as_configurations(content: bytes, expected: str, tmp_path: Path) -> None:
    assert problems(tmp_path, content) == [expected]


def test_a_missing_file_and_a_folder_are_config_errors(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.yaml: cannot be read: No such file or directory"):
        read_config(tmp_path / "none.yaml")
    with pytest.raises(ConfigError, match="is not a file"):
        read_config(tmp_path)


def test_an_alias_bomb_is_rejected_before_it_expands() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 25)]
    with pytest.raises(ConfigError, match=r"c:5:\d+: not valid YAML: aliases expand to more than 100000 values"):
        parse_document("\n".join(lines), "c")


def test_a_deep_chain_of_aliases_is_rejected() -> None:
    lines = ["a0: &a0 [x]"] + [f"a{i}: &a{i} [*a{i - 1}]" for i in range(1, 2000)]
    with pytest.raises(ConfigError, match="aliases expand to more than 30 levels"):
        parse_document("\n".join(lines), "c")


ALPHABET = st.sampled_from(
    [*"[]{}:,-?&*!|>'\"%@`#~ \n\t\\ax0.", "\r\n", "---", "...", "<<", "&a ", "*a", "!!int ", "\ufeff"]
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    content=st.one_of(
        st.binary(max_size=2000), st.lists(ALPHABET, max_size=300).map(lambda parts: "".join(parts).encode())
    )
)
@example(content=b"!$\n(:")
@example(content=b"!!python/object:x {data: 1}")
def test_junk_raises_nothing_but_config_errors(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_bytes(content)
    with pytest.raises(ConfigError):
        read_job(path)


@pytest.mark.slow
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.one_of(st.text(max_size=60), st.lists(ALPHABET, max_size=60).map("".join)))
@example(text="--")
@example(text="-- a=1")
def test_junk_after_set_raises_nothing_but_config_errors(text: str, tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(DATA)
    for override in (text, f"seed={text}", f"{text}=1", f"evolution.population={text}"):
        try:
            read_config(path, [override])
        except ConfigError:
            continue
