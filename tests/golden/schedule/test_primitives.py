"""Each primitive on a small program: what it rewrites, as text."""

from __future__ import annotations

from collections.abc import Callable

from compiler import te
from compiler.ir.core.program import PrimFunc
from compiler.ir.text.printer import script
from compiler.ir.verify.verify import verify
from compiler.schedule.schedule import Schedule
from tests.unit.compiler.schedule.schedule_asserts import computes_the_same

Golden = Callable[[str], None]


def matmul(n: int = 16, m: int = 16, k: int = 16) -> PrimFunc:
    A, B = te.placeholder((n, k), name="A"), te.placeholder((k, m), name="B")
    r = te.reduce_axis((0, k), "k")
    C = te.compute((n, m), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), "C")
    return te.create_prim_func([A, B, C], "matmul")


def matmul_relu() -> PrimFunc:
    A, B = te.placeholder((16, 16), name="A"), te.placeholder((16, 16), name="B")
    r = te.reduce_axis((0, 16), "k")
    Y = te.compute((16, 16), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), "Y")
    C = te.compute((16, 16), lambda i, j: te.max(Y[i, j], 0.0), "C")
    return te.create_prim_func([A, B, C], "matmul_relu")


def elementwise(n: int = 16) -> PrimFunc:
    A = te.placeholder((n, n), name="A")
    B = te.compute((n, n), lambda i, j: A[i, j] * 2.0, "B")
    C = te.compute((n, n), lambda i, j: B[i, j] + 1.0, "C")
    return te.create_prim_func([A, C], "elementwise")


def convolution() -> PrimFunc:
    """A convolution of stride 2 over a padded row."""
    A, W = te.placeholder((16,), name="A"), te.placeholder((3,), name="W")
    r = te.reduce_axis((0, 3), "r")
    P = te.compute((18,), lambda x: te.if_then_else(te.all(x >= 1, x < 17), A[x - 1], 0.0), "P")
    Y = te.compute((8,), lambda x: te.sum(P[x * 2 + r] * W[r], axis=r), "Y")
    return te.create_prim_func([A, W, Y], "convolution")


def change(schedule: Schedule, change_: Callable[[Schedule], object], rtol: float = 0.0) -> str:
    """Return the program before and after a change, and the calls that made it.

    A golden text may be updated without being read, so both programs must also compute the same,
    except if the layout of a parameter changes. Only other sums of floats differ by `rtol`.
    """
    before = schedule.func
    num_before = len(schedule.trace.instructions)
    change_(schedule)
    verify(schedule.func)
    if not schedule.layouts:
        computes_the_same(before, schedule.func, rtol)
    calls = schedule.trace.python().splitlines()[num_before:]
    return "\n".join([script(before), *(f"# {call}" for call in calls), "", script(schedule.func)])


def test_split(golden: Golden) -> None:
    schedule = Schedule(matmul())
    _, j, _ = schedule.get_loops("C")
    golden(change(schedule, lambda s: s.split(j, [None, 4])))


def test_split_by_a_factor_that_does_not_divide(golden: Golden) -> None:
    schedule = Schedule(elementwise(10))
    i, _ = schedule.get_loops("B")
    golden(change(schedule, lambda s: s.split(i, [None, 4])))


def test_split_of_a_split_repeats_no_guard(golden: Golden) -> None:
    schedule = Schedule(elementwise(10))
    i, _ = schedule.get_loops("B")
    i_0, _ = schedule.split(i, [None, 4])
    golden(change(schedule, lambda s: s.split(i_0, [2, 2])))


def test_fuse(golden: Golden) -> None:
    schedule = Schedule(matmul())
    i, j, _ = schedule.get_loops("C")
    golden(change(schedule, lambda s: s.fuse(i, j)))


def test_fuse_undoes_split(golden: Golden) -> None:
    schedule = Schedule(elementwise())
    i, _ = schedule.get_loops("B")
    golden(change(schedule, lambda s: s.fuse(*s.split(i, [None, 4]))))


def test_reorder(golden: Golden) -> None:
    schedule = Schedule(matmul())
    i, j, k = schedule.get_loops("C")
    golden(change(schedule, lambda s: s.reorder(k, i)))
    assert [schedule.get(loop) for loop in (i, j, k)]


def test_loop_partition(golden: Golden) -> None:
    schedule = Schedule(elementwise())
    i, _ = schedule.get_loops("B")
    golden(change(schedule, lambda s: s.loop_partition(i, [4, None])))


def test_merge(golden: Golden) -> None:
    schedule = Schedule(elementwise())
    (i, _), (other, _) = schedule.get_loops("B"), schedule.get_loops("C")
    golden(change(schedule, lambda s: s.merge(i, other)))


def test_add_unit_loop(golden: Golden) -> None:
    schedule = Schedule(matmul())
    i, _, _ = schedule.get_loops("C")

    def unit_loops(s: Schedule) -> None:
        s.add_unit_loop(i)
        s.add_unit_loop("C")

    golden(change(schedule, unit_loops))


def test_reorder_block_iter_var(golden: Golden) -> None:
    golden(change(Schedule(matmul()), lambda s: s.reorder_block_iter_var("C", [2, 0, 1])))


def test_parallel_vectorize_unroll(golden: Golden) -> None:
    schedule = Schedule(matmul())
    i, j, k = schedule.get_loops("C")

    def kinds(s: Schedule) -> None:
        s.parallel(i)
        s.unroll(k)
        s.reorder(k, j)
        s.vectorize(j)

    golden(change(schedule, kinds))


