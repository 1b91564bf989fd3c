"""Loops over many tapes as native code: subtrees, hashes, splices, tables of hashes, fronts.

A tape is a row of flat arrays; `n` and `width` are their shape. Each kernel says what it writes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from shine.base.typing import Codes, Floats, Hashes, Indices, Mask
from shine.compiler.native import native
from shine.lang.population import Population

Integers = NDArray[np.int32]


@native("tapes", writes=3)
def _sweep(n: int, width: int, codes: Codes, lengths: Indices, arities: Indices, sizes: Integers, depths: Integers,
           levels: Integers) -> None:  # fmt: skip
    """Write size, depth and level of the subtree that ends at each position; 0 beyond the end of a tape."""
    for i in range(n):
        row = i * width
        end = row + lengths[i]
        for at in range(row, end):
            size, depth = 1, 1
            # The last argument of a function ends just before it, each earlier one before the one that follows.
            for _ in range(arities[codes[at]]):
                depth = max(depth, 1 + depths[at - size])
                size += sizes[at - size]
            sizes[at] = size
            depths[at] = depth
        levels[end - 1] = 0
        at = end - 1
        while at >= row:
            size = 1
            for _ in range(arities[codes[at]]):
                levels[at - size] = levels[at] + 1
                size += sizes[at - size]
            at -= 1
        for at in range(end, row + width):
            sizes[at] = 0
            depths[at] = 0
            levels[at] = 0


@native("tapes", writes=1)
def hash_tapes(n: int, width: int, whole: int, codes: Codes, bits: Hashes, lengths: Indices, found: Hashes) -> None:
    """Write the sum of a pseudorandom number for each node, never 0.

    With `whole` it depends on the positions and on the bits of constants, else on the codes alone. Similar numbers are
    turned into unrelated ones by a bijection, splitmix64 (Steele et al. 2014).
    """
    for i in range(n):
        row = i * width
        total = 0
        for place in range(lengths[i]):
            code = codes[row + place]
            x = code + 1
            if whole:
                x += place << 16
            rounds = 1
            if whole and code == 0:
                rounds = 2
            for turn in range(rounds):
                if turn:
                    x = x ^ bits[row + place]
                x = x * 0x9E3779B97F4A7C15
                x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9
                x = (x ^ (x >> 27)) * 0x94D049BB133111EB
                x = x ^ (x >> 31)
            total += x
        if total == 0:
            total = 1
        found[i] = total


@native("tapes", writes=1)
def count_constants(n: int, width: int, codes: Codes, lengths: Indices, found: Indices) -> None:
    """Write the number of constants."""
    for i in range(n):
        count = 0
        for at in range(i * width, i * width + lengths[i]):
            count += codes[at] == 0
        found[i] = count


@native("tapes", writes=1)
def compare_rows(n: int, width: int, left: Floats, right: Floats, found: Mask) -> None:
    """Write whether rows differ anywhere; NumPy's `any` along short rows takes four times as long."""
    for i in range(n):
        found[i] = 0
        for at in range(i * width, i * width + width):
            if (left[at] == right[at]) == 0:
                found[i] = 1


@native("tapes", writes=1)
def count_powers(n: int, width: int, exp: int, mul: int, log: int, codes: Codes, lengths: Indices, arities: Indices,
                 found: Indices) -> None:  # fmt: skip
    """Write the number of nodes exp(c*log(...)) and exp(log(...)*c) with a constant c."""
    for i in range(n):
        row = i * width
        count = 0
        for at in range(row + 4, row + lengths[i]):
            if codes[at] == exp and codes[at - 1] == mul:
                if codes[at - 2] == 0:
                    count += codes[at - 3] == log
                elif codes[at - 2] == log:
                    # With the constant first, the logarithm has all other nodes of the product.
                    before = at - 2
                    missing = 1
                    while missing > 0:
                        missing += arities[codes[before]] - 1
                        before -= 1
                    if before >= row:
                        count += codes[before] == 0
        found[i] = count


@native("tapes", writes=1)
def find_coefficients(n: int, width: int, mul: int, div: int, codes: Codes, lengths: Indices, arities: Indices,
                      found: Mask) -> None:  # fmt: skip
    """Write whether the last function is a product or a quotient, and one of its arguments a constant."""
    for i in range(n):
        root = i * width + lengths[i] - 1
        found[i] = 0
        if lengths[i] > 2 and (codes[root] == mul or codes[root] == div):
            # With the constant first, the other argument has all other nodes.
            before = root - 1
            missing = 1
            while missing > 0:
                missing += arities[codes[before]] - 1
                before -= 1
            if codes[root - 1] == 0 or (before == i * width and codes[before] == 0):
                found[i] = 1


