"""Knobs: the open decisions of a sketch, as tables of all their options.

A choice is the index of an option, so a batch of candidates is an array of indices. Any operation
on it (sampling, mutation, crossover) returns valid choices.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from random import Random
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from compiler.schedule.primitives.sampling.sample import divisors, num_tiles, sample_tile

Ints: TypeAlias = npt.NDArray[np.int64]
MAX_OPTIONS = 1 << 14
"""Options of one knob; a tiling with more keeps a random sample of them. It bounds the memory of a
table: some hundred kilobytes a knob. Chosen.
"""
SHOWN = 5
"""Maximum number of values printed in full; of more, the first two and the last. Chosen."""


@dataclass(frozen=True)
class TileKnob:
    """How to write `extent` as a product of 2 or more factors, the last at most `max_innermost`.

    Decides a `sample_perfect_tile` instruction.
    """

    extent: int
    parts: int
    max_innermost: int

    def __str__(self) -> str:
        """Return the decision in words."""
        last = "" if self.max_innermost >= self.extent else f", the last up to {self.max_innermost}"
        return f"{self.extent} as {self.parts} factors{last}: {len(self.options):,} options"

    @cached_property
    def options(self) -> Ints:
        """All factorizations, a row each, in lexicographic order."""
        return _factorizations(self.extent, self.parts, self.max_innermost)

    def decision(self, choice: int) -> tuple[int, ...]:
        """Return the decision, as a trace holds it, of an option."""
        return tuple(self.options[choice].tolist())

    def choice(self, decision: tuple[int, ...] | int) -> int | None:
        """Return the index of the option that equals a trace's decision; None if none does."""
        if isinstance(decision, int) or len(decision) != self.parts:
            return None
        matches = np.flatnonzero((self.options == np.array(decision)).all(axis=1))
        return int(matches[0]) if len(matches) else None

    def neighbours(self, choices: Ints, rng: np.random.Generator) -> Ints:
        """Move one prime factor between two random parts of each choice, if that is valid."""
        num = len(choices)
        factors = self.options[choices]
        primes = np.array(_primes(self.extent) or (1,))
        prime = primes[rng.integers(len(primes), size=num)]
        rows = np.arange(num)
        source = rng.integers(self.parts, size=num)
        goal = (source + rng.integers(1, max(self.parts, 2), size=num)) % self.parts
        moves = factors[rows, source] % prime == 0
        moved = factors.copy()
        moved[rows, source] //= np.where(moves, prime, 1)
        moved[rows, goal] *= np.where(moves, prime, 1)
        indices = self.choices(moved)
        neighbours: Ints = np.where(indices < 0, choices, indices)
        return neighbours

    def choices(self, factors: Ints) -> Ints:
        """Return the indices of the options that equal the rows of factors; -1 if none does."""
        codes = self._codes(factors)
        index = np.minimum(np.searchsorted(self._own_codes, codes), len(self.options) - 1)
        matches: Ints = np.where((self.options[index] == factors).all(axis=1), index, -1)
        return matches

    @cached_property
    def _own_codes(self) -> Ints:
        return self._codes(self.options)

    def _codes(self, factors: Ints) -> Ints:
        """Encode rows of factors as integers in the same, lexicographic, order."""
        divisor_list = np.array(divisors(self.extent))
        digits = np.searchsorted(divisor_list, factors)
        codes = np.zeros(len(factors), np.int64)
        for position in range(self.parts - 1):  # the last factor follows from the others
            codes = codes * len(divisor_list) + digits[:, position]
        return codes


@dataclass(frozen=True)
class ChoiceKnob:
    """A choice among `values`. Decides a `sample_categorical` instruction."""

    values: tuple[int, ...]

    def __str__(self) -> str:
        """Return the decision in words."""
        return f"one of {_shortened(self.values)}: {len(self.values)} options"

    @cached_property
    def options(self) -> Ints:
        """The values, a row each."""
        return np.array(self.values, np.int64)[:, None]

    def decision(self, choice: int) -> int:
        """Return the decision, as a trace holds it, of an option: its index."""
        return choice

    def choice(self, decision: tuple[int, ...] | int) -> int | None:
        """Return the index of the option that equals a trace's decision; None if none does."""
        if not isinstance(decision, int) or not 0 <= decision < len(self.values):
            return None
        return decision

    def neighbours(self, choices: Ints, rng: np.random.Generator) -> Ints:
        """Move each choice to the previous or next value; stay within the ends."""
        steps = rng.choice(np.array([-1, 1]), size=len(choices))
        moved: Ints = np.clip(choices + steps, 0, len(self.values) - 1)
        return moved


@dataclass(frozen=True)
class CutKnob(ChoiceKnob):
    """The length of the pieces of `extent`, one of `values`. The last piece may be shorter.

    Its columns are the number of pieces and their length.
    """

    extent: int

    def __str__(self) -> str:
        """Return the decision in words."""
        return f"{self.extent} in pieces of {_shortened(self.values)}: {len(self.values)} options"

    @cached_property
    def options(self) -> Ints:
        """The numbers and the lengths of the pieces, a row for each value."""
        sizes = np.array(self.values, np.int64)
        return np.stack([-(-self.extent // sizes), sizes], axis=1)


@dataclass(frozen=True)
class ScaledKnob(ChoiceKnob):
    """A number of groups of `unit` elements each, one of `values`.

    Its columns are the number of elements and the number of groups.
    """

    unit: int

    def __str__(self) -> str:
        """Return the decision in words."""
        return f"{_shortened(self.values)} times {self.unit}: {len(self.values)} options"

    @cached_property
    def options(self) -> Ints:
        """The numbers of elements and of groups, a row for each value."""
        groups = np.array(self.values, np.int64)
        return np.stack([self.unit * groups, groups], axis=1)


Knob: TypeAlias = TileKnob | ChoiceKnob


def _shortened(values: tuple[int, ...]) -> str:
    if len(values) <= SHOWN:
        return ", ".join(map(str, values))
    return f"{values[0]}, {values[1]} ... {values[-1]}"


@lru_cache(maxsize=256)
def _factorizations(extent: int, parts: int, max_innermost: int) -> Ints:
    if num_tiles(extent, parts, max_innermost) > MAX_OPTIONS:
        rng = Random(0)
        drawn = {sample_tile(rng, extent, parts, max_innermost) for _ in range(MAX_OPTIONS // 4)}
        options = np.array(sorted(drawn), np.int64)
    else:
        options = _every_factorization(extent, parts, max_innermost)
    options.setflags(write=False)
    return options


def _every_factorization(extent: int, parts: int, max_innermost: int) -> Ints:
    # Rows for the innermost parts of each divisor, grown from the inside out.
    rows = {d: np.array([[d]], np.int64) for d in divisors(extent) if d <= max_innermost}
    for position in range(1, parts):
        totals = divisors(extent) if position < parts - 1 else (extent,)
        grown: dict[int, Ints] = {}
        for total in totals:
            blocks = [
                np.hstack([np.full((len(rows[total // d]), 1), d), rows[total // d]])
                for d in divisors(total)
                if total // d in rows
            ]
            if blocks:
                grown[total] = np.vstack(blocks)
        rows = grown
    return rows[extent]


@lru_cache(maxsize=256)
def _primes(number: int) -> tuple[int, ...]:
    """Return the different prime factors of a number."""
    primes: list[int] = []
    divisor = 2
    while divisor * divisor <= number:
        if number % divisor == 0:
            primes.append(divisor)
            while number % divisor == 0:
                number //= divisor
        divisor += 1
    return (*primes, number) if number > 1 else tuple(primes)
