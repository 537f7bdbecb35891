"""Tiles of registers transposed by shuffles, so that a copy reads and writes whole rows.

A CPU without scatter stores a vector whose lanes lie apart one lane at a time. If the copies of a
statement in an unrolled loop fill the gaps, their vectors are transposed in registers instead.
First, rows are interleaved within each 128 bits, which is one instruction a vector on x86
(`unpcklps`, `punpcklbw`) and ARM (`zip1`, `zip2`). Then the 128-bit parts are joined.

Example, 4 rows of 4 floats:

    a0 a1 a2 a3      a0 c0 a1 c1      a0 b0 c0 d0
    b0 b1 b2 b3  ->  a2 c2 a3 c3  ->  a1 b1 c1 d1
    c0 c1 c2 c3      b0 d0 b1 d1      a2 b2 c2 d2
    d0 d1 d2 d3      b2 d2 b3 d3      a3 b3 c3 d3
"""

from __future__ import annotations

from dataclasses import dataclass

from compiler.backends.cpu.codegen.text.builder import CodeBuilder

# Shuffles across 128-bit parts take longer than those within, on x86.
GRANULE_BITS = 128


@dataclass(frozen=True, slots=True)
class _Shuffler:
    """Emits shuffles of vectors of one type of lanes."""

    builder: CodeBuilder
    scalar: str

    def shuffle(self, pair: tuple[str, str], lanes: int, picks: list[int]) -> str:
        """Pick lanes of two vectors of `lanes` lanes, counted through both."""
        if pair == ("poison", "poison"):
            return "poison"
        kind = f"<{lanes} x {self.scalar}>"
        mask = ", ".join(f"i32 {pick}" for pick in picks)
        operands = f"{kind} {pair[0]}, {kind} {pair[1]}"
        return self.builder.emit(f"shufflevector {operands}, <{len(picks)} x i32> <{mask}>")


def transpose(
    builder: CodeBuilder, rows: list[str], scalar: str, lanes: int, bits: int
) -> list[str]:
    """Return the columns of a tile: `lanes` vectors with as many lanes as there are rows.

    Args:
        rows: Vectors of `lanes` lanes, a power of two; at most as many of them.
        scalar: The type of a lane.
        bits: The width of a lane.
    """
    granule = min(lanes, max(GRANULE_BITS // bits, 1))
    height = min(granule, _power_of_two(len(rows)))
    shuffler = _Shuffler(builder, scalar)
    groups = []
    for first in range(0, len(rows), height):
        group = rows[first : first + height]
        group += ["poison"] * (height - len(group))
        groups.append(_interleaved(shuffler, group, lanes, granule))
    columns = []
    for lane in range(lanes):
        # In a granule, `width` columns follow one another in each vector.
        width = granule // height
        start = lane - lane % granule + lane % width * height
        parts = [group[lane % granule // width] for group in groups]
        columns.append(_gathered(shuffler, parts, lanes, range(start, start + height), len(rows)))
    return columns


def _power_of_two(number: int) -> int:
    return 1 << (number - 1).bit_length()


def _interleaved(shuffler: _Shuffler, rows: list[str], lanes: int, granule: int) -> list[str]:
    """Transpose the part of some rows, a power of two of them, that lies in each granule."""
    for _ in range(len(rows).bit_length() - 1):
        half = len(rows) // 2
        following = []
        for pair in zip(rows[:half], rows[half:], strict=True):
            for offset in (0, granule // 2):
                picks = [
                    base + offset + lane + source * lanes
                    for base in range(0, lanes, granule)
                    for lane in range(granule // 2)
                    for source in (0, 1)
                ]
                following.append(shuffler.shuffle(pair, lanes, picks))
        rows = following
    return rows


def _gathered(shuffler: _Shuffler, parts: list[str], lanes: int, picked: range, count: int) -> str:
    """Join the same few lanes of each of some vectors, `count` in all."""
    if len(parts) <= 2:
        a, b = (*parts, "poison")[:2]
        both = [*picked, *(lane + lanes for lane in picked)]
        return shuffler.shuffle((a, b), lanes, both[:count])
    half = _power_of_two(len(parts)) // 2
    size = half * len(picked)
    low = _gathered(shuffler, parts[:half], lanes, picked, size)
    # A shuffle requires two vectors of one type: the lanes that are missing are never picked.
    missing = ["poison"] * (2 * half - len(parts))
    high = _gathered(shuffler, [*parts[half:], *missing], lanes, picked, size)
    return shuffler.shuffle((low, high), size, list(range(count)))
