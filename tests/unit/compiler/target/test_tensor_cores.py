"""The maps of fragments are those of the PTX ISA, and each element has one place."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from compiler.target.tensor_cores import MMA_INSTRUCTIONS, WGMMA_INSTRUCTIONS, FragmentMap

Place = tuple[int, int]


# The formulas of the PTX ISA: groupID = lane >> 2, threadID_in_group = lane % 4, element i.


def half_a(lane: int, i: int) -> Place:
    row = lane >> 2 if i in (0, 1, 4, 5) else (lane >> 2) + 8
    return row, lane % 4 * 2 + (i & 1) + (8 if i >= 4 else 0)


def half_b(lane: int, i: int) -> Place:
    return lane % 4 * 2 + (i & 1) + (8 if i >= 2 else 0), lane >> 2


def sums(lane: int, i: int) -> Place:
    return (lane >> 2) + (8 if i >= 2 else 0), lane % 4 * 2 + (i & 1)


def word_a(lane: int, i: int) -> Place:
    return (lane >> 2) + (8 if i in (1, 3) else 0), lane % 4 + (4 if i >= 2 else 0)


def word_b(lane: int, i: int) -> Place:
    return lane % 4 + (4 if i == 1 else 0), lane >> 2


def byte_a(lane: int, i: int) -> Place:
    row = lane >> 2 if i < 4 or 8 <= i < 12 else (lane >> 2) + 8
    return row, lane % 4 * 4 + (i & 3) + (16 if i >= 8 else 0)


def byte_b(lane: int, i: int) -> Place:
    return lane % 4 * 4 + (i & 3) + (16 if i >= 4 else 0), lane >> 2


DOCUMENTED: dict[int, tuple[Callable[[int, int], Place], ...]] = {
    8: (word_a, word_b, sums),
    16: (half_a, half_b, sums),
    32: (byte_a, byte_b, sums),
}


def maps() -> list[tuple[str, FragmentMap, Callable[[int, int], Place]]]:
    return [
        (f"{name} {role}", held, documented)
        for name, i in MMA_INSTRUCTIONS.items()
        for role, held, documented in zip(
            "abc", (i.a, i.b, i.c), DOCUMENTED[i.shape[2]], strict=True
        )
    ]


@pytest.mark.parametrize(("name", "held", "documented"), maps())
def test_a_fragment_map_is_the_documented_one(
    name: str, held: FragmentMap, documented: Callable[[int, int], Place]
) -> None:
    for lane in range(32):
        for element in range(held.num_elements):
            assert held.position(lane, element) == documented(lane, element), name


@pytest.mark.parametrize(("name", "held", "documented"), maps())
def test_each_element_of_a_tile_is_in_one_register_of_one_lane(
    name: str, held: FragmentMap, documented: object
) -> None:
    places = {
        held.position(lane, element) for lane in range(32) for element in range(held.num_elements)
    }
    assert places == {(r, c) for r in range(held.rows) for c in range(held.columns)}, name


def test_a_transposed_map_exchanges_rows_and_columns() -> None:
    b = MMA_INSTRUCTIONS["mma.m16n8k16.bf16.f32"].b
    assert (b.transposed.rows, b.transposed.columns) == (8, 16)
    assert all(
        b.transposed.position(lane, element) == b.position(lane, element)[::-1]
        for lane in range(32)
        for element in range(4)
    )


def test_an_instruction_multiplies_tiles_that_fit_together() -> None:
    for name, instruction in MMA_INSTRUCTIONS.items():
        m, n, k = instruction.shape
        assert (instruction.a.rows, instruction.a.columns) == (m, k), name
        assert (instruction.b.rows, instruction.b.columns) == (k, n), name
        assert (instruction.c.rows, instruction.c.columns) == (m, n), name


@pytest.mark.parametrize("columns", [8, 72, 256])
def test_sums_of_a_warpgroup_are_where_the_isa_has_them(columns: int) -> None:
    held = WGMMA_INSTRUCTIONS[f"wgmma.m64n{columns}k16.bf16.f32"].c
    assert (held.num_lanes, held.num_elements) == (128, columns // 2)
    places = set()
    for lane in range(128):
        for i in range(held.num_elements):
            row = 16 * (lane // 32) + lane % 32 // 4 + 8 * (i % 4 // 2)
            assert held.position(lane, i) == (row, 8 * (i // 4) + lane % 4 * 2 + i % 2)
            places.add(held.position(lane, i))
    assert places == {(r, c) for r in range(64) for c in range(columns)}
