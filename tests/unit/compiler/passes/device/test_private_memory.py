"""Intermediate results get memory of a thread, of a block, or of the device."""

from __future__ import annotations

from dataclasses import replace

import pytest

from compiler.ir.core.nodes import Allocate, BlockRealize, For, IntImm, Stmt
from compiler.ir.core.visit import transform, walk_stmts
from compiler.passes.common.error import LoweringError
from compiler.passes.device.kernel import DeviceProgram
from compiler.passes.device.lower import lower_for_device
from compiler.script.parser import parse
from tests.unit.compiler.passes.device.checked_lowering import LIMITS, lower_checked

HEAD = """
@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32")):
    W = T.alloc_buffer((16, 16), "float32")
"""


def scopes(program: DeviceProgram) -> dict[str, str]:
    return {
        node.buffer.name: node.buffer.scope
        for kernel in program.kernels
        for node in walk_stmts(kernel.body)
        if isinstance(node, Allocate)
    }


def test_values_of_a_thread_are_in_local_memory() -> None:
    program = lower_checked(
        parse(
            HEAD
            + """
    for i in T.thread_binding(16, thread="threadIdx.x"):
        for j in range(16):
            with T.block("W"):
                vi, vj = T.axis.remap("SS", [i, j])
                W[vi, vj] = A[vi, vj] * 2.0
        for j in range(16):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = W[vi, 15 - vj] + 1.0
"""
        )
    )
    assert scopes(program) == {"W": "local"}
    assert program.workspaces == ()


def test_values_that_threads_exchange_stay_in_global_memory() -> None:
    program = lower_checked(
        parse(
            HEAD
            + """
    for i in T.thread_binding(16, thread="blockIdx.x"):
        for j in T.thread_binding(16, thread="threadIdx.x"):
            with T.block("W"):
                vi, vj = T.axis.remap("SS", [i, j])
                W[vi, vj] = A[vi, vj] * 2.0
        for j in T.thread_binding(16, thread="threadIdx.x"):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = W[vi, 15 - vj] + 1.0
"""
        )
    )
    assert scopes(program) == {}
    assert [buffer.name for buffer in program.workspaces] == ["W"]


OVERLAPPING = (
    HEAD
    + """
    for i in T.thread_binding(8, thread="blockIdx.x"):
        for r in range({rows}):
            for j in T.thread_binding(16, thread="threadIdx.x"):
                with T.block("W"):
                    vi = T.axis.spatial(16, i + r)
                    vj = T.axis.spatial(16, j)
                    W[vi, vj] = A[vi, vj] * 2.0
        for j in T.thread_binding(16, thread="threadIdx.x"):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = W[vi, 15 - vj] + W[vi + {ahead}, 15 - vj]
"""
)


def test_values_that_two_blocks_compute_are_in_shared_memory() -> None:
    program = lower_checked(parse(OVERLAPPING.format(rows=2, ahead=1)))
    assert scopes(program) == {"W": "shared"}
    assert program.kernels[0].shared_bytes == 2 * 16 * 4


def test_blocks_that_would_wait_for_each_other_are_refused() -> None:
    func = parse(OVERLAPPING.format(rows=3, ahead=2))

    def shorter(stmt: Stmt) -> Stmt | None:
        is_long = isinstance(stmt, For) and stmt.extent == IntImm(3)
        return replace(stmt, extent=IntImm(2)) if is_long and isinstance(stmt, For) else None

    body = transform(func.body, on_stmt=shorter)
    assert isinstance(body, BlockRealize)
    with pytest.raises(LoweringError, match="but can't wait for each other"):
        lower_for_device(replace(func, body=body), LIMITS)
