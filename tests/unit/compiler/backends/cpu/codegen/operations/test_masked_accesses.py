"""Masked loads and stores: the instructions of each CPU, and where no mask is needed."""

from __future__ import annotations

import re

import pytest

from compiler import te
from compiler.backends.cpu.codegen.machine_code import disassemble
from compiler.driver import emit
from compiler.ir.core.program import PrimFunc
from compiler.schedule.schedule import Schedule
from compiler.target.cpu import CpuTarget
from tests.targets import level
from tests.unit.compiler.backends.cpu.codegen.programs import check_against_evaluation


def partial(function: str) -> PrimFunc:
    """Return a function of the 50 elements of rows, in vectors of 64."""
    A = te.placeholder((8, 50), "float32", name="A")
    B = te.compute((8, 50), lambda i, j: getattr(te, function)(A[i, j]), name="B")
    schedule = Schedule(te.create_prim_func([A, B]))
    _, j = schedule.get_loops("B")
    _, lanes = schedule.split(j, [None, 64])
    schedule.vectorize(lanes)
    return schedule.func


@pytest.mark.parametrize(
    ("cpu", "load", "store"),
    [
        ("x86-64-v3", r"vmaskmovps .*\(.*%ymm", r"vmaskmovps %ymm.*\(.*\)$"),
        ("znver5", r"vmovups .*\(.*\{%k\d\} \{z\}", r"vmovups .*\{%k\d\}$"),
        ("neoverse-v2", r"ld1w \{ z\d+\.s \}, p\d/z", r"st1w \{ z\d+\.s \}, p\d"),
        ("sifive-x280", r"vle32\.v .*, v0\.t", r"vse32\.v .*, v0\.t"),
    ],
)
@pytest.mark.parametrize("function", ["sqrt", "exp"])
def test_partial_vectors_are_masked_without_branches(
    cpu: str, load: str, store: str, function: str
) -> None:
    """Also those of `exp`, which are longer than a register."""
    target = CpuTarget(f"cpu -mcpu={cpu} -num-cores=1")
    text = disassemble(emit(partial(function), target).text, target).replace("\t", " ")
    assert re.search(load, text, re.MULTILINE), text
    assert re.search(store, text, re.MULTILINE), text
    assert not re.search(r"^ (?:tbn?z|test[bl]) ", text, re.MULTILINE), text


@pytest.mark.parametrize("function", ["sqrt", "exp"])
def test_partial_vectors_are_correct(function: str) -> None:
    check_against_evaluation(partial(function))


def test_panels_with_room_for_whole_tiles_are_read_without_masks() -> None:
    A, B = te.placeholder((6, 20), "float32", name="A"), te.placeholder((20, 45), name="B")
    k = te.reduce_axis((0, 20), name="k")
    C = te.compute((6, 45), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    schedule = Schedule(te.create_prim_func([A, B, C]))
    schedule.cache_read("C", 1, "global")
    schedule.transform_layout(
        "C", ("read", 1), lambda r, j: (j // 16, r, j % 16), assume_injective_transform=True
    )
    i, j, r = schedule.get_loops("C")
    rows, row = schedule.split(i, [None, 4])
    columns, column = schedule.split(j, [None, 16])
    schedule.reorder(rows, columns, r, row, column)
    schedule.unroll(row)
    schedule.vectorize(column)
    check_against_evaluation(schedule.func)
    text = emit(schedule.func, level(3)).text
    sums = [part for part in text.split("\nloop") if "llvm.fmuladd" in part and "phi" in part]
    assert any("select i1" in part for part in sums), "a tile has rows beyond the end of A"
    assert not any("masked" in part.split("\nafter")[0] for part in sums)