@native("tapes", writes=1)
def weigh_forms(n: int, forms: int, slopes: Floats, intercepts: Floats, sums: Floats, coefficients: Mask, costs: Floats,
                found: Indices) -> None:  # fmt: skip
    """Write the rounded complexities of individuals with several lines each.

    `costs` are those of a slope, of a positive intercept and of another one, and what is added before rounding down; an
    individual with a coefficient pays for no slope.
    """
    for i in range(n):
        for at in range(forms):
            slope, intercept = slopes[at * n + i], intercepts[at * n + i]
            factor = costs[0] if min(slope != 1.0, coefficients[i] == 0) else 0.0
            summand = (costs[1] if intercept > 0.0 else costs[2]) if intercept != 0.0 else 0.0
            found[at * n + i] = max(int(sums[i] + (factor + summand) + costs[3]), 1)


@native("tapes", writes=2)
def find_largest(n: int, m: int, most: int, losses: Floats, complexities: Indices, wanted: Indices, largest: Floats,
                 found: Floats) -> None:  # fmt: skip
    """Write the largest loss, which is not negative, of each complexity up to `most`; and of m wanted ones, or inf."""
    for at in range(most + 1):
        largest[at] = 0.0 - 1.0
    for i in range(n):
        if losses[i] > largest[complexities[i]]:
            largest[complexities[i]] = losses[i]
    for i in range(m):
        found[i] = 1e999
        if wanted[i] <= most and largest[wanted[i]] >= 0.0:
            found[i] = largest[wanted[i]]


@native("tapes", writes=4)
def order_survivors(n: int, most: int, keys: Indices, complexities: Indices, ranked: Indices, counts: Indices,
                    places: Indices, begins: Indices, found: Indices) -> None:  # fmt: skip
    """Write ranked individuals by their rank within their complexity, then those with repeated or infinite keys.

    `counts` has room for complexities up to `most`, `begins` for n + 2 ranks. Keys are the high 44 bits of losses.
    """
    for at in range(most + 1):
        counts[at] = 0
    for at in range(n + 2):
        begins[at] = 0
    last = 0 - 1
    for i in range(n):
        key, own = keys[ranked[i]], complexities[ranked[i]]
        places[i] = n
        if key != last and key < 0x7FF00000000:
            places[i] = counts[own]
            counts[own] += 1
        begins[places[i] + 1] += 1
        last = key
    for at in range(n + 1):
        begins[at + 1] += begins[at]
    for i in range(n):
        found[begins[places[i]]] = ranked[i]
        begins[places[i]] += 1


@native("tapes", writes=2)
def choose_scales(n: int, width: int, states: Floats, limits: Floats, moments: Floats, scales: Floats) -> None:
    """Write three rows of moments, and the factors that `shine.evaluate.scores.Products` describes."""
    for i in range(n):
        mean, square, product = states[i * width], states[i * width + 1], states[i * width + 2]
        moments[i], moments[i + n], moments[i + 2 * n] = mean, square, product
        size = 0.0 - mean if mean < 0.0 else mean
        large, small = max(square > limits[1], size > limits[3]), min(square < limits[0], size < limits[2])
        scale = limits[4] if small else (1.0 / limits[4] if large else 1.0)
        # Predictions of 0 have a mean of 0, and others hardly ever.
        scales[i] = scale if min(size < 1e999, size > 0.0) else 1.0


@native("tapes", writes=4)
def fit_lines(n: int, moments: Floats, scales: Floats, target: Floats, slopes: Floats, intercepts: Floats,
              errors: Floats, again: Mask) -> None:  # fmt: skip
    """Write the lines that `shine.evaluate.scores.best_lines` describes, their errors, and which to measure again."""
    weight, mean, variation, rounding, whole = target[0], target[1], target[2], target[3], target[4]
    limit, least, none = target[5], target[6], 1e999
    # Lines are float64, whatever the predictions are: 64 units of rounding of the target's mean, too.
    blur = 1.4e-14 * mean * (1.4e-14 * mean)
    for i in range(n):
        p, square, product, scale = moments[i], moments[i + n], moments[i + 2 * n], scales[i]
        back = 1.0 / scale
        own, floor, noise = p * back, target[7] * scale, rounding * p
        raw, crossed = square + weight * (p * p), product + weight * p * mean
        # Smaller squares are subnormal, and those of predictions whose mean is exactly 0.
        varies = square > weight * (noise * noise + floor * floor) + 1e-289
        through, slope = crossed / raw, product / square if varies else 0.0
        shifted = variation - 2.0 * (product * back) + square * back * back
        plain = shifted + weight * ((mean - own) * (mean - own))
        straight, fitted = whole - through * crossed, variation - slope * product
        intercept = mean - slope * p
        first, second = through * scale, slope * scale
        size, other = 0.0 - first if first < 0.0 else first, 0.0 - second if second < 0.0 else second
        straight = (straight if through == 0.0 else none) if size < 1e-307 else straight
        fitted = (fitted if slope == 0.0 else none) if other < 1e-307 else fitted
        # A simpler line that is worse than a constant is none.
        plain = (plain if plain < variation else none) if varies else none
        shifted = (shifted if shifted < variation else none) if varies else none
        straight = (straight if straight < variation else none) if varies else none
        # Beside large means, of predictions or target, the line's own rounding is a part of small errors.
        one, two, three = rounding * own, rounding * first * own, rounding * second * own
        one, two, three = weight * (one * one + blur), weight * (two * two + blur), weight * (three * three + blur)
        at = i
        slopes[at], intercepts[at], errors[at] = 1.0, 0.0, plain
        again[at] = max(plain < limit, one > 4e-9 * plain) if plain - plain == 0.0 else 0
        at += n
        slopes[at], intercepts[at], errors[at] = 1.0, mean - own, shifted
        again[at] = max(shifted < limit, one > 4e-9 * shifted) if shifted - shifted == 0.0 else 0
        at += n
        slopes[at], intercepts[at], errors[at] = first, 0.0, straight
        again[at] = max(straight < limit, two > 4e-9 * straight) if straight - straight == 0.0 else 0
        at += n
        slopes[at], intercepts[at], errors[at] = second, intercept, fitted
        again[at] = max(fitted < least, three > 4e-9 * fitted) if fitted - fitted == 0.0 else 0


