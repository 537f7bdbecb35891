"""What fits tensor intrinsics: loops, iterators, layouts; and the tiling that `tensorize` needs."""

from __future__ import annotations

import pytest

import loopwright as lw
from compiler.ir.core.nodes import For, IntImm
from tests.unit.compiler.schedule.schedule_asserts import becomes, scheduled

DENSE = """
@T.prim_func
def main(A: T.Buffer((64, 64), "uint8"), B: T.Buffer((4, 16, 16, 4), "int8"),
         C: T.Buffer((64, 64), "int32")):
    for i, j, k in T.grid(64, 64, 64):
        with T.sblock("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = 0
            C[vi, vj] = C[vi, vj] + T.cast(A[vi, vk], "int32") * T.cast(
                B[vj // 16, vk // 4, vj % 16, vk % 4], "int32")
"""


def conv(batch: int = 4) -> lw.Schedule:
    return scheduled(f"""
@T.prim_func
def main(X: T.Buffer(({batch}, 18, 18, 64), "float16"), W: T.Buffer((3, 3, 64, 32), "float16"),
         Y: T.Buffer(({batch}, 16, 16, 32), "float32")):
    for n, h, w, c, rh, rw, rc in T.grid({batch}, 16, 16, 32, 3, 3, 64):
        with T.sblock("Y"):
            vn, vh, vw, vc, vrh, vrw, vrc = T.axis.remap("SSSSRRR", [n, h, w, c, rh, rw, rc])
            with T.init():
                Y[vn, vh, vw, vc] = T.float32(0)
            Y[vn, vh, vw, vc] = Y[vn, vh, vw, vc] + T.cast(
                X[vn, vh + vrh, vw + vrw, vrc], "float32"
            ) * T.cast(W[vrh, vrw, vrc, vc], "float32")
""")


def test_loops_fit_those_of_an_intrinsic_in_any_order() -> None:
    sch = scheduled(DENSE)
    i, j, k = sch.get_loops("C")
    sch.reorder(k, i, j)
    info = sch.get_tensorize_loop_mapping("C", "dot_16x4_vnni")
    assert info is not None
    assert [sch.get(loop) for loop in info.loops] == [sch.get(j), sch.get(k)]
    assert info.block_iter_paddings is None


def test_extents_fit_or_are_padded() -> None:
    sch = scheduled(DENSE.replace("T.grid(64, 64, 64)", "T.grid(64, 63, 62)"))
    assert sch.get_tensorize_loop_mapping("C", "dot_16x4_vnni") is None
    info = sch.get_tensorize_loop_mapping("C", "dot_16x4_vnni", allow_padding=True)
    assert info is not None
    assert info.block_iter_paddings == (1, 16, 4)


def test_a_block_without_a_sum_has_no_loop_for_one() -> None:
    sch = scheduled("""
@T.prim_func
def main(A: T.Buffer((64, 64), "float32"), B: T.Buffer((64, 64), "float32")):
    for i, j in T.grid(64, 64):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + T.float32(1)
""")
    assert sch.get_tensorize_loop_mapping("B", "dot_16x4_vnni") is None
    assert sch.tile_with_tensor_intrin("B", "dot_16x4_vnni") is None
    assert {inst.name for inst in sch.trace.insts} == {"get_sblock"}


def test_fused_loops_do_not_fit() -> None:
    sch = scheduled(DENSE)
    _, j, k = sch.get_loops("C")
    sch.fuse(j, k)
    assert sch.get_tensorize_loop_mapping("C", "dot_16x4_vnni") is None


def test_tiles_are_what_tensorize_takes() -> None:
    sch = scheduled(DENSE)
    tile = sch.tile_with_tensor_intrin("C", "dot_16x4_vnni")
    assert tile is not None
    becomes(
        sch,
        DENSE.replace(
            "for i, j, k in T.grid(64, 64, 64)",
            "for i, j_0, k_0, j_1, k_1 in T.grid(64, 4, 16, 16, 4)",
        ).replace(
            'vi, vj, vk = T.axis.remap("SSR", [i, j, k])',
            """vi = T.axis.spatial(64, i)
            vj = T.axis.spatial(64, j_0 * 16 + j_1)
            vk = T.axis.reduce(64, k_0 * 4 + k_1)""",
        ),
    )
    sch.decompose_reduction("C", sch.get_loops("C")[2])
    sch.tensorize(tile, "dot_16x4_vnni")


