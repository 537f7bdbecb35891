"""The requirements of `cache_read` and `cache_write`: each one refused, with the place marked."""

from __future__ import annotations

import pytest

from compiler.schedule.schedule import Schedule
from tests.unit.compiler.schedule.refusals import (
    HALF,
    INPUT_OVERWRITTEN,
    PREFIX_SUM,
    TWO_WRITERS,
    matmul_relu,
    refused,
    scheduled,
)


def test_cache_read_refuses_a_read_that_is_not_there() -> None:
    sch = Schedule(matmul_relu())
    with refused(sch, "block Y has no read 2; it has 0: A, 1: B", at='"Y"'):
        sch.cache_read("Y", 2, "shared")
    with refused(sch, "block Y does not read Z, but A, B", at='"Y"'):
        sch.cache_read("Y", "Z", "shared")


def test_cache_read_refuses_a_consumer_that_does_not_read() -> None:
    sch = Schedule(matmul_relu())
    with refused(sch, "block C does not read A in the scope of block Y", at='"Y"'):
        sch.cache_read("Y", 0, "shared", consumer_blocks=["C"])


def test_cache_read_refuses_what_the_block_writes() -> None:
    sch = Schedule(matmul_relu())
    sch.decompose_reduction("Y", sch.get_loops("Y")[2])
    with refused(sch, "block Y_update writes Y, which it reads", at='"Y_update"'):
        sch.cache_read("Y_update", 0, "local")


def test_cache_read_refuses_a_reader_before_the_last_writer() -> None:
    sch = scheduled(INPUT_OVERWRITTEN)
    with refused(sch, "block B reads A before it is written for the last time", at='"B"'):
        sch.cache_read("B", 0, "local")


@pytest.mark.parametrize("scope", ["", "a b", "local.", "1"])
def test_caches_refuse_what_names_no_scope(scope: str) -> None:
    sch = Schedule(matmul_relu())
    with refused(sch, f'"{scope}" is not the name of a memory scope', at='"Y"'):
        sch.cache_read("Y", 0, scope)
    with refused(sch, f'"{scope}" is not the name of a memory scope', at='"Y"'):
        sch.cache_write("Y", 0, scope)


def test_cache_write_refuses_a_write_that_is_not_there() -> None:
    sch = Schedule(matmul_relu())
    with refused(sch, "block Y has no write 1; it has 0: Y", at='"Y"'):
        sch.cache_write("Y", 1, "local")
    with refused(sch, "block Y does not write A, but Y", at='"Y"'):
        sch.cache_write("Y", "A", "local")


def test_cache_write_refuses_an_update() -> None:
    sch = Schedule(matmul_relu())
    sch.decompose_reduction("Y", sch.get_loops("Y")[2])
    with refused(sch, "block Y_update adds to what Y held before", at='"Y_update"'):
        sch.cache_write("Y_update", 0, "local")


def test_cache_write_refuses_a_second_writer() -> None:
    sch = scheduled(TWO_WRITERS)
    with refused(sch, "block B is not the only one that writes B: so does B2", at='"B2"'):
        sch.cache_write("B", 0, "local")


def test_cache_write_refuses_a_block_that_writes_no_box() -> None:
    sch = scheduled(HALF)
    sch.cache_write("C", 0, "local")
    sch = scheduled(
        HALF.replace(
            "T.axis.spatial(16, i)\n            T.reads(B",
            "T.axis.spatial(16, i * 2)\n            T.reads(B",
        )
    )
    with refused(sch, "block C is not proved to finish a box of C", at='"C"'):
        sch.cache_write("C", 0, "local")


def test_cache_write_refuses_partial_results() -> None:
    sch = scheduled(PREFIX_SUM)
    with refused(sch, "block S is not proved to finish a box of S", at='"S"'):
        sch.cache_write("S", 0, "local")


def test_caches_refuse_what_is_declared_but_not_touched() -> None:
    text = HALF.replace("T.reads(B[vi])", "T.reads(B[vi], A[vi])")
    sch = scheduled(text)
    with refused(sch, "block C does not read A", at='"C"'):
        sch.cache_read("C", "A", "local")
    sch = scheduled(HALF.replace("T.writes(B[vi])", "T.writes(B[vi], C[vi])"))
    with refused(sch, "block B does not write C", at='"B"'):
        sch.cache_write("B", "C", "local")
