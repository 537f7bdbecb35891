"""Shared buffers lie in one piece of memory; those that are not alive together may overlap."""

from __future__ import annotations

from tests.unit.compiler.passes.device.checked_lowering import lower_checked
from tests.unit.compiler.passes.device.kernels import barriers
from tests.unit.compiler.passes.threads.programs import program

PHASES = """
for tx in T.thread_binding(16, thread="threadIdx.x"):
    with T.sblock("phases"):
        vx = T.axis.remap("S", [tx])
        T.reads(A[0:64])
        T.writes(B[0:64])
        S = T.sblock_alloc_buffer((16,), scope="shared")
        R = T.sblock_alloc_buffer((16,), scope="shared")
        L = T.sblock_alloc_buffer((1,), scope="local")
        S[vx] = A[vx]
        T.tvm_storage_sync("shared")
        L[0] = S[15 - vx]
        R[vx] = A[vx + 16]
        T.tvm_storage_sync("shared")
        B[vx] = L[0] + R[15 - vx]{last}
"""


def test_buffers_used_one_after_another_overlap_behind_a_barrier() -> None:
    (kernel,) = lower_checked(program(PHASES.format(last=""))).kernels
    assert set(kernel.shared_offsets.values()) == {0}
    assert kernel.shared_bytes == 64
    assert barriers(kernel) == 3


def test_buffers_alive_together_are_apart_and_aligned() -> None:
    (kernel,) = lower_checked(program(PHASES.format(last=" + S[15 - vx]"))).kernels
    assert sorted(kernel.shared_offsets.values()) == [0, 128]
    assert barriers(kernel) == 2


def test_a_statement_does_not_write_where_it_reads() -> None:
    """Threads that are ahead would write what others have to read: no barrier divides it."""
    used_once = PHASES.format(last="").replace("R[vx] = A[vx + 16]", "R[vx] = S[15 - vx] * L[0]")
    (kernel,) = lower_checked(program(used_once)).kernels
    assert sorted(kernel.shared_offsets.values()) == [0, 128]
