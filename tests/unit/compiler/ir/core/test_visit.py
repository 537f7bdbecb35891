"""Rewriting of programs: the accesses of some buffers."""

from __future__ import annotations

from compiler.ir.core.nodes import Buffer, Expr, IntImm, Load, make_buffer
from compiler.ir.core.visit import map_accesses, walk
from compiler.script.parser import parse

NESTED = """
@T.prim_func
def main(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
    for i in range(8):
        C[A[A[i]]] = A[i] + C[i]
"""


def test_nested_accesses_of_a_buffer_are_all_moved() -> None:
    func = parse(NESTED)
    old, wide = func.params[0], make_buffer("W", (2, 8), "int32")
    assert isinstance(old, Buffer)

    def moved(buffer: Buffer, indices: tuple[Expr, ...]) -> tuple[Buffer, tuple[Expr, ...]]:
        assert buffer == old
        return wide, (IntImm(1), *indices)

    body = map_accesses(func.body, {old}, moved)
    loads = [node.buffer for node in walk(body) if isinstance(node, Load)]
    assert sorted(buffer.name for buffer in loads) == ["C", "W", "W", "W"]


def test_a_statement_without_such_accesses_stays_the_same_object() -> None:
    body = parse(NESTED).body
    assert map_accesses(body, (), lambda buffer, indices: (buffer, indices)) is body
