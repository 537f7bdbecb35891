"""`tensorize`: what takes the place of a block, and each requirement refused."""

from __future__ import annotations

import numpy as np
import pytest

from compiler import te
from compiler.driver import build
from compiler.ir.core.nodes import (
    BlockRealize,
    static_shape,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.verify.verify import verify
from compiler.schedule.intrinsics.tensor_intrin import TensorIntrin
from compiler.schedule.schedule import Schedule
from compiler.script.parser import parse
from tests.unit.compiler.schedule.schedule_asserts import becomes, computes_the_same, refused


@pytest.fixture(autouse=True)
def _registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget, after each test, what it registered."""
    monkeypatch.setattr(TensorIntrin, "_registered", dict(TensorIntrin._registered))


def product(n: int = 16, m: int = 16, k: int = 16, *, transposed: bool = False) -> PrimFunc:
    """Return a matrix product, its second factor transposed or not."""
    A = te.placeholder((n, k), name="A")
    B = te.placeholder((m, k) if transposed else (k, m), name="B")
    r = te.reduce_axis((0, k), "k")

    def element(i: te.Value, j: te.Value) -> te.Reduction:
        return te.sum(A[i, r] * (B[j, r] if transposed else B[r, j]), axis=r)

    C = te.compute((n, m), element, "C")
    return te.create_prim_func([A, B, C], "main")


def tiled(func: PrimFunc, *tile: int) -> Schedule:
    """Return a schedule of a product in tiles."""
    schedule = Schedule(func)
    pairs = [
        schedule.split(loop, [None, size])
        for loop, size in zip(schedule.get_loops("C"), tile, strict=True)
    ]
    schedule.reorder(*(outer for outer, _ in pairs), *(inner for _, inner in pairs))
    return schedule


def runs(func: PrimFunc, schedule: Schedule) -> None:
    """Hold the compiled program against NumPy, by way of the evaluator for the other."""
    verify(schedule.func)
    computes_the_same(func, schedule.func)
    rng = np.random.default_rng(0)
    shapes = [static_shape(buffer) for buffer in func.buffers]
    A, B = (rng.integers(-3, 4, shape).astype("float32") for shape in shapes[:2])
    got, expected = (np.zeros(shapes[2], "float32") for _ in range(2))
    build(schedule.func, "cpu")(A, B, got)
    build(func, "cpu")(A, B, expected)
    np.testing.assert_array_equal(got, expected)


def test_tensorize_of_a_row_by_vectors() -> None:
    func = product(8, 16, 8)
    schedule = Schedule(func)
    i, j, k = schedule.get_loops("C")
    j_0, j_1 = schedule.split(j, [None, 8])
    schedule.reorder(i, j_0, k, j_1)
    schedule.decompose_reduction("C", k)
    schedule.tensorize(j_1, "row_update_8_f32")
    runs(func, schedule)
    becomes(
        schedule,
        """
@T.prim_func
def main(
    A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 16), "float32"), C: T.Buffer((8, 16), "float32")
):
    T.func_attr({"tir.noalias": True})
    for i, j_0 in T.grid(8, 2):
        for j_1 in range(8):
            with T.sblock("C_init"):
                vi = T.axis.spatial(8, i)
                vj = T.axis.spatial(16, j_0 * 8 + j_1)
                C[vi, vj] = T.float32(0)
        for k in range(8):
            with T.sblock("C_update_o"):
                vi_o, vj_o, vk_o = T.axis.remap("SSR", [i, j_0, k])
                T.reads(
                    C[vi_o, vj_o * 8:vj_o * 8 + 8],
                    A[vi_o, vk_o],
                    B[vk_o, vj_o * 8:vj_o * 8 + 8],
                )
                T.writes(C[vi_o, vj_o * 8:vj_o * 8 + 8])
                A_1 = T.match_buffer(A[vi_o, vk_o], (1,))
                B_1 = T.match_buffer(B[vk_o, vj_o * 8:vj_o * 8 + 8], (8,))
                C_1 = T.match_buffer(C[vi_o, vj_o * 8:vj_o * 8 + 8], (8,))
                C_1[0:8] = C_1[0:8] + T.Broadcast(A_1[0], 8) * B_1[0:8]
""",
    )


def test_tensorize_of_the_notes_gemm8x8_with_its_reset_and_update() -> None:
    func = product(16, 16, 32, transposed=True)
    schedule = tiled(func, 8, 8, 8)
    outer = schedule.blockize(schedule.get_loops("C")[3])
    init = schedule.decompose_reduction(outer, schedule.get_loops(outer)[2])
    schedule.tensorize(init, "fill_zero")
    schedule.tensorize(outer, "fuse_gemm8x8_add")
    runs(func, schedule)


def test_tensorize_of_a_whole_reduction_takes_its_init_too() -> None:
    func = product(16, 16, 8, transposed=True)
    schedule = tiled(func, 8, 8, 8)
    schedule.tensorize(schedule.get_loops("C")[3], "gemm8x8")
    runs(func, schedule)
    block = schedule.get(schedule.get_block("C_o"))
    assert isinstance(block, BlockRealize)
    assert block.block.init is None


def test_tensorize_of_bytes() -> None:
    text = """
