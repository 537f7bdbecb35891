"""`cache_index`: which indices get a table."""

from __future__ import annotations

from compiler.ir.core.nodes import Load, Store
from compiler.ir.core.visit import walk, walk_stmts
from compiler.ir.verify.verify import verify
from tests.unit.compiler.schedule.schedule_asserts import becomes, refused, scheduled

TWICE = """
@T.prim_func
def main(A: T.Buffer((4, 4), "float32"), B: T.Buffer((12,), "float32")):
    for i in range(12):
        with T.sblock("B"):
            vi = T.axis.spatial(12, i)
            B[vi] = A[vi // 3, vi // 3] + A[vi % 4, 0]
"""


def test_frequent_indices_get_tables() -> None:
    sch = scheduled(TWICE)
    (table,) = sch.cache_index("B", "global", 2)
    assert table.of == "index_0"
    becomes(
        sch,
        TWICE.replace(
            "    for i in",
            """    index_var_0 = T.sblock_alloc_buffer((12,), "int32")
    for ax0 in range(12):
        with T.sblock("index_0"):
            v0 = T.axis.spatial(12, ax0)
            index_var_0[v0] = v0 // 3
    for i in""",
        ).replace(
            "            B[vi] = A[vi // 3, vi // 3]",
            """            T.reads(A[0:4, 0:4], index_var_0[vi])
            T.writes(B[vi])
            B[vi] = A[index_var_0[vi], index_var_0[vi]]""",
        ),
    )


def test_iterators_need_no_table() -> None:
    sch = scheduled(TWICE.replace("vi // 3, vi // 3", "vi // 3, vi % 4"))
    assert sch.cache_index("B", "global", 3) == []


def test_an_index_that_may_divide_by_zero_elsewhere_is_refused() -> None:
    sch = scheduled(TWICE.replace("vi // 3, vi // 3", "T.min(3 % (vi + 1), 3), 0"))
    with refused(sch, "divides by what may be zero elsewhere", at='"B"'):
        sch.cache_index("B", "global")


def test_reductions_are_refused() -> None:
    sch = scheduled("""
@T.prim_func
def main(A: T.Buffer((4, 8), "float32"), B: T.Buffer((8,), "float32")):
    for i, k in T.grid(8, 4):
        with T.sblock("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = 0.0
            B[vi] = B[vi] + A[vk, (vi + 1) % 8]
""")
    with refused(sch, "block B does more than to store once", at='"B"'):
        sch.cache_index("B", "global")


def test_what_concurrent_iterations_store_stays_an_expression() -> None:
    text = """
@T.prim_func
def main(A: T.Buffer((3, 5), "float32"), B: T.Buffer((3, 5), "float32")):
    for i in T.vectorized(15):
        with T.sblock("B"):
            v = T.axis.spatial(15, i)
            B[v // 5, v % 5] = A[v // 5, v % 5]
"""
    sch = scheduled(text)
    assert len(sch.cache_index("B", "global")) == 2
    stores = [n for n in walk_stmts(sch.func.body) if isinstance(n, Store) and n.buffer.name == "B"]
    assert len(stores) == 1
    assert not any(isinstance(node, Load) for index in stores[0].indices for node in walk(index))
    verify(sch.func)


STENCIL_OF_EACH_ITERATION = """
@T.prim_func
def main(A: T.Buffer((11,), "float32"), C: T.Buffer((9,), "float32")):
    B = T.sblock_alloc_buffer((11,))
    for i in T.parallel(9):
        for j in range(3):
            with T.sblock("B"):
                v_i = T.axis.spatial(11, i + j)
                B[v_i] = A[v_i] * T.float32(3)
        with T.sblock("C"):
            v_i = T.axis.spatial(9, i)
            C[v_i] = B[v_i] + B[v_i + 1] + B[v_i + 2]
"""


def test_cache_index_refuses_indices_by_which_parallel_iterations_would_share_a_buffer() -> None:
    """Loaded indices do not show that each iteration reads what it wrote."""
    sch = scheduled(STENCIL_OF_EACH_ITERATION)
    with refused(sch, "iterations of a parallel loop race", at="def main"):
        sch.cache_index("C", "global", 1)
