"""The variants of a configuration that a sweep tries: settings from a grid or at random, seeds, folds."""

from __future__ import annotations

import hashlib
import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

MOST_VARIANTS = 100_000
"""Most runs of a sweep."""

LONGEST_NAME = 100
"""Longest name of a folder before it is cut: file systems allow 255 bytes."""


@dataclass(frozen=True)
class Variant:
    """A run of a sweep.

    Parameters
    ----------
    settings : tuple of (key, value)
        What is its own, with values as YAML; without the seed and the fold.
    seed : int, optional
    fold : str, optional
        Such as ``1/5``.
    """

    settings: tuple[tuple[str, str], ...]
    seed: int | None = None
    fold: str | None = None

    @property
    def overrides(self) -> tuple[str, ...]:
        """As options ``--set``."""
        own = [*self.settings, ("seed", self.seed), ("data.fold", self.fold)]
        return tuple(f"{key}={value}" for key, value in own if value is not None)

    @property
    def name(self) -> str:
        """A name for its folder, the same whatever else the sweep tries."""
        short = ",".join(map(_short, self.overrides))
        safe = re.sub(r"[^\w.=,+-]", "_", short)
        if safe == short and len(safe) <= LONGEST_NAME and not safe.startswith("."):
            return safe or "run"
        digest = hashlib.sha256("\n".join(self.overrides).encode()).hexdigest()[:8]
        return f"{safe[:LONGEST_NAME].lstrip('.')}-{digest}"


@dataclass(frozen=True)
class Range:
    """Numbers to draw from."""

    low: float
    high: float
    is_integer: bool
    log: bool

    def draw(self, rng: np.random.Generator) -> str:
        """A number as YAML, of four digits unless it is a whole one."""
        if self.log:
            value = math.exp(rng.uniform(math.log(self.low), math.log(self.high)))
        elif self.is_integer:
            return str(int(rng.integers(int(self.low), int(self.high), endpoint=True)))
        else:
            value = rng.uniform(self.low, self.high)
        value = min(max(float(f"{value:.4g}"), self.low), self.high)
        return str(round(value)) if self.is_integer else repr(value)


@dataclass(frozen=True)
class Sweep:
    """The settings that a sweep tries.

    Parameters
    ----------
    grid : mapping of str to sequence of str
        Values of settings, as YAML. Without `random` every combination is tried.
    random : int, optional
        Number of combinations to draw.
    ranges : mapping of str to Range
        Settings to draw from a range.
    seeds : int, optional
        Number of runs of each combination, with the seeds 0, 1, ...
    folds : int, optional
        Each combination also learns from all but one of so many parts of the rows in turn, and is judged on it.
    holdout : bool
        Only the first of the folds.
    draw : int
        Seed of the drawing.
    options : mapping of str to str
        Options of the command line that settings come from, where these are not ``--grid`` and ``--range``.
    """

    grid: Mapping[str, Sequence[str]] = field(default_factory=dict)
    random: int | None = None
    ranges: Mapping[str, Range] = field(default_factory=dict)
    seeds: int | None = None
    folds: int | None = None
    holdout: bool = False
    draw: int = 0
    options: Mapping[str, str] = field(default_factory=dict)

    def overrides(self, variant: Variant) -> tuple[str, ...]:
        """The overrides of a variant, each after the option that it comes from."""
        grid, ranges = dict.fromkeys(self.grid, "--grid"), dict.fromkeys(self.ranges, "--range")
        options = {"seed": "--seeds", "data.fold": "--folds", **grid, **ranges, **self.options}
        return tuple(f"{options[text.partition('=')[0]]} {text}" for text in variant.overrides)

    def __post_init__(self) -> None:
        if self.ranges and self.random is None:
            raise ValueError("range: drawing from a range needs a number of draws: random")
        if self.random is not None and not (self.ranges or self.grid):
            raise ValueError("random: needs a range or a grid to draw from")
        for key, values in self.grid.items():
            if not values:
                raise ValueError(f"grid: {key} has no values")
            if key in self.ranges:
                raise ValueError(f"range: {key} has a grid too; leave one of them out")
        for name, number, least in (("random", self.random, 1), ("seeds", self.seeds, 1), ("folds", self.folds, 2)):
            if number is not None and number < least:
                raise ValueError(f"{name}: is at least {least}, not {number}")
        if self.seeds is not None and "seed" in self.grid:
            raise ValueError("seeds: the grid has seeds; leave one of them out")

    def variants(self) -> tuple[Variant, ...]:
        """All runs, those of one combination beside each other; a `ValueError` if there are too many."""
        seeds = (None,) if self.seeds is None else tuple(range(self.seeds))
        folds: tuple[str | None, ...] = (None,)
        if self.folds is not None:
            folds = tuple(f"{number}/{self.folds}" for number in range(1, 2 if self.holdout else self.folds + 1))
        count = self.random or math.prod(len(values) for values in self.grid.values())
        count *= len(seeds) * len(folds)
        if count > MOST_VARIANTS:
            raise ValueError(f"a sweep of {count} runs; at most {MOST_VARIANTS} are possible")
        found = (Variant(settings, seed, fold) for settings in self._settings() for seed in seeds for fold in folds)
        return tuple(dict.fromkeys(found))

    def _settings(self) -> Iterator[tuple[tuple[str, str], ...]]:
        if self.random is None:
            for values in itertools.product(*self.grid.values()):
                yield tuple(zip(self.grid, values, strict=True))
            return
        rng = np.random.default_rng(self.draw)
        for _ in range(self.random):
            drawn = {key: values[int(rng.integers(len(values)))] for key, values in self.grid.items()}
            yield tuple({**drawn, **{key: each.draw(rng) for key, each in self.ranges.items()}}.items())


def values_of(text: str) -> list[str]:
    """Values separated by commas; brackets and quotes keep them. As in YAML, quotes begin a value."""
    values, depth, quote = [""], 0, ""
    for letter in text:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'" and (values[-1].rstrip()[-1:] in {*"[{(,:", ""} or values[-1].endswith(letter)):
            quote = letter
        else:
            depth += (letter in "[{(") - (letter in "]})")
        if letter == "," and not depth and not quote:
            values.append("")
        else:
            values[-1] += letter
    return list(dict.fromkeys(value.strip() for value in values if value.strip()))


def range_of(key: str, text: str) -> Range:
    """A range such as ``10..500``, ``0.1..0.9`` or ``1e-4..1e-1:log``; a `ValueError` if it is none."""
    body, log = (text[: -len(":log")], True) if text.endswith(":log") else (text, False)
    low, dots, high = body.partition("..")
    try:
        ends = float(low), float(high)
    except ValueError:
        ends = math.nan, math.nan
    if not dots or not ends[0] < ends[1] or not all(map(math.isfinite, ends)):
        raise ValueError(f"range: {key}={text}: write LOW..HIGH, as 10..500, or 1e-4..1e-1:log")
    if log and ends[0] <= 0:
        raise ValueError(f"range: {key}={text}: a logarithmic range begins above 0")
    is_integer = all(end.strip().lstrip("-").isdecimal() for end in (low, high))
    return Range(*ends, is_integer, log)


def _short(text: str) -> str:
    key, _, value = text.partition("=")
    return f"{key.rsplit('.', 1)[-1]}={value.replace('/', 'of') if key == 'data.fold' else value}"
