"""One kernel for many shapes: it takes sizes from its arguments, and checks them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from compiler import te
from compiler.backends.error import BuildError
from compiler.backends.module import Module
from compiler.driver import build, compile_kernel
from compiler.executor.artifact import Artifact
from compiler.executor.error import ArgumentError, ArtifactError, ShapeError
from compiler.executor.kernel import LoadedKernel
from compiler.executor.params import Symbol
from compiler.ir.analysis.symbols import with_ranges
from compiler.ir.core.program import PrimFunc
from compiler.schedule.schedule import Schedule
from compiler.script import parse

ONE_CORE = "cpu -num-cores=1"


def product() -> PrimFunc:
    m, n, k = te.var("M"), te.var("N"), te.var("K")
    a = te.placeholder((m, k), "float32", name="A")
    b = te.placeholder((k, n), "float32", name="B")
    r = te.reduce_axis((0, k), name="r")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
    return with_ranges(te.create_prim_func([a, b, c]), {"M": (1, 64)})


def softmax() -> PrimFunc:
    m, n = te.var("m"), te.var("n")
    x = te.placeholder((m, n), "float32", name="x")
    k, r = te.reduce_axis((0, n), name="k"), te.reduce_axis((0, n), name="r")
    most = te.compute((m,), lambda i: te.max(x[i, k], axis=k), name="most")
    e = te.compute((m, n), lambda i, j: te.exp(x[i, j] - most[i]), name="e")
    total = te.compute((m,), lambda i: te.sum(e[i, r], axis=r), name="total")
    y = te.compute((m, n), lambda i, j: e[i, j] / total[i], name="y")
    return te.create_prim_func([x, y])


def arrays(m: int, n: int, k: int) -> list[np.ndarray]:
    rng = np.random.default_rng(m)
    c = np.full((m, n), np.nan, "float32")
    return [rng.random((m, k), "float32"), rng.random((k, n), "float32"), c]


def check_product(kernel: LoadedKernel | Module, m: int, n: int, k: int) -> None:
    a, b, c = arrays(m, n, k)
    kernel(a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-5)


def test_a_kernel_runs_every_shape() -> None:
    kernel = build(product(), ONE_CORE)
    assert "main(A: float32[M, K], B: float32[K, N], C: float32[M, N])" in repr(kernel)
    for shape in [(1, 1, 1), (3, 5, 7), (64, 17, 2), (8, 16, 32)]:
        check_product(kernel, *shape)


def test_a_tiled_schedule_runs_every_shape_on_threads() -> None:
    sch = Schedule(product())
    i, j, r = sch.get_loops("C")
    i_0, i_1 = sch.split(i, [None, 6])
    j_0, j_1 = sch.split(j, [None, 16])
    r_0, r_1 = sch.split(r, [None, 4])
    sch.reorder(i_0, j_0, r_0, r_1, i_1, j_1)
    sch.unroll(r_1)
    sch.unroll(i_1)
    sch.vectorize(j_1)
    sch.parallel(i_0)
    kernel = build(sch, "cpu -num-cores=2")
    for shape in [(1, 1, 1), (6, 16, 4), (64, 1000, 33), (47, 31, 5)]:
        check_product(kernel, *shape)


def test_the_workspace_is_sized_at_the_call() -> None:
    artifact = compile_kernel(softmax(), ONE_CORE)
    assert isinstance(artifact.workspace_bytes, str)
    kernel = LoadedKernel(artifact)
    rng = np.random.default_rng(0)
    for m, n in [(1, 1), (3, 1000), (500, 400), (2, 7)]:
        x, y = rng.random((m, n), "float32"), np.full((m, n), np.nan, "float32")
        kernel(x, y)
        e = np.exp(x - x.max(axis=1, keepdims=True))
        np.testing.assert_allclose(y, e / e.sum(axis=1, keepdims=True), rtol=1e-5)


@pytest.mark.parametrize("suffix", [".o", ".h", ".so"])
def test_no_symbolic_kernel_is_written_for_c(suffix: str, tmp_path: Path) -> None:
    artifact = compile_kernel(softmax(), ONE_CORE)
    with pytest.raises(ArtifactError, match="takes sizes from its arrays: only kernels of fixed"):
        artifact.save(tmp_path / f"x{suffix}")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ([(65, 4), (4, 4), (65, 4)], "takes M from 1 to 64: dimension 0 of parameter A is 65"),
        ([(0, 4), (4, 4), (0, 4)], "takes M from 1 to 64: dimension 0 of parameter A is 0"),
        ([(3, 4), (5, 4), (3, 4)], r"parameter B is float32\[5, 4\]: expected float32\[4, 4\]"),
        ([(3, 4), (4, 9), (3, 4)], r"C is float32\[3, 4\]: .*\[3, 9\], as M is 3 in A and N is 9"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(shapes: list[tuple[int, ...]], message: str) -> None:
    kernel = build(product(), ONE_CORE)
    with pytest.raises(ShapeError, match=message):
        kernel(*(np.zeros(shape, "float32") for shape in shapes))
    with pytest.raises(ShapeError, match=message):
        kernel.bind(*(np.zeros(shape, "float32") for shape in shapes))
    check_product(kernel, 3, 4, 5)  # it is usable afterwards


def test_other_wrong_arguments_are_refused() -> None:
    kernel = build(product(), ONE_CORE)
    a, b, c = arrays(3, 4, 5)
    with pytest.raises(ArgumentError, match=r"A is float64\[3, 5\]: expected float32\[M, K\]"):
        kernel(a.astype("float64"), b, c)
    with pytest.raises(ArgumentError, match=r"parameter A is float32\[15\]"):
        kernel(a.reshape(-1), b, c)
    with pytest.raises(ArgumentError, match="takes 3 arrays"):
        kernel(a, b)
    both = np.zeros((8, 4), "float32")
    with pytest.raises(ArgumentError, match="parameter C is written, and overlaps parameter A"):
        kernel(both[:4], np.zeros((4, 4), "float32"), both[3:7])


SCALED = """
@T.prim_func
def main(A: T.Buffer(("n",), "float32"), by: T.float32, shift: T.int32, last: T.int32,
         C: T.Buffer(("n",), "float32")):
    T.func_attr({"tir_var_upper_bound": {"last": 100}, "tir_var_lower_bound": {"last": -100}})
    for i in range(n):
        with T.sblock("C"):
            vi = T.axis.spatial(n, i)
            C[vi] = T.if_then_else(vi < last, A[vi] * by + T.Cast("float32", shift), A[vi])
