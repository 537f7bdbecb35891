"""Programs become kernels that compute what the evaluator computes, in any order of threads."""

from __future__ import annotations

from compiler.ir.interpret.oracle.oracle import interpret, random_inputs
from compiler.ops.spec import from_spec
from compiler.script.parser import parse
from tests.property.generators.threads import THREADS
from tests.unit.compiler.passes.device.checked_lowering import lower_checked
from tests.unit.compiler.passes.device.gpu_schedules import tiled_matmul
from tests.unit.compiler.passes.threads.programs import program

SMALL_PRODUCT = from_spec("matmul:8,16,8")
PRODUCT = interpret(SMALL_PRODUCT, random_inputs(SMALL_PRODUCT, 0))


def test_a_tiled_product_is_one_kernel_with_its_tiles_in_shared_memory() -> None:
    lowered = lower_checked(tiled_matmul().func, PRODUCT)
    (kernel,) = lowered.kernels
    assert kernel.grid == (2, 1, 1)
    assert kernel.block == (4, 4, 1)
    assert [buffer.name for buffer in kernel.buffers] == ["A", "B", "C"]
    assert [buffer.name for buffer in kernel.written] == ["C"]
    assert sorted(kernel.shared_offsets.values()) == [0, 128]
    assert kernel.shared_bytes == 128 + 8 * 4 * 4
    assert lowered.workspaces == ()


def test_virtual_threads_share_the_tiles() -> None:
    (kernel,) = lower_checked(tiled_matmul(vthread=2).func, PRODUCT).kernels
    assert kernel.block == (2, 2, 1)
    assert kernel.shared_bytes == 128 + 8 * 4 * 4


def test_threads_exchange_data_through_shared_memory() -> None:
    for name in sorted(THREADS.keys() - {"reduced_by_threads", "shared_by_blocks"}):
        body = THREADS[name].replace("{n}", "8").replace("{m}", "4").lstrip()
        lower_checked(parse(f"@T.prim_func\ndef main({body}"))


def test_memory_of_threads_that_two_kernels_use_is_a_workspace() -> None:
    body = THREADS["shared_by_blocks"].replace("{n}", "8").lstrip()
    lowered = lower_checked(parse(f"@T.prim_func\ndef main({body}"))
    assert [buffer.name for buffer in lowered.workspaces] == ["B", "E"]
    assert all(buffer.scope == "global" for buffer in lowered.workspaces)
    assert len(lowered.kernels) == 2


def test_a_statement_outside_of_the_loops_over_an_axis_is_the_first_threads() -> None:
    func = program(
        """
for bx in T.thread_binding(2, thread="blockIdx.x"):
    with T.sblock("both"):
        vx = T.axis.remap("S", [bx])
        T.reads(A[0:64])
        T.writes(B[0:64])
        S = T.sblock_alloc_buffer((4,), scope="shared")
        S[0] = A[vx]
        T.tvm_storage_sync("shared")
        S[1] = S[0] + A[vx + 32]
        T.tvm_storage_sync("shared")
        for tx in T.thread_binding(32, thread="threadIdx.x"):
            B[vx * 32 + tx] = S[1] + A[tx]
"""
    )
    (kernel,) = lower_checked(func).kernels
    assert kernel.block == (32, 1, 1)


def test_iterations_of_the_host_are_launches_with_their_numbers() -> None:
    func = program(
        """
for t in range(3):
    for tx in T.thread_binding(16, thread="threadIdx.x"):
        with T.sblock("step"):
            vt = T.axis.opaque(3, t)
            vx = T.axis.spatial(16, tx)
            T.reads(B[0:64], A[0:64])
            T.writes(B[0:64])
            B[(vt + 1) * 16 + vx] = T.if_then_else(vt == 0, A[vx], B[vt * 16 + 15 - vx]) + A[vx]
for i in range(16):
    with T.sblock("first"):
        vi = T.axis.remap("S", [i])
        B[vi] = A[vi]
"""
    )
    lowered = lower_checked(func)
    step = lowered.kernels[0]
    assert [variable.name for variable in step.scalars] == ["t"]
    assert [launch.scalars for launch in lowered.launches] == [(0,), (1,), (2,), ()]
