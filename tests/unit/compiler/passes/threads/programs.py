"""Programs of threads."""

from __future__ import annotations

import pytest

from compiler.backends.error import BuildError
from compiler.driver import build
from compiler.ir.core.program import PrimFunc
from compiler.script.parser import parse
from tests.unit.compiler.backends.cpu.codegen.programs import ONE_CORE

VECTORS = 'A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")'


def program(body: str, params: str = VECTORS) -> PrimFunc:
    """Return the program of a body that is written at its own margin."""
    lines = (f"    {line}" for line in body.strip("\n").splitlines())
    return parse("\n".join(["@T.prim_func(s_tir=True)", f"def main({params}):", *lines]))


TRANSPOSE = program(
    """
for bx in T.thread_binding(4, thread="blockIdx.x"):
    for by in T.thread_binding(4, thread="blockIdx.y"):
        with T.sblock("tile"):
            vx, vy = T.axis.remap("SS", [bx, by])
            T.reads(A[0:64, 0:64])
            T.writes(B[0:64, 0:64])
            S = T.sblock_alloc_buffer((16, 16), scope="shared")
            for tx in T.thread_binding(16, thread="threadIdx.x"):
                for i in range(16):
                    S[tx, i] = A[vx * 16 + tx, vy * 16 + i]
                T.tvm_storage_sync("shared")
                for i in range(16):
                    B[vy * 16 + tx, vx * 16 + i] = S[i, tx]
""",
    'A: T.Buffer((64, 64), "float32"), B: T.Buffer((64, 64), "float32")',
)


def refused(body: str) -> str:
    func = program(body)
    with pytest.raises(BuildError) as caught:
        build(func, ONE_CORE)
    return str(caught.value)