def test_padded_tiles_compute_the_inputs_in_place() -> None:
    sch = scheduled("""
@T.prim_func
def main(A: T.Buffer((30, 30), "float16"), B: T.Buffer((30, 30), "float16"),
         D: T.Buffer((30, 30), "float16")):
    E = T.alloc_buffer((30, 30), "float16")
    C = T.alloc_buffer((30, 30), "float16")
    for i, j in T.grid(30, 30):
        with T.sblock("E"):
            vi, vj = T.axis.remap("SS", [i, j])
            E[vi, vj] = A[vi, vj] * T.float16(2)
    for i, j, k in T.grid(30, 30, 30):
        with T.sblock("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float16(0)
            C[vi, vj] = C[vi, vj] + E[vi, vk] * B[vk, vj]
    for i, j in T.grid(30, 30):
        with T.sblock("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = T.max(C[vi, vj], T.float16(0))
""")
    tile = sch.tile_with_tensor_intrin("C", "wmma_sync_16x16x16_f16f16f16", allow_padding=True)
    assert tile is not None
    # The inputs are computed in their padded copies, and the result is read without one.
    names = {child.of for child in sch.get_child_blocks("root")}
    assert "E" not in names
    assert len(names) == 4
    loops = [sch.get(loop) for loop in sch.get_loops("C")]
    extents = [loop.extent for loop in loops if isinstance(loop, For)]
    assert extents == [IntImm(size) for size in (2, 2, 2, 16, 16, 16)]


def test_a_refused_tiling_changes_nothing() -> None:
    sch = scheduled(DENSE)
    before = sch.func
    with pytest.raises(lw.ScheduleError, match='no intrinsic "nothing"'):
        sch.tile_with_tensor_intrin("C", "nothing")
    assert (sch.func, sch.trace.insts) == (before, ())


def test_iterators_of_a_convolution_are_rows_columns_and_steps() -> None:
    for batch in (4, 1):
        sch = conv(batch)
        index_map = sch.get_auto_tensorize_mapping_info("Y", "wmma_sync_16x16x16_f16f16f32")
        assert str(index_map) == (
            "lambda vn, vh, vw, vc, vrh, vrw, vrc: "
            "(vn * 256 + vh * 16 + vw, vc, vrh * 192 + vrw * 64 + vrc,)"
        )


def test_a_sum_of_other_types_has_no_map() -> None:
    assert conv().get_auto_tensorize_mapping_info("Y", "dot_16x4_vnni") is None


def test_the_layout_in_which_loops_read() -> None:
    sch = scheduled("""
@T.prim_func
def main(A: T.Buffer((8, 256), "float32"), B: T.Buffer((32, 64), "float32")):
    for i, j in T.grid(32, 64):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi // 16 * 4 + vj // 16, vi % 16 * 16 + vj % 16]
""")
    index_map = sch.suggest_layout("B", "A")
    assert str(index_map) == "lambda i0, i1: (i0 // 4, i1 // 16, i0 % 4, i1 % 16,)"
    assert str(sch.suggest_layout("B", ("write", 0))) == "lambda i0, i1: (i0, i1,)"


def test_loops_that_skip_elements_suggest_no_layout() -> None:
    sch = scheduled("""
@T.prim_func
def main(A: T.Buffer((64,), "float32"), B: T.Buffer((32,), "float32")):
    for i in range(32):
        with T.sblock("B"):
            vi = T.axis.spatial(32, i)
            B[vi] = A[vi * 2]
""")
    assert sch.suggest_layout("B", "A") is None


def test_output_blocks_write_what_is_outside_of_their_scope() -> None:
    sch = scheduled("""
@T.prim_func
def main(A: T.Buffer((64,), "float32"), C: T.Buffer((64,), "float32")):
    B = T.alloc_buffer((64,), "float32")
    for i in range(64):
        with T.sblock("B"):
            vi = T.axis.spatial(64, i)
            B[vi] = A[vi] + T.float32(1)
    for i in range(64):
        with T.sblock("C"):
            vi = T.axis.spatial(64, i)
            C[vi] = B[vi] * T.float32(2)
""")
    assert [sch.is_output_block(name) for name in ("B", "C")] == [False, True]