"""


def test_numbers_are_passed_by_value() -> None:
    kernel = build(parse(SCALED), ONE_CORE)
    a = np.arange(9, dtype="float32")
    calls: list[tuple[float, int, int]] = [(0.5, -3, 4), (2.25, 7, -5), (-1, 2**31 - 1, 100)]
    for by, shift, last in calls:
        c = np.full(9, np.nan, "float32")
        kernel(a, np.float32(by), np.int64(shift), last, c)
        scaled = np.multiply(a, np.float32(by)) + np.float32(shift)
        np.testing.assert_array_equal(c, np.where(np.arange(9) < last, scaled, a))
    with pytest.raises(ShapeError, match="parameter last is 101: expected -100 to 100"):
        kernel(a, 1.0, 0, 101, c)
    with pytest.raises(ShapeError, match="parameter shift is 2147483648: expected"):
        kernel(a, 1.0, 2**31, 0, c)
    with pytest.raises(ArgumentError, match="parameter shift is a float: expected an integer"):
        kernel(a, 1.0, 0.5, 0, c)
    with pytest.raises(ArgumentError, match="parameter by is 'x': expected a number"):
        kernel(a, "x", 0, 0, c)


def test_a_size_that_follows_from_no_argument_is_refused() -> None:
    n = te.var("n")
    x = te.placeholder((n * 2,), "float32", name="x")
    func = te.create_prim_func([x, te.compute((n * 2,), lambda i: x[i] + 1.0, name="y")])
    with pytest.raises(BuildError, match="no dimension of an array is n itself: make n a param"):
        build(with_ranges(func, {"n": 64}), ONE_CORE)


def test_a_program_that_is_out_of_bounds_at_some_size_is_not_built() -> None:
    n, m = te.var("n"), te.var("m")
    x, y = te.placeholder((n,), name="x"), te.placeholder((m,), name="y")
    func = te.create_prim_func([x, y, te.compute((n,), lambda i: x[i] + y[i], name="z")])
    with pytest.raises(BuildError, match=r"can't prove that y\[.*\] is in bounds"):
        build(func, ONE_CORE)


def test_an_artifact_keeps_its_symbols(tmp_path: Path) -> None:
    artifact = compile_kernel(product(), ONE_CORE)
    assert artifact.symbols[0] == Symbol("M", 1, 64)
    artifact.save(tmp_path / "product.lwk")
    again = Artifact.load(tmp_path / "product.lwk")
    assert again == artifact
    check_product(LoadedKernel(again), 5, 6, 7)


def test_a_new_process_runs_it_without_the_compiler(tmp_path: Path) -> None:
    artifact = compile_kernel(product(), ONE_CORE)
    artifact.save(tmp_path / "product.lwk")
    LoadedKernel(artifact)
    program = f"""
import sys, numpy as np
from compiler.executor import load_kernel
kernel = load_kernel({str(tmp_path / "product.lwk")!r})
a, b, c = np.ones((5, 3), "float32"), np.ones((3, 2), "float32"), np.empty((5, 2), "float32")
kernel(a, b, c)
assert (c == 3).all() and "llvmlite" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_a_damaged_formula_is_refused() -> None:
    artifact = compile_kernel(product(), ONE_CORE)
    content = artifact.to_bytes()
    for wrong in ("L + 1", "__import__('os')"):
        param = artifact.params[2]
        changed = Artifact(
            **{
                **{name: getattr(artifact, name) for name in Artifact.__slots__},
                "params": (*artifact.params[:2], type(param)("C", (wrong, "N"), "float32", True)),
            }
        )
        with pytest.raises(ArtifactError, match="not a Loopwright artifact"):
            Artifact.from_bytes(changed.to_bytes())
    assert Artifact.from_bytes(content) == artifact
