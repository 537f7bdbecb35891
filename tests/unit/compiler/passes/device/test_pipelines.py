"""Pipelines on devices: guarded stages in one loop, and asynchronous copies."""

from __future__ import annotations

from itertools import groupby

import pytest

from compiler.driver import inspect
from compiler.ir.core.nodes import (
    Allocate,
    Call,
    Compare,
    Evaluate,
    For,
    If,
    IntImm,
    Stmt,
    Store,
    static_int,
)
from compiler.ir.core.visit import walk_stmts
from compiler.ir.interpret.oracle.oracle import interpret, random_inputs
from compiler.ops.spec import from_spec
from compiler.passes.common.thread_loops import is_barrier
from compiler.passes.device.kernel import DeviceKernel
from tests.unit.compiler.passes.device.checked_lowering import lower_checked
from tests.unit.compiler.passes.device.gpu_schedules import pipelined_matmul

PRODUCT = from_spec("matmul:4,8,32")
EXPECTED = interpret(PRODUCT, random_inputs(PRODUCT, 0))


def kernel_of(
    stages: int, *, is_async: bool = False, has_local_stages: bool = False
) -> DeviceKernel:
    schedule = pipelined_matmul(stages, is_async=is_async, has_local_stages=has_local_stages)
    (kernel,) = lower_checked(schedule.func, EXPECTED).kernels
    return kernel


def calls(stmt: Stmt) -> list[str]:
    """Return the names of the calls that a statement makes for their effect, in order."""
    effects = [node.value for node in walk_stmts(stmt) if isinstance(node, Evaluate)]
    return [call.name for call in effects if isinstance(call, Call)]


def steps_of(kernel: DeviceKernel) -> For:
    """Return the loop over the steps of the pipeline."""
    (loop,) = (n for n in walk_stmts(kernel.body) if isinstance(n, For) and n.var.name == "k_0")
    return loop


@pytest.mark.parametrize("stages", [2, 3, 6])
def test_copies_run_ahead_of_the_sums(stages: int) -> None:
    kernel = kernel_of(stages, is_async=True)
    loop = steps_of(kernel)
    # Wait, show the copies of all threads, issue new ones, and only then compute.
    assert calls(loop) == [
        *("async_wait_group", "tvm_storage_sync", "async_copy", "async_copy"),
        "async_commit_group",
    ]
    waits = [
        node.value.args[0]
        for node in walk_stmts(loop)
        if isinstance(node, Evaluate) and isinstance(node.value, Call) and node.value.args
    ]
    assert waits[0] == IntImm(stages - 2)
    assert kernel.shared_bytes == stages * (4 * 8 + 8 * 4) * 4


def test_all_steps_are_in_one_loop() -> None:
    kernel = kernel_of(3, is_async=True)
    loop = steps_of(kernel)
    assert static_int(loop.extent) == 4 + 2
    assert calls(kernel.body) == calls(loop)
    # Copies for the two last steps, and sums in the two first ones, are guarded.
    conditions = [node.condition for node in walk_stmts(loop) if isinstance(node, If)]
    assert [(c.op, c.rhs) for c in conditions if isinstance(c, Compare)] == [
        ("<", IntImm(4)),
        ("<", IntImm(4)),
        (">=", IntImm(2)),
    ]


def test_copies_are_vectors() -> None:
    kernel = kernel_of(2, is_async=True)
    copies = [
        node.value
        for node in walk_stmts(kernel.body)
        if isinstance(node, Evaluate)
        and isinstance(node.value, Call)
        and node.value.name == "async_copy"
    ]
    assert [copy.args[2] for copy in copies] == [IntImm(8)] * 2


def test_the_emulator_finds_no_early_access() -> None:
    inspection = inspect(pipelined_matmul(3, is_async=True), "cuda -gpu=h200 -emulated")
    assert inspection.emulation is not None
    assert inspection.emulation.is_correct, inspection.emulation.summary
    assert "cp.async" in inspection.source.text


def test_plain_stages_have_one_barrier_a_step() -> None:
    kernel = kernel_of(2)
    assert sum(map(is_barrier, walk_stmts(steps_of(kernel)))) == 1


def stored_scopes(stmt: Stmt) -> list[str]:
    """Return the scopes that a statement stores to, in order, neighbours once."""
    scopes = [node.buffer.scope for node in walk_stmts(stmt) if isinstance(node, Store)]
    return [scope for scope, _ in groupby(scopes)]


@pytest.mark.parametrize("stages", [2, 3])
def test_local_stages_load_before_the_sums_and_store_after_them(stages: int) -> None:
    kernel = kernel_of(stages, has_local_stages=True)
    loop = steps_of(kernel)
    assert stored_scopes(loop) == ["local", "shared"]
    loads = [
        node.buffer.name
        for node in walk_stmts(loop)
        if isinstance(node, Store) and node.buffer.scope == "local"
    ]
    assert loads == ["A_shared_local", "B_shared_local", "C_local"]
    assert sum(map(is_barrier, walk_stmts(loop))) == 1
    assert kernel.shared_bytes == stages * (4 * 8 + 8 * 4) * 4


def test_the_elements_of_a_local_stage_are_those_of_one_thread() -> None:
    kernel = kernel_of(2, has_local_stages=True)
    sizes = {
        node.buffer.name: [static_int(extent) for extent in node.buffer.shape]
        for node in walk_stmts(kernel.body)
        if isinstance(node, Allocate) and node.buffer.name.endswith("_shared_local")
    }
    # 32 elements, 16 threads, vectors of 2.
    assert sizes == {"A_shared_local": [1, 2], "B_shared_local": [1, 2]}


def test_the_emulator_finds_no_race_of_local_stages() -> None:
    inspection = inspect(pipelined_matmul(2, has_local_stages=True), "cuda -gpu=h200 -emulated")
    assert inspection.emulation is not None
    assert inspection.emulation.is_correct, inspection.emulation.summary
