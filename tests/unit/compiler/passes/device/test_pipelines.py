"""Pipelines on devices: guarded stages without a tail, and asynchronous copies."""

from __future__ import annotations

import pytest

from compiler.driver import inspect
from compiler.ir.core.nodes import Call, Evaluate, For, If, IntImm, Stmt, static_int
from compiler.ir.core.visit import walk_stmts
from compiler.ir.interpret.oracle.oracle import interpret, random_inputs
from compiler.ops.spec import from_spec
from compiler.passes.common.thread_loops import is_barrier
from compiler.passes.device.kernel import DeviceKernel
from tests.unit.compiler.passes.device.checked_lowering import lower_checked
from tests.unit.compiler.passes.device.gpu_schedules import pipelined_matmul

PRODUCT = from_spec("matmul:4,8,32")
EXPECTED = interpret(PRODUCT, random_inputs(PRODUCT, 0))


def kernel_of(stages: int, *, is_async: bool) -> DeviceKernel:
    (kernel,) = lower_checked(pipelined_matmul(stages, is_async=is_async).func, EXPECTED).kernels
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
    loop = steps_of(kernel_of(3, is_async=True))
    assert static_int(loop.extent) == 4
    assert all(calls(node) for node in walk_stmts(loop) if isinstance(node, If))


def test_copies_are_vectors() -> None:
    kernel = kernel_of(2, is_async=True)
    copies = [
        node.value
        for node in walk_stmts(kernel.body)
        if isinstance(node, Evaluate)
        and isinstance(node.value, Call)
        and node.value.name == "async_copy"
    ]
    assert [copy.args[2] for copy in copies] == [IntImm(8)] * 4


def test_the_emulator_finds_no_early_access() -> None:
    inspection = inspect(pipelined_matmul(3, is_async=True), "cuda -gpu=h200 -emulated")
    assert inspection.emulation is not None
    assert inspection.emulation.is_correct, inspection.emulation.summary
    assert "cp.async" in inspection.source.text


def test_plain_stages_have_one_barrier_a_step() -> None:
    kernel = kernel_of(2, is_async=False)
    assert sum(map(is_barrier, walk_stmts(steps_of(kernel)))) == 1
