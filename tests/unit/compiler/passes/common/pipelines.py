"""Loops with the annotations of software pipelines."""

from __future__ import annotations

from compiler.ir.core.program import PrimFunc
from compiler.script.parser import parse

PROGRAM = """
@T.prim_func(s_tir=True)
def main(A: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
    for tx in T.thread_binding(16, thread="threadIdx.x"):
        for i in T.serial({extent}, annotations={annotations}):
            with T.sblock("iteration"):
                T.reads(A[tx, i])
                T.writes(C[tx, i])
                B = T.sblock_alloc_buffer((16, 1), scope="shared")
                D = T.sblock_alloc_buffer((16, 1), scope="{scope}")
                with T.sblock("p"):
                    T.reads(A[tx, i])
                    T.writes(B[tx, 0])
                    T.sblock_attr({attributes})
                    B[tx, 0] = A[tx, i] * T.float32(2)
                with T.sblock("q"):
                    T.reads(B[0:16, 0])
                    T.writes(D[tx, 0])
                    D[tx, 0] = B[15 - tx, 0] + T.float32(1)
                with T.sblock("c"):
                    T.reads(D[tx, 0])
                    T.writes(C[tx, i])
                    C[tx, i] = D[tx, 0] + T.float32(1)
"""


def program(
    annotations: dict[str, object],
    *,
    extent: int = 16,
    scope: str = "shared",
    attributes: dict[str, object] | None = None,
) -> PrimFunc:
    text = PROGRAM.format(
        annotations=annotations, extent=extent, scope=scope, attributes=attributes or {}
    )
    return parse(text.replace("                    T.sblock_attr({})\n", ""))


def pipelined(
    stages: object, order: object, *, extent: int = 16, scope: str = "shared", **more: object
) -> PrimFunc:
    keys = {"stage": stages, "order": order, **more}
    notes = {f"software_pipeline_{key}": value for key, value in keys.items() if value is not None}
    return program(notes, extent=extent, scope=scope)