@T.prim_func
def main(A: T.Buffer((4, 32), "uint8"), B: T.Buffer((6, 32), "int8"), C: T.Buffer((4, 6), "int32")):
    for i, j, k in T.grid(4, 6, 32):
        with T.sblock("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = 0
            C[vi, vj] = C[vi, vj] + T.Cast("int32", A[vi, vk]) * T.Cast("int32", B[vj, vk])
"""
    schedule = Schedule(parse(text))
    _, _, k = schedule.get_loops("C")
    k_0, k_1 = schedule.split(k, [None, 16])
    schedule.decompose_reduction("C", k_0)
    schedule.tensorize(k_1, "dot_16_u8s8s32_avx2")
    verify(schedule.func)
    computes_the_same(parse(text), schedule.func)


def test_a_matrix_of_a_batch_is_tensorized_where_it_lies() -> None:
    A, B = te.placeholder((3, 8, 8), name="A"), te.placeholder((3, 8, 8), name="B")
    r = te.reduce_axis((0, 8), "k")
    C = te.compute((3, 8, 8), lambda b, i, j: te.sum(A[b, i, r] * B[b, j, r], axis=r), "C")
    func = te.create_prim_func([A, B, C], "main")
    schedule = Schedule(func)
    schedule.tensorize(schedule.get_loops("C")[1], "gemm8x8")
    runs(func, schedule)
    assert "T.match_buffer(A[vb_o, 0:8, 0:8], (8, 8))" in schedule.func.script().replace(
        "v_b", "vb"
    )


@pytest.mark.parametrize(
    "statement", ["C[0:8] = A[0:8]", 'T.call_extern("int32", "copy8", C.data, A.data)']
)
def test_annotations_of_both_are_kept_those_of_the_block_first(statement: str) -> None:
    desc = parse(f"""
@T.prim_func
def desc(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
{COPY_BODY}
""")
    impl = parse(f"""
@T.prim_func
def impl(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    with T.sblock("root"):
        T.reads(A[0:8])
        T.writes(C[0:8])
        T.sblock_attr({{"speed": 1, "power": 2}})
        {statement}
""")
    TensorIntrin.register("copy", desc, impl, override=True)
    schedule = Schedule(parse(COPY))
    outer = schedule.blockize(schedule.get_loops("C")[1])
    schedule.annotate(outer, "speed", 3)
    schedule.tensorize(outer, "copy")
    block = schedule.get(outer)
    assert isinstance(block, BlockRealize)
    assert dict(block.block.annotations) == {"speed": 3, "power": 2}


COPY_BODY = """
    for i in range(8):
        with T.sblock("copy"):
            vi = T.axis.spatial(8, i)
            C[vi] = A[vi]
"""
COPY = """
@T.prim_func
def main(A: T.Buffer((4, 8), "float32"), C: T.Buffer((4, 8), "float32")):
    for i, j in T.grid(4, 8):
        with T.sblock("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj]
"""


# Requirements


def test_tensorize_refuses_an_unknown_intrinsic() -> None:
    schedule = Schedule(product())
    with refused(schedule, 'there is no intrinsic "nothing"; there are:', at="def main"):
        schedule.tensorize(schedule.get_loops("C")[2], "nothing")


def test_tensorize_refuses_the_root() -> None:
    schedule = Schedule(product())
    with refused(schedule, '"root" is the root block', at="def main"):
        schedule.tensorize("root", "gemm8x8")


def test_tensorize_refuses_what_blockize_refuses() -> None:
    schedule = Schedule(product(12, 20, 16))
    schedule.split(schedule.get_loops("C")[1], [None, 8])
    loop = schedule.get_loops("C")[2]
    with refused(schedule, "can't be divided between the inner loops", at='"C"'):
        schedule.tensorize(loop, "gemm8x8")


def test_tensorize_refuses_a_reduction_whose_init_the_intrinsic_lacks() -> None:
    schedule = tiled(product(transposed=True), 8, 8, 8)
    with refused(schedule, "has an init, and the intrinsic has none", at="for i_1 in"):
        schedule.tensorize(schedule.get_loops("C")[3], "fuse_gemm8x8_add")


def test_tensorize_refuses_a_part_of_a_reduction_for_all_of_it() -> None:
    schedule = tiled(product(transposed=True), 8, 8, 8)
    with refused(schedule, "holds a part of its reduction only", at="for i_1 in"):
        schedule.tensorize(schedule.get_loops("C")[3], "gemm8x8")


@pytest.mark.parametrize(
    ("tile", "transposed", "reason"),
    [
        ((4, 8, 8), True, "loop i_1 has 4 iterations: the description has 8"),
        ((8, 8, 8), False, "buffer B is indexed by"),
    ],
)
def test_tensorize_refuses_another_computation(
    tile: tuple[int, ...], transposed: bool, reason: str
) -> None:
    schedule = tiled(product(transposed=transposed), *tile)
    k_0 = schedule.get_loops("C")[2]
    schedule.decompose_reduction("C", k_0)
    with refused(schedule, reason, at="for i_1 in"):
        schedule.tensorize(
            schedule.get_loops(schedule.get_block("C_update"))[3], "fuse_gemm8x8_add"
        )


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('"float32"', '"float64"', "is float64 in global memory: C of the description is float32"),
        ("A[vi, vj]", "A[vi, vj] + T.float32(1)", "T.float32(1.0): the description has A[vi]"),
        ("C[vi, vj] = A[vi, vj]", "C[vi, vj] = A[vi, 7 - vj]", "buffer A is indexed by"),
        ("range(8)", "T.unroll(8)", "loop j is unrolled: the description's is serial"),
        (
            "range(8)",
            'T.serial(8, annotations={"x": 1})',
            "the annotations of loop j differ from the description's",
        ),
        ("C[vi, vj] = A[vi, vj]", "C[vi, vj] = C[vi, vj]", "C would be both C, which"),
    ],
)
def test_tensorize_refuses_what_differs_from_the_description(
    old: str, new: str, reason: str
) -> None:
    desc = parse(f"""
@T.prim_func
def desc(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
{COPY_BODY}
""")
    impl = parse("""
@T.prim_func
def impl(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    C[0:8] = A[0:8]
""")
    TensorIntrin.register("copy", desc, impl)
    text = COPY.replace(
        """    for i, j in T.grid(4, 8):
        with T.sblock("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C""",
        """    for i in range(4):
        for j in range(8):
            with T.sblock("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C""",
    )
    schedule = Schedule(parse(text))
    schedule.tensorize(schedule.get_loops("C")[1], "copy")

    schedule = Schedule(parse(text.replace(old, new)))
    with refused(schedule, reason, at="for j in"):
        schedule.tensorize(schedule.get_loops("C")[1], "copy")


def test_tensorize_refuses_a_block_with_views() -> None:
    schedule = tiled(product(transposed=True, k=8), 8, 8, 8)
    schedule.tensorize(schedule.get_loops("C")[3], "gemm8x8")
    with refused(schedule, "block C_o has views already", at='"C_o"'):
        schedule.tensorize("C_o", "gemm8x8")


def test_tensorize_refuses_a_box_that_does_not_begin_where_the_view_says() -> None:
    desc = parse(f"""
@T.prim_func
def desc(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
{COPY_BODY}
""")
    impl = parse("""
@T.prim_func
def impl(A: T.Buffer((8,), "float32", offset_factor=8), C: T.Buffer((8,), "float32")):
    C[0:8] = A[0:8]
""")
    TensorIntrin.register("aligned", desc, impl)
    schedule = Schedule(parse(COPY))
    schedule.tensorize(schedule.get_loops("C")[1], "aligned")
    schedule = Schedule(parse(COPY.replace("Buffer((4, 8)", "Buffer((4, 12)")))
    with refused(schedule, "A of the intrinsic begins at a multiple of 8", at="for j in"):
        schedule.tensorize(schedule.get_loops("C")[1], "aligned")


def test_tensorize_refuses_a_box_of_other_strides() -> None:
    desc = parse("""
@T.prim_func
def desc(A: T.Buffer((2, 8), "float32"), C: T.Buffer((2, 8), "float32")):
    for i, j in T.grid(2, 8):
        with T.sblock("copy"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj]
""")
    impl = parse("""
@T.prim_func
def impl(A: T.Buffer((2, 8), "float32", strides=(8, 1)), C: T.Buffer((2, 8), "float32")):
    for i in range(2):
        C[i, 0:8] = A[i, 0:8]
""")
    TensorIntrin.register("dense", desc, impl)
    for width in (8, 16):
        text = COPY.replace("Buffer((4, 8)", f"Buffer((4, {width})")
        schedule = Schedule(parse(text))
        i, _ = schedule.get_loops("C")
        _, i_1 = schedule.split(i, [None, 2])
        if width == 8:
            schedule.tensorize(i_1, "dense")
            continue
        with refused(schedule, "has a stride of 8: in A it is 16", at="for i_1 in"):
            schedule.tensorize(i_1, "dense")
