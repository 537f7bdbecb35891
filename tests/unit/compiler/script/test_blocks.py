"""Blocks, loops and memory of today's programs: each is read, printed and read back."""

import numpy as np
import pytest

from compiler.ir.core.nodes import (
    Allocate,
    AnnotationDict,
    Block,
    For,
    IntImm,
    Var,
)
from compiler.ir.core.visit import walk
from tests.unit.compiler.script.round_trips import (
    block_named,
    in_block,
    outputs,
    round_tripped,
)

A = np.linspace(-2, 2, 8, dtype="float32")


def test_a_view_of_a_region_has_strides_and_an_offset_of_its_own() -> None:
    func = round_tripped("""
@T.prim_func(s_tir=True)
def main(A: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
    for i, j in T.grid(4, 4):
        with T.sblock("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi * 4:vi * 4 + 4, vj * 4:vj * 4 + 4])
            T.writes(C[vi * 4:vi * 4 + 4, vj * 4:vj * 4 + 4])
            first = T.int32()
            A_1 = T.match_buffer(A[vi * 4:vi * 4 + 4, vj * 4:vj * 4 + 4], (4, 4), \
strides=("s0", "s1"), elem_offset=first, offset_factor=4)
            C_1 = T.match_buffer(C[vi * 4:vi * 4 + 4, vj * 4:vj * 4 + 4], strides=(16, 1))
            T.evaluate(A_1.strides[0] * 4 + A_1.elem_offset + A_1.shape[0] + A.strides[0])
            for ii, jj in T.grid(4, 4):
                C_1[ii, jj] = A_1[ii, jj]
""")
    first, second = block_named(func, "C").match_buffers
    assert [s.name for s in first.buffer.strides if isinstance(s, Var)] == ["s0", "s1"]
    assert isinstance(first.buffer.elem_offset, Var)
    assert first.buffer.offset_factor == 4
    assert second.buffer.shape == (IntImm(4), IntImm(4))
    assert "T.evaluate(A_1.strides[0] * 4 + first + 4 + 16)" in func.script()
    a = np.arange(256, dtype="float32").reshape(16, 16)
    np.testing.assert_array_equal(outputs(func, A=a)["C"], a)


def test_the_offset_of_a_view_is_named_by_its_buffer() -> None:
    func = in_block(
        "T.evaluate(A_1.elem_offset + A.elem_offset)\nB[vi] = A_1[0]",
        "A_1 = T.match_buffer(A[vi:vi + 1], (1,), offset_factor=1)\n",
    )
    (match,) = block_named(func, "B").match_buffers
    assert isinstance(match.buffer.elem_offset, Var)
    assert "T.evaluate(A_1_elem_offset + 0)" in func.script()


def test_blocks_may_have_no_iterators_or_opaque_ones() -> None:
    func = round_tripped("""
@T.prim_func(s_tir=True)
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.sblock("outer"):
            T.reads(A[i])
            T.writes(B[i])
            with T.sblock("opaque"):
                vi, vj = T.axis.remap("OS", [i, i])
                B[vi] = A[vj]
        with T.sblock("opaque"):
            vi = T.axis.opaque(8, i)
            vs = T.axis.scan(8, i)
            B[vi] = A[vs] + 1.0
""")
    kinds = [
        [iv.kind for iv in block.iter_vars] for block in walk(func.body) if isinstance(block, Block)
    ]
    assert kinds == [[], [], ["opaque", "spatial"], ["opaque", "scan"]]


def test_the_one_block_of_a_function_is_its_root_whatever_its_name() -> None:
    text = """
@T.prim_func(s_tir=True)
def main(A: T.Buffer((8,), "float32")):
    with T.sblock("generic"):
        T.reads()
        T.writes()
        for i in T.parallel(8):
            A[i] = T.float32(0)
"""
    func = round_tripped(text)
    assert func.root.name == "generic"
    assert 'with T.sblock("generic"):' in func.script()


def test_a_root_that_holds_one_block_without_iterators_is_written_out() -> None:
    text = """
@T.prim_func(s_tir=True)
def main(A: T.Buffer((8,), "float32")):
    with T.sblock("root"):
        T.reads()
        T.writes()
        with T.sblock("inner"):
            T.reads()
            T.writes(A[0:8])
            for i in range(8):
                A[i] = T.float32(0.0)
"""
    func = round_tripped(text)
    assert func.root.name == "root"
    assert "\n".join(func.script().splitlines()[2:]) == text.strip().split("\n", 2)[2]


def test_annotations_nest() -> None:
    func = in_block(
        "B[vi] = 0.0",
        'T.sblock_attr({"b": {"x": [1, [2, T.bool(True)]]}, "a": T.int64(3), "c": T.float32(1)})\n',
    )
    assert block_named(func, "B").annotations == (
        ("b", AnnotationDict((("x", (1, (2, True))),))),
        ("a", 3),
        ("c", 1.0),
    )


def test_loops_start_anywhere_and_step() -> None:
    func = round_tripped("""
@T.prim_func(s_tir=True)
def main(A: T.Buffer((32,), "int32")):
    for i in range(2, 8):
        A[i] = 1
    for i in T.serial(8, 12, annotations={"a": [1]}):
        A[i] = 2
    for i in range(12, 20, 3):
        A[i] = 3
    for i, j in T.grid((20, 2), (0, 2)):
        A[i + j] = 4
    for i in T.thread_binding(24, 28, thread="threadIdx.x"):
        A[i] = 5
""")
    got = outputs(func, A=np.zeros(32, "int32"))["A"]
    wanted = (
        [0, 0] + [1] * 6 + [2] * 4 + [3, 0, 0, 3, 0, 0, 3, 0] + [4, 4, 4, 0] + [5] * 4 + [0] * 4
    )
    assert got.tolist() == wanted


def test_threads_are_launched() -> None:
    func = round_tripped("""
@T.prim_func(s_tir=True)
def main(A: T.Buffer((64,), "float32")):
    bx = T.launch_thread("blockIdx.x", 4)
    tx = T.env_thread("threadIdx.x")
    with T.launch_thread(tx, 16):
        A[bx * 16 + tx] = 1.0
""")
    assert [(f.thread, f.extent) for f in walk(func.body) if isinstance(f, For)] == [
        ("blockIdx.x", IntImm(4)),
        ("threadIdx.x", IntImm(16)),
    ]


@pytest.mark.parametrize(
    "allocation",
    [
        'X = T.alloc_buffer((8,), "float32", scope="local")',
        "X = T.alloc_local((8,))",
        'X = T.allocate([8], "float32", "local")',
        'X = T.decl_buffer((8,), "float32", scope="local")',
    ],
)
def test_storage_is_allocated_between_statements(allocation: str) -> None:
    func = in_block(f"B[vi] = 0.0\n{allocation}\nX[0] = A[vi]\nB[vi] = X[0]")
    (found,) = (node for node in walk(func.body) if isinstance(node, Allocate))
    assert found.buffer.scope == "local"
    np.testing.assert_array_equal(outputs(func, A=A)["B"], A)


def test_regions_of_wide_integers_print_as_tvm_does() -> None:
    func = round_tripped("""
@T.prim_func(s_tir=True)
def main(A: T.Buffer((T.int64(8),), "float32")):
    with T.sblock("root"):
        T.reads()
        T.writes()
        with T.sblock("A"):
            T.reads()
            T.writes(A[T.int64(0):T.int64(8)])
            for i in range(T.int64(8)):
                A[i] = T.float32(0.0)
""")
    assert "T.writes(A[T.int64(0):T.int64(8)])" in func.script()