@native("tapes", writes=3)
def keep_finite(n: int, losses: Floats, slopes: Floats, intercepts: Floats) -> None:
    """Write a loss of inf and no line where a number is not finite."""
    for i in range(n):
        total = losses[i] - losses[i] + (slopes[i] - slopes[i]) + (intercepts[i] - intercepts[i])
        if (total == 0.0) == 0:
            losses[i], slopes[i], intercepts[i] = 1e999, 1.0, 0.0


@native("tapes", writes=1)
def find_keys(n: int, slots: int, keys: Hashes, table: Integers, known: Hashes, found: Integers) -> None:
    """Write the entry of each key in a table with linear probing (Knuth, TAOCP 3, 6.4), or 0."""
    for i in range(n):
        slot = keys[i] & (slots - 1)
        while table[slot] != 0 and known[table[slot]] != keys[i]:
            slot = (slot + 1) & (slots - 1)
        found[i] = table[slot]


@native("tapes", writes=4)
def find_distinct(n: int, slots: int, keys: Hashes, table: Integers, first: Indices, places: Indices,
                  count: Indices) -> None:  # fmt: skip
    """Write the position of each distinct key, in the order of their arrival, the place of each key among them, and
    how many they are; `table` is all 0."""
    found = 0
    for i in range(n):
        slot = keys[i] & (slots - 1)
        while table[slot] != 0 and keys[first[table[slot] - 1]] != keys[i]:
            slot = (slot + 1) & (slots - 1)
        if table[slot] == 0:
            first[found] = i
            found += 1
            table[slot] = found
        places[i] = table[slot] - 1
    count[0] = found


@native("tapes", writes=1)
def insert_keys(n: int, slots: int, first: int, keys: Hashes, table: Integers) -> None:
    """Write the entries first, first + 1, ... of new keys into a table."""
    for i in range(n):
        slot = keys[i] & (slots - 1)
        while table[slot] != 0:
            slot = (slot + 1) & (slots - 1)
        table[slot] = first + i


@dataclass(frozen=True, eq=False)
class Subtrees:
    """The subtree that ends at each position of each tape.

    Each array has shape (n_individuals, width) and is 0 beyond the end of a tape.

    Parameters
    ----------
    sizes : ndarray, int32
        Nodes of each subtree; it lies at the positions ``position - size + 1 .. position``.
    depths : ndarray, int32
        Levels of each subtree; a single node has one.
    levels : ndarray, int32
        Distance of each node from the root.
    """

    sizes: Integers
    depths: Integers
    levels: Integers

    @classmethod
    def of(cls, population: Population) -> Self:
        """The subtrees of a population."""
        shape = population.codes.shape
        sizes, depths, levels = (np.empty(shape, np.int32) for _ in range(3))
        tapes = population.codes, population.sizes, population.primitives.arities
        _sweep(len(population), population.width, *tapes, sizes, depths, levels)
        return cls(sizes, depths, levels)


def depths(population: Population) -> Integers:
    """Levels of each individual, shape (n_individuals,)."""
    return Subtrees.of(population).depths[np.arange(len(population)), population.sizes - 1]


def constant_counts(population: Population) -> Indices:
    """Number of constants in each individual, shape (n_individuals,), int64."""
    found = np.empty(len(population), np.int64)
    count_constants(len(population), population.width, population.codes, population.sizes, found)
    return found
