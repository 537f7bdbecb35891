"""Threads share the copies of tiles that `read_at` and `write_at` make."""

from __future__ import annotations

import pytest

import loopwright as lw
from compiler.backends.cuda.text.emit import emit_cuda
from compiler.passes.device.lower import lower_for_device
from compiler.passes.device.share_copies import share_copies
from compiler.target.gpus import ARCHS
from tests.unit.tuner.space.gpu_spaces import emulate

MATMUL = """
@T.prim_func
def main(A: T.Buffer(({m}, 32), "float32"), B: T.Buffer((32, 32), "float32"),
         C: T.Buffer(({m}, 32), "float32")):
    for by in T.thread_binding(2, thread="blockIdx.y"):
        for bx in T.thread_binding(2, thread="blockIdx.x"):
            for vx in T.thread_binding(2, thread="vthread.x"):
                for ty in T.thread_binding({ty}, thread="threadIdx.y"):
                    for tx in T.thread_binding(8, thread="threadIdx.x"):
                        for k0 in range(8):
                            for k1, i in T.grid(4, 4):
                                with T.sblock("C"):
                                    vi = T.axis.S({m}, by * {ty} * 4 + ty * 4 + i)
                                    vj = T.axis.S(32, bx * 16 + vx * 8 + tx)
                                    vk = T.axis.R(32, k0 * 4 + k1)
                                    with T.init():
                                        C[vi, vj] = T.float32(0)
                                    C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
"""

COPY = """
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((32, 8), "float32")):
    with T.sblock("root"):
        S = T.sblock_alloc_buffer((8,), scope="{scope}")
        for tx in T.thread_binding(32, thread="threadIdx.x"):
            with T.sblock("S"):
                T.where({where})
                T.sblock_attr({{"auto_copy": True}})
                for i in range(8):
                    S[i] = A[i]
            for j in range(8):
                with T.sblock("B"):
                    vi, vj = T.axis.remap("SS", [tx, j])
                    T.where({where})
                    B[vi, vj] = S[vj]
"""


@pytest.mark.parametrize("rows", [4, 3])
def test_tiles_that_the_threads_divide_and_that_they_do_not(rows: int) -> None:
    func = lw.parse(MATMUL.format(m=rows * 8, ty=rows))
    sch = lw.Schedule(func)
    loops = sch.get_loops("C")
    sch.read_at(loops[5], "C", "A", "shared")
    sch.read_at(loops[5], "C", "B", "shared")
    sch.write_at(loops[4], "C", "C", "shared")
    text = emit_cuda(lower_for_device(sch.func, ARCHS["sm_80"]))
    assert text.count("step < ") == 3
    assert f"step * {rows * 8} + ty * 8 + tx" in text
    # The emulator reports each race, and each read of what no thread wrote.
    emulate(func, sch)


@pytest.mark.parametrize(
    ("scope", "where"), [("local", "T.bool(True)"), ("shared", "tx < 16")], ids=["own", "some"]
)
def test_copies_of_one_thread_or_for_some_threads_stay(scope: str, where: str) -> None:
    body = lw.parse(COPY.format(scope=scope, where=where)).body
    assert share_copies(body) is body


def test_a_copy_for_all_threads_is_shared() -> None:
    body = lw.parse(COPY.format(scope="shared", where="T.bool(True)")).body
    assert share_copies(body) is not body
