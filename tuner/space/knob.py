"""Knobs: the open decisions of a sketch, as tables of all their options.

A choice is the index of an option, so a batch of candidates is an array of indices, and whatever
is done to it (drawing, mutation, crossover) stays legal.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from compiler.schedule.sample import divisors

Ints: TypeAlias = npt.NDArray[np.int64]
MAX_OPTIONS = 1 << 16
"""Options of one knob; a tiling with more keeps an even sample of them."""


@dataclass(frozen=True)
class TileKnob:
    """How to write `extent` as a product of `parts` factors, the last at most `max_innermost`.

    Decides a `sample_perfect_tile` instruction.
    """

    extent: int
    parts: int
    max_innermost: int

    @cached_property
    def options(self) -> Ints:
        """All factorizations, a row each, in lexicographic order."""
        return _factorizations(self.extent, self.parts, self.max_innermost)

    def decision(self, choice: int) -> tuple[int, ...]:
        """Return the decision, as a trace holds it, of an option."""
        return tuple(self.options[choice].tolist())

    def choice(self, decision: tuple[int, ...] | int) -> int | None:
        """Return the index of the option that a trace's decision is, None if there is none."""
        if isinstance(decision, int) or len(decision) != self.parts:
            return None
        found = np.flatnonzero((self.options == np.array(decision)).all(axis=1))
        return int(found[0]) if len(found) else None

    def neighbours(self, choices: Ints, rng: np.random.Generator) -> Ints:
        """Move one prime factor between two random parts of each choice, where that is legal."""
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
        codes = self._codes(moved)
        place = np.minimum(np.searchsorted(self._own_codes, codes), len(self.options) - 1)
        found: Ints = np.where(self._own_codes[place] == codes, place, choices)
        return found

    @cached_property
    def _own_codes(self) -> Ints:
        return self._codes(self.options)

    def _codes(self, factors: Ints) -> Ints:
        """Encode rows of factors as integers in the same, lexicographic, order."""
        known = np.array(divisors(self.extent))
        digits = np.searchsorted(known, factors)
        codes = np.zeros(len(factors), np.int64)
        for part in range(self.parts - 1):  # the last factor follows from the others
            codes = codes * len(known) + digits[:, part]
        return codes


@dataclass(frozen=True)
class ChoiceKnob:
    """Which of `values` to take. Decides a `sample_categorical` instruction."""

    values: tuple[int, ...]

    @cached_property
    def options(self) -> Ints:
        """The values, a row each."""
        return np.array(self.values, np.int64)[:, None]

    def decision(self, choice: int) -> int:
        """Return the decision, as a trace holds it, of an option: its index."""
        return choice

    def choice(self, decision: tuple[int, ...] | int) -> int | None:
        """Return the index of the option that a trace's decision is, None if there is none."""
        if not isinstance(decision, int) or not 0 <= decision < len(self.values):
            return None
        return decision

    def neighbours(self, choices: Ints, rng: np.random.Generator) -> Ints:
        """Step to the value before or after each, within the ends."""
        steps = rng.choice(np.array([-1, 1]), size=len(choices))
        moved: Ints = np.clip(choices + steps, 0, len(self.values) - 1)
        return moved


Knob: TypeAlias = TileKnob | ChoiceKnob


@lru_cache(maxsize=256)
def _factorizations(extent: int, parts: int, max_innermost: int) -> Ints:
    all_divisors = divisors(extent)
    # Rows for the innermost k parts of each divisor, grown from the inside out.
    rows: dict[int, Ints] = {d: np.array([[d]]) for d in all_divisors if d <= max_innermost}
    for _ in range(parts - 1):
        grown: dict[int, Ints] = {}
        for total in all_divisors:
            blocks = [
                np.hstack([np.full((len(rows[total // d]), 1), d), rows[total // d]])
                for d in all_divisors
                if total % d == 0 and total // d in rows
            ]
            if blocks:
                grown[total] = np.vstack(blocks)
        rows = grown
    found = rows.get(extent)
    if found is None:  # one part only, and the extent is over its limit
        found = np.array([[extent]])
    if len(found) > MAX_OPTIONS:
        found = found[np.linspace(0, len(found) - 1, MAX_OPTIONS).astype(np.int64)]
    found.setflags(write=False)
    return found


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