def test_bind(golden: Golden) -> None:
    schedule = Schedule(elementwise())
    i, j = schedule.get_loops("C")

    def threads(s: Schedule) -> None:
        s.bind(i, "blockIdx.x")
        s.bind(j, "threadIdx.x")

    golden(change(schedule, threads))


def test_compute_at(golden: Golden) -> None:
    schedule = Schedule(elementwise())
    i, j = schedule.get_loops("C")
    _, j_0, _ = (i, *schedule.split(j, [None, 4]))
    golden(change(schedule, lambda s: s.compute_at("B", j_0)))


def test_compute_at_of_a_window(golden: Golden) -> None:
    schedule = Schedule(convolution())
    x, _ = schedule.get_loops("Y")
    x_0, _ = schedule.split(x, [None, 4])
    golden(change(schedule, lambda s: s.compute_at("P", x_0)))


def test_compute_at_past_the_end(golden: Golden) -> None:
    schedule = Schedule(elementwise(10))
    i, _ = schedule.get_loops("C")
    i_0, _ = schedule.split(i, [None, 4])
    golden(change(schedule, lambda s: s.compute_at("B", i_0)))


def test_compute_at_of_a_reduction_with_unit_loops(golden: Golden) -> None:
    schedule = Schedule(matmul_relu())
    _, j = schedule.get_loops("C")
    golden(change(schedule, lambda s: s.compute_at("Y", j, preserve_unit_loops=True)))


def test_reverse_compute_at(golden: Golden) -> None:
    schedule = Schedule(matmul_relu())
    i, j, k = schedule.get_loops("Y")
    i_0, i_1 = schedule.split(i, [None, 4])
    schedule.reorder(i_0, j, k, i_1)
    golden(change(schedule, lambda s: s.reverse_compute_at("C", j)))


def test_reverse_compute_at_past_the_end(golden: Golden) -> None:
    schedule = Schedule(elementwise(10))
    i, _ = schedule.get_loops("B")
    i_0, _ = schedule.split(i, [None, 4])
    golden(change(schedule, lambda s: s.reverse_compute_at("C", i_0)))


def test_compute_inline(golden: Golden) -> None:
    golden(change(Schedule(convolution()), lambda s: s.compute_inline("P")))


def test_reverse_compute_inline(golden: Golden) -> None:
    golden(change(Schedule(elementwise()), lambda s: s.reverse_compute_inline("C")))


def test_cache_read(golden: Golden) -> None:
    golden(change(Schedule(matmul()), lambda s: s.cache_read("C", 0, "shared")))


def test_cache_read_of_an_intermediate(golden: Golden) -> None:
    schedule = Schedule(matmul_relu())
    i, _, _ = schedule.get_loops("Y")
    schedule.reverse_compute_at("C", i)
    golden(change(schedule, lambda s: s.cache_read("C", "Y", "local")))


def test_cache_write(golden: Golden) -> None:
    golden(change(Schedule(matmul()), lambda s: s.cache_write("C", 0, "local")))


def test_cache_write_next_to_its_reader(golden: Golden) -> None:
    schedule = Schedule(matmul_relu())
    i, _, _ = schedule.get_loops("Y")
    schedule.reverse_compute_at("C", i)
    golden(change(schedule, lambda s: s.cache_write("Y", 0, "local")))


def test_decompose_reduction(golden: Golden) -> None:
    schedule = Schedule(matmul())
    i, j, k = schedule.get_loops("C")
    j_0, j_1 = schedule.split(j, [None, 4])
    schedule.reorder(i, j_0, k, j_1)
    schedule.vectorize(j_1)
    golden(change(schedule, lambda s: s.decompose_reduction("C", k)))


def test_annotate(golden: Golden) -> None:
    schedule = Schedule(matmul())
    i, _, _ = schedule.get_loops("C")

    def notes(s: Schedule) -> None:
        s.annotate(i, "pragma_unroll", 16)
        s.annotate("C", "tiling", "SSRSRS")
        s.annotate("C", "levels", [1, 2])

    golden(change(schedule, notes))


def test_unannotate(golden: Golden) -> None:
    schedule = Schedule(matmul())
    i, _, _ = schedule.get_loops("C")
    schedule.annotate(i, "pragma_unroll", 16)
    golden(change(schedule, lambda s: s.unannotate(i, "pragma_unroll")))


def test_a_sketch_for_processors(golden: Golden) -> None:
    schedule = Schedule(matmul_relu(), seed=0)

    def sketch(s: Schedule) -> None:
        Y = s.get_block("Y")
        i, j, k = s.get_loops(Y)
        i_0, i_1, i_2 = s.split(i, s.sample_perfect_tile(i, 3, decision=[2, 2, 4]))
        j_0, j_1, j_2 = s.split(j, s.sample_perfect_tile(j, 3, decision=[1, 2, 8]))
        k_0, k_1 = s.split(k, s.sample_perfect_tile(k, 2, decision=[8, 2]))
        s.reorder(i_0, j_0, i_1, j_1, k_0, k_1, i_2, j_2)
        s.reverse_compute_at("C", j_1)
        s.parallel(s.fuse(i_0, j_0))
        s.vectorize(j_2)
        s.unroll(i_2)
        s.decompose_reduction(Y, k_0)

    golden(change(schedule, sketch))
