"""Iterators divided between outer and inner loops."""

from __future__ import annotations

from itertools import product
from typing import Any

import loopwright as lw
from compiler import ops
from compiler.ir.core.nodes import BinOp, Expr, IntImm, Var
from compiler.schedule.legality.subspace import divide
from tests.unit.compiler.schedule.legality.positions import placed


def value(expr: Expr, env: dict[Var, int]) -> int:
    match expr:
        case Var():
            return env[expr]
        case IntImm(number):
            return number
        case BinOp(op, lhs, rhs):
            names = {"a": value(lhs, env), "b": value(rhs, env)}
            return int(eval(f"a {op} b", names))
        case _:
            raise AssertionError(expr)


def test_each_iterator_is_outer_times_size_plus_inner() -> None:
    sch = lw.Schedule(ops.relu(12, 20))
    i, j = sch.get_loops(sch.get_sblock("B"))
    i_outer, i_inner = sch.split(i, [3, 4])
    j_outer, j_inner = sch.split(j, [5, 4])
    sch.reorder(i_outer, j_outer, i_inner, j_inner)
    _, site = placed(sch.func, "B")
    division = divide(site, {loop.var for loop in site.loops[2:]}, keep_unit_loops=True)
    assert division is not None
    assert [part.size for part in division.outer] == [3, 5]
    assert [part.size for part in division.inner] == [4, 4]
    ranges: list[Any] = [range(3), range(5), range(4), range(4)]
    for point in product(*ranges):
        env = {loop.var: n for loop, n in zip(site.loops, point, strict=True)}
        for whole, outer, inner in zip(
            site.realize.iter_values, division.outer, division.inner, strict=True
        ):
            assert inner.size is not None
            expected = value(outer.value, env) * inner.size + value(inner.value, env)
            assert value(whole, env) == expected


def test_an_iterator_that_mixes_the_loops_is_not_divided() -> None:
    func = lw.parse("""
@T.prim_func
def main(A: T.Buffer((7,), "float32")):
    for i, j in T.grid(4, 4):
        with T.sblock("A"):
            v = T.axis.opaque(7, i + j)
            A[v] = T.float32(0)
""")
    _, site = placed(func, "A")
    assert divide(site, {site.loops[1].var}, keep_unit_loops=True) is None
